"""The steps of multi-head attention one by one, so that a mistake is written as the one step that it gets wrong."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import attnlib


@dataclass
class Steps:
    """What a function of this folder was given, and the steps from there to the result."""

    query: Any
    key: Any
    value: Any
    w_q: Any
    w_k: Any
    w_v: Any
    w_o: Any
    num_heads: int
    attn_mask: Any = None
    is_causal: bool = False

    def project(self, x, w):
        """Return x, multiplied by a matrix."""
        return x @ w

    def width(self):
        """Return the width D of the queries and keys of one head."""
        return self.w_q.shape[-1] // self.num_heads

    def projected(self):
        """Return queries, keys and values, the heads side by side."""
        pairs = (self.query, self.w_q), (self.key, self.w_k), (self.value, self.w_v)
        return [self.project(x, w) for x, w in pairs]

    def split(self, *arrays):
        """Split each array into heads."""
        return [attnlib.split_heads(x, self.num_heads) for x in arrays]

    def heads(self):
        """Return queries, keys and values of all heads."""
        return self.split(*self.projected())

    def masked(self, scores, fill=-np.inf):
        """Return the scores, those that may not be attended to replaced."""
        allowed = np.ones(scores.shape[-2:], bool) if self.attn_mask is None else self.attn_mask
        if self.is_causal:
            allowed = allowed & (np.tri(*scores.shape[-2:]) > 0)
        return np.where(allowed, scores, fill)

    def attend(self, q, k, v, *, divisor=None, softmax=attnlib.softmax, fill=-np.inf):
        """Return what the heads find and their weights, scaled and normalised as told."""
        scores = q @ k.swapaxes(-1, -2) / (q.shape[-1] ** 0.5 if divisor is None else divisor)
        weights = softmax(self.masked(scores, fill))
        return weights @ v, weights

    def finish(self, out, weights):
        """Return what the exercise asks for: the output alone."""
        return out

    def project_out(self, merged, weights):
        """Return the result of the merged heads."""
        return self.finish(self.project(merged, self.w_o), weights)

    def merge(self, context, weights):
        """Merge the heads, and return the result."""
        return self.project_out(attnlib.merge_heads(context), weights)

    def scaled_by(self, divisor):
        """Return the result with another divisor of the scores."""
        return self.merge(*self.attend(*self.heads(), divisor=divisor))

    def normalised_by(self, softmax):
        """Return the result with another softmax."""
        return self.merge(*self.attend(*self.heads(), softmax=softmax))

    def split_by(self, split):
        """Return the result with another way of splitting."""
        return self.merge(*self.attend(*(split(x, self.num_heads) for x in self.projected())))

    def changed_by(self, change):
        """Return the right result with its output changed."""
        context, weights = self.attend(*self.heads())
        return self.finish(change(self.project(attnlib.merge_heads(context), self.w_o)), weights)

    def with_other(self, **arguments):
        """Return the result with some arguments exchanged."""
        return replace(self, **arguments).scaled_by(None)


@dataclass(frozen=True)
class BySteps:
    """A mistake, a recipe that is given :class:`Steps`, as a function with the signature of the exercise."""

    recipe: Callable[[Steps], Any]

    def __call__(self, query, key, value, w_q, w_k, w_v, w_o, num_heads, *, attn_mask=None, is_causal=False):
        """Return what the recipe makes of the arguments."""
        return self.recipe(Steps(query, key, value, w_q, w_k, w_v, w_o, num_heads, attn_mask, is_causal))


def exponentials(scores, shift=0.0):
    """Return exponentials over their sum, as a softmax that does not care for large scores."""
    e = np.exp(scores - shift)
    return e / e.sum(axis=-1, keepdims=True)
