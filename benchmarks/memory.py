"""Peak memory of attention beyond its inputs and outputs, and the time of its backward pass.

`python benchmarks/memory.py` measures one head of 4096 queries and keys, D=64, float32, and prints two tables: the
memory, as `tests/attnlib/peak_memory.py` counts it, and the CPU time of the backward pass by hand and by autograd.
"""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import timing
import torch
import torch.nn.functional as F

from attnlib import scaled_dot_product_attention as sdpa
from attnlib import scaled_dot_product_attention_backward as sdpa_backward

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "attnlib"))
from peak_memory import numpy_peak, torch_peak

T, D = 4096, 64


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def through_autograd(attend: Callable[..., Any], *arrays: torch.Tensor, **options: Any) -> tuple[torch.Tensor, ...]:
    """Return autograd's gradients of query, key and value; the first array is the gradient of the context."""
    grad, *inputs = arrays
    inputs = [x.detach().requires_grad_() for x in inputs]
    results = attend(*inputs, **options)
    return torch.autograd.grad(results, inputs, [grad, grad[..., 0]] if isinstance(results, tuple) else grad)


def memory() -> Iterator[tuple[str, float]]:
    """Yield each call and the MiB that it takes beyond inputs and outputs."""
    x, half = drawn(1, T, D), drawn(1, T, D).half()
    array, out = x.numpy(), 4 * T * D
    numpy_calls: dict[str, tuple[Callable[[], object], int]] = {
        "NumPy, forward": (lambda: sdpa(array, array, array), out),
        "NumPy, dropout": (lambda: sdpa(array, array, array, dropout_p=0.1), out),
        "NumPy, backward by hand": (lambda: sdpa_backward(array, array, array, array), 3 * out),
    }
    torch_calls: dict[str, tuple[Callable[[], object], int]] = {
        "torch, backward by hand": (lambda: sdpa_backward(x, x, x, x), 3 * out),
        "torch, softcap": (lambda: sdpa(x, x, x, softcap=5.0), out),
        "torch, softcap, forward and backward": (lambda: through_autograd(sdpa, x, x, x, x, softcap=5.0), 3 * out),
        "torch, log-sums": (lambda: sdpa(x, x, x, return_lse=True), out + 4 * T),
        "torch, log-sums, forward and backward": (
            lambda: through_autograd(sdpa, x, x, x, x, return_lse=True), 3 * out,
        ),
        "torch, weights (float32)": (lambda: sdpa(x, x, x, return_weights=True), out + 4 * T * T),
        "torch, weights (float16)": (lambda: sdpa(half, half, half, return_weights=True), out // 2 + 2 * T * T),
    }  # fmt: skip
    for calls, peak in ((numpy_calls, numpy_peak), (torch_calls, torch_peak)):
        for name, (call, results) in calls.items():
            call()  # the first call may import modules
            yield name, (peak(call) - results) / 2**20


def times() -> Iterator[tuple[str, float, float]]:
    """Yield the milliseconds that forward and backward take together: by hand, and by torch's autograd."""
    for H, length in ((8, 512), (128, 512), (1, 4096)):
        arrays = [drawn(1, H, length, D) for _ in range(4)]
        for causal in (False, True):
            found = timing.in_turn(
                {
                    "ours": lambda a=arrays, c=causal: sdpa_backward(*a, is_causal=c),
                    "theirs": lambda a=arrays, c=causal: through_autograd(
                        F.scaled_dot_product_attention, *a, is_causal=c
                    ),
                },
                timing.CPU,
                seconds=6,
            )
            kind = "causal" if causal else "full"
            yield f"H={H}, T={length}, {kind}", 1e3 * found["ours"], 1e3 * found["theirs"]


def main() -> None:
    torch.set_num_threads(1)
    print(f"{timing.machine()}; NumPy {np.__version__}, torch {torch.__version__}; T={T}, D={D}, one head, float32\n")
    print("| call | MiB beyond inputs and outputs |\n|---|---:|")
    for name, mib in memory():
        print(f"| {name} | {mib:.1f} |")
    print("\n| backward by hand | ms | torch's autograd, ms | ratio |\n|---|---:|---:|---:|")
    for name, ours, theirs in times():
        print(f"| {name} | {ours:.1f} | {theirs:.1f} | {ours / theirs:.2f} |")


if __name__ == "__main__":
    main()
