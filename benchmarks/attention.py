"""Attention side by side: attnlib against plain NumPy code, torch's kernel, and matrix products alone.

One command, `make bench` or `python benchmarks/attention.py`, measures everything, prints a table and draws it to
`_build/benchmarks/attention.svg`. Times are medians; both sides of every ratio are called in turn within one run.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpu
import matplotlib.pyplot as plt
import numpy as np
import timing
import torch
import torch.nn.functional as F
from tqdm import tqdm

import attnlib
import attnlib.torch
from attnlib.plotting import use_style

H, D = 8, 64  # heads and their width, in float32, for one sequence
LENGTHS = (128, 512, 2048, 4096)
OUT = Path(__file__).parents[1] / "_build" / "benchmarks"
BLOCK_Q, BLOCK_K = 256, 512  # of a block of the two matrix products alone


def drawn(T: int, size: float = 1.0) -> np.ndarray:
    """Queries, keys and values alike; with size 3 the scores are so large that a maximum must be subtracted."""
    return size * np.random.default_rng(0).standard_normal((1, H, T, D)).astype(np.float32)


def plain(x: np.ndarray, causal: bool) -> np.ndarray:
    """Attention in NumPy as it is usually written."""
    scores = np.einsum("bhtd,bhsd->bhts", x, x) / np.sqrt(x.shape[-1], dtype=x.dtype)
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bhts,bhsd->bhtd", weights / weights.sum(-1, keepdims=True), x)


def in_place(x: np.ndarray, causal: bool) -> np.ndarray:
    """The same by matrix products, with every step in place."""
    scores = (x * np.float32(x.shape[-1] ** -0.5)) @ x.swapaxes(-1, -2)
    if causal:
        np.copyto(scores, -np.inf, where=~np.tri(*scores.shape[-2:], dtype=bool))
    scores -= scores.max(-1, keepdims=True)
    np.exp(scores, out=scores)
    out = scores @ x
    out /= scores.sum(-1, keepdims=True)
    return out


def products(x: np.ndarray, causal: bool) -> np.ndarray:
    """The two matrix products alone, block by block: nothing that uses them can be faster."""
    T, out = x.shape[2], np.empty_like(x)
    block = np.empty((min(BLOCK_Q, T), min(BLOCK_K, T)), x.dtype)
    for head, context in zip(x[0], out[0], strict=True):
        for t in range(0, T, BLOCK_Q):
            for s in range(0, min(T, t + BLOCK_Q) if causal else T, BLOCK_K):
                b = block[:, : min(BLOCK_K, (t + BLOCK_Q if causal else T) - s)]
                np.matmul(head[t : t + BLOCK_Q], head[s : s + b.shape[1]].T, out=b)
                np.matmul(b, head[s : s + b.shape[1]], out=context[t : t + BLOCK_Q])
    return out


def numpy_case(T: int, causal: bool, clock: timing.Clock) -> dict[str, float]:
    x, large = drawn(T), drawn(T, 3.0)
    t = torch.from_numpy(x)
    rivals = {
        "attnlib": lambda: attnlib.scaled_dot_product_attention(x, x, x, is_causal=causal),
        "attnlib, large scores": lambda: attnlib.scaled_dot_product_attention(large, large, large, is_causal=causal),
        "torch": lambda: F.scaled_dot_product_attention(t, t, t, is_causal=causal),
        "matrix products": lambda: products(x, causal),
    }
    slow = {"NumPy, in place": lambda: in_place(x, causal), "NumPy, plain": lambda: plain(x, causal)}
    if T < 2048:
        return timing.in_turn(rivals | slow, clock, seconds=20)
    times = timing.in_turn(rivals, clock, seconds=15 if T < 4096 else 40)  # the slow ones would leave it few turns
    return times | timing.in_turn(slow, clock, seconds=5)


def torch_case(shape: tuple[int, ...], causal: bool, clock: timing.Clock) -> dict[str, float]:
    q, k, v = (torch.randn(shape) for _ in range(3))
    rivals = {
        "attnlib": lambda: attnlib.scaled_dot_product_attention(q, k, v, is_causal=causal),
        "torch": lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
    }
    return timing.in_turn(rivals, clock, seconds=6, calls=500 if shape[2] < 100 else 1)


def layer_case(T: int, need_weights: bool, clock: timing.Clock) -> dict[str, float]:
    theirs = torch.nn.MultiheadAttention(H * D, H, batch_first=True).eval()
    ours = attnlib.load_weights(attnlib.torch.MultiHeadAttention(H * D, H), theirs).eval()
    x = torch.randn(1, T, H * D)
    rivals: dict[str, Callable[[], Any]] = {
        "attnlib": lambda: ours(x, need_weights=need_weights),
        "torch": lambda: theirs(x, x, x, need_weights=need_weights, average_attn_weights=False),
    }
    with torch.inference_mode():
        return timing.in_turn(rivals, clock, seconds=40)


def measured(threads: int | None) -> list[dict[str, Any]]:
    """Measure everything in this process: the CPU's time at one thread, else the time that passes."""
    clock = timing.CPU if threads == 1 else timing.WALL
    if threads is not None:
        torch.set_num_threads(threads)
    cases: list[tuple[str, str, Callable[[], dict[str, float]]]] = []
    for causal in (False, True):
        kind = "causal" if causal else "full"
        for T in LENGTHS:
            cases.append(("NumPy", f"T={T} {kind}", lambda T=T, c=causal: numpy_case(T, c, clock)))
        for shape in ((1, 4, 16, 32), (1, H, 1024, D), (1, H, 2048, D)):
            cases.append(("torch", f"T={shape[2]} {kind}", lambda s=shape, c=causal: torch_case(s, c, clock)))
    for T in (512, 2048):
        for weights in (False, True):
            name = f"T={T} {'with weights' if weights else 'without weights'}"
            cases.append(("MultiHeadAttention", name, lambda T=T, w=weights: layer_case(T, w, clock)))
    label = "one thread" if threads == 1 else "all threads"
    bar = tqdm(cases, desc=f"measuring, {label}", unit="case")
    return [{"what": what, "case": name, "threads": label, "seconds": run()} for what, name, run in bar]


