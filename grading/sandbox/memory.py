"""How much memory a submission holds: what its processes share counts once, and files that they map do not count.

Memory that is shared by being mapped, and not by a fork, is the kernel's file without a name. It lasts as long as any
page of it is mapped anywhere, whether or not a process has touched it since, so that no process's own size tells of it.
Looking for it takes a while. It is done where shared memory of the whole machine has grown by more than may be taken.

What the kernel holds for processes is counted by none of these figures. Most of it is bounded by how many files they
may have open. Not so what lies in sockets, which counts as the most that they can hold, and what mappings cost: page
tables, and an entry for each mapping, which a fork makes anew for every ancestor.
"""

import math
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]

PROC = Path("/proc")
KB = 1024
SIZE = re.compile(r"^(\w+):\s+(\d+) kB$", re.MULTILINE)
# address, permissions, offset, device, inode, and the name by which Linux calls shared memory without one
SHARED = re.compile(r"^(\w+)-(\w+) ...s (\w+) (\S+ \d+) +/dev/zero", re.MULTILINE)
MAX_MAPPINGS_BYTES = 8_000_000  # the list of an honest process has a twentieth
SENT = Path("/proc/sys/net/core/wmem_default")  # bytes that a socket may have sent, with what the kernel adds to them
PINNED = (
    8  # bytes that one of these can keep from being freed: a page of a file, sent by the byte, counts a fifth of it
)
QUEUE = 11  # datagrams that wait in a socket at most, each from another one, which may be closed by then
DATAGRAMS = "0002"
MAPPING, ANCESTOR = 300, 64  # bytes of the kernel's for a mapping, and for each process that it may be shared with


def alone(process: psutil.Process) -> int:
    """Return the bytes that one process holds, what it shares with the one that it was forked from included."""
    sizes = _sizes(PROC / str(process.pid) / "smaps_rollup")
    return sizes["Anonymous"] if sizes else int(process.memory_info().rss)


def together(family: Iterable[psutil.Process]) -> int:
    """Return the bytes that processes hold together: of what they share, each has its part."""
    total = 0
    for process in family:
        with suppress(psutil.Error):  # it ended meanwhile; the others did not
            sizes = _sizes(PROC / str(process.pid) / "smaps_rollup")
            total += sizes.get("Pss_Anon", sizes["Pss"]) if sizes else int(process.memory_info().rss)  # Linux 5.3
    return total


def of_the_kernel(family: Sequence[psutil.Process], *, sandboxed: bool) -> float:
    """Return the most bytes that the kernel may hold for processes.

    Sockets count where processes are ``sandboxed``, which gives them a network of their own. Otherwise those of the
    whole machine are listed.
    """
    held = _sockets(PROC / str(family[0].pid) / "net" / "unix") if sandboxed else 0.0
    for process in family:
        folder = PROC / str(process.pid)
        mappings = _read(folder / "maps").count("\n")
        held += _sizes(folder / "status").get("VmPTE", 0) + mappings * (MAPPING + ANCESTOR * len(family))
    return held


def _sockets(file: Path) -> float:
    """Return how much the sockets of a network can hold: those on their way, and those not accepted yet, too."""
    text = _read(file)
    if not text:
        return 0
    if len(text) == MAX_MAPPINGS_BYTES:
        return math.inf
    kinds = [line.split()[4] for line in text.splitlines()[1:]]
    places = sum(QUEUE if kind == DATAGRAMS else 1 for kind in kinds)
    return places * PINNED * int(SENT.read_text(encoding="ascii"))


def shared_by_all() -> int:
    """Return the bytes of shared memory on this machine, or 0 where the system does not tell."""
    return _sizes(PROC / "meminfo").get("Shmem", 0)


def shared_by(family: Iterable[psutil.Process]) -> float:
    """Return the bytes of shared memory without a name that processes have mapped; infinity for endless lists of it."""
    measured: dict[str, int] = {}  # forks share thousands of areas: the kernel is asked once for each
    mapped: dict[str, int] = {}  # of the others, how much is mapped
    for process in family:
        folder = PROC / str(process.pid)
        text = _read(folder / "maps")
        if len(text) == MAX_MAPPINGS_BYTES:
            return math.inf
        for begin, end, offset, name in SHARED.findall(text):
            if name in measured:
                continue
            size = _allocated(folder / "map_files" / f"{int(begin, 16):x}-{int(end, 16):x}")
            if size is None:
                mapped[name] = max(mapped.get(name, 0), int(offset, 16) + int(end, 16) - int(begin, 16))
            else:
                measured[name] = size
    return sum((mapped | measured).values())


def _allocated(mapping: Path) -> int | None:
    """Return the bytes of a mapped area of shared memory, or None where the kernel does not say: it tells only root."""
    try:
        return 512 * mapping.stat().st_blocks
    except OSError:
        return None


def _sizes(file: Path) -> dict[str, int]:
    return {name: KB * int(size) for name, size in SIZE.findall(_read(file))}


def _read(file: Path) -> str:
    """Return what the kernel says in a file, up to a bound; nothing where it has ended whom that is about."""
    try:
        with file.open(encoding="utf-8", errors="replace") as stream:
            return stream.read(MAX_MAPPINGS_BYTES)
    except OSError:
        return ""
