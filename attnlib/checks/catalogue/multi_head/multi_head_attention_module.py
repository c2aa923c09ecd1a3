"""The class MultiHeadAttention(embed_dim, num_heads): its parameters, its arguments, and the weights it shows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import attnlib
import attnlib.numpy
from attnlib.checks.calling.case import Case, Implementation
from attnlib.checks.calling.conventions import call_module
from attnlib.checks.catalogue.analytic_gradients import through_heads
from attnlib.checks.catalogue.duplicate_rows import with_duplicate_rows
from attnlib.checks.catalogue.multi_head import multi_head_attention
from attnlib.checks.catalogue.multi_head.sections import COUNTING, MULTI_HEAD, OUTPUT_PROJECTION, SCALE
from attnlib.checks.catalogue.multi_head.steps import BySteps, Steps
from attnlib.checks.exercise import MULTI_HEAD_FUNCTIONS, Exercise, Mistake, Mistakes

NUMBERS, ARGUMENTS, WEIGHTS, LARGE = "the numbers", "optional arguments", "the weights", "large scores"
UNCHANGED, MASKS, MORE_MASKS = "inputs unchanged", "masks", "more masks"
PROJECTIONS = ("q_proj", "k_proj", "v_proj", "out_proj")
SHOWN, ALONE = ("out", "weights"), ("out",)


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: one by hand, plain ones, then optional arguments, weights, large scores, and masks."""
    yield worked_by_hand()
    yield from plain(rng)
    yield from with_arguments(rng)
    shown = {"need_weights": True}
    yield Case("need_weights=True (B=3, H=2, T=5, S=7)", WEIGHTS, given(rng, 3, 5, 7, 8), shown, setup(8, 2), SHOWN)
    yield Case("need_weights=False", WEIGHTS, given(rng, 3, 5, 7, 8), {"need_weights": False}, setup(8, 2), ALONE)
    large = given(rng, 2, 3, 5, 8)
    lengths = np.array([[1.0], [1.5], [0.5], [1.49], [0.8]])
    large |= {"query": large["query"] + [[3000.0], [-3000.0], [0.0]], "key": 0.01 * large["key"] + lengths}
    large["weights"] |= {"q_proj.weight": np.eye(8), "k_proj.weight": np.eye(8)}
    yield Case("scores of several thousand, of both signs", LARGE, large, {}, setup(8, 2), ALONE)
    yield Case("inputs that must stay as they are", UNCHANGED, given(rng, 3, 5, 4, 6), {}, setup(6, 2), ALONE, True)
    yield from with_masks(rng)


def worked_by_hand() -> Case:
    """Return the case whose numbers can be worked out by hand."""
    third, eye, zero = np.log(3.0), np.eye(2), np.zeros(2)
    hand: dict[str, Any] = {"weights": {}}
    for name, matrix in zip(PROJECTIONS, (eye, eye, eye, np.array([[1.0, 0.0], [1.0, 2.0]])), strict=True):
        hand["weights"] |= {f"{name}.weight": matrix, f"{name}.bias": zero}
    hand["query"] = np.array([[[1.0, 0.0], [0.0, 2.0]]])
    hand["key"] = np.array([[[third, 0.0], [0.0, third / 2]]])
    hand["value"] = np.array([[[8.0, 2.0], [0.0, 4.0]]])
    return Case("2 heads of width 1, whose scores are 0 and log 3", NUMBERS, hand, {}, setup(2, 2), ALONE)


def plain(rng: np.random.Generator) -> Iterator[Case]:
    """Yield cases of different sizes, with three arguments and no options."""
    yield Case("a batch of 3 (T=5, S=7, 2 heads of width 4)", NUMBERS, given(rng, 3, 5, 7, 8), {}, setup(8, 2), ALONE)
    yield Case(
        "another batch (T=7, S=4, 5 heads of width 2)", NUMBERS, given(rng, 3, 7, 4, 10), {}, setup(10, 5), ALONE
    )
    yield Case("as many keys as queries, but others", NUMBERS, given(rng, 2, 5, 5, 6), {}, setup(6, 2), ALONE)
    yield Case("one query and one key", NUMBERS, given(rng, 1, 1, 1, 6), {}, setup(6, 2), ALONE)
    yield Case("a single head", NUMBERS, given(rng, 2, 3, 5, 4), {}, setup(4, 1), ALONE)
    small = given(rng, 2, 4, 3, 10)
    small["weights"] = {name: x.astype(np.float32) for name, x in small["weights"].items()}
    small |= {name: small[name].astype(np.float32) for name in ("query", "key", "value")}
    yield Case("float32", NUMBERS, small, {}, setup(10, 2), ALONE)


