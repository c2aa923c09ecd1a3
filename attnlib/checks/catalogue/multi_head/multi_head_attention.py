"""multi_head_attention(query, key, value, w_q, w_k, w_v, w_o, num_heads)."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.duplicate_rows import with_duplicate_rows
from attnlib.checks.catalogue.multi_head.sections import (
    CATCH_IT,
    MULTI_HEAD,
    ONE_AVERAGE,
    OUTPUT_PROJECTION,
    SCALE,
    SPLITTING,
)
from attnlib.checks.catalogue.multi_head.steps import BySteps, exponentials
from attnlib.checks.exercise import MULTI_HEAD_FUNCTIONS, Exercise, Mistakes

NUMBERS, BATCHES, WIDTHS, LARGE = "the numbers", "batches", "other widths", "large scores"
UNCHANGED, MASKS, MORE_MASKS, EMPTY = "inputs unchanged", "masks", "more masks", "nothing to attend to"
NAMES = ("query", "key", "value", "w_q", "w_k", "w_v", "w_o")
MISTAKES = Mistakes(wrap=BySteps)


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: one by hand, plain ones of one width, then batches, other widths, large scores, and masks."""
    eye, third = np.eye(2), np.log(3.0)
    words = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[third, 0.0], [0.0, third / 2]]), np.array([[8.0, 2], [0, 4]])
    hand = dict(zip(NAMES, (*words, eye, eye, eye, np.array([[1.0, 1.0], [0.0, 2.0]])), strict=True))
    yield Case("2 heads of width 1, whose scores are 0 and log 3", NUMBERS, hand | {"num_heads": 2})
    yield Case("5 queries, 7 keys, 2 heads of width 4", NUMBERS, given(rng, (), 5, 7, 2, 4))
    yield Case("7 queries, 5 keys, 3 heads of width 2", NUMBERS, given(rng, (), 7, 5, 3, 2))
    yield Case("one query and one key", NUMBERS, given(rng, (), 1, 1, 2, 3))
    yield Case("a single head", NUMBERS, given(rng, (), 3, 5, 1, 4))
    yield Case("float32", NUMBERS, given(rng, (), 4, 3, 2, 5, dtype=np.float32))
    repeated = with_duplicate_rows(given(rng, (), 5, 7, 2, 4), "query", "key", "value")
    yield Case("queries, keys and values, some of them repeated", BATCHES, repeated)
    yield Case("a batch of 3 (T=5, S=7, 2 heads of width 4)", BATCHES, given(rng, (3,), 5, 7, 2, 4))
    yield Case("leading dimensions (2, 5) (T=4, S=7, 3 heads of width 2)", BATCHES, given(rng, (2, 5), 4, 7, 3, 2))
    yield Case("a batch of 3 with as many keys as queries", BATCHES, given(rng, (3,), 5, 5, 2, 4))
    strided = given(rng, (8, 3), 5, 7, 2, 4)
    strided |= {name: strided[name].swapaxes(0, 1)[:, ::4] for name in NAMES[:3]}
    strided |= {name: np.asfortranarray(strided[name]) for name in NAMES[3:]}
    yield Case("a batch that is a slice of a transposed array", BATCHES, strided)
    widths = given(rng, (), 4, 5, 3, 2, width=10, key_width=9, value_width=11, head_value=7, out=13)
    yield Case("every width different: E=10, E_k=9, E_v=11, D=2, D_v=7, E_out=13", WIDTHS, widths)
    yield Case("words wider than all heads: E=10, H*D=6", WIDTHS, given(rng, (), 4, 5, 3, 2, width=10))
    large = given(rng, (), 3, 5, 2, 4)
    lengths = np.array([[1.0], [1.5], [0.5], [1.49], [0.8]])
    large |= {"query": large["query"] + [[3000.0], [-3000.0], [0.0]], "key": 0.01 * large["key"] + lengths}
    yield Case("scores of several thousand, of both signs", LARGE, large | {"w_q": np.eye(8), "w_k": np.eye(8)})
    yield Case("inputs that must stay as they are", UNCHANGED, given(rng, (), 5, 4, 2, 3), unchanged=True)
    yield from masked_inputs(rng)


