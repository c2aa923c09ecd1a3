"""Several heads at a time, each on one core.

A matrix product of one tile is too small to be shared among cores: on a busy machine, waiting for each other takes them
many times longer than the product itself. So the heads are shared out instead, and NumPy's products are kept to one
core for the time being. How many cores there are is up to NumPy's own setting (``OPENBLAS_NUM_THREADS`` and the like).
"""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_users = 0  # calls that are keeping the products to one core at the moment
_kept: list[tuple[Any, int]] = []  # the libraries, and how many threads each had before


def share_out(work: Callable[[Sequence[T]], None], divided: Callable[[int], Sequence[T]]) -> None:
    """Divide by the number of cores, call ``work`` with a share of the items on each, return when all are done."""
    with _one_core_a_product() as cores:
        items = divided(cores)
        parts = [items[n::cores] for n in range(min(cores, len(items)))]
        if len(parts) < 2:
            work(items)
            return
        with ThreadPoolExecutor(len(parts)) as pool:  # a new one each time: in a forked process, threads are gone
            for done in [pool.submit(copy_context().run, work, part) for part in parts]:
                done.result()


@contextmanager
def _one_core_a_product() -> Iterator[int]:
    """Keep matrix products to one core, and yield how many they had: 1 where nobody can tell."""
    global _users
    libraries = _libraries()
    with _lock:
        if _users == 0:
            _kept[:] = [(library, library.num_threads) for library in libraries]
            for library in libraries:
                library.set_num_threads(1)
        _users += 1
        cores = max((before for _, before in _kept), default=1)
    try:
        yield cores
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                for library, before in _kept:
                    library.set_num_threads(before)


@cache
def _libraries() -> list[Any]:
    """Return the libraries of matrix products that this process has loaded."""
    if sys.platform == "emscripten":  # a browser: no threads
        return []
    from threadpoolctl import ThreadpoolController  # only long sequences need it

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)
