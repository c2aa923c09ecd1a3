"""What a torch exercise asks beyond numbers: that gradients flow from the results back to the inputs."""

from attnlib.checks.catalogue.sections import ATTENTION
from attnlib.checks.exercise import Mistake

GRADIENTS = "gradients"


def _cut_off(*inputs):
    raise NotImplementedError("recognised by what autograd says, not by its numbers")


CUT_OFF = Mistake(
    id="no-gradient",
    title="gradients cannot flow back",
    says="The result is cut off from the inputs: somewhere the computation left torch, so nothing could be trained.",
    hint="Follow the inputs through every line. Which step turns a tensor into something that torch no longer watches?",
    section=ATTENTION,
    implementation=_cut_off,
)
