"""Train the course's language model: ``python -m training``. A run that was stopped resumes at its last checkpoint."""

import argparse
import sys
from pathlib import Path

from tokenizers import Tokenizer

from attnlib.torch import CausalLMConfig
from training.command_line import add_any_version, add_stdlib, required_corpus
from training.export import export
from training.loop import Settings, train
from training.record import run_record, write_record
from training.vocabulary import VOCAB_SIZE, encode_modules, train_tokenizer

CONFIG = CausalLMConfig(
    vocab_size=VOCAB_SIZE, embed_dim=192, num_layers=6, num_heads=6, num_kv_heads=2, ff_dim=512, norm_eps=1e-5
)


def main(arguments: list[str] | None = None) -> None:
    """Read the text, make the tokenizer, train the model, and write it in the layout of a Llama checkpoint."""
    options = _parser().parse_args(arguments)
    corpus = required_corpus(options.stdlib, any_version=options.any_version)
    options.folder.mkdir(parents=True, exist_ok=True)
    words = options.folder / "tokenizer.json"
    if not words.is_file():
        train_tokenizer(corpus.learned.values()).save(str(words))
    tokenizer = Tokenizer.from_file(str(words))
    learned, held_out = (encode_modules(tokenizer, part.values()) for part in (corpus.learned, corpus.held_out))
    print(f"{len(learned):,} tokens to learn from, {len(held_out):,} held out")
    settings = Settings(steps=options.steps, threads=options.threads)
    try:
        write_record(options.folder, run_record(settings, corpus.sha256))
    except ValueError as error:
        sys.exit(f"error: {error}")
    export(train(CONFIG, learned, held_out, settings, options.folder), tokenizer, options.folder / "model")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("_build/training"), help="for checkpoint, log and model")
    parser.add_argument("--steps", type=int, default=2400, help="number of steps, of 4096 tokens each (%(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="number of threads; it affects rounding (%(default)s)")
    add_stdlib(parser)
    add_any_version(parser)
    return parser


if __name__ == "__main__":
    main()
