"""scaled_dot_product_attention of torch in blocks: softcap, log-sums, and weights of half precision.

Blocks are tiny here, so that small arrays have several. Transforms other than autograd compute all scores at once.
"""

import numpy as np
import pytest
import torch
from backends import D_V, B, D, H, S, T, Torch
from oracle import attend
from peak_memory import peak_of
from sdpa_cases import INF, heads, random_mask, run
from test_sdpa import CASES, assert_is
from torch.autograd import forward_ad

from attnlib import scaled_dot_product_attention as sdpa

MIB = 2**20
CPU = Torch("cpu")
WAYS = {
    "softcap": {"softcap": 1.3},
    "lse": {"return_lse": True},
    "lse, window and softcap": {"return_lse": True, "softcap": 0.8, "window": (2, 3), "q_offset": 2},
    "lse, mask and causal": {"return_lse": True, "attn_mask": ("bool", (B, 1, T, S)), "is_causal": True},
    "softcap, float mask": {"softcap": 2.0, "attn_mask": ("float", (6, T, S))},
}
every_way = pytest.mark.parametrize("way", WAYS)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr("attnlib._score_blocks.MAX_SCORES", 2 * S)
    monkeypatch.setattr("attnlib._score_blocks.MAX_ROWS", 2)


@pytest.fixture
def seen_blocks(monkeypatch):
    """Record how many scores each step of torch's kernel receives."""
    import attnlib._torch_score_blocks as kernel

    seen, step = [], kernel.attend_unfused

    def spy(query, key, *rest):
        seen.append(query.shape[-2] * key.shape[-2])
        return step(query, key, *rest)

    monkeypatch.setattr(kernel, "attend_unfused", spy)
    return seen


def inputs(rng, way, requires_grad=False):
    """Return queries with six heads, keys and values with two, a single batch of values, and the options."""
    shapes = ((B, 6, T, D), (B, 2, S, D), (1, 2, S, D_V))
    tensors = [torch.tensor(rng.standard_normal(shape), requires_grad=requires_grad) for shape in shapes]
    options = {"enable_gqa": True} | WAYS[way]
    if "attn_mask" in options:
        options["attn_mask"] = torch.tensor(random_mask(rng, *options["attn_mask"]))
    return tensors, options


def results_of(tensors, options):
    results = sdpa(*tensors, **options)
    return results if isinstance(results, tuple) else (results,)


def at_once(monkeypatch, call):
    """Return what a call returns if a single block holds all scores."""
    with monkeypatch.context() as patched:
        patched.setattr("attnlib._score_blocks.MAX_SCORES", 10**9)
        return call()


# The same numbers


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.usefixtures("small_blocks")
def test_blocks_are_what_the_loops_say(case):
    context, lse = run(CPU, *case.arrays, **case.options, return_lse=True)
    assert_is((context, lse), (case.expected.context, case.expected.lse))


@pytest.mark.usefixtures("small_blocks")
def test_weights_of_half_precision_are_those_of_the_loops(rng, seen_blocks):
    arrays = [rng.standard_normal(shape).astype(np.float16) for shape in heads(6, 2, 2)]
    mask = random_mask(rng, "bool", (B, 6, T, S))
    options = {"enable_gqa": True, "is_causal": True, "q_offset": 1}
    ours = run(CPU, *arrays, mask, **options, dtype="float16", return_weights=True, return_lse=True)
    assert_is(ours, attend(*arrays, mask, **options), rtol=1e-3, atol=1e-3)
    assert len(seen_blocks) > B * 6


