"""sample(logits, rng, *, temperature, top_k, top_p): draw a token. The check counts how often it draws each token.

Every case draws ``DRAWS`` times. A frequency differs from its probability by more than ``TOLERANCE`` with a probability
of at most 2 exp(-2 DRAWS TOLERANCE²), by Hoeffding's inequality. A token of probability p is never drawn with
probability (1 - p)^DRAWS. ``tests/checks/test_call_sampler.py`` adds both up over all tokens of all cases: a right
answer fails with a probability below one in a million, in whatever way it draws.
"""

import bisect
import inspect
from collections.abc import Iterator
from functools import wraps
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case, Implementation
from attnlib.checks.calling.sampling import call_distribution, call_sampler
from attnlib.checks.catalogue.decoder.sections import CUTS, TEMPERATURE
from attnlib.checks.exercise import Exercise, Mistakes

SOFTMAX, SCALED, TOP_K, TOP_P = "the softmax", "the temperature", "top-k", "top-p"
SMALL, TOGETHER, UNCHANGED = "a small top-p", "all together", "inputs unchanged"
DRAWS, TOLERANCE = 1000, 0.1

# Probabilities whose order, and whose sums, are far enough from each other: drawing shows every mistake.
FIVE, SIX = (0.34, 0.26, 0.19, 0.13, 0.08), (0.30, 0.24, 0.17, 0.13, 0.09, 0.07)


def sampler(probabilities: Implementation) -> Implementation:
    """Make a function that draws a token of one that returns probabilities, or return a function that draws itself."""
    if "rng" in inspect.signature(probabilities).parameters:
        return probabilities

    def checked(logits: Any, **options: Any) -> Any:
        p = probabilities(logits, **options)
        if np.isnan(p).any():
            raise ValueError("Probabilities contain NaN")  # as NumPy's choice does
        return p

    known: dict[Any, list[float]] = {}  # thousands of draws in a row have the same arguments

    @wraps(probabilities)
    def draw(logits: Any, rng: np.random.Generator, **options: Any) -> int:
        key = logits.tobytes(), *options.items()
        if key not in known:
            known.clear()
            known[key] = np.cumsum(checked(logits, **options)).tolist()
        return min(bisect.bisect_right(known[key], rng.random()), len(logits) - 1)  # 10 times as fast as searchsorted

    draw.probabilities = checked  # type: ignore[attr-defined]
    return draw


MISTAKES = Mistakes(wrap=sampler)


