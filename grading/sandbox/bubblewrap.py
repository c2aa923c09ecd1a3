"""The bubblewrap command that builds the box, which contains only the system, Python and the payload."""

import os
import platform
import shutil
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path
from site import getsitepackages

from grading.course import Course, GradingError
from grading.sandbox.inside.syscalls import MACHINES

SYSTEM_FOLDERS = ("/usr", "/lib", "/lib32", "/lib64", "/bin", "/sbin")
# what the box shows of /etc
ETC_FILES = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "fonts", "localtime", "alternatives")
PAYLOAD_FOLDER = "/payload"
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# needed to isolate each submission
ROOTS_RIGHTS = ("CAP_SYS_ADMIN", "CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_KILL")
ANSWERS_INSTALLED = (
    "It contains answers. Remove it with `pip uninstall attnlib`, and install the course in place, as `make` does: "
    "`pip install -e .` in its folder"
)
UNSANDBOXED_WARNING = "`--unsandboxed` grades without it: then student code can read your files and give itself marks."


class NoSandboxError(GradingError):
    """There can be no box here. The text says why, and what to do."""


def environment() -> dict[str, str]:
    """Return the environment variables of the box, which contain none of the grader's own."""
    folders = dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "IPYTHONDIR", "MPLCONFIGDIR"), "/warm")
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "PYTHONPATH": PAYLOAD_FOLDER,
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        **folders,
        **dict.fromkeys(THREAD_VARIABLES, "1"),
    }


def command(payload: Path) -> list[str]:
    """Return the command line that starts the server in a box.

    Root makes the box without a user namespace, so that folders which only root may enter can be shown in it. The
    server then gives up its root rights for each submission. Other users make the box with a user namespace.
    """
    if os.getuid() == 0:
        spaces = ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--cap-drop", "ALL"]
        spaces += [word for right in ROOTS_RIGHTS for word in ("--cap-add", right)]
    else:
        spaces = ["--unshare-all", "--uid", "1000", "--gid", "1000"]
    life = ["--die-with-parent", "--new-session", "--hostname", "grader", "--clearenv"]
    settings = [word for name, value in environment().items() for word in ("--setenv", name, value)]
    folders = ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/warm", "--dir", "/scratch"]
    shown = [word for path in _shown() for word in _show(path)] + ["--ro-bind", str(payload), PAYLOAD_FOLDER]
    parents = [word for path in _parents() for word in ("--perms", "0755", "--dir", str(path))]
    closed = [word for place in ("/tmp", "/dev", "/") for word in ("--remount-ro", place)]
    view = [*folders, *parents, *shown, *closed]
    return [_program(), *spaces, *life, *settings, *view, "--chdir", "/scratch", "--", *server()]


def server() -> list[str]:
    """Return the command line of the server itself."""
    return [sys.executable, "-s", "-m", "grading.sandbox.inside.fork_server"]


def _shown() -> list[Path]:
    paths = [
        *map(Path, SYSTEM_FOLDERS),
        *(Path("/etc") / name for name in ETC_FILES),
        Path(sys.prefix),
        Path(sys.base_prefix),
    ]
    return [path for path in dict.fromkeys(paths) if path.exists()]


def require_hidden(course: Course) -> None:
    """Check that the box shows neither the class's folder, nor the course's, nor the library, even through links.

    Raises:
        NoSandboxError: one of them is in a folder that is shown.
    """
    elsewhere = "Move the class elsewhere, and name the new folder with --course"
    hidden = [
        (course.folder, f"the class's folder {course.folder}", elsewhere),
        (course.root, f"this course, at {course.root},", "Move it elsewhere, with what is in solutions/"),
        *((place, f"attnlib, at {place},", ANSWERS_INSTALLED) for place in _installed()),
    ]
    for place, what, advised in hidden:
        for shown in _shown():
            if place.resolve().is_relative_to(shown.resolve()):
                raise NoSandboxError(
                    f"no sandbox: {what} is in {shown}, which student code must be able to read. {advised}."
                )


def _installed() -> list[Path]:
    """Return every copy of the library that this Python could import, since student code could read each of them."""
    prefixes = [sys.prefix, sys.base_prefix, "/usr", "/usr/local"]
    places = dict.fromkeys([*sys.path, *getsitepackages(prefixes)])
    found = [PathFinder.find_spec("attnlib", [place]) for place in places]
    return [Path(spec.origin).parent for spec in found if spec and spec.origin]


def _parents() -> list[Path]:
    """Return the folders that lead to what is shown. Otherwise bubblewrap would make them accessible only to root."""
    return sorted({parent for path in _shown() for parent in path.parents} - {Path("/")})


def _show(path: Path) -> list[str]:
    if path.is_symlink():
        return ["--symlink", str(path.readlink()), str(path)]
    return ["--ro-bind", str(path), str(path)]


def _program() -> str:
    """Return bubblewrap's path, or say why there can be no box."""
    if sys.platform != "linux":
        reason = f"it needs the namespaces of Linux, and this is {platform.system()}"
        raise NoSandboxError(
            f"no sandbox: {reason}. Grade in a Linux container or virtual machine. {UNSANDBOXED_WARNING}"
        )
    if platform.machine() not in MACHINES:
        raise NoSandboxError(
            f"no sandbox: its filter of system calls does not support {platform.machine()}. {UNSANDBOXED_WARNING}"
        )
    program = shutil.which("bwrap")
    if program is None:
        how = "On Debian and Ubuntu: sudo apt-get install bubblewrap"
        raise NoSandboxError(f"no sandbox: bubblewrap (bwrap) is not installed. {how}. {UNSANDBOXED_WARNING}")
    return program


def why_not() -> str | None:
    """Return why bubblewrap cannot build a box here, or None if it can."""
    flags = ["--unshare-all"] if os.getuid() else ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    trial = [_program(), *flags, "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"]
    done = subprocess.run(trial, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    said = done.stderr.strip() or f"nothing (exit status {done.returncode})"
    return (
        f"no sandbox: bubblewrap says: {said}. User namespaces may be forbidden here. In a container, grade as an "
        "ordinary user and allow them (Docker: --security-opt seccomp=unconfined --security-opt "
        "systempaths=unconfined, Podman: unmask=/proc/* in place of the latter); on Ubuntu 24.04 and later: "
        f"sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0. {UNSANDBOXED_WARNING}"
    )
