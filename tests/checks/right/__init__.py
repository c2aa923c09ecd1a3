"""Right answers, in the styles that students write: whatever is equal in mathematics has to pass.

``RIGHT[exercise, backend]`` maps a description of the style to a function.
"""

from right import (
    context_vectors,
    context_vectors_steps,
    masking,
    multi_head,
    positions,
    queries_keys_values,
    self_attention,
    transformer,
)
from right.styles import RIGHT

__all__ = [
    "RIGHT",
    "context_vectors",
    "context_vectors_steps",
    "masking",
    "multi_head",
    "positions",
    "queries_keys_values",
    "self_attention",
    "transformer",
]
