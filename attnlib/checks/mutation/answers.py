"""Answer the calls of tests: within limits, and in the same way whichever implementation is called.

A test must not be able to tell implementations apart by anything but their results. So the first call with some
arguments runs every implementation of a sample, an error is reported by its type alone, and the last digits of every
number are random.
"""

import builtins
import contextlib
import copy
import io
import pickle
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlib.checks.calling.case import Implementation
from attnlib.checks.calling.tested import arrays_in
from attnlib.checks.mutation.target import Target

MAX_DIMENSIONS = 4
MAX_LENGTH, MAX_LEADING = 64, 5  # of each of the last two dimensions, and of those before them
MAX_ARRAYS = 40
MAX_INTEGER = 64
MAX_RESULT = 200_000  # numbers of a result
MAX_KEPT, MAX_KEPT_BYTES = 400, 100_000  # calls whose answers are kept, and bytes of the answers to one of them
NOISE = {8: 1e-10, 4: 5e-7, 2: 2e-3}  # relative, by the bytes of a floating-point number
LIMITS = (
    f"at most {MAX_ARRAYS} arrays, each with at most {MAX_DIMENSIONS} dimensions, the last two of which have at most "
    f"{MAX_LENGTH} entries and the others at most {MAX_LEADING}, and whole numbers up to {MAX_INTEGER}"
)


class CallRefusedError(ValueError):
    """A test called an implementation with something that is not allowed."""


@dataclass(frozen=True)
class CallAnswer:
    """What a call gave: a value, or the type of an error; and the arrays among its arguments that it changed."""

    value: Any = None
    error: str | None = None
    changed: dict[int, NDArray[Any]] = field(default_factory=dict)


class Answers:
    """Answers calls on behalf of implementations of one target.

    Answers are kept, because tests make the same calls to every implementation. ``seconds`` is how long the last answer
    took when it was computed. The grading engine waits as long, so that a test cannot tell whether it was kept.
    """

    def __init__(self, target: Target, implementations: Sequence[Implementation]) -> None:
        self.target, self._implementations = target, implementations
        self._rng = np.random.default_rng()  # nobody can subtract what it draws
        self._kept: dict[bytes, tuple[list[CallAnswer], float]] = {}
        self.seconds = 0.0

    def answer(self, number: int, arguments: Sequence[Any], options: Mapping[str, Any]) -> CallAnswer:
        """Call all implementations, and return what the one with this number gives.

        Raises:
            CallRefusedError: the arguments are not allowed.
        """
        refuse_large(arguments, options)
        try:
            self.target.bound(arguments, options)
        except TypeError:
            return CallAnswer(error="TypeError")
        answers, self.seconds = self._answers((list(arguments), dict(options)))
        return replace(answers[number], value=self._noisy(answers[number].value))

    def _answers(self, given: tuple[list[Any], dict[str, Any]]) -> tuple[list[CallAnswer], float]:
        """Return the answers of all implementations to a call, and how many seconds they took."""
        key = sha256(pickle.dumps(given)).digest()
        if key in self._kept:
            return self._kept[key]
        begin = perf_counter()
        with _quiet():
            answers = [self._given(each, *given) for each in self._implementations]
        found = answers, perf_counter() - begin
        size = sum(x.nbytes for answer in answers for x in arrays_in((answer.value, answer.changed)))
        if size <= MAX_KEPT_BYTES and len(self._kept) < MAX_KEPT:
            self._kept[key] = found
        return found

    def _given(
        self, implementation: Implementation, arguments: Sequence[Any], options: Mapping[str, Any]
    ) -> CallAnswer:
        own = copy.deepcopy((list(arguments), dict(options)))
        before = [*arrays_in((arguments, options))]
        try:
            value = _plain(self.target.call(implementation, *own))
            error = None
        except Exception as raised:
            value, error = None, _known(type(raised))
        after = [*arrays_in(own)]
        changed = {i: x for i, x in enumerate(after) if not _same(x, before[i])}
        return CallAnswer(value, error, changed)

    def _noisy(self, x: Any) -> Any:
        """Return a result whose last digits are random, so that they do not tell how it was computed."""
        if isinstance(x, tuple | list):
            return (tuple if isinstance(x, tuple) else list)(self._noisy(value) for value in x)
        if x is None or x.dtype.kind != "f":
            return x
        noise = self._rng.uniform(-1, 1, x.shape)
        return (x * (1 + NOISE[x.dtype.itemsize] * noise)).astype(x.dtype)


def refuse_large(arguments: Sequence[Any], options: Mapping[str, Any]) -> None:
    """Refuse arguments that would take long, or that are neither arrays nor numbers.

    Raises:
        CallRefusedError: they are not allowed.
    """
    given = list(_leaves((arguments, options)))
    if len(given) > MAX_ARRAYS:
        raise CallRefusedError(f"A test called an implementation with {len(given)} values. The limits are {LIMITS}.")
    for x in given:
        if problem := _problem(x):
            raise CallRefusedError(f"A test called an implementation with {problem}. The limits are {LIMITS}.")


def _leaves(x: Any) -> Iterator[Any]:
    if isinstance(x, tuple | list):
        for value in x:
            yield from _leaves(value)
    elif isinstance(x, Mapping):
        for value in x.values():
            yield from _leaves(value)
    else:
        yield x


def _problem(x: Any) -> str | None:
    if isinstance(x, np.ndarray):
        small = x.ndim <= MAX_DIMENSIONS and max(x.shape[-2:], default=0) <= MAX_LENGTH
        if not small or max(x.shape[:-2], default=0) > MAX_LEADING:
            return f"an array of shape {x.shape}"
        return None if x.dtype.kind in "fiub" else f"an array of dtype {x.dtype}"
    if x is None or isinstance(x, bool | float):
        return None
    if isinstance(x, int):
        return None if abs(x) <= MAX_INTEGER else f"the whole number {x:.3g}" if abs(x) < 1e300 else "a huge number"
    return f"a value of type {type(x).__name__}"


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with (
        contextlib.redirect_stdout(io.StringIO()),
        warnings.catch_warnings(action="ignore"),
        np.errstate(all="ignore"),
    ):
        yield


def _plain(x: Any) -> Any:
    """Return a result as it can be sent: arrays of real numbers, None, and tuples and lists of these."""
    if isinstance(x, tuple | list):
        return (tuple if isinstance(x, tuple) else list)(map(_plain, x))
    if x is None:
        return None
    array = np.asarray(x)
    if array.dtype.kind not in "fiub" or array.size > MAX_RESULT:
        raise TypeError("no array of real numbers came back")
    wide = array.dtype.kind == "f" and array.dtype.itemsize > 8
    return np.array(array, np.float64 if wide else None, order="C")  # the layout would reveal how it was computed


def _known(kind: type[BaseException]) -> str:
    """Return the name of the nearest built-in exception: a NumPy class would reveal how the result was computed."""
    return next(base.__name__ for base in kind.__mro__ if getattr(builtins, base.__name__, None) is base)


def _same(x: NDArray[Any], before: NDArray[Any]) -> bool:
    return x.shape == before.shape and np.array_equal(x, before, equal_nan=x.dtype.kind == "f")
