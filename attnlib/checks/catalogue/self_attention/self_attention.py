"""self_attention(x), with the scaled dot product as score."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.calling.conventions import has_argument
from attnlib.checks.catalogue.duplicate_rows import with_duplicate_rows
from attnlib.checks.catalogue.self_attention import attention as of_attention
from attnlib.checks.catalogue.self_attention.sections import ATTENTION, COSINE, PERMUTATION, WEIGHTED_SUM
from attnlib.checks.exercise import ATTENTION_FUNCTIONS, Exercise, Mistake, Mistakes

NUMBERS, BATCHES, LARGE, UNCHANGED = "the numbers", "batches", "large scores", "inputs unchanged"
MASKS, OTHER_SCORES = "masks", "other scores"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: two words worked by hand, then T words of width D, batches, size."""
    root = np.sqrt(np.sqrt(2.0) * np.log(3.0))  # so that the scores are log 3 with itself and 0 with the other
    yield Case("two words at right angles, each with score log 3 to itself", NUMBERS, {"x": root * np.eye(2)})
    yield Case("5 words of width 4", NUMBERS, {"x": rng.normal(size=(5, 4))})
    yield Case("a single word", NUMBERS, {"x": rng.normal(size=(1, 3))})
    yield Case("words in float32", NUMBERS, {"x": rng.normal(size=(4, 3)).astype(np.float32)})
    yield Case("3 words of width 3", NUMBERS, {"x": rng.normal(size=(3, 3))})
    repeated = with_duplicate_rows({"x": rng.normal(size=(5, 4))}, "x")
    yield Case("a repeated word", BATCHES, repeated)
    yield Case("a batch of 2 (T=5, D=4)", BATCHES, {"x": rng.normal(size=(2, 5, 4))})
    yield Case("leading dimensions (2, 3)", BATCHES, {"x": rng.normal(size=(2, 3, 5, 4))})
    yield Case("a batch of 1", BATCHES, {"x": rng.normal(size=(1, 5, 4))})  # where pairing all sequences fits
    yield Case("a batch of transposed views", BATCHES, {"x": rng.normal(size=(3, 4, 5)).swapaxes(-1, -2)})
    large = rng.normal(size=(4, 3))
    large[:, 0] += [120.0, -110.0, 100.0, 0.0]
    yield Case("words so long that scores reach thousands, of either sign", LARGE, {"x": large})
    yield Case("words that must stay as they are", UNCHANGED, {"x": rng.normal(size=(3, 2))}, unchanged=True)
    some = np.array([[True, False, True, True], [True, True, False, False], [False, True, True, True], [True] * 4])
    yield Case("a mask that is True where a word may attend", MASKS, {"x": rng.normal(size=(4, 3))}, {"mask": some})
    first = np.array([[[True, True, True, True, False]], [[True, True, True, False, False]]])
    yield Case("a mask of shape (2, 1, T) for a batch of 2", MASKS, {"x": rng.normal(size=(2, 5, 4))}, {"mask": first})
    none = some & np.array([[True], [False], [True], [True]])
    yield Case("a word that may attend to nothing", MASKS, {"x": rng.normal(size=(4, 3))}, {"mask": none})
    yield Case("score=cosine", OTHER_SCORES, {"x": rng.normal(size=(5, 4))}, {"score": attnlib.cosine})


def _with_itself(mistake: Mistake) -> Mistake:
    """Return a mistake of ``attention`` as one of ``self_attention``."""

    def implementation(x):
        return mistake.implementation(x, x, x)

    def with_options(x, *, score=attnlib.scaled_dot, mask=None):
        return mistake.implementation(x, x, x, score=score, mask=mask)

    has_mask = has_argument(mistake.implementation, "mask")
    return replace(mistake, implementation=with_options if has_mask else implementation)


