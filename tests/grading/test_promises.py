"""What the pages for instructors promise is on them in these words, and each promise has tests that hold it."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = " ".join(
    " ".join(path.read_text(encoding="utf-8").split()) for path in sorted((ROOT / "book" / "teaching").glob("*.md"))
)

PROMISES = {
    "numbers that were recorded under another seed earn nothing": (
        "tests/checks/test_replay.py::test_answers_recorded_under_another_seed_earn_nothing",
    ),
    "Library functions that would solve an exercise in one call raise an error while that exercise is being checked, "
    "under whatever name and in whatever thread they are called, and also in TorchScript and inside other torch "
    "operators.": ("tests/grading/test_static_checks_shortcuts.py::test_no_shortcut_goes_unseen",),
    "fewer than one in a hundred of the right answers in the tests is flagged": (
        "tests/grading/test_static_checks_shortcuts.py::test_right_answers_are_hardly_ever_flagged",
    ),
    "Nor does it hold the parts of the library that answer the assignment's exercises": (
        "tests/grading/test_withheld.py::test_no_code_of_an_answer_is_in_the_box",
        "tests/grading/test_withheld.py::test_no_answer_is_sent_before_the_last_check_of_its_exercise",
    ),
    "If one of them gets through, nothing is graded.": (
        "tests/grading/test_sandbox_selftest.py::test_an_incomplete_isolation_is_not_used",
        "tests/grading/test_faults.py::test_without_bubblewrap_nothing_is_graded_and_it_says_how_to_get_it",
    ),
    "`run` refuses a class that is in one of them": (
        "tests/grading/test_sandbox_selftest.py::test_a_folder_that_the_box_shows_is_refused_before_anything_is_run",
    ),
    "It is never final.": (
        "tests/grading/test_sandbox_cpu.py::"
        "test_what_is_starved_twice_is_not_the_students_fault_and_is_graded_by_the_next_run",
        "tests/grading/test_rerun.py::test_where_the_grader_fails_no_earlier_grade_remains_and_the_next_run_mends_it",
    ),
    "run again with a larger `--timeout`, which regrades those who ran out of time": (
        "tests/grading/test_rerun.py::test_a_longer_time_grades_those_again_for_whom_a_shorter_one_was_too_short",
    ),
    "its processes have ended, and the next run removes its temporary folders": (
        "tests/grading/test_killed.py::test_a_submission_and_all_that_it_started_end_with_the_grader",
        "tests/grading/test_temporary.py::test_the_folder_of_a_killed_process_is_gone_at_the_next_start",
    ),
    "What the student wrote in cells of their own is kept and run.": (
        "tests/grading/test_repair.py::test_answers_are_taken_and_own_cells_stay_where_they_stood",
    ),
    "the statements after it in the cell still run": (
        "tests/grading/test_withheld.py::test_who_compares_with_the_library_loses_nothing",
    ),
    "only a submission's own processor time counts": (
        "tests/grading/test_sandbox_cpu.py::test_time_on_the_clock_is_not_counted",
        "tests/grading/test_sandbox_cpu.py::test_the_processor_time_of_all_processes_counts",
    ),
    "Our `collect` refuses a submission whose files belong to another student.": (
        "tests/grading/test_collect.py::"
        "test_of_the_exchange_only_what_a_student_owns_counts_and_a_time_before_it_was_written_is_named",
    ),
    "If the only attempt is dated before the exam began, it is graded without a penalty, and the report flags it": (
        "tests/grading/test_exam.py::"
        "test_an_attempt_from_before_the_exam_counts_only_if_there_is_no_other_in_time_and_is_flagged",
    ),
    "If a student has an extension here, the mark does not count": (
        "tests/grading/test_exam.py::test_canvas_marks_as_late_what_came_in_an_extension_that_only_we_granted",
    ),
    "leaves out everything about the exam except what the student handed in": (
        "tests/grading/test_exam.py::test_an_export_during_an_exam_holds_only_what_the_student_handed_in",
    ),
    "scripts, forms and HTML in Markdown are stored as text": (
        "tests/grading/test_formgrader.py::test_what_is_stored_shows_a_hostile_answer_as_text",
    ),
}


@pytest.mark.parametrize("promise", PROMISES)
def test_a_page_promises_it_in_these_words(promise):
    assert promise in PAGES


@pytest.mark.parametrize("test", [test for tests in PROMISES.values() for test in tests])
def test_the_test_that_holds_a_promise_exists(test):
    file, name = test.split("::")
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
