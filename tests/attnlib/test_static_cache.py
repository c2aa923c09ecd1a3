"""StaticCache: its memory is allocated once; with torch no shape changes, so one graph serves every step."""

import copy

import hypothesis.strategies as st
import numpy as np
import pytest
import torch
from backends import B, D, H, Numpy, Torch, dtype_name, examples
from caches import decoded, joined, pair
from fake_cuda import fake_cuda
from hypothesis import given, settings
from modules import EVERY, FF, HEADS, KV, LAYERS, ROPE, E, Layer, attention_by_loops
from numpy.testing import assert_allclose, assert_array_equal
from torch._dynamo.testing import CompileCounter
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

import attnlib
import attnlib.numpy
import attnlib.torch
from attnlib.cache import KVCache
from attnlib.static_cache import StaticCache

LENGTH, ROOM = 9, 12
CHUNKS = {"one by one": [1] * 9, "a prompt, then one by one": [5, 1, 1, 1, 1], "chunks": [2, 3, 4], "at once": [9]}
every_way = pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS)
chunkings = st.lists(st.integers(1, LENGTH - 1), unique=True).map(lambda x: np.diff([0, *sorted(x), LENGTH]).tolist())
ATTENTIONS = {
    "rope and grouped queries": {"rope": ROPE, "num_kv_heads": KV},
    "window": {"window": (2, 0)},
    "window and sinks": {"window": (2, 1), "num_sink_tokens": 2, "rope": ROPE},
    "softcap and scale": {"softcap": 0.7, "scale": 0.9},
    "alibi": {"attn_bias": attnlib.alibi_bias},
}
every_attention = pytest.mark.parametrize(
    "layer",
    [Layer("MultiHeadAttention", (E, HEADS), options) for options in ATTENTIONS.values()],
    ids=list(ATTENTIONS),
)
PLAIN = Layer("MultiHeadAttention", (E, HEADS), ATTENTIONS["rope and grouped queries"])
STACK = Layer("Encoder", (E, HEADS, FF, LAYERS), {"rope": ROPE})


def states(layer, backend, dtype="float64"):
    return layer.inputs(backend, dtype, length=LENGTH)["query"]


def place(x):
    return x.data_ptr() if isinstance(x, torch.Tensor) else x.__array_interface__["data"][0]


pytestmark = pytest.mark.usefixtures("without_gradients")


@pytest.fixture
def without_gradients():
    with torch.no_grad():
        yield


# The memory


@examples
@given(st.lists(st.integers(0, 4), min_size=1, max_size=6))
def test_it_holds_what_was_added_in_order_and_the_memory_never_moves(backend, lengths):
    cache, length, places = StaticCache(24), 0, set()
    with torch.no_grad():
        for n in lengths:
            keys, values = cache.append(*pair(backend, length, length + n))
            length += n
            for mine, theirs in zip((keys, values), pair(backend, 0, length), strict=True):
                assert_array_equal(backend.numpy(mine)[..., :length, :], backend.numpy(theirs))
            assert int(cache.length) == length
            places.add((place(cache._keys), place(cache._values)))
    assert cache._keys.shape == (B, H, 24, D)
    assert len(places) == 1


def test_shapes_and_places_never_change_with_torch():
    cache = StaticCache(ROOM)
    cache.append(*pair(Torch("cpu"), 0, 3))
    seen = set()
    for n in range(3, 9):
        keys, values = cache.append(*pair(Torch("cpu"), n, n + 1))
        seen.add((keys.shape, place(keys), values.shape, place(values), cache.length.shape, place(cache.length)))
    assert len(seen) == 1
    assert keys.shape == (B, H, ROOM, D)
    assert cache.length.dtype == torch.int64


def test_dtypes_and_devices_are_those_of_what_is_added(typed):
    backend, dtype = typed
    cache = StaticCache(ROOM)
    for n in range(3):
        keys, values = cache.append(*pair(backend, n, n + 1, dtype))
    assert dtype_name(keys) == dtype_name(values) == dtype
    backend.numpy(keys)  # checks the library and the device


