"""Wrong answers that no catalogue knows, to the exercises of the assignment on self-attention."""

import numpy as np
from correct_solutions.self_attention import softmax
from correct_solutions.styles import swap

from unknown_mistakes.labels import unnamed


def norm(x, axis=-1):
    return np.linalg.norm(x, axis=axis, keepdims=True)


def unit(x):
    return x / np.where(norm(x) == 0, 1, norm(x))


def cosine(query, key):
    return unit(query) @ swap(unit(key))


def shifted(x, shift, axis=-1):
    e = np.exp(x - shift)
    return e / e.sum(axis=axis, keepdims=True)


def scores(query, key):
    return query @ swap(key) / query.shape[-1] ** 0.5


def attend(weights, value):
    return weights @ value, weights


def masked(x, allowed, fill=-1e9):
    return attend(softmax(np.where(allowed, scores(x, x), fill)), x)


def mixed_up_axis(x, axis=-1):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def rows_in_a_loop(x, axis=-1):
    out = np.zeros_like(x)
    for i in range(len(x)):
        out[i] = softmax(x[i])
    return out


SOFTMAX = unnamed(
    eps_of_a_thousandth=lambda x, axis=-1: np.exp(x) / (np.exp(x).sum(axis, keepdims=True) + 1e-3),
    rounded_to_2_decimals=lambda x, axis=-1: softmax(x, axis).round(2),
    rounded_to_4_decimals=lambda x, axis=-1: softmax(x, axis).round(4),
    float16=lambda x, axis=-1: softmax(x, axis).astype(np.float16),
    the_answer_of_the_first_case=lambda x, axis=-1: np.array([0.125, 0.25, 0.625]),
    shifted_by_the_mean_of_all=lambda x, axis=-1: shifted(x, x.mean(), axis),
    shifted_by_the_largest_size=lambda x, axis=-1: shifted(x, np.abs(x).max(axis=axis, keepdims=True), axis),
    maximum_along_the_last_axis_always=mixed_up_axis,
    shifted_above_alone=lambda x, axis=-1: np.exp(x - x.max()) / np.exp(x).sum(axis=axis, keepdims=True),
    expm1=lambda x, axis=-1: np.expm1(x) / np.expm1(x).sum(axis=axis, keepdims=True),
    squares=lambda x, axis=-1: x**2 / (x**2).sum(axis=axis, keepdims=True),
    sizes=lambda x, axis=-1: np.abs(x) / np.abs(x).sum(axis=axis, keepdims=True),
    relu=lambda x, axis=-1: np.maximum(x, 0) / np.maximum(x, 0).sum(axis=axis, keepdims=True),
    euclidean_length_below=lambda x, axis=-1: np.exp(x) / norm(np.exp(x), axis),
    mean_below=lambda x, axis=-1: np.exp(x) / np.exp(x).mean(axis=axis, keepdims=True),
    n_minus_1=lambda x, axis=-1: softmax(x, axis) * x.shape[axis] / max(x.shape[axis] - 1, 1),
    exp_after_the_division=lambda x, axis=-1: np.exp(x / x.sum(axis=axis, keepdims=True)),
    squashed_first=lambda x, axis=-1: softmax(np.tanh(x), axis),
    scaled_by_the_length=lambda x, axis=-1: softmax(x / x.shape[axis] ** 0.5, axis),
    base_10=lambda x, axis=-1: softmax(x * np.log(10), axis),
    sigmoid_normalised=lambda x, axis=-1: (1 / (1 + np.exp(-x))) / (1 / (1 + np.exp(-x))).sum(axis, keepdims=True),
    sorted=lambda x, axis=-1: np.sort(softmax(x, axis), axis),
    uniform=lambda x, axis=-1: np.ones_like(x) / x.shape[axis],
    cumulative=lambda x, axis=-1: softmax(x, axis).cumsum(axis),
    squeezed=lambda x, axis=-1: softmax(x, axis).squeeze(),
    transposed=lambda x, axis=-1: softmax(x, axis).T,
    axis_1_always=lambda x, axis=-1: softmax(x, 1),
    rows_in_a_loop=rows_in_a_loop,
    no_axis=lambda x: softmax(x),
    dim_for_axis=lambda x, dim=-1: softmax(x, dim),
    a_list=lambda x, axis=-1: softmax(x, axis).tolist(),
) | {
    "shifted by the mean": (lambda x, axis=-1: shifted(x, x.mean(axis=axis, keepdims=True), axis), {"shift-by-mean"}),
    "shifted by the minimum": (
        lambda x, axis=-1: shifted(x, x.min(axis=axis, keepdims=True), axis),
        {"shift-by-minimum"},
    ),
    "nan made zero": (
        lambda x, axis=-1: np.nan_to_num(np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)),
        {"nan-to-num"},
    ),
    "clipped scores": (lambda x, axis=-1: softmax(np.clip(x, -700, 700), axis), {"clipped"}),
    "the built-in sum": (lambda x, axis=-1: np.exp(x) / sum(np.exp(x)), {None, "first-axis"}),
    "axis -2 always": (lambda x, axis=-1: softmax(x, -2 if x.ndim > 1 else -1), {None, "first-axis"}),
    "shifted by plus the maximum": (
        lambda x, axis=-1: shifted(x, -x.max(axis, keepdims=True), axis),
        {"maximum-added"},
    ),
    "axis 0 by default": (lambda x, axis=0: softmax(x, axis), {"first-axis"}),
    "axis 1 by default": (lambda x, axis=1: softmax(x, axis), {"axis-one"}),
    "shifted, over the scores": (
        lambda x, axis=-1: np.exp(x - x.max(axis, keepdims=True)) / x.sum(axis, keepdims=True),
        {"shifted-over-scores"},
    ),
    "new axis always last": (
        lambda x, axis=-1: np.exp(x - x.max()) / np.exp(x - x.max()).sum(axis)[..., None],
        {"put-back-at-the-end"},
    ),
    "no shift, and the last axis": (lambda x, axis=-1: shifted(x, 0, -1), {None, "no-shift", "ignores-axis"}),
}

