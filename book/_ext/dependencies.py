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
    found: set[str] = set()
    names = set(_named(ast.parse(code), ""))
    _follow(names, found)
    files = {file for name in found if (file := _file(name))} | {ROOT / "requirements.txt"}
    packages = {name.partition(".")[0] for name in found}
    if "attnlib" in packages:
        files.update(path for path in _all("attnlib") if path.suffix != ".py")  # its data
    if "stdlib_lm" in names:  # the language model, a package of its own
        files.update(_all("model/stdlib_lm"))
    if PROGRAMS in packages:
        files.update(path for path in _all(PROGRAMS) if path.suffix != ".py")  # its data and results
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


def _follow(names: Iterable[str], found: set[str]) -> None:
    """Add our own modules, the packages that contain them, and everything that these import."""
    for name in names:
        parts = name.split(".")
        for depth in range(1, len(parts) + 1):
            module = ".".join(parts[:depth])
            file = _file(module)
            if file and module not in found:
                found.add(module)
                _follow(_imports(file, module), found)


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


class _Executed(ast.NodeTransformer):
    """Removes code that only type checkers read."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        """Replace ``if TYPE_CHECKING`` with the code under its ``else``."""
        self.generic_visit(node)
        return node.orelse if ast.unparse(node.test) == "TYPE_CHECKING" else node


def _named(tree: ast.AST, package: str) -> Iterator[str]:
    """Yield each name that a module may have: imported, written with dots, or as a string."""
    tree = _Executed().visit(tree)
    bare = {id(node): node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in PACKAGES}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _whole(alias.name) if alias.asname and alias.name in PACKAGES else [alias.name]
        elif isinstance(node, ast.ImportFrom):
            yield from _imported_from(node, package)
        elif isinstance(node, ast.Attribute):
            if isinstance(node.value, ast.Name):
                bare.pop(id(node.value), None)
            if OUR_MODULE.fullmatch(dotted := ast.unparse(node)):
                yield dotted
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and OUR_MODULE.fullmatch(node.value):
            yield node.value
    for package_name in bare.values():  # a package as a value, of which any part may be used
        yield from _whole(package_name)


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
