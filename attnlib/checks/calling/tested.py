"""Run a student's tests against an implementation that is elsewhere: only its calls can be seen.

This runs in the same process as a student's code.
"""

import builtins
import contextlib
import io
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlib.checks.calling.call_submission import MAX_ERROR_LENGTH, error_text, student_line

MAX_TESTS = 12  # for one function
MAX_NAME_LENGTH = 60  # characters of a test's name
RAISED = "the implementation raised an error with these arguments"

# Takes the arguments and the options of a call, and returns the value, the name of an error, and the changed arrays.
Ask = Callable[[Sequence[Any], Mapping[str, Any]], tuple[Any, str | None, Mapping[int, NDArray[Any]]]]
Test = Callable[["Implementation"], Any]


class TestsError(TypeError):
    """What should be tests is something else."""


class NotWrittenError(TestsError):
    """There are no tests yet: their name stands for None."""


@dataclass(frozen=True)
class Outcome:
    """What became of a test: the ``error`` that it raised, and the line that raised it, or None twice."""

    test: str
    error: str | None = None
    line: str | None = None


class Implementation:
    """What a test is given. It can be called, and nothing else is known about it."""

    __slots__ = ("_ask",)

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Return what the implementation returns, raise what it raises, and change the arrays that it changes."""
        value, error, changed = self._ask(arguments, options)
        mine = list(arrays_in((arguments, options)))
        for i, x in changed.items():
            np.copyto(mine[i], x)
        if error is not None:
            raise _error_type(error)(RAISED)
        return value

    def __repr__(self) -> str:
        return "an implementation"


def _error_type(name: str) -> type[Exception]:
    kind = getattr(builtins, name, None)
    return kind if isinstance(kind, type) and issubclass(kind, Exception) else RuntimeError


def checked_tests(tests: Any) -> list[Test]:
    """Return tests as a list.

    Raises:
        TestsError: they are not a list of functions, or there are none, or too many.
    """
    if tests is None:
        raise NotWrittenError("no tests are written yet. Write functions, and assign a list of them to the name")
    found = list(tests) if isinstance(tests, tuple | list) else None
    if found is None or not all(map(callable, found)):
        raise TestsError("a list of tests is needed, such as [test_rows, test_batch]: each one a function")
    if not 0 < len(found) <= MAX_TESTS:
        raise TestsError(f"there are {len(found)} tests in the list, but between 1 and {MAX_TESTS} are needed")
    return found


def run_test(test: Test, implementation: Implementation) -> Outcome:
    """Run a test, and return whether it raised. What it prints is dropped."""
    name = str(getattr(test, "__name__", type(test).__name__))[:MAX_NAME_LENGTH]
    quiet = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO())
    try:
        with quiet[0], quiet[1], warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            test(implementation)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # such as that of pytest.fail
        return Outcome(name, error_text(error)[:MAX_ERROR_LENGTH], student_line(error))
    return Outcome(name)


def arrays_in(x: Any) -> Iterator[NDArray[Any]]:
    """Yield the arrays in the arguments of a call, in their order."""
    if isinstance(x, np.ndarray):
        yield x
    elif isinstance(x, tuple | list):
        for value in x:
            yield from arrays_in(value)
    elif isinstance(x, Mapping):
        for value in x.values():
            yield from arrays_in(value)
