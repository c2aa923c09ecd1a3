"""The state that lets a run be stopped at any moment and resumed later: its secret, its outcomes, and its lock."""

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from secrets import randbits
from string import hexdigits
from typing import Any

from grading.audit_log import AuditLog, allowed
from grading.course import Course, GradingError
from grading.outcome import MAX_TABLE_TEXT, RENEWED, Outcome, plain
from grading.pages import NO_PAGE
from grading.safe_files import PRIVATE_MODE

MAX_OUTCOME_BYTES = 10_000_000  # enough, because an outcome's texts are cut, and a notebook has at most 500 cells
SECRET_BITS = 128
SECRET_DIGITS = SECRET_BITS // 4  # in hexadecimal


class RunInProgressError(GradingError):
    """Somebody else is grading this class right now."""


def agree(said: dict[str, Any], outcome: Outcome | None) -> bool:
    """Tell whether an outcome is the one that an entry of the log announced; an empty entry announced none."""
    if not said or outcome is None:
        return not said and outcome is None
    digest = outcome_digest(outcome)
    whole = said.get("outcome", digest) == digest  # earlier versions of the log had no such digest
    return whole and (said.get("submission"), said.get("verdict")) == (outcome.digest, outcome.verdict)


def outcome_digest(outcome: Outcome) -> str:
    """Return the digest of an outcome without what later runs renew: its lateness, and the remark on a missing page."""
    # A remark may have been cut off at the end of a long reason, so only the part that leaves room for one is compared.
    reason = outcome.reason.partition(NO_PAGE)[0][: MAX_TABLE_TEXT - len(f" {NO_PAGE}")].strip()
    flags = [flag for flag in outcome.flags if not flag.startswith(RENEWED)]
    found = [asdict(finding) for finding in outcome.findings]
    what = [outcome.student, outcome.verdict, reason, found, outcome.digest, flags, outcome.version, outcome.timeout]
    if outcome.untouched:  # outcomes of earlier versions have none, and so keep their digests
        what.append(outcome.untouched)
    return sha256(json.dumps(what).encode()).hexdigest()


class RunState:
    """The run on one assignment of one class. Its files are next to the assignment's reports."""

    def __init__(self, course: Course, assignment: str) -> None:
        self._files, self._outcomes = course.files, course.outcomes(assignment)
        self.audit = AuditLog(course.files, course.reports(assignment) / "audit.log")
        self._secret, self._spent = (course.reports(assignment) / name for name in ("seed", "seed.spent"))

    @property
    def seed(self) -> int:
        """The secret of this run, of 128 bits: drawn once, and the same until :meth:`finish`.

        Raises:
            GradingError: the file does not hold a secret.
            UnsafeFileError: it is not a regular file with one name.
        """
        if self._files.changed(self._secret) is None:
            self._reveal()
            self._store(self._secret, randbits(SECRET_BITS))
        return self._stored(self._secret)

    def _store(self, file: Path, seed: int) -> None:
        self._files.write(file, f"{seed:0{SECRET_DIGITS}x}".encode(), PRIVATE_MODE)

    def _stored(self, path: Path) -> int:
        with self._files.file(path) as file:
            os.fchmod(file, PRIVATE_MODE)  # copying the class's folder may have made it readable by others
            text = os.read(file, SECRET_DIGITS + 1).decode("ascii", "replace")
        if len(text) != SECRET_DIGITS or set(text) - set(hexdigits):
            raise GradingError(
                f"{path} should hold {SECRET_DIGITS} hexadecimal digits, but does not. Remove the file: the next run "
                f"draws a new secret, and existing grades stay as they are"
            )
        return int(text, 16)

    def outcome_of(self, student: str) -> Outcome | None:
        """Return the stored outcome, or ``None`` if it is missing, or broken and has to be made again."""
        try:
            outcome = Outcome.from_json(self._files.read(self._outcomes / f"{student}.json", MAX_OUTCOME_BYTES))
            whole = outcome.student == student and isinstance(outcome.digest, str)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None
        return outcome if whole else None

    def matches_log(self, outcome: Outcome) -> bool:
        """Tell whether this outcome matches the log: whether it is the last one that was announced and written down."""
        return any(agree(said, outcome) for said in self._allowed.get(outcome.student, []))

    def graded_digest(self, student: str) -> str:
        """Return the digest of the student's most recent submission in the log, or "" if it has none."""
        said = self._allowed.get(student, [{}])[-1].get("submission", "")
        return said if isinstance(said, str) else ""

    @cached_property
    def _allowed(self) -> dict[str, list[dict[str, Any]]]:
        return allowed(self.audit.entries()[0])

    def all(self) -> tuple[list[Outcome], list[Path]]:
        """Return every stored outcome, and the files next to them that are not outcomes."""
        outcomes, stray = [], []
        for name in self._files.names(self._outcomes):
            outcome = self.outcome_of(name.removesuffix(".json")) if name.endswith(".json") else None
            if outcome:
                outcomes.append(outcome)
            else:
                stray.append(self._outcomes / name)
        return outcomes, stray

    def store_outcome(self, outcome: Outcome) -> None:
        """Store an outcome. The previous one stays until the new one is completely on the disk."""
        self._files.write(self._outcomes / f"{outcome.student}.json", outcome.to_json())

    def announce(self, outcome: Outcome, score: float, *, sandboxed: bool) -> None:
        """Write to the log that this outcome, with this automatic score, is about to be stored."""
        about = {"student": outcome.student, "submission": outcome.digest, "verdict": outcome.verdict}
        self.audit.graded(**about, outcome=outcome_digest(outcome), score=score, seed=self.seed, sandboxed=sandboxed)

    def finish(self) -> None:
        """Record that the run is complete. The next one draws a new secret.

        The secret is kept in the file of spent ones until the log reveals it, so that a kill in between loses nothing.
        """
        if self._files.changed(self._secret) is not None:
            self._store(self._spent, self.seed)
            self._files.remove(self._secret)
        self._reveal()

    def _reveal(self) -> None:
        """Reveal the secret of a complete run, if that has not been done yet."""
        if self._files.changed(self._spent) is not None:
            self.audit.finished(
                self._stored(self._spent), lambda said: agree(said, self.outcome_of(str(said["student"])))
            )
            self._files.remove(self._spent)


@contextmanager
def lock(course: Course) -> Iterator[None]:
    """Keep all other runs off a class until the block or the process ends, for whatever reason.

    Processes forked from this one share the lock; programs that it starts do not.

    Raises:
        RunInProgressError: somebody else holds the lock.
    """
    # The file is never removed: otherwise two runs could each hold a lock, one on the old file and one on a new one.
    with course.files.file(course.folder / "run.lock", os.O_RDWR | os.O_CREAT) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as held:
            who = plain(os.read(file, MAX_TABLE_TEXT).decode("utf-8", "replace"))
            raise RunInProgressError(f"a run on this class is in progress ({who}): wait for it or stop it") from held
        os.truncate(file, 0)
        os.write(file, f"process {os.getpid()} on {socket.gethostname()}".encode())
        yield
