"""Divide the written answers among assistants: a CSV file for each, without names or other people's marks.

If a question has a rubric, its answers have a line for each criterion. A sample of the answers goes to a second
assistant as well. In the files, it looks like the rest. `shares.json` says which answer is whose; the assistants
need only their files.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from secrets import randbits, token_hex

from grading._untyped import notebook_of
from grading.class_report.student_code import MAX_EXECUTED_NOTEBOOK_BYTES
from grading.course import Course, GradingError
from grading.csv_file import read_csv, to_csv
from grading.marking.rubric import Criterion, rubrics, title
from grading.outcome import plain
from grading.repair.messages import printable
from grading.report import cell, rows
from grading.run_state import lock
from grading.safe_files import PRIVATE_MODE
from grading.submission_folders import why_not
from grading.text import counted, points

TITLES = ("answer", "question", "text", "points possible", "mark", "comment")
MAX_SHARES_BYTES = 50_000_000
NOT_READ = "[This answer could not be read. Ask the instructor for it.]"
MAX_TEXT = 20_000  # characters of an answer in an assistant's file; a cell of a spreadsheet holds 32,767


@dataclass(frozen=True)
class Share:
    """An answer that an assistant marks.

    ``code`` identifies it in the file; ``second`` says whether another assistant marks it first.
    """

    code: str
    assistant: str
    student: str
    question: str
    most: float
    second: bool


def folder_of(course: Course, assignment: str) -> Path:
    """Return the folder with the files of the assistants."""
    return course.reports(assignment) / "marking"


def read_shares(course: Course, assignment: str) -> dict[str, Share]:
    """Return the shares by their codes; none if nothing was divided."""
    try:
        content = course.files.read(folder_of(course, assignment) / "shares.json", MAX_SHARES_BYTES)
    except FileNotFoundError:
        return {}
    return {one["code"]: Share(**one) for one in json.loads(content)}


def forget(course: Course, assignment: str, student: str) -> None:
    """Remove the answers of a student from the files of the assistants, who may have marked others meanwhile."""
    folder, shares = folder_of(course, assignment), read_shares(course, assignment)
    gone = {code: share for code, share in shares.items() if share.student == student}
    if not gone:
        return
    for assistant in {share.assistant for share in gone.values()}:
        rows = [line.cells for line in read_csv(folder / f"{assistant}.csv", MAX_SHARES_BYTES, "a file of marks")]
        kept = to_csv(row for row in rows if row[0] not in gone)
        course.files.write(folder / f"{assistant}.csv", kept.encode())
    _write_shares(course, assignment, [share for code, share in shares.items() if code not in gone])


def _write_shares(course: Course, assignment: str, shares: Sequence[Share]) -> None:
    content = json.dumps([asdict(share) for share in shares], indent=1).encode()
    course.files.write(folder_of(course, assignment) / "shares.json", content, PRIVATE_MODE)


def divide(course: Course, assignment: str, assistants: Sequence[str], by: str, sample: float) -> str:
    """Write a file for each assistant, and return what is in them, as text for a terminal.

    Answers that have already been assigned stay with their assistant.

    Args:
        course: the class.
        assignment: its name.
        assistants: their names, which are also those of the files.
        by: "student": an assistant marks all answers of a student; "question": everybody's answers to a question.
        sample: the share of the answers that a second assistant marks as well.

    Raises:
        GradingError: a name cannot be a file name, no answer is left to mark, or a second assistant is missing.
    """
    if wrong := [name for name in assistants if why_not(name) or {"/", "\\"} & set(name) or name.startswith(".")]:
        raise GradingError(f"{plain(wrong[0])!r} cannot be the name of a file; expected a name such as mary")
    if not 0 <= sample <= 1 or (sample and len(set(assistants)) < 2):
        given = f"{sample:g}, for {counted(len(set(assistants)), 'assistant')}"
        raise GradingError(f"--second is {given}; expected a share from 0 to 1, and two or more assistants")
    with lock(course):
        old = read_shares(course, assignment)
        known = {(share.student, share.question) for share in old.values()}
        waiting = [(row.outcome.student, question, row.scores[question][1])
                   for row in rows(course, assignment) for question in row.unread]  # fmt: skip
        new = list(_divided([one for one in waiting if one[:2] not in known], assistants, by, sample))
        if not (old or new):
            raise GradingError(f"there are no answers to {assignment} that still have to be marked")
        shares = [*old.values(), *new]
        texts = _texts(course, assignment, {share.student for share in shares})
        criteria = rubrics(course, assignment)
        folder = folder_of(course, assignment)
        _write_shares(course, assignment, shares)
        mine = defaultdict(list)
        for share in shares:
            mine[share.assistant].append(share)
        for assistant, its in mine.items():
            course.files.write(folder / f"{assistant}.csv", _file(its, texts, criteria).encode())
    said = [f"{folder / assistant}.csv: {counted(len(its), 'answer')}" for assistant, its in sorted(mine.items())]
    return "\n".join([*said, f"To be marked twice: {counted(sum(share.second for share in shares), 'answer')}"])


def _divided(
    waiting: Sequence[tuple[str, str, float]], assistants: Sequence[str], by: str, sample: float
) -> Iterator[Share]:
    """Yield the shares. What belongs together goes to the assistant who has the fewest answers so far."""
    random = Random(randbits(64))
    groups = defaultdict(list)
    for answer in waiting:
        groups[answer[by == "question"]].append(answer)
    load = dict.fromkeys(assistants, 0)
    first: list[tuple[str, tuple[str, str, float]]] = []
    for group in sorted(groups.values(), key=len, reverse=True):
        assistant = min(load, key=lambda name: load[name])
        load[assistant] += len(group)
        first += [(assistant, answer) for answer in group]
    for assistant, answer in first:
        yield Share(token_hex(4), assistant, *answer, second=False)
    for assistant, answer in random.sample(first, round(sample * len(first))):
        other = random.choice([name for name in load if name != assistant])
        yield Share(token_hex(4), other, *answer, second=True)


def _file(
    shares: Sequence[Share], texts: Mapping[tuple[str, str], str], criteria: Mapping[str, Sequence[Criterion]]
) -> str:
    lines: list[Iterable[object]] = [TITLES]
    for share in sorted(shares, key=lambda share: (share.question, share.code)):  # random codes give a random order
        text = _cut(texts.get((share.student, share.question), NOT_READ))
        parts = [(title(share.question, one), one.points) for one in criteria.get(share.question, ())]
        for i, (asked, most) in enumerate(parts or [(share.question, share.most)]):
            lines.append(map(cell, (share.code, asked, "" if i else text, points(most), "", "")))
    return to_csv(lines)


def _cut(text: str) -> str:
    if len(text) <= MAX_TEXT:
        return text
    shown = f"Only the first {MAX_TEXT} of {len(text)} characters are shown"
    return f"{text[:MAX_TEXT]}\n[{shown}. Ask the instructor for the rest.]"


def _texts(course: Course, assignment: str, students: set[str]) -> dict[tuple[str, str], str]:
    """Return the answers by student and question, as they were graded, and warn about files that cannot be read."""
    found = dict[tuple[str, str], str]()
    for student in sorted(students):
        folder = course.autograded(student, assignment)
        for name in course.files.names(folder, ".ipynb"):
            try:
                cells = notebook_of(course.files.read(folder / name, MAX_EXECUTED_NOTEBOOK_BYTES)).cells
                answers = {one.metadata.get("nbgrader", {}).get("grade_id"): str(one.source) for one in cells}
            except (OSError, ValueError, LookupError, AttributeError, TypeError, RecursionError) as error:
                said = (
                    f"{folder / name} cannot be read ({printable(str(error), 200)}), so the answers in it are missing"
                )
                print(f"warning: {plain(student)}: {said}", file=sys.stderr)
                continue
            found |= {(student, question): text for question, text in answers.items() if question}
    return found
