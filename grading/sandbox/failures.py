"""How a step, a submission's process, or the sandbox itself can fail."""

import signal
from contextlib import suppress

from grading.course import GradingError
from grading.verdict import Verdict

KILLED = (
    "something other than the grader or the submission's own code killed its process: the kernel, if the machine has "
    "too little memory for so many `--jobs`, or an administrator"
)


class HostLostError(GradingError):
    """The box itself ended, or failed to start."""


class KilledError(HostLostError):
    """Something other than the grader and the submission killed the submission's process."""


class StoppedError(Exception):
    """A step did not finish. ``verdict`` and ``reason`` say why; ``alive`` says whether its process goes on.

    ``starved`` is whether it ran out of time because other programs occupied the processors.
    """

    def __init__(self, verdict: Verdict, reason: str, *, alive: bool = False, starved: bool = False) -> None:
        super().__init__(reason)
        self.verdict, self.reason, self.alive, self.starved = verdict, reason, alive, starved


def how_it_ended(status: int, seconds: float, limit: float, *, sandboxed: bool) -> StoppedError:
    """Return how a process ended, given its status and the seconds of processor time that it used and could use.

    In the sandbox it is the first process of its namespace, so nothing in there can send it a SIGKILL. The kernel sends
    one when the processor time is used up, or when the machine runs out of memory, and an administrator may send one.
    If the submission's group reached its own memory limit, this function is not called.

    Raises:
        KilledError: neither the grader nor the submission can have done this.
    """
    if status == -signal.SIGKILL and round(seconds) >= limit:
        return StoppedError(Verdict.TIMEOUT, "used more processor time than its process was allowed.")
    if status == -signal.SIGKILL and sandboxed:
        raise KilledError(KILLED)
    if status < 0:
        with suppress(ValueError):
            return StoppedError(
                Verdict.CRASHED, f"ended the Python process that it ran in ({signal.Signals(-status).name})."
            )
    return StoppedError(Verdict.CRASHED, "ended the Python process that it ran in.")
