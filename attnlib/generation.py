"""From logits to text: choose a token, append it, and ask the model again.

Dimensions: T tokens of the prompt, V tokens in the vocabulary.
"""

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from attnlib._arrays import Array, check_int, imported_torch, is_torch, namespace_and_device, refuse_subclass, shape
from attnlib._types import Index
from attnlib.cache import KVCache
from attnlib.sampling import SamplingSettings, choose

Prompt = Sequence[int] | Index
Stop = Collection[int] | Callable[[list[int]], bool]
IsEnd = Callable[[list[int]], bool]


class GeneratedToken(NamedTuple):
    """A token that a model has chosen.

    Attributes:
        token: its number in the vocabulary.
        probabilities: ``(V,)``, the distribution from which it was drawn, as float64.
    """

    token: int
    probabilities: NDArray[np.float64]


class LanguageModel(Protocol):
    """What :func:`generate` needs from a model, such as :class:`attnlib.torch.CausalLM`."""

    def __call__(self, tokens: Any, *, cache: Any, logits_to_keep: int) -> Any:
        """Return the logits ``(1, T', V)`` of the last T' = ``logits_to_keep`` of the tokens ``(1, T)``."""

    def new_cache(self) -> list[KVCache]:
        """Return an empty cache for every layer."""

    def parameters(self) -> Iterator[Any]:
        """Yield the parameters; the tokens come in their library and on their device."""


def generate(
    model: LanguageModel,
    tokens: Prompt,
    *,
    max_new_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    seed: int | None = None,
    stop: Stop = (),
) -> Iterator[GeneratedToken]:
    """Continue a text: yield one token after another, each as soon as it has been chosen.

    The model reads the prompt once, and then only each new token, because a cache keeps the keys and values of the
    earlier tokens. NumPy draws the tokens on the CPU, so torch's random numbers are left alone, and the same seed gives
    the same text with either library, as long as their logits agree.

    Args:
        model: such as :class:`attnlib.torch.CausalLM` or that of attnlib.numpy.
        tokens: the prompt, T whole numbers ``(T,)`` with T at least 1: a list, an array or a tensor.
        max_new_tokens: the largest number of tokens to generate.
        temperature: as in :func:`~attnlib.sampling_probabilities`; 0 always takes the most probable token.
        top_k: how many tokens to keep, as in :func:`~attnlib.sampling_probabilities`.
        top_p: how much probability to keep.
        min_p: how probable a token must be, relative to the most probable one.
        seed: a whole number, with which the same model writes the same text again; ``None`` for a different text each
            time.
        stop: tokens after which the text ends, or a function that is called with the list of all tokens generated so
            far, and returns whether the text ends. The last token is yielded, too.

    Returns:
        An iterator of :class:`~attnlib.generation.GeneratedToken`, each with its probabilities ``(V,)``. The arguments
        are checked immediately; the model runs when you iterate.

    Raises:
        TypeError: a token or a setting is not a number, or ``stop`` is neither a collection nor a function.
        ValueError: the prompt is empty, a token is not in the vocabulary, a setting is out of range, or, while
            iterating, logits are nan or infinite.

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
    prompt = check_prompt(tokens, vocab_size(model))
    count = check_int("max_new_tokens", max_new_tokens, 0)
    return _generate(model, prompt, count, settings, random_numbers(seed), check_stop(stop))


def _generate(
    model: LanguageModel, read: list[int], count: int, settings: SamplingSettings, rng: np.random.Generator, end: IsEnd
) -> Iterator[GeneratedToken]:
    reader, written = Reader(model, model.new_cache()), list[int]()
    for _ in range(count):
        (logits,) = reader.next_logits(read, 1)
        token, p = choose(logits, settings, rng)
        written.append(token)
        yield GeneratedToken(token, p)
        if end(written):
            return
        read = [token]


class Reader:
    """A model that reads a text piece by piece, and a cache of what it has read."""

    def __init__(self, model: LanguageModel, cache: list[KVCache]) -> None:
        self.model, self.cache = model, cache
        self._like = next(iter(model.parameters()))
        self._xp, self._device = namespace_and_device(self._like)

    def next_logits(self, tokens: list[int], last: int) -> NDArray[Any]:
        """Let the model read tokens, and return the logits (T', V) after the last T' of them, on the CPU."""
        # The mode is entered anew for each step: across a yield it would apply to the caller as well.
        with _inference_mode(self._like):
            read = self._xp.asarray([tokens], device=self._device)
            logits = self.model(read, cache=self.cache, logits_to_keep=last)
        logits = _as_numpy(logits)[0]
        if not all(math.isfinite(row[row.argmax()]) for row in logits):
            raise ValueError(
                f"the largest logit is {logits.max()}, but a finite number is needed: check the model's parameters for "
                "nan, or use a dtype with a larger range, such as float32"
            )
        return logits


def vocab_size(model: LanguageModel) -> int | None:
    """Return the size of a model's vocabulary, or None if the model has no ``config`` that gives it."""
    return getattr(getattr(model, "config", None), "vocab_size", None)


def check_prompt(tokens: Prompt, size: int | None) -> list[int]:
    """Return the tokens of a prompt as a list, after checking that there is one and that the model knows them all."""
    refuse_subclass("tokens", tokens)
    if getattr(tokens, "ndim", 1) != 1:
        raise ValueError(f"tokens has shape {shape(tokens)}, but (T,) is needed: one text, tokens[0] of a batch")
    if isinstance(tokens, (str, bytes)) or not hasattr(tokens, "__iter__"):
        raise TypeError(f"tokens is {tokens!r}, but whole numbers are needed, such as tokenizer.encode(text).ids")
    prompt = [check_int("token", token, 0) for token in _plain(tokens)]
    if not prompt:
        raise ValueError("tokens is empty, but a model needs at least one to continue: begin with its start token")
    if size is not None and max(prompt) >= size:
        raise ValueError(f"token {max(prompt)} is not in the vocabulary, whose tokens are 0 to {size - 1}")
    return prompt


def check_stop(stop: Stop) -> IsEnd:
    """Return a function that says whether the text ends after the generated tokens."""
    if callable(stop):
        return stop
    if isinstance(stop, (str, bytes)) or not hasattr(stop, "__iter__"):
        raise TypeError(
            f"stop is {stop!r}, but tokens such as [2], or a function of the generated tokens, is needed: to end at a "
            "string, pass a function that decodes the tokens and looks for it"
        )
    last = {check_int("a token of stop", token, 0) for token in _plain(stop)}
    return lambda written: written[-1] in last


def _plain(numbers: Any) -> Any:
    """Return the numbers of an array or tensor as Python's own, in a list, and anything else unchanged."""
    return numbers.tolist() if hasattr(numbers, "tolist") else numbers


def random_numbers(seed: int | None) -> np.random.Generator:
    """Return a generator of random numbers, after checking the seed."""
    return np.random.default_rng(None if seed is None else check_int("seed", seed, 0))


def _as_numpy(x: Array) -> NDArray[Any]:
    """Return an array or tensor as a NumPy array, in float64 if NumPy may lack the dtype."""
    if is_torch(x):
        x = x.cpu()  # first: not every device has float64
        x = (x.double() if x.dtype.itemsize < 4 else x).numpy()
    return np.asarray(x)


def _inference_mode(like: Array) -> AbstractContextManager[Any]:
    return imported_torch().inference_mode() if is_torch(like) else nullcontext()
