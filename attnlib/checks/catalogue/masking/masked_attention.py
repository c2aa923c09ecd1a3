"""masked_attention(query, key, value, mask): scaled dot product attention with a boolean mask, True = may attend."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.analytic_gradients import through_attention
from attnlib.checks.catalogue.draw_qkv import draw_qkv
from attnlib.checks.catalogue.duplicate_rows import with_duplicate_rows
from attnlib.checks.catalogue.masking.sections import BY_HAND, EMPTY, FINITE, KINDS, LEAKS, NOT_AFTER, POLARITY
from attnlib.checks.catalogue.self_attention.sections import OVERFLOW, SCALE, SOFTMAX, WEIGHTED_SUM
from attnlib.checks.exercise import ATTENTION_FUNCTIONS, Exercise, Mistakes

NUMBERS, SHAPES, NOTHING = "the numbers", "masks of other shapes", "nothing to attend to"
LARGE, UNCHANGED = "large scores", "inputs unchanged"
MISTAKES = Mistakes()


def masked_attention(query: Any, key: Any, value: Any, mask: Any) -> Any:
    """Average the values, weighted by the softmax of the scaled dot products where the mask is True."""
    return attnlib.attention(query, key, value, mask=mask)


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: three queries by hand, plain ones, masks that broadcast, empty rows, size.

    In the cases of the first criterion, every row and every column of a mask has a True, and every row has a False. So
    no query is left with nothing to attend to, and a student who has mixed something up is told about that first.
    """
    hand = {
        "query": np.array([[1.0], [-1.0], [2.0]]),
        "key": np.log([[1.0], [2.0], [5.0]]),
        "value": np.array([[3.0], [6.0], [9.0]]),
        "mask": _mask("110", "101", "110"),
    }
    yield Case("the queries 1, -1, 2, the keys log 1, log 2, log 5, and the values 3, 6, 9", NUMBERS, hand)
    many = draw_qkv(rng, (), 3, 5, 4, 2) | {"mask": _mask("10110", "01100", "11001")}
    yield Case("3 queries, 5 keys of width 4, values of width 2", NUMBERS, many)
    few = draw_qkv(rng, (), 4, 3, 5, 6, np.float32) | {"mask": _mask("110", "011", "101", "001")}
    yield Case("vectors in float32", NUMBERS, few)
    repeated = with_duplicate_rows(draw_qkv(rng, (), 3, 6, 4, 2), "query", "key", "value")
    repeated["mask"] = _mask("101011", "111001", "011101")
    yield Case("queries, keys and values, some of them repeated", SHAPES, repeated)
    yield from _masks_of_other_shapes(rng)

    nothing = draw_qkv(rng, (), 3, 5, 4, 2) | {"mask": _mask("10110", "00000", "11001")}
    yield Case("a query that may look at nothing", NOTHING, nothing, gradients=True)
    empty = draw_qkv(rng, (3, 2), 4, 5, 6, 7) | {"mask": attnlib.padding_mask([3, 0, 5], 5)}
    yield Case("a sequence of length 0 in a batch", NOTHING, empty)

    rows = np.sqrt(2) * np.array([[20_000.0, 1.0], [-20_000.0, 1.0], [5_000.0, 1.0]])
    keys = np.column_stack([[1.0, 1.0, 2.0, 0.2], rng.normal(size=4)])
    large = {"query": rows, "key": keys, "value": rng.normal(size=(4, 5)), "mask": _mask("1100", "1100", "1110")}
    yield Case("scores from -40 000 to 40 000, the largest often forbidden", LARGE, large)

    kept = draw_qkv(rng, (5,), 4, 6, 3, 2)
    kept["key"] = np.ascontiguousarray(kept["key"].swapaxes(-1, -2)).swapaxes(-1, -2)
    kept["mask"] = np.repeat(_mask("101100", "000000", "110001", "001011"), 2, axis=0)[::2]
    yield Case("inputs that must stay as they are", UNCHANGED, kept, unchanged=True)


