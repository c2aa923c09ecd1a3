"""What the steps of both decoders have in common: their inputs, the pieces of a step, and the mistakes in these."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.catalogue.context_vectors.sections import (
    EMPTY_ROWS,
    RECURRENCE,
    THREE_WORDS,
    TRUE_OR_FALSE,
    WEIGHTS_OF_ZERO,
)
from attnlib.checks.catalogue.self_attention.sections import OVERFLOW, SOFTMAX
from attnlib.checks.exercise import Mistakes, Section

Step = Callable[..., Any]

# What is most often wrong, by name: for pairs of mistakes
IN_SCORES = ("no-tanh", "tanh-after-v", "no-v", "scaled-by-hidden")
IN_WEIGHTS = ("softmax-over-batch", "no-softmax")
IN_CELL = ("no-bias", "linear-cell", "w-hh-untransposed")

SCALES = {"w_ih": 0.4, "w_hh": 0.4, "w_c": 0.4, "w_query": 0.5, "w_key": 0.5, "weight": 0.5, "b_ih": 0.5, "b_hh": 0.5}


def three_words(**others: Any) -> dict[str, Any]:
    """Return the example of the chapter: 27, Nov and 1999 in the memory, and the state after the year."""
    attend = {"w_query": np.eye(2), "w_key": np.eye(2), "v": np.array([-2.0, 2.0])}
    cell = {"w_ih": np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), "w_hh": np.eye(2)}
    return {
        "y": np.array([[1.0]]),
        "state": np.array([[-1.0, 0.0]]),
        "memory": np.array([[[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]]),
        "params": {**attend, **cell, "b_ih": np.zeros(2), "b_hh": np.zeros(2), **others},
    }


def drawn(rng, shapes: dict[str, tuple[int, ...]], dtype: Any) -> dict[str, Any]:
    """Return random arrays of these shapes; matrices and biases are small enough to keep tanh off its ends."""
    return {name: (SCALES.get(name, 1.0) * rng.normal(size=shape)).astype(dtype) for name, shape in shapes.items()}


def cell_shapes(width: int, d_s: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the parameters of Elman's cell."""
    return {"w_ih": (d_s, width), "w_hh": (d_s, d_s), "b_ih": (d_s,), "b_hh": (d_s,)}


def time_first(given: dict[str, Any]) -> dict[str, Any]:
    """Return the inputs with a memory that lies in the computer with time in front, as many encoders make it."""
    return {**given, "memory": given["memory"].swapaxes(0, 1).copy().swapaxes(0, 1)}


def masks() -> Iterator[tuple[str, Any]]:
    """Yield masks ``(..., S)`` for implementations that have the argument, each with its case name."""
    yield (
        "a mask (True where the decoder may attend)",
        np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0], [0, 1, 1, 0, 1]]) > 0,
    )
    yield "a mask, and no batch", np.array([1, 0, 1, 1]) > 0
    yield "a mask that leaves one sentence nothing to attend to", np.array([[1, 0, 1, 1], [0, 0, 0, 0]]) > 0


# A step in pieces, for mistakes to replace --------------------------------------------------------------------------


def rows(query):
    """Return the query with an axis for the rows of the memory."""
    return query[..., None, :]


def project(query, memory, p):
    """Return both sides in the space of the hidden numbers."""
    return rows(query @ p["w_query"]), memory @ p["w_key"]


def additive(query, memory, p):
    """Return the additive scores."""
    q, k = project(query, memory, p)
    return np.tanh(q + k) @ p["v"]


def closed(scores, mask, fill=-np.inf):
    """Return the scores with another number where the mask forbids."""
    return scores if mask is None else np.where(mask, scores, fill)


def weigh(scores, mask):
    """Return the weights."""
    return attnlib.softmax(closed(scores, mask))


def mix(weights, memory):
    """Return the context."""
    return (weights[..., None] * memory).sum(axis=-2)


def join(*vectors):
    """Return vectors one after the other."""
    return np.concatenate(vectors, axis=-1)


def inside(x, state, p):
    """Return what goes into the tanh of Elman's cell."""
    return x @ p["w_ih"].T + p["b_ih"] + state @ p["w_hh"].T + p["b_hh"]


def cell(x, state, p):
    """Return the next state."""
    return np.tanh(inside(x, state, p))


def without_tanh(query, memory, p):
    """Return scores that lack the tanh."""
    return sum(project(query, memory, p)) @ p["v"]


def cell_without_bias(x, state, p):
    """Return the next state, without the biases."""
    return np.tanh(x @ p["w_ih"].T + state @ p["w_hh"].T)


def over(axes, scores, mask):
    """Return weights that sum to 1 along the axes."""
    e = np.exp(closed(scores, mask))
    return e / e.sum(axis=axes, keepdims=True)


# Mistakes -----------------------------------------------------------------------------------------------------------


