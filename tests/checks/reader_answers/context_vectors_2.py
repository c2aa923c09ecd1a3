"""More answers to the notebook "from RNNs to context vectors", by other readers."""

import math
from types import SimpleNamespace

import numpy as np
import torch
import torch.nn.functional as F

ANSWERS = []


def answer(name, backend, label, verdict, why=""):
    def note(function):
        ANSWERS.append((name, backend, label, verdict, function, why))
        return function

    return note


# ---- stand-ins for what the notebook takes from attnlib -------------------------------------------------------------
def _softmax(x, axis=-1):
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _additive(query, key, w_query, w_key, v):
    return np.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]) @ v


def _rnn_cell(x, h, w_ih, w_hh, b_ih, b_hh):
    return np.tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh)


attnlib = SimpleNamespace(
    softmax=_softmax,
    additive=_additive,
    rnn_cell=_rnn_cell,
    dot=lambda q, k: q @ np.swapaxes(k, -1, -2),
    general=lambda q, k, w: q @ w @ np.swapaxes(k, -1, -2),
)


def given_compare(memory, params, score):
    """The given part of task 8, moved out so that it stands here once."""

    def compare(queries):
        if score == "dot":
            return attnlib.dot(queries, memory)
        if score == "general":
            return attnlib.general(queries, memory, params["weight"])
        return attnlib.additive(queries, memory, *(params[name] for name in ("w_query", "w_key", "v")))

    return compare


