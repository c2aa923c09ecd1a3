"""luong_step(y, state, memory, params, score="dot"): run the cell, attend with the new state, merge."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.context_vectors.decoder_mistakes import (
    IN_CELL,
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
)
from attnlib.checks.catalogue.context_vectors.sections import OTHER_ORDER, RECURRENCE
from attnlib.checks.catalogue.duplicate_rows import with_duplicate_rows
from attnlib.checks.exercise import Exercise, Mistakes

DOT, GENERAL, CONCAT = 'the numbers, with score="dot"', 'score="general"', 'score="concat"'
RANKS, LARGE, UNCHANGED, MASK = "batches", "large scores", "inputs unchanged", "the mask"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: the three words of the chapter, each score, with widths that differ and equal; ranks, size."""
    hand = three_words(w_ih=np.array([[0.0], [1.0]]), w_c=np.vstack([np.eye(2), np.eye(2)]), weight=3 * np.eye(2))
    dot, general, concat = ({"score": name} for name in ("dot", "general", "concat"))
    yield Case('the three words of the chapter, score="dot" (a batch of one, all biases 0)', DOT, hand, dot)
    yield Case('3 sentences of 5 tokens, score="dot"', DOT, _dot(rng, (3,), 5, 2, 4, 6), dot)
    yield Case('all widths equal, score="dot"', DOT, _dot(rng, (3,), 5, 4, 4, 4), dot)
    yield Case('vectors in float32, score="dot"', DOT, _dot(rng, (4,), 5, 2, 3, 6, np.float32), dot)
    repeated = with_duplicate_rows(_dot(rng, (3,), 5, 2, 4, 6), "memory")
    yield Case('a memory with a repeated row, score="dot"', DOT, repeated, dot)
    yield Case('3 sentences of 5 tokens, score="general"', GENERAL, _general(rng, (3,), 5, 2, 4, 6, 7), general)
    yield Case('all widths equal, score="general"', GENERAL, _general(rng, (3,), 5, 4, 4, 4, 4), general)
    yield Case('3 sentences of 5 tokens, score="concat"', CONCAT, _concat(rng, (3,), 5, 2, 4, 6, 7, 8), concat)
    yield Case('one sentence of 5 tokens, score="concat"', CONCAT, _concat(rng, (1,), 5, 2, 4, 6, 7, 8), concat)
    yield Case('all widths equal, score="concat"', CONCAT, _concat(rng, (3,), 5, 4, 4, 4, 4, 4), concat)
    yield Case("one sentence of one token, and no score named", RANKS, _dot(rng, (1,), 1, 3, 4, 5))
    yield Case('no batch: vectors y and state, a matrix as memory, score="dot"', RANKS, _dot(rng, (), 5, 2, 4, 3), dot)
    yield Case('leading dimensions (2, 7), score="dot"', RANKS, _dot(rng, (2, 7), 5, 3, 4, 6), dot)
    yield Case('leading dimensions (2, 7), score="general"', RANKS, _general(rng, (2, 7), 5, 3, 4, 6, 8), general)
    yield Case('leading dimensions (2, 7), score="concat"', RANKS, _concat(rng, (2, 7), 5, 3, 4, 6, 8, 9), concat)
    yield Case('a memory that is not contiguous, score="dot"', RANKS, time_first(_dot(rng, (3,), 5, 2, 4, 7)), dot)
    yield Case("scores of several thousand, one sentence positive, one negative", LARGE, _large(rng), dot)
    yield Case("inputs that must stay as they are", UNCHANGED, _dot(rng, (2,), 4, 3, 5, 6), dot, unchanged=True)
    for name, mask in masks():
        yield Case(name, MASK, _dot(rng, mask.shape[:-1], mask.shape[-1], 2, 6, 7), {**dot, "mask": mask})


def _draw(rng, leading, s: int, d_y: int, d_s: int, d_m: int, d_h: int, own, dtype: Any = np.float64) -> dict[str, Any]:
    given = {"y": (*leading, d_y), "state": (*leading, d_s), "memory": (*leading, s, d_m)}
    params = {**cell_shapes(d_y, d_s), "w_c": (d_m + d_s, d_h), **own}
    return {**drawn(rng, given, dtype), "params": drawn(rng, params, dtype)}


def _dot(rng, leading, s: int, d_y: int, d: int, d_h: int, dtype: Any = np.float64) -> dict[str, Any]:
    return _draw(rng, leading, s, d_y, d, d, d_h, {}, dtype)


