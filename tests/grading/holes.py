"""Sandboxes with holes, which the selftest has to find: parts of the isolation left out, in a copy of the payload."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from grading.sandbox import bubblewrap, host, payload
from grading.sandbox.host import Host
from grading.sandbox.limits import Limits

START_WITHOUT = """

def _start_with_holes(self, wanted, *rest):
    apart = isolation.fork_into_pid_namespace
    if "fork_into_pid_namespace" in wanted["holes"]:
        isolation.fork_into_pid_namespace = lambda _: os.fork()
    try:
        _start_well(self, wanted, *rest)
    finally:
        isolation.fork_into_pid_namespace = apart


_start_well, ForkServer._start = ForkServer._start, _start_with_holes


"""
START = 'if __name__ == "__main__":'
LEAVE_OUT = """

def _with_holes(wanted):
    for name in wanted["holes"]:
        place = vars(isolation) if hasattr(isolation, name) else globals()
        place[name] = type(place[name])() if name.isupper() else lambda *_: None
    _isolate_well(wanted)


_isolate_well, _isolate = _isolate, _with_holes
"""


@contextmanager
def holey_payload() -> Iterator[Path]:
    """Lay out a payload whose processes leave out the parts of the isolation that they are told to."""
    with payload.packed_payload() as folder:
        inside = folder / "grading" / "sandbox" / "inside"
        server, forked = inside / "fork_server.py", inside / "forked_process.py"
        before, start, after = server.read_text().partition(START)
        server.write_text(f"{before}{START_WITHOUT}{start}{after}")
        forked.write_text(forked.read_text() + LEAVE_OUT)
        yield folder


class HoleyHost(Host):
    """A box in which each submission can be without parts of its isolation, and without some of its limits."""

    holes: tuple[str, ...] = ()
    unlimited: tuple[str, ...] = ()

    def _wanted(self, *asked: Any) -> dict[str, Any]:
        wanted = super()._wanted(*asked) | {"holes": self.holes}
        kept = {name: most for name, most in wanted["limits"].items() if name not in self.unlimited}
        return wanted | {"limits": kept}


@contextmanager
def holey_host(limits: Limits | None = None) -> Iterator[HoleyHost]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "packed_payload", holey_payload)
        with HoleyHost(limits or Limits()) as box:
            yield box


@contextmanager
def open_box(*, drop: tuple[str, ...], more: list[str]) -> Iterator[None]:
    """Have bubblewrap make boxes without some of its flags, and with others."""
    well = bubblewrap.command

    def command(folder: Path) -> list[str]:
        line = [word for word in well(folder) if word not in drop]
        at = line.index("--remount-ro")
        return [*line[:at], *more, *line[at:]]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bubblewrap, "command", command)
        yield
