"""Find the files that may be the notebook, and read them up to a limit: only plain files of the student's own."""

import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path

from grading.repair.messages import OR_RENAME, RefusedError, listed, printable
from grading.safe_files import FILE_FLAGS, FOLDER_FLAGS, SafeFolder, UnsafeFileError
from grading.verdict import Verdict

MAX_NOTEBOOK_BYTES = 20_000_000  # far more than any answer needs, but not too much to read
MAX_ENTRIES = 10_000  # entries of a folder and its subfolders that are looked at
MAX_FILES = 10  # notebooks that are read to find the right one

# What browsers, systems and course sites add to a name. Repetitions are bounded, to keep hostile names from being slow.
_COPY = r"(?:[ _-]{0,3}(?:\(\d{1,3}\)|copy(?:[ _-]?\d{1,3})?)|[ _-]\d{1,2}){0,2}"
NOTEBOOK_NAME = re.compile(r"\.ipynb(?:\.json|\.txt)?\Z", re.IGNORECASE)


@dataclass(frozen=True)
class CandidateFile:
    """A file that may be the notebook.

    Attributes:
        entry: its name, printable, after that of its subfolder, if it was in one.
        data: its bytes; none if ``wrong`` says why it was not read.
        fits: whether it has the name that was asked for, or what browsers and systems make of that name.
        exact: whether it has exactly that name.
        inside: whether it was in a subfolder.
        changed: when it was last written, in nanoseconds since 1970.
        wrong: why it was not read.
    """

    entry: str
    data: bytes
    fits: bool
    exact: bool
    inside: bool
    changed: int
    wrong: str = ""

    @property
    def digest(self) -> str:
        """The SHA-256 digest of the bytes, in hexadecimal."""
        return sha256(self.wrong.encode() or self.data).hexdigest()


@dataclass(frozen=True)
class CandidateFiles:
    """The files that may be the notebook, and the printable names of everything in the folder."""

    files: tuple[CandidateFile, ...]
    there: tuple[str, ...]

    @property
    def digest(self) -> str:
        """The digest of the one file, or of all files with their names."""
        if len(self.files) == 1:
            return self.files[0].digest
        named = sorted(f"{file.digest} {file.entry}" for file in self.files)
        return sha256("\n".join(named).encode()).hexdigest()


@dataclass(frozen=True)
class _Entry:
    """An entry of the folder, or of its subfolder ``parent``."""

    parent: str
    name: str
    kind: str  # "" for a plain file
    changed: int  # in nanoseconds since 1970

    def __str__(self) -> str:
        return printable(f"{self.parent}/{self.name}" if self.parent else self.name)


def find_candidates(folder: Path, name: str) -> CandidateFiles:
    """Read the files that may be the notebook ``name``, even if they were renamed or are in a subfolder.

    Raises:
        RefusedError: there is no notebook at all ("missing"), or the folder cannot be opened ("unreadable").

    """
    try:
        with SafeFolder(folder.parents[1]).opened(folder) as home:
            entries = list(islice(_entries(home), MAX_ENTRIES))
            there = tuple(sorted(f"{entry}{entry.kind}" for entry in entries if not entry.parent))
            files = tuple(_candidate(home, entry, name) for entry in _choose(entries, name))
    except (FileNotFoundError, UnsafeFileError):
        reason = f"{name} was not submitted: {printable(folder.name)} is missing, or is not a folder. Ask for {name}."
        raise _refused(Verdict.MISSING, reason) from None
    except OSError as error:
        reason = f"what was submitted for {name} cannot be opened ({error.strerror}). Ask for {name} as a plain file."
        raise _refused(Verdict.UNREADABLE, reason) from None
    if not files:
        raise _refused(Verdict.MISSING, missing(name, there))
    return CandidateFiles(files, there)


def missing(name: str, there: Sequence[str]) -> str:
    """Return why there is no notebook, with the names of what came instead."""
    if not there:
        return f"There is no file named {name}, and the folder is empty. Ask for it."
    return f"There is no file named {name}. Ask for it{OR_RENAME}{listed(there)}."