def score_mistakes(known: Mistakes, step: Step, section: Section) -> None:
    """Add the mistakes in the additive score."""

    @known.add(
        "the two projections are swapped",
        hint="Which of the two matrices belongs to the state, and which to the memory?",
        more="Follow the state through the score and write down by which matrix it is multiplied. Do the same for the "
        "memory.",
        section=section,
    )
    def swapped_projections(*inputs, mask=None, **options):
        """The state goes through the keys' matrix, and the memory through the query's. It is the other way round."""
        return step(
            *inputs,
            mask,
            **options,
            additive=lambda q, m, p: additive(q, m, {**p, "w_query": p["w_key"], "w_key": p["w_query"]}),
        )

    @known.add(
        "the keys go through the query's matrix",
        hint="There are two matrices in the score. Is each of them used once?",
        more="The memory has a matrix of its own. Look for the line that projects it, and read the name of the matrix "
        "there.",
        section=section,
    )
    def keys_by_query_matrix(*inputs, mask=None, **options):
        """Both sides are multiplied by the query's matrix. The memory has one of its own."""
        return step(*inputs, mask, **options, additive=lambda q, m, p: additive(q, m, {**p, "w_key": p["w_query"]}))

    @known.add(
        "the query goes through the keys' matrix",
        hint="There are two matrices in the score. Is each of them used once?",
        more="The state has a matrix of its own. Look for the line that projects it, and read the name of the matrix "
        "there.",
        section=section,
    )
    def query_by_key_matrix(*inputs, mask=None, **options):
        """Both sides are multiplied by the keys' matrix. The state has one of its own."""
        return step(*inputs, mask, **options, additive=lambda q, m, p: additive(q, m, {**p, "w_query": p["w_key"]}))

    @known.add(
        "the query is not projected",
        hint="The state and the memory may have different widths. What brings the state into the space of the sum?",
        more="Count the matrices in your score. There should be two, one for each side, before anything is added.",
        section=section,
    )
    def query_not_projected(*inputs, mask=None, **options):
        """The state is added as it is. It goes through a matrix of its own first."""
        return step(*inputs, mask, **options, additive=lambda q, m, p: np.tanh(rows(q) + m @ p["w_key"]) @ p["v"])

    @known.add(
        "the keys are not projected",
        hint="The state and the memory may have different widths. What brings the memory into the space of the sum?",
        more="Count the matrices in your score. There should be two, one for each side, before anything is added.",
        section=section,
    )
    def keys_not_projected(*inputs, mask=None, **options):
        """The rows of the memory are added as they are. They go through a matrix of their own first."""
        return step(*inputs, mask, **options, additive=lambda q, m, p: np.tanh(rows(q @ p["w_query"]) + m) @ p["v"])

    @known.add(
        "the query's matrix is transposed",
        hint="Vectors are rows here. On which side of its matrix is the state?",
        more="The query's matrix has one row for each number of the state. Compare its shape with the one that you "
        "use.",
        section=section,
    )
    def query_matrix_transposed(*inputs, mask=None, **options):
        """The query's matrix is turned over before it is used. It is stored so that a row vector fits as it is."""
        return step(*inputs, mask, **options, additive=lambda q, m, p: additive(q, m, {**p, "w_query": p["w_query"].T}))

    @known.add(
        "the keys' matrix is transposed",
        hint="Vectors are rows here. On which side of its matrix is a row of the memory?",
        more="The keys' matrix has one row for each number in a row of the memory. Compare its shape with the one "
        "that you use.",
        section=section,
    )
    def key_matrix_transposed(*inputs, mask=None, **options):
        """The keys' matrix is turned over before it is used. It is stored so that the memory's rows fit as they are."""
        return step(*inputs, mask, **options, additive=lambda q, m, p: additive(q, m, {**p, "w_key": p["w_key"].T}))

    @known.add(
        "both matrices of the score are transposed",
        hint="Vectors are rows here. On which side of its matrix is a vector?",
        more="The cell's matrices are stored as torch stores them, those of the score are not. Compare the shapes in "
        "the task.",
        section=section,
    )
    def both_matrices_transposed(*inputs, mask=None, **options):
        """The two matrices of the score are turned over as those of the cell are. They are stored ready for use."""
        return step(
            *inputs,
            mask,
            **options,
            additive=lambda q, m, p: additive(q, m, {**p, "w_query": p["w_query"].T, "w_key": p["w_key"].T}),
        )

    @known.add(
        "the tanh is missing in the score",
        hint="Between the sum of the two projections and the vector v there is one more thing. Which?",
        more="Without it, the query adds the same number to every score. Work out what a softmax makes of that: do "
        "your weights change with the state?",
        section=THREE_WORDS,
    )
    def no_tanh(*inputs, mask=None, **options):
        """The sum goes straight to v, without the tanh. Then the state moves all scores alike, and has no say."""
        return step(*inputs, mask, **options, additive=without_tanh)

    @known.add(
        "the tanh comes after v",
        hint="What is squashed: the hidden numbers, or the finished score?",
        more="In the example by hand, the score of *Nov* is 3.046. Can a number that has just left a tanh be so large?",
        section=THREE_WORDS,
    )
    def tanh_after_v(*inputs, mask=None, **options):
        """The score itself is squashed, so that it lies between -1 and 1. The tanh belongs on the sum, before v."""
        return step(*inputs, mask, **options, additive=lambda q, m, p: np.tanh(sum(project(q, m, p)) @ p["v"]))

    @known.add(
        "a sigmoid in the score",
        hint="Which function squashes to the range from -1 to 1?",
        more="Feed 0 to your function. The right one gives 0 back.",
        section=section,
    )
    def sigmoid_score(*inputs, mask=None, **options):
        """The hidden numbers are squashed by a sigmoid, to between 0 and 1. The task asks for the tanh."""

        def score(q, m, p):
            return 1 / (1 + np.exp(-sum(project(q, m, p)))) @ p["v"]

        return step(*inputs, mask, **options, additive=score)

    @known.add(
        "negative hidden numbers are cut off",
        hint="Which function squashes to the range from -1 to 1?",
        more="In the example by hand, *Nov* has the hidden numbers -0.762 and 0.762. What would become of the "
        "negative one in yours?",
        section=THREE_WORDS,
    )
    def relu_score(*inputs, mask=None, **options):
        """Negative hidden numbers become 0, and large ones stay large. The task asks for the tanh."""
        return step(*inputs, mask, **options, additive=lambda q, m, p: np.maximum(sum(project(q, m, p)), 0) @ p["v"])

    @known.add(
        "v is left out",
        hint="What makes one number of the hidden ones: a plain sum, or a sum with weights of its own?",
        more="In the example by hand, *Nov* has the hidden numbers -0.762 and 0.762. What is their plain sum, and "
        "what is the score?",
        section=THREE_WORDS,
    )
    def no_v(*inputs, mask=None, **options):
        """The hidden numbers are added up as they are. Each has its own weight, learned, in the vector v."""
        return step(*inputs, mask, **options, additive=lambda q, m, p: np.tanh(sum(project(q, m, p))).sum(axis=-1))

    @known.add(
        "v is inside the tanh",
        hint="Which comes first, the tanh or the product with v?",
        more="In the example by hand, the tanh is taken of -1 and 1 for *Nov*. Of what would you take it?",
        section=THREE_WORDS,
    )
    def v_inside_tanh(*inputs, mask=None, **options):
        """The sums are multiplied by v and then squashed. They are squashed first."""

        def score(q, m, p):
            return np.tanh(sum(project(q, m, p)) * p["v"]).sum(axis=-1)

        return step(*inputs, mask, **options, additive=score)

    @known.add(
        "multiplied, not added",
        hint="Why is this score called additive?",
        more="In the example by hand, the two sides are (-1, 0) and (1, 0) for the first word. What goes into the "
        "tanh?",
        section=THREE_WORDS,
    )
    def product_score(*inputs, mask=None, **options):
        """The two projections are multiplied number by number. They are added."""
        return step(*inputs, mask, **options, additive=lambda q, m, p: np.tanh(np.multiply(*project(q, m, p))) @ p["v"])

    @known.add(
        "the keys are subtracted from the query",
        hint="Why is this score called additive?",
        more="In the example by hand, the two sides are (-1, 0) and (1, 0) for the first word. What goes into the "
        "tanh?",
        section=THREE_WORDS,
    )
    def difference_score(*inputs, mask=None, **options):
        """The projected memory is subtracted from the projected state. They are added."""
        return step(*inputs, mask, **options, additive=lambda q, m, p: np.tanh(np.subtract(*project(q, m, p))) @ p["v"])

    @known.add(
        "the query is subtracted from the keys",
        hint="Why is this score called additive?",
        more="In the example by hand, the two sides are (-1, 0) and (0, 1) for *Nov*. What goes into the tanh?",
        section=THREE_WORDS,
    )
    def keys_minus_query(*inputs, mask=None, **options):
        """The projected state is subtracted from the projected memory. They are added."""
        return step(
            *inputs, mask, **options, additive=lambda q, m, p: np.tanh(np.subtract(*project(q, m, p)[::-1])) @ p["v"]
        )

    @known.add(
        "a dot product of the projections",
        hint="What is done with the two projections: are they multiplied, or added and squashed?",
        more="The vector v does not occur in your score. Where does it appear in the formula?",
        section=section,
    )
    def dot_of_projections(*inputs, mask=None, **options):
        """The score is the dot product of the two projections. They are added, squashed, and read off with v."""
        return step(*inputs, mask, **options, additive=lambda q, m, p: np.multiply(*project(q, m, p)).sum(axis=-1))

    @known.add(
        "scaled by the width of the hidden numbers",
        hint="A scale belongs to dot products. Is there one in the additive score?",
        more="Feed the state of the example by hand to your score, and compare with 0, 3.046 and 1.523. Which factor "
        "is it?",
        section=THREE_WORDS,
    )
    def scaled_by_hidden(*inputs, mask=None, **options):
        """The scores are divided by the root of D_a, so the weights are flatter. The additive score is not scaled."""
        return step(*inputs, mask, **options, additive=lambda q, m, p: additive(q, m, p) / len(p["v"]) ** 0.5)

    @known.add(
        "scaled by the width of the state",
        hint="A scale belongs to dot products. Is there one in the additive score?",
        more="Feed the state of the example by hand to your score, and compare with 0, 3.046 and 1.523. Which factor "
        "is it?",
        section=THREE_WORDS,
    )
    def scaled_by_state(*inputs, mask=None, **options):
        """The scores are divided by the root of the state's width. The additive score is not scaled."""
        return step(*inputs, mask, **options, additive=lambda q, m, p: additive(q, m, p) / q.shape[-1] ** 0.5)

    @known.add(
        "scaled by the width of the memory",
        hint="A scale belongs to dot products. Is there one in the additive score?",
        more="Feed the state of the example by hand to your score, and compare with 0, 3.046 and 1.523. Which factor "
        "is it?",
        section=THREE_WORDS,
    )
    def scaled_by_memory(*inputs, mask=None, **options):
        """The scores are divided by the root of the memory's width. The additive score is not scaled."""
        return step(*inputs, mask, **options, additive=lambda q, m, p: additive(q, m, p) / m.shape[-1] ** 0.5)

    @known.add(
        "the state has no say in the weights",
        hint="Change the state and keep the memory. Should the weights change?",
        more="Look at what goes into the tanh: it should be the sum of both projections. What is added outside of it "
        "is the same for every row, and a softmax does not see it.",
        section=section,
    )
    def keys_alone(*inputs, mask=None, **options):
        """Every state gets the same weights: it is not added to the keys inside the tanh, where it could choose."""
        return step(*inputs, mask, **options, additive=lambda q, m, p: np.tanh(m @ p["w_key"]) @ p["v"])

    @known.add(
        "an axis of size 1 is missing, or not where it belongs",
        hint="The memory has an axis for its rows. What does an array without it need, to meet them all?",
        more="Write the shapes of a product or a sum under each other, for 3 sentences of 5 tokens. Which size is "
        "under which?",
        section=section,
    )
    def no_new_axis(*inputs, mask=None, **options):
        """With one sentence the step is right. With more, states and rows lack an axis of size 1 in the right place."""
        return step(
            *inputs, mask, **options, additive=lambda q, m, p: np.tanh(q @ p["w_query"] + m @ p["w_key"]) @ p["v"]
        )