def _general(rng, leading, s: int, d_y: int, d_s: int, d_m: int, d_h: int) -> dict[str, Any]:
    return _draw(rng, leading, s, d_y, d_s, d_m, d_h, {"weight": (d_s, d_m)})


def _concat(rng, leading, s: int, d_y: int, d_s: int, d_m: int, d_h: int, d_a: int) -> dict[str, Any]:
    own = {"w_query": (d_s, d_a), "w_key": (d_m, d_a), "v": (d_a,)}
    return _draw(rng, leading, s, d_y, d_s, d_m, d_h, own)


def _large(rng) -> dict[str, Any]:
    """Return inputs whose new state is near 1 for one sentence and near -1 for the other, with a large memory."""
    given = _dot(rng, (2,), 4, 3, 5, 6)
    given["y"][:, 0] = [2.0, -2.0]
    given["params"]["w_ih"][:, 0] = 1.0
    given["memory"] += 1000.0
    given["params"]["w_c"][:5] *= 1e-3
    return given


# A step in pieces, for mistakes to replace --------------------------------------------------------------------------


def dot(query, memory, p):
    """Return the dot products."""
    return (rows(query) * memory).sum(axis=-1)


def general(query, memory, p):
    """Return the dot products with a matrix between."""
    return dot(query @ p["weight"], memory, p)


def merge(context, state, p):
    """Return h~."""
    return np.tanh(join(context, state) @ p["w_c"])


def pick(query, memory, p, score, *, dot=dot, general=general, additive=additive):
    """Return the scores of the kind that is named."""
    return {"dot": dot, "general": general, "concat": additive}[score](query, memory, p)


def scaled_pick(query, memory, p, score, **scores):
    """Return the scores, divided by the root of the query's width."""
    return pick(query, memory, p, score, **scores) / query.shape[-1] ** 0.5


def with_new_state(old, new):
    """Return the query: the state that the cell has made."""
    return new


def with_old_state(old, new):
    """Return the state that came in."""
    return old


def state_then_context(context, state, p):
    """Return h~, merged the wrong way round."""
    return merge(state, context, p)


def merged_without_tanh(context, state, p):
    """Return h~ before its tanh."""
    return join(context, state) @ p["w_c"]


def context_alone(context, state, p):
    """Return the context in the place of h~."""
    return context


def step(
    y,
    state,
    memory,
    p,
    mask,
    *,
    score="dot",
    cell=cell,
    ask=with_new_state,
    pick=pick,
    weigh=weigh,
    mix=mix,
    merge=merge,
    **scores,
):
    """Return the new state, h~ and the weights of a step made of these pieces."""
    new = cell(y, state, p)
    weights = weigh(pick(ask(state, new), memory, p, score, **scores), mask)
    return new, merge(mix(weights, memory), new, p), weights


# Which state --------------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "asks with the old state",
    hint="Which state is the query here: the one from before the cell, or the one from after it?",
    more="Put your lines in the order of time: cell, score, weights, context, merge. Which state has just been made "
    "when the memory is asked?",
    section=OTHER_ORDER,
)
def asks_with_old_state(y, state, memory, params, *, score="dot", mask=None):
    """The old state asks the memory, as in Bahdanau's step. Here the cell runs first, and the new state asks."""
    return step(y, state, memory, params, mask, score=score, ask=with_old_state)


@MISTAKES.add(
    "the new state is made and never used",
    hint="After the cell there are two states. Which of them is used in the lines that follow?",
    more="Two lines need a state after the cell: the score and the merge. Read the name in each.",
    section=OTHER_ORDER,
)
def goes_on_with_old_state(y, state, memory, params, *, score="dot", mask=None):
    """The cell makes a new state, but the old one asks the memory and is merged with the context."""
    return step(
        y, state, memory, params, mask, score=score, ask=with_old_state, merge=lambda c, s, p: merge(c, state, p)
    )


@MISTAKES.add(
    "the old state is merged with the context",
    hint="After the cell there are two states. Which of them belongs next to the context?",
    more="The weights are right, so the new state asked. Read the name of the state in the line that merges.",
    section=OTHER_ORDER,
)
def merges_old_state(y, state, memory, params, *, score="dot", mask=None):
    """The new state asks the memory, but the old one is merged with what was found. It should be the new one."""
    return step(y, state, memory, params, mask, score=score, merge=lambda c, s, p: merge(c, state, p))


