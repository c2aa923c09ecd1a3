"""A failing case as a student gets it: the arguments by name, the expected result, and a way to call a function."""

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from attnlib.checks.array_text import format_argument
from attnlib.checks.calling.call_submission import call_on, to_backend
from attnlib.checks.calling.case import Case, Implementation
from attnlib.checks.calling.conventions import call_function
from attnlib.checks.evaluation import Evaluation, SingleCase

MAX_NUMBERS = 60  # numbers of an array that are shown


class FailingCase:
    """An input that a function or a class got wrong, and the result that is expected.

    ``arguments`` and ``expected`` are new copies each time, so that nothing a function does to them is kept.

    Attributes:
        exercise: the name of the exercise.
        backend: ``"numpy"`` or ``"torch"``: what the arrays are.
        function: the name of the function, or of the class.
    """

    def __init__(self, evaluation: Evaluation, case: Case, function: str) -> None:
        self.exercise, self.backend, self.function = evaluation.exercise.name, evaluation.backend, function
        self._exercise, self._case = evaluation.exercise, case
        self._expected = SingleCase(evaluation, case).expected.arrays

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments by name: of a function, those of its call; of a class, also what it is made with."""
        return {**copy.deepcopy(self._case.setup), **self._given(self._case.inputs), **self._given(self._case.options)}

    @property
    def expected(self) -> Any:
        """The expected result, or a dictionary of the results by name if there are several."""
        results = {name: to_backend(x, self.backend, grad=False) for name, x in self._expected.items()}
        return results if len(results) > 1 else next(iter(results.values()))

    def call(self, implementation: Implementation) -> Any:
        """Call a function as the check does, or make an object of a class and call that; return what comes back.

        Errors are raised as they are. In a case about gradients, results and gradients come in a dictionary by name.
        """
        return call_on(implementation, self._case, self._exercise, backend=self.backend)

    def _given(self, arguments: dict[str, Any]) -> Any:
        return to_backend(arguments, self.backend, grad=self._case.upstream is not None)

    def _lines(self) -> Iterator[str]:
        case, upstream = self._case, self._case.upstream or {}
        yield f"{self.function} is wrong for this input (found with {case.name}):"
        yield from (_shown(name, x) for name, x in {**case.setup, **case.inputs, **case.options}.items())
        yield from (_shown(f"gradient sent back into {name}", x) for name, x in upstream.items())
        yield from (_shown(f"expected {name}", x) for name, x in self._expected.items())
        by_name = self._exercise.call is call_function and not upstream
        called = f"{self.function}(**case.arguments)" if by_name else f"case.call({self.function})"
        yield f'To call it yourself: case = failing_case("{self.exercise}"), then {called}; compare with case.expected.'

    def __repr__(self) -> str:
        return "\n".join(self._lines())


class NoFailingCase:
    """Says why there is no failing case, and what to do. It counts as false, and has no arguments."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __bool__(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no failing case, and so no {name}. {vars(self).get('reason', '')}")

    def __repr__(self) -> str:
        return self.reason


def _shown(name: str, x: Any) -> str:
    if isinstance(x, dict):
        return "\n".join(_shown(f"{name}[{key!r}]", value) for key, value in x.items())
    if isinstance(x, np.ndarray) and x.size > MAX_NUMBERS:
        return f"{name} has shape {x.shape}"
    return format_argument(name, x)
