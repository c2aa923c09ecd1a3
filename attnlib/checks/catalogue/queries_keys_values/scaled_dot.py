"""scaled_dot(query, key, *, scale=None)."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.duplicate_rows import with_duplicate_rows
from attnlib.checks.catalogue.queries_keys_values.sections import DIVISOR, HAND, PARTS, SHAPES, SQUARE_ROOT, TWO
from attnlib.checks.exercise import Exercise, Mistakes

NUMBERS, SCALES, BATCHES, UNCHANGED = "the numbers", "a scale of your own", "batches", "inputs unchanged"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: two queries of the chapter by hand, then T queries and S keys, scales, batches."""
    hand = {
        "query": np.array([[1.0, 0.0, 2.0], [2.0, 2.0, 2.0]]),
        "key": np.array([[0.0, 1.0, 1.0], [4.0, 4.0, 0.0], [2.0, 3.0, 1.0]]),
    }
    yield Case("the first two queries and the three keys of the chapter's example", NUMBERS, hand)
    yield Case("4 queries and 6 keys of width 5", NUMBERS, pair(rng, (), 4, 6, 5))
    yield Case("4 queries and 4 keys of width 7", NUMBERS, pair(rng, (), 4, 4, 7))
    yield Case("one query and one key of width 3", NUMBERS, pair(rng, (), 1, 1, 3))
    yield Case("vectors in float32", NUMBERS, pair(rng, (), 2, 5, 3, np.float32))
    repeated = with_duplicate_rows(pair(rng, (), 3, 5, 4), "query", "key")
    yield Case("a repeated query and a repeated key", NUMBERS, repeated)
    yield Case("scale=0.3", SCALES, pair(rng, (), 3, 5, 7), {"scale": 0.3})
    yield Case("scale=1", SCALES, pair(rng, (), 5, 3, 4), {"scale": 1})
    yield Case("scale=0.0", SCALES, pair(rng, (), 3, 4, 5), {"scale": 0.0})
    yield Case("a batch of 2 (T=3, S=5, D=4)", BATCHES, pair(rng, (2,), 3, 5, 4))
    heads = pair(rng, (2,), 7, 7, 3 * 5)
    split = {name: x.reshape(2, 7, 3, 5).swapaxes(1, 2) for name, x in heads.items()}
    yield Case(
        "leading dimensions (2, 3), cut out of larger arrays", BATCHES, split | {"query": split["query"][:, :, ::2]}
    )
    yield Case("inputs that must stay as they are", UNCHANGED, pair(rng, (), 3, 4, 2), unchanged=True)


def pair(rng, leading: tuple[int, ...], t: int, s: int, d: int, dtype=np.float64) -> dict[str, Any]:
    """Return random query and key: T queries and S keys of width D."""
    return {
        "query": rng.normal(size=(*leading, t, d)).astype(dtype),
        "key": rng.normal(size=(*leading, s, d)).astype(dtype),
    }


def times(query, key, scale, default):
    """Return dot products times a scale, or times a default where there is none."""
    return attnlib.dot(query, key) * (default if scale is None else scale)


@MISTAKES.add(
    "the scores are not scaled",
    hint="What is a dot product divided by, if no scale is given?",
    more="In the chapter's example the first dot product is 2. The first score is that number divided by the root of "
    "3. Print yours.",
    section=SQUARE_ROOT,
)
def no_scale(query, key, *, scale=None):
    """These are plain dot products. The wider the vectors, the larger they get; the division undoes that."""
    return times(query, key, scale, 1.0)


@MISTAKES.add(
    "divided by D, not by its square root",
    hint="The dot product has variance D. What is its spread, that is, its standard deviation?",
    more="Take the query (1, 1, 1, 1) and the same key: the dot product is 4, and the scaled one should be 2. Did you "
    "scale the query and the key, each by the whole factor?",
    section=SQUARE_ROOT,
)
def divided_by_width(query, key, *, scale=None):
    """The scores are divided by the width itself, so they are too small. Its square root belongs there."""
    return times(query, key, scale, 1 / query.shape[-1])


@MISTAKES.add(
    "multiplied by the square root of D",
    hint="The factor is there to keep scores small. Does yours make them larger or smaller?",
    more="Look at the line with the root: is it a factor or a divisor? The first dot product of the chapter's example "
    "is 2; yours should be less than that.",
    section=SQUARE_ROOT,
)
def multiplied_by_root(query, key, *, scale=None):
    """The dot products are multiplied by the root of the width, where they should be divided by it."""
    return times(query, key, scale, query.shape[-1] ** 0.5)


