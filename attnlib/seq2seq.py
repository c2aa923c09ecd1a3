"""One step of a decoder that attends to an encoder's states: as Bahdanau et al. wrote it, and as Luong et al. did.

Both run a recurrent cell and attend to ``memory``; they differ in the order. Bahdanau attends with the **last**
state, and the context goes into the cell. Luong runs the cell first and attends with the **new** state:

    Bahdanau    s_{t-1} -> scores -> c;  [y; c] -> cell -> s_t
    Luong       y -> cell -> s_t -> scores -> c;  [c; s_t] -> h~

Dimensions: B batch, S length of the memory, D_y width of an input, D_s of a decoder's state, D_m of a state in the
memory, D_a hidden width of the additive score, D_h width of h~; G is 3 for a GRU and 1 for Elman's cell.
"""

from collections.abc import Callable, Mapping
from functools import partial

from attnlib._arrays import Array, array_namespace, broadcast_batch_shape, broadcasts_to, require_shapes, shape
from attnlib._types import ArrayT
from attnlib.attention import Score, attention
from attnlib.cells import gru_cell, rnn_cell
from attnlib.similarity import additive, dot, general

ADDITIVE_WEIGHTS = ("w_query", "w_key", "v")
CELL_WEIGHTS = ("w_ih", "w_hh")
CELL_BIASES = ("b_ih", "b_hh")
LUONG_SCORES: dict[str, tuple[Callable[..., Array], tuple[str, ...]]] = {
    "dot": (dot, ()),
    "general": (general, ("weight",)),
    "concat": (additive, ADDITIVE_WEIGHTS),
}


def bahdanau_step(
    y: ArrayT, state: ArrayT, memory: ArrayT, params: Mapping[str, ArrayT], *, mask: ArrayT | None = None
) -> tuple[ArrayT, ArrayT, ArrayT]:
    r"""Attend with the last state, then compute the next state from the input and the context.

    .. math::
        e_j &= v^\top \tanh(W_q^\top s_{t-1} + W_k^\top m_j), \qquad \alpha = \operatorname{softmax}(e) \\
        c &= \sum_j \alpha_j m_j \\
        s_t &= \mathrm{cell}([y; c], s_{t-1})

    The cell is a GRU if ``w_ih`` has 3 rows for each number of the state, and Elman's if it has 1. The paper's
    GRU applies the reset gate before the matrix product and swaps z with 1 - z; :func:`attnlib.gru_cell` is torch's.

    Args:
        y: the input, the embedding of the previous output word, ``(B, D_y)``.
        state: the decoder's last state :math:`s_{t-1}`, ``(B, D_s)``.
        memory: the encoder's states, ``(B, S, D_m)``. The three may have any leading dimensions, which broadcast.
        params: arrays by name: ``w_query`` ``(D_s, D_a)``, ``w_key`` ``(D_m, D_a)``, ``v`` ``(D_a,)``, ``w_ih``
            ``(G * D_s, D_y + D_m)``, ``w_hh`` ``(G * D_s, D_s)``, and optionally ``b_ih`` and ``b_hh`` ``(G * D_s,)``.
        mask: broadcasts to the weights ``(B, S)``; ``(B, 1, S)``, for one query, and ``(B, 1, 1, S)``, the
            shape of a padding mask for heads, are accepted too. Boolean: True where the decoder **may attend**.
            Floating point: added to the scores.

    Returns:
        ``(state, context, weights)``: the next state ``(B, D_s)``, the context ``(B, D_m)``, the weights ``(B, S)``.

    Raises:
        TypeError: backends or dtypes differ or are not floating point, ``params`` is not a mapping, or ``mask`` is
            neither boolean nor floating point.
        ValueError: names in ``params`` are missing or unknown, an array's shape does not fit, leading dimensions do
            not broadcast, or ``mask`` does not broadcast to the weights.

    Source:
        Bahdanau, Cho and Bengio (2015), "Neural Machine Translation by Jointly Learning to Align and Translate",
        section 3.1 and appendix A.2.2.

    Example:
        >>> import numpy as np
        >>> memory = np.array([[[1.0], [3.0]]])
        >>> params = dict(w_query=np.zeros((1, 1)), w_key=np.zeros((1, 1)), v=np.ones(1),
        ...               w_ih=np.array([[1.0, -2.0]]), w_hh=np.array([[1.0]]))
        >>> state, context, weights = bahdanau_step(np.array([[4.0]]), np.array([[0.0]]), memory, params)
        >>> weights, context, state  # equal scores; tanh(4 - 2 * 2 + 0)
        (array([[0.5, 0.5]]), array([[2.]]), array([[0.]]))
    """
    p = _chosen(params, (*ADDITIVE_WEIGHTS, *CELL_WEIGHTS), "bahdanau_step needs")
    y, state, xp = _together(y, state, memory, p)
    D_y, D_s, D_m = y.shape[-1], state.shape[-1], memory.shape[-1]
    needed = _additive_shapes(p, D_s, D_m) | _cell_shapes(p, D_s, D_y + D_m)
    require_shapes(p, needed, y=y, state=state, memory=memory)
    score = partial(additive, **{name: p[name] for name in ADDITIVE_WEIGHTS})
    context, weights = _attend(state, memory, score, mask)
    state = _next_state(xp.concat([y, context], axis=-1), state, p)
    return state, context, weights


