"""The socket on which a submission's life depends. The server reports how the process begins and ends through it.

When the grader closes it, the server kills all that is left of the submission.
"""

import socket
import struct
from collections.abc import Callable

import psutil  # type: ignore[import-untyped]

from grading.sandbox import memory_usage
from grading.sandbox.failures import HostLostError

END_SECONDS = 60.0  # time for a submission's processes to disappear once they are killed, on a busy machine
START_SECONDS = 180.0  # time for everything to be imported, on a busy machine


def wait_until_isolated(
    lifeline: socket.socket, box_is_there: Callable[[], bool], *, sandboxed: bool
) -> tuple[psutil.Process | None, float]:
    """Wait until a process is isolated. Return it, if this system names it, and the bytes of memory that it holds.

    Raises:
        HostLostError: it could not be isolated.
    """
    lifeline.settimeout(START_SECONDS)
    try:
        said, sender = _received(lifeline)
    except OSError as error:
        raise HostLostError(f"a submission was not isolated within {START_SECONDS:g} seconds ({error})") from None
    if said != b"up":
        raise HostLostError("a submission could not be isolated" if box_is_there() else "the sandbox ended")
    lifeline.settimeout(None)
    try:
        if not sender:
            return None, 0
        process = psutil.Process(sender)
        return process, memory_usage.bytes_of_process(process) + memory_usage.max_kernel_bytes(
            [process], sandboxed=sandboxed
        )
    except psutil.Error:
        raise HostLostError("a submission's process ended before it was begun") from None


def _received(lifeline: socket.socket) -> tuple[bytes, int]:
    """Return what the server said, and the sender's process ID on this side, or 0."""
    if not hasattr(socket, "SCM_CREDENTIALS"):
        return lifeline.recv(64), 0
    said, extra, *_ = lifeline.recvmsg(64, socket.CMSG_SPACE(struct.calcsize("3i")))
    numbers = [struct.unpack("3i", data)[0] for _, kind, data in extra if kind == socket.SCM_CREDENTIALS]
    return said, numbers[0] if numbers else 0


def hang_up(lifeline: socket.socket) -> bool:
    """Have the server kill all that is left of a submission. Tell whether it did, which it shows by hanging up.

    Killed processes may take a while to disappear. The box is not dropped for that while others run in it.
    """
    lifeline.settimeout(END_SECONDS)
    killed = False
    try:
        lifeline.shutdown(socket.SHUT_WR)
        while said := lifeline.recv(64):
            killed = killed or said != b"up"
    except TimeoutError:
        return killed
    except OSError:
        return True  # the server had hung up already
    return True