DOT = unnamed(
    rounded_to_2_decimals=lambda query, key: (query @ swap(key)).round(2),
    float16=lambda query, key: (query @ swap(key)).astype(np.float16),
    whole_numbers=lambda query, key: (query @ swap(key)).astype(int),
    componentwise=lambda query, key: query * key,
    not_transposed=lambda query, key: query @ key,
    einsum_for_matrices=lambda query, key: np.einsum("td,sd->ts", query, key),
    einsum_for_one_batch_dimension=lambda query, key: np.einsum("btd,bsd->bts", query, key),
    everything_summed=lambda query, key: np.einsum("...td,...sd->...", query, key),
    first_query_alone=lambda query, key: query[..., :1, :] @ swap(key),
    first_query_for_all=lambda query, key: query[..., :1, :] @ swap(key) + 0 * query[..., :1],
    first_key_for_all=lambda query, key: query @ swap(key[..., :1, :] + 0 * key),
    last_component_missing=lambda query, key: query[..., :-1] @ swap(key[..., :-1]),
    last_component_alone=lambda query, key: query[..., -1:] @ swap(key[..., -1:]),
    divided_by_the_number_of_keys=lambda query, key: query @ swap(key) / key.shape[-2],
    divided_by_its_root=lambda query, key: query @ swap(key) / key.shape[-2] ** 0.5,
    divided_by_len=lambda query, key: query @ swap(key) / len(key),
    multiplied_by_the_root_of_the_width=lambda query, key: query @ swap(key) * query.shape[-1] ** 0.5,
    squared=lambda query, key: (query @ swap(key)) ** 2,
    relu=lambda query, key: np.maximum(query @ swap(key), 0),
    mean_centred=lambda query, key: (query - query.mean(-1, keepdims=True)) @ swap(key - key.mean(-1, keepdims=True)),
    eps_added=lambda query, key: query @ swap(key) + 1e-3,
    sign_reversed=lambda query, key: -(query @ swap(key)),
    divided_by_the_length_of_the_query=lambda query, key: query @ swap(key) / norm(query),
    distance=lambda query, key: norm(query[..., :, None, :] - key[..., None, :, :])[..., 0],
    minus_the_squared_distance=lambda query, key: -(norm(query[..., :, None, :] - key[..., None, :, :])[..., 0] ** 2),
    sum_of_sizes=lambda query, key: np.abs(query) @ np.abs(swap(key)),
    components_added=lambda query, key: (query[..., :, None, :] + key[..., None, :, :]).sum(-1),
    reshaped_key=lambda query, key: query @ key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2]),
    squeezed=lambda query, key: (query @ swap(key)).squeeze(),
    softmax_of_scaled_scores=lambda query, key: softmax(scores(query, key)),
    the_answer_of_the_first_case=lambda query, key: np.array([[3.0, 8.0, 0.0]]),
    keys_reversed=lambda query, key: query @ swap(key[..., ::-1, :]),
    lower_triangle=lambda query, key: np.tril(query @ swap(key)),
    first_batch_for_all=lambda query, key: query @ swap(key if key.ndim == 2 else key[:1]),
    true_or_false=lambda query, key: query @ swap(key) > 0,
) | {
    "output indices of einsum swapped": (lambda q, k: np.einsum("...td,...sd->...st", q, k), {None, "transposed"}),
    "np.inner": (np.inner, {None, "outer-batches"}),
    "np.dot and .T": (lambda query, key: np.dot(query, key.T), {None, "full-transpose", "outer-batches"}),
}

