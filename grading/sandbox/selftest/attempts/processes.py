"""Attempts to see or reach whatever else runs on the grader's machine."""

import ctypes
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

Attempts = Iterator[tuple[str, Callable[[], Any]]]
MAX_PROCESSES = 3  # processes: its own, and what IPython may have started


def seen(pid: int, word: str) -> Attempts:
    """Find a process of the grader's by its number or its name, or more processes than there should be."""
    yield f"/proc/{pid}", lambda: os.path.exists(f"/proc/{pid}")
    processes = [name for name in os.listdir("/proc") if name.isdigit()]
    yield "processes", lambda: len(processes) > MAX_PROCESSES and str(len(processes))
    for process in processes:
        yield f"name of {process}", partial(_holds, Path(f"/proc/{process}/cmdline"), word)


def _holds(path: Path, word: str) -> bool:
    return word.encode() in path.read_bytes()


def machine() -> Attempts:
    """Find what the kernel says about the whole machine, which submissions could use to signal to each other."""
    own = os.stat("/proc/self").st_dev
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() and not entry.is_symlink():
            yield entry.path, partial(_is_on, own, entry.path)
    for name in ("kernel/pty/nr", "fs/file-nr", "fs/inode-nr", "kernel/random/entropy_avail"):
        yield f"/proc/sys/{name}", partial(_read, f"/proc/sys/{name}")
    yield "load", os.getloadavg


def _is_on(device: int, path: str) -> bool:
    return os.stat(path).st_dev == device


def _read(path: str) -> str:
    return Path(path).read_text()


def signalled(pid: int) -> Attempts:
    """Send signals to a process of the grader's, and to every other process within reach."""
    yield str(pid), partial(_signalled, pid)
    yield "everybody", partial(_signalled, -1)


def _signalled(pid: int) -> str:
    os.kill(pid, 0)
    return "a signal could be sent"


def shared(key: int, file: str) -> Attempts:
    """Find memory that a process of the grader's shares."""
    libc = ctypes.CDLL(None, use_errno=True)
    yield f"segment {key}", lambda: libc.shmget(key, 0, 0) >= 0
    yield file, lambda: Path(file).read_bytes()
    yield "list of segments", lambda: str(key) in Path("/proc/sysvipc/shm").read_text()


def spaces(grader: dict[str, str]) -> Attempts:
    """Find namespaces that are the grader's own."""
    for kind, name in grader.items():
        yield kind, partial(_same, f"/proc/self/ns/{kind}", name)


def _same(path: str, name: str) -> bool:
    return os.readlink(path) == name


def terminals() -> Attempts:
    """Open the terminal that the grader was started from."""
    yield "/dev/tty", lambda: os.open("/dev/tty", os.O_RDWR) >= 0
    for file in (0, 1, 2):
        yield str(file), partial(os.isatty, file)
