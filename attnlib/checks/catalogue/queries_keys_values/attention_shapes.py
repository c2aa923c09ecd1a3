"""attention_shapes(query, key, value): from three shapes to those of the scores and the output."""

from collections.abc import Iterator

import numpy as np

from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.queries_keys_values.sections import MATRICES, SHAPES, TWO
from attnlib.checks.exercise import Exercise, Mistakes

MATRIX, BATCHES = "two dimensions", "leading dimensions"
MISTAKES = Mistakes()
Shape = tuple[int, ...]


def attention_shapes(query: Shape, key: Shape, value: Shape) -> tuple[Shape, Shape]:
    """Return the shapes of scores and output, for the shapes of query, key and value."""
    *leading, T, _ = query
    S, D_v = value[-2:]
    scores, context = (*leading, T, S), (*leading, T, D_v)
    return scores, context


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: the chapter's guests at the door, then other sizes, one word, and leading dimensions."""
    yield Case("two guests at the door and five inside", MATRIX, shapes((), 2, 5, 8, 6))
    T, S, D, D_v = (int(n) for n in rng.permutation(np.arange(3, 12))[:4])
    yield Case("four sizes that all differ", MATRIX, shapes((), T, S, D, D_v))
    yield Case("as many queries as keys", MATRIX, shapes((), 4, 4, 7, 9))
    yield Case("values as wide as keys", MATRIX, shapes((), 3, 5, 8, 8))
    yield Case("one query", MATRIX, shapes((), 1, 6, 5, 3))
    yield Case("a batch of 32 sentences", BATCHES, shapes((32,), 100, 120, 64, 48))
    yield Case("a batch of 2 with 3 heads", BATCHES, shapes((2, 3), 7, 5, 4, 6))
    yield Case("three leading dimensions", BATCHES, shapes((9, 2, 3), 7, 5, 4, 6))


def shapes(leading: Shape, t: int, s: int, d: int, d_v: int) -> dict[str, Shape]:
    """Return the shapes of T queries, S keys of width D and values of width D_v."""
    return {"query": (*leading, t, d), "key": (*leading, s, d), "value": (*leading, s, d_v)}


def sizes(query, key, value):
    """Return the leading dimensions, T, S, D and D_v."""
    return tuple(query[:-2]), query[-2], key[-2], query[-1], value[-1]


@MISTAKES.add(
    "the scores are transposed",
    hint="Does a row of the scores belong to a query or to a key?",
    more="Two guests stand at the door and each scores all five inside. Draw that table: how many rows does it have?",
    section=TWO,
)
def scores_transposed(query, key, value):
    """Your table of scores has a row for each key. It should have a row for each query, and a column for each key."""
    leading, T, S, _, D_v = sizes(query, key, value)
    return (*leading, S, T), (*leading, T, D_v)


@MISTAKES.add(
    "the scores are square",
    hint="Does anything require as many keys as queries?",
    more="Two guests at the door, five inside: how many comparisons are made? Count the rows and the columns.",
    section=TWO,
)
def square_scores(query, key, value):
    """You take as many columns as rows.

    There is a column for each key, and there may be more or fewer keys than queries.
    """
    leading, T, _, _, D_v = sizes(query, key, value)
    return (*leading, T, T), (*leading, T, D_v)


@MISTAKES.add(
    "the scores have a row and a column for each key",
    hint="Who asks, and how many of them are there?",
    more="Two guests at the door, five inside: which of your two sizes should be the number of guests at the door?",
    section=TWO,
)
def keys_by_keys(query, key, value):
    """Your table of scores compares keys with keys. Its rows belong to the queries."""
    leading, T, S, _, D_v = sizes(query, key, value)
    return (*leading, S, S), (*leading, T, D_v)


@MISTAKES.add(
    "the scores are as wide as a vector",
    hint="What is left of the width after a dot product?",
    more="Each score is one number for one pair. Count the pairs of the first query: there are as many columns.",
    section=SHAPES,
)
def scores_of_width(query, key, value):
    """Your scores have the width of a query. The dot product sums over that width, and it disappears."""
    leading, T, _, D, D_v = sizes(query, key, value)
    return (*leading, T, D), (*leading, T, D_v)


