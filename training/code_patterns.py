"""Where Python code closes a bracket or a quote, repeats a name, or begins a line: places where it helps to look back.

In each such place, the next token could be predicted with the help of one token before, the target: the opening bracket
or quote, the same piece of the name where it was last used, or the indentation of the current line.

Dimensions: T tokens of a window, W windows, N places.
"""

import keyword
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from training.vocabulary import END

HELD_OUT = Path(__file__).parent / "held_out"
KINDS = ("bracket", "quote", "name", "indentation")
CLOSING = {")": "(", "]": "[", "}": "{"}
# The longest quotes come first, and a backslash hides the character after it.
STRING = "|".join(rf"{quote}(?:\\.|(?!{quote})[^\\{end}])*{quote}" for quote, end in (
    ('"""', ""), ("\'\'\'", ""), ('"', "\\n"), ("\'", "\\n"),
))  # fmt: skip
PART = re.compile(
    rf"(?P<comment>\#[^\n]*)|(?P<quote>{STRING})|(?P<name>[^\W\d]\w*)|(?P<bracket>[()\[\]{{}}])", re.DOTALL
)


class Places(NamedTuple):
    """Places of one kind.

    Attributes:
        query: ``(N,)``, the positions whose next token is to be predicted.
        target: ``(N,)``, for each of them the position to look back at.
    """

    query: NDArray[np.int64]
    target: NDArray[np.int64]


def find_places(text: str, encoding: Encoding) -> dict[str, Places]:
    """Find the places of each kind in a module, where the target comes before the query.

    Args:
        text: the source of the module.
        encoding: the tokens of this text.

    Returns:
        For each of ``KINDS``, its places in the order of the text.
    """
    starts = [start for start, _ in encoding.offsets]
    pieces = [text[start:end] for start, end in encoding.offsets]
    parts = [(part.lastgroup, *part.span()) for part in PART.finditer(text)]

    def token(character: int) -> int:
        return bisect_right(starts, character) - 1

    names = [(token(a), token(b - 1)) for kind, a, b in parts if kind == "name" and not keyword.iskeyword(text[a:b])]
    found = {
        "bracket": ((token(b) - 1, token(a)) for a, b in _brackets(text, parts)),
        "quote": ((token(b - 1) - 1, token(a)) for kind, a, b in parts if kind == "quote"),
        "name": _repeated(names, encoding.ids),
        "indentation": _line_starts(pieces),
    }
    return {kind: _places(found[kind]) for kind in KINDS}


def _places(pairs: Iterable[tuple[int, int]]) -> Places:
    kept = sorted((query, target) for query, target in pairs if target < query)
    return Places(*np.array(kept, dtype=np.int64).reshape(-1, 2).T)


def _brackets(text: str, parts: list[tuple[str | None, int, int]]) -> Iterator[tuple[int, int]]:
    """Yield where each bracket in code opens, and where it closes."""
    still_open: list[int] = []
    for kind, start, _ in parts:
        if kind == "bracket" and text[start] not in CLOSING:
            still_open.append(start)
        elif kind == "bracket" and still_open and text[still_open[-1]] == CLOSING[text[start]]:
            yield still_open.pop(), start


def _repeated(names: list[tuple[int, int]], tokens: list[int]) -> Iterator[tuple[int, int]]:
    """Yield, for names that occurred before, each piece but the last, and the piece after it where it last occurred."""
    last: dict[tuple[int, ...], int] = {}
    for first, end in names:
        name = tuple(tokens[first : end + 1])
        if name in last:
            yield from ((first + n, last[name] + n + 1) for n in range(len(name) - 1))
        last[name] = first


def _line_starts(pieces: list[str]) -> Iterator[tuple[int, int]]:
    """Yield the last token of each line, and the token with the indentation of this line."""
    ends = [n for n, piece in enumerate(pieces) if "\n" in piece]
    yield from ((end - 1, before) for before, end in pairwise(ends))


class Windows(NamedTuple):
    """A text, cut into pieces of equal length that the model reads one by one.

    Attributes:
        tokens: ``(W, T)``, the tokens of W windows.
        lines: ``(W, T)``, the number of the line that each token belongs to.
        places: those of each kind whose target and next token are in the same window; positions count through all
            windows, so window and position are ``divmod(position, T)``.
    """

    tokens: NDArray[np.int64]
    lines: NDArray[np.int64]
    places: dict[str, Places]


def cut(texts: Iterable[str], tokenizer: Tokenizer, length: int = 512) -> Windows:
    """Join texts, each after an END token, and cut them into windows; what is left at the end is dropped.

    Args:
        texts: the sources of the modules.
        tokenizer: that of the model.
        length: T.

    Returns:
        The windows.
    """
    tokens: list[int | None] = []
    lines: list[int] = []
    found = {kind: [np.zeros((2, 0), np.int64)] for kind in KINDS}
    for text in texts:
        encoding = tokenizer.encode(text)
        first, line = len(tokens) + 1, lines[-1] + 1 if lines else 0
        tokens += [tokenizer.token_to_id(END), *encoding.ids]
        lines += [line, *(line + text.count("\n", 0, start) for start, _ in encoding.offsets)]
        for kind, places in find_places(text, encoding).items():
            found[kind].append(np.array(places) + first)
    whole = len(tokens) // length * length
    shape = (-1, length)
    return Windows(
        np.array(tokens[:whole]).reshape(shape),
        np.array(lines[:whole]).reshape(shape),
        {kind: _within(np.concatenate(parts, 1), length, whole) for kind, parts in found.items()},
    )


def _within(places: NDArray[np.int64], length: int, whole: int) -> Places:
    query, target = places
    same = (query // length == target // length) & (query // length == (query + 1) // length) & (query + 1 < whole)
    return Places(query[same], target[same])


def held_out_halves() -> tuple[list[str], list[str]]:
    """Read six modules that the model has not learned from: the first, third and fifth by name, and the other three."""
    texts = [path.read_text("utf-8") for path in sorted(HELD_OUT.glob("*.txt"))]
    return texts[::2], texts[1::2]
