"""What holds for every public function: signature, types, errors, transforms of torch, imports, documentation."""

import doctest
import functools
import importlib.util
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from backends import (
    CALLS,
    D_A,
    D_K,
    D_V,
    B,
    D,
    H,
    Numpy,
    S,
    T,
    Torch,
    assert_error_names,
    dtype_name,
    sizes,
    strided,
)
from numpy.testing import assert_allclose, assert_array_equal

import attnlib

every_call = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
SEVERAL = {what: call for what, call in CALLS.items() if len(call.arguments) > 1}
every_call_of_several_arguments = pytest.mark.parametrize("call", SEVERAL.values(), ids=SEVERAL)
VIEWS = {"split_heads", "merge_heads"}  # they may only look at their input in another shape

# Signatures


def sdpa(
    query,
    key,
    value,
    attn_mask=None,
    dropout_p=0.0,
    is_causal=False,
    *,
    scale=None,
    enable_gqa=False,
    q_offset=0,
    window=None,
    softcap=None,
    return_weights=False,
    return_lse=False,
):
    """Too many parameters for a line."""


def generate(
    model,
    tokens,
    *,
    max_new_tokens,
    temperature=1.0,
    top_k=None,
    top_p=None,
    min_p=None,
    seed=None,
    stop=(),
):
    """The same signature as attnlib's."""


def generate_speculatively(
    model,
    draft_model,
    tokens,
    *,
    max_new_tokens,
    num_draft_tokens=4,
    temperature=1.0,
    top_k=None,
    top_p=None,
    min_p=None,
    seed=None,
    stop=(),
):
    """The same signature as attnlib's."""


def sdpa_backward(
    grad,
    query,
    key,
    value,
    attn_mask=None,
    is_causal=False,
    *,
    scale=None,
    enable_gqa=False,
    q_offset=0,
    window=None,
    softcap=None,
):
    """The same without dropout and what else is returned."""


