"""More answers to the notebook "positions", by other readers."""

import math
import types
from functools import reduce

import numpy as np
import torch

ANSWERS = []


def answer(name, backend, label, verdict, why=""):
    def note(function):
        ANSWERS.append((name, backend, label, verdict, function, why))
        return function

    return note


# ---- stand-ins for what the notebook has at this point -------------------------------------------------------------


def _rope_tables(positions, D, base=10000.0):
    angles = np.asarray(positions)[:, None] * base ** (-2.0 * np.arange(D // 2) / D)
    return np.cos(angles), np.sin(angles)


attnlib = types.SimpleNamespace(rope_tables=_rope_tables)


def apply_rope(x, cos, sin, *, interleaved=False):
    """The student's own function of task 5, right."""
    w = cos.shape[-1]
    y = np.array(x, dtype=np.result_type(x, cos))
    one, other = (slice(0, 2 * w, 2), slice(1, 2 * w, 2)) if interleaved else (slice(0, w), slice(w, 2 * w))
    y[..., one] = x[..., one] * cos - x[..., other] * sin
    y[..., other] = x[..., other] * cos + x[..., one] * sin
    return y


# =====================================================================================================================
# Task 2: equivariance_gap
# =====================================================================================================================


@answer(
    "equivariance_gap",
    "numpy",
    "invariance",
    "wrong",
    "Compares with f(x) itself: that the result does not change at all is another property.",
)
def eq_w1(f, x, order):
    shuffled_before = f(x[order])
    return np.abs(shuffled_before - f(x)).max()


@answer("equivariance_gap", "numpy", "no absolute value", "wrong", "A large negative difference is overlooked.")
def eq_w2(f, x, order):
    shuffled_before = f(x[order])
    return float((shuffled_before - f(x)[order]).max())


@answer(
    "equivariance_gap",
    "numpy",
    "absolute value of the maximum",
    "wrong",
    "abs comes after max, so a large negative difference is still overlooked.",
)
def eq_w3(f, x, order):
    shuffled_before = f(x[order])
    shuffled_after = f(x)[order]
    return abs(np.max(shuffled_before - shuffled_after))


@answer("equivariance_gap", "numpy", "inverse order", "wrong", "f(x) is shuffled by the inverse of order.")
def eq_w4(f, x, order):
    shuffled_before = f(x[order])
    shuffled_after = f(x)[np.argsort(order)]
    return float(np.max(np.abs(shuffled_before - shuffled_after)))


@answer(
    "equivariance_gap",
    "numpy",
    "shuffled twice",
    "wrong",
    "Both sides get shuffled: the shuffled result is shuffled again.",
)
def eq_w5(f, x, order):
    shuffled_before = f(x[order])
    return float(np.abs(shuffled_before[order] - f(x)).max())


@answer("equivariance_gap", "numpy", "mean difference", "wrong", "The mean of the differences, not the largest.")
def eq_w6(f, x, order):
    shuffled_before = f(x[order])
    return float(np.mean(np.abs(shuffled_before - f(x)[order])))


@answer("equivariance_gap", "numpy", "yes or no", "wrong", "Returns whether the gap is 0, not how large it is.")
def eq_w7(f, x, order):
    shuffled_before = f(x[order])
    return np.allclose(shuffled_before, f(x)[order])


@answer(
    "equivariance_gap",
    "numpy",
    "length of the rows",
    "wrong",
    "The largest length of a row of differences, which is more than its largest component.",
)
def eq_w8(f, x, order):
    shuffled_before = f(x[order])
    return float(np.linalg.norm(shuffled_before - f(x)[order], axis=-1).max())


@answer("equivariance_gap", "numpy", "columns shuffled", "wrong", "Shuffles the columns of f(x) instead of the rows.")
def eq_w9(f, x, order):
    shuffled_before = f(x[order])
    shuffled_after = f(x)[:, order]
    return float(np.abs(shuffled_before - shuffled_after).max())


@answer(
    "equivariance_gap",
    "numpy",
    "sorted rows",
    "wrong",
    "Sorts both results before comparing, so that any order of the same numbers has gap 0.",
)
def eq_w10(f, x, order):
    shuffled_before = f(x[order])
    return float(np.abs(np.sort(shuffled_before, axis=0) - np.sort(f(x), axis=0)).max())


@answer(
    "equivariance_gap",
    "numpy",
    "a gap for each row",
    "wrong",
    "max(axis=-1) gives a number for each row; one number is asked for.",
)
def eq_w11(f, x, order):
    shuffled_before = f(x[order])
    return np.abs(shuffled_before - f(x)[order]).max(axis=-1)


@answer(
    "equivariance_gap",
    "numpy",
    "shuffles the caller's rows",
    "wrong",
    "x[:] = ... overwrites the words of the caller, and then both ways are the same.",
)
def eq_w12(f, x, order):
    before = f(x)
    x[:] = x[order]
    return float(np.max(np.abs(f(x) - before[order])))


@answer("equivariance_gap", "numpy", "f forgotten", "wrong", "Shuffles x itself on the second way; f is not applied.")
def eq_w13(f, x, order):
    shuffled_before = f(x[order])
    shuffled_after = x[order]
    return float(np.max(np.abs(shuffled_before - shuffled_after)))


@answer(
    "equivariance_gap",
    "numpy",
    "relative gap",
    "wrong",
    "Divides by the size of f(x): asked was the difference itself.",
)
def eq_w14(f, x, order):
    shuffled_before = f(x[order])
    after = f(x)[order]
    return float(np.abs(shuffled_before - after).max() / (np.abs(after).max() + 1e-12))


@answer(
    "equivariance_gap",
    "numpy",
    "spread",
    "wrong",
    "max minus min of the differences, as np.ptp gives it, is not the largest size.",
)
def eq_w15(f, x, order):
    return float(np.ptp(f(x[order]) - f(x)[order]))


@answer("equivariance_gap", "numpy", "unshuffled before the comparison", "right")
def eq_r1(f, x, order):
    shuffled_before = f(x[order])
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return float(np.linalg.norm((shuffled_before[back] - f(x)).ravel(), ord=np.inf))


@answer("equivariance_gap", "numpy", "permutation matrix and two loops", "right")
def eq_r2(f, x, order):
    P = np.eye(len(x))[order]
    before, after = f(x[order]), P @ f(x)
    gap = 0.0
    for row, other in zip(before, after):
        for a, b in zip(row, other):
            gap = max(gap, abs(float(a) - float(b)))
    return gap


# =====================================================================================================================
# Task 3: sinusoidal_positions
# =====================================================================================================================


@answer(
    "sinusoidal_positions",
    "numpy",
    "exponent k/D",
    "wrong",
    "The 2 in the exponent is missing: the hands are too fast.",
)
def si_w1(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = np.arange(T)[:, None] * base ** (-k / D)
    table = np.zeros((T, D))
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return table


@answer(
    "sinusoidal_positions",
    "numpy",
    "sines, then cosines",
    "wrong",
    "All sines stand in the first half and all cosines in the second.",
)
def si_w2(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = np.outer(np.arange(T), base ** (-2 * k / D))
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


@answer("sinusoidal_positions", "numpy", "cosine first", "wrong", "Each cosine stands before its sine.")
def si_w3(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = np.outer(np.arange(T), base ** (-2 * k / D))
    return np.stack([np.cos(angles), np.sin(angles)], axis=-1).reshape(T, D)


@answer("sinusoidal_positions", "numpy", "from position 1", "wrong", "Counts the positions from 1.")
def si_w4(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = np.outer(np.arange(1, T + 1), base ** (-2 * k / D))
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(T, D)


@answer("sinusoidal_positions", "numpy", "base built in", "wrong", "10000 is built in, the argument base is ignored.")
def si_w5(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    div_term = np.exp(2 * k * -(np.log(10000.0) / D))
    pe = np.zeros((T, D))
    pe[:, 0::2] = np.sin(np.arange(T)[:, None] * div_term)
    pe[:, 1::2] = np.cos(np.arange(T)[:, None] * div_term)
    return pe


@answer(
    "sinusoidal_positions",
    "numpy",
    "2k twice",
    "wrong",
    "k has become 0, 2, 4, ... and is doubled once more in the exponent.",
)
def si_w6(T, D, *, base=10000.0):
    two_k = np.arange(0, D, 2)
    angles = np.arange(T)[:, None] / np.power(base, 2 * two_k / D)
    table = np.empty((T, D))
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles)
    return table


@answer(
    "sinusoidal_positions",
    "numpy",
    "a speed for each column",
    "wrong",
    "Each column has a speed of its own: the cosine does not turn with its sine.",
)
def si_w7(T, D, *, base=10000.0):
    angles = np.arange(T)[:, None] / base ** (np.arange(D)[None, :] / D)
    angles[:, 0::2] = np.sin(angles[:, 0::2])
    angles[:, 1::2] = np.cos(angles[:, 1::2])
    return angles


@answer(
    "sinusoidal_positions",
    "numpy",
    "floor division in the exponent",
    "wrong",
    "2k // D is 0 for every k: all hands have the speed 1.",
)
def si_w8(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = np.outer(np.arange(T), base ** -(2 * k // D))
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(T, D)


@answer(
    "sinusoidal_positions",
    "numpy",
    "tensor2tensor speeds",
    "wrong",
    "The exponent runs to 1 with D/2 - 1 steps, as in tensor2tensor, not as in the formula.",
)
def si_w9(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    speeds = np.exp(-np.log(base) * k / max(D // 2 - 1, 1))
    angles = np.outer(np.arange(T), speeds)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(T, D)


@answer(
    "sinusoidal_positions",
    "numpy",
    "sign of the exponent",
    "wrong",
    "base ** (2k/D): the hands get faster instead of slower.",
)
def si_w10(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = np.outer(np.arange(T), base ** (2 * k / D))
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(T, D)


@answer(
    "sinusoidal_positions",
    "numpy",
    "table of whole numbers",
    "wrong",
    "The table holds whole numbers, so nearly everything becomes 0.",
)
def si_w11(T, D, *, base=10000.0):
    table = np.array([[0] * D] * T)
    for i in range(T):
        for k in range(D // 2):
            table[i, 2 * k] = math.sin(i * base ** (-2 * k / D))
            table[i, 2 * k + 1] = math.cos(i * base ** (-2 * k / D))
    return table


@answer(
    "sinusoidal_positions",
    "numpy",
    "a batch in front",
    "wrong",
    "The table has the shape (1, T, D), as in the PyTorch tutorial.",
)
def si_w12(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    pe = np.zeros((1, T, D))
    pe[0, :, 0::2] = np.sin(np.arange(T)[:, None] * base ** (-2 * k / D))
    pe[0, :, 1::2] = np.cos(np.arange(T)[:, None] * base ** (-2 * k / D))
    return pe


@answer(
    "sinusoidal_positions",
    "numpy",
    "512 rows at most",
    "wrong",
    "The table is made for 512 positions and cut: for more it is too short.",
)
def si_w13(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = np.outer(np.arange(512), base ** (-2 * k / D))
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(512, D)[:T]


@answer(
    "sinusoidal_positions",
    "numpy",
    "one list for all rows",
    "wrong",
    "[[...]] * T repeats one and the same list: all rows are the last one.",
)
def si_w14(T, D, *, base=10000.0):
    rows = [[0.0] * D] * T
    for i in range(T):
        for k in range(D // 2):
            omega = base ** (-2 * k / D)
            rows[i][2 * k] = math.sin(i * omega)
            rows[i][2 * k + 1] = math.cos(i * omega)
    return np.array(rows)


@answer(
    "sinusoidal_positions",
    "numpy",
    "no column of positions",
    "wrong",
    "Positions and speeds are multiplied elementwise: a crash, unless T happens to be D/2.",
)
def si_w15(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    i = np.arange(T)
    omega = base ** (-2 * k / D)
    p = np.zeros((T, D))
    p[:, 0::2] = np.sin(i * omega)
    p[:, 1::2] = np.cos(i * omega)
    return p


@answer(
    "sinusoidal_positions",
    "numpy",
    "full turns",
    "wrong",
    "The speeds are in radians already; here they are multiplied by 2 pi.",
)
def si_w16(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = 2 * np.pi * np.outer(np.arange(T), base ** (-2 * k / D))
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(T, D)


@answer(
    "sinusoidal_positions",
    "numpy",
    "stacked on the wrong axis",
    "wrong",
    "The stack lies on axis 1, so reshape gives first all sines, then all cosines of a position.",
)
def si_w17(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    angles = np.arange(T)[:, np.newaxis] * np.exp(-2 * k / D * np.log(base))
    return np.stack((np.sin(angles), np.cos(angles)), axis=1).reshape(T, D)


@answer("sinusoidal_positions", "numpy", "quarter turn for the cosine", "right")
def si_r1(T, D, *, base=10000.0):
    column = np.arange(D)
    omega = float(base) ** (-2.0 * (column // 2) / D)  # each speed twice
    return np.sin(np.arange(T)[:, None] * omega + np.pi / 2 * (column % 2))


@answer("sinusoidal_positions", "numpy", "complex exponentials", "right")
def si_r2(T, D, *, base=10000.0):
    k = np.arange(D // 2)
    hands = np.exp(1j * np.outer(np.arange(T), np.power(float(base), -2 * k / D)))  # cos + i sin
    table = np.empty((T, D))
    table[:, ::2], table[:, 1::2] = hands.imag, hands.real
    return table


# =====================================================================================================================
# Task 5: apply_rope
# =====================================================================================================================


@answer(
    "apply_rope", "numpy", "layouts swapped", "wrong", "The two layouts are exchanged: the default pairs neighbours."
)
def ro_w1(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    y = x.astype(float)
    if not interleaved:
        a, b = x[..., 0 : 2 * w : 2], x[..., 1 : 2 * w : 2]
        y[..., 0 : 2 * w : 2], y[..., 1 : 2 * w : 2] = a * cos - b * sin, b * cos + a * sin
    else:
        a, b = x[..., :w], x[..., w : 2 * w]
        y[..., :w], y[..., w : 2 * w] = a * cos - b * sin, b * cos + a * sin
    return y


@answer(
    "apply_rope",
    "numpy",
    "new component used",
    "wrong",
    "The second component is made of the first one that has been turned already.",
)
def ro_w2(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    y = x.astype(float)
    a = slice(0, 2 * w, 2) if interleaved else slice(0, w)
    b = slice(1, 2 * w, 2) if interleaved else slice(w, 2 * w)
    y[..., a] = y[..., a] * cos - y[..., b] * sin
    y[..., b] = y[..., b] * cos + y[..., a] * sin
    return y


@answer(
    "apply_rope",
    "numpy",
    "turns the caller's vectors",
    "wrong",
    "The result is right, but it is written into the array of the caller.",
)
def ro_w3(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    a = slice(0, 2 * w, 2) if interleaved else slice(0, w)
    b = slice(1, 2 * w, 2) if interleaved else slice(w, 2 * w)
    x[..., a], x[..., b] = x[..., a] * cos - x[..., b] * sin, x[..., b] * cos + x[..., a] * sin
    return x


@answer("apply_rope", "numpy", "other direction", "wrong", "The signs of the sines are exchanged: turns the other way.")
def ro_w4(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    if interleaved:
        a, b = x[..., : 2 * w : 2], x[..., 1 : 2 * w : 2]
        turned = np.stack([a * cos + b * sin, b * cos - a * sin], -1).reshape(*x.shape[:-1], 2 * w)
    else:
        a, b = x[..., :w], x[..., w : 2 * w]
        turned = np.concatenate([a * cos + b * sin, b * cos - a * sin], -1)
    return np.concatenate([turned, x[..., 2 * w :]], -1)


@answer(
    "apply_rope",
    "numpy",
    "partner at D/2 always",
    "wrong",
    "Half-split pairs k with k + D/2 even if only 2w components are to be turned.",
)
def ro_w5(x, cos, sin, *, interleaved=False):
    w, half = cos.shape[-1], x.shape[-1] // 2
    y = np.array(x, dtype=float)
    if interleaved:
        a, b = np.arange(0, 2 * w, 2), np.arange(1, 2 * w, 2)
    else:
        a, b = np.arange(w), half + np.arange(w)
    y[..., a] = x[..., a] * cos - x[..., b] * sin
    y[..., b] = x[..., b] * cos + x[..., a] * sin
    return y


@answer("apply_rope", "numpy", "tail dropped", "wrong", "The components that are not turned are missing in the result.")
def ro_w6(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    if interleaved:
        a, b = x[..., 0 : 2 * w : 2], x[..., 1 : 2 * w : 2]
        return np.stack([a * cos - b * sin, b * cos + a * sin], axis=-1).reshape(*x.shape[:-1], 2 * w)
    a, b = x[..., :w], x[..., w : 2 * w]
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


@answer("apply_rope", "numpy", "tail of zeros", "wrong", "The components that are not turned become 0.")
def ro_w7(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    y = np.zeros(x.shape)
    for k in range(w):
        a, b = (2 * k, 2 * k + 1) if interleaved else (k, k + w)
        y[..., a] = x[..., a] * cos[:, k] - x[..., b] * sin[:, k]
        y[..., b] = x[..., b] * cos[:, k] + x[..., a] * sin[:, k]
    return y


@answer(
    "apply_rope",
    "numpy",
    "pairs not put back",
    "wrong",
    "With interleaved=True the turned components are joined half by half, not put back as neighbours.",
)
def ro_w8(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    head, tail = x[..., : 2 * w], x[..., 2 * w :]
    if interleaved:
        a, b = head[..., ::2], head[..., 1::2]
    else:
        a, b = np.split(head, 2, axis=-1)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin, tail], axis=-1)


@answer(
    "apply_rope",
    "numpy",
    "buffer of the type of x",
    "wrong",
    "For vectors of whole numbers zeros_like cuts off everything after the point.",
)
def ro_w9(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    y = np.zeros_like(x)
    y[..., 2 * w :] = x[..., 2 * w :]
    a, b = (slice(0, 2 * w, 2), slice(1, 2 * w, 2)) if interleaved else (slice(0, w), slice(w, 2 * w))
    y[..., a] = x[..., a] * cos - x[..., b] * sin
    y[..., b] = x[..., b] * cos + x[..., a] * sin
    return y


@answer("apply_rope", "numpy", "plus twice", "wrong", "Both new components have a plus: that does not keep lengths.")
def ro_w10(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    head, tail = x[..., : 2 * w], x[..., 2 * w :]
    if interleaved:
        partner = np.stack([head[..., 1::2], head[..., ::2]], axis=-1).reshape(head.shape)
        c, s = np.repeat(cos, 2, axis=-1), np.repeat(sin, 2, axis=-1)
    else:
        partner = np.roll(head, w, axis=-1)
        c, s = np.tile(cos, 2), np.tile(sin, 2)
    return np.concatenate([head * c + partner * s, tail], axis=-1)


@answer(
    "apply_rope",
    "numpy",
    "angles doubled for neighbours everywhere",
    "wrong",
    "Half-split gets the cosines in the order of neighbours (np.repeat instead of np.tile).",
)
def ro_w11(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    head, tail = x[..., : 2 * w], x[..., 2 * w :]
    c, s = cos.repeat(2, axis=-1), sin.repeat(2, axis=-1)
    if interleaved:
        partner = np.empty(head.shape)
        partner[..., ::2], partner[..., 1::2] = -head[..., 1::2], head[..., ::2]
    else:
        partner = np.concatenate([-head[..., w:], head[..., :w]], axis=-1)
    return np.concatenate([head * c + partner * s, tail], axis=-1)


@answer(
    "apply_rope",
    "numpy",
    "positions along the first axis",
    "wrong",
    "The loop over positions takes the first axis of x: with a batch these are sentences.",
)
def ro_w12(x, cos, sin, *, interleaved=False):
    y = np.array(x, dtype=float)
    w = cos.shape[-1]
    for i in range(len(cos)):
        for k in range(w):
            a, b = (2 * k, 2 * k + 1) if interleaved else (k, k + w)
            y[i, ..., a] = x[i, ..., a] * cos[i, k] - x[i, ..., b] * sin[i, k]
            y[i, ..., b] = x[i, ..., b] * cos[i, k] + x[i, ..., a] * sin[i, k]
    return y


@answer(
    "apply_rope",
    "numpy",
    "the last components turned",
    "wrong",
    "If w is small, the last 2w components are turned, and the first ones pass.",
)
def ro_w13(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    start = x.shape[-1] - 2 * w
    keep, head = x[..., :start], x[..., start:]
    a, b = (head[..., ::2], head[..., 1::2]) if interleaved else (head[..., :w], head[..., w:])
    new = [a * cos - b * sin, b * cos + a * sin]
    turned = np.stack(new, -1).reshape(head.shape) if interleaved else np.concatenate(new, -1)
    return np.concatenate([keep, turned], -1)


@answer(
    "apply_rope",
    "numpy",
    "halves of the whole vector",
    "wrong",
    "x is cut in two halves whatever w is: with tables of fewer columns it crashes.",
)
def ro_w14(x, cos, sin, *, interleaved=False):
    if interleaved:
        a, b = x[..., ::2], x[..., 1::2]
        return np.stack([a * cos - b * sin, b * cos + a * sin], axis=-1).reshape(x.shape)
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)


@answer(
    "apply_rope",
    "numpy",
    "axis for heads",
    "wrong",
    "cos[:, None] expects (B, T, H, D); here T is the axis before the last one.",
)
def ro_w15(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    if x.ndim > 2:
        cos, sin = cos[:, None, :], sin[:, None, :]
    y = np.array(x, dtype=float)
    a, b = (slice(0, 2 * w, 2), slice(1, 2 * w, 2)) if interleaved else (slice(0, w), slice(w, 2 * w))
    y[..., a] = x[..., a] * cos - x[..., b] * sin
    y[..., b] = x[..., b] * cos + x[..., a] * sin
    return y


@answer(
    "apply_rope",
    "numpy",
    "angles of the first position",
    "wrong",
    "All positions are turned by the angles of the first.",
)
def ro_w16(x, cos, sin, *, interleaved=False):
    c, s = cos[0], sin[0]
    w = len(c)
    y = np.array(x, dtype=float)
    a, b = (slice(0, 2 * w, 2), slice(1, 2 * w, 2)) if interleaved else (slice(0, w), slice(w, 2 * w))
    y[..., a], y[..., b] = x[..., a] * c - x[..., b] * s, x[..., b] * c + x[..., a] * s
    return y


@answer("apply_rope", "numpy", "only half of the pair", "wrong", "The second component of each pair is left as it is.")
def ro_w17(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    out = x.astype(float)
    if interleaved:
        out[..., : 2 * w : 2] = x[..., : 2 * w : 2] * cos - x[..., 1 : 2 * w : 2] * sin
    else:
        out[..., :w] = x[..., :w] * cos - x[..., w : 2 * w] * sin
    return out


@answer(
    "apply_rope",
    "numpy",
    "views of a copy",
    "wrong",
    "a and b are views of y: after the first line a has the new numbers, and b is made of them.",
)
def ro_w18(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    y = np.copy(x).astype(float)
    a = y[..., 0 : 2 * w : 2] if interleaved else y[..., :w]
    b = y[..., 1 : 2 * w : 2] if interleaved else y[..., w : 2 * w]
    a[...] = a * cos - b * sin
    b[...] = b * cos + a * sin
    return y


@answer("apply_rope", "numpy", "complex numbers", "right")
def ro_r1(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    head, tail = x[..., : 2 * w], x[..., 2 * w :]
    pairs = head.reshape(*x.shape[:-1], w, 2) if interleaved else head.reshape(*x.shape[:-1], 2, w).swapaxes(-1, -2)
    z = (pairs[..., 0] + 1j * pairs[..., 1]) * (cos + 1j * sin)
    turned = np.stack([z.real, z.imag], axis=-1)  # (..., T, w, 2)
    turned = turned if interleaved else turned.swapaxes(-1, -2)
    return np.concatenate([turned.reshape(head.shape), tail], axis=-1)


@answer("apply_rope", "numpy", "one big rotation matrix for each position", "right")
def ro_r2(x, cos, sin, *, interleaved=False):
    T, w = cos.shape
    D = x.shape[-1]
    k = np.arange(w)
    a, b = (2 * k, 2 * k + 1) if interleaved else (k, k + w)
    R = np.zeros((T, D, D))
    R[:, np.arange(D), np.arange(D)] = 1.0
    R[:, a, a], R[:, a, b] = cos, -sin
    R[:, b, b], R[:, b, a] = cos, sin
    return np.einsum("tij,...tj->...ti", R, x)


@answer("apply_rope", "numpy", "pair by pair, collected in a dictionary", "right")
def ro_r3(x, cos, sin, *, interleaved=False):
    columns = {d: x[..., d] for d in range(x.shape[-1])}
    for k in range(cos.shape[1]):
        one, other = (2 * k, 2 * k + 1) if interleaved else (k, k + cos.shape[1])
        c, s = cos[:, k], sin[:, k]
        columns[one], columns[other] = x[..., one] * c - x[..., other] * s, x[..., other] * c + x[..., one] * s
    return np.stack([columns[d] for d in range(x.shape[-1])], axis=-1)


# =====================================================================================================================


# =====================================================================================================================
# Task 7: apply_rope_torch
# =====================================================================================================================


@answer(
    "apply_rope",
    "torch",
    "the colleague's, as it is",
    "wrong",
    "repeat_interleave gives components 0 and 1 the same angle; half-split pairs 0 with w.",
)
def rt_w1(x, cos, sin, *, interleaved=False):
    pairs = cos.shape[-1]
    head, tail = x.split([2 * pairs, x.shape[-1] - 2 * pairs], dim=-1)
    cosines = cos.repeat_interleave(2, dim=-1)
    sines = sin.repeat_interleave(2, dim=-1)
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
    "mended one layout, broke the other",
    "wrong",
    "torch.cat of the tables is right for half-split only; neighbours get the wrong angles now.",
)
def rt_w2(x, cos, sin, *, interleaved=False):
    pairs = cos.shape[-1]
    head, tail = x.split([2 * pairs, x.shape[-1] - 2 * pairs], dim=-1)
    cosines, sines = torch.cat([cos, cos], dim=-1), torch.cat([sin, sin], dim=-1)
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
    "repeat(2)",
    "wrong",
    "cos.repeat(2) needs a number for each dimension: a table of two is an error.",
)
def rt_w3(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    head, tail = x[..., : 2 * w], x[..., 2 * w :]
    if interleaved:
        c, s = cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
        partner = torch.stack([-head[..., 1::2], head[..., ::2]], -1).flatten(-2)
    else:
        c, s = cos.repeat(2), sin.repeat(2)
        partner = torch.cat([-head[..., w:], head[..., :w]], -1)
    return torch.cat([head * c + partner * s, tail], -1)


@answer(
    "apply_rope",
    "torch",
    "partner changed instead",
    "wrong",
    "The partners are mended, which were right; the angles are still those of neighbours.",
)
def rt_w4(x, cos, sin, *, interleaved=False):
    pairs = cos.shape[-1]
    head, tail = x.split([2 * pairs, x.shape[-1] - 2 * pairs], dim=-1)
    cosines = cos.repeat_interleave(2, dim=-1)
    sines = sin.repeat_interleave(2, dim=-1)
    even, odd = head[..., 0::2], head[..., 1::2]
    if interleaved:
        partner = torch.stack([-odd, even], dim=-1).flatten(-2)
    else:
        partner = torch.cat([-odd, even], dim=-1)
    return torch.cat([head * cosines + partner * sines, tail], dim=-1)


@answer("apply_rope", "torch", "through NumPy", "wrong", "The detour through NumPy loses the gradients.")
def rt_w5(x, cos, sin, *, interleaved=False):
    turned = apply_rope(*(t.detach().cpu().numpy() for t in (x, cos, sin)), interleaved=interleaved)
    return torch.as_tensor(turned, dtype=x.dtype, device=x.device)


@answer(
    "apply_rope",
    "torch",
    "writes into x",
    "wrong",
    "x[...] = ... changes the tensor of the caller, and crashes on a leaf that wants gradients.",
)
def rt_w6(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    a, b = (slice(0, 2 * w, 2), slice(1, 2 * w, 2)) if interleaved else (slice(0, w), slice(w, 2 * w))
    one, other = x[..., a].clone(), x[..., b].clone()
    x[..., a] = one * cos - other * sin
    x[..., b] = other * cos + one * sin
    return x


@answer(
    "apply_rope",
    "torch",
    "new component used",
    "wrong",
    "y[..., b] is made of the y[..., a] that has been turned already.",
)
def rt_w7(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    a, b = (slice(0, 2 * w, 2), slice(1, 2 * w, 2)) if interleaved else (slice(0, w), slice(w, 2 * w))
    y = x.clone()
    y[..., a] = x[..., a] * cos - x[..., b] * sin
    y[..., b] = x[..., b] * cos + y[..., a] * sin
    return y


@answer("apply_rope", "torch", "no tail", "wrong", "Works on the whole vector: tables with fewer columns crash.")
def rt_w8(x, cos, sin, *, interleaved=False):
    if interleaved:
        c, s = cos.repeat_interleave(2, dim=-1), sin.repeat_interleave(2, dim=-1)
        partner = torch.stack([-x[..., 1::2], x[..., ::2]], dim=-1).flatten(-2)
    else:
        c, s = torch.cat([cos, cos], dim=-1), torch.cat([sin, sin], dim=-1)
        low, high = x.chunk(2, dim=-1)
        partner = torch.cat([-high, low], dim=-1)
    return x * c + partner * s


@answer(
    "apply_rope",
    "torch",
    "tables stacked below each other",
    "wrong",
    "torch.cat without dim joins the tables along the positions.",
)
def rt_w9(x, cos, sin, *, interleaved=False):
    pairs = cos.shape[-1]
    head, tail = x.split([2 * pairs, x.shape[-1] - 2 * pairs], dim=-1)
    if interleaved:
        cosines, sines = cos.repeat_interleave(2, dim=-1), sin.repeat_interleave(2, dim=-1)
        partner = torch.stack([-head[..., 1::2], head[..., 0::2]], dim=-1).flatten(-2)
    else:
        cosines, sines = torch.cat([cos, cos]), torch.cat([sin, sin])
        low, high = head.chunk(2, dim=-1)
        partner = torch.cat([-high, low], dim=-1)
    return torch.cat([head * cosines + partner * sines, tail], dim=-1)


@answer(
    "apply_rope",
    "torch",
    "tail detached",
    "wrong",
    "The components that pass are copied from x.data, and get no gradient.",
)
def rt_w10(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    y = x.data.clone()
    a, b = (slice(0, 2 * w, 2), slice(1, 2 * w, 2)) if interleaved else (slice(0, w), slice(w, 2 * w))
    y[..., a] = x[..., a] * cos - x[..., b] * sin
    y[..., b] = x[..., b] * cos + x[..., a] * sin
    return y


@answer(
    "apply_rope",
    "torch",
    "neighbours only",
    "wrong",
    "The argument interleaved is ignored: neighbours are turned in either case.",
)
def rt_w11(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    even, odd = x[..., 0 : 2 * w : 2], x[..., 1 : 2 * w : 2]
    turned = torch.stack([even * cos - odd * sin, odd * cos + even * sin], dim=-1).flatten(-2)
    return torch.cat([turned, x[..., 2 * w :]], dim=-1)


@answer(
    "apply_rope",
    "torch",
    "minus at the wrong half",
    "wrong",
    "The minus stands at the lower half: half-split turns the other way.",
)
def rt_w12(x, cos, sin, *, interleaved=False):
    pairs = cos.shape[-1]
    head, tail = x.split([2 * pairs, x.shape[-1] - 2 * pairs], dim=-1)
    if interleaved:
        c, s = cos.repeat_interleave(2, dim=-1), sin.repeat_interleave(2, dim=-1)
        partner = torch.stack([-head[..., 1::2], head[..., 0::2]], dim=-1).flatten(-2)
    else:
        c, s = cos.tile(2), sin.tile(2)
        low, high = head.chunk(2, dim=-1)
        partner = torch.cat([high, -low], dim=-1)
    return torch.cat([head * c + partner * s, tail], dim=-1)


@answer("apply_rope", "torch", "unflatten and addcmul", "right")
def rt_r1(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    head, tail = x[..., : 2 * w], x[..., 2 * w :]
    if interleaved:
        a, b = head.unflatten(-1, (w, 2)).unbind(-1)
        turned = torch.stack((torch.addcmul(a * cos, b, sin, value=-1), torch.addcmul(b * cos, a, sin)), -1).flatten(-2)
    else:
        a, b = head.unflatten(-1, (2, w)).unbind(-2)
        turned = torch.stack((torch.addcmul(a * cos, b, sin, value=-1), torch.addcmul(b * cos, a, sin)), -2).flatten(-2)
    return torch.cat((turned, tail), -1)


@answer("apply_rope", "torch", "reorder, turn halves, order back", "right")
def rt_r2(x, cos, sin, *, interleaved=False):
    w, D = cos.shape[-1], x.shape[-1]
    order = list(range(D))
    if interleaved:
        order = [*range(0, 2 * w, 2), *range(1, 2 * w, 2), *range(2 * w, D)]
    halves = x[..., order]
    a, b, rest = halves[..., :w], halves[..., w : 2 * w], halves[..., 2 * w :]
    joined = torch.cat([a * cos - b * sin, a * sin + b * cos, rest], dim=-1)
    back = sorted(range(D), key=order.__getitem__)
    return joined[..., back]


@answer("apply_rope", "torch", "component by component", "right")
def rt_r3(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    columns = list(x.unbind(dim=-1))
    old = tuple(columns)
    for k, (c, s) in enumerate(zip(cos.unbind(-1), sin.unbind(-1))):
        i, j = (2 * k, 2 * k + 1) if interleaved else (k, w + k)
        columns[i] = old[i] * c - old[j] * s
        columns[j] = old[j] * c + old[i] * s
    return torch.stack(columns, dim=-1)


# =====================================================================================================================
# Task 9: alibi_bias
# =====================================================================================================================


def _slopes(H):
    """Right: used by the answers whose mistake lies elsewhere."""
    n = 2 ** int(math.log2(H))
    first = [2.0 ** (-8 * h / n) for h in range(1, n + 1)]
    more = [2.0 ** (-8 * h / (2 * n)) for h in range(1, 2 * n + 1)][0::2]
    return np.array((first + more)[:H])


@answer(
    "alibi_bias",
    "numpy",
    "later keys forbidden",
    "wrong",
    "Keys after the query get minus infinity; the models look both ways.",
)
def al_w1(H, T, S, *, q_offset=0):
    distance = np.arange(T)[:, None] + q_offset - np.arange(S)
    bias = -_slopes(H)[:, None, None] * np.abs(distance)
    return np.where(distance < 0, -np.inf, bias)


@answer(
    "alibi_bias",
    "numpy",
    "no absolute value",
    "wrong",
    "Keys after the query get a positive number: the farther, the better.",
)
def al_w2(H, T, S, *, q_offset=0):
    distance = np.arange(T)[:, None] + q_offset - np.arange(S)
    return -_slopes(H)[:, None, None] * distance


@answer("alibi_bias", "numpy", "sign forgotten", "wrong", "The bias is positive: far keys get larger scores.")
def al_w3(H, T, S, *, q_offset=0):
    i, j = np.arange(T) + q_offset, np.arange(S)
    return np.einsum("h,ts->hts", _slopes(H), np.abs(i[:, None] - j[None, :]).astype(float))


@answer("alibi_bias", "numpy", "heads from 0", "wrong", "h starts at 0, so the first slope is 1.")
def al_w4(H, T, S, *, q_offset=0):
    def powers(n):
        return 2.0 ** (-8 * np.arange(n) / n)

    n = 1 << (H.bit_length() - 1)
    slopes = np.concatenate([powers(n), powers(2 * n)[::2][: H - n]])
    return -slopes[:, None, None] * np.abs(np.arange(T)[:, None] + q_offset - np.arange(S))


@answer(
    "alibi_bias",
    "numpy",
    "formula for every H",
    "wrong",
    "The formula for powers of two is used for every number of heads.",
)
def al_w5(H, T, S, *, q_offset=0):
    m = 2.0 ** (-8 * np.arange(1, H + 1) / H)
    i = np.arange(T)[:, None] + q_offset
    j = np.arange(S)[None, :]
    return -m[:, None, None] * np.abs(i - j)


@answer(
    "alibi_bias",
    "numpy",
    "sorted slopes",
    "wrong",
    "The extra slopes are sorted in instead of standing behind the others.",
)
def al_w6(H, T, S, *, q_offset=0):
    m = np.sort(_slopes(H))[::-1]
    return -m[:, None, None] * np.abs(np.arange(T)[:, None] + q_offset - np.arange(S))


@answer(
    "alibi_bias",
    "numpy",
    "beginning with the second",
    "wrong",
    "Of the slopes for 2n heads the second, fourth, ... are taken, which are there already.",
)
def al_w7(H, T, S, *, q_offset=0):
    n = 2 ** math.floor(math.log2(H))
    slopes = [2 ** (-8 * h / n) for h in range(1, n + 1)]
    slopes += [2 ** (-4 * h / n) for h in range(1, 2 * n + 1)][1::2][: H - n]
    return -np.array(slopes)[:, None, None] * np.abs(np.arange(T)[:, None] + q_offset - np.arange(S))


@answer(
    "alibi_bias",
    "numpy",
    "offset subtracted",
    "wrong",
    "The offset is subtracted: queries in a cache stand before all keys.",
)
def al_w8(H, T, S, *, q_offset=0):
    i = np.arange(T)[:, None] - q_offset
    return -_slopes(H)[:, None, None] * np.abs(i - np.arange(S))


@answer("alibi_bias", "numpy", "offset ignored", "wrong", "q_offset is never used.")
def al_w9(H, T, S, *, q_offset=0):
    return np.array([[[-m * abs(i - j) for j in range(S)] for i in range(T)] for m in _slopes(H)])


@answer("alibi_bias", "numpy", "heads last", "wrong", "The shape is (T, S, H): heads come first.")
def al_w10(H, T, S, *, q_offset=0):
    distance = np.abs(np.arange(T)[:, None] + q_offset - np.arange(S))
    return -distance[:, :, None] * _slopes(H)


@answer(
    "alibi_bias", "numpy", "next power above", "wrong", "The next larger power of two is taken, and cut: other slopes."
)
def al_w11(H, T, S, *, q_offset=0):
    n = 2 ** math.ceil(math.log2(H))
    m = 2.0 ** (-8 * np.arange(1, n + 1) / n)
    distance = np.abs(np.subtract.outer(np.arange(T) + q_offset, np.arange(S)))
    return -m[:H, None, None] * distance


@answer(
    "alibi_bias",
    "numpy",
    "slopes of eight heads",
    "wrong",
    "1/2, 1/4, 1/8, ... are the slopes for 8 heads; for others they differ.",
)
def al_w12(H, T, S, *, q_offset=0):
    m = 0.5 ** np.arange(1, H + 1)
    return -m[:, None, None] * np.abs(np.arange(T)[:, None] + q_offset - np.arange(S))


@answer(
    "alibi_bias",
    "numpy",
    "Bloom's shortcut",
    "wrong",
    "Adds slope times the position of the key, as Bloom does: equivalent under a causal softmax only, and positive.",
)
def al_w13(H, T, S, *, q_offset=0):
    bias = _slopes(H)[:, None, None] * np.arange(S)[None, None, :]
    return np.broadcast_to(bias, (H, T, S)).copy()


@answer(
    "alibi_bias",
    "numpy",
    "queries at the end by themselves",
    "wrong",
    "The last query is put beside the last key; where queries stand is said by q_offset.",
)
def al_w14(H, T, S, *, q_offset=0):
    i = np.arange(S - T, S)[:, None] + q_offset
    return -_slopes(H)[:, None, None] * np.abs(i - np.arange(S))


@answer(
    "alibi_bias",
    "numpy",
    "strictly below",
    "wrong",
    "For powers of two n is taken as H/2, and the second half of the slopes comes from the rule for other numbers.",
)
def al_w15(H, T, S, *, q_offset=0):
    n = 1
    while 2 * n < H:
        n *= 2
    slopes = [2 ** (-8 * (h + 1) / n) for h in range(n)]
    slopes += [2 ** (-8 * (h + 1) / (2 * n)) for h in range(0, 2 * n, 2)]
    return -np.array(slopes[:H])[:, None, None] * np.abs(np.arange(T)[:, None] + q_offset - np.arange(S))


@answer(
    "alibi_bias", "numpy", "keys along the rows", "wrong", "The distances are (S, T): only symmetric tables hide it."
)
def al_w16(H, T, S, *, q_offset=0):
    keys, queries = np.meshgrid(np.arange(S), np.arange(T) + q_offset, indexing="ij")
    return -_slopes(H)[:, None, None] * np.abs(keys - queries)


@answer(
    "alibi_bias", "numpy", "offset on both sides", "wrong", "The keys are moved on by the offset too, so it cancels."
)
def al_w17(H, T, S, *, q_offset=0):
    where_q = np.arange(q_offset, q_offset + T)
    where_k = np.arange(q_offset, q_offset + S)
    return -_slopes(H)[:, None, None] * np.abs(where_q[:, None] - where_k[None, :])


@answer(
    "alibi_bias",
    "numpy",
    "a batch in front",
    "wrong",
    "The bias has the shape (1, H, T, S), with an axis for a batch that nobody asked for.",
)
def al_w18(H, T, S, *, q_offset=0):
    distance = np.abs(np.arange(T)[:, None] + q_offset - np.arange(S))
    return (-_slopes(H).reshape(H, 1, 1) * distance)[None]


@answer("alibi_bias", "numpy", "recursion of the paper's code", "right")
def al_r1(H, T, S, *, q_offset=0):
    def get_slopes(n):
        if math.log2(n).is_integer():
            start = 2 ** (-(2 ** -(math.log2(n) - 3)))
            return [start * start**i for i in range(n)]
        closest = 2 ** math.floor(math.log2(n))
        return get_slopes(closest) + get_slopes(2 * closest)[0::2][: n - closest]

    slopes = np.array(get_slopes(H))
    return -np.multiply.outer(slopes, np.abs(np.subtract.outer(np.arange(T) + q_offset, np.arange(S))))


@answer("alibi_bias", "numpy", "plain loops", "right")
def al_r2(H, T, S, *, q_offset=0):
    n = 1
    while n * 2 <= H:
        n *= 2
    bias = np.zeros((H, T, S))
    for head in range(H):
        # heads behind the first n: h = 1, 3, 5, ... of 2n
        exponent = 8 * (head + 1) / n if head < n else 8 * (2 * (head - n) + 1) / (2 * n)
        for i in range(T):
            for j in range(S):
                bias[head, i, j] = -abs(i + q_offset - j) / 2**exponent
    return bias


@answer("alibi_bias", "numpy", "minimum of two signed distances", "right")
def al_r3(H, T, S, *, q_offset=0):
    n = 2 ** (int(H).bit_length() - 1)
    h = np.concatenate([np.arange(1, n + 1), np.arange(0.5, H - n + 0.5)])
    forward = np.arange(S) - np.arange(q_offset, q_offset + T)[:, None]
    return np.exp2(-8.0 * h / n)[:, None, None] * np.minimum(forward, -forward)


# =====================================================================================================================


# =====================================================================================================================
# More right answers
# =====================================================================================================================


@answer("equivariance_gap", "numpy", "larger of maximum and minus minimum", "right")
def eq_r3(f, x, order):
    difference = f(x[order]) - np.take(f(x), order, axis=0)
    return max(float(difference.max()), -float(difference.min()))


@answer("sinusoidal_positions", "numpy", "double loop with math", "right")
def si_r3(T, D, *, base=10000.0):
    def clock(i):
        for k in range(D // 2):
            angle = i / base ** (2 * k / D)
            yield from (math.sin(angle), math.cos(angle))

    return np.array([list(clock(i)) for i in range(T)])


@answer("sinusoidal_positions", "numpy", "log speeds, transposed at the end", "right")
def si_r4(T, D, *, base=10000.0):
    speeds = np.geomspace(1.0, 1.0 / base, D // 2 + 1)[:-1]  # base ** 0, base ** (-2/D), ..., without base ** -1
    columns = []
    for speed in speeds:
        columns += [np.sin(speed * np.arange(T)), np.cos(speed * np.arange(T))]
    return np.array(columns).T


@answer("apply_rope", "numpy", "partner and signs by index", "right")
def ro_r4(x, cos, sin, *, interleaved=False):
    w, D = cos.shape[-1], x.shape[-1]
    d = np.arange(2 * w)
    pair = d // 2 if interleaved else d % w
    first = d % 2 == 0 if interleaved else d < w
    partner = np.where(first, d + 1, d - 1) if interleaved else (d + w) % (2 * w)
    turned = x[..., d] * cos[:, pair] + np.where(first, -1, 1) * x[..., partner] * sin[:, pair]
    return np.concatenate([turned, x[..., 2 * w : D]], axis=-1)


@answer("apply_rope", "torch", "2 by 2 matrices", "right")
def rt_r4(x, cos, sin, *, interleaved=False):
    w = cos.shape[-1]
    turn = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)  # (T, w, 2, 2)
    if interleaved:
        pairs = torch.stack([x[..., 0 : 2 * w : 2], x[..., 1 : 2 * w : 2]], -1)
    else:
        pairs = torch.stack([x[..., :w], x[..., w : 2 * w]], -1)
    turned = (turn @ pairs.unsqueeze(-1)).squeeze(-1)  # (..., T, w, 2)
    if not interleaved:
        turned = turned.transpose(-1, -2)
    return torch.cat([turned.reshape(*x.shape[:-1], 2 * w), x[..., 2 * w :]], -1)


@answer("apply_rope", "torch", "hers, with the tables joined", "right")
def rt_r5(x, cos, sin, *, interleaved=False):
    pairs = cos.shape[-1]
    head, tail = x.split([2 * pairs, x.shape[-1] - 2 * pairs], dim=-1)
    if interleaved:
        cosines, sines = cos.repeat_interleave(2, dim=-1), sin.repeat_interleave(2, dim=-1)
        even, odd = head[..., 0::2], head[..., 1::2]
        partner = torch.stack([-odd, even], dim=-1).flatten(-2)
    else:
        cosines, sines = cos.tile(2), sin.tile(2)
        low, high = head.chunk(2, dim=-1)
        partner = torch.cat([-high, low], dim=-1)
    return torch.cat([head * cosines + partner * sines, tail], dim=-1)


@answer("alibi_bias", "numpy", "slopes of 2n that are not there yet", "right")
def al_r4(H, T, S, *, q_offset=0):
    def slopes(n):
        return [2 ** (-8 * h / n) for h in range(1, n + 1)]

    n = max(p for p in (2**e for e in range(40)) if p <= H)
    mine = slopes(n)
    mine += [m for m in slopes(2 * n) if m not in mine][: H - n]
    position = np.arange(q_offset, q_offset + T)
    return np.stack([np.abs(position[:, None] - np.arange(S)) * -m for m in mine])
