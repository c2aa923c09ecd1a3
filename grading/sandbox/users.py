"""The user IDs that submissions run as. No two submissions that run at the same time on a machine share one.

The kernel limits some resources, such as the pages of pipes, per user. Two submissions that are graded at the same time
could see each other in these counts if they ran as the same user.
"""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from random import sample
from typing import BinaryIO

from grading.course import GradingError

FOLDER_NAME = "attention-grading-users"
# Where the folder with the claims may be. The first place that root can write to is used. The last is for services and
# containers whose file system is read-only. Any account can make a folder there, so the folder's owner is checked.
PLACES = (Path("/run"), Path("/var/lib"), Path("/dev/shm"))
# Nobody else uses these IDs. Accounts end at 60,000, and systemd's own ranges, which begin at 60,001 and 61,184, leave
# them out (https://systemd.io/UIDS-GIDS). From Debian's range, 60,000 to 64,999, packages have only requested higher
# ones. A container may not have IDs above 65,535.
FIRST_UID, LAST_UID = 60_706, 61_183


@contextmanager
def own_user() -> Iterator[int]:
    """Claim a user ID for one submission until the context ends. It is the submission's own only if root grades.

    The claim is a lock on a file that only root can open, and it ends when this process ends, for whatever reason.
    Processes that see other files, such as those in another container, do not see it, so each tries the IDs in random
    order.

    Raises:
        GradingError: other submissions have claimed all IDs, there is no folder that only root can enter, or the files
            in it cannot be locked.
    """
    if os.getuid():
        yield os.getuid()
        return
    folder = _claims_folder()
    for number in sample(range(FIRST_UID, LAST_UID + 1), LAST_UID + 1 - FIRST_UID):
        claim = _locked(folder / str(number))
        if claim is not None:
            with claim:
                yield number
            return
    raise GradingError(
        f"the submissions that run on this machine have claimed all user IDs from {FIRST_UID} to {LAST_UID}. Wait "
        "until some of them have ended, or use a smaller number for `--jobs`"
    )


def _locked(path: Path) -> BinaryIO | None:
    """Open and lock the file of a claim. Return None if another submission has locked it.

    Raises:
        GradingError: it cannot be opened or locked for another reason.
    """
    try:
        with ExitStack() as unless_locked:
            claim = unless_locked.enter_context(path.open("ab"))
            with suppress(BlockingIOError, PermissionError):  # some file systems report the latter
                fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
                unless_locked.pop_all()
                return claim
    except OSError as error:
        raise GradingError(
            f"{path} could not be opened and locked to claim a user ID: {error}. Make sure that root can create and "
            f"lock files in {path.parent}, and grade again"
        ) from error
    return None


def _claims_folder() -> Path:
    """Return the folder with the claims, and make it if it is missing.

    Raises:
        GradingError: it cannot be made anywhere, or users other than root can enter it and could claim all IDs.
    """
    for place in PLACES:
        folder = place / FOLDER_NAME
        with suppress(OSError):  # it exists already, or the place is missing or read-only
            folder.mkdir(0o700)
        if not os.access(folder, os.W_OK):
            continue
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid or stat.S_IMODE(found.st_mode) & 0o077:
            raise GradingError(
                f"{folder} should be a folder that only root can enter, but it is {stat.filemode(found.st_mode)} and "
                f"belongs to the user {found.st_uid}. Remove it, and grade again"
            )
        return folder
    raise GradingError(
        f"no folder can be made in {', '.join(map(str, PLACES))}, where submissions claim user IDs. Make one of these "
        "places writable for root"
    )
