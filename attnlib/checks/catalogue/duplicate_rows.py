"""Inputs in which a row occurs twice. Two equal keys still count as two, each with its own weight and value."""

from typing import Any


def with_duplicate_rows(given: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return inputs in which some row of each named array ``(..., S, D)`` is a copy of another.

    In ``value``, other rows are copied than in ``key``, so that equal keys have different values.
    """
    copied = {name: given[name].copy() for name in names}
    for name, x in copied.items():
        if name == "value":
            x[..., 1, :] = x[..., 2, :]
        else:
            x[..., -1, :] = x[..., 0, :]
    return given | copied
