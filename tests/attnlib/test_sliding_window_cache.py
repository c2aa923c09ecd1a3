"""SlidingWindowCache: it keeps only the last positions and the sinks, and decoding equals attention with a window."""

import copy

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from backends import D_V, B, D, H, Torch, dtype_name, examples
from caches import decoded, joined, pair
from hypothesis import given, settings
from modules import FF, HEADS, KV, LAYERS, ROPE, E, Layer, attention_by_loops
from numpy.testing import assert_allclose, assert_array_equal

import attnlib.numpy
import attnlib.torch
from attnlib._mask_rule import MaskRule
from attnlib.cache import KVCache
from attnlib.sliding_window_cache import SlidingWindowCache

LENGTH, LEFT, SINKS = 11, 3, 2
CHUNKS = {"one by one": [1] * 11, "a prefill beyond the window": [6, 1, 1, 1, 2], "chunks": [2, 4, 5], "at once": [11]}
every_way = pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS)
chunkings = st.lists(st.integers(1, LENGTH - 1), unique=True).map(lambda x: np.diff([0, *sorted(x), LENGTH]).tolist())
OPTIONS = {"rope": ROPE, "num_kv_heads": KV}
ATTENTION = Layer("MultiHeadAttention", (E, HEADS), OPTIONS)
BLOCK = Layer("TransformerBlock", (E, HEADS, FF), {"rope": ROPE})


def allowed(left, sinks=0, length=LENGTH):
    """Return the mask of the whole sequence: a key is near enough or a sink, and not after the query."""
    return np.array([[j <= i and (j >= i - left or j < sinks) for j in range(length)] for i in range(length)])


def states(layer, backend, dtype="float64"):
    return layer.inputs(backend, dtype, length=LENGTH)["query"]


# What it holds


@examples
@given(st.lists(st.integers(0, 6), max_size=14), st.integers(0, 4), st.integers(0, 3))
def test_it_holds_the_sinks_and_what_new_positions_may_attend_to_in_order(backend, lengths, left, sinks):
    cache, length = SlidingWindowCache(left, num_sink_tokens=sinks), 0
    held = []
    for n in lengths:
        first = [j for j in held if j < sinks]
        rest = [j for j in held if j >= sinks]
        held = first + rest[max(len(rest) - left, 0) :] + list(range(length, length + n))
        got = cache.append(*pair(backend, length, length + n))
        length += n
        for mine, all_of_it in zip(got, pair(backend, 0, length), strict=True):
            assert_array_equal(backend.numpy(mine), backend.numpy(all_of_it)[..., held, :])
        assert cache.length == length


@pytest.mark.parametrize("grad", [False, True])
def test_memory_stays_the_same_however_long_the_text(backend, grad):
    cache, rows, places = SlidingWindowCache(20, num_sink_tokens=2), [], set()
    with torch.set_grad_enabled(grad):
        cache.append(*pair(backend, 0, 300))
        for n in range(300, 500):
            keys, _ = cache.append(*pair(backend, n, n + 1))
            assert keys.shape[-2] == 23
            rows.append(cache._keys.shape[-2])
            places.add(keys.data_ptr() if isinstance(keys, torch.Tensor) else keys.__array_interface__["data"][0])
    assert max(rows) <= 4 * 23
    assert max(rows[-100:]) == max(rows[:100])
    assert grad or len({p for p in places}) > 20, "positions are written one after another, without moving the others"


def test_nothing_is_moved_at_a_step_that_has_room(backend):
    with torch.no_grad():
        cache, moved, before = SlidingWindowCache(50), 0, None
        for n in range(400):
            cache.append(*pair(backend, n, n + 1))
            moved += cache._keys is not before
            before = cache._keys
    assert moved <= 14, "the window moves once every 50 positions, and while it grows, each time it doubles"


def test_what_is_returned_keeps_dtype_and_device(typed):
    backend, dtype = typed
    cache = SlidingWindowCache(2, num_sink_tokens=1)
    for n in range(6):
        keys, values = cache.append(*pair(backend, n, n + 1, dtype))
    assert (tuple(keys.shape), tuple(values.shape)) == ((B, H, 4, D), (B, H, 4, D_V))
    assert dtype_name(keys) == dtype_name(values) == dtype
    backend.numpy(keys)  # checks the library and the device


def test_a_copy_goes_its_own_way(backend):
    cache = SlidingWindowCache(3, num_sink_tokens=1)
    cache.append(*pair(backend, 0, 8))
    other = copy.deepcopy(cache)
    cache.append(*pair(backend, 50, 52))
    keys, _ = other.append(*pair(backend, 8, 9))
    assert_array_equal(backend.numpy(keys), backend.numpy(pair(backend, 0, 9)[0])[..., [0, 5, 6, 7, 8], :])


# Decoding is attention over the whole sequence, through a window


