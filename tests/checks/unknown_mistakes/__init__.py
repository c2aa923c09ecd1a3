"""Wrong answers that no catalogue knows: none may pass, and none may be called something that it is not.

``UNKNOWN_MISTAKES[exercise]`` maps a description to a function and the names that would be true of it (None: unnamed);
``IN_TORCH[exercise]`` does the same for functions of tensors.
"""

from unknown_mistakes import (
    context_vectors,
    context_vectors_steps,
    decoder,
    masking,
    multi_head,
    overlooked,
    positions,
    queries_keys_values,
    self_attention,
    transformer,
)
from unknown_mistakes.labels import with_names

ASSIGNMENTS = (
    context_vectors,
    context_vectors_steps,
    self_attention,
    queries_keys_values,
    multi_head,
    masking,
    positions,
    transformer,
    decoder,
)


def merged(*of_modules):
    """Return what several modules say of the same exercises as one."""
    together = {}
    for by_name in of_modules:
        for name, others in by_name.items():
            together[name] = together.get(name, {}) | others
    return together


UNKNOWN_MISTAKES = merged(*(module.UNKNOWN_MISTAKES for module in (*ASSIGNMENTS, overlooked)))
for exercise, names in {
    "rnn_cell": {"half_of_the_sum": "half-tanh", "state_by_its_diagonal": "diagonal-only"},
    "attention": {"constant_scale_right_for_width_4": "root-of-four"},
    "multi_head_attention": {
        "constant_scale": "always-eight",
        "always_causal": "causal-unasked",
        "heads_averaged": "heads-averaged-and-repeated",
        "loop_that_keeps_the_last": "last-head-for-all",
        "bands_of_w_o_averaged": "heads-averaged-and-repeated",
        "weights_of_head_0_for_all": "weights-of-head-0-for-all",
    },
    "MultiHeadAttention": {"constant_scale": "always-eight", "always_causal": "causal-unasked"},
    "split_heads": {"heads_in_reverse": "reversed-heads"},
    "equivariance_gap": {
        "largest_length_of_a_row": "longest-row",
        "first_row_alone": "first-row-alone",
        "largest_sum_of_a_row": "sum-of-a-row",
    },
    "sinusoidal_positions": {"first_row_forgotten": "first-row-empty"},
    "scaled_dot": {"always_the_root_of_3": "always-root-of-three", "rows_centred": "shifted-by-maximum"},
    "scaled_dot_product_attention": {"always_causal": "causal-unasked", "equal_keys_count_once": "copies-dropped"},
    "attention_cost": {"all_numbers": "inputs-in-memory", "memory_in_bytes": "bytes-in-float32"},
    "causal_mask": {"one_key_is_free": "never-empty"},
    "padding_mask": {"sorted_lengths": "shortest-first"},
    "masked_attention": {"mask_and_causal": "causal-unasked"},
    "sample": {"empty_set": "crossing-excluded"},
}.items():
    UNKNOWN_MISTAKES[exercise] = with_names(UNKNOWN_MISTAKES[exercise], **names)
IN_TORCH = merged(overlooked.IN_TORCH)
