"""merge_heads(x)."""

from collections.abc import Iterator

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.multi_head.sections import CATCH_IT, SPLITTING
from attnlib.checks.exercise import Exercise, Mistakes

NUMBERS, BATCHES, UNCHANGED = "the numbers", "batches", "inputs unchanged"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: the numbered heads of the book, then random ones, edges, batches, other memory layouts."""
    table = 10.0 * np.arange(4)[:, None] + np.arange(6)
    numbered = table.reshape(4, 3, 2).swapaxes(0, 1).copy()
    yield Case("3 heads of width 2, whose entries say word and column", NUMBERS, {"x": numbered})
    yield Case("2 heads, 5 words, width 4", NUMBERS, {"x": rng.normal(size=(2, 5, 4))})
    yield Case("one word and 2 heads of width 3", NUMBERS, {"x": rng.normal(size=(2, 1, 3))})
    yield Case("a single head", NUMBERS, {"x": rng.normal(size=(1, 3, 4))})
    yield Case("heads of width 1", NUMBERS, {"x": rng.normal(size=(5, 3, 1))})
    yield Case("float32", NUMBERS, {"x": rng.normal(size=(4, 6, 3)).astype(np.float32)})
    yield Case("a batch of 2 (3 heads, 5 words, width 4)", BATCHES, {"x": rng.normal(size=(2, 3, 5, 4))})
    yield Case(
        "leading dimensions (2, 5) (3 heads, 4 words, width 6)", BATCHES, {"x": rng.normal(size=(2, 5, 3, 4, 6))}
    )
    strided = rng.normal(size=(2, 8, 3, 2)).swapaxes(1, 2)[:, :, ::2]  # as after splitting: (2, 3, 4, 2), a view
    yield Case("a batch of heads that is a view of a larger array", BATCHES, {"x": strided})
    yield Case("heads that must stay as they are", UNCHANGED, {"x": rng.normal(size=(5, 4, 2))}, unchanged=True)


def _join(x):
    """Join the last two axes."""
    return x.reshape(*x.shape[:-2], -1)


@MISTAKES.add(
    "one reshape instead of two steps",
    hint="Print row 0 of your result for the numbered heads of the task. Do all of its numbers come from word 0?",
    more="In memory the words of head 0 are stored one after the other, and a reshape keeps that order. What has to be "
    "next to each other before rows can be joined: the words of one head, or the heads of one word?",
    section=CATCH_IT,
)
def reshape_alone(x):
    """The shape is right, but a row holds several words of one head. Words and heads have to change places first."""
    return x.reshape(*x.shape[:-3], x.shape[-2], -1)


@MISTAKES.add(
    "stripes instead of blocks",
    hint="In row 0 of your result, which numbers come first: all of head 0, or the first of every head?",
    more="The row of word 0 should read 00, 01, 02, and so on. Yours takes one number of each head in turn. In which "
    "order are the last two axes when you join them?",
    section=SPLITTING,
)
def stripes(x):
    """The heads are interleaved, one number of each in turn. Each head keeps its D numbers together: head 0, head 1."""
    return _join(np.moveaxis(x, -3, -1))


@MISTAKES.add(
    "swapped, but not joined",
    hint="Compare the number of axes of your result with (..., T, H*D).",
    more="The heads of a word are next to each other now. Two axes are left that have to become one.",
    section=CATCH_IT,
)
def not_joined(x):
    """The heads of each word are together, but still have an axis of their own. It should be one row for each word."""
    return x.swapaxes(-3, -2)


@MISTAKES.add(
    "the heads are added",
    hint="How wide is your result, and how wide should it be?",
    more="A sum no longer shows what each head said. Merging keeps every number: as many come out as went in.",
    section=CATCH_IT,
)
def added(x):
    """The heads are summed, and the result is only D wide. Merging puts them side by side and loses nothing."""
    return x.sum(axis=-3)


@MISTAKES.add(
    "the heads are averaged",
    hint="How wide is your result, and how wide should it be?",
    more="An average no longer shows what each head said. Merging keeps every number: as many come out as went in.",
    section=CATCH_IT,
)
def averaged(x):
    """The heads are averaged, and the result is only D wide. Merging puts them side by side and loses nothing."""
    return x.mean(axis=-3)


@MISTAKES.add(
    "the heads are stacked one below the other",
    hint="How many rows does your result have, and how many words are there?",
    more="With 3 heads and 4 words you have 12 rows. There should be one row for each word, with all heads in it.",
    section=CATCH_IT,
)
def below_each_other(x):
    """The heads are joined along the words, so that there are H times too many rows. They belong side by side."""
    return x.reshape(*x.shape[:-3], -1, x.shape[-1])


@MISTAKES.add(
    "the first two axes are swapped",
    hint="Without a batch the heads are axis 0. Which axis are they with a batch in front, and how can you count so "
    "that it does not matter?",
    more="Follow an array of shape (2, 3, 5, 4) through your lines, and write down every shape. Which two axes change "
    "places, and which two should?",
    section=CATCH_IT,
)
def swapped_from_front(x):
    """Without a batch this is right.

    With one in front, sentences and heads change places instead of heads and words.
    """
    return x.swapaxes(0, 1).reshape(*x.shape[:-3], x.shape[-2], -1)


@MISTAKES.add(
    "axis 0 is taken for the heads",
    hint="What does the first axis count when there is a batch?",
    more="For a shape of (2, 3, 5, 4) you joined 2 arrays. Are these two heads, or two sentences?",
    section=CATCH_IT,
)
def heads_from_front(x):
    """Without a batch this is right. With one, the first axis counts sentences, and their vectors were joined."""
    return np.concatenate(list(x), axis=-1)


@MISTAKES.add(
    "a batch is taken for granted",
    hint="How many axes does `x` have when there is one sentence and no batch?",
    more="`(..., H, T, D)` may have any number of axes in front, including none. Which line of yours expects exactly "
    "four?",
    section=SPLITTING,
)
def needs_a_batch(x):
    """Exactly four axes are unpacked. There may be none in front of the heads, or more than one."""
    batch, heads, length, width = x.shape
    return x.swapaxes(1, 2).reshape(batch, length, heads * width)


@MISTAKES.add(
    "there is no room for a batch",
    hint="How many axes does `x` have when there is a batch of sentences?",
    more="`(..., H, T, D)` may have any number of axes in front. Which line of yours expects exactly three?",
    section=SPLITTING,
)
def no_room_for_a_batch(x):
    """You unpack exactly three axes, so nothing can come before the heads."""
    heads, length, width = x.shape
    return x.swapaxes(0, 1).reshape(length, heads * width)


@MISTAKES.add(
    "the leading axes are not those of `x`",
    hint="Compare the number of axes that go in with the number that come out. There should always be one fewer.",
    more="The leading axes of the result should be those of `x`: none if there are none, two if there are two.",
    section=SPLITTING,
)
def batch_flattened(x):
    """Without a batch an axis of length 1 comes first, which should not be there.

    The leading axes of the result are those of `x`, however many there are.
    """
    return x.swapaxes(-3, -2).reshape(-1, x.shape[-2], x.shape[-3] * x.shape[-1])


@MISTAKES.add(
    "right for a batch, wrong without one",
    hint="With one leading axis the heads are axis 1. Which axis are they without any?",
    more="Follow the numbered heads, which have no batch, through your lines. Which two axes change places, and which "
    "should? Can you count them from the end?",
    section=CATCH_IT,
)
def swapped_one_and_two(x):
    """Axes 1 and 2 change places, which is right for a batch of sentences. Without a batch they are other axes."""
    return x.swapaxes(1, 2).reshape(*x.shape[:-3], x.shape[-2], -1)


@MISTAKES.add(
    "the sentences of a batch run together",
    hint="How many rows should the result have for a batch of 2 sentences with 5 words each?",
    more="Each sentence keeps its own table. In yours the words of all sentences are stacked in one table.",
    section=CATCH_IT,
)
def batch_into_words(x):
    """For one sentence this is right. With a batch, the words of all sentences become one long sentence."""
    return x.swapaxes(-3, -2).reshape(-1, x.shape[-3] * x.shape[-1])


@MISTAKES.add(
    "the components are swapped as well",
    hint="Print row 0 of your result for the numbered heads. Which of its numbers belong to word 0?",
    more="Two axes have to change places, the heads and the words. Which two do, in your line?",
    section=CATCH_IT,
)
def outer_swapped(x):
    """Heads and components change places, and words stay in between. Heads and words should change places instead."""
    return x.swapaxes(-3, -1).reshape(*x.shape[:-3], x.shape[-2], -1)


@MISTAKES.add(
    "words and components are swapped",
    hint="Print row 0 of your result for the numbered heads. Which of its numbers belong to word 0?",
    more="Two axes have to change places, the heads and the words. Which two do, in your line?",
    section=CATCH_IT,
)
def inner_swapped(x):
    """Words and components change places, and the heads stay in front. Heads and words should change places instead."""
    return x.swapaxes(-1, -2).reshape(*x.shape[:-3], x.shape[-2], -1)


@MISTAKES.add(
    "the result is transposed",
    hint="Does a row of your result belong to a word or to a component?",
    more="Your numbers are right, but rows and columns are swapped. Each row should be a word, and each column a "
    "component.",
    section=CATCH_IT,
)
def transposed(x):
    """The rows are components and the columns words. There should be one row for each word."""
    return attnlib.merge_heads(x).swapaxes(-1, -2)


@MISTAKES.add(
    "one head alone",
    hint="How many numbers go in, and how many come out?",
    more="Merging keeps every number. What happened to the other heads?",
    section=CATCH_IT,
)
def first_head(x):
    """Only head 0 comes out. All heads belong in the result, side by side."""
    return x[..., 0, :, :]


@MISTAKES.add(
    "the heads are in reverse order",
    hint="Which head comes first in row 0 of your result?",
    more="For the numbered heads, row 0 should read 00, 01, 02, and so on. Where does it begin in yours?",
    section=SPLITTING,
)
def reversed_order(x):
    """The last head comes first. Head 0 has the first D columns, as when it was split."""
    return attnlib.merge_heads(x[..., ::-1, :, :])


@MISTAKES.add(
    "always two heads, however many there are",
    hint="How many heads does your code join, and how many does `x` have?",
    more="For 3 heads of width 2, a row has 6 numbers. How many does yours have? The shape of `x` tells how many heads "
    "there are.",
    section=CATCH_IT,
)
def two_heads(x):
    """You join heads 0 and 1, but there can be more heads, or only one."""
    return np.concatenate([x[..., 0, :, :], x[..., 1, :, :]], axis=-1)


@MISTAKES.add(
    "the number of words and the number of heads are swapped",
    hint="What is the order of the last three sizes of `x`: heads, words and components, or words first?",
    more="For 3 heads, 4 words and width 2 there are 4 rows of 6 numbers. How many rows does your result have? "
    "Print the sizes that you take from the shape.",
    section=CATCH_IT,
)
def sizes_exchanged(x):
    """You swap the axes correctly, but take the sizes of the result from the wrong axes of `x`."""
    *leading, heads, words, width = x.shape
    return x.swapaxes(-3, -2).reshape(*leading, heads, words * width)


@MISTAKES.add(
    "the leading axes are lost",
    hint="For a batch of 2 sentences with 5 words each, what is the shape of the result, and which axes are in your "
    "reshape?",
    more="The result has the leading axes of `x`, however many there are. In yours, the sentences of a batch are "
    "side by side in the same rows.",
    section=CATCH_IT,
)
def leading_axes_lost(x):
    """This is right for one sentence. For a batch there is still only one table, which holds all the sentences."""
    return x.swapaxes(-3, -2).reshape(x.shape[-2], -1)


EXERCISE = Exercise(
    name="merge_heads",
    reference=attnlib.merge_heads,
    outputs={"merged": ("T", "H*D")},
    rubric={NUMBERS: 3, BATCHES: 2, UNCHANGED: 1},
    section=CATCH_IT,
    advice="Take the numbered heads of the task and print your result. A number like 23 says where it belongs: row 2, "
    "column 3. Which is the first that is somewhere else?",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    solved_by=("attnlib.heads.merge",),
)
