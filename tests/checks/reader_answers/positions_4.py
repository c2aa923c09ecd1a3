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
    "eg-abs-of-max",
    "wrong",
    "The absolute value is taken of the largest difference, so a large negative difference is not seen.",
)
def equivariance_gap_w1(f, x, order):
    shuffled_before = f(x[order])
    shuffled_after = f(x)[order]
    return float(abs(np.max(shuffled_before - shuffled_after)))


@answer(
    "equivariance_gap",
    "numpy",
    "eg-argsort",
    "wrong",
    "The results are shuffled by the inverse of order (argsort), which is another shuffle unless order is its own inverse.",
)
def equivariance_gap_w2(f, x, order):
    shuffled_before = f(x[order])
    back = np.argsort(order)
    return float(np.abs(shuffled_before - f(x)[back]).max())


@answer(
    "equivariance_gap",
    "numpy",
    "eg-assign-into-f",
    "wrong",
    "The result of f is overwritten in place; if f gives x itself back, x is shuffled for the caller.",
)
def equivariance_gap_w3(f, x, order):
    shuffled_before = f(x[order])
    after = f(x)
    after[:] = after[order]
    return float(np.max(np.abs(shuffled_before - after)))


@answer(
    "equivariance_gap",
    "numpy",
    "eg-row-by-row",
    "wrong",
    "f is applied to single rows, so the words no longer meet each other.",
)
def equivariance_gap_w4(f, x, order):
    shuffled_before = f(x[order])
    after = np.concatenate([f(x[i : i + 1]) for i in order])
    return float(np.abs(shuffled_before - after).max())


@answer(
    "equivariance_gap",
    "numpy",
    "eg-norm",
    "wrong",
    "np.linalg.norm is the root of the sum of squares, not the largest difference.",
)
def equivariance_gap_w5(f, x, order):
    shuffled_before = f(x[order])
    return float(np.linalg.norm(shuffled_before - f(x)[order]))


@answer("equivariance_gap", "numpy", "eg-r-loop", "right")
def equivariance_gap_r1(f, x, order):
    shuffled_before = f(x[order])
    plain = f(x)
    gap = 0.0
    for t, source in enumerate(order):
        for a, b in zip(shuffled_before[t], plain[source]):
            gap = max(gap, float(abs(a - b)))
    return gap


# ---------------------------------------------------------------- sinusoidal_positions


@answer(
    "sinusoidal_positions",
    "numpy",
    "sp-column-exponent",
    "wrong",
    "The number of the column stands in the exponent instead of 2k, so sine and cosine of a pair turn at different speeds.",
)
def sinusoidal_positions_w1(T, D, *, base=10000.0):
    table = np.zeros((T, D))
    for i in range(T):
        for c in range(D):
            angle = i / base ** (c / D)
            table[i, c] = math.sin(angle) if c % 2 == 0 else math.cos(angle)
    return table


