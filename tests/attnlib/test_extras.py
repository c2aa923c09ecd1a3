"""If an optional library is missing, one sentence names it and says how to install it."""

import importlib
import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
import torch

import attnlib
import attnlib.hf
import attnlib.minilm
from attnlib._extras import EXTRAS, LIBRARIES, explain_missing
from attnlib.checks import examine, notebook
from attnlib.checks.browser import left_out

# Tries everything in one process in which no optional library can be imported, and prints the errors.
WITHOUT = """
import json, sys
sys.modules |= dict.fromkeys(sys.argv[1:])
import attnlib, attnlib.checks, attnlib.checks.__main__, attnlib.embeddings, attnlib.minilm, attnlib.numpy
import attnlib.hf.__main__

tried = {
    "attnlib.torch": lambda: attnlib.torch,
    "attnlib.plotting": lambda: attnlib.plotting,
    "attnlib.minilm": lambda: attnlib.minilm.load_minilm(),
    "attnlib.minilm in torch": lambda: attnlib.minilm.load_minilm(backend="torch"),
    "attnlib.hf": lambda: attnlib.hf.load("nowhere"),
    "attnlib.hf from the shell": lambda: attnlib.hf.__main__.main(["nowhere", "a prompt"]),
    "a check in torch": lambda: attnlib.checks.examine("softmax", attnlib.softmax, backend="torch"),
    "a report": lambda: attnlib.checks.__main__.main(["report", "softmax"]),
}
errors = {}
for name, attempt in tried.items():
    try:
        attempt()
    except ImportError as error:
        errors[name] = str(error)
    except SystemExit as exit:  # of a command, which says why on stderr
        errors[name] = exit.code
print(json.dumps(errors))
"""
NEEDED = {
    "attnlib.torch": "attnlib.torch needs torch, which is not installed: run pip install 'attnlib[torch]'",
    "attnlib.plotting": ("attnlib.plotting needs matplotlib, which is not installed: run pip install 'attnlib[plot]'"),
    "attnlib.minilm": "attnlib.minilm needs safetensors, which is not installed: run pip install 'attnlib[minilm]'",
    "attnlib.minilm in torch": (
        "attnlib.minilm needs safetensors, which is not installed: run pip install 'attnlib[minilm]'"
    ),
    "attnlib.hf": "attnlib.hf needs safetensors, which is not installed: run pip install 'attnlib[hf]'",
    "attnlib.hf from the shell": (
        "error: attnlib.hf needs safetensors, which is not installed: run pip install 'attnlib[hf]'"
    ),
    "a check in torch": (
        "a check with backend='torch' needs torch, which is not installed: run pip install 'attnlib[torch]'"
    ),
    "a report": 2,
}
REPORT = "error: python -m attnlib.checks report needs tqdm, which is not installed: run pip install 'attnlib[checks]'"


def test_without_any_extra_each_part_says_what_it_needs():
    command = [sys.executable, "-c", WITHOUT, *EXTRAS]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    assert json.loads(done.stdout) == NEEDED
    assert done.stderr.splitlines()[-1].endswith(REPORT)


@pytest.mark.parametrize(
    ("missing", "extra", "forget", "use"),
    [
        (
            "array_api_compat",
            "torch",
            "attnlib._torch_namespace",
            lambda: attnlib.dot(torch.ones(2, 3), torch.ones(2, 3)),
        ),
        ("array_api_compat", "torch", "", lambda: examine("softmax", attnlib.softmax, backend="torch")),
        ("tokenizers", "minilm", "", lambda: attnlib.minilm.load_minilm()),
        ("torch", "torch", "attnlib.torch", lambda: attnlib.minilm.load_minilm(backend="torch")),
        ("ml_dtypes", "hf", "", lambda: attnlib.hf.load("nowhere")),
        ("tokenizers", "hf", "", lambda: attnlib.hf.load("nowhere")),
        ("torch", "torch", "attnlib.torch", lambda: attnlib.hf.load("nowhere", backend="torch")),
    ],
    ids=[
        *("a tensor", "a check", "a tokenizer", "a model in torch"),
        *("bfloat16 for a checkpoint", "a tokenizer for a checkpoint", "a checkpoint in torch"),
    ],
)
def test_a_single_missing_library_is_named(monkeypatch, missing, extra, forget, use):
    monkeypatch.delattr(attnlib, forget.rpartition(".")[2], raising=False)  # "from attnlib import" looks here first
    monkeypatch.delitem(sys.modules, forget, raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ModuleNotFoundError) as caught:
        use()
    package = missing.replace("_", "-")
    assert f"needs {package}, which is not installed: run pip install 'attnlib[{extra}]'" in str(caught.value)


@pytest.mark.parametrize("name", ["torch.no_such_part", "json.no_such_part"])
def test_an_error_that_no_extra_would_mend_is_left_as_it_is(name):
    with pytest.raises(ModuleNotFoundError, match=f"^No module named '{name}'"), explain_missing("attnlib"):
        importlib.import_module(name)


def test_an_extra_installs_the_libraries_that_are_listed_for_it():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    for extra, packages in project["optional-dependencies"].items():
        assert [re.match("[a-z-]+", package)[0].replace("-", "_") for package in packages] == [*LIBRARIES[extra]]


def test_where_attnlib_is_just_a_folder_the_libraries_are_named(monkeypatch, capsys):
    """As in a clone on PYTHONPATH: pip would look for attnlib on PyPI and would not find it."""
    monkeypatch.setattr("importlib.metadata.distribution", not_installed)
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(ModuleNotFoundError, match=r"not installed: run pip install safetensors tokenizers ml-dtypes$"):
        attnlib.hf.load("nowhere")
    assert "in the folder of the course, or pip install torch array-api-compat, and restart" in left_out()
    error = ModuleNotFoundError("No module named 'cycler'", name="cycler")
    monkeypatch.setitem(sys.modules, "cycler", None)
    notebook._show_error(error, "", "<cell 1>")
    assert "To install what is missing, run pip install matplotlib cycler." in capsys.readouterr().out


def not_installed(name):
    raise PackageNotFoundError(name)