def with_arguments(rng: np.random.Generator) -> Iterator[Case]:
    """Yield cases with repeated rows, in training, and without some of the arguments."""
    repeated = with_duplicate_rows(given(rng, 2, 5, 7, 6), "query", "key", "value")
    yield Case("queries, keys and values, some of them repeated", ARGUMENTS, repeated, {}, setup(6, 2), ALONE)
    trained = Case("module.train() instead of module.eval()", ARGUMENTS, given(rng, 2, 5, 7, 6), {}, setup(6, 2), ALONE)
    yield replace(trained, training=True, backends=("torch",))
    alone = {name: x for name, x in given(rng, 3, 5, 7, 8).items() if name in ("weights", "query")}
    yield Case("the query alone, for self-attention", ARGUMENTS, alone, {}, setup(8, 2), ALONE)
    after = {"earlier": {name: x for name, x in given(rng, 3, 4, 7, 8).items() if name != "weights"}}
    yield Case("the query alone, after an earlier call with a key", ARGUMENTS, alone | after, {}, setup(8, 2), ALONE)
    pair = {name: x for name, x in given(rng, 3, 5, 7, 8).items() if name != "value"}
    yield Case("query and key, and no value", ARGUMENTS, pair, {}, setup(8, 2), ALONE)


def with_masks(rng: np.random.Generator) -> Iterator[Case]:
    """Yield cases with a mask, with is_causal, and with both."""
    mask = rng.permuted(np.tile(np.arange(7) < 4, (5, 1)), axis=1)  # 4 of 7 keys for each query
    padding = np.arange(7) < np.array([4, 6, 2])[:, None, None, None]
    causal = {"is_causal": True}
    yield Case("a mask (T, S), True where a query may attend", MASKS, *masked(rng, 5, 7, {"attn_mask": mask}))
    yield Case(
        "a mask (B, 1, 1, S) for sentences of 4, 6 and 2 words", MASKS, *masked(rng, 5, 7, {"attn_mask": padding})
    )
    yield Case("is_causal, 5 queries and 7 keys", MASKS, *masked(rng, 5, 7, causal))
    yield Case("is_causal, 7 queries and 5 keys", MORE_MASKS, *masked(rng, 7, 5, causal))
    both = {"attn_mask": mask | (np.arange(7) == 0), "is_causal": True}
    yield Case("a mask and is_causal", MORE_MASKS, *masked(rng, 5, 7, both))


def setup(embed_dim, num_heads):
    """Return what a module is made with."""
    return {"embed_dim": embed_dim, "num_heads": num_heads}


def given(rng, batch, t, s, width):
    """Return random weights, query, key and value: T queries, S keys, all of one width."""
    weights = {}
    for name in PROJECTIONS:
        weights[f"{name}.weight"] = rng.normal(size=(width, width)) / width**0.5
        weights[f"{name}.bias"] = rng.normal(size=width)
    return {"weights": weights} | {
        name: rng.normal(size=(batch, length, width)) for name, length in (("query", t), ("key", s), ("value", s))
    }


def masked(rng, t, s, options):
    """Return everything that a case has beside its name and criterion: a batch of 3, 2 heads of width 4, and masks."""
    return given(rng, 3, t, s, 8), options, setup(8, 2), ALONE


@dataclass
class LayerSteps(Steps):
    """The same steps, where the four matrices are layers, and the weights are returned as well."""

    module: Any = None

    def project(self, x, w):
        """Return x, sent through a layer."""
        return w(x)

    def width(self):
        """Return the width D of one head."""
        return self.module.embed_dim // self.num_heads

    def finish(self, out, weights):
        """Return the output and the weights."""
        return out, weights


class Quick(attnlib.numpy.MultiHeadAttention):
    """The reference, loaded in fewer steps: a wrong answer is compared with dozens of modules."""

    def named_parameters(self):
        """Yield all parameters with their names."""
        for name in PROJECTIONS:
            yield f"{name}.weight", getattr(self, name).weight
            yield f"{name}.bias", getattr(self, name).bias

    def load_state_dict(self, state, strict=True):
        """Take the arrays in the state."""
        for name in PROJECTIONS:
            vars(getattr(self, name)).update(weight=state[f"{name}.weight"], bias=state[f"{name}.bias"])
        return self