@MISTAKES.add(
    "the scores keep the width of the vectors",
    hint="How many numbers come out of one dot product?",
    more="Multiplying components gives one number for each of them. Then they are added up: which axis goes away?",
    section=SHAPES,
)
def width_kept(query, key, value):
    """Your scores still have the width of the vectors as a third dimension. The dot product sums it away."""
    leading, T, S, D, D_v = sizes(query, key, value)
    return (*leading, T, S, D), (*leading, T, D_v)


@MISTAKES.add(
    "the output has the width of the keys",
    hint="What is it that is averaged, and how wide is that?",
    more="Each guest takes home presents, not name tags. Which of the three shapes says how wide a present is?",
    section=MATRICES,
)
def output_as_wide_as_keys(query, key, value):
    """Your output is as wide as the keys. It is an average of values, so it has the width of the values."""
    leading, T, S, D, _ = sizes(query, key, value)
    return (*leading, T, S), (*leading, T, D)


@MISTAKES.add(
    "the output has a row for each key",
    hint="Who gets an answer: those who ask, or those who are asked?",
    more="Two guests at the door ask five guests inside. How many presents are handed out?",
    section=TWO,
)
def row_for_each_key(query, key, value):
    """Your output has as many rows as there are values. It should have one for each query: each gets one average."""
    leading, T, S, _, D_v = sizes(query, key, value)
    return (*leading, T, S), (*leading, S, D_v)


@MISTAKES.add(
    "the output keeps all values apart",
    hint="What happens to the S values once they have their weights?",
    more="A weighted sum of five presents is one present. Which of your dimensions should it sum away?",
    section=MATRICES,
)
def values_kept_apart(query, key, value):
    """Your output holds every weighted value by itself.

    They should be added up, and the dimension of the keys should go away.
    """
    leading, T, S, _, D_v = sizes(query, key, value)
    return (*leading, T, S), (*leading, T, S, D_v)


@MISTAKES.add(
    "the output is transposed",
    hint="Does a row of the output belong to a query or to a component?",
    more="In all tables of the chapter a row belongs to a word. Compare the two sizes of your output with that.",
    section=SHAPES,
)
def output_transposed(query, key, value):
    """Your output has a column for each query. In this course every vector is a row, with one query below the other."""
    leading, T, S, _, D_v = sizes(query, key, value)
    return (*leading, T, S), (*leading, D_v, T)


@MISTAKES.add(
    "the output has the shape of the scores",
    hint="One more product comes between the scores and the output. What is multiplied there?",
    more="The weights have the shape of the scores. Then they are multiplied by the values: write both shapes side by "
    "side.",
    section=SHAPES,
)
def output_like_scores(query, key, value):
    """Your output has the shape of the weights. They are multiplied by the values, which gives a different width."""
    leading, T, S, _, _ = sizes(query, key, value)
    return (*leading, T, S), (*leading, T, S)


@MISTAKES.add(
    "the results are in the wrong order",
    hint="Which of the two does the docstring name first?",
    more="Both of your shapes are right. Look at the line that returns them.",
    section=SHAPES,
)
def wrong_order(query, key, value):
    """Both shapes are right, but the output's comes first. The task asks for the shape of the scores first."""
    return attention_shapes(query, key, value)[::-1]


@MISTAKES.add(
    "leading dimensions are lost",
    hint="What should happen to what comes before the last two dimensions?",
    more="With 32 sentences there are 32 tables of scores. Print what your function says for a batch.",
    section=SHAPES,
)
def leading_lost(query, key, value):
    """The last two sizes are right, but what comes before them is gone: there is a table for each sentence."""
    _, T, S, _, D_v = sizes(query, key, value)
    return (T, S), (T, D_v)


@MISTAKES.add(
    "sizes are counted from the front",
    hint="Which index of a shape means the last one, however many there are?",
    more="For a batch of 32 sentences, write down what is at the indices 0 and 1 of the shape.",
    section=SHAPES,
)
def from_the_front(query, key, value):
    """For two dimensions the indices 0 and 1 are right. With a batch in front something else is there."""
    return (query[0], key[0]), (query[0], value[1])


@MISTAKES.add(
    "only one leading dimension is kept",
    hint="How many dimensions can come before the last two?",
    more="Try a batch of 2 with 3 heads. Which of the two numbers is missing from your shapes?",
    section=SHAPES,
)
def one_leading_dimension(query, key, value):
    """You keep only the first of the leading sizes. There may be any number of leading dimensions."""
    leading, T, S, _, D_v = sizes(query, key, value)
    return (*leading[:1], T, S), (*leading[:1], T, D_v)


