"""Attempts to make system calls that have led out of boxes before.

The arguments are such that the kernel would answer something else, or do nothing, where a call is not refused outright.
"""

import ctypes
import errno
import fcntl
import os
import platform
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

Attempts = Iterator[tuple[str, Callable[[], Any]]]
BAD = -1  # a pointer to nowhere, a file that is not open, a process that there is not
ARM = platform.machine() == "aarch64"
# The number of each call on x86_64 and on aarch64, and its arguments.
CALLS: dict[str, tuple[int, int, tuple[int, ...]]] = {
    "mount": (165, 40, (BAD, BAD, BAD, 0, 0)),
    "umount2": (166, 39, (BAD, 0)),
    "pivot_root": (155, 41, (BAD, BAD)),
    "chroot": (161, 51, (BAD,)),
    "unshare": (272, 97, (0,)),
    "setns": (308, 268, (BAD, 0)),
    "ptrace": (101, 117, (16, BAD)),
    "process_vm_readv": (310, 270, (BAD, 0, 0, 0, 0, 0)),
    "process_vm_writev": (311, 271, (BAD, 0, 0, 0, 0, 0)),
    "pidfd_getfd": (438, 438, (BAD, 0, 0)),
    "kcmp": (312, 272, (BAD, BAD, 0, 0, 0)),
    "keyctl": (250, 219, (0, BAD, 0)),
    "add_key": (248, 217, (BAD, BAD, BAD, 0, 0)),
    "request_key": (249, 218, (BAD, BAD, BAD, 0)),
    "bpf": (321, 280, (BAD, BAD, 0)),
    "perf_event_open": (298, 241, (BAD, 0, BAD, BAD, 0)),
    "io_uring_setup": (425, 425, (0, BAD)),
    "userfaultfd": (323, 282, (BAD,)),
    "open_by_handle_at": (304, 265, (BAD, BAD, 0)),
    "name_to_handle_at": (303, 264, (BAD, BAD, BAD, BAD, 0)),
    "open_tree": (428, 428, (BAD, BAD, 0)),
    "move_mount": (429, 429, (BAD, BAD, BAD, BAD, 0)),
    "fsopen": (430, 430, (BAD, 0)),
    "mount_setattr": (442, 442, (BAD, BAD, 0, BAD, 0)),
    "personality": (135, 92, (0xFFFFFFFF,)),
    "memfd_create": (319, 279, (BAD, 0)),
    "shmget": (29, 194, (BAD, 0, 0)),
    "vmsplice": (278, 75, (BAD, 0, 0, 0)),
    "flock": (73, 32, (BAD, 0)),
    "inotify_init1": (294, 26, (BAD,)),
    "io_setup": (206, 0, (0, BAD)),
    "syncfs": (306, 267, (BAD,)),
    "quotactl_fd": (443, 443, (BAD, 0, 0, 0)),
    "clone3": (435, 435, (BAD, 0)),
}
REFUSED = {errno.EPERM, errno.ENOSYS}
NEW = {"user": 0x10000000, "mount": 0x20000, "process": 0x20000000, "network": 0x40000000}
TIOCSTI = 0x5412
_libc = ctypes.CDLL(None, use_errno=True)


def call(call: str) -> Attempts:
    """Make a system call."""
    x86, arm, arguments = CALLS[call]
    yield call, partial(_let_through, arm if ARM else x86, *arguments)


def _let_through(number: int, *arguments: int) -> str:
    """Return how the kernel took a call, or nothing where it refused."""
    ctypes.set_errno(0)
    result = _libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    said = ctypes.get_errno()
    return "" if result < 0 and said in REFUSED else errno.errorcode.get(said, f"returned {result}")


def clone() -> Attempts:
    """Start a process in new namespaces."""
    for kind, flag in NEW.items():
        yield kind, partial(_cloned, flag)


def _cloned(flag: int) -> str:
    child = _libc.syscall(ctypes.c_long(220 if ARM else 56), ctypes.c_long(flag | signal.SIGCHLD), 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    if child > 0:
        os.waitpid(child, 0)
    return "a process was started" if child > 0 else ""


def other_convention() -> Attempts:
    """Make a call by the numbers that 32-bit pointers have."""
    if not ARM:
        yield "x32", partial(_let_through, 0x40000000 | 39)  # the number of the process


def root() -> Attempts:
    """Become root, or anybody else."""
    for name in ("setuid", "setgid", "seteuid", "setegid"):
        yield name, partial(_become, getattr(os, name), 0)
    yield "setgroups", partial(_become, os.setgroups, [0])
    yield "who", lambda: 0 in (*os.getresuid(), *os.getresgid()) and "root"
    yield "uid_map", lambda: Path("/proc/self/uid_map").write_text("0 0 1")


def _become(change: Callable[[Any], None], whom: Any) -> str:
    change(whom)
    return "changed"


def rights() -> Attempts:
    """Find a right that was kept, or a filter that is missing."""
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        yield name, partial(_differs, status[name].lstrip("0"), "")
    for name, wanted in (("NoNewPrivs", "1"), ("Seccomp", "2")):
        yield name, partial(_differs, status[name], wanted)


def _differs(found: str, wanted: str) -> str:
    return "" if found == wanted else found or "nothing"


def type_for_others() -> Attempts:
    """Put characters into the terminal that the grader was started from, as if somebody had typed them."""
    for file in (0, 1, 2):
        yield str(file), partial(_typed, file)
    yield "/dev/tty", lambda: _typed(os.open("/dev/tty", os.O_RDWR))


def _typed(file: int) -> str:
    fcntl.ioctl(file, TIOCSTI, b"\n")
    return "typed"
