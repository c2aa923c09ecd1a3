"""The log of gradings finds an edit, and no kill of the grader makes it cry wolf."""

import errno
import json
import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from hashlib import sha256

import pytest
from nbgrader.api import Gradebook
from tiny import OVERFLOWS

from grading.__main__ import main
from grading.course import Course, log_file
from grading.gradebook.assignment import AssignmentGradebook
from grading.outcome import LATENESS_CHANGED, TIME_UNKNOWN, Finding, Outcome
from grading.pages import NO_PAGE
from grading.run import How, run
from grading.run_state import RunState, agree
from grading.verify import verify

pytestmark = pytest.mark.slow

HOW = How(pages=False)
ADA = Outcome("ada", "graded", "", (Finding("softmax", "no-max", "overflows"),), "0" * 64)


@pytest.fixture(scope="module")
def course(tiny, boxes):
    """A class in three runs: ada, then bela, then bela again with another answer."""
    tiny.submit("ada")
    tiny.submit("bela", answer_one=OVERFLOWS)
    run(tiny, "tiny", ["ada"], HOW, pool=boxes)
    run(tiny, "tiny", how=HOW, pool=boxes)
    tiny.submit("bela")
    run(tiny, "tiny", how=HOW, pool=boxes)
    return tiny


def checked(course, known=""):
    with AssignmentGradebook(course, "tiny", log_file(course, "tiny")) as gradebook:
        return verify(course, "tiny", gradebook, known)


def log(course):
    return course.reports("tiny") / "audit.log"


@pytest.fixture
def kept(course):
    """Put everything back that a test has changed."""
    files = [log(course), course.folder / "gradebook.db", *course.outcomes("tiny").iterdir()]
    files.append(course.submitted("ada", "tiny") / "tiny.ipynb")
    before = {file: file.read_bytes() for file in files}
    yield course
    for file, content in before.items():
        file.write_bytes(content)


def test_what_was_graded_agrees_and_the_entries_say_what_they_should(course):
    found = checked(course)
    assert (found.wrong, found.notes, found.entries, found.students) == ((), (), 6, 2)
    lines = log(course).read_bytes().splitlines()
    said = [json.loads(line) for line in lines]
    assert [(one.get("student"), one.get("verdict"), one.get("score")) for one in said] == [
        ("ada", "graded", 6),
        (None, None, None),
        ("bela", "graded", 5.5),
        (None, None, None),
        ("bela", "graded", 6),
        (None, None, None),
    ]
    assert [one["previous"] for one in said] == ["0" * 64, *(sha256(line).hexdigest() for line in lines[:-1])]
    assert said[0]["seed"] == sha256(said[1]["revealed"].encode()).hexdigest() != said[2]["seed"]
    assert all(len(said[0][name]) == 64 for name in ("submission", "engine", "catalogue"))
    assert found.last == sha256(lines[-1]).hexdigest()


def edited(number, **changes):
    """Change an entry, as somebody would who does not look at the others."""

    def edit(lines):
        lines[number] = json.dumps(json.loads(lines[number]) | changes).encode()

    return edit


def chained(lines):
    """Make the digests fit again."""
    previous = "0" * 64
    for i, line in enumerate(lines):
        lines[i] = json.dumps(json.loads(line) | {"previous": previous}).encode()
        previous = sha256(lines[i]).hexdigest()


def rewritten(change):
    def edit(lines):
        change(lines)
        chained(lines)

    return edit


