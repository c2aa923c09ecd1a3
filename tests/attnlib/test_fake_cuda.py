"""What can be tested without a GPU: results are on the device of the inputs, and nothing waits for a value."""

import pytest
import torch
from backends import CALLS, D_V, B, D, H, S, T
from fake_cuda import Made, fake_cuda
from modules import EVERY, HEADS, E, leaves
from torch import nn
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

import attnlib
import attnlib.torch
from attnlib import scaled_dot_product_attention


def cuda(*shape, dtype=torch.float32):
    """Return a fake tensor; call this inside `fake_cuda`."""
    return torch.empty(shape, dtype=dtype, device="cuda")


def is_on_cuda(result, dtype=None):
    """Tell whether a result, which may be nested, holds tensors, all on CUDA and with this dtype."""
    tensors = leaves(result)
    return bool(tensors) and all(x.device.type == "cuda" and dtype in (None, x.dtype) for x in tensors)


# The fake device itself

WAITS = {
    "item": lambda x: x.sum().item(),
    "bool": lambda x: bool((x > 0).all()),
    "boolean index": lambda x: x[x > 0],
    "a tensor of the CPU": lambda x: x + torch.zeros(T, D),
    "a number of the CPU": lambda x: x * torch.tensor(2.0),
    "a result of the CPU": lambda x: torch.ones(x.shape),
    "a copy to the CPU": lambda x: x.cpu(),
}


@pytest.mark.parametrize("fault", WAITS.values(), ids=WAITS)
def test_a_wait_or_a_tensor_of_the_cpu_is_noticed(fault):
    expected = (DataDependentOutputException, DynamicOutputShapeException, AssertionError)
    with fake_cuda(), pytest.raises(expected):
        fault(cuda(T, D))


# Functions


def loaded(x):
    """The parameters of torch's attention, loaded into ours."""
    source = nn.MultiheadAttention(E, HEADS, device=x.device)
    with torch.device(x.device):
        return list(attnlib.load_weights(attnlib.torch.MultiHeadAttention(E, HEADS), source).state_dict().values())


WITHOUT_FLOATS = {  # the functions that are not in CALLS: arrays of floats do not determine their results
    "causal_mask": lambda x: attnlib.causal_mask(T, S, q_offset=2, like=x),
    "window_mask": lambda x: attnlib.window_mask(T, S, 2, 1, q_offset=2, like=x),
    "padding_mask": lambda x: attnlib.padding_mask(x[0].to(torch.int64), S),
    "combine_masks": lambda x: attnlib.combine_masks(x > 0, x, x[:1] < 1),
    "sinusoidal_positions": lambda x: attnlib.sinusoidal_positions(T, 2 * D, like=x),
    "alibi_slopes": lambda x: attnlib.alibi_slopes(H, like=x),
    "alibi_bias": lambda x: attnlib.alibi_bias(H, T, S, q_offset=2, like=x),
    "relative_buckets": lambda x: attnlib.relative_buckets(T, S, q_offset=2, like=x),
    "load_weights": loaded,
    "RopeScaling": lambda x: list(attnlib.rope_tables(x[0], 4, scaling=attnlib.RopeScaling(8.0))),
}
WITHOUT_ARRAYS = {"generate", "generate_speculatively"}  # each token that they yield is a number, for which they wait


def test_every_public_function_is_called_here():
    def is_called(name):
        return any(what == name or what.startswith(f"{name}_") for what in CALLS | WITHOUT_FLOATS)

    assert {name for name in attnlib.__all__ if not is_called(name)} == WITHOUT_ARRAYS


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_results_stay_on_cuda_and_nothing_waits(call):
    for dtype in (torch.bfloat16, torch.float32):
        with fake_cuda():
            arguments = {name: cuda(*shape, dtype=dtype) for name, shape in call.arguments.items()}
            assert is_on_cuda(on_cuda(call)(**arguments), dtype)


def on_cuda(call):
    """Return the same call, with lists of numbers in its options as tensors, because lists must be copied to a GPU."""
    lists = {name: cuda(len(x), dtype=torch.int64) for name, x in call.options.items() if isinstance(x, list)}
    return call._replace(options=call.options | lists)