# =====================================================================================================================
# rnn_cell
# =====================================================================================================================
@answer(
    "rnn_cell",
    "numpy",
    "w_hh not transposed",
    "wrong",
    "w_hh keeps a row for each new number: h @ w_hh.T, not h @ w_hh.",
)
def rnn_cell_w1(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    from_state = h @ w_hh + b_hh
    return np.tanh(from_input + from_state)


@answer(
    "rnn_cell",
    "numpy",
    "matrix in front of h",
    "wrong",
    "w_hh @ h is right for one vector only; with a batch it mixes the rows or crashes.",
)
def rnn_cell_w2(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    return np.tanh(from_input + w_hh @ h + b_hh)


@answer(
    "rnn_cell",
    "numpy",
    "dot T reversed",
    "wrong",
    "h.T and the last .T reverse all axes: right for one vector and for a table, wrong for (2, 3, D_h).",
)
def rnn_cell_w3(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    from_state = np.dot(w_hh, h.T).T + b_hh
    return np.tanh(from_input + from_state)


@answer(
    "rnn_cell", "numpy", "b_ih again", "wrong", "from_input has b_ih already, so it is added twice, and b_hh never."
)
def rnn_cell_w4(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    return np.tanh(from_input + (h @ w_hh.T + b_ih))


@answer("rnn_cell", "numpy", "three biases", "wrong", "b_ih is added again although the given line has it.")
def rnn_cell_w5(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    pre = from_input + b_ih + h @ w_hh.T + b_hh
    return np.tanh(pre)


@answer(
    "rnn_cell", "numpy", "two tanh", "wrong", "The tanh is taken of each part alone, and the two results are added."
)
def rnn_cell_w6(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    a = np.tanh(from_input)
    b = np.tanh(h @ w_hh.T + b_hh)
    return a + b


@answer("rnn_cell", "numpy", "parenthesis closes early", "wrong", "b_hh stands behind the parenthesis of the tanh.")
def rnn_cell_w7(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    return np.tanh(from_input + h @ w_hh.T) + b_hh


@answer("rnn_cell", "numpy", "sigmoid as in a gate", "wrong", "A sigmoid in place of the tanh.")
def rnn_cell_w8(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    z = from_input + h @ w_hh.T + b_hh
    return 1 / (1 + np.exp(-z))


@answer(
    "rnn_cell",
    "numpy",
    "returns output and state",
    "wrong",
    "Returns a pair, as nn.RNN does; the task asks for the new state alone.",
)
def rnn_cell_w9(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    hidden = np.tanh(from_input + h @ w_hh.T + b_hh)
    output = hidden
    return output, hidden


@answer(
    "rnn_cell",
    "numpy",
    "elementwise weight",
    "wrong",
    "h * w_hh multiplies number by number and only the diagonal is kept: every new number has to see all old ones.",
)
def rnn_cell_w10(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    from_state = h * np.diag(w_hh) + b_hh
    return np.tanh(from_input + from_state)


@answer(
    "rnn_cell",
    "numpy",
    "squeeze at the end",
    "wrong",
    "np.squeeze also removes a batch of 1 and a state of one number.",
)
def rnn_cell_w11(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    new = np.tanh(from_input + np.matmul(h, w_hh.T) + b_hh)
    return np.squeeze(new)


@answer(
    "rnn_cell",
    "numpy",
    "tanh by its formula",
    "wrong",
    "exp overflows for large sums: inf / inf is nan, where tanh is simply 1.",
)
def rnn_cell_w12(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih

    def tanh(a):
        return (np.exp(a) - np.exp(-a)) / (np.exp(a) + np.exp(-a))

    return tanh(from_input + h @ w_hh.T + b_hh)


@answer(
    "rnn_cell",
    "numpy",
    "overwrites the old state",
    "wrong",
    "h[...] = writes the new state into the caller's old state.",
)
def rnn_cell_w13(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    h[...] = np.tanh(from_input + h @ w_hh.T + b_hh)
    return h


@answer(
    "rnn_cell",
    "numpy",
    "leaky update",
    "wrong",
    "The old state is added behind the tanh, a residual that the formula does not have.",
)
def rnn_cell_w14(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    return h + np.tanh(from_input + h @ w_hh.T + b_hh)


@answer(
    "rnn_cell",
    "numpy",
    "in-place loop over the state",
    "wrong",
    "The numbers of the state are replaced one by one, so later ones see new numbers in place of old ones.",
)
def rnn_cell_w15(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    state = np.array(h, dtype=float)
    for i in range(state.shape[-1]):
        state[..., i] = np.tanh(from_input[..., i] + (state * w_hh[i]).sum(-1) + b_hh[i])
    return state


@answer("rnn_cell", "numpy", "one long vector", "right")
def rnn_cell_r1(x, h, w_ih, w_hh, b_ih, b_hh):
    both = np.concatenate([x, h], axis=-1)
    weight = np.hstack([w_ih, w_hh])
    return np.tanh(np.einsum("...i,hi->...h", both, weight) + (b_ih + b_hh))


@answer("rnn_cell", "numpy", "plain loops", "right")
def rnn_cell_r2(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    new = np.zeros(from_input.shape)
    for place in np.ndindex(from_input.shape[:-1]):
        for i in range(w_hh.shape[0]):
            total = float(from_input[place][i]) + float(b_hh[i])
            for j in range(w_hh.shape[1]):
                total += float(w_hh[i, j]) * float(h[place][j])
            new[place + (i,)] = math.tanh(total)
    return new


@answer("rnn_cell", "numpy", "tensordot over the second axis", "right")
def rnn_cell_r3(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    return np.tanh(np.tensordot(h, w_hh, axes=(-1, 1)) + b_hh + from_input)


# =====================================================================================================================
# additive
# =====================================================================================================================
@answer(
    "additive",
    "numpy",
    "rows for the keys",
    "wrong",
    "The new axes are swapped, so the scores are (S, T): a row for each key.",
)
def additive_w1(query, key, w_query, w_key, v):
    q = query @ w_query
    k = key @ w_key
    return np.tanh(q[..., None, :, :] + k[..., :, None, :]) @ v


@answer(
    "additive",
    "numpy",
    "torch layout of the weights",
    "wrong",
    "Transposes the weights as in task 2; here they are (D_q, D_a) and are not transposed.",
)
def additive_w2(query, key, w_query, w_key, v):
    q = np.expand_dims(query @ w_query.T, -2)
    k = np.expand_dims(key @ w_key.T, -3)
    return np.tanh(q + k) @ v


@answer(
    "additive",
    "numpy",
    "adds without a new axis",
    "wrong",
    "(T, D_a) + (S, D_a) works for T = S or one query only, and pairs query i with key i.",
)
def additive_w3(query, key, w_query, w_key, v):
    hidden = np.tanh(query @ w_query + key @ w_key)
    return hidden @ v


@answer("additive", "numpy", "one query only", "wrong", "Adds the first query to all keys; other queries are ignored.")
def additive_w4(query, key, w_query, w_key, v):
    projected = query[..., :1, :] @ w_query + key @ w_key
    scores = np.tanh(projected) @ v
    return scores[..., None, :]


@answer(
    "additive",
    "numpy",
    "batch forgotten",
    "wrong",
    "q[:, None] and k[None] put the new axes in the wrong place as soon as there is a batch.",
)
def additive_w5(query, key, w_query, w_key, v):
    q = (query @ w_query)[:, None]
    k = (key @ w_key)[None]
    return np.sum(v * np.tanh(q + k), axis=-1)


@answer("additive", "numpy", "no tanh", "wrong", "The squashing is missing: a sum of two linear maps.")
def additive_w6(query, key, w_query, w_key, v):
    a = (query @ w_query) @ v
    b = (key @ w_key) @ v
    return a[..., :, None] + b[..., None, :]


@answer("additive", "numpy", "tanh of each part", "wrong", "tanh(q) + tanh(k) in place of tanh(q + k).")
def additive_w7(query, key, w_query, w_key, v):
    q = np.tanh(query @ w_query)[..., :, np.newaxis, :]
    k = np.tanh(key @ w_key)[..., np.newaxis, :, :]
    return (q + k) @ v


@answer(
    "additive", "numpy", "tanh outside", "wrong", "v is applied inside and the tanh is taken of the finished score."
)
def additive_w8(query, key, w_query, w_key, v):
    s = (query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]
    return np.tanh(s @ v)


@answer("additive", "numpy", "multiplied instead of added", "wrong", "The projections are multiplied, not added.")
def additive_w9(query, key, w_query, w_key, v):
    return np.einsum("...ta,...sa,a->...ts", np.tanh(query @ w_query), np.tanh(key @ w_key), v)


@answer("additive", "numpy", "softmax included", "wrong", "Returns weights; the task asks for the scores.")
def additive_w10(query, key, w_query, w_key, v):
    features = np.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :])
    scores = np.squeeze(features @ v[:, None], -1)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@answer(
    "additive",
    "numpy",
    "scaled by the root of D_a",
    "wrong",
    "Divides by the square root of D_a, which belongs to the scaled dot product.",
)
def additive_w11(query, key, w_query, w_key, v):
    hidden = np.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :])
    return hidden @ v / np.sqrt(v.shape[0])


@answer(
    "additive", "numpy", "d2l without v weights", "wrong", "The mean of the features stands where v should weight them."
)
def additive_w12(query, key, w_query, w_key, v):
    hidden = np.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :])
    return hidden.mean(axis=-1) * v.sum()


@answer(
    "additive",
    "numpy",
    "tile in the wrong order",
    "wrong",
    "Both are tiled, so the pairs after the reshape are not all pairs in the right places: queries should be repeated.",
)
def additive_w13(query, key, w_query, w_key, v):
    T, S = query.shape[-2], key.shape[-2]
    q = np.concatenate([query @ w_query] * S, axis=-2)
    k = np.concatenate([key @ w_key] * T, axis=-2)
    flat = np.tanh(q + k) @ v
    return flat.reshape(flat.shape[:-1] + (T, S))


@answer(
    "additive",
    "numpy",
    "addition theorem of tanh",
    "wrong",
    "Where both tanh round to 1 and -1 the fraction is 0/0: nan for large projections of opposite sign.",
)
def additive_w14(query, key, w_query, w_key, v):
    a = np.tanh(query @ w_query)[..., :, None, :]
    b = np.tanh(key @ w_key)[..., None, :, :]
    return ((a + b) / (1 + a * b)) @ v


@answer(
    "additive",
    "numpy",
    "list of matrices",
    "wrong",
    "The comprehension runs over the first axis: with a batch it zips sentences, or mixes them, in place of queries.",
)
def additive_w15(query, key, w_query, w_key, v):
    return np.array([[np.tanh(q @ w_query + k @ w_key) @ v for k in key] for q in query])


@answer(
    "additive",
    "numpy",
    "projection shared",
    "wrong",
    "The key is projected with w_query as well; crashes where the widths differ, and is wrong where not.",
)
def additive_w16(query, key, w_query, w_key, v):
    def project(x, w=w_query):
        return x @ w

    q, k = project(query), project(key)
    return np.tanh(q[..., :, None, :] + k[..., None, :, :]) @ v


@answer("additive", "numpy", "feature by feature", "right")
def additive_r1(query, key, w_query, w_key, v):
    q, k = query @ w_query, key @ w_key
    scores = 0.0
    for a in range(len(v)):  # never holds more than T * S numbers
        scores = scores + v[a] * np.tanh(np.add(q[..., :, None, a], k[..., None, :, a]))
    return scores


@answer("additive", "numpy", "concatenate the pairs", "right")
def additive_r2(query, key, w_query, w_key, v):
    front = np.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    T, S = query.shape[-2], key.shape[-2]
    q = np.broadcast_to(query[..., :, None, :], front + (T, S, query.shape[-1]))
    k = np.broadcast_to(key[..., None, :, :], front + (T, S, key.shape[-1]))
    pairs = np.concatenate([k, q], axis=-1)
    return np.tanh(pairs @ np.concatenate([w_key, w_query], axis=0)) @ v


@answer("additive", "numpy", "vectorize with a signature", "right")
def additive_r3(query, key, w_query, w_key, v):
    def one_table(qs, ks):
        return np.array([[sum(v * np.tanh(q @ w_query + k @ w_key)) for k in ks] for q in qs], dtype=float)

    return np.vectorize(one_table, signature="(t,d),(s,e)->(t,s)", otypes=[float])(query, key)


# =====================================================================================================================
# general
# =====================================================================================================================
@answer(
    "general",
    "numpy",
    "the found one, einsum",
    "wrong",
    "The same bug in other letters: the key meets the rows of W and the query its columns.",
)
def general_w1(query, key, weight):
    return np.einsum("...sd,de,...te->...ts", key, weight, query)


@answer("general", "numpy", "weight transposed", "wrong", "weight.T: right for symmetric weights only.")
def general_w2(query, key, weight):
    return query @ weight.T @ np.swapaxes(key, -1, -2)


@answer("general", "numpy", "key.T", "wrong", "key.T reverses all axes, so a batch breaks.")
def general_w3(query, key, weight):
    return query @ weight @ key.T


@answer(
    "general",
    "numpy",
    "forgot to turn it back",
    "wrong",
    "The scores come out as (S, T): the last swapaxes is missing.",
)
def general_w4(query, key, weight):
    found = key @ weight.T @ np.swapaxes(query, -1, -2)
    return found


@answer(
    "general",
    "numpy",
    "made symmetric",
    "wrong",
    "Averages W with its transpose, since the bug only shows for weights that are not symmetric; that changes the scores.",
)
def general_w5(query, key, weight):
    if weight.shape[0] == weight.shape[1]:
        weight = (weight + weight.T) / 2
    return query @ weight @ np.swapaxes(key, -1, -2)


@answer("general", "numpy", "np.dot on stacks", "wrong", "np.dot of two stacks makes (B, T, B, S).")
def general_w6(query, key, weight):
    return np.dot(np.dot(query, weight), np.swapaxes(key, -1, -2))


@answer(
    "general",
    "numpy",
    "np.dot with three arguments",
    "wrong",
    "The third argument of np.dot is out, not a third factor: it raises an error.",
)
def general_w7(query, key, weight):
    return np.dot(query, weight, np.swapaxes(key, -1, -2))


@answer("general", "numpy", "transpose(0, 2, 1)", "wrong", "Works with exactly one batch dimension.")
def general_w8(query, key, weight):
    projected = np.matmul(query, weight)
    return np.matmul(projected, key.transpose(0, 2, 1))


@answer("general", "numpy", "scaled", "wrong", "Divides by the root of the width; Luong's general score has no scale.")
def general_w9(query, key, weight):
    return query @ weight @ np.swapaxes(key, -1, -2) / np.sqrt(query.shape[-1])


@answer("general", "numpy", "pairs only", "wrong", "Multiplies query i with key i and adds up: T numbers, not a table.")
def general_w10(query, key, weight):
    return np.sum((query @ weight) * key, axis=-1)


@answer(
    "general",
    "numpy",
    "only turned when rectangular",
    "wrong",
    "Keeps the wrong order for square weights, since there it raised no error.",
)
def general_w11(query, key, weight):
    keys_first = key @ weight if weight.shape[0] == weight.shape[1] else key @ weight.T
    return np.swapaxes(keys_first @ np.swapaxes(query, -1, -2), -1, -2)


@answer(
    "general",
    "numpy",
    "reshape for transpose",
    "wrong",
    "reshape to (D, S) does not transpose: the numbers of different keys are mixed.",
)
def general_w12(query, key, weight):
    S, D = key.shape[-2:]
    return query @ weight @ key.reshape(key.shape[:-2] + (D, S))


@answer("general", "numpy", "inverse of W", "wrong", "Takes the inverse of the weight to 'go the other way round'.")
def general_w13(query, key, weight):
    found = key @ np.linalg.inv(weight) @ np.swapaxes(query, -1, -2)
    return np.swapaxes(found, -1, -2)


@answer(
    "general",
    "numpy",
    "loop with a stale row",
    "wrong",
    "The product q @ weight is computed before the inner loops, for the last query only.",
)
def general_w14(query, key, weight):
    T, S = query.shape[-2], key.shape[-2]
    scores = np.zeros(query.shape[:-2] + (T, S))
    for i in range(T):
        projected = query[..., i, :] @ weight
    for i in range(T):
        for j in range(S):
            scores[..., i, j] = np.sum(projected * key[..., j, :], axis=-1)
    return scores


@answer(
    "general",
    "numpy",
    "swaps the wrong axes",
    "wrong",
    "swapaxes(0, 1) is the transpose of a table, but with a batch it mixes sentences and positions.",
)
def general_w15(query, key, weight):
    return query @ weight @ np.swapaxes(key, 0, 1)


@answer("general", "numpy", "weight on the key's side", "right")
def general_r1(query, key, weight):
    found = key @ weight.T @ np.swapaxes(query, -1, -2)
    return np.swapaxes(found, -1, -2)


@answer("general", "numpy", "outer products", "right")
def general_r2(query, key, weight):
    pairs = query[..., :, None, :, None] * key[..., None, :, None, :]  # (..., T, S, D_q, D_k)
    return (pairs * weight).sum(axis=(-2, -1))


@answer("general", "numpy", "entry by entry of W", "right")
def general_r3(query, key, weight):
    total = np.zeros(np.broadcast_shapes(query.shape[:-2], key.shape[:-2]) + (query.shape[-2], key.shape[-2]))
    for (d, e), w in np.ndenumerate(weight):
        total += w * query[..., :, d, None] * key[..., None, :, e]
    return total


# =====================================================================================================================
# bahdanau_step, NumPy
# =====================================================================================================================
def _score_names(params):
    return params["w_query"], params["w_key"], params["v"]


def _cell_names(params):
    return params["w_ih"], params["w_hh"], params["b_ih"], params["b_hh"]


@answer("bahdanau_step", "numpy", "context first", "wrong", "[c; y] in place of [y; c].")
def bahdanau_w1(y, state, memory, params):
    scores = attnlib.additive(state[..., None, :], memory, *_score_names(params))[..., 0, :]
    weights = attnlib.softmax(scores)
    context = (weights[..., None] * memory).sum(-2)
    new = attnlib.rnn_cell(np.concatenate([context, y], axis=-1), state, *_cell_names(params))
    return new, context, weights


@answer(
    "bahdanau_step",
    "numpy",
    "concatenate without axis",
    "wrong",
    "np.concatenate joins along axis 0 by default: right for one sentence, wrong for a batch.",
)
def bahdanau_w2(y, state, memory, params):
    scores = attnlib.additive(state[..., None, :], memory, *_score_names(params))[..., 0, :]
    weights = attnlib.softmax(scores)
    context = np.einsum("...s,...sd->...d", weights, memory)
    new = attnlib.rnn_cell(np.concatenate([y, context]), state, *_cell_names(params))
    return new, context, weights


@answer(
    "bahdanau_step",
    "numpy",
    "new state asks",
    "wrong",
    "Runs the cell first and asks with the new state; Bahdanau asks with the old one.",
)
def bahdanau_w3(y, state, memory, params):
    p = params
    blank = np.zeros(state.shape[:-1] + memory.shape[-1:])
    asking = attnlib.rnn_cell(np.concatenate([y, blank], -1), state, p["w_ih"], p["w_hh"], p["b_ih"], p["b_hh"])
    scores = attnlib.additive(asking[..., None, :], memory, p["w_query"], p["w_key"], p["v"])[..., 0, :]
    weights = attnlib.softmax(scores)
    context = np.einsum("...s,...sd->...d", weights, memory)
    return attnlib.rnn_cell(np.concatenate([y, context], -1), state, *_cell_names(p)), context, weights


@answer(
    "bahdanau_step",
    "numpy",
    "matmul without an axis",
    "wrong",
    "weights @ memory is right for one sentence; with a batch (B, S) @ (B, S, D) crashes, or mixes the sentences.",
)
def bahdanau_w4(y, state, memory, params):
    e = attnlib.additive(np.expand_dims(state, -2), memory, *_score_names(params))
    alpha = attnlib.softmax(e[..., 0, :])
    c = alpha @ memory
    s = attnlib.rnn_cell(np.concatenate((y, c), axis=-1), state, *_cell_names(params))
    return s, c, alpha


@answer(
    "bahdanau_step",
    "numpy",
    "squeeze everything",
    "wrong",
    "np.squeeze without an axis removes a batch of 1, or a memory of one row, as well.",
)
def bahdanau_w5(y, state, memory, params):
    e = attnlib.additive(state[..., None, :], memory, *_score_names(params))
    alpha = np.squeeze(attnlib.softmax(e))
    c = np.squeeze(np.sum(alpha[..., None] * memory, axis=-2))
    s = attnlib.rnn_cell(np.concatenate([y, c], axis=-1), state, *_cell_names(params))
    return s, c, alpha


@answer(
    "bahdanau_step",
    "numpy",
    "axis left in the results",
    "wrong",
    "The axis of the single query is never taken away: the context is (..., 1, D_m), the weights (..., 1, S).",
)
def bahdanau_w6(y, state, memory, params):
    alpha = attnlib.softmax(attnlib.additive(state[..., None, :], memory, *_score_names(params)))
    c = alpha @ memory
    s = attnlib.rnn_cell(np.concatenate([y[..., None, :], c], axis=-1), state[..., None, :], *_cell_names(params))
    return s[..., 0, :], c, alpha


@answer(
    "bahdanau_step",
    "numpy",
    "softmax along the queries",
    "wrong",
    "Softmax along axis -2, which has one entry: every weight is 1.",
)
def bahdanau_w7(y, state, memory, params):
    e = attnlib.additive(state[..., None, :], memory, *_score_names(params))
    alpha = attnlib.softmax(e, axis=-2)
    c = (alpha @ memory)[..., 0, :]
    s = attnlib.rnn_cell(np.concatenate([y, c], axis=-1), state, *_cell_names(params))
    return s, c, alpha[..., 0, :]


@answer("bahdanau_step", "numpy", "scores returned", "wrong", "Returns the scores where the weights are asked for.")
def bahdanau_w8(y, state, memory, params):
    weights = attnlib.additive(state[..., None, :], memory, *_score_names(params))[..., 0, :]
    context = (attnlib.softmax(weights)[..., None, :] @ memory)[..., 0, :]
    inputs = np.append(y, context, axis=-1)
    return attnlib.rnn_cell(inputs, state, *_cell_names(params)), context, weights


@answer("bahdanau_step", "numpy", "context before state", "wrong", "Returns the context first and the state second.")
def bahdanau_w9(y, state, memory, params):
    weights = attnlib.softmax(attnlib.additive(state[..., None, :], memory, *_score_names(params))[..., 0, :])
    context = (weights[..., None, :] @ memory)[..., 0, :]
    state = attnlib.rnn_cell(np.concatenate([y, context], -1), state, *_cell_names(params))
    return context, state, weights


@answer(
    "bahdanau_step",
    "numpy",
    "new axis in front",
    "wrong",
    "state[None] puts the query axis in front: right for one sentence; with a batch the B states become B queries.",
)
def bahdanau_w10(y, state, memory, params):
    scores = attnlib.additive(state[None], memory, *_score_names(params))[0]
    weights = attnlib.softmax(scores)
    context = (weights[..., None] * memory).sum(axis=-2)
    state = attnlib.rnn_cell(np.concatenate([y, context], -1), state, *_cell_names(params))
    return state, context, weights


@answer(
    "bahdanau_step",
    "numpy",
    "one batch dimension only",
    "wrong",
    "The loop needs exactly one dimension in front; a single sentence and (2, 3, D) break.",
)
def bahdanau_w11(y, state, memory, params):
    states, contexts, all_weights = [], [], []
    for b in range(state.shape[0]):
        e = np.tanh(state[b] @ params["w_query"] + memory[b] @ params["w_key"]) @ params["v"]
        alpha = attnlib.softmax(e, axis=0)
        c = alpha @ memory[b]
        states.append(attnlib.rnn_cell(np.hstack([y[b], c]), state[b], *_cell_names(params)))
        contexts.append(c)
        all_weights.append(alpha)
    return np.array(states), np.array(contexts), np.array(all_weights)


@answer("bahdanau_step", "numpy", "y asks", "wrong", "Asks with the last output in place of the state.")
def bahdanau_w12(y, state, memory, params):
    scores = attnlib.additive(y[..., None, :], memory, *_score_names(params))[..., 0, :]
    weights = attnlib.softmax(scores)
    context = np.einsum("...s,...sd->...d", weights, memory)
    return attnlib.rnn_cell(np.concatenate([y, context], -1), state, *_cell_names(params)), context, weights


@answer(
    "bahdanau_step",
    "numpy",
    "sum over axis 0",
    "wrong",
    "Axis 0 holds the rows of the memory for one sentence only; with a batch the sum runs over the sentences.",
)
def bahdanau_w13(y, state, memory, params):
    scores = attnlib.additive(state[..., None, :], memory, *_score_names(params))[..., 0, :]
    weights = attnlib.softmax(scores)
    context = (weights[..., None] * memory).sum(axis=0)
    return attnlib.rnn_cell(np.concatenate([y, context], -1), state, *_cell_names(params)), context, weights


_PROJECTED = {}


@answer(
    "bahdanau_step",
    "numpy",
    "keys cached for good",
    "wrong",
    "The projected memory is kept from the first call and reused for other memories and other parameters.",
)
def bahdanau_w14(y, state, memory, params):
    if "keys" not in _PROJECTED:  # the memory is the same in every step
        _PROJECTED["keys"] = memory @ params["w_key"]
    e = np.tanh((state @ params["w_query"])[..., None, :] + _PROJECTED["keys"]) @ params["v"]
    weights = attnlib.softmax(e)
    context = np.einsum("...s,...sd->...d", weights, memory)
    return attnlib.rnn_cell(np.concatenate([y, context], -1), state, *_cell_names(params)), context, weights


@answer(
    "bahdanau_step",
    "numpy",
    "params taken apart",
    "wrong",
    "pop empties the caller's dictionary: the second step finds no w_query.",
)
def bahdanau_w15(y, state, memory, params):
    w_query, w_key, v = params.pop("w_query"), params.pop("w_key"), params.pop("v")
    weights = attnlib.softmax(attnlib.additive(state[..., None, :], memory, w_query, w_key, v)[..., 0, :])
    context = np.einsum("...s,...sd->...d", weights, memory)
    return attnlib.rnn_cell(np.concatenate([y, context], -1), state, **params), context, weights


@answer(
    "bahdanau_step",
    "numpy",
    "context as the state",
    "wrong",
    "The context goes into the cell as its last state too (added to it), not only beside y.",
)
def bahdanau_w16(y, state, memory, params):
    weights = attnlib.softmax(attnlib.additive(state[..., None, :], memory, *_score_names(params))[..., 0, :])
    context = np.einsum("...s,...sd->...d", weights, memory)
    n = min(state.shape[-1], context.shape[-1])
    mixed = state.copy()
    mixed[..., :n] = state[..., :n] + context[..., :n]
    return attnlib.rnn_cell(np.concatenate([y, context], -1), mixed, *_cell_names(params)), context, weights


@answer(
    "bahdanau_step",
    "numpy",
    "hard attention",
    "wrong",
    "Takes the row with the largest weight as the context, not the weighted sum.",
)
def bahdanau_w17(y, state, memory, params):
    weights = attnlib.softmax(attnlib.additive(state[..., None, :], memory, *_score_names(params))[..., 0, :])
    best = weights.argmax(-1)[..., None, None]
    context = np.take_along_axis(memory, best, axis=-2)[..., 0, :]
    return attnlib.rnn_cell(np.concatenate([y, context], -1), state, *_cell_names(params)), context, weights


@answer("bahdanau_step", "numpy", "weight matrix cut in two", "right")
def bahdanau_r1(y, state, memory, params):
    hidden = np.tanh(memory @ params["w_key"] + (state @ params["w_query"])[..., None, :])
    e = hidden @ params["v"]
    e = np.exp(e - e.max(-1)[..., None])
    alpha = e / e.sum(-1)[..., None]
    c = (np.swapaxes(memory, -1, -2) @ alpha[..., None]).squeeze(-1)
    D_y = y.shape[-1]
    w_y, w_c = params["w_ih"][:, :D_y], params["w_ih"][:, D_y:]
    s = np.tanh(y @ w_y.T + c @ w_c.T + state @ params["w_hh"].T + (params["b_ih"] + params["b_hh"]))
    return s, c, alpha


@answer("bahdanau_step", "numpy", "one sentence, vectorized", "right")
def bahdanau_r2(y, state, memory, params):
    def one(y1, s1, rows):
        scores = [float(attnlib.additive(s1[None], row[None], *_score_names(params))[0, 0]) for row in rows]
        alpha = attnlib.softmax(np.array(scores))
        c = sum(a * row for a, row in zip(alpha, rows))
        return attnlib.rnn_cell(np.hstack([y1, c]), s1, *_cell_names(params)), c, alpha

    signature = "(y),(h),(s,m)->(h),(m),(s)"
    return np.vectorize(one, signature=signature, otypes=[float] * 3)(y, state, memory)


class _Looker:
    """Attention as an object, for one memory."""

    def __init__(self, memory, w_query, w_key, v):
        self.memory, self.w_query, self.w_key, self.v = memory, w_query, w_key, v

    def __call__(self, state):
        query = state.reshape(state.shape[:-1] + (1, state.shape[-1]))
        alpha = attnlib.softmax(attnlib.additive(query, self.memory, self.w_query, self.w_key, self.v), axis=-1)
        return np.matmul(alpha, self.memory)[..., 0, :], alpha[..., 0, :]


@answer("bahdanau_step", "numpy", "a class that looks", "right")
def bahdanau_r3(y, state, memory, params):
    look = _Looker(memory, **{k: params[k] for k in ("w_query", "w_key", "v")})
    c, alpha = look(state)
    cell = {k: params[k] for k in ("w_ih", "w_hh", "b_ih", "b_hh")}
    return attnlib.rnn_cell(x=np.concatenate([y, c], axis=c.ndim - 1), h=state, **cell), c, alpha


# =====================================================================================================================
# luong_step
# =====================================================================================================================
@answer(
    "luong_step",
    "numpy",
    "old state asks",
    "wrong",
    "Asks with the last state, as Bahdanau does; here the new state asks.",
)
def luong_w1(y, state, memory, params, *, score="dot"):
    compare = given_compare(memory, params, score)
    new = attnlib.rnn_cell(y, state, *_cell_names(params))
    weights = attnlib.softmax(compare(state[..., None, :]))
    context = (weights @ memory)[..., 0, :]
    h = np.tanh(np.concatenate([context, new], -1) @ params["w_c"])
    return new, h, weights[..., 0, :]


@answer("luong_step", "numpy", "state before context", "wrong", "[s; c] in place of [c; s].")
def luong_w2(y, state, memory, params, *, score="dot"):
    compare = given_compare(memory, params, score)
    s = attnlib.rnn_cell(y, state, *_cell_names(params))
    alpha = attnlib.softmax(compare(s[..., None, :]))
    c = alpha @ memory
    h = np.tanh(np.concatenate([s, c[..., 0, :]], axis=-1) @ params["w_c"])
    return s, h, alpha[..., 0, :]


@answer(
    "luong_step",
    "numpy",
    "mixes with the old state",
    "wrong",
    "The context is mixed with the last state, not with the new one.",
)
def luong_w3(y, state, memory, params, *, score="dot"):
    compare = given_compare(memory, params, score)
    s_t = attnlib.rnn_cell(y, state, *_cell_names(params))
    alpha = attnlib.softmax(compare(s_t[..., None, :]))[..., 0, :]
    c = np.einsum("...s,...sm->...m", alpha, memory)
    h_tilde = np.tanh(np.concatenate([c, state], axis=-1) @ params["w_c"])
    return s_t, h_tilde, alpha


@answer("luong_step", "numpy", "tanh forgotten", "wrong", "The tanh around [c; s] W_c is missing.")
def luong_w4(y, state, memory, params, *, score="dot"):
    compare = given_compare(memory, params, score)
    s_t = attnlib.rnn_cell(y, state, *_cell_names(params))
    alpha = attnlib.softmax(compare(np.expand_dims(s_t, -2))).squeeze(-2)
    c = np.einsum("...s,...sm->...m", alpha, memory)
    return s_t, np.concatenate([c, s_t], axis=-1) @ params["w_c"], alpha


@answer("luong_step", "numpy", "context returned", "wrong", "Returns the context, as in task 6, where h~ is asked for.")
def luong_w5(y, state, memory, params, *, score="dot"):
    compare = given_compare(memory, params, score)
    state = attnlib.rnn_cell(y, state, *_cell_names(params))
    weights = attnlib.softmax(compare(state[..., None, :]))[..., 0, :]
    context = (weights[..., None] * memory).sum(-2)
    h = np.tanh(np.concatenate([context, state], -1) @ params["w_c"])
    return state, context, weights


@answer(
    "luong_step",
    "numpy",
    "h~ as the next state",
    "wrong",
    "Returns h~ as the next state too; the state that goes on is s_t.",
)
def luong_w6(y, state, memory, params, *, score="dot"):
    compare = given_compare(memory, params, score)
    state = attnlib.rnn_cell(y, state, *_cell_names(params))
    weights = attnlib.softmax(compare(state[..., None, :]))[..., 0, :]
    context = (weights[..., None] * memory).sum(-2)
    state = np.tanh(np.concatenate([context, state], -1) @ params["w_c"])
    return state, state, weights


@answer(
    "luong_step",
    "numpy",
    "always dot",
    "wrong",
    "Computes the dot product itself and never calls compare: score is ignored.",
)
def luong_w7(y, state, memory, params, *, score="dot"):
    s_t = attnlib.rnn_cell(y, state, *_cell_names(params))
    e = (memory @ s_t[..., None])[..., 0]
    alpha = attnlib.softmax(e)
    c = (alpha[..., None] * memory).sum(-2)
    return s_t, np.tanh(np.concatenate([c, s_t], -1) @ params["w_c"]), alpha


@answer(
    "luong_step",
    "numpy",
    "root of the width",
    "wrong",
    "The scores are divided by the root of the width of the state; Luong's are not.",
)
def luong_w8(y, state, memory, params, *, score="dot"):
    compare = given_compare(memory, params, score)
    s_t = attnlib.rnn_cell(y, state, *_cell_names(params))
    e = compare(s_t[..., None, :]) / np.sqrt(s_t.shape[-1])
    alpha = attnlib.softmax(e)
    c = (alpha @ memory)[..., 0, :]
    return s_t, np.tanh(np.concatenate([c, s_t], -1) @ params["w_c"]), alpha[..., 0, :]


@answer(
    "luong_step",
    "numpy",
    "w_c transposed",
    "wrong",
    "w_c.T does not fit ((D_m + D_s, D_h) is already the way a row needs it).",
)
def luong_w9(y, state, memory, params, *, score="dot"):
    compare = given_compare(memory, params, score)
    s_t = attnlib.rnn_cell(y, state, *_cell_names(params))
    alpha = attnlib.softmax(compare(s_t[..., None, :]))
    c = (alpha @ memory)[..., 0, :]
    return s_t, np.tanh(np.concatenate([c, s_t], -1) @ params["w_c"].T), alpha[..., 0, :]


@answer(
    "luong_step",
    "numpy",
    "state not made a table",
    "wrong",
    "compare gets (..., D_s): with a batch all states are compared with every sentence's memory.",
)
def luong_w10(y, state, memory, params, *, score="dot"):
    compare = given_compare(memory, params, score)
    s_t = attnlib.rnn_cell(y, state, *_cell_names(params))
    alpha = attnlib.softmax(compare(s_t))
    c = alpha @ memory
    return s_t, np.tanh(np.concatenate([c, s_t], -1) @ params["w_c"]), alpha


@answer("luong_step", "numpy", "y[:, None] style", "wrong", "s[:, None, :] needs exactly one batch dimension.")
def luong_w11(y, state, memory, params, *, score="dot"):
    compare = given_compare(memory, params, score)
    s = attnlib.rnn_cell(y, state, *_cell_names(params))
    alpha = attnlib.softmax(compare(s[:, None, :]))
    c = (alpha @ memory)[:, 0]
    return s, np.tanh(np.concatenate([c, s], axis=1) @ params["w_c"]), alpha[:, 0]


@answer(
    "luong_step",
    "numpy",
    "softmax over the batch",
    "wrong",
    "axis=0: for a batch the weights sum to 1 over the sentences.",
)
def luong_w12(y, state, memory, params, *, score="dot"):
    compare = given_compare(memory, params, score)
    s = attnlib.rnn_cell(y, state, *_cell_names(params))
    alpha = attnlib.softmax(compare(s[..., None, :])[..., 0, :], axis=0)
    c = np.einsum("...s,...sm->...m", alpha, memory)
    return s, np.tanh(np.concatenate([c, s], axis=-1) @ params["w_c"]), alpha


@answer(
    "luong_step",
    "numpy",
    "weighted sum of scores",
    "wrong",
    "The context is made with the raw scores, before the softmax.",
)
def luong_w13(y, state, memory, params, *, score="dot"):
    compare = given_compare(memory, params, score)
    s = attnlib.rnn_cell(y, state, *_cell_names(params))
    e = compare(s[..., None, :])[..., 0, :]
    c = np.einsum("...s,...sm->...m", e, memory)
    return s, np.tanh(np.concatenate([c, s], axis=-1) @ params["w_c"]), attnlib.softmax(e)


@answer(
    "luong_step",
    "numpy",
    "steps twice",
    "wrong",
    "The cell runs a second time with the new state before it returns: the state returned is one step too far.",
)
def luong_w14(y, state, memory, params, *, score="dot"):
    compare = given_compare(memory, params, score)
    state = attnlib.rnn_cell(y, state, *_cell_names(params))
    alpha = attnlib.softmax(compare(state[..., None, :]))[..., 0, :]
    c = np.einsum("...s,...sm->...m", alpha, memory)
    h = np.tanh(np.concatenate([c, state], axis=-1) @ params["w_c"])
    return attnlib.rnn_cell(y, state, *_cell_names(params)), h, alpha


@answer(
    "luong_step",
    "numpy",
    "state and y swapped",
    "wrong",
    "rnn_cell(state, y): input and state have changed places; crashes where the widths differ.",
)
def luong_w15(y, state, memory, params, *, score="dot"):
    compare = given_compare(memory, params, score)
    s = attnlib.rnn_cell(state, y, *_cell_names(params))
    alpha = attnlib.softmax(compare(s[..., None, :]))[..., 0, :]
    c = np.einsum("...s,...sm->...m", alpha, memory)
    return s, np.tanh(np.concatenate([c, s], axis=-1) @ params["w_c"]), alpha


@answer("luong_step", "numpy", "two returned", "wrong", "The weights are not returned.")
def luong_w16(y, state, memory, params, *, score="dot"):
    compare = given_compare(memory, params, score)
    s = attnlib.rnn_cell(y, state, *_cell_names(params))
    alpha = attnlib.softmax(compare(s[..., None, :]))
    c = (alpha @ memory)[..., 0, :]
    return s, np.tanh(np.concatenate([c, s], axis=-1) @ params["w_c"])


@answer("luong_step", "numpy", "h~ before the state", "wrong", "h~ and the next state are returned in the wrong order.")
def luong_w17(y, state, memory, params, *, score="dot"):
    compare = given_compare(memory, params, score)
    s = attnlib.rnn_cell(y, state, *_cell_names(params))
    alpha = attnlib.softmax(compare(s[..., None, :]))
    c = (alpha @ memory)[..., 0, :]
    return np.tanh(np.concatenate([c, s], axis=-1) @ params["w_c"]), s, alpha[..., 0, :]


@answer(
    "luong_step",
    "numpy",
    "concat scores from the wrong name",
    "wrong",
    "'concat' is spelled 'additive' in the own comparison, so it falls through to the dot product.",
)
def luong_w18(y, state, memory, params, *, score="dot"):
    s = attnlib.rnn_cell(y, state, *_cell_names(params))
    q = s[..., None, :]
    if score == "general":
        q = q @ params["weight"]
    if score == "additive":
        e = attnlib.additive(q, memory, params["w_query"], params["w_key"], params["v"])
    else:
        e = attnlib.dot(q, memory)
    alpha = attnlib.softmax(e)
    c = (alpha @ memory)[..., 0, :]
    return s, np.tanh(np.concatenate([c, s], axis=-1) @ params["w_c"]), alpha[..., 0, :]


@answer("luong_step", "numpy", "w_c cut in two", "right")
def luong_r1(y, state, memory, params, *, score="dot"):
    compare = given_compare(memory, params, score)
    s = attnlib.rnn_cell(y, state, *_cell_names(params))
    e = compare(np.expand_dims(s, axis=-2))
    alpha = np.squeeze(attnlib.softmax(e, axis=-1), axis=-2)
    c = np.einsum("...sm,...s->...m", memory, alpha)
    D_m = memory.shape[-1]
    return s, np.tanh(c @ params["w_c"][:D_m] + s @ params["w_c"][D_m:]), alpha


@answer("luong_step", "numpy", "everything as tables of one row", "right")
def luong_r2(y, state, memory, params, *, score="dot"):
    compare = given_compare(memory, params, score)
    y, state = y[..., None, :], state[..., None, :]
    s = attnlib.rnn_cell(y, state, *_cell_names(params))
    alpha = attnlib.softmax(compare(s))
    h = np.tanh(np.concatenate((alpha @ memory, s), axis=-1) @ params["w_c"])
    return tuple(np.take(a, 0, axis=-2) for a in (s, h, alpha))


@answer("luong_step", "numpy", "row by row of the memory", "right")
def luong_r3(y, state, memory, params, *, score="dot"):
    compare = given_compare(memory, params, score)
    s = attnlib.rnn_cell(y, state, *_cell_names(params))
    e = compare(s.reshape(*s.shape[:-1], 1, s.shape[-1]))
    alpha = attnlib.softmax(e)[..., 0, :]
    c = np.zeros_like(memory[..., 0, :], dtype=float)
    for j in range(memory.shape[-2]):
        c = c + alpha[..., j : j + 1] * memory[..., j, :]
    both = np.zeros(s.shape[:-1] + (c.shape[-1] + s.shape[-1],))
    both[..., : c.shape[-1]] = c
    both[..., c.shape[-1] :] = s
    return s, np.tanh(both @ params["w_c"]), alpha


# =====================================================================================================================
# bahdanau_torch (check "bahdanau_step", backend torch)
# =====================================================================================================================
@answer("bahdanau_step", "torch", "through numpy", "wrong", "A detour through NumPy: right values and no gradients.")
def bahdanau_torch_w1(y, state, memory, params):
    n = {k: p.detach().cpu().numpy() for k, p in params.items()}
    y_, s_, m_ = (t.detach().cpu().numpy() for t in (y, state, memory))
    weights = _softmax(_additive(s_[..., None, :], m_, n["w_query"], n["w_key"], n["v"])[..., 0, :])
    context = np.einsum("...s,...sd->...d", weights, m_)
    new = _rnn_cell(np.concatenate([y_, context], -1), s_, n["w_ih"], n["w_hh"], n["b_ih"], n["b_hh"])
    return tuple(torch.as_tensor(a, dtype=y.dtype, device=y.device) for a in (new, context, weights))


@answer(
    "bahdanau_step",
    "torch",
    "weights detached",
    "wrong",
    "The weights are detached before the sum: the score learns nothing.",
)
def bahdanau_torch_w2(y, state, memory, params):
    e = torch.tanh((state @ params["w_query"]).unsqueeze(-2) + memory @ params["w_key"]) @ params["v"]
    weights = torch.softmax(e, dim=-1)
    context = (weights.detach().unsqueeze(-1) * memory).sum(-2)
    z = torch.cat([y, context], -1) @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"]
    return torch.tanh(z), context, weights


@answer(
    "bahdanau_step",
    "torch",
    "score under no_grad",
    "wrong",
    "The scores are computed under no_grad, so no gradient reaches w_query, w_key and v.",
)
def bahdanau_torch_w3(y, state, memory, params):
    with torch.no_grad():
        q = state @ params["w_query"]
        k = memory @ params["w_key"]
        e = (torch.tanh(q[..., None, :] + k) * params["v"]).sum(-1)
        weights = F.softmax(e, -1)
    context = torch.einsum("...s,...sd->...d", weights, memory)
    x = torch.cat([y, context], dim=-1)
    new = torch.tanh(F.linear(x, params["w_ih"], params["b_ih"]) + F.linear(state, params["w_hh"], params["b_hh"]))
    return new, context, weights


@answer(
    "bahdanau_step",
    "torch",
    "state cut off",
    "wrong",
    "The state is detached on entry (as in truncated backpropagation), so no gradient flows to earlier steps.",
)
def bahdanau_torch_w4(y, state, memory, params):
    state = state.detach()
    e = torch.tanh((state @ params["w_query"])[..., None, :] + memory @ params["w_key"]) @ params["v"]
    weights = e.softmax(-1)
    context = (weights[..., None, :] @ memory)[..., 0, :]
    x = torch.cat([y, context], dim=-1)
    new = torch.tanh(F.linear(x, params["w_ih"], params["b_ih"]) + F.linear(state, params["w_hh"], params["b_hh"]))
    return new, context, weights


@answer(
    "bahdanau_step",
    "torch",
    "softmax of dimension 1",
    "wrong",
    "dim=1 is the memory only with exactly one batch dimension.",
)
def bahdanau_torch_w5(y, state, memory, params):
    e = torch.tanh((state @ params["w_query"]).unsqueeze(-2) + memory @ params["w_key"]) @ params["v"]
    weights = F.softmax(e, dim=1)
    context = (weights.unsqueeze(-1) * memory).sum(-2)
    x = torch.cat([y, context], dim=1)
    new = torch.tanh(x @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"])
    return new, context, weights


@answer(
    "bahdanau_step",
    "torch",
    "bmm",
    "wrong",
    "bmm takes exactly three dimensions: a single sentence and (2, 3, S, D_m) raise an error.",
)
def bahdanau_torch_w6(y, state, memory, params):
    e = torch.tanh((state @ params["w_query"]).unsqueeze(-2) + memory @ params["w_key"]) @ params["v"]
    weights = F.softmax(e, dim=-1)
    context = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
    x = torch.cat([y, context], dim=-1)
    new = torch.tanh(x @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"])
    return new, context, weights


@answer(
    "bahdanau_step",
    "torch",
    "float32 buffers",
    "wrong",
    "torch.zeros is float32 on the CPU whatever comes in: float64 inputs are rounded on the way (new tensors should grow out of the inputs).",
)
def bahdanau_torch_w7(y, state, memory, params):
    S = memory.shape[-2]
    e = torch.zeros(memory.shape[:-1])
    for j in range(S):
        e[..., j] = torch.tanh(state @ params["w_query"] + memory[..., j, :] @ params["w_key"]) @ params["v"]
    weights = torch.softmax(e, -1)
    context = (weights.unsqueeze(-1) * memory).sum(-2)
    x = torch.cat([y, context], dim=-1)
    new = torch.tanh(x @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"])
    return new, context, weights


@answer(
    "bahdanau_step",
    "torch",
    "exp over sum",
    "wrong",
    "The softmax has no shift: large entries of v make exp overflow, and the weights are nan.",
)
def bahdanau_torch_w8(y, state, memory, params):
    e = torch.tanh((state @ params["w_query"])[..., None, :] + memory @ params["w_key"]) @ params["v"]
    weights = torch.exp(e) / torch.exp(e).sum(dim=-1, keepdim=True)
    context = torch.einsum("...s,...sd->...d", weights, memory)
    x = torch.cat([y, context], dim=-1)
    new = torch.tanh(x @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"])
    return new, context, weights


@answer(
    "bahdanau_step",
    "torch",
    "context beside y, wrong way",
    "wrong",
    "[c; y]: the context stands in front of the output.",
)
def bahdanau_torch_w9(y, state, memory, params):
    e = torch.tanh((state @ params["w_query"])[..., None, :] + memory @ params["w_key"]) @ params["v"]
    weights = torch.softmax(e, -1)
    context = torch.einsum("...s,...sd->...d", weights, memory)
    x = torch.cat((context, y), dim=-1)
    new = torch.tanh(x @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"])
    return new, context, weights


@answer(
    "bahdanau_step",
    "torch",
    "w_hh as it stands",
    "wrong",
    "state @ w_hh without the transpose; nothing complains because it is square.",
)
def bahdanau_torch_w10(y, state, memory, params):
    e = torch.tanh((state @ params["w_query"])[..., None, :] + memory @ params["w_key"]) @ params["v"]
    weights = torch.softmax(e, -1)
    context = torch.einsum("...s,...sd->...d", weights, memory)
    from_input = F.linear(torch.cat((y, context), dim=-1), params["w_ih"], params["b_ih"])
    from_state = state @ params["w_hh"] + params["b_hh"]
    return torch.tanh(from_input + from_state), context, weights


@answer(
    "bahdanau_step",
    "torch",
    "keys in the context",
    "wrong",
    "Averages the projected keys, not the memory: the context is (..., D_a).",
)
def bahdanau_torch_w11(y, state, memory, params):
    keys = memory @ params["w_key"]
    e = torch.tanh((state @ params["w_query"])[..., None, :] + keys) @ params["v"]
    weights = torch.softmax(e, -1)
    context = torch.einsum("...s,...sd->...d", weights, keys)
    from_input = F.linear(torch.cat((y, context), dim=-1), params["w_ih"], params["b_ih"])
    return torch.tanh(from_input + F.linear(state, params["w_hh"], params["b_hh"])), context, weights


@answer(
    "bahdanau_step",
    "torch",
    "fresh linear layers",
    "wrong",
    "New nn.Linear layers with random weights are made for the cell at every call; the given parameters are ignored.",
)
def bahdanau_torch_w12(y, state, memory, params):
    e = torch.tanh((state @ params["w_query"])[..., None, :] + memory @ params["w_key"]) @ params["v"]
    weights = torch.softmax(e, -1)
    context = torch.einsum("...s,...sd->...d", weights, memory)
    x = torch.cat((y, context), dim=-1)
    cell_in = torch.nn.Linear(x.shape[-1], state.shape[-1]).to(x)
    cell_state = torch.nn.Linear(state.shape[-1], state.shape[-1]).to(x)
    return torch.tanh(cell_in(x) + cell_state(state)), context, weights


@answer(
    "bahdanau_step",
    "torch",
    "torch.tensor of a list",
    "wrong",
    "float(...) and torch.tensor make plain numbers of the scores: the gradient to query, key and v is lost.",
)
def bahdanau_torch_w13(y, state, memory, params):
    def scores(s, m):
        if s.ndim > 1:
            return [scores(a, b) for a, b in zip(s, m)]
        return [float((torch.tanh(s @ params["w_query"] + row @ params["w_key"]) * params["v"]).sum()) for row in m]

    e = torch.tensor(scores(state, memory), dtype=state.dtype, device=state.device)
    weights = torch.softmax(e, -1)
    context = (weights[..., None] * memory).sum(-2)
    x = torch.cat((y, context), dim=-1)
    new = torch.tanh(x @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"])
    return new, context, weights


@answer(
    "bahdanau_step",
    "torch",
    "squeeze all",
    "wrong",
    ".squeeze() without a dimension removes a batch of 1 (and a memory of one row) too.",
)
def bahdanau_torch_w14(y, state, memory, params):
    q = (state @ params["w_query"]).unsqueeze(-2)
    e = torch.tanh(q + memory @ params["w_key"]) @ params["v"].unsqueeze(-1)
    weights = F.softmax(e.squeeze(), dim=-1)
    context = (weights.unsqueeze(-2) @ memory).squeeze()
    x = torch.cat([y, context], dim=-1)
    new = torch.tanh(x @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"])
    return new, context, weights


@answer(
    "bahdanau_step",
    "torch",
    "biases summed in place",
    "wrong",
    "bias += changes the caller's b_ih, a little more in every step (and raises an error where b_ih wants a gradient).",
)
def bahdanau_torch_w15(y, state, memory, params):
    e = torch.tanh((state @ params["w_query"])[..., None, :] + memory @ params["w_key"]) @ params["v"]
    weights = torch.softmax(e, -1)
    context = (memory * weights[..., None]).sum(-2)
    bias = params["b_ih"]
    bias += params["b_hh"]
    x = torch.cat([y, context], dim=-1)
    new = torch.tanh(x @ params["w_ih"].T + state @ params["w_hh"].T + bias)
    return new, context, weights


@answer("bahdanau_step", "torch", "one bias", "wrong", "b_hh is forgotten.")
def bahdanau_torch_w16(y, state, memory, params):
    e = torch.tanh((state @ params["w_query"])[..., None, :] + memory @ params["w_key"]) @ params["v"]
    weights = torch.softmax(e, -1)
    context = torch.matmul(weights.unsqueeze(-2), memory).squeeze(-2)
    w = torch.cat([params["w_ih"], params["w_hh"]], dim=1)
    new = torch.tanh(F.linear(torch.cat([y, context, state], dim=-1), w, params["b_ih"]))
    return new, context, weights


@answer(
    "bahdanau_step",
    "torch",
    "rnn_tanh_cell",
    "wrong",
    "torch's own cell takes exactly one batch dimension; a single sentence or (2, 3, D) raises an error.",
)
def bahdanau_torch_w17(y, state, memory, params):
    e = torch.tanh((state @ params["w_query"])[..., None, :] + memory @ params["w_key"]) @ params["v"]
    weights = torch.softmax(e, -1)
    context = torch.matmul(weights.unsqueeze(-2), memory).squeeze(-2)
    x = torch.cat([y, context], -1)
    new = torch.rnn_tanh_cell(x, state, params["w_ih"], params["w_hh"], params["b_ih"], params["b_hh"])
    return new, context, weights


@answer(
    "bahdanau_step",
    "torch",
    "query projection forgotten behind a batch",
    "wrong",
    "unsqueeze(0) in place of unsqueeze(-2): with a batch the states of all sentences are paired with the rows of the memory, or it crashes.",
)
def bahdanau_torch_w18(y, state, memory, params):
    q = (state @ params["w_query"]).unsqueeze(0)
    e = torch.tanh(q + memory @ params["w_key"]) @ params["v"]
    weights = torch.softmax(e, -1)
    context = torch.einsum("...s,...sd->...d", weights, memory)
    x = torch.cat([y, context], -1)
    new = torch.tanh(x @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"])
    return new, context, weights


@answer("bahdanau_step", "torch", "row after row", "right")
def bahdanau_torch_r1(y, state, memory, params):
    asked = state @ params["w_query"]
    rows = memory.unbind(dim=-2)
    e = torch.stack([(torch.tanh(asked + row @ params["w_key"]) * params["v"]).sum(-1) for row in rows], dim=-1)
    weights = (e - torch.logsumexp(e, dim=-1, keepdim=True)).exp()
    context = memory.new_zeros(memory.shape[:-2] + memory.shape[-1:])
    for j, row in enumerate(rows):
        context = context + weights[..., j : j + 1] * row
    D_y = y.shape[-1]
    z = y @ params["w_ih"][:, :D_y].T + context @ params["w_ih"][:, D_y:].mT
    z = z + state @ params["w_hh"].t() + params["b_ih"] + params["b_hh"]
    return z.tanh(), context, weights


@answer("bahdanau_step", "torch", "einsum all the way", "right")
def bahdanau_torch_r2(y, state, memory, params):
    q = torch.einsum("...d,da->...a", state, params["w_query"])
    k = torch.einsum("...sd,da->...sa", memory, params["w_key"])
    e = torch.einsum("...sa,a->...s", torch.tanh(q.unsqueeze(-2) + k), params["v"])
    shifted = torch.exp(e - e.amax(-1, keepdim=True).detach())  # the shift cancels, and so does its gradient
    alpha = shifted / shifted.sum(-1, keepdim=True)
    c = torch.einsum("...s,...sd->...d", alpha, memory)
    z = torch.einsum("...i,hi->...h", torch.cat((y, c), -1), params["w_ih"])
    z = z + torch.einsum("...i,hi->...h", state, params["w_hh"]) + (params["b_ih"] + params["b_hh"])
    return torch.tanh(z), c, alpha


class _Cell(torch.nn.Module):
    """A cell around weights that are given."""

    def __init__(self, params):
        super().__init__()
        self.given = dict(params)

    def forward(self, x, h):
        return torch.tanh(
            sum(F.linear(a, self.given["w_" + n], self.given["b_" + n]) for a, n in ((x, "ih"), (h, "hh")))
        )


@answer("bahdanau_step", "torch", "a module around the parameters", "right")
def bahdanau_torch_r3(y, state, memory, params):
    query = state[..., None, :]
    hidden = torch.add(query.matmul(params["w_query"]), memory.matmul(params["w_key"])).tanh()
    alpha = F.softmax(hidden.matmul(params["v"][:, None]), dim=-2)  # (..., S, 1)
    c = (alpha * memory).sum(dim=-2)
    return _Cell(params)(torch.cat([y, c], dim=-1), state), c, alpha.squeeze(-1)
