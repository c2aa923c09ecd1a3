"""load_weights: what one module has learned, another knows; torch's own modules are the measure of ours."""

import copy
import warnings

import numpy as np
import pytest
import torch
from backends import B, S, T, Torch, dtype_name
from language_models import config
from modules import EVERY, FF, HEADS, KV, LAYERS, MHA, ROPE, E, Layer, library, on_device
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn

import attnlib.numpy
import attnlib.torch
from attnlib import RopeScaling, load_weights

every_layer = pytest.mark.parametrize("layer", EVERY.values(), ids=EVERY)
every_dtype = pytest.mark.parametrize("dtype", ["float32", "float64"])
TOLERANCE = {"float32": 1e-5, "float64": 1e-12}
LOOKAHEAD = torch.triu(torch.ones(T, T, dtype=torch.bool), 1)  # torch's polarity: True = must not attend
PADDED = torch.arange(T)[None, :] >= torch.tensor([[T], [3]])  # the second sequence has three real positions
PADDED_MEMORY = torch.arange(S)[None, :] >= torch.tensor([[4], [S]])


def arrays(backend, module):
    """The parameters by name, as float64 NumPy arrays."""
    return {name: backend.numpy(x) for name, x in module.state_dict().items()}


def same(backend, ours, theirs, dtype):
    """The result is torch's, to the rounding of the dtype."""
    assert dtype_name(ours) == dtype
    theirs = theirs.detach().double().numpy()
    assert_allclose(backend.numpy(ours), theirs, rtol=0, atol=TOLERANCE[dtype] * np.abs(theirs).max())


def random(module, dtype):
    """The module with random numbers for all parameters, norms and biases too, evaluating."""
    torch.manual_seed(1)
    module = module.to(getattr(torch, dtype)).eval()
    for name, p in module.named_parameters():
        nn.init.normal_(p.data, mean=float("norm" in name and "weight" in name), std=p.shape[-1] ** -0.5)
    return module


def sequences(dtype, *lengths):
    """A batch of sequences of each length, as torch tensors."""
    torch.manual_seed(2)
    return [torch.randn(B, n, E, dtype=torch.float64).to(getattr(torch, dtype)) for n in lengths]


def given(backend, *tensors):
    """Tensors as arrays of the backend, of the same dtype."""
    return [backend.array(x.tolist(), dtype_name(x)) for x in tensors]


def built(backend, layer, source):
    """A layer with the source's weights, in its dtype and on the backend's device."""
    module = layer.plain(library(backend))
    if isinstance(backend, Torch):
        module = module.to(backend.device, next(iter(source.state_dict().values())).dtype).eval()
    return load_weights(module, source)


# From one of ours to another


@every_layer
@every_dtype
def test_weights_go_from_numpy_to_torch_and_back_unchanged(layer, dtype):
    source = layer.plain(attnlib.numpy)
    source.load_state_dict({name: x.astype(dtype) for name, x in layer.state().items()})
    there = load_weights(layer.plain(attnlib.torch).to(getattr(torch, dtype)), source)
    back = load_weights(layer.plain(attnlib.numpy), there)
    assert list(back.state_dict()) == list(source.state_dict())
    for name, x in source.state_dict().items():
        assert_array_equal(there.state_dict()[name].numpy(), x)
        assert_array_equal(back.state_dict()[name], x)
        assert back.state_dict()[name].dtype == there.state_dict()[name].numpy().dtype == np.dtype(dtype)


@every_layer
def test_a_module_and_its_state_dict_are_the_same_source(backend, layer):
    source, name = layer.build(backend), layer.name
    by_module, by_state = (
        load_weights(on_device(backend, layer.plain(library(backend))), s) for s in (source, source.state_dict())
    )
    wanted = {n: np.float32(x) for n, x in layer.state().items()} if isinstance(backend, Torch) else layer.state()
    for module in (by_module, by_state):
        assert arrays(backend, module).keys() == wanted.keys(), name
        for n, x in wanted.items():
            got = backend.numpy(module.state_dict()[n])
            assert_array_equal(got.astype(x.dtype), x)


