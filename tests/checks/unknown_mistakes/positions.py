"""Wrong answers that no catalogue knows, to the exercises of the assignment on positions."""

import math

import numpy as np
from correct_solutions.positions import alibi, gap, rope, sinusoids, slopes

from unknown_mistakes.labels import unnamed

# sinusoidal_positions --------------------------------------------------------------------------------------------


def hands(angle, interleaved=True):
    both = [np.sin(angle), np.cos(angle)]
    return np.stack(both, -1).reshape(len(angle), -1) if interleaved else np.concatenate(both, -1)


def angles(T, D, base=10000.0, first=0):
    return np.arange(first, first + T)[:, None] * base ** (-np.arange(0, D, 2) / D)


def table_that(change):
    """A right table, changed at the end."""
    return lambda T, D, *, base=10000.0: change(sinusoids(T, D, base=base))


def angle_that(change):
    """Right but for the angles."""
    return lambda T, D, *, base=10000.0: hands(change(angles(T, D, base)))


def column_in_exponent(T, D, *, base=10000.0, interleaved=True):
    table = np.zeros((T, D))
    for i in range(T):
        for d in range(0, D, 2):
            table[i, d] = math.sin(i / base ** (2 * d / D))
            table[i, d + 1] = math.cos(i / base ** (2 * (d + 1) / D))
    return table


