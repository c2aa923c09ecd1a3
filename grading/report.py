"""The results of a class: the scores in nbgrader's gradebook and the verdicts, as rows and as a table of text."""

import re
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from grading._nbgrader import Assignment, BaseCell, Grade, Gradebook, SubmittedAssignment, SubmittedNotebook
from grading.class_list import differences
from grading.course import Course, GradingError
from grading.gradebook.agreement import require_agreement
from grading.gradebook.create import open_gradebook
from grading.gradebook.students import StudentEntry, students
from grading.outcome import IN_TIME, NO_DUE_DATE, Outcome, plain
from grading.repair.messages import SEVERAL_FILES
from grading.run_state import RunState
from grading.submission_folders import gradable, with_submission
from grading.text import points, points_off
from grading.verdict import Verdict

# The characters that begin a formula, including full-width ones, and the apostrophe, which we add ourselves.
FORMULA_STARTS = "=+@＝＋－＠\t\r'-"
MAX_STUDENTS_NAMED = 10  # in a warning
NO_ENTRY = StudentEntry("")
DANGEROUS = re.compile(rf"(^|[;\n\r])(?= *[{FORMULA_STARTS}])")


@dataclass(frozen=True)
class Row:
    """One student's row. ``scores`` maps each question to (score, points); ``to_read`` counts unread answers.

    ``unread`` names the questions with unread answers: what these earn is not known yet. ``penalty`` is what was taken
    off because the submission was late. ``entry`` is what the gradebook knows about the student. ``absent`` says that
    the student is on the class list, and handed in nothing.
    """

    outcome: Outcome
    scores: dict[str, tuple[float, float]]
    to_read: int
    feedback: tuple[Path, ...]
    unread: tuple[str, ...] = ()
    penalty: float = 0.0
    entry: StudentEntry = NO_ENTRY
    absent: bool = False

    @property
    def label(self) -> str:
        """The student's name and id, or only the id if the gradebook knows no name."""
        student = plain(self.outcome.student)
        return f"{self.entry.name} ({student})" if self.entry.name else student

    @property
    def score(self) -> float:
        """The sum over all questions, minus the penalty."""
        return sum(score for score, _ in self.scores.values()) - self.penalty

    @property
    def points(self) -> float:
        """What a perfect submission earns."""
        return sum(points for _, points in self.scores.values())

    @property
    def not_attempted(self) -> set[str]:
        """The questions whose answers were left as they were handed out, and earned nothing."""
        return {question for question in self.outcome.untouched if self.scores.get(question, (0.0, 0.0))[0] == 0}

    def remarks(self) -> list[str]:
        """Return all remarks, one per line: what went wrong, the penalty, which file was graded, the mistakes."""
        lateness = "" if self.outcome.lateness.endswith((IN_TIME, NO_DUE_DATE)) else self.outcome.lateness
        off = points_off(self.penalty) if self.penalty else ""
        penalty = f"{off}: handed in late" if off and off not in lateness else ""
        chosen = [flag for flag in self.outcome.flags if flag.startswith(SEVERAL_FILES)]
        return [*filter(None, [self.outcome.reason, penalty, lateness]), *chosen, *map(str, self.outcome.findings)]


def rows(course: Course, assignment: str) -> list[Row]:
    """Return a row for each student who was graded so far and is in the gradebook, and then for those who are absent.

    The absent are on the class list, and handed in nothing.

    Raises:
        GradingError: there is no such assignment, nobody was graded, or the gradebook knows none of those who were.
    """
    course.require(assignment)
    graded = _graded(course, assignment)
    with open_gradebook(course) as gradebook:
        questions = _questions(assignment, gradebook)
        grades = defaultdict(list)
        for student, *grade in gradebook.db.execute(_grades(assignment)):
            grades[student].append(grade)
        penalties = {student: penalty or 0.0 for student, penalty in gradebook.db.execute(_penalties(assignment))}
    order = {name: i for i, name in enumerate(questions)}
    entries = students(course.config().CourseDirectory.db_url)
    found = []
    for outcome in graded:
        its = sorted(grades[outcome.student], key=lambda grade: order[grade[0]])
        row = _row(course, assignment, outcome, its, penalties.get(outcome.student, 0.0))
        found.append(replace(row, entry=entries.get(outcome.student, row.entry)))
    absent = differences(course, assignment, [outcome.student for outcome in graded]).absent
    return found + [_absent(entries[student], questions) for student in absent]


def _absent(entry: StudentEntry, questions: Mapping[str, float]) -> Row:
    """Return the row of a student who handed in nothing, and so has no points for any question."""
    outcome = Outcome(entry.id, Verdict.MISSING, "handed in nothing")
    return Row(outcome, {name: (0.0, most) for name, most in questions.items()}, 0, (), entry=entry, absent=True)