@MISTAKES.add(
    "the cell does not run",
    hint="What does the new state know about the last word that was written?",
    more="Change the input y and leave everything else as it is. Should the results change?",
    section=OTHER_ORDER,
)
def no_cell(y, state, memory, params, *, score="dot", mask=None):
    """The state that came in is used throughout, and the input y is never read. The cell should run first."""
    return step(y, state, memory, params, mask, score=score, cell=lambda x, s, p: s)


@MISTAKES.add(
    "the cell runs twice",
    hint="How many times does the state change in one step of the decoder?",
    more="Count the calls of the cell between the state that comes in and the state that goes out.",
    section=OTHER_ORDER,
)
def cell_runs_twice(y, state, memory, params, *, score="dot", mask=None):
    """The new state goes through the cell once more. One step moves the state once, before the memory is asked."""
    return step(y, cell(y, state, params), memory, params, mask, score=score)


@MISTAKES.add(
    "the cell runs once more at the end",
    hint="How many times does the state change in one step of the decoder?",
    more="h~ is right, so the state that asked is the right one too. What happens to it between the merge and your "
    "return line?",
    section=OTHER_ORDER,
)
def cell_runs_at_the_end(y, state, memory, params, *, score="dot", mask=None):
    """The state that comes back is one step too far: the cell runs a second time after the memory was asked."""
    new, merged, weights = step(y, state, memory, params, mask, score=score)
    return cell(y, new, params), merged, weights


@MISTAKES.add(
    "input and state change places in the cell",
    hint="The cell takes the input and the state. In which order do you give them?",
    more="Print the widths of y and of the state, and the shapes of the two matrices of the cell. Which matrix has as "
    "many columns as y has numbers?",
    section=RECURRENCE,
)
def cell_arguments_swapped(y, state, memory, params, *, score="dot", mask=None):
    """The state is multiplied by the input's matrix, and the input by the state's.

    They fit only if the widths agree.
    """
    return step(y, state, memory, params, mask, score=score, cell=lambda x, s, p: cell(s, x, p))


@MISTAKES.add(
    "the input does not reach the cell",
    hint="What does the new state know about the last word that was written?",
    more="Change the input y and leave everything else as it is. Should the new state change?",
    section=RECURRENCE,
)
def no_input_in_cell(y, state, memory, params, *, score="dot", mask=None):
    """The cell reads the old state alone. It should read the input y as well."""
    return step(0 * y, state, memory, params, mask, score=score)


# The scores ---------------------------------------------------------------------------------------------------------


def scaled(function, by):
    """Return a score divided by the root of a width."""
    return lambda q, m, p: function(q, m, p) / by(q, m) ** 0.5


def width(query, memory):
    """Return the width of the query."""
    return query.shape[-1]


@MISTAKES.add(
    "the dot products are scaled",
    hint="Does Luong's dot score have a factor?",
    more="In the chapter the dot scores of the three words are -0.762, 0.762 and 0. By what factor do yours differ?",
    section=OTHER_ORDER,
)
def dot_scaled(y, state, memory, params, *, score="dot", mask=None):
    """The dot products are divided by the root of the width. That came two years later; Luong's are not scaled."""
    return step(y, state, memory, params, mask, score=score, dot=scaled(dot, width))


@MISTAKES.add(
    "all scores are scaled",
    hint="Do Luong's scores have a factor?",
    more="In the chapter the dot scores of the three words are -0.762, 0.762 and 0. By what factor do yours differ?",
    section=OTHER_ORDER,
)
def all_scaled(y, state, memory, params, *, score="dot", mask=None):
    """Every score is divided by the root of the state's width. In this decoder no score is scaled."""
    return step(y, state, memory, params, mask, score=score, pick=scaled_pick)


@MISTAKES.add(
    "all scores are scaled by the width of the memory",
    hint="Do Luong's scores have a factor?",
    more="In the chapter the dot scores of the three words are -0.762, 0.762 and 0. By what factor do yours differ?",
    section=OTHER_ORDER,
)
def all_scaled_by_memory(y, state, memory, params, *, score="dot", mask=None):
    """Every score is divided by the root of the memory's width. In this decoder no score is scaled."""

    def pick_scaled(q, m, p, score, **scores):
        return pick(q, m, p, score, **scores) / m.shape[-1] ** 0.5

    return step(y, state, memory, params, mask, score=score, pick=pick_scaled)


