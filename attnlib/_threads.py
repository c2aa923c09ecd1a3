"""Several heads at a time, each on one core.

A matrix product of one tile is too small to be shared among cores: on a busy machine, waiting for each other takes them
many times longer than the product itself. So the heads are shared out instead, and NumPy's products are kept to one
core for the time being. How many cores there are is up to NumPy's own setting (``OPENBLAS_NUM_THREADS`` and the like).
"""

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


def share_out(work: Callable[[Sequence[T]], None], divided: Callable[[int], Sequence[T]]) -> None:
    """Divide by the number of cores, call ``work`` with a share of the items on each, return when all are done."""
    blas = _blas()
    cores = max((library.num_threads for library in blas.lib_controllers), default=1) if blas else 1
    items = divided(cores)

    def on_one_core(part: Sequence[T]) -> None:
        with _one_core_a_product(blas):  # here too: some libraries count the cores of every thread for itself
            work(part)

    with _one_core_a_product(blas):
        parts = [items[n::cores] for n in range(min(cores, len(items)))]
        if len(parts) < 2:
            work(items)
            return
        with ThreadPoolExecutor(len(parts)) as pool:  # a new one each time: in a forked process, threads are gone
            for done in [pool.submit(copy_context().run, on_one_core, part) for part in parts]:
                done.result()


def _one_core_a_product(blas: Any) -> AbstractContextManager[Any]:
    limit: AbstractContextManager[Any] = blas.limit(limits=1) if blas else nullcontext()
    return limit


@cache
def _blas() -> Any:
    """Return the control over the libraries of matrix products; None in a browser, which has no threads."""
    if sys.platform == "emscripten":
        return None
    from threadpoolctl import ThreadpoolController  # only long sequences need it

    return ThreadpoolController().select(user_api="blas")
