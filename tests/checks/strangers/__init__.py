"""Wrong answers that no catalogue knows: none may pass, and none may be called something that it is not.

``STRANGERS[exercise]`` maps a description to a function and the names that would be true of it (None: unnamed);
``IN_TORCH[exercise]`` does the same for functions of tensors.
"""

from strangers import (
    context_vectors,
    context_vectors_steps,
    masking,
    multi_head,
    overlooked,
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


def merged(*of_modules):
    """Return what several modules say of the same exercises as one."""
    together = {}
    for by_name in of_modules:
        for name, others in by_name.items():
            together[name] = together.get(name, {}) | others
    return together


STRANGERS = merged(*(module.STRANGERS for module in (*ASSIGNMENTS, overlooked)))
IN_TORCH = merged(overlooked.IN_TORCH)
