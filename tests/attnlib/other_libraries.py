"""Every public function on the arrays of JAX, array-api-strict and dask, compared with its results for NumPy's.

``python other_libraries.py`` prints, as JSON, how each case failed: ``{library: {case: message or null}}``. It needs a
separate process because JAX reads its settings only once, and afterwards warns about every fork of the process.
"""

import importlib
import json
from functools import partial

import numpy as np
import pytest
import torch
from backends import CALLS, D_V, B, D, H, S, T
from numpy.testing import assert_allclose

import attnlib
from attnlib import scaled_dot_product_attention as sdpa

QKV = ((B, H, T, D), (B, H, S, D), (B, H, S, D_V))
MASK = np.tri(T, S, 1, dtype=bool)
MASK[2] = False
FLOAT_MASK = np.where(MASK, np.linspace(-1, 1, S), -np.inf)
LENGTHS = np.array([3, 5])
LIKE = {  # functions of numbers, whose results take their library and device from `like`
    "causal_mask": partial(attnlib.causal_mask, T, S, q_offset=1),
    "window_mask": partial(attnlib.window_mask, T, S, 2, 1),
    "sinusoidal_positions": partial(attnlib.sinusoidal_positions, T, 2 * D),
    "alibi_slopes": partial(attnlib.alibi_slopes, H),
    "alibi_bias": partial(attnlib.alibi_bias, H, T, S, q_offset=-2),
    "relative_buckets": partial(attnlib.relative_buckets, T, S, q_offset=3),
}


def waves(*shapes):
    """Return arrays of numbers between -1 and 1."""
    return [np.sin(np.arange(np.prod(shape)) + len(shape)).reshape(shape) for shape in shapes]


def encoded(*arguments):
    """Return the states of sequences whose lengths are given as an array."""
    *arrays, lengths = arguments
    return attnlib.encode(attnlib.gru_cell, *arrays, lengths=lengths)


MORE = {  # calls whose arguments are not all random numbers: (function, arguments)
    "softmax": (attnlib.softmax, [FLOAT_MASK]),
    "padding_mask": (lambda lengths: attnlib.padding_mask(lengths, S), [LENGTHS]),
    "combine_masks": (attnlib.combine_masks, [MASK, FLOAT_MASK, MASK[1]]),
    "rope_tables": (lambda x: attnlib.rope_tables(x, D + 1), [np.arange(1.0, T)]),
    "attention": (lambda q, k, v, mask: attnlib.attention(q, k, v, mask=mask), [*waves(*QKV), MASK]),
    "sdpa": (partial(sdpa, return_lse=True), [*waves(*QKV), MASK]),
    "sdpa of groups": (
        partial(sdpa, enable_gqa=True, return_weights=True, return_lse=True, softcap=3.0),
        [*waves((B, 6, T, D), (B, 2, S, D), (B, 2, S, D_V)), FLOAT_MASK],
    ),
    "sdpa without keys": (sdpa, waves((T, D), (0, D), (0, D_V))),
    "encode": (encoded, [*waves(*CALLS["encode"].arguments.values()), LENGTHS]),
}


def positional(call):
    """Return a call's function, with its arrays as positional arguments, and random arrays for it."""
    drawn = call.draw(np.random.default_rng(0))
    return lambda *arrays: call(**dict(zip(drawn, arrays, strict=True))), list(drawn.values())


class Library:
    """An array library that computes each operation immediately."""

    def __init__(self, name):
        self.xp = importlib.import_module(name)

    def array(self, x, dtype=None):
        """An array of the library."""
        return self.xp.asarray(np.asarray(x, dtype))

    def numpy(self, x):
        """Return a result as a NumPy array, after checking that it is an array of the library."""
        assert type(x) is type(self.array(1.0)), type(x)
        return np.asarray(x)

    def run(self, function, *arguments):
        """The results as NumPy arrays."""
        return [self.numpy(x) for x in several(function(*map(self.array, arguments)))]

    def dtypes(self, function, *shapes):
        """The dtypes of the results for float32 arrays of these shapes."""
        return [x.dtype for x in several(function(*(self.array(np.ones(shape, "float32")) for shape in shapes)))]


class Jax(Library):
    """JAX: functions are compiled and run with 64 bits, and traced without."""

    def __init__(self):
        super().__init__("jax.numpy")
        self.jax = importlib.import_module("jax")

    def run(self, function, *arguments):
        """The results as NumPy arrays."""
        with self.jax.enable_x64(True):
            return super().run(self.jax.jit(function), *arguments)

    def dtypes(self, function, *shapes):
        """The dtypes of the results for float32 arrays of these shapes."""
        arguments = (self.jax.ShapeDtypeStruct(shape, "float32") for shape in shapes)
        return [x.dtype for x in several(self.jax.eval_shape(function, *arguments))]


def several(results):
    """Return the results as a tuple, even a single one."""
    return results if isinstance(results, tuple) else (results,)


