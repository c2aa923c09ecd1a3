"""Replace a folder by a new one that is complete: whoever reads it meanwhile finds the old one or the new one."""

import shutil
from collections.abc import Iterable
from pathlib import Path


def put_in_place(new: Path, place: Path, keep: Iterable[str] = ()) -> None:
    """Rename a folder to its place, beside which it lies. Of the old one, only the parts named in ``keep`` remain."""
    keep = list(keep)
    put_back(place, keep)
    if place.exists():
        place.rename(_old(place))
    new.rename(place)
    put_back(place, keep)


def put_back(place: Path, keep: Iterable[str] = ()) -> None:
    """Finish what :func:`put_in_place` began, even if it was killed: where no new folder is, the old one returns."""
    old = _old(place)
    if old.exists() and not place.exists():
        old.rename(place)
    for name in keep:
        if (old / name).exists() and not (place / name).exists():
            (old / name).rename(place / name)
    shutil.rmtree(old, ignore_errors=True)


def _old(place: Path) -> Path:
    return place.with_name(f"{place.name}.old")
