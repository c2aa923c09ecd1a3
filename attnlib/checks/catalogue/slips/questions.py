"""The questions with options to choose from, which ask for the line of a listing that is wrong, and why."""

from attnlib.checks.catalogue.slips.sections import CACHE, OFFSET, SHIFT, SPLIT, TURN, WRONG_ROOT
from attnlib.checks.questions import Question

QUESTIONS: tuple[Question, ...] = (
    Question(
        name="listing-softmax",
        right="A",
        why={
            "A": "Yes. One maximum for the whole table is subtracted from every row. If another row lies a thousand "
            "below it, all exponentials of that row are 0, and 0/0 is nan. Each row needs its own maximum.",
            "B": "The largest number after line 2 is 0. What is the largest exponential in line 3, then?",
            "C": "A softmax along an axis divides by the sums along this axis. What would a test with axis=0 find in "
            "line 4?",
            "D": "Without keepdims, the sums of a square table would be divided into the wrong rows. Does line 4 "
            "lack it?",
        },
        section=SHIFT,
    ),
    Question(
        name="listing-attention",
        right="B",
        why={
            "A": "The last two axes of the keys are swapped, in a batch as well. Which axis would a plain .T swap?",
            "B": "Yes. In a batch, axis 1 counts the words. With one sentence it is the width, so every test "
            "with a single sentence passes. Counted from the end, the width is axis -1 in both.",
            "C": "Line 4 subtracts from every row its own maximum. Compare the shapes of both sides of the minus sign.",
            "D": "The rows of the weights have to sum to 1. Over which axis do they, if each query looks at all keys?",
        },
        section=WRONG_ROOT,
    ),
    Question(
        name="listing-mask",
        right="C",
        why={
            "A": "The queries are the rows of the mask. Which shape does line 2 give them, and which shape has the "
            "result?",
            "B": "A query may see its own position. What would the mask of a single word be, without the equals sign?",
            "C": "Yes. The offset says how many keys there are before the first query, so it belongs to the position "
            "of the query: j <= i + q_offset. Here a positive offset hides keys. No test with an offset of 0 sees it.",
            "D": "The keys count from 0, because the mask has a column for every key in the cache. What would "
            "change if they began at 1?",
        },
        section=OFFSET,
    ),
    Question(
        name="listing-heads",
        right="B",
        why={
            "A": "The words go through the matrices before they are cut into heads, as they should. What would be "
            "cut otherwise?",
            "B": "Yes. A reshape to (H, T, D) cuts the rows of the table in the order in which they lie in memory, so "
            "a head gets parts of several words. Reshape to (T, H, D), and then swap the two axes.",
            "C": "The scale belongs to the width of one head. Which width do the queries have when attention sees "
            "them, after line 3?",
            "D": "The heads have to stand side by side for each word. Follow one word through the swap and the "
            "reshape of line 5.",
        },
        section=SPLIT,
    ),
    Question(
        name="listing-rope",
        right="C",
        why={
            "A": "The pairs of this layout are component k and component k + D/2. Where does the second half begin?",
            "B": "A turn by a positive angle takes cos times the first minus sin times the second component. Compare "
            "with the formula in the book.",
            "C": "Yes. Line 3 has overwritten the first components, so line 4 mixes the turned ones in. The caller's "
            "array is changed as well. Write both halves into a new array.",
            "D": "The second component of a turned pair is sin times the first plus cos times the second. Are the "
            "signs of line 4 different?",
        },
        section=TURN,
    ),
    Question(
        name="listing-cache",
        right="A",
        why={
            "A": "Yes. The list belongs to the class, so all caches share it: a second text continues the first one. "
            "A test with one cache sees nothing. Make the list in __init__.",
            "B": "The method keeps the chunk and then joins all of them. Which chunk would be missing, if the two "
            "lines changed places?",
            "C": "Tokens lie along axis -2, before the width. What would axis -1 join?",
            "D": "The pairs are turned into one series of keys and one of values. Write down what zip returns for two "
            "chunks.",
        },
        section=CACHE,
    ),
)
