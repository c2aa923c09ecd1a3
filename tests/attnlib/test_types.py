"""A type checker finds what is wrong in a caller's code, and accepts what is right."""

import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # mypy

ROOT = Path(__file__).parents[2]
BEFORE = """\
from functools import partial
import numpy as np
import torch
import attnlib
import attnlib.hf
import attnlib.minilm
import attnlib.numpy
import attnlib.torch
import attnlib.triton

array, tensor = np.ones((5, 4)), torch.ones(5, 4)
sdpa = attnlib.scaled_dot_product_attention
layer, arrays = attnlib.torch.MultiHeadAttention(4, 2), attnlib.numpy.MultiHeadAttention(4, 2)
encoder, decoder = attnlib.torch.Encoder(4, 2, 8, 3), attnlib.numpy.Decoder(4, 2, 8, 3)
config = attnlib.torch.CausalLMConfig(vocab_size=7, embed_dim=4, num_layers=3, num_heads=2, ff_dim=8)
model, tokens, caches = attnlib.torch.CausalLM(config), tensor.long(), [attnlib.torch.StaticCache(5) for _ in range(3)]
cache, switch = attnlib.torch.KVCache(), bool(tensor.sum())
"""
WITH_JAX = ["import jax.numpy", "jax_array = jax.numpy.ones((5, 4))"]
# Let mypy read only the parts of JAX that declare its array class, because reading the rest takes 15 seconds.
ARRAYS_OF_JAX = """
[[tool.mypy.overrides]]
module = "jax.*"
follow_imports = "skip"
[[tool.mypy.overrides]]
module = ["jax", "jax.numpy", "jax._src", "jax._src.typing", "jax._src.basearray"]
follow_imports = "normal"
"""
MIXED = {  # NumPy's arrays and torch's tensors in one call
    "attnlib.dot(array, tensor)": 'type variable "ArrayT" of "dot"',
    "attnlib.attention(tensor, tensor, tensor, mask=array > 0)": 'type variable "ArrayT" of "attention"',
    "attnlib.apply_rope(tensor, *attnlib.rope_tables(array, 4))": 'type variable "ArrayT" of "apply_rope"',
    "sdpa(array, array, tensor)": 'type variable "ArrayT" of function cannot be "object"',
    "attnlib.encode(attnlib.rnn_cell, array, array, tensor)": 'type variable "ArrayT" of "encode"',
    "cache.append(array, tensor)": 'type variable "ArrayT" of "append"',
    "layer(array)": "No overload variant",
    "layer(tensor, attn_mask=array > 0)": "No overload variant",
    "decoder(array, tensor)": "No overload variant",
}
WRONG = MIXED | {
    "from attnlib import sofmax": 'Module "attnlib" has no attribute "sofmax"',
    "attnlib.sofmax(array)": 'Module has no attribute "sofmax"',
    "from attnlib import embeding": 'Module "attnlib" has no attribute "embeding"',
    "import attnlib.embedings": 'module named "attnlib.embedings"',
    "attnlib.plots.heatmap": 'Module has no attribute "plots"',
    "from attnlib.torch import MultiheadAttention": 'Module "attnlib.torch" has no attribute "MultiheadAttention"',
    "attnlib.numpy.MultiheadAttention(4, 2)": 'Module has no attribute "MultiheadAttention"',
    "attnlib.softmax(array, axes=0)": 'Unexpected keyword argument "axes" for "softmax"',
    "attnlib.torch.MultiHeadAttention(4, heads=2)": 'Unexpected keyword argument "heads" for "MultiHeadAttention"',
    "name: str = attnlib.softmax(array)": 'variable has type "str"',
    "result: str = sdpa(tensor, tensor, tensor)": 'variable has type "str"',
    "other: np.ndarray = sdpa(tensor, tensor, tensor)": 'Argument 1 has incompatible type "Tensor"',
    "attnlib.softmax(tensor).weights": '"Tensor" has no attribute "weights"',
    "attnlib.causal_mask(5).cuda()": '"ndarray[tuple[Any, ...], dtype[Any]]" has no attribute "cuda"',
    "context, weights, more = attnlib.attention(array, array, array)": "Need more than 2 values to unpack",
    "out, lse = sdpa(tensor, tensor, tensor, return_weights=True, return_lse=True)": "Too many values to unpack",
    "sdpa(array, array, array, return_weights=True).shape": 'has no attribute "shape"',
    "sdpa(array, array, array, softcap='hard')": "No overload variant",
    "attnlib.dot(array, jax_array)": 'type variable "ArrayT" of "dot"',
    "layer(tensor, is_casual=True)": 'Unexpected keyword argument "is_casual"',
    "layer(tensor).weights": '"Tensor" has no attribute "weights"',
    "layer(tensor) + 'a'": "Unsupported operand types",
    "out, weights, more = layer(tensor, need_weights=True)": "Need more than 2 values to unpack",
    "arrays(array, need_weights=True).shape": 'has no attribute "shape"',
    "attnlib.attention(tensor, tensor, tensor, score=attnlib.softmax)": 'Argument "score" to "attention"',
    "attnlib.attention(array, array, array, score=lambda q, k: 'high')": 'Argument "score" to "attention"',
    "attnlib.encode(lambda x, h: 'state', array, array)": 'Argument 1 to "encode"',
    "attnlib.rope_tables(['first', 'second'], 4)": 'expected "SupportsFloat | Sequence[SupportsFloat]"',
    "attnlib.torch.MultiHeadAttention(4, 2, attn_bias=tensor)": 'Argument "attn_bias" to "MultiHeadAttention"',
    "attnlib.torch.Encoder(4, 2, 8, 3, widow=(2, 0))": 'Unexpected keyword argument "widow" for "Encoder"',
    "attnlib.numpy.DecoderBlock(4, 2, 8, window=2)": 'Argument "window" to "DecoderBlock"',
    "cache.reorder([0, 0])": 'Argument 1 to "reorder" of "KVCache"',
    "attnlib.torch.StaticCache(5).reorder('first')": 'Argument 1 to "reorder" of "StaticCache"',
    "attnlib.load_weights(layer, 'weights.pt')": 'Argument 2 to "load_weights"',
    "arrays.load_state_dict({'q_proj.weight': 'none'})": "Dict entry 0 has incompatible type",
    "attnlib.triton.scaled_dot_product_attention(array, array, array)": "No overload variant",
    "attnlib.minilm.load_minilm(device='cuda')": "No overload variant",
    "attnlib.swiglu(array, tensor)": 'type variable "ArrayT" of "swiglu"',
    "attnlib.torch.CausalLMConfig(vocab_size=7, heads=2)": 'Unexpected keyword argument "heads" for "CausalLMConfig"',
    "model(tokens, logits_to_keep='all')": "No overload variant",
    "model(tokens, positions=array)": "No overload variant",
    "attnlib.generate(layer, [1], max_new_tokens=2)": 'Argument 1 to "generate" has incompatible type',
    "attnlib.generate(model, 'The dog', max_new_tokens=2)": 'Argument 2 to "generate" has incompatible type "str"',
    "attnlib.hf.load('folder', device='cuda')": "No overload variant",
    "attnlib.hf.load('folder').generate('The', max_new_tokens=2, top=3)": 'Unexpected keyword argument "top"',
    "attnlib.load_weights(tensor, layer)": 'type variable "ModuleT" of "load_weights"',
    # the number of results is not known
    "sdpa(tensor, tensor, tensor, return_weights=switch).softmax(-1)": 'of "Tensor | tuple[Tensor, Tensor]" has no',
    "sdpa(array, array, array, return_lse=switch) + 1": 'No overload variant of "__add__" of "tuple"',
    "sdpa(tensor, tensor, tensor, return_weights=switch, return_lse=switch).mean()": 'has no attribute "mean"',
    "layer(tensor, need_weights=switch).softmax(-1)": 'of "Tensor | tuple[Tensor, Tensor]" has no',
    "encoder(tensor, need_weights=switch).mean()": 'of "Tensor | tuple[Tensor, list[Tensor]]" has no',
    "text: str = decoder(array, array, need_weights=switch)": 'variable has type "str"',
    "attnlib.torch.TransformerBlock(4, 2, 8)(tensor, need_weights=switch).mean()": "tuple[Tensor, Tensor]",
    "attnlib.torch.DecoderBlock(4, 2, 8)(tensor, tensor, need_weights=switch).mean()": "tuple[Tensor, DecoderWeights[",
    "attnlib.torch.BertEncoder(9, 4, 2, 8, 3)(tensor, need_weights=switch).mean()": "tuple[Tensor, list[Tensor]]",
    "attnlib.triton.scaled_dot_product_attention(tensor, tensor, tensor, return_lse=switch).mean()": 'Item "tuple[',
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
    "attnlib.encode(attnlib.rnn_cell, tensor, tensor, lengths=[2, 3])": f"tuple[{TENSOR}, {TENSOR}]",
    "layer(tensor, is_causal=True, cache=cache)": TENSOR,
    "layer.forward(tensor)": TENSOR,
    "layer(tensor, need_weights=True)": f"tuple[{TENSOR}, {TENSOR}]",
    "layer(tensor, need_weights=switch)": f"{TENSOR} | tuple[{TENSOR}, {TENSOR}]",
    "encoder(tensor, need_weights=switch)": f"{TENSOR} | tuple[{TENSOR}, list[{TENSOR}]]",
    "sdpa(tensor, tensor, tensor, return_weights=switch)": f"{TENSOR} | tuple[{TENSOR}, {TENSOR}]",
    "sdpa(array, array, array, return_lse=switch)": f"{ARRAY} | tuple[{ARRAY}, {ARRAY}]",
    "sdpa(array, array, array, return_weights=switch, return_lse=True)": (
        f"{ARRAY} | tuple[{ARRAY}, {ARRAY}] | tuple[{ARRAY}, {ARRAY}, {ARRAY}]"
    ),
    "attnlib.triton.scaled_dot_product_attention(tensor, tensor, tensor, return_lse=switch)": (
        f"{TENSOR} | tuple[{TENSOR}, {TENSOR}]"
    ),
    "arrays(array)": ARRAY,
    "attnlib.torch.TransformerBlock(4, 2, 8)(tensor, need_weights=True)": f"tuple[{TENSOR}, {TENSOR}]",
    "encoder(tensor, cache=[attnlib.torch.StaticCache(5) for _ in range(3)])": TENSOR,
    "encoder(tensor, need_weights=True)": f"tuple[{TENSOR}, list[{TENSOR}]]",
    "decoder(array, array, memory_mask=array > 0)": ARRAY,
    "decoder(array, array, need_weights=True)[1][0].cross_attn": ARRAY,
    "attnlib.torch.DecoderBlock(4, 2, 8)(tensor, tensor, need_weights=True)[1].self_attn": TENSOR,
    "attnlib.torch.LearnedPositions(5, 4)(tensor)": TENSOR,
    "attnlib.torch.BertEncoder(9, 4, 2, 8, 3)(tensor.long())": TENSOR,
    "attnlib.rms_norm(tensor, tensor[0])": TENSOR,
    "attnlib.sampling_probabilities(jax_array, top_k=3)": JAX,
    "model(tokens, cache=caches, logits_to_keep=1)": TENSOR,
    "model(tokens, need_weights=True)": f"tuple[{TENSOR}, list[{TENSOR}]]",
    "model(tokens, need_weights=switch)": f"{TENSOR} | tuple[{TENSOR}, list[{TENSOR}]]",
    "next(attnlib.generate(model, tensor, max_new_tokens=2)).token": "int",
    "next(attnlib.generate_speculatively(model, model, [1], max_new_tokens=2)).drafted": "bool",
    "attnlib.hf.load('folder').model(array)": ARRAY,
    "attnlib.hf.load('folder', backend='torch', dtype=torch.bfloat16).model(tokens)": TENSOR,
    "list(attnlib.hf.load('folder').generate('The', max_new_tokens=2, top_k=3))": "list[str]",
    "attnlib.numpy.Linear(4, 2)(array)": ARRAY.replace("dtype[Any]", "dtype[numpy.floating[Any]]"),
    "attnlib.triton.scaled_dot_product_attention(tensor, tensor, tensor, return_lse=True)[1]": TENSOR,
    "attnlib.minilm.load_minilm().encode(['a dog'])": ARRAY,
    "attnlib.minilm.load_minilm(backend='torch', device=0).attention_weights('a dog')[1]": TENSOR,
    "attnlib.minilm.load_minilm(backend=str(switch)).encode(['a dog'])": f"{ARRAY} | {TENSOR}",
    "cache.append(array, array)": f"tuple[{ARRAY}, {ARRAY}]",
}
PUBLIC = ("attnlib", "attnlib.numpy", "attnlib.torch", "attnlib.triton")
UNTYPED = {"attnlib.numpy.Module.forward"}  # each layer has its own
RIGHT = [
    "from attnlib import checks, embeddings, masks, minilm, numpy, plotting, softmax, torch as layers",
    "attnlib.minilm.load_minilm, attnlib.plotting.heatmap, attnlib.checks.check, attnlib.embeddings.KeyedVectors",
]


