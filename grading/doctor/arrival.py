"""Find the file that was handed in, and read it: plain files of the student's own alone, and never without a bound."""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path

from grading.doctor.repair import Refused, Repair, listed, printable

MOST_BYTES = 20_000_000  # no answer comes near; a reader would drown
MOST_ENTRIES = 10_000  # that are looked at, of a folder and its sub-folders

# What browsers, systems and course sites add to a name, bounded, since a name can be made to match in many ways.
_COPY = r"(?:[ _-]{0,3}(?:\(\d{1,3}\)|copy(?:[ _-]?\d{1,3})?)|[ _-]\d{1,2}){0,2}"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe must not keep us waiting for somebody to write


@dataclass(frozen=True)
class Arrival:
    """The bytes that came, the name that they came under (printable), and what was done to find them."""

    name: str
    data: bytes
    repairs: tuple[Repair, ...]

    @property
    def digest(self) -> str:
        """The SHA-256 digest of the bytes, in hexadecimal."""
        return sha256(self.data).hexdigest()


@dataclass(frozen=True)
class _Entry:
    """What lies in the folder, or in a sub-folder ``parent`` of it."""

    parent: str
    name: str
    kind: str  # "" of a plain file
    changed: int  # in nanoseconds since 1970

    def __str__(self) -> str:
        return printable(f"{self.parent}/{self.name}" if self.parent else self.name)


def arrive(folder: Path, name: str) -> Arrival:
    """Read the notebook ``name`` that was handed in, whatever a browser or system made of its name and place.

    Raises:
        Refused: there is none ("missing"), or it is too large or cannot be opened ("unreadable").

    """
    try:
        # The student's folder may be a link that the instructor made; nothing in it may be one.
        with _opened(str(folder.parent), _FOLDER) as student, _opened(folder.name, _FOLDER, student) as home:
            entry, repairs = _choose(list(islice(_entries(home), MOST_ENTRIES)), name)
            return Arrival(str(entry), _read(home, entry), repairs)
    except (FileNotFoundError, NotADirectoryError):
        reason = f"no {name} came: there is no folder {printable(folder.name)}, or it is none. Ask for {name}."
        raise _refused("missing", reason) from None
    except OSError as error:
        reason = f"what came for {name} cannot be opened ({error.strerror}). Ask for {name} as a plain file."
        raise _refused("unreadable", reason) from None


@contextmanager
def _opened(name: str, flags: int, folder: int | None = None) -> Iterator[int]:
    """Open a name, in an open ``folder`` only if it is no link."""
    file = os.open(name, flags if folder is None else flags | os.O_NOFOLLOW, dir_fd=folder)
    try:
        yield file
    finally:
        os.close(file)


def _entries(home: int) -> Iterator[_Entry]:
    """Yield what lies in an open folder, and then what lies in its sub-folders."""
    folders = []
    with os.scandir(home) as inside:
        for item in inside:
            yield _entry("", item)
            if item.is_dir(follow_symlinks=False) and not item.name.startswith((".", "__MACOSX")):
                folders.append(item.name)
    for name in sorted(folders):
        try:
            with _opened(name, _FOLDER, home) as folder, os.scandir(folder) as inside:
                yield from (_entry(name, item) for item in inside)
        except OSError:
            continue  # gone, a link by now, or closed to us: nothing in it can be handed in


def _entry(parent: str, item: "os.DirEntry[str]") -> _Entry:
    state = item.stat(follow_symlinks=False)
    kinds = {stat.S_IFREG: "", stat.S_IFDIR: " (a folder)", stat.S_IFLNK: " (a link)"}
    return _Entry(parent, item.name, kinds.get(stat.S_IFMT(state.st_mode), " (no plain file)"), state.st_mtime_ns)


def _choose(entries: list[_Entry], wanted: str) -> tuple[_Entry, tuple[Repair, ...]]:
    """Return the file that is meant: of several, the one with the very name, or else the newest."""
    pattern = re.compile(rf"(?:copy of )?{re.escape(Path(wanted).stem)}{_COPY}\.ipynb(?:\.json|\.txt)?", re.IGNORECASE)
    files = [entry for entry in entries if not entry.kind and pattern.fullmatch(entry.name)]
    if not files:
        there = sorted(f"{entry}{entry.kind}" for entry in entries if not entry.parent)
        reason = f"no {wanted} came as a file. Ask for it, or rename what is there: {listed(there) or 'nothing'}."
        raise _refused("missing", reason)
    files.sort(key=lambda entry: (entry.name == wanted, entry.name == wanted and not entry.parent, entry.changed))
    *others, taken = files
    return taken, tuple(_found(taken, others, wanted))


def _found(taken: _Entry, others: list[_Entry], wanted: str) -> Iterator[Repair]:
    if taken.name != wanted:
        yield Repair("renamed-file", f"The file came under the name {printable(taken.name)}; it is taken for {wanted}.")
    if taken.parent:
        yield Repair("sub-folder", f"The file lay in a folder of its own: {taken}.")
    if others:
        why = "it has the name that was asked for" if taken.name == wanted else "it is the newest"
        left = listed([str(entry) for entry in others])
        yield Repair("several-files", f"Of several files {taken} was taken: {why}. Not looked at: {left}.")


def _read(home: int, entry: _Entry) -> bytes:
    """Read a file after its kind and size were seen on what is open: the name may lead elsewhere by now."""
    with _opened(entry.parent or ".", _FOLDER, home) as folder, _opened(entry.name, _FILE, folder) as file:
        state = os.fstat(file)
        if not stat.S_ISREG(state.st_mode):
            raise _refused("unreadable", f"{entry} is no plain file. Ask for it as a file.")
        size = state.st_size
        if size <= MOST_BYTES:
            with open(file, "rb", closefd=False) as stream:
                data = stream.read(MOST_BYTES + 1)
            if len(data) <= MOST_BYTES:
                return data
            size = len(data)
    reason = f"{entry} has {size} bytes, more than {MOST_BYTES}. Ask for it with its outputs cleared."
    raise _refused("unreadable", reason)


def _refused(verdict: str, reason: str) -> Refused:
    """Refuse what was not read: the digest is that of the reason, which comes out the same for the same state."""
    return Refused(verdict, reason, sha256(reason.encode()).hexdigest())