COSINE = unnamed(
    eps_of_a_thousandth=lambda query, key: (query / (norm(query) + 1e-3)) @ swap(key / (norm(key) + 1e-3)),
    rounded_to_2_decimals=lambda query, key: cosine(query, key).round(2),
    unit_vectors_along_axis_1=lambda query, key: (
        (query / np.maximum(norm(query, 1), 1e-12)) @ swap(key / np.maximum(norm(key, 1), 1e-12))
    ),
    norms_without_keepdims=lambda query, key: query @ swap(key) / (norm(query)[..., 0] * norm(key)[..., 0]),
    length_of_the_query_twice=lambda query, key: query @ swap(key) / norm(query) ** 2,
    length_of_the_key_twice=lambda query, key: query @ swap(key) / swap(norm(key)) ** 2,
    root_of_the_product_of_lengths=lambda query, key: query @ swap(key) / np.sqrt(norm(query) * swap(norm(key))),
    sum_of_lengths=lambda query, key: query @ swap(key) / (norm(query) + swap(norm(key))),
    root_mean_square=lambda query, key: cosine(query, key) * query.shape[-1],
    mean_centred=lambda query, key: cosine(query - query.mean(-1, keepdims=True), key - key.mean(-1, keepdims=True)),
    clipped_to_positive=lambda query, key: np.clip(cosine(query, key), 0, 1),
    moved_to_0_and_1=lambda query, key: (1 + cosine(query, key)) / 2,
    sine=lambda query, key: np.sqrt(1 - np.clip(cosine(query, key), -1, 1) ** 2),
    cosine_of_the_cosine=lambda query, key: np.cos(cosine(query, key)),
    degrees=lambda query, key: np.degrees(np.arccos(np.clip(cosine(query, key), -1, 1))),
    squared=lambda query, key: cosine(query, key) ** 2,
    zero_vectors_agree_with_all=lambda q, k: np.where(norm(q) * swap(norm(k)) == 0, 1, cosine(q, k)),
    zero_queries_alone_are_safe=lambda query, key: unit(query) @ swap(key / norm(key)),
    zero_keys_alone_are_safe=lambda query, key: (query / norm(query)) @ swap(unit(key)),
    all_zero_if_any_is=lambda query, key: cosine(query, key) * (norm(query) > 0).all() * (norm(key) > 0).all(),
    largest_component=lambda q, k: (
        q @ swap(k) / (np.abs(q).max(-1, keepdims=True) * swap(np.abs(k).max(-1, keepdims=True)))
    ),
    the_answer_of_the_first_case=lambda query, key: np.array([[1.0, 0.0, -0.8]]),
    softmax_of_cosines=lambda query, key: softmax(cosine(query, key)),
    scaled_cosine=lambda query, key: cosine(query, key) / query.shape[-1] ** 0.5,
    scaled_dot_product=scores,
    columns_of_the_query=lambda query, key: (query / norm(query, -2)) @ swap(unit(key)),
    columns_of_the_key=lambda query, key: unit(query) @ swap(key / norm(key, -2)),
    rows_of_scores_made_unit=lambda query, key: unit(query @ swap(key)),
    sign_reversed=lambda query, key: -cosine(query, key),
    whole_numbers=lambda query, key: cosine(query, key).astype(int),
    minus_the_angle=lambda query, key: 1 - np.arccos(np.clip(cosine(query, key), -1, 1)) / np.pi,
    np_inner=lambda query, key: np.inner(unit(query), unit(key)),
    matrices_alone=lambda query, key: np.array([[cosine(q[None], k[None])[0, 0] for k in key] for q in query]),
) | {
    "np.dot and .T": (lambda query, key: np.dot(unit(query), unit(key).T), {None, "full-transpose"}),
    "outer product of norms": (lambda q, k: q @ k.T / np.outer(norm(q), norm(k)), {None, "full-transpose"}),
    "one norm for each matrix": (
        lambda q, k: q @ swap(k) / (np.sqrt((q**2).sum((-1, -2), keepdims=True) * (k**2).sum((-1, -2), keepdims=True))),
        {None, "norm-of-all"},
    ),
}


