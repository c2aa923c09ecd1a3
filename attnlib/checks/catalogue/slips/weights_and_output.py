"""weights_and_output(query, key, value, *, scale=None): the weights of attention, and the averages of the values.

The notebook asks for it as the mended version of a published example, which returns the weights for the averages.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.draw_qkv import draw_qkv
from attnlib.checks.catalogue.slips.sections import NO_VALUES, SHIFT, WHICH_ROOT, WRONG_ROOT
from attnlib.checks.exercise import ATTENTION_FUNCTIONS, Exercise, Mistakes

NUMBERS, SCALES, BATCHES = "the numbers", "a scale of your own", "batches"
LARGE, UNCHANGED = "large scores", "inputs unchanged"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: one query worked by hand, then other widths, a scale, batches, and large scores."""
    hand = {
        "query": np.array([[1.0]]),
        "key": np.array([[np.log(3.0)], [0.0]]),
        "value": np.array([[8.0, 0.0, 4.0], [0.0, 4.0, 4.0]]),
    }
    yield Case("one query whose scores are log 3 and 0", NUMBERS, hand)
    yield Case("4 queries, 7 keys of width 6, values of width 3", NUMBERS, draw_qkv(rng, (), 4, 7, 6, 3))
    yield Case("3 queries, 2 keys of width 9, values of width 5", NUMBERS, draw_qkv(rng, (), 3, 2, 9, 5))
    yield Case("3 queries, 3 keys and 3 values of width 3", NUMBERS, draw_qkv(rng, (), 3, 3, 3, 3))
    yield Case("scale=0.3", SCALES, draw_qkv(rng, (), 3, 5, 7, 2), {"scale": 0.3})
    yield Case("a batch of 5 (T=3, S=7, D=4)", BATCHES, draw_qkv(rng, (5,), 3, 7, 4, 6))
    yield Case("leading dimensions (2, 3)", BATCHES, draw_qkv(rng, (2, 3), 4, 5, 6, 2))
    large = draw_qkv(rng, (), 3, 4, 5, 2)
    large["query"] += np.array([[3000.0], [-3000.0], [0.0]])
    large["key"] = 0.01 * large["key"] + np.array([[1.0], [1.5], [0.5], [1.49]])
    yield Case("scores of several thousand, one query positive, one negative", LARGE, large)
    yield Case("inputs that must stay as they are", UNCHANGED, draw_qkv(rng, (), 3, 4, 2, 5), unchanged=True)


def weights_and_output(query: Any, key: Any, value: Any, *, scale: float | None = None) -> Any:
    """Return the weights of the keys for each query, and the averages of the values with these weights."""
    weights = attnlib.softmax(attnlib.scaled_dot(query, key, scale=scale))
    return weights, weights @ value


def _divided_by(divisor, query, key, value, scale):
    return weights_and_output(query, key, value, scale=1 / divisor if scale is None else scale)


@MISTAKES.add(
    "divided by 2, whatever the width is",
    hint="The page divides by the root of 4, the width of its words. How wide are the vectors of which it takes dot "
    "products?",
    more="Call your function with keys of width 9. By what should it divide, and by what does it?",
    section=WHICH_ROOT,
)
def scaled_by_two(query, key, value, *, scale=None):
    """The scores are divided by 2, as on the page. The root of the width of the keys belongs there."""
    return _divided_by(2.0, query, key, value, scale)


@MISTAKES.add(
    "scaled by the width of the values",
    hint="The scores are dot products of queries and keys. Does the width of the values enter there?",
    more="There are two widths, D and D_v. Which of them says how many products a score adds up?",
    section=WHICH_ROOT,
)
def scaled_by_value_width(query, key, value, *, scale=None):
    """The scores are divided by the root of the width of the values. It is the width of the keys that counts."""
    return _divided_by(value.shape[-1] ** 0.5, query, key, value, scale)


@MISTAKES.add(
    "scaled by the number of keys",
    hint="Write the shape of the keys with letters. Which of them is under your root?",
    more="Give the function nine keys of width 4, then four keys of width 9. By what does it divide the scores?",
    section=WRONG_ROOT,
)
def scaled_by_keys(query, key, value, *, scale=None):
    """The scores are divided by the root of S, the number of keys. The width D of the vectors belongs there."""
    return _divided_by(key.shape[-2] ** 0.5, query, key, value, scale)


@MISTAKES.add(
    "the scores are not scaled",
    hint="What is a dot product divided by, and how does that depend on the width D?",
    more="The divisor needs another number, but it has to stay.",
    section=WHICH_ROOT,
)
def no_scale(query, key, value, *, scale=None):
    """The dot products go into the softmax unscaled, so the weights are sharper than they should be."""
    return _divided_by(1.0, query, key, value, scale)


@MISTAKES.add(
    "the scale is ignored",
    hint="What does your function do with the argument `scale`?",
    more="Call it twice, with two different scales. Which line should make the results differ?",
    section=WHICH_ROOT,
)
def scale_ignored(query, key, value, *, scale=None):
    """The function takes the argument `scale`, but the scores are the same whatever it is."""
    return weights_and_output(query, key, value)


@MISTAKES.add(
    "the weights are returned twice",
    hint="Which of the three arguments does your second result not depend on?",
    more="Take values that are wider than there are keys. Which shape should the second result have?",
    section=NO_VALUES,
)
def weights_twice(query, key, value, *, scale=None):
    """Both results are the weights. The second one should be the averages of the values."""
    weights, _ = weights_and_output(query, key, value, scale=scale)
    return weights, weights


@MISTAKES.add(
    "the averages come first",
    hint="In which order does the task ask for the two results?",
    more="Print the shapes of your two results for 7 keys and values of width 3. Which one is the table of weights?",
    section=NO_VALUES,
)
def averages_first(query, key, value, *, scale=None):
    """The two results are right, but in the wrong order: the weights should come first."""
    weights, output = weights_and_output(query, key, value, scale=scale)
    return output, weights


@MISTAKES.add(
    "the softmax runs over the queries",
    hint="Which numbers of your table of weights sum to 1: those of a row, or those of a column?",
    more="With one query, a softmax over the queries makes every weight 1. Which axis counts the keys?",
    section=SHIFT,
)
def softmax_over_queries(query, key, value, *, scale=None):
    """The columns of weights sum to 1. Each query should divide its weight among the keys, so the rows should."""
    weights = attnlib.softmax(attnlib.scaled_dot(query, key, scale=scale), -2)
    return weights, weights @ value


@MISTAKES.add(
    "large scores overflow",
    hint="What is the exponential of 3000, and what can you subtract from all scores of a row without changing its "
    "softmax?",
    more="Subtract from each row its own maximum before you take exponentials.",
    section=SHIFT,
)
def overflow(query, key, value, *, scale=None):
    """The exponentials of large scores overflow, as on the page, and the results are nan."""
    with np.errstate(all="ignore"):
        e = np.exp(attnlib.scaled_dot(query, key, scale=scale))
        weights = e / e.sum(axis=-1, keepdims=True)
        return weights, weights @ value


EXERCISE = Exercise(
    name="weights_and_output",
    reference=weights_and_output,
    outputs={"weights": ("T", "S"), "output": ("T", "D_v")},
    rubric={NUMBERS: 8, SCALES: 3, BATCHES: 4, LARGE: 3, UNCHANGED: 2},
    section=NO_VALUES,
    advice="Take one query and two keys by hand. Print the dot products, the divisor, the scores, the weights and the "
    "averages in your function. Which is the first to differ from what you have on paper?",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    backends=("numpy",),
    solved_by=ATTENTION_FUNCTIONS,
)
