"""The places of the chapter that reports send their readers to. A test holds them against its headings."""

from functools import partial

from attnlib.checks.exercise import Section

_chapter = partial(Section, "book/many-heads.md", "Many heads")

ONE_AVERAGE = _chapter("Three questions, one average")
SPLITTING = _chapter("Splitting: where the heads come from")
CATCH_IT = _chapter("How to catch it")
MULTI_HEAD = _chapter("Multi-head attention, all of it")
OUTPUT_PROJECTION = _chapter("What the output projection is for")
COUNTING = _chapter("Counting parameters and multiplications")
SCALE = _chapter("Scale by the width of the head")
