"""What people write who come from torch's layers, or mistake one argument for another: the message says what works.

Each advice that a message gives is followed here, and works.
"""

import re

import numpy as np
import pytest
import torch
from backends import B, D, H, S, T

import attnlib
from attnlib import numpy as of_numpy
from attnlib import torch as of_torch

E = 2 * H


def message(exception, call):
    with pytest.raises(exception) as caught:
        call()
    assert len(str(caught.value)) < 400
    return str(caught.value)


def arrays(backend, *lengths):
    rng = np.random.default_rng(0)
    return [backend.array(rng.standard_normal((B, H, n, D))) for n in lengths]


@pytest.mark.parametrize("shape", [(B, S), (B, T, S)], ids=str)
@pytest.mark.parametrize("dtype", ["bool", "float64"])
def test_a_mask_for_each_sequence_is_told_where_to_insert_axes(backend, shape, dtype):
    query, key, value = arrays(backend, T, S, S)
    given = np.random.default_rng(0).random(shape) < 0.6
    attn_mask = backend.array(given, dtype)
    text = message(ValueError, lambda: attnlib.scaled_dot_product_attention(query, key, value, attn_mask))
    assert str(shape) in text
    assert str((B, H, T, S)) in text
    with_axes = eval(re.search(r"attn_mask\[.*\]", text)[0])
    assert with_axes.shape == ((B, 1, 1, S) if len(shape) == 2 else (B, 1, T, S))
    attnlib.scaled_dot_product_attention(query, key, value, with_axes)


def test_a_mask_of_other_lengths_is_not_told_to_insert_axes(backend):
    query, key, value = arrays(backend, T, S, S)
    wrong = backend.array(np.ones((B, T)), "bool")
    assert "insert" not in message(
        ValueError, lambda: attnlib.scaled_dot_product_attention(query, key, value, attn_mask=wrong)
    )


def test_a_mask_in_place_of_is_causal_is_no_condition(backend):
    query, key, value = arrays(backend, T, S, S)
    mask = backend.array(np.ones((T, S)), "bool")
    text = message(TypeError, lambda: attnlib.scaled_dot_product_attention(query, key, value, is_causal=mask))
    assert f"of shape ({T}, {S})" in text
    assert "True or False" in text
    assert "attn_mask" in text
    grad = backend.array(np.ones((B, H, T, D)))
    message(TypeError, lambda: attnlib.scaled_dot_product_attention_backward(grad, query, key, value, is_causal=mask))
    for yes in (True, np.True_):
        attnlib.scaled_dot_product_attention(query, key, value, is_causal=yes)


@pytest.mark.parametrize("no_flag", [1, "yes", None, 0.0])
def test_is_causal_is_true_or_false(backend, no_flag):
    query, key, value = arrays(backend, T, S, S)
    text = message(TypeError, lambda: attnlib.scaled_dot_product_attention(query, key, value, is_causal=no_flag))
    assert repr(no_flag) in text


def test_an_array_in_place_of_a_length_is_shown_by_its_shape(backend):
    (x,) = arrays(backend, T)
    text = message(TypeError, lambda: attnlib.causal_mask(x))
    assert f"of shape ({B}, {H}, {T}, {D})" in text
    assert "x.shape[-2]" in text
    assert attnlib.causal_mask(x.shape[-2]).shape == (T, T)


@pytest.mark.parametrize("number", [[1] * 1000, range(1000), "x" * 1000], ids=lambda x: type(x).__name__)
def test_a_long_value_in_place_of_a_number_is_shortened(number):
    x = np.ones((T, D))
    assert "but a whole number is needed" in message(TypeError, lambda: attnlib.causal_mask(number))
    assert "but a number is needed" in message(
        TypeError, lambda: attnlib.scaled_dot_product_attention(x, x, x, scale=number)
    )


def test_an_array_in_place_of_a_factor_is_shown_by_its_shape():
    x = np.ones((T, D))
    text = message(TypeError, lambda: attnlib.scaled_dot_product_attention(x, x, x, scale=np.ones((S, S))))
    assert f"scale is a numpy.ndarray of shape ({S}, {S}), but a number is needed" == text


