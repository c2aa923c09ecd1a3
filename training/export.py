"""The trained model as a folder in the layout of a Llama checkpoint, which attnlib.hf and transformers load."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer

from attnlib.torch import CausalLM, CausalLMConfig
from training.vocabulary import END

# The options that show in the entries of config.json below or in the names of the parameters. No others may be used.
WRITTEN = {
    "vocab_size",
    "embed_dim",
    "num_layers",
    "num_heads",
    "num_kv_heads",
    "head_dim",
    "ff_dim",
    "norm_eps",
    "rope_base",
}

# Our names for the parts of a layer, and transformers' names.
NAMES = {
    ".out_proj.": ".o_proj.",
    ".ff.": ".mlp.",
    ".norm1.": ".input_layernorm.",
    ".norm2.": ".post_attention_layernorm.",
}


def export(model: CausalLM, tokenizer: Tokenizer, folder: Path) -> None:
    """Write ``config.json``, ``tokenizer.json`` and, in float16, ``model.safetensors``.

    Raises:
        ValueError: the model has a variant that a Llama checkpoint cannot describe.
    """
    _check_layout(model.config)
    folder.mkdir(parents=True, exist_ok=True)
    end = tokenizer.token_to_id(END)
    (folder / "config.json").write_text(json.dumps(_settings(model.config, end), indent=2) + "\n", "utf-8")
    tokenizer.save(str(folder / "tokenizer.json"))
    state = {_renamed(name): x.detach().to(torch.float16).contiguous() for name, x in model.state_dict().items()}
    save_file(state, folder / "model.safetensors", {"format": "pt"})


def _check_layout(config: CausalLMConfig) -> None:
    """Raise ValueError unless the model is a Llama that differs from CausalLMConfig's defaults in its sizes alone."""
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.name not in WRITTEN and value != field.default:
            raise ValueError(
                f"the model has {field.name}={value!r}, but only {field.name}={field.default!r} can be exported: train "
                "a model without this option"
            )
    if config.rope_base is None:
        raise ValueError("the model has rope_base=None, but a Llama has rotary positions: train a model with rope_base")


def _settings(config: CausalLMConfig, end: int | None) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": config.vocab_size,
        "hidden_size": config.embed_dim,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.num_kv_heads,
        "head_dim": config.head_dim or config.embed_dim // config.num_heads,
        "intermediate_size": config.ff_dim,
        "hidden_act": config.activation,
        "rms_norm_eps": config.norm_eps,
        "rope_theta": config.rope_base,
        "max_position_embeddings": 512,
        "tie_word_embeddings": config.tied,
        "bos_token_id": end,
        "eos_token_id": end,
        "torch_dtype": "float16",
    }


def _renamed(name: str) -> str:
    for ours, theirs in NAMES.items():
        name = name.replace(ours, theirs)
    return f"model.{name}"
