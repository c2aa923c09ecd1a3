"""Speculative decoding: a small model writes a draft, and a large one checks several tokens at once.

Dimensions: T tokens of the prompt, K tokens of a draft, V tokens in the vocabulary.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from attnlib._arrays import check_int
from attnlib.cache import KVCache
from attnlib.generation import (
    LanguageModel,
    Prompt,
    Reader,
    Stop,
    check_prompt,
    check_stop,
    random_numbers,
    vocab_size,
)
from attnlib.sampling import SamplingSettings, distribution, draw
from attnlib.sliding_window_cache import SlidingWindowCache

Distribution = NDArray[np.float64]


class SpeculativeToken(NamedTuple):
    """A token that a pair of models has chosen.

    Attributes:
        token: its number in the vocabulary.
        probabilities: ``(V,)``, the large model's distribution, as float64.
        drafted: whether it comes from the draft.
    """

    token: int
    probabilities: Distribution
    drafted: bool


def generate_speculatively(
    model: LanguageModel,
    draft_model: LanguageModel,
    tokens: Prompt,
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
    gives its distribution p at each of them. A token x is accepted with probability :math:`\min(1, p_x / q_x)`; instead
    of the first one that is rejected, a token is drawn from the part of p that exceeds q, scaled to sum to 1. So each
    token has exactly the distribution p:

    .. math:: q_x \min(1, p_x / q_x) + \Bigl(1 - \sum_y \min(p_y, q_y)\Bigr)
              \frac{\max(p_x - q_x, 0)}{\sum_y \max(p_y - q_y, 0)} = p_x

    If all K are accepted, one more token is drawn from p after the last of them, which the same call computed.

    Args:
        model: the model whose distribution the text follows.
        draft_model: a faster model with the same vocabulary.
        tokens: the prompt ``(T,)``, as for :func:`~attnlib.generate`.
        max_new_tokens: the largest number of tokens to generate.
        num_draft_tokens: K.
        temperature: as for :func:`~attnlib.generate`; it and the next three settings apply to both models.
        top_k: how many tokens to keep.
        top_p: how much probability to keep.
        min_p: how probable a token must be, relative to the most probable one.
        seed: a whole number, with which the same models write the same text again.
        stop: as for :func:`~attnlib.generate`.

    Returns:
        An iterator of :class:`~attnlib.speculative.SpeculativeToken`, each with its probabilities ``(V,)``. The
        arguments are checked immediately; the models run when you iterate. All keys and values are kept, even those of
        layers with a window, because a rejected draft has to be taken back.

    Raises:
        TypeError: as for :func:`~attnlib.generate`, or ``num_draft_tokens`` is not a whole number.
        ValueError: as for :func:`~attnlib.generate`, ``num_draft_tokens`` is below 1, or the vocabularies differ in
            size.

    Source:
        Leviathan, Kalman and Matias (2023), "Fast Inference from Transformers via Speculative Decoding", algorithm 1.

    Example:
        >>> from attnlib.numpy import CausalLM, CausalLMConfig
        >>> sizes = {"vocab_size": 7, "embed_dim": 8, "num_heads": 2, "ff_dim": 12}
        >>> model, draft_model = (CausalLM(CausalLMConfig(num_layers=n, **sizes)) for n in (3, 1))
        >>> text = list(generate_speculatively(model, draft_model, [3, 1, 4], max_new_tokens=5, seed=0))
        >>> len(text), text[0].probabilities.shape
        (5, (7,))
    """
    settings = SamplingSettings.checked(temperature, top_k, top_p, min_p)
    sizes = vocab_size(model), vocab_size(draft_model)
    if None not in sizes and sizes[0] != sizes[1]:
        raise ValueError(
            f"model has a vocabulary of {sizes[0]} tokens, but draft_model one of {sizes[1]}: use a draft model with "
            "the same tokenizer"
        )
    prompt, end, rng = check_prompt(tokens, sizes[0]), check_stop(stop), random_numbers(seed)
    count, K = check_int("max_new_tokens", max_new_tokens, 0), check_int("num_draft_tokens", num_draft_tokens, 1)

    def text() -> Iterator[SpeculativeToken]:
        target, drafter = _Rereader(model, settings, sizes[1]), _Rereader(draft_model, settings, sizes[0])
        written = list[int]()
        while len(written) < count:
            length = min(K, count - len(written) - 1)  # a call may yield one token more than the draft
            for one in _round(target, drafter, prompt + written, length, rng):
                written.append(one.token)
                yield one
                if end(written):
                    return

    return text()


class _Rereader(Reader):
    """A model that reads a text and can go back to an earlier position, and the size of the other's vocabulary."""

    def __init__(self, model: LanguageModel, settings: SamplingSettings, other_size: int | None) -> None:
        # A SlidingWindowCache has forgotten positions that are needed again after a rejected draft.
        cache = [KVCache() if isinstance(one, SlidingWindowCache) else one for one in model.new_cache()]
        super().__init__(model, cache)
        self.settings, self.other_size = settings, other_size

    def distributions(self, text: list[int], last: int) -> list[Distribution]:
        """Return the distributions of the next token after each of the last few positions of a text.

        The text may differ from that of the previous call only in these positions and those that were not read.
        """
        known = min(self.cache[0].length, len(text) - last)
        for one in self.cache:
            one.truncate(known)
        logits = self.next_logits(text[known:], last)
        if self.other_size not in (None, logits.shape[-1]):
            raise ValueError(
                f"one model has a vocabulary of {logits.shape[-1]} tokens, but the other one of {self.other_size}: use "
                "a draft model with the same tokenizer"
            )
        return list(distribution(logits.astype(np.float64), self.settings))


def _round(
    target: _Rereader, drafter: _Rereader, text: list[int], K: int, rng: np.random.Generator
) -> Iterator[SpeculativeToken]:
    """Yield the tokens of one draft that are accepted, and the one that follows them."""
    draft, q = list[int](), list[Distribution]()
    for _ in range(K):
        q += drafter.distributions(text + draft, 1)
        draft.append(draw(q[-1], rng))
    p = target.distributions(text + draft, K + 1)
    for n, x in enumerate(draft):
        if rng.random() * q[n][x] >= p[n][x]:
            beyond = np.maximum(p[n] - q[n], 0)
            yield SpeculativeToken(draw(beyond if beyond.any() else p[n], rng), p[n], drafted=False)
            return
        yield SpeculativeToken(x, p[n], drafted=True)
    yield SpeculativeToken(draw(p[K], rng), p[K], drafted=False)
