"""How much memory a submission holds: what its processes share counts once, and files that they map do not count.

Memory that is shared by being mapped, and not by a fork, is the kernel's file without a name. It lasts as long as any
page of it is mapped anywhere, whether or not a process has touched it since, so that no process's own size tells of it.
Looking for it takes a while. It is done where shared memory of the whole machine has grown by more than may be taken.
"""

import math
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]

PROC = Path("/proc")
KB = 1024
SIZE = re.compile(r"^(\w+):\s+(\d+) kB$", re.MULTILINE)
# address, permissions, offset, device, inode, and the name by which Linux calls shared memory without one
SHARED = re.compile(r"^(\w+)-(\w+) ...s (\w+) (\S+ \d+) +/dev/zero", re.MULTILINE)
LONGEST = 8_000_000  # bytes of a list of mappings; that of an honest process has a twentieth


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


def shared_by_all() -> int:
    """Return the bytes of shared memory on this machine, or 0 where the system does not tell."""
    return _sizes(PROC / "meminfo").get("Shmem", 0)


def shared_by(family: Iterable[psutil.Process]) -> float:
    """Return the bytes of shared memory without a name that processes have mapped; infinity for endless lists of it."""
    areas: dict[str, int] = {}
    for process in family:
        folder = PROC / str(process.pid)
        try:
            with (folder / "maps").open(encoding="utf-8", errors="replace") as file:
                text = file.read(LONGEST)
        except OSError:
            continue  # it ended meanwhile
        if len(text) == LONGEST:
            return math.inf
        for name, size in _areas(folder, text):
            areas[name] = max(areas.get(name, 0), size)
    return sum(areas.values())


def _areas(folder: Path, text: str) -> Iterator[tuple[str, int]]:
    """Yield each area of shared memory and its bytes: as they are for root; for others those up to what is mapped."""
    for begin, end, offset, name in SHARED.findall(text):
        try:
            yield name, 512 * os.stat(folder / "map_files" / f"{int(begin, 16):x}-{int(end, 16):x}").st_blocks
        except OSError:
            yield name, int(offset, 16) + int(end, 16) - int(begin, 16)


def _sizes(file: Path) -> dict[str, int]:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return {name: KB * int(size) for name, size in SIZE.findall(text)}
