"""How Canvas, Moodle, Blackboard and nbgrader's exchange name what they let instructors download.

Sources: Canvas, lib/content_zipper.rb and the method infer_comment_context_from_filename of
https://github.com/instructure/canvas-lms, which reads the names back; Moodle, mod/assign/locallib.php of
https://github.com/moodle/moodle; Blackboard's help on downloading assignments; nbgrader, nbgrader/exchange/default.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from itertools import takewhile

from grading._nbgrader import parse_utc
from grading.collect.archive_members import Member
from grading.course import GradingError
from grading.submission_folders import why_not
from grading.text import counted

CANVAS = re.compile(r"[^_]+_(?P<late>LATE_)?(?P<student>\d+)_(?P<order>\d+)_(?P<file>.+)")
# A name contains no underscore in Moodle's download, and the number is the participant's.
MOODLE = re.compile(r"(?P<student>[^_]+_\d+)_assignsubmission_file(?:_(?P<file>.*))?")
BLACKBOARD = re.compile(r"(?P<student>.+?)_attempt_(?P<when>\d{4}(?:-\d\d){5})(?:_(?P<file>.+)|\.txt)")
EXCHANGE = re.compile(
    r"(?P<student>[^+]+)\+(?P<assignment>[^+]+)\+(?P<when>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^+]*)(?:\+.*)?"
)
BLACKBOARD_TIME = "%Y-%m-%d-%H-%M-%S"


@dataclass(frozen=True)
class Found:
    """A file of a student, according to its path.

    Attributes:
        student: what the system calls the student.
        file: the name that the student gave the file.
        member: the file.
        when: when it was handed in, in UTC without a time zone, if the path says so.
        late: whether the path says that it was late, without the time.
        order: a number that is larger for what was handed in later, if the path has one.
        attempt: what the files of one attempt share.
    """

    student: str
    file: str
    member: Member
    when: datetime | None = None
    late: bool = False
    order: int = 0
    attempt: str = ""


@dataclass(frozen=True)
class Asked:
    """What is collected: an assignment; the names of all assignments, the known students, and the zone of the times."""

    assignment: str
    assignments: Collection[str]
    students: Collection[str]
    zone: tzinfo


Reader = Callable[[Member, Asked], Found | None]


def _canvas(member: Member, asked: Asked) -> Found | None:
    match = CANVAS.fullmatch(member.path[-1])
    if not match:
        return None
    return Found(match["student"], match["file"], member, late=bool(match["late"]), order=int(match["order"]))


def _moodle(member: Member, asked: Asked) -> Found | None:
    match = in_moodle(member.path)
    return Found(match["student"], match["file"] or member.path[-1], member) if match else None


def in_moodle(path: Iterable[str]) -> re.Match[str] | None:
    """Return the match of the first part of a path that Moodle named; its group ``student`` is the participant."""
    return next(filter(None, map(MOODLE.fullmatch, path)), None)


def _blackboard(member: Member, asked: Asked) -> Found | None:
    match = BLACKBOARD.fullmatch(member.path[-1])
    if not match:
        return None
    try:
        local = datetime.strptime(match["when"], BLACKBOARD_TIME).replace(tzinfo=asked.zone)
        when = local.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    pieces = match["student"].split("_")  # the title of the assignment, and the user name, which may have some, too
    names = ["_".join(pieces[i:]) for i in range(1, len(pieces))] or pieces
    student = next((name for name in names if name in asked.students), names[-1])
    return Found(student, match["file"] or member.path[-1], member, when, attempt=match["when"])


def _exchange(member: Member, asked: Asked) -> Found | None:
    for part in member.path[:-1]:
        if (match := EXCHANGE.fullmatch(part)) and match["assignment"] == asked.assignment:
            try:
                when: datetime = parse_utc(match["when"])
            except (ValueError, OverflowError):
                return None
            return Found(match["student"], member.path[-1], member, when, attempt=f"{match['when']} {member.owner}")
    return None


def _folders(member: Member, asked: Asked) -> Found | None:
    folders = member.path[:-1]
    if asked.assignment in folders[1:]:
        return Found(folders[folders.index(asked.assignment, 1) - 1], member.path[-1], member)
    if not folders or set(folders) & set(asked.assignments):
        return None
    student = next((folder for folder in folders if folder in asked.students), folders[-1])
    return Found(student, member.path[-1], member)


SYSTEMS: dict[str, Reader] = {
    "canvas": _canvas,
    "moodle": _moodle,
    "blackboard": _blackboard,
    "nbgrader": _exchange,
    "folders": _folders,
}


def _in_exchange(member: Member) -> bool:
    """Return whether the exchange named the folder of a file.

    A student's file in a download may bring a folder of any name, but the system writes something in front of it.
    """
    before = takewhile(lambda part: not _in_download(part), member.path[:-1])
    return any(map(EXCHANGE.fullmatch, before))


def _in_download(part: str) -> bool:
    """Return whether a download's system named a part of a path, which may end where the student's own name begins."""
    return any(name.fullmatch(text) for name in (CANVAS, MOODLE, BLACKBOARD) for text in (part, f"{part}_"))


def recognise(members: Sequence[Member], asked: Asked, source: str, told: str = "") -> str:
    """Return the system that named these files.

    One folder named by the exchange is enough, since any account can add files of any name there. Otherwise, it is the
    system that named the most files; plain folders count only if no other system named any.

    Raises:
        GradingError: no system named any of them, or several named equally many.
    """
    if told:
        return told
    if any(map(_in_exchange, members)):
        return "nbgrader"
    counts = Counter({name: sum(read(one, asked) is not None for one in members) for name, read in SYSTEMS.items()})
    in_folders = counts.pop("folders")
    most = max(counts.values(), default=0)
    best = [name for name, count in counts.items() if count == most > 0]
    if len(best) > 1:
        raise GradingError(
            f"the names in {source} could come from {' or '.join(best)}: say which, as in --from {best[0]}"
        )
    if not best and not in_folders:
        raise GradingError(
            f"{source} has {counted(len(members), 'file')}. None of them is named as in a download from Canvas, Moodle "
            "or Blackboard or as in nbgrader's exchange, and none lies in a student's folder. Expected names such as "
            "lovelaceada_1815_4711_work.ipynb, Ada Lovelace_77000_assignsubmission_file_/work.ipynb, "
            "HW_ada_attempt_2030-01-31-23-59-00_work.ipynb or ada/work.ipynb"
        )
    return best[0] if best else "folders"


def wrong_student(student: str) -> str:
    """Return why a name from a path cannot be that of a folder, or "" if it can."""
    if student.startswith(".") or {"/", "\\"} & set(student):
        return "begins with a dot, or contains a slash"
    return why_not(student)
