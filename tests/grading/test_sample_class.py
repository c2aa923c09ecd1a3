"""The made-up class gets the grades and hears of the mistakes that it was made for. One run of the command line."""

import csv
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from grading.__main__ import main
from grading.collect.collect import collect
from grading.course import Course
from grading.outcome import Finding
from grading.report import Row, rows
from grading.roster.importing import import_roster
from grading.timestamp import handed_in

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ASSIGNMENT = "02-self-attention"
CHECKS = (
    *("softmax", "shift-or-stretch", "dot", "cosine", "gaussian", "mended", "moved-together"),
    *("attention", "forgotten-root", "self-attention", "torch-attention"),
)
FULL = (4, 1, 2, 3, 2, 3, 1, 4, 1, 2, 3)
UNANSWERED = (
    *("softmax", "shift-or-stretch", "dot", "cosine", "gaussian", "gaussian_without_differences", "moved-together"),
    *("attention", "forgotten-root", "self_attention", "attention (torch)"),
)

# student: verdict, the points of each check, the mistakes (or None, where none is known) by question
EXPECTED: dict[str, tuple[str, tuple[float, ...], dict[str, str | None]]] = {
    "ada": ("graded", FULL, {}),
    "bela": ("graded", FULL, {}),
    "chloe": (
        "graded",
        (3, 0, 2, 3, 2, 3, 1, 3.5, 1, 1.75, 3),
        {
            "softmax": "no-shift",
            "shift-or-stretch": "A",
            "attention": "overflow",
            "self_attention": "overflow",
        },
    ),
    "dmitri": (
        "graded",
        (0, 1, 2, 3, 2, 3, 1, 0, 0, 0, 3),
        {
            "softmax": "first-axis",
            "attention": "softmax-over-queries",
            "forgotten-root": "A",
            "self_attention": "softmax-over-queries",
        },
    ),
    "emeka": (
        "graded",
        (4, 1, 2, 0, 0, 0, 0, 0, 1, 0, 3),
        {
            "cosine": "no-normalisation",
            "gaussian": "no-half",
            "gaussian_without_differences": "single-mixed-term",
            "moved-together": "B",
            "attention": "no-scale",
            "self_attention": "no-scale",
        },
    ),
    "fatima": (
        "graded",
        (4, 0, 2, 3, 1.25, 3, 1, 4, 0, 0, 3),
        {
            "shift-or-stretch": "D",
            "gaussian": "bandwidth-not-squared",
            "forgotten-root": "B",
            "self_attention": "softmax-over-queries",
        },
    ),
    "goran": (
        "student-error",
        (4, 1, 0, 0, 2, 3, 0, 0, 1, 0, 3),
        {"moved-together": "D"} | dict.fromkeys(("dot", "cosine", "attention", "self_attention"), "not-transposed"),
    ),
    "hana": ("graded", (0,) * len(FULL), dict.fromkeys(UNANSWERED)),
    "ivan": ("timeout", (4, 1, 2, 3, 2, 3, 1, 0, 1, 0, 3), {"attention": None, "self_attention": None}),
    "jun": ("graded", FULL, {}),
    "karim": ("unreadable", (0,) * len(FULL), {}),
    "lena": ("graded", FULL, {}),
    "milo": ("graded", (0, *FULL[1:]), {"softmax": "unknown-name"}),
}


def visible(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.name.startswith((".", "_build"))}


@pytest.fixture(scope="session")
def course(tmp_path_factory) -> Course:
    return Course.at(ROOT, tmp_path_factory.mktemp("class"))


@pytest.fixture(scope="session")
def printed(course) -> str:
    before = visible(ROOT)
    where = [ASSIGNMENT, "--course", str(course.folder)]
    assert main(["sample", *where]) == 0
    asked = [sys.executable, "-m", "grading", "run", *where, "--jobs", "2", "--timeout", "2"]
    result = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert visible(ROOT) == before, "a run wrote into the repository"
    progress = re.sub(r"^.*\d+/1[23] .*$", "", result.stderr.replace("\r", "\n"), flags=re.MULTILINE)
    assert not progress.strip(), "something besides the progress bar came to the terminal"
    return result.stdout


@pytest.fixture(scope="session")
def graded(course, printed) -> dict[str, Row]:
    return {row.outcome.student: row for row in rows(course, ASSIGNMENT)}


def test_everybody_has_a_row(graded):
    assert graded.keys() == EXPECTED.keys()


@pytest.mark.parametrize("student", EXPECTED)
def test_the_grades_are_those_that_the_student_was_made_for(graded, student):
    verdict, scores, _ = EXPECTED[student]
    row = graded[student]
    assert row.outcome.verdict == verdict
    assert tuple(row.scores[f"{name}-check"][0] for name in CHECKS) == pytest.approx(scores)
    assert row.points == sum(FULL) + 3


@pytest.mark.parametrize("student", EXPECTED)
def test_the_mistakes_are_named(graded, student):
    found: tuple[Finding, ...] = graded[student].outcome.findings
    assert {finding.question: finding.mistake for finding in found} == EXPECTED[student][2]


def test_a_written_answer_waits_for_a_person_unless_there_is_none(graded):
    assert {student for student, row in graded.items() if row.to_read == 0} == {"hana", "karim"}


def test_the_terminal_shows_the_table_and_where_the_rest_is(printed, course):
    assert re.search(r"^ada +26 / 29 +1 +graded$", printed, re.MULTILINE)
    assert "softmax: no-shift" in printed
    assert str(course.reports(ASSIGNMENT) / "grades.html") in printed


def test_its_download_is_collected_like_one_of_blackboards(tmp_path):
    assert main(["sample", ASSIGNMENT, "--download", str(tmp_path / "practice")]) == 0
    course = Course.at(ROOT, tmp_path / "class")
    import_roster(course, tmp_path / "practice" / "students.csv", {})
    said = collect(course, ASSIGNMENT, [tmp_path / "practice" / "submissions.zip"], UTC)
    assert "submissions.zip: recognised as a download from Blackboard" in said
    assert "nothing handed in (1):\n  Nora Berg (nora)\n" in said
    assert course.students() == sorted(EXPECTED)
    times = {name: handed_in(course.submitted(name, ASSIGNMENT)).when for name in EXPECTED}
    assert [name for name, when in times.items() if when > datetime(2030, 1, 31, 23, 59)] == ["jun"]


def test_the_csv_has_the_same_scores(course, graded):
    with (course.reports(ASSIGNMENT) / "grades.csv").open(newline="") as file:
        written = {line["student"]: float(line["score"]) for line in csv.DictReader(file)}
    assert written == {student: row.score for student, row in graded.items()}


def test_feedback_shows_score_and_explanation(graded):
    page = graded["chloe"].feedback[0].read_text()
    assert "23.25 / 29 points" in page
    assert "overflows for large scores · 3 of 4 points" in page
    assert "Reread: “When the exponential overflows”" in page


def test_feedback_says_what_is_wrong_once(graded):
    page = graded["dmitri"].feedback[0].read_text()
    assert page.count("softmax: normalised along the first axis · 0 of 4 points") == 1
    assert "CheckFailed" not in page


@pytest.mark.parametrize("student", sorted(EXPECTED.keys() - {"karim"}))
def test_feedback_asks_no_other_host_for_anything(graded, student):
    page = graded[student].feedback[0].read_text()
    assert not re.findall(r"""(?:src|srcset|action|data|poster)\s*=\s*["']?\s*(?!data:)(?:https?:)?//""", page)
    assert not re.findall(r"<(?:script|link|iframe|object|embed|form|base)\b|@import|url\(", page)
    assert "default-src 'none'" in page
