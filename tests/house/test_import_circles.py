"""No module imports itself through others, not even inside of a function or for type checkers alone."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def modules(package: str) -> dict[str, Path]:
    """The files of a package by the names of their modules."""
    files = (ROOT / package.replace(".", "/")).rglob("*.py")
    named = ((".".join(file.relative_to(ROOT).with_suffix("").parts), file) for file in files)
    return {name.removesuffix(".__init__"): file for name, file in named}


def imported(source: str, known: dict[str, Path]) -> Iterator[str]:
    """The known modules that a source imports: of ``from package import module``, the module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from names & known.keys()
            if node.module in known and not names <= known.keys():
                yield node.module


@pytest.mark.parametrize("package", ["attnlib.checks", "grading"])
def test_no_module_imports_itself_through_others(package):
    known = modules(package)
    graph = {name: set(imported(file.read_text(encoding="utf-8"), known)) - {name} for name, file in known.items()}
    assert len(graph) > 20
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(reversed(error.args[1])))
