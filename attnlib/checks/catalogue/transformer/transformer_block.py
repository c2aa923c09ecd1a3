"""TransformerBlock(embed_dim, num_heads, ff_dim): pre-norm, with relu, called with a batch of sequences."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import attnlib
import attnlib.numpy
from attnlib.checks.calling.case import Case, Implementation
from attnlib.checks.calling.conventions import call_module
from attnlib.checks.catalogue.duplicate_rows import with_duplicate_rows
from attnlib.checks.catalogue.transformer.sections import BLOCK, JOBS, LAYER_NORM, NO_PLUS, PRE_OR_POST, RESIDUAL
from attnlib.checks.exercise import Exercise, Mistakes

NUMBERS, SIZES, FLAT = "the numbers", "other sizes", "rows that hardly vary"
LARGE, UNCHANGED, MORE = "large scores", "input unchanged", "more than is asked for"
EPS = 1e-5


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: one row by hand, a batch, other sizes, rows of hardly any variance, large scores, extras."""
    hand = {"weights": by_hand(), "query": np.array([[[1.0, 5.0]]])}
    yield Case("one row (1, 5), worked by hand in the task", NUMBERS, hand, setup=sizes(2, 1, 3))
    plain = sizes(6, 2, 9)
    yield Case(
        "a batch of 4 sequences (T=5, E=6, 2 heads, 9 wide inside)", NUMBERS, given(rng, plain, 4, 5), setup=plain
    )
    one = sized(rng, (8, 4, 3), 1, 7)
    one[0]["weights"]["linear1.bias"][0] += 12.0  # this exposes an activation that goes no higher than 6
    yield Case("one sequence (T=7, E=8, 4 heads, 3 wide inside)", SIZES, *one)
    yield Case("sequences of one token (B=3, E=10, 5 heads)", SIZES, *sized(rng, (10, 5, 7), 3, 1))
    yield Case("vectors in float32", SIZES, *sized(rng, (6, 3, 11), 2, 4, np.float32))
    repeated = with_duplicate_rows(given(rng, plain, 2, 5), "query")
    yield Case("sequences with a repeated token", SIZES, repeated, setup=plain)
    chance = Case("module.train() instead of module.eval()", SIZES, given(rng, plain, 3, 4), setup=plain)
    yield replace(chance, training=True, backends=("torch",))
    flat = given(rng, plain, 2, 3)
    flat["query"] = np.array([2.0, -1.0, 0.5])[:, None] + 0.004 * flat["query"]
    flat["query"][0, 1] = 7.0
    flat["weights"]["self_attn.out_proj.weight"] *= 0.02
    flat["weights"]["self_attn.out_proj.bias"] *= 0.02
    yield Case("rows that hardly vary, and one that does not vary at all", FLAT, flat, setup=plain)
    large = given(rng, plain, 2, 5)
    large["weights"]["self_attn.q_proj.weight"] *= 1000.0
    large["query"] *= 100.0  # so that eps, which large scores would magnify, does not matter
    yield Case("scores of a thousand and more", LARGE, large, setup=plain)
    yield Case("an input that must stay as it is", UNCHANGED, given(rng, plain, 3, 4), setup=plain, unchanged=True)
    post = given(rng, plain, 4, 5)
    post["weights"]["norm1.weight"] *= 20.0  # so that eps hardly matters in the second norm either
    yield Case("norm='post'", MORE, post, setup={**plain, "norm": "post"})
    yield Case("norm='pre' given explicitly", MORE, given(rng, plain, 3, 4), setup={**plain, "norm": "pre"})
    mask = np.array([[1, 0, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1], [0, 0, 1, 1]], bool)
    yield Case("a mask of True and False", MORE, given(rng, plain, 3, 4), {"attn_mask": mask}, setup=plain)
    yield Case("the causal rule", MORE, given(rng, plain, 3, 4), {"is_causal": True}, setup=plain)
    yield Case(
        "the weights asked for", MORE, given(rng, plain, 3, 4), {"need_weights": True}, plain, ("output", "weights")
    )


def sizes(embed_dim: int, num_heads: int, ff_dim: int) -> dict[str, Any]:
    """Return the numbers that a block is made with."""
    return {"embed_dim": embed_dim, "num_heads": num_heads, "ff_dim": ff_dim}


