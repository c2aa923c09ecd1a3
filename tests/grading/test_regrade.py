"""A regrade request is rerun as it was graded, decided by a person who is kept, and the mark survives later runs."""

import pytest
from tiny import OVERFLOWS

from grading.collect.attempts import Attempts
from grading.collect.best import choose_best
from grading.course import GradingError, log_file
from grading.gradebook.assignment import AssignmentGradebook
from grading.gradebook.create import open_gradebook
from grading.hand_marks import log_marks
from grading.regrade.decide import decide
from grading.regrade.requests import ask, listed, requests_of
from grading.regrade.rerun import rerun
from grading.report import rows
from grading.run import How, run
from grading.run_state import RunState
from grading.verify import verify

pytestmark = pytest.mark.slow


@pytest.fixture
def course(tiny, boxes):
    """Ada got 0.5 points for an answer that earns 1.5 with the checks of today; then she handed in again."""
    tiny.submit("ada", answer_one=OVERFLOWS)
    run(tiny, "tiny", pool=boxes, how=How(pages=False))
    with open_gradebook(tiny) as gradebook:
        gradebook.find_grade("check-one", "tiny", "tiny", "ada").auto_score = 0.5
        gradebook.db.commit()
    attempts = Attempts(tiny, "tiny")
    attempts.submit(attempts.submitted("ada"))  # moves it to the attempts
    tiny.submit("ada")
    return tiny


def scores(course):
    (row,) = rows(course, "tiny")
    return {question: score for question, (score, _) in row.scores.items()}


def state(course):
    return {
        str(f): f.read_bytes() for f in course.folder.rglob("*") if f.is_file() and f.suffix not in (".lock", ".log")
    }


def test_a_request_from_beginning_to_end(course, boxes):
    for wrong in (("bob", "check-one", "x"), ("ada", "check-four", "x"), ("ada", "check-one", " ")):
        with pytest.raises(GradingError):
            ask(course, "tiny", *wrong)
    ask(course, "tiny", "ada", "check-one", "It is right for\x1b[31m small numbers")
    before = state(course)
    said = rerun(course, "tiny", How(pages=False), boxes)
    assert state(course) == before, "nothing of the class changes"
    assert "check-one: given 0.5, now 1.5 of 2" in said, "the submission that was graded, and not the later one"
    assert "note: the submission" not in said
    assert "softmax: no-shift (overflows" in said.split("now:")[1]
    assert "\x1b" not in said

    with pytest.raises(GradingError, match="expected 0 to 2"):
        decide(course, "tiny", 1, 2.5, "E. Noether", "why")
    with pytest.raises(GradingError, match="an author and a reason"):
        decide(course, "tiny", 1, 1.5, "", "why")
    assert "0.5 → 1.5 points" in decide(course, "tiny", 1, 1.5, "E. Noether", "the check was too strict")
    with pytest.raises(GradingError, match="decided by E\\. Noether: the check was too strict"):
        decide(course, "tiny", 1, 2, "Somebody", "else")
    assert scores(course)["check-one"] == 1.5

    run(course, "tiny", pool=boxes, how=How(pages=False, regrade=True))
    assert scores(course)["check-one"] == 1.5, "a mark given by hand survives, even if everybody is graded again"
    audit = RunState(course, "tiny").audit
    (request,) = requests_of(audit)
    assert (request.decision.by, request.decision.points) == ("E. Noether", 1.5)
    assert "1 request, 0 open" in listed(course, "tiny")
    with AssignmentGradebook(course, "tiny", log_file(course, "tiny")) as gradebook:
        assert verify(course, "tiny", gradebook).wrong == ()
        gradebook.mark("ada", "check-two", 1)
        found = verify(course, "tiny", gradebook)
        assert (found.wrong, ["1 mark given by hand" in note for note in found.notes]) == ((), [True])
    assert "1 mark logged as given or changed by A. Turing" in log_marks(course, "tiny", "A. Turing")
    assert "0 marks logged" in log_marks(course, "tiny", "Somebody else")
    with AssignmentGradebook(course, "tiny", log_file(course, "tiny")) as gradebook:
        assert (verify(course, "tiny", gradebook).wrong, verify(course, "tiny", gradebook).notes) == ((), ())
        gradebook.mark("ada", "check-one", 2)
        (wrong,) = verify(course, "tiny", gradebook).wrong
        assert "ada: check-one: the mark given by hand is 2.0, but the log says 1.5" in wrong
        log = course.reports("tiny") / "audit.log"
        log.write_bytes(log.read_bytes().replace(b"E. Noether", b"Somebody  "))
        assert "an entry was changed" in " ".join(verify(course, "tiny", gradebook).wrong)


def test_the_best_attempt_counts_after_its_penalty_and_the_first_of_equals(tiny, boxes):
    """Bela's later answer earns 6 points instead of 5.5, less a quarter for a day of lateness. Cleo's is worse."""
    (tiny.folder / "course.toml").write_text("late_penalty_per_day = 0.25\n")
    attempts = Attempts(tiny, "tiny")
    came = [("bela", OVERFLOWS, "2030-01-10"), ("bela", None, "2030-01-11"), ("cleo", None, "2030-01-09"),
            ("cleo", OVERFLOWS, "2030-01-10")]  # fmt: skip
    for student, answer, day in came:
        tiny.submit(student, **({"answer_one": answer} if answer else {}))
        (tiny.submitted(student, "tiny") / "timestamp.txt").write_text(f"{day} 12:00:00 UTC")
        attempts.keep(
            attempts.submitted(student), {"tiny.ipynb": (tiny.submitted(student, "tiny") / "tiny.ipynb").read_bytes()}
        )
    run(tiny, "tiny", ["bela"], pool=boxes, how=How(pages=False))  # registers the assignment
    with open_gradebook(tiny) as gradebook:
        gradebook.update_or_create_assignment("tiny", duedate="2030-01-10 18:00 UTC")
    said = choose_best(tiny, "tiny", How(pages=False), boxes)
    assert "bela: attempt 1 of 2 (points after penalties: 5.5, 4.5)" in said
    assert "cleo: attempt 1 of 2 (points after penalties: 6, 5.5)" in said
    assert [attempts.submitted(student).when[:10] for student in ("bela", "cleo")] == ["2030-01-10", "2030-01-09"]
