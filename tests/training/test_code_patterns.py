"""The places that the page on the language model's heads looks at: brackets, quotes, repeated names and line starts."""

import io
import token
import tokenize
from types import SimpleNamespace

import numpy as np
import pytest
from tokenizers import Tokenizer

from training import corpus
from training.code_patterns import CLOSING, HELD_OUT, KINDS, cut, find_places, held_out_halves
from training.vocabulary import END, train_tokenizer

TEXTS = [text for half in held_out_halves() for text in half]


def characters(text):
    """An encoding in which each character is a token, so that places are positions in the text."""
    return SimpleNamespace(ids=[ord(c) for c in text], offsets=[(n, n + 1) for n in range(len(text))])


def pairs(text, kind):
    return list(zip(*(part.tolist() for part in find_places(text, characters(text))[kind]), strict=True))


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TEXTS[:2], 700)


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("f(a[bc], 'x)')", "bracket", [(5, 3), (12, 1)]),  # the bracket in the string does not count
        ("f()", "bracket", []),  # there is nothing between the two, so that there is nowhere to look back to
        ("(a]b)", "bracket", [(3, 0)]),  # what does not match closes nothing
        ("x = 'ab' # 'c", "quote", [(6, 4)]),
        ('""" "a" """', "quote", [(9, 0)]),
        (r"'a\'b'", "quote", [(4, 0)]),
        ("abc = ab + abc if if", "name", [(11, 1), (12, 2)]),  # keywords are no names
        ("abc 'abc' abc", "name", [(10, 1), (11, 2)]),  # nor is what strings hold
        ("a:\n  b\nc\n", "indentation", [(5, 2), (7, 6)]),
    ],
)
def test_places_worked_by_hand(text, kind, expected):
    assert pairs(text, kind) == expected


@pytest.mark.parametrize("text", TEXTS, ids=range(6))
def test_brackets_and_quotes_are_those_of_pythons_own_tokenizer(text):
    begins = np.cumsum([0, *(len(line) for line in text.splitlines(keepends=True))])
    found = [
        (part.type, part.string, *(int(begins[line - 1] + column) for line, column in (part.start, part.end)))
        for part in tokenize.generate_tokens(io.StringIO(text).readline)
    ]
    if any(
        string[:1] in "fF" and kind in {token.STRING, getattr(token, "FSTRING_START", -1)} for kind, string, *_ in found
    ):
        pytest.skip("it has f-strings, into which later versions of the tokenizer look")
    opened, expected = [], []
    for kind, string, start, _ in found:
        if kind == token.OP and string in "([{":
            opened.append(start)
        elif kind == token.OP and string in CLOSING:
            expected.append((start - 1, opened.pop()))
    assert pairs(text, "bracket") == sorted(pair for pair in expected if pair[0] > pair[1])
    quoted = [  # without prefixes such as r
        (end - 2, start + min(string.index(quote) for quote in "'\"" if quote in string))
        for kind, string, start, end in found
        if kind == token.STRING
    ]
    assert pairs(text, "quote") == [pair for pair in quoted if pair[0] > pair[1]]


def test_windows_hold_whole_places_of_the_joined_texts(tokenizer):
    T = 96
    windows = cut(TEXTS[:2], tokenizer, T)
    tokens, lines = windows.tokens.ravel(), windows.lines.ravel()
    assert windows.tokens.shape[1] == T
    assert (tokens == tokenizer.token_to_id(END)).sum() == 2
    second = int(np.flatnonzero(tokens == tokenizer.token_to_id(END))[1])
    assert lines[0] == 0
    assert lines[second - 1] < lines[second] <= lines[second + 1]
    for kind in KINDS:
        query, target = windows.places[kind]
        assert len(query) > 20
        assert (target < query).all()
        assert (query // T == target // T).all()
        assert (query % T < T - 1).all()
    query, target = windows.places["name"]
    assert (tokens[query + 1] == tokens[target]).all()
    query, target = windows.places["bracket"]
    closing = [tokenizer.decode([token]) for token in tokens[query + 1]]
    opening = [tokenizer.decode([token]) for token in tokens[target]]
    assert all(
        any(b in after and a in before for b, a in CLOSING.items())
        for after, before in zip(closing, opening, strict=True)
    )
    assert (np.diff(lines)[np.char.count([tokenizer.decode([token]) for token in tokens], "\n")[:-1] == 0] <= 1).all()


def test_the_lines_of_tokens_are_counted(tokenizer):
    text = "a = 1\n\nb = 2\n"
    windows = cut([text], tokenizer, 1)
    encoding = tokenizer.encode(text)
    assert windows.lines.ravel().tolist() == [0, *(text[:start].count("\n") for start, _ in encoding.offsets)]


@pytest.mark.slow
def test_the_text_is_that_of_the_held_out_modules():
    modules = corpus.read_corpus()
    try:
        corpus.require_version(modules)
    except ValueError:
        pytest.skip("this Python has another standard library")
    chosen = {name: text for name, text in modules.held_out.items() if 13_000 <= len(text) < 20_000}
    files = {path.name: path.read_text("utf-8") for path in HELD_OUT.glob("*.txt")}
    assert files == {f"{name.replace('/', '.')}.txt": text for name, text in chosen.items()}
    assert len(files) == 6