def luong_step(
    y: ArrayT,
    state: ArrayT,
    memory: ArrayT,
    params: Mapping[str, ArrayT],
    *,
    score: str = "dot",
    mask: ArrayT | None = None,
) -> tuple[ArrayT, ArrayT, ArrayT]:
    r"""Compute the next state from the input, attend with it, and merge context and state.

    .. math::
        s_t &= \mathrm{cell}(y, s_{t-1}) \\
        e_j &= s_t \cdot m_j \quad\text{(dot)}, \qquad s_t^\top W m_j \quad\text{(general)}, \qquad
               v^\top \tanh(W_q^\top s_t + W_k^\top m_j) \quad\text{(concat)} \\
        c &= \sum_j \alpha_j m_j, \qquad \alpha = \operatorname{softmax}(e) \\
        \tilde h &= \tanh(W_c^\top [c; s_t])

    The cell is a GRU if ``w_ih`` has 3 rows for each number of the state, and Elman's if it has 1; the paper
    stacks LSTMs. For the paper's input feeding, pass ``[embedding; last h~]`` as ``y``.

    Args:
        y: the input, ``(B, D_y)``.
        state: the decoder's last state :math:`s_{t-1}`, ``(B, D_s)``.
        memory: the encoder's states, ``(B, S, D_m)``. The three may have any leading dimensions, which broadcast.
        params: arrays by name: ``w_ih`` ``(G * D_s, D_y)``, ``w_hh`` ``(G * D_s, D_s)``, ``w_c``
            ``(D_m + D_s, D_h)``, and optionally ``b_ih`` and ``b_hh`` ``(G * D_s,)``; for "general", ``weight``
            ``(D_s, D_m)``; for "concat", ``w_query`` ``(D_s, D_a)``, ``w_key`` ``(D_m, D_a)``, ``v`` ``(D_a,)``.
            Parameters of the other scores may be present, and are ignored.
        score: "dot" (which needs ``D_s = D_m``), "general" or "concat".
        mask: broadcasts to the weights ``(B, S)``; ``(B, 1, S)``, for one query, and ``(B, 1, 1, S)``, the
            shape of a padding mask for heads, are accepted too. Boolean: True where the decoder **may attend**.
            Floating point: added to the scores.

    Returns:
        ``(state, attentional, weights)``: the next state ``(B, D_s)``, h~ ``(B, D_h)``, the weights ``(B, S)``. The
        second is what the paper predicts the word from; :func:`bahdanau_step` returns the context there.

    Raises:
        TypeError: backends or dtypes differ or are not floating point, ``params`` is not a mapping, or ``mask`` is
            neither boolean nor floating point.
        ValueError: ``score`` is unknown, names in ``params`` are missing or unknown, an array's shape does not fit,
            leading dimensions do not broadcast, or ``mask`` does not broadcast to the weights.

    Source:
        Luong, Pham and Manning (2015), "Effective Approaches to Attention-based Neural Machine Translation",
        eq. 5 and 7, section 3.1.

    Example:
        >>> import numpy as np
        >>> memory = np.array([[[1.0], [3.0]]])
        >>> params = dict(w_ih=np.array([[1.0]]), w_hh=np.array([[-1.0]]), w_c=np.array([[0.0], [1.0]]))
        >>> state, attentional, weights = luong_step(np.array([[4.0]]), np.array([[4.0]]), memory, params)
        >>> state, weights, attentional  # tanh(4 - 4); scores 0 * 1 and 0 * 3; tanh(0 * 2 + 1 * 0)
        (array([[0.]]), array([[0.5, 0.5]]), array([[0.]]))
    """
    if score not in tuple(LUONG_SCORES):
        raise ValueError(f"score is {score!r}, but 'dot', 'general' or 'concat' is needed")
    own: tuple[str, ...]
    function, own = LUONG_SCORES[score]
    p = _chosen(
        params, (*own, *CELL_WEIGHTS, "w_c"), f"luong_step with score={score!r} needs", ("weight", *ADDITIVE_WEIGHTS)
    )
    y, state, xp = _together(y, state, memory, p)
    require_shapes(p, _luong_shapes(score, p, y, state, memory), y=y, state=state, memory=memory)
    state = _next_state(y, state, p)
    context, weights = _attend(state, memory, partial(function, **{name: p[name] for name in own}), mask)
    attentional = xp.tanh(xp.concat([context, state], axis=-1) @ p["w_c"])
    return state, attentional, weights


