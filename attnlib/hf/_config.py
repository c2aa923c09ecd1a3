"""From a ``config.json`` of transformers to the configuration of a :class:`~attnlib.torch.CausalLM`.

Every entry of the file is used, known to have no effect on what the model computes, or refused.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from attnlib._causal_lm import CausalLMConfig
from attnlib.positions import RopeScaling

Json = Mapping[str, Any]

ACTIVATIONS = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
}
# They describe the file, the training, the tokens that begin and end a text, or how other programs compute.
WITHOUT_EFFECT = {
    "_attn_implementation_autoset", "_name_or_path", "architectures", "attention_dropout", "attn_pdrop", "bos_token_id",
    "cache_implementation", "dtype", "embd_pdrop", "eos_token_id", "initializer_range", "max_position_embeddings",
    "model_type", "n_ctx", "pad_token_id", "pretraining_tp", "reorder_and_upcast_attn", "resid_pdrop",
    "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj",
    "task_specific_params", "torch_dtype", "transformers_version", "unk_token_id", "use_cache",
}  # fmt: skip
LLAMA_SIZES = {
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "num_key_value_heads",
    "head_dim", "hidden_act", "rms_norm_eps", "rope_theta", "rope_scaling", "rope_parameters", "tie_word_embeddings",
}  # fmt: skip
WINDOWS = {"sliding_window", "use_sliding_window", "max_window_layers", "layer_types"}
GPT2_SIZES = {
    "vocab_size", "n_embd", "n_layer", "n_head", "n_inner", "n_positions", "activation_function", "layer_norm_epsilon",
    "tie_word_embeddings",
}  # fmt: skip


def read_config(config: Json, ignore: Collection[str] = ()) -> CausalLMConfig:
    """Return the configuration of the model that a ``config.json`` describes.

    Args:
        config: what the file contains.
        ignore: entries to leave out of account, although this program does not know them.

    Returns:
        The configuration.

    Raises:
        ValueError: the family is not supported, an entry is missing, or an entry asks for something that
            :class:`~attnlib.torch.CausalLM` cannot compute.
    """
    family = config.get("model_type")
    if family not in FAMILIES:
        raise ValueError(f"model_type is {family!r}, but attnlib loads {', '.join(FAMILIES)}")
    translate, used, fixed = FAMILIES[family]
    for name, value in config.items():
        if name in ignore or name in used or name in WITHOUT_EFFECT:
            continue
        if name not in fixed:
            raise ValueError(
                f"config.json says {name} = {value!r}, which attnlib does not know for {family}. If it does not change "
                f"what the model computes, pass ignore=[{name!r}]"
            )
        if value not in fixed[name]:
            supported = " or ".join(map(repr, fixed[name]))
            raise ValueError(f"config.json says {name} = {value!r}, but attnlib supports only {supported}")
    try:
        return translate(config)
    except KeyError as error:
        raise ValueError(f"config.json has no entry {error}, which a model of type {family} needs") from None


def _llama(config: Json) -> CausalLMConfig:
    return CausalLMConfig(
        **_sizes(config), qkv_bias=config.get("attention_bias", False), out_bias=config.get("attention_bias", False),
        ff_bias=config.get("mlp_bias", False),
    )  # fmt: skip


def _mistral(config: Json) -> CausalLMConfig:
    window = config.get("sliding_window")
    return CausalLMConfig(**_sizes(config), windows=_windows(config, [window is not None] * _layers(config)))


def _qwen2(config: Json) -> CausalLMConfig:
    return CausalLMConfig(**_sizes(config), qkv_bias=True, windows=_windows(config, _qwen_layers(config)))


def _qwen3(config: Json) -> CausalLMConfig:
    bias = config.get("attention_bias", False)
    return CausalLMConfig(
        **_sizes(config), qk_norm=True, qkv_bias=bias, out_bias=bias, windows=_windows(config, _qwen_layers(config))
    )


def _gemma2(config: Json) -> CausalLMConfig:
    sizes = _sizes({**config, "hidden_act": config.get("hidden_activation") or "gelu_pytorch_tanh"}, tied=True)
    return CausalLMConfig(
        **sizes, post_norm=True, scale=config["query_pre_attn_scalar"] ** -0.5, embed_scale=config["hidden_size"] ** 0.5,
        attn_softcap=config.get("attn_logit_softcapping"), logit_softcap=config.get("final_logit_softcapping"),
        windows=_windows(config, [n % 2 == 0 for n in range(_layers(config))]),
    )  # fmt: skip


def _gpt2(config: Json) -> CausalLMConfig:
    E = config["n_embd"]
    return CausalLMConfig(
        vocab_size=config["vocab_size"], embed_dim=E, num_layers=config["n_layer"], num_heads=config["n_head"],
        ff_dim=config.get("n_inner") or 4 * E, norm="layer_norm", norm_eps=config.get("layer_norm_epsilon", 1e-5),
        activation=_activation(config.get("activation_function", "gelu_new")), gated=False, qkv_bias=True,
        out_bias=True, ff_bias=True, rope_base=None, max_positions=config["n_positions"],
        tied=config.get("tie_word_embeddings", True),
    )  # fmt: skip


def _sizes(config: Json, tied: bool = False) -> dict[str, Any]:
    """Return what all families after GPT-2 have in common."""
    base, scaling = _rope(config)
    heads = config["num_attention_heads"]
    return {
        "vocab_size": config["vocab_size"],
        "embed_dim": config["hidden_size"],
        "num_layers": _layers(config),
        "num_heads": heads,
        "ff_dim": config["intermediate_size"],
        "num_kv_heads": config.get("num_key_value_heads") or heads,
        "head_dim": config.get("head_dim") or config["hidden_size"] // heads,
        "norm_eps": config.get("rms_norm_eps", 1e-6),
        "activation": _activation(config.get("hidden_act", "silu")),
        "rope_base": base,
        "rope_scaling": scaling,
        "tied": config.get("tie_word_embeddings", tied),
    }


def _layers(config: Json) -> int:
    return int(config["num_hidden_layers"])


def _activation(name: str) -> str:
    if name not in ACTIVATIONS:
        raise ValueError(f"config.json says that the activation is {name!r}, but attnlib has {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]


def _rope(config: Json) -> tuple[float, RopeScaling | None]:
    """Return the base of the rotary positions and their scaling, as transformers 4 or 5 writes them."""
    scaling = {**(config.get("rope_scaling") or {}), **(config.get("rope_parameters") or {})}
    base = scaling.pop("rope_theta", config.get("rope_theta", 10000.0))
    kind = scaling.pop("rope_type", scaling.pop("type", "default"))
    scaling.pop("type", None)
    if kind == "default" and not scaling:
        return float(base), None
    names = {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}
    if kind != "llama3" or scaling.keys() != names:
        raise ValueError(
            f"config.json says that rope_type is {kind!r} with {scaling}, but attnlib supports 'default', and 'llama3' "
            f"with {', '.join(sorted(names))}"
        )
    length = scaling.pop("original_max_position_embeddings")
    return float(base), RopeScaling(**scaling, original_length=length)


def _qwen_layers(config: Json) -> list[bool]:
    """Tell of each layer whether it has a window, if the file does not list the layers."""
    first = config.get("max_window_layers", 28)
    return [bool(config.get("use_sliding_window", False)) and n >= first for n in range(_layers(config))]


def _windows(config: Json, default: list[bool]) -> tuple[int | None, ...] | None:
    """Return how many earlier positions each layer sees. transformers counts the query's own position, too."""
    kinds = config.get("layer_types")
    if kinds is not None:
        if unknown := set(kinds) - {"sliding_attention", "full_attention"}:
            raise ValueError(f"config.json has layers of type {', '.join(sorted(unknown))}, which attnlib does not have")
        default = [kind == "sliding_attention" for kind in kinds]
    if not any(default):
        return None
    return tuple(config["sliding_window"] - 1 if has_window else None for has_window in default)