def _masks_of_other_shapes(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases of masks that are causal, have one entry, or broadcast to the scores."""
    causal = draw_qkv(rng, (), 4, 4, 3, 5) | {"mask": np.tri(4, dtype=bool)}
    yield Case("a causal mask", SHAPES, causal)
    yield Case("one query and one key", SHAPES, draw_qkv(rng, (), 1, 1, 3, 2) | {"mask": _mask("1")})
    shared = _mask("01101", "11010", "00111")
    yield Case("one mask (T, S) for a batch of 2", SHAPES, draw_qkv(rng, (2,), 3, 5, 4, 6) | {"mask": shared})
    each = np.stack([shared, _mask("10010", "01011", "11100")])
    yield Case("a mask (B, T, S), one for each sequence", SHAPES, draw_qkv(rng, (2,), 3, 5, 4, 6) | {"mask": each})
    heads = draw_qkv(rng, (2, 3), 4, 5, 6, 7)
    yield Case("a padding mask (B, 1, 1, S)", SHAPES, heads | {"mask": attnlib.padding_mask([3, 5], 5)})
    both = attnlib.padding_mask([2, 4], 5) & np.tri(4, 5, 1, dtype=bool)
    yield Case("padding and causal, (B, 1, T, S)", SHAPES, heads | {"mask": both})
    full = rng.permuted(np.broadcast_to(_mask("10110"), (2, 3, 4, 5)), axis=-1)
    yield Case("a mask (B, H, T, S)", SHAPES, heads | {"mask": full})
    yield Case(
        "a mask (S,), the same for every query", SHAPES, draw_qkv(rng, (), 3, 5, 2, 4) | {"mask": _mask("10110")[0]}
    )
    square = draw_qkv(rng, (3,), 3, 4, 5, 2) | {"mask": _mask("1000", "1101", "0111")}
    yield Case("a mask (T, S) for as many sequences as queries", SHAPES, square)


def _mask(*rows: str) -> Any:
    """Return a boolean mask written as rows of 1 and 0."""
    return np.array([[c == "1" for c in row] for row in rows])


def _scores(query, key):
    return attnlib.scaled_dot(query, key)


def _naive(scores, axis=-1):
    """The softmax of every textbook: nan where there is nothing but -inf."""
    e = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _attend(scores, value, mask):
    """What is right, given the scores."""
    weights = attnlib.softmax(np.where(mask, scores, -np.inf))
    return weights @ value, weights


def _empty_to_zero(results, mask):
    """Return context and weights with 0 where nothing may be attended to."""
    return tuple(np.where(mask.any(axis=-1, keepdims=True), x, 0.0) for x in results)


def _filled(query, key, value, mask, number):
    weights = _naive(np.where(mask, _scores(query, key), number))
    return weights @ value, weights


@MISTAKES.add(
    "True and False have changed places",
    hint="Take the first query of the smallest case. Which keys does the mask let it see, and which of them got a "
    "weight?",
    more="Compare the mask with your weights: the zeros of the weights should be where the mask is False. Which of "
    "the two does your code hide?",
    section=POLARITY,
)
def inverted(query, key, value, mask):
    """Your queries see exactly what is forbidden. True means “may attend”, and False hides a key."""
    return _attend(_scores(query, key), value, ~mask)


@MISTAKES.add(
    "the mask is not used",
    hint="What are your weights where the mask is False?",
    more="Print the weights of the smallest case beside the mask. Where does the mask enter between scores and "
    "softmax?",
    section=BY_HAND,
)
def ignored(query, key, value, mask):
    """Every query attends to every key, whatever the mask says."""
    return attnlib.attention(query, key, value)


@MISTAKES.add(
    "forbidden scores are set to 0",
    hint="What is the exponential of 0? Which score has the exponential 0?",
    more="Write the exponentials of the smallest case on paper, with your score for the forbidden key. Is its weight "
    "0?",
    section=BY_HAND,
)
def scores_zeroed(query, key, value, mask):
    """A score of 0 is a score like any other: its exponential is 1, and so the forbidden key gets a share."""
    weights = attnlib.softmax(_scores(query, key) * mask)
    return weights @ value, weights


@MISTAKES.add(
    "the weights are set to 0 after the softmax",
    hint="What do the weights of one query sum to now? Which forbidden scores are in the sum that divided them?",
    more="Work out one row by hand, first with the mask before the softmax, then after it. The other weights differ: "
    "by what factor?",
    section=NOT_AFTER,
)
def weights_zeroed(query, key, value, mask):
    """The softmax shared everything out first, and then a part was thrown away: the rows no longer sum to 1."""
    weights = attnlib.softmax(_scores(query, key)) * mask
    return weights @ value, weights


@MISTAKES.add(
    "minus infinity in the weights",
    hint="What are weights multiplied by? Which weight means that nothing is taken?",
    more="Print the weights of the smallest case. Minus infinity is for scores: its exponential is 0. At which step "
    "does it have to be put in?",
    section=NOT_AFTER,
)
def infinite_weights(query, key, value, mask):
    """The weights of forbidden keys were set to minus infinity, after the softmax. Scores should be masked instead."""
    weights = np.where(mask, attnlib.softmax(_scores(query, key)), -np.inf)
    return weights @ value, weights


@MISTAKES.add(
    "a low number in the weights",
    hint="What are weights multiplied by? Which weight means that nothing is taken?",
    more="Print the weights of the smallest case. A low number is for scores: its exponential is almost 0. At which "
    "step does it have to be put in?",
    section=NOT_AFTER,
)
def low_weights(query, key, value, mask):
    """The weights of forbidden keys were set to a number like -1e9, after the softmax.

    Scores should be masked instead.
    """
    weights = np.where(mask, attnlib.softmax(_scores(query, key)), -1e9)
    return weights @ value, weights


@MISTAKES.add(
    "a causal mask in place of the one that is given",
    hint="Which keys does the mask let the first query of the smallest case see? Which of them got a weight?",
    more="Compare the mask with your weights: the zeros of the weights should be where the mask is False. How does "
    "your code decide what to hide?",
    section=BY_HAND,
)
def always_causal(query, key, value, mask):
    """Each query sees itself and what is before it, whatever the mask says. The mask alone says what may be seen."""
    scores = _scores(query, key)
    return _attend(scores, value, np.tri(*scores.shape[-2:], dtype=bool))


@MISTAKES.add(
    "not scaled, and True and False have changed places",
    hint="Take the first query of the smallest case. Which keys does the mask let it see, and which of them got a "
    "weight?",
    more="Two things need to be changed: which of the mask's two values is hidden, and the scale of the scores, which "
    "depends on the width of a key.",
    section=POLARITY,
)
def inverted_unscaled(query, key, value, mask):
    """Your queries see exactly what is forbidden, and the scores are not divided by the root of the width."""
    return _attend(query @ np.swapaxes(key, -1, -2), value, ~mask)


@MISTAKES.add(
    "masked after the softmax, and divided by the new sum",
    hint="If a forbidden score is far larger than all others, what is left of the others after your first softmax?",
    more="Take the scores 0, 1 and 1000, of which the last is forbidden. Print what your softmax gives for them, "
    "before "
    "you mask it. And think of a row in which everything is forbidden.",
    section=NOT_AFTER,
)
def renormalised(query, key, value, mask):
    """On paper the second division repairs it. On a computer a large forbidden score leaves 0 for the others: 0/0."""
    weights = attnlib.softmax(_scores(query, key)) * mask
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ value, weights


@MISTAKES.add(
    "a large forbidden score drives the others to 0",
    hint="Which scores may decide the maximum that is subtracted: all of them, or the allowed ones?",
    more="Take the scores 0, 1 and 1000, of which the last is forbidden. Print the exponentials of the first two.",
    section=NOT_AFTER,
)
def renormalised_safely(query, key, value, mask):
    """The forbidden score is masked too late. If it is by far the largest, all allowed exponentials are 0 by then."""
    weights = attnlib.softmax(_scores(query, key)) * mask
    total = weights.sum(axis=-1, keepdims=True)
    weights = weights / np.where(total == 0, 1, total)
    return weights @ value, weights


@MISTAKES.add(
    "True and False are added as 1 and 0",
    hint="By how much does your mask lower a forbidden score? By how much does it have to?",
    more="Adding 1 to a score only multiplies its exponential by e. Print the weights: are there zeros where the mask "
    "is False?",
    section=POLARITY,
)
def added(query, key, value, mask):
    """Adding the mask gives the allowed keys one point more. Nothing is hidden: a forbidden key needs a weight of 0."""
    weights = attnlib.softmax(_scores(query, key) + mask)
    return weights @ value, weights


@MISTAKES.add(
    "-1 in place of minus infinity",
    hint="What is the exponential of -1? Which score has the exponential 0?",
    more="Print the weights of the smallest case. Are there zeros where the mask is False?",
    section=BY_HAND,
)
def filled_with_minus_one(query, key, value, mask):
    """A forbidden score was set to -1. That is a small score, and still a score: the key keeps a share."""
    return _filled(query, key, value, mask, -1.0)


@MISTAKES.add(
    "-10 in place of minus infinity",
    hint="What is the exponential of -10? Is it 0?",
    more="Print the weights of the smallest case with many digits. Are there zeros where the mask is False?",
    section=FINITE,
)
def filled_with_minus_ten(query, key, value, mask):
    """A forbidden score was set to -10. The weight becomes small, but not 0: something still comes through."""
    return _filled(query, key, value, mask, -10.0)


@MISTAKES.add(
    "the stand-in for minus infinity is not low enough",
    hint="What happens if all allowed scores are lower still than your number?",
    more="Think of allowed scores of -20 000. Which score is the largest of the row after your masking?",
    section=FINITE,
)
def filled_with_minus_hundred(query, key, value, mask):
    """A forbidden score was set to a number like -100 or -10 000. Where the allowed ones are lower, it wins the row."""
    return _filled(query, key, value, mask, -1e4)


@MISTAKES.add(
    "too little is subtracted",
    hint="What happens if a forbidden score is larger than the others by more than you subtract?",
    more="Think of a forbidden score of 40 000 and an allowed one of 20 000. Which is larger after your masking?",
    section=FINITE,
)
def lowered_by_a_hundred(query, key, value, mask):
    """A number like 100 or 10 000 is subtracted from a forbidden score.

    A score that is larger by more than that still wins.
    """
    weights = _naive(_scores(query, key) - 1e4 * ~mask)
    return weights @ value, weights


@MISTAKES.add(
    "a row with nothing to attend to becomes an average",
    hint="If every score of a row is the same low number, what does the softmax make of it?",
    more="Print the weights of the query that may look at nothing. The mask has no True in that row: what should its "
    "weights sum to?",
    section=FINITE,
)
def uniform_rows(query, key, value, mask):
    """A large negative number fills that row, so all weights are equal: an average of what is forbidden."""
    return _filled(query, key, value, mask, np.finfo(query.dtype).min)


@MISTAKES.add(
    "a row with nothing to attend to loses its mask",
    hint="The softmax looks at differences alone. If the same number is subtracted from all scores of a row, what "
    "changes?",
    more="Print the weights of the query that may look at nothing, and beside them the weights without any mask.",
    section=FINITE,
)
def unmasked_rows(query, key, value, mask):
    """The same number was taken from every score of that row, and the softmax does not notice: nothing is hidden."""
    weights = _naive(_scores(query, key) - 1e9 * ~mask)
    return weights @ value, weights


@MISTAKES.add(
    "a row with nothing to attend to becomes nan",
    hint="What is the maximum of a row in which every score is minus infinity, and what is that row minus its maximum?",
    more="Print the maximum, the exponentials and their sum for such a row. There are two places to look at: the "
    "subtraction, and the division by the sum.",
    section=EMPTY,
)
def nan_rows(query, key, value, mask):
    """Minus infinity minus minus infinity is nan, and so is 0/0. In such a row, both results should be 0."""
    return _filled(query, key, value, mask, -np.inf)


@MISTAKES.add(
    "the weights of an empty row are still nan",
    hint="You return two arrays. Which of them did you fix, and which of the two is made from the other?",
    more="Print the weights of the query that may look at nothing. If they are right, the context is right by itself.",
    section=EMPTY,
)
def context_mended(query, key, value, mask):
    """The context of a query with nothing to attend to is 0 now, but its weights are nan. They should be 0 as well."""
    context, weights = _filled(query, key, value, mask, -np.inf)
    return np.nan_to_num(context), weights


@MISTAKES.add(
    "the context of an empty row is still nan",
    hint="You return two arrays. Which of them did you fix, and which was computed before that?",
    more="Follow the row of that query through your lines: where are its weights fixed, and where are they used?",
    section=EMPTY,
)
def weights_mended(query, key, value, mask):
    """The weights of a query with nothing to attend to are 0 now, but its context was made before that, and is nan."""
    context, weights = _filled(query, key, value, mask, -np.inf)
    return context, np.nan_to_num(weights)


@MISTAKES.add(
    "every weight is nan",
    hint="Which of your steps is the first to hold a nan? What is 0 times infinity, and what is 0/0?",
    more="If you add something to the scores, print it for the smallest case: it should be 0 where the query may look. "
    "If you divide by a sum, print that.",
    section=NOT_AFTER,
)
def zero_times_infinity(query, key, value, mask):
    """The weights of allowed keys are nan as well.

    Both 0 times infinity and 0/0 are nan, and so is all that follows.
    """
    with np.errstate(invalid="ignore"):
        weights = _naive(_scores(query, key) + (1 - mask) * -np.inf)
    return weights @ value, weights


@MISTAKES.add(
    "the mask is transposed",
    hint="Rows are queries and columns are keys, in the scores and in the mask. Does anything have to be transposed?",
    more="Print the shapes of the scores and of the mask as you use it, for 3 queries and 5 keys.",
    section=KINDS,
)
def transposed(query, key, value, mask):
    """The mask was transposed: its rows became keys. It already lines up with the scores, (..., T, S)."""
    return _attend(_scores(query, key), value, np.swapaxes(mask, -1, -2))


@MISTAKES.add(
    "the mask works on the values alone",
    hint="Do the weights that you return sum to 1, and are they 0 where the mask is False?",
    more="A value of zeros with a weight is not the same as a value without one. Work out one row by hand.",
    section=NOT_AFTER,
)
def values_zeroed(query, key, value, mask):
    """The forbidden values count as 0, but their weights are spent all the same.

    The scores should be masked instead.
    """
    weights = attnlib.softmax(_scores(query, key))
    return (weights * mask) @ value, weights


@MISTAKES.add(
    "the weights come from before the mask",
    hint="You compute two kinds of weights. Which of them made the context, and which do you return?",
    more="On paper, multiply the values by the weights that you return. Do you get the context that you return?",
    section=BY_HAND,
)
def weights_unmasked(query, key, value, mask):
    """The context is right, but the weights that are returned are those without a mask."""
    return _attend(_scores(query, key), value, mask)[0], attnlib.softmax(_scores(query, key))


@MISTAKES.add(
    "the context comes from before the mask",
    hint="You compute two kinds of weights. Which of them made the context, and which do you return?",
    more="On paper, multiply the values by the weights that you return. Do you get the context that you return?",
    section=BY_HAND,
)
def context_unmasked(query, key, value, mask):
    """The weights are right, but the context was made with weights that ignore the mask."""
    return attnlib.attention(query, key, value)[0], _attend(_scores(query, key), value, mask)[1]


@MISTAKES.add(
    "the columns sum to 1, not the rows",
    hint="Every query has weights of its own that sum to 1. Along which axis of the scores do they lie?",
    more="Add up your weights in both directions. A row belongs to a query.",
    section=SOFTMAX,
)
def softmax_over_queries(query, key, value, mask):
    """The softmax made the queries compete for each key. The keys should compete for each query."""
    weights = attnlib.softmax(np.where(mask, _scores(query, key), -np.inf), axis=-2)
    return weights @ value, weights


@MISTAKES.add(
    "the softmax runs over the whole table",
    hint="How many sums of 1 should there be: one, or one per query?",
    more="Add up your weights row by row. Then look at the sum in your softmax: which numbers does it add up?",
    section=SOFTMAX,
)
def softmax_over_all(query, key, value, mask):
    """All weights together sum to 1. Every query should have weights that sum to 1 by themselves."""
    e = np.where(mask, np.exp(_scores(query, key)), 0)
    weights = e / e.sum()
    return weights @ value, weights


@MISTAKES.add(
    "the softmax runs along axis 1",
    hint="Which axis number means the last one, however many there are?",
    more="Write down the shape of the scores for a batch with heads. Which of the four is axis 1?",
    section=SOFTMAX,
)
def softmax_from_front(query, key, value, mask):
    """For a matrix axis 1 is the last one. With a batch in front it is not, and the wrong weights sum to 1."""
    weights = attnlib.softmax(np.where(mask, _scores(query, key), -np.inf), axis=1)
    return weights @ value, weights


@MISTAKES.add(
    "the softmax is missing",
    hint="What turns scores into weights that sum to 1?",
    more="Print your weights for the smallest case. They should lie between 0 and 1.",
    section=SOFTMAX,
)
def no_softmax(query, key, value, mask):
    """The masked scores themselves are used as weights: they may be negative, and nothing makes them sum to 1."""
    weights = np.where(mask, _scores(query, key), 0)
    return weights @ value, weights


@MISTAKES.add(
    "not normalised",
    hint="What has to be true of the sum of each row, and which division makes it so?",
    more="Add up the weights of one query. Only a query that may look at nothing has a sum other than 1.",
    section=SOFTMAX,
)
def not_normalised(query, key, value, mask):
    """The exponentials of the allowed scores are used as weights, but nothing makes them sum to 1."""
    weights = np.where(mask, np.exp(_scores(query, key)), 0)
    return weights @ value, weights


@MISTAKES.add(
    "each score on its own (sigmoid)",
    hint="In a softmax, raising one score lowers the weight of every other.",
    more="Add up the weights of one query. What makes the allowed keys share 1 among them?",
    section=SOFTMAX,
)
def sigmoid(query, key, value, mask):
    """Each score is squashed on its own by a sigmoid, and nothing makes the weights of a row sum to 1."""
    weights = 1 / (1 + np.exp(-np.where(mask, _scores(query, key), -np.inf)))
    return weights @ value, weights


@MISTAKES.add(
    "all or nothing (argmax)",
    hint="The second-best key still gets a share: which function gives it one?",
    more="In the smallest case the first query has two keys, and by hand their weights are 1/3 and 2/3.",
    section=SOFTMAX,
)
def hard(query, key, value, mask):
    """Each query takes the value of its best allowed key alone. The softmax mixes all allowed values."""
    scores = np.where(mask, _scores(query, key), -np.inf)
    weights = ((scores == scores.max(axis=-1, keepdims=True)) & mask).astype(query.dtype)
    return weights @ value, weights


@MISTAKES.add(
    "all allowed keys count the same",
    hint="Where in your code does the query enter the weights?",
    more="In the smallest case the first query has two keys. By hand their weights are 1/3 and 2/3.",
    section=WEIGHTED_SUM,
)
def uniform(query, key, value, mask):
    """The allowed values are averaged with equal weights, whatever the query.

    Its scores decide how much each counts.
    """
    return _attend(0 * _scores(query, key), value, mask)


@MISTAKES.add(
    "the scores are not scaled",
    hint="What is the dot product divided by before the softmax, and how does that depend on the width D?",
    more="The mask is fine. Compare your scores with those on paper for keys of width 4: they differ by a factor.",
    section=SCALE,
)
def no_scale(query, key, value, mask):
    """The dot products go into the softmax unscaled, so the weights are sharper than they should be."""
    return _attend(attnlib.dot(query, key), value, mask)


@MISTAKES.add(
    "divided by D, not by its square root",
    hint="With components of variance 1, the dot product has variance D. What is its standard deviation?",
    more="The mask is fine. Compare your scores with those on paper for keys of width 4: they differ by a factor.",
    section=SCALE,
)
def scaled_by_width(query, key, value, mask):
    """The scores are divided by the width itself, so the weights are flatter than they should be."""
    return _attend(attnlib.dot(query, key) / query.shape[-1], value, mask)


@MISTAKES.add(
    "multiplied by the square root of D",
    hint="The factor is there to keep scores small. Does yours make them larger or smaller?",
    more="The mask is fine. Compare your scores with those on paper for keys of width 4: they differ by a factor.",
    section=SCALE,
)
def multiplied_by_root(query, key, value, mask):
    """The scores are multiplied by the root of the width, but they should be divided by it."""
    return _attend(attnlib.dot(query, key) * query.shape[-1] ** 0.5, value, mask)


@MISTAKES.add(
    "scaled by the number of keys",
    hint="Which of the two is the width of a vector: the last size of its array, or the one before?",
    more="The mask is fine. Divide by the root of the width of a key. How many numbers does one key have?",
    section=SCALE,
)
def scaled_by_keys(query, key, value, mask):
    """The scores are divided by the root of S, the number of keys. The width D of the vectors belongs there."""
    return _attend(attnlib.dot(query, key) / key.shape[-2] ** 0.5, value, mask)


@MISTAKES.add(
    "scaled by the number of queries",
    hint="Which of the two is the width of a vector: the last size of its array, or the one before?",
    more="The mask is fine. Divide by the root of the width of a key. How many numbers does one key have?",
    section=SCALE,
)
def scaled_by_queries(query, key, value, mask):
    """The scores are divided by the root of T, the number of queries. The width D of the vectors belongs there."""
    return _attend(attnlib.dot(query, key) / query.shape[-2] ** 0.5, value, mask)


@MISTAKES.add(
    "scaled by the width of the values",
    hint="The scores are dot products of queries and keys. Does the width of the values enter there?",
    more="The mask is fine. Divide by the root of the width of a key. How many numbers does one key have?",
    section=SCALE,
)
def scaled_by_value_width(query, key, value, mask):
    """The scores are divided by the root of the width of the values. It is the width of the keys that counts."""
    return _attend(attnlib.dot(query, key) / value.shape[-1] ** 0.5, value, mask)


@MISTAKES.add(
    "scaled after the softmax",
    hint="Do your weights still sum to 1? Which comes first, the division or the softmax?",
    more="Mask and softmax are fine. The division belongs to the scores, before both of them.",
    section=SCALE,
)
def scaled_after_softmax(query, key, value, mask):
    """The weights are divided by the root of the width. It is the scores, before the softmax, that should be scaled."""
    weights = _attend(attnlib.dot(query, key), value, mask)[1] / query.shape[-1] ** 0.5
    return weights @ value, weights


@MISTAKES.add(
    "keys are averaged instead of values",
    hint="The keys determine the weights. Which vectors should the weights mix?",
    more="Look at the width of your context. It should be that of the values.",
    section=WEIGHTED_SUM,
)
def averages_keys(query, key, value, mask):
    """The weights are right, but they average the keys. The values are never looked at."""
    return _attend(_scores(query, key), key, mask)


@MISTAKES.add(
    "scores are returned as weights",
    hint="Which of your arrays has rows that sum to 1?",
    more="Look at the second thing that you return, for the smallest case. Is there minus infinity in it?",
    section=SOFTMAX,
)
def returns_scores(query, key, value, mask):
    """The context is right, but the second result holds the masked scores from before the softmax, not the weights."""
    context, _ = _attend(_scores(query, key), value, mask)
    return context, np.where(mask, _scores(query, key), -np.inf)


@MISTAKES.add(
    "the results are in the wrong order",
    hint="Compare your return line with the one in the task.",
    more="Two arrays are returned. The context comes first, the weights come second.",
    section=BY_HAND,
)
def swapped_results(query, key, value, mask):
    """Both arrays are right, but the weights come first. The task asks for the context first."""
    return _attend(_scores(query, key), value, mask)[::-1]


@MISTAKES.add(
    "only the context is returned",
    hint="Compare your return line with the one in the task.",
    more="Two arrays are returned. The context comes first, the weights come second.",
    section=BY_HAND,
)
def context_only(query, key, value, mask):
    """One array is returned instead of two: the context and the weights."""
    return _attend(_scores(query, key), value, mask)[0]


@MISTAKES.add(
    "the mask has to be as large as the scores",
    hint="A mask of (T, S) serves every sequence of a batch. Which of your steps does not broadcast?",
    more="Picking places with an array of True and False needs the same shape on both sides. A choice between two "
    "arrays, place by place, lets sizes of 1 and missing dimensions stretch.",
    section=KINDS,
)
def boolean_index(query, key, value, mask):
    """Your code picks the forbidden places by an index, which does not broadcast. A mask may have fewer dimensions."""
    scores = _scores(query, key)
    scores[~mask] = -np.inf
    weights = attnlib.softmax(scores)
    return weights @ value, weights


@MISTAKES.add(
    "the mask is dropped in a batch",
    hint="What does your code do with a mask of more than two dimensions?",
    more="Print your weights for a padding mask of (B, 1, 1, S). Are the columns of the padding 0?",
    section=KINDS,
)
def matrices_alone(query, key, value, mask):
    """A mask of two dimensions is used, and one of more dimensions is not: then every query sees everything."""
    mask = mask if mask.ndim <= 2 else np.ones((), dtype=bool)
    return _attend(_scores(query, key), value, mask)


@MISTAKES.add(
    "the mask of the first sequence serves all",
    hint="Two sequences of a batch have different lengths. Which of their masks does your code use?",
    more="Print your weights for a padding mask with two lengths. Are the columns of the padding 0 in both sequences?",
    section=KINDS,
)
def first_mask(query, key, value, mask):
    """Every sequence of the batch gets the mask of the first one. Each has a mask of its own."""
    while mask.ndim > 2:
        mask = mask[0]
    return _attend(_scores(query, key), value, mask)


@MISTAKES.add(
    "the mask gets its dimensions in the wrong place",
    hint="Where does broadcasting add missing dimensions: in front, or after the first one?",
    more="Write the shape of the scores, (B, T, S), and below it the shape of the mask as you use it, aligned on the "
    "right. What is below the T?",
    section=KINDS,
)
def dimensions_after_first(query, key, value, mask):
    """Missing dimensions are put after the mask's first one. So its rows are laid over sequences, not over queries."""
    scores = _scores(query, key)
    while mask.ndim < scores.ndim:
        mask = np.expand_dims(mask, 1)
    return _attend(scores, value, mask)


@MISTAKES.add(
    "the mask is taken for one of sequences and keys",
    hint="Which shape does the task promise for the mask? Which one does your code expect?",
    more="Print the shape of the mask as you use it, and that of the scores. The mask lines up with (..., T, S) as "
    "it comes.",
    section=KINDS,
)
def taken_for_padding(query, key, value, mask):
    """Your code puts two dimensions into the mask, as if it were (B, S). It comes ready to broadcast to (..., T, S)."""
    return _attend(_scores(query, key), value, mask[:, None, None] if mask.ndim > 1 else mask)


@MISTAKES.add(
    "the last key is always allowed",
    hint="Which key can your function never hide?",
    more="Go through one row of the mask in your code, from the first key to the last. Is the last one looked at?",
    section=LEAKS,
)
def last_key_allowed(query, key, value, mask):
    """The last column of the mask is not used: every query may look at the last key."""
    mask = mask.copy()
    mask[..., -1] = True
    return _attend(_scores(query, key), value, mask)


@MISTAKES.add(
    "a mean of all values where everything is hidden",
    hint="Here there is nothing to average. What is a sum without any terms?",
    more="Print the weights of the query that may look at nothing, and the context that comes with them. Both should "
    "be 0.",
    section=EMPTY,
)
def mean_context(query, key, value, mask):
    """The weights of an empty row are 0, but its context is the mean of all values: it shows what should be hidden."""
    context, weights = _attend(_scores(query, key), value, mask)
    empty = ~weights.any(axis=-1, keepdims=True)
    return np.where(empty, value.mean(axis=-2, keepdims=True), context), weights


@MISTAKES.add(
    "the softmax overflows",
    hint="Does your softmax subtract a maximum from each row? Which scores is it the maximum of?",
    more="Print the exponentials of the case with large scores. Are there infinities, or a row of zeros?",
    section=OVERFLOW,
)
def overflow(query, key, value, mask):
    """The weights are right for small scores. For large ones the exponential overflows, and the weights become nan."""
    e = np.exp(np.where(mask, _scores(query, key), -np.inf))
    total = e.sum(axis=-1, keepdims=True)
    with np.errstate(all="ignore"):
        weights = e / np.where(mask.any(axis=-1, keepdims=True), total, 1)
    return weights @ value, weights


@MISTAKES.add(
    "the softmax overflows, and empty rows are nan",
    hint="Does your softmax subtract the maximum of each row? And what is its sum if a row has nothing to attend to?",
    more="Two things need to be changed. Print the exponentials and their sum, first with large scores, then for a row "
    "where all is forbidden.",
    section=OVERFLOW,
)
def overflow_and_nan(query, key, value, mask):
    """The exponential overflows for large scores, and a row with nothing to attend to is 0/0. Both become nan."""
    e = np.exp(np.where(mask, _scores(query, key), -np.inf))
    weights = e / e.sum(axis=-1, keepdims=True)
    return weights @ value, weights


@MISTAKES.add(
    "one maximum for the whole table",
    hint="Every row needs its own maximum in the softmax.",
    more="Print the exponentials of the case with large scores. One row is all zeros: which maximum was subtracted "
    "from it?",
    section=OVERFLOW,
)
def global_shift(query, key, value, mask):
    """One maximum for all queries shifts a row of much smaller scores so far down that nothing is left of it."""
    scores = np.where(mask, _scores(query, key), -np.inf)
    e = np.exp(scores - scores.max())
    total = e.sum(axis=-1, keepdims=True)
    weights = e / np.where(total == 0, 1, total)
    return weights @ value, weights


@MISTAKES.add(
    "changes the mask it was given",
    hint="Some operators make a new array; others write into the one they are given. Which of yours write into the "
    "mask?",
    more="Print the mask before and after a call. The next layer will use the same mask again.",
    section=POLARITY,
)
def writes_into_mask(query, key, value, mask):
    """The result is right, but the caller's mask is inverted: your function wrote into its argument."""
    result = _attend(_scores(query, key), value, mask)
    if mask.flags.writeable:
        np.logical_not(mask, out=mask)
    return result


@MISTAKES.add(
    "changes the query it was given",
    hint="Some operators make a new array; others write into the one they are given. Which of yours write into the "
    "query?",
    more="Print the query before and after a call. The division is right; where does its result go?",
    section=SCALE,
)
def writes_into_query(query, key, value, mask):
    """The result is right, but the caller's query has changed: your function wrote into its argument."""
    result = _attend(_scores(query, key), value, mask)
    query /= query.shape[-1] ** 0.5
    return result


@MISTAKES.add(
    "what one query may see is shown to all",
    hint="Each query has a row of its own in the mask. Do your rows differ?",
    more="Print the mask as you use it, beside the one you were given. What has happened to its rows?",
    section=KINDS,
)
def any_row(query, key, value, mask):
    """The rows of the mask were merged: a key that one query may see is open to every query.

    Each query has its own row.
    """
    return _attend(_scores(query, key), value, mask.any(axis=-2, keepdims=True) if mask.ndim > 1 else mask)


@MISTAKES.add(
    "one forbidden key makes the whole row nan",
    hint="What is the maximum of a row in which a score is plus infinity, or nan? And what is infinity minus infinity?",
    more="Print the masked scores of the smallest case. What is at the forbidden keys? It should be the number "
    "whose exponential is 0.",
    section=BY_HAND,
)
def plus_infinity(query, key, value, mask):
    """A row with a forbidden key is nan from end to end.

    The score there should be minus infinity, not plus infinity or nan.
    """
    return _filled(query, key, value, mask, np.inf)


@MISTAKES.add(
    "the overflow is only hidden",
    hint="Which of the scores is the largest, and what weight does your code give it?",
    more="Print the exponentials of the case with large scores. Infinity over infinity is nan as well, and that row "
    "had something to attend to.",
    section=OVERFLOW,
)
def overflow_painted_over(query, key, value, mask):
    """Every nan was made 0. For an empty row that is right. Here it hides that the exponential overflowed."""
    e = np.exp(np.where(mask, _scores(query, key), -np.inf))
    weights = np.nan_to_num(e / e.sum(axis=-1, keepdims=True))
    return weights @ value, weights


@MISTAKES.add(
    "one maximum for the whole table, and nan",
    hint="Every row needs its own maximum in the softmax. And what is its sum if a row has nothing to attend to?",
    more="Two things need to be changed. Print the exponentials and their sums for the case with large scores, and for "
    "the one with an empty row.",
    section=OVERFLOW,
)
def global_shift_and_nan(query, key, value, mask):
    """One maximum for all queries leaves nothing of a row of smaller scores: 0/0. An empty row is 0/0, too."""
    scores = np.where(mask, _scores(query, key), -np.inf)
    e = np.exp(scores - scores.max())
    weights = e / e.sum(axis=-1, keepdims=True)
    return weights @ value, weights


@MISTAKES.add(
    "the sum has lost its dimension",
    hint="Print the shape of the sum beside that of the scores. Under which number does each sum end up?",
    more="There is one sum for each query. In a square table a row of sums fits as well as a column of them, and no "
    "error is raised.",
    section=SOFTMAX,
)
def no_keepdims(query, key, value, mask):
    """Each row has to be divided by its own sum. The sums came out as a row, and so they divide the columns."""
    scores = np.where(mask, _scores(query, key), -np.inf)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1)
    return weights @ value, weights


