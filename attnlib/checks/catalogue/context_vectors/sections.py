"""The places of the chapter that reports send their readers to. A test holds them against its headings."""

from functools import partial

from attnlib.checks.exercise import Section

_chapter = partial(Section, "book/context-vectors.md", "From RNNs to context vectors")
_masks = partial(Section, "book/masks.md", "Masks")

RECURRENCE = _chapter("A network with a state")
BOTTLENECK = _chapter("One vector for a whole sentence")
LOOK_BACK = _chapter("Look back: Bahdanau's attention")
THREE_WORDS = _chapter("By hand, on a memory of three words")
OTHER_ORDER = _chapter("The other order: Luong's attention")
ALIGNMENT = _chapter("What it looks at")
WEIGHTS_OF_ZERO = _masks("Why not simply set the weights to 0?")
TRUE_OR_FALSE = _masks("True, or False?")
EMPTY_ROWS = _masks("Rows with nothing to attend to")
