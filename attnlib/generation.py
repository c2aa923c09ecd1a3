"""From logits to text: choose a token, append it, and ask the model again.

Dimensions: B batch, T tokens of the prompt, V tokens in the vocabulary.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

import sys

from attnlib._arrays import Array, array_namespace, check_float, check_int, is_torch, namespace_and_device, shape
from attnlib._types import ArrayT
from attnlib.cache import KVCache
from attnlib.softmax import softmax


class GeneratedToken(NamedTuple):
    """A token that a model has chosen.

    Attributes:
        token: its number in the vocabulary.
        probabilities: ``(V,)``, the distribution from which it was drawn, as float64.
    """

    token: int
    probabilities: NDArray[np.float64]


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

    Then tokens are excluded in three steps, after each of which the rest are scaled so that they sum to 1 again:
    ``top_k`` keeps the k most probable, ``top_p`` the smallest set of the most probable whose probabilities sum to at
    least ``top_p``, and ``min_p`` those with at least ``min_p`` times the largest probability. Tokens that are exactly
    as probable as the last one kept by ``top_k`` are kept as well; among those for ``top_p``, lower numbers come first.

    Args:
        logits: z, ``(..., V)``.
        temperature: :math:`\tau`; 0 means that the most probable token gets probability 1, the first of several.
        top_k: how many tokens are kept; ``None`` means all.
        top_p: how much probability is kept; ``None`` means all.
        min_p: how probable a token must be, relative to the most probable one; ``None`` means 0.

    Returns:
        Probabilities ``(..., V)``, with the dtype of ``logits``.

    Raises:
        TypeError: ``logits`` is not a floating point array, or an argument is not a number.
        ValueError: ``logits`` has no dimension or V = 0, ``temperature`` is negative, ``top_k`` is below 1, or
            ``top_p`` or ``min_p`` is not a probability.

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
    if settings.temperature == 0:
        V = logits.shape[-1]
        best = xp.argmax(logits, axis=-1)[..., None] == xp.arange(V, device=logits.device)
        return xp.astype(best, logits.dtype)
    p = softmax(logits / settings.temperature)
    if settings.top_k is not None and settings.top_k < p.shape[-1]:
        least = xp.sort(p, axis=-1)[..., -settings.top_k, None]
        p = _keep(p, p >= least)
    if settings.top_p is not None:
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
        """Return the settings, or raise an error that names what cannot be."""
        temperature = check_float("temperature", temperature)
        if not 0 <= temperature < float("inf"):
            raise ValueError(f"temperature is {temperature}, but a number of at least 0 is needed")
        shares = {}
        for name, value in (("top_p", top_p), ("min_p", min_p)):
            shares[name] = None if value is None else check_float(name, value)
            if value is not None and not 0 <= shares[name] <= 1:
                raise ValueError(f"{name} is {value}, but a probability from 0 to 1 is needed")
        return cls(temperature, None if top_k is None else check_int("top_k", top_k, 1), **shares)


def _nucleus(p: Array, top_p: float) -> Array:
    """Tell of each token whether those that are more probable sum to less than top_p."""
    xp = array_namespace(p=p)
    order = xp.argsort(-p, axis=-1, stable=True)
    decreasing = xp.take_along_axis(p, order, axis=-1)
    cumulative_sum = getattr(xp, "cumulative_sum", None) or xp.cumsum  # NumPy 2.0 has only the latter
    before = cumulative_sum(decreasing, axis=-1) - decreasing
    kept = (before < top_p) | (xp.arange(p.shape[-1], device=p.device) == 0)  # at least one
    return xp.take_along_axis(kept, xp.argsort(order, axis=-1), axis=-1)


def _keep(p: Array, kept: Array) -> Array:
    """Return the probabilities of some tokens, scaled to sum to 1, and 0 for the others."""
    xp = array_namespace(p=p)
    p = xp.where(kept, p, xp.zeros_like(p))
    return p / xp.sum(p, axis=-1, keepdims=True)


class LanguageModel(Protocol):
    """What :func:`generate` needs of a model: :class:`attnlib.torch.CausalLM` is one."""

    def __call__(self, tokens: Any, *, cache: Any, logits_to_keep: int) -> Any:
        """Return the logits ``(1, T', V)`` of the last T' = ``logits_to_keep`` of the tokens ``(1, T)``."""

    def new_cache(self) -> list[KVCache]:
        """Return an empty cache for every layer."""

    def parameters(self) -> Iterator[Any]:
        """Yield the parameters, whose library and device the tokens have."""


Stop = Collection[int] | Callable[[Sequence[int]], bool]


def generate(
    model: LanguageModel,
    tokens: Sequence[int],
    *,
    max_new_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    seed: int | None = None,
    stop: Stop = (),
) -> Iterator[GeneratedToken]:
    """Continue a text: yield one token after the other, each as soon as it has been chosen.

    The model reads the prompt once and then, with a cache, only each new token.

    Args:
        model: such as :class:`attnlib.numpy.CausalLM` or :class:`attnlib.torch.CausalLM`.
        tokens: the prompt: T numbers, at least one; or an array ``(T,)``.
        max_new_tokens: how many tokens are generated at most.
        temperature: as in :func:`sampling_probabilities`, as are ``top_k``, ``top_p`` and ``min_p``; 0 always takes the
            most probable token.
        top_k: how many tokens are kept.
        top_p: how much probability is kept.
        min_p: how probable a token must be, relative to the most probable one.
        seed: a whole number, with which the same model writes the same text again; ``None`` for a different text each
            time.
        stop: tokens after which the text ends, or a function that is called with the list of generated tokens and
            returns whether it ends. The last token is yielded.

    Returns:
        An iterator of :class:`GeneratedToken`. It is checked right away, and computes when it is iterated over.

    Raises:
        TypeError: a token or setting is not a number.
        ValueError: the prompt is empty, a token is not in the vocabulary, or a setting is out of range.

    Source:
        Radford et al. (2019), "Language Models are Unsupervised Multitask Learners"; the cache: Shazeer (2019), "Fast
        Transformer Decoding", section 2.4.

    Example:
        >>> from attnlib.numpy import CausalLM, CausalLMConfig
        >>> config = CausalLMConfig(vocab_size=7, embed_dim=8, num_layers=1, num_heads=2, ff_dim=12)
        >>> text = [one.token for one in generate(CausalLM(config), [3, 1, 4], max_new_tokens=5, seed=0)]
        >>> len(text), all(0 <= token < 7 for token in text)
        (5, True)
    """
    settings = SamplingSettings.checked(temperature, top_k, top_p, min_p)
    prompt = check_prompt(tokens, getattr(getattr(model, "config", None), "vocab_size", None))
    count = check_int("max_new_tokens", max_new_tokens, 0)
    return _generate(model, prompt, count, settings, np.random.default_rng(seed), stop)


def _generate(
    model: LanguageModel, prompt: list[int], count: int, settings: SamplingSettings, rng: np.random.Generator, stop: Stop
) -> Iterator[GeneratedToken]:
    cache, read, written = model.new_cache(), prompt, list[int]()
    for _ in range(count):
        (logits,) = next_logits(model, read, cache, 1)
        p = sampling_probabilities(logits, **settings._asdict())
        token = draw(p, rng)
        yield GeneratedToken(token, p)
        written.append(token)
        if stop(written) if callable(stop) else token in stop:
            return
        read = [token]


def next_logits(model: LanguageModel, tokens: list[int], cache: list[KVCache], last: int) -> NDArray[np.float64]:
    """Let a model read tokens, and return the logits (T', V) after the last T' of them, as float64 on the CPU."""
    like = next(iter(model.parameters()))
    xp, device = namespace_and_device(like)
    # The mode is entered anew for each step: across a yield it would apply to the caller as well.
    with _inference_mode(like):
        logits = model(xp.asarray([tokens], device=device), cache=cache, logits_to_keep=last)[0]
    if is_torch(logits):
        logits = logits.double().cpu().numpy()
    return np.asarray(logits, np.float64)


def draw(probabilities: NDArray[np.float64], rng: np.random.Generator) -> int:
    """Draw a token: the first at which the sum of the probabilities exceeds a random number."""
    sums = np.cumsum(probabilities)
    return int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))


def check_prompt(tokens: Sequence[int], vocab_size: int | None) -> list[int]:
    """Return the tokens of a prompt as a list, after checking that there are some and the model knows them."""
    if getattr(tokens, "ndim", 1) != 1:
        raise ValueError(f"tokens has shape {shape(tokens)}, but (T,) is needed: one text")
    prompt = [check_int("token", token, 0) for token in (tokens.tolist() if hasattr(tokens, "tolist") else tokens)]
    if not prompt:
        raise ValueError("tokens is empty, but a model needs at least one to continue: begin with its start token")
    if vocab_size is not None and max(prompt) >= vocab_size:
        raise ValueError(f"token {max(prompt)} is not in the vocabulary, which has tokens 0 to {vocab_size - 1}")
    return prompt


def _inference_mode(like: Array) -> AbstractContextManager[Any]:
    return sys.modules["torch"].inference_mode() if is_torch(like) else nullcontext()