@MISTAKES.add(
    "maximum and sum have lost their dimension",
    hint="Print the shape of the maximum and of the sum beside that of the scores. What do they line up with?",
    more="There is one maximum and one sum for each query. In a square table a row of them fits as well as a column, "
    "and no error is raised.",
    section=SOFTMAX,
)
def no_keepdims_at_all(query, key, value, mask):
    """Each row needs its own maximum and its own sum. Both came out as a row, so they line up with the columns."""
    scores = np.where(mask, _scores(query, key), -np.inf)
    e = np.exp(scores - scores.max(axis=-1))
    weights = e / e.sum(axis=-1)
    return weights @ value, weights


@MISTAKES.add(
    "the width is counted from the front",
    hint="Which index of a shape means the last one, however many there are?",
    more="The mask is fine. For a query of (B, H, T, D), write down which of the four numbers you divide by.",
    section=SCALE,
)
def width_from_front(query, key, value, mask):
    """For a matrix shape[1] is the width. With a batch in front it is a different size."""
    return _attend(attnlib.dot(query, key) / query.shape[1] ** 0.5, value, mask)


@MISTAKES.add(
    "right for matrices, wrong for a batch",
    hint="Follow an array of three dimensions through every line. Which of its axes changes places, and which should?",
    more="Print the shape of the key before and after you transpose it. The batch has to stay in front.",
    section=KINDS,
)
def full_transpose(query, key, value, mask):
    """With a batch in front, the shapes no longer fit: an axis of the batch was used as rows or as columns."""
    return _attend(query @ key.T / query.shape[-1] ** 0.5, value, mask)


