"""Wrong answers that no catalogue knows, to the exercises of the assignment on queries, keys and values."""

import numpy as np
from correct_solutions.queries_keys_values import softmax
from correct_solutions.styles import swap

from unknown_mistakes.labels import unnamed


def root(query, scale):
    return query.shape[-1] ** -0.5 if scale is None else scale


def scores(query, key, scale=None):
    return query @ swap(key) * root(query, scale)


def norm(x):
    return np.linalg.norm(x, axis=-1, keepdims=True)


def shifted(x, shift):
    e = np.exp(x - shift)
    return e / e.sum(-1, keepdims=True)


def scores_that(change):
    """Scaled dot products that are changed at the end."""
    return lambda query, key, *, scale=None: change(scores(query, key, scale))


def divided_by(divisor):
    """Dot products divided by something else than the root of the width."""
    return lambda q, k, *, scale=None: q @ swap(k) / divisor(q, k) if scale is None else q @ swap(k) * scale


SCALED_DOT = unnamed(
    rounded_to_2_decimals=scores_that(lambda s: s.round(2)),
    in_float16=scores_that(lambda s: s.astype(np.float16)),
    a_thousandth_added=scores_that(lambda s: s + 1e-3),
    size_without_sign=scores_that(np.abs),
    negative_scores_dropped=scores_that(lambda s: np.maximum(s, 0)),
    squared=scores_that(np.square),
    lower_triangle=scores_that(np.tril),
    rows_centred=scores_that(lambda s: s - s.max(-1, keepdims=True)),
    transposed_in_the_end_and_back=scores_that(lambda s: swap(s)[..., ::-1]),
    whole_numbers=scores_that(lambda s: s.astype(int)),
    squeezed=scores_that(np.squeeze),
    log_softmax=scores_that(lambda s: np.log(softmax(s))),
    capped_by_tanh=scores_that(np.tanh),
    width_minus_1=divided_by(lambda q, k: max(q.shape[-1] - 1, 1) ** 0.5),
    half_of_the_width=divided_by(lambda q, k: q.shape[-1] / 2),
    cube_root=divided_by(lambda q, k: q.shape[-1] ** (1 / 3)),
    logarithm_of_the_width=divided_by(lambda q, k: np.log(q.shape[-1])),
    root_of_the_size=divided_by(lambda q, k: k.size**0.5),
    root_of_both_widths_added=divided_by(lambda q, k: (2 * q.shape[-1]) ** 0.5),
    always_the_root_of_3=divided_by(lambda q, k: 3**0.5),
    standard_deviation_of_the_scores=divided_by(lambda q, k: (q @ swap(k)).std() + 1e-9),
    length_of_the_query=divided_by(lambda q, k: norm(q)),
    sum_of_keys_and_width=divided_by(lambda q, k: (q.shape[-1] + k.shape[-2]) ** 0.5),
    distances=lambda q, k, *, scale=None: (
        -((q[..., :, None, :] - k[..., None, :, :]) ** 2).sum(-1) / 2 * root(q, scale)
    ),
    last_component_missing=lambda q, k, *, scale=None: q[..., :-1] @ swap(k[..., :-1]) * root(q, scale),
    first_query_alone=lambda q, k, *, scale=None: scores(q[..., :1, :], k, scale),
    keys_reversed=lambda q, k, *, scale=None: scores(q, k[..., ::-1, :], scale),
    the_scale_as_an_exponent=lambda q, k, *, scale=None: q @ swap(k) / q.shape[-1] ** (0.5 if scale is None else scale),
    the_scale_squared=lambda q, k, *, scale=None: scores(q, k) if scale is None else q @ swap(k) * scale**2,
    the_first_batch_for_all=lambda q, k, *, scale=None: scores(q, k if k.ndim == 2 else k[:1], scale),
    columns_of_length_1=lambda q, k, *, scale=None: scores(q, k / np.linalg.norm(k, axis=-2, keepdims=True), scale),
) | {
    "plain dot product, whatever the scale": (lambda q, k, *, scale=None: q @ swap(k), {"no-scale"}),
    "divided by D, whatever the scale": (lambda q, k, *, scale=None: q @ swap(k) / q.shape[-1], {"divided-by-width"}),
    "both scaled by the whole factor": (
        lambda q, k, *, scale=None: (q * root(q, scale)) @ swap(k * root(q, scale)),
        {"divided-by-width"},
    ),
    "len of the query": (divided_by(lambda q, k: len(q) ** 0.5), {"scaled-by-queries"}),
    "len of the key": (divided_by(lambda q, k: len(k) ** 0.5), {"scaled-by-keys"}),
    "a scale only if it is positive": (
        lambda q, k, *, scale=None: scores(q, k, scale if scale is not None and scale > 0 else None),
        {"zero-scale"},
    ),
    "einsum with its result turned": (
        lambda q, k, *, scale=None: np.einsum("...td,...sd->...st", q, k) * root(q, scale),
        {"transposed"},
    ),
    "einsum for matrices": (
        lambda q, k, *, scale=None: np.einsum("td,sd->ts", q, k) * root(q, scale),
        {None},
    ),
    "np.inner": (lambda q, k, *, scale=None: np.inner(q, k) * root(q, scale), {"outer-batches"}),
    "no scale, and .T": (lambda q, k, *, scale=None: q @ k.T, {"no-scale"}),
}

