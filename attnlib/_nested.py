"""Nested tensors of torch: batches of sequences of different lengths, stored without padding.

torch can multiply, split and project them. Its attention for them takes no mask and returns no weights.

Dimensions: B batch, H heads, T queries, S keys, D width of queries and keys, D_v width of values.
"""

from attnlib._arrays import Array, imported_torch, shape

USE_PADDED = "pass torch.nested.to_padded_tensor(x, 0.0) for each, and padding_mask(lengths, S) as the mask"


def is_nested(x: object) -> bool:
    """Tell whether an array is one of torch's nested tensors."""
    return bool(getattr(x, "is_nested", False))


def refuse_nested(name: str, x: Array, **options: bool) -> None:
    """Raise TypeError if a tensor is nested and one of the options, which need padded tensors, is used."""
    used = [option for option, is_used in options.items() if is_used]
    if is_nested(x) and used:
        raise TypeError(f"{name} is a nested tensor, but a padded one is needed for {', '.join(used)}: {USE_PADDED}")


def require_padded(function: str, **arrays: Array) -> None:
    """Raise TypeError if one of the arrays, which a function needs padded, is a nested tensor."""
    for name, x in arrays.items():
        refuse_nested(name, x, **{function: True})


def require_jagged_layout(name: str, x: Array) -> None:
    """Raise TypeError if a tensor is nested in the older of torch's two layouts, which hardly any operation takes."""
    if is_nested(x) and x.layout is not imported_torch().jagged:
        raise TypeError(
            f"{name} is a nested tensor with layout {x.layout}, but torch.jagged is needed: "
            "torch.nested.nested_tensor(sequences, layout=torch.jagged)"
        )


def require_jagged(**arrays: Array) -> None:
    """Raise TypeError unless all arrays are nested tensors (B, H, T, D) of the layout for which torch has kernels."""
    for name, x in arrays.items():
        if not is_nested(x):
            raise TypeError(f"{name} is not a nested tensor, but another input is: {USE_PADDED}")
        require_jagged_layout(name, x)
        if x.ndim != 4 or isinstance(x.shape[2], int):  # the size of the dimension with different lengths is not an int
            raise TypeError(
                f"{name} is a nested tensor of shape {shape(x)}, but (B, H, T, D) is needed, with lengths T that "
                f"differ: for (B, T, H, D), {name}.transpose(1, 2); for (B, T, D), {name}.unsqueeze(2).transpose(1, 2)"
            )


def require_equal_lengths(key: Array, value: Array) -> None:
    """Raise ValueError unless keys and values share the offsets of their sequences, by which torch compares lengths."""
    if key.shape[2] != value.shape[2]:
        raise ValueError(
            f"key is a nested tensor of shape {shape(key)} and value of {shape(value)}: torch knows that their "
            "lengths are equal only if both are computed from the same nested tensor, or made by "
            "torch.nested.nested_tensor_from_jagged(values, offsets) with the same offsets"
        )


def sdpa(
    query: Array, key: Array, value: Array, dropout_p: float, is_causal: bool, scale: float, enable_gqa: bool
) -> Array:
    """Return the context (B, H, T, D_v) of nested tensors that fit each other, by torch's kernel."""
    torch = imported_torch()
    try:
        return torch.nn.functional.scaled_dot_product_attention(
            query, key, value, None, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
    except RuntimeError as error:
        options = f"is_causal={is_causal} and enable_gqa={enable_gqa}"
        raise TypeError(
            f"query is a nested tensor, for which torch has no kernel on {query.device} with {options}: {USE_PADDED}"
        ) from error
