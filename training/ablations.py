"""Train small models that differ in one part of the block: ``python -m training.ablations``.

Every variant first gets the learning rate that suits it best, which is found with a seed of its own. With the same
seed, all variants read the same batches. A run that was stopped resumes at its last checkpoint, and runs whose results
are in the table are not repeated.
"""

import argparse
import csv
import math
import platform
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from tqdm import tqdm

from attnlib.torch import CausalLMConfig
from training.command_line import add_any_version, add_stdlib, required_corpus
from training.corpus import Corpus
from training.frequencies import TokenFrequencies
from training.loop import Settings, held_out_loss, initialized, train
from training.replacement import replacement
from training.variants import MODERN, variants
from training.vocabulary import encode_modules, train_tokenizer

TABLE = Path(__file__).with_suffix(".csv")
RATES = (2e-3, 4e-3, 8e-3)  # the learning rates that are tried first
INITIAL_STD = 0.0566  # that of GPT-2, 0.02, times sqrt(768 / 96), since our vectors are narrower
SMALL_STD, SMALL = 0.02, ("modern", "GELU")  # that of GPT-2 itself, with which these variants are trained as well
MORE_RATES = 3  # how many more, at most, are tried if the best is the smallest or the largest so far
TUNING_SEED = 0
RATE_OF = {"modern, redrawn": "modern"}  # variants that take the learning rate of another
SETTINGS = Settings(
    steps=200, context=128, warmup=30, threads=1, bfloat16=False, log_every=100, held_out_windows=128, seed=TUNING_SEED
)


class Run(NamedTuple):
    """What is to be measured, and in which stage: "control", "tuning", "comparison" or "small weights"."""

    stage: str
    variant: str
    seed: int
    learning_rate: float
    initial_std: float


class Row(NamedTuple):
    """A line of the table: a run, and what it gave."""

    stage: str
    variant: str
    seed: int
    learning_rate: float
    initial_std: float
    steps: int
    parameters: int
    nats_per_token: float
    bits_per_byte: float
    cpu_seconds: float
    versions: str

    @property
    def run(self) -> Run:
        """What was measured."""
        return Run(*self[:5])


CONTROL = Run("control", "token frequencies", TUNING_SEED, 0.0, 0.0)


class Text(NamedTuple):
    """The tokens to learn from, those held out, and the mean number of bytes of one of the latter."""

    learned: NDArray[np.int64]
    held_out: NDArray[np.int64]
    bytes_per_token: float


def tokens_of(corpus: Corpus, vocab_size: int) -> Text:
    """Return the tokens of the modules, with a vocabulary learned from those to learn from."""
    tokenizer = train_tokenizer(corpus.learned.values(), vocab_size)
    learned, held_out = (encode_modules(tokenizer, part.values()) for part in (corpus.learned, corpus.held_out))
    size = sum(len(text.encode()) for text in corpus.held_out.values())
    return Text(learned, held_out, size / len(held_out))


