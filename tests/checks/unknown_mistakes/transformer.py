"""Wrong answers that no catalogue knows, to the exercises of the assignment on transformers."""

import numpy as np
import torch
from correct_solutions import transformer as correct
from correct_solutions.styles import swap

import attnlib
import attnlib.numpy
from unknown_mistakes.labels import unnamed


def block(function):
    """A class with another forward: ``function(block, x)``."""

    class Wrong(correct.OwnBlock):
        def forward(self, x):
            return function(self, x)

    return Wrong


def attend(b, x):
    return b.self_attn(b.norm1(x))


def feed_forward(b, x):
    return b.linear2(np.maximum(b.linear1(x), 0))


def first(b, x):
    return x + attend(b, x)


def finish(b, x):
    return x + feed_forward(b, b.norm2(x))


def bent(bend):
    def forward(b, x):
        x = first(b, x)
        return x + b.linear2(bend(b.linear1(b.norm2(x))))

    return block(forward)


def with_norm(norm):
    def forward(b, x):
        x = x + b.self_attn(norm(b.norm1, x))
        return x + feed_forward(b, norm(b.norm2, x))

    return block(forward)


def one_after_the_other(b, x):
    return np.concatenate([finish(b, first(b, row[:, None])) for row in x.swapaxes(0, 1)], 1)


class NoExtraHead(correct.OwnBlock):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__(embed_dim, num_heads, 4 * embed_dim)

    def forward(self, x):
        return finish(self, first(self, x))


class OtherNames(attnlib.numpy.Module):
    def __init__(self, embed_dim, num_heads, ff_dim):
        self.attn = attnlib.numpy.MultiHeadAttention(embed_dim, num_heads)
        self.ff1, self.ff2 = attnlib.numpy.Linear(embed_dim, ff_dim), attnlib.numpy.Linear(ff_dim, embed_dim)
        self.norm1, self.norm2 = attnlib.numpy.LayerNorm(embed_dim), attnlib.numpy.LayerNorm(embed_dim)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.ff2(np.maximum(self.ff1(self.norm2(x)), 0))


BLOCK = unnamed(
    absolute_value=bent(np.abs),
    relu_squared=bent(lambda u: np.maximum(u, 0) ** 2),
    relu_1=bent(lambda u: np.clip(u, 0, 1)),
    relu_6=bent(lambda u: np.clip(u, 0, 6)),
    softplus=bent(lambda u: np.logaddexp(0, u)),
    elu=bent(lambda u: np.where(u > 0, u, np.expm1(u))),
    softmax_for_bend=bent(attnlib.softmax),
    eps_of_a_thousandth=with_norm(lambda n, x: correct.layer_norm(x, n.weight, n.bias, 1e-3)),
    attention_alone=block(attend),
    doubled_stream=block(lambda b, x: finish(b, 2 * x + attend(b, x))),
    minimum_for_maximum=bent(lambda u: np.minimum(u, 0)),
    eps_of_a_tenth=with_norm(lambda n, x: correct.layer_norm(x, n.weight, n.bias, 0.1)),
    gain_plus_one=with_norm(lambda n, x: correct.layer_norm(x, 1 + n.weight, n.bias)),
    shift_before_gain=with_norm(lambda n, x: correct.layer_norm(x, 1, n.bias) * n.weight),
    softmax_for_norm=with_norm(lambda n, x: attnlib.softmax(x) * n.weight + n.bias),
    minus_for_plus=block(lambda b, x: finish(b, x - attend(b, x))),
    product_for_sum=block(lambda b, x: finish(b, x * attend(b, x))),
    mean_for_sum=block(lambda b, x: finish(b, (x + attend(b, x)) / 2)),
    attention_twice=block(lambda b, x: finish(b, first(b, first(b, x)))),
    feed_forward_twice=block(lambda b, x: finish(b, finish(b, first(b, x)))),
    attention_added_twice=block(lambda b, x: finish(b, first(b, x) + attend(b, x))),
    each_token_alone=block(one_after_the_other),
    first_sequence_for_all=block(lambda b, x: finish(b, first(b, x[:1])) + 0 * x),
    the_first_half_of_the_result=block(lambda b, x: finish(b, first(b, x))[:, :1] + 0 * x),
    only_the_last_row=block(lambda b, x: finish(b, first(b, x))[:, -1]),
    with_weights=block(lambda b, x: (finish(b, first(b, x)), 0 * x)),
    none=block(lambda b, x: None),
    rounded=block(lambda b, x: finish(b, first(b, x)).round(3)),
    float16=block(lambda b, x: finish(b, first(b, x)).astype(np.float16)),
    another_width_inside=NoExtraHead,
    other_names=OtherNames,
    a_function=lambda embed_dim, num_heads, ff_dim: lambda x: x,
    no_final_norm_but_tanh=block(lambda b, x: np.tanh(finish(b, first(b, x)))),
) | {
    "post-norm and gelu": (
        block(
            lambda b, x: b.norm2(
                b.norm1(x + b.self_attn(x))
                + b.linear2(attnlib.numpy.TransformerBlock.ACTIVATIONS["gelu"](b.linear1(b.norm1(x + b.self_attn(x)))))
            )
        ),
        {None, "post-norm"},
    ),
    "no activation, one norm": (
        block(lambda b, x: first(b, x) + b.linear2(b.linear1(b.norm1(first(b, x))))),
        {None, "no-activation", "first-norm-twice"},
    ),
}