@pytest.mark.parametrize("call", WITHOUT_FLOATS.values(), ids=WITHOUT_FLOATS)
def test_what_is_made_for_cuda_is_made_there(call):
    with fake_cuda():
        assert is_on_cuda(call(cuda(T, D)))


OPTIONS = {
    "plain": {},
    "causal": {"is_causal": True},
    "causal, the last query at the last key": {"is_causal": True, "q_offset": S - T},
    "causal, earlier": {"is_causal": True, "q_offset": -1},
    "negative scale": {"is_causal": True, "scale": -0.3},
    "window": {"window": (1, 2)},
    "window, causal": {"window": (2, None), "is_causal": True, "q_offset": 1},
    "bool mask": {"attn_mask": torch.bool},
    "float mask": {"attn_mask": torch.float32},
    "bool mask, causal": {"attn_mask": torch.bool, "is_causal": True, "q_offset": 2},
    "dropout": {"dropout_p": 0.5},
    "softcap": {"softcap": 3.0},
    "dropout, weights": {"dropout_p": 0.5, "return_weights": True},
    "lse": {"return_lse": True, "is_causal": True},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("H_key", [H, 1], ids=["equal heads", "grouped"])
def test_attention_stays_on_cuda_under_every_option(options, H_key):
    for queries, keys in ((T, S), (1, S), (T, 0)):
        with fake_cuda():
            q, k, v = cuda(B, H, queries, D), cuda(B, H_key, keys, D), cuda(B, H_key, keys, D_V)
            given = {name: cuda(queries, keys, dtype=x) if isinstance(x, torch.dtype) else x
                     for name, x in options.items()}  # fmt: skip
            assert is_on_cuda(scaled_dot_product_attention(q, k, v, **given, enable_gqa=True), torch.float32)


MANY, MANY_KEYS = 5003, 7001  # more than two blocks of queries on a GPU, and of scores
LONG = {
    "window": {"window": (300, None), "is_causal": True},
    "window on both sides, later": {"window": (300, 20), "q_offset": 1000},
    "causal, the last query at the last key": {"is_causal": True, "q_offset": MANY_KEYS - MANY},
    "causal, queries after the last key": {"is_causal": True, "q_offset": MANY_KEYS - 2},
    "window past all keys": {"window": (1, 0), "q_offset": 2 * MANY_KEYS},
    "window, bool mask": {"window": (300, 20), "attn_mask": torch.bool},
    "causal, float mask": {"is_causal": True, "q_offset": 1, "attn_mask": torch.float32},
    "window, softcap": {"window": (300, 20), "softcap": 3.0},
    "causal, softcap": {"is_causal": True, "q_offset": MANY_KEYS - MANY, "softcap": 3.0},
    "causal, lse": {"is_causal": True, "q_offset": MANY_KEYS - MANY, "return_lse": True},
    "window, lse": {"window": (300, 20), "return_lse": True},
}


GROUPED = ("window", "causal, float mask", "window, softcap", "causal, lse")  # one for each way of making blocks


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "H_key"),
    [
        *(pytest.param(options, H, id=what) for what, options in LONG.items()),
        *(pytest.param(LONG[what], 1, id=f"grouped, {what}") for what in GROUPED),
    ],
)
def test_many_queries_stay_on_cuda_and_get_no_mask_of_all_pairs(options, H_key):
    with fake_cuda():
        q, k, v = cuda(1, H, MANY, D), cuda(1, H_key, MANY_KEYS, D), cuda(1, H_key, MANY_KEYS, D_V)
        given = {name: cuda(MANY, MANY_KEYS, dtype=x) if isinstance(x, torch.dtype) else x
                 for name, x in options.items()}  # fmt: skip
        with Made() as made:
            results = scaled_dot_product_attention(q, k, v, **given, enable_gqa=True)
    assert is_on_cuda(results, torch.float32)
    assert 0 < made.largest(torch.bool) < MANY * MANY_KEYS / 2


# Layers


def built(layer):
    """Return the layer on CUDA, and its inputs; call this inside `fake_cuda`."""
    with torch.device("cuda"):
        module = layer.plain(attnlib.torch)
    sequence = "query" if layer.attends else "x"
    return module, {sequence: cuda(B, T, E)} | ({"key": cuda(B, S, E)} if layer.decodes else {})


CACHED = ("attention with rope and grouped queries", "block", "encoder with rope", "decoder block", "decoder")