def weight_mistakes(known: Mistakes, step: Step, section: Section) -> None:
    """Add the mistakes between the scores and the weights."""

    @known.add(
        "the softmax runs over the batch",
        hint="Who competes with whom: the rows of one memory, or the sentences of the batch?",
        more="Add up your weights along each axis in turn. Every sentence should have a sum of 1 over its own tokens.",
        section=section,
    )
    def softmax_over_batch(*inputs, mask=None, **options):
        """The sentences of the batch compete for each place. It is the rows of one memory that compete."""
        return step(*inputs, mask, **options, weigh=lambda e, mask: attnlib.softmax(closed(e, mask), 0))

    @known.add(
        "the softmax runs over everything",
        hint="How many sums of 1 should there be: one, or one for each sentence?",
        more="Add up the weights of the first sentence alone. They should sum to 1 whatever else is in the batch.",
        section=section,
    )
    def softmax_over_all(*inputs, mask=None, **options):
        """All weights of the batch together sum to 1. Every sentence should have weights that sum to 1 on its own."""
        return step(*inputs, mask, **options, weigh=lambda e, mask: over(None, e - e.max(), mask))

    @known.add(
        "the softmax axis is counted from the front",
        hint="Which number of an axis means the last one, however many there are?",
        more="With a batch in front axis 1 is the last. Which one is it with two batch dimensions, and with none?",
        section=SOFTMAX,
    )
    def softmax_from_front(*inputs, mask=None, **options):
        """With one batch dimension axis 1 is the last one. With two, or with none, it is not."""
        return step(*inputs, mask, **options, weigh=lambda e, mask: attnlib.softmax(closed(e, mask), 1))

    @known.add(
        "every weight is 1",
        hint="Along which axis did your softmax run, and how many numbers lie along it?",
        more="Print the shape of the scores just before the softmax. The softmax of a single number is always 1.",
        section=section,
    )
    def softmax_of_one(*inputs, mask=None, **options):
        """The softmax ran along an axis of length 1, so every weight is 1. It should run along the memory."""
        return step(*inputs, mask, **options, weigh=lambda e, mask: np.ones_like(e) if mask is None else mask * 1.0)

    @known.add(
        "the softmax is missing",
        hint="What turns scores, which may be negative, into weights that sum to 1?",
        more="Add up the three numbers that weigh the three words of the chapter. What should the sum be?",
        section=section,
    )
    def no_softmax(*inputs, mask=None, **options):
        """The scores themselves are used as weights. They may be negative, and nothing makes them sum to 1."""
        return step(*inputs, mask, **options, weigh=lambda e, mask: closed(e, mask, 0))

    @known.add(
        "two softmaxes",
        hint="How often is a softmax taken between the scores and the weights?",
        more="Weights that sum to 1 went into a second softmax. How far apart can its results be?",
        section=section,
    )
    def softmax_twice(*inputs, mask=None, **options):
        """A softmax is taken of the weights once more, so they come out nearly equal. Once is enough."""
        return step(*inputs, mask, **options, weigh=lambda e, mask: weigh(weigh(e, mask), None))

    @known.add(
        "the weights are not normalised",
        hint="What has to be true of the sum of the weights, and which division makes it so?",
        more="In the chapter the exponentials of the three words are divided by something, by hand. By what?",
        section=section,
    )
    def not_normalised(*inputs, mask=None, **options):
        """The exponentials of the scores are used as weights, but nothing makes them sum to 1."""
        return step(*inputs, mask, **options, weigh=lambda e, mask: np.exp(closed(e, mask)))

    @known.add(
        "divided by the sum, without the exponential",
        hint="Scores may be negative. What makes them positive before they are divided by their sum?",
        more="A score of 0 is a score like any other. What is its weight in yours, and what is its exponential?",
        section=section,
    )
    def divided_by_sum(*inputs, mask=None, **options):
        """The scores are divided by their sum as they are. Their exponentials are."""
        return step(
            *inputs, mask, **options, weigh=lambda e, mask: closed(e, mask, 0) / closed(e, mask, 0).sum(-1)[..., None]
        )

    @known.add(
        "each score on its own (sigmoid)",
        hint="In a softmax, raising one score lowers the weight of every other. Is it so in yours?",
        more="Add up the weights of one sentence. Then look for the step that should have looked at all its scores "
        "together.",
        section=SOFTMAX,
    )
    def sigmoid_weights(*inputs, mask=None, **options):
        """Each score is squashed on its own, and nothing makes the weights of a sentence sum to 1."""
        return step(*inputs, mask, **options, weigh=lambda e, mask: 1 / (1 + np.exp(-closed(e, mask))))

    @known.add(
        "all or nothing (argmax)",
        hint="The second-best row still gets a share. Which function gives it one?",
        more="By hand, *Nov* gets the largest part, but not all of it. Who gets the rest?",
        section=section,
    )
    def hard(*inputs, mask=None, **options):
        """The best row of the memory gets all the weight. The softmax gives every row its share."""
        return step(*inputs, mask, **options, weigh=lambda e, mask: np.eye(e.shape[-1])[closed(e, mask).argmax(-1)])

    @known.add(
        "all rows count the same",
        hint="Where in your formula do the scores enter the weights?",
        more="Print the scores of one sentence. Are they all equal, or are they different and never used?",
        section=section,
    )
    def uniform(*inputs, mask=None, **options):
        """Every row of the memory gets the same weight, whatever the state: this is the plain mean."""
        return step(*inputs, mask, **options, weigh=lambda e, mask: weigh(0 * e, mask))

    @known.add(
        "the softmax overflows",
        hint="Does your softmax subtract the maximum of each row? Mend it there, and this is mended too.",
        more="Try your softmax alone on the scores 3000 and 2999. The weights should be 0.731 and 0.269.",
        section=OVERFLOW,
    )
    def overflow(*inputs, mask=None, **options):
        """The weights are right for small scores. For large ones exp overflows, and the weights become nan."""
        return step(*inputs, mask, **options, weigh=lambda e, mask: over(-1, e, mask))

    @known.add(
        "the softmax uses one maximum for the whole batch",
        hint="Every sentence needs its own maximum in the softmax. Mend it there, and this is mended too.",
        more="Try your softmax alone on two rows, one around 3000 and one around -3000. Which row is lost?",
        section=OVERFLOW,
    )
    def global_shift(*inputs, mask=None, **options):
        """One maximum for the whole batch moves a sentence of much smaller scores so far down that it is 0/0."""
        return step(*inputs, mask, **options, weigh=lambda e, mask: over(-1, e - e.max(), mask))

    @known.add(
        "scores are returned as weights",
        hint="Which of your arrays has rows that sum to 1?",
        more="The other two results are right, so the weights were there. Compare the name in the last line with "
        "theirs.",
        section=section,
    )
    def returns_scores(*inputs, mask=None, **options):
        """The first two results are right, but the third holds the scores before the softmax, not the weights."""
        seen = []

        def remember(scores, mask):
            seen.append(closed(scores, mask))
            return weigh(scores, mask)

        new, context, _ = step(*inputs, mask, **options, weigh=remember)
        return new, context, seen[0]