def changed(**pieces):
    """The backward pass with other pieces: each is called with the arrays made so far."""

    def wrong(grad, query, key, value):
        c = query.shape[-1] ** -0.5
        p = correct.softmax(query @ swap(key) * c)
        dp = grad @ swap(value)
        ds = pieces.get("ds", lambda p, dp: p * (dp - (p * dp).sum(-1, keepdims=True)))(p, dp)
        results = c * ds @ key, c * swap(ds) @ query, swap(p) @ grad
        return pieces.get("results", lambda *r: r)(*results)

    return wrong


def finite_differences(grad, query, key, value, h=1e-2):
    def loss(*arrays):
        return (grad * attnlib.scaled_dot_product_attention(*arrays)).sum()

    arrays, results = [query, key, value], []
    for n, x in enumerate(arrays):
        result = np.zeros(x.shape)
        for place in np.ndindex(x.shape):
            up = [y.astype(float) for y in arrays]
            up[n][place] += h
            result[place] = (loss(*up) - loss(*(y.astype(float) for y in arrays))) / h
        results.append(result)
    return tuple(results)


def no_gradient_for_queries(grad, query, key, value):
    return (np.zeros_like(query), *correct.backward(grad, query, key, value)[1:])


def values_through_autograd(grad, query, key, value):
    leaves = [torch.tensor(x.astype(np.float64), requires_grad=True) for x in (query, key, value)]
    torch.nn.functional.scaled_dot_product_attention(*leaves).sum().backward()
    return tuple(x.grad.numpy() * grad.mean() for x in leaves)


