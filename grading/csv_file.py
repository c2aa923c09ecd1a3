"""Read a table that a learning management system or a spreadsheet has exported as text, and write one for it."""

import csv
import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grading.course import GradingError

DELIMITERS = ",;\t"
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class Line:
    """A row of a table, with the number of the line in the file on which it begins."""

    number: int
    cells: tuple[str, ...]


def read_csv(file: Path, most: int, what: str) -> list[Line]:
    """Return the rows of a file, without the empty ones.

    The text is UTF-8, or UTF-16 if the file begins with its byte order mark. The delimiter is the one of comma,
    semicolon and tab that splits the first row into the most cells.

    Args:
        file: the file to read.
        most: how many bytes it may have.
        what: what the file should be, for the error messages.

    Raises:
        GradingError: it cannot be read, or is not a table.
    """
    text = _text(file, most, what)
    try:
        with _cells_up_to(most):
            return list(_lines(text, max(DELIMITERS, key=lambda delimiter: len(next(_reader(text, delimiter), [])))))
    except csv.Error as error:
        raise GradingError(f"{file} is not a CSV file: {error}. Export it again, and leave it as it is") from None


def to_csv(rows: Iterable[Iterable[object]]) -> str:
    """Return rows as the text of a file; :func:`grading.report.cell` makes values that come from students safe."""
    stream = io.StringIO(newline="")
    csv.writer(stream).writerows(rows)
    return stream.getvalue()


def _text(file: Path, most: int, what: str) -> str:
    try:
        with file.open("rb") as stream:
            content = stream.read(most + 1)
        text = content.decode("utf-16" if content.startswith(UTF_16_MARKS) else "utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise GradingError(
            f"{file} cannot be read as {what}: {error}. It should be text in UTF-8 or UTF-16: in a spreadsheet, save "
            "it as CSV UTF-8"
        ) from None
    if len(content) > most:
        raise GradingError(f"{file} has more than {most} bytes, but {what} has far fewer")
    if "\0" in text:
        raise GradingError(f"{file} cannot be read as {what}: it contains null characters. Save it as CSV UTF-8")
    return text


@contextmanager
def _cells_up_to(most: int) -> Iterator[None]:
    """Within a `with` block, let a cell have this many characters, instead of Python's default of 131,072."""
    before = csv.field_size_limit(most)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _reader(text: str, delimiter: str) -> Any:
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)


def _lines(text: str, delimiter: str) -> Iterator[Line]:
    reader = _reader(text, delimiter)
    number = 1
    for cells in reader:
        if any(cells):
            yield Line(number, tuple(cells))
        number = reader.line_num + 1
