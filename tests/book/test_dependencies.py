"""A page depends on what it imports: nothing that it may run is overlooked, and what it cannot run is left out."""

import ast
import importlib.util
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from _ext import dependencies
from _ext.dependencies import ROOT, digest, files_of
from pages import source

pytestmark = pytest.mark.slow

WRITTEN = [*(ROOT / "book").glob("*.md"), *(ROOT / "book").glob("teaching/*.md")]
EXECUTED = sorted(
    path.relative_to(ROOT / "book").with_suffix("").as_posix() for path in WRITTEN if "{code-cell}" in path.read_text()
)
GRADING = {f"teaching/{name}" for name in ("start-in-an-hour", "the-term", "exams", "how-grading-works", "reference")}
IMPORTS = re.compile(r"^(?:import|from) (?!matplotlib|IPython|torch).*?(?:\(.*?\))?$", re.MULTILINE | re.DOTALL)
LOADED = "import json, sys; print(json.dumps([getattr(m, '__file__', None) for m in sys.modules.values()]))"


CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OUR_IMPORT = re.compile(r"^from ((?:grading|attnlib|_figures|_tools)\S*) import (\([^)]*\)|.*)$", re.MULTILINE)


@pytest.mark.parametrize("name", EXECUTED)
def test_what_a_page_imports_from_our_packages_is_there(name):
    """A type checker does not read pages, and executing them takes minutes."""
    code = "\n".join(CELL.findall(source(f"book/{name}")))
    for module, names in OUR_IMPORT.findall(code):
        for imported in ast.parse(f"from {module} import {names}").body[0].names:
            there = hasattr(importlib.import_module(module), imported.name)
            assert there or importlib.util.find_spec(f"{module}.{imported.name}"), f"{module} has no {imported.name}"


def page(code: str) -> str:
    return f"# A page\n\n```{{code-cell}} ipython3\n:tags: [hide-input]\n\n{code}\n```\n"


def names(code: str) -> set[str]:
    return {path.relative_to(ROOT).as_posix() for path in files_of(page(code))}


@cache
def imported(name: str) -> frozenset[Path]:
    return frozenset(files_of(source(f"book/{name}")))


def dependents(file: str) -> set[str]:
    return {name for name in EXECUTED if ROOT / file in imported(name)}


@pytest.mark.parametrize("name", ["start", "masks", "teaching/how-grading-works"])
def test_every_module_of_ours_that_python_loads_for_a_page_is_counted(name):
    code = "\n".join(
        IMPORTS.findall("\n".join(cell for _, cell in dependencies.CODE_CELL.findall(source(f"book/{name}"))))
    )
    command = [sys.executable, "-W", "ignore", "-c", f"{code}\n{LOADED}"]
    done = subprocess.run(command, cwd=ROOT / "book", capture_output=True, text=True, check=True, timeout=600)
    ours = {
        path for path in json.loads(done.stdout) if path and path.startswith((f"{ROOT}/attnlib", f"{ROOT}/grading"))
    }
    assert len(ours) > 10
    assert ours <= {str(path) for path in files_of(source(f"book/{name}"))}


def test_a_change_of_grading_concerns_the_pages_for_instructors_alone():
    assert dependents("grading/report.py") == GRADING
    assert dependents("grading/templates/course-feedback/index.html.j2") == GRADING


def test_a_change_of_the_checks_concerns_the_pages_that_show_reports():
    assert dependents("attnlib/checks/evaluation.py") == GRADING | {"teaching/write-an-exercise", "slips", "start"}


def test_what_attnlib_itself_imports_concerns_every_page():
    assert dependents("attnlib/similarity.py") == set(EXECUTED)
    assert dependents("book/_tools/notebook_helpers.py") == set(EXECUTED)
    assert dependents("requirements.txt") == set(EXECUTED)


def test_the_language_model_concerns_the_pages_that_load_it():
    having = {name for name in EXECUTED if "import stdlib_lm" in source(f"book/{name}")}
    assert dependents("model/stdlib_lm/__init__.py") == having
    assert having


def test_the_programs_that_train_concern_the_pages_that_use_them():
    assert dependents("training/code_patterns.py") == {"looking-into-a-decoder"}
    assert dependents("training/ablations.py") == {"modern-block"}
    data = {"looking-into-a-decoder", "modern-block"}  # whoever uses a program may read what any of them wrote
    assert dependents("training/held_out/lzma.py.txt") == dependents("training/heads.csv") == data
    assert "training/heads.csv" in names("from training.heads import best")
    assert "training/heads.csv" not in names("training = 'training'\nmodel.train(training)")


def test_the_options_of_the_explorer_concern_the_pages_that_have_one():
    having = {name for name in EXECUTED if "from _tools.explorer import" in source(f"book/{name}")}
    assert dependents("book/_explorer/options.json") == having
    assert len(having) == 7


def test_a_page_that_counts_chapters_depends_on_the_contents():
    assert dependents("_toc.yml") == {"index"}


def test_a_part_that_is_loaded_on_demand_concerns_the_pages_that_ask_for_it():
    assert "attnlib/minilm.py" in names("import attnlib\nattnlib.minilm.load_minilm()")
    assert "attnlib/minilm.py" not in names("import attnlib\nattnlib.softmax(x)")
    assert dependents("attnlib/minilm.py") >= {"transformer", "looking-into-a-real-model"}
    assert "masks" not in dependents("attnlib/minilm.py")


@pytest.mark.parametrize(
    "code",
    [
        "from attnlib.minilm import load_minilm",
        "from attnlib import minilm as model",
        "def later():\n    import attnlib.minilm",
        "import importlib\nimportlib.import_module('attnlib.minilm')",
        "import subprocess\nsubprocess.run(['python', '-m', 'attnlib.minilm'])",
        "import attnlib as library\nlibrary.minilm",
        "import attnlib\nlibrary = attnlib\nlibrary.minilm",
        "import attnlib\ngetattr(attnlib, 'mini' + 'lm')",
    ],
)
def test_every_way_to_a_module_counts(code):
    assert "attnlib/minilm.py" in names(code)


def test_what_is_imported_for_type_checkers_alone_does_not_count():
    hidden = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import attnlib.minilm"
    assert "attnlib/minilm.py" not in names(hidden)
    assert "attnlib/minilm.py" in names(f"{hidden}\nelse:\n    import attnlib.minilm")


def test_the_texts_of_the_library_count():
    assert "attnlib/embeddings/small_town.txt" in names("import attnlib")


def test_a_digest_follows_the_content_and_not_the_time(tmp_path, monkeypatch):
    monkeypatch.setattr(dependencies, "ROOT", tmp_path)
    file = tmp_path / "module.py"
    file.write_text("x = 1")
    before = digest([file])
    file.touch()
    assert digest([file]) == before
    file.write_text("x = 2")
    assert digest([file]) != before
