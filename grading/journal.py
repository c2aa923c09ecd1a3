"""What lets a run be stopped at any moment and go on later: its secret, its outcomes so far, and whose it is."""

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import randbits
from string import hexdigits

from grading.course import Course, GradingError
from grading.outcome import LONGEST, VERDICTS, Outcome, plain

PRIVATE = 0o600
BITS = 128
DIGITS = BITS // 4  # hexadecimal


class Busy(GradingError):
    """Somebody else is grading this class at this moment."""


class Journal:
    """The run on one assignment of one class. Its files lie beside the assignment's reports."""

    def __init__(self, course: Course, assignment: str) -> None:
        self.outcomes = course.outcomes(assignment)
        self._secret = course.reports(assignment) / "seed"

    @property
    def seed(self) -> int:
        """The secret of this run, of 128 bits: drawn once, and the same until :meth:`finish`.

        Raises:
            GradingError: the file holds something else.
        """
        if not self._secret.exists():
            self._draw()
        with self._secret.open(encoding="ascii", errors="replace") as file:
            os.fchmod(file.fileno(), PRIVATE)  # a copy of the class's folder may have opened it to others
            text = file.read(DIGITS + 1)
        if len(text) != DIGITS or set(text) - set(hexdigits):
            raise GradingError(
                f"{self._secret} should hold {DIGITS} hexadecimal digits, and does not. Remove the file: the next run "
                f"draws a new secret, and what was graded stays"
            )
        return int(text, 16)

    def done(self, student: str) -> Outcome | None:
        """Return the stored outcome; ``None`` where there is none, or it is broken and has to be made again."""
        try:
            outcome = Outcome.load(self.outcomes / f"{student}.json")
            whole = outcome.student == student and outcome.verdict in VERDICTS and isinstance(outcome.digest, str)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None
        return outcome if whole else None

    def keep(self, outcome: Outcome) -> None:
        """Store an outcome: until it is on the disk as a whole, the one before stays."""
        unfinished = self.outcomes / ".unfinished"
        _make(unfinished)
        outcome.save(unfinished)
        name = f"{outcome.student}.json"
        _move(unfinished / name, self.outcomes / name)

    def finish(self) -> None:
        """Say that the run is complete: the next one draws a new secret."""
        if self._secret.exists():
            self._secret.unlink()
            _settle(self._secret.parent)

    def _draw(self) -> None:
        _make(self._secret.parent)
        unfinished = self._secret.with_suffix(".unfinished")
        unfinished.unlink(missing_ok=True)
        file = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
        with open(file, "w", encoding="ascii") as stream:
            stream.write(f"{randbits(BITS):0{DIGITS}x}")
        _move(unfinished, self._secret)


def _move(unfinished: Path, file: Path) -> None:
    """Put a file that is complete into its place, so that not even a loss of power leaves half of it there."""
    _settle(unfinished)
    unfinished.replace(file)
    _settle(file.parent)


def _make(folder: Path) -> None:
    """Make a folder and those it lies in, so that no loss of power takes them away again."""
    for missing in [path for path in [*reversed(folder.parents), folder] if not path.exists()]:
        missing.mkdir(exist_ok=True)
        _settle(missing.parent)


def _settle(path: Path) -> None:
    """Wait until a file, or the list of a folder's files, is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def lock(course: Course) -> Iterator[None]:
    """Keep every other run off a class, until the block ends or the process does, however that may come about.

    A process that is forked from this one shares the lock; a program that is started does not.

    Raises:
        Busy: somebody else holds the lock.
    """
    course.folder.mkdir(parents=True, exist_ok=True)
    # The file stays: were it removed, two runs could hold a lock each, on the old file and on a new one.
    with (course.folder / "run.lock").open("a+", encoding="utf-8", errors="replace") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as held:
            file.seek(0)
            raise Busy(
                f"a run on this class is in progress ({plain(file.read(LONGEST))}): wait for it or stop it"
            ) from held
        file.truncate(0)
        file.write(f"process {os.getpid()} on {socket.gethostname()}")
        file.flush()
        yield
