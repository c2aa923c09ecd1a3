"""Correct versions of ``apply_rope``, in the styles that students write."""

import numpy as np

from attnlib.checks.mutation.target import CorrectVersions

VERSIONS = CorrectVersions()


def halves(x, width, interleaved):
    """Return the first and the second components of all pairs."""
    turned = x[..., : 2 * width]
    if interleaved:
        return turned[..., ::2], turned[..., 1::2]
    return turned[..., :width], turned[..., width:]


@VERSIONS.add("its own copy, filled by slices")
def rope(x, cos, sin, *, interleaved=False):
    width, y = cos.shape[-1], x.copy()
    first = slice(0, 2 * width, 2) if interleaved else slice(0, width)
    second = slice(1, 2 * width, 2) if interleaved else slice(width, 2 * width)
    y[..., first] = x[..., first] * cos - x[..., second] * sin
    y[..., second] = x[..., first] * sin + x[..., second] * cos
    return y


@VERSIONS.add("Python loops over positions and pairs")
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


@VERSIONS.add("rotate half, with tables of full width")
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


@VERSIONS.add("complex numbers")
def rope_complex(x, cos, sin, *, interleaved=False):
    width = cos.shape[-1]
    a, b = halves(x, width, interleaved)
    z = (a + 1j * b) * (cos + 1j * sin)
    pair = np.stack([z.real, z.imag], axis=-1 if interleaved else -2)
    return np.concatenate([pair.reshape(*x.shape[:-1], 2 * width), x[..., 2 * width :]], axis=-1)


@VERSIONS.add("a matrix for each position")
def rope_matrices(x, cos, sin, *, interleaved=False):
    (T, width), D = cos.shape, x.shape[-1]
    R = np.tile(np.eye(D), (T, 1, 1))
    k = np.arange(width)
    a, b = (2 * k, 2 * k + 1) if interleaved else (k, k + width)
    R[:, a, a], R[:, a, b], R[:, b, a], R[:, b, b] = cos, -sin, sin, cos
    return np.einsum("tij,...tj->...ti", R, x)


@VERSIONS.add("neighbouring pairs rearranged into halves, turned, and put back")
def rope_rearranged(x, cos, sin, *, interleaved=False):
    n = 2 * cos.shape[-1]
    order = np.arange(n) if not interleaved else np.r_[0:n:2, 1:n:2]
    turned = x[..., :n][..., order]
    a, b = np.split(turned, 2, axis=-1)
    turned = np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
    return np.concatenate([turned[..., np.argsort(order)], x[..., n:]], axis=-1)


@VERSIONS.add("angles recovered from the tables, float64 inside")
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


@VERSIONS.add("a 2-by-2 matrix for each pair, and the other components added at the end")
def rope_padded(x, cos, sin, *, interleaved=False):
    n, D = 2 * cos.shape[-1], x.shape[-1]
    pairs = x[..., :n].reshape(*x.shape[:-1], *((n // 2, 2) if interleaved else (2, n // 2)))
    pairs = pairs if interleaved else np.swapaxes(pairs, -1, -2)
    R = np.stack([np.stack([cos, sin], -1), np.stack([-sin, cos], -1)], -2)
    pairs = (pairs[..., None, :] @ R)[..., 0, :]
    pairs = pairs if interleaved else np.swapaxes(pairs, -1, -2)
    return np.pad(pairs.reshape(*x.shape[:-1], n), [(0, 0)] * (x.ndim - 1) + [(0, D - n)]) + x * (np.arange(D) >= n)
