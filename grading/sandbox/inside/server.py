"""The process in the box that has everything imported already, and forks once for each submission.

It never runs a student's code, and stays single-threaded: a fork of a process with threads may hang.
"""

import contextlib
import gc
import json
import os
import select
import signal
import socket
import stat
import sys
import tempfile
import traceback
from typing import Any

from grading.sandbox.inside import walls

HOME = "/scratch"
SCRATCH = (HOME, "/tmp", "/dev/shm", "/warm")  # each submission finds them empty: what it may write, and what is hidden
CONTROL = 0  # the file descriptor that the grader speaks through
FAILED = 70  # the exit status of a process that could not be shut in


def main() -> None:
    """Get ready, say so, and fork a process for each request until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a submission takes it up again, while its code runs
    control = socket.socket(fileno=os.dup(CONTROL))
    walled = "--bare" not in sys.argv
    from grading.sandbox.inside.shell import warmed  # which imports all that an assignment may want

    shell = warmed()
    threads = _threads()
    if threads > 1:
        raise SystemExit(f"{threads} threads run where one has to: a forked process could hang")
    gc.collect()
    gc.freeze()
    control.sendall(b"ready")
    while True:
        message, files, *_ = socket.recv_fds(control, 65_536, 2)
        if not message:
            return
        if not (child := os.fork()):
            control.close()
            _shut_in(shell, json.loads(message), *files, walled=walled)
        for file in files:
            os.close(file)
        os.waitpid(child, 0)


def _threads() -> int:
    return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1


def _shut_in(shell: Any, wanted: dict[str, Any], channel: int, leash: int, *, walled: bool) -> None:
    """Raise the walls and leave the rest to a child: the first process of a namespace is one that was born there."""
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), CONTROL)  # no submission is to find the grader's line to the server
        if walled:
            _share_no_position()
            python = [os.path.realpath(place) for place in {sys.prefix, sys.base_prefix}]
            walls.part_from_others(dict.fromkeys(SCRATCH, wanted["file_size"]), wanted["uid"], python)
        if not os.fork():
            _watch(shell, wanted, channel, socket.socket(fileno=leash), walled)
        os._exit(0)
    except BaseException:
        traceback.print_exc()  # for the grader, who reads it where a box does not work
    finally:
        os._exit(FAILED)


def _share_no_position() -> None:
    """Open anew what the server holds open, fonts mostly: a position is common to all forks, and could carry a word."""
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the list itself was read through one that is closed now
            if int(name) > 2 and stat.S_ISREG(os.fstat(int(name)).st_mode):
                own = os.open(f"/proc/self/fd/{name}", os.O_RDONLY)
                os.dup2(own, int(name), inheritable=False)
                os.close(own)


def _watch(shell: Any, wanted: dict[str, Any], channel: int, leash: socket.socket, walled: bool) -> None:
    """Start the student's process, interrupt or kill it as the grader says, and bury whatever it leaves."""
    try:
        if walled:
            walls.see_only_own_processes()
            walls.become(wanted["uid"])
            walls.give_up_rights()
            walls.filter_calls()
        os.chdir(HOME if walled else wanted["folder"])
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        if walled:
            walls.hide_memory(hidden=True)
        student = os.fork()
        if not student:
            signal.set_wakeup_fd(-1)
            for end in (woken, wake):  # or it could take the keeper's word away, and have it wait for ever
                os.close(end)
            leash.close()
            _be_the_student(shell, wanted, channel, walled)
        os.close(channel)
        leash.sendall(b"up")
        _until_the_end(leash, woken, student, walled)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def _until_the_end(leash: socket.socket, woken: int, student: int, walled: bool) -> None:
    status = None
    while status is None:
        waiting: list[Any] = [leash, woken]
        ready, _, _ = select.select(waiting, [], [])
        if leash in ready:
            order = leash.recv(1)
            if not order:
                break
            os.kill(student, signal.SIGINT)
        if woken in ready:
            os.read(woken, 64)
            status = _buried(student)
    _kill(student, walled)
    if status is not None:
        leash.sendall(f" {status}".encode())


def _buried(student: int) -> int | None:
    """Collect every process that has ended, and return how the student's did, if it is among them."""
    status = None
    while True:
        try:
            pid, code = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if pid == 0:
            return status
        if pid == student:
            status = os.waitstatus_to_exitcode(code)


def _kill(student: int, walled: bool) -> None:
    """Kill everything else in this namespace, or without one, the student's group of processes, and wait for it."""
    try:
        os.kill(-1, signal.SIGKILL) if walled else os.killpg(student, signal.SIGKILL)
        while True:
            os.waitpid(-1, 0)
    except (ProcessLookupError, ChildProcessError):
        return


def _be_the_student(shell: Any, wanted: dict[str, Any], channel: int, walled: bool) -> None:
    """Become the process that a submission runs in: nothing open but its channel, and limits on everything."""
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        os.environ.update(dict.fromkeys(("HOME", "IPYTHONDIR", "XDG_CACHE_HOME"), os.getcwd()))
        os.environ["TMPDIR"] = tempfile.tempdir = "/tmp" if walled else os.getcwd()
        limits = dict(wanted["limits"])
        if walled:
            walls.hide_memory(hidden=False)  # from itself: /proc/self would belong to root
        else:
            limits.pop("NPROC", None)  # it would count all processes of whoever grades
        if addresses := walls.address_space():
            limits["AS"] = addresses + wanted["memory"]
        walls.limit(limits)
        from grading.sandbox.inside.session import Session

        Session(shell, channel, wanted).serve()
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
