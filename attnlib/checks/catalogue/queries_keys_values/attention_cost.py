"""attention_cost(T, S, D, D_v): how many multiplications, and how many scores."""

from collections.abc import Iterator

import numpy as np

from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.queries_keys_values.sections import COST, MATRICES, SHAPES, TWO
from attnlib.checks.exercise import Exercise, Mistakes

SMALL, LARGE = "sizes that differ", "long sequences"
MISTAKES = Mistakes()


def attention_cost(T: int, S: int, D: int, D_v: int) -> tuple[int, int]:
    """Return the multiplications of the two matrix products, and how many numbers the table of scores holds."""
    pairs = T * S
    return pairs * (D + D_v), pairs


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: the chapter's guests at the door, other sizes, one query, the paper's sizes, a long text."""
    yield Case("two guests at the door and five inside", SMALL, {"T": 2, "S": 5, "D": 8, "D_v": 6})
    T, S, D, D_v = (int(n) for n in rng.permutation(np.arange(3, 12))[:4])
    yield Case("four sizes that all differ", SMALL, {"T": T, "S": S, "D": D, "D_v": D_v})
    yield Case("more queries than keys", SMALL, {"T": 9, "S": 4, "D": 5, "D_v": 7})
    yield Case("one query", SMALL, {"T": 1, "S": 6, "D": 5, "D_v": 3})
    yield Case("the paper's sizes, a sentence of 100 words", LARGE, {"T": 100, "S": 100, "D": 64, "D_v": 64})
    long = int(rng.integers(90_000, 110_000))
    yield Case(f"{long} words", LARGE, {"T": long, "S": long, "D": 64, "D_v": 48})
    yield Case("60 queries and a text of 250 words", LARGE, {"T": 60, "S": 250, "D": 64, "D_v": 48})


@MISTAKES.add(
    "the product with the values is missing",
    hint="There are two matrix products. Which one have you counted?",
    more="First queries meet keys, then weights meet values. Write down the cost of each, and add them.",
    section=SHAPES,
)
def scores_alone(T, S, D, D_v):
    """You have counted the products for the scores. The weighted sum of the values takes some too."""
    return T * S * D, T * S


@MISTAKES.add(
    "the product of queries and keys is missing",
    hint="There are two matrix products. Which one is not in your count?",
    more="Before there are weights, each query meets each key. How many multiplications does one meeting take?",
    section=SHAPES,
)
def values_alone(T, S, D, D_v):
    """You have counted the weighted sum of the values. The scores cost something too: a product for each component."""
    return T * S * D_v, T * S


@MISTAKES.add(
    "the widths are multiplied",
    hint="Are the two products done one after the other, or one inside the other?",
    more="Two jobs of 10 and 14 minutes, one after the other, take 24 minutes. Which operation do your widths need?",
    section=COST,
)
def widths_multiplied(T, S, D, D_v):
    """The two widths are multiplied. The two products come one after the other, so their costs are added."""
    return T * S * D * D_v, T * S


@MISTAKES.add(
    "both products have the width of the keys",
    hint="How wide is what the weights are multiplied by?",
    more="For one entry of the output, one component of all values is added up. How many such entries does a row have?",
    section=MATRICES,
)
def width_of_keys_twice(T, S, D, D_v):
    """You count D multiplications for each pair in both products.

    The second mixes values, which have a different width.
    """
    return 2 * T * S * D, T * S


@MISTAKES.add(
    "both products have the width of the values",
    hint="How wide are the vectors that are compared?",
    more="For one score, two vectors are multiplied component by component. What width do these two have?",
    section=MATRICES,
)
def width_of_values_twice(T, S, D, D_v):
    """You count D_v multiplications for each pair in both products.

    The first multiplies queries by keys, of width D.
    """
    return 2 * T * S * D_v, T * S


@MISTAKES.add(
    "as many keys as queries",
    hint="Does anything require S to equal T?",
    more="Two guests at the door, five inside: count the pairs on your fingers.",
    section=TWO,
)
def queries_squared(T, S, D, D_v):
    """You square the number of queries. Pairs are made of one query and one key, and there may be more keys."""
    return T * T * (D + D_v), T * T


@MISTAKES.add(
    "as many queries as keys",
    hint="Does anything require T to equal S?",
    more="Two guests at the door, five inside: who meets whom? Draw a line for each pair and count.",
    section=TWO,
)
def keys_squared(T, S, D, D_v):
    """You square the number of keys. Pairs are made of one query and one key, and there may be fewer queries."""
    return S * S * (D + D_v), S * S


@MISTAKES.add(
    "queries and keys are added",
    hint="If 2 guests each meet 5 others, how many meetings are there?",
    more="Every query meets every key. Draw them as rows and columns, and count the cells.",
    section=COST,
)
def pairs_added(T, S, D, D_v):
    """You add the numbers of queries and keys. Every query meets every key, so they are multiplied."""
    return (T + S) * (D + D_v), T + S


@MISTAKES.add(
    "additions are counted too",
    hint="What does the task ask for: multiplications, or all operations?",
    more="Your number is twice the one that the task asks for. A product of two numbers is one multiplication.",
    section=COST,
)
def operations(T, S, D, D_v):
    """You count a multiplication and an addition for each component. Here the task asks only for multiplications."""
    return 2 * T * S * (D + D_v), T * S


@MISTAKES.add(
    "the projections are counted too",
    hint="Which two products does the task ask for, and do the matrices of the projections take part in them?",
    more="Queries, keys and values are there already. Count from the table of scores on.",
    section=COST,
)
def with_projections(T, S, D, D_v):
    """You also count the computation of queries, keys and values. The task starts from finished ones."""
    return T * S * (D + D_v) + T * D * D + S * D * D + S * D * D_v, T * S


@MISTAKES.add(
    "the scaling is counted too",
    hint="Which two products does the task ask for?",
    more="Your number is too large by the number of pairs. Which step costs one multiplication for each pair?",
    section=COST,
)
def with_scaling(T, S, D, D_v):
    """You count one more multiplication for each score. The task asks only for those of the two matrix products."""
    return T * S * (D + D_v + 1), T * S


@MISTAKES.add(
    "the weighted sum is counted once, not once per query",
    hint="How many averages of the values are made?",
    more="One average of S values of width D_v costs S times D_v. Each query makes one of its own.",
    section=MATRICES,
)
def values_once(T, S, D, D_v):
    """You count a single weighted sum of the values. Each query makes a sum of its own, with its own weights."""
    return T * S * D + S * D_v, T * S


@MISTAKES.add(
    "the scores are counted with their width",
    hint="How many numbers are one score?",
    more="The dot product adds up its D products. What is left for each pair?",
    section=SHAPES,
)
def scores_with_width(T, S, D, D_v):
    """Your second number counts D numbers for each pair. A score is one number: the width was summed away."""
    return T * S * (D + D_v), T * S * D


@MISTAKES.add(
    "the scores of queries with themselves",
    hint="The first number is right. What is the shape of the table that the second number counts?",
    more="The table of scores has a row for each query. What does it have a column for?",
    section=TWO,
)
def square_table(T, S, D, D_v):
    """Your second number is the square of T. The table of scores has a column for each key, not for each query."""
    return T * S * (D + D_v), T * T


@MISTAKES.add(
    "the output is counted, not the scores",
    hint="The first number is right. Which table does the second one ask for?",
    more="Your second number is the size of the output. The table of scores is made before it.",
    section=SHAPES,
)
def size_of_output(T, S, D, D_v):
    """Your second number counts the numbers of the output. The task asks for those in the table of scores."""
    return T * S * (D + D_v), T * D_v


@MISTAKES.add(
    "the results are in the wrong order",
    hint="Which of the two numbers does the docstring name first?",
    more="Both of your numbers are right. Look at the line that returns them.",
    section=COST,
)
def wrong_order(T, S, D, D_v):
    """Both numbers are right, but the size of the table comes first. The task asks for the multiplications first."""
    return attention_cost(T, S, D, D_v)[::-1]


@MISTAKES.add(
    "one number instead of two",
    hint="How many numbers does the docstring promise?",
    more="The multiplications are right. What takes the memory, and how large is it?",
    section=COST,
)
def multiplications_alone(T, S, D, D_v):
    """You return the multiplications alone. The task asks for the size of the table of scores as well."""
    return attention_cost(T, S, D, D_v)[0]


@MISTAKES.add(
    "one number of the output costs one multiplication",
    hint="How many values go into one number of the output?",
    more="Each number of the output is a weighted sum of S numbers. How many products does that take?",
    section=COST,
)
def output_counted_once(T, S, D, D_v):
    """You count one multiplication for each number of the output. Each of them takes S."""
    return T * S * D + T * D_v, T * S


@MISTAKES.add(
    "the output is counted with a row for each key",
    hint="How many rows does the output have: one for each query, or one for each key?",
    more="Two guests at the door take home two presents. How many rows is that?",
    section=COST,
)
def output_per_key(T, S, D, D_v):
    """The second product is counted with S rows. The output has a row for each of the T queries."""
    return T * S * D + S * S * D_v, T * S


@MISTAKES.add(
    "the output is counted along with the table",
    hint="Which single table does the second number measure?",
    more="The table of scores has a row for each query and a column for each key. What have you added to it?",
    section=COST,
)
def output_in_memory(T, S, D, D_v):
    """The numbers of the output are counted along with those of the table of scores."""
    return T * S * (D + D_v), T * S + T * D_v


@MISTAKES.add(
    "additions are counted for the scores",
    hint="How many products and how many plus signs are there in a dot product of width 8?",
    more="The task asks for multiplications. Write out a dot product of width 3, and count the signs of each kind.",
    section=COST,
)
def additions_of_scores(T, S, D, D_v):
    """For one score you count D - 1, which is the number of plus signs. There are D products."""
    return T * S * (D - 1 + D_v), T * S


@MISTAKES.add(
    "additions are counted too, one fewer than products",
    hint="What does the task ask for: multiplications, or all operations?",
    more="You are right that a dot product of width 8 takes 8 multiplications and 7 additions. Which of the two does "
    "the task ask for?",
    section=COST,
)
def exact_operations(T, S, D, D_v):
    """You count the plus signs along with the products. Here the task asks only for multiplications."""
    return T * S * (2 * D - 1) + T * D_v * (2 * S - 1), T * S


@MISTAKES.add(
    "the projections are counted too, with square matrices",
    hint="Which two products does the task ask for, and do the matrices of the projections take part in them?",
    more="Queries, keys and values are there already. Count from the table of scores on.",
    section=COST,
)
def with_square_projections(T, S, D, D_v):
    """You also count the computation of queries, keys and values. The task starts from finished ones."""
    return T * S * (D + D_v) + T * D * D + S * D * D + S * D_v * D_v, T * S


@MISTAKES.add(
    "keys and values are multiplied first",
    hint="Which step comes between the two products, and what does it need?",
    more="The softmax needs the whole table of scores. Can any value be used before that table exists?",
    section=COST,
)
def keys_and_values_first(T, S, D, D_v):
    """You multiply keys by values, and then the queries by the result. The softmax does not allow that order."""
    return S * D * D_v + T * D * D_v, T * S


@MISTAKES.add(
    "the costs of the two products are multiplied",
    hint="Are the two products done one after the other, or one inside the other?",
    more="Two jobs of 10 and 14 minutes, one after the other, take 24 minutes. Which operation do your two costs need?",
    section=COST,
)
def products_multiplied(T, S, D, D_v):
    """The two costs are right, but you multiply them. The products come one after the other, so the costs add up."""
    return (T * S * D) * (T * S * D_v), T * S


@MISTAKES.add(
    "queries, keys and values are counted along with the table",
    hint="The first number is right. Which single table does the second number measure?",
    more="Queries, keys and values are there before attention begins. Which table does attention make from them?",
    section=COST,
)
def inputs_in_memory(T, S, D, D_v):
    """Your second number includes queries, keys and values. The task asks only for the table of scores."""
    return T * S * (D + D_v), T * S + T * D + S * D + S * D_v


@MISTAKES.add(
    "bytes instead of numbers (float32)",
    hint="The first number is right. In which unit does the task ask for the second one?",
    more="Your second number is 4 times as large as it should be. How many bytes does a number in float32 take?",
    section=COST,
)
def bytes_in_float32(T, S, D, D_v):
    """Your second number is the memory in bytes. The task asks how many numbers the table of scores holds."""
    return T * S * (D + D_v), 4 * T * S


@MISTAKES.add(
    "bytes instead of numbers (float64)",
    hint="The first number is right. In which unit does the task ask for the second one?",
    more="Your second number is 8 times as large as it should be. How many bytes does a number in float64 take?",
    section=COST,
)
def bytes_in_float64(T, S, D, D_v):
    """Your second number is the memory in bytes. The task asks how many numbers the table of scores holds."""
    return T * S * (D + D_v), 8 * T * S


@MISTAKES.add(
    "the second product uses the width of the keys",
    hint="When the weights are multiplied by the values, what shape does the table of weights have?",
    more="The output has T rows and D_v columns, and each of its numbers is a sum over the keys. How many "
    "multiplications is that in all?",
    section=SHAPES,
)
def values_times_width(T, S, D, D_v):
    """For the second product you multiply S, D and D_v. The weights are (T, S), the values (S, D_v), without D."""
    return T * S * D + S * D * D_v, T * S


@MISTAKES.add(
    "a shape instead of a number",
    hint="How many numbers are in a table of 2 rows and 5 columns?",
    more="Your second result is right as a shape. What do you still have to do with its two sizes?",
    section=TWO,
)
def shape_of_scores(T, S, D, D_v):
    """Your second result is the shape of the table of scores. The task asks how many numbers the table holds."""
    return T * S * (D + D_v), (T, S)


EXERCISE = Exercise(
    name="attention_cost",
    reference=attention_cost,
    outputs={"multiplications": (), "scores": ()},
    rubric={SMALL: 3, LARGE: 1},
    section=COST,
    advice="Take two queries, five keys and values, D = 8 and D_v = 6. Count the multiplications of one score, then of "
    "all scores; then those of one number of the output, then of all its numbers.",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    plain=True,
    backends=("numpy",),
)