def sized(
    rng, dims: tuple[int, int, int], batch: int, t: int, dtype=np.float64
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return inputs, options and setup for a block of these sizes."""
    setup = sizes(*dims)
    return given(rng, setup, batch, t, dtype), {}, setup


def by_hand() -> dict[str, NDArray[Any]]:
    """Return weights of width 2 for which everything can be done on paper, but for the size of eps."""
    eye, zero = np.eye(2), np.zeros(2)
    weights = {f"self_attn.{name}_proj.{kind}": x for name in "qk" for kind, x in (("weight", eye), ("bias", zero))}
    weights |= {"self_attn.v_proj.weight": eye[::-1].copy(), "self_attn.v_proj.bias": zero}
    weights |= {"self_attn.out_proj.weight": eye, "self_attn.out_proj.bias": np.array([1.0, 4.0])}
    weights |= {"linear1.weight": np.array([[-1.0, 1], [1, 0], [0, 3]]), "linear1.bias": np.zeros(3)}
    weights |= {"linear2.weight": np.array([[1.0, 5, 0], [0, 5, -1]]), "linear2.bias": zero}
    return weights | {f"norm{n}.{kind}": x for n in (1, 2) for kind, x in (("weight", np.ones(2)), ("bias", zero))}


def given(rng, setup: dict[str, Any], batch: int, t: int, dtype=np.float64) -> dict[str, Any]:
    """Return random weights, and a batch of sequences whose rows vary so much that eps hardly matters."""
    width, inside = setup["embed_dim"], setup["ff_dim"]
    weights = {}
    for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
        weights[f"self_attn.{name}.weight"] = rng.normal(size=(width, width)) / math.sqrt(width)
        weights[f"self_attn.{name}.bias"] = rng.normal(size=width) / 2
    for name, shape in (("linear1", (inside, width)), ("linear2", (width, inside))):
        weights[f"{name}.weight"] = rng.normal(size=shape) / math.sqrt(shape[1])
        weights[f"{name}.bias"] = rng.normal(size=shape[0]) / 2
    for name in ("norm1", "norm2"):
        weights[f"{name}.weight"] = rng.uniform(0.5, 1.5, size=width)
        weights[f"{name}.bias"] = rng.normal(size=width) / 2
    rows = rng.normal(size=(batch, t, width))
    rows = (rows - rows.mean(-1, keepdims=True)) / rows.std(-1, keepdims=True)
    lengths, shifts = rng.uniform(20, 30, size=(batch, t, 1)), rng.normal(size=(batch, t, 1))
    return {
        "weights": {name: x.astype(dtype) for name, x in weights.items()},
        "query": (lengths * rows + shifts).astype(dtype),
    }


class _Quick(attnlib.numpy.TransformerBlock):
    """The library's block, which looks for its parameters once: a check makes a hundred of them."""

    def __init__(self, embed_dim, num_heads, ff_dim, *, norm="pre"):
        super().__init__(embed_dim, num_heads, ff_dim, norm=norm)
        self._found = tuple(super()._parameters())

    def _parameters(self):
        return iter(self._found)


def _wrong_block(function: Implementation) -> Implementation:
    """Make a class of ``function(block, x, attend)``, where ``attend`` is the block's attention with its masks."""

    class Wrong(_Quick):
        def forward(self, query, attn_mask=None, *, is_causal=False, need_weights=False):  # type: ignore[override]
            seen = []

            def attend(x, key=None, value=None, *, masked=True, turned=False):
                mask = ~attn_mask if turned and attn_mask is not None else attn_mask
                options = {"attn_mask": mask, "is_causal": is_causal} if masked else {}
                out, weights = self.self_attn(x, key, value, **options, need_weights=True)
                seen.append(weights)
                return out

            out = function(self, query, attend)
            return (out, *seen[-1:]) if need_weights else out

    return Wrong


MISTAKES = Mistakes(wrap=_wrong_block)


def _feed_forward(block, x):
    return block.linear2(np.maximum(block.linear1(x), 0))


def _finish(block, x):
    """The second half as it should be."""
    return x + _feed_forward(block, block.norm2(x))


def _first_half(block, x, attend):
    """The first half as it should be."""
    return x + attend(block.norm1(x))


def _with_norm(block, x, attend, norm):
    """The whole block with another layer norm: ``norm(layer, x)``."""
    x = x + attend(norm(block.norm1, x))
    return x + _feed_forward(block, norm(block.norm2, x))


def _standard(layer, x, axis=-1, ddof=0, eps=EPS):
    centred = x - x.mean(axis=axis, keepdims=True)
    return centred / np.sqrt(x.var(axis=axis, keepdims=True, ddof=ddof) + eps)


# The order of norm, part and sum -----------------------------------------------------------------------------------


@MISTAKES.add(
    "post-norm instead of pre-norm",
    hint="Follow the thick line from the input to the output. Does it pass through a norm?",
    more="Set the output projection and the second linear layer to zero, in your head. A pre-norm block then returns "
    "its input as it came. What does yours return?",
    section=PRE_OR_POST,
)
def post_norm(block, x, attend):
    """Your block normalises after each addition, as the first transformer did.

    Here the copy that a part reads is normalised, and the stream itself is not.
    """
    x = block.norm1(x + attend(x))
    return block.norm2(x + _feed_forward(block, x))


@MISTAKES.add(
    "the norm comes after each part, before the sum",
    hint="What does each part read: a row of standard size, or the row as it came?",
    more="Write down the five things that happen in one half, in order: copy, norm, part, sum, go on. Compare with "
    "the order of your lines.",
    section=PRE_OR_POST,
)
def norm_on_the_branch(block, x, attend):
    """Each part reads the stream as it is, and what it made is normalised before it is added.

    The norm belongs before the part.
    """
    x = x + block.norm1(attend(x))
    return x + block.norm2(_feed_forward(block, x))


@MISTAKES.add(
    "the first half is post-norm, the second pre-norm",
    hint="Write both halves one below the other. Do they have the same form?",
    more="In one half the sum goes through a norm and in the other it does not. Which of the two keeps the stream as "
    "it is?",
    section=PRE_OR_POST,
)
def post_then_pre(block, x, attend):
    """You normalise the sum in the first half, and what the part reads in the second.

    In a pre-norm block both halves have the second form.
    """
    return _finish(block, block.norm1(x + attend(x)))


@MISTAKES.add(
    "the first half is pre-norm, the second post-norm",
    hint="Write both halves one below the other. Do they have the same form?",
    more="In one half the sum goes through a norm and in the other it does not. Which of the two keeps the stream as "
    "it is?",
    section=PRE_OR_POST,
)
def pre_then_post(block, x, attend):
    """You normalise what the part reads in the first half, and the sum in the second.

    In a pre-norm block both halves have the first form.
    """
    x = _first_half(block, x, attend)
    return block.norm2(x + _feed_forward(block, x))


@MISTAKES.add(
    "normalised before each part and after the sum",
    hint="How many norms does the block have, and how often is each of them used?",
    more="Count the uses of the norms in one run of your block. A pre-norm block has one for each part, and none for "
    "the sums.",
    section=PRE_OR_POST,
)
def norm_before_and_after(block, x, attend):
    """What each part reads is normalised, and then the sum is normalised as well, by the same layer.

    The sum should stay as it is.
    """
    x = block.norm1(_first_half(block, x, attend))
    return block.norm2(_finish(block, x))


@MISTAKES.add(
    "normalised before each part and after it",
    hint="How many norms does the block have, and how often is each of them used?",
    more="Count the uses of the norms in one run of your block. A pre-norm block has one for each part, before it.",
    section=PRE_OR_POST,
)
def norm_around_the_parts(block, x, attend):
    """What each part reads is normalised, and what it made is normalised as well before it is added.

    What a part made should be added as it is.
    """
    x = x + block.norm1(attend(block.norm1(x)))
    return x + block.norm2(_feed_forward(block, block.norm2(x)))


@MISTAKES.add(
    "one norm too many at the end",
    hint="What happens to the stream after the last sum of a block?",
    more="Give your block weights for which both parts add nothing. Does the input come out, or its normalised copy?",
    section=PRE_OR_POST,
)
def norm_at_the_end(block, x, attend):
    """The block is right until its end, where the result is normalised once more.

    One more norm comes at the end of a whole stack, not of a block.
    """
    return block.norm2(_finish(block, _first_half(block, x, attend)))


@MISTAKES.add(
    "one norm too many at the end (without gain and shift)",
    hint="What happens to the stream after the last sum of a block?",
    more="Give your block weights for which both parts add nothing. Does the input come out, or its normalised copy?",
    section=PRE_OR_POST,
)
def plain_norm_at_the_end(block, x, attend):
    """The block is right until its end, where the result is brought to mean 0 and variance 1.

    One more norm comes at the end of a whole stack, not of a block.
    """
    return _standard(None, _finish(block, _first_half(block, x, attend)))


@MISTAKES.add(
    "the feed-forward layer comes first",
    hint="Which of the two parts gathers from other words, and which then works on what was gathered?",
    more="Read the two lines of your forward from top to bottom, and name the part in each. Compare with the two "
    "formulas of the task.",
    section=JOBS,
)
def feed_forward_first(block, x, attend):
    """Both halves are there, each with its own norm, but their order is wrong. Attention comes first."""
    return _first_half(block, _finish(block, x), attend)


@MISTAKES.add(
    "the feed-forward layer comes first, and the norms stayed in their places",
    hint="Which of the two parts gathers from other words, and which then works on what was gathered?",
    more="The first norm belongs to attention, the second to the feed-forward layer, and attention comes first. Which "
    "of these three does your forward keep?",
    section=JOBS,
)
def parts_swapped(block, x, attend):
    """The feed-forward layer reads the first norm and attention the second. Attention comes first."""
    x = x + _feed_forward(block, block.norm1(x))
    return x + attend(block.norm2(x))


@MISTAKES.add(
    "both parts read the input, side by side",
    hint="May the feed-forward layer see what attention has just added?",
    more="Which x does your second half normalise: the one that came in, or the one that attention has added to?",
    section=JOBS,
)
def parallel(block, x, attend):
    """Both parts read the block's input, each through its own norm, and both results are added.

    The feed-forward layer should read the stream after attention has added to it.
    """
    return x + attend(block.norm1(x)) + _feed_forward(block, block.norm2(x))


@MISTAKES.add(
    "both parts read the same normalised input",
    hint="May the feed-forward layer see what attention has just added?",
    more="Some models (GPT-J) do this, with a single norm. Here there are two norms: what does the second one read?",
    section=JOBS,
)
def parallel_with_one_norm(block, x, attend):
    """Both parts read the first norm of the block's input.

    The feed-forward layer should read the second norm, of the stream after attention has added to it.
    """
    read = block.norm1(x)
    return x + attend(read) + _feed_forward(block, read)


# The plus signs ----------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "attention replaces its input",
    hint="There are two plus signs in a block. Where is the first one?",
    more="Set the output projection to zero, in your head. What should be in the stream after the first half, and what "
    "is there in yours?",
    section=NO_PLUS,
)
def no_first_residual(block, x, attend):
    """After attention the stream holds only what attention made.

    The result should be added to the input, not replace it.
    """
    return _finish(block, attend(block.norm1(x)))


