"""Grade one submission with nbgrader, whatever state it arrived in."""

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from logging import Logger
from pathlib import Path
from tempfile import TemporaryDirectory

from traitlets.config import Config

from attnlib.checks.display import BOOK
from grading._untyped import (
    Autograde,
    CourseDirectory,
    GenerateFeedback,
    Gradebook,
    NbGraderException,
    read_notebook,
)
from grading.course import Course, environment, quiet
from grading.execute import VERDICT
from grading.outcome import Outcome, findings, plain

MOST_BYTES, MOST_CELLS, MOST_TEXT = 20_000_000, 500, 500_000  # no answer comes near; a reader or a page would drown
NO_PAGE = "no feedback page: "


class _Feedback(GenerateFeedback):  # type: ignore[misc]
    """nbgrader's own, which writes pages and copies no other files."""

    def init_assignment(self, assignment_id: str, student_id: str) -> None:
        pass


class _Autograde(Autograde):  # type: ignore[misc]
    """nbgrader's own, which also remembers what went wrong: while preparing a notebook, or after."""

    failure: Exception | None = None
    prepared = False

    def _init_preprocessors(self) -> None:
        self.prepared = not self._sanitizing
        super()._init_preprocessors()

    def convert_single_notebook(self, notebook_filename: str) -> None:
        try:
            super().convert_single_notebook(notebook_filename)
        except Exception as error:
            self.failure = error
            raise


