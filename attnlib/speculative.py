"""Speculative decoding: a small model writes a draft, and a large one checks several tokens at once.

Dimensions: K tokens of a draft, V tokens in the vocabulary.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnlib._arrays import check_int
from attnlib.cache import KVCache
from attnlib.generation import (
    LanguageModel,
    SamplingSettings,
    Stop,
    check_prompt,
    draw,
    next_logits,
    sampling_probabilities,
)

Distribution = NDArray[np.float64]


class SpeculativeToken(NamedTuple):
    """A token that a pair of models has chosen.

    Attributes:
        token: its number in the vocabulary.
        probabilities: ``(V,)``, the large model's distribution.
        drafted: whether it comes from the draft.
    """

    token: int
    probabilities: Distribution
    drafted: bool


def generate_speculatively(
    model: LanguageModel,
    draft_model: LanguageModel,
    tokens: Sequence[int],
    *,
    max_new_tokens: int,
    num_draft_tokens: int = 4,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    seed: int | None = None,
    stop: Stop = (),
) -> Iterator[SpeculativeToken]:
    r"""Continue a text with the distribution of one model, while a smaller model does most of the writing.

    The draft model writes K tokens, each drawn from its distribution q. The model reads them all in one call, which
    gives its distribution p at each. A token x is accepted with probability :math:`\min(1, p_x / q_x)`; at the first
    that is not, a token is drawn from what p has beyond q, scaled to sum to 1. So each token has distribution p exactly:

    .. math:: q_x \min(1, p_x / q_x) + \Bigl(1 - \sum_y \min(p_y, q_y)\Bigr)
              \frac{\max(p_x - q_x, 0)}{\sum_y \max(p_y - q_y, 0)} = p_x

    If all K are accepted, one more is drawn from p after the last, which the same call has given.

    Args:
        model: the model whose distribution the text has.
        draft_model: a faster model with the same vocabulary.
        tokens: the prompt, as for :func:`attnlib.generation.generate`.
        max_new_tokens: how many tokens are generated at most.
        num_draft_tokens: K.
        temperature: applied to both models, as are ``top_k``, ``top_p`` and ``min_p``.
        top_k: how many tokens are kept.
        top_p: how much probability is kept.
        min_p: how probable a token must be, relative to the most probable one.
        seed: a whole number, with which the same models write the same text again.
        stop: as for :func:`attnlib.generation.generate`.

    Returns:
        An iterator of :class:`SpeculativeToken`.

    Raises:
        TypeError: a token or setting is not a number.
        ValueError: as for :func:`attnlib.generation.generate`; the vocabularies differ in size; or a layer has a window
            (its cache has forgotten the positions to which a rejected draft has to return).

    Source:
        Leviathan, Kalman and Matias (2023), "Fast Inference from Transformers via Speculative Decoding", algorithm 1.
    """
    settings = SamplingSettings.checked(temperature, top_k, top_p, min_p)
    sizes = [getattr(getattr(one, "config", None), "vocab_size", None) for one in (model, draft_model)]
    if sizes[0] != sizes[1]:
        raise ValueError(f"model has a vocabulary of {sizes[0]} tokens and draft_model of {sizes[1]}: they must agree")
    for one in (model, draft_model):
        if any(type(cache) is not KVCache for cache in one.new_cache()):
            raise ValueError("a layer has a window, and its cache cannot take a rejected draft back: use generate")
    prompt = check_prompt(tokens, sizes[0])
    count, K = check_int("max_new_tokens", max_new_tokens, 0), check_int("num_draft_tokens", num_draft_tokens, 1)
    target, drafter = _Reader(model, settings), _Reader(draft_model, settings)
    return _until_stop(_generate(target, drafter, prompt, K, np.random.default_rng(seed)), count, stop)


class _Reader:
    """A model with its cache, which can go back to an earlier position."""

    def __init__(self, model: LanguageModel, settings: SamplingSettings) -> None:
        self.model, self.settings, self.cache = model, settings, model.new_cache()

    def distributions(self, text: list[int], last: int) -> list[Distribution]:
        """Return the distributions of the tokens after the last few positions of a text."""
        known = min(self.cache[0].length, len(text) - last)
        for one in self.cache:
            one.truncate(known)
        logits = next_logits(self.model, text[known:], self.cache, last)
        return list(sampling_probabilities(logits, **self.settings._asdict()))


def _generate(
    target: _Reader, drafter: _Reader, text: list[int], K: int, rng: np.random.Generator
) -> Iterator[SpeculativeToken]:
    while True:
        draft, q = list[int](), list[Distribution]()
        for _ in range(K):
            q += drafter.distributions(text + draft, 1)
            draft.append(draw(q[-1], rng))
        p = target.distributions(text + draft, K + 1)
        accepted = 0
        while accepted < K and rng.random() * q[accepted][draft[accepted]] < p[accepted][draft[accepted]]:
            yield SpeculativeToken(draft[accepted], p[accepted], drafted=True)
            accepted += 1
        last = p[accepted]
        remaining = np.maximum(last - q[accepted], 0) if accepted < K else last
        token = draw(remaining, rng)
        yield SpeculativeToken(token, last, drafted=False)
        text = [*text, *draft[:accepted], token]


def _until_stop(tokens: Iterator[SpeculativeToken], count: int, stop: Stop) -> Iterator[SpeculativeToken]:
    """Yield tokens up to a number of them, or the one after which the text ends."""
    written: list[int] = []
    while len(written) < count:
        one = next(tokens)
        yield one
        written.append(one.token)
        if stop(written) if callable(stop) else one.token in stop:
            return
