"""Correct versions of ``softmax``, in the styles that students write."""

import math

import numpy as np

from attnlib.checks.mutation.target import CorrectVersions

VERSIONS = CorrectVersions()


@VERSIONS.add("the textbook formula, with a shift")
def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


@VERSIONS.add("log-sum-exp")
def softmax_logsumexp(x, axis=-1):
    m = np.max(x, axis=axis, keepdims=True)
    return np.exp(x - (m + np.log(np.sum(np.exp(x - m), axis=axis, keepdims=True))))


@VERSIONS.add("Python loops over rows, with math.exp")
def softmax_loops(x, axis=-1):
    moved = np.moveaxis(x, axis, -1)
    out = np.empty(moved.shape)
    for place in np.ndindex(moved.shape[:-1]):
        row = [float(v) for v in moved[place]]
        exponentials = [math.exp(v - max(row)) for v in row]
        out[place] = [e / sum(exponentials) for e in exponentials]
    return np.moveaxis(out, -1, axis)


@VERSIONS.add("apply_along_axis")
def softmax_along(x, axis=-1):
    def row(v):
        e = np.exp(v - v.max())
        return e / e.sum()

    return np.apply_along_axis(row, axis, x)


@VERSIONS.add("eps 1e-12 in the denominator, float64 inside, cast back")
def softmax_cast(x, axis=-1):
    e = np.exp(x.astype(np.float64) - x.max(axis=axis, keepdims=True))
    return (e / (e.sum(axis=axis, keepdims=True) + 1e-12)).astype(np.result_type(x, np.float32))


@VERSIONS.add("expand_dims instead of keepdims, float64 for float32")
def softmax_expand(x, axis=-1):
    x = np.array(x, dtype=np.float64)
    e = np.exp(x - np.expand_dims(x.max(axis), axis))
    return e / np.expand_dims(e.sum(axis), axis)


@VERSIONS.add("its own copy, changed in place, with an extra keyword")
def softmax_copy(x, axis=-1, *, temperature=1.0):
    x = x.astype(np.result_type(x, np.float32))
    x /= temperature
    x -= x.max(axis, keepdims=True)
    np.exp(x, out=x)
    x /= x.sum(axis, keepdims=True)
    return x


@VERSIONS.add("differences of all pairs")
def softmax_pairs(x, axis=-1):
    x = np.moveaxis(x, axis, -1)
    return np.moveaxis(1 / np.exp(x[..., None, :] - x[..., :, None]).sum(-1), -1, axis)


@VERSIONS.add("np.logaddexp.reduce")
def softmax_logaddexp(x, axis=-1):
    return np.exp(x - np.logaddexp.reduce(x, axis=axis, keepdims=True))


@VERSIONS.add("powers of e, with the axes swapped and swapped back")
def softmax_transposed(x, axis=-1):
    turned = np.swapaxes(x, axis, 0)
    powers = np.power(np.e, turned - turned.max(0))
    return np.swapaxes(powers / powers.sum(0), axis, 0)


@VERSIONS.add("a shift that is larger than the maximum, and np.divide")
def softmax_more_shift(x, axis=-1):
    e = np.exp(x - np.amax(x, axis=axis, keepdims=True) - 1)
    return np.divide(e, np.add.reduce(e, axis=axis, keepdims=True))


@VERSIONS.add("shifted only where the exponentials would overflow, in float64 at the end")
def softmax_when_needed(x, axis=-1):
    shift = x.max(axis=axis, keepdims=True)
    e = np.exp(x - np.where(np.abs(x).max() > 80, shift, 0))
    return (e / e.sum(axis=axis, keepdims=True)).astype(np.float64)
