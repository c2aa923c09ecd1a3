"""The walls around one submission: namespaces, mounts, limits, rights and system calls, each by the kernel's own call.

The box itself (bubblewrap) stands around all of this. These walls part one submission from the next, and take from it
what the process that prepared it still had.
"""

import ctypes
import os
import platform
import resource
import struct
from collections.abc import Mapping, Sequence

NEWNS, NEWUTS, NEWIPC = 0x20000, 0x4000000, 0x8000000
NEWUSER, NEWPID, NEWNET = 0x10000000, 0x20000000, 0x40000000
NOSUID, NODEV, BIND, REC, PRIVATE = 2, 4, 4096, 16384, 1 << 18
SET_DUMPABLE, SET_SECCOMP, CAPBSET_DROP, SET_NO_NEW_PRIVS, CAP_AMBIENT = 4, 22, 24, 38, 47
CAPABILITIES_VERSION = 0x20080522
EPERM, ENOSYS, ENETUNREACH = 1, 38, 101

# Numbers of system calls that no exercise needs, and that have let processes out of boxes before, that take memory
# which is counted as no process's or something that all processes share, or that make a process slow to end.
DENIED = {
    "x86_64": {
        "shmget": 29, "semget": 64, "msgget": 68, "flock": 73, "ptrace": 101, "syslog": 103,
        "personality": 135, "modify_ldt": 154, "pivot_root": 155, "chroot": 161, "sync": 162, "acct": 163,
        "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "iopl": 172,
        "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179, "io_setup": 206,
        "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "inotify_init": 253,
        "unshare": 272, "vmsplice": 278, "inotify_init1": 294, "perf_event_open": 298, "fanotify_init": 300,
        "name_to_handle_at": 303, "open_by_handle_at": 304, "syncfs": 306, "setns": 308,
        "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "finit_module": 313,
        "memfd_create": 319, "bpf": 321, "userfaultfd": 323, "io_uring_setup": 425, "io_uring_enter": 426,
        "io_uring_register": 427, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431,
        "fsmount": 432, "fspick": 433, "pidfd_getfd": 438, "mount_setattr": 442, "quotactl_fd": 443,
        "memfd_secret": 447,
    },
    "aarch64": {
        "io_setup": 0, "inotify_init1": 26, "flock": 32, "umount2": 39, "mount": 40, "pivot_root": 41,
        "chroot": 51, "quotactl": 60, "vmsplice": 75, "sync": 81, "acct": 89, "personality": 92,
        "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106, "syslog": 116,
        "ptrace": 117, "reboot": 142, "msgget": 186, "semget": 190, "shmget": 194, "add_key": 217,
        "request_key": 218, "keyctl": 219, "swapon": 224, "swapoff": 225, "perf_event_open": 241,
        "fanotify_init": 262, "name_to_handle_at": 264, "open_by_handle_at": 265, "syncfs": 267,
        "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "finit_module": 273,
        "memfd_create": 279, "bpf": 280, "userfaultfd": 282, "io_uring_setup": 425, "io_uring_enter": 426,
        "io_uring_register": 427, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431,
        "fsmount": 432, "fspick": 433, "pidfd_getfd": 438, "mount_setattr": 442, "quotactl_fd": 443,
        "memfd_secret": 447,
    },
}  # fmt: skip
# Its name to seccomp, and the calls socket, socketpair, clone and prlimit64.
MACHINE = {"x86_64": (0xC000003E, 41, 53, 56, 302), "aarch64": (0xC00000B7, 198, 199, 220, 261)}
CLONE3 = 435
AF_UNIX = 1
NEW_NAMESPACES = 0x7E020000  # any CLONE_NEW…

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


def rule_over_processes() -> None:
    """Go on, as an ordinary user, in namespaces of users and processes of one's own, from where others can be made.

    It is a fork that goes on, as the first process there; what it was forked from waits for its end, and ends as it.
    """
    user, group = os.getuid(), os.getgid()
    _do(libc.unshare(NEWUSER | NEWPID), "unshare users and processes")
    _map(user, group)
    if child := os.fork():
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 0xFF)


def own_processes() -> int:
    """Return a file that stands for the process namespace that this process is in."""
    return os.open("/proc/self/ns/pid", os.O_RDONLY)


def fork_apart(own: int) -> int:
    """Fork a process that is the first of a new process namespace, as :func:`os.fork` does.

    Where it ends, all that is in the namespace does, and no process in there can signal it, unless it wants to be.
    ``own`` stands for the namespace of the caller, see :func:`own_processes`, whose later children belong there again.
    """
    _do(libc.unshare(NEWPID), "unshare processes")
    child = -1
    try:
        child = os.fork()
    finally:
        if child:
            _do(libc.setns(own, NEWPID), "return to the own processes")
    return child


