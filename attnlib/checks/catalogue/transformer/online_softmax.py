"""online_softmax(scores, value, total, norm, maximum): one step of the softmax in one pass."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.duplicate_rows import with_duplicate_rows
from attnlib.checks.catalogue.transformer.sections import IN_BLOCKS, INVARIANT, ONE_PASS
from attnlib.checks.exercise import Exercise, Mistakes

NUMBERS, FIRST, BATCHES = "the numbers", "the first block", "batches"
LARGE, UNCHANGED = "large scores", "state unchanged"
MISTAKES = Mistakes()
Floats = NDArray[np.floating[Any]]


def online_softmax(
    scores: Floats, value: Floats, total: Floats, norm: Floats, maximum: Floats
) -> tuple[Floats, Floats, Floats]:
    """Take one more block of keys into a softmax, without looking back at those before.

    The state says of all scores s_k so far: their ``maximum`` m, the ``norm``, the sum of e^(s_k - m), and the
    ``total``, the sum of e^(s_k - m) v_k. Before the first block they are -inf, 0 and 0.

    Args:
        scores: of the new block, ``(..., T, S)``; each query has a finite one among them.
        value: of the new block, ``(..., S, D_v)``.
        total: so far, ``(..., T, D_v)``.
        norm: so far, ``(..., T)``.
        maximum: so far, ``(..., T)``.

    Returns:
        The new ``(total, norm, maximum)``; what came in stays as it is.
    """
    highest = np.maximum(maximum, scores.max(axis=-1))
    shrink = np.exp(maximum - highest)
    exponentials = np.exp(scores - highest[..., None])
    norm = shrink * norm + exponentials.sum(axis=-1)
    total = shrink[..., None] * total + exponentials @ value
    return total, norm, highest


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: the chapter's second block, maxima that rise and stay, first blocks, batches, size."""
    log = np.log
    second = given(log([[5.0, 8.0]]), [[0.0], [4.0]], [[16.0]], [1.5], log([2.0]))
    yield Case("the second block of the chapter: exponentials 5 and 8 after 1 and 2", NUMBERS, second)
    lower = given(log([[3.0, 2.0]]), [[4.0], [-2.0]], [[5.0]], [1.25], log([4.0]))
    yield Case("a block whose scores are all below the maximum so far", NUMBERS, lower)
    yield Case("3 queries, 5 keys (the maximum rises for some, stays for others)", NUMBERS, state(rng, (), 3, 5, 2))
    negative = state(rng, (), 2, 4, 3)
    negative["scores"] -= 6
    negative["maximum"] -= 6
    yield Case("2 queries whose scores are all below 0", NUMBERS, negative)
    yield Case("4 queries, 1 key", NUMBERS, state(rng, (), 4, 1, 3))
    yield Case("three of everything", NUMBERS, state(rng, (), 3, 3, 3))
    repeated = with_duplicate_rows(state(rng, (), 3, 6, 4), "value")
    repeated["scores"][:, -1] = repeated["scores"][:, 0]
    yield Case("scores and values, some of them repeated", NUMBERS, repeated)
    first = given(log([[1.0, 2.0]]), [[16.0], [8.0]], [[0.0]], [0.0], [-np.inf])
    yield Case("the first block of the chapter: the maximum so far is -inf", FIRST, first)
    yield Case("the first block for 4 queries (S=6, D_v=3)", FIRST, begun(state(rng, (), 4, 6, 3)))
    yield Case("a batch of 2 (T=3, S=5, D_v=4)", BATCHES, state(rng, (2,), 3, 5, 4))
    yield Case("leading dimensions (2, 7)", BATCHES, state(rng, (2, 7), 3, 5, 4))
    yield Case("three of everything, three times", BATCHES, state(rng, (3,), 3, 3, 3))
    yield Case("vectors in float32", BATCHES, state(rng, (2,), 5, 4, 3, np.float32))
    large = state(rng, (), 4, 5, 2)
    large["scores"] += np.array([[3000.0], [-3000.0], [2000.0], [-2000.0]])
    large["maximum"] += np.array([3000.0, -3000.0, 3000.0, -3000.0])
    yield Case("scores of several thousand", LARGE, large)
    low = begun(state(rng, (), 3, 4, 2))
    yield Case("a first block whose scores are all about -3000", LARGE, low | {"scores": low["scores"] - 3000})
    hidden = state(rng, (), 3, 5, 2)
    hidden["scores"][[0, 0, 1, 2], [1, 4, 0, 2]] = -np.inf
    yield Case("some keys hidden: their scores are -inf", LARGE, hidden)
    yield Case("a state that must stay as it is", UNCHANGED, state(rng, (), 5, 3, 4), unchanged=True)


def given(scores, value, total, norm, maximum) -> dict[str, Floats]:
    """Return the five arrays by name."""
    arrays = {"scores": scores, "value": value, "total": total, "norm": norm, "maximum": maximum}
    return {name: np.array(x, dtype=np.float64) for name, x in arrays.items()}


