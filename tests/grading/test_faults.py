"""What fails around a submission, and not in it, costs nobody a grade in silence: it has a verdict, or clear words."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

import psutil
import pytest
from attacks.case import QUESTIONS, Case
from attacks.course import NAME, RIGHT, WRONG, hand_in, repository
from attacks.measure import survivors
from gradebooks import contents

import grading.gradebook.sqlite
from grading.course import Course, GradingError
from grading.judge import Judge
from grading.pool import Boxes
from grading.report import rows
from grading.run import How, run
from grading.run_state import lock
from grading.safe_files import SafeFolder
from grading.sandbox import host
from grading.sandbox.bubblewrap import NoSandboxError
from grading.sandbox.inside import frames
from grading.sandbox.submission_process import SubmissionProcess
from grading.submission import Submissions

pytestmark = pytest.mark.slow

CASES = (
    Case("ada", "right", base="right"),
    Case("bela", "wrong", base="wrong"),
    Case("chloe", "half", {"dot": WRONG["dot"]}, base="right"),
)
SCORES = {"ada": (4, 2, 1, 3), "bela": (3, 0, 0, 0), "chloe": (4, 0, 1, 3)}
HOW = How(pages=False)
KEPT = How(pages=False, regrade=True)
SEED = "5eed" * 8


def course_at(place: Path, cases=CASES) -> Course:
    course = Course.at(repository(place / "repository", "mark"), place / "class")
    for case in cases:
        hand_in(course, case)
    course.reports(NAME).mkdir(parents=True)
    (course.reports(NAME) / "seed").write_text(SEED)
    return course


@pytest.fixture
def course(tmp_path) -> Course:
    return course_at(tmp_path)


def scores(course: Course) -> dict[str, tuple[float, ...]]:
    graded = {row.outcome.student: row.scores for row in rows(course, NAME)}
    return {name: tuple(row[f"{question}-check"][0] for question in QUESTIONS) for name, row in graded.items()}


def verdicts(outcomes) -> dict[str, str]:
    return {outcome.student: outcome.verdict for outcome in outcomes}


GRADED = dict.fromkeys(SCORES, "graded")
FAILED = dict.fromkeys(SCORES, "infrastructure")


# The box --------------------------------------------------------------------------------------------------------------


def kill_servers() -> None:
    """Kill every box of this process, as the system does when memory runs out."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "grading.sandbox.inside.fork_server" in process.cmdline():
                process.kill()


@contextmanager
def killing(when: Callable[[int], bool]) -> Iterator[list[int]]:
    """Kill the boxes as soon as a question is asked, if its number says so."""
    asked, ask = [0], SubmissionProcess.ask

    def killed(self, message, most=frames.MAX_MESSAGE_BYTES):
        asked[0] += 1
        if when(asked[0]):
            kill_servers()
        yield from ask(self, message, most)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SubmissionProcess, "ask", killed)
        yield asked


@pytest.fixture
def proven(boxes) -> Boxes:
    """The boxes, once they have been seen to hold."""
    boxes.submit(()).result()
    return boxes


def test_a_box_that_is_killed_once_costs_nobody_anything(course, proven):
    with killing(lambda number: number == 4) as asked:
        assert verdicts(run(course, NAME, how=HOW, pool=proven)) == GRADED
    assert asked[0] > 4
    assert scores(course) == SCORES


def test_a_box_that_is_killed_every_time_is_the_graders_failure(course, proven):
    with killing(lambda number: True):
        (outcome,) = run(course, NAME, ["ada"], HOW, pool=proven)
    assert outcome.verdict == "infrastructure"
    assert "the sandbox" in outcome.reason or "isolated" in outcome.reason
    assert scores(course) == {"ada": (0, 0, 0, 0)}


def test_without_bubblewrap_nothing_is_graded_and_it_says_how_to_get_it(course, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoSandboxError, match=r"bubblewrap .* is not installed.*apt-get install bubblewrap"):
        run(course, NAME, how=HOW)
    assert not course.outcomes(NAME).exists()


@contextmanager
def _broken_payload() -> Iterator[Path]:
    raise PermissionError(13, "Permission denied", "/payload")
    yield Path()


def test_a_payload_that_cannot_be_read_is_the_graders_failure(course, monkeypatch):
    monkeypatch.setattr(host, "packed_payload", _broken_payload)
    with pytest.raises((GradingError, PermissionError), match="/payload"):
        run(course, NAME, how=HOW)
    assert not list(course.folder.glob(f"autograded/*/{NAME}/*.ipynb"))


