"""Learned positions as a layer, written once: :mod:`attnlib.numpy` and :mod:`attnlib.torch` make classes of it.

Dimensions: B batch, T positions, E width of the vectors (embed_dim).
"""

from typing import TYPE_CHECKING, Any, Generic

from attnlib._arrays import array_namespace, check_int, is_torch, namespace_and_device, require_sequence, shape
from attnlib._lengths import check_offset
from attnlib._nested import require_padded
from attnlib._types import A


class LearnedPositions(Generic[A]):
    """Add a vector for each position. These vectors are learned, as word vectors are.

    Args:
        num_positions: the number of positions.
        embed_dim: E.

    Returns:
        From the call, ``(B, T, E)``: the input plus the vectors of the positions ``q_offset`` to
        ``q_offset + T - 1``.

    Raises:
        ValueError: a position is negative or beyond the last, or the widths differ. (Where reading an offset that is a
            tensor would make the program wait for a device, and in compiled code, torch raises its own error.)
        TypeError: an argument is not a whole number, or the array differs from the vectors in library or dtype.

    Source:
        Gehring et al. (2017), "Convolutional Sequence to Sequence Learning", section 3.1; Vaswani et al. (2017),
        section 3.5.
    """

    new_parameter: Any

    def __init__(self, num_positions: int, embed_dim: int) -> None:
        super().__init__()
        size = (check_int("num_positions", num_positions, 1), check_int("embed_dim", embed_dim, 1))
        self.weight = self.new_parameter(size, 0.02)  # GPT-2's standard deviation

    def forward(self, x: A, *, q_offset: int = 0) -> A:
        """Add the positions' vectors: see the class."""
        array_namespace(x=x, **{"layer.weight": self.weight})
        require_padded("learned positions", x=x)
        require_sequence(x=x)
        T, (known, width) = x.shape[-2], self.weight.shape
        if x.shape[-1] != width:
            raise ValueError(f"x has shape {shape(x)}, but (B, T, {width}) is needed: embed_dim wide")
        if is_torch(q_offset):
            from attnlib._torch_tracing import is_eager_on_cpu

            offset = check_offset(q_offset, x)
            if not is_eager_on_cpu(offset):
                xp, device = namespace_and_device(x)
                return x + xp.take(self.weight, xp.arange(T, device=device) + offset, axis=0)
            q_offset = int(offset)
        first = check_int("q_offset", q_offset, 0)
        if first + T > known:
            raise ValueError(f"x has shape {shape(x)} and q_offset is {first}: there are vectors for {known} positions")
        return x + self.weight[first : first + T]

    if TYPE_CHECKING:
        __call__ = forward
