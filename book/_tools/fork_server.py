"""Start Python programs as forks of one process that has already imported what they need.

Importing torch, matplotlib or the grading engine takes seconds of processor time, and a build of the book starts about
fifty programs that need them: the kernel of each page, and each command that a page for instructors shows.

``python -m _tools.fork_server MODULE...`` is that process. It imports the modules, and then forks for each request.
"""

import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock

KILLED = -signal.SIGKILL


class Program:
    """A program that the server has started, with what jupyter_client uses of :class:`subprocess.Popen`."""

    stdin = stdout = stderr = None

    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._answers = connection, connection.makefile("r", encoding="ascii")
        self.returncode: int | None = None
        self.pid = int(self._answers.readline())

    def poll(self) -> int | None:
        """Return the exit code, or None while the program runs."""
        if self.returncode is None and select.select([self._connection], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self) -> int:
        """Wait for the end of the program, and return its exit code: as for Popen, minus the number of a signal."""
        if self.returncode is None:
            self.returncode = int(self._answers.readline() or KILLED)  # no answer: the server was killed, too
            self._answers.close()
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the program has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """End the program at once."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Ask the program to end."""
        self.send_signal(signal.SIGTERM)


class ForkServer:
    """A process that has imported modules. It starts with the first program, and ends with the process that asked."""

    def __init__(self, *modules: str) -> None:
        self._command = [sys.executable, "-m", __name__, *modules]
        self._control: socket.socket | None = None  # where the server takes requests
        self._starting = Lock()

    def start(
        self,
        arguments: Sequence[str],
        *,
        cwd: str | Path,
        env: Mapping[str, str],
        stdout: int = 1,
        stderr: int = 2,
    ) -> Program:
        """Start ``python -m ARGUMENTS`` as a fork, in a session of its own and with nothing to read."""
        ours, theirs = socket.socketpair()
        with theirs, Path(os.devnull).open("rb") as nothing, self._starting:
            self._control = self._control or self._serving()
            socket.send_fds(self._control, [b"1"], [theirs.fileno(), nothing.fileno(), stdout, stderr])
        request = {"arguments": [*arguments], "cwd": str(cwd), "env": dict(env)}
        ours.sendall(json.dumps(request).encode() + b"\n")
        return Program(ours)

    def stop(self) -> None:
        """End the server."""
        if self._control:
            self._control.close()
            self._process.wait()

    def _serving(self) -> socket.socket:
        """Start the server."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen([*self._command, str(theirs.fileno())], pass_fds=[theirs.fileno()])
        return ours


def serve(control: socket.socket) -> list[int]:
    """Fork for each request. In a fork, return what the request came with; in the server, return at the end."""
    ended, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # which may be meant for a program of the same session
    clients: dict[int, socket.socket] = {}
    while True:
        ready, *_ = select.select([control, ended], [], [])
        if ended in ready:
            ended.recv(4096)
            answer_ended(clients)
        if control in ready:
            request, passed, *_ = socket.recv_fds(control, 1, 4)
            if not request:
                return []
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                return passed
            for number in passed[1:]:
                os.close(number)
            clients[pid] = socket.socket(fileno=passed[0])


def answer_ended(clients: dict[int, socket.socket]) -> None:
    """Tell who asked for them the exit codes of the programs that have ended."""
    for pid in [*clients]:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            with clients.pop(pid) as client:
                client.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def become(passed: Sequence[int]) -> None:
    """Be the program that a request asks for, to its end."""
    for number, stream in enumerate(passed[1:]):
        os.dup2(stream, number)
        os.close(stream)
    os.setsid()
    with socket.socket(fileno=passed[0]) as client, client.makefile("r", encoding="utf-8") as lines:
        asked = json.loads(lines.readline())
        client.sendall(f"{os.getpid()}\n".encode())
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.path[0] = asked["cwd"]  # as for python -m
    sys.argv = asked["arguments"]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    *modules, number = sys.argv[1:]
    for module in modules:
        importlib.import_module(module)
    with socket.socket(fileno=int(number)) as requests:
        received = serve(requests)
    if received:
        become(received)
