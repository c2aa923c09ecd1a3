"""rnn_cell(x, h, w_ih, w_hh, b_ih, b_hh)."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.context_vectors.sections import RECURRENCE
from attnlib.checks.exercise import Exercise, Mistakes

NUMBERS, BATCHES, LARGE, UNCHANGED = "the numbers", "batches", "large sums", "inputs unchanged"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: one small step by hand, then single vectors, then batches, then sums where tanh is flat."""
    hand = {
        "x": np.array([1.0, 2.0, 1.0]),
        "h": np.array([0.5, -0.5]),
        "w_ih": np.array([[0.6, -0.4, 0.1], [0.2, 0.3, -0.5]]),
        "w_hh": np.array([[0.8, -0.2], [0.4, 0.6]]),
        "b_ih": np.array([0.3, 0.1]),
        "b_hh": np.array([0.1, -0.5]),
    }
    yield Case("an input of width 3 and a state of width 2, whose sums are 0.8 and -0.2", NUMBERS, hand)
    yield Case("one input of width 3 and a state of width 4", NUMBERS, step(rng, (), 3, 4))
    yield Case("one input of width 5 and a state of width 2", NUMBERS, step(rng, (), 5, 2))
    yield Case("an input and a state of the same width, 3", NUMBERS, step(rng, (), 3, 3))
    yield Case("vectors in float32", NUMBERS, step(rng, (), 4, 6, np.float32))
    yield Case("a batch of 5 (D_in=3, D_h=4)", BATCHES, step(rng, (5,), 3, 4))
    yield Case("a batch of 1 (D_in=4, D_h=2)", BATCHES, step(rng, (1,), 4, 2))
    yield Case("a batch of 4 whose input and state have the same width, 4", BATCHES, step(rng, (4,), 4, 4))
    views = step(rng, (4,), 2, 3)
    views["w_ih"] = 0.5 * rng.normal(size=(2, 3)).T
    views["x"] = rng.normal(size=(8, 2))[::2]
    yield Case("a batch of every second row, and a weight that is a transposed view", BATCHES, views)
    yield Case("leading dimensions (2, 7)", BATCHES, step(rng, (2, 7), 5, 3))
    large = step(rng, (2,), 3, 4)
    large["b_ih"] = np.array([900.0, -900.0, 0.2, -0.3])
    yield Case("sums of about 900 and -900", LARGE, large)
    yield Case("inputs that must stay as they are", UNCHANGED, step(rng, (3,), 4, 2), unchanged=True)


def step(rng, leading: tuple[int, ...], d_in: int, d_h: int, dtype=np.float64) -> dict[str, Any]:
    """Return a random input, state and weights, whose sums are of order 1, where tanh bends."""
    arrays = {
        "x": rng.normal(size=(*leading, d_in)),
        "h": rng.uniform(-0.9, 0.9, size=(*leading, d_h)),
        "w_ih": 0.5 * rng.normal(size=(d_h, d_in)),
        "w_hh": 0.6 * rng.normal(size=(d_h, d_h)),
        "b_ih": 0.4 * rng.normal(size=d_h),
        "b_hh": 0.4 * rng.normal(size=d_h),
    }
    return {name: array.astype(dtype) for name, array in arrays.items()}


def _sum(x, h, w_ih, w_hh, b_ih, b_hh):
    return x @ w_ih.T + b_ih + h @ w_hh.T + b_hh


@MISTAKES.add(
    "the sum is not squashed",
    hint="A state is always between -1 and 1. What keeps it there?",
    more="In the first case the sums are 0.8 and -0.2. The next state is two other numbers, a little nearer to 0.",
    section=RECURRENCE,
)
def no_tanh(x, h, w_ih, w_hh, b_ih, b_hh):
    """The sum itself is returned. It still has to go through the hyperbolic tangent."""
    return _sum(x, h, w_ih, w_hh, b_ih, b_hh)


@MISTAKES.add(
    "the state's weights are used by columns",
    hint="Row i of `w_hh` makes number i of the new state. What does your product do with a row?",
    more="`w_hh` is square, so no error warns you. In the first case the state's part, without its bias, is "
    "(0.5, -0.1). Compute the first of these numbers by hand.",
    section=RECURRENCE,
)
def state_weights_transposed(x, h, w_ih, w_hh, b_ih, b_hh):
    """The input is weighted correctly. But the state is multiplied by the columns of `w_hh` instead of the rows."""
    return np.tanh(_sum(x, h, w_ih, w_hh.T, b_ih, b_hh))


