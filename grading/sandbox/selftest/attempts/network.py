"""Attempts to speak to somebody outside."""

import os
import socket
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

Attempts = Iterator[tuple[str, Callable[[], Any]]]
PATIENCE = 0.5  # seconds
LISTENING: list[socket.socket] = []
OUTSIDE = ("192.0.2.1", "2001:db8::1")  # addresses that are kept for examples: nobody is there


def tcp(ports: dict[str, int]) -> Attempts:
    """Connect to a listener on the grader's machine, and to an address elsewhere."""
    for host, port in ports.items():
        yield f"{host} port {port}", partial(_connected, host, port)
    for host in OUTSIDE:
        yield host, partial(_connected, host, 443)


def _connected(host: str, port: int) -> str:
    with socket.create_connection((host, port), PATIENCE):
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
    """Connect to sockets that listen on the grader's machine under a name: abstract ones, and in files."""
    for name in names:
        yield name.replace("\0", "@"), partial(_met, name)


def _met(name: str) -> str:
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(PATIENCE)
        caller.connect(name)
        return "connected"


def listen(name: str) -> None:
    """Listen under a name until the process ends."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(name)
    server.listen()
    LISTENING.append(server)


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
