"""Runs attempts in the box, and says which of them succeeded."""

import json
from collections.abc import Callable, Iterable
from typing import Any

MAX_SHOWN = 160  # characters of what was reached


def attempt(tries: Iterable[tuple[str, Callable[[], Any]]]) -> None:
    """Print what was reached, as JSON: "" if every attempt was refused or found nothing."""
    reached, count = [], 0
    for what, how in tries:
        count += 1
        try:
            found = how()
        except (OSError, ImportError):
            continue
        if found:
            reached.append(f"{what}: {found!s:.60}")
    print(json.dumps({"reached": "; ".join(reached)[:MAX_SHOWN], "tried": count}))
