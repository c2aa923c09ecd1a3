"""Right answers to the tasks in which a faulty function is given: that function mended, or the same in another way."""

import math

import numpy as np

import attnlib
from correct_solutions.styles import style, swap

# gaussian_without_differences -------------------------------------------------------------------------------------


@style("gaussian_without_differences", "the given code, with the dot product doubled")
def gaussian_mended(query, key, bandwidth=1.0):
    query, key = query / bandwidth, key / bandwidth
    length_of_query = np.sum(query * query, axis=-1)[..., :, None]
    length_of_key = np.sum(key * key, axis=-1)[..., None, :]
    apart = length_of_query + length_of_key - 2 * attnlib.dot(query, key)
    return -apart / 2


@style("gaussian_without_differences", "one query after the other, as differences")
def gaussian_row_by_row(query, key, bandwidth=1.0):
    rows = [((query[..., t, None, :] - key) ** 2).sum(-1) for t in range(query.shape[-2])]
    return -np.stack(rows, axis=-2) / (2 * bandwidth**2)


@style("gaussian_without_differences", "one matrix product of longer vectors")
def gaussian_in_one_product(query, key, bandwidth=1.0):
    of_query, of_key = ((x * x).sum(-1, keepdims=True) for x in (query, key))
    left = np.concatenate([query, -of_query / 2, np.ones_like(of_query)], axis=-1)
    right = np.concatenate([key, np.ones_like(of_key), -of_key / 2], axis=-1)
    return left @ swap(right) / bandwidth**2


@style("gaussian_without_differences", "einsum, negative distances cut off at 0")
def gaussian_by_einsum(query, key, bandwidth=1.0):
    squares = np.einsum("...td,...td->...t", query, query)[..., None]
    squares = squares + np.einsum("...sd,...sd->...s", key, key)[..., None, :]
    squares = np.maximum(squares - 2 * np.einsum("...td,...sd->...ts", query, key), 0)
    return -0.5 * squares / bandwidth**2


@style("gaussian_without_differences", "norms, the half multiplied out")
def gaussian_by_norms(query, key, bandwidth=1.0):
    cross = np.matmul(query, np.moveaxis(key, -1, -2)) / bandwidth**2
    of_query = np.linalg.norm(query / bandwidth, axis=-1, keepdims=True) ** 2 / 2
    of_key = np.linalg.norm(key / bandwidth, axis=-1, keepdims=True) ** 2 / 2
    return cross - of_query - swap(of_key)


# attention_with_counts ----------------------------------------------------------------------------------------------


@style("attention_with_counts", "the given code, with the width of the keys before they are transposed")
def mended_attention(query, key, value, counts, *, scale=None):
    turned = np.swapaxes(key, -1, -2)
    factor = 1 / np.sqrt(key.shape[-1]) if scale is None else scale
    alpha = attnlib.softmax(query @ turned * factor + np.log(counts))
    return alpha @ value


@style("attention_with_counts", "the given code, with the other axis of the transposed keys")
def attention_by_other_axis(query, key, value, counts, *, scale=None):
    turned = np.swapaxes(key, -1, -2)
    factor = 1 / np.sqrt(turned.shape[-2]) if scale is None else scale
    return attnlib.softmax(query @ turned * factor + np.log(counts)) @ value


@style("attention_with_counts", "the counts multiply the exponentials")
def attention_counts_multiply(query, key, value, counts, *, scale=None):
    scores = query @ swap(key) * (query.shape[-1] ** -0.5 if scale is None else scale)
    e = np.exp(scores - scores.max(-1, keepdims=True)) * counts
    return (e @ value) / e.sum(-1, keepdims=True)


@style("attention_with_counts", "einsum, the query divided first")
def attention_counts_einsum(query, key, value, counts, *, scale=None):
    query = query / math.sqrt(query.shape[-1]) if scale is None else query * scale
    scores = np.einsum("...td,...sd->...ts", query, key) + np.log(counts)
    return np.einsum("...ts,...sv->...tv", attnlib.softmax(scores), value)


@style("attention_with_counts", "one query after the other")
def attention_counts_in_rows(query, key, value, counts, *, scale=None):
    factor = 1 / np.sqrt(query.shape[-1]) if scale is None else scale
    rows = []
    for t in range(query.shape[-2]):
        scores = np.sum(query[..., t : t + 1, :] * key, axis=-1) * factor
        weights = attnlib.softmax(scores + np.log(counts))
        rows.append(np.sum(weights[..., None] * value, axis=-2))
    return np.stack(rows, axis=-2)


# weights_and_output -------------------------------------------------------------------------------------------------


@style("weights_and_output", "the published code, with the root of the width and the averages")
def published_mended(query, key, value, *, scale=None):
    scores = query @ swap(key) * (1 / np.sqrt(key.shape[-1]) if scale is None else scale)
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return weights, weights @ value


