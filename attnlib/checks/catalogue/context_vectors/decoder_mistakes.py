"""The mistakes that both decoders can make: each replaces a piece of a step, or what the step returns."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.catalogue.context_vectors.decoder_steps import (
    additive,
    cell,
    cell_without_bias,
    fill_masked,
    mix,
    normalise_over,
    pre_activation,
    project,
    rows,
    weigh,
    without_tanh,
)
from attnlib.checks.catalogue.context_vectors.sections import (
    EMPTY_ROWS,
    RECURRENCE,
    THREE_WORDS,
    TRUE_OR_FALSE,
    WEIGHTS_OF_ZERO,
)
from attnlib.checks.catalogue.self_attention.sections import OVERFLOW, SOFTMAX
from attnlib.checks.exercise import Mistake, Section

Step = Callable[..., Any]

# The most frequent mistakes, by id, for pairs of mistakes.
IN_SCORES = ("no-tanh", "tanh-after-v", "no-v", "scaled-by-hidden")
IN_WEIGHTS = ("softmax-over-batch", "no-softmax")
IN_CELL = ("no-bias", "linear-cell", "w-hh-untransposed")


def run_step(step: Step, *inputs, mask, **options):
    """Run the step as it is."""
    return step(*inputs, mask, **options)


@dataclass(frozen=True)
class StepMistake:
    """A mistake in a step of a decoder.

    Attributes:
        id, title, says, hint, more: as those of :class:`attnlib.checks.exercise.Mistake`.
        section: what to reread; without it, the section that the exercise gives.
        pieces: the pieces of the step that it replaces, by the name of the step's argument.
        run: runs the step and changes what goes in or comes out.
    """

    id: str
    title: str
    says: str
    hint: str
    more: str
    section: Section | None = None
    pieces: dict[str, Any] = field(default_factory=dict)
    run: Callable[..., Any] = run_step

    def made_in(self, step: Step, section: Section) -> Mistake:
        """Return the mistake as one of an exercise whose step and section are given."""
        wrong = partial(step, **self.pieces)

        def implementation(*inputs, mask=None, **options):
            return self.run(wrong, *inputs, mask=mask, **options)

        where = self.section or section
        return Mistake(self.id, self.title, self.says, self.hint, self.more, where, implementation)


def change_results(change: Callable[..., Any]) -> Callable[..., Any]:
    """Return what runs a step and then changes its state, context and weights."""

    def run(step, *inputs, mask, **options):
        return change(*step(*inputs, mask, **options))

    return run


def return_scores(step, *inputs, mask, **options):
    """Return the scores in place of the weights."""
    seen = []

    def remember(scores, mask):
        seen.append(fill_masked(scores, mask))
        return weigh(scores, mask)

    state, context, _ = step(*inputs, mask, **options, weigh=remember)
    return state, context, seen[0]


def mix_with_scores(step, *inputs, mask, **options):
    """Return a context that is made with the scores, and the right weights."""
    state, context, _ = step(*inputs, mask, **options, weigh=fill_masked)
    return state, context, step(*inputs, mask, **options)[2]


def return_old_state(step, *inputs, mask, **options):
    """Return the state that came in, in place of the new one."""
    _, context, weights = step(*inputs, mask, **options)
    return inputs[1], context, weights


def write_into_state(step, *inputs, mask, **options):
    """Write the new state into the array of the old one."""
    inputs[1][...], context, weights = step(*inputs, mask, **options)
    return inputs[1], context, weights


def ignore_mask(step, *inputs, mask, **options):
    """Run the step without a mask."""
    return step(*inputs, None, **options)


def invert_mask(step, *inputs, mask, **options):
    """Run the step with the opposite mask."""
    return step(*inputs, mask if mask is None else ~mask, **options)


SCORE_MISTAKES = (
    StepMistake(
        "swapped-projections",
        "the two projections are swapped",
        says=(
            "The state goes through the keys' matrix, and the memory through the query's. It should be the other way "
            "round."
        ),
        hint="Which of the two matrices belongs to the state, and which to the memory?",
        more=(
            "Follow the state through the score and write down by which matrix it is multiplied. Do the same "
            "for the memory."
        ),
        pieces={"additive": lambda q, m, p: additive(q, m, {**p, "w_query": p["w_key"], "w_key": p["w_query"]})},
    ),
    StepMistake(
        "keys-by-query-matrix",
        "the keys go through the query's matrix",
        says="Both sides are multiplied by the query's matrix. The memory has one of its own.",
        hint="There are two matrices in the score. Is each of them used once?",
        more=(
            "The memory has a matrix of its own. Look for the line that projects it, and read the name of the "
            "matrix there."
        ),
        pieces={"additive": lambda q, m, p: additive(q, m, {**p, "w_key": p["w_query"]})},
    ),
    StepMistake(
        "query-by-key-matrix",
        "the query goes through the keys' matrix",
        says="Both sides are multiplied by the keys' matrix. The state has one of its own.",
        hint="There are two matrices in the score. Is each of them used once?",
        more=(
            "The state has a matrix of its own. Look for the line that projects it, and read the name of the "
            "matrix there."
        ),
        pieces={"additive": lambda q, m, p: additive(q, m, {**p, "w_query": p["w_key"]})},
    ),
    StepMistake(
        "query-not-projected",
        "the query is not projected",
        says="The state is added as it is. It should go through a matrix of its own first.",
        hint="The state and the memory may have different widths. What brings the state into the space of the sum?",
        more="Count the matrices in your score. There should be two, one for each side, before anything is added.",
        pieces={"additive": lambda q, m, p: np.tanh(rows(q) + m @ p["w_key"]) @ p["v"]},
    ),
    StepMistake(
        "keys-not-projected",
        "the keys are not projected",
        says="The rows of the memory are added as they are. They should go through a matrix of their own first.",
        hint="The state and the memory may have different widths. What brings the memory into the space of the sum?",
        more="Count the matrices in your score. There should be two, one for each side, before anything is added.",
        pieces={"additive": lambda q, m, p: np.tanh(rows(q @ p["w_query"]) + m) @ p["v"]},
    ),
    StepMistake(
        "query-matrix-transposed",
        "the query's matrix is transposed",
        says="The query's matrix is transposed before it is used. It is stored in such a way that a row vector fits.",
        hint="Vectors are rows here. On which side of its matrix is the state?",
        more=(
            "The query's matrix has one row for each number of the state. Compare its shape with the one that you use."
        ),
        pieces={"additive": lambda q, m, p: additive(q, m, {**p, "w_query": p["w_query"].T})},
    ),
    StepMistake(
        "key-matrix-transposed",
        "the keys' matrix is transposed",
        says=(
            "The keys' matrix is transposed before it is used. It is stored so that the memory's rows fit as they are."
        ),
        hint="Vectors are rows here. On which side of its matrix is a row of the memory?",
        more=(
            "The keys' matrix has one row for each number in a row of the memory. Compare its shape with the "
            "one that you use."
        ),
        pieces={"additive": lambda q, m, p: additive(q, m, {**p, "w_key": p["w_key"].T})},
    ),
    StepMistake(
        "both-matrices-transposed",
        "both matrices of the score are transposed",
        says="The two matrices of the score are transposed, as those of the cell are. They are stored ready for use.",
        hint="Vectors are rows here. On which side of its matrix is a vector?",
        more=(
            "The cell's matrices are stored as torch stores them; those of the score are not. Compare the shapes in "
            "the task."
        ),
        pieces={"additive": lambda q, m, p: additive(q, m, {**p, "w_query": p["w_query"].T, "w_key": p["w_key"].T})},
    ),
    StepMistake(
        "no-tanh",
        "the tanh is missing in the score",
        says="The sum goes straight to v, without the tanh. The state then shifts all scores equally, which has no "
        "effect.",
        hint="What else comes between the sum of the two projections and the vector v?",
        more=(
            "Without it, the query adds the same number to every score. Work out what a softmax makes of "
            "that: do your weights change with the state?"
        ),
        section=THREE_WORDS,
        pieces={"additive": without_tanh},
    ),
    StepMistake(
        "tanh-after-v",
        "the tanh comes after v",
        says="The score itself is squashed, so that it lies between -1 and 1. The tanh belongs on the sum, before v.",
        hint="What is squashed: the hidden numbers, or the finished score?",
        more=(
            "In the example worked by hand, the score of *Nov* is 3.046. Can a number that has just left a tanh be so "
            "large?"
        ),
        section=THREE_WORDS,
        pieces={"additive": lambda q, m, p: np.tanh(sum(project(q, m, p)) @ p["v"])},
    ),
    StepMistake(
        "sigmoid-score",
        "a sigmoid in the score",
        says="The hidden numbers are squashed by a sigmoid, to between 0 and 1. The task asks for the tanh.",
        hint="Which function squashes to the range from -1 to 1?",
        more="Feed 0 to your function. The right one gives 0 back.",
        pieces={"additive": lambda q, m, p: 1 / (1 + np.exp(-sum(project(q, m, p)))) @ p["v"]},
    ),
    StepMistake(
        "relu-score",
        "negative hidden numbers are cut off",
        says="Negative hidden numbers become 0, and large ones stay large. The task asks for the tanh.",
        hint="Which function squashes to the range from -1 to 1?",
        more=(
            "In the example worked by hand, *Nov* has the hidden numbers -0.762 and 0.762. What would become of the "
            "negative one in yours?"
        ),
        section=THREE_WORDS,
        pieces={"additive": lambda q, m, p: np.maximum(sum(project(q, m, p)), 0) @ p["v"]},
    ),
    StepMistake(
        "no-v",
        "v is left out",
        says="The hidden numbers are added up as they are. Each has its own weight, learned, in the vector v.",
        hint="What turns the hidden numbers into one: a plain sum, or a weighted sum?",
        more=(
            "In the example worked by hand, *Nov* has the hidden numbers -0.762 and 0.762. What is their plain sum, "
            "and what is the score?"
        ),
        section=THREE_WORDS,
        pieces={"additive": lambda q, m, p: np.tanh(sum(project(q, m, p))).sum(axis=-1)},
    ),
    StepMistake(
        "v-inside-tanh",
        "v is inside the tanh",
        says="The sums are multiplied by v and then squashed. They should be squashed first.",
        hint="Which comes first, the tanh or the product with v?",
        more="In the example worked by hand, the tanh is taken of -1 and 1 for *Nov*. Which numbers do you take it of?",
        section=THREE_WORDS,
        pieces={"additive": lambda q, m, p: np.tanh(sum(project(q, m, p)) * p["v"]).sum(axis=-1)},
    ),
    StepMistake(
        "product-score",
        "multiplied, not added",
        says="The two projections are multiplied number by number. They should be added.",
        hint="Why is this score called additive?",
        more=(
            "In the example worked by hand, the two sides are (-1, 0) and (1, 0) for the first word. What goes into "
            "the tanh?"
        ),
        section=THREE_WORDS,
        pieces={"additive": lambda q, m, p: np.tanh(np.multiply(*project(q, m, p))) @ p["v"]},
    ),
    StepMistake(
        "difference-score",
        "the keys are subtracted from the query",
        says="The projected memory is subtracted from the projected state. They should be added.",
        hint="Why is this score called additive?",
        more=(
            "In the example worked by hand, the two sides are (-1, 0) and (1, 0) for the first word. What goes into "
            "the tanh?"
        ),
        section=THREE_WORDS,
        pieces={"additive": lambda q, m, p: np.tanh(np.subtract(*project(q, m, p))) @ p["v"]},
    ),
    StepMistake(
        "keys-minus-query",
        "the query is subtracted from the keys",
        says="The projected state is subtracted from the projected memory. They should be added.",
        hint="Why is this score called additive?",
        more="In the example worked by hand, the two sides are (-1, 0) and (0, 1) for *Nov*. What goes into the tanh?",
        section=THREE_WORDS,
        pieces={"additive": lambda q, m, p: np.tanh(np.subtract(*project(q, m, p)[::-1])) @ p["v"]},
    ),
    StepMistake(
        "dot-of-projections",
        "a dot product of the projections",
        says="The score is the dot product of the two projections. They should be added, squashed, and multiplied by "
        "v.",
        hint="What is done with the two projections: are they multiplied, or added and squashed?",
        more="The vector v does not occur in your score. Where does it appear in the formula?",
        pieces={"additive": lambda q, m, p: np.multiply(*project(q, m, p)).sum(axis=-1)},
    ),
    StepMistake(
        "scaled-by-hidden",
        "scaled by the width of the hidden numbers",
        says=(
            "The scores are divided by the root of D_a, so the weights are flatter. The additive score is not scaled."
        ),
        hint="A scale belongs to dot products. Is there one in the additive score?",
        more=(
            "Feed the state of the example worked by hand to your score, and compare with 0, 3.046 and 1.523. By what "
            "factor do you differ?"
        ),
        section=THREE_WORDS,
        pieces={"additive": lambda q, m, p: additive(q, m, p) / len(p["v"]) ** 0.5},
    ),
    StepMistake(
        "scaled-by-state",
        "scaled by the width of the state",
        says="The scores are divided by the root of the state's width. The additive score is not scaled.",
        hint="A scale belongs to dot products. Is there one in the additive score?",
        more=(
            "Feed the state of the example worked by hand to your score, and compare with 0, 3.046 and 1.523. By what "
            "factor do you differ?"
        ),
        section=THREE_WORDS,
        pieces={"additive": lambda q, m, p: additive(q, m, p) / q.shape[-1] ** 0.5},
    ),
    StepMistake(
        "scaled-by-memory",
        "scaled by the width of the memory",
        says="The scores are divided by the root of the memory's width. The additive score is not scaled.",
        hint="A scale belongs to dot products. Is there one in the additive score?",
        more=(
            "Feed the state of the example worked by hand to your score, and compare with 0, 3.046 and 1.523. By what "
            "factor do you differ?"
        ),
        section=THREE_WORDS,
        pieces={"additive": lambda q, m, p: additive(q, m, p) / m.shape[-1] ** 0.5},
    ),
    StepMistake(
        "keys-alone",
        "the state has no say in the weights",
        says="Every state gets the same weights: it is not added to the keys inside the tanh, where it would matter.",
        hint="Change the state and keep the memory. Should the weights change?",
        more=(
            "Look at what goes into the tanh: it should be the sum of both projections. A term outside "
            "of it is the same for every row, and a softmax does not see it."
        ),
        pieces={"additive": lambda q, m, p: np.tanh(m @ p["w_key"]) @ p["v"]},
    ),
    StepMistake(
        "no-new-axis",
        "an axis of size 1 is missing, or not where it belongs",
        says=(
            "With one sentence the step is right. With more, states and rows lack an axis of size 1 in the right place."
        ),
        hint="The memory has an axis for its rows. What does an array without that axis need, to be combined with all "
        "of them?",
        more=(
            "Write the shapes of a product or a sum one below the other, for 3 sentences of 5 tokens. Which sizes line "
            "up?"
        ),
        pieces={"additive": lambda q, m, p: np.tanh(q @ p["w_query"] + m @ p["w_key"]) @ p["v"]},
    ),
)

WEIGHT_MISTAKES = (
    StepMistake(
        "softmax-over-batch",
        "the softmax runs over the batch",
        says="The sentences of the batch compete for each place. The rows of one memory should compete.",
        hint="Who competes with whom: the rows of one memory, or the sentences of the batch?",
        more=(
            "Add up your weights along each axis in turn. Every sentence should have a sum of 1 over its own tokens."
        ),
        pieces={"weigh": lambda e, mask: attnlib.softmax(fill_masked(e, mask), 0)},
    ),
    StepMistake(
        "softmax-over-all",
        "the softmax runs over everything",
        says=(
            "All weights of the batch together sum to 1. Every sentence should have weights that sum to 1 on its own."
        ),
        hint="How many sums of 1 should there be: one, or one for each sentence?",
        more="Add up the weights of the first sentence alone. They should sum to 1 whatever else is in the batch.",
        pieces={"weigh": lambda e, mask: normalise_over(None, e - e.max(), mask)},
    ),
    StepMistake(
        "softmax-from-front",
        "the softmax axis is counted from the front",
        says="With one batch dimension axis 1 is the last one. With two, or with none, it is not.",
        hint="Which axis number means the last one, however many there are?",
        more="With a batch in front axis 1 is the last. Which one is it with two batch dimensions, and with none?",
        section=SOFTMAX,
        pieces={"weigh": lambda e, mask: attnlib.softmax(fill_masked(e, mask), 1)},
    ),
    StepMistake(
        "softmax-of-one",
        "every weight is 1",
        says="The softmax ran along an axis of length 1, so every weight is 1. It should run along the memory.",
        hint="Along which axis did your softmax run, and how many numbers lie along it?",
        more="Print the shape of the scores just before the softmax. The softmax of a single number is always 1.",
        pieces={"weigh": lambda e, mask: np.ones_like(e) if mask is None else mask * 1.0},
    ),
    StepMistake(
        "no-softmax",
        "the softmax is missing",
        says="The scores themselves are used as weights. They may be negative, and nothing makes them sum to 1.",
        hint="What turns scores, which may be negative, into weights that sum to 1?",
        more="Add up the three weights of the chapter's example. What should the sum be?",
        pieces={"weigh": lambda e, mask: fill_masked(e, mask, 0)},
    ),
    StepMistake(
        "softmax-twice",
        "two softmaxes",
        says="A softmax is taken of the weights once more, so they come out nearly equal. Once is enough.",
        hint="How often is a softmax taken between the scores and the weights?",
        more="Weights that sum to 1 went into a second softmax. How far apart can its results be?",
        pieces={"weigh": lambda e, mask: weigh(weigh(e, mask), None)},
    ),
    StepMistake(
        "not-normalised",
        "the weights are not normalised",
        says="The exponentials of the scores are used as weights, but nothing makes them sum to 1.",
        hint="What has to be true of the sum of the weights, and which division makes it so?",
        more="In the chapter the exponentials of the three words are divided by a number, by hand. Which one?",
        pieces={"weigh": lambda e, mask: np.exp(fill_masked(e, mask))},
    ),
    StepMistake(
        "divided-by-sum",
        "divided by the sum, without the exponential",
        says="The scores themselves are divided by their sum. It should be their exponentials.",
        hint="Scores may be negative. What makes them positive before they are divided by their sum?",
        more="A score of 0 is a score like any other. What is its weight in yours, and what is its exponential?",
        pieces={"weigh": lambda e, mask: fill_masked(e, mask, 0) / fill_masked(e, mask, 0).sum(-1)[..., None]},
    ),
    StepMistake(
        "sigmoid-weights",
        "each score on its own (sigmoid)",
        says="Each score is squashed on its own, and nothing makes the weights of a sentence sum to 1.",
        hint="In a softmax, raising one score lowers the weight of every other. Does it in yours?",
        more=(
            "Add up the weights of one sentence. Then look for the step that should have looked at all its "
            "scores together."
        ),
        section=SOFTMAX,
        pieces={"weigh": lambda e, mask: 1 / (1 + np.exp(-fill_masked(e, mask)))},
    ),
    StepMistake(
        "hard",
        "all or nothing (argmax)",
        says="The best row of the memory gets all the weight. The softmax gives every row its share.",
        hint="The second-best row still gets a share. Which function gives it one?",
        more="By hand, *Nov* gets the largest part, but not all of it. Who gets the rest?",
        pieces={"weigh": lambda e, mask: np.eye(e.shape[-1])[fill_masked(e, mask).argmax(-1)]},
    ),
    StepMistake(
        "uniform",
        "all rows count the same",
        says="Every row of the memory gets the same weight, whatever the state: this is the plain mean.",
        hint="Where in your formula do the scores enter the weights?",
        more="Print the scores of one sentence. Are they all equal, or are they different and never used?",
        pieces={"weigh": lambda e, mask: weigh(0 * e, mask)},
    ),
    StepMistake(
        "overflow",
        "the softmax overflows",
        says="The weights are right for small scores. For large ones exp overflows, and the weights become nan.",
        hint="Does your softmax subtract the maximum of each row? Fix it there, and this is fixed too.",
        more="Try your softmax alone on the scores 3000 and 2999. The weights should be 0.731 and 0.269.",
        section=OVERFLOW,
        pieces={"weigh": lambda e, mask: normalise_over(-1, e, mask)},
    ),
    StepMistake(
        "global-shift",
        "the softmax uses one maximum for the whole batch",
        says="One maximum for the whole batch shifts a sentence of much smaller scores so far down that it gives 0/0.",
        hint="Every sentence needs its own maximum in the softmax. Fix it there, and this is fixed too.",
        more="Try your softmax alone on two rows, one around 3000 and one around -3000. Which row is lost?",
        section=OVERFLOW,
        pieces={"weigh": lambda e, mask: normalise_over(-1, e - e.max(), mask)},
    ),
    StepMistake(
        "returns-scores",
        "scores are returned as weights",
        says="The first two results are right, but the third holds the scores before the softmax, not the weights.",
        hint="Which of your arrays has rows that sum to 1?",
        more=(
            "The other two results are right, so the weights were there. Compare the name in your return line with the "
            "name of the weights."
        ),
        run=return_scores,
    ),
)

CONTEXT_MISTAKES = (
    StepMistake(
        "plain-sum",
        "a plain sum of the memory",
        says=(
            "The weights are right, but the rows of the memory are added without them. Multiply each row by its weight."
        ),
        hint="Each row of the memory has a weight. Where does it come in when you add the rows?",
        more="A weighted mean lies between the rows of the memory, never beyond them. Does yours?",
        pieces={"mix": lambda a, m: m.sum(axis=-2)},
    ),
    StepMistake(
        "plain-mean",
        "the plain mean of the memory",
        says="The weights are right, but the context is the plain mean of the memory. It should be the weighted mean.",
        hint="Each row of the memory has a weight. Where does it come in when you average the rows?",
        more="Where one weight is nearly 1, the context is nearly that row. Is yours, or is it always the same?",
        pieces={"mix": lambda a, m: m.mean(axis=-2)},
    ),
    StepMistake(
        "mean-of-weighted",
        "averaged twice",
        says="The weighted rows are averaged where they should be added, so the context is S times too small.",
        hint="The weights sum to 1. Does their weighted sum have to be divided by anything?",
        more="What number would your context have to be multiplied by, and how many rows does the memory have?",
        pieces={"mix": lambda a, m: mix(a, m) / m.shape[-2]},
    ),
    StepMistake(
        "best-row",
        "the context is the best row alone",
        says="The weights are right, but the context is the row with the largest one. It should be a mixture of all "
        "rows.",
        hint="The second-best row has a weight too. What is it for?",
        more="Imagine two rows with a weight of 0.5 each. Where should the context lie?",
        pieces={"mix": lambda a, m: mix(np.eye(a.shape[-1])[a.argmax(-1)], m)},
    ),
    StepMistake(
        "last-row",
        "the context is the last row of the memory",
        says=(
            "The weights are right, but the context is the memory's last row, as without attention. It should be a "
            "mixture."
        ),
        hint="A network without attention has one vector for the whole sentence. What does yours have?",
        more="Change the first row of the memory and leave everything else as it is. Should the context change?",
        pieces={"mix": lambda a, m: m[..., -1, :]},
    ),
    StepMistake(
        "context-of-scores",
        "the scores mix the memory, not the weights",
        says="The weights come back right, but the context was made with the scores, from before the softmax.",
        hint="You have scores and you have weights. Which of them mix the rows of the memory?",
        more="A weighted mean lies between the rows of the memory, never beyond them. Does yours?",
        run=mix_with_scores,
    ),
    StepMistake(
        "one-sentence-only",
        "right for one sentence, wrong for a batch",
        says="Without a batch the step is right. With one the shapes do not fit: somewhere its axis is in the way.",
        hint=(
            "In a batch each sentence has its own weights and its own memory. Which axis is the batch's in each line?"
        ),
        more=(
            "Print the shape of every array in turn, first without a batch, then for 3 sentences. Where do they "
            "diverge? Count the axes from the end."
        ),
        pieces={"mix": lambda a, m: a @ m},
    ),
    StepMistake(
        "summed-over-batch",
        "the weighted sum runs over the batch",
        says=(
            "With one sentence alone the first axis holds its rows. In a batch it holds the sentences, which you then "
            "add up."
        ),
        hint="The context of a sentence is made of the rows of its own memory. Along which axis do they lie?",
        more=(
            "Print the shapes of the weights, of the memory and of your context for 3 sentences of 5 tokens. "
            "Count the axis of the sum from the end."
        ),
        pieces={"mix": lambda a, m: (a[..., None] * m).sum(axis=0)},
    ),
)

CELL_MISTAKES = (
    StepMistake(
        "old-state",
        "the old state is returned",
        says="The first result is the state that came in. It should be the new one, from the cell.",
        hint="Which state comes first in what you return: the one from before the cell, or the one from after it?",
        more="The next step of the decoder will start from the state that you return. Would it ever move?",
        run=return_old_state,
    ),
    StepMistake(
        "residual",
        "the old state is added to the new one",
        says="The cell's result is added to the old state. It should replace the old state.",
        hint="The tanh is the last step of this cell. What do you add after it?",
        more="A state of this cell lies between -1 and 1. Does yours?",
        section=RECURRENCE,
        pieces={"cell": lambda x, s, p: s + cell(x, s, p)},
    ),
    StepMistake(
        "no-recurrence",
        "the cell forgets the old state",
        says="The new state does not depend on the old one, which should enter the cell too, through its own matrix.",
        hint="A cell reads two things. Which of them carries the past?",
        more="Change the old state and keep the rest of the cell's input. Should the new state change?",
        section=RECURRENCE,
        pieces={"cell": lambda x, s, p: cell(x, 0 * s, p)},
    ),
    StepMistake(
        "no-hidden-side",
        "the whole side of the old state is missing in the cell",
        says="The old state and its bias are missing in the cell. The new state should be made from both sides.",
        hint="A cell reads two things, each with a matrix and a bias of its own. Which of them carries the past?",
        more="Count the terms inside your tanh. There should be two products and two biases.",
        section=RECURRENCE,
        pieces={"cell": lambda x, s, p: np.tanh(x @ p["w_ih"].T + p["b_ih"])},
    ),
    StepMistake(
        "linear-cell",
        "the cell has no tanh",
        says="The cell adds everything up and stops there. A tanh should come last.",
        hint="What keeps a state between -1 and 1?",
        more="Print the largest number of your new state. What does the last operation of the cell allow?",
        section=RECURRENCE,
        pieces={"cell": pre_activation},
    ),
    StepMistake(
        "sigmoid-cell",
        "the cell ends in a sigmoid",
        says="The cell ends in a sigmoid, so that its state is never negative. The task asks for the tanh.",
        hint="A state may be negative. Can yours?",
        more="Feed 0 to the last function of your cell. The right one gives 0 back.",
        section=RECURRENCE,
        pieces={"cell": lambda x, s, p: 1 / (1 + np.exp(-pre_activation(x, s, p)))},
    ),
    StepMistake(
        "relu-cell",
        "the cell ends in a ReLU",
        says="In the cell negative sums become 0, and large ones stay large. The task asks for the tanh.",
        hint="May a number of the state be negative? And can it grow beyond 1?",
        more="Feed -1 and 2 to your last function. The right one keeps the sign and stays between -1 and 1.",
        section=RECURRENCE,
        pieces={"cell": lambda x, s, p: np.maximum(pre_activation(x, s, p), 0)},
    ),
    StepMistake(
        "no-bias",
        "the cell has no bias",
        says="Both biases of the cell are left out. They should be added inside the tanh.",
        hint="Which of the parameters did you not use?",
        more=(
            "In the chapter's example the biases are 0, so leaving them out makes no difference there. Cross off every "
            "name in params that you have used."
        ),
        section=RECURRENCE,
        pieces={"cell": cell_without_bias},
    ),
    StepMistake(
        "no-b-hh",
        "one bias is left out (b_hh)",
        says="The bias of the old state's side is left out. Both biases belong inside the tanh.",
        hint="How many biases does the cell have?",
        more=(
            "In the chapter's example the biases are 0, so leaving them out makes no difference there. Cross off every "
            "name in params that you have used."
        ),
        section=RECURRENCE,
        pieces={"cell": lambda x, s, p: np.tanh(pre_activation(x, s, p) - p["b_hh"])},
    ),
    StepMistake(
        "no-b-ih",
        "one bias is left out (b_ih)",
        says="The bias of the input's side is left out. Both biases belong inside the tanh.",
        hint="How many biases does the cell have?",
        more=(
            "In the chapter's example the biases are 0, so leaving them out makes no difference there. Cross off every "
            "name in params that you have used."
        ),
        section=RECURRENCE,
        pieces={"cell": lambda x, s, p: np.tanh(pre_activation(x, s, p) - p["b_ih"])},
    ),
    StepMistake(
        "bias-outside",
        "the biases are outside of the tanh",
        says="The biases are added after the tanh. They belong inside.",
        hint="What is squashed: the products alone, or the products with the biases?",
        more="A state of this cell lies between -1 and 1. Does yours, however large the biases are?",
        section=RECURRENCE,
        pieces={"cell": lambda x, s, p: np.tanh(x @ p["w_ih"].T + s @ p["w_hh"].T) + p["b_ih"] + p["b_hh"]},
    ),
    StepMistake(
        "w-hh-untransposed",
        "the state's matrix is used as it is stored",
        says="The matrix of the old state is not transposed. Both matrices of the cell have one row for each result.",
        hint="The cell's matrices are stored as torch stores them. Which of their two axes belongs to the result?",
        more=(
            "This matrix is square, so the shapes raise no error. Compare what you do with it and with the other "
            "matrix."
        ),
        section=RECURRENCE,
        pieces={"cell": lambda x, s, p: cell(x, s, {**p, "w_hh": p["w_hh"].T})},
    ),
    StepMistake(
        "w-ih-untransposed",
        "the input's matrix is used as it is stored",
        says="The matrix of the input is not transposed. Both matrices of the cell have one row for each result.",
        hint="The cell's matrices are stored as torch stores them. Which of their two axes belongs to the result?",
        more=(
            "The matrix has a row for each number of the state and a column for each number that comes in. Which of "
            "the two should line up with your vector?"
        ),
        section=RECURRENCE,
        pieces={"cell": lambda x, s, p: cell(x, s, {**p, "w_ih": p["w_ih"].T})},
    ),
    StepMistake(
        "cell-untransposed",
        "both matrices of the cell are used as they are stored",
        says="The matrices of the cell are not transposed. Both have one row for each result.",
        hint="The cell's matrices are stored as torch stores them. Which of their two axes belongs to the result?",
        more=(
            "The first matrix has a row for each number of the state and a column for each number that comes in. Which "
            "of the two should line up with your vector?"
        ),
        section=RECURRENCE,
        pieces={"cell": lambda x, s, p: cell(x, s, {**p, "w_ih": p["w_ih"].T, "w_hh": p["w_hh"].T})},
    ),
)

RESULT_MISTAKES = (
    StepMistake(
        "two-results",
        "two results instead of three",
        says="Two arrays come back instead of three. The weights are the last of them.",
        hint="Compare your return line with the one in the task.",
        more="The next step starts from the new state, and the weights show what was read. Which is missing?",
        run=change_results(lambda state, context, weights: (state, context)),
    ),
    StepMistake(
        "state-only",
        "one result instead of three",
        says="One array comes back instead of three. The new state is the first of them.",
        hint="Compare your return line with the one in the task.",
        more="The next step starts from the new state, and the weights show what was read. Which is missing?",
        run=change_results(lambda state, context, weights: state),
    ),
    StepMistake(
        "weights-with-query-axis",
        "the weights keep an axis of length 1",
        says="The weights come back as (B, 1, S): the axis of the one query is still there. They should be (B, S).",
        hint="How many weights does one sentence have, and how many axes does that take?",
        more="The axis was there so that the state could be combined with all rows. When is it no longer needed?",
        run=change_results(lambda state, context, weights: (state, context, weights[..., None, :])),
    ),
    StepMistake(
        "weights-as-column",
        "the weights keep a last axis of length 1",
        says=(
            "The weights come back as (B, S, 1): an axis that let them multiply rows is still there. They should be "
            "(B, S)."
        ),
        hint="How many weights does one sentence have, and how many axes does that take?",
        more="The axis was there so that a weight could multiply a whole row. When is it no longer needed?",
        run=change_results(lambda state, context, weights: (state, context, weights[..., None])),
    ),
    StepMistake(
        "query-axis-kept",
        "two results keep an axis of length 1",
        says="Two results come back with the axis of the one query, as (B, 1, ...). That axis should be gone.",
        hint="There is one query for each sentence. Is its axis still there in your results?",
        more="The axis was there so that the state could be combined with all rows. When is it no longer needed?",
        run=change_results(lambda state, context, weights: (state, context[..., None, :], weights[..., None, :])),
    ),
    StepMistake(
        "squeezed",
        "axes of length 1 are removed, whichever they are",
        says=(
            "A squeeze without an axis also removes the batch axis for one sentence, and the token axis for one token."
        ),
        hint="With a batch of one sentence, which axes have length 1, and which of them should stay?",
        more=(
            "Compare the shapes of your results for one sentence with those for three. How many numbers should differ?"
        ),
        run=change_results(lambda *results: tuple(np.squeeze(x) for x in results)),
    ),
    StepMistake(
        "writes-into-state",
        "the state that came in is overwritten",
        says="The new state is written into the array of the old one, which is the caller's. Make a new array.",
        hint="Who else may still need the old state?",
        more=(
            "Look for a line that assigns into an array, or an operator that changes its left side. A new array costs "
            "little."
        ),
        section=RECURRENCE,
        run=write_into_state,
    ),
)

MASK_MISTAKES = (
    StepMistake(
        "mask-ignored",
        "the mask is not used",
        says="A mask is accepted, but it has no effect: everything is attended to.",
        hint="Your function takes a mask. Where is it applied to the scores?",
        more="Look at the weights where the mask is False. What should be there?",
        section=WEIGHTS_OF_ZERO,
        run=ignore_mask,
    ),
    StepMistake(
        "mask-inverted",
        "the mask is upside down",
        says="The decoder attends where it may not. In this course True means that it may.",
        hint="Does True mean that the decoder may attend, or that it may not?",
        more="Look at the weights where the mask is True. Are they 0 in yours?",
        section=TRUE_OR_FALSE,
        run=invert_mask,
    ),
    StepMistake(
        "mask-after-softmax",
        "masked after the softmax",
        says="Weights are set to 0 after the softmax, so that those that are left no longer sum to 1.",
        hint="Do the weights that are left still sum to 1?",
        more=(
            "Add up the weights of a sentence with padding. The missing part went to places that were masked too late."
        ),
        section=WEIGHTS_OF_ZERO,
        pieces={"weigh": lambda e, mask: weigh(e, None) * (1 if mask is None else mask)},
    ),
    StepMistake(
        "mask-makes-zero-scores",
        "masked scores are 0",
        says="Scores are set to 0 where the mask is False. A score of 0 is like any other and takes weight.",
        hint="What is the exponential of 0?",
        more="Look at the weights where the mask is False. Which score makes a weight of exactly 0?",
        section=WEIGHTS_OF_ZERO,
        pieces={"weigh": lambda e, mask: weigh(fill_masked(e, mask, 0), None)},
    ),
    StepMistake(
        "mask-added",
        "True and False are added to the scores",
        says="The mask is added as the numbers 1 and 0. Where it is False, a score has to be ruled out altogether.",
        hint="What does adding True to a score do, and what should False do to it?",
        more="Look at the weights where the mask is False. Which score makes a weight of exactly 0?",
        section=TRUE_OR_FALSE,
        pieces={"weigh": lambda e, mask: weigh(e if mask is None else e + mask, None)},
    ),
    StepMistake(
        "nan-for-empty",
        "nan where there is nothing to attend to",
        says=(
            "Where a sentence has nothing to attend to, 0 is divided by 0, and the weights are nan. They should be 0."
        ),
        hint="What is the sum of the exponentials of a sentence that is masked altogether?",
        more="By convention such a sentence has weights 0 and the context 0. Which division has to be guarded?",
        section=EMPTY_ROWS,
        pieces={"weigh": lambda e, mask: normalise_over(-1, e - fill_masked(e, mask).max(-1)[..., None], mask)},
    ),
    StepMistake(
        "uniform-for-empty",
        "equal weights where there is nothing to attend to",
        says="A sentence with nothing to attend to gets equal weights on what is forbidden. They should all be 0.",
        hint="A very low score for every row: what does the softmax make of scores that are all equal?",
        more="By convention such a sentence has weights 0 and the context 0. Look at yours.",
        section=EMPTY_ROWS,
        pieces={"weigh": lambda e, mask: weigh(fill_masked(e, mask, -1e9), None)},
    ),
)

SHARED_MISTAKES = (*SCORE_MISTAKES, *WEIGHT_MISTAKES, *CONTEXT_MISTAKES, *CELL_MISTAKES, *RESULT_MISTAKES)


def shared_mistakes(step: Step, section: Section) -> Iterator[Mistake]:
    """Yield the mistakes in the pieces that both decoders have."""
    for mistake in SHARED_MISTAKES:
        yield mistake.made_in(step, section)


def mask_mistakes(step: Step, section: Section) -> Iterator[Mistake]:
    """Yield the mistakes with a mask, for implementations that have one."""
    for mistake in MASK_MISTAKES:
        yield mistake.made_in(step, section)


def order_mistakes(step: Step, section: Section, names: tuple[str, str, str]) -> Iterator[Mistake]:
    """Yield the mistakes of returning the right results in another order."""
    for order in ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
        came = [names[i] for i in order]
        mistake = StepMistake(
            id="-".join(["order", *came]).replace("~", ""),
            title="the results are in the wrong order",
            says=f"All three are right, but they come back as {', '.join(came)}, not as {', '.join(names)}.",
            hint="Compare your return line with the one in the task.",
            more="Write down the widths of the three results in the order in which they come back.",
            run=change_results(lambda *results, order=order: tuple(results[i] for i in order)),
        )
        yield mistake.made_in(step, section)


def pairs_of_mistakes(step: Step, one: Mistake, pieces: dict[str, Any], seconds: tuple[str, ...]) -> Iterator[Mistake]:
    """Yield pairs of mistakes: the one that is made by these pieces, with each of the seconds."""
    for other in shared_mistakes(partial(step, **pieces), one.section):
        if other.id in seconds:
            yield replace(
                other,
                id=f"{one.id}-and-{other.id}",
                title=f"two mistakes: {one.title}, and {other.title}",
                section=one.section,
                says=f"{one.says} There is also a second mistake. {other.says}",
                hint=f"First: {one.hint} Second: {other.hint}",
                more=f"First: {one.more} Second: {other.more}",
            )
