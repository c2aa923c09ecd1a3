"""Judge the language model: ``python -m training.judge``. It takes about ten minutes on one thread.

It compares the model with compressors and with an n-gram model, by the bits that each needs for a byte of text, and
measures how much of what the model writes is copied. The figures go to ``training/judgement.csv`` and, with samples
chosen by their seeds, into the model's card.
"""

import argparse
import hashlib
import math
import statistics
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import stdlib_lm
import torch
from tokenizers import Tokenizer
from tqdm import tqdm

import attnlib
import attnlib.hf
from attnlib.generation import LanguageModel
from training import judgement
from training.bits import COMPRESSORS, Model, Tokens, compressed_bits, joined, model_bits, ngram_bits
from training.card import CARD, fill_card
from training.command_line import add_stdlib, required_corpus
from training.copying import LearnedText, Prompt, begins_a_program, function_prompts, share_copied
from training.corpus import Corpus, sample
from training.judgement import Figure
from training.loop import LOG
from training.ngram import NGramModel
from training.vocabulary import VOCAB_SIZE, encode_modules

PACKAGE = "jinja2"  # Python code by other people, which is installed with PyTorch
TEMPERATURES = (0.8, 1.0)
CONTINUATIONS, LENGTH = 50, 200
SHOWN = 5  # samples in the card
MODEL = "language model"


class Text(NamedTuple):
    """Modules to predict, and the tokens of each between two END tokens."""

    name: str
    modules: list[str]
    tokens: list[Tokens]


def main(arguments: list[str] | None = None) -> None:
    """Measure everything, print the tables, and write them."""
    options = _parser().parse_args(arguments)
    torch.set_num_threads(1)
    corpus = required_corpus(options.stdlib)
    loaded, writer = attnlib.hf.load(options.folder, backend="torch"), attnlib.hf.load(options.folder)
    if (tokenizer := loaded.tokenizer) is None:
        sys.exit(f"error: {options.folder} has no tokenizer.json: pass the folder of a model with its tokenizer")
    subjects = texts(tokenizer, corpus)
    if options.only_model:
        figures = kept_baselines()
    else:
        figures = [*learned_sizes(tokenizer, corpus), *baselines(corpus, subjects)]
    figures += model_figures(loaded.model, subjects)
    prompts = function_prompts(tokenizer, corpus.held_out, CONTINUATIONS, LENGTH)
    continuations = all_continuations(writer.model, tokenizer, prompts)
    figures += copying_figures(tokenizer, corpus, prompts, continuations)
    parts = {
        "training": judgement.loss_table(CARD.with_name(LOG)),
        "weights": weights_hash(options.folder),
        "sizes": judgement.sizes_table(figures),
        "bits": judgement.bits_table(figures),
        "copying": judgement.copying_table(figures),
        "samples": samples(tokenizer, prompts, continuations[f"temperature {TEMPERATURES[0]}"]),
    }
    print(*parts.values(), sep="\n\n")
    judgement.write_figures(figures)
    fill_card(parts, CARD)


def weights_hash(folder: Path) -> str:
    """Return a sentence that identifies the weights that were judged."""
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    return f"The SHA-256 hash of the judged `model.safetensors` is `{digest}`."


def texts(tokenizer: Tokenizer, corpus: Corpus) -> list[Text]:
    """Return what is predicted: text that was held out, that was learned, that others wrote, and that is shuffled."""
    spec = find_spec(PACKAGE)
    folders = spec.submodule_search_locations if spec else []
    others = [path.read_text("utf-8") for folder in folders or [] for path in sorted(Path(folder).rglob("*.py"))]
    story = Path(attnlib.__file__).parent / "embeddings" / "small_town.txt"
    sources = {
        "held out": list(corpus.held_out.values()),
        "learned": sample(corpus.learned),
        f"{PACKAGE} {version(PACKAGE)}": [text for text in others if text.strip()],
        "English prose": [story.read_text("utf-8")],
    }
    found = [Text(name, some, [encode_modules(tokenizer, [one]) for one in some]) for name, some in sources.items()]
    return [*found, shuffled(tokenizer, found[0])]


def shuffled(tokenizer: Tokenizer, text: Text, seed: int = 0) -> Text:
    """Return a text with the tokens of each module in random order, of which only the frequencies can be predicted."""
    rng = np.random.default_rng(seed)
    tokens = [np.concatenate([one[:1], rng.permutation(one[1:-1]), one[-1:]]) for one in text.tokens]
    return Text(f"{text.name}, shuffled", [tokenizer.decode(one.tolist()) for one in tokens], tokens)


def learned_sizes(tokenizer: Tokenizer, corpus: Corpus) -> Iterator[Figure]:
    """Yield the length of all that was learned."""
    sources = corpus.learned.values()
    yield Figure("all that was learned", "", judgement.BYTES, sum(len(source.encode()) for source in sources))
    yield Figure("all that was learned", "", judgement.TOKENS, len(encode_modules(tokenizer, sources)))


