"""Turn bytes into text, and text in which Git marked conflicts into its two sides."""

import json
import re

from grading.repair.messages import Repair, UnreadableError

_MARK = re.compile(r"^(<{7}|\|{7}|={7}|>{7})(?: .*)?(?:\n|\Z)", re.MULTILINE)
_NEXT = {  # which side a mark leads to from the current one; any other mark is an ordinary line
    ("both", "<<<<<<<"): "ours",
    ("ours", "|||||||"): "base",
    ("ours", "======="): "theirs",
    ("base", "======="): "theirs",
    ("theirs", ">>>>>>>"): "both",
}


def decode(data: bytes) -> tuple[str, tuple[Repair, ...]]:
    """Return the text of a file with Unix line endings, and the repairs that this took."""
    if not data:
        raise UnreadableError("is empty. Ask for the saved notebook again, as a file.")
    encoding = json.detect_encoding(data)
    repairs = []
    if encoding != "utf-8":
        name = "UTF-8 with a byte order mark" if encoding == "utf-8-sig" else encoding.upper()
        repairs.append(Repair("encoding", f"The file was saved as {name}, not as plain UTF-8."))
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        text = data.decode(encoding, errors="replace")
        repairs.append(Repair("replaced-characters", "Some characters of the file could not be read."))
    if "\r" in text:
        text = unix_line_ends(text)
        repairs.append(Repair("line-ends", "The file had Windows line endings."))
    return text, tuple(repairs)


def unix_line_ends(text: str) -> str:
    """Return text with Unix line endings."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def merge_sides(text: str) -> tuple[str, str] | None:
    """Return the first and the second side of a text that Git could not merge, or None if no conflict is complete."""
    parts: list[tuple[str, str]] = []  # the side, and its text
    place, start = "both", 0
    for mark in _MARK.finditer(text) if "<<<<<<<" in text else ():
        if following := _NEXT.get((place, mark[1])):
            parts.append((place, text[start : mark.start()]))
            place, start = following, mark.end()
    if not parts or place != "both":
        return None
    parts.append(("both", text[start:]))
    ours, theirs = ("".join(part for whose, part in parts if whose in ("both", side)) for side in ("ours", "theirs"))
    return ours, theirs