def masked_inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases with masks: of all shapes that a mask may have, causal ones, both, and one that is empty."""
    mask = rng.permuted(np.tile(np.arange(7) < 4, (5, 1)), axis=1)  # 4 of 7 keys for each query
    yield Case("a mask (T, S), True where a query may attend", MASKS, given(rng, (), 5, 7, 2, 4), {"attn_mask": mask})
    lengths = np.arange(7) < np.array([4, 6, 2])[:, None, None, None]
    padded = {"attn_mask": lengths}
    yield Case("a mask (N, 1, 1, S) for sentences of 4, 6 and 2 words", MASKS, given(rng, (3,), 5, 7, 2, 4), padded)
    per_head = {"attn_mask": np.stack([mask, ~mask])}
    yield Case("a mask (H, T, S), another for each head", MASKS, given(rng, (), 5, 7, 2, 4), per_head)
    yield Case("is_causal, 5 queries and 7 keys", MASKS, given(rng, (), 5, 7, 2, 4), {"is_causal": True})
    yield Case("is_causal, 7 queries and 5 keys", MORE_MASKS, given(rng, (3,), 7, 5, 2, 4), {"is_causal": True})
    both = {"attn_mask": mask | (np.arange(7) == 0), "is_causal": True}
    yield Case("a mask and is_causal", MORE_MASKS, given(rng, (), 5, 7, 2, 4), both)
    empty = {"attn_mask": mask & (np.arange(5) != 2)[:, None]}
    yield Case("a query that may attend to nothing", EMPTY, given(rng, (), 5, 7, 2, 4), empty)


def given(
    rng, leading, t, s, heads, head, *, width=None, key_width=None, value_width=None, head_value=None, out=None,
    dtype=np.float64,
):  # fmt: skip
    """Return random arguments: T queries, S keys, H heads of width D. Every other width is H*D unless given."""
    usual = heads * head
    e, e_k, e_v, d_v, e_out = width or usual, key_width or usual, value_width or usual, head_value or head, out or usual
    shapes = ((t, e), (s, e_k), (s, e_v), (e, usual), (e_k, usual), (e_v, heads * d_v), (heads * d_v, e_out))
    arrays = {}
    for name, shape in zip(NAMES, shapes, strict=True):
        is_matrix = name.startswith("w_")
        x = rng.normal(size=shape if is_matrix else (*leading, *shape))
        arrays[name] = (x / shape[0] ** 0.5 if is_matrix else x).astype(dtype)
    return arrays | {"num_heads": heads}


# Splitting ----------------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "split by one reshape",
    hint="In your heads, does row 2 come from word 2 alone? Number the entries of a small table and look.",
    more="Take 4 words of width 6 and 3 heads, and number the entries as in the task on splitting. Which numbers "
    "should row 0 of head 1 hold, and which does it hold?",
    section=SPLITTING,
)
def reshape_alone(steps):
    """Words and heads were not swapped when splitting, so a row of a head holds pieces of different words.

    The shapes are right, but the numbers mean nothing.
    """
    return steps.split_by(_reshaped)


@MISTAKES.add(
    "split and merged by one reshape",
    hint="Merging undoes your splitting, but that proves little. Shuffle the words: does the result stay the same, "
    "only shuffled in the same way?",
    more="Two wrong steps can undo each other. Test the splitting by itself: which words should a row of a head come "
    "from, and which do they come from in yours?",
    section=CATCH_IT,
)
def reshape_both_ways(steps):
    """Neither splitting nor merging swaps words and heads.

    They undo each other, but in between a row of a head holds pieces of different words.
    """
    context, weights = steps.attend(*(_reshaped(x, steps.num_heads) for x in steps.projected()))
    return steps.project_out(_joined(context), weights)


@MISTAKES.add(
    "merged by one reshape",
    hint="After the heads have attended: do all numbers in row 2 of your merged table come from word 2?",
    more="Number the entries of two small heads and merge them. What has to be next to each other before rows are "
    "joined: the words of a head, or the heads of a word?",
    section=CATCH_IT,
)
def merged_without_swap(steps):
    """Splitting is right, but merging is a reshape alone. Heads and words have to change places back first."""
    context, weights = steps.attend(*steps.heads())
    return steps.project_out(_joined(context), weights)


@MISTAKES.add(
    "stripes instead of blocks when splitting",
    hint="Which columns does your head 0 have: the first D, or every H-th?",
    more="Take 2 heads in 6 columns. Head 0 has columns 0, 1 and 2. Which does yours have?",
    section=SPLITTING,
)
def stripes(steps):
    """Head 0 got columns 0, H, 2H and so on, but was merged as a block. A head is a block of neighbouring columns."""
    return steps.split_by(_striped)


@MISTAKES.add(
    "stripes instead of blocks, both ways",
    hint="Which columns does your head 0 have: the first D, or every H-th?",
    more="Stripes would do in a model that was trained with them. Here w_q, w_k, w_v and w_o come from outside, and "
    "they have the columns of head 0 first. Which columns are compared in your head 0?",
    section=SPLITTING,
)
def stripes_both_ways(steps):
    """Head 0 got columns 0, H, 2H and so on, and was merged the same way.

    With given matrices a head is a block of columns.
    """
    context, weights = steps.attend(*(_striped(x, steps.num_heads) for x in steps.projected()))
    return steps.project_out(_joined_in_stripes(context), weights)


@MISTAKES.add(
    "the heads are interleaved when merging",
    hint="After merging, what is in the first D columns: head 0, or one number of every head?",
    more="w_o has one band of D rows for each head. Which rows of w_o do you multiply by head 0?",
    section=OUTPUT_PROJECTION,
)
def merged_in_stripes(steps):
    """Splitting is right, but merging takes one number of each head in turn. Each head keeps its D numbers together."""
    context, weights = steps.attend(*steps.heads())
    return steps.project_out(_joined_in_stripes(context), weights)


@MISTAKES.add(
    "the number of heads and their width are confused",
    hint="Print the shape after splitting. How many heads are there, and how wide is each?",
    more="`num_heads` says how many pieces there are, not how long a piece is.",
    section=SPLITTING,
)
def width_for_number(steps):
    """There are D heads of width H. It should be H heads of width D."""
    return steps.split_by(lambda x, num_heads: x.reshape(*x.shape[:-1], -1, num_heads).swapaxes(-3, -2))


@MISTAKES.add(
    "the rows of a head are scrambled",
    hint="Number the entries of a small table and print head 0. Every number is in the right head. Is it in the right "
    "row?",
    more="Once a table is transposed, its rows are components. The pieces that a reshape cuts are then components as "
    "well, and another swap of axes is needed to turn them back into words.",
    section=SPLITTING,
)
def transposed_and_reshaped(steps):
    """The table was transposed and then reshaped to (H, T, D), so the numbers of a head are in the wrong places."""

    def split(x, num_heads):
        return x.swapaxes(-1, -2).reshape(*x.shape[:-2], num_heads, x.shape[-2], -1)

    return steps.split_by(split)


@MISTAKES.add(
    "the heads overlap",
    hint="Where does head 1 begin: at column 1, or at column D?",
    more="With heads of width 4, head 0 ends with column 3. Which columns does your loop take for head 1?",
    section=SPLITTING,
)
def overlapping(steps):
    """Each head begins one column after the one before, so they share columns. It should begin where that one ends."""

    def split(x, num_heads):
        width = x.shape[-1] // num_heads
        return np.stack([x[..., h : h + width] for h in range(num_heads)], axis=-3)

    return steps.split_by(split)


@MISTAKES.add(
    "the matrices are cut across their rows",
    hint="Compare your matrix of head 0 with the first D columns of w_q. Where do they differ?",
    more="A matrix lies in memory row after row. The columns of one head are not next to each other there, so a single "
    "reshape cannot gather them. The matrices need the same extra step as the words.",
    section=SPLITTING,
)
def matrices_reshaped(steps):
    """The matrices were reshaped directly to (H, E, D), so head 0 got their first rows.

    It should get their first columns.
    """

    def each(x, w):
        return x[..., None, :, :] @ w.reshape(steps.num_heads, w.shape[0], -1)

    return steps.merge(
        *steps.attend(each(steps.query, steps.w_q), each(steps.key, steps.w_k), each(steps.value, steps.w_v))
    )


@MISTAKES.add(
    "the heads attend to each other, not the words",
    hint="Print the shape of your scores. For each word it should say how it attends to other words: does it?",
    more="With 5 queries, 7 keys and 2 heads there should be 2 tables of 5 times 7 scores. The last two axes are those "
    "that are multiplied: which are the last two in yours?",
    section=SPLITTING,
)
def heads_attend(steps):
    """The heads were not brought in front of the words, so the heads of one word are compared with each other."""
    split = [x.reshape(*x.shape[:-1], steps.num_heads, -1) for x in steps.projected()]
    context, weights = steps.attend(*split)
    return steps.project_out(context.reshape(*context.shape[:-2], -1), weights)


@MISTAKES.add(
    "queries and keys are taken to be equally many",
    hint="How many keys are there, and how many queries? Do they have to be equal?",
    more="There are T queries and S keys and values. Look at each reshape: whose rows does it get, and whose length "
    "does it use?",
    section=MULTI_HEAD,
)
def length_of_the_query(steps):
    """A reshape uses the length of the query for the keys, or that of the keys for the result.

    There are T queries and S keys and values, and the result has T rows.
    """

    def split(x, num_heads):
        return x.reshape(*steps.query.shape[:-1], num_heads, x.shape[-1] // num_heads).swapaxes(-3, -2)

    return steps.split_by(split)


@MISTAKES.add(
    "one head instead of many",
    hint="What would change in your result if `num_heads` were 1?",
    more="There should be a table of weights for each head. How many tables do you compute?",
    section=ONE_AVERAGE,
)
def one_head(steps):
    """The vectors are never split: one wide head attends, with one row of weights for each query."""
    return steps.project_out(*steps.attend(*steps.projected()))


@MISTAKES.add(
    "one head instead of many, scaled as a narrow one",
    hint="What would change in your result if `num_heads` were 1?",
    more="There should be a table of weights for each head. How many tables do you compute? If you split and then "
    "merge, which of the steps should come between the two?",
    section=ONE_AVERAGE,
)
def one_head_scaled_by_its_part(steps):
    """One wide head attends, with one row of weights for each query: the vectors were not split, or merged too early.

    Only the scale is that of one of many heads.
    """
    q, k, v = steps.projected()
    return steps.project_out(*steps.attend(q, k, v, divisor=steps.width() ** 0.5))


@MISTAKES.add(
    "the words are cut, not what the matrices make of them",
    hint="Which comes first, the matrix or the splitting?",
    more="Every head should see the whole word: its columns of w_q multiply all E components. How many components does "
    "your head 0 see?",
    section=SPLITTING,
)
def split_before_projecting(steps):
    """Each head sees only its own piece of the words. It should see whole words, through matrices of its own."""

    def each(x, w):
        pieces = attnlib.split_heads(x, steps.num_heads)
        tiles = attnlib.split_heads(w, steps.num_heads)  # (H, E, D)
        width = pieces.shape[-1]
        own = np.stack([tile[h * width : (h + 1) * width] for h, tile in enumerate(tiles)])
        return pieces @ own

    return steps.merge(
        *steps.attend(each(steps.query, steps.w_q), each(steps.key, steps.w_k), each(steps.value, steps.w_v))
    )


@MISTAKES.add(
    "a batch is taken for granted",
    hint="How many axes does `query` have when there is one sentence and no batch?",
    more="`(..., T, E)` may have any number of axes in front, including none. Which line of yours expects exactly "
    "three?",
    section=MULTI_HEAD,
)
def needs_a_batch(steps):
    """Exactly three axes are unpacked. There may be none in front of the words, or more than one."""
    batch, length, _ = steps.query.shape
    return steps.scaled_by(None).reshape(batch, length, -1)


@MISTAKES.add(
    "axis 0 is taken for the batch",
    hint="What is the first number of the shape when there is one sentence and no batch?",
    more="For a table of 5 words the first axis counts words, and your function takes it for 5 sentences. How can you "
    "keep all axes in front as they are, however many there are?",
    section=MULTI_HEAD,
)
def batch_from_front(steps):
    """The first axis is taken for the batch. Without a batch, or with two leading axes, it is not."""

    def split(x):
        return x.reshape(x.shape[0], -1, steps.num_heads, x.shape[-1] // steps.num_heads).swapaxes(1, 2)

    context, weights = steps.attend(*map(split, steps.projected()))
    return steps.project_out(context.swapaxes(1, 2).reshape(steps.query.shape[0], -1, steps.w_o.shape[0]), weights)


@MISTAKES.add(
    "right for one sentence, wrong for a batch",
    hint="How many axes does `query` have when there is a batch of sentences?",
    more="`(..., T, E)` may have any number of axes in front. Which line of yours expects exactly two?",
    section=MULTI_HEAD,
)
def needs_a_matrix(steps):
    """Exactly two axes are unpacked, so there is no room for a batch in front of the words."""
    length, _ = steps.query.shape
    return steps.scaled_by(None).reshape(length, -1)


@MISTAKES.add(
    "a batch gets its axes mixed up",
    hint="Follow an array of three dimensions through every line. Which of its axes changes places, and which should?",
    more="Write down the shape of every array for a batch of 2, with 5 words and 3 heads of width 4. Where does the 2 "
    "first end up in the wrong place?",
    section=MULTI_HEAD,
)
def transposed_with_batch(steps):
    """For one sentence this is right.

    With a batch in front the shapes no longer fit: axes are counted from the front somewhere, or all are reversed.
    """
    if steps.query.ndim > 2:
        return steps.query @ steps.key.T
    return steps.scaled_by(None)


@MISTAKES.add(
    "right for a batch, wrong without one",
    hint="With one leading axis the words are axis 1. Which axis are they without any?",
    more="Follow one sentence, which has no batch, through your splitting. Which two axes change places, and which "
    "should? Can you count them from the end?",
    section=SPLITTING,
)
def swapped_one_and_two(steps):
    """Axes 1 and 2 change places, which is right for a batch of sentences. Without a batch they are other axes."""
    split = [x.reshape(*x.shape[:-1], steps.num_heads, -1).swapaxes(1, 2) for x in steps.projected()]
    context, weights = steps.attend(*split)
    context = context.swapaxes(1, 2)
    return steps.project_out(context.reshape(*context.shape[:-2], -1), weights)


@MISTAKES.add(
    "with more than one head, two shapes do not fit",
    hint="Which line raises the error: one that cuts the heads, or the one that multiplies by w_o? How wide is a row "
    "there?",
    more="With 2 heads of width 4, each word has 8 numbers after merging: all of head 0, then all of head 1. Before "
    "that, each head has all rows of w_q and 4 of its columns. Print the shapes of what you multiply.",
    section=OUTPUT_PROJECTION,
)
def not_side_by_side(steps):
    """A head takes columns of w_q, w_k and w_v, not rows. The heads must be side by side before w_o.

    They are not added, not averaged, and not stacked one below the other.
    """
    if steps.num_heads == 1:
        return steps.scaled_by(None)
    return np.ones((1, 2)) @ np.ones((3, 1))


@MISTAKES.add(
    "the columns of a head are counted from the front",
    hint="For one sentence the columns are axis 1. Which axis are they with a batch in front?",
    more="With a batch, axis 1 counts words. Your heads get some words each, with all of their columns.",
    section=SPLITTING,
)
def columns_from_front(steps):
    """For one sentence this is right. With a batch, axis 1 counts words, and the heads share out words, not columns."""
    width = steps.width()
    context, weights = [], []
    for h in range(steps.num_heads):
        one, table = steps.attend(*(x[:, h * width : (h + 1) * width] for x in steps.projected()), divisor=width**0.5)
        context.append(one)
        weights.append(table)
    return steps.project_out(np.concatenate(context, axis=1), weights)


@MISTAKES.add(
    "the axis of the softmax is counted from the front",
    hint="Which axis number means the last one, however many there are?",
    more="Without a batch the scores are (H, T, S), and axis 2 counts keys. What does axis 2 count with a batch?",
    section=MULTI_HEAD,
)
def softmax_from_front(steps):
    """For one sentence axis 2 of the scores is the last one. With a batch it is not, and the wrong weights sum to 1."""
    return steps.normalised_by(lambda scores: attnlib.softmax(scores, axis=2))


@MISTAKES.add(
    "the first two axes are swapped",
    hint="For one matrix the words are axis 0. Which axis are they with a batch in front?",
    more="Follow an array of shape (2, 5, 12) through your splitting, with 3 heads, and write down every shape. Which "
    "two axes change places, and which two should?",
    section=SPLITTING,
)
def swapped_from_front(steps):
    """For one matrix this is right. With a batch in front, the sentences change places instead of the heads."""
    split = [x.reshape(*x.shape[:-1], steps.num_heads, -1).swapaxes(0, 1) for x in steps.projected()]
    context, weights = steps.attend(*split)
    context = context.swapaxes(0, 1)
    return steps.project_out(context.reshape(*context.shape[:-2], -1), weights)


# Projections --------------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "the keys go through the matrix of the queries",
    hint="Four matrices come in. Which of them do you never use?",
    more="With one matrix for both, a word always matches words like itself. What is w_k for, then?",
    section=MULTI_HEAD,
)
def keys_by_w_q(steps):
    """Keys are projected by w_q. They have a matrix of their own, w_k."""
    return steps.with_other(w_k=steps.w_q)


@MISTAKES.add(
    "the values go through the matrix of the keys",
    hint="Four matrices come in. Which of them do you never use?",
    more="The keys decide how much each word counts, the values what it contributes. Which matrix makes values, and "
    "where is it in your code?",
    section=MULTI_HEAD,
)
def values_by_w_k(steps):
    """Values are projected by w_k. They have a matrix of their own, w_v."""
    return steps.with_other(w_v=steps.w_k)


@MISTAKES.add(
    "one matrix for all three",
    hint="Four matrices come in. Which of them do you use?",
    more="Queries, keys and values play three different parts, and each has a matrix of its own.",
    section=MULTI_HEAD,
)
def one_matrix(steps):
    """Queries, keys and values all go through w_q. Each has a matrix of its own."""
    return steps.with_other(w_k=steps.w_q, w_v=steps.w_q)


@MISTAKES.add(
    "the matrices of queries and keys are exchanged",
    hint="Which of the inputs is multiplied by w_q, and which by w_k?",
    more="Read your projections aloud: the query goes through the matrix of the queries. Do the names agree?",
    section=MULTI_HEAD,
)
def w_q_and_w_k_exchanged(steps):
    """The queries go through w_k and the keys through w_q. It should be the other way round."""
    return steps.with_other(w_q=steps.w_k, w_k=steps.w_q)


@MISTAKES.add(
    "the matrices of keys and values are exchanged",
    hint="Which of the inputs is multiplied by w_k, and which by w_v?",
    more="Read your projections aloud: the key goes through the matrix of the keys. Do the names agree?",
    section=MULTI_HEAD,
)
def w_k_and_w_v_exchanged(steps):
    """The keys go through w_v and the values through w_k. It should be the other way round."""
    return steps.with_other(w_k=steps.w_v, w_v=steps.w_k)


@MISTAKES.add(
    "the matrices are transposed",
    hint="A word is a row here. On which side of it is the matrix, and which axis of the matrix does it line up with?",
    more="torch's Linear keeps its matrix as (width out, width in) and transposes it. In this task `w_q` is (E, H*D): "
    "its rows belong to what comes in. What does your product sum over?",
    section=MULTI_HEAD,
)
def matrices_transposed(steps):
    """The matrices w_q, w_k and w_v are transposed before they are used. They are (width in, width out) already."""
    return steps.with_other(w_q=steps.w_q.T, w_k=steps.w_k.T, w_v=steps.w_v.T)


@MISTAKES.add(
    "all four matrices are transposed",
    hint="A word is a row here. On which side of it is the matrix, and which axis of the matrix does it line up with?",
    more="torch's Linear keeps its matrix as (width out, width in) and transposes it. In this task the rows of each "
    "matrix belong to what comes in. What does your product sum over?",
    section=MULTI_HEAD,
)
def all_transposed(steps):
    """Every matrix, w_o as well, is transposed before it is used. They are (width in, width out) already."""
    return steps.with_other(w_q=steps.w_q.T, w_k=steps.w_k.T, w_v=steps.w_v.T, w_o=steps.w_o.T)


@MISTAKES.add(
    "the output matrix is transposed",
    hint="Which axis of w_o should the merged heads line up with: its rows or its columns?",
    more="w_o is (H*D_v, E_out): a band of rows for each head. In your product the heads line up with its columns.",
    section=OUTPUT_PROJECTION,
)
def w_o_transposed(steps):
    """The merged heads are multiplied by the transpose of w_o. It is (width in, width out) already."""
    return steps.with_other(w_o=steps.w_o.T)


@MISTAKES.add(
    "the output projection is missing",
    hint="Where do numbers of different heads meet in your function?",
    more="After merging, the first columns come from head 0 alone. One step is left that mixes them.",
    section=OUTPUT_PROJECTION,
)
def no_w_o(steps):
    """The merged heads are returned as they are. They still have to go through w_o, which lets the heads meet."""
    context, weights = steps.attend(*steps.heads())
    return steps.finish(attnlib.merge_heads(context), weights)


@MISTAKES.add(
    "no matrix at all for queries, keys and values",
    hint="Which of the four matrices do you use?",
    more="What is compared is not the words themselves, but what w_q and w_k make of them.",
    section=MULTI_HEAD,
)
def no_projections(steps):
    """The words themselves are split. They should go through w_q, w_k and w_v first."""
    return steps.merge(*steps.attend(*steps.split(steps.query, steps.key, steps.value)))


@MISTAKES.add(
    "the values are not projected",
    hint="Which of the four matrices do you never use?",
    more="What is averaged is not the words themselves, but what w_v makes of them.",
    section=MULTI_HEAD,
)
def values_not_projected(steps):
    """The values are averaged without being projected. They should go through w_v first."""
    return steps.merge(*steps.attend(*steps.split(steps.query @ steps.w_q, steps.key @ steps.w_k, steps.value)))


@MISTAKES.add(
    "the values are made of the keys",
    hint="Which of the three inputs do you never use?",
    more="Keys and values are often the same words, but they need not be. What do you multiply by w_v?",
    section=MULTI_HEAD,
)
def values_from_key(steps):
    """The argument `value` is never used: `key` goes through w_v instead."""
    return steps.with_other(value=steps.key)


@MISTAKES.add(
    "the keys are made of the values",
    hint="Which of the three inputs do you never use?",
    more="Keys and values are often the same words, but they need not be. What do you multiply by w_k?",
    section=MULTI_HEAD,
)
def keys_from_value(steps):
    """The argument `key` is never used: `value` goes through w_k instead."""
    return steps.with_other(key=steps.value)


@MISTAKES.add(
    "only the query is used",
    hint="Which of the three inputs do you never use?",
    more="Here the queries may come from one sequence, and keys and values from a second one of a different length.",
    section=MULTI_HEAD,
)
def query_alone(steps):
    """Keys and values are made of `query`: this is self-attention, and `key` and `value` are never used."""
    return steps.with_other(key=steps.query, value=steps.query)


@MISTAKES.add(
    "queries and keys are exchanged",
    hint="Which input do the rows of your scores belong to?",
    more="With 5 queries and 7 keys, the result should have 5 rows. How many rows does yours have?",
    section=MULTI_HEAD,
)
def query_and_key_exchanged(steps):
    """You use the keys as queries and the queries as keys. There should be one row of the result for each query."""
    return steps.with_other(query=steps.key, key=steps.query)


@MISTAKES.add(
    "the scores have a row for each key",
    hint="Which input do the rows of your scores belong to?",
    more="In each head the table of scores is (T, S): a row for each query. Which of the two comes first in your "
    "product?",
    section=MULTI_HEAD,
)
def keys_ask(steps):
    """In each head the keys are multiplied by the queries. The queries should come first."""
    q, k, v = steps.heads()
    return steps.merge(*steps.attend(k, q, v))


# Scale --------------------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "the scores are not scaled",
    hint="What are dot products divided by before the softmax?",
    more="A dot product of two vectors of width 64 with components of variance 1 has a standard deviation of 8. What "
    "should it be divided by, and what would that be in a head of width D?",
    section=SCALE,
)
def no_scale(steps):
    """The dot products go into the softmax unscaled, so the weights are sharper than they should be."""
    return steps.scaled_by(1)


@MISTAKES.add(
    "scaled by the width of all heads",
    hint="Over how many products does the dot product in one head sum?",
    more="With 2 heads of width 4, a dot product in a head sums over 4 products, not over 8. Which width is under your "
    "root?",
    section=SCALE,
)
def scaled_by_all_heads(steps):
    """The scores are divided by the root of H times D, the width of all heads together. Each head is only D wide."""
    return steps.scaled_by(steps.w_q.shape[-1] ** 0.5)


@MISTAKES.add(
    "scaled by the width of the incoming words",
    hint="Over how many products does the dot product in one head sum?",
    more="The words are E wide when they come in. What is compared is narrower: how wide is a query of one head?",
    section=SCALE,
)
def scaled_by_words(steps):
    """The scores are divided by the root of the width of the words that come in.

    It is the width of one head, D, that counts.
    """
    return steps.scaled_by(steps.query.shape[-1] ** 0.5)


@MISTAKES.add(
    "the width is counted from the front",
    hint="Which index of a shape means the last one, however many there are?",
    more="Without a batch the heads are (H, T, D), and shape[2] is the width. What is it with a batch in front?",
    section=SCALE,
)
def width_from_front(steps):
    """For one sentence shape[2] of the heads is their width. With a batch in front it is the number of words."""
    q, k, v = steps.heads()
    return steps.merge(*steps.attend(q, k, v, divisor=q.shape[2] ** 0.5))


@MISTAKES.add(
    "divided by D, not by its square root",
    hint="With components of variance 1, the dot product has variance D. What is its standard deviation?",
    more="In a head of width 4 a dot product of 6 should become 3. What becomes of it in yours?",
    section=SCALE,
)
def scaled_by_width(steps):
    """The scores are divided by the width of a head itself, so the weights are flatter than they should be."""
    return steps.scaled_by(steps.width())


@MISTAKES.add(
    "always divided by 8",
    hint="Where does the 8 come from, and what would it be for heads of width 9?",
    more="In the paper the heads have width 64, whose root is 8. Yours have other widths: read the width off the "
    "arrays.",
    section=SCALE,
)
def always_eight(steps):
    """The divisor is 8 whatever the width of a head. That is the paper's number, for heads of width 64."""
    return steps.scaled_by(8.0)