def context_mistakes(known: Mistakes, step: Step, section: Section) -> None:
    """Add the mistakes between the weights and the context."""

    @known.add(
        "a plain sum of the memory",
        hint="Each row of the memory has a weight. Where does yours come in when the rows are added?",
        more="A weighted mean lies between the rows of the memory, never beyond them. Does yours?",
        section=section,
    )
    def plain_sum(*inputs, mask=None, **options):
        """The weights are right, but the rows of the memory are added without them. Each should count as it weighs."""
        return step(*inputs, mask, **options, mix=lambda a, m: m.sum(axis=-2))

    @known.add(
        "the plain mean of the memory",
        hint="Each row of the memory has a weight. Where does yours come in when the rows are averaged?",
        more="Where one weight is nearly 1, the context is nearly that row. Is yours, or is it always the same?",
        section=section,
    )
    def plain_mean(*inputs, mask=None, **options):
        """The weights are right, but the context is the plain mean of the memory. They should weigh the rows."""
        return step(*inputs, mask, **options, mix=lambda a, m: m.mean(axis=-2))

    @known.add(
        "averaged twice",
        hint="The weights sum to 1. Does their weighted sum have to be divided by anything?",
        more="By which number would your context have to be multiplied, and how many rows does the memory have?",
        section=section,
    )
    def mean_of_weighted(*inputs, mask=None, **options):
        """The weighted rows are averaged where they should be added, so the context is S times too small."""
        return step(*inputs, mask, **options, mix=lambda a, m: mix(a, m) / m.shape[-2])

    @known.add(
        "the context is the best row alone",
        hint="The second-best row has a weight too. What is it for?",
        more="Imagine two rows with a weight of 0.5 each. Where should the context lie?",
        section=section,
    )
    def best_row(*inputs, mask=None, **options):
        """The weights are right, but the context is the row with the largest one. It is a mixture of all rows."""
        return step(*inputs, mask, **options, mix=lambda a, m: mix(np.eye(a.shape[-1])[a.argmax(-1)], m))

    @known.add(
        "the context is the last row of the memory",
        hint="A network without attention has one vector for the whole sentence. What does yours have?",
        more="Change the first row of the memory and leave all else. Should the context change?",
        section=section,
    )
    def last_row(*inputs, mask=None, **options):
        """The weights are right, but the context is the memory's last row, as without attention. It is a mixture."""
        return step(*inputs, mask, **options, mix=lambda a, m: m[..., -1, :])

    @known.add(
        "the scores mix the memory, not the weights",
        hint="You have scores and you have weights. Which of them mix the rows of the memory?",
        more="A weighted mean lies between the rows of the memory, never beyond them. Does yours?",
        section=section,
    )
    def context_of_scores(*inputs, mask=None, **options):
        """The weights come back right, but the context was made with the scores, from before the softmax."""
        new, found, _ = step(*inputs, mask, **options, weigh=closed)
        return new, found, step(*inputs, mask, **options)[2]

    @known.add(
        "right for one sentence, wrong for a batch",
        hint="In a batch each sentence has its own weights and its own memory. Which axis is the batch's in each line?",
        more="Print the shape of every array in turn, first without a batch, then for 3 sentences. Where do they part? "
        "Count the axes from the end.",
        section=section,
    )
    def one_sentence_only(*inputs, mask=None, **options):
        """Without a batch the step is right. With one the shapes do not fit: somewhere its axis is in the way."""
        return step(*inputs, mask, **options, mix=lambda a, m: a @ m)

    @known.add(
        "the weighted sum runs over the batch",
        hint="The context of a sentence is made of the rows of its own memory. Along which axis do they lie?",
        more="Print the shapes of the weights, of the memory and of your context for 3 sentences of 5 tokens. Count "
        "the axis of the sum from the end.",
        section=section,
    )
    def summed_over_batch(*inputs, mask=None, **options):
        """With one sentence alone the first axis holds its rows. In a batch it holds the sentences, and is added up."""
        return step(*inputs, mask, **options, mix=lambda a, m: (a[..., None] * m).sum(axis=0))


