"""Attention of short sequences, under masks and while decoding: attnlib against the best alternative.

`python benchmarks/short.py` measures every case on one thread, in CPU time, and prints a table. In NumPy, the
alternative is a softmax, multi-head attention or a GRU written by hand; under a boolean mask, it is also torch's
kernel. In torch, it is torch's own function or module. A decoder is compared with the same decoder without its cached
memory, and layers with rotary positions with the same layers without them.
"""

import copy
import os
import sys
from collections.abc import Callable, Iterator

import numpy as np
import timing
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from tqdm import tqdm

import attnlib
import attnlib.numpy
import attnlib.torch
from attnlib import scaled_dot_product_attention as sdpa

Case = tuple[str, Callable[[], object], Callable[[], object]]
Floats = NDArray[np.float32]
D = 64


def drawn(*shape: int) -> Floats:
    """Random numbers, the same in every run."""
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def by_hand(query: Floats, key: Floats, value: Floats, mask: NDArray | None = None) -> Floats:
    """Attention as one writes it in NumPy, with as few arrays as possible."""
    weights = query @ key.swapaxes(-1, -2) * np.float32(query.shape[-1] ** -0.5)
    if mask is not None:
        weights = np.where(mask, weights, np.float32(-np.inf)) if mask.dtype == bool else weights + mask
    weights -= weights.max(-1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= weights.sum(-1, keepdims=True)
    return weights @ value


def short() -> Iterator[Case]:
    """NumPy, full attention of H heads."""
    for H, T, S in ((1, 8, 8), (1, 16, 16), (1, 64, 64), (1, 256, 256), (8, 8, 8), (8, 16, 16), (8, 64, 64)):
        q, k, v = drawn(H, T, D), drawn(H, S, D), drawn(H, S, D)
        yield f"H={H} T={T} S={S}", lambda q=q, k=k, v=v: sdpa(q, k, v), lambda q=q, k=k, v=v: by_hand(q, k, v)
    for H, T, S in ((8, 4, 1000), (8, 16, 4096), (8, 1, 64), (8, 1, 512), (8, 1, 8192)):
        q, k, v = drawn(H, T, D), drawn(H, S, D), drawn(H, S, D)
        yield f"H={H} T={T} S={S}", lambda q=q, k=k, v=v: sdpa(q, k, v), lambda q=q, k=k, v=v: by_hand(q, k, v)
    x = drawn(8, D)
    yield "attention(), T=8", lambda: attnlib.attention(x, x, x), lambda: by_hand(x, x, x)


def grouped() -> Iterator[Case]:
    """NumPy, one query for 32 heads and keys for 8; by hand the queries of a group are rows of one product."""
    for S in (64, 512, 8192):
        q, k, v = drawn(32, 1, 128), drawn(8, S, 128), drawn(8, S, 128)
        rows = q.reshape(8, 4, 128)
        ours = lambda q=q, k=k, v=v: sdpa(q, k, v, enable_gqa=True)  # noqa: E731
        yield f"32 heads of queries, 8 of keys, S={S}", ours, lambda q=rows, k=k, v=v: by_hand(q, k, v)


def masked() -> Iterator[Case]:
    """NumPy under masks, with large scores, and causal."""
    for T in (16, 64, 512, 1024):
        q, k, v = drawn(8, T, D), drawn(8, T, D), drawn(8, T, D)
        mask, bias, large = np.random.default_rng(T).random((T, T)) < 0.7, drawn(T, T), 10 * q
        mask[:, 0] = True
        tensors = [torch.tensor(x)[None] for x in (q, k, v)] + [torch.tensor(mask)]
        ours = lambda q=q, k=k, v=v, mask=mask: sdpa(q, k, v, mask)  # noqa: E731
        yield f"bool mask, T={T}", ours, lambda q=q, k=k, v=v, mask=mask: by_hand(q, k, v, mask)
        yield f"bool mask, T={T}, torch", ours, lambda x=tensors: F.scaled_dot_product_attention(*x)
        yield (
            f"bias, T={T}",
            lambda q=q, k=k, v=v, bias=bias: sdpa(q, k, v, bias),
            lambda q=q, k=k, v=v, bias=bias: by_hand(q, k, v, bias),
        )
        yield (
            f"scores times 10, T={T}",
            lambda q=large, k=k, v=v: sdpa(q, k, v),
            lambda q=large, k=k, v=v: by_hand(q, k, v),
        )


def decoding() -> Iterator[Case]:
    """torch: eight tokens of a decoder with a memory of 512, which is projected once, or for each token."""
    torch.manual_seed(0)
    decoder = attnlib.torch.Decoder(256, 8, 1024, 2).eval()
    memory, tokens = torch.randn(1, 512, 256), torch.randn(1, 8, 256)

    @torch.no_grad()
    def with_cache() -> None:
        cache = decoder.new_cache()
        for t in range(8):
            decoder(tokens[:, t : t + 1], memory, cache=cache)

    @torch.no_grad()
    def anew() -> None:
        cache = decoder.new_cache()
        for t in range(8):
            for layer in cache:
                layer.memory.clear()
            decoder(tokens[:, t : t + 1], memory, cache=cache)

    yield "8 tokens with a memory of 512, against projecting it for each token", with_cache, anew


def rotary() -> Iterator[Case]:
    """A token through six torch layers with rotary positions, against the same layers without them."""
    torch.manual_seed(0)
    stacks = [attnlib.torch.Encoder(256, 8, 1024, 6, rope=rope).eval() for rope in (True, None)]
    token = torch.randn(1, 1, 256)

    def one_more(stack: torch.nn.Module) -> Callable[[], object]:
        cache = stack.new_cache()

        @torch.no_grad()
        def call() -> object:
            for layer in cache:
                layer.truncate(min(layer.length, 100))
            return stack(token, cache=cache)

        return call

    yield "a token through six layers with rope, against no rope", *map(one_more, stacks)


def softmaxes() -> Iterator[Case]:
    """Softmax in torch, against torch's own, which returns nan where every score is -inf."""
    for shape in ((8, 8), (8, 64, 64), (8, 512, 512)):
        x = torch.tensor(drawn(*shape))
        yield f"softmax of {shape}, torch", lambda x=x: attnlib.softmax(x), lambda x=x: torch.softmax(x, -1)


def with_weights() -> Iterator[Case]:
    """Multi-head attention that returns the weights of each head, with and without gradients."""
    torch.manual_seed(0)
    ours, theirs = attnlib.torch.MultiHeadAttention(256, 8), torch.nn.MultiheadAttention(256, 8, batch_first=True)
    arrays = attnlib.numpy.MultiHeadAttention(256, 8)
    for T in (8, 32):
        x, y = torch.randn(1, T, 256), drawn(1, T, 256)
        mine = lambda x=x: ours(x, need_weights=True)  # noqa: E731
        other = lambda x=x: theirs(x, x, x, average_attn_weights=False)  # noqa: E731
        yield f"MHA with weights, T={T}, torch in training", mine, other
        frozen = [copy.deepcopy(module).eval().requires_grad_(False) for module in (ours, theirs)]
        yield (
            f"MHA with weights, T={T}, torch in inference",
            lambda x=x, m=frozen[0]: m(x, need_weights=True),
            lambda x=x, m=frozen[1]: m(x, x, x, average_attn_weights=False),
        )
        yield (
            f"MHA with weights, T={T}, NumPy",
            lambda y=y: arrays(y, need_weights=True),
            lambda y=y: heads_by_hand(arrays.state_dict(), y),
        )


def heads_by_hand(state: dict[str, Floats], x: Floats) -> tuple[Floats, Floats]:
    """Multi-head attention written by hand in NumPy."""
    B, T, E = x.shape
    q, k, v = (
        (x @ state[f"{n}_proj.weight"].T + state[f"{n}_proj.bias"]).reshape(B, T, 8, E // 8).transpose(0, 2, 1, 3)
        for n in "qkv"
    )
    weights = q @ k.swapaxes(-1, -2) * np.float32((E // 8) ** -0.5)
    weights -= weights.max(-1, keepdims=True)
    np.exp(weights, out=weights)
    weights /= weights.sum(-1, keepdims=True)
    out = (weights @ v).transpose(0, 2, 1, 3).reshape(B, T, E)
    return out @ state["out_proj.weight"].T + state["out_proj.bias"], weights


def recurrent() -> Iterator[Case]:
    """A GRU over 20 steps of 8 sequences, against torch's module and a loop written by hand in NumPy."""
    torch.manual_seed(0)
    module, h0 = torch.nn.GRU(64, 64, batch_first=True), torch.zeros(8, 64)
    x, weights = torch.randn(8, 20, 64), list(module.parameters())
    for grad in (False, True):

        def ours(grad: bool = grad) -> object:
            with torch.set_grad_enabled(grad):
                return attnlib.encode(attnlib.gru_cell, x, h0, *weights)

        def theirs(grad: bool = grad) -> object:
            with torch.set_grad_enabled(grad):
                return module(x, h0[None])

        yield f"GRU, 20 steps, torch {'with' if grad else 'without'} gradients", ours, theirs
    arrays = [z.detach().numpy() for z in (x, h0, *weights)]
    yield "GRU, 20 steps, NumPy", lambda: attnlib.encode(attnlib.gru_cell, *arrays), lambda: gru_by_hand(*arrays)


def gru_by_hand(x: Floats, h: Floats, w_ih: Floats, w_hh: Floats, b_ih: Floats, b_hh: Floats) -> Floats:
    """A GRU written by hand in NumPy, with a single matrix product for all inputs and as few arrays as possible."""
    (B, T, _), D = x.shape, h.shape[-1]
    from_x = (x.reshape(B * T, -1) @ w_ih.T + b_ih).reshape(B, T, 3 * D)
    states = np.empty((B, T, D), x.dtype)
    for t in range(T):
        from_h = h @ w_hh.T + b_hh
        gates = from_x[:, t, : 2 * D] + from_h[:, : 2 * D]
        gates = 1 / (1 + np.exp(-gates))
        new = np.tanh(from_x[:, t, 2 * D :] + gates[:, :D] * from_h[:, 2 * D :])
        h = new + gates[:, D:] * (h - new)
        states[:, t] = h
    return states


def fused() -> Iterator[Case]:
    """torch's own kernel, which attnlib's function wraps thinly: the difference is the time of its checks."""
    for T in (8, 16):
        q = torch.tensor(drawn(1, 4, T, 32))
        yield (
            f"B=1 H=4 T={T} D=32, torch",
            lambda q=q: sdpa(q, q, q),
            lambda q=q: F.scaled_dot_product_attention(q, q, q),
        )


def windowed() -> Iterator[Case]:
    """torch's own kernel under a window, which it gets as a mask that has been made beforehand."""
    for T, left, offset in ((300, 10, 0), (2000, 10, 0), (4096, 256, 0), (2000, None, 5)):
        q, k, v = (torch.tensor(drawn(1, 4, T, D)) + i for i in range(3))
        mask = attnlib.window_mask(T, T, left, 0, q_offset=offset, like=q)
        yield (
            f"window ({left}, 0), offset {offset}, T={T}, torch",
            lambda x=(q, k, v), window=(left, 0), offset=offset: sdpa(*x, window=window, q_offset=offset),
            lambda x=(q, k, v), mask=mask: F.scaled_dot_product_attention(*x, mask),
        )


GROUPS = (short, grouped, masked, decoding, rotary, softmaxes, with_weights, recurrent, fused, windowed)


def measure() -> None:
    """Measure in this process, whose libraries have one thread, and print the table."""
    cases = [case for group in GROUPS for case in group()]
    print(f"{timing.machine()}; one thread, CPU time; medians, with both sides called in turn\n")
    print("| case | attnlib, µs | alternative, µs | ratio |\n|---|---:|---:|---:|")
    for name, ours, other in tqdm(cases, file=sys.stderr):
        found = timing.in_turn(
            {"ours": ours, "other": other}, timing.CPU, 2.0, calls=3 if "memory" in name or "layers" in name else 20
        )
        mine, theirs = found["ours"], found["other"]
        tqdm.write(f"| {name} | {mine * 1e6:.1f} | {theirs * 1e6:.1f} | {mine / theirs:.2f} |")


if __name__ == "__main__":
    if os.environ.get("OMP_NUM_THREADS") == "1":
        torch.set_num_threads(1)
        measure()
    else:  # the libraries read this when they are loaded
        os.execve(sys.executable, [sys.executable, *sys.argv], timing.environment(1))
