"""Right answers to the exercises of the assignment on context vectors: the cell and the scores here."""

import math

import numpy as np
import torch

from correct_solutions import context_vectors_steps
from correct_solutions.styles import style, swap

__all__ = ["context_vectors_steps"]

# rnn_cell --------------------------------------------------------------------------------------------------------


@style("rnn_cell", "the formula")
def rnn_cell(x, h, w_ih, w_hh, b_ih, b_hh):
    return np.tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh)


@style("rnn_cell", "biases that may be missing, as torch has them")
def rnn_cell_defaults(x, h, w_ih, w_hh, b_ih=None, b_hh=None):
    total = np.matmul(x, np.transpose(w_ih)) + np.matmul(h, np.transpose(w_hh))
    for bias in (b_ih, b_hh):
        total = total if bias is None else total + bias
    return np.tanh(total)


@style("rnn_cell", "Python loops with math.tanh")
def rnn_cell_loops(x, h, w_ih, w_hh, b_ih, b_hh):
    new = np.zeros(h.shape)
    for place in np.ndindex(h.shape[:-1]):
        for i in range(h.shape[-1]):
            total = float(b_ih[i]) + float(b_hh[i])
            for j in range(x.shape[-1]):
                total += float(w_ih[i, j]) * float(x[place][j])
            for j in range(h.shape[-1]):
                total += float(w_hh[i, j]) * float(h[place][j])
            new[(*place, i)] = math.tanh(total)
    return new


@style("rnn_cell", "einsum")
def rnn_cell_einsum(x, h, w_ih, w_hh, b_ih, b_hh):
    return np.tanh(np.einsum("...j,ij->...i", x, w_ih) + np.einsum("...j,ij->...i", h, w_hh) + (b_ih + b_hh))


@style("rnn_cell", "one matrix for input and state side by side")
def rnn_cell_joined(x, h, w_ih, w_hh, b_ih, b_hh):
    both, weight = np.concatenate([h, x], axis=-1), np.hstack([w_hh, w_ih])
    return np.tanh(both @ weight.T + b_ih + b_hh)


@style("rnn_cell", "flattened to a matrix and back, float64 inside")
def rnn_cell_flat(x, h, w_ih, w_hh, b_ih, b_hh):
    rows = x.reshape(-1, x.shape[-1]).astype(np.float64)
    states = h.reshape(-1, h.shape[-1]).astype(np.float64)
    columns = w_ih @ rows.T + b_ih[:, None] + w_hh @ states.T + b_hh[:, None]
    return np.tanh(columns.T).reshape(h.shape).astype(x.dtype)


@style("rnn_cell", "broadcast and summed, on an own copy in place")
def rnn_cell_in_place(x, h, w_ih, w_hh, b_ih, b_hh):
    total = (x[..., None, :] * w_ih).sum(-1)
    total += (h[..., None, :] * w_hh).sum(-1)
    total += b_ih
    total += b_hh
    np.tanh(total, out=total)
    return total


@style("rnn_cell", "tanh from exponentials that cannot overflow")
def rnn_cell_exponentials(x, h, w_ih, w_hh, b_ih, b_hh):
    total = np.inner(x, w_ih) + b_ih + np.inner(h, w_hh) + b_hh
    e = np.exp(-2 * np.abs(total))
    return np.sign(total) * (1 - e) / (1 + e)


@style("rnn_cell", "tanh from a sigmoid that may overflow to infinity, harmlessly")
def rnn_cell_sigmoid(x, h, w_ih, w_hh, b_ih, b_hh):
    total = x @ w_ih.T + b_ih + h @ w_hh.T + b_hh
    return 2 / (1 + np.exp(-2 * total)) - 1


@style("rnn_cell", "the formula", backend="torch")
def rnn_cell_torch(x, h, w_ih, w_hh, b_ih, b_hh):
    return torch.tanh(x @ w_ih.T + b_ih + h @ w_hh.T + b_hh)


@style("rnn_cell", "linear layers", backend="torch")
def rnn_cell_torch_linear(x, h, w_ih, w_hh, b_ih, b_hh):
    linear = torch.nn.functional.linear
    return (linear(x, w_ih, b_ih) + linear(h, w_hh, b_hh)).tanh()


