"""Wrong answers that no catalogue knows, to the exercises on context vectors: the steps of the two decoders."""

import numpy as np

from unknown_mistakes.labels import unnamed


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def cell(x, h, p):
    return np.tanh(x @ p["w_ih"].T + p["b_ih"] + h @ p["w_hh"].T + p["b_hh"])


def additive(q, m, p):
    return np.tanh((q @ p["w_query"])[..., None, :] + m @ p["w_key"]) @ p["v"]


def dot(q, m, p):
    return (q[..., None, :] * m).sum(-1)


def general(q, m, p):
    return dot(q @ p["weight"], m, p)


def mix(weights, memory):
    return (weights[..., None] * memory).sum(-2)


def join(*vectors):
    return np.concatenate(vectors, -1)


def bahdanau(*, ask=lambda y, s, m, p: s, score=additive, weigh=softmax, mix=mix, enter=join, cell=cell, end=None):
    """A step made of these pieces, as a student's function."""

    def step(y, state, memory, params):
        weights = weigh(score(ask(y, state, memory, params), memory, params))
        context = mix(weights, memory)
        results = cell(enter(y, context), state, params), context, weights
        return end(*results, y, state, memory, params) if end else results

    return step


def merge(c, s, p):
    return np.tanh(join(c, s) @ p["w_c"])


def luong(*, cell=cell, weigh=softmax, mix=mix, merge=merge, scores=None, end=None):
    """A step made of these pieces, as a student's function."""
    table = {"dot": dot, "general": general, "concat": additive} | (scores or {})

    def step(y, state, memory, params, *, score="dot"):
        new = cell(y, state, params)
        weights = weigh(table[score](new, memory, params))
        results = new, merge(mix(weights, memory), new, params), weights
        return end(*results, y, state, memory, params) if end else results

    return step


def leaky(x, h, p):
    return 0.5 * h + 0.5 * cell(x, h, p)


def wide(x, h, p):
    return np.tanh(2 * (x @ p["w_ih"].T + p["b_ih"] + h @ p["w_hh"].T + p["b_hh"]))


def double_bias(x, h, p):
    return np.tanh(x @ p["w_ih"].T + 2 * p["b_ih"] + h @ p["w_hh"].T + p["b_hh"])


def minus_state(x, h, p):
    return cell(x, -h, p)


def bias_as_factor(x, h, p):
    return np.tanh(x @ p["w_ih"].T * (1 + p["b_hh"]) + p["b_ih"] + h @ p["w_hh"].T)


def for_a_batch_alone(y, state, memory, params):
    weights = softmax(
        np.einsum("bsa,a->bs", np.tanh((state @ params["w_query"])[:, None] + memory @ params["w_key"]), params["v"])
    )
    context = np.einsum("bs,bsd->bd", weights, memory)
    return cell(join(y, context), state, params), context, weights


def writes_into_memory(y, state, memory, params):
    results = bahdanau()(y, state, memory, params)
    memory *= results[2][..., None]
    return results


def forgets_params(y, state, memory, params):
    results = bahdanau()(y, state, memory, params)
    del params["v"]
    return results


def backwards(y, state, memory, params):
    return bahdanau()(y, state, memory[..., ::-1, :], params)


def first_sentence_for_all(y, state, memory, params):
    if memory.ndim == 3:
        memory = np.broadcast_to(memory[:1], memory.shape)
    return bahdanau()(y, state, memory, params)


def shared_query(y, state, memory, params):
    return bahdanau(ask=lambda y, s, m, p: np.broadcast_to(s.mean(tuple(range(s.ndim - 1))), s.shape))(
        y, state, memory, params
    )


def misfits_in_the_mix(y, state, memory, params):
    weights = softmax(additive(state, memory, params))
    context = (weights * memory.swapaxes(-1, -2)).sum(-1)
    return cell(join(y, context), state, params), context, weights


