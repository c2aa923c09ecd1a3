"""Right answers to the exercises of the assignment on a decoder."""

import math
import random

import numpy as np
import torch
import torch.nn.functional as F

import attnlib
from correct_solutions.styles import style, swap

# RMSNorm -----------------------------------------------------------------------------------------------------------


@style("rms_norm", "the formula")
def rms_norm(x, weight, eps=1e-6):
    return x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps) * weight


@style("rms_norm", "einsum, and a power of -1/2")
def rms_norm_einsum(x, weight, *, eps):
    mean_square = np.einsum("...e,...e->...", x, x) / x.shape[-1]
    return weight * x * ((mean_square + eps) ** -0.5)[..., None]


@style("rms_norm", "row by row")
def rms_norm_rows(x, weight, eps):
    out = np.empty_like(x)
    for place in np.ndindex(x.shape[:-1]):
        square = sum(float(number) ** 2 for number in x[place]) / len(x[place])
        out[place] = [w * number / math.sqrt(square + eps) for w, number in zip(weight, x[place], strict=True)]
    return out


@style("rms_norm", "float64 inside, the norm of linalg")
def rms_norm_double(x, weight, eps=1e-5):
    wide = x.astype(np.float64)
    square = np.linalg.norm(wide, axis=-1, keepdims=True) ** 2 / x.shape[-1]
    return (wide / np.sqrt(square + eps) * weight).astype(x.dtype)


@style("rms_norm", "the formula", backend="torch")
def torch_rms_norm(x, weight, *, eps):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


@style("rms_norm", "a sum divided by the width", backend="torch")
def torch_rms_norm_sum(x, weight, eps):
    return weight * (x / ((x * x).sum(-1, keepdim=True) / x.size(-1) + eps).sqrt())


@style("rms_norm", "linalg", backend="torch")
def torch_rms_norm_linalg(x, weight, eps):
    square = torch.linalg.vector_norm(x, dim=-1, keepdim=True) ** 2 / x.shape[-1]
    return torch.div(x, torch.sqrt(square + eps)).mul(weight)


@style("rms_norm", "einsum", backend="torch")
def torch_rms_norm_einsum(x, weight, eps):
    square = torch.einsum("...e,...e->...", x, x) / x.shape[-1]
    return torch.einsum("...e,e,...->...e", x, weight, (square + eps) ** -0.5)


# The feed-forward layer ----------------------------------------------------------------------------------------------


@style("swiglu_feed_forward", "the formula")
def feed_forward(x, w_gate, w_up, w_down):
    gate = x @ w_gate.T
    return (gate / (1 + np.exp(-gate)) * (x @ w_up.T)) @ w_down.T


@style("swiglu_feed_forward", "einsum, and the sigmoid as a tanh")
def feed_forward_tanh(x, w_gate, w_up, w_down):
    gate, up = (np.einsum("...e,fe->...f", x, w) for w in (w_gate, w_up))
    return np.einsum("...f,ef->...e", gate * (0.5 + 0.5 * np.tanh(gate / 2)) * up, w_down)


@style("swiglu_feed_forward", "two forms of the sigmoid, one for each sign")
def feed_forward_signs(x, w_gate, w_up, w_down):
    gate = np.matmul(x, swap(w_gate))
    e = np.exp(-np.abs(gate))
    sigmoid = np.where(gate >= 0, 1 / (1 + e), e / (1 + e))
    return np.matmul(sigmoid * gate * np.matmul(x, swap(w_up)), swap(w_down))


@style("swiglu_feed_forward", "one product for gate and up")
def feed_forward_joined(x, w_gate, w_up, w_down):
    both = x @ np.concatenate([w_gate, w_up]).T
    gate, up = np.split(both, 2, axis=-1)
    return (gate * (1 / (1 + np.exp(np.clip(-gate, None, 80)))) * up) @ w_down.T


@style("swiglu_feed_forward", "the formula", backend="torch")
def torch_feed_forward(x, w_gate, w_up, w_down):
    gate = x @ w_gate.T
    return (gate * torch.sigmoid(gate) * (x @ w_up.T)) @ w_down.T