@MISTAKES.add(
    "the weights are transposed in the sum",
    hint="Row i of the weights belongs to query i. Which of its numbers multiplies word j?",
    more="The weights are not symmetric, though the scores are. Take three words, and write the first row of the "
    "context as a sum of three words with their weights: are these in the first row of the table, or in its "
    "first column?",
    section=WEIGHTED_SUM,
)
def transposed_in_sum(x):
    """The weights are right, but the sum uses them by columns: column i of the weights was used where row i belongs."""
    _, weights = attnlib.self_attention(x)
    return weights.swapaxes(-1, -2) @ x, weights


@MISTAKES.add(
    "the context is made with rows and columns mixed",
    hint="Which of the two is on the left in the weighted sum?",
    more="The product of words and weights, (T, D) by (T, T), fits only if there are as many words as components. "
    "Each row of the context is made from a row of the weights: which array has to be on the left?",
    section=WEIGHTED_SUM,
)
def words_first(x):
    """The two factors of the weighted sum are in the wrong order. The weights belong on the left, one row per word."""
    _, weights = attnlib.self_attention(x)
    return x @ weights, weights


@MISTAKES.add(
    "the average of rows and columns",
    hint="Does each row of your weights sum to 1?",
    more="The scores are symmetric; the weights need not be, since each row is divided by its own sum. Print the "
    "weights before and after you make them symmetric.",
    section=WEIGHTED_SUM,
)
def symmetric_weights(x):
    """The weights were made symmetric. A word need not attend to another as much as that one attends to it."""
    _, weights = attnlib.self_attention(x)
    weights = (weights + weights.swapaxes(-1, -2)) / 2
    return weights @ x, weights


@MISTAKES.add(
    "a word may not attend to itself",
    hint="Does the formula leave anyone out?",
    more="The diagonal of your weights is 0. In the case with two words, each scores log 3 with itself and 0 with the "
    "other: its weight for itself is 3/4.",
    section=ATTENTION,
)
def diagonal_masked(x):
    """Every word attends to all others, but not to itself. In self-attention it may, and usually does."""
    return attnlib.self_attention(x, mask=~np.eye(x.shape[-2], dtype=bool))


@MISTAKES.add(
    "a word's score with itself is made very small",
    hint="Does the formula leave any pair of words out?",
    more="The diagonal of your weights is 0, unless there is only one word. Every word may attend to itself here, and "
    "in the first case it gives itself 3/4.",
    section=ATTENTION,
)
def diagonal_very_small(x):
    """A word attends to the others, and to itself only where there is no other. In self-attention it always may."""
    scores = attnlib.scaled_dot(x, x)
    weights = attnlib.softmax(np.where(np.eye(x.shape[-2], dtype=bool), -1e9, scores))
    return weights @ x, weights


@MISTAKES.add(
    "a word's score with itself is minus infinity",
    hint="Does the formula leave any pair of words out?",
    more="The diagonal of your weights is 0, and a sentence of one word gets nan. Every word may attend to itself "
    "here, and in the first case it gives itself 3/4.",
    section=ATTENTION,
)
def diagonal_infinite(x):
    """Every word attends to all others, but not to itself. If there is only one, it has nothing left, and gets nan."""
    scores = np.where(np.eye(x.shape[-2], dtype=bool), -np.inf, attnlib.scaled_dot(x, x))
    with np.errstate(invalid="ignore"):
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return weights @ x, weights


@MISTAKES.add(
    "a word's weight for itself is set to 0",
    hint="Does the formula leave anyone out, and what do your rows sum to?",
    more="The diagonal of your weights is 0, and the rows sum to less than 1. In the case with two words, each scores "
    "log 3 with itself: its weight for itself is 3/4.",
    section=ATTENTION,
)
def diagonal_removed(x):
    """The diagonal was removed after the softmax. A word attends to itself, and each row has to sum to 1."""
    _, weights = attnlib.self_attention(x)
    weights = weights * (1 - np.eye(x.shape[-2], dtype=x.dtype))
    return weights @ x, weights


@MISTAKES.add(
    "a word's score with itself is set to 0",
    hint="Does the formula treat a word's score with itself differently?",
    more="In the case with two words, each scores log 3 with itself and 0 with the other. Print your scores just "
    "before the softmax: the diagonal is gone.",
    section=ATTENTION,
)
def diagonal_scores_zero(x):
    """The scores of words with themselves were set to 0. They are scores like the others, and usually the largest."""
    scores = attnlib.scaled_dot(x, x) * (1 - np.eye(x.shape[-2], dtype=x.dtype))
    weights = attnlib.softmax(scores)
    return weights @ x, weights


