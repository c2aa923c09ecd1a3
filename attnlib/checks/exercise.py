"""What an exercise is: its inputs, its reference, the parts its points are split into, and its known mistakes.

An exercise is data. Whether an implementation is right is decided in :mod:`attnlib.checks.examiner`, what it is shown
in :mod:`attnlib.checks.report`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Implementation = Callable[..., Any]


class Section(NamedTuple):
    """A place in the book: the file of the chapter, its title, and the heading to reread."""

    file: str
    chapter: str
    heading: str

    def __str__(self) -> str:
        return f"“{self.heading}” in the chapter “{self.chapter}”"


@dataclass(frozen=True)
class Case:
    """One set of inputs. ``name`` completes the sentence "With …"; ``part`` says which points hang on it.

    Where ``unchanged`` is set, the inputs must be the same after the call as before. Where ``upstream`` holds one
    gradient per output, the gradients of the inputs are compared as well (torch alone).
    """

    name: str
    part: str
    inputs: dict[str, NDArray[Any]]
    options: dict[str, Any] = field(default_factory=dict)
    unchanged: bool = False
    upstream: dict[str, NDArray[Any]] | None = None


@dataclass(frozen=True)
class Mistake:
    """A known wrong implementation, and what to tell whoever wrote it."""

    id: str
    title: str
    says: str
    hint: str
    section: Section
    implementation: Implementation = field(repr=False)


@dataclass(frozen=True)
class Exercise:
    """All that is known about one exercise.

    ``outputs`` maps the name of each returned array to the names of its last dimensions; ``parts`` maps each part to
    its weight in the score. The first part is the foundation: without it the others earn nothing.
    """

    name: str
    reference: Implementation
    outputs: dict[str, tuple[str, ...]]
    parts: dict[str, int]
    section: Section
    inputs: Callable[[np.random.Generator], Iterator[Case]]
    mistakes: tuple[Mistake, ...]


class Mistakes(list[Mistake]):
    """A list of mistakes that grows by decorating functions; the docstring is what the student will read."""

    def add(self, title: str, *, hint: str, section: Section) -> Callable[[Implementation], Implementation]:
        """Register the decorated wrong implementation; its name, with dashes, becomes the mistake's id."""

        def register(implementation: Implementation) -> Implementation:
            says = " ".join((implementation.__doc__ or "").split())
            identifier = implementation.__name__.strip("_").replace("_", "-")
            self.append(Mistake(identifier, title, says, hint, section, implementation))
            return implementation

        return register