@style("weights_and_output", "attnlib's softmax, the query divided first")
def weights_of_scaled_query(query, key, value, *, scale=None):
    query = query / math.sqrt(query.shape[-1]) if scale is None else query * scale
    weights = attnlib.softmax(np.einsum("...td,...sd->...ts", query, key))
    return weights, np.einsum("...ts,...sv->...tv", weights, value)


@style("weights_and_output", "a list of two, the averages divided last")
def averages_divided_last(query, key, value, scale=None):
    scores = query @ swap(key) * (query.shape[-1] ** -0.5 if scale is None else scale)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    total = e.sum(-1, keepdims=True)
    return [e / total, (e @ value) / total]


@style("weights_and_output", "one query after the other")
def weights_row_by_row(query, key, value, *, scale=None):
    factor = 1 / np.sqrt(query.shape[-1]) if scale is None else scale
    rows = [attnlib.softmax(np.sum(query[..., t : t + 1, :] * key, axis=-1) * factor) for t in range(query.shape[-2])]
    weights = np.stack(rows, axis=-2)
    return weights, np.stack([np.sum(row[..., None] * value, axis=-2) for row in rows], axis=-2)


# head_contributions -------------------------------------------------------------------------------------------------


def attend(q, k, v):
    return attnlib.softmax(q @ swap(k) / np.sqrt(q.shape[-1])) @ v


