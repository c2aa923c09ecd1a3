"""Work on what a student wrote, in a child process with bounded time and memory.

On some inputs, parsers, tokenizers and converters run for minutes. The grader must not have to wait for them, and must
lose nothing but the result. So each submission is read, searched and rendered in a forked child, which has limited time
and memory, and cannot write to a file or, on Linux, open a connection. If root grades, the child runs as the user
``nobody``, with the right to read files. If an ordinary user grades, it keeps that user's rights.

The children are forked from a server process that has imported what they need. What they send back is JSON.
"""

import ctypes
import gc
import json
import os
import platform
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from multiprocessing.util import Finalize
from threading import Lock
from time import monotonic
from types import ModuleType
from typing import Any

from grading.course import GradingError
from grading.sandbox.inside import isolation
from grading.sandbox.inside.syscalls import MACHINES
from grading.sandbox.temporary import temporary

PRELOADED = "grading.preloaded"  # what the server of the children imports, which takes a second
CPU_SECONDS = 20  # seconds of processor time; the slowest honest page takes less than one
CLOCK_FACTOR = 15  # elapsed time may be this many times the processor time, on a busy machine
MAX_MEMORY_BYTES = 1_000_000_000  # in addition to what the imported modules take
MAX_RESULT_BYTES = 200_000_000  # the largest result is a page, which shows every figure of a notebook
NOBODY_UID = 65_534
SET_PDEATHSIG, SET_KEEPCAPS, CAP_DAC_READ_SEARCH = 1, 8, 2

Work = Callable[..., Iterator[Any]]
_starting = Lock()


class ExceededError(Exception):
    """The work took more time or memory than it was allowed.

    The text is a predicate, such as "took more than 20 seconds of processor time". ``values`` are those that had
    already been received.
    """

    def __init__(self, text: str, values: Sequence[Any] = ()) -> None:
        super().__init__(text)
        self.values = values


class WorkFailedError(ExceededError):
    """The work raised an exception. The text is a predicate: "failed (ValueError: …)"."""


class LostError(GradingError):
    """The child did not start, or something else ended it, twice. This says nothing about the work."""


def values(work: Work, *arguments: Any, seconds: int = CPU_SECONDS) -> list[Any]:
    """Run a generator in a bounded child, and return its values, which must be JSON-serializable.

    Args:
        work: a generator function of a module, which the child imports by its name.
        arguments: what it is called with; they are pickled.
        seconds: the processor time that the child may take.

    Raises:
        ExceededError: the child took more time or memory than it may, or crashed.
        WorkFailedError: the work raised an exception.
        LostError: there was no child, or something else ended it, twice.
    """
    try:
        return _values(work, arguments, seconds)
    except LostError:
        return _values(work, arguments, seconds)


def value(work: Work, *arguments: Any, seconds: int = CPU_SECONDS) -> Any:
    """Return the only value of a generator that runs in a bounded child. See :func:`values`."""
    (only,) = values(work, *arguments, seconds=seconds)
    return only


def _values(work: Work, arguments: tuple[Any, ...], seconds: int) -> list[Any]:
    context = get_context("forkserver")
    context.set_forkserver_preload([PRELOADED])
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(theirs, work, arguments, seconds), daemon=True)
    with ours:
        try:
            with theirs:
                _start(child)
        except (OSError, EOFError) as error:
            raise LostError(f"a process for it could not be started ({error})") from error
        try:
            return _received(ours, child, seconds)
        finally:
            child.kill()
            child.join()
            child.close()


def _start(child: ForkServerProcess) -> None:
    """Start a child, and, with the first child, the server, in a folder of our own.

    The child gets an empty main program: multiprocessing would import the real one, and a script would run again.
    """
    with _starting:
        folder, main = tempfile.tempdir, sys.modules["__main__"]
        tempfile.tempdir, sys.modules["__main__"] = _folder(), ModuleType("__main__")
        try:
            child.start()
        finally:
            tempfile.tempdir, sys.modules["__main__"] = folder, main


@cache
def _folder() -> str:
    """Return a folder for the server's socket, which exists until this process ends."""
    stack = ExitStack()
    Finalize(None, stack.close, exitpriority=-200)  # runs after multiprocessing has removed what it made there
    return str(stack.enter_context(temporary("children", short=True)))


