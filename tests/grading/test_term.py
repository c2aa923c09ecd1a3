"""A whole term by an instructor's commands: every mark is the one that follows from what the students did."""

import contextlib
import io

import pytest
from tiny import REPOSITORY

from grading.__main__ import main

pytestmark = pytest.mark.slow

ASSIGNMENTS = ("02-self-attention", "04-multi-head", "03-queries-keys-values")  # exchange, Canvas and Moodle
SEED = 167  # a small class in which everything happens


def in_process(arguments):
    """Do what the command line does, without the seconds that imports take."""
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert main(arguments) == 0, arguments
    return said.getvalue()


@pytest.fixture(scope="module")
def modules():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(REPOSITORY / "benchmarks")
        import term
        import term_marks
        import term_plan

        yield term, term_marks, term_plan


@pytest.fixture(scope="module")
def plan(modules):
    _, _, plan = modules
    homework = [plan.read_homework(REPOSITORY / "solutions", name) for name in ASSIGNMENTS]
    return plan.draw_plan(homework, 6, SEED)


@pytest.fixture(scope="module")
def term(modules, plan, tmp_path_factory, commands_share_a_box):
    place = tmp_path_factory.mktemp("term")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATTENTION_CLASS", str(place / "class"))
        patch.setattr(modules[0].Term, "_kill", lambda *_: None)  # test_faults.py tests killed runs
        term = modules[0].Term(plan, place, in_process)
        for stage in term.stages():
            stage()
        yield term


def test_everything_that_happens_in_a_term_happens_in_this_one(modules, plan):
    work = plan.work.values()
    assert {student.first for student in plan.students} == {0, 1}, "somebody joins late"
    assert {student.last for student in plan.students} == {0, 2}, "somebody leaves"
    assert len(work) < sum(1 + student.last - student.first for student in plan.students), "something is not handed in"
    assert any(len(one.attempts) > 1 for one in work)
    assert any(one.extension for one in work)
    assert {one.granted for one in work if one.disputed} == {True, False}
    without_penalties = modules[1].expected_marks(plan, penalty=0)
    assert without_penalties != modules[1].expected_marks(plan)


def test_every_mark_is_the_expected_one_in_the_gradebook_and_in_what_is_uploaded(term, plan):
    assert term.differences() == []
    assert len(term.marks()) == len(plan.work)
    assert term.uploads
