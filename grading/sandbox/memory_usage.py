"""How much memory a submission uses. The limits are in ``limits.py``.

What processes share is counted once, and files that they have mapped are not counted.

Anonymous shared memory, which is shared by mapping it rather than by a fork, is a nameless file of the kernel's. It
lasts as long as some process has a page of it mapped, even if no process has touched it since. The size of a process
therefore does not show it. Looking for it takes time, so this is done only after the shared memory of the whole machine
has grown by more than a submission may take.

None of these figures counts what the kernel stores on behalf of processes. The number of open files bounds most of it.
Two things it does not bound are estimated: what sockets hold, which is counted as the most that they can hold, and what
mappings cost, which is page tables and an entry for each mapping, copied by a fork for every ancestor.
"""

import math
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]

PROC = Path("/proc")
KB = 1024
SIZE_LINE = re.compile(r"^(\w+):\s+(\d+) kB$", re.MULTILINE)
# Matches address, permissions, offset, device, inode, and the name that Linux gives to nameless shared memory.
SHARED_MAPPING = re.compile(r"^(\w+)-(\w+) ...s (\w+) (\S+ \d+) +/dev/zero", re.MULTILINE)
MAX_MAPPINGS_BYTES = 8_000_000  # an honest process's list has a twentieth of this
# This file says how many bytes a socket may have sent, including what the kernel adds to them.
SEND_BUFFER = Path("/proc/sys/net/core/wmem_default")
# A sent byte can keep this many bytes from being freed: a file's page that is sent byte by byte counts as a fifth of
# what it holds.
PINNED_PER_BYTE = 8
# A socket queues at most this many datagrams. Each may come from another socket, which may have been closed since.
MAX_QUEUED_DATAGRAMS = 11
DATAGRAM_SOCKET = "0002"
BYTES_PER_MAPPING = 300  # what the kernel stores for each mapping
BYTES_PER_ANCESTOR = 64  # what it adds for each process that may share the mapping


def bytes_of_process(process: psutil.Process) -> int:
    """Return the bytes that one process holds, including what it shares with its parent."""
    sizes = _sizes(PROC / str(process.pid) / "smaps_rollup")
    return sizes["Anonymous"] if sizes else int(process.memory_info().rss)


def bytes_of_processes(family: Iterable[psutil.Process]) -> int:
    """Return the bytes that processes hold together, counting what they share only once."""
    total = 0
    for process in family:
        with suppress(psutil.Error):  # this one ended meanwhile, but the others may not have
            sizes = _sizes(PROC / str(process.pid) / "smaps_rollup")
            # Pss_Anon needs Linux 5.3
            total += sizes.get("Pss_Anon", sizes["Pss"]) if sizes else int(process.memory_info().rss)
    return total


def max_kernel_bytes(family: Sequence[psutil.Process], *, sandboxed: bool) -> float:
    """Return the most bytes that the kernel may hold for processes.

    Sockets count only if the processes are ``sandboxed``, and so have a network of their own. Otherwise the list would
    include the sockets of the whole machine.
    """
    held = _sockets(PROC / str(family[0].pid) / "net" / "unix") if sandboxed else 0.0
    for process in family:
        folder = PROC / str(process.pid)
        mappings = _read(folder / "maps").count("\n")
        held += _sizes(folder / "status").get("VmPTE", 0) + mappings * (
            BYTES_PER_MAPPING + BYTES_PER_ANCESTOR * len(family)
        )
    return held


def _sockets(file: Path) -> float:
    """Return how much the sockets of a network can hold, including those in transit and those not yet accepted."""
    text = _read(file)
    if not text:
        return 0
    if len(text) == MAX_MAPPINGS_BYTES:
        return math.inf
    kinds = [line.split()[4] for line in text.splitlines()[1:]]
    places = sum(MAX_QUEUED_DATAGRAMS if kind == DATAGRAM_SOCKET else 1 for kind in kinds)
    return places * PINNED_PER_BYTE * int(SEND_BUFFER.read_text(encoding="ascii"))


def shared_bytes_of_machine() -> int:
    """Return the bytes of shared memory on this machine, or 0 if the system does not tell."""
    return _sizes(PROC / "meminfo").get("Shmem", 0)


def shared_bytes(family: Iterable[psutil.Process]) -> float:
    """Return the bytes of nameless shared memory that processes have mapped, or infinity if the list is too long."""
    # areas by name, since forks can share thousands and the kernel should be asked only once for each
    measured: dict[str, int] = {}
    mapped: dict[str, int] = {}  # how much of each other area is mapped
    for process in family:
        folder = PROC / str(process.pid)
        text = _read(folder / "maps")
        if len(text) == MAX_MAPPINGS_BYTES:
            return math.inf
        for begin, end, offset, name in SHARED_MAPPING.findall(text):
            if name in measured:
                continue
            size = _allocated(folder / "map_files" / f"{int(begin, 16):x}-{int(end, 16):x}")
            if size is None:
                mapped[name] = max(mapped.get(name, 0), int(offset, 16) + int(end, 16) - int(begin, 16))
            else:
                measured[name] = size
    return sum((mapped | measured).values())


def _allocated(mapping: Path) -> int | None:
    """Return the bytes of a mapped area of shared memory, or None if the kernel does not say. It tells only root."""
    try:
        return 512 * mapping.stat().st_blocks
    except OSError:
        return None


def _sizes(file: Path) -> dict[str, int]:
    return {name: KB * int(size) for name, size in SIZE_LINE.findall(_read(file))}


def _read(file: Path) -> str:
    """Return the contents of a kernel file, up to a bound, or nothing if its process has ended."""
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            return stream.read(MAX_MAPPINGS_BYTES)
    except OSError:
        return ""