@style("rnn_cell", "einsum", backend="torch")
def rnn_cell_torch_einsum(x, h, w_ih, w_hh, b_ih, b_hh):
    return torch.tanh(torch.einsum("...j,ij->...i", x, w_ih) + torch.einsum("...j,ij->...i", h, w_hh) + b_ih + b_hh)


@style("rnn_cell", "one matrix for input and state side by side", backend="torch")
def rnn_cell_torch_joined(x, h, w_ih, w_hh, b_ih, b_hh):
    return torch.tanh(torch.cat([x, h], dim=-1) @ torch.cat([w_ih, w_hh], dim=1).mT + (b_ih + b_hh))


@style("rnn_cell", "number by number, stacked", backend="torch")
def rnn_cell_torch_loops(x, h, w_ih, w_hh, b_ih, b_hh):
    numbers = [(x * w_ih[i]).sum(-1) + b_ih[i] + (h * w_hh[i]).sum(-1) + b_hh[i] for i in range(len(b_hh))]
    return torch.tanh(torch.stack(numbers, dim=-1))


@style("rnn_cell", "torch's own cell, on one batch", backend="torch")
def rnn_cell_of_torch(x, h, w_ih, w_hh, b_ih, b_hh):
    flat = (x.reshape(-1, x.shape[-1]), h.reshape(-1, h.shape[-1]))
    return torch.rnn_tanh_cell(*flat, w_ih, w_hh, b_ih, b_hh).reshape(h.shape)


# additive --------------------------------------------------------------------------------------------------------


@style("additive", "broadcast")
def additive(query, key, w_query, w_key, v):
    q, k = query @ w_query, key @ w_key
    return np.tanh(q[..., :, None, :] + k[..., None, :, :]) @ v


@style("additive", "Python loops with math.tanh")
def additive_loops(query, key, w_query, w_key, v):
    scores = np.zeros((*query.shape[:-1], key.shape[-2]))
    for place in np.ndindex(query.shape[:-2]):
        for i, q in enumerate(query[place]):
            for j, k in enumerate(key[place]):
                hidden = [math.tanh(float(q @ w_query[:, a]) + float(k @ w_key[:, a])) for a in range(len(v))]
                scores[(*place, i, j)] = sum(float(v[a]) * hidden[a] for a in range(len(v)))
    return scores


@style("additive", "einsum")
def additive_einsum(query, key, w_query, w_key, v):
    q, k = np.einsum("...td,da->...ta", query, w_query), np.einsum("...sd,da->...sa", key, w_key)
    return np.einsum("...tsa,a->...ts", np.tanh(np.expand_dims(q, -2) + np.expand_dims(k, -3)), v)


@style("additive", "one matrix on [q; k], as Luong writes it")
def additive_concat(query, key, w_query, w_key, v):
    pairs = (*query.shape[:-1], key.shape[-2])
    q = np.broadcast_to(query[..., :, None, :], (*pairs, query.shape[-1]))
    k = np.broadcast_to(key[..., None, :, :], (*pairs, key.shape[-1]))
    return np.tanh(np.concatenate([q, k], axis=-1) @ np.vstack([w_query, w_key])) @ v


@style("additive", "one query at a time, stacked")
def additive_rows(query, key, w_query, w_key, v):
    rows = [np.tanh((query[..., i : i + 1, :] @ w_query) + key @ w_key) @ v for i in range(query.shape[-2])]
    return np.stack(rows, axis=-2)


@style("additive", "one key at a time, swapped at the end")
def additive_columns(query, key, w_query, w_key, v):
    columns = [np.tanh(query @ w_query + key[..., j : j + 1, :] @ w_key) @ v for j in range(key.shape[-2])]
    return swap(np.array(np.stack(columns, axis=-2)))


@style("additive", "one hidden number at a time, float64 inside")
def additive_hidden(query, key, w_query, w_key, v):
    scores = 0
    for a in range(v.size):
        q, k = query.astype(float) @ w_query[:, a], key.astype(float) @ w_key[:, a]
        scores = scores + v[a] * np.tanh(q[..., :, None] + k[..., None, :])
    return scores.astype(query.dtype)


@style("additive", "v as a column, and a sigmoid for tanh")
def additive_column(query, key, w_query, w_key, v):
    total = np.expand_dims(query @ w_query, axis=-2) + np.expand_dims(key @ w_key, axis=-3)
    return ((2 / (1 + np.exp(-2 * total)) - 1) @ v.reshape(-1, 1)).squeeze(-1)


