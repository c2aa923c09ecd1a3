"""Where a class keeps something about a student, apart from the gradebook.

| place | what | how long |
|---|---|---|
| ``submitted/``, ``attempts/`` | what the student handed in | until it is erased |
| ``autograded/``, ``feedback/`` | what was made from it | until it is graded again |
| ``reports/ASSIGNMENT/outcomes/`` | verdicts and findings | until it is graded again |
| ``reports/ASSIGNMENT/first-answers/`` | the options that count in questions | until it is erased |
| ``reports/ASSIGNMENT/exam-answers/`` | the same, until an exam is over | until then |
| ``reports/ASSIGNMENT/audit.log`` | who changed which mark when | until it is erased |
| ``reports/ASSIGNMENT``, other files | tables and pages about the class | until they are written again |
| ``deadlines.csv``, ``course.toml``, ``logs/`` | extensions, who has left, messages of runs | until it is erased |
| ``other-names.json`` | the login and the university's number | until it is erased |
"""

import os
from collections.abc import Iterator
from pathlib import Path

from grading.audit_log import Entry
from grading.course import Course
from grading.first_answers import exam_answers_file, first_answers_file
from grading.run_state import RunState

ABOUT = ("student", "of", "extension")  # the keys under which an entry of a log names a student


def own_places(course: Course, student: str) -> list[Path]:
    """Return the folders and files that are about one student alone."""
    found = [course.folder / kind / student for kind in ("submitted", "autograded", "feedback")]
    for assignment in course.assignments():
        found.append(course.attempts(student, assignment))
        found.append(course.outcomes(assignment) / f"{student}.json")
        found.append(first_answers_file(course, assignment, student))
        found.append(exam_answers_file(course, assignment, student))
    return [place for place in found if os.path.lexists(place)]


def class_places(course: Course) -> list[Path]:
    """Return the files about the whole class that `report`, `export` and `return` write again."""
    found = []
    for assignment in course.assignments():
        folder = course.reports(assignment)
        names = [name for name in course.files.names(folder) if name.endswith((".csv", ".html"))]
        places = [*(folder / name for name in names), course.returned(assignment)]
        found += [place for place in places if place.exists()]
    return found


def log_entries(course: Course, student: str) -> Iterator[tuple[str, Entry]]:
    """Yield the entries about a student in the logs, each with its assignment."""
    for assignment in course.assignments():
        for entry in RunState(course, assignment).audit.entries()[0]:
            if is_about(entry, student):
                yield assignment, entry


def is_about(entry: Entry, student: str) -> bool:
    """Tell whether an entry of a log is about a student."""
    return any(entry.said.get(key) == student for key in ABOUT)
