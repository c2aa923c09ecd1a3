"""Attention on a GPU, each case against the best that torch offers for it.

`benchmarks/attention.py` calls this if there is a CUDA device, and `python benchmarks/gpu.py` runs it alone. With
`--device cpu`, all cases that a CPU can run are run with small sizes, which shows that they still work.
"""

import argparse
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from time import perf_counter
from typing import NamedTuple

import timing
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention.bias import causal_lower_right
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import attnlib
import attnlib.torch
import attnlib.triton
from attnlib import scaled_dot_product_attention as sdpa

CAP = 30.0
Rivals = dict[str, Callable[[], object]]


class Setting(NamedTuple):
    """Where to measure, and how large everything is."""

    device: str
    dtype: torch.dtype
    T: int
    heads: int
    width: int
    window: int
    side: int  # of the square matrices whose product shows how fast the device can be
    layers: int
    seconds: float  # for one case

    def drawn(self, *lengths: int) -> list[Tensor]:
        """Return random tensors (1, heads, length, width), one of each length."""
        return [
            torch.randn(1, self.heads, n, self.width, device=self.device, dtype=self.dtype)
            for n in lengths
        ]  # fmt: skip


GPU = Setting("cuda", torch.bfloat16, 16384, 16, 128, 1023, 8192, 8, 1.0)
CPU = Setting("cpu", torch.float32, 640, 2, 16, 30, 256, 2, 0.1)


def whole(setting: Setting, T: int, causal: bool) -> Rivals:
    q, k, v = setting.drawn(T, T, T)
    rivals: Rivals = {
        "attnlib": lambda: sdpa(q, k, v, is_causal=causal),
        "torch": lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal),
    }
    return rivals | with_triton(setting, lambda: attnlib.triton.scaled_dot_product_attention(q, k, v, is_causal=causal))


def chunk(setting: Setting) -> Rivals:
    """The last quarter of a prompt."""
    T, S = setting.T // 4, setting.T
    q, k, v = setting.drawn(T, S, S)
    mask = attnlib.causal_mask(T, S, q_offset=S - T, like=q)
    return {
        "attnlib": lambda: sdpa(q, k, v, is_causal=True, q_offset=S - T),
        "torch, causal_lower_right": lambda: F.scaled_dot_product_attention(q, k, v, causal_lower_right(T, S)),
        "torch, mask made beforehand": lambda: F.scaled_dot_product_attention(q, k, v, mask),
    }


