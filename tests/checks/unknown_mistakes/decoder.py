"""Wrong answers that no catalogue knows, to the exercises of the assignment on a decoder."""

import numpy as np
from correct_solutions import decoder as correct
from correct_solutions.styles import swap

from unknown_mistakes.labels import unnamed


def rms_with(square, power=-0.5):
    """Another norm: ``square(x)`` in place of the mean square, (..., 1)."""
    return lambda x, weight, eps: weight * x * (square(x) + eps) ** power


def largest_half(x):
    """The mean square of the larger half of each row."""
    ordered = np.sort(x**2, axis=-1)
    return ordered[..., x.shape[-1] // 2 :].mean(-1, keepdims=True)


def median(x):
    return np.median(x**2, axis=-1, keepdims=True)


def cube(x):
    return (np.abs(x) ** 3).mean(-1, keepdims=True)


def first_row_wins(x):
    """The mean square of the first row, for all rows."""
    square = (x**2).mean(-1, keepdims=True)
    return np.broadcast_to(square.reshape(-1)[0], square.shape)


def feed_forward_with(inside):
    return lambda x, w_gate, w_up, w_down: inside(x @ w_gate.T, x @ w_up.T) @ w_down.T


def silu(x):
    return x / (1 + np.exp(-x))


def grouped_with(change):
    """Attention with changed inputs: ``change(query, key, value, past_key, past_value)``."""
    return lambda *inputs: correct.grouped(*change(*inputs))


def oldest_forgotten(query, key, value, past_key, past_value):
    """The context without the oldest token of the cache, where there are several."""
    _, keys, values = correct.grouped(query, key, value, past_key, past_value)
    first = 1 if past_key.shape[-2] > 1 else 0
    context, _, _ = correct.grouped(query, key, value, past_key[..., first:, :], past_value[..., first:, :])
    return context, keys, values


def new_values_doubled(query, key, value, past_key, past_value):
    context, keys, _ = correct.grouped(query, key, 2 * value, past_key, past_value)
    return context, keys, correct.grouped(query, key, value, past_key, past_value)[2]


def keys_sorted(query, key, value, past_key, past_value):
    context, keys, values = correct.grouped(query, key, value, past_key, past_value)
    return context, np.sort(keys, axis=-2), values


def normalised_queries(query, *others):
    return query / np.linalg.norm(query, axis=-1, keepdims=True), *others


def rope_at(positions, base=10000.0):
    """Rotary attention whose new tokens are at other positions: ``positions(past, T)``."""

    def attend(query, key, value, past_key, past_value):
        at = np.asarray(positions(past_key.shape[-2], query.shape[-2]), np.float64)
        half = query.shape[-1] // 2
        angles = at[:, None] * base ** (-np.arange(half) / half)

        def turn(x):
            z = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)
            return np.concatenate([z.real, z.imag], axis=-1).astype(x.dtype)

        return correct.grouped(turn(query), turn(key), value, past_key, past_value)

    return attend


def sample_with(change):
    """A sampler with changed logits: ``change(logits, options)`` returns both."""

    def sample(logits, rng, **options):
        logits, options = change(np.asarray(logits, np.float64), dict(options))
        return correct.sample(logits, rng, **options)

    return sample


def temperature_squared(logits, options):
    return logits, options | {"temperature": options.get("temperature", 1.0) ** 2}


def top_k_of_half(logits, options):
    return logits, options | ({"top_k": 2 * options["top_k"]} if options.get("top_k") else {})


def rounded_logits(logits, options):
    return np.round(logits - logits.max()), options


def last_token_never(logits, options):
    z = logits.copy()
    if len(z) > 1:
        z[-1] = -np.inf
    return z, options


def empty_set(logits, rng, *, temperature=1.0, top_k=None, top_p=None):
    """Cut off the token that crosses top-p, which leaves nothing if it is the first, and then draw from nothing."""
    if top_p is None or temperature == 0:
        return correct.sample(logits, rng, temperature=temperature, top_k=top_k, top_p=top_p)
    order = np.argsort(-logits)[:top_k]
    p = correct.softmax(logits[order].astype(np.float64) / temperature)
    kept = np.cumsum(p) <= top_p + 1e-9
    return rng.choice(order[kept], p=p[kept] / p[kept].sum())


def half_top_p(logits, options):
    return logits, options | ({"top_p": options["top_p"] / 2} if options.get("top_p") else {})


