"""The grader's side of a box: start it, have it fork a process for a submission, and talk to that process.

Nothing that the process says is trusted: messages are bounded, late ones are not waited for, odd ones end it.
"""

import json
import os
import select
import signal
import socket
import struct
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import RLock
from time import monotonic
from typing import IO, Any

import psutil  # type: ignore[import-untyped]

from grading.course import GradingError
from grading.sandbox import bubblewrap, memory
from grading.sandbox.cgroup import Group, own_group
from grading.sandbox.cpu import Meter, Span
from grading.sandbox.inside import frames
from grading.sandbox.limits import Limits
from grading.sandbox.payload import packed_payload
from grading.sandbox.temporary import temporary
from grading.sandbox.users import own_user
from grading.verdict import Verdict

END = 60.0  # seconds that a submission's processes may take to be gone once they are killed, on a busy machine
START = 180.0  # seconds that everything may take to be imported, on a busy machine
TICK = 0.25  # seconds between looks at the memory and the processor time
KILLED = (
    "something other than the grader or the submission's own code killed its process: the kernel, if the machine has "
    "too little memory for so many `--jobs`, or an administrator"
)


class HostLost(GradingError):
    """The box itself ended, or did not start."""


class Killed(HostLost):
    """Something killed a submission's process that was neither the grader nor the submission itself."""


class Stopped(Exception):
    """A step did not come to its end: ``verdict`` and ``reason`` say why; ``alive`` whether its process goes on.

    ``starved`` is whether it ran out of time because other programs had taken the processors.
    """

    def __init__(self, verdict: Verdict, reason: str, *, alive: bool = False, starved: bool = False) -> None:
        super().__init__(reason)
        self.verdict, self.reason, self.alive, self.starved = verdict, reason, alive, starved


