"""From the parameters of a checkpoint of transformers to those of a :class:`~attnlib.torch.CausalLM`."""

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

from attnlib._arrays import Array
from attnlib._causal_lm import CausalLMConfig
from attnlib.hf._files import weight_files

Parameters = Iterator[tuple[str, Array]]

# Our names for theirs, without PREFIX: a pattern matches the beginning of a name, and what follows it is kept. None
# means that the tensor is not needed.
PREFIX = re.compile(r"(?:model|transformer)\.")
LLAMA_NAMES: dict[str, str | None] = {
    r"layers\.(\d+)\.self_attn\.o_proj\.": r"layers.\1.self_attn.out_proj.",
    r"layers\.(\d+)\.mlp\.": r"layers.\1.ff.",
    r"layers\.(\d+)\.input_layernorm\.": r"layers.\1.norm1.",
    r"layers\.(\d+)\.post_attention_layernorm\.": r"layers.\1.norm2.",
    r".*rotary_emb\.inv_freq$": None,
}
GEMMA_NAMES = LLAMA_NAMES | {
    r"layers\.(\d+)\.post_attention_layernorm\.": r"layers.\1.post_norm1.",
    r"layers\.(\d+)\.pre_feedforward_layernorm\.": r"layers.\1.norm2.",
    r"layers\.(\d+)\.post_feedforward_layernorm\.": r"layers.\1.post_norm2.",
}
GPT2_NAMES: dict[str, str | None] = {
    r".*\.attn\.(?:masked_)?bias$": None,  # the causal mask, which some files contain
    r"wte\.": "embed_tokens.",
    r"wpe\.": "embed_positions.",
    r"ln_f\.": "norm.",
    r"h\.(\d+)\.ln_([12])\.": r"layers.\1.norm\2.",
    r"h\.(\d+)\.attn\.c_attn\.": r"layers.\1.self_attn.qkv.",
    r"h\.(\d+)\.attn\.c_proj\.": r"layers.\1.self_attn.out_proj.",
    r"h\.(\d+)\.mlp\.c_fc\.": r"layers.\1.ff.up_proj.",
    r"h\.(\d+)\.mlp\.c_proj\.": r"layers.\1.ff.down_proj.",
}
NAMES: dict[str, dict[str, str | None]] = {"gemma2": GEMMA_NAMES, "gpt2": GPT2_NAMES}


def read_weights(folder: Path, family: str, config: CausalLMConfig, framework: str) -> Parameters:
    """Yield the parameters of a checkpoint under the names that a CausalLM gives them.

    Each file is mapped into memory, and each tensor is read once, when its turn comes.

    Args:
        folder: where the ``.safetensors`` files are.
        family: the ``model_type`` of ``config.json``.
        config: the model's configuration.
        framework: ``"numpy"`` or ``"pt"``, the library of the arrays.

    Returns:
        An iterator of names and arrays.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: the index names a file outside the folder, a file is not in the format of safetensors, or a
            parameter occurs twice.
    """
    if framework == "numpy":
        import_module("ml_dtypes")  # gives NumPy the dtype bfloat16
    names, convert = NAMES.get(family, LLAMA_NAMES), CONVERSIONS.get(family, _unchanged)
    found: dict[str, str] = {}  # in which file each parameter is
    for path in weight_files(folder):
        for theirs, tensor in _tensors(path, framework):
            ours = _renamed(theirs, names)
            if ours is None or (ours == "lm_head.weight" and config.tied):
                continue
            if ours in found:
                raise ValueError(f"{ours} is in {found[ours]} and again in {path.name}: only one of them can be right")
            found[ours] = path.name
            yield from convert(ours, tensor())


def _tensors(path: Path, framework: str) -> Iterator[tuple[str, Callable[[], Array]]]:
    """Yield the name of each tensor in a file, and a function that reads it."""
    library = import_module("safetensors")
    try:
        with library.safe_open(path, framework) as file:
            for name in file.keys():  # noqa: SIM118 (it is not a mapping)
                yield name, lambda name=name: file.get_tensor(name)  # type: ignore[misc]
    except library.SafetensorError as error:
        raise ValueError(f"{path} cannot be read, perhaps because a download broke off: {error}") from None


def _renamed(name: str, names: dict[str, str | None]) -> str | None:
    """Return our name for a tensor, or None if it is not needed."""
    name = PREFIX.sub("", name, count=1) if PREFIX.match(name) else name
    for theirs, ours in names.items():
        if found := re.match(theirs, name):
            return None if ours is None else found.expand(ours) + name[found.end() :]
    return name


def _unchanged(name: str, x: Array) -> Parameters:
    yield name, x


def _from_gpt2(name: str, x: Array) -> Parameters:
    """Yield a parameter. GPT-2's projections are transposed, and one contains those to queries, keys and values."""
    is_projection = name.startswith("layers.") and x.ndim == 2
    x = x.T if is_projection else x
    if ".qkv." not in name:
        yield name, x
        return
    width = x.shape[0] // 3
    for part, rows in (("q", x[:width]), ("k", x[width : 2 * width]), ("v", x[2 * width :])):
        yield name.replace("qkv", f"{part}_proj"), rows


CONVERSIONS: dict[str, Callable[[str, Array], Parameters]] = {"gpt2": _from_gpt2}
