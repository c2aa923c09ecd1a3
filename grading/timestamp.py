"""When a submission was handed in: what `timestamp.txt` beside the notebooks says, if it says it plainly."""

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from grading._untyped import gettz, parse_utc
from grading.safe_files import SafeFolder

TIMESTAMP_FILE = "timestamp.txt"  # as `nbgrader collect` writes it
LATE_MARK = "LATE"  # in place of a moment: what Canvas says of a late submission, and no more
MAX_TIMESTAMP_BYTES = 100  # a moment and the name of a time zone need half of it
# The zone is an offset, or a name. A name is no path, for a file of that path would be read.
TIMESTAMP_PATTERN = re.compile(
    r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?) ?"
    r"(?:(Z|[+-]\d\d:?\d\d)|([A-Za-z]+(?:[/_+-][A-Za-z\d]+)*))?"
)


@dataclass(frozen=True)
class HandedIn:
    """When a submission came: the moment in UTC, without a time zone as in nbgrader's tables, where it is known.

    ``late`` says that it came late by an unknown time; ``problem`` why the moment is not known, though a file is there.
    """

    when: datetime | None = None
    late: bool = False
    problem: str = ""


def handed_in(folder: Path) -> HandedIn:
    """Return what is known of the moment that stands in a submission's folder, in which anything may be."""
    try:
        text = _text(folder)
        if text == LATE_MARK:
            return HandedIn(
                late=True, problem=f"{TIMESTAMP_FILE} says {LATE_MARK}, but not when. Write the date and time there."
            )
        return HandedIn(_moment(text))
    except FileNotFoundError:
        return HandedIn()
    except (OSError, ValueError, OverflowError) as error:
        return HandedIn(problem=f"{TIMESTAMP_FILE}: {error}. It is not known whether the submission came late.")


def _text(folder: Path) -> str:
    return SafeFolder(folder.parents[1]).read(folder / TIMESTAMP_FILE, MAX_TIMESTAMP_BYTES).decode("ascii").strip()


def _moment(text: str) -> datetime:
    match = TIMESTAMP_PATTERN.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not a date and time such as '2030-01-31 23:59:00 UTC'")
    day, time, offset, zone = match.groups()
    if zone and gettz(zone) is None:
        raise ValueError(f"{zone!r} is not a time zone")
    # nbgrader takes an offset behind a space for one in seconds; without the space it is read as it is meant.
    moment: datetime = parse_utc(f"{day} {time} {zone}" if zone else f"{day} {time}{offset or ''}")
    return moment
