"""Keep every attempt of every student in the class's folder, and put the one to be graded into `submitted/`.

An attempt is a folder of its own, `attempts/ASSIGNMENT/STUDENT/ATTEMPT`, with the files, a timestamp if it is known,
and `attempt.json`, which says where they came from. A submission that somebody put in place by hand is moved there
before another one replaces it, so nothing is lost.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from grading.course import Course
from grading.exchange import SECRET
from grading.lateness import TIME_FORMAT
from grading.repair.files import MAX_NOTEBOOK_BYTES
from grading.timestamp import LATE_MARK, TIMESTAMP_FILE, handed_in

ABOUT_FILE, MAX_ABOUT_BYTES = "attempt.json", 100_000
BY_HAND = "submitted"  # the source of a submission that was not collected
NOT_WORK = (ABOUT_FILE, TIMESTAMP_FILE, SECRET)


@dataclass(frozen=True)
class Attempt:
    """What is known about one attempt.

    Attributes:
        student: the student's id.
        digest: the digest of the names and contents of its files.
        source: the name of the file or folder that it was collected from.
        system: what named the files: "canvas", "moodle", and so on.
        files: the path of each file in the source, by its name in the attempt's folder.
        when: when it was handed in, in UTC, in ISO format, or "" if that is not known.
        late: whether it is known to be late, without the time.
        order: a number that is larger for later attempts, if the system gives one.
        received: when it was collected or, if it was not, last written, in the same format as ``when``.
        other_owner: the account that owned the files, if that was neither the student nor the grader, and "" otherwise.
    """

    student: str
    digest: str
    source: str
    system: str
    files: Mapping[str, str] = field(default_factory=dict)
    when: str = ""
    late: bool = False
    order: int = 0
    received: str = ""
    other_owner: str = ""

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.when.replace(':', '') or 'unknown-time'}-{self.digest[:12]}"

    @property
    def place(self) -> tuple[str, int]:
        """The key that sorts attempts by time: when one was handed in or, if that is unknown, when it was collected."""
        return (self.when or self.received, self.order)

    @property
    def timestamp(self) -> str:
        """What `timestamp.txt` says, or "" if there is no such file."""
        if self.when:
            return f"{datetime.fromisoformat(self.when):{TIME_FORMAT}}"
        return LATE_MARK if self.late else ""


def iso(when: datetime | None) -> str:
    """Return a time in UTC, without a zone, as text that sorts by time; "" for none."""
    return when.isoformat(timespec="microseconds") if when else ""


def now() -> str:
    """Return the current time, in the format of `iso`."""
    return iso(datetime.now(UTC).replace(tzinfo=None))


def digest(contents: Mapping[str, bytes]) -> str:
    """Return the digest of the names and contents of files."""
    lines = [f"{sha256(content).hexdigest()} {name}" for name, content in sorted(contents.items())]
    return sha256("\n".join(lines).encode(errors="surrogateescape")).hexdigest()


def that_may_count(attempts: Iterable[Attempt]) -> list[Attempt]:
    """Return the attempts of a student without those that another account owned, unless there are no others."""
    everything = list(attempts)
    return [one for one in everything if not one.other_owner] or everything


class Attempts:
    """The attempts at one assignment of a class."""

    def __init__(self, course: Course, assignment: str) -> None:
        self.course, self.assignment, self._files = course, assignment, course.files

    def folder(self, student: str) -> Path:
        """Return the folder with the attempts of a student."""
        return self.course.attempts(student, self.assignment)

    def students(self) -> list[str]:
        """Return the students whose attempts were kept."""
        return self._files.names(self.course.folder / "attempts" / self.assignment)

    def of(self, student: str) -> list[Attempt]:
        """Return the attempts of a student that were kept, the first one first."""
        found = []
        for name in self._files.names(self.folder(student)):
            if attempt := self._kept(self.folder(student) / name):
                found.append(attempt)
        return sorted(found, key=lambda attempt: attempt.place)

    def _kept(self, folder: Path) -> Attempt | None:
        """Return the attempt in a folder, or None if there is none."""
        try:
            return Attempt(**json.loads(self._files.read(folder / ABOUT_FILE, MAX_ABOUT_BYTES)))
        except (OSError, ValueError, TypeError):
            return None  # it was cut off while it was written: the source is collected again

    def keep(self, attempt: Attempt, contents: Mapping[str, bytes]) -> None:
        """Write an attempt, unless it exists already. The student's own replaces the same one of another account.

        `attempt.json` is written last: an attempt without it is incomplete.
        """
        folder = self.folder(attempt.student) / attempt.name
        there = self._kept(folder)
        if there and (attempt.other_owner or not there.other_owner):
            return
        self._files.remove(folder)  # it may hold the other account's secret, which leads to the feedback
        for name, content in self._with_timestamp(attempt, contents).items():
            self._files.write(folder / name, content)
        self._files.write(folder / ABOUT_FILE, json.dumps(asdict(attempt), indent=1).encode())

    def submit(self, attempt: Attempt) -> None:
        """Make an attempt the student's submission.

        A submission that is not yet among the attempts is moved there first.
        """
        student, folder = attempt.student, self.folder(attempt.student) / attempt.name
        target = self.course.submitted(student, self.assignment)
        there = self.submitted(student)
        if there and there.digest not in {one.digest for one in self.of(student)}:
            self._files.move(target, self.folder(student) / there.name)
            about = json.dumps(asdict(there), indent=1).encode()
            self._files.write(self.folder(student) / there.name / ABOUT_FILE, about)
        self._files.remove(target)
        for name in self._files.names(folder):
            if name != ABOUT_FILE:
                self._files.write(target / name, self._files.read(folder / name, MAX_NOTEBOOK_BYTES))

    def submitted(self, student: str) -> Attempt | None:
        """Return what is known about a student's submission as it is now, or None if there is none."""
        folder = self.course.submitted(student, self.assignment)
        names = self._files.names(folder)
        if not names:
            return None
        contents, changed = {}, 0
        for name in names:
            if name not in NOT_WORK:
                try:
                    changed = max(changed, self._files.changed(folder / name) or 0)
                    contents[name] = self._files.read(folder / name, MAX_NOTEBOOK_BYTES)
                except OSError as error:  # a subfolder or a link, say, which no collected attempt has
                    contents[name] = str(error).encode()
        handed = handed_in(folder)
        files = {name: name for name in contents}
        received = iso(datetime.fromtimestamp(changed / 1e9, UTC).replace(tzinfo=None))
        return Attempt(student, digest(contents), BY_HAND, BY_HAND, files, iso(handed.when), handed.late, 0, received)

    @staticmethod
    def _with_timestamp(attempt: Attempt, contents: Mapping[str, bytes]) -> dict[str, bytes]:
        stamp = {TIMESTAMP_FILE: attempt.timestamp.encode()} if attempt.timestamp else {}
        return {**contents, **stamp}