class Host:
    """A box with everything imported. Use it as a context manager; sessions may be open side by side."""

    def __init__(self, limits: Limits, *, sandboxed: bool = True) -> None:
        self.limits, self.sandboxed = limits, sandboxed
        self._stack = ExitStack()
        self._changing = RLock()  # held while the box is started, spoken to, or stopped
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
        """Begin to start the box, unless it has been; it takes seconds until it is ready.

        Raises:
            HostLost: its time is over.
            NoSandbox: there can be no box here.
        """
        with self._changing:
            if self._closed:
                raise HostLost("the box was closed")
            if self._control is None:
                try:
                    self._start()
                except BaseException:
                    self._stop()
                    raise

    def ready(self) -> None:
        """Wait until the box is ready, and start it if need be.

        Raises:
            HostLost: it does not start, or its time is over.
        """
        with self._changing:
            self.launch()
            if not self._ready:
                self._hear_that_it_is()

    @contextmanager
    def session(self, seconds: float | None = None, limits: Limits | None = None) -> Iterator["Session"]:
        """Fork a process for a submission; it is killed, with all that it started, when the context ends.

        ``seconds`` of processor time are what it may use in all, where that is less than the limits say; ``limits`` are
        those of the box, where no others are given.
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
                yield Session(ours, lifeline, limits, most, lambda: _is_there(box), group, sandboxed=self.sandboxed)
            except Killed:  # with others at work in the box, unless that was killed as well
                if not _is_there(box):
                    self._drop(box)
                raise
            except HostLost as lost:
                said = self._words().rpartition("\n")[2]
                self._drop(box)
                raise HostLost(f"{lost}: {said}" if said else str(lost)) from None
            finally:
                if not _hang_up(lifeline):
                    self._drop(box)  # something of it may live on: a new box starts clean

    def _drop(self, box: "subprocess.Popen[bytes]") -> None:
        """Stop a box, unless another has taken its place."""
        with self._changing:
            if self._process is box:
                self._stop()

    def _wanted(self, user: int, folder: str, limits: Limits) -> dict[str, Any]:
        # With a CORE of 0 a program that the system may have for dumps would get one all the same; with 1 it gets none.
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
                raise HostLost(f"the box ended ({error})") from None
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
        self._control.settimeout(START)
        try:
            self._ready = bool(self._control.recv(65_536))
        except OSError:
            self._ready = False
        if not self._ready:
            words = self._words()
            self._stop()
            raise HostLost(f"the box did not start: {words or 'it said nothing'}")
        self._control.settimeout(None)

    def _words(self) -> str:
        """Return what the box has said last, of what it writes where no submission can."""
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
    """Tell whether a box has not ended, a moment after something in it has."""
    with suppress(subprocess.TimeoutExpired):
        box.wait(1)
    return box.returncode is None


def _hang_up(lifeline: socket.socket) -> bool:
    """Have the server kill all that is left of a submission, and tell whether it did: it hangs up when it is done.

    What was killed may take its time to be gone, and a box in which others are at work is not dropped for that.
    """
    lifeline.settimeout(END)
    killed = False
    try:
        lifeline.shutdown(socket.SHUT_WR)
        while said := lifeline.recv(64):
            killed = killed or said != b"up"
    except TimeoutError:
        return killed
    except OSError:
        return True  # it had hung up before
    return True


class Session:
    """The process of one submission, seen from outside. ``box_is_there`` tells whether its box has not ended.

    The process moves into ``group``, if there is one, before it runs any student code.
    """

    def __init__(
        self,
        channel: socket.socket,
        lifeline: socket.socket,
        limits: Limits,
        seconds: float,
        box_is_there: Callable[[], bool],
        group: Group | None,
        *,
        sandboxed: bool,
    ) -> None:
        self._channel, self._lifeline, self.limits, self._box_is_there = channel, lifeline, limits, box_is_there
        self._sandboxed = sandboxed
        self._buffer = bytearray()
        self._process, held = _begun(lifeline, box_is_there, sandboxed=sandboxed)
        self._most_memory = limits.memory * 5 // 4 + held
        added = group is not None and self._process is not None and group.add(self._process.pid, self._most_memory)
        self._group = group if added else None
        self._shared = memory.shared_by_all()
        self.left = 0  # bytes that may still come in answer to what was asked last
        self._look = monotonic() + 2 * TICK  # when to look at the memory and the processor time next
        self.time = Meter(self._process, limits, seconds, self._group)
        self.cut = False
        channel.setblocking(False)

    def ask(self, message: dict[str, Any], most: int = frames.MOST_BYTES) -> Iterator[dict[str, Any]]:
        """Send a message, and yield what comes back, at most so many bytes, until it is done.

        ``cut`` then says whether the process kept back what would have been too much output.

        Raises:
            Stopped: it took too long, ended, took too much, or said what makes no sense.
        """
        span = Span(self.time, self.limits.cell, self.time.whole)
        self.left = most
        self._send(message, span)
        late: Stopped | None = None
        while True:
            try:
                answer = self._message(span)
            except TimeoutError:
                if late:
                    raise late from None
                late, span = self._too_long(span), Span(self.time, self.limits.grace)
                with suppress(OSError):
                    self._lifeline.send(b"I")
                continue
            if answer.get("done") is True:
                self.cut = answer.get("cut") is True
                if late:
                    late.alive = True
                    raise late
                return
            if answer.get("interrupted") is not True:
                yield answer

    def _too_long(self, span: Span) -> Stopped:
        if self.time.whole.left() <= 0:
            reason, starved = self.time.whole.why(self.limits.notebook, "This is the limit for the whole notebook.")
        else:
            reason, starved = span.why(self.limits.cell, "Is there a loop that never ends?")
        return Stopped(Verdict.TIMEOUT, reason, starved=starved)

    def _send(self, message: dict[str, Any], span: Span) -> None:
        waiting = memoryview(frames.pack(message))
        while waiting:
            try:
                self._wait(span, write=True)
            except TimeoutError:
                raise self._too_long(span) from None
            try:
                waiting = waiting[self._channel.send(waiting) :]
            except BlockingIOError:
                continue
            except OSError:
                raise self._gone() from None

    def _message(self, span: Span) -> dict[str, Any]:
        """Return the next message. What has come of it stays, where it is not complete in time."""
        start = frames.LENGTH.size
        self._gather(start, span)
        (length,) = frames.LENGTH.unpack(self._buffer[:start])
        if length > self.left:
            raise Stopped(Verdict.OUTPUT_LIMIT, "sent far more than its output may be.")
        self._gather(start + length, span)
        body = bytes(self._buffer[start : start + length])
        del self._buffer[: start + length]
        self.left -= length
        try:
            return frames.unpack(body)
        except frames.MessageError:
            raise Stopped(Verdict.TAMPERED, "wrote into the channel that its answers go through.") from None

    def _gather(self, size: int, span: Span) -> None:
        """Read until there are so many bytes."""
        while len(self._buffer) < size:
            self._wait(span)
            try:
                part = self._channel.recv(1 << 18)
            except BlockingIOError:
                continue
            except OSError:
                part = b""
            if not part:
                raise self._gone()
            self._buffer += part

    def _wait(self, span: Span, *, write: bool = False) -> None:
        """Wait until there is something to read, or room to write, and watch memory and time meanwhile."""
        while True:
            if monotonic() >= self._look:  # also while it talks without a pause
                self._watch()
            left = span.left()
            if left <= 0:
                raise TimeoutError
            ends = ([self._lifeline], [self._channel]) if write else ([self._channel, self._lifeline], [])
            readable, writable, _ = select.select(*ends, [], min(left, TICK))
            if self._channel in readable or writable:
                return
            if self._lifeline in readable:
                raise self._ending()

    def _ending(self) -> Stopped:
        """Return how the process ended, which the server says through the lifeline."""
        said = self._lifeline.recv(64)
        if not said and not self._box_is_there():
            raise HostLost("the box ended")
        try:
            status, seconds, limit = map(float, said.split())
        except ValueError:
            return Stopped(Verdict.INFRASTRUCTURE, "ran in a process that was lost.")
        self.time.used = max(self.time.used, seconds)
        if status == -signal.SIGKILL and self._group and self._group.out_of_memory():
            return self._too_much_memory()
        return _how_it_ended(int(status), seconds, min(limit, self.limits.processor), sandboxed=self._sandboxed)

    def _gone(self) -> Stopped:
        """Return how a process ended that has hung up."""
        if select.select([self._lifeline], [], [], 5)[0]:
            return self._ending()
        return Stopped(Verdict.CRASHED, "closed the channel that its answers go through.")

    def _watch(self) -> None:
        self._look = monotonic() + TICK
        if self._process is None:
            self.time.now()
            return
        with suppress(psutil.Error):
            family = [self._process, *self._process.children(recursive=True)]
            self.time.look(family)
            held: float = memory.together(family) if family[1:] else memory.alone(self._process)
            held += memory.of_the_kernel(family, sandboxed=self._sandboxed)
            if memory.shared_by_all() - self._shared > self.limits.memory // 10:
                held += memory.shared_by(family)
            if held > self._most_memory:
                self._process.kill()
                raise self._too_much_memory()

    def _too_much_memory(self) -> Stopped:
        return Stopped(Verdict.OUT_OF_MEMORY, f"took more than {self.limits.memory / 1e9:.2g} GB of memory.")


def _begun(
    lifeline: socket.socket, box_is_there: Callable[[], bool], *, sandboxed: bool
) -> tuple[psutil.Process | None, float]:
    """Wait until a process is isolated, and return the process, if this system names it, and the bytes it holds.

    Raises:
        HostLost: it is not.
    """
    lifeline.settimeout(START)
    try:
        said, sender = _received(lifeline)
    except OSError as error:
        raise HostLost(f"a submission was not isolated within {START:g} seconds ({error})") from None
    if said != b"up":
        raise HostLost("a submission could not be isolated" if box_is_there() else "the box ended")
    lifeline.settimeout(None)
    try:
        if not sender:
            return None, 0
        process = psutil.Process(sender)
        return process, memory.alone(process) + memory.of_the_kernel([process], sandboxed=sandboxed)
    except psutil.Error:
        raise HostLost("a submission's process ended before it was begun") from None


def _received(lifeline: socket.socket) -> tuple[bytes, int]:
    """Return what came on the lifeline, and the sender's process number as it is known on this side, or 0."""
    if not hasattr(socket, "SCM_CREDENTIALS"):
        return lifeline.recv(64), 0
    said, extra, *_ = lifeline.recvmsg(64, socket.CMSG_SPACE(struct.calcsize("3i")))
    numbers = [struct.unpack("3i", data)[0] for _, kind, data in extra if kind == socket.SCM_CREDENTIALS]
    return said, numbers[0] if numbers else 0


def _how_it_ended(status: int, seconds: float, limit: float, *, sandboxed: bool) -> Stopped:
    """Return how a process ended, by its status and the seconds of processor time that it used, and could use.

    In the sandbox it is the first process of its namespace, so that nothing in there can send it a SIGKILL. The kernel
    does once it has used all its processor time, or when the machine runs out of memory, and an administrator may.
    Where the submission's group reached its own memory limit, this function is not called.

    Raises:
        Killed: neither the grader nor the submission can have done this.
    """
    if status == -signal.SIGKILL and round(seconds) >= limit:
        return Stopped(Verdict.TIMEOUT, "used more processor time than its process was allowed.")
    if status == -signal.SIGKILL and sandboxed:
        raise Killed(KILLED)
    if status < 0:
        with suppress(ValueError):
            return Stopped(
                Verdict.CRASHED, f"ended the Python process that it ran in ({signal.Signals(-status).name})."
            )
    return Stopped(Verdict.CRASHED, "ended the Python process that it ran in.")
