"""The places of the chapters that reports send their readers to. A test holds them against the chapters' headings."""

from functools import partial

from attnlib.checks.exercise import Section

_chapter = partial(Section, "book/transformer.md", "A transformer you can read")
_fast = partial(Section, "book/fast-and-exact.md", "Fast and exact")

JOBS = _chapter("Two jobs, one block")
LAYER_NORM = _chapter("Layer norm by hand")
BLOCK = _chapter("Fifteen lines")
RESIDUAL = _chapter("The residual stream")
NO_PLUS = _chapter("Without the plus sign")
PRE_OR_POST = _chapter("Pre-norm or post-norm")

PRODUCT = _fast("Through a matrix product")
SOFTMAX = _fast("Through the softmax")
ON_PAPER = _fast("Two queries, two keys, on paper")
BACKWARD = _fast("The backward pass in ten lines of NumPy")
SUM_CHECK = _fast("A check that checks nothing")
ONE_PASS = _fast("The softmax in one pass")
IN_BLOCKS = _fast("By hand, in two blocks")
INVARIANT = _fast("Why it is right")
