"""How a decoder with a cache is called: with one chunk of tokens after another.

This runs in the same process as a student's code.
"""

from typing import Any

import numpy as np

from attnlib.checks.calling.case import Implementation
from attnlib.checks.calling.conventions import Arguments


def call_decoder(
    implementation: Implementation,
    inputs: Arguments,
    options: Arguments,
    setup: Arguments,
    training: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """Pass chunk after chunk, and with each the cache that the chunk before returned; return the logits of all chunks.

    At first, the cache holds an empty array of keys and one of values for each layer.
    """
    params, config, chunks = inputs["params"], setup["config"], inputs["chunks"]
    nothing = np.zeros((config["num_kv_heads"], 0, config["head_dim"]), params["norm.weight"].dtype)
    cache: Any = [(nothing, nothing) for _ in range(config["num_layers"])]
    logits = []
    for tokens in chunks.values():
        result = implementation(params, config, np.array(tokens), cache)
        if not (isinstance(result, tuple | list) and len(result) == 2):
            raise TypeError(f"{type(result).__name__} was returned, but two results are needed: logits and cache")
        logits.append(result[0])
        cache = result[1]
    return np.concatenate(logits), {}
