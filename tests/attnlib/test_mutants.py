"""A planted fault never passes for attention: each of the mutants fails the short examination of conformance.py."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mutants import MUTANTS

import attnlib

HERE, PACKAGE = Path(__file__).parent, Path(attnlib.__file__).parent


@pytest.fixture
def copy(tmp_path):
    """A copy of the package, to be spoiled."""
    ignore = shutil.ignore_patterns("__pycache__", "checks", "data")
    return Path(shutil.copytree(PACKAGE, tmp_path / "attnlib", ignore=ignore))


def examined(package, library):
    """What the examination of this copy prints."""
    environment = os.environ | {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(HERE / "conformance.py"), library, str(package)]
    done = subprocess.run(command, env=environment, cwd=package.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("library", ["numpy", "torch", "array_api_strict"])
def test_the_library_conforms(copy, library):
    assert examined(copy, library) == "CONFORMS\n"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.file}-{mutant.what}")
def test_a_fault_is_noticed(copy, mutant):
    source = (copy / mutant.file).read_text()
    assert source.count(mutant.old) == 1, "the library has changed: write the fault anew"
    (copy / mutant.file).write_text(source.replace(mutant.old, mutant.new))
    assert examined(copy, mutant.library).startswith("DIFFERS")
