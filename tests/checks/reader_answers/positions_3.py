"""Still more answers to the notebook "positions", by other readers."""

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
    "compared with f of x unshuffled",
    "wrong",
    "f(x) is not shuffled: this measures whether the result stays the same, not whether it is shuffled alike.",
)
def equivariance_gap_w1(f, x, order):
    shuffled_before = f(x[order])
    return float(np.abs(shuffled_before - f(x)).max())


@answer(
    "equivariance_gap",
    "numpy",
    "maximum first, then the size",
    "wrong",
    "The absolute value is taken of the maximum: a large negative difference is lost.",
)
def equivariance_gap_w2(f, x, order):
    shuffled_before = f(x[order])
    difference = shuffled_before - f(x)[order]
    return float(abs(difference.max()))


@answer(
    "equivariance_gap",
    "numpy",
    "shuffled by the inverse",
    "wrong",
    "argsort of order is the way back: f(x) is shuffled the other way round.",
)
def equivariance_gap_w3(f, x, order):
    shuffled_before = f(x[order])
    shuffled_after = f(x)[np.argsort(order)]
    return float(np.max(np.abs(shuffled_before - shuffled_after)))


@answer(
    "equivariance_gap",
    "numpy",
    "infinity norm of the matrix",
    "wrong",
    "For a matrix, the norm of order inf is the largest sum of a row, not the largest number.",
)
def equivariance_gap_w4(f, x, order):
    shuffled_before = f(x[order])
    return float(np.linalg.norm(shuffled_before - f(x)[order], ord=np.inf))


@answer(
    "equivariance_gap",
    "numpy",
    "both sorted",
    "wrong",
    "Sorting each column forgets which row the numbers belonged to, so gaps vanish.",
)
def equivariance_gap_w5(f, x, order):
    shuffled_before = f(x[order])
    return float(np.abs(np.sort(shuffled_before, axis=0) - np.sort(f(x), axis=0)).max())


@answer(
    "equivariance_gap",
    "numpy",
    "f row by row",
    "wrong",
    "f has to see all rows at once: of one row alone it makes something else.",
)
def equivariance_gap_w6(f, x, order):
    shuffled_before = f(x[order])
    gap = 0.0
    for t, source in enumerate(order):
        after = f(x[source : source + 1])[0]
        gap = max(gap, float(np.abs(shuffled_before[t] - after).max()))
    return gap


@answer(
    "equivariance_gap",
    "numpy",
    "relative difference",
    "wrong",
    "The gap is divided by the size of the result; the largest difference itself was asked for.",
)
def equivariance_gap_w7(f, x, order):
    shuffled_before = f(x[order])
    shuffled_after = f(x)[order]
    return float(np.abs(shuffled_before - shuffled_after).max() / np.abs(shuffled_after).max())


@answer(
    "equivariance_gap",
    "numpy",
    "shuffles the caller's rows",
    "wrong",
    "x[:] = x[order] shuffles the rows of whoever called.",
)
def equivariance_gap_w8(f, x, order):
    shuffled_before = f(x[order])
    shuffled_after = f(x.copy())[order]
    x[:] = x[order]
    return float(np.amax(np.absolute(shuffled_before - shuffled_after)))


@answer(
    "equivariance_gap",
    "numpy",
    "return in the loop",
    "wrong",
    "The return stands inside the loop, so only the first row is compared.",
)
def equivariance_gap_w9(f, x, order):
    shuffled_before = f(x[order])
    result = f(x)
    gap = 0.0
    for t in range(len(order)):
        for a, b in zip(shuffled_before[t], result[order[t]]):
            gap = max(gap, abs(float(a) - float(b)))
        return gap


@answer("equivariance_gap", "numpy", "sorted back instead", "right")
def equivariance_gap_r1(f, x, order):
    shuffled_before = f(x[order])
    sorted_back = np.empty_like(shuffled_before)
    sorted_back[order] = shuffled_before
    difference = (sorted_back - f(x)).ravel()
    return float(max(difference.max(), -difference.min()))


# ---------------------------------------------------------------- sinusoidal_positions