def cell_mistakes(known: Mistakes, step: Step, section: Section) -> None:
    """Add the mistakes in Elman's cell."""

    @known.add(
        "the old state is returned",
        hint="Which state comes first in what you return: the one from before the cell, or the one from after it?",
        more="The next step of the decoder will start from the state that you return. Would it ever move?",
        section=section,
    )
    def old_state(*inputs, mask=None, **options):
        """The first result is the state that came in. It should be the new one, from the cell."""
        _, context, weights = step(*inputs, mask, **options)
        return inputs[1], context, weights

    @known.add(
        "the old state is added to the new one",
        hint="The tanh has the last word in this cell. What do you add after it?",
        more="A state of this cell lies between -1 and 1. Does yours?",
        section=RECURRENCE,
    )
    def residual(*inputs, mask=None, **options):
        """The cell's result is added to the old state. It replaces the old state."""
        return step(*inputs, mask, **options, cell=lambda x, s, p: s + cell(x, s, p))

    @known.add(
        "the cell forgets the old state",
        hint="A cell reads two things. Which of them is the past?",
        more="Change the old state and keep the rest of the cell's input. Should the new state change?",
        section=RECURRENCE,
    )
    def no_recurrence(*inputs, mask=None, **options):
        """The new state does not depend on the old one. The old state enters the cell too, through its own matrix."""
        return step(*inputs, mask, **options, cell=lambda x, s, p: cell(x, 0 * s, p))

    @known.add(
        "the whole side of the old state is missing in the cell",
        hint="A cell reads two things, each with a matrix and a bias of its own. Which of them is the past?",
        more="Count the terms inside your tanh. There should be two products and two biases.",
        section=RECURRENCE,
    )
    def no_hidden_side(*inputs, mask=None, **options):
        """The old state and its bias are missing in the cell. The new state is made from both sides."""
        return step(*inputs, mask, **options, cell=lambda x, s, p: np.tanh(x @ p["w_ih"].T + p["b_ih"]))

    @known.add(
        "the cell has no tanh",
        hint="What keeps a state between -1 and 1?",
        more="Print the largest number of your new state. What does the last operation of the cell allow?",
        section=RECURRENCE,
    )
    def linear_cell(*inputs, mask=None, **options):
        """The cell adds everything up and stops there. A tanh comes last."""
        return step(*inputs, mask, **options, cell=inside)

    @known.add(
        "the cell ends in a sigmoid",
        hint="A state may be negative. Can yours?",
        more="Feed 0 to the last function of your cell. The right one gives 0 back.",
        section=RECURRENCE,
    )
    def sigmoid_cell(*inputs, mask=None, **options):
        """The cell ends in a sigmoid, so that its state is never negative. The task asks for the tanh."""
        return step(*inputs, mask, **options, cell=lambda x, s, p: 1 / (1 + np.exp(-inside(x, s, p))))

    @known.add(
        "the cell ends in a ReLU",
        hint="May a number of the state be negative? And can it grow beyond 1?",
        more="Feed -1 and 2 to your last function. The right one keeps the sign and stays between -1 and 1.",
        section=RECURRENCE,
    )
    def relu_cell(*inputs, mask=None, **options):
        """In the cell negative sums become 0, and large ones stay large. The task asks for the tanh."""
        return step(*inputs, mask, **options, cell=lambda x, s, p: np.maximum(inside(x, s, p), 0))

    @known.add(
        "the cell has no bias",
        hint="Which of the parameters did you not use?",
        more="In the chapter's example the biases are 0, so that nothing is missed there. Cross off every name in "
        "params that you have used.",
        section=RECURRENCE,
    )
    def no_bias(*inputs, mask=None, **options):
        """Both biases of the cell are left out. They are added inside the tanh."""
        return step(*inputs, mask, **options, cell=cell_without_bias)

    @known.add(
        "one bias is left out (b_hh)",
        hint="How many biases does the cell have?",
        more="In the chapter's example the biases are 0, so that nothing is missed there. Cross off every name in "
        "params that you have used.",
        section=RECURRENCE,
    )
    def no_b_hh(*inputs, mask=None, **options):
        """The bias of the old state's side is left out. Both biases are added inside the tanh."""
        return step(*inputs, mask, **options, cell=lambda x, s, p: np.tanh(inside(x, s, p) - p["b_hh"]))

    @known.add(
        "one bias is left out (b_ih)",
        hint="How many biases does the cell have?",
        more="In the chapter's example the biases are 0, so that nothing is missed there. Cross off every name in "
        "params that you have used.",
        section=RECURRENCE,
    )
    def no_b_ih(*inputs, mask=None, **options):
        """The bias of the input's side is left out. Both biases are added inside the tanh."""
        return step(*inputs, mask, **options, cell=lambda x, s, p: np.tanh(inside(x, s, p) - p["b_ih"]))

    @known.add(
        "the biases are outside of the tanh",
        hint="What is squashed: the products alone, or the products with the biases?",
        more="A state of this cell lies between -1 and 1. Does yours, however large the biases are?",
        section=RECURRENCE,
    )
    def bias_outside(*inputs, mask=None, **options):
        """The biases are added after the tanh. They belong inside."""

        def plain(x, s, p):
            return np.tanh(x @ p["w_ih"].T + s @ p["w_hh"].T) + p["b_ih"] + p["b_hh"]

        return step(*inputs, mask, **options, cell=plain)

    @known.add(
        "the state's matrix is used as it is stored",
        hint="The cell's matrices are stored as torch stores them. Which of their two axes belongs to the result?",
        more="This matrix is square, so that no shape complains. Compare what you do with it and with the other "
        "matrix.",
        section=RECURRENCE,
    )
    def w_hh_untransposed(*inputs, mask=None, **options):
        """The matrix of the old state is not transposed. Both matrices of the cell have one row for each result."""
        return step(*inputs, mask, **options, cell=lambda x, s, p: cell(x, s, {**p, "w_hh": p["w_hh"].T}))

    @known.add(
        "the input's matrix is used as it is stored",
        hint="The cell's matrices are stored as torch stores them. Which of their two axes belongs to the result?",
        more="The matrix has a row for each number of the state, a column for each number that comes in. Which of the "
        "two meets your vector?",
        section=RECURRENCE,
    )
    def w_ih_untransposed(*inputs, mask=None, **options):
        """The matrix of the input is not transposed. Both matrices of the cell have one row for each result."""
        return step(*inputs, mask, **options, cell=lambda x, s, p: cell(x, s, {**p, "w_ih": p["w_ih"].T}))

    @known.add(
        "both matrices of the cell are used as they are stored",
        hint="The cell's matrices are stored as torch stores them. Which of their two axes belongs to the result?",
        more="The first matrix has a row for each number of the state, a column for each number that comes in. Which "
        "of the two meets your vector?",
        section=RECURRENCE,
    )
    def cell_untransposed(*inputs, mask=None, **options):
        """The matrices of the cell are not transposed. Both have one row for each result."""
        return step(
            *inputs, mask, **options, cell=lambda x, s, p: cell(x, s, {**p, "w_ih": p["w_ih"].T, "w_hh": p["w_hh"].T})
        )