SIGNATURES = {
    "softmax": lambda x, axis=-1: ...,
    "dot": lambda query, key: ...,
    "scaled_dot": lambda query, key, *, scale=None: ...,
    "general": lambda query, key, weight: ...,
    "additive": lambda query, key, w_query, w_key, v: ...,
    "cosine": lambda query, key: ...,
    "gaussian": lambda query, key, *, bandwidth=1.0: ...,
    "attention": lambda query, key, value, *, score=attnlib.scaled_dot, mask=None: ...,
    "rnn_cell": lambda x, h, w_ih, w_hh, b_ih=None, b_hh=None: ...,
    "gru_cell": lambda x, h, w_ih, w_hh, b_ih=None, b_hh=None: ...,
    "encode": lambda cell, x, h0, *weights, lengths=None: ...,
    "bahdanau_step": lambda y, state, memory, params, *, mask=None: ...,
    "luong_step": lambda y, state, memory, params, *, score="dot", mask=None: ...,
    "causal_mask": lambda T, S=None, *, q_offset=0, like=None: ...,
    "window_mask": lambda T, S, left, right=0, *, num_sink_tokens=0, q_offset=0, like=None: ...,
    "padding_mask": lambda lengths, S: ...,
    "combine_masks": lambda *masks: ...,
    "sinusoidal_positions": lambda T, D, *, base=10000.0, interleaved=True, like=None: ...,
    "rope_tables": lambda positions, D, *, base=10000.0, scaling=None: ...,
    "rms_norm": lambda x, weight=None, *, eps=1e-6: ...,
    "swiglu": lambda gate, up: ...,
    "sampling_probabilities": lambda logits, *, temperature=1.0, top_k=None, top_p=None, min_p=None: ...,
    "generate": generate,
    "generate_speculatively": generate_speculatively,
    "apply_rope": lambda x, cos, sin, *, interleaved=False: ...,
    "alibi_slopes": lambda H, *, like=None: ...,
    "alibi_bias": lambda H, T, S, *, q_offset=0, like=None: ...,
    "relative_buckets": lambda T, S, *, num_buckets=32, max_distance=128, bidirectional=True, q_offset=0, like=None: (
        ...
    ),
    "split_heads": lambda x, num_heads: ...,
    "merge_heads": lambda x: ...,
    "multi_head_attention": (
        lambda query, key, value, w_q, w_k, w_v, w_o, num_heads, *, attn_mask=None, is_causal=False: ...
    ),
    "attention_rollout": lambda weights: ...,
    "load_weights": lambda module, source: ...,
    "self_attention": lambda x, *, score=attnlib.scaled_dot, mask=None: ...,
    "scaled_dot_product_attention": sdpa,
    "scaled_dot_product_attention_backward": sdpa_backward,
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_signature_is_the_one_in_the_design(name):
    def parameters(function):
        return [(p.name, p.kind, p.default) for p in inspect.signature(function).parameters.values()]

    assert parameters(getattr(attnlib, name)) == parameters(SIGNATURES[name])


# Types of what comes out; what goes in stays as it was


@every_call
def test_shape_dtype_and_device_are_kept(backend, rng, call):
    for dtype in backend.dtypes:
        results = call(**{name: backend.array(x, dtype) for name, x in call.draw(rng).items()})
        assert tuple(tuple(x.shape) for x in results) == call.results
        assert [dtype_name(x) for x in results] == [dtype] * len(results)
        for result in results:
            assert np.isfinite(backend.numpy(result)).all()  # backend.numpy checks the library and the device


@every_call
def test_inputs_are_never_changed(backend, rng, call):
    drawn = call.draw(rng)
    arguments = {name: backend.array(x) for name, x in drawn.items()}
    call(**arguments)
    for name, x in arguments.items():
        assert_array_equal(backend.numpy(x), drawn[name])


@every_call
def test_inputs_may_be_read_only(rng, call):
    arguments = call.draw(rng)
    for x in arguments.values():
        x.setflags(write=False)
    call(**arguments)


@pytest.mark.parametrize("call", [c for n, c in CALLS.items() if n not in VIEWS])
def test_results_share_no_memory_with_the_inputs(backend, rng, call):
    arguments = {name: backend.array(x) for name, x in call.draw(rng).items()}
    drawn = call.draw(rng)
    for result in call(**arguments):
        before = backend.numpy(result).copy()
        for name, x in arguments.items():
            x[...] = backend.array(drawn[name])
        assert_array_equal(backend.numpy(result), before)


@every_call
def test_a_view_with_gaps_gives_what_its_copy_gives(backend, rng, call):
    drawn = call.draw(rng)
    plain = call(**{name: backend.array(x) for name, x in drawn.items()})
    views = call(**{name: strided(backend, x) for name, x in drawn.items()})
    for ours, theirs in zip(views, plain, strict=True):
        assert_allclose(backend.numpy(ours), backend.numpy(theirs), rtol=1e-11, atol=1e-13)


@every_call
def test_both_backends_agree(backend, rng, call):
    drawn = call.draw(rng)
    ours = call(**{name: backend.array(x) for name, x in drawn.items()})
    for ours_, theirs in zip(ours, call(**drawn), strict=True):
        assert_allclose(backend.numpy(ours_), theirs, rtol=1e-11, atol=1e-13)


# Errors: the table says what was done, what is raised, and what the message must name (a regular expression each)


def type_error(call, arguments):
    """The text of the TypeError that a call raises; '' if it raises none."""
    try:
        call(**arguments)
    except TypeError as error:
        return str(error)
    return ""


@every_call
def test_integers_and_bools_are_refused(backend, call):
    wrong = {
        (argument, dtype)
        for argument in call.arguments
        for dtype in ("int64", "uint8", "bool")
        if not (argument.endswith("mask") and dtype == "bool")  # the one place where bools belong
        if argument != "positions" or dtype == "bool"  # and the one where integers do
    }
    for argument, dtype in sorted(wrong):
        arguments = {
            name: backend.array(np.ones(shape), dtype if name == argument else "float64")
            for name, shape in call.arguments.items()
        }
        assert dtype in type_error(call, arguments), argument


@every_call_of_several_arguments
def test_two_float_dtypes_are_refused(backend, call):
    for argument in call.arguments:
        if (call.function is attnlib.apply_rope and argument == "x") or argument.endswith("mask"):
            continue  # one table, or mask, serves any dtype
        arguments = {
            name: backend.array(np.ones(shape), "float64" if name == argument else "float32")
            for name, shape in call.arguments.items()
        }
        said = type_error(call, arguments)
        assert "float32" in said, argument
        assert "float64" in said, argument


@every_call_of_several_arguments
@pytest.mark.parametrize(("most", "one"), [(Numpy(), Torch("cpu")), (Torch("cpu"), Numpy())], ids=str)
def test_two_libraries_are_refused(call, most, one):
    for argument in call.arguments:
        arguments = {
            name: (one if name == argument else most).array(np.ones(shape)) for name, shape in call.arguments.items()
        }
        assert re.search(r"ndarray.*Tensor|Tensor.*ndarray", type_error(call, arguments)), argument


@pytest.mark.parametrize(("most", "one"), [(Numpy(), Torch("cpu")), (Torch("cpu"), Numpy())], ids=str)
def test_a_bool_mask_of_the_other_library_is_refused(most, one):
    query, key = most.array(np.ones((T, D))), most.array(np.ones((S, D)))
    with pytest.raises(TypeError, match=r"ndarray.*Tensor|Tensor.*ndarray"):
        attnlib.attention(query, key, key, mask=one.array(np.ones((T, S)), "bool"))


def attend(z, mask=None, query=(B, H, T, D), key=(B, H, S, D), value=(B, H, S, D_V), **options):
    return attnlib.attention(z(*query), z(*key), z(*value), mask=mask, **options)


def pair(function):
    """The errors that every similarity of two arrays of one width shares."""
    name = function.__name__
    return {
        f"{name} of a query that is a vector": (
            lambda z: function(z(D), z(S, D)), ValueError, [sizes(D)],
        ),
        f"{name} of a key that is a vector": (
            lambda z: function(z(T, D), z(D)), ValueError, [sizes(D)],
        ),
        f"{name} of a scalar": (
            lambda z: function(z(), z(S, D)), ValueError, [sizes()],
        ),
        f"{name} of two widths": (
            lambda z: function(z(T, D), z(S, D_K)), ValueError, [sizes(T, D), sizes(S, D_K)],
        ),
        f"{name} of a width 1 that would broadcast": (
            lambda z: function(z(T, D), z(S, 1)), ValueError, [sizes(T, D), sizes(S, 1)],
        ),
        f"{name} of leading dimensions that do not broadcast": (
            lambda z: function(z(B, T, D), z(H, S, D)), ValueError, [sizes(B, T, D), sizes(H, S, D)],
        ),
    }  # fmt: skip


ERRORS = {
    # softmax
    "softmax over an axis too high": (
        lambda z: attnlib.softmax(z(T, S), axis=2), (IndexError, ValueError), ["2"],
    ),
    "softmax over an axis too low": (
        lambda z: attnlib.softmax(z(T, S), axis=-3), (IndexError, ValueError), ["-3"],
    ),
    "softmax of a number, which has no axis": (
        lambda z: attnlib.softmax(z()), (IndexError, ValueError), [sizes()],
    ),
    # similarities
    **pair(attnlib.dot), **pair(attnlib.scaled_dot), **pair(attnlib.cosine), **pair(attnlib.gaussian),
    "general with a weight that does not fit the query": (
        lambda z: attnlib.general(z(T, D), z(S, D_K), z(D_A, D_K)), ValueError, [sizes(T, D), sizes(D_A, D_K)],
    ),
    "general with a weight that does not fit the key": (
        lambda z: attnlib.general(z(T, D), z(S, D_K), z(D, D_A)), ValueError, [sizes(S, D_K), sizes(D, D_A)],
    ),
    "general with its weight transposed": (
        lambda z: attnlib.general(z(T, D), z(S, D_K), z(D_K, D)), ValueError, [sizes(T, D), sizes(D_K, D)],
    ),
    "general with a vector as weight": (
        lambda z: attnlib.general(z(T, D), z(S, D), z(D)), ValueError, [sizes(D)],
    ),
    "general of a query that is a vector": (
        lambda z: attnlib.general(z(D), z(S, D_K), z(D, D_K)), ValueError, [sizes(D)],
    ),
    "general of leading dimensions that do not broadcast": (
        lambda z: attnlib.general(z(B, T, D), z(H, S, D_K), z(D, D_K)),
        ValueError, [sizes(B, T, D), sizes(H, S, D_K)],
    ),
    "additive with w_query that does not fit the query": (
        lambda z: attnlib.additive(z(T, D), z(S, D_K), z(D_V, D_A), z(D_K, D_A), z(D_A)),
        ValueError, [sizes(T, D), sizes(D_V, D_A)],
    ),
    "additive with w_key that does not fit the key": (
        lambda z: attnlib.additive(z(T, D), z(S, D_K), z(D, D_A), z(D_V, D_A), z(D_A)),
        ValueError, [sizes(S, D_K), sizes(D_V, D_A)],
    ),
    "additive with two inner widths": (
        lambda z: attnlib.additive(z(T, D), z(S, D_K), z(D, D_A), z(D_K, D_V), z(D_A)),
        ValueError, [sizes(D, D_A), sizes(D_K, D_V)],
    ),
    "additive with v of another width": (
        lambda z: attnlib.additive(z(T, D), z(S, D_K), z(D, D_A), z(D_K, D_A), z(D_V)),
        ValueError, [sizes(D_V), sizes(D, D_A)],
    ),
    "additive with a v of width 1 that would broadcast": (
        lambda z: attnlib.additive(z(T, D), z(S, D_K), z(D, D_A), z(D_K, D_A), z(1)),
        ValueError, [sizes(1), sizes(D, D_A)],
    ),
    "additive with a matrix as v": (
        lambda z: attnlib.additive(z(T, D), z(S, D_K), z(D, D_A), z(D_K, D_A), z(D_A, 1)),
        ValueError, [sizes(D_A, 1)],
    ),
    "additive of a query that is a vector": (
        lambda z: attnlib.additive(z(D), z(S, D_K), z(D, D_A), z(D_K, D_A), z(D_A)), ValueError, [sizes(D)],
    ),
    "additive of leading dimensions that do not broadcast": (
        lambda z: attnlib.additive(z(B, T, D), z(H, S, D_K), z(D, D_A), z(D_K, D_A), z(D_A)),
        ValueError, [sizes(B, T, D), sizes(H, S, D_K)],
    ),
    "gaussian with bandwidth 0": (
        lambda z: attnlib.gaussian(z(T, D), z(S, D), bandwidth=0), ValueError, ["bandwidth", "0"],
    ),
    "gaussian with a negative bandwidth": (
        lambda z: attnlib.gaussian(z(T, D), z(S, D), bandwidth=-1.5), ValueError, ["bandwidth", "-1.5"],
    ),
    "gaussian with bandwidth NaN": (
        lambda z: attnlib.gaussian(z(T, D), z(S, D), bandwidth=np.nan), ValueError, ["bandwidth", "nan"],
    ),
    "scaled_dot with an infinite scale": (
        lambda z: attnlib.scaled_dot(z(T, D), z(S, D), scale=np.inf), ValueError, ["scale", "inf"],
    ),
    "scaled_dot with scale NaN": (
        lambda z: attnlib.scaled_dot(z(T, D), z(S, D), scale=np.nan), ValueError, ["scale", "nan"],
    ),
    # attention
    "attention of a query that is a vector": (
        lambda z: attend(z, query=(D,)), ValueError, [sizes(D)],
    ),
    "attention of a value that is a vector": (
        lambda z: attend(z, value=(S,)), ValueError, [sizes(S)],
    ),
    "attention of two widths": (
        lambda z: attend(z, key=(B, H, S, D_K)), ValueError, [sizes(B, H, T, D), sizes(B, H, S, D_K)],
    ),
    "attention of more values than keys": (
        lambda z: attend(z, value=(B, H, D_A, D_V)), ValueError, [sizes(B, H, S, D), sizes(B, H, D_A, D_V)],
    ),
    "attention of one value that would broadcast": (
        lambda z: attend(z, value=(B, H, 1, D_V)), ValueError, [sizes(B, H, S, D), sizes(B, H, 1, D_V)],
    ),
    "attention of one key and many values": (
        lambda z: attend(z, key=(B, H, 1, D)), ValueError, [sizes(B, H, 1, D), sizes(B, H, S, D_V)],
    ),
    "attention of leading dimensions of the key that do not broadcast": (
        lambda z: attend(z, key=(B, 5, S, D)), ValueError, [sizes(B, H, T, D), sizes(B, 5, S, D)],
    ),
    "attention of leading dimensions of the value that do not broadcast": (
        lambda z: attend(z, value=(B, 5, S, D_V)), ValueError, [sizes(B, 5, S, D_V)],
    ),
    "attention with a mask of another S": (
        lambda z: attend(z, z(T, D, dtype="bool")), ValueError, [sizes(T, D), sizes(B, H, T, S)],
    ),
    "attention with its mask transposed": (
        lambda z: attend(z, z(S, T, dtype="bool")), ValueError, [sizes(S, T), sizes(B, H, T, S)],
    ),
    "attention with a padding mask that lacks its two middle dimensions": (
        lambda z: attend(z, z(B, S, dtype="bool")), ValueError, [sizes(B, S), sizes(B, H, T, S)],
    ),
    "attention with a float mask of another S": (
        lambda z: attend(z, z(T, D)), ValueError, [sizes(T, D), sizes(B, H, T, S)],
    ),
    "attention with a mask that adds a leading dimension": (
        lambda z: attend(z, z(5, B, H, T, S, dtype="bool")), ValueError,
        [sizes(5, B, H, T, S), sizes(B, H, T, S)],
    ),
    "attention with a mask that adds a leading dimension of 1": (
        lambda z: attend(z, z(1, B, H, T, S, dtype="bool")), ValueError,
        [sizes(1, B, H, T, S), sizes(B, H, T, S)],
    ),
    "attention with a mask that enlarges a leading dimension of 1": (
        lambda z: attend(z, z(B, T, S), query=(1, T, D), key=(1, S, D), value=(1, S, D_V)), ValueError,
        [sizes(B, T, S), sizes(1, T, S)],
    ),
    "attention with a mask for more queries than one": (
        lambda z: attend(z, z(T, S, dtype="bool"), query=(1, D), key=(S, D), value=(S, D_V)), ValueError,
        [sizes(T, S), sizes(1, S)],
    ),
    "attention with a mask for more keys than one": (
        lambda z: attend(z, z(T, S, dtype="bool"), query=(T, D), key=(1, D), value=(1, D_V)), ValueError,
        [sizes(T, S), sizes(T, 1)],
    ),
    "attention with a mask of integers": (
        lambda z: attend(z, z(T, S, dtype="int64")), TypeError, ["mask", "int64"],
    ),
    "attention with the name of a score": (
        lambda z: attend(z, score="dot"), TypeError, ["score", "'dot'|str", "callable|function"],
    ),
    "attention with an unknown name as score": (
        lambda z: attend(z, score="nearest"), TypeError, ["score", "'nearest'|str", "callable|function"],
    ),
    "attention with a number as score": (
        lambda z: attend(z, score=7), TypeError, ["score", "7|int", "callable|function"],
    ),
    "attention with a score of one row for each key": (
        lambda z: attend(z, score=lambda query, key: attnlib.dot(key, query)), ValueError,
        ["score", sizes(B, H, S, T), sizes(B, H, T, S)],
    ),
    "self_attention of a vector": (
        lambda z: attnlib.self_attention(z(D)), ValueError, [sizes(D)],
    ),
    "self_attention with the name of a score": (
        lambda z: attnlib.self_attention(z(T, D), score="dot"), TypeError,
        ["score", "'dot'|str", "callable|function"],
    ),
    "self_attention with a mask that is not square": (
        lambda z: attnlib.self_attention(z(T, D), mask=z(T, S, dtype="bool")), ValueError,
        [sizes(T, S), sizes(T, T)],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("call", "exception", "words"), ERRORS.values(), ids=ERRORS)
def test_an_error_names_what_came(backend, call, exception, words):
    assert_error_names(backend, call, exception, words)


# What torch's transforms ask: nothing depends on the values, nothing leaves the device


@every_call
def test_vmap_is_a_loop(rng, call):
    arguments = {name: torch.tensor(x) for name, x in call.draw(rng).items()}
    batched = {name: x.ndim >= 3 for name, x in arguments.items()}

    def one(*inputs):
        return call(**dict(zip(arguments, inputs, strict=True)))

    in_dims = tuple(0 if batched[name] else None for name in arguments)
    ours = torch.func.vmap(one, in_dims)(*arguments.values())
    loop = [one(*(x[i] if batched[name] else x for name, x in arguments.items())) for i in range(B)]
    for result, parts in zip(ours, zip(*loop, strict=True), strict=True):
        torch.testing.assert_close(result, torch.stack(parts))


def test_vmap_over_masks_is_a_loop(rng):
    query, key, value = (torch.tensor(rng.standard_normal(s)) for s in ((T, D), (S, D), (S, D_V)))
    masks = torch.tensor(rng.random((B, T, S)) < 0.5)
    masks[0, 1] = False
    ours = torch.func.vmap(lambda mask: attnlib.attention(query, key, value, mask=mask))(masks)
    loop = [attnlib.attention(query, key, value, mask=mask) for mask in masks]
    for result, parts in zip(ours, zip(*loop, strict=True), strict=True):
        torch.testing.assert_close(result, torch.stack(parts))


@every_call
def test_jacrev_is_the_jacobian(rng, call):
    inputs = tuple(torch.tensor(x[:1] if x.ndim == 3 else x) for x in call.draw(rng).values())

    def last(*inputs):
        return call(**dict(zip(call.arguments, inputs, strict=True)))[-1]

    ours = torch.func.jacrev(last, argnums=tuple(range(len(inputs))))(*inputs)
    for mine, theirs in zip(ours, torch.autograd.functional.jacobian(last, inputs), strict=True):
        torch.testing.assert_close(mine, theirs)


@every_call
def test_meta_tensors_stay_meta(call):
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        results = call(**{name: torch.empty(s, dtype=dtype, device="meta") for name, s in call.arguments.items()})
        for result, expected in zip(results, call.results, strict=True):
            assert (result.device.type, result.dtype, tuple(result.shape)) == ("meta", dtype, expected)


def test_a_bool_mask_on_meta_stays_meta():
    query, key = torch.empty(T, D, device="meta"), torch.empty(S, D, device="meta")
    mask = torch.empty(T, S, dtype=torch.bool, device="meta")
    assert [x.device.type for x in attnlib.attention(query, key, key, mask=mask)] == ["meta", "meta"]


# Imports


def in_a_fresh_python(program):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=True
    ).stdout


LARGE = {"IPython", "array_api_compat", "dask", "jax", "matplotlib", "pandas", "scipy", "torch", "triton"}
HEAVY = f"print(sorted({LARGE} & set(sys.modules)))"


def test_importing_attnlib_imports_numpy_alone():
    assert in_a_fresh_python(f"import sys, attnlib, attnlib.triton; {HEAVY}") == "[]\n"


def test_parts_that_are_not_imported_yet_are_listed_and_found(monkeypatch):
    for name in attnlib.LAZY_MODULES:
        monkeypatch.delitem(vars(attnlib), name, raising=False)
    assert {"static_cache", *attnlib.LAZY_MODULES} <= set(dir(attnlib))
    assert attnlib.static_cache.StaticCache(3).length == 0


def test_calls_on_numpy_arrays_do_not_import_torch():
    calls = "; ".join(
        f"attnlib.{call.function.__name__}("
        + ", ".join(f"{name}=numpy.ones({shape})" for name, shape in call.arguments.items())
        + "".join(f", {name}={value!r}" for name, value in call.options.items())
        + ")"
        for call in CALLS.values()
        if hasattr(attnlib, call.function.__name__)
    )
    start = "import sys, numpy, attnlib; from attnlib import RopeScaling"
    assert in_a_fresh_python(f"{start}; {calls}; {HEAVY}") == "[]\n"


# Documentation


def modules():
    """The names of attnlib and of all its modules."""
    names = [m.name for m in pkgutil.walk_packages(attnlib.__path__, "attnlib.")]
    return ["attnlib", *(name for name in names if name != "attnlib._triton" or importlib.util.find_spec("triton"))]


def test_every_module_can_be_imported():
    for name in modules():
        importlib.import_module(name)


def has_examples(name):
    """Tell whether a module has examples: doctest takes a long time to find that there are none."""
    return ">>>" in Path(importlib.util.find_spec(name).origin).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [name for name in modules() if has_examples(name)])
