"""The user IDs that submissions run as. No two submissions that run at the same time on a machine share one.

The kernel limits some resources, such as the pages of pipes, per user. Two submissions that are graded at the same time
could see each other in these counts if they ran as the same user.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from random import sample

from grading.course import GradingError

USER_NAME = "attention-grading-user"
# Nobody else uses these IDs. Accounts end at 60,000, and systemd's own ranges, which begin at 60,001 and 61,184, leave
# them out (https://systemd.io/UIDS-GIDS). From Debian's range, 60,000 to 64,999, packages have only requested higher
# ones. A container may not have IDs above 65,535.
FIRST_UID, LAST_UID = 60_706, 61_183


@contextmanager
def own_user() -> Iterator[int]:
    """Claim a user ID for one submission until the context ends. It is the submission's own only if root grades.

    The claim is a name in the kernel's list of sockets, which becomes free when this process ends, for whatever reason.
    Processes in other network namespaces do not see it, so each tries the IDs in random order.

    Raises:
        GradingError: other submissions have claimed all IDs.
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
        "until some of them have ended, or use a smaller number for `--jobs`"
    )