def state(rng, leading: tuple[int, ...], t: int, s: int, d_v: int, dtype=np.float64) -> dict[str, Floats]:
    """Return a random block and a state, whose maximum is by turns below and above that of the block."""
    scores, value = rng.normal(size=(*leading, t, s)), rng.normal(size=(*leading, s, d_v))
    above = np.resize([-1.3, 0.7, -0.4, 1.1, -0.9], t)
    arrays = given(
        scores,
        value,
        rng.normal(size=(*leading, t, d_v)),
        rng.uniform(1.5, 3.0, size=(*leading, t)),
        scores.max(axis=-1) + above,
    )
    return {name: x.astype(dtype) for name, x in arrays.items()}


def begun(arrays: dict[str, Floats]) -> dict[str, Floats]:
    """Return the same block with the state before the first one."""
    empty = {"total": 0 * arrays["total"], "norm": 0 * arrays["norm"], "maximum": np.full_like(arrays["norm"], -np.inf)}
    return arrays | empty


def _step(scores, value, total, norm, maximum, *, highest=None, shrink=None, e=None, old=None):
    """The step with one or more of its pieces replaced; ``old`` are the factors of total and norm."""
    highest = np.maximum(maximum, scores.max(axis=-1)) if highest is None else highest
    shrink = np.exp(maximum - highest) if shrink is None else shrink
    of_total, of_norm = (shrink, shrink) if old is None else old
    e = np.exp(scores - highest[..., None]) if e is None else e
    return of_total[..., None] * total + e @ value, of_norm * norm + e.sum(axis=-1), highest


def _highest(scores, maximum):
    return np.maximum(maximum, scores.max(axis=-1))


# The state so far --------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "the total is not rescaled",
    hint="Which two sums were measured against the old maximum? Did you scale down both?",
    more="In the chapter's example the maximum rises from log 2 to log 8. What is the old total of 16 multiplied by?",
    section=IN_BLOCKS,
)
def total_not_rescaled(scores, value, total, norm, maximum):
    """The norm so far is scaled to the new maximum, but the total is not. Both were measured against the old one."""
    shrink = np.exp(maximum - _highest(scores, maximum))
    return _step(scores, value, total, norm, maximum, old=(np.ones_like(shrink), shrink))


@MISTAKES.add(
    "the norm is not rescaled",
    hint="Which two sums were measured against the old maximum? Did you scale down both?",
    more="In the chapter's example the maximum rises from log 2 to log 8. What is the old norm of 1.5 multiplied by?",
    section=IN_BLOCKS,
)
def norm_not_rescaled(scores, value, total, norm, maximum):
    """The total so far is scaled to the new maximum, but the norm is not. Both were measured against the old one."""
    shrink = np.exp(maximum - _highest(scores, maximum))
    return _step(scores, value, total, norm, maximum, old=(shrink, np.ones_like(shrink)))


@MISTAKES.add(
    "nothing is rescaled",
    hint="When the maximum rises, what is wrong with the sums so far?",
    more="In the chapter's example the maximum rises from log 2 to log 8. What are the old norm and the old total "
    "multiplied by?",
    section=IN_BLOCKS,
)
def nothing_rescaled(scores, value, total, norm, maximum):
    """The new block is added to the sums so far as they are.

    They were measured against the old maximum, and have to be scaled to the new one first.
    """
    one = np.ones_like(norm)
    return _step(scores, value, total, norm, maximum, old=(one, one))


@MISTAKES.add(
    "the old maximum is overwritten before the factor is made",
    hint="What do you know of the old maximum after the line that writes the new one?",
    more="Print the maximum that came in, before and after the call. Is the array that you were given still the same?",
    section=IN_BLOCKS,
)
def maximum_overwritten(scores, value, total, norm, maximum):
    """The new maximum is written into the array that holds the old one. Their difference is 0, and the factor is 1."""
    np.maximum(maximum, scores.max(axis=-1), out=maximum)
    return _step(scores, value, total, norm, maximum)


@MISTAKES.add(
    "rescaled only if the maximum of every query rises",
    hint="Can the maximum rise for one query and stay as it is for another?",
    more="Give your function two queries, and let a larger score arrive for the first alone. What are the old sums of "
    "the first multiplied by?",
    section=IN_BLOCKS,
)
def rescaled_if_all_rise(scores, value, total, norm, maximum):
    """The old sums are scaled only if the maxima of all queries rise. Each query has a maximum and a factor of its own.

    No condition is needed: where the maximum stays, the factor is 1.
    """
    shrink = np.exp(maximum - _highest(scores, maximum))
    shrink = shrink if (shrink < 1).all() else np.ones_like(shrink)
    return _step(scores, value, total, norm, maximum, shrink=shrink)


@MISTAKES.add(
    "rescaled the wrong way round",
    hint="When the maximum rises, do the old sums have to become smaller or larger?",
    more="The factor is an exponential whose exponent is never positive. Is yours?",
    section=IN_BLOCKS,
)
def rescaled_upwards(scores, value, total, norm, maximum):
    """The old sums are multiplied by the inverse of the right factor: they grow where they should shrink."""
    return _step(scores, value, total, norm, maximum, shrink=np.exp(_highest(scores, maximum) - maximum))


