"""The questions with options to choose from."""

from attnlib.checks.catalogue.context_vectors.sections import ALIGNMENT, BOTTLENECK, OTHER_ORDER
from attnlib.checks.questions import Question

QUESTIONS: tuple[Question, ...] = (
    Question(
        name="bottleneck",
        right="C",
        why={
            "A": "On paper a real number has infinitely many digits. But what is read back out of a state is limited: "
            "the chapter measures how many digits a state of 64 and one of 256 numbers give back. Is that as many as "
            "you like?",
            "B": "The chapter measures a state of 64 and one of 256 numbers, both between -1 and 1. Do they give "
            "back the same number of digits?",
            "C": "More width does give more room, as the chapter measures. But whatever the width, some sentence is "
            "too long for it; and the gradient still has to travel back through every step.",
            "D": "Count the steps between the first word and the last. Which of the two changes that number: the "
            "width of the state, or the length of the sentence?",
        },
        section=BOTTLENECK,
    ),
    Question(
        name="order-of-steps",
        right="A",
        why={
            "A": "The cell has run already, so the context bypasses it: context and new state are mixed, and the "
            "output is predicted from the mixture. That is Luong's decoder.",
            "B": "The cell of step t has made the new state, and the context was found by asking with that state. "
            "For it to go into the same cell, it would have to exist before itself.",
            "C": "The cell is not the last thing that happens in a step. What is computed between the new state "
            "and the output?",
            "D": "The context is made of the weights, and the weights of the scores. Can it change what it is made of?",
        },
        section=OTHER_ORDER,
    ),
    Question(
        name="reading-an-alignment",
        right="B",
        why={
            "A": "These are the places of the weekday. Look at the rows in which the day was written, the last "
            "two: are their largest numbers in the first two columns?",
            "B": "The last two rows have their largest numbers in the columns of the 2 and of the 7 of 27. The "
            "model looks at the digit that it is about to write.",
            "C": "These are the places where the day is in the *output*: the numbers of two rows. The question"
            " asks for the columns.",
            "D": "These are columns, but of two other rows: the model looks there while it writes another part of "
            "the date. Which two rows belong to the day?",
        },
        section=ALIGNMENT,
    ),
)