@contextmanager
def _opened(name: str, flags: int, folder: int) -> Iterator[int]:
    """Open a name in an open ``folder``, with flags that keep it from following a link."""
    file = os.open(name, flags, dir_fd=folder)
    try:
        yield file
    finally:
        os.close(file)


def _entries(home: int) -> Iterator[_Entry]:
    """Yield the entries of an open folder, and then those of its subfolders."""
    folders = []
    with os.scandir(home) as inside:
        for item in inside:
            yield _entry("", item)
            if item.is_dir(follow_symlinks=False) and not item.name.startswith((".", "__MACOSX")):
                folders.append(item.name)
    for name in sorted(folders):
        try:
            with _opened(name, FOLDER_FLAGS, home) as folder, os.scandir(folder) as inside:
                yield from (_entry(name, item) for item in inside)
        except OSError:
            continue  # it is gone, is a link by now, or may not be opened, so nothing in it counts


def _entry(parent: str, item: "os.DirEntry[str]") -> _Entry:
    state = item.stat(follow_symlinks=False)
    kinds = {stat.S_IFREG: "", stat.S_IFDIR: " (a folder)", stat.S_IFLNK: " (a link)"}
    return _Entry(parent, item.name, kinds.get(stat.S_IFMT(state.st_mode), " (not a plain file)"), state.st_mtime_ns)


def _choose(entries: Sequence[_Entry], wanted: str) -> list[_Entry]:
    """Return the notebooks to look into: first those with the wanted name, then the newest."""
    notebooks = [entry for entry in entries if not entry.kind and NOTEBOOK_NAME.search(entry.name)]
    notebooks.sort(key=lambda entry: (entry.name == wanted, not entry.parent, fits(entry.name, wanted), entry.changed))
    return notebooks[: -MAX_FILES - 1 : -1]


def fits(name: str, wanted: str) -> bool:
    """Tell whether a file has the wanted name, or what browsers and systems make of that name."""
    pattern = rf"(?:copy of )?{re.escape(Path(wanted).stem)}{_COPY}{NOTEBOOK_NAME.pattern}"
    return re.fullmatch(pattern, name, re.IGNORECASE) is not None


def _candidate(home: int, entry: _Entry, wanted: str) -> CandidateFile:
    try:
        data, wrong = _read(home, entry)
    except OSError as error:
        data, wrong = b"", f"cannot be opened ({error.strerror}). Ask for it as a plain file."
    exact = entry.name == wanted
    return CandidateFile(str(entry), data, fits(entry.name, wanted), exact, bool(entry.parent), entry.changed, wrong)


def _read(home: int, entry: _Entry) -> tuple[bytes, str]:
    """Read a file after opening it and checking its kind and size, since its name may lead elsewhere by now.

    Returns the bytes, or none and the reason.
    """
    with _opened(entry.parent or ".", FOLDER_FLAGS, home) as folder, _opened(entry.name, FILE_FLAGS, folder) as file:
        state = os.fstat(file)
        if not stat.S_ISREG(state.st_mode):
            return b"", "is not a plain file. Ask for it as a file."
        if state.st_nlink > 1:
            return (
                b"",
                "is a hard link to a file that is elsewhere. Copy that file here, or ask for it as a plain file.",
            )
        size = state.st_size
        if size <= MAX_NOTEBOOK_BYTES:
            with open(file, "rb", closefd=False) as stream:
                data = stream.read(MAX_NOTEBOOK_BYTES + 1)
            if len(data) <= MAX_NOTEBOOK_BYTES:
                return data, ""
            size = len(data)
    return b"", f"has {size} bytes, more than {MAX_NOTEBOOK_BYTES}. Ask for it again, with its outputs cleared."


def _refused(verdict: Verdict, reason: str) -> RefusedError:
    """Return a refusal of what was not read. Its digest is that of the reason, so it changes only with the reason."""
    return RefusedError(verdict, reason, sha256(reason.encode()).hexdigest())
