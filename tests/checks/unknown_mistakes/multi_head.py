"""Wrong answers that no catalogue knows, to the exercises of the assignment on many heads."""

import numpy as np
import torch
from correct_solutions.multi_head import FourLayers, Layers, merge_heads, softmax, split_all, split_heads
from correct_solutions.styles import swap

from unknown_mistakes.labels import unnamed

SPLIT = unnamed(
    heads_in_reverse=lambda x, num_heads: split_heads(x, num_heads)[..., ::-1, :, :],
    words_in_reverse=lambda x, num_heads: split_heads(x, num_heads)[..., ::-1, :],
    components_in_reverse=lambda x, num_heads: split_heads(x[..., ::-1], num_heads),
    column_major_order=lambda x, num_heads: x.reshape(*x.shape[:-2], num_heads, x.shape[-2], -1, order="F"),
    words_shared_out=lambda x, num_heads: np.stack(np.array_split(x, num_heads, axis=-2)[:1] * num_heads, -3),
    first_head_alone=lambda x, num_heads: split_heads(x, num_heads)[..., 0, :, :],
    first_head_for_all=lambda x, num_heads: split_heads(x, num_heads)[..., :1, :, :].repeat(num_heads, -3),
    one_head_always=lambda x, num_heads: x[..., None, :, :],
    two_heads_always=lambda x, num_heads: split_heads(x, 2 if x.shape[-1] % 2 == 0 else 1),
    rolled_instead_of_cut=lambda x, num_heads: np.stack([np.roll(x, -h, -1) for h in range(num_heads)], -3),
    rows_repeated=lambda x, num_heads: split_heads(x[..., :1, :] + 0 * x, num_heads),
    width_one_too_small=lambda x, num_heads: split_heads(x, num_heads)[..., :-1],
    whole_numbers=lambda x, num_heads: split_heads(x, num_heads).astype(int),
    heads_at_the_end_of_words=lambda x, num_heads: x.reshape(*x.shape[:-2], -1, x.shape[-1] // num_heads),
    scaled=lambda x, num_heads: split_heads(x, num_heads) / num_heads**0.5,
) | {
    "stripes in a list": (lambda x, n: [x[..., h::n] for h in range(n)], {"pieces"}),
    "stripes by slicing": (lambda x, n: np.stack([x[..., h::n] for h in range(n)], -3), {"stripes"}),
    "np.split and np.array": (lambda x, n: np.array(np.split(x, n, axis=-1)), {"heads-first"}),
    "transpose of three axes": (
        lambda x, n: np.transpose(x.reshape(*x.shape[:-1], n, -1), (1, 0, 2)),
        {None, "swapped-from-front"},
    ),
}

MERGE = unnamed(
    words_in_reverse=lambda x: merge_heads(x)[..., ::-1, :],
    components_in_reverse=lambda x: merge_heads(x)[..., ::-1],
    components_of_heads_in_reverse=lambda x: merge_heads(x[..., ::-1]),
    largest_of_the_heads=lambda x: x.max(-3),
    product_of_the_heads=lambda x: x.prod(-3),
    column_major_order=lambda x: x.reshape(*x.shape[:-3], x.shape[-2], -1, order="F"),
    a_list=lambda x: [x[..., h, :, :] for h in range(x.shape[-3])],
    last_head_alone=lambda x: x[..., -1, :, :],
    divided_by_heads=lambda x: merge_heads(x) / x.shape[-3],
    nothing=lambda x: x,
    all_in_one_row=lambda x: x.reshape(*x.shape[:-3], -1),
    first_head_repeated=lambda x: np.concatenate([x[..., 0, :, :]] * x.shape[-3], -1),
    whole_numbers=lambda x: merge_heads(x).astype(int),
) | {
    "an axis too many": (lambda x: merge_heads(x)[..., None, :, :], {None, "batch-flattened"}),
    "np.vstack": (lambda x: np.vstack(list(x)), {None, "below-each-other"}),
    "np.hstack": (lambda x: np.hstack(list(x)), {None, "heads-from-front"}),
}


def projected(query, key, value, w_q, w_k, w_v, num_heads):
    return split_all((query @ w_q, key @ w_k, value @ w_v), num_heads)


def with_scores(change):
    """Multi-head attention whose dot products are turned into weights in another way."""

    def implementation(query, key, value, w_q, w_k, w_v, w_o, num_heads):
        q, k, v = projected(query, key, value, w_q, w_k, w_v, num_heads)
        return merge_heads(change(q @ swap(k), q.shape[-1]) @ v) @ w_o

    return implementation


def with_out(change):
    """Multi-head attention whose heads are turned into the result in another way."""

    def implementation(query, key, value, w_q, w_k, w_v, w_o, num_heads):
        q, k, v = projected(query, key, value, w_q, w_k, w_v, num_heads)
        return change(softmax(q @ swap(k) / q.shape[-1] ** 0.5) @ v, w_o)

    return implementation


def with_other(change):
    """Multi-head attention of other arguments."""

    def implementation(query, key, value, w_q, w_k, w_v, w_o, num_heads):
        right = with_out(lambda heads, matrix: merge_heads(heads) @ matrix)
        return right(*change(query, key, value, w_q, w_k, w_v, w_o), num_heads)

    return implementation


def both(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = projected(query, key, value, w_q, w_k, w_v, num_heads)
    return merge_heads(softmax(q @ swap(k)) @ v)


def shared_weights(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = projected(query, key, value, w_q, w_k, w_v, num_heads)
    weights = softmax(q @ swap(k) / q.shape[-1] ** 0.5).mean(-3, keepdims=True)
    return merge_heads(weights @ v) @ w_o


def weights_of_head_0(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = projected(query, key, value, w_q, w_k, w_v, num_heads)
    return merge_heads(softmax(q @ swap(k) / q.shape[-1] ** 0.5)[..., :1, :, :] @ v) @ w_o


def values_not_split(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k = split_all((query @ w_q, key @ w_k), num_heads)
    return (softmax(q @ swap(k) / q.shape[-1] ** 0.5).mean(-3) @ (value @ w_v)) @ w_o


def keys_in_stripes(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, _, v = projected(query, key, value, w_q, w_k, w_v, num_heads)
    k = np.stack([(key @ w_k)[..., h::num_heads] for h in range(num_heads)], -3)
    return merge_heads(softmax(q @ swap(k) / q.shape[-1] ** 0.5) @ v) @ w_o


def loop_that_keeps_the_last(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    q, k, v = projected(query, key, value, w_q, w_k, w_v, num_heads)
    for h in range(num_heads):
        head = softmax(q[..., h, :, :] @ swap(k[..., h, :, :]) / q.shape[-1] ** 0.5) @ v[..., h, :, :]
    return np.concatenate([head] * num_heads, -1) @ w_o


FUNCTION = unnamed(
    softmax_twice=with_scores(lambda s, d: softmax(softmax(s / d**0.5))),
    scaled_twice_by_root=with_scores(lambda s, d: softmax(s / d**0.5 / d**0.5 / d**0.5)),
    fourth_root=with_scores(lambda s, d: softmax(s / d**0.25)),
    constant_scale=with_scores(lambda s, d: softmax(s / 8)),
    width_minus_1=with_scores(lambda s, d: softmax(s / max(d - 1, 1) ** 0.5)),
    hard=with_scores(lambda s, d: (s == s.max(-1, keepdims=True)).astype(s.dtype)),
    uniform=with_scores(lambda s, d: softmax(0 * s)),
    relu=with_scores(lambda s, d: np.maximum(s, 0) / (np.maximum(s, 0).sum(-1, keepdims=True) + 1e-9)),
    diagonal_hidden=with_scores(lambda s, d: softmax(s / d**0.5 - 1e9 * np.eye(*s.shape[-2:]))),
    always_causal=with_scores(lambda s, d: softmax(np.where(np.tri(*s.shape[-2:]) > 0, s / d**0.5, -1e9))),
    weights_rounded=with_scores(lambda s, d: softmax(s / d**0.5).round(2)),
    weights_transposed=with_scores(lambda s, d: swap(softmax(s / d**0.5))),
    no_scale_over_queries=with_scores(lambda s, d: swap(softmax(swap(s)))),
    scaled_by_all_scores=with_scores(lambda s, d: softmax(s / s.size**0.5)),
    heads_added=with_out(lambda heads, w: np.tile(heads.sum(-3), heads.shape[-3]) @ w),
    heads_averaged=with_out(lambda heads, w: np.tile(heads.mean(-3), heads.shape[-3]) @ w),
    bands_of_w_o_averaged=with_out(lambda heads, w: heads.mean(-3) @ w.reshape(heads.shape[-3], -1, w.shape[1]).sum(0)),
    w_o_twice=with_out(lambda heads, w: merge_heads(heads) @ w @ w.T @ w),
    result_rounded=with_out(lambda heads, w: (merge_heads(heads) @ w).round(3)),
    result_in_float16=with_out(lambda heads, w: (merge_heads(heads) @ w).astype(np.float16)),
    result_transposed=with_out(lambda heads, w: swap(merge_heads(heads) @ w)),
    first_head_alone=with_out(lambda heads, w: heads[..., 0, :, :] @ w[: heads.shape[-1]]),
    relu_at_the_end=with_out(lambda heads, w: np.maximum(merge_heads(heads) @ w, 0)),
    w_o_before_the_query=with_other(lambda q, k, v, a, b, c, d: (q, k, v, b, c, a, d)),
    values_by_w_q=with_other(lambda q, k, v, a, b, c, d: (q, k, v, a, b, a, d)),
    key_and_value_exchanged=with_other(lambda q, k, v, a, b, c, d: (q, v, k, a, b, c, d)),
    w_q_transposed_alone=with_other(lambda q, k, v, a, b, c, d: (q, k, v, a.T, b, c, d)),
    no_scale_and_no_w_o=both,
    weights_averaged_over_heads=shared_weights,
    weights_of_head_0_for_all=weights_of_head_0,
    values_not_split=values_not_split,
    keys_in_stripes=keys_in_stripes,
    loop_that_keeps_the_last=loop_that_keeps_the_last,
    one_argument_too_few=lambda query, key, value, w_q, w_k, w_v, num_heads: query,
) | {
    "query @ key.T": (
        lambda q, k, v, a, b, c, d, h: softmax((q @ a) @ (k @ b).T / (a.shape[1] / h) ** 0.5) @ (v @ c) @ d,
        {"one-head-scaled-by-its-part"},
    ),
    "w_k and w_v exchanged": (
        with_other(lambda q, k, v, a, b, c, d: (q, k, v, a, c, b, d)),
        {"w-k-and-w-v-exchanged"},
    ),
    "keys made of values": (with_other(lambda q, k, v, a, b, c, d: (q, v, v, a, b, c, d)), {"keys-from-value"}),
    "values made of the query": (with_other(lambda q, k, v, a, b, c, d: (q, k, q, a, b, c, d)), {None}),
    "w_v and w_o exchanged": (with_other(lambda q, k, v, a, b, c, d: (q, k, v, a, b, d, c)), {None}),
    "scaled by the root twice": (with_scores(lambda s, d: softmax(s / d**0.5 / d**0.5)), {"scaled-by-width"}),
}


def module(change):
    """A module whose weights and heads are turned into its results by another function."""

    class Module(Layers):
        def forward(self, query, key=None, value=None, *, need_weights=False):
            q, k, v = split_all(self.projected(query, key, value), self.num_heads)
            out, weights = change(self, q, k, v)
            return (out, weights) if need_weights else out

    return Module


def weights_of(q, k):
    return softmax(q @ swap(k) / q.shape[-1] ** 0.5)


def usual(change):
    """A module that is right, but for its two results."""
    return module(lambda m, q, k, v: change(m, m.out_proj(merge_heads(weights_of(q, k) @ v)), weights_of(q, k)))


def weighted(change):
    """A module whose scores become weights by another function."""

    def results(m, q, k, v):
        weights = change(q @ swap(k), q.shape[-1])
        return m.out_proj(merge_heads(weights @ v)), weights

    return module(results)


class Packed(Layers):
    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        self.in_proj_weight = np.zeros((3 * embed_dim, embed_dim))


class OtherNames(Layers):
    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        self.o_proj = self.out_proj
        del self.out_proj


class TorchMean(FourLayers):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        q, k, v = self.heads(query, key, value)
        weights = torch.softmax(q @ k.mT / self.head_dim**0.5, -1)
        out = self.out_proj((weights @ v).transpose(1, 2).reshape(query.shape))
        return (out, weights.mean(1)) if need_weights else out


class TorchNoSwapBack(FourLayers):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        q, k, v = self.heads(query, key, value)
        weights = torch.softmax(q @ k.mT / self.head_dim**0.5, -1)
        out = self.out_proj((weights @ v).reshape(query.shape))
        return (out, weights) if need_weights else out


class TorchScaledByAll(FourLayers):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        q, k, v = self.heads(query, key, value)
        weights = torch.softmax(q @ k.mT / query.size(-1) ** 0.5, -1)
        out = self.out_proj((weights @ v).transpose(1, 2).reshape(query.shape))
        return (out, weights) if need_weights else out


class TorchQueryAlone(FourLayers):
    def forward(self, query, key=None, value=None, *, need_weights=False):
        q, k, v = self.heads(query, query, query)
        weights = torch.softmax(q @ k.mT / self.head_dim**0.5, -1)
        out = self.out_proj((weights @ v).transpose(1, 2).reshape(query.shape))
        return (out, weights) if need_weights else out


MODULE = unnamed(
    weights_rounded=usual(lambda m, out, weights: (out, weights.round(2))),
    weights_of_the_last_head=usual(lambda m, out, weights: (out, weights[:, -1])),
    largest_weights=usual(lambda m, out, weights: (out, weights.max(1))),
    heads_of_weights_reversed=usual(lambda m, out, weights: (out, weights[:, ::-1])),
    weights_averaged_with_an_axis=usual(lambda m, out, weights: (out, weights.mean(1, keepdims=True))),
    first_sentence_alone=usual(lambda m, out, weights: (out[:1], weights[:1])),
    mean_over_words=usual(lambda m, out, weights: (out.mean(1, keepdims=True), weights)),
    projected_twice=usual(lambda m, out, weights: (m.out_proj(out), weights)),
    three_results=usual(lambda m, out, weights: (out, weights, m)),
    fourth_root=weighted(lambda s, d: softmax(s / d**0.25)),
    constant_scale=weighted(lambda s, d: softmax(s / 8)),
    softmax_twice=weighted(lambda s, d: softmax(softmax(s / d**0.5))),
    always_causal=weighted(lambda s, d: softmax(np.where(np.tri(*s.shape[-2:]) > 0, s / d**0.5, -1e9))),
    no_scale_over_queries=weighted(lambda s, d: swap(softmax(swap(s)))),
    packed_projections=Packed,
    other_names=OtherNames,
    a_function=lambda query: query,
) | {
    "scaled by the root twice": (weighted(lambda s, d: softmax(s / d**0.5 / d**0.5)), {"scaled-by-width"}),
    "softmax over the batch": (
        weighted(lambda s, d: np.exp(s / d**0.5) / np.exp(s / d**0.5).sum(0)),
        {"softmax-over-sentences"},
    ),
    "averaged in torch": (TorchMean, {"averaged-weights"}),
    "not swapped back, in torch": (TorchNoSwapBack, {"merged-without-swap"}),
    "scaled by embed_dim, in torch": (TorchScaledByAll, {"scaled-by-embed-dim"}),
    "the query alone, in torch": (TorchQueryAlone, {"query-alone"}),
}

UNKNOWN_MISTAKES = {
    "split_heads": SPLIT,
    "merge_heads": MERGE,
    "multi_head_attention": FUNCTION,
    "MultiHeadAttention": MODULE,
}