def test_the_module_itself_is_returned(backend):
    layer = EVERY["block"]
    module = layer.build(backend)
    assert load_weights(module, layer.build(backend)) is module


def test_the_two_share_no_memory(backend):
    layer = EVERY["attention"]
    source = layer.build(backend)
    module = load_weights(layer.build(backend), source)
    for x in source.state_dict().values():
        x[...] = 0.0
    for name, x in layer.state().items():
        assert_array_equal(backend.numpy(module.state_dict()[name]), x)


def test_from_torch_to_numpy_shares_no_memory():
    layer = EVERY["attention"]
    source = layer.build(Torch("cpu"))
    module = load_weights(layer.plain(attnlib.numpy), source)
    with torch.no_grad():
        source.q_proj.weight.zero_()
    assert_array_equal(module.q_proj.weight, layer.state()["q_proj.weight"])


def test_the_source_keeps_what_it_had(backend):
    for source in (EVERY["decoder"].build(backend), dict(EVERY["decoder"].build(backend).state_dict())):
        state = source if isinstance(source, dict) else source.state_dict()
        before = {name: backend.numpy(x).copy() for name, x in state.items()}
        load_weights(EVERY["decoder"].plain(library(backend)), source)
        assert list(state) == list(before)
        for name, x in before.items():
            assert_array_equal(backend.numpy(state[name]), x)


def test_numpy_takes_the_source_s_dtype_and_torch_keeps_its_own():
    layer = EVERY["block"]
    source = layer.build(Torch("cpu"), "float64")
    into_numpy = load_weights(layer.plain(attnlib.numpy), source)
    assert {x.dtype for x in into_numpy.state_dict().values()} == {np.dtype("float64")}
    into_torch = load_weights(layer.plain(attnlib.torch), into_numpy)
    assert {x.dtype for x in into_torch.state_dict().values()} == {torch.float32}


def test_parameters_of_torch_stay_the_same_objects_so_that_an_optimiser_goes_on():
    layer = EVERY["block"]
    module = layer.plain(attnlib.torch)
    before = list(module.parameters())
    load_weights(module, layer.build(Torch("cpu")))
    assert all(a is b and a.requires_grad for a, b in zip(before, module.parameters(), strict=True))


# From torch's own modules: their outputs are ours

MASKS = {
    "no mask": ({}, lambda backend: {}),
    "a bool mask": (
        {"attn_mask": torch.arange(T * S).reshape(T, S) % 3 == 1},
        lambda backend: {"attn_mask": backend.array((np.arange(T * S).reshape(T, S) % 3 != 1), "bool")},
    ),
    "padding": (
        {"key_padding_mask": PADDED_MEMORY},
        lambda backend: {"attn_mask": backend.array(~PADDED_MEMORY[:, None, None, :].numpy(), "bool")},
    ),
}


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("what", MASKS)
@every_dtype
def test_attention_is_that_of_torch_s_module(backend, bias, what, dtype):
    theirs = random(nn.MultiheadAttention(E, HEADS, bias=bias, batch_first=True), dtype)
    ours = built(backend, Layer("MultiHeadAttention", (E, HEADS), {"bias": bias}), theirs)
    q, k, v = sequences(dtype, T, S, S)
    their_mask, our_mask = MASKS[what]
    expected, weights = theirs(q, k, v, average_attn_weights=False, **their_mask)
    out, our_weights = ours(*given(backend, q, k, v), **our_mask(backend), need_weights=True)
    same(backend, out, expected, dtype)
    same(backend, our_weights, weights, dtype)
    same(backend, ours(*given(backend, q, k, v), **our_mask(backend)), expected, dtype)


