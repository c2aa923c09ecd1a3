"""swiglu_feed_forward(x, w_gate, w_up, w_down): two projections, of which one is a gate, and a third one back."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.decoder.sections import SWIGLU
from attnlib.checks.exercise import Exercise, Mistakes
from attnlib.swiglu import silu

NUMBERS, BATCHES, LARGE, UNCHANGED = "the numbers", "batches", "large numbers", "inputs unchanged"
MISTAKES = Mistakes()


def swiglu_feed_forward(x: Any, w_gate: Any, w_up: Any, w_down: Any) -> Any:
    """Multiply one projection of x by the silu of another, and project the product back."""
    return _multiplied(silu(x @ w_gate.T), x @ w_up.T, w_down)


def _multiplied(gate: Any, up: Any, w_down: Any) -> Any:
    """Return the product of the gate and the other projection, projected back."""
    return (gate * up) @ w_down.T


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: a row by hand, other widths, equal widths, which hide a transpose, batches, large numbers."""
    log3 = np.log(3.0)
    hand = {
        "x": np.array([[log3, 1.0]]),
        "w_gate": np.array([[1.0, 0.0], [0.0, 0.0], [-1.0, 0.0]]),
        "w_up": np.array([[0.0, 4.0], [0.0, 7.0], [0.0, 8.0]]),
        "w_down": np.array([[1.0, 2.0, 0.0], [0.0, 5.0, -1.0]]) / log3,
    }
    yield Case("the row (log 3, 1), three gates log 3, 0 and -log 3, and the numbers 4, 7 and 8", NUMBERS, hand)
    yield Case("4 rows, E = 5, F = 7", NUMBERS, _layer(rng, (4,), 5, 7))
    yield Case("a layer that is narrower inside, E = 6, F = 4", NUMBERS, _layer(rng, (3,), 6, 4))
    yield Case("as wide inside as outside, E = F = 5", NUMBERS, _layer(rng, (3,), 5, 5))
    yield Case("numbers in float32", NUMBERS, _layer(rng, (4,), 3, 6, np.float32))
    yield Case("a single vector (E,)", BATCHES, _layer(rng, (), 4, 6))
    yield Case("a batch (2, 3, 5)", BATCHES, _layer(rng, (2, 3), 5, 8))
    yield Case("leading dimensions (2, 3, 4)", BATCHES, _layer(rng, (2, 3, 4), 6, 5))
    large = _layer(rng, (4,), 5, 6)
    large["w_gate"] *= 2000.0
    yield Case("gates of several thousands, positive and negative", LARGE, large)
    kept = _layer(rng, (3,), 4, 6)
    kept["w_up"] = np.ascontiguousarray(kept["w_up"].T).T
    yield Case("inputs that must stay as they are", UNCHANGED, kept, unchanged=True)


def _layer(rng, leading: tuple[int, ...], embed: int, hidden: int, dtype: Any = np.float64) -> dict[str, Any]:
    """Return rows and weights for gates of order 1."""
    arrays = {
        "x": rng.normal(size=(*leading, embed)),
        "w_gate": 1.5 * rng.normal(size=(hidden, embed)) / np.sqrt(embed),
        "w_up": 1.5 * rng.normal(size=(hidden, embed)) / np.sqrt(embed),
        "w_down": 1.5 * rng.normal(size=(embed, hidden)) / np.sqrt(hidden),
    }
    return {name: array.astype(dtype) for name, array in arrays.items()}


def _gated(activation):
    """Return the layer with another function in place of the silu."""
    return lambda x, w_gate, w_up, w_down: _multiplied(activation(x @ w_gate.T), x @ w_up.T, w_down)


def _sigmoid(g):
    return 1 / (1 + np.exp(-g))


@MISTAKES.add(
    "gate and up have changed places",
    hint="Which of the two projections goes through the silu?",
    more="In the first case the gates are log 3, 0 and -log 3. Print what you pass to the silu.",
    section=SWIGLU,
)
def gate_and_up_swapped(x, w_gate, w_up, w_down):
    """The silu is applied to the projection by w_up. Apply it to the one by w_gate, and only multiply by the other."""
    return _multiplied(x @ w_gate.T, silu(x @ w_up.T), w_down)