class Grader:
    """Grades submissions to one assignment, one at a time. The gradebook has to know the assignment already."""

    def __init__(self, course: Course, assignment: str, timeout: int, log: Logger) -> None:
        self.course, self.assignment, self.log = course, assignment, log
        self.config = course.config()
        self.config.CourseDirectory.assignment_id = assignment
        self.config.BaseConverter.force = True
        self.config.Execute.timeout = timeout

    def grade(self, student: str, *, again: bool = True) -> Outcome:
        """Grade a student's submission and write the feedback. No submission can make this raise.

        Unless ``again``, what was graded before as it is now keeps its grade, and what a person made of it.
        """
        try:
            files = self._arrived(student)
            digest = self._digest(student, files)
            if not again and (before := self._before(student, digest)):
                return before
            with quiet():
                outcome = self._outcome(student, files)
        except Exception as error:
            self.log.exception("the grader failed on %s", student)
            return self.failed(student, f"{type(error).__name__}: {error}")
        return self._save(replace(outcome, digest=digest))

    def failed(self, student: str, reason: str) -> Outcome:
        """Say that the grader failed on a student, and leave no earlier grade that could be taken for this one's."""
        try:
            with quiet():
                outcome = self._nothing_earned(student, "infrastructure", reason)
        except Exception:
            self.log.exception("what %s had earned before stands", student)
            outcome = Outcome(student, "infrastructure", reason)
        return self._save(outcome)

    def refresh(self, outcome: Outcome) -> None:
        """Write a student's feedback again, with the scores and comments that a person has given since."""
        if self._notebooks(outcome.student):
            with quiet():
                self._save(self._with_page(outcome))

    def _outcome(self, student: str, files: Mapping[str, Path]) -> Outcome:
        if not files:
            return self._missing(student)
        for name, file in files.items():
            if wrong := self._unreadable(name, file):
                self.log.warning("%s: %s", student, wrong)
                return self._nothing_earned(student, "unreadable", f"{wrong} Ask for it again.")
        return self._autograde(student, files)

    def _save(self, outcome: Outcome) -> Outcome:
        outcome.save(self.course.outcomes(self.assignment))
        return outcome

    def _arrived(self, student: str) -> dict[str, Path]:
        """Return the notebooks that came, by name: regular files in the student's own folder, and nothing else."""
        home = os.path.realpath(self.course.folder / "submitted" / student)
        folder = self.course.submitted(student, self.assignment)
        real = {name: Path(os.path.realpath(folder / name)) for name in self.course.notebooks(self.assignment)}
        return {name: file for name, file in real.items() if file.is_relative_to(home) and file.is_file()}

    def _digest(self, student: str, files: Mapping[str, Path]) -> str:
        """Return a digest of all that a grade depends on: what came, and what was asked."""
        source = self.course.root / "solutions" / self.assignment
        asked = {name: source / name for name in self.course.notebooks(self.assignment)}
        digest = sha256(b"" if files else self._instead(student).encode())
        for name, file in [*files.items(), *asked.items()]:
            size = file.stat().st_size
            digest.update(f"{name!r} {size} ".encode())
            if size <= MOST_BYTES:
                digest.update(file.read_bytes())
        return digest.hexdigest()

    def _before(self, student: str, digest: str) -> Outcome | None:
        """Return the outcome of the last run where it would come out the same."""
        try:
            before = Outcome.load(self.course.outcomes(self.assignment) / f"{student}.json")
        except (OSError, ValueError, TypeError):
            return None
        return before if before.digest == digest and before.verdict != "infrastructure" else None

    def _instead(self, student: str) -> str:
        """Return what is in a student's folder."""
        folder = self.course.submitted(student, self.assignment)
        return plain(", ".join(sorted(path.name for path in folder.glob("*"))) or "nothing")

    def _missing(self, student: str) -> Outcome:
        wanted = ", ".join(self.course.notebooks(self.assignment))
        reason = f"no {wanted} came as a file. Ask for it, or rename what is there: {self._instead(student)}"
        return self._nothing_earned(student, "missing", reason)

    def _unreadable(self, name: str, file: Path) -> str | None:
        """Say why a notebook cannot be graded, or return None."""
        size = file.stat().st_size
        if size == 0:
            return f"{name} is empty."
        if size > MOST_BYTES:
            return f"{name} has {size} bytes, more than {MOST_BYTES}."
        try:
            cells = read_notebook(file).cells
            text = sum(len(cell.source) for cell in cells)
        except Exception as error:  # a broken file can break the reader in any way
            return f"{name} is no whole notebook ({type(error).__name__}); was it cut off?"
        if len(cells) > MOST_CELLS:
            return f"{name} has {len(cells)} cells, more than {MOST_CELLS}."
        return f"{name} has {text} characters of text, more than {MOST_TEXT}." if text > MOST_TEXT else None

    def _autograde(self, student: str, files: Mapping[str, Path]) -> Outcome:
        # A feedback page is read elsewhere: without an address of the book, it names what to reread, and links nowhere.
        book = environment(BOOK, os.environ.get(BOOK, ""))
        with book, TemporaryDirectory(prefix="submission-") as staged:
            folder = Path(staged) / student / self.assignment
            folder.mkdir(parents=True)
            for name, file in files.items():
                shutil.copyfile(file, folder / name)
            converter = _Autograde(**self._for(student, staged))
            try:
                converter.start()
            except NbGraderException:
                if converter.failure is None or converter.prepared:
                    raise
                said = f"{type(converter.failure).__name__}: {converter.failure}"
                reason = f"nbgrader cannot match its cells with those of the assignment ({said}). Compare the two."
                return self._nothing_earned(student, "unreadable", reason)
        return self._with_page(self._read(student))

    def _with_page(self, outcome: Outcome) -> Outcome:
        """Write the feedback page. Where that fails, the grade stays, and the outcome says so."""
        reason = outcome.reason.partition(NO_PAGE)[0].strip()
        try:
            _Feedback(**self._for(outcome.student)).start()
        except Exception as error:
            self.log.exception("no feedback page for %s", outcome.student)
            shutil.rmtree(self.course.feedback(outcome.student, self.assignment), ignore_errors=True)
            reason = f"{reason} {NO_PAGE}{type(error).__name__}: {error}".strip()
        return replace(outcome, reason=reason)

    def _notebooks(self, student: str) -> list[Path]:
        """Return a student's executed notebooks."""
        folder = self.course.autograded(student, self.assignment)
        return [folder / name for name in self.course.notebooks(self.assignment) if (folder / name).is_file()]

    def _read(self, student: str) -> Outcome:
        notebooks = [read_notebook(file) for file in self._notebooks(student)]
        verdicts = [notebook.metadata[VERDICT] for notebook in notebooks]
        worst = next((verdict for verdict in verdicts if verdict.verdict != "graded"), verdicts[0])
        found = tuple(finding for notebook in notebooks for finding in findings(notebook))
        return Outcome(student, worst.verdict, worst.reason, found)

    def _nothing_earned(self, student: str, verdict: str, reason: str) -> Outcome:
        """Take away what nbgrader gave to an earlier submission; what a person gave stands, to be looked at again."""
        for folder in (self.course.autograded, self.course.feedback):
            shutil.rmtree(folder(student, self.assignment), ignore_errors=True)
        with Gradebook(self.config.CourseDirectory.db_url, self.config.CourseDirectory.course_id) as gradebook:
            gradebook.update_or_create_student(student)
            submission = gradebook.update_or_create_submission(self.assignment, student)
            for grade in (grade for notebook in submission.notebooks for grade in notebook.grades):
                grade.auto_score, grade.needs_manual_grade = 0, grade.manual_score is not None
            gradebook.db.commit()
        return Outcome(student, verdict, reason)

    def _for(self, student: str, submitted: str | None = None) -> dict[str, object]:
        """Return what an nbgrader converter needs to work on one student alone."""
        config = Config(self.config)
        config.CourseDirectory.student_id = student
        if submitted:
            config.CourseDirectory.submitted_directory = submitted
        return {"coursedir": CourseDirectory(config=config, log=self.log), "config": config, "log": self.log}
