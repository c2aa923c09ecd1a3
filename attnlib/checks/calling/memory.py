"""How a function is called that may hold only so much memory: what it allocates is measured.

This runs in the same process as a student's code.
"""

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from attnlib.checks.calling.case import Implementation
from attnlib.checks.calling.conventions import Arguments, call_function

LIMIT = "max_bytes"  # the name in the setup of a case


class TooMuchMemoryError(Exception):
    """A call allocated more than its task allows. Unlike a MemoryError, this says nothing about the machine."""


def call_within_memory(
    implementation: Implementation,
    inputs: Arguments,
    options: Arguments,
    setup: Arguments,
    training: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """Call a function once, and raise an error if it held more bytes at once than ``max_bytes`` of the setup."""
    if LIMIT not in setup:
        return call_function(implementation, inputs, options, setup, training)
    with _at_most(setup[LIMIT]):
        return call_function(implementation, inputs, options, setup, training)


@contextmanager
def _at_most(limit: int) -> Iterator[None]:
    """Measure what is allocated within this context, and raise an error if it was more than ``limit`` bytes at once."""
    running = tracemalloc.is_tracing()
    if not running:
        tracemalloc.start()
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        if not running:
            tracemalloc.stop()
    if peak - before > limit:
        raise TooMuchMemoryError(f"the task allows {limit / 1e6:.1f} MB at once for these inputs, and this took more")
