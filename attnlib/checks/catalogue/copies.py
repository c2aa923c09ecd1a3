"""Inputs in which a row comes twice: two equal keys are two keys, each with a weight and a value of its own."""

from typing import Any


def with_copies(given: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return inputs in which some row of each named array ``(..., S, D)`` is a copy of another.

    Of ``value`` it is not the row of the repeated key, so that equal keys have different values.
    """
    copied = {name: given[name].copy() for name in names}
    for name, x in copied.items():
        if name == "value":
            x[..., 1, :] = x[..., 2, :]
        else:
            x[..., -1, :] = x[..., 0, :]
    return given | copied
