"""The questions with options to choose from."""

from attnlib.checks.catalogue.multi_head.sections import ONE_AVERAGE, OUTPUT_PROJECTION, SCALE
from attnlib.checks.questions import Question

QUESTIONS: tuple[Question, ...] = (
    Question(
        name="wider-or-more",
        right="C",
        why={
            "A": "A vector of 60 numbers has room for three results of 20 numbers each. Space is not the problem: look "
            "at how the 60 numbers are computed.",
            "B": "Softmax weights need not be sharp: a head may give three words a third each. Ask what comes out "
            "then, and whether you could still tell the three apart.",
            "C": "However wide its vector is, all of its numbers are averaged with the same row of weights. Three "
            "heads have three rows, so what they bring home stays separate.",
            "D": "Count again: three heads of width 20 divide up the same matrices that one head of width 60 uses "
            "whole.",
        },
        section=ONE_AVERAGE,
    ),
    Question(
        name="more-heads",
        right="B",
        why={
            "A": "The number of heads does not appear in the shapes of the four matrices. Write them down for 8 heads "
            "and for 16: which of them becomes larger?",
            "B": "A head is 512/16 = 32 wide now, so its scores are divided by the root of 32, no longer by that of "
            "64. And there are 16 tables of weights instead of 8.",
            "C": "This is the root that many tutorials print. Over how many products does a dot product inside one "
            "head sum, with 16 heads?",
            "D": "The heads are merged side by side. How wide is one of them with 16 heads, and how wide are all "
            "together?",
        },
        section=SCALE,
    ),
    Question(
        name="without-w-o",
        right="D",
        why={
            "A": "Look at a table before and after merging: its width is already that of the words. The shape would "
            "fit.",
            "B": "The scores are computed long before, from queries and keys. Nothing after the softmax reaches back "
            "to them.",
            "C": "Merging puts the heads side by side and adds nothing. In which step would a number of head 0 be "
            "added to one of head 1?",
            "D": "Merging only puts the heads side by side. It is w_o that gives every output number something of "
            "every head, and lets a head write wherever it likes.",
        },
        section=OUTPUT_PROJECTION,
    ),
)
