"""Answers to the exercises of chapter 6, positions: written from the notebook alone."""

import math

import numpy as np
import torch

ANSWERS = []


def add(name, backend, label, verdict, implementation, sentence=""):
    ANSWERS.append((name, backend, label, verdict, implementation, sentence))


# ------------------------------------------------------------------ equivariance_gap


def gap_w1(f, x, order):
    return float(np.abs(f(x[order]) - f(x)).max())


def gap_w2(f, x, order):
    return float((f(x[order]) - f(x)[order]).max())


def gap_w3(f, x, order):
    return float(np.abs(f(x[order]) - f(x)[np.argsort(order)]).max())


def gap_w4(f, x, order):
    return float(np.abs(f(x[order]) - f(x)[order]).mean())


def gap_w5(f, x, order):
    return float(np.abs(f(x[order]) - f(x[order])).max())


def gap_w6(f, x, order):
    return float(np.linalg.norm(f(x[order]) - f(x)[order], axis=-1).max())


def gap_w7(f, x, order):
    return np.abs(f(x[order]) - f(x)[order]).max(axis=0)


def gap_w8(f, x, order):
    return bool(np.allclose(f(x[order]), f(x)[order]))


def gap_w9(f, x, order):
    return float(abs((f(x[order]) - f(x)[order]).max()))


def gap_w10(f, x, order):
    rng = np.random.default_rng(0)
    order = rng.permutation(len(x))
    return float(np.abs(f(x[order]) - f(x)[order]).max())


def gap_w11(f, x, order):
    before = f(x[order])
    x[:] = f(x)[order]
    return float(np.abs(before - x).max())


def gap_r1(f, x, order):
    return float(np.abs(f(x[order]) - f(x)[order]).max())


def gap_r2(f, x, order):
    shuffle = np.eye(len(x))[order]
    return float(np.linalg.norm((f(x[order]) - shuffle @ f(x)).ravel(), ord=np.inf))


def gap_r3(f, x, order):
    one, other = f(x[order]), f(x)
    return max(abs(float(a) - float(b)) for t, row in enumerate(order) for a, b in zip(one[t], other[row]))


N = "equivariance_gap"
add(N, "numpy", "invariance", "wrong", gap_w1, "measures invariance: the second result is not shuffled")
add(N, "numpy", "no-absolute", "wrong", gap_w2, "without the absolute value a large negative difference is lost")
add(
    N,
    "numpy",
    "inverse-order",
    "wrong",
    gap_w3,
    "shuffles the results back instead of alike: wrong if order is not its own inverse",
)
add(N, "numpy", "mean", "wrong", gap_w4, "the mean of the differences instead of the largest")
add(N, "numpy", "same-way-twice", "wrong", gap_w5, "both ways shuffle first, so the gap is always 0")
add(
    N,
    "numpy",
    "length-of-rows",
    "wrong",
    gap_w6,
    "the length of the difference of rows instead of the largest number: wrong for D > 1",
)
add(N, "numpy", "per-column", "wrong", gap_w7, "one number for each column instead of one")
add(N, "numpy", "true-or-false", "wrong", gap_w8, "returns whether they agree, instead of the gap")
add(N, "numpy", "absolute-of-maximum", "wrong", gap_w9, "takes the absolute value after the maximum")
add(N, "numpy", "own-order", "wrong", gap_w10, "shuffles in an order of its own instead of the given one")
add(N, "numpy", "x-overwritten", "wrong", gap_w11, "writes into the caller's x, which the next measurement would use")
add(N, "numpy", "plain", "right", gap_r1)
add(N, "numpy", "permutation-matrix", "right", gap_r2)
add(N, "numpy", "loops", "right", gap_r3)

# ------------------------------------------------------------------ sinusoidal_positions


