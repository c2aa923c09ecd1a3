"""Answers to the notebook "Exercises: positions", as students might write them."""

import math

import numpy as np
import torch

ANSWERS = []


def answer(name, backend, label, verdict, why=""):
    def note(function):
        ANSWERS.append((name, backend, label, verdict, function, why))
        return function

    return note


# ---------------------------------------------------------------- equivariance_gap


@answer(
    "equivariance_gap",
    "numpy",
    "shuffled back instead of along",
    "wrong",
    "argsort(order) is the way back: the rows of f(x) have to be shuffled by order itself.",
)
def gap_w1(f, x, order):
    shuffled_before = f(x[order])
    shuffled_after = f(x)[np.argsort(order)]
    return float(np.abs(shuffled_before - shuffled_after).max())


@answer(
    "equivariance_gap",
    "numpy",
    "size of the largest",
    "wrong",
    "abs is taken after max: a large negative difference is lost before its sign is.",
)
def gap_w2(f, x, order):
    shuffled_before = f(x[order])
    return float(abs((shuffled_before - f(x)[order]).max()))


@answer(
    "equivariance_gap",
    "numpy",
    "columns sorted before comparing",
    "wrong",
    "Sorting both results compares them as bags of numbers: rows that came out in the wrong places go unseen.",
)
def gap_w3(f, x, order):
    shuffled_before = np.sort(f(x[order]), axis=0)
    shuffled_after = np.sort(f(x), axis=0)
    return float(np.max(np.abs(shuffled_before - shuffled_after)))


# ---------------------------------------------------------------- sinusoidal_positions