def generate_with(change):
    """A loop whose new tokens are changed before they come back."""

    def generate(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
        written = correct.generate(step, prompt, max_new_tokens, stop_token=stop_token)
        return [*prompt, *change(written)] if return_prompt else change(written)

    return generate


def next_token_plus_one(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
    return correct.generate(
        lambda new: step([token + 1 for token in new]),
        prompt,
        max_new_tokens,
        stop_token=stop_token,
        return_prompt=return_prompt,
    )


def prompt_reversed(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):
    return correct.generate(step, prompt[::-1], max_new_tokens, stop_token=stop_token, return_prompt=return_prompt)


def decoder_with(change):
    """The model with changed parameters: ``change(name, parameter)``."""

    def decoder(params, config, tokens, cache):
        return correct.decoder({name: change(name, x) for name, x in params.items()}, config, tokens, cache)

    return decoder


def scaled_logits(params, config, tokens, cache):
    logits, cache = correct.decoder(params, config, tokens, cache)
    return logits - logits.max(axis=-1, keepdims=True), cache


UNKNOWN_MISTAKES = {
    "rms_norm": unnamed(
        median=rms_with(median),
        cubes=rms_with(cube, -1 / 3),
        larger_half=rms_with(largest_half),
        first_row_for_all=rms_with(first_row_wins),
        fourth_root=rms_with(lambda x: (x**2).mean(-1, keepdims=True), -0.25),
        weights_reversed=lambda x, weight, eps: correct.rms_norm(x, weight[::-1], eps),
        absolute_weights=lambda x, weight, eps: correct.rms_norm(x, np.abs(weight), eps),
        absolute_numbers=lambda x, weight, eps: correct.rms_norm(np.abs(x), weight, eps),
    ),
    "swiglu_feed_forward": unnamed(
        squared_gate=feed_forward_with(lambda gate, up: silu(gate) ** 2 * up),
        absolute_up=feed_forward_with(lambda gate, up: silu(gate) * np.abs(up)),
        half_gate=feed_forward_with(lambda gate, up: silu(gate / 2) * up),
        sine=feed_forward_with(lambda gate, up: np.sin(gate) * up),
        one_minus_gate=feed_forward_with(lambda gate, up: (1 - silu(gate)) * up),
        reversed_inside=feed_forward_with(lambda gate, up: (silu(gate) * up)[..., ::-1]),
        gate_used_twice=feed_forward_with(lambda gate, up: silu(gate) * gate),
    ),
    "grouped_query_attention": unnamed(
        oldest_forgotten=oldest_forgotten,
        new_values_doubled=new_values_doubled,
        sorted_keys=keys_sorted,
        normalised_queries=grouped_with(normalised_queries),
        queries_reversed=grouped_with(lambda q, *others: (q[..., ::-1, :, :], *others)),
        scaled_twice=grouped_with(lambda q, *others: (q / q.shape[-1] ** 0.5, *others)),
        context_transposed=lambda *inputs: (swap(correct.grouped(*inputs)[0]), *correct.grouped(*inputs)[1:]),
    ),
    "rope_attention_with_cache": unnamed(
        half_positions=rope_at(lambda past, T: (past + np.arange(T)) / 2),
        two_too_large=rope_at(lambda past, T: past + np.arange(T) + 2),
        reversed_positions=rope_at(lambda past, T: past + np.arange(T)[::-1]),
        doubled_offset=rope_at(lambda past, T: 2 * past + np.arange(T)),
        base_of_1000=rope_at(lambda past, T: past + np.arange(T), base=1000.0),
        at_most_position_3=rope_at(lambda past, T: np.minimum(past + np.arange(T), 3)),
    ),
    "sample": unnamed(
        temperature_squared=sample_with(temperature_squared),
        twice_as_many=sample_with(top_k_of_half),
        rounded=sample_with(rounded_logits),
        last_token_never=sample_with(last_token_never),
        half_of_top_p=sample_with(half_top_p),
        empty_set=empty_set,
        negated=sample_with(lambda logits, options: (-logits, options)),
        neighbour=lambda logits, rng, **options: (correct.sample(logits, rng, **options) + 1) % len(logits),
    ),
    "generate_tokens": unnamed(
        in_reverse=generate_with(lambda written: written[::-1]),
        sorted=generate_with(sorted),
        every_second=generate_with(lambda written: written[::2]),
        next_token_plus_one=next_token_plus_one,
        prompt_reversed=prompt_reversed,
    ),
    "decoder_logits": unnamed(
        no_up_in_the_first_layer=decoder_with(lambda name, x: 0 * x if name == "layers.0.ff.up_proj.weight" else x),
        absolute_norms=decoder_with(lambda name, x: np.sqrt(x) if "norm" in name else x),
        keys_negated=decoder_with(lambda name, x: -x if "k_proj" in name else x),
        values_doubled=decoder_with(lambda name, x: 2 * x if "v_proj" in name else x),
        embeddings_reversed=decoder_with(lambda name, x: x[::-1] if "embed" in name else x),
        shifted_logits=scaled_logits,
    ),
}