@MISTAKES.add(
    "0 after the softmax, and in the wrong places",
    hint="Which places does the mask allow? And what do the weights of one query sum to now?",
    more="Two things need to be changed: what True stands for, and the place of the mask between scores and softmax.",
    section=NOT_AFTER,
)
def weights_zeroed_inverted(query, key, value, mask):
    """The allowed weights are set to 0, after the softmax. True means “may attend”, and the mask comes before."""
    weights = attnlib.softmax(_scores(query, key)) * ~mask
    return weights @ value, weights


@MISTAKES.add(
    "0 after the softmax, and no scale",
    hint="What do the weights of one query sum to now? And what should the dot products have been divided by?",
    more="Two things need to be changed: the place of the mask between scores and softmax, and the scale of the "
    "scores.",
    section=NOT_AFTER,
)
def weights_zeroed_unscaled(query, key, value, mask):
    """The weights were set to 0 after the softmax, so the rows do not sum to 1, and the scores are not scaled."""
    weights = attnlib.softmax(attnlib.dot(query, key)) * mask
    return weights @ value, weights


@MISTAKES.add(
    "forbidden scores are multiplied by a large number",
    hint="What becomes of a negative score that is multiplied by a large negative number?",
    more="Print the masked scores of the smallest case. Each forbidden one should be far below all others.",
    section=BY_HAND,
)
def multiplied(query, key, value, mask):
    """Multiplying by a large negative number makes a negative score the largest of all. A score has to be replaced."""
    weights = _naive(_scores(query, key) * np.where(mask, 1, -1e9))
    return weights @ value, weights


