"""causal_mask(T, S=None, *, q_offset=0)."""

from collections.abc import Iterator

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.masking.sections import ALIGN, BY_HAND, KINDS, POLARITY
from attnlib.checks.exercise import Exercise, Mistakes

SQUARES, SIZES, OFFSETS = "as many queries as keys", "other sizes", "the offset"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: squares, then T and S that differ, then offsets of both signs. All but the first are drawn.

    A mask follows from its sizes alone, so these come from a wide range: no table of known answers helps.
    """
    yield Case("T=3", SQUARES, {"T": 3})
    one, other, few, many = (int(n) for n in np.sort(rng.permutation(np.arange(5, 60))[:4]))
    yield Case(f"T={other}", SQUARES, {"T": other})
    yield Case("a single token, T=1", SQUARES, {"T": 1})
    yield Case(f"T={many} and S={many}", SQUARES, {"T": many, "S": many})
    yield Case(f"T={few} queries and S={many} keys", SIZES, {"T": few, "S": many})
    yield Case(f"T={few} queries and S={one} keys", SIZES, {"T": few, "S": one})
    yield Case(f"T=1 query and S={other} keys", SIZES, {"T": 1, "S": other})
    yield Case("T=2, S=5 and q_offset=1", OFFSETS, {"T": 2, "S": 5}, {"q_offset": 1})
    decoding = {"T": 1, "S": one + 1}
    yield Case(f"T=1, S={one + 1} and q_offset={one}, as in decoding", OFFSETS, decoding, {"q_offset": one})
    yield Case(f"T=2, S={many} and q_offset={one}", OFFSETS, {"T": 2, "S": many}, {"q_offset": one})
    yield Case(f"T={few} and q_offset=2, without S", OFFSETS, {"T": few}, {"q_offset": 2})
    before = f"T={other}, S={one} and q_offset=-2, so that two queries see nothing"
    yield Case(before, OFFSETS, {"T": other, "S": one}, {"q_offset": -2})


def _places(T, S):
    """Return the numbers of the queries as a column, and those of the keys as a row."""
    return np.arange(T)[:, None], np.arange(T if S is None else S)[None, :]


@MISTAKES.add(
    "True and False have changed places",
    hint="Read one row aloud: may the first query look at the first key? What does your mask say there?",
    more="In this course True means “may attend”. Write the row of the first query on paper, word for word, and "
    "compare it with the first row of your mask.",
    section=POLARITY,
)
def inverted(T, S=None, *, q_offset=0):
    """Your mask is True where a query may not look. Here True means that the query may attend to the key."""
    return ~attnlib.causal_mask(T, S, q_offset=q_offset)


@MISTAKES.add(
    "the upper triangle instead of the lower",
    hint="Which index is the query, and which is the key? Which of them has to be the smaller one?",
    more="Look at the last row, that of the last query. It is at the end, so everything is in its past: how many True "
    "entries should its row have, and how many does yours have?",
    section=BY_HAND,
)
def upper(T, S=None, *, q_offset=0):
    """Every query sees itself and what comes after it. It should see itself and what came before it."""
    i, j = _places(T, S)
    return j >= i + q_offset


@MISTAKES.add(
    "query and key have changed places",
    hint="Rows are queries and columns are keys. Which of the two indices is the query in your comparison?",
    more="Look at the last row, that of the last query. It is at the end, so everything is in its past: how many True "
    "entries should its row have, and how many does yours have?",
    section=BY_HAND,
)
def exchanged(T, S=None, *, q_offset=0):
    """Your comparison lets key j see query i. A query sees itself and what came before it, and rows are queries."""
    i, j = _places(T, S)
    return i <= j + q_offset


@MISTAKES.add(
    "a query may not see itself",
    hint="The first query has nothing before it. Is there a key that it may look at all the same?",
    more="Count the True entries in each of your rows. The first query should have one key, the second two, and so "
    "on: what do you have on the diagonal?",
    section=KINDS,
)
def too_strict(T, S=None, *, q_offset=0):
    """The diagonal is missing: a query may attend to its own position as well as to those before it."""
    i, j = _places(T, S)
    return j < i + q_offset


@MISTAKES.add(
    "a query sees one word of its future",
    hint="How many keys may the first query look at? Count the True entries in your first row.",
    more="The rule is “not after its own position”. Take the first query, at position 0, and ask for each key whether "
    "your comparison lets it through.",
    section=KINDS,
)
def off_by_one(T, S=None, *, q_offset=0):
    """The triangle reaches one column too far: every query sees the next word, which is just what it should predict."""
    i, j = _places(T, S)
    return j <= i + q_offset + 1


@MISTAKES.add(
    "the diagonal alone",
    hint="May the second query look at the first key?",
    more="Write down all keys that the last query may look at. Then read the last row of your mask.",
    section=KINDS,
)
def diagonal(T, S=None, *, q_offset=0):
    """Every query sees its own position and nothing else. It may look at everything before it, too."""
    i, j = _places(T, S)
    return j == i + q_offset


@MISTAKES.add(
    "nothing is forbidden",
    hint="Which places of the mask should be False?",
    more="Take the first query. Everything but its own position lies in its future. What does its row say?",
    section=BY_HAND,
)
def all_true(T, S=None, *, q_offset=0):
    """Every query may look at every key, the future included. A causal mask hides the future."""
    return np.ones((T, T if S is None else S), dtype=bool)


@MISTAKES.add(
    "ones and zeros instead of True and False",
    hint="What is the dtype of your result, and which dtype tells attention what to forbid?",
    more="Attention adds a mask of numbers to the scores. Added to a score, a 1 makes a weight larger, and a 0 forbids "
    "nothing. A comparison gives True and False by itself.",
    section=POLARITY,
)
def numbers(T, S=None, *, q_offset=0):
    """The ones are in the right places. But a mask of numbers would be added to the scores: booleans are needed."""
    return attnlib.causal_mask(T, S, q_offset=q_offset).astype(float)


@MISTAKES.add(
    "ones where attention is forbidden",
    hint="What is the dtype of your result, and what does a 1 in it stand for?",
    more="Two things need to be changed: the dtype of the entries, and the side of the diagonal that is marked.",
    section=POLARITY,
)
def numbers_inverted(T, S=None, *, q_offset=0):
    """Your mask holds numbers, with 1 for the future. Booleans are needed, and True means “may attend”."""
    return (~attnlib.causal_mask(T, S, q_offset=q_offset)).astype(float)


@MISTAKES.add(
    "zeros and minus infinity instead of True and False",
    hint="Which kind of mask does the task ask for: one that is added, or one that says yes or no?",
    more="Your mask goes one step too far. The step before it asks, for every pair, whether the key lies in the past.",
    section=POLARITY,
)
def added(T, S=None, *, q_offset=0):
    """This is a mask to be added to the scores. It does the same work, but here the task asks for True and False."""
    return np.where(attnlib.causal_mask(T, S, q_offset=q_offset), 0.0, -np.inf)


@MISTAKES.add(
    "S is not used",
    hint="What shape do the scores have when there are T queries and S keys?",
    more="Print the shape of your mask for 2 queries and 5 keys. Which of its two sizes is not what it should be?",
    section=ALIGN,
)
def size_ignored(T, S=None, *, q_offset=0):
    """Your mask is always a square of T by T. With S keys it needs S columns."""
    return attnlib.causal_mask(T, q_offset=q_offset)


@MISTAKES.add(
    "S by S instead of T by S",
    hint="What shape do the scores have when there are T queries and S keys?",
    more="Print the shape of your mask for 2 queries and 5 keys. Which of its two sizes is not what it should be?",
    section=ALIGN,
)
def keys_by_keys(T, S=None, *, q_offset=0):
    """Your mask is a square of S by S. There is one row for each query, so it needs T rows."""
    return attnlib.causal_mask(T if S is None else S, q_offset=q_offset)


@MISTAKES.add(
    "rows and columns have changed places",
    hint="Which of T and S counts the rows? Remember: row = query, column = key.",
    more="Print the shape of your mask for 2 queries and 5 keys. There should be 2 rows.",
    section=ALIGN,
)
def sizes_swapped(T, S=None, *, q_offset=0):
    """Your mask has S rows and T columns. A row belongs to a query, and there are T of them."""
    return attnlib.causal_mask(T if S is None else S, T, q_offset=q_offset)


@MISTAKES.add(
    "the whole mask is transposed",
    hint="Which of T and S counts the rows? Remember: row = query, column = key.",
    more="A transposed causal mask has the wrong shape and the wrong triangle. Draw the mask of 2 queries and 5 keys, "
    "with one row for each query.",
    section=ALIGN,
)
def transposed(T, S=None, *, q_offset=0):
    """The whole mask is transposed: its rows are keys, and its columns are queries."""
    return attnlib.causal_mask(T, S, q_offset=q_offset).T


@MISTAKES.add(
    "the last query is lined up with the last key",
    hint="Without an offset the first query is at the first key. Which corner does your triangle start from?",
    more="For 2 queries and 5 keys, how many keys may the first query see, if it is at position 0? How many True "
    "entries does your first row have?",
    section=ALIGN,
)
def bottom_right(T, S=None, *, q_offset=0):
    """Your triangle ends in the bottom right corner, and the offset is added to that.

    Only `q_offset` should move it.
    """
    return attnlib.causal_mask(T, S, q_offset=q_offset + (T if S is None else S) - T)


@MISTAKES.add(
    "lined up at the end, whatever the offset",
    hint="Who decides where the first query is: the two sizes, or the offset?",
    more="For 2 queries and 5 keys without an offset, the first query is at position 0. With an offset of 1 it is at "
    "position 1. Count the True entries in the first row for both.",
    section=ALIGN,
)
def bottom_right_always(T, S=None, *, q_offset=0):
    """The last query is always aligned with the last key. It is `q_offset` that says where the first query is."""
    return attnlib.causal_mask(T, S, q_offset=(T if S is None else S) - T)


@MISTAKES.add(
    "the offset is not used",
    hint="With an offset of 5 the first query is at position 5. How many keys may it see?",
    more="Compare your masks for 2 queries and 5 keys with an offset of 0 and of 1. They should differ. Where does the "
    "offset enter your comparison?",
    section=ALIGN,
)
def offset_ignored(T, S=None, *, q_offset=0):
    """The first query is always put at position 0. With an offset it is at position `q_offset` of the keys."""
    return attnlib.causal_mask(T, S)


@MISTAKES.add(
    "the offset has the wrong sign",
    hint="A larger offset puts the queries later. Do they see more keys then, or fewer?",
    more="For one query, 6 keys and an offset of 5, the query is the newest of six words. Count the True entries in "
    "your row.",
    section=ALIGN,
)
def offset_reversed(T, S=None, *, q_offset=0):
    """A positive offset takes keys away. It should put the queries later in the text, so that they see more of it."""
    return attnlib.causal_mask(T, S, q_offset=-q_offset)


@MISTAKES.add(
    "the offset makes the mask wider",
    hint="S counts all keys, those before the first query as well. Does the offset change how many keys there are?",
    more="Print the shape for 2 queries, 5 keys and an offset of 1. There are 5 keys, and so there are 5 columns.",
    section=ALIGN,
)
def offset_widens(T, S=None, *, q_offset=0):
    """The offset was added to the number of keys as well. It moves the queries; the number of columns stays S."""
    return attnlib.causal_mask(T, max((T if S is None else S) + q_offset, 0), q_offset=q_offset)


@MISTAKES.add(
    "negative offsets are treated like 0",
    hint="What does an offset of -2 mean for the first query: at which position is it?",
    more="With an offset of -2 the first two queries are before the first key. How many keys may they look at?",
    section=ALIGN,
)
def offset_not_negative(T, S=None, *, q_offset=0):
    """A negative offset was treated like 0. It puts the first queries before the first key, where they see nothing."""
    return attnlib.causal_mask(T, S, q_offset=max(q_offset, 0))


@MISTAKES.add(
    "the sign of the offset is dropped",
    hint="An offset of 2 and one of -2: should they give the same mask?",
    more="With an offset of -2 the first two queries are before the first key. How many keys may they look at?",
    section=ALIGN,
)
def offset_size(T, S=None, *, q_offset=0):
    """An offset of -2 gives the same mask as one of 2. It should move the queries the other way."""
    return attnlib.causal_mask(T, S, q_offset=abs(q_offset))


@MISTAKES.add(
    "one offset too many",
    hint="With an offset of 1, at which position is the first query: at 1, or at 2?",
    more="For one query, 6 keys and an offset of 4, count the keys up to and including position 4.",
    section=ALIGN,
)
def offset_plus_one(T, S=None, *, q_offset=0):
    """With an offset the queries are put one position too far, so they see one word of their future."""
    return attnlib.causal_mask(T, S, q_offset=q_offset + 1 if q_offset else 0)


@MISTAKES.add(
    "one offset too few",
    hint="With an offset of 1, at which position is the first query: at 0, or at 1?",
    more="For one query, 6 keys and an offset of 5, the query is the newest word. May it look at its own key?",
    section=ALIGN,
)
def offset_minus_one(T, S=None, *, q_offset=0):
    """With an offset the queries are put one position too early, so the newest word does not see itself."""
    return attnlib.causal_mask(T, S, q_offset=q_offset - 1 if q_offset else 0)


@MISTAKES.add(
    "dimensions of size 1 in front",
    hint="Which shape does the task ask for?",
    more="Broadcasting adds missing dimensions in front by itself. Print the shape of your mask: which sizes are "
    "not needed?",
    section=KINDS,
)
def with_heads(T, S=None, *, q_offset=0):
    """Your mask has room for batch and heads in front. It should be (T, S), which broadcasts by itself."""
    return attnlib.causal_mask(T, S, q_offset=q_offset)[None, None]


@MISTAKES.add(
    "S is missing, and None is used as a size",
    hint="S may be left out. Which number does it stand for then?",
    more="Look at the line that raises the error. S is None there: what should have replaced it before that line?",
    section=KINDS,
)
def none_as_size(T, S=None, *, q_offset=0):
    """If S is left out, it is None, which is not a size. There are then as many keys as queries."""
    return np.tril(np.ones((T, S), dtype=bool), q_offset)


@MISTAKES.add(
    "S is missing, and None is used as a number of keys",
    hint="S may be left out. Which number does it stand for then?",
    more="Look at the line that raises the error. S is None there: what should have replaced it before that line?",
    section=KINDS,
)
def none_as_positions(T, S=None, *, q_offset=0):
    """If S is left out, it is None, which is not a number. There are then as many keys as queries."""
    return np.arange(S)[None, :] <= np.arange(T)[:, None] + q_offset


@MISTAKES.add(
    "keys before the offset are hidden",
    hint="With an offset of 4, are the first four keys in the past of the query, or in its future?",
    more="The keys before the first query are those of a cache. Why are they kept?",
    section=KINDS,
)
def cache_hidden(T, S=None, *, q_offset=0):
    """The keys before the first query are hidden. They are in its past, so it may look at them."""
    return attnlib.causal_mask(T, S, q_offset=q_offset) & (_places(T, S)[1] >= q_offset)


@MISTAKES.add(
    "the last query is lined up with the last key although there is no offset",
    hint="Without an offset, at which position is the first query?",
    more="The sizes do not move the queries: only the offset does.",
    section=KINDS,
)
def bottom_right_without_offset(T, S=None, *, q_offset=0):
    """Without an offset, you line up the last query with the last key. The first query should be at position 0."""
    return attnlib.causal_mask(T, S, q_offset=q_offset or (T if S is None else S) - T)


@MISTAKES.add(
    "the end of a slice becomes negative",
    hint="With an offset of -2, up to which index does your slice for the first query go?",
    more="A negative end counts from the back, so -1 means all but the last. How many keys may a query before the "
    "first key see?",
    section=ALIGN,
)
def negative_slice(T, S=None, *, q_offset=0):
    """A query before the first key sees nothing. In your mask, it sees all keys but the last ones."""
    mask = np.zeros((T, T if S is None else S), dtype=bool)
    for t, row in enumerate(mask):
        row[: t + q_offset + 1] = True
    return mask


@MISTAKES.add(
    "a query that should see nothing sees the first key",
    hint="With an offset of -2, at which position is the first query? Is there any key that is not after it?",
    more="A row without a True is allowed: attention gives such a query weights of 0.",
    section=ALIGN,
)
def never_empty(T, S=None, *, q_offset=0):
    """With a negative offset, the first queries are before the first key. They see nothing, not even the first key."""
    return attnlib.causal_mask(T, S, q_offset=q_offset) | (_places(T, S)[1] == 0)


@MISTAKES.add(
    "without S there are more keys than queries",
    hint="How many keys are there if `S` is not given: as many as there are queries, or more?",
    more="With T=2, q_offset=1 and no S, how many columns should the mask have according to the task?",
    section=KINDS,
)
def offset_in_default(T, S=None, *, q_offset=0):
    """When `S` is left out, you add the offset to T. There should be as many keys as queries."""
    return attnlib.causal_mask(T, T + q_offset if S is None else S, q_offset=q_offset)


EXERCISE = Exercise(
    name="causal_mask",
    reference=attnlib.causal_mask,
    outputs={"mask": ("T", "S")},
    rubric={SQUARES: 2, SIZES: 1, OFFSETS: 2},
    section=KINDS,
    advice="Write the row of the first query and that of the last on paper: which keys are at its position or "
    "before it? Then print your mask and compare these two rows.",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    backends=("numpy",),
    solved_by=("attnlib.window_mask", "torch.nn.Transformer.generate_square_subsequent_mask"),
)