def as_module(recipe: Callable[[Steps], Any] | type) -> Implementation:
    """Turn a recipe into a class like the reference, or a class into one of that name."""
    if isinstance(recipe, type):
        return type("MultiHeadAttention", (recipe,), {})

    def forward(self, query, key=None, value=None, attn_mask=None, *, is_causal=False, need_weights=False):
        """Attend."""
        key = query if key is None else key
        value = key if value is None else value
        layers = (self.q_proj, self.k_proj, self.v_proj, self.out_proj)
        result = recipe(LayerSteps(query, key, value, *layers, self.num_heads, attn_mask, is_causal, self))
        return result if need_weights else result[0]

    return type("MultiHeadAttention", (Quick,), {"forward": forward})


MISTAKES = Mistakes(wrap=as_module)


# Parameters ---------------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "the layers have no biases",
    hint="A linear layer multiplies by a matrix, and then adds something. How many parameters should there be for "
    "E=512?",
    more="Count: four matrices of E times E, and four more things of E numbers each. Which of them does your module "
    "lack?",
    section=COUNTING,
)
class no_biases(attnlib.numpy.MultiHeadAttention):
    """The four projections are made without biases. Each of them should have one, of E numbers."""

    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads, bias=False)


@MISTAKES.add(
    "three of the layers have no biases",
    hint="Which of your four layers adds something after it multiplies?",
    more="Some models do without biases for queries, keys and values. Here all four layers have one, which makes "
    "eight parameters in all.",
    section=COUNTING,
)
class no_input_biases(attnlib.numpy.MultiHeadAttention):
    """The layers for queries, keys and values are made without biases. Each of them should have one, of E numbers."""

    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        self.q_proj, self.k_proj, self.v_proj = (self.Linear(embed_dim, embed_dim, bias=False) for _ in range(3))


@MISTAKES.add(
    "there is no output projection",
    hint="There should be four projections, and your module has three. Where do numbers of different heads meet?",
    more="Read the names of the parameters in the task. After merging, one layer is still to come.",
    section=OUTPUT_PROJECTION,
)
class no_output_layer(attnlib.numpy.MultiHeadAttention):
    """The module has layers for queries, keys and values, but none for the output, where the heads meet."""

    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        del self.out_proj


@MISTAKES.add(
    "the projections are as wide as one head",
    hint="How many numbers should come out of one layer for all heads together?",
    more="For E=8 and 2 heads, the queries of both heads are side by side: 2 times 4 numbers. How wide are yours?",
    section=COUNTING,
)
class narrow_layers(attnlib.numpy.MultiHeadAttention):
    """Your layers make queries, keys and values of width D, enough for one head.

    Each layer should make those of all heads, side by side: E numbers in all.
    """

    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        head_dim = embed_dim // num_heads
        self.q_proj, self.k_proj, self.v_proj = (self.Linear(embed_dim, head_dim) for _ in range(3))


@MISTAKES.add(
    "the layers see one piece of a word",
    hint="How many numbers of a word should enter a layer?",
    more="For E=8 and 2 heads, each query has 4 numbers, and each of them may depend on all 8 of the word. How many "
    "does your layer see?",
    section=COUNTING,
)
class layers_of_pieces(attnlib.numpy.MultiHeadAttention):
    """The layers go from D numbers to D. A layer should see the whole word, E numbers, and serve all heads at once."""

    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        head_dim = embed_dim // num_heads
        self.q_proj, self.k_proj, self.v_proj = (self.Linear(head_dim, head_dim) for _ in range(3))


@MISTAKES.add(
    "the biases are not used",
    hint="Each layer has a weight and a bias. Where does the bias enter?",
    more="Set all four weights to zero: what should come out then, and what does?",
    section=MULTI_HEAD,
)
def biases_ignored(steps):
    """The inputs are multiplied by the weights, but the biases are never added."""
    return _with_layers(steps, lambda layer: lambda x: x @ layer.weight.T, lambda layer: lambda x: x @ layer.weight.T)


@MISTAKES.add(
    "the bias of the output is not used",
    hint="Four layers have a bias. In which of them do you add it?",
    more="Set the weight of out_proj to zero: what should come out then, and what does?",
    section=MULTI_HEAD,
)
def output_bias_ignored(steps):
    """The bias of the output projection is never added."""
    return _with_layers(steps, lambda layer: layer, lambda layer: lambda x: x @ layer.weight.T)


