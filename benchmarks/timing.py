"""How both sides of a comparison are measured: in turn, within one run, so that other load weighs on both."""

import os
import platform
import random
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

Clock = Callable[[], float]
CPU, WALL = time.process_time, time.perf_counter
PAUSE = 0.03  # seconds: longer than OpenBLAS and OpenMP wait busily
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def in_turn(
    rivals: Mapping[str, Callable[[], object]], clock: Clock, seconds: float, calls: int = 1
) -> dict[str, float]:
    """Return the median seconds of a call of each, called in turn for about ``seconds`` in all, at least 5 times.

    Of very short calls, ``calls`` are measured together. Where threads help, those of one library still wait busily
    when the other's call begins, and slow it down several times: so there is a pause, and then as long a time of calls
    that are not measured.
    """
    times: dict[str, list[float]] = {name: [] for name in rivals}
    begin = time.perf_counter()
    for function in rivals.values():
        function()  # warm up
    once = (time.perf_counter() - begin) * calls + (clock is WALL) * len(rivals) * 2 * PAUSE
    shuffled = random.Random(0)
    for _ in range(max(5, min(400, int(seconds / once)))):
        # Who comes after whom changes: one's leavings in the cache are another's start.
        for name in shuffled.sample(list(rivals), len(rivals)):
            function = rivals[name]
            if clock is WALL:
                time.sleep(PAUSE)
                awake = time.perf_counter() + PAUSE
                while time.perf_counter() < awake:
                    function()
            start = clock()
            for _ in range(calls):
                function()
            times[name].append((clock() - start) / calls)
    return {name: statistics.median(kept) for name, kept in times.items()}


def environment(threads: int | None) -> dict[str, str]:
    """Return the environment of a process whose numerical libraries use so many threads; None means all."""
    kept = {name: value for name, value in os.environ.items() if name not in THREADS}
    return kept if threads is None else kept | dict.fromkeys(THREADS, str(threads))


def machine() -> str:
    """Return the processor's name and the number of its cores that this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    names = [platform.processor() or platform.machine()]
    described = Path("/proc/cpuinfo")
    if described.exists():
        lines = described.read_text(encoding="utf-8").splitlines()
        names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")] or names
    return f"{names[0]}, {cores} cores"
