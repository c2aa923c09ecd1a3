"""The words of a program without what is easily changed: names, strings, comments, spacing and line breaks.

The text need not be Python: if Python's tokenizer fails, a simpler one continues with the next line.
"""

import builtins
import io
import keyword
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from token import COMMENT, DEDENT, ENDMARKER, INDENT, NAME, NEWLINE, NL, NUMBER, OP, STRING
from tokenize import TokenError, TokenInfo, generate_tokens
from typing import NamedTuple

LAYOUT_TOKENS = {COMMENT, NL, INDENT, DEDENT, ENDMARKER}
KEPT_NAMES = set(keyword.kwlist) | set(dir(builtins))
A_NAME, A_STRING = "name", '"string"'  # stand for any name that a student chose, and for any string
FALLBACK_TOKEN = re.compile(  # linear in the length of a line, whatever is in it
    r"""(?P<comment>\#.*) | (?P<string>"[^"]*" | '[^']*') | (?P<number>\d[\w.]*) | (?P<name>\w+)
    | (?P<op>\*\* | // | -> | [-+*/@%<>=!]= | \S)""",
    re.VERBOSE,
)
TOKEN_TYPES = {"comment": COMMENT, "string": STRING, "number": NUMBER, "name": NAME, "op": OP}


class Token(NamedTuple):
    """A word, and the number of its line, counted from 1."""

    text: str
    line: int


@lru_cache(256)  # text that many students left unchanged is read only once
def tokens(source: str) -> tuple[Token, ...]:
    """Return the words of a program. Comments and statements that are nothing but a string are left out."""
    words: list[Token] = []
    statement: list[TokenInfo] = []
    for token in _raw(source):
        if token.type == NEWLINE:
            words += _words(statement)
            statement = []
        elif token.type not in LAYOUT_TOKENS and not token.string.isspace():
            statement.append(token)
    return (*words, *_words(statement))


def _raw(source: str) -> Iterator[TokenInfo]:
    lines = io.StringIO(source, newline=None).readlines()
    reached = 0
    try:
        for token in generate_tokens(iter(lines).__next__):
            yield token
            reached = token.end[0]
    except (TokenError, SyntaxError):  # an IndentationError is one
        for row, line in enumerate(lines[reached:], reached + 1):
            yield from _plain(line, row)


def _plain(line: str, row: int) -> Iterator[TokenInfo]:
    """Yield the tokens of a line that Python's tokenizer cannot make sense of."""
    for match in FALLBACK_TOKEN.finditer(line):
        kind = TOKEN_TYPES[match.lastgroup or "op"]
        yield TokenInfo(kind, match[0], (row, match.start()), (row, match.end()), line)
    yield TokenInfo(NEWLINE, "\n", (row, len(line)), (row, len(line)), line)


def _words(statement: Sequence[TokenInfo]) -> list[Token]:
    if all(token.type == STRING for token in statement):
        return []
    before = ["", "", *(token.string for token in statement)]
    return [Token(_word(token, *before[i : i + 2]), token.start[0]) for i, token in enumerate(statement)]


def _word(token: TokenInfo, owner: str, dot: str) -> str:
    """Return what stands for a token, which comes after ``owner`` and ``dot``."""
    if token.type == STRING:
        return A_STRING
    if token.type != NAME or token.string in KEPT_NAMES:
        return token.string
    is_attribute = dot == "." and owner != "self"  # of an array or a module: nobody but its author can rename it
    return token.string if is_attribute else A_NAME
