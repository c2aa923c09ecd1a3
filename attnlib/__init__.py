"""attnlib: attention, exact and readable, for NumPy arrays and torch tensors.

The rules of the house:

- NumPy arrays in, NumPy arrays out; torch tensors in, torch tensors out, on the same device, with the same dtype.
- Sequences are ``(..., T, D)``: any leading dimensions, then one row per position.
- A boolean mask is True where a query **may attend**; a float mask is added to the scores.
- A query that may attend to nothing gets 0, with finite gradients.
- Under ``torch.autocast`` torch chooses the dtypes.
- Inputs are never changed. Wrong input raises an error that says what came and what was expected.

Importing attnlib needs NumPy and array-api-compat (pure Python); torch is used only when a torch tensor arrives.
"""

from attnlib.attention import attention, self_attention, softmax
from attnlib.similarity import additive, cosine, dot, gaussian, general, scaled_dot

__version__ = "0.1.0"

__all__ = [
    "additive",
    "attention",
    "cosine",
    "dot",
    "gaussian",
    "general",
    "scaled_dot",
    "self_attention",
    "softmax",
]
