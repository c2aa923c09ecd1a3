"""Wrong answers that once passed: nothing in the inputs showed what is wrong with them."""

import numpy as np
import torch
from correct_solutions.styles import swap

import attnlib.torch
from unknown_mistakes.labels import unnamed


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def norm(x):
    return np.sqrt((x**2).sum(-1, keepdims=True))


# Copies ------------------------------------------------------------------------------------------------------------


def first_of_each(x):
    """Return where each different row of a matrix (S, D) stands first, in order."""
    return np.sort(np.unique(x, axis=0, return_index=True)[1])


def keys_once(query, key, value, mask=None):
    if key.ndim == 2:
        first = first_of_each(key)
        kept = np.isin(np.arange(len(key)), first)
        mask = kept if mask is None else mask & kept
    scores = query @ swap(key) / query.shape[-1] ** 0.5
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    weights = softmax(np.where(np.isneginf(scores).all(-1, keepdims=True), -1e300, scores))
    weights = weights if mask is None else weights * mask
    return weights @ value, weights


def values_once(query, key, value, mask=None):
    context, weights = keys_once(query, key + 1e-13 * np.arange(key.shape[-2])[:, None], value, mask)
    if value.ndim == 2:
        first = first_of_each(value)
        context = weights[..., first] @ value[first]
    return context, weights


def equal_scores_once(x, axis=-1):
    x = np.moveaxis(x, axis, -1)
    e = np.exp(x - x.max(-1, keepdims=True))
    rows = [e_row / np.unique(e_row).sum() for e_row in e.reshape(-1, x.shape[-1])]
    return np.moveaxis(np.reshape(rows, x.shape), -1, axis)


# Caches ------------------------------------------------------------------------------------------------------------


class EightTokens:
    """A window that forgets all but the last eight tokens."""

    def __init__(self):
        self.keys, self.values, self.length = [], [], 0

    def append(self, key, value):
        self.keys.append(key)
        self.values.append(value)
        self.length += key.shape[-2]
        return tuple(np.concatenate(x, axis=-2)[..., -self.room :, :] for x in (self.keys, self.values))

    room = 8


class SixtyFourTokens(EightTokens):
    room = 64


# One step that goes wrong -------------------------------------------------------------------------------------------


def softmax_in_the_dtype_of_the_scores(x, axis=-1):
    weights = np.zeros_like(x)
    weights[...] = softmax(x, axis)
    return weights


def gaussian_through_exp(query, key, bandwidth=1.0):
    squares = ((query[..., :, None, :] - key[..., None, :, :]) ** 2).sum(-1)
    return np.log(np.exp(-squares / (2 * bandwidth**2)))


def cosine_with(lengths):
    """A cosine whose lengths are kept away from 0 in some way."""
    return lambda query, key: query @ swap(key) / lengths(norm(query), swap(norm(key)))


def nan_mended_at_the_end(query, key, value, mask):
    scores = query @ key.mT / query.size(-1) ** 0.5
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    return torch.nan_to_num(weights @ value), torch.nan_to_num(weights)


def nan_left_out_at_the_end(query, key, value, mask):
    scores = query @ key.mT / query.size(-1) ** 0.5
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    some = mask.any(-1, keepdim=True)
    return torch.where(some, weights @ value, 0), torch.where(some, weights, 0)


def bahdanau_from_a_fresh_zero(y, state, memory, p):
    scores = torch.tanh((state @ p["w_query"]).unsqueeze(-2) + memory @ p["w_key"]) @ p["v"]
    weights = scores.softmax(-1)
    context = torch.zeros(memory[..., 0, :].shape)
    for j in range(memory.shape[-2]):
        context += weights[..., j, None] * memory[..., j, :]
    x = torch.cat([y, context], dim=-1)
    return torch.tanh(x @ p["w_ih"].mT + p["b_ih"] + state @ p["w_hh"].mT + p["b_hh"]), context, weights


class WithDropout(attnlib.torch.TransformerBlock):
    """A right block with dropout, of which the task says that there is none."""

    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__(embed_dim, num_heads, ff_dim)
        self.dropout = torch.nn.Dropout(0.1)

    def forward(self, x):
        return x + self.dropout(super().forward(x) - x)


UNKNOWN_MISTAKES = {
    "attention": unnamed(equal_keys_count_once=keys_once, equal_values_count_once=values_once),
    "self_attention": unnamed(
        equal_words_count_once=lambda x: keys_once(x, x, x), equal_values_count_once=lambda x: values_once(x, x, x)
    ),
    "masked_attention": unnamed(equal_keys_count_once=keys_once, equal_values_count_once=values_once),
    "scaled_dot_product_attention": unnamed(
        equal_keys_count_once=lambda query, key, value, *, scale=None: keys_once(
            query * (1 if scale is None else scale * query.shape[-1] ** 0.5), key, value
        )[0]
    ),
    "softmax": unnamed(
        equal_scores_count_once=equal_scores_once, in_the_dtype_of_the_scores=softmax_in_the_dtype_of_the_scores
    ),
    "KVCache": unnamed(room_for_eight_tokens=EightTokens, room_for_64_tokens=SixtyFourTokens),
    "gaussian": unnamed(through_the_exponential=gaussian_through_exp),
    "cosine": unnamed(
        lengths_of_at_least_a_hundredth=cosine_with(lambda q, k: np.maximum(q, 0.01) * np.maximum(k, 0.01)),
        product_of_lengths_plus_a_millionth=cosine_with(lambda q, k: q * k + 1e-6),
        lengths_plus_a_millionth=cosine_with(lambda q, k: (q + 1e-6) * (k + 1e-6)),
    ),
}
IN_TORCH = {
    "masked_attention": {
        "nan mended at the end": (nan_mended_at_the_end, {"nan-gradient"}),
        "nan left out at the end": (nan_left_out_at_the_end, {"nan-gradient"}),
    },
    "bahdanau_step": {"a context that starts as a fresh zero": (bahdanau_from_a_fresh_zero, {"less-exact"})},
    "TransformerBlock": unnamed(dropout_in_training=WithDropout),
}