@MISTAKES.add(
    "only 10 is subtracted",
    hint="By what factor does the weight fall if 10 is taken from a score? Does it reach 0?",
    more="Print the weights of the smallest case with many digits. Are there zeros where the mask is False?",
    section=FINITE,
)
def lowered_by_ten(query, key, value, mask):
    """Taking 10 from a forbidden score makes its weight small, but not 0: something still comes through."""
    weights = _naive(_scores(query, key) - 10.0 * ~mask)
    return weights @ value, weights


@MISTAKES.add(
    "forbidden keys get one point more",
    hint="Which keys does your mask favour? And does it hide any?",
    more="Two things need to be changed: what True stands for, and by how much a forbidden score has to fall.",
    section=POLARITY,
)
def added_inverted(query, key, value, mask):
    """The forbidden keys get one point more. Nothing is hidden, and the keys that should be hidden gain."""
    weights = attnlib.softmax(_scores(query, key) + ~mask)
    return weights @ value, weights


@MISTAKES.add(
    "the softmax overflows, in spite of a safe division",
    hint="Does your softmax subtract the maximum of each row? What is the exponential of 20 000?",
    more="What you did about a sum of 0 saves an empty row. Print the exponentials of the case with large scores: does "
    "it save those?",
    section=OVERFLOW,
)
def overflow_with_eps(query, key, value, mask):
    """An empty row is safe now. But the exponential of a large score is infinite, and that of a low one is 0."""
    e = np.where(mask, np.exp(_scores(query, key)), 0)
    weights = e / (e.sum(axis=-1, keepdims=True) + 1e-12)
    return weights @ value, weights


