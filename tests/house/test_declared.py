"""Whatever a part of the repository imports directly is declared for it, and the lock pins all that is declared."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
GROUPS = PROJECT["dependency-groups"]
GROUP_OF = {  # the dependency group that what is imported in a part of the repository has to be in
    "grading": "grading",
    "nbgrader_config.py": "grading",
    "book": "book",
    "exercises": "torch",
    "solutions": "torch",
    "training": "torch",
    "tests": "test",
    "benchmarks": "bench",
    "install.py": None,  # only what Python brings
}
NAMED = {  # what is imported by a name that its package does not have
    "axe": "axe-playwright-python",
    "bs4": "beautifulsoup4",
    "dateutil": "python-dateutil",
    "mpl_toolkits": "matplotlib",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}
CELL = re.compile(r"^```+\{code-cell\}.*\n(?:---\n[\s\S]*?\n---\n)?((?:.*\n)*?)```+$", re.MULTILINE)
OPTION = re.compile(r"^(?::[\w-]+:|%|!).*$", re.MULTILINE)  # of a cell, or for IPython alone


def tracked(*patterns: str) -> list[str]:
    command = ["git", "ls-files", "-z", *patterns]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip("\0").split("\0")


FILES = tracked("*.py", "*.md", "*.ipynb")
OURS = ("attnlib", "grading", "training")  # packages, of whose modules none is imported by its bare name
SCRIPTS = tracked("*.py", *(f":!{name}" for name in OURS))
LOCAL = {*OURS, *(part.removesuffix(".py") for name in SCRIPTS for part in name.split("/"))}


def sources(file: str) -> list[str]:
    text = (ROOT / file).read_text(encoding="utf-8")
    if file.endswith(".ipynb"):
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        return [OPTION.sub("", "".join(cell["source"])) for cell in cells]
    return [OPTION.sub("", cell) for cell in CELL.findall(text)] if file.endswith(".md") else [text]


def imported(source: str) -> Iterator[str]:
    return _imported(ast.parse(source))


def _imported(node: ast.AST) -> Iterator[str]:
    """Yield what a statement and the statements within it import, except what only type checkers read."""
    if isinstance(node, ast.Import):
        yield from (alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and not node.level:
        yield node.module.partition(".")[0]
    for_checkers = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    for inner in node.orelse if for_checkers else ast.iter_child_nodes(node):
        if isinstance(inner, ast.stmt | ast.excepthandler | ast.match_case):
            yield from _imported(inner)


@cache
def packages(folder: str) -> set[str]:
    """Return the packages that the code in a folder imports, without those of the repository."""
    files = [file for file in FILES if file.partition("/")[0] == folder and not file.startswith("tests/attnlib/data/")]
    names = {name for file in files for source in sources(file) for name in imported(source)}
    return {package(NAMED.get(name, name)) for name in names - LOCAL - sys.stdlib_module_names}


def package(requirement: str) -> str:
    return re.match(r"[\w.-]+", requirement)[0].lower().replace("_", "-")


def group(name: str) -> set[str]:
    nested = [group(entry["include-group"]) if isinstance(entry, dict) else {package(entry)} for entry in GROUPS[name]]
    return set().union(*nested)


@pytest.mark.slow
@pytest.mark.parametrize("folder", GROUP_OF)
def test_whatever_is_imported_is_in_the_group_of_its_folder(folder):
    declared = group(GROUP_OF[folder]) if GROUP_OF[folder] else set()
    assert packages(folder) <= declared
    assert packages(folder) or not declared


def test_whatever_the_library_imports_is_a_dependency_or_in_an_extra():
    project = PROJECT["project"]
    declared = {package(r) for r in sum(project["optional-dependencies"].values(), project["dependencies"])}
    by_name = {"ml-dtypes", "safetensors", "tokenizers"}  # attnlib.minilm and attnlib.hf import them with a model
    elsewhere = {"triton", "js"}  # from torch's CUDA build, and from the browser that Pyodide runs in
    assert packages("attnlib") | by_name == declared | elsewhere


def test_an_import_that_is_not_declared_is_found():
    assert not LOCAL & group("bench")
    assert list(imported("import os, yaml.loader\nfrom PIL import Image")) == ["os", "yaml", "PIL"]
    assert list(imported("if TYPE_CHECKING:\n    import jax\nelse:\n    import typing")) == ["typing"]
    page = "```{code-cell} ipython3\n---\nmystnb: {}\n---\n:tags: [x]\nimport numpy\n```\n"
    assert list(imported(OPTION.sub("", *CELL.findall(page)))) == ["numpy"]


def locked() -> dict[str, str]:
    lines = [line for line in (ROOT / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    assert all(re.match(r"[\w.-]+==[\w.]+( ;.*)?$", line) for line in lines)
    return {package(line): line for line in lines}


def test_the_lock_pins_a_version_of_everything_that_is_declared():
    extras = PROJECT["project"]["optional-dependencies"].values()
    declared = {package(r) for r in sum(extras, PROJECT["project"]["dependencies"])}
    assert set().union(declared, *map(group, GROUPS)) <= locked().keys()


def test_every_group_is_part_of_the_last_which_the_lock_is_made_from():
    assert all(group(name) <= group("bench") for name in GROUPS)
    assert "pyproject.toml --group bench " in (ROOT / "Makefile").read_text()


def test_the_version_of_torch_is_stated_once():
    """Besides the lock, and what was measured with it."""
    (stated,) = (entry for entry in GROUPS["torch"] if "torch==" in entry)
    version = stated.removeprefix("torch==")
    assert locked()["torch"] == stated
    measured = (":!benchmarks/*.md", ":!model/stdlib_lm/run.json", ":!training/*.csv")
    others = (":!requirements.txt", ":!*.svg", ":!*.ipynb")
    command = ["git", "grep", "-nwF", version, "--", *others, *measured]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [line.split(":")[0] for line in found] == ["pyproject.toml"]
