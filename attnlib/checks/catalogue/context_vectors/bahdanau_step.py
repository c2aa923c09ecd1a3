"""bahdanau_step(y, state, memory, params): attend with the last state, then let the cell read the context."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.context_vectors.decoder_mistakes import (
    IN_CELL,
    IN_SCORES,
    IN_WEIGHTS,
    mask_mistakes,
    order_mistakes,
    pairs_of_mistakes,
    shared_mistakes,
)
from attnlib.checks.catalogue.context_vectors.decoder_steps import (
    additive,
    cell,
    cell_shapes,
    cell_without_bias,
    drawn,
    join,
    masks,
    mix,
    rows,
    three_words,
    time_first,
    weigh,
    without_tanh,
)
from attnlib.checks.catalogue.context_vectors.sections import LOOK_BACK, OTHER_ORDER, RECURRENCE, THREE_WORDS
from attnlib.checks.catalogue.duplicate_rows import with_duplicate_rows
from attnlib.checks.exercise import Exercise, Mistakes

NUMBERS, RANKS, LARGE = "the numbers", "batches", "large scores"
UNCHANGED, MASK = "inputs unchanged", "the mask"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: the three words of the chapter, plain ones, those with equal widths, ranks, size, masks."""
    yield Case("the three words of the chapter (a batch of one, all biases 0)", NUMBERS, three_words())
    yield Case("3 sentences of 5 tokens", NUMBERS, _draw(rng, (3,), 5, 2, 4, 6, 7))
    yield Case("all widths equal, so that every matrix fits everywhere", NUMBERS, _draw(rng, (3,), 5, 4, 4, 4, 4))
    yield Case("one sentence of 4 tokens", NUMBERS, _draw(rng, (1,), 4, 2, 3, 5, 6))
    yield Case("vectors in float32", NUMBERS, _draw(rng, (4,), 3, 2, 7, 5, 6, np.float32))
    repeated = with_duplicate_rows(_draw(rng, (3,), 5, 2, 4, 6, 7), "memory")
    yield Case("a memory with a repeated row", NUMBERS, repeated)
    same = _draw(rng, (3,), 5, 4, 4, 4, 4)
    same["params"] = dict(reversed(same["params"].items()))
    yield Case("params in another order, all widths equal", NUMBERS, same)
    yield Case("one sentence of one token", RANKS, _draw(rng, (1,), 1, 3, 4, 2, 5))
    yield Case("no batch: y and state are vectors, memory is a matrix", RANKS, _draw(rng, (), 5, 2, 4, 6, 3))
    yield Case("leading dimensions (2, 7)", RANKS, _draw(rng, (2, 7), 5, 3, 4, 6, 8))
    yield Case("a memory that is not contiguous", RANKS, time_first(_draw(rng, (3,), 5, 2, 6, 4, 7)))
    yield Case("scores of several thousand, one sentence positive, one negative", LARGE, _large(rng))
    yield Case("inputs that must stay as they are", UNCHANGED, _draw(rng, (2,), 4, 3, 5, 6, 7), unchanged=True)
    for name, mask in masks():
        yield Case(name, MASK, _draw(rng, mask.shape[:-1], mask.shape[-1], 2, 6, 7, 8), {"mask": mask})


def _draw(rng, leading, s: int, d_y: int, d_s: int, d_m: int, d_a: int, dtype: Any = np.float64) -> dict[str, Any]:
    given = {"y": (*leading, d_y), "state": (*leading, d_s), "memory": (*leading, s, d_m)}
    params = {"w_query": (d_s, d_a), "w_key": (d_m, d_a), "v": (d_a,), **cell_shapes(d_y + d_m, d_s)}
    return {**drawn(rng, given, dtype), "params": drawn(rng, params, dtype)}


def _large(rng) -> dict[str, Any]:
    """Return inputs whose first hidden number is near 1 for one sentence and near -1 for the other, times 3000."""
    given = _draw(rng, (2,), 4, 3, 5, 6, 7)
    given["state"] += np.array([[0.5], [-0.5]]) - given["state"].mean(axis=-1, keepdims=True)
    given["params"]["w_query"][:, 0] = 1.0
    given["params"]["w_key"][:, 0] *= 0.05
    given["params"]["v"][0] = 3000.0
    return given


