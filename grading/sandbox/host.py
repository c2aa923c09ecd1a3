"""The grader's side of the sandbox, which starts it and has it fork a process for each submission."""

import json
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import IO, Any

from grading.sandbox import bubblewrap
from grading.sandbox.cgroup import own_group
from grading.sandbox.failures import HostLostError, KilledError
from grading.sandbox.lifeline import START_SECONDS, hang_up
from grading.sandbox.limits import Limits
from grading.sandbox.payload import packed_payload
from grading.sandbox.submission_process import SubmissionProcess
from grading.sandbox.temporary import temporary
from grading.sandbox.users import own_user


class Host:
    """A box with everything imported. Use it as a context manager; several submissions may run in it side by side."""

    def __init__(self, limits: Limits, *, sandboxed: bool = True) -> None:
        self.limits, self.sandboxed = limits, sandboxed
        self._stack = ExitStack()
        self._changing = RLock()  # held while the box is being started, sent a request, or stopped
        self._control: socket.socket | None = None
        self._ready = self._closed = False
        self._process: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes] | None = None

    def __enter__(self) -> "Host":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill the box and everything in it, for good."""
        self._closed = True
        self._stop()

    def _stop(self) -> None:
        with self._changing:
            self._control, self._ready = None, False
            self._stack.close()

    def launch(self) -> None:
        """Start the box, unless it has been started already. It will take seconds until it is ready.

        Raises:
            HostLostError: the host has been closed.
            NoSandboxError: there can be no box here.
        """
        with self._changing:
            if self._closed:
                raise HostLostError("the sandbox was closed")
            if self._control is None:
                try:
                    self._start()
                except BaseException:
                    self._stop()
                    raise

    def ready(self) -> None:
        """Wait until the box is ready, after starting it if necessary.

        Raises:
            HostLostError: it does not start, or the host has been closed.
        """
        with self._changing:
            self.launch()
            if not self._ready:
                self._hear_that_it_is()

    @contextmanager
    def submission_process(
        self, seconds: float | None = None, limits: Limits | None = None
    ) -> Iterator[SubmissionProcess]:
        """Fork a process for a submission. When the context ends, it is killed with everything that it started.

        ``seconds`` is how much processor time it may use in all, if that is less than the limits allow. Unless
        ``limits`` are given, those of the box apply.
        """
        limits = limits or self.limits
        with ExitStack() as stack:
            user = stack.enter_context(own_user()) if self.sandboxed else os.getuid()
            group = stack.enter_context(own_group()) if self.sandboxed else None
            ours, theirs = (stack.enter_context(end) for end in socket.socketpair())
            lifeline, their_lifeline = (stack.enter_context(end) for end in socket.socketpair())
            if hasattr(socket, "SO_PASSCRED"):
                lifeline.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            folder = "" if self.sandboxed else str(stack.enter_context(temporary("submission")))
            box = self._ask(json.dumps(self._wanted(user, folder, limits)).encode(), theirs, their_lifeline)
            theirs.close()
            their_lifeline.close()
            try:
                most = seconds or limits.notebook
                yield SubmissionProcess(
                    ours, lifeline, limits, most, lambda: _is_there(box), group, sandboxed=self.sandboxed
                )
            except KilledError:  # other submissions may be running in the box, so it stays unless it was killed too
                if not _is_there(box):
                    self._drop(box)
                raise
            except HostLostError as lost:
                said = self._words().rpartition("\n")[2]
                self._drop(box)
                raise HostLostError(f"{lost}: {said}" if said else str(lost)) from None
            finally:
                if not hang_up(lifeline):
                    self._drop(box)  # parts of it may still be running, so start a new box

    def _drop(self, box: "subprocess.Popen[bytes]") -> None:
        """Stop a box, unless another has taken its place."""
        with self._changing:
            if self._process is box:
                self._stop()

    def _wanted(self, user: int, folder: str, limits: Limits) -> dict[str, Any]:
        # Even with a CORE of 0, a program that the system uses for core dumps would get one. With 1, it gets none.
        kernel = {"CORE": 1, "FSIZE": limits.file_size, "NOFILE": limits.files, "NPROC": limits.processes}
        kernel |= {"CPU": limits.processor, "MSGQUEUE": 0, "MEMLOCK": 0, "SIGPENDING": 1000}
        sizes = {name: getattr(limits, name) for name in ("file_size", "memory", "cell_output", "notebook_output")}
        return {"uid": user, "limits": kernel, "folder": folder, **sizes}

    def _ask(self, request: bytes, *ends: socket.socket) -> "subprocess.Popen[bytes]":
        """Send a request to the box, and return the box."""
        with self._changing:
            self.ready()
            assert self._control is not None
            assert self._process is not None
            try:
                socket.send_fds(self._control, [request], [end.fileno() for end in ends])
            except OSError as error:
                self._stop()
                raise HostLostError(f"the sandbox ended ({error})") from None
            return self._process

    def _start(self) -> None:
        payload = self._stack.enter_context(packed_payload())
        self._control, theirs = socket.socketpair()
        self._stack.enter_context(self._control)
        self._said = self._stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 (the stack closes it)
        with theirs:
            self._process = self._popen(payload, theirs, self._said)
        self._stack.callback(_end, self._process)

    def _hear_that_it_is(self) -> None:
        assert self._control is not None
        self._control.settimeout(START_SECONDS)
        try:
            self._ready = bool(self._control.recv(65_536))
        except OSError:
            self._ready = False
        if not self._ready:
            words = self._words()
            self._stop()
            raise HostLostError(f"the sandbox did not start: {words or 'it said nothing'}")
        self._control.settimeout(None)

    def _words(self) -> str:
        """Return the last of what the box has written to its own output, which no submission can reach."""
        with self._changing:
            if self._said is None or self._said.closed:
                return ""
            self._said.seek(max(0, os.fstat(self._said.fileno()).st_size - 2000))
            return self._said.read().decode("utf-8", "replace").strip()

    def _popen(self, payload: Path, control: socket.socket, said: IO[bytes]) -> "subprocess.Popen[bytes]":
        settings: dict[str, str] = {}
        if self.sandboxed:
            line = bubblewrap.command(payload)
        else:
            line = [*bubblewrap.server(), "--bare"]
            warm = str(self._stack.enter_context(temporary("warm")))
            settings = {name: warm if value == "/warm" else value for name, value in bubblewrap.environment().items()}
            settings |= {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(payload)}
        return subprocess.Popen(
            line, stdin=control.fileno(), stdout=said, stderr=said, env=settings, cwd="/", start_new_session=True
        )


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _is_there(box: "subprocess.Popen[bytes]") -> bool:
    """Tell whether a box is still running, a moment after something in it has ended."""
    with suppress(subprocess.TimeoutExpired):
        box.wait(1)
    return box.returncode is None