def same(ours, theirs):
    """Fail unless the results are equal up to rounding."""
    for mine, its in zip(ours, theirs, strict=True):
        assert_allclose(mine, its, rtol=1e-11, atol=1e-13)


def everything(library):
    """Yield the cases for every function: the same numbers as with NumPy, and float32 results for float32 arrays."""
    calls = {name: positional(call) for name, call in CALLS.items()} | {f"{name}, more": x for name, x in MORE.items()}
    calls |= {name: (lambda x, f=function: f(like=x), [np.array(1.0)]) for name, function in LIKE.items()}
    for name, (function, arguments) in calls.items():
        yield name, partial(_gives_what_numpy_gives, library, function, arguments)
    for name, call in CALLS.items():
        yield f"{name} in float32", partial(_keeps_float32, library, positional(call)[0], call.arguments.values())
    for name, function in LIKE.items():
        yield f"{name} like float32", partial(library.dtypes, lambda x, f=function: f(like=x), ())


def _gives_what_numpy_gives(library, function, arguments):
    same(library.run(function, *arguments), several(function(*arguments)))


def _keeps_float32(library, function, shapes):
    for dtype in library.dtypes(function, *shapes):
        assert str(dtype).endswith("float32"), dtype


GRADIENTS = {
    "plain": {},
    "causal": {"is_causal": True, "q_offset": 1},
    "two queries before all keys": {"is_causal": True, "q_offset": -2, "scale": 0.7},
    "bool mask": {"attn_mask": MASK},
    "float mask": {"attn_mask": FLOAT_MASK},
    "window and softcap": {"window": (2, 1), "q_offset": -2, "softcap": 2.0},
}
SINGULAR = {  # where a careless formula has a nan gradient: (function, argument)
    "softmax of nothing": (attnlib.softmax, FLOAT_MASK),
    "cosine of 0": (lambda x: attnlib.cosine(x, x), np.array([[0.0, 0.0], [3.0, 4.0], [1.0, -1.0]])),
    "weights of nothing": (
        lambda x: sdpa(x, x, x, is_causal=True, q_offset=-1, softcap=2.0, return_weights=True)[1],
        *waves((T, D)),
    ),
}


def _sdpa_with_biases(q, k, v):
    T, S = q.shape[-2], k.shape[-2]
    near = attnlib.window_mask(T, S, 3, 2, num_sink_tokens=1, like=q)
    causal = attnlib.causal_mask(T, S, q_offset=S - T, like=q)
    return sdpa(q, k, v, attnlib.combine_masks(near, causal, attnlib.alibi_bias(H, T, S, like=q)))


SYMBOLIC = {  # functions of queries, keys and values that are exported for any number of them
    "causal": lambda q, k, v: sdpa(q, k, v, is_causal=True, return_weights=True, return_lse=True),
    "window, ends aligned": lambda q, k, v: sdpa(q, k, v, window=(2, 1), q_offset=k.shape[-2] - q.shape[-2]),
    "masks and a bias": _sdpa_with_biases,
    "backward": lambda q, k, v: attnlib.scaled_dot_product_attention_backward(
        sdpa(q, k, v), q, k, v, is_causal=True, window=(3, None)
    ),
    "positions": lambda q, k, v: (
        attnlib.sinusoidal_positions(q.shape[-2], 4, like=q),
        attnlib.relative_buckets(q.shape[-2], k.shape[-2], like=q),
    ),
}


def transforms(jax):
    """Yield cases that only JAX has: gradients, batches, export, and arrays computed without jit."""
    grad, *qkv = waves((B, H, T, D_V), *QKV)
    for name, options in GRADIENTS.items():
        yield f"gradient, {name}", partial(_has_the_gradient_of_backward, jax, grad, qkv, options)
    for name, (function, x) in SINGULAR.items():
        yield f"gradient, {name}", partial(_has_the_gradient_of_torch, jax, function, x)
    yield "vmap of softmax", partial(_is_a_loop, jax, attnlib.softmax, qkv[:1])
    yield "vmap of sdpa", partial(_is_a_loop, jax, sdpa, [*qkv, np.stack([MASK, ~MASK])])
    for name, function in SYMBOLIC.items():
        yield f"export, {name}", partial(_is_exported_for_all_lengths, jax, function)
    yield "export of a recurrent network", partial(_needs_a_fixed_number_of_steps, jax)
    yield "nan", partial(_spreads_nan, jax, qkv)
    yield "without jit, on two devices", partial(_runs_on_two_devices, jax)
    yield "positions of 32 bits", partial(_does_not_wrap_around, jax, waves((B, H, T, D_V), *QKV))


def _has_the_gradient_of_backward(jax, grad, qkv, options):
    def pulled_back(grad, *qkv):
        arrays = {name: jax.array(x) if isinstance(x, np.ndarray) else x for name, x in options.items()}
        return jax.jax.vjp(lambda *qkv: sdpa(*qkv, **arrays), *qkv)[1](grad)

    same(jax.run(pulled_back, grad, *qkv), attnlib.scaled_dot_product_attention_backward(grad, *qkv, **options))


