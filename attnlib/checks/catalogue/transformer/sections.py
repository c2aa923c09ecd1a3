"""The places of the chapters that reports send their readers to. A test holds them against the chapters' headings."""

from functools import partial

from attnlib.checks.exercise import Section

_chapter = partial(Section, "book/transformer.md", "A transformer you can read")
_gradients = partial(Section, "book/gradients-by-hand.md", "Gradients by hand")
_tiles = partial(Section, "book/tiles-and-the-gpu.md", "Tiles and the GPU")

JOBS = _chapter("Two jobs, one block")
LAYER_NORM = _chapter("Layer norm by hand")
BLOCK = _chapter("Fifteen lines")
RESIDUAL = _chapter("The residual stream")
NO_PLUS = _chapter("Without the plus sign")
PRE_OR_POST = _chapter("Pre-norm or post-norm")

PRODUCT = _gradients("Through a matrix product")
SOFTMAX = _gradients("Through the softmax")
ON_PAPER = _gradients("Two queries, two keys, on paper")
BACKWARD = _gradients("The backward pass in ten lines of NumPy")
SUM_CHECK = _gradients("Checking with a sum")
ONE_PASS = _tiles("The softmax in one pass")
IN_BLOCKS = _tiles("By hand, in two blocks")
INVARIANT = _tiles("Why it is right")