@MISTAKES.add(
    "the input's weights are used by columns",
    hint="Row i of `w_ih` makes number i of the new state. What does your product do with a row?",
    more="Write down the shape of `x`, of `w_ih` and of their product. With different widths, only one way fits.",
    section=RECURRENCE,
)
def input_weights_transposed(x, h, w_ih, w_hh, b_ih, b_hh):
    """The input is multiplied by the columns of `w_ih` instead of the rows: each row belongs to one output."""
    return np.tanh(_sum(x, h, w_ih.T, w_hh, b_ih, b_hh))


@MISTAKES.add(
    "both weights are used by columns",
    hint="In this layout each row of a weight makes one number of the new state. What do your products do with a row?",
    more="The chapter's formula has the transposes of these two arrays. Compare the shape of the input's weights in "
    "the formula with the shape of `w_ih`.",
    section=RECURRENCE,
)
def both_weights_transposed(x, h, w_ih, w_hh, b_ih, b_hh):
    """Input and state are multiplied by the columns of their weights. In this layout each row belongs to one output."""
    return np.tanh(_sum(x, h, w_ih.T, w_hh.T, b_ih, b_hh))


@MISTAKES.add(
    "the old state is not used",
    hint="A cell that forgets its state is not a recurrent cell. Where does `h` enter your sum?",
    more="Call your function twice, with two different states. Do the results differ? Should they?",
    section=RECURRENCE,
)
def no_state(x, h, w_ih, w_hh, b_ih, b_hh):
    """The new state depends on the input alone. The old state, weighted by `w_hh`, is missing from the sum."""
    return np.tanh(x @ w_ih.T + b_ih + b_hh)


@MISTAKES.add(
    "this is a layer without a state",
    hint="Three of the six arguments are missing from your sum. Which?",
    more="Call your function twice, with two different states. Do the results differ? Should they?",
    section=RECURRENCE,
)
def feed_forward(x, h, w_ih, w_hh, b_ih, b_hh):
    """The input goes through weights, bias and tanh. The old state, with its own weights and bias, is missing."""
    return np.tanh(x @ w_ih.T + b_ih)


@MISTAKES.add(
    "the input is not used",
    hint="The network should read something at each step. Where does `x` enter your sum?",
    more="Call your function twice, with two different inputs. Do the results differ? Should they?",
    section=RECURRENCE,
)
def no_input(x, h, w_ih, w_hh, b_ih, b_hh):
    """The new state depends on the old one alone. The input, weighted by `w_ih`, is missing from the sum."""
    return np.tanh(h @ w_hh.T + b_hh + b_ih)


@MISTAKES.add(
    "the biases are missing",
    hint="Of the six arguments, which ones does your sum not contain?",
    more="In the first case the first sum is 0.8. How much of it comes from the biases?",
    section=RECURRENCE,
)
def no_biases(x, h, w_ih, w_hh, b_ih, b_hh):
    """Input and state are weighted and squashed, but nothing is added: both biases are missing."""
    return np.tanh(_sum(x, h, w_ih, w_hh, 0, 0))


@MISTAKES.add(
    "the input's bias is missing",
    hint="There are two biases. How many does your sum contain?",
    more="In the first case the first sum is 0.8. Take away 0.3 and compare with yours.",
    section=RECURRENCE,
)
def no_input_bias(x, h, w_ih, w_hh, b_ih, b_hh):
    """Only the state's bias is added. `b_ih`, the input's own, is missing."""
    return np.tanh(_sum(x, h, w_ih, w_hh, 0, b_hh))


@MISTAKES.add(
    "the state's bias is missing",
    hint="There are two biases. How many does your sum contain?",
    more="In the first case the first sum is 0.8. Take away 0.1 and compare with yours.",
    section=RECURRENCE,
)
def no_state_bias(x, h, w_ih, w_hh, b_ih, b_hh):
    """Only the input's bias is added. `b_hh`, the state's own, is missing."""
    return np.tanh(_sum(x, h, w_ih, w_hh, b_ih, 0))