@MISTAKES.add(
    "the biases of queries, keys and values are not used",
    hint="Four layers have a bias. In which of them do you add it?",
    more="Set the weights of the first three layers to zero: what should the values be then, and what are they?",
    section=MULTI_HEAD,
)
def input_biases_ignored(steps):
    """The biases of the first three projections are never added."""
    return _with_layers(steps, lambda layer: lambda x: x @ layer.weight.T, lambda layer: layer)


@MISTAKES.add(
    "the weights are used without a transpose",
    hint="A layer's weight has the shape (width out, width in). Which of its axes should line up with the input?",
    more="Compare what your module makes of one word with what a linear layer of torch makes of it.",
    section=MULTI_HEAD,
)
def weights_not_transposed(steps):
    """The inputs are multiplied by the weights as they are.

    Their shape is (width out, width in), so that it is the second axis that belongs to the input.
    """

    def as_it_is(layer):
        return lambda x: x @ layer.weight + layer.bias

    return _with_layers(steps, as_it_is, as_it_is)


@MISTAKES.add(
    "the weight of the output is used without a transpose",
    hint="A layer's weight has the shape (width out, width in). Which of its axes should line up with the merged "
    "heads?",
    more="Send one row through out_proj, and compare with what your own line makes of it.",
    section=MULTI_HEAD,
)
def output_weight_not_transposed(steps):
    """The merged heads are multiplied by the weight of the output projection as it is.

    Its shape is (width out, width in): it is the second axis that belongs to the input. Both widths are E, so no error
    is raised.
    """
    return _with_layers(steps, lambda layer: layer, lambda layer: lambda x: x @ layer.weight + layer.bias)


@MISTAKES.add(
    "the bias of out_proj is added twice",
    hint="What does a linear layer do, besides multiplying by its weight?",
    more="Count how often each bias enters the result. Calling a layer already adds its bias.",
    section=OUTPUT_PROJECTION,
)
def output_bias_twice(steps):
    """The last layer adds its bias, and then you add the same bias once more."""
    return steps.changed_by(lambda out: out + steps.w_o.bias)


# Arguments ----------------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "the value is the query where none is given",
    hint="If `key` is given and `value` is not, which of the other two should be averaged?",
    more="There must be as many values as keys. For which default is that certain?",
    section=MULTI_HEAD,
)
class value_is_query(attnlib.numpy.MultiHeadAttention):
    """Without a `value`, the query is used. It should be the key: what is compared is also what is averaged."""

    def forward(self, query, key=None, value=None, attn_mask=None, *, is_causal=False, need_weights=False, **others):
        """Attend."""
        key, value = (query if x is None else x for x in (key, value))
        if key.shape != value.shape:
            return np.ones((1, key.shape[-2])) @ value
        return super().forward(query, key, value, attn_mask, is_causal=is_causal, need_weights=need_weights)


@MISTAKES.add(
    "a key of an earlier call is used again",
    hint="What does your module keep from one call to the next?",
    more="Call the module with a key, then with a query alone. Which key does the second call use? Look for what is "
    "assigned to self outside of __init__.",
    section=MULTI_HEAD,
)
class remembers_the_key(attnlib.numpy.MultiHeadAttention):
    """Without a `key`, you use the key of an earlier call. You should use the query of the same call."""

    def forward(self, query, key=None, value=None, attn_mask=None, *, is_causal=False, need_weights=False, **others):
        """Attend."""
        self.kept = key if key is not None else getattr(self, "kept", query)
        value = self.kept if value is None else value
        return super().forward(query, self.kept, value, attn_mask, is_causal=is_causal, need_weights=need_weights)


@MISTAKES.add(
    "keys and values of the first call are kept",
    hint="What does your module keep from one call to the next?",
    more="Call the module twice, with different keys. Does the second result depend on the second keys? Look for what "
    "is assigned to self outside of __init__.",
    section=MULTI_HEAD,
)
class keeps_the_first_call(attnlib.numpy.MultiHeadAttention):
    """You use the keys and values of the first call in every later one. Each call should use its own."""

    def forward(self, query, key=None, value=None, attn_mask=None, *, is_causal=False, need_weights=False, **others):
        """Attend."""
        key = query if key is None else key
        self.kept = getattr(self, "kept", (key, key if value is None else value))
        key, value = self.kept
        return super().forward(query, key, value, attn_mask, is_causal=is_causal, need_weights=need_weights)


