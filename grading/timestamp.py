"""When a submission was handed in, according to `timestamp.txt` next to the notebooks, if it is readable."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from grading._untyped import gettz
from grading.course import GradingError
from grading.safe_files import SafeFolder

TIMESTAMP_FILE = "timestamp.txt"  # the name that `nbgrader collect` gives it
LATE_MARK = "LATE"  # replaces the time of a late submission from Canvas, which does not say more
EARLIEST = 1970  # an earlier year is a typing error, and Python does not read the years below 1000 as it writes them
MAX_TIMESTAMP_BYTES = 100  # twice what a time and a time zone need
ZONE_NAME = re.compile(r"[A-Za-z]+(?:[/_+-][A-Za-z\d]+)*")
# The zone is an offset or a name. A path is not accepted as a name, because that file would then be read.
TIMESTAMP_PATTERN = re.compile(
    r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?) ?"
    r"(?:(Z|[+-]\d\d:?\d\d)|(" + ZONE_NAME.pattern + r"))?"
)


@dataclass(frozen=True)
class HandedIn:
    """When a submission was handed in, if known, in UTC, without a time zone, as in nbgrader's tables.

    ``late`` says that it came late by an unknown time. ``problem`` says why the time is not known although there is a
    file.
    """

    when: datetime | None = None
    late: bool = False
    problem: str = ""


def handed_in(folder: Path) -> HandedIn:
    """Return what a submission's folder, which may hold anything, says about when it was handed in."""
    try:
        return handed_in_text(_content(folder))
    except FileNotFoundError:
        return HandedIn()
    except OSError as error:
        return _unknown(error)


def handed_in_text(content: bytes) -> HandedIn:
    """Return what the bytes of a `timestamp.txt` say."""
    try:
        text = content[:MAX_TIMESTAMP_BYTES].decode("ascii").strip()
        if text == LATE_MARK:
            return HandedIn(
                late=True, problem=f"{TIMESTAMP_FILE} says {LATE_MARK}, but not when. Write the date and time there."
            )
        return HandedIn(_moment(text))
    except (ValueError, OverflowError) as error:
        return _unknown(error)


def due_date(text: str) -> datetime:
    """Return a date and time in UTC, as nbgrader stores it: without a time zone.

    Raises:
        GradingError: the text is not a date.
    """
    try:
        date = datetime.fromisoformat(text.strip().removesuffix("UTC").strip())
        date = date.astimezone(UTC).replace(tzinfo=None) if date.tzinfo else date
    except (ValueError, OverflowError):
        raise GradingError(f"the date is {text!r}; expected one like 2030-01-31 23:59 UTC") from None
    if date.year < EARLIEST:
        raise GradingError(f"the date is {text!r}, in the year {date.year}; expected one like 2030-01-31 23:59 UTC")
    return date


def time_zone(name: str) -> tzinfo:
    """Return a time zone by its name, such as Europe/Berlin.

    Raises:
        GradingError: there is no such zone.
    """
    zone: tzinfo | None = gettz(name) if ZONE_NAME.fullmatch(name) else None
    if zone is None:
        raise GradingError(f"{name!r} is not a time zone; expected a name like UTC, Europe/Berlin or America/Lima")
    return zone


def _unknown(error: Exception) -> HandedIn:
    return HandedIn(problem=f"{TIMESTAMP_FILE}: {error}. It is not known whether the submission came late.")


def _content(folder: Path) -> bytes:
    return SafeFolder(folder.parents[1]).read(folder / TIMESTAMP_FILE, MAX_TIMESTAMP_BYTES)


def _moment(text: str) -> datetime:
    from grading._nbgrader import parse_utc  # here, since `make work` imports this module and needs no nbgrader

    match = TIMESTAMP_PATTERN.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not a date and time such as '2030-01-31 23:59:00 UTC'")
    day, time, offset, zone = match.groups()
    if zone and gettz(zone) is None:
        raise ValueError(f"{zone!r} is not a time zone")
    # nbgrader reads an offset after a space as seconds. Without the space, it is read as intended.
    moment: datetime = parse_utc(f"{day} {time} {zone}" if zone else f"{day} {time}{offset or ''}")
    return moment
