"""The only writer of nbgrader's gradebook. Each submission is a transaction, written as a whole or not at all.

What is written is what nbgrader's ``Autograde`` with ``SaveAutoGrades`` and ``AssignLatePenalties`` would write, with
three exceptions, where nbgrader would keep something of an earlier submission:

- a task that is handed in again has to be marked again, as a written answer does;
- a person's mark on a notebook that is no longer there has to be looked at again;
- such a notebook keeps neither a late penalty nor an automatic comment.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from logging import Logger
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from grading._nbgrader import (
    AssignLatePenalties,
    Assignment,
    BaseCell,
    Comment,
    Grade,
    MissingEntry,
    Notebook,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
    determine_grade,
)
from grading._untyped import NotebookNode, is_grade, is_task
from grading.class_list import remember
from grading.course import Course, GradingError
from grading.exam.declared import exam_names
from grading.gradebook.create import open_gradebook
from grading.gradebook.marks import clear_marks, fill_marks
from grading.gradebook.sqlite import wait_and_lock
from grading.outcome import plain

NO_TIME = timedelta(0)

# The grades or comments of a submission: id of the submitted notebook -> cell -> row.
CellRows = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class SubmissionTime:
    """When a submission was due, the extension included, when it came, in UTC, and the points taken off for it."""

    due: datetime | None
    came: datetime | None
    penalty: float
    extension: timedelta = timedelta(0)

    @property
    def seconds_late(self) -> float:
        """How late it was."""
        return max(0.0, (self.came - self.due).total_seconds()) if self.came and self.due else 0.0


class AssignmentGradebook:
    """nbgrader's gradebook, open for one assignment during a run. Use it as a context manager.

    Scores, comments, extra credit and flags that a person has given are never changed. The assignment has to be
    registered; its rows are only read.

    Raises:
        GradingError: the gradebook does not know the assignment.
    """

    def __init__(self, course: Course, assignment: str, log: Logger) -> None:
        self.course, self.assignment, self.log = course, assignment, log
        self._is_exam = assignment in exam_names(course)
        self._late = AssignLatePenalties(config=course.config(), log=log)
        self._late.init_plugin()
        self._gradebook = open_gradebook(course)
        self._gradebook.db.remove()  # ends the transaction that opening it began
        wait_and_lock(self._gradebook.engine)
        with ExitStack() as opened:
            opened.callback(self._gradebook.close)
            with self._transaction() as db:
                self._notebooks, self._cells = self._names(db)
                self.students = self._students(db)  # who had a submission when it was opened
                self._known = set(db.scalars(select(Student.id)))
            opened.pop_all()  # from here on, it is closed when the block ends

    def __enter__(self) -> "AssignmentGradebook":
        return self

    def __exit__(self, *error: object) -> None:
        self._gradebook.close()

    def record(
        self,
        student: str,
        notebooks: Mapping[str, NotebookNode],
        when: datetime | None,
        *,
        unsandboxed: bool = False,
        same: bool = False,
    ) -> None:
        """Write what a submission earned.

        Args:
            student: nbgrader's id of the student, who need not be known yet.
            notebooks: maps the name of a notebook, without suffix, to the executed and judged notebook. A notebook of
                the assignment that is not among them earns nothing, and any other notebook is left out.
            when: the moment of submission, in UTC if it has no time zone; with ``None``, the known one is kept.
            unsandboxed: whether the student's code ran without a sandbox; Formgrader then shows the notebooks as
                flagged.
            same: whether these are the answers that were graded before: what a person has marked stays marked.

        Raises:
            GradingError: the cells of a notebook are not those that the gradebook knows. Nothing is written.
        """
        for name in sorted(notebooks.keys() - set(self._notebooks.values())):
            self.log.warning("%s: %s is not a notebook of %s, so it is left out", student, plain(name), self.assignment)
        with self._transaction() as db:
            submission = self._submission(student, when)
            grades, comments = self._rows(db, Grade, submission), self._rows(db, Comment, submission)
            there = []
            for row in submission.notebooks:
                notebook = notebooks.get(self._notebooks[row.notebook_id])
                if notebook is None:
                    self.log.warning("%s: the notebook %s is missing", student, self._notebooks[row.notebook_id])
                    clear_marks(row, grades[row.id], comments[row.id], same=same)
                else:
                    fill_marks(notebook, grades[row.id], comments[row.id], self.log, same=same)
                    row.flagged = unsandboxed or row.flagged
                    there.append(row)
            self._penalize(db, submission, there)

    def due_date(self) -> datetime | None:
        """Return when the assignment is due, in UTC."""
        with self._transaction() as db:
            return db.scalar(select(Assignment.duedate).where(Assignment.name == self.assignment))

    def automatic_score(self, notebooks: Mapping[str, NotebookNode]) -> float:
        """Return the points that :meth:`record` gives for executed and judged notebooks."""
        ours = (notebook for name, notebook in notebooks.items() if name in self._notebooks.values())
        cells = (cell for notebook in ours for cell in notebook.cells if is_grade(cell) and not is_task(cell))
        return float(sum(determine_grade(cell, self.log)[0] or 0.0 for cell in cells))

    def automatic_scores(self) -> dict[str, float]:
        """Return the sum of the points that every submission was given, without what a person gave."""
        asked = select(SubmittedAssignment.student_id, func.sum(Grade.auto_score)).select_from(Grade)
        asked = asked.join(SubmittedNotebook).join(SubmittedAssignment).join(Assignment)
        asked = asked.where(Assignment.name == self.assignment).group_by(SubmittedAssignment.student_id)
        with self._transaction() as db:
            return {student: float(score or 0.0) for student, score in db.execute(asked).all()}

    def penalty(self, student: str, score: float, seconds: float) -> float:
        """Return what is taken off a score for lateness, at most all of it."""
        asked = self._asked(student, score, seconds) if seconds > 0 else 0.0
        return float(min(max(asked or 0.0, 0.0), score))

    def _asked(self, student: str, score: float, seconds: float) -> float | None:
        """Return what the configured plugin asks for, or the whole score if it is an exam, which had ended."""
        if self._is_exam:
            return score
        asked: float | None = self._late.plugin_inst.late_submission_penalty(student, score, seconds)
        return asked

    def manual_scores(self) -> dict[tuple[str, str], float]:
        """Return the marks that people have given, by student and question."""
        asked = select(SubmittedAssignment.student_id, BaseCell.name, Grade.manual_score).select_from(Grade)
        asked = asked.join(BaseCell).join(SubmittedNotebook).join(SubmittedAssignment).join(Assignment)
        asked = asked.where(Assignment.name == self.assignment, Grade.manual_score.is_not(None))
        with self._transaction() as db:
            return {(student, question): float(score) for student, question, score in db.execute(asked).all()}

    def submission_times(self) -> dict[str, SubmissionTime]:
        """Return when each submission was due and came, and what is taken off for it."""
        due, penalty = self.due_date(), func.sum(SubmittedNotebook.late_submission_penalty)
        columns = SubmittedAssignment.student_id, SubmittedAssignment.timestamp, SubmittedAssignment.extension
        asked = select(*columns, penalty).join(SubmittedNotebook).join(Assignment)
        asked = asked.where(Assignment.name == self.assignment).group_by(*columns)
        with self._transaction() as db:
            rows = db.execute(asked).all()
        return {
            student: SubmissionTime(due and due + (extension or NO_TIME), came, off or 0.0, extension or NO_TIME)
            for student, came, extension, off in rows
        }

    def record_time(
        self,
        student: str,
        when: datetime | None,
        notebooks: Collection[str],
        *,
        extension: timedelta | None = None,
        dry_run: bool = False,
    ) -> SubmissionTime:
        """Record when a submission came, or None if that is unknown, and set the penalties that follow from it.

        Args:
            student: nbgrader's id of the student.
            when: the moment, in UTC without a time zone.
            notebooks: the names of those notebooks of the assignment that came.
            extension: by how much the due date moves for the student; ``None`` leaves it as it is.
            dry_run: whether to report the changes without writing anything.
        """
        with self._transaction() as db:
            submission = self._submission(student, when)
            submission.timestamp = when
            submission.extension = submission.extension if extension is None else extension or None
            there = [row for row in submission.notebooks if self._notebooks[row.notebook_id] in notebooks]
            self._penalize(db, submission, there)
            due, moved = submission.assignment.duedate, submission.extension or NO_TIME
            penalty = sum(row.late_submission_penalty or 0.0 for row in submission.notebooks)
            if dry_run:
                db.rollback()
            return SubmissionTime(due and due + moved, when, penalty, moved)

    def score(self, student: str, question: str) -> float:
        """Return the points that a student has for a question."""
        with self._transaction() as db:
            return float(self._grade(db, student, question).score)

    def require_possible(self, student: str, question: str, points: float) -> None:
        """Check that a question can earn so many points.

        Raises:
            GradingError: it cannot, or there is no such question.
        """
        with self._transaction() as db:
            most = self._grade(db, student, question).max_score
        if not 0 <= points <= most:
            raise GradingError(f"{points:g} points were given for {plain(question)}; expected 0 to {most:g}")

    def mark(self, student: str, question: str, points: float, comment: str = "") -> None:
        """Give a mark and, if there is one, a comment, as a person would in Formgrader, and set the penalty anew."""
        self.require_possible(student, question, points)
        with self._transaction() as db:
            grade = self._grade(db, student, question)
            grade.manual_score, grade.needs_manual_grade = points, False
            if comment:
                self._gradebook.find_comment(
                    question, grade.notebook.name, self.assignment, student
                ).manual_comment = comment
            penalized = [row for row in grade.notebook.assignment.notebooks if row.late_submission_penalty is not None]
            self._penalize(db, grade.notebook.assignment, penalized)

    def _grade(self, db: Session, student: str, question: str) -> Any:
        of = select(Grade).join(BaseCell).join(SubmittedNotebook).join(SubmittedAssignment).join(Assignment)
        of = of.where(Assignment.name == self.assignment, BaseCell.name == question)
        grade = db.scalar(of.where(SubmittedAssignment.student_id == student))
        if grade is None:
            raise GradingError(f"{plain(student)} has no question {plain(question)!r} in {self.assignment}")
        return grade

    def record_nothing(self, student: str, when: datetime | None = None, *, same: bool = False) -> None:
        """Record that a submission earned nothing. Marks given by hand stay, and have to be looked at again."""
        self.record(student, {}, when, same=same)

    @contextmanager
    def _transaction(self) -> Iterator[Session]:
        """Make everything in the block one transaction, and forget afterwards what was read in it."""
        db = self._gradebook.db
        with self._gradebook.engine.begin() as connection:
            # Each of nbgrader's methods commits. In a session that joins a transaction begun outside of it, a commit is
            # only a flush, while a rollback undoes everything, so only the end of the block commits. Autoflush is off
            # because it would write unfinished rows whenever something is read.
            db.configure(
                bind=connection, join_transaction_mode="rollback_only", expire_on_commit=False, autoflush=False
            )
            try:
                yield db()
                db.flush()
            finally:
                db.remove()

    def _names(self, db: Session) -> tuple[dict[str, str], dict[str, str]]:
        """Return the names of the assignment's notebooks and cells by their ids."""
        try:
            assignment = self._gradebook.find_assignment(self.assignment)
        except MissingEntry as missing:
            raise GradingError(
                f"{self.assignment!r} is not in the gradebook yet: grade it with `run`, which registers it"
            ) from missing
        except ValueError as error:
            raise GradingError(
                f"the due date of {self.assignment} in the gradebook cannot be read ({error}). Set it again: nbgrader "
                f'db assignment add {self.assignment} --duedate "2030-01-31 23:59 UTC"'
            ) from None
        notebooks = {notebook.id: notebook.name for notebook in assignment.notebooks}
        cells = select(BaseCell.id, BaseCell.name).join(Notebook).where(Notebook.assignment_id == assignment.id)
        return notebooks, {cell.id: cell.name for cell in db.execute(cells)}

    def _students(self, db: Session) -> set[str]:
        its = select(SubmittedAssignment.student_id).join(Assignment).where(Assignment.name == self.assignment)
        return set(db.scalars(its))

    def _submission(self, student: str, when: datetime | None) -> Any:
        if student not in self._known:
            remember(self.course, student)
            self._known.add(student)
        self._gradebook.update_or_create_student(student)
        known = {} if when is None else {"timestamp": when}
        return self._gradebook.update_or_create_submission(self.assignment, student, **known)

    def _rows(self, db: Session, kind: type[Any], submission: Any) -> CellRows:
        """Return a submission's grades or comments.

        If the database can lock rows, these are locked, so a mark that a person gives meanwhile is written before or
        after.
        """
        its = select(kind).join(SubmittedNotebook).where(SubmittedNotebook.assignment_id == submission.id)
        rows: CellRows = defaultdict(dict)
        for row in db.scalars(its.with_for_update(of=kind)):
            rows[row.notebook_id][self._cells[row.cell_id]] = row
        return rows

    def _penalize(self, db: Session, submission: SubmittedAssignment, notebooks: Sequence[SubmittedNotebook]) -> None:
        """Set the late penalties."""
        seconds = submission.total_seconds_late if submission.assignment.duedate else 0
        db.flush()  # a notebook's score is summed up by the database
        for notebook in notebooks:
            notebook.late_submission_penalty = None
            if seconds > 0:
                asked = self._asked(submission.student_id, notebook.score, seconds)
                self.log.warning("%s: %s seconds late, penalty %s", submission.student_id, seconds, asked)
                if asked is not None:
                    notebook.late_submission_penalty = self._late._check_late_penalty(notebook, asked)
