"""Benchmarks are not run by the tests, so a rename elsewhere can break one unnoticed."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_function_that_is_profiled_exists(monkeypatch):
    """Check the names in ``WATCHED``: they are strings, which no linter follows."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    monkeypatch.delitem(sys.modules, "profile_grading", raising=False)
    from profile_grading import WATCHED

    assert [name for owner, name, *_ in WATCHED if not hasattr(owner, name)] == []


def test_the_page_computes_from_the_numbers_that_were_measured():
    page = (ROOT / "book" / "teaching" / "how-grading-works.md").read_text(encoding="utf-8")
    used = re.findall(r"^    \((\d+), (\w+)\): \(([\d.]+), ([\d.]+)\),$", page, re.MULTILINE)
    measured = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8").split("benchmarks/capacity.py")[1]
    lines = [line.split() for line in measured.split("```")[1].splitlines()[2:]]
    assert used == [(n, pages, main, others) for n, jobs, pages, _, main, others, *_ in lines if jobs == "2"]
    assert used
