"""Declare an exam, withdraw what students could still get of it, and show its window and what needs attention."""

from collections import Counter
from collections.abc import Iterator

from grading.class_settings import read_class
from grading.course import CLASS_FOLDER, Course, GradingError
from grading.deadlines.table import EVERY, file_of, in_force, read_table
from grading.exam.declared import TIME_FORMAT, declare, exam_names, not_begun, now
from grading.exam.window import Exam, exam_of
from grading.gradebook.create import open_gradebook
from grading.gradebook.lookup import due_date_of
from grading.gradebook.students import students
from grading.handout import RELEASED_FOLDER, in_release, recall, released_before
from grading.outcome import plain
from grading.run_state import RunState, lock
from grading.text import counted
from grading.timestamp import due_date


def set_window(course: Course, assignment: str, begin: str, end: str) -> list[str]:
    """Declare an assignment as an exam, or move its window, and return what was withdrawn, as text for a terminal.

    Args:
        course: the class.
        assignment: its name.
        begin: when it begins; "" leaves that as it is.
        end: when it ends for the class, which becomes its due date in the gradebook; "" leaves that as it is.

    Raises:
        GradingError: one of the two is neither given nor known, is not a time, or the exam would end before it begins.
    """
    begins, url = exam_names(course), course.config().CourseDirectory.db_url
    starts = due_date(begin) if begin else begins.get(assignment)
    ends = due_date(end) if end else due_date_of(url, assignment)
    if starts is None or ends is None:
        raise GradingError(f"an exam needs both times: pass {'--end DATE' if starts else '--begin DATE'} as well")
    if ends <= starts:
        raise GradingError(
            f"nothing was changed: the end, {ends:{TIME_FORMAT}}, has to be after the beginning, {starts:{TIME_FORMAT}}"
        )
    with lock(course):
        declare(course, {**begins, assignment: starts})
        with open_gradebook(course) as gradebook:
            gradebook.update_or_create_assignment(assignment, duedate=ends)
        return list(_withdrawn(course, assignment))


def _withdrawn(course: Course, assignment: str) -> Iterator[str]:
    """Remove the feedback of an exam that is not over, and the released notebooks of one that has not begun."""
    exam = exam_of(course, assignment)
    if exam is None or exam.is_over:
        return
    pages = [course.feedback(student, assignment) for student in course.files.names(course.folder / "feedback")]
    there = [place for place in pages if course.files.names(place)]
    for place in (*there, course.returned(assignment)):
        course.files.remove(place)
    if there:
        whose = counted(len(there), "student")
        yield f"Removed, until the exam is over: the feedback of {whose}. They keep what they have already received."
    if assignment not in not_begun(course) or not in_release(course, assignment):
        return
    if course.folder == course.root / CLASS_FOLDER:
        notebooks = counted(recall(course, assignment), "notebook")
        yield f"Removed from {RELEASED_FOLDER}, until the exam begins: {notebooks}."
    else:
        yield f"Still in {RELEASED_FOLDER}, which other classes may use. `release` removes it until the exam begins."


def shown(course: Course, assignment: str) -> str:
    """Return the window of an exam, and what an instructor should look at, as text for a terminal.

    Raises:
        GradingError: the assignment is not an exam.
    """
    exam = exam_of(course, assignment)
    if exam is None:
        raise GradingError(f"{assignment} is not an exam: declare it with --begin DATE and --end DATE")
    return "\n".join([_window(exam), *_about_students(course, exam), *_about_class(course, exam)])


def _window(exam: Exam) -> str:
    state = "not yet begun" if exam.begin > now() else "over for everybody" if exam.is_over else "in progress"
    end = f"{exam.end:{TIME_FORMAT}}" if exam.end else "an end that has not been set (use --end DATE)"
    return f"{exam.assignment}: an exam, {exam.begin:{TIME_FORMAT}} to {end} ({state})"


def _about_students(course: Course, exam: Exam) -> Iterator[str]:
    entries = students(course.config().CourseDirectory.db_url)
    labels = {name: f"{entry.name} ({plain(name)})" if entry.name else plain(name) for name, entry in entries.items()}
    for student, end in sorted(exam.ends.items()):
        yield f"  {labels.get(student, plain(student))}: until {end:{TIME_FORMAT}}"
    rows = read_table(course, entries.keys()) or []
    everywhere = in_force([row for row in rows if row.assignment == EVERY], exam.assignment)
    if names := ", ".join(labels.get(name, plain(name)) for name in sorted(everywhere.keys() - exam.ends.keys())):
        yield (
            f"{file_of(course)} grants more time for all assignments to {names}. This does not count in an exam. For "
            f"more time there, run `python -m grading deadlines --grant ID --assignment {exam.assignment} --due DATE`"
        )


def _about_class(course: Course, exam: Exam) -> Iterator[str]:
    if read_class(course).late_days:
        yield "Late days do not count in an exam."
    if released_before(course, exam.assignment) and exam.begin > now():
        yield f"Careful: {exam.assignment} has been released before, so students may have it already."
    entries = RunState(course, exam.assignment).audit.entries()[0]
    windows = Counter(str(entry.said["window"]) for entry in entries if "window" in entry.said)
    said = ", ".join(f"{n} {window}" for window, n in sorted(windows.items()))
    yield f"Attempts in the log: {windows.total()}" + (f" ({said})" if said else "")
    yield f"The file for students: python -m grading bundle --exam {exam.assignment}"