@style("additive", "broadcast", backend="torch")
def additive_torch(query, key, w_query, w_key, v):
    return torch.tanh((query @ w_query).unsqueeze(-2) + (key @ w_key).unsqueeze(-3)) @ v


@style("additive", "one query at a time, stacked", backend="torch")
def additive_torch_rows(query, key, w_query, w_key, v):
    keys = key @ w_key
    rows = [torch.tanh(q.unsqueeze(-2) + keys) @ v for q in (query @ w_query).unbind(-2)]
    return torch.stack(rows, dim=-2)


@style("additive", "einsum", backend="torch")
def additive_torch_einsum(query, key, w_query, w_key, v):
    q, k = torch.einsum("...td,da->...ta", query, w_query), torch.einsum("...sd,da->...sa", key, w_key)
    return torch.einsum("...tsa,a->...ts", (q[..., :, None, :] + k[..., None, :, :]).tanh(), v)


@style("additive", "linear layers", backend="torch")
def additive_torch_linear(query, key, w_query, w_key, v):
    linear = torch.nn.functional.linear
    q, k = linear(query, w_query.T), linear(key, w_key.T)
    return linear(torch.tanh(q[..., None, :] + k[..., None, :, :]), v[None]).squeeze(-1)


@style("additive", "one matrix on [q; k]", backend="torch")
def additive_torch_concat(query, key, w_query, w_key, v):
    T, S = query.shape[-2], key.shape[-2]
    q = query.unsqueeze(-2).expand(*query.shape[:-1], S, -1)
    k = key.unsqueeze(-3).expand(*key.shape[:-2], T, S, -1)
    return (torch.tanh(torch.cat([q, k], -1) @ torch.cat([w_query, w_key])) * v).sum(-1)


# general ---------------------------------------------------------------------------------------------------------


@style("general", "two products")
def general(query, key, weight):
    return query @ weight @ swap(key)


@style("general", "the key first")
def general_key_first(query, key, weight):
    return query @ swap(key @ weight.T)


@style("general", "the other table, swapped at the end")
def general_swapped(query, key, weight):
    return swap(key @ np.transpose(weight) @ np.moveaxis(query, -1, -2))


@style("general", "einsum")
def general_einsum(query, key, weight):
    return np.einsum("...td,de,...se->...ts", query, weight, key)


@style("general", "Python loops over components")
def general_loops(query, key, weight):
    scores = np.zeros((*query.shape[:-1], key.shape[-2]), dtype=query.dtype)
    for *place, i, j in np.ndindex(scores.shape):
        q, k = query[(*place, i)], key[(*place, j)]
        scores[(*place, i, j)] = sum(q[d] * weight[d, e] * k[e] for d in range(q.size) for e in range(k.size))
    return scores


@style("general", "broadcast and summed, float64 inside")
def general_broadcast(query, key, weight):
    projected = np.matmul(query.astype(np.float64), weight)
    return np.sum(projected[..., :, None, :] * key[..., None, :, :], axis=-1).astype(query.dtype)


@style("general", "outer products with the weight")
def general_outer(query, key, weight):
    outer = query[..., :, None, :, None] * key[..., None, :, None, :]
    return (outer * weight).sum(axis=(-1, -2))


@style("general", "two products", backend="torch")
def general_torch(query, key, weight):
    return query @ weight @ key.transpose(-2, -1)


@style("general", "einsum", backend="torch")
def general_torch_einsum(query, key, weight):
    return torch.einsum("...td,de,...se->...ts", query, weight, key)


@style("general", "a linear layer of the keys", backend="torch")
def general_torch_linear(query, key, weight):
    return torch.matmul(query, torch.nn.functional.linear(key, weight).mT)


@style("general", "bilinear, pair by pair", backend="torch")
def general_torch_bilinear(query, key, weight):
    shape = (*query.shape[:-1], key.shape[-2])
    q = query.unsqueeze(-2).expand(*shape, -1).contiguous()
    k = key.unsqueeze(-3).expand(*shape, -1).contiguous()
    return torch.nn.functional.bilinear(q, k, weight.unsqueeze(0)).squeeze(-1)


@style("general", "broadcast and summed", backend="torch")
def general_torch_broadcast(query, key, weight):
    return ((query @ weight).unsqueeze(-2) * key.unsqueeze(-3)).sum(dim=-1)
