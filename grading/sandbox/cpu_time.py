"""How much processor time a submission has used, and whether it got a processor. The limits are in ``limits.py``.

A limit on elapsed time would make one submission pay for the load of another, so processor time is limited. Elapsed
time has a wider limit, which stops code that sleeps or waits. The kernel measures both; the submission is not trusted.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import psutil  # type: ignore[import-untyped]

from grading.sandbox.cgroup import Group
from grading.sandbox.limits import Limits

PROC = Path("/proc")
MAX_CORES_USED = 1.25  # processor seconds per elapsed second; a larger number means that several cores were used
# Other programs may delay a submission by this many times its limit of elapsed time until the grader gives up.
MAX_DELAY_FACTOR = 3
NICE_INCREMENT = 10  # added to the grader's niceness for a submission that keeps several cores busy
LOWEST_PRIORITY = 19


@dataclass(frozen=True)
class Time:
    """Seconds of processor time, of elapsed time, and of waiting until a processor was free.

    The waiting is that of the submission's first process and of the grader's thread that watches it.
    """

    used: float
    clock: float
    waited: float

    def since(self, begin: "Time") -> "Time":
        """Return how much has passed since an earlier time."""
        return Time(self.used - begin.used, self.clock - begin.clock, self.waited - begin.waited)

    def delayed(self) -> float:
        """Return how many seconds a submission, or the grader, waited for a processor because of other programs.

        Both also wait for the submission's own processes, but no longer than these use a processor.
        """
        return max(0.0, self.waited - self.used)


class Meter:
    """Measures the time of a submission. ``process`` is its first process, if the system says which one it is.

    ``seconds`` is how much processor time it may use in all. ``group`` is its control group, if it has one.
    """

    def __init__(
        self, process: psutil.Process | None, limits: Limits, seconds: float, group: Group | None = None
    ) -> None:
        self.process, self.limits, self.group = process, limits, group
        self.used = 0.0  # seconds of processor time, as far as is known
        # seconds that the first process waited for a processor; kept here because they are unknown once it has ended
        self._waited = 0.0
        self._looked = self._begin = self.now()
        self.whole = Span(self, seconds)

    def now(self) -> Time:
        """Return the time that the group has used or, without a group, the first process and its ended children."""
        if self.process is None:
            self.used = monotonic()
            return Time(self.used, self.used, 0.0)
        self.used = max(self.used, self._used([self.process]))
        self._waited = max(self._waited, waited(PROC / str(self.process.pid)))
        return Time(self.used, monotonic(), self._waited + waited(PROC / "thread-self"))

    def look(self, family: Sequence[psutil.Process]) -> None:
        """Update the time from all processes, and limit them to one core if they have used several."""
        self.used = max(self.used, self._used(family))
        now = self.now()
        since, self._looked = now.since(self._looked), now
        limited = self.group is not None and self.group.one_core  # the kernel already limits them
        if since.used > MAX_CORES_USED * since.clock and not limited:
            keep_to_one_core(family)

    def _used(self, family: Sequence[psutil.Process]) -> float:
        counted = self.group.used() if self.group else None
        return used(family) if counted is None else counted

    def spent(self) -> float:
        """Return how many seconds are spent: the processor time or, if it sleeps, a share of the elapsed time."""
        gone = self.now().since(self._begin)
        return max(gone.used, (gone.clock - gone.delayed()) / self.limits.clock)


class Span:
    """A limit from now on: ``seconds`` of processor time, and ``limits.clock`` times as many of elapsed time.

    The time spent waiting because of other programs is added to that, up to a limit. ``within`` is a longer limit that
    this one is part of.
    """

    def __init__(self, meter: Meter, seconds: float, within: "Span | None" = None) -> None:
        self._meter, self._seconds, self._within, self._begin = meter, seconds, within, meter.now()

    def left(self) -> float:
        """Return how much longer it may last, in seconds of elapsed time. The result is 0 or less once it is over."""
        if self._used_up():
            return 0.0
        most = self._seconds * self._meter.limits.clock
        left = self._begin.clock + most - monotonic()
        if left <= 0:
            left += min(self._delayed(), MAX_DELAY_FACTOR * most)
        return min(left, self._within.left()) if self._within else left

    def _delayed(self) -> float:
        return self._meter.now().since(self._begin).delayed()

    def _used_up(self) -> bool:
        return self._meter.used >= self._begin.used + self._seconds

    def why(self, within: float, hint: str) -> tuple[str, bool]:
        """Return why it is over, for a limit of ``within`` seconds, and whether other programs are to blame."""
        if self._used_up():
            return f"did not finish within {within:g} seconds of processor time. {hint}", False
        seconds = within * self._meter.limits.clock
        said = (
            f"did not finish within {seconds:g} seconds, though it used little processor time. "
            "Does it sleep, or wait for something?"
        )
        return said, self._delayed() >= MAX_DELAY_FACTOR * self._seconds * self._meter.limits.clock


def used(family: Sequence[psutil.Process]) -> float:
    """Return the processor time, in seconds, of processes and of their children that have ended and been waited for.

    Parents have to come before their children, so that a child that ends meanwhile is never counted twice.
    """
    total = 0.0
    for process in family:
        with suppress(psutil.Error):  # it ended meanwhile, and counts with its parent
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def waited(thread: Path) -> float:
    """Return how long a thread, given its folder in ``/proc``, has been ready to run while every processor was taken.

    The folder of a process counts as that of its first thread.
    """
    try:
        text = (thread / "schedstat").read_text(encoding="ascii")
    except OSError:
        return 0.0  # it has ended, or this kernel does not count the time
    return int(text.split()[1]) / 1e9


def keep_to_one_core(family: Sequence[psutil.Process]) -> None:
    """Restrict processes to one core, at a low priority. Their later forks inherit both restrictions."""
    core = max(os.sched_getaffinity(0))
    behind = min(os.getpriority(os.PRIO_PROCESS, 0) + NICE_INCREMENT, LOWEST_PRIORITY)
    for process in family:
        with suppress(OSError):  # it ended meanwhile
            for thread in [int(folder.name) for folder in (PROC / str(process.pid) / "task").iterdir()]:
                os.sched_setaffinity(thread, {core})
                os.setpriority(os.PRIO_PROCESS, thread, behind)
