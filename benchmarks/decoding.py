"""Writing token by token: attnlib in NumPy and torch, a loop written by hand in torch, and transformers.

`python benchmarks/decoding.py` makes a small Llama with random weights, saves it, lets each contender read a prompt and
write greedily on one thread, in turn, and prints CPU time. All have to write the same tokens. Then it prints the memory
that attnlib takes beyond the model: while it reads a long prompt, and while it writes a long text.

Dimensions: B batch, T tokens, S tokens so far, H heads, E width of the vectors.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import timing
import torch
import torch.nn.functional as F
import transformers
from torch import Tensor

import attnlib.hf
from attnlib.generation import generate

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "attnlib"))
from peak_memory import numpy_peak, torch_peak

SIZES = {  # name: width, layers, query heads, key heads, hidden width, vocabulary
    "3M": (192, 6, 6, 2, 512, 4096),
    "40M": (512, 8, 8, 2, 1376, 32000),
}
Tokens = list[int]


class ByHand:
    """Llama as you might write it for a single text: preallocated keys and values, torch's attention, no library."""

    def __init__(self, model: transformers.LlamaForCausalLM, capacity: int) -> None:
        self.w, c = dict(model.state_dict()), model.config
        self.layers, self.D, self.eps = c.num_hidden_layers, c.head_dim, c.rms_norm_eps
        self.kv = torch.zeros(c.num_hidden_layers, 2, 1, c.num_key_value_heads, capacity, c.head_dim)
        theta = 10000.0 ** -(torch.arange(0, c.head_dim, 2) / c.head_dim)
        angles = torch.outer(torch.arange(capacity), theta).repeat(1, 2)
        self.cos, self.sin = angles.cos(), angles.sin()

    @torch.inference_mode()
    def write(self, prompt: Tokens, count: int) -> Tokens:
        """Return the most probable continuation."""
        read, start, written = prompt, 0, []
        for _ in range(count):
            logits = self._logits(torch.tensor([read]), start)
            start += len(read)
            read = [int(logits.argmax())]
            written += read
        return written

    def _logits(self, tokens: Tensor, start: int) -> Tensor:
        w, end = self.w, start + tokens.shape[1]
        x = F.embedding(tokens, w["model.embed_tokens.weight"])
        cos, sin = self.cos[start:end], self.sin[start:end]
        for n in range(self.layers):
            p = f"model.layers.{n}."
            h = self._norm(x, p + "input_layernorm.weight")
            q, k, v = (self._heads(F.linear(h, w[f"{p}self_attn.{one}_proj.weight"])) for one in "qkv")
            q, k = (z * cos + self._turned(z) * sin for z in (q, k))
            self.kv[n, 0, ..., start:end, :], self.kv[n, 1, ..., start:end, :] = k, v
            k, v = self.kv[n, 0, ..., :end, :], self.kv[n, 1, ..., :end, :]
            a = F.scaled_dot_product_attention(q, k, v, is_causal=start == 0, enable_gqa=True)
            x = x + F.linear(a.transpose(1, 2).flatten(2), w[p + "self_attn.o_proj.weight"])
            h = self._norm(x, p + "post_attention_layernorm.weight")
            gate, up = (F.linear(h, w[f"{p}mlp.{one}_proj.weight"]) for one in ("gate", "up"))
            x = x + F.linear(F.silu(gate) * up, w[p + "mlp.down_proj.weight"])
        return F.linear(self._norm(x[:, -1], "model.norm.weight"), w["lm_head.weight"])

    def _norm(self, x: Tensor, name: str) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], self.w[name], self.eps)

    def _turned(self, x: Tensor) -> Tensor:
        a, b = x.chunk(2, -1)
        return torch.cat((-b, a), -1)

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.D)).transpose(1, 2)


def new_model(size: str) -> transformers.LlamaForCausalLM:
    """Return a Llama with random weights."""
    E, layers, H, kv, hidden, vocabulary = SIZES[size]
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=vocabulary, hidden_size=E, num_hidden_layers=layers, num_attention_heads=H,
            num_key_value_heads=kv, intermediate_size=hidden, max_position_embeddings=8192, tie_word_embeddings=False,
            eos_token_id=None, bos_token_id=None, pad_token_id=0,
        )
    ).eval()  # fmt: skip


