"""Canaries: files, processes and sockets on the grader's side, so that an attempt that escapes finds something."""

import ctypes
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from secrets import randbelow, token_hex
from tempfile import TemporaryDirectory

import grading
from grading.course import Course
from grading.sandbox import bubblewrap

VARIABLE = "SELFTEST_SECRET"
CREATE, REMOVE = 0o1600, 0
ROOT = Path(grading.__file__).parents[1]
NAMESPACES = ("net", "mnt", "pid", "ipc", "uts", "user")  # the kinds of namespaces
MAX_CANARIES = 40  # how many files of a kind
ANSWER_FILES = re.compile("attnlib/checks/(?!calling/)")  # the files with the references and the known mistakes


@dataclass(frozen=True)
class Canaries:
    """What there is to find: files by kind, a word, a process, listeners, and shared memory."""

    word: str
    files: dict[str, list[str]]
    pid: int
    ports: dict[str, int]
    udp: int
    sockets: list[str]
    segment: int
    memory: str
    spaces: dict[str, str]


@contextmanager
def lay_canaries(course: Course | None = None) -> Iterator[Canaries]:
    """Put everything in place, and remove it again. The course is the one in use, or that of the environment."""
    course = course or Course.at(ROOT)
    with ExitStack() as stack:
        word = f"selftest-{token_hex(8)}"
        stack.enter_context(_variable(word))
        place = "/var/tmp" if os.access("/var/tmp", os.W_OK) else None  # a submission has a /tmp of its own
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="class-", dir=place)))
        others = [*_submissions(folder, word), *_class(course)]
        ports = {host: port for host in ("127.0.0.1", "::1") if (port := _listener(stack, host))}
        yield Canaries(
            word,
            {"repository": _repository(course), "class": others, "home": _home(), "system": _system()},
            _sleeper(stack, word),
            ports,
            _datagrams(stack),
            [f"\0{word}", str(folder / "socket"), *_sockets(stack, word, folder)],
            _segment(stack),
            _memory(stack, word),
            {kind: str(Path(f"/proc/self/ns/{kind}").readlink()) for kind in _spaces()},
        )


@contextmanager
def _variable(word: str) -> Iterator[None]:
    name = f"{VARIABLE}_{word[-8:]}"  # its own, for sandboxes may be tested at the same time
    os.environ[name] = word
    try:
        yield
    finally:
        del os.environ[name]


def _submissions(folder: Path, word: str) -> list[str]:
    """Make a class with a submission and a gradebook, and return its files."""
    other = folder / "submitted" / "another" / "answers.ipynb"
    other.parent.mkdir(parents=True)
    for file in (other, folder / "gradebook.db"):
        file.write_text(word)
        file.chmod(0o644)
    folder.chmod(0o755)
    return [str(path) for path in (other, folder / "gradebook.db", folder)]


def _class(course: Course) -> list[str]:
    """Return what is in the folder of the class: the gradebook, submissions, seeds."""
    patterns = ("*", "submitted/*/*/*", "autograded/*/*/*", "reports/*/*")
    found = [path for pattern in patterns for path in islice(course.folder.glob(pattern), MAX_CANARIES)]
    return [str(path) for path in (course.folder, course.folder / "gradebook.db", *found)]


def _repository(course: Course) -> list[str]:
    patterns = ("*.toml", "*.py", "solutions/*/*", "exercises/*/*", "tests/*/*.py", "grading/*.py", ".git/*")
    roots = {ROOT, course.root}
    found = [path for root in roots for pattern in patterns for path in islice(root.glob(pattern), MAX_CANARIES)]
    return [str(path) for path in [*found, *(ROOT / "attnlib" / "checks" / "catalogue").rglob("*.py")]]


def _home() -> list[str]:
    """Return what is in the home folder of the person who grades, except Python itself."""
    shown = [Path(sys.prefix), Path(sys.base_prefix)]
    try:
        entries = list(islice(Path.home().iterdir(), MAX_CANARIES))
    except (OSError, RuntimeError):
        return []
    return [str(path) for path in entries if not any(path.is_relative_to(part) for part in shown)]


def _system() -> list[str]:
    etc = ("shadow", "passwd", "group", "hosts", "resolv.conf", "ssh", "machine-id", "sudoers", "environment")
    rest = ("/sys", "/run", "/var", "/boot", "/mnt", "/proc/kcore", "/proc/kmsg", "/proc/kpagecount")
    return [*(f"/etc/{name}" for name in etc), *rest]


def _listener(stack: ExitStack, host: str) -> int:
    """Listen at an address, if the machine has it, and return the port."""
    try:
        server = stack.enter_context(socket.create_server((host, 0), family=_family(host)))
    except OSError:
        return 0
    return int(server.getsockname()[1])


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _datagrams(stack: ExitStack) -> int:
    server = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    server.bind(("127.0.0.1", 0))
    return int(server.getsockname()[1])


def _sockets(stack: ExitStack, word: str, folder: Path) -> list[str]:
    """Listen under an abstract name and in a file, and return other sockets that may be on this machine."""
    for name in (f"\0{word}", str(folder / "socket")):
        server = stack.enter_context(socket.socket(socket.AF_UNIX))
        server.bind(name)
        server.listen()
    return ["/run/docker.sock", "/run/dbus/system_bus_socket", "/run/systemd/journal/socket"]


def _sleeper(stack: ExitStack, word: str) -> int:
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", "import sys; sys.stdin.read()", word],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
    stack.callback(process.communicate)  # it ends with its input
    return process.pid


def _segment(stack: ExitStack) -> int:
    """Make a segment of shared memory, and return its key."""
    libc, key = ctypes.CDLL(None, use_errno=True), 1 + randbelow(1 << 30)
    number = libc.shmget(key, 4096, CREATE)
    if number >= 0:
        stack.callback(libc.shmctl, number, REMOVE, None)
    return key


def _memory(stack: ExitStack, word: str) -> str:
    folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    file = Path(stack.enter_context(TemporaryDirectory(prefix="shared-", dir=folder)), "memory")
    file.write_text(word)
    file.parent.chmod(0o755)
    return str(file)


def _spaces() -> list[str]:
    """Return the kinds of namespaces of which a submission has to have its own, on this machine."""
    return [kind for kind in NAMESPACES if Path(f"/proc/self/ns/{kind}").exists()]


def meant() -> list[str]:
    """Return what may be in the payload: the library without its exercises, and what runs in the box."""
    inside = [f"grading/sandbox/inside/{path.name}" for path in (ROOT / "grading/sandbox/inside").glob("*.py")]
    library = [path.relative_to(ROOT).as_posix() for path in (ROOT / "attnlib").rglob("*") if path.is_file()]
    packages = ["grading/__init__.py", "grading/sandbox/__init__.py", "attnlib/checks/__init__.py"]
    return [*inside, *packages, *(name for name in library if not ANSWER_FILES.match(name))]


SHOWN_VARIABLES = tuple(bubblewrap.environment())  # variables that a submission is meant to see
