"""The training loop: random windows of the text, AdamW, and checkpoints. A resumed run ends with the same bits.

The batch of each step depends on the seed and the step alone, so a run that was killed repeats the steps since its last
checkpoint exactly. Floating point sums depend on the number of threads, so a run must keep that number.

Dimensions: B windows in a batch, T tokens of a window, V tokens in the vocabulary.
"""

import csv
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from tqdm import tqdm

from attnlib.torch import CausalLM, CausalLMConfig
from training.replacement import replacement

CHECKPOINT, LOG = "checkpoint.pt", "log.csv"
COLUMNS = ("step", "tokens", "learning_rate", "train_loss", "held_out_loss", "seconds")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a model is trained.

    Attributes:
        steps: the number of steps.
        batch_size: B.
        context: T.
        peak: the largest learning rate. It is reached after ``warmup`` steps, kept, and lowered to 0 in the last fifth.
        warmup: the number of steps in which the rate rises.
        weight_decay: that of all matrices except the embeddings.
        max_norm: the largest norm of the gradient; a longer one is scaled down to it.
        seed: that of the initial weights and the batches.
        threads: the number of torch's threads.
        bfloat16: whether matrix products are computed in bfloat16.
        log_every: steps between two lines of the log, and between two checkpoints.
        held_out_windows: the number of windows of the held-out text on which the loss is measured.
    """

    steps: int
    batch_size: int = 8
    context: int = 512
    peak: float = 2e-3
    warmup: int = 100
    weight_decay: float = 0.1
    max_norm: float = 1.0
    seed: int = 1
    threads: int = 1
    bfloat16: bool = True
    log_every: int = 50
    held_out_windows: int = 16

    def learning_rate(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0."""
        rising = (step + 1) / self.warmup
        falling = (self.steps - step) / (self.steps / 5)
        return self.peak * min(1.0, rising, falling)


def train(
    config: CausalLMConfig,
    learned: NDArray[np.int64],
    held_out: NDArray[np.int64],
    settings: Settings,
    folder: Path,
    new_model: Callable[[CausalLMConfig], CausalLM] | None = None,
) -> CausalLM:
    """Train a model, or resume from the checkpoint in the folder, and show progress.

    Args:
        config: that of the model.
        learned: ``(N,)``, the tokens to learn from.
        held_out: ``(M,)``, the tokens on which the loss is measured.
        settings: how it is trained.
        folder: where the checkpoint and the log are.
        new_model: makes the model with its initial weights; ``None`` means :func:`initialized` of a CausalLM.

    Returns:
        The trained model.

    Raises:
        ValueError: the checkpoint was made with other settings, or a text is shorter than a window.
    """
    for name, tokens in (("learned", learned), ("held_out", held_out)):
        if len(tokens) <= settings.context:
            raise ValueError(
                f"{name} has {len(tokens)} tokens, but a window needs {settings.context + 1}: pass more text, or a "
                "smaller context"
            )
    torch.set_num_threads(settings.threads)
    torch.manual_seed(settings.seed)
    model = initialized(CausalLM(config)) if new_model is None else new_model(config)
    optimizer = torch.optim.AdamW(parameter_groups(model, settings.weight_decay), betas=(0.9, 0.95), fused=True)
    first, seconds = _resume(folder, model, optimizer, settings)
    began = time.perf_counter() - seconds
    losses: list[float] = []
    for step in tqdm(range(first, settings.steps), initial=first, total=settings.steps, unit="step"):
        losses.append(_step(model, optimizer, batch(learned, settings, step), settings, step))
        done = step + 1
        if done % settings.log_every == 0 or done == settings.steps:
            seconds = time.perf_counter() - began
            measured = held_out_loss(model, held_out, settings)
            tokens = done * settings.batch_size * settings.context
            _log(folder, (done, tokens, settings.learning_rate(step), sum(losses) / len(losses), measured, seconds))
            _save(folder, model, optimizer, settings, done, seconds)
            losses.clear()
    return model


