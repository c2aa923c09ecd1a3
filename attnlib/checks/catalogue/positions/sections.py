"""The places of the chapter that reports send their readers to. A test holds them against its headings."""

from functools import partial

from attnlib.checks.exercise import Section

_chapter = partial(Section, "book/positions.md", "Positions")

SET = _chapter("One word in two sentences")
WISHES = _chapter("What we want from a position code")
CLOCKS = _chapter("Sinusoids as clocks")
STEP = _chapter("A step is a turn")
LAYOUTS = _chapter("Two layouts, and why they matter")
ROPE = _chapter("RoPE: turn queries and keys")
PAIRS = _chapter("Layouts in RoPE, and rotating a part of the width")
ALIBI = _chapter("ALiBi: subtract the distance")