@MISTAKES.add(
    "the input's bias is added twice",
    hint="Count how often each bias occurs in your sum.",
    more="In the first case the first sum contains 0.3 and 0.1 as biases. What do they add up to in yours?",
    section=RECURRENCE,
)
def input_bias_twice(x, h, w_ih, w_hh, b_ih, b_hh):
    """`b_ih` is added in both places. The state has a bias of its own, `b_hh`."""
    return np.tanh(_sum(x, h, w_ih, w_hh, b_ih, b_ih))


@MISTAKES.add(
    "the state's bias is added twice",
    hint="Count how often each bias occurs in your sum.",
    more="In the first case the first sum contains 0.3 and 0.1 as biases. What do they add up to in yours?",
    section=RECURRENCE,
)
def state_bias_twice(x, h, w_ih, w_hh, b_ih, b_hh):
    """`b_hh` is added in both places. The input has a bias of its own, `b_ih`."""
    return np.tanh(_sum(x, h, w_ih, w_hh, b_hh, b_hh))


@MISTAKES.add(
    "the biases come after the tanh",
    hint="The result should lie between -1 and 1. What can push yours beyond that range?",
    more="In the first case the first sum inside the tanh is 0.8, with both biases in it. What is inside yours?",
    section=RECURRENCE,
)
def biases_outside(x, h, w_ih, w_hh, b_ih, b_hh):
    """The biases are added to the squashed sum. They belong inside, and the tanh comes last."""
    return np.tanh(_sum(x, h, w_ih, w_hh, 0, 0)) + b_ih + b_hh


@MISTAKES.add(
    "input and state are squashed one by one",
    hint="How many times is tanh applied in the formula, and to what?",
    more="In the first case the first number has one sum, 0.8, and one tanh of it. Which numbers go into yours?",
    section=RECURRENCE,
)
def squashed_apart(x, h, w_ih, w_hh, b_ih, b_hh):
    """The input's part and the state's part each get a tanh and are added afterwards. The sum comes first."""
    return np.tanh(x @ w_ih.T + b_ih) + np.tanh(h @ w_hh.T + b_hh)


@MISTAKES.add(
    "only the input's part is squashed",
    hint="Look where the bracket of your tanh closes.",
    more="In the first case the first sum inside the tanh is 0.8. Which of its four terms are inside yours?",
    section=RECURRENCE,
)
def only_input_squashed(x, h, w_ih, w_hh, b_ih, b_hh):
    """The state's part is added after the tanh. It belongs inside, next to the input's part."""
    return np.tanh(x @ w_ih.T + b_ih) + h @ w_hh.T + b_hh


@MISTAKES.add(
    "only the state's part is squashed",
    hint="Look where the bracket of your tanh opens.",
    more="In the first case the first sum inside the tanh is 0.8. Which of its four terms are inside yours?",
    section=RECURRENCE,
)
def only_state_squashed(x, h, w_ih, w_hh, b_ih, b_hh):
    """The input's part is added after the tanh. It belongs inside, next to the state's part."""
    return x @ w_ih.T + b_ih + np.tanh(h @ w_hh.T + b_hh)


@MISTAKES.add(
    "squashed by a sigmoid",
    hint="What is the result for a sum of 0? And can a state be negative?",
    more="There are two well-known S-shaped curves: one runs from 0 to 1, the other from -1 to 1. Which one does the "
    "task ask for?",
    section=RECURRENCE,
)
def sigmoid(x, h, w_ih, w_hh, b_ih, b_hh):
    """The sum goes through a sigmoid, so no number of the state is ever negative. The task asks for a tanh."""
    return 1 / (1 + np.exp(-_sum(x, h, w_ih, w_hh, b_ih, b_hh)))


@MISTAKES.add(
    "cut off at 0 (ReLU)",
    hint="Can a state be negative? And can it grow beyond 1?",
    more="In the first case the second sum is -0.2. Which function of it does the formula ask for, and what is its "
    "value?",
    section=RECURRENCE,
)
def relu(x, h, w_ih, w_hh, b_ih, b_hh):
    """Negative sums become 0 and positive ones stay as they are. The task asks for a tanh."""
    return np.maximum(_sum(x, h, w_ih, w_hh, b_ih, b_hh), 0)