@MISTAKES.add(
    "the old sums are scaled down twice",
    hint="How often does the factor occur in front of each old sum?",
    more="In the chapter's example the factor is 1/4. What were your old sums multiplied by?",
    section=INVARIANT,
)
def shrunk_twice(scores, value, total, norm, maximum):
    """The factor for the old sums is squared, or used twice. Once is enough."""
    return _step(scores, value, total, norm, maximum, shrink=np.exp(2 * (maximum - _highest(scores, maximum))))


@MISTAKES.add(
    "rescaled by the difference, not by its exponential",
    hint="The old sums are sums of exponentials. What turns a difference of exponents into a factor?",
    more="In the chapter's example the maximum rises from log 2 to log 8. The factor is one quarter. What is yours?",
    section=IN_BLOCKS,
)
def shrink_without_exp(scores, value, total, norm, maximum):
    """The old sums are multiplied by the difference of the two maxima.

    The factor is the exponential of that difference.
    """
    return _step(scores, value, total, norm, maximum, shrink=maximum - _highest(scores, maximum))


@MISTAKES.add(
    "the new block is rescaled as well",
    hint="Against which maximum were the exponentials of the new block measured?",
    more="Write the two terms of the new norm one below the other. Which of them was measured against the old maximum?",
    section=IN_BLOCKS,
)
def everything_rescaled(scores, value, total, norm, maximum):
    """The sum of old and new is multiplied by the factor.

    The new block is measured against the new maximum already, so only the old sums need it.
    """
    highest = _highest(scores, maximum)
    shrink, e = np.exp(maximum - highest), np.exp(scores - highest[..., None])
    return shrink[..., None] * (total + e @ value), shrink * (norm + e.sum(-1)), highest


@MISTAKES.add(
    "the old state is forgotten",
    hint="What should be left of the blocks before this one?",
    more="Change the total and the norm that come in. Does your result change?",
    section=INVARIANT,
)
def state_forgotten(scores, value, total, norm, maximum):
    """The result holds the new block alone. The sums so far have to be in it, scaled to the new maximum."""
    return _step(scores, value, 0 * total, 0 * norm, maximum)


@MISTAKES.add(
    "the old norm is forgotten",
    hint="What should the norm be the sum of: this block's exponentials, or all so far?",
    more="Change the norm that comes in. Does your result change?",
    section=INVARIANT,
)
def norm_forgotten(scores, value, total, norm, maximum):
    """The new norm sums the new block alone. The norm so far has to be in it, scaled to the new maximum."""
    return _step(scores, value, total, 0 * norm, maximum)


@MISTAKES.add(
    "the old total is forgotten",
    hint="What should the total be the sum of: this block's values, or all so far?",
    more="Change the total that comes in. Does your result change?",
    section=INVARIANT,
)
def total_forgotten(scores, value, total, norm, maximum):
    """The new total sums the new block alone. The total so far has to be in it, scaled to the new maximum."""
    return _step(scores, value, 0 * total, norm, maximum)


@MISTAKES.add(
    "rescaled by the ratio of the norms",
    hint="What has changed for the old sums: how many terms there are, or what they are measured against?",
    more="In the chapter's example the factor for the old sums is one quarter. From which two numbers does it come?",
    section=IN_BLOCKS,
)
def ratio_of_norms(scores, value, total, norm, maximum):
    """The old total is multiplied by the old norm over the new one.

    It should be scaled by the change in the maximum; the division by the norm comes once, after the last block.
    """
    _, new_norm, highest = _step(scores, value, total, norm, maximum)
    e = np.exp(scores - highest[..., None])
    return (norm / new_norm)[..., None] * total + e @ value, new_norm, highest


@MISTAKES.add(
    "old and new are measured against different maxima",
    hint="What are the old sums measured against, and what are the new ones? Can they be added like that?",
    more="In the chapter's example the old sums are measured against log 2 and the block against log 8. Which of the "
    "two stays as it is?",
    section=IN_BLOCKS,
)
def no_common_measure(scores, value, total, norm, maximum):
    """The old sums stay measured against the old maximum, and the block against its own.

    Both have to be brought to the new maximum before they are added.
    """
    one = np.ones_like(norm)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return _step(scores, value, total, norm, maximum, e=e, old=(one, one))


@MISTAKES.add(
    "the old sums get the factor of the block",
    hint="The old sums go from being measured against one maximum to another. Which two?",
    more="In the chapter's example the old sums are measured against log 2, and the new maximum is log 8. What is your "
    "exponent?",
    section=IN_BLOCKS,
)
def factor_of_the_block(scores, value, total, norm, maximum):
    """The old sums are scaled by the difference between the maximum of the block and the new one.

    It is the old maximum that they were measured against.
    """
    shrink = np.exp(scores.max(axis=-1) - _highest(scores, maximum))
    return _step(scores, value, total, norm, maximum, shrink=shrink)


