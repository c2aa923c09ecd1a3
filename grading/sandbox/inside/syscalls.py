"""The system calls that a submission may make, by name, with their numbers on x86_64 and on aarch64.

All other calls are refused, including any that later kernels add. They answer ENOSYS, as on a kernel that does not have
them, so that libraries fall back on something else. The lists contain what Python, NumPy, torch, matplotlib, IPython
and the C library need, in other versions as well as ours. They leave out whatever acts on anything but the submission's
own processes, memory and files, and whatever would let two submissions that run at the same time exchange anything,
such as locks, leases and notifications on files that both see, and queries about the page cache or the machine.
"""

from dataclasses import dataclass

ENOSYS, ENETUNREACH = 38, 101
MACHINES = ("x86_64", "aarch64")
ANY_BIT = 0xFFFFFFFF

SyscallNumbers = tuple[int | None, int | None]  # for each of MACHINES; None if it has no such call

# fmt: off
ALLOWED: dict[str, SyscallNumbers] = {
    # files and folders
    "read": (0, 63), "write": (1, 64), "open": (2, None), "openat": (257, 56),
    "creat": (85, None), "close": (3, 57), "close_range": (436, 436), "stat": (4, None), "fstat": (5, 80),
    "lstat": (6, None), "newfstatat": (262, 79), "statx": (332, 291), "access": (21, None), "faccessat": (269, 48),
    "faccessat2": (439, 439), "lseek": (8, 62), "pread64": (17, 67), "pwrite64": (18, 68), "readv": (19, 65),
    "writev": (20, 66), "preadv": (295, 69), "pwritev": (296, 70), "getdents": (78, None), "getdents64": (217, 61),
    "getcwd": (79, 17), "chdir": (80, 49), "fchdir": (81, 50), "readlink": (89, None), "readlinkat": (267, 78),
    "mkdir": (83, None), "mkdirat": (258, 34), "rmdir": (84, None), "rename": (82, None), "renameat": (264, 38),
    "renameat2": (316, 276), "link": (86, None), "linkat": (265, 37), "symlink": (88, None), "symlinkat": (266, 36),
    "unlink": (87, None), "unlinkat": (263, 35), "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53),
    "fchmodat2": (452, 452), "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "truncate": (76, 45), "ftruncate": (77, 46), "fallocate": (285, 47), "fsync": (74, 82), "fdatasync": (75, 83),
    "umask": (95, 166), "utime": (132, None), "utimes": (235, None), "futimesat": (261, None), "utimensat": (280, 88),
    "statfs": (137, 43), "fstatfs": (138, 44), "getxattr": (191, 8), "lgetxattr": (192, 9), "fgetxattr": (193, 10),
    "getxattrat": (464, 464), "listxattr": (194, 11), "llistxattr": (195, 12), "flistxattr": (196, 13),
    "listxattrat": (465, 465), "sendfile": (40, 71),
    # descriptors, and waiting for them
    "dup": (32, 23), "dup2": (33, None), "dup3": (292, 24), "pipe": (22, None), "pipe2": (293, 59), "poll": (7, None),
    "ppoll": (271, 73), "select": (23, None), "pselect6": (270, 72), "epoll_create": (213, None),
    "epoll_create1": (291, 20), "epoll_ctl": (233, 21), "epoll_wait": (232, None), "epoll_pwait": (281, 22),
    "epoll_pwait2": (441, 441), "eventfd": (284, None), "eventfd2": (290, 19), "signalfd": (282, None),
    "signalfd4": (289, 74), "timerfd_create": (283, 85), "timerfd_settime": (286, 86), "timerfd_gettime": (287, 87),
    # memory
    "brk": (12, 214), "mmap": (9, 222), "munmap": (11, 215), "mremap": (25, 216), "mprotect": (10, 226),
    "msync": (26, 227), "mseal": (462, 462), "membarrier": (324, 283), "map_shadow_stack": (453, 453),
    # processes and threads
    "fork": (57, None), "vfork": (58, None), "execve": (59, 221), "exit": (60, 93), "exit_group": (231, 94),
    "wait4": (61, 260), "waitid": (247, 95), "getpid": (39, 172), "getppid": (110, 173), "gettid": (186, 178),
    "getpgid": (121, 155), "setpgid": (109, 154), "getpgrp": (111, None), "getsid": (124, 156), "setsid": (112, 157),
    "set_tid_address": (218, 96), "set_robust_list": (273, 99), "futex": (202, 98), "futex_waitv": (449, 449),
    "futex_wake": (454, 454), "futex_wait": (455, 455), "futex_requeue": (456, 456), "rseq": (334, 293),
    "arch_prctl": (158, None), "restart_syscall": (219, 128), "getcpu": (309, 168), "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123), "sched_getparam": (143, 121), "sched_getscheduler": (145, 120),
    "sched_getattr": (315, 275), "sched_get_priority_max": (146, 125), "sched_get_priority_min": (147, 126),
    "sched_rr_get_interval": (148, 127), "getpriority": (140, 141), "setpriority": (141, 140), "getrlimit": (97, 163),
    "setrlimit": (160, 164), "getrusage": (98, 165), "times": (100, 153), "capget": (125, 90),
    # signals
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131),
    "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "rt_sigpending": (127, 136),
    "rt_sigtimedwait": (128, 137), "rt_sigsuspend": (130, 133), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "sigaltstack": (131, 132), "pause": (34, None),
    # clocks and timers
    "clock_gettime": (228, 113), "clock_getres": (229, 114), "clock_nanosleep": (230, 115), "nanosleep": (35, 101),
    "gettimeofday": (96, 169), "time": (201, None), "alarm": (37, None), "getitimer": (36, 102),
    "setitimer": (38, 103), "timer_create": (222, 107), "timer_settime": (223, 110), "timer_gettime": (224, 108),
    "timer_getoverrun": (225, 109), "timer_delete": (226, 111),
    # the identity of the process and the machine
    "getuid": (102, 174), "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177), "getresuid": (118, 148),
    "getresgid": (120, 150), "getgroups": (115, 158), "uname": (63, 160), "getrandom": (318, 278),
    # sockets, which can only be local
    "bind": (49, 200), "listen": (50, 201), "accept": (43, 202), "accept4": (288, 242), "connect": (42, 203),
    "shutdown": (48, 210), "getsockname": (51, 204), "getpeername": (52, 205), "sendto": (44, 206),
    "recvfrom": (45, 207), "sendmsg": (46, 211), "recvmsg": (47, 212), "sendmmsg": (307, 269), "recvmmsg": (299, 243),
    "getsockopt": (55, 209),
}
# fmt: on