def test_a_copy_goes_its_own_way(backend):
    cache = StaticCache(ROOM)
    cache.append(*pair(backend, 0, 2))
    other = copy.deepcopy(cache)
    cache.append(*pair(backend, 5, 7))
    keys, _ = other.append(*pair(backend, 2, 3))
    assert (int(cache.length), int(other.length)) == (4, 3)
    assert_array_equal(backend.numpy(keys)[..., :3, :], backend.numpy(pair(backend, 0, 3)[0]))


# Decoding gives the same results as one pass


@every_attention
@every_way
def test_decoding_is_the_causal_pass(backend, layer, chunks):
    module, x = layer.build(backend), states(layer, backend)
    outs = decoded(module, x, chunks, StaticCache(ROOM))
    assert_allclose(joined(backend, outs), backend.numpy(module(x, is_causal=True)), atol=1e-10)


@settings(parent=examples, max_examples=12)
@given(chunkings, st.integers(0, 3))
def test_decoding_is_attention_by_loops(backend, chunks, spare):
    with torch.no_grad():
        outs = decoded(PLAIN.build(backend), states(PLAIN, backend), chunks, StaticCache(LENGTH + spare))
    x = backend.numpy(states(PLAIN, backend))
    wanted, _ = attention_by_loops(PLAIN.state(), x, x, x, is_causal=True, **PLAIN.options)
    assert_allclose(joined(backend, outs), wanted, atol=1e-10)


@every_way
def test_a_stack_decodes_its_whole_pass(backend, chunks):
    module, x = STACK.build(backend), states(STACK, backend)
    outs = decoded(module, x, chunks, [StaticCache(ROOM) for _ in module.layers])
    assert_allclose(joined(backend, outs), backend.numpy(module(x, is_causal=True)), atol=1e-10)


def test_a_decoder_keeps_its_memory_beside(backend):
    layer = EVERY["decoder with rope"]
    module, inputs = layer.build(backend), layer.inputs(backend, length=LENGTH)
    cache = [StaticCache(ROOM) for _ in module.layers]
    outs = [module(inputs["query"][:, i : i + 1], inputs["key"], cache=cache) for i in range(LENGTH)]
    assert_allclose(joined(backend, outs), backend.numpy(module(**inputs)), atol=1e-10)


def test_learned_positions_go_on_where_the_cache_ends(backend):
    add, module = EVERY["learned positions"].build(backend), EVERY["encoder"].build(backend)
    x, cache = states(EVERY["encoder"], backend), [StaticCache(ROOM) for _ in range(LAYERS)]
    outs = [module(add(x[:, i : i + 1], q_offset=cache[0].length), cache=cache) for i in range(LENGTH)]
    assert_allclose(joined(backend, outs), backend.numpy(module(add(x), is_causal=True)), atol=1e-10)


def test_without_the_causal_rule_a_chunk_sees_itself_and_all_before(backend):
    module, x, cache = PLAIN.build(backend), states(PLAIN, backend), StaticCache(ROOM)
    may = np.arange(LENGTH) < np.array([3] * 3 + [7] * 4 + [9] * 2)[:, None]
    outs = [module(x[:, a:b], cache=cache) for a, b in ((0, 3), (3, 7), (7, 9))]
    assert_allclose(joined(backend, outs), backend.numpy(module(x, attn_mask=backend.array(may, "bool"))), atol=1e-10)


@pytest.mark.parametrize("kind", ["bool", "float64"])
@every_way
def test_a_mask_has_a_column_for_each_position_that_there_is_memory_for(backend, chunks, kind):
    module, x = PLAIN.build(backend), states(PLAIN, backend)
    real = np.random.default_rng(5).random((B, 1, 1, ROOM)) < 0.7
    real[..., 0] = True
    mask = backend.array(real if kind == "bool" else np.where(real, 0.0, -np.inf), kind)
    outs = decoded(module, x, chunks, StaticCache(ROOM), attn_mask=mask)
    whole = module(x, attn_mask=mask[..., :LENGTH], is_causal=True)
    assert_allclose(joined(backend, outs), backend.numpy(whole), atol=1e-10)