# The maximum -------------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "the new block is not shifted",
    hint="What are the exponentials of the new block measured against?",
    more="In the chapter's example the second block has the exponentials 5 and 8. Measured against the new maximum "
    "they are 5/8 and 1. What are yours?",
    section=IN_BLOCKS,
)
def block_not_shifted(scores, value, total, norm, maximum):
    """The exponentials of the new block are taken as they are.

    They have to be measured against the new maximum, as the old sums are.
    """
    return _step(scores, value, total, norm, maximum, e=np.exp(scores))


@MISTAKES.add(
    "the new block is measured against its own maximum",
    hint="What if the largest score came in an earlier block?",
    more="Give your function a block whose scores all lie below the maximum so far. Should any exponential of this "
    "block be 1 then?",
    section=INVARIANT,
)
def shifted_by_its_own(scores, value, total, norm, maximum):
    """The exponentials of the new block are measured against the largest score of that block.

    They have to be measured against the largest of all blocks so far.
    """
    return _step(scores, value, total, norm, maximum, e=np.exp(scores - scores.max(axis=-1, keepdims=True)))


@MISTAKES.add(
    "the new block is measured against the old maximum",
    hint="Which maximum do the sums have after this step?",
    more="An exponent should never be positive here. For the second block of the chapter, is yours?",
    section=INVARIANT,
)
def shifted_by_the_old(scores, value, total, norm, maximum):
    """The exponentials of the new block are measured against the maximum before this block.

    They have to be measured against the new one, or they may overflow.
    """
    return _step(scores, value, total, norm, maximum, e=np.exp(scores - maximum[..., None]))


@MISTAKES.add(
    "the maximum of this block alone",
    hint="Can the maximum of all scores so far become smaller when a block is added?",
    more="Give your function a block whose scores all lie below the maximum so far. What should the new maximum be?",
    section=INVARIANT,
)
def maximum_of_the_block(scores, value, total, norm, maximum):
    """The new maximum is that of the new block, whatever came before. It should be the largest of all scores so far."""
    return _step(scores, value, total, norm, maximum, highest=scores.max(axis=-1))


@MISTAKES.add(
    "the smaller of the two maxima",
    hint="Of the old maximum and that of the block, which one is at least as large as every score?",
    more="Print the exponents of the new block. None should be positive.",
    section=INVARIANT,
)
def smaller_maximum(scores, value, total, norm, maximum):
    """You take the smaller of the old maximum and the block's. The larger one is the largest score so far."""
    return _step(scores, value, total, norm, maximum, highest=np.minimum(maximum, scores.max(axis=-1)))


@MISTAKES.add(
    "the scores are divided by the root of the width of the values",
    hint="What comes in: products of queries and keys, or scores that are scaled already?",
    more="Give your function a first block with the scores 1 and 3. What should the new maximum be?",
    section=ONE_PASS,
)
def scaled_by_value_width(scores, value, total, norm, maximum):
    """The scores are divided by a root once more. They arrive ready for the softmax."""
    return _step(scores / value.shape[-1] ** 0.5, value, total, norm, maximum)


@MISTAKES.add(
    "the scores are divided by the root of the size of the block",
    hint="What comes in: products of queries and keys, or scores that are scaled already?",
    more="Give your function a first block with the scores 1 and 3. What should the new maximum be?",
    section=ONE_PASS,
)
def scaled_by_block_size(scores, value, total, norm, maximum):
    """The scores are divided by a root once more. They arrive ready for the softmax."""
    return _step(scores / scores.shape[-1] ** 0.5, value, total, norm, maximum)


@MISTAKES.add(
    "the maximum is never updated",
    hint="What does the next block have to know about this one?",
    more="Compare the third result with the third array of the state that came in. When should they differ?",
    section=INVARIANT,
)
def old_maximum_returned(scores, value, total, norm, maximum):
    """The sums are right, but the old maximum is returned, so the next block would be measured wrongly."""
    total, norm, _ = _step(scores, value, total, norm, maximum)
    return total, norm, maximum


@MISTAKES.add(
    "everything stays with the old maximum",
    hint="What becomes of the maximum when a larger score arrives?",
    more="An exponent should never be positive here. For the second block of the chapter, is yours?",
    section=IN_BLOCKS,
)
def stays_with_the_old(scores, value, total, norm, maximum):
    """The old maximum serves for the new block too, and nothing is rescaled.

    When a larger score arrives, it becomes the new maximum.
    """
    return _step(scores, value, total, norm, maximum, highest=maximum)


@MISTAKES.add(
    "the maximum runs over the queries",
    hint="Each query has scores of its own. Along which axis of the block do they lie?",
    more="Print the shape of the maximum of the block. There should be one number for each query.",
    section=ONE_PASS,
)
def maximum_over_queries(scores, value, total, norm, maximum):
    """The maximum of the block is taken over the queries, for each key.

    It should be taken over the keys, for each query.
    """
    return _step(scores, value, total, norm, maximum, highest=np.maximum(maximum, scores.max(axis=-2)))


@MISTAKES.add(
    "one maximum for all queries",
    hint="Each query has scores of its own. How many maxima should there be?",
    more="Print the shape of the maximum of the block. There should be one number for each query.",
    section=ONE_PASS,
)
def one_maximum(scores, value, total, norm, maximum):
    """One number, the largest score of the whole block, serves all queries.

    Each query should have the largest of its own scores.
    """
    return _step(scores, value, total, norm, maximum, highest=np.maximum(maximum, scores.max()))