@answer(
    "sinusoidal_positions",
    "numpy",
    "sines left, cosines right",
    "wrong",
    "All sines come first and all cosines behind them; each sine has to stand beside its cosine.",
)
def sinusoidal_positions_w1(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = np.outer(np.arange(T), base ** (-2 * k / D))
    return np.hstack([np.sin(angles), np.cos(angles)])


@answer(
    "sinusoidal_positions",
    "numpy",
    "factor two missing",
    "wrong",
    "The exponent is -k/D instead of -2k/D: the hands get slow half as fast.",
)
def sinusoidal_positions_w2(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = np.arange(T)[:, None] / np.power(base, k / D)
    table = np.empty((T, D))
    table[:, ::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return table


@answer(
    "sinusoidal_positions",
    "numpy",
    "each column with a speed of its own",
    "wrong",
    "The number of the column stands in the exponent, so a cosine turns slower than the sine beside it.",
)
def sinusoidal_positions_w3(T, D, *, base=10000.0):
    table = np.zeros((T, D))
    for i in range(T):
        for c in range(D):
            angle = i / base ** (c / D)
            table[i, c] = math.sin(angle) if c % 2 == 0 else math.cos(angle)
    return table


@answer(
    "sinusoidal_positions",
    "numpy",
    "base of the Annotated Transformer",
    "wrong",
    "The 10000 is written into the formula, so that base has no effect.",
)
def sinusoidal_positions_w4(T, D, *, base=10000.0):
    pe = np.zeros((T, D))
    position = np.arange(T)[:, None]
    div_term = np.exp(np.arange(0, D, 2) * -(math.log(10000.0) / D))
    pe[:, 0::2] = np.sin(position * div_term)
    pe[:, 1::2] = np.cos(position * div_term)
    return pe


@answer(
    "sinusoidal_positions",
    "numpy",
    "slowest hand at one over base",
    "wrong",
    "As in tensor2tensor the hands run down to exactly 1/base: the exponent is divided by D/2 - 1 instead of D/2.",
)
def sinusoidal_positions_w5(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    increment = math.log(base) / max(D // 2 - 1, 1)
    angles = np.arange(T)[:, None] * np.exp(-increment * k)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(T, D)


@answer(
    "sinusoidal_positions",
    "numpy",
    "stacked on the wrong axis",
    "wrong",
    "Stacked between position and hand, the reshape puts all sines before the cosines.",
)
def sinusoidal_positions_w6(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    omega = base ** (-2.0 * k / D)
    angles = np.arange(T)[:, np.newaxis] * omega
    return np.stack((np.cos(angles - np.pi / 2), np.cos(angles)), axis=1).reshape(T, D)


@answer(
    "sinusoidal_positions",
    "numpy",
    "row 0 left at zero",
    "wrong",
    "The loop begins with position 1; row 0 keeps its zeros, though its cosines are 1.",
)
def sinusoidal_positions_w7(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    table = np.zeros((T, D))
    for i in range(1, T):
        table[i, 2 * k] = np.sin(i * base ** (-2 * k / D))
        table[i, 2 * k + 1] = np.cos(i * base ** (-2 * k / D))
    return table


@answer(
    "sinusoidal_positions",
    "numpy",
    "whole number division",
    "wrong",
    "// rounds the exponents, so that all hands but the first get the speed 1/base.",
)
def sinusoidal_positions_w8(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = np.outer(np.arange(T), float(base) ** (-2 * k // D))
    return np.dstack([np.sin(angles), np.cos(angles)]).reshape(T, D)


@answer(
    "sinusoidal_positions",
    "numpy",
    "positions from one",
    "wrong",
    "Positions are counted from 1 here, but the first is 0.",
)
def sinusoidal_positions_w9(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    i = np.linspace(1, T, T).reshape(-1, 1)
    angles = i * base ** (-2 * k / D)
    out = np.zeros([T, D])
    out[:, 0::2] = np.sin(angles)
    out[:, 1::2] = np.cos(angles)
    return out


@answer("sinusoidal_positions", "numpy", "real and imaginary part", "right")
def sinusoidal_positions_r1(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    hands = np.exp(1j * np.arange(T)[:, None] * np.power(float(base), -2 * k / D)[None, :])
    table = np.zeros((T, D))
    table[:, 2 * k] = hands.imag
    table[:, 2 * k + 1] = hands.real
    return table


@answer("sinusoidal_positions", "numpy", "one sine for all, a quarter turn ahead", "right")
def sinusoidal_positions_r2(T, D, *, base=10000.0):
    columns = np.arange(D)
    hands, odd = np.divmod(columns, 2)
    speeds = np.exp(-np.log(base) * hands / (D / 2))
    return np.sin(np.arange(T).reshape(T, 1) * speeds + odd * (np.pi / 2))


# ---------------------------------------------------------------- apply_rope, NumPy


@answer(
    "apply_rope",
    "numpy",
    "in place, with the old ones kept",
    "wrong",
    "The numbers are right, but they are written into the caller's array.",
)
def apply_rope_w1(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    a = slice(0, 2 * w, 2) if interleaved else slice(0, w)
    b = slice(1, 2 * w, 2) if interleaved else slice(w, 2 * w)
    old_a, old_b = x[..., a].copy(), x[..., b].copy()
    x[..., a] = old_a * cos - old_b * sin
    x[..., b] = old_b * cos + old_a * sin
    return x


@answer(
    "apply_rope",
    "numpy",
    "views of the copy",
    "wrong",
    "a and b are views of y: the second line reads the first component after it was changed.",
)
def apply_rope_w2(x, cos, sin, *, interleaved=False):
    y = x.astype(float)
    w = cos.shape[-1]
    if interleaved:
        a, b = y[..., 0 : 2 * w : 2], y[..., 1 : 2 * w : 2]
    else:
        a, b = y[..., :w], y[..., w : 2 * w]
    a[...] = a * cos - b * sin
    b[...] = b * cos + a * sin
    return y


@answer(
    "apply_rope",
    "numpy",
    "partner half a vector away",
    "wrong",
    "With fewer columns than D/2 the partner of k is k + w, as in a vector of width 2w, not k + D/2.",
)
def apply_rope_w3(x, cos, sin, *, interleaved=False):
    y = np.array(x, dtype=float)
    w, half = cos.shape[-1], x.shape[-1] // 2
    for k in range(w):
        i, j = (2 * k, 2 * k + 1) if interleaved else (k, half + k)
        y[..., i] = x[..., i] * cos[:, k] - x[..., j] * sin[:, k]
        y[..., j] = x[..., j] * cos[:, k] + x[..., i] * sin[:, k]
    return y


@answer(
    "apply_rope",
    "numpy",
    "not put back between each other",
    "wrong",
    "With interleaved=True the results are joined half and half; they belong back to 2k and 2k + 1.",
)
def apply_rope_w4(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    turned, rest = x[..., : 2 * w], x[..., 2 * w :]
    a, b = (turned[..., ::2], turned[..., 1::2]) if interleaved else np.split(turned, 2, axis=-1)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin, rest], axis=-1)


@answer(
    "apply_rope",
    "numpy",
    "whole numbers stay whole",
    "wrong",
    "zeros_like takes over the type of x: a vector of whole numbers, as in the example, loses what stands behind the point.",
)
def apply_rope_w5(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    y = np.zeros_like(x)
    if interleaved:
        a, b = np.arange(0, 2 * w, 2), np.arange(1, 2 * w, 2)
    else:
        a, b = np.arange(w), np.arange(w, 2 * w)
    y[..., a] = x[..., a] * cos - x[..., b] * sin
    y[..., b] = x[..., b] * cos + x[..., a] * sin
    y[..., 2 * w :] = x[..., 2 * w :]
    return y


@answer(
    "apply_rope",
    "numpy",
    "a loop over the first axis",
    "wrong",
    "The first axis holds the positions only without a batch; with one, all words of a sentence get the same angle.",
)
def apply_rope_w6(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    out = np.array(x, dtype=float)
    for t in range(len(x)):
        for k in range(w):
            i, j = (2 * k, 2 * k + 1) if interleaved else (k, k + w)
            c, s = cos[t][k], sin[t][k]
            out[t, ..., i] = x[t, ..., i] * c - x[t, ..., j] * s
            out[t, ..., j] = x[t, ..., j] * c + x[t, ..., i] * s
    return out


@answer("apply_rope", "numpy", "multiplied by the conjugate", "wrong", "cos - i sin turns the other way.")
def apply_rope_w7(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    a, b = (x[..., 0 : 2 * w : 2], x[..., 1 : 2 * w : 2]) if interleaved else (x[..., :w], x[..., w : 2 * w])
    z = (a + 1j * b) * (cos - 1j * sin)
    parts = [z.real, z.imag]
    front = np.stack(parts, -1).reshape(*x.shape[:-1], 2 * w) if interleaved else np.concatenate(parts, -1)
    return np.concatenate([front, x[..., 2 * w :]], axis=-1)


@answer(
    "apply_rope",
    "numpy",
    "neighbours from the whole vector",
    "wrong",
    "0::2 runs over all of x: with tables narrower than D/2 there are more pairs than angles.",
)
def apply_rope_w8(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    y = x * 1.0
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
        y[..., 0::2], y[..., 1::2] = a * cos - b * sin, b * cos + a * sin
    else:
        a, b = x[..., :w], x[..., w : 2 * w]
        y[..., :w], y[..., w : 2 * w] = a * cos - b * sin, b * cos + a * sin
    return y


@answer(
    "apply_rope",
    "numpy",
    "axis for the batch always added",
    "wrong",
    "cos[None] adds an axis in front, also where x has no batch: the result is (1, T, D).",
)
def apply_rope_w9(x, cos, sin, *, interleaved=False):
    cos, sin = cos[None], sin[None]
    w = cos.shape[-1]
    if interleaved:
        a, b = x[..., : 2 * w : 2], x[..., 1 : 2 * w : 2]
        y = np.stack([a * cos - b * sin, b * cos + a * sin], axis=-1)
        y = y.reshape(y.shape[:-2] + (2 * w,))
    else:
        a, b = x[..., :w], x[..., w : 2 * w]
        y = np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
    tail = np.broadcast_to(x[..., 2 * w :], y.shape[:-1] + (x.shape[-1] - 2 * w,))
    return np.concatenate([y, tail], axis=-1)


@answer(
    "apply_rope",
    "numpy",
    "sign of the second component",
    "wrong",
    "Both lines subtract: that is no turn, and lengths are not kept.",
)
def apply_rope_w10(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    y = np.array(x, dtype=float)
    a, b = (slice(0, 2 * w, 2), slice(1, 2 * w, 2)) if interleaved else (slice(w), slice(w, 2 * w))
    y[..., a] = x[..., a] * cos - x[..., b] * sin
    y[..., b] = x[..., b] * cos - x[..., a] * sin
    return y


@answer("apply_rope", "numpy", "a matrix for each position", "right")
def apply_rope_r1(x, cos, sin, *, interleaved=False):
    T, D = x.shape[-2:]
    w = cos.shape[-1]
    turn = np.zeros((T, D, D)) + np.eye(D)
    for k in range(w):
        a, b = (2 * k, 2 * k + 1) if interleaved else (k, k + w)
        turn[:, a, a] = turn[:, b, b] = cos[:, k]
        turn[:, a, b], turn[:, b, a] = -sin[:, k], sin[:, k]
    return np.einsum("tij,...tj->...ti", turn, x)


@answer("apply_rope", "numpy", "neighbours by sorting, halves by default", "right")
def apply_rope_r2(x, cos, sin, *, interleaved=False):
    D, w = x.shape[-1], cos.shape[-1]
    if interleaved:  # to halves, turn, and back
        there = np.r_[0 : 2 * w : 2, 1 : 2 * w : 2, 2 * w : D].astype(int)
        return apply_rope_r2(x[..., there], cos, sin)[..., np.argsort(there)]
    z = (x[..., :w] + 1j * x[..., w : 2 * w]) * (cos + 1j * sin)
    return np.concatenate((z.real, z.imag, x[..., 2 * w :]), axis=-1)


# ---------------------------------------------------------------- apply_rope, torch


@answer(
    "apply_rope",
    "torch",
    "cat for both layouts",
    "wrong",
    "The tables are now repeated half-split for both layouts, so that interleaved=True gets the wrong angles.",
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
    "partner changed instead of the angles",
    "wrong",
    "The angles still stand beside each other twice; half-split now mixes neighbours' angles with halves, as before, with another sign.",
)
def apply_rope_torch_w2(x, cos, sin, *, interleaved=False):
    pairs = cos.shape[-1]
    head, tail = x.split([2 * pairs, x.shape[-1] - 2 * pairs], dim=-1)
    cosines = cos.repeat_interleave(2, dim=-1)
    sines = sin.repeat_interleave(2, dim=-1)
    if interleaved:
        even, odd = head[..., 0::2], head[..., 1::2]
        partner = torch.stack([-odd, even], dim=-1).flatten(-2)
    else:
        low, high = head.chunk(2, dim=-1)
        partner = torch.cat([high, -low], dim=-1)
    return torch.cat([head * cosines + partner * sines, tail], dim=-1)


@answer(
    "apply_rope",
    "torch",
    "halves as complex numbers, read as neighbours",
    "wrong",
    "Half-split results come back from complex numbers as neighbours, and are not taken apart again.",
)
def apply_rope_torch_w3(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    head, tail = x[..., : 2 * w], x[..., 2 * w :]
    if interleaved:
        z = torch.complex(head[..., 0::2], head[..., 1::2])
    else:
        z = torch.complex(head[..., :w], head[..., w:])
    z = z * torch.complex(cos, sin)
    return torch.cat([torch.view_as_real(z).flatten(-2), tail], dim=-1)


@answer(
    "apply_rope", "torch", "a clone that is detached", "wrong", "detach cuts the result off from x: no gradient flows."
)
def apply_rope_torch_w4(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    old = x.detach().clone()
    y = old.clone()
    i = torch.arange(w, device=x.device)
    a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + w)
    y[..., a] = old[..., a] * cos - old[..., b] * sin
    y[..., b] = old[..., b] * cos + old[..., a] * sin
    return y


@answer(
    "apply_rope",
    "torch",
    "rest of the vector left out",
    "wrong",
    "The components from 2w on are missing in the result.",
)
def apply_rope_torch_w5(x, cos, sin, *, interleaved=False):
    w = cos.size(-1)
    if interleaved:
        a, b = x[..., 0 : 2 * w : 2], x[..., 1 : 2 * w : 2]
        return torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)
    a, b = x[..., :w], x[..., w : 2 * w]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


@answer(
    "apply_rope",
    "torch",
    "rotate_half of the whole vector",
    "wrong",
    "As in Llama, the whole x is cut in halves; with narrower tables the partner is k + w, and the rest passes.",
)
def apply_rope_torch_w6(x, cos, sin, *, interleaved=False):
    w, D = cos.shape[-1], x.shape[-1]
    if interleaved:
        c, s = cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
        head = x[..., : 2 * w]
        partner = torch.stack([-head[..., 1::2], head[..., 0::2]], -1).flatten(-2)
        return torch.cat([head * c + partner * s, x[..., 2 * w :]], -1)
    half = torch.cat((-x[..., D // 2 :], x[..., : D // 2]), dim=-1)
    c, s = torch.cat([cos, cos], -1), torch.cat([sin, sin], -1)
    return torch.cat([x[..., : 2 * w] * c + half[..., : 2 * w] * s, x[..., 2 * w :]], -1)


@answer(
    "apply_rope",
    "torch",
    "mul_ on the halves",
    "wrong",
    "mul_ and sub_ work in the memory of x, so that the caller's tensor changes (or torch refuses, for a leaf with gradient).",
)
def apply_rope_torch_w7(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    if interleaved:
        a, b = x[..., 0 : 2 * w : 2], x[..., 1 : 2 * w : 2]
    else:
        a, b = x[..., :w], x[..., w : 2 * w]
    old = a.clone()
    a.mul_(cos).sub_(b * sin)
    b.mul_(cos).add_(old * sin)
    return x


@answer("apply_rope", "torch", "gather of the partners", "right")
def apply_rope_torch_r1(x, cos, sin, *, interleaved=False):
    w, D = cos.shape[-1], x.shape[-1]
    pair = torch.arange(w, device=x.device)
    if interleaved:
        which = torch.stack([pair, pair], 1).reshape(2 * w)
        partner = torch.arange(2 * w, device=x.device).reshape(w, 2).flip(1).reshape(2 * w)
        sign = torch.tensor([-1.0, 1.0], dtype=x.dtype, device=x.device).repeat(w)
    else:
        which = torch.cat([pair, pair])
        partner = torch.cat([pair + w, pair])
        sign = torch.cat([-x.new_ones(w), x.new_ones(w)])
    head = x[..., : 2 * w]
    turned = head * cos[:, which] + sign * x[..., partner] * sin[:, which]
    return torch.cat([turned, x[..., 2 * w : D]], dim=-1)


# ---------------------------------------------------------------- alibi_bias


def slopes_of(H):
    """Right slopes, for the answers whose mistake is elsewhere."""
    n = 1
    while 2 * n <= H:
        n *= 2
    first = [2.0 ** (-8 * h / n) for h in range(1, n + 1)]
    more = [2.0 ** (-8 * h / (2 * n)) for h in range(1, 2 * n + 1, 2)]
    return np.array((first + more)[:H])


@answer(
    "alibi_bias",
    "numpy",
    "distance with its sign",
    "wrong",
    "Without the absolute value, keys after the query get a bonus.",
)
def alibi_bias_w1(H, T, S, *, q_offset=0):
    distance = np.arange(T)[:, None] + q_offset - np.arange(S)
    return -slopes_of(H)[:, None, None] * distance


@answer(
    "alibi_bias",
    "numpy",
    "later keys are masked",
    "wrong",
    "Keys after the query get minus infinity, though the bias is for models that look both ways.",
)
def alibi_bias_w2(H, T, S, *, q_offset=0):
    i, j = np.ogrid[q_offset : q_offset + T, 0:S]
    bias = -slopes_of(H).reshape(H, 1, 1) * np.abs(i - j)
    return np.where(j > i, -np.inf, bias)


@answer(
    "alibi_bias",
    "numpy",
    "later keys cost nothing",
    "wrong",
    "The distance of a key after the query is cut off at 0; it costs as much as one before.",
)
def alibi_bias_w3(H, T, S, *, q_offset=0):
    distance = np.maximum(q_offset + np.arange(T)[:, None] - np.arange(S)[None, :], 0)
    return np.einsum("h,ts->hts", -slopes_of(H), distance)


@answer(
    "alibi_bias",
    "numpy",
    "position of the key alone",
    "wrong",
    "As in BLOOM, the slope times the position of the key is added: the same after a softmax over earlier keys, but not this bias.",
)
def alibi_bias_w4(H, T, S, *, q_offset=0):
    last = q_offset + T - 1
    row = -slopes_of(H)[:, None, None] * np.abs(last - np.arange(S))
    return np.broadcast_to(row, (H, T, S)).copy()


@answer(
    "alibi_bias",
    "numpy",
    "formula for every number of heads",
    "wrong",
    "The formula 2^(-8h/H) is used for every H, but holds for powers of two only.",
)
def alibi_bias_w5(H, T, S, *, q_offset=0):
    m = 2.0 ** (-8.0 * np.arange(1, H + 1) / H)
    return -m[:, None, None] * np.abs(np.subtract.outer(np.arange(T) + q_offset, np.arange(S)))


@answer(
    "alibi_bias",
    "numpy",
    "power strictly below, for powers too",
    "wrong",
    "For a power of two, too, the next smaller one is taken: the right slopes come in the wrong order.",
)
def alibi_bias_w6(H, T, S, *, q_offset=0):
    n = 2 ** int(np.ceil(np.log2(H)) - 1) if H > 1 else 1
    first = 2.0 ** (-8 * np.arange(1, n + 1) / n)
    extra = 2.0 ** (-8 * np.arange(1, 2 * n + 1) / (2 * n))
    m = np.concatenate([first, extra[::2]])[:H]
    return -m[:, None, None] * np.abs(np.arange(T)[None, :, None] + q_offset - np.arange(S))


@answer(
    "alibi_bias",
    "numpy",
    "slopes sorted",
    "wrong",
    "The slopes are sorted from steep to flat; the extra ones belong behind the first n.",
)
def alibi_bias_w7(H, T, S, *, q_offset=0):
    m = np.array(sorted(slopes_of(H), reverse=True))
    i, j = np.arange(q_offset, q_offset + T), np.arange(S)
    return -(m.reshape(-1, 1, 1) * abs(i[:, None] - j))


@answer(
    "alibi_bias",
    "numpy",
    "every other one from the second",
    "wrong",
    "Every other slope is taken beginning with the second: those are the n slopes that are there already.",
)
def alibi_bias_w8(H, T, S, *, q_offset=0):
    def power_of_two(n):
        return [2 ** (-8 * (h + 1) / n) for h in range(n)]

    n = 2 ** math.floor(math.log2(H))
    m = power_of_two(n) + power_of_two(2 * n)[1::2][: H - n]
    return np.array([[[-slope * abs(i + q_offset - j) for j in range(S)] for i in range(T)] for slope in m])


@answer(
    "alibi_bias",
    "numpy",
    "offset on the keys",
    "wrong",
    "The offset is added to the positions of the keys; it belongs to the queries.",
)
def alibi_bias_w9(H, T, S, *, q_offset=0):
    bias = np.zeros((H, T, S))
    for h, m in enumerate(slopes_of(H)):
        for i in range(T):
            for j in range(S):
                bias[h, i, j] = -m * abs(i - (j + q_offset))
    return bias


@answer(
    "alibi_bias",
    "numpy",
    "heads counted from zero",
    "wrong",
    "h runs from 0, so the first slope is 1; it runs from 1 to H.",
)
def alibi_bias_w10(H, T, S, *, q_offset=0):
    n = 1 << (H.bit_length() - 1)
    m = [2 ** (-8 * h / n) for h in range(n)]
    m += [2 ** (-8 * h / (2 * n)) for h in range(0, 2 * n, 2)][: H - n]
    distance = np.abs(np.arange(T)[:, None] + q_offset - np.arange(S)[None])
    return -np.array(m)[:, None, None] * distance[None]


@answer(
    "alibi_bias",
    "numpy",
    "exponent in whole numbers",
    "wrong",
    "8 // n is 0 for 16 heads and more, so that all slopes are 1: the exponent is no whole number there.",
)
def alibi_bias_w11(H, T, S, *, q_offset=0):
    def get_slopes(n):
        start = 2.0 ** -(8 // n)
        return [start ** (h + 1) for h in range(n)]

    n = 2 ** int(math.log2(H))
    m = np.array(get_slopes(n) + [math.sqrt(2.0 ** (-8 / n)) * s for s in get_slopes(n)][: H - n])
    if n != H:
        m[n:] = [2.0 ** (-4 / n * (2 * h + 1)) for h in range(H - n)]
    return -m[:, None, None] * np.abs(np.arange(T)[:, None] + q_offset - np.arange(S))


@answer(
    "alibi_bias",
    "numpy",
    "one range for both",
    "wrong",
    "The table is cut out of a (T, T) square; with more keys than queries the shape is wrong.",
)
def alibi_bias_w12(H, T, S, *, q_offset=0):
    positions = np.arange(T)
    distance = np.abs(positions[:, None] + q_offset - positions[None, :])[:, :S]
    return -slopes_of(H)[:, None, None] * distance


@answer("alibi_bias", "numpy", "exact fractions of a root, head by head", "right")
def alibi_bias_r1(H, T, S, *, q_offset=0):
    n = 1
    while n * 2 <= H:
        n *= 2
    tables = []
    for number in range(H):
        # the first n heads: 1, 2, ... n of n; the others: 1, 3, 5 ... of 2n
        exponent = 16 * (number + 1) if number < n else 8 * (2 * (number - n) + 1)
        slope = math.pow(2, -exponent / (2 * n))
        rows = [[-slope * abs(i - j) for j in range(S)] for i in range(q_offset, q_offset + T)]
        tables.append(np.array(rows, dtype=float).reshape(T, S))
    return np.stack(tables)


@answer("alibi_bias", "numpy", "recursion of the paper's code", "right")
def alibi_bias_r2(H, T, S, *, q_offset=0):
    def get_slopes(n):
        if math.log2(n).is_integer():
            start = 2 ** (-(2 ** -(math.log2(n) - 3)))
            return [start * start**i for i in range(n)]
        closest = 2 ** math.floor(math.log2(n))
        return get_slopes(closest) + get_slopes(2 * closest)[0::2][: n - closest]

    behind = np.tri(T, T + q_offset + S, q_offset, dtype=int)  # 1 for each key up to the query's own position
    place = behind.sum(axis=1) - 1  # position of each query
    distance = np.maximum(place[:, None], np.arange(S)) - np.minimum(place[:, None], np.arange(S))
    return np.multiply.outer(np.negative(get_slopes(H)), distance)