Family = tuple[Callable[[Json], CausalLMConfig], set[str], dict[str, tuple[Any, ...]]]
NO_BIAS = {"attention_bias": (False,), "mlp_bias": (False,)}
# For each family: its translation, the entries that it uses, and those whose values have to be among the given ones.
FAMILIES: dict[str, Family] = {
    "llama": (_llama, LLAMA_SIZES | {"attention_bias", "mlp_bias"}, {}),
    "mistral": (_mistral, LLAMA_SIZES | WINDOWS, NO_BIAS),
    "qwen2": (_qwen2, LLAMA_SIZES | WINDOWS, NO_BIAS),
    "qwen3": (_qwen3, LLAMA_SIZES | WINDOWS | {"attention_bias"}, {}),
    "gemma2": (
        _gemma2,
        LLAMA_SIZES | WINDOWS | {
            "hidden_activation", "query_pre_attn_scalar", "attn_logit_softcapping", "final_logit_softcapping",
        },
        {**NO_BIAS, "use_bidirectional_attention": (None, False)},
    ),
    "gpt2": (
        _gpt2,
        GPT2_SIZES,
        {
            "scale_attn_weights": (True,), "scale_attn_by_inverse_layer_idx": (False,), "add_cross_attention": (False,),
        },
    ),
}  # fmt: skip
