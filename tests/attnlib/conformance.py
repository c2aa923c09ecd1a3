"""A short examination of the attnlib that is imported, against loops and numbers worked by hand.

`examine` names the first case whose numbers are not the expected ones. Any other failure is an exception: a library
that does not run has not been examined.
"""

import importlib

import numpy as np
from numpy.testing import assert_allclose
from oracle import attend

import attnlib
from attnlib import _score_blocks

sdpa, backward = attnlib.scaled_dot_product_attention, attnlib.scaled_dot_product_attention_backward
INF = np.inf
rng = np.random.default_rng(42)
Q, K, V = (rng.standard_normal(shape) for shape in ((2, 4, 3, 4), (2, 2, 5, 4), (2, 2, 5, 3)))
K_ALL, V_ALL = np.repeat(K, 2, axis=1), np.repeat(V, 2, axis=1)  # for every head of the queries
BOOL = np.array([[1, 0, 1, 1, 0], [0, 0, 0, 0, 0], [0, 1, 1, 0, 1]], bool)
FLOAT = np.where(rng.random((2, 1, 1, 5)) < 0.7, rng.standard_normal((2, 1, 1, 5)), -INF)
OPTIONS = {
    "plain": {},
    "scale": {"scale": 0.7},
    "negative scale, causal": {"scale": -0.7, "is_causal": True},
    "causal": {"is_causal": True},
    "causal, later": {"is_causal": True, "q_offset": 2},
    "causal, the last key but for one query": {"is_causal": True, "q_offset": 3},
    "causal, earlier": {"is_causal": True, "q_offset": -1},
    "window": {"window": (1, 1), "q_offset": 1},
    "window to the left": {"window": (1, 0)},
    "window, causal": {"window": (2, 3), "is_causal": True, "q_offset": 1},
    "bool mask": {"mask": BOOL},
    "bool mask, causal": {"mask": BOOL, "is_causal": True},
    "mask of one dimension": {"mask": BOOL[0]},
    "float mask": {"mask": FLOAT},
    "float mask, causal": {"mask": FLOAT, "is_causal": True, "q_offset": 1},
    "softcap": {"softcap": 0.8},
    "softcap, float mask": {"softcap": 0.8, "mask": FLOAT},
    "grouped": {"enable_gqa": True},
    "grouped, bool mask": {"enable_gqa": True, "mask": BOOL},
    "large scores": {"scale": 2000.0, "is_causal": True},
}


def same(ours, theirs, tolerance=1e-9):
    """Compare numbers; an AssertionError where they differ."""
    assert_allclose(np.asarray(ours) * 1, theirs, rtol=tolerance, atol=tolerance)


def attention(array):
    """The forward pass under every option, with and without weights and log-sums."""
    for name, options in OPTIONS.items():
        yield f"attention, {name}"
        options = dict(options)
        k, v = (K, V) if options.get("enable_gqa") else (K_ALL, V_ALL)
        expected = attend(Q, k, v, **options)
        mask = options.pop("mask", None)
        arguments = [array(x) for x in (Q, k, v)] + [mask if mask is None else array(mask)]
        same(sdpa(*arguments, **options), expected.context)
        alike = sdpa(arguments[0], arguments[1], arguments[1], arguments[3], **options)  # values as wide as keys
        same(alike, expected.weights @ (k.repeat(2, axis=1) if options.get("enable_gqa") else k))
        for ours, theirs in zip(
            sdpa(*arguments, **options, return_weights=True, return_lse=True), expected, strict=True
        ):
            same(ours, theirs)


def leading_dimensions(array):
    """Two and five dimensions, and keys that all heads share."""
    yield "attention of matrices"
    same(sdpa(array(Q[0, 0]), array(K[0, 0]), array(V[0, 0])), attend(Q[0, 0], K[0, 0], V[0, 0]).context)
    yield "attention of five dimensions under a mask of five"
    q, k, v, mask = Q[:, None], K_ALL[:, None], V_ALL[:, None], np.stack([BOOL, ~BOOL])[:, None, None]
    same(sdpa(array(q), array(k), array(v), array(mask)), attend(q, k, v, mask).context)
    yield "keys of one head"
    k, v = K[:, :1], V[:, :1]
    same(sdpa(array(Q), array(k), array(v), scale=0.3), attend(Q, k, v, scale=0.3).context)


