"""Work on what a student wrote, in a child process of its own that can take no more than its bounds.

Parsers, tokenizers and converters have inputs on which they run for minutes. Whoever grades must not wait for them, and
must lose nothing but the result: so each submission is read, looked through and rendered in a forked child, which has a
limited time and a limited memory, and cannot write into a file or, on Linux, open a connection. Where root grades, it
is nobody who may read; where an ordinary user does, it keeps that user's rights: there are none to give up.

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

PRELOADED = "grading.preloaded"  # what the server of the children imports: it takes a second
CPU_SECONDS = 20  # of processor time: the slowest honest page takes less than one
CLOCK_FACTOR = 15  # times as many seconds by the clock, on a machine that has much else to do
MAX_MEMORY_BYTES = 1_000_000_000  # bytes beyond what the imported modules take
MAX_RESULT_BYTES = 200_000_000  # of one result: a page shows every figure of a notebook
NOBODY_UID = 65_534
SET_PDEATHSIG, SET_KEEPCAPS, CAP_DAC_READ_SEARCH = 1, 8, 2

Work = Callable[..., Iterator[Any]]
_starting = Lock()


class ExceededError(Exception):
    """The work took more than it may. The text is a predicate: "took more than 20 seconds of processor time".

    ``values`` are those that had come before.
    """

    def __init__(self, text: str, values: Sequence[Any] = ()) -> None:
        super().__init__(text)
        self.values = values


class WorkFailedError(ExceededError):
    """The work raised an exception. The text is a predicate: "failed (ValueError: …)"."""


class LostError(GradingError):
    """The child did not begin, or somebody else ended it: this says nothing about the work. It was tried twice."""


def values(work: Work, *arguments: Any, seconds: int = CPU_SECONDS) -> list[Any]:
    """Run a generator in a bounded child, and return its values, which have to be fit for JSON.

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
    """Start a child, and with the first one the server, in a folder of ours.

    It has no main program, which multiprocessing would have it import, and a script would run.
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
    """Return a folder for the server's socket, which is there until this process ends."""
    stack = ExitStack()
    Finalize(None, stack.close, exitpriority=-200)  # after multiprocessing has removed what it made in there
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
    """Return what to say of a child that ended without a word. SIGXCPU is its limit; SIGKILL comes from elsewhere."""
    if not ready or code == -signal.SIGKILL or code is None:
        return LostError(f"its process was ended by something else (exit code {code})")
    if code == -signal.SIGXCPU:
        return ExceededError(f"took more than {seconds} seconds of processor time", came)
    return ExceededError(f"ended before it was finished (exit code {code})", came)


def _child(connection: Connection, work: Work, arguments: tuple[Any, ...], seconds: int) -> None:
    """Do the work, send what comes of it, and end."""
    _close_all_but(connection.fileno())
    _give_up_rights()
    _limit(seconds)
    gc.disable()  # what is left behind goes with the process
    with suppress(BrokenPipeError):  # nobody wants the rest
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
    """Close what multiprocessing keeps open: among it is what tells the server that its grader is still there."""
    os.closerange(3, connection)
    os.closerange(connection + 1, os.sysconf("SC_OPEN_MAX"))


def _limit(seconds: int) -> None:
    """Bound time, memory and files. The hard limit of time comes a second later, for whoever ignores the soft one."""
    most = {"CPU": (seconds, seconds + 1), "FSIZE": (0, 0), "CORE": (0, 0)}
    if addresses := isolation.address_space():
        most["AS"] = (addresses + MAX_MEMORY_BYTES, addresses + MAX_MEMORY_BYTES)
    for name, limits in most.items():
        with suppress(ValueError):  # the limit that is there already is lower
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), limits)


def _give_up_rights() -> None:
    """Where root grades, be nobody, who may read every file and change none; on Linux, also lose the network."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the grader, which ends its children
    sys.dont_write_bytecode = True
    if sys.platform != "linux":
        return
    if os.getuid() == 0:
        with suppress(PermissionError):  # root of a user namespace: there are no groups to leave
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