@MISTAKES.add(
    "one maximum for everything",
    hint="Each query has scores of its own. How many maxima should there be?",
    more="Print the new maximum for three queries. Should all three numbers be the same?",
    section=ONE_PASS,
)
def one_maximum_for_everything(scores, value, total, norm, maximum):
    """The largest number of all, among the scores and the old maxima, serves all queries.

    Each query should have the largest of its own.
    """
    highest = np.full_like(maximum, max(maximum.max(), scores.max()))
    return _step(scores, value, total, norm, maximum, highest=highest)


@MISTAKES.add(
    "the maximum never falls below 0",
    hint="Before the first block the maximum is -inf. What is the largest of some negative scores?",
    more="Give your function a first block with the scores -3 and -1. What is its maximum?",
    section=ONE_PASS,
)
def at_least_zero(scores, value, total, norm, maximum):
    """A 0 takes part in the search for the maximum. Only scores should: when all are negative, so is the largest."""
    return _step(scores, value, total, norm, maximum, highest=np.maximum(_highest(scores, maximum), 0))


@MISTAKES.add(
    "no maximum is subtracted",
    hint="What is the maximum for, in a softmax?",
    more="In the chapter's example the second block has the exponentials 5 and 8. Measured against the new maximum "
    "they are 5/8 and 1. What are yours?",
    section=ONE_PASS,
)
def no_shift(scores, value, total, norm, maximum):
    """The plain exponentials are added to the sums so far.

    Both have to be measured against the largest score, or large scores overflow.
    """
    one = np.ones_like(norm)
    return _step(scores, value, total, norm, maximum, e=np.exp(scores), old=(one, one))


@MISTAKES.add(
    "the exponent is reversed",
    hint="Which score should have the largest exponential: the largest one, or the smallest?",
    more="The exponential of the largest score so far is 1, and all others are smaller. Are yours?",
    section=ONE_PASS,
)
def exponent_reversed(scores, value, total, norm, maximum):
    """The scores are subtracted from the maximum, so the smallest score gets the largest share.

    The maximum should be subtracted from the scores.
    """
    highest = _highest(scores, maximum)
    return _step(scores, value, total, norm, maximum, e=np.exp(highest[..., None] - scores))


# The sums ----------------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "the total is divided by the norm",
    hint="When is the division made: after each block, or once at the end?",
    more="In the chapter's example the total after the first block is 16, and the norm 1.5. What would your function "
    "return?",
    section=IN_BLOCKS,
)
def normalised_total(scores, value, total, norm, maximum):
    """What you return as the total is the average so far. The next block needs the sum, not yet divided."""
    total, norm, highest = _step(scores, value, total, norm, maximum)
    return total / norm[..., None], norm, highest


@MISTAKES.add(
    "the block's weights are normalised",
    hint="Does a block on its own know what its exponentials have to be divided by?",
    more="Sum the numbers that multiply the values of the block. If that is 1, they were divided too early.",
    section=ONE_PASS,
)
def softmax_of_the_block(scores, value, total, norm, maximum):
    """The values of the block are averaged with the softmax of the block.

    They should be summed with its exponentials; the division comes once, after the last block.
    """
    new_total, new_norm, highest = _step(scores, value, total, norm, maximum)
    e = np.exp(scores - highest[..., None])
    average = (e / e.sum(-1, keepdims=True)) @ value
    return new_total - e @ value + average, new_norm, highest


@MISTAKES.add(
    "an average is carried instead of the sum",
    hint="Is the total that comes in divided already? What comes in first, and what does the task ask for?",
    more="In the chapter's example the total after the first block is 16, and the norm 1.5. What would your function "
    "return?",
    section=IN_BLOCKS,
)
def running_average(scores, value, total, norm, maximum):
    """Your step takes the total that comes in for an average, weighs it by its norm, and divides again.

    The total is a sum that is divided only after the last block.
    """
    shrink = np.exp(maximum - _highest(scores, maximum))
    total, norm, highest = _step(scores, value, total, norm, maximum, old=(shrink * norm, shrink))
    return total / norm[..., None], norm, highest


@MISTAKES.add(
    "the logarithm of the norm is returned",
    hint="What will the next block multiply by its factor: a sum, or a logarithm?",
    more="In the chapter's example the norm after the second block is 2. What is yours?",
    section=ONE_PASS,
)
def logarithm_of_the_norm(scores, value, total, norm, maximum):
    """Instead of the norm you return the logarithm of the sum of all exponentials.

    The state should hold the sum itself, measured against the maximum.
    """
    total, norm, highest = _step(scores, value, total, norm, maximum)
    return total, highest + np.log(norm), highest