def result_mistakes(known: Mistakes, step: Step, section: Section) -> None:
    """Add the mistakes in what is returned."""

    @known.add(
        "two results instead of three",
        hint="Compare your return line with the one in the task.",
        more="The next step starts from the new state, and the weights show what was read. Which is missing?",
        section=section,
    )
    def two_results(*inputs, mask=None, **options):
        """Two arrays come back instead of three. The weights are the last of them."""
        return step(*inputs, mask, **options)[:2]

    @known.add(
        "one result instead of three",
        hint="Compare your return line with the one in the task.",
        more="The next step starts from the new state, and the weights show what was read. Which is missing?",
        section=section,
    )
    def state_only(*inputs, mask=None, **options):
        """One array comes back instead of three. The new state is the first of them."""
        return step(*inputs, mask, **options)[0]

    @known.add(
        "the weights keep an axis of length 1",
        hint="How many weights does one sentence have, and how many axes does that take?",
        more="The axis was there so that the state could meet all rows. When is it no longer needed?",
        section=section,
    )
    def weights_with_query_axis(*inputs, mask=None, **options):
        """The weights come back as (B, 1, S): the axis of the one query is still there. It should be (B, S)."""
        new, context, weights = step(*inputs, mask, **options)
        return new, context, weights[..., None, :]

    @known.add(
        "the weights keep a last axis of length 1",
        hint="How many weights does one sentence have, and how many axes does that take?",
        more="The axis was there so that a weight could multiply a whole row. When is it no longer needed?",
        section=section,
    )
    def weights_as_column(*inputs, mask=None, **options):
        """The weights come back as (B, S, 1): an axis that let them multiply rows is still there. They are (B, S)."""
        new, context, weights = step(*inputs, mask, **options)
        return new, context, weights[..., None]

    @known.add(
        "two results keep an axis of length 1",
        hint="There is one query for each sentence. Is its axis still there in your results?",
        more="The axis was there so that the state could meet all rows. When is it no longer needed?",
        section=section,
    )
    def query_axis_kept(*inputs, mask=None, **options):
        """Two results come back with the axis of the one query, as (B, 1, ...). That axis should be gone."""
        new, context, weights = step(*inputs, mask, **options)
        return new, context[..., None, :], weights[..., None, :]

    @known.add(
        "axes of length 1 are removed, whichever they are",
        hint="With a batch of one sentence, which axes have length 1, and which of them should stay?",
        more="Compare the shapes of your results for one sentence with those for three. How many numbers should "
        "differ?",
        section=section,
    )
    def squeezed(*inputs, mask=None, **options):
        """A squeeze without an axis takes away the batch where it is one sentence, or the tokens where there is one."""
        return tuple(np.squeeze(x) for x in step(*inputs, mask, **options))

    @known.add(
        "the state that came in is overwritten",
        hint="Who else may still need the old state?",
        more="Look for a line that assigns into an array, or an operator that changes its left side. A new array "
        "costs nothing.",
        section=RECURRENCE,
    )
    def writes_into_state(*inputs, mask=None, **options):
        """The new state is written into the array of the old one, which is the caller's. Make a new array."""
        inputs[1][...], context, weights = step(*inputs, mask, **options)
        return inputs[1], context, weights