# scaled_dot_product_attention ------------------------------------------------------------------------------------


def weights_that(change):
    """Attention whose scores go through another function than the softmax."""
    return lambda q, k, v, *, scale=None: change(scores(q, k, scale)) @ v


def attention_with(change):
    """Attention whose inputs are changed before."""

    def attention(query, key, value, *, scale=None):
        q, k, v = change(query, key, value)
        return softmax(scores(q, k, scale)) @ v

    return attention


def output_that(change):
    """Attention whose right output is changed at the end."""
    return lambda q, k, v, *, scale=None: change(softmax(scores(q, k, scale)) @ v)


def masking(change):
    """Attention with masks; `change` says what the scores become, from scores and a table of what is allowed."""

    def attention(query, key, value, attn_mask=None, is_causal=False, *, scale=None):
        s = scores(query, key, scale)
        if is_causal:
            s = change(s, np.tri(*s.shape[-2:], dtype=bool))
        if attn_mask is not None:
            s = change(s, attn_mask) if attn_mask.dtype == bool else s + attn_mask
        return softmax(s) @ value

    return attention


def causal_that(allowed):
    """Causal attention, where `allowed` says which places are seen, by query i and key j."""

    def attention(query, key, value, *, is_causal=False, scale=None):
        s = scores(query, key, scale)
        i, j = np.indices(s.shape[-2:])
        return softmax(np.where(allowed(i, j, s), s, -np.inf) if is_causal else s) @ value

    return attention


def causal_weights_zeroed(query, key, value, *, is_causal=False, scale=None):
    weights = softmax(scores(query, key, scale))
    return (np.tril(weights) if is_causal else weights) @ value


def masked_values(query, key, value, attn_mask=None, *, scale=None):
    weights = softmax(scores(query, key, scale))
    if attn_mask is not None:
        weights = weights * attn_mask
    return weights @ value


def masked_before_the_dot(query, key, value, attn_mask=None, *, scale=None):
    if attn_mask is not None:
        key = np.where(attn_mask.any(-2)[..., None], key, 0)
    return softmax(scores(query, key, scale)) @ value


def weights_rounded(query, key, value, *, scale=None, return_weights=False):
    weights = softmax(scores(query, key, scale))
    return (weights @ value, weights.round(1)) if return_weights else weights @ value


def weights_transposed_at_the_end(query, key, value, *, scale=None, return_weights=False):
    weights = softmax(scores(query, key, scale))
    return (weights @ value, swap(weights)) if return_weights else weights @ value


def offset_doubled(query, key, value, *, is_causal=False, q_offset=0, scale=None):
    s = scores(query, key, scale)
    allowed = np.tri(*s.shape[-2:], 2 * q_offset, dtype=bool) if is_causal else True
    return softmax(np.where(allowed, s, -np.inf)) @ value


