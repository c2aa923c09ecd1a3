"""When a submission was handed in: what `timestamp.txt` beside the notebooks says, if it says it plainly."""

import re
from datetime import datetime
from logging import Logger
from pathlib import Path

from grading._untyped import gettz, parse_utc
from grading.safe_files import SafeFolder

NAME = "timestamp.txt"  # as `nbgrader collect` writes it
LONGEST = 100  # bytes; a moment and the name of a time zone need half of it
# The zone is an offset, or a name. A name is no path, for a file of that path would be read.
SHAPE = re.compile(
    r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?) ?"
    r"(?:(Z|[+-]\d\d:?\d\d)|([A-Za-z]+(?:[/_+-][A-Za-z\d]+)*))?"
)


def submitted_at(folder: Path, log: Logger) -> datetime | None:
    """Return the moment in UTC, without a time zone as in nbgrader's tables, that stands in a submission's folder.

    The folder is a student's, so anything may be there. Where it is not a short regular file that holds a moment,
    the log says so, and the submission has no time.
    """
    try:
        text = _text(folder)
        return _moment(text)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, OverflowError) as error:
        log.warning("no time of submission in %s: %s", folder / NAME, error)
        return None


def _text(folder: Path) -> str:
    return SafeFolder(folder.parents[1]).read(folder / NAME, LONGEST).decode("ascii").strip()


def _moment(text: str) -> datetime:
    match = SHAPE.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is no moment such as '2030-01-31 23:59:00 UTC'")
    day, time, offset, zone = match.groups()
    if zone and gettz(zone) is None:
        raise ValueError(f"{zone!r} is no time zone")
    # nbgrader takes an offset behind a space for one in seconds; without the space it is read as it is meant.
    moment: datetime = parse_utc(f"{day} {time} {zone}" if zone else f"{day} {time}{offset or ''}")
    return moment
