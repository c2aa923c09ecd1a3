"""The questions with options to choose from."""

from attnlib.checks.catalogue.queries_keys_values.sections import LOOKUP, SQUARE_ROOT, TWO
from attnlib.checks.questions import Question

QUESTIONS: tuple[Question, ...] = (
    Question(
        name="spread-of-scores",
        right="C",
        why={
            "A": "The root of 64 is 8: that is the spread for components of variance 1. These components are larger.",
            "B": "You have counted the larger spread once. A product has two factors: a component of the query and one "
            "of the key.",
            "C": "Each product has the variance 4 times 4, which is 16. The sum of 64 has 1024, and its root is 32. "
            "Dividing by 8 leaves a spread of 4: it makes up for the width, not for long vectors.",
            "D": "That is the variance of the sum. The question asks how far from 0 a score typically lies, which is "
            "in the unit of the score, not of its square.",
        },
        section=SQUARE_ROOT,
    ),
    Question(
        name="a-key-twice",
        right="B",
        why={
            "A": "The softmax does not know that two keys are copies of each other. Count the terms of the sum in the "
            "denominator: is it the same sum as before?",
            "B": "Both copies have the same score, so both get the same weight, and the value is counted with both. If "
            "its weight was w, the two together have 2w/(1 + w): more than w, and less than 2w.",
            "C": "Nothing makes two copies share what one had. Work it out for one other key with the same score: the "
            "weight was 1/2 before. And with three equal scores?",
            "D": "That would need the sum in the denominator to stay as it is. The copy adds a term there as well.",
        },
        section=LOOKUP,
    ),
    Question(
        name="what-must-agree",
        right="D",
        why={
            "A": "The words of the two sequences go through matrices of their own first. A matrix has as many rows as "
            "its words need.",
            "B": "Values are averaged, not compared. Nothing in the weighted sum asks how wide a query was.",
            "C": "A table of scores need not be square. Each query divides its attention among all keys there are.",
            "D": "A dot product pairs the components of a query with those of a key, one by one. No other two widths "
            "have to agree; besides, each key needs one value.",
        },
        section=TWO,
    ),
)
