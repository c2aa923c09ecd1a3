"""Correct versions of ``causal_mask``, in the styles that students write."""

import numpy as np

from attnlib.checks.mutation.target import CorrectVersions

VERSIONS = CorrectVersions()


@VERSIONS.add("a comparison of positions")
def causal(T, S=None, *, q_offset=0):
    S = T if S is None else S
    return np.arange(S)[None, :] <= np.arange(T)[:, None] + q_offset


@VERSIONS.add("np.tri")
def causal_tri(T, S=None, *, q_offset=0):
    return np.tri(T, S, q_offset, dtype=bool)


@VERSIONS.add("np.tril of ones")
def causal_tril(T, S=None, *, q_offset=0):
    return np.tril(np.ones((T, S or T), dtype=np.bool_), k=q_offset)


@VERSIONS.add("not the upper triangle")
def causal_not_triu(T, S=None, q_offset=0):
    return ~np.triu(np.ones((T, T if S is None else S)), 1 + q_offset).astype(bool)


@VERSIONS.add("Python loops")
def causal_loops(T, S=None, *, q_offset=0):
    S = S if S is not None else T
    mask = np.zeros((T, S), dtype=bool)
    for i in range(T):
        for j in range(S):
            if j <= i + q_offset:
                mask[i, j] = True
    return mask


@VERSIONS.add("np.greater_equal.outer")
def causal_outer(T, S=None, *, q_offset=0, like=None):
    return np.greater_equal.outer(np.arange(q_offset, T + q_offset), np.arange(T if S is None else S))


@VERSIONS.add("a slice in each row")
def causal_slices(T, S=None, *, q_offset=0):
    mask = np.full((T, S or T), False)
    for i in range(T):
        mask[i, : max(0, i + q_offset + 1)] = True
    return mask


@VERSIONS.add("np.fromfunction")
def causal_fromfunction(T, S=None, *, q_offset=0):
    return np.fromfunction(lambda i, j: i - j + q_offset >= 0, (T, T if S is None else S))


@VERSIONS.add("a nested list turned into an array")
def causal_list(T, S=None, *, q_offset=0):
    return np.array([[key <= query + q_offset for key in range(S or T)] for query in range(T)])