def part_from_others(folders: Mapping[str, int], uid: int, kept: Sequence[str] = ()) -> None:
    """Enter namespaces of one's own, with an empty folder of so many bytes in place of each of ``folders``.

    What is to be ``kept`` of them, such as an environment of Python's that lies in /tmp, is shown in them again.
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
    if os.getuid() == 0:  # for an ordinary user the kernel makes no others
        _mount("devpts", "/dev/pts", NOSUID, "newinstance,ptmxmode=0666,mode=600")


def see_only_own_processes() -> None:
    """Show the processes of this namespace in /proc, and nothing there to watch the machine with."""
    _mount("proc", "/proc", NOSUID | NODEV)
    if os.path.isdir("/proc/pressure"):  # each watch takes long to end, and so would who holds many of them
        _mount("tmpfs", "/proc/pressure", NOSUID | NODEV, "size=4k,mode=555")


def become(uid: int) -> None:
    """Be an ordinary user in a user namespace, for good: limits on processes do not bind root."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        _do(libc.prctl(SET_DUMPABLE, 1, 0, 0, 0), "dumpable")  # without it /proc/self belongs to root still
    user, group = os.getuid(), os.getgid()
    _do(libc.unshare(NEWUSER), "unshare the user")
    _map(user, group)


def _map(uid: int, gid: int) -> None:
    for file, line in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{file}", "w", encoding="ascii") as stream:
            stream.write(line)


def limit(limits: Mapping[str, int]) -> None:
    """Set limits, by the kernel's names (``"NPROC"``): none can be raised again."""
    for name, most in limits.items():
        number = getattr(resource, f"RLIMIT_{name}", None)
        if number is not None:
            hard = resource.getrlimit(number)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(number, (most, most))


def address_space() -> int:
    """Return how many bytes of addresses this process has taken, 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as stream:
            return int(stream.read().split()[0]) * resource.getpagesize()
    except OSError:
        return 0


def give_up_rights() -> None:
    """Give up every capability, and the way to get any by running a program."""
    _do(libc.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    for capability in range(64):
        if libc.prctl(CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break  # the first number that is none, or none may be dropped any more
    libc.prctl(CAP_AMBIENT, 4, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(CAPABILITIES_VERSION, 0)
    _do(libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")


def filter_calls() -> None:
    """Refuse the system calls that nobody here needs: mounts, other namespaces, other processes, the network."""
    program = _filter()
    buffer = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))

    compiled = Program(len(program) // 8, ctypes.addressof(buffer))
    _do(libc.prctl(SET_SECCOMP, 2, ctypes.byref(compiled), 0, 0), "seccomp")


def _filter() -> bytes:
    """Return the filter for this machine as a program of the Berkeley packet filter."""
    architecture, socket, socketpair, clone, prlimit = MACHINE[platform.machine()]
    load, equal, at_least, any_bit, leave = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, refuse, kill = 0x7FFF0000, 0x00050000, 0x80000000
    number, machine, first_argument = 0, 4, 16
    lines = [(load, 0, 0, machine), (equal, 1, 0, architecture), (leave, 0, 0, kill), (load, 0, 0, number)]
    lines += [(at_least, 0, 1, 0x40000000), (leave, 0, 0, refuse | ENOSYS)]  # another convention for the same calls
    for call in DENIED[platform.machine()].values():
        lines += [(equal, 0, 1, call), (leave, 0, 0, refuse | EPERM)]
    lines += [(equal, 0, 1, CLONE3), (leave, 0, 0, refuse | ENOSYS)]  # its flags lie in memory; libraries fall back
    lines += [(equal, 1, 0, socket), (equal, 0, 4, socketpair), (load, 0, 0, first_argument), (equal, 1, 0, AF_UNIX)]
    lines += [(leave, 0, 0, refuse | ENETUNREACH), (leave, 0, 0, allow)]
    lines += [(equal, 0, 4, prlimit), (load, 0, 0, first_argument), (equal, 1, 0, 0)]  # 0 is the process itself
    lines += [(leave, 0, 0, refuse | EPERM), (leave, 0, 0, allow)]
    lines += [(equal, 0, 3, clone), (load, 0, 0, first_argument)]
    lines += [(any_bit, 0, 1, NEW_NAMESPACES), (leave, 0, 0, refuse | EPERM), (leave, 0, 0, allow)]
    return b"".join(struct.pack("HBBI", *line) for line in lines)
