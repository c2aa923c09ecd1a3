"""Compare the class list with the students who handed in, and name those who are in only one of them.

The class list is nbgrader's: the students whom `python -m grading roster`, `nbgrader db student` or Formgrader put
into the gradebook. Grading also adds everybody else who hands in; a file in the class's folder records who was added.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from grading.class_settings import read_roster
from grading.course import Course
from grading.gradebook.students import StudentEntry, students
from grading.submission_folders import not_graded, with_submission

MAX_CLASS_LIST_BYTES = 10_000_000


@dataclass(frozen=True)
class Differences:
    """The students on the class list who handed in nothing, and those who handed in without being on it."""

    absent: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()

    def named(self) -> list[tuple[str, tuple[str, ...]]]:
        """Return each kind of difference in words, with its students; kinds without students are left out."""
        kinds = [("On the class list, but nothing handed in", self.absent)]
        kinds.append(("Handed in, but not on the class list", self.unlisted))
        return [(what, who) for what, who in kinds if who]


def differences(course: Course, assignment: str, graded: Collection[str]) -> Differences:
    """Compare the class list with the students who were graded; without a list, there are no differences."""
    listed = on_list(course, students(course.config().CourseDirectory.db_url))
    if not listed:
        return Differences()
    expected = listed - read_roster(course).left - course.excluded() - not_graded(course).keys()
    absent = expected - with_submission(course, assignment) - set(graded)
    return Differences(tuple(sorted(absent)), tuple(sorted(set(graded) - listed)))


def absent(course: Course, assignment: str) -> set[str]:
    """Return who is on the class list, or was before leaving, and handed in nothing for an assignment."""
    return on_list(course, students(course.config().CourseDirectory.db_url)) - with_submission(course, assignment)


def on_list(course: Course, known: Mapping[str, StudentEntry]) -> set[str]:
    """Return who is on the class list among the students in the gradebook, including those who have left since."""
    added = _added(course)
    return {student for student, entry in known.items() if entry.is_described or student not in added}


def remember(course: Course, student: str) -> None:
    """Record that grading is about to add a student to the gradebook who is not on the class list."""
    course.files.append(_file(course), f"{student}\n".encode())


def forget(course: Course, student: str) -> None:
    """Remove a student from the record of those who were added."""
    if student in (added := _added(course)):
        course.files.write(_file(course), "".join(f"{one}\n" for one in sorted(added - {student})).encode())


def _added(course: Course) -> set[str]:
    try:
        return set(course.files.read(_file(course), MAX_CLASS_LIST_BYTES).decode().splitlines())
    except FileNotFoundError:
        return set()


def _file(course: Course) -> Path:
    return course.folder / "reports" / "not-on-the-list.txt"
