"""How much processor time a submission has used, and whether it got a processor at all; for limits, see ``limits.py``.

A limit on elapsed time would make one submission pay for the load of another, so processor time is limited. Elapsed
time has a wider limit, which ends what sleeps or waits. The kernel counts all times, and the submission is not asked.
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
MAX_CORES_USED = 1.25  # seconds of processor time in a second; more means that several cores worked
# Other programs may delay a submission by this many times its limit of elapsed time until the grader gives up.
MAX_DELAY_FACTOR = 3
NICE_INCREMENT = 10  # added to the grader's niceness for a submission that keeps several cores busy
LOWEST_PRIORITY = 19


@dataclass(frozen=True)
class Time:
    """Seconds of processor time, seconds on the clock, and seconds of waiting until a processor was free.

    What waited is the submission's first process, or the thread of the grader that looks after it.
    """

    used: float
    clock: float
    waited: float

    def since(self, begin: "Time") -> "Time":
        """Return how much has passed since an earlier time."""
        return Time(self.used - begin.used, self.clock - begin.clock, self.waited - begin.waited)

    def delayed(self) -> float:
        """Return for how many seconds other programs kept a submission, or the grader, from a processor.

        Both wait for the submission's own processes, too, but no longer than these use a processor meanwhile.
        """
        return max(0.0, self.waited - self.used)


class Meter:
    """Measures the time of a submission, whose first process is given, if the system says which it is.

    ``seconds`` of processor time are what it may use in all. ``group`` is its control group, where it has one.
    """

    def __init__(
        self, process: psutil.Process | None, limits: Limits, seconds: float, group: Group | None = None
    ) -> None:
        self.process, self.limits, self.group = process, limits, group
        self.used = 0.0  # seconds of processor time, as far as they are known
        self._waited = 0.0  # seconds for which the first process was ready to run: unknown once it is gone
        self._looked = self._begin = self.now()
        self.whole = Span(self, seconds)

    def now(self) -> Time:
        """Return the time that the group has taken; without one, the first process, with its children that ended."""
        if self.process is None:
            self.used = monotonic()
            return Time(self.used, self.used, 0.0)
        self.used = max(self.used, self._used([self.process]))
        self._waited = max(self._waited, waited(PROC / str(self.process.pid)))
        return Time(self.used, monotonic(), self._waited + waited(PROC / "thread-self"))

    def look(self, family: Sequence[psutil.Process]) -> None:
        """Take in what all processes have used, and keep them to one core where they have taken several."""
        self.used = max(self.used, self._used(family))
        now = self.now()
        since, self._looked = now.since(self._looked), now
        limited = self.group is not None and self.group.one_core  # by the kernel
        if since.used > MAX_CORES_USED * since.clock and not limited:
            keep_to_one_core(family)

    def _used(self, family: Sequence[psutil.Process]) -> float:
        counted = self.group.used() if self.group else None
        return used(family) if counted is None else counted

    def spent(self) -> float:
        """Return how many seconds are gone: of processor time, or, of what sleeps, its part of those on the clock."""
        gone = self.now().since(self._begin)
        return max(gone.used, (gone.clock - gone.delayed()) / self.limits.clock)


class Span:
    """A limit from now on: so many seconds of processor time, and ``limits.clock`` times as many on the clock.

    The time for which other programs kept it from a processor is added to that, as long as this is not far more.
    ``within`` is a longer limit that this one is part of.
    """

    def __init__(self, meter: Meter, seconds: float, within: "Span | None" = None) -> None:
        self._meter, self._seconds, self._within, self._begin = meter, seconds, within, meter.now()

    def left(self) -> float:
        """Return how long it may last at most, in seconds on the clock: 0, or less, once it is over."""
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
        """Return in words why it is over, as a limit of so many seconds, and whether other programs are to blame."""
        if self._used_up():
            return f"did not finish within {within:g} seconds of processor time. {hint}", False
        seconds = within * self._meter.limits.clock
        said = (
            f"did not finish within {seconds:g} seconds, though it used little processor time. "
            "Does it sleep, or wait for something?"
        )
        return said, self._delayed() >= MAX_DELAY_FACTOR * self._seconds * self._meter.limits.clock


def used(family: Sequence[psutil.Process]) -> float:
    """Return the processor time of processes, and of their children that have ended and were waited for, in seconds.

    Parents have to come before their children: then one that ends meanwhile counts too little, and never twice.
    """
    total = 0.0
    for process in family:
        with suppress(psutil.Error):  # it ended meanwhile, and counts as its parent's
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def waited(thread: Path) -> float:
    """Return how long a thread, given its folder in ``/proc``, has been ready to run while every processor was taken.

    The folder of a process is that of its first thread.
    """
    try:
        text = (thread / "schedstat").read_text(encoding="ascii")
    except OSError:
        return 0.0  # it ended, or this kernel does not count it
    return int(text.split()[1]) / 1e9


def keep_to_one_core(family: Sequence[psutil.Process]) -> None:
    """Leave the other cores, and the first turn on this one, to others. What is forked later inherits both."""
    core = max(os.sched_getaffinity(0))
    behind = min(os.getpriority(os.PRIO_PROCESS, 0) + NICE_INCREMENT, LOWEST_PRIORITY)
    for process in family:
        with suppress(OSError):  # it ended meanwhile
            for thread in [int(folder.name) for folder in (PROC / str(process.pid) / "task").iterdir()]:
                os.sched_setaffinity(thread, {core})
                os.setpriority(os.PRIO_PROCESS, thread, behind)
