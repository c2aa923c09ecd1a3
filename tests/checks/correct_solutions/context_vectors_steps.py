"""Right answers to the exercises on context vectors: the steps of the two decoders."""

import math

import numpy as np
import torch
import torch.nn.functional as F

import attnlib
from correct_solutions.styles import style, swap


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def weigh(scores, mask=None):
    """The weights of a student who has a mask: a row with nothing to attend to gets none."""
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    e = np.exp(scores - np.where(np.isinf(top), 0, top))
    total = e.sum(-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


# bahdanau_step ---------------------------------------------------------------------------------------------------


@style("bahdanau_step", "as in the chapter, line by line, with its own cell")
def bahdanau(y, state, memory, params):
    query = (state @ params["w_query"])[..., None, :]
    scores = np.tanh(query + memory @ params["w_key"]) @ params["v"]
    weights = softmax(scores)
    context = (weights[..., None, :] @ memory)[..., 0, :]
    x = np.concatenate([y, context], axis=-1)
    state = np.tanh(x @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"])
    return state, context, weights


@style("bahdanau_step", "attnlib's pieces, and a mask")
def bahdanau_pieces(y, state, memory, params, *, mask=None):
    def score(query, key):
        return attnlib.additive(query, key, params["w_query"], params["w_key"], params["v"])

    mask = None if mask is None else mask[..., None, :]
    context, weights = attnlib.attention(state[..., None, :], memory, memory, score=score, mask=mask)
    context, weights = context[..., 0, :], weights[..., 0, :]
    cell = [params[name] for name in ("w_ih", "w_hh", "b_ih", "b_hh")]
    return attnlib.rnn_cell(np.concatenate([y, context], -1), state, *cell), context, weights


@style("bahdanau_step", "einsum, the input matrix split in two, a list of results")
def bahdanau_einsum(y, state, memory, params):
    hidden = np.einsum("...d,da->...a", state, params["w_query"])[..., np.newaxis, :]
    hidden = hidden + np.einsum("...sd,da->...sa", memory, params["w_key"])
    weights = softmax(np.einsum("...sa,a->...s", np.tanh(hidden), params["v"]))
    context = np.einsum("...s,...sd->...d", weights, memory)
    for_y, for_context = np.split(params["w_ih"], [y.shape[-1]], axis=1)
    total = np.einsum("...i,oi->...o", y, for_y) + np.einsum("...i,oi->...o", context, for_context)
    total += np.einsum("...i,oi->...o", state, params["w_hh"]) + (params["b_ih"] + params["b_hh"])
    return [np.tanh(total), context, weights]


def bahdanau_of_one(y, state, memory, p):
    y, state, memory = y.tolist(), state.tolist(), memory.tolist()
    p = {name: x.tolist() for name, x in p.items()}
    scores = []
    for m in memory:
        score = 0.0
        for a, v in enumerate(p["v"]):
            inner = sum(s * row[a] for s, row in zip(state, p["w_query"], strict=True))
            inner += sum(x * row[a] for x, row in zip(m, p["w_key"], strict=True))
            score += v * math.tanh(inner)
        scores.append(score)
    exponentials = [math.exp(e - max(scores)) for e in scores]
    weights = [e / sum(exponentials) for e in exponentials]
    context = [sum(a * m[d] for a, m in zip(weights, memory, strict=True)) for d in range(len(memory[0]))]
    return elman_of_one(y + context, state, p), context, weights


def elman_of_one(x, state, p):
    new = []
    for o in range(len(state)):
        total = p["b_ih"][o] + p["b_hh"][o]
        total += sum(a * b for a, b in zip(x, p["w_ih"][o], strict=True))
        total += sum(a * b for a, b in zip(state, p["w_hh"][o], strict=True))
        new.append(math.tanh(total))
    return new


def each(one, y, state, memory):
    """Apply a function of one sentence to every sentence, whatever the leading dimensions."""
    places = list(np.ndindex(y.shape[:-1]))
    results = zip(*(one(y[i], state[i], memory[i]) for i in places), strict=True)
    return tuple(np.array(x).reshape(*y.shape[:-1], -1) for x in results)


@style("bahdanau_step", "Python loops with math.tanh and math.exp, one sentence at a time")
def bahdanau_loops(y, state, memory, params):
    return each(lambda *one: bahdanau_of_one(*one, params), y, state, memory)


@style("bahdanau_step", "a loop over the memory with a running sum")
def bahdanau_running(y, state, memory, params):
    query = state @ params["w_query"]
    scores = [np.tanh(query + memory[..., j, :] @ params["w_key"]) @ params["v"] for j in range(memory.shape[-2])]
    top = np.max(scores, axis=0)
    total, context = 0.0, np.zeros(memory[..., 0, :].shape)
    for j, score in enumerate(scores):
        e = np.asarray(np.exp(score - top))
        total = total + e
        context += e[..., None] * memory[..., j, :]
    context /= np.asarray(total)[..., None]
    weights = np.stack([np.exp(score - top) / total for score in scores], axis=-1)
    inside = np.hstack if y.ndim == 1 else lambda parts: np.concatenate(parts, axis=-1)
    x = inside([y, context, state])
    matrix = np.hstack([params["w_ih"], params["w_hh"]])
    return np.tanh((matrix @ x[..., None])[..., 0] + params["b_ih"] + params["b_hh"]), context, weights


@style("bahdanau_step", "concat: one matrix on the state and the row, joined; tanh by exponentials; float64 inside")
def bahdanau_concat(y, state, memory, params):
    p = {name: np.asarray(x, np.float64) for name, x in params.items()}
    repeated = np.broadcast_to(state[..., None, :], (*memory.shape[:-1], state.shape[-1]))
    both = np.concatenate([repeated, memory], axis=-1) @ np.vstack([p["w_query"], p["w_key"]])
    weights = softmax((2 / (1 + np.exp(-2 * both)) - 1) @ p["v"])
    context = np.sum(weights[..., None] * memory, axis=-2)
    joined = np.concatenate([y, context], axis=-1)
    new = np.tanh(joined @ p["w_ih"].T + state @ p["w_hh"].T + p["b_ih"] + p["b_hh"])
    return tuple(x.astype(memory.dtype) for x in (new, context, weights))


@style("bahdanau_step", "in place, on copies, with a mask and other names")
def bahdanau_in_place(word, before, states, weights_of, mask=None):
    hidden = states.copy() @ weights_of["w_key"]
    hidden += np.expand_dims(before.copy() @ weights_of["w_query"], -2)
    np.tanh(hidden, out=hidden)
    alignment = weigh(hidden @ weights_of["v"], mask)
    mixed = np.matmul(np.expand_dims(alignment, -2), states).squeeze(-2)
    after = np.dot(np.append(word, mixed, axis=-1), weights_of["w_ih"].T)
    after += before.dot(weights_of["w_hh"].T)
    after += weights_of["b_ih"]
    after += weights_of["b_hh"]
    return np.tanh(after, out=after), mixed, alignment


@style("bahdanau_step", "keys in front of the state, everything flattened to one batch")
def bahdanau_flat(y, state, memory, params):
    lead = y.shape[:-1]
    y, state = y.reshape(-1, y.shape[-1]), state.reshape(-1, state.shape[-1])
    memory = memory.reshape(-1, *memory.shape[-2:])
    state_new, context, weights = bahdanau(y, state, memory, params)
    return tuple(x.reshape(*lead, -1) for x in (state_new, context, weights))


@style("bahdanau_step", "attnlib's own", backend="torch")
def bahdanau_own(y, state, memory, params, *, mask=None):
    return attnlib.bahdanau_step(y, state, memory, params, mask=mask)


@style("bahdanau_step", "as in the chapter", backend="torch")
def bahdanau_torch(y, state, memory, params):
    query = (state @ params["w_query"]).unsqueeze(-2)
    weights = (torch.tanh(query + memory @ params["w_key"]) @ params["v"]).softmax(dim=-1)
    context = (weights.unsqueeze(-2) @ memory).squeeze(-2)
    x = torch.cat([y, context], dim=-1)
    new = torch.tanh(F.linear(x, params["w_ih"], params["b_ih"]) + F.linear(state, params["w_hh"], params["b_hh"]))
    return new, context, weights


@style("bahdanau_step", "einsum", backend="torch")
def bahdanau_torch_einsum(y, state, memory, params):
    q = torch.einsum("...d,da->...a", state, params["w_query"])
    k = torch.einsum("...sd,da->...sa", memory, params["w_key"])
    weights = F.softmax(torch.einsum("...sa,a->...s", torch.tanh(q[..., None, :] + k), params["v"]), -1)
    context = torch.einsum("...s,...sd->...d", weights, memory)
    new = torch.hstack([y, context]) if y.ndim == 1 else torch.cat((y, context), -1)
    new = new @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"]
    return new.tanh(), context, weights


@style("bahdanau_step", "modules that are given the weights, and F.linear", backend="torch")
def bahdanau_torch_modules(y, state, memory, params):
    cell = torch.nn.RNNCell(params["w_ih"].shape[1], params["w_hh"].shape[1]).to(y.dtype)
    own = {"weight_ih": "w_ih", "weight_hh": "w_hh", "bias_ih": "b_ih", "bias_hh": "b_hh"}
    hidden = F.linear(memory, params["w_key"].mT) + F.linear(state, params["w_query"].mT)[..., None, :]
    weights = F.softmax(F.linear(torch.tanh(hidden), params["v"][None]).squeeze(-1), dim=-1)
    context = (weights[..., None] * memory).sum(-2)
    x = torch.cat([y, context], -1)
    flat = x.reshape(-1, x.shape[-1]), state.reshape(-1, state.shape[-1])
    new = torch.func.functional_call(cell, {name: params[p] for name, p in own.items()}, flat)
    return new.reshape(state.shape), context, weights


@style("bahdanau_step", "bmm on one batch, with log_softmax", backend="torch")
def bahdanau_torch_bmm(y, state, memory, params):
    lead, s = y.shape[:-1], memory.shape[-2]
    rows = memory.reshape(-1, s, memory.shape[-1])
    before = state.reshape(-1, state.shape[-1])
    hidden = torch.tanh((before @ params["w_query"])[:, None].expand(-1, s, -1) + rows @ params["w_key"])
    weights = torch.matmul(hidden, params["v"]).log_softmax(1).exp()
    context = torch.bmm(weights[:, None], rows)[:, 0]
    x = torch.cat([y.reshape(-1, y.shape[-1]), context], 1)
    new = torch.addmm(params["b_ih"] + params["b_hh"], x, params["w_ih"].T) + before.mm(params["w_hh"].T)
    return tuple(x.reshape(*lead, -1) for x in (new.tanh(), context, weights))


@style("bahdanau_step", "attnlib's pieces", backend="torch")
def bahdanau_torch_pieces(y, state, memory, params, mask=None):
    scores = attnlib.additive(state[..., None, :], memory, *(params[name] for name in ("w_query", "w_key", "v")))
    if mask is not None:
        scores = scores.masked_fill(~mask[..., None, :], -torch.inf)
    weights = attnlib.softmax(scores)
    context = (weights @ memory).squeeze(-2)
    cell = {name: params[name] for name in ("w_ih", "w_hh", "b_ih", "b_hh")}
    return attnlib.rnn_cell(torch.cat([y, context], -1), state, **cell), context, weights.squeeze(-2)


# luong_step ------------------------------------------------------------------------------------------------------


@style("luong_step", "as in the chapter, three branches")
def luong(y, state, memory, params, *, score="dot"):
    state = np.tanh(y @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"])
    query = state[..., None, :]
    if score == "dot":
        scores = (query @ swap(memory))[..., 0, :]
    elif score == "general":
        scores = (query @ params["weight"] @ swap(memory))[..., 0, :]
    elif score == "concat":
        scores = np.tanh(query @ params["w_query"] + memory @ params["w_key"]) @ params["v"]
    else:
        raise ValueError(f"no such score: {score}")
    weights = softmax(scores)
    context = (weights[..., None, :] @ memory)[..., 0, :]
    return state, np.tanh(np.concatenate([context, state], axis=-1) @ params["w_c"]), weights


@style("luong_step", "attnlib's pieces, a table of scores, and a mask")
def luong_pieces(y, state, memory, params, *, score="dot", mask=None):
    new = attnlib.rnn_cell(y, state, params["w_ih"], params["w_hh"], params["b_ih"], params["b_hh"])
    own = {"dot": (), "general": ("weight",), "concat": ("w_query", "w_key", "v")}[score]
    function = {"dot": attnlib.dot, "general": attnlib.general, "concat": attnlib.additive}[score]
    mask = None if mask is None else mask[..., None, :]
    context, weights = attnlib.attention(
        new[..., None, :], memory, memory, score=lambda q, k: function(q, k, *(params[n] for n in own)), mask=mask
    )
    joined = np.concatenate([context[..., 0, :], new], -1)
    return new, np.tanh(joined @ params["w_c"]), weights[..., 0, :]


@style("luong_step", "einsum; the matrix of general on the memory's side; the merging matrix split in two")
def luong_einsum(y, state, memory, params, score="dot"):
    total = np.einsum("...i,oi->...o", y, params["w_ih"]) + np.einsum("...i,oi->...o", state, params["w_hh"])
    new = np.tanh(total + params["b_ih"] + params["b_hh"])
    if score == "concat":
        hidden = np.tanh((new @ params["w_query"])[..., None, :] + memory @ params["w_key"])
        scores = np.einsum("...sa,a->...s", hidden, params["v"])
    else:
        keys = np.einsum("...sm,dm->...sd", memory, params["weight"]) if score == "general" else memory
        scores = np.einsum("...d,...sd->...s", new, keys)
    weights = softmax(scores)
    context = np.einsum("...s,...sd->...d", weights, memory)
    upper, lower = np.split(params["w_c"], [memory.shape[-1]])
    return new, np.tanh(context @ upper + new @ lower), weights


def luong_of_one(y, state, memory, p, score):
    new = elman_of_one(y.tolist(), state.tolist(), {name: x.tolist() for name, x in p.items()})
    scores = []
    for m in memory:
        if score == "dot":
            scores.append(sum(a * b for a, b in zip(new, m.tolist(), strict=True)))
        elif score == "general":
            scores.append(sum(new[i] * float(p["weight"][i, j] * m[j]) for i in range(len(new)) for j in range(len(m))))
        else:
            hidden = [math.tanh(float(new @ q + m @ k)) for q, k in zip(p["w_query"].T, p["w_key"].T, strict=True)]
            scores.append(sum(h * float(v) for h, v in zip(hidden, p["v"], strict=True)))
    exponentials = [math.exp(e - max(scores)) for e in scores]
    weights = [e / math.fsum(exponentials) for e in exponentials]
    context = [sum(a * float(m[d]) for a, m in zip(weights, memory, strict=True)) for d in range(memory.shape[-1])]
    joined = context + new
    merged = [math.tanh(sum(x * float(w) for x, w in zip(joined, column, strict=True))) for column in p["w_c"].T]
    return new, merged, weights


@style("luong_step", "Python loops, one sentence at a time")
def luong_loops(y, state, memory, params, *, score="dot"):
    return each(lambda *one: luong_of_one(*one, params, score), y, state, memory)


@style("luong_step", "match, broadcasting, float64 inside, and a mask")
def luong_match(y, state, memory, params, score="dot", mask=None):
    p = {name: x.astype(np.float64) for name, x in params.items()}
    new = np.tanh(np.concatenate([y, state], -1) @ np.hstack([p["w_ih"], p["w_hh"]]).T + p["b_ih"] + p["b_hh"])
    match score:
        case "dot":
            scores = (new[..., None, :] * memory).sum(-1)
        case "general":
            scores = ((new @ p["weight"])[..., None, :] * memory).sum(-1)
        case _:
            repeated = np.repeat(new[..., None, :], memory.shape[-2], axis=-2)
            both = np.concatenate([repeated, memory], -1) @ np.vstack([p["w_query"], p["w_key"]])
            scores = (np.tanh(both) * p["v"]).sum(-1)
    weights = weigh(scores, mask)
    context = (memory * weights[..., None]).sum(-2)
    merged = np.tanh(np.concatenate([context, new], -1) @ p["w_c"])
    return tuple(x.astype(y.dtype) for x in (new, merged, weights))


@style("luong_step", "a matrix for every score, everything flattened to one batch, matrices on the left")
def luong_flat(y, state, memory, params, *, score="dot"):
    lead, s = y.shape[:-1], memory.shape[-2]
    y, state = y.reshape(-1, y.shape[-1]).T, state.reshape(-1, state.shape[-1]).T
    rows = memory.reshape(-1, s, memory.shape[-1])
    new = np.tanh(params["w_ih"] @ y + params["w_hh"] @ state + (params["b_ih"] + params["b_hh"])[:, None]).T
    if score == "concat":
        scores = np.tanh((new @ params["w_query"])[:, None] + rows @ params["w_key"]) @ params["v"]
    else:
        matrix = params["weight"] if score == "general" else np.eye(rows.shape[-1], dtype=rows.dtype)
        scores = np.stack([m @ (matrix.T @ q) for m, q in zip(rows, new, strict=True)])
    weights = softmax(scores)
    context = np.stack([a @ m for a, m in zip(weights, rows, strict=True)])
    merged = np.tanh(np.c_[context, new] @ params["w_c"])
    return tuple(x.reshape(*lead, -1) for x in (new, merged, weights))


@style("luong_step", "attnlib's own", backend="torch")
def luong_own(y, state, memory, params, *, score="dot", mask=None):
    return attnlib.luong_step(y, state, memory, params, score=score, mask=mask)


@style("luong_step", "as in the chapter", backend="torch")
def luong_torch(y, state, memory, params, *, score="dot"):
    new = torch.tanh(F.linear(y, params["w_ih"], params["b_ih"]) + F.linear(state, params["w_hh"], params["b_hh"]))
    query = new.unsqueeze(-2)
    if score == "concat":
        scores = torch.tanh(query @ params["w_query"] + memory @ params["w_key"]) @ params["v"]
    else:
        query = query @ params["weight"] if score == "general" else query
        scores = (query @ memory.mT).squeeze(-2)
    weights = scores.softmax(-1)
    context = (weights.unsqueeze(-2) @ memory).squeeze(-2)
    return new, torch.tanh(torch.cat([context, new], -1) @ params["w_c"]), weights


@style("luong_step", "einsum", backend="torch")
def luong_torch_einsum(y, state, memory, params, score="dot"):
    new = (y @ params["w_ih"].T + params["b_ih"] + state @ params["w_hh"].T + params["b_hh"]).tanh()
    if score == "dot":
        scores = torch.einsum("...d,...sd->...s", new, memory)
    elif score == "general":
        scores = torch.einsum("...d,dm,...sm->...s", new, params["weight"], memory)
    else:
        hidden = torch.einsum("...d,da->...a", new, params["w_query"])[..., None, :] + memory @ params["w_key"]
        scores = torch.einsum("...sa,a->...s", hidden.tanh(), params["v"])
    weights = F.softmax(scores, dim=-1)
    context = torch.einsum("...s,...sd->...d", weights, memory)
    return new, torch.tanh(torch.cat((context, new), dim=-1) @ params["w_c"]), weights


@style("luong_step", "scaled_dot_product_attention without its scale", backend="torch")
def luong_torch_sdpa(y, state, memory, params, *, score="dot"):
    new = torch.tanh(F.linear(y, params["w_ih"], params["b_ih"]) + F.linear(state, params["w_hh"], params["b_hh"]))
    if score == "concat":
        return luong_torch(y, state, memory, params, score=score)
    query = (new @ params["weight"] if score == "general" else new)[..., None, :]
    weights = torch.softmax((query * memory).sum(-1), -1)
    context = F.scaled_dot_product_attention(query, memory, memory, scale=1.0)[..., 0, :]
    return new, F.linear(torch.cat([context, new], -1), params["w_c"].T).tanh(), weights


@style("luong_step", "attnlib's pieces", backend="torch")
def luong_torch_pieces(y, state, memory, params, *, score="dot"):
    new = attnlib.rnn_cell(y, state, *(params[name] for name in ("w_ih", "w_hh", "b_ih", "b_hh")))
    names = {"dot": [], "general": ["weight"], "concat": ["w_query", "w_key", "v"]}[score]
    function = {"dot": attnlib.dot, "general": attnlib.general, "concat": attnlib.additive}[score]
    weights = attnlib.softmax(function(new[..., None, :], memory, *(params[name] for name in names)))
    context = (weights @ memory)[..., 0, :]
    return new, torch.tanh(torch.cat([context, new], -1) @ params["w_c"]), weights[..., 0, :]


@style("luong_step", "one batch, bmm and addmm", backend="torch")
def luong_torch_bmm(y, state, memory, params, *, score="dot"):
    lead, s = y.shape[:-1], memory.shape[-2]
    rows = memory.reshape(-1, s, memory.shape[-1])
    before = state.reshape(-1, state.shape[-1])
    new = torch.addmm(params["b_hh"], before, params["w_hh"].T)
    new = (new + torch.addmm(params["b_ih"], y.reshape(-1, y.shape[-1]), params["w_ih"].T)).tanh()
    if score == "concat":
        hidden = torch.cat([new[:, None].expand(-1, s, -1), rows], -1) @ torch.cat([params["w_query"], params["w_key"]])
        scores = (hidden.tanh() * params["v"]).sum(-1)
    else:
        query = new.mm(params["weight"]) if score == "general" else new
        scores = torch.bmm(rows, query[:, :, None])[:, :, 0]
    weights = torch.exp(scores - scores.logsumexp(1, keepdim=True))
    context = torch.bmm(weights[:, None], rows)[:, 0]
    merged = torch.hstack([context, new]).mm(params["w_c"]).tanh()
    return tuple(x.reshape(*lead, -1) for x in (new, merged, weights))
