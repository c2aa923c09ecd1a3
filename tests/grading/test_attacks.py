"""A class of attackers: none gets a mark more or less than an honest submission, sees a secret, or disturbs anybody."""

import json
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

import numpy as np
import pytest
from attacks.case import QUESTIONS, Case
from attacks.course import NAME, RIGHT, hand_in, repository
from attacks.drive import LIMITS
from attacks.measure import files, in_boxes, state, survivors
from attacks.table import CASES

from grading._untyped import NotebookNode, read_notebook
from grading.course import Course
from grading.graded_cell import is_autograded
from grading.judge import Judge
from grading.release import notebook_templates
from grading.report import Row, rows
from grading.run import How, run
from grading.sandbox.host import Host

RUN_TIMEOUT = 1500  # seconds until a run counts as one that never ends
pytestmark = [pytest.mark.attack, pytest.mark.timeout(RUN_TIMEOUT + 300)]
HONEST = (
    Case("right", "answers everything right", base="right"),
    Case("wrong", "answers everything wrong, one question in parts", base="wrong"),
    Case("zz-victim", "answers right, and has a secret", {"choice": RIGHT["choice"] + "  # MARK"}, base="right"),
)
OWN_MARKS = {"zz-victim", "leaves-things-1", "leaves-things-2"}  # whose own notebooks hold their marks
RUNS = re.compile(  # what a page must not hold: elements that run or load something, handlers, addresses elsewhere
    r"<(script|iframe|svg|base|form|object|embed|link|meta http-equiv=.?refresh)|<[^<>]*\son\w+\s*=|"
    r"<[^<>]*\s(src|href|action)=.?(http|//|javascript)",
    re.IGNORECASE,
)
SAID = ("FOUND", "WROTE", "CONNECTED", "RAN", "MEMORY")  # how an attack says that it got somewhere


@dataclass(frozen=True)
class Ran:
    course: Course
    place: Path
    seed: str
    marks: dict[str, str]
    before: dict[str, str]
    after: dict[str, str]
    left: list[str]
    said: str
    rows: dict[str, Row]

    def out(self):
        """Every byte that came out of the run, but for what holds a mark of its own author."""
        yield Path("terminal"), self.said.encode()
        for path, data in files(*(self.course.folder / name for name in ("autograded", "feedback", "reports"))):
            if not OWN_MARKS & set(path.parts):
                yield path, data

    def notebook(self, student: str) -> NotebookNode:
        return read_notebook(self.course.autograded(student, NAME) / f"{NAME}.ipynb")


def class_of(place: Path, cases) -> Ran:
    """Grade a class in a process whose every secret is marked."""
    marks = {
        name: f"CANARY-{name}-{token_hex(12)}" for name in ("solution", "home", "token", "database", "left", "file")
    }
    root, folder, home, box = (place / name for name in ("repository", "class", "home", "temporary"))
    repository(root, marks["solution"])
    (root / "notes.txt").write_text(marks["file"])
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_ed25519").write_text(marks["home"])
    box.mkdir()
    course, seed = Course.at(root, folder), token_hex(16)
    for case in cases:
        hand_in(course, case, marks["left"])
    course.reports(NAME).mkdir(parents=True)
    (course.reports(NAME) / "seed").write_text(seed)
    outside = (root, home, folder / "submitted")
    before = state(*outside)
    known = {"HOME": str(home), "TMPDIR": str(box), "GRADER_TOKEN": marks["token"], "JUPYTER_PLATFORM_DIRS": "1"}
    paths = os.pathsep.join(map(str, (Path(__file__).parent, Path(__file__).parents[2])))  # of attacks, and of grading
    known |= {"ATTENTION_DB": f"sqlite:///{place / marks['database']}.db", "PYTHONPATH": paths}
    line = [sys.executable, "-m", "attacks.drive", str(root), str(folder)]
    done = subprocess.run(line, capture_output=True, text=True, env=os.environ | known, timeout=RUN_TIMEOUT, cwd=place)
    assert done.returncode == 0, done.stderr[-3000:]
    left = survivors(box)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENTION_DB", known["ATTENTION_DB"])
        graded = {row.outcome.student: row for row in rows(course, NAME)}
    return Ran(course, place, seed, marks, before, state(*outside), left, done.stdout + done.stderr, graded)


@pytest.fixture(scope="module")
def ran(tmp_path_factory) -> Ran:
    return class_of(tmp_path_factory.mktemp("attacked"), [*CASES.values(), *HONEST])


@pytest.fixture(scope="module")
def alone(tmp_path_factory, boxes) -> dict[str, Row]:
    """The honest students, graded without the others."""
    place = tmp_path_factory.mktemp("alone")
    course = Course.at(repository(place / "repository", "mark"), place / "class")
    for case in HONEST:
        hand_in(course, case)
    run(course, NAME, how=How(limits=LIMITS, pages=False), pool=boxes)
    return {row.outcome.student: row for row in rows(course, NAME)}


def scores(row: Row) -> dict[str, float]:
    return {name: row.scores[f"{name}-check"][0] for name in QUESTIONS}


def test_the_honest_earn_what_they_should(ran):
    assert scores(ran.rows["right"]) == {"softmax": 4, "dot": 2, "choice": 1, "attention": 3}
    wrong = scores(ran.rows["wrong"])
    assert 0 < wrong.pop("softmax") < 4
    assert set(wrong.values()) == {0}