@MISTAKES.add(
    "the query is a vector, where a table is expected",
    hint="The score takes a table of queries. How many queries are there, and what shape does yours have?",
    more="Without a new axis the sentences of a batch are taken for the queries. Print the shape of your scores for 3 "
    "sentences of 5 tokens.",
    section=OTHER_ORDER,
)
def no_query_axis(y, state, memory, params, *, score="dot", mask=None):
    """The state goes into the score as it is. A table of one row is needed, and later its row is taken out again."""

    def pick_for_vectors(q, m, p, score):
        if score == "dot":
            return attnlib.dot(q, m)
        if score == "general":
            return attnlib.general(q, m, p["weight"])
        return attnlib.additive(q, m, p["w_query"], p["w_key"], p["v"])

    return step(y, state, memory, params, mask, score=score, pick=pick_for_vectors, mix=lambda a, m: a @ m)


@MISTAKES.add(
    "dot and general are scaled",
    hint="Do Luong's scores have a factor?",
    more="In the chapter the dot scores of the three words are -0.762, 0.762 and 0. By what factor do yours differ?",
    section=OTHER_ORDER,
)
def products_scaled(y, state, memory, params, *, score="dot", mask=None):
    """Dot and general are divided by the root of a width. Neither should be scaled."""
    return step(y, state, memory, params, mask, score=score, dot=scaled(dot, width), general=scaled(general, width))


@MISTAKES.add(
    "the dot products are divided by the width",
    hint="Does Luong's dot score have a factor?",
    more="In the chapter the dot scores of the three words are -0.762, 0.762 and 0. By what factor do yours differ?",
    section=OTHER_ORDER,
)
def dot_mean(y, state, memory, params, *, score="dot", mask=None):
    """The products are averaged, or divided by the width. In a dot product they are added, and that is all."""
    return step(y, state, memory, params, mask, score=score, dot=lambda q, m, p: dot(q, m, p) / q.shape[-1])


@MISTAKES.add(
    "cosines as scores",
    hint="Which score divides by the lengths of the vectors, and which one does the task ask for?",
    more="Make one row of the memory twice as long. What happens to its score in yours, and what should?",
    section=OTHER_ORDER,
)
def cosine_score(y, state, memory, params, *, score="dot", mask=None):
    """Your dot score divides by the lengths of the vectors. The task asks for a plain dot product."""

    def cosine(q, m, p):
        return dot(q, m, p) / (np.linalg.norm(rows(q), axis=-1) * np.linalg.norm(m, axis=-1))

    return step(y, state, memory, params, mask, score=score, dot=cosine)


@MISTAKES.add(
    "the sign is reversed",
    hint="Which row should get the larger weight: the one with the larger score, or the one with the smaller?",
    more="Of the three words, *Nov* has the largest score. Does it also have the largest of your weights?",
    section=OTHER_ORDER,
)
def reversed_sign(y, state, memory, params, *, score="dot", mask=None):
    """The row with the lowest score gets the largest weight: there is one minus sign too many."""
    return step(y, state, memory, params, mask, score=score, weigh=lambda e, mask: weigh(-e, mask))


@MISTAKES.add(
    "general with its matrix transposed",
    hint="The matrix is between state and memory. Which of the two do its rows belong to?",
    more="The matrix has D_s rows and D_m columns. What is the shape of the vector that comes out when the state goes "
    "through it?",
    section=OTHER_ORDER,
)
def general_transposed(y, state, memory, params, *, score="dot", mask=None):
    """In the general score the matrix is used transposed. Its rows belong to the state, its columns to the memory."""
    turned = {**params, "weight": params["weight"].T} if "weight" in params else params
    return step(y, state, memory, params, mask, score=score, general=lambda q, m, p: general(q, m, turned))


@MISTAKES.add(
    "general without its matrix",
    hint="What does general have that dot does not?",
    more="In the chapter's example the matrix is 3 times the identity. Are your general scores 3 times the dot scores?",
    section=OTHER_ORDER,
)
def general_is_dot(y, state, memory, params, *, score="dot", mask=None):
    """With "general" a plain dot product is computed. A learned matrix belongs between the two vectors."""
    return step(y, state, memory, params, mask, score=score, general=dot)