def window(setting: Setting) -> Rivals:
    T, left = setting.T, setting.window
    q, k, v = setting.drawn(T, T, T)
    mask = attnlib.window_mask(T, T, left, 0, like=q)

    def ours(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return sdpa(q, k, v, is_causal=True, window=(left, None))

    rivals: Rivals = {
        "attnlib": lambda: ours(q, k, v),
        "torch, mask made beforehand": lambda: F.scaled_dot_product_attention(q, k, v, mask),
    }
    if setting.device == "cuda":
        compiled, flex = torch.compile(ours, dynamic=False), torch.compile(flex_attention, dynamic=False)
        blocks = create_block_mask(lambda b, h, i, j: (j <= i) & (i - left <= j), None, None, T, T, setting.device)
        rivals["attnlib, compiled"] = lambda: compiled(q, k, v)
        rivals["flex_attention, block mask made beforehand"] = lambda: flex(q, k, v, block_mask=blocks)
    ours_in_triton = attnlib.triton.scaled_dot_product_attention
    return rivals | with_triton(setting, lambda: ours_in_triton(q, k, v, is_causal=True, window=(left, None)))


def softcap(setting: Setting) -> Rivals:
    T = setting.T // 4
    q, k, v = setting.drawn(T, T, T)

    def written_out() -> Tensor:
        scores = q @ k.mT * setting.width**-0.5
        return torch.softmax(CAP * torch.tanh(scores / CAP), -1) @ v

    rivals: Rivals = {"attnlib": lambda: sdpa(q, k, v, softcap=CAP), "torch, written out": written_out}
    if setting.device == "cuda":
        flex = torch.compile(flex_attention, dynamic=False)
        rivals["flex_attention"] = lambda: flex(q, k, v, score_mod=lambda s, b, h, i, j: CAP * torch.tanh(s / CAP))
    return rivals | with_triton(setting, lambda: attnlib.triton.scaled_dot_product_attention(q, k, v, softcap=CAP))


def with_triton(setting: Setting, run: Callable[[], object]) -> Rivals:
    return {"attnlib.triton": run} if setting.device == "cuda" and find_spec("triton") else {}


def decoding(setting: Setting) -> Rivals:
    """One token through a stack, with a cache that is half full; the cache is emptied to that point after each call."""
    heads, width, held = setting.heads, setting.heads * setting.width, setting.T // 16
    stack = attnlib.torch.Encoder(width, heads, 4 * width, setting.layers, rope=True)
    stack = stack.to(setting.device, setting.dtype).eval().requires_grad_(False)
    prompt, token = (torch.randn(1, n, width, device=setting.device, dtype=setting.dtype) for n in (held, 1))
    growing, fixed = stack.new_cache(), [attnlib.torch.StaticCache(2 * held) for _ in stack.layers]
    for cache in (growing, fixed):
        stack(prompt, is_causal=True, cache=cache)

    def step(cache: list[attnlib.torch.KVCache]) -> Tensor:
        out = stack(token, is_causal=True, cache=cache)
        for one in cache:
            one.truncate(held)
        return out

    rivals: Rivals = {
        "attnlib, KVCache": lambda: step(growing),
        "attnlib, StaticCache": lambda: step([*fixed]),
        "torch, the prompt again": lambda: stack(torch.cat([prompt, token], 1), is_causal=True),
    }
    if setting.device == "cuda":
        rivals["attnlib, StaticCache, captured"] = captured(lambda: step([*fixed]))
        rivals["torch, written out without rope, captured"] = captured(written_out_step(stack, token, 2 * held, held))
    return rivals


def written_out_step(stack: attnlib.torch.Encoder, token: Tensor, room: int, held: int) -> Callable[[], Tensor]:
    """Return the same step without attnlib and without rope: what is left to gain by leaving out all options."""
    at = torch.tensor([held], device=token.device)
    shape = (1, stack.layers[0].self_attn.num_heads, room, stack.layers[0].self_attn.head_dim)
    memory = [[token.new_zeros(shape) for _ in range(2)] for _ in stack.layers]

    def step() -> Tensor:
        x, seen = token, (torch.arange(room, device=token.device) <= at)[None]
        for layer, (keys, values) in zip(stack.layers, memory, strict=True):
            attend, y = layer.self_attn, layer.norm1(x)
            q, k, v = (
                p(y).unflatten(-1, (shape[1], -1)).transpose(1, 2)
                for p in (attend.q_proj, attend.k_proj, attend.v_proj)
            )
            keys.index_copy_(2, at, k)
            values.index_copy_(2, at, v)
            context = F.scaled_dot_product_attention(q, keys, values, seen)
            x = x + attend.out_proj(context.transpose(1, 2).flatten(2))
            x = x + layer.linear2(F.relu(layer.linear1(layer.norm2(x))))
        return stack.norm(x)

    return step


def captured(step: Callable[[], object]) -> Callable[[], object]:
    """Return a function that replays a step as a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # the first call allocates what cannot be allocated while a graph is captured
        step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    def replay(_: object = step) -> None:  # keeps the step's tensors alive: the graph has only their addresses
        graph.replay()

    return replay


def cases(setting: Setting) -> dict[str, Callable[[], Rivals]]:
    T, part = setting.T, setting.T // 4
    return {
        f"T={part} full": lambda: whole(setting, part, False),
        f"T={part} causal": lambda: whole(setting, part, True),
        f"T={T} full": lambda: whole(setting, T, False),
        f"T={T} causal": lambda: whole(setting, T, True),
        f"the last {part} queries of {T}, causal": lambda: chunk(setting),
        f"T={T} causal, window of {setting.window + 1} keys": lambda: window(setting),
        f"T={part} full, softcap": lambda: softcap(setting),
        f"one token after {T // 16}, {setting.layers} layers": lambda: decoding(setting),
    }


def clock(device: str) -> timing.Clock:
    """Return a clock that waits for the device before it looks at the time."""

    def now() -> float:
        if device == "cuda":
            torch.cuda.synchronize()
        return perf_counter()

    return now


def peak(run: Callable[[], object]) -> float:
    """Return the MiB of the GPU that a call needs beyond its inputs, its result included."""
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    torch.cuda.synchronize()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def report(device: str) -> Iterator[str]:
    """Measure all cases, and yield the lines of a table."""
    setting = GPU if device == "cuda" else CPU
    a, b = (torch.randn(setting.side, setting.side, device=device, dtype=setting.dtype) for _ in range(2))
    product = timing.in_turn({"product": lambda: a @ b}, clock(device), setting.seconds)["product"]
    name = torch.cuda.get_device_name() if device == "cuda" else timing.machine()
    yield f"{name}, torch {torch.__version__}; {str(setting.dtype)[6:]}, H={setting.heads}, D={setting.width}"
    speed = 2 * setting.side**3 / product / 1e12
    yield f"The product of two {setting.side} x {setting.side} matrices runs at {speed:.2f} Tflop/s.\n"
    yield "| case | what | ms | MiB |"
    yield "|---|---|---:|---:|"
    with torch.inference_mode():
        for case, make in cases(setting).items():
            rivals = make()
            times = timing.in_turn(rivals, clock(device), setting.seconds)
            for what, run in rivals.items():
                memory = f"{peak(run):.1f}" if device == "cuda" else "-"
                yield f"| {case} | {what} | {1e3 * times[what]:.3f} | {memory} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda" if torch.cuda.is_available() else "cpu")
    for line in report(parser.parse_args().device):
        print(line, flush=True)
