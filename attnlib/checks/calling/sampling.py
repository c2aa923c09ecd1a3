"""How a function that draws a token is called: many times, in order to count how often it draws each token.

This runs in the same process as a student's code.
"""

import operator
from typing import Any

import numpy as np

from attnlib.checks.calling.case import Implementation
from attnlib.checks.calling.conventions import Arguments


def call_sampler(
    implementation: Implementation,
    inputs: Arguments,
    options: Arguments,
    setup: Arguments,
    training: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """Draw as many tokens as the setup says; return which were drawn at all, and how frequent each of them was.

    All draws share one generator of random numbers, which the implementation may use or not.
    """
    logits, rng = inputs["logits"], np.random.default_rng(setup["seed"])
    own = logits.copy()  # the first draw gets the logits themselves, and the others what they were before
    tokens = [_token(implementation(logits, rng, **options), len(own))]
    tokens += [_token(implementation(own.copy(), rng, **options), len(own)) for _ in range(setup["draws"] - 1)]
    counts = np.bincount(tokens, minlength=len(own))
    return (counts > 0, counts / len(tokens)), {}


def call_distribution(
    implementation: Implementation,
    inputs: Arguments,
    options: Arguments,
    setup: Arguments,
    training: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """Return what :func:`call_sampler` approaches as the number of draws grows.

    An implementation without an attribute ``probabilities`` is called as a sampler.
    """
    if not hasattr(implementation, "probabilities"):
        return call_sampler(implementation, inputs, options, setup, training)
    p = np.asarray(implementation.probabilities(inputs["logits"], **options), np.float64)
    return (p > 0, p), {}


def _token(x: Any, size: int) -> int:
    """Return a token that was drawn as a number, after checking that it is one of the vocabulary."""
    try:
        token = operator.index(x)
    except TypeError:
        shape = getattr(x, "shape", None)
        kind = f"an array of shape {shape}" if shape else f"{x!r} of type {type(x).__name__}"
        raise TypeError(f"sample returned {kind:.100}, but one token is needed: a whole number") from None
    if not 0 <= token < size:
        raise ValueError(f"sample returned {token}, but a token from 0 to {size - 1} is needed")
    return token