def vectors_are_columns(y, state, memory, params):
    weights = softmax(np.tanh(params["w_query"].T @ state + memory @ params["w_key"]) @ params["v"])
    context = weights @ memory
    sums = params["w_ih"] @ np.concatenate([y, context]) + params["b_ih"] + params["w_hh"] @ state + params["b_hh"]
    return np.tanh(sums), context, weights


BAHDANAU = unnamed(
    leaky_cell=bahdanau(cell=leaky),
    everything_doubled_in_the_cell=bahdanau(cell=wide),
    one_bias_twice=bahdanau(cell=double_bias),
    minus_the_old_state=bahdanau(cell=minus_state),
    a_bias_as_a_factor=bahdanau(cell=bias_as_factor),
    temperature_of_2=bahdanau(weigh=lambda e: softmax(e / 2)),
    base_2=bahdanau(weigh=lambda e: softmax(e * np.log(2))),
    squares=bahdanau(weigh=lambda e: e**2 / (e**2).sum(-1, keepdims=True)),
    eps_of_a_thousandth=bahdanau(weigh=lambda e: np.exp(e) / (np.exp(e).sum(-1, keepdims=True) + 1e-3)),
    rounded_weights=bahdanau(weigh=lambda e: softmax(e).round(2)),
    sorted_weights=bahdanau(weigh=lambda e: np.sort(softmax(e), -1)),
    one_row_too_late=bahdanau(mix=lambda a, m: mix(a, np.roll(m, 1, -2))),
    context_and_a_mean=bahdanau(mix=lambda a, m: mix(a, m) + m.mean(-2)),
    context_at_unit_length=bahdanau(mix=lambda a, m: mix(a, m) / np.linalg.norm(mix(a, m), axis=-1, keepdims=True)),
    squashed_context=bahdanau(mix=lambda a, m: np.tanh(mix(a, m))),
    cosine_of_the_score=bahdanau(score=lambda q, m, p: np.cos(additive(q, m, p))),
    v_normalised=bahdanau(score=lambda q, m, p: additive(q, m, p) / np.linalg.norm(p["v"])),
    v_squared=bahdanau(score=lambda q, m, p: additive(q, m, p | {"v": p["v"] ** 2})),
    mean_of_the_hidden_numbers=bahdanau(score=lambda q, m, p: additive(q, m, p) / len(p["v"])),
    half_of_the_query=bahdanau(score=lambda q, m, p: additive(q / 2, m, p)),
    gaussian_score=bahdanau(score=lambda q, m, p: -((additive(q, m, p)) ** 2)),
    asks_with_the_state_squashed=bahdanau(ask=lambda y, s, m, p: np.tanh(s)),
    asks_with_the_mean_state=shared_query,
    half_of_the_context_in_the_cell=bahdanau(enter=lambda y, c: join(y, c / 2)),
    memory_backwards=backwards,
    the_first_memory_for_all=first_sentence_for_all,
    a_batch_alone=for_a_batch_alone,
    memory_overwritten=writes_into_memory,
    params_emptied=forgets_params,
    float16=bahdanau(end=lambda s, c, a, *given: tuple(x.astype(np.float16) for x in (s, c, a))),
    context_plus_state=bahdanau(end=lambda s, c, a, *given: (s, c + s.mean(-1, keepdims=True), a)),
    four_results=bahdanau(end=lambda s, c, a, *given: (s, c, a, a)),
    transposed_weights=bahdanau(end=lambda s, c, a, *given: (s, c, a.T)),
    everything_zero=bahdanau(end=lambda s, c, a, *given: (0 * s, 0 * c, 0 * a)),
) | {
    "joined along the batch": (bahdanau(enter=lambda y, c: np.concatenate([y, c])), {"one-sentence-only"}),
    "vectors are columns": (vectors_are_columns, {"one-sentence-only"}),
    "no new axis in the mixture": (misfits_in_the_mix, {"no-new-axis"}),
}


def dot_first(y, state, memory, params, *, score="dot"):
    if score != "dot":
        raise NotImplementedError(score)
    return luong()(y, state, memory, params)