@MISTAKES.add(
    "the feed-forward layer replaces its input",
    hint="There are two plus signs in a block. Where is the second one?",
    more="Set the second linear layer to zero, in your head. What should come out of the block, and what does yours "
    "return?",
    section=NO_PLUS,
)
def no_second_residual(block, x, attend):
    """The block returns only what the feed-forward layer made. That should be added to the stream."""
    x = _first_half(block, x, attend)
    return _feed_forward(block, block.norm2(x))


@MISTAKES.add(
    "both plus signs are missing",
    hint="What is left of the input row when both parts are set to zero?",
    more="The thick line of the figure runs from bottom to top without a break. Follow it in your code: which line "
    "cuts it?",
    section=NO_PLUS,
)
def no_residuals(block, x, attend):
    """Each part replaces what came in. Both should add to it; without that, the rows of a deep stack become alike."""
    return _feed_forward(block, block.norm2(attend(block.norm1(x))))


@MISTAKES.add(
    "post-norm, and without the plus signs",
    hint="What is left of the input row when both parts are set to zero?",
    more="Two ideas are missing here. Begin with the sums: what is attention's result added to?",
    section=NO_PLUS,
)
def post_norm_without_residuals(block, x, attend):
    """Each part replaces what came in, and a norm follows it.

    Each part should read a normalised copy and add to the stream.
    """
    return block.norm2(_feed_forward(block, block.norm1(attend(x))))


@MISTAKES.add(
    "the normalised copy is added, in both halves",
    hint="Did you give the normalised rows the same name as the stream?",
    more="There are two arrays in each half: the stream, and its normalised copy. Which of them goes into the part, "
    "and which into the sum?",
    section=RESIDUAL,
)
def residual_from_the_norm(block, x, attend):
    """What the parts make is added to the normalised copy, so the stream itself is lost.

    It should be added to the stream as it was before the norm.
    """
    x = block.norm1(x)
    x = x + attend(x)
    x = block.norm2(x)
    return x + _feed_forward(block, x)


@MISTAKES.add(
    "the normalised copy is added, in the first half",
    hint="What does attention's result get added to: the stream, or the copy that attention read?",
    more="Compare your two halves: in one of them the stream survives the norm, in the other it does not.",
    section=RESIDUAL,
)
def first_residual_from_the_norm(block, x, attend):
    """What attention makes is added to the normalised copy.

    It should be added to the stream as it was before the norm.
    """
    x = block.norm1(x)
    return _finish(block, x + attend(x))


@MISTAKES.add(
    "the normalised copy is added, in the second half",
    hint="What does the feed-forward result get added to: the stream, or the copy that the layer read?",
    more="Compare your two halves: in one of them the stream survives the norm, in the other it does not.",
    section=RESIDUAL,
)
def second_residual_from_the_norm(block, x, attend):
    """What the feed-forward layer makes is added to the normalised copy.

    It should be added to the stream as it was before the norm.
    """
    x = block.norm2(_first_half(block, x, attend))
    return x + _feed_forward(block, x)


@MISTAKES.add(
    "what attention added is lost again",
    hint="In your last sum, which x comes before the plus sign?",
    more="There are three streams in a block: before, between and after the two parts. Give them three names. Which "
    "one does the last sum begin with?",
    section=RESIDUAL,
)
def second_residual_from_the_input(block, x, attend):
    """The last sum starts from the block's input, so attention's own addition is dropped.

    It should start from the stream after the first half.
    """
    return x + _feed_forward(block, block.norm2(_first_half(block, x, attend)))


