"""What a student is told: the idea that was wrong, what was seen, what to reread, a first hint. Never the code."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlib.checks import display
from attnlib.checks.calling.call_submission import Answer
from attnlib.checks.calling.case import Case
from attnlib.checks.calling.conventions import named_arrays
from attnlib.checks.differences import inspection_order
from attnlib.checks.errors import explained
from attnlib.checks.exercise import Exercise, Mistake, Section

MIME = display.MIME
MOST_INPUTS = 24  # numbers of a case that are shown
FORBIDDEN = (
    "{} does what this exercise asks you to write. While a submission is graded, it raises an error, so this answer "
    "would not earn its points. Write the steps yourself."
)


@dataclass(frozen=True)
class Comparison:
    """One array as expected and as returned, cut to the two dimensions around the first difference."""

    name: str
    expected: NDArray[Any]
    got: NDArray[Any]
    differs: NDArray[np.bool_]
    first: str
    dims: tuple[str, ...] = ()

    @property
    def digits(self) -> int:
        """How many significant digits it takes to see the difference."""
        want, got = self.expected[self.differs].flat[0], self.got[self.differs].flat[0]
        return next((n for n in range(4, 10) if f"{want:.{n}g}" != f"{got:.{n}g}"), 10)


@dataclass(frozen=True)
class Finding:
    """The first case that went wrong: the case, the result, the expected result, and what is wrong with it.

    ``right`` of the ``asked`` cases are right; ``like`` is the last of those before this one. ``others`` are the later
    cases that went wrong for another reason.
    """

    case: Case
    answer: Answer
    expected: Answer
    broke: str
    exercise: Exercise
    tolerance: float
    others: tuple[str, ...] = ()
    right: int = 0
    asked: int = 0
    like: str | None = None

    def comparison(self) -> Comparison | None:
        """Return the first array that differs, cut to a small table, or None if there is no such array."""
        for name in inspection_order(self.expected):
            want, got = self.expected.arrays[name], self.answer.arrays.get(name)
            if got is None or got.shape != want.shape:
                return None
            differs = ~np.isclose(got, want, rtol=self.tolerance, atol=self.tolerance)
            differs |= (got.dtype.kind == "b") != (want.dtype.kind == "b")
            if differs.any():
                place = tuple(int(i) for i in np.argwhere(differs)[0])
                first = f"{name}[{', '.join(map(str, place))}]" if place else name
                leading = place[:-2]
                dims = self.exercise.outputs.get(name, ())[-want.ndim :]
                return Comparison(name, want[leading], got[leading], differs[leading], first, dims)
        return None


@dataclass(frozen=True)
class Report:
    """The outcome of :func:`attnlib.checks.examine`.

    Attributes:
        exercise: name of the exercise.
        backend: ``"numpy"`` or ``"torch"``.
        score: 0 to 1, a plain float.
        named: the known mistake that was recognised, or None.
        finding: the first case that went wrong, or None if everything is right.
        points: what a full score earns; None outside a graded cell.
        hints: how many hints it gives, 1 or 2.
        remark: what is wrong in an argument that no task asks for; it costs no points.
        forbidden: a function that the answer called and that solves the exercise, such as ``attnlib.softmax``, or None.
    """

    exercise: str
    backend: str
    score: float
    named: Mistake | None
    finding: Finding | None
    points: float | None = None
    hints: int = 1
    remark: "Report | None" = None
    forbidden: str | None = None

    @property
    def passed(self) -> bool:
        """Whether every case that counts is right."""
        return self.finding is None

    @property
    def mistake(self) -> str | None:
        """The id of the recognised mistake, or None."""
        return self.named.id if self.named else None

    @property
    def unwritten(self) -> bool:
        """Whether the function still raises the NotImplementedError that the notebook came with."""
        return self.finding is not None and "raise NotImplementedError" in (self.finding.answer.line or "")

    @property
    def title(self) -> str:
        """What is wrong, in a few words."""
        if self.finding is None:
            return f"right, but it calls {self.forbidden}" if self.forbidden else "right"
        if self.unwritten:
            return "not written yet"
        return self.named.title if self.named else self.finding.broke

    @property
    def message(self) -> str:
        """The whole report as plain text."""
        blocks = [block for part in self.shown() for block in part._blocks()]
        return "\n".join([self.headline(), *(f"  {line}" for text in blocks for line in text.split("\n"))])

    def _blocks(self) -> list[str]:
        comparison = self.comparison()
        tables = display.side_by_side(comparison) if comparison else None
        reread = display.reread(self.section) if self.section else None
        return [block for block in (*self.what(), self.inputs(), tables, reread, *self.next_step()) if block]

    def shown(self) -> list["Report"]:
        """Return this report, and the remark below it if there is one."""
        return [self, replace(self.remark, hints=self.hints)] if self.remark else [self]

    def headline(self) -> str:
        """One line: the verdict, the exercise, what is wrong, and what it earned."""
        torch = " (torch)" if self.backend == "torch" else ""
        earned = "" if self.points is None else f" · {self.score * self.points:.3g} of {self.points:g} points"
        return f"{'✓' if self.passed else '✗'} {self.exercise}{torch}: {self.title}{earned}"

    def what(self) -> list[str]:
        """Return the sentences about what is wrong: the mistake, if it was recognised, and what was seen."""
        warning = [FORBIDDEN.format(self.forbidden)] if self.forbidden else []
        if self.finding is None:
            return [*warning, *([self._beyond()] if self.remark else [])]
        if self.unwritten:
            return ["Replace the line that raises NotImplementedError with your own code, and run the cell again."]
        return [*([self.named.says] if self.named else []), self._seen(self.finding), *warning]

    def _seen(self, finding: Finding) -> str:
        """Return where it was seen and what was seen there, which an unknown mistake has as its title already."""
        answer, name = finding.answer, finding.case.name
        if answer.error:
            seen = [f"With {name}: {explained(answer)}"]
        else:
            seen = [f"With {name}: {finding.broke}." if self.named else f"This happened with {name}."]
        seen += [f"raised by {answer.line}"] if answer.line else []
        return "\n".join(
            [*seen, *([] if self.named or finding.like is None else [f"With {finding.like}, everything is right."])]
        )

    def _beyond(self) -> str:
        """Return the sentence that introduces a remark."""
        if self.remark is None or self.remark.finding is None:
            return ""
        case, extras = self.remark.finding.case, self.remark.finding.exercise.extras
        names = " and ".join(name for name in extras if name in {*case.options, *case.setup})
        about = f": {self.remark.named.title}" if self.remark.named else ""
        offers = f"Your function also takes {names}, which the task does not ask for{about}."
        return f"This remark costs no points. {offers}"

    def next_step(self) -> list[str]:
        """Return the sentences about what to do: the requested hints, and what to fix next."""
        return [*self._hints(), *self._others()] if self.section else []

    @property
    def section(self) -> Section | None:
        """What to reread: the section about the mistake, or about the exercise; None if nothing was wrong."""
        if self.finding is None or self.unwritten:
            return None
        return self.named.section if self.named else self.finding.exercise.section

    def _hints(self) -> list[str]:
        if self.finding is None:
            return []
        if self.named is None:
            return [f"Hint: {self.finding.exercise.advice}"]
        if self.hints > 1:
            return [f"Hint: {self.named.hint}", f"Second hint: {self.named.more}"]
        return [f'Hint: {self.named.hint} (check("{self.exercise}", …, hint=2) says more.)']

    def _others(self) -> list[str]:
        if self.finding is None:
            return []
        count = f"{self.finding.right} of {self.finding.asked} cases are right."
        others = self.finding.others
        if not others:
            return [count]
        more = (
            f", and in {len(others) - 1} more cases"
            if len(others) > 2
            else "".join(f", and with {x}" for x in others[1:])
        )
        known = self.named in self.finding.exercise.mistakes  # these alone are compared in every case
        reason = "for another reason" if known else "perhaps for the same reason"
        return [
            f"{count} Once you have fixed this, look again: something is also wrong, {reason}, with {others[0]}{more}."
        ]

    def inputs(self) -> str | None:
        """Return the inputs of the case as text if they are few enough to read."""
        if self.finding is None or self.unwritten:
            return None
        case = self.finding.case
        given = {**case.setup, **case.inputs, **case.options}
        arrays = [*named_arrays(given).values()]
        if sum(x.size for x in arrays) > MOST_INPUTS or not given:
            return None
        return "\n".join(display.given(name, x) for name, x in given.items())

    def comparison(self) -> Comparison | None:
        """Return the first array that differs and the expected one, if both have the same shape."""
        return self.finding.comparison() if self.finding else None

    def data(self) -> dict[str, Any]:
        """Return what a machine needs of this report, as plain JSON values."""
        keys = ("exercise", "backend", "score", "passed", "mistake", "title", "message")
        points = {"points": self.points and float(self.points)}
        return {key: getattr(self, key) for key in keys} | points | display.pointer(self.section)

    def __str__(self) -> str:
        return self.message

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {
            "text/plain": self.message,
            "text/html": display.html(self),
            MIME: self.data(),
        }
