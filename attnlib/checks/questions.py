"""Questions with options to choose from: every option has an explanation, which is shown to students who choose it."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from attnlib.checks import report_html
from attnlib.checks.array_text import counted
from attnlib.checks.book_links import address, reread, section_data
from attnlib.checks.exercise import Section
from attnlib.checks.report import MIME_TYPE

IGNORED_AROUND_ANSWERS = " \t\r\n\"'`“”‘’"  # spaces and quotation marks that can surround an answer


@dataclass(frozen=True)
class Question:
    """A question, known by its ``name``. Its text and its options are in the notebook.

    ``why`` explains every option, by its letter: why it is right, or what it overlooks without saying which is right.
    ``right`` is the letter of the right option or, in the copy for students, its digest, so that nobody reads the
    answer in passing. It is not a secret: the check says yes to whoever tries all options.
    """

    name: str
    right: str
    why: dict[str, str]
    section: Section

    def is_right(self, letter: str | None) -> bool:
        """Whether this is the letter of the right option."""
        return letter is not None and self.right in (letter, digest_of_answer(self.name, letter))


def digest_of_answer(name: str, letter: str) -> str:
    """Return what takes the place of the right letter in the copy for students."""
    return sha256(f"{name}: {letter}".encode()).hexdigest()


@dataclass(frozen=True)
class Choice:
    """A student's answer to a question, and the explanation of it.

    Attributes:
        question: the question.
        answer: what the student gave: a letter, or anything else.
        points: what the right answer earns; None outside of a graded cell.
    """

    question: Question
    answer: Any
    points: float | None = None

    @property
    def letter(self) -> str | None:
        """The option that was chosen, or None if the answer is not an option."""
        letter = self.answer.strip(IGNORED_AROUND_ANSWERS).upper() if isinstance(self.answer, str) else None
        return letter if letter in self.question.why else None

    @property
    def passed(self) -> bool:
        """Whether the right option was chosen."""
        return self.question.is_right(self.letter)

    @property
    def score(self) -> float:
        """1 for the right option, 0 for the others."""
        return float(self.passed)

    @property
    def title(self) -> str:
        """The verdict in a few words."""
        if self.answer is None:
            return "not answered yet"
        return "none of the options" if self.letter is None else f"{self.letter}, {'' if self.passed else 'not '}right"

    @property
    def message(self) -> str:
        """The whole answer as plain text."""
        advice = [reread(self.section)] if self.section else []
        return "\n  ".join([self.headline(), self.what(), *advice])

    def headline(self) -> str:
        """One line: the verdict, the question, and what the answer earned."""
        earned = "" if self.points is None else f" · {self.score * self.points:g} of {counted(self.points, 'point')}"
        return f"{'✓' if self.passed else '✗'} {self.question.name}: {self.title}{earned}"

    @property
    def section(self) -> Section | None:
        """What to reread if a wrong option was chosen."""
        return None if self.letter is None or self.passed else self.question.section

    def what(self) -> str:
        """Return the explanation of the option that was chosen, or how to choose one."""
        if self.letter is None:
            letters = ", ".join(f'"{letter}"' for letter in self.question.why)
            came = "" if self.answer is None else f" Your answer is {str(self.answer)[:80]!r}."
            return f"Set the answer to one of {letters}, with the quotation marks, and run both cells again.{came}"
        return self.question.why[self.letter]

    def data(self) -> dict[str, Any]:
        """Return what a machine needs, as plain JSON values; the chosen option takes the place of a mistake."""
        keys = ("score", "passed", "title", "message", "points")
        chosen = {"exercise": self.question.name, "backend": "choice", "mistake": None if self.passed else self.letter}
        return chosen | {key: getattr(self, key) for key in keys} | section_data(self.section)

    def __str__(self) -> str:
        return self.message

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        blocks = [report_html.paragraph(self.what())]
        if section := self.section:
            blocks.append(report_html.reread(str(section), address(section)))
        html = report_html.box(self.passed, self.headline(), blocks)
        return {"text/plain": self.message, "text/html": html, MIME_TYPE: self.data()}