@settings(parent=examples, max_examples=12)
@given(chunkings, st.integers(0, 5), st.integers(0, 3), st.booleans())
def test_decoding_is_attention_to_the_window_or_the_sinks(backend, chunks, left, sinks, grad):
    module, x = ATTENTION.build(backend), states(ATTENTION, backend)
    wanted, _ = attention_by_loops(ATTENTION.state(), *[backend.numpy(x)] * 3, allowed(left, sinks), **OPTIONS)
    with torch.set_grad_enabled(grad):
        outs = decoded(module, x, chunks, SlidingWindowCache(left, num_sink_tokens=sinks))
    assert_allclose(joined(backend, outs), wanted, atol=1e-10)


@pytest.mark.parametrize("sinks", [0, SINKS])
@every_way
@torch.no_grad()
def test_a_layer_with_that_window_decodes_its_own_whole_pass(backend, chunks, sinks):
    layer = Layer("Encoder", (E, HEADS, FF, LAYERS), {"window": (LEFT, 0), "num_sink_tokens": sinks, "rope": ROPE})
    module, x = layer.build(backend), states(layer, backend)
    whole = backend.numpy(module(x))
    for left, kept in ((LEFT, sinks), (LEFT + 2, SINKS + 1)):  # the cache may keep more than the layer looks at
        cache = [SlidingWindowCache(left, num_sink_tokens=kept) for _ in range(LAYERS)]
        assert_allclose(joined(backend, decoded(module, x, chunks, cache)), whole, atol=1e-10)


def test_a_decoder_keeps_its_memory_beside_the_window(backend):
    layer = Layer("Decoder", (E, HEADS, FF, LAYERS), {"window": (LEFT, 0)})
    module, inputs = layer.build(backend), layer.inputs(backend, length=LENGTH)
    cache = [SlidingWindowCache(LEFT) for _ in range(LAYERS)]
    outs = [module(inputs["query"][:, i : i + 1], inputs["key"], cache=cache) for i in range(LENGTH)]
    assert_allclose(joined(backend, outs), backend.numpy(module(**inputs)), atol=1e-10)


@every_way
def test_weights_have_a_column_for_each_position_that_is_held(backend, chunks):
    module, x = ATTENTION.build(backend), states(ATTENTION, backend)
    _, wanted = attention_by_loops(ATTENTION.state(), *[backend.numpy(x)] * 3, allowed(LEFT, SINKS), **OPTIONS)
    outs = decoded(module, x, chunks, SlidingWindowCache(LEFT, num_sink_tokens=SINKS), need_weights=True)
    end = 0
    for n, (_, weights) in zip(chunks, outs, strict=True):
        first, end = end, end + n
        held = [*range(min(SINKS, first)), *range(max(min(SINKS, first), first - LEFT), end)]
        assert_allclose(backend.numpy(weights), wanted[..., first:end, held], atol=1e-10)


@pytest.mark.parametrize("kind", ["bool", "float64"])
@every_way
def test_a_mask_has_a_column_for_each_position_so_far(backend, chunks, kind):
    module, x = ATTENTION.build(backend), states(ATTENTION, backend)
    real = np.random.default_rng(5).random((B, 1, 1, LENGTH)) < 0.7
    real[..., 0] = True
    both = real & allowed(LEFT, SINKS)
    wanted, _ = attention_by_loops(ATTENTION.state(), *[backend.numpy(x)] * 3, both, **OPTIONS)
    mask = real if kind == "bool" else np.where(real, 0.0, -np.inf)
    cache, outs, end = SlidingWindowCache(LEFT, num_sink_tokens=SINKS), [], 0
    for n in chunks:
        first, end = end, end + n
        outs.append(
            module(x[:, first:end], attn_mask=backend.array(mask[..., :end], kind), is_causal=True, cache=cache)
        )
    assert_allclose(joined(backend, outs), wanted, atol=1e-10)


def test_a_bias_is_that_of_the_original_positions(backend):
    layer = Layer("MultiHeadAttention", (E, HEADS), {"attn_bias": attnlib.alibi_bias})
    module, x = layer.build(backend), states(layer, backend)
    bias = np.where(allowed(LEFT, SINKS), attnlib.alibi_bias(HEADS, LENGTH, LENGTH), -np.inf)
    wanted, _ = attention_by_loops(layer.state(), *[backend.numpy(x)] * 3, bias)
    outs = decoded(module, x, [4, 1, 3, 1, 1, 1], SlidingWindowCache(LEFT, num_sink_tokens=SINKS))
    assert_allclose(joined(backend, outs), wanted, atol=1e-10)


