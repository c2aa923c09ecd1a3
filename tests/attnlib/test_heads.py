"""split_heads, merge_heads, multi_head_attention: a wide vector is several narrow ones, and each attends on its own."""

import numpy as np
import pytest
import torch
from backends import D_A, D_K, D_V, B, D, H, S, T, assert_error_names, dtype_name, examples, sizes, tenths
from hypothesis import given
from modules import HEADS, E, Layer
from numpy.testing import assert_allclose, assert_array_equal
from oracle import attend

from attnlib import merge_heads, multi_head_attention, split_heads


def test_head_h_has_the_components_from_h_d_on(backend):
    x = np.arange(24.0).reshape(3, 8)
    heads = backend.numpy(split_heads(backend.array(x), 4))
    assert_array_equal(heads, [x[:, 0:2], x[:, 2:4], x[:, 4:6], x[:, 6:8]])


@pytest.mark.parametrize("leading", [(), (B,), (B, S), (0,)])
def test_every_component_goes_where_the_formula_says(backend, rng, leading):
    x = rng.standard_normal((*leading, T, H * D))
    heads = backend.numpy(split_heads(backend.array(x), H))
    assert heads.shape == (*leading, H, T, D)
    for h in range(H):
        for d in range(D):
            assert_array_equal(heads[..., h, :, d], x[..., h * D + d])


def test_merging_undoes_splitting_and_splitting_undoes_merging(typed, rng):
    backend, dtype = typed
    wide, heads = (backend.array(rng.standard_normal(s), dtype) for s in ((B, T, H * D), (B, H, T, D)))
    assert_array_equal(backend.numpy(merge_heads(split_heads(wide, H))), backend.numpy(wide))
    assert_array_equal(backend.numpy(split_heads(merge_heads(heads), H)), backend.numpy(heads))


def test_one_head_is_the_sequence_itself(backend, rng):
    x = rng.standard_normal((B, T, D))
    assert_array_equal(backend.numpy(split_heads(backend.array(x), 1)), x[:, None])


def test_as_many_heads_as_components_have_one_component_each(backend, rng):
    x = rng.standard_normal((T, D))
    assert_array_equal(backend.numpy(split_heads(backend.array(x), D)), x.T[:, :, None])


