"""Grade a class in a process of its own: `python -m attacks.drive REPOSITORY CLASS`."""

import sys
from pathlib import Path

from attacks.course import NAME
from grading.course import Course
from grading.run import How, run
from grading.sandbox.limits import MB, Limits

LIMITS = Limits(
    cell=2.0, notebook=12.0, grace=0.3, memory=400 * MB, file_size=8 * MB, cell_output=200_000,
    notebook_output=1 * MB, restarts=2,
)  # fmt: skip

if __name__ == "__main__":
    run(Course.at(Path(sys.argv[1]), Path(sys.argv[2])), NAME, how=How(jobs=2, limits=LIMITS))
