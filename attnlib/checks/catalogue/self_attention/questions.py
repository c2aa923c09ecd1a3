"""The questions with options to choose from."""

from attnlib.checks.catalogue.self_attention.sections import SCALE, SIMILARITIES, SOFTMAX
from attnlib.checks.questions import Question

QUESTIONS: tuple[Question, ...] = (
    Question(
        name="shift-or-stretch",
        right="B",
        why={
            "A": "The division by the sum makes the weights sum to 1, before and after. It does not keep the "
            "individual weights as they were: compare the ratio of two weights for the scores 0 and 1, and for 0 and "
            "3.",
            "B": "The ratio of two weights is e to the difference of their scores. A shift leaves every difference as "
            "it is; three times the scores means three times the difference, so the ratio is raised to the third "
            "power.",
            "C": "One of your two claims would mean that a factor cancels in the fraction. Try the scores 0 and 1: "
            "what is the ratio of their weights, and what is it for 0 and 3, and for 5 and 6?",
            "D": "For a row of weights to become sharper, differences between scores have to grow. Look at the "
            "differences of 0, 1, 2 and of 5, 6, 7.",
        },
        section=SOFTMAX,
    ),
    Question(
        name="moved-together",
        right="C",
        why={
            "A": "A dot product is a sum of products with the components themselves. Try the query (1, 0) and the key "
            "(0, 1), and move both by (1, 1): what are the two dot products?",
            "B": "The angle between two arrows is measured at the origin, and moving both tips does not move the "
            "origin. Try (1, 0) and (0, 1), moved by (1, 1): is the angle still a right angle?",
            "C": "It uses the difference of the two vectors alone, and in the difference the common part cancels. The "
            "dot product and the cosine measure from the origin, so they change.",
            "D": "New components need not mean new scores. Write down what each of the three computes, with q + c and "
            "k + c in place of q and k. Does the c stay in all three of them?",
        },
        section=SIMILARITIES,
    ),
    Question(
        name="forgotten-root",
        right="D",
        why={
            "A": "It does divide by the sum, so every row still sums to 1. But how a row is divided among the keys "
            "depends on the differences of its scores. How large are these at width 1024?",
            "B": "A sum of more products of either sign spreads out more, not less: its variance is the sum of their "
            "variances. Look at the table of standard deviations in the chapter.",
            "C": "Whatever the scores are, the last step of the softmax divides each row by its own sum. So what can "
            "be wrong with a row, if it is not its sum?",
            "D": "Without the root the scores have a standard deviation of 4 at width 16, and of 32 at width 1024. "
            "The softmax looks at differences, and with differences of 32 one key gets nearly everything.",
        },
        section=SCALE,
    ),
)
