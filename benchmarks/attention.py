"""Self-attention side by side: attnlib against plain einsum in NumPy, and against torch's fused kernel.

Both sides of every ratio are measured in turn within one run, so that whatever else the machine does weighs on both.
Run it with `make bench`.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from tqdm import tqdm

import attnlib

LENGTHS = (64, 256, 1024)
HEADS, WIDTH = 8, 64


def ours(x):
    return attnlib.self_attention(x)[0]


def naive(x):
    scores = np.einsum("htd,hsd->hts", x, x) / np.sqrt(x.shape[-1], dtype=x.dtype)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hts,hsd->htd", e / e.sum(-1, keepdims=True), x)


def fused(x):
    return torch.nn.functional.scaled_dot_product_attention(x, x, x)


def alternate(first: Callable, second: Callable, x, rounds: int) -> tuple[float, float]:
    """Return the median seconds of both, called in turn."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds + 1):  # the first round warms up
        for function, kept in zip((first, second), times, strict=True):
            begin = time.perf_counter()
            function(x)
            if isinstance(x, torch.Tensor) and x.is_cuda:
                torch.cuda.synchronize()
            kept.append(time.perf_counter() - begin)
    return statistics.median(times[0][1:]), statistics.median(times[1][1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7, help="how often each is called (default: 7)")
    rounds = parser.parse_args().rounds
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows = []
    for length in tqdm(LENGTHS, desc="measuring", unit="length"):
        x = np.random.default_rng(0).normal(size=(HEADS, length, WIDTH)).astype(np.float32)
        rows.append((length, "NumPy: einsum", *alternate(ours, naive, x, rounds)))
        t = torch.from_numpy(x).to(device)
        rows.append(
            (length, f"torch: fused ({device})", *alternate(lambda x: attnlib.self_attention(x)[0], fused, t, rounds))
        )
    print(
        f"\nself-attention, {HEADS} heads of width {WIDTH}, float32, {torch.get_num_threads()} threads, {rounds} rounds"
    )
    print(f"{'T':>5}  {'compared with':22} {'attnlib ms':>11} {'theirs ms':>10} {'ratio':>6}")
    for length, name, mine, theirs in rows:
        print(f"{length:>5}  {name:22} {1e3 * mine:>11.2f} {1e3 * theirs:>10.2f} {mine / theirs:>6.2f}")


if __name__ == "__main__":
    main()
