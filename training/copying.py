"""How much of a text occurs word for word in the text that the model learned from, and prompts to continue.

Dimensions: N tokens of the text, M tokens that were learned from, V tokens in the vocabulary.
"""

import ast
import codeop
import warnings
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from training.vocabulary import END

WINDOW = 16  # tokens; about two lines of code


class Prompt(NamedTuple):
    """The beginning of a function, and the tokens that follow it in its module."""

    module: str
    text: str
    rest: list[int]


class LearnedText:
    """The tokens that were learned from, in which runs of other tokens are looked up.

    Args:
        tokens: ``(M,)``.
        vocab_size: V.
    """

    def __init__(self, tokens: NDArray[np.int64], vocab_size: int) -> None:
        by_token = np.argsort(tokens, kind="stable")
        ends = np.cumsum(np.bincount(tokens, minlength=vocab_size))
        self._positions = np.split(by_token, ends[:-1])
        self._size = len(tokens)

    def run_lengths(self, tokens: Sequence[int]) -> NDArray[np.int64]:
        """Return, for each of N tokens, the length of the longest run that ends with it and was in the learned text."""
        ending_before = np.zeros(self._size + 1, np.int64)  # [k]: the length of the run that ends before position k
        found, last = [], np.array([], np.int64)
        for token in tokens:
            at = self._positions[token]
            lengths = ending_before[at] + 1
            ending_before[last + 1] = 0
            ending_before[at + 1] = lengths
            found.append(lengths.max(initial=0))
            last = at
        return np.array(found, np.int64)


def share_copied(run_lengths: NDArray[np.int64], window: int = WINDOW) -> float:
    """Return the share of the windows of this many tokens that occur in the learned text."""
    return float((run_lengths[window - 1 :] >= window).mean())


def function_prompts(
    tokenizer: Tokenizer, modules: dict[str, str], count: int, length: int, seed: int = 0
) -> list[Prompt]:
    """Draw functions and methods at random, each cut after the first line of its body.

    Args:
        tokenizer: that of the model.
        modules: the source of each, by name.
        count: how many functions to draw.
        length: how many tokens have to follow each prompt in its module.
        seed: that of the draw.

    Raises:
        ValueError: there are fewer functions.
    """
    functions = [function for name, text in modules.items() for function in _functions(name, text)]
    chosen = list[Prompt]()
    for n in np.random.default_rng(seed).permutation(len(functions)):
        name, text, rest = functions[n]
        tokens = tokenizer.encode(rest).ids[:length]
        if len(tokens) == length and len(chosen) < count:
            chosen.append(Prompt(name, text, tokens))
    if len(chosen) < count:
        raise ValueError(
            f"only {len(chosen)} functions are followed by {length} tokens, but {count} are needed: pass more modules"
        )
    return chosen


def _functions(name: str, text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the name of the module, the beginning and the rest of each function and each method of a class."""
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.col_offset in (0, 4) and node.body[0].lineno > node.lineno:
            end = node.body[0].lineno
            yield name, "\n".join(lines[node.lineno - 1 : end]), "\n".join(["", *lines[end:]])


def begins_a_program(text: str) -> bool:
    """Return whether the complete lines of a text are valid Python, or could be the beginning of valid Python."""
    lines = text.partition(END)[0].rpartition("\n")[0]
    source = f"if True:\n{lines}" if lines.startswith(" ") else lines
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about escape sequences
        try:
            codeop.compile_command(f"{source}\n", symbol="exec")
        except (SyntaxError, ValueError, OverflowError):
            return False
    return True
