"""How a right answer is registered, in a style that students write: whatever is equal in mathematics has to pass."""

import numpy as np

CORRECT_SOLUTIONS = {}


def style(exercise, text, *, backend="numpy"):
    """Register a right implementation of an exercise."""

    def register(implementation):
        CORRECT_SOLUTIONS.setdefault((exercise, backend), {})[text] = implementation
        return implementation

    return register


def swap(x):
    return np.swapaxes(x, -1, -2)
