"""Compare the Triton kernel with loops, for sizes that are all different and not multiples of a tile.

``TRITON_INTERPRET=1 python triton_cases.py FILE ...`` examines copies of ``attnlib/_triton.py`` on the CPU, in Triton's
interpreter, and prints as JSON the first case in which each differs, or null. Triton reads the variable when it is
imported, and torch imports Triton when it compiles, so this needs a separate process.
"""

import importlib.util
import json
import sys
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.testing import assert_allclose
from oracle import Result, attend

import attnlib
import attnlib.triton

INF = np.inf
rng = np.random.default_rng(2205)


class Case(NamedTuple):
    """Shapes of queries, keys and values, the options of the call, and a change made to the arrays before it."""

    shapes: tuple
    options: dict = {}  # noqa: RUF012
    change: Callable = lambda q, k, v: None
    dtype: str = "float32"


def matrices(T, S, D=5, D_v=3):
    """Shapes of one head."""
    return (T, D), (S, D), (S, D_v)


def growing(q, k, v):
    """Make the scores grow along the keys, up to 100, so that the maximum changes in every tile."""
    q[:], k[:] = np.abs(q), np.abs(k) * np.linspace(0, 30, len(k))[:, None]


def falling(q, k, v):
    """Make the scores fall along the keys: the reverse of :func:`growing`."""
    growing(q, k, v)
    k[:] = k[::-1]


def spoiled(q, k, v):
    """Put nan into one query and inf into a different one, which makes some of its scores infinite."""
    q[2, 0], q[6, 1] = np.nan, np.inf


TOGETHER = {"window": (90, 3), "q_offset": 100, "softcap": 2.0, "scale": -0.7, "enable_gqa": True}
CASES = {
    "everything together": Case(((1, 4, 17, 11), (1, 2, 131, 11), (1, 2, 131, 19)), TOGETHER),
    "plain": Case(matrices(7, 131)),
    "scores that grow": Case(matrices(7, 131), change=growing),
    "scores that fall": Case(matrices(7, 131), change=falling),
    "causal": Case(matrices(69, 71), {"is_causal": True}),
    "causal, the last query at the last key": Case(matrices(5, 73), {"is_causal": True, "q_offset": 68}),
    "causal, with rows of nothing": Case(matrices(17, 13), {"is_causal": True, "q_offset": -3}),
    "a window beyond the keys": Case(matrices(5, 7), {"window": (1, 1), "q_offset": 4}),
    "a window far away": Case(matrices(5, 7), {"window": (2**40, 0), "q_offset": 2**40 + 3}),
    "one query": Case(matrices(1, 67), {"window": (30, 0), "q_offset": 66}),
    "no keys": Case(matrices(5, 0)),
    "no queries": Case(matrices(0, 5)),
    "vectors of no components": Case(matrices(3, 5, 0, 0)),
    "wide vectors": Case(matrices(3, 5, 130, 257)),
    "a cap that hardly matters": Case(matrices(7, 13), {"softcap": 1e4}),
    "batches that broadcast": Case(((3, 1, 5, 7), (2, 13, 7), (2, 13, 11))),
    "nan and inf": Case(matrices(11, 13), {}, spoiled),
    "half precision": Case(matrices(7, 131), {"is_causal": True, "q_offset": 124}, dtype="float16"),
}


def arguments(case: Case) -> list[np.ndarray]:
    """Queries, keys and values, rounded to the case's dtype."""
    arrays = [rng.standard_normal(shape) for shape in case.shapes]
    case.change(*arrays)
    return [x.astype(case.dtype) for x in arrays]


def expected(case: Case, arrays: list[np.ndarray]) -> Result:
    """Return what the loops compute, with nan as the context of every query that has a weight of nan."""
    result = attend(*arrays, **case.options)
    spoiled = np.isnan(result.weights).any(axis=-1, keepdims=True)
    return result._replace(context=np.where(spoiled, np.nan, result.context))


def transposed(x: np.ndarray, device: str) -> torch.Tensor:
    """Return the same numbers as a tensor whose rows and columns are swapped in memory."""
    return torch.tensor(x.swapaxes(-1, -2).copy(), device=device).transpose(-1, -2)


def examine(known: dict, device: str) -> str | None:
    """Return the name of the first case in which the kernel differs from the loops; None if there is none."""
    for name, (case, arrays, theirs) in known.items():
        tensors = [transposed(x, device) for x in arrays]
        context, lse = attnlib.triton.scaled_dot_product_attention(*tensors, **case.options, return_lse=True)
        tolerance = 2e-3 if case.dtype == "float16" else 1e-5
        try:
            for ours, exact in ((context, theirs.context), (lse, theirs.lse)):
                assert ours.dtype == tensors[0].dtype
                assert_allclose(ours.double().cpu().numpy(), exact, rtol=tolerance, atol=tolerance)
        except AssertionError:
            return name
    return None


def prepared() -> dict:
    """Return the cases with their arrays and expected results."""
    return {name: (case, arrays := arguments(case), expected(case, arrays)) for name, case in CASES.items()}


def load(file: str) -> None:
    """Make a copy of the kernel the one that attnlib uses."""
    spec = importlib.util.spec_from_file_location("attnlib._triton", file)
    attnlib._triton = sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


if __name__ == "__main__":
    known, found = prepared(), {}
    for file in sys.argv[1:]:
        load(file)
        found[file] = examine(known, "cpu")
    print(json.dumps(found))
