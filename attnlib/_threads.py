"""Several heads at a time, each on one core.

A matrix product of one tile is too small to be shared among cores: on a busy machine, waiting for each other takes them
many times longer than the product itself. So the heads are shared out instead, and NumPy's products are kept to one
core for the time being. How many cores there are is up to NumPy's own setting (``OPENBLAS_NUM_THREADS`` and the like).
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

_busy = threading.Lock()  # held by the call that shares out: the number of cores is the whole process's
_before: list[tuple[Any, int]] = []  # how many cores the products had when it began


def share_out(work: Callable[[Sequence[Item]], None], divided: Callable[[int], Sequence[Item]]) -> None:
    """Divide by the number of cores, call ``work`` with a share of the items on each, return when all are done.

    Meanwhile all products of the process are kept to one core. A second call at the same time keeps to one core itself.
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
        with _blas().limit(limits=1):  # here too: some libraries count the cores of every thread for itself
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
    """Return the control over the libraries of matrix products; None in a browser, which has no threads."""
    if sys.platform == "emscripten":
        return None
    from threadpoolctl import ThreadpoolController  # only long sequences need it

    return ThreadpoolController().select(user_api="blas")


def _after_fork() -> None:
    """Undo, in a child, what a call of its parent has left half done there: nobody in the child will end it."""
    global _busy
    _busy = threading.Lock()
    for library, cores in _before:
        library.set_num_threads(cores)
    _before.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