def many_keys(array):
    """More keys than torch's kernel for the CPU looks at in one step: fewer of them take another way."""
    x = np.sin(np.arange(1.0, 2 * 17 * 3 + 1)).reshape(1, 2, 17, 3)
    for options in ({}, {"is_causal": True}, {"is_causal": True, "scale": -0.7}):
        yield f"attention to 17 keys, {options}"
        same(sdpa(array(x), array(x), array(x), **options), attend(x, x, x, **options).context)


def dropout(array):
    """A mean over 4000 weights, which are 1 before dropout: 5 standard deviations are 0.06."""
    yield "dropout"
    one = np.ones((4000, 1))
    for wanted in ({}, {"return_weights": True}):
        results = sdpa(array(one), array(one[:1]), array(one[:1]), dropout_p=0.4, **wanted)
        context = np.asarray(results[0] if wanted else results)
        same(np.unique(context.round(9)), [0, 1 / 0.6], 1e-8)
        same(context.mean(), 1.0, 0.07)

    yield "dropout of a long sequence"
    one, value = np.ones((600, 1)), np.eye(600)[:, :1]
    kept = np.asarray(sdpa(array(one), array(one), array(value), dropout_p=0.4)) * 600
    same(np.unique(kept.round(9)), [0, 1 / 0.6], 1e-8)
    same(kept.mean(), 1.0, 0.2)


def at_once(q, k, v, allowed, bias=0.0, softcap=None):
    """Context and log-sums from all scores in one piece; rows of nothing give 0 and -inf."""
    scores = q @ k.T / np.sqrt(q.shape[-1])
    scores = np.where(allowed, (softcap * np.tanh(scores / softcap) if softcap else scores) + bias, -INF)
    top = np.maximum(scores.max(axis=-1, keepdims=True), -1e300)
    powers = np.exp(scores - top)
    total = powers.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        return powers @ v / np.where(total == 0, 1, total), (np.log(total) + top)[..., 0]


def tiles(array):
    """Sequences of more than one tile, with small scores, and with large ones that grow along the keys."""
    t, s = 257, 600
    q, k, v = (rng.standard_normal(shape) for shape in ((t, 4), (s, 4), (s, 3)))
    growing = np.abs(k) * np.linspace(0, 400, s)[:, None]
    i, j = np.arange(t)[:, None], np.arange(s)
    some = rng.random((t, s)) < 0.5
    some[::7] = False
    late = (j >= 520) & (i > 3)
    bias = rng.standard_normal((1, s))
    cases = {
        "plain": ({}, True, {}),
        "causal, later": ({"is_causal": True, "q_offset": 300}, j <= i + 300, {}),
        "causal, earlier": ({"is_causal": True, "q_offset": -20}, j <= i - 20, {}),
        "window": ({"window": (40, 7), "q_offset": 300}, (j >= i + 260) & (j <= i + 307), {}),
        "window, random mask": ({"window": (3, 2), "attn_mask": some}, some & (j >= i - 3) & (j <= i + 2), {}),
        "window past all keys": ({"window": (2, 0), "q_offset": 400}, (j >= i + 398) & (j <= i + 400), {}),
        "window open to the right": ({"window": (3, None)}, j >= i - 3, {}),
        "random mask with empty rows": ({"attn_mask": some}, some, {}),
        "nothing in the first tile": ({"attn_mask": late}, late, {}),
        "float mask": ({"attn_mask": bias}, True, {"bias": bias}),
        "softcap": ({"softcap": 5.0}, True, {"softcap": 5.0}),
    }
    for name, (options, allowed, more) in cases.items():
        for size, keys in (("small", k), ("growing", growing), ("falling", growing[::-1])):
            yield f"tiles, {name}, {size}"
            queries = q if size == "small" else np.abs(q)
            expected, lse = at_once(queries, keys, v, allowed, **more)
            options = {n: array(x) if isinstance(x, np.ndarray) else x for n, x in options.items()}
            arrays = array(queries), array(keys), array(v)
            same(sdpa(*arrays, **options), expected)
            ours = sdpa(*arrays, **options, return_lse=True)
            same(ours[0], expected)
            same(ours[1], lse)


