"""The parts of a decoder, each of which a mistake can replace."""

from collections.abc import Mapping
from typing import Any

import numpy as np

import attnlib
from attnlib.swiglu import silu


class Parts:
    """The parts of a decoder, for vectors (T, E). A mistake replaces one of them."""

    def __init__(self, params: Any, config: Mapping[str, Any], past: int) -> None:
        self.params, self.config, self.past = params, config, past

    def weight(self, name: str) -> Any:
        """Return a parameter."""
        return self.params[f"{name}.weight"]

    def embed(self, tokens: Any) -> Any:
        """Return the vectors of tokens."""
        return self.weight("embed_tokens")[tokens]

    def norm(self, x: Any, name: str) -> Any:
        """Return the rows of x, divided by their root mean square and multiplied by the weights of that name."""
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + self.config["eps"]) * self.weight(name)

    def split(self, x: Any) -> Any:
        """Cut vectors (T, H D) into heads (H, T, D)."""
        return x.reshape(len(x), -1, self.config["head_dim"]).swapaxes(0, 1)

    def positions(self, T: int) -> Any:
        """Return the positions of T new tokens."""
        return self.past + np.arange(T)

    def rotate(self, x: Any) -> Any:
        """Rotate queries or keys (H, T, D) by their positions."""
        cos, sin = attnlib.rope_tables(
            self.positions(x.shape[-2]).astype(np.float64), x.shape[-1], base=self.config["rope_base"]
        )
        return attnlib.apply_rope(x, cos.astype(x.dtype), sin.astype(x.dtype))

    def mask(self, T: int, S: int) -> Any:
        """Return which of S keys each of the T newest queries may attend to."""
        return np.arange(S) <= np.arange(T)[:, None] + S - T

    def weigh(self, q: Any, k: Any) -> Any:
        """Return the weights (H, T, S)."""
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
        scores = np.where(self.mask(q.shape[-2], k.shape[-2]), scores, -np.inf)
        e = np.exp(scores - scores.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def spread(self, x: Any) -> Any:
        """Repeat key heads or value heads, for the query heads of each group."""
        return np.repeat(x, self.config["num_heads"] // len(x), axis=0)

    def merge(self, x: Any) -> Any:
        """Put heads (H, T, D) side by side, (T, H D)."""
        return x.swapaxes(0, 1).reshape(x.shape[1], -1)

    def attend(self, x: Any, layer: str, cache: Any) -> Any:
        """Return what attention adds (T, E), and the grown cache."""
        q, k, v = (self.split(x @ self.weight(f"{layer}.self_attn.{n}_proj").T) for n in "qkv")
        q, k = self.rotate(q), self.rotate(k)
        k, v = self.grown(cache, k, v)
        context = self.merge(self.weigh(q, self.spread(k)) @ self.spread(v))
        return context @ self.weight(f"{layer}.self_attn.out_proj").T, (k, v)

    def grown(self, cache: Any, k: Any, v: Any) -> Any:
        """Return all keys and values so far."""
        return np.concatenate([cache[0], k], 1), np.concatenate([cache[1], v], 1)

    def gated(self, gate: Any, up: Any) -> Any:
        """Return what is inside the feed-forward layer."""
        return silu(gate) * up

    def feed_forward(self, x: Any, layer: str) -> Any:
        """Return what the feed-forward layer adds (T, E)."""
        gate, up = (x @ self.weight(f"{layer}.ff.{name}_proj").T for name in ("gate", "up"))
        return self.gated(gate, up) @ self.weight(f"{layer}.ff.down_proj").T

    def layer(self, x: Any, layer: str, cache: Any) -> Any:
        """Return the stream after a layer, and the grown cache."""
        attended, cache = self.attend(self.norm(x, f"{layer}.norm1"), layer, cache)
        x = x + attended
        return x + self.feed_forward(self.norm(x, f"{layer}.norm2"), layer), cache

    def order(self, caches: list[Any]) -> list[int]:
        """Return the numbers of the layers, in the order in which they are used."""
        return list(range(len(caches)))

    def last(self, x: Any) -> Any:
        """Return the stream after the last norm."""
        return self.norm(x, "norm")

    def logits(self, x: Any) -> Any:
        """Return the logits (T, V)."""
        return self.last(x) @ self.weight("embed_tokens").T


def run(parts: type[Parts], params: Any, config: Any, tokens: Any, cache: Any) -> Any:
    """Return the logits of the tokens, and the grown cache."""
    model = parts(params, config, cache[0][0].shape[-2])
    x, grown = model.embed(tokens), list(cache)
    for n in model.order(cache):
        x, grown[n] = model.layer(x, f"layers.{n}", cache[n])
    return model.logits(x), grown
