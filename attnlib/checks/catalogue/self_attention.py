"""self_attention(x), with the scaled dot product as score."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import attnlib
from attnlib.checks.catalogue import attention as of_attention
from attnlib.checks.catalogue.sections import ATTENTION, PERMUTATION, WEIGHTED_SUM
from attnlib.checks.exercise import Case, Exercise, Mistake, Mistakes

NUMBERS, BATCHES, LARGE, UNCHANGED = "the numbers", "batches", "large scores", "inputs unchanged"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: two words worked by hand, then T words of width D, batches, size."""
    root = np.sqrt(np.sqrt(2.0) * np.log(3.0))  # so that the scores are log 3 with itself and 0 with the other
    yield Case("two words at right angles, each with score log 3 to itself", NUMBERS, {"x": root * np.eye(2)})
    yield Case("5 words of width 4", NUMBERS, {"x": rng.normal(size=(5, 4))})
    yield Case("a single word", NUMBERS, {"x": rng.normal(size=(1, 3))})
    yield Case("words in float32", NUMBERS, {"x": rng.normal(size=(4, 3)).astype(np.float32)})
    yield Case("a batch of 2 (T=5, D=4)", BATCHES, {"x": rng.normal(size=(2, 5, 4))})
    yield Case("leading dimensions (2, 3)", BATCHES, {"x": rng.normal(size=(2, 3, 5, 4))})
    large = 0.1 * rng.normal(size=(4, 3)) + np.array([[90.0, 0, 0], [0, 1, 0], [-80, 0, 0], [0, 0, 2]])
    yield Case("words some of which have scores of several thousand", LARGE, {"x": large})
    yield Case("words that must stay as they are", UNCHANGED, {"x": rng.normal(size=(3, 2))}, unchanged=True)


def _with_itself(mistake: Mistake) -> Mistake:
    """Return a mistake of ``attention`` as one of ``self_attention``."""

    def implementation(x):
        return mistake.implementation(x, x, x)

    return replace(mistake, implementation=implementation)


@MISTAKES.add(
    "the weights are transposed in the sum",
    hint="Row i of the weights belongs to query i. Which of its numbers multiplies word j?",
    section=WEIGHTED_SUM,
)
def transposed_in_sum(x):
    """The weights are right, but the sum uses them by columns: column i of the weights was used where row i belongs."""
    _, weights = attnlib.self_attention(x)
    return weights.swapaxes(-1, -2) @ x, weights


@MISTAKES.add(
    "a word may not attend to itself",
    hint="Does the formula leave anyone out?",
    section=ATTENTION,
)
def diagonal_masked(x):
    """Every word attends to all others, but not to itself. In self-attention it may, and mostly does."""
    return attnlib.self_attention(x, mask=~np.eye(x.shape[-2], dtype=bool))


@MISTAKES.add(
    "a word may not attend to later words",
    hint="Does the formula look at the order of the words?",
    section=PERMUTATION,
)
def causal(x):
    """Later words are hidden from earlier ones: that is a causal mask, which this exercise does not ask for."""
    return attnlib.self_attention(x, mask=np.tri(x.shape[-2], dtype=bool))


@MISTAKES.add(
    "the words themselves are added",
    hint="Is the context of a word the average alone, or the average plus the word?",
    section=WEIGHTED_SUM,
)
def residual(x):
    """The context is the weighted sum plus the word itself. The sum alone is asked for."""
    context, weights = attnlib.self_attention(x)
    return context + x, weights


@MISTAKES.add(
    "components attend, not words",
    hint="The weights should be T by T: one number for each pair of words, not for each pair of components.",
    section=ATTENTION,
)
def over_components(x):
    """The components of the vectors attend to each other, not the words: x was transposed on the wrong side."""
    weights = attnlib.softmax(attnlib.dot(x.swapaxes(-1, -2), x.swapaxes(-1, -2)) / x.shape[-1] ** 0.5)
    return x @ weights, weights


SHARED = (
    "no-scale",
    "scaled-by-width",
    "multiplied-by-root",
    "scaled-by-keys",
    "scaled-after-softmax",
    "softmax-over-queries",
    "softmax-over-all",
    "no-softmax",
    "returns-scores",
    "overflow",
    "global-shift",
    "not-normalised",
    "sigmoid",
    "reversed-sign",
    "scaled-context",
    "swapped-results",
    "context-only",
    "cosine-scores",
    "hard",
    "uniform",
    "softmax-from-front",
    "width-from-front",
    "full-transpose",
)


EXERCISE = Exercise(
    name="self_attention",
    reference=attnlib.self_attention,
    outputs={"context": ("T", "D"), "weights": ("T", "T")},
    parts={NUMBERS: 4, BATCHES: 2, LARGE: 1, UNCHANGED: 1},
    section=ATTENTION,
    inputs=inputs,
    mistakes=(*MISTAKES, *(_with_itself(m) for m in of_attention.MISTAKES if m.id in SHARED)),
)