def gradient(array):
    """The backward pass against differences of the loops, and what is summed over shared keys."""
    cases = {
        "plain": {},
        "causal": {"is_causal": True, "q_offset": 1},
        "mask, scale": {"mask": BOOL, "scale": 0.9},
        "window, softcap": {"window": (1, 1), "softcap": 0.8},
    }
    for name, options in cases.items():
        yield f"gradient, {name}"
        arrays = [x.copy() for x in (Q[:, 0], K[:1, 0], V[0, 0])]  # batches of 2 and of 1, and none
        grad = rng.standard_normal((2, 3, 3))
        numerical = [np.zeros(x.shape) for x in arrays]
        for x, slopes in zip(arrays, numerical, strict=True):
            for index in np.ndindex(x.shape):
                at = x[index]
                loss = []
                for step in (1e-5, -1e-5):
                    x[index] = at + step
                    loss.append((grad * attend(*arrays, **options).context).sum())
                x[index] = at
                slopes[index] = (loss[0] - loss[1]) / 2e-5
        options = dict(options)
        mask = array(options.pop("mask")) if "mask" in options else None
        for _score_blocks.MAX_SCORES, _score_blocks.MAX_ROWS in ((2**18, 256), (7, 2)):
            found = backward(array(grad), *map(array, arrays), mask, **options)
            for ours, theirs in zip(found, numerical, strict=True):
                same(ours, theirs, 1e-6)


def many_scores(array):
    """Check torch's context, log-sums and gradients block by block, and dropout in blocks."""
    yield "log-sums in blocks, and their gradient"
    found = []
    for _score_blocks.MAX_SCORES, _score_blocks.MAX_ROWS in ((2**18, 256), (7, 2)):
        q, k, v = (array(x).requires_grad_() for x in (Q, K_ALL, V_ALL))
        out, lse = sdpa(q, k, v, is_causal=True, softcap=0.8, return_lse=True)
        (out.sin().sum() + lse.sin().sum()).backward()
        found.append([x.detach() for x in (out, lse, q.grad, k.grad, v.grad)])
    for one, other in zip(*found, strict=True):
        same(one, other.numpy())
    yield "dropout in blocks"
    out, weights = sdpa(array(Q), array(K_ALL), array(V_ALL), softcap=0.8, dropout_p=0.5, return_weights=True)
    same((weights == 0).any() * 1, 1)
    same(out, (weights @ array(V_ALL)).numpy())