@MISTAKES.add(
    "general is scaled",
    hint="Does Luong's general score have a factor?",
    more="In the chapter's example the matrix is 3 times the identity. Are your general scores 3 times the dot scores?",
    section=OTHER_ORDER,
)
def general_scaled(y, state, memory, params, *, score="dot", mask=None):
    """The general score is divided by the root of the state's width. It should not be scaled."""
    return step(y, state, memory, params, mask, score=score, general=scaled(general, width))


@MISTAKES.add(
    "general is scaled by the width of the memory",
    hint="Does Luong's general score have a factor?",
    more="In the chapter's example the matrix is 3 times the identity. Are your general scores 3 times the dot scores?",
    section=OTHER_ORDER,
)
def general_scaled_by_memory(y, state, memory, params, *, score="dot", mask=None):
    """The general score is divided by the root of the memory's width. It should not be scaled."""
    by_memory = scaled(general, lambda q, m: m.shape[-1])
    return step(y, state, memory, params, mask, score=score, general=by_memory)


@MISTAKES.add(
    "a tanh in general",
    hint="Which of the three scores has a tanh?",
    more="Count the operations in the general score: a product with a matrix, and a dot product. What else is in "
    "yours?",
    section=OTHER_ORDER,
)
def general_with_tanh(y, state, memory, params, *, score="dot", mask=None):
    """The projected state is squashed before it is multiplied by the memory.

    In the general score nothing is squashed.
    """

    def squashed(q, m, p):
        return dot(np.tanh(q @ p["weight"]), m, p)

    return step(y, state, memory, params, mask, score=score, general=squashed)


@MISTAKES.add(
    "general's score is squashed",
    hint="Which of the three scores has a tanh?",
    more="Count the operations in the general score: a product with a matrix, and a dot product. What else is in "
    "yours?",
    section=OTHER_ORDER,
)
def general_squashed(y, state, memory, params, *, score="dot", mask=None):
    """The finished score goes through a tanh, so that it lies between -1 and 1. Here nothing is squashed."""
    return step(y, state, memory, params, mask, score=score, general=lambda q, m, p: np.tanh(general(q, m, p)))


@MISTAKES.add(
    "concat is computed as dot",
    hint="What does concat have that dot does not?",
    more="Three arrays in params belong to concat alone. Are they used?",
    section=OTHER_ORDER,
)
def concat_is_dot(y, state, memory, params, *, score="dot", mask=None):
    """With "concat" a plain dot product is computed. The task asks for the additive score, with its small network."""
    return step(y, state, memory, params, mask, score=score, additive=dot)


@MISTAKES.add(
    "concat is computed as general",
    hint="How many branches does your function have, and how many scores are there?",
    more="Follow your function with the name concat, line by line. In which branch does it end?",
    section=OTHER_ORDER,
)
def concat_is_general(y, state, memory, params, *, score="dot", mask=None):
    """With "concat" you compute the general score, whose matrix is missing. The task asks for the additive score."""
    return step(y, state, memory, params, mask, score=score, additive=general)


@MISTAKES.add(
    "always dot, whatever the call asks for",
    hint="Your function is told which score to use. Where does it check that?",
    more="Call your function with each of the three names on the same inputs. Should the weights be the same?",
    section=OTHER_ORDER,
)
def always_dot(y, state, memory, params, *, score="dot", mask=None):
    """The name of the score is not looked at, and the dot product is always used. There are three scores."""
    return step(y, state, memory, params, mask)


@MISTAKES.add(
    "always general, whatever the call asks for",
    hint="Your function is told which score to use. Where does it check that?",
    more="Call your function with each of the three names on the same inputs. Should the weights be the same?",
    section=OTHER_ORDER,
)
def always_general(y, state, memory, params, *, score="dot", mask=None):
    """The name of the score is not looked at, and the general score is always used. There are three scores."""
    return step(y, state, memory, params, mask, score="general")


@MISTAKES.add(
    "always concat, whatever the call asks for",
    hint="Your function is told which score to use. Where does it check that?",
    more="Call your function with each of the three names on the same inputs. Should the weights be the same?",
    section=OTHER_ORDER,
)
def always_concat(y, state, memory, params, *, score="dot", mask=None):
    """The name of the score is not looked at, and the additive score is always used. There are three scores."""
    return step(y, state, memory, params, mask, score="concat")