@every_way
@pytest.mark.usefixtures("small_blocks")
def test_first_and_second_derivatives_are_those_of_all_scores_at_once(rng, monkeypatch, seen_blocks, way):
    tensors, options = inputs(rng, way, requires_grad=True)

    def derivatives():
        results = results_of(tensors, options)
        loss = sum(x.masked_fill(x == -INF, 0.0).sin().sum() for x in results)
        first = torch.autograd.grad(loss, tensors, create_graph=True)
        second = torch.autograd.grad(sum(x.square().sum() for x in first), tensors)
        return *results, *first, *second

    ours = derivatives()
    assert len(seen_blocks) > B * 6
    for mine, theirs in zip(ours, at_once(monkeypatch, derivatives), strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.usefixtures("small_blocks")
def test_a_float_mask_keeps_its_gradient(rng):
    tensors, options = inputs(rng, "softcap, float mask")
    mask = torch.tensor(rng.standard_normal((T, S)), requires_grad=True)
    options["attn_mask"] = mask
    assert torch.autograd.gradcheck(lambda mask: sdpa(*tensors, **options | {"attn_mask": mask}), mask, fast_mode=True)


@pytest.mark.usefixtures("small_blocks")
def test_an_empty_row_has_gradient_0_even_if_that_of_its_log_sum_is_nan(rng):
    tensors, options = inputs(rng, "lse", requires_grad=True)
    allowed = torch.ones(T, S, dtype=torch.bool)
    allowed[1] = False
    _, lse = sdpa(*tensors, allowed, **options)
    both = torch.logaddexp(lse, lse)  # as where two parts of the keys are merged: of -inf, its derivative is nan
    ours = torch.autograd.grad(both[both > -INF].sum(), tensors[:2], retain_graph=True)
    for mine, theirs in zip(ours, torch.autograd.grad(lse[lse > -INF].sum(), tensors[:2]), strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.usefixtures("small_blocks")
def test_the_weights_that_dropout_leaves_are_those_used(rng):
    q, k, v = (torch.tensor(rng.standard_normal((H, n, D))) for n in (T, S, S))
    out, weights = sdpa(q, k, v, dropout_p=0.5, softcap=2.0, return_weights=True)
    torch.testing.assert_close(out, weights @ v)
    assert (weights == 0).any()
    assert (weights != 0).any()


# Transforms


@pytest.mark.slow
@every_way
@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")  # which torch's own rules use
@pytest.mark.usefixtures("small_blocks")
def test_vmap_and_forward_derivatives_take_all_scores_at_once(rng, monkeypatch, way):
    (q, k, v), options = inputs(rng, way)
    batch = torch.stack([q, 2 * q])

    def function(q):
        return results_of((q, k, v), options)

    mapped = torch.func.vmap(function)(batch)
    for mine, *theirs in zip(mapped, *map(function, batch), strict=True):
        torch.testing.assert_close(mine, torch.stack(theirs))
    _, tangents = torch.func.jvp(function, (q,), (q,))
    with forward_ad.dual_level():
        duals = [forward_ad.unpack_dual(x).tangent for x in function(forward_ad.make_dual(q, q))]
    for mine, theirs in zip(duals, tangents, strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.usefixtures("small_blocks")
def test_torch_compile_sees_one_graph_of_all_scores(rng):
    torch._dynamo.reset()
    (q, k, v), options = inputs(rng, "lse, window and softcap", requires_grad=True)
    compiled = torch.compile(lambda q, k, v: sdpa(q, k, v, **options), fullgraph=True, backend="aot_eager")
    for mine, theirs in zip(compiled(q, k, v), sdpa(q, k, v, **options), strict=True):
        torch.testing.assert_close(mine, theirs)
        for one, other in zip(*(torch.autograd.grad(x.sum(), (q, k), retain_graph=True) for x in (mine, theirs)),
                              strict=True):  # fmt: skip
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.usefixtures("small_blocks")
def test_autocast_decides_the_dtype_as_it_does_for_all_scores_at_once(rng, monkeypatch, dtype):
    (q, k, v), options = inputs(rng, "lse, window and softcap")
    tensors = [x.to(dtype).requires_grad_() for x in (q, k, v)]

    def call():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            results = sdpa(*tensors, **options)
        return *results, *torch.autograd.grad(sum(x.sum() for x in results), tensors)

    for mine, theirs in zip(call(), at_once(monkeypatch, call), strict=True):
        torch.testing.assert_close(mine, theirs, atol=0.1, rtol=0.03)


# Memory


@pytest.mark.parametrize("options", [{"softcap": 5.0}, {"return_lse": True}], ids=str)
def test_forward_and_backward_need_no_more_than_8_mib_beside_the_results(options):
    x = [torch.zeros(1, 2048, 64, requires_grad=True) for _ in range(3)]

    def forward_and_backward():
        results = results_of(x, options)
        return results, torch.autograd.grad(sum(r.sum() for r in results), x)

    results = 4 * 2048 * (4 * 64 + 1)
    assert peak_of(CPU, forward_and_backward) - results <= 8 * MIB, "all scores are 16 MiB"


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"softcap": 5.0}], ids=str)
def test_weights_of_half_precision_need_no_copy_of_all_scores_in_float32(options):
    x = torch.zeros(1, 2048, 64, dtype=torch.float16)
    weights, context = 2 * 2048 * 2048, 2 * 2048 * 64
    assert peak_of(CPU, lambda: sdpa(x, x, x, return_weights=True, **options)) - weights - context <= 8 * MIB
