"""The kinds of input that tests can use, for each function that they are written for. The rarest come first."""

from typing import Any

import numpy as np

from attnlib.checks.mutation.target import Kind

Given = dict[str, Any]
LARGE = 700  # the exponential of a larger number overflows
LARGE_NAME = "scores beyond 700 or below -700"
BATCH_NAME = "leading dimensions, such as a batch"


def _middle_axis(given: Given) -> bool:
    return given["axis"] % given["x"].ndim not in (0, given["x"].ndim - 1)


def _large_scores(given: Given) -> bool:
    query, key = np.asarray(given["query"], float), np.asarray(given["key"], float)
    if "w_q" in given:
        query, key = query @ given["w_q"], key @ given["w_k"]
    return bool(np.abs(query @ np.swapaxes(key, -1, -2)).max() > LARGE)


def _repeated_key(given: Given) -> bool:
    keys = np.asarray(given["key"]).reshape(-1, given["key"].shape[-1])
    return len(np.unique(keys, axis=0)) < len(keys)


def _other_widths(given: Given) -> bool:
    widths = {given[name].shape[-1] for name in ("query", "key", "value", "w_q", "w_v", "w_o")}
    return len(widths) > 1


def _later_chunk_of_several(given: Given) -> bool:
    return any(key.shape[-2] > 1 for key, _ in given["chunks"][1:])


def _repeated_token(given: Given) -> bool:
    tokens = np.concatenate([key for key, _ in given["chunks"]], axis=-2)
    return bool((tokens[..., 1:, :] == tokens[..., :-1, :]).all(axis=-1).any())


SOFTMAX = (
    Kind("an axis that is neither the first nor the last", _middle_axis),
    Kind("an axis that is not the last", lambda given: given["axis"] % given["x"].ndim != given["x"].ndim - 1),
    Kind("whole numbers", lambda given: given["x"].dtype.kind == "i"),
    Kind(LARGE_NAME, lambda given: np.abs(given["x"]).max() > LARGE),
    Kind("three or more dimensions", lambda given: given["x"].ndim > 2),
    Kind("two or more dimensions", lambda given: given["x"].ndim > 1),
)
SCALED_DOT_PRODUCT_ATTENTION = (
    Kind("a scale of 0", lambda given: given["scale"] == 0),
    Kind("a scale of your own", lambda given: given["scale"] is not None),
    Kind(LARGE_NAME, _large_scores),
    Kind("a key that occurs twice", _repeated_key),
    Kind(BATCH_NAME, lambda given: given["query"].ndim > 2),
)
CAUSAL_MASK = (
    Kind("a negative offset", lambda given: given["q_offset"] < 0),
    Kind("an offset without S", lambda given: given["q_offset"] != 0 and given["S"] is None),
    Kind("an offset", lambda given: given["q_offset"] != 0),
    Kind("more or fewer keys than queries", lambda given: given["S"] not in (None, given["T"])),
    Kind("S left out", lambda given: given["S"] is None),
    Kind("more than one query", lambda given: given["T"] > 1),
)
MULTI_HEAD_ATTENTION = (
    Kind(LARGE_NAME, _large_scores),
    Kind("widths that differ", _other_widths),
    Kind(BATCH_NAME, lambda given: given["query"].ndim > 2),
    Kind("more than one head", lambda given: given["num_heads"] > 1),
    Kind("more or fewer keys than queries", lambda given: given["query"].shape[-2] != given["key"].shape[-2]),
)
APPLY_ROPE = (
    Kind("tables narrower than half a vector", lambda given: 2 * given["cos"].shape[-1] < given["x"].shape[-1]),
    Kind("interleaved=True", lambda given: given["interleaved"]),
    Kind(BATCH_NAME, lambda given: given["x"].ndim > 2),
    Kind("more than one position", lambda given: given["x"].shape[-2] > 1),
)
KV_CACHE = (
    Kind("a second cache", lambda given: given["other"] is not None),
    Kind("the same token twice in a row", _repeated_token),
    Kind("fewer than four dimensions", lambda given: given["chunks"][0][0].ndim < 4),
    Kind("a later chunk of several tokens", _later_chunk_of_several),
    Kind("more than one chunk", lambda given: len(given["chunks"]) > 1),
)
