"""The short examination of a copy of the library, in a process that has not imported attnlib yet."""

import importlib
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from threadpoolctl import threadpool_limits

# Imported once, by the process from which the others are forked. Each of those would otherwise import pytest, too.
PRELOAD = ["numpy.testing", "torch", "array_api_strict", "oracle", "pytest"]


def fresh_processes():
    """A pool that runs each task in a new process, to which the libraries are known, but not attnlib."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    return ProcessPoolExecutor(1, mp_context=context, max_tasks_per_child=1)


def examine_copy(package, library):
    """Name the first case in which the copy in the folder `package` differs, and how; None if there is none."""
    if "attnlib" in sys.modules:
        raise ImportError(f"attnlib has been imported before the copy in {package}")
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(package.parent))
    conformance = importlib.import_module("conformance")
    if Path(conformance.attnlib.__file__).parent != package:
        raise ImportError(f"{conformance.attnlib.__file__} was imported, not {package}")
    with threadpool_limits(1):  # the tiles of a head depend on the number of cores
        return conformance.examine(library)
