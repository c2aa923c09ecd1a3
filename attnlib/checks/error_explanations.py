"""Explain what an error of NumPy or torch means that a checked function raised, if its cause is known."""

import re
from collections.abc import Callable

from attnlib.checks.calling.call_submission import Answer

Explain = Callable[[re.Match[str], str], str]
NEGATIVE_AXES = "If you count axes from the end (-1, -2), they stay the same with and without a batch."


def explain_error(answer: Answer) -> str:
    """Return the kind of error and its cause in words, or the original error if the cause is not known."""
    error = answer.error or ""
    for pattern, explain in EXPLANATIONS:
        if (found := pattern.search(error)) and (text := explain(found, answer.line or "")):
            return f"{error.split(':', 1)[0]}: {text}"
    return error


def _broadcast(found: re.Match[str], line: str) -> str:
    one, other = found["shapes"].split()[:2]
    return f"arrays of shapes {_shape(one)} and {_shape(other)} do not fit together. {_RULE}"


def _torch_broadcast(found: re.Match[str], line: str) -> str:
    one, other, axis = found.group("one", "other", "axis")
    return (
        f"two tensors do not fit together: along axis {axis}, one has {one} entries and the other has {other}. {_RULE}"
    )


def _product(found: re.Match[str], line: str) -> str:
    left, right = found.group("left", "right")
    return (
        f"two arrays cannot be multiplied as matrices: the one on the left has {left} columns and the one on the right "
        f"has {right} rows, but the two numbers have to be equal. Should you transpose one of the two, or swap them?"
    )


def _transpose(found: re.Match[str], line: str) -> str:
    named = re.search(r"(?:transpose|permute)\((?:[A-Za-z_]\w*, )?\(?(-?\d(?:, ?-?\d)*)", line)
    groups = found.groupdict()
    count = groups.get("named") or (str(len(named[1].split(","))) if named else "")
    there = groups.get("there")
    has = _count(there) if there else "a different number of them"
    said = f"names {_count(count)}, but the array has {has}" if count else "does not name as many axes as the array has"
    return f"your transpose {said}. Without a batch there is one axis fewer. {NEGATIVE_AXES}"


def _axis(found: re.Match[str], line: str) -> str:
    axis, there = found["axis"], found.groupdict().get("there")
    has = f"the array has {_count(there)}, numbered from 0" if there else "the array has fewer"
    return f"there is no axis {axis}: {has}. {NEGATIVE_AXES}"


def _reshape(found: re.Match[str], line: str) -> str:
    size, shape = found.group("size", "shape")
    return (
        f"{size} numbers cannot be arranged as {_shape(shape)}: multiply those sizes and compare the product "
        f"with {size}."
    )


def _unpack(found: re.Match[str], line: str) -> str:
    if ".shape" not in line and ".size()" not in line:
        return ""
    expected = found["expected"]
    return (
        f"you unpack a shape into {_count(expected, 'size', 'sizes')}, but the array has a different number of axes. "
        "There may be any number of batch dimensions, including none."
    )


def _short_shape(found: re.Match[str], line: str) -> str:
    if ".shape[" not in line and ".size(" not in line:
        return ""
    said = "you ask for the size of an axis that the array does not have: without a batch there are fewer axes"
    return f"{said}. {NEGATIVE_AXES}"


def _einsum(found: re.Match[str], line: str) -> str:
    return (
        "your einsum names more or fewer axes than an array has. An ellipsis (...) stands for all leading axes, "
        "however many there are."
    )


def _mixed(found: re.Match[str], line: str) -> str:
    return (
        "you combine a float32 tensor with a float64 one. A tensor that you create yourself has a dtype of its own: "
        "derive it from the tensors you were given."
    )


def _truth(found: re.Match[str], line: str) -> str:
    return "`if`, `and` and `or` need a single yes or no, but an array holds many. To test for None, use `is None`."


def _count(number: str, one: str = "axis", many: str = "axes") -> str:
    words = {"1": "one", "2": "two", "3": "three", "4": "four", "5": "five"}
    return f"{words.get(number, number)} {one if number == '1' else many}"


def _shape(text: str) -> str:
    return "(" + ", ".join(part for part in re.split(r"[^\d\-]+", text) if part) + ")"


_RULE = "When axes are counted from the end, the two sizes at each position have to be equal, unless one of them is 1."

EXPLANATIONS: tuple[tuple[re.Pattern[str], Explain], ...] = tuple(
    (re.compile(pattern), explain)
    for pattern, explain in (
        (r"broadcast together with (?:remapped )?shapes (?P<shapes>\([\d,]*\) \([\d,]*\))", _broadcast),
        (r"size of tensor a \((?P<one>\d+)\) must match the size of tensor b \((?P<other>\d+)\) at non-singleton "
         r"dimension (?P<axis>\d+)", _torch_broadcast),
        (r"core dimension 0.*\(size (?P<right>\d+) is different from (?P<left>\d+)\)", _product),
        (r"not aligned: (?P<left>\d+) \(dim \d+\) != (?P<right>\d+) \(dim \d+\)", _product),
        (r"cannot be multiplied \(\d+x(?P<left>\d+) and (?P<right>\d+)x\d+\)", _product),
        (r"batch2 tensor to be: \[\d+, (?P<left>\d+)\] but got: \[\d+, (?P<right>\d+)\]", _product),
        (r"axes don't match array", _transpose),
        (r"input\.dim\(\) = (?P<there>\d+) is not equal to len\(dims\) = (?P<named>\d+)", _transpose),
        (r"axis (?P<axis>-?\d+) is out of bounds for array of dimension (?P<there>\d+)", _axis),
        (r"Dimension out of range \(expected .*but got (?P<axis>-?\d+)\)", _axis),
        (r"cannot reshape array of size (?P<size>\d+) into shape (?P<shape>\([\d,\-]*\))", _reshape),
        (r"shape '(?P<shape>\[[\d, \-]*\])' is invalid for input of size (?P<size>\d+)", _reshape),
        (r"values to unpack \(expected (?P<expected>\d+)", _unpack),
        (r"tuple index out of range", _short_shape),
        (r"einstein sum subscripts|einsum\(\): |dimensions than subscripts", _einsum),
        (r"same dtype, but got|expected scalar type|should have the same dtype", _mixed),
        (r"truth value of an array|Boolean value of Tensor", _truth),
    )
)  # fmt: skip