@pytest.mark.parametrize("place", range(3))
def test_arrays_that_would_be_read_otherwise_are_refused(place):
    given = [np.random.default_rng(0).standard_normal((n, D)) for n in (T, S, S)]
    name = ("query", "key", "value")[place]
    masked = [*given]
    masked[place] = np.ma.masked_array(given[place], given[place] > 0)
    text = message(TypeError, lambda: attnlib.scaled_dot_product_attention(*masked))
    assert f"{name}.filled(0)" in text
    assert "attn_mask" in text
    matrices = [*given]
    with pytest.warns(PendingDeprecationWarning):
        matrices[place] = np.matrix(given[place])
    text = message(TypeError, lambda: attnlib.scaled_dot_product_attention(*matrices))
    assert f"np.asarray({name})" in text


def test_a_masked_array_is_no_mask():
    given = [np.ones((n, D)) for n in (T, S, S)]
    mask = np.ma.masked_array(np.ones((T, S), bool), np.eye(T, S, dtype=bool))
    assert "numpy.ma" in message(TypeError, lambda: attnlib.scaled_dot_product_attention(*given, attn_mask=mask))
    text = message(TypeError, lambda: attnlib.combine_masks(mask.data, mask))
    assert "masks[1].filled(0)" in text
    assert not attnlib.combine_masks(mask.data, mask.filled(0)).diagonal().any()


def test_masked_lengths_and_indices_are_refused():
    numbers = np.ma.masked_array([2, 3], [False, True])
    assert "lengths.filled(0)" in message(TypeError, lambda: attnlib.padding_mask(numbers, S))
    assert "index.filled(0)" in message(TypeError, lambda: of_numpy.Embedding(S, D)(numbers))


@pytest.mark.parametrize("place", ["key", "value", "attn_mask"])
@pytest.mark.parametrize("keys", [S, 19])
def test_devices_that_differ_are_named(place, keys):
    inputs = {"query": torch.ones(B, H, keys, D), "key": torch.ones(B, H, keys, D), "value": torch.ones(B, H, keys, D)}
    inputs[place] = torch.ones((keys, keys) if place == "attn_mask" else (B, H, keys, D), device="meta")
    text = message(ValueError, lambda: attnlib.scaled_dot_product_attention(**inputs))
    assert f"query is on cpu but {place} is on meta: use {place}.to(query.device)" == text


def test_a_layer_on_another_device_is_to_be_moved_as_a_whole():
    layer, query = of_torch.MultiHeadAttention(E, H), torch.ones(B, T, E, device="meta")
    text = message(ValueError, lambda: layer(query))
    assert text == "query is on meta but q_proj.weight is on cpu: use layer.to(query.device)"
    assert layer.to(query.device)(query).shape == query.shape


@pytest.mark.parametrize("dtype", ["bool", "float64"])
@pytest.mark.parametrize("keys", [T, S])
def test_the_masks_of_all_heads_are_told_their_shape(backend, dtype, keys):
    given = np.random.default_rng(0).random((B * H, T, keys)) < 0.6
    given[..., 0] = False  # every query may attend to the first key
    theirs = torch.nn.MultiheadAttention(E, H, batch_first=True, dtype=torch.float64)
    ours = (of_torch if str(backend).startswith("torch") else of_numpy).MultiHeadAttention(E, H).double()
    attnlib.load_weights(ours, theirs)
    query, key = (np.random.default_rng(n).standard_normal((B, n, E)) for n in (T, keys))
    x, memory, attn_mask = backend.array(query), backend.array(key), backend.array(given, dtype)
    text = message(ValueError, lambda: ours(x, memory, attn_mask=attn_mask))
    line = re.search(r"pass (.*), with ~ in front if boolean", text)[1]
    assert line == f"attn_mask.reshape({B}, {H}, {T}, {keys})"
    attn_mask = eval(line)
    out = ours(x, memory, attn_mask=~attn_mask if dtype == "bool" else attn_mask)
    tensors = torch.tensor(query), torch.tensor(key), torch.tensor(key)
    mask = torch.tensor(given) if dtype == "bool" else torch.tensor(given, dtype=torch.float64)
    np.testing.assert_allclose(
        backend.numpy(out), theirs(*tensors, attn_mask=mask, need_weights=False)[0].detach(), atol=1e-12
    )


@pytest.mark.parametrize("name", ["weight", "w_query", "w_key", "v"])
def test_a_parameter_of_a_function_on_another_device_is_to_be_moved_alone(name):
    query, key = torch.ones(T, D), torch.ones(S, 2)
    if name == "weight":
        score, parameters = attnlib.general, {"weight": torch.ones(D, 2)}
    else:
        score = attnlib.additive
        parameters = {"w_query": torch.ones(D, 3), "w_key": torch.ones(2, 3), "v": torch.ones(3)}
    moved = parameters | {name: parameters[name].to("meta")}
    text = message(ValueError, lambda: score(query, key, **moved))
    assert text == f"query is on cpu but {name} is on meta: use {name}.to(query.device)"
    assert score(query, key, **parameters).shape == (T, S)