@MISTAKES.add(
    "the score is guessed from params",
    hint="Your function is told which score to use. Where does it check that?",
    more="The parameters of all three scores may be there at once, as in the chapter's example. Which one do you use "
    "then?",
    section=OTHER_ORDER,
)
def score_from_params(y, state, memory, params, *, score="dot", mask=None):
    """Which score is used depends on what is in params. The name of the score should decide."""
    guess = "general" if "weight" in params else "concat" if "v" in params else "dot"
    return step(y, state, memory, params, mask, score=guess)


# h~ -----------------------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "[s; c] instead of [c; s]",
    hint="In which order are context and state joined before they are merged?",
    more="The first D_m rows of the merging matrix are for the context. What do they multiply in your line?",
    section=OTHER_ORDER,
)
def state_first(y, state, memory, params, *, score="dot", mask=None):
    """The state is put before the context. The merging matrix has the rows of the context first."""
    return step(y, state, memory, params, mask, score=score, merge=state_then_context)


@MISTAKES.add(
    "the tanh is missing in h~",
    hint="What is the last operation in the formula of h~?",
    more="Print the largest number of your second result. Should it ever exceed 1?",
    section=OTHER_ORDER,
)
def no_tanh_in_merge(y, state, memory, params, *, score="dot", mask=None):
    """Context and state are merged by the matrix, and nothing is squashed. A tanh comes last."""
    return step(y, state, memory, params, mask, score=score, merge=merged_without_tanh)


@MISTAKES.add(
    "the tanh in h~ comes too early",
    hint="Which comes first: the product with the matrix, or the tanh?",
    more="Print the largest number of your second result. Should it ever exceed 1?",
    section=OTHER_ORDER,
)
def tanh_before_merge(y, state, memory, params, *, score="dot", mask=None):
    """Context and state are squashed and then multiplied by the matrix. The tanh comes last."""
    return step(y, state, memory, params, mask, score=score, merge=lambda c, s, p: np.tanh(join(c, s)) @ p["w_c"])


@MISTAKES.add(
    "h~ ends in a sigmoid",
    hint="May the numbers of h~ be negative?",
    more="Feed 0 to your last function. The right one gives 0 back.",
    section=OTHER_ORDER,
)
def sigmoid_merge(y, state, memory, params, *, score="dot", mask=None):
    """The merged vector goes through a sigmoid. The task asks for the tanh."""

    def squashed(c, s, p):
        return 1 / (1 + np.exp(-join(c, s) @ p["w_c"]))

    return step(y, state, memory, params, mask, score=score, merge=squashed)


@MISTAKES.add(
    "the context is returned in place of h~",
    hint="What does Luong's decoder predict the next word from?",
    more="One array in params is for merging. Is it used?",
    section=OTHER_ORDER,
)
def returns_context(y, state, memory, params, *, score="dot", mask=None):
    """The second result is the context, as in Bahdanau's step. Here it is h~, in which context and state are merged."""
    return step(y, state, memory, params, mask, score=score, merge=context_alone)


@MISTAKES.add(
    "context and state are joined, not merged",
    hint="What is done with the joined vector?",
    more="One array in params is for merging. Is it used?",
    section=OTHER_ORDER,
)
def returns_joined(y, state, memory, params, *, score="dot", mask=None):
    """The second result is [c; s] as it is. It should go through a matrix and a tanh first."""
    return step(y, state, memory, params, mask, score=score, merge=lambda c, s, p: join(c, s))


@MISTAKES.add(
    "the merging matrix is left out",
    hint="What is between the joined vector and the tanh?",
    more="One array in params is for merging. Is it used?",
    section=OTHER_ORDER,
)
def tanh_of_joined(y, state, memory, params, *, score="dot", mask=None):
    """The second result is the tanh of [c; s]. The matrix that mixes the two is missing."""
    return step(y, state, memory, params, mask, score=score, merge=lambda c, s, p: np.tanh(join(c, s)))


@MISTAKES.add(
    "the state is missing in h~",
    hint="What two things is h~ made of?",
    more="The merging matrix has D_m + D_s rows. Which of them does your code never use?",
    section=OTHER_ORDER,
)
def merges_context_alone(y, state, memory, params, *, score="dot", mask=None):
    """Only the context enters h~. The new state belongs next to it."""
    return step(y, state, memory, params, mask, score=score, merge=lambda c, s, p: merge(c, 0 * s, p))


