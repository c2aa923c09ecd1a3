"""padding_mask(lengths, S)."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.masking.sections import KINDS, POLARITY, SIDE
from attnlib.checks.exercise import Exercise, Mistakes

NUMBERS, LISTS, EDGES = "the numbers", "lengths in a list", "empty, full, alone"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: the two sentences of the chapter, then more of them, lists, and lengths at the borders."""
    yield Case("lengths 3 and 5, and S=5", NUMBERS, {"lengths": np.array([3, 5]), "S": 5}, unchanged=True)
    yield Case("three sentences", NUMBERS, _sentences(rng, 3, 40))
    columns = int(rng.integers(4, 7))
    crowd = {"lengths": rng.integers(1, columns, size=8).astype(np.int32), "S": columns}
    yield Case("more sentences than columns", NUMBERS, crowd)
    several = _sentences(rng, 4, 30)
    yield Case("the lengths as a list", LISTS, several | {"lengths": several["lengths"].tolist()})
    yield Case("one sentence in a list", LISTS, {"lengths": [int(rng.integers(2, 20))], "S": 23})
    empty = _sentences(rng, 3, 10)
    yield Case("a sentence of length 0", EDGES, empty | {"lengths": empty["lengths"] * np.array([1, 0, 1])})
    full = int(rng.integers(4, 30))
    yield Case("every sentence full", EDGES, {"lengths": np.full(3, full), "S": full})
    yield Case("every second of some lengths", EDGES, {"lengths": np.array([4, 9, 2, 9, 5, 9])[::2], "S": 8})


