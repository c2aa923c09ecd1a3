"""The table of tests and mutants, as text and as HTML, where a mutant is known by its kind and a number."""

from html import escape

from attnlib.checks.mutation.kill_matrix import KillMatrix
from attnlib.checks.report_html import POSITIVE_RGB

KILLED, SURVIVED = "caught", "·"
CELL = "padding:.1em .4em;text-align:center;border:1px solid rgba(128,128,128,.35)"
SHADES = {1: 0.2, 2: 0.32, 3: 0.45}  # of a caught mutant, by its weight
CAPTION = "Which test catches which mistake. The weight of a mistake (1 to 3) says how hard it is to catch."


def text_table(matrix: KillMatrix) -> str:
    """Return a row for each mutant, with the tests that kill it."""
    rows = [f"{_label(matrix, i)}: {_killers(matrix, i)}" for i in range(len(matrix.sample.mutants))]
    return "\n".join([CAPTION, *rows])


def html_table(matrix: KillMatrix) -> str:
    """Return a table with a row for each mutant and a column for each test."""
    heads = "".join(f"<th scope='col' style='{CELL}'>{escape(test)}</th>" for test in _heads(matrix))
    rows = "".join(_row(matrix, i) for i in range(len(matrix.sample.mutants)))
    head = f"<thead><tr><th scope='col' style='{CELL}'>mistake</th>{heads}</tr></thead>"
    caption = f"<caption style='caption-side:top;text-align:left;font-style:italic'>{CAPTION}</caption>"
    style = "border-collapse:collapse;margin:.3em 0;color:inherit"
    table = f"<table style='{style}'>{caption}{head}<tbody>{rows}</tbody></table>"
    return f"<div style='overflow-x:auto'>{table}</div>"


def _heads(matrix: KillMatrix) -> list[str]:
    rejecting = matrix.rejections()
    return [f"{test} (rejects a correct version)" if i in rejecting else test for i, test in enumerate(matrix.tests)]


def _row(matrix: KillMatrix, i: int) -> str:
    shade = f";background-color:rgba({POSITIVE_RGB},{SHADES[matrix.sample.mutants[i].weight]})"
    cells = "".join(
        f"<td style='{CELL}{shade if kills[i] else ''}'>{KILLED if kills[i] else SURVIVED}</td>"
        for kills in matrix.kills
    )
    return f"<tr><th scope='row' style='{CELL};text-align:left'>{escape(_label(matrix, i))}</th>{cells}</tr>"


def _label(matrix: KillMatrix, i: int) -> str:
    mutant = matrix.sample.mutants[i]
    return f"{i + 1}. {mutant.kind.name} ({mutant.weight})"


def _killers(matrix: KillMatrix, i: int) -> str:
    names = [test for test, kills in zip(matrix.tests, matrix.kills, strict=True) if kills[i]]
    return f"caught by {', '.join(names)}" if names else "survives"