@MISTAKES.add(
    "the block's weights are normalised, in total and norm",
    hint="Does a block on its own know what its exponentials have to be divided by?",
    more="Sum the exponentials of the block that you add to the norm. If that is 1, they were divided too early.",
    section=ONE_PASS,
)
def softmax_of_the_block_in_both(scores, value, total, norm, maximum):
    """Both sums take the softmax of the block.

    They should take its exponentials; the division comes once, after the last block.
    """
    e = np.exp(scores - _highest(scores, maximum)[..., None])
    return _step(scores, value, total, norm, maximum, e=e / e.sum(axis=-1, keepdims=True))


@MISTAKES.add(
    "the values are forgotten",
    hint="Which of the two sums contains the values?",
    more="In the chapter's example the second block adds 4 to the total. What do you add?",
    section=INVARIANT,
)
def values_forgotten(scores, value, total, norm, maximum):
    """To each number of the total you add the sum of the exponentials, as for the norm.

    In the total each exponential is multiplied by its value.
    """
    return _step(scores, np.ones_like(value), total, norm, maximum)


@MISTAKES.add(
    "the values are not weighted",
    hint="What is each value of the block multiplied by before it is added?",
    more="In the chapter's example the value 0 is multiplied by 5/8 and the value 4 by 1. What are your factors?",
    section=INVARIANT,
)
def values_not_weighted(scores, value, total, norm, maximum):
    """The values of the block are added as they are. Each should be multiplied by the exponential of its score."""
    new_total, new_norm, highest = _step(scores, value, total, norm, maximum)
    e = np.exp(scores - highest[..., None])
    return new_total - e @ value + np.ones_like(e) @ value, new_norm, highest


@MISTAKES.add(
    "scores instead of exponentials",
    hint="What is each value of the block multiplied by: its score, or what the softmax makes of it?",
    more="In the chapter's example the value 4 is multiplied by 1, since its score is the maximum. What do you "
    "multiply it by?",
    section=INVARIANT,
)
def scores_as_weights(scores, value, total, norm, maximum):
    """The values are multiplied by their scores, less the maximum. The exponential of that difference belongs there."""
    highest = _highest(scores, maximum)
    return _step(scores, value, total, norm, maximum, e=scores - highest[..., None])


@MISTAKES.add(
    "the norm counts the keys",
    hint="What is summed in the norm: ones, or exponentials?",
    more="In the chapter's example the norm after the second block is 2. What is yours?",
    section=INVARIANT,
)
def norm_counts(scores, value, total, norm, maximum):
    """The norm grows by the number of keys in the block. It should grow by the sum of their exponentials."""
    new_total, new_norm, highest = _step(scores, value, total, norm, maximum)
    e = np.exp(scores - highest[..., None])
    return new_total, new_norm - e.sum(-1) + scores.shape[-1], highest


@MISTAKES.add(
    "the norm takes the mean",
    hint="What is the norm: the sum of the exponentials, or their mean?",
    more="In the chapter's example the norm after the second block is 2. What is yours?",
    section=INVARIANT,
)
def norm_of_means(scores, value, total, norm, maximum):
    """The norm grows by the mean of the exponentials. It should grow by their sum, since all blocks go into one sum."""
    new_total, new_norm, highest = _step(scores, value, total, norm, maximum)
    e = np.exp(scores - highest[..., None])
    return new_total, new_norm - e.sum(-1) + e.mean(-1), highest


@MISTAKES.add(
    "the norm sums over the queries",
    hint="Each query has a norm of its own. Along which axis of the block do its exponentials lie?",
    more="Print the shape of the sum that you add to the norm. There should be one number for each query.",
    section=ONE_PASS,
)
def sum_over_queries(scores, value, total, norm, maximum):
    """The exponentials are summed over the queries, for each key.

    They should be summed over the keys, for each query.
    """
    highest = _highest(scores, maximum)
    shrink, e = np.exp(maximum - highest), np.exp(scores - highest[..., None])
    return shrink[..., None] * total + e @ value, shrink * norm + e.sum(axis=-2), highest


@MISTAKES.add(
    "one norm for all queries",
    hint="Along which axis should the exponentials be summed, and how many numbers does your sum return?",
    more="Print the shape of the sum that you add to the norm. There should be one number for each query.",
    section=ONE_PASS,
)
def sum_over_all(scores, value, total, norm, maximum):
    """The exponentials of all queries are summed into one number. Each query has a norm of its own."""
    highest = _highest(scores, maximum)
    shrink, e = np.exp(maximum - highest), np.exp(scores - highest[..., None])
    return shrink[..., None] * total + e @ value, shrink * norm + e.sum(), highest


@MISTAKES.add(
    "the factor of the total has lost its axis",
    hint="The total has one dimension more than the norm. Which of its numbers should the factor of a query multiply?",
    more="Print the shapes of the factor and of the total. To multiply whole rows, the factor has to be a column.",
    section=INVARIANT,
)
def factor_without_axis(scores, value, total, norm, maximum):
    """The factors of the queries lie in one row, so they multiply the columns of the total, or do not fit at all.

    Each should multiply a whole row.
    """
    highest = _highest(scores, maximum)
    shrink, e = np.exp(maximum - highest), np.exp(scores - highest[..., None])
    return shrink * total + e @ value, shrink * norm + e.sum(-1), highest