def memory(T: int = 4096) -> dict[str, float]:
    """Return the MiB that are needed beyond inputs and output."""
    x, peaks = drawn(T), {}
    for name, run in (
        ("attnlib", attnlib.scaled_dot_product_attention),
        ("NumPy, plain", lambda q, k, v: plain(q, False)),
    ):
        run(*(x[:, :, : T // 4],) * 3)  # what is imported at the first call is not counted
        tracemalloc.start()
        run(x, x, x)
        peaks[name] = (tracemalloc.get_traced_memory()[1] - x.nbytes) / 2**20
        tracemalloc.stop()
    return peaks


def import_times(rounds: int = 15) -> dict[str, float]:
    """Return the seconds of two imports, each in a fresh Python that has imported nothing else, from compiled files."""
    program = "import time; begin = time.perf_counter(); import {}; print(time.perf_counter() - begin)"
    times: dict[str, list[float]] = {"attnlib": [], "numpy": []}
    with tempfile.TemporaryDirectory() as compiled:
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": compiled}
        for _ in range(1 + rounds):  # the first compiles
            for name, kept in times.items():
                command = [sys.executable, "-c", program.format(name)]
                kept.append(float(subprocess.check_output(command, env=environment)))
    return {name: sorted(kept[1:])[rounds // 2] for name, kept in times.items()}


def table(rows: list[dict[str, Any]]) -> str:
    lines = []
    for what in dict.fromkeys(row["what"] for row in rows):
        chosen = [row for row in rows if row["what"] == what]
        others = [name for name in chosen[0]["seconds"] if name != "attnlib"]
        lines += [f"\n**{what}**: attnlib's milliseconds, and their ratio to those of ...\n"]
        lines += ["| " + " | ".join(["case", "threads", "attnlib ms", *others]) + " |"]
        lines += ["|---|---|" + "---:|" * (1 + len(others))]
        for row in chosen:
            mine = row["seconds"]["attnlib"]
            ratios = [f"{mine / row['seconds'][name]:.2f}" for name in others]
            lines += ["| " + " | ".join([row["case"], row["threads"], f"{1e3 * mine:.3f}", *ratios]) + " |"]
    return "\n".join(lines)


def drawing(rows: list[dict[str, Any]], file: Path) -> None:
    """Draw the seconds of the NumPy cases at one thread over the length, full and causal."""
    use_style()
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
    for ax, kind in zip(axes, ("full", "causal"), strict=True):
        chosen = [r for r in rows if r["what"] == "NumPy" and r["threads"] == "one thread" and r["case"].endswith(kind)]
        for name in chosen[0]["seconds"]:
            ax.loglog(LENGTHS, [1e3 * row["seconds"][name] for row in chosen], marker="o", label=name)
        ax.set(title=kind, xlabel="T queries and keys", xticks=LENGTHS, xticklabels=LENGTHS)
        ax.minorticks_off()
    axes[0].set_ylabel("ms of CPU time")
    axes[0].legend()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, facecolor="white", metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--threads", type=int, help="measure with N threads only (0 for all), and print JSON", metavar="N"
    )
    threads = parser.parse_args().threads
    if threads is not None:
        print(json.dumps(measured(threads or None)))
        return
    rows = []
    for count in (1, 0):
        command = [sys.executable, __file__, "--threads", str(count)]
        rows += json.loads(subprocess.run(command, env=timing.environment(count or None), stdout=-1, check=True).stdout)
    extra, imports = memory(), import_times()
    print(f"\n{timing.machine()}; H={H}, D={D}, float32; NumPy {np.__version__}, torch {torch.__version__}")
    print("One thread: CPU time. All threads: elapsed time.")
    print(table(rows))
    small = [row["seconds"] for row in rows if row["what"] == "torch" and row["case"].startswith("T=16 ")]
    print(
        "\nOverhead on torch's own call at B=1 H=4 T=16 D=32, full and causal, on one thread and on all:",
        ", ".join(f"{1e6 * (s['attnlib'] - s['torch']):.2f} µs" for s in small),
    )
    print(
        "Memory beyond input and output at T=4096:", ", ".join(f"{name} {mib:.1f} MiB" for name, mib in extra.items())
    )
    print(f"import attnlib takes {1e3 * (imports['attnlib'] - imports['numpy']):.1f} ms more than import numpy")
    print("\n".join(gpu.report("cuda")) if torch.cuda.is_available() else "There is no CUDA device.")
    drawing(rows, OUT / "attention.svg")
    print(f"The figure is in {OUT / 'attention.svg'}")


if __name__ == "__main__":
    main()
