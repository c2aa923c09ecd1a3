"""A case: one set of inputs, and how an implementation is to be called with them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

Implementation = Callable[..., Any]


@dataclass(frozen=True)
class Case:
    """One set of inputs.

    Attributes:
        name: completes the sentence "With …".
        criterion: the criterion of the exercise's rubric that this case belongs to.
        inputs: passed by position, in their order: arrays, dictionaries of arrays, or anything else.
        options: passed by keyword.
        setup: what a class is made with.
        outputs: the names of the outputs, if they are not those of the exercise.
        unchanged: whether the inputs must be the same after the call as before.
        gradients: whether torch is asked for gradients too, as it always is for the second case of an exercise.
        upstream: one gradient per output, in a case that asks for gradients.
        backends: the backends in which the case is used.
        training: whether a module is called in training mode.
        tolerance: how far a number may be from the expected one; ``None`` for what the dtype of the inputs allows.
    """

    name: str
    criterion: str
    inputs: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)
    setup: dict[str, Any] = field(default_factory=dict)
    outputs: tuple[str, ...] | None = None
    unchanged: bool = False
    gradients: bool = False
    upstream: dict[str, NDArray[Any]] | None = None
    backends: tuple[str, ...] = ("numpy", "torch")
    training: bool = False
    tolerance: float | None = None
