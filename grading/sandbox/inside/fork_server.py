"""The process in the box that has everything imported, and forks once for each submission.

It never runs a student's code, and stays single-threaded, because a fork of a process with threads may hang. Through a
submission's lifeline the grader can have it interrupted or, by hanging up, killed with all that it started.
"""

import fcntl
import gc
import json
import os
import resource
import select
import shutil
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from grading.sandbox.inside import forked_process, isolation

NO_LIMIT = 1 << 31  # seconds
CONTROL = 0  # the file descriptor that the grader speaks through


def main() -> None:
    """Get ready, say so, and serve the grader until it hangs up."""
    gc.disable()  # the imported modules stay
    sandboxed = "--bare" not in sys.argv
    if sandboxed and os.getuid():
        isolation.enter_user_namespace()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a submission handles it again while its code runs
    control = socket.socket(fileno=os.dup(CONTROL))
    _end_with_the_grader(control)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), CONTROL)
    for fonts in Path(sys.prefix, "share", "matplotlib").glob("fontlist-*.json"):  # made when this was installed
        shutil.copy(fonts, os.environ["MPLCONFIGDIR"])
    from grading.sandbox.inside.shell import warmed  # this imports everything that an assignment may need

    shell = warmed()
    if (threads := _threads()) > 1:
        raise SystemExit(f"{threads} threads are running, but only one may run: a forked process could hang")
    gc.collect()
    gc.freeze()
    gc.enable()
    server = ForkServer(shell, control, sandboxed=sandboxed)
    fcntl.fcntl(control, fcntl.F_SETFL, 0)  # from here on, requests are read
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    control.sendall(b"ready")
    server.serve()


def _end_with_the_grader(control: socket.socket) -> None:
    """Exit if the grader hangs up during the imports, which take seconds.

    Bubblewrap asks the kernel to be killed together with the grader, but the grader may end before that.
    """
    signal.signal(signal.SIGIO, lambda *_: os._exit(1))
    fcntl.fcntl(control, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(control, fcntl.F_SETFL, os.O_ASYNC)  # the kernel sends a SIGIO when there is something to read
    # the grader sends nothing before this process is ready, so it has hung up
    if select.select([control], [], [], 0)[0]:
        os._exit(1)


def _threads() -> int:
    return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1


class ForkServer:
    """Forks a shell for each submission, and looks after the processes until each is reaped."""

    def __init__(self, shell: Any, control: socket.socket, *, sandboxed: bool) -> None:
        self.shell, self.control, self.sandboxed = shell, control, sandboxed
        self.lifelines: dict[int, socket.socket] = {}  # those of the running processes, by process ID
        self.dying: set[int] = set()
        self.woken, self.wake = os.pipe()
        os.set_blocking(self.wake, False)
        signal.set_wakeup_fd(self.wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self.processes = isolation.open_pid_namespace() if sandboxed else -1
        isolation.machine_files()  # all submissions should be told the same about the machine

    def serve(self) -> None:
        """Do what the grader asks, one thing after another; once it hangs up, kill what is left of every submission."""
        while True:
            held = {lifeline: pid for pid, lifeline in self.lifelines.items() if pid not in self.dying}
            waiting: list[Any] = [self.control, self.woken, *held]
            ready, _, _ = select.select(waiting, [], [])
            for lifeline in held.keys() & set(ready):
                self._obey(held[lifeline], lifeline)
            if self.woken in ready:
                os.read(self.woken, 4096)
                self._reap()
            if self.control in ready:
                message, files, *_ = socket.recv_fds(self.control, 65_536, 2)
                if not message:
                    for pid in self.lifelines:
                        self._kill(pid)
                    return
                self._start(json.loads(message), *files)

    def _start(self, wanted: dict[str, Any], channel: int, lifeline: int) -> None:
        """Fork a process for a submission. If that fails, close the lifeline."""
        ours = socket.socket(fileno=lifeline)
        try:
            pid = isolation.fork_into_pid_namespace(self.processes) if self.sandboxed else os.fork()
        except OSError as error:
            print(f"a submission's process could not be made: {error}", file=sys.stderr)
            ours.close()
        else:
            if not pid:
                self._close_inherited(keep=ours)
                forked_process.serve_submission(self.shell, wanted, channel, ours, sandboxed=self.sandboxed)
            self.lifelines[pid] = ours
        os.close(channel)

    def _close_inherited(self, *, keep: socket.socket) -> None:
        """Close, in a submission's process, the server's connections to the grader and those of other submissions."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for line in (self.control, *self.lifelines.values()):
            line.close()
        for file in (self.woken, self.wake, self.processes):
            with suppress(OSError):  # without a sandbox, there is no process namespace
                os.close(file)

    def _obey(self, pid: int, lifeline: socket.socket) -> None:
        try:
            order = lifeline.recv(1)
        except OSError:  # the grader hung up with something unread
            order = b""
        if order:
            os.kill(pid, signal.SIGINT)
            return
        self._kill(pid)
        self.dying.add(pid)
        with suppress(OSError):
            lifeline.sendall(b"killed")

    def _kill(self, pid: int) -> None:
        """Kill a submission's process, and with it all processes of its namespace or, without one, of its group."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL) if self.sandboxed else os.killpg(pid, signal.SIGKILL)

    def _reap(self) -> None:
        """Collect each process that has ended, report how it ended and its processor time and limit, and hang up."""
        while self.lifelines:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) if self.sandboxed else None
            limit = _processor_limit(ended.si_pid) if ended else NO_LIMIT
            pid, code, used = os.wait4(ended.si_pid if ended else -1, os.WNOHANG)
            if not pid:
                return
            if not self.sandboxed:
                self._kill(pid)  # what it has left behind
            self.dying.discard(pid)
            lifeline = self.lifelines.pop(pid, None)
            if lifeline is None:
                continue  # this is not a submission, but a process left behind by one without a sandbox
            with lifeline, suppress(OSError):  # the grader may have ended
                lifeline.sendall(
                    f"{os.waitstatus_to_exitcode(code)} {used.ru_utime + used.ru_stime:.2f} {limit}".encode()
                )


def _processor_limit(pid: int) -> int:
    """Return how many seconds of processor time an ended process could use, which it may have reduced."""
    try:
        limit = resource.prlimit(pid, resource.RLIMIT_CPU)[1]
    except PermissionError:
        # Root has given up the right to ask like this, but its /proc shows all processes that it started.
        (line,) = (x for x in Path(f"/proc/{pid}/limits").read_text().splitlines() if x.startswith("Max cpu time"))
        limit = int(line.split()[-2].replace("unlimited", str(NO_LIMIT)))
    return NO_LIMIT if limit == resource.RLIM_INFINITY else limit


if __name__ == "__main__":
    main()