def test_learned_positions_on_another_device_are_to_be_moved():
    positions, x = of_torch.LearnedPositions(S, E), torch.ones(B, T, E, device="meta")
    text = message(ValueError, lambda: positions(x))
    assert text == "x is on meta but layer.weight is on cpu: use layer.to(x.device)"


def test_masks_and_tables_on_another_device_are_named():
    mask, elsewhere = torch.ones(T, S, dtype=torch.bool), torch.ones(T, S, dtype=torch.bool, device="meta")
    text = message(ValueError, lambda: attnlib.combine_masks(mask, elsewhere))
    assert text == "masks[0] is on cpu but masks[1] is on meta: use masks[1].to(masks[0].device)"
    x, table = torch.ones(T, 2), torch.ones(T, 1, device="meta")
    text = message(ValueError, lambda: attnlib.apply_rope(x, table, table))
    assert text == "x is on cpu but cos is on meta: use cos.to(x.device)"


@pytest.fixture(params=[of_numpy, of_torch], ids=["numpy", "torch"])
def layers(request):
    return request.param


def states(layers, *shape):
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    return x if layers is of_numpy else torch.tensor(x)


def same_mask(layers, mask):
    return mask if layers is of_numpy else torch.tensor(mask)


def test_key_padding_mask_is_told_how_it_is_written_here(layers):
    attend, x = layers.MultiHeadAttention(E, H), states(layers, B, T, E)
    key_padding_mask = same_mask(layers, np.arange(T) >= np.array([[2], [T]]))
    text = message(TypeError, lambda: attend(x, key_padding_mask=key_padding_mask))
    assert "True means" in text
    attn_mask = eval(re.search(r"attn_mask=(~\S*\[.*?\])", text)[1])
    _, weights = attend(x, attn_mask=attn_mask, need_weights=True)
    assert (np.asarray(weights.detach() if layers is of_torch else weights)[0, ..., 2:] == 0).all()


@pytest.mark.parametrize("name", ["batch_first", "kdim", "vdim", "add_zero_attn", "add_bias_kv", "device", "dtype"])
def test_what_torch_has_and_these_layers_have_not_is_explained(layers, name):
    assert name in message(TypeError, lambda: layers.MultiHeadAttention(E, H, **{name: True}))
    assert name in message(TypeError, lambda: layers.Encoder(E, H, 2 * E, 2, **{name: True}))


@pytest.mark.parametrize(
    ("name", "ours"),
    [("d_model", "embed_dim"), ("nhead", "num_heads"), ("dim_feedforward", "ff_dim"), ("norm_first", "norm")],
)
def test_what_torch_calls_otherwise_is_translated(layers, name, ours):
    assert ours in message(TypeError, lambda: layers.Decoder(**{name: 2}))


@pytest.mark.parametrize("name", ["src_key_padding_mask", "mask", "tgt_mask", "memory_key_padding_mask", "memory"])
def test_the_arguments_of_torch_stacks_are_translated(layers, name):
    x = states(layers, B, T, E)
    assert name in message(TypeError, lambda: layers.Decoder(E, H, 2 * E, 2)(x, x, **{name: x}))
    assert name in message(TypeError, lambda: layers.Encoder(E, H, 2 * E, 2)(x, **{name: x}))


def test_an_argument_that_nobody_has_is_pythons_own_error(layers):
    with pytest.raises(TypeError, match="unexpected keyword argument 'attention_mask'"):
        layers.MultiHeadAttention(E, H)(states(layers, B, T, E), attention_mask=None)


@pytest.mark.parametrize("batch", [(), (B,), (B * H,)])
@pytest.mark.parametrize("dtype", [bool, np.float32])
def test_a_mask_in_the_place_that_torch_gives_it_is_recognised(layers, dtype, batch):
    encoder, x = layers.Encoder(E, H, 2 * E, 2), states(layers, B, T, E)
    mask = same_mask(layers, np.broadcast_to(np.tri(T), (*batch, T, T)).astype(dtype))
    text = message(TypeError, lambda: encoder(x, mask))
    assert f"{T}, {T})" in text
    assert "attn_mask=mask" in text
    encoder(x, attn_mask=same_mask(layers, np.tri(T).astype(dtype)))