@answer(
    "sinusoidal_positions",
    "numpy",
    "divided by D minus 2",
    "wrong",
    "The exponent is 2k/(D-2), so that the last hand has the speed 1/base exactly; the formula here divides by D.",
)
def sinusoids_w1(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    speeds = base ** (-k / max(D / 2 - 1, 1))
    angles = np.outer(np.arange(T), speeds)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(T, D)


@answer(
    "sinusoidal_positions",
    "numpy",
    "power before product",
    "wrong",
    "base ** -2 * k / D is (base ** -2) * k / D: the k is not in the exponent.",
)
def sinusoids_w2(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    omega = base**-2 * k / D
    theta = np.arange(T)[:, None] * omega
    table = np.zeros((T, D))
    table[:, 0::2], table[:, 1::2] = np.sin(theta), np.cos(theta)
    return table


@answer(
    "sinusoidal_positions",
    "numpy",
    "an own speed for every column",
    "wrong",
    "The number of the column stands in the exponent in place of the hand's, so a sine and its cosine turn at different speeds.",
)
def sinusoids_w3(T, D, *, base=10000.0):
    table = np.empty((T, D))
    for i in range(T):
        for c in range(D):
            angle = i / base ** (c / D)
            table[i, c] = math.sin(angle) if c % 2 == 0 else math.cos(angle)
    return table


@answer(
    "sinusoidal_positions",
    "numpy",
    "stacked on the wrong axis",
    "wrong",
    "Stacked along axis 1 all sines of a row come before all cosines; sine and cosine of a hand are not neighbours.",
)
def sinusoids_w4(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    theta = np.arange(T)[:, None] * base ** (-2 * k / D)
    return np.stack([np.sin(theta), np.cos(theta)], axis=1).reshape(T, D)


@answer(
    "sinusoidal_positions",
    "numpy",
    "floor division in the exponent",
    "wrong",
    "-2 * k // D rounds down to a whole number: all hands but the first turn at the speed 1/base.",
)
def sinusoids_w5(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    omega = float(base) ** (-2 * k // D)
    theta = np.einsum("i,k->ik", np.arange(T), omega)
    table = np.zeros((T, D))
    table[:, ::2] = np.sin(theta)
    table[:, 1::2] = np.cos(theta)
    return table


@answer("sinusoidal_positions", "numpy", "complex numbers read as pairs", "right")
def sinusoids_r1(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    log_speed = -2.0 * k * math.log(base) / D
    turns = np.exp(-1j * np.outer(np.arange(T), np.exp(log_speed)))  # cos - i sin
    return np.ascontiguousarray(1j * turns).view(np.float64)  # sin, cos, sin, cos, …


# ---------------------------------------------------------------- apply_rope, numpy


@answer(
    "apply_rope",
    "numpy",
    "partners half of D away",
    "wrong",
    "With fewer than D/2 columns the partner of k is k + w, inside of the first 2w components, and not k + D/2.",
)
def rope_w1(x, cos, sin, *, interleaved=False):
    w, half = cos.shape[-1], x.shape[-1] // 2
    if interleaved:
        a, b = slice(0, 2 * w, 2), slice(1, 2 * w, 2)
    else:
        a, b = slice(0, w), slice(half, half + w)
    y = x.copy()
    y[..., a] = x[..., a] * cos - x[..., b] * sin
    y[..., b] = x[..., b] * cos + x[..., a] * sin
    return y


@answer(
    "apply_rope",
    "numpy",
    "new first component used for neighbours",
    "wrong",
    "In the interleaved loop the second component is made of the first one as it is after the turn.",
)
def rope_w2(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    y = np.array(x)
    if not interleaved:
        first, second = x[..., :w], x[..., w : 2 * w]
        y[..., :w] = first * cos - second * sin
        y[..., w : 2 * w] = second * cos + first * sin
        return y
    for k in range(w):
        c, s = cos[:, k], sin[:, k]
        y[..., 2 * k] = y[..., 2 * k] * c - y[..., 2 * k + 1] * s
        y[..., 2 * k + 1] = y[..., 2 * k + 1] * c + y[..., 2 * k] * s
    return y


@answer(
    "apply_rope",
    "numpy",
    "neighbours put back as halves",
    "wrong",
    "The interleaved pairs are turned rightly, but written back as two halves and not to where they were.",
)
def rope_w3(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    head, tail = x[..., : 2 * w], x[..., 2 * w :]
    a, b = (head[..., ::2], head[..., 1::2]) if interleaved else (head[..., :w], head[..., w:])
    return np.concatenate([a * cos - b * sin, b * cos + a * sin, tail], axis=-1)


@answer(
    "apply_rope",
    "numpy",
    "asarray is no copy",
    "wrong",
    "np.asarray returns the very same array, so the vectors of the caller are turned as well.",
)
def rope_w4(x, cos, sin, *, interleaved=False):
    y = np.asarray(x)
    w = cos.shape[-1]
    k = np.arange(w)
    a, b = (2 * k, 2 * k + 1) if interleaved else (k, k + w)
    new_a = y[..., a] * cos - y[..., b] * sin
    new_b = y[..., b] * cos + y[..., a] * sin
    y[..., a], y[..., b] = new_a, new_b
    return y


@answer(
    "apply_rope",
    "numpy",
    "room for heads behind the positions",
    "wrong",
    "The tables get an axis for heads, as in code that keeps vectors as (T, H, D); here the positions stand on the last axis but one.",
)
def rope_w5(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    if x.ndim > 2:
        cos, sin = cos[:, None, :], sin[:, None, :]
    head, tail = x[..., : 2 * w], x[..., 2 * w :]
    if interleaved:
        a, b = head[..., 0::2], head[..., 1::2]
        turned = np.stack([a * cos - b * sin, b * cos + a * sin], axis=-1)
        turned = turned.reshape(*turned.shape[:-2], 2 * w)
    else:
        a, b = head[..., :w], head[..., w:]
        turned = np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
    return np.concatenate([turned, tail], axis=-1)


@answer("apply_rope", "numpy", "a matrix for each position", "right")
def rope_r1(x, cos, sin, *, interleaved=False):
    T, w = cos.shape
    turn = np.tile(np.eye(x.shape[-1]), (T, 1, 1))
    for k in range(w):
        a, b = (2 * k, 2 * k + 1) if interleaved else (k, k + w)
        turn[:, a, a] = turn[:, b, b] = cos[:, k]
        turn[:, a, b], turn[:, b, a] = -sin[:, k], sin[:, k]
    return (turn @ x[..., None])[..., 0]


# ---------------------------------------------------------------- apply_rope, torch


@answer(
    "apply_rope",
    "torch",
    "mended one layout, broke the other",
    "wrong",
    "The tables are repeated block by block in both layouts now: neighbours get the angles of two different pairs.",
)
def rope_t1(x, cos, sin, *, interleaved=False):
    pairs = cos.shape[-1]
    head, tail = x.split([2 * pairs, x.shape[-1] - 2 * pairs], dim=-1)
    cosines = torch.cat([cos, cos], dim=-1)
    sines = torch.cat([sin, sin], dim=-1)
    if interleaved:
        even, odd = head[..., 0::2], head[..., 1::2]
        partner = torch.stack([-odd, even], dim=-1).flatten(-2)
    else:
        low, high = head.chunk(2, dim=-1)
        partner = torch.cat([-high, low], dim=-1)
    return torch.cat([head * cosines + partner * sines, tail], dim=-1)


@answer(
    "apply_rope",
    "torch",
    "views of the copy",
    "wrong",
    "first and second are views of y: after the first assignment the first one holds the turned numbers already.",
)
def rope_t2(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    y = x.clone()
    if interleaved:
        first, second = y[..., 0 : 2 * w : 2], y[..., 1 : 2 * w : 2]
    else:
        first, second = y[..., :w], y[..., w : 2 * w]
    first[...] = first * cos - second * sin
    second[...] = second * cos + first * sin
    return y


@answer(
    "apply_rope",
    "torch",
    "detached to protect the caller",
    "wrong",
    "x.detach() keeps the caller's vectors safe, but it also cuts the gradient: nothing flows back to x.",
)
def rope_t3(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    old = x.detach()
    y = old.clone()
    a, b = (slice(0, 2 * w, 2), slice(1, 2 * w, 2)) if interleaved else (slice(0, w), slice(w, 2 * w))
    y[..., a] = old[..., a] * cos - old[..., b] * sin
    y[..., b] = old[..., b] * cos + old[..., a] * sin
    return y


@answer(
    "apply_rope",
    "torch",
    "complex result always flattened",
    "wrong",
    "In the half-split layout the turned pairs are written back as neighbours instead of to the two halves.",
)
def rope_t4(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    head, tail = x[..., : 2 * w], x[..., 2 * w :]
    if interleaved:
        pairs = torch.complex(head[..., 0::2], head[..., 1::2])
    else:
        pairs = torch.complex(head[..., :w], head[..., w:])
    turned = torch.view_as_real(pairs * torch.complex(cos, sin)).flatten(-2)
    return torch.cat([turned, tail], dim=-1)


@answer("apply_rope", "torch", "always through the half-split layout", "right")
def rope_tr1(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    k = torch.arange(w)
    to_halves = torch.cat([2 * k, 2 * k + 1, torch.arange(2 * w, x.shape[-1])])
    if interleaved:
        return rope_tr1(x[..., to_halves], cos, sin)[..., torch.argsort(to_halves)]
    z = torch.polar(torch.hypot(cos, sin), torch.atan2(sin, cos)) * torch.complex(x[..., :w], x[..., w : 2 * w])
    return torch.cat([z.real, z.imag, x[..., 2 * w :]], dim=-1)


# ---------------------------------------------------------------- alibi_bias


def _power_slopes(n):
    return [2 ** (-8 * h / n) for h in range(1, n + 1)]


@answer(
    "alibi_bias",
    "numpy",
    "nearest power of two",
    "wrong",
    "log2 of H is rounded, so that 6 or 7 heads start from 8 slopes: n has to be the largest power of two below H.",
)
def alibi_w1(H, T, S, *, q_offset=0):
    n = 2 ** round(math.log2(H))
    slopes = (_power_slopes(n) + _power_slopes(2 * n)[::2])[:H]
    i, j = np.arange(T)[:, None] + q_offset, np.arange(S)
    return -np.array(slopes)[:, None, None] * np.abs(i - j)


@answer(
    "alibi_bias",
    "numpy",
    "even taken for a power of two",
    "wrong",
    "An even number of heads is taken for a power of two: 6, 10 or 12 heads get the plain formula.",
)
def alibi_w2(H, T, S, *, q_offset=0):
    if H == 1 or H % 2 == 0:
        slopes = _power_slopes(H)
    else:
        n = 2 ** (H.bit_length() - 1)
        slopes = _power_slopes(n) + _power_slopes(2 * n)[0::2][: H - n]
    distance = np.abs(np.arange(T).reshape(-1, 1) + q_offset - np.arange(S))
    return np.stack([-m * distance for m in slopes])


@answer(
    "alibi_bias",
    "numpy",
    "slopes put in order",
    "wrong",
    "The slopes are sorted from steep to flat; the extra ones have to stand behind the n slopes for n heads.",
)
def alibi_w3(H, T, S, *, q_offset=0):
    n = 1
    while 2 * n <= H:
        n *= 2
    slopes = _power_slopes(n) + _power_slopes(2 * n)[::2][: H - n]
    slopes = np.sort(slopes)[::-1]
    i, j = np.ogrid[:T, :S]
    return np.einsum("h,ts->hts", -slopes, abs(i + q_offset - j))


@answer(
    "alibi_bias",
    "numpy",
    "offset given to the keys",
    "wrong",
    "The offset moves the keys and not the queries, which is the other way.",
)
def alibi_w4(H, T, S, *, q_offset=0):
    n = 2 ** int(math.log2(H))
    slopes = _power_slopes(n) + _power_slopes(2 * n)[::2][: H - n]
    bias = np.zeros((H, T, S))
    for h in range(H):
        for i in range(T):
            for j in range(S):
                bias[h, i, j] = -slopes[h] * abs(i - (j + q_offset))
    return bias


@answer(
    "alibi_bias",
    "numpy",
    "later keys for nothing",
    "wrong",
    "A key after the query gets 0 here, as under a causal mask; it has to lose with its distance like one before it.",
)
def alibi_w5(H, T, S, *, q_offset=0):
    n = 2 ** (H.bit_length() - 1)
    slopes = np.array(_power_slopes(n) + _power_slopes(2 * n)[::2][: H - n])
    back = np.arange(T)[:, None] + q_offset - np.arange(S)[None, :]
    return -slopes[:, None, None] * np.maximum(back, 0)


@answer("alibi_bias", "numpy", "recursive slopes, geometric series", "right")
def alibi_r1(H, T, S, *, q_offset=0):
    def slopes(n):
        if n & (n - 1) == 0:
            start = 2 ** (-(2 ** -(math.log2(n) - 3)))
            return [start * start**i for i in range(n)]
        closest = 2 ** math.floor(math.log2(n))
        return slopes(closest) + slopes(2 * closest)[0::2][: n - closest]

    steps = np.abs(np.subtract.outer(np.arange(q_offset, q_offset + T), np.arange(S)))
    return np.multiply.outer(-np.asarray(slopes(H)), steps)
