"""Flags in the source of a submission: uses of functions that would solve an exercise, and ways around the checks.

The flags are for the instructor. They complement the functions that raise while answers run. Because only the source is
read, there can be false alarms and misses. A flag is a place to look at, not a verdict.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from grading.static_checks.references import Reference, Statement, names_in, statements
from grading.static_checks.rules import Level, match_rule
from grading.static_checks.scopes import UNKNOWN_NAME
from grading.text import printable

MAX_FLAGS = 200  # flags of a submission; a hostile one could have as many as it has words
MAX_LINE_LENGTH = 120  # characters of a line that are shown
LINE_END = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class Flag:
    """A place in a submission that is worth a look.

    Attributes:
        cell: the cell's id, as it was given.
        line: the number of the line in the cell's source, counted from 1.
        text: the line, with printable characters only, cut to 120 of them.
        why: what is done there.
        level: ``suspicious`` if no honest answer contains it; ``notice`` if one may.
    """

    cell: str
    line: int
    text: str
    why: str
    level: Level


def find_flags(cells: Sequence[tuple[str, str]], forbidden: Mapping[str, Sequence[str]]) -> list[Flag]:
    """Return what is worth a look in a submission: at most 200 places, the suspicious ones first, by cell and line.

    Args:
        cells: the student's cells as (id, source), in the notebook's order: answers and the student's own cells, not
            those that were given and may not be changed.
        forbidden: maps what a check examines, as the check writes it (usually the name of a function), to the functions
            and classes that its exercise forbids, such as ``attnlib.softmax``. They are looked for in what is examined
            and in everything that this uses; a cell that no answer uses may compare with them.
    """
    found = statements(cells)
    answers = {expression: _reachable(found, expression) for expression in forbidden}
    in_answers = {index for reached in answers.values() for index in reached}
    flags: dict[tuple[str, int, str], Level] = {}
    for index, statement in enumerate(found):
        for reference in statement.references:
            if match := match_rule(reference, in_answer=index in in_answers):
                _add(flags, statement.cell, reference.line, *match)
    own = {name for statement in found for name in statement.methods}
    last = {statement.defines: index for index, statement in enumerate(found) if statement.defines}
    for expression, reached in answers.items():
        functions = _ForbiddenFunctions(forbidden[expression], own)
        for index in reached:
            redefined = all(last.get(name, -1) > index for name in found[index].binds)
            for line, level, why in _forbidden_uses(found[index], functions, redefined):
                _add(flags, found[index].cell, line, level, why)
    return _sorted(flags, cells)


def _add(flags: dict[tuple[str, int, str], Level], cell: str, line: int, level: Level, why: str) -> None:
    if flags.get((cell, line, why)) != "suspicious":
        flags[cell, line, why] = level


def _sorted(flags: Mapping[tuple[str, int, str], Level], cells: Sequence[tuple[str, str]]) -> list[Flag]:
    place = {cell: number for number, (cell, _) in enumerate(cells)}
    lines = {cell: LINE_END.split(source) for cell, source in cells}
    ordered = sorted(flags.items(), key=lambda item: (item[1] == "notice", place[item[0][0]], *item[0][1:]))
    return [Flag(cell, n, _shown(lines[cell], n), why, level) for (cell, n, why), level in ordered[:MAX_FLAGS]]


def _shown(lines: Sequence[str], number: int) -> str:
    line = lines[min(number, len(lines)) - 1].strip()[:MAX_LINE_LENGTH]
    return printable(line)


def _reachable(found: Sequence[Statement], expression: str) -> set[int]:
    """Return the statements that an expression depends on, directly or indirectly."""
    binding = defaultdict(list)
    for index, statement in enumerate(found):
        for name in statement.binds:
            binding[name].append(index)
    reached: set[int] = set()
    seen, waiting = set(), list(names_in(expression))
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            for index in binding[name]:
                if index not in reached:
                    reached.add(index)
                    waiting.extend(found[index].uses)
    return reached


class _ForbiddenFunctions:
    """The functions that an exercise forbids, and how they may be referred to."""

    def __init__(self, names: Sequence[str], own: set[str]) -> None:
        self.by_ends = {(name.partition(".")[0], name.rpartition(".")[2]): name for name in names}
        self.methods = {name.rpartition(".")[2]: name for name in names if name.startswith("torch.Tensor.")}
        self.own = own

    def of(self, reference: Reference) -> str | None:
        """Return which of them is referred to: by any path into its package, or as a method."""
        root, *parts = reference.path.split(".")
        if root == UNKNOWN_NAME:
            return next((self.methods[part] for part in parts if part in self.methods and part not in self.own), None)
        parts = parts[-1:] if reference.kind == "from" else parts
        return next((self.by_ends[root, part] for part in parts if (root, part) in self.by_ends), None)


def _forbidden_uses(
    statement: Statement, functions: _ForbiddenFunctions, redefined: bool
) -> Iterator[tuple[int, Level, str]]:
    """Yield where a statement uses what would solve the exercise.

    An import that a later definition hides is only worth a notice.
    """
    for reference in statement.references:
        name = functions.of(reference)
        if name is not None:
            level: Level = "notice" if reference.kind == "from" and redefined else "suspicious"
            yield reference.line, level, f"uses {name}, which would solve the exercise"