@every_dtype
def test_causal_attention_and_a_float_mask_are_torch_s(backend, dtype):
    theirs = random(nn.MultiheadAttention(E, HEADS, batch_first=True), dtype)
    ours = built(backend, Layer("MultiHeadAttention", (E, HEADS)), theirs)
    (x,) = sequences(dtype, T)
    (z,) = given(backend, x)
    expected, weights = theirs(x, x, x, attn_mask=LOOKAHEAD, average_attn_weights=False)
    for mine, torchs in zip(ours(z, is_causal=True, need_weights=True), (expected, weights), strict=True):
        same(backend, mine, torchs, dtype)
    bias = sequences(dtype, T)[0][0, :, :T]
    expected = theirs(x, x, x, attn_mask=bias)[0]
    same(backend, ours(z, attn_mask=given(backend, bias)[0]), expected, dtype)


def test_matrices_of_their_own_for_queries_keys_and_values_are_taken_too(backend):
    # nn.MultiheadAttention keeps q_proj_weight, k_proj_weight, v_proj_weight where kdim or vdim is not embed_dim.
    packed = random(nn.MultiheadAttention(E, HEADS, batch_first=True), "float64")
    state = dict(packed.state_dict())
    for name, part in zip(("q", "k", "v"), state.pop("in_proj_weight").chunk(3), strict=True):
        state[f"{name}_proj_weight"] = part
    apart = nn.MultiheadAttention(E, HEADS, kdim=E + 1, vdim=E + 2, batch_first=True)
    assert set(state) == set(apart.state_dict())  # those are torch's names
    a = arrays(backend, load_weights(EVERY["attention"].build(backend), state))
    b = arrays(backend, load_weights(EVERY["attention"].build(backend), packed))
    assert a.keys() == b.keys()
    for name in a:
        assert_array_equal(a[name], b[name])


def test_keys_of_another_width_do_not_fit(backend):
    theirs = nn.MultiheadAttention(E, HEADS, kdim=E + 1, vdim=E + 2)
    with pytest.raises((ValueError, RuntimeError), match="k_proj"):
        load_weights(EVERY["attention"].build(backend), theirs)


def their_layer(kind, norm, activation):
    """A layer or a stack of torch's, and ours."""
    options = {"dropout": 0.0, "activation": activation, "batch_first": True, "norm_first": norm == "pre"}
    ours = {"norm": norm, "activation": activation}
    last = nn.LayerNorm(E) if norm == "pre" else None
    if kind == "TransformerBlock":
        return nn.TransformerEncoderLayer(E, HEADS, FF, **options), Layer(kind, (E, HEADS, FF), ours)
    if kind == "DecoderBlock":
        return nn.TransformerDecoderLayer(E, HEADS, FF, **options), Layer(kind, (E, HEADS, FF), ours)
    if kind == "Encoder":
        layer = nn.TransformerEncoderLayer(E, HEADS, FF, **options)
        stack = nn.TransformerEncoder(layer, LAYERS, last, enable_nested_tensor=False)
    else:
        stack = nn.TransformerDecoder(nn.TransformerDecoderLayer(E, HEADS, FF, **options), LAYERS, last)
    return stack, Layer(kind, (E, HEADS, FF, LAYERS), ours)


in_every_way = pytest.mark.parametrize(
    ("norm", "activation", "dtype"),
    [("pre", "relu", "float64"), ("post", "gelu", "float64"), ("pre", "gelu", "float32"), ("post", "relu", "float32")],
)


