"""What tests see of other processes."""

import time
from collections.abc import Callable

import psutil


def runs(pid: int) -> bool:
    """Tell whether a process still runs: a killed one keeps its number for as long as nobody collects it.

    On a busy machine, it runs until it gets a processor.
    """
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(holds: Callable[[], object], seconds: float = 600) -> None:
    """Wait until something holds, and fail if it does not in that time."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, f"waited {seconds} seconds in vain"
        time.sleep(0.05)
