"""What students are told about their tests: what they reject, what survives, and which test kills what."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from attnlib.checks import report_html
from attnlib.checks.array_text import counted
from attnlib.checks.book_links import address, reread, section_data
from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.exercise import Section
from attnlib.checks.mutation.kill_matrix import KillMatrix, Rejection, Survivors
from attnlib.checks.mutation.kill_table import html_table, text_table
from attnlib.checks.mutation.target import PLAIN, UNCHANGED, Target
from attnlib.checks.report import MIME_TYPE


@dataclass(frozen=True)
class KillReport:
    """The outcome of tests.

    Attributes:
        target: what the tests are written for.
        matrix: the outcomes, or None if the tests did not finish.
        used: the kinds of the inputs that the tests used.
        stopped: why they did not finish, in a sentence, or "".
        unwritten: whether there are no tests yet.
        points: what a full score earns.
    """

    target: Target
    matrix: KillMatrix | None
    used: frozenset[str] = frozenset()
    stopped: str = ""
    unwritten: bool = False
    points: float | None = None

    @property
    def score(self) -> float:
        """The share of the mutants that were killed, by weight, or 0."""
        return self.matrix.score() if self.matrix else 0.0

    @property
    def passed(self) -> bool:
        """Whether all mutants were killed and no test rejected a correct version."""
        return self.score == 1

    @property
    def title(self) -> str:
        """The outcome in a few words."""
        if self.unwritten:
            return "not written yet"
        if self.matrix is None:
            return "the tests did not finish"
        if rejected := self.matrix.rejections():
            return f"{counted(len(rejected), 'test')} rejected a correct version"
        killed = self.matrix.killed()
        return f"{sum(killed)} of {len(killed)} mistakes caught"

    @property
    def section(self) -> Section | None:
        """What to reread, unless everything was caught, or nothing is written."""
        return None if self.passed or self.unwritten else CATALOGUE[self.target.exercise].section

    @property
    def message(self) -> str:
        """The whole report as plain text."""
        table = text_table(self.matrix) if self.matrix else ""
        advice = reread(self.section) if self.section else ""
        lines = [line for block in (*self.what(), table, advice) if block for line in block.split("\n")]
        return "\n  ".join([self.headline(), *lines])

    def headline(self) -> str:
        """One line: the target, the outcome, and what it earned."""
        earned = "" if self.points is None else f" · {self.score * self.points:.3g} of {counted(self.points, 'point')}"
        return f"{'✓' if self.passed else '✗'} tests of {self.target.name}: {self.title}{earned}"

    def what(self) -> list[str]:
        """Return the paragraphs about rejections, survivors and the smallest set of tests."""
        if self.unwritten:
            return [f"Write tests of {self.target.name}, and assign a list of them to the name that the check uses."]
        if self.matrix is None:
            return [self.stopped]
        if rejections := self.matrix.rejections():
            nothing = "Your tests earn nothing as long as one of them rejects a correct version."
            return [*map(_rejected, rejections.values()), f"{nothing} The task leaves open {self.target.left_open}."]
        smallest = self.matrix.smallest()
        fewer = 0 < len(smallest) < len(self.matrix.tests)
        few = [f"{_listed(smallest)} alone would catch as many."] if fewer else []
        return [*map(_survived, self.matrix.survivors(self.used)), *few]

    def data(self) -> dict[str, Any]:
        """Return what a machine needs, as plain JSON values."""
        keys = ("score", "passed", "title", "message", "points")
        about = {"exercise": f"tests of {self.target.name}", "backend": "numpy", "mistake": None}
        return about | {key: getattr(self, key) for key in keys} | section_data(self.section)

    def __str__(self) -> str:
        return self.message

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        blocks = [report_html.paragraph(text) for text in self.what() if text]
        blocks += [html_table(self.matrix)] if self.matrix else []
        if section := self.section:
            blocks.append(report_html.reread(str(section), address(section)))
        html = report_html.box(self.passed, self.headline(), blocks, self.target.name)
        return {"text/plain": self.message, "text/html": html, MIME_TYPE: self.data()}


def _rejected(rejection: Rejection) -> str:
    outcome = rejection.outcome
    line = f" ({outcome.line})" if outcome.line else ""
    said = (outcome.error or "").splitlines()[0]
    return (
        f"{outcome.test} rejects a correct version, written in this style: {rejection.style}. "
        f"The test raised {said}{line}."
    )


def _listed(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _survived(survivors: Survivors) -> str:
    kind, some = survivors.kind, f"{survivors.survived} of {survivors.of} survived."
    show = "Mistakes that show"
    if kind == PLAIN.name:
        return f"{show} with ordinary inputs: {some} Vary the shapes and the options, and compare every number."
    if kind == UNCHANGED.name:
        return f"Mistakes that change an argument: {some} Compare the arguments with copies made before the call."
    if not survivors.used:
        return f"{show} only with {kind}: {some} None of your tests uses that."
    return f"{show} only with {kind}: {some} Your tests use that: compare every number that comes back."