@MISTAKES.add(
    "the maximum that is subtracted has lost its axis",
    hint="The scores have one dimension more than the maximum. Where should the maximum of a query go?",
    more="Print the shapes of the scores and of the maximum. To be subtracted from whole rows, it has to be a column.",
    section=INVARIANT,
)
def maximum_without_axis(scores, value, total, norm, maximum):
    """The maxima lie in one row.

    So they are subtracted from the columns of the scores, or do not fit at all. Each should be subtracted from a whole
    row.
    """
    return _step(scores, value, total, norm, maximum, e=np.exp(scores - _highest(scores, maximum)))


# What is returned, and the edges -----------------------------------------------------------------------------------


@MISTAKES.add(
    "the results are in reverse order",
    hint="Compare the order of your results with that of the arguments.",
    more="Your first result should have the shape of the total. Does it?",
    section=ONE_PASS,
)
def reversed_results(scores, value, total, norm, maximum):
    """All three are right, but the maximum comes first. The order is that of the arguments: total, norm, maximum."""
    return _step(scores, value, total, norm, maximum)[::-1]


@MISTAKES.add(
    "norm and total have changed places",
    hint="Compare the order of your results with that of the arguments.",
    more="Your first result should have the shape of the total. Does it?",
    section=ONE_PASS,
)
def norm_first(scores, value, total, norm, maximum):
    """All three are right, but the norm comes before the total.

    The order is that of the arguments: total, norm, maximum.
    """
    total, norm, highest = _step(scores, value, total, norm, maximum)
    return norm, total, highest


@MISTAKES.add(
    "norm and maximum have changed places",
    hint="Compare the order of your results with that of the arguments.",
    more="Which of your results may be negative: the second, or the third?",
    section=ONE_PASS,
)
def maximum_before_norm(scores, value, total, norm, maximum):
    """All three are right, but the maximum comes before the norm.

    The order is that of the arguments: total, norm, maximum.
    """
    total, norm, highest = _step(scores, value, total, norm, maximum)
    return total, highest, norm


@MISTAKES.add(
    "norm has an axis too many",
    hint="How many numbers does each query have in the norm, and which shape does the norm that came in have?",
    more="Print the shapes of the norm before and after your step. They should be the same.",
    section=ONE_PASS,
)
def norm_with_axis(scores, value, total, norm, maximum):
    """The norm is a column, with one dimension more than the norm that came in. It should have the same shape."""
    total, norm, highest = _step(scores, value, total, norm, maximum)
    return total, norm[..., None], highest


@MISTAKES.add(
    "norm and maximum have an axis too many",
    hint="How many numbers does each query have in the norm, and which shape does the norm that came in have?",
    more="Print the shapes of the state before and after your step. They should be the same.",
    section=ONE_PASS,
)
def state_with_axis(scores, value, total, norm, maximum):
    """Norm and maximum are columns, with one dimension more than when they came in. They should have the same shape."""
    total, norm, highest = _step(scores, value, total, norm, maximum)
    return total, norm[..., None], highest[..., None]


@MISTAKES.add(
    "the context alone",
    hint="What does the next block need to go on?",
    more="Compare your return line with the one in the task: how many arrays does it name?",
    section=ONE_PASS,
)
def context_only(scores, value, total, norm, maximum):
    """One array is returned, the average so far. The task asks for three: total, norm and maximum."""
    total, norm, _ = _step(scores, value, total, norm, maximum)
    return total / norm[..., None]


@MISTAKES.add(
    "the first block gives nan",
    hint="Before the first block the maximum is -inf and the norm 0. Which of your steps is not defined for these?",
    more="Two things are not defined in floating point: infinity minus infinity, and zero divided by zero. Look for "
    "either with the state of the first block.",
    section=INVARIANT,
)
def nan_at_first(scores, value, total, norm, maximum):
    """For every later block your step is right.

    For the first one it asks for a difference of two infinities, or for zero over zero, and the sums become nan.
    """
    total, norm, highest = _step(scores, value, total, norm, maximum)
    empty = np.isneginf(maximum)
    return np.where(empty[..., None], np.nan, total), np.where(empty, np.nan, norm), highest


@MISTAKES.add(
    "the first block is lost",
    hint="Before the first block the maximum is -inf. What does your step make of a block that begins there?",
    more="Run your step on the first block of the chapter by hand: the total should be 16 and the norm 1.5.",
    section=INVARIANT,
)
def first_block_lost(scores, value, total, norm, maximum):
    """For every later block your step is right. Nothing from the first one gets into the sums."""
    new_total, new_norm, highest = _step(scores, value, total, norm, maximum)
    empty = np.isneginf(maximum)
    return np.where(empty[..., None], total, new_total), np.where(empty, norm, new_norm), highest


@MISTAKES.add(
    "the exponentials overflow on the way",
    hint="Is there an exponential in your step whose exponent may be positive?",
    more="The factor for the old sums is one exponential of a difference. A quotient of two exponentials is the same "
    "on paper. And for a maximum of 3000?",
    section=INVARIANT,
)
def quotient_of_exponentials(scores, value, total, norm, maximum):
    """The factors are right on paper.

    But they are quotients of two exponentials, which overflow for large scores. Take the difference first, then one
    exponential.
    """
    highest = _highest(scores, maximum)
    top = np.exp(highest)
    return _step(scores, value, total, norm, maximum, shrink=np.exp(maximum) / top, e=np.exp(scores) / top[..., None])


