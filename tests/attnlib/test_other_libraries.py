"""Libraries other than NumPy and torch: every function runs on their arrays, and unsupported uses are refused."""

import json
import os
import subprocess
import sys
from pathlib import Path

import array_api_strict
import numpy as np
import pytest
import scipy.sparse
import test_sdpa_nonfinite as nonfinite
import torch
from backends import D_V, B, D, H, Numpy, S, T, Torch
from numpy.testing import assert_allclose
from sdpa_cases import ALL, NOTHING, QKV, forbidden_rows, run

import attnlib
from attnlib import numpy as of_numpy
from attnlib import torch as of_torch
from attnlib._arrays import namespace
from attnlib.cache import KVCache

SETTINGS = {
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"  # to compile faster
    " --xla_force_host_platform_device_count=2",
    "DASK_SCHEDULER": "synchronous",
}


class Strict(Numpy):
    """Arrays of array-api-strict, which has only what the standard requires."""

    dtypes = ("float32", "float64")

    def __str__(self):
        return "array_api_strict"

    def array(self, x, dtype="float64"):
        return array_api_strict.asarray(np.array(x, dtype))

    def numpy(self, x):
        assert type(x) is type(self.array(1.0))
        return np.asarray(x).astype(np.float64)


STRICT = Strict()


