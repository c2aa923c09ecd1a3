"""The places of the book that reports send their readers to. A test holds them against the chapters' headings."""

from functools import partial

from attnlib.checks.exercise import Section

_chapter = partial(Section, "book/queries-keys-values.md", "Queries, keys and values")
_masks = partial(Section, "book/masks.md", "Masks")

LOOKUP = _chapter("A dictionary that never says no")
PARTS = _chapter("One guest, three roles")
MATRICES = _chapter("Three matrices")
HAND = _chapter("All of it by hand")
DIVISOR = _chapter("Divide by 2 or by √3?")
SQUARE_ROOT = _chapter("The square root, derived")
SHAPES = _chapter("Shapes")
COST = _chapter("What it costs")
TWO = _chapter("Two sequences")

MASK = _masks("Three words by hand")
AFTERWARDS = _masks("Why not simply set the weights to 0?")
COMBINED = _masks("Padding, causal, both")
TRUE = _masks("True, or False?")
NOTHING = _masks("Rows with nothing to attend to")
LARGE_NUMBER = _masks("A large negative number instead?")
ORDER = _masks("Mask, scale, cap: in which order?")
ALIGNED = _masks("When the numbers of queries and keys differ")
