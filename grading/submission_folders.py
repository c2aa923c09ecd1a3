"""Which folders among the submissions cannot be graded, and why."""

import os

from grading.course import Course

MAX_NAME_BYTES = 200  # a file is named after the student, and file systems allow 255 bytes
PATTERN_CHARACTERS = "*?[]"


def not_graded(course: Course) -> dict[str, str]:
    """Return the folders that cannot be graded, each with what is wrong with it and what to do."""
    submitted = course.folder / "submitted"
    wrong = {student: f"its name {why}: rename it" for student in course.students() if (why := why_not(student))}
    for student in course.students():
        if (submitted / student).is_symlink():
            wrong[student] = "it is a link, and links are not followed: put a copy of the folder there"
    return wrong


def gradable(course: Course) -> set[str]:
    """Return the students whose folders can be graded, and who are not excluded."""
    return set(course.students()) - course.excluded() - not_graded(course).keys()


def with_submission(course: Course, assignment: str) -> set[str]:
    """Return the students who have a folder for an assignment."""
    return {student for student in course.students() if course.submitted(student, assignment).is_dir()}


def why_not(student: str) -> str:
    """Return why nbgrader cannot use a name as text, file pattern or file name, or "" if it can."""
    size = len(os.fsencode(student))
    if size > MAX_NAME_BYTES:
        return f"has {size} bytes, more than {MAX_NAME_BYTES}"
    if not student.isprintable():
        return "contains characters that cannot be printed"
    if student != student.strip():
        return "begins or ends with a space"
    if found := [c for c in PATTERN_CHARACTERS if c in student]:
        return f"contains {' '.join(found)}, which nbgrader takes for a pattern"
    return ""
