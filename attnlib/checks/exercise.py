"""What an exercise consists of: its inputs, its reference, its rubric, and its known mistakes.

An exercise is data. Whether an implementation is right is decided in :mod:`attnlib.checks.evaluation`, what it is shown
in :mod:`attnlib.checks.report`.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import attnlib
import attnlib.numpy
from attnlib.checks.calling.case import Case, Implementation
from attnlib.checks.calling.conventions import Arguments, CallingConvention, call_function

AGAIN = ", in a second call"  # the ending of the name of a case that is asked twice

# What attends in one call, for exercises that ask for that.
ATTENTION_FUNCTIONS = (
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
MULTI_HEAD_FUNCTIONS = (
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
class Mistake:
    """A known wrong implementation, and what to tell its author: ``hint`` at first, ``more`` on request."""

    id: str
    title: str
    says: str
    hint: str
    more: str
    section: Section
    implementation: Implementation = field(repr=False)


NamedGradients = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Exercise:
    """All that is known about one exercise.

    Attributes:
        name: the name that ``check`` is called with.
        reference: the implementation that is right.
        outputs: the names of the last dimensions of each returned array, by the array's name.
        rubric: the weight of each criterion in the score. If the first one is not met, the others earn nothing.
        section: what to reread after a mistake that is not known.
        advice: the hint for a mistake that is not known.
        inputs: yields the cases.
        mistakes: the known mistakes.
        graded_options: optional arguments that one notebook asks for and another does not. Cases with one of them count
            like all others, except in a notebook that does not ask for it and says so:
            ``check(…, unasked="need_weights")``.
        ungraded_options: optional arguments that no notebook asks for. Cases with one of them are only for
            implementations that have an argument of that name, and are never graded: what is wrong there becomes a
            remark.
        call: how an implementation is called; for a class, that takes more than one call.
        call_exact: how the reference and the known mistakes are called if their results are random: in a way that
            returns what the results of ``call`` approach. ``None`` means that they are called like everything else.
        plain: whether numbers, True, False and tuples are accepted in place of arrays.
        whole_numbers: the inputs that are whole numbers by nature, such as lengths. All other numbers reach the
            reference in float64.
        unrounded: the inputs whose numbers belong together, such as cosines and sines. ``failing_case`` does not round
            them.
        in_torch: returns the reference for torch, if it is not the one for NumPy.
        backends: the backends in which the exercise can be checked.
        gradients: whether gradients are checked in torch.
        gradients_required: whether an answer in torch earns nothing unless its gradients are right, so that a detour
            through a function for NumPy earns nothing.
        analytic_gradients: computes the expected gradients
            (:mod:`attnlib.checks.catalogue.analytic_gradients`); without it, autograd does.
        solved_by: functions and classes, with their modules, that would solve the exercise or its essence in one call,
            beside attnlib's own of the exercise's name.
    """

    name: str
    reference: Implementation
    outputs: dict[str, tuple[str, ...]]
    rubric: dict[str, int]
    section: Section
    advice: str
    inputs: Callable[[np.random.Generator], Iterator[Case]]
    mistakes: tuple[Mistake, ...]
    graded_options: tuple[str, ...] = ()
    ungraded_options: tuple[str, ...] = ()
    call: CallingConvention = call_function
    call_exact: CallingConvention | None = None
    plain: bool = False
    whole_numbers: tuple[str, ...] = ()
    unrounded: tuple[str, ...] = ()
    in_torch: Callable[[], Implementation] | None = None
    backends: tuple[str, ...] = ("numpy", "torch")
    gradients: bool = True
    gradients_required: bool = False
    analytic_gradients: Callable[[Arguments, Arguments, Arguments], NamedGradients] | None = None
    solved_by: tuple[str, ...] = ()

    def grades(self, case: Case) -> bool:
        """Tell whether a case counts: it has none of the arguments that no notebook asks for."""
        return not set(self.ungraded_options) & (case.options.keys() | case.setup.keys())

    def without(self, argument: str | None) -> "Exercise":
        """Return the exercise as a notebook asks it that does not ask for one of the graded options.

        Raises:
            ValueError: the argument is none of them.
        """
        if argument is None:
            return self
        if argument not in self.graded_options:
            known = ", ".join(map(repr, self.graded_options)) or "none"
            raise ValueError(
                f"unasked is {argument!r}, but {self.name} has these optional arguments that count: {known}"
            )
        graded = tuple(name for name in self.graded_options if name != argument)
        return replace(self, graded_options=graded, ungraded_options=(*self.ungraded_options, argument))

    @property
    def takes_autograd(self) -> bool:
        """Whether an evaluation in torch imports torch, to work out the gradients that are expected."""
        return self.gradients and self.analytic_gradients is None

    @property
    def forbidden(self) -> tuple[str, ...]:
        """The functions and classes, with their modules, that an answer may not use: they would solve the exercise."""
        own: tuple[str, ...] = (f"attnlib.{self.name}",) if self.name in attnlib.__all__ else ()
        if self.name in attnlib.numpy.__all__:
            own = (f"attnlib.numpy.{self.name}", f"attnlib.torch.{self.name}")
        return tuple(dict.fromkeys((*own, *self.solved_by)))

    @property
    def exact(self) -> "Exercise":
        """The exercise as its reference and its known mistakes are called."""
        return self if self.call_exact is None else replace(self, call=self.call_exact)

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

    def by_id(self, identifier: str) -> Mistake:
        """Return the mistake with that id."""
        return next(mistake for mistake in self if mistake.id == identifier)

    def add(self, title: str, *, hint: str, more: str, section: Section) -> Callable[[Implementation], Implementation]:
        """Register the decorated wrong implementation; its name, with dashes, becomes the mistake's id."""

        def register(implementation: Implementation) -> Implementation:
            says = " ".join((implementation.__doc__ or "").split())
            identifier = implementation.__name__.strip("_").replace("_", "-")
            self.append(Mistake(identifier, title, says, hint, more, section, self._wrap(implementation)))
            return implementation

        return register
