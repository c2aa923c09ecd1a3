"""Call an implementation on a case, and return what came back: arrays, or the reason why there are none.

This runs in the same process as a student's code.
"""

import contextlib
import copy
import io
import os
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from attnlib._arrays import is_torch
from attnlib.checks.calling.case import Case, Implementation
from attnlib.checks.calling.conventions import CallingConvention

ATTNLIB_FOLDER = Path(__file__).parents[2]
LIBRARY_FOLDERS = (str(ATTNLIB_FOLDER), sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"))
# Code whose file name starts like this is not the student's.
LIBRARY_PREFIXES = ("<frozen", *(f"{folder}{os.sep}" for folder in LIBRARY_FOLDERS))
GRADIENT_OF = "the gradient of "
MAX_ERROR_LENGTH = 300  # characters of an exception's text that are kept


@dataclass(frozen=True)
class Answer:
    """What an implementation returned for a case: arrays by name, or the ``problem`` that kept it from giving them.

    ``error`` is the exception's type and text, ``line`` the student's line that raised it, and ``changed`` the names of
    the inputs that the call changed, if the case asks for that.
    """

    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    problem: str | None = None
    error: str | None = None
    line: str | None = None
    changed: tuple[str, ...] = ()


class CallSpec(Protocol):
    """What one has to know of an exercise to call an implementation. It says nothing about the answer."""

    @property
    def call(self) -> CallingConvention:
        """How an implementation is called."""

    @property
    def plain(self) -> bool:
        """Whether numbers, True, False and tuples are accepted in place of arrays."""

    def outputs_of(self, case: Case) -> tuple[str, ...]:
        """Return the names of the outputs of a case."""


def call_submission(
    implementation: Implementation, case: Case, exercise: CallSpec, *, backend: str = "numpy"
) -> Answer:
    """Call ``implementation`` on fresh copies of the case's inputs, and collect the named outputs.

    What it prints is dropped, and its warnings are ignored: students see both when they call the function themselves.
    """
    inputs = to_backend(case.inputs, backend, grad=case.upstream is not None)
    options = to_backend(case.options, backend, grad=False)
    try:
        with _fixed_settings(backend):
            setup = copy.deepcopy(case.setup)
            returned, sources = exercise.call(implementation, inputs, options, setup, case.training)
            answer = _collect(returned, exercise.outputs_of(case), backend, exercise.plain)
            if case.upstream is not None and answer.problem is None:
                answer = _with_gradients(answer, returned, sources, case.upstream)
        changed = [*_changed(inputs, case.inputs), *_changed(options, case.options)] if case.unchanged else []
    except (Exception, SystemExit) as error:
        return Answer(problem="raised", error=error_text(error), line=student_line(error))
    return Answer(answer.arrays, answer.problem, changed=tuple(changed))


def call_on(implementation: Implementation, case: Case, exercise: CallSpec, *, backend: str) -> Any:
    """Call ``implementation`` on a case, and return what it returns, or, if the case asks for them, also the gradients.

    What it prints is shown, and what it raises is raised.
    """
    inputs = to_backend(case.inputs, backend, grad=case.upstream is not None)
    options = to_backend(case.options, backend, grad=False)
    returned, sources = exercise.call(implementation, inputs, options, copy.deepcopy(case.setup), case.training)
    if case.upstream is None:
        return returned
    answer = _collect(returned, exercise.outputs_of(case), backend, exercise.plain)
    answer = _with_gradients(answer, returned, sources, case.upstream) if answer.problem is None else answer
    return answer.arrays if answer.problem is None else returned


@contextlib.contextmanager
def _fixed_settings(backend: str) -> Iterator[None]:
    """Run student code under the same settings, whatever an earlier cell has changed, and restore those afterwards."""
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(action="ignore"),
        np.errstate(all="ignore"),
        _gradients(backend),
    ):
        yield


def _gradients(backend: str) -> contextlib.AbstractContextManager[object]:
    """Record gradients in torch, though a caller may have switched that off."""
    if backend != "torch":
        return contextlib.nullcontext()
    import torch

    return torch.enable_grad()


def to_backend(x: Any, backend: str, *, grad: bool) -> Any:
    """Return a copy in the backend's arrays. Those of floating point can require gradients."""
    if isinstance(x, dict):
        return {name: to_backend(value, backend, grad=grad) for name, value in x.items()}
    if not isinstance(x, np.ndarray):
        return x if callable(x) else copy.deepcopy(x)
    own = x.copy(order="K")  # in the same memory layout: some cases hand out non-contiguous input on purpose
    if backend == "numpy":
        return own
    import torch

    return torch.from_numpy(own).requires_grad_(grad and own.dtype.kind == "f")