@pytest.mark.parametrize("kind", ["TransformerBlock", "Encoder"])
@in_every_way
def test_blocks_and_encoders_are_torch_s(backend, kind, norm, activation, dtype):
    theirs, layer = their_layer(kind, norm, activation)
    theirs = random(theirs, dtype)
    ours = built(backend, layer, theirs)
    (x,) = sequences(dtype, T)
    (z,) = given(backend, x)
    mask = "src_mask" if kind == "TransformerBlock" else "mask"
    same(backend, ours(z), theirs(x), dtype)
    same(backend, ours(z, is_causal=True), theirs(x, **{mask: LOOKAHEAD}), dtype)
    real = backend.array(~PADDED[:, None, None, :].numpy(), "bool")
    same(backend, ours(z, attn_mask=real), theirs(x, src_key_padding_mask=PADDED), dtype)
    same(backend, ours(z, attn_mask=real, need_weights=True)[0], theirs(x, src_key_padding_mask=PADDED), dtype)


@pytest.mark.parametrize("kind", ["DecoderBlock", "Decoder"])
@in_every_way
def test_decoders_are_torch_s(backend, kind, norm, activation, dtype):
    theirs, layer = their_layer(kind, norm, activation)
    theirs = random(theirs, dtype)
    ours = built(backend, layer, theirs)
    x, memory = sequences(dtype, T, S)
    z, kept = given(backend, x, memory)
    real = backend.array(~PADDED_MEMORY[:, None, None, :].numpy(), "bool")
    same(backend, ours(z, kept), theirs(x, memory, tgt_mask=LOOKAHEAD), dtype)
    same(backend, ours(z, kept, is_causal=False), theirs(x, memory), dtype)
    expected = theirs(x, memory, tgt_mask=LOOKAHEAD, memory_key_padding_mask=PADDED_MEMORY)
    same(backend, ours(z, kept, memory_mask=real), expected, dtype)
    own = backend.array(~PADDED[:, None, None, :].numpy(), "bool")
    expected = theirs(x, memory, tgt_mask=LOOKAHEAD, tgt_key_padding_mask=PADDED)
    same(backend, ours(z, kept, attn_mask=own), expected, dtype)


@pytest.mark.parametrize("kind", ["TransformerBlock", "Encoder", "DecoderBlock", "Decoder"])
def test_the_gradients_are_torch_s(kind):
    theirs, layer = their_layer(kind, "pre", "gelu")
    theirs = random(theirs, "float64")
    ours = built(Torch("cpu"), layer, theirs)
    x, memory = sequences("float64", T, S)
    grads = []
    for module, options in ((ours, {"is_causal": False}), (theirs, {})):
        z = x.clone().requires_grad_()
        out = module(z, memory, **options) if layer.decodes else module(z)
        (out * torch.arange(out.numel()).reshape(out.shape).sin()).sum().backward()
        grads.append((z.grad, module))
    torch.testing.assert_close(grads[0][0], grads[1][0], rtol=1e-9, atol=1e-11)
    # The weights' gradients move as the weights do.
    expected = {name: p.grad for name, p in theirs.named_parameters()}
    carried = load_weights(copy.deepcopy(ours), expected)
    for (name, p), wanted in zip(ours.named_parameters(), carried.parameters(), strict=True):
        torch.testing.assert_close(p.grad, wanted.data, rtol=1e-9, atol=1e-11, msg=lambda m, name=name: f"{name}: {m}")


def test_in_training_too_torch_s_module_is_ours():
    theirs, layer = their_layer("Encoder", "post", "relu")
    theirs = random(theirs, "float64")
    ours = built(Torch("cpu"), layer, theirs)
    (x,) = sequences("float64", T)
    torch.testing.assert_close(ours.train()(x), theirs.train()(x), rtol=1e-10, atol=1e-12)


# A source that computes differently is refused