@MISTAKES.add(
    "the context is missing in h~",
    hint="What two things is h~ made of?",
    more="The merging matrix has D_m + D_s rows. Which of them does your code never use?",
    section=OTHER_ORDER,
)
def merges_state_alone(y, state, memory, params, *, score="dot", mask=None):
    """Only the new state enters h~, so nothing of the memory reaches the word. The context belongs next to it."""
    return step(y, state, memory, params, mask, score=score, merge=lambda c, s, p: merge(0 * c, s, p))


@MISTAKES.add(
    "the input is merged in the state's place",
    hint="What two things is h~ made of?",
    more="The merging matrix has D_m + D_s rows. Which vector's width is the second number?",
    section=OTHER_ORDER,
)
def merges_input(y, state, memory, params, *, score="dot", mask=None):
    """The context is joined with the input y. It should be joined with the new state."""
    return step(y, state, memory, params, mask, score=score, merge=lambda c, s, p: merge(c, y, p))


@MISTAKES.add(
    "the merging matrix is transposed",
    hint="Vectors are rows here. On which side of the merging matrix is the joined vector?",
    more="The cell's matrices are stored as torch stores them; the merging matrix is not. Compare the shapes in the "
    "task.",
    section=OTHER_ORDER,
)
def w_c_transposed(y, state, memory, params, *, score="dot", mask=None):
    """The merging matrix is transposed before it is used. It is stored so that a row vector fits as it is."""
    turned = {**params, "w_c": params["w_c"].T}
    return step(y, state, memory, params, mask, score=score, merge=lambda c, s, p: merge(c, s, turned))


@MISTAKES.add(
    "h~ is returned as the state",
    hint="What does the next step start from: the cell's state, or h~?",
    more="The state that comes in and the one that goes out have the same width. Do they in yours?",
    section=OTHER_ORDER,
)
def attentional_as_state(y, state, memory, params, *, score="dot", mask=None):
    """The first result is h~. The state that the next step starts from is the one that the cell made."""
    _, attentional, weights = step(y, state, memory, params, mask, score=score)
    return attentional, attentional, weights


# Two at once --------------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "asks with the old state, and [s; c]",
    hint="Which state is the query, and in which order are context and state joined?",
    more="Begin with the weights of the three words, by hand. When they are right, compare the order in the merge.",
    section=OTHER_ORDER,
)
def asks_with_old_state_and_state_first(y, state, memory, params, *, score="dot", mask=None):
    """The old state asks the memory, where the new one should. And the state is put before the context."""
    return step(y, state, memory, params, mask, score=score, ask=with_old_state, merge=state_then_context)


@MISTAKES.add(
    "asks with the old state, and no tanh in h~",
    hint="Which state is the query, and what is the last operation of h~?",
    more="Begin with the weights of the three words, by hand. When they are right, look for numbers of h~ beyond 1.",
    section=OTHER_ORDER,
)
def asks_with_old_state_and_no_tanh(y, state, memory, params, *, score="dot", mask=None):
    """The old state asks the memory, where the new one should. And h~ lacks its tanh."""
    return step(y, state, memory, params, mask, score=score, ask=with_old_state, merge=merged_without_tanh)


@MISTAKES.add(
    "asks with the old state, and returns the context",
    hint="Which state is the query, and what does Luong's decoder predict from?",
    more="Begin with the weights of the three words, by hand. Then see which array in params you have not used.",
    section=OTHER_ORDER,
)
def asks_with_old_state_and_returns_context(y, state, memory, params, *, score="dot", mask=None):
    """The old state asks, and the context comes back, as in Bahdanau's step.

    The new state should ask, and h~ should come back.
    """
    return step(y, state, memory, params, mask, score=score, ask=with_old_state, merge=context_alone)


@MISTAKES.add(
    "asks with the old state, and scaled",
    hint="Which state is the query, and does the dot score have a factor?",
    more="In the chapter the dot scores of the three words are -0.762, 0.762 and 0. From which state do they come?",
    section=OTHER_ORDER,
)
def asks_with_old_state_and_scaled(y, state, memory, params, *, score="dot", mask=None):
    """The old state asks the memory, where the new one should. And the scores are divided by the root of the width."""
    return step(y, state, memory, params, mask, score=score, ask=with_old_state, pick=scaled_pick)