@dataclass(frozen=True)
class Ablations:
    """All runs, and where their results are.

    Attributes:
        text: the tokens.
        settings: how each model is trained, except for the learning rate and the seed.
        modern: the block that the variants change.
        table: the file with the results, to which missing ones are added.
        folder: for the checkpoints of the model that is being trained.
        seeds: the number of seeds of the comparison.
    """

    text: Text
    settings: Settings
    modern: CausalLMConfig
    table: Path
    folder: Path
    seeds: int

    def complete(self) -> list[Row]:
        """Find the best learning rate of each variant, then train each with every seed; return the table."""
        names = list(variants(self.modern, self.settings.context))
        with tqdm(total=1 + (len(names) + len(SMALL)) * self.seeds, unit="run") as bar:
            self._finish([CONTROL], bar)
            rates = {name: self._best_rate(name, bar) for name in names if name not in RATE_OF}
            rates |= {name: rates[other] for name, other in RATE_OF.items()}
            seeds = range(TUNING_SEED + 1, TUNING_SEED + 1 + self.seeds)
            for stage, those, std in (("comparison", names, INITIAL_STD), ("small weights", SMALL, SMALL_STD)):
                self._finish([Run(stage, name, seed, rates[name], std) for seed in seeds for name in those], bar)
        return read_table(self.table)

    def _best_rate(self, name: str, bar: tqdm) -> float:
        """Return the learning rate with the smallest loss; the rates on both sides of it are tried, too."""
        losses: dict[float, float] = {}
        new = list(RATES)
        for _ in range(1 + MORE_RATES):
            bar.total += len(new)
            rows = self._finish([Run("tuning", name, TUNING_SEED, rate, INITIAL_STD) for rate in new], bar)
            losses |= {row.learning_rate: row.nats_per_token for row in rows}
            best = min(losses, key=losses.__getitem__)
            if min(losses) < best < max(losses):
                break
            new = [best / 2 if best == min(losses) else best * 2]
        return best

    def _finish(self, runs: list[Run], bar: tqdm) -> list[Row]:
        """Train the runs that the table lacks, and return the rows of all."""
        found = {row.run: row for row in read_table(self.table)}
        for run in runs:
            bar.set_postfix_str(f"{run.stage}: {run.variant}, seed {run.seed}")
            if run not in found:
                found[run] = self._count() if run == CONTROL else self._train(run)
                write_table(self.table, list(found.values()))
            bar.update()
        return [found[run] for run in runs]

    def _count(self) -> Row:
        """Measure the control."""
        began = time.process_time()
        return self._row(CONTROL, TokenFrequencies(self.text.learned, self.modern.vocab_size), 0, began)

    def _train(self, run: Run) -> Row:
        """Train one model, and measure it."""
        began = time.process_time()
        settings = replace(self.settings, seed=run.seed, peak=run.learning_rate)
        variant = variants(self.modern, settings.context)[run.variant]
        folder = self.folder / "_".join(map(str, run))
        model = train(
            variant.config, self.text.learned, self.text.held_out, settings, folder,
            lambda config: initialized(variant.new_model(config), run.initial_std),
        )  # fmt: skip
        row = self._row(run, model, settings.steps, began)
        shutil.rmtree(folder)
        return row

    def _row(self, run: Run, model: nn.Module, steps: int, began: float) -> Row:
        """Return the results of a model whose making began at this processor time."""
        nats = held_out_loss(model, self.text.held_out, self.settings)
        return Row(
            *run,
            steps=steps,
            parameters=sum(x.numel() for x in model.parameters()),
            nats_per_token=nats,
            bits_per_byte=nats / math.log(2) / self.text.bytes_per_token,
            cpu_seconds=time.process_time() - began,
            versions=f"Python {platform.python_version()}, torch {torch.__version__}",
        )


def read_table(path: Path) -> list[Row]:
    """Return the rows of a table, or none if there is no such file."""
    if not path.is_file():
        return []
    kinds = Row.__annotations__
    with path.open(encoding="utf-8", newline="") as file:
        return [Row(**{name: kinds[name](value) for name, value in row.items()}) for row in csv.DictReader(file)]


def write_table(path: Path, rows: list[Row]) -> None:
    """Replace the table atomically."""
    with replacement(path) as new, new.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(Row._fields)
        table.writerows([f"{value:.6g}" if isinstance(value, float) else value for value in row] for row in rows)


def main(arguments: list[str] | None = None) -> None:
    """Complete the table."""
    options = _parser().parse_args(arguments)
    corpus = required_corpus(options.stdlib, any_version=options.any_version)
    text = tokens_of(corpus, MODERN.vocab_size)
    Ablations(text, SETTINGS, MODERN, options.table, options.folder, options.seeds).complete()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training.ablations", description=__doc__)
    parser.add_argument("--table", type=Path, default=TABLE, help="where the results are (%(default)s)")
    parser.add_argument("--folder", type=Path, default=Path("_build/ablations"), help="for checkpoints (%(default)s)")
    parser.add_argument("--seeds", type=int, default=6, help="the number of seeds to compare with (%(default)s)")
    add_stdlib(parser)
    add_any_version(parser)
    return parser


if __name__ == "__main__":
    main()