def public_callables() -> list[str]:
    """Return the names of all functions and classes that attnlib exports, and of their methods."""
    found = []
    for module in PUBLIC:
        for name in import_module(module).__all__:
            x = getattr(import_module(module), name)
            if callable(x):
                found.append(f"{module}.{name}")
            if inspect.isclass(x):
                ours = [c for c in x.__mro__ if c.__module__.startswith("attnlib.")]
                methods = {n for c in ours for n, part in vars(c).items() if n[0] != "_" and inspect.isfunction(part)}
                found += [f"{module}.{name}.{method}" for method in sorted(methods)]
    return found


def what_mypy_says(folder: Path, lines: list[str], settings: str = "") -> dict[str, str]:
    """Return mypy's first message about each line of a program, or '' if there is none."""
    file, config = folder / "caller.py", folder / "mypy.toml"
    file.write_text("\n".join(lines))
    config.write_text((ROOT / "pyproject.toml").read_text() + settings)
    # Sharing the cache that `mypy` makes of the whole repository saves most of the time. A message that comes
    # from it names the folder of an earlier run.
    options = ["--config-file", str(config), "--cache-dir", str(ROOT / ".mypy_cache")]
    # In a process of its own, because mypy would look for attnlib in every folder that pytest has put on sys.path.
    mypy = [sys.executable, "-m", "mypy", *options, str(file)]
    answer = subprocess.run(mypy, capture_output=True, text=True, timeout=600, check=False).stdout
    found = re.findall(r"^.*\bcaller\.py:(\d+): (?:error|note): (.*)$", answer, re.MULTILINE)
    assert found, answer
    return dict.fromkeys(lines, "") | {lines[int(number) - 1]: text for number, text in reversed(found)}


