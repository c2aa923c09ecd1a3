"""Wrong answers that no catalogue knows, to the exercises on context vectors: the cell and the scores."""

import numpy as np

from unknown_mistakes import context_vectors_steps
from unknown_mistakes.labels import unnamed


def swap(x):
    return np.swapaxes(x, -1, -2)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


# rnn_cell --------------------------------------------------------------------------------------------------------


def total(x, h, w_ih, w_hh, b_ih, b_hh):
    return x @ w_ih.T + b_ih + h @ w_hh.T + b_hh


def squashed_by(function):
    return lambda *given: function(total(*given))


def adds_in_place(x, h, w_ih, w_hh, b_ih, b_hh):
    b_ih += b_hh
    return np.tanh(x @ w_ih.T + h @ w_hh.T + b_ih)


def scales_in_place(x, h, w_ih, w_hh, b_ih, b_hh):
    x *= 1.01
    return np.tanh(total(x, h, w_ih, w_hh, b_ih, b_hh))


RNN_CELL = unnamed(
    tanh_twice=squashed_by(lambda s: np.tanh(np.tanh(s))),
    tangent=squashed_by(np.tan),
    arctangent=squashed_by(np.arctan),
    softsign=squashed_by(lambda s: s / (1 + np.abs(s))),
    hyperbolic_sine=squashed_by(np.sinh),
    softmax=squashed_by(softmax),
    clipped_to_one=squashed_by(lambda s: np.clip(s, -1, 1)),
    half_of_the_sum=squashed_by(lambda s: np.tanh(s / 2)),
    twice_the_sum=squashed_by(lambda s: np.tanh(2 * s)),
    sign_reversed=squashed_by(lambda s: -np.tanh(s)),
    tanh_overflows_downwards=squashed_by(lambda s: (1 - np.exp(-2 * s)) / (1 + np.exp(-2 * s))),
    rounded=squashed_by(lambda s: np.tanh(s).round(2)),
    leaky=squashed_by(lambda s: np.where(s > 0, s, 0.01 * s)),
    square_of_the_state=lambda x, h, w_ih, w_hh, b_ih, b_hh: np.tanh(total(x, h**2, w_ih, w_hh, b_ih, b_hh)),
    state_squashed_again=lambda x, h, w_ih, w_hh, b_ih, b_hh: np.tanh(total(x, np.tanh(h), w_ih, w_hh, b_ih, b_hh)),
    half_old_half_new=lambda x, h, *weights: (h + np.tanh(total(x, h, *weights))) / 2,
    input_and_state_exchanged=lambda x, h, w_ih, w_hh, b_ih, b_hh: np.tanh(
        total(h, x, w_hh, w_ih, b_ih, b_hh) - 2 * b_hh
    ),
    biases_multiplied=lambda x, h, w_ih, w_hh, b_ih, b_hh: np.tanh(x @ w_ih.T * b_ih + h @ w_hh.T * b_hh),
    biases_subtracted=lambda x, h, w_ih, w_hh, b_ih, b_hh: np.tanh(x @ w_ih.T + h @ w_hh.T - b_ih - b_hh),
    biases_of_the_first_number=lambda x, h, w_ih, w_hh, b_ih, b_hh: np.tanh(
        total(x, h, w_ih, w_hh, b_ih[:1], b_hh[:1])
    ),
    state_by_its_diagonal=lambda x, h, w_ih, w_hh, b_ih, b_hh: np.tanh(x @ w_ih.T + b_ih + h * np.diag(w_hh) + b_hh),
    pair_returned=lambda *given: (np.tanh(total(*given)), given[1]),
    first_row_alone=lambda x, *rest: np.tanh(total(x.reshape(-1, x.shape[-1])[:1], *rest)),
    state_and_memory_summed=lambda *given: np.tanh(total(*given)).sum(-1, keepdims=True),
    biases_changed=adds_in_place,
    input_changed=scales_in_place,
    a_list=lambda *given: np.tanh(total(*given)).tolist(),
    input_weights_to_the_left=lambda x, h, w_ih, w_hh, b_ih, b_hh: np.tanh(w_ih @ x + b_ih + h @ w_hh.T + b_hh),
    products_of_one_vector=lambda x, h, w_ih, w_hh, b_ih, b_hh: np.array(
        [np.tanh(w_ih[i] @ x + b_ih[i] + w_hh[i] @ h + b_hh[i]) for i in range(len(b_ih))]
    ),
    parts_squashed_and_multiplied=lambda x, h, w_ih, w_hh, b_ih, b_hh: (
        np.tanh(x @ w_ih.T + b_ih) * np.tanh(h @ w_hh.T + b_hh)
    ),
)

# additive --------------------------------------------------------------------------------------------------------


def pairs(query, key, w_query, w_key):
    return (query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]


def hidden_by(function):
    return lambda query, key, w_query, w_key, v: function(pairs(query, key, w_query, w_key)) @ v


def read_by(function):
    return lambda query, key, w_query, w_key, v: function(np.tanh(pairs(query, key, w_query, w_key)), v)


def key_shifted_in_place(query, key, w_query, w_key, v):
    key -= 0.1
    return np.tanh(pairs(query, key + 0.1, w_query, w_key)) @ v