@style("swiglu_feed_forward", "functional linear", backend="torch")
def torch_feed_forward_linear(x, w_gate, w_up, w_down):
    gate = F.linear(x, w_gate)
    return F.linear(gate.sigmoid() * gate * F.linear(x, w_up), w_down)


@style("swiglu_feed_forward", "einsum and tanh", backend="torch")
def torch_feed_forward_tanh(x, w_gate, w_up, w_down):
    gate, up = (torch.einsum("...e,fe->...f", x, w) for w in (w_gate, w_up))
    return torch.einsum("...f,ef->...e", gate * (1 + torch.tanh(gate / 2)) / 2 * up, w_down)


@style("swiglu_feed_forward", "one product for gate and up", backend="torch")
def torch_feed_forward_joined(x, w_gate, w_up, w_down):
    gate, up = torch.matmul(x, torch.cat([w_gate, w_up]).mT).chunk(2, dim=-1)
    return torch.matmul(torch.sigmoid(gate).mul(gate).mul(up), w_down.mT)


# Grouped queries -----------------------------------------------------------------------------------------------------


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@style("grouped_query_attention", "keys repeated, a mask from two ranges")
def grouped(query, key, value, past_key, past_value):
    keys, values = np.concatenate([past_key, key], axis=-2), np.concatenate([past_value, value], axis=-2)
    group = query.shape[-3] // keys.shape[-3]
    scores = query @ swap(np.repeat(keys, group, axis=-3)) / np.sqrt(query.shape[-1])
    T, S = scores.shape[-2:]
    scores = np.where(np.arange(S) <= np.arange(T)[:, None] + S - T, scores, -np.inf)
    return softmax(scores) @ np.repeat(values, group, axis=-3), keys, values


