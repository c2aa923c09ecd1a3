"""The probes of the walls, by what a submission would be after."""

from typing import Any

from grading.sandbox.selftest.attempts.calls import CALLS, OPTIONS
from grading.sandbox.selftest.plants import SHOWN, Plants, meant
from grading.sandbox.selftest.probe import Probe

ANSWERS = (
    *("attnlib.checks.catalogue", "attnlib.checks.evaluation", "attnlib.checks.questions", "attnlib.checks.report"),
    *(
        "grading.judge",
        "grading.graded_cell",
        "grading.gradebook.assignment",
        "grading.sandbox.host",
        "grading.sandbox.selftest",
    ),
)
FILE = "/usr/bin/env"  # that every box shows
DEVICES = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"]
CHANGED = ["/usr/bin/env", "/etc/ld.so.cache", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"]


def wall_probes(plants: Plants) -> list[Probe]:
    """Return every probe that needs no more than a moment."""
    return [*_read(plants), *_write(plants), *_connect(plants), *_see(plants), *_calls()]


def _probe(family: str, name: str, tried: str, function: str, **arguments: Any) -> Probe:
    return Probe(family, name, tried, function, arguments)


def _read(plants: Plants) -> list[Probe]:
    files = {
        "repository": "solutions, tests and the engine of this course",
        "class": "the gradebook, and another submission",
        "home": "the home of whoever grades",
        "system": "/etc/shadow, /etc/passwd, /var, /run",
    }
    probes = [_probe("read", name, tried, "files.read", paths=plants.files[name]) for name, tried in files.items()]
    left = Probe("read", "left behind", "what another submission left", "files.left", {}, before="files.leave()")
    return [
        *(probe for probe in probes if probe.arguments["paths"]),
        _probe("read", "environment", "the grader's variables", "files.environment", allowed=SHOWN, word=plants.word),
        _probe("read", "memory", "the memory of other processes", "files.memory", pid=plants.pid),
        _probe("read", "references", "modules that hold the answers", "files.references", modules=ANSWERS),
        _probe("read", "payload", "more of the course than was carried in", "files.payload", meant=meant()),
        _probe("read", "open files", "files that the box left open", "files.open_files"),
        left,
    ]


def _write(plants: Plants) -> list[Probe]:
    paths = [*CHANGED, *plants.files["class"][:2]]
    return [
        _probe("write", "folders", "a file in every folder of every mount", "files.write"),
        _probe("write", "files", "the system, Python, the payload", "files.change", paths=paths),
        _probe(
            "write", "times", "the times of files that every box sees", "files.times", paths=[*CHANGED[:1], *DEVICES]
        ),
        _probe("write", "devices", "devices of the machine", "files.devices"),
    ]


def _connect(plants: Plants) -> list[Probe]:
    name = f"\0{plants.word}-beside"
    beside, shown = {"names": [name]}, {"path": FILE}
    return [
        Probe("connect", "neighbour", "another submission", "network.unix", beside, before=f"network.listen({name!r})"),
        Probe(
            "connect",
            "locks",
            "a lock that another submission holds",
            "network.locks",
            shown,
            before=f"network.lock({FILE!r})",
        ),
        _probe("connect", "tcp", "a listener on this machine, and elsewhere", "network.tcp", ports=plants.ports),
        _probe("connect", "udp", "a datagram to this machine, and elsewhere", "network.udp", port=plants.udp),
        _probe("connect", "names", "the address of a name", "network.names"),
        _probe("connect", "unix", "sockets with a name on this machine", "network.unix", names=plants.sockets),
        _probe("connect", "kinds", "sockets of every kind that leads out", "network.kinds"),
        _probe("connect", "devices", "a network device", "network.devices", namespace=plants.spaces.get("net", "")),
    ]


def _see(plants: Plants) -> list[Probe]:
    return [
        _probe("see", "processes", "a process on this machine", "processes.seen", pid=plants.pid, word=plants.word),
        _probe("see", "signals", "a signal to it, and to all others", "processes.signalled", pid=plants.pid),
        _probe("see", "shared memory", "its memory", "processes.shared", key=plants.segment, file=plants.memory),
        _probe("see", "namespaces", "namespaces of the grader's", "processes.spaces", grader=plants.spaces),
        _probe("see", "machine", "counts that the kernel keeps for all", "processes.machine"),
        _probe("see", "terminal", "the grader's terminal", "processes.terminals"),
    ]


def _calls() -> list[Probe]:
    return [
        *(_probe("call", name, f"the system call {name}", "calls.call", call=name) for name in CALLS),
        *(_probe("call", name, f"the system call {name}", "calls.option", option=name) for name in OPTIONS),
        _probe("call", "clone", "a process in new namespaces", "calls.clone"),
        _probe("call", "SIGCHLD", "children whose processor time nobody counts", "calls.uncounted"),
        _probe("call", "x32", "a call by its other number", "calls.other_convention"),
        _probe("call", "root", "to be root", "calls.root"),
        _probe("call", "rights", "rights that were kept", "calls.rights"),
        _probe("call", "TIOCSTI", "to type into the terminal", "calls.type_for_others"),
    ]
