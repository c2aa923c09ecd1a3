"""The functions that tests are written for."""

from collections.abc import Mapping, Sequence
from typing import Any

from attnlib.checks.calling.case import Case, Implementation
from attnlib.checks.calling.kv_cache import call_kv_cache
from attnlib.checks.mutation import kinds
from attnlib.checks.mutation.correct_versions import (
    apply_rope,
    causal_mask,
    kv_cache,
    multi_head_attention,
    scaled_dot_product_attention,
    softmax,
)
from attnlib.checks.mutation.target import Target

OPEN = (
    "how numbers are rounded (an error below 0.00001 is fine), "
    "whether the result is float64 when the inputs are float32"
)


def _softmax(x: Any, axis: int = -1) -> None: ...


def _attention(query: Any, key: Any, value: Any, *, scale: float | None = None) -> None: ...


def _mask(T: int, S: int | None = None, *, q_offset: int = 0) -> None: ...


def _heads(query: Any, key: Any, value: Any, w_q: Any, w_k: Any, w_v: Any, w_o: Any, num_heads: int) -> None: ...


def _rope(x: Any, cos: Any, sin: Any, *, interleaved: bool = False) -> None: ...


def _cache(*chunks: Any, other: Any = None) -> None: ...


def _fill_cache(implementation: Implementation, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Call a class as a test calls a cache: with one (key, value) after another."""
    pairs = {f"chunk {n}": chunk for n, chunk in enumerate(arguments)}
    if options.get("other") is not None:
        pairs["other"] = options["other"]
    inputs = {name: {"key": key, "value": value} for name, (key, value) in pairs.items()}
    return call_kv_cache(implementation, inputs, {}, {})[0]


def _cache_case(case: Case) -> tuple[tuple[Any, ...], dict[str, Any]]:
    pairs = {name: (chunk["key"], chunk["value"]) for name, chunk in case.inputs.items()}
    other = pairs.pop("other", None)
    return tuple(pairs.values()), {} if other is None else {"other": other}


TARGETS = {
    target.name: target
    for target in (
        Target(
            "softmax",
            "softmax",
            _softmax,
            f"{OPEN}, and what happens with an empty array, nan or infinity",
            kinds.SOFTMAX,
            tuple(softmax.VERSIONS),
        ),
        Target(
            "scaled_dot_product_attention",
            "scaled_dot_product_attention",
            _attention,
            f"{OPEN}, and what happens when leading dimensions or widths differ",
            kinds.SCALED_DOT_PRODUCT_ATTENTION,
            tuple(scaled_dot_product_attention.VERSIONS),
        ),
        Target(
            "causal_mask",
            "causal_mask",
            _mask,
            "what happens with sizes of 0 or below, and how the mask is laid out in memory",
            kinds.CAUSAL_MASK,
            tuple(causal_mask.VERSIONS),
        ),
        Target(
            "multi_head_attention",
            "multi_head_attention",
            _heads,
            f"{OPEN}, and what happens when the widths cannot be divided evenly among the heads",
            kinds.MULTI_HEAD_ATTENTION,
            tuple(multi_head_attention.VERSIONS),
        ),
        Target(
            "apply_rope",
            "apply_rope",
            _rope,
            f"{OPEN}, and what happens with tables that are wider than half a vector or differ in the number of rows",
            kinds.APPLY_ROPE,
            tuple(apply_rope.VERSIONS),
        ),
        Target(
            "kv_cache",
            "KVCache",
            _cache,
            f"{OPEN}, and what happens with chunks whose other dimensions differ",
            kinds.KV_CACHE,
            tuple(kv_cache.VERSIONS),
            _fill_cache,
            _cache_case,
        ),
    )
}


def find_target(name: str) -> Target:
    """Return a target by its name.

    Raises:
        ValueError: there is none.
    """
    if name not in TARGETS:
        raise ValueError(f"there is no function {name!r} to write tests for. Choose one of: {', '.join(TARGETS)}")
    return TARGETS[name]