def masks(array):
    """Positions written out."""
    yield "causal_mask"
    same(attnlib.causal_mask(2, 4, q_offset=1, like=array(Q)), [[1, 1, 0, 0], [1, 1, 1, 0]])
    yield "window_mask"
    rows = [[1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [0, 1, 1, 1, 1]]
    same(attnlib.window_mask(3, 5, 2, 1, q_offset=1, like=array(Q)), rows)
    yield "window_mask with a sink"
    same(attnlib.window_mask(2, 4, 0, num_sink_tokens=1, q_offset=2, like=array(Q)), [[1, 0, 1, 0], [1, 0, 0, 1]])
    yield "padding_mask"
    same(attnlib.padding_mask([1, 3], 3)[:, 0, 0], [[1, 0, 0], [1, 1, 1]])
    yield "combine_masks"
    both = attnlib.combine_masks(array(BOOL[:1]), array(np.array([[1.0, 2.0, 3.0, 4.0, 5.0]])))
    same(both, [[1, -INF, 3, 4, -INF]])
    same(attnlib.combine_masks(array(BOOL), array(BOOL[0])), BOOL & BOOL[0])


def positions(array):
    """Clocks, rotations and distances worked by hand."""
    yield "sinusoidal_positions"
    table = attnlib.sinusoidal_positions(3, 4, base=100.0, like=array(Q))
    t = np.arange(3)
    same(table, np.stack([np.sin(t), np.cos(t), np.sin(t / 10), np.cos(t / 10)], axis=-1))
    yield "apply_rope"
    cos, sin = attnlib.rope_tables(array(np.array([0.0, 1.0, 5.0])), 4, base=100.0)
    x = rng.standard_normal((3, 5))
    turned = (x[:, :2] + 1j * x[:, 2:4]) * np.exp(1j * np.outer([0, 1, 5], [1, 0.1]))
    same(attnlib.apply_rope(array(x), cos, sin), np.hstack([turned.real, turned.imag, x[:, 4:]]))
    turned = (x[:, 0:4:2] + 1j * x[:, 1:4:2]) * np.exp(1j * np.outer([0, 1, 5], [1, 0.1]))
    pairs = np.stack([turned.real, turned.imag], axis=-1).reshape(3, 4)
    same(attnlib.apply_rope(array(x), cos, sin, interleaved=True), np.hstack([pairs, x[:, 4:]]))
    yield "alibi"
    same(attnlib.alibi_slopes(4, like=array(Q)), [1 / 4, 1 / 16, 1 / 64, 1 / 256])
    same(attnlib.alibi_slopes(3, like=array(Q)), [1 / 16, 1 / 256, 1 / 4])
    same(attnlib.alibi_bias(8, 2, 3, q_offset=1, like=array(Q))[0, :, :], [[-0.5, 0, -0.5], [-1, -0.5, 0]])
    yield "relative_buckets"
    ours = attnlib.relative_buckets(1, 9, num_buckets=8, max_distance=16, q_offset=4)
    same(ours, [[2, 2, 2, 1, 0, 5, 6, 6, 6]])


def layers(array):
    """The weights of two layers, of two heads each."""
    previous, own = [[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]
    yield "attention_rollout"
    ours = attnlib.attention_rollout([array(np.array([previous, own])), array(np.array([previous, previous]))])
    same(ours, [[1, 0], [0.625, 0.375]])


def heads(array):
    """Columns of a matrix, shared out and put together again."""
    x = np.arange(12.0).reshape(2, 6)
    split = np.array([[[0.0, 1, 2], [6, 7, 8]], [[3, 4, 5], [9, 10, 11]]])
    yield "split_heads"
    same(attnlib.split_heads(array(x), 2), split)
    yield "merge_heads"
    same(attnlib.merge_heads(array(split)), x)
    yield "multi_head_attention"
    x, memory = rng.standard_normal((3, 4)), rng.standard_normal((5, 4))
    w_q, w_k, w_v, w_o = (rng.standard_normal((4, 4)) for _ in range(4))
    parts = [
        attend(x @ w_q[:, h], memory @ w_k[:, h], memory @ w_v[:, h], is_causal=True).context
        for h in (slice(0, 2), slice(2, 4))
    ]
    ours = attnlib.multi_head_attention(*map(array, (x, memory, memory, w_q, w_k, w_v, w_o)), 2, is_causal=True)
    same(ours, np.hstack(parts) @ w_o)


def recurrent(array):
    """One unit, with numbers that can be followed."""
    yield "rnn_cell"
    x, h, w, u = np.array([2.0]), np.array([0.5]), np.array([[0.25]]), np.array([[-2.0]])
    same(attnlib.rnn_cell(*map(array, (x, h, w, u))), np.tanh([-0.5]))
    yield "gru_cell"
    w, u = np.array([[0.3], [-0.4], [0.7]]), np.array([[1.1], [0.6], [-0.9]])
    b, c = np.array([0.2, -0.1, 0.05]), np.array([-0.3, 0.15, 0.4])
    r, z = (1 / (1 + np.exp(-(w[g] * x + b[g] + u[g] * h + c[g]))) for g in (0, 1))
    n = np.tanh(w[2] * x + b[2] + r * (u[2] * h + c[2]))
    same(attnlib.gru_cell(*map(array, (x, h, w, u, b, c))), n + z * (h - n))
    yield "encode"
    states, last = attnlib.encode(
        lambda x, h: 2 * h + x, array(np.array([[[1.0], [3.0], [9.0]]])), array(np.array([[1.0]])), lengths=[2]
    )
    same(states, [[[3.0], [9.0], [0.0]]])
    same(last, [[9.0]])


def scores(array):
    """Similarities of two and of three vectors, and the softmax of logarithms."""
    q, k = np.array([[3.0, 4.0]]), np.array([[1.0, 0.0], [0.0, -2.0], [6.0, 8.0]])
    cases = {
        "dot": (attnlib.dot(array(q), array(k)), [[3, -8, 50]]),
        "scaled_dot": (attnlib.scaled_dot(array(q), array(k)), np.array([[3, -8, 50]]) / np.sqrt(2)),
        "cosine": (attnlib.cosine(array(q), array(k)), [[0.6, -0.8, 1]]),
        "gaussian": (attnlib.gaussian(array(q), array(k), bandwidth=2.0), [[-20 / 8, -45 / 8, -25 / 8]]),
        "general": (attnlib.general(*map(array, (q, k, np.array([[0.0, 1.0], [0.0, 0.0]])))), [[0, -6, 24]]),
        "additive": (
            attnlib.additive(*map(array, (q, k, np.eye(2), -np.eye(2), np.array([1.0, 2.0])))),
            [[np.tanh(a) + 2 * np.tanh(b) for a, b in ((2, 4), (3, 6), (-3, -4))]],
        ),
        "softmax": (attnlib.softmax(array(np.log([[1.0, 2.0], [3.0, 2.0]])), axis=0), [[0.25, 0.5], [0.75, 0.5]]),
        "softmax of nothing": (attnlib.softmax(array(np.array([-INF, -INF]))), [0, 0]),
    }
    for name, (ours, theirs) in cases.items():
        yield name
        same(ours, theirs)
    yield "attention"
    value = np.array([[1.0], [2.0], [4.0]])
    mask = array(np.array([True, True, False]))
    context, weights = attnlib.attention(array(q), array(k), array(value), score=attnlib.dot, mask=mask)
    p = 1 / (1 + np.exp(-11))
    same(weights, [[p, 1 - p, 0]])
    same(context, [[2 - p]])


def decoders(array):
    """One step each, of Bahdanau and of Luong, where the state before and after the step disagree on what to read."""
    y, memory = np.array([[1.0]]), np.array([[[1.0], [-1.0]]])
    cell = {"w_ih": np.array([[-3.0]]), "w_hh": np.array([[0.0]])}
    yield "luong_step"
    params = {name: array(x) for name, x in (cell | {"w_c": np.array([[2.0], [0.5]])}).items()}
    state, attentional, weights = attnlib.luong_step(array(y), array(np.array([[0.9]])), array(memory), params)
    new = np.tanh(-3)
    p = 1 / (1 + np.exp(-2 * new))
    same(state, [[new]])
    same(weights, [[p, 1 - p]])
    same(attentional, [[np.tanh(2 * (2 * p - 1) + 0.5 * new)]])
    yield "bahdanau_step"
    cell["w_ih"] = np.array([[-3.0, 1.5]])
    alignment = {"w_query": np.array([[1.0]]), "w_key": np.array([[1.0]]), "v": np.array([4.0])}
    params = {name: array(x) for name, x in (cell | alignment).items()}
    state, context, weights = attnlib.bahdanau_step(array(y), array(np.array([[0.9]])), array(memory), params)
    p = 1 / (1 + np.exp(4 * (np.tanh(-0.1) - np.tanh(1.9))))
    same(weights, [[p, 1 - p]])
    same(context, [[2 * p - 1]])
    same(state, [[np.tanh(-3 + 1.5 * (2 * p - 1))]])


GROUPS = (
    masks,
    positions,
    layers,
    heads,
    recurrent,
    scores,
    decoders,
    leading_dimensions,
    many_keys,
    attention,
    dropout,
    tiles,
    gradient,
    many_scores,
)
ONLY = {dropout: ("numpy", "torch"), many_scores: ("torch",)}  # the array API has neither random numbers nor autograd


def examine(library):
    """Return the name of the first case that differs, and how; None if none does."""
    if library == "torch":
        import torch

        def array(x):
            return torch.tensor(x.copy())

        torch.manual_seed(0)
    elif library == "numpy":
        array = np.array
        np.random.seed(0)
    else:
        array = importlib.import_module(library).asarray
    for group in (group for group in GROUPS if library in ONLY.get(group, (library,))):
        name = group.__name__
        try:
            for case in group(array):
                name = case
        except AssertionError as difference:
            return name, str(difference)
    return None
