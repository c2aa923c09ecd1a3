"""The questions with options to choose from."""

from attnlib.checks.catalogue.masking.sections import CACHE, LEAKS, POLARITY
from attnlib.checks.questions import Question

QUESTIONS: tuple[Question, ...] = (
    Question(
        name="mask-polarity",
        right="C",
        why={
            "A": "The layer takes boolean masks, and the shapes fit. Nothing in your call looks wrong to it.",
            "B": "For that, a sentence must have no key left. Count what is left in each row when True and False have "
            "changed places: does any row come out empty here?",
            "C": "Yes. In this layer True means “ignore”, so the real words are hidden and the padding is read. Every "
            "sentence has some padding, so no row is empty, nothing is nan, and the loss goes down. A test that "
            "changes one word and checks which outputs change finds it in three lines.",
            "D": "A float mask is added to the scores, and means the same everywhere. A boolean mask follows a "
            "convention about what True means. Compare the two conventions here, word by word.",
        },
        section=POLARITY,
    ),
    Question(
        name="zero-weight-leak",
        right="B",
        why={
            "A": "The value of a later word is indeed multiplied by 0. But look at how the other weights of the row "
            "were made: which scores went into them?",
            "B": "Yes. A later score can be in the denominator of the softmax, or a mean over all words can be "
            "taken before the attention. Both move earlier outputs, and the triangle of weights shows neither.",
            "C": "Training and prediction run the same forward pass here. Ask whether the forward pass itself depends "
            "on the later word.",
            "D": "Large numbers make an effect larger. Is there an effect with numbers of ordinary size? Try two "
            "words by hand, with a weight that was set to 0 after the softmax.",
        },
        section=LEAKS,
    ),
    Question(
        name="why-a-cache-works",
        right="A",
        why={
            "A": "Yes. No new word can reach back, so what is at an earlier position is the same in every layer, "
            "and so are its key and its value. Without the causal mask a new word would change them from the second "
            "layer on.",
            "B": "That is true of every attention layer, even of an encoder that reads in both directions, where a "
            "cache gives wrong results. Which property does the decoder have that such an encoder lacks?",
            "C": "Permutation is not the point: the cache keeps the order. Ask what could change a key that has been "
            "computed already.",
            "D": "Old keys do get small weights sometimes, and sometimes they get the largest. A cache has to be "
            "exact, whatever the weights are.",
        },
        section=CACHE,
    ),
)
