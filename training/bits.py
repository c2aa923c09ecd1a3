"""How many bits a text takes with a compressor, with the n-gram model, and with the language model.

Every module of a text is followed by a byte 0, or for the language model by its END token, so that a decoder would know
where the module ends. These bits are counted, too.

Dimensions: N tokens of a module with an END on either side, T tokens of a window, V tokens in the vocabulary.
"""

import bz2
import gzip
import lzma
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor
from tqdm import tqdm

from training.ngram import NGramModel

Tokens = NDArray[np.int64]
Compressor = Callable[[bytes], bytes]
Model = Callable[[Tensor], Tensor]  # from tokens (B, T) to logits (B, T, V)
COMPRESSORS: dict[str, Compressor] = {
    "gzip -9": lambda text: gzip.compress(text, 9),
    "bzip2 -9": lambda text: bz2.compress(text, 9),
    "xz -9e": lambda text: lzma.compress(text, preset=9 | lzma.PRESET_EXTREME),  # with a dictionary of 64 MiB
}
BATCH_SIZE = 8


def joined(modules: Iterable[str]) -> bytes:
    """Return the modules one after the other, each followed by a byte 0, which source code does not contain."""
    return b"".join(module.encode() + b"\0" for module in modules)


def compressed_bits(compress: Compressor, text: bytes, known: bytes = b"") -> int:
    """Return the bits of a compressed text, or by how many bits it lengthens the compressed text that is known."""
    return 8 * (len(compress(known + text)) - (_compressed_size(compress, known) if known else 0))


@lru_cache(len(COMPRESSORS))
def _compressed_size(compress: Compressor, known: bytes) -> int:
    return len(compress(known))


def ngram_bits(model: NGramModel, text: bytes, *, adaptive: bool) -> float:
    """Return the bits of a text whose bytes an n-gram model predicts."""
    return float(-np.log2(model.probabilities(text, adaptive=adaptive)).sum())


def model_bits(model: Model, modules: Sequence[Tokens], context: int = 512, stride: int = 256) -> float:
    """Return the bits of modules whose tokens a language model predicts, each module on its own.

    Windows of T = ``context`` tokens begin ``stride`` tokens apart. Each token is counted once, in the first window
    that predicts it, so it has at least ``context - stride`` tokens before it, or all that the module has.

    Args:
        model: the language model.
        modules: the tokens ``(N,)`` of each module, of which the first is given and all others are predicted.
        context: the number of tokens that the model reads at a time.
        stride: the number of tokens between two windows.
    """
    found = [one for tokens in modules for one in windows(tokens, context, stride)]
    found.sort(key=lambda one: len(one[0]))  # so that the windows of a batch are of similar lengths
    bits = 0.0
    for start in tqdm(range(0, len(found), BATCH_SIZE), desc="windows", leave=False):
        batch = found[start : start + BATCH_SIZE]
        losses = _token_bits(model, [window for window, _ in batch])
        bits += sum(float(row[-new:].sum()) for row, (_, new) in zip(losses, batch, strict=True))
    return bits


def windows(tokens: Tokens, context: int, stride: int) -> Iterator[tuple[Tokens, int]]:
    """Yield windows of up to T + 1 tokens, each with the number of tokens at its end that no earlier one predicts."""
    predicted = 0
    for start in range(0, len(tokens), stride):
        end = min(start + context, len(tokens) - 1)
        if end > predicted:
            yield tokens[start : end + 1], end - predicted
            predicted = end


def _token_bits(model: Model, batch: list[Tokens]) -> list[Tensor]:
    """Return the bits of each token but the first of some windows."""
    longest = max(map(len, batch))
    padded = torch.from_numpy(np.stack([np.pad(window, (0, longest - len(window))) for window in batch]))
    with torch.inference_mode():
        logits = model(padded[:, :-1]).float()  # (B, T, V); the padding comes last, so nothing attends to it
        nats = F.cross_entropy(logits.flatten(0, 1), padded[:, 1:].flatten(), reduction="none")
    rows = nats.double().view(len(batch), -1) / np.log(2)  # (B, T)
    return [row[: len(window) - 1] for row, window in zip(rows, batch, strict=True)]