@every_way
def test_weights_are_those_of_the_causal_pass_and_0_where_nothing_is_written(backend, chunks):
    module, x, end = PLAIN.build(backend), states(PLAIN, backend), 0
    whole = backend.numpy(module(x, is_causal=True, need_weights=True)[1])
    for n, (_, weights) in zip(chunks, decoded(module, x, chunks, StaticCache(ROOM), need_weights=True), strict=True):
        first, end, shown = end, end + n, backend.numpy(weights)
        assert_allclose(shown[..., :end], whole[..., first:end, :end], atol=1e-10)
        assert not shown[..., end:].any()


def test_decoding_keeps_the_dtype(typed):
    backend, dtype = typed
    module, x = PLAIN.build(backend, dtype), states(PLAIN, backend, dtype)
    outs = decoded(module, x, [5, 1, 1, 2], StaticCache(ROOM))
    assert {dtype_name(out) for out in outs} == {dtype}
    whole = backend.numpy(module(x, is_causal=True))
    tolerance = {"float16": 2e-2, "bfloat16": 0.15, "float32": 1e-5, "float64": 1e-12}[dtype]
    assert_allclose(joined(backend, outs), whole, atol=tolerance * np.abs(whole).max())


@pytest.mark.parametrize("prompt", [True, False], ids=["all of it", "all but the prompt"])
def test_under_autocast_decoding_is_the_whole_pass(prompt):
    module, x = PLAIN.build(Torch("cpu"), "float32"), states(PLAIN, Torch("cpu"), "float32")
    cache = StaticCache(ROOM)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=prompt):
        outs = decoded(module, x, [5], cache)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outs += decoded(module, x[:, 5:], [1, 1, 2], cache)
        whole = module(x, is_causal=True)
    torch.testing.assert_close(torch.cat(outs, 1).float(), whole.float(), atol=0.1, rtol=0.1)


def test_inference_mode_may_begin_and_end_between_calls():
    module, x, cache = PLAIN.build(Torch("cpu")), states(PLAIN, Torch("cpu")), StaticCache(ROOM)
    outs = []
    for i in range(LENGTH):
        with torch.inference_mode(i % 3 == 0), torch.no_grad():
            outs.append(module(x[:, i : i + 1], cache=cache))
    torch.testing.assert_close(torch.cat(outs, 1), module(x, is_causal=True))


# One graph, and nothing waits


def test_one_graph_serves_every_step():
    layers = [*(Layer("MultiHeadAttention", (E, HEADS), options) for options in ATTENTIONS.values()), STACK]
    modules, x, counter = [layer.build(Torch("cpu")) for layer in layers], states(STACK, Torch("cpu")), CompileCounter()
    caches = [*(StaticCache(ROOM) for _ in ATTENTIONS), [StaticCache(ROOM) for _ in range(LAYERS)]]

    def step(x):  # one graph for all, because torch takes a long time to start one
        pairs = zip(modules, caches, strict=True)
        return torch.stack([module(x, is_causal=True, cache=cache) for module, cache in pairs])

    torch._dynamo.reset()
    compiled = torch.compile(step, fullgraph=True, dynamic=False, backend=counter)
    outs = [step(x[:, :3]), *(compiled(x[:, i : i + 1]) for i in range(3, LENGTH))]
    torch.testing.assert_close(torch.cat(outs, 2), torch.stack([module(x, is_causal=True) for module in modules]))
    assert counter.frame_count == 1


@pytest.mark.parametrize("options", [*ATTENTIONS.values(), {}], ids=[*ATTENTIONS, "stack"])
def test_nothing_waits_on_cuda_and_no_tensor_is_made_on_the_cpu(options):
    layer = Layer("MultiHeadAttention", (E, HEADS), options) if options else STACK
    with fake_cuda():
        with torch.device("cuda"):
            module, add = layer.plain(attnlib.torch), attnlib.torch.LearnedPositions(ROOM, E)
        cache = [StaticCache(ROOM) for _ in module.layers] if layer is STACK else StaticCache(ROOM)
        own = cache[0] if isinstance(cache, list) else cache
        for length in (3, 1, 1, 2):
            mask = torch.empty(1, ROOM, dtype=torch.bool, device="cuda")
            x = add(torch.empty(B, length, E, device="cuda"), q_offset=own.length)
            out = module(x, attn_mask=mask, is_causal=True, cache=cache)
            assert (out.device.type, tuple(out.shape)) == ("cuda", (B, length, E))
        own.reorder(torch.empty(B, dtype=torch.int64, device="cuda"))
        own.truncate(2)


