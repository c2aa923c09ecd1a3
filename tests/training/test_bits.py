"""Bits of a text: each token is counted once, with enough of the text before it, and as the model predicts it."""

import itertools
import math

import numpy as np
import pytest
import torch

from training.bits import COMPRESSORS, compressed_bits, joined, model_bits, ngram_bits, windows
from training.ngram import NGramModel

V = 11
RNG = np.random.default_rng(5)
MODULES = [RNG.integers(0, V, size) for size in (2, 9, 10, 11, 37)]


@pytest.mark.parametrize("size", [2, 7, 8, 9, 10, 12, 13, 16, 17, 50])
def test_each_token_is_predicted_once_from_at_least_so_many_tokens(size):
    tokens, predicted = np.arange(size), []
    for window, new in windows(tokens, 8, 3):
        assert len(window) <= 9
        for one in window[-new:]:
            predicted.append(one)
            assert one - window[0] >= min(one, 8 - 3)
    assert predicted == list(range(1, size))


def test_bits_are_those_of_the_probabilities_however_modules_are_divided():
    table = torch.from_numpy(RNG.normal(size=(V, V)))

    def bigrams(tokens):  # the logits depend on the last token alone, so the windows do not matter
        return table[tokens]

    p = torch.softmax(table, dim=-1).numpy()
    expected = -sum(math.log2(p[a, b]) for module in MODULES for a, b in itertools.pairwise(module))
    for context, stride in ((512, 256), (8, 4), (5, 5)):
        assert model_bits(bigrams, MODULES, context, stride) == pytest.approx(expected, rel=1e-6)


def test_a_model_that_knows_nothing_needs_the_logarithm_of_the_vocabulary():
    found = model_bits(lambda tokens: torch.zeros(*tokens.shape, V), MODULES, 8, 4)
    assert found == pytest.approx(sum(len(one) - 1 for one in MODULES) * math.log2(V))


def test_modules_are_separated_by_a_byte_that_source_code_does_not_contain():
    assert joined(["x = 'ö'\n", "y"]) == b"x = '\xc3\xb6'\n\0y\0"


@pytest.mark.parametrize("name", COMPRESSORS)
def test_a_compressor_that_knows_a_text_needs_little_for_its_repetition(name):
    text = RNG.bytes(5000)
    alone, after = (compressed_bits(COMPRESSORS[name], text, known) for known in (b"", text))
    assert alone > 8 * len(text)  # random bytes cannot be compressed
    assert after < alone / (1.4 if name == "bzip2 -9" else 10)  # bzip2 sorts, and repeats what it has sorted


def test_bits_of_the_ngram_model_are_those_of_its_probabilities():
    model, text = NGramModel(b"abacab" * 9, 3), b"abacabba"
    for adaptive in (False, True):
        expected = sum(-math.log2(p) for p in model.probabilities(text, adaptive=adaptive))
        assert ngram_bits(model, text, adaptive=adaptive) == pytest.approx(expected)
