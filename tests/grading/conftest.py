"""The tiny course as a fixture. It stands in a module of its own, since processes that grade have to import it."""

import shutil

import nbformat
import pytest
from tiny import REPOSITORY, TinyCourse, tiny_notebook


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyCourse:
    root = tmp_path_factory.mktemp("repository")
    shutil.copy(REPOSITORY / "nbgrader_config.py", root)
    (root / "solutions" / "tiny").mkdir(parents=True)
    nbformat.write(tiny_notebook(), root / "solutions" / "tiny" / "tiny.ipynb")
    return TinyCourse.at(root, tmp_path_factory.mktemp("class"))
