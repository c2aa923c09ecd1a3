"""The text: the source of Python's own standard library, divided into modules to learn from and modules held out.

It is licensed under the PSF licence. Tests, tables of data and demonstrations are left out.
"""

import hashlib
import platform
import sysconfig
from pathlib import Path
from typing import NamedTuple

PYTHON = "3.11.7"  # the version whose library the published weights were trained on
# The hash of all its modules that are used, in the order of their paths.
SHA256 = "808501e5a766c697e1e8c998578fd413bbe4c9635fea46e1a6e2a2eb5c6ed0f3"
LEFT_OUT = {"test", "tests", "idle_test", "encodings", "pydoc_data", "turtledemo", "site-packages", "__pycache__"}
HELD_OUT_SHARE = 12  # one module in this many is held out


class Corpus(NamedTuple):
    """Modules by path, each with its source."""

    learned: dict[str, str]
    held_out: dict[str, str]
    sha256: str


def read_corpus(folder: Path | None = None) -> Corpus:
    """Read the standard library, and hold out each module whose path has a hash divisible by 12.

    Args:
        folder: the library's folder; ``None`` means that of the running Python.

    Returns:
        The modules.

    Raises:
        FileNotFoundError: the folder has no modules.
    """
    folder = Path(sysconfig.get_path("stdlib")) if folder is None else folder
    sources = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*.py"))}
    modules = {name: path.read_text("utf-8") for name, path in sources.items() if _is_wanted(name)}
    modules = {name: text for name, text in modules.items() if text.strip()}
    if not modules:
        raise FileNotFoundError(f"{folder} has no modules of the standard library: pass its folder with --stdlib")
    held = {name for name in modules if _hash(name) % HELD_OUT_SHARE == 0}
    return Corpus(
        {name: text for name, text in modules.items() if name not in held},
        {name: text for name, text in modules.items() if name in held},
        hashlib.sha256("".join(modules.values()).encode()).hexdigest(),
    )


def sample(modules: dict[str, str]) -> list[str]:
    """Return about one in eleven of the learned modules, chosen in the same way as the held-out ones."""
    return [text for name, text in modules.items() if _hash(name) % HELD_OUT_SHARE == 1]


def require_version(corpus: Corpus) -> None:
    """Raise ValueError unless the text is the one that the published weights were trained on."""
    if corpus.sha256 != SHA256:
        raise ValueError(
            f"the standard library of Python {platform.python_version()} has sha256 {corpus.sha256}, but that of "
            f"Python {PYTHON}, {SHA256}, is needed: pass its folder with --stdlib, or --any-version to use this one"
        )


def _is_wanted(name: str) -> bool:
    parts = Path(name).parts
    made_here = parts[-1].startswith("_sysconfigdata") or parts[0].startswith("config-")  # differs between machines
    return not made_here and not LEFT_OUT & set(parts)


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
