"""Take the marks of assistants from their files: check, write and log them, and compare where two people marked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from grading.audit_log import AuditLog
from grading.course import Course, GradingError, log_file
from grading.csv_file import read_csv
from grading.gradebook.assignment import AssignmentGradebook
from grading.marking.comments import read_comments, unknown
from grading.marking.compare import MAX_LISTED, Given, agreement_table, compared, pairs
from grading.marking.rubric import Criterion, as_text, rubrics, title
from grading.marking.shares import MAX_SHARES_BYTES, TITLES, Share, read_shares
from grading.outcome import plain
from grading.run_state import RunState, lock
from grading.text import counted, points


@dataclass(frozen=True)
class Mark:
    """What an assistant wrote about an answer."""

    share: Share
    points: float
    comment: str
    criteria: Mapping[str, float] = field(default_factory=dict)

    @property
    def said(self) -> tuple[float, Mapping[str, float]]:
        """The points, and those for each criterion."""
        return self.points, dict(self.criteria)


def take(course: Course, assignment: str, files: Sequence[Path]) -> str:
    """Write the marks in the files to the gradebook and the log, and return what they are, as text for a terminal.

    A second mark goes only to the log, where it is compared with the first one. How well they agree on each question
    and criterion is in `agreement.csv`, among the reports.

    Raises:
        GradingError: a line does not hold a valid mark. All such lines are named, and nothing is written.
    """
    known = Known(read_shares(course, assignment), rubrics(course, assignment), read_comments(course))
    shares, marks, wrong = known.shares, list[Mark](), list[str]()
    for file in files:
        found, problems = _read(file, known)
        marks += found
        wrong += problems
    if wrong:
        raise GradingError("\n".join(["nothing was written, because these lines are wrong:", *wrong[:MAX_LISTED]]))
    with lock(course), AssignmentGradebook(course, assignment, log_file(course, assignment)) as gradebook:
        audit = RunState(course, assignment).audit
        before = {code: (one["points"], one.get("criteria", {})) for code, one in _last(audit).items()}
        new = [mark for mark in marks if before.get(mark.share.code) != mark.said]
        for mark in new:
            share = mark.share
            about = {"of": share.student, "question": share.question, "by": share.assistant, "points": mark.points}
            criteria = {"criteria": dict(mark.criteria)} if mark.criteria else {}
            audit.noted({"marked": share.code, "second": share.second, **about, **criteria})
            if not share.second:
                gradebook.mark(share.student, share.question, mark.points, mark.comment)
        given = {code: Given(float(one["points"]), one.get("criteria", {})) for code, one in _last(audit).items()}
        twice, table = pairs(shares, given), course.reports(assignment) / "agreement.csv"
        if twice:
            course.files.write(table, agreement_table(twice))
    said = [f"{counted(len(new), 'new mark')}, {counted(len(shares) - len(given), 'answer')} still unmarked"]
    return "\n".join([*said, *compared(twice)])


def _last(audit: AuditLog) -> dict[str, dict[str, Any]]:
    """Return the last entry about a mark for each code."""
    said = [entry.said for entry in audit.entries()[0]]
    return {str(one["marked"]): one for one in said if "marked" in one}


@dataclass(frozen=True)
class Known:
    """What the files of assistants may refer to: answers by their codes, criteria by question, and named comments."""

    shares: Mapping[str, Share]
    criteria: Mapping[str, Sequence[Criterion]]
    comments: Mapping[str, str]

    def parts(self, share: Share) -> dict[str, tuple[str, float]]:
        """Return the parts of an answer that get marks, by their titles: a criterion's name, or "", and its points."""
        whole = {share.question: ("", share.most)}
        found = self.criteria.get(share.question, ())
        return {title(share.question, one): (one.name, one.points) for one in found} or whole


Parts = dict[str, tuple[float, str]]  # the mark and the comment for each criterion, or for "", the whole answer


def _read(file: Path, known: Known) -> tuple[list[Mark], list[str]]:
    lines = read_csv(file, MAX_SHARES_BYTES, "a file of marks")
    if not lines or lines[0].cells[: len(TITLES)] != TITLES:
        raise GradingError(f"{file} should begin with the titles {','.join(TITLES)}")
    found, wrong = dict[str, Parts](), list[str]()
    for line in lines[1:]:
        code, asked, _, _, mark, comment = (*map(_cell, line.cells), *[""] * len(TITLES))[: len(TITLES)]
        if problem := _wrong(known, code, asked, mark, comment):
            wrong.append(f"  {file.name}, line {line.number}: {problem}")
        elif mark:
            part, _ = known.parts(known.shares[code])[asked]
            found.setdefault(code, {})[part] = (float(mark.replace(",", ".")), comment)
    marks = [_mark(known, known.shares[code], parts) for code, parts in found.items()]
    halves = [code for code, parts in found.items() if len(parts) < len(known.parts(known.shares[code]))]
    wrong += [f"  {file.name}: the answer {code} has marks for some criteria, but not for all" for code in halves]
    return [mark for mark in marks if mark], wrong


def _cell(text: str) -> str:
    return text.strip().removeprefix("'")


def _wrong(known: Known, code: str, asked: str, mark: str, comment: str) -> str:
    """Return what is wrong with a line, or "" if nothing is."""
    share = known.shares.get(code)
    if share is None:
        return f"no answer has the code {plain(code)!r}"
    parts = known.parts(share)
    if asked not in parts:
        return f"there is no question {plain(asked)!r}; expected one of {'; '.join(parts)}"
    most, value = parts[asked][1], _number(mark)
    if mark and (value is None or not 0 <= value <= most):
        return f"the mark is {plain(mark)!r}; expected a number from 0 to {points(most)}"
    if names := unknown(comment, known.comments):
        return f"there is no comment named {plain(names[0])!r}; known names: {', '.join(known.comments) or 'none'}"
    return ""


def _mark(known: Known, share: Share, parts: Parts) -> Mark | None:
    """Return the mark of an answer, or None if not all of its criteria have one."""
    if len(parts) < len(known.parts(share)):
        return None
    if "" in parts:
        return Mark(share, *parts[""])
    criteria = {name: mark for name, (mark, _) in parts.items()}
    return Mark(share, sum(criteria.values()), as_text(known.criteria[share.question], parts), criteria)


def _number(text: str) -> float | None:
    try:
        return float(text.strip().replace(",", "."))
    except ValueError:
        return None
