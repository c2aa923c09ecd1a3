"""Correct versions of ``scaled_dot_product_attention``, in the styles that students write."""

import math

import numpy as np

from attnlib.checks.mutation.correct_versions.steps import factor, softmax, swap
from attnlib.checks.mutation.target import CorrectVersions

VERSIONS = CorrectVersions()


@VERSIONS.add("three lines")
def attention(query, key, value, *, scale=None):
    scores = query @ swap(key) * factor(query, scale)
    return softmax(scores) @ value


@VERSIONS.add("einsum and log-sum-exp")
def attention_einsum(query, key, value, scale=None):
    scores = np.einsum("...td,...sd->...ts", query, key) * factor(query, scale)
    m = scores.max(-1, keepdims=True)
    weights = np.exp(scores - m - np.log(np.exp(scores - m).sum(-1, keepdims=True)))
    return np.einsum("...ts,...sv->...tv", weights, value)


@VERSIONS.add("Python loops")
def attention_loops(query, key, value, *, scale=None):
    lead, t = query.shape[:-2], query.shape[-2]
    output = np.zeros((*lead, t, value.shape[-1]))
    for place in np.ndindex(lead):
        for i, q in enumerate(query[place]):
            scores = [factor(query, scale) * float(q @ k) for k in key[place]]
            exponentials = [math.exp(s - max(scores)) for s in scores]
            for e, v in zip(exponentials, value[place], strict=True):
                output[(*place, i)] += e / sum(exponentials) * v
    return output


@VERSIONS.add("broadcasting")
def attention_broadcast(query, key, value, *, scale=None):
    products = (query[..., :, None, :] * key[..., None, :, :]).sum(-1)
    weights = softmax(products * factor(query, scale))
    return (weights[..., None] * value[..., None, :, :]).sum(-2)


@VERSIONS.add("the query scaled first, in float64 at the end")
def attention_scaled_first(query, key, value, *, scale=None):
    return (softmax((query * factor(query, scale)) @ swap(key)) @ value).astype(np.float64)


@VERSIONS.add("divided after the weighted sum of exponentials")
def attention_late(query, key, value, *, scale=None):
    scores = query @ np.moveaxis(key, -1, -2) * factor(query, scale)
    e = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    return (e @ value) / e.sum(-1, keepdims=True)


@VERSIONS.add("float64 inside, cast back, eps 1e-12")
def attention_cast(query, key, value, *, scale=None):
    q, k, v = (x.astype(np.float64) for x in (query, key, value))
    scores = q @ swap(k) * factor(query, scale)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return (e / (e.sum(-1, keepdims=True) + 1e-12) @ v).astype(query.dtype)


@VERSIONS.add("one key after another, with a running maximum")
def attention_online(query, key, value, *, scale=None):
    top = np.full((*query.shape[:-1], 1), -np.inf)
    total, output = np.zeros_like(top), np.zeros((*query.shape[:-1], value.shape[-1]))
    for j in range(key.shape[-2]):
        score = (query * key[..., j : j + 1, :]).sum(-1, keepdims=True) * factor(query, scale)
        higher = np.maximum(top, score)
        shrink, e = np.exp(top - higher), np.exp(score - higher)
        total, output, top = total * shrink + e, output * shrink + e * value[..., j : j + 1, :], higher
    return output / total


@VERSIONS.add("shifted only where the exponentials would overflow")
def attention_when_needed(query, key, value, *, scale=None):
    scores = query @ swap(key) * factor(query, scale)
    shift = np.where(np.abs(scores).max() > 80, scores.max(-1, keepdims=True), 0)
    e = np.exp(scores - shift)
    return e / e.sum(-1, keepdims=True) @ value