ADDITIVE = unnamed(
    tanh_twice=hidden_by(lambda s: np.tanh(np.tanh(s))),
    tanh_overflows_downwards=hidden_by(lambda s: (1 - np.exp(-2 * s)) / (1 + np.exp(-2 * s))),
    tangent=hidden_by(np.tan),
    arctangent=hidden_by(np.arctan),
    half_of_the_sum=hidden_by(lambda s: np.tanh(s / 2)),
    softmax_of_the_hidden=hidden_by(softmax),
    exponential=hidden_by(np.exp),
    absolute=hidden_by(lambda s: np.abs(np.tanh(s))),
    v_of_unit_length=read_by(lambda hidden, v: hidden @ unit(v)),
    v_positive=read_by(lambda hidden, v: hidden @ np.abs(v)),
    v_reversed=read_by(lambda hidden, v: hidden @ v[::-1]),
    v_squared=read_by(lambda hidden, v: hidden @ v**2),
    softmax_over_queries=read_by(lambda hidden, v: softmax(hidden @ v, -2)),
    softmax_over_all=read_by(lambda hidden, v: np.exp(hidden @ v) / np.exp(hidden @ v).sum()),
    scores_centred=read_by(lambda hidden, v: hidden @ v - (hidden @ v).mean(-1, keepdims=True)),
    tanh_before_and_after=read_by(lambda hidden, v: np.tanh(hidden @ v)),
    largest_hidden_number=read_by(lambda hidden, v: (hidden * v).max(-1)),
    sign_lost=read_by(lambda hidden, v: np.abs(hidden @ v)),
    keys_in_reverse=read_by(lambda hidden, v: (hidden @ v)[..., ::-1]),
    query_0_for_all=read_by(lambda hidden, v: (hidden @ v)[..., :1, :] + 0 * (hidden @ v)),
    query_squashed_first=lambda q, k, w_query, w_key, v: np.tanh(pairs(np.tanh(q), k, w_query, w_key)) @ v,
    query_of_unit_length=lambda q, k, w_query, w_key, v: np.tanh(pairs(unit(q), k, w_query, w_key)) @ v,
    squashed_products=lambda q, k, w_query, w_key, v: np.tanh(q @ w_query) @ swap(np.tanh(k @ w_key)),
    queries_with_queries=lambda q, k, w_query, w_key, v: np.tanh(pairs(q, q, w_query, w_query)) @ v,
    mean_of_the_two=lambda q, k, w_query, w_key, v: np.tanh(pairs(q, k, w_query / 2, w_key / 2)) @ v,
    the_largest_of_the_hidden=lambda q, k, w_query, w_key, v: np.tanh(pairs(q, k, w_query, w_key)).max(-1),
    scores_and_hidden=lambda *given: (np.tanh(pairs(*given[:4])) @ given[4], np.tanh(pairs(*given[:4]))),
    key_changed=key_shifted_in_place,
)

# general ---------------------------------------------------------------------------------------------------------


def scores_by(function):
    return lambda query, key, weight: function(query @ weight @ swap(key))


def weight_by(function):
    return lambda query, key, weight: query @ function(weight) @ swap(key)


def scaled_in_place(query, key, weight):
    query *= 2
    return query @ weight @ swap(key) / 2


GENERAL = unnamed(
    softmax_over_queries=scores_by(lambda s: softmax(s, -2)),
    sigmoid=scores_by(lambda s: 1 / (1 + np.exp(-s))),
    exponential=scores_by(np.exp),
    absolute=scores_by(np.abs),
    relu=scores_by(lambda s: np.maximum(s, 0)),
    squared=scores_by(lambda s: s**2),
    constant_scale=scores_by(lambda s: s / 8),
    divided_by_the_number_of_keys=scores_by(lambda s: s / s.shape[-1]),
    divided_by_the_root_of_the_number_of_keys=scores_by(lambda s: s / s.shape[-1] ** 0.5),
    scores_centred=scores_by(lambda s: s - s.mean(-1, keepdims=True)),
    keys_in_reverse=scores_by(lambda s: s[..., ::-1]),
    transposed_softmax=scores_by(lambda s: swap(softmax(s))),
    query_0_for_all=scores_by(lambda s: s[..., :1, :] + 0 * s),
    weight_absolute=weight_by(np.abs),
    weight_twice_as_large=weight_by(lambda w: 2 * w),
    weight_centred=weight_by(lambda w: w - w.mean()),
    weight_with_the_identity=weight_by(lambda w: w + np.eye(*w.shape)),
    weight_triangular=weight_by(np.tril),
    weight_softmax=weight_by(softmax),
    key_squashed=lambda q, k, w: np.tanh(q @ w @ np.tanh(swap(k))),
    squashed_both=lambda q, k, w: np.tanh(q @ w) @ np.tanh(swap(k)),
    distances=lambda q, k, w: -(((q @ w)[..., :, None, :] - k[..., None, :, :]) ** 2).sum(-1),
    weight_alone=lambda q, k, w: w,
    scaled_by_the_query_and_softmax=lambda q, k, w: softmax(q @ w @ swap(k) / q.shape[-1] ** 0.5),
    query_changed=scaled_in_place,
    scores_and_weights=lambda q, k, w: (q @ w @ swap(k), softmax(q @ w @ swap(k))),
) | {
    "weight transposed, table transposed": (
        lambda q, k, w: k @ w @ swap(q),
        {None, "roles-swapped"},
    ),
    "arguments in another order": (lambda weight, key, query: query @ weight @ swap(key), {None, "misfit"}),
    "the weight comes last": (lambda q, k, w: q @ swap(k) @ w, {None, "misfit"}),
    "the weight comes first": (lambda q, k, w: w @ q @ swap(k), {None, "misfit"}),
    "scaled by the fourth root of both widths": (
        lambda q, k, w: q @ w @ swap(k) / (q.shape[-1] * k.shape[-1]) ** 0.25,
        {None},
    ),
}

UNKNOWN_MISTAKES = {
    "rnn_cell": RNN_CELL,
    "additive": ADDITIVE,
    "general": GENERAL,
} | context_vectors_steps.UNKNOWN_MISTAKES