def scaled_in_place(query, key, value):
    query /= query.shape[-1] ** 0.5
    return attend(softmax(query @ swap(key)), value)


def first_sequence_alone(query, key, value):
    while query.ndim > 2:
        query, key, value = query[0], key[0], value[0]
    return attend(softmax(scores(query, key)), value)


def width_unpacked(query, key, value):
    _, width = query.shape
    return attend(softmax(query @ key.T / np.sqrt(width)), value)


def weights_that(change):
    """Attention whose scores go through another function than the softmax."""
    return lambda query, key, value: attend(change(scores(query, key)), value)


def scores_that(change):
    """Attention whose dot products are divided by something else than the root of D."""
    return lambda q, k, v: attend(softmax(q @ swap(k) / change(q, k, v)), v)


def result_that(change):
    """Attention whose right results are changed at the end."""
    return lambda q, k, v: change(*attend(softmax(scores(q, k)), v))


ATTENTION = unnamed(
    power_before_the_half=lambda q, k, v: attend(softmax(q @ swap(k) / q.shape[-1] ** 1 / 2), v),
    every_batch_with_every_batch=lambda q, k, v: attend(softmax(np.dot(q, swap(k)) / q.shape[-1] ** 0.5), v),
    keys_and_values_exchanged=lambda q, k, v: attend(softmax(scores(q, v)), k),
    root_of_all_numbers=lambda q, k, v: attend(softmax(q @ swap(k) / q.size**0.5), v),
    eps_of_a_thousandth=weights_that(lambda s: np.exp(s) / (np.exp(s).sum(-1, keepdims=True) + 1e-3)),
    weights_rounded=weights_that(lambda s: softmax(s).round(2)),
    weights_rounded_at_the_end=result_that(lambda c, w: (c, w.round(2))),
    weights_in_float16=result_that(lambda c, w: (c, w.astype(np.float16))),
    fourth_root_of_the_width=scores_that(lambda q, k, v: q.shape[-1] ** 0.25),
    constant_scale=scores_that(lambda q, k, v: 8),
    constant_scale_right_for_width_4=scores_that(lambda q, k, v: 2),
    divided_by_the_number_of_keys=scores_that(lambda q, k, v: k.shape[-2]),
    root_of_the_size=scores_that(lambda q, k, v: q.size**0.5),
    standard_deviation_of_the_scores=scores_that(lambda q, k, v: (q @ swap(k)).std() + 1e-9),
    width_minus_1=scores_that(lambda q, k, v: max(q.shape[-1] - 1, 1) ** 0.5),
    context_scaled_at_the_end=lambda q, k, v: (softmax(q @ swap(k)) @ v / q.shape[-1] ** 0.5, softmax(scores(q, k))),
    unscaled_scores_returned=lambda q, k, v: (softmax(scores(q, k)) @ v, q @ swap(k)),
    weights_transposed_at_the_end=result_that(lambda c, w: (c, swap(w))),
    context_transposed_at_the_end=result_that(lambda c, w: (swap(c), w)),
    query_0_for_all=lambda q, k, v: attend(softmax(scores(q[..., :1, :] + 0 * q, k)), v),
    query_0_alone=lambda q, k, v: attend(softmax(scores(q[..., :1, :], k)), v),
    divided_by_the_number_of_keys_at_the_end=lambda q, k, v: (
        softmax(scores(q, k)) @ v / len(k),
        softmax(scores(q, k)),
    ),
    softmax_twice=weights_that(lambda s: softmax(softmax(s))),
    log_softmax=weights_that(lambda s: np.log(softmax(s) + 1e-300)),
    squares_of_weights=weights_that(lambda s: softmax(2 * s)),
    context_of_scores=lambda q, k, v: (scores(q, k) @ v, softmax(scores(q, k))),
    scaled_cosines=lambda q, k, v: attend(softmax(scores(unit(q), unit(k))), v),
    distances=lambda q, k, v: attend(softmax(-(norm(q[..., :, None, :] - k[..., None, :, :])[..., 0] ** 2)), v),
    causal=weights_that(lambda s: softmax(np.where(np.tri(*s.shape[-2:], dtype=bool), s, -1e9))),
    values_centred=lambda q, k, v: attend(softmax(scores(q, k)), v - v.mean(-2, keepdims=True)),
    values_reversed=lambda q, k, v: attend(softmax(scores(q, k)), v[..., ::-1, :]),
    values_transposed=lambda q, k, v: attend(softmax(scores(q, k)), swap(v)),
    queries_with_queries=lambda q, k, v: attend(softmax(scores(q, q)), v),
    arguments_in_another_order=lambda value, key, query: attend(softmax(scores(query, key)), value),
    the_answer_of_the_first_case=lambda q, k, v: (np.array([[6.0]]), np.array([[0.75, 0.25]])),
    a_dictionary=result_that(lambda c, w: {"context": c, "weights": w}),
    three_results=lambda q, k, v: (*attend(softmax(scores(q, k)), v), scores(q, k)),
    weights_alone=result_that(lambda c, w: w),
    nan_made_zero=weights_that(lambda s: np.nan_to_num(np.exp(s) / np.exp(s).sum(-1, keepdims=True))),
    scaled_in_place=scaled_in_place,
    first_sequence_alone=first_sequence_alone,
    width_unpacked=width_unpacked,
    no_scale_and_over_queries=lambda q, k, v: attend(softmax(q @ swap(k), -2), v),
) | {
    "maximum of the whole table": (weights_that(lambda s: shifted(s, s.max())), {"global-shift"}),
    "sigmoid": (weights_that(lambda s: 1 / (1 + np.exp(-s))), {"sigmoid"}),
    "exponentials": (weights_that(np.exp), {"not-normalised"}),
    "sign reversed": (weights_that(lambda s: softmax(-s)), {"reversed-sign"}),
    "width read from axis 1": (scores_that(lambda q, k, v: q.shape[1] ** 0.5), {"width-from-front"}),
    "softmax along axis 1": (weights_that(lambda s: softmax(s, 1)), {"softmax-from-front"}),
    "np.dot and .T": (
        lambda q, k, v: attend(softmax(np.dot(q, k.T) / q.shape[-1] ** 0.5), v),
        {None, "full-transpose"},
    ),
    "no scale and no shift": (lambda q, k, v: attend(shifted(q @ swap(k), 0), v), {None, "no-scale", "overflow"}),
    "scaled twice": (lambda q, k, v: attend(softmax(scores(q, k) / q.shape[-1] ** 0.5), v), {None, "scaled-by-width"}),
    "key times query, swapped back": (
        lambda q, k, v: attend(swap(softmax(scores(k, q))), v),
        {None, "softmax-over-queries"},
    ),
    "shifted by the minimum": (weights_that(lambda s: shifted(s, s.min(-1, keepdims=True))), {None, "overflow"}),
}


