"""The questions with options to choose from."""

from attnlib.checks.catalogue.decoder.sections import GROUPS, PREFILL, SWIGLU
from attnlib.checks.questions import Question

QUESTIONS: tuple[Question, ...] = (
    Question(
        name="swiglu-width",
        right="C",
        why={
            "A": "Count the matrices. With the old width, how many numbers does each of them have, and how many "
            "matrices are there now?",
            "B": "With 2E, the three matrices have 6 E² numbers in all. How many did the two matrices have before?",
            "C": "Yes. Two matrices of 4 E² numbers make 8 E², and three of E F numbers make 3 E F. Both are equal for "
            "F = 8/3 E. This is why the widths of today's models look odd: 11008 for E = 4096, for example, is 8/3 E, "
            "rounded up to a multiple of 256.",
            "D": "With 3E, the three matrices have 9 E² numbers in all. How many did the two matrices have before?",
        },
        section=SWIGLU,
    ),
    Question(
        name="what-groups-save",
        right="A",
        why={
            "A": "Yes. There are a quarter as many keys and values to store, and to fetch from memory for each new "
            "token. But every query head still has its own score with every position, so the number of scores is the "
            "same as before.",
            "B": "Every query head still compares its query with the key of every position. Count the scores of one "
            "new token for 32 query heads.",
            "C": "Repeating the key heads in memory would indeed save nothing. Is that necessary, if several query "
            "heads can read the same array?",
            "D": "The projection of the queries still makes 32 heads. Which two of the four projections have become "
            "narrower?",
        },
        section=GROUPS,
    ),
    Question(
        name="prefill-is-fast",
        right="D",
        why={
            "A": "A token of the prompt goes through all layers and attends to the tokens before it, as a new one "
            "does. Per token, the number of multiplications is nearly the same.",
            "B": "The cache is filled with the keys and values of the prompt: each of its tokens adds to it, just as a "
            "new one does.",
            "C": "The mask hides half of the scores. But scores are a small part of the work here, and a factor of 2 "
            "could not explain the difference.",
            "D": "Yes. Each weight that is fetched from memory is used for all tokens of the prompt, but for only one "
            "token in decoding. The multiplications per token are the same, but decoding has to wait for the memory.",
        },
        section=PREFILL,
    ),
)
