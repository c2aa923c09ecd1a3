"""Comments that can be reused: a file with named comments, whose names stand for their texts.

`comments.toml` in the class's folder gives each comment a name. Where somebody writes `#name`, in a file of marks or in
Formgrader, students read the text of that comment. The gradebook keeps the name, so uses can be counted.
"""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from grading.course import Course, GradingError
from grading.gradebook.lookup import comments_by_hand
from grading.outcome import plain
from grading.text import counted

NAME = "comments.toml"
MAX_BYTES = 1_000_000
VALID = re.compile(r"[A-Za-z][\w-]*")
USE = re.compile(rf"(?<![\w#&/])#({VALID.pattern})")


def file_of(course: Course) -> Path:
    """Return the file with the named comments of a class."""
    return course.folder / NAME


def read_comments(course: Course) -> dict[str, str]:
    """Return the text of each comment by its name; none if there is no file.

    Raises:
        GradingError: the file cannot be read, or a name or a text is not valid.
    """
    try:
        found = tomllib.loads(course.files.read(file_of(course), MAX_BYTES).decode())
    except FileNotFoundError:
        return {}
    except (ValueError, OSError) as error:
        raise GradingError(f'{file_of(course)} cannot be read: {error}. Each line should be name = "text"') from None
    for name, text in found.items():
        if not (VALID.fullmatch(name) and isinstance(text, str) and text.strip()):
            raise GradingError(
                f"{file_of(course)}: {name!r} is {text!r}; expected a name such as no-reason, and a text"
            )
    return found


def expanded(text: str, named: Mapping[str, str]) -> str:
    """Return a comment with the texts in place of the names. Other words after a # stay as they are."""
    return USE.sub(lambda use: named.get(use[1], use[0]), text)


def unknown(text: str, named: Mapping[str, str]) -> list[str]:
    """Return the names in a comment that the file does not define."""
    return [name for name in USE.findall(text) if name not in named]


def uses(course: Course, assignment: str) -> str:
    """Return how often each named comment is used in an assignment, and in the whole class, as text for a terminal.

    Raises:
        GradingError: the class has no named comments.
    """
    named = read_comments(course)
    if not named:
        example = 'no-reason = "You say what happens, but not why."'
        raise GradingError(f"there are no named comments: write lines such as {example} into {file_of(course)}")
    here, everywhere = Counter(_names(course, assignment)), Counter[str]()
    for name in course.assignments():
        everywhere.update(_names(course, name))
    lines = [f"#{name}: {here[name]} here, {everywhere[name]} in the whole class: {named[name]}" for name in named]
    lines += [
        f"#{plain(name)}: {counted(here[name], 'use')} here, but there is no such comment in {file_of(course)}"
        for name in sorted(here.keys() - named.keys())
    ]
    return "\n".join(lines)


def _names(course: Course, assignment: str) -> Iterator[str]:
    for comments in comments_by_hand(course.config().CourseDirectory.db_url, assignment).values():
        for text in comments.values():
            yield from USE.findall(text)