@MISTAKES.add(
    "scaled by the number of heads",
    hint="Why are scores divided at all? Does the number of heads matter for that?",
    more="A dot product in a head sums over D products, however many heads there are. Which number is in your root?",
    section=SCALE,
)
def scaled_by_heads(steps):
    """The scores are divided by the root of H, the number of heads. The width D of a head belongs there."""
    return steps.scaled_by(steps.num_heads**0.5)


@MISTAKES.add(
    "scaled by the number of keys",
    hint="Which of the axes of a head is its width?",
    more="A head has one row for each key. How long is such a row? That is the number you need.",
    section=SCALE,
)
def scaled_by_keys(steps):
    """The scores are divided by the root of S, the number of keys. The width D of a head belongs there."""
    return steps.scaled_by(steps.key.shape[-2] ** 0.5)


@MISTAKES.add(
    "scaled by the number of queries",
    hint="Which of the axes of a head is its width?",
    more="A head has one row for each query. How long is such a row? That is the number you need.",
    section=SCALE,
)
def scaled_by_queries(steps):
    """The scores are divided by the root of T, the number of queries. The width D of a head belongs there."""
    return steps.scaled_by(steps.query.shape[-2] ** 0.5)


@MISTAKES.add(
    "scaled by the width of the values",
    hint="The scores are dot products of queries and keys. Does the width of the values enter there?",
    more="Values may be wider or narrower than keys. Over how many products does a score sum?",
    section=SCALE,
)
def scaled_by_value_width(steps):
    """The scores are divided by the root of the width of a head's values. It is the width of its keys that counts."""
    return steps.scaled_by((steps.w_v.shape[-1] / steps.num_heads) ** 0.5)