def mask_mistakes(known: Mistakes, step: Step) -> None:
    """Add the mistakes of those who have a mask."""

    @known.add(
        "the mask is not used",
        hint="Your function takes a mask. Where does it meet the scores?",
        more="Look at the weights where the mask is False. What should be there?",
        section=WEIGHTS_OF_ZERO,
    )
    def mask_ignored(*inputs, mask=None, **options):
        """A mask is accepted, and everything is attended to all the same."""
        return step(*inputs, None, **options)

    @known.add(
        "the mask is upside down",
        hint="Does True mean that the decoder may attend, or that it may not?",
        more="Look at the weights where the mask is True. Are they 0 in yours?",
        section=TRUE_OR_FALSE,
    )
    def mask_inverted(*inputs, mask=None, **options):
        """The decoder attends where it may not. In this course True means that it may."""
        return step(*inputs, mask if mask is None else ~mask, **options)

    @known.add(
        "masked after the softmax",
        hint="Do the weights that are left still sum to 1?",
        more="Add up the weights of a sentence with padding. What is missing went to places that were struck out too "
        "late.",
        section=WEIGHTS_OF_ZERO,
    )
    def mask_after_softmax(*inputs, mask=None, **options):
        """Weights are set to 0 after the softmax, so that those that are left no longer sum to 1."""
        return step(*inputs, mask, **options, weigh=lambda e, mask: weigh(e, None) * (1 if mask is None else mask))

    @known.add(
        "masked scores are 0",
        hint="What is the exponential of 0?",
        more="Look at the weights where the mask is False. Which score makes a weight of exactly 0?",
        section=WEIGHTS_OF_ZERO,
    )
    def mask_makes_zero_scores(*inputs, mask=None, **options):
        """Scores are set to 0 where the mask is False. A score of 0 is like any other and takes weight."""
        return step(*inputs, mask, **options, weigh=lambda e, mask: weigh(closed(e, mask, 0), None))

    @known.add(
        "True and False are added to the scores",
        hint="What does adding True to a score do, and what should False do to it?",
        more="Look at the weights where the mask is False. Which score makes a weight of exactly 0?",
        section=TRUE_OR_FALSE,
    )
    def mask_added(*inputs, mask=None, **options):
        """The mask is added as the numbers 1 and 0. Where it is False, a score has to be closed altogether."""
        return step(*inputs, mask, **options, weigh=lambda e, mask: weigh(e if mask is None else e + mask, None))

    @known.add(
        "nan where there is nothing to attend to",
        hint="What is the sum of the exponentials of a sentence that is masked altogether?",
        more="By convention such a sentence has weights 0 and the context 0. Which division has to be guarded?",
        section=EMPTY_ROWS,
    )
    def nan_for_empty(*inputs, mask=None, **options):
        """Where a sentence has nothing to attend to, 0 is divided by 0, and the weights are nan. They should be 0."""
        return step(
            *inputs, mask, **options, weigh=lambda e, mask: over(-1, e - closed(e, mask).max(-1)[..., None], mask)
        )

    @known.add(
        "equal weights where there is nothing to attend to",
        hint="A very low score for every row: what does the softmax make of scores that are all equal?",
        more="By convention such a sentence has weights 0 and the context 0. Look at yours.",
        section=EMPTY_ROWS,
    )
    def uniform_for_empty(*inputs, mask=None, **options):
        """A sentence with nothing to attend to gets equal weights on what is forbidden. They should all be 0."""
        return step(*inputs, mask, **options, weigh=lambda e, mask: weigh(closed(e, mask, -1e9), None))