def test_without_the_causal_rule_a_chunk_sees_itself_and_the_window_before(backend):
    module, x = ATTENTION.build(backend), states(ATTENTION, backend)
    end_of_chunk = [6] * 6 + [LENGTH] * 5
    may = np.array(
        [[j < end and (j >= i - LEFT or j < SINKS) for j in range(LENGTH)] for i, end in enumerate(end_of_chunk)]
    )
    wanted, _ = attention_by_loops(ATTENTION.state(), *[backend.numpy(x)] * 3, may, **OPTIONS)
    cache = SlidingWindowCache(LEFT, num_sink_tokens=SINKS)
    outs = [module(x[:, :6], cache=cache), module(x[:, 6:], cache=cache)]
    assert_allclose(joined(backend, outs), wanted, atol=1e-10)


def test_decoding_keeps_the_dtype(typed):
    backend, dtype = typed
    module, x = BLOCK.build(backend, dtype), states(BLOCK, backend, dtype)
    with torch.no_grad():
        outs = decoded(module, x, [5, 1, 1, 4], SlidingWindowCache(LEFT, num_sink_tokens=SINKS))
    assert {dtype_name(out) for out in outs} == {dtype}
    whole = backend.numpy(module(x, attn_mask=backend.array(allowed(LEFT, SINKS), "bool")))
    tolerance = {"float16": 2e-2, "bfloat16": 0.15, "float32": 1e-5, "float64": 1e-12}[dtype]
    assert_allclose(joined(backend, outs), whole, atol=tolerance * np.abs(whole).max())


def test_under_autocast_decoding_is_the_whole_pass():
    backend = Torch("cpu")
    module, x = BLOCK.build(backend, "float32"), states(BLOCK, backend, "float32")
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        outs = decoded(module, x, [5, 1, 1, 4], SlidingWindowCache(LEFT, num_sink_tokens=SINKS))
        whole = module(x, attn_mask=torch.tensor(allowed(LEFT, SINKS)))
    torch.testing.assert_close(torch.cat(outs, 1), whole, atol=0.1, rtol=0.1)


@every_way
def test_gradients_are_those_of_the_whole_pass(chunks):
    backend = Torch("cpu")
    module, x = BLOCK.build(backend), states(BLOCK, backend)

    def gradients(run):
        module.zero_grad()
        given = x.clone().requires_grad_()
        out = run(given)
        (out * torch.arange(out.numel()).reshape(out.shape).cos()).sum().backward()
        return [given.grad, *(p.grad.clone() for p in module.parameters())]

    ours = gradients(lambda x: torch.cat(decoded(module, x, chunks, SlidingWindowCache(LEFT, num_sink_tokens=1)), 1))
    theirs = gradients(lambda x: module(x, attn_mask=torch.tensor(allowed(LEFT, 1))))
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-8, atol=1e-10)


def test_gradients_survive_what_follows_without_them():
    backend = Torch("cpu")
    module, x = BLOCK.build(backend), states(BLOCK, backend)
    cache = SlidingWindowCache(LEFT, num_sink_tokens=1)
    first = module(x[:, :6], is_causal=True, cache=cache)
    cache.truncate(5)
    with torch.inference_mode():
        decoded(module, x[:, 5:6], [1], cache)
    with torch.no_grad():
        rest = decoded(module, x[:, 6:], [1] * 5, cache)
    first.sum().backward()
    whole = module(x, attn_mask=torch.tensor(allowed(LEFT, 1)))
    torch.testing.assert_close(torch.cat([first, *rest], 1), whole)


@torch.no_grad()
def test_a_step_that_forgets_compiles_into_one_graph():
    backend, cache = Torch("cpu"), SlidingWindowCache(LEFT, num_sink_tokens=SINKS)
    module, x = ATTENTION.build(backend), states(ATTENTION, backend)
    torch._dynamo.reset()
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    first = decoded(module, x, [7, 1, 1], cache)
    rest = decoded(compiled, x[:, 9:], [1, 1], cache)
    whole = module(x, attn_mask=torch.tensor(allowed(LEFT, SINKS)))
    torch.testing.assert_close(torch.cat(first + rest, 1), whole)


# Truncating and reordering


@pytest.mark.parametrize("accepted", [0, 1, 2, 4])
@torch.no_grad()
def test_a_draft_can_be_taken_back_as_far_as_it_was_rejected(backend, accepted):
    cache = SlidingWindowCache(3, num_sink_tokens=1)
    cache.append(*pair(backend, 0, 7))
    for length in [7 + n * accepted for n in range(6)]:
        cache.append(*(x + 0.5 for x in pair(backend, length, length + 4)))
        cache.truncate(length)
        keys, _ = cache.append(*pair(backend, length, length + 4))
        held = [0, *range(length - 3, length + 4)]
        assert_array_equal(backend.numpy(keys), backend.numpy(pair(backend, 0, length + 4)[0])[..., held, :])
        cache.truncate(length + accepted)


