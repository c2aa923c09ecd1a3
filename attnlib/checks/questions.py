"""Answers to multiple-choice questions. Which option is right, and why, is known only where answers are graded."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from attnlib.checks import report_html
from attnlib.checks.array_text import counted
from attnlib.checks.book_links import address, reread, section_data
from attnlib.checks.exercise import Section
from attnlib.checks.options import Options, Question
from attnlib.checks.report import MIME_TYPE
from attnlib.checks.student import normal

IGNORED_AROUND_ANSWERS = " \t\r\n\"'`“”‘’"  # spaces and quotation marks that can surround an answer
HANDED_IN = (
    "This answer is handed in with your notebook. The check does not know which option is right: after grading, your "
    "feedback explains the option that you chose."
)
ANOTHER_STUDENT = (
    "Your notebook shows the options in the order of {0!r}, but {1!r} handed it in, so your letter was read in the "
    "order of {1!r}. State the id that your course site or instructor names with set_student(…)."
)
SAVED_OTHERWISE = (
    "Your notebook was saved with the options in another order than that of {0!r}, in which your letter was read. "
    "State the id that your course site or instructor names with set_student(…), run the notebook again, and save it."
)
OF_NO_STUDENT = (
    "In an exam, the letters {} earn nothing, because they are the same for all students. Only the letters of your own "
    "order count: {}. You see them once you have stated your id with set_student(…)."
)
FIRST_COUNTS = "Your first answer that was graded counts, and it was {}. A later answer does not change the points."


@dataclass(frozen=True)
class AnswerKey:
    """The letter of the right option, and an explanation of every option: why it is right, or what it overlooks."""

    right: str
    why: Mapping[str, str]


@dataclass(frozen=True)
class Choice:
    """A student's answer to a question and, where answers are graded, the explanation of it.

    Attributes:
        question: the question.
        answer: what the student gave: a letter, or anything else.
        points: what the right answer earns; None outside of a graded cell.
        key: what is right; None in a student's notebook, which does not know it.
        first: the option that counts because an earlier submission that was graded chose it.
        student: the id in whose order a letter from P on is read, or "" if nobody knows whose answer this is.
        stated: the id that the notebook states, or "" if it states none.
        differs: whether the notebook was saved with the options in another order than the student's.
        exam: whether only the letters of the student's own order count.
    """

    question: Question
    answer: Any
    points: float | None = None
    key: AnswerKey | None = None
    first: str | None = None
    student: str = ""
    stated: str = ""
    differs: bool = False
    exam: bool = False

    @property
    def letter(self) -> str | None:
        """The option that counts, by the letter under which it was written, or None if there is none."""
        return self.first or self._chosen

    @property
    def _written(self) -> str:
        """The letter that the student wrote, or something else if the answer is not a letter."""
        return self.answer.strip(IGNORED_AROUND_ANSWERS).upper() if isinstance(self.answer, str) else ""

    @property
    def options(self) -> Options:
        """The options as the student saw them: the answer's letter tells, or else whether the notebook states an id."""
        own, as_written = Options(self.question, self.student), Options(self.question)
        if self._written in as_written.letters and not self.exam:
            return as_written
        return own if self.exam or self.stated or self._written in own.letters else as_written

    @property
    def _chosen(self) -> str | None:
        """The option that the answer names, or None if it is not an option."""
        return None if self._of_no_student else self.options.letters.get(self._written)

    @property
    def _of_no_student(self) -> bool:
        """Whether this is an exam, and the answer is a letter that is the same for all students."""
        return self.exam and self._written in Options(self.question).letters

    @property
    def shown(self) -> str | None:
        """The option that counts, by the letter that the student saw."""
        return self.letter and self.options.label(self.letter)

    @property
    def is_open(self) -> bool:
        """Whether an option was chosen and nothing here knows whether it is right."""
        return self.letter is not None and self.key is None

    @property
    def passed(self) -> bool:
        """Whether the right option was chosen or, where no key is known, any option."""
        return self.is_open or self._is_right

    @property
    def _is_right(self) -> bool:
        return self.key is not None and self.letter == self.key.right

    @property
    def score(self) -> float:
        """1 for the right option, and 0 for the others and for one that is not graded yet."""
        return float(self._is_right)

    @property
    def title(self) -> str:
        """The verdict in a few words, with the letter that the student saw."""
        return self._verdict(self.shown)

    def _verdict(self, letter: str | None) -> str:
        if letter is None and self._of_no_student:
            return f"{self._written}, which earns nothing in an exam"
        if letter is None:
            return "not answered yet" if self.answer is None else "none of the options"
        return f"{letter}, " + ("to be graded" if self.is_open else "right" if self._is_right else "not right")

    @property
    def message(self) -> str:
        """The whole answer as plain text."""
        advice = [reread(self.section)] if self.section else []
        return "\n  ".join([self.headline(), self.what(), *advice])

    def headline(self) -> str:
        """One line: the verdict, the question, and what the answer earned."""
        mark = "•" if self.is_open else "✓" if self.passed else "✗"
        return f"{mark} {self.question.name}: {self.title}{self._earned()}"

    def _earned(self) -> str:
        if self.points is None:
            return ""
        worth = counted(self.points, "point")
        return f" · {worth}" if self.is_open else f" · {self.score * self.points:g} of {worth}"

    @property
    def section(self) -> Section | None:
        """What to reread if a wrong option was chosen."""
        return None if self.letter is None or self.passed else self.question.section

    def what(self) -> str:
        """Return the explanation of the option that was chosen, or how to choose one."""
        if self.letter is None and self._of_no_student:
            return OF_NO_STUDENT.format(", ".join(Options(self.question).letters), ", ".join(self.options.letters))
        if self.letter is None:
            letters = ", ".join(f'"{letter}"' for letter in self.options.letters)
            came = "" if self.answer is None else f" Your answer is {str(self.answer)[:80]!r}."
            return f"Set the answer to one of {letters}, with the quotation marks, and run both cells again.{came}"
        said = [self._chose(), HANDED_IN] if self.key is None else [self.options.filled(self.key.why[self.letter])]
        if self.letter != self._chosen:
            said.append(FIRST_COUNTS.format(self.shown))
        if self.options.student and normal(self.stated) not in ("", normal(self.student)):
            said.append(ANOTHER_STUDENT.format(self.stated, self.student))
        elif self.options.student and self.differs:
            said.append(SAVED_OTHERWISE.format(self.student))
        return "\n".join(said)

    def _chose(self) -> str:
        """Return the option that was chosen, and in whose order its letter was read."""
        whose = f" in the order of {self.student!r}" if self.options.student else " as the options were written"
        return f"You chose {self.shown}{whose if self.student else ''}: {self.options.texts[self.shown or '']}"

    def data(self) -> dict[str, Any]:
        """Return what a machine needs, as plain JSON values; the chosen option takes the place of a mistake.

        Its letter, and that in the title, is the one under which it was written, which is the same for all students.
        """
        keys = ("score", "passed", "message", "points")
        chosen = {"exercise": self.question.name, "backend": "choice", "mistake": None if self.passed else self.letter}
        said = {"title": self._verdict(self.letter)} | {key: getattr(self, key) for key in keys}
        return chosen | said | section_data(self.section)

    def __str__(self) -> str:
        return self.message

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        blocks = [report_html.paragraph(self.what())]
        if section := self.section:
            blocks.append(report_html.reread(str(section), address(section)))
        html = report_html.box(None if self.is_open else self.passed, self.headline(), blocks)
        return {"text/plain": self.message, "text/html": html, MIME_TYPE: self.data()}