def order_mistakes(known: Mistakes, step: Step, section: Section, names: tuple[str, str, str]) -> None:
    """Add the mistakes of returning the right results in another order."""
    for order in ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
        came = [names[i] for i in order]
        known.add(
            "the results are in the wrong order",
            hint="Compare your return line with the one in the task.",
            more="Write down the widths of the three results in the order in which they come back.",
            section=section,
        )(_reordered(step, order, came, names))


def _reordered(step: Step, order: tuple[int, ...], came: list[str], names: tuple[str, str, str]) -> Step:
    def implementation(*inputs, mask=None, **options):
        results = step(*inputs, mask, **options)
        return tuple(results[i] for i in order)

    implementation.__name__ = "order_" + "_".join(came).replace("~", "")
    implementation.__doc__ = (
        f"All three are right, but they come back as {', '.join(came)}. The order is {', '.join(names)}."
    )
    return implementation


def add_shared(known: Mistakes, step: Step, section: Section) -> None:
    """Add the mistakes in the pieces that both decoders have."""
    for add in (score_mistakes, weight_mistakes, context_mistakes, cell_mistakes, result_mistakes):
        add(known, step, section)


def add_pairs(known: Mistakes, step: Step, first: str, pieces: dict[str, Any], seconds: tuple[str, ...]) -> None:
    """Add pairs of mistakes: the first, which is made by these pieces, with each of the seconds."""
    one = next(mistake for mistake in known if mistake.id == first)
    others = Mistakes()
    add_shared(others, partial(step, **pieces), one.section)
    known.extend(
        replace(
            other,
            id=f"{first}-and-{other.id}",
            title=f"two things: {one.title}, and {other.title}",
            section=one.section,
            says=f"{one.says} And there is a second thing. {other.says}",
            hint=f"First: {one.hint} Second: {other.hint}",
            more=f"First: {one.more} Second: {other.more}",
        )
        for other in others
        if other.id in seconds
    )
