"""The places of the book that reports send their readers to. A test holds them against the chapters' headings."""

from functools import partial

from attnlib.checks.exercise import Section

_chapter = partial(Section, "book/self-attention.md", "Self-attention without parameters")

SCORES = _chapter("Seven words, forty-nine scores")
DOT = _chapter("Why the dot product measures similarity")
COSINE = _chapter("What the cosine changes")
SOFTMAX = _chapter("From scores to weights: softmax by hand")
OVERFLOW = _chapter("When the exponential overflows")
WEIGHTED_SUM = _chapter("The weighted sum")
SCALE = _chapter("Why divide by the square root of the width")
ATTENTION = _chapter("Attention in four lines")
SIMILARITIES = _chapter("Other similarities, same vectors")
PERMUTATION = _chapter("What if the words are shuffled?")
