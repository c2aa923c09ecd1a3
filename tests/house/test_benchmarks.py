"""Benchmarks are not run by the tests, so a rename elsewhere can break one unnoticed."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_function_that_is_profiled_exists(monkeypatch):
    """Check the names in ``WATCHED``: they are strings, which no linter follows."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    monkeypatch.delitem(sys.modules, "profile_grading", raising=False)
    from profile_grading import WATCHED

    assert [name for owner, name, *_ in WATCHED if not hasattr(owner, name)] == []
