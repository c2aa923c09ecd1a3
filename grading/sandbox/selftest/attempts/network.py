"""Attempts to communicate with something outside."""

import fcntl
import os
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

Attempts = Iterator[tuple[str, Callable[[], Any]]]
CONNECT_TIMEOUT = 0.5  # seconds
LISTENING: list[socket.socket] = []
OPEN: list[int] = []
LOCK = struct.pack("hhqqi4x", fcntl.F_RDLCK, os.SEEK_SET, 4711, 1, 0)  # one byte
WRITER = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 4711, 1, 0)  # would conflict with it
F_OFD_GETLK, F_SETLEASE, DN_ACCESS = 36, 1024, 1
OUTSIDE = ("192.0.2.1", "2001:db8::1")  # addresses that are reserved for examples, so nobody is there


def tcp(ports: dict[str, int]) -> Attempts:
    """Connect to a listener on the grader's machine, and to an address elsewhere."""
    for host, port in ports.items():
        yield f"{host} port {port}", partial(_connected, host, port)
    for host in OUTSIDE:
        yield host, partial(_connected, host, 443)


def _connected(host: str, port: int) -> str:
    with socket.create_connection((host, port), CONNECT_TIMEOUT):
        return "connected"


def udp(port: int) -> Attempts:
    """Send a datagram to the grader's machine, and elsewhere."""
    for address in (("127.0.0.1", port), (OUTSIDE[0], 53)):
        yield str(address), partial(_sent, address)


def _sent(address: tuple[str, int]) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        return f"{sender.sendto(b'x', address)} bytes sent"


def names() -> Attempts:
    """Ask for the address of a name."""
    yield "example.org", lambda: socket.getaddrinfo("example.org", 443)


def unix(names: list[str]) -> Attempts:
    """Connect to Unix sockets that listen on the grader's machine: abstract ones, and those in files."""
    for name in names:
        yield name.replace("\0", "@"), partial(_met, name)


def _met(name: str) -> str:
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(CONNECT_TIMEOUT)
        caller.connect(name)
        return "connected"


def listen(name: str) -> None:
    """Listen under a name until the process ends."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(name)
    server.listen()
    LISTENING.append(server)


def lock(path: str) -> None:
    """Lock a file that all boxes see, if possible, until the process ends."""
    with suppress(OSError):
        fcntl.fcntl(_opened(path), fcntl.F_SETLK, LOCK)


def locks(path: str) -> Attempts:
    """Find a lock on such a file, lock the file, and ask to be notified when another process reads it."""
    yield "F_GETLK", lambda: fcntl.fcntl(_opened(path), fcntl.F_GETLK, WRITER)[0] != fcntl.F_UNLCK
    yield "F_OFD_GETLK", lambda: fcntl.fcntl(_opened(path), F_OFD_GETLK, WRITER)[0] != fcntl.F_UNLCK
    yield "flock", partial(_locked, path)
    yield "F_SETLEASE", lambda: fcntl.fcntl(_opened(path), F_SETLEASE, fcntl.F_RDLCK) == 0 and "leased"
    yield "F_NOTIFY", lambda: fcntl.fcntl(_opened(os.path.dirname(path)), fcntl.F_NOTIFY, DN_ACCESS) == 0 and "noticed"


def _locked(path: str) -> str:
    fcntl.flock(_opened(path), fcntl.LOCK_SH)
    return "locked"


def _opened(path: str) -> int:
    """Open a file, which stays open."""
    OPEN.append(os.open(path, os.O_RDONLY))
    return OPEN[-1]


def kinds() -> Attempts:
    """Make sockets of kinds that lead out of the box."""
    named = {"inet": 2, "ax25": 3, "inet6": 10, "netlink": 16, "packet": 17, "can": 29, "bluetooth": 31, "alg": 38}
    for name, family in (named | {"vsock": 40, "xdp": 44}).items():
        yield name, partial(_socket, family, socket.SOCK_DGRAM)
    yield "stream", partial(_socket, socket.AF_INET, socket.SOCK_STREAM)
    yield "raw", partial(_socket, socket.AF_INET, socket.SOCK_RAW)
    yield "vsock stream", partial(_socket, 40, socket.SOCK_STREAM)
    yield "netlink raw", partial(_socket, 16, socket.SOCK_RAW)


def _socket(family: int, kind: int) -> str:
    with socket.socket(family, kind):
        return "made"


def devices(namespace: str) -> Attempts:
    """Find network devices, or the grader's network namespace."""
    lines = Path("/proc/net/dev").read_text().splitlines()[2:] if os.path.exists("/proc/net/dev") else []
    found = {line.partition(":")[0].strip() for line in lines} - {"lo", "sit0", "tunl0", "ip6tnl0", "gre0", "erspan0"}
    yield "devices", lambda: " ".join(sorted(found))
    yield "the grader's network", lambda: os.readlink("/proc/self/ns/net") == namespace
