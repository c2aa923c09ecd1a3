"""The places of the book that reports send their readers to. A test holds them against the pages' headings."""

from functools import partial

from attnlib.checks.exercise import Section

_chapter = partial(Section, "book/masks.md", "Masks")
_generating = partial(Section, "book/generating.md", "Generating, one word at a time")

BY_HAND = _chapter("Three words by hand")
NOT_AFTER = _chapter("Why not simply set the weights to 0?")
KINDS = _chapter("Padding, causal, both")
POLARITY = _chapter("True, or False?")
EMPTY = _chapter("Rows with nothing to attend to")
FINITE = _chapter("A large negative number instead?")
LEAKS = _chapter("A test for leaks")
ALIGN = _chapter("When the numbers of queries and keys differ")
CACHE = _generating("The KV cache")
SIDE = _chapter("On which side?")
