"""Imports go one way: no circles, and no layer imports a higher one. docs/change-attnlib.md draws the layers.

Imports inside functions count too, because they can hide a circle. Imports for type checkers alone count in the checks
and in the grading engine, which need none that closes a circle.
"""

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The folders in which the names of modules begin.
BASES = {"attnlib": ROOT, "grading": ROOT, "training": ROOT, "book": ROOT / "book"}
LAYERS = (  # of attnlib, the lowest first: all other modules are above them, and modules of one layer may import others
    ("_extras", "_fast_paths", "_gelu", "_threads", "_torch_namespace", "_types"),
    ("_arrays",),
    ("_attention_arguments", "_head_groups", "_lengths", "_spec", "masks"),
    ("_backward", "_score_blocks", "_numpy_fast_path", "_numpy_tiled", "cells"),
    (
        *("_array_api_kernels", "_numpy_kernels", "_torch_kernels", "_triton", "_torch_fast_path", "_torch_fused"),
        *("_torch_lost_infinities", "_torch_lower_right", "_torch_recurrent", "_torch_score_blocks"),
        *("_torch_second_derivatives", "_torch_steps", "_torch_tracing", "_torch_unfused"),
    ),
    ("_dispatch",),
)
JUPYTER = ("IPython", "ipywidgets", "jupyter", "nbclient", "nbconvert", "nbformat", "nbgrader")
STRICT = ("attnlib.checks", "grading")  # packages without a circle even of imports for type checkers
Graph = Mapping[str, set[str]]  # by the name of a module: all that it imports
Walk = Callable[[ast.AST], Iterator[ast.AST]]


def executed(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a syntax tree, except those that only a type checker reads."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            for other in node.orelse:
                yield from (other, *executed(other))
        else:
            yield from (node, *executed(node))


@cache
def graph(folder: str, walk: Walk = executed) -> Graph:
    """Return what each module in a folder imports, by the names under which they are imported.

    ``walk`` yields the nodes of a module among which imports count.
    """
    known = {}
    for file in sorted((ROOT / folder).rglob("*.py")):
        parts = file.relative_to(BASES[folder]).with_suffix("").parts
        known[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return {name: imports(name, file, known, walk) for name, file in known.items()}


def imports(name: str, file: Path, known: Iterable[str], walk: Walk = executed) -> set[str]:
    """Return the names of the modules that a module imports; ``from a import b`` imports ``a.b`` if that is known."""
    found = set()
    for node in walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            package = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
            start = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*start, *([node.module] if node.module else [])])
            parts = (f"{source}.{alias.name}" for alias in node.names)
            found |= {part if part in known else source for part in parts}
    return found - {name}


def circle(found: Graph) -> str:
    """Return a circle of imports, or '' if there is none."""
    try:
        TopologicalSorter({name: imported & found.keys() for name, imported in found.items()}).prepare()
    except CycleError as error:
        return " -> ".join(reversed(error.args[1]))
    return ""


@pytest.mark.parametrize("folder", BASES)
def test_no_modules_import_each_other_in_a_circle(folder):
    assert circle(graph(folder)) == ""


@pytest.mark.parametrize("package", STRICT)
def test_no_modules_of_a_strict_package_import_each_other_in_a_circle_for_type_checkers_either(package):
    found = graph(package.split(".")[0], ast.walk)
    found = {name: imported for name, imported in found.items() if f"{name}.".startswith(f"{package}.")}
    assert len(found) > 20
    assert circle(found) == ""


@pytest.mark.parametrize(
    ("late", "closes"),
    [("def late():\n    from a import name", True), ("if TYPE_CHECKING:\n    import a\nelse:\n    a = 1", False)],
    ids=["inside a function", "for type checkers"],
)
def test_an_import_closes_a_circle_if_it_is_ever_executed(tmp_path, late, closes):
    files = {name: tmp_path / f"{name}.py" for name in "ab"}
    files["a"].write_text("import b\n")
    files["b"].write_text(f"from typing import TYPE_CHECKING\n{late}\n")
    assert bool(circle({name: imports(name, file, files) for name, file in files.items()})) == closes


@pytest.mark.parametrize("level", range(len(LAYERS)), ids=lambda level: LAYERS[level][0])
def test_no_layer_of_attnlib_imports_a_higher_one(level):
    found = graph("attnlib")
    allowed = {f"attnlib.{name}" for layer in LAYERS[: level + 1] for name in layer}
    modules = [f"attnlib.{name}" for name in LAYERS[level]]
    assert {name: higher for name in modules if (higher := found[name] & found.keys() - allowed)} == {}


def test_the_drawing_for_contributors_shows_every_layer_in_its_place():
    page = (ROOT / "docs" / "change-attnlib.md").read_text(encoding="utf-8")
    (drawing,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
    columns = [re.split(r" {3,}", line)[0] for line in drawing.splitlines()]
    drawn = [set(re.findall(r"\w+", names)) for names in reversed(columns)]
    levels = [{level for level, layer in enumerate(LAYERS) if names & set(layer)} for names in drawn]
    assert levels[: len(LAYERS)] == [{level} for level in range(len(LAYERS))]


def test_the_library_imports_neither_its_checks_nor_the_grading_engine_nor_jupyter():
    forbidden = ("attnlib.checks.", "grading.", "book.", *(f"{name}." for name in JUPYTER))
    for name, imported in graph("attnlib").items():
        if not f"{name}.".startswith("attnlib.checks."):
            assert not [one for one in imported if f"{one}.".startswith(forbidden)], name


def test_the_checks_do_not_import_the_grading_engine():
    assert not [name for name, imported in graph("attnlib").items() if any(i.startswith("grading") for i in imported)]


def test_what_makes_html_of_a_report_takes_plain_data():
    """It knows texts, numbers and arrays, but no exercise, no answer and no report."""
    known = graph("attnlib")
    reached, todo = set(), {"attnlib.checks.report_html"}
    while todo:
        name = todo.pop()
        reached.add(name)
        todo |= (known[name] & known.keys()) - reached
    assert reached == {f"attnlib.checks.{name}" for name in ("array_text", "comparison", "report_html")}