@MISTAKES.add(
    "key and value must be given",
    hint="What should your module do when it is called with one sequence alone?",
    more="Self-attention is the most common use: the sequence is query, key and value. Which arguments may be missing?",
    section=MULTI_HEAD,
)
class all_demanded(attnlib.numpy.MultiHeadAttention):
    """The module cannot be called with a query alone.

    The query should then serve as key and value too, as in self-attention.
    """

    def forward(self, query, key, value, attn_mask=None, *, is_causal=False, need_weights=False):  # type: ignore[override]
        """Attend."""
        return super().forward(query, key, value, attn_mask, is_causal=is_causal, need_weights=need_weights)

    forward.__qualname__ = "MultiHeadAttention.forward"


@MISTAKES.add(
    "the batch is taken for the sequence",
    hint="Which axis counts the sentences here, and which the words?",
    more="Change one word in one sentence: do the results of another sentence change? They should not.",
    section=MULTI_HEAD,
)
def sequence_first(steps):
    """The words of different sentences attend to each other: the first axis was taken for the sequence.

    That is how torch's own module counts, unless it is told otherwise. Here the batch comes first.
    """
    arguments = {name: getattr(steps, name).swapaxes(0, 1) for name in ("query", "key", "value")}
    out, weights = steps.with_other(**arguments)
    return out.swapaxes(0, 1), weights


@MISTAKES.add(
    "the sentences of a batch compete",
    hint="Which axis of (B, H, T, S) counts the keys?",
    more="Print the weights of one query in one head of one sentence, and their sum. Then take one sentence alone: "
    "does its result change when the batch holds other sentences?",
    section=MULTI_HEAD,
)
def softmax_over_sentences(steps):
    """The softmax runs over the batch, so that each sentence depends on the others. The keys should compete instead."""
    return steps.normalised_by(lambda scores: attnlib.softmax(scores, axis=0))


# Scale --------------------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "scaled by embed_dim",
    hint="Over how many products does the dot product in one head sum?",
    more="With embed_dim 8 and 2 heads, a dot product in a head sums over 4 products, not over 8. Which width is under "
    "your root?",
    section=SCALE,
)
def scaled_by_embed_dim(steps):
    """The scores are divided by the root of embed_dim, the width of all heads together.

    A head is narrower: its own width counts.
    """
    return steps.scaled_by(steps.module.embed_dim**0.5)


# What is returned ---------------------------------------------------------------------------------------------------


@MISTAKES.add(
    "the weights are averaged over the heads",
    hint="How many tables of weights are there for each sentence?",
    more="The shape should be (B, H, T, S). torch's own module averages over the heads unless told otherwise: what "
    "can no longer be seen then?",
    section=MULTI_HEAD,
)
def averaged_weights(steps):
    """The weights are averaged over the heads. Each head has its own table, and the task asks for all of them."""
    out, weights = steps.scaled_by(None)
    return out, weights.mean(axis=-3)


@MISTAKES.add(
    "the weights are added over the heads",
    hint="How many tables of weights are there for each sentence?",
    more="The shape should be (B, H, T, S), and every row of it sums to 1.",
    section=MULTI_HEAD,
)
def summed_weights(steps):
    """The weights are added over the heads. Each head has its own table, and the task asks for all of them."""
    out, weights = steps.scaled_by(None)
    return out, weights.sum(axis=-3)


@MISTAKES.add(
    "the weights of one head alone",
    hint="How many tables of weights are there for each sentence?",
    more="The shape should be (B, H, T, S). What happened to the axis of the heads?",
    section=MULTI_HEAD,
)
def weights_of_head_0(steps):
    """Only the weights of head 0 come out. Each head has its own table, and the task asks for all of them."""
    out, weights = steps.scaled_by(None)
    return out, weights[:, 0]


@MISTAKES.add(
    "scores are returned as weights",
    hint="Do the rows of what you return sum to 1?",
    more="Two tables have the shape (B, H, T, S): one before the softmax, one after it. Which of them does the task "
    "ask for?",
    section=MULTI_HEAD,
)
def returns_scores(steps):
    """The output is right, but the second result holds the scores before the softmax, not the weights."""
    q, k, _ = steps.heads()
    return steps.scaled_by(None)[0], steps.masked(q @ k.swapaxes(-1, -2) / steps.width() ** 0.5)