@style("head_contributions", "the given code, with the columns cut before the swap")
def mended(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        return w.reshape(w.shape[0], num_heads, -1).swapaxes(0, 1)

    q, k, v = query[..., None, :, :] @ cut(w_q), key[..., None, :, :] @ cut(w_k), value[..., None, :, :] @ cut(w_v)
    bands = w_o.reshape(num_heads, -1, w_o.shape[-1])
    return attend(q, k, v) @ bands


@style("head_contributions", "the given code, with np.split")
def contributions_by_split(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def cut(w):
        return np.stack(np.split(w, num_heads, axis=1))

    q, k, v = query[..., None, :, :] @ cut(w_q), key[..., None, :, :] @ cut(w_k), value[..., None, :, :] @ cut(w_v)
    return attend(q, k, v) @ np.stack(np.split(w_o, num_heads))


@style("head_contributions", "a loop over the heads, with slices")
def contributions_in_a_loop(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    d, d_v, parts = w_q.shape[1] // num_heads, w_v.shape[1] // num_heads, []
    for h in range(num_heads):
        here, there = slice(h * d, (h + 1) * d), slice(h * d_v, (h + 1) * d_v)
        found = attend(query @ w_q[:, here], key @ w_k[:, here], value @ w_v[:, there])
        parts.append(found @ w_o[there])
    return np.stack(parts, axis=-3)


@style("head_contributions", "the vectors split after all")
def contributions_of_split_vectors(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    def split(x):
        return x.reshape(*x.shape[:-1], num_heads, -1).swapaxes(-2, -3)

    return attend(split(query @ w_q), split(key @ w_k), split(value @ w_v)) @ w_o.reshape(num_heads, -1, w_o.shape[-1])


@style("head_contributions", "einsum")
def contributions_by_einsum(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = (
        np.einsum("...te,ehd->...htd", x, w.reshape(len(w), num_heads, -1))
        for x, w in ((query, w_q), (key, w_k), (value, w_v))
    )
    scores = np.einsum("...htd,...hsd->...hts", q, k) / q.shape[-1] ** 0.5
    bands = w_o.reshape(num_heads, v.shape[-1], -1)
    return np.einsum("...hts,...hsd,hdo->...hto", attnlib.softmax(scores), v, bands)


# attention_with_bias ------------------------------------------------------------------------------------------------


@style("attention_with_bias", "the given code, with the dimensions in front")
def attend_mended(q, k, v, mask, bias=0.0):
    similarity = np.einsum("...id,...jd->...ij", q, k) / q.shape[-1] ** 0.5 + bias
    while mask.ndim < similarity.ndim:
        mask = np.expand_dims(mask, 0)
    share = attnlib.softmax(np.where(mask, similarity, -np.inf))
    return share @ v, share


@style("attention_with_bias", "the given code, without the loop")
def attend_without_loop(query, key, value, mask, bias):
    similarity = np.einsum("...id,...jd->...ij", query, key) / query.shape[-1] ** 0.5 + bias
    share = attnlib.softmax(np.where(mask, similarity, -np.inf))
    return share @ value, share


@style("attention_with_bias", "minus infinity added to the bias")
def attend_by_adding(query, key, value, mask, bias):
    bias = bias + np.where(mask, 0.0, -np.inf).astype(query.dtype)
    weights = attnlib.softmax(query @ swap(key) / np.sqrt(query.shape[-1]).astype(query.dtype) + bias)
    return weights @ value, weights


@style("attention_with_bias", "the mask broadcast to the scores, which are written into")
def attend_in_place(query, key, value, mask, bias):
    scores = query @ swap(key) / query.shape[-1] ** 0.5 + bias
    scores[~np.broadcast_to(mask, scores.shape)] = -np.inf
    weights = attnlib.softmax(scores)
    return np.einsum("...ts,...sv->...tv", weights, value), weights


@style("attention_with_bias", "a softmax of its own, by multiplying with the mask")
def attend_by_multiplying(query, key, value, mask, bias):
    scores = query @ swap(key) / query.shape[-1] ** 0.5 + bias
    highest = np.where(mask, scores, -np.inf).max(-1, keepdims=True)
    e = np.exp(np.minimum(scores - np.where(np.isfinite(highest), highest, 0), 0)) * mask
    total = e.sum(-1, keepdims=True)
    weights = e / np.where(total == 0, 1, total)
    return weights @ value, weights


# attention_in_blocks ------------------------------------------------------------------------------------------------


@style("attention_in_blocks", "the given code, with a copy of the old maximum")
def blocks_mended(query, key, value, scale=None, size=2):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top = np.full((*query.shape[:-1], 1), -np.inf)
    below = np.zeros((*query.shape[:-1], 1))
    above = np.zeros((*query.shape[:-1], value.shape[-1]))
    for start in range(0, key.shape[-2], size):
        here = slice(start, start + size)
        before = top.copy()
        s = scale * (query @ np.swapaxes(key[..., here, :], -1, -2))
        np.maximum(top, s.max(axis=-1, keepdims=True), out=top)
        fade, e = np.exp(before - top), np.exp(s - top)
        below = fade * below + e.sum(axis=-1, keepdims=True)
        above = fade * above + e @ value[..., here, :]
    return above / below


@style("attention_in_blocks", "the given code, with a new maximum in each block, 64 keys at a time")
def blocks_of_64(query, key, value, scale=None, size=64):
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    top, below, above = np.full((*query.shape[:-1], 1), -np.inf), 0.0, 0.0
    for start in range(0, key.shape[-2], size):
        here = slice(start, start + size)
        s = scale * (query @ swap(key[..., here, :]))
        new = np.maximum(top, s.max(axis=-1, keepdims=True))
        fade, e = np.exp(top - new), np.exp(s - new)
        below, above, top = fade * below + e.sum(-1, keepdims=True), fade * above + e @ value[..., here, :], new
    return above / below


@style("attention_in_blocks", "one key at a time")
def key_by_key(query, key, value, scale=None):
    query = query * (query.shape[-1] ** -0.5 if scale is None else scale)
    m, n, total = -np.inf, 0.0, 0.0
    for j in range(key.shape[-2]):
        s = (query * key[..., j : j + 1, :]).sum(-1, keepdims=True)
        highest = np.maximum(m, s)
        n = n * np.exp(m - highest) + np.exp(s - highest)
        total = total * np.exp(m - highest) + np.exp(s - highest) * value[..., j : j + 1, :]
        m = highest
    return total / n


@style("attention_in_blocks", "a last block that is filled up and hidden")
def padded_blocks(query, key, value, scale=None, size=5):
    count, missing = key.shape[-2], -key.shape[-2] % size
    room = [(0, 0)] * (key.ndim - 2) + [(0, missing), (0, 0)]
    key, value = np.pad(key, room), np.pad(value, room)
    state = attention_of_nothing(query, value)
    for start in range(0, count, size):
        scores = query @ swap(key[..., start : start + size, :]) * (query.shape[-1] ** -0.5 if scale is None else scale)
        scores = np.where(np.arange(start, start + size) < count, scores, -np.inf)
        state = one_more_block(scores, value[..., start : start + size, :], *state)
    return state[0] / state[1][..., None]


@style("attention_in_blocks", "my own online_softmax, block after block")
def by_online_softmax(query, key, value, scale=None, size=7):
    state = attention_of_nothing(query, value)
    for start in range(0, key.shape[-2], size):
        k, v = key[..., start : start + size, :], value[..., start : start + size, :]
        state = one_more_block(query @ swap(k) * (query.shape[-1] ** -0.5 if scale is None else scale), v, *state)
    total, norm, _ = state
    return total / norm[..., None]


def attention_of_nothing(query, value):
    rows = query.shape[:-1]
    return np.zeros((*rows, value.shape[-1])), np.zeros(rows), np.full(rows, -np.inf)


def one_more_block(scores, value, total, norm, maximum):
    highest = np.maximum(maximum, scores.max(-1))
    shrink, e = np.exp(maximum - highest), np.exp(scores - highest[..., None])
    return shrink[..., None] * total + e @ value, shrink * norm + e.sum(-1), highest