@MISTAKES.add(
    "there is no gate",
    hint="Which of the three matrices can be changed without changing your result?",
    more="In the first case the second gate is silu(0) = 0. Does anything become 0 in your function?",
    section=SWIGLU,
)
def no_gate(x, w_gate, w_up, w_down):
    """This is the older layer: one projection, the silu, and back. The projection by w_gate takes no part in it."""
    return silu(x @ w_up.T) @ w_down.T


@MISTAKES.add(
    "the projection up is missing",
    hint="Which of the three matrices can be changed without changing your result?",
    more="Count the matrix products in the formula, and in your code.",
    section=SWIGLU,
)
def no_up(x, w_gate, w_up, w_down):
    """The gate alone is projected back to width E. Multiply it by the projection by w_up first."""
    return silu(x @ w_gate.T) @ w_down.T


@MISTAKES.add(
    "the silu is missing",
    hint="What would your layer do to a row that is twice as long?",
    more="In the first case the first gate is log 3. What does the silu make of it?",
    section=SWIGLU,
)
def no_silu(x, w_gate, w_up, w_down):
    """The two projections are multiplied as they are. One of them has to go through the silu first."""
    return _multiplied(x @ w_gate.T, x @ w_up.T, w_down)


@MISTAKES.add(
    "a sigmoid in place of the silu",
    hint="Which factor distinguishes the silu from the sigmoid?",
    more="The silu of 0 is 0. What does your function make of 0?",
    section=SWIGLU,
)
def sigmoid_gate(x, w_gate, w_up, w_down):
    """Your gate is the sigmoid of the projection. The silu also multiplies that by the projection itself."""
    return _gated(_sigmoid)(x, w_gate, w_up, w_down)


@MISTAKES.add(
    "a ReLU in place of the silu",
    hint="What does your gate make of a small negative number, and what does the silu make of it?",
    more="In the first case the last gate is -log 3. The silu of that is about -0.27.",
    section=SWIGLU,
)
def relu_gate(x, w_gate, w_up, w_down):
    """Your gate cuts negative numbers off, which makes it a ReGLU. The silu lets a little of them through."""
    return _gated(lambda g: np.maximum(g, 0))(x, w_gate, w_up, w_down)


@MISTAKES.add(
    "a tanh in place of the silu",
    hint="Your gate never exceeds 1. Does the silu?",
    more="For large positive numbers the silu is nearly the number itself. What does your function make of 10?",
    section=SWIGLU,
)
def tanh_gate(x, w_gate, w_up, w_down):
    """Your gate is a tanh, which never exceeds 1. The silu grows with its argument."""
    return _gated(np.tanh)(x, w_gate, w_up, w_down)


@MISTAKES.add(
    "a GELU in place of the silu",
    hint="Both curves look alike. Which of them is in the formula of the task?",
    more="At log 3 the silu is 3/4 of log 3. Compute yours there.",
    section=SWIGLU,
)
def gelu_gate(x, w_gate, w_up, w_down):
    """Your gate is the tanh form of the GELU, which makes this layer a GeGLU. The task asks for g / (1 + exp(-g))."""
    inner = np.sqrt(2 / np.pi)
    return _gated(lambda g: 0.5 * g * (1 + np.tanh(inner * (g + 0.044715 * g**3))))(x, w_gate, w_up, w_down)


@MISTAKES.add(
    "a sigmoid with the factor 1.702",
    hint="Which factor is in your exponent?",
    more="At log 3 the silu is 3/4 of log 3. Compute yours there.",
    section=SWIGLU,
)
def quick_gelu_gate(x, w_gate, w_up, w_down):
    """The exponent is multiplied by 1.702. That approximates a GELU; in the silu the factor is 1."""
    return _gated(lambda g: g * _sigmoid(1.702 * g))(x, w_gate, w_up, w_down)


@MISTAKES.add(
    "a softplus in place of the silu",
    hint="What does your gate make of 0?",
    more="The silu of 0 is 0, and it is negative to the left of that. Is yours?",
    section=SWIGLU,
)
def softplus_gate(x, w_gate, w_up, w_down):
    """Your gate is log(1 + exp(g)), which is always positive. The silu is g / (1 + exp(-g))."""
    return _gated(lambda g: np.logaddexp(0.0, g))(x, w_gate, w_up, w_down)


@MISTAKES.add(
    "the sign in the exponent is wrong",
    hint="For a large positive gate, should the silu be large or nearly 0?",
    more="At log 3 the exponential of minus the gate is 1/3, so the gate is multiplied by 3/4. By what is yours "
    "multiplied?",
    section=SWIGLU,
)
def sign_of_the_exponent(x, w_gate, w_up, w_down):
    """The sign of the exponent is reversed, so large gates become 0 and very negative ones pass."""
    return _gated(lambda g: g * _sigmoid(-g))(x, w_gate, w_up, w_down)


