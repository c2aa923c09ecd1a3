"""Correct versions of ``multi_head_attention``, in the styles that students write."""

import math

import numpy as np

from attnlib.checks.mutation.correct_versions.steps import merge_heads, softmax, split_heads, swap
from attnlib.checks.mutation.target import CorrectVersions

VERSIONS = CorrectVersions()


@VERSIONS.add("split, attend, merge")
def multi_head_attention(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (split_heads(x, num_heads) for x in (query @ w_q, key @ w_k, value @ w_v))
    weights = softmax(q @ swap(k) / np.sqrt(q.shape[-1]))
    return merge_heads(weights @ v) @ w_o


@VERSIONS.add("a loop over heads with slices of the matrices")
def mha_slices(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    d, d_v = w_q.shape[1] // num_heads, w_v.shape[1] // num_heads
    heads = []
    for h in range(num_heads):
        q, k = query @ w_q[:, h * d : (h + 1) * d], key @ w_k[:, h * d : (h + 1) * d]
        weights = softmax(q @ swap(k) / math.sqrt(d))
        heads.append(weights @ (value @ w_v[:, h * d_v : (h + 1) * d_v]))
    return np.concatenate(heads, axis=-1) @ w_o


@VERSIONS.add("the heads added up, each multiplied by its own rows of w_o")
def mha_added(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    parts = (np.split(w, num_heads, axis=axis) for w, axis in ((w_q, 1), (w_k, 1), (w_v, 1), (w_o, 0)))
    out = 0
    for a, b, c, d in zip(*parts, strict=True):
        out = out + softmax((query @ a / a.shape[1] ** 0.25) @ swap(key @ b / b.shape[1] ** 0.25)) @ value @ c @ d
    return out


@VERSIONS.add("einsum throughout, heads as the last axis but one")
def mha_einsum(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (
        np.einsum("...te,ehd->...thd", x, w.reshape(len(w), num_heads, -1))
        for x, w in ((query, w_q), (key, w_k), (value, w_v))
    )
    weights = softmax(np.einsum("...thd,...shd->...hts", q, k) * q.shape[-1] ** -0.5)
    context = np.einsum("...hts,...shd->...thd", weights, v)
    return np.einsum("...thd,hde->...te", context, w_o.reshape(num_heads, -1, w_o.shape[1]))


@VERSIONS.add("math.exp and loops over everything")
def mha_loops(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    if query.ndim > 2:
        rows = [mha_loops(*x, w_q, w_k, w_v, w_o, num_heads) for x in zip(query, key, value, strict=True)]
        return np.array(rows)
    d, d_v = w_q.shape[1] // num_heads, w_v.shape[1] // num_heads
    q, k, v = query @ w_q, key @ w_k, value @ w_v
    merged = np.zeros((len(q), num_heads * d_v))
    for h in range(num_heads):
        own = slice(h * d, (h + 1) * d)
        for t in range(len(q)):
            scores = [float(q[t, own] @ k[s, own]) / math.sqrt(d) for s in range(len(k))]
            exponentials = [math.exp(x - max(scores)) for x in scores]
            for s, e in enumerate(exponentials):
                merged[t, h * d_v : (h + 1) * d_v] += e / sum(exponentials) * v[s, h * d_v : (h + 1) * d_v]
    return merged @ w_o


@VERSIONS.add("float64 inside, divided after the weighted sum, in float64 at the end")
def mha_late(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    arrays = [x.astype(np.float64) for x in (query @ w_q, key @ w_k, value @ w_v)]
    q, k, v = (split_heads(x, num_heads) for x in arrays)
    scores = q @ swap(k) / math.sqrt(q.shape[-1])
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return (merge_heads(e @ v / e.sum(-1, keepdims=True)) @ w_o).astype(np.float64)


@VERSIONS.add("the scale moved into the matrix of the queries, the heads stacked")
def mha_stacked(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    w_q = w_q / math.sqrt(w_q.shape[1] // num_heads)
    heads = zip(*(np.split(x, num_heads, -1) for x in (query @ w_q, key @ w_k, value @ w_v)), strict=True)
    stacked = np.stack([softmax(q @ swap(k)) @ v for q, k, v in heads], axis=-2)
    return stacked.reshape(*stacked.shape[:-2], -1) @ w_o


@VERSIONS.add("the matrices of a head multiplied first, as W_q W_k^T and W_v W_o")
def mha_circuits(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    wq, wk, wv = (split_heads(w, num_heads) for w in (w_q, w_k, w_v))  # (H, E, D)
    bands = w_o.reshape(num_heads, -1, w_o.shape[-1])
    scores = query[..., None, :, :] @ (wq @ swap(wk)) @ swap(key[..., None, :, :]) / math.sqrt(wq.shape[-1])
    return (softmax(scores) @ value[..., None, :, :] @ (wv @ bands)).sum(axis=-3)