@MISTAKES.add(
    "a word may not attend to itself, and no scale",
    hint="Does the formula leave anyone out, and what are the scores divided by?",
    more="In the case with two words, each scores log 3 with itself and 0 with the other. Print your scores just "
    "before the softmax: fix the scale first, then look at the diagonal.",
    section=ATTENTION,
)
def diagonal_masked_no_scale(x):
    """Words may not attend to themselves, and the scores are not divided by the root of the width."""
    return attnlib.self_attention(x, score=attnlib.dot, mask=~np.eye(x.shape[-2], dtype=bool))


@MISTAKES.add(
    "a word may not attend to later words",
    hint="Does the formula look at the order of the words?",
    more="The first row of your weights has a single 1. Shuffle the words: each should keep the context it had, and "
    "yours do not. Hiding later words is the subject of a later chapter.",
    section=PERMUTATION,
)
def causal(x):
    """Later words are hidden from earlier ones: that is a causal mask, which this exercise does not ask for."""
    return attnlib.self_attention(x, mask=np.tri(x.shape[-2], dtype=bool))


@MISTAKES.add(
    "later words are hidden, and no scale",
    hint="Does the formula look at the order of the words, and what are the scores divided by?",
    more="The first row of your weights has a single 1, where the first of two words should give 3/4 to itself and "
    "1/4 to the other. Leave the mask out first, and then compare the scores with log 3 and 0.",
    section=ATTENTION,
)
def causal_no_scale(x):
    """Later words are hidden from earlier ones, and the scores are not divided by the root of the width."""
    return attnlib.self_attention(x, score=attnlib.dot, mask=np.tri(x.shape[-2], dtype=bool))


@MISTAKES.add(
    "a word may not attend to earlier words",
    hint="Does the formula look at the order of the words?",
    more="The last row of your weights has a single 1. Shuffle the words: each should keep the context it had, and "
    "yours do not. Every word attends to every word here.",
    section=PERMUTATION,
)
def earlier_hidden(x):
    """Earlier words are hidden from later ones. This exercise asks for no mask at all."""
    return attnlib.self_attention(x, mask=np.tri(x.shape[-2], dtype=bool).T)


@MISTAKES.add(
    "the weights of later words are removed",
    hint="Does the formula look at the order of the words, and what do your rows sum to?",
    more="Add up the rows of your weights: the first of them is less than 1. The weights for later words were set to "
    "0 after the softmax; no weight should be removed here.",
    section=PERMUTATION,
)
def causal_after_softmax(x):
    """The weights for later words were set to 0. Every word attends to every word, and each row sums to 1."""
    _, weights = attnlib.self_attention(x)
    weights = np.tril(weights)
    return weights @ x, weights


@MISTAKES.add(
    "the scores with later words are set to 0",
    hint="Does the formula look at the order of the words?",
    more="Print your scores just before the softmax: half of the table is 0. A loop that fills one half only, because "
    "the scores are symmetric, has to copy it into the other half.",
    section=PERMUTATION,
)
def half_of_the_scores(x):
    """Half of the scores is 0: every word was compared with earlier words alone. Every word meets every word."""
    weights = attnlib.softmax(np.tril(attnlib.scaled_dot(x, x)))
    return weights @ x, weights


@MISTAKES.add(
    "the words themselves are added",
    hint="Is the context of a word the average alone, or the average plus the word?",
    more="The weights are right. In the case with two words, the context of the first is 3/4 of itself and 1/4 of the "
    "other. Yours also contains the whole word itself. Adding the word is a step of a transformer block, around "
    "attention.",
    section=WEIGHTED_SUM,
)
def residual(x):
    """The context is the weighted sum plus the word itself. The task asks only for the sum."""
    context, weights = attnlib.self_attention(x)
    return context + x, weights