@pytest.mark.parametrize(("length", "width"), [(0, H * D), (T, 0), (0, 0)])
def test_nothing_splits_into_nothing_and_merges_back(backend, length, width):
    heads = split_heads(backend.array(np.ones((B, length, width))), H)
    assert tuple(heads.shape) == (B, H, length, width // H)
    assert tuple(merge_heads(heads).shape) == (B, length, width)


def test_splitting_is_what_torch_s_multi_head_attention_does(rng):
    # It views the projected vectors as (B, T, H, D) and transposes.
    x = torch.tensor(rng.standard_normal((B, T, H * D)))
    assert torch.equal(split_heads(x, H), x.view(B, T, H, D).transpose(1, 2))


def test_numpy_s_integers_count_heads(backend):
    assert tuple(split_heads(backend.array(np.ones((T, H * D))), np.uint8(H)).shape) == (H, T, D)


def test_splitting_is_a_view_in_torch():
    x = torch.zeros(T, H * D)
    assert split_heads(x, H).data_ptr() == x.data_ptr()


@pytest.mark.parametrize("strict", [False, True])
def test_export_keeps_the_length_dynamic(strict):
    class Both(torch.nn.Module):
        def forward(self, x):
            return merge_heads(split_heads(x, H) + 1)

    dynamic = ({1: torch.export.Dim("T", min=2, max=64)},)
    program = torch.export.export(Both(), (torch.zeros(B, T, H * D),), dynamic_shapes=dynamic, strict=strict).module()
    assert torch.equal(program(torch.zeros(B, 19, H * D)), torch.ones(B, 19, H * D))


# multi_head_attention

W, W_V = 5, 2  # widths of a head, of queries and keys and of values
SHAPES = {
    "query": (B, T, D),
    "key": (B, S, D_K),
    "value": (B, S, D_V),
    "w_q": (D, H * W),
    "w_k": (D_K, H * W),
    "w_v": (D_V, H * W_V),
    "w_o": (H * W_V, D_A),
}
MASKS = {
    "no mask": None,
    "a bool mask": np.arange(T * S).reshape(T, S) % 3 > 0,
    "a mask for each head": np.arange(H * T * S).reshape(H, T, S) % 4 > 0,
    "padding": np.arange(S) < np.array([4, S])[:, None, None, None],
    "a float mask": np.sin(np.arange(B * H * T * S)).reshape(B, H, T, S),
    "a query that may attend to nothing": np.arange(T)[:, None] != np.full(S, 2),
}


def attention_of(z, num_heads=H, attn_mask=None, **shapes):
    """multi_head_attention of ones."""
    return multi_head_attention(*(z(*s) for s in (SHAPES | shapes).values()), num_heads, attn_mask=attn_mask)


def by_loop(query, key, value, w_q, w_k, w_v, w_o, num_heads, mask=None, is_causal=False):
    """Head by head, as the formula says: each by its own columns of the three matrices and its own rows of the last."""
    out = 0.0
    for h in range(num_heads):
        q, k, v = (x @ np.split(w, num_heads, axis=1)[h] for x, w in ((query, w_q), (key, w_k), (value, w_v)))
        own = mask if mask is None or mask.ndim < 3 else mask[..., min(h, mask.shape[-3] - 1), :, :]
        out = out + attend(q, k, v, own, is_causal).context @ np.split(w_o, num_heads, axis=0)[h]
    return out


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("is_causal", [False, True], ids=["", "causal"])
def test_the_result_is_the_sum_over_heads_each_on_its_own(backend, rng, mask, is_causal):
    arrays = [rng.standard_normal(s) for s in SHAPES.values()]
    options = {} if mask is None else {"attn_mask": backend.array(mask, str(mask.dtype))}
    ours = multi_head_attention(*map(backend.array, arrays), H, **options, is_causal=is_causal)
    assert_allclose(backend.numpy(ours), by_loop(*arrays, H, mask, is_causal), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("is_causal", [False, True], ids=["", "causal"])
def test_it_is_torch_s_module_with_its_weights_transposed(backend, dtype, is_causal):
    torch.manual_seed(0)
    theirs = torch.nn.MultiheadAttention(E, HEADS, bias=False, batch_first=True, dtype=getattr(torch, dtype))
    x, memory = (torch.randn(B, n, E, dtype=getattr(torch, dtype)) for n in (T, S))
    may = torch.tril(torch.ones(T, S, dtype=torch.bool))
    expected, _ = theirs(x, memory, memory, attn_mask=~may if is_causal else None)
    weights = [w.T for w in (*theirs.in_proj_weight.chunk(3), theirs.out_proj.weight)]
    arrays = [backend.array(z.detach().numpy(), dtype) for z in (x, memory, memory, *weights)]
    ours = multi_head_attention(*arrays, HEADS, is_causal=is_causal)
    atol = 1e-5 if dtype == "float32" else 1e-13
    assert_allclose(backend.numpy(ours), expected.detach().double().numpy(), rtol=0, atol=atol)


@pytest.mark.parametrize("mask", [None, MASKS["a bool mask"]], ids=["no mask", "a bool mask"])
def test_it_is_our_module_with_its_weights_transposed(backend, rng, mask):
    layer = Layer("MultiHeadAttention", (E, HEADS), {"bias": False})
    x, memory = (backend.array(rng.standard_normal((B, n, E))) for n in (T, S))
    options = {} if mask is None else {"attn_mask": backend.array(mask, "bool")}
    weights = [backend.array(layer.state()[f"{n}_proj.weight"].T) for n in ("q", "k", "v", "out")]
    ours = multi_head_attention(x, memory, memory, *weights, HEADS, **options)
    expected = layer.build(backend)(x, memory, **options)
    assert_allclose(backend.numpy(ours), backend.numpy(expected), rtol=1e-12, atol=1e-13)


def test_one_head_whose_matrices_do_nothing_is_attention_itself(backend, rng):
    x = rng.standard_normal((B, T, D))
    eye = backend.array(np.eye(D))
    ours = multi_head_attention(*(backend.array(x) for _ in range(3)), eye, eye, eye, eye, 1)
    assert_allclose(backend.numpy(ours), attend(x, x, x).context, rtol=1e-12, atol=1e-14)


def test_heads_without_scores_average(backend, rng):
    value, eye = rng.standard_normal((S, 2 * D)), backend.array(np.eye(2 * D))
    x = backend.array(value)
    ours = multi_head_attention(x, x, x, 0 * eye, eye, eye, eye, D)
    assert_allclose(backend.numpy(ours), np.tile(value.mean(axis=0), (S, 1)), rtol=1e-12, atol=1e-14)
    ours = multi_head_attention(x, x, x, 0 * eye, eye, eye, eye, D, is_causal=True)
    expected = value.cumsum(axis=0) / np.arange(1, S + 1)[:, None]
    assert_allclose(backend.numpy(ours), expected, rtol=1e-12, atol=1e-14)


@examples
@given(tenths(T, 6), tenths(S, 6), tenths(6, 6), tenths(6, 6), tenths(6, 6))
def test_the_order_of_heads_does_not_matter(backend, query, key, w_q, w_k, w_v):
    order = [4, 5, 0, 1, 2, 3]  # three heads of two columns
    w_o = np.linspace(-1, 1, 36).reshape(6, 6)

    def ours(*weights):
        return backend.numpy(multi_head_attention(*map(backend.array, (query, key, key, *weights)), 3))

    there = ours(w_q[:, order], w_k[:, order], w_v[:, order], w_o[order])
    assert_allclose(there, ours(w_q, w_k, w_v, w_o), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("lead", [(), (1,), (B, 1), (B, S)], ids=str)
def test_leading_dimensions_are_batches(backend, rng, lead):
    x, weights = rng.standard_normal((*lead, T, D)), [rng.standard_normal((D, D * H)) for _ in range(3)]
    w_o = rng.standard_normal((D * H, D_A))
    ours = backend.numpy(multi_head_attention(*(backend.array(z) for z in (x, x, x, *weights, w_o)), H))
    assert ours.shape == (*lead, T, D_A)
    for index in np.ndindex(lead):
        one = x[index]
        assert_allclose(ours[index], by_loop(one, one, one, *weights, w_o, H), rtol=1e-9, atol=1e-10)


def test_a_batch_of_one_memory_serves_all_queries(backend, rng):
    drawn = {name: rng.standard_normal(s) for name, s in SHAPES.items()}
    drawn |= {"key": drawn["key"][:1], "value": drawn["value"][:1]}
    ours = multi_head_attention(*(backend.array(x) for x in drawn.values()), H)
    drawn |= {name: np.repeat(drawn[name], B, axis=0) for name in ("key", "value")}
    assert_allclose(backend.numpy(ours), by_loop(*drawn.values(), H), rtol=1e-11, atol=1e-12)


def test_the_dtype_is_kept_and_the_error_is_that_of_rounding_in_heads(typed, rng):
    backend, dtype = typed
    arrays = [rng.standard_normal(s) * (s[0] ** -0.5 if len(s) == 2 else 1) for s in SHAPES.values()]
    given = [backend.array(x, dtype) for x in arrays]
    ours = multi_head_attention(*given, H)
    expected = by_loop(*map(backend.numpy, given), H)
    tolerance = {"float16": 5e-3, "bfloat16": 4e-2, "float32": 1e-6, "float64": 1e-14}[dtype]
    assert dtype_name(ours) == dtype
    assert_allclose(backend.numpy(ours), expected, rtol=0, atol=tolerance * max(1, np.abs(expected).max()))


def test_the_gradient_of_heads_is_the_numerical_one(rng):
    inputs = [torch.tensor(rng.standard_normal(s) / 3, requires_grad=True) for s in SHAPES.values()]
    mask = torch.tensor(MASKS["a query that may attend to nothing"])
    assert torch.autograd.gradcheck(
        lambda *x: multi_head_attention(*(z[:1] if z.ndim == 3 else z for z in x), H, attn_mask=mask), inputs
    )


ERRORS = {
    "heads that do not divide the width": (
        lambda z: split_heads(z(B, T, D), H), ValueError, [sizes(B, T, D), str(D), f"num_heads={H}"],
    ),
    "more heads than components": (
        lambda z: split_heads(z(T, D), 2 * D), ValueError, [sizes(T, D), f"num_heads={2 * D}"],
    ),
    "no heads": (lambda z: split_heads(z(T, D), 0), ValueError, ["num_heads", "0"]),
    "a negative number of heads": (lambda z: split_heads(z(T, D), -1), ValueError, ["num_heads", "-1"]),
    "half a head": (lambda z: split_heads(z(T, D), 0.5), TypeError, ["num_heads", "0.5"]),
    "a whole number of heads as a float": (lambda z: split_heads(z(T, D), 1.0), TypeError, ["num_heads", r"1\.0"]),
    "True as the number of heads": (lambda z: split_heads(z(T, D), True), TypeError, ["num_heads", "True"]),
    "a vector to split": (lambda z: split_heads(z(D), 1), ValueError, [sizes(D)]),
    "a matrix to merge": (lambda z: merge_heads(z(T, D)), ValueError, [sizes(T, D), "H, T, D"]),
    "a list to split": (lambda z: split_heads([[1.0, 2.0]], 2), TypeError, ["x", "list"]),
    "a list to merge": (lambda z: merge_heads([[[1.0]]]), TypeError, ["x", "list"]),
    "a projection that does not fit the queries": (
        lambda z: attention_of(z, w_q=(D + 1, H * W)), ValueError, ["w_q", sizes(D + 1, H * W), sizes(B, T, D)],
    ),
    "a projection that does not fit the keys": (
        lambda z: attention_of(z, w_k=(D, H * W)), ValueError, ["w_k", sizes(D, H * W), sizes(B, S, D_K)],
    ),
    "a projection that does not fit the values": (
        lambda z: attention_of(z, w_v=(1, H * W_V)), ValueError, ["w_v", sizes(1, H * W_V), sizes(B, S, D_V)],
    ),
    "a last projection that does not fit the heads": (
        lambda z: attention_of(z, w_o=(H * W, D_A)), ValueError, ["w_o", sizes(H * W, D_A), str(H * W_V)],
    ),
    "projections of queries and keys to two widths": (
        lambda z: attention_of(z, w_k=(D_K, H * W_V)), ValueError, ["w_k", sizes(D_K, H * W_V), str(H * W)],
    ),
    "torch's layout of a projection": (
        lambda z: attention_of(z, w_q=(H * W, D)), ValueError, ["w_q", sizes(H * W, D)],
    ),
    "a vector as a projection": (lambda z: attention_of(z, w_q=(D,)), ValueError, ["w_q", sizes(D)]),
    "a matrix for each sequence": (
        lambda z: attention_of(z, w_q=(B, D, H * W)), ValueError, ["w_q", sizes(B, D, H * W)],
    ),
    "a vector as the last projection": (lambda z: attention_of(z, w_o=(H * W_V,)), ValueError, ["w_o"]),
    "a vector as the projection of values": (lambda z: attention_of(z, w_v=(D_V,)), ValueError, ["w_v", sizes(D_V)]),
    "heads that do not divide a projection": (
        lambda z: attention_of(z, num_heads=4), ValueError, ["num_heads=4", str(H * W)],
    ),
    "no heads to attend": (lambda z: attention_of(z, num_heads=0), ValueError, ["num_heads", "0"]),
    "half a head to attend": (lambda z: attention_of(z, num_heads=0.5), TypeError, ["num_heads", r"0\.5"]),
    "a query that is a vector": (lambda z: attention_of(z, query=(D,)), ValueError, ["query", sizes(D)]),
    "more values than keys": (lambda z: attention_of(z, value=(B, T, D_V)), ValueError, [str(T), str(S)]),
    "batches that do not broadcast": (
        lambda z: attention_of(z, key=(5, S, D_K), value=(5, S, D_V)), ValueError, [r"\(2, ", r"\(5, "],
    ),
    "a mask of another length": (
        lambda z: attention_of(z, attn_mask=z(S, T, dtype="bool")), ValueError,
        ["attn_mask", sizes(S, T), sizes(B, H, T, S)],
    ),
    "a padding mask without its middle dimensions": (
        lambda z: attention_of(z, attn_mask=z(B, S, dtype="bool")), ValueError, [sizes(B, S), sizes(B, H, T, S)],
    ),
    "a mask of integers": (lambda z: attention_of(z, attn_mask=z(T, S, dtype="int64")), TypeError, ["int64"]),
}  # fmt: skip


@pytest.mark.parametrize(("call", "exception", "words"), ERRORS.values(), ids=ERRORS)
def test_an_error_names_what_came(backend, call, exception, words):
    assert_error_names(backend, call, exception, words)
