"""The settings of a class, in the file ``course.toml`` in its folder."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grading.course import Course, GradingError

MAX_SETTINGS_BYTES = 1_000_000
NAME = "course.toml"
COLUMNS = ("id", "moodle_identifier", "name", "first_name", "last_name", "email", "lms_user_id")
ABOUT_ROSTER = """\
The columns of the class list that `python -m grading roster FILE.csv` reads, and the students who have left.
They keep their marks, but nobody expects further work from them."""


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
            f"[roster] in {file_of(course)} has {', '.join(table)}; expected are titles of columns as "
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
    lines = "".join(f"{key} = {_toml(value)}\n" for key, value in values.items())
    text = re.sub(rf"(?m)(?:^#.*\n)*^\[{name}\][^\n]*\n(?:(?!^(?:#.*\n)*\[)[^\n]*\n?)*", "", _text(course))
    new = "\n\n".join(filter(None, (text.strip(), f"{remarks}[{name}]\n{lines}")))
    course.files.write(file_of(course), new.encode())


def _text(course: Course) -> str:
    try:
        return course.files.read(file_of(course), MAX_SETTINGS_BYTES).decode()
    except FileNotFoundError:
        return ""


def _toml(value: str | Sequence[str]) -> str:
    """Return a text, or a list of texts, in TOML, whose strings are written like those of JSON."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f"[{', '.join(map(_toml, value))}]"