@MISTAKES.add(
    "[s; c], and no tanh in h~",
    hint="In which order are context and state joined, and what is the last operation of h~?",
    more="The first D_m rows of the merging matrix are for the context. And look for numbers of h~ beyond 1.",
    section=OTHER_ORDER,
)
def state_first_and_no_tanh(y, state, memory, params, *, score="dot", mask=None):
    """The state is put before the context, and h~ lacks its tanh."""
    return step(y, state, memory, params, mask, score=score, merge=lambda c, s, p: join(s, c) @ p["w_c"])


@MISTAKES.add(
    "scaled dot products, and [s; c]",
    hint="Does the dot score have a factor, and in which order are context and state joined?",
    more="Begin with the weights of the three words, by hand. When they are right, compare the order in the merge.",
    section=OTHER_ORDER,
)
def scaled_and_state_first(y, state, memory, params, *, score="dot", mask=None):
    """The scores are divided by the root of the width, and the state is put before the context."""
    return step(y, state, memory, params, mask, score=score, pick=scaled_pick, merge=state_then_context)


@MISTAKES.add(
    "scaled dot products, and no tanh in h~",
    hint="Does the dot score have a factor, and what is the last operation of h~?",
    more="Begin with the weights of the three words, by hand. When they are right, look for numbers of h~ beyond 1.",
    section=OTHER_ORDER,
)
def scaled_and_no_tanh(y, state, memory, params, *, score="dot", mask=None):
    """The scores are divided by the root of the width, and h~ lacks its tanh."""
    return step(y, state, memory, params, mask, score=score, pick=scaled_pick, merge=merged_without_tanh)


@MISTAKES.add(
    "scaled dot products, and the context returned",
    hint="Does the dot score have a factor, and what does Luong's decoder predict from?",
    more="Begin with the weights of the three words, by hand. Then see which array in params you have not used.",
    section=OTHER_ORDER,
)
def scaled_and_returns_context(y, state, memory, params, *, score="dot", mask=None):
    """The scores are divided by the root of the width, and the context comes back in place of h~."""
    return step(y, state, memory, params, mask, score=score, pick=scaled_pick, merge=context_alone)


# What both decoders have in common ----------------------------------------------------------------------------------

MISTAKES.extend(shared_mistakes(step, OTHER_ORDER))
MISTAKES.extend(order_mistakes(step, OTHER_ORDER, ("state", "h~", "weights")))
MISTAKES.extend(mask_mistakes(step, OTHER_ORDER))
FREQUENT_PAIRS = (
    ("asks-with-old-state", {"ask": with_old_state}, (*IN_WEIGHTS, *IN_CELL)),
    ("state-first", {"merge": state_then_context}, (*IN_WEIGHTS, *IN_CELL)),
    ("no-tanh-in-merge", {"merge": merged_without_tanh}, (*IN_WEIGHTS, *IN_CELL)),
    ("no-bias", {"cell": cell_without_bias}, IN_WEIGHTS),
)
for first, pieces, seconds in FREQUENT_PAIRS:
    MISTAKES.extend(pairs_of_mistakes(step, MISTAKES.by_id(first), pieces, seconds))


@MISTAKES.add(
    "the merging matrix is cut in the middle",
    hint="How many rows of w_c are multiplied by the context, and how many by the state?",
    more="w_c has D_m rows for the context, then D_s for the state. For D_m = 6 and D_s = 4, where do you cut?",
    section=OTHER_ORDER,
)
def w_c_cut_in_the_middle(y, state, memory, params, *, score="dot", mask=None):
    """You cut the merging matrix into two halves. That works only if the memory is as wide as the state."""

    def merge_halves(context, state, p):
        for_context, for_state = np.split(p["w_c"], 2)
        return np.tanh(context @ for_context + state @ for_state)

    return step(y, state, memory, params, mask, score=score, merge=merge_halves)


EXERCISE = Exercise(
    name="luong_step",
    reference=attnlib.luong_step,
    outputs={"state": ("B", "D_s"), "h~": ("B", "D_h"), "weights": ("B", "S")},
    rubric={DOT: 4, GENERAL: 2, CONCAT: 2, RANKS: 2, LARGE: 1, UNCHANGED: 1},
    section=OTHER_ORDER,
    advice="Work through the three words of the chapter: print the new state, your scores, the weights, the context "
    "and what goes into the last tanh, each with its shape. Which is the first to differ from the chapter?",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    ungraded_options=("mask",),
)
