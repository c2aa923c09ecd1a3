"""Sentence embeddings side by side: all-MiniLM-L6-v2 on attnlib's NumPy, on attnlib's torch, and in `transformers`.

All three are given the same sentences, sorted by length into batches of the same size, and are measured in turn within
one run, so that other load on the machine affects all of them. One thread and all threads are measured in separate
processes, because the number of NumPy's threads is fixed when NumPy is imported. Run it with `make bench`.
"""

import argparse
import statistics
import subprocess
import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import timing
import torch

from attnlib.minilm import MAX_TOKENS, load_minilm, packaged_folder

SENTENCES, BATCH = 64, 32
TEXT = Path(__file__).parents[1] / "attnlib" / "embeddings" / "small_town.txt"


def prose() -> list[str]:
    """Sentences of the text that comes with attnlib, spread over it, every fourth joined with what follows it."""
    lines = TEXT.read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if line and not line.startswith("#")]
    step = len(lines) // SENTENCES
    return [" ".join(lines[n : n + (4 if n // step % 4 == 0 else 1)]) for n in range(0, step * SENTENCES, step)]


def peer():
    """The same model in `transformers`: the recipe of its model card, in batches sorted by length."""
    from transformers import AutoModel, AutoTokenizer  # slow to import
    from transformers.utils import logging

    logging.disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(packaged_folder())
    model = AutoModel.from_pretrained(packaged_folder(), dtype=torch.float32).eval()

    @torch.inference_mode()
    def encode(sentences):
        order = sorted(range(len(sentences)), key=lambda n: len(sentences[n]))
        result = torch.empty(len(sentences), 384)
        for start in range(0, len(order), BATCH):
            chosen = order[start : start + BATCH]
            batch = tokenizer(
                [sentences[n] for n in chosen],
                padding=True,
                truncation=True,
                max_length=MAX_TOKENS,
                return_tensors="pt",
            )
            real = batch["attention_mask"][..., None]
            mean = (model(**batch).last_hidden_state * real).sum(1) / real.sum(1)
            result[chosen] = torch.nn.functional.normalize(mean, dim=1)
        return result

    return encode


def measure(threads: int) -> None:
    """Print the table for the threads that this process was started with; 0 means all."""
    if threads:
        torch.set_num_threads(threads)
    sentences = prose()
    ours = {name: load_minilm(backend=name) for name in ("torch", "numpy")}
    encode = {
        "transformers": peer(),
        "attnlib, torch": partial(ours["torch"].encode, batch_size=BATCH),
        "attnlib, NumPy": partial(ours["numpy"].encode, batch_size=BATCH),
    }
    clock = timing.CPU if threads == 1 else timing.WALL
    seconds = timing.in_turn({name: partial(f, sentences) for name, f in encode.items()}, clock, seconds=20)
    theirs = np.asarray(encode["transformers"](sentences))
    count = "one thread, CPU time" if threads == 1 else f"{torch.get_num_threads()} threads, elapsed time"
    print(f"\n{count:28} {'sentences/s':>11} {'ratio':>7} {'largest difference':>20}")
    for name, f in encode.items():
        rate, ratio = len(sentences) / seconds[name], seconds["transformers"] / seconds[name]
        difference = abs(np.asarray(f(sentences)) - theirs).max()
        print(f"  {name:26} {rate:>11.1f} {ratio:>7.2f} {difference:>20.1e}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, help="number of threads, 0 for all (default: first one, then all)")
    threads = parser.parse_args().threads
    if threads is not None:
        measure(threads)
        return
    tokenize = load_minilm().tokenize
    lengths = [len(tokenize(sentence)) for sentence in prose()]
    print(f"{timing.machine()}; all-MiniLM-L6-v2, float32; NumPy {np.__version__}, torch {torch.__version__}, ", end="")
    print(f"transformers {version('transformers')}")
    print(
        f"{SENTENCES} sentences of {min(lengths)} to {max(lengths)} tokens, {statistics.mean(lengths):.0f} on average"
    )
    for count in (1, 0):
        command = [sys.executable, __file__, "--threads", str(count)]
        quiet = {"TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": str(count != 1).lower()}
        sys.stdout.flush()
        subprocess.run(command, env=timing.environment(count or None) | quiet, check=True)


if __name__ == "__main__":
    main()