@sampler
def sample(
    logits: Any, *, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Any:  # the probabilities, from which the decorator draws
    """Return the distribution of the next token."""
    return attnlib.sampling_probabilities(logits, temperature=temperature, top_k=top_k, top_p=top_p)


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: the softmax alone, temperatures, top-k, top-p, and all of them together."""

    def case(name, criterion, logits, unchanged=False, **options):
        setup = {"draws": DRAWS, "seed": int(rng.integers(2**32))}
        given = {"logits": np.asarray(logits)}
        return Case(name, criterion, given, options, setup, unchanged=unchanged, tolerance=TOLERANCE)

    yield case("logits log 1, log 2 and log 5", SOFTMAX, np.log([1.0, 2.0, 5.0]))
    yield case("6 logits of both signs", SOFTMAX, _logits(rng, SIX))
    yield case("logits in float32", SOFTMAX, _logits(rng, FIVE).astype(np.float32))
    yield case("logits near 1000", SOFTMAX, _logits(rng, FIVE, shift=1000.0))
    yield case("a vocabulary of one token", SOFTMAX, [rng.normal()])
    yield from _temperatures(rng, case)
    yield from _top_k(rng, case)
    yield from _top_p(rng, case)
    both = _logits(rng, (0.38, 0.25, 0.16, 0.12, 0.09), last=2)  # of the first three: 0.48, 0.32 and 0.20
    yield case("top_k=3 and top_p=0.72", TOGETHER, both, top_k=3, top_p=0.72)
    peaked = _logits(rng, (0.6, 0.2, 0.12, 0.08), last=0)  # at temperature 2: 0.42, 0.24, 0.19 and 0.15
    yield case("temperature=2 and top_p=0.55", TOGETHER, peaked, temperature=2.0, top_p=0.55)
    cold = _logits(rng, (0.34, 0.27, 0.18, 0.12, 0.09), last=0)
    yield case("temperature=0.5, top_k=4 and top_p=0.9", TOGETHER, cold, temperature=0.5, top_k=4, top_p=0.9)
    yield case("temperature=0, top_k=2 and top_p=0.9", TOGETHER, _logits(rng, FIVE), temperature=0, top_k=2, top_p=0.9)
    kept = _logits(rng, FIVE, last=1)
    yield case("logits that must stay as they are", UNCHANGED, kept, unchanged=True, temperature=1.5, top_k=2)


def _temperatures(rng, case):
    """Yield the cases of the temperature alone."""
    yield case("temperature=0.35", SCALED, _logits(rng, (0.5, 0.3, 0.2)), temperature=0.35)
    yield case("temperature=3", SCALED, _logits(rng, (0.5, 0.3, 0.2)), temperature=3.0)
    yield case("temperature=0", SCALED, _logits(rng, SIX), temperature=0.0)
    tied = _logits(rng, FIVE)
    first, second = sorted(rng.choice(len(tied), 2, replace=False))
    tied[[first, second]] = tied.max() + 1.0
    yield case("temperature=0, and two largest logits", SCALED, tied, temperature=0.0)
    low = _logits(rng, (0.27, 0.26, 0.24, 0.23), shift=-500.0, jitter=False)
    yield case("temperature=0.1, and logits near -500", SCALED, low, temperature=0.1)


def _top_k(rng, case):
    """Yield the cases of top-k alone."""
    yield case("top_k=2", TOP_K, _logits(rng, SIX, last=5), top_k=2)
    yield case("top_k=1", TOP_K, _logits(rng, FIVE, last=0), top_k=1)
    yield case("top_k=5, as many as there are tokens", TOP_K, _logits(rng, FIVE), top_k=5)
    yield case("top_k=9, more than there are tokens", TOP_K, _logits(rng, FIVE), top_k=9)
    equal = _logits(rng, (0.3, 0.3, 0.2, 0.12, 0.08), jitter=False)
    yield case("top_k=3, and two equal logits among the first three", TOP_K, equal, top_k=3)


def _top_p(rng, case):
    """Yield the cases of top-p alone."""
    yield case("top_p=0.7", TOP_P, _logits(rng, (0.34, 0.27, 0.18, 0.12, 0.09), last=0), top_p=0.7)
    yield case("top_p=0.45", TOP_P, _logits(rng, (0.36, 0.24, 0.16, 0.13, 0.11), last=4), top_p=0.45)
    yield case("top_p=1", TOP_P, _logits(rng, FIVE), top_p=1.0)
    yield case("top_p=0.2, below the largest probability", SMALL, _logits(rng, FIVE, last=0), top_p=0.2)


def _logits(
    rng: np.random.Generator, probabilities, shift: float | None = None, jitter: bool = True, last: int | None = None
) -> Any:
    """Return logits of about these probabilities, in random order, with a random constant added.

    ``last`` says which of them the last token has: wrong answers may be right by luck if it is the wrong one.
    """
    p = np.array(probabilities)
    z = np.log(p * rng.uniform(0.97, 1.03, size=p.shape) if jitter else p)
    order = rng.permutation(len(z))
    if last is not None:
        order = np.append(order[order != last], last)
    return z[order] + (rng.normal() if shift is None else shift)


def _softmax(z):
    e = np.exp(z - z.max())
    return e / e.sum()


def _of_one(token, size):
    return np.arange(size) == token


def _kept(p, kept):
    p = np.where(kept, p, 0.0)
    return p / p.sum()


def _first(p, count):
    """Return True for the ``count`` most probable tokens."""
    return np.argsort(np.argsort(-p, kind="stable")) < count


def _nucleus(p, top_p):
    """Return how many of the most probable tokens top-p keeps."""
    sums = np.cumsum(np.sort(p)[::-1])
    return 1 + int((sums[:-1] < top_p).sum()) if top_p < 1 else len(p)


def _scaled(logits, temperature):
    z = np.asarray(logits, np.float64)
    return _of_one(z.argmax(), len(z)) * 1.0 if temperature == 0 else _softmax(z / temperature)


def _distribution(scale=_scaled, cut_k=None, cut_p=None):
    """Return what is right, with other functions in place of the three steps."""

    def probabilities(logits, temperature=1.0, top_k=None, top_p=None):
        p = scale(logits, temperature)
        if top_k is not None:
            p = cut_k(p, top_k) if cut_k else _kept(p, _first(p, top_k))
        if top_p is not None:
            p = cut_p(p, top_p) if cut_p else _kept(p, _first(p, _nucleus(p, top_p)))
        return p

    return probabilities


# The softmax and the temperature -----------------------------------------------------------------------------------


@MISTAKES.add(
    "always the most probable token",
    hint="Does your function draw anything? Call it ten times with the same logits.",
    more="With the logits log 1, log 2 and log 5, one of eight draws should give token 0.",
    section=TEMPERATURE,
)
def always_greedy(logits, temperature=1.0, top_k=None, top_p=None):
    """Each call returns the most probable token. That is right for the temperature 0; otherwise a token is drawn."""
    return _scaled(logits, 0)


@MISTAKES.add(
    "all tokens are equally frequent",
    hint="Where do your draws use the probabilities?",
    more="With the logits log 1, log 2 and log 5, five of eight draws should give token 2.",
    section=TEMPERATURE,
)
def uniform(logits, temperature=1.0, top_k=None, top_p=None):
    """Every token is drawn equally often. The probabilities have to go into the draw."""
    return _distribution(lambda z, t: _scaled(z, 0) if t == 0 else np.ones(len(z)) / len(z))(
        logits, temperature, top_k, top_p
    )


@MISTAKES.add(
    "each call makes a new generator",
    hint="How many generators of random numbers does your function make in ten calls?",
    more="A generator with the same seed gives the same first number, so each call draws the same token. Which "
    "generator is passed to your function?",
    section=TEMPERATURE,
)
def same_seed(logits, temperature=1.0, top_k=None, top_p=None):
    """A new generator is made in each call, always with the same seed, so that each call draws the same token.

    Use the one that is passed.
    """
    p = _distribution()(logits, temperature, top_k, top_p)
    return 1.0 * _of_one(np.random.default_rng(0).choice(len(p), p=p), len(p))


@MISTAKES.add(
    "the temperature is not used",
    hint="Call your function with two temperatures. Do the frequencies differ?",
    more="Dividing probabilities by a number and scaling them to sum to 1 changes nothing. What has to be divided?",
    section=TEMPERATURE,
)
def no_temperature(logits, temperature=1.0, top_k=None, top_p=None):
    """Your frequencies are the same at every temperature above 0. Divide the logits by it, before the softmax."""
    return _distribution(lambda z, t: _scaled(z, 0 if t == 0 else 1))(logits, temperature, top_k, top_p)


@MISTAKES.add(
    "the temperature is not used, not even 0",
    hint="Call your function with two temperatures. Do the frequencies differ?",
    more="What should come out at the temperature 0, and what becomes of a division by it?",
    section=TEMPERATURE,
)
def no_temperature_at_all(logits, temperature=1.0, top_k=None, top_p=None):
    """Your frequencies are the same at every temperature, even at 0, where the most probable token is wanted."""
    return _distribution(lambda z, t: _scaled(z, 1))(logits, temperature, top_k, top_p)


@MISTAKES.add(
    "multiplied by the temperature",
    hint="Does a high temperature make the distribution flatter or sharper?",
    more="At a temperature of 3, an improbable token should be drawn more often than at 1. Is it?",
    section=TEMPERATURE,
)
def multiplied_by_temperature(logits, temperature=1.0, top_k=None, top_p=None):
    """The logits are multiplied by the temperature, so a high one makes the distribution sharper. Divide by it."""
    return _distribution(lambda z, t: _scaled(z, 0 if t == 0 else 1 / t))(logits, temperature, top_k, top_p)


@MISTAKES.add(
    "multiplied by the temperature, which makes 0 uniform",
    hint="Does a high temperature make the distribution flatter or sharper?",
    more="At the temperature 0 all your logits become 0. Which token should be returned there?",
    section=TEMPERATURE,
)
def multiplied_even_by_zero(logits, temperature=1.0, top_k=None, top_p=None):
    """The logits are multiplied by the temperature: a high one makes the distribution sharper, and 0 makes it flat."""

    def scale(z, t):
        return _softmax(np.asarray(z, np.float64) * t)

    return _distribution(scale)(logits, temperature, top_k, top_p)


@MISTAKES.add(
    "the temperature 0 divides by 0",
    hint="What are the logits divided by at the temperature 0?",
    more="The limit of low temperatures is the most probable token. Treat 0 before you divide.",
    section=TEMPERATURE,
)
def divided_by_zero(logits, temperature=1.0, top_k=None, top_p=None):
    """At the temperature 0, your logits are divided by 0. Return the most probable token there."""
    return _distribution(lambda z, t: _softmax(np.asarray(z, np.float64) / t))(logits, temperature, top_k, top_p)


@MISTAKES.add(
    "temperature 0 returns the last of several largest logits",
    hint="If two logits are the largest, which of the two tokens does the task ask for?",
    more="Sorting in ascending order puts the last of equal numbers at the end. What does an argmax return?",
    section=TEMPERATURE,
)
def last_maximum(logits, temperature=1.0, top_k=None, top_p=None):
    """Among equally large logits, your function takes the last one at the temperature 0. Take the first."""

    def scale(z, t):
        return _scaled(np.asarray(z)[::-1], 0)[::-1] if t == 0 else _scaled(z, t)

    return _distribution(scale)(logits, temperature, top_k, top_p)


@MISTAKES.add(
    "temperature 0 draws among the largest logits",
    hint="If two logits are the largest, which of the two tokens does the task ask for?",
    more="At the temperature 0 the same logits should always give the same token. Do they?",
    section=TEMPERATURE,
)
def all_maxima(logits, temperature=1.0, top_k=None, top_p=None):
    """Among equally large logits, your function draws one at random at the temperature 0. Take the first."""

    def scale(z, t):
        return _kept(np.ones(len(z)), np.asarray(z) == np.max(z)) if t == 0 else _scaled(z, t)

    return _distribution(scale)(logits, temperature, top_k, top_p)


@MISTAKES.add(
    "the softmax overflows",
    hint="What is the exponential of 1000 in floating point, and what is subtracted to avoid it?",
    more="Subtract the largest logit from all of them, by hand. Do the probabilities change?",
    section=TEMPERATURE,
)
def overflow(logits, temperature=1.0, top_k=None, top_p=None):
    """For logits of usual size, your draws are right. For large ones, the exponential overflows, which leads to nan."""

    def scale(z, t):
        e = np.exp(np.asarray(z, np.float64) / (t or 1))
        return e / e.sum() if t else _scaled(z, 0)

    return _distribution(scale)(logits, temperature, top_k, top_p)


@MISTAKES.add(
    "the temperature comes after the cut",
    hint="Which probabilities does top-p add up: those before or after the temperature?",
    more="At a high temperature the distribution is flatter, so more tokens are needed for the same sum. How many does "
    "yours keep?",
    section=TEMPERATURE,
)
def temperature_last(logits, temperature=1.0, top_k=None, top_p=None):
    """Tokens are cut off at the temperature 1, and the rest is scaled afterwards. Apply the temperature first."""
    p = _distribution()(logits, 1.0, top_k, top_p)
    with np.errstate(divide="ignore"):
        return _scaled(np.log(p), temperature)


# Top-k ---------------------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "top_k is not used",
    hint="Call your function with top_k=1. How many different tokens do you get?",
    more="Print the probabilities from which you draw, with top_k=2. How many of them are above 0?",
    section=CUTS,
)
def no_top_k(logits, temperature=1.0, top_k=None, top_p=None):
    """All tokens are drawn, whatever top_k is. Only the k most probable ones should be."""
    return _distribution()(logits, temperature, None, top_p)


@MISTAKES.add(
    "the first k tokens are kept",
    hint="Which tokens are kept: the most probable ones, or those with the lowest numbers?",
    more="Let the most probable token be the last one, and call your function with top_k=1.",
    section=CUTS,
)
def first_k(logits, temperature=1.0, top_k=None, top_p=None):
    """The first k tokens of the vocabulary are kept. It should be the k most probable ones."""
    return _distribution(cut_k=lambda p, k: _kept(p, np.arange(len(p)) < k))(logits, temperature, top_k, top_p)


@MISTAKES.add(
    "the k least probable tokens are kept",
    hint="In which order does your sort put the logits?",
    more="Call your function with top_k=1. Do you get the token with the largest logit?",
    section=CUTS,
)
def last_k(logits, temperature=1.0, top_k=None, top_p=None):
    """The k least probable tokens are kept. The sort is ascending, so the most probable ones are at its end."""
    return _distribution(cut_k=lambda p, k: _kept(p, _first(-p, k)))(logits, temperature, top_k, top_p)


@MISTAKES.add(
    "one token too many is kept",
    hint="With top_k=1, how many different tokens do you get?",
    more="Is the k-th largest logit the first that you keep, or the first that you cut off?",
    section=CUTS,
)
def one_too_many(logits, temperature=1.0, top_k=None, top_p=None):
    """You keep k + 1 tokens. The k-th most probable is the last one to keep."""
    return _distribution(cut_k=lambda p, k: _kept(p, _first(p, k + 1)))(logits, temperature, top_k, top_p)


@MISTAKES.add(
    "one token too few is kept",
    hint="With top_k=2, how many different tokens do you get?",
    more="Is the k-th largest logit the last that you keep, or the first that you cut off?",
    section=CUTS,
)
def one_too_few(logits, temperature=1.0, top_k=None, top_p=None):
    """You keep k - 1 tokens (but at least one). The k-th most probable is the last one to keep."""
    return _distribution(cut_k=lambda p, k: _kept(p, _first(p, max(k - 1, 1))))(logits, temperature, top_k, top_p)


@MISTAKES.add(
    "logits are cut off by setting them to 0",
    hint="What is the exponential of 0?",
    more="A logit of 0 is a token like any other. Which logit has the probability 0?",
    section=CUTS,
)
def logits_set_to_zero(logits, temperature=1.0, top_k=None, top_p=None):
    """The logits that top-k excludes become 0, whose exponential is 1, so those tokens are still drawn."""
    z = np.asarray(logits, np.float64)
    if top_k is not None and temperature:
        z = np.where(_first(z, top_k), z, 0.0)
    return _distribution()(z, temperature, None, top_p)


@MISTAKES.add(
    "what top-k cuts off goes to the last token",
    hint="What do the probabilities from which you draw sum to, after the cut?",
    more="If they sum to less than 1, a random number can be above all of the sums. Which token does it give?",
    section=CUTS,
)
def rest_to_the_last(logits, temperature=1.0, top_k=None, top_p=None):
    """The probabilities no longer sum to 1 after top-k, and the last token of the vocabulary gets what is missing.

    Scale the remaining ones to sum to 1.
    """

    def cut(p, k):
        p = np.where(_first(p, k), p, 0.0)
        return p + (1 - p.sum()) * _of_one(len(p) - 1, len(p))

    return _distribution(cut_k=cut)(logits, temperature, top_k, top_p)


@MISTAKES.add(
    "the kept tokens are equally frequent",
    hint="After the cut, are the probabilities of the kept tokens still used?",
    more="With top_k=2 the more probable of the two should be drawn more often. Is it?",
    section=CUTS,
)
def kept_uniformly(logits, temperature=1.0, top_k=None, top_p=None):
    """Among the k kept tokens all are equally frequent. They should keep their proportions."""
    return _distribution(cut_k=lambda p, k: _kept(np.ones(len(p)), _first(p, k)))(logits, temperature, top_k, top_p)


@MISTAKES.add(
    "with top-k, the rank is returned in place of the token",
    hint="You draw from a sorted list. Which token is at the place that you have drawn?",
    more="With top_k=1 your function always returns 0. Which token is that?",
    section=CUTS,
)
def rank_after_top_k(logits, temperature=1.0, top_k=None, top_p=None):
    """With top_k, you return the place in the sorted list: 0 for the most probable token. Return the token there."""
    return _distribution(cut_k=lambda p, k: np.sort(_kept(p, _first(p, k)))[::-1])(logits, temperature, top_k, top_p)


# Top-p ---------------------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "top_p is not used",
    hint="Call your function with a top_p of 0.1. How many different tokens do you get?",
    more="Print the probabilities from which you draw, with top_p=0.45. How many of them are above 0?",
    section=CUTS,
)
def no_top_p(logits, temperature=1.0, top_k=None, top_p=None):
    """All tokens are drawn, whatever top_p is. Keep only as many of the most probable ones as it takes to reach it."""
    return _distribution()(logits, temperature, top_k, None)


@MISTAKES.add(
    "the token that crosses the threshold is cut off",
    hint="With the probabilities 0.5 and 0.3 and top_p=0.7, what do the kept ones have to sum to, at least?",
    more="Compare the sum *before* each token with top_p, or the sum that includes it. Which of the two keeps the "
    "token that crosses it?",
    section=CUTS,
)
def crossing_excluded(logits, temperature=1.0, top_k=None, top_p=None):
    """The token with which the sum reaches top_p is cut off, so the kept ones sum to less. Keep that token, too."""

    def cut(p, q):
        count = int((np.cumsum(np.sort(p)[::-1]) <= q + 1e-9).sum())
        return _kept(p, _first(p, max(count, 1)))

    return _distribution(cut_p=cut)(logits, temperature, top_k, top_p)


@MISTAKES.add(
    "top-p keeps one token too many",
    hint="With the probabilities 0.5, 0.3 and 0.2 and top_p=0.7, how many tokens reach it together?",
    more="Which is the first token whose sum is at least top_p? Is it the last one that you keep?",
    section=CUTS,
)
def nucleus_one_too_many(logits, temperature=1.0, top_k=None, top_p=None):
    """Your set reaches top_p even without its last token. Keep the smallest set that reaches it."""
    return _distribution(cut_p=lambda p, q: _kept(p, _first(p, _nucleus(p, q) + 1)))(logits, temperature, top_k, top_p)


@MISTAKES.add(
    "top-p begins with the least probable tokens",
    hint="In which order do you add the probabilities up?",
    more="Call your function with a small top_p. It should return the most probable token only.",
    section=CUTS,
)
def nucleus_from_below(logits, temperature=1.0, top_k=None, top_p=None):
    """The probabilities are added up from the smallest, so the least probable tokens are kept."""

    def cut(p, q):
        sums = np.cumsum(np.sort(p[p > 0]))
        return _kept(p, _first(np.where(p > 0, -p, -np.inf), 1 + int((sums[:-1] < q).sum())))

    return _distribution(cut_p=cut)(logits, temperature, top_k, top_p)


@MISTAKES.add(
    "the probabilities are added up in the order of the vocabulary",
    hint="In which order do you add the probabilities up?",
    more="Let the most probable token be the last one, and call your function with a small top_p.",
    section=CUTS,
)
def not_sorted(logits, temperature=1.0, top_k=None, top_p=None):
    """You add the probabilities up in the order of the vocabulary. Begin with the most probable token."""

    def cut(p, q):
        return _kept(p, np.cumsum(p) - p < q)

    return _distribution(cut_p=cut)(logits, temperature, top_k, top_p)


@MISTAKES.add(
    "top_p is taken for the smallest probability",
    hint="Is top_p compared with single probabilities, or with their sum?",
    more="With top_p=0.7, a set of three tokens can be right though none of them has a probability of 0.3.",
    section=CUTS,
)
def threshold(logits, temperature=1.0, top_k=None, top_p=None):
    """You keep tokens whose own probability is at least 1 - top_p. The sum of the kept ones has to reach top_p."""

    def cut(p, q):
        return _kept(p, (p >= 1 - q) | (p == p.max()))

    return _distribution(cut_p=cut)(logits, temperature, top_k, top_p)


@MISTAKES.add(
    "top-p compares with the largest probability, as min-p does",
    hint="Is top_p compared with single probabilities, or with their sum?",
    more="You keep the tokens nearly as probable as the first. What do their probabilities sum to?",
    section=CUTS,
)
def min_p(logits, temperature=1.0, top_k=None, top_p=None):
    """You keep tokens that are at least top_p times as probable as the first. That is min-p, another rule."""
    return _distribution(cut_p=lambda p, q: _kept(p, p >= q * p.max()))(logits, temperature, top_k, top_p)


@MISTAKES.add(
    "what top-p cuts off goes to the last token",
    hint="What do the probabilities from which you draw sum to, after top-p?",
    more="If they sum to less than 1, a random number can be above all of the sums. Which token does it give?",
    section=CUTS,
)
def rest_of_top_p_to_the_last(logits, temperature=1.0, top_k=None, top_p=None):
    """The probabilities no longer sum to 1 after top-p, and the last token of the vocabulary gets what is missing."""

    def cut(p, q):
        p = np.where(_first(p, _nucleus(p, q)), p, 0.0)
        return p + (1 - p.sum()) * _of_one(len(p) - 1, len(p))

    return _distribution(cut_p=cut)(logits, temperature, top_k, top_p)


@MISTAKES.add(
    "with top-p, the rank is returned in place of the token",
    hint="You draw from a sorted list. Which token is at the place that you have drawn?",
    more="With a small top_p your function always returns 0. Which token is that?",
    section=CUTS,
)
def rank_after_top_p(logits, temperature=1.0, top_k=None, top_p=None):
    """With top_p, you return the place in the sorted list: 0 for the most probable token. Return the token there."""

    def cut(p, q):
        return np.sort(_kept(p, _first(p, _nucleus(p, q))))[::-1]

    return _distribution(cut_p=cut)(logits, temperature, top_k, top_p)


@MISTAKES.add(
    "top-p counts what top-k has cut off",
    hint="After top-k, what do the remaining probabilities sum to when you compare them with top_p?",
    more="With top_k=3 and top_p=0.72, scale the three to sum to 1. How many of them reach 0.72?",
    section=CUTS,
)
def top_p_first(logits, temperature=1.0, top_k=None, top_p=None):
    """The sums that you compare with top_p are those of the whole distribution.

    Top-k comes first, and what it leaves is scaled to sum to 1.
    """
    p = _distribution()(logits, temperature)
    counts = [] if top_k is None else [top_k]
    counts += [] if top_p is None else [_nucleus(p, top_p)]
    return _kept(p, _first(p, min(counts))) if counts else p


@MISTAKES.add(
    "top_k and top_p are never used together",
    hint="What does your function do if both top_k and top_p are given?",
    more="With top_k=3 and top_p=0.72, top-k keeps three tokens, and top-p as many of these as reach 0.72.",
    section=CUTS,
)
def either_or(logits, temperature=1.0, top_k=None, top_p=None):
    """If top_k is given, top_p is ignored. Both apply, one after the other."""
    return _distribution()(logits, temperature, top_k, None if top_k is not None else top_p)


# What comes back -----------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "the probabilities are returned",
    hint="What should be returned: a distribution, or a token that was drawn from it?",
    more="Print what your function returns. The task asks for one whole number.",
    section=TEMPERATURE,
)
def probabilities_returned(logits, rng, temperature=1.0, top_k=None, top_p=None):
    """Your function returns the distribution. It should draw a token from it and return its number."""
    return _distribution()(logits, temperature, top_k, top_p)


@MISTAKES.add(
    "an array of one token is returned",
    hint="Is what you return a number, or an array that holds one?",
    more="Print the result and its shape. With a size of 1 you get an array; without a size, a number.",
    section=TEMPERATURE,
)
def array_returned(logits, rng, temperature=1.0, top_k=None, top_p=None):
    """Your function returns an array of shape (1,). The task asks for the token itself, a whole number."""
    p = _distribution()(logits, temperature, top_k, top_p)
    return rng.choice(len(p), size=1, p=p)


EXERCISE = Exercise(
    name="sample",
    reference=sample,
    outputs={"drawn": ("V",), "frequencies": ("V",)},
    rubric={SOFTMAX: 3, SCALED: 2, TOP_K: 2, TOP_P: 2, SMALL: 1, TOGETHER: 1, UNCHANGED: 1},
    section=TEMPERATURE,
    advice="Print the probabilities from which you draw, just before you draw: they should be at least 0 and sum to 1. "
    "Compare them with the expected frequencies of the case above.",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    call=call_sampler,
    call_exact=call_distribution,
    backends=("numpy",),
    solved_by=(
        "attnlib.sampling_probabilities",
        "attnlib.generate",
        "torch.multinomial",
        "torch.distributions.Categorical",
    ),
)
