"""The isolation of one submission: namespaces, mounts, limits, capabilities and system calls, set by kernel calls.

Bubblewrap makes the sandbox around all submissions. The functions here isolate one submission from the others, and take
away the rights that were only needed to prepare it.
"""

import ctypes
import os
import platform
import resource
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from grading.sandbox.inside import seccomp

NEWNS, NEWUTS, NEWIPC = 0x20000, 0x4000000, 0x8000000
NEWUSER, NEWPID, NEWNET = 0x10000000, 0x20000000, 0x40000000
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, REC, PRIVATE, DETACH = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18, 2
# Anyone who may write to a device may also set its times, which all boxes would see, unless it is mounted read-only.
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
MAX_TERMINALS = 16  # how many a submission may open; the kernel has 4096 for the whole machine
PROC_FILES = ("cpuinfo", "filesystems", "meminfo", "stat", "version")  # files in /proc
SET_DUMPABLE, SET_SECCOMP, CAPBSET_DROP, SET_NO_NEW_PRIVS, CAP_AMBIENT = 4, 22, 24, 38, 47
CAPABILITIES_VERSION = 0x20080522

libc = ctypes.CDLL(None, use_errno=True)


def _do(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _mount(kind: str | None, place: str, flags: int, data: str | None = None) -> None:
    source = (kind or "none").encode()
    arguments = (source, place.encode(), kind and kind.encode(), ctypes.c_ulong(flags), data and data.encode())
    _do(libc.mount(*arguments), f"mount {place}")


def _bind(source: str, place: str) -> None:
    _do(libc.mount(source.encode(), place.encode(), None, ctypes.c_ulong(BIND | REC), None), f"show {place}")


def enter_user_namespace() -> None:
    """As an ordinary user, enter new user and process namespaces, from which further ones can be made.

    A fork continues as the first process there. Its parent waits for it, and exits with the same status.
    """
    user, group = os.getuid(), os.getgid()
    _do(libc.unshare(NEWUSER | NEWPID), "unshare users and processes")
    _map(user, group)
    if child := os.fork():
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)


def open_pid_namespace() -> int:
    """Return a file descriptor for the process namespace of this process."""
    return os.open("/proc/self/ns/pid", os.O_RDONLY)


def fork_into_pid_namespace(own: int) -> int:
    """Fork a process that is the first of a new process namespace, as :func:`os.fork` does.

    When it ends, everything in the namespace ends. No process in there can send it a signal that it does not handle.
    ``own`` is the caller's namespace (see :func:`open_pid_namespace`), in which its later children are made again.
    """
    _do(libc.unshare(NEWPID), "unshare processes")
    child = -1
    try:
        child = os.fork()
    finally:
        if child:
            _do(libc.setns(own, NEWPID), "return to the previous process namespace")
    return child


def unshare_namespaces(folders: Mapping[str, int], uid: int, kept: Sequence[str] = ()) -> None:
    """Enter new namespaces, in which an empty folder of limited size replaces each of ``folders``.

    What has to be ``kept`` of them, such as a Python environment in /tmp, is shown in them again.
    """
    _do(libc.unshare(NEWNS | NEWNET | NEWIPC | NEWUTS), "unshare")
    _mount(None, "/", REC | PRIVATE)
    owner = uid if os.getuid() == 0 else os.getuid()
    for place, size in folders.items():
        shown = {path: os.open(path, os.O_PATH) for path in kept if path.startswith(f"{place}/")}
        _mount("tmpfs", place, NOSUID | NODEV, f"size={size},nr_inodes=10000,mode=777,uid={owner},gid={owner}")
        for path, seen in shown.items():
            os.makedirs(path, 0o755)
            _bind(f"/proc/self/fd/{seen}", path)
            os.close(seen)
    for device in filter(os.path.ismount, DEVICES):
        flags = os.statvfs(device).f_flag & (NOSUID | NODEV | NOEXEC)
        _mount(None, device, BIND | REMOUNT | RDONLY | flags)
    if os.getuid() == 0:  # the kernel gives an ordinary user no others
        _mount("devpts", "/dev/pts", NOSUID, f"newinstance,ptmxmode=0666,mode=600,max={MAX_TERMINALS}")


@cache
def machine_files() -> dict[str, bytes]:
    """Return what /proc says about the machine and libraries need, as it was at the first call."""
    return {name: Path("/proc", name).read_bytes() for name in PROC_FILES if Path("/proc", name).is_file()}


def mount_private_proc() -> None:
    """Show in /proc the processes of this namespace and, about the machine, only what :func:`machine_files` returns.

    Everything else there is shared by all submissions and changes with what others do, so it is covered with something
    empty.
    """
    said = machine_files()
    _mount("proc", "/proc", NOSUID | NODEV)
    _mount("tmpfs", "/tmp", NOSUID | NODEV, "size=1m,nr_inodes=20,mode=755")
    (folder := Path("/tmp/folder")).mkdir()
    for name, content in (said | {"file": b""}).items():
        Path("/tmp", name).write_bytes(content)
    _mount(None, "/tmp", NOSUID | NODEV | REMOUNT | RDONLY)
    for entry in list(os.scandir("/proc")):
        if not entry.name.isdigit() and not entry.is_symlink():
            cover = folder if entry.is_dir() else Path("/tmp", entry.name if entry.name in said else "file")
            _bind(str(cover), entry.path)
    _do(libc.umount2(b"/tmp", DETACH), "umount /tmp")


def become_user(uid: int) -> None:
    """Become an ordinary user in a user namespace, for good, because limits on processes do not apply to root."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        _do(libc.prctl(SET_DUMPABLE, 1, 0, 0, 0), "dumpable")  # otherwise /proc/self would still belong to root
    user, group = os.getuid(), os.getgid()
    _do(libc.unshare(NEWUSER), "unshare users")
    _map(user, group)


def _map(uid: int, gid: int) -> None:
    for file, line in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{file}", "w", encoding="ascii") as stream:
            stream.write(line)


def set_limits(limits: Mapping[str, int]) -> None:
    """Set limits by the kernel's names, such as ``"NPROC"``. None of them can be raised again."""
    for name, most in limits.items():
        number = getattr(resource, f"RLIMIT_{name}", None)
        if number is not None:
            hard = resource.getrlimit(number)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(number, (most, most))


def address_space() -> int:
    """Return how many bytes of address space this process uses, or 0 if the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as stream:
            return int(stream.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def drop_capabilities() -> None:
    """Give up every capability, and the possibility of gaining any by running a program."""
    _do(libc.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    for capability in range(64):
        if libc.prctl(CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break  # there is no capability with this number, or no more may be dropped
    libc.prctl(CAP_AMBIENT, 4, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(CAPABILITIES_VERSION, 0)
    _do(libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")


def install_seccomp_filter() -> None:
    """Refuse, for good, all system calls that are not listed in :mod:`grading.sandbox.inside.syscalls`."""
    program = seccomp.program(platform.machine())
    buffer = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))

    compiled = Program(len(program) // 8, ctypes.addressof(buffer))
    _do(libc.prctl(SET_SECCOMP, 2, ctypes.byref(compiled), 0, 0), "seccomp")