@MISTAKES.add(
    "the feed-forward layer reads attention's result alone",
    hint="What should the second half read: what attention has added, or the stream that it was added to?",
    more="Set the output projection to zero, in your head. The feed-forward layer should still read the input row. "
    "What does yours read?",
    section=RESIDUAL,
)
def reads_attention_alone(block, x, attend):
    """The second norm gets what attention made, without the input. It should get their sum, the stream."""
    attended = attend(block.norm1(x))
    return x + attended + _feed_forward(block, block.norm2(attended))


@MISTAKES.add(
    "one plus sign around both parts",
    hint="How many plus signs does a block have, and how many does yours have?",
    more="Write down what the second norm reads. In the formula there is a sum inside: where is it in yours?",
    section=RESIDUAL,
)
def one_long_residual(block, x, attend):
    """The feed-forward layer works on attention's result alone, and only then is the input added.

    Each part has a plus sign of its own.
    """
    return x + _feed_forward(block, block.norm2(attend(block.norm1(x))))


@MISTAKES.add(
    "the input is missing from the last sum",
    hint="What should be in the stream at the end, besides what the two parts have added?",
    more="Set both parts to zero, in your head. The input should come out. What does yours return?",
    section=RESIDUAL,
)
def input_lost(block, x, attend):
    """The sum that is returned holds what the two parts made, but not the block's input."""
    attended = attend(block.norm1(x))
    return attended + _feed_forward(block, block.norm2(x + attended))


@MISTAKES.add(
    "the input is added twice",
    hint="How often does the block's input appear in the sum that you return?",
    more="Set both parts to zero, in your head. Does the input come out once, or twice?",
    section=RESIDUAL,
)
def input_added_twice(block, x, attend):
    """The input is added after attention and once more at the end.

    The second sum starts from the stream, which holds the input already.
    """
    return x + _finish(block, _first_half(block, x, attend))


# Which norm reads what ---------------------------------------------------------------------------------------------


@MISTAKES.add(
    "the two norms are swapped",
    hint="Which norm belongs to attention, and which to the feed-forward layer?",
    more="Both norms have a gain and a shift of their own, so it matters which is which. The first belongs to the part "
    "that comes first.",
    section=BLOCK,
)
def norms_swapped(block, x, attend):
    """Attention reads the second norm and the feed-forward layer the first. It should be the other way round."""
    x = x + attend(block.norm2(x))
    return x + _feed_forward(block, block.norm1(x))


@MISTAKES.add(
    "the first norm serves both halves",
    hint="How many norms does the block have, and which of them does your forward never use?",
    more="Fresh norms are all alike, so with untrained weights this cannot be seen. What differs after training?",
    section=BLOCK,
)
def first_norm_twice(block, x, attend):
    """The first norm is used in both halves. The second half has a norm with parameters of its own."""
    x = _first_half(block, x, attend)
    return x + _feed_forward(block, block.norm1(x))


@MISTAKES.add(
    "the second norm serves both halves",
    hint="How many norms does the block have, and which of them does your forward never use?",
    more="Fresh norms are all alike, so with untrained weights this cannot be seen. What differs after training?",
    section=BLOCK,
)
def second_norm_twice(block, x, attend):
    """The second norm is used in both halves. The first half has a norm with parameters of its own."""
    return _finish(block, x + attend(block.norm2(x)))


@MISTAKES.add(
    "attention reads rows that are not normalised",
    hint="What should happen to a row before attention reads it?",
    more="Multiply the input of your block by ten. Attention should hardly notice. Does yours?",
    section=BLOCK,
)
def first_norm_forgotten(block, x, attend):
    """The first norm is missing: attention reads the stream as it is."""
    return _finish(block, x + attend(x))


@MISTAKES.add(
    "the feed-forward layer reads rows that are not normalised",
    hint="What should happen to a row before the feed-forward layer reads it?",
    more="Compare the two halves of your block: what does the first one do before its part that the second does not?",
    section=BLOCK,
)
def second_norm_forgotten(block, x, attend):
    """The second norm is missing: the feed-forward layer reads the stream as it is."""
    x = _first_half(block, x, attend)
    return x + _feed_forward(block, x)


@MISTAKES.add(
    "nothing is normalised",
    hint="The block has two layers that your forward never calls. Which, and what are they for?",
    more="In a deep stack the rows grow with every sum. What keeps them at a standard size for the parts that read "
    "them?",
    section=LAYER_NORM,
)
def no_norms(block, x, attend):
    """Both parts read the stream as it is. Each should read a normalised copy."""
    x = x + attend(x)
    return x + _feed_forward(block, x)


@MISTAKES.add(
    "keys and values are not normalised",
    hint="In self-attention, queries, keys and values are made of the same rows. Are they, in yours?",
    more="How many times does the normalised copy appear in your call of attention, and how many times the stream?",
    section=BLOCK,
)
def keys_not_normalised(block, x, attend):
    """The queries come from the normalised copy, but the keys and values from the stream itself.

    All three should come from the copy.
    """
    return _finish(block, x + attend(block.norm1(x), x, x))


@MISTAKES.add(
    "the values are not normalised",
    hint="In self-attention, queries, keys and values are made of the same rows. Are they, in yours?",
    more="How many times does the normalised copy appear in your call of attention, and how many times the stream?",
    section=BLOCK,
)
def values_not_normalised(block, x, attend):
    """Queries and keys come from the normalised copy, but the values from the stream itself.

    All three should come from the copy.
    """
    read = block.norm1(x)
    return _finish(block, x + attend(read, read, x))


@MISTAKES.add(
    "the queries are not normalised",
    hint="In self-attention, queries, keys and values are made of the same rows. Are they, in yours?",
    more="How many times does the normalised copy appear in your call of attention, and how many times the stream?",
    section=BLOCK,
)
def queries_not_normalised(block, x, attend):
    """Keys and values come from the normalised copy, but the queries from the stream itself.

    All three should come from the copy.
    """
    read = block.norm1(x)
    return _finish(block, x + attend(x, read, read))


# Inside the feed-forward layer -------------------------------------------------------------------------------------


@MISTAKES.add(
    "the activation between the two linear layers is missing",
    hint="Two matrices in a row amount to one. What is between them in the formula?",
    more="Find a number inside your feed-forward layer that is negative just before the second linear layer. Should "
    "there be one?",
    section=JOBS,
)
def no_activation(block, x, attend):
    """The two linear layers follow each other directly. Between them every negative number should become 0."""
    x = _first_half(block, x, attend)
    return x + block.linear2(block.linear1(block.norm2(x)))