def loaded(model: transformers.LlamaForCausalLM) -> dict[str, Any]:
    """Return the model as attnlib's, by backend."""
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        return {backend: attnlib.hf.load(folder, backend=backend).model for backend in ("numpy", "torch")}


def contenders(model: transformers.LlamaForCausalLM, prompt: Tokens, count: int) -> Mapping[str, Callable[[], Tokens]]:
    """Return functions that continue the prompt by `count` tokens."""
    ours = loaded(model)
    by_hand = ByHand(model, len(prompt) + count)

    def of(backend: str) -> Callable[[], Tokens]:
        return lambda: [one.token for one in generate(ours[backend], prompt, max_new_tokens=count, temperature=0)]

    def theirs() -> Tokens:
        found = model.generate(
            torch.tensor([prompt]), attention_mask=torch.ones(1, len(prompt), dtype=torch.long), max_new_tokens=count,
            min_new_tokens=count, do_sample=False,
        )  # fmt: skip
        return found[0, len(prompt) :].tolist()

    return {
        "attnlib, torch": of("torch"),
        "attnlib, NumPy": of("numpy"),
        "by hand, torch": lambda: by_hand.write(prompt, count),
        "transformers": theirs,
    }


def memory(size: str, T: int = 4096, count: int = 2000) -> Iterator[tuple[str, str, float, float]]:
    """Yield a backend, what it does, and the MiB that it takes, and those of the keys and values among them."""
    model = new_model(size)
    c = model.config
    of_a_token = c.num_hidden_layers * 2 * c.num_key_value_heads * c.head_dim * 4 / 2**20
    prompt = np.random.default_rng(0).integers(0, 4096, T).tolist()
    for backend, ours in loaded(model).items():
        peak_of = numpy_peak if backend == "numpy" else torch_peak
        list(generate(ours, prompt[:5], max_new_tokens=2))  # the first call imports modules
        peak = peak_of(lambda m=ours: next(generate(m, prompt, max_new_tokens=1)))
        yield backend, f"read {T} tokens", peak / 2**20, T * of_a_token
        tokens = generate(ours, prompt[:1], max_new_tokens=count)
        for written in range(1, count + 1):
            if written % (count // 4):
                next(tokens)
                continue
            peak = peak_of(lambda tokens=tokens: next(tokens))
            yield backend, f"write token {written}", peak / 2**20, written * of_a_token


def main() -> None:
    """Print tokens per second of CPU time and ratios, for prefill and decoding, and the memory that both take."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="for each row (%(default)s)")
    seconds = parser.parse_args().seconds
    torch.set_num_threads(1)
    print(f"{timing.machine()}, one thread, CPU time; torch {torch.__version__}, NumPy {np.__version__}, "
          f"transformers {transformers.__version__}")  # fmt: skip
    print("| model | prompt | tokens written | contender | tokens per CPU second | CPU time, by hand = 1 |")
    print("|---|---|---|---|---|---|")
    for size in SIZES:
        model = new_model(size)
        for T, count in ((16, 128), (512, 128), (1024, 1)):
            prompt = np.random.default_rng(T).integers(0, 4096, T).tolist()
            rivals = contenders(model, prompt, count)
            texts = [rival() for rival in rivals.values()]
            if any(text != texts[0] for text in texts):
                raise AssertionError("the contenders wrote different texts")
            found = timing.in_turn(rivals, timing.CPU, seconds)
            tokens = count if count > 1 else T
            for name, time in found.items():
                ratio = time / found["by hand, torch"]
                print(f"| {size} | {T} | {count} | {name} | {tokens / time:,.0f} | {ratio:.2f} |", flush=True)
    print("\n| attnlib | what | MiB at its peak, beyond what was held before | MiB of keys and values |")
    print("|---|---|---:|---:|")
    for backend, what, peak, kept in memory("3M"):
        print(f"| {backend} | {what} | {peak:.2f} | {kept:.2f} |", flush=True)


if __name__ == "__main__":
    if any(os.environ.get(name) != "1" for name in timing.THREADS):
        os.execvpe(sys.executable, [sys.executable, *sys.argv], timing.environment(1))
    transformers.logging.set_verbosity_error()
    main()