def with_last_state(y, state, memory, p, cell, enter):
    """Return the query: the state that came in."""
    return state


def after_the_cell(y, state, memory, p, cell, enter):
    """Return the state of a cell that runs before the memory is asked, with no context."""
    return cell(enter(y, np.zeros_like(memory[..., 0, :])), state, p)


def context_then_input(y, context):
    """Return what the cell reads, the wrong way round."""
    return join(context, y)


def step(
    y, state, memory, p, mask, *, ask=with_last_state, additive=additive, weigh=weigh, mix=mix, enter=join, cell=cell
):
    """Return state, context and weights of a step made of these pieces."""
    weights = weigh(additive(ask(y, state, memory, p, cell, enter), memory, p), mask)
    context = mix(weights, memory)
    return cell(enter(y, context), state, p), context, weights


# Scores -------------------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "asks with the new state",
    hint="The context is an input of the cell. So which state exists at the moment when the memory is asked?",
    more="Put the lines in the order of time: score, weights, context, cell. Which state is there in the first of "
    "them?",
    section=LOOK_BACK,
)
def asks_with_new_state(y, state, memory, params, *, mask=None):
    """The cell runs before the memory is asked, and its new state asks.

    The old state should ask, before the cell runs.
    """
    return step(y, state, memory, params, mask, ask=after_the_cell)


@MISTAKES.add(
    "the cell runs twice",
    hint="How many times does the state change in one step of the decoder?",
    more="Count the calls of the cell between the state that comes in and the state that goes out. One is enough, and "
    "it comes last.",
    section=OTHER_ORDER,
)
def cell_runs_twice(y, state, memory, params, *, mask=None):
    """The cell runs once before the memory is asked and once after it. One step moves the state once, after asking."""
    new = cell(join(y, np.zeros_like(memory[..., 0, :])), state, params)
    return step(y, new, memory, params, mask)


@MISTAKES.add(
    "asks again with the new state",
    hint="Which context did the cell read, and is it the one that you return?",
    more="The new state is right. The weights and the context that belong to it were made before it, by the old state.",
    section=LOOK_BACK,
)
def asks_again(y, state, memory, params, *, mask=None):
    """The state is right, but the context and the weights that come back were computed with the new state."""
    new = step(y, state, memory, params, mask)[0]
    weights = weigh(additive(new, memory, params), mask)
    return new, mix(weights, memory), weights


@MISTAKES.add(
    "asks with the input",
    hint="Who asks the memory: the last output word, or the state of the decoder?",
    more="Look at the shape of the query's matrix. Which vector's width equals its number of rows?",
    section=LOOK_BACK,
)
def asks_with_input(y, state, memory, params, *, mask=None):
    """The input y is used as the query. The query should be the decoder's last state."""
    return step(y, state, memory, params, mask, additive=lambda q, m, p: additive(y, m, p))


@MISTAKES.add(
    "a dot product as score",
    hint="Which score does this step use: the product of two vectors, or a small network?",
    more="The vector v does not occur in your score. Where does it appear in the formula?",
    section=OTHER_ORDER,
)
def dot_score(y, state, memory, params, *, mask=None):
    """The score is the dot product of the state and a row of the memory. It should be the additive score."""
    return step(y, state, memory, params, mask, additive=lambda q, m, p: (rows(q) * m).sum(axis=-1))


@MISTAKES.add(
    "the sign is reversed",
    hint="Which row should get the larger weight: the one with the larger score, or the one with the smaller?",
    more="Of the three words, *Nov* has the largest score. Does it also have the largest of your weights?",
    section=THREE_WORDS,
)
def reversed_sign(y, state, memory, params, *, mask=None):
    """The row with the lowest score gets the largest weight: there is one minus sign too many."""
    return step(y, state, memory, params, mask, additive=lambda q, m, p: -additive(q, m, p))


# Context ------------------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "the projected keys are averaged",
    hint="The projection is for comparing. What should be mixed?",
    more="The context has the width of the memory's rows. What width do the projected rows have?",
    section=LOOK_BACK,
)
def averages_projected_keys(y, state, memory, params, *, mask=None):
    """The weights are right, but they average the projected rows of the memory.

    The rows themselves should be averaged.
    """
    return step(y, state, memory, params, mask, mix=lambda a, m: mix(a, m @ params["w_key"]))


