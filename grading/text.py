"""Format students' texts and numbers of points for a terminal, a table or a page."""

JOINERS = "\u200c\u200d"  # unprintable to Python, but names in Persian or Sinhala are misspelt without them


def printable(text: str, also: str = "") -> str:
    """Return text with every unprintable character replaced, except those in ``also``."""
    return "".join(c if c.isprintable() or c in also else "\N{REPLACEMENT CHARACTER}" for c in text)


def counted(n: int, noun: str) -> str:
    """Return "1 cell", "2 cells"."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def points(value: float) -> str:
    """Return a number of points with up to three decimals: a quarter of 3.5 points needs that many."""
    return f"{float(value):.3f}".rstrip("0").rstrip(".")


def points_off(penalty: float) -> str:
    """Return "1 point off", "0.5 points off"."""
    return f"{points(penalty)} {'point' if penalty == 1 else 'points'} off"
