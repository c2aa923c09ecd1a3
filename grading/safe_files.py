"""Access the files in a class's folder without following links; each must be a regular file with only one name.

Others may be able to write there, such as a teaching assistant. A link, FIFO, device or hard link in place of a file
must not lead the grader, which may be root, to somebody else's file. So each folder on the way is opened from its
parent, and whatever has been opened is checked before it is used.
"""

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import ELOOP, ENOTDIR, ENXIO
from pathlib import Path

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
FILE_FLAGS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # without O_NONBLOCK, opening a FIFO would wait for a writer
PUBLIC_MODE, PRIVATE_MODE = 0o666, 0o600  # before the umask


class UnsafeFileError(OSError):
    """A path is neither a folder nor a regular file with one name."""

    def __init__(self, path: Path, what: str) -> None:
        super().__init__(f"{path} {what}. Look at it, remove it, and run the same command again")


@dataclass(frozen=True)
class SafeFolder:
    """A folder, and operations on the files below it. The path of each file begins with the folder's."""

    root: Path

    @contextmanager
    def opened(self, folder: Path, *, make: bool = False) -> Iterator[int]:
        """Open a folder. With ``make``, create it and its parents if they are missing.

        Raises:
            UnsafeFileError: one of the folders on the way is a link, or is not a folder.
        """
        if make:
            self.root.mkdir(parents=True, exist_ok=True)
        at, path = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), self.root
        try:
            for part in folder.relative_to(self.root).parts:
                path /= part
                below = _open_folder(part, at, path, make=make)
                os.close(at)
                at = below
            yield at
        finally:
            os.close(at)

    @contextmanager
    def file(self, file: Path, flags: int = os.O_RDONLY, mode: int = PUBLIC_MODE) -> Iterator[int]:
        """Open a file that has been checked.

        Raises:
            UnsafeFileError: it is a link, is not a regular file, or has a second name elsewhere.
        """
        with self.opened(file.parent, make=bool(flags & os.O_CREAT)) as folder:
            descriptor = _open_file(file, flags, mode, folder)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def read(self, file: Path, most: int) -> bytes:
        """Return the bytes of a file.

        Raises:
            UnsafeFileError: it is not a regular file with one name, or has more than ``most`` bytes.
        """
        with self.file(file) as descriptor, open(descriptor, "rb", closefd=False) as stream:
            content = stream.read(most + 1)
        if len(content) > most:
            raise UnsafeFileError(file, f"has more than {most} bytes")
        return content

    def write(self, file: Path, content: bytes, mode: int = PUBLIC_MODE) -> None:
        """Write a file as a whole or not at all, even if the power fails."""
        unfinished = f".{file.name}.unfinished"
        with self.opened(file.parent, make=True) as folder:
            with suppress(FileNotFoundError):
                os.unlink(unfinished, dir_fd=folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
            with open(os.open(unfinished, flags | FILE_FLAGS, mode, dir_fd=folder), "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
            os.rename(unfinished, file.name, src_dir_fd=folder, dst_dir_fd=folder)
            os.fsync(folder)

    def append(self, file: Path, content: bytes, mode: int = PUBLIC_MODE) -> None:
        """Append to a file, and return once the content is on the disk."""
        with self.file(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, mode) as descriptor:
            while content:
                content = content[os.write(descriptor, content) :]
            os.fsync(descriptor)

    def remove(self, path: Path) -> None:
        """Remove a file, a link, or a folder with all that is in it, if it is there."""
        with suppress(FileNotFoundError), self.opened(path.parent) as folder:
            kind = os.stat(path.name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISDIR(kind):
                shutil.rmtree(path.name, dir_fd=folder)
            else:
                os.unlink(path.name, dir_fd=folder)
            os.fsync(folder)

    def move(self, path: Path, target: Path) -> None:
        """Give a file or folder another place, where nothing is yet."""
        with self.opened(path.parent) as source, self.opened(target.parent, make=True) as destination:
            os.rename(path.name, target.name, src_dir_fd=source, dst_dir_fd=destination)
            os.fsync(destination)

    def names(self, folder: Path, suffix: str = "") -> list[str]:
        """Return the names in a folder that end in ``suffix`` and are not hidden; none if there is no such folder."""
        with suppress(FileNotFoundError), self.opened(folder) as descriptor:
            return sorted(name for name in os.listdir(descriptor) if name.endswith(suffix) and name[:1] != ".")
        return []

    def changed(self, file: Path) -> int | None:
        """Return when a file was last written, in nanoseconds since 1970, or None if there is no such file."""
        with suppress(FileNotFoundError), self.file(file) as descriptor:
            return os.fstat(descriptor).st_mtime_ns
        return None

    def require_own(self, path: Path) -> None:
        """Refuse anything but a folder or a regular file with one name, before a library opens it by name.

        Raises:
            UnsafeFileError: it is a link, is neither file nor folder, or has a second name elsewhere.
        """
        with suppress(FileNotFoundError), self.opened(path.parent) as folder:
            state = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISDIR(state.st_mode):
                _require_own(state, path)


def _open_folder(name: str, folder: int, path: Path, *, make: bool) -> int:
    if make:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
            os.fsync(folder)
    try:
        return os.open(name, FOLDER_FLAGS, dir_fd=folder)
    except OSError as error:
        if error.errno in (ELOOP, ENOTDIR):
            raise UnsafeFileError(path, "is a link or not a folder, but a folder was expected") from None
        raise


def _open_file(file: Path, flags: int, mode: int, folder: int) -> int:
    try:
        descriptor = os.open(file.name, flags | FILE_FLAGS, mode, dir_fd=folder)
    except OSError as error:
        if error.errno in (ELOOP, ENXIO):
            raise UnsafeFileError(file, "is a link or not a regular file, but a regular file was expected") from None
        raise
    try:
        _require_own(os.fstat(descriptor), file)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _require_own(state: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(state.st_mode):
        raise UnsafeFileError(path, "is a link or not a regular file, but a regular file was expected")
    if state.st_nlink > 1:
        raise UnsafeFileError(path, "has another hard link elsewhere, so it may be somebody else's file")