def test_a_payload_with_nothing_in_it_is_the_graders_failure(course, monkeypatch, tmp_path):
    @contextmanager
    def empty() -> Iterator[Path]:
        yield tmp_path

    tmp_path.chmod(0o755)
    monkeypatch.setattr(host, "packed_payload", empty)
    with pytest.raises(GradingError, match=r"did not start.*No module named 'grading'"):
        run(course, NAME, how=HOW)
    assert not list(course.folder.glob(f"autograded/*/{NAME}/*.ipynb"))


# The disk -------------------------------------------------------------------------------------------------------------


def test_a_disk_that_is_full_for_one_costs_the_others_nothing(course, boxes, monkeypatch):
    full = OSError(28, "No space left on device")
    write = SafeFolder.write

    def fails(self, file, *content):
        if {"autograded", "bela"} <= set(file.parts):
            raise full
        write(self, file, *content)

    monkeypatch.setattr(SafeFolder, "write", fails)
    outcomes = run(course, NAME, how=HOW, pool=boxes)
    assert verdicts(outcomes) == GRADED | {"bela": "infrastructure"}
    assert "No space left on device" in outcomes[1].reason
    assert scores(course) == SCORES | {"bela": (0, 0, 0, 0)}
    monkeypatch.undo()
    assert verdicts(run(course, NAME, how=KEPT, pool=boxes)) == GRADED
    assert scores(course) == SCORES


def _fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(1000)):
            pass


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    line = ["mount", "-t", "tmpfs", "-o", "size=700k", "none", str(place)]
    if os.getuid() or subprocess.run(line, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount a small disk")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)  # the log is open still


def test_a_disk_that_is_full_stops_the_run_and_the_next_one_ends_it(small_disk, tmp_path, boxes):
    full = Course.at(repository(tmp_path / "repository", "mark"), small_disk)
    for case in CASES:
        hand_in(full, case)
    _fill(small_disk / "ballast")
    with pytest.raises(Exception, match=r"No space left|full|disk"):
        run(full, NAME, how=HOW, pool=boxes)
    assert not full.outcomes(NAME).exists() or set(scores(full).values()) <= {(0, 0, 0, 0), *SCORES.values()}
    (small_disk / "ballast").unlink()
    assert verdicts(run(full, NAME, how=KEPT, pool=boxes)) == GRADED
    assert scores(full) == SCORES


def test_a_folder_that_cannot_be_written_is_the_graders_failure(course, boxes):
    (course.folder / "autograded").write_text("a file in place of the folder")
    outcomes = run(course, NAME, how=HOW, pool=boxes)
    assert verdicts(outcomes) == FAILED
    assert all("autograded" in outcome.reason for outcome in outcomes)
    (course.folder / "autograded").unlink()
    assert verdicts(run(course, NAME, how=KEPT, pool=boxes)) == GRADED
    assert scores(course) == SCORES


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_the_graders_failure(course, boxes):
    (course.folder / "autograded").mkdir(mode=0o555)
    outcomes = run(course, NAME, how=HOW, pool=boxes)
    assert verdicts(outcomes) == FAILED


def test_a_gradebook_that_another_program_keeps_locked_is_named(course, boxes, monkeypatch):
    monkeypatch.setattr(grading.gradebook.sqlite, "BUSY_TIMEOUT", 0.1)
    run(course, NAME, how=HOW, pool=boxes)
    with sqlite3.connect(course.folder / "gradebook.db", isolation_level=None) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(Exception, match="database is locked"):
            run(course, NAME, how=KEPT, pool=boxes)
        other.execute("ROLLBACK")
    assert scores(course) == SCORES
    assert verdicts(run(course, NAME, how=KEPT, pool=boxes)) == GRADED


# The grader -----------------------------------------------------------------------------------------------------------


def test_a_judge_that_raises_is_the_graders_failure_on_that_question_alone(course, boxes, monkeypatch):
    outputs = Judge.outputs

    def failing(self, graded_cell, answered, stop):
        if graded_cell.cell == "dot-check":
            raise ZeroDivisionError("a fault of the judge")
        return outputs(self, graded_cell, answered, stop)

    monkeypatch.setattr(Judge, "outputs", failing)
    outcomes = run(course, NAME, how=HOW, pool=boxes)
    assert verdicts(outcomes) == FAILED
    assert all("a fault of the judge" in outcome.reason and "dot-check" in outcome.reason for outcome in outcomes)
    assert scores(course) == {name: (*row[:1], 0, *row[2:]) for name, row in SCORES.items()}
    monkeypatch.undo()
    assert verdicts(run(course, NAME, how=HOW, pool=boxes)) == GRADED, "it is never final"
    assert scores(course) == SCORES


def test_a_grader_that_raises_for_one_costs_the_others_nothing(course, boxes, monkeypatch):
    settled = Submissions._settled

    def failing(self, submission, results, *where):
        if submission.student == "bela":
            raise RecursionError("a fault of the grader")
        return settled(self, submission, results, *where)

    monkeypatch.setattr(Submissions, "_settled", failing)
    outcomes = run(course, NAME, how=HOW, pool=boxes)
    assert verdicts(outcomes) == GRADED | {"bela": "infrastructure"}
    assert scores(course) == SCORES | {"bela": (0, 0, 0, 0)}


def test_a_clock_that_jumps_changes_no_grade(course, boxes, monkeypatch):
    jumps = iter(range(10**9))
    monkeypatch.setattr(time, "time", lambda: 1e9 + 86_400.0 * (next(jumps) % 2) * 3650)
    assert verdicts(run(course, NAME, how=HOW, pool=boxes)) == GRADED
    assert scores(course) == SCORES


def test_two_runs_on_a_class_are_one_too_many(course, boxes):
    with (
        lock(course),
        pytest.raises(GradingError, match=r"a run on this class is in progress .* wait for it or stop it"),
    ):
        run(course, NAME, how=HOW, pool=boxes)
    assert verdicts(run(course, NAME, how=HOW, pool=boxes)) == GRADED


# The end of the process -----------------------------------------------------------------------------------------------

MAIN = """import sys
from pathlib import Path
import grading.__main__ as program
program.ROOT = Path(sys.argv.pop(1))
sys.exit(program.main())
"""
MANY = tuple(
    Case(f"s{n}", "waits", {"first": "import time; time.sleep(0.4)"} | ({"dot": RIGHT["dot"]} if n % 2 else {}))
    for n in range(6)
)


@contextmanager
def started(course: Course, box: Path) -> Iterator[subprocess.Popen[str]]:
    """Run ``python -m grading run`` on a class, in a process of its own."""
    box.mkdir(exist_ok=True)
    line = [sys.executable, "-c", MAIN, str(course.root), "run", NAME, "--course", str(course.folder), "--jobs", "1"]
    settings = os.environ | {"TMPDIR": str(box)}
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=settings)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def wait_for(course: Course, most: int, process: subprocess.Popen[str]) -> None:
    """Wait until so many have been graded."""
    while len(list(course.outcomes(NAME).glob("*.json"))) < most:
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.02)