@MISTAKES.add(
    "the words are added, and the scores are not scaled",
    hint="What are the scores divided by, and is the context the average alone?",
    more="Print your scores just before the softmax, in the case with two words: they should be log 3 and 0. Fix "
    "these first. Then the context of the first word is 3/4 of itself and 1/4 of the other, and nothing else.",
    section=ATTENTION,
)
def residual_no_scale(x):
    """The scores are not divided by the root of the width, and the word itself is added to its context."""
    context, weights = attnlib.self_attention(x, score=attnlib.dot)
    return context + x, weights


@MISTAKES.add(
    "the words come back as they were",
    hint="What has become of the weights: do they act on anything?",
    more="The weights are right, and the context is the input. The last step, the weighted sum, is missing, or its "
    "result is not the one that you return.",
    section=WEIGHTED_SUM,
)
def unmixed(x):
    """The weights are right, but your first result is the words themselves. It should be their averages."""
    return x.copy(), attnlib.self_attention(x)[1]


@MISTAKES.add(
    "one context for the whole sentence",
    hint="How many context vectors do five words have?",
    more="Print the shape of your context: one row is left. Every word has a context of its own, so as many rows come "
    "out as went in. Which average is one too many?",
    section=WEIGHTED_SUM,
)
def pooled(x):
    """The contexts were averaged over the words. Each word has a context of its own."""
    context, weights = attnlib.self_attention(x)
    return context.mean(-2), weights


@MISTAKES.add(
    "only the last word asks",
    hint="How many queries does a sentence of five words have?",
    more="Print the shape of your weights: (1, T) instead of (T, T). Look for an index that picks a single word.",
    section=ATTENTION,
)
def last_word_asks(x):
    """Only the last word attends to the others. Every word does."""
    return attnlib.attention(x[..., -1:, :], x, x)


@MISTAKES.add(
    "words of length 1",
    hint="Do you average the words themselves, at their full length?",
    more="You divide each word by its length before you begin. Compare the lengths of the rows of your context with "
    "those of the words: the cosine divides by the lengths; the dot product keeps them, and so does the average.",
    section=COSINE,
)
def unit_words(x):
    """The words were brought to length 1 first, and then compared and averaged.

    The words should be used as they are.
    """
    unit = x / np.linalg.norm(x, axis=-1, keepdims=True)
    return attnlib.self_attention(unit)


@MISTAKES.add(
    "the words are centred first",
    hint="What do you subtract from the words, and does the formula subtract anything?",
    more="In the case with two words at right angles, the score of the two is 0. Print yours. The mean should not be "
    "subtracted.",
    section=ATTENTION,
)
def centred(x):
    """The mean word was subtracted from every word first. The words should be used as they are."""
    return attnlib.self_attention(x - x.mean(-2, keepdims=True))


@MISTAKES.add(
    "components attend, not words",
    hint="The weights should be T by T: one number for each pair of words, not for each pair of components.",
    more="Print the shape of your scores for 5 words of width 4: it is (4, 4). In the product of a table with its own "
    "transpose, one of the two orders compares rows, the other one columns.",
    section=ATTENTION,
)
def over_components(x):
    """The components of the vectors attend to each other, not the words: x was transposed on the wrong side."""
    weights = attnlib.softmax(attnlib.dot(x.swapaxes(-1, -2), x.swapaxes(-1, -2)) / x.shape[-1] ** 0.5)
    return x @ weights, weights


@MISTAKES.add(
    "the sequences of a batch attend to each other",
    hint="For a batch of 2 with 5 words each, how many words does one word attend to: 5, or 10?",
    more="Print the shape of your scores for a batch of shape (2, 5, 4). It should be (2, 5, 5). In yours all words "
    "of the batch are in one row: was the batch flattened?",
    section=ATTENTION,
)
def across_the_batch(x):
    """All words of a batch attend to each other, as if they were one sequence. Each sequence is separate."""
    flat = x.reshape(-1, x.shape[-1])
    context, weights = attnlib.self_attention(flat)
    return context.reshape(x.shape), weights.reshape(*x.shape[:-1], -1)