def with_itself(label):
    implementation, names = ATTENTION[label]
    return lambda x: implementation(x, x, x), names


SELF_ATTENTION = (
    {
        label: with_itself(label)
        for label in (
            "eps of a thousandth",
            "weights rounded",
            "maximum of the whole table",
            "fourth root of the width",
            "constant scale",
            "divided by the number of keys",
            "width minus 1",
            "width read from axis 1",
            "unscaled scores returned",
            "weights transposed at the end",
            "query 0 for all",
            "softmax twice",
            "sigmoid",
            "sign reversed",
            "context of scores",
            "values reversed",
            "softmax along axis 1",
            "first sequence alone",
            "three results",
            "np.dot and .T",
        )
    }
    | unnamed(
        divided_by_T=lambda x: attend(softmax(x @ swap(x) / x.shape[-2]), x),
        scores_of_centred_words=lambda x: attend(softmax(scores(*[x - x.mean(-2, keepdims=True)] * 2)), x),
        everything_centred=lambda x: attend(
            softmax(scores(*[x - x.mean(-2, keepdims=True)] * 2)), x - x.mean(-2, keepdims=True)
        ),
        diagonal_scores_zero=lambda x: attend(softmax(scores(x, x) * (1 - np.eye(x.shape[-2]))), x),
        diagonal_weights_zero=lambda x: attend(softmax(scores(x, x)) * (1 - np.eye(x.shape[-2])), x),
        later_words_alone=lambda x: masked(x, np.tri(x.shape[-2], dtype=bool).T),
        causal_after_the_softmax=lambda x: attend(softmax(scores(x, x)) * np.tri(x.shape[-2]), x),
        causal_scores_zero=lambda x: attend(softmax(scores(x, x) * np.tri(x.shape[-2])), x),
        neighbours_alone=lambda x: masked(x, np.tri(x.shape[-2], k=1) * np.tri(x.shape[-2], k=1).T > 0),
        residual_and_no_scale=lambda x: (softmax(x @ swap(x)) @ x + x, softmax(x @ swap(x))),
        mean_over_words=lambda x: ((softmax(scores(x, x)) @ x).mean(-2, keepdims=True), softmax(scores(x, x))),
        last_word_alone=lambda x: attend(softmax(scores(x[..., -1:, :], x)), x),
        positions_added=lambda x: attend(softmax(scores(*[x + 0.1 * np.arange(x.shape[-2])[:, None]] * 2)), x),
        weights_made_symmetric=lambda x: attend((softmax(scores(x, x)) + softmax(scores(x, x), -2)) / 2, x),
        words_made_unit=lambda x: attend(softmax(unit(x) @ swap(unit(x))), unit(x)),
        componentwise=lambda x: (softmax(x * x / x.shape[-1] ** 0.5) * x, softmax(x * x)),
        distances=lambda x: attend(softmax(-(norm(x[..., :, None, :] - x[..., None, :, :])[..., 0] ** 2)), x),
        three_arguments=lambda x, key, value: attend(softmax(scores(x, key)), value),
        a_random_projection=lambda x: attend(softmax(scores(x @ np.vander(np.arange(x.shape[-1]) / 7), x)), x),
    )
    | {
        "causal, no scale": (
            lambda x: attend(softmax(np.where(np.tri(x.shape[-2], dtype=bool), x @ swap(x), -1e9)), x),
            {None, "causal", "no-scale"},
        ),
        "diagonal filled with -1e9": (lambda x: masked(x, ~np.eye(x.shape[-2], dtype=bool)), {"diagonal-very-small"}),
        "scaled by len": (lambda x: attend(softmax(x @ swap(x) / len(x) ** 0.5), x), {None, "scaled-by-keys"}),
        "weights transposed from the start": (
            lambda x: attend(swap(softmax(scores(x, x))), x),
            {None, "softmax-over-queries"},
        ),
    }
)


