"""Correct solutions, in the styles that students write: whatever is equal in mathematics has to pass.

``CORRECT_SOLUTIONS[exercise, backend]`` maps a description of the style to a function.
"""

from correct_solutions import (
    context_vectors,
    context_vectors_steps,
    decoder,
    masking,
    mended,
    multi_head,
    positions,
    queries_keys_values,
    self_attention,
    transformer,
)
from correct_solutions.styles import CORRECT_SOLUTIONS

__all__ = [
    "CORRECT_SOLUTIONS",
    "context_vectors",
    "context_vectors_steps",
    "decoder",
    "masking",
    "mended",
    "multi_head",
    "positions",
    "queries_keys_values",
    "self_attention",
    "transformer",
]