EDITS = {
    "a score": (edited(0, score=5), "entry 2 does not follow"),
    "a score that is none": (edited(0, score="much"), "entry 2 does not follow"),
    "a verdict": (edited(2, verdict="missing"), "entry 4 does not follow"),
    "removed": (lambda lines: lines.pop(1), "entry 2 does not follow"),
    "the first removed": (lambda lines: lines.pop(0), "entry 1 does not follow"),
    "another order": (lambda lines: lines.insert(0, lines.pop(1)), "entry 1 does not follow"),
    "said twice": (lambda lines: lines.insert(1, lines[0]), "entry 2 does not follow"),
    "the end cut off": (lambda lines: lines.__delitem__(slice(4, None)), "bela: the outcome is not the one"),
    "rewritten with another score": (rewritten(edited(4, score=5)), "bela: the gradebook's automatic score is 6"),
    "rewritten with another verdict": (rewritten(edited(4, verdict="timeout")), "bela: the outcome is not the one"),
    "rewritten with another submission": (rewritten(edited(0, submission="0" * 64)), "ada: the outcome is not the one"),
    "rewritten with another seed": (rewritten(edited(1, revealed="0" * 32)), "entry 1 was made under a different seed"),
    "rewritten without a student": (
        rewritten(lambda lines: lines.pop(0)),
        "ada: there is an outcome, but no log entry",
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_of_the_log_is_found(kept, name):
    edit, expected = EDITS[name]
    lines = log(kept).read_bytes().splitlines()
    edit(lines)
    log(kept).write_bytes(b"\n".join(lines) + b"\n")
    assert any(wrong.startswith(expected) for wrong in checked(kept).wrong), checked(kept).wrong


def test_an_edit_of_what_the_log_is_about_is_found(kept, capsys):
    with closing(sqlite3.connect(kept.folder / "gradebook.db")) as db:
        db.execute("UPDATE grade SET auto_score = 0 WHERE auto_score = 2")
        db.commit()
    run_state = RunState(kept, "tiny")
    (kept.outcomes("tiny") / "ada.json").unlink()
    kept.submit("ada", answer_one=OVERFLOWS)
    assert [wrong.partition(":")[0] for wrong in checked(kept).wrong] == ["ada", "ada", "bela"]
    assert run_state.outcome_of("ada") is None


CHANGED_OUTCOME = {
    "a reason": {"reason": "all is well"},
    "a long reason": {"reason": "x" * 290},
    "a finding": {"findings": ()},
    "a flag": {"flags": ()},
    "a version": {"version": "another"},
    "a limit of time": {"timeout": 99.0},
}


@pytest.mark.parametrize("what", CHANGED_OUTCOME)
def test_an_edit_of_an_outcome_is_found(kept, what):
    run_state = RunState(kept, "tiny")
    outcome = replace(ADA, flags=("look at it",), reason="y" * 290)
    run_state.announce(outcome, 6.0, sandboxed=True)
    run_state.store_outcome(outcome)
    entry = run_state.audit.entries()[0][-1].said
    assert agree(entry, run_state.outcome_of("ada"))
    run_state.store_outcome(replace(outcome, **CHANGED_OUTCOME[what]))
    assert not agree(entry, run_state.outcome_of("ada"))


@pytest.mark.parametrize("reason", ["", "cell 3 failed", *("x" * length for length in (270, 281, 282, 285, 299, 300))])
def test_what_changes_after_grading_is_no_edit(kept, reason):
    run_state = RunState(kept, "tiny")
    outcome = replace(ADA, flags=("look at it",), reason=reason)
    run_state.announce(outcome, 6.0, sandboxed=True)
    entry = run_state.audit.entries()[0][-1].said
    flags = (*outcome.flags, f"{LATENESS_CHANGED}late", f"{TIME_UNKNOWN}no file")
    run_state.store_outcome(replace(outcome, lateness="late", flags=flags, reason=f"{reason} {NO_PAGE}no room".strip()))
    assert agree(entry, run_state.outcome_of("ada"))


def test_an_entry_of_an_earlier_version_has_no_digest_of_the_outcome(kept):
    entry = {"submission": ADA.digest, "verdict": ADA.verdict}
    assert agree(entry, ADA)
    assert not agree(entry, replace(ADA, verdict="timeout"))


def test_verify_says_that_more_than_the_verdict_was_changed(kept):
    run_state = RunState(kept, "tiny")
    run_state.store_outcome(replace(run_state.outcome_of("ada"), flags=("harmless",)))
    changed = "ada: the outcome is not the one in the log: its reason, findings, flags or version were changed"
    assert checked(kept).wrong == (f"{changed}. The next `run` grades it again",)


FORGED = {
    "a verdict": {"verdict": "timeout"},
    "a finding": {"findings": ADA.findings},
    "a flag": {"flags": ("harmless",)},
}


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_outcome_is_graded_again_as_verify_says(kept, boxes, what, capsys):
    run_state = RunState(kept, "tiny")
    true = run_state.outcome_of("ada")
    run_state.store_outcome(replace(true, **FORGED[what]))
    assert [wrong.endswith("The next `run` grades it again") for wrong in checked(kept).wrong] == [True]
    capsys.readouterr()
    run(kept, "tiny", how=HOW, pool=boxes)
    told = [line for line in capsys.readouterr().out.splitlines() if "does not match" in line]
    assert told == ["ada: the stored outcome does not match the log, so the submission is graded again"]
    assert RunState(kept, "tiny").outcome_of("ada") == true
    assert checked(kept).wrong == ()


def test_a_mark_stays_settled_where_the_log_has_the_same_answers(kept, boxes):
    run_state = RunState(kept, "tiny")
    with Gradebook(kept.config().CourseDirectory.db_url) as gradebook:
        grade = gradebook.find_grade("check-two", "tiny", "tiny", "ada")
        grade.manual_score, grade.needs_manual_grade = 1.0, False
        gradebook.db.commit()
    run_state.store_outcome(replace(run_state.outcome_of("ada"), flags=("harmless",)))
    run(kept, "tiny", how=HOW, pool=boxes)
    with Gradebook(kept.config().CourseDirectory.db_url) as gradebook:
        grade = gradebook.find_grade("check-two", "tiny", "tiny", "ada")
        assert (grade.manual_score, grade.needs_manual_grade) == (1.0, False)


def test_an_earlier_outcome_put_back_is_graded_again(kept, boxes):
    run_state = RunState(kept, "tiny")
    earlier = run_state.outcome_of("ada")
    kept.submit("ada", answer_one=OVERFLOWS)
    run(kept, "tiny", how=HOW, pool=boxes)
    later = run_state.outcome_of("ada")
    run_state.store_outcome(replace(earlier, digest=later.digest))
    run(kept, "tiny", how=HOW, pool=boxes)
    assert run_state.outcome_of("ada") == later


def test_without_a_log_everything_is_graded_again(kept, boxes):
    log(kept).unlink()
    run(kept, "tiny", how=HOW, pool=boxes)
    assert (checked(kept).students, checked(kept).wrong) == (2, ())


def test_a_score_that_was_changed_comes_back_as_verify_says(kept, boxes):
    with closing(sqlite3.connect(kept.folder / "gradebook.db")) as db:
        db.execute("UPDATE grade SET auto_score = 0 WHERE auto_score = 2")
        db.commit()
    assert all(wrong.endswith("`run --regrade` grades it again") for wrong in checked(kept).wrong)
    run(kept, "tiny", how=replace(HOW, regrade=True), pool=boxes)
    assert checked(kept).wrong == ()


@pytest.fixture
def withdrawn(kept):
    folder = kept.submitted("ada", "tiny").parent
    folder.rename(kept.folder / "elsewhere")
    yield kept
    (kept.folder / "elsewhere").rename(folder)


def test_a_withdrawn_submission_is_told_without_advice_to_grade_it(withdrawn, boxes):
    found = checked(withdrawn)
    assert found.wrong == ()
    assert [note.partition(":")[0] for note in found.notes] == ["ada"]
    assert "there is no longer a submission" in found.notes[0]
    assert found.notes[0].endswith("removes the student with the grades of every assignment")
    with Gradebook(withdrawn.config().CourseDirectory.db_url) as gradebook:
        gradebook.remove_student("ada")  # as the note says
    assert (checked(withdrawn).wrong, len(checked(withdrawn).notes)) == ((), 1)


def test_another_gradebook_is_told_and_not_taken_for_changed_scores(kept, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("grading.__main__.ROOT", kept.root)
    monkeypatch.setenv("ATTENTION_DB", f"sqlite:///{tmp_path / 'other.db'}")
    assert main(["verify", "tiny", "--course", str(kept.folder)]) == 1
    said = capsys.readouterr()
    assert "knows none of them" in said.err
    assert f"migrate --from sqlite:///{kept.folder / 'gradebook.db'}" in said.err
    assert said.out == ""
    assert not (tmp_path / "other.db").exists(), "to look is not to make one"


def test_a_changed_submission_is_found(kept):
    kept.submit("ada", answer_one=OVERFLOWS)
    assert checked(kept).wrong == (
        "ada: the submission, or the assignment, is not what was graded. The next `run` grades it again",
    )


def test_a_mark_of_a_person_is_no_edit(kept):
    with closing(sqlite3.connect(kept.folder / "gradebook.db")) as db:
        db.execute("UPDATE grade SET manual_score = 1")
        db.commit()
    assert checked(kept).wrong == ()


def test_a_log_made_anew_is_found_by_an_entry_that_was_written_down(kept):
    last = checked(kept).last
    assert checked(kept, last).wrong == ()
    lines = log(kept).read_bytes().splitlines()[:-1]
    log(kept).write_bytes(b"\n".join(lines) + b"\n")
    assert checked(kept).wrong == (), "the end alone is missed by nobody who knows nothing else"
    assert checked(kept, last).wrong[0].startswith(f"there is no entry {last}")


class KilledError(BaseException):
    pass


def killed(*_, **__):
    raise KilledError


PLACES = (
    "grading.run_state.RunState.announce",
    "grading.gradebook.assignment.AssignmentGradebook.record",
    "grading.run_state.RunState.store_outcome",
)


@pytest.mark.parametrize("place", [*PLACES, "grading.run_state.RunState.finish"])
def test_a_kill_at_any_place_is_no_edit(kept, boxes, place):
    for answer in (OVERFLOWS, "one = None"):
        kept.submit("ada", answer_one=answer)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(place, killed)
            with pytest.raises(KilledError):
                run(kept, "tiny", ["ada"], HOW, pool=boxes)
        graded = place.endswith(("announce", "record"))
        assert all("the submission" in wrong for wrong in checked(kept).wrong), "its new answer waits to be graded"
        assert len(checked(kept).wrong) <= graded or place.endswith("store_outcome")
    run(kept, "tiny", ["bela"], HOW, pool=boxes)
    assert all("the submission" in wrong for wrong in checked(kept).wrong)
    run(kept, "tiny", how=HOW, pool=boxes)
    assert (checked(kept).wrong, checked(kept).notes) == ((), ())


def test_an_entry_that_a_loss_of_power_cut_off_is_told_and_no_edit(kept, boxes):
    with log(kept).open("ab") as file:
        file.write(b'{"previous": "12')
    assert checked(kept).wrong == ()
    kept.submit("ada", answer_one=OVERFLOWS)
    run(kept, "tiny", how=HOW, pool=boxes)
    assert checked(kept).wrong == ()
    assert checked(kept).notes == (
        "entry 7 is incomplete: it was cut off, as happens when the power fails or the disk is full",
    )


FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def audit(tmp_path):
    return RunState(Course(tmp_path, tmp_path / "class"), "tiny").audit


def grade(audit, student="ada", seed=1):
    digests = {"submission": "0" * 64, "outcome": "1" * 64}
    audit.graded(student=student, verdict="graded", **digests, score=1.0, seed=seed, sandboxed=True)


def fill_the_disk(monkeypatch, room):
    """Let ``room`` more bytes be written, and no more."""
    write = os.write

    def short(file, content):
        nonlocal room
        if not room:
            raise FULL
        written = write(file, bytes(content[:room]))
        room -= written
        return written

    monkeypatch.setattr("grading.safe_files.os.write", short)


@pytest.mark.parametrize("room", [0, 1, 100, -1])
@pytest.mark.parametrize("torn_before", [False, True])
def test_an_entry_that_a_full_disk_cut_off_is_no_edit(audit, monkeypatch, room, torn_before):
    grade(audit)
    if torn_before:
        with audit._file.open("ab") as file:
            file.write(b'{"previous": "12')
    size = len(audit._file.read_bytes().splitlines()[0])
    audit = type(audit)(audit._files, audit._file)
    with monkeypatch.context() as full:
        fill_the_disk(full, room if room >= 0 else size - 1)
        with pytest.raises(OSError, match="No space left"):
            grade(audit)
    grade(audit)
    grade(audit)
    entries, wrong = audit.entries()
    assert wrong == []
    assert [entry.said.get("student") for entry in entries if entry.said] == ["ada"] * 3


def test_a_seed_is_revealed_where_the_last_entry_was_cut_off(audit):
    grade(audit, seed=1)
    with audit._file.open("ab") as file:
        file.write(b'{"previous": "12')
    audit = type(audit)(audit._files, audit._file)
    audit.finished(1, lambda said: True)
    audit.finished(1, lambda said: True)
    assert [entry.said.get("revealed") for entry in audit.entries()[0]] == [None, None, f"{1:032x}"]


def test_the_command_says_what_is_wrong_and_fails(kept, monkeypatch, capsys):
    monkeypatch.setattr("grading.__main__.ROOT", kept.root)
    assert main(["verify", "tiny", "--course", str(kept.folder)]) == 0
    assert "and the submissions (entries: 6, students: 2)." in capsys.readouterr().out
    log(kept).write_bytes(log(kept).read_bytes().replace(b"5.5", b"6.0"))
    assert main(["verify", "tiny", "--course", str(kept.folder)]) == 1
    assert "entry 4 does not follow" in capsys.readouterr().out
    log(kept).unlink()
    assert main(["verify", "tiny", "--course", str(kept.folder)]) == 1
    assert "the log is gone, though there are outcomes" in capsys.readouterr().err
