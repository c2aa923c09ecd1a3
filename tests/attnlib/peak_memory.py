"""The peak memory of a call, beyond what was in use before it."""

import tracemalloc
from collections.abc import Callable

from torch.profiler import ProfilerActivity, profile


def numpy_peak(call: Callable[[], object]) -> int:
    """Return the most bytes that NumPy and Python hold at any time during the call, including its results."""
    tracemalloc.start()
    try:
        results = call()
        _, peak = tracemalloc.get_traced_memory()
        del results
    finally:
        tracemalloc.stop()
    return peak


def torch_peak(call: Callable[[], object]) -> int:
    """Return the most bytes that torch's CPU tensors hold at any time during the call, including its results."""
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
    """Return the peak memory of a call on arrays of a backend."""
    if str(backend) != "numpy":
        return torch_peak(call)
    call()  # the first call also imports modules
    return numpy_peak(call)
