"""Describe how an answer differs from the expected one, where no known mistake explains it.

A description is an observation about the numbers, never a guess about the code.
"""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlib.checks.array_text import counted
from attnlib.checks.calling.call_submission import GRADIENT_OF, Answer
from attnlib.checks.calling.case import Case
from attnlib.checks.calling.conventions import named_arrays
from attnlib.checks.exercise import Exercise

# How NumPy, torch and attnlib say that two shapes do not fit: one mistake, many wordings.
MISFIT = re.compile(
    r"could not be broadcast|mismatch in its core|not aligned|must match|cannot be multiplied"
    r"|Expected size|size of tensor|t\(\) expects|does not broadcast with previously|same number of dimensions"
    r"|could not broadcast|cannot reshape|is invalid for input of size|inconsistent tensor size|do not broadcast"
    r"|stack expects each tensor to be equal size|all input arrays must have the same shape"
    r"|their widths D=\d+ and D=\d+ must be equal|it must broadcast to them"
)

MAX_PRINTED = 200  # characters of an answer
DOUBLE_BYTES = np.dtype(np.float64).itemsize


def less_exact(case: Case, answer: Answer) -> list[str]:
    """Return the results with fewer digits than the inputs: float32, for example, where all inputs are float64."""
    coarse = [name for name, x in answer.arrays.items() if x.dtype.kind == "f" and x.dtype.itemsize < DOUBLE_BYTES]
    if not coarse:
        return []
    arrays = (*named_arrays(case.inputs).values(), *named_arrays(case.options).values())
    given = [x.dtype for x in arrays if x.dtype.kind == "f"]
    return coarse if given and all(dtype.itemsize >= DOUBLE_BYTES for dtype in given) else []


def describe_difference(exercise: Exercise, case: Case, answer: Answer, expected: Answer, tolerance: float) -> str:
    """Return one short sentence about the first thing that is wrong in ``answer``."""
    if answer.error is not None:
        if answer.error.endswith("among its parameters"):
            return "the parameters of your class do not match the weights that it is given"
        missing = re.search(r"unexpected keyword argument '(\w+)'", answer.error) if answer.line is None else None
        if missing:
            return f"your function has no argument {missing[1]}"
        return "two shapes do not fit together" if MISFIT.search(answer.error) else "your function raised an exception"
    if answer.problem is not None:
        return f"your function {answer.problem}" if answer.problem.startswith("returned") else answer.problem
    right: list[str] = []
    with np.errstate(all="ignore"):
        for name in inspection_order(expected):
            if exercise.plain and not np.array_equal(answer.arrays[name], expected.arrays[name]):
                return f"{name} is {_plain(answer.arrays[name])}, not {_plain(expected.arrays[name])}"
            broke = _array(name, answer.arrays[name], expected.arrays[name], exercise.outputs.get(name, ()), tolerance)
            if broke is not None:
                return _plural(f"{right[-1]} is right, but {broke}" if right else broke, expected)
            right.append(name)
    if coarse := less_exact(case, answer):
        return f"{coarse[0]} has dtype {answer.arrays[coarse[0]].dtype}, but all inputs are float64"
    return f"your function changed its argument {answer.changed[0]}" if answer.changed else "the numbers differ"


def _plain(x: NDArray[Any]) -> str:
    if x.size > MAX_PRINTED:  # each takes at least one character, so the text would be too long
        return f"an array of shape {x.shape}"
    text = str(x.item() if x.ndim == 0 else tuple(x.tolist()))
    return text if len(text) <= MAX_PRINTED else f"{text[: MAX_PRINTED - 1]}…"


def _plural(text: str, expected: Answer) -> str:
    for name in (name for name in expected.arrays if name.endswith("s") and name != "bias"):
        for one, many in (
            ("has", "have"),
            ("is", "are"),
            ("contains", "contain"),
            ("lacks", "lack"),
            ("differs", "differ"),
        ):
            text = text.replace(f"{name} {one} ", f"{name} {many} ")
    return text


def inspection_order(expected: Answer) -> list[str]:
    """Return the names of the arrays, the last result first, since weights explain a context. Gradients come last."""
    gradients = [name for name in expected.arrays if name.startswith(GRADIENT_OF)]
    return [*reversed([name for name in expected.arrays if name not in gradients]), *gradients]


