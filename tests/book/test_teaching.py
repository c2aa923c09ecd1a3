"""The pages for instructors name every command, option and verdict, and their pictures are real pages, shut in."""

import re
from html import unescape

import pytest
from _tools.reading_time import measure, parse
from pages import ROOT, moved, parsed, part, source, text

from grading.__main__ import COMMANDS, _parser
from grading.class_settings import ClassSettings
from grading.verdict import Verdict

pytestmark = pytest.mark.slow

PAGES = part("Teaching")
START, TERM, _, _, HOW, _, _, REFERENCE = PAGES
FRAME = re.compile(r'<iframe\b([^>]*?) srcdoc="([^"]*)"></iframe>')
MOST = 1_000_000  # bytes of a built page
MOST_WORDS = 2500
NOT_PROSE = re.compile(r"\A---\n.*?^---\n|^(`{3,}).*?^\1$|^(?::::|\|)[^\n]*$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"python -m grading ([\w-]+)((?:[^`\n]|\\\\\n)*)")
OLD_HEADINGS = ("set-up", "the-report", "feedback", "how-it-works", "several-machines", "write-an-exercise")


def frame(page: str) -> tuple[str, str]:
    """The attributes and the page of the only frame on a page."""
    ((attributes, framed),) = FRAME.findall(text(f"{page}.html"))
    return attributes, unescape(framed)


def options(command: str) -> list[str]:
    """The options of a command, as its help lists them."""
    (commands,) = (action for action in _parser()._actions if action.choices)
    return [name for action in commands.choices[command]._actions for name in action.option_strings]


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - {"release", "work"}))  # make's affairs
def test_every_command_is_shown_in_use(command):
    assert any(re.search(rf"python -m grading {command}\b", source(page)) for page in PAGES)


def test_no_command_is_shown_with_an_option_that_it_does_not_have():
    shown = [found for page in PAGES for found in SHOWN.findall(source(page))]
    assert len(shown) > 30
    wrong = [(name, set(re.findall(r"(?<!\S)--[a-z-]+", rest)) - set(options(name))) for name, rest in shown]
    assert not [(name, odd) for name, odd in wrong if odd]


def test_the_reference_has_a_section_for_each_command_with_all_its_options():
    assert sorted(re.findall(r"^#### (\S+)$", source(REFERENCE), re.MULTILINE)) == sorted(COMMANDS)
    page = parsed(f"{REFERENCE}.html")
    for command in COMMANDS:
        section = page.find("section", id=command).get_text(" ")
        missing = [name for name in options(command) if name not in {"-h", "--help"} and name not in section.split()]
        assert not [name for name in missing if f"{name}," not in section], command


@pytest.mark.parametrize("key", vars(ClassSettings()))
def test_the_reference_explains_every_setting(key):
    rows = parsed(f"{REFERENCE}.html").select("#settings tr")
    (meaning,) = (row.select("td")[2].get_text() for row in rows if row.code and row.code.get_text() == key)
    assert len(meaning.split()) > 4


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_is_explained(verdict):
    row = re.search(rf"<tr\b[^>]*><td>(?:<p>)?<strong>{verdict}</strong>(.*?)</tr>", text(f"{HOW}.html"), re.DOTALL)
    assert row
    assert verdict.text in unescape(row[1])


def test_two_real_pages_are_framed_and_nothing_in_them_runs_or_leads_anywhere():
    report, feedback = frame(START), frame(TERM)
    for attributes, page in (report, feedback):
        assert re.search(r" sandbox(?: |$|=\"\")", attributes), "a frame without a sandbox"
        assert re.search(r'title="[^"]{20,}"', attributes)
        assert not re.search(r"<(?:script|iframe|link|base|form|object|embed)\b| href=| on\w+=", page)
        assert not re.search(r"""\b(?:src|srcset)=["'](?!data:)""", page)
        assert "default-src 'none'" in page
        assert not re.search(r"_answer\b", re.sub(r"<[^>]+>", "", page)), "it gives an answer away"
    assert "Score distribution" in report[1]
    assert "Difficulty and discrimination" in report[1]
    assert "Dmitri Orlov" in feedback[1]
    assert "normalised along the first axis" in feedback[1]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_small_and_names_no_place_on_a_machine(page):
    html = text(f"{page}.html")
    assert len(html.encode()) < MOST
    assert not re.findall(r"/(?:tmp|home|root|Users|work)/[\w.-]+/", unescape(html))


@pytest.mark.parametrize("page", PAGES[:-1])
def test_a_page_is_short_and_says_how_long_it_takes(page):
    assert len(NOT_PROSE.sub("", source(page)).split()) <= MOST_WORDS
    html, minutes = text(f"{page}.html"), measure(parsed(f"{page}.html")).minutes
    assert re.findall(r'<span class="reading-time">(\d+) minutes', html) == [f"{minutes}"]


def test_the_quick_start_has_ten_lines_and_each_of_them_is_run():
    (lines,) = re.findall(r'^QUICK_START = r"""(.*?)"""', source(START), re.MULTILINE | re.DOTALL)
    assert len(lines.splitlines()) == 10
    names = re.search(r"^(\w.*) = re\.split\(.*QUICK_START", source(START), re.MULTILINE)[1].split(", ")
    for name in names[2:]:  # the build itself needs what the first two do
        assert re.search(rf"^practice\.(?:run|show)\({name}\b", source(START), re.MULTILINE), name


def test_the_syllabus_has_the_minutes_of_the_notebooks():
    rows = [[cell.get_text() for cell in row.select("td")] for row in parsed(f"{TERM}.html").select("tr")]
    minutes = {row[1]: int(row[2]) for row in rows if len(row) == 6 and row[2].isdecimal()}
    assert len(minutes) == len(list((ROOT / "exercises").glob("*/*.ipynb")))
    for name, stated in minutes.items():
        (notebook,) = (ROOT / "exercises" / name).glob("*.ipynb")
        assert re.findall(r"Allow about (\d+) minutes", notebook.read_text("utf-8")) == [str(stated)]


def test_the_late_penalty_of_the_page_takes_a_tenth_a_day_and_no_more_than_there_is():
    (code,) = re.findall(r"```python\n(from nbgrader\.plugins.*?)```", source(TERM), re.DOTALL)
    names: dict[str, type] = {}
    exec(code, names)
    penalty = names["TenthADay"]().late_submission_penalty
    assert [penalty("ada", 20, seconds) for seconds in (1, 86_400, 86_401, 10_000_000)] == [2, 2, 4, 20]


def test_the_files_that_the_pages_name_are_there():
    pages = "".join(map(source, PAGES))
    named = set(re.findall(r"`((?:grading|attnlib|solutions|exercises|tests|benchmarks|deploy)/[\w./@-]*)`", pages))
    assert named
    assert not [name for name in named if not (ROOT / name).exists()]


def test_the_former_page_leads_to_what_each_of_its_sections_has_become():
    assert "book/instructors.html" in moved()
    page = parse((ROOT / "book" / "_extra" / "book" / "instructors.html").read_text("utf-8"))
    assert [name for name in OLD_HEADINGS if not page.select(f"#{name} a[href^='teaching/']")] == []
