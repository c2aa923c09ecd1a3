"""The places of the book that reports send their readers to. A test holds them against the pages' headings."""

from functools import partial

from attnlib.checks.exercise import Section

_slips = partial(Section, "book/slips.md", "Slips you will meet")

SPLIT = _slips("`reshape` where heads should be split")
WRONG_ROOT = _slips("The root of the wrong axis")
WHICH_ROOT = _slips("Which root?")
NO_VALUES = _slips("Attention without values")
SHIFT = Section(
    "book/self-attention.md", "Self-attention without parameters", "From scores to weights: softmax by hand"
)
OFFSET = Section("book/masks.md", "Masks", "When the numbers of queries and keys differ")
TURN = Section("book/positions.md", "Positions", "RoPE: turn queries and keys")
CACHE = Section("book/generating.md", "Generating, one word at a time", "The KV cache")
