"""The page for instructors names every command, option and verdict, and its pictures are the real pages, shut in."""

import re
from html import unescape

import pytest
from pages import ROOT, source, text

from grading.__main__ import COMMANDS, _parser
from grading.verdict import Verdict

pytestmark = pytest.mark.slow

PAGE = "book/instructors"
FRAME = re.compile(r'<iframe\b([^>]*?) srcdoc="([^"]*)"></iframe>')
MOST = 1_000_000  # bytes of the built page


def frames() -> list[tuple[str, str]]:
    """The attributes and the page of each frame."""
    return [(attributes, unescape(page)) for attributes, page in FRAME.findall(text(f"{PAGE}.html"))]


def options(command: str) -> list[str]:
    """The options of a command, as its help lists them."""
    (commands,) = (action for action in _parser()._actions if action.choices)
    return [name for action in commands.choices[command]._actions for name in action.option_strings]


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - {"release", "sample", "work"}))  # make's affairs
def test_the_page_shows_every_command(command):
    assert re.search(rf"python -m grading {command}\b", source(PAGE))


@pytest.mark.parametrize("option", [name for name in options("run") if name not in {"-h", "--help", "--course"}])
def test_the_page_explains_every_option_of_a_run(option):
    assert re.search(rf"^\| `{option}\b", source(PAGE), re.MULTILINE)


def test_no_option_is_named_that_does_not_exist():
    real = {name for command in COMMANDS for name in options(command)}
    table = source(PAGE).split("## Grade\n")[1].split("\n**You can stop a run")[0]
    assert set(re.findall(r"^\| `(--[a-z-]+)", table, re.MULTILINE)) <= real


@pytest.mark.parametrize("verdict", Verdict)
def test_the_page_has_every_verdict_with_its_meaning(verdict):
    html = re.sub(r"<iframe.*?</iframe>", "", text(f"{PAGE}.html"), flags=re.DOTALL)
    row = re.search(rf"<tr\b[^>]*><td>(?:<p>)?<strong>{verdict}</strong>(.*?)</tr>", html, re.DOTALL)
    assert row
    assert verdict.text in unescape(row[1])


def test_two_real_pages_are_framed_and_nothing_in_them_runs_or_leads_anywhere():
    report, feedback = frames()
    for attributes, page in (report, feedback):
        assert re.search(r" sandbox(?: |$|=\"\")", attributes), "a frame without a sandbox"
        assert re.search(r'title="[^"]{20,}"', attributes)
        assert not re.search(r"<(?:script|iframe|link|base|form|object|embed)\b| href=| on\w+=", page)
        assert not re.search(r"""\b(?:src|srcset)=["'](?!data:)""", page)
        assert "default-src 'none'" in page
    assert "Score distribution" in report[1]
    assert "Difficulty and discrimination" in report[1]
    assert "dmitri" in feedback[1]
    assert "normalised along the first axis" in feedback[1]


def test_the_framed_feedback_gives_no_answer_away():
    assert not [page for _, page in frames() if re.search(r"_answer\b", re.sub(r"<[^>]+>", "", page))]


def test_the_page_is_small_and_names_no_place_on_a_machine():
    html = text(f"{PAGE}.html")
    assert len(html.encode()) < MOST
    assert not re.findall(r"/(?:tmp|home|root|Users|work)/[\w.-]+/", unescape(html))


def test_the_late_penalty_of_the_page_takes_a_tenth_a_day_and_no_more_than_there_is():
    (code,) = re.findall(r"```python\n(from nbgrader\.plugins.*?)```", source(PAGE), re.DOTALL)
    names: dict[str, type] = {}
    exec(code, names)
    penalty = names["TenthADay"]().late_submission_penalty
    assert [penalty("ada", 20, seconds) for seconds in (1, 86_400, 86_401, 10_000_000)] == [2, 2, 4, 20]


def test_the_files_and_targets_that_the_page_names_are_there():
    named = set(re.findall(r"`((?:grading|attnlib|solutions|exercises|tests)/[\w./-]*)`", source(PAGE)))
    assert named
    assert not [name for name in named if not (ROOT / name).exists()]
