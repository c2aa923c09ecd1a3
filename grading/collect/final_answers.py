"""Whether answers to multiple-choice questions stay final when a student's own attempt replaces another account's.

The student may have that account as well. If feedback was written for its attempt, she may know the right answers.
"""

from grading.course import Course
from grading.first_answers import first_answers_file
from grading.run_state import RunState


def stay_final(course: Course, assignment: str, student: str) -> bool:
    """Return whether there are final answers for which feedback was, or may have been, written.

    If several attempts were graded, the page of an earlier one may have been replaced or removed.
    """
    if course.files.changed(first_answers_file(course, assignment, student)) is None:
        return False
    entries = RunState(course, assignment).audit.entries()[0]
    graded = [entry for entry in entries if entry.said.get("student") == student]
    return len(graded) > 1 or bool(course.files.names(course.feedback(student, assignment), ".html"))
