"""Still more answers to the notebook "from RNNs to context vectors", by other readers."""

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


# Stand-ins for the library functions that the notebook offers.


def _softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _rnn_cell(x, h, w_ih, w_hh, b_ih, b_hh):
    return np.tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh)


def _additive(query, key, w_query, w_key, v):
    q, k = query @ w_query, key @ w_key
    return np.tanh(q[..., :, None, :] + k[..., None, :, :]) @ v


def _dot(query, key):
    return query @ np.swapaxes(key, -1, -2)


def _general(query, key, weight):
    return query @ weight @ np.swapaxes(key, -1, -2)


attnlib = SimpleNamespace(softmax=_softmax, rnn_cell=_rnn_cell, additive=_additive, dot=_dot, general=_general)


# ---------------------------------------------------------------- task 2: rnn_cell


@answer(
    "rnn_cell",
    "numpy",
    "w_hh not transposed",
    "wrong",
    "w_hh has a row for each number of the new state, so it must be transposed as w_ih is; being square it raises no error.",
)
def rnn_cell_w1(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih  # (..., D_h): each row of w_ih makes one number
    from_state = h @ w_hh + b_hh
    return np.tanh(from_input + from_state)


@answer(
    "rnn_cell",
    "numpy",
    "b_ih copied to the second line",
    "wrong",
    "The state's part adds b_ih again; b_hh is never used.",
)
def rnn_cell_w2(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    from_state = h @ w_hh.T + b_ih
    return np.tanh(from_input + from_state)


@answer(
    "rnn_cell",
    "numpy",
    "two tanhs",
    "wrong",
    "Each part is squashed on its own and the results are added: the tanh belongs around the sum.",
)
def rnn_cell_w3(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = np.tanh(x @ w_ih.T + b_ih)
    from_state = np.tanh(h @ w_hh.T + b_hh)
    h_new = from_input + from_state
    return h_new


@answer(
    "rnn_cell",
    "numpy",
    "tanh by its formula",
    "wrong",
    "e^{2z} overflows for large sums, and inf/inf is nan instead of 1.",
)
def rnn_cell_w4(x, h, w_ih, w_hh, b_ih, b_hh):
    def tanh(z):
        return (np.exp(2 * z) - 1) / (np.exp(2 * z) + 1)

    from_input = x @ w_ih.T + b_ih
    return tanh(from_input + h @ w_hh.T + b_hh)


@answer(
    "rnn_cell", "numpy", "update written into h", "wrong", "out=h writes the new state over the caller's last state."
)
def rnn_cell_w5(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    total = from_input + h @ w_hh.T + b_hh
    return np.tanh(total, out=h)


@answer(
    "rnn_cell",
    "numpy",
    "column vectors and .T back",
    "wrong",
    "h.T reverses all axes, so with two or more dimensions in front (np.dot as well) the result is no longer (..., D_h).",
)
def rnn_cell_w6(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    from_state = np.dot(w_hh, h.T).T + b_hh
    return np.tanh(from_input + from_state)


@answer(
    "rnn_cell",
    "numpy",
    "old state added on top",
    "wrong",
    "The old state is kept and the tanh added to it: the formula has no such shortcut.",
)
def rnn_cell_w8(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    candidate = np.tanh(from_input + (h @ w_hh.T + b_hh))
    return h + candidate


@answer("rnn_cell", "numpy", "one big matrix", "right")
def rnn_cell_r1(x, h, w_ih, w_hh, b_ih, b_hh):
    both = np.concatenate([x, h], axis=-1)
    big = np.hstack([w_ih, w_hh])
    return np.tanh(np.einsum("oi,...i->...o", big, both) + (b_ih + b_hh))


@answer("rnn_cell", "numpy", "number by number, tanh from the logistic", "right")
def rnn_cell_r2(x, h, w_ih, w_hh, b_ih, b_hh):
    numbers = []
    for row_x, row_h, b1, b2 in zip(w_ih, w_hh, b_ih, b_hh):
        z = (x * row_x).sum(-1) + (h * row_h).sum(-1) + b1 + b2
        numbers.append(2 * np.exp(-np.logaddexp(0, -2 * z)) - 1)
    return np.stack(numbers, axis=-1)


# ---------------------------------------------------------------- task 4: additive


@answer(
    "additive",
    "numpy",
    "tanh before the sum",
    "wrong",
    "Query and key are squashed before they are added, so they no longer act together.",
)
def additive_w1(query, key, w_query, w_key, v):
    q = np.tanh(query @ w_query)[..., :, None, :]
    k = np.tanh(key @ w_key)[..., None, :, :]
    return (q + k) @ v


@answer(
    "additive",
    "numpy",
    "concat with the key's weights on top",
    "wrong",
    "In [q; k] the query comes first, but in the stacked weights the key's do: each vector meets the other's weights.",
)
def additive_w4(query, key, w_query, w_key, v):
    T, S = query.shape[-2], key.shape[-2]
    q = np.repeat(query[..., :, None, :], S, axis=-2)
    k = np.repeat(key[..., None, :, :], T, axis=-3)
    W = np.concatenate([w_key, w_query], axis=0)
    return np.tanh(np.concatenate([q, k], axis=-1) @ W) @ v


@answer(
    "additive",
    "numpy",
    "double loop for a single table",
    "wrong",
    "The loops run over the first axis, which is the batch when there is one.",
)
def additive_w5(query, key, w_query, w_key, v):
    scores = np.zeros((len(query), len(key)))
    for i in range(len(query)):
        for j in range(len(key)):
            scores[i, j] = np.dot(np.tanh(query[i] @ w_query + key[j] @ w_key), v)
    return scores


@answer(
    "additive",
    "numpy",
    "[:, None] in front",
    "wrong",
    "q[:, None] and k[None] put the new axes next to the batch, so with a batch the wrong rows meet.",
)
def additive_w6(query, key, w_query, w_key, v):
    q = query @ w_query
    k = key @ w_key
    return np.tanh(q[:, None] + k[None]) @ v


@answer(
    "additive",
    "numpy",
    "divided by sqrt(D_a)",
    "wrong",
    "The additive score has no square root; that belongs to the scaled dot product.",
)
def additive_w7(query, key, w_query, w_key, v):
    D_a = w_query.shape[-1]
    hidden = np.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :])
    return np.einsum("...tsa,a->...ts", hidden, v) / np.sqrt(D_a)


@answer(
    "additive",
    "numpy",
    "weights as torch keeps them",
    "wrong",
    "Here the weights are (D_q, D_a), so they must not be transposed: an error, or wrong numbers where square.",
)
def additive_w9(query, key, w_query, w_key, v):
    q = query @ w_query.T
    k = key @ w_key.T
    return np.tanh(q[..., :, None, :] + k[..., None, :, :]) @ v


@answer(
    "additive",
    "numpy",
    "reshape for the new axes",
    "wrong",
    "reshape(T, 1, D_a) leaves no room for the dimensions in front.",
)
def additive_w11(query, key, w_query, w_key, v):
    T, S, D_a = query.shape[-2], key.shape[-2], len(v)
    q = (query @ w_query).reshape(T, 1, D_a)
    k = (key @ w_key).reshape(1, S, D_a)
    return np.sum(np.tanh(q + k) * v, axis=2)


@answer("additive", "numpy", "one column of the table per key", "right")
def additive_r1(query, key, w_query, w_key, v):
    q = np.einsum("...td,da->...ta", query, w_query)
    columns = []
    for j in range(key.shape[-2]):
        k_j = key[..., j : j + 1, :] @ w_key  # (..., 1, D_a)
        columns.append(np.tanh(q + k_j).dot(v))
    return np.stack(columns, axis=-1)


@answer("additive", "numpy", "summed over the hidden numbers one by one", "right")
def additive_r2(query, key, w_query, w_key, v):
    total = 0.0
    for a in range(v.shape[0]):
        from_query = (query @ w_query[:, a])[..., :, None]
        from_key = (key @ w_key[:, a])[..., None, :]
        total = total + v[a] * np.tanh(from_query + from_key)
    return total


# ---------------------------------------------------------------- task 5: general


@answer(
    "general",
    "numpy",
    "only the order of the factors changed",
    "wrong",
    "query @ weight.T is what the found function does: right for symmetric weights only.",
)
def general_w1(query, key, weight):
    return query @ weight.T @ np.swapaxes(key, -1, -2)


@answer("general", "numpy", "key.T", "wrong", "key.T reverses all axes: right for matrices, wrong for a batch.")
def general_w2(query, key, weight):
    return query @ weight @ key.T


@answer(
    "general",
    "numpy",
    "symmetrised",
    "wrong",
    "The weight is made symmetric so that both orders agree: but that is another weight.",
)
def general_w3(query, key, weight):
    weight = (weight + weight.T) / 2
    return query @ weight @ np.swapaxes(key, -1, -2)


@answer(
    "general",
    "numpy",
    "only for widths that differ",
    "wrong",
    "The found product is kept for square weights, but it is wrong for square weights that are not symmetric.",
)
def general_w4(query, key, weight):
    if weight.shape[0] == weight.shape[1]:
        found = key @ weight @ np.swapaxes(query, -1, -2)
        return np.swapaxes(found, -1, -2)
    return query @ weight @ np.swapaxes(key, -1, -2)


@answer(
    "general",
    "numpy",
    "weight mended, last line dropped",
    "wrong",
    "The weight is right now, but the table is (..., S, T).",
)
def general_w5(query, key, weight):
    found = key @ weight.T @ np.swapaxes(query, -1, -2)
    return found


@answer(
    "general",
    "numpy",
    "tensordot",
    "wrong",
    "tensordot pairs every sentence of one batch with every sentence of the other: (B, T, B, S).",
)
def general_w6(query, key, weight):
    return np.tensordot(query @ weight, key, axes=([-1], [-1]))


@answer(
    "general",
    "numpy",
    "swapaxes(0, 1) for the last line",
    "wrong",
    "The swap is of the first two axes, not of the last two: with a batch, the sentences move.",
)
def general_w8(query, key, weight):
    found = key @ weight.T @ np.swapaxes(query, -1, -2)
    return np.swapaxes(found, 0, 1)


@answer("general", "numpy", "the found way with the weight transposed", "right")
def general_r1(query, key, weight):
    found = key @ np.transpose(weight) @ np.swapaxes(query, -1, -2)
    return np.swapaxes(found, -1, -2)


@answer("general", "numpy", "projected keys, pairs by broadcasting", "right")
def general_r2(query, key, weight):
    wanted = (weight * key[..., None, :]).sum(-1)  # (..., S, D_q)
    return (query[..., :, None, :] * wanted[..., None, :, :]).sum(-1)


# ---------------------------------------------------------------- task 6: bahdanau_step


@answer(
    "bahdanau_step",
    "numpy",
    "weights and context exchanged",
    "wrong",
    "The order asked for is state, context, weights.",
)
def bahdanau_w2(y, state, memory, params):
    p = params
    e = attnlib.additive(state[..., None, :], memory, p["w_query"], p["w_key"], p["v"])
    a = attnlib.softmax(e)
    c = (a @ memory)[..., 0, :]
    s = attnlib.rnn_cell(np.concatenate((y, c), -1), state, p["w_ih"], p["w_hh"], p["b_ih"], p["b_hh"])
    return s, a[..., 0, :], c


@answer(
    "bahdanau_step",
    "numpy",
    "squeeze without an axis",
    "wrong",
    "squeeze() takes away every axis of size 1, also a batch of one, a memory of one row, or a width of 1.",
)
def bahdanau_w3(y, state, memory, params):
    query = np.expand_dims(state, -2)
    scores = attnlib.additive(query, memory, params["w_query"], params["w_key"], params["v"])
    weights = attnlib.softmax(scores)
    context = (weights @ memory).squeeze()
    weights = weights.squeeze()
    inp = np.concatenate([y, context], axis=-1)
    state = attnlib.rnn_cell(inp, state, params["w_ih"], params["w_hh"], params["b_ih"], params["b_hh"])
    return state, context, weights


@answer(
    "bahdanau_step",
    "numpy",
    "query axis in front",
    "wrong",
    "state[None] makes the batch look like a table of queries: each sentence then asks the memory of the first one.",
)
def bahdanau_w4(y, state, memory, params):
    scores = attnlib.additive(state[None], memory, params["w_query"], params["w_key"], params["v"])
    weights = attnlib.softmax(scores[0])
    context = np.einsum("...s,...sd->...d", weights, memory)
    new_state = attnlib.rnn_cell(
        np.concatenate([y, context], axis=-1), state, params["w_ih"], params["w_hh"], params["b_ih"], params["b_hh"]
    )
    return new_state, context, weights


@answer(
    "bahdanau_step",
    "numpy",
    "softmax along the query axis",
    "wrong",
    "axis=-2 is the single query: every weight is 1, and the context is the plain sum.",
)
def bahdanau_w5(y, state, memory, params):
    scores = attnlib.additive(state[..., None, :], memory, params["w_query"], params["w_key"], params["v"])
    weights = attnlib.softmax(scores, axis=-2)
    context = (weights @ memory)[..., 0, :]
    x = np.concatenate([y, context], axis=-1)
    new = attnlib.rnn_cell(x, state, *(params[n] for n in ("w_ih", "w_hh", "b_ih", "b_hh")))
    return new, context, weights[..., 0, :]


@answer(
    "bahdanau_step",
    "numpy",
    "weights of the new state",
    "wrong",
    "The score is computed again with the new state, and these weights are returned; the context came from others.",
)
def bahdanau_w6(y, state, memory, params):
    def look(s):
        e = attnlib.additive(s[..., None, :], memory, params["w_query"], params["w_key"], params["v"])
        w = attnlib.softmax(e[..., 0, :])
        return w, np.einsum("...s,...sd->...d", w, memory)

    _, context = look(state)
    state = attnlib.rnn_cell(
        np.concatenate([y, context], -1), state, params["w_ih"], params["w_hh"], params["b_ih"], params["b_hh"]
    )
    weights, _ = look(state)
    return state, context, weights


@answer(
    "bahdanau_step",
    "numpy",
    "hstack",
    "wrong",
    "hstack joins along axis 1, which is the last axis only for one or two dimensions.",
)
def bahdanau_w7(y, state, memory, params):
    a = attnlib.softmax(attnlib.additive(state[..., None, :], memory, params["w_query"], params["w_key"], params["v"]))
    c = (a @ memory)[..., 0, :]
    x = np.hstack([y, c])
    h = attnlib.rnn_cell(x, state, params["w_ih"], params["w_hh"], params["b_ih"], params["b_hh"])
    return h, c, a[..., 0, :]


@answer(
    "bahdanau_step",
    "numpy",
    "pops its parameters",
    "wrong",
    "pop takes the score's parameters out of the caller's dictionary: the second step finds them gone.",
)
def bahdanau_w8(y, state, memory, params):
    score_params = [params.pop(name) for name in ("w_query", "w_key", "v")]
    scores = attnlib.additive(state[..., None, :], memory, *score_params)[..., 0, :]
    weights = attnlib.softmax(scores)
    context = np.sum(weights[..., None] * memory, axis=-2)
    new_state = attnlib.rnn_cell(np.concatenate([y, context], axis=-1), state, **params)
    return new_state, context, weights


@answer(
    "bahdanau_step",
    "numpy",
    "context in the place of the state",
    "wrong",
    "The cell is given the context as its last state, so s_{t-1} does not reach the new state; where D_m differs from D_s it raises.",
)
def bahdanau_w10(y, state, memory, params):
    scores = attnlib.additive(state[..., None, :], memory, params["w_query"], params["w_key"], params["v"])[..., 0, :]
    weights = attnlib.softmax(scores)
    context = np.einsum("...s,...sd->...d", weights, memory)
    x = np.concatenate([y, context], axis=-1)
    return (
        attnlib.rnn_cell(x, context, params["w_ih"], params["w_hh"], params["b_ih"], params["b_hh"]),
        context,
        weights,
    )


@answer(
    "bahdanau_step",
    "numpy",
    "weights along the batch",
    "wrong",
    "axis=0 is the memory only without a batch; with one, the weights sum to 1 over the sentences.",
)
def bahdanau_w11(y, state, memory, params):
    scores = attnlib.additive(state[..., None, :], memory, params["w_query"], params["w_key"], params["v"])[..., 0, :]
    weights = attnlib.softmax(scores, axis=0)
    context = (memory * weights[..., None]).sum(axis=-2)
    x = np.concatenate([y, context], axis=-1)
    new_state = attnlib.rnn_cell(x, state, params["w_ih"], params["w_hh"], params["b_ih"], params["b_hh"])
    return new_state, context, weights


@answer("bahdanau_step", "numpy", "flattened to one batch and back", "right")
def bahdanau_r1(y, state, memory, params):
    front = state.shape[:-1]
    S, D_m = memory.shape[-2:]
    flat_y, flat_s, flat_m = y.reshape(-1, y.shape[-1]), state.reshape(-1, state.shape[-1]), memory.reshape(-1, S, D_m)
    states, contexts, all_weights = [], [], []
    for one_y, s, m in zip(flat_y, flat_s, flat_m):
        w = attnlib.softmax(attnlib.additive(s[None], m, params["w_query"], params["w_key"], params["v"])[0])
        c = w @ m
        x = np.append(one_y, c)
        states.append(attnlib.rnn_cell(x, s, params["w_ih"], params["w_hh"], params["b_ih"], params["b_hh"]))
        contexts.append(c)
        all_weights.append(w)
    return tuple(np.array(rows).reshape(*front, -1) for rows in (states, contexts, all_weights))


@answer("bahdanau_step", "numpy", "memory asks the state, cell with split weights", "right")
def bahdanau_r2(y, state, memory, params):
    p = params
    # the additive score is symmetric in its two sides, so let the memory be the table of queries
    e = attnlib.additive(memory, state[..., None, :], p["w_key"], p["w_query"], p["v"])  # (..., S, 1)
    a = attnlib.softmax(e, axis=-2)
    c = np.add.reduce(a * memory, axis=-2)
    D_y = y.shape[-1]
    of_y, of_c = p["w_ih"][:, :D_y], p["w_ih"][:, D_y:]
    # the context's part goes through as if it was a bias of its own
    s = np.tanh(y @ of_y.T + c @ of_c.T + p["b_ih"] + state @ p["w_hh"].T + p["b_hh"])
    return s, c, a[..., 0]


# ---------------------------------------------------------------- task 8: luong_step


def _compare(memory, params, score):
    def compare(queries):
        if score == "dot":
            return attnlib.dot(queries, memory)
        if score == "general":
            return attnlib.general(queries, memory, params["weight"])
        return attnlib.additive(queries, memory, *(params[name] for name in ("w_query", "w_key", "v")))

    return compare


_CELL = ("w_ih", "w_hh", "b_ih", "b_hh")


@answer(
    "luong_step",
    "numpy",
    "the old state asks",
    "wrong",
    "The query is s_{t-1}, as in Bahdanau's decoder; here the new state asks.",
)
def luong_w1(y, state, memory, params, *, score="dot"):
    compare = _compare(memory, params, score)
    new_state = attnlib.rnn_cell(y, state, params["w_ih"], params["w_hh"], params["b_ih"], params["b_hh"])
    weights = attnlib.softmax(compare(state[..., None, :]))
    context = (weights @ memory)[..., 0, :]
    h = np.tanh(np.concatenate([context, new_state], axis=-1) @ params["w_c"])
    return new_state, h, weights[..., 0, :]


@answer("luong_step", "numpy", "state before context", "wrong", "In [c; s_t] the context comes first.")
def luong_w2(y, state, memory, params, *, score="dot"):
    compare = _compare(memory, params, score)
    s = attnlib.rnn_cell(y, state, *[params[k] for k in _CELL])
    a = attnlib.softmax(compare(s[..., None, :])[..., 0, :])
    c = np.einsum("...s,...sd->...d", a, memory)
    return s, np.tanh(np.concatenate([s, c], axis=-1) @ params["w_c"]), a


@answer(
    "luong_step",
    "numpy",
    "the context in place of h~",
    "wrong",
    "The context is returned as the second, as in task 6; here it is h~.",
)
def luong_w3(y, state, memory, params, *, score="dot"):
    compare = _compare(memory, params, score)
    s = attnlib.rnn_cell(y, state, *[params[k] for k in _CELL])
    a = attnlib.softmax(compare(np.expand_dims(s, -2)))
    c = (a @ memory)[..., 0, :]
    h_tilde = np.tanh(np.concatenate([c, s], axis=-1) @ params["w_c"])
    return s, c, a[..., 0, :]


@answer(
    "luong_step",
    "numpy",
    "always dot",
    "wrong",
    "The score is always the dot product: compare and the argument score are ignored.",
)
def luong_w5(y, state, memory, params, *, score="dot"):
    s = attnlib.rnn_cell(y, state, *[params[k] for k in _CELL])
    e = (memory @ s[..., :, None])[..., 0]
    a = attnlib.softmax(e)
    c = np.einsum("...s,...sd->...d", a, memory)
    return s, np.tanh(np.concatenate([c, s], -1) @ params["w_c"]), a


@answer(
    "luong_step",
    "numpy",
    "state updated in place",
    "wrong",
    "state[...] = writes the new state into the caller's array.",
)
def luong_w6(y, state, memory, params, *, score="dot"):
    compare = _compare(memory, params, score)
    state[...] = attnlib.rnn_cell(y, state, *[params[k] for k in _CELL])
    a = attnlib.softmax(compare(state[..., None, :]))
    c = (a @ memory)[..., 0, :]
    h = np.tanh(np.concatenate([c, state], axis=-1) @ params["w_c"])
    return state, h, a[..., 0, :]


@answer(
    "luong_step",
    "numpy",
    "W_c cut in the middle",
    "wrong",
    "W_c is cut into halves, but its upper D_m rows belong to the context: right only where D_m = D_s.",
)
def luong_w7(y, state, memory, params, *, score="dot"):
    compare = _compare(memory, params, score)
    s = attnlib.rnn_cell(y, state, *[params[k] for k in _CELL])
    a = attnlib.softmax(compare(s[..., None, :])[..., 0, :])
    c = np.einsum("...s,...sd->...d", a, memory)
    for_c, for_s = np.split(params["w_c"], 2, axis=0)
    return s, np.tanh(c @ for_c + s @ for_s), a


@answer(
    "luong_step",
    "numpy",
    "old state mixed in",
    "wrong",
    "h~ mixes the context with s_{t-1}; the variable state still is the old one.",
)
def luong_w9(y, state, memory, params, *, score="dot"):
    compare = _compare(memory, params, score)
    next_state = attnlib.rnn_cell(y, state, params["w_ih"], params["w_hh"], params["b_ih"], params["b_hh"])
    weights = attnlib.softmax(compare(next_state[..., None, :]))[..., 0, :]
    context = (weights[..., None] * memory).sum(axis=-2)
    h = np.tanh(np.concatenate([context, state], axis=-1) @ params["w_c"])
    return next_state, h, weights


@answer(
    "luong_step",
    "numpy",
    "concatenated along axis 1",
    "wrong",
    "axis=1 is the last axis only with exactly one dimension in front: without a batch it is an error.",
)
def luong_w11(y, state, memory, params, *, score="dot"):
    compare = _compare(memory, params, score)
    s = attnlib.rnn_cell(y, state, *[params[k] for k in _CELL])
    a = attnlib.softmax(compare(s[..., None, :]))[..., 0, :]
    c = np.einsum("...s,...sd->...d", a, memory)
    return s, np.tanh(np.concatenate([c, s], axis=1) @ params["w_c"]), a


@answer(
    "luong_step",
    "numpy",
    "h~ handed on as the state",
    "wrong",
    "h~ is returned as the next state; it only predicts the output, the next state is s_t.",
)
def luong_w12(y, state, memory, params, *, score="dot"):
    compare = _compare(memory, params, score)
    state = attnlib.rnn_cell(y, state, *[params[k] for k in _CELL])
    weights = attnlib.softmax(compare(state[..., None, :]))
    context = (weights @ memory)[..., 0, :]
    state = np.tanh(np.concatenate([context, state], axis=-1) @ params["w_c"])
    return state, state, weights[..., 0, :]


@answer("luong_step", "numpy", "W_c in two pieces, counted from the end", "right")
def luong_r1(y, state, memory, params, *, score="dot"):
    compare = _compare(memory, params, score)
    s_t = attnlib.rnn_cell(x=y, h=state, **{k: params[k] for k in _CELL})
    e = compare(s_t[..., np.newaxis, :])
    alpha = attnlib.softmax(np.swapaxes(e, -1, -2), axis=-2)  # (..., S, 1), a column
    W_c, D_s = params["w_c"], s_t.shape[-1]
    # project the memory first, then average: the same, since both are linear
    mixed = (alpha * (memory @ W_c[:-D_s])).sum(-2) + s_t @ W_c[-D_s:]
    return s_t, np.tanh(mixed), alpha[..., 0]


@answer("luong_step", "numpy", "own scores in one dictionary", "right")
def luong_r2(y, state, memory, params, *, score="dot"):
    s = attnlib.rnn_cell(y, state, *map(params.get, _CELL))
    scores = {
        "dot": lambda: (memory @ s[..., None])[..., 0],
        "general": lambda: (memory @ (s @ params["weight"])[..., None])[..., 0],
        "concat": lambda: np.tanh((s @ params["w_query"])[..., None, :] + memory @ params["w_key"]) @ params["v"],
    }[score]()
    unnormalised = np.exp(scores - scores.max(-1, keepdims=True))
    total = unnormalised.sum(-1, keepdims=True)
    c = np.einsum("...s,...sd->...d", unnormalised, memory) / total
    h_tilde = np.tanh(np.einsum("...i,io->...o", np.concatenate([c, s], axis=-1), params["w_c"]))
    return s, h_tilde, unnormalised / total


# ---------------------------------------------------------------- task 9: bahdanau_step, torch


@answer(
    "bahdanau_step",
    "torch",
    "weights detached for the context",
    "wrong",
    "The context is made from detached weights: state, W_q, W_k and v get no gradient through it.",
)
def bahdanau_tw1(y, state, memory, params):
    hidden = torch.tanh((state @ params["w_query"]).unsqueeze(-2) + memory @ params["w_key"])
    weights = torch.softmax(hidden @ params["v"], dim=-1)
    context = (weights.detach().unsqueeze(-1) * memory).sum(-2)
    x = torch.cat([y, context], dim=-1)
    new = torch.tanh(x @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"])
    return new, context, weights


@answer(
    "bahdanau_step",
    "torch",
    "weights returned for plotting",
    "wrong",
    "The returned weights are detached, so nothing that is computed from them can be trained.",
)
def bahdanau_tw2(y, state, memory, params):
    e = torch.tanh((state @ params["w_query"])[..., None, :] + memory @ params["w_key"]) @ params["v"]
    alpha = e.softmax(-1)
    c = torch.einsum("...s,...sd->...d", alpha, memory)
    s = torch.tanh(
        torch.cat((y, c), -1) @ params["w_ih"].mT + params["b_ih"] + state @ params["w_hh"].mT + params["b_hh"]
    )
    return s, c, alpha.detach()


@answer(
    "bahdanau_step",
    "torch",
    "softmax without dim",
    "wrong",
    "Without dim, F.softmax chooses: the first axis for three dimensions, so the weights do not sum to 1 over the memory.",
)
def bahdanau_tw3(y, state, memory, params):
    e = torch.tanh((state @ params["w_query"]).unsqueeze(-2) + memory @ params["w_key"]) @ params["v"]
    weights = F.softmax(e)
    context = (weights.unsqueeze(-1) * memory).sum(dim=-2)
    x = torch.cat([y, context], dim=-1)
    new_state = torch.tanh(
        F.linear(x, params["w_ih"], params["b_ih"]) + F.linear(state, params["w_hh"], params["b_hh"])
    )
    return new_state, context, weights


@answer(
    "bahdanau_step",
    "torch",
    "bmm",
    "wrong",
    "bmm wants exactly one dimension in front: without a batch, or with two, it raises.",
)
def bahdanau_tw4(y, state, memory, params):
    query = (state @ params["w_query"]).unsqueeze(1)
    energy = torch.tanh(query + memory @ params["w_key"]) @ params["v"]
    weights = torch.softmax(energy, dim=1)
    context = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
    x = torch.cat([y, context], dim=1)
    state = torch.tanh(F.linear(x, params["w_ih"], params["b_ih"]) + F.linear(state, params["w_hh"], params["b_hh"]))
    return state, context, weights


@answer(
    "bahdanau_step",
    "torch",
    "keys detached",
    "wrong",
    "The memory is detached where it is a key, so its gradient misses that it moves the weights.",
)
def bahdanau_tw5(y, state, memory, params):
    keys = memory.detach() @ params["w_key"]
    scores = torch.tanh((state @ params["w_query"]).unsqueeze(-2) + keys) @ params["v"]
    weights = torch.softmax(scores, dim=-1)
    context = (weights.unsqueeze(-2) @ memory).squeeze(-2)
    x = torch.cat([y, context], dim=-1)
    new = torch.tanh(x @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"])
    return new, context, weights


@answer(
    "bahdanau_step",
    "torch",
    "truncated history",
    "wrong",
    "The last state is detached, as between batches of a language model: no gradient flows back to earlier steps.",
)
def bahdanau_tw6(y, state, memory, params):
    state = state.detach()
    scores = torch.tanh((state @ params["w_query"]).unsqueeze(-2) + memory @ params["w_key"]) @ params["v"]
    weights = torch.softmax(scores, dim=-1)
    context = torch.einsum("...s,...sd->...d", weights, memory)
    x = torch.cat([y, context], dim=-1)
    new = torch.tanh(x @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"])
    return new, context, weights


@answer(
    "bahdanau_step",
    "torch",
    "fresh tensor of scores from numbers",
    "wrong",
    "torch.tensor of plain numbers starts a new graph: the score's parameters get no gradient.",
)
def bahdanau_tw7(y, state, memory, params):
    def score(s, m):
        return float(torch.tanh(s @ params["w_query"] + m @ params["w_key"]) @ params["v"])

    def table(s, m):
        if s.dim() > 1:
            return [table(one_s, one_m) for one_s, one_m in zip(s, m)]
        return [score(s, row) for row in m]

    weights = torch.softmax(torch.tensor(table(state, memory), dtype=memory.dtype), dim=-1)
    context = (weights.unsqueeze(-1) * memory).sum(-2)
    x = torch.cat([y, context], dim=-1)
    new = torch.tanh(x @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"])
    return new, context, weights


@answer(
    "bahdanau_step",
    "torch",
    "zeros of the default dtype",
    "wrong",
    "torch.zeros makes float32, whatever came in: with float64 tensors the product with w_ih raises.",
)
def bahdanau_tw8(y, state, memory, params):
    scores = torch.tanh((state @ params["w_query"]).unsqueeze(-2) + memory @ params["w_key"]) @ params["v"]
    weights = torch.softmax(scores, dim=-1)
    D_y = y.shape[-1]
    context = (weights.unsqueeze(-1) * memory).sum(-2)
    x = torch.zeros(*y.shape[:-1], D_y + memory.shape[-1])
    x[..., :D_y] = y
    x[..., D_y:] = context
    new = torch.tanh(x @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"])
    return new, context, weights


@answer(
    "bahdanau_step",
    "torch",
    "the new state of a first, empty step asks",
    "wrong",
    "The state is stepped with a context of zeros before it asks: s_{t-1} itself has to ask, and the cell runs once.",
)
def bahdanau_tw9(y, state, memory, params):
    def cell(x, h):
        return torch.tanh(x @ params["w_ih"].T + params["b_ih"] + h @ params["w_hh"].T + params["b_hh"])

    state = cell(torch.cat([y, torch.zeros_like(memory[..., 0, :])], dim=-1), state)
    e = torch.tanh((state @ params["w_query"]).unsqueeze(-2) + memory @ params["w_key"]) @ params["v"]
    weights = e.softmax(dim=-1)
    context = (weights.unsqueeze(-1) * memory).sum(-2)
    return cell(torch.cat([y, context], dim=-1), state), context, weights


@answer(
    "bahdanau_step",
    "torch",
    "score under no_grad",
    "wrong",
    "The scores are computed under no_grad, so where to look can never be learned.",
)
def bahdanau_tw12(y, state, memory, params):
    with torch.no_grad():
        scores = torch.tanh((state @ params["w_query"]).unsqueeze(-2) + memory @ params["w_key"]) @ params["v"]
        weights = torch.softmax(scores, dim=-1)
    context = torch.einsum("...s,...sd->...d", weights, memory)
    x = torch.cat([y, context], dim=-1)
    new = torch.tanh(x @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"])
    return new, context, weights


@answer("bahdanau_step", "torch", "row by row with stack", "right")
def bahdanau_tr1(y, state, memory, params):
    p = params
    asked = torch.einsum("...d,da->...a", state, p["w_query"])
    scores = [torch.tanh(asked + m @ p["w_key"]) @ p["v"] for m in memory.unbind(dim=-2)]
    e = torch.stack(scores, dim=-1)
    weights = torch.exp(e - torch.logsumexp(e, dim=-1, keepdim=True))
    context = sum(w.unsqueeze(-1) * m for w, m in zip(weights.unbind(-1), memory.unbind(-2)))
    inside = F.linear(torch.cat([y, context, state], -1), torch.cat([p["w_ih"], p["w_hh"]], 1), p["b_ih"] + p["b_hh"])
    return inside.tanh(), context, weights


@answer("bahdanau_step", "torch", "a module thrown away after use, buffer from memory", "right")
def bahdanau_tr2(y, state, memory, params):
    class Look(nn.Module):
        def forward(self, s, m):
            h = torch.tanh(torch.matmul(s.unsqueeze(-2), params["w_query"]) + torch.matmul(m, params["w_key"]))
            e = torch.matmul(h, params["v"].unsqueeze(-1))  # (..., S, 1)
            e = torch.exp(e - e.detach().amax(dim=-2, keepdim=True))
            return e / e.sum(dim=-2, keepdim=True)

    column = Look()(state, memory)
    context = (column.transpose(-1, -2) @ memory).squeeze(-2)
    D_y = y.shape[-1]
    x = memory.new_empty(y.shape[:-1] + (D_y + context.shape[-1],))
    x[..., :D_y], x[..., D_y:] = y, context
    z = x @ params["w_ih"].transpose(0, 1) + params["b_ih"]
    z = z + state @ params["w_hh"].transpose(0, 1) + params["b_hh"]
    return torch.tanh(z), context, column.squeeze(-1)
