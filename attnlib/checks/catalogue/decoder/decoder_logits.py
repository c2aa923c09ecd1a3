"""decoder_logits(params, config, tokens, cache): a whole language model, from its parameters by name."""

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.calling.decoder import call_decoder
from attnlib.checks.catalogue.decoder.model_parts import Parts, run
from attnlib.checks.catalogue.decoder.sections import BLOCK, CACHE, GROUPS, RMS_NORM, ROPE, SWIGLU
from attnlib.checks.exercise import Exercise, Mistakes, Section
from attnlib.swiglu import silu

NUMBERS, CACHED, SIZES, UNCHANGED = "a text in one call", "a text in several calls", "other sizes", "inputs unchanged"
MISTAKES = Mistakes()


def decoder_logits(params: Any, config: Any, tokens: Any, cache: Any) -> Any:
    """Return the logits of the tokens, and the grown cache."""
    return run(Parts, params, config, tokens, cache)


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: texts in one call and in several, with several layers and sizes."""
    small = {"num_layers": 1, "num_heads": 2, "num_kv_heads": 1, "head_dim": 4}
    yield _case("one layer, a text of 3 tokens in one call", NUMBERS, rng, small, 6, 10, 9, (3,))
    usual = {"num_layers": 2, "num_heads": 6, "num_kv_heads": 2, "head_dim": 4}
    yield _case("2 layers, 6 heads, 2 key heads, 5 tokens in one call", NUMBERS, rng, usual, 12, 10, 15, (5,))
    yield _case("parameters in float32", NUMBERS, rng, usual, 10, 8, 11, (4,), np.float32)
    yield _case("a prompt of 4 tokens, then one by one", CACHED, rng, usual, 12, 10, 14, (4, 1, 1, 1))
    three = {"num_layers": 3, "num_heads": 4, "num_kv_heads": 2, "head_dim": 2}
    yield _case("chunks of 2, 3 and 1 tokens", CACHED, rng, three, 8, 6, 13, (2, 3, 1))
    yield _case("one token after another", CACHED, rng, three, 6, 9, 12, (1, 1, 1, 1))
    same = {"num_layers": 2, "num_heads": 3, "num_kv_heads": 3, "head_dim": 4}
    yield _case("as many key heads as query heads", SIZES, rng, same, 8, 7, 11, (3, 1))
    other = usual | {"eps": 0.1, "rope_base": 500.0}
    yield _case("eps = 0.1 and the base 500", SIZES, rng, other, 12, 9, 10, (6,))
    yield _case("parameters and a cache that must stay as they are", UNCHANGED, rng, small, 8, 6, 7, (2, 1), kept=True)


def _case(name, criterion, rng, sizes, E, F, V, lengths, dtype: Any = np.float64, kept: bool = False) -> Case:
    """Return a case with random parameters, for chunks of random tokens."""
    config = {"eps": 1e-5, "rope_base": 10000.0} | sizes
    params = {name: x.astype(dtype) for name, x in _parameters(rng, SimpleNamespace(**config), E, F, V).items()}
    chunks = {f"chunk {n}": rng.integers(0, V, size).tolist() for n, size in enumerate(lengths, 1)}
    given = {"params": params, "chunks": chunks}
    return Case(name, criterion, given, setup={"config": config}, unchanged=kept)


def _parameters(rng, config, E: int, F: int, V: int) -> dict[str, Any]:
    """Return random parameters, for a stream in which all parts have weight."""
    width, kv_width = (n * config.head_dim for n in (config.num_heads, config.num_kv_heads))
    shapes = {"self_attn.q_proj": (width, E), "self_attn.k_proj": (kv_width, E), "self_attn.v_proj": (kv_width, E)}
    shapes |= {"self_attn.out_proj": (E, width), "ff.gate_proj": (F, E), "ff.up_proj": (F, E), "ff.down_proj": (E, F)}
    params = {"embed_tokens.weight": rng.normal(size=(V, E))}
    for n in range(config.num_layers):
        for name, shape in shapes.items():
            params[f"layers.{n}.{name}.weight"] = 1.5 * rng.normal(size=shape) / np.sqrt(shape[1])
        for name in ("norm1", "norm2"):
            params[f"layers.{n}.{name}.weight"] = rng.uniform(0.5, 1.8, E)
    return params | {"norm.weight": rng.uniform(0.5, 1.8, E)}


def _mistake(title: str, *, hint: str, more: str, section: Section) -> Any:
    """Register a class that replaces parts of the decoder."""

    def register(parts: type[Parts]) -> type[Parts]:
        def implementation(params, config, tokens, cache):
            return run(parts, params, config, tokens, cache)

        implementation.__name__ = re.sub(r"(?<!_)(?=[A-Z])", "_", parts.__name__).lower()
        implementation.__doc__ = parts.__doc__
        MISTAKES.add(title, hint=hint, more=more, section=section)(implementation)
        return parts

    return register


# The stream and its norms --------------------------------------------------------------------------------------------


@_mistake(
    "the last norm is missing",
    hint="Which parameters can be changed without changing your logits?",
    more="Between the last layer and the product with the embeddings there is one more step.",
    section=RMS_NORM,
)
class _NoFinalNorm(Parts):
    """The stream goes straight from the last layer to the logits. There should be a norm in between."""

    def last(self, x):
        return x


@_mistake(
    "the norm before attention is missing",
    hint="What does attention read: the stream, or its normalised copy?",
    more="Which parameters of a layer can be changed without changing your logits?",
    section=RMS_NORM,
)
class _NoFirstNorm(Parts):
    """Attention reads the stream itself. It should read a normalised copy of it."""

    def norm(self, x, name):
        return x if name.endswith("norm1") else super().norm(x, name)


@_mistake(
    "the norm before the feed-forward layer is missing",
    hint="What does the feed-forward layer read: the stream, or its normalised copy?",
    more="Which parameters of a layer can be changed without changing your logits?",
    section=RMS_NORM,
)
class _NoSecondNorm(Parts):
    """The feed-forward layer reads the stream itself. It should read a normalised copy of it."""

    def norm(self, x, name):
        return x if name.endswith("norm2") else super().norm(x, name)


@_mistake(
    "the two norms of a layer have changed places",
    hint="Which norm belongs before attention, and which before the feed-forward layer?",
    more="Both have the same shape, so no error tells you. Print the names of the parameters in the order "
    "in which you use them.",
    section=RMS_NORM,
)
class _NormsSwapped(Parts):
    """Before attention you use the weights of norm2, and before the feed-forward layer those of norm1."""

    def norm(self, x, name):
        swapped = {"norm1": "norm2", "norm2": "norm1"}
        return super().norm(x, name[:-5] + swapped[name[-5:]] if name[-5:] in swapped else name)


@_mistake(
    "both parts of a layer use the first norm",
    hint="Which parameters can be changed without changing your logits?",
    more="Each layer has two norms. Print the name of the weights that you use before the feed-forward layer.",
    section=RMS_NORM,
)
class _FirstNormTwice(Parts):
    """Before the feed-forward layer you use the weights of norm1 once more. That place belongs to norm2."""

    def norm(self, x, name):
        return super().norm(x, name.replace("norm2", "norm1"))


@_mistake(
    "eps is always a millionth",
    hint="Where does the eps of your norms come from?",
    more="The config of a model says which eps it was trained with. Look for the norm's default.",
    section=RMS_NORM,
)
class _EpsOfAMillionth(Parts):
    """Your norms add 0.000001. The number to add is in the config of the model."""

    def __init__(self, params, config, past):
        super().__init__(params, {**config, "eps": 1e-6}, past)


@_mistake(
    "attention replaces the stream",
    hint="Is what attention returns added to the stream, or put in its place?",
    more="Print the stream after the attention of the first layer. Is the vector of the token still a part of it?",
    section=BLOCK,
)
class _AttentionReplaces(Parts):
    """The result of attention takes the place of the stream. It should be added to the stream."""

    def layer(self, x, layer, cache):
        x, cache = self.attend(self.norm(x, f"{layer}.norm1"), layer, cache)
        return x + self.feed_forward(self.norm(x, f"{layer}.norm2"), layer), cache


@_mistake(
    "the feed-forward layer replaces the stream",
    hint="Is what the feed-forward layer returns added to the stream, or put in its place?",
    more="Each layer has two plus signs. Where is the second one?",
    section=BLOCK,
)
class _FeedForwardReplaces(Parts):
    """The result of the feed-forward layer takes the place of the stream. It should be added to the stream."""

    def layer(self, x, layer, cache):
        attended, cache = self.attend(self.norm(x, f"{layer}.norm1"), layer, cache)
        return self.feed_forward(self.norm(x + attended, f"{layer}.norm2"), layer), cache


@_mistake(
    "the results are added to the normalised copy",
    hint="To what is the result of attention added: to the stream, or to its normalised copy?",
    more="Name the stream and its normalised copy differently, and follow both through a layer.",
    section=BLOCK,
)
class _CopyGoesOn(Parts):
    """The results are added to the normalised copies of the stream. They should be added to the stream itself."""

    def layer(self, x, layer, cache):
        x = self.norm(x, f"{layer}.norm1")
        attended, cache = self.attend(x, layer, cache)
        x = self.norm(x + attended, f"{layer}.norm2")
        return x + self.feed_forward(x, layer), cache


@_mistake(
    "the norms come after the sums",
    hint="Does a norm come before each part of a layer, or after the sum?",
    more="That was the order of 2017. Which of the two is in the formula of the task?",
    section=BLOCK,
)
class _PostNorm(Parts):
    """Each sum is normalised, as in the first transformer. Here the norms come before the parts, not after the sums."""

    def layer(self, x, layer, cache):
        attended, cache = self.attend(x, layer, cache)
        x = self.norm(x + attended, f"{layer}.norm1")
        return self.norm(x + self.feed_forward(x, layer), f"{layer}.norm2"), cache


@_mistake(
    "both parts read the same stream",
    hint="Does the feed-forward layer see what attention has added?",
    more="Each layer has two plus signs, one after the other. What does the second one add to?",
    section=BLOCK,
)
class _InParallel(Parts):
    """The feed-forward layer reads the stream from before attention. It should read what attention has added, too."""

    def layer(self, x, layer, cache):
        attended, cache = self.attend(self.norm(x, f"{layer}.norm1"), layer, cache)
        return x + attended + self.feed_forward(self.norm(x, f"{layer}.norm2"), layer), cache


@_mistake(
    "only the first layer is used",
    hint="Through how many layers does the stream go?",
    more="Which parameters can be changed without changing your logits?",
    section=BLOCK,
)
class _FirstLayerAlone(Parts):
    """The stream goes through layer 0 and then to the logits. The other layers are not used."""

    def order(self, caches):
        return [0]


@_mistake(
    "the layers are used in reverse",
    hint="Which layer comes first?",
    more="Print the names of the parameters in the order in which you use them.",
    section=BLOCK,
)
class _LayersReversed(Parts):
    """The last layer comes first. Use the layers in the order of their numbers."""

    def order(self, caches):
        return list(range(len(caches)))[::-1]


@_mistake(
    "the embeddings are scaled",
    hint="What happens to the vector of a token before the first layer?",
    more="Some models multiply by the root of the width. Does the formula of the task?",
    section=BLOCK,
)
class _EmbeddingsScaled(Parts):
    """The vectors of the tokens are multiplied by the root of their width. This model takes them as they are."""

    def embed(self, tokens):
        return super().embed(tokens) * np.sqrt(self.weight("embed_tokens").shape[1])


# Attention -----------------------------------------------------------------------------------------------------------


@_mistake(
    "every call begins at position 0",
    hint="At which position is the first token of a call, if 4 tokens are in the cache?",
    more="Print the positions by which you rotate, call by call. A text in one call hides the mistake.",
    section=ROPE,
)
class _FromZero(Parts):
    """The new tokens are rotated as if the text began with them. Their positions follow the cache."""

    def positions(self, T):
        return np.arange(T)


@_mistake(
    "nothing is rotated",
    hint="Which line of yours depends on where a token is in the text?",
    more="Exchange two tokens in front of the last one. Do the logits of the last one change?",
    section=ROPE,
)
class _NotRotated(Parts):
    """Queries and keys are used as they are. Both have to be rotated by the angles of their positions."""

    def rotate(self, x):
        return x


@_mistake(
    "neighbouring components make a pair",
    hint="Which components make a pair: 0 and 1, or 0 and D/2?",
    more="This model was trained with halves: components k and k + D/2 make a pair.",
    section=ROPE,
)
class _Interleaved(Parts):
    """You rotate pairs of neighbouring components. In this model components k and k + D/2 make a pair."""

    def rotate(self, x):
        cos, sin = attnlib.rope_tables(
            self.positions(x.shape[-2]).astype(np.float64), x.shape[-1], base=self.config["rope_base"]
        )
        return attnlib.apply_rope(x, cos.astype(x.dtype), sin.astype(x.dtype), interleaved=True)


@_mistake(
    "the base is always 10000",
    hint="Where does the base of your angles come from?",
    more="Models differ in it, so it is in the config. Where do you use it?",
    section=ROPE,
)
class _FixedBase(Parts):
    """Your angles come from the base 10000, whatever the config says."""

    def __init__(self, params, config, past):
        super().__init__(params, {**config, "rope_base": 10000.0}, past)


@_mistake(
    "rotated before the heads are split",
    hint="Which width do you rotate: that of a head, or that of all heads?",
    more="The angles go from fast to slow within each head. Print the shape of what you rotate.",
    section=ROPE,
)
class _RotatedBeforeSplitting(Parts):
    """Queries and keys are rotated as vectors of all heads. Rotate each head on its own, after the split."""

    def rotate(self, x):
        return self.split(super().rotate(self.merge(x)))


@_mistake(
    "the heads are cut the wrong way",
    hint="Do the numbers of a head lie next to each other in the vector, or across the positions?",
    more="Going from (T, H D) to (H, T, D) takes two steps. A single reshape mixes positions and heads.",
    section=GROUPS,
)
class _ReshapedOnly(Parts):
    """The vectors (T, H D) are reshaped to (H, T, D) in one step, so a head gets numbers of other positions."""

    def split(self, x):
        return x.reshape(-1, len(x), self.config["head_dim"])


@_mistake(
    "the heads are joined the wrong way",
    hint="What lies side by side in one row after the heads are joined?",
    more="Going from (H, T, D) to (T, H D) takes two steps. A single reshape mixes positions and heads.",
    section=GROUPS,
)
class _MergedByReshape(Parts):
    """The heads (H, T, D) are reshaped to (T, H D) in one step, so a row gets numbers of other positions."""

    def merge(self, x):
        return x.reshape(x.shape[1], -1)


@_mistake(
    "neighbouring query heads get different key heads",
    hint="Which query heads share a key head: neighbours, or every second one?",
    more="With 6 query heads and 2 key heads, write down the key head of each query head: 0, 0, 0, 1, 1, 1. What is "
    "yours?",
    section=GROUPS,
)
class _InTurn(Parts):
    """Query heads take the key heads in turn: 0, 1, 0, 1. Each group of neighbours should share one."""

    def spread(self, x):
        return np.concatenate([x] * (self.config["num_heads"] // len(x)), axis=0)


@_mistake(
    "tokens see later ones",
    hint="May a token look at the tokens after it?",
    more="Change the last token of a text in one call. Only its own logits may change.",
    section=CACHE,
)
class _NoMask(Parts):
    """All tokens of a call look at each other. A token may look only at itself and at the tokens before it."""

    def mask(self, T, S):
        return True


@_mistake(
    "the mask begins at the first key",
    hint="Which keys may the first new token see, if 2 tokens are in the cache?",
    more="Draw the mask for 3 new tokens after 2: the first row allows 3 keys. How many does yours allow?",
    section=CACHE,
)
class _TopLeft(Parts):
    """The mask takes the first new token for the first token of the text. That token comes after those in the cache."""

    def mask(self, T, S):
        return np.tri(T, S, dtype=bool)


@_mistake(
    "no call looks at earlier tokens",
    hint="Which tokens can the second call look at?",
    more="Change a token of the first call. Do the logits of the second call change? If not, is the cache read, and "
    "does it come back longer than it went in?",
    section=CACHE,
)
class _CacheNotRead(Parts):
    """Each call looks only at its own tokens. The keys and values from the cache belong in front of them."""

    def attend(self, x, layer, cache):
        empty = tuple(one[:, :0] for one in cache)
        added, new = super().attend(x, layer, empty)
        return added, self.grown(cache, *new)


@_mistake(
    "the output projection is missing",
    hint="What happens to the heads after they are joined?",
    more="Which parameters can be changed without changing your logits?",
    section=BLOCK,
)
class _NoOutputProjection(Parts):
    """The joined heads are added to the stream as they are. They should go through the output projection first."""

    def attend(self, x, layer, cache):
        name = f"{layer}.self_attn.out_proj.weight"
        E, width = self.params[name].shape
        saved, self.params = self.params, {**self.params, name: np.eye(E, width, dtype=x.dtype)}
        try:
            return super().attend(x, layer, cache)
        finally:
            self.params = saved


# The feed-forward layer and the logits -------------------------------------------------------------------------------


@_mistake(
    "gate and up have changed places",
    hint="Which of the two projections goes through the silu?",
    more="Both have the same shape, so no error tells you. Compare the order of the arguments.",
    section=SWIGLU,
)
class _GateAndUpSwapped(Parts):
    """The silu is applied to the projection by up_proj. Apply it to the one by gate_proj."""

    def gated(self, gate, up):
        return silu(up) * gate


@_mistake(
    "only the last token gets logits",
    hint="How many rows of logits does the task ask for?",
    more="A prompt of 4 tokens has 4 rows of logits. The caller can pick the last one.",
    section=BLOCK,
)
class _LastAlone(Parts):
    """You return the logits of the last token. The task asks for those of all tokens of the call, (T, V)."""

    def last(self, x):
        return super().last(x[-1:])


@_mistake(
    "probabilities in place of logits",
    hint="Is there a softmax at the end of the task's formula?",
    more="Your rows sum to 1. Which step belongs to the sampling?",
    section=BLOCK,
)
class _Probabilities(Parts):
    """These are probabilities. The task asks for the logits, before the softmax."""

    def logits(self, x):
        return attnlib.softmax(super().logits(x))


EXERCISE = Exercise(
    name="decoder_logits",
    reference=decoder_logits,
    outputs={"logits": ("T", "V")},
    rubric={NUMBERS: 5, CACHED: 3, SIZES: 1, UNCHANGED: 1},
    section=BLOCK,
    advice="Take the smallest case, with one layer. Print the stream after each of the two plus signs, and compare a "
    "token's path with the formula, line by line. Then run the same text in two calls: which token differs first?",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    call=call_decoder,
    backends=("numpy",),
    solved_by=(
        "attnlib.numpy.CausalLM",
        "attnlib.numpy.CausalLMLayer",
        "attnlib.torch.CausalLM",
        "attnlib.torch.CausalLMLayer",
    ),
)