@MISTAKES.add(
    "gelu instead of relu",
    hint="What does the activation function of this task do with a negative number: make it small, or make it 0?",
    more="Put the number -1 through your activation function by hand. What should come out?",
    section=JOBS,
)
def gelu(block, x, attend):
    """The activation is the smooth one of BERT and GPT, which lets a little of a negative number through.

    The task asks for the one with a corner, max(0, u).
    """
    x = _first_half(block, x, attend)
    inside = block.linear1(block.norm2(x))
    return x + block.linear2(block.ACTIVATIONS["gelu"](inside))


def _inside(block, x, attend):
    """What the first linear layer makes, before the activation."""
    return block.linear1(block.norm2(_first_half(block, x, attend)))


@MISTAKES.add(
    "silu instead of relu",
    hint="What does the activation function of this task do with a negative number: make it small, or make it 0?",
    more="Put the number -1 through your activation function by hand. What should come out?",
    section=JOBS,
)
def silu(block, x, attend):
    """The activation multiplies each number by its sigmoid, which lets a little of a negative number through.

    The task asks for the one with a corner, max(0, u).
    """
    inside = _inside(block, x, attend)
    return _first_half(block, x, attend) + block.linear2(inside / (1 + np.exp(-inside)))


@MISTAKES.add(
    "sigmoid instead of relu",
    hint="What does the activation function of this task do with a large positive number?",
    more="Put the numbers -1 and 3 through your activation function by hand. 0 and 3 should come out.",
    section=JOBS,
)
def sigmoid(block, x, attend):
    """The activation squeezes every number between 0 and 1.

    The task asks for max(0, u), which leaves positive numbers as they are.
    """
    inside = _inside(block, x, attend)
    return _first_half(block, x, attend) + block.linear2(1 / (1 + np.exp(-inside)))


@MISTAKES.add(
    "tanh instead of relu",
    hint="What does the activation function of this task do with a large positive number?",
    more="Put the numbers -1 and 3 through your activation function by hand. 0 and 3 should come out.",
    section=JOBS,
)
def tanh(block, x, attend):
    """The activation squeezes every number between -1 and 1.

    The task asks for max(0, u), which leaves positive numbers as they are.
    """
    inside = _inside(block, x, attend)
    return _first_half(block, x, attend) + block.linear2(np.tanh(inside))


@MISTAKES.add(
    "leaky relu instead of relu",
    hint="What does the activation function of this task do with a negative number: make it small, or make it 0?",
    more="Put the number -1 through your activation function by hand. What should come out?",
    section=JOBS,
)
def leaky_relu(block, x, attend):
    """Your activation leaves a hundredth of every negative number. The task asks for max(0, u), which makes it 0."""
    inside = _inside(block, x, attend)
    return _first_half(block, x, attend) + block.linear2(np.where(inside > 0, inside, 0.01 * inside))


@MISTAKES.add(
    "the approximate gelu instead of relu",
    hint="What does the activation function of this task do with a negative number: make it small, or make it 0?",
    more="Put the number -1 through your activation function by hand. What should come out?",
    section=JOBS,
)
def gelu_by_tanh(block, x, attend):
    """The activation is the smooth one of GPT-2, which lets a little of a negative number through.

    The task asks for the one with a corner, max(0, u).
    """
    inside = _inside(block, x, attend)
    return _first_half(block, x, attend) + block.linear2(
        0.5 * inside * (1 + np.tanh(math.sqrt(2 / math.pi) * (inside + 0.044715 * inside**3)))
    )


@MISTAKES.add(
    "the activation comes after the second linear layer",
    hint="Where are the vectors wide: before the activation, or after it?",
    more="Print the shapes inside your feed-forward layer in order, and mark where negative numbers are cut off. The "
    "cut belongs where the rows are ff_dim wide.",
    section=JOBS,
)
def activation_at_the_end(block, x, attend):
    """The activation comes after the second linear layer, so the feed-forward layer can never subtract from the stream.

    It belongs between the two linear layers.
    """
    x = _first_half(block, x, attend)
    return x + np.maximum(block.linear2(block.linear1(block.norm2(x))), 0)


@MISTAKES.add(
    "a second activation after the second linear layer",
    hint="May what the feed-forward layer adds to the stream be negative?",
    more="Count the places where negative numbers are cut off in your block. The formula has one.",
    section=JOBS,
)
def activation_twice(block, x, attend):
    """The activation comes after each of the two linear layers.

    After the second there should be none, so that the layer can also subtract from the stream.
    """
    x = _first_half(block, x, attend)
    return x + np.maximum(_feed_forward(block, block.norm2(x)), 0)


@MISTAKES.add(
    "the activation comes before the first linear layer",
    hint="Where are the vectors wide: before the activation, or after it?",
    more="Print the shapes inside your feed-forward layer in order, and mark where negative numbers are cut off. The "
    "cut belongs where the rows are ff_dim wide.",
    section=JOBS,
)
def activation_first(block, x, attend):
    """Negative numbers are cut off before the first linear layer. ReLU belongs between the two linear layers."""
    x = _first_half(block, x, attend)
    return x + block.linear2(block.linear1(np.maximum(block.norm2(x), 0)))


@MISTAKES.add(
    "the activation is applied to the stream itself",
    hint="May a number in the stream be negative?",
    more="Negative numbers may be in the input. Are there any in your output?",
    section=RESIDUAL,
)
def activation_on_the_stream(block, x, attend):
    """After the last sum all negative numbers are cut off. Nothing but plus signs should touch the stream."""
    return np.maximum(_finish(block, _first_half(block, x, attend)), 0)


@MISTAKES.add(
    "the activation is applied to attention's result",
    hint="The block has two parts. Which of them has an activation function?",
    more="May attention subtract something from the stream? Look for negative numbers in what it adds.",
    section=JOBS,
)
def activation_on_attention(block, x, attend):
    """Negative numbers are cut off in what attention adds. That belongs in the feed-forward layer alone."""
    return _finish(block, x + np.maximum(attend(block.norm1(x)), 0))


@MISTAKES.add(
    "the first linear layer has lost its bias",
    hint="What is added in each linear layer, after the product?",
    more="Which of the loaded parameters can be changed without your output changing?",
    section=BLOCK,
)
def no_inner_bias(block, x, attend):
    """The first linear layer multiplies, but adds no bias."""
    x = _first_half(block, x, attend)
    inside = block.norm2(x) @ block.linear1.weight.T
    return x + block.linear2(np.maximum(inside, 0))


