"""A planted fault never passes for attention: each of the mutants fails the short examination of conformance.py."""

import shutil
from pathlib import Path

import pytest
from examine_copy import examine_copy, fresh_processes
from mutants import MUTANTS

import attnlib

pytestmark = pytest.mark.slow

PACKAGE = Path(attnlib.__file__).parent


@pytest.fixture(scope="module")
def processes():
    with fresh_processes() as processes:
        yield processes


@pytest.fixture
def copy(tmp_path):
    """A copy of the package, to be spoiled."""
    ignore = shutil.ignore_patterns("checks", "data")
    return Path(shutil.copytree(PACKAGE, tmp_path / "attnlib", ignore=ignore))


@pytest.mark.parametrize("library", ["numpy", "torch", "array_api_strict"])
def test_the_library_conforms(processes, copy, library):
    assert processes.submit(examine_copy, copy, library).result() is None


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.file}-{mutant.what}")
def test_a_fault_is_noticed(processes, copy, mutant):
    source = (copy / mutant.file).read_text()
    assert source.count(mutant.old) == 1, "the library has changed: write the fault anew"
    (copy / mutant.file).write_text(source.replace(mutant.old, mutant.new))
    assert processes.submit(examine_copy, copy, mutant.library).result() is not None
