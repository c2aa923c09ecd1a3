"""Find marks that are not the sum of the criteria in their comments, as after a change in Formgrader."""

import re
from collections.abc import Iterator

from grading.course import Course, log_file
from grading.gradebook.assignment import AssignmentGradebook
from grading.gradebook.lookup import comments_by_hand
from grading.marking.rubric import rubrics
from grading.outcome import plain
from grading.text import points

TOLERANCE = 1e-6


def different_sums(course: Course, assignment: str) -> Iterator[str]:
    """Yield a line for each mark given by hand that differs from the sum of the criteria in its comment."""
    criteria = rubrics(course, assignment)
    if not criteria:
        return
    comments = comments_by_hand(course.config().CourseDirectory.db_url, assignment)
    with AssignmentGradebook(course, assignment, log_file(course, assignment)) as gradebook:
        marks = gradebook.manual_scores()
    for (student, question), mark in sorted(marks.items()):
        text = comments.get(student, {}).get(question, "")
        parts = [
            re.search(rf"^- {re.escape(one.name)}: ([\d.]+) of ", text, re.M) for one in criteria.get(question, ())
        ]
        total = sum(float(part[1]) for part in parts if part)
        if any(parts) and abs(total - mark) > TOLERANCE:
            yield (
                f"{plain(student)}: {plain(question)}: the mark is {points(mark)}, but the criteria in its comment add "
                f"up to {points(total)}. Change one of the two"
            )
