"""A type checker finds what is wrong in a caller's code, and accepts what is right."""

import re
from pathlib import Path

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


def what_mypy_says(folder: Path, lines: list[str]) -> dict[str, str]:
    """Return mypy's first message about each line of a program, or '' if there is none."""
    file = folder / "caller.py"
    file.write_text("\n".join(lines))
    # Sharing the cache that `mypy` makes of the whole repository saves most of the time. A message that comes
    # from it names the folder of an earlier run.
    options = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(ROOT / ".mypy_cache")]
    answer = api.run([*options, str(file)])[0]
    found = re.findall(r"^.*\bcaller\.py:(\d+): (?:error|note): (.*)$", answer, re.MULTILINE)
    assert found, answer
    return dict.fromkeys(lines, "") | {lines[int(number) - 1]: text for number, text in reversed(found)}


def test_a_type_checker_finds_the_mistakes_and_knows_every_type(tmp_path):  # one test, because mypy runs once
    types = {f"reveal_type({line})": f'Revealed type is "{found}"' for line, found in TYPES.items()}
    right = [*BEFORE.splitlines(), *RIGHT]
    said = what_mypy_says(tmp_path, [*right, *WRONG, *types])
    assert {line: said[line] for line in WRONG if WRONG[line] not in said[line]} == {}
    assert {line: said[line] for line in types} == types
    assert [said[line] for line in right] == [""] * len(right)