@MISTAKES.add(
    "minus 1000 instead of minus infinity",
    hint="Is minus 1000 smaller than every score that can occur?",
    more="Take scores around minus 40,000. Which entry of the row is the largest then?",
    section=FINITE,
)
def minus_thousand(query, key, value, mask):
    """Hidden scores are set to -1000, which is not small compared with scores of -40,000."""
    return _empty_to_zero(_filled(query, key, value, mask, -1000.0), mask)


@MISTAKES.add(
    "an empty row has context 0 but still has weights",
    hint="When a query may look at nothing, are its weights 0 in your result?",
    more="You have fixed one of the two results. The task asks for the other one as well.",
    section=FINITE,
)
def weights_of_empty_rows(query, key, value, mask):
    """Where nothing may be attended to, the context is 0, but the weights still sum to 1."""
    context, weights = _filled(query, key, value, mask, -1e300)
    return np.where(mask.any(axis=-1, keepdims=True), context, 0.0), weights


@MISTAKES.add(
    "the scores are cut off",
    hint="Two different large scores become the same number once they are cut off. Which operation keeps them apart?",
    more="Print the row of scores before and after you limit it. The largest two should still differ.",
    section=OVERFLOW,
)
def cut_off(query, key, value, mask):
    """Scores beyond a limit are cut down to it, so different large scores get the same weight."""
    return _attend(np.clip(_scores(query, key), -500, 500), value, mask)


