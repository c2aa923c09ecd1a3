"""A process that the server has forked for a submission: it isolates itself, then runs the submission's cells."""

import contextlib
import os
import socket
import stat
import sys
import tempfile
import traceback
from typing import Any, NoReturn

from grading.sandbox.inside import isolation, refusals

HOME = "/scratch"
# Each submission gets its own empty file systems here.
WRITABLE_FOLDERS = (HOME, "/tmp", "/dev/shm", "/warm")


def serve_submission(
    shell: Any, wanted: dict[str, Any], channel: int, lifeline: socket.socket, *, sandboxed: bool
) -> NoReturn:
    """Isolate this process, say so through the lifeline, and serve the grader until it hangs up."""
    try:
        if sandboxed:
            _isolate(wanted)
        os.chdir(HOME if sandboxed else wanted["folder"])
        os.setsid()
        os.environ.update(dict.fromkeys(("HOME", "IPYTHONDIR", "XDG_CACHE_HOME"), os.getcwd()))
        os.environ["TMPDIR"] = tempfile.tempdir = "/tmp" if sandboxed else os.getcwd()
        _limit(wanted, sandboxed=sandboxed)
        from grading.sandbox.inside.cell_runner import CellRunner

        runner = CellRunner(shell, channel, wanted)
        _forget_grader()
        with lifeline:
            lifeline.sendall(b"up")
        runner.serve()
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)  # the grader shows this if a box does not work
    finally:
        os._exit(0)


def _forget_grader() -> None:
    """Remove the grader's modules, except ``refusals``, from ``sys.modules``, so that student code finds none there."""
    for name in list(sys.modules):
        if name.partition(".")[0] == __name__.partition(".")[0] and name != refusals.__name__:
            del sys.modules[name]


def _isolate(wanted: dict[str, Any]) -> None:
    _reopen_files()
    python = [os.path.realpath(place) for place in {sys.prefix, sys.base_prefix}]
    isolation.unshare_namespaces(dict.fromkeys(WRITABLE_FOLDERS, wanted["file_size"]), wanted["uid"], python)
    isolation.mount_private_proc()
    isolation.become_user(wanted["uid"])
    isolation.drop_capabilities()
    isolation.install_seccomp_filter()


def _reopen_files() -> None:
    """Reopen each file that the server holds open, since a file position shared by all forks could carry messages."""
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # one of them was the listing itself, which is closed now
            if int(name) > 2 and stat.S_ISREG(os.fstat(int(name)).st_mode):
                own = os.open(f"/proc/self/fd/{name}", os.O_RDONLY)
                os.dup2(own, int(name), inheritable=False)
                os.close(own)


def _limit(wanted: dict[str, Any], *, sandboxed: bool) -> None:
    limits = dict(wanted["limits"])
    if not sandboxed:
        limits.pop("NPROC", None)  # it would count all processes of the user who grades
    if addresses := isolation.address_space():
        limits["AS"] = addresses + wanted["memory"]
    isolation.set_limits(limits)