def finished(course: Course, boxes: Boxes) -> dict[str, list[tuple[object, ...]]]:
    """Grade to the end in this process, and return what the gradebook holds then."""
    run(course, NAME, how=HOW, pool=boxes)
    return contents(f"sqlite:///{course.folder / 'gradebook.db'}")


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory, boxes) -> dict[str, list[tuple[object, ...]]]:
    return finished(course_at(tmp_path_factory.mktemp("uninterrupted"), MANY), boxes)


def test_ctrl_c_says_how_to_go_on_and_going_on_ends_the_same(tmp_path, uninterrupted, boxes):
    course, box = course_at(tmp_path, MANY), tmp_path / "box"
    with started(course, box) as process:
        wait_for(course, 2, process)
        process.send_signal(signal.SIGINT)
        said = process.communicate()[0]
    assert process.returncode == 1
    assert "error: stopped:" in said
    assert "Run the same command again to go on from there" in said
    assert "Traceback" not in said
    assert 2 <= len(list(course.outcomes(NAME).glob("*.json"))) < len(MANY)
    assert (course.reports(NAME) / "seed").read_text() == SEED
    assert survivors(box) == []
    assert finished(course, boxes) == uninterrupted


def test_a_run_that_is_killed_again_and_again_ends_the_same(tmp_path, uninterrupted, boxes):
    course, box = course_at(tmp_path, MANY), tmp_path / "box"
    for graded in (0, 3):
        with started(course, box) as process:
            if graded:
                wait_for(course, graded, process)
            else:
                time.sleep(1.5)  # while it prepares itself
            process.kill()
    assert survivors(box) == []
    assert (course.reports(NAME) / "seed").read_text() == SEED
    assert finished(course, boxes) == uninterrupted


def test_the_comparison_sees_a_grade_that_differs(tmp_path, uninterrupted, boxes):
    course = course_at(tmp_path, MANY)
    hand_in(course, Case(token_hex(4), "one more", base="right"))
    assert finished(course, boxes) != uninterrupted
