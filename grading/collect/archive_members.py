"""List the files in a folder or a zip without reading them, and read them up to a limit. Both may be hostile.

Nothing is unpacked: the path of a file only says what the file is, and is never used to write to. Links, paths that
lead out of the archive, and files that are encrypted, empty or too large are refused, with the reason.
"""

import os
import pwd
import re
import stat
import struct
import unicodedata
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import BinaryIO
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from grading.course import GradingError
from grading.repair.files import MAX_NOTEBOOK_BYTES
from grading.safe_files import SafeFolder

MAX_MEMBERS = 50_000  # in a zip, or in a folder of the source; a class of 300 with ten files each has 3,000
MAX_DEPTH = 8  # folders within folders
EXPECTED = (
    "Expected a folder, or a zip that a learning management system wrote. Download it again, or unpack it yourself and "
    "name the folder"
)
ENCRYPTED, NAMES_ARE_UTF8 = 0x1, 0x800  # bits of a zip entry's flags
# What zipfile raises for hostile archives. RuntimeError includes NotImplementedError; IndexError is for an empty name.
ZIP_ERRORS = (
    *(BadZipFile, zlib.error, struct.error, EOFError, OSError),
    *(ValueError, IndexError, OverflowError, RuntimeError),
)
NOT_THE_STUDENTS = ("__MACOSX", ".DS_Store", "Thumbs.db")  # what operating systems add to archives and folders


class RefusedMemberError(Exception):
    """A file cannot be collected. The text is a predicate: "is a link"."""


@dataclass(frozen=True)
class Member:
    """A file in a folder or a zip.

    Attributes:
        path: the parts of its path.
        read: returns its bytes, or says why it cannot.
        owner: the account that owns a file in a folder, or "" for a file in a zip.
        written: when that file was last changed, in UTC, by the clock of this machine. Its owner cannot set this time.
    """

    path: tuple[str, ...]
    read: Callable[[], bytes]
    owner: str = ""
    written: datetime | None = None

    def __str__(self) -> str:
        return "/".join(self.path)


@contextmanager
def members(source: Path, refuse: Callable[[str, str], None]) -> Iterator[list[Member]]:
    """Open a folder or a zip for the length of a `with` block, and return its files in the order of their names.

    Args:
        source: the folder or the zip.
        refuse: called with the name of each folder in the source that has too many files, and with the reason. Students
            can write to nbgrader's exchange, and none of them may keep the others' work from being collected.

    Raises:
        GradingError: it is neither, or all of it has too many files.
    """
    with ExitStack() as opened:
        try:
            if source.is_dir():
                found = list(_of_folder(source, refuse))
            else:
                found = list(_of_zip(opened.enter_context(source.open("rb"))))
        except RefusedMemberError as error:
            raise GradingError(f"{source} {error}. {EXPECTED}") from None
        except ZIP_ERRORS as error:
            raise GradingError(f"{source} cannot be read: {error}. {EXPECTED}") from None
        yield sorted(found, key=lambda member: member.path)


def inside(content: bytes) -> list[Member]:
    """Return the files in a zip that a student handed in.

    Raises:
        RefusedMemberError: it is not a zip that can be read.
    """
    try:
        return sorted(_of_zip(BytesIO(content)), key=lambda member: member.path)
    except ZIP_ERRORS as error:
        raise RefusedMemberError(f"is not a zip that can be read ({error})") from None


def _of_folder(root: Path, refuse: Callable[[str, str], None]) -> Iterator[Member]:
    files = SafeFolder(root.resolve())
    found = _paths(files.root)
    full = {top for top, paths in found.items() if len(paths) > MAX_MEMBERS}
    if full and full == found.keys():
        raise RefusedMemberError(_too_many())
    for top, paths in found.items():
        if top in full:
            refuse(_text(top or files.root.name), _too_many() if top else f"{_too_many()} outside its folders")
            continue
        for path in paths:
            parts = tuple(map(_text, path.relative_to(files.root).parts))
            if _is_the_students(parts):
                yield _of_file(files, path, parts)