@MISTAKES.add(
    "the leading sizes are in a tuple of their own",
    hint="How many numbers does your shape have for a batch of 2 with 3 heads, and how many should it have?",
    more="A shape holds whole numbers side by side. A star in front of a tuple or a list unpacks its entries.",
    section=SHAPES,
)
def nested(query, key, value):
    """The leading sizes are one tuple or list inside your shape. A shape holds nothing but whole numbers."""
    leading, T, S, _, D_v = sizes(query, key, value)
    return (leading, T, S), (leading, T, D_v)


@MISTAKES.add(
    "one shape instead of two: that of the scores",
    hint="How many shapes does the docstring promise?",
    more="The table of scores is one step on the way. What is the shape of what comes out at the end?",
    section=SHAPES,
)
def scores_alone(query, key, value):
    """You return the shape of the scores alone. The task asks for the shape of the output as well."""
    return attention_shapes(query, key, value)[0]


@MISTAKES.add(
    "one shape instead of two: that of the output",
    hint="How many shapes does the docstring promise?",
    more="The output is there. What is the shape of the table that says how much each query attends to each key?",
    section=SHAPES,
)
def output_alone(query, key, value):
    """You return only the shape of the output.

    The task asks for the shape of the scores too, and for that one first.
    """
    return attention_shapes(query, key, value)[1]


@MISTAKES.add(
    "the number of keys is counted from the front",
    hint="Which index of a shape means the last but one, however many there are?",
    more="For a batch of 32 sentences, write down what is at index 0 of the shape of the keys.",
    section=SHAPES,
)
def keys_from_the_front(query, key, value):
    """You read the number of keys at index 0 of their shape, which is right only without a batch."""
    leading, T, _, _, D_v = sizes(query, key, value)
    return (*leading, T, key[0]), (*leading, T, D_v)


@MISTAKES.add(
    "the leading sizes are reversed",
    hint="In which order should the sizes in front come out?",
    more="Try a batch of 2 with 3 heads. Does your result describe a batch of 3 with 2 heads?",
    section=SHAPES,
)
def leading_reversed(query, key, value):
    """The sizes in front of the last two come out in reverse order. They should stay as they are."""
    leading, T, S, _, D_v = sizes(query, key, value)
    return (*leading[::-1], T, S), (*leading[::-1], T, D_v)


@MISTAKES.add(
    "the output contains the sizes of the scores",
    hint="How many dimensions does the output have?",
    more="A list that you extend for the first shape is longer when you make the second one. Print it in between.",
    section=SHAPES,
)
def list_grown(query, key, value):
    """The shape of the output has the last two sizes of the scores in front. Both shapes start from the same sizes."""
    leading, T, S, _, D_v = sizes(query, key, value)
    return (*leading, T, S), (*leading, T, S, T, D_v)


@MISTAKES.add(
    "one list is used for both shapes",
    hint="Are your two results two lists, or two names for the same one?",
    more="Giving a list a second name does not copy it: what you add to one is also added to the other. Print both "
    "at the end.",
    section=SHAPES,
)
def same_list_twice(query, key, value):
    """Both of your results hold the sizes of the scores and of the output: they are one list with two names."""
    leading, T, S, _, D_v = sizes(query, key, value)
    return ((*leading, T, S, T, D_v),) * 2


@MISTAKES.add(
    "the output has lost its leading dimensions",
    hint="For 32 sentences there are 32 tables of scores. How many tables of results are there?",
    more="The scores keep all sizes before the last two. Does your output keep them too?",
    section=SHAPES,
)
def output_without_leading(query, key, value):
    """The scores are right, but the output has only its last two sizes: those before them are missing."""
    leading, T, S, _, D_v = sizes(query, key, value)
    return (*leading, T, S), (T, D_v)


EXERCISE = Exercise(
    name="attention_shapes",
    reference=attention_shapes,
    outputs={"scores": (), "output": ()},
    rubric={MATRIX: 3, BATCHES: 2},
    section=SHAPES,
    advice="Draw the two guests at the door and the five inside. Label the sizes with the letters T, S, D and D_v, "
    "and write the shapes of Q, of K turned on its side, and of V in a row. Which letters meet and vanish in each "
    "product?",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    plain=True,
    backends=("numpy",),
)