@MISTAKES.add(
    "the two weights have changed places",
    hint="i stands for input, h for the hidden state. Which of the two does `w_ih` multiply?",
    more="Write down the widths that each weight connects. With different widths, only one pairing fits.",
    section=RECURRENCE,
)
def weights_swapped(x, h, w_ih, w_hh, b_ih, b_hh):
    """`w_ih` is applied to the state and `w_hh` to the input. It should be the other way round."""
    return np.tanh(_sum(h, x, w_ih, w_hh, b_ih, b_hh))


@MISTAKES.add(
    "multiplied instead of added",
    hint="Which operation joins the input's part and the state's part?",
    more="In the first case the first sum is made of 0.2 from the input and 0.6 from the state. What is it?",
    section=RECURRENCE,
)
def multiplied(x, h, w_ih, w_hh, b_ih, b_hh):
    """The input's part and the state's part are multiplied. They should be added up."""
    return np.tanh((x @ w_ih.T + b_ih) * (h @ w_hh.T + b_hh))


@MISTAKES.add(
    "the state's part is subtracted",
    hint="Follow the signs: which of the four terms has a minus in your sum?",
    more="In the first case the first sum is made of 0.2 from the input and 0.6 from the state. What is it?",
    section=RECURRENCE,
)
def subtracted(x, h, w_ih, w_hh, b_ih, b_hh):
    """The state's part is taken away from the input's part. All terms should be added."""
    return np.tanh(x @ w_ih.T + b_ih - (h @ w_hh.T + b_hh))


@MISTAKES.add(
    "the old state is added once more",
    hint="In how many places does `h` appear in the formula?",
    more="In the first case the old state is (0.5, -0.5). Take that away from your result: what is left?",
    section=RECURRENCE,
)
def residual(x, h, w_ih, w_hh, b_ih, b_hh):
    """The old state is added to the squashed sum. In this cell it enters only through `w_hh`."""
    return h + np.tanh(_sum(x, h, w_ih, w_hh, b_ih, b_hh))


@MISTAKES.add(
    "the old state enters without its weights",
    hint="Of the six arguments, which one does your function not use?",
    more="In the first case the state's part, without its bias, is (0.5, -0.1). What is it in yours?",
    section=RECURRENCE,
)
def state_unweighted(x, h, w_ih, w_hh, b_ih, b_hh):
    """The old state is added to the sum as it is. It should pass through `w_hh` first."""
    return np.tanh(x @ w_ih.T + b_ih + h + b_hh)


@MISTAKES.add(
    "input and state are joined in the wrong order",
    hint="You join two vectors, and you join two weights. Does the same part come first in both?",
    more="Write down which columns of the joined weight multiply the numbers of `x`. The total width is right even in "
    "the wrong order.",
    section=RECURRENCE,
)
def joined_wrongly(x, h, w_ih, w_hh, b_ih, b_hh):
    """The vectors are joined in one order and the weights in the other, so each gets the other's weights."""
    return np.tanh(np.concatenate([h, x], -1) @ np.concatenate([w_ih, w_hh], 1).T + b_ih + b_hh)


@MISTAKES.add(
    "right for one vector, wrong for a batch",
    hint="In a batch each *row* is one input. What does a weight to the left of the batch multiply?",
    more="Write down the shapes for a batch of 5: the rows have to stay rows from the first line to the last.",
    section=RECURRENCE,
)
def one_vector_only(x, h, w_ih, w_hh, b_ih, b_hh):
    """The weights are to the left, as in the papers, where vectors are columns. For a batch the shapes do not fit."""
    return np.tanh(w_ih @ x + b_ih + w_hh @ h + b_hh)


@MISTAKES.add(
    "right for a batch, wrong with more dimensions in front",
    hint="Follow an array of three dimensions through every line. Which of its axes changes places, and which should?",
    more="Does one of your lines reverse all axes, or count them from the front? Which axis was meant?",
    section=RECURRENCE,
)
def turned_round(x, h, w_ih, w_hh, b_ih, b_hh):
    """With two dimensions in front the shapes no longer fit: an axis of the batch was used as rows or as columns."""
    return np.tanh((w_ih @ x.T).T + b_ih + (w_hh @ h.T).T + b_hh)


