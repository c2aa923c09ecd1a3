"""Random calls of the library, each compared with independent code: formulas in float64, or torch.

`python tests/attnlib/random_calls.py --calls 200000` draws that many calls, shows its progress, and prints a table of
the calls of each family on each library, and of the failures. A failure names its family and number; `--only FAMILY
--start NUMBER --calls 1` repeats it. `--library NAME` makes all calls on one library. JAX compiles every operation for
every shape, so that a call takes a hundred times as long on it; unless it is named, it gets few calls.
"""

import argparse
import importlib
import math
import sys
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from oracle import attend
from tqdm import tqdm

import attnlib
import attnlib.numpy
import attnlib.torch

INF, NAN = np.inf, np.nan
Array = Any
EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


class Library:
    """Arrays of one library, converted from and to float64 NumPy arrays."""

    def __init__(self, name: str, dtypes: tuple[str, ...]):
        self.name, self.dtypes = name, dtypes

    def array(self, x: np.ndarray, dtype: str) -> Array:
        """Return an array of this library; bools stay bools."""
        dtype = "bool" if x.dtype == bool else dtype
        if self.name == "torch":
            return torch.tensor(x).to(getattr(torch, dtype))
        if self.name == "numpy":
            return x.astype(dtype)
        xp = importlib.import_module(self.name)  # only now: JAX would warn about every later fork of the process
        return xp.asarray(x, dtype=getattr(xp, dtype))

    def numpy(self, x: Array) -> np.ndarray:
        """Return the same numbers as a float64 NumPy array."""
        if self.name == "torch":
            return x.detach().to(torch.float64).numpy()
        return np.asarray(x).astype(np.float64)

    def rounded(self, x: np.ndarray, dtype: str) -> np.ndarray:
        """Return the numbers, rounded to this dtype, in float64."""
        return x if x.dtype == bool else self.numpy(self.array(x, dtype))


NUMPY = Library("numpy", ("float64", "float32", "float16"))
TORCH = Library("torch", ("float64", "float32", "float16", "bfloat16"))
STRICT = Library("array_api_strict", ("float64", "float32"))
JAX = Library("jax.numpy", ("float64", "float32", "float16", "bfloat16"))
LIBRARIES = {"numpy": NUMPY, "torch": TORCH, "array_api_strict": STRICT, "jax": JAX}
WITH_LAYERS = (NUMPY, TORCH)
SHARES = {NUMPY: 0.42, TORCH: 0.42, STRICT: 0.16}  # of the calls
SHARES_WITH_JAX = {NUMPY: 0.42, TORCH: 0.42, STRICT: 0.15, JAX: 0.01}


class Draw:
    """A source of random choices for one call."""

    def __init__(self, family: str, number: int, shares: Mapping[Library, float] = SHARES):
        self.family, self.shares = family, shares
        self.rng = np.random.default_rng([zlib.crc32(family.encode()), number])
        self.library = self.one_of(tuple(shares), p=tuple(shares.values()))
        self.dtype = self.one_of(self.library.dtypes[:2]) if self.chance(0.8) else self.one_of(self.library.dtypes)
        self.eps = EPS[self.dtype]

    def chance(self, p: float) -> bool:
        """Return True with probability p."""
        return bool(self.rng.random() < p)

    def one_of(self, things: Any, p: Any = None) -> Any:
        """Return one of the things."""
        return things[self.rng.choice(len(things), p=p)]

    def size(self, low: int, high: int) -> int:
        """Return a size below 10, except that one in ten is drawn from the whole range."""
        return int(self.rng.integers(low, high + 1)) if self.chance(0.1) else int(self.rng.integers(low, 10))

    def integer(self, low: int, high: int) -> int:
        """Return an integer from low to high."""
        return int(self.rng.integers(low, high + 1))

    def floats(self, *shape: int, spread: float = 1.0) -> np.ndarray:
        """Return normal numbers, rounded to the dtype of this call."""
        return self.library.rounded(spread * self.rng.standard_normal(shape), self.dtype)

    def give(self, x: np.ndarray | None) -> Array:
        """Return the array in the library and dtype of this call, sometimes transposed in memory."""
        if x is None:
            return None
        made = self.library.array(x, self.dtype)
        if self.library not in (NUMPY, TORCH) or x.ndim < 2 or not self.chance(0.3):
            return made
        return made.swapaxes(-1, -2).copy().swapaxes(-1, -2) if self.library is NUMPY else made.mT.contiguous().mT

    def lead(self, most: int = 3) -> tuple[int, ...]:
        """Return leading dimensions."""
        return tuple(int(n) for n in self.rng.integers(1, 4, self.integer(0, most)))

    def broadcast(self, shape: tuple[int, ...], keep: int = 0) -> tuple[int, ...]:
        """Return a shape that broadcasts to this one, with the last `keep` dimensions unchanged."""
        own = [1 if axis < len(shape) - keep and self.chance(0.2) else n for axis, n in enumerate(shape)]
        drop = self.integer(0, len(shape) - keep) if self.chance(0.2) else 0
        return tuple(own[drop:])