ATTENTION = unnamed(
    eps_of_a_thousandth=weights_that(lambda s: np.exp(s) / (np.exp(s).sum(-1, keepdims=True) + 1e-3)),
    weights_rounded_before=weights_that(lambda s: softmax(s).round(2)),
    weights_squared=weights_that(lambda s: softmax(s) ** 2),
    relu_for_softmax=weights_that(lambda s: np.maximum(s, 0) / (np.maximum(s, 0).sum(-1, keepdims=True) + 1e-9)),
    base_2=weights_that(lambda s: softmax(s * np.log(2))),
    log_softmax=weights_that(lambda s: np.log(softmax(s) + 1e-300)),
    always_causal=weights_that(lambda s: softmax(np.where(np.tri(*s.shape[-2:], dtype=bool), s, -1e9))),
    standardised_scores=weights_that(lambda s: softmax((s - s.mean(-1, keepdims=True)) / (s.std() + 1e-9))),
    lengths_of_queries_lost=attention_with(lambda q, k, v: (q / norm(q), k, v)),
    lengths_of_keys_lost=attention_with(lambda q, k, v: (q, k / norm(k), v)),
    values_centred=attention_with(lambda q, k, v: (q, k, v - v.mean(-2, keepdims=True))),
    values_reversed=attention_with(lambda q, k, v: (q, k, v[..., ::-1, :])),
    values_mirrored=attention_with(lambda q, k, v: (q, k, v[..., ::-1])),
    first_query_for_all=attention_with(lambda q, k, v: (q[..., :1, :] + 0 * q, k, v)),
    first_query_alone=attention_with(lambda q, k, v: (q[..., :1, :], k, v)),
    last_key_missing=attention_with(lambda q, k, v: (q, k[..., :-1, :], v[..., :-1, :])),
    everything_in_float16=attention_with(lambda q, k, v: (q.astype(np.float16), k.astype(np.float16), v)),
    first_sequence_alone=attention_with(lambda *x: [a.reshape(-1, *a.shape[-2:])[0] for a in x]),
    sequences_joined=attention_with(lambda *x: [a.reshape(-1, a.shape[-1]) for a in x]),
    output_transposed=output_that(swap),
    output_rounded=output_that(lambda x: x.round(2)),
    output_normed=output_that(lambda x: x / norm(x)),
    output_doubled=output_that(lambda x: 2 * x),
    mean_over_queries=output_that(lambda x: x.mean(-2, keepdims=True) + 0 * x),
    output_in_a_list=output_that(lambda x: [x]),
    output_as_numbers=output_that(lambda x: x.tolist()),
    keys_for_queries_and_values=attention_with(lambda q, k, v: (k, q, q)),
    divided_by_width_minus_1=lambda q, k, v, *, scale=None: (
        softmax(q @ swap(k) * (max(q.shape[-1] - 1, 1) ** -0.5 if scale is None else scale)) @ v
    ),
    divided_by_the_root_of_2=lambda q, k, v, *, scale=None: (
        softmax(q @ swap(k) * (0.5**0.5 if scale is None else scale)) @ v
    ),
    scaled_by_the_size_of_the_scores=lambda q, k, v, *, scale=None: (
        softmax(q @ swap(k) / (q.shape[-2] * k.shape[-2]) ** 0.5 if scale is None else q @ swap(k) * scale) @ v
    ),
    scale_as_a_temperature_on_top=lambda q, k, v, *, scale=None: (
        softmax(scores(q, k) if scale is None else scores(q, k) / (scale + 1e-9)) @ v
    ),
    the_answer_of_the_first_case=lambda q, k, v, *, scale=None: np.array(
        [[1.86387, 6.31937, 1.70419], [1.99911, 7.81412, 0.27347]]
    ),
    masked_by_a_small_number=masking(lambda s, allowed: np.where(allowed, s, -10.0)),
    masked_by_the_smallest_score=masking(lambda s, allowed: np.where(allowed, s, s.min())),
    masked_before_the_product=masked_before_the_dot,
    causal_but_the_first_key=causal_that(lambda i, j, s: (j <= i) & ((j > 0) | (i == 0))),
    causal_with_a_window_of_2=causal_that(lambda i, j, s: (j <= i) & (j >= i - 1)),
    only_itself=causal_that(lambda i, j, s: j == np.minimum(i, s.shape[-1] - 1)),
    two_steps_into_the_future=causal_that(lambda i, j, s: j <= i + 2),
    weights_rounded=weights_rounded,
    weights_transposed_at_the_end=weights_transposed_at_the_end,
    offset_doubled=offset_doubled,
) | {
    "plain dot product, whatever the scale": (lambda q, k, v, *, scale=None: softmax(q @ swap(k)) @ v, {"no-scale"}),
    "no scale, no shift": (lambda q, k, v, *, scale=None: shifted(q @ swap(k), 0) @ v, {"no-scale"}),
    "no scale, and .T": (lambda q, k, v, *, scale=None: softmax(q @ k.T) @ v, {"no-scale"}),
    "divided by the largest": (
        weights_that(lambda s: np.exp(s) / np.exp(s).max(-1, keepdims=True)),
        {"shifted-not-normalised"},
    ),
    "softmax over axis 0": (
        lambda q, k, v, *, scale=None: (
            (np.exp(scores(q, k, scale)) / np.exp(scores(q, k, scale)).sum(0, keepdims=True)) @ v
        ),
        {"softmax-over-queries"},
    ),
    "scaled twice": (
        lambda q, k, v, *, scale=None: softmax(scores(q, k, scale) * root(q, scale)) @ v,
        {"scaled-by-width"},
    ),
    "len of the keys": (
        lambda q, k, v, *, scale=None: softmax(q @ swap(k) * (len(k) ** -0.5 if scale is None else scale)) @ v,
        {"scaled-by-keys"},
    ),
    "a scale only if it is positive": (
        lambda q, k, v, *, scale=None: softmax(scores(q, k, scale if scale else None)) @ v,
        {"zero-scale"},
    ),
    "shifted by the mean": (
        weights_that(lambda s: shifted(s, s.mean(-1, keepdims=True))),
        {None, "overflow"},
    ),
    "a mask that is True where it forbids": (
        masking(lambda s, allowed: np.where(allowed, -np.inf, s)),
        {"mask-inverted"},
    ),
    "a mask that is True where it forbids, finite": (
        masking(lambda s, allowed: np.where(allowed, -1e9, s)),
        {"mask-inverted"},
    ),
    "weights times mask": (masked_values, {"masked-after-softmax"}),
    "tril of the weights": (causal_weights_zeroed, {"causal-after-softmax"}),
    "scores times mask": (masking(lambda s, allowed: s * allowed), {"score-of-zero"}),
    "plus -1e9 where it is forbidden": (masking(lambda s, allowed: s - 1e9 * ~allowed), {"unmasked-for-nothing"}),
    "the smallest number for -inf": (
        masking(lambda s, allowed: np.where(allowed, s, np.finfo(s.dtype).min)),
        {"mean-for-nothing"},
    ),
    "what comes after, and itself": (causal_that(lambda i, j, s: j >= i), {"causal-transposed"}),
    "one step into the future": (causal_that(lambda i, j, s: j <= i + 1), {"causal-one-late"}),
    "aligned at the end": (
        causal_that(lambda i, j, s: j <= i + s.shape[-1] - s.shape[-2]),
        {"causal-at-the-end"},
    ),
}