@MISTAKES.add(
    "the second linear layer has lost its bias",
    hint="What is added in each linear layer, after the product?",
    more="Which of the loaded parameters can be changed without your output changing?",
    section=BLOCK,
)
def no_outer_bias(block, x, attend):
    """The second linear layer multiplies, but adds no bias."""
    x = _first_half(block, x, attend)
    return x + np.maximum(block.linear1(block.norm2(x)), 0) @ block.linear2.weight.T


@MISTAKES.add(
    "both linear layers have lost their biases",
    hint="What is added in each linear layer, after the product?",
    more="Which of the loaded parameters can be changed without your output changing?",
    section=BLOCK,
)
def no_biases(block, x, attend):
    """The two linear layers of the feed-forward part multiply, but add no bias."""
    x = _first_half(block, x, attend)
    return x + np.maximum(block.norm2(x) @ block.linear1.weight.T, 0) @ block.linear2.weight.T


@MISTAKES.add(
    "the feed-forward layer is missing",
    hint="Which layers of your block does its forward never call?",
    more="A block has two halves of the same form. The second one begins where the first one ends.",
    section=JOBS,
)
def no_feed_forward(block, x, attend):
    """Only attention adds to the stream. A second half should follow, with the feed-forward layer."""
    return _first_half(block, x, attend)


@MISTAKES.add(
    "attention is missing",
    hint="Which layers of your block does its forward never call?",
    more="Change one token of a sequence. Do the rows of the other tokens change in your output?",
    section=JOBS,
)
def no_attention(block, x, attend):
    """Only the feed-forward layer adds to the stream, so no word learns from another. Attention comes first."""
    return _finish(block, x)


# Inside the layer norm ---------------------------------------------------------------------------------------------


@MISTAKES.add(
    "the norm runs over the tokens",
    hint="Does the norm of one token need its neighbours?",
    more="Take one row out of a sequence and normalise it alone. It should come out as it did among the others.",
    section=LAYER_NORM,
)
def norm_over_tokens(block, x, attend):
    """Mean and variance are taken over the tokens of a sequence, one pair for each component.

    They should be taken over the components of one token.
    """
    return _with_norm(block, x, attend, lambda n, y: _standard(n, y, -2) * n.weight + n.bias)


@MISTAKES.add(
    "the norm runs over the batch",
    hint="Does the norm of one token depend on what else is in the batch?",
    more="Take one sequence out of a batch and run your block on it alone. It should come out as it did among the "
    "others.",
    section=LAYER_NORM,
)
def norm_over_batch(block, x, attend):
    """Mean and variance are taken over the first axis, the batch.

    They should be taken over the components of one token.
    """
    return _with_norm(block, x, attend, lambda n, y: _standard(n, y, 0) * n.weight + n.bias)


@MISTAKES.add(
    "batch norm instead of layer norm",
    hint="Does the norm of one token depend on the other tokens?",
    more="Take one row of one sequence and normalise it alone. It should come out as it did among the others.",
    section=LAYER_NORM,
)
def batch_norm(block, x, attend):
    """Mean and variance are taken over all tokens of the batch, one pair for each component.

    They should be taken over the components of one token.
    """
    return _with_norm(block, x, attend, lambda n, y: _standard(n, y, (0, 1)) * n.weight + n.bias)


@MISTAKES.add(
    "the norm runs over the whole sequence",
    hint="How many means should there be: one for each sequence, or one for each token?",
    more="Take one row out of a sequence and normalise it alone. It should come out as it did among the others.",
    section=LAYER_NORM,
)
def norm_over_sequence(block, x, attend):
    """One mean and one variance serve all tokens of a sequence. Each token should have its own."""
    return _with_norm(block, x, attend, lambda n, y: _standard(n, y, (-2, -1)) * n.weight + n.bias)


@MISTAKES.add(
    "one mean for everything",
    hint="How many means should there be: one for all, or one for each token?",
    more="What is the shape of the mean in your norm? Along which axis is it taken?",
    section=LAYER_NORM,
)
def norm_over_everything(block, x, attend):
    """One mean and one variance serve the whole batch. Each token should have its own."""
    return _with_norm(block, x, attend, lambda n, y: _standard(n, y, None) * n.weight + n.bias)


@MISTAKES.add(
    "gain and shift of the norms are missing",
    hint="What can the model learn to do with a component after it is normalised?",
    more="Which of the loaded parameters can be changed without your output changing?",
    section=LAYER_NORM,
)
def norms_without_gain_and_shift(block, x, attend):
    """The rows are brought to mean 0 and variance 1, and that is all.

    After that, each component should be multiplied by its gain, and its shift added.
    """
    return _with_norm(block, x, attend, _standard)


@MISTAKES.add(
    "the gain of the norms is missing",
    hint="What can the model learn to do with a component after it is normalised?",
    more="Which of the loaded parameters can be changed without your output changing?",
    section=LAYER_NORM,
)
def norms_without_gain(block, x, attend):
    """The shift is added after normalising, but the components are not multiplied by their gain."""
    return _with_norm(block, x, attend, lambda n, y: _standard(n, y) + n.bias)


@MISTAKES.add(
    "the shift of the norms is missing",
    hint="What can the model learn to do with a component after it is normalised?",
    more="Which of the loaded parameters can be changed without your output changing?",
    section=LAYER_NORM,
)
def norms_without_shift(block, x, attend):
    """The components are multiplied by their gain after normalising, but no shift is added."""
    return _with_norm(block, x, attend, lambda n, y: _standard(n, y) * n.weight)


@MISTAKES.add(
    "the variance is divided by n - 1",
    hint="Over how many numbers do you average the squared distances from the mean?",
    more="For the row (1, 5) the variance of the task is 4, and the norm is (-1, 1). What is yours?",
    section=LAYER_NORM,
)
def variance_of_a_sample(block, x, attend):
    """The squared distances are divided by one less than their number.

    That is the estimate from a sample; the layer norm takes their plain mean.
    """
    return _with_norm(block, x, attend, lambda n, y: _standard(n, y, ddof=1) * n.weight + n.bias)


@MISTAKES.add(
    "the norm has no eps",
    hint="What is the variance of the row (7, 7, 7, 7), and what do you divide by?",
    more="Normalise a row of equal numbers by hand. It should become zeros, not nan.",
    section=LAYER_NORM,
)
def no_eps(block, x, attend):
    """Nothing is added to the variance, so a row of equal numbers is divided by 0."""
    return _with_norm(block, x, attend, lambda n, y: _standard(n, y, eps=0.0) * n.weight + n.bias)


