"""Every exercise of the course, in its order. One file each: inputs, reference, mistakes."""

from attnlib.checks.catalogue import attention, cosine, dot, self_attention, softmax
from attnlib.checks.exercise import Exercise

CATALOGUE: dict[str, Exercise] = {
    module.EXERCISE.name: module.EXERCISE for module in (softmax, dot, cosine, attention, self_attention)
}
