"""Helpers for tests that watch other processes or wait for them."""

import time
from collections.abc import Callable

import psutil


def runs(pid: int) -> bool:
    """Tell whether a process is still running. A zombie is not: it merely keeps its PID until its parent reaps it.

    On a busy machine, a killed process counts as running for a while, since it ends only once it gets a processor.
    """
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(holds: Callable[[], object], seconds: float = 600) -> None:
    """Wait until ``holds()`` is true, and fail if that takes longer than ``seconds``."""
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, f"waited {seconds} seconds in vain"
        time.sleep(0.05)
