"""Questions, and their options in an order of each student's own. Which of them is right is not known here.

A student who has not stated an id sees the options as they were written, with the letters A to D. In an order of a
student's own they are P to S, so that each answer says by itself which of the two its letter refers to. That order
depends only on the question, which belongs to one assignment, and on the student's id. So do the numbers of a question
that asks for one.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlib.checks.student import normal

if TYPE_CHECKING:
    from attnlib.checks.exercise import Section  # the wheel for an exam has no such module

FILE = Path(__file__).parent / "catalogue" / "options.toml"
SHOWS_OPTIONS = re.compile(r"""show_options\(["']([\w-]+)["']\)""")
OWN_LETTERS = "PQRSTUVW"  # none of them is the letter of an option as it was written
AS_WRITTEN = (
    "In a course, you can have the options in an order of your own: in a new cell, run `from attnlib.checks import "
    'set_student`, then `set_student("…")` with the id that your course site or instructor names, and then this cell '
    "again."
)


def question_in(source: str) -> str:
    """Return the question whose options a cell with this source shows, or "" if it does something else.

    >>> question_in('show_options("shift-or-stretch")')
    'shift-or-stretch'
    """
    found = SHOWS_OPTIONS.fullmatch(source.strip())
    return found[1] if found else ""


@lru_cache(maxsize=1)
def option_texts() -> dict[str, dict[str, str]]:
    """Return the text of every option, by the name of the question and the letter under which it was written."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Numbers:
    """The numbers in a question that asks for one. Each student gets one of several sets.

    Attributes:
        given: the sentence that states them, with a field for each, as ``str.format`` fills it in.
        sets: the sets of numbers, by the names of the fields in that sentence and in the options; explanations use the
            same fields. The first one belongs to the options as they were written.
    """

    given: str
    sets: tuple[Mapping[str, int], ...]


@dataclass(frozen=True)
class Question:
    """A question: its name, the letters of its options as they were written, what to reread, and its numbers, if any.

    Its text is in the notebook, and the texts of its options are in ``catalogue/options.toml``.
    """

    name: str
    options: str
    section: "Section | None"
    numbers: Numbers | None = None


@dataclass(frozen=True)
class Options:
    """The options of a question as one student sees them.

    Attributes:
        question: the question.
        student: the student's id; ``""`` for the order in which the options were written.
    """

    question: Question
    student: str = ""

    @property
    def letters(self) -> dict[str, str]:
        """The letters that are shown, in order, each with the one under which the option was written."""
        written = self.question.options
        if not normal(self.student):
            return {letter: letter for letter in written}
        return dict(zip(OWN_LETTERS, sorted(written, key=self._digest), strict=False))

    def _digest(self, what: str) -> bytes:
        """Return a digest of the question, the student and what it is for. Options are sorted by theirs."""
        return sha256(f"{self.question.name} {what} {normal(self.student)}".encode()).digest()

    def filled(self, text: str) -> str:
        """Return a text of the question with the numbers that the student got."""
        numbers = self.question.numbers
        if numbers is None:
            return text
        drawn = int.from_bytes(self._digest("numbers")) % len(numbers.sets) if normal(self.student) else 0
        return text.format(**numbers.sets[drawn])

    @property
    def given(self) -> str:
        """The sentence that states the numbers, or "" if the question has none."""
        return self.filled(self.question.numbers.given) if self.question.numbers else ""

    def label(self, letter: str) -> str:
        """Return the letter that is shown for an option, given the one under which it was written."""
        return next(shown for shown, written in self.letters.items() if written == letter)

    @property
    def texts(self) -> dict[str, str]:
        """The texts of the options, in order, by the letters that are shown."""
        texts = option_texts()[self.question.name]
        return {shown: self.filled(texts[written]) for shown, written in self.letters.items()}

    def __str__(self) -> str:
        lines = [f"{letter}. {text}" for letter, text in self.texts.items()]
        remark = "" if normal(self.student) else AS_WRITTEN
        return "\n".join(filter(None, [self.given, *lines, remark]))

    def markdown(self) -> str:
        """Return the numbers and the options as a list, without any remark."""
        options = "\n".join(f"- **{letter}.** {text}" for letter, text in self.texts.items())
        return "\n\n".join(filter(None, [self.given, options]))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        remark = "" if normal(self.student) else f"\n\n*{AS_WRITTEN}*"
        return {"text/plain": str(self), "text/markdown": self.markdown() + remark}
