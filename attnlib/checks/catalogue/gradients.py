"""What a torch exercise asks beyond numbers: that gradients flow from the results back to the inputs."""

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