def test_a_type_checker_finds_the_mistakes_and_knows_every_type(tmp_path):  # one test, because mypy runs once
    types = {f"reveal_type({line})": f'Revealed type is "{found}"' for line, found in TYPES.items()}
    right = [*BEFORE.splitlines(), *WITH_JAX, *RIGHT]
    public = {name: f"reveal_type({name})" for name in public_callables()}
    said = what_mypy_says(tmp_path, [*right, *WRONG, *types, *public.values()], ARRAYS_OF_JAX)
    assert {line: said[line] for line in WRONG if WRONG[line] not in said[line]} == {}
    assert {line: said[line] for line in types} == types
    assert [said[line] for line in right] == [""] * len(right)
    assert {name for name, line in public.items() if not said[line].startswith("Revealed type")} == set()
    assert {name for name, line in public.items() if re.search(r"-> Any\b", said[line])} == UNTYPED


def test_a_type_checker_finds_mixed_libraries_where_jax_is_not_installed(tmp_path):
    skipped = '\n[[tool.mypy.overrides]]\nmodule = "jax.*"\nfollow_imports = "skip"\nignore_missing_imports = true\n'
    right = [*BEFORE.splitlines(), *RIGHT]
    said = what_mypy_says(tmp_path, [*WITH_JAX, "reveal_type(jax_array)", *right, *MIXED], skipped)
    assert said["reveal_type(jax_array)"] == 'Revealed type is "Any"'  # mypy does not see JAX
    assert {line: said[line] for line in MIXED if MIXED[line] not in said[line]} == {}
    assert [said[line] for line in right] == [""] * len(right)
