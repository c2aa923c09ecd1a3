"""Find good answers that came in far less than the median time. Only an exam has a start to count from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from grading.course import Course
from grading.exam.window import IN_TIME, Exam, exam_of
from grading.gradebook.lookup import submitted_work
from grading.report import Row

MIN_COMPARED = 10  # submissions within the window; with fewer, the median means little
SHARE = 1 / 3  # of the median time


@dataclass(frozen=True)
class Fast:
    """A student's minutes from the beginning of an exam to the submission that was graded, and the class's median."""

    student: str
    minutes: float
    median: float


def fast_students(course: Course, assignment: str, rows: Sequence[Row]) -> tuple[list[Fast], str]:
    """Return who was far faster than the class and did well, the fastest first, and a sentence on what was compared."""
    exam = exam_of(course, assignment)
    if exam is None:
        return [], "This is not an exam, so there is no start time to count from."
    url = course.config().CourseDirectory.db_url
    came = {work.student: work.came for work in submitted_work(url) if work.assignment == assignment and work.came}
    return _fast(exam, came, rows)


def _fast(exam: Exam, came: Mapping[str, datetime], rows: Sequence[Row]) -> tuple[list[Fast], str]:
    scores = {row.outcome.student: row.score for row in rows if not row.absent}
    times = {student: (when - exam.begin).total_seconds() / 60 for student, when in came.items()
             if student in scores and exam.place(student, when) == IN_TIME}  # fmt: skip
    if len(times) < MIN_COMPARED:
        return [], f"Only {len(times)} submissions have a time within the window: too few to say what is fast."
    usual, good = median(times.values()), median(scores[student] for student in times)
    found = [Fast(student, minutes, usual) for student, minutes in times.items()
             if minutes < SHARE * usual and scores[student] >= good]  # fmt: skip
    said = f"Submissions within the window: {len(times)}. The median of their times is {usual:.0f} minutes."
    return sorted(found, key=lambda fast: fast.minutes), said
