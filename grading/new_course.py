"""Set up the folder of a class: its settings, its due dates and its class list, all of them or nothing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from grading.class_settings import ClassSettings, file_of, require_valid, write_class
from grading.course import Course, GradingError
from grading.gradebook.create import open_gradebook
from grading.roster.importing import import_roster
from grading.timestamp import due_date

QUESTIONS = {
    "name": "What is the course called?",
    "term": "When is it taught (such as Autumn 2030)?",
    "book": "At which address is the book published (empty: nowhere yet)?",
    "penalty": "What share of the score does a day of lateness cost (such as 0.1; empty: none)?",
}
DUE = "When is {} due (such as 2030-01-31 23:59 UTC; empty: not yet known)?"
ROSTER = "In which file is the class list (empty: it comes later)?"


@dataclass(frozen=True)
class Answers:
    """What the options say, and who is asked for the rest: None means that nobody is."""

    given: Mapping[str, str | None]
    ask: Callable[[str], str] | None = None

    def of(self, key: str) -> str:
        """Return the answer to one of the questions, or "" if there is none."""
        known = self.given.get(key)
        return self.asked(QUESTIONS[key]) if known is None else known.strip()

    def asked(self, question: str) -> str:
        """Return what somebody answers to a question, or "" if nobody can be asked.

        Raises:
            GradingError: the input has ended.
        """
        try:
            return self.ask(f"{question} ").strip() if self.ask else ""
        except EOFError:
            raise GradingError(
                "the input ended before all questions were answered, so nothing was written. Start again, or state all "
                "answers as options: python -m grading new-course --help lists them"
            ) from None


def new_course(course: Course, answers: Answers, due: Sequence[str], roster: Path | None) -> str:
    """Set up a class, and return what was done, as text for a terminal.

    Args:
        course: the course, with the folder of the new class.
        answers: its name, term, book and penalty.
        due: due dates, each as ASSIGNMENT=DATE.
        roster: the class list.

    Raises:
        GradingError: an answer is wrong, or there is a class in this folder. Nothing is written.
    """
    if file_of(course).exists():
        raise GradingError(f"{file_of(course)} already exists: edit it, or choose another folder")
    settings = _settings(answers)
    dates = _due_dates(course, due, answers)
    if roster is None and (name := answers.asked(ROSTER)):
        roster = Path(name).expanduser()
    if roster is not None:
        import_roster(course, roster, {}, dry_run=True)  # raises an error before anything is written
    write_class(course, settings)
    with open_gradebook(course) as gradebook:
        for assignment, date in dates.items():
            gradebook.update_or_create_assignment(assignment, duedate=date)
    said = [f"Settings: {file_of(course)}"]
    said += [f"Due: {assignment}: {date:%d %B %Y, %H:%M} UTC" for assignment, date in dates.items()]
    said += [import_roster(course, roster, {})] if roster is not None else []
    return "\n".join([*said, f"What is missing: python -m grading doctor-course --course {course.folder}"])


def _settings(answers: Answers) -> ClassSettings:
    name, term, book, penalty = map(answers.of, QUESTIONS)
    try:
        share = float(penalty or 0)
    except ValueError:
        raise GradingError(f"the penalty is {penalty!r}; expected a share of the score, such as 0.1") from None
    settings = ClassSettings(name, term, book, share)
    require_valid(settings, "the answers")
    return settings


def _due_dates(course: Course, due: Sequence[str], answers: Answers) -> dict[str, datetime]:
    given = dict(text.rpartition("=")[::2] for text in due)
    for assignment in given:
        course.require(assignment)
    for assignment in course.assignments() if not due else ():
        given[assignment] = answers.asked(DUE.format(assignment))
    return {assignment: due_date(text) for assignment, text in given.items() if text}
