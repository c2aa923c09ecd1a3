"""split_heads(x, num_heads)."""

from collections.abc import Iterator

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.multi_head.sections import CATCH_IT, SPLITTING
from attnlib.checks.exercise import Exercise, Mistakes

NUMBERS, BATCHES, UNCHANGED = "the numbers", "batches", "inputs unchanged"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: the numbered table of the book, then random ones, edges, batches, other memory layouts."""
    table = 10.0 * np.arange(4)[:, None] + np.arange(6)
    yield case("4 words of width 6, numbered word by word, and 3 heads", NUMBERS, table, 3)
    yield case("5 words of width 8 and 2 heads", NUMBERS, rng.normal(size=(5, 8)), 2)
    yield case("one word of width 6 and 2 heads", NUMBERS, rng.normal(size=(1, 6)), 2)
    yield case("a single head", NUMBERS, rng.normal(size=(3, 4)), 1)
    yield case("heads of width 1", NUMBERS, rng.normal(size=(3, 5)), 5)
    yield case("float32", NUMBERS, rng.normal(size=(6, 10)).astype(np.float32), 2)
    yield case("a batch of 2 (T=5, 3 heads of width 4)", BATCHES, rng.normal(size=(2, 5, 12)), 3)
    yield case("leading dimensions (2, 5) (T=4, 3 heads of width 6)", BATCHES, rng.normal(size=(2, 5, 4, 18)), 3)
    strided = rng.normal(size=(8, 2, 6)).swapaxes(0, 1)[:, ::2]  # T=4, and the rows are not one after the other
    yield case("a batch that is a slice of a transposed array", BATCHES, strided, 3)
    unchanged = {"x": rng.normal(size=(4, 10)), "num_heads": 5}
    yield Case("words that must stay as they are", UNCHANGED, unchanged, unchanged=True)


def case(name, criterion, x, num_heads):
    """Return a case of x and a number of heads."""
    return Case(name, criterion, {"x": x, "num_heads": num_heads})


@MISTAKES.add(
    "one reshape instead of two steps",
    hint="Print head 0 for the numbered table of the task. From which words do its rows come?",
    more="A reshape draws new borders into one long line of numbers, and cannot change their order. Write down the "
    "long line of the numbered table, and mark which of its numbers belong to head 0: are they next to each "
    "other?",
    section=SPLITTING,
)
def reshape_alone(x, num_heads):
    """The shape is right, but a row of a head holds pieces of different words: one reshape is asked to do two things.

    First each word is cut into pieces, then words and heads change places.
    """
    return x.reshape(*x.shape[:-2], num_heads, x.shape[-2], -1)


@MISTAKES.add(
    "the heads are not in front",
    hint="Every word is cut as it should be. In which order are the axes now, and which order does the task ask for?",
    more="Write the letters beside your shape: which axis counts the words, which the heads? Attention multiplies the "
    "last two axes, so these two have to be words and components.",
    section=SPLITTING,
)
def not_swapped(x, num_heads):
    """Each word is cut into its pieces, but the words still come before the heads: a step is missing."""
    return x.reshape(*x.shape[:-1], num_heads, -1)


@MISTAKES.add(
    "stripes instead of blocks",
    hint="Which columns of the numbered table does your head 0 have, and which should it have?",
    more="In a row of 6 numbers and with 3 heads, head 0 should have columns 0 and 1. Yours has 0 and 3. When the "
    "last axis is cut in two, which of the two new axes changes faster?",
    section=SPLITTING,
)
def stripes(x, num_heads):
    """Head 0 got columns 0, H, 2H and so on. A head is a block of neighbouring columns: head 0 has the first D."""
    return np.moveaxis(x.reshape(*x.shape[:-1], -1, num_heads), -1, -3)


@MISTAKES.add(
    "the number of heads and their width are confused",
    hint="With 3 heads and width 6: how many tables should come out, and how many columns should each have?",
    more="`num_heads` says how many pieces there are, not how long a piece is. Which of the two did you use as the "
    "length of a piece?",
    section=SPLITTING,
)
def width_for_number(x, num_heads):
    """Every head is H wide, and there are D heads. It should be the other way round: H heads, each D wide."""
    return x.reshape(*x.shape[:-1], -1, num_heads).swapaxes(-3, -2)


@MISTAKES.add(
    "the first two axes are swapped",
    hint="For one matrix the words are axis 0. Which axis are they with a batch in front, and how can you count so "
    "that it does not matter?",
    more="Follow an array of shape (2, 5, 12) through your lines, with 3 heads, and write down every shape. Which two "
    "axes change places, and which two should?",
    section=SPLITTING,
)
def swapped_from_front(x, num_heads):
    """For one matrix this is right. With a batch in front, the sentences change places instead of the heads."""
    return x.reshape(*x.shape[:-1], num_heads, -1).swapaxes(0, 1)


@MISTAKES.add(
    "the heads come before the batch",
    hint="In the shape (..., H, T, D): where is the batch, and where do you put it?",
    more="With a batch of 2 and 3 heads the result should begin with 2. Compare with the shape of yours, and see "
    "where the pieces are put together: along which axis, counted from which end?",
    section=SPLITTING,
)
def heads_first(x, num_heads):
    """For one matrix this is right.

    With a batch, the heads belong between the batch and the words, not at the front.
    """
    return np.moveaxis(x.reshape(*x.shape[:-1], num_heads, -1), -2, 0)


@MISTAKES.add(
    "a batch is taken for granted",
    hint="How many axes does `x` have when there is one sentence and no batch?",
    more="`(..., T, H*D)` may have any number of axes in front, including none. Which line of yours expects exactly "
    "three?",
    section=SPLITTING,
)
def needs_a_batch(x, num_heads):
    """Exactly three axes are unpacked. There may be none in front of the words, or more than one."""
    batch, length, width = x.shape
    return x.reshape(batch, length, num_heads, width // num_heads).swapaxes(1, 2)


@MISTAKES.add(
    "there is no room for a batch",
    hint="How many axes does `x` have when there is a batch of sentences?",
    more="`(..., T, H*D)` may have any number of axes in front. Which line of yours expects exactly two?",
    section=SPLITTING,
)
def no_room_for_a_batch(x, num_heads):
    """You unpack exactly two axes, so nothing can come before the words."""
    length, width = x.shape
    return x.reshape(length, num_heads, width // num_heads).swapaxes(0, 1)


@MISTAKES.add(
    "axis 0 is taken for the batch",
    hint="What is the first number of the shape when there is one sentence and no batch?",
    more="For a table of 4 words the first axis counts words, and your function takes it for 4 sentences. How can you "
    "keep all axes in front as they are, however many there are?",
    section=SPLITTING,
)
def batch_from_front(x, num_heads):
    """The first axis is taken for the batch, and everything between it and the width for the words.

    Without a batch, or with two leading axes, that is wrong.
    """
    width = x.shape[-1] // num_heads
    return x.reshape(x.shape[0], -1, num_heads, width).swapaxes(1, 2)


@MISTAKES.add(
    "the leading axes are not those of `x`",
    hint="Compare the number of axes that go in with the number that come out. There should always be one more.",
    more="The leading axes of the result should be those of `x`: none if there are none, two if there are two.",
    section=SPLITTING,
)
def batch_flattened(x, num_heads):
    """Without a batch an axis of length 1 comes first, which should not be there.

    The leading axes of the result are those of `x`, however many there are.
    """
    length, width = x.shape[-2:]
    return x.reshape(-1, length, num_heads, width // num_heads).swapaxes(1, 2)


@MISTAKES.add(
    "right for a batch, wrong without one",
    hint="With one leading axis the words are axis 1. Which axis are they without any?",
    more="Follow the numbered table, which has no batch, through your lines. Which two axes change places, and which "
    "should? Can you count them from the end?",
    section=SPLITTING,
)
def swapped_one_and_two(x, num_heads):
    """Axes 1 and 2 change places, which is right for a batch of sentences. Without a batch they are other axes."""
    return x.reshape(*x.shape[:-1], num_heads, -1).swapaxes(1, 2)


@MISTAKES.add(
    "the sentences of a batch run together",
    hint="How many rows should a head have for a batch of 2 sentences with 5 words each?",
    more="Each sentence keeps its own table in each head. In yours the words of all sentences are stacked in one "
    "table.",
    section=SPLITTING,
)
def batch_into_words(x, num_heads):
    """For one sentence this is right. With a batch, the words of all sentences become one long sentence."""
    return x.reshape(-1, num_heads, x.shape[-1] // num_heads).swapaxes(0, 1)


@MISTAKES.add(
    "every head is transposed",
    hint="In a head, does a row belong to a word or to a component?",
    more="Yours are (..., H, D, T): the rows of a head should be words. Which two axes are in the wrong order at the "
    "end?",
    section=SPLITTING,
)
def transposed(x, num_heads):
    """Each head has the right numbers, but its rows are components and its columns words.

    It should be the other way round.
    """
    return attnlib.split_heads(x, num_heads).swapaxes(-1, -2)


@MISTAKES.add(
    "the heads are the last axis",
    hint="In which order are the axes at the end: words, heads, components? And in which order should they be?",
    more="Label the last three axes of your result. The one that counts the heads belongs before the other two.",
    section=SPLITTING,
)
def heads_last(x, num_heads):
    """Each word is cut as it should be, but the heads are the last axis. They belong before words and components."""
    return x.reshape(*x.shape[:-1], num_heads, -1).swapaxes(-1, -2)


@MISTAKES.add(
    "transposed first, then cut wrongly",
    hint="Print head 0 for the numbered table. Each of its numbers is in the right head. Is each in the right row?",
    more="After the transposition a row holds one component of all words, so the pieces that a reshape cuts are "
    "components, not words. Which shape would fit them, and what is left to do then?",
    section=SPLITTING,
)
def transposed_and_reshaped(x, num_heads):
    """The numbers of a head are in the wrong places: a transposed table was reshaped as if its rows were words."""
    return x.swapaxes(-1, -2).reshape(*x.shape[:-2], num_heads, x.shape[-2], -1)


@MISTAKES.add(
    "the heads overlap",
    hint="Where does head 1 begin: at column 1, or at column D?",
    more="With 3 heads in 6 columns, head 0 ends with column 1. Every column belongs to exactly one head.",
    section=SPLITTING,
)
def overlapping(x, num_heads):
    """Each head begins one column after the one before, so they share columns. It should begin where that one ends."""
    width = x.shape[-1] // num_heads
    return np.stack([x[..., h : h + width] for h in range(num_heads)], axis=-3)


@MISTAKES.add(
    "every head gets the whole vector",
    hint="How many numbers go in, and how many come out?",
    more="A table of 4 times 6 numbers has 24. Its 3 heads together have 24 as well, not three times as many.",
    section=SPLITTING,
)
def copied(x, num_heads):
    """Each head is a copy of all columns. Splitting shares the columns out: each head gets D of them."""
    return np.stack([x] * num_heads, axis=-3)


@MISTAKES.add(
    "a list of pieces",
    hint="What type do you return, and what does the task ask for?",
    more="The pieces may be right, each of them. They have to become one array, with the heads as an axis of their "
    "own.",
    section=SPLITTING,
)
def pieces(x, num_heads):
    """The pieces come in a list. The task asks for one array, with the heads as an axis of their own."""
    return np.split(x, num_heads, axis=-1)


@MISTAKES.add(
    "nothing is split",
    hint="Compare the shape that goes in with the one that comes out.",
    more="The heads need a new axis, so one more axis should come out than went in.",
    section=CATCH_IT,
)
def unchanged_input(x, num_heads):
    """What comes out is what went in. The heads need an axis of their own."""
    return x


@MISTAKES.add(
    "the heads are in reverse order",
    hint="Which columns belong to head 0, the first or the last?",
    more="Print head 0 of the numbered table.",
    section=SPLITTING,
)
def reversed_heads(x, num_heads):
    """The first head holds the last columns. Heads come in the order of their columns."""
    return attnlib.split_heads(x, num_heads)[..., ::-1, :, :]


@MISTAKES.add(
    "the last head is left out",
    hint="How many heads does your loop visit, and how many are there?",
    more="Print the last head for the numbered table. What does it contain? range(n) ends before n.",
    section=SPLITTING,
)
def last_head_left_out(x, num_heads):
    """The last head holds nothing but zeros: its columns are never copied."""
    heads = attnlib.split_heads(x, num_heads).copy()
    heads[..., -1, :, :] = 0
    return heads


@MISTAKES.add(
    "the batch and the heads share one axis",
    hint="How many axes does the result have for a batch of sentences: three, or four?",
    more="Some books stack the heads of all sentences along a single axis. Here the leading axes stay as they are, "
    "and the heads get an axis of their own after them.",
    section=SPLITTING,
)
def batch_of_heads(x, num_heads):
    """Without a batch this is right. With one, sentences and heads share an axis. Each should have its own."""
    heads = attnlib.split_heads(x, num_heads)
    return heads.reshape(-1, *heads.shape[-2:])


@MISTAKES.add(
    "heads and components are swapped, not words and heads",
    hint="After the first reshape, the axes are words, heads and components. Which two of them should change places?",
    more="Print the shape before your last reshape, for 4 words of width 6 and 3 heads. If that reshape still has to "
    "change the shape, it mixes up the words.",
    section=SPLITTING,
)
def components_swapped(x, num_heads):
    """You swap the wrong two axes. A second reshape corrects the shape, but the numbers are in the wrong places."""
    *leading, words, width = x.shape
    cut = x.reshape(*leading, words, num_heads, width // num_heads)
    return cut.swapaxes(-1, -2).reshape(*leading, num_heads, words, width // num_heads)


EXERCISE = Exercise(
    name="split_heads",
    reference=attnlib.split_heads,
    outputs={"heads": ("H", "T", "D")},
    rubric={NUMBERS: 3, BATCHES: 2, UNCHANGED: 1},
    section=SPLITTING,
    advice="Take the numbered table of the task and print each of your heads. A number like 23 says where it comes "
    "from: word 2, column 3. In which head, and in which row of it, should it be?",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    solved_by=("attnlib.heads.split",),
)