@pytest.mark.parametrize("name", CASES)
def test_an_attack_earns_what_an_honest_submission_does(ran, name):
    honest = scores(ran.rows[CASES[name].base])
    expected = {question: 0 if question in CASES[name].loses else x for question, x in honest.items()}
    assert scores(ran.rows[name]) == expected, ran.rows[name].outcome


@pytest.mark.parametrize("name", CASES)
def test_an_attack_gets_its_verdict(ran, name):
    assert ran.rows[name].outcome.verdict in CASES[name].verdicts, ran.rows[name].outcome


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.flagged])
def test_an_instructor_is_pointed_at_it(ran, name):
    assert ran.rows[name].outcome.flags


def test_the_honest_are_not_disturbed(ran, alone):
    for case in HONEST:
        assert ran.rows[case.name].scores == alone[case.name].scores
        assert ran.rows[case.name].outcome.verdict == "graded"
        assert ran.rows[case.name].outcome.findings == alone[case.name].outcome.findings


def test_no_secret_comes_out(ran):
    for path, data in ran.out():
        assert [name for name, mark in ran.marks.items() if mark.encode() in data] == [], path


def test_neither_the_seed_nor_an_expected_number_comes_out(ran):
    for path, data in ran.out():
        if (
            path.name == "audit.log"
        ):  # which stays with the instructor; its last entry reveals the seed of a complete run
            data = data.rpartition(b"\n{")[0]
        assert ran.seed.encode() not in data, path
        assert str(int(ran.seed, 16)).encode() not in data, path
    numbers = expected_numbers(ran)
    for student in ran.rows:
        if ran.course.autograded(student, NAME).exists():
            shown = [
                cell.outputs for cell in ran.notebook(student).cells if "outputs" in cell and not is_autograded(cell)
            ]
            assert numbers & printed(json.dumps(shown)) == set(), student


def expected_numbers(ran: Ran) -> set[str]:
    """The expected answers, as they would be printed."""
    judge = Judge(int(ran.seed, 16))
    for template in notebook_templates(ran.course, NAME):
        for graded_cell in template.graded_cells.values():
            judge.probe(graded_cell)
    arrays = [x for each in judge._evaluations.values() for answer in each.expected for x in answer.arrays.values()]
    return printed(" ".join(repr(float(n)) for x in arrays for n in np.ravel(x)))


def printed(text: str) -> set[str]:
    """Return the numbers in a text that nobody would hit by chance: their first nine digits behind the point."""
    return set(re.findall(r"\.(\d{9})", text))


def test_nothing_outside_is_changed(ran):
    assert ran.after == ran.before


def test_no_process_is_left(ran):
    assert ran.left == []


def test_no_attack_says_that_it_got_anywhere(ran):
    for student in ran.rows:
        if ran.course.autograded(student, NAME).exists():
            for cell in ran.notebook(student).cells:
                for output in cell.get("outputs", []):
                    lines = output.get("text", "").split("\n")
                    assert [line for line in lines if line.startswith(SAID)] == [], student
                    assert [line for line in lines if line.startswith("LEFT") and not line.endswith("[]")] == [], (
                        student
                    )


def test_there_is_a_page_for_everybody_and_nothing_runs_in_it(ran):
    for student in ran.rows:
        if not ran.course.autograded(student, NAME).exists():
            continue
        page = (ran.course.feedback(student, NAME) / f"{NAME}.html").read_text()
        assert RUNS.search(page) is None, student


def test_the_terminal_gets_no_codes_of_a_student(ran):
    assert "\x1b]0" not in ran.said
    assert "owned" not in ran.said


def test_nothing_grows_without_bound(ran):
    for path, data in ran.out():
        assert path.suffix != ".ipynb" or len(data) < 2.5 * LIMITS.notebook_output, path
        assert len(data) < 10 * LIMITS.notebook_output, path


# Whether the tests above would see it --------------------------------------------------------------------------------


def test_a_process_in_a_box_is_seen(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Host(LIMITS) as host:
        with host.submission_process() as process:
            list(process.ask({"run": "import subprocess; subprocess.Popen(['sleep', '60'])"}))
            assert sum(one.endswith(" sleep") for one in in_boxes(tmp_path)) == 1
        assert sum(one.endswith(" sleep") for one in in_boxes(tmp_path)) == 0
    assert survivors(tmp_path) == []


def test_a_mark_is_found_by_the_attack_where_nothing_keeps_it_away(tmp_path):
    place = tmp_path / "home" / ".ssh" / "id"
    place.parent.mkdir(parents=True)
    place.write_text(f"CANARY-home-{token_hex(12)}")
    hunt = CASES["reads-the-machine"].cells["first"].replace('hunt("/")', f'hunt("{tmp_path}")')
    with Host(LIMITS, sandboxed=False) as host, host.submission_process() as process:
        said = json.dumps(list(process.ask({"run": hunt})))
    assert place.read_text() in said


def test_a_file_that_changes_is_seen(tmp_path):
    (tmp_path / "a").write_text("1")
    before = state(tmp_path)
    (tmp_path / "a").write_text("2")
    assert state(tmp_path) != before


@pytest.mark.parametrize(
    "bad", ["<script>x", "<IMG src=x onerror=y>", "<svg onload=x>", '<img src="http://a/b">', "<a href='javascript:x'>"]
)
def test_what_runs_in_a_page_is_seen(bad):
    assert RUNS.search(bad)


def test_the_expected_numbers_are_there_to_be_looked_for(ran):
    assert len(expected_numbers(ran)) > 100