@MISTAKES.add(
    "eps is added outside of the root",
    hint="What is eps added to: the variance, or its root?",
    more="For a variance of 0.0001 the order matters. Do both by hand, with an eps of 0.00001.",
    section=LAYER_NORM,
)
def eps_outside(block, x, attend):
    """The small number is added to the standard deviation. It belongs under the root, to the variance."""

    def norm(layer, y):
        return (y - y.mean(-1, keepdims=True)) / (y.std(-1, keepdims=True) + EPS) * layer.weight + layer.bias

    return _with_norm(block, x, attend, norm)


@MISTAKES.add(
    "divided by the variance, not by its root",
    hint="The row (1, 5) has the variance 4. What are its distances from the mean divided by?",
    more="After the norm a row should have variance 1. Normalise the row (1, 5) by hand, and look.",
    section=LAYER_NORM,
)
def divided_by_variance(block, x, attend):
    """The centred rows are divided by their variance.

    It is the standard deviation, its root, that brings them to size 1.
    """

    def norm(layer, y):
        centred = y - y.mean(-1, keepdims=True)
        return centred / (y.var(-1, keepdims=True) + EPS) * layer.weight + layer.bias

    return _with_norm(block, x, attend, norm)


@MISTAKES.add(
    "the mean is not subtracted",
    hint="What is the mean of a row after the norm?",
    more="Add 1000 to all numbers of a row. Its norm should stay the same. Does yours?",
    section=LAYER_NORM,
)
def mean_not_subtracted(block, x, attend):
    """The rows are divided by their standard deviation, but their mean is still there."""
    return _with_norm(block, x, attend, lambda n, y: y / np.sqrt(y.var(-1, keepdims=True) + EPS) * n.weight + n.bias)


@MISTAKES.add(
    "RMSNorm instead of layer norm",
    hint="What is the mean of a row after the norm?",
    more="Newer models divide by the root of the mean square and leave the mean alone. What does this task ask for?",
    section=LAYER_NORM,
)
def rms_norm(block, x, attend):
    """The rows are divided by the root of their mean square, and their mean is still there.

    Layer norm subtracts the mean first.
    """

    def norm(layer, y):
        return y / np.sqrt((y**2).mean(-1, keepdims=True) + EPS) * layer.weight + layer.bias

    return _with_norm(block, x, attend, norm)


@MISTAKES.add(
    "RMSNorm instead of layer norm, without the shift",
    hint="What is the mean of a row after the norm?",
    more="Newer models divide by the root of the mean square, leave the mean alone and add no shift. What does "
    "this task ask for?",
    section=LAYER_NORM,
)
def rms_norm_without_shift(block, x, attend):
    """The rows are divided by the root of their mean square, their mean is still there, and no shift is added.

    Layer norm subtracts the mean first, and adds its shift at the end.
    """
    return _with_norm(block, x, attend, lambda n, y: y / np.sqrt((y**2).mean(-1, keepdims=True) + EPS) * n.weight)


@MISTAKES.add(
    "eps is a millionth",
    hint="What does your norm add to the variance, and what does torch's layer norm add by default?",
    more="Rows that hardly vary show it. Print the variance of such a row beside your eps.",
    section=LAYER_NORM,
)
def eps_of_a_millionth(block, x, attend):
    """The number that your norms add to the variance is a millionth.

    The task asks for the norm as torch makes it, with 0.00001.
    """
    return _with_norm(block, x, attend, lambda n, y: _standard(n, y, eps=1e-6) * n.weight + n.bias)


@MISTAKES.add(
    "eps is a trillionth, as in BERT",
    hint="What does your norm add to the variance, and what does torch's layer norm add by default?",
    more="Rows that hardly vary show it. Print the variance of such a row beside your eps.",
    section=LAYER_NORM,
)
def eps_of_bert(block, x, attend):
    """The number that your norms add to the variance is a trillionth, as in BERT.

    The task asks for the norm as torch makes it, with 0.00001.
    """
    return _with_norm(block, x, attend, lambda n, y: _standard(n, y, eps=1e-12) * n.weight + n.bias)


@MISTAKES.add(
    "the rows are only centred",
    hint="What is the variance of a row after the norm?",
    more="Multiply a row by ten. Its norm should stay the same. Does yours?",
    section=LAYER_NORM,
)
def only_centred(block, x, attend):
    """The mean is subtracted, but nothing brings the rows to size 1."""
    return _with_norm(block, x, attend, lambda n, y: (y - y.mean(-1, keepdims=True)) * n.weight + n.bias)


@MISTAKES.add(
    "divided by the length of the row",
    hint="A row of width D with variance 1: how long is it?",
    more="The norm of the row (1, 5) is (-1, 1). What is the length of that, and of yours?",
    section=LAYER_NORM,
)
def unit_length(block, x, attend):
    """The centred rows are brought to length 1.

    Layer norm brings them to variance 1, which makes them longer by a factor: the root of the width.
    """

    def norm(layer, y):
        return _standard(layer, y) / math.sqrt(y.shape[-1]) * layer.weight + layer.bias

    return _with_norm(block, x, attend, norm)


# Inside attention --------------------------------------------------------------------------------------------------


def _attend_by_hand(block, x, weigh, heads=None, bias=1.0):
    """Attention with other scores or weights: ``weigh(scores, head_dim)``."""
    layer = block.self_attn
    heads = heads or layer.num_heads
    q, k, v = (attnlib.split_heads(linear(x), heads) for linear in (layer.q_proj, layer.k_proj, layer.v_proj))
    weights = weigh(q @ k.swapaxes(-1, -2), q.shape[-1])
    merged = attnlib.merge_heads(weights @ v)
    return merged @ layer.out_proj.weight.T + bias * layer.out_proj.bias


@MISTAKES.add(
    "one head instead of several",
    hint="What is num_heads for, and where does your attention use it?",
    more="How many tables of weights should there be for each sequence? How many does your attention make?",
    section=BLOCK,
)
def one_head(block, x, attend):
    """The attention of your block works as one head of full width. The heads share the width among them."""
    read = block.norm1(x)
    return _finish(block, x + _attend_by_hand(block, read, lambda s, d: attnlib.softmax(s / d**0.5), heads=1))


@MISTAKES.add(
    "the scores are not scaled",
    hint="What is a dot product divided by before the softmax?",
    more="Compare the weights of your attention with the library's on the same rows. Are yours sharper?",
    section=BLOCK,
)
def scores_not_scaled(block, x, attend):
    """In your attention the dot products go into the softmax unscaled.

    They should be divided by the root of the width of a head.
    """
    return _finish(block, x + _attend_by_hand(block, block.norm1(x), lambda s, d: attnlib.softmax(s)))


