"""Wrong answers that no catalogue knows: none may pass, and none may be called something that it is not.

``STRANGERS[exercise]`` maps a description to a function and the names that would be true of it (None: unnamed).
"""

from strangers import (
    context_vectors,
    context_vectors_steps,
    masking,
    multi_head,
    positions,
    queries_keys_values,
    self_attention,
    transformer,
)

ASSIGNMENTS = (
    context_vectors,
    context_vectors_steps,
    self_attention,
    queries_keys_values,
    multi_head,
    masking,
    positions,
    transformer,
)
STRANGERS = {name: others for assignment in ASSIGNMENTS for name, others in assignment.STRANGERS.items()}