@answer(
    "sinusoidal_positions",
    "numpy",
    "sp-tensor2tensor",
    "wrong",
    "The speeds are spaced as in tensor2tensor, with D/2 - 1 below instead of D/2, so that the slowest hand gets 1/base.",
)
def sinusoidal_positions_w2(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    step = math.log(base) / max(D // 2 - 1, 1)
    angles = np.arange(T)[:, None] * np.exp(-step * k)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(T, D)


@answer(
    "sinusoidal_positions",
    "numpy",
    "sp-integer-table",
    "wrong",
    "zeros_like of whole numbers makes a table of whole numbers: all sines and cosines are cut off to 0 or 1.",
)
def sinusoidal_positions_w3(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    positions = np.arange(T)
    table = np.zeros_like(np.add.outer(positions, np.arange(D)))
    table[:, 0::2] = np.sin(np.outer(positions, base ** (-2 * k / D)))
    table[:, 1::2] = np.cos(np.outer(positions, base ** (-2 * k / D)))
    return table


@answer(
    "sinusoidal_positions",
    "numpy",
    "sp-floor-division",
    "wrong",
    "2*k // D is 0 for every hand, so all hands turn at the speed 1.",
)
def sinusoidal_positions_w4(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    omega = 1.0 / base ** (2 * k // D)
    angles = np.arange(T)[:, None] * omega[None, :]
    out = np.empty((T, D))
    out[:, ::2] = np.sin(angles)
    out[:, 1::2] = np.cos(angles)
    return out


_TABLES = {}


@answer(
    "sinusoidal_positions",
    "numpy",
    "sp-cache-without-base",
    "wrong",
    "The tables are kept by T and D only: a second call with another base gets the table of the first.",
)
def sinusoidal_positions_w5(T, D, *, base=10000.0):
    if (T, D) not in _TABLES:
        k = np.arange(D // 2)
        angles = np.arange(T)[:, None] * base ** (-2 * k / D)
        _TABLES[T, D] = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(T, D)
    return _TABLES[T, D].copy()


@answer(
    "sinusoidal_positions",
    "numpy",
    "sp-stack-axis-one",
    "wrong",
    "Stacked along axis 1, the reshape gives all sines first and then all cosines.",
)
def sinusoidal_positions_w6(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = np.einsum("i,k->ik", np.arange(T), base ** (-2.0 * k / D))
    return np.stack((np.sin(angles), np.cos(angles)), axis=1).reshape(T, D)


@answer("sinusoidal_positions", "numpy", "sp-r-complex-view", "right")
def sinusoidal_positions_r1(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = np.multiply.outer(np.arange(T), np.exp(-np.log(base) * 2 * k / D))
    hands = 1j * np.exp(-1j * angles)  # real part sin, imaginary part cos
    return hands.view(np.float64)


# ---------------------------------------------------------------- apply_rope, NumPy


@answer(
    "apply_rope",
    "numpy",
    "ar-partner-d-half",
    "wrong",
    "Half-split pairs are k and k + D/2 even if only 2w components are turned; then it has to be k and k + w.",
)
def apply_rope_w1(x, cos, sin, *, interleaved=False):
    D, w = x.shape[-1], cos.shape[-1]
    k = np.arange(w)
    a, b = (2 * k, 2 * k + 1) if interleaved else (k, k + D // 2)
    out = x.copy()
    out[..., a] = x[..., a] * cos - x[..., b] * sin
    out[..., b] = x[..., b] * cos + x[..., a] * sin
    return out


@answer(
    "apply_rope",
    "numpy",
    "ar-new-used-for-old",
    "wrong",
    "The second component is made of the first one after it has been changed.",
)
def apply_rope_w2(x, cos, sin, *, interleaved=False):
    y, w = x.copy(), cos.shape[-1]
    first, second = (slice(0, 2 * w, 2), slice(1, 2 * w, 2)) if interleaved else (slice(0, w), slice(w, 2 * w))
    y[..., first] = y[..., first] * cos - y[..., second] * sin
    y[..., second] = y[..., second] * cos + y[..., first] * sin
    return y


@answer(
    "apply_rope",
    "numpy",
    "ar-interleaved-not-back",
    "wrong",
    "With interleaved=True the results are put one block behind the other instead of back to the places 2k and 2k + 1.",
)
def apply_rope_w3(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    turned, rest = x[..., : 2 * w], x[..., 2 * w :]
    a, b = (turned[..., ::2], turned[..., 1::2]) if interleaved else (turned[..., :w], turned[..., w:])
    return np.concatenate([a * cos - b * sin, b * cos + a * sin, rest], axis=-1)


@answer(
    "apply_rope",
    "numpy",
    "ar-view-of-x",
    "wrong",
    "The pieces of x are views, and *= and += on them change the vectors of the caller.",
)
def apply_rope_w4(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    if interleaved:
        a, b = x[..., 0 : 2 * w : 2], x[..., 1 : 2 * w : 2]
    else:
        a, b = x[..., :w], x[..., w : 2 * w]
    old_a, old_b = a.copy(), b.copy()
    a *= cos
    a -= old_b * sin
    b *= cos
    b += old_a * sin
    return x.copy()


@answer(
    "apply_rope",
    "numpy",
    "ar-tail-lost",
    "wrong",
    "The result starts as zeros, and the components from 2w on are never filled in.",
)
def apply_rope_w5(x, cos, sin, *, interleaved=False):
    out = np.zeros_like(x)
    for k in range(cos.shape[1]):
        a, b = (2 * k, 2 * k + 1) if interleaved else (k, k + cos.shape[1])
        out[..., a] = x[..., a] * cos[:, k] - x[..., b] * sin[:, k]
        out[..., b] = x[..., b] * cos[:, k] + x[..., a] * sin[:, k]
    return out


@answer(
    "apply_rope",
    "numpy",
    "ar-heads-expected",
    "wrong",
    "cos[:, None, :] makes room for heads behind the positions, as in another library's layout (T, H, D); here T stands just before D.",
)
def apply_rope_w6(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    c, s = cos[:, None, :], sin[:, None, :]
    y = np.array(x)
    if interleaved:
        a, b = x[..., 0 : 2 * w : 2], x[..., 1 : 2 * w : 2]
        y[..., 0 : 2 * w : 2], y[..., 1 : 2 * w : 2] = a * c - b * s, b * c + a * s
    else:
        a, b = x[..., :w], x[..., w : 2 * w]
        y[..., :w], y[..., w : 2 * w] = a * c - b * s, b * c + a * s
    return y


@answer("apply_rope", "numpy", "ar-r-matrices", "right")
def apply_rope_r1(x, cos, sin, *, interleaved=False):
    T, w = cos.shape
    D = x.shape[-1]
    turn = np.zeros((T, D, D))
    turn[:] = np.eye(D)
    for k in range(w):
        a, b = (2 * k, 2 * k + 1) if interleaved else (k, k + w)
        turn[:, a, a] = turn[:, b, b] = cos[:, k]
        turn[:, a, b] = -sin[:, k]
        turn[:, b, a] = sin[:, k]
    return np.einsum("tij,...tj->...ti", turn, x)


# ---------------------------------------------------------------- apply_rope, torch


@answer(
    "apply_rope",
    "torch",
    "at-repeat-for-both",
    "wrong",
    "Repeating the whole tables mends the half-split layout and breaks the interleaved one, which needs each number twice in a row.",
)
def apply_rope_torch_w1(x, cos, sin, *, interleaved=False):
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
    "at-sines-forgotten",
    "wrong",
    "Only the cosines are put in the order of the halves, the sines still stand in the order of neighbours.",
)
def apply_rope_torch_w2(x, cos, sin, *, interleaved=False):
    pairs = cos.shape[-1]
    head, tail = x.split([2 * pairs, x.shape[-1] - 2 * pairs], dim=-1)
    sines = sin.repeat_interleave(2, dim=-1)
    if interleaved:
        cosines = cos.repeat_interleave(2, dim=-1)
        partner = torch.stack([-head[..., 1::2], head[..., 0::2]], dim=-1).flatten(-2)
    else:
        cosines = cos.repeat(1, 2)
        low, high = head.chunk(2, dim=-1)
        partner = torch.cat([-high, low], dim=-1)
    return torch.cat([head * cosines + partner * sines, tail], dim=-1)


@answer("apply_rope", "torch", "at-data", "wrong", "x.data cuts the gradient off.")
def apply_rope_torch_w3(x, cos, sin, *, interleaved=False):
    w = cos.size(-1)
    a = slice(0, 2 * w, 2) if interleaved else slice(0, w)
    b = slice(1, 2 * w, 2) if interleaved else slice(w, 2 * w)
    out = x.data.clone()
    out[..., a] = x.data[..., a] * cos - x.data[..., b] * sin
    out[..., b] = x.data[..., b] * cos + x.data[..., a] * sin
    return out


@answer(
    "apply_rope",
    "torch",
    "at-views-of-clone",
    "wrong",
    "The halves are views of the clone that is written to: the second line reads numbers that are new already.",
)
def apply_rope_torch_w4(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    out = x.clone()
    if interleaved:
        one, two = out[..., 0 : 2 * w : 2], out[..., 1 : 2 * w : 2]
    else:
        one, two = out[..., :w], out[..., w : 2 * w]
    one.copy_(one * cos - two * sin)
    two.copy_(two * cos + one * sin)
    return out


@answer(
    "apply_rope",
    "torch",
    "at-tail-at-the-front",
    "wrong",
    "The components that pass are taken from the front: the first 2w have to be turned, not the last.",
)
def apply_rope_torch_w5(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    keep, head = x.split([x.shape[-1] - 2 * w, 2 * w], dim=-1)
    if interleaved:
        a, b = head[..., ::2], head[..., 1::2]
        turned = torch.stack([a * cos - b * sin, b * cos + a * sin], dim=-1).flatten(-2)
    else:
        a, b = head.chunk(2, dim=-1)
        turned = torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)
    return torch.cat([keep, turned], dim=-1)


@answer("apply_rope", "torch", "at-r-unflatten", "right")
def apply_rope_torch_r1(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    shape, axis = ((w, 2), -1) if interleaved else ((2, w), -2)
    a, b = x[..., : 2 * w].unflatten(-1, shape).unbind(axis)
    turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=axis).flatten(-2)
    return torch.cat((turned, x[..., 2 * w :]), dim=-1)


# ---------------------------------------------------------------- alibi_bias


@answer(
    "alibi_bias",
    "numpy",
    "ab-no-abs",
    "wrong",
    "Without the absolute value, keys after the query get a bonus instead of a loss.",
)
def alibi_bias_w1(H, T, S, *, q_offset=0):
    def slopes(n):
        return [2 ** (-8 * h / n) for h in range(1, n + 1)]

    n = 2 ** int(math.floor(math.log2(H)))
    m = slopes(n) + slopes(2 * n)[::2][: H - n]
    distance = np.arange(T)[:, None] + q_offset - np.arange(S)[None, :]
    return -np.array(m)[:, None, None] * distance


@answer("alibi_bias", "numpy", "ab-formula-for-all", "wrong", "The formula for a power of two is used for every H.")
def alibi_bias_w2(H, T, S, *, q_offset=0):
    m = 2.0 ** (-8.0 * np.arange(1, H + 1) / H)
    i, j = np.arange(T) + q_offset, np.arange(S)
    return -np.einsum("h,ts->hts", m, np.abs(i[:, None] - j))


@answer(
    "alibi_bias",
    "numpy",
    "ab-round",
    "wrong",
    "The power of two is rounded, not the one below: for 6 heads it takes the slopes of 8.",
)
def alibi_bias_w3(H, T, S, *, q_offset=0):
    n = 2 ** round(math.log2(H))
    m = [2 ** (-8 * h / n) for h in range(1, n + 1)]
    m += [2 ** (-4 * h / n) for h in range(1, 2 * n + 1, 2)]
    m = np.array(m[:H])
    distance = np.abs(np.arange(T)[:, None] + q_offset - np.arange(S))
    return -m[:, None, None] * distance


@answer(
    "alibi_bias",
    "numpy",
    "ab-sorted",
    "wrong",
    "The slopes are sorted from steep to flat; the additional ones belong behind the others.",
)
def alibi_bias_w4(H, T, S, *, q_offset=0):
    n = 1
    while 2 * n <= H:
        n *= 2
    slopes = [2.0 ** (-8 * h / n) for h in range(1, n + 1)]
    extra = [2.0 ** (-8 * h / (2 * n)) for h in range(1, 2 * n + 1)][0::2][: H - n]
    slopes = np.sort(np.array(slopes + extra))[::-1]
    distance = abs(np.subtract.outer(np.arange(T) + q_offset, np.arange(S)))
    return -slopes.reshape(H, 1, 1) * distance


@answer(
    "alibi_bias",
    "numpy",
    "ab-future-infinite",
    "wrong",
    "Keys after the query get -inf as in the causal models of the paper; here they lose by their distance, too.",
)
def alibi_bias_w5(H, T, S, *, q_offset=0):
    n = 2 ** (H.bit_length() - 1)
    m = np.array([2 ** (-8 * h / n) for h in range(1, n + 1)] + [2 ** (-4 * h / n) for h in range(1, 2 * n, 2)])[:H]
    steps = np.arange(T)[:, None] + q_offset - np.arange(S)[None]
    return np.where(steps >= 0, -m[:, None, None] * np.abs(steps), -np.inf)


@answer(
    "alibi_bias",
    "numpy",
    "ab-extra-every-other-from-second",
    "wrong",
    "Every other slope of 2n heads is taken from the second on: these are the n slopes that are there already.",
)
def alibi_bias_w6(H, T, S, *, q_offset=0):
    n = 1 << (H.bit_length() - 1)
    base = 2.0 ** (-8 * np.arange(1, n + 1) / n)
    double = 2.0 ** (-8 * np.arange(1, 2 * n + 1) / (2 * n))
    m = np.concatenate([base, double[1::2][: H - n]])
    d = np.abs((np.arange(T) + q_offset)[:, None] - np.arange(S)[None, :])
    return -(m[:, None, None] * d[None])


@answer("alibi_bias", "numpy", "ab-r-recursive-loops", "right")
def alibi_bias_r1(H, T, S, *, q_offset=0):
    def slope(h, heads):  # h from 1
        below = 1
        while below * 2 <= heads:
            below *= 2
        if below == heads or h <= below:
            return 0.5 ** (8 * h / below)
        return slope(2 * (h - below) - 1, 2 * below)

    bias = np.zeros((H, T, S))
    for h, i, j in np.ndindex(H, T, S):
        bias[h, i, j] = -slope(h + 1, H) * abs(i + q_offset - j)
    return bias