def _array(name: str, got: NDArray[Any], want: NDArray[Any], dims: tuple[str, ...], tolerance: float) -> str | None:
    if got.shape != want.shape:
        return f"{name} has shape {got.shape}, not {_named(dims, want)}{_about_shape(got.shape, want.shape)}"
    if (got.dtype.kind == "b") != (want.dtype.kind == "b"):
        asked = "True and False" if want.dtype.kind == "b" else "numbers"
        return f"{name} has dtype {got.dtype}, but {asked} are needed"
    if want.dtype.kind == "b":
        return _truth(name, got, want)
    if not np.isfinite(got).all():
        return f"{name} contains {'nan' if np.isnan(got).any() else 'infinity'}"
    if np.allclose(got, want, rtol=tolerance, atol=tolerance):
        return None
    return (
        _weights(name, got, want)
        or _relation(name, got, want)
        or _size(name, got, want)
        or f"{name} has the right shape but the wrong numbers"
    )


def _about_shape(got: tuple[int, ...], want: tuple[int, ...]) -> str:
    """Say how one shape relates to another, if that is obvious."""
    if len(got) > 1 and got == (*want[:-2], *want[:-3:-1]):
        return ": the last two sizes are swapped"
    if [n for n in got if n != 1] == [n for n in want if n != 1]:
        return ": a dimension of size 1 is " + ("missing" if len(got) < len(want) else "extra or in the wrong place")
    if sorted(got) == sorted(want):
        return ": the same sizes in another order"
    if len(got) < len(want) and got == want[-len(got) :]:
        return ": the leading dimensions are missing"
    return ""


def _truth(name: str, got: NDArray[np.bool_], want: NDArray[np.bool_]) -> str | None:
    """Say what holds of a mask."""
    if np.array_equal(got, want):
        return None
    if np.array_equal(got, ~want):
        return f"{name} is upside down: True where False is expected, and vice versa"
    if want.ndim > 1 and want.shape[-1] == want.shape[-2] and np.array_equal(got.swapaxes(-1, -2), want):
        return f"{name} is transposed: rows and columns are swapped"
    if not (want & ~got).any():
        return f"{name} has {counted(int((got & ~want).sum()), 'True value')} too many, and lacks none"
    if not (got & ~want).any():
        return f"{name} lacks {counted(int((want & ~got).sum()), 'True value')}, and has no extra ones"
    return f"{name} differs in {int((got != want).sum())} of {got.size} places"


def _named(dims: tuple[str, ...], want: NDArray[Any]) -> str:
    if not dims or want.ndim < len(dims):
        return str(want.shape)
    return f"({'..., ' if want.ndim > len(dims) else ''}{', '.join(dims)}) = {want.shape}"


def _weights(name: str, got: NDArray[Any], want: NDArray[Any]) -> str | None:
    """Say what holds for weights alone: arrays whose wanted rows are positive and sum to 1."""
    if not (want.ndim and np.all(want >= 0) and np.allclose(want.sum(axis=-1), 1, atol=1e-4)):
        return None
    if np.any(got < 0):
        return f"{name} contains negative numbers, but weights are never negative"
    sums = got.sum(axis=-1)
    off = np.abs(sums - 1)
    if np.all(off < 1e-3):
        return None
    if got.ndim > 1 and np.allclose(got.sum(axis=-2), 1, atol=1e-4):
        return f"the columns of {name} sum to 1, but the rows do not"
    if np.allclose(got.sum(), 1, atol=1e-4):
        return f"all the numbers in {name} together sum to 1, but every row should sum to 1"
    return f"the rows of {name} do not sum to 1 (one sums to {sums.flat[int(off.argmax())]:.4g})"


def _relation(name: str, got: NDArray[Any], want: NDArray[Any]) -> str | None:
    if np.all(got == 0):
        return f"{name} is 0 everywhere"
    square = want.ndim > 1 and want.shape[-1] == want.shape[-2]
    if square and np.allclose(got.swapaxes(-1, -2), want, rtol=1e-4, atol=1e-6):
        return f"{name} is transposed: rows and columns are swapped"
    ratio = float((got * want).sum() / (want * want).sum())
    if want.size > 2 and abs(ratio - 1) > 1e-3 and np.allclose(got, ratio * want, rtol=1e-4, atol=1e-6):
        return f"{name} is {ratio:.4g} times as large as expected, everywhere"
    shift = float((got - want).flat[0])
    if want.size > 2 and abs(shift) > 1e-3 and np.allclose(got, want + shift, rtol=1e-4, atol=1e-6):
        return f"{name} is off by {shift:+.4g} everywhere"
    return None


def _size(name: str, got: NDArray[Any], want: NDArray[Any]) -> str | None:
    largest = float(np.abs(got - want).max())
    if largest < 0.01 * float(np.abs(want).max(initial=0)):
        return f"{name} is nearly right: off by at most {largest:.1g} (rounded, or a small constant added?)"
    return None
