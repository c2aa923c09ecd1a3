"""Answers to the notebook from RNNs to context vectors, as students might write them."""

import math
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn

ANSWERS = []


def answer(name, backend, label, verdict, why=""):
    def note(function):
        ANSWERS.append((name, backend, label, verdict, function, why))
        return function

    return note


# Stand-ins for what the notebook takes from attnlib.
def _softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _dot(query, key):
    return query @ np.swapaxes(key, -1, -2)


def _general(query, key, weight):
    return query @ weight @ np.swapaxes(key, -1, -2)


def _additive(query, key, w_query, w_key, v):
    return np.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]) @ v


def _rnn_cell(x, h, w_ih, w_hh, b_ih, b_hh):
    return np.tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh)


attnlib = SimpleNamespace(softmax=_softmax, dot=_dot, general=_general, additive=_additive, rnn_cell=_rnn_cell)

SCORE = ("w_query", "w_key", "v")
CELL = ("w_ih", "w_hh", "b_ih", "b_hh")

# ---------------------------------------------------------------- rnn_cell


@answer(
    "rnn_cell",
    "numpy",
    "square weight not turned",
    "wrong",
    "w_hh is not transposed; it is square, so NumPy does not complain.",
)
def rnn_cell_w1(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    from_state = h @ w_hh + b_hh
    return np.tanh(from_input + from_state)


@answer("rnn_cell", "numpy", "two tanhs", "wrong", "Each part is squashed by itself; the tanh belongs round the sum.")
def rnn_cell_w2(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    from_state = h @ w_hh.T + b_hh
    return np.tanh(from_input) + np.tanh(from_state)


@answer("rnn_cell", "numpy", "the input's bias once more", "wrong", "b_ih is added twice and b_hh never.")
def rnn_cell_w3(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    total = from_input + np.einsum("...i,ji->...j", h, w_hh)
    total += b_ih
    return np.tanh(total)


@answer(
    "rnn_cell",
    "numpy",
    "a column vector",
    "wrong",
    "w_hh @ h is right for a single state only: in a batch it fails, or mixes the sentences.",
)
def rnn_cell_w4(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    from_state = w_hh @ h + b_hh
    return np.tanh(from_input + from_state)


@answer("rnn_cell", "numpy", "state overwritten", "wrong", "The new state is written into the caller's old one.")
def rnn_cell_w5(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    h[...] = np.tanh(from_input + h @ w_hh.T + b_hh)
    return h


@answer("rnn_cell", "numpy", "one long weight", "right")
def rnn_cell_r1(x, h, w_ih, w_hh, b_ih, b_hh):
    w = np.hstack([w_ih, w_hh, (b_ih + b_hh)[:, None]])
    xh1 = np.concatenate([x, h, np.ones(x.shape[:-1] + (1,))], axis=-1)
    return np.tanh(np.einsum("...i,oi->...o", xh1, w))


# ---------------------------------------------------------------- additive


@answer(
    "additive",
    "numpy",
    "pairs without new axes",
    "wrong",
    "Query i meets key i alone: without new axes the two tables are added row by row.",
)
def additive_w1(query, key, w_query, w_key, v):
    hidden = np.tanh(query @ w_query + key @ w_key)
    scores = hidden @ v
    return np.repeat(scores[..., :, None], key.shape[-2], axis=-1)


@answer(
    "additive",
    "numpy",
    "axes counted from the front",
    "wrong",
    "[:, None] and [None] count from the front: right for matrices, wrong for a batch.",
)
def additive_w2(query, key, w_query, w_key, v):
    q = (query @ w_query)[:, None]
    k = (key @ w_key)[None]
    return np.tanh(q + k) @ v


@answer(
    "additive", "numpy", "added in place", "wrong", "+= cannot grow an array: (..., T, 1, D_a) has no room for S keys."
)
def additive_w3(query, key, w_query, w_key, v):
    total = np.expand_dims(query @ w_query, -2)
    total += np.expand_dims(key @ w_key, -3)
    return np.tanh(total).dot(v)


@answer(
    "additive",
    "numpy",
    "tanh of each part",
    "wrong",
    "Both parts are squashed before the addition, so the score of a pair falls apart into two terms.",
)
def additive_w4(query, key, w_query, w_key, v):
    q = np.tanh(query @ w_query) @ v
    k = np.tanh(key @ w_key) @ v
    return q[..., :, None] + k[..., None, :]


@answer(
    "additive",
    "numpy",
    "weights as in task 2",
    "wrong",
    "The weights are transposed as in task 2, but here they have a column for each number.",
)
def additive_w5(query, key, w_query, w_key, v):
    q = query @ w_query.T
    k = key @ w_key.T
    return np.sum(v * np.tanh(q[..., :, None, :] + k[..., None, :, :]), axis=-1)


@answer(
    "additive", "numpy", "weights already", "wrong", "A softmax is taken already: the function is to return scores."
)
def additive_w6(query, key, w_query, w_key, v):
    sums = (query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]
    e = np.tanh(sums) @ v
    return attnlib.softmax(e)


@answer(
    "additive",
    "numpy",
    "loop with the wrong letter",
    "wrong",
    "In the inner loop the key of row i is taken in place of row j, and the weights of the last key decide nothing.",
)
def additive_w7(query, key, w_query, w_key, v):
    T, S = query.shape[-2], key.shape[-2]
    scores = np.zeros((*query.shape[:-1], S))
    for i in range(T):
        for j in range(S):
            hidden = np.tanh(query[..., i, :] @ w_query + key[..., i % S, :] @ w_key)
            scores[..., i, j] = hidden @ v
    return scores


@answer("additive", "numpy", "concat in Luong's way", "right")
def additive_r1(query, key, w_query, w_key, v):
    T, S = query.shape[-2], key.shape[-2]
    q = np.repeat(query[..., :, None, :], S, axis=-2)
    k = np.repeat(key[..., None, :, :], T, axis=-3)
    w = np.concatenate([w_query, w_key], axis=0)
    return np.tanh(np.concatenate([q, k], axis=-1) @ w) @ v


# ---------------------------------------------------------------- general


@answer(
    "general",
    "numpy",
    "weight turned too",
    "wrong",
    "Both the order and the weight are turned round, so the transposed weight is used as before.",
)
def general_w1(query, key, weight):
    if weight.shape[0] == weight.shape[1]:
        return query @ weight.T @ np.swapaxes(key, -1, -2)
    return query @ weight @ np.swapaxes(key, -1, -2)


@answer(
    "general",
    "numpy",
    "made symmetric",
    "wrong",
    "The weight is replaced by its symmetric part, which changes every weight that is not symmetric.",
)
def general_w2(query, key, weight):
    if weight.shape[0] == weight.shape[1]:
        weight = (weight + weight.T) / 2
    return np.einsum("...ti,ij,...sj->...ts", query, weight, key)


@answer("general", "numpy", "np.dot of stacks", "wrong", "np.dot of two stacks pairs every batch with every other.")
def general_w3(query, key, weight):
    return np.dot(np.dot(query, weight), np.swapaxes(key, -1, -2))


@answer(
    "general",
    "numpy",
    "not turned back",
    "wrong",
    "The weight is right now, but the table still has a row for each key.",
)
def general_w4(query, key, weight):
    found = key @ weight.T @ np.swapaxes(query, -1, -2)
    return found


@answer("general", "numpy", "plain products pair by pair", "right")
def general_r1(query, key, weight):
    asked = np.swapaxes(weight @ np.swapaxes(key, -1, -2), -1, -2)  # (..., S, D_q)
    scores = [(query * asked[..., j : j + 1, :]).sum(-1) for j in range(key.shape[-2])]
    return np.stack(scores, axis=-1)


# ---------------------------------------------------------------- bahdanau_step


@answer("bahdanau_step", "numpy", "context in front of y", "wrong", "The cell gets [c; y] in place of [y; c].")
def bahdanau_w1(y, state, memory, params):
    e = attnlib.additive(state[..., None, :], memory, params["w_query"], params["w_key"], params["v"])[..., 0, :]
    a = attnlib.softmax(e)
    c = (a[..., None] * memory).sum(axis=-2)
    s = attnlib.rnn_cell(
        np.concatenate((c, y), -1), state, params["w_ih"], params["w_hh"], params["b_ih"], params["b_hh"]
    )
    return s, c, a


@answer(
    "bahdanau_step",
    "numpy",
    "squeeze",
    "wrong",
    "squeeze takes away every axis of size 1, also that of a batch of one sentence or of a memory of one row.",
)
def bahdanau_w2(y, state, memory, params):
    scores = attnlib.additive(np.expand_dims(state, -2), memory, *[params[n] for n in SCORE])
    weights = attnlib.softmax(scores)
    context = np.squeeze(weights @ memory)
    new = attnlib.rnn_cell(np.concatenate([y, context], axis=-1), state, *[params[n] for n in CELL])
    return new, context, np.squeeze(weights)


@answer(
    "bahdanau_step",
    "numpy",
    "popped parameters",
    "wrong",
    "pop takes the parameters out of the caller's dictionary, so that the second step fails.",
)
def bahdanau_w3(y, state, memory, params):
    query = state[..., None, :]
    scores = attnlib.additive(query, memory, params.pop("w_query"), params.pop("w_key"), params.pop("v"))
    weights = attnlib.softmax(scores)
    context = (weights @ memory)[..., 0, :]
    state = attnlib.rnn_cell(np.concatenate([y, context], axis=-1), state, **params)
    return state, context, weights[..., 0, :]


@answer(
    "bahdanau_step",
    "numpy",
    "new state asks",
    "wrong",
    "The memory is asked with the new state for what is returned: in Bahdanau's order the last state asks.",
)
def bahdanau_w4(y, state, memory, params):
    def look(s):
        w = attnlib.softmax(attnlib.additive(s[..., None, :], memory, *(params[n] for n in SCORE)))
        return (w @ memory)[..., 0, :], w[..., 0, :]

    context, weights = look(state)
    new_state = attnlib.rnn_cell(np.concatenate([y, context], -1), state, *(params[n] for n in CELL))
    context, weights = look(new_state)
    return new_state, context, weights


@answer(
    "bahdanau_step",
    "numpy",
    "softmax before the axis is gone",
    "wrong",
    "The softmax runs along the axis of the one query, where every weight becomes 1.",
)
def bahdanau_w5(y, state, memory, params):
    e = attnlib.additive(state[..., None, :], memory, params["w_query"], params["w_key"], params["v"])
    alpha = attnlib.softmax(e, axis=-2)[..., 0, :]
    c = np.einsum("...s,...sd->...d", alpha, memory)
    yc = np.concatenate([y, c], axis=-1)
    return attnlib.rnn_cell(yc, state, *map(params.get, CELL)), c, alpha


@answer(
    "bahdanau_step",
    "numpy",
    "einsum with a batch letter",
    "wrong",
    "The einsum demands exactly one dimension in front, so a single sentence fails.",
)
def bahdanau_w6(y, state, memory, params):
    e = attnlib.additive(state[..., None, :], memory, *(params[n] for n in SCORE))
    a = attnlib.softmax(e)[..., 0, :]
    c = np.einsum("bs,bsd->bd", a, memory)
    s = attnlib.rnn_cell(np.concatenate([y, c], -1), state, *(params[n] for n in CELL))
    return s, c, a


@answer(
    "bahdanau_step",
    "numpy",
    "context first",
    "wrong",
    "The context is returned first; the next state has to come first.",
)
def bahdanau_w7(y, state, memory, params):
    q = state[..., None, :]
    w = attnlib.softmax(attnlib.additive(q, memory, params["w_query"], params["w_key"], params["v"]))
    context = (w @ memory)[..., 0, :]
    w = w[..., 0, :]
    cell = {name: params[name] for name in CELL}
    return context, attnlib.rnn_cell(np.concatenate([y, context], -1), state, **cell), w


@answer(
    "bahdanau_step",
    "numpy",
    "y twice the state",
    "wrong",
    "The cell runs on a fresh state of zeros: the last state asks, but it is not passed on.",
)
def bahdanau_w8(y, state, memory, params):
    h = np.zeros_like(state)
    alpha = attnlib.softmax(attnlib.additive(state[..., None, :], memory, *(params[n] for n in SCORE)))[..., 0, :]
    context = (memory * alpha[..., None]).sum(-2)
    h = attnlib.rnn_cell(np.concatenate([y, context], axis=-1), h, *(params[n] for n in CELL))
    return h, context, alpha


@answer("bahdanau_step", "numpy", "a class that runs along the memory", "right")
def bahdanau_r1(y, state, memory, params):
    class Look:
        def __init__(self):
            self.scores = []

        def score(self, row):
            hidden = state @ params["w_query"] + row @ params["w_key"]
            self.scores.append((np.tanh(hidden) * params["v"]).sum(-1))

        def weights(self):
            e = np.stack(self.scores, -1)
            e = np.exp(e - e.max(-1, keepdims=True))
            return e / e.sum(-1, keepdims=True)

    look = Look()
    for j in range(memory.shape[-2]):
        look.score(memory[..., j, :])
    weights = look.weights()
    context = sum(weights[..., j, None] * memory[..., j, :] for j in range(memory.shape[-2]))
    D_y = y.shape[-1]
    new = y @ params["w_ih"][:, :D_y].T + context @ params["w_ih"][:, D_y:].T + state @ params["w_hh"].T
    return np.tanh(new + params["b_ih"] + params["b_hh"]), context, weights


# ---------------------------------------------------------------- luong_step


def _compare(score, memory, params):
    """The part of luong_step that is given in the notebook."""

    def compare(queries):
        if score == "dot":
            return attnlib.dot(queries, memory)
        if score == "general":
            return attnlib.general(queries, memory, params["weight"])
        return attnlib.additive(queries, memory, *(params[name] for name in ("w_query", "w_key", "v")))

    return compare


@answer("luong_step", "numpy", "old state asks", "wrong", "The last state asks, as in task 6; here the new one has to.")
def luong_w1(y, state, memory, params, *, score="dot"):
    compare = _compare(score, memory, params)
    weights = attnlib.softmax(compare(state[..., None, :]))
    new_state = attnlib.rnn_cell(y, state, params["w_ih"], params["w_hh"], params["b_ih"], params["b_hh"])
    context = (weights @ memory)[..., 0, :]
    h = np.tanh(np.concatenate([context, new_state], axis=-1) @ params["w_c"])
    return new_state, h, weights[..., 0, :]


@answer("luong_step", "numpy", "state in front of the context", "wrong", "W_c gets [s; c] in place of [c; s].")
def luong_w2(y, state, memory, params, *, score="dot"):
    compare = _compare(score, memory, params)
    s = attnlib.rnn_cell(y, state, *(params[n] for n in CELL))
    a = attnlib.softmax(compare(s[..., None, :]))[..., 0, :]
    c = np.einsum("...s,...sd->...d", a, memory)
    return s, np.tanh(np.concatenate([s, c], -1) @ params["w_c"]), a


@answer("luong_step", "numpy", "mix without tanh", "wrong", "h~ lacks the tanh.")
def luong_w3(y, state, memory, params, *, score="dot"):
    compare = _compare(score, memory, params)
    s_t = attnlib.rnn_cell(y, state, *(params[n] for n in CELL))
    alpha = attnlib.softmax(compare(np.expand_dims(s_t, axis=-2)))
    c = (alpha @ memory)[..., 0, :]
    D_m = memory.shape[-1]
    h_tilde = c @ params["w_c"][:D_m] + s_t @ params["w_c"][D_m:]
    return s_t, h_tilde, alpha[..., 0, :]


@answer(
    "luong_step",
    "numpy",
    "h~ as the next state",
    "wrong",
    "h~ is returned in place of the next state, and the context in place of h~.",
)
def luong_w4(y, state, memory, params, *, score="dot"):
    compare = _compare(score, memory, params)
    state = attnlib.rnn_cell(y, state, *(params[n] for n in CELL))
    weights = attnlib.softmax(compare(state[..., None, :]))[..., 0, :]
    context = (weights[..., None] * memory).sum(-2)
    state = np.tanh(np.concatenate([context, state], -1) @ params["w_c"])
    return state, context, weights


@answer(
    "luong_step", "numpy", "weights of a table", "wrong", "The axis of the one query stays in the weights: (..., 1, S)."
)
def luong_w5(y, state, memory, params, *, score="dot"):
    compare = _compare(score, memory, params)
    s = attnlib.rnn_cell(y, state, *(params[n] for n in CELL))
    weights = attnlib.softmax(compare(s[..., None, :]))
    context = (weights @ memory).reshape(memory.shape[:-2] + memory.shape[-1:])
    h = np.tanh(np.concatenate((context, s), axis=-1) @ params["w_c"])
    return s, h, weights


@answer(
    "luong_step",
    "numpy",
    "scaled like a transformer",
    "wrong",
    "The scores are divided by the root of the width; Luong's are not.",
)
def luong_w6(y, state, memory, params, *, score="dot"):
    compare = _compare(score, memory, params)
    s = attnlib.rnn_cell(y, state, *(params[n] for n in CELL))
    weights = attnlib.softmax(compare(s[..., None, :]) / math.sqrt(s.shape[-1]))
    context = (weights @ memory)[..., 0, :]
    return s, np.tanh(np.concatenate([context, s], axis=-1) @ params["w_c"]), weights[..., 0, :]


@answer("luong_step", "numpy", "joined along the rows", "wrong", "axis=0 joins context and state only without a batch.")
def luong_w7(y, state, memory, params, *, score="dot"):
    compare = _compare(score, memory, params)
    s = attnlib.rnn_cell(y, state, *(params[n] for n in CELL))
    weights = attnlib.softmax(compare(s[..., None, :]))[..., 0, :]
    context = (weights[..., None, :] @ memory)[..., 0, :]
    return s, np.tanh(np.concatenate([context, s]) @ params["w_c"]), weights


@answer(
    "luong_step",
    "numpy",
    "old state mixed in",
    "wrong",
    "The last state is mixed with the context in place of the new one.",
)
def luong_w8(y, state, memory, params, *, score="dot"):
    compare = _compare(score, memory, params)
    new = attnlib.rnn_cell(y, state, *(params[n] for n in CELL))
    weights = attnlib.softmax(compare(new[..., None, :]))
    context = (weights @ memory)[..., 0, :]
    mixed = np.concatenate([context, state], axis=-1)
    return new, np.tanh(mixed @ params["w_c"]), weights[..., 0, :]


@answer("luong_step", "numpy", "columns and blocks", "right")
def luong_r1(y, state, memory, params, *, score="dot"):
    compare = _compare(score, memory, params)
    new = np.tanh(
        np.einsum("...i,oi->...o", y, params["w_ih"]) + state @ params["w_hh"].T + params["b_ih"] + params["b_hh"]
    )
    scores = compare(new.reshape(*new.shape[:-1], 1, new.shape[-1]))
    weights = attnlib.softmax(np.swapaxes(scores, -1, -2), axis=-2)  # (..., S, 1)
    context = (np.swapaxes(memory, -1, -2) @ weights)[..., 0]
    upper, lower = np.split(params["w_c"], [memory.shape[-1]], axis=0)
    return new, np.tanh(context @ upper + new @ lower), weights[..., 0]


# ---------------------------------------------------------------- bahdanau_step, torch


@answer(
    "bahdanau_step",
    "torch",
    "score under no_grad",
    "wrong",
    "The scores are computed under no_grad, so w_query, w_key and v are never trained.",
)
def bahdanau_torch_w1(y, state, memory, params):
    with torch.no_grad():
        q = (state @ params["w_query"]).unsqueeze(-2)
        e = torch.tanh(q + memory @ params["w_key"]) @ params["v"]
    weights = torch.softmax(e, dim=-1)
    context = (weights.unsqueeze(-1) * memory).sum(-2)
    x = torch.cat([y, context], dim=-1)
    new = torch.tanh(x @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"])
    return new, context, weights


@answer(
    "bahdanau_step",
    "torch",
    "batch first and always",
    "wrong",
    "unsqueeze(1), dim=1 and bmm count from the front: without a batch, or with two dimensions in front, they fail.",
)
def bahdanau_torch_w2(y, state, memory, params):
    energy = torch.tanh((state @ params["w_query"]).unsqueeze(1) + memory @ params["w_key"])
    attn = torch.softmax(energy @ params["v"], dim=1)
    context = torch.bmm(attn.unsqueeze(1), memory).squeeze(1)
    rnn_input = torch.cat((y, context), dim=1)
    hidden = torch.tanh(rnn_input @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"])
    return hidden, context, attn


@answer(
    "bahdanau_step",
    "torch",
    "nn.RNNCell with its own weights",
    "wrong",
    "A new RNNCell is made: its weights are random, and params plays no part in the step.",
)
def bahdanau_torch_w3(y, state, memory, params):
    e = torch.tanh((state @ params["w_query"])[..., None, :] + memory @ params["w_key"]) @ params["v"]
    a = e.softmax(-1)
    c = (a[..., None, :] @ memory)[..., 0, :]
    x = torch.cat([y, c], -1)
    cell = nn.RNNCell(x.shape[-1], state.shape[-1]).to(x)
    s = cell(x.reshape(-1, x.shape[-1]), state.reshape(-1, state.shape[-1])).reshape(state.shape)
    return s, c, a


@answer(
    "bahdanau_step",
    "torch",
    "memory detached as keys",
    "wrong",
    "The memory is detached where it serves as key; it moves the weights as well, and that gradient is lost.",
)
def bahdanau_torch_w4(y, state, memory, params):
    keys = memory.detach() @ params["w_key"]
    query = state @ params["w_query"]
    weights = torch.softmax((torch.tanh(keys + query.unsqueeze(-2)) * params["v"]).sum(-1), dim=-1)
    context = torch.einsum("...s,...sd->...d", weights, memory)
    inner = torch.cat([y, context], dim=-1) @ params["w_ih"].mT + params["b_ih"]
    return torch.tanh(inner + state @ params["w_hh"].mT + params["b_hh"]), context, weights


@answer(
    "bahdanau_step",
    "torch",
    "default dtype",
    "wrong",
    "torch.zeros makes a float32 tensor: with float64 inputs the product with w_hh or w_ih raises an error.",
)
def bahdanau_torch_w5(y, state, memory, params):
    q = (state @ params["w_query"]).unsqueeze(-2)
    weights = torch.softmax(torch.tanh(q + memory @ params["w_key"]) @ params["v"], dim=-1)
    both = torch.zeros(*y.shape[:-1], y.shape[-1] + memory.shape[-1])
    context = (weights.unsqueeze(-1) * memory).sum(dim=-2)
    both[..., : y.shape[-1]] = y
    both[..., y.shape[-1] :] = context
    new = torch.tanh(both @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"])
    return new, context, weights


@answer(
    "bahdanau_step",
    "torch",
    "nn.functional.linear everywhere",
    "wrong",
    "F.linear transposes the weight: that suits the cell, but not w_query and w_key, which are stored the other way round.",
)
def bahdanau_torch_w6(y, state, memory, params):
    linear = nn.functional.linear
    q, k = linear(state, params["w_query"]), linear(memory, params["w_key"])
    a = torch.softmax(torch.tanh(q.unsqueeze(-2) + k) @ params["v"], -1)
    c = (a.unsqueeze(-1) * memory).sum(-2)
    s = linear(torch.cat([y, c], -1), params["w_ih"], params["b_ih"]) + linear(state, params["w_hh"], params["b_hh"])
    return torch.tanh(s), c, a


@answer(
    "bahdanau_step",
    "torch",
    "truncated through time",
    "wrong",
    "The state is detached before the step, so no gradient reaches the steps before.",
)
def bahdanau_torch_w7(y, state, memory, params):
    state = state.detach()
    e = torch.einsum(
        "...sa,a->...s", torch.tanh((state @ params["w_query"]).unsqueeze(-2) + memory @ params["w_key"]), params["v"]
    )
    weights = torch.softmax(e, -1)
    context = torch.einsum("...s,...sd->...d", weights, memory)
    total = torch.cat([y, context], -1) @ params["w_ih"].T + state @ params["w_hh"].T + params["b_ih"] + params["b_hh"]
    return total.tanh(), context, weights


@answer("bahdanau_step", "torch", "shift by a detached maximum", "right")
def bahdanau_torch_r1(y, state, memory, params):
    w_y, w_c = params["w_ih"].split([y.shape[-1], memory.shape[-1]], dim=1)
    e = memory.matmul(params["w_key"]).add((state @ params["w_query"]).unsqueeze(-2)).tanh().matmul(params["v"])
    powers = (e - e.detach().max(dim=-1, keepdim=True).values).exp()
    total = powers.sum(-1, keepdim=True)
    context = torch.matmul(powers.unsqueeze(-2), memory).squeeze(-2) / total
    parts = [y @ w_y.t(), context @ w_c.t(), state @ params["w_hh"].t(), params["b_ih"], params["b_hh"]]
    return sum(parts).tanh(), context, powers / total


# ---------------------------------------------------------------- some more right ones


@answer("rnn_cell", "numpy", "tanh from an exponential", "right")
def rnn_cell_r2(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    z = from_input + np.tensordot(h, w_hh, axes=(-1, 1)) + b_hh
    with np.errstate(over="ignore"):
        return 1 - 2 / (np.exp(2 * z) + 1)


@answer("additive", "numpy", "a loop over the hidden numbers", "right")
def additive_r2(query, key, w_query, w_key, v):
    scores = np.zeros((*query.shape[:-1], key.shape[-2]))
    for a in range(len(v)):
        asked, found = query @ w_query[:, a], key @ w_key[:, a]  # (..., T), (..., S)
        scores += v[a] * np.tanh(asked[..., :, None] + found[..., None, :])
    return scores


@answer("luong_step", "numpy", "step for step with a helper", "right")
def luong_r2(y, state, memory, params, *, score="dot"):
    compare = _compare(score, memory, params)

    def average(rows, shares):
        return sum(shares[..., j : j + 1] * rows[..., j, :] for j in range(rows.shape[-2]))

    state = attnlib.rnn_cell(y, state, **{name: params[name] for name in CELL})
    alpha = attnlib.softmax(compare(state[..., None, :])[..., 0, :])
    together = np.zeros((*state.shape[:-1], len(params["w_c"])))
    together[..., -state.shape[-1] :] = state
    together[..., : memory.shape[-1]] = average(memory, alpha)
    return state, np.tanh(together @ params["w_c"]), alpha


@answer("bahdanau_step", "torch", "row by row with stack", "right")
def bahdanau_torch_r2(y, state, memory, params):
    asked = state @ params["w_query"]
    rows = memory.unbind(-2)
    e = torch.stack([((asked + m @ params["w_key"]).tanh() * params["v"]).sum(-1) for m in rows], dim=-1)
    weights = torch.exp(e - torch.logsumexp(e, -1, keepdim=True))
    context = torch.zeros_like(rows[0])
    for w, m in zip(weights.unbind(-1), rows):
        context = context + w.unsqueeze(-1) * m
    x = torch.cat([y, context, state], dim=-1)
    w = torch.cat([params["w_ih"], params["w_hh"]], dim=1)
    return torch.tanh(nn.functional.linear(x, w, params["b_ih"] + params["b_hh"])), context, weights