@MISTAKES.add(
    "the meaning of a dimension is guessed from its size",
    hint="What does your code do if there are as many sequences as queries?",
    more="Sizes alone cannot tell a mask of (T, S) from one of (B, S). The task says which of the two comes.",
    section=KINDS,
)
def guessed_from_size(query, key, value, mask):
    """You compare sizes to find out what the mask's first dimension is. With as many sequences as queries, it fails."""
    scores = _scores(query, key)
    while mask.ndim < scores.ndim:
        mask = np.expand_dims(mask, 1 if mask.shape[0] == query.shape[0] else 0)
    return _attend(scores, value, mask)


@MISTAKES.add(
    "a mask with a batch dimension is repeated all the same",
    hint="Which of the masks in the task already differ from sequence to sequence? What does your code do with those?",
    more="Print the shape of the mask before and after you repeat it, for a mask of (B, T, S). Is repeating needed at "
    "all?",
    section=KINDS,
)
def tiled(query, key, value, mask):
    """In a batch, you repeat every mask. One that has a batch dimension already becomes too large."""
    scores = _scores(query, key)
    return _attend(scores, value, np.tile(mask, (len(scores), 1, 1)) if scores.ndim > 2 else mask)


@MISTAKES.add(
    "a query counts as empty as soon as one key is hidden",
    hint="When does a query have nothing to attend to: when some of its keys are hidden, or when all of them are?",
    more="Take the mask row True, True, False. Does your test say that this query sees nothing? Compare what any "
    "and all return for this row.",
    section=EMPTY,
)
def not_all_is_empty(query, key, value, mask):
    """A query gets zeros as soon as one key is hidden. Only a query that can see no key at all should get them."""
    context, weights = attnlib.attention(query, key, value, mask=mask)
    full = np.broadcast_to(mask, weights.shape).all(axis=-1, keepdims=True)
    return np.where(full, context, 0.0), np.where(full, weights, 0.0)


