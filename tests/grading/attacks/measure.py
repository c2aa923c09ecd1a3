"""What a run left behind: every byte that came out of it, what it changed, and what of it still runs."""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from time import monotonic, sleep

import psutil


def state(*roots: Path) -> dict[str, str]:
    """Return what every file below these folders holds, is, and allows."""
    return {str(path): _one(path) for root in roots for path in [root, *sorted(root.rglob("*"))]}


def _one(path: Path) -> str:
    status = path.lstat()
    if path.is_symlink():
        return f"link to {path.readlink()}"
    digest = sha256(path.read_bytes()).hexdigest() if path.is_file() and status.st_size < 50_000_000 else ""
    return f"{status.st_mode:o} {status.st_size if path.is_file() else 0} {status.st_mtime_ns} {digest}"


def files(*roots: Path) -> Iterator[tuple[Path, bytes]]:
    """Yield every file below these folders, and its bytes."""
    for root in roots:
        for path in root.rglob("*"):
            if path.is_file():
                yield path, path.read_bytes()


def survivors(place: Path, patience: float = 10.0) -> list[str]:
    """Return the processes of boxes that are there still after some seconds: what was killed takes a moment."""
    until = monotonic() + patience
    while (found := in_boxes(place)) and monotonic() < until:
        sleep(0.1)
    return found


def in_boxes(place: Path) -> list[str]:
    """Return the processes that see something of a folder mounted: those that run in a box made there."""
    found = []
    for process in psutil.process_iter():
        try:
            mounted = Path(f"/proc/{process.pid}/mountinfo").read_text()
            if str(place) in mounted:
                found.append(f"{process.pid} {process.status()} {process.name()}")
        except (OSError, psutil.Error):
            continue  # it is gone, or not ours to look at
    return found