def gauss(query, key, bandwidth=1.0):
    return -(norm(query[..., :, None, :] - key[..., None, :, :])[..., 0] ** 2) / (2 * bandwidth**2)


GAUSSIAN = unnamed(
    twice_twice_the_bandwidth=lambda query, key, bandwidth=1.0: (
        -((query[..., :, None, :] - key[..., None, :, :]) ** 2).sum(-1) / (2 * bandwidth * 2)
    ),
    sum_over_axis_2=lambda query, key, bandwidth=1.0: (
        -((query[..., :, None, :] - key[..., None, :, :]) ** 2).sum(2) / (2 * bandwidth**2)
    ),
    sum_over_axis_0=lambda query, key, bandwidth=1.0: (
        -((query[..., :, None, :] - key[..., None, :, :]) ** 2).sum(0) / (2 * bandwidth**2)
    ),
    rounded_to_2_decimals=lambda q, k, bandwidth=1.0: gauss(q, k, bandwidth).round(2),
    float16=lambda q, k, bandwidth=1.0: gauss(q, k, bandwidth).astype(np.float16),
    whole_numbers=lambda q, k, bandwidth=1.0: gauss(q, k, bandwidth).astype(int),
    cubed_distances=lambda q, k, bandwidth=1.0: -((-2 * gauss(q, k, bandwidth)) ** 1.5) / 2,
    divided_by_8=lambda q, k, bandwidth=1.0: gauss(q, k, bandwidth) / 4,
    largest_difference=lambda q, k, bandwidth=1.0: (
        -(np.abs(q[..., :, None, :] - k[..., None, :, :]).max(-1) ** 2) / (2 * bandwidth**2)
    ),
    last_component_missing=lambda q, k, bandwidth=1.0: gauss(q[..., :-1], k[..., :-1], bandwidth),
    last_key_left_out=lambda q, k, bandwidth=1.0: gauss(q, k, bandwidth)[..., :-1],
    first_query_alone=lambda q, k, bandwidth=1.0: gauss(q[..., :1, :], k, bandwidth),
    unit_vectors=lambda q, k, bandwidth=1.0: gauss(unit(q), unit(k), bandwidth),
    cosine_distances=lambda q, k, bandwidth=1.0: -(1 - cosine(q, k)) / (2 * bandwidth**2),
    keys_reversed=lambda q, k, bandwidth=1.0: gauss(q, k[..., ::-1, :], bandwidth),
    shifted_by_the_largest=lambda q, k, bandwidth=1.0: gauss(q, k, bandwidth) - gauss(q, k, bandwidth).max() + 1e-3,
    bandwidth_cubed=lambda q, k, bandwidth=1.0: gauss(q, k, bandwidth) / bandwidth,
    bandwidth_must_be_2=lambda q, k, bandwidth=2.0: gauss(q, k, bandwidth),
    no_bandwidth=lambda q, k: gauss(q, k),
    bandwidth_by_another_name=lambda q, k, h=1.0: gauss(q, k, h),
    the_answer_of_the_first_case=lambda q, k, bandwidth=1.0: np.array([[0.0, -0.5, -12.5]]),
    for_matrices_alone=lambda q, k, bandwidth=1.0: np.array(
        [[gauss(a[None], b[None], bandwidth) for b in k] for a in q]
    ),
) | {
    "bandwidth squared outside of the brackets": (
        lambda q, k, bandwidth=1.0: -(norm(q[..., :, None, :] - k[..., None, :, :])[..., 0] ** 2) / 2 * bandwidth**2,
        {"bandwidth-multiplies"},
    ),
    "bandwidth as the variance": (
        lambda q, k, bandwidth=1.0: gauss(q, k, np.sqrt(bandwidth)),
        {"bandwidth-not-squared"},
    ),
    "law of cosines, dot product once": (
        lambda q, k, bandwidth=1.0: -(norm(q) ** 2 + swap(norm(k) ** 2) - q @ swap(k)) / (2 * bandwidth**2),
        {"single-mixed-term"},
    ),
}