# The cell -----------------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "[c; y] instead of [y; c]",
    hint="In which order does the cell read its input and the context?",
    more="The first D_y columns of the input matrix are for the input y. What do they multiply in your line?",
    section=LOOK_BACK,
)
def context_first(y, state, memory, params, *, mask=None):
    """The context is put before the input. The cell's matrix has the columns of y first, then those of c."""
    return step(y, state, memory, params, mask, enter=context_then_input)


@MISTAKES.add(
    "the context does not reach the cell",
    hint="What does the new state know about the memory?",
    more="Change one row of the memory and leave everything else as it is. Should the new state change?",
    section=LOOK_BACK,
)
def no_context_in_cell(y, state, memory, params, *, mask=None):
    """The context is right, but the cell reads only the input y. It should read the context as well."""
    return step(y, state, memory, params, mask, enter=lambda y, c: join(y, 0 * c))


@MISTAKES.add(
    "the input does not reach the cell",
    hint="What does the new state know about the last word that was written?",
    more="Change the input y and leave everything else as it is. Should the new state change?",
    section=LOOK_BACK,
)
def no_input_in_cell(y, state, memory, params, *, mask=None):
    """The cell reads the context alone. It should read the input y as well, and first."""
    return step(y, state, memory, params, mask, enter=lambda y, c: join(0 * y, c))


@MISTAKES.add(
    "the cell reads the old state twice",
    hint="What does the cell read next to y?",
    more="The old state has its own matrix in the cell. Which vector should the last D_m columns of the other one "
    "multiply?",
    section=LOOK_BACK,
)
def state_for_context(y, state, memory, params, *, mask=None):
    """The cell reads [y; s] where it should read [y; c]: the old state is in the context's place."""
    return step(y, state, memory, params, mask, enter=lambda y, c: join(y, state))


@MISTAKES.add(
    "the cell reads the last row of the memory",
    hint="A network without attention has one vector for the whole sentence. What does yours have, besides y?",
    more="Change the first row of the memory and leave everything else as it is. Should the new state change?",
    section=LOOK_BACK,
)
def last_row_in_cell(y, state, memory, params, *, mask=None):
    """The context is right, but the cell reads the memory's last row, as without attention.

    It should read the context.
    """
    return step(y, state, memory, params, mask, enter=lambda y, c: join(y, memory[..., -1, :]))


@MISTAKES.add(
    "the cell reads the mean of the memory",
    hint="Which vector is read together with y: one for the whole sentence, or one made for this very step?",
    more="Change the state so that the weights change. Should the rest of the cell's input change too?",
    section=LOOK_BACK,
)
def mean_in_cell(y, state, memory, params, *, mask=None):
    """The context is right, but the cell reads the plain mean of the memory. It should read the context."""
    return step(y, state, memory, params, mask, enter=lambda y, c: join(y, memory.mean(axis=-2)))


@MISTAKES.add(
    "the query is a vector, where a table is expected",
    hint="The score takes a table of queries. How many queries are there, and what shape does yours have?",
    more="Without a new axis the sentences of a batch are taken for the queries. Print the shape of your scores for 3 "
    "sentences of 5 tokens.",
    section=LOOK_BACK,
)
def no_query_axis(y, state, memory, params, *, mask=None):
    """The state goes into the score as it is. A table of one row is needed, and later its row is taken out again."""

    def score(q, m, p):
        return attnlib.additive(q, m, p["w_query"], p["w_key"], p["v"])

    return step(y, state, memory, params, mask, additive=score, mix=lambda a, m: a @ m)


@MISTAKES.add(
    "all states ask the memory of the first sentence",
    hint="In a batch each state has a memory of its own. Where did you put the new axis of the state?",
    more="Print the shape of your queries and of your scores for 3 sentences of 5 tokens. An axis in front makes the "
    "states of all sentences the queries of one sentence.",
    section=LOOK_BACK,
)
def query_axis_in_front(y, state, memory, params, *, mask=None):
    """With one sentence the step is right. With more, all states are compared with the memory of the first one."""

    def score(q, m, p):
        return attnlib.additive(q[None], m, p["w_query"], p["w_key"], p["v"])[0]

    return step(y, state, memory, params, mask, additive=score)