@MISTAKES.add(
    "tanh overflows",
    hint="On paper your tanh is right. What is the exponential of 900 on a computer?",
    more="Infinity over infinity is nan. Is there a tanh that already handles such numbers?",
    section=RECURRENCE,
)
def overflow(x, h, w_ih, w_hh, b_ih, b_hh):
    """The tanh is made of exponentials, which become infinite for large sums, and infinity over infinity is nan."""
    s = _sum(x, h, w_ih, w_hh, b_ih, b_hh)
    return (np.exp(s) - np.exp(-s)) / (np.exp(s) + np.exp(-s))


@MISTAKES.add(
    "tanh overflows for large positive sums",
    hint="On paper your tanh is right. What is the exponential of 1800 on a computer?",
    more="Infinity over infinity is nan. Is there a tanh that already handles such numbers?",
    section=RECURRENCE,
)
def overflow_upwards(x, h, w_ih, w_hh, b_ih, b_hh):
    """Where the sum is large, the exponential in your tanh becomes infinite, and infinity over infinity is nan."""
    e = np.exp(2 * _sum(x, h, w_ih, w_hh, b_ih, b_hh))
    return (e - 1) / (e + 1)


@MISTAKES.add(
    "changes the state it was given",
    hint="Some operators make a new array; others write into the one they are given. Which of yours write?",
    more="Print the old state before and after the call. Which line changes it?",
    section=RECURRENCE,
)
def overwrites_state(x, h, w_ih, w_hh, b_ih, b_hh):
    """The new state is right, but it was written over the old one, which your caller may still need."""
    h[...] = np.tanh(_sum(x, h, w_ih, w_hh, b_ih, b_hh))
    return h


@MISTAKES.add(
    "no biases, and the state's weights by columns",
    hint="Which arguments are missing, and what does your product do with a row of `w_hh`?",
    more="In the first case the first sum is 0.8, and the biases are 0.4 of it. Fix that first, then look at `w_hh`.",
    section=RECURRENCE,
)
def no_biases_transposed(x, h, w_ih, w_hh, b_ih, b_hh):
    """Both biases are missing, and the state is multiplied by the columns of `w_hh`, not the rows."""
    return np.tanh(_sum(x, h, w_ih, w_hh.T, 0, 0))


@MISTAKES.add(
    "neither biases nor tanh",
    hint="Your result is linear. What is missing inside the bracket, and what in front of it?",
    more="In the first case yours begins with 0.4. Which two numbers bring it to 0.8, and what happens to 0.8 then?",
    section=RECURRENCE,
)
def no_biases_no_tanh(x, h, w_ih, w_hh, b_ih, b_hh):
    """Input and state are weighted and added, but the biases are missing, and so is the tanh."""
    return _sum(x, h, w_ih, w_hh, 0, 0)


@MISTAKES.add(
    "the state's weights by columns, and no tanh",
    hint="What does your product do with a row of `w_hh`, and what keeps a state below 1?",
    more="Fix the tanh first. Then, in the first case, look at the state's part without its bias: it is (0.5, -0.1). "
    "What is it in yours?",
    section=RECURRENCE,
)
def no_tanh_transposed(x, h, w_ih, w_hh, b_ih, b_hh):
    """The sum is not squashed, and the state is multiplied by the columns of `w_hh`, not the rows."""
    return _sum(x, h, w_ih, w_hh.T, b_ih, b_hh)


@MISTAKES.add(
    "the input and its bias are not used",
    hint="The network should read something at each step. Which three of the six arguments does your sum not contain?",
    more="Call your function twice, with two different inputs. Do the results differ? Should they?",
    section=RECURRENCE,
)
def only_state(x, h, w_ih, w_hh, b_ih, b_hh):
    """The new state depends on the old one alone. The input, with its weights and its bias, is missing from the sum."""
    return np.tanh(h @ w_hh.T + b_hh)


@MISTAKES.add(
    "right for a batch, wrong for one vector",
    hint="One vector has one axis. What do a transpose and a new axis make of it?",
    more="Write down the shape after every line, first for a batch of 5, then for one vector. Where do they diverge?",
    section=RECURRENCE,
)
def columns_of_a_batch(x, h, w_ih, w_hh, b_ih, b_hh):
    """The vectors of a batch are made columns and turned back at the end. With a single vector this goes wrong."""
    return np.tanh(w_ih @ x.T + b_ih[:, None] + w_hh @ h.T + b_hh[:, None]).T


