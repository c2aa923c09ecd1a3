"""Arguments of torch.nn's layers that are named differently or missing here, and what to write instead."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

Method = TypeVar("Method", bound=Callable[..., Any])

ONE_WIDTH = "queries, keys and values are all embed_dim wide: project other widths with your own Linear before the call"
PADDING = (
    "pass attn_mask=~{name}[:, None, None, :], or padding_mask(lengths, S): True means that a key may be attended to"
)
ALTERNATIVES = {
    "key_padding_mask": PADDING,
    "src_key_padding_mask": PADDING,
    "tgt_key_padding_mask": PADDING,
    "memory_key_padding_mask": PADDING.replace("attn_mask", "memory_mask"),
    "mask": "pass attn_mask=~mask if it is boolean: here True means that the query may attend to the key",
    "src_mask": "pass attn_mask=~src_mask if it is boolean: here True means that the query may attend to the key",
    "tgt_mask": "pass attn_mask=~tgt_mask if it is boolean: here True means that the query may attend to the key",
    "src_is_causal": "pass is_causal=True",
    "tgt_is_causal": "leave it out: the self-attention of a decoder is causal unless is_causal=False is passed",
    "average_attn_weights": "the weights are returned for each head, (B, H, T, S): average them with weights.mean(1)",
    "batch_first": "leave it out: the batch always comes first, (B, T, E)",
    "kdim": ONE_WIDTH,
    "vdim": ONE_WIDTH,
    "add_bias_kv": "project yourself, append a vector to keys and values, and call scaled_dot_product_attention",
    "add_zero_attn": "project yourself, append zeros to keys and values, and call scaled_dot_product_attention",
    "d_model": "it is called embed_dim",
    "nhead": "it is called num_heads",
    "dim_feedforward": "it is called ff_dim",
    "norm_first": 'pass norm="pre" for True, norm="post" for False',
    "memory": "it is called key, the second argument",
    "tgt": "it is called query, the first argument",
    "src": "it is called query, the first argument",
    "device": "build the layer and move it: layer.to(device)",
    "dtype": "build the layer and cast it: layer.to(dtype), layer.double() or layer.half()",
}


def explain_torch_names(method: Method) -> Method:
    """Make a layer's method raise a helpful TypeError if it gets an argument that only torch's layers have."""

    @wraps(method)
    def explained(self: object, *arguments: Any, **options: Any) -> Any:
        for name in options:
            if name in ALTERNATIVES:
                raise TypeError(
                    f"{type(self).__name__} has no argument {name!r}: {ALTERNATIVES[name].format(name=name)}"
                )
        return method(self, *arguments, **options)

    return explained  # type: ignore[return-value]
