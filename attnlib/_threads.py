"""Work on several heads at a time, each on one core.

A matrix product of one tile is too small to be divided among cores: on a busy machine, they would wait for each other
many times longer than the product takes. So the heads are divided among the cores instead, and meanwhile each of
NumPy's products uses a single core. The number of cores is that of NumPy's own setting (``OPENBLAS_NUM_THREADS``, for
example).
"""

import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from typing import Any, TypeVar

Item = TypeVar("Item")

# Held by the call that divides its work, because the number of cores is a setting of the whole process.
_busy = threading.Lock()
_before: list[tuple[Any, int]] = []  # the number of cores that products used before


def run_on_cores(work: Callable[[Sequence[Item]], None], divided: Callable[[int], Sequence[Item]]) -> None:
    """Divide the items by the number of cores, call ``work`` with a part on each core, and return when all are done.

    Meanwhile each matrix product of the process uses one core. A second call at the same time uses only one core.
    """
    blas = _blas()
    if blas is None or not _busy.acquire(blocking=False):
        work(divided(1))
        return
    try:
        _before[:] = [(library, library.num_threads) for library in blas.lib_controllers]
        cores = max((cores for _, cores in _before), default=1)
        items = divided(cores)
        with blas.limit(limits=1):
            _run(work, [items[n::cores] for n in range(min(cores, len(items)))])
    finally:
        _before.clear()
        _busy.release()


def _run(work: Callable[[Sequence[Item]], None], parts: list[Sequence[Item]]) -> None:
    """Call ``work`` with each part, at the same time."""

    def on_one_core(part: Sequence[Item]) -> None:
        with _blas().limit(limits=1):  # here too, because some libraries have a setting for each thread
            work(part)

    if len(parts) < 2:
        for part in parts:
            work(part)
        return
    with ThreadPoolExecutor(len(parts)) as pool:  # a new one each time: in a forked process, threads are gone
        for done in [pool.submit(copy_context().run, on_one_core, part) for part in parts]:
            done.result()


@cache
def _blas() -> Any:
    """Return the controller of the libraries that compute matrix products; None in a browser, which has no threads."""
    if sys.platform == "emscripten":
        return None
    from threadpoolctl import ThreadpoolController  # only long sequences need it

    return ThreadpoolController().select(user_api="blas")


def _after_fork() -> None:
    """Reset, in a forked child, the state that a call in its parent had changed: no thread of the child will do it."""
    global _busy
    _busy = threading.Lock()
    for library, cores in _before:
        library.set_num_threads(cores)
    _before.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