ENCODER = EVERY["encoder"]
SCALED = {"rope": ROPE, "rope_scaling": RopeScaling(8.0)}
DIFFERENT = {
    "heads": ("attention", Layer("MultiHeadAttention", (E, 4)), "num_heads is 6 in the module, but 4 in the source"),
    "grouped heads": (
        "attention with grouped queries", Layer("MultiHeadAttention", (E, HEADS), {"num_kv_heads": 1}),
        "num_kv_heads is 3 in the module, but 1 in the source",
    ),
    "rope": ("attention with rope", EVERY["attention"], r"rope is 100\.0 .* but None"),
    "scaling of rope": (
        "attention with rope", Layer("MultiHeadAttention", MHA, SCALED), r"rope_scaling is None .* but RopeScal",
    ),
    "heads of a block": ("block", Layer("TransformerBlock", (E, 4, FF)), r"self_attn\.num_heads is 6 .* but 4"),
    "norm": ("block", Layer("TransformerBlock", (E, HEADS, FF), {"norm": "post"}), "norm is 'pre' .* but 'post'"),
    "activation": (
        "encoder", Layer("Encoder", ENCODER.arguments, {"activation": "gelu"}),
        r"layers\.0\.activation is 'relu' .* but 'gelu'",
    ),
    "eps": ("decoder", Layer("Decoder", ENCODER.arguments, {"layer_norm_eps": 0.1}), r"\.eps is 1e-05 .* but 0\.1"),
}  # fmt: skip


@pytest.mark.parametrize("origin", [attnlib.numpy, attnlib.torch], ids=["from numpy", "from torch"])
@pytest.mark.parametrize(("name", "other", "message"), DIFFERENT.values(), ids=DIFFERENT)
def test_a_module_that_computes_differently_is_refused_and_its_state_is_not(backend, origin, name, other, message):
    module, source = EVERY[name].build(backend), other.plain(origin)
    with pytest.raises(ValueError, match=message):
        load_weights(module, source)
    for n, x in arrays(backend, module).items():
        assert_array_equal(x, EVERY[name].state()[n])
    if name != "attention with grouped queries":  # whose weights have other shapes
        load_weights(module, source.state_dict())


@pytest.mark.parametrize("origin", [attnlib.numpy, attnlib.torch], ids=["from numpy", "from torch"])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"embed_scale": 3.0}, r"embed_scale is 1\.0 in the module, but 3\.0 in the source"),
        ({"logit_softcap": 5.0}, r"logit_softcap is None in the module, but 5\.0"),
        ({"norm": "offset_rms_norm"}, r"norm1\.weight_offset is 0\.0 in the module, but 1\.0"),
    ],
)
def test_a_language_model_that_computes_differently_is_refused(backend, origin, options, message):
    module, source = library(backend).CausalLM(config()), origin.CausalLM(config(**options))
    with pytest.raises(ValueError, match=message):
        load_weights(module, source)
    load_weights(module, source.state_dict())


def their_block(kind=nn.TransformerEncoderLayer, heads=HEADS, **options):
    """A block of torch's, pre-norm unless told otherwise."""
    return kind(E, heads, FF, batch_first=True, **{"norm_first": True} | options)


def with_other_heads_across():
    block = their_block(nn.TransformerDecoderLayer)
    block.multihead_attn = nn.MultiheadAttention(E, 4)
    return block


GELU = "block, post-norm, gelu"
THEIRS = {
    "heads": ("attention", lambda: nn.MultiheadAttention(E, 4), "num_heads is 6 .* but 4"),
    "a key of zeros": ("attention", lambda: nn.MultiheadAttention(E, HEADS, add_zero_attn=True), "add_zero_attn.*True"),
    "heads of a block": ("block", lambda: their_block(heads=4), r"self_attn\.num_heads is 6 .* but 4"),
    "norm": ("block", lambda: their_block(norm_first=False), "norm is 'pre' .* but 'post'"),
    "eps": ("block", lambda: their_block(layer_norm_eps=0.1), r"norm[12]\.eps is 1e-05 .* but 0\.1"),
    "a function": ("block", lambda: their_block(activation="gelu"), "activation is 'relu' .* but 'gelu'"),
    "a module": (GELU, lambda: their_block(norm_first=False, activation=nn.ReLU()), "is 'gelu' .* but 'relu'"),
    "the rough gelu": (GELU, lambda: their_block(norm_first=False, activation=nn.GELU("tanh")), "gelu.*tanh"),
    "heads across": ("decoder block", with_other_heads_across, r"cross_attn\.num_heads is 6 .* but 4"),
    "the last norm": (
        "encoder", lambda: nn.TransformerEncoder(their_block(), LAYERS, nn.LayerNorm(E, 0.1), False), r"norm\.eps",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "theirs", "message"), THEIRS.values(), ids=THEIRS)