# Rotary tables


class Operations(TorchDispatchMode):
    """Record the operations: their names and, of those that make tensors, their arguments, with shapes for tensors.

    On the CPU, the cache also reads its length, to say if there is no room; on CUDA it does not (see above).
    """

    def __init__(self):
        super().__init__()
        self.names, self.calls = [], []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        self.names.append(operation.overloadpacket.__name__)
        if any(isinstance(x, torch.Tensor) for x in tree_leaves(result)):
            shapes = tree_map_only(torch.Tensor, lambda x: tuple(x.shape), (args, kwargs, result))
            self.calls.append((operation, shapes))
        return result


@pytest.mark.parametrize("name", ["encoder with rope", "decoder with rope"])
def test_a_stack_makes_its_rotary_tables_once_a_pass(name):
    layer = EVERY[name]
    module, inputs = layer.build(Torch("cpu")), layer.inputs(Torch("cpu"), length=LENGTH)
    x, memory = inputs.pop("query"), inputs
    cache = [StaticCache(ROOM) for _ in module.layers]
    for a, b in ((0, 3), (3, 4), (4, 6)):
        with Operations() as operations:
            module(x[:, a:b], **memory, cache=cache)
        assert operations.names.count("cos") == operations.names.count("sin") == 1


def test_a_compiled_stack_makes_its_rotary_tables_once_a_pass():
    module, x = STACK.build(Torch("cpu")), states(STACK, Torch("cpu"))
    cache, graphs = [StaticCache(ROOM) for _ in module.layers], []

    def keep(graph, _):
        graphs.append(graph.graph)
        return graph

    torch._dynamo.reset()
    module(x[:, :3], is_causal=True, cache=cache)
    torch.compile(module, fullgraph=True, dynamic=False, backend=keep)(x[:, 3:4], is_causal=True, cache=cache)
    (graph,) = graphs
    assert [sum(node.target is made for node in graph.nodes) for made in (torch.cos, torch.sin)] == [1, 1]


def test_each_layer_rotates_by_its_own_cache():
    module, x = STACK.build(Torch("cpu")), states(STACK, Torch("cpu"))
    caches = [[StaticCache(ROOM) for _ in module.layers] for _ in range(2)]
    for cache in caches:
        module(x[:, :5], is_causal=True, cache=cache)
        cache[0].truncate(2)
    step = x[:, 5:7]
    together = module(step, is_causal=True, cache=caches[0])
    for layer, own in zip(module.layers, caches[1], strict=True):
        step = layer(step, is_causal=True, cache=own)
    torch.testing.assert_close(together, module.norm(step))


def test_a_layer_whose_cache_is_new_begins_at_0():
    module, x = STACK.build(Torch("cpu")), states(STACK, Torch("cpu"))
    caches = [[StaticCache(ROOM) for _ in module.layers] for _ in range(2)]
    for cache in caches:
        module(x[:, :5], is_causal=True, cache=cache)
        cache[1] = StaticCache(ROOM)
    step = x[:, 5:7]
    together = module(step, is_causal=True, cache=caches[0])
    for layer, own in zip(module.layers, caches[1], strict=True):
        step = layer(step, is_causal=True, cache=own)
    torch.testing.assert_close(together, module.norm(step))


# CUDA graphs


@pytest.mark.parametrize("options", [*ATTENTIONS.values(), {}], ids=[*ATTENTIONS, "stack"])
def test_no_operation_of_a_step_depends_on_the_position(options):
    """A CUDA graph repeats the operations, sizes, numbers and addresses of the step that was captured."""
    layer = Layer("MultiHeadAttention", (E, HEADS), options) if options else STACK
    module, x = layer.build(Torch("cpu")), states(layer, Torch("cpu"))
    cache = StaticCache(ROOM) if options else [StaticCache(ROOM) for _ in module.layers]
    module(x[:, :3], is_causal=True, cache=cache)
    seen = []
    for token in x[:, 3:7].split(1, dim=1):
        with Operations() as operations:
            module(token, is_causal=True, cache=cache)
        caches = cache if isinstance(cache, list) else [cache]
        seen.append((operations.calls, [place(kept) for c in caches for kept in (c._keys, c._values, c.length)]))
    assert all(step == seen[0] for step in seen)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("options", [*ATTENTIONS.values(), {}], ids=[*ATTENTIONS, "stack"])