def initialized(model: CausalLM, std: float = 0.02) -> CausalLM:
    """Redraw the weights as GPT-2 does: with one standard deviation, or less where a result is added to the stream."""
    layers = len(model.layers)
    for name, x in model.named_parameters():
        if x.ndim == 2:
            is_added = name.endswith(("out_proj.weight", "down_proj.weight"))
            nn.init.normal_(x, std=std / math.sqrt(2 * layers) if is_added else std)
    return model


def parameter_groups(model: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Return the parameters in two groups: the matrices, which decay, and the norms and embeddings, which do not."""
    decaying = [x for name, x in model.named_parameters() if x.ndim == 2 and "embed" not in name]
    others = [x for name, x in model.named_parameters() if x.ndim != 2 or "embed" in name]
    return [{"params": decaying, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]


def batch(tokens: NDArray[np.int64], settings: Settings, step: int) -> Tensor:
    """Return the windows ``(B, T + 1)`` of a step: the seed and the step alone decide where they begin."""
    rng = np.random.default_rng((settings.seed, step))
    starts = rng.integers(0, len(tokens) - settings.context, settings.batch_size)
    return torch.from_numpy(tokens[starts[:, None] + np.arange(settings.context + 1)])


def held_out_loss(model: nn.Module, tokens: NDArray[np.int64], settings: Settings) -> float:
    """Return the mean loss on windows that are evenly spaced over the held-out tokens, in nats per token."""
    starts = np.linspace(0, len(tokens) - settings.context - 1, settings.held_out_windows).astype(int)
    windows = torch.from_numpy(tokens[starts[:, None] + np.arange(settings.context + 1)])
    with torch.inference_mode():
        found = [_loss(model, part, settings).item() for part in windows.split(settings.batch_size)]
    return sum(found) / len(found)


def _step(model: CausalLM, optimizer: torch.optim.Optimizer, windows: Tensor, settings: Settings, step: int) -> float:
    for group in optimizer.param_groups:
        group["lr"] = settings.learning_rate(step)
    loss = _loss(model, windows, settings)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), settings.max_norm)
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


def _loss(model: nn.Module, windows: Tensor, settings: Settings) -> Tensor:
    """Return the mean cross-entropy of each token after those before it, in nats."""
    with torch.autocast("cpu", torch.bfloat16, enabled=settings.bfloat16):
        logits = model(windows[:, :-1])  # (B, T, V)
    return F.cross_entropy(logits.float().flatten(0, 1), windows[:, 1:].flatten())


def _resume(folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, settings: Settings) -> tuple[int, float]:
    """Load the checkpoint, if there is one, and return how many steps it has and how long they took."""
    path = folder / CHECKPOINT
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        return 0, 0.0
    found = torch.load(path, weights_only=True)
    if found["settings"] != repr(settings):
        raise ValueError(f"{path} was made with {found['settings']}, but this run has {settings}: use another --folder")
    model.load_state_dict(found["model"])
    optimizer.load_state_dict(found["optimizer"])
    rows = [row for row in _rows(folder / LOG) if int(row["step"]) <= found["step"]]
    _write(folder / LOG, rows)
    return found["step"], found["seconds"]


def _save(
    folder: Path, model: nn.Module, optimizer: torch.optim.Optimizer, settings: Settings, step: int, seconds: float
) -> None:
    """Replace the checkpoint atomically, so that there is always a complete one."""
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "settings": repr(settings)}
    with replacement(folder / CHECKPOINT) as new, new.open("wb") as file:
        torch.save({**state, "step": step, "seconds": seconds}, file)
        file.flush()
        os.fsync(file.fileno())


def _log(folder: Path, values: tuple[float, ...]) -> None:
    written = (str(value) if isinstance(value, int) else f"{value:.6g}" for value in values)
    rows = [*_rows(folder / LOG), dict(zip(COLUMNS, written, strict=True))]
    _write(folder / LOG, rows)


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _write(path: Path, rows: list[dict[str, str]]) -> None:
    with replacement(path) as new, new.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
