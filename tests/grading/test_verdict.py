"""Every verdict has one entry, and what earlier versions stored of verdicts stays readable."""

import json

import nbformat
import pytest

from grading.course import Course
from grading.notebook_template import NotebookVerdict, worst
from grading.outcome import Finding, Outcome
from grading.run_state import RunState
from grading.verdict import Verdict

# As they stand in the outcomes, logs and notebooks of classes that exist, from the mildest to the most severe.
STORED = (
    *("graded", "student-error", "output-limit", "crashed", "timeout", "out-of-memory", "tampered"),
    *("unreadable", "missing", "infrastructure"),
)
OUTCOME = """{
 "student": "ada",
 "verdict": "%s",
 "reason": "the cell 'one' took too long",
 "findings": [{"question": "softmax", "mistake": "no-max", "title": "overflows", "section": "", "link": ""}],
 "digest": "d",
 "flags": ["late"]
}"""


def test_the_values_that_classes_have_stored_are_those_of_the_verdicts_from_mild_to_severe():
    assert tuple(verdict.value for verdict in sorted(Verdict, key=lambda verdict: verdict.severity)) == STORED
    assert all(verdict.text for verdict in Verdict)


@pytest.mark.parametrize("stored", STORED)
def test_an_outcome_that_an_earlier_version_stored_is_read_and_stored_again_with_the_same_words(stored):
    outcome = Outcome.from_json((OUTCOME % stored).encode())
    assert outcome.verdict is Verdict(stored)
    assert outcome.findings == (Finding("softmax", "no-max", "overflows"),)
    again = json.loads(outcome.to_json())
    assert again["verdict"] == stored
    assert f"{outcome.verdict}: {outcome.reason}" == f"{stored}: the cell 'one' took too long"


def test_a_verdict_that_nobody_knows_makes_an_outcome_broken():
    with pytest.raises(ValueError, match="splendid"):
        Outcome.from_json((OUTCOME % "splendid").encode())


def test_a_log_and_a_notebook_hold_the_plain_word(tmp_path):
    run_state = RunState(Course(tmp_path, tmp_path / "class"), "softmax")
    run_state.announce(Outcome("ada", Verdict.TIMEOUT), 1.0, sandboxed=True)
    assert run_state.audit.entries()[0][-1].said["verdict"] == "timeout"
    notebook = nbformat.v4.new_notebook(metadata={"grading": {"verdict": Verdict.TIMEOUT, "reason": ""}})
    assert json.loads(nbformat.writes(notebook))["metadata"]["grading"]["verdict"] == "timeout"


def test_the_most_severe_verdict_counts_and_of_equals_the_first():
    two = [NotebookVerdict(Verdict.TIMEOUT, "one"), NotebookVerdict(Verdict.TIMEOUT, "two")]
    assert worst([NotebookVerdict(Verdict.STUDENT_ERROR), *two, NotebookVerdict(Verdict.CRASHED)]) == two[0]
    assert worst([]) == NotebookVerdict(Verdict.GRADED)


def test_those_that_say_nothing_about_the_questions_were_refused_or_are_the_graders_fault():
    silent = {verdict.value: verdict.refused for verdict in Verdict if not verdict.informs}
    assert silent == {"unreadable": True, "missing": True, "infrastructure": False}