@pytest.fixture(scope="module")
def outcomes():
    """Return how each case of other_libraries.py failed, by library."""
    command = [sys.executable, "-W", "error", str(Path(__file__).parent / "other_libraries.py")]
    done = subprocess.run(command, env=os.environ | SETTINGS, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("library", ["jax", "array_api_strict", "dask.array"])
def test_every_function_gives_what_it_gives_for_numpy(outcomes, library):
    assert {case: how for case, how in outcomes[library].items() if how is not None} == {}
    of_models = {"generate", "generate_speculatively", "load_weights"}  # layers and models have only two libraries
    functions = set(attnlib.__all__) - of_models - {"RopeScaling"}  # an argument of rope_tables
    assert not {name for name in functions if not any(case.startswith(name) for case in outcomes[library])}


# What holds for the other kernels


@pytest.mark.parametrize("rule", NOTHING)
@pytest.mark.parametrize("softcap", [None, 3.0])
def test_a_query_that_may_attend_to_nothing_gets_0(rng, rule, softcap):
    arrays = [rng.standard_normal(shape) for shape in QKV]
    ours = run(STRICT, *arrays, **NOTHING[rule], **ALL, softcap=softcap)
    empty = forbidden_rows(NOTHING[rule])
    assert (ours[0][..., empty, :] == 0).all()
    assert (ours[1][..., empty, :] == 0).all()
    assert (ours[2][..., empty] == -np.inf).all()
    for mine, its in zip(ours, run(Numpy(), *arrays, **NOTHING[rule], **ALL, softcap=softcap), strict=True):
        assert_allclose(mine, its, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("rule", ["all", "causal, placed", "window", "weights, causal"])
@pytest.mark.parametrize("size", ["one key", "few keys"])
def test_nan_and_inf_are_treated_by_the_same_rule(rng, size, rule):
    with np.errstate(invalid="ignore"):  # array-api-strict computes with NumPy
        nonfinite.test_a_query_that_attends_to_nan_has_context_nan(STRICT, rng, size, rule, "float64")
        nonfinite.test_a_score_of_inf_is_nan_and_one_of_minus_inf_no_weight(STRICT, rng, size, rule)
        nonfinite.test_an_infinite_value_is_an_infinite_context(STRICT, rng, size, rule, "float64")
        for kind in ("bool", "float"):
            nonfinite.test_a_nan_that_may_attend_to_nothing_stays_alone(STRICT, rng, size, kind, "float64")


# What is refused


PAIRS = [(STRICT, Numpy()), (Numpy(), STRICT), (STRICT, Torch("cpu")), (Torch("cpu"), STRICT)]
MIXED = {
    "query and key": lambda one, other: attnlib.dot(one(T, D), other(S, D)),
    "query and value": lambda one, other: attnlib.attention(one(T, D), one(S, D), other(S, D_V)),
    "query and float mask": lambda one, other: attnlib.attention(one(T, D), one(S, D), one(S, D_V), mask=other(T, S)),
    "two masks": lambda one, other: attnlib.combine_masks(one(T, S), other(T, S)),
    "vectors and tables": lambda one, other: attnlib.apply_rope(one(T, 2), other(T, 1), other(T, 1)),
}


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=str)
@pytest.mark.parametrize("call", MIXED.values(), ids=MIXED)
def test_two_libraries_are_refused_by_name(one, other, call):
    with pytest.raises(TypeError, match="an array of array_api_strict") as caught:
        call(lambda *shape: one.array(np.ones(shape)), lambda *shape: other.array(np.ones(shape)))
    assert "numpy.ndarray" in str(caught.value) or "torch.Tensor" in str(caught.value)


def test_lengths_of_another_library_are_refused():
    x, h, lengths = (STRICT.array(np.ones(shape)) for shape in ((B, T, D), (B, D), (B,)))
    with pytest.raises(TypeError, match=r"lengths is a torch.Tensor but x is an array of array_api_strict"):
        attnlib.encode(lambda x, h: h, x, h, lengths=torch.tensor([T, T]))
    with pytest.raises(TypeError, match=r"lengths has dtype .*float64, but integers"):
        attnlib.encode(lambda x, h: h, x, h, lengths=lengths)


@pytest.mark.parametrize(
    ("no_array", "advice"),
    [
        (scipy.sparse.csr_array(np.eye(T)), r"sparse csr_array.*pass query.toarray\(\)"),
        (np.float64(3.0), "got float64"),
        (np.ndarray, "got type"),
        ([[1.0]], "got list: wrap it in np.asarray"),
        (np.ma.masked_array(np.eye(T)), r"MaskedArray.*filled\(0\)"),
    ],
    ids=lambda x: type(x).__name__,
)
def test_what_is_no_dense_array_is_refused(no_array, advice):
    with pytest.raises(TypeError, match=advice):
        attnlib.dot(no_array, np.eye(T))


def test_dropout_is_refused_with_what_to_do_instead():
    query, key, value = (STRICT.array(np.ones(shape)) for shape in QKV)
    with pytest.raises(NotImplementedError, match="return_weights=True"):
        attnlib.scaled_dot_product_attention(query, key, value, dropout_p=0.5)
    out, weights = attnlib.scaled_dot_product_attention(query, key, value, return_weights=True)
    assert_allclose(STRICT.numpy(weights @ value), STRICT.numpy(out))


def test_a_scale_that_is_an_array_is_refused():
    query = STRICT.array(np.ones((T, D)))
    with pytest.raises(TypeError, match="scale is an array of array_api_strict, but a plain number is needed"):
        attnlib.scaled_dot(query, query, scale=STRICT.array(0.5))


@pytest.mark.parametrize("layers", [of_numpy, of_torch], ids=["numpy", "torch"])
def test_layers_are_for_their_own_library(layers):
    with pytest.raises(TypeError, match=r"query is an array of array_api_strict but q_proj.weight is a (numpy|torch)"):
        layers.MultiHeadAttention(2 * H, H)(STRICT.array(np.ones((B, T, 2 * H))))


def test_a_cache_is_for_arrays_that_it_can_write_to():
    cache, x = KVCache(), STRICT.array(np.ones((B, H, T, D)))
    with pytest.raises(TypeError, match=r"key is an array of array_api_strict, but .* numpy.ndarray or torch.Tensor"):
        cache.append(x, x)
    assert cache.length == 0


def test_without_array_api_compat_an_array_of_dask_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "array_api_compat", None)
    array = type("Array", (), {"__module__": "dask.array.core"})()
    with pytest.raises(ModuleNotFoundError, match=r"dask.*array-api-compat.*pip install 'attnlib\["):
        namespace(array)
