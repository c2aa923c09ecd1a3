"""What an exercise is: its inputs, its reference, the parts its points are split into, and its known mistakes.

An exercise is data. Whether an implementation is right is decided in :mod:`attnlib.checks.examiner`, what it is shown
in :mod:`attnlib.checks.report`.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import attnlib
import attnlib.numpy
from attnlib.checks.calls import Call, Given, of_function

Implementation = Callable[..., Any]

# What attends in one call, for exercises that ask for that.
ATTENDS = (
    "attnlib.attention",
    "attnlib.self_attention",
    "attnlib.scaled_dot_product_attention",
    "attnlib.multi_head_attention",
    "attnlib.numpy.MultiHeadAttention",
    "attnlib.torch.MultiHeadAttention",
    "attnlib.triton.scaled_dot_product_attention",
    "torch.nn.MultiheadAttention",
    "torch.nn.attention.flex_attention.flex_attention",
    "torch.nn.functional.multi_head_attention_forward",
    "torch.nn.functional.scaled_dot_product_attention",
)


# The same for all heads: one head may be anybody's.
ATTENDS_WITH_HEADS = (
    "attnlib.multi_head_attention",
    "attnlib.numpy.MultiHeadAttention",
    "attnlib.torch.MultiHeadAttention",
    "torch.nn.MultiheadAttention",
    "torch.nn.functional.multi_head_attention_forward",
)


class Section(NamedTuple):
    """A place in the book: the file of the chapter, its title, and the heading to reread."""

    file: str
    chapter: str
    heading: str

    @property
    def link(self) -> str:
        """The page and the place on it, relative to the root of the built book."""
        heading = self.heading.lower().replace("'", "")
        anchor = re.sub(r"[^a-z0-9]+", "-", heading).strip("-")
        return f"{self.file.removesuffix('.md')}.html#{anchor}"

    def __str__(self) -> str:
        return f"“{self.heading}” in the chapter “{self.chapter}”"


@dataclass(frozen=True)
class Case:
    """One set of inputs. ``name`` completes the sentence "With …"; ``part`` says which points hang on it.

    ``inputs`` are passed by position, in their order, ``options`` by keyword: arrays, dictionaries of arrays, or
    anything else, which is passed on as it is. ``setup`` is what a class is made with. ``outputs`` are the names of
    what comes back, where it is not what the exercise says.

    It is asked in those of the exercise's backends that ``backends`` names. Where ``training`` is set, a module is
    called as it is during training, else as it is afterwards. Where ``unchanged`` is set, the inputs must be the same
    after the call as before. In torch, ``gradients`` are asked for as well, which of the second case they always are:
    in a case of its own, whose ``upstream`` holds one gradient per output.
    """

    name: str
    part: str
    inputs: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    setup: dict[str, Any] = field(default_factory=dict)
    outputs: tuple[str, ...] | None = None
    unchanged: bool = False
    gradients: bool = False
    upstream: dict[str, NDArray[Any]] | None = None
    backends: tuple[str, ...] = ("numpy", "torch")
    training: bool = False


@dataclass(frozen=True)
class Mistake:
    """A known wrong implementation, and what to tell its author: ``hint`` at first, ``more`` on request."""

    id: str
    title: str
    says: str
    hint: str
    more: str
    section: Section
    implementation: Implementation = field(repr=False)


Gradients = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Exercise:
    """All that is known about one exercise.

    ``outputs`` maps the name of each returned array to the names of its last dimensions; ``parts`` maps each part to
    its weight in the score. The first part is the foundation: without it the others earn nothing. ``advice`` is the
    hint for a mistake that is not known.

    ``offered`` are arguments that one notebook asks for and another does not; ``extras`` are those that no notebook
    asks for. Cases with one are only for implementations that have an argument of that name. Those with one of the
    extras are never graded: what is wrong there becomes a remark.

    ``call`` says how an implementation is asked, which for a class is more than one call. ``plain`` allows numbers,
    True, False and tuples where else arrays are needed. ``whole_numbers`` names the inputs that are whole by nature, as
    lengths are; all other numbers reach the reference as real ones. ``in_torch`` is the reference for torch where it
    is not the same as for NumPy; where ``backends`` lacks one, the exercise is not asked in it. Without
    ``gradients``, torch is asked for numbers alone. ``by_hand`` works out those that are expected, where that is not
    left to autograd, see :mod:`attnlib.checks.catalogue.by_hand`. ``solved_by`` names, with their modules, what would
    solve the exercise or its essence in one call, beside attnlib's own of the exercise's name.
    """

    name: str
    reference: Implementation
    outputs: dict[str, tuple[str, ...]]
    parts: dict[str, int]
    section: Section
    advice: str
    inputs: Callable[[np.random.Generator], Iterator[Case]]
    mistakes: tuple[Mistake, ...]
    offered: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    call: Call = of_function
    plain: bool = False
    whole_numbers: tuple[str, ...] = ()
    in_torch: Callable[[], Implementation] | None = None
    backends: tuple[str, ...] = ("numpy", "torch")
    gradients: bool = True
    by_hand: Callable[[Given, Given, Given], Gradients] | None = None
    solved_by: tuple[str, ...] = ()

    @property
    def optional(self) -> tuple[str, ...]:
        """The arguments that an implementation may lack."""
        return (*self.offered, *self.extras)

    def grades(self, case: Case) -> bool:
        """Tell whether a case counts: it has none of the arguments that no notebook asks for."""
        return not set(self.extras) & (case.options.keys() | case.setup.keys())

    @property
    def takes_autograd(self) -> bool:
        """Whether an examination in torch imports torch, to work out the gradients that are expected."""
        return self.gradients and self.by_hand is None

    @property
    def forbidden(self) -> tuple[str, ...]:
        """The functions and classes, with their modules, that an answer may not use: they would solve the exercise."""
        own: tuple[str, ...] = (f"attnlib.{self.name}",) if self.name in attnlib.__all__ else ()
        if self.name in attnlib.numpy.__all__:
            own = (f"attnlib.numpy.{self.name}", f"attnlib.torch.{self.name}")
        return tuple(dict.fromkeys((*own, *self.solved_by)))

    def reference_in(self, backend: str) -> Implementation:
        """Return the reference for a backend."""
        return self.in_torch() if self.in_torch and backend == "torch" else self.reference

    def outputs_of(self, case: Case) -> tuple[str, ...]:
        """Return the names of what comes back for a case."""
        return tuple(self.outputs) if case.outputs is None else case.outputs


class Mistakes(list[Mistake]):
    """A list of mistakes that grows by decorating functions; the docstring is what the student will read.

    ``wrap`` turns a decorated function into an implementation, where the exercise asks for something else.
    """

    def __init__(self, wrap: Callable[[Implementation], Implementation] = lambda function: function) -> None:
        super().__init__()
        self._wrap = wrap

    def add(self, title: str, *, hint: str, more: str, section: Section) -> Callable[[Implementation], Implementation]:
        """Register the decorated wrong implementation; its name, with dashes, becomes the mistake's id."""

        def register(implementation: Implementation) -> Implementation:
            says = " ".join((implementation.__doc__ or "").split())
            identifier = implementation.__name__.strip("_").replace("_", "-")
            self.append(Mistake(identifier, title, says, hint, more, section, self._wrap(implementation)))
            return implementation

        return register
