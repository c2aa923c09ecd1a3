"""The tokenizer: byte-level byte-pair encoding, learned from the modules that the model learns from."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCAB_SIZE = 4096
END = "<|endoftext|>"  # before each module, and after the last


def train_tokenizer(texts: Iterable[str], vocab_size: int = VOCAB_SIZE) -> Tokenizer:
    """Learn the merges from texts.

    Args:
        texts: what to learn from.
        vocab_size: the number of tokens, of which 256 are bytes and one separates texts.

    Returns:
        The tokenizer, which turns any text into tokens and back again without loss.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=[END], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def encode_modules(tokenizer: Tokenizer, texts: Iterable[str]) -> NDArray[np.int64]:
    """Return the tokens of all texts one after the other, each text between two END tokens."""
    end = tokenizer.token_to_id(END)
    tokens = [end]
    for encoding in tokenizer.encode_batch(list(texts)):
        tokens += [*encoding.ids, end]
    return np.array(tokens)
