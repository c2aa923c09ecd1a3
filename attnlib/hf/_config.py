"""From a ``config.json`` of transformers to the configuration of a :class:`~attnlib.torch.CausalLM`.

Every entry of the file is used, known to have no effect on what the model computes, or refused.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from attnlib._arrays import check_float, check_int
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
# These entries describe the file, the training, the tokens that begin and end a text, or how other programs compute.
WITHOUT_EFFECT = {
    "_attn_implementation_autoset", "_name_or_path", "_num_labels", "architectures", "attention_dropout", "attn_pdrop",
    "bos_token_id", "cache_implementation", "chunk_size_feed_forward", "dtype", "embd_pdrop", "eos_token_id",
    "id2label", "initializer_range", "is_llama_config", "label2id", "max_position_embeddings", "model_type", "n_ctx",
    "n_special", "output_attentions", "output_hidden_states", "output_past", "pad_token_id", "predict_special_tokens",
    "pretraining_tp", "problem_type", "reorder_and_upcast_attn", "resid_pdrop", "return_dict", "summary_activation",
    "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj", "task_specific_params",
    "torch_dtype", "transformers.js_config", "transformers_version", "unk_token_id", "use_cache",
}  # fmt: skip
# What transformers assumes for an entry that is missing, where this depends on the family.
DEFAULTS: dict[str, dict[str, Any]] = {
    "mistral": {"num_key_value_heads": 8, "sliding_window": 4096},
    "qwen2": {"num_key_value_heads": 32},
    "qwen3": {"num_key_value_heads": 32, "head_dim": 128},
    "gemma2": {
        "num_key_value_heads": 4, "head_dim": 256, "query_pre_attn_scalar": 256, "sliding_window": 4096,
        "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "tie_word_embeddings": True,
    },
    "gpt2": {"n_positions": 1024, "tie_word_embeddings": True},
}  # fmt: skip
LLAMA_SIZES = {
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "num_key_value_heads",
    "head_dim", "hidden_act", "rms_norm_eps", "rope_theta", "rope_scaling", "rope_parameters", "tie_word_embeddings",
}  # fmt: skip
WINDOW = "sliding_attention"  # what layer_types calls a layer with a window
WINDOWS = {"sliding_window", "use_sliding_window", "max_window_layers", "layer_types"}
GPT2_SIZES = {
    "vocab_size", "n_embd", "n_layer", "n_head", "n_inner", "n_positions", "activation_function", "layer_norm_epsilon",
    "tie_word_embeddings",
}  # fmt: skip


def read_config(config: Json, ignore: Collection[str] = ()) -> CausalLMConfig:
    """Return the configuration of the model that a ``config.json`` describes.

    Args:
        config: what the file contains.
        ignore: entries that attnlib does not know, but that do not change what the model computes.

    Returns:
        The configuration.

    Raises:
        TypeError: an entry is not a number.
        ValueError: the family is not supported, an entry is missing or out of range, or an entry asks for something
            that :class:`~attnlib.torch.CausalLM` cannot compute.
    """
    family = config.get("model_type")
    if not isinstance(family, str) or family not in FAMILIES:
        raise ValueError(f"model_type is {family!r}, but attnlib loads only {', '.join(FAMILIES)}")
    translate, used, fixed = FAMILIES[family]
    for name, value in config.items():
        if name not in used | WITHOUT_EFFECT | set(ignore):
            _check_fixed(family, name, value, fixed)
    try:
        return translate({**DEFAULTS.get(family, {}), **config})
    except KeyError as error:
        raise ValueError(f"config.json has no entry {error}, which a model of type {family} needs") from None


def _check_fixed(family: str, name: str, value: Any, fixed: dict[str, tuple[Any, ...]]) -> None:
    """Raise ValueError unless an entry has a value that CausalLM computes without being told."""
    if name not in fixed:
        raise ValueError(
            f"config.json says {name} = {value!r}, which attnlib does not know for {family}. If it does not change "
            f"what the model computes, pass ignore=[{name!r}]"
        )
    if value not in fixed[name]:
        supported = " or ".join(map(repr, fixed[name]))
        raise ValueError(f"config.json says {name} = {value!r}, but attnlib supports only {supported}")


def _llama(config: Json) -> CausalLMConfig:
    bias = config.get("attention_bias", False)
    return CausalLMConfig(**_sizes(config), qkv_bias=bias, out_bias=bias, ff_bias=config.get("mlp_bias", False))


def _mistral(config: Json) -> CausalLMConfig:
    has_window = config["sliding_window"] is not None
    return CausalLMConfig(**_sizes(config), windows=_windows(config, lambda n: has_window))


def _qwen2(config: Json) -> CausalLMConfig:
    return CausalLMConfig(**_sizes(config), qkv_bias=True, windows=_windows(config, _has_window_in_qwen(config)))


def _qwen3(config: Json) -> CausalLMConfig:
    bias, windows = config.get("attention_bias", False), _windows(config, _has_window_in_qwen(config))
    return CausalLMConfig(**_sizes(config), qk_norm=True, qkv_bias=bias, out_bias=bias, windows=windows)


def _gemma2(config: Json) -> CausalLMConfig:
    sizes = _sizes({**config, "hidden_act": config.get("hidden_activation") or "gelu_pytorch_tanh"})
    return CausalLMConfig(
        **sizes, norm="offset_rms_norm", post_norm=True, scale=_whole(config, "query_pre_attn_scalar") ** -0.5,
        embed_scale=sizes["embed_dim"] ** 0.5, attn_softcap=config["attn_logit_softcapping"],
        logit_softcap=config["final_logit_softcapping"], windows=_windows(config, lambda n: n % 2 == 0),
    )  # fmt: skip


def _gpt2(config: Json) -> CausalLMConfig:
    E = _whole(config, "n_embd")
    return CausalLMConfig(
        vocab_size=_whole(config, "vocab_size"), embed_dim=E, num_layers=_whole(config, "n_layer"),
        num_heads=_whole(config, "n_head"), ff_dim=_whole(config, "n_inner", 4 * E), norm="layer_norm",
        norm_eps=config.get("layer_norm_epsilon", 1e-5), gated=False,
        activation=_activation(config.get("activation_function", "gelu_new")), qkv_bias=True, out_bias=True,
        ff_bias=True, rope_base=None, max_positions=_whole(config, "n_positions"), tied=config["tie_word_embeddings"],
    )  # fmt: skip


def _sizes(config: Json) -> dict[str, Any]:
    """Return what all families after GPT-2 have in common."""
    base, scaling = _rope(config)
    E, heads = _whole(config, "hidden_size"), _whole(config, "num_attention_heads")
    return {
        "vocab_size": _whole(config, "vocab_size"),
        "embed_dim": E,
        "num_layers": _whole(config, "num_hidden_layers"),
        "num_heads": heads,
        "ff_dim": _whole(config, "intermediate_size"),
        "num_kv_heads": _whole(config, "num_key_value_heads", heads),
        "head_dim": _whole(config, "head_dim", E // heads),
        "norm_eps": config.get("rms_norm_eps", 1e-6),
        "activation": _activation(config.get("hidden_act", "silu")),
        "rope_base": base,
        "rope_scaling": scaling,
        "tied": config.get("tie_word_embeddings", False),
    }


def _whole(config: Json, name: str, default: int | None = None) -> int:
    """Return an entry that is a size; ``default`` is what null and, for some entries, a missing one mean."""
    value: Any = config[name] if default is None else config.get(name)
    return check_int(f"{name} in config.json", default if value is None and default is not None else value, 1)


def _activation(name: str) -> str:
    if name not in ACTIVATIONS:
        raise ValueError(f"config.json says that the activation is {name!r}, but attnlib has {', '.join(ACTIVATIONS)}")
    return ACTIVATIONS[name]


def _rope(config: Json) -> tuple[float, RopeScaling | None]:
    """Return the base of the rotary positions and their scaling, as transformers 4 or 5 writes them."""
    scaling = {"rope_theta": config.get("rope_theta", 10000.0), "rope_type": "default"}
    for name in ("rope_scaling", "rope_parameters"):
        found = config.get(name) or {}
        if not isinstance(found, dict):
            raise TypeError(f"{name} in config.json is {found!r}, but names and values, {{...}}, are needed")
        scaling |= {("rope_type" if key == "type" else key): value for key, value in found.items()}
    base, kind = check_float("rope_theta in config.json", scaling.pop("rope_theta")), scaling.pop("rope_type")
    if kind == "default" and not scaling:
        return base, None
    names = {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}
    if kind != "llama3" or scaling.keys() != names:
        raise ValueError(
            f"config.json says that rope_type is {kind!r} with {scaling}, but attnlib supports 'default', and 'llama3' "
            f"with {', '.join(sorted(names))}"
        )
    return base, RopeScaling(original_length=scaling.pop("original_max_position_embeddings"), **scaling)


def _has_window_in_qwen(config: Json) -> Callable[[int], bool]:
    """Return a function that says whether a layer has a window, for files that do not list the layers."""
    first = check_int("max_window_layers in config.json", config.get("max_window_layers", 28), 0)
    return lambda n: bool(config.get("use_sliding_window", False)) and n >= first


def _windows(config: Json, has_window: Callable[[int], bool]) -> tuple[int | None, ...] | None:
    """Return how many earlier positions each layer sees. transformers counts the query's own position, too."""
    kinds = config.get("layer_types")
    if kinds is None:
        kinds = [WINDOW if has_window(n) else "full_attention" for n in range(_whole(config, "num_hidden_layers"))]
    if unknown := set(map(str, kinds)) - {WINDOW, "full_attention"}:
        raise ValueError(f"config.json has layers of type {', '.join(sorted(unknown))}, which attnlib does not have")
    if WINDOW not in kinds:
        return None
    left = _whole(config, "sliding_window") - 1
    return tuple(left if kind == WINDOW else None for kind in kinds)


Family = tuple[Callable[[Json], CausalLMConfig], set[str], dict[str, tuple[Any, ...]]]
NO_BIAS = {"attention_bias": (False,), "mlp_bias": (False,)}
# For each family: its translation, the entries that it uses, and those that must have one of the given values.
FAMILIES: dict[str, Family] = {
    "llama": (_llama, LLAMA_SIZES | {"attention_bias", "mlp_bias"}, {"rope_interleaved": (False,)}),
    "mistral": (_mistral, LLAMA_SIZES | WINDOWS, NO_BIAS),
    "qwen2": (_qwen2, LLAMA_SIZES | WINDOWS, {**NO_BIAS, "use_mrope": (False,)}),
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