def test_a_module_of_torch_s_that_computes_differently_is_refused(backend, name, theirs, message):
    with pytest.raises(ValueError, match=message):
        load_weights(EVERY[name].build(backend), theirs())
    load_weights(EVERY[name].build(backend), theirs().state_dict())


@pytest.mark.parametrize("activation", [nn.GELU(), nn.functional.gelu, "gelu"], ids=str)
def test_an_activation_is_known_as_a_module_and_as_a_function(backend, activation):
    load_weights(EVERY[GELU].build(backend), their_block(norm_first=False, activation=activation))


# Errors

STATES = {
    "one missing": lambda state: {n: x for n, x in state.items() if n != "self_attn.k_proj.bias"},
    "one too many": lambda state: state | {"self_attn.surplus": state["norm1.bias"]},
    "one of another shape": lambda state: state | {"linear1.weight": state["linear1.weight"][:, 1:]},
    "one transposed": lambda state: state | {"linear2.weight": state["linear2.weight"].T},
    "one of one element that would broadcast": lambda state: state | {"norm2.bias": state["norm2.bias"][:1]},
    "none": lambda state: {},
}
NAMED = ["k_proj.bias", "surplus", "linear1.weight", "linear2.weight", "norm2.bias", "norm1.weight"]


@pytest.mark.parametrize(("change", "named"), list(zip(STATES.values(), NAMED, strict=True)), ids=STATES)
def test_a_state_that_does_not_fit_is_refused_by_name_and_the_module_is_as_it_was(backend, change, named):
    layer = EVERY["block"]
    module = layer.build(backend)
    state = {name: backend.array(np.full(x.shape, 7.0)) for name, x in layer.state().items()}
    with pytest.raises((KeyError, ValueError, RuntimeError), match=named):
        load_weights(module, change(state))
    for name, x in arrays(backend, module).items():
        assert_array_equal(x, layer.state()[name])


def test_a_module_of_other_options_does_not_fit(backend):
    for theirs in ("attention with grouped queries", "attention without bias", "block"):
        with pytest.raises((KeyError, ValueError, RuntimeError)):
            load_weights(EVERY["attention"].build(backend), EVERY[theirs].build(backend))


def test_a_packed_matrix_for_grouped_heads_does_not_fit(backend):
    theirs = nn.MultiheadAttention(E, HEADS)
    module = Layer("MultiHeadAttention", (E, HEADS), {"num_kv_heads": KV}).build(backend)
    with pytest.raises((ValueError, RuntimeError), match="k_proj"):
        load_weights(module, theirs)


@pytest.mark.parametrize("source", [7, None, "weights.pt", [1.0]], ids=repr)
def test_a_source_that_is_neither_a_module_nor_a_mapping_is_refused(backend, source):
    with pytest.raises(TypeError, match=type(source).__name__):
        load_weights(EVERY["attention"].build(backend), source)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_numpy_takes_every_dtype_that_it_has(dtype):
    layer = EVERY["encoder"]
    module = load_weights(layer.plain(attnlib.numpy), layer.build(Torch("cpu"), dtype))
    assert {str(x.dtype) for x in module.state_dict().values()} == {dtype}


def test_arrays_that_may_only_be_read_are_loaded_without_a_warning(backend):
    layer = EVERY["attention"]
    state = layer.state()
    for x in state.values():
        x.setflags(write=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module = load_weights(layer.build(backend), state)
    assert_array_equal(arrays(backend, module)["q_proj.weight"], state["q_proj.weight"])