@MISTAKES.add(
    "the scores are scaled by the width of the model",
    hint="How many products does one score sum up: as many as the model is wide, or as a head is wide?",
    more="Compare the weights of your attention with the library's on the same rows. Are yours flatter?",
    section=BLOCK,
)
def scaled_by_embed_dim(block, x, attend):
    """In your attention the scores are divided by the root of the width of the model.

    A score comes from one head, so it is the width of a head that counts.
    """
    width = x.shape[-1]
    return _finish(block, x + _attend_by_hand(block, block.norm1(x), lambda s, d: attnlib.softmax(s / width**0.5)))


@MISTAKES.add(
    "the weights sum to 1 over the queries",
    hint="Whose weights should sum to 1: those of a query, or those of a key?",
    more="Sum the weights of your attention along each of their last two axes. Which of the sums are 1?",
    section=BLOCK,
)
def softmax_over_queries(block, x, attend):
    """In your attention the softmax runs along the queries. Each query's weights over the keys should sum to 1."""
    read = block.norm1(x)
    return _finish(block, x + _attend_by_hand(block, read, lambda s, d: attnlib.softmax(s / d**0.5, axis=-2)))


@MISTAKES.add(
    "attention runs over the batch",
    hint="Which axis of the input holds the words of one sequence?",
    more="Change one sequence of a batch, and look at the others in the output. They should stay as they are.",
    section=BLOCK,
)
def attends_over_the_batch(block, x, attend):
    """Batch and sequence have changed places on the way into attention, so each token attends to other sequences.

    It should attend to the tokens of its own.
    """
    return _finish(block, x + attend(block.norm1(x).swapaxes(0, 1)).swapaxes(0, 1))


@MISTAKES.add(
    "attention only looks back",
    hint="May the first word of a sequence look at the last one here?",
    more="Change the last token of a sequence. Should the row of the first one change? Does it in yours?",
    section=BLOCK,
)
def always_causal(block, x, attend):
    """Your attention hides from each token what comes after it. The task asks for no mask: every token sees all."""
    return _finish(block, x + block.self_attn(block.norm1(x), is_causal=True))


@MISTAKES.add(
    "attention has lost its output projection",
    hint="What happens to the results of the heads after they are joined?",
    more="Which of the loaded parameters can be changed without your output changing?",
    section=BLOCK,
)
def no_output_projection(block, x, attend):
    """The joined heads are added to the stream as they are. They should go through the output projection first."""
    layer = block.self_attn
    read = block.norm1(x)
    q, k, v = (attnlib.split_heads(f(read), layer.num_heads) for f in (layer.q_proj, layer.k_proj, layer.v_proj))
    return _finish(block, x + attnlib.merge_heads(attnlib.attention(q, k, v)[0]))


@MISTAKES.add(
    "the softmax overflows",
    hint="What is the exponential of 1000 in floating point, and what is subtracted to avoid it?",
    more="Look at the largest score of a row. Subtract it from all scores of the row, by hand: do the weights change?",
    section=BLOCK,
)
def overflow(block, x, attend):
    """For scores of usual size your block is right.

    For large ones the exponential in your attention overflows, and the rows become nan.
    """

    def weigh(scores, width):
        e = np.exp(scores / width**0.5)
        return e / e.sum(-1, keepdims=True)

    return _finish(block, x + _attend_by_hand(block, block.norm1(x), weigh))


# What only some implementations have, and the input ----------------------------------------------------------------


@MISTAKES.add(
    "the input is changed",
    hint="Who owns the array that your block is called with?",
    more="Print the input before and after the call. Which line writes into it, when all it should do is make a new "
    "sum?",
    section=RESIDUAL,
)
def changes_its_input(block, x, attend):
    """The numbers are right, but the sums are made inside the array that came in. The caller still needs it."""
    x += attend(block.norm1(x))
    x += _feed_forward(block, block.norm2(x))
    return x.copy()


@MISTAKES.add(
    "the argument norm is ignored",
    hint="Your block has an argument norm. Which line of its forward reads it?",
    more="Make one block with each of the two orders, give both the same weights, and compare what they return.",
    section=PRE_OR_POST,
)
def order_ignored(block, x, attend):
    """Your block takes the argument norm, but is pre-norm whatever it says."""
    return _finish(block, _first_half(block, x, attend))


@MISTAKES.add(
    "the masks are ignored",
    hint="Your block takes a mask. Does it pass the mask on to its attention?",
    more="Call your block with a mask and without. Does anything change?",
    section=BLOCK,
)
def masks_ignored(block, x, attend):
    """Your block takes masks, but its attention never receives them."""
    blind = partial(attend, masked=False)
    return post_norm(block, x, blind) if block.norm == "post" else _finish(block, _first_half(block, x, blind))


@MISTAKES.add(
    "the mask is upside down",
    hint="What does True mean in a mask of this course: may attend, or is hidden?",
    more="Hide one token from all others, change it, and look at the other rows. They should stay as they are.",
    section=BLOCK,
)
def mask_upside_down(block, x, attend):
    """Where the mask is True your block hides the key. Here True means that the query may attend to it."""
    upside_down = partial(attend, turned=True)
    return (
        post_norm(block, x, upside_down) if block.norm == "post" else _finish(block, _first_half(block, x, upside_down))
    )


def _torch_block() -> Implementation:
    import attnlib.torch

    return attnlib.torch.TransformerBlock


EXERCISE = Exercise(
    name="TransformerBlock",
    reference=attnlib.numpy.TransformerBlock,
    outputs={"output": ("B", "T", "E")},
    rubric={NUMBERS: 5, SIZES: 2, FLAT: 1, LARGE: 1, UNCHANGED: 1},
    section=BLOCK,
    advice="Print the stream and each part's result, line by line, for the row (1, 5) with the weights of the task: "
    "the norm, what attention adds, the stream, the norm of that, what the feed-forward layer adds. Which is the first "
    "to differ from the numbers worked by hand?",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    ungraded_options=("norm", "attn_mask", "is_causal", "need_weights"),
    call=call_module,
    in_torch=_torch_block,
    solved_by=("attnlib.numpy.Encoder", "attnlib.torch.Encoder", "torch.nn.TransformerEncoderLayer"),
)