BACKWARD = unnamed(
    jacobian_without_the_diagonal=changed(ds=lambda p, dp: -p * (p * dp).sum(-1, keepdims=True)),
    average_of_dp_squared=changed(ds=lambda p, dp: p * (dp - (p * dp**2).sum(-1, keepdims=True))),
    weights_for_gradient=changed(ds=lambda p, dp: p),
    weights_twice=changed(ds=lambda p, dp: p**2 * dp),
    turned_results=changed(results=lambda q, k, v: (swap(q), swap(k), swap(v))),
    weights_squared=changed(ds=lambda p, dp: p**2 * (dp - (p * dp).sum(-1, keepdims=True))),
    largest_subtracted=changed(ds=lambda p, dp: p * (dp - dp.max(-1, keepdims=True))),
    average_of_the_weights=changed(ds=lambda p, dp: p * (dp - p.mean(-1, keepdims=True))),
    weights_sum_subtracted=changed(ds=lambda p, dp: p * (dp - p.sum(-1, keepdims=True))),
    log_softmax=changed(ds=lambda p, dp: dp - p * dp.sum(-1, keepdims=True)),
    softmax_of_dp=changed(ds=lambda p, dp: correct.softmax(dp)),
    p_minus_one_hot=changed(ds=lambda p, dp: p - (dp == dp.max(-1, keepdims=True))),
    halved=changed(results=lambda q, k, v: (q / 2, k / 2, v / 2)),
    only_values_negated=changed(results=lambda q, k, v: (q, k, -v)),
    only_queries_negated=changed(results=lambda q, k, v: (-q, k, v)),
    divided_by_the_batch=changed(results=lambda q, k, v: (q / len(q), k / len(q), v / len(q))),
    two_results=changed(results=lambda q, k, v: (q, k)),
    a_dictionary=changed(results=lambda q, k, v: {"query": q, "key": k, "value": v}),
    stacked_sums=changed(results=lambda q, k, v: (q.sum(-2), k.sum(-2), v.sum(-2))),
    rounded=changed(results=lambda q, k, v: (q.round(3), k.round(3), v.round(3))),
    clipped=changed(results=lambda q, k, v: tuple(np.clip(x, -0.5, 0.5) for x in (q, k, v))),
    normalised=changed(results=lambda q, k, v: tuple(x / np.linalg.norm(x) for x in (q, k, v))),
    coarse_finite_differences=finite_differences,
    no_gradient_for_queries=no_gradient_for_queries,
    mean_of_the_upstream=values_through_autograd,
    the_inputs=lambda grad, query, key, value: (query, key, value),
)


def stepped(highest=None, shrink=None, e=None, results=lambda *r: r):
    """One step with other pieces."""

    def wrong(scores, value, total, norm, maximum):
        block = scores.max(-1)
        new = (highest or np.maximum)(maximum, block)
        s = (shrink or (lambda old, new, block: np.exp(old - new)))(maximum, new, block)
        p = (e or (lambda scores, new: np.exp(scores - new[..., None])))(scores, new)
        return results(s[..., None] * total + p @ value, s * norm + p.sum(-1), new)

    return wrong


def per_key_without_rescaling(scores, value, total, norm, maximum):
    for j in range(scores.shape[-1]):
        maximum = np.maximum(maximum, scores[..., j])
        p = np.exp(scores[..., j] - maximum)
        norm, total = norm + p, total + p[..., None] * value[..., j, None, :]
    return total, norm, maximum


def last_key_missing(scores, value, total, norm, maximum):
    return correct.online(scores[..., :-1], value[..., :-1, :], total, norm, maximum)


ONLINE = unnamed(
    base_2=stepped(e=lambda scores, new: 2 ** (scores - new[..., None])),
    sum_of_maxima=stepped(highest=lambda old, block: old + block),
    mean_of_maxima=stepped(highest=lambda old, block: (old + block) / 2),
    half_the_shrink=stepped(shrink=lambda old, new, block: np.exp((old - new) / 2)),
    shrink_against_the_block=stepped(shrink=lambda old, new, block: np.exp(old - block)),
    a_thousandth_in_the_norm=stepped(results=lambda t, n, m: (t, n + 1e-3, m)),
    log_of_the_norm=stepped(results=lambda t, n, m: (t, np.log(n), m)),
    log_sum_exp=stepped(results=lambda t, n, m: (t, n, m + np.log(n))),
    context_as_norm=stepped(results=lambda t, n, m: (t, t / n[..., None], m)),
    negative_maximum=stepped(results=lambda t, n, m: (t, n, -m)),
    maximum_as_a_column=stepped(results=lambda t, n, m: (t, n, m[..., None])),
    two_results=stepped(results=lambda t, n, m: (t, n)),
    rounded=stepped(results=lambda t, n, m: (t.round(3), n.round(3), m.round(3))),
    per_key_without_rescaling=per_key_without_rescaling,
    last_key_missing=last_key_missing,
    the_state_as_it_was=lambda scores, value, total, norm, maximum: (total, norm, maximum),
)

UNKNOWN_MISTAKES = {
    "TransformerBlock": BLOCK,
    "scaled_dot_product_attention_backward": BACKWARD,
    "online_softmax": ONLINE,
}
