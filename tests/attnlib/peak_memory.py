"""How much memory a call takes at its worst moment, beyond what was there before."""

import tracemalloc
from collections.abc import Callable

from torch.profiler import ProfilerActivity, profile


def numpy_peak(call: Callable[[], object]) -> int:
    """Return the bytes that NumPy and Python hold at once while the call runs, its results included."""
    tracemalloc.start()
    try:
        results = call()
        _, peak = tracemalloc.get_traced_memory()
        del results
    finally:
        tracemalloc.stop()
    return peak


def torch_peak(call: Callable[[], object]) -> int:
    """Return the bytes of tensors on the CPU that torch holds at once while the call runs, its results included."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as seen:
        results = call()
    del results
    events = [event for event in seen.profiler.kineto_results.events() if event.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


def peak_of(backend: object, call: Callable[[], object]) -> int:
    """Return the peak of a call on arrays of a backend."""
    if str(backend) != "numpy":
        return torch_peak(call)
    call()  # imports what is imported once
    return numpy_peak(call)
