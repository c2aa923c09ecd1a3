"""The outcome of one submission: a verdict, and for each question that was not entirely correct, what was wrong.

The scores themselves are in nbgrader's gradebook, where a person can change them. This holds what does not fit there.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from attnlib.checks.report import MIME_TYPE
from grading._untyped import NotebookNode
from grading.graded_cell import is_autograded
from grading.judge import NO_ANSWER
from grading.text import printable
from grading.verdict import Verdict

IN_TIME, NO_DUE_DATE = ", in time", ", and no due date is set"  # endings of lateness notes that need not be shown
LATENESS_CHANGED = "its lateness has changed: "  # the beginning of the flag for a change in lateness
TIME_UNKNOWN = "its time of submission is not known: "
BEFORE_EXAM = "it was handed in before the exam began: "
RENEWED = (LATENESS_CHANGED, TIME_UNKNOWN, BEFORE_EXAM)  # the beginnings of the flags that each run renews
MAX_TABLE_TEXT = 300  # characters of a student's text in a table


def plain(text: str) -> str:
    """Return a student's text in a form that is fit for a terminal and a table: printable, and not too long."""
    return printable(text[:MAX_TABLE_TEXT])


@dataclass(frozen=True)
class Finding:
    """What was wrong with a question: the id of the mistake where it was recognised, and a few words.

    ``section`` is the section of the book to reread, and ``link`` is its place, relative to the root of the book.
    """

    question: str
    mistake: str | None
    title: str
    section: str = ""
    link: str = ""

    def __post_init__(self) -> None:
        for name in ("question", "mistake", "title", "section", "link"):
            text = getattr(self, name)
            object.__setattr__(self, name, text and plain(text))

    def __str__(self) -> str:
        return f"{self.question}: " + (f"{self.mistake} ({self.title})" if self.mistake else self.title)


@dataclass(frozen=True)
class Outcome:
    """The verdict on one submission. ``flags`` say why an instructor should look at it."""

    student: str
    verdict: Verdict
    reason: str = ""
    findings: tuple[Finding, ...] = ()
    digest: str = ""  # the digest of what was graded; while it is the same, there is no need to grade it again
    flags: tuple[str, ...] = ()
    version: str = ""  # the version of the engine and the exercises that graded it
    timeout: float = 0.0  # the time limit of a cell, in seconds, if a cell reached it
    lateness: str = ""  # when it was handed in and how late that was, as far as known
    untouched: tuple[str, ...] = ()  # the graded cells whose answers were left as they were handed out

    def __post_init__(self) -> None:
        object.__setattr__(self, "verdict", Verdict(self.verdict))
        object.__setattr__(self, "reason", plain(self.reason))
        object.__setattr__(self, "lateness", plain(self.lateness))
        object.__setattr__(self, "flags", tuple(map(plain, self.flags)))

    def to_json(self) -> bytes:
        """Return the outcome as it is stored, in one file per student, so that students can be graded in any order."""
        return json.dumps(asdict(self), indent=1).encode()

    @classmethod
    def from_json(cls, content: bytes) -> "Outcome":
        """Read what :meth:`to_json` returned.

        Raises:
            ValueError: it is not JSON, or its verdict is unknown.
        """
        data = json.loads(content)
        found = tuple(Finding(**finding) for finding in data["findings"])
        listed = {name: tuple(data.get(name, ())) for name in ("flags", "untouched")}
        return cls(**data | {"findings": found} | listed)


def findings(notebook: NotebookNode) -> Iterator[Finding]:
    """Yield what was wrong in an executed notebook, question by question."""
    for cell in filter(is_autograded, notebook.cells):
        shown = [output.data[MIME_TYPE] for output in cell.outputs if MIME_TYPE in output.get("data", {})]
        reports = list(filter(_is_report, shown))
        errors = [output for output in cell.outputs if output.output_type == "error"]
        if reports:
            yield from (_from_report(report) for report in reports if not report["passed"])
        elif errors and errors[0].ename != NO_ANSWER:  # these would only repeat the verdict
            yield Finding(cell.metadata.nbgrader["grade_id"], None, f"{errors[0].ename} ({errors[0].evalue[:200]})")


def _is_report(shown: object) -> bool:
    """Return whether this is a genuine report, since a student's code can show anything under the same name."""
    if not isinstance(shown, dict) or not isinstance(shown.get("passed"), bool):
        return False
    texts = [shown.get("exercise"), shown.get("backend"), shown.get("title"), shown.get("mistake") or ""]
    texts += [shown.get("section") or "", shown.get("link") or ""]
    return all(isinstance(text, str) for text in texts)


def _from_report(report: NotebookNode) -> Finding:
    backend = "" if report["backend"] in ("numpy", "choice") else f" ({report['backend']})"
    question, reread = f"{report['exercise']}{backend}", (report.get("section") or "", report.get("link") or "")
    return Finding(question, report["mistake"], report["title"], *reread)
