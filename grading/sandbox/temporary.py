"""Temporary folders that are removed afterwards or, if the process is killed, at the next start."""

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
PREFIX = "attention-grading-"
SHORT_FOLDER = "/tmp"  # its name is short enough for the path of a socket
MAX_SOCKET_FOLDER = 30  # if the name of the usual folder is no longer than this, that is used instead
FOLDER_NAME = re.compile(rf"{PREFIX}\w+-[a-z0-9_]{{8}}")


@contextmanager
def temporary(what: str, *, short: bool = False) -> Iterator[Path]:
    """Make a folder, and remove it when the block ends.

    As long as its process lives, the folder is locked, and :func:`sweep` leaves it alone. A ``short`` one is for a
    socket, whose address may have at most 107 bytes, so it is not made in a temporary folder with a long name.
    """
    process, place = os.getpid(), tempfile.gettempdir()
    folder, lock = _locked(what, SHORT_FOLDER if short and len(os.fsencode(place)) > MAX_SOCKET_FOLDER else place)
    try:
        yield folder
    finally:
        if os.getpid() == process:  # a copy of the process, made by a fork, leaves the block too when it ends
            shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def sweep() -> None:
    """Remove the temporary folders of this user's processes that have ended."""
    for place in {Path(tempfile.gettempdir()), Path(SHORT_FOLDER)}:
        for folder in [path for path in place.iterdir() if FOLDER_NAME.fullmatch(path.name)]:
            with suppress(OSError):  # it is a link, belongs to somebody else, is in use, or has been removed already
                _remove_abandoned(folder)


def _locked(what: str, place: str) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{what}-", dir=place))
        lock = os.open(folder, FOLDER_FLAGS)
        fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.exists():  # another process may have swept it before it was locked
            return folder, lock
        os.close(lock)


def _remove_abandoned(folder: Path) -> None:
    lock = os.open(folder, FOLDER_FLAGS)
    try:
        if os.fstat(lock).st_uid == os.geteuid():
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