def _chosen(
    params: Mapping[str, Array], needed: tuple[str, ...], who: str, ignored: tuple[str, ...] = ()
) -> dict[str, Array]:
    """Return the parameters needed and the biases given, after checking that none is missing or unknown."""
    if not hasattr(params, "keys"):  # torch.nn.ParameterDict is not a Mapping, but has keys
        raise TypeError(f"params is a {type(params).__name__}, but a mapping of names to arrays is needed")
    came = dict(params)
    missing = [name for name in needed if name not in came]
    unknown = [name for name in came if name not in (*needed, *CELL_BIASES, *ignored)]
    if missing or unknown:
        faults = [f"{what} {names}" for what, names in (("missing", missing), ("unknown", unknown)) if names]
        raise ValueError(
            f"params: {', '.join(faults)}; {who} {[*needed]}, may have {[*CELL_BIASES]}, and got {[*came]}"
        )
    return {name: came[name] for name in needed} | {
        name: came[name] for name in CELL_BIASES if came.get(name) is not None
    }


def _together(y: Array, state: Array, memory: Array, p: dict[str, Array]) -> tuple[Array, Array, Array]:
    """Check backends and leading dimensions; return input and state with all leading dimensions, and the namespace."""
    xp = array_namespace(y=y, state=state, memory=memory, **p)
    lead = broadcast_batch_shape(y=(y, 1), state=(state, 1), memory=(memory, 2))
    y, state = (xp.broadcast_to(x, (*lead, x.shape[-1])) for x in (y, state))
    return y, state, xp


def _attend(state: Array, memory: Array, score: Score[Array], mask: Array | None) -> tuple[Array, Array]:
    """Attend with one query, the state: context ``(..., D_m)`` and weights ``(..., S)``."""
    if hasattr(mask, "shape"):  # attention refuses anything else by name
        mask = _mask_of_one_query(mask, (*state.shape[:-1], memory.shape[-2]))
    context, weights = attention(state[..., None, :], memory, memory, score=score, mask=mask)
    return context[..., 0, :], weights[..., 0, :]


def _mask_of_one_query(mask: Array, weights: tuple[int, ...]) -> Array:
    """Return the mask as ``(..., 1, S)``, whether it is meant for weights ``(..., S)``, for queries, or for heads."""
    came = mask
    if mask.ndim == len(weights) + 2 and tuple(mask.shape[-3:-1]) == (1, 1):
        mask = mask[..., 0, 0, :]
    elif mask.ndim == len(weights) + 1 and mask.shape[-2] == 1:
        mask = mask[..., 0, :]
    if mask.ndim == 0 or not broadcasts_to(mask.shape, weights):
        raise ValueError(
            f"mask has shape {shape(came)}, but weights are {weights}: S={weights[-1]} states in memory; it must "
            "broadcast to them, or be (B, 1, S), for one query, or (B, 1, 1, S) as padding_mask(lengths, S) returns it"
        )
    return mask[..., None, :]


def _next_state(x: Array, state: Array, p: dict[str, Array]) -> Array:
    cell = rnn_cell if p["w_ih"].shape[0] == state.shape[-1] else gru_cell
    return cell(x, state, p["w_ih"], p["w_hh"], p.get("b_ih"), p.get("b_hh"))


def _cell_shapes(p: dict[str, Array], D_s: int, width: int) -> dict[str, tuple[int | str, ...]]:
    rows = D_s if tuple(p["w_ih"].shape[:1]) == (D_s,) else 3 * D_s
    return {"w_ih": (rows, width), "w_hh": (rows, D_s), "b_ih": (rows,), "b_hh": (rows,)}


def _additive_shapes(p: dict[str, Array], D_s: int, D_m: int) -> dict[str, tuple[int | str, ...]]:
    D_a = p["v"].shape[0] if p["v"].ndim == 1 else "D_a"
    return {"w_query": (D_s, D_a), "w_key": (D_m, D_a), "v": (D_a,)}


def _luong_shapes(
    score: str, p: dict[str, Array], y: Array, state: Array, memory: Array
) -> dict[str, tuple[int | str, ...]]:
    D_y, D_s, D_m = y.shape[-1], state.shape[-1], memory.shape[-1]
    if score == "dot" and D_s != D_m:
        raise ValueError(
            f"state has shape {shape(state)} and memory {shape(memory)}: score='dot' needs equal widths, "
            f"not D_s={D_s} and D_m={D_m} ('general' and 'concat' allow different ones)"
        )
    additive_shapes = _additive_shapes(p, D_s, D_m) if score == "concat" else {}
    return {"w_c": (D_m + D_s, "D_h"), "weight": (D_s, D_m)} | additive_shapes | _cell_shapes(p, D_s, D_y)
