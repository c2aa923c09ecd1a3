"""What students get, in one zip file: the notebooks, attnlib as a wheel, and the versions of what they install.

The file holds no answers. The notebooks are the released ones, and attnlib does not know which options are right. The
same tree gives the same bytes.
"""

import io
import shutil
import tomllib
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from grading._untyped import make_wheel_in
from grading.class_settings import ClassSettings, read_class
from grading.course import Course, GradingError, environment
from grading.handout import WORK_FOLDER, Files, released
from grading.text import counted

NAME = "attention-students.zip"
FOLDER = "attention"  # the folder that unpacking makes
SOURCE_DATE = 315_532_800  # 1980, where the times of a zip file begin
BUILDERS = {"flit-core"}  # what only an editable installation of attnlib needs
README = """\
# {title}

{book}You need Python 3.11 or newer, and 0.4 GB of disk space. In this folder:

```bash
python3 -m venv .venv
.venv/bin/pip install --requirement requirements.txt
.venv/bin/jupyter lab work
```

On Windows, write `.venv\\Scripts\\pip` and `.venv\\Scripts\\jupyter`.

Fill in the cells that say `YOUR CODE HERE`, and run the check below each as often as you like. The tasks in
PyTorch need these packages as well (0.3 GB, or 2.8 GB with CUDA):

```bash
.venv/bin/pip install --constraint constraints.txt torch array-api-compat
```

To get the options of each question in an order of your own, add a cell with these two lines to a notebook, with the id
that your course site or your instructor names:

```python
from attnlib.checks import set_student
set_student("your id")
```
"""


def bundle(course: Course, out: Path | None = None) -> str:
    """Write the file for students, and return what it holds, as text for a terminal.

    Raises:
        GradingError: there is nothing to release, or the file cannot be written.
    """
    notebooks = released(course)
    files = {f"{WORK_FOLDER}/{path}": content for path, content in notebooks.items()}
    wheel, content = _wheel(course.root)
    lock = (course.root / "requirements.txt").read_text(encoding="utf-8")
    files |= {wheel: content, "requirements.txt": _requirements(course.root, lock, wheel).encode()}
    files |= {"constraints.txt": lock.encode(), "README.md": _readme(read_class(course)).encode()}
    file = (out or course.folder / NAME).absolute()
    try:
        if file.is_relative_to(course.folder):
            course.files.write(file, _zipped(files))
        else:
            file.write_bytes(_zipped(files))
    except OSError as error:
        raise GradingError(
            f"cannot write {file}: {error}. Pass --out FILE, in a folder that you can write to"
        ) from None
    return f"{counted(len(notebooks), 'notebook')} and {wheel} in {file}"


def _readme(settings: ClassSettings) -> str:
    title = ", ".join(filter(None, (settings.name, settings.term))) or "The exercises of the course on attention"
    return README.format(title=title, book=f"The book: {settings.book}\n\n" if settings.book else "")


def _zipped(files: Files) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in sorted(files.items()):
            entry = zipfile.ZipInfo(f"{FOLDER}/{path}")  # its time is the beginning of 1980
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, content)
    return stream.getvalue()


def _wheel(root: Path) -> tuple[str, bytes]:
    """Return the name and the content of attnlib's wheel."""
    with TemporaryDirectory(prefix="attnlib-") as place:
        copy = Path(place, "source")
        shutil.copytree(root / "attnlib", copy / "attnlib", ignore=shutil.ignore_patterns("__pycache__", ".*"))
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copyfile(root / name, copy / name)
        for path in copy.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        with environment("SOURCE_DATE_EPOCH", str(SOURCE_DATE)):
            wheel = make_wheel_in(copy / "pyproject.toml", Path(place)).file
        return wheel.name, wheel.read_bytes()


def _requirements(root: Path, lock: str, wheel: str) -> str:
    """Return what the group of students asks for, in the versions of the lock."""
    groups = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    wanted = [name for name in groups["student"] if name not in BUILDERS]
    pinned = [line for line in lock.splitlines() if line.partition("==")[0] in wanted]
    return "\n".join(["--constraint constraints.txt", f"./{wheel}", *pinned, ""])
