"""From logits to a token: scale them, exclude improbable tokens, and draw one.

Dimensions: V tokens in the vocabulary.
"""

import math
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from attnlib._arrays import (
    Array,
    array_namespace,
    check_float,
    check_int,
    check_probability,
    namespace_and_device,
    shape,
    widest_float,
)
from attnlib._types import ArrayT
from attnlib.softmax import softmax

VANISHES = 1000.0  # exp(-1000) is 0 in every floating point dtype


def sampling_probabilities(
    logits: ArrayT,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
) -> ArrayT:
    r"""Turn logits into the distribution from which the next token is drawn.

    .. math:: p = \operatorname{softmax}(z / \tau)

    Then up to three rules exclude tokens, and after each rule the remaining probabilities are scaled to sum to 1 again:

    - ``top_k`` keeps the k most probable tokens, and all that are exactly as probable as the last of them;
    - ``top_p`` keeps the smallest set of the most probable tokens whose probabilities sum to at least ``top_p``; of
      equally probable tokens, those with lower numbers come first;
    - ``min_p`` keeps the tokens that are at least ``min_p`` times as probable as the most probable one.

    Args:
        logits: z, ``(..., V)``.
        temperature: :math:`\tau`; 0 gives probability 1 to the most probable token (the first of several).
        top_k: k, how many tokens to keep; ``None`` keeps all.
        top_p: how much probability to keep; ``None`` keeps all, and 0 keeps one token.
        min_p: how probable a token must be, relative to the most probable one; ``None`` keeps all.

    Returns:
        Probabilities ``(..., V)``, with the dtype of ``logits``, computed in float64 where the device has it.

    Raises:
        TypeError: ``logits`` is not a floating point array, or an argument is not a number.
        ValueError: ``logits`` has no dimension or V = 0, ``temperature`` is negative or infinite, ``top_k`` is below 1,
            or ``top_p`` or ``min_p`` is not a probability.

    Source:
        top-k: Fan, Lewis and Dauphin (2018), "Hierarchical Neural Story Generation"; top-p: Holtzman et al. (2020),
        "The Curious Case of Neural Text Degeneration"; min-p: Nguyen et al. (2024), "Turning Up the Heat: Min-p
        Sampling for Creative and Coherent LLM Outputs".

    Example:
        >>> logits = np.log(np.array([0.5, 0.25, 0.15, 0.1]))
        >>> sampling_probabilities(logits, top_k=2).round(3)
        array([0.667, 0.333, 0.   , 0.   ])
        >>> sampling_probabilities(logits, top_p=0.8).round(3)
        array([0.556, 0.278, 0.167, 0.   ])
        >>> sampling_probabilities(logits, min_p=0.4).round(3)
        array([0.667, 0.333, 0.   , 0.   ])
    """
    xp = array_namespace(logits=logits)
    if logits.ndim == 0 or logits.shape[-1] == 0:
        raise ValueError(f"logits has shape {shape(logits)}, but (..., V) is needed, with V of at least 1")
    settings = SamplingSettings.checked(temperature, top_k, top_p, min_p)
    z = xp.astype(logits, widest_float(xp, namespace_and_device(logits)[1]), copy=False)
    return xp.astype(distribution(z, settings), logits.dtype, copy=False)


def distribution(z: Array, settings: "SamplingSettings") -> Array:
    """Do the same as :func:`sampling_probabilities`, for logits and settings that have been checked."""
    xp = array_namespace(z=z)
    if settings.temperature == 0:
        return xp.astype(_first_maximum(z), z.dtype)
    p = softmax(_scaled(z, settings.temperature))
    if settings.top_k is not None and settings.top_k < p.shape[-1]:
        p = _keep(p, p >= xp.sort(p, axis=-1)[..., -settings.top_k, None])
    if settings.top_p is not None and settings.top_p < 1:  # with 1, rounded sums could exclude improbable tokens
        p = _keep(p, _nucleus(p, settings.top_p))
    if settings.min_p is not None:
        p = _keep(p, p >= settings.min_p * xp.max(p, axis=-1, keepdims=True))
    return p


class SamplingSettings(NamedTuple):
    """How a token is chosen, after the numbers have been checked: see :func:`sampling_probabilities`."""

    temperature: float
    top_k: int | None
    top_p: float | None
    min_p: float | None

    @classmethod
    def checked(cls, temperature: float, top_k: int | None, top_p: float | None, min_p: float | None) -> Self:
        """Return the settings, or raise an error that names the invalid one."""
        temperature = check_float("temperature", temperature)
        if not 0 <= temperature < math.inf:
            raise ValueError(f"temperature is {temperature}, but a number of at least 0 is needed")
        return cls(
            temperature,
            None if top_k is None else check_int("top_k", top_k, 1),
            None if top_p is None else check_probability("top_p", top_p),
            None if min_p is None else check_probability("min_p", min_p),
        )


def choose(z: NDArray[Any], settings: SamplingSettings, rng: np.random.Generator) -> tuple[int, NDArray[np.float64]]:
    """Return the next token and its distribution (V,), for logits (V,) and settings that have been checked."""
    if settings.temperature != 0:
        p = distribution(z.astype(np.float64), settings)
        return draw(p, rng), p
    token, p = int(z.argmax()), np.zeros(z.shape)
    p[token] = 1
    return token, p


def draw(probabilities: NDArray[np.float64], rng: np.random.Generator) -> int:
    """Draw a token: the first one at which the sum of the probabilities exceeds a random share of their total."""
    sums = np.cumsum(probabilities)
    return int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))


def _scaled(z: Array, temperature: float) -> Array:
    """Return z / temperature, up to a constant that softmax ignores: the largest is 0, so that nothing overflows."""
    xp = array_namespace(z=z)
    limits = xp.finfo(z.dtype)
    temperature = min(max(temperature, float(limits.smallest_normal)), float(limits.max) / VANISHES)
    largest = xp.max(z, axis=-1, keepdims=True)
    z = z - xp.where(xp.isfinite(largest), largest, xp.zeros_like(largest))
    return xp.where(z < -VANISHES * temperature, xp.full_like(z, -math.inf), z) / temperature


def _first_maximum(z: Array) -> Array:
    """Return True for the first token with the largest logit, and False for all others."""
    xp, device = namespace_and_device(z)
    return xp.argmax(z, axis=-1, keepdims=True) == xp.arange(z.shape[-1], device=device)


def _nucleus(p: Array, top_p: float) -> Array:
    """Return True for the most probable token, and for those before which the probabilities sum to less than top_p."""
    xp = array_namespace(p=p)
    rank = xp.argsort(xp.argsort(-p, axis=-1, stable=True), axis=-1)
    decreasing = xp.flip(xp.sort(p, axis=-1), axis=-1)
    cumulative_sum = getattr(xp, "cumsum", None) or xp.cumulative_sum  # NumPy 2.0 has only the former
    before = cumulative_sum(decreasing, axis=-1) - decreasing
    count = xp.sum(xp.astype(before < top_p, rank.dtype), axis=-1, keepdims=True)
    return (rank < count) | (rank == 0)


def _keep(p: Array, kept: Array) -> Array:
    """Return the probabilities of some tokens, scaled to sum to 1, and 0 for the others."""
    xp = array_namespace(p=p)
    p = xp.where(kept, p, xp.zeros_like(p))
    total = xp.sum(p, axis=-1, keepdims=True)
    return p / xp.where(total == 0, xp.ones_like(total), total)  # 0 if all logits are -inf, as in softmax