def _received(ours: Connection, child: ForkServerProcess, seconds: int) -> list[Any]:
    """Return the values that a child sends."""
    came: list[Any] = []
    ready, until = False, monotonic() + CLOCK_FACTOR * seconds
    while True:
        try:
            if not ours.poll(max(0.0, until - monotonic())):
                raise LostError(
                    f"its process had not finished after {CLOCK_FACTOR * seconds} seconds: is the machine overloaded?"
                )
            message: dict[str, Any] = json.loads(ours.recv_bytes(MAX_RESULT_BYTES))
        except (EOFError, OSError):
            child.join(1)
            raise _how_it_ended(child.exitcode, seconds, came, ready=ready) from None
        ready = True
        if "value" in message:
            came.append(message["value"])
        elif "failed" in message:
            raise WorkFailedError(message["failed"], came)
        elif "memory" in message:
            raise ExceededError(f"took more than {MAX_MEMORY_BYTES // 1_000_000_000} GB of memory", came)
        elif "done" in message:
            return came


def _how_it_ended(code: int | None, seconds: int, came: list[Any], *, ready: bool) -> Exception:
    """Return the error for a child that ended without a message. SIGXCPU is its limit; SIGKILL comes from elsewhere."""
    if not ready or code == -signal.SIGKILL or code is None:
        return LostError(f"its process was ended by something else (exit code {code})")
    if code == -signal.SIGXCPU:
        return ExceededError(f"took more than {seconds} seconds of processor time", came)
    return ExceededError(f"ended before it was finished (exit code {code})", came)


def _child(connection: Connection, work: Work, arguments: tuple[Any, ...], seconds: int) -> None:
    """Do the work, send the results, and exit."""
    _close_all_but(connection.fileno())
    _give_up_rights()
    _limit(seconds)
    gc.disable()  # the garbage disappears with the process
    with suppress(BrokenPipeError):  # the grader has stopped reading
        for message in _messages(work, arguments):
            connection.send_bytes(json.dumps(message).encode())
    os._exit(0)


def _messages(work: Work, arguments: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    yield {"ready": True}
    try:
        for one in work(*arguments):
            yield {"value": one}
        yield {"done": True}
    except MemoryError:
        yield {"memory": True}
    except Exception as error:
        yield {"failed": f"failed ({type(error).__name__}: {error})"}


def _close_all_but(connection: int) -> None:
    """Close what multiprocessing keeps open, including the pipe by which the server knows its grader is alive."""
    os.closerange(3, connection)
    os.closerange(connection + 1, os.sysconf("SC_OPEN_MAX"))


def _limit(seconds: int) -> None:
    """Bound time, memory and files. The hard time limit comes a second later, in case the soft one is ignored."""
    most = {"CPU": (seconds, seconds + 1), "FSIZE": (0, 0), "CORE": (0, 0)}
    if addresses := isolation.address_space():
        most["AS"] = (addresses + MAX_MEMORY_BYTES, addresses + MAX_MEMORY_BYTES)
    for name, limits in most.items():
        with suppress(ValueError):  # there is a lower limit already
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), limits)


def _give_up_rights() -> None:
    """If root grades, become ``nobody``, with the right to read every file; on Linux, also give up the network."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the grader handles Ctrl-C, and ends its children
    sys.dont_write_bytecode = True
    if sys.platform != "linux":
        return
    if os.getuid() == 0:
        with suppress(PermissionError):  # the root of a user namespace has no groups to leave
            os.setgroups([])
        isolation.libc.prctl(SET_KEEPCAPS, 1, 0, 0, 0)
        os.setresgid(NOBODY_UID, NOBODY_UID, NOBODY_UID)
        os.setresuid(NOBODY_UID, NOBODY_UID, NOBODY_UID)
        _keep(CAP_DAC_READ_SEARCH)
    isolation.libc.prctl(SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == 1:  # the server ended before that call
        os._exit(1)
    if platform.machine() in MACHINES:
        isolation.libc.prctl(isolation.SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        isolation.install_seccomp_filter()


def _keep(capability: int) -> None:
    """Give up every capability but one."""
    header = (ctypes.c_uint32 * 2)(isolation.CAPABILITIES_VERSION, 0)
    kept = 1 << capability
    if isolation.libc.capset(header, (ctypes.c_uint32 * 6)(kept, kept, 0, 0, 0, 0)) != 0:
        raise OSError(ctypes.get_errno(), "capset")
