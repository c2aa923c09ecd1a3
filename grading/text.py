"""Text of a student's making, fit to be shown in a terminal, a table or a page."""


def printable(text: str, also: str = "") -> str:
    """Return text in which every character that cannot be printed, but for those in ``also``, is replaced."""
    return "".join(c if c.isprintable() or c in also else "\N{REPLACEMENT CHARACTER}" for c in text)
