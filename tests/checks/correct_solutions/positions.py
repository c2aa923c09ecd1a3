"""Right answers to the exercises of the assignment on positions."""

import cmath
import math

import numpy as np
import torch

import attnlib
from correct_solutions.styles import style

# sinusoidal_positions --------------------------------------------------------------------------------------------


@style("sinusoidal_positions", "filled by slices")
def sinusoids(T, D, *, base=10000.0):
    table = np.zeros((T, D))
    angle = np.arange(T)[:, None] / base ** (np.arange(0, D, 2) / D)
    table[:, 0::2] = np.sin(angle)
    table[:, 1::2] = np.cos(angle)
    return table


@style("sinusoidal_positions", "Python loops, with math")
def sinusoids_loops(T, D, base=10000.0):
    rows = []
    for i in range(T):
        row = []
        for k in range(D // 2):
            angle = i / math.pow(base, 2 * k / D)
            row += [math.sin(angle), math.cos(angle)]
        rows.append(row)
    return np.array(rows)


@style("sinusoidal_positions", "exp of a logarithm, both layouts")
def sinusoids_exp(T, D, *, base=10000.0, interleaved=True):
    omega = np.exp(-math.log(base) * np.arange(0, D, 2) / D)
    angle = np.outer(np.arange(T), omega)
    if not interleaved:
        return np.hstack([np.sin(angle), np.cos(angle)])
    return np.dstack([np.sin(angle), np.cos(angle)]).reshape(T, D)


@style("sinusoidal_positions", "column by column, with where")
def sinusoids_columns(T, D, *, base=10000.0):
    d = np.arange(D)
    angle = np.arange(T).reshape(-1, 1) * np.power(base, -2 * (d // 2) / D)
    return np.where(d % 2 == 0, np.sin(angle), np.cos(angle))


@style("sinusoidal_positions", "sines alone, a quarter turn ahead for the cosine")
def sinusoids_phase(T, D, *, base=10000.0):
    k = np.repeat(np.arange(D // 2), 2)
    return np.sin(np.arange(T)[:, None] * base ** (-2.0 * k / D) + np.tile([0, np.pi / 2], D // 2))


@style("sinusoidal_positions", "complex numbers")
def sinusoids_complex(T, D, *, base=10000.0, interleaved=True, like=None):
    hand = np.exp(1j * np.arange(T)[:, None] * base ** (-np.arange(D // 2) * 2 / D))
    both = [hand.imag, hand.real]
    return np.stack(both, axis=-1).reshape(T, D) if interleaved else np.concatenate(both, axis=-1)


@style("sinusoidal_positions", "each row by turning the row before")
def sinusoids_turning(T, D, *, base=10000.0):
    speed = np.array([cmath.exp(1j * base ** (-2 * k / D)) for k in range(D // 2)])
    hand, rows = np.ones(D // 2, complex), []
    for _ in range(T):
        rows.append(np.ravel([hand.imag, hand.real], order="F"))
        hand = hand * speed
    return np.array(rows).reshape(T, D)


@style("sinusoidal_positions", "half-split and then rearranged, in float32")
def sinusoids_float32(T, D, *, base=10000.0):
    angle = np.arange(T, dtype=np.float32)[:, None] * np.float32(base) ** (-np.arange(0, D, 2, dtype=np.float32) / D)
    split = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
    return split[:, np.arange(D).reshape(2, -1).T.ravel()]


@style("sinusoidal_positions", "fromfunction")
def sinusoids_fromfunction(T, D, *, base=10000.0):
    def entry(i, d):
        return np.sin(i * base ** (-(d - d % 2) / D) + np.pi / 2 * (d % 2))

    return np.fromfunction(entry, (T, D))


# apply_rope ------------------------------------------------------------------------------------------------------


def halves(x, width, interleaved):
    turned = x[..., : 2 * width]
    if interleaved:
        return turned[..., ::2], turned[..., 1::2]
    return turned[..., :width], turned[..., width:]


@style("apply_rope", "its own copy, filled by slices")
def rope(x, cos, sin, *, interleaved=False):
    width, y = cos.shape[-1], x.copy()
    first = slice(0, 2 * width, 2) if interleaved else slice(0, width)
    second = slice(1, 2 * width, 2) if interleaved else slice(width, 2 * width)
    y[..., first] = x[..., first] * cos - x[..., second] * sin
    y[..., second] = x[..., first] * sin + x[..., second] * cos
    return y


@style("apply_rope", "Python loops over positions and pairs")
def rope_loops(x, cos, sin, *, interleaved=False):
    width, y = cos.shape[1], np.array(x, dtype=float)
    for place in np.ndindex(x.shape[:-1]):
        t = place[-1]
        for k in range(width):
            a, b = (2 * k, 2 * k + 1) if interleaved else (k, k + width)
            c, s = float(cos[t, k]), float(sin[t, k])
            y[(*place, a)] = c * x[(*place, a)] - s * x[(*place, b)]
            y[(*place, b)] = s * x[(*place, a)] + c * x[(*place, b)]
    return y


@style("apply_rope", "rotate half, with tables of full width")
def rope_rotate_half(x, cos, sin, interleaved=False):
    n = 2 * cos.shape[-1]
    turned, rest = x[..., :n], x[..., n:]
    if interleaved:
        cos, sin = np.repeat(cos, 2, -1), np.repeat(sin, 2, -1)
        partner = np.stack([-turned[..., 1::2], turned[..., ::2]], -1).reshape(turned.shape)
    else:
        cos, sin = np.tile(cos, 2), np.tile(sin, 2)
        partner = np.concatenate([-turned[..., n // 2 :], turned[..., : n // 2]], -1)
    return np.concatenate([turned * cos + partner * sin, rest], -1)


@style("apply_rope", "complex numbers")
def rope_complex(x, cos, sin, *, interleaved=False):
    width = cos.shape[-1]
    a, b = halves(x, width, interleaved)
    z = (a + 1j * b) * (cos + 1j * sin)
    pair = np.stack([z.real, z.imag], axis=-1 if interleaved else -2)
    return np.concatenate([pair.reshape(*x.shape[:-1], 2 * width), x[..., 2 * width :]], axis=-1)


@style("apply_rope", "a matrix for each position")
def rope_matrices(x, cos, sin, *, interleaved=False):
    (T, width), D = cos.shape, x.shape[-1]
    R = np.tile(np.eye(D), (T, 1, 1))
    k = np.arange(width)
    a, b = (2 * k, 2 * k + 1) if interleaved else (k, k + width)
    R[:, a, a], R[:, a, b], R[:, b, a], R[:, b, b] = cos, -sin, sin, cos
    return np.einsum("tij,...tj->...ti", R, x)


@style("apply_rope", "neighbouring pairs rearranged into halves, turned, and put back")
def rope_rearranged(x, cos, sin, *, interleaved=False):
    n = 2 * cos.shape[-1]
    order = np.arange(n) if not interleaved else np.r_[0:n:2, 1:n:2]
    turned = x[..., :n][..., order]
    a, b = np.split(turned, 2, axis=-1)
    turned = np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
    return np.concatenate([turned[..., np.argsort(order)], x[..., n:]], axis=-1)


@style("apply_rope", "angles recovered from the tables, float64 inside")
def rope_angles(x, cos, sin, *, interleaved=False):
    width = cos.shape[-1]
    a, b = (z.astype(np.float64) for z in halves(x, width, interleaved))
    radius, angle = np.hypot(a, b), np.arctan2(b, a) + np.arctan2(sin, cos)
    y = x.astype(np.float64)
    if interleaved:
        y[..., 0 : 2 * width : 2], y[..., 1 : 2 * width : 2] = radius * np.cos(angle), radius * np.sin(angle)
    else:
        y[..., :width], y[..., width : 2 * width] = radius * np.cos(angle), radius * np.sin(angle)
    return y.astype(x.dtype)


@style("apply_rope", "a 2-by-2 matrix for each pair, and the other components added at the end")
def rope_padded(x, cos, sin, *, interleaved=False):
    n, D = 2 * cos.shape[-1], x.shape[-1]
    pairs = x[..., :n].reshape(*x.shape[:-1], *((n // 2, 2) if interleaved else (2, n // 2)))
    pairs = pairs if interleaved else np.swapaxes(pairs, -1, -2)
    R = np.stack([np.stack([cos, sin], -1), np.stack([-sin, cos], -1)], -2)
    pairs = (pairs[..., None, :] @ R)[..., 0, :]
    pairs = pairs if interleaved else np.swapaxes(pairs, -1, -2)
    return np.pad(pairs.reshape(*x.shape[:-1], n), [(0, 0)] * (x.ndim - 1) + [(0, D - n)]) + x * (np.arange(D) >= n)


@style("apply_rope", "chunks and cat", backend="torch")
def rope_torch(x, cos, sin, *, interleaved=False):
    n = 2 * cos.size(-1)
    turned, rest = x[..., :n], x[..., n:]
    if interleaved:
        a, b = turned.unflatten(-1, (-1, 2)).unbind(-1)
        pairs = torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)
    else:
        a, b = turned.chunk(2, dim=-1)
        pairs = torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)
    return torch.cat([pairs, rest], dim=-1)


@style("apply_rope", "rotate half", backend="torch")
def rope_torch_rotate_half(x, cos, sin, *, interleaved=False):
    n = 2 * cos.shape[-1]
    turned, rest = x[..., :n], x[..., n:]
    if interleaved:
        cos, sin = cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
        partner = torch.stack([-turned[..., 1::2], turned[..., ::2]], -1).reshape(turned.shape)
    else:
        cos, sin = cos.repeat(1, 2), sin.repeat(1, 2)
        partner = torch.roll(turned, n // 2, -1) * torch.cat([-torch.ones(n // 2), torch.ones(n // 2)]).to(x)
    return torch.cat([turned * cos + partner * sin, rest], -1)


@style("apply_rope", "complex tensors", backend="torch")
def rope_torch_complex(x, cos, sin, *, interleaved=False):
    n = 2 * cos.shape[-1]
    turned = x[..., :n].unflatten(-1, (-1, 2) if interleaved else (2, -1))
    turned = turned if interleaved else turned.mT
    z = torch.view_as_complex(turned.contiguous()) * torch.complex(cos, sin)
    pairs = torch.view_as_real(z)
    return torch.cat([(pairs if interleaved else pairs.mT).flatten(-2), x[..., n:]], dim=-1)


@style("apply_rope", "a clone, filled by slices", backend="torch")
def rope_torch_clone(x, cos, sin, *, interleaved=False):
    w, y = cos.shape[-1], x.clone()
    a, b = (slice(0, 2 * w, 2), slice(1, 2 * w, 2)) if interleaved else (slice(0, w), slice(w, 2 * w))
    y[..., a] = x[..., a] * cos - x[..., b] * sin
    y[..., b] = x[..., b] * cos + x[..., a] * sin
    return y


@style("apply_rope", "a matrix for each position", backend="torch")
def rope_torch_matrices(x, cos, sin, *, interleaved=False):
    width, D = cos.shape[-1], x.shape[-1]
    k = torch.arange(width)
    a, b = (2 * k, 2 * k + 1) if interleaved else (k, k + width)
    eye = torch.eye(D, dtype=x.dtype)
    stay = torch.diag((torch.arange(D) >= 2 * width).to(x.dtype))
    same = torch.einsum("tk,ki,kj->tij", cos, eye[a], eye[a]) + torch.einsum("tk,ki,kj->tij", cos, eye[b], eye[b])
    mixed = torch.einsum("tk,ki,kj->tij", sin, eye[b], eye[a]) - torch.einsum("tk,ki,kj->tij", sin, eye[a], eye[b])
    return torch.einsum("tij,...tj->...ti", same + mixed + stay, x)


# alibi_bias ------------------------------------------------------------------------------------------------------


def slopes(H):
    power = 2 ** math.floor(math.log2(H))
    first = [2 ** (-8 * h / power) for h in range(1, power + 1)]
    return first if power == H else first + [2 ** (-4 * h / power) for h in range(1, 2 * power + 1, 2)][: H - power]


@style("alibi_bias", "broadcasting")
def alibi(H, T, S, *, q_offset=0):
    i, j = np.arange(T)[:, None] + q_offset, np.arange(S)[None, :]
    return -np.array(slopes(H))[:, None, None] * np.abs(i - j)


@style("alibi_bias", "Python loops")
def alibi_loops(H, T, S, *, q_offset=0):
    return np.array(
        [[[-m * abs(i + q_offset - j) for j in range(S)] for i in range(T)] for m in slopes(H)], dtype=np.float64
    )


@style("alibi_bias", "einsum, in float32")
def alibi_einsum(H, T, S, q_offset=0):
    apart = np.abs(np.subtract.outer(np.arange(q_offset, q_offset + T), np.arange(S)))
    return np.einsum("h,ts->hts", -np.array(slopes(H), np.float32), apart.astype(np.float32))


@style("alibi_bias", "the authors' recursion for the slopes")
def alibi_recursive(H, T, S, *, q_offset=0):
    def get(n):
        if math.log2(n).is_integer():
            start = 2 ** (-(2 ** -(math.log2(n) - 3)))
            return [start * start**i for i in range(n)]
        closest = 2 ** math.floor(math.log2(n))
        return get(closest) + get(2 * closest)[0::2][: n - closest]

    relative = np.arange(S)[None, :] - np.arange(q_offset, T + q_offset)[:, None]
    return np.multiply.outer(np.array(get(H)), np.minimum(relative, -relative))


@style("alibi_bias", "both sides apart, and added")
def alibi_two_sides(H, T, S, *, q_offset=0):
    apart = np.arange(T)[:, None] + q_offset - np.arange(S)
    before, after = np.maximum(apart, 0), np.maximum(-apart, 0)
    return (before + after) * -attnlib.alibi_slopes(H).reshape(-1, 1, 1)


@style("alibi_bias", "diagonals of one long row")
def alibi_diagonals(H, T, S, *, q_offset=0):
    row = -np.abs(np.arange(-(T + q_offset), S + 1)).astype(float)
    table = np.stack([row[T - i : T - i + S] for i in range(T)])
    return np.array([m * table for m in slopes(H)])


# equivariance_gap ------------------------------------------------------------------------------------------------


@style("equivariance_gap", "in one line, as a NumPy number")
def gap(f, x, order):
    return np.max(np.abs(f(x[order]) - f(x)[order]))


@style("equivariance_gap", "a permutation matrix")
def gap_matrix(f, x, order):
    P = np.eye(len(x))[order]
    return float(np.abs(f(P @ x) - P @ f(x)).max())


@style("equivariance_gap", "shuffled back by the inverse order")
def gap_inverse(f, x, order):
    back = np.argsort(order)
    return float(np.abs(f(x[order])[back] - f(x)).max())


@style("equivariance_gap", "Python loops")
def gap_loops(f, x, order):
    one, other = f(np.array([x[i] for i in order])), f(x)
    largest = 0.0
    for place, i in enumerate(order):
        for p, q in zip(one[place], other[i], strict=True):
            largest = max(largest, abs(float(p) - float(q)))
    return largest


@style("equivariance_gap", "np.take, and the larger of two maxima")
def gap_take(f, x, order):
    difference = np.take(f(x), order, axis=0) - f(np.take(x, order, axis=0))
    return float(max(difference.max(), -difference.min()))


@style("equivariance_gap", "the infinity norm, as a 0-dimensional array")
def gap_norm(f, x, order):
    return np.asarray(np.linalg.norm((f(x[order]) - f(x)[order]).ravel(), np.inf))
