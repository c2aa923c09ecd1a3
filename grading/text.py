"""Text fit to be shown in a terminal, a table or a page: what a student wrote, and numbers of points."""


def printable(text: str, also: str = "") -> str:
    """Return text in which every character that cannot be printed, but for those in ``also``, is replaced."""
    return "".join(c if c.isprintable() or c in also else "\N{REPLACEMENT CHARACTER}" for c in text)


def points(value: float) -> str:
    """Return a number of points with up to three decimals: a quarter of 3.5 points is no rounder than that."""
    return f"{float(value):.3f}".rstrip("0").rstrip(".")