@MISTAKES.add(
    "only the number of allowed keys counts, not which ones they are",
    hint="Which keys does the row True, False, True allow, and which does your code allow?",
    more="A length says how many words come before the padding. A mask says more: the keys that it allows can be "
    "anywhere.",
    section=KINDS,
)
def lengths_from_the_mask(query, key, value, mask):
    """You count the allowed keys of a query, and let it see that many from the first on. The mask says which ones."""
    scores = _scores(query, key)
    counts = np.broadcast_to(mask, scores.shape).sum(axis=-1, keepdims=True)
    return _attend(scores, value, np.arange(scores.shape[-1]) < counts)


@MISTAKES.add(
    "missing dimensions are inserted before the last two",
    hint="Which dimensions does a mask (T, S) lack for scores (B, H, T, S)? And a mask (H, T, S)?",
    more="Broadcasting itself adds dimensions, at the very front. Compare the shape of your mask with that of the "
    "scores, aligned on the right, for a mask (S,) and for a mask (H, T, S).",
    section=KINDS,
)
def room_before_the_last_two(query, key, value, mask):
    """You insert new dimensions before the mask's last two. They belong at the very front."""
    scores = _scores(query, key)
    while mask.ndim < scores.ndim:
        mask = np.expand_dims(mask, -3)
    return _attend(scores, value, mask)


@MISTAKES.add(
    "a causal mask is applied as well",
    hint="What decides which keys a query can see: only the given mask, or something else as well?",
    more="The first query of the smallest case can see two keys. How many of them get a weight in your result?",
    section=KINDS,
)
def causal_unasked(query, key, value, mask):
    """You also hide later keys, although the mask allows them. If they should be hidden, the mask says so."""
    scores = _scores(query, key)
    return _attend(scores, value, mask & np.tri(scores.shape[-2], scores.shape[-1], dtype=bool))


@MISTAKES.add(
    "every weight became nan, and then 0",
    hint="What do your weights contain just before you replace nan? What is 0 times infinity?",
    more="Multiply the mask by minus infinity on paper, once for True and once for False. Choosing between two "
    "numbers, as where does, needs no multiplication.",
    section=NOT_AFTER,
)
def nan_made_zero_everywhere(query, key, value, mask):
    """Zero times infinity is nan, so every score became nan, and replacing nan by 0 made every weight 0."""
    weights = np.zeros(_scores(query, key).shape, query.dtype)
    return weights @ value, weights


@MISTAKES.add(
    "the mask gets a new second dimension",
    hint="Does the mask (B, 1, 1, S) of the task need one more dimension? Does a mask (B, T, S) without heads?",
    more="Write the shapes of the mask and of the scores one below the other, aligned on the right, before and "
    "after that line. The mask that you are given is ready to broadcast.",
    section=KINDS,
)
def axis_for_heads(query, key, value, mask):
    """You give a mask of three or more dimensions an extra one for heads. It already fits the scores."""
    return _attend(_scores(query, key), value, np.expand_dims(mask, 1) if mask.ndim > 2 else mask)


EXERCISE = Exercise(
    name="masked_attention",
    reference=masked_attention,
    outputs={"context": ("T", "D_v"), "weights": ("T", "S")},
    rubric={NUMBERS: 4, SHAPES: 2, NOTHING: 2, LARGE: 1, UNCHANGED: 1},
    section=BY_HAND,
    advice="Print the scores, the masked scores, their exponentials and the weights for the smallest case, one after "
    "the "
    "other. Which of them is the first that differs from what you have on paper?",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    analytic_gradients=through_attention,
    solved_by=ATTENTION_FUNCTIONS,
)
