"""Attempts to make each system call that no submission may make.

A call that the filter refuses fails with ENOSYS before the kernel looks at its arguments. The arguments are chosen so
that a call that is not refused gets a different answer, or does nothing.
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
INVALID = -1  # a pointer to nowhere, a file that is not open, a process that does not exist
IS_ARM = platform.machine() == "aarch64"
# The number of each call on x86_64 and on aarch64, or None if it has none. Sync is missing, because it has no
# arguments: if it were let through, it would wait until the machine has written everything to its disks.
# fmt: off
REFUSED_CALLS: dict[str, tuple[int | None, int | None]] = {
    "acct": (163, 89), "add_key": (248, 217), "adjtimex": (159, 171), "bpf": (321, 280), "cachestat": (451, 451),
    "capset": (126, 91), "chroot": (161, 51), "clock_adjtime": (305, 266), "clock_settime": (227, 112),
    "clone3": (435, 435), "copy_file_range": (326, 285), "delete_module": (176, 106), "execveat": (322, 281),
    "fadvise64": (221, 223), "fanotify_init": (300, 262), "fanotify_mark": (301, 263), "file_getattr": (468, 468),
    "file_setattr": (469, 469), "finit_module": (313, 273), "flock": (73, 32), "fremovexattr": (199, 16),
    "fsconfig": (431, 431), "fsetxattr": (190, 7), "fsmount": (432, 432), "fsopen": (430, 430), "fspick": (433, 433),
    "get_mempolicy": (239, 236), "get_robust_list": (274, 100), "init_module": (175, 105),
    "inotify_add_watch": (254, 27), "inotify_init": (253, None), "inotify_init1": (294, 26),
    "inotify_rm_watch": (255, 28), "io_cancel": (210, 3), "io_destroy": (207, 1), "io_getevents": (208, 4),
    "io_pgetevents": (333, 292), "io_setup": (206, 0), "io_submit": (209, 2), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "io_uring_setup": (425, 425), "ioperm": (173, None), "iopl": (172, None),
    "ioprio_get": (252, 31), "ioprio_set": (251, 30), "kcmp": (312, 272), "kexec_file_load": (320, 294),
    "kexec_load": (246, 104), "keyctl": (250, 219), "landlock_add_rule": (445, 445),
    "landlock_create_ruleset": (444, 444), "landlock_restrict_self": (446, 446), "listmount": (458, 458),
    "lremovexattr": (198, 15), "lsetxattr": (189, 6), "lsm_get_self_attr": (459, 459), "lsm_list_modules": (461, 461),
    "lsm_set_self_attr": (460, 460), "mbind": (237, 235), "memfd_create": (319, 279), "memfd_secret": (447, 447),
    "migrate_pages": (256, 238), "mincore": (27, 232), "mknod": (133, None), "mknodat": (259, 33),
    "mlock": (149, 228), "mlock2": (325, 284), "mlockall": (151, 230), "modify_ldt": (154, None), "mount": (165, 40),
    "mount_setattr": (442, 442), "move_mount": (429, 429), "move_pages": (279, 239), "mq_getsetattr": (245, 185),
    "mq_notify": (244, 184), "mq_open": (240, 180), "mq_timedreceive": (243, 183), "mq_timedsend": (242, 182),
    "mq_unlink": (241, 181), "msgctl": (71, 187), "msgget": (68, 186), "msgrcv": (70, 188), "msgsnd": (69, 189),
    "munlock": (150, 229), "munlockall": (152, 231), "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    "open_tree": (428, 428), "open_tree_attr": (467, 467), "openat2": (437, 437), "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438), "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "pivot_root": (155, 41),
    "pkey_alloc": (330, 289), "pkey_free": (331, 290), "pkey_mprotect": (329, 288), "preadv2": (327, 286),
    "process_madvise": (440, 440), "process_mrelease": (448, 448), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "ptrace": (101, 117), "pwritev2": (328, 287), "quotactl": (179, 60),
    "quotactl_fd": (443, 443), "readahead": (187, 213), "reboot": (169, 142), "remap_file_pages": (216, 234),
    "removexattr": (197, 14), "removexattrat": (466, 466), "request_key": (249, 218), "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
    "seccomp": (317, 277), "semctl": (66, 191), "semget": (64, 190), "semop": (65, 193), "semtimedop": (220, 192),
    "set_mempolicy": (238, 237), "set_mempolicy_home_node": (450, 450), "setdomainname": (171, 162),
    "setfsgid": (123, 152), "setfsuid": (122, 151), "setgid": (106, 144), "setgroups": (116, 159),
    "sethostname": (170, 161), "setns": (308, 268), "setregid": (114, 143), "setresgid": (119, 149),
    "setresuid": (117, 147), "setreuid": (113, 145), "settimeofday": (164, 170), "setuid": (105, 146),
    "setxattr": (188, 5), "setxattrat": (463, 463), "shmat": (30, 196), "shmctl": (31, 195), "shmdt": (67, 197),
    "shmget": (29, 194), "splice": (275, 76), "statmount": (457, 457), "swapoff": (168, 225), "swapon": (167, 224),
    "sync_file_range": (277, 84), "syncfs": (306, 267), "sysfs": (139, None), "sysinfo": (99, 179),
    "syslog": (103, 116), "tee": (276, 77), "umount2": (166, 39), "unshare": (272, 97), "userfaultfd": (323, 282),
    "ustat": (136, None), "vhangup": (153, 58), "vmsplice": (278, 75),
}
# fmt: on
READ_TABLE = {"modify_ldt": (0, INVALID, INVALID)}  # the kernel answers ENOSYS to any other function of it
# What an allowed call must not be asked to do: the numbers of the call, and its arguments.
REFUSED_ARGUMENTS: dict[str, tuple[tuple[int, int], tuple[int, ...]]] = {
    **{f"ioctl {name}": ((16, 29), (INVALID, number, INVALID)) for name, number in {
        "TIOCSTI": 0x5412, "TIOCLINUX": 0x541C, "TIOCSETD": 0x5423, "TIOCCONS": 0x541D, "FIOASYNC": 0x5452,
        "FICLONE": 0x40049409, "FS_IOC_SETFLAGS": 0x40086602, "FIFREEZE": 0xC0045877, "NS_GET_PARENT": 0xB702,
    }.items()},
    **{f"fcntl {name}": ((72, 25), (INVALID, number, INVALID)) for name, number in {
        "F_GETLK": 5, "F_SETLK": 6, "F_SETLKW": 7, "F_SETOWN": 8, "F_GETOWN": 9, "F_SETSIG": 10, "F_SETOWN_EX": 15,
        "F_OFD_GETLK": 36, "F_OFD_SETLK": 37, "F_OFD_SETLKW": 38, "F_SETLEASE": 1024, "F_GETLEASE": 1025,
        "F_NOTIFY": 1026, "F_SETPIPE_SZ": 1031, "F_ADD_SEALS": 1033, "F_SET_RW_HINT": 1036,
    }.items()},
    **{f"prctl {name}": ((157, 167), (number, INVALID, INVALID, INVALID, INVALID)) for name, number in {
        "PR_SET_DUMPABLE": 4, "PR_SET_SECCOMP": 22, "PR_CAPBSET_DROP": 24, "PR_SET_MM": 35,
        "PR_SET_CHILD_SUBREAPER": 36, "PR_CAP_AMBIENT": 47, "PR_SET_SPECULATION_CTRL": 53, "PR_SCHED_CORE": 62,
        "PR_SET_MEMORY_MERGE": 67, "PR_SET_PTRACER": 0x59616D61,
    }.items()},
    **{f"madvise {name}": ((28, 233), (0, 0, number)) for name, number in {
        "MADV_MERGEABLE": 12, "MADV_COLD": 20, "MADV_PAGEOUT": 21, "MADV_HWPOISON": 100,
    }.items()},
    **{f"setsockopt {name}": ((54, 208), (INVALID, 1, number, INVALID, INVALID)) for name, number in {
        "SO_SNDBUF": 7, "SO_RCVBUF": 8, "SO_ATTACH_FILTER": 26, "SO_ATTACH_BPF": 50,
    }.items()},
    "prlimit64 of another": ((302, 261), (2, 7, 0, 0)),
}  # fmt: skip
NAMESPACE_FLAGS = {"user": 0x10000000, "mount": 0x20000, "process": 0x20000000, "network": 0x40000000}
TIOCSTI = 0x5412
_libc = ctypes.CDLL(None, use_errno=True)


def call(call: str) -> Attempts:
    """Make a system call, with arguments that mean nothing."""
    number = REFUSED_CALLS[call][IS_ARM]
    if number is None:
        yield call, lambda: ""  # this machine has no such call
    else:
        yield call, partial(_let_through, number, *READ_TABLE.get(call, (INVALID,) * 6))


def option(option: str) -> Attempts:
    """Make an allowed call, with arguments that are not allowed."""
    numbers, arguments = REFUSED_ARGUMENTS[option]
    yield option, partial(_let_through, numbers[IS_ARM], *arguments)


def _let_through(number: int, *arguments: int) -> str:
    """Return how the kernel answered a call, or nothing if the filter refused it or there is no such call."""
    ctypes.set_errno(0)
    result = _libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    said = ctypes.get_errno()
    return "" if result == -1 and said == errno.ENOSYS else errno.errorcode.get(said, f"returned {result}")


def clone() -> Attempts:
    """Start a process in new namespaces."""
    for kind, flag in NAMESPACE_FLAGS.items():
        yield kind, partial(_cloned, flag)


def _cloned(flag: int) -> str:
    child = _libc.syscall(ctypes.c_long(220 if IS_ARM else 56), ctypes.c_long(flag | signal.SIGCHLD), 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    if child > 0:
        os.waitpid(child, 0)
    return "a process was started" if child > 0 else ""


def uncounted() -> Attempts:
    """Have the kernel drop children that end, and the processor time that they used."""
    yield "SIG_IGN", _dropped


def _dropped() -> str:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
    except ChildProcessError:
        return "a child that was dropped"
    finally:
        signal.signal(signal.SIGCHLD, before)
    return ""


def other_convention() -> Attempts:
    """Make a call by its number in the x32 ABI, which has 32-bit pointers."""
    if not IS_ARM:
        yield "x32", partial(_let_through, 0x40000000 | 39)  # getpid


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
    """Find a capability that was kept, or a filter that is missing."""
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        yield name, partial(_differs, status[name].lstrip("0"), "")
    for name, wanted in (("NoNewPrivs", "1"), ("Seccomp", "2")):
        yield name, partial(_differs, status[name], wanted)
    for thread in Path("/proc/self/task").iterdir():
        yield f"thread {thread.name}", partial(_is_unfiltered, thread / "status")


def _is_unfiltered(status: Path) -> bool:
    return "\nSeccomp:\t2\n" not in status.read_text()


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
