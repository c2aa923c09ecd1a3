"""A type checker finds what is wrong in a caller's code, and accepts what is right."""

import re
from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).parents[2]
BEFORE = """\
import numpy as np
import torch
from numpy.typing import NDArray
import attnlib
import attnlib.numpy
import attnlib.torch

array, tensor = np.ones((5, 4)), torch.ones(5, 4)
"""
WRONG = {
    "from attnlib import sofmax": 'Module "attnlib" has no attribute "sofmax"',
    "attnlib.sofmax(array)": 'Module has no attribute "sofmax"',
    "from attnlib import embeding": 'Module "attnlib" has no attribute "embeding"',
    "import attnlib.embedings": 'module named "attnlib.embedings"',
    "attnlib.plots.heatmap": 'Module has no attribute "plots"',
    "from attnlib.torch import MultiheadAttention": 'Module "attnlib.torch" has no attribute "MultiheadAttention"',
    "attnlib.numpy.MultiheadAttention(4, 2)": 'Module has no attribute "MultiheadAttention"',
    "attnlib.softmax(array, axes=0)": 'Unexpected keyword argument "axes" for "softmax"',
    "attnlib.torch.MultiHeadAttention(4, heads=2)": 'Unexpected keyword argument "heads" for "MultiHeadAttention"',
}
RIGHT = [
    "from attnlib import checks, embeddings, masks, minilm, numpy, plotting, softmax, torch as layers",
    "attnlib.minilm.load_minilm, attnlib.plotting.heatmap, attnlib.checks.check, attnlib.embeddings.KeyedVectors",
]


@pytest.fixture(scope="module")
def errors(tmp_path_factory) -> dict[str, str]:
    """What mypy says about each line that is wrong or right; '' where it finds nothing."""
    lines = [*BEFORE.splitlines(), *WRONG, *RIGHT]
    file = tmp_path_factory.mktemp("types") / "caller.py"
    file.write_text("\n".join(lines))
    # The cache is the one that `mypy` makes of the whole repository, which saves most of the time.
    options = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")]
    said = api.run([*options, str(file)])[0]
    found = re.findall(rf"^{re.escape(str(file))}:(\d+): error: (.*)$", said, re.MULTILINE)
    assert found, said
    return dict.fromkeys(lines, "") | {lines[int(number) - 1]: text for number, text in found}


@pytest.mark.parametrize("line", WRONG)
def test_a_mistake_is_found(errors, line):
    assert WRONG[line] in errors[line]


@pytest.mark.parametrize("line", [*BEFORE.splitlines(), *RIGHT])
def test_nothing_is_said_against_what_is_right(errors, line):
    assert errors[line] == ""