@MISTAKES.add(
    "the weights are transposed",
    hint="Which axis of the weights sums to 1, and which should?",
    more="With 5 queries and 7 keys, each table should have 5 rows. How many does yours have?",
    section=MULTI_HEAD,
)
def transposed_weights(steps):
    """The rows of the weights are keys. There should be one row for each query: (B, H, T, S)."""
    out, weights = steps.scaled_by(None)
    return out, weights.swapaxes(-1, -2)


@MISTAKES.add(
    "the axes of the weights are in a different order",
    hint="Does the axis of the heads come before or after that of the queries?",
    more="The shape should be (B, H, T, S): for each head one table of T rows.",
    section=MULTI_HEAD,
)
def heads_after_queries(steps):
    """The heads of the weights come after the queries. They should come before them: (B, H, T, S)."""
    out, weights = steps.scaled_by(None)
    return out, weights.swapaxes(-3, -2)


@MISTAKES.add(
    "the heads of the weights come before the batch",
    hint="Which axis of the weights counts the sentences, and which one the heads?",
    more="The shape should be (B, H, T, S). If you collect the tables head by head and stack them, where does the "
    "new axis belong?",
    section=MULTI_HEAD,
)
def weights_heads_first(steps):
    """The weights are (H, B, T, S), with the heads before the sentences. They should come after: (B, H, T, S)."""
    out, weights = steps.scaled_by(None)
    return out, weights.swapaxes(0, 1)


@MISTAKES.add(
    "the batch and the heads of the weights share one axis",
    hint="How many axes do the weights have: three, or four?",
    more="Some books stack the heads of all sentences along a single axis. Undo that for the weights as you do for "
    "the output: the shape should be (B, H, T, S).",
    section=MULTI_HEAD,
)
def weights_of_batch_and_heads(steps):
    """The weights are (B*H, T, S), with one axis for sentences and heads. Each should have its own: (B, H, T, S)."""
    out, weights = steps.scaled_by(None)
    return out, weights.reshape(-1, *weights.shape[-2:])


@MISTAKES.add(
    "two results without being asked for",
    hint="What should be returned when `need_weights` is False, which is the default?",
    more="Without a request for weights, the caller expects one tensor, not a pair. Where do you use `need_weights`?",
    section=MULTI_HEAD,
)
class always_returned(attnlib.numpy.MultiHeadAttention):
    """You always return a pair. Without `need_weights`, return only the output, without even a None."""

    def forward(self, query, key=None, value=None, attn_mask=None, *, is_causal=False, need_weights=False, **others):
        """Attend."""
        return super().forward(query, key, value, attn_mask, is_causal=is_causal, need_weights=True)


@MISTAKES.add(
    "the weights are returned only when they are not requested",
    hint="Read the line that looks at `need_weights` aloud: when does your module return weights?",
    more="Call your module with `need_weights=True` and with False. Which of the two gives a pair?",
    section=MULTI_HEAD,
)
class returned_if_unasked(attnlib.numpy.MultiHeadAttention):
    """With `need_weights` the output comes alone, and without it the weights come too.

    It should be the other way round.
    """

    def forward(self, query, key=None, value=None, attn_mask=None, *, is_causal=False, need_weights=False, **others):
        """Attend."""
        unasked = not need_weights
        return super().forward(query, key, value, attn_mask, is_causal=is_causal, need_weights=unasked)


@MISTAKES.add(
    "the weights are never returned",
    hint="What should be returned with `need_weights=True`?",
    more="With a request for weights, the caller expects a pair: the output, and one table for each head.",
    section=MULTI_HEAD,
)
class never_returned(attnlib.numpy.MultiHeadAttention):
    """You return only the output, even with `need_weights`, which asks for the weights as well."""

    def forward(self, query, key=None, value=None, attn_mask=None, *, is_causal=False, need_weights=False, **others):
        """Attend."""
        return super().forward(query, key, value, attn_mask, is_causal=is_causal)


@MISTAKES.add(
    "the results are in the wrong order",
    hint="Compare your return line with the one in the task.",
    more="Two results come out with `need_weights=True`. Which of them does the task ask for first?",
    section=MULTI_HEAD,
)
class swapped_results(attnlib.numpy.MultiHeadAttention):
    """Both results are right, but the weights come first. The task asks for the output first."""

    def forward(self, query, key=None, value=None, attn_mask=None, *, is_causal=False, need_weights=False, **others):
        """Attend."""
        result = super().forward(query, key, value, attn_mask, is_causal=is_causal, need_weights=need_weights)
        return result[::-1] if need_weights else result


