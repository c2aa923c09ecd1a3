"""The glossary and the lessons use the same words: each term occurs in a lesson, and each definition has its term."""

import re

import pytest
from pages import lessons, source
from test_lessons import CELL

ENTRY = re.compile(r"^(\S.*)\n((?:  .*\n)+)", re.MULTILINE)
# How the lessons mark a definition: the term in bold where it ends its phrase, after an article or after "called".
DEFINITION = re.compile(
    r"\b(?:an?|the|is|called) \*\*([a-zA-Z][\w -]*)\*\*(?=[.,:;)]|\s*(?:\(|\{cite|\$))", re.IGNORECASE
)
LONGEST_TERM = 4  # words
# Phrases that are in bold in such places only for emphasis.
STRESSED = {
    "circle",
    "explorer",
    "mean over the heads",
    "name tag",
    "not symmetric",
    "room",
    "short path",
    "whole model",
}
# Another form of a term, and the term that the glossary explains.
VARIANTS = {"permutation equivariance": "equivariant"}


def entries():
    """The terms of the glossary, each with its explanation."""
    body = source("book/glossary").split(":::{glossary}\n")[1].split("\n:::")[0] + "\n"
    return dict(ENTRY.findall(body))


def words(text):
    """A text as one line in lower case, without marks of emphasis."""
    return on_one_line(text.replace("*", "").lower())


def on_one_line(text):
    return " ".join(text.split())


def names(term):
    """The names of a term: "byte pair encoding (BPE)" has two of them, and "kernel (of a processor)" has one."""
    main, _, other = term.partition(" (")
    return {main, other.rstrip(")")} - {""} if other.isupper() else {main}


def defined(text):
    """The terms that a text defines."""
    found = {words(term) for term in DEFINITION.findall(on_one_line(text))}
    return {term for term in found - STRESSED if len(term.split()) <= LONGEST_TERM}


def prose(name):
    """What a lesson says in words: neither code nor what describes a picture."""
    return CELL.sub("", source(name)).split("\n# ", 1)[-1]


def used_in(lesson_text, term):
    return any(re.search(rf"\b{re.escape(name.lower())}(?:e?s)?\b", lesson_text) for name in names(term))


@pytest.fixture(scope="module")
def everything():
    return [words(prose(name)) for name in lessons()]


@pytest.mark.parametrize("term", entries())
def test_a_term_is_used_in_a_lesson(term, everything):
    assert any(used_in(text, term) for text in everything), f"no lesson says {term!r}: use the lessons' word for it"


@pytest.mark.parametrize("name", lessons())
def test_what_a_lesson_defines_is_in_the_glossary(name):
    explained = words(source("book/glossary"))
    missing = {term for term in defined(prose(name)) if VARIANTS.get(term, term.removesuffix("s")) not in explained}
    assert missing == set(), "explain these in book/glossary.md, or, if they are only stressed, in *italics*"


def test_terms_and_definitions_are_found():
    text = (
        "It is called\n**warm-up** {cite:p}`a`. The **old** state, a **key**: on a **circle**. An\n**Encoder** (a part)"
    )
    assert defined(text) == {"warm-up", "key", "encoder"}
    assert names("byte pair encoding (BPE)") == {"byte pair encoding", "BPE"}
    assert names("kernel (of a processor)") == {"kernel"}
    assert used_in(words("Two **Class\ntokens**"), "class token")
    assert not used_in("subclass token", "class token")
