"""The inputs of both decoders' cases, and the pieces of a step, which mistakes replace."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import attnlib

SCALES = {"w_ih": 0.4, "w_hh": 0.4, "w_c": 0.4, "w_query": 0.5, "w_key": 0.5, "weight": 0.5, "b_ih": 0.5, "b_hh": 0.5}


def three_words(**others: Any) -> dict[str, Any]:
    """Return the example of the chapter: 27, Nov and 1999 in the memory, and the state after the year."""
    attend = {"w_query": np.eye(2), "w_key": np.eye(2), "v": np.array([-2.0, 2.0])}
    cell = {"w_ih": np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), "w_hh": np.eye(2)}
    return {
        "y": np.array([[1.0]]),
        "state": np.array([[-1.0, 0.0]]),
        "memory": np.array([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]]),
        "params": {**attend, **cell, "b_ih": np.zeros(2), "b_hh": np.zeros(2), **others},
    }


def drawn(rng, shapes: dict[str, tuple[int, ...]], dtype: Any) -> dict[str, Any]:
    """Return random arrays of these shapes; matrices and biases are small enough to keep tanh off its ends."""
    return {name: (SCALES.get(name, 1.0) * rng.normal(size=shape)).astype(dtype) for name, shape in shapes.items()}


def cell_shapes(width: int, d_s: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the parameters of Elman's cell."""
    return {"w_ih": (d_s, width), "w_hh": (d_s, d_s), "b_ih": (d_s,), "b_hh": (d_s,)}


def time_first(given: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs with a memory whose layout has time as its first axis, as many encoders make it."""
    return {**given, "memory": given["memory"].swapaxes(0, 1).copy().swapaxes(0, 1)}


def masks() -> Iterator[tuple[str, Any]]:
    """Yield masks ``(..., S)`` for implementations that have the argument, each with its case name."""
    yield (
        "a mask (True where the decoder may attend)",
        np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0], [0, 1, 1, 0, 1]]) > 0,
    )
    yield "a mask, and no batch", np.array([1, 0, 1, 1]) > 0
    yield "a mask that leaves one sentence nothing to attend to", np.array([[1, 0, 1, 1], [0, 0, 0, 0]]) > 0


# A step in pieces, for mistakes to replace --------------------------------------------------------------------------


def rows(query):
    """Return the query with an axis for the rows of the memory."""
    return query[..., None, :]


def project(query, memory, p):
    """Return both sides in the space of the hidden numbers."""
    return rows(query @ p["w_query"]), memory @ p["w_key"]


def additive(query, memory, p):
    """Return the additive scores."""
    q, k = project(query, memory, p)
    return np.tanh(q + k) @ p["v"]


def fill_masked(scores, mask, fill=-np.inf):
    """Return the scores with another number where the mask is False."""
    return scores if mask is None else np.where(mask, scores, fill)


def weigh(scores, mask):
    """Return the weights."""
    return attnlib.softmax(fill_masked(scores, mask))


def mix(weights, memory):
    """Return the context."""
    return (weights[..., None] * memory).sum(axis=-2)


def join(*vectors):
    """Return vectors one after the other."""
    return np.concatenate(vectors, axis=-1)


def pre_activation(x, state, p):
    """Return the argument of the tanh in Elman's cell."""
    return x @ p["w_ih"].T + p["b_ih"] + state @ p["w_hh"].T + p["b_hh"]


def cell(x, state, p):
    """Return the next state."""
    return np.tanh(pre_activation(x, state, p))


def without_tanh(query, memory, p):
    """Return scores that lack the tanh."""
    return sum(project(query, memory, p)) @ p["v"]


def cell_without_bias(x, state, p):
    """Return the next state, without the biases."""
    return np.tanh(x @ p["w_ih"].T + state @ p["w_hh"].T)


def normalise_over(axes, scores, mask):
    """Return weights that sum to 1 along the axes."""
    e = np.exp(fill_masked(scores, mask))
    return e / e.sum(axis=axes, keepdims=True)