def _torch_module() -> Implementation:
    import attnlib.torch  # not at the top: who works in NumPy need not wait for torch

    return attnlib.torch.MultiHeadAttention


def _with_layers(steps, inner, outer):
    """Return the result with other functions in place of the three layers at the front and the one at the end."""
    w_q, w_k, w_v = map(inner, (steps.w_q, steps.w_k, steps.w_v))
    return steps.with_other(w_q=w_q, w_k=w_k, w_v=w_v, w_o=outer(steps.w_o))


# What goes wrong in the function goes wrong in the module ------------------------------------------------------------

NAMES = {"w_q": "q_proj", "w_k": "k_proj", "w_v": "v_proj", "w_o": "out_proj"}
SHARED = (
    "reshape-alone",
    "reshape-both-ways",
    "merged-without-swap",
    "stripes",
    "stripes-both-ways",
    "merged-in-stripes",
    "width-for-number",
    "transposed-and-reshaped",
    "length-of-the-query",
    "heads-attend",
    "one-head",
    "one-head-scaled-by-its-part",
    "last-head-for-all",
    "last-values-for-all",
    "as-many-keys-as-queries",
    "not-side-by-side",
    "keys-by-w-q",
    "values-by-w-k",
    "one-matrix",
    "w-q-and-w-k-exchanged",
    "w-k-and-w-v-exchanged",
    "no-w-o",
    "no-projections",
    "values-not-projected",
    "values-from-key",
    "keys-from-value",
    "query-alone",
    "query-and-key-exchanged",
    "keys-ask",
    "no-scale",
    "scaled-by-width",
    "always-eight",
    "scaled-by-heads",
    "scaled-by-keys",
    "scaled-by-queries",
    "multiplied-by-root",
    "scaled-after-softmax",
    "softmax-over-queries",
    "softmax-over-heads",
    "softmax-over-table",
    "no-softmax",
    "not-normalised",
    "sigmoid",
    "reversed-sign",
    "overflow",
    "global-shift",
    "averages-keys",
    "reversed-heads",
    "mean-of-heads",
    "heads-averaged-and-repeated",
    "weights-of-head-0-for-all",
    "residual",
    "causal-unasked",
    "inverted-mask",
    "mask-ignored",
    "causal-ignored",
    "masks-ignored",
    "masked-with-zero",
    "masked-after-softmax",
    "mask-added",
    "strictly-causal",
    "anti-causal",
    "causal-from-the-end",
    "either-mask",
)


def _in_a_module(mistake: Mistake) -> Mistake:
    """Return a mistake of ``multi_head_attention`` as one of the module, whose matrices have other names."""
    steps = mistake.implementation
    if not isinstance(steps, BySteps):
        raise TypeError(f"{mistake.id} is no recipe")
    texts = {name: getattr(mistake, name) for name in ("id", "title", "says", "hint", "more")}
    for old, new in NAMES.items():
        texts = {name: text.replace(old, new).replace(_dashed(old), _dashed(new)) for name, text in texts.items()}
    return replace(mistake, **texts, implementation=as_module(steps.recipe))


def _dashed(name: str) -> str:
    return name.replace("_", "-")


EXERCISE = Exercise(
    name="MultiHeadAttention",
    reference=attnlib.numpy.MultiHeadAttention,
    in_torch=_torch_module,
    outputs={"out": ("T", "E"), "weights": ("H", "T", "S")},
    rubric={NUMBERS: 4, ARGUMENTS: 1, WEIGHTS: 1, LARGE: 1, UNCHANGED: 1},
    section=MULTI_HEAD,
    advice="Set the four weights to the identity and the biases to zero, and take one head: your result should be "
    "that of plain attention. Then take two heads, and compare the tables of weights.",
    inputs=inputs,
    mistakes=(*MISTAKES, *(_in_a_module(m) for m in multi_head_attention.MISTAKES if m.id in SHARED)),
    graded_options=("need_weights",),
    ungraded_options=("attn_mask", "is_causal"),
    call=call_module,
    analytic_gradients=through_heads,
    solved_by=MULTI_HEAD_FUNCTIONS,
)