def test_a_mask_of_the_memory_is_called_by_its_name(layers):
    decoder, x, memory = layers.Decoder(E, H, 2 * E, 2), states(layers, B, T, E), states(layers, B, S, E)
    mask = same_mask(layers, np.ones((T, S + 1), bool))
    assert f"memory_mask has shape ({T}, {S + 1})" in message(ValueError, lambda: decoder(x, memory, memory_mask=mask))


@pytest.mark.parametrize("dtype", [bool, np.float32])
def test_a_mask_in_the_place_that_torch_gives_it_in_a_decoder_is_recognised(layers, dtype):
    decoder, x, memory = layers.Decoder(E, H, 2 * E, 2), states(layers, B, T, E), states(layers, B, S, E)
    mask = same_mask(layers, np.tri(T).astype(dtype))
    text = message(TypeError, lambda: decoder(x, memory, mask))
    assert f"value has shape ({T}, {T})" in text
    assert "attn_mask=mask" in text
    assert "attn_mask=~mask" in text
    decoder(x, memory, attn_mask=mask)


@pytest.mark.parametrize("source", ["attnlib", "state", "torch"])
def test_weights_are_loaded_into_the_first_argument(source):
    ours, theirs = of_torch.MultiHeadAttention(E, H), torch.nn.MultiheadAttention(E, H)
    call = {
        "attnlib": lambda: attnlib.load_weights(theirs, ours),
        "state": lambda: attnlib.load_weights(theirs.state_dict(), ours),
        "torch": lambda: attnlib.load_weights(theirs, of_numpy.MultiHeadAttention(E, H)),
    }[source]
    assert "load_weights(module, source)" in message(TypeError, call)
    attnlib.load_weights(ours, theirs)


def test_a_cache_filled_under_autocast_is_refused_outside_with_a_reason():
    attend, x, cache = of_torch.MultiHeadAttention(E, H), torch.ones(B, T, E), of_torch.KVCache()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        attend(x, is_causal=True, cache=cache)
    text = message(TypeError, lambda: attend(x, is_causal=True, cache=cache))
    assert "bfloat16" in text
    assert "autocast" in text
    assert "new cache" in text
    assert cache.length == T, "nothing was added"


def nested(*shape):
    """Sequences of lengths T and S, one after the other."""
    return torch.nested.nested_tensor([torch.randn(n, *shape) for n in (T, S)], layout=torch.jagged)


