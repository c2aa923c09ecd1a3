"""A type checker finds what is wrong in a caller's code, and accepts what is right."""

import re
from pathlib import Path

import pytest
from mypy import api

ROOT = Path(__file__).parents[2]
BEFORE = """\
from functools import partial
import jax.numpy
import numpy as np
import torch
import attnlib
import attnlib.numpy
import attnlib.torch

array, tensor, jax_array = np.ones((5, 4)), torch.ones(5, 4), jax.numpy.ones((5, 4))
sdpa = attnlib.scaled_dot_product_attention
layer = attnlib.torch.MultiHeadAttention(4, 2)
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
    "attnlib.dot(array, tensor)": 'type variable "ArrayT" of "dot"',
    "attnlib.attention(tensor, tensor, tensor, mask=array > 0)": 'type variable "ArrayT" of "attention"',
    "attnlib.apply_rope(tensor, *attnlib.rope_tables(array, 4))": 'type variable "ArrayT" of "apply_rope"',
    "name: str = attnlib.softmax(array)": 'variable has type "str"',
    "attnlib.softmax(tensor).weights": '"Tensor" has no attribute "weights"',
    "attnlib.causal_mask(5).cuda()": '"ndarray[tuple[Any, ...], dtype[Any]]" has no attribute "cuda"',
    "context, weights, more = attnlib.attention(array, array, array)": "Need more than 2 values to unpack",
    "out, lse = sdpa(tensor, tensor, tensor, return_weights=True, return_lse=True)": "Too many values to unpack",
    "sdpa(array, array, array, return_weights=True).shape": 'has no attribute "shape"',
    "sdpa(array, array, array, softcap='hard')": "No overload variant",
    "sdpa(array, array, tensor)": 'type variable "ArrayT" of function cannot be "object"',
    "attnlib.load_weights(tensor, layer)": 'type variable "ModuleT" of "load_weights"',
}
TENSOR, ARRAY, JAX = (
    "torch._tensor.Tensor",
    "numpy.ndarray[tuple[Any, ...], numpy.dtype[Any]]",
    "jax._src.basearray.Array",
)
TYPES = {
    "attnlib.softmax(array)": ARRAY,
    "attnlib.softmax(array.astype(np.float32))": ARRAY,
    "attnlib.softmax(tensor)": TENSOR,
    "attnlib.softmax(torch.nn.Parameter(tensor))": TENSOR,
    "attnlib.softmax(jax_array)": JAX,
    "attnlib.attention(tensor, tensor, tensor, score=attnlib.dot, mask=tensor > 0)": f"tuple[{TENSOR}, {TENSOR}]",
    "attnlib.attention(array, array, array, score=partial(attnlib.gaussian, bandwidth=2))": f"tuple[{ARRAY}, {ARRAY}]",
    "sdpa(array, array, array, is_causal=True, window=(2, 0))": ARRAY,
    "sdpa(tensor, tensor, tensor, scale=0.5)": TENSOR,
    "sdpa(tensor, tensor, tensor, return_weights=True)": f"tuple[{TENSOR}, {TENSOR}]",
    "sdpa(tensor, tensor, tensor, return_lse=True)": f"tuple[{TENSOR}, {TENSOR}]",
    "sdpa(array, array, array, return_weights=True, return_lse=True)": f"tuple[{ARRAY}, {ARRAY}, {ARRAY}]",
    "attnlib.causal_mask(5)": ARRAY,
    "attnlib.causal_mask(5, like=tensor)": TENSOR,
    "attnlib.padding_mask([2, 3], 3)": ARRAY,
    "attnlib.padding_mask(torch.tensor([2, 3]), 3)": TENSOR,
    "attnlib.rope_tables(range(5), 4)": f"tuple[{ARRAY}, {ARRAY}]",
    "attnlib.attention(tensor, tensor, tensor, mask=attnlib.combine_masks(tensor > 0, None))[1]": TENSOR,
    "attnlib.load_weights(layer, torch.nn.MultiheadAttention(4, 2))": "attnlib.torch.MultiHeadAttention",
}
RIGHT = [
    "from attnlib import checks, embeddings, masks, minilm, numpy, plotting, softmax, torch as layers",
    "attnlib.minilm.load_minilm, attnlib.plotting.heatmap, attnlib.checks.check, attnlib.embeddings.KeyedVectors",
]


@pytest.fixture(scope="module")
def said(tmp_path_factory) -> dict[str, str]:
    """What mypy says about each line; '' where it has nothing to say."""
    lines = [*BEFORE.splitlines(), *WRONG, *RIGHT, *(f"reveal_type({line})" for line in TYPES)]
    file = tmp_path_factory.mktemp("types") / "caller.py"
    file.write_text("\n".join(lines))
    # The cache is the one that `mypy` makes of the whole repository, which saves most of the time.
    options = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")]
    answer = api.run([*options, str(file)])[0]
    found = re.findall(rf"^{re.escape(str(file))}:(\d+): (?:error|note): (.*)$", answer, re.MULTILINE)
    assert found, answer
    return dict.fromkeys(lines, "") | {lines[int(number) - 1]: text for number, text in reversed(found)}


@pytest.mark.parametrize("line", WRONG)
def test_a_mistake_is_found(said, line):
    assert WRONG[line] in said[line]


@pytest.mark.parametrize("line", TYPES)
def test_what_comes_out_has_the_type_of_what_went_in(said, line):
    assert said[f"reveal_type({line})"] == f'Revealed type is "{TYPES[line]}"'


@pytest.mark.parametrize("line", [*BEFORE.splitlines(), *RIGHT])
def test_nothing_is_said_against_what_is_right(said, line):
    assert said[line] == ""
