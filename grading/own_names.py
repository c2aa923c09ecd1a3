"""The names of each student on the class list: the id, the login, the university's number and the e-mail address.

On Canvas, for example, the id is Canvas's number, which students hardly know, and they state their login in a notebook.
nbgrader's gradebook has no column for a login, so a file in the class's folder holds what else a class list says.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping

from attnlib.checks.student import normal
from grading.course import Course, GradingError
from grading.gradebook.students import students

NAME = "other-names.json"
MAX_BYTES = 10_000_000


def own_names(course: Course) -> dict[str, frozenset[str]]:
    """Return the names of every student on the class list by id, each as :func:`normal` returns it.

    Raises:
        GradingError: the file with the other names cannot be read.
    """
    found = defaultdict[str, set[str]](set)
    for student, entry in students(course.config().CourseDirectory.db_url).items():
        found[student] |= {student, entry.email, entry.lms_user_id}
    for student, names in other_names(course).items():
        found[student] |= {student, *names}
    return {student: frozenset(map(normal, names)) - {""} for student, names in found.items()}


def other_names(course: Course) -> dict[str, list[str]]:
    """Return what the file holds: the names that the gradebook has no column for, by the id of the student.

    Raises:
        GradingError: it cannot be read.
    """
    file = course.folder / NAME
    try:
        found: dict[str, list[str]] = json.loads(course.files.read(file, MAX_BYTES))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise GradingError(
            f"{file} should hold the students' logins, but cannot be read: {error}. Remove it, and import the class "
            "list again"
        ) from None
    return found


def keep_names(course: Course, names: Mapping[str, Collection[str]], removed: Collection[str] = ()) -> None:
    """Add students' other names to the file, in place of earlier ones of the same students, and remove students."""
    before = other_names(course)
    now = before | {student: sorted(found) for student, found in names.items() if found}
    now = {student: found for student, found in now.items() if student not in removed}
    if now != before:
        course.files.write(course.folder / NAME, json.dumps(now, indent=1, ensure_ascii=False).encode())
