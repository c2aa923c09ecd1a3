"""All attempts to escape from the sandbox, grouped by what a submission would try to do."""

from typing import Any

from grading.sandbox.selftest.attempt import Attempt
from grading.sandbox.selftest.attempts.calls import REFUSED_ARGUMENTS, REFUSED_CALLS
from grading.sandbox.selftest.canaries import SHOWN_VARIABLES, Canaries, meant

ANSWER_MODULES = (
    *("attnlib.checks.catalogue", "attnlib.checks.evaluation", "attnlib.checks.questions", "attnlib.checks.report"),
    *(
        "grading.judge",
        "grading.graded_cell",
        "grading.gradebook.assignment",
        "grading.sandbox.host",
        "grading.sandbox.selftest",
    ),
)
VISIBLE_FILE = "/usr/bin/env"  # every box shows it
DEVICES = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"]
SYSTEM_FILES = ["/usr/bin/env", "/etc/ld.so.cache", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"]


def escape_attempts(canaries: Canaries) -> list[Attempt]:
    """Return all attempts, each of which takes only a moment."""
    return [*_read(canaries), *_write(canaries), *_connect(canaries), *_see(canaries), *_calls()]


def _attempt(family: str, name: str, tried: str, function: str, **arguments: Any) -> Attempt:
    return Attempt(family, name, tried, function, arguments)


def _read(canaries: Canaries) -> list[Attempt]:
    files = {
        "repository": "solutions, tests and the engine of this course",
        "class": "the gradebook, and another submission",
        "home": "the home folder of the person who grades",
        "system": "/etc/shadow, /etc/passwd, /var, /run",
    }
    attempts = [
        _attempt("read", name, tried, "files.read", paths=canaries.files[name]) for name, tried in files.items()
    ]
    left = Attempt("read", "left behind", "what another submission left", "files.left", {}, before="files.leave()")
    return [
        *(attempt for attempt in attempts if attempt.arguments["paths"]),
        _attempt(
            "read",
            "environment",
            "the grader's variables",
            "files.environment",
            allowed=SHOWN_VARIABLES,
            word=canaries.word,
        ),
        _attempt("read", "memory", "the memory of other processes", "files.memory", pid=canaries.pid),
        _attempt("read", "references", "modules that hold the answers", "files.references", modules=ANSWER_MODULES),
        _attempt("read", "payload", "more of the course than it should hold", "files.payload", meant=meant()),
        _attempt("read", "open files", "files that the box left open", "files.open_files"),
        left,
    ]


def _write(canaries: Canaries) -> list[Attempt]:
    paths = [*SYSTEM_FILES, *canaries.files["class"][:2]]
    return [
        _attempt("write", "folders", "a file in folders of every mount", "files.write"),
        _attempt("write", "files", "the system, Python, the payload", "files.change", paths=paths),
        _attempt(
            "write",
            "times",
            "the times of files that every box sees",
            "files.times",
            paths=[*SYSTEM_FILES[:1], *DEVICES],
        ),
        _attempt("write", "devices", "devices of the machine", "files.devices"),
    ]


def _connect(canaries: Canaries) -> list[Attempt]:
    name = f"\0{canaries.word}-beside"
    beside, shown = {"names": [name]}, {"path": VISIBLE_FILE}
    return [
        Attempt(
            "connect", "neighbour", "another submission", "network.unix", beside, before=f"network.listen({name!r})"
        ),
        Attempt(
            "connect",
            "locks",
            "a lock that another submission holds",
            "network.locks",
            shown,
            before=f"network.lock({VISIBLE_FILE!r})",
        ),
        _attempt("connect", "tcp", "a listener on this machine, and elsewhere", "network.tcp", ports=canaries.ports),
        _attempt("connect", "udp", "a datagram to this machine, and elsewhere", "network.udp", port=canaries.udp),
        _attempt("connect", "names", "looking up the address of a name", "network.names"),
        _attempt("connect", "unix", "sockets with a name on this machine", "network.unix", names=canaries.sockets),
        _attempt("connect", "kinds", "every kind of socket that leads out", "network.kinds"),
        _attempt("connect", "devices", "a network device", "network.devices", namespace=canaries.spaces.get("net", "")),
    ]


def _see(canaries: Canaries) -> list[Attempt]:
    return [
        _attempt(
            "see", "processes", "a process on this machine", "processes.seen", pid=canaries.pid, word=canaries.word
        ),
        _attempt("see", "signals", "a signal to it, and to all others", "processes.signalled", pid=canaries.pid),
        _attempt("see", "shared memory", "its memory", "processes.shared", key=canaries.segment, file=canaries.memory),
        _attempt("see", "namespaces", "the grader's namespaces", "processes.spaces", grader=canaries.spaces),
        _attempt("see", "machine", "counts for the whole machine", "processes.machine"),
        _attempt("see", "terminal", "the grader's terminal", "processes.terminals"),
    ]


def _calls() -> list[Attempt]:
    return [
        *(_attempt("call", name, f"the system call {name}", "calls.call", call=name) for name in REFUSED_CALLS),
        *(_attempt("call", name, f"the system call {name}", "calls.option", option=name) for name in REFUSED_ARGUMENTS),
        _attempt("call", "clone", "a process in new namespaces", "calls.clone"),
        _attempt("call", "SIGCHLD", "children with uncounted processor time", "calls.uncounted"),
        _attempt("call", "x32", "a system call by its x32 number", "calls.other_convention"),
        _attempt("call", "root", "becoming root", "calls.root"),
        _attempt("call", "rights", "capabilities that were kept", "calls.rights"),
        _attempt("call", "TIOCSTI", "typing into the terminal", "calls.type_for_others"),
    ]