def shifted(y, state, memory, params, *, score="dot"):
    new, attentional, weights = luong()(y, state, memory, params, score=score)
    return new, attentional + 0.1 * attentional.mean(), weights


def mixed_states(y, state, memory, params, *, score="dot"):
    new = cell(y, state, params)
    table = {"dot": dot, "general": general, "concat": additive}
    weights = softmax(table[score]((new + state) / 2, memory, params))
    return new, merge(mix(weights, memory), new, params), weights


def params_rewritten(y, state, memory, params, *, score="dot"):
    results = luong()(y, state, memory, params, score=score)
    params["w_ih"] = params["w_ih"].T
    return results


LUONG = unnamed(
    leaky_cell=luong(cell=leaky),
    everything_doubled_in_the_cell=luong(cell=wide),
    one_bias_twice=luong(cell=double_bias),
    minus_the_old_state=luong(cell=minus_state),
    temperature_of_2=luong(weigh=lambda e: softmax(e / 2)),
    squares=luong(weigh=lambda e: e**2 / (e**2).sum(-1, keepdims=True)),
    rounded_weights=luong(weigh=lambda e: softmax(e).round(2)),
    one_row_too_late=luong(mix=lambda a, m: mix(a, np.roll(m, 1, -2))),
    squashed_context=luong(mix=lambda a, m: np.tanh(mix(a, m))),
    tanh_twice=luong(merge=lambda c, s, p: np.tanh(merge(c, s, p))),
    relu_in_the_merge=luong(merge=lambda c, s, p: np.maximum(join(c, s) @ p["w_c"], 0)),
    half_of_the_context=luong(merge=lambda c, s, p: merge(c / 2, s, p)),
    minus_the_state=luong(merge=lambda c, s, p: merge(c, -s, p)),
    arctan=luong(merge=lambda c, s, p: np.arctan(join(c, s) @ p["w_c"])),
    h_at_unit_length=luong(merge=lambda c, s, p: merge(c, s, p) / np.linalg.norm(merge(c, s, p), axis=-1)[..., None]),
    distances=luong(scores={"dot": lambda q, m, p: -((q[..., None, :] - m) ** 2).sum(-1)}),
    squared_dot=luong(scores={"dot": lambda q, m, p: dot(q, m, p) ** 2}),
    dot_without_its_first_number=luong(scores={"dot": lambda q, m, p: dot(q[..., 1:], m[..., 1:], p)}),
    dot_scaled_by_the_length=luong(scores={"dot": lambda q, m, p: dot(q, m, p) / m.shape[-2] ** 0.5}),
    general_plus_dot=luong(scores={"general": lambda q, m, p: general(q, m, p) + q.sum(-1)[..., None] * m.sum(-1)}),
    general_squared_matrix=luong(scores={"general": lambda q, m, p: general(q, m, p | {"weight": p["weight"] ** 2})}),
    concat_with_half_a_query=luong(scores={"concat": lambda q, m, p: additive(q / 2, m, p)}),
    concat_with_v_squared=luong(scores={"concat": lambda q, m, p: additive(q, m, p | {"v": p["v"] ** 2})}),
    dot_alone=dot_first,
    h_shifted=shifted,
    asks_with_the_mean_of_both_states=mixed_states,
    params_rewritten=params_rewritten,
    float16=luong(end=lambda s, h, a, *given: tuple(x.astype(np.float16) for x in (s, h, a))),
    four_results=luong(end=lambda s, h, a, *given: (s, h, a, a)),
    transposed_weights=luong(end=lambda s, h, a, *given: (s, h, a.T)),
    concat_with_an_axis_at_the_end=luong(
        scores={"concat": lambda q, m, p: np.tanh((q @ p["w_query"])[..., None] + m @ p["w_key"]) @ p["v"]}
    ),
)

UNKNOWN_MISTAKES = {"bahdanau_step": BAHDANAU, "luong_step": LUONG}
