"""What is copied into the sandbox: the library, the code that calls an implementation, and the program that runs it.

The exercises stay outside, because they hold the references and the known mistakes. So do the parts of the library that
answer an exercise (:mod:`grading.sandbox.withheld`), its kernel for GPUs, because the box has no GPU, and the rest of
the repository.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from grading.sandbox.temporary import sweep, temporary
from grading.sandbox.withheld import library, stand_ins

CALLING_FOLDER = "calling"  # the folder of attnlib.checks that calls an implementation, without knowing any answers
CHECKS_STAND_IN = "checks.py"  # replaces attnlib.checks itself


@contextmanager
def packed_payload() -> Iterator[Path]:
    """Lay out the payload in a temporary folder, and yield the folder, which belongs on Python's path."""
    sweep()
    with temporary("payload") as payload:
        inside = Path(__file__).parent / "inside"
        no_checks = shutil.ignore_patterns("checks", "_triton.py", "__pycache__")
        shutil.copytree(library(), payload / "attnlib", ignore=no_checks)
        for file in (payload / "attnlib").glob("*.py"):
            file.write_text(stand_ins(file.stem, file.read_text(encoding="utf-8")), encoding="utf-8")
        compiled = shutil.ignore_patterns("__pycache__")
        shutil.copytree(
            library() / "checks" / CALLING_FOLDER, payload / "attnlib" / "checks" / CALLING_FOLDER, ignore=compiled
        )
        shutil.copyfile(inside / CHECKS_STAND_IN, payload / "attnlib" / "checks" / "__init__.py")
        shutil.copytree(inside, payload / "grading" / "sandbox" / "inside", ignore=compiled)
        for package in (payload / "grading", payload / "grading" / "sandbox"):
            (package / "__init__.py").touch()
        payload.chmod(0o755)  # the box runs as a different user
        yield payload
