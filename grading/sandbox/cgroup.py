"""A control group (cgroup v2) for each submission, if the kernel lets the grader make one.

The kernel then counts the processor time of everything that a submission starts, however it ends. If the cpu and memory
controllers can be enabled, it also limits all of this to one core and to the memory given in ``limits.py``. Nothing
here is required: what the kernel lacks or refuses is left out, and ``cpu_time.py`` and ``memory_usage.py`` read
``/proc`` instead.

Source: https://docs.kernel.org/admin-guide/cgroup-v2.html
"""

import atexit
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path, PurePosixPath
from secrets import token_hex
from threading import Lock
from time import monotonic, sleep

import psutil  # type: ignore[import-untyped]

SELF = Path("/proc/self")
GROUP_PREFIX = "attention-grading"
GROUP_NAME = re.compile(rf"{GROUP_PREFIX}-(\d+)-\w+")  # the number is the grader's process ID
CONTROLLERS = ("cpu", "memory")
ONE_CORE_QUOTA = "100000 100000"  # microseconds of processor time per microseconds of elapsed time
REMOVAL_SECONDS = 2.0  # after this, a group that still has processes is left for the next start to remove
MAX_ROUNDS = 10  # how often to look for processes that were forked while others were being moved

_preparing = Lock()


class Group:
    """The control group of one submission, which has a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.one_core = False  # whether the kernel limits it to one core

    def add(self, pid: int, memory: float) -> bool:
        """Move a process into the group, limited to one core and ``memory`` bytes if the controllers are enabled.

        Returns:
            Whether the process is in the group now, with everything that it forks from now on.
        """
        self.one_core = _wrote(self.folder / "cpu.max", ONE_CORE_QUOTA)
        for file, value in (("memory.max", f"{memory:.0f}"), ("memory.swap.max", "0"), ("memory.oom.group", "1")):
            _wrote(self.folder / file, value)
        return _wrote(self.folder / "cgroup.procs", str(pid))

    def used(self) -> float | None:
        """Return the seconds of processor time of all processes that are, or were, in the group, if it can be read."""
        microseconds = self._counts("cpu.stat").get("usage_usec")
        return None if microseconds is None else microseconds / 1e6

    def out_of_memory(self) -> bool:
        """Tell whether the kernel killed a process because the group reached its own memory limit.

        If the machine, or a group further up, has run out of memory, ``oom_kill`` rises, but ``oom`` does not.
        """
        events = self._counts("memory.events")
        return bool(events.get("oom")) and bool(events.get("oom_kill") or events.get("oom_group_kill"))

    def _counts(self, file: str) -> dict[str, int]:
        pairs = (line.split() for line in _read(self.folder / file).splitlines())
        return {name: int(count) for name, count in pairs}

    def remove(self) -> None:
        """Kill what is left in the group, and remove it."""
        _wrote(self.folder / "cgroup.kill", "1")
        deadline = monotonic() + REMOVAL_SECONDS
        while self.folder.is_dir() and not _removed(self.folder) and monotonic() < deadline:
            sleep(0.02)


@contextmanager
def own_group() -> Iterator[Group | None]:
    """Make a group for one submission, which is removed when the context ends, or yield None if that is impossible.

    A process can read the name of its group. The name ends in random characters, because a number would tell it how
    many submissions ran before it, and how often they crashed.
    """
    with _preparing:
        parent = _parent()
    group = Group(parent / f"{GROUP_PREFIX}-{os.getpid()}-{token_hex(8)}") if parent else None
    if group is None or not _made(group.folder):
        yield None
        return
    try:
        yield group
    finally:
        group.remove()


@cache
def _parent() -> Path | None:
    """Return the folder that submissions' groups are made in, cleared of stale ones, with its controllers enabled."""
    folder = find(SELF)
    if folder:
        _remove_stale(folder)
        _enable(folder)
    return folder