def _has_the_gradient_of_torch(jax, function, x):
    y = torch.tensor(x, requires_grad=True)
    out = function(y)
    factors = waves(tuple(out.shape))[0]
    (torch.tensor(factors) * out).sum().backward()
    (ours,) = jax.run(jax.jax.grad(lambda x: (factors * function(x)).sum()), x)
    assert np.isfinite(ours).all()
    same([ours], [y.grad.numpy()])


def _is_a_loop(jax, function, arguments):
    loop = np.stack([function(*parts) for parts in zip(*arguments, strict=True)])
    same(jax.run(jax.jax.vmap(function), *arguments), [loop])


def _is_exported_for_all_lengths(jax, function):
    export = jax.jax.export
    T, S = export.symbolic_shape("T, S")
    shapes = (B, H, T, D), (B, H, S, D), (B, H, S, D_V)
    exported = export.export(jax.jax.jit(function))(*(jax.jax.ShapeDtypeStruct(shape, "float32") for shape in shapes))
    for t, s in ((3, 7), (7, 3), (1, 1)):
        arrays = waves((B, H, t, D), (B, H, s, D), (B, H, s, D_V))
        ours = several(exported.call(*(jax.array(x, "float32") for x in arrays)))
        for mine, its in zip(ours, several(function(*arrays)), strict=True):
            assert_allclose(jax.numpy(mine), its, rtol=1e-4, atol=1e-4)


def _needs_a_fixed_number_of_steps(jax):
    (T,) = jax.jax.export.symbolic_shape("T")
    shapes = (B, T, D), (B, H), (H, D), (H, H)
    with pytest.raises(TypeError, match=r"x has shape \(2, T, 11\), but the length T must be a fixed number"):
        jax.jax.eval_shape(
            partial(attnlib.encode, attnlib.rnn_cell), *(jax.jax.ShapeDtypeStruct(shape, "float32") for shape in shapes)
        )


def _spreads_nan(jax, qkv):
    """Check that nan spreads only to the query that contains it, or to queries that may attend to it."""
    q, k, v = (x.copy() for x in qkv)
    q[0, 0, 1, 0] = k[0, 1, 3, 0] = v[0, 2, 3, 1] = np.nan
    (out,) = jax.run(lambda q, k, v: sdpa(q, k, v, jax.array(MASK)), q, k, v)
    expected = np.zeros(out.shape, bool)
    expected[0, 0, 1] = expected[0, 1, 3:] = expected[0, 2, 3:, 1] = True
    certain = np.ones(out.shape, bool)
    certain[0, 2, :3, 1] = False  # masked out, a nan times 0
    assert (np.isnan(out) == expected)[certain].all()


def _runs_on_two_devices(jax):
    sharding = jax.jax.sharding
    mesh = jax.jax.make_mesh((2,), ("batch",), axis_types=(sharding.AxisType.Auto,))
    (x,) = waves((B, T, D))
    halves = jax.jax.device_put(jax.array(x, "float32"), sharding.NamedSharding(mesh, sharding.PartitionSpec("batch")))
    out = jax.numpy(sdpa(halves, halves, halves, is_causal=True))
    assert_allclose(out, sdpa(x, x, x, is_causal=True), rtol=1e-4, atol=1e-5)


def _does_not_wrap_around(jax, arrays):
    """Check that distances which 32 bits do not hold forbid nothing, as in NumPy, or are refused."""
    _, *qkv = arrays
    far = {"is_causal": True, "q_offset": 2**40}
    for options in (far, far | {"window": (2**50, None)}, {"window": (2**33, 2**33)}):
        assert_allclose(jax.numpy(sdpa(*map(jax.array, qkv), **options)), sdpa(*qkv, **options), rtol=1e-4, atol=1e-5)
    ours = attnlib.scaled_dot_product_attention_backward(*map(jax.array, arrays), **far)
    for mine, its in zip(ours, attnlib.scaled_dot_product_attention_backward(*arrays, **far), strict=True):
        assert_allclose(jax.numpy(mine), its, rtol=1e-3, atol=1e-4)
    like = jax.array(1.0)
    assert attnlib.causal_mask(T, S, q_offset=2**30, like=like).all()
    assert attnlib.window_mask(T, S, 2**30, 2**31, q_offset=S - 2**30, like=like).all()
    with pytest.raises(ValueError, match=r"from -2\*\*30 to 2\*\*30 is needed: positions have 32 bits"):
        attnlib.causal_mask(T, S, q_offset=2**31 - 3, like=like)


def failures(cases):
    """Return how each case failed, or None if it did not."""
    found = {}
    for name, case in cases:
        found[name] = None
        try:
            case()
        except Exception as error:
            found[name] = f"{type(error).__name__}: {error}"[:500]
    return found


if __name__ == "__main__":
    jax = Jax()
    found = {"jax": failures([*everything(jax), *transforms(jax)])}
    for name in ("array_api_strict", "dask.array"):
        found[name] = failures(everything(Library(name)))
    print(json.dumps(found))
