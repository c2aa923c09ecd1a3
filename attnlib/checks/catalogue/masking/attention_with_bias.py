"""attention_with_bias(query, key, value, mask, bias): masked attention in which a bias is added to the scores.

The notebook asks for it as the mended version of a function that adds missing dimensions of the mask after its first.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.masking import masked_attention
from attnlib.checks.catalogue.masking.masked_attention import NOTHING, NUMBERS, SHAPES, UNCHANGED
from attnlib.checks.catalogue.masking.sections import BY_HAND, EMPTY, FINITE, KINDS, NOT_AFTER, POLARITY
from attnlib.checks.catalogue.self_attention.sections import SCALE
from attnlib.checks.exercise import ATTENTION_FUNCTIONS, Exercise, Mistakes

MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases of masked attention, each with a bias: (T, S) for all, or one for each sequence."""
    for case in masked_attention.inputs(rng):
        if case.criterion not in (NUMBERS, SHAPES, NOTHING, UNCHANGED):
            continue
        query, key = case.inputs["query"], case.inputs["key"]
        shape = (*query.shape[:-1], key.shape[-2]) if case.criterion == NOTHING else (query.shape[-2], key.shape[-2])
        bias = (2 * rng.normal(size=shape)).astype(query.dtype)
        yield Case(case.name, case.criterion, case.inputs | {"bias": bias}, unchanged=case.unchanged)


def _scores(query, key):
    return attnlib.scaled_dot(query, key)


def _attend(scores, value, mask):
    weights = attnlib.softmax(np.where(mask, scores, -np.inf))
    return weights @ value, weights


def attention_with_bias(query: Any, key: Any, value: Any, mask: Any, bias: Any) -> Any:
    """Average the values, weighted by the softmax of the scores plus the bias where the mask is True."""
    return _attend(_scores(query, key) + bias, value, mask)


@MISTAKES.add(
    "missing dimensions come after the first one",
    hint="Write the shapes of the scores and of the mask one below the other, aligned on the right, for a batch of 4 "
    "sentences of 4 words. Which dimension of the mask meets the sentences?",
    more="Print the weights of the first and of the last sentence of a batch that shares one causal mask. Which row of "
    "the mask did each of them get?",
    section=KINDS,
)
def dimensions_after_first(query, key, value, mask, bias):
    """Where the mask has fewer dimensions than the scores, your code adds them after its first one, not in front."""
    scores = _scores(query, key) + bias
    while mask.ndim < scores.ndim:
        mask = np.expand_dims(mask, 1)
    return _attend(scores, value, mask)


@MISTAKES.add(
    "the bias is ignored",
    hint="Where does `bias` enter your scores?",
    more="Call your function with a bias of 0 and with one of 100 for a single key. Which weight should change?",
    section=BY_HAND,
)
def bias_ignored(query, key, value, mask, bias):
    """The function takes a bias, but its result is the same with and without it."""
    return _attend(_scores(query, key), value, mask)


@MISTAKES.add(
    "the bias is scaled as well",
    hint="By what is a dot product divided, and is the bias a dot product?",
    more="Print your score of one query with one key, beside the same without the bias. Is the difference the bias?",
    section=SCALE,
)
def bias_scaled(query, key, value, mask, bias):
    """The bias is added before the division by the root of the width. It should be added afterwards."""
    return _attend(_scores(query, key) + bias / query.shape[-1] ** 0.5, value, mask)


@MISTAKES.add(
    "the bias is subtracted",
    hint="Should a key with a large bias get more weight or less?",
    more="Call your function with a bias of 100 for a single key. Which key gets nearly all the weight?",
    section=BY_HAND,
)
def bias_subtracted(query, key, value, mask, bias):
    """The bias is subtracted from the scores. It should be added."""
    return _attend(_scores(query, key) - bias, value, mask)


@MISTAKES.add(
    "the bias is added after the softmax",
    hint="Do the weights of a row still sum to 1 after the bias has been added?",
    more="The bias belongs to the scores. Which comes first in your code, the softmax or the bias?",
    section=NOT_AFTER,
)
def bias_after_softmax(query, key, value, mask, bias):
    """The bias is added to the weights, which then no longer sum to 1. It should be added to the scores."""
    _, weights = _attend(_scores(query, key), value, mask)
    weights = weights + bias
    return weights @ value, weights


@MISTAKES.add(
    "True and False have changed places",
    hint="Take the first query of the smallest case. Which keys does the mask let it see, and which got a weight?",
    more="The zeros of the weights should be where the mask is False. Which of the two does your code hide?",
    section=POLARITY,
)
def inverted(query, key, value, mask, bias):
    """Your queries see exactly what is forbidden. True means “may attend”, and False hides a key."""
    return _attend(_scores(query, key) + bias, value, ~mask)


@MISTAKES.add(
    "the mask is not used",
    hint="What are your weights where the mask is False?",
    more="Print the weights of the smallest case beside the mask. Which of your lines uses the mask?",
    section=BY_HAND,
)
def mask_ignored(query, key, value, mask, bias):
    """Every query attends to every key, whatever the mask says."""
    return _attend(_scores(query, key) + bias, value, True)


@MISTAKES.add(
    "the scores are not scaled",
    hint="What is a dot product divided by before anything is added to it?",
    more="The code that you were given scales correctly. Compare that line with yours.",
    section=SCALE,
)
def no_scale(query, key, value, mask, bias):
    """The dot products are not divided by the root of the width."""
    return _attend(attnlib.dot(query, key) + bias, value, mask)


@MISTAKES.add(
    "a query with nothing to attend to gets nan",
    hint="What is the sum of the exponentials in a row where every score is minus infinity?",
    more="That sum is 0, and 0 divided by 0 is nan. Which weights should such a query have?",
    section=EMPTY,
)
def empty_is_nan(query, key, value, mask, bias):
    """A query that may attend to nothing gets nan, from 0/0. Its weights should be 0, and so should its context."""
    scores = np.where(mask, _scores(query, key) + bias, -np.inf)
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return weights @ value, weights


@MISTAKES.add(
    "a large negative number instead of minus infinity",
    hint="A query may attend to nothing, so every score in its row is the same large negative number. What does the "
    "softmax make of that?",
    more="Equal scores give equal weights, however low they are. What weights should a query get if it may attend "
    "to nothing?",
    section=FINITE,
)
def finite(query, key, value, mask, bias):
    """A query that may attend to nothing attends to everything. Its weights and its context should be 0."""
    weights = attnlib.softmax(np.where(mask, _scores(query, key) + bias, -1e9))
    return weights @ value, weights


EXERCISE = Exercise(
    name="attention_with_bias",
    reference=attention_with_bias,
    outputs={"context": ("T", "D_v"), "weights": ("T", "S")},
    rubric={SHAPES: 6, NUMBERS: 2, NOTHING: 2, UNCHANGED: 1},  # the numbers of one sentence come right with the bug
    section=KINDS,
    advice="Print the shapes of the scores, the bias and the mask just before they are put together, for a batch that "
    "shares one mask. Align them on the right: which dimensions meet?",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    backends=("numpy",),
    solved_by=ATTENTION_FUNCTIONS,
)