def _graded(course: Course, assignment: str) -> list[Outcome]:
    """Return the outcomes that belong in the report, and say what is left out of it."""
    known = require_agreement(course, assignment)
    outcomes, stray = RunState(course, assignment).all()
    for file in stray:
        print(
            f"warning: {file} is not the outcome of a submission, so it was left out. Run the assignment again. If "
            "that does not replace the file, remove it",
            file=sys.stderr,
        )
    waiting = sorted(
        (with_submission(course, assignment) & gradable(course)) - {outcome.student for outcome in outcomes}
    )
    if waiting:
        more = f" and {len(waiting) - MAX_STUDENTS_NAMED} more" if len(waiting) > MAX_STUDENTS_NAMED else ""
        names = ", ".join(plain(name) for name in waiting[:MAX_STUDENTS_NAMED]) + more
        print(
            f"warning: left out, because their submissions have not been graded: {names}. "
            f"Run `python -m grading run {assignment}`",
            file=sys.stderr,
        )
    graded = [outcome for outcome in outcomes if outcome.student in known or outcome.verdict is Verdict.INFRASTRUCTURE]
    if len(graded) < len(outcomes):
        gone = ", ".join(plain(name) for name in sorted({o.student for o in outcomes} - {o.student for o in graded}))
        print(f"warning: left out, because they are no longer in the gradebook: {gone}", file=sys.stderr)
    if not graded:
        raise GradingError(f"nobody has been graded in {course.folder} yet: run `python -m grading run {assignment}`")
    return graded


def _questions(assignment: str, gradebook: Gradebook) -> dict[str, float]:
    """Return the graded cells of an assignment in their order, each with the points that it is worth."""
    notebooks = sorted(gradebook.find_assignment(assignment).notebooks, key=lambda notebook: str(notebook.name))
    cells = {cell.name: cell for notebook in notebooks for cell in [*notebook.grade_cells, *notebook.task_cells]}
    order = [cell.name for notebook in notebooks for cell in notebook.source_cells]
    return {name: float(cells[name].max_score) for name in order if name in cells}


def _grades(assignment: str) -> Any:
    """Return the query for all grades of a class, which takes one statement however many students there are."""
    grade = SubmittedAssignment.student_id, BaseCell.name, Grade.score, Grade.max_score, Grade.needs_manual_grade
    submitted = select(*grade).select_from(Grade).join(BaseCell).join(SubmittedNotebook).join(SubmittedAssignment)
    return submitted.join(Assignment).where(Assignment.name == assignment)


def _penalties(assignment: str) -> Any:
    penalty = func.sum(SubmittedNotebook.late_submission_penalty)
    submitted = select(SubmittedAssignment.student_id, penalty).join(SubmittedNotebook).join(Assignment)
    return submitted.where(Assignment.name == assignment).group_by(SubmittedAssignment.student_id)


def _row(course: Course, assignment: str, outcome: Outcome, grades: Sequence[Any], penalty: float) -> Row:
    """Return a student's row. Each grade is (question, score, points, whether a person has to read it)."""
    folder = course.feedback(outcome.student, assignment)
    pages = [folder / Path(name).with_suffix(".html").name for name in course.notebooks(assignment)]
    unread = tuple(name for name, _, _, is_unread in grades if is_unread)
    return Row(
        outcome,
        {name: (score, most) for name, score, most, _ in grades},
        len(unread),
        tuple(page for page in pages if page.is_file()),
        unread,
        penalty,
    )


def table(rows: Sequence[Row]) -> str:
    """Return the rows as text, with the first remark next to each student and the others below it."""
    lines = [("student", "score", "to read", "verdict", "mistakes")]
    for row in rows:
        first, *others = row.remarks() or [""]
        score = f"{points(row.score)} / {points(row.points)}"
        lines.append((row.label, score, str(row.to_read or ""), row.outcome.verdict, first))
        lines.extend(("", "", "", "", other) for other in others)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(_line(line, widths) for line in [lines[0], tuple("-" * width for width in widths), *lines[1:]])


def unmarked(rows: Sequence[Row]) -> list[str]:
    """Return a sentence about the answers that nobody has marked yet, if there are any."""
    waiting = sum(row.to_read for row in rows)
    they = "answer is" if waiting == 1 else "answers are"
    said = f"{waiting} {they} still to be marked by hand. Until then, an answer without a mark counts as 0."
    return [said] if waiting else []


def _line(line: Sequence[str], widths: Sequence[int]) -> str:
    student, score, to_read, *words = (text.ljust(width) for text, width in zip(line, widths, strict=True))
    return "  ".join([student, score.strip().rjust(widths[1]), to_read, *words]).rstrip()


def cell(value: object) -> object:
    """Return a value that no spreadsheet takes for a formula, not even if it splits cells at semicolons or line breaks.

    An apostrophe is put before whatever might be one. Different texts stay different.
    """
    return DANGEROUS.sub(r"\1'", value) if isinstance(value, str) else value
