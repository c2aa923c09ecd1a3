"""Grade a class in a process of its own: `python -m attacks.drive REPOSITORY CLASS`."""

import sys
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from attacks.course import NAME
from attacks.table import CASES
from grading.course import Course
from grading.pool import Boxes, ResultList
from grading.run import How, run
from grading.sandbox.host import Host
from grading.sandbox.limits import MB, Limits
from grading.task import Task

LIMITS = Limits(
    cell=2.0, notebook=12.0, grace=0.3, memory=200 * MB, file_size=8 * MB, cell_output=200_000,
    notebook_output=1 * MB, restarts=2,
)  # fmt: skip
# Only the processor time of each cell is reduced. The limit for all cells together is kept, since on a busy machine a
# cell may exceed its own before it is stopped. No limit on elapsed time is reduced, since honest cells may have to wait
# a long time for a processor.
LESS_TIME = replace(LIMITS, cell=LIMITS.cell / 4, clock=LIMITS.clock * 4)
COMPUTING = {source for case in CASES.values() if case.computes for source in case.cells.values()}


class BoxesForAttacks(Boxes):
    """Boxes in which a submission with a cell that computes without end gets less processor time."""

    def submit(self, tasks: Sequence[Task]) -> "Future[ResultList]":
        computes = any(step.source in COMPUTING for task in tasks for step in task.steps)
        return super().submit([replace(task, limits=LESS_TIME) if computes else task for task in tasks])


if __name__ == "__main__":
    course = Course.at(Path(sys.argv[1]), Path(sys.argv[2]))
    with closing(BoxesForAttacks(2, Host(LIMITS), course)) as boxes:
        run(course, NAME, how=How(limits=LIMITS), pool=boxes)