def test_on_cuda_a_step_is_captured_and_replayed(options, dtype):
    layer = Layer("MultiHeadAttention", (E, HEADS), options) if options else STACK
    module, steps = layer.build(Torch("cuda"), dtype), 16
    x = layer.inputs(Torch("cuda"), dtype, length=4 + steps)["query"]
    cache = StaticCache(4 + steps) if options else [StaticCache(4 + steps) for _ in module.layers]
    exact = decoded(module, x, [4] + [1] * steps, attnlib.torch.KVCache() if options else module.new_cache())
    caches, token = cache if isinstance(cache, list) else [cache], x[:, 4:5].clone()

    def step():
        return module(token, is_causal=True, cache=cache)

    module(x[:, :4], is_causal=True, cache=cache)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # libraries allocate their memory at the first call, which cannot be captured
        step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = step()
    for own in caches:
        own.truncate(4)
    for t in range(steps):
        token.copy_(x[:, 4 + t : 5 + t])
        graph.replay()
        tolerance = 1e-4 if dtype == "float32" else 5e-2
        torch.testing.assert_close(out, exact[1 + t], atol=tolerance, rtol=tolerance)
    assert {int(own.length) for own in caches} == {4 + steps}


# Truncating and reordering


@pytest.mark.parametrize("kept", [0, 2, 5])
def test_what_is_truncated_is_forgotten(backend, kept):
    module, x, cache = PLAIN.build(backend), states(PLAIN, backend), StaticCache(ROOM)
    module(x[:, :3], is_causal=True, cache=cache)
    module(-5 * x[:, 3:7], is_causal=True, cache=cache)
    cache.truncate(min(kept, 3))
    out = module(x[:, min(kept, 3) :], is_causal=True, cache=cache)
    assert_allclose(backend.numpy(out), backend.numpy(module(x, is_causal=True))[:, min(kept, 3) :], atol=1e-10)


def test_beams_that_are_reordered_decode_as_if_they_had_been_alone(backend):
    module, x, cache = PLAIN.build(backend), states(PLAIN, backend), StaticCache(ROOM)
    whole, index = backend.numpy(module(x, is_causal=True)), backend.array(np.array([1, 0]), "int64")
    outs = decoded(module, x[:, :4], [2, 2], cache)
    before = place(cache._keys)
    cache.reorder(index)
    out = module(x[index][:, 4:], is_causal=True, cache=cache)
    assert_allclose(backend.numpy(out), whole[[1, 0], 4:], atol=1e-10)
    assert_allclose(joined(backend, outs), whole[:, :4], atol=1e-10)
    assert place(cache._keys) == before


def test_the_batch_keeps_its_size(backend):
    cache = StaticCache(ROOM)
    cache.append(*pair(backend, 0, 3))
    with pytest.raises(ValueError, match=f"index names 3 sequences, but there is memory for {B}"):
        cache.reorder(backend.array(np.array([0, 0, 1]), "int64"))
    with pytest.raises(TypeError, match="array of integers"):
        cache.reorder([0, 1])


# What is refused


# On CUDA, asking how many positions are held would wait; torch's own error, about an index, leaves the device unusable.
known_length = pytest.mark.parametrize("backend", [Numpy(), Torch("cpu")], ids=str)


@known_length
def test_what_does_not_fit_is_refused_and_nothing_is_added(backend):
    module, x, cache = PLAIN.build(backend), states(PLAIN, backend), StaticCache(5)
    with pytest.raises(ValueError, match=r"6 more positions do not fit: the cache holds 0 of 5\. Create it"):
        module(x[:, :6], is_causal=True, cache=cache)
    outs = decoded(module, x[:, :4], [3, 1], cache)
    for n, length in ((2, 4), (9, 4), (1, 5)):
        if length == 5:
            outs.append(module(x[:, 4:5], cache=cache))
        with pytest.raises(ValueError, match=rf"{n} more positions do not fit: the cache holds {length} of 5"):
            module(x[:, :n], is_causal=True, cache=cache)
        assert int(cache.length) == length
    assert_allclose(joined(backend, outs), backend.numpy(module(x, is_causal=True))[:, :5], atol=1e-10)


