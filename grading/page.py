"""The class's grades as one HTML page: no script, nothing from elsewhere, readable in light and dark."""

from collections.abc import Sequence
from html import escape
from os.path import relpath
from pathlib import Path
from urllib.parse import quote

from grading.outcome import VERDICTS
from grading.report import Row, points

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Grades: {assignment}</title>
<style>
:root {{ color-scheme: light dark; --page: #fff; --text: #1b1f23; --line: #d0d7de; --head: #f6f8fa; --link: #0a58ca; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --page: #14181d; --text: #e3e8ee; --line: #3b444e; --head: #1e242b; --link: #7cb3ff; }} }}
body {{ margin: 1.5rem auto; padding: 0 1rem; max-width: 75rem; background: var(--page); color: var(--text);
  font: 1rem/1.5 system-ui, sans-serif; }}
a {{ color: var(--link); }}
table {{ border-collapse: collapse; width: 100%; }}
caption {{ text-align: left; padding: .3rem 0; }}
th, td {{ border-bottom: 1px solid var(--line); padding: .35rem .7rem; text-align: left; vertical-align: top; }}
thead th {{ background: var(--head); }}
.number {{ text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }}
ul {{ margin: 0; padding-left: 1.1rem; }}
</style>
</head>
<body>
<main>
<h1>Grades: {assignment}</h1>
<table>
<caption>{caption}</caption>
<thead><tr><th scope="col">Student</th><th scope="col" class="number">Score</th>
<th scope="col" class="number">Answers to read</th><th scope="col">Verdict</th>
<th scope="col">Mistakes</th></tr></thead>
<tbody>
{body}
</tbody>
</table>
<h2>Verdicts</h2>
<ul>
{verdicts}
</ul>
</main>
</body>
</html>
"""


def write_page(rows: Sequence[Row], assignment: str, file: Path) -> None:
    """Write the page. Each student's name leads to the feedback page, where there is one."""
    waiting = sum(row.to_read for row in rows)
    caption = f"{len(rows)} students; {waiting} written answers wait for a person to read them."
    verdicts = "\n".join(f"<li><strong>{verdict}</strong>: {meaning}.</li>" for verdict, meaning in VERDICTS.items())
    body = "\n".join(_row(row, file.parent) for row in rows)
    page = PAGE.format(assignment=escape(assignment), caption=caption, body=body, verdicts=verdicts)
    file.write_text(page, encoding="utf-8")


def _row(row: Row, folder: Path) -> str:
    remarks = "".join(f"<li>{escape(remark)}</li>" for remark in row.remarks())
    return (
        f'<tr><th scope="row">{_name(row, folder)}</th>'
        f'<td class="number">{points(row.score)} / {points(row.points)}</td><td class="number">{row.to_read or ""}</td>'
        f"<td>{escape(row.outcome.verdict)}</td><td>{f'<ul>{remarks}</ul>' if remarks else ''}</td></tr>"
    )


def _name(row: Row, folder: Path) -> str:
    name = escape(row.outcome.student)
    if not row.feedback:
        return name
    return f'<a href="{quote(relpath(row.feedback[0], folder))}">{name}</a>'