def baselines(corpus: Corpus, texts: Sequence[Text]) -> list[Figure]:
    """Return the lengths of the texts, and the bits for a byte of each without the language model."""
    known, figures = joined(corpus.learned.values()), list[Figure]()
    ngram = NGramModel(known)
    for text in tqdm(texts, desc="compressing"):
        figures.append(Figure(text.name, "", judgement.BYTES, _size(text)))
        figures.append(Figure(text.name, "", judgement.TOKENS, sum(map(len, text.tokens))))
        for method, bits in _baseline_bits(ngram, known, text):
            figures.append(Figure(text.name, method, judgement.BITS, bits / _size(text)))
    return figures


def kept_baselines() -> list[Figure]:
    """Return what ``baselines`` found in an earlier run, which another language model does not change."""
    quantities = (judgement.BYTES, judgement.TOKENS, judgement.BITS)
    return [one for one in judgement.read_figures() if one.quantity in quantities and one.method != MODEL]


def _baseline_bits(ngram: NGramModel, known: bytes, text: Text) -> Iterator[tuple[str, float]]:
    """Yield the name of each method, and how many bits it needs for a text."""
    source = joined(text.modules)
    yield "all bytes equally probable", 8 * len(source)
    yield "all tokens equally probable", math.log2(VOCAB_SIZE) * sum(len(one) - 1 for one in text.tokens)
    for name, compress in COMPRESSORS.items():
        yield name, compressed_bits(compress, source)
        yield f"{name}, after the learned text", compressed_bits(compress, source, known)
    order = len(ngram.orders)
    yield f"{order}-gram", ngram_bits(ngram, source, adaptive=False)
    yield f"adaptive {order}-gram", ngram_bits(ngram, source, adaptive=True)


def model_figures(model: Model, texts: Sequence[Text]) -> Iterator[Figure]:
    """Yield the bits that the language model needs for a byte of each text."""
    for text in tqdm(texts, desc="predicting"):
        yield Figure(text.name, MODEL, judgement.BITS, model_bits(model, text.tokens) / _size(text))


def _size(text: Text) -> int:
    return sum(len(module.encode()) for module in text.modules)


def all_continuations(
    model: LanguageModel, tokenizer: Tokenizer, prompts: Sequence[Prompt]
) -> dict[str, list[list[int]]]:
    """Return how the prompts go on: as the model writes, as their modules do, and the latter shuffled."""
    found: dict[str, list[list[int]]] = {f"temperature {value}": [] for value in TEMPERATURES}
    for seed, prompt in enumerate(tqdm(prompts, desc="writing")):
        for value in TEMPERATURES:
            tokens = tokenizer.encode(prompt.text).ids
            written = attnlib.generate(model, tokens, max_new_tokens=LENGTH, temperature=value, seed=seed)
            found[f"temperature {value}"].append([one.token for one in written])
    true = [prompt.rest for prompt in prompts]
    rng = np.random.default_rng(0)
    return {**found, "the module's own": true, "the same, shuffled": [rng.permutation(one).tolist() for one in true]}


def copying_figures(
    tokenizer: Tokenizer, corpus: Corpus, prompts: Sequence[Prompt], continuations: dict[str, list[list[int]]]
) -> Iterator[Figure]:
    """Yield how much of the continuations occurs in the learned text, and how many of them are Python."""
    learned = LearnedText(encode_modules(tokenizer, corpus.learned.values()), tokenizer.get_vocab_size())
    for name, continued in continuations.items():
        runs = [learned.run_lengths(one) for one in tqdm(continued, desc="looking up", leave=False)]
        longest = [int(lengths.max()) for lengths in runs]
        shares = [share_copied(lengths) for lengths in runs]
        whole = [
            prompt.text + tokenizer.decode(one, skip_special_tokens=False)
            for prompt, one in zip(prompts, continued, strict=True)
        ]
        values = (
            statistics.median(longest),
            max(longest),
            statistics.mean(shares),
            statistics.stdev(shares) / math.sqrt(len(shares)),
            statistics.mean(map(begins_a_program, whole)),
        )
        yield from (Figure(name, "", *pair) for pair in zip(judgement.COPYING, values, strict=True))


def samples(tokenizer: Tokenizer, prompts: Sequence[Prompt], written: Sequence[list[int]]) -> str:
    """Return the first samples in Markdown, each with its prompt."""
    found = list[str]()
    for seed, (prompt, tokens) in enumerate(zip(prompts[:SHOWN], written, strict=False)):
        lines = prompt.text.count("\n") + 1
        text = prompt.text + tokenizer.decode(tokens, skip_special_tokens=False)
        caption = f"Seed {seed}: the first {lines} lines, from `{prompt.module}`, are the prompt:"
        found.append(f"{caption}\n\n~~~~text\n{text}\n~~~~")
    return "\n\n".join(found)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training.judge", description=__doc__)
    parser.add_argument("--folder", type=Path, default=stdlib_lm.FOLDER, help="the model's folder")
    add_stdlib(parser)
    parser.add_argument("--only-model", action="store_true", help="keep the other methods' figures of the last run")
    return parser


if __name__ == "__main__":
    main()
