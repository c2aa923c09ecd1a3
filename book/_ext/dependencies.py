"""What a page of the book depends on: the files of the modules that its code imports, and of those that they import.

Only our own modules count, those of ``attnlib``, ``grading``, ``training`` and ``book/``. ``requirements.txt`` stands
for all others.
Where it is uncertain whether a module is used, it counts: a page may be executed once too often, but is never stale.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("attnlib", "grading")
CONTENTS = "_toc.yml"
PROGRAMS = "training"  # a package that counts only where it is imported: the word is common in code
CODE_CELL = re.compile(r"^(`{3,})\{code-cell\}[^\n]*\n(.*?)^\1[ \t]*$", re.MULTILINE | re.DOTALL)
CELL_OPTIONS = re.compile(r"\A(?:---\n.*?^---\n|(?::[^\n]*\n)+)", re.MULTILINE | re.DOTALL)
OUR_MODULE = re.compile(rf"(?:{'|'.join(PACKAGES)})(?:\.\w+)*")  # the full name of one of our modules


def files_of(page: str) -> list[Path]:
    """Return the files that the results of a page depend on, given its text.

    Raises:
        SyntaxError: a cell is not Python.
    """
    code = "\n".join(CELL_OPTIONS.sub("", cell) for _, cell in CODE_CELL.findall(page))
    names = set(_named(ast.parse(code), ""))
    tried: dict[str, Path | None] = {}
    _follow(names, tried)
    found = {name: file for name, file in tried.items() if file}
    files = {*found.values(), ROOT / "requirements.txt"}
    packages = {name.partition(".")[0] for name in found}
    if "attnlib" in packages:
        files.update(path for path in _all("attnlib") if path.suffix != ".py")  # its data
    if "stdlib_lm" in names:  # the language model, a package of its own
        files.update(_all("model/stdlib_lm"))
    if PROGRAMS in packages:
        files.update(path for path in _all(PROGRAMS) if path.suffix != ".py")  # its data and results
    if CONTENTS in page:
        files.add(ROOT / CONTENTS)
    if "_tools.explorer" in found:
        files.add(ROOT / "book" / "_explorer" / "options.json")
    if "grading" in packages:  # it starts processes that import any part of both
        files.update(_all("grading"), _all("attnlib"), ROOT.glob("solutions/*/*.ipynb"), [ROOT / "nbgrader_config.py"])
    return sorted(file for file in files if file.is_file())


def documented() -> list[Path]:
    """Return the files that a page made from docstrings depends on."""
    return list(_all("attnlib"))


def digest(files: Iterable[Path]) -> str:
    """Return a digest of what is in the files, and of the Python that would run them."""
    found = sha256(sys.version.encode())
    for file in files:
        content = sha256(file.read_bytes()).hexdigest()
        found.update(f"{file.relative_to(ROOT).as_posix()} {content}\n".encode())
    return found.hexdigest()[:16]


def _follow(names: Iterable[str], tried: dict[str, Path | None]) -> None:
    """Add the files of our own modules, of the packages that contain them, and of everything that these import.

    A name that belongs to no module of ours is kept with ``None``, so that it is looked for only once.
    """
    for name in names:
        parts = name.split(".")
        for depth in range(1, len(parts) + 1):
            module = ".".join(parts[:depth])
            if module not in tried:
                file = tried[module] = _file(module)
                if file:
                    _follow(_imports(file, module), tried)


def _file(module: str) -> Path | None:
    """Return the file of one of our modules, if there is one of this name."""
    base = ROOT if module.partition(".")[0] in (*PACKAGES, PROGRAMS) else ROOT / "book"
    path = base.joinpath(*module.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def _imports(file: Path, module: str) -> frozenset[str]:
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    return _read(file, file.stat().st_mtime_ns, package)


@cache
def _read(file: Path, _changed: int, package: str) -> frozenset[str]:
    return frozenset(_named(ast.parse(file.read_text(encoding="utf-8")), package))


def _executed(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a module, each before its children, without the code that only type checkers read."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            waiting.extend(node.orelse)
        else:
            waiting.extend(ast.iter_child_nodes(node))


def _named(tree: ast.AST, package: str) -> Iterator[str]:
    """Yield each name that a module may have: imported, written with dots, or as a string."""
    followed_by_dot: set[int] = set()
    for node in _executed(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _whole(alias.name) if alias.asname and alias.name in PACKAGES else [alias.name]
        elif isinstance(node, ast.ImportFrom):
            yield from _imported_from(node, package)
        elif isinstance(node, ast.Attribute):
            followed_by_dot.add(id(node.value))
            if OUR_MODULE.fullmatch(dotted := _dotted(node)):
                yield dotted
        elif isinstance(node, ast.Name) and node.id in PACKAGES and id(node) not in followed_by_dot:
            yield from _whole(node.id)  # a package as a value, of which any part may be used
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and OUR_MODULE.fullmatch(node.value):
            yield node.value


def _dotted(node: ast.Attribute) -> str:
    """Return ``a.b.c`` for the attribute of a name, or of an attribute of a name; for all others ''."""
    names, value = [node.attr], node.value
    while isinstance(value, ast.Attribute):
        names.append(value.attr)
        value = value.value
    return ".".join([value.id, *reversed(names)]) if isinstance(value, ast.Name) else ""


def _imported_from(node: ast.ImportFrom, package: str) -> Iterator[str]:
    above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
    module = ".".join([*above, *([node.module] if node.module else [])])
    yield module
    yield from (f"{module}.{alias.name}" for alias in node.names if alias.name != "*")


def _whole(package: str) -> Iterator[str]:
    for path in _all(package):
        if path.suffix == ".py":
            yield ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _all(package: str) -> Iterator[Path]:
    return (path for path in (ROOT / package).rglob("*") if path.is_file() and "__pycache__" not in path.parts)
