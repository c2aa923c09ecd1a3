"""The process of one submission, as the grader sees it: send it requests, and watch its time and memory.

Nothing that the process says is trusted: messages are bounded, late ones are not awaited, and malformed ones end the
process.
"""

import select
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from time import monotonic
from typing import Any

import psutil  # type: ignore[import-untyped]

from grading.sandbox import memory_usage
from grading.sandbox.cgroup import Group
from grading.sandbox.cpu_time import Meter, Span
from grading.sandbox.failures import HostLostError, StoppedError, how_it_ended
from grading.sandbox.inside import frames
from grading.sandbox.lifeline import wait_until_isolated
from grading.sandbox.limits import Limits
from grading.verdict import Verdict

TICK = 0.25  # seconds between checks of the memory and the processor time


class SubmissionProcess:
    """The process of one submission, seen from outside. ``box_is_there`` tells whether its sandbox is still running.

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
        self._process, held = wait_until_isolated(lifeline, box_is_there, sandboxed=sandboxed)
        self._most_memory = limits.memory * 5 // 4 + held
        added = group is not None and self._process is not None and group.add(self._process.pid, self._most_memory)
        self._group = group if added else None
        self._shared = memory_usage.shared_bytes_of_machine()
        self._span: Span  # the time of the last request
        self.left = 0  # how many more bytes the answer to the last request may have
        self._look = monotonic() + 2 * TICK  # when to check the memory and the processor time next
        self.time = Meter(self._process, limits, seconds, self._group)
        self.cut = False
        channel.setblocking(False)

    def ask(
        self, message: dict[str, Any], most: int = frames.MAX_MESSAGE_BYTES, seconds: float | None = None
    ) -> Iterator[dict[str, Any]]:
        """Send a message, and yield what comes back, up to ``most`` bytes, until the process is done.

        It may take ``seconds`` of processor time, or as long as a cell. ``cut`` then says whether the process held back
        any output because it was too much.

        Raises:
            StoppedError: it took too long, ended, used too much memory, or sent something that makes no sense.
        """
        span = self._span = Span(self.time, seconds or self.limits.cell, self.time.whole)
        self.left = most
        self._send(message, span)
        late: StoppedError | None = None
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
                    late.alive = not self._has_running_children()
                    raise late
                return
            if answer.get("interrupted") is not True:
                yield answer

    def reply(self, message: dict[str, Any]) -> None:
        """Answer what the process has asked while it was being asked, within the same time.

        Raises:
            StoppedError: it does not read the answer, or has ended.
        """
        self._send(message, self._span)

    def _has_running_children(self) -> bool:
        """Tell whether processes that the submission has started are running: they use up the next cell's time."""
        with suppress(psutil.Error):
            return self._process is not None and any(map(_is_running, self._process.children(recursive=True)))
        return False

    def _too_long(self, span: Span) -> StoppedError:
        if self.time.whole.left() <= 0:
            reason, starved = self.time.whole.why(self.limits.notebook, "This is the limit for the whole notebook.")
        else:
            reason, starved = span.why(self.limits.cell, "Is there a loop that never ends?")
        return StoppedError(Verdict.TIMEOUT, reason, starved=starved)

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
        """Return the next message. If it is not complete in time, the part that has arrived is kept."""
        start = frames.LENGTH.size
        self._gather(start, span)
        (length,) = frames.LENGTH.unpack(self._buffer[:start])
        if length > self.left:
            raise StoppedError(Verdict.OUTPUT_LIMIT, "sent far more output than is allowed.")
        self._gather(start + length, span)
        body = bytes(self._buffer[start : start + length])
        del self._buffer[: start + length]
        self.left -= length
        try:
            return frames.unpack(body)
        except frames.MessageError:
            raise StoppedError(Verdict.TAMPERED, "wrote into the channel that its answers go through.") from None

    def _gather(self, size: int, span: Span) -> None:
        """Read until the buffer has ``size`` bytes."""
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
            if monotonic() >= self._look:  # also when it sends without a pause
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

    def _ending(self) -> StoppedError:
        """Return how the process ended, as the server reports through the lifeline."""
        said = self._lifeline.recv(64)
        if not said and not self._box_is_there():
            raise HostLostError("the sandbox ended")
        try:
            status, seconds, limit = map(float, said.split())
        except ValueError:
            return StoppedError(Verdict.INFRASTRUCTURE, "ran in a process that was lost.")
        self.time.used = max(self.time.used, seconds)
        if status == -signal.SIGKILL and self._group and self._group.out_of_memory():
            return self._too_much_memory()
        return how_it_ended(int(status), seconds, min(limit, self.limits.processor), sandboxed=self._sandboxed)

    def _gone(self) -> StoppedError:
        """Return how a process that closed its channel ended."""
        if select.select([self._lifeline], [], [], 5)[0]:
            return self._ending()
        return StoppedError(Verdict.CRASHED, "closed the channel that its answers go through.")

    def _watch(self) -> None:
        self._look = monotonic() + TICK
        if self._process is None:
            self.time.now()
            return
        with suppress(psutil.Error):
            family = [self._process, *self._process.children(recursive=True)]
            self.time.look(family)
            if any(held > self._most_memory for held in accumulate(self._held(family))):
                self._process.kill()
                raise self._too_much_memory()

    def _held(self, family: Sequence[psutil.Process]) -> Iterator[float]:
        """Yield the bytes that processes hold, by kind. The last kind is slow to measure, and often not needed."""
        yield memory_usage.bytes_of_processes(family) if family[1:] else memory_usage.bytes_of_process(family[0])
        yield memory_usage.max_kernel_bytes(family, sandboxed=self._sandboxed)
        if memory_usage.shared_bytes_of_machine() - self._shared > self.limits.memory // 10:
            yield memory_usage.shared_bytes(family)

    def _too_much_memory(self) -> StoppedError:
        return StoppedError(Verdict.OUT_OF_MEMORY, f"took more than {self.limits.memory / 1e9:.2g} GB of memory.")


def _is_running(process: psutil.Process) -> bool:
    """Tell whether a process is computing, or is blocked in the kernel, as it may be while it forks.

    A process that has ended, has been stopped or is sleeping is neither.
    """
    with suppress(psutil.Error):
        return process.status() in (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP)
    return False
