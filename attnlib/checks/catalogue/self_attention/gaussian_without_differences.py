"""gaussian_without_differences(query, key, bandwidth=1.0): the same scores, without an array (..., T, S, D).

The notebook asks for it as the mended version of a function that subtracts the dot product once.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.calling.memory import LIMIT, call_within_memory
from attnlib.checks.catalogue.self_attention import gaussian
from attnlib.checks.catalogue.self_attention.dot import pair
from attnlib.checks.catalogue.self_attention.gaussian import NUMBERS
from attnlib.checks.catalogue.self_attention.sections import DOT, SIMILARITIES
from attnlib.checks.exercise import Exercise, Mistakes

MAX_BYTES = 0.5e6  # in the case below: two thirds of what the differences take, and 80 times what the scores take
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases of the Gaussian score, and one in which the differences would take too much memory."""
    yield from gaussian.inputs(rng)
    wide, limit = pair(rng, (32, 128), (24, 128)), {LIMIT: MAX_BYTES}
    yield Case("32 queries and 24 keys of width 128, without an array (32, 24, 128)", NUMBERS, wide, setup=limit)


def _terms(query, key):
    """Return the squared lengths of queries and of keys, and the dot products, each ready to be combined."""
    of_query, of_key = (query**2).sum(-1)[..., :, None], (key**2).sum(-1)[..., None, :]
    return of_query, of_key, attnlib.dot(query, key)


def gaussian_without_differences(query: Any, key: Any, bandwidth: float = 1.0) -> Any:
    """Return the negative half of the squared distances, in units of the squared bandwidth."""
    of_query, of_key, cross = _terms(query, key)
    return (2 * cross - of_query - of_key) / (2 * bandwidth**2)


@MISTAKES.add(
    "the cross term is not doubled",
    hint="Multiply out the square of a difference. How often does the cross term occur?",
    more="The squared distance of a vector from itself is 0: its squared length, plus the same again, minus what? Try "
    "the first key of the first case, and look at the law of cosines in the chapter.",
    section=DOT,
)
def single_mixed_term(query, key, bandwidth=1.0):
    """The square is multiplied out, but the dot product is subtracted once. It should occur twice."""
    of_query, of_key, cross = _terms(query, key)
    return (cross - of_query - of_key) / (2 * bandwidth**2)


@MISTAKES.add(
    "the cross term has the wrong sign",
    hint="Multiply out the square of a difference. Which sign does the cross term have?",
    more="The squared distance of a vector from itself is 0. In your function it is four times its squared length: try "
    "the first key of the first case.",
    section=DOT,
)
def plus_in_the_middle(query, key, bandwidth=1.0):
    """The dot product is added twice, which gives the distance to the negative of the key."""
    return gaussian_without_differences(query, -key, bandwidth)


@MISTAKES.add(
    "the cross term is missing",
    hint="Multiply out the square of a difference. There are three terms: which of them do you have?",
    more="The squared distance of a vector from itself is 0. In your function it is twice its squared length.",
    section=DOT,
)
def no_mixed_term(query, key, bandwidth=1.0):
    """Only the squared lengths are added. Without the dot product, nothing depends on the direction."""
    of_query, of_key, _ = _terms(query, key)
    return -(of_query + of_key) / (2 * bandwidth**2)


@MISTAKES.add(
    "the squared length of the key is missing",
    hint="Multiply out the square of a difference: how many terms are there?",
    more="Set the query to zeros. The squared distance to a key is then the squared length of the key. What is it in "
    "yours?",
    section=SIMILARITIES,
)
def no_length_of_key(query, key, bandwidth=1.0):
    """The squared length of the key is missing, so long keys seem near."""
    of_query, _, cross = _terms(query, key)
    return (2 * cross - of_query) / (2 * bandwidth**2)


@MISTAKES.add(
    "the squared length of the query is missing",
    hint="Multiply out the square of a difference: how many terms are there?",
    more="A softmax would not notice what is missing, since it is the same for all keys of a query. But the task asks "
    "for the scores: what is the score of a query with itself?",
    section=SIMILARITIES,
)
def no_length_of_query(query, key, bandwidth=1.0):
    """The squared length of the query is missing, so scores can be above 0."""
    _, of_key, cross = _terms(query, key)
    return (2 * cross - of_key) / (2 * bandwidth**2)


@MISTAKES.add(
    "the minus sign is missing",
    hint="Which of two keys should get the larger score, the nearer or the farther?",
    more="In the first case the scores are 0, -0.5 and -12.5: the key that is the query itself has the largest.",
    section=SIMILARITIES,
)
def no_minus(query, key, bandwidth=1.0):
    """A score says how similar two vectors are. Yours grows with their distance."""
    return -gaussian_without_differences(query, key, bandwidth)


@MISTAKES.add(
    "the factor 2 in the denominator is missing",
    hint="Two vectors at distance 1, with bandwidth 1: what is their score?",
    more="In the first case the second key is at distance 1, so its score is -1/2. You have -1.",
    section=SIMILARITIES,
)
def no_half(query, key, bandwidth=1.0):
    """The squared distances are divided by the squared bandwidth, but not by 2."""
    return 2 * gaussian_without_differences(query, key, bandwidth)


@MISTAKES.add(
    "the bandwidth is not squared",
    hint="With twice the bandwidth, by what factor does a score shrink?",
    more="A key at distance 5, with bandwidth 5, scores -1/2. You have -2.5.",
    section=SIMILARITIES,
)
def bandwidth_not_squared(query, key, bandwidth=1.0):
    """The squared distance is divided by the bandwidth itself. Both have to be squared, to be in the same unit."""
    return gaussian_without_differences(query, key) / bandwidth


@MISTAKES.add(
    "the bandwidth is ignored",
    hint="Ask with bandwidth 1 and with bandwidth 5: which of your numbers change?",
    more="The code that you were given divides both vectors by the bandwidth. What does yours do with it?",
    section=SIMILARITIES,
)
def bandwidth_ignored(query, key, bandwidth=1.0):
    """The scores are always those for bandwidth 1."""
    return gaussian_without_differences(query, key)


EXERCISE = Exercise(
    name="gaussian_without_differences",
    reference=gaussian_without_differences,
    outputs={"scores": ("T", "S")},
    rubric=gaussian.EXERCISE.rubric,
    section=DOT,
    advice="Take the query [2, 1] and the key [5, 5]. Write on paper the two squared lengths, the dot product and the "
    "squared distance, 25. Then print the same four numbers in your function.",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    call=call_within_memory,
    backends=("numpy",),
    solved_by=("attnlib.gaussian", *gaussian.EXERCISE.solved_by),
)
