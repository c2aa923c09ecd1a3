"""Errors that come from the machine around the program, in words: a full disk, a missing file, a locked gradebook."""

import errno

from sqlalchemy.exc import SQLAlchemyError

ADVICE_BY_ERRNO = {
    errno.ENOSPC: "There has to be free space on the disk: remove what is not needed.",
    errno.EDQUOT: "There has to be free space within your quota: remove what is not needed.",
    errno.EACCES: "You have to be allowed to read and write it: change its permissions, or who owns it.",
    errno.EPERM: "You have to be allowed to read and write it: change its permissions, or who owns it.",
    errno.EROFS: "It has to be on a disk that can be written to: name another folder.",
    errno.ENOENT: "It has to exist: look whether the path is right, or whether somebody has removed it.",
    errno.ENOTDIR: "Every part of the path but the last has to be a folder: move the file that is in the way.",
    errno.EISDIR: "It has to be a file: move the folder that is in the way.",
    errno.EEXIST: "There may be nothing of that name: move what is in the way.",
    errno.EMFILE: "A process has to be allowed more open files: raise the limit with `ulimit -n`.",
    errno.ENOMEM: "There has to be free memory: end other programs.",
}
DEFAULT_ADVICE = "Put this right."
GRADEBOOK_ADVICE = "The gradebook has to be there, and no other program may keep it locked: close that program."


def explained(error: Exception) -> str:
    """Return what happened, what is needed and what to do, or '' where the error is a fault of the program's own."""
    if isinstance(error, SQLAlchemyError):
        return f"{type(error).__name__}: {str(error).splitlines()[0]}. {GRADEBOOK_ADVICE}"
    if not isinstance(error, OSError):
        return ""
    what = error.strerror or str(error) or type(error).__name__
    paths = " -> ".join(str(path) for path in (error.filename, error.filename2) if path is not None)
    return f"{paths + ': ' if paths else ''}{what}. {ADVICE_BY_ERRNO.get(error.errno or 0, DEFAULT_ADVICE)}"