def another_program(T, D, *, base=10000.0, interleaved=True):
    step = math.log(base) / max(D / 2 - 1, 1)
    return hands(np.arange(T)[:, None] * np.exp(-step * np.arange(D // 2)), interleaved=False)


def blocks(T, D, *, base=10000.0):
    angle = np.repeat(angles(T, D, base), 2, axis=1)
    return np.where(np.arange(D) // 2 % 2 == 0, np.sin(angle), np.cos(angle))


def first_row_forgotten(T, D, *, base=10000.0):
    table = np.zeros((T, D))
    table[1:] = sinusoids(T, D, base=base)[1:]
    return table


def short_of_positions(T, D, *, base=10000.0):
    return sinusoids(T, D, base=base)[np.minimum(np.arange(T), T - 2)]


SINUSOIDS = unnamed(
    squared_positions=lambda T, D, *, base=10000.0: hands(angles(T, D, base) * np.arange(T)[:, None]),
    positions_in_twos=angle_that(lambda a: 2 * a),
    positions_halved=angle_that(lambda a: a / 2),
    logarithm_of_the_position=lambda T, D, *, base=10000.0: hands(
        np.log1p(np.arange(T))[:, None] * base ** (-np.arange(0, D, 2) / D)
    ),
    centred_positions=angle_that(lambda a: a - a.mean(0)),
    counted_from_two=lambda T, D, *, base=10000.0: hands(angles(T, D, base, 2)),
    rounded_to_2_decimals=table_that(lambda p: p.round(2)),
    float16=table_that(lambda p: p.astype(np.float16)),
    pairs_of_sines_and_pairs_of_cosines=blocks,
    first_row_forgotten=first_row_forgotten,
    last_row_repeated=short_of_positions,
    plus_one=table_that(lambda p: p + 1),
    between_0_and_1=table_that(lambda p: (p + 1) / 2),
    squares=table_that(lambda p: p**2),
    tangent=lambda T, D, *, base=10000.0: np.repeat(np.tan(angles(T, D, base)), 2, axis=1),
    divided_by_the_root_of_D=table_that(lambda p: p / p.shape[1] ** 0.5),
    the_base_halved=lambda T, D, *, base=10000.0: sinusoids(T, D, base=base / 2),
    from_one_and_double_exponent=lambda T, D, *, base=10000.0: hands(angles(T, D, base**2, 1)),
    one_hot=lambda T, D, *, base=10000.0: np.eye(T, D),
    flattened=table_that(lambda p: p.ravel()),
    a_list=table_that(lambda p: p.tolist()),
    random_numbers=lambda T, D, *, base=10000.0: np.random.default_rng(0).normal(size=(T, D)),
    the_answer_for_four_columns=lambda T, D, *, base=10000.0: np.tile(sinusoids(T, 4, base=base), (1, D))[:, :D],
) | {
    "cosines negative": (table_that(lambda p: p * np.tile([1, -1], p.shape[1] // 2)), {"cosines-negative"}),
    "exchanged and half exponent": (
        lambda T, D, *, base=10000.0: hands(np.pi / 2 - angles(T, D, base**0.5)),
        {"swapped-half-exponent"},
    ),
    "exchanged and from one": (
        lambda T, D, *, base=10000.0: hands(np.pi / 2 - angles(T, D, base, 1)),
        {"swapped-from-one"},
    ),
    "share of the last position": (
        lambda T, D, *, base=10000.0: hands(angles(T, D, base) / max(T - 1, 1)),
        {"share-of-last"},
    ),
    "columns in the exponent, by loops": (column_in_exponent, {"column-for-hand"}),
    "as a well-known program does it": (another_program, {"halves-reaches-base"}),
    "the two layouts exchanged": (
        lambda T, D, *, base=10000.0, interleaved=True: hands(angles(T, D, base), not interleaved),
        {"halves"},
    ),
    "half-split by default": (
        lambda T, D, *, base=10000.0, interleaved=False: hands(angles(T, D, base), interleaved),
        {"halves"},
    ),
    "whole-number division of the exponent": (
        lambda T, D, *, base=10000.0: hands(np.arange(T)[:, None] / base ** (np.arange(0, D, 2) // D)),
        {"one-speed"},
    ),
    "zeros and sines": (
        lambda T, D, *, base=10000.0: sinusoids(T, D, base=base) * (np.arange(D) % 2 == 0),
        {"cosines-left-out"},
    ),
    "exchanged, the layout not used": (
        lambda T, D, *, base=10000.0, interleaved=True: hands(np.pi / 2 - angles(T, D, base)),
        {"swapped"},
    ),
    "from one, the base not used": (
        lambda T, D, *, base=10000.0: hands(angles(T, D, first=1)),
        {"from-one", "base-ignored", None},
    ),
}

# apply_rope ------------------------------------------------------------------------------------------------------


def turn_that(change):
    """Right but for the tables, which are changed first."""
    return lambda x, cos, sin, *, interleaved=False: rope(x, *change(cos, sin), interleaved=interleaved)


def result_that(change):
    """Right, and changed at the end."""
    return lambda x, cos, sin, *, interleaved=False: change(rope(x, cos, sin, interleaved=interleaved), x)


def backwards_for_neighbours(x, cos, sin, *, interleaved=False):
    return rope(x, cos, -sin if interleaved else sin, interleaved=interleaved)


def half_the_angle(cos, sin):
    angle = np.arctan2(sin, cos) / 2
    return np.cos(angle), np.sin(angle)


def rest_negative(x, cos, sin, *, interleaved=False):
    y = rope(x, cos, sin, interleaved=interleaved)
    y[..., 2 * cos.shape[-1] :] *= -1
    return y


def rest_turned(x, cos, sin, *, interleaved=False):
    y = rope(x, cos, sin, interleaved=interleaved)
    y[..., 2 * cos.shape[-1] :] *= cos[:, :1]
    return y


def first_sequence_alone(x, cos, sin, *, interleaved=False):
    y = x.copy()
    first = (0,) * (x.ndim - 2)
    y[first] = rope(x[first], cos, sin, interleaved=interleaved)
    return y


def last_position_alone(x, cos, sin, *, interleaved=False):
    return np.concatenate([x[..., :-1, :], rope(x, cos, sin, interleaved=interleaved)[..., -1:, :]], axis=-2)


def heads_flattened(x, cos, sin, *, interleaved=False):
    mixed = np.moveaxis(x, -2, 0).reshape(-1, *x.shape[-2:])
    return rope(mixed, cos, sin, interleaved=interleaved).reshape(x.shape)


def stale(x, cos, sin, *, interleaved=False):
    y = np.array(x)
    width = cos.shape[-1]
    a, b = (y[..., 0 : 2 * width : 2], y[..., 1 : 2 * width : 2]) if interleaved else (y[..., :width], y[..., width:])
    b = b[..., :width]
    a[...] = a * cos - b * sin
    b[...] = b * cos + a * sin
    return y


def whole_width(x, cos, sin, *, interleaved=False):
    half = x.shape[-1] // 2
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    y = [a * cos - b * sin, a * sin + b * cos]
    return np.stack(y, -1).reshape(x.shape) if interleaved else np.concatenate(y, -1)


def conjugate(x, cos, sin, *, interleaved=False):
    return rope(x, cos, -sin, interleaved=interleaved)


def rolled(x, cos, sin, *, interleaved=False):
    n = 2 * cos.shape[-1]
    turned = x[..., :n]
    y = turned * np.tile(cos, 2) + np.roll(turned, n // 2, -1) * np.tile(sin, 2)
    return np.concatenate([y, x[..., n:]], -1)


def always_neighbours(x, cos, sin, *, interleaved=False):
    return rope(x, cos, sin, interleaved=True)


def neighbours_by_default(x, cos, sin, *, interleaved=True):
    return rope(x, cos, sin, interleaved=interleaved)


def writes_into_x(x, cos, sin, *, interleaved=False):
    y = rope(x, cos, sin, interleaved=interleaved)
    x[:] = y
    return x


ROPE = unnamed(
    half_the_angle=turn_that(half_the_angle),
    sine_squared=turn_that(lambda c, s: (c, s**2)),
    sine_without_sign=turn_that(lambda c, s: (c, np.abs(s))),
    sine_half_as_large=turn_that(lambda c, s: (c, s / 2)),
    cosine_of_another_pair=turn_that(lambda c, s: (np.roll(c, 1, -1), s)),
    cosine_forgotten=turn_that(lambda c, s: (np.ones_like(c), s)),
    sine_negative_and_cosine_too=turn_that(lambda c, s: (-c, -s)),
    divided_by_the_root_of_the_width=result_that(lambda y, x: y / x.shape[-1] ** 0.5),
    made_unit=result_that(lambda y, x: y / np.linalg.norm(y, axis=-1, keepdims=True)),
    rounded_to_2_decimals=result_that(lambda y, x: y.round(2)),
    float16=result_that(lambda y, x: y.astype(np.float16)),
    mean_of_before_and_after=result_that(lambda y, x: (x + y) / 2),
    difference=result_that(lambda y, x: y - x),
    positions_reversed_at_the_end=result_that(lambda y, x: y[..., ::-1, :]),
    components_reversed=result_that(lambda y, x: y[..., ::-1]),
    transposed=result_that(lambda y, x: np.swapaxes(y, -1, -2)),
    flattened=result_that(lambda y, x: y.ravel()),
    a_list=result_that(lambda y, x: y.tolist()),
    first_sequence_alone=first_sequence_alone,
    last_position_alone=last_position_alone,
    rest_negative=rest_negative,
    rest_turned=rest_turned,
    the_answer_of_the_first_case=lambda x, cos, sin, *, interleaved=False: np.array([[11.0, 8.0, 2.0, 19.0]]),
) | {
    "unchanged": (result_that(lambda y, x: x), {"untouched"}),
    "backwards for neighbours alone": (backwards_for_neighbours, {"neighbours-backwards"}),
    "tables shifted by one": (turn_that(lambda c, s: (np.roll(c, 1, 0), np.roll(s, 1, 0))), {"row-before"}),
    "windows into a copy, written one after the other": (stale, {"one-after-the-other"}),
    "half the width taken from x": (whole_width, {"width-from-vector"}),
    "sine negated": (conjugate, {"wrong-direction"}),
    "rolled by a half": (rolled, {"no-minus"}),
    "always neighbours": (always_neighbours, {"layouts-exchanged"}),
    "neighbours by default": (neighbours_by_default, {"layouts-exchanged"}),
    "x overwritten at the end": (writes_into_x, {"in-place"}),
    "heads flattened in the wrong order": (heads_flattened, {None}),
    "backwards, and the rest lost": (
        lambda x, cos, sin, *, interleaved=False: conjugate(x, cos, sin, interleaved=interleaved)[
            ..., : 2 * cos.shape[-1]
        ],
        {"wrong-direction"},
    ),
    "without the second layout": (lambda x, cos, sin: rope(x, cos, sin), {None}),
}

# alibi_bias ------------------------------------------------------------------------------------------------------


def slopes_that(change):
    """Right but for the slopes."""
    return lambda H, T, S, *, q_offset=0: (
        change(np.array(slopes(H)))[:, None, None] * alibi(1, T, S, q_offset=q_offset) * 256
    )


def bias_that(change):
    """Right, and changed at the end."""
    return lambda H, T, S, *, q_offset=0: change(alibi(H, T, S, q_offset=q_offset))


ALIBI = unnamed(
    square_root_of_the_distance=bias_that(lambda b: -np.sqrt(-b)),
    logarithm_of_the_distance=lambda H, T, S, *, q_offset=0: (
        -np.array(slopes(H))[:, None, None] * np.log1p(-256 * alibi(1, T, S, q_offset=q_offset))
    ),
    slopes_halved=slopes_that(lambda m: m / 2),
    slopes_doubled=slopes_that(lambda m: 2 * m),
    slopes_that_sum_to_1=slopes_that(lambda m: m / m.sum()),
    slopes_squared=slopes_that(lambda m: m**2),
    mean_slope=slopes_that(lambda m: np.full_like(m, m.mean())),
    slopes_rolled=slopes_that(lambda m: np.roll(m, 1)),
    flat_heads_free=slopes_that(lambda m: m * (m > 0.01)),
    minus_one_everywhere=bias_that(lambda b: b - 1),
    cut_at_distance_2=lambda H, T, S, *, q_offset=0: np.maximum(
        alibi(H, T, S, q_offset=q_offset), -2 * np.array(slopes(H))[:, None, None]
    ),
    softmax_already=bias_that(lambda b: np.exp(b) / np.exp(b).sum(-1, keepdims=True)),
    rounded=bias_that(lambda b: b.round(2)),
    whole_numbers=bias_that(lambda b: b.astype(int)),
    heads_added_up=bias_that(lambda b: b.sum(0)),
    first_head_alone=bias_that(lambda b: b[0]),
    queries_reversed=bias_that(lambda b: b[:, ::-1]),
    a_list=bias_that(lambda b: b.tolist()),
    T_keys=lambda H, T, S, *, q_offset=0: alibi(H, T, T, q_offset=q_offset),
) | {
    "key minus query, for causal models": (
        lambda H, T, S, *, q_offset=0: (
            np.array(slopes(H))[:, None, None] * (np.arange(S) - np.arange(T)[:, None] - q_offset)
        ),
        {"signed"},
    ),
    "slopes repeated": (
        lambda H, T, S, *, q_offset=0: (
            np.resize(slopes(1 << (H.bit_length() - 1)), H)[:, None, None] * alibi(1, T, S, q_offset=q_offset) * 256
        ),
        {"further-from-second"},
    ),
    "offset not used, and one formula": (
        lambda H, T, S, *, q_offset=0: 2.0 ** (-8 * np.arange(1, H + 1) / H)[:, None, None] * alibi(1, T, S) * 256,
        {"offset-ignored"},
    ),
    "no other numbers of heads": (
        lambda H, T, S, *, q_offset=0: alibi(H, T, S, q_offset=q_offset) if math.log2(H).is_integer() else None,
        {None},
    ),
}

# equivariance_gap ------------------------------------------------------------------------------------------------

GAP = unnamed(
    half_of_it=lambda f, x, order: gap(f, x, order) / 2,
    median=lambda f, x, order: float(np.median(np.abs(f(x[order]) - f(x)[order]))),
    first_row_alone=lambda f, x, order: float(np.abs(f(x[order]) - f(x)[order])[0].max()),
    largest_sum_of_a_row=lambda f, x, order: float(np.abs(f(x[order]) - f(x)[order]).sum(1).max()),
    largest_length_of_a_row=lambda f, x, order: float(np.linalg.norm(f(x[order]) - f(x)[order], axis=1).max()),
    size_of_the_largest=lambda f, x, order: abs(float((f(x[order]) + f(x)[order]).max())),
    reversed_always=lambda f, x, order: gap(f, x, np.arange(len(x))[::-1]),
    f_of_f=lambda f, x, order: gap(lambda z: f(f(z)), x, order),
    rounded=lambda f, x, order: round(float(gap(f, x, order)), 1),
    text=lambda f, x, order: str(gap(f, x, order)),
    a_pair=lambda f, x, order: (gap(f, x, order), True),
    one_shuffled_at_random=lambda f, x, order: float(
        np.abs(f(x[order]) - f(x)[np.random.default_rng(1).permutation(len(x))]).max()
    ),
) | {
    "squared": (lambda f, x, order: gap(f, x, order) ** 2, {"largest-square"}),
    "0": (lambda f, x, order: 0.0, {"always-zero"}),
    "not shuffled at all": (lambda f, x, order: gap(f, x, np.sort(order)), {"always-zero"}),
    "row order twice": (lambda f, x, order: float(np.abs(f(x[order])[order] - f(x)[order]).max()), {"invariance"}),
    "the result shuffled by the inverse": (
        lambda f, x, order: float(np.abs(f(x[order]) - f(x)[np.argsort(order)]).max()),
        {"opposite-ways"},
    ),
    "invariance as True or False": (lambda f, x, order: bool(np.allclose(f(x[order]), f(x))), {"yes-or-no", None}),
    "equal within rounding, turned to a number": (
        lambda f, x, order: float(not np.allclose(f(x[order]), f(x)[order])),
        {None},
    ),
}

UNKNOWN_MISTAKES = {
    "sinusoidal_positions": SINUSOIDS,
    "apply_rope": ROPE,
    "alibi_bias": ALIBI,
    "equivariance_gap": GAP,
}
