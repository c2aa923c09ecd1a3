"""Attempts to read what a submission must not see, and to write where it would last."""

import importlib.util
import os
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

Attempts = Iterator[tuple[str, Callable[[], Any]]]
FILE_POSITION = 4711  # a file position, set as a message to a later submission
WRITABLE_FOLDERS = ("/scratch", "/tmp", "/dev/shm", "/warm")


def read(paths: Sequence[str]) -> Attempts:
    """Read files, and list folders."""
    for path in paths:
        yield path, partial(_start, path)


def _start(path: str) -> str:
    if os.path.isdir(path):
        return " ".join(_strange(path))
    with open(path, "rb") as file:
        return file.read(40).decode("utf-8", "replace")


def environment(allowed: Sequence[str], word: str) -> Attempts:
    """Find the grader's environment variables, or the word that one of them contains."""
    here = Path("/proc/self/environ").read_bytes().decode("utf-8", "replace").split("\0")
    names = {line.partition("=")[0] for line in here} - {"", "PWD", *allowed}
    yield "variables", lambda: " ".join(sorted(names))
    yield "os.environ", lambda: word in str(os.environ)
    for process in _others():
        yield f"environ of {process}", partial(_start, f"/proc/{process}/environ")


def memory(pid: int) -> Attempts:
    """Look into other processes: all that are visible, and one of the grader's."""
    for process in (*_others(), str(pid)):
        for part in ("mem", "maps", "root", "cwd", "fd", "stack", "syscall"):
            yield f"/proc/{process}/{part}", partial(_start, f"/proc/{process}/{part}")
        yield f"/proc/{process}/mem for writing", partial(_opened, f"/proc/{process}/mem")


def _others() -> list[str]:
    names = os.listdir("/proc")
    return [name for name in names if name.isdigit() and int(name) != os.getpid() and not _is_gone(name)]


def _is_gone(process: str) -> bool:
    """Return whether a process has ended, even if its parent has not noticed yet."""
    try:
        return ") Z " in Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return True


def references(modules: Sequence[str]) -> Attempts:
    """Find modules that hold the answers, or their files where modules are imported from."""
    for name in modules:
        yield name, partial(importlib.util.find_spec, name)
        for folder in sys.path:
            path = Path(folder or ".", *name.split("."))
            yield str(path), path.exists
            yield f"{path}.py", path.with_suffix(".py").exists


def payload(meant: Sequence[str]) -> Attempts:
    """Find files in the payload that were not meant to be there."""
    files = [str(path.relative_to("/payload")) for path in Path("/payload").rglob("*") if not path.is_dir()]
    yield "more", lambda: " ".join(sorted(set(files) - set(meant)))


def leave() -> None:
    """Leave something for the next submission, wherever possible."""
    for folder in WRITABLE_FOLDERS:
        Path(folder, "left").write_text("behind")
    for file in _inherited():
        os.lseek(file, FILE_POSITION, os.SEEK_SET)


def left() -> Attempts:
    """Find what an earlier submission left: files, and positions in files that both have open."""
    for folder in WRITABLE_FOLDERS:
        yield folder, partial(_start, folder)
    for file in _inherited():
        yield f"open file {file}", partial(_moved, file)


def _strange(folder: str) -> list[str]:
    """Return what is in a folder, except Python and the folders that lead only to it."""
    python = [Path(place) for prefix in (sys.prefix, sys.base_prefix) for place in (prefix, os.path.realpath(prefix))]
    strange = []
    for path in (Path(folder, name) for name in os.listdir(folder)):
        if any(place != path and place.is_relative_to(path) for place in python):
            strange += _strange(str(path))
        elif path not in python:
            strange.append(path.name)
    return strange


def _moved(file: int) -> bool:
    return os.lseek(file, 0, os.SEEK_CUR) == FILE_POSITION


def open_files() -> Attempts:
    """Find open files other than the channel and those that anybody may read."""
    channels = [file for file in _files() if stat.S_ISSOCK(os.fstat(file).st_mode)]
    yield "sockets", lambda: len(channels) > 1 and f"{len(channels)}, one of which is the channel"
    yield "pipes", lambda: " ".join(str(file) for file in _files() if stat.S_ISFIFO(os.fstat(file).st_mode))
    yield "folders", lambda: " ".join(str(file) for file in _files() if stat.S_ISDIR(os.fstat(file).st_mode))


def _files() -> list[int]:
    files = []
    for name in os.listdir("/proc/self/fd"):
        try:
            os.fstat(int(name))
        except OSError:
            continue  # the list itself was read through one that is closed now
        files.append(int(name))
    return files


def _inherited() -> list[int]:
    return [file for file in _files() if file > 2 and stat.S_ISREG(os.fstat(file).st_mode)]


def write() -> Attempts:
    """Make a file in mounts and in up to 40 folders of each, except those that are meant for it."""
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    roots = {*mounts, *sys.path, sys.prefix, sys.base_prefix, "/", "/payload", "/etc", "/root", "/home", "/var"}
    folders = {path for root in roots for path in (root, *_folders(root))}
    for folder in sorted(folders):
        if os.path.realpath(folder) not in WRITABLE_FOLDERS and not folder.startswith("/proc/self"):
            yield folder, partial(_made, Path(folder, "left"))


def _folders(root: str) -> list[str]:
    try:
        return [entry.path for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False)][:40]
    except OSError:
        return []


def _made(path: Path) -> str:
    path.write_text("left")
    path.unlink()
    return str(path)


def change(paths: Sequence[str]) -> Attempts:
    """Open files of the system, of Python and of the payload for writing, change their mode, and rename them."""
    files = [
        *paths,
        sys.executable,
        os.__file__,
        "/payload/attnlib/__init__.py",
        "/payload/grading/sandbox/inside/fork_server.py",
    ]
    for file in files:
        yield file, partial(_opened, file)
        yield f"mode of {file}", partial(_mode_changed, file)
        yield f"remove {file}", partial(_removed, file)


def _opened(path: str) -> str:
    with open(path, "r+b", buffering=0):
        return "opened for writing"


def _mode_changed(path: str) -> str:
    os.chmod(path, stat.S_IMODE(os.stat(path).st_mode))
    return "changed"


def _removed(path: str) -> str:
    os.rename(path, f"{path}.away")
    os.rename(f"{path}.away", path)
    return "renamed"


def times(paths: Sequence[str]) -> Attempts:
    """Set the times of files that all boxes see."""
    for path in (*paths, sys.executable, os.__file__, "/payload/attnlib/__init__.py"):
        yield path, partial(_touched, path)


def _touched(path: str) -> str:
    before = os.stat(path).st_mtime_ns
    os.utime(path)
    return "touched" if os.stat(path).st_mtime_ns != before else ""


def devices() -> Attempts:
    """Make a device, and open those of the machine."""
    for kind, name in ((stat.S_IFBLK, "block"), (stat.S_IFCHR, "character")):
        yield f"a {name} device", partial(_device, kind)
    for name in ("mem", "kmem", "port", "kmsg", "kvm", "fuse", "vda", "sda", "nvme0n1", "loop-control", "net/tun"):
        yield f"/dev/{name}", partial(_start, f"/dev/{name}")


def _device(kind: int) -> str:
    os.mknod("/scratch/device", kind | 0o600, os.makedev(1, 1))
    return "made"
