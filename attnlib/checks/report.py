"""What a student is told: the idea that was wrong, what was seen, what to reread, a first hint. Never the code."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from attnlib.checks import report_html
from attnlib.checks.array_text import counted, format_argument
from attnlib.checks.book_links import address, reread, section_data
from attnlib.checks.calling.call_submission import Answer
from attnlib.checks.calling.case import Case
from attnlib.checks.calling.conventions import named_arrays
from attnlib.checks.comparison import Comparison, first_difference
from attnlib.checks.differences import inspection_order
from attnlib.checks.error_explanations import explain_error
from attnlib.checks.exercise import AGAIN, Exercise, Mistake, Section

MIME_TYPE = "application/vnd.attnlib.report+json"
MAX_INPUTS = 24  # numbers of a case that are shown
MAX_NAMES = 3  # cases of one kind that are named
FORBIDDEN = (
    "{} does what this exercise asks you to write. While a submission is graded, it raises an error, so this answer "
    "would not earn its points. Write the steps yourself."
)


@dataclass(frozen=True)
class Failure:
    """The first case that went wrong.

    Attributes:
        case: the case.
        answer: what came back.
        expected: what should have come back.
        difference: a sentence about how the two differ.
        exercise: the exercise.
        tolerance: how far numbers may be apart.
        others: the names of the later cases that went wrong for another reason.
        right: how many cases are right.
        asked: how many cases there are.
        last_right: the name of the last case before this one that is right, or None.
        wrong: all cases that went wrong, this one first.
    """

    case: Case
    answer: Answer
    expected: Answer
    difference: str
    exercise: Exercise
    tolerance: float
    others: tuple[str, ...] = ()
    right: int = 0
    asked: int = 0
    last_right: str | None = None
    wrong: tuple[Case, ...] = ()

    def kinds(self) -> str:
        """Return which kinds of case went wrong, each in a line: the criterion, and the names of its cases."""
        wrong = {case.name for case in self.wrong}
        named: dict[str, list[str]] = {}
        for case in self.wrong:
            if not (case.name.endswith(AGAIN) and case.name.removesuffix(AGAIN) in wrong):
                named.setdefault(case.criterion, []).append("the case above" if case is self.case else case.name)
        lines = [f"• {criterion}: {_listed(names)}" for criterion, names in named.items()]
        return "\n".join(["Wrong, by kind of case:", *lines])

    def comparison(self) -> Comparison | None:
        """Return the first array that differs, cut to a small table, or None if there is no such array."""
        for name in inspection_order(self.expected):
            want, got = self.expected.arrays[name], self.answer.arrays.get(name)
            if got is None or got.shape != want.shape:
                return None
            if found := first_difference(name, want, got, self.tolerance, self.exercise.outputs.get(name, ())):
                return found
        return None


@dataclass(frozen=True)
class Report:
    """The outcome of :func:`attnlib.checks.examine`.

    Attributes:
        exercise: name of the exercise.
        backend: ``"numpy"`` or ``"torch"``.
        score: 0 to 1, a plain float.
        named: the known mistake that was recognised, or None.
        failure: the first case that went wrong, or None if everything is right.
        points: what a full score earns; None outside a graded cell.
        hints: how many hints it gives, 1 or 2.
        remark: what is wrong in an argument that no task asks for; it costs no points.
        forbidden: a function that the answer called and that solves the exercise, such as ``attnlib.softmax``, or None.
        kept: the case that failed in the last check, if it still fails.
        offer: how to get hold of an input that fails, or None.
    """

    exercise: str
    backend: str
    score: float
    named: Mistake | None
    failure: Failure | None
    points: float | None = None
    hints: int = 1
    remark: "Report | None" = None
    forbidden: str | None = None
    kept: Case | None = None
    offer: str | None = None

    @property
    def passed(self) -> bool:
        """Whether every case that counts is right."""
        return self.failure is None

    @property
    def mistake(self) -> str | None:
        """The id of the recognised mistake, or None."""
        return self.named.id if self.named else None

    @property
    def unwritten(self) -> bool:
        """Whether the function still raises the NotImplementedError that the notebook came with."""
        return self.failure is not None and "raise NotImplementedError" in (self.failure.answer.line or "")

    @property
    def title(self) -> str:
        """What is wrong, in a few words."""
        if self.failure is None:
            return f"right, but it calls {self.forbidden}" if self.forbidden else "right"
        if self.unwritten:
            return "not written yet"
        return self.named.title if self.named else self.failure.difference

    @property
    def message(self) -> str:
        """The whole report as plain text."""
        blocks = [block for part in self.shown() for block in part._blocks()]
        return "\n".join([self.headline(), *(f"  {line}" for text in blocks for line in text.split("\n"))])

    def _blocks(self) -> list[str]:
        comparison, section = self.comparison(), self.section
        tables = str(comparison) if comparison else None
        advice = reread(section) if section else None
        return [block for block in (*self.what(), self.inputs(), tables, advice, *self.next_step()) if block]

    def _html_blocks(self) -> Iterator[str]:
        yield from map(report_html.paragraph, self.what())
        if inputs := self.inputs():
            yield report_html.preformatted(inputs)
        if comparison := self.comparison():
            yield report_html.tables(comparison)
        if section := self.section:
            yield report_html.reread(str(section), address(section))
        yield from map(report_html.paragraph, self.next_step())

    def shown(self) -> list["Report"]:
        """Return this report, and the remark below it if there is one."""
        return [self, replace(self.remark, hints=self.hints)] if self.remark else [self]

    def headline(self) -> str:
        """One line: the verdict, the exercise, what is wrong, and what it earned."""
        torch = " (torch)" if self.backend == "torch" else ""
        earned = "" if self.points is None else f" · {self.score * self.points:.3g} of {counted(self.points, 'point')}"
        return f"{'✓' if self.passed else '✗'} {self.exercise}{torch}: {self.title}{earned}"

    def what(self) -> list[str]:
        """Return the sentences about what is wrong: the mistake, if it was recognised, and what was seen."""
        warning = [FORBIDDEN.format(self.forbidden)] if self.forbidden else []
        if self.failure is None:
            return [*warning, *([self._beyond()] if self.remark else [])]
        if self.unwritten:
            return ["Replace the line that raises NotImplementedError with your own code, and run the cell again."]
        return [*([self.named.says] if self.named else []), self._seen(self.failure), *warning]

    def _seen(self, failure: Failure) -> str:
        """Return where it was seen and what was seen there, which an unknown mistake has as its title already."""
        answer, name = failure.answer, failure.case.name
        if answer.error:
            seen = [f"With {name}: {explain_error(answer)}"]
        else:
            seen = [f"With {name}: {failure.difference}." if self.named else f"This happened with {name}."]
        seen += [f"raised by {answer.line}"] if answer.line else []
        if self.named is None and failure.last_right is not None:
            seen.append(f"With {failure.last_right}, everything is right.")
        return "\n".join(seen)

    def _beyond(self) -> str:
        """Return the sentence that introduces a remark."""
        if self.remark is None or self.remark.failure is None:
            return ""
        case, options = self.remark.failure.case, self.remark.failure.exercise.ungraded_options
        names = " and ".join(name for name in options if name in {*case.options, *case.setup})
        about = f": {self.remark.named.title}" if self.remark.named else ""
        offers = f"Your function also takes {names}, which the task does not ask for{about}."
        return f"This remark costs no points. {offers}"

    def next_step(self) -> list[str]:
        """Return the sentences about what to do: the requested hints, and what to fix next."""
        if self.failure is None or self.section is None:
            return []
        return [*self._hints(), *self._others(), self.failure.kinds(), *([self.offer] if self.offer else [])]

    @property
    def section(self) -> Section | None:
        """What to reread: the section about the mistake, or about the exercise; None if nothing was wrong."""
        if self.failure is None or self.unwritten:
            return None
        return self.named.section if self.named else self.failure.exercise.section

    def _hints(self) -> list[str]:
        if self.failure is None:
            return []
        if self.named is None:
            return [f"Hint: {self.failure.exercise.advice}"]
        if self.hints > 1:
            return [f"Hint: {self.named.hint}", f"Second hint: {self.named.more}"]
        return [f'Hint: {self.named.hint} (check("{self.exercise}", …, hint=2) says more.)']

    def _others(self) -> list[str]:
        if self.failure is None:
            return []
        right = self.failure.right
        count = f"{right} of {self.failure.asked} cases {'is' if right == 1 else 'are'} right."
        others = self.failure.others
        if not others:
            return [count]
        more = (
            f", and in {len(others) - 1} more cases"
            if len(others) > 2
            else "".join(f", and with {x}" for x in others[1:])
        )
        known = self.named in self.failure.exercise.mistakes  # these alone are compared in every case
        reason = "for another reason" if known else "perhaps for the same reason"
        return [
            f"{count} Once you have fixed this, look again: something is also wrong, {reason}, with {others[0]}{more}."
        ]

    def inputs(self) -> str | None:
        """Return the inputs of the case as text if they are few enough to read."""
        if self.failure is None or self.unwritten:
            return None
        case = self.failure.case
        given = {**case.setup, **case.inputs, **case.options}
        arrays = [*named_arrays(given).values()]
        if sum(x.size for x in arrays) > MAX_INPUTS or not given:
            return None
        return "\n".join(format_argument(name, x) for name, x in given.items())

    def comparison(self) -> Comparison | None:
        """Return the first array that differs and the expected one, if both have the same shape."""
        return self.failure.comparison() if self.failure else None

    def data(self) -> dict[str, Any]:
        """Return what a machine needs of this report, as plain JSON values."""
        keys = ("exercise", "backend", "score", "passed", "mistake", "title", "message")
        points = {"points": self.points and float(self.points)}
        return {key: getattr(self, key) for key in keys} | points | section_data(self.section)

    def __str__(self) -> str:
        return self.message

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        blocks = [block for part in self.shown() for block in part._html_blocks()]
        html = report_html.box(self.passed, self.headline(), blocks, self.exercise)
        return {"text/plain": self.message, "text/html": html, MIME_TYPE: self.data()}


def _listed(names: list[str]) -> str:
    """Return names of cases, which may contain commas, as one text; the last ones are only counted."""
    more = [f"{len(names) - MAX_NAMES} more"] if len(names) > MAX_NAMES else []
    return "; ".join([*names[:MAX_NAMES], *more])