def test_every_layer_is_called_here():
    called = {layer.name for layer in EVERY.values()} | {
        "BertEncoder",
        "CausalLM",
        "CausalLMConfig",
        "KVCache",
        "MemoryCache",
        "SlidingWindowCache",
        "StaticCache",
    }
    assert set(attnlib.torch.__all__) <= called


@pytest.mark.slow
@pytest.mark.parametrize("layer", EVERY.values(), ids=EVERY)
def test_layers_stay_on_cuda_and_nothing_waits(layer):
    with fake_cuda():
        module, inputs = built(layer)
        calls = [{}]
        if layer.attends:
            calls += [{"is_causal": True}, {"need_weights": True}, {"attn_mask": cuda(T, T, dtype=torch.bool)}]
        for options in calls:
            assert is_on_cuda(module(**inputs, **options))


@pytest.mark.parametrize("positions", [{}, {"rope_base": None, "max_positions": T}], ids=["rope", "learned"])
def test_a_language_model_stays_on_cuda_and_nothing_waits(positions):
    sizes = {"vocab_size": 23, "embed_dim": E, "num_layers": 2, "num_heads": HEADS, "ff_dim": 29}
    with fake_cuda():
        with torch.device("cuda"):
            model = attnlib.torch.CausalLM(attnlib.torch.CausalLMConfig(**sizes, windows=(3, None), **positions))
        tokens = cuda(B, T, dtype=torch.int64)
        assert is_on_cuda(model(tokens, attnlib.padding_mask(tokens[:, 0], T), need_weights=True))
        assert is_on_cuda(model(tokens[:, :2], cache=model.new_cache(), logits_to_keep=1))


def test_bert_stays_on_cuda():
    with fake_cuda():
        with torch.device("cuda"):
            bert = attnlib.torch.BertEncoder(23, E, HEADS, 29, 2, max_length=T)
        ids = cuda(B, T, dtype=torch.int32)
        assert is_on_cuda(bert(ids, attnlib.padding_mask(ids[:, 0], T), need_weights=True))


@pytest.mark.parametrize("what", CACHED)
def test_caches_stay_on_cuda_and_nothing_waits(what):
    with fake_cuda():
        module, inputs = built(EVERY[what])
        cache = module.new_cache() if hasattr(module, "new_cache") else attnlib.torch.KVCache()
        for _ in range(2):
            assert is_on_cuda(module(**inputs, is_causal=True, cache=cache))
        one = {name: x[:1] for name, x in inputs.items()} | {"query": cuda(1, 1, E)}
        for own in cache if isinstance(cache, list) else [cache]:
            own.reorder(cuda(1, dtype=torch.int64))
            own.truncate(T)
        assert is_on_cuda(module(**one, is_causal=True, cache=cache))


@pytest.mark.parametrize("sinks", [0, 2])
def test_a_sliding_window_cache_stays_on_cuda_and_nothing_waits(sinks):
    with fake_cuda():
        module, inputs = built(EVERY["encoder with rope"])
        cache = [attnlib.torch.SlidingWindowCache(3, num_sink_tokens=sinks) for _ in module.layers]
        for length in (T, T, 1, 1):
            mask = cuda(1, cache[0].length + length, dtype=torch.bool)
            assert is_on_cuda(module(inputs["query"][:, :length], attn_mask=mask, is_causal=True, cache=cache))
        for own in cache:
            own.reorder(cuda(B, dtype=torch.int64))
        assert is_on_cuda(module(inputs["query"][:, :1], cache=cache))


OPTIONAL = {
    "window": {"window": (2, 0)},
    "window and sinks": {"window": (2, 0), "num_sink_tokens": 1},
    "softcap and scale": {"softcap": 3.0, "scale": 0.3},
    "alibi": {"attn_bias": attnlib.alibi_bias},
    "dropout": {"dropout": 0.5},
}


@pytest.mark.parametrize("options", OPTIONAL.values(), ids=OPTIONAL)
def test_attention_layers_stay_on_cuda_under_every_option(options):
    with fake_cuda():
        with torch.device("cuda"):
            module = attnlib.torch.MultiHeadAttention(E, HEADS, **options)
        module.ablate(1, 2)
        assert is_on_cuda(module(cuda(B, T, E), cuda(B, S, E), is_causal=True, need_weights=True))