def test_in_compiled_code_torch_reports_the_index_that_does_not_fit():
    module, x, cache = PLAIN.build(Torch("cpu")), states(PLAIN, Torch("cpu")), StaticCache(3)
    module(x[:, :3], is_causal=True, cache=cache)
    torch._dynamo.reset()
    step = torch.compile(module, fullgraph=True, dynamic=False, backend="eager")
    with pytest.raises((IndexError, RuntimeError), match=r"index"):
        step(x[:, 3:4], cache=cache)
    assert int(cache.length) == 3


def test_gradients_are_refused_with_the_way_out():
    module, x, cache = PLAIN.build(Torch("cpu")), states(PLAIN, Torch("cpu")), StaticCache(ROOM)
    with torch.enable_grad(), pytest.raises(RuntimeError, match=r"torch\.no_grad\(\) or torch\.inference_mode\(\), or"):
        module(x, is_causal=True, cache=cache)
    assert cache.length == 0
    with torch.enable_grad():
        module.requires_grad_(False)(x, is_causal=True, cache=cache)
    assert cache.length == LENGTH


@known_length
def test_it_is_not_truncated_to_more_than_it_holds(backend):
    cache = StaticCache(ROOM)
    cache.append(*pair(backend, 0, 3))
    with pytest.raises(ValueError, match="length is 4, but the cache holds 3"):
        cache.truncate(4)
    assert int(cache.length) == 3


@pytest.mark.parametrize(("length", "error"), [(-1, ValueError), (ROOM + 1, ValueError), (1.0, TypeError)])
def test_it_is_not_truncated_to_what_it_never_held(backend, length, error):
    cache = StaticCache(ROOM)
    cache.append(*pair(backend, 0, 3))
    with pytest.raises(error, match=str(length)):
        cache.truncate(length)
    assert int(cache.length) == 3


@pytest.mark.parametrize(("length", "error"), [(0, ValueError), (2.0, TypeError), (None, TypeError)])
def test_its_size_is_a_whole_number(length, error):
    with pytest.raises(error, match=f"max_cache_len is {length}"):
        StaticCache(length)


def test_after_an_error_it_is_as_it_was(backend):
    cache = StaticCache(ROOM)
    key, value = pair(backend, 3, 4)
    for held in (0, 3):
        for wrong in ((key[..., :-1], value), (key, value[:1]), (key, value[..., 0, :])):
            if held or wrong[0].shape[:-1] != wrong[1].shape[:-1]:
                with pytest.raises(ValueError, match="shape"):
                    cache.append(*wrong)
        assert int(cache.length) == held
        if not held:
            cache.append(*pair(backend, 0, 3))
    keys, _ = cache.append(key, value)
    assert_array_equal(backend.numpy(keys)[..., :4, :], backend.numpy(pair(backend, 0, 4)[0]))


def test_an_offset_that_is_a_tensor_gives_what_a_number_gives():
    x, offset = torch.ones(1), torch.tensor(3)
    for made in (
        lambda n: attnlib.causal_mask(2, 7, q_offset=n, like=x),
        lambda n: attnlib.window_mask(2, 7, 1, num_sink_tokens=1, q_offset=n, like=x),
        lambda n: attnlib.alibi_bias(3, 2, 7, q_offset=n, like=x),
        lambda n: attnlib.relative_buckets(2, 7, q_offset=n, like=x),
    ):
        assert torch.equal(made(offset), made(3))
        for wrong in (torch.tensor(3.0), torch.tensor([3]), torch.tensor(True)):
            with pytest.raises(TypeError, match="q_offset"):
                made(wrong)
    with pytest.raises(TypeError, match="pass a tensor on the same device as like"):
        attnlib.causal_mask(2, q_offset=offset)


def test_both_libraries_of_layers_have_it():
    assert attnlib.numpy.StaticCache is attnlib.torch.StaticCache is StaticCache
    assert issubclass(StaticCache, KVCache)