def _paths(root: Path) -> dict[str, list[Path]]:
    """Return the files by top-level folder, or "" for those in none. A folder with too many is not read to its end."""
    found = defaultdict[str, list[Path]](list)
    for folder, folders, names in os.walk(root, followlinks=False):
        parts = Path(folder).relative_to(root).parts
        top = parts[0] if parts else ""
        found[top] += [Path(folder, name) for name in names[: MAX_MEMBERS + 1]]
        is_full = bool(top) and len(found[top]) > MAX_MEMBERS
        folders[:] = [] if is_full or len(parts) >= MAX_DEPTH else sorted(folders)
    return {top: paths for top, paths in found.items() if paths}


def _of_file(files: SafeFolder, path: Path, parts: tuple[str, ...]) -> Member:
    try:
        about = path.lstat()
    except OSError as error:  # its owner has removed it, or hidden it by the permissions of its folder
        return Member(parts, partial(_refuse, f"cannot be read: {error}"))
    written = datetime.fromtimestamp(about.st_ctime, UTC).replace(tzinfo=None)
    return Member(parts, lambda: _read_file(files, path), owner_of(about), written)


def _refuse(why: str) -> bytes:
    raise RefusedMemberError(why)


def owner_of(about: os.stat_result) -> str:
    """Return the name of the account that owns a file."""
    return account_name(about.st_uid)


def account_name(uid: int) -> str:
    """Return the name of the account with this number, or "uid 1234", which no account is called, if there is none."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _read_file(files: SafeFolder, path: Path) -> bytes:
    try:
        with files.file(path) as descriptor, open(descriptor, "rb", closefd=False) as stream:
            return _limited(stream)
    except OSError as error:
        raise RefusedMemberError(f"cannot be read: {error}") from None


def _of_zip(stream: BinaryIO) -> Iterator[Member]:
    archive = ZipFile(stream)
    infos = archive.infolist()
    if len(infos) > MAX_MEMBERS:
        raise RefusedMemberError(_too_many())
    for info in infos:
        parts = tuple(re.split(r"[/\\]", _name(info)))
        if not info.is_dir() and _is_the_students(parts):
            yield Member(parts, lambda info=info: _read_entry(archive, info))  # type: ignore[misc]


def _read_entry(archive: ZipFile, info: ZipInfo) -> bytes:
    parts = re.split(r"[/\\]", _name(info))
    if ".." in parts or not parts[0]:
        raise RefusedMemberError("has a path that leads out of the archive")
    if stat.S_IFMT(info.external_attr >> 16) not in (0, stat.S_IFREG):
        raise RefusedMemberError("is a link, or is not a plain file")
    if info.flag_bits & ENCRYPTED:
        raise RefusedMemberError("is encrypted")
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise RefusedMemberError("is compressed by a method other than deflate")
    try:
        with archive.open(info) as stream:
            return _limited(stream)
    except ZIP_ERRORS as error:
        raise RefusedMemberError(f"cannot be unpacked ({error})") from None


def _limited(stream: object) -> bytes:
    """Read a stream up to the limit, whatever size its archive claims."""
    content: bytes = stream.read(MAX_NOTEBOOK_BYTES + 1)  # type: ignore[attr-defined]
    if len(content) > MAX_NOTEBOOK_BYTES:
        raise RefusedMemberError(f"has more than {MAX_NOTEBOOK_BYTES} bytes")
    if not content:
        raise RefusedMemberError("is empty: 0 bytes")
    return content


def _name(info: ZipInfo) -> str:
    """Return the name of an entry. Many programs write UTF-8 without saying so, which is then read as code page 437."""
    if info.flag_bits & NAMES_ARE_UTF8:
        return _text(info.filename)
    try:
        return _text(info.filename.encode("cp437").decode())
    except UnicodeError:
        return _text(info.filename)


def _text(name: str) -> str:
    """Return a name in the form NFC, with a replacement character for each byte that is not UTF-8."""
    return unicodedata.normalize("NFC", os.fsencode(name).decode(errors="replace"))


def _is_the_students(parts: tuple[str, ...]) -> bool:
    return not parts[-1].startswith("._") and not any(part in NOT_THE_STUDENTS for part in parts)


def _too_many() -> str:
    return f"has more than {MAX_MEMBERS} files"
