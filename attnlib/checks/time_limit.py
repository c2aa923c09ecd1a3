"""A time limit for code that may never end, where the system has interval timers (Windows has none)."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread


@contextmanager
def time_limit(seconds: float, error: Callable[[], BaseException]) -> Iterator[None]:
    """Raise an error in code that takes longer, and again every second if it is caught."""
    if not hasattr(signal, "setitimer") or current_thread() is not main_thread():  # others get no signals
        yield
        return

    def stop(*_: object) -> None:
        raise error()

    handler, timer = signal.signal(signal.SIGALRM, stop), signal.setitimer(signal.ITIMER_REAL, seconds, 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *timer)
