"""Replace a folder by a new one that is complete: a reader finds the old folder or the new one, and never a part."""

import shutil
from collections.abc import Iterable
from pathlib import Path


def replace_folder(new: Path, place: Path, keep: Iterable[str] = ()) -> None:
    """Rename a new folder, which lies beside the old one, to its place. Of the old one, only ``keep`` remains."""
    keep = list(keep)
    recover_folder(place, keep)
    if place.exists():
        place.rename(_old(place))
    new.rename(place)
    recover_folder(place, keep)


def recover_folder(place: Path, keep: Iterable[str] = ()) -> None:
    """Finish what :func:`replace_folder` began before it was killed: without a new folder, the old one returns."""
    old = _old(place)
    if old.exists() and not place.exists():
        old.rename(place)
    for name in keep:
        if (old / name).exists() and not (place / name).exists():
            (old / name).rename(place / name)
    shutil.rmtree(old, ignore_errors=True)


def _old(place: Path) -> Path:
    return place.with_name(f"{place.name}.old")