def sin_w1(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = np.arange(T)[:, None] * base ** (-k / D)
    table = np.empty((T, D))
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return table


def sin_w2(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = np.arange(T)[:, None] * base ** (-2 * k / D)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)


def sin_w3(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = np.arange(T)[:, None] * base ** (-2 * k / D)
    table = np.empty((T, D))
    table[:, 0::2], table[:, 1::2] = np.cos(angles), np.sin(angles)
    return table


def sin_w4(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = np.arange(1, T + 1)[:, None] * base ** (-2 * k / D)
    table = np.empty((T, D))
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return table


def sin_w5(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = np.arange(T)[:, None] * 10000.0 ** (-2 * k / D)
    table = np.empty((T, D))
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return table


def sin_w6(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = np.arange(T)[:, None] * base ** (-k / max(D // 2 - 1, 1))
    table = np.empty((T, D))
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return table


def sin_w7(T, D, *, base=10000.0):
    column = np.arange(D)
    angles = np.arange(T)[:, None] * base ** (-column / D)
    return np.where(column % 2 == 0, np.sin(angles), np.cos(angles))


def sin_w8(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = np.arange(T)[:, None] * base ** (2 * k / D)
    table = np.empty((T, D))
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return table


def sin_w9(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = np.arange(T)[:, None] * base ** (-2 * k // D)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(T, D)


def sin_w10(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = np.arange(T)[:, None] * base ** (-2 * k / D)
    return np.stack([np.sin(angles), np.cos(angles)], axis=1).reshape(T, D)


def sin_w11(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = 2 * np.pi * np.arange(T)[:, None] * base ** (-2 * k / D)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(T, D)


def sin_w12(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = (np.arange(T)[:, None] * base ** (-2 * k / D)).astype(np.float16)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(T, D).astype(float)


def sin_r1(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = np.arange(T)[:, None] * base ** (-2 * k / D)
    table = np.empty((T, D))
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return table


def sin_r2(T, D, *, base=10000.0):
    """As in the Annotated Transformer."""
    position = np.arange(T)[:, None]
    div_term = np.exp(np.arange(0, D, 2) * -(math.log(base) / D))
    pe = np.zeros((T, D))
    pe[:, 0::2] = np.sin(position * div_term)
    pe[:, 1::2] = np.cos(position * div_term)
    return pe


def sin_r3(T, D, *, base=10000.0):
    tips = np.exp(1j * np.outer(np.arange(T), np.power(float(base), -np.arange(0, D, 2) / D)))
    return np.stack([tips.imag, tips.real], axis=-1).reshape(T, D)


def sin_r4(T, D, *, base=10000.0):
    rows = []
    for i in range(T):
        row = []
        for k in range(D // 2):
            angle = i / base ** (2 * k / D)
            row += [math.sin(angle), math.cos(angle)]
        rows.append(row)
    return np.array(rows)


N = "sinusoidal_positions"
add(N, "numpy", "k-over-D", "wrong", sin_w1, "the exponent is -k/D instead of -2k/D: the hands are too fast")
add(
    N,
    "numpy",
    "halves",
    "wrong",
    sin_w2,
    "all sines stand in front of all cosines (as in tensor2tensor): wrong for D > 2",
)
add(N, "numpy", "cosine-first", "wrong", sin_w3, "the cosine stands in front of the sine")
add(N, "numpy", "from-one", "wrong", sin_w4, "positions are counted from 1")
add(N, "numpy", "base-ignored", "wrong", sin_w5, "the base is hard-coded")
add(
    N,
    "numpy",
    "last-hand-at-base",
    "wrong",
    sin_w6,
    "the exponents run to 1 inclusively, k/(D/2 - 1), as in tensor2tensor",
)
add(
    N,
    "numpy",
    "column-in-exponent",
    "wrong",
    sin_w7,
    "the number of the column stands in the exponent, so sine and cosine have different speeds",
)
add(N, "numpy", "sign", "wrong", sin_w8, "the sign of the exponent is lost: later hands are faster")
add(N, "numpy", "whole-division", "wrong", sin_w9, "the exponent is divided by // and rounded down to whole numbers")
add(
    N,
    "numpy",
    "stack-axis-1",
    "wrong",
    sin_w10,
    "stacks along axis 1, which puts all sines of a row in front: wrong for D > 2",
)
add(N, "numpy", "full-turns", "wrong", sin_w11, "the speeds are taken for turns instead of radians")
add(N, "numpy", "half-precision", "wrong", sin_w12, "the angles are rounded to 16 bits")
add(N, "numpy", "plain", "right", sin_r1)
add(N, "numpy", "annotated-transformer", "right", sin_r2)
add(N, "numpy", "complex", "right", sin_r3)
add(N, "numpy", "loops", "right", sin_r4)

# ------------------------------------------------------------------ apply_rope, numpy


def rope_w1(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    if interleaved:
        a, b = slice(0, 2 * w, 2), slice(1, 2 * w, 2)
    else:
        a, b = slice(0, w), slice(w, 2 * w)
    y = x.copy()
    y[..., a] = y[..., a] * cos - y[..., b] * sin
    y[..., b] = y[..., b] * cos + y[..., a] * sin
    return y


def rope_w2(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    a, b = (slice(0, 2 * w, 2), slice(1, 2 * w, 2)) if interleaved else (slice(0, w), slice(w, 2 * w))
    first, second = x[..., a].copy(), x[..., b].copy()
    x[..., a] = first * cos - second * sin
    x[..., b] = second * cos + first * sin
    return x


def rope_w3(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    a, b = (slice(0, w), slice(w, 2 * w)) if interleaved else (slice(0, 2 * w, 2), slice(1, 2 * w, 2))
    y = x.copy()
    y[..., a] = x[..., a] * cos - x[..., b] * sin
    y[..., b] = x[..., b] * cos + x[..., a] * sin
    return y


def rope_w4(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    a, b = (slice(0, 2 * w, 2), slice(1, 2 * w, 2)) if interleaved else (slice(0, w), slice(w, 2 * w))
    y = x.copy()
    y[..., a] = x[..., a] * cos + x[..., b] * sin
    y[..., b] = x[..., b] * cos - x[..., a] * sin
    return y


def rope_w5(x, cos, sin, *, interleaved=False):
    w, half = cos.shape[-1], x.shape[-1] // 2
    a, b = (slice(0, 2 * w, 2), slice(1, 2 * w, 2)) if interleaved else (slice(0, w), slice(half, half + w))
    y = x.copy()
    y[..., a] = x[..., a] * cos - x[..., b] * sin
    y[..., b] = x[..., b] * cos + x[..., a] * sin
    return y


def rope_w6(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    if interleaved:
        one, two = x[..., 0 : 2 * w : 2], x[..., 1 : 2 * w : 2]
    else:
        one, two = x[..., :w], x[..., w : 2 * w]
    return np.concatenate([one * cos - two * sin, two * cos + one * sin, x[..., 2 * w :]], axis=-1)


def rope_w7(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    head = x[..., : 2 * w]
    if interleaved:
        cosines, sines = np.repeat(cos, 2, axis=-1), np.repeat(sin, 2, axis=-1)
        partner = np.stack([-head[..., 1::2], head[..., 0::2]], axis=-1).reshape(head.shape)
    else:
        cosines, sines = np.tile(cos, 2), np.tile(sin, 2)
        partner = np.concatenate([-head[..., w:], head[..., :w]], axis=-1)
    return head * cosines + partner * sines


def rope_w8(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    head, tail = x[..., : 2 * w], x[..., 2 * w :]
    cosines, sines = np.repeat(cos, 2, axis=-1), np.repeat(sin, 2, axis=-1)
    if interleaved:
        partner = np.stack([-head[..., 1::2], head[..., 0::2]], axis=-1).reshape(head.shape)
    else:
        partner = np.concatenate([-head[..., w:], head[..., :w]], axis=-1)
    return np.concatenate([head * cosines + partner * sines, tail], axis=-1)


def rope_w9(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    a, b = (slice(0, 2 * w, 2), slice(1, 2 * w, 2)) if interleaved else (slice(0, w), slice(w, 2 * w))
    y = np.zeros_like(x)
    y[..., a] = x[..., a] * cos - x[..., b] * sin
    y[..., b] = x[..., b] * cos + x[..., a] * sin
    return y


def rope_w10(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    a, b = (slice(0, 2 * w, 2), slice(1, 2 * w, 2)) if interleaved else (slice(-2 * w, -w), slice(-w, None))
    y = x.copy()
    y[..., a] = x[..., a] * cos - x[..., b] * sin
    y[..., b] = x[..., b] * cos + x[..., a] * sin
    return y


def rope_w11(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    y = x.copy()
    for t in range(x.shape[0]):
        for k in range(w):
            a, b = (2 * k, 2 * k + 1) if interleaved else (k, k + w)
            y[t, ..., a] = x[t, ..., a] * cos[t % len(cos), k] - x[t, ..., b] * sin[t % len(sin), k]
            y[t, ..., b] = x[t, ..., b] * cos[t % len(cos), k] + x[t, ..., a] * sin[t % len(sin), k]
    return y


def rope_w12(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    a, b = (slice(0, 2 * w, 2), slice(1, 2 * w, 2)) if interleaved else (slice(0, w), slice(w, 2 * w))
    y = x.copy()
    y[..., a] = x[..., a] * cos - x[..., b] * sin
    y[..., b] = x[..., b] * sin + x[..., a] * cos
    return y


def rope_r1(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    a, b = (slice(0, 2 * w, 2), slice(1, 2 * w, 2)) if interleaved else (slice(0, w), slice(w, 2 * w))
    y = x.copy()
    y[..., a] = x[..., a] * cos - x[..., b] * sin
    y[..., b] = x[..., b] * cos + x[..., a] * sin
    return y


def rope_r2(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    head, tail = x[..., : 2 * w], x[..., 2 * w :]
    pairs = head.reshape(*head.shape[:-1], *((w, 2) if interleaved else (2, w)))
    real, imaginary = (pairs[..., 0], pairs[..., 1]) if interleaved else (pairs[..., 0, :], pairs[..., 1, :])
    turned = (real + 1j * imaginary) * (cos + 1j * sin)
    pairs = np.stack([turned.real, turned.imag], axis=-1 if interleaved else -2)
    return np.concatenate([pairs.reshape(head.shape), tail], axis=-1)


def rope_r3(x, cos, sin, *, interleaved=False):
    T, w = cos.shape
    turn = np.zeros((T, x.shape[-1], x.shape[-1]))
    turn[:] = np.eye(x.shape[-1])
    for k in range(w):
        a, b = (2 * k, 2 * k + 1) if interleaved else (k, k + w)
        turn[:, a, a] = turn[:, b, b] = cos[:, k]
        turn[:, a, b], turn[:, b, a] = -sin[:, k], sin[:, k]
    return np.einsum("tab,...tb->...ta", turn, x)


N = "apply_rope"
add(
    N, "numpy", "new-and-old", "wrong", rope_w1, "the second component is made of the first one as it is already turned"
)
add(N, "numpy", "in-place", "wrong", rope_w2, "writes into the caller's vectors")
add(N, "numpy", "layouts-swapped", "wrong", rope_w3, "the two layouts are mistaken for one another: wrong for D > 2")
add(N, "numpy", "turned-back", "wrong", rope_w4, "turns by the negative angle")
add(
    N,
    "numpy",
    "half-of-D",
    "wrong",
    rope_w5,
    "the partner of k is k + D/2 although the tables are narrower, where it is k + w",
)
add(
    N,
    "numpy",
    "not-put-back",
    "wrong",
    rope_w6,
    "with neighbours as pairs the results are not put back where their components were",
)
add(N, "numpy", "tail-lost", "wrong", rope_w7, "the components from 2w on are cut off")
add(N, "numpy", "colleague", "wrong", rope_w8, "the colleague's: half-split with cosines repeated for neighbours")
add(N, "numpy", "tail-zero", "wrong", rope_w9, "the components from 2w on become 0 instead of passing")
add(N, "numpy", "last-components", "wrong", rope_w10, "half-split turns the last 2w components instead of the first")
add(
    N,
    "numpy",
    "first-axis",
    "wrong",
    rope_w11,
    "takes the first axis for the positions, which with a batch is the batch",
)
add(N, "numpy", "cos-and-sin-swapped", "wrong", rope_w12, "cosine and sine are exchanged in the second component")
add(N, "numpy", "plain", "right", rope_r1)
add(N, "numpy", "complex", "right", rope_r2)
add(N, "numpy", "matrices", "right", rope_r3)

# ------------------------------------------------------------------ apply_rope, torch


def trope_w1(x, cos, sin, *, interleaved=False):
    pairs = cos.shape[-1]
    head, tail = x.split([2 * pairs, x.shape[-1] - 2 * pairs], dim=-1)
    cosines, sines = cos.repeat_interleave(2, dim=-1), sin.repeat_interleave(2, dim=-1)
    if interleaved:
        partner = torch.stack([-head[..., 1::2], head[..., 0::2]], dim=-1).flatten(-2)
    else:
        low, high = head.chunk(2, dim=-1)
        partner = torch.cat([-high, low], dim=-1)
    return torch.cat([head * cosines + partner * sines, tail], dim=-1)


def trope_w2(x, cos, sin, *, interleaved=False):
    pairs = cos.shape[-1]
    head, tail = x.split([2 * pairs, x.shape[-1] - 2 * pairs], dim=-1)
    cosines, sines = torch.cat([cos, cos], dim=-1), torch.cat([sin, sin], dim=-1)
    if interleaved:
        partner = torch.stack([-head[..., 1::2], head[..., 0::2]], dim=-1).flatten(-2)
    else:
        low, high = head.chunk(2, dim=-1)
        partner = torch.cat([-high, low], dim=-1)
    return torch.cat([head * cosines + partner * sines, tail], dim=-1)


def trope_w3(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    a, b = (slice(0, 2 * w, 2), slice(1, 2 * w, 2)) if interleaved else (slice(0, w), slice(w, 2 * w))
    y = x.detach().clone()
    y[..., a] = x.detach()[..., a] * cos - x.detach()[..., b] * sin
    y[..., b] = x.detach()[..., b] * cos + x.detach()[..., a] * sin
    return y


def trope_w4(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    a, b = (slice(0, 2 * w, 2), slice(1, 2 * w, 2)) if interleaved else (slice(0, w), slice(w, 2 * w))
    y = torch.empty(x.shape)
    y[..., 2 * w :] = x[..., 2 * w :]
    y[..., a] = (x[..., a] * cos - x[..., b] * sin).float()
    y[..., b] = (x[..., b] * cos + x[..., a] * sin).float()
    return y


def trope_w5(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    a, b = (slice(0, 2 * w, 2), slice(1, 2 * w, 2)) if interleaved else (slice(0, w), slice(w, 2 * w))
    first, second = x.data[..., a].clone(), x.data[..., b].clone()
    x.data[..., a] = first * cos - second * sin
    x.data[..., b] = second * cos + first * sin
    return x * 1


def trope_w6(x, cos, sin, *, interleaved=False):
    one, two = (x[..., 0::2], x[..., 1::2]) if interleaved else x.chunk(2, dim=-1)
    w = cos.shape[-1]
    if w < one.shape[-1]:
        cos = torch.nn.functional.pad(cos, (0, one.shape[-1] - w), value=1.0)
        sin = torch.nn.functional.pad(sin, (0, one.shape[-1] - w))
    turned = one * cos - two * sin, two * cos + one * sin
    return torch.stack(turned, dim=-1).flatten(-2) if interleaved else torch.cat(turned, dim=-1)


def trope_w7(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    head, tail = x[..., : 2 * w], x[..., 2 * w :]
    if not interleaved:
        head = head.unflatten(-1, (w, 2)).transpose(-1, -2).flatten(-2)
    even, odd = head[..., 0::2], head[..., 1::2]
    out = torch.stack([even * cos - odd * sin, odd * cos + even * sin], dim=-1).flatten(-2)
    if not interleaved:
        out = out.unflatten(-1, (2, w)).transpose(-1, -2).flatten(-2)
    return torch.cat([out, tail], dim=-1)


def trope_w8(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    head, tail = x[..., : 2 * w], x[..., 2 * w :]
    if interleaved:
        a, b = head[..., 0::2], head[..., 1::2]
    else:
        a, b = head[..., :w], head[..., w:]
    turned = [a * cos - b * sin, b * cos + a * sin]
    out = torch.stack(turned, dim=-1).flatten(-2)
    return torch.cat([out, tail], dim=-1)


def trope_w9(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    head, tail = x[..., : 2 * w], x[..., 2 * w :].detach()
    a, b = (head[..., 0::2], head[..., 1::2]) if interleaved else head.chunk(2, dim=-1)
    turned = a * cos - b * sin, b * cos + a * sin
    out = torch.stack(turned, dim=-1).flatten(-2) if interleaved else torch.cat(turned, dim=-1)
    return torch.cat([out, tail], dim=-1)


def trope_w10(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    head, tail = x[..., : 2 * w], x[..., 2 * w :]
    a, b = (head[..., 0::2], head[..., 1::2]) if interleaved else head.chunk(2, dim=-1)
    turned = a * cos + b * sin, b * cos - a * sin
    out = torch.stack(turned, dim=-1).flatten(-2) if interleaved else torch.cat(turned, dim=-1)
    return torch.cat([out, tail], dim=-1)


def trope_r1(x, cos, sin, *, interleaved=False):
    """Hers, mended."""
    pairs = cos.shape[-1]
    head, tail = x.split([2 * pairs, x.shape[-1] - 2 * pairs], dim=-1)
    if interleaved:
        cosines, sines = cos.repeat_interleave(2, dim=-1), sin.repeat_interleave(2, dim=-1)
        partner = torch.stack([-head[..., 1::2], head[..., 0::2]], dim=-1).flatten(-2)
    else:
        cosines, sines = torch.cat([cos, cos], dim=-1), torch.cat([sin, sin], dim=-1)
        low, high = head.chunk(2, dim=-1)
        partner = torch.cat([-high, low], dim=-1)
    return torch.cat([head * cosines + partner * sines, tail], dim=-1)


def trope_r2(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    head = x[..., : 2 * w]
    pairs = head.unflatten(-1, (w, 2)) if interleaved else head.unflatten(-1, (2, w)).transpose(-1, -2)
    turned = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * torch.complex(cos, sin))
    turned = turned if interleaved else turned.transpose(-1, -2)
    return torch.cat([turned.flatten(-2), x[..., 2 * w :]], dim=-1)


def trope_r3(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    a, b = (slice(0, 2 * w, 2), slice(1, 2 * w, 2)) if interleaved else (slice(0, w), slice(w, 2 * w))
    y = x.clone()
    y[..., a] = x[..., a] * cos - x[..., b] * sin
    y[..., b] = x[..., b] * cos + x[..., a] * sin
    return y


add(N, "torch", "colleague", "wrong", trope_w1, "hers unchanged: half-split with cosines repeated for neighbours")
add(
    N,
    "torch",
    "mended-too-far",
    "wrong",
    trope_w2,
    "the cosines are laid out half-split in both layouts: now neighbours are wrong",
)
add(N, "torch", "detached", "wrong", trope_w3, "everything is detached: right numbers, no gradients")
add(
    N,
    "torch",
    "default-dtype",
    "wrong",
    trope_w4,
    "writes into a new float32 tensor: wrong dtype and few digits for float64",
)
add(
    N,
    "torch",
    "data-in-place",
    "wrong",
    trope_w5,
    "turns the caller's tensor in place through .data, and the gradients are not turned",
)
add(
    N,
    "torch",
    "half-of-D",
    "wrong",
    trope_w6,
    "half-split pairs k with k + D/2 although the tables are narrower: there it is k + w",
)
add(
    N,
    "torch",
    "shuffled-the-wrong-way",
    "wrong",
    trope_w7,
    "the shuffle from halves to neighbours is done the wrong way round: wrong for w > 2",
)
add(N, "torch", "always-stacked", "wrong", trope_w8, "half-split results are put back as neighbours")
add(
    N,
    "torch",
    "tail-detached",
    "wrong",
    trope_w9,
    "the components that pass are detached: only their gradient is missing",
)
add(N, "torch", "turned-back", "wrong", trope_w10, "turns by the negative angle")
add(N, "torch", "colleague-mended", "right", trope_r1)
add(N, "torch", "complex", "right", trope_r2)
add(N, "torch", "clone-and-slices", "right", trope_r3)

# ------------------------------------------------------------------ alibi_bias


def slopes(H):
    n = 2 ** int(math.log2(H))
    some = [2.0 ** (-8 * h / n) for h in range(1, n + 1)]
    more = [2.0 ** (-8 * h / (2 * n)) for h in range(1, 2 * n + 1)]
    return np.array(some + more[0::2][: H - n])


def distances(T, S, q_offset):
    return np.arange(T)[:, None] + q_offset - np.arange(S)


def alibi_w1(H, T, S, *, q_offset=0):
    return -slopes(H)[:, None, None] * distances(T, S, q_offset)


def alibi_w2(H, T, S, *, q_offset=0):
    return slopes(H)[:, None, None] * np.abs(distances(T, S, q_offset))


def alibi_w3(H, T, S, *, q_offset=0):
    m = 2.0 ** (-8 * np.arange(1, H + 1) / H)
    return -m[:, None, None] * np.abs(distances(T, S, q_offset))


def alibi_w4(H, T, S, *, q_offset=0):
    m = 2.0 ** (-8 * np.arange(H) / H)
    m = m if H & (H - 1) == 0 else slopes(H)
    return -m[:, None, None] * np.abs(distances(T, S, q_offset))


def alibi_w5(H, T, S, *, q_offset=0):
    return -slopes(H)[:, None, None] * np.abs(distances(T, S, 0))


def alibi_w6(H, T, S, *, q_offset=0):
    return -slopes(H)[:, None, None] * np.abs(distances(T, S, -q_offset))


def alibi_w7(H, T, S, *, q_offset=0):
    return -np.abs(distances(T, S, q_offset))[:, :, None] * slopes(H)


def alibi_w8(H, T, S, *, q_offset=0):
    return -slopes(H)[:, None, None] * np.maximum(distances(T, S, q_offset), 0)


def alibi_w9(H, T, S, *, q_offset=0):
    distance = distances(T, S, q_offset)
    return np.where(distance < 0, -np.inf, -slopes(H)[:, None, None] * distance)


def alibi_w10(H, T, S, *, q_offset=0):
    m = np.sort(slopes(H))[::-1]
    return -m[:, None, None] * np.abs(distances(T, S, q_offset))


def alibi_w11(H, T, S, *, q_offset=0):
    n = 2 ** int(math.log2(H))
    some = [2.0 ** (-8 * h / n) for h in range(1, n + 1)]
    more = [2.0 ** (-8 * h / (2 * n)) for h in range(1, 2 * n + 1)]
    m = np.array(some + more[: H - n])
    return -m[:, None, None] * np.abs(distances(T, S, q_offset))


def alibi_w12(H, T, S, *, q_offset=0):
    n = 2 ** round(math.log2(H))
    m = slopes(n)[:H] if n >= H else slopes(H)
    return -m[:, None, None] * np.abs(distances(T, S, q_offset))


def alibi_w13(H, T, S, *, q_offset=0):
    q_offset = q_offset or S - T
    return -slopes(H)[:, None, None] * np.abs(distances(T, S, q_offset))


def alibi_r1(H, T, S, *, q_offset=0):
    distance = np.abs(np.arange(T)[:, None] + q_offset - np.arange(S)[None, :])
    return -slopes(H)[:, None, None] * distance


def alibi_r2(H, T, S, *, q_offset=0):
    """The slopes as in Press's own code, recursive."""

    def get_slopes(n):
        if math.log2(n).is_integer():
            start = 2 ** (-(2 ** -(math.log2(n) - 3)))
            return [start * start**i for i in range(n)]
        closest = 2 ** math.floor(math.log2(n))
        return get_slopes(closest) + get_slopes(2 * closest)[0::2][: n - closest]

    i, j = np.meshgrid(np.arange(T) + q_offset, np.arange(S), indexing="ij")
    return np.einsum("h,ts->hts", np.array(get_slopes(H)), -np.abs(i - j).astype(float))


def alibi_r3(H, T, S, *, q_offset=0):
    n = 1 << (H.bit_length() - 1)
    bias = np.zeros((H, T, S))
    for h in range(H):
        m = 2.0 ** (-8 * (h + 1) / n) if h < n else 2.0 ** (-8 * (2 * (h - n) + 1) / (2 * n))
        for i in range(T):
            for j in range(S):
                bias[h, i, j] = -m * abs(i + q_offset - j)
    return bias


N = "alibi_bias"
add(N, "numpy", "no-absolute", "wrong", alibi_w1, "a key after the query gets a positive number")
add(N, "numpy", "sign", "wrong", alibi_w2, "the bias is positive and grows with distance")
add(N, "numpy", "formula-for-any-H", "wrong", alibi_w3, "uses the formula for a power of two for any number of heads")
add(N, "numpy", "heads-from-zero", "wrong", alibi_w4, "counts heads from 0 in the formula, if H is a power of two")
add(N, "numpy", "offset-forgotten", "wrong", alibi_w5, "q_offset is not used")
add(N, "numpy", "offset-sign", "wrong", alibi_w6, "q_offset moves the queries the wrong way")
add(N, "numpy", "heads-last", "wrong", alibi_w7, "the result is (T, S, H)")
add(N, "numpy", "later-keys-free", "wrong", alibi_w8, "a key after the query gets 0 whatever its distance")
add(
    N,
    "numpy",
    "causal",
    "wrong",
    alibi_w9,
    "as in the paper's models that look back only: later keys get minus infinity",
)
add(N, "numpy", "sorted", "wrong", alibi_w10, "the slopes are sorted: wrong if H is not a power of two")
add(
    N,
    "numpy",
    "not-every-other",
    "wrong",
    alibi_w11,
    "takes the first slopes for 2n heads and not every other one: wrong from n + 2 heads on",
)
add(
    N, "numpy", "nearest-power", "wrong", alibi_w12, "takes the nearest power of two, which may be above H, and cuts it"
)
add(
    N,
    "numpy",
    "aligned-at-the-end",
    "wrong",
    alibi_w13,
    "without an offset the last query is aligned with the last key",
)
add(N, "numpy", "plain", "right", alibi_r1)
add(N, "numpy", "press", "right", alibi_r2)
add(N, "numpy", "loops", "right", alibi_r3)
