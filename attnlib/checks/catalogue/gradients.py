"""What is asked beyond numbers: that gradients flow from the results back to the inputs, and that no digit is lost."""

from attnlib.checks.catalogue.self_attention.sections import ATTENTION
from attnlib.checks.exercise import Mistake

GRADIENTS = "gradients"


def _cut_off(*inputs):
    raise NotImplementedError("recognised by what autograd says, not by its numbers")


CUT_OFF = Mistake(
    id="no-gradient",
    title="gradients cannot flow back",
    says="An input or a result is cut off: torch cannot follow the computation from one to the other.",
    hint="Follow the inputs through every line. Which step turns a tensor into something that torch no longer watches?",
    more="Three things cut a tensor off: detach, numpy and no_grad. A new tensor made from numbers starts afresh.",
    section=ATTENTION,
    implementation=_cut_off,
)


def _less_exact(*inputs):
    raise NotImplementedError("recognised by its dtype, not by its numbers")


LESS_EXACT = Mistake(
    id="less-exact",
    title="the result has fewer digits than the inputs",
    says="All inputs are float64, but what comes back is not: a step in between has thrown away half of the digits.",
    hint="Print the dtype of every array on the way. Which is the first that is not float64?",
    more="An array that you create yourself has a dtype of its own. In torch, zeros and ones are float32 unless you "
    "say otherwise: derive new tensors from the ones you were given.",
    section=ATTENTION,
    implementation=_less_exact,
)


def _nan_gradient(*inputs):
    raise NotImplementedError("recognised by its gradients, not by its numbers")


NAN_GRADIENT = Mistake(
    id="nan-gradient",
    title="the numbers are right, but their gradients are nan",
    says="On the way to your result there was a nan, which you replaced afterwards. On the way back, autograd meets it "
    "again: nan times 0 is nan.",
    hint="Where does the nan come from? Can you make sure that it never arises?",
    more="Print the array just before the step that turns it into nan, and change what goes into that step, not what "
    "it returns.",
    section=ATTENTION,
    implementation=_nan_gradient,
)