def test_the_examples_in_the_docstrings_are_true(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_docstring_has_an_example(name):
    assert doctest.DocTestFinder(recurse=False).find(getattr(attnlib, name))[0].examples


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_docstring_has_its_sections(name):
    for section in ("Args", "Returns", "Raises", "Source"):
        assert re.search(rf"^{section}:", inspect.getdoc(getattr(attnlib, name)), re.MULTILINE), section


@pytest.mark.parametrize("name", [name for name in SIGNATURES if name != "load_weights"])  # its arguments are modules
def test_a_docstring_gives_the_shapes(name):
    # "(..., T, D)", say, somewhere between the section's heading and the next one
    for section in ("Args", "Returns"):
        text = re.split(rf"^{section}:", inspect.getdoc(getattr(attnlib, name)), flags=re.MULTILINE)[1]
        text = re.split(r"^[A-Z]\w+:", text, flags=re.MULTILINE)[0]
        assert re.search(r"\((\.\.\.|[A-Z]\w*)(, ?[\w.*/]+)*,?\)|shape", text), section


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_docstring_explains_every_argument(name):
    text = inspect.getdoc(getattr(attnlib, name))
    for parameter in inspect.signature(getattr(attnlib, name)).parameters:
        assert re.search(rf"^\s+{parameter}\b.*:", text, re.MULTILINE), parameter


def test_what_is_public_is_listed():
    assert set(SIGNATURES) <= set(attnlib.__all__)
    assert all(hasattr(attnlib, name) for name in attnlib.__all__)


# Where calls differ only in their options, the one with the most options is listed.
FOR_EVERY_SIZE = (
    *("softmax", "dot", "general", "cosine", "gaussian", "attention_with_float_mask", "attention_rollout"),
    *("scaled_dot_product_attention_with_all_options", "scaled_dot_product_attention_backward_with_all_options"),
    *("rnn_cell", "gru_cell", "encode_with_lengths", "bahdanau_step_with_float_mask", "luong_step_concat"),
    *("rope_tables_scaled", "rms_norm_with_weight", "swiglu", "sampling_probabilities_with_all_options"),
)
LOWERED = (
    *("softmax", "self_attention", "multi_head_attention", "attention_rollout", "luong_step_general"),
    *("bahdanau_step_with_float_mask", "sampling_probabilities_with_all_options"),
)

# These are called by functions that are listed, or compiled in the tests of heads and of positions.
COMPILED_ELSEWHERE = {
    *(attnlib.scaled_dot, attnlib.additive, attnlib.split_heads, attnlib.merge_heads, attnlib.apply_rope),
}


def test_every_function_is_compiled_here_or_elsewhere():
    here = {CALLS[what].function for what in (*FOR_EVERY_SIZE, *LOWERED)}
    assert here | COMPILED_ELSEWHERE == {call.function for call in CALLS.values()}
    assert not here & COMPILED_ELSEWHERE


@pytest.mark.parametrize(
    ("what", "dynamic", "lowered"),
    [*((what, True, "eager") for what in FOR_EVERY_SIZE), *((what, None, "aot_eager") for what in LOWERED)],
)
def test_torch_compile_sees_one_graph_and_warns_of_nothing(rng, what, dynamic, lowered):
    call = CALLS[what]
    arguments = {name: torch.tensor(x) for name, x in call.draw(rng).items()}
    torch._dynamo.reset()
    compiled = torch.compile(call.function, fullgraph=True, backend=lowered, dynamic=dynamic)
    ours = compiled(**arguments, **call.options)
    for mine, theirs in zip(ours if isinstance(ours, tuple) else (ours,), call(**arguments), strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize(
    "score",
    [functools.partial(attnlib.scaled_dot, scale=0.3), functools.partial(attnlib.gaussian, bandwidth=0.3)],
    ids=["scale", "bandwidth"],
)
def test_torch_compile_takes_a_parameter_that_is_a_number(rng, score):
    query, key = (torch.tensor(rng.standard_normal(shape)) for shape in ((T, D), (S, D)))
    torch._dynamo.reset()
    compiled = torch.compile(score, fullgraph=True, backend="aot_eager", dynamic=True)
    torch.testing.assert_close(compiled(query, key), score(query, key))


@pytest.mark.parametrize("name", ["dot", "scaled_dot", "cosine", "gaussian"])
@pytest.mark.parametrize(
    "mask", [None, torch.ones(T, S, dtype=torch.bool), torch.zeros(T, S)], ids=["none", "bool", "float"]
)
def test_under_autocast_mixed_dtypes_are_torch_s_own_business(rng, name, mask):
    shapes = ((T, D), (S, D), (S, D_V))
    query, key, value = (torch.tensor(rng.standard_normal(shape), dtype=torch.float32) for shape in shapes)
    exact = attnlib.attention(query, key, value, score=getattr(attnlib, name), mask=mask)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        context, _ = attnlib.attention(query.bfloat16(), key, value, score=getattr(attnlib, name), mask=mask)
    torch.testing.assert_close(context.float(), exact, atol=0.1, rtol=0.1)


def test_without_autocast_mixed_dtypes_are_still_refused():
    with pytest.raises(TypeError, match=r"float32.*bfloat16"):
        attnlib.dot(torch.ones(T, D), torch.ones(S, D, dtype=torch.bfloat16))