def _changed(given: Mapping[str, Any], before: Mapping[str, Any]) -> list[str]:
    """Return the names of the arguments that the call changed."""
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
    """Return what came back as arrays by name, or the first problem with it."""
    problem = _wrong_count(returned, outputs, plain)
    if problem:
        return Answer(problem=problem)
    results: Sequence[Any] = (returned,) if len(outputs) == 1 else returned
    if plain:
        results = [_from_plain(x) for x in results]
    named = list(zip(outputs, results, strict=True))
    for name, x in named:
        if problem := _wrong_type(name, x, backend, plain):
            return Answer(problem=problem)
    arrays = {name: _to_numpy(x) for name, x in named}
    for name, x in arrays.items():
        if x.dtype.kind not in "fiub":
            return Answer(problem=f"returned {name} with dtype {x.dtype}, but real numbers are needed")
    return Answer(arrays)


def _wrong_count(returned: Any, outputs: tuple[str, ...], plain: bool) -> str | None:
    """Say that there are not as many results as there should be, or return None."""
    if len(outputs) == 1 or (isinstance(returned, tuple | list) and len(returned) == len(outputs)):
        return None
    kind, names = "results" if plain else "arrays", " and ".join(outputs)
    return f"returned {_describe(returned)} but {len(outputs)} {kind} are needed: {names}"


def _wrong_type(name: str, x: Any, backend: str, plain: bool) -> str | None:
    """Say that a result is not an array of the backend, or one that cannot be compared, or return None."""
    if not (is_torch(x) if backend == "torch" else isinstance(x, np.ndarray | np.generic)):
        wanted = "numbers" if plain else "a torch.Tensor" if backend == "torch" else "a NumPy array"
        return f"returned {_describe(x)} as {name}, but {wanted} {'are' if plain else 'is'} needed"
    if is_torch(x) and (x.is_sparse or str(x.dtype) == "torch.bfloat16"):
        kind = "a sparse tensor" if x.is_sparse else str(x.dtype)
        return f"returned {name} as {kind}, but float32 or float64 is needed"
    return None


def _from_plain(x: Any) -> Any:
    """Return a number, True, False, or a tuple or list of numbers as an array, and anything else as it is."""
    numbers = x if isinstance(x, tuple | list) else (x,)
    return np.array(x) if all(isinstance(n, bool | int | float | np.generic) for n in numbers) else x


def _describe(x: Any) -> str:
    if x is None:
        return "None (is the return missing?)"
    if isinstance(x, tuple | list):
        return f"a {type(x).__name__} of {len(x)}"
    if isinstance(x, np.ndarray) or is_torch(x):
        return f"one {type(x).__name__} of shape {tuple(x.shape)}"
    kind = type(x).__name__
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _with_gradients(
    answer: Answer, returned: Any, sources: Mapping[str, Any], upstream: dict[str, NDArray[Any]]
) -> Answer:
    """Add the gradients of the sources (inputs and parameters), for the given gradient of each output."""
    torch = sys.modules["torch"]
    tensors = returned if isinstance(returned, tuple | list) else (returned,)
    if any(tuple(t.shape) != g.shape for t, g in zip(tensors, upstream.values(), strict=True)):
        return answer  # the shapes are wrong, which says more than a gradient could
    for name, t in zip(answer.arrays, tensors, strict=True):
        if not t.requires_grad:
            return Answer(answer.arrays, problem=f"no gradient can flow back from {name}")
    pairs = zip(tensors, upstream.values(), strict=True)
    loss = sum((t * torch.from_numpy(g).to(t.dtype)).sum() for t, g in pairs)
    wanted = {name: x for name, x in sources.items() if x.requires_grad}
    gradients = torch.autograd.grad(loss, list(wanted.values()), allow_unused=True)
    for name, gradient in zip(wanted, gradients, strict=True):
        if gradient is None:
            return Answer(answer.arrays, problem=f"no gradient reaches {name}")
        answer.arrays[GRADIENT_OF + name] = _to_numpy(gradient)
    return answer


def error_text(error: BaseException) -> str:
    """Return the type and the text of an error, cut to a length that can be shown."""
    try:
        text = f"{type(error).__name__}: {error}".rstrip(": ")
    except BaseException:  # the student's own exception class, whose __str__ fails
        text = f"{type.__getattribute__(type(error), '__name__')} (its text cannot be shown)"
    return text if len(text) <= MAX_ERROR_LENGTH else text[:MAX_ERROR_LENGTH] + " …"


def student_line(error: BaseException) -> str | None:
    """Return the last line of the student's own code in the traceback, or None if the call itself failed."""
    for frame in reversed(list(traceback.walk_tb(error.__traceback__))):
        if frame[0].f_code.co_filename.startswith(LIBRARY_PREFIXES):
            continue
        (summary,) = traceback.StackSummary.extract([frame])
        if summary.line:
            return f"line {summary.lineno}: {summary.line.strip()}"
    return None