NOT_NESTED = {
    "attn_mask": lambda x: attnlib.scaled_dot_product_attention(x, x, x, torch.ones(S, S, dtype=torch.bool)),
    "window": lambda x: attnlib.scaled_dot_product_attention(x, x, x, is_causal=True, window=(1, None)),
    "softcap": lambda x: attnlib.scaled_dot_product_attention(x, x, x, softcap=2.0),
    "return_weights": lambda x: attnlib.scaled_dot_product_attention(x, x, x, return_weights=True),
    "return_lse": lambda x: attnlib.scaled_dot_product_attention(x, x, x, return_lse=True),
    "q_offset": lambda x: attnlib.scaled_dot_product_attention(x, x, x, is_causal=True, q_offset=1),
    "is_causal=True": lambda x: attnlib.scaled_dot_product_attention(x, x, x, is_causal=True),
    "backward": lambda x: attnlib.scaled_dot_product_attention_backward(x, x, x, x),
    "attention": lambda x: attnlib.attention(x, x, x),
    "key is not a nested": lambda x: attnlib.scaled_dot_product_attention(x, *[torch.ones(2, H, S, D)] * 2),
    "value is not a nested": lambda x: attnlib.scaled_dot_product_attention(x, x, torch.ones(2, H, S, D)),
    "a similarity": lambda x: attnlib.gaussian(x, x),
    "a cache": lambda x: of_torch.KVCache().append(x, x),
    "learned positions": lambda x: of_torch.LearnedPositions(S, D)(x),
    "key is a nested": lambda x: attnlib.attention(torch.ones(2, H, S, D), x, x),
    "grad is a nested": lambda x: attnlib.scaled_dot_product_attention_backward(x, *[torch.ones(2, H, S, D)] * 3),
    "query is not a nested": lambda x: attnlib.scaled_dot_product_attention(torch.ones(2, H, S, D), x, x),
}
LAYER_NOT_NESTED = {
    "return_weights": lambda x: of_torch.MultiHeadAttention(E, 1)(x, need_weights=True),
    "cache": lambda x: of_torch.MultiHeadAttention(E, 1)(x, cache=of_torch.KVCache()),
    "num_sink_tokens": lambda x: of_torch.MultiHeadAttention(E, 1, window=(2, 0), num_sink_tokens=1)(x),
    "attn_bias": lambda x: of_torch.MultiHeadAttention(E, 1, attn_bias=attnlib.alibi_bias)(x),
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
@pytest.mark.parametrize("option", NOT_NESTED)
def test_nested_tensors_are_refused_where_padded_ones_are_needed(option):
    text = message(TypeError, lambda: NOT_NESTED[option](nested(H, D).transpose(1, 2)))
    assert "nested tensor" in text
    assert option in text
    assert "torch.nested.to_padded_tensor(x, 0.0)" in text
    assert "padding_mask(lengths, S)" in text


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
@pytest.mark.parametrize("option", LAYER_NOT_NESTED)
def test_layers_refuse_nested_tensors_where_padded_ones_are_needed(option):
    text = message(TypeError, lambda: LAYER_NOT_NESTED[option](nested(E)))
    assert f"a padded one is needed for {option}: pass torch.nested.to_padded_tensor(x, 0.0)" in text


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_nested_tensors_of_another_layout_or_rank_are_refused_with_the_line_that_works():
    sequences = [torch.ones(H, n, D) for n in (T, S)]
    strided = torch.nested.nested_tensor(sequences)
    of_strided = lambda: attnlib.scaled_dot_product_attention(strided, strided, strided)  # noqa: E731
    for call in (of_strided, lambda: of_torch.MultiHeadAttention(D, 1)(strided)):
        assert "layout torch.strided, but torch.jagged is needed" in message(TypeError, call)
    assert "lengths as lengths" in message(
        TypeError, lambda: attnlib.encode(attnlib.rnn_cell, nested(D), torch.ones(D))
    )
    x = nested(H, D)  # torch would take its heads for positions
    assert "for (B, T, H, D), query.transpose(1, 2)" in message(
        TypeError, lambda: attnlib.scaled_dot_product_attention(x, x, x)
    )
    x = nested(D)
    assert "query.unsqueeze(2).transpose(1, 2)" in message(
        TypeError, lambda: attnlib.scaled_dot_product_attention(x, x, x)
    )
    one_head = x.unsqueeze(2).transpose(1, 2)
    assert attnlib.scaled_dot_product_attention(one_head, one_head, one_head).shape[:2] == (2, 1)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_nested_keys_and_values_need_the_same_offsets():
    key, value = nested(H, D), nested(H, D)
    query, *parts = (x.transpose(1, 2) for x in (key, key, value))
    text = message(ValueError, lambda: attnlib.scaled_dot_product_attention(query, *parts))
    assert "torch.nested.nested_tensor_from_jagged(values, offsets)" in text
    same = torch.nested.nested_tensor_from_jagged(value.values(), key.offsets()).transpose(1, 2)
    out = attnlib.scaled_dot_product_attention(query, parts[0], same)
    q, k, v = (x.unbind()[0].transpose(0, 1) for x in (key, key, value))
    torch.testing.assert_close(out.unbind()[0], attnlib.scaled_dot_product_attention(q, k, v))


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_nested_tensors_attend_as_padded_ones_do_under_a_padding_mask():
    query, key = nested(H, D).transpose(1, 2), nested(H, D).transpose(1, 2)
    out = attnlib.scaled_dot_product_attention(query, key, key, scale=0.7)
    q, k = (torch.nested.to_padded_tensor(x, 0.0) for x in (query, key))
    padded = attnlib.scaled_dot_product_attention(q, k, k, attnlib.padding_mask(torch.tensor([T, S]), S), scale=0.7)
    for ours, theirs, n in zip(out.transpose(1, 2).unbind(), padded.transpose(1, 2), (T, S), strict=True):
        torch.testing.assert_close(ours, theirs[:n])


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_rotary_positions_of_nested_tensors_are_refused_with_the_line_that_works():
    attend = of_torch.MultiHeadAttention(E, 1, rope=True)
    x = torch.nested.nested_tensor([torch.ones(n, E) for n in (T, S)], layout=torch.jagged)
    assert "to_padded_tensor(x, 0.0)" in message(TypeError, lambda: attend(x))
    padded = torch.nested.to_padded_tensor(x, 0.0)
    assert attend(padded, attn_mask=attnlib.padding_mask(torch.tensor([T, S]), S)).shape == (2, S, E)
