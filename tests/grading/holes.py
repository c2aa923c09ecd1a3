"""Boxes with holes in them, which the selftest has to find: walls that are left out, in a copy of the kit."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from grading.sandbox import bubblewrap, host, kit
from grading.sandbox.host import Host
from grading.sandbox.limits import Limits

LEAVE_OUT = """
def _with_holes(shell, wanted, *rest, **how):
    for name in wanted["holes"]:
        nothing = 0 if name.isupper() else lambda *_: None
        (vars(walls) if hasattr(walls, name) else globals())[name] = nothing
    _shut_in_well(shell, wanted, *rest, **how)


_shut_in_well, _shut_in = _shut_in, _with_holes
"""
START = 'if __name__ == "__main__":'


@contextmanager
def holey_kit() -> Iterator[Path]:
    """Lay out a kit whose server leaves out the walls that it is told to."""
    with kit.packed() as folder:
        server = folder / "grading" / "sandbox" / "inside" / "server.py"
        text = server.read_text()
        assert START in text
        server.write_text(text.replace(START, f"{LEAVE_OUT}\n\n{START}"))
        yield folder


class HoleyHost(Host):
    """A box in which each session can be without some of its walls, and some of its limits."""

    holes: tuple[str, ...] = ()
    unlimited: tuple[str, ...] = ()

    def _wanted(self, *asked: Any) -> dict[str, Any]:
        wanted = super()._wanted(*asked) | {"holes": self.holes}
        kept = {name: most for name, most in wanted["limits"].items() if name not in self.unlimited}
        return wanted | {"limits": kept}


@contextmanager
def holey_host(limits: Limits | None = None) -> Iterator[HoleyHost]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "packed", holey_kit)
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
