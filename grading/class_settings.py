"""The settings of a class, in the file ``course.toml`` in its folder."""

import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from grading.course import Course, GradingError

MAX_SETTINGS_BYTES = 1_000_000
NAME = "course.toml"
TABLES = ("roster", "exams")  # which `grading.exam.declared` and the functions below read
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
COLUMNS = ("id", "moodle_identifier", "name", "first_name", "last_name", "email", "lms_user_id", "login", "sis_id")
ABOUT_ROSTER = """\
The columns of the class list that `python -m grading roster FILE.csv` reads, and the students who have left.
They keep their marks, but nobody expects further work from them."""

TEMPLATE = """\
# The settings of one class. Commands use those in class/, in the folder that ATTENTION_CLASS names, or in --course DIR.
# `python -m grading doctor-course` checks them. Students, due dates, extensions and marks are in nbgrader's gradebook.

# What the course is called, and when it is taught. Students read this in their bundle.
name = {name}
term = {term}

# The address where the book is published: notebooks, feedback, the report and the bundle link to it. "" if unpublished.
book = {book}

# The share of the score that each day of lateness costs, from 0 (nothing) to 1. A part of a day counts as a whole one.
late_penalty_per_day = {late_penalty_per_day}

# The time zone of the times in downloads that name none, such as Blackboard's.
time_zone = {time_zone}

# How many days every student may be late over the whole term without a penalty. They are used in order of due dates.
late_days = {late_days}

# Which of several attempts counts: "last", or "best", which is the one with the most points after penalties.
attempts = {attempts}
"""


def file_of(course: Course) -> Path:
    """Return the file with the settings of a class."""
    return course.folder / NAME


def read_settings(course: Course) -> dict[str, Any]:
    """Return the settings of a class; none if there is no file.

    Raises:
        GradingError: the file is not TOML.
    """
    try:
        return tomllib.loads(_text(course))
    except ValueError as error:
        raise GradingError(
            f"{file_of(course)} cannot be read: {error}. Correct that line: see https://toml.io"
        ) from None


@dataclass(frozen=True)
class ClassSettings:
    """The settings of a class, except those in tables.

    Attributes:
        name: what the course is called.
        term: when it is taught.
        book: the address where the book is published, or "".
        late_penalty_per_day: the share of the score that each day of lateness costs.
        time_zone: the name of the zone of times that name none.
        attempts: which of several attempts counts, "last" or "best".
        late_days: how many days every student may be late over the whole term without a penalty.
    """

    name: str = ""
    term: str = ""
    book: str = ""
    late_penalty_per_day: float = 0.0
    time_zone: str = "UTC"
    late_days: int = 0
    attempts: str = "last"

    @property
    def title(self) -> str:
        """The name and the term of the course, or whichever of them is set."""
        return ", ".join(filter(None, (self.name, self.term)))


def read_class(course: Course) -> ClassSettings:
    """Return the settings that stand before the tables.

    Raises:
        GradingError: one of them is unknown, or not what was expected.
    """
    found = {key: value for key, value in read_settings(course).items() if key not in TABLES}
    known = asdict(ClassSettings())
    if odd := sorted(found.keys() - known.keys()):
        raise GradingError(
            f"{file_of(course)} has {', '.join(odd)}; expected only {', '.join(known)}, [roster] and [exams]"
        )
    settings = ClassSettings(**found)
    require_valid(settings, str(file_of(course)))
    return settings


def require_valid(settings: ClassSettings, where: str) -> None:
    """Raise a :class:`GradingError` that names ``where`` if a setting cannot be what it is meant to be."""
    for key in ("name", "term", "book", "time_zone"):
        if not isinstance(text := getattr(settings, key), str) or not text.isprintable():
            raise GradingError(f"{where}: {key} is {text!r}; expected a text in quotation marks, on one line")
    if settings.book and not settings.book.startswith(("https://", "http://", "file://")):
        raise GradingError(f"{where}: book is {settings.book!r}; expected an address like https://example.org/book")
    share = settings.late_penalty_per_day
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise GradingError(f"{where}: late_penalty_per_day is {share!r}; expected a share from 0 to 1, such as 0.1")
    if settings.attempts not in ("last", "best"):
        raise GradingError(f'{where}: attempts is {settings.attempts!r}; expected "last" or "best"')
    if type(settings.late_days) is not int or not 0 <= settings.late_days <= 1000:
        raise GradingError(f"{where}: late_days is {settings.late_days!r}; expected a number of days, such as 3")


def book_address(course: Course) -> str:
    """Return where the book is published: what ATTENTION_BOOK says, or else the settings of the class."""
    from attnlib.checks.book_links import BOOK_VARIABLE  # NumPy, which takes a while to import

    return os.environ.get(BOOK_VARIABLE) or read_class(course).book


def write_class(course: Course, settings: ClassSettings) -> None:
    """Write the settings of a new class."""
    values = {key: toml(value) for key, value in asdict(settings).items()}
    course.files.write(file_of(course), TEMPLATE.format(**values).encode())


@dataclass(frozen=True)
class RosterSettings:
    """The titles of a roster's columns by what they hold, and the students who have left the class."""

    columns: Mapping[str, str]
    left: frozenset[str]


def read_roster(course: Course) -> RosterSettings:
    """Return the table ``[roster]`` of the settings.

    Raises:
        GradingError: it is not what :func:`write_roster` writes.
    """
    table = dict(read_settings(course).get("roster", {}))
    left = table.pop("left", [])
    if not (set(table) <= set(COLUMNS) and isinstance(left, list) and _are_texts([*table.values(), *left])):
        raise GradingError(
            f"[roster] in {file_of(course)} has {', '.join(table)}; expected titles of columns as "
            f"{', '.join(COLUMNS)}, and a list of ids as left"
        )
    return RosterSettings(table, frozenset(left))


def _are_texts(values: Sequence[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def write_roster(course: Course, settings: RosterSettings) -> None:
    """Keep the columns of a roster, and who has left, for later imports."""
    write_table(course, "roster", ABOUT_ROSTER, {**settings.columns, "left": sorted(settings.left)})


def write_table(course: Course, name: str, comment: str, values: Mapping[str, str | Sequence[str]]) -> None:
    """Replace one table of the settings, or append it. Everything else stays as it is."""
    remarks = "".join(f"# {line}\n" for line in comment.splitlines())
    keys = {key: key if BARE_KEY.fullmatch(key) else toml(key) for key in values}
    lines = "".join(f"{keys[key]} = {toml(value)}\n" for key, value in values.items())
    text = re.sub(rf"(?m)(?:^#.*\n)*^\[{name}\][^\n]*\n(?:(?!^(?:#.*\n)*\[)[^\n]*\n?)*", "", _text(course))
    new = "\n\n".join(filter(None, (text.strip(), f"{remarks}[{name}]\n{lines}")))
    course.files.write(file_of(course), new.encode())


def _text(course: Course) -> str:
    try:
        return course.files.read(file_of(course), MAX_SETTINGS_BYTES).decode()
    except FileNotFoundError:
        return ""


def toml(value: float | str | Sequence[str]) -> str:
    """Return a number, a text or a list of texts in TOML, whose strings are written like those of JSON."""
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f"[{', '.join(map(toml, value))}]"