def test_it_is_not_truncated_to_where_the_window_is_gone(backend):
    cache = SlidingWindowCache(3, num_sink_tokens=1)
    for n in range(10):
        cache.append(*pair(backend, n, n + 1))
    with pytest.raises(ValueError, match=r"length is 8, but at least 9 is needed: the 3 positions before it"):
        cache.truncate(8)
    cache.truncate(9)
    keys, _ = cache.append(*pair(backend, 9, 10))
    assert_array_equal(backend.numpy(keys), backend.numpy(pair(backend, 0, 10)[0])[..., [0, 6, 7, 8, 9], :])


@pytest.mark.parametrize(("length", "error"), [(-1, ValueError), (4, ValueError), (1.0, TypeError)])
def test_it_is_not_truncated_to_what_it_never_held(backend, length, error):
    cache = SlidingWindowCache(3)
    cache.append(*pair(backend, 0, 3))
    with pytest.raises(error, match=str(length)):
        cache.truncate(length)
    cache.truncate(0)
    assert_array_equal(*(backend.numpy(x) for x in (cache.append(*pair(backend, 0, 1))[0], pair(backend, 0, 1)[0])))


def test_beams_that_are_reordered_decode_as_if_they_had_been_alone(backend):
    module, x = ATTENTION.build(backend), states(ATTENTION, backend)
    index, cache = backend.array(np.array([1, 0]), "int64"), SlidingWindowCache(LEFT, num_sink_tokens=SINKS)
    whole = backend.numpy(module(x, attn_mask=backend.array(allowed(LEFT, SINKS), "bool")))
    module(x[:, :7], is_causal=True, cache=cache)
    cache.reorder(index)
    out = module(x[index][:, 7:], is_causal=True, cache=cache)
    assert_allclose(backend.numpy(out), whole[[1, 0], 7:], atol=1e-10)


# What is refused


@pytest.mark.parametrize(
    ("arguments", "options", "error", "word"),
    [
        ((-1,), {}, ValueError, "left is -1"),
        ((2.0,), {}, TypeError, r"left is 2\.0"),
        ((None,), {}, TypeError, "left is None"),
        ((2,), {"num_sink_tokens": -1}, ValueError, "num_sink_tokens is -1"),
    ],
)
def test_its_sizes_are_whole_numbers(arguments, options, error, word):
    with pytest.raises(error, match=word):
        SlidingWindowCache(*arguments, **options)


@pytest.mark.parametrize("window", [{"window": (4, 0)}, {"window": (2, 0), "num_sink_tokens": 1}])
def test_a_layer_that_looks_further_back_is_refused_and_nothing_is_added(backend, window):
    layer = Layer("MultiHeadAttention", (E, HEADS), window)
    module, x, cache = layer.build(backend), states(layer, backend), SlidingWindowCache(LEFT)
    with pytest.raises(ValueError, match=rf"use SlidingWindowCache\({window['window'][0]}, num_sink_tokens="):
        module(x, is_causal=True, cache=cache)
    assert cache.length == 0


def test_after_an_error_it_is_as_it_was(backend):
    cache = SlidingWindowCache(2, num_sink_tokens=1)
    cache.append(*pair(backend, 0, 6))
    key, value = pair(backend, 6, 7)
    for wrong in ((key[..., :-1], value), (key, value[:1]), (key, value[..., :0, :])):
        with pytest.raises(ValueError, match="shape"):
            cache.append(*wrong)
    assert cache.length == 6
    keys, _ = cache.append(key, value)
    assert_array_equal(backend.numpy(keys), backend.numpy(pair(backend, 0, 7)[0])[..., [0, 4, 5, 6], :])


def test_a_mask_of_the_columns_that_are_held_is_refused(backend):
    module, x, cache = ATTENTION.build(backend), states(ATTENTION, backend), SlidingWindowCache(LEFT)
    module(x[:, :9], is_causal=True, cache=cache)
    mask = backend.array(np.ones((1, LEFT + 1)), "bool")
    with pytest.raises(ValueError, match=r"attn_mask has shape \(1, 4\).*S=10 keys"):
        module(x[:, 9:10], attn_mask=mask, cache=cache)
    assert cache.length == 9


@pytest.mark.parametrize(("sinks", "T"), [(0, 1), (0, 3), (SINKS, 1)])
def test_no_mask_is_made_where_attention_needs_none(backend, sinks, T):
    cache = SlidingWindowCache(LEFT, num_sink_tokens=sinks)
    cache.append(*pair(backend, 0, 9))
    options = cache.options(MaskRule(right=0), T, None, pair(backend, 9, 10)[0])
    assert options["attn_mask"] is None


def test_both_libraries_of_layers_have_it():
    assert attnlib.numpy.SlidingWindowCache is attnlib.torch.SlidingWindowCache is SlidingWindowCache
    assert issubclass(SlidingWindowCache, KVCache)
