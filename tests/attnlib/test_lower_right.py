"""Causal attention of the last queries: on CUDA, torch's kernels align the ends, and no mask (T, S) is made.

A build of torch without CUDA says that it has none of these kernels. Where there is no GPU, the tests pretend that it
has them.
"""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from fake_cuda import Made, fake_cuda, waits_are_errors
from oracle import attend
from torch.nn.attention import SDPBackend, bias, sdpa_kernel
from torch.overrides import TorchFunctionMode

import attnlib._torch_lower_right as lower_right
from attnlib import scaled_dot_product_attention as sdpa
from attnlib._torch_second_derivatives import explain_second_derivative

B, HEADS, T, S, D = 2, 6, 37, 101, 24
CHUNK = {"is_causal": True, "q_offset": S - T}


class Kernel(TorchFunctionMode):
    """Record the keys and the masks that torch's kernel receives."""

    def __init__(self):
        super().__init__()
        self.keys, self.masks = [], []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is F.scaled_dot_product_attention:
            self.keys.append(args[1].shape[-2])
            self.masks.append(args[3])
        return function(*args, **(kwargs or {}))


@pytest.fixture
def kernels(monkeypatch):
    """Decide what torch says when asked for a kernel, in its own module too."""

    def exist(answer):
        for module in (lower_right, bias):
            monkeypatch.setattr(module, "can_use_flash_attention", lambda *_: answer)
            monkeypatch.setattr(module, "can_use_efficient_attention", lambda *_: answer)

    return exist


def fake(queries=T, keys=S, dtype=torch.bfloat16, heads=HEADS):
    """Fake queries, keys and values; call this inside `fake_cuda`."""
    shapes = ((B, HEADS, queries, D), (B, heads, keys, D), (B, heads, keys, D))
    return [torch.empty(shape, dtype=dtype, device="cuda") for shape in shapes]


@pytest.mark.parametrize("later_keys", [0, 1, 5])
def test_the_bias_is_the_rule_and_keys_after_the_last_query_are_left_out(kernels, later_keys):
    kernels(True)
    offset = S - T - later_keys
    with fake_cuda(), Kernel() as kernel:
        out = sdpa(*fake(), is_causal=True, q_offset=offset)
    assert out.shape == (B, HEADS, T, D)
    assert kernel.keys == [T + offset]
    (mask,) = kernel.masks
    exact = [[j <= i + offset for j in range(T + offset)] for i in range(T)]
    assert mask._materialize().tolist() == exact


@pytest.mark.parametrize("heads", [HEADS, 2], ids=["equal heads", "grouped"])
def test_no_mask_of_all_pairs_is_made(kernels, heads):
    kernels(True)
    with fake_cuda():
        inputs = fake(4096, 8192, heads=heads)
        with Made() as made:
            sdpa(*inputs, is_causal=True, q_offset=4096, enable_gqa=True)
    assert made.largest(torch.bool) == 0
    assert made.largest() == inputs[0].numel()  # the context


OTHERWISE = {
    "a key too few": {"is_causal": True, "q_offset": S - T + 1},
    "no offset": {"is_causal": True},
    "before the first key": {"is_causal": True, "q_offset": -1},
    "a window": {"window": (50, 0), "q_offset": S - T},
    "one key more to the right": {"window": (None, 1), "q_offset": S - T - 1},
    "a negative scale": CHUNK | {"scale": -0.5},
}


@pytest.mark.parametrize("options", OTHERWISE.values(), ids=OTHERWISE)
def test_other_rules_get_another_mask(kernels, options):
    kernels(True)
    with fake_cuda(), Kernel() as kernel:
        sdpa(*fake(), **options)
    assert not any(isinstance(mask, bias.CausalBias) for mask in kernel.masks)


def test_a_mask_of_the_caller_is_not_lost(kernels):
    kernels(True)
    with fake_cuda():
        mask = torch.empty(T, S, dtype=torch.bool, device="cuda")
        with Kernel() as kernel:
            sdpa(*fake(), mask, **CHUNK)
    assert not any(isinstance(mask, bias.CausalBias) for mask in kernel.masks)


def test_without_a_kernel_there_are_blocks_of_queries(kernels):
    kernels(False)
    with fake_cuda():
        inputs = fake(4096, 8192)
        with Made() as made:
            sdpa(*inputs, is_causal=True, q_offset=4096)
    assert 0 < made.largest(torch.bool) < 4096 * 8192


@pytest.mark.parametrize("shape", [(T, 0), (0, S)], ids=["no keys", "no queries"])
def test_nothing_to_attend_with_or_to(kernels, shape):
    kernels(True)
    with fake_cuda():
        assert sdpa(*fake(*shape), is_causal=True, q_offset=3).shape == (B, HEADS, shape[0], D)


def test_on_the_cpu_there_is_no_bias(kernels, rng):
    kernels(True)
    q, k = (torch.tensor(rng.standard_normal((B, HEADS, n, D))) for n in (T, S))
    with Kernel() as kernel:
        sdpa(q, k, k, **CHUNK)
    assert not any(isinstance(mask, bias.CausalBias) for mask in kernel.masks)


