"""Masked arrays and matrices are refused wherever an array is taken: their mask or their product would be ignored."""

import re
import warnings
from functools import partial

import numpy as np
import pytest
from backends import CALLS, D_V, B, D, H, S, T
from other_libraries import LIKE

import attnlib
from attnlib import numpy as of_numpy
from attnlib import torch as of_torch

E = 2 * H


def ones(*shape):
    return np.ones(shape, np.float32)


def layer_call(kind, *sizes, memory=False, argument="query", **settings):
    """A call of a layer with one of its arguments still to be given."""
    layer = getattr(of_numpy, kind)(E, H, *sizes, **settings)
    inputs = {"query": ones(T, E)} | ({"key": ones(S, E)} if memory else {})
    return lambda x: layer(**inputs | {argument: x})


def cached(kind):
    return getattr(of_numpy, kind)(*([] if kind == "KVCache" else [S]))


def appended(kind, value):
    cached(kind).append(ones(T, D), value)


def reordered(kind, index):
    cache = cached(kind)
    cache.append(ones(B, H, T, D), ones(B, H, T, D_V))
    cache.reorder(index)


def loaded(library, name, x, load=attnlib.load_weights):
    layer = library.MultiHeadAttention(E, H)
    state = {name: np.ones(tuple(w.shape), np.float32) for name, w in layer.state_dict().items()}
    if name == "in_proj_weight":
        state = PACKED
    load(layer, state | {name: x})


def generated(tokens, speculatively=False):
    model = of_numpy.CausalLM(of_numpy.CausalLMConfig(vocab_size=S, embed_dim=E, num_layers=1, num_heads=H, ff_dim=T))
    if speculatively:
        return attnlib.generate_speculatively(model, model, tokens, max_new_tokens=1)
    return attnlib.generate(model, tokens, max_new_tokens=1)


CACHES = ("KVCache", "SlidingWindowCache", "StaticCache")
QKV = ones(T, D), ones(S, D), ones(S, D_V)
MASK, SQUARE = np.ones((T, S), bool), np.ones((T, T), bool)
PACKED = {"out_proj.weight": ones(E, E), "out_proj.bias": ones(E), "in_proj_bias": ones(3 * E)}
MORE = {  # the argument that is refused, the call that refuses it, and what it would take
    "padding_mask": ("lengths", lambda x: attnlib.padding_mask(x, S), np.array([2, 3])),
    "combine_masks": ("masks[1]", lambda x: attnlib.combine_masks(MASK, x), MASK),
    "attention": ("mask", lambda x: attnlib.attention(*QKV, mask=x), MASK),
    "sdpa": ("attn_mask", lambda x: attnlib.scaled_dot_product_attention(*QKV, x), MASK),
    "rope_tables": ("positions", lambda x: attnlib.rope_tables(x, D + 1), np.arange(T)[None]),
    "rows of rope_tables": ("positions[1]", lambda x: attnlib.rope_tables([[[1]], x], D + 1), np.array([[2]])),
    "Linear": ("x", of_numpy.Linear(D, S), ones(T, D)),
    "LayerNorm": ("x", of_numpy.LayerNorm(D), ones(T, D)),
    "Embedding": ("index", of_numpy.Embedding(S, D), np.array([[2, 3]])),
    "LearnedPositions": ("x", of_numpy.LearnedPositions(S, E), ones(T, E)),
    "MultiHeadAttention": ("query", layer_call("MultiHeadAttention"), ones(T, E)),
    "its mask": ("attn_mask", layer_call("MultiHeadAttention", argument="attn_mask"), SQUARE),
    "TransformerBlock": ("query", layer_call("TransformerBlock", S), ones(T, E)),
    "DecoderBlock": ("key", layer_call("DecoderBlock", S, memory=True, argument="key"), ones(S, E)),
    "Encoder": ("query", layer_call("Encoder", S, 2), ones(T, E)),
    "Decoder": ("attn_mask", layer_call("Decoder", S, 2, memory=True, argument="attn_mask"), SQUARE),
    "MemoryCache": ("value", lambda x: of_numpy.MemoryCache().project_once(QKV[1], x, lambda *kv: kv), ones(S, D)),
    "load_state_dict": (
        "q_proj.weight",
        partial(loaded, of_numpy, "q_proj.weight", load=of_numpy.Module.load_state_dict),
        ones(E, E),
    ),
    "load_weights": ("q_proj.weight", partial(loaded, of_numpy, "q_proj.weight"), ones(E, E)),
    "load_weights of torch": ("q_proj.weight", partial(loaded, of_torch, "q_proj.weight"), ones(E, E)),
    "generate": ("tokens", generated, np.array([1, 0])),
    "generate_speculatively": ("tokens", partial(generated, speculatively=True), np.array([1, 0])),
    "packed weights": ("in_proj_weight", partial(loaded, of_numpy, "in_proj_weight"), ones(3 * E, E)),
    **{f"append to {kind}": ("value", partial(appended, kind), ones(T, D_V)) for kind in CACHES},
    **{f"reorder {kind}": ("index", partial(reordered, kind), np.array([1, 0])) for kind in CACHES},
    **{f"like of {name}": ("like", lambda x, call=call: call(like=x), ones(T, S)) for name, call in LIKE.items()},
}
SUBCLASSES = {"numpy.ma.MaskedArray": np.ma.masked_array, "numpy.matrix": np.matrix}


def made(kind, x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        return SUBCLASSES[kind](x)


def test_every_public_function_is_asked():
    asked = [*CALLS, *LIKE, *MORE, "RopeScaling"]  # names that begin with those of the functions; it takes no array
    assert [name for name in attnlib.__all__ if not any(one.startswith(name) for one in asked)] == []


@pytest.mark.parametrize("kind", SUBCLASSES)
@pytest.mark.parametrize("name", CALLS)
def test_functions_refuse_them_for_every_argument(name, kind, rng):
    arguments = CALLS[name].draw(rng)
    given = [argument for argument, x in arguments.items() if kind != "numpy.matrix" or x.ndim < 3]
    for argument in given:
        with pytest.raises(TypeError, match=f" is a {kind}"):
            CALLS[name](**arguments | {argument: made(kind, arguments[argument])})


@pytest.mark.parametrize("kind", SUBCLASSES)
@pytest.mark.parametrize("name", MORE)
def test_methods_layers_and_further_arguments_refuse_them(name, kind):
    argument, call, x = MORE[name]
    call(x)  # is right but for the class
    with pytest.raises(TypeError, match=f"^{re.escape(argument)} is a {kind}, .*: pass "):
        call(made(kind, x))