def close(ours: np.ndarray, theirs: np.ndarray, atol: Any, free: Any = False) -> str:
    """Return how two arrays differ, or ""; where `free` is True, nan is accepted too."""
    if ours.shape != theirs.shape:
        return f"shape {ours.shape} instead of {theirs.shape}"
    with np.errstate(invalid="ignore"):
        same = (ours == theirs) | (np.abs(ours - theirs) <= atol) | (np.isnan(ours) & (np.isnan(theirs) | free))
    if same.all():
        return ""
    at = tuple(int(n) for n in np.argwhere(~same)[0])
    return f"{(~same).sum()} of {same.size} differ, e.g. {at}: {ours[at]!r} instead of {theirs[at]!r}"


def softmax(scores: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return weights in float64: zeros if all scores are -inf, and nan if any is nan or inf."""
    top = scores.max(axis=axis, keepdims=True, initial=-INF)
    with np.errstate(invalid="ignore"):
        powers = np.exp(scores - np.where(top == -INF, 0, top))
        total = powers.sum(axis=axis, keepdims=True)
        return powers / np.where(total == 0, 1, total)


def dense(q: np.ndarray, k: np.ndarray, v: np.ndarray, options: dict[str, Any]) -> tuple[np.ndarray, ...]:
    """Return context, weights, log-sums, what each query may attend to, and the largest score before the softcap."""
    mask, softcap, scale = (options.get(name) for name in ("attn_mask", "softcap", "scale"))
    if options.get("enable_gqa"):
        k, v = (np.repeat(x, q.shape[-3] // x.shape[-3], axis=-3) for x in (k, v))
    T, S, D = q.shape[-2], k.shape[-2], q.shape[-1]
    scale = (D**-0.5 if D else 1.0) if scale is None else scale
    with np.errstate(invalid="ignore"):
        scores = np.einsum("...td,...sd->...ts", q, k) * scale
        largest = np.abs(scores[np.isfinite(scores)]).max(initial=0.0)  # before the softcap, when they are rounded
        scores = softcap * np.tanh(scores / softcap) if softcap else scores
    scores = np.broadcast_to(scores, (*np.broadcast_shapes(scores.shape[:-2], v.shape[:-2]), T, S))
    i, j = np.arange(T)[:, None] + options.get("q_offset", 0), np.arange(S)
    left, right = options.get("window") or (None, None)
    seen = np.ones(scores.shape, bool)
    if options.get("is_causal"):
        seen &= j <= i
    if left is not None:
        seen &= j >= i - left
    if right is not None:
        seen &= j <= i + right
    if mask is not None and mask.dtype == bool:
        seen &= mask
    elif mask is not None:
        seen &= mask > -INF
        largest += np.abs(mask[np.isfinite(mask)]).max(initial=0.0)
        scores = scores + np.where(mask > -INF, mask, 0)
    scores = np.where(seen, scores, -INF)
    weights = softmax(scores)
    with np.errstate(invalid="ignore", divide="ignore"):
        context = np.einsum("...ts,...sd->...td", weights, np.where(np.isfinite(v), v, 0))
        for special in (NAN, INF, -INF):
            where = np.isnan(v) if math.isnan(special) else v == special
            context = context + np.where(
                np.einsum("...ts,...sd->...td", (weights > 0) * 1.0, where * 1.0) > 0, special, 0
            )
        top = scores.max(axis=-1, initial=-INF)
        lse = (
            np.log(
                np.exp(scores - np.where(np.isnan(top) | (top < INF), np.maximum(top, -1e300), INF)[..., None]).sum(-1)
            )
            + top
        )
        lse = np.where(top == -INF, -INF, lse)
    return context, weights, lse, seen, largest


def attention_options(draw: Draw, scores: tuple[int, ...]) -> dict[str, Any]:
    """Return options of scaled_dot_product_attention for scores of this shape."""
    T, S = scores[-2:]
    options: dict[str, Any] = {}
    if draw.chance(0.4):
        allowed = np.asarray(draw.rng.random(draw.broadcast(scores)) < draw.one_of((0.2, 0.7, 0.95)))
        options["attn_mask"] = allowed
        if draw.chance(0.5):
            forbidden = draw.one_of((-INF, -1e4))
            bias = np.where(allowed, draw.rng.standard_normal(allowed.shape), forbidden)
            options["attn_mask"] = draw.library.rounded(bias, draw.dtype)
    if draw.chance(0.4):
        options["is_causal"] = True
    if draw.chance(0.3):
        options["q_offset"] = draw.one_of((S - T, draw.integer(-T - 1, S + 1), 0))
    if draw.chance(0.25):
        options["window"] = tuple(None if draw.chance(0.3) else draw.integer(0, S + 1) for _ in range(2))
    if draw.chance(0.2):
        options["scale"] = draw.one_of((0.0, 1.0, -0.7, 0.01, 30.0))
    if draw.chance(0.2):
        options["softcap"] = draw.one_of((0.5, 5.0, 50.0))
    return options


def attention_inputs(draw: Draw) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Return query, key, value, and options; about half of them suit torch's fused kernel."""
    T, S, D = draw.size(0, 150), draw.size(0, 300), draw.integer(1, 9)
    if draw.chance(0.3):
        S = T
    D_v = D if draw.chance(0.6) else draw.integer(0, 7)
    spread = draw.one_of((1.0, 1.0, 1.0, 4.0, 12.0))
    if draw.chance(0.2):  # grouped queries
        groups, shared, batch = draw.integer(1, 3), draw.integer(1, 3), draw.lead(2)
        shapes = [(*batch, groups * shared, T, D), (*batch, shared, S, D), (*batch, shared, S, D_v)]
        shapes = [(*draw.broadcast(shape[:-3]), *shape[-3:]) for shape in shapes]
        lead = (*np.broadcast_shapes(*(shape[:-3] for shape in shapes)), groups * shared)
        options = attention_options(draw, (*lead, T, S)) | {"enable_gqa": True}
    else:
        batch = draw.lead()
        shapes = [(*batch, T, D), (*batch, S, D), (*batch, S, D_v)]
        if draw.chance(0.3):
            shapes = [(*draw.broadcast(shape[:-2]), *shape[-2:]) for shape in shapes]
        lead = np.broadcast_shapes(*(shape[:-2] for shape in shapes))
        options = attention_options(draw, (*lead, T, S))
    return [draw.floats(*shape, spread=spread if n < 2 else 1.0) for n, shape in enumerate(shapes)], options


def plant(draw: Draw, arrays: list[np.ndarray], mask: np.ndarray | None) -> bool:
    """Put nan or infinities somewhere, or inf into a bias, and tell whether that was possible."""
    planted = False
    for _ in range(draw.integer(1, 3)):
        if mask is not None and mask.dtype != bool and draw.chance(0.2):
            x, special = mask, INF
        else:
            x, special = draw.one_of(arrays), draw.one_of((NAN, INF, -INF))
        if x.size:
            x[tuple(int(draw.rng.integers(n)) for n in x.shape)] = special
            planted = True
    return planted


def may_be_nan(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, weights: np.ndarray, seen: np.ndarray, options: dict[str, Any]
) -> np.ndarray:
    """Tell where inputs that are not finite may have no effect or give nan: masked out, or weighted with about 0."""
    hidden = ~(np.isfinite(k).all(-1) & np.isfinite(v).all(-1))[..., None, :]
    if options.get("enable_gqa"):
        hidden = np.repeat(hidden, q.shape[-3] // k.shape[-3], axis=-3)
    faint = (hidden & (weights < 1e-6)).any(-1)[..., None]
    idle = ~np.isfinite(q).all(-1)[..., None] & ~seen.any(-1, keepdims=True)
    lowest = (seen.any(-1) & (weights.sum(-1) == 0))[..., None]  # all scores are -inf
    bias = options.get("attn_mask", np.zeros(1))
    beyond = ((bias == INF) & ~seen).any(-1)[..., None]  # masked out by position, and inf minus inf is nan
    return np.broadcast_to(faint | idle | lowest | beyond, (*weights.shape[:-1], v.shape[-1]))


def compare_attention(draw: Draw, call: Callable[..., Any]) -> str:
    """Draw a call of attention, and say how its results differ from the formula, or the formula from the loops."""
    (q, k, v), options = attention_inputs(draw)
    special = draw.chance(0.2) and plant(draw, [q, k, v], options.get("attn_mask"))
    wanted = {"return_weights": draw.chance(0.3), "return_lse": draw.chance(0.2)}
    context, weights, lse, seen, largest = dense(q, k, v, options)
    finite = {name: x for name, x in options.items() if name != "attn_mask"}
    if not special and weights.size < 60:
        loops = attend(q, k, v, options.get("attn_mask"), **finite)
        if fault := close(context, loops.context, 1e-9 * (1 + np.abs(v).max(initial=0))):
            return f"the formula itself: {fault}"
    given = {name: draw.give(x) if isinstance(x, np.ndarray) else x for name, x in options.items()}
    results = call(draw.give(q), draw.give(k), draw.give(v), **given, **{n: True for n, x in wanted.items() if x})
    results = results if isinstance(results, tuple) else (results,)
    work = max(draw.eps, EPS["float64"]) if draw.eps < 1e-6 else EPS["float32"]
    rounding = 8 * work * (1 + largest) * (4 + q.shape[-1])
    size = np.abs(v[np.isfinite(v)]).max(initial=0.0)
    free = may_be_nan(q, k, v, weights, seen, options) if special else np.zeros(context.shape, bool)
    expected = [(context, (rounding + 4 * draw.eps) * size, free)]
    if wanted["return_weights"]:
        expected.append((weights, rounding + 2 * draw.eps, free[..., :1] if context.shape[-1] else True))
    if wanted["return_lse"]:
        far = np.abs(np.where(np.isfinite(lse), lse, 0))
        expected.append((lse, rounding + 2 * draw.eps * (1 + far), free.any(-1) if context.shape[-1] else True))
    for ours, (theirs, atol, nan_allowed) in zip(results, expected, strict=True):
        mine = draw.library.numpy(ours)
        if theirs is lse:  # for a score of inf it is inf or nan
            mine = np.where((mine == INF) & np.isnan(lse), NAN, mine)
        if theirs is weights:  # where masked out it is 0, even in a row of nan
            mine = np.where((mine == 0) & ~seen, theirs, mine)
        if fault := close(mine, theirs, atol, nan_allowed):
            return (
                f"{fault}; {draw.library.name} {draw.dtype} {q.shape} {k.shape} {v.shape} {described(options)} {wanted}"
            )
    return ""


def described(options: dict[str, Any]) -> str:
    """Describe the options, giving arrays by dtype and shape."""
    return str({n: f"{x.dtype}{x.shape}" if isinstance(x, np.ndarray) else x for n, x in options.items()})


def attention_family(draw: Draw) -> str:
    """Compare forward passes."""
    return compare_attention(draw, attnlib.scaled_dot_product_attention)


def backward_family(draw: Draw) -> str:
    """Compare gradients with torch's, which differentiates the formula in float64."""
    draw.dtype = draw.one_of(draw.library.dtypes[:2])
    draw.eps = EPS[draw.dtype]
    (q, k, v), options = attention_inputs(draw)
    for x in (q, k):
        x /= max(1.0, np.abs(x).max(initial=0.0) / 3)
        x[...] = draw.library.rounded(x, draw.dtype)
    if options.get("scale") == 30.0:
        options["scale"] = 3.0
    context, _, _, seen, largest = dense(q, k, v, options)
    grad = draw.floats(*context.shape)
    tensors = [torch.tensor(x, requires_grad=True) for x in (q, k, v)]
    gradients = torch.autograd.grad(formula(*tensors, seen, options), tensors, torch.tensor(grad), allow_unused=True)
    given = {name: draw.give(x) if isinstance(x, np.ndarray) else x for name, x in options.items()}
    ours = attnlib.scaled_dot_product_attention_backward(*map(draw.give, (grad, q, k, v)), **given)
    for name, mine, theirs, x in zip(("query", "key", "value"), ours, gradients, (q, k, v), strict=True):
        theirs = np.zeros(x.shape) if theirs is None else theirs.numpy()
        size = 1 + np.abs(theirs).max(initial=0.0) + np.abs(v).max(initial=0.0) * np.abs(grad).max(initial=0.0)
        if fault := close(
            draw.library.numpy(mine), theirs, 40 * draw.eps * (2 + largest) * (4 + seen.shape[-1]) * size
        ):
            return (
                f"{name}: {fault}; {draw.library.name} {draw.dtype} {q.shape} {k.shape} {v.shape} {described(options)}"
            )
    return ""


def formula(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, seen: np.ndarray, options: dict[str, Any]
) -> torch.Tensor:
    """Return attention computed in torch, with 0 for rows without keys."""
    if options.get("enable_gqa"):
        k, v = (x.repeat_interleave(q.shape[-3] // x.shape[-3], dim=-3) for x in (k, v))
    scale, softcap, mask = (options.get(name) for name in ("scale", "softcap", "attn_mask"))
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    scores = softcap * torch.tanh(scores / softcap) if softcap else scores
    if mask is not None and mask.dtype != bool:
        scores = scores + torch.tensor(np.where(mask > -INF, mask, 0))
    scores = torch.where(torch.tensor(seen), scores, -1e30)
    weights = torch.where(torch.tensor(seen), torch.softmax(scores, -1), 0) if seen.shape[-1] else scores
    return weights @ v


def softmax_family(draw: Draw) -> str:
    """Compare softmax along any axis, with -inf, nan, and inf among the scores."""
    shape = tuple(draw.size(0, 60) for _ in range(draw.integer(1, 3)))
    x = draw.floats(*shape, spread=draw.one_of((1.0, 100.0)))
    x[draw.rng.random(shape) < 0.1] = -INF
    if draw.chance(0.1):
        x[draw.rng.random(shape) < 0.05] = draw.one_of((NAN, INF))
    axis = draw.integer(-x.ndim, x.ndim - 1)
    ours = draw.library.numpy(attnlib.softmax(draw.give(x), axis))
    return close(ours, softmax(x, axis), 2 * max(draw.eps, 64 * EPS["float64"]))


def similarity_family(draw: Draw) -> str:
    """Compare every similarity with its formula."""
    T, S, D = draw.size(0, 40), draw.size(1, 40), draw.integer(1, 7)
    batch = draw.lead(2)
    q, k = draw.floats(*draw.broadcast(batch), T, D), draw.floats(*draw.broadcast(batch), S, D)
    if draw.chance(0.1) and q.size:
        q[..., 0, :] = 0
    name = draw.one_of(("dot", "scaled_dot", "cosine", "gaussian", "general", "additive"))
    dots, more, options = np.einsum("...td,...sd->...ts", q, k), [], {}
    if name == "dot":
        expected = dots
    elif name == "scaled_dot":
        expected = dots / np.sqrt(D)
    elif name == "cosine":
        norms = np.linalg.norm(q, axis=-1)[..., :, None] * np.linalg.norm(k, axis=-1)[..., None, :]
        expected = np.where(norms == 0, 0, dots / np.where(norms == 0, 1, norms))
    elif name == "gaussian":
        options = {"bandwidth": draw.one_of((0.5, 1.0, 3.0))}
        expected = -((q[..., :, None, :] - k[..., None, :, :]) ** 2).sum(-1) / (2 * options["bandwidth"] ** 2)
    elif name == "general":
        k = draw.floats(*k.shape[:-1], D + 1)
        more = [draw.floats(D, D + 1)]
        expected = np.einsum("...td,de,...se->...ts", q, more[0], k)
    else:
        more = [draw.floats(D, 4), draw.floats(D, 4), draw.floats(4)]
        expected = np.tanh((q @ more[0])[..., :, None, :] + (k @ more[1])[..., None, :, :]) @ more[2]
    ours = getattr(attnlib, name)(*map(draw.give, (q, k, *more)), **options)
    atol = 4 * draw.eps * (1 + np.abs(expected).max(initial=0.0)) * (2 + D) ** 1.5
    if fault := close(draw.library.numpy(ours), expected, atol):
        return f"{name}: {fault}; {draw.library.name} {draw.dtype} {q.shape} {k.shape}"
    return ""


def mask_family(draw: Draw) -> str:
    """Compare masks and ALiBi's biases with their definitions."""
    T, S, offset = draw.size(0, 40), draw.size(0, 40), draw.integer(-12, 12)
    i, j = np.arange(T)[:, None] + offset, np.arange(S)
    like = draw.give(np.zeros(2))
    name = draw.one_of(("causal_mask", "window_mask", "padding_mask", "alibi_bias", "combine_masks"))
    if name == "causal_mask":
        ours, expected = attnlib.causal_mask(T, S, q_offset=offset, like=like), j <= i
    elif name == "window_mask":
        left, right = (None if draw.chance(0.3) else draw.integer(0, 9) for _ in range(2))
        ours = attnlib.window_mask(T, S, left, right, q_offset=offset, like=like)
        expected = (j >= i - (S + T + 99 if left is None else left)) & (
            j <= i + (S + T + 99 if right is None else right)
        )
    elif name == "padding_mask":
        lengths = draw.rng.integers(0, S + 1, draw.integer(1, 4))
        expected = (j < lengths[:, None])[:, None, None]
        return close(np.asarray(attnlib.padding_mask(lengths.tolist(), S)) * 1.0, expected * 1.0, 0)
    elif name == "alibi_bias":
        H = draw.integer(1, 12)
        n = 2 ** int(math.log2(H))
        slopes = [2 ** (-8 * h / n) for h in range(1, n + 1)] + [2 ** (-4 * h / n) for h in range(1, 2 * n, 2)]
        ours = attnlib.alibi_bias(H, T, S, q_offset=offset, like=like)
        expected = -np.array(slopes[:H])[:, None, None] * np.abs(i - j)
        return close(draw.library.numpy(ours), expected, 2 * draw.eps * (1 + np.abs(expected)))
    else:
        shape = (*draw.lead(2), T, S)
        one, two = (np.asarray(draw.rng.random(draw.broadcast(shape)) < 0.6) for _ in range(2))
        bias = draw.floats(*draw.broadcast(shape))
        ours = attnlib.combine_masks(draw.give(one), draw.give(bias), None, draw.give(two))
        ours, expected = draw.library.numpy(ours), np.where(one & two, bias, -INF)
        return close(ours, expected + np.zeros(np.broadcast_shapes(one.shape, two.shape, bias.shape)), 0)
    return close(draw.library.numpy(ours) * 1.0, expected * 1.0, 0)


def position_family(draw: Draw) -> str:
    """Compare sinusoidal positions with their formula, and rotations with complex numbers."""
    T, D, base = draw.size(1, 300), 2 * draw.integer(1, 6), draw.one_of((10.0, 500.0, 10000.0))
    positions, k = np.arange(T) + draw.integer(0, 1000), np.arange(D // 2)
    angles = positions[:, None] * base ** (-2 * k / D)
    if draw.chance(0.3):
        ours = draw.library.numpy(attnlib.sinusoidal_positions(T, D, base=base, like=draw.give(np.zeros(2))))
        clocks = np.arange(T)[:, None] * base ** (-2 * k / D)
        return close(ours, np.stack([np.sin(clocks), np.cos(clocks)], -1).reshape(T, D), draw.eps + 1e-12)
    interleaved, rest = draw.chance(0.5), draw.integer(0, 2)
    x = draw.floats(*draw.lead(2), T, D + rest)
    a, b = (x[..., 0:D:2], x[..., 1:D:2]) if interleaved else (x[..., : D // 2], x[..., D // 2 : D])
    z = (a + 1j * b) * np.exp(1j * angles)
    parts = (
        np.stack([z.real, z.imag], -1).reshape(*x.shape[:-1], D)
        if interleaved
        else np.concatenate([z.real, z.imag], -1)
    )
    double = draw.library.array(positions.astype(float), "float64")
    cos, sin = attnlib.rope_tables(double, D, base=base)
    ours = attnlib.apply_rope(draw.give(x), cos, sin, interleaved=interleaved)
    expected = np.concatenate([parts, x[..., D:]], -1)
    return close(draw.library.numpy(ours), expected, 8 * draw.eps * (1 + np.abs(x).max()))


def recurrent_family(draw: Draw) -> str:
    """Compare both cells, on sequences of different lengths, with torch's packed sequences."""
    B, T, width, state = draw.integer(1, 4), draw.size(1, 30), draw.integer(1, 5), draw.integer(1, 6)
    gates = draw.one_of((1, 3))
    draw.dtype = draw.one_of(draw.library.dtypes[:2])
    draw.eps = EPS[draw.dtype]
    x, h0 = draw.floats(B, T, width), draw.floats(B, state)
    weights = [draw.floats(gates * state, n, spread=0.5) for n in (width, state)]
    weights += [draw.floats(gates * state, spread=0.5) for _ in range(2)]
    lengths = draw.rng.integers(1, T + 1, B).tolist() if draw.chance(0.7) else [T] * B
    model = (torch.nn.GRU if gates == 3 else torch.nn.RNN)(width, state, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        for parameter, w in zip(model.parameters(), weights, strict=True):
            parameter.copy_(torch.tensor(w))
        packed = torch.nn.utils.rnn.pack_padded_sequence(torch.tensor(x), lengths, True, enforce_sorted=False)
        states, last = model(packed, torch.tensor(h0)[None])
        states = torch.nn.utils.rnn.pad_packed_sequence(states, True, total_length=T)[0]
    cell = attnlib.gru_cell if gates == 3 else attnlib.rnn_cell
    ours = attnlib.encode(
        cell, *map(draw.give, (x, h0, *weights)), lengths=lengths if draw.chance(0.8) or min(lengths) < T else None
    )
    for mine, theirs in zip(ours, (states, last[0]), strict=True):
        if fault := close(draw.library.numpy(mine), theirs.numpy(), 40 * draw.eps * (1 + T)):
            return f"{gates} gates: {fault}; {draw.library.name} {draw.dtype} {x.shape} {h0.shape} {lengths}"
    return ""


def step_family(draw: Draw) -> str:
    """Compare a step of Bahdanau's or Luong's decoder with torch's cells and plain formulas."""
    B, S, D_y, D_s, D_a = (
        draw.integer(1, 4),
        draw.size(1, 20),
        draw.integer(1, 4),
        draw.integer(1, 5),
        draw.integer(1, 4),
    )
    draw.dtype = draw.one_of(draw.library.dtypes[:2])
    draw.eps = EPS[draw.dtype]
    gates, bahdanau = draw.one_of((1, 3)), draw.chance(0.5)
    score = "concat" if bahdanau else draw.one_of(("dot", "general", "concat"))
    D_m = D_s if score == "dot" else draw.integer(1, 5)
    y, state, memory = draw.floats(B, D_y), draw.floats(B, D_s), draw.floats(B, S, D_m)
    params = {"w_ih": draw.floats(gates * D_s, D_y + D_m * bahdanau), "w_hh": draw.floats(gates * D_s, D_s)}
    params |= {name: draw.floats(gates * D_s) for name in ("b_ih", "b_hh") if draw.chance(0.7)}
    params |= {} if bahdanau else {"w_c": draw.floats(D_m + D_s, 3)}
    params |= {"weight": draw.floats(D_s, D_m)} if score == "general" else {}
    if score == "concat":
        params |= {"w_query": draw.floats(D_s, D_a), "w_key": draw.floats(D_m, D_a), "v": draw.floats(D_a)}
    mask = draw.rng.random((B, S)) < 0.7 if draw.chance(0.5) else None

    def step(x: np.ndarray) -> np.ndarray:
        zero = np.zeros(gates * D_s)
        tensors = [
            torch.tensor(w)
            for w in (x, state, params["w_ih"], params["w_hh"], params.get("b_ih", zero), params.get("b_hh", zero))
        ]
        return (torch.gru_cell if gates == 3 else torch.rnn_tanh_cell)(*tensors).numpy()

    def attended(s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if score == "concat":
            e = np.tanh((s @ params["w_query"])[:, None] + memory @ params["w_key"]) @ params["v"]
        else:
            e = np.einsum("bd,de,bse->bs", s, params.get("weight", np.eye(D_s)[:, :D_m]), memory)
        weights = softmax(e if mask is None else np.where(mask, e, -INF))
        return np.einsum("bs,bsd->bd", weights, memory), weights

    given = {name: draw.give(w) for name, w in params.items()}
    if bahdanau:
        context, weights = attended(state)
        expected = step(np.concatenate([y, context], -1)), context, weights
        ours = attnlib.bahdanau_step(*map(draw.give, (y, state, memory)), given, mask=draw.give(mask))
    else:
        new = step(y)
        context, weights = attended(new)
        expected = new, np.tanh(np.concatenate([context, new], -1) @ params["w_c"]), weights
        ours = attnlib.luong_step(*map(draw.give, (y, state, memory)), given, score=score, mask=draw.give(mask))
    for mine, theirs in zip(ours, expected, strict=True):
        if fault := close(draw.library.numpy(mine), theirs, 2000 * draw.eps):
            return f"bahdanau={bahdanau} {score}: {fault}; {draw.library.name} {draw.dtype} {params.keys()}"
    return ""


def layer_family(draw: Draw) -> str:
    """Compare layers with torch's own modules, and decoding in pieces with decoding the whole sequence."""
    draw.library = draw.one_of([library for library in WITH_LAYERS if library in draw.shares])
    draw.dtype, draw.eps = "float64", EPS["float64"]
    layers = attnlib.numpy if draw.library is NUMPY else attnlib.torch
    H, D, B, T, S = draw.integer(1, 4), 2 * draw.integer(1, 3), draw.integer(1, 3), draw.size(1, 30), draw.size(1, 30)
    E = H * D
    torch.manual_seed(draw.integer(0, 2**31))
    x, memory = draw.floats(B, T, E), draw.floats(B, S, E)
    kind = draw.one_of(("mha", "encoder", "decoder", "cached"))
    causal = draw.chance(0.5)
    if kind == "cached":
        return decoded_in_pieces(draw, layers, x, H)
    if kind == "mha":
        module = torch.nn.MultiheadAttention(E, H, batch_first=True, dtype=torch.float64).eval()
        ours = layers.MultiHeadAttention(E, H)
        allowed = draw.rng.random((T, S)) < 0.7
        allowed[:, 0] = True
        tensors = torch.tensor(x), torch.tensor(memory), torch.tensor(memory)
        expected = module(*tensors, attn_mask=torch.tensor(~allowed), average_attn_weights=False)
        load(ours, module, draw)
        results = ours(*map(draw.give, (x, memory)), attn_mask=draw.give(allowed), need_weights=True)
    else:
        norm, activation = draw.one_of(("pre", "post")), draw.one_of(("relu", "gelu"))
        options = {"batch_first": True, "norm_first": norm == "pre", "activation": activation, "dtype": torch.float64}
        if kind == "encoder":
            module = torch.nn.TransformerEncoderLayer(E, H, 2 * E + 1, dropout=0.0, **options).train()
            mask = torch.nn.Transformer.generate_square_subsequent_mask(T, dtype=torch.float64) if causal else None
            expected = (module(torch.tensor(x), src_mask=mask),)
            ours = layers.TransformerBlock(E, H, 2 * E + 1, norm=norm, activation=activation)
            load(ours, module, draw)
            results = (ours(draw.give(x), is_causal=causal),)
        else:
            module = torch.nn.TransformerDecoderLayer(E, H, 2 * E + 1, dropout=0.0, **options).train()
            mask = torch.nn.Transformer.generate_square_subsequent_mask(T, dtype=torch.float64) if causal else None
            expected = (module(torch.tensor(x), torch.tensor(memory), tgt_mask=mask),)
            ours = layers.DecoderBlock(E, H, 2 * E + 1, norm=norm, activation=activation)
            load(ours, module, draw)
            results = (ours(draw.give(x), draw.give(memory), is_causal=causal),)
    for mine, theirs in zip(results, expected, strict=True):
        if fault := close(draw.library.numpy(mine), theirs.detach().numpy(), 1e-10):
            return f"{kind}: {fault}; {draw.library.name} B={B} T={T} S={S} H={H} D={D} causal={causal}"
    return ""


def in_float64(ours: Any) -> None:
    """Give a layer parameters in float64, and no dropout."""
    if isinstance(ours, torch.nn.Module):
        ours.to(torch.float64).eval()
    else:
        ours.load_state_dict({name: x.astype(np.float64) for name, x in ours.state_dict().items()})


def load(ours: Any, module: torch.nn.Module, draw: Draw) -> None:
    """Load torch's parameters into our layer."""
    state = {name: x.detach().numpy() for name, x in module.state_dict().items()}
    in_float64(ours)
    attnlib.load_weights(ours, state)


def decoded_in_pieces(draw: Draw, layers: Any, x: np.ndarray, H: int) -> str:
    """Compare decoding in random pieces with one pass over the whole sequence."""
    options: dict[str, Any] = {"rope": 100.0} if draw.chance(0.5) else {}
    if draw.chance(0.5):
        options["num_kv_heads"] = 1
    if draw.chance(0.4):
        options["window"] = (draw.integer(0, 9), 0)
        options["num_sink_tokens"] = draw.integer(0, 3)
    if draw.chance(0.2):
        options["softcap"] = 5.0
    stack = layers.Encoder(x.shape[-1], H, 2 * x.shape[-1], 2, **options)
    in_float64(stack)
    whole = draw.library.numpy(stack(draw.give(x), is_causal=True))
    cuts = sorted({0, x.shape[1], *draw.rng.integers(0, x.shape[1] + 1, 3).tolist()})
    kind = draw.one_of(("KVCache", "StaticCache", *(["SlidingWindowCache"] if "window" in options else [])))
    if kind == "SlidingWindowCache":
        sinks = {"num_sink_tokens": options["num_sink_tokens"]} if "num_sink_tokens" in options else {}
        cache = [layers.SlidingWindowCache(options["window"][0], **sinks) for _ in range(2)]
    elif kind == "StaticCache":
        cache = [layers.StaticCache(x.shape[1] + draw.integer(0, 3)) for _ in range(2)]
    else:
        cache = stack.new_cache()
    with torch.no_grad():
        pieces = [
            draw.library.numpy(stack(draw.give(x[:, a:b]), is_causal=True, cache=cache)) for a, b in pairwise(cuts)
        ]
    if fault := close(np.concatenate(pieces, axis=1), whole, 1e-10):
        return f"{kind}: {fault}; {draw.library.name} {x.shape} {H} heads {options} cut at {cuts}"
    return ""


FAMILIES: dict[str, tuple[Callable[[Draw], str], float]] = {  # each with its share of the calls
    "attention": (attention_family, 0.46),
    "backward": (backward_family, 0.12),
    "softmax": (softmax_family, 0.08),
    "similarity": (similarity_family, 0.08),
    "masks": (mask_family, 0.07),
    "positions": (position_family, 0.06),
    "recurrent": (recurrent_family, 0.04),
    "steps": (step_family, 0.05),
    "layers": (layer_family, 0.04),
}


def attempt(draw: Draw) -> str:
    """Make one call, and return how it failed, or "" if it did not."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", message="invalid value encountered", category=RuntimeWarning)
            return FAMILIES[draw.family][0](draw)
    except Exception:
        return " ".join(traceback.format_exc(limit=-2).split()[4:])


def planned(asked: argparse.Namespace, shares: Mapping[Library, float]) -> list[tuple[str, int]]:
    """Return the family and the number of every call."""
    chosen = {asked.only: 1.0} if asked.only else {name: share for name, (_, share) in FAMILIES.items()}
    if not any(library in shares for library in WITH_LAYERS):
        chosen.pop("layers", None)
    return [
        (name, n)
        for name, share in chosen.items()
        for n in range(asked.start, asked.start + round(share / sum(chosen.values()) * asked.calls))
    ]


def table(calls: Counter[tuple[str, str]], failures: Counter[str]) -> str:
    """Return how many calls each family made on each library, and how many of them failed."""
    families, names = (list(dict.fromkeys(column)) for column in zip(*calls, strict=True))
    lines = [f"| family | {' | '.join(names)} | failures |", f"|---|{'---:|' * (len(names) + 1)}"]
    for family in families:
        lines.append(f"| {family} | {' | '.join(str(calls[family, name]) for name in names)} | {failures[family]} |")
    totals = (str(sum(n for (_, library), n in calls.items() if library == name)) for name in names)
    return "\n".join([*lines, f"| all | {' | '.join(totals)} | {failures.total()} |"])


def main() -> None:
    """Make the calls, print the table, and exit with status 1 if any failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--only", choices=FAMILIES)
    parser.add_argument("--library", choices=LIBRARIES)
    asked = parser.parse_args()
    shares = {LIBRARIES[asked.library]: 1.0} if asked.library else SHARES_WITH_JAX
    if JAX in shares:
        importlib.import_module("jax").config.update("jax_enable_x64", True)
    torch.set_num_threads(1)
    calls, failures = Counter[tuple[str, str]](), Counter[str]()
    for name, number in tqdm(planned(asked, shares), unit="call", mininterval=1):
        fault = attempt(draw := Draw(name, number, shares))
        calls[name, draw.library.name] += 1
        if fault:
            failures[name] += 1
            if failures[name] <= 20:
                tqdm.write(f"{name} {number}: {fault}")
    print(table(calls, failures))
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
