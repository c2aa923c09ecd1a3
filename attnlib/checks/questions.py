"""Questions with options to choose from. Which option is right, and why, is known only where answers are graded."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from attnlib.checks import report_html
from attnlib.checks.array_text import counted
from attnlib.checks.book_links import address, reread, section_data
from attnlib.checks.exercise import Section
from attnlib.checks.report import MIME_TYPE

IGNORED_AROUND_ANSWERS = " \t\r\n\"'`“”‘’"  # spaces and quotation marks that can surround an answer
HANDED_IN = (
    "This answer is handed in with your notebook. The check does not know which option is right: after grading, your "
    "feedback explains the option that you chose."
)
FIRST_COUNTS = "Your first answer that was graded counts, and it was {}. A later answer does not change the points."


@dataclass(frozen=True)
class Question:
    """A question: its name, the letters of its options, and what to reread. Its text is in the notebook."""

    name: str
    options: str
    section: Section


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
    """

    question: Question
    answer: Any
    points: float | None = None
    key: AnswerKey | None = None
    first: str | None = None

    @property
    def letter(self) -> str | None:
        """The option that counts, or None if there is none."""
        return self.first or self._chosen

    @property
    def _chosen(self) -> str | None:
        """The option that the answer names, or None if it is not an option."""
        letter = self.answer.strip(IGNORED_AROUND_ANSWERS).upper() if isinstance(self.answer, str) else ""
        return letter if len(letter) == 1 and letter in self.question.options else None

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
        """The verdict in a few words."""
        if self.letter is None:
            return "not answered yet" if self.answer is None else "none of the options"
        return f"{self.letter}, " + ("to be graded" if self.is_open else "right" if self._is_right else "not right")

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
        if self.letter is None:
            letters = ", ".join(f'"{letter}"' for letter in self.question.options)
            came = "" if self.answer is None else f" Your answer is {str(self.answer)[:80]!r}."
            return f"Set the answer to one of {letters}, with the quotation marks, and run both cells again.{came}"
        explained = HANDED_IN if self.key is None else self.key.why[self.letter]
        return explained if self.letter == self._chosen else f"{explained}\n{FIRST_COUNTS.format(self.letter)}"

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
        html = report_html.box(None if self.is_open else self.passed, self.headline(), blocks)
        return {"text/plain": self.message, "text/html": html, MIME_TYPE: self.data()}