# Written in another way than the catalogue's, and known there under a name that is true.
KNOWN = {
    "softmax": {
        "shifted by the mean of all": "shift-by-mean-of-all",
        "shifted by the largest size": "shift-by-largest-size",
        "maximum along the last axis always": "maximum-ignores-axis",
        "expm1": "exponential-minus-one",
        "squares": "squares",
        "sizes": "sizes",
        "euclidean length below": "divided-by-length",
        "mean below": "divided-by-mean",
        "exp after the division": "exponential-last",
        "scaled by the length": "scaled",
        "base 10": "base-ten",
        "sigmoid normalised": "sigmoid-normalised",
        "uniform": "uniform",
        "cumulative": "running-total",
        "axis 1 always": "axis-one",
    },
    "dot": {
        "componentwise": "componentwise",
        "not transposed": "not-transposed",
        "einsum for matrices": "einsum-of-matrices",
        "einsum for one batch dimension": "einsum-of-batches",
        "last component missing": "without-last-component",
        "divided by the number of keys": "divided-by-keys",
        "divided by len": "divided-by-keys",
        "multiplied by the root of the width": "multiplied",
        "squared": "squared",
        "relu": "relu",
        "mean centred": "centred",
        "sign reversed": "reversed-sign",
        "distance": "distance",
        "sum of sizes": "sizes",
        "components added": "added",
        "reshaped key": "reshaped",
        "squeezed": "squeezed",
        "lower triangle": "lower-triangle",
        "first batch for all": "first-of-the-batch",
    },
    "cosine": {
        "norms without keepdims": "lengths-without-columns",
        "unit vectors along axis 1": "norm-from-front",
        "length of the query twice": "query-twice",
        "length of the key twice": "key-twice",
        "root of the product of lengths": "root-of-product",
        "sum of lengths": "sum-of-lengths",
        "root mean square": "root-mean-square",
        "mean centred": "correlation",
        "clipped to positive": "relu",
        "moved to 0 and 1": "moved",
        "squared": "squared",
        "zero vectors agree with all": "zero-is-one",
        "zero queries alone are safe": "zero-key",
        "zero keys alone are safe": "zero-query",
        "largest component": "largest-component",
        "softmax of cosines": "weights",
        "scaled cosine": "scaled",
        "scaled dot product": "scaled-dot",
        "columns of the query": "norm-of-query-columns",
        "columns of the key": "norm-of-key-columns",
        "rows of scores made unit": "norm-of-scores",
        "sign reversed": "reversed-sign",
        "np inner": "outer-batches",
        "all zero if any is": "all-or-nothing",
    },
    "attention": {
        "power before the half": "twice-the-width",
        "every batch with every batch": "outer-batches",
        "keys and values exchanged": "keys-for-values",
        "fourth root of the width": "fourth-root",
        "constant scale": "always-eight",
        "divided by the number of keys": "divided-by-keys",
        "unscaled scores returned": "returns-dot-products",
        "weights transposed at the end": "weights-transposed",
        "context transposed at the end": "context-transposed",
        "divided by the number of keys at the end": "mean-of-values",
        "softmax twice": "softmax-twice",
        "log softmax": "log-weights",
        "context of scores": "context-of-scores",
        "scaled cosines": "scaled-cosine-scores",
        "causal": "causal",
        "values transposed": "values-transposed",
        "queries with queries": "query-with-query",
        "weights alone": "weights-only",
        "nan made zero": "nan-to-num",
        "scaled in place": "in-place",
        "width unpacked": "two-dimensions",
        "no scale and over queries": "no-scale-over-queries",
        "shifted by the minimum": "shift-by-minimum",
    },
    "gaussian": {
        "twice twice the bandwidth": "four-bandwidths",
        "sum over axis 2": "sum-from-front",
        "sum over axis 0": "summed-over-queries",
    },
    "self_attention": {
        "fourth root of the width": "fourth-root",
        "constant scale": "always-eight",
        "divided by the number of keys": "divided-by-keys",
        "divided by T": "divided-by-keys",
        "unscaled scores returned": "returns-dot-products",
        "weights transposed at the end": "weights-transposed",
        "softmax twice": "softmax-twice",
        "context of scores": "context-of-scores",
        "everything centred": "centred",
        "diagonal scores zero": "diagonal-scores-zero",
        "diagonal weights zero": "diagonal-removed",
        "later words alone": "earlier-hidden",
        "causal after the softmax": "causal-after-softmax",
        "causal scores zero": "half-of-the-scores",
        "residual and no scale": "residual-no-scale",
        "last word alone": "last-word-asks",
        "weights made symmetric": "symmetric-weights",
        "causal, no scale": "causal-no-scale",
    },
}


def with_true_names(exercise, others):
    named = KNOWN.get(exercise, {})
    return {label: (f, {named[label]} if label in named else names) for label, (f, names) in others.items()}


ALL = {
    "softmax": SOFTMAX,
    "dot": DOT,
    "cosine": COSINE,
    "gaussian": GAUSSIAN,
    "attention": ATTENTION,
    "self_attention": SELF_ATTENTION,
}
UNKNOWN_MISTAKES = {exercise: with_true_names(exercise, others) for exercise, others in ALL.items()}
