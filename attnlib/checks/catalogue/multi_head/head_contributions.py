"""head_contributions(query, key, value, w_q, w_k, w_v, w_o, num_heads): what each head adds to the result.

The notebook asks for it as the mended version of a function that cuts the matrices across their rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case, Implementation
from attnlib.checks.catalogue.multi_head import multi_head_attention
from attnlib.checks.catalogue.multi_head.multi_head_attention import BATCHES, LARGE, NUMBERS, UNCHANGED, WIDTHS
from attnlib.checks.catalogue.multi_head.sections import ONE_AVERAGE, OUTPUT_PROJECTION
from attnlib.checks.exercise import MULTI_HEAD_FUNCTIONS, Exercise, Mistake, Mistakes

MISTAKES = Mistakes()
# The mistakes in multi-head attention that are as wrong in the contribution of each head.
SHARED = (
    *("matrices-reshaped", "matrices-transposed-and-reshaped", "value-matrix-reshaped", "value-bands-like-keys"),
    *("matrices-reshaped-and-scaled-by-all", "stripes", "reshape-alone"),
    *("no-scale", "scaled-by-all-heads", "scaled-by-keys", "scaled-by-width"),
)


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases of multi-head attention without masks."""
    asked = (NUMBERS, BATCHES, WIDTHS, LARGE, UNCHANGED)
    yield from (case for case in multi_head_attention.inputs(rng) if case.criterion in asked)


@dataclass(frozen=True)
class EachHead:
    """Multi-head attention that is asked once for each head, with zeros in the bands of W^O of all other heads."""

    implementation: Implementation

    def __call__(self, query: Any, key: Any, value: Any, w_q: Any, w_k: Any, w_v: Any, w_o: Any, num_heads: int) -> Any:
        """Return the contributions, ``(..., H, T, E_out)``."""
        head_of_row = np.arange(len(w_o)) // (len(w_o) // num_heads)
        bands = [np.where((head_of_row == head)[:, None], w_o, 0 * w_o) for head in range(num_heads)]
        parts = [self.implementation(query, key, value, w_q, w_k, w_v, band, num_heads=num_heads) for band in bands]
        return np.stack(parts, axis=-3)


def head_contributions(query: Any, key: Any, value: Any, w_q: Any, w_k: Any, w_v: Any, w_o: Any, num_heads: int) -> Any:
    """Return what each head adds to multi-head attention, ``(..., H, T, E_out)``."""
    return EachHead(attnlib.multi_head_attention)(query, key, value, w_q, w_k, w_v, w_o, num_heads)


@MISTAKES.add(
    "the contributions are added up",
    hint="How many dimensions does the result of the given function have for one sentence? How many does yours have?",
    more="The sum over the heads is the output of multi-head attention. The task asks for what each head adds to it.",
    section=ONE_AVERAGE,
)
def added_up(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    """You return one table for all heads together. The task asks for one table for each head."""
    return attnlib.multi_head_attention(query, key, value, w_q, w_k, w_v, w_o, num_heads=num_heads)


@MISTAKES.add(
    "the bands of W^O are cut across their columns",
    hint="Which rows of `w_o` multiply the numbers of head 0?",
    more="The matrices of the heads are made of columns of `w_q`, but a band of `w_o` is made of rows. Was the line "
    "with the bands wrong at all?",
    section=OUTPUT_PROJECTION,
)
def bands_of_columns(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    """The bands of `w_o` are no longer its consecutive rows. That line was right: a band of a head is made of rows."""
    bands = w_o.reshape(-1, num_heads, w_o.shape[-1]).swapaxes(0, 1)
    return head_contributions(query, key, value, w_q, w_k, w_v, bands.reshape(w_o.shape), num_heads)


@MISTAKES.add(
    "the heads come last",
    hint="What is the order of the dimensions in the docstring?",
    more="The given function has the heads right before the words: (..., H, T, E_out).",
    section=ONE_AVERAGE,
)
def heads_after_words(query, key, value, w_q, w_k, w_v, w_o, num_heads):
    """Heads and words have changed places in your result. The heads come before the words."""
    return head_contributions(query, key, value, w_q, w_k, w_v, w_o, num_heads).swapaxes(-2, -3)


def _shared() -> Iterator[Mistake]:
    """Yield the mistakes in multi-head attention that are mistakes here, too."""
    for mistake in multi_head_attention.MISTAKES:
        if mistake.id in SHARED:
            yield replace(mistake, implementation=EachHead(mistake.implementation))


EXERCISE = Exercise(
    name="head_contributions",
    reference=head_contributions,
    outputs={"contributions": ("H", "T", "E_out")},
    rubric={NUMBERS: 6, BATCHES: 3, WIDTHS: 1, LARGE: 1, UNCHANGED: 1},
    section=OUTPUT_PROJECTION,
    advice="Number the entries of a small w_q, and print the matrix of head 0: it is the first D columns of w_q.",
    inputs=inputs,
    mistakes=(*_shared(), *MISTAKES),
    backends=("numpy",),
    solved_by=MULTI_HEAD_FUNCTIONS,
)
