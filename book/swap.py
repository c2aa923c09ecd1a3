"""Replace a folder by a new one that is complete: whoever reads it meanwhile finds the old one or the new one."""

import shutil
from collections.abc import Iterable
from pathlib import Path


def put_in_place(new: Path, place: Path, keep: Iterable[str] = ()) -> None:
    """Rename a folder to its place, beside which it lies. Of the old one, only the parts named in ``keep`` remain."""
    old = place.with_name(f"{place.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if place.exists():
        place.rename(old)
    new.rename(place)
    for name in keep:
        if (old / name).exists():
            (old / name).rename(place / name)
    shutil.rmtree(old, ignore_errors=True)
