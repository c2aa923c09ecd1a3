"""How the checks judge answers that they have not seen: how many wrong ones they name, how many right ones they refuse.

Give files whose ``ANSWERS`` is a list of (exercise, backend, label, "right" or "wrong", implementation, what is wrong).
If a file has ``UNASKED``, it maps an exercise to the optional argument that the answers' notebook does not ask for.

    python benchmarks/reader_answers.py FILE...              the figures
    python benchmarks/reader_answers.py --list FILE...       and, for each answer, what is wrong and what the checks say
"""

import argparse
import importlib.util
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from attnlib.checks import Report, examine

GENERIC = "wrong numbers|numbers differ|raised an exception"


def main() -> None:
    """Examine every answer of the files, and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument(
        "--list", action="store_true", help="print each wrong answer, and each right one that is refused"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counted: Counter[str] = Counter()
    for file in options.files:
        module = imported(file)
        unasked = getattr(module, "UNASKED", {})
        for name, backend, label, kind, implementation, wrong in module.ANSWERS:
            report = examine(name, implementation, backend=backend, seed=options.seed, unasked=unasked.get(name))
            counted[outcome(kind, report)] += 1
            if options.list and outcome(kind, report) != "right and passed":
                print(f"{outcome(kind, report)}: {file.stem}: {name} ({backend}), {label}: {wrong}\n    {said(report)}")
    for what, number in sorted(counted.items()):
        print(f"{number:5} {what}")


def imported(file: Path) -> Any:
    """Import a file of answers, and return it as a module."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[file.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def outcome(kind: str, report: Report) -> str:
    """Return what came of an answer, in a few words."""
    if report.passed:
        return f"{kind} and passed"
    if kind == "right":
        return "right and refused"
    if report.named:
        return "wrong and named"
    generic = any(text in report.title for text in GENERIC.split("|"))
    return "wrong and only called wrong" if generic else "wrong and described"


def said(report: Report) -> str:
    """Return the name that was given, or the first thing that was said."""
    shown = report.remark or report
    about = f"[{shown.mistake}] {shown.title}" if shown.named else shown.title
    seen = f"; with {shown.finding.case.name}: {shown.finding.answer.error or ''}" if shown.finding else ""
    return about + seen


if __name__ == "__main__":
    main()