def test_a_second_derivative_through_views_of_the_output_says_what_to_do():
    q = torch.ones(B, HEADS, T, D, requires_grad=True)
    out = F.scaled_dot_product_attention(q, q, q).transpose(1, 2)[..., : D - 1]
    explain_second_derivative(out)
    (first,) = torch.autograd.grad(out.square().sum(), q, create_graph=True)
    with pytest.raises(RuntimeError, match=r"return_weights=True"):
        first.square().sum().backward()


# CUDA, where there is one

on_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
FLASH, EFFICIENT = SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION
KERNELS = {  # the kernel, the dtype, D, D_v and the heads of keys
    "flash": (FLASH, torch.bfloat16, 64, 64, HEADS),
    "flash, grouped": (FLASH, torch.bfloat16, 64, 64, 2),
    "flash, a width that is padded": (FLASH, torch.float16, 20, 20, HEADS),
    "efficient": (EFFICIENT, torch.float32, 64, 64, HEADS),
    "efficient, other widths of values": (EFFICIENT, torch.float32, 64, 24, HEADS),
    "none, float64": (SDPBackend.MATH, torch.float64, 24, 40, HEADS),
    "none, grouped": (SDPBackend.MATH, torch.float32, 24, 40, 2),
}


def on_gpu(rng, dtype, widths, heads):
    """Random queries, keys and values as NumPy arrays, rounded to the dtype, and as tensors on the GPU."""
    D, D_V = widths
    shapes = ((B, HEADS, T, D), (B, heads, S, D), (B, heads, S, D_V))
    tensors = [torch.tensor(rng.standard_normal(shape)).to(dtype) for shape in shapes]
    return [x.double().numpy() for x in tensors], [x.cuda().requires_grad_() for x in tensors]


@on_cuda
@pytest.mark.parametrize(("kernel", "dtype", "D", "D_V", "heads"), KERNELS.values(), ids=KERNELS)
def test_on_cuda_results_and_gradients_are_exact(rng, kernel, dtype, D, D_V, heads):
    arrays, tensors = on_gpu(rng, dtype, (D, D_V), heads)
    with sdpa_kernel([kernel, SDPBackend.MATH]):
        out = sdpa(*tensors, enable_gqa=True, **CHUNK)
        out.double().square().sum().backward()
    tolerance = {torch.float64: 1e-10, torch.float32: 1e-3}.get(dtype, 3e-2)
    exact = attend(*arrays, enable_gqa=True, **CHUNK).context
    np.testing.assert_allclose(out.detach().double().cpu().numpy(), exact, atol=tolerance, rtol=tolerance)
    copies = [torch.tensor(x, requires_grad=True) for x in arrays]
    sdpa(*copies, enable_gqa=True, **CHUNK).square().sum().backward()
    for mine, theirs in zip(tensors, copies, strict=True):
        found, wanted = mine.grad.double().cpu(), theirs.grad
        torch.testing.assert_close(found, wanted, atol=tolerance * float(wanted.abs().max()), rtol=tolerance)


@on_cuda
@pytest.mark.parametrize("kernel", ["flash", "efficient"])
def test_on_cuda_the_kernel_makes_no_mask(rng, kernel):
    backend, dtype, *widths, heads = KERNELS[kernel]
    _, tensors = on_gpu(rng, dtype, widths, heads)
    with sdpa_kernel([backend]), Made() as made:  # which raises where another one would be needed
        sdpa(*tensors, **CHUNK)
    assert made.largest(torch.bool) == 0


@on_cuda
@pytest.mark.parametrize("kernel", ["flash", "flash, a width that is padded", "efficient"])
def test_on_cuda_a_second_derivative_says_what_to_do(rng, kernel):
    _, dtype, *widths, heads = KERNELS[kernel]
    _, tensors = on_gpu(rng, dtype, widths, heads)
    first = torch.autograd.grad(sdpa(*tensors, **CHUNK).float().square().sum(), tensors, create_graph=True)
    with pytest.raises(RuntimeError, match=r"return_weights=True"):
        first[0].float().square().sum().backward()


@on_cuda
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_on_cuda_dropout_keeps_the_mean(rng, dtype):
    _, (q, k, _) = on_gpu(rng, dtype, (D, D), HEADS)
    out = sdpa(q.detach(), k.detach(), torch.ones_like(k), dropout_p=0.5, **CHUNK)
    assert abs(float(out.float().mean()) - 1) < 0.1
    assert float(out.float().std()) > 0.01


@on_cuda
def test_on_cuda_autocast_decides_the_dtype(rng):
    arrays, tensors = on_gpu(rng, torch.float32, (64, 64), HEADS)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        out = sdpa(*tensors, **CHUNK)
    assert out.dtype == torch.bfloat16
    np.testing.assert_allclose(out.detach().double().cpu(), attend(*arrays, **CHUNK).context, atol=3e-2, rtol=3e-2)


@on_cuda
def test_on_cuda_nothing_waits_for_the_device(rng):
    _, tensors = on_gpu(rng, torch.bfloat16, (64, 64), HEADS)
    sdpa(*tensors, **CHUNK)
    with waits_are_errors():
        sdpa(*tensors, **CHUNK)
