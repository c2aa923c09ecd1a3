"""How a fork of the server becomes the process that a submission runs in: behind walls, with nothing open or secret."""

import contextlib
import os
import socket
import stat
import sys
import tempfile
import traceback
from typing import Any, NoReturn

from grading.sandbox.inside import walls

HOME = "/scratch"
SCRATCH = (HOME, "/tmp", "/dev/shm", "/warm")  # each submission finds them empty: what it may write, and what is hidden


def become(shell: Any, wanted: dict[str, Any], channel: int, leash: socket.socket, *, walled: bool) -> NoReturn:
    """Raise the walls, say through the leash that they stand, and serve the grader until it hangs up."""
    try:
        if walled:
            _shut_in(wanted)
        os.chdir(HOME if walled else wanted["folder"])
        os.setsid()
        os.environ.update(dict.fromkeys(("HOME", "IPYTHONDIR", "XDG_CACHE_HOME"), os.getcwd()))
        os.environ["TMPDIR"] = tempfile.tempdir = "/tmp" if walled else os.getcwd()
        _limit(wanted, walled=walled)
        from grading.sandbox.inside.session import Session

        session = Session(shell, channel, wanted)
        with leash:
            leash.sendall(b"up")
        session.serve()
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)  # for the grader, who reads it where a box does not work
    finally:
        os._exit(0)


def _shut_in(wanted: dict[str, Any]) -> None:
    _share_no_position()
    python = [os.path.realpath(place) for place in {sys.prefix, sys.base_prefix}]
    walls.part_from_others(dict.fromkeys(SCRATCH, wanted["file_size"]), wanted["uid"], python)
    walls.see_only_own_processes()
    walls.become(wanted["uid"])
    walls.give_up_rights()
    walls.filter_calls()


def _share_no_position() -> None:
    """Open anew what the server holds open, fonts mostly: a position is common to all forks, and could carry a word."""
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the list itself was read through one that is closed now
            if int(name) > 2 and stat.S_ISREG(os.fstat(int(name)).st_mode):
                own = os.open(f"/proc/self/fd/{name}", os.O_RDONLY)
                os.dup2(own, int(name), inheritable=False)
                os.close(own)


def _limit(wanted: dict[str, Any], *, walled: bool) -> None:
    limits = dict(wanted["limits"])
    if not walled:
        limits.pop("NPROC", None)  # it would count all processes of whoever grades
    if addresses := walls.address_space():
        limits["AS"] = addresses + wanted["memory"]
    walls.limit(limits)
