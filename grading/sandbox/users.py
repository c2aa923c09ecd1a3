"""The numbers of the users that submissions run as: no two that run at the same time on a machine have the same.

The kernel counts by user what one may take of some things, such as the pages of pipes. Two submissions that are graded
at the same time would see each other in these counts if they had one user.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from random import sample

from grading.course import GradingError

USER_NAME = "attention-grading-user"
# Nobody else uses these: accounts end at 60,000, systemd's own ranges begin at 60,001 and 61,184 and leave these out
# (https://systemd.io/UIDS-GIDS), and of Debian's range, from 60,000 to 64,999, packages have asked for higher ones
# alone. A container may know no numbers above 65,535.
FIRST_UID, LAST_UID = 60_706, 61_183


@contextmanager
def own_user() -> Iterator[int]:
    """Claim the number of a user for one submission until the context ends: its own, where root grades.

    The claim is a name in the kernel's list of sockets, which is free again when this process has ended, however it
    did. Processes in another network namespace do not see it; where they begin to look is left to chance.

    Raises:
        GradingError: other submissions have claimed all numbers.
    """
    if os.getuid():
        yield os.getuid()
        return
    for number in sample(range(FIRST_UID, LAST_UID + 1), LAST_UID + 1 - FIRST_UID):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as claim:
            try:
                claim.bind(f"\0{USER_NAME}-{number}")
            except OSError:  # another submission has claimed it
                continue
            yield number
            return
    raise GradingError(
        f"the submissions that run on this machine have claimed all user IDs from {FIRST_UID} to {LAST_UID}. Wait "
        "until some of them have ended, or give `--jobs` a smaller number"
    )
