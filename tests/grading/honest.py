"""Right answers as they would stand in a notebook, and whether one of them is done by what its exercise forbids."""

import ast
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

CHECKS = Path(__file__).parents[1] / "checks"


@dataclass(frozen=True)
class Written:
    """An answer: what it is an answer to, the name that is examined, and the source of the cell that it stands in."""

    exercise: str
    style: str
    backend: str
    name: str
    source: str
    implementation: Any


def right_answers() -> Iterator[Written]:
    """Yield the right answers of tests/checks: each stands in a module with those that it uses."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(CHECKS)
        from correct_solutions import CORRECT_SOLUTIONS
    for (exercise, backend), answers in CORRECT_SOLUTIONS.items():
        for style, implementation in answers.items():
            name = implementation.__qualname__.partition(".")[0]
            yield Written(exercise, style, backend, name, _cell(implementation.__module__), implementation)


def other_answers() -> Iterator[Written]:
    """Yield the wrong answers of tests/checks, which nobody got by a shortcut either."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(CHECKS)
        from unknown_mistakes import UNKNOWN_MISTAKES
    for exercise, answers in UNKNOWN_MISTAKES.items():
        for style, (implementation, *_) in answers.items():
            name = getattr(implementation, "__qualname__", "<").partition(".")[0]
            ours = str(getattr(implementation, "__module__", "")).startswith("unknown_mistakes")
            if ours and "<" not in name:  # those that a function makes have no source of their own
                source = _cell(implementation.__module__)
                yield Written(exercise, style, "numpy", name, source, implementation)


@cache
def _cell(module: str) -> str:
    """Return the source of a module as a student would write it: without what registers the answers."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    ours = ("correct_solutions", "unknown_mistakes")
    tree.body = [one for one in tree.body if not (isinstance(one, ast.ImportFrom) and str(one.module).startswith(ours))]
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            node.decorator_list = [one for one in node.decorator_list if "style" not in ast.unparse(one)]
    return ast.unparse(tree)
