"""The limits of the sandbox: how much memory, processor time, output and so on a submission may take.

``memory_usage.py`` and ``cpu_time.py`` measure what it has taken.
"""

import math
from dataclasses import dataclass, replace

MB = 1_000_000


@dataclass(frozen=True)
class Limits:
    """Limits of one submission.

    Attributes:
        cell: seconds of processor time that a cell, or the answer to a check, may use, with all its processes.
        notebook: seconds of processor time that all of them may use together.
        clock: a factor. Code that sleeps or waits may run for this many times the seconds above in elapsed time.
        processor: seconds of processor time after which the kernel ends a single process.
        grace: seconds of processor time that an interrupted cell has left before its process is killed.
        memory: bytes that a process may take beyond what the libraries take. All processes together may take a quarter
            more.
        processes: how many processes may run at the same time.
        files: how many files a process may hold open.
        file_size: bytes that one file may have, and all files in each writable folder together.
        cell_output: bytes of a cell's output that are kept.
        notebook_output: bytes of a notebook's output that are kept.
        restarts: how often the rest of a notebook is run again after a cell has ended its process or lost it.
    """

    cell: float = 30.0
    notebook: float = 180.0
    clock: float = 4.0
    processor: int = 190
    grace: float = 1.0
    memory: int = 2000 * MB
    processes: int = 32
    files: int = 256
    file_size: int = 64 * MB
    cell_output: int = 1 * MB
    notebook_output: int = 8 * MB
    restarts: int = 4

    def with_cell(self, seconds: float) -> "Limits":
        """Return the limits with a different time for a cell, and a notebook time scaled in proportion."""
        times = seconds / self.cell
        processor = math.ceil(self.processor * times)
        return replace(self, cell=seconds, notebook=self.notebook * times, processor=processor)