def _sentences(rng, count: int, longest: int) -> dict[str, Any]:
    """Return lengths that all differ, the first neither the shortest nor the longest, and a number of columns S."""
    S = int(rng.integers(longest // 2, longest)) + 2
    return {"lengths": np.roll(np.sort(rng.permutation(np.arange(1, S - 1))[:count]), -1), "S": S}


def _places(lengths, S):
    """Return the lengths as (B, 1, 1, 1) and the positions of the keys."""
    return np.asarray(lengths)[:, None, None, None], np.arange(S)


@MISTAKES.add(
    "True and False have changed places",
    hint="May anyone look at the first word of a sentence? What does your mask say there?",
    more="Here True means “may attend”. Write the row of the sentence with 3 words on paper, and compare it with "
    "yours. Some layers want it the other way round, which is why it is worth a test.",
    section=POLARITY,
)
def inverted(lengths, S):
    """Your mask is True at the padding. Here True means “may attend”, so the real words should be True."""
    return ~attnlib.padding_mask(lengths, S)


@MISTAKES.add(
    "one key too many",
    hint="Positions count from 0. At which position is the last of three words?",
    more="Count the True entries of a sentence of length 3. Then ask your comparison about position 3: is there a "
    "word?",
    section=KINDS,
)
def one_too_many(lengths, S):
    """Each sentence keeps one entry of padding: position `length` already comes after the last word."""
    lengths, position = _places(lengths, S)
    return position <= lengths


@MISTAKES.add(
    "True comes after the last word",
    hint="May anyone look at the first word of a sentence? What does your mask say there?",
    more="Two things need to be changed. Here True means “may attend”; and the first entry of padding is at position "
    "`length`, not after it.",
    section=POLARITY,
)
def inverted_behind(lengths, S):
    """Your mask is True at the padding, except for its first entry. It should be True at the real words only."""
    lengths, position = _places(lengths, S)
    return position > lengths


@MISTAKES.add(
    "padding in front, and True and False have changed places",
    hint="How many True entries should the row of a sentence of 3 words have, and where are its words?",
    more="Two things need to be changed: here the words come first, and True is at the words.",
    section=SIDE,
)
def left_padding_inverted(lengths, S):
    """Your mask is True where padding would be if it were on the left. The words come first, and should be True."""
    lengths, position = _places(lengths, S)
    return position < S - lengths


@MISTAKES.add(
    "one key too few",
    hint="Positions count from 0. At which position is the last of three words?",
    more="Count the True entries of a sentence of length 3. There should be three.",
    section=KINDS,
)
def one_too_few(lengths, S):
    """The last real word of each sentence is hidden as well. A sentence of length 3 has three True entries."""
    lengths, position = _places(lengths, S)
    return position < lengths - 1


@MISTAKES.add(
    "the first key is hidden",
    hint="At which position is the first word of a sentence?",
    more="Look at the first column of your mask. Is there a sentence whose first word is padding?",
    section=KINDS,
)
def counts_from_one(lengths, S):
    """Your positions do not start at 0: the first word is hidden, and the others are where they should be."""
    lengths, position = _places(lengths, S)
    return (position < lengths) & (position > 0)


@MISTAKES.add(
    "no room for heads and queries",
    hint="The scores are (B, H, T, S). Where do the B and the S of your mask end up when it is laid over them?",
    more="Broadcasting lines shapes up from the right. Write (B, H, T, S) and below it the shape of your mask, "
    "aligned on the right. What is below B?",
    section=KINDS,
)
def two_dimensions(lengths, S):
    """Your mask is (B, S). It needs (B, 1, 1, S), so that it serves all heads and all queries of its sentence."""
    return attnlib.padding_mask(lengths, S)[:, 0, 0, :]


@MISTAKES.add(
    "room for one dimension alone",
    hint="The scores are (B, H, T, S). Which dimensions lie between B and S?",
    more="Write (B, H, T, S) and below it the shape of your mask, aligned on the right. What is below B?",
    section=KINDS,
)
def three_dimensions(lengths, S):
    """Your mask is (B, 1, S). Between the batch and the keys there are heads and queries: (B, 1, 1, S)."""
    return attnlib.padding_mask(lengths, S)[:, 0]


@MISTAKES.add(
    "queries are masked instead of keys",
    hint="Which dimension of the scores belongs to the key: the last, or the one before it?",
    more="Lay your mask over scores of (B, H, T, S). Which rows and which columns become forbidden? It is the columns "
    "of the padding that nobody may look at.",
    section=KINDS,
)
def rows(lengths, S):
    """Your mask is (B, 1, S, 1): padded words may not look, and every real word may look at the padding."""
    return np.swapaxes(attnlib.padding_mask(lengths, S), -1, -2)


@MISTAKES.add(
    "the batch is in the wrong place",
    hint="The scores are (B, H, T, S). Which of the four sizes should be B?",
    more="Print the shape of your mask for two sentences of up to 5 words. The first size should be 2.",
    section=KINDS,
)
def batch_as_queries(lengths, S):
    """Your mask is (1, 1, B, S): each sentence's row would be laid over one query of all the sentences."""
    return np.swapaxes(attnlib.padding_mask(lengths, S), 0, 2)


@MISTAKES.add(
    "the batch is where the heads are",
    hint="The scores are (B, H, T, S). Which of the four sizes should be B?",
    more="Print the shape of your mask for two sentences of up to 5 words. The first size should be 2.",
    section=KINDS,
)
def batch_as_heads(lengths, S):
    """Your mask is (1, B, 1, S): each sentence's row would be laid over one head of all the sentences."""
    return np.swapaxes(attnlib.padding_mask(lengths, S), 0, 1)


@MISTAKES.add(
    "the keys come first",
    hint="Which dimension of the scores belongs to the key?",
    more="Write (B, H, T, S) and below it the shape of your mask, aligned on the right. What is below S?",
    section=KINDS,
)
def keys_first(lengths, S):
    """Your mask is (B, S, 1, 1): it would be laid over the heads. The keys are the last dimension of the scores."""
    return np.moveaxis(attnlib.padding_mask(lengths, S), -1, 1)


@MISTAKES.add(
    "a row for every query",
    hint="Every query of a sentence sees the same keys. How many rows does it take to say so?",
    more="Print the shape of your mask. One of its sizes may be 1: broadcasting repeats that row for every query.",
    section=KINDS,
)
def repeated(lengths, S):
    """Your mask repeats the same row for each query: (B, 1, S, S). One row is enough, for any number of queries."""
    mask = attnlib.padding_mask(lengths, S)
    return np.repeat(mask, S, axis=-2)


@MISTAKES.add(
    "padded queries are masked as well",
    hint="Who reads what a padded query computes? And what happens to a row that may look at nothing?",
    more="Print the shape of your mask: one of its sizes may be 1. Columns have to be hidden, rows need not.",
    section=KINDS,
)
def both_sides(lengths, S):
    """Your mask hides the rows of the padding too. That leaves queries with nothing, and protects no word."""
    mask = attnlib.padding_mask(lengths, S)
    return mask & np.swapaxes(mask, -1, -2)


@MISTAKES.add(
    "ones and zeros instead of True and False",
    hint="What is the dtype of your result, and which dtype tells attention to forbid?",
    more="Attention adds a mask of numbers to the scores. Added to a score, a 0 forbids nothing.",
    section=POLARITY,
)
def numbers(lengths, S):
    """The ones are in the right places. But a mask of numbers would be added to the scores: booleans are needed."""
    return attnlib.padding_mask(lengths, S).astype(float)


@MISTAKES.add(
    "zeros and minus infinity instead of True and False",
    hint="Which kind of mask does the task ask for: one that is added, or one that says yes or no?",
    more="Your mask goes one step too far. The step before it asks, for every position, whether there is a word.",
    section=POLARITY,
)
def added(lengths, S):
    """This is a mask to be added to the scores. It does the same work, but here the task asks for True and False."""
    return np.where(attnlib.padding_mask(lengths, S), 0.0, -np.inf)


@MISTAKES.add(
    "ones at the padding",
    hint="What is the dtype of your result, and what does a 1 in it stand for?",
    more="Two things need to be changed: the dtype of the entries, and which places are marked.",
    section=POLARITY,
)
def numbers_inverted(lengths, S):
    """Your mask holds numbers, with 1 at the padding. Booleans are needed, with True at the real words."""
    return (~attnlib.padding_mask(lengths, S)).astype(float)


@MISTAKES.add(
    "the padding is taken to be in front",
    hint="Which entries of a sentence are real: the first ones, or the last ones?",
    more="Look at the first column of your mask. Every sentence that is not empty has a word there.",
    section=SIDE,
)
def left_padding(lengths, S):
    """Your mask keeps the last positions, as if the padding were on the left. Here the words come first."""
    lengths, position = _places(lengths, S)
    return position >= S - lengths


@MISTAKES.add(
    "S is not used",
    hint="How many columns do the scores have, if the sentences are padded to S?",
    more="Print the shape of your mask for lengths 2, 4 and 1 and S = 6. Which size is not what it should be?",
    section=KINDS,
)
def size_ignored(lengths, S):
    """Your mask is as wide as the longest sentence. There are S keys, even if no sentence is that long."""
    return attnlib.padding_mask(lengths, max(max(lengths), 0))


@MISTAKES.add(
    "only one position is marked",
    hint="How many words of a sentence of length 3 may be looked at?",
    more="Count the True entries in each row. There should be as many as the sentence has words.",
    section=KINDS,
)
def last_word(lengths, S):
    """Your mask is True at the last word alone. All words of a sentence may be looked at."""
    lengths, position = _places(lengths, S)
    return position == lengths - 1


@MISTAKES.add(
    "only the first pad is marked",
    hint="How many words of a sentence of length 3 may be looked at?",
    more="Count the True entries in each row. There should be as many as the sentence has words.",
    section=KINDS,
)
def first_pad(lengths, S):
    """Your mask is True only at position `length`, which is the first entry of padding. The words should be True."""
    lengths, position = _places(lengths, S)
    return position == lengths


@MISTAKES.add(
    "every sentence has the first one's length",
    hint="Each sentence has a length of its own. Do your rows differ?",
    more="For the lengths 3 and 5, write both rows on paper. Then print yours: which row is right?",
    section=KINDS,
)
def first_length(lengths, S):
    """The length of the first sentence was used for all of them."""
    return attnlib.padding_mask([lengths[0]] * len(lengths), S)


@MISTAKES.add(
    "every sentence has the longest one's length",
    hint="Each sentence has a length of its own. Do your rows differ?",
    more="For the lengths 3 and 5, write both rows on paper. Then print yours: which row is right?",
    section=KINDS,
)
def longest(lengths, S):
    """The length of the longest sentence was used for all, so the padding of the others stays visible."""
    return attnlib.padding_mask([max(lengths)] * len(lengths), S)


@MISTAKES.add(
    "nothing is hidden",
    hint="Which places of the mask should be False?",
    more="The sentence with 3 words has two entries of padding. What does its row say about them?",
    section=KINDS,
)
def all_true(lengths, S):
    """Every key may be looked at, the padding included."""
    return np.ones((len(lengths), 1, 1, S), dtype=bool)


@MISTAKES.add(
    "a full sentence is hidden altogether",
    hint="A sentence of length S has no padding. What does “the last 0 entries” mean to a slice?",
    more="Print the row of a sentence that fills all S places. Then work out which entries your slice selects when "
    "there "
    "are none to hide.",
    section=KINDS,
)
def minus_zero(lengths, S):
    """Where there is no padding, everything is hidden: a slice from -0 starts at the beginning."""
    mask = np.ones((len(lengths), 1, 1, S), dtype=bool)
    for b, length in enumerate(lengths):
        mask[b, ..., -(S - length) :] = False
    return mask


@MISTAKES.add(
    "a list of lengths is not accepted",
    hint="A list has no axes. What turns a list into an array, and leaves an array as it is?",
    more="The error is raised where you give the lengths more dimensions. Which step has to come before that one?",
    section=KINDS,
)
def array_alone(lengths, S):
    """Your function works for arrays. The lengths may be a plain list as well, which cannot be indexed like that."""
    return np.arange(S) < lengths[:, None, None, None]


@MISTAKES.add(
    "an empty sentence gets a word",
    hint="How many entries should be True in the row of a sentence of length 0?",
    more="Print the row of the sentence of length 0. All of it is padding, so all of it should be False.",
    section=KINDS,
)
def never_empty(lengths, S):
    """A sentence of length 0 was given one word. Its row should be all False: attention then returns 0 for it."""
    return attnlib.padding_mask(np.maximum(lengths, 1), S)


@MISTAKES.add(
    "the table is reshaped, not transposed",
    hint="Does a reshape turn columns into rows?",
    more="Print the table before and after the reshape. Does a row still belong to one sentence?",
    section=KINDS,
)
def reshaped(lengths, S):
    """Your table has a row for each position.

    A reshape only cuts it up in new places, so the sentences are mixed up.
    """
    lengths = np.asarray(lengths)
    return (np.arange(S)[:, None] < lengths).reshape(len(lengths), 1, 1, S)


@MISTAKES.add(
    "the lengths are added up",
    hint="At which column does the second sentence start: at 0, or after the first sentence?",
    more="Count the True entries in each of your rows, and compare with the lengths.",
    section=KINDS,
)
def cumulative(lengths, S):
    """Each row adds up the lengths of all sentences so far. Every sentence has a row of its own."""
    ends, position = _places(np.cumsum(lengths), S)
    return position < ends


@MISTAKES.add(
    "the row of an empty sentence is all True",
    hint="How many entries should be True in the row of a sentence of length 0?",
    more="If you pick rows of a table by the length minus 1, which row does a length of 0 pick? An index of -1 counts "
    "from the end.",
    section=KINDS,
)
def empty_is_full(lengths, S):
    """The row of a sentence of length 0 is all True. The sentence is all padding, so its row should be all False."""
    lengths = np.asarray(lengths)
    return attnlib.padding_mask(np.where(lengths == 0, S, lengths), S)


@MISTAKES.add(
    "the sentences are sorted, longest first",
    hint="Which row of the mask belongs to the first sentence of the batch?",
    more="Print your mask for the lengths 3 and 5. Some layers need sentences sorted by length, but the words of this "
    "batch stay where they are.",
    section=KINDS,
)
def longest_first(lengths, S):
    """Your rows are sorted by length. Row b belongs to sentence b, in the order in which the lengths are given."""
    return attnlib.padding_mask(np.sort(lengths)[::-1], S)


@MISTAKES.add(
    "the sentences are sorted, shortest first",
    hint="Which row of the mask belongs to the first sentence of the batch?",
    more="Print your mask for the lengths 5 and 3. The words of the batch stay where they are, so their masks must "
    "too.",
    section=KINDS,
)
def shortest_first(lengths, S):
    """Your rows are sorted by length. Row b belongs to sentence b, in the order in which the lengths are given."""
    return attnlib.padding_mask(np.sort(lengths), S)


EXERCISE = Exercise(
    name="padding_mask",
    reference=attnlib.padding_mask,
    outputs={"mask": ("B", "1", "1", "S")},
    rubric={NUMBERS: 3, LISTS: 1, EDGES: 1},
    section=KINDS,
    advice="Print the shape of your mask first: is it (B, 1, 1, S)? Then print the row of the first sentence and "
    "count: there should be as many True entries as words, all at the front.",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    backends=("numpy",),
    whole_numbers=("lengths",),
)
