"""What the heads of the course's language model do: ``python -m training.heads`` measures it on held-out modules.

For each kind of place in ``code_patterns.py``, the three heads that look most at its targets are chosen on one text.
Then sets of heads are taken out: these three, random ones, and each head alone. ``heads.csv`` says how much worse the
model predicts the tokens of each kind, and all others, of another text. The page *Looking into a model that writes*
explains it, and measures a part of it again.

Dimensions: W windows, T tokens of a window, L layers, H heads, D width of a head, N places.
"""

import argparse
import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import stdlib_lm
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn
from tqdm import tqdm

import attnlib.hf
from attnlib.torch import CausalLM
from training.code_patterns import KINDS, Places, Windows, cut, held_out_halves

TABLE = Path(__file__).with_name("heads.csv")
COLUMNS = ("method", "heads", "tokens", "loss", "rise", "low", "high")
Head = tuple[int, int]  # layer and head, counted from 0
BATCH = 8  # windows
RANDOM_SETS = 20
RESAMPLES = 2000


def weights_at(model: CausalLM, windows: Windows, seed: int = 0) -> dict[str, NDArray[np.float32]]:
    """Measure how much weight each head gives to the targets, and to other tokens equally far back.

    Args:
        model: the model.
        windows: the text.
        seed: that of the control.

    Returns:
        For each kind of places ``(2, N, L, H)``: the weights on each target, and, as a control, on the token at the
        distance of another place's target, drawn at random.
    """
    L, H, T = len(model.layers), model.config.num_heads, windows.tokens.shape[1]
    keys = {kind: (places.target, elsewhere(places, T, seed)) for kind, places in windows.places.items()}
    found = {kind: np.zeros((2, len(places.query), L, H), np.float32) for kind, places in windows.places.items()}
    used = {n for places in windows.places.values() for n in places.query // T}
    for n in sorted(used):
        weights = _attention(model, windows.tokens[n])
        for kind, (query, _) in windows.places.items():
            (here,) = np.nonzero(query // T == n)
            for which, key in enumerate(keys[kind]):
                found[kind][which, here] = weights[:, :, query[here] % T, key[here] % T].transpose(2, 0, 1)
    return found


def elsewhere(places: Places, T: int, seed: int) -> NDArray[np.int64]:
    """Return for each place a key that is as far from the query as another place's target, but not its own target."""
    rng = np.random.default_rng(seed)
    query, back = places.query, places.query - places.target
    fits = [back[(back <= q % T) & (back != own)] for q, own in zip(query, back, strict=True)]
    return np.array([q - rng.choice(some if len(some) else [0]) for q, some in zip(query, fits, strict=True)])


def _attention(model: CausalLM, tokens: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the weights ``(L, H, T, T)`` on one window ``(T,)``."""
    with torch.inference_mode():
        return torch.cat(model(torch.from_numpy(tokens[None]), need_weights=True)[1]).numpy()


def token_losses(model: CausalLM, tokens: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the loss of each token but the first of a window, in nats: ``(W, T - 1)``, of token t + 1 in column t."""
    found = []
    with torch.inference_mode():
        for windows in torch.from_numpy(tokens).split(BATCH):
            logits, target = model(windows[:, :-1]), windows[:, 1:]
            losses = F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="none")
            found.append(losses.view(target.shape))
    return torch.cat(found).numpy()


@contextmanager
def replaced(model: CausalLM, heads: Sequence[Head], outputs: NDArray[np.float32] | None = None) -> Iterator[None]:
    """Within a ``with`` block, replace what these heads hand over.

    Args:
        model: the model.
        heads: layer and head of each.
        outputs: ``(L, H, D)``, what they hand over at each position instead; ``None`` means zeros.
    """
    hooks = []
    for layer, head in heads:
        attention = model.layers[layer].self_attn
        value = torch.zeros(attention.head_dim) if outputs is None else torch.from_numpy(outputs[layer, head])
        hooks.append(attention.out_proj.register_forward_pre_hook(_Replace(head, value)))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


class _Replace:
    """A hook that replaces what one head hands over to the output projection."""

    def __init__(self, head: int, value: Tensor) -> None:
        self.head, self.value = head, value

    def __call__(self, _: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor]:
        context, D = inputs[0].clone(), len(self.value)
        context[..., self.head * D : (self.head + 1) * D] = self.value
        return (context,)


def mean_outputs(model: CausalLM, tokens: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return what each head hands over, as the mean over all positions: ``(L, H, D)``."""
    seen: list[list[Tensor]] = [[] for _ in model.layers]

    def keep(layer: int) -> Any:
        return lambda _module, inputs: seen[layer].append(inputs[0].mean((0, 1)))

    hooks = [layer.self_attn.out_proj.register_forward_pre_hook(keep(n)) for n, layer in enumerate(model.layers)]
    for window in tokens:  # of equal length, so that the mean of their means is the mean over all
        token_losses(model, window[None])
    for hook in hooks:
        hook.remove()
    means = torch.stack([torch.stack(contexts).mean(0) for contexts in seen])  # (L, H * D)
    return means.reshape(len(seen), model.config.num_heads, -1).numpy()


def masks(windows: Windows) -> dict[str, NDArray[np.bool_]]:
    """Return for each kind, and for all ``"other"`` tokens, which of the losses ``(W, T - 1)`` belong to it."""
    W, T = windows.tokens.shape
    found = {kind: np.zeros((W, T - 1), bool) for kind in KINDS}
    for kind, places in windows.places.items():
        found[kind][places.query // T, places.query % T] = True
    return {**found, "other": ~np.any([*found.values()], axis=0)}


def mean_and_interval(values: NDArray[Any], lines: NDArray[np.int64], seed: int = 0) -> tuple[float, float, float]:
    """Return the mean of values ``(N,)`` and its 95% bootstrap interval, which resamples the lines they belong to."""
    _, line = np.unique(lines, return_inverse=True)
    sums, counts = np.bincount(line, values), np.bincount(line)
    draws = np.random.default_rng(seed).multinomial(len(sums), np.full(len(sums), 1 / len(sums)), RESAMPLES)
    low, high = np.quantile(draws @ sums / (draws @ counts), [0.025, 0.975])
    return float(sums.sum() / counts.sum()), float(low), float(high)


def margins(model: CausalLM, windows: Windows) -> dict[str, NDArray[np.float32]]:
    """Return for each kind how much more weight each head gives to targets than elsewhere, on average: ``(L, H)``."""
    return {kind: (target - control).mean(0) for kind, (target, control) in weights_at(model, windows).items()}


def best(margin: NDArray[Any], count: int) -> list[Head]:
    """Return the heads with the largest of these numbers ``(L, H)``, the largest first."""
    layers, heads = np.unravel_index(np.argsort(-margin, axis=None)[:count], margin.shape)
    return list(zip(layers.tolist(), heads.tolist(), strict=True))


def name(heads: Sequence[Head]) -> str:
    """Write heads as in the table: ``"4.3 5.2"`` are head 3 of layer 4 and head 2 of layer 5."""
    return " ".join(f"{layer}.{head}" for layer, head in sorted(heads))


def measure(model: CausalLM, search: Windows, test: Windows) -> Iterator[dict[str, str]]:
    """Yield the rows of the table: sets of heads are chosen on one text, and taken out on the other."""
    groups, intact = masks(test), token_losses(model, test.tokens)
    means = mean_outputs(model, search.tokens)
    chosen = [best(margin, 3) for margin in margins(model, search).values()]
    sets = [*chosen, *_random_sets(means.shape[:2])]
    sets += [[head] for head in np.ndindex(means.shape[:2])]
    runs = [("none", []), *(("zero", heads) for heads in sets)]
    runs += [("mean", [head]) for head in sorted(set().union(*chosen))]
    for method, heads in tqdm(runs, unit="run"):
        with replaced(model, heads, means if method == "mean" else None):
            losses = token_losses(model, test.tokens)
        for kind, mask in groups.items():
            rise = mean_and_interval((losses - intact)[mask], test.lines[:, 1:][mask])
            numbers = (losses[mask].mean(), *rise)
            yield dict(zip(COLUMNS, (method, name(heads), kind, *(f"{x:.5f}" for x in numbers)), strict=True))


def _random_sets(shape: tuple[int, int]) -> list[list[Head]]:
    rng, heads = np.random.default_rng(0), list(np.ndindex(shape))
    return [[heads[n] for n in rng.choice(len(heads), 3, replace=False)] for _ in range(RANDOM_SETS)]


def load(folder: Path) -> tuple[CausalLM, Tokenizer]:
    """Load a checkpoint for torch, and its tokenizer."""
    model, tokenizer, _ = attnlib.hf.load(folder, backend="torch")
    assert isinstance(model, CausalLM)
    assert tokenizer is not None
    return model, tokenizer


def read_table() -> dict[tuple[str, str, str], dict[str, float]]:
    """Return the numbers of ``heads.csv``, by method, heads and kind of tokens."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {(row["method"], row["heads"], row["tokens"]): {key: float(row[key]) for key in COLUMNS[3:]} for row in rows}


def main(arguments: list[str] | None = None) -> None:
    """Measure the heads of a checkpoint on the held-out modules, and write the table."""
    parser = argparse.ArgumentParser(prog="python -m training.heads", description="Measure what each head does.")
    parser.add_argument("--folder", type=Path, default=stdlib_lm.FOLDER, help="the model's folder (%(default)s)")
    parser.add_argument("--table", type=Path, default=TABLE, help="the table to write (%(default)s)")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    model, tokenizer = load(options.folder)
    search, test = (cut(texts, tokenizer) for texts in held_out_halves())
    rows = list(measure(model, search, test))
    with options.table.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)


if __name__ == "__main__":
    main()
