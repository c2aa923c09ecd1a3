"""What tests are written for: a function, its correct versions, and the kinds of input that mutants need."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from attnlib.checks.calling.case import Case, Implementation

Call = Callable[[Implementation, Sequence[Any], Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Kind:
    """A kind of input. ``holds`` tells whether the arguments of a call, by name, are of this kind."""

    name: str
    holds: Callable[[dict[str, Any]], bool] = field(repr=False)


PLAIN = Kind("ordinary inputs", lambda given: True)
UNCHANGED = Kind("a comparison of the arguments before and after the call", lambda given: False)


@dataclass(frozen=True)
class CorrectVersion:
    """A correct implementation, and the style in which it is written."""

    style: str
    implementation: Implementation = field(repr=False)


class CorrectVersions(list[CorrectVersion]):
    """A list of correct versions that grows by decorating functions."""

    def add(self, style: str) -> Callable[[Any], Any]:
        """Register the decorated implementation."""

        def register(implementation: Any) -> Any:
            self.append(CorrectVersion(style, implementation))
            return implementation

        return register


def call_directly(implementation: Implementation, arguments: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Call a function as a test calls it."""
    return implementation(*arguments, **options)


def case_directly(case: Case) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments and the options of a case of an exercise, as a test passes them."""
    return tuple(case.inputs.values()), dict(case.options)


@dataclass(frozen=True)
class Target:
    """A function that tests are written for.

    Attributes:
        name: what ``check_tests`` is called with.
        exercise: the exercise whose known mistakes are the mutants.
        signature: a function with the arguments that a call may have.
        left_open: what the task does not say, so that no test may demand it; it completes “The task leaves open …”.
        kinds: the kinds of input that mutants need, the rarest first.
        correct: the correct versions.
        call: how an implementation is called with the arguments of a test.
        case: how the arguments of a test are made from a case of the exercise.
    """

    name: str
    exercise: str
    signature: Callable[..., Any]
    left_open: str
    kinds: tuple[Kind, ...]
    correct: tuple[CorrectVersion, ...]
    call: Call = call_directly
    case: Callable[[Case], tuple[tuple[Any, ...], dict[str, Any]]] = case_directly

    def bound(self, arguments: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by their names.

        Raises:
            TypeError: the function does not take such arguments.
        """
        bound = inspect.signature(self.signature).bind(*arguments, **options)
        bound.apply_defaults()
        return dict(bound.arguments)

    def kinds_of(self, arguments: Sequence[Any], options: Mapping[str, Any]) -> frozenset[str]:
        """Return the names of the kinds that a call belongs to."""
        given = self.bound(arguments, options)
        return frozenset(kind.name for kind in self.kinds if _holds(kind, given))


def _holds(kind: Kind, given: dict[str, Any]) -> bool:
    try:
        return bool(kind.holds(given))
    except (TypeError, ValueError, AttributeError, IndexError):  # the arguments make no sense
        return False
