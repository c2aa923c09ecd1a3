"""Formulas for the gradients of some references, in NumPy, so that grading their exercises does not import torch.

Each function takes the inputs of a case, the arguments with which its class is made, and the gradient of each output.
It returns the gradient of each floating-point input, under the name that
:func:`attnlib.checks.calling.conventions.named_arrays` gives the input.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

import attnlib
from attnlib.checks.calling.conventions import Arguments
from attnlib.checks.exercise import NamedGradients


def through_attention(inputs: Arguments, setup: Arguments, upstream: Arguments) -> NamedGradients:
    """Send the gradients of context and weights back through attention, with or without a mask."""
    query, key, value = (inputs[name] for name in ("query", "key", "value"))
    _, weights = attnlib.attention(query, key, value, mask=inputs.get("mask"))
    towards = upstream["context"] @ value.T + upstream["weights"]
    scores = weights * (towards - np.sum(weights * towards, axis=-1, keepdims=True)) / query.shape[-1] ** 0.5
    return {"query": scores @ key, "key": scores.T @ query, "value": weights.T @ upstream["context"]}


def through_scaled_attention(inputs: Arguments, setup: Arguments, upstream: Arguments) -> NamedGradients:
    """Send the gradient of the output back through scaled dot-product attention."""
    found = attnlib.scaled_dot_product_attention_backward(upstream["output"], **inputs)
    return dict(zip(inputs, found, strict=True))


def through_heads(inputs: Arguments, setup: Arguments, upstream: Arguments) -> NamedGradients:
    """Send the gradient of the result back through multi-head attention, to its inputs and its parameters."""
    (_, weights), *given = inputs.items()
    layers, heads, parameters = ("q_proj", "k_proj", "v_proj"), setup["num_heads"], {}

    def forward(layer: str, x: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(attnlib.split_heads(x @ weights[f"{layer}.weight"].T + weights[f"{layer}.bias"], heads))

    def back(layer: str, x: NDArray[Any], grad: NDArray[Any]) -> NDArray[Any]:
        parameters[f"{layer}.weight"] = np.einsum("btf,bte->fe", grad, x)
        parameters[f"{layer}.bias"] = np.sum(grad, axis=(0, 1))
        return np.asarray(grad @ weights[f"{layer}.weight"])

    query, key, value = (forward(layer, x) for layer, (_, x) in zip(layers, given, strict=True))
    merged = attnlib.merge_heads(attnlib.scaled_dot_product_attention(query, key, value))
    grad = attnlib.split_heads(back("out_proj", merged, upstream["out"]), heads)
    grads = attnlib.scaled_dot_product_attention_backward(grad, query, key, value)
    found = {
        name: back(layer, x, attnlib.merge_heads(each))
        for layer, (name, x), each in zip(layers, given, grads, strict=True)
    }
    return found | {name: parameters[name] for name in weights}


def through_rope(inputs: Arguments, setup: Arguments, upstream: Arguments) -> NamedGradients:
    """Send the gradient of what was turned back through the turning of half-split pairs; the rest passes as it is."""
    cos, sin = inputs["cos"], inputs["sin"]
    borders = [cos.shape[-1], 2 * cos.shape[-1]]
    (a, b, _), (grad_a, grad_b, rest) = (np.split(x, borders, axis=-1) for x in (inputs["x"], upstream["turned"]))
    grad_x = np.concatenate([grad_a * cos + grad_b * sin, grad_b * cos - grad_a * sin, rest], axis=-1)
    return {"x": grad_x, "cos": grad_a * a + grad_b * b, "sin": grad_b * a - grad_a * b}
