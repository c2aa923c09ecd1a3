"""The questions with options to choose from."""

from attnlib.checks.catalogue.transformer.sections import INVARIANT, JOBS, SUM_CHECK
from attnlib.checks.questions import Question

QUESTIONS: tuple[Question, ...] = (
    Question(
        name="silent-attention",
        right="C",
        why={
            "A": "Follow the plus sign: where does the block's input enter the first sum? It does not pass through the "
            "output projection.",
            "B": "The norms come before the parts and touch only the copy that a part reads. Is the stream itself ever "
            "replaced by that copy?",
            "C": "What attention adds is zero, so after the first half the stream is the input as it was. The "
            "feed-forward layer still adds to each row, and it sees that row alone.",
            "D": "The feed-forward layer uses the same matrices for all rows. But does it ever put two rows into one "
            "sum? Think of changing one word, and look at another row.",
        },
        section=JOBS,
    ),
    Question(
        name="upstream-of-ones",
        right="B",
        why={
            "A": "With ones, a row of dP holds the sums of the components of the values. These differ from key to key, "
            "so dS is not zero, and a factor missing from dQ would show up.",
            "B": "With ones, all columns of dO are alike, so a mistake that mixes up columns changes nothing. A random "
            "dO tells them apart.",
            "C": "Think of a row of dP for ones: the sum of each value. Is its weighted average zero? If it is not, "
            "something is missing from dS.",
            "D": "The gradients of queries and keys are different numbers, mostly of a different shape, whatever the "
            "upstream gradient is.",
        },
        section=SUM_CHECK,
    ),
    Question(
        name="blocks-in-reverse",
        right="D",
        why={
            "A": "A block that comes late is not scaled as often. But it is measured against a larger maximum from the "
            "start. Compare both factors for one and the same score.",
            "B": "When the largest score comes first, no factor differs from 1 afterwards. That saves multiplications. "
            "Does it change what the sums mean?",
            "C": "The maximum is indeed the same in both orders. Now look at what the norm is a sum of, according to "
            "the claim in the chapter: does the order appear there?",
            "D": "After any number of blocks the state is a sum over all scores seen, measured against the largest. "
            "Neither a sum nor a maximum depends on the order.",
        },
        section=INVARIANT,
    ),
)
