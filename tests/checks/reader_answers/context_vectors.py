"""Answers to the notebook "from RNNs to context vectors", as students might write them."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

ANSWERS = []


def answer(name, backend, label, verdict, why=""):
    """Note an implementation; it stays the plain function that it is."""

    def note(function):
        ANSWERS.append((name, backend, label, verdict, function, why))
        return function

    return note


# --- stand-ins for what the notebook lets students take from the library, written from its text


class attnlib:
    """Stands for the library in the answers below."""

    @staticmethod
    def softmax(x, axis=-1):
        powers = np.exp(x - np.max(x, axis=axis, keepdims=True))
        return powers / powers.sum(axis=axis, keepdims=True)

    @staticmethod
    def dot(query, key):
        return query @ np.swapaxes(key, -1, -2)

    @staticmethod
    def general(query, key, weight):
        return query @ weight @ np.swapaxes(key, -1, -2)

    @staticmethod
    def additive(query, key, w_query, w_key, v):
        return np.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]) @ v

    @staticmethod
    def rnn_cell(x, h, w_ih, w_hh, b_ih, b_hh):
        return np.tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh)


def CELL(params):
    """The four parameters of the cell, in order."""
    return [params[name] for name in ("w_ih", "w_hh", "b_ih", "b_hh")]


def SCORE(params):
    """The three parameters of the score, in order."""
    return [params[name] for name in ("w_query", "w_key", "v")]


some_queries, some_keys = np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([[3.0, 1.0], [1.0, 0.0], [-1.0, 2.0]])
symmetric = np.array([[2.0, 1.0], [1.0, 3.0]])

# ============================================================================================ rnn_cell


@answer("rnn_cell", "numpy", "plain", "right")
def rnn_cell_r1(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    from_state = h @ w_hh.T + b_hh
    return np.tanh(from_input + from_state)


@answer("rnn_cell", "numpy", "one wide matrix", "right")
def rnn_cell_r2(x, h, w_ih, w_hh, b_ih, b_hh):
    both = np.concatenate((x, h), axis=-1)
    weight = np.hstack((w_ih, w_hh))
    return np.tanh(both @ weight.T + (b_ih + b_hh))


@answer("rnn_cell", "numpy", "einsum", "right")
def rnn_cell_r3(x, h, w_ih, w_hh, b_ih, b_hh):
    a = np.einsum("...i,oi->...o", x, w_ih)
    b = np.einsum("...i,oi->...o", h, w_hh)
    return np.tanh(a + b + b_ih + b_hh)


@answer("rnn_cell", "numpy", "columns", "right")
def rnn_cell_r4(x, h, w_ih, w_hh, b_ih, b_hh):
    column = w_ih @ x[..., None] + w_hh @ h[..., None]
    return np.tanh(column[..., 0] + b_ih + b_hh)


@answer("rnn_cell", "numpy", "neuron by neuron", "right")
def rnn_cell_r5(x, h, w_ih, w_hh, b_ih, b_hh):
    neurons = []
    for i in range(len(b_hh)):
        total = (x * w_ih[i]).sum(axis=-1) + b_ih[i] + (h * w_hh[i]).sum(axis=-1) + b_hh[i]
        neurons.append(np.tanh(total))
    return np.stack(neurons, axis=-1)


@answer("rnn_cell", "numpy", "by math.tanh, sentence by sentence", "right")
def rnn_cell_r6(x, h, w_ih, w_hh, b_ih, b_hh):
    new = np.empty(h.shape, dtype=float)
    for i in np.ndindex(*h.shape):
        front, o = i[:-1], i[-1]
        s = b_ih[o] + b_hh[o]
        for j in range(x.shape[-1]):
            s += w_ih[o, j] * x[front][j]
        for j in range(h.shape[-1]):
            s += w_hh[o, j] * h[front][j]
        new[i] = math.tanh(s)
    return new


@answer("rnn_cell", "numpy", "no transpose", "wrong", "w_hh is not transposed")
def rnn_cell_w1(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    return np.tanh(from_input + h @ w_hh + b_hh)


@answer("rnn_cell", "numpy", "no b_hh", "wrong", "the second bias is forgotten")
def rnn_cell_w2(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    return np.tanh(from_input + h @ w_hh.T)


@answer("rnn_cell", "numpy", "no tanh", "wrong", "nothing is squashed")
def rnn_cell_w3(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    from_state = h @ w_hh.T + b_hh
    return from_input + from_state


@answer("rnn_cell", "numpy", "sigmoid", "wrong", "squashed by the logistic function instead of tanh")
def rnn_cell_w4(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    return 1 / (1 + np.exp(-(from_input + h @ w_hh.T + b_hh)))


@answer("rnn_cell", "numpy", "two tanh", "wrong", "the two parts are squashed one by one, and added after that")
def rnn_cell_w5(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    return np.tanh(from_input) + np.tanh(h @ w_hh.T + b_hh)


@answer("rnn_cell", "numpy", "b_ih twice", "wrong", "the input's bias is added in the state's part as well")
def rnn_cell_w6(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    from_state = h @ w_hh.T + b_ih
    return np.tanh(from_input + from_state)


@answer("rnn_cell", "numpy", "w_hh @ h", "wrong", "right for one vector, but a batch is multiplied from the wrong side")
def rnn_cell_w7(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    return np.tanh(from_input + w_hh @ h + b_hh)


@answer(
    "rnn_cell",
    "numpy",
    "(w_hh @ h.T).T",
    "wrong",
    "right for one vector and one batch axis; .T turns all axes round when there are two in front",
)
def rnn_cell_w8(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    return np.tanh(from_input + (w_hh @ h.T).T + b_hh)


@answer(
    "rnn_cell",
    "numpy",
    "concatenate without axis",
    "wrong",
    "x and h are joined along the first axis, which is the last one only without a batch",
)
def rnn_cell_w9(x, h, w_ih, w_hh, b_ih, b_hh):
    both = np.concatenate([x, h])
    weight = np.concatenate([w_ih, w_hh], axis=1)
    return np.tanh(both @ weight.T + b_ih + b_hh)


@answer(
    "rnn_cell",
    "numpy",
    "bias in place",
    "wrong",
    "b_ih is the caller's, and is changed: the second call adds b_hh twice",
)
def rnn_cell_w10(x, h, w_ih, w_hh, b_ih, b_hh):
    bias = b_ih
    bias += b_hh
    return np.tanh(x @ w_ih.T + h @ w_hh.T + bias)


@answer("rnn_cell", "numpy", "each neuron its own state only", "wrong", "only the diagonal of w_hh is used")
def rnn_cell_w11(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    return np.tanh(from_input + np.diag(w_hh) * h + b_hh)


@answer("rnn_cell", "numpy", "bias before the matrix", "wrong", "b_hh is added to the state before the multiplication")
def rnn_cell_w12(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    return np.tanh(from_input + (h + b_hh) @ w_hh.T)


@answer("rnn_cell", "numpy", "rounded", "wrong", "rounded to three places, as in the printed example")
def rnn_cell_w13(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    return np.round(np.tanh(from_input + h @ w_hh.T + b_hh), 3)


@answer(
    "rnn_cell",
    "numpy",
    "tanh by its definition",
    "wrong",
    "exp overflows for large sums (beyond 710), and the state is nan",
)
def rnn_cell_w14(x, h, w_ih, w_hh, b_ih, b_hh):
    a = x @ w_ih.T + b_ih + h @ w_hh.T + b_hh
    return (np.exp(a) - np.exp(-a)) / (np.exp(a) + np.exp(-a))


@answer(
    "rnn_cell",
    "numpy",
    "tanh from the sigmoid, badly",
    "wrong",
    "tanh(a) is 2 sigmoid(2a) - 1; here it is 2 sigmoid(a) - 1",
)
def rnn_cell_w15(x, h, w_ih, w_hh, b_ih, b_hh):
    a = x @ w_ih.T + b_ih + h @ w_hh.T + b_hh
    return 2 / (1 + np.exp(-a)) - 1


@answer(
    "rnn_cell", "numpy", "loop without the last", "wrong", "the inner loop leaves out the last number of the old state"
)
def rnn_cell_w16(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    size = h.shape[-1]
    from_state = np.zeros(h.shape)
    for i in range(size):
        for j in range(size - 1):
            from_state[..., i] += w_hh[i, j] * h[..., j]
    return np.tanh(from_input + from_state + b_hh)


@answer(
    "rnn_cell",
    "numpy",
    "zeros_like(h)",
    "wrong",
    "the result takes the dtype of the state, so a state of whole numbers such as 0 gives only -1, 0 and 1",
)
def rnn_cell_w17(x, h, w_ih, w_hh, b_ih, b_hh):
    new = np.zeros_like(h)
    new[...] = np.tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh)
    return new


@answer("rnn_cell", "numpy", "leaky", "wrong", "the new state is mixed with the old one, as in an echo state network")
def rnn_cell_w18(x, h, w_ih, w_hh, b_ih, b_hh):
    new = np.tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh)
    return 0.1 * h + 0.9 * new


@answer("rnn_cell", "numpy", "state in place", "wrong", "the last state of the caller is overwritten by the next one")
def rnn_cell_w19(x, h, w_ih, w_hh, b_ih, b_hh):
    h[...] = np.tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh)
    return h


@answer("rnn_cell", "numpy", "loop in place", "wrong", "neuron i already sees the new states of the neurons before it")
def rnn_cell_w20(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    new = np.array(h, dtype=float)
    for i in range(new.shape[-1]):
        new[..., i] = np.tanh(from_input[..., i] + (new * w_hh[i]).sum(-1) + b_hh[i])
    return new


@answer(
    "rnn_cell", "numpy", "transposed when it does not fit", "wrong", "w_hh always fits, so its transpose is never taken"
)
def rnn_cell_w21(x, h, w_ih, w_hh, b_ih, b_hh):
    def project(a, w):
        try:
            return a @ w
        except ValueError:
            return a @ w.T

    return np.tanh(x @ w_ih.T + project(h, w_hh) + b_ih + b_hh)


@answer("rnn_cell", "numpy", "product of the parts", "wrong", "input part and state part are multiplied")
def rnn_cell_w22(x, h, w_ih, w_hh, b_ih, b_hh):
    from_input = x @ w_ih.T + b_ih
    return np.tanh(from_input * (h @ w_hh.T + b_hh))


# ============================================================================================ additive


@answer("additive", "numpy", "broadcasting", "right")
def additive_r1(query, key, w_query, w_key, v):
    q = (query @ w_query)[..., :, None, :]
    k = (key @ w_key)[..., None, :, :]
    return np.tanh(q + k) @ v


@answer("additive", "numpy", "einsum", "right")
def additive_r2(query, key, w_query, w_key, v):
    q = np.einsum("...td,da->...ta", query, w_query)
    k = np.einsum("...sd,da->...sa", key, w_key)
    hidden = np.tanh(np.expand_dims(q, -2) + np.expand_dims(k, -3))
    return np.einsum("...tsa,a->...ts", hidden, v)


@answer("additive", "numpy", "query by query", "right")
def additive_r3(query, key, w_query, w_key, v):
    projected = key @ w_key
    rows = []
    for t in range(query.shape[-2]):
        q = query[..., t : t + 1, :] @ w_query
        rows.append(np.tanh(q + projected) @ v)
    return np.stack(rows, axis=-2)


@answer("additive", "numpy", "four loops", "right")
def additive_r4(query, key, w_query, w_key, v):
    front, T, S = query.shape[:-2], query.shape[-2], key.shape[-2]
    scores = np.zeros((*front, T, S))
    for b in np.ndindex(*front):
        for i in range(T):
            for j in range(S):
                scores[b + (i, j)] = np.dot(np.tanh(query[b][i] @ w_query + key[b][j] @ w_key), v)
    return scores


@answer("additive", "numpy", "hidden unit by hidden unit, little memory", "right")
def additive_r5(query, key, w_query, w_key, v):
    scores = 0.0
    for a in range(len(v)):
        q = query @ w_query[:, a]
        k = key @ w_key[:, a]
        scores = scores + v[a] * np.tanh(q[..., :, None] + k[..., None, :])
    return scores


@answer("additive", "numpy", "pairs side by side, one matrix", "right")
def additive_r6(query, key, w_query, w_key, v, mask=None):
    T, S = query.shape[-2], key.shape[-2]
    pairs = np.concatenate([np.repeat(query, S, axis=-2), np.concatenate([key] * T, axis=-2)], axis=-1)
    scores = np.tanh(pairs @ np.concatenate([w_query, w_key])) @ v
    scores = scores.reshape(*scores.shape[:-1], T, S)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    return scores


@answer("additive", "numpy", "v forgotten", "wrong", "the hidden numbers are summed without the weights v")
def additive_w1(query, key, w_query, w_key, v):
    return np.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]).sum(axis=-1)


@answer("additive", "numpy", "rows are keys", "wrong", "the table has a row for each key, (..., S, T)")
def additive_w2(query, key, w_query, w_key, v):
    return np.tanh((query @ w_query)[..., None, :, :] + (key @ w_key)[..., :, None, :]) @ v


@answer("additive", "numpy", "tanh outside", "wrong", "v is applied first, and the score is squashed afterwards")
def additive_w3(query, key, w_query, w_key, v):
    return np.tanh(((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]) @ v)


@answer(
    "additive",
    "numpy",
    "torch's layout",
    "wrong",
    "the weights are transposed as in task 2: an error, or other numbers where they are square",
)
def additive_w4(query, key, w_query, w_key, v):
    return np.tanh((query @ w_query.T)[..., :, None, :] + (key @ w_key.T)[..., None, :, :]) @ v


@answer(
    "additive",
    "numpy",
    "axes from the front",
    "wrong",
    "the new axes are counted from the front, so it is right without a batch only",
)
def additive_w5(query, key, w_query, w_key, v):
    return np.tanh((query @ w_query)[:, None] + (key @ w_key)[None, :]) @ v


@answer(
    "additive",
    "numpy",
    "one batch axis only",
    "wrong",
    "right for (B, T, D), and wrong or an error for none or two dimensions in front",
)
def additive_w6(query, key, w_query, w_key, v):
    q = (query @ w_query)[:, :, np.newaxis, :]
    k = (key @ w_key)[:, np.newaxis, :, :]
    return np.tanh(q + k) @ v


@answer("additive", "numpy", "no tanh", "wrong", "nothing is squashed")
def additive_w7(query, key, w_query, w_key, v):
    return ((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]) @ v


@answer("additive", "numpy", "softmax too", "wrong", "returns weights in place of scores")
def additive_w8(query, key, w_query, w_key, v):
    scores = np.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]) @ v
    return attnlib.softmax(scores)


@answer(
    "additive", "numpy", "scaled", "wrong", "divides by the square root of D_a, as the dot product's score is divided"
)
def additive_w9(query, key, w_query, w_key, v):
    scores = np.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]) @ v
    return scores / np.sqrt(v.shape[0])


@answer("additive", "numpy", "multiplied", "wrong", "projected query and key are multiplied instead of added")
def additive_w10(query, key, w_query, w_key, v):
    return np.tanh((query @ w_query)[..., :, None, :] * (key @ w_key)[..., None, :, :]) @ v


@answer("additive", "numpy", "difference", "wrong", "the key is subtracted")
def additive_w11(query, key, w_query, w_key, v):
    return np.tanh((query @ w_query)[..., :, None, :] - (key @ w_key)[..., None, :, :]) @ v


@answer("additive", "numpy", "two tanh", "wrong", "query and key are squashed before they are added")
def additive_w12(query, key, w_query, w_key, v):
    q, k = np.tanh(query @ w_query), np.tanh(key @ w_key)
    return (q[..., :, None, :] + k[..., None, :, :]) @ v


@answer("additive", "numpy", "for one query", "wrong", "adds without a new axis: right for T = 1 only")
def additive_w13(query, key, w_query, w_key, v):
    hidden = np.tanh(query @ w_query + key @ w_key)
    return (hidden @ v)[..., None, :]


@answer(
    "additive",
    "numpy",
    "repeat and repeat",
    "wrong",
    "both are repeated where one has to be tiled, so the pairs are the wrong ones",
)
def additive_w14(query, key, w_query, w_key, v):
    T, S = query.shape[-2], key.shape[-2]
    q = np.repeat(query @ w_query, S, axis=-2)
    k = np.repeat(key @ w_key, T, axis=-2)
    scores = np.tanh(q + k) @ v
    return scores.reshape(*scores.shape[:-1], T, S)


@answer(
    "additive",
    "numpy",
    "reshaped for transposed",
    "wrong",
    "the table (..., S, T) is reshaped to (..., T, S), which mixes rows and columns",
)
def additive_w15(query, key, w_query, w_key, v):
    scores = np.tanh((query @ w_query)[..., None, :, :] + (key @ w_key)[..., :, None, :]) @ v
    return scores.reshape(*scores.shape[:-2], query.shape[-2], key.shape[-2])


@answer(
    "additive",
    "numpy",
    "table of the query's dtype",
    "wrong",
    "with a query of whole numbers, such as (1, 0), the scores are cut to whole numbers",
)
def additive_w16(query, key, w_query, w_key, v):
    scores = np.zeros(query.shape[:-1] + (key.shape[-2],), dtype=query.dtype)
    for j in range(key.shape[-2]):
        scores[..., j] = np.tanh(query @ w_query + (key[..., j, :] @ w_key)[..., None, :]) @ v
    return scores


@answer(
    "additive",
    "numpy",
    "last key never met",
    "wrong",
    "the loop over the keys ends one too early, and the last column stays 0",
)
def additive_w17(query, key, w_query, w_key, v):
    T, S = query.shape[-2], key.shape[-2]
    q, k = query @ w_query, key @ w_key
    scores = np.zeros((*query.shape[:-2], T, S))
    for i in range(T):
        for j in range(S - 1):
            scores[..., i, j] = np.tanh(q[..., i, :] + k[..., j, :]) @ v
    return scores


@answer(
    "additive",
    "numpy",
    "v normalised",
    "wrong",
    "v is divided by its length, as in TensorFlow's BahdanauAttention(normalize=True)",
)
def additive_w18(query, key, w_query, w_key, v):
    v = v / np.linalg.norm(v)
    return np.tanh((query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]) @ v


@answer("additive", "numpy", "first sentence's keys", "wrong", "all sentences of a batch meet the keys of the first")
def additive_w19(query, key, w_query, w_key, v):
    k = key @ w_key
    while k.ndim > 2:
        k = k[0]
    return np.tanh((query @ w_query)[..., :, None, :] + k) @ v


@answer(
    "additive",
    "numpy",
    "weights swapped",
    "wrong",
    "w_key projects the query, and w_query the key: an error, or other numbers where the widths agree",
)
def additive_w20(query, key, w_query, w_key, v):
    return np.tanh((query @ w_key)[..., :, None, :] + (key @ w_query)[..., None, :, :]) @ v


@answer("additive", "numpy", "tanh by its definition", "wrong", "exp overflows for large sums, and the score is nan")
def additive_w21(query, key, w_query, w_key, v):
    z = (query @ w_query)[..., :, None, :] + (key @ w_key)[..., None, :, :]
    e = np.exp(2 * z)
    return ((e - 1) / (e + 1)) @ v


@answer(
    "additive",
    "numpy",
    "query projected in place",
    "wrong",
    "the projected query is written into the caller's array (where D_q = D_a; else an error)",
)
def additive_w22(query, key, w_query, w_key, v):
    query[...] = query @ w_query
    return np.tanh(query[..., :, None, :] + (key @ w_key)[..., None, :, :]) @ v


# ============================================================================================= general


@answer("general", "numpy", "plain", "right")
def general_r1(query, key, weight):
    return query @ weight @ np.swapaxes(key, -1, -2)


@answer("general", "numpy", "einsum", "right")
def general_r2(query, key, weight):
    return np.einsum("...id,de,...je->...ij", query, weight, key)


@answer("general", "numpy", "the student's, mended", "right")
def general_r3(query, key, weight):
    found = key @ weight.T @ np.swapaxes(query, -1, -2)
    return np.swapaxes(found, -1, -2)


@answer("general", "numpy", "sum over a product", "right")
def general_r4(query, key, weight):
    asked = query @ weight
    return (asked[..., :, None, :] * key[..., None, :, :]).sum(axis=-1)


@answer("general", "numpy", "loops", "right")
def general_r5(query, key, weight):
    scores = np.zeros(query.shape[:-1] + (key.shape[-2],))
    for place in np.ndindex(*scores.shape):
        *b, i, j = place
        q, k = query[tuple(b)][i], key[tuple(b)][j]
        scores[place] = sum(q[m] * weight[m, n] * k[n] for m in range(len(q)) for n in range(len(k)))
    return scores


@answer(
    "general", "numpy", "as found", "wrong", "unchanged: key W query, which is wrong for weights that are not symmetric"
)
def general_w1(query, key, weight):
    found = key @ weight @ np.swapaxes(query, -1, -2)
    return np.swapaxes(found, -1, -2)


@answer("general", "numpy", "symmetric part", "wrong", "the weight is made symmetric, which it need not be")
def general_w2(query, key, weight):
    weight = (weight + weight.T) / 2 if weight.shape[0] == weight.shape[1] else weight
    return query @ weight @ np.swapaxes(key, -1, -2)


@answer("general", "numpy", "transposed weight", "wrong", "query W^T key")
def general_w3(query, key, weight):
    return query @ weight.T @ np.swapaxes(key, -1, -2)


@answer("general", "numpy", "key.T", "wrong", ".T turns all axes round, so a batch fails or is mixed")
def general_w4(query, key, weight):
    return query @ weight @ key.T


@answer("general", "numpy", "einsum without batch", "wrong", "an error for anything but matrices")
def general_w5(query, key, weight):
    return np.einsum("td,de,se->ts", query, weight, key)


@answer("general", "numpy", "rows are keys", "wrong", "the table is (..., S, T)")
def general_w6(query, key, weight):
    return key @ weight.T @ np.swapaxes(query, -1, -2)


@answer("general", "numpy", "scaled", "wrong", "divided by the square root of the width")
def general_w7(query, key, weight):
    return query @ weight @ np.swapaxes(key, -1, -2) / math.sqrt(key.shape[-1])


@answer(
    "general", "numpy", "np.inner", "wrong", "np.inner pairs every query with the keys of all sentences of the batch"
)
def general_w8(query, key, weight):
    return np.inner(query @ weight, key)


@answer("general", "numpy", "tanh", "wrong", "squashed, as the additive score is")
def general_w9(query, key, weight):
    return np.tanh(query @ weight) @ np.swapaxes(key, -1, -2)


@answer("general", "numpy", "both projected", "wrong", "W is applied to the key as well")
def general_w10(query, key, weight):
    return (query @ weight) @ np.swapaxes(key @ weight, -1, -2)


@answer("general", "numpy", "a loop over one batch axis", "wrong", "right for exactly one dimension in front")
def general_w11(query, key, weight):
    return np.stack([query[b] @ weight @ key[b].T for b in range(len(query))])


@answer(
    "general",
    "numpy",
    "turned round when it does not fit",
    "wrong",
    "the transpose is taken only where the shapes force it, so a square weight is still used the wrong way round",
)
def general_w12(query, key, weight):
    if weight.shape[0] != weight.shape[1]:
        weight = weight.T
    return np.swapaxes(key @ weight @ np.swapaxes(query, -1, -2), -1, -2)


@answer(
    "general",
    "numpy",
    "table of the query's dtype",
    "wrong",
    "the table takes the dtype of the query: with queries of whole numbers, such as (1, 2), the scores are cut",
)
def general_w13(query, key, weight):
    scores = np.empty(query.shape[:-1] + (key.shape[-2],), dtype=query.dtype)
    scores[...] = query @ weight @ np.swapaxes(key, -1, -2)
    return scores


@answer("general", "numpy", "global weight", "wrong", "uses the weight of the example cell instead of the argument")
def general_w14(query, key, weight):
    return query @ symmetric @ np.swapaxes(key, -1, -2)


@answer("general", "numpy", "softmax", "wrong", "weights instead of scores")
def general_w15(query, key, weight):
    return attnlib.softmax(query @ weight @ np.swapaxes(key, -1, -2))


@answer("general", "numpy", "reshaped key", "wrong", "reshape is no transpose")
def general_w16(query, key, weight):
    return query @ weight @ key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2])


@answer(
    "general",
    "numpy",
    "transposed weight and rows are keys",
    "wrong",
    "two mistakes, which hide each other for T = S and a batch of equal queries and keys only",
)
def general_w17(query, key, weight):
    return np.swapaxes(query @ weight.T @ np.swapaxes(key, -1, -2), -1, -2)


@answer("general", "numpy", "swapped axes 0 and 1", "wrong", "right without a batch, wrong or an error with one")
def general_w18(query, key, weight):
    return query @ weight @ np.swapaxes(key, 0, 1)


# ======================================================================================= bahdanau_step


@answer("bahdanau_step", "numpy", "library parts", "right")
def bahdanau_step_r1(y, state, memory, params):
    scores = attnlib.additive(state[..., None, :], memory, params["w_query"], params["w_key"], params["v"])
    weights = attnlib.softmax(scores)
    context = (weights @ memory)[..., 0, :]
    both = np.concatenate([y, context], axis=-1)
    new = attnlib.rnn_cell(both, state, params["w_ih"], params["w_hh"], params["b_ih"], params["b_hh"])
    return new, context, weights[..., 0, :]


@answer("bahdanau_step", "numpy", "all by hand, no additive", "right")
def bahdanau_step_r2(y, state, memory, params):
    p = dict(params)
    hidden = np.tanh((state @ p["w_query"])[..., None, :] + memory @ p["w_key"])
    e = np.einsum("...sa,a->...s", hidden, p["v"])
    e = np.exp(e - e.max(-1, keepdims=True))
    alpha = e / e.sum(-1, keepdims=True)
    c = np.einsum("...s,...sm->...m", alpha, memory)
    s = np.tanh(
        np.einsum("...i,oi->...o", np.concatenate((y, c), -1), p["w_ih"]) + p["b_ih"] + state @ p["w_hh"].T + p["b_hh"]
    )
    return s, c, alpha


@answer("bahdanau_step", "numpy", "split w_ih, log space", "right")
def bahdanau_step_r3(y, state, memory, params, mask=None):
    scores = attnlib.additive(np.expand_dims(state, -2), memory, *SCORE(params)).squeeze(-2)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores - top - np.log(np.exp(scores - top).sum(axis=-1, keepdims=True)))
    context = np.sum(weights[..., np.newaxis] * memory, axis=-2)
    D_y = y.shape[-1]
    w_y, w_c = params["w_ih"][:, :D_y], params["w_ih"][:, D_y:]
    total = y @ w_y.T + context @ w_c.T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"]
    return np.tanh(total), context, weights


@answer("bahdanau_step", "numpy", "sentence by sentence", "right")
def bahdanau_step_r4(y, state, memory, params):
    if state.ndim > 1:
        parts = [bahdanau_step_r4(*one, params) for one in zip(y, state, memory)]
        return tuple(np.stack(part) for part in zip(*parts))
    scores = [np.tanh(state @ params["w_query"] + row @ params["w_key"]) @ params["v"] for row in memory]
    weights = attnlib.softmax(np.array(scores))
    context = sum(weight * row for weight, row in zip(weights, memory))
    return attnlib.rnn_cell(np.append(y, context), state, *CELL(params)), context, weights


@answer(
    "bahdanau_step",
    "numpy",
    "the new state asks",
    "wrong",
    "the cell runs first, on y and a context of zeros, and the new state asks",
)
def bahdanau_step_w1(y, state, memory, params):
    nothing = np.zeros(memory.shape[:-2] + memory.shape[-1:])
    new = attnlib.rnn_cell(np.concatenate([y, nothing], -1), state, *CELL(params))
    weights = attnlib.softmax(attnlib.additive(new[..., None, :], memory, *SCORE(params)))
    context = (weights @ memory)[..., 0, :]
    return attnlib.rnn_cell(np.concatenate([y, context], -1), state, *CELL(params)), context, weights[..., 0, :]


@answer("bahdanau_step", "numpy", "[c; y]", "wrong", "the context comes before y")
def bahdanau_step_w2(y, state, memory, params):
    weights = attnlib.softmax(attnlib.additive(state[..., None, :], memory, *SCORE(params)))
    context = (weights @ memory)[..., 0, :]
    return attnlib.rnn_cell(np.concatenate([context, y], -1), state, *CELL(params)), context, weights[..., 0, :]


@answer("bahdanau_step", "numpy", "other order of return", "wrong", "weights and context change places")
def bahdanau_step_w3(y, state, memory, params):
    weights = attnlib.softmax(attnlib.additive(state[..., None, :], memory, *SCORE(params)))
    context = (weights @ memory)[..., 0, :]
    return attnlib.rnn_cell(np.concatenate([y, context], -1), state, *CELL(params)), weights[..., 0, :], context


@answer("bahdanau_step", "numpy", "weights with the extra axis", "wrong", "the weights come back as (..., 1, S)")
def bahdanau_step_w4(y, state, memory, params):
    weights = attnlib.softmax(attnlib.additive(state[..., None, :], memory, *SCORE(params)))
    context = (weights @ memory)[..., 0, :]
    return attnlib.rnn_cell(np.concatenate([y, context], -1), state, *CELL(params)), context, weights


@answer(
    "bahdanau_step",
    "numpy",
    "softmax over the queries",
    "wrong",
    "the softmax runs over the axis of length 1, so that every weight is 1",
)
def bahdanau_step_w5(y, state, memory, params):
    weights = attnlib.softmax(attnlib.additive(state[..., None, :], memory, *SCORE(params)), axis=-2)
    context = (weights @ memory)[..., 0, :]
    return attnlib.rnn_cell(np.concatenate([y, context], -1), state, *CELL(params)), context, weights[..., 0, :]


@answer(
    "bahdanau_step",
    "numpy",
    "squeeze of everything",
    "wrong",
    "squeeze() without an axis takes away every axis of length 1: a batch of one, or a memory of one row",
)
def bahdanau_step_w6(y, state, memory, params):
    weights = attnlib.softmax(attnlib.additive(state[..., None, :], memory, *SCORE(params)))
    context = (weights @ memory).squeeze()
    return attnlib.rnn_cell(np.concatenate([y, context], -1), state, *CELL(params)), context, weights.squeeze()


@answer("bahdanau_step", "numpy", "state[None]", "wrong", "the new axis is put in front: right without a batch only")
def bahdanau_step_w7(y, state, memory, params):
    weights = attnlib.softmax(attnlib.additive(state[None], memory, *SCORE(params)))[..., 0, :]
    context = (weights[..., None] * memory).sum(-2)
    return attnlib.rnn_cell(np.concatenate([y, context], -1), state, *CELL(params)), context, weights


@answer("bahdanau_step", "numpy", "state[:, None]", "wrong", "right for exactly one dimension in front")
def bahdanau_step_w8(y, state, memory, params):
    weights = attnlib.softmax(attnlib.additive(state[:, None], memory, *SCORE(params)))
    context = (weights @ memory)[:, 0]
    return attnlib.rnn_cell(np.concatenate([y, context], 1), state, *CELL(params)), context, weights[:, 0]


@answer(
    "bahdanau_step",
    "numpy",
    "context of the first sentence",
    "wrong",
    "weights (B, S) @ memory (B, S, D_m) is (B, B, D_m), of which one sentence's memory is taken for all",
)
def bahdanau_step_w9(y, state, memory, params):
    weights = attnlib.softmax(attnlib.additive(state[..., None, :], memory, *SCORE(params)))[..., 0, :]
    context = weights @ memory
    if context.ndim > weights.ndim:
        context = context[0]
    return attnlib.rnn_cell(np.concatenate([y, context], -1), state, *CELL(params)), context, weights


@answer("bahdanau_step", "numpy", "no softmax", "wrong", "the raw scores are used as weights")
def bahdanau_step_w10(y, state, memory, params):
    weights = attnlib.additive(state[..., None, :], memory, *SCORE(params))
    context = (weights @ memory)[..., 0, :]
    return attnlib.rnn_cell(np.concatenate([y, context], -1), state, *CELL(params)), context, weights[..., 0, :]


@answer(
    "bahdanau_step", "numpy", "hard attention", "wrong", "takes the row with the largest weight in place of the average"
)
def bahdanau_step_w11(y, state, memory, params):
    weights = attnlib.softmax(attnlib.additive(state[..., None, :], memory, *SCORE(params)))[..., 0, :]
    best = weights.argmax(-1)[..., None, None]
    context = np.take_along_axis(memory, best, axis=-2)[..., 0, :]
    return attnlib.rnn_cell(np.concatenate([y, context], -1), state, *CELL(params)), context, weights


@answer(
    "bahdanau_step",
    "numpy",
    "scaled scores",
    "wrong",
    "the scores are divided by the square root of D_a before the softmax",
)
def bahdanau_step_w12(y, state, memory, params):
    scores = attnlib.additive(state[..., None, :], memory, *SCORE(params)) / np.sqrt(len(params["v"]))
    weights = attnlib.softmax(scores)
    context = (weights @ memory)[..., 0, :]
    return attnlib.rnn_cell(np.concatenate([y, context], -1), state, *CELL(params)), context, weights[..., 0, :]


KEYS = {}


@answer(
    "bahdanau_step",
    "numpy",
    "keys kept between calls",
    "wrong",
    "the projected keys of the first call are used for every later memory of the same shape",
)
def bahdanau_step_w13(y, state, memory, params):
    if memory.shape not in KEYS:
        KEYS[memory.shape] = memory @ params["w_key"]
    scores = np.tanh((state @ params["w_query"])[..., None, :] + KEYS[memory.shape]) @ params["v"]
    weights = attnlib.softmax(scores)
    context = (weights[..., None] * memory).sum(-2)
    return attnlib.rnn_cell(np.concatenate([y, context], -1), state, *CELL(params)), context, weights


@answer(
    "bahdanau_step",
    "numpy",
    "params by position",
    "wrong",
    "relies on the order of the dictionary, which nobody has promised",
)
def bahdanau_step_w14(y, state, memory, params):
    w_query, w_key, v, w_ih, w_hh, b_ih, b_hh = params.values()
    weights = attnlib.softmax(attnlib.additive(state[..., None, :], memory, w_query, w_key, v))
    context = (weights @ memory)[..., 0, :]
    new = attnlib.rnn_cell(np.concatenate([y, context], -1), state, w_ih, w_hh, b_ih, b_hh)
    return new, context, weights[..., 0, :]


@answer(
    "bahdanau_step", "numpy", "params.pop", "wrong", "empties the caller's dictionary, so that the second step fails"
)
def bahdanau_step_w15(y, state, memory, params):
    w_query, w_key, v = params.pop("w_query"), params.pop("w_key"), params.pop("v")
    weights = attnlib.softmax(attnlib.additive(state[..., None, :], memory, w_query, w_key, v))
    context = (weights @ memory)[..., 0, :]
    new = attnlib.rnn_cell(np.concatenate([y, context], -1), state, **params)
    return new, context, weights[..., 0, :]


@answer("bahdanau_step", "numpy", "state forgotten in the cell", "wrong", "the cell starts from zeros each time")
def bahdanau_step_w16(y, state, memory, params):
    weights = attnlib.softmax(attnlib.additive(state[..., None, :], memory, *SCORE(params)))
    context = (weights @ memory)[..., 0, :]
    new = attnlib.rnn_cell(np.concatenate([y, context], -1), np.zeros_like(state), *CELL(params))
    return new, context, weights[..., 0, :]


@answer("bahdanau_step", "numpy", "state in place", "wrong", "the caller's last state is overwritten")
def bahdanau_step_w17(y, state, memory, params):
    weights = attnlib.softmax(attnlib.additive(state[..., None, :], memory, *SCORE(params)))
    context = (weights @ memory)[..., 0, :]
    state[:] = attnlib.rnn_cell(np.concatenate([y, context], -1), state, *CELL(params))
    return state, context, weights[..., 0, :]


@answer(
    "bahdanau_step",
    "numpy",
    "own softmax overflows",
    "wrong",
    "exp of scores as large as the sum of v: nan for a large v",
)
def bahdanau_step_w18(y, state, memory, params):
    scores = attnlib.additive(state[..., None, :], memory, *SCORE(params))[..., 0, :]
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    context = np.einsum("...s,...sd->...d", weights, memory)
    return attnlib.rnn_cell(np.concatenate([y, context], -1), state, *CELL(params)), context, weights


@answer(
    "bahdanau_step",
    "numpy",
    "concatenate without axis",
    "wrong",
    "joined along the first axis: right without a batch only",
)
def bahdanau_step_w19(y, state, memory, params):
    weights = attnlib.softmax(attnlib.additive(state[..., None, :], memory, *SCORE(params)))
    context = (weights @ memory)[..., 0, :]
    return attnlib.rnn_cell(np.concatenate([y, context]), state, *CELL(params)), context, weights[..., 0, :]


@answer(
    "bahdanau_step",
    "numpy",
    "y, then context: added",
    "wrong",
    "y and context are added, not joined (an error, as w_ih is wider)",
)
def bahdanau_step_w20(y, state, memory, params):
    weights = attnlib.softmax(attnlib.additive(state[..., None, :], memory, *SCORE(params)))
    context = (weights @ memory)[..., 0, :]
    return attnlib.rnn_cell(y + context, state, *CELL(params)), context, weights[..., 0, :]


@answer(
    "bahdanau_step",
    "numpy",
    "looks twice",
    "wrong",
    "returns the context and weights of a second look, with the new state",
)
def bahdanau_step_w21(y, state, memory, params):
    def look(s):
        w = attnlib.softmax(attnlib.additive(s[..., None, :], memory, *SCORE(params)))
        return (w @ memory)[..., 0, :], w[..., 0, :]

    context, weights = look(state)
    state = attnlib.rnn_cell(np.concatenate([y, context], -1), state, *CELL(params))
    context, weights = look(state)
    return state, context, weights


@answer(
    "bahdanau_step", "numpy", "softmax over the batch", "wrong", "axis=0 is the axis of the memory only without a batch"
)
def bahdanau_step_w22(y, state, memory, params):
    weights = attnlib.softmax(attnlib.additive(state[..., None, :], memory, *SCORE(params))[..., 0, :], axis=0)
    context = (weights[..., None] * memory).sum(-2)
    return attnlib.rnn_cell(np.concatenate([y, context], -1), state, *CELL(params)), context, weights


@answer(
    "bahdanau_step",
    "numpy",
    "last row of the memory left out",
    "wrong",
    "the last row, taken for the start of the decoder, is given no weight",
)
def bahdanau_step_w23(y, state, memory, params):
    scores = attnlib.additive(state[..., None, :], memory, *SCORE(params))[..., 0, :]
    if scores.shape[-1] > 1:
        scores[..., -1] = -np.inf
    weights = attnlib.softmax(scores)
    context = (weights[..., None] * memory).sum(-2)
    return attnlib.rnn_cell(np.concatenate([y, context], -1), state, *CELL(params)), context, weights


@answer(
    "bahdanau_step",
    "numpy",
    "w_ih split at the wrong place",
    "wrong",
    "splits w_ih at D_m instead of D_y: an error, or, where the two are equal, the halves change places",
)
def bahdanau_step_w24(y, state, memory, params):
    weights = attnlib.softmax(attnlib.additive(state[..., None, :], memory, *SCORE(params)))[..., 0, :]
    context = (weights[..., None] * memory).sum(-2)
    D_m = memory.shape[-1]
    w_c, w_y = params["w_ih"][:, :D_m], params["w_ih"][:, D_m:]
    total = y @ w_y.T + context @ w_c.T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"]
    return np.tanh(total), context, weights


# ========================================================================================== luong_step


def COMPARE(queries, memory, params, score):
    """The choice that the notebook gives."""
    if score == "dot":
        return attnlib.dot(queries, memory)
    if score == "general":
        return attnlib.general(queries, memory, params["weight"])
    return attnlib.additive(queries, memory, *(params[name] for name in ("w_query", "w_key", "v")))


@answer("luong_step", "numpy", "plain", "right")
def luong_step_r1(y, state, memory, params, *, score="dot"):
    def compare(queries):
        if score == "dot":
            return attnlib.dot(queries, memory)
        if score == "general":
            return attnlib.general(queries, memory, params["weight"])
        return attnlib.additive(queries, memory, *(params[name] for name in ("w_query", "w_key", "v")))

    new = attnlib.rnn_cell(y, state, params["w_ih"], params["w_hh"], params["b_ih"], params["b_hh"])
    weights = attnlib.softmax(compare(new[..., None, :]))
    context = (weights @ memory)[..., 0, :]
    mixed = np.tanh(np.concatenate([context, new], axis=-1) @ params["w_c"])
    return new, mixed, weights[..., 0, :]


@answer("luong_step", "numpy", "einsum, no compare", "right")
def luong_step_r2(y, state, memory, params, *, score="dot"):
    s = np.tanh(y @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"])
    if score == "dot":
        e = np.einsum("...d,...sd->...s", s, memory)
    elif score == "general":
        e = np.einsum("...d,de,...se->...s", s, params["weight"], memory)
    else:
        e = np.tanh((s @ params["w_query"])[..., None, :] + memory @ params["w_key"]) @ params["v"]
    e = np.exp(e - e.max(axis=-1, keepdims=True))
    a = e / e.sum(axis=-1, keepdims=True)
    c = np.einsum("...s,...sd->...d", a, memory)
    return s, np.tanh(np.concatenate((c, s), axis=-1) @ params["w_c"]), a


@answer("luong_step", "numpy", "w_c split, axis squeezed", "right")
def luong_step_r3(y, state, memory, params, *, score="dot", mask=None):
    state = attnlib.rnn_cell(y, state, *CELL(params))
    scores = np.squeeze(COMPARE(np.expand_dims(state, -2), memory, params, score), axis=-2)
    if mask is not None:
        scores = np.where(mask, scores, -1e9)
    weights = attnlib.softmax(scores, axis=-1)
    context = np.sum(weights[..., None] * memory, axis=-2)
    D_m = memory.shape[-1]
    return state, np.tanh(context @ params["w_c"][:D_m] + state @ params["w_c"][D_m:]), weights


@answer("luong_step", "numpy", "sentence by sentence", "right")
def luong_step_r4(y, state, memory, params, *, score="dot"):
    if np.ndim(state) > 1:
        steps = [luong_step_r4(*one, params, score=score) for one in zip(y, state, memory)]
        return tuple(np.array(part) for part in zip(*steps))
    s = attnlib.rnn_cell(y, state, *CELL(params))
    e = COMPARE(s[None], memory, params, score)[0]
    a = attnlib.softmax(e)
    c = a @ memory
    return s, np.tanh(np.append(c, s) @ params["w_c"]), a


@answer("luong_step", "numpy", "the old state asks", "wrong", "the last state asks, as in task 6")
def luong_step_w1(y, state, memory, params, *, score="dot"):
    weights = attnlib.softmax(COMPARE(state[..., None, :], memory, params, score))
    context = (weights @ memory)[..., 0, :]
    new = attnlib.rnn_cell(y, state, *CELL(params))
    return new, np.tanh(np.concatenate([context, new], -1) @ params["w_c"]), weights[..., 0, :]


@answer("luong_step", "numpy", "[s; c]", "wrong", "state before context in the mixture")
def luong_step_w2(y, state, memory, params, *, score="dot"):
    new = attnlib.rnn_cell(y, state, *CELL(params))
    weights = attnlib.softmax(COMPARE(new[..., None, :], memory, params, score))
    context = (weights @ memory)[..., 0, :]
    return new, np.tanh(np.concatenate([new, context], -1) @ params["w_c"]), weights[..., 0, :]


@answer("luong_step", "numpy", "context returned", "wrong", "returns the context in place of h~")
def luong_step_w3(y, state, memory, params, *, score="dot"):
    new = attnlib.rnn_cell(y, state, *CELL(params))
    weights = attnlib.softmax(COMPARE(new[..., None, :], memory, params, score))
    context = (weights @ memory)[..., 0, :]
    mixed = np.tanh(np.concatenate([context, new], -1) @ params["w_c"])
    return new, context, weights[..., 0, :]


@answer("luong_step", "numpy", "h~ first", "wrong", "returns h~ before the state")
def luong_step_w4(y, state, memory, params, *, score="dot"):
    new = attnlib.rnn_cell(y, state, *CELL(params))
    weights = attnlib.softmax(COMPARE(new[..., None, :], memory, params, score))
    context = (weights @ memory)[..., 0, :]
    return np.tanh(np.concatenate([context, new], -1) @ params["w_c"]), new, weights[..., 0, :]


@answer("luong_step", "numpy", "no tanh at the end", "wrong", "h~ is not squashed")
def luong_step_w5(y, state, memory, params, *, score="dot"):
    new = attnlib.rnn_cell(y, state, *CELL(params))
    weights = attnlib.softmax(COMPARE(new[..., None, :], memory, params, score))
    context = (weights @ memory)[..., 0, :]
    return new, np.concatenate([context, new], -1) @ params["w_c"], weights[..., 0, :]


@answer("luong_step", "numpy", "w_c transposed", "wrong", "w_c.T: an error, or other numbers where D_m + D_s = D_h")
def luong_step_w6(y, state, memory, params, *, score="dot"):
    new = attnlib.rnn_cell(y, state, *CELL(params))
    weights = attnlib.softmax(COMPARE(new[..., None, :], memory, params, score))
    context = (weights @ memory)[..., 0, :]
    return new, np.tanh(np.concatenate([context, new], -1) @ params["w_c"].T), weights[..., 0, :]


@answer(
    "luong_step",
    "numpy",
    "h~ as the next state",
    "wrong",
    "h~ is handed on as the state (wrong even where it has the state's width)",
)
def luong_step_w7(y, state, memory, params, *, score="dot"):
    new = attnlib.rnn_cell(y, state, *CELL(params))
    weights = attnlib.softmax(COMPARE(new[..., None, :], memory, params, score))
    context = (weights @ memory)[..., 0, :]
    mixed = np.tanh(np.concatenate([context, new], -1) @ params["w_c"])
    return mixed, mixed, weights[..., 0, :]


@answer(
    "luong_step",
    "numpy",
    "squeeze of everything",
    "wrong",
    "squeeze() without an axis also takes away a batch of one, or a memory of one row",
)
def luong_step_w8(y, state, memory, params, *, score="dot"):
    new = attnlib.rnn_cell(y, state, *CELL(params))
    weights = attnlib.softmax(COMPARE(new[..., None, :], memory, params, score))
    context = (weights @ memory)[..., 0, :]
    return new, np.tanh(np.concatenate([context, new], -1) @ params["w_c"]), np.squeeze(weights)


@answer("luong_step", "numpy", "always dot", "wrong", "the score is not asked for: dot also for general and concat")
def luong_step_w9(y, state, memory, params, *, score="dot"):
    new = attnlib.rnn_cell(y, state, *CELL(params))
    scores = np.sum(new[..., None, :] * memory, axis=-1)
    weights = attnlib.softmax(scores)
    context = (weights[..., None] * memory).sum(-2)
    return new, np.tanh(np.concatenate([context, new], -1) @ params["w_c"]), weights


@answer("luong_step", "numpy", "old state in the mixture", "wrong", "the context is mixed with the last state")
def luong_step_w10(y, state, memory, params, *, score="dot"):
    new = attnlib.rnn_cell(y, state, *CELL(params))
    weights = attnlib.softmax(COMPARE(new[..., None, :], memory, params, score))
    context = (weights @ memory)[..., 0, :]
    return new, np.tanh(np.concatenate([context, state], -1) @ params["w_c"]), weights[..., 0, :]


@answer("luong_step", "numpy", "scaled dot", "wrong", "the scores are divided by the square root of the width")
def luong_step_w11(y, state, memory, params, *, score="dot"):
    new = attnlib.rnn_cell(y, state, *CELL(params))
    weights = attnlib.softmax(COMPARE(new[..., None, :], memory, params, score) / np.sqrt(new.shape[-1]))
    context = (weights @ memory)[..., 0, :]
    return new, np.tanh(np.concatenate([context, new], -1) @ params["w_c"]), weights[..., 0, :]


@answer(
    "luong_step",
    "numpy",
    "axis=1 for the last",
    "wrong",
    "joined along axis 1: right for exactly one dimension in front",
)
def luong_step_w12(y, state, memory, params, *, score="dot"):
    new = attnlib.rnn_cell(y, state, *CELL(params))
    weights = attnlib.softmax(COMPARE(new[..., None, :], memory, params, score))[..., 0, :]
    context = np.einsum("...s,...sd->...d", weights, memory)
    return new, np.tanh(np.concatenate([context, new], axis=1) @ params["w_c"]), weights


@answer(
    "luong_step",
    "numpy",
    "'dot' or 'general'",
    "wrong",
    "score == 'dot' or 'general' is always true, so the choice is never made",
)
def luong_step_w13(y, state, memory, params, *, score="dot"):
    new = attnlib.rnn_cell(y, state, *CELL(params))
    if score == "dot" or "general":
        weight = params["weight"] if score == "general" else np.eye(new.shape[-1], memory.shape[-1])
        scores = attnlib.general(new[..., None, :], memory, weight)
    else:
        scores = attnlib.additive(new[..., None, :], memory, *SCORE(params))
    weights = attnlib.softmax(scores)
    context = (weights @ memory)[..., 0, :]
    return new, np.tanh(np.concatenate([context, new], -1) @ params["w_c"]), weights[..., 0, :]


@answer(
    "luong_step",
    "numpy",
    "general with the weight turned round",
    "wrong",
    "m W s in place of s W m: other scores for a square weight, an error otherwise",
)
def luong_step_w14(y, state, memory, params, *, score="dot"):
    new = attnlib.rnn_cell(y, state, *CELL(params))
    if score == "general":
        scores = (memory @ params["weight"] @ new[..., None])[..., 0]
    else:
        scores = COMPARE(new[..., None, :], memory, params, score)[..., 0, :]
    weights = attnlib.softmax(scores)
    context = (weights[..., None] * memory).sum(-2)
    return new, np.tanh(np.concatenate([context, new], -1) @ params["w_c"]), weights


@answer(
    "luong_step",
    "numpy",
    "cell with biases swapped and state forgotten",
    "wrong",
    "the cell is run on a state of zeros",
)
def luong_step_w15(y, state, memory, params, *, score="dot"):
    new = attnlib.rnn_cell(y, 0 * state, params["w_ih"], params["w_hh"], params["b_hh"], params["b_ih"])
    weights = attnlib.softmax(COMPARE(new[..., None, :], memory, params, score))
    context = (weights @ memory)[..., 0, :]
    return new, np.tanh(np.concatenate([context, new], -1) @ params["w_c"]), weights[..., 0, :]


@answer("luong_step", "numpy", "state in place", "wrong", "the caller's state is overwritten by the next one")
def luong_step_w16(y, state, memory, params, *, score="dot"):
    state[...] = attnlib.rnn_cell(y, state, *CELL(params))
    weights = attnlib.softmax(COMPARE(state[..., None, :], memory, params, score))
    context = (weights @ memory)[..., 0, :]
    return state, np.tanh(np.concatenate([context, state], -1) @ params["w_c"]), weights[..., 0, :]


@answer("luong_step", "numpy", "scores returned", "wrong", "returns the scores in place of the weights")
def luong_step_w17(y, state, memory, params, *, score="dot"):
    new = attnlib.rnn_cell(y, state, *CELL(params))
    scores = COMPARE(new[..., None, :], memory, params, score)
    context = (attnlib.softmax(scores) @ memory)[..., 0, :]
    return new, np.tanh(np.concatenate([context, new], -1) @ params["w_c"]), scores[..., 0, :]


@answer(
    "luong_step",
    "numpy",
    "own softmax overflows",
    "wrong",
    "exp of large dot products with a large memory is inf, and the weights nan",
)
def luong_step_w18(y, state, memory, params, *, score="dot"):
    new = attnlib.rnn_cell(y, state, *CELL(params))
    e = np.exp(COMPARE(new[..., None, :], memory, params, score))
    weights = e / e.sum(-1, keepdims=True)
    context = (weights @ memory)[..., 0, :]
    return new, np.tanh(np.concatenate([context, new], -1) @ params["w_c"]), weights[..., 0, :]


@answer("luong_step", "numpy", "new[:, None]", "wrong", "right for exactly one dimension in front")
def luong_step_w19(y, state, memory, params, *, score="dot"):
    new = attnlib.rnn_cell(y, state, *CELL(params))
    weights = attnlib.softmax(COMPARE(new[:, None, :], memory, params, score))
    context = (weights @ memory)[:, 0, :]
    return new, np.tanh(np.concatenate([context, new], -1) @ params["w_c"]), weights[:, 0, :]


@answer(
    "luong_step",
    "numpy",
    "local attention",
    "wrong",
    "a window around the middle of the memory, from the paper's local attention",
)
def luong_step_w20(y, state, memory, params, *, score="dot"):
    new = attnlib.rnn_cell(y, state, *CELL(params))
    S = memory.shape[-2]
    window = np.exp(-((np.arange(S) - S // 2) ** 2) / 8)
    weights = attnlib.softmax(COMPARE(new[..., None, :], memory, params, score)) * window
    context = (weights @ memory)[..., 0, :]
    return new, np.tanh(np.concatenate([context, new], -1) @ params["w_c"]), weights[..., 0, :]


@answer(
    "luong_step",
    "numpy",
    "tanh of the context",
    "wrong",
    "the context is squashed before it is mixed, and h~ once more",
)
def luong_step_w21(y, state, memory, params, *, score="dot"):
    new = attnlib.rnn_cell(y, state, *CELL(params))
    weights = attnlib.softmax(COMPARE(new[..., None, :], memory, params, score))
    context = np.tanh((weights @ memory)[..., 0, :])
    return new, np.tanh(np.concatenate([context, new], -1) @ params["w_c"]), weights[..., 0, :]


@answer(
    "luong_step", "numpy", "rounded weights", "wrong", "the weights are rounded to four places before they are used"
)
def luong_step_w22(y, state, memory, params, *, score="dot"):
    new = attnlib.rnn_cell(y, state, *CELL(params))
    weights = np.round(attnlib.softmax(COMPARE(new[..., None, :], memory, params, score)), 4)
    context = (weights @ memory)[..., 0, :]
    return new, np.tanh(np.concatenate([context, new], -1) @ params["w_c"]), weights[..., 0, :]


# =============================================================================== bahdanau_step in torch


@answer("bahdanau_step", "torch", "plain", "right")
def bahdanau_torch_r1(y, state, memory, params):
    query = (state @ params["w_query"]).unsqueeze(-2)
    scores = torch.tanh(query + memory @ params["w_key"]) @ params["v"]
    weights = torch.softmax(scores, dim=-1)
    context = (weights.unsqueeze(-2) @ memory).squeeze(-2)
    x = torch.cat([y, context], dim=-1)
    new = torch.tanh(x @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"])
    return new, context, weights


@answer("bahdanau_step", "torch", "einsum and F.linear", "right")
def bahdanau_torch_r2(y, state, memory, params):
    q = torch.einsum("...d,da->...a", state, params["w_query"])
    k = torch.einsum("...sd,da->...sa", memory, params["w_key"])
    e = torch.einsum("...sa,a->...s", (q[..., None, :] + k).tanh(), params["v"])
    a = e.log_softmax(-1).exp()
    c = torch.einsum("...s,...sd->...d", a, memory)
    s = F.linear(torch.cat((y, c), -1), params["w_ih"], params["b_ih"]) + F.linear(
        state, params["w_hh"], params["b_hh"]
    )
    return s.tanh(), c, a


@answer("bahdanau_step", "torch", "own softmax, largest score detached", "right")
def bahdanau_torch_r3(y, state, memory, params, mask=None):
    scores = torch.tanh(state[..., None, :] @ params["w_query"] + memory @ params["w_key"]) @ params["v"]
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    powers = torch.exp(scores - scores.amax(-1, keepdim=True).detach())
    weights = powers / powers.sum(-1, keepdim=True)
    context = (weights[..., None] * memory).sum(dim=-2)
    D_y = y.shape[-1]
    new = y @ params["w_ih"][:, :D_y].mT + context @ params["w_ih"][:, D_y:].mT
    new = new + state @ params["w_hh"].mT + (params["b_ih"] + params["b_hh"])
    return torch.tanh(new), context, weights


@answer("bahdanau_step", "torch", "row by row", "right")
def bahdanau_torch_r4(y, state, memory, params):
    q = state @ params["w_query"]
    rows = memory.unbind(-2)
    scores = torch.stack([(torch.tanh(q + row @ params["w_key"]) * params["v"]).sum(-1) for row in rows], dim=-1)
    weights = torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))
    context = sum(weights[..., j, None] * row for j, row in enumerate(rows))
    x = torch.cat([y, context, state], dim=-1)
    w = torch.cat([params["w_ih"], params["w_hh"]], dim=1)
    return torch.tanh(x @ w.t() + params["b_ih"] + params["b_hh"]), context, weights


def TORCH(y, state, memory, p, look=None):
    """The parts of a right step, for the answers that differ in one place."""
    scores = torch.tanh((state @ p["w_query"]).unsqueeze(-2) + memory @ p["w_key"]) @ p["v"]
    weights = torch.softmax(scores, -1)
    return scores, weights, (weights.unsqueeze(-1) * memory).sum(-2)


def TORCH_CELL(x, h, p):
    """A right cell."""
    return torch.tanh(x @ p["w_ih"].T + p["b_ih"] + h @ p["w_hh"].T + p["b_hh"])


@answer("bahdanau_step", "torch", "through NumPy", "wrong", "computed by NumPy, so no gradient flows")
def bahdanau_torch_w1(y, state, memory, params):
    arrays = {name: x.detach().cpu().numpy() for name, x in params.items()}
    out = bahdanau_step_r1(
        y.detach().cpu().numpy(), state.detach().cpu().numpy(), memory.detach().cpu().numpy(), arrays
    )
    return tuple(torch.from_numpy(np.ascontiguousarray(part)).to(y) for part in out)


@answer(
    "bahdanau_step",
    "torch",
    "weights detached",
    "wrong",
    "the scores get no gradient, so query, key and v are never trained",
)
def bahdanau_torch_w2(y, state, memory, params):
    _, weights, _ = TORCH(y, state, memory, params)
    weights = weights.detach()
    context = (weights.unsqueeze(-1) * memory).sum(-2)
    return TORCH_CELL(torch.cat([y, context], -1), state, params), context, weights


@answer(
    "bahdanau_step",
    "torch",
    "through a list",
    "wrong",
    "torch.tensor of plain numbers: the weights lose their gradient",
)
def bahdanau_torch_w3(y, state, memory, params):
    scores = torch.tanh((state @ params["w_query"]).unsqueeze(-2) + memory @ params["w_key"]) @ params["v"]
    weights = torch.tensor(torch.softmax(scores, -1).tolist(), device=y.device, dtype=y.dtype)
    context = (weights.unsqueeze(-1) * memory).sum(-2)
    return TORCH_CELL(torch.cat([y, context], -1), state, params), context, weights


@answer("bahdanau_step", "torch", "no_grad", "wrong", "the look happens under no_grad")
def bahdanau_torch_w4(y, state, memory, params):
    with torch.no_grad():
        _, weights, context = TORCH(y, state, memory, params)
    return TORCH_CELL(torch.cat([y, context], -1), state, params), context, weights


@answer(
    "bahdanau_step",
    "torch",
    "state.data asks",
    "wrong",
    "the query does not pass its gradient on to the state, nor anything else through .data",
)
def bahdanau_torch_w5(y, state, memory, params):
    scores = torch.tanh((state.data @ params["w_query"]).unsqueeze(-2) + memory @ params["w_key"]) @ params["v"]
    weights = torch.softmax(scores, -1)
    context = (weights.unsqueeze(-1) * memory).sum(-2)
    return TORCH_CELL(torch.cat([y, context], -1), state, params), context, weights


@answer(
    "bahdanau_step",
    "torch",
    "zeros of the default dtype",
    "wrong",
    "the context is gathered in a new float32 tensor on the CPU: double numbers are cut (and mixing with double weights fails), a GPU's raise an error",
)
def bahdanau_torch_w6(y, state, memory, params):
    _, weights, _ = TORCH(y, state, memory, params)
    context = torch.zeros(memory.shape[:-2] + memory.shape[-1:])
    for j in range(memory.shape[-2]):
        context += weights[..., j, None] * memory[..., j, :]
    x = torch.cat([y, context.type_as(y)], -1)
    return TORCH_CELL(x, state, params), context, weights


@answer("bahdanau_step", "torch", "softmax over dim 0", "wrong", "the softmax runs over the batch")
def bahdanau_torch_w7(y, state, memory, params):
    scores, _, _ = TORCH(y, state, memory, params)
    weights = torch.softmax(scores, dim=0)
    context = (weights.unsqueeze(-1) * memory).sum(-2)
    return TORCH_CELL(torch.cat([y, context], -1), state, params), context, weights


@answer(
    "bahdanau_step",
    "torch",
    "softmax over dim 1",
    "wrong",
    "dim=1 is the memory for exactly one dimension in front only",
)
def bahdanau_torch_w8(y, state, memory, params):
    scores, _, _ = TORCH(y, state, memory, params)
    weights = F.softmax(scores, dim=1)
    context = torch.einsum("...s,...sd->...d", weights, memory)
    return TORCH_CELL(torch.cat([y, context], -1), state, params), context, weights


@answer("bahdanau_step", "torch", "[c; y]", "wrong", "context before y")
def bahdanau_torch_w9(y, state, memory, params):
    _, weights, context = TORCH(y, state, memory, params)
    return TORCH_CELL(torch.cat([context, y], -1), state, params), context, weights


@answer("bahdanau_step", "torch", "bmm", "wrong", "bmm and unsqueeze(1) want exactly one dimension in front")
def bahdanau_torch_w10(y, state, memory, params):
    query = (state @ params["w_query"]).unsqueeze(1)
    weights = torch.softmax(torch.tanh(query + memory @ params["w_key"]) @ params["v"], dim=-1)
    context = torch.bmm(weights.unsqueeze(1), memory).squeeze(1)
    return TORCH_CELL(torch.cat([y, context], dim=1), state, params), context, weights


@answer(
    "bahdanau_step",
    "torch",
    "squeeze of everything",
    "wrong",
    "squeeze() without a dimension takes away a batch of one, or a memory of one row",
)
def bahdanau_torch_w11(y, state, memory, params):
    query = (state @ params["w_query"]).unsqueeze(-2)
    energy = torch.tanh(query + memory @ params["w_key"]) @ params["v"].unsqueeze(-1)
    weights = torch.softmax(energy, dim=-2)
    context = (weights * memory).sum(-2)
    return TORCH_CELL(torch.cat([y, context], -1), state, params), context, weights.squeeze()


@answer("bahdanau_step", "torch", "exp without the maximum", "wrong", "overflows for a large v")
def bahdanau_torch_w12(y, state, memory, params):
    scores, _, _ = TORCH(y, state, memory, params)
    weights = scores.exp() / scores.exp().sum(-1, keepdim=True)
    context = (weights.unsqueeze(-1) * memory).sum(-2)
    return TORCH_CELL(torch.cat([y, context], -1), state, params), context, weights


@answer(
    "bahdanau_step",
    "torch",
    "weights copied into modules",
    "wrong",
    "nn.Linear gets copies: the gradients stay with the modules and never reach w_ih and w_hh",
)
def bahdanau_torch_w13(y, state, memory, params):
    _, weights, context = TORCH(y, state, memory, params)
    from_input = nn.Linear(y.shape[-1] + context.shape[-1], state.shape[-1]).to(y)
    from_input.weight.data, from_input.bias.data = params["w_ih"].data, params["b_ih"].data
    from_state = nn.Linear(state.shape[-1], state.shape[-1]).to(y)
    from_state.weight.data, from_state.bias.data = params["w_hh"].data, params["b_hh"].data
    return torch.tanh(from_input(torch.cat([y, context], -1)) + from_state(state)), context, weights


@answer(
    "bahdanau_step",
    "torch",
    "memory as value detached",
    "wrong",
    "the memory gets a gradient as keys, but not as what is averaged",
)
def bahdanau_torch_w14(y, state, memory, params):
    _, weights, _ = TORCH(y, state, memory, params)
    context = (weights.unsqueeze(-1) * memory.detach()).sum(-2)
    return TORCH_CELL(torch.cat([y, context], -1), state, params), context, weights


@answer("bahdanau_step", "torch", "keys detached", "wrong", "the memory gets no gradient through the scores")
def bahdanau_torch_w15(y, state, memory, params):
    keys = memory.detach() @ params["w_key"]
    weights = torch.softmax(torch.tanh((state @ params["w_query"]).unsqueeze(-2) + keys) @ params["v"], -1)
    context = (weights.unsqueeze(-1) * memory).sum(-2)
    return TORCH_CELL(torch.cat([y, context], -1), state, params), context, weights


@answer(
    "bahdanau_step",
    "torch",
    "truncated at the cell",
    "wrong",
    "the state is detached in the cell, so no gradient reaches earlier steps through it",
)
def bahdanau_torch_w16(y, state, memory, params):
    _, weights, context = TORCH(y, state, memory, params)
    return TORCH_CELL(torch.cat([y, context], -1), state.detach(), params), context, weights


@answer(
    "bahdanau_step",
    "torch",
    "context returned without graph",
    "wrong",
    "the returned context and weights are detached, though the state is right",
)
def bahdanau_torch_w17(y, state, memory, params):
    _, weights, context = TORCH(y, state, memory, params)
    return TORCH_CELL(torch.cat([y, context], -1), state, params), context.detach(), weights.detach()


@answer("bahdanau_step", "torch", "dropout", "wrong", "drops a tenth of the weights at random, in every call")
def bahdanau_torch_w18(y, state, memory, params):
    _, weights, _ = TORCH(y, state, memory, params)
    weights = F.dropout(weights, 0.1)
    context = (weights.unsqueeze(-1) * memory).sum(-2)
    return TORCH_CELL(torch.cat([y, context], -1), state, params), context, weights


@answer("bahdanau_step", "torch", "softmax in float32", "wrong", "double numbers come back as float32 weights")
def bahdanau_torch_w19(y, state, memory, params):
    scores, _, _ = TORCH(y, state, memory, params)
    weights = torch.softmax(scores, -1, dtype=torch.float32)
    context = (weights.unsqueeze(-1) * memory).sum(-2)
    return TORCH_CELL(torch.cat([y, context], -1), state, params), context, weights


@answer(
    "bahdanau_step",
    "torch",
    "everything .float()",
    "wrong",
    "double inputs are turned into float32, which costs eight digits",
)
def bahdanau_torch_w20(y, state, memory, params):
    y, state, memory = y.float(), state.float(), memory.float()
    params = {name: x.float() for name, x in params.items()}
    _, weights, context = TORCH(y, state, memory, params)
    return TORCH_CELL(torch.cat([y, context], -1), state, params), context, weights


@answer(
    "bahdanau_step",
    "torch",
    "query unsqueezed in place",
    "wrong",
    "unsqueeze_ changes the caller's state tensor: its shape, or an error for a leaf",
)
def bahdanau_torch_w21(y, state, memory, params):
    query = state.unsqueeze_(-2)
    scores = torch.tanh(query @ params["w_query"] + memory @ params["w_key"]) @ params["v"]
    weights = torch.softmax(scores, -1)
    context = (weights.unsqueeze(-1) * memory).sum(-2)
    return TORCH_CELL(torch.cat([y, context], -1), state.squeeze(-2), params), context, weights


@answer("bahdanau_step", "torch", "the new state asks", "wrong", "step, then look, then step again with the context")
def bahdanau_torch_w22(y, state, memory, params):
    nothing = torch.zeros_like(memory[..., 0, :])
    asking = TORCH_CELL(torch.cat([y, nothing], -1), state, params)
    _, weights, context = TORCH(y, asking, memory, params)
    return TORCH_CELL(torch.cat([y, context], -1), state, params), context, weights


@answer(
    "bahdanau_step",
    "torch",
    "hard with a straight-through gradient",
    "wrong",
    "forward the best row alone, backward the softmax",
)
def bahdanau_torch_w23(y, state, memory, params):
    _, soft, _ = TORCH(y, state, memory, params)
    hard = F.one_hot(soft.argmax(-1), soft.shape[-1]).to(soft)
    weights = hard - soft.detach() + soft
    context = (weights.unsqueeze(-1) * memory).sum(-2)
    return TORCH_CELL(torch.cat([y, context], -1), state, params), context, weights


@answer(
    "bahdanau_step",
    "torch",
    "memory cloned and detached",
    "wrong",
    "the memory is a new leaf, so no gradient reaches the encoder",
)
def bahdanau_torch_w24(y, state, memory, params):
    memory = memory.clone().detach().requires_grad_(True)
    _, weights, context = TORCH(y, state, memory, params)
    return TORCH_CELL(torch.cat([y, context], -1), state, params), context, weights


@answer(
    "bahdanau_step",
    "torch",
    "largest score clipped",
    "wrong",
    "scores are clamped to 10 for safety, which changes the weights and stops gradients for a large v",
)
def bahdanau_torch_w25(y, state, memory, params):
    scores, _, _ = TORCH(y, state, memory, params)
    weights = torch.softmax(scores.clamp(-10, 10), -1)
    context = (weights.unsqueeze(-1) * memory).sum(-2)
    return TORCH_CELL(torch.cat([y, context], -1), state, params), context, weights


@answer(
    "bahdanau_step",
    "torch",
    "GPU only: zeros of the right dtype on the CPU",
    "wrong",
    "right on the CPU; on a GPU, which the text names, the new tensor lies on the other device, and raises an error",
)
def bahdanau_torch_w26(y, state, memory, params):
    _, weights, _ = TORCH(y, state, memory, params)
    context = torch.zeros(memory.shape[:-2] + memory.shape[-1:], dtype=memory.dtype)
    for j in range(memory.shape[-2]):
        context = context + weights[..., j, None] * memory[..., j, :]
    return TORCH_CELL(torch.cat([y, context], -1), state, params), context, weights