@dataclass(frozen=True)
class Check:
    """A call that is allowed only if one of its arguments has certain values.

    Attributes:
        numbers: those of the call.
        argument: which one is checked, counted from 0. Only its lower 32 bits are compared, as in the kernel.
        values: the allowed values.
        mask: the bits of it that are compared.
        error: the error that the call returns otherwise; with 0 it pretends to succeed, although nothing was done.
        or_null: another argument. If that is a null pointer, the call is allowed in any case.
    """

    numbers: SyscallNumbers
    argument: int
    values: tuple[int, ...]
    mask: int = ANY_BIT
    error: int = ENOSYS
    or_null: int | None = None


NEW_NAMESPACES = 0x7E020000  # any CLONE_NEW…
AF_UNIX = 1
THE_CALLER = 0  # stands for a process ID
# TCGETS, TCSETS, TCSETSW, TCSETSF, TCSBRK, TCXONC, TCFLSH, TIOCSCTTY, TIOCGPGRP, TIOCSPGRP, TIOCGWINSZ, TIOCSWINSZ,
# FIONREAD, FIONBIO, TIOCNOTTY, TIOCGSID, TIOCGPTPEER, FIONCLEX, FIOCLEX, TIOCGPTN, TIOCSPTLCK, and TCGETS2, TCSETS2,
# TCSETSW2, TCSETSF2 of newer C libraries. TIOCSTI and TIOCLINUX, which type for others, are not allowed.
IOCTL_REQUESTS = (
    *(0x5401, 0x5402, 0x5403, 0x5404, 0x5409, 0x540A, 0x540B, 0x540E, 0x540F, 0x5410, 0x5413, 0x5414),
    *(0x541B, 0x5421, 0x5422, 0x5429, 0x5441, 0x5450, 0x5451, 0x80045430, 0x40045431),
    *(0x802C542A, 0x402C542B, 0x402C542C, 0x402C542D),
)
# F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_GETPIPE_SZ. Locks, leases, notifications and signals
# are not allowed.
FCNTL_COMMANDS = (0, 1, 2, 3, 4, 1030, 1032)
# PR_SET_PDEATHSIG, PR_GET_PDEATHSIG, PR_GET_DUMPABLE, PR_SET_NAME, PR_GET_NAME, PR_GET_SECCOMP, PR_CAPBSET_READ,
# PR_SET_TIMERSLACK, PR_GET_TIMERSLACK, PR_SET_NO_NEW_PRIVS, PR_GET_NO_NEW_PRIVS, PR_SET_THP_DISABLE,
# PR_GET_THP_DISABLE, PR_SVE_GET_VL, PR_GET_SPECULATION_CTRL, PR_GET_TAGGED_ADDR_CTRL, PR_SET_VMA
PRCTL_OPTIONS = (1, 2, 3, 15, 16, 21, 23, 29, 30, 38, 39, 41, 42, 51, 52, 56, 0x53564D41)
# MADV_NORMAL, RANDOM, SEQUENTIAL, WILLNEED, DONTNEED, FREE, REMOVE, DONTFORK, DOFORK, HUGEPAGE, NOHUGEPAGE, DONTDUMP,
# DODUMP, WIPEONFORK, KEEPONFORK, POPULATE_READ, POPULATE_WRITE, COLLAPSE, GUARD_INSTALL, GUARD_REMOVE. MERGEABLE, COLD
# and PAGEOUT, whose effects others can measure, are not allowed.
MADVISE_ADVICE = (0, 1, 2, 3, 4, 8, 9, 10, 11, 14, 15, 16, 17, 18, 19, 22, 23, 25, 102, 103)
# All signals except SIGCHLD. With SIG_IGN or SA_NOCLDWAIT for it, Linux does not count the processor time of children
# that end. Both values are in memory, where the filter cannot look, so setting this signal's action does nothing at
# all. The call succeeds nevertheless, for programs that install a handler and can do without it, such as torch's
# DataLoader and bash. Only a shell whose `wait` needs the handler, like dash's, waits until its time is up.
SIGCHLD = 17
SIGNALS = tuple(number for number in range(1, 65) if number != SIGCHLD)
# SO_REUSEADDR, SO_KEEPALIVE, SO_LINGER, SO_PASSCRED, SO_RCVTIMEO, SO_SNDTIMEO. Buffers and filters are not allowed.
SOCKET_OPTIONS = (2, 9, 13, 16, 20, 21)

CHECKED: dict[str, Check] = {
    # clone3 has its flags in memory, so it is refused, and libraries fall back on clone
    "clone": Check((56, 220), 0, (0,), mask=NEW_NAMESPACES),
    "ioctl": Check((16, 29), 1, IOCTL_REQUESTS),
    "fcntl": Check((72, 25), 1, FCNTL_COMMANDS),
    "prctl": Check((157, 167), 0, PRCTL_OPTIONS),
    "madvise": Check((28, 233), 2, MADVISE_ADVICE),
    "prlimit64": Check((302, 261), 0, (THE_CALLER,)),
    "socket": Check((41, 198), 0, (AF_UNIX,), error=ENETUNREACH),
    "socketpair": Check((53, 199), 0, (AF_UNIX,), error=ENETUNREACH),
    "setsockopt": Check((54, 208), 2, SOCKET_OPTIONS),
    "rt_sigaction": Check((13, 134), 0, SIGNALS, error=0, or_null=1),
}