@MISTAKES.add(
    "state and input are joined in the wrong order",
    hint="You join two vectors, and you join two weights. Does the same part come first in both?",
    more="Write down which columns of the joined weight multiply the numbers of `h`. The total width is right even in "
    "the wrong order.",
    section=RECURRENCE,
)
def joined_wrongly_input_first(x, h, w_ih, w_hh, b_ih, b_hh):
    """The vectors are joined with the input first, and the weights with the state's first, so they do not match."""
    return np.tanh(np.concatenate([x, h], -1) @ np.concatenate([w_hh, w_ih], 1).T + b_ih + b_hh)


@MISTAKES.add(
    "only the input is left, without any bias",
    hint="How many of the six arguments does your function use?",
    more="Call your function twice, with two different states. Do the results differ? Should they?",
    section=RECURRENCE,
)
def input_alone(x, h, w_ih, w_hh, b_ih, b_hh):
    """The input goes through its weights and the tanh. The old state and both biases are missing from the sum."""
    return np.tanh(x @ w_ih.T)


@MISTAKES.add(
    "the old state is returned",
    hint="Which state comes in, and which one should come out?",
    more="In the first case the old state is (0.5, -0.5). What is your result, and on which line should it be made?",
    section=RECURRENCE,
)
def old_state(x, h, w_ih, w_hh, b_ih, b_hh):
    """What comes back is the state that came in. The task asks for the new one, the squashed sum."""
    return h.copy()


@MISTAKES.add(
    "the old state enters as it is",
    hint="Of the six arguments, which two does your function not use?",
    more="In the first case the state's part is (0.6, -0.6), and the old state (0.5, -0.5). Which of them is in your "
    "sum?",
    section=RECURRENCE,
)
def bare_state(x, h, w_ih, w_hh, b_ih, b_hh):
    """The old state is added to the sum without its weights and without its bias.

    It should have both, as the input does.
    """
    return np.tanh(x @ w_ih.T + b_ih + h)


@MISTAKES.add(
    "the state's bias comes after the tanh",
    hint="Look where the bracket of your tanh closes.",
    more="In the first case the first sum inside the tanh is 0.8. Which of its four terms are inside yours?",
    section=RECURRENCE,
)
def state_bias_outside(x, h, w_ih, w_hh, b_ih, b_hh):
    """The state's bias is added to the squashed sum. It belongs inside, and the tanh comes last."""
    return np.tanh(_sum(x, h, w_ih, w_hh, b_ih, 0)) + b_hh


@MISTAKES.add(
    "no bias for the state, and its weights by columns",
    hint="Which argument is missing, and what does your product do with a row of `w_hh`?",
    more="In the first case the state's part is (0.6, -0.6), and (0.1, -0.5) of it is the bias. What is it in yours?",
    section=RECURRENCE,
)
def no_state_bias_transposed(x, h, w_ih, w_hh, b_ih, b_hh):
    """The state's bias is missing, and the state is multiplied by the columns of `w_hh`, not the rows."""
    return np.tanh(_sum(x, h, w_ih, w_hh.T, b_ih, 0))


@MISTAKES.add(
    "neither the state's bias nor tanh",
    hint="Which argument does your sum not contain, and what keeps a state between -1 and 1?",
    more="In the first case yours begins with 0.7. Which number brings it to 0.8, and what happens to 0.8 then?",
    section=RECURRENCE,
)
def no_state_bias_no_tanh(x, h, w_ih, w_hh, b_ih, b_hh):
    """The sum lacks the state's bias, and it is not squashed."""
    return _sum(x, h, w_ih, w_hh, b_ih, 0)


@MISTAKES.add(
    "the state's weights are to the left",
    hint="In a batch each *row* is one state. What does a weight to the left of the batch multiply?",
    more="Write down the shapes for a batch of 5: the rows have to stay rows from the first line to the last.",
    section=RECURRENCE,
)
def state_weights_left(x, h, w_ih, w_hh, b_ih, b_hh):
    """`w_hh` is to the left, as in the papers, where vectors are columns. That is right for one vector alone."""
    return np.tanh(x @ w_ih.T + b_ih + w_hh @ h + b_hh)


