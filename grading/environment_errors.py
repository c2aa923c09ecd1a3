"""Errors that come from the machine around the program, in words: a full disk, a missing file, a locked gradebook."""

import errno

from sqlalchemy.exc import SQLAlchemyError

ADVICE_BY_ERRNO = {
    errno.ENOSPC: "Free some space on the disk.",
    errno.EDQUOT: "Free some space within your quota.",
    errno.EACCES: "You need permission to read and write it: change its permissions or its owner.",
    errno.EPERM: "You need permission to read and write it: change its permissions or its owner.",
    errno.EROFS: "Choose another folder, on a disk that can be written to.",
    errno.ENOENT: "Check that the path is right and that nobody has removed it.",
    errno.ENOTDIR: "Every part of the path but the last must be a folder: move the file that is in the way.",
    errno.EISDIR: "A file is expected there: move the folder that is in the way.",
    errno.EEXIST: "Nothing of that name may exist yet: move what is in the way.",
    errno.EMFILE: "The process needs to open more files: raise the limit with `ulimit -n`.",
    errno.ENOMEM: "Close other programs to free some memory.",
}
DEFAULT_ADVICE = "Fix this."
GRADEBOOK_ADVICE = "The gradebook must exist, and no other program may keep it locked: close the one that does."


def explained(error: Exception) -> str:
    """Return what happened, what is needed and what to do, or '' if the error is a bug in the program."""
    if isinstance(error, SQLAlchemyError):
        return f"{type(error).__name__}: {str(error).splitlines()[0]}. {GRADEBOOK_ADVICE}"
    if not isinstance(error, OSError):
        return ""
    what = error.strerror or str(error) or type(error).__name__
    paths = " -> ".join(str(path) for path in (error.filename, error.filename2) if path is not None)
    return f"{paths + ': ' if paths else ''}{what}. {ADVICE_BY_ERRNO.get(error.errno or 0, DEFAULT_ADVICE)}"