@MISTAKES.add(
    "both projections go through the silu",
    hint="How many of the two projections go through the silu in the formula?",
    more="In the first case the numbers 4, 7 and 8 are only multiplied. What becomes of them in your function?",
    section=SWIGLU,
)
def silu_of_both(x, w_gate, w_up, w_down):
    """Both projections go through the silu. Only the gate should; the other one is multiplied as it is."""
    return _multiplied(silu(x @ w_gate.T), silu(x @ w_up.T), w_down)


@MISTAKES.add(
    "the product goes through the silu",
    hint="Which comes first: the silu, or the product of the two projections?",
    more="In the first case the first gate is log 3 and the first number 4. Write down the order of the two steps.",
    section=SWIGLU,
)
def silu_of_product(x, w_gate, w_up, w_down):
    """The projections are multiplied, and the silu is applied to their product. Apply it to the gate alone."""
    return silu((x @ w_gate.T) * (x @ w_up.T)) @ w_down.T


@MISTAKES.add(
    "gate and up are added",
    hint="How are the two projections combined: by a sum or by a product?",
    more="Where the gate is 0, nothing should pass. What passes in your function?",
    section=SWIGLU,
)
def added(x, w_gate, w_up, w_down):
    """The gate is added to the other projection. A gate multiplies: where it is 0, nothing passes."""
    return (silu(x @ w_gate.T) + x @ w_up.T) @ w_down.T


@MISTAKES.add(
    "the projection back is missing",
    hint="Which width should the result have, E or F?",
    more="Which of the three matrices can be changed without changing your result?",
    section=SWIGLU,
)
def no_down(x, w_gate, w_up, w_down):
    """Your result has the inner width F. Project it back to width E with w_down."""
    return silu(x @ w_gate.T) * (x @ w_up.T)


@MISTAKES.add(
    "the weights are the wrong way round",
    hint="Each row of a weight makes one number of the result. Do you multiply the input by rows or by columns?",
    more="With equal widths no error tells you. Write the shapes (T, E) and (F, E) next to each other.",
    section=SWIGLU,
)
def weights_transposed(x, w_gate, w_up, w_down):
    """The weights are used without the transpose. Their shape is (out, in), as in torch's Linear."""
    return _multiplied(silu(x @ w_gate), x @ w_up, w_down.T) if w_gate.shape[0] == w_gate.shape[1] else x @ w_gate


@MISTAKES.add(
    "the input is added",
    hint="Does the formula of this task contain a sum?",
    more="The plus sign of the residual stream is outside this layer. What does your function return for weights of 0?",
    section=SWIGLU,
)
def residual_inside(x, w_gate, w_up, w_down):
    """The input is added to the result. That is the residual connection, which belongs to the block around it."""
    return x + _multiplied(silu(x @ w_gate.T), x @ w_up.T, w_down)


@MISTAKES.add(
    "the silu overflows",
    hint="What is the exponential of 1000 in floating point?",
    more="Infinity divided by infinity is nan. In which form is the exponential divided by 1 plus something finite?",
    section=SWIGLU,
)
def overflow(x, w_gate, w_up, w_down):
    """For large gates your silu is infinity divided by infinity, hence nan.

    Divide by 1 plus the exponential of minus the gate: then it is the gate divided by infinity, which is 0.
    """
    return _gated(lambda g: g * np.exp(g) / (1 + np.exp(g)))(x, w_gate, w_up, w_down)


EXERCISE = Exercise(
    name="swiglu_feed_forward",
    reference=swiglu_feed_forward,
    outputs={"y": ("T", "E")},
    rubric={NUMBERS: 5, BATCHES: 2, LARGE: 1, UNCHANGED: 1},
    section=SWIGLU,
    advice="Take the row (log 3, 1) of the task. The gates are log 3, 0 and -log 3, after the silu 3/4 log 3, 0 and "
    "-1/4 log 3. Times 4, 7 and 8 that makes 3 log 3, 0 and -2 log 3. Which line of yours is the first to differ?",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    solved_by=("attnlib.swiglu", "attnlib.swiglu.silu", "torch.nn.functional.silu", "torch.nn.SiLU"),
)