@MISTAKES.add(
    "a batch is joined along the wrong axis",
    hint="Along which axis do you join input and state? A single vector has only one.",
    more="Write down the shape of the joined array for a batch of 5, an input of width 3 and a state of width 4. "
    "Which of its sizes should be 7?",
    section=RECURRENCE,
)
def joined_along_the_batch(x, h, w_ih, w_hh, b_ih, b_hh):
    """Input and state are joined along the first axis, which is right for one vector. For a batch use the last axis."""
    return np.tanh(np.concatenate([x, h]) @ np.concatenate([w_ih, w_hh], 1).T + b_ih + b_hh)


@MISTAKES.add(
    "each number of the state sees only itself",
    hint="How many numbers of the old state contribute to one number of the new state?",
    more="On paper, change one number of the old state. Which numbers of the new state should change?",
    section=RECURRENCE,
)
def diagonal_only(x, h, w_ih, w_hh, b_ih, b_hh):
    """You use only the diagonal of the state's matrix. Every old number should contribute to every new one."""
    return np.tanh(x @ w_ih.T + b_ih + h * np.diagonal(w_hh) + b_hh)


@MISTAKES.add(
    "the state's bias is multiplied by the state's matrix",
    hint="What is multiplied by the state's matrix, and what is added afterwards?",
    more="Write the state's part of the formula with brackets. Is the bias inside them?",
    section=RECURRENCE,
)
def bias_before_matrix(x, h, w_ih, w_hh, b_ih, b_hh):
    """The bias is added to the state before the matrix is applied. It should be added to the product."""
    return np.tanh(x @ w_ih.T + b_ih + (h + b_hh) @ w_hh.T)


@MISTAKES.add(
    "tanh of half the sum",
    hint="What does your function turn the number 1 into, and what does tanh turn it into?",
    more="The logistic function and tanh are the same curve apart from a shift and a stretch. Which factor belongs "
    "inside?",
    section=RECURRENCE,
)
def half_tanh(x, h, w_ih, w_hh, b_ih, b_hh):
    """Your curve has the shape of tanh but is half as steep."""
    return np.tanh(_sum(x, h, w_ih, w_hh, b_ih, b_hh) / 2)


@MISTAKES.add(
    "the input's bias is added once more",
    hint="Count how often each bias occurs in your sum, in all lines together.",
    more="In the first case the first sum contains the biases 0.3 and 0.1, each once. Does the line that makes the "
    "input's part contain one of them already?",
    section=RECURRENCE,
)
def third_bias(x, h, w_ih, w_hh, b_ih, b_hh):
    """Both biases are there, but `b_ih` is added a second time. Each belongs in the sum once."""
    return np.tanh(_sum(x, h, w_ih, w_hh, 2 * b_ih, b_hh))


@MISTAKES.add(
    "new numbers of the state replace the old ones too early",
    hint="Every number of the new state is made from all numbers of the old one. Are these still there when you need "
    "them?",
    more="Follow your loop through the first case. When it makes the second number, what does it read as the first "
    "number of the old state, 0.5 or something else?",
    section=RECURRENCE,
)
def one_number_after_another(x, h, w_ih, w_hh, b_ih, b_hh):
    """The numbers of the state are overwritten one by one, so the later ones are made from new numbers, not old."""
    from_input, state = x @ w_ih.T + b_ih, h.copy()
    for i in range(h.shape[-1]):
        state[..., i] = np.tanh(from_input[..., i] + state @ w_hh[i] + b_hh[i])
    return state


EXERCISE = Exercise(
    name="rnn_cell",
    reference=attnlib.rnn_cell,
    outputs={"state": ("D_h",)},
    rubric={NUMBERS: 4, BATCHES: 2, LARGE: 1, UNCHANGED: 1},
    section=RECURRENCE,
    advice="Print the input's part, the state's part and their sum for the first case. The first number of each "
    "should be 0.2, 0.6 and 0.8. Which of them is the first to be wrong?",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    solved_by=("torch.rnn_tanh_cell", "torch.rnn_tanh", "torch.nn.RNNCell", "torch.nn.RNN"),
)
