"""The questions with options to choose from."""

from attnlib.checks.catalogue.positions.sections import CLOCKS, PAIRS, STEP
from attnlib.checks.questions import Question

QUESTIONS: tuple[Question, ...] = (
    Question(
        name="why-slow-hands",
        right="C",
        why={
            "A": "Every hand gives numbers between -1 and 1, the fast ones too. The speed of a hand does not change "
            "its size.",
            "B": "The width is a choice, and any number of hands fills it, whatever their speeds. Copies of the fast "
            "hand would fill it as well. Compare the tips of hand 0 that were printed, at 0 and at 44.",
            "C": "44 steps are almost exactly 7 turns of the fastest hand, so it points nearly where it was. The "
            "slower hands are far from a whole turn there, and tell the fast one's turns apart, as an hour hand does "
            "for a minute hand.",
            "D": "A sine that repeats is not wrong: each position still has its own two numbers. Ask instead which "
            "other positions have almost the same two.",
        },
        section=CLOCKS,
    ),
    Question(
        name="added-or-turned",
        right="A",
        why={
            "A": "With sinusoids added, the score has four terms, such as words with positions and positions with "
            "positions, and each contains the trained matrices. Only turning queries and keys, after the matrices, "
            "lets the absolute positions cancel.",
            "B": "What you measured says something else: look again at the two numbers that were printed for 1000 "
            "steps.",
            "C": "The positions-with-positions term does depend only on the distance. But a score contains more than "
            "that: multiply out the sum of a word and a position with another such sum, with a matrix in between.",
            "D": "The dot product of two sinusoids is symmetric, and that of two turned vectors is not. But the "
            "question "
            "is what happens when both positions move on together.",
        },
        section=STEP,
    ),
    Question(
        name="other-layout",
        right="D",
        why={
            "A": "The shapes do not change at all: the same number of components is turned in both layouts.",
            "B": "It is true that both layouts are equally good for a model that is trained with them. This one was "
            "trained with the other: each of its columns has learned which other one it is turned with.",
            "C": "A turn keeps the length of every vector, in either layout. Lengths cannot tell you.",
            "D": "At distance 0 query and key are turned alike, and the dot product is that of the unturned vectors, "
            "whatever the pairs. At any other distance the angles differ, and other pairs give other scores.",
        },
        section=PAIRS,
    ),
)
