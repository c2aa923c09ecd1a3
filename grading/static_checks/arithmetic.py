"""The operations that an answer may use: one step of arithmetic at a time. Anything else may do all of its work.

The lists hold what is ordinary, so that a function nobody has thought of is flagged. Attention is among them, because
the exercises that it solves forbid it by name.
"""

ALLOWED_PACKAGES = """
? __future__ abc array_api_compat attnlib bisect builtins cmath collections contextlib copy dataclasses decimal enum
fractions functools heapq itertools logging math matplotlib numbers numpy operator pprint random re statistics
string sys textwrap time torch types typing typing_extensions warnings
"""  # "?" stands for what is not known by name

# The functions of torch that do one step of arithmetic, make an array, or change its shape or type.
TORCH_ARITHMETIC = """
abs add addbmm addmm addmv all allclose amax amin any arange arccos arcsin arctan arctan2 argmax argmin argsort
as_strided as_tensor asarray atan2 atleast_1d atleast_2d atleast_3d autocast backends baddbmm bfloat16 bitwise_and
bitwise_not bitwise_or block_diag bmm bool BoolTensor broadcast_shapes broadcast_tensors broadcast_to cat
chain_matmul chunk clamp clip clone column_stack complex complex128 complex64 concat concatenate conj cos cosh
count_nonzero cpu cross cuda cummax cumprod cumsum default_generator deg2rad det device diag diag_embed diagonal
diff div divide dot double DoubleTensor dropout dsplit dstack dtype e einsum embedding empty empty_like enable_grad
eq equal erf exp exp2 expm1 eye finfo flatten flip fliplr flipud float float16 float32 float64 FloatTensor floor
floor_divide fmax fmin fmod from_numpy full full_like gather ge Generator get_default_dtype greater greater_equal gt
half heaviside hsplit hstack hypot iinfo imag index_select inf inference_mode inner int int16 int32 int64 int8
IntTensor is_floating_point is_grad_enabled is_tensor isclose isfinite isin isinf isnan isneginf kron layer_norm le
lerp less less_equal linspace log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or
logical_xor logspace long LongTensor lt manual_seed masked_fill masked_select matmul matrix_exp max maximum mean
median meshgrid min minimum mm moveaxis movedim mul multiply mv nan nan_to_num nansum narrow ne neg negative newaxis
no_grad nonzero norm not_equal numel ones ones_like outer permute pi polar positive pow prod promote_types rand
randint randn randn_like randperm ravel real reciprocal relu relu_ remainder repeat_interleave reshape result_type
roll rot90 round rsqrt scatter select set_default_dtype set_grad_enabled set_printoptions sgn sigmoid sign sin sinh
Size softmax sort split sqrt square squeeze stack std sub subtract sum swapaxes swapdims t take take_along_dim tan
tanh tensor Tensor tensor_split tensordot tile topk trace transpose tril tril_indices triu triu_indices true_divide
trunc uint8 unbind unflatten unique unsqueeze var vdot view_as_complex view_as_real vsplit vstack where zeros
zeros_like
"""
TORCH_FUNCTIONAL = """
dropout elu embedding gelu layer_norm linear log_softmax normalize one_hot pad relu relu_ scaled_dot_product_attention
sigmoid silu softmax softplus tanh
"""  # of torch.nn.functional
TORCH_LAYERS = """
Dropout Embedding Flatten GELU GRUCell Identity init LayerNorm Linear LSTMCell Module ModuleDict ModuleList
MultiheadAttention parameter Parameter ParameterDict ParameterList ReLU RNNCell Sequential Sigmoid SiLU Softmax Tanh
"""  # of torch.nn
TORCH_SPECIAL = """
erf exp2 expm1 log1p softmax xlogy
"""  # of torch.special
TORCH_LINALG = """
det matrix_norm multi_dot norm vecdot vector_norm
"""  # of torch.linalg
TORCH_FUNC = "functional_call"  # of torch.func

_ALLOWED = {
    ("nn", "functional"): frozenset(TORCH_FUNCTIONAL.split()),
    ("nn",): frozenset(TORCH_LAYERS.split()),
    ("special",): frozenset(TORCH_SPECIAL.split()),
    ("linalg",): frozenset(TORCH_LINALG.split()),
    ("func",): frozenset([TORCH_FUNC]),
    (): frozenset([*TORCH_ARITHMETIC.split(), "Tensor", "nn", "special", "linalg", "func"]),
}
_PACKAGES = frozenset(ALLOWED_PACKAGES.split())


def beyond_arithmetic(root: str, parts: list[str]) -> str | None:
    """Return why a reference may do the work of an answer: it is another package, or a large part of torch."""
    if root not in _PACKAGES:
        return f"leaves work to {root[:40]}: does that solve the exercise?"
    if root != "torch" or not parts:
        return None
    place = next(place for place in _ALLOWED if tuple(parts[: len(place)]) == place)
    rest = parts[len(place) :]
    if not rest or rest[0] in _ALLOWED[place] or (place == ("nn",) and rest[0] == "functional"):
        return None
    return (
        f"uses torch.{'.'.join(parts)[:40]}, which does more than a step of arithmetic: does that solve the exercise?"
    )