@MISTAKES.add(
    "the cell runs twice on the same input",
    hint="How many times does the state change in one step of the decoder?",
    more="Count the calls of the cell between the state that comes in and the state that goes out. One is enough, and "
    "it comes last.",
    section=RECURRENCE,
)
def cell_repeated(y, state, memory, params, *, mask=None):
    """The new state goes through the cell once more with the same context. One step moves the state once."""
    return step(y, state, memory, params, mask, cell=lambda x, s, p: cell(x, cell(x, s, p), p))


@MISTAKES.add(
    "the context is appended to the state",
    hint="How wide is the state that comes in, and how wide is the one that you return?",
    more="The context goes into the cell, and comes back as a result of its own. Where else do you put it?",
    section=LOOK_BACK,
)
def context_appended(y, state, memory, params, *, mask=None):
    """The state that comes back has the context appended. It should have the width of the state that came in."""
    new, context, weights = step(y, state, memory, params, mask)
    return join(new, context), context, weights


# Two at once --------------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "asks with the new state, and [c; y]",
    hint="Which state exists when the memory is asked, and in which order does the cell read?",
    more="Put the lines in the order of time, with the cell last. Then look at the first D_y columns of its matrix.",
    section=LOOK_BACK,
)
def asks_with_new_state_and_context_first(y, state, memory, params, *, mask=None):
    """The new state asks the memory, where the old one should. And the cell reads the context before the input."""
    return step(y, state, memory, params, mask, ask=after_the_cell, enter=context_then_input)


# What both decoders have in common ----------------------------------------------------------------------------------

MISTAKES.extend(shared_mistakes(step, LOOK_BACK))
MISTAKES.extend(order_mistakes(step, LOOK_BACK, ("state", "context", "weights")))
MISTAKES.extend(mask_mistakes(step, LOOK_BACK))
FREQUENT_PAIRS = (
    ("context-first", {"enter": context_then_input}, (*IN_SCORES, *IN_WEIGHTS, *IN_CELL)),
    ("asks-with-new-state", {"ask": after_the_cell}, (*IN_SCORES[1:], *IN_WEIGHTS, *IN_CELL)),
    ("no-tanh", {"additive": without_tanh}, (*IN_WEIGHTS, *IN_CELL)),
    ("no-bias", {"cell": cell_without_bias}, ("tanh-after-v", "scaled-by-hidden", *IN_WEIGHTS)),
)
for first, pieces, seconds in FREQUENT_PAIRS:
    MISTAKES.extend(pairs_of_mistakes(step, MISTAKES.by_id(first), pieces, seconds))


@MISTAKES.add(
    "the returned weights are those of the new state",
    hint="The state and the context are right. Which weights was that context made with?",
    more="Average the memory with the weights that you return, and compare the result with your context. Which state "
    "did you compute them from?",
    section=LOOK_BACK,
)
def weights_of_new_state(y, state, memory, params, *, mask=None):
    """You compute the weights again with the new state. The task asks for those that made the context."""
    new, context, _ = step(y, state, memory, params, mask)
    return new, context, weigh(additive(new, memory, params), mask)


@MISTAKES.add(
    "the context takes the place of the old state",
    hint="What does the cell combine with its input: the context, or the decoder's previous state?",
    more="The context is part of the cell's input, together with y. Which vector should be multiplied by w_hh?",
    section=LOOK_BACK,
)
def context_as_state(y, state, memory, params, *, mask=None):
    """You pass the context to the cell as its previous state. It should get `state`; the context is read with y."""
    _, context, weights = step(y, state, memory, params, mask)
    return cell(join(y, context), context, params), context, weights


EXERCISE = Exercise(
    name="bahdanau_step",
    reference=attnlib.bahdanau_step,
    outputs={"state": ("B", "D_s"), "context": ("B", "D_m"), "weights": ("B", "S")},
    rubric={NUMBERS: 4, RANKS: 2, LARGE: 1, UNCHANGED: 1},
    section=LOOK_BACK,
    advice="Work through the three words of the chapter: print your scores, then the weights, the context and what "
    "goes into the cell's tanh, each with its shape. Which is the first to differ from the chapter?",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    ungraded_options=("mask",),
)
