"""attention_in_blocks(query, key, value, scale=None): attention a few keys at a time, without a table of all scores."""

from collections.abc import Callable, Iterator
from functools import partial, update_wrapper
from typing import Any

import numpy as np
from numpy.typing import NDArray

import attnlib
from attnlib.checks.calling.case import Case, Implementation
from attnlib.checks.calling.memory import LIMIT, call_within_memory
from attnlib.checks.catalogue.draw_qkv import draw_qkv
from attnlib.checks.catalogue.queries_keys_values.scaled_dot_product_attention import (
    BATCHES,
    LARGE,
    NUMBERS,
    SCALES,
    UNCHANGED,
    plain_inputs,
)
from attnlib.checks.catalogue.transformer.sections import IN_BLOCKS, INVARIANT, ONE_PASS
from attnlib.checks.exercise import ATTENTION_FUNCTIONS, Exercise, Mistakes, Section

Floats = NDArray[np.floating[Any]]
GIVEN = 2  # keys in a block of the function that is handed out
MAX_BYTES = 0.2e6  # in the case below: less than the table of all scores takes, and enough for 64 keys at a time


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases of attention without masks, and one in which a table of all scores would take too much memory."""
    yield from plain_inputs(rng)
    many, limit = draw_qkv(rng, (), 64, 512, 4, 2), {LIMIT: MAX_BYTES}
    yield Case("64 queries and 512 keys, without an array (64, 512)", NUMBERS, many, setup=limit)


class InBlocks(Mistakes):
    """Mistakes that answer differently for each size of a block: one entry for each size that students choose."""

    def add(
        self,
        title: str,
        *,
        hint: str,
        more: str,
        section: Section = IN_BLOCKS,
        sizes: tuple[int, ...] = (1, 2, 3, 4),
    ) -> Callable[[Implementation], Implementation]:
        """Register the decorated recipe for each size; the one for the given size has the plain id."""

        def register(recipe: Implementation) -> Implementation:
            for size in sizes:
                sized: Any = update_wrapper(partial(recipe, size=size), recipe)
                sized.__name__ += "" if size == GIVEN else f"_{size}_keys_at_a_time"
                super(InBlocks, self).add(title, hint=hint, more=more, section=section)(sized)
            return recipe

        return register


MISTAKES = InBlocks()


def blocks(query, key, value, scale, size) -> Iterator[tuple[Floats, Floats]]:
    """Yield the scores and the values of each block."""
    query = query * (query.shape[-1] ** -0.5 if scale is None else scale)
    for start in range(0, key.shape[-2], size):
        here = slice(start, start + size)
        yield query @ key[..., here, :].swapaxes(-1, -2), value[..., here, :]


def carried(of_blocks, factors=lambda rise: (np.exp(-rise), np.exp(-rise)), divide=False):
    """Carry total, norm and maximum over the blocks; a rise of the maximum gives the factors of total and norm."""
    total, norm, maximum = 0.0, 0.0, -np.inf
    for scores, value in of_blocks:
        highest = np.maximum(maximum, scores.max(axis=-1, keepdims=True))
        of_total, of_norm = factors(highest - maximum)
        e = np.exp(scores - highest)
        total, norm, maximum = of_total * total + e @ value, of_norm * norm + e.sum(axis=-1, keepdims=True), highest
        total = total / norm if divide else total
    return total if divide else total / norm


@MISTAKES.add(
    "the sums of earlier blocks are never scaled down",
    hint="When a later block has a larger maximum, what has to happen to the sums so far? Which number does your code "
    "multiply them by?",
    more="Print the factor of the old sums in every block. If it is always 1, print the old and the new maximum beside "
    "it, and ask whether they are two arrays, or one array with two names.",
)
def blocks_never_rescaled(query, key, value, *, scale=None, size):
    """The blocks are added as they are, though each is measured against the maximum that was known at the time.

    An assignment or a slice of a NumPy array is another name for the same numbers, not a copy. What is written into
    one of them is seen in the other.
    """
    return carried(blocks(query, key, value, scale, size), lambda rise: (1.0, 1.0))


@MISTAKES.add(
    "the denominator is not scaled down",
    hint="Two sums are carried from block to block. Which of them does your factor reach?",
    more="If all values are 1, every output is an average of ones. Which numbers do you get, and are they too small or "
    "too large?",
)
def denominator_not_rescaled(query, key, value, *, scale=None, size):
    """When the maximum rises, the numerator is scaled down and the denominator is not.

    Both were measured against the old maximum.
    """
    return carried(blocks(query, key, value, scale, size), lambda rise: (np.exp(-rise), 1.0))


@MISTAKES.add(
    "the numerator is not scaled down",
    hint="Two sums are carried from block to block. Which of them does your factor reach?",
    more="If all values are 1, every output is an average of ones. Which numbers do you get, and are they too small or "
    "too large?",
)
def numerator_not_rescaled(query, key, value, *, scale=None, size):
    """When the maximum rises, the denominator is scaled down and the numerator is not.

    Both were measured against the old maximum.
    """
    return carried(blocks(query, key, value, scale, size), lambda rise: (1.0, np.exp(-rise)))


@MISTAKES.add(
    "the sums of earlier blocks grow where they should shrink",
    hint="When the maximum rises, do the sums so far have to become smaller or larger?",
    more="The factor is an exponential whose exponent is never positive. Print yours for every block.",
)
def blocks_rescaled_upwards(query, key, value, *, scale=None, size):
    """The factor is upside down: the sums so far are multiplied by its inverse."""

    def upwards(rise):
        factor = np.where(np.isinf(rise), 0.0, np.exp(rise))  # nothing comes before the first block
        return factor, factor

    return carried(blocks(query, key, value, scale, size), upwards)


@MISTAKES.add(
    "divided in every block",
    hint="How often is the numerator divided by the denominator: once for each block, or once in all?",
    more="After the first block your numerator is an average already. The next block adds a sum to it. What would have "
    "to be added to an average?",
)
def divided_in_every_block(query, key, value, *, scale=None, size):
    """The numerator is divided by the denominator in each block, so the next block is added to an average.

    The division comes once, after the last block.
    """
    return carried(blocks(query, key, value, scale, size), divide=True)


def averages(query, key, value, scale, size):
    """Return what each block finds by itself."""
    return [attnlib.softmax(scores) @ values for scores, values in blocks(query, key, value, scale, size)]


@MISTAKES.add(
    "every block counts the same",
    hint="One block holds keys that match well, another keys that hardly match. Should both count the same?",
    more="Each block by itself has weights that sum to 1. What do you have to know of two blocks to join them?",
    sizes=(2, 3, 4),
)
def mean_of_the_blocks(query, key, value, *, scale=None, size):
    """Each block has a softmax of its own, and the results are averaged.

    A block whose keys match well has to count for more than one whose keys hardly match.
    """
    return np.mean(averages(query, key, value, scale, size), axis=0)


@MISTAKES.add(
    "the results of the blocks are added",
    hint="If all values are 1, every output is an average of ones. Which numbers do you get?",
    more="Each block by itself has weights that sum to 1. What do the weights of two blocks sum to, if both are simply "
    "added?",
    sizes=(2, 3, 4),
)
def sum_of_the_blocks(query, key, value, *, scale=None, size):
    """Each block has a softmax of its own, and the results are added, so the weights sum to the number of blocks."""
    return np.sum(averages(query, key, value, scale, size), axis=0)


# The last block -----------------------------------------------------------------------------------------------------


def without_the_rest(query, key, value, scale, kept, size):
    """Return attention over the first keys alone, nan where there are none."""
    if not kept:
        return np.full((*query.shape[:-1], value.shape[-1]), np.nan)
    return carried(blocks(query, key[..., :kept, :], value[..., :kept, :], scale, size))


@MISTAKES.add(
    "keys that do not fill a block are dropped",
    hint="How many blocks are there for 7 keys, and how many does your loop see?",
    more="Give the last key a score far above all others, and try an even and an odd number of keys. Which value "
    "should come out?",
    section=ONE_PASS,
    sizes=(2, 3, 4),
)
def incomplete_block_dropped(query, key, value, *, scale=None, size):
    """The number of blocks is rounded down, so the keys of an incomplete last block are never seen."""
    return without_the_rest(query, key, value, scale, key.shape[-2] // size * size, size)


@MISTAKES.add(
    "keys that do not fill a block are dropped, unless there is no other block",
    hint="How many blocks are there for 7 keys, and how many does your loop see?",
    more="Give the last key a score far above all others, and try an even and an odd number of keys. Which value "
    "should come out?",
    section=ONE_PASS,
    sizes=(2, 3, 4),
)
def incomplete_block_dropped_but_not_the_first(query, key, value, *, scale=None, size):
    """The number of blocks is rounded down, though not below 1: keys of an incomplete last block are never seen."""
    return without_the_rest(query, key, value, scale, max(key.shape[-2] // size, 1) * size, size)


@MISTAKES.add(
    "the last block is never seen",
    hint="Where does your loop over the blocks end?",
    more="Print the first and the last key of every block. Which of the keys are never printed?",
    section=ONE_PASS,
)
def last_block_dropped(query, key, value, *, scale=None, size):
    """The loop ends one block too early. A range ends before the number that it is given."""
    return without_the_rest(query, key, value, scale, (key.shape[-2] - 1) // size * size, size)


@MISTAKES.add(
    "the last block is filled up with keys of zeros",
    hint="What is the score of a key of zeros, and what is its weight?",
    more="If all values are 1, every output is an average of ones. Are yours too small? Which keys take the rest?",
    section=ONE_PASS,
    sizes=(2, 3, 4),
)
def padded_with_zeros(query, key, value, *, scale=None, size):
    """The last block is filled up with zeros. A key of zeros has the score 0, and 0 is a score like any other."""
    rows = [(0, 0)] * (key.ndim - 2) + [(0, -key.shape[-2] % size), (0, 0)]
    return carried(blocks(query, np.pad(key, rows), np.pad(value, rows), scale, size))


# Overflow -----------------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "each block is measured against its own maximum",
    hint="Can the largest score so far become smaller when another block arrives?",
    more="Let the first block hold a score of 3000 and the second none above 0. Print the factor of the old sums.",
    section=INVARIANT,
    sizes=(GIVEN,),
)
def maximum_of_each_block(query, key, value, *, scale=None, size):
    """The maximum is that of the newest block alone, so it may fall.

    The sums so far are then multiplied by a number above 1, which overflows for large scores.
    """
    total, norm, maximum = 0.0, 0.0, -np.inf
    for scores, values in blocks(query, key, value, scale, size):
        highest = scores.max(axis=-1, keepdims=True)
        factor, e = np.exp(maximum - highest), np.exp(scores - highest)
        total, norm, maximum = factor * total + e @ values, factor * norm + e.sum(axis=-1, keepdims=True), highest
    return total / norm


def attention_in_blocks(query: Floats, key: Floats, value: Floats, scale: float | None = None) -> Floats:
    """Return scaled dot-product attention, worked out a few keys at a time."""
    output: Floats = carried(blocks(query, key, value, scale, 16))
    return output


EXERCISE = Exercise(
    name="attention_in_blocks",
    reference=attention_in_blocks,
    outputs={"output": ("T", "D_v")},
    rubric={NUMBERS: 8, SCALES: 3, BATCHES: 4, LARGE: 2, UNCHANGED: 2},
    section=IN_BLOCKS,
    advice="Take four keys in two blocks, and let the largest score be in the second. Print the maximum, the factor "
    "and both sums after each block, and compare them with the same on paper. Which is the first to differ?",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    call=call_within_memory,
    backends=("numpy",),
    solved_by=ATTENTION_FUNCTIONS,
)
