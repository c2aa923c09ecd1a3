"""Work on what a student wrote, in a child process of its own that can take no more than its bounds.

Parsers, tokenizers and converters have inputs on which they run for minutes. Whoever grades must not wait for them, and
must lose nothing but the result: so each submission is read, looked through and rendered in a forked child, which has a
limited time and a limited memory, writes no file, opens no connection, and holds no rights.

The children are forked from a server process that has imported what they need. What they send back is JSON.
"""

import ctypes
import gc
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from time import monotonic
from typing import Any

from grading.sandbox.inside import walls

PRELOADED = "grading.preloaded"  # what the server of the children imports: it takes a second
SECONDS = 20  # of processor time: the slowest honest page takes less than one
PATIENCE = 15  # times as many seconds by the clock, on a machine that has much else to do
MEMORY = 1_000_000_000  # bytes beyond what the imported modules take
MOST_BYTES = 200_000_000  # of one result: a page shows every figure of a notebook
NOBODY = 65_534
SET_PDEATHSIG, SET_KEEPCAPS, CAP_DAC_READ_SEARCH = 1, 8, 2

Work = Callable[..., Iterator[Any]]


class Exceeded(Exception):
    """The work took more than it may. The text is a predicate: "took more than 20 seconds of processor time"."""


class WorkFailed(Exception):
    """The work raised an exception. The text is a predicate: "failed (ValueError: …)"."""


def stream(work: Work, *arguments: Any, seconds: int = SECONDS) -> Generator[Any, None, None]:
    """Run a generator in a bounded child, and yield its values, which have to be fit for JSON, as they come.

    Args:
        work: a generator function of a module, which the child imports by its name.
        arguments: what it is called with; they are pickled.
        seconds: the processor time that the child may take.

    Raises:
        Exceeded: the child took more time or memory than it may, or ended without a word.
        WorkFailed: the work raised an exception.
    """
    context = _context()
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(theirs, work, arguments, seconds), daemon=True)
    try:
        child.start()
        theirs.close()
        until = monotonic() + PATIENCE * seconds
        while "value" in (message := _received(ours, child, until, seconds)):
            yield message["value"]
        if "failed" in message:
            raise WorkFailed(message["failed"])
    finally:
        ours.close()
        child.kill()
        child.join()
        child.close()


def run(work: Work, *arguments: Any, seconds: int = SECONDS) -> Any:
    """Return the only value of a generator that runs in a bounded child. See :func:`stream`."""
    (value,) = stream(work, *arguments, seconds=seconds)
    return value


def _context() -> ForkServerContext:
    context = get_context("forkserver")
    context.set_forkserver_preload([PRELOADED])
    return context


def _received(ours: Connection, child: ForkServerProcess, until: float, seconds: int) -> dict[str, Any]:
    """Return the next message of a child."""
    try:
        if not ours.poll(max(0.0, until - monotonic())):
            raise Exceeded(f"was not done after {PATIENCE * seconds} seconds")
        message: dict[str, Any] = json.loads(ours.recv_bytes(MOST_BYTES))
    except (EOFError, OSError):
        child.join(1)
        raise Exceeded(_how_it_ended(child.exitcode, seconds)) from None
    if message.get("failed") == MemoryError.__name__:
        raise Exceeded(f"took more than {MEMORY // 1_000_000_000} GB of memory")
    return message


def _how_it_ended(code: int | None, seconds: int) -> str:
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return f"took more than {seconds} seconds of processor time"
    return f"ended before it was done (exit code {code})"


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
    try:
        for value in work(*arguments):
            yield {"value": value}
        yield {"done": True}
    except MemoryError:
        yield {"failed": MemoryError.__name__}
    except Exception as error:
        yield {"failed": f"failed ({type(error).__name__}: {error})"}


def _close_all_but(connection: int) -> None:
    """Close what multiprocessing keeps open: among it is what tells the server that its grader is still there."""
    os.closerange(3, connection)
    os.closerange(connection + 1, os.sysconf("SC_OPEN_MAX"))


def _limit(seconds: int) -> None:
    """Bound time, memory and files. The hard limit of time comes a second later, for whoever ignores the soft one."""
    most = {"CPU": (seconds, seconds + 1), "FSIZE": (0, 0), "CORE": (0, 0)}
    if addresses := walls.address_space():
        most["AS"] = (addresses + MEMORY, addresses + MEMORY)
    for name, limits in most.items():
        with suppress(ValueError):  # the limit that is there already is lower
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), limits)


def _give_up_rights() -> None:
    """Be nobody who may read files, where root grades; on Linux, lose all rights and calls that no work needs."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the grader, which ends its children
    sys.dont_write_bytecode = True
    if sys.platform != "linux":
        return
    if os.getuid() == 0:
        walls.libc.prctl(SET_KEEPCAPS, 1, 0, 0, 0)
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        _keep(CAP_DAC_READ_SEARCH)
    walls.libc.prctl(SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == 1:  # the server ended before that call
        os._exit(1)


def _keep(capability: int) -> None:
    """Give up every capability but one."""
    header = (ctypes.c_uint32 * 2)(walls.CAPABILITIES_VERSION, 0)
    kept = 1 << capability
    if walls.libc.capset(header, (ctypes.c_uint32 * 6)(kept, kept, 0, 0, 0, 0)) != 0:
        raise OSError(ctypes.get_errno(), "capset")
