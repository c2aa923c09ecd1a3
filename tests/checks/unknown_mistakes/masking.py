"""Wrong answers that no catalogue knows, to the exercises of the assignment on masks."""

import numpy as np
from correct_solutions.masking import Concatenated, causal, padding, softmax
from correct_solutions.styles import swap

from unknown_mistakes.labels import unnamed


def scores(query, key):
    return query @ swap(key) / query.shape[-1] ** 0.5


def attend(weights, value):
    return weights @ value, weights


def hidden(q, k, mask, number=-np.inf):
    return np.where(mask, scores(q, k), number)


def naive(s, axis=-1):
    e = np.exp(s - s.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


CAUSAL = unnamed(
    neighbours_alone=lambda T, S=None, *, q_offset=0: (
        causal(T, S, q_offset=q_offset) & ~causal(T, S, q_offset=q_offset - 2)
    ),
    one_row_for_all=lambda T, S=None, *, q_offset=0: causal(T, S, q_offset=q_offset)[-1:],
    anti_diagonal=lambda T, S=None, *, q_offset=0: causal(T, S, q_offset=q_offset)[:, ::-1],
    rows_reversed=lambda T, S=None, *, q_offset=0: causal(T, S, q_offset=q_offset)[::-1],
    all_false=lambda T, S=None, *, q_offset=0: np.zeros((T, S or T), dtype=bool),
    offset_wraps_around=lambda T, S=None, *, q_offset=0: np.roll(causal(T, S), q_offset, axis=1),
    offset_moves_the_rows_round=lambda T, S=None, *, q_offset=0: np.roll(causal(T, S), -q_offset, axis=0),
    one_key_is_free=lambda T, S=None, *, q_offset=0: causal(T, S, q_offset=q_offset) | (np.arange(S or T) == 0),
    offset_doubled=lambda T, S=None, *, q_offset=0: causal(T, S, q_offset=2 * q_offset),
    single_query_sees_all=lambda T, S=None, *, q_offset=0: causal(T, S, q_offset=q_offset if T > 1 else (S or T)),
    a_list=lambda T, S=None, *, q_offset=0: causal(T, S, q_offset=q_offset).tolist(),
    added_and_upside_down=lambda T, S=None, *, q_offset=0: np.where(causal(T, S, q_offset=q_offset), -np.inf, 0.0),
    minus_1e9=lambda T, S=None, *, q_offset=0: np.where(causal(T, S, q_offset=q_offset), 0, -1e9),
    indices=lambda T, S=None, *, q_offset=0: np.tril_indices(T, q_offset, S),
    weights=lambda T, S=None, *, q_offset=0: causal(T, S, q_offset=q_offset) / np.arange(1, T + 1)[:, None],
) | {
    "upper and too strict": (
        lambda T, S=None, *, q_offset=0: np.triu(np.ones((T, S or T), bool), 1),
        {None, "inverted"},
    ),
    "the offset by position": (lambda T, q_offset=0, S=None: causal(T, S), {None, "size-ignored", "offset-ignored"}),
}

PADDING = unnamed(
    left_shifted=lambda lengths, S: np.roll(padding(lengths, S), -1, axis=-1),
    reversed_sentences=lambda lengths, S: padding(lengths, S)[::-1],
    odd_positions=lambda lengths, S: padding(lengths, S) & (np.arange(S) % 2 == 0),
    sorted_lengths=lambda lengths, S: padding(np.sort(lengths), S),
    mean_length=lambda lengths, S: padding(np.full(len(lengths), int(np.mean(lengths))), S),
    shortest=lambda lengths, S: padding(np.full(len(lengths), min(lengths)), S),
    one_row=lambda lengths, S: padding(lengths, S)[:1],
    cut_at_the_mean=lambda lengths, S: padding(np.minimum(lengths, int(np.mean(lengths))), S),
    all_false=lambda lengths, S: np.zeros((len(lengths), 1, 1, S), bool),
    a_list=lambda lengths, S: padding(lengths, S).tolist(),
    positions=lambda lengths, S: np.arange(S) * padding(lengths, S),
    minus_1e9=lambda lengths, S: np.where(padding(lengths, S), 0.0, -1e9),
    one_more_column=lambda lengths, S: padding(lengths, S + 1),
    flat=lambda lengths, S: padding(lengths, S).ravel(),
) | {
    "squeezed": (lambda lengths, S: padding(lengths, S).squeeze(), {"two-dimensions"}),
    "queries and keys, or": (
        lambda lengths, S: padding(lengths, S) | swap(padding(lengths, S)),
        {None},
    ),
}


def divided(weights):
    """Divide by the sums, 0 or not."""
    return weights / weights.sum(-1, keepdims=True)


def max_of_all_scores(query, key, value, mask):
    s = scores(query, key)
    e = np.exp(s - s.max(-1, keepdims=True)) * mask
    return attend(e / e.sum(-1, keepdims=True), value)


def eps_in_the_sum(query, key, value, mask):
    s = hidden(query, key, mask)
    e = np.exp(s - np.maximum(s.max(-1, keepdims=True), -1e300)) * mask
    return attend(e / (e.sum(-1, keepdims=True) + 1e-3), value)


def keys_times_mask(query, key, value, mask):
    return attend(naive(scores(query, key * mask[..., -1, :, None])), value)


def keys_zeroed(query, key, value, mask):
    visible = key[..., None, :, :] * mask[..., None]  # (..., T, S, D)
    return attend(naive((query[..., :, None, :] * visible).sum(-1) / query.shape[-1] ** 0.5), value)


def hidden_by_numpy(query, key, value, mask):
    s = scores(query, key)
    return attend(naive(np.ma.array(s, mask=np.broadcast_to(mask, s.shape)).filled(-np.inf)), value)


def renormalised_without_nan(query, key, value, mask):
    weights = naive(scores(query, key)) * mask
    return attend(np.nan_to_num(weights / weights.sum(-1, keepdims=True)), value)


def nothing_if_any_row_is_empty(query, key, value, mask):
    weights = softmax(hidden(query, key, mask)) * mask.any(axis=-1).all()
    return attend(weights, value)


def that(change):
    """Attention whose right weights are changed at the end."""
    return lambda q, k, v, mask: attend(change(softmax(hidden(q, k, mask)), mask), v)


def allowing(change):
    """Attention whose mask is changed before it is used."""
    return lambda q, k, v, mask: attend(softmax(hidden(q, k, change(mask))), v)


MASKED = unnamed(
    eps_of_a_thousandth=eps_in_the_sum,
    empty_rows_see_themselves=allowing(
        lambda m: np.where(m.any(-1, keepdims=True), m, np.eye(*m.shape[-2:], dtype=bool)) if m.ndim > 1 else m
    ),
    empty_rows_are_one=that(lambda w, m: np.where(m.any(-1, keepdims=True), w, 1.0)),
    nothing_if_any_row_is_empty=nothing_if_any_row_is_empty,
    mask_and_causal=allowing(lambda m: m & np.tri(*m.shape[-2:], dtype=bool) if m.ndim > 1 else m),
    mask_or_diagonal=allowing(lambda m: m | np.eye(*m.shape[-2:], dtype=bool) if m.ndim > 1 else m),
    first_row_of_the_mask_for_all=allowing(lambda m: m[..., :1, :] if m.ndim > 1 else m),
    last_row_of_the_mask_for_all=allowing(lambda m: m[..., -1:, :] if m.ndim > 1 else m),
    all_rows_of_the_mask=allowing(lambda m: m.all(axis=-2, keepdims=True) if m.ndim > 1 else m),
    keys_reversed_in_the_mask=allowing(lambda m: m[..., ::-1]),
    rows_reversed_in_the_mask=allowing(lambda m: m[::-1]),
    first_key_always_allowed=allowing(lambda m: m | (np.arange(m.shape[-1]) == 0)),
    keys_times_mask=keys_times_mask,
    minus_two=lambda q, k, v, m: attend(naive(hidden(q, k, m, -2.0)), v),
    minus_five=lambda q, k, v, m: attend(naive(hidden(q, k, m, -5.0)), v),
    minus_the_largest=lambda q, k, v, m: attend(naive(hidden(q, k, m, -np.abs(scores(q, k)).max())), v),
    smallest_score=lambda q, k, v, m: attend(naive(hidden(q, k, m, scores(q, k).min())), v),
    scores_halved=lambda q, k, v, m: attend(naive(hidden(q, k, m, scores(q, k) / 2)), v),
    weights_rounded=that(lambda w, m: w.round(2)),
    divided_by_the_number_of_allowed=that(lambda w, m: w / np.maximum(m.sum(-1, keepdims=True), 1)),
    mask_times_weights_and_uniform_rest=that(lambda w, m: w * 0.9 + 0.1 / w.shape[-1]),
    queries_reversed=lambda q, k, v, m: attend(softmax(hidden(q[..., ::-1, :], k, m)), v),
    values_reversed=lambda q, k, v, m: attend(softmax(hidden(q, k, m)), v[..., ::-1, :]),
    softmax_twice=lambda q, k, v, m: attend(softmax(np.where(m, softmax(hidden(q, k, m)), -np.inf)), v),
    mask_reshaped=lambda q, k, v, m: attend(softmax(hidden(q, k, m.reshape(scores(q, k).shape))), v),
    mask_transposed_in_full=lambda q, k, v, m: attend(softmax(hidden(q, k, m.T)), v) if m.ndim > 2 else None,
    three_results=lambda q, k, v, m: (*attend(softmax(hidden(q, k, m)), v), scores(q, k)),
    a_dictionary=lambda q, k, v, m: {"context": v, "weights": m},
    the_answer_of_the_first_case=lambda q, k, v, m: (
        np.array([[5.0], [4.0]]),
        np.array([[1, 2, 0], [2.5, 0, 0.5]]) / 3,
    ),
    weights_of_the_allowed_alone=lambda q, k, v, m: attend(naive(scores(q, k)[m]), v),
    float16=that(lambda w, m: w.astype(np.float16)),
) | {
    "the maximum of all scores, and 0/0": (max_of_all_scores, {"renormalised"}),
    "-1e9 in place of -inf": (lambda q, k, v, m: attend(naive(hidden(q, k, m, -1e9)), v), {"uniform-rows"}),
    "-1e9 added": (lambda q, k, v, m: attend(naive(scores(q, k) - 1e9 * (1 - m)), v), {"unmasked-rows"}),
    "-1000 in place of -inf": (
        lambda q, k, v, m: attend(naive(hidden(q, k, m, -1000.0)), v),
        {"filled-with-minus-hundred"},
    ),
    "-500 added": (lambda q, k, v, m: attend(naive(scores(q, k) - 500 * ~m), v), {"lowered-by-a-hundred"}),
    "inverted, with nan": (lambda q, k, v, m: attend(naive(hidden(q, k, ~m)), v), {"inverted"}),
    "inverted, with -1e9": (lambda q, k, v, m: attend(naive(hidden(q, k, ~m, -1e9)), v), {"inverted"}),
    "no scale, with nan": (lambda q, k, v, m: attend(naive(np.where(m, q @ swap(k), -np.inf)), v), {"no-scale"}),
    "over the queries, with nan": (
        lambda q, k, v, m: attend(naive(hidden(q, k, m), -2), v),
        {"softmax-over-queries"},
    ),
    "mask turned, with nan": (lambda q, k, v, m: attend(naive(hidden(q, k, swap(m))), v), {"transposed", None}),
    "weights first, with nan": (lambda q, k, v, m: attend(naive(hidden(q, k, m)), v)[::-1], {"swapped-results"}),
    "mask times scores": (lambda q, k, v, m: attend(naive(scores(q, k) * m), v), {"scores-zeroed"}),
    "nan in place of -inf": (lambda q, k, v, m: attend(naive(hidden(q, k, m, np.nan)), v), {"plus-infinity"}),
    "inverted, and divided by the sum of what is allowed": (
        lambda q, k, v, m: attend(divided(naive(hidden(q, k, ~m)) * m), v),
        {"zero-times-infinity"},
    ),
    "scores times mask, weights times mask, divided": (
        lambda q, k, v, m: attend(divided(naive(scores(q, k) * m) * m), v),
        {None},
    ),
    "np.ma hides what is True": (hidden_by_numpy, {"inverted"}),
    "zeros after, divided, nan to 0": (renormalised_without_nan, {"renormalised-safely"}),
    "no scale, zeros after": (
        lambda q, k, v, m: attend(naive(q @ swap(k)) * m, v),
        {"weights-zeroed-unscaled"},
    ),
    "inverted, zeros after": (lambda q, k, v, m: attend(naive(scores(q, k)) * ~m, v), {"weights-zeroed-inverted"}),
    "no transpose": (lambda q, k, v, m: attend(naive(np.where(m, q @ k, -np.inf)), v), {None}),
    "a mask squeezed": (lambda q, k, v, m: attend(softmax(hidden(q, k, m.squeeze())), v), {None}),
    "scale by the length of the key array": (
        lambda q, k, v, m: attend(softmax(np.where(m, q @ swap(k), -np.inf) / np.sqrt(len(k))), v),
        {None, "scaled-by-keys"},
    ),
    "no scale, no mask": (lambda q, k, v, m: attend(naive(q @ swap(k)), v), {None}),
    "no scale, inverted": (
        lambda q, k, v, m: attend(softmax(np.where(m, -np.inf, q @ swap(k))), v),
        {"inverted-unscaled"},
    ),
    "no scale, mask turned": (
        lambda q, k, v, m: attend(softmax(np.where(swap(m), q @ swap(k), -np.inf)), v),
        {"transposed"},
    ),
    "keys zeroed": (keys_zeroed, {"scores-zeroed"}),
    "scores minus not mask": (lambda q, k, v, m: attend(naive(scores(q, k) - ~m), v), {"added"}),
}


def cache(append):
    """A cache that does what is right, changed by a function of its result and itself."""

    class Changed(Concatenated):
        def append(self, key, value):
            return append(self, *super().append(key, value), key, value)

    return Changed


class Window(Concatenated):
    def append(self, key, value):
        keys, values = super().append(key, value)
        self.keys, self.values = keys[..., -4:, :], values[..., -4:, :]
        return self.keys, self.values


class LengthMethod(Concatenated):
    def __init__(self):
        self.keys = self.values = None

    def append(self, key, value):
        self._n = getattr(self, "_n", 0)
        self.keys = key if self.keys is None else np.concatenate([self.keys, key], -2)
        self.values = value if self.values is None else np.concatenate([self.values, value], -2)
        return self.keys, self.values

    def length(self):
        return self.keys.shape[-2]


class NoLength:
    def append(self, key, value):
        return key, value


class SharedLists:
    keys, values = [], []

    def __init__(self):
        self.length = 0

    def append(self, key, value):
        self.keys.append(key)
        self.values.append(value)
        self.length += key.shape[-2]
        return np.concatenate(self.keys, axis=-2), np.concatenate(self.values, axis=-2)


class SharedDefault:
    def __init__(self, keys=[], values=[]):  # noqa: B006
        self.keys, self.values = keys, values

    @property
    def length(self):
        return sum(key.shape[-2] for key in self.keys)

    def append(self, key, value):
        self.keys.append(key)
        self.values.append(value)
        return np.concatenate(self.keys, axis=-2), np.concatenate(self.values, axis=-2)


class SharedByName:
    keys, values, length = None, None, 0

    def append(self, key, value):
        kind = SharedByName
        kind.keys = key if kind.keys is None else np.concatenate([kind.keys, key], axis=-2)
        kind.values = value if kind.values is None else np.concatenate([kind.values, value], axis=-2)
        kind.length += key.shape[-2]
        return kind.keys, kind.values


class StartsAtOne(Concatenated):
    def __init__(self):
        super().__init__()
        self.length = 1


def joined(axis):
    """A cache that grows along one axis, right or wrong, and reads its length from what it holds."""

    class Joined:
        def __init__(self):
            self.keys, self.values, self.length = None, None, 0

        def append(self, key, value):
            self.keys = key if self.keys is None else np.concatenate([self.keys, key], axis=axis)
            self.values = value if self.values is None else np.concatenate([self.values, value], axis=axis)
            self.length = self.keys.shape[-2]
            return self.keys, self.values

    return Joined


class OneTokenRoom(Concatenated):
    def append(self, key, value):
        keys, values = super().append(key, value)
        self.length = keys.shape[-2] if key.shape[-2] == 1 else key.shape[-2]
        return keys, values


CACHES = unnamed(
    a_window_of_four=Window,
    the_length_is_a_method=LengthMethod,
    no_length_at_all=NoLength,
    positions_reversed=cache(lambda c, keys, values, k, v: (keys[..., ::-1, :], values[..., ::-1, :])),
    sorted_by_size=cache(lambda c, keys, values, k, v: (np.sort(keys, -2), np.sort(values, -2))),
    rounded=cache(lambda c, keys, values, k, v: (keys.round(2), values.round(2))),
    three_results=cache(lambda c, keys, values, k, v: (keys, values, c.length)),
    keys_alone=cache(lambda c, keys, values, k, v: keys),
    the_cache_itself=cache(lambda c, keys, values, k, v: c),
    transposed=cache(lambda c, keys, values, k, v: (swap(keys), swap(values))),
    values_reversed=cache(lambda c, keys, values, k, v: (keys, values[..., ::-1, :])),
    first_position_lost=cache(lambda c, keys, values, k, v: (keys[..., 1:, :], values[..., 1:, :])),
    last_position_lost=cache(lambda c, keys, values, k, v: (keys[..., :-1, :], values[..., :-1, :])),
    keys_summed=cache(lambda c, keys, values, k, v: (keys.cumsum(-2), values)),
    lists=cache(lambda c, keys, values, k, v: (keys.tolist(), values.tolist())),
    a_long_chunk_sets_the_length=OneTokenRoom,
    the_length_starts_at_1=StartsAtOne,
) | {
    "joined along the width, the length read from the shape": (joined(-1), {"along-width-as-read"}),
    "joined along the batch, the length read from the shape": (joined(0), {"along-batch-as-read"}),
    "lists of the class": (SharedLists, {"shared"}),
    "assigned to the class by name": (SharedByName, {"shared-and-counted"}),
    "lists as defaults": (SharedDefault, {"shared-and-counted"}),
}

UNKNOWN_MISTAKES = {"causal_mask": CAUSAL, "padding_mask": PADDING, "masked_attention": MASKED, "KVCache": CACHES}