@MISTAKES.add(
    "the fourth root of D",
    hint="How often is a root taken in your code, and of what?",
    more="If you scale the query and the key separately, each of them needs the fourth root.",
    section=SQUARE_ROOT,
)
def fourth_root(query, key, *, scale=None):
    """The dot products are divided by the root of the root of the width: half of the scaling is missing."""
    return times(query, key, scale, query.shape[-1] ** -0.25)


@MISTAKES.add(
    "scaled by the number of keys",
    hint="Which two sizes does the array of keys have, and which of them is the width?",
    more="Write the shape of the keys on paper, with letters. Then say which letter your line takes the root of.",
    section=DIVISOR,
)
def scaled_by_keys(query, key, *, scale=None):
    """The scores are divided by the root of S, the number of keys. The width D of the vectors belongs there."""
    return times(query, key, scale, key.shape[-2] ** -0.5)


@MISTAKES.add(
    "scaled by the number of queries",
    hint="Which two sizes does the array of queries have, and which of them is the width?",
    more="Write the shape of the queries on paper, with letters. Then say which letter your line takes the root of.",
    section=DIVISOR,
)
def scaled_by_queries(query, key, *, scale=None):
    """The scores are divided by the root of T, the number of queries. The width D of the vectors belongs there."""
    return times(query, key, scale, query.shape[-2] ** -0.5)


@MISTAKES.add(
    "always divided by 8",
    hint="Where does the 8 come from, and what would it be for vectors of width 9?",
    more="In the paper the width is 64, and its root is 8. Your inputs have other widths: read the width off the "
    "arrays.",
    section=DIVISOR,
)
def always_eight(query, key, *, scale=None):
    """The divisor is 8 whatever the width. That is the paper's number, for vectors of width 64."""
    return times(query, key, scale, 1 / 8)


@MISTAKES.add(
    "rows and columns are swapped",
    hint="Row i of the scores belongs to query i. How many rows should the first case have?",
    more="Write the shapes of query and key one below the other, and below them the shape of your result. Which of "
    "your two factors comes first in the product?",
    section=TWO,
)
def transposed(query, key, *, scale=None):
    """Row i should hold what query i finds in every key. Yours holds what key i finds in every query."""
    return attnlib.scaled_dot(key, query, scale=scale)


@MISTAKES.add(
    "the keys are not transposed",
    hint="Along which axis of the keys do the components of one key lie, and along which does the product sum?",
    more="Take one query (1, 2) and the keys (3, 0) and (0, 4). The scores before scaling are 3 and 8. What does your "
    "product add up?",
    section=SHAPES,
)
def no_transpose(query, key, *, scale=None):
    """The product runs over the wrong axis of the keys: it takes one component of all keys, not all of one key."""
    return query @ key * (query.shape[-1] ** -0.5 if scale is None else scale)


@MISTAKES.add(
    "the keys are reshaped, not transposed",
    hint="Does each key stay together in your array, or are the numbers read in a different order?",
    more="Print the keys before and after. The first key, a row before, should be the first column now.",
    section=SHAPES,
)
def keys_reshaped(query, key, *, scale=None):
    """A reshape gives the right shape and mixes up the components. Two axes have to change places."""
    turned = key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2])
    return query @ turned * (query.shape[-1] ** -0.5 if scale is None else scale)


@MISTAKES.add(
    "queries against queries",
    hint="Which of your two arguments does the formula not use?",
    more="Change the keys in a call of your own, and print the scores before and after. Do they change?",
    section=PARTS,
)
def query_with_query(query, key, *, scale=None):
    """Each query is compared with the other queries. The keys are never looked at."""
    return attnlib.scaled_dot(query, query, scale=scale)


@MISTAKES.add(
    "keys against keys",
    hint="Which of your two arguments has no part in your result?",
    more="Change the queries in a call of your own, and print the scores before and after. Do they change?",
    section=PARTS,
)
def key_with_key(query, key, *, scale=None):
    """Each key is compared with the other keys. The queries are never looked at."""
    return attnlib.scaled_dot(key, key, scale=scale)


@MISTAKES.add(
    "divided by the lengths (cosine)",
    hint="Which similarity changes when a key gets twice as long, and which one does not?",
    more="The divisor here is one number for the whole table. It depends on how wide the vectors are, not on how long.",
    section=DIVISOR,
)
def cosines(query, key, *, scale=None):
    """The dot products are divided by the lengths of the vectors. A scaled dot product keeps the lengths."""
    return attnlib.cosine(query, key) * (1.0 if scale is None else scale)


