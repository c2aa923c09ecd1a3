"""From the parameters of a checkpoint of transformers to those of a :class:`~attnlib.torch.CausalLM`."""

import json
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from attnlib._arrays import Array
from attnlib._causal_lm import CausalLMConfig
from attnlib._extras import explain_missing

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"

# Our names for theirs; the first pattern that matches counts. An empty name means that the tensor is not needed.
LLAMA_NAMES = {
    r"(?:model\.)?layers\.(\d+)\.self_attn\.o_proj\.": r"layers.\1.self_attn.out_proj.",
    r"(?:model\.)?layers\.(\d+)\.mlp\.": r"layers.\1.ff.",
    r"(?:model\.)?layers\.(\d+)\.input_layernorm\.": r"layers.\1.norm1.",
    r"(?:model\.)?layers\.(\d+)\.post_attention_layernorm\.": r"layers.\1.norm2.",
    r".*rotary_emb\.inv_freq$": "",
    r"model\.": "",
}
GEMMA_NAMES = {
    r"(?:model\.)?layers\.(\d+)\.post_attention_layernorm\.": r"layers.\1.post_norm1.",
    r"(?:model\.)?layers\.(\d+)\.pre_feedforward_layernorm\.": r"layers.\1.norm2.",
    r"(?:model\.)?layers\.(\d+)\.post_feedforward_layernorm\.": r"layers.\1.post_norm2.",
    **{theirs: ours for theirs, ours in LLAMA_NAMES.items() if "post_attention" not in theirs},
}
GPT2_NAMES = {
    r".*\.attn\.(?:masked_)?bias$": "",  # the causal mask, which some files contain
    r"(?:transformer\.)?wte\.": "embed_tokens.",
    r"(?:transformer\.)?wpe\.": "embed_positions.",
    r"(?:transformer\.)?ln_f\.": "norm.",
    r"(?:transformer\.)?h\.(\d+)\.ln_([12])\.": r"layers.\1.norm\2.",
    r"(?:transformer\.)?h\.(\d+)\.attn\.c_attn\.": r"layers.\1.self_attn.qkv.",
    r"(?:transformer\.)?h\.(\d+)\.attn\.c_proj\.": r"layers.\1.self_attn.out_proj.",
    r"(?:transformer\.)?h\.(\d+)\.mlp\.c_fc\.": r"layers.\1.ff.up_proj.",
    r"(?:transformer\.)?h\.(\d+)\.mlp\.c_proj\.": r"layers.\1.ff.down_proj.",
}
NAMES = {"gemma2": GEMMA_NAMES, "gpt2": GPT2_NAMES}


def read_weights(folder: Path, family: str, config: CausalLMConfig, framework: str) -> Iterator[tuple[str, Array]]:
    """Yield the parameters of a checkpoint under the names that a CausalLM gives them.

    Each file is mapped into memory, so that only the tensor at hand is read.

    Args:
        folder: where the ``.safetensors`` files are.
        family: the ``model_type`` of ``config.json``.
        config: the model's configuration.
        framework: ``"numpy"`` or ``"pt"``, the library of the arrays.

    Returns:
        An iterator of names and arrays.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: the index names a file outside the folder.
    """
    with explain_missing("attnlib.hf"):
        safe_open = import_module("safetensors").safe_open
        if framework == "numpy":
            import_module("ml_dtypes")  # gives NumPy the dtype bfloat16
    convert = CONVERSIONS.get(family, _unchanged)
    for path in _files(folder):
        with safe_open(path, framework) as file:
            for name in file.keys():  # noqa: SIM118 (it is not a mapping)
                ours = _renamed(name, NAMES.get(family, LLAMA_NAMES))
                if ours and not (ours == "lm_head.weight" and config.tied):
                    yield from convert(ours, file.get_tensor(name))


def _files(folder: Path) -> list[Path]:
    """Return the files that together contain all parameters."""
    index = folder / INDEX
    names = {WEIGHTS}
    if index.is_file():
        names = set(json.loads(index.read_text("utf-8"))["weight_map"].values())
    for name in names:
        if Path(name).name != name:
            raise ValueError(f"{index} names {name!r}, but only files in the same folder are read")
        if not (folder / name).is_file():
            raise FileNotFoundError(f"{folder} has no file {name}: weights are read from .safetensors files")
    return [folder / name for name in sorted(names)]


def _renamed(name: str, names: dict[str, str]) -> str:
    for theirs, ours in names.items():
        if found := re.match(theirs, name):
            return found.expand(ours) + name[found.end() :] if ours or theirs == r"model\." else ""
    return name


Conversion = Callable[[str, Any], Iterator[tuple[str, Any]]]


def _unchanged(name: str, x: Array) -> Iterator[tuple[str, Array]]:
    yield name, x


def _from_gemma(name: str, x: Array) -> Iterator[tuple[str, Array]]:
    """Yield a parameter; Gemma's norms multiply by 1 plus their weight."""
    yield name, x + 1 if "norm" in name else x


def _from_gpt2(name: str, x: Array) -> Iterator[tuple[str, Array]]:
    """Yield a parameter; GPT-2's projections are transposed, and those to queries, keys and values are one."""
    is_projection = name.startswith("layers.") and name.endswith("weight") and x.ndim == 2
    x = x.T if is_projection else x
    if ".qkv." not in name:
        yield name, x
        return
    width = x.shape[0] // 3
    for n, part in enumerate("qkv"):
        yield name.replace("qkv", f"{part}_proj"), x[n * width : (n + 1) * width]


CONVERSIONS: dict[str, Conversion] = {"gemma2": _from_gemma, "gpt2": _from_gpt2}
