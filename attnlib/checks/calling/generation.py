"""How a loop that writes is called: with a small model, which notes what it is given to read.

This runs in the same process as a student's code.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attnlib.checks.calling.case import Implementation
from attnlib.checks.calling.conventions import Arguments

MAX_READS = 60  # calls after which a loop is taken for an endless one; no case needs a third of them


class Step:
    """A model with a cache: it reads tokens, which follow those read before, and returns the next one.

    What it returns depends on all tokens so far and on their order, by a table.
    """

    def __init__(self, table: NDArray[np.int64]) -> None:
        self._table, self._state = table, 0
        self.reads: list[int] = []

    def __call__(self, tokens: Sequence[int]) -> int:
        """Read tokens and return the next one."""
        if not hasattr(tokens, "__len__"):
            raise TypeError(f"step was called with {tokens!r}, but it needs a list of tokens, even for a single one")
        if len(self.reads) == MAX_READS:
            raise RuntimeError(f"step was called more than {MAX_READS} times: the loop does not end")
        self.reads.append(len(tokens))
        for token in tokens:
            self._state = (self._state * 3 + int(token) + 1) % len(self._table)
        return int(self._table[self._state])


def call_generate(
    implementation: Implementation,
    inputs: Arguments,
    options: Arguments,
    setup: Arguments,
    training: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """Let an implementation write; return the new tokens and, if the setup asks, how many were read at each call."""
    step = Step(setup["table"])
    written = implementation(step, *inputs.values(), **options)
    if not hasattr(written, "__iter__"):
        raise TypeError(f"{type(written).__name__} was returned, but a list of tokens is needed")
    tokens = np.array(written) if (written := [*written]) else np.array([], np.int64)
    return ((np.array(step.reads, np.int64), tokens) if setup["reads"] else tokens), {}