# attention_shapes and attention_cost -----------------------------------------------------------------------------

SHAPES = unnamed(
    keys_of_the_output=lambda q, k, v: ((*q[:-1], k[-2]), (*k[:-1], v[-1] + 1)),
    widths_added=lambda q, k, v: ((*q[:-1], k[-2]), (*q[:-1], q[-1] + v[-1])),
    sizes_multiplied=lambda q, k, v: ((q[-2] * k[-2],), (q[-2] * v[-1],)),
    queries_and_keys_added=lambda q, k, v: ((*q[:-2], q[-2] + k[-2]), (*q[:-1], v[-1])),
    width_of_the_values_in_the_scores=lambda q, k, v: ((*q[:-1], v[-1]), (*q[:-1], v[-1])),
    shape_of_the_query_first=lambda q, k, v: (q, (*q[:-1], v[-1] * 2)),
    shapes_as_text=lambda q, k, v: (str((*q[:-1], k[-2])), str((*q[:-1], v[-1]))),
    leading_dimensions_multiplied=lambda q, k, v: (
        (int(np.prod(q[:-2])), q[-2], k[-2]),
        (int(np.prod(q[:-2])), q[-2], v[-1]),
    ),
    a_batch_of_1=lambda q, k, v: ((1, *q[-2:-1], k[-2]), (1, q[-2], v[-1])),
    none_at_all=lambda q, k, v: None,
) | {
    "square, and as wide as the query": (lambda q, k, v: ((*q[:-1], q[-2]), q), {None}),
}

COST = unnamed(
    half_of_it=lambda T, S, D, D_v: (T * S * (D + D_v) // 2, T * S),
    widths_maximum=lambda T, S, D, D_v: (T * S * max(D, D_v), T * S),
    three_products=lambda T, S, D, D_v: (T * S * (D + D_v) + T * D * D_v, T * S),
    causal_half=lambda T, S, D, D_v: (T * S * (D + D_v), T * S // 2),
    root_of_the_width=lambda T, S, D, D_v: (int(T * S * (D**0.5 + D_v)), T * S),
    all_numbers=lambda T, S, D, D_v: (T * S * (D + D_v), T * D + S * D + S * D_v + T * S),
    both_tables=lambda T, S, D, D_v: (T * S * (D + D_v), 2 * T * S),
    sum_of_all=lambda T, S, D, D_v: (T + S + D + D_v, T + S),
    everything_multiplied_twice=lambda T, S, D, D_v: (T * S * D * D_v * 2, T * S),
    memory_in_bytes=lambda T, S, D, D_v: (T * S * (D + D_v), 4 * T * S),
    softmax_counted_thrice=lambda T, S, D, D_v: (T * S * (D + D_v + 3), T * S),
    text=lambda T, S, D, D_v: (f"{T * S * (D + D_v)}", f"{T * S}"),
)

SHAPES["one shape alone"] = (lambda q, k, v: (*q[:-1], k[-2]), {"scores-alone"})

UNKNOWN_MISTAKES = {
    "scaled_dot": SCALED_DOT,
    "scaled_dot_product_attention": ATTENTION,
    "attention_shapes": SHAPES,
    "attention_cost": COST,
}
