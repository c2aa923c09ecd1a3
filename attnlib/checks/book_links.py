"""Links from a report to the section of the book to reread."""

import os

from attnlib.checks.exercise import Section

# The environment variable that says where the book is: an address, a folder, "" for nowhere.
BOOK_VARIABLE = "ATTENTION_BOOK"
LOCAL_BOOK = "../../_build/html/"  # where the book is, seen from a notebook in work/, after `make`


def address(section: Section) -> str | None:
    """Return the address of a section, or None if the environment says that there is no book."""
    book = os.environ.get(BOOK_VARIABLE, LOCAL_BOOK)
    return f"{book.rstrip('/')}/{section.link}" if book else None


def reread(section: Section) -> str:
    """Return the advice to reread a section as text."""
    return f"Reread: {section} ({section.link})."


def section_data(section: Section | None) -> dict[str, str]:
    """Return the name of a section and its place in the book as JSON values; both are empty if there is none."""
    return {"section": str(section or ""), "link": section.link if section else ""}
