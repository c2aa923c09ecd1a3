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
# On a busy machine, the same work takes up to twice as much processor time as on an idle one.
MORE_TIME = replace(LIMITS, cell=LIMITS.cell * 2)
OTHER_LIMITS = {
    source: LESS_TIME if case.computes else MORE_TIME
    for case in CASES.values()
    if case.computes or case.imports_many_modules
    for source in case.cells.values()
}


class BoxesForAttacks(Boxes):
    """Boxes that set other limits for a submission with a cell that computes endlessly or imports many modules."""

    def submit(self, tasks: Sequence[Task]) -> "Future[ResultList]":
        return super().submit([replace(task, limits=limits_of(task)) for task in tasks])


def limits_of(task: Task) -> Limits:
    """Return the limits of the first of a submission's cells that has its own, or else the usual limits."""
    return next((OTHER_LIMITS[step.source] for step in task.steps if step.source in OTHER_LIMITS), task.limits)


if __name__ == "__main__":
    course = Course.at(Path(sys.argv[1]), Path(sys.argv[2]))
    with closing(BoxesForAttacks(2, Host(LIMITS), course)) as boxes:
        run(course, NAME, how=How(limits=LIMITS), pool=boxes)
