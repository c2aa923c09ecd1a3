"""The only code that runs in a student's process: call the implementation on a case, and hand back what came out.

It holds inputs and nothing else: no expected value, no reference, no mistake.
"""

import contextlib
import copy
import io
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from attnlib._arrays import is_torch
from attnlib.checks.calls import Call
from attnlib.checks.exercise import Case, Implementation

LIBRARIES = (Path(__file__).parents[1], *map(Path, {sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")}))
GRADIENT_OF = "the gradient of "
LONGEST = 300  # characters of an exception that are kept


@dataclass(frozen=True)
class Answer:
    """What an implementation made of a case: arrays by name, or the ``problem`` that kept it from giving them.

    ``error`` is the exception's type and text, ``line`` the student's line that raised it, ``changed`` the inputs that
    are not what they were before the call, where the case asks for that.
    """

    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    problem: str | None = None
    error: str | None = None
    line: str | None = None
    changed: tuple[str, ...] = ()


class Asked(Protocol):
    """What has to be known of an exercise to ask an implementation: nothing about the answer."""

    @property
    def call(self) -> Call:
        """How an implementation is asked."""

    @property
    def plain(self) -> bool:
        """Whether numbers, True, False and tuples will do where else arrays are needed."""

    def outputs_of(self, case: Case) -> tuple[str, ...]:
        """Return the names of what comes back for a case."""


def probe(implementation: Implementation, case: Case, exercise: Asked, *, backend: str = "numpy") -> Answer:
    """Call ``implementation`` on fresh copies of the case's inputs, and collect the named outputs.

    What it prints is dropped here, and warnings are not errors: both show wherever the function is called directly.
    """
    given = _to_backend(case.inputs, backend, grad=case.upstream is not None)
    options = _to_backend(case.options, backend, grad=False)
    try:
        with _calm(backend):
            setup = copy.deepcopy(case.setup)
            returned, leaves = exercise.call(implementation, given, options, setup, case.training)
            answer = _collect(returned, exercise.outputs_of(case), backend, exercise.plain)
            if case.upstream is not None and answer.problem is None:
                answer = _with_gradients(answer, returned, leaves, case.upstream)
        changed = [*_changed(given, case.inputs), *_changed(options, case.options)] if case.unchanged else []
    except (Exception, SystemExit) as error:
        return Answer(problem="raised", error=_say(error), line=_blame(error))
    return Answer(answer.arrays, answer.problem, changed=tuple(changed))


@contextlib.contextmanager
def _calm(backend: str) -> Iterator[None]:
    """Run student code with the same settings, whatever a cell before has changed, and restore those afterwards."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        stack.enter_context(warnings.catch_warnings())
        stack.enter_context(np.errstate(all="ignore"))
        if backend == "torch":
            import torch

            stack.enter_context(torch.enable_grad())
        warnings.simplefilter("ignore")
        yield


def _to_backend(x: Any, backend: str, *, grad: bool) -> Any:
    """Return a copy in the backend's arrays. Those of floating point can require gradients."""
    if isinstance(x, dict):
        return {name: _to_backend(value, backend, grad=grad) for name, value in x.items()}
    if not isinstance(x, np.ndarray):
        return x if callable(x) else copy.deepcopy(x)
    own = x.copy(order="K")  # in the same memory layout: a case may hand out non-contiguous input on purpose
    if backend == "numpy":
        return own
    import torch

    return torch.from_numpy(own).requires_grad_(grad and own.dtype.kind == "f")


def _changed(given: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    """Return the names of the arguments that are not what they were before the call."""
    return [name for name, x in given.items() if not _equal(x, before[name])]


def _equal(x: Any, before: Any) -> bool:
    if isinstance(before, dict):
        return x.keys() == before.keys() and not _changed(x, before)
    return np.array_equal(_to_numpy(x), before) if isinstance(before, np.ndarray) else callable(x) or x == before


def _to_numpy(x: Any) -> NDArray[Any]:
    if is_torch(x):
        return np.array(x.detach().cpu().numpy())
    return np.array(x.filled(np.nan)) if isinstance(x, np.ma.MaskedArray) and x.dtype.kind == "f" else np.array(x)


def _collect(returned: Any, outputs: tuple[str, ...], backend: str, plain: bool) -> Answer:
    names = " and ".join(outputs)
    if len(outputs) == 1:
        returned = (returned,)
    elif not isinstance(returned, tuple | list) or len(returned) != len(outputs):
        kind = "results" if plain else "arrays"
        return Answer(problem=f"returned {_describe(returned)} but {len(outputs)} {kind} are needed: {names}")
    if plain:
        returned = [_from_plain(x) for x in returned]
    for name, x in zip(outputs, returned, strict=True):
        if is_torch(x) != (backend == "torch") or not (is_torch(x) or isinstance(x, np.ndarray | np.generic)):
            wanted = "numbers" if plain else "a torch.Tensor" if backend == "torch" else "a NumPy array"
            return Answer(problem=f"returned {_describe(x)} as {name}, but {wanted} {'are' if plain else 'is'} needed")
        if is_torch(x) and (x.is_sparse or str(x.dtype) == "torch.bfloat16"):
            kind = "a sparse tensor" if x.is_sparse else str(x.dtype)
            return Answer(problem=f"returned {name} as {kind}, but float32 or float64 is needed")
    arrays = {name: _to_numpy(x) for name, x in zip(outputs, returned, strict=True)}
    for name, x in arrays.items():
        if x.dtype.kind not in "fiub":
            return Answer(problem=f"returned {name} with dtype {x.dtype}, but real numbers are needed")
    return Answer(arrays)


def _from_plain(x: Any) -> Any:
    """Return a number, True, False, or a tuple or list of numbers as an array, and anything else as it is."""
    numbers = x if isinstance(x, tuple | list) else (x,)
    return np.array(x) if all(isinstance(n, bool | int | float | np.generic) for n in numbers) else x


def _describe(x: Any) -> str:
    if x is None:
        return "None (is there a return?)"
    if isinstance(x, tuple | list):
        return f"a {type(x).__name__} of {len(x)}"
    if isinstance(x, np.ndarray) or is_torch(x):
        return f"one {type(x).__name__} of shape {tuple(x.shape)}"
    kind = type(x).__name__
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _with_gradients(
    answer: Answer, returned: Any, leaves: Mapping[str, Any], upstream: dict[str, NDArray[Any]]
) -> Answer:
    """Add the gradients of the inputs, for the given gradient of each output."""
    torch = sys.modules["torch"]
    tensors = returned if isinstance(returned, tuple | list) else (returned,)
    if any(tuple(t.shape) != g.shape for t, g in zip(tensors, upstream.values(), strict=True)):
        return answer  # the shapes are wrong, which says more than a gradient could
    for name, t in zip(answer.arrays, tensors, strict=True):
        if not t.requires_grad:
            return Answer(answer.arrays, problem=f"no gradient can flow back from {name}")
    pairs = zip(tensors, upstream.values(), strict=True)
    loss = sum((t * torch.from_numpy(g).to(t.dtype)).sum() for t, g in pairs)
    wanted = {name: x for name, x in leaves.items() if x.requires_grad}
    gradients = torch.autograd.grad(loss, list(wanted.values()), allow_unused=True)
    for name, gradient in zip(wanted, gradients, strict=True):
        if gradient is None:
            return Answer(answer.arrays, problem=f"no gradient reaches {name}")
        answer.arrays[GRADIENT_OF + name] = _to_numpy(gradient)
    return answer


def _say(error: BaseException) -> str:
    try:
        text = f"{type(error).__name__}: {error}".rstrip(": ")
    except BaseException:  # an exception of the student's own, whose __str__ fails in whatever way
        text = f"{type.__getattribute__(type(error), '__name__')} (its text cannot be shown)"
    return text if len(text) <= LONGEST else text[:LONGEST] + " …"


def _blame(error: BaseException) -> str | None:
    """Return the last line of the student's own code in the traceback, or None where the call itself failed."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        library = any(Path(frame.filename).is_relative_to(folder) for folder in LIBRARIES)
        if frame.line and not library and not frame.filename.startswith("<frozen"):
            return f"line {frame.lineno}: {frame.line.strip()}"
    return None
