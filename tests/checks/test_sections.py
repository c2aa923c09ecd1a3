"""A report sends its reader to a place in the book: the place has to be there."""

import re
from pathlib import Path

import pytest

from attnlib.checks.catalogue import ASSIGNMENTS, CATALOGUE, QUESTIONS
from attnlib.checks.exercise import Section

ROOT = Path(__file__).parents[2]
SECTIONS = {
    f"{assignment}-{name}": value
    for assignment, module in ASSIGNMENTS.items()
    for name, value in vars(module.sections).items()
    if isinstance(value, Section)
}


def headings(path):
    """The headings of a MyST file, code blocks left out: (level, text)."""
    text = re.sub(r"^(`{3,}|~{3,}|:{3,}).*?^\1", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return [(len(marks), title.strip()) for marks, title in re.findall(r"^(#{1,6})\s+(.+?)\s*$", text, re.MULTILINE)]


def test_there_are_sections():
    assert SECTIONS


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_names_a_chapter_that_is_in_the_book(name):
    section = SECTIONS[name]
    path = ROOT / section.file
    assert section.file.startswith("book/")
    assert path.is_file(), f"{section.file} is not there"
    assert (1, section.chapter) in headings(path)


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_names_a_heading_of_its_chapter_verbatim(name):
    section = SECTIONS[name]
    path = ROOT / section.file
    assert path.is_file(), f"{section.file} is not there"
    assert [title for _, title in headings(path)].count(section.heading) == 1


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_reads_as_a_place(name):
    section = SECTIONS[name]
    assert section.heading in str(section)
    assert section.chapter in str(section)


def test_every_section_that_a_report_uses_is_listed_and_every_listed_one_is_used():
    used = {e.section for e in CATALOGUE.values()} | {m.section for e in CATALOGUE.values() for m in e.mistakes}
    used |= {question.section for question in QUESTIONS.values()}
    assert used == set(SECTIONS.values())