@MISTAKES.add(
    "already a softmax",
    hint="Scores may be negative and need not sum to anything. Which step belongs to the next task?",
    more="Print the sums of your rows. Scores have no reason to sum to 1.",
    section=HAND,
)
def weights(query, key, *, scale=None):
    """These are weights. The task asks for the scores, before the softmax."""
    return attnlib.softmax(attnlib.scaled_dot(query, key, scale=scale))


@MISTAKES.add(
    "the products are not added up",
    hint="One number for each pair of vectors: which axis has to be summed away?",
    more="Print the shape of your result. It has one size too many: which one?",
    section=HAND,
)
def no_sum(query, key, *, scale=None):
    """The components are multiplied in pairs, but never added up: there is one dimension too many."""
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    return query[..., :, None, :] * key[..., None, :, :] * factor


@MISTAKES.add(
    "each query meets one key alone",
    hint="Query 1 should meet key 1, key 2 and all the others. How many scores is that?",
    more="A product component by component pairs row i with row i. The table needs every row with every row.",
    section=HAND,
)
def row_by_row(query, key, *, scale=None):
    """Query i is compared with key i alone. Every query has to meet every key."""
    return (query * key).sum(-1) * (query.shape[-1] ** -0.5 if scale is None else scale)


@MISTAKES.add(
    "the sign is reversed",
    hint="Two vectors that point in the same direction: should their score be positive or negative?",
    more="Work the first score of the chapter's example by hand. Its sign is that of 1*0 + 0*1 + 2*1.",
    section=HAND,
)
def reversed_sign(query, key, *, scale=None):
    """Where vectors are alike your score is negative: there is one minus sign too many."""
    return -attnlib.scaled_dot(query, key, scale=scale)


@MISTAKES.add(
    "the scale is ignored",
    hint="What does your function do with the argument `scale`?",
    more="Call it twice, with two different scales. Which line should make the results differ?",
    section=SQUARE_ROOT,
)
def scale_ignored(query, key, *, scale=None):
    """Without a scale the scores are right. But if a scale is passed, the root of the width is used all the same."""
    return attnlib.scaled_dot(query, key)


@MISTAKES.add(
    "divided by the scale",
    hint="The docstring says what the dot products are multiplied by. Is that what you do?",
    more="With a scale of 0.3 scores get smaller than the dot products. Do yours?",
    section=SQUARE_ROOT,
)
def divided_by_scale(query, key, *, scale=None):
    """The dot products are divided by `scale`. It is a factor: they are multiplied by it."""
    return attnlib.dot(query, key) / (query.shape[-1] ** 0.5 if scale is None else scale)


@MISTAKES.add(
    "the scale comes on top of the root",
    hint="By how many factors are the dot products multiplied if the caller passes a scale?",
    more="With scale=1 the result should be the plain dot products. Compare the two.",
    section=SQUARE_ROOT,
)
def scale_on_top(query, key, *, scale=None):
    """A scale that is passed replaces the root of the width. In yours both are applied."""
    return attnlib.scaled_dot(query, key) * (1.0 if scale is None else scale)


@MISTAKES.add(
    "the scale is taken for a width",
    hint="If the caller passes a scale, is there still a root to be taken?",
    more="With scale=0.3 a dot product of 10 becomes 3. Work out what yours becomes.",
    section=SQUARE_ROOT,
)
def scale_as_width(query, key, *, scale=None):
    """You take a root of `scale` and divide by it, as if it were the width. It is the factor itself."""
    return attnlib.dot(query, key) / (query.shape[-1] if scale is None else scale) ** 0.5


@MISTAKES.add(
    "a scale of 0 is treated as no scale",
    hint="What is `scale` if the caller does not pass it, and is that the same as 0?",
    more="In a condition, the number 0 counts as False, just as None does. A test for positive numbers also excludes 0 "
    "and everything below it. Test for None with `is None`.",
    section=SQUARE_ROOT,
)
def zero_scale(query, key, *, scale=None):
    """A scale of 0 is a number like any other: all scores become 0. Yours falls back to the root of the width."""
    return attnlib.scaled_dot(query, key, scale=scale or None)


@MISTAKES.add(
    "the width is counted from the front",
    hint="Which index of a shape means the last one, however many there are?",
    more="Write down the shape of a query in a batch of 2. Which letter is at the place that you read?",
    section=SHAPES,
)
def width_from_front(query, key, *, scale=None):
    """For a matrix shape[1] is the width. With a batch in front it is the number of queries."""
    return times(query, key, scale, query.shape[1] ** -0.5)


@MISTAKES.add(
    "right for matrices, wrong for a batch",
    hint="Follow an array of three dimensions through every line. Which of its axes changes places, and which should?",
    more="Print the shape of the keys before and after they are transposed. The batch should still come first.",
    section=SHAPES,
)
def full_transpose(query, key, *, scale=None):
    """With a batch in front, the shapes no longer fit: an axis of the batch was used as rows or as columns."""
    return query @ key.T * (query.shape[-1] ** -0.5 if scale is None else scale)