def find(process: Path) -> Path | None:
    """Return the folder of the cgroup v2 of a process, given its folder in ``/proc``, or None if there is none."""
    lines = _read(process / "cgroup").splitlines()
    group = next((PurePosixPath(line[3:]) for line in lines if line.startswith("0::")), None)
    for line in _read(process / "mountinfo").splitlines():
        mount, _, kind = line.partition(" - ")
        root, place = (_unescaped(path) for path in mount.split()[3:5])
        if group is None or not kind.startswith("cgroup2 ") or not group.is_relative_to(root):
            continue
        inner = group.relative_to(root)  # a path with `..` lies outside our cgroup namespace
        if ".." not in inner.parts and (Path(place) / inner / "cgroup.procs").is_file():
            return Path(place) / inner
    return None


def _unescaped(path: str) -> str:
    """Return a path of mountinfo with octal escapes, such as those of spaces, replaced by the characters."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), path)


def _remove_stale(parent: Path) -> None:
    """Remove the groups of graders that have ended. A group that still has processes cannot be removed, and stays."""
    with suppress(OSError):
        for group in list(parent.iterdir()):
            match = GROUP_NAME.fullmatch(group.name)
            if match and not psutil.pid_exists(int(match[1])):
                _removed(group)


def _enable(parent: Path) -> None:
    """Enable the controllers for submissions' groups, if all processes of the parent group are the grader's own.

    The kernel does not let a group have both processes and enabled controllers, so the grader's processes move to a
    group beside those of the submissions. They move back when the grader ends, or at once if the kernel enables
    nothing.
    """
    available, enabled = (_read(parent / f"cgroup.{file}").split() for file in ("controllers", "subtree_control"))
    missing = [name for name in CONTROLLERS if name in available and name not in enabled]
    leaf = parent / f"{GROUP_PREFIX}-{os.getpid()}-grader"
    if not missing or not _all_ours(_processes(parent)) or not _made(leaf):
        return
    control = parent / "cgroup.subtree_control"
    added = [name for name in missing if _wrote(control, f"+{name}")] if _moved(parent, leaf) else []
    if added:
        atexit.register(_undo, parent, leaf, added)
    else:
        _undo(parent, leaf, [])


def _moved(source: Path, target: Path) -> bool:
    """Move all processes from one group to another, and tell whether that worked. Stop if one is not ours."""
    for _ in range(MAX_ROUNDS):
        processes = _processes(source)
        if not processes:
            return True
        if not _all_ours(processes):
            return False
        for pid in processes:
            _wrote(target / "cgroup.procs", str(pid))
    return False


def _undo(parent: Path, leaf: Path, added: Sequence[str]) -> None:
    """Disable the controllers and move the grader back, unless this is a fork of a grader that is still running."""
    processes = _processes(leaf)
    if processes and not _all_ours(processes):
        return
    for name in added:
        _wrote(parent / "cgroup.subtree_control", f"-{name}")
    _moved(leaf, parent)
    _removed(leaf)


def _processes(group: Path) -> list[int]:
    """Return the IDs of the processes in a group; a process in a foreign process namespace has the ID 0."""
    return [int(pid) for pid in _read(group / "cgroup.procs").split()]


def _all_ours(processes: Sequence[int]) -> bool:
    """Tell whether all processes are this one or its descendants."""
    try:
        ours = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    except (OSError, psutil.Error):
        return False
    return bool(processes) and ours.issuperset(processes)


def _read(file: Path) -> str:
    """Return the contents of a kernel file, or nothing if it cannot be read."""
    try:
        return file.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ""


def _wrote(file: Path, text: str) -> bool:
    """Write to an existing kernel file, and tell whether the kernel accepted it."""
    try:
        _write(file, text)
    except OSError:
        return False
    return True


def _write(file: Path, text: str) -> None:
    descriptor = os.open(file, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode("ascii"))
    finally:
        os.close(descriptor)


def _made(group: Path) -> bool:
    try:
        group.mkdir()
    except OSError:
        return False
    return True


def _removed(group: Path) -> bool:
    try:
        group.rmdir()
    except OSError:
        return False
    return True