@MISTAKES.add(
    "the axis is counted from the front",
    hint="Which axis number means the last one, however many there are?",
    more="In a batch of blocks, the axes are numbered differently. Count from the end.",
    section=ONE_PASS,
)
def axis_from_front(scores, value, total, norm, maximum):
    """For one block axis 1 runs over the keys. With a batch in front it is a different axis."""
    highest = np.maximum(maximum, scores.max(axis=1))
    e = np.exp(scores - highest[..., None])
    shrink = np.exp(maximum - highest)
    return shrink[..., None] * total + e @ value, shrink * norm + e.sum(axis=1), highest


@MISTAKES.add(
    "the new axis is put in from the front",
    hint="A maximum for each query becomes a column. Where is the new axis, however many dimensions are in front?",
    more="In a batch of blocks, the axes are numbered differently. Count from the end.",
    section=ONE_PASS,
)
def new_axis_from_front(scores, value, total, norm, maximum):
    """For one block the new axis of maximum and factor is the second.

    With a batch in front it has to be the last, so that each query keeps its own.
    """
    highest = _highest(scores, maximum)
    shrink, e = np.exp(maximum - highest), np.exp(scores - highest[:, None])
    return shrink[:, None] * total + e @ value, shrink * norm + e.sum(-1), highest


@MISTAKES.add(
    "the state that came in is changed",
    hint="Who owns the arrays that your function is called with?",
    more="Print the total and the norm before and after the call. Which line writes into them?",
    section=ONE_PASS,
)
def state_changed(scores, value, total, norm, maximum):
    """The numbers are right, but they are written into the arrays that came in.

    Return new ones, and leave the old state as it was.
    """
    new_total, new_norm, highest = _step(scores, value, total, norm, maximum)
    total[...], norm[...] = new_total, new_norm
    return total, norm, highest


@MISTAKES.add(
    "the old maximum is overwritten",
    hint="Who owns the arrays that your function is called with?",
    more="Print the maximum before and after the call. Which line writes into it?",
    section=ONE_PASS,
)
def maximum_changed(scores, value, total, norm, maximum):
    """The numbers are right, but the new maximum is written into the array of the old one. Return a new one."""
    total, norm, highest = _step(scores, value, total, norm, maximum)
    maximum[...] = highest
    return total, norm, maximum


@MISTAKES.add(
    "the scores are overwritten",
    hint="Who owns the arrays that your function is called with?",
    more="Print the scores before and after the call. Which line writes into them?",
    section=ONE_PASS,
)
def scores_changed(scores, value, total, norm, maximum):
    """The numbers are right, but the scores that came in are changed on the way. Work on a new array."""
    total, norm, highest = _step(scores, value, total, norm, maximum)
    scores -= highest[..., None]
    return total, norm, highest


@MISTAKES.add(
    "a hidden key gets the score 0",
    hint="What is the exponential of minus infinity? Do you have to replace it?",
    more="Look at the case with hidden keys: what should their exponentials be, and what are yours?",
    section=INVARIANT,
)
def hidden_scores_zero(scores, value, total, norm, maximum):
    """You replace a score of minus infinity by 0, as if it were nan. The key that it should hide gets a share."""
    highest = _highest(scores, maximum)
    e = np.exp(np.where(np.isfinite(scores), scores, 0.0) - highest[..., None])
    return _step(scores, value, total, norm, maximum, e=e)


@MISTAKES.add(
    "the maximum before the first block is taken to be 0",
    hint="Before the first block the maximum is -inf. What is the exponential of -inf minus a number?",
    more="Suppose all scores of the first block are about -1000. What is your factor for the old sums, and what is it "
    "times 0?",
    section=INVARIANT,
)
def infinity_as_zero(scores, value, total, norm, maximum):
    """You start from 0, not from -inf. If all scores are far below 0, the factor is inf, and 0 times inf is nan."""
    old = np.where(np.isneginf(maximum), 0.0, maximum)
    return _step(scores, value, total, norm, maximum, shrink=np.exp(old - _highest(scores, maximum)))


EXERCISE = Exercise(
    name="online_softmax",
    reference=online_softmax,
    outputs={"total": ("T", "D_v"), "norm": ("T",), "maximum": ("T",)},
    rubric={NUMBERS: 5, FIRST: 1, BATCHES: 2, LARGE: 1, UNCHANGED: 1},
    section=ONE_PASS,
    advice="Take the second block of the chapter, and print in this order: the new maximum (log 8), the factor for the "
    "old sums (1/4), the exponentials of the block (5/8 and 1), the norm (2), the total (8). Which is the first to "
    "differ?",
    inputs=inputs,
    unrounded=("total", "norm", "maximum"),
    mistakes=tuple(MISTAKES),
    backends=("numpy",),
)
