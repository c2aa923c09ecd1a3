"""The numbers of the users that submissions run as: no two grading processes on a machine draw the same.

The kernel counts by user what one may take of some things, such as the pages of pipes. Two submissions that are graded
at the same time would see each other in these counts if they had one user.
"""

import os
import socket
from collections.abc import Iterator
from functools import cache
from itertools import cycle
from random import sample

from grading.course import GradingError

NAME = "attention-grading-users"
FIRST, BLOCKS, SIZE = 60_000, 50, 100  # below 65,536: a container may know no others


def next_user() -> int:
    """Return the number of the user for the next submission: its own, where root grades.

    Raises:
        GradingError: other grading processes have claimed all numbers.
    """
    return os.getuid() or next(_claimed())


@cache
def _claimed() -> Iterator[int]:
    """Claim a block of numbers until this process ends, and return them in turn, for ever.

    The claim is a name in the kernel's list of sockets, which is free again when the process has ended, however it did.
    Processes in another network namespace do not see it; where they begin to look is left to chance.
    """
    for block in sample(range(BLOCKS), BLOCKS):
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0{NAME}-{block}")
        except OSError:  # another process has claimed it
            claim.close()
        else:
            first = FIRST + block * SIZE
            claim.detach()  # it stays open as long as this process lives
            return cycle(range(first, first + SIZE))
    raise GradingError(
        f"{BLOCKS} grading processes on this machine have claimed the user numbers from {FIRST} to "
        f"{FIRST + BLOCKS * SIZE - 1}. Wait until one of them has ended"
    )
