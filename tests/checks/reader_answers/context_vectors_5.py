"""Answers to the notebook from RNNs to context vectors, as students might write them."""

import math
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

ANSWERS = []


def answer(name, backend, label, verdict, why=""):
    def note(function):
        ANSWERS.append((name, backend, label, verdict, function, why))
        return function

    return note


# Stand-ins for the functions of attnlib that the notebook hands out.
def _softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _additive(query, key, w_query, w_key, v):
    return np.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]) @ v


def _rnn_cell(x, h, w_ih, w_hh, b_ih, b_hh):
    return np.tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh)


attnlib = SimpleNamespace(
    softmax=_softmax,
    additive=_additive,
    rnn_cell=_rnn_cell,
    dot=lambda query, key: query @ np.swapaxes(key, -1, -2),
    general=lambda query, key, weight: query @ weight @ np.swapaxes(key, -1, -2),
)
CELL = ("w_ih", "w_hh", "b_ih", "b_hh")


# ---------------------------------------------------------------- rnn_cell


@answer(
    "rnn_cell",
    "numpy",
    "transposed twice",
    "wrong",
    "w_hh @ h.T works for one state and for a table of them; with two dimensions in front .T mixes them up",
)
def rnn_cell_double_t(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    from_state = (w_hh @ h.T).T + b_hh
    return np.tanh(from_input + from_state)


@answer(
    "rnn_cell",
    "numpy",
    "diagonal only",
    "wrong",
    "each number of the new state sees only its own old one: the rest of w_hh is not used",
)
def rnn_cell_diagonal(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    return np.tanh(from_input + h * np.diagonal(w_hh) + b_hh)


@answer("rnn_cell", "numpy", "first bias again", "wrong", "adds b_ih a second time where b_hh belongs")
def rnn_cell_bias(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    from_state = np.einsum("...j,ij->...i", h, w_hh) + b_ih
    return np.tanh(from_input + from_state)


@answer(
    "rnn_cell",
    "numpy",
    "columns of w_hh",
    "wrong",
    "sums over the rows of w_hh: the square weight is used transposed, and NumPy cannot tell",
)
def rnn_cell_columns(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    from_state = sum(h[..., j, None] * w_hh[j] for j in range(len(w_hh)))
    return np.tanh(from_input + from_state + b_hh)


@answer("rnn_cell", "numpy", "side by side", "right")
def rnn_cell_concat(x, h, w_ih, w_hh, b_ih, b_hh):
    both = np.concatenate([x, h], axis=-1)
    table = np.hstack([w_ih, w_hh])
    up = np.exp(-2 * np.abs(z := both @ table.T + (b_ih + b_hh)))
    return np.sign(z) * (1 - up) / (1 + up)


# ---------------------------------------------------------------- additive


@answer("additive", "numpy", "v inside", "wrong", "multiplies by v before the tanh; v reads off the squashed numbers")
def additive_v_inside(query, key, w_query, w_key, v):
    q, k = query @ w_query, key @ w_key
    return np.tanh((q[..., :, None, :] + k[..., None, :, :]) * v).sum(-1)


@answer(
    "additive",
    "numpy",
    "tile for repeat",
    "wrong",
    "tiles both tables the same way, so pair number n is query n mod T with key n mod S",
)
def additive_tile(query, key, w_query, w_key, v):
    q, k = query @ w_query, key @ w_key
    T, S = q.shape[-2], k.shape[-2]
    ones = (1,) * (q.ndim - 2)
    pairs = np.tile(q, (*ones, S, 1)) + np.tile(k, (*ones, T, 1))
    scores = np.tanh(pairs) @ v
    return scores.reshape(*q.shape[:-2], T, S)


@answer(
    "additive",
    "numpy",
    "sum over axis 2",
    "wrong",
    "axis=2 is the width D_a only without a batch; with one it is the keys",
)
def additive_axis2(query, key, w_query, w_key, v):
    q = np.expand_dims(query @ w_query, -2)
    k = np.expand_dims(key @ w_key, -3)
    return np.sum(v * np.tanh(q + k), axis=2)


@answer(
    "additive",
    "numpy",
    "rows for the keys",
    "wrong",
    "the new axes are at the wrong tables: the scores come out as (..., S, T)",
)
def additive_swapped(query, key, w_query, w_key, v):
    projected_query = (query @ w_query)[..., None, :, :]
    projected_key = (key @ w_key)[..., :, None, :]
    return np.tanh(projected_query + projected_key).dot(v)


@answer(
    "additive",
    "numpy",
    "scaled",
    "wrong",
    "divides by the root of the width as with dot products; the additive score has no such factor",
)
def additive_scaled(query, key, w_query, w_key, v):
    hidden = np.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :])
    return np.einsum("...tsa,a->...ts", hidden, v) / np.sqrt(len(v))


@answer("additive", "numpy", "one hidden number after the other", "right")
def additive_by_hidden(query, key, w_query, w_key, v):
    scores = 0.0
    for column_q, column_k, weight in zip(w_query.T, w_key.T, v, strict=True):
        scores = scores + weight * np.tanh((query @ column_q)[..., :, None] + (key @ column_k)[..., None, :])
    return scores


# ---------------------------------------------------------------- general


@answer(
    "general",
    "numpy",
    "symmetrised",
    "wrong",
    "makes the weight symmetric; the order of query and key is part of what W has learned",
)
def general_symmetrised(query, key, weight):
    if weight.shape[0] == weight.shape[1]:
        weight = (weight + weight.T) / 2
    return query @ weight @ np.swapaxes(key, -1, -2)


@answer(
    "general",
    "numpy",
    "only if it does not fit",
    "wrong",
    "turns the weight only where the shapes raise an error: a square weight is still used the wrong way round",
)
def general_try(query, key, weight):
    try:
        found = key @ weight @ np.swapaxes(query, -1, -2)
    except ValueError:
        found = key @ weight.T @ np.swapaxes(query, -1, -2)
    return np.swapaxes(found, -1, -2)


@answer(
    "general",
    "numpy",
    "letters for one batch",
    "wrong",
    "the letters of einsum ask for exactly one batch dimension: matrices, or two batch dimensions, crash",
)
def general_letters(query, key, weight):
    return np.einsum("btd,de,bse->bts", query, weight, key)


@answer("general", "numpy", "both transposed", "right")
def general_both(query, key, weight):
    found = key @ weight.T @ np.swapaxes(query, -1, -2)
    return np.swapaxes(found, -1, -2)


# ---------------------------------------------------------------- bahdanau_step


@answer(
    "bahdanau_step",
    "numpy",
    "new axis in front",
    "wrong",
    "state[None] puts the axis of the queries before the batch: every sentence asks the first memory",
)
def bahdanau_none_in_front(y, state, memory, params):
    scores = attnlib.additive(state[None], memory, params["w_query"], params["w_key"], params["v"])
    weights = attnlib.softmax(scores)[0]
    context = np.einsum("...s,...sm->...m", weights, memory)
    new = attnlib.rnn_cell(np.concatenate([y, context], -1), state, *(params[n] for n in CELL))
    return new, context, weights


@answer(
    "bahdanau_step",
    "numpy",
    "squeeze everything",
    "wrong",
    "np.squeeze without an axis also takes away a batch of one sentence, and a memory of one row",
)
def bahdanau_squeeze(y, state, memory, params):
    p = params
    scores = attnlib.additive(state[..., None, :], memory, p["w_query"], p["w_key"], p["v"])
    table = attnlib.softmax(scores)
    context = (table @ memory)[..., 0, :]
    new = attnlib.rnn_cell(np.concatenate([y, context], axis=-1), state, p["w_ih"], p["w_hh"], p["b_ih"], p["b_hh"])
    return new, context, np.squeeze(table)


@answer(
    "bahdanau_step",
    "numpy",
    "softmax over the first axis",
    "wrong",
    "softmax along axis 0: the rows of the memory without a batch, the sentences with one",
)
def bahdanau_axis0(y, state, memory, params):
    scores = attnlib.additive(np.expand_dims(state, -2), memory, params["w_query"], params["w_key"], params["v"])
    weights = attnlib.softmax(scores[..., 0, :], axis=0)
    context = (weights[..., None] * memory).sum(axis=-2)
    x = np.concatenate((y, context), axis=-1)
    return attnlib.rnn_cell(x, state, *[params[k] for k in CELL]), context, weights


@answer(
    "bahdanau_step",
    "numpy",
    "context of the next look",
    "wrong",
    "asks a second time with the new state and returns that context and those weights",
)
def bahdanau_second_look(y, state, memory, params):
    def look(s):
        e = attnlib.additive(s[..., None, :], memory, params["w_query"], params["w_key"], params["v"])
        w = attnlib.softmax(e)
        return (w @ memory)[..., 0, :], w[..., 0, :]

    context, weights = look(state)
    state = attnlib.rnn_cell(np.concatenate([y, context], -1), state, *(params[k] for k in CELL))
    context, weights = look(state)
    return state, context, weights


@answer(
    "bahdanau_step",
    "numpy",
    "hard choice",
    "wrong",
    "takes the one row of the memory with the largest weight in place of the weighted sum",
)
def bahdanau_hard(y, state, memory, params):
    e = attnlib.additive(state[..., None, :], memory, params["w_query"], params["w_key"], params["v"])[..., 0, :]
    weights = attnlib.softmax(e)
    best = weights.argmax(-1)[..., None, None]
    context = np.take_along_axis(memory, best, axis=-2)[..., 0, :]
    new = attnlib.rnn_cell(np.concatenate([y, context], -1), state, *(params[k] for k in CELL))
    return new, context, weights


@answer("bahdanau_step", "numpy", "two columns of weights", "right")
def bahdanau_split(y, state, memory, params):
    asked = (state @ params["w_query"])[..., None, :]
    energy = np.sum(np.tanh(asked + memory @ params["w_key"]) * params["v"], axis=-1, keepdims=True)
    weights = attnlib.softmax(energy, axis=-2)
    context = np.sum(weights * memory, axis=-2)
    width = y.shape[-1]
    z = y @ params["w_ih"][:, :width].T + context @ params["w_ih"][:, width:].T + state @ params["w_hh"].T
    return np.tanh(z + params["b_hh"] + params["b_ih"]), context, weights[..., 0]


# ---------------------------------------------------------------- luong_step


def _compare(memory, params, score):
    def compare(queries):
        if score == "dot":
            return attnlib.dot(queries, memory)
        if score == "general":
            return attnlib.general(queries, memory, params["weight"])
        return attnlib.additive(queries, memory, *(params[name] for name in ("w_query", "w_key", "v")))

    return compare


@answer(
    "luong_step",
    "numpy",
    "softmax over the one query",
    "wrong",
    "softmax along the axis of length 1: every weight is 1, and the context is the plain sum",
)
def luong_axis(y, state, memory, params, *, score="dot"):
    compare = _compare(memory, params, score)
    s = attnlib.rnn_cell(y, state, *(params[k] for k in CELL))
    w = attnlib.softmax(compare(s[..., None, :]), axis=-2)
    c = (w @ memory)[..., 0, :]
    return s, np.tanh(np.concatenate([c, s], -1) @ params["w_c"]), w[..., 0, :]


@answer(
    "luong_step",
    "numpy",
    "old state in the mix",
    "wrong",
    "mixes the context with the old state; the formula has the new one",
)
def luong_old_mix(y, state, memory, params, *, score="dot"):
    compare = _compare(memory, params, score)
    new_state = attnlib.rnn_cell(y, state, params["w_ih"], params["w_hh"], params["b_ih"], params["b_hh"])
    weights = attnlib.softmax(compare(new_state[..., None, :]))
    context = weights @ memory
    mixed = np.tanh(np.concatenate([context[..., 0, :], state], axis=-1) @ params["w_c"])
    return new_state, mixed, weights[..., 0, :]


@answer(
    "luong_step",
    "numpy",
    "sum over the first axis",
    "wrong",
    "sums over axis 0: the rows of the memory without a batch, the sentences with one",
)
def luong_sum0(y, state, memory, params, *, score="dot"):
    compare = _compare(memory, params, score)
    s = attnlib.rnn_cell(y, state, *(params[k] for k in CELL))
    a = attnlib.softmax(compare(np.expand_dims(s, -2)))[..., 0, :]
    c = (a[..., None] * memory).sum(axis=0)
    return s, np.tanh(np.concatenate((c, s), axis=-1) @ params["w_c"]), a


@answer(
    "luong_step",
    "numpy",
    "tanh before the matrix",
    "wrong",
    "squashes [c; s] and then multiplies; the tanh belongs around the product",
)
def luong_tanh_early(y, state, memory, params, *, score="dot"):
    compare = _compare(memory, params, score)
    s = attnlib.rnn_cell(y, state, *(params[k] for k in CELL))
    w = attnlib.softmax(compare(s[..., None, :]))
    c = np.squeeze(w @ memory, axis=-2)
    h = np.tanh(np.concatenate([c, s], axis=-1)) @ params["w_c"]
    return s, h, np.squeeze(w, axis=-2)


@answer(
    "luong_step",
    "numpy",
    "h~ as the next state",
    "wrong",
    "overwrites the state by h~ and returns it twice; the next state is s_t",
)
def luong_overwritten(y, state, memory, params, *, score="dot"):
    compare = _compare(memory, params, score)
    state = attnlib.rnn_cell(y, state, *(params[k] for k in CELL))
    w = attnlib.softmax(compare(state[..., None, :]))
    c = (w @ memory)[..., 0, :]
    state = np.tanh(np.concatenate([c, state], -1) @ params["w_c"])
    return state, state, w[..., 0, :]


@answer("luong_step", "numpy", "w_c in two parts", "right")
def luong_parts(y, state, memory, params, *, score="dot"):
    compare = _compare(memory, params, score)
    s = attnlib.rnn_cell(y, state, *(params[k] for k in CELL))
    w = attnlib.softmax(compare(s[..., None, :]))
    c = np.einsum("...qs,...sm->...m", w, memory)
    upper, lower = np.split(params["w_c"], [memory.shape[-1]])
    return s, np.tanh(c @ upper + s @ lower), w.sum(axis=-2)


# ---------------------------------------------------------------- bahdanau_step, torch


@answer(
    "bahdanau_step",
    "torch",
    "tanh in place",
    "wrong",
    "multiplies in place what tanh_ has kept for its gradient: backward raises a RuntimeError",
)
def bahdanau_torch_in_place(y, state, memory, params):
    energy = memory @ params["w_key"]
    energy += (state @ params["w_query"]).unsqueeze(-2)
    energy.tanh_()
    energy *= params["v"]
    weights = torch.softmax(energy.sum(-1), dim=-1)
    context = (weights.unsqueeze(-1) * memory).sum(-2)
    x = torch.cat([y, context], dim=-1)
    new = torch.tanh(x @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"])
    return new, context, weights


@answer(
    "bahdanau_step",
    "torch",
    "wrapped as Parameter",
    "wrong",
    "nn.Parameter makes a new leaf of each weight: the weights that came in get no gradient",
)
def bahdanau_torch_parameter(y, state, memory, params):
    w = {name: nn.Parameter(p) for name, p in params.items()}
    scores = torch.tanh((state @ w["w_query"]).unsqueeze(-2) + memory @ w["w_key"]) @ w["v"]
    weights = F.softmax(scores, dim=-1)
    context = torch.einsum("...s,...sm->...m", weights, memory)
    x = torch.cat((y, context), -1)
    return torch.tanh(F.linear(x, w["w_ih"], w["b_ih"]) + F.linear(state, w["w_hh"], w["b_hh"])), context, weights


@answer(
    "bahdanau_step",
    "torch",
    "keys detached",
    "wrong",
    "the keys are detached, so the memory learns only as value, and w_key is all that moves the scores",
)
def bahdanau_torch_detached_keys(y, state, memory, params):
    keys = memory.detach() @ params["w_key"]
    scores = torch.tanh((state @ params["w_query"])[..., None, :] + keys) @ params["v"]
    alpha = scores.softmax(-1)
    context = (alpha[..., None, :] @ memory)[..., 0, :]
    x = torch.cat([y, context], dim=-1)
    new = torch.tanh(x @ params["w_ih"].mT + params["b_ih"] + state @ params["w_hh"].mT + params["b_hh"])
    return new, context, alpha


@answer(
    "bahdanau_step",
    "torch",
    "unsqueeze(1)",
    "wrong",
    "unsqueeze(1) is the right place for exactly one batch dimension; without one it makes a column",
)
def bahdanau_torch_unsqueeze1(y, state, memory, params):
    hidden = torch.tanh((state @ params["w_query"]).unsqueeze(1) + memory @ params["w_key"])
    weights = torch.softmax(hidden @ params["v"], dim=1)
    context = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
    rnn_input = torch.cat([y, context], dim=1)
    new = torch.tanh(rnn_input @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"])
    return new, context, weights


@answer(
    "bahdanau_step",
    "torch",
    "context first",
    "wrong",
    "puts the context before y, as in d2l: here it is [y; c], and the columns of w_ih belong to that order",
)
def bahdanau_torch_d2l(y, state, memory, params):
    queries, keys = state @ params["w_query"], memory @ params["w_key"]
    features = torch.tanh(queries.unsqueeze(-2) + keys)
    attention_weights = nn.functional.softmax((features * params["v"]).sum(-1), dim=-1)
    context = torch.matmul(attention_weights.unsqueeze(-2), memory).squeeze(-2)
    x = torch.cat((context, y), dim=-1)
    out = torch.tanh(x @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"])
    return out, context, attention_weights


@answer(
    "bahdanau_step",
    "torch",
    "exponentials as plain numbers",
    "wrong",
    "the sum below the fraction is taken with .tolist(), as a plain number, so part of the gradient is lost",
)
def bahdanau_torch_plain_total(y, state, memory, params):
    scores = torch.tanh((state @ params["w_query"]).unsqueeze(-2) + memory @ params["w_key"]) @ params["v"]
    e = torch.exp(scores - scores.max(-1, keepdim=True).values)
    total = e.new_tensor(e.sum(-1, keepdim=True).tolist())
    weights = e / total
    context = (weights.unsqueeze(-1) * memory).sum(dim=-2)
    x = torch.cat([y, context], -1)
    new = torch.tanh(F.linear(x, params["w_ih"], params["b_ih"]) + F.linear(state, params["w_hh"], params["b_hh"]))
    return new, context, weights


@answer("bahdanau_step", "torch", "one linear map for the cell", "right")
def bahdanau_torch_one_map(y, state, memory, params):
    project = torch.einsum("...sm,ma->...sa", memory, params["w_key"])
    ask = torch.einsum("...d,da->...a", state, params["w_query"])
    scores = torch.einsum("...sa,a->...s", (project + ask.unsqueeze(-2)).tanh(), params["v"])
    weights = (scores - scores.logsumexp(-1, keepdim=True)).exp()
    context = torch.einsum("...s,...sm->...m", weights, memory)
    everything = torch.cat([y, context, state], dim=-1)
    table = torch.cat([params["w_ih"], params["w_hh"]], dim=1)
    return F.linear(everything, table, params["b_ih"] + params["b_hh"]).tanh(), context, weights