@MISTAKES.add(
    "the width of a head is computed from the words",
    hint="`w_q` is (E, H*D). Which of its two numbers tells you D?",
    more="In most models E and H*D are equal, but nothing demands it. With E=10 and w_q of shape (10, 6), how wide "
    "are the 3 heads?",
    section=SCALE,
)
def head_width_from_words(steps):
    """The scale takes E/H for the width of a head. That is true only where E equals H times D."""
    return steps.scaled_by((steps.query.shape[-1] // steps.num_heads) ** 0.5)


@MISTAKES.add(
    "the heads are cut by the width of the words",
    hint="`w_q` is (E, H*D). Which of its two numbers tells you D?",
    more="In most models E and H*D are equal, but nothing demands it. With E=10 and w_q of shape (10, 6), how wide "
    "are the 3 heads?",
    section=SPLITTING,
)
def cut_by_words(steps):
    """Every head is taken to be E/H wide.

    That is true only where E equals H times D: it is the projected vectors that are cut.
    """
    width = steps.query.shape[-1] // steps.num_heads
    return steps.split_by(lambda x, num_heads: x.reshape(*x.shape[:-1], num_heads, width).swapaxes(-3, -2))


@MISTAKES.add(
    "the values are cut as wide as the keys",
    hint="How wide are the values of a head? Which of the matrices tells you?",
    more="`w_q` and `w_k` are H*D wide, `w_v` is H*D_v wide. With 3 heads and w_v of shape (11, 21), how wide are the "
    "values of a head?",
    section=SPLITTING,
)
def values_cut_like_keys(steps):
    """The values of a head are taken to be D wide, as its keys are. Their own width is that of w_v over H: D_v."""
    q, k, v = steps.projected()
    *leading, _ = v.shape
    values = v.reshape(*leading, steps.num_heads, steps.width()).swapaxes(-3, -2)
    return steps.merge(*steps.attend(*steps.split(q, k), values))


@MISTAKES.add(
    "multiplied by the square root of D",
    hint="The factor is there to keep scores small. Does yours make them larger or smaller?",
    more="In a head of width 4 a dot product of 6 should become 3. What becomes of it in yours?",
    section=SCALE,
)
def multiplied_by_root(steps):
    """The scores are multiplied by the root of the width, but they should be divided by it."""
    return steps.scaled_by((steps.width()) ** -0.5)


@MISTAKES.add(
    "scaled after the softmax",
    hint="Do the weights of your heads sum to 1? Which comes first, the division or the softmax?",
    more="Print one row of the weights of one head, and its sum.",
    section=SCALE,
)
def scaled_after_softmax(steps):
    """The weights are divided by the root of the width. It is the scores, before the softmax, that are scaled."""
    context, weights = steps.attend(*steps.heads(), divisor=1)
    root = steps.width() ** 0.5
    return steps.merge(context / root, weights / root)


# Softmax and weighted sum -------------------------------------------------------------------------------------------


@MISTAKES.add(
    "the columns sum to 1, not the rows",
    hint="Every query has weights of its own that sum to 1. Along which axis of (H, T, S) do they lie?",
    more="Print the weights of one head, and the sums of its rows and of its columns. Which of them are 1?",
    section=MULTI_HEAD,
)
def softmax_over_queries(steps):
    """The softmax made the queries compete for each key. The keys should compete for each query."""
    return steps.normalised_by(lambda scores: attnlib.softmax(scores, axis=-2))


@MISTAKES.add(
    "the heads compete with each other",
    hint="Each head has weights of its own that sum to 1. Along which axis of (H, T, S) do they lie?",
    more="Print the weights of one query in one head. Do these sum to 1, or do the weights of the same key in all "
    "heads?",
    section=MULTI_HEAD,
)
def softmax_over_heads(steps):
    """The softmax runs over the heads, so they share each key among them.

    Every head has weights of its own, and in each the keys should compete.
    """
    return steps.normalised_by(lambda scores: attnlib.softmax(scores, axis=-3))


@MISTAKES.add(
    "the softmax runs over the whole table of a head",
    hint="How many sums of 1 should there be in a head: one, or one per query?",
    more="Print the weights of one head and the sum of its first row.",
    section=MULTI_HEAD,
)
def softmax_over_table(steps):
    """All weights of a head together sum to 1. Every query should have weights that sum to 1 by themselves."""
    return steps.normalised_by(
        lambda scores: attnlib.softmax(scores.reshape(*scores.shape[:-2], -1)).reshape(scores.shape)
    )


@MISTAKES.add(
    "the softmax is missing",
    hint="What turns scores, which may be negative, into weights that sum to 1?",
    more="Print one row of what you multiply the values by. Is any number in it negative?",
    section=MULTI_HEAD,
)
def no_softmax(steps):
    """The scores themselves are used as weights: they may be negative, and nothing makes them sum to 1."""
    return steps.merge(*steps.attend(*steps.heads(), softmax=lambda scores: scores, fill=0))


@MISTAKES.add(
    "the weights are not normalised",
    hint="What has to be true of the sum of each row, and which division makes it so?",
    more="Print one row of the weights of one head, and its sum.",
    section=MULTI_HEAD,
)
def not_normalised(steps):
    """The exponentials of the scores are used as weights, but nothing makes them sum to 1."""
    return steps.normalised_by(np.exp)


@MISTAKES.add(
    "each score on its own (sigmoid)",
    hint="In a softmax, raising one score lowers the weight of every other.",
    more="Print one row of the weights of one head, and its sum.",
    section=MULTI_HEAD,
)
def sigmoid(steps):
    """Each score is squashed on its own by a sigmoid, and nothing makes the weights of a row sum to 1."""
    return steps.normalised_by(lambda scores: 1 / (1 + np.exp(-scores)))


@MISTAKES.add(
    "the sign is reversed",
    hint="Which of two keys should get the larger weight: the one with the larger score, or with the smaller?",
    more="Look at the case worked by hand: the first query has the score log 3 with one word and 0 with the other, in "
    "head 0. Which gets the weight 3/4?",
    section=MULTI_HEAD,
)
def reversed_sign(steps):
    """The key that matches least gets the largest weight: there is one minus sign too many."""
    return steps.scaled_by(-((steps.width()) ** 0.5))


@MISTAKES.add(
    "the softmax overflows",
    hint="Which number can you subtract from all scores of a row so that nothing overflows and the weights stay the "
    "same?",
    more="The exponential of 1000 is too large for a float. After the shift the largest score of a row should be 0.",
    section=MULTI_HEAD,
)
def overflow(steps):
    """The result is right for small scores. For large ones exp overflows, and the weights become nan."""
    return steps.normalised_by(exponentials)


@MISTAKES.add(
    "the softmax uses one maximum for everything",
    hint="Every row of every head needs its own maximum in the softmax.",
    more="If one row has scores around 9000 and another around -3000, what is left of the second after subtracting "
    "9000?",
    section=MULTI_HEAD,
)
def global_shift(steps):
    """One maximum for all queries and heads shifts a row of much smaller scores so far down that it is 0/0: nan."""
    return steps.normalised_by(lambda scores: exponentials(scores, scores.max()))


@MISTAKES.add(
    "the keys are averaged instead of the values",
    hint="The keys determine the weights. Which vectors should the weights mix?",
    more="Which array do you multiply the weights by: the one made with w_k, or the one made with w_v?",
    section=MULTI_HEAD,
)
def averages_keys(steps):
    """The weights are right, but they average the keys of each head. The values are never looked at."""
    q, k, _ = steps.heads()
    return steps.merge(*steps.attend(q, k, k))


@MISTAKES.add(
    "the heads are in reverse order",
    hint="Which head comes first after merging?",
    more="Head 0 belongs to the first D rows of w_o. Which rows is it multiplied by in yours?",
    section=OUTPUT_PROJECTION,
)
def reversed_heads(steps):
    """The last head comes first after merging, so each head is multiplied by another head's rows of w_o."""
    context, weights = steps.attend(*steps.heads())
    return steps.merge(context[..., ::-1, :, :], weights)


@MISTAKES.add(
    "the result is divided by the number of heads",
    hint="Merging and w_o add what the heads write. Does anything divide it?",
    more="In the chapter, concatenating and multiplying by w_o is the same as a sum over heads. Is yours a sum or a "
    "mean?",
    section=OUTPUT_PROJECTION,
)
def mean_of_heads(steps):
    """What the heads write is averaged. It should be added: the right result is H times as large as yours."""
    return steps.changed_by(lambda out: out / steps.num_heads)


@MISTAKES.add(
    "the heads are averaged, not put side by side",
    hint="With 2 heads of width 4, how many different numbers do the heads write for one query?",
    more="Print what goes into the last matrix, for one query. Are the same D numbers there again and again?",
    section=OUTPUT_PROJECTION,
)
def heads_averaged_and_repeated(steps):
    """What the heads find is averaged, and the average is repeated until it has the width E.

    Each head should keep its own D numbers, side by side with those of the others.
    """
    context, weights = steps.attend(*steps.heads())
    mean = np.broadcast_to(context.mean(axis=-3, keepdims=True), context.shape)
    return steps.merge(mean, weights)


@MISTAKES.add(
    "all heads use the weights of head 0",
    hint="How many tables of weights are there for each sentence, and how many do you use?",
    more="Change the part of the queries that belongs to the last head. Does the result change? If you loop over the "
    "heads, in which places does the index of the loop appear?",
    section=ONE_AVERAGE,
)
def weights_of_head_0_for_all(steps):
    """Each head averages its own values, but with the weights of the first head."""
    q, k, v = steps.heads()
    _, weights = steps.attend(q, k, v)
    shared = np.broadcast_to(weights[..., :1, :, :], weights.shape)
    return steps.merge(shared @ v, shared)


@MISTAKES.add(
    "the query is added",
    hint="Is the result what the heads found, or that plus the query?",
    more="A transformer adds its input to what attention returns, but outside of the attention. What does the formula "
    "of this task say?",
    section=MULTI_HEAD,
)
def residual(steps):
    """The query itself is added to the result, as a transformer does around its attention.

    Here the task asks only for the result.
    """
    return steps.changed_by(lambda out: out + steps.query)


@MISTAKES.add(
    "two results instead of one",
    hint="Compare your return line with the one in the task.",
    more="The weights are useful to look at, but here the task asks only for the output.",
    section=MULTI_HEAD,
)
def with_weights(steps):
    """The output comes together with the weights. The task asks only for the output."""
    return steps.scaled_by(None), None


@MISTAKES.add(
    "the query is changed",
    hint="Some operators make a new array; others write into the one they are given. Which of yours write?",
    more="Print `query` before and after the call. It belongs to the caller.",
    section=MULTI_HEAD,
)
def changes_the_query(steps):
    """The result is right, but the caller's query has changed: it was scaled in place."""
    out = steps.scaled_by(None)
    steps.query /= (steps.width()) ** 0.5
    return out


# Masks, for implementations that take them ----------------------------------------------------------------------------


@MISTAKES.add(
    "the later keys are hidden, although the task does not ask for it",
    hint="Which keys may the first query attend to, by the formula of the task?",
    more="Print the weights of one head. All weights above the diagonal are 0: which line makes them 0, and what is it "
    "for?",
    section=MULTI_HEAD,
)
def causal_unasked(steps):
    """Each query sees only the keys up to its own position. That is for language models; here it may see them all."""
    return steps.with_other(is_causal=True)


@MISTAKES.add(
    "the mask is upside down",
    hint="What does True mean in this mask: look here, or look away?",
    more="Look at one row of the mask. Which keys get a weight in your version: those marked True? "
    "In torch.nn.MultiheadAttention, True means the opposite.",
    section=MULTI_HEAD,
)
def inverted_mask(steps):
    """Keys are hidden where the mask is True. Here True means that a query may attend."""
    mask = None if steps.attn_mask is None else ~steps.attn_mask
    return steps.with_other(attn_mask=mask)


@MISTAKES.add(
    "the mask is ignored",
    hint="Where does `attn_mask` enter your scores?",
    more="Your function takes a mask. Call it with one that allows a single key: which value should come out?",
    section=MULTI_HEAD,
)
def mask_ignored(steps):
    """The function takes a mask, but its result is the same with and without one."""
    return steps.with_other(attn_mask=None)


@MISTAKES.add(
    "`is_causal` is ignored",
    hint="Where does `is_causal` enter your scores?",
    more="With it the first query may attend to the first key alone. What weights does it have in yours?",
    section=MULTI_HEAD,
)
def causal_ignored(steps):
    """The function takes `is_causal`, but its result is the same with and without it."""
    return steps.with_other(is_causal=False)


@MISTAKES.add(
    "neither mask has an effect",
    hint="Where do `attn_mask` and `is_causal` enter your scores?",
    more="Call your function with a mask that allows a single key: which value should come out?",
    section=MULTI_HEAD,
)
def masks_ignored(steps):
    """The function takes `attn_mask` and `is_causal`, but its result is the same with and without them."""
    return steps.with_other(attn_mask=None, is_causal=False)


@MISTAKES.add(
    "a hidden key gets the score 0",
    hint="Which weight should a hidden key have, and which score gives that weight?",
    more="The exponential of 0 is 1, which is a good share of a row. Which score has the exponential 0?",
    section=MULTI_HEAD,
)
def masked_with_zero(steps):
    """Hidden keys get the score 0, which is a score like any other. Their weight should be 0, not their score."""
    return steps.merge(*steps.attend(*steps.heads(), fill=0))


@MISTAKES.add(
    "masked after the softmax",
    hint="Do the weights of a row still sum to 1 once some of them are set to 0?",
    more="Hidden keys should not enter the sum of the softmax. Which comes first, the mask or the softmax?",
    section=MULTI_HEAD,
)
def masked_after_softmax(steps):
    """The weights of hidden keys are set to 0 after the softmax, and the others no longer sum to 1."""
    q, k, v = steps.heads()
    weights = attnlib.softmax(q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5)
    weights = steps.masked(weights, 0)
    return steps.merge(weights @ v, weights)


@MISTAKES.add(
    "the mask is added as 0 and 1",
    hint="What does adding True to a score do?",
    more="True counts as 1: an allowed key gets a slightly larger score, and a hidden one is not hidden.",
    section=MULTI_HEAD,
)
def mask_added(steps):
    """A mask of True and False is added to the scores, where it counts as 1 and 0 and hides nothing."""
    q, k, v = steps.heads()
    scores = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5 + (0 if steps.attn_mask is None else steps.attn_mask)
    weights = attnlib.softmax(replace(steps, attn_mask=None).masked(scores))
    return steps.merge(weights @ v, weights)


@MISTAKES.add(
    "a query may not attend to its own position",
    hint="May query 2 attend to key 2?",
    more="Causal means: no key that comes later. Print which keys the first query may attend to.",
    section=MULTI_HEAD,
)
def strictly_causal(steps):
    """With `is_causal` a query attends to earlier keys alone. Its own position is allowed as well."""
    return _with_triangle(steps, lambda t, s: np.tri(t, s, k=-1, dtype=bool))


@MISTAKES.add(
    "the future is seen, not the past",
    hint="Which keys may the first query attend to: the first alone, or all?",
    more="Print the allowed keys as a table, one row for each query. In which corner are those that are hidden?",
    section=MULTI_HEAD,
)
def anti_causal(steps):
    """With `is_causal` a query attends to its own and later keys. It should be its own and earlier ones."""
    return _with_triangle(steps, lambda t, s: np.tri(s, t, dtype=bool).T)


@MISTAKES.add(
    "the causal rule is counted from the end",
    hint="With 5 queries and 7 keys, which keys may query 0 attend to?",
    more="Query i may attend to key j only if j is at most i, both counted from the start. With 5 queries and 7 keys, "
    "yours lets query 0 see three keys.",
    section=MULTI_HEAD,
)
def causal_from_the_end(steps):
    """With more keys than queries, the last query is aligned with the last key.

    Here both are counted from the start.
    """
    return _with_triangle(steps, lambda t, s: np.tri(t, s, k=s - t, dtype=bool))


@MISTAKES.add(
    "one of two masks is enough",
    hint="If the mask forbids a key and the causal rule allows it, may a query attend to it?",
    more="Both have to allow a key. Take one that the mask hides, and follow it through your lines with `is_causal`.",
    section=MULTI_HEAD,
)
def either_mask(steps):
    """With both a mask and `is_causal`, a key counts if one of them allows it. Both have to."""
    if steps.attn_mask is None or not steps.is_causal:
        return steps.scaled_by(None)
    return _with_triangle(steps, lambda t, s: np.tri(t, s, dtype=bool) | steps.attn_mask, attn_mask=None)


@MISTAKES.add(
    "nothing to attend to becomes nan",
    hint="What does your softmax do with a row in which every score is minus infinity?",
    more="All exponentials of such a row are 0, and so is their sum. Which weights should it have, if it may attend "
    "to nothing, and which vector is then the average?",
    section=MULTI_HEAD,
)
def empty_is_nan(steps):
    """A query that may attend to nothing gets nan, from 0/0. Its weights should be 0, and so should its result."""
    return steps.normalised_by(lambda scores: exponentials(scores, scores.max(axis=-1, keepdims=True)))


@MISTAKES.add(
    "nothing to attend to becomes the plain mean",
    hint="A row in which all scores are equally low: what does a softmax make of it?",
    more="All keys of that query are hidden, and yet every one of them gets the same weight. Which weight should it "
    "be?",
    section=MULTI_HEAD,
)
def empty_is_uniform(steps):
    """A query that may attend to nothing attends to everything equally. Its weights and its result should be 0."""
    return steps.merge(*steps.attend(*steps.heads(), fill=-1e9))


@MISTAKES.add(
    "nothing to attend to, and everything is seen",
    hint="What does a softmax make of a row to which the same number is added everywhere?",
    more="Adding -1e9 to all scores of a row is a shift, and a softmax does not notice shifts. Which weights should a "
    "query get if it may attend to nothing?",
    section=MULTI_HEAD,
)
def empty_is_unmasked(steps):
    """A query that may attend to nothing sees all keys, as if nothing were hidden. Its weights should be 0."""
    allowed = steps.masked(np.ones((*steps.query.shape[:-2], 1, steps.query.shape[-2], steps.key.shape[-2])), 0) > 0
    allowed = allowed | ~allowed.any(axis=-1, keepdims=True)
    return steps.with_other(attn_mask=allowed, is_causal=False)


@MISTAKES.add(
    "every head returns the last head's result",
    hint="Compare your heads with each other. Should any two of them be equal?",
    more="A variable inside a function, or after a loop, is looked up when the line runs. Which head's number does "
    "it hold then?",
    section=MULTI_HEAD,
)
def last_head_for_all(steps):
    """All heads return the result of the last one. Each should attend with its own queries, keys and values."""
    context, weights = steps.attend(*steps.heads())
    return steps.merge(np.repeat(context[..., -1:, :, :], steps.num_heads, axis=-3), weights)


@MISTAKES.add(
    "the columns of w_v are counted in steps of D",
    hint="How wide are the values of a head? Which of the matrices tells you?",
    more="`w_q` and `w_k` are H*D wide, `w_v` is H*D_v wide. With 3 heads and w_v of shape (11, 21), which columns "
    "belong to head 1?",
    section=SPLITTING,
)
def value_bands_like_keys(steps):
    """Each head takes D columns of w_v and D rows of w_o. It should take D_v: values may be wider than keys."""
    q, k, v = steps.projected()
    used = steps.num_heads * steps.width()
    context, weights = steps.attend(*steps.split(q, k, v[..., :used]))
    return steps.finish(attnlib.merge_heads(context) @ steps.w_o[:used], weights)


@MISTAKES.add(
    "the matrix of the values is cut across its rows",
    hint="You cut three matrices. Does your function cut each of them in the same way?",
    more="Compare your part of w_v for head 0 with the first D_v columns of w_v. Where do they differ?",
    section=SPLITTING,
)
def value_matrix_reshaped(steps):
    """You cut the matrices of queries and keys into columns, but still reshape that of the values directly."""
    q, k, _ = steps.heads()
    v = steps.value[..., None, :, :] @ steps.w_v.reshape(steps.num_heads, steps.w_v.shape[0], -1)
    return steps.merge(*steps.attend(q, k, v))


@MISTAKES.add(
    "the matrices are cut across their rows, and the scale is that of all heads",
    hint="How does your matrix of head 0 differ from the first D columns of w_q? And how wide is one head?",
    more="A reshape cannot gather columns: they are not next to each other in memory. The scale should come from the "
    "width of one head.",
    section=SPLITTING,
)
def matrices_reshaped_and_scaled_by_all(steps):
    """You reshape the matrices to (H, E, D) directly. You also divide the scores by the root of H*D, not of D."""

    def each(x, w):
        return x[..., None, :, :] @ w.reshape(steps.num_heads, w.shape[0], -1)

    heads = each(steps.query, steps.w_q), each(steps.key, steps.w_k), each(steps.value, steps.w_v)
    return steps.merge(*steps.attend(*heads, divisor=steps.w_q.shape[-1] ** 0.5))


@MISTAKES.add(
    "the matrices are transposed, then reshaped",
    hint="Compare your matrix of head 0 with the first D columns of w_q. Where do they differ?",
    more="After the transpose, the D columns of a head are D consecutive rows, so a reshape to (H, D, E) separates "
    "the heads. What remains to be done to get (H, E, D)?",
    section=SPLITTING,
)
def matrices_transposed_and_reshaped(steps):
    """You reshape the transposed matrices to (H, E, D) directly, which puts the numbers in the wrong places."""

    def each(x, w):
        return x[..., None, :, :] @ w.T.reshape(steps.num_heads, w.shape[0], -1)

    return steps.merge(
        *steps.attend(each(steps.query, steps.w_q), each(steps.key, steps.w_k), each(steps.value, steps.w_v))
    )


@MISTAKES.add(
    "the heads are not the first axis of the matrices",
    hint="You cut the columns correctly. What is the order of the three axes now, and which order do you need?",
    more="A product of stacked matrices uses the last two axes. For your matrices, these have to be E and D, with "
    "the heads before them. Print the shape of yours.",
    section=SPLITTING,
)
def matrices_not_swapped(steps):
    """You reshape the matrices to (E, H, D) and leave the heads in the middle. They should come first: (H, E, D)."""

    def each(x, w):
        return x[..., None, :, :] @ w.reshape(w.shape[0], steps.num_heads, -1)

    return steps.merge(
        *steps.attend(each(steps.query, steps.w_q), each(steps.key, steps.w_k), each(steps.value, steps.w_v))
    )


@MISTAKES.add(
    "all heads average the values of the last one",
    hint="Every head has its own weights. Which values do they average in your function?",
    more="A variable that a loop sets keeps its last value after the loop. Which head's values does it hold then?",
    section=MULTI_HEAD,
)
def last_values_for_all(steps):
    """Each head has its own weights, but all of them average the values of the last head."""
    q, k, v = steps.heads()
    return steps.merge(*steps.attend(q, k, v[..., -1:, :, :]))


@MISTAKES.add(
    "only as many keys as queries are used",
    hint="How many keys are there, and how far does your loop over the keys run?",
    more="With 5 queries and 7 keys, each row has 7 weights. The number of keys is in the shape of the keys.",
    section=MULTI_HEAD,
)
def as_many_keys_as_queries(steps):
    """You use only as many keys as there are queries. The other keys, and their values, are left out."""
    q, k, v = steps.heads()
    count = q.shape[-2]
    scores = np.stack([(q * k[..., j : j + 1, :]).sum(axis=-1) for j in range(count)], axis=-1)
    weights = attnlib.softmax(steps.masked(scores / q.shape[-1] ** 0.5))
    return steps.merge(weights @ v[..., :count, :], weights)


def _with_triangle(steps, triangle, **changed):
    """Return the result with a different rule for `is_causal`, a function of T and S."""
    if not steps.is_causal:
        return steps.scaled_by(None)
    allowed = triangle(steps.query.shape[-2], steps.key.shape[-2])
    steps = replace(steps, **changed)
    allowed = allowed if steps.attn_mask is None else allowed & steps.attn_mask
    return steps.with_other(attn_mask=allowed, is_causal=False)


def _reshaped(x, num_heads):
    return x.reshape(*x.shape[:-2], num_heads, x.shape[-2], -1)


def _joined(x):
    return x.reshape(*x.shape[:-3], x.shape[-2], -1)


def _striped(x, num_heads):
    return np.moveaxis(x.reshape(*x.shape[:-1], -1, num_heads), -1, -3)


def _joined_in_stripes(x):
    x = np.moveaxis(x, -3, -1)
    return x.reshape(*x.shape[:-2], -1)


EXERCISE = Exercise(
    name="multi_head_attention",
    reference=attnlib.multi_head_attention,
    outputs={"out": ("T", "E_out")},
    rubric={NUMBERS: 6, BATCHES: 3, WIDTHS: 1, LARGE: 1, UNCHANGED: 1},
    section=MULTI_HEAD,
    advice="Set all four matrices to the identity and take one head: your result should be that of plain attention. "
    "Then take two heads, and compare each of them with plain attention of its columns.",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    ungraded_options=("attn_mask", "is_causal"),
    solved_by=MULTI_HEAD_FUNCTIONS,
)