@MISTAKES.add(
    "every batch against every other",
    hint="How many dimensions should your result have, and how many does it have?",
    more="Some products pair each sequence of the batch with all the others. Which ones keep the batch together?",
    section=SHAPES,
)
def outer_batches(query, key, *, scale=None):
    """Each sequence of the batch is compared with every other sequence. It should be compared only with its own."""
    return np.dot(query, key.swapaxes(-1, -2)) * (query.shape[-1] ** -0.5 if scale is None else scale)


@MISTAKES.add(
    "changes the array it was given",
    hint="Some operators make a new array; others write into the one they are given. Which of yours write?",
    more="Print the query before and after the call. The line that scales it is the one to look at.",
    section=HAND,
)
def in_place(query, key, *, scale=None):
    """The scores are right, but the caller's query is scaled too: you wrote into it."""
    query *= query.shape[-1] ** -0.5 if scale is None else scale
    return attnlib.dot(query, key)


@MISTAKES.add(
    "changes the keys it was given",
    hint="Which of your operators write into the array that they are given?",
    more="Print the keys before and after the call. The line that scales them is the one to look at.",
    section=HAND,
)
def in_place_key(query, key, *, scale=None):
    """The scores are right, but the caller's keys are scaled too: you wrote into them."""
    key *= query.shape[-1] ** -0.5 if scale is None else scale
    return attnlib.dot(query, key)


@MISTAKES.add(
    "always divided by the root of 3",
    hint="Where does the 3 come from, and what would it be for vectors of width 5?",
    more="In the chapter's example the width is 3. Your inputs have other widths: read the width off the arguments.",
    section=DIVISOR,
)
def always_root_of_three(query, key, *, scale=None):
    """The divisor is the root of 3 whatever the width. That is right only for the chapter's example."""
    return times(query, key, scale, 3**-0.5)


@MISTAKES.add(
    "the root is rounded down to a whole number",
    hint="What is the square root of 3 in your code?",
    more="For a width of 4 or 9 your divisor is right; for most others it is too small. Print it for a width of 3.",
    section=SQUARE_ROOT,
)
def whole_root(query, key, *, scale=None):
    """You divide by a whole number.

    The square root of the width usually has digits after the decimal point, and they count.
    """
    return times(query, key, scale, 1 / int(query.shape[-1] ** 0.5))


@MISTAKES.add(
    "a scale that is a whole number is ignored",
    hint="What does your function do with scale=1, and what with scale=1.0?",
    more="A number can be an int or a float, and both are scales. Ask only whether there is a scale at all.",
    section=SQUARE_ROOT,
)
def whole_scale_ignored(query, key, *, scale=None):
    """A scale such as 1 or 2 is replaced by the default. Whether a number has a decimal point makes no difference."""
    return attnlib.scaled_dot(query, key, scale=scale if isinstance(scale, float) else None)


@MISTAKES.add(
    "divided by 2 * D",
    hint="In which order does Python evaluate a power, a minus sign and a division?",
    more="For D = 4 the factor is 1/2. Print yours. Where do parentheses belong around the exponent?",
    section=SQUARE_ROOT,
)
def half_over_width(query, key, *, scale=None):
    """You divide the scores by 2 * D. Without parentheses around -1/2, the exponent is only -1."""
    return times(query, key, scale, 0.5 / query.shape[-1])


@MISTAKES.add(
    "the largest score of each row is subtracted",
    hint="What should the largest score of a row be, and what is it in your result?",
    more="A softmax subtracts the largest score itself, and its weights stay the same. But here the task asks for "
    "the scores.",
    section=PARTS,
)
def shifted_by_maximum(query, key, *, scale=None):
    """You subtract the maximum of each row, so its largest score is 0. The task asks for the scores themselves."""
    scores = attnlib.scaled_dot(query, key, scale=scale)
    return scores - scores.max(axis=-1, keepdims=True)


EXERCISE = Exercise(
    name="scaled_dot",
    reference=attnlib.scaled_dot,
    outputs={"scores": ("T", "S")},
    rubric={NUMBERS: 3, SCALES: 2, BATCHES: 2, UNCHANGED: 1},
    section=SQUARE_ROOT,
    advice="Take the query (1, 0, 2) and the keys (0, 1, 1) and (4, 4, 0). Their dot products are 2 and 4, and the "
    "scores are those divided by the root of 3. Print your dot products first, then what you divide by.",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
)