@MISTAKES.add(
    "the words are scaled, and the average with them",
    hint="Is what is averaged the same as what came in?",
    more="Compare the words before and after the line with the division. The scores are what is divided; the words "
    "that are averaged at the end have to be those that came in.",
    section=WEIGHTED_SUM,
)
def words_scaled(x):
    """The words were divided by a root of the width before everything else, so the averages are too small as well."""
    return attnlib.self_attention(x / x.shape[-1] ** 0.25, score=attnlib.dot)


@MISTAKES.add(
    "the words are divided in place",
    hint="How many names does the same array have in your function?",
    more="Query, key and value are the same array here. An operator that divides the queries in place divides the keys "
    "and the values as well, and the caller's array. Which line writes into what it was given?",
    section=ATTENTION,
)
def scaled_in_place(x):
    """The queries were divided in place. But they are the same array as the keys and the values, and the caller's."""
    x /= x.shape[-1] ** 0.5
    return attnlib.self_attention(x, score=attnlib.dot)


@MISTAKES.add(
    "changes the words it was given",
    hint="Some operators make a new array; others write into the one they are given. Which of yours write?",
    more="Print the words before and after a call of your function. Then look for an assignment into the array that "
    "came in, or for an operator that ends in an equals sign.",
    section=ATTENTION,
)
def overwritten(x):
    """The results are right, but the caller's words are gone: your function wrote into its argument."""
    context, weights = attnlib.self_attention(x)
    x[...] = context
    return context, weights


@MISTAKES.add(
    "the mask is transposed",
    hint="Row i of a mask belongs to word i as the query. Does it in yours?",
    more="Print a row of the mask above the same row of your weights. The zeros should be below False. Compare with "
    "the column of the mask instead.",
    section=ATTENTION,
)
def mask_transposed(x, *, score=attnlib.scaled_dot, mask=None):
    """Rows and columns of the mask were exchanged: where word i may attend to word j, you let j attend to i."""
    if mask is not None:
        mask = np.swapaxes(np.broadcast_to(mask, (*x.shape[:-1], x.shape[-2])), -1, -2)
    return attnlib.self_attention(x, score=score, mask=mask)


ALONE = (  # mistakes of attention that are another one, or none, where query, key and value are the same array
    *("averages-keys", "averages-queries", "no-scale-averages-keys", "query-with-query", "key-with-key"),
    *("query-with-value", "keys-first", "scaled-by-queries", "scaled-by-value-width", "transposed-in-sum"),
    *(
        "values-first",
        "causal",
        "in-place",
        "no-keepdims",
        "keys-for-values",
    ),  # the scores are symmetric: rows are columns
)


@MISTAKES.add(
    "the batch is flattened to one sequence",
    hint="For a batch of 2 with 5 words each, how many words does one word attend to: 5, or 10?",
    more="Add up a row of your weights for a batch of 2. The rest of the row went to words of the other sequence. At "
    "which line did the batch become one sequence?",
    section=ATTENTION,
)
def flattened_batch(x):
    """The words of all sequences attend to each other, and only the weights within each sequence are returned."""
    flat = x.reshape(-1, x.shape[-1])
    context, weights = attnlib.self_attention(flat)
    t = x.shape[-2]
    within = [weights[i : i + t, i : i + t] for i in range(0, len(flat), t)]
    return context.reshape(x.shape), np.reshape(within, (*x.shape[:-1], t))


EXERCISE = Exercise(
    name="self_attention",
    reference=attnlib.self_attention,
    outputs={"context": ("T", "D"), "weights": ("T", "T")},
    rubric={NUMBERS: 4, BATCHES: 2, LARGE: 1, UNCHANGED: 1},
    section=ATTENTION,
    advice="Print the scores, the weights and the context for two words, with their shapes. Which of them "
    "is the first to be wrong?",
    inputs=inputs,
    mistakes=(*MISTAKES, *(_with_itself(m) for m in of_attention.MISTAKES if m.id not in ALONE)),
    ungraded_options=("mask", "score"),
    solved_by=ATTENTION_FUNCTIONS,
)