@style("grouped_query_attention", "a dimension for the groups, no copies")
def grouped_reshaped(query, key, value, past_key, past_value):
    keys, values = np.append(past_key, key, axis=-2), np.append(past_value, value, axis=-2)
    *leading, heads, T, D = query.shape
    own = keys.shape[-3]
    q = query.reshape(*leading, own, heads // own, T, D)
    scores = np.einsum("...kgtd,...ksd->...kgts", q, keys) * D**-0.5
    mask = np.tril(np.ones((T, keys.shape[-2]), bool), past_key.shape[-2])
    weights = softmax(np.where(mask, scores, -np.inf))
    context = np.einsum("...kgts,...ksd->...kgtd", weights, values)
    return context.reshape(*leading, heads, T, -1), keys, values


@style("grouped_query_attention", "head by head and token by token")
def grouped_loops(query, key, value, past_key, past_value):
    keys, values = np.concatenate((past_key, key), -2), np.concatenate((past_value, value), -2)
    past, group = past_key.shape[-2], query.shape[-3] // key.shape[-3]
    context = np.zeros((*query.shape[:-1], values.shape[-1]), query.dtype)
    for place in np.ndindex(query.shape[:-3]):
        for h in range(query.shape[-3]):
            k, v = keys[place][h // group], values[place][h // group]
            for t, q in enumerate(query[place][h]):
                seen = past + t + 1
                context[(*place, h, t)] = softmax(k[:seen] @ q / math.sqrt(len(q))) @ v[:seen]
    return context, keys, values


@style("grouped_query_attention", "an index for each query head, a finite mask")
def grouped_indexed(query, key, value, past_key, past_value):
    keys, values = np.concatenate([past_key, key], axis=-2), np.concatenate([past_value, value], axis=-2)
    heads, own = query.shape[-3], keys.shape[-3]
    which = np.arange(heads) * own // heads
    scores = (query / query.shape[-1] ** 0.5) @ swap(keys[..., which, :, :])
    scores = scores + np.triu(np.full(scores.shape[-2:], -1e30), past_key.shape[-2] + 1)
    return [softmax(scores.astype(np.float64)).astype(query.dtype) @ values[..., which, :, :], keys, values]


@style("grouped_query_attention", "repeat_interleave and masked_fill", backend="torch")
def torch_grouped(query, key, value, past_key, past_value):
    keys, values = torch.cat([past_key, key], dim=-2), torch.cat([past_value, value], dim=-2)
    group = query.size(-3) // keys.size(-3)
    scores = query @ keys.repeat_interleave(group, -3).mT / math.sqrt(query.size(-1))
    T, S = scores.shape[-2:]
    later = torch.arange(S) > torch.arange(T)[:, None] + S - T
    return scores.masked_fill(later, -torch.inf).softmax(-1) @ values.repeat_interleave(group, -3), keys, values


@style("grouped_query_attention", "unflatten, einsum", backend="torch")
def torch_grouped_unflatten(query, key, value, past_key, past_value):
    keys, values = torch.cat([past_key, key], dim=-2), torch.cat([past_value, value], dim=-2)
    q = query.unflatten(-3, (keys.size(-3), -1))
    scores = torch.einsum("...kgtd,...ksd->...kgts", q, keys) / q.size(-1) ** 0.5
    seen = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(past_key.size(-2))
    weights = torch.softmax(torch.where(seen, scores, -torch.inf), -1)
    return torch.einsum("...kgts,...ksd->...kgtd", weights, values).flatten(-4, -3), keys, values


@style("grouped_query_attention", "expand, and a mask that is added", backend="torch")
def torch_grouped_expand(query, key, value, past_key, past_value):
    keys, values = torch.cat([past_key, key], dim=-2), torch.cat([past_value, value], dim=-2)
    group = query.size(-3) // keys.size(-3)

    def spread(x):
        return x.unsqueeze(-3).expand(*x.shape[:-2], group, *x.shape[-2:]).flatten(-4, -3)

    scores = query @ spread(keys).transpose(-2, -1) * query.size(-1) ** -0.5
    mask = torch.full(scores.shape[-2:], -torch.inf, dtype=scores.dtype).triu(past_key.size(-2) + 1)
    return torch.softmax(scores + mask, dim=-1) @ spread(values), keys, values


@style("grouped_query_attention", "head by head", backend="torch")
def torch_grouped_loop(query, key, value, past_key, past_value):
    keys, values = torch.cat([past_key, key], dim=-2), torch.cat([past_value, value], dim=-2)
    group, contexts = query.size(-3) // keys.size(-3), []
    for h in range(query.size(-3)):
        k, v = keys[..., h // group, :, :], values[..., h // group, :, :]
        scores = query[..., h, :, :] @ k.mT / math.sqrt(k.size(-1))
        later = torch.ones_like(scores, dtype=torch.bool).triu(past_key.size(-2) + 1)
        top = scores.masked_fill(later, -torch.inf).amax(-1, keepdim=True)
        e = torch.exp(torch.minimum(scores - top, torch.zeros_like(scores))).masked_fill(later, 0.0)
        contexts.append(e / e.sum(-1, keepdim=True) @ v)
    return torch.stack(contexts, dim=-3), keys, values


# Rotary positions and a cache ----------------------------------------------------------------------------------------


@style("rope_attention_with_cache", "the mended version")
def rope(query, key, value, past_key, past_value):
    past = past_key.shape[-2]
    cos, sin = attnlib.rope_tables(np.arange(past, past + query.shape[-2]), query.shape[-1])
    cos, sin = cos.astype(query.dtype), sin.astype(query.dtype)
    query, key = attnlib.apply_rope(query, cos, sin), attnlib.apply_rope(key, cos, sin)
    keys, values = np.concatenate([past_key, key], axis=-2), np.concatenate([past_value, value], axis=-2)
    context = attnlib.scaled_dot_product_attention(query, keys, values, is_causal=True, enable_gqa=True, q_offset=past)
    return context, keys, values


def rotated(x, positions):
    half = x.shape[-1] // 2
    angles = positions[:, None] * 10000.0 ** (-np.arange(half) / half)
    turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)
    return np.concatenate([turned.real, turned.imag], axis=-1).astype(x.dtype)


@style("rope_attention_with_cache", "complex numbers, and attention of its own")
def rope_complex(query, key, value, past_key, past_value):
    positions = np.arange(query.shape[-2]) + past_key.shape[-2]
    return grouped(rotated(query, positions), rotated(key, positions), value, past_key, past_value)


@style("rope_attention_with_cache", "the tables of all positions, cut")
def rope_cut(query, key, value, past_key, past_value):
    T, S = key.shape[-2], key.shape[-2] + past_key.shape[-2]
    cos, sin = (x[-T:].astype(key.dtype) for x in attnlib.rope_tables(np.arange(S), key.shape[-1]))
    return grouped_loops(
        attnlib.apply_rope(query, cos, sin), attnlib.apply_rope(key, cos, sin), value, past_key, past_value
    )


@style("rope_attention_with_cache", "matrices of rotation, token by token")
def rope_matrices(query, key, value, past_key, past_value):
    half, past = query.shape[-1] // 2, past_key.shape[-2]
    query, key = query.copy(), key.copy()
    for t in range(query.shape[-2]):
        for k in range(half):
            angle = (past + t) / 10000 ** (2 * k / query.shape[-1])
            turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
            for x in (query, key):
                x[..., t, [k, k + half]] = x[..., t, [k, k + half]] @ turn.T
    return grouped_indexed(query, key, value, past_key, past_value)


# Sampling ------------------------------------------------------------------------------------------------------------


@style("sample", "probabilities and choice")
def sample(logits, rng, *, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        return int(np.argmax(logits))
    p = softmax(np.asarray(logits, np.float64) / temperature)
    if top_k is not None:
        p[np.argsort(-p, kind="stable")[top_k:]] = 0
        p /= p.sum()
    if top_p is not None:
        order = np.argsort(-p, kind="stable")
        before = np.cumsum(p[order]) - p[order]
        p[order[before >= top_p]] = 0
        p /= p.sum()
    return rng.choice(len(p), p=p)


@style("sample", "a random number and a sum, no renormalisation")
def sample_by_sum(logits, rng, temperature=1.0, top_k=None, top_p=None):
    logits = np.asarray(logits, dtype=float)
    order = sorted(range(len(logits)), key=lambda token: -logits[token])
    if temperature == 0:
        return order[0]
    order = order[:top_k]
    e = [math.exp((logits[token] - logits[order[0]]) / temperature) for token in order]
    if top_p is not None:
        total, sums = sum(e), 0.0
        for count, one in enumerate(e, 1):
            sums += one
            if sums >= top_p * total - 1e-12:
                e = e[:count]
                break
    u = rng.random() * sum(e)
    for token, one in zip(order, e, strict=False):
        u -= one
        if u < 0:
            return token
    return order[len(e) - 1]


@style("sample", "the Gumbel trick on masked logits")
def sample_gumbel(logits, rng, *, temperature=1.0, top_k=None, top_p=None):
    z = np.array(logits, dtype=np.float64)
    if temperature == 0.0:
        return int(z.argmax())
    z /= temperature
    if top_k is not None and top_k < len(z):
        z[z < np.sort(z)[-top_k]] = -np.inf
    if top_p is not None:
        p = softmax(z)
        ranked = np.sort(p)[::-1]
        smallest = ranked[min(int(np.searchsorted(np.cumsum(ranked), top_p)), len(p) - 1)]
        z[p < smallest] = -np.inf
    return int(np.argmax(z + rng.gumbel(size=z.shape)))


@style("sample", "Python's own random numbers, on a sorted list of pairs")
def sample_choices(logits, rng, temperature=1.0, top_k=None, top_p=None):
    if not temperature:
        return list(logits).index(max(logits))
    top = float(max(logits))
    pairs = sorted(((math.exp((float(z) - top) / temperature), t) for t, z in enumerate(logits)), reverse=True)
    pairs = pairs[: top_k or len(pairs)]
    if top_p:
        total, kept, so_far = sum(p for p, _ in pairs), [], 0.0
        for p, token in pairs:
            if so_far >= top_p * total:
                break
            kept.append((p, token))
            so_far += p
        pairs = kept
    return random.choices([token for _, token in pairs], [p for p, _ in pairs])[0]


@style("sample", "sorted logits, and a multinomial draw")
def sample_multinomial(logits, rng, temperature=1.0, top_k=None, top_p=None):
    z = np.asarray(logits, np.float64)
    if temperature == 0:
        return np.argmax(z)
    order = np.argsort(-z, kind="stable")[: len(z) if top_k is None else top_k]
    p = softmax(z[order] / temperature)
    if top_p is not None:
        count = np.searchsorted(np.cumsum(p), top_p) + 1
        p = p[:count] / p[:count].sum()
    return order[np.argmax(rng.multinomial(1, p))]


# The loop ------------------------------------------------------------------------------------------------------------


@style("generate_tokens", "for, with a break")
def generate(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
    new, written = prompt, []
    for _ in range(max_new_tokens):
        token = step(new)
        written.append(token)
        if token == stop_token:
            break
        new = [token]
    return list(prompt) + written if return_prompt else written


@style("generate_tokens", "prefill first, then a while")
def generate_while(step, prompt, max_new_tokens, stop_token=None, return_prompt=False):
    text = list(prompt)
    if max_new_tokens > 0:
        text.append(step(prompt))
    while len(text) - len(prompt) < max_new_tokens and (len(text) == len(prompt) or text[-1] != stop_token):
        text.append(step(text[-1:]))
    return text if return_prompt else text[len(prompt) :]


@style("generate_tokens", "a generator")
def generate_lazily(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
    if return_prompt:
        yield from prompt
    read = tuple(prompt)
    for _ in range(max_new_tokens):
        read = (step(read),)
        yield read[0]
        if stop_token is not None and read[0] == stop_token:
            return


@style("generate_tokens", "arrays of tokens")
def generate_arrays(step, prompt, max_new_tokens, stop_token=None, return_prompt=False):
    text, first = np.array(prompt), len(prompt)
    chunk = text
    while len(text) < first + max_new_tokens:
        chunk = np.array([step(chunk)])
        text = np.concatenate([text, chunk])
        if chunk[0] == stop_token:
            break
    return text if return_prompt else text[first:]


@style("generate_tokens", "recursion")
def generate_recursively(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
    def write(new, left):
        if left == 0:
            return []
        token = step(new)
        return [token] if token == stop_token else [token, *write([token], left - 1)]

    return [*(prompt if return_prompt else ()), *write(prompt, max_new_tokens)]


# The whole model -----------------------------------------------------------------------------------------------------


@style("decoder_logits", "the student's own functions")
def decoder(params, config, tokens, cache):
    x, grown = params["embed_tokens.weight"][tokens], []
    for n, (past_key, past_value) in enumerate(cache):
        own = {name.removeprefix(f"layers.{n}."): w for name, w in params.items() if name.startswith(f"layers.{n}.")}
        y = rms_norm(x, own["norm1.weight"], eps=config["eps"])
        q, k, v = (
            (y @ own[f"self_attn.{name}_proj.weight"].T).reshape(len(x), -1, config["head_dim"]).swapaxes(0, 1)
            for name in "qkv"
        )
        past = past_key.shape[-2]
        cos, sin = attnlib.rope_tables(np.arange(past, past + len(x)), q.shape[-1], base=config["rope_base"])
        cos, sin = cos.astype(x.dtype), sin.astype(x.dtype)
        q, k = attnlib.apply_rope(q, cos, sin), attnlib.apply_rope(k, cos, sin)
        context, *both = grouped(q, k, v, past_key, past_value)
        grown.append(tuple(both))
        x = x + attnlib.merge_heads(context[None])[0] @ own["self_attn.out_proj.weight"].T
        y = rms_norm(x, own["norm2.weight"], eps=config["eps"])
        x = x + feed_forward(y, *(own[f"ff.{name}_proj.weight"] for name in ("gate", "up", "down")))
    return rms_norm(x, params["norm.weight"], eps=config["eps"]) @ params["embed_tokens.weight"].T, grown


def layer_by_hand(x, w, config, past):
    """One layer, with einsum, for a list of rotated keys and a list of values by position."""
    D, heads, own = config["head_dim"], config["num_heads"], config["num_kv_heads"]
    keys, values = past

    def norm(y, name):
        return w[name] * y / np.sqrt(np.mean(y * y) + config["eps"])

    def turn(y, position):
        half = D // 2
        z = (y[..., :half] + 1j * y[..., half:]) * np.exp(
            1j * position * config["rope_base"] ** (-np.arange(half) / half)
        )
        return np.concatenate([z.real, z.imag], -1)

    out = []
    for row in x:
        y = norm(row, "norm1.weight")
        q, k, v = ((w[f"self_attn.{n}_proj.weight"] @ y).reshape(-1, D) for n in "qkv")
        keys, values = [*keys, turn(k, len(keys))], [*values, v]
        q, found = turn(q, len(keys) - 1), []
        for h in range(heads):
            scores = np.array([q[h] @ k[h * own // heads] for k in keys]) / math.sqrt(D)
            found.append(softmax(scores) @ np.array([v[h * own // heads] for v in values]))
        row = row + w["self_attn.out_proj.weight"] @ np.concatenate(found)
        y = norm(row, "norm2.weight")
        gate = w["ff.gate_proj.weight"] @ y
        out.append(row + w["ff.down_proj.weight"] @ (gate / (1 + np.exp(-gate)) * (w["ff.up_proj.weight"] @ y)))
    return np.array(out), (keys, values)


@style("decoder_logits", "token by token, with a cache of lists")
def decoder_lists(params, config, tokens, cache):
    x = np.array([params["embed_tokens.weight"][token] for token in tokens])
    grown = []
    for n, (keys, values) in enumerate(cache):
        w = {name.split(".", 2)[2]: one for name, one in params.items() if name.startswith(f"layers.{n}.")}
        past = (keys, values) if isinstance(keys, list) else ([], [])
        x, past = layer_by_hand(x, w, config, past)
        grown.append(past)
    x = params["norm.weight"] * x / np.sqrt((x**2).mean(-1, keepdims=True) + config["eps"])
    return (x @ params["embed_tokens.weight"].T).astype(params["norm.weight"].dtype), grown


@style("decoder_logits", "the whole text once more in each call, kept in place of keys")
def decoder_again(params, config, tokens, cache):
    earlier = cache if isinstance(cache, list) and cache and isinstance(cache[0], int) else []
    text = [*earlier, *map(int, tokens)]
    width = config["num_kv_heads"], 0, config["head_dim"]
    nothing = np.zeros(width, params["norm.weight"].dtype)
    logits, _ = decoder(params, config, text, [(nothing, nothing)] * config["num_layers"])
    return logits[len(earlier) :], text


@style("decoder_logits", "torch inside, from the state of the library's names")
def decoder_torch(params, config, tokens, cache):
    w = {name: torch.from_numpy(x) for name, x in params.items()}
    x, grown = w["embed_tokens.weight"][torch.as_tensor(tokens)], []
    for n, pair in enumerate(cache):
        keys, values = map(torch.as_tensor, pair)

        def part(name, y, n=n):
            return F.linear(y, w[f"layers.{n}.{name}.weight"])

        y = torch_rms_norm(x, w[f"layers.{n}.norm1.weight"], eps=config["eps"])
        q, k, v = (
            part(f"self_attn.{one}_proj", y).unflatten(-1, (-1, config["head_dim"])).transpose(0, 1) for one in "qkv"
        )
        positions = torch.arange(len(x)) + keys.shape[-2]
        cos, sin = (
            t.to(x.dtype) for t in attnlib.rope_tables(positions.double(), config["head_dim"], base=config["rope_base"])
        )
        q, k = attnlib.apply_rope(q, cos, sin), attnlib.apply_rope(k, cos, sin)
        context, keys, values = torch_grouped(q, k, v, keys, values)
        grown.append((keys.numpy(), values.numpy()))
        x = x + part("self_attn.out_proj", context.transpose(0, 1).flatten(-2))
        y = torch_rms_norm(x, w[f"layers.{n}.norm2.weight"], eps=config["eps"])
        gate = part("ff.gate_proj", y)
        x = x + part("ff.down_proj", gate * gate.sigmoid() * part("ff.up_proj", y))
    x = torch_rms_norm(x, w["norm.weight"], eps=config["eps"])
    return (x @ w["embed_tokens.weight"].T).numpy(), grown
