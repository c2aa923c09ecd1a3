"""gaussian(query, key, *, bandwidth=1.0)."""

from collections.abc import Iterator

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.duplicate_rows import with_duplicate_rows
from attnlib.checks.catalogue.self_attention.dot import pair, views
from attnlib.checks.catalogue.self_attention.sections import DOT, SCORES, SIMILARITIES
from attnlib.checks.exercise import Exercise, Mistakes

NUMBERS, BANDWIDTH, BATCHES, UNCHANGED = "the numbers", "the bandwidth", "batches", "inputs unchanged"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: distances 0, 1 and 5 worked by hand, then T queries against S keys, bandwidths, batches."""
    hand = {"query": np.array([[2.0, 1.0]]), "key": np.array([[2.0, 1.0], [2.0, 2.0], [5.0, 5.0]])}
    yield Case("one query [2, 1] and the keys [2, 1], [2, 2], [5, 5]", NUMBERS, hand)
    yield Case("3 queries and 5 keys of width 4", NUMBERS, pair(rng, (3, 4), (5, 4)))
    yield Case("one query and one key", NUMBERS, pair(rng, (1, 4), (1, 4)))
    yield Case("vectors in float32", NUMBERS, pair(rng, (2, 3), (4, 3), np.float32))
    yield Case("4 queries and one key", NUMBERS, pair(rng, (4, 3), (1, 3)))
    yield Case("3 queries and 3 keys of width 3", NUMBERS, pair(rng, (3, 3), (3, 3)))  # where every difference fits
    repeated = with_duplicate_rows(pair(rng, (3, 4), (5, 4)), "query", "key")
    yield Case("a repeated query and a repeated key", NUMBERS, repeated)
    away = pair(rng, (3, 4), (5, 4))
    away["key"][[1, 3]] += 100.0
    yield Case("two keys at distances of about 200", NUMBERS, away)
    wide = rng.normal(size=(12, 33))
    yield Case("12 vectors of width 33 against themselves", NUMBERS, {"query": wide, "key": wide.copy()})
    far = {"query": np.array([[2.0, 1.0]]), "key": np.array([[2.0, 2.0], [5.0, 5.0]])}
    yield Case("bandwidth=5, one query [2, 1] and the keys [2, 2], [5, 5]", BANDWIDTH, far, {"bandwidth": 5.0})
    yield Case("bandwidth=0.5", BANDWIDTH, pair(rng, (3, 4), (5, 4)), {"bandwidth": 0.5})
    yield Case("a batch of 2 (T=3, S=5, D=4)", BATCHES, pair(rng, (2, 3, 4), (2, 5, 4)))
    yield Case("leading dimensions (2, 6)", BATCHES, pair(rng, (2, 6, 3, 4), (2, 6, 5, 4)))
    yield Case("a batch of transposed views", BATCHES, views(pair(rng, (3, 4, 2), (3, 4, 5))))
    vectors = pair(rng, (3, 2), (4, 2))
    yield Case("inputs that must stay as they are", UNCHANGED, vectors, {"bandwidth": 2.0}, unchanged=True)


def _squares(query, key):
    """Return the squared distances of all pairs."""
    return -2 * attnlib.gaussian(query, key)


def _squared_norm(x):
    return (x**2).sum(-1)


@MISTAKES.add(
    "the minus sign is missing",
    hint="Which of two keys should get the larger score, the nearer or the farther?",
    more="In the first case the scores are 0, -0.5 and -12.5: the key that is the query itself has the largest. In "
    "yours it has the smallest. What comes before the fraction in the task?",
    section=SIMILARITIES,
)
def no_minus(query, key, bandwidth=1.0):
    """A score says how similar two vectors are. Yours grows with their distance."""
    return _squares(query, key) / (2 * bandwidth**2)


@MISTAKES.add(
    "the factor 2 in the denominator is missing",
    hint="Two vectors at distance 1, with bandwidth 1: what is their score?",
    more="In the first case the second key is at distance 1, so its score is -1/2. You have -1. Which number of the "
    "formula is not in your function?",
    section=SIMILARITIES,
)
def no_half(query, key, bandwidth=1.0):
    """The squared distances are divided by the squared bandwidth, but not by 2.

    All scores are twice as large as they should be.
    """
    return -_squares(query, key) / bandwidth**2


@MISTAKES.add(
    "divided by 4 instead of 2",
    hint="What is squared in the denominator: the bandwidth alone, or the 2 as well?",
    more="Two vectors at distance 1, with bandwidth 1, score -1/2. You have -1/4. Look at the order in which your "
    "function multiplies by 2 and squares.",
    section=SIMILARITIES,
)
def two_squared(query, key, bandwidth=1.0):
    """The 2 was squared together with the bandwidth. Only the bandwidth is squared."""
    return -_squares(query, key) / (2 * bandwidth) ** 2


@MISTAKES.add(
    "divided by 4, and the bandwidth is not squared",
    hint="What does the 2 above the bandwidth mean: a factor, or a square?",
    more="Two vectors at distance 1, with bandwidth 1, score -1/2. You have -1/4. With bandwidth 5 the denominator is "
    "2 times 25: what is yours?",
    section=SIMILARITIES,
)
def four_bandwidths(query, key, bandwidth=1.0):
    """The squared distances are divided by 4 times the bandwidth. Twice its square belongs there."""
    return -_squares(query, key) / (4 * bandwidth)


@MISTAKES.add(
    "the distance is not squared",
    hint="A key at distance 5, with bandwidth 1: is its score -2.5 or -12.5?",
    more="In the first case the third key is 3 and 4 away in its two components. The square of the distance is 9 + 16. "
    "You took the root of it; the formula does not.",
    section=SIMILARITIES,
)
def not_squared(query, key, bandwidth=1.0):
    """The distances were used as they are. The formula has their squares, which make far keys count much less."""
    return -np.sqrt(_squares(query, key)) / (2 * bandwidth**2)


@MISTAKES.add(
    "the sum of absolute differences",
    hint="The key [5, 5] is 3 and 4 away from the query [2, 1]. Is the squared distance 7 or 25?",
    more="Square each difference before you add them up: 9 and 16. You added 3 and 4.",
    section=SIMILARITIES,
)
def absolute_differences(query, key, bandwidth=1.0):
    """The absolute differences of the components were added up. The task asks for their squares."""
    return -np.abs(query[..., :, None, :] - key[..., None, :, :]).sum(-1) / (2 * bandwidth**2)


@MISTAKES.add(
    "squared after the sum",
    hint="The key [5, 5] is 3 and 4 away from the query [2, 1]. Is the squared distance 9 + 16, or 7 squared?",
    more="Differences of opposite sign cancel when they are added first: [1, -1] would be at distance 0 from [0, 0]. "
    "In which order are the square and the sum in the task?",
    section=SIMILARITIES,
)
def squared_after_sum(query, key, bandwidth=1.0):
    """The differences were added up first and then squared.

    Each difference should be squared by itself, and then added.
    """
    return -((query[..., :, None, :] - key[..., None, :, :]).sum(-1) ** 2) / (2 * bandwidth**2)


@MISTAKES.add(
    "the mean of the squares instead of their sum",
    hint="The key [5, 5] is 3 and 4 away from the query [2, 1]. Is the squared distance 25 or 12.5?",
    more="The squares are 9 and 16. Look for the step that turns them into one number: it should add them up, and no "
    "more.",
    section=SIMILARITIES,
)
def mean(query, key, bandwidth=1.0):
    """The squared differences were averaged over the components. They should be added up."""
    return attnlib.gaussian(query, key, bandwidth=bandwidth) / query.shape[-1]


@MISTAKES.add(
    "divided by the root of the width as well",
    hint="Two vectors at distance 1, with bandwidth 1: what is their score?",
    more="You have -0.35 where -0.5 is expected in the first case: the ratio is the square root of 2, and 2 is the "
    "width. The task divides by twice the squared bandwidth, and by nothing else.",
    section=SIMILARITIES,
)
def scaled(query, key, bandwidth=1.0):
    """The scores were divided by the root of the width too.

    That belongs to dot products; here the bandwidth sets the scale.
    """
    return attnlib.gaussian(query, key, bandwidth=bandwidth) / query.shape[-1] ** 0.5


@MISTAKES.add(
    "the kernel instead of its logarithm",
    hint="Scores may be negative: the softmax takes their exponential later. Which step is one too many?",
    more="In the first case the scores are 0, -0.5 and -12.5. You have 1, 0.61 and nearly 0: the exponentials of "
    "these. Taken here, there would be two exponentials in a row.",
    section=SIMILARITIES,
)
def exponentiated(query, key, bandwidth=1.0):
    """The exponential was taken already. The score is the exponent; its exponential comes in the softmax."""
    return np.exp(attnlib.gaussian(query, key, bandwidth=bandwidth))


@MISTAKES.add(
    "already a softmax",
    hint="Scores may be negative and need not sum to anything. Which step belongs to a later exercise?",
    more="The first row should be 0, -0.5, -12.5. Yours is positive and sums to 1. Find the step that makes it so, and "
    "leave it out.",
    section=SCORES,
)
def weights(query, key, bandwidth=1.0):
    """These are weights. The task asks for the scores, before the softmax."""
    return attnlib.softmax(attnlib.gaussian(query, key, bandwidth=bandwidth))


@MISTAKES.add(
    "1 / (1 + distance) or the like",
    hint="What is the score of a vector with itself: 0 or 1?",
    more="In the first case the scores are 0, -0.5 and -12.5, so none of them is positive. Compare your formula with "
    "the one in the task.",
    section=SIMILARITIES,
)
def inverse(query, key, bandwidth=1.0):
    """The score was made small for far keys by a division. The formula has the negative squared distance itself."""
    return 1 / (1 + _squares(query, key) / (2 * bandwidth**2))


@MISTAKES.add(
    "the constant of the bell curve is included",
    hint="What is the score of a vector with itself?",
    more="In the first case the first score is 0, and yours is not. The constant in front of a density makes its area "
    "1. It adds the same number to all scores, and the task leaves it out.",
    section=SIMILARITIES,
)
def log_density(query, key, bandwidth=1.0):
    """This is the logarithm of a normal density in D dimensions. The score has no constant."""
    constant = query.shape[-1] * np.log(bandwidth * np.sqrt(2 * np.pi))
    return attnlib.gaussian(query, key, bandwidth=bandwidth) - constant


@MISTAKES.add(
    "the constant of a bell curve in one dimension is included",
    hint="What is the score of a vector with itself?",
    more="In the first case the first score is 0, and yours is -0.92. The constant in front of a density makes its "
    "area 1. It adds the same number to all scores, and the task leaves it out.",
    section=SIMILARITIES,
)
def log_density_of_one(query, key, bandwidth=1.0):
    """This has the constant of a normal density. The score has the exponent alone, without a constant."""
    return attnlib.gaussian(query, key, bandwidth=bandwidth) - np.log(bandwidth * np.sqrt(2 * np.pi))


@MISTAKES.add(
    "the bandwidth is not squared",
    hint="With twice the bandwidth, by what factor does a score shrink?",
    more="A key at distance 5, with bandwidth 5, scores -1/2: seen in units of the bandwidth it is at distance 1. You "
    "have -2.5. Which of the two, distance or bandwidth, lacks a square?",
    section=SIMILARITIES,
)
def bandwidth_not_squared(query, key, bandwidth=1.0):
    """The squared distance is divided by the bandwidth itself. Both have to be squared, to be in the same unit."""
    return -_squares(query, key) / (2 * bandwidth)


@MISTAKES.add(
    "the bandwidth is ignored",
    hint="Ask with bandwidth 1 and with bandwidth 5: which of your numbers change?",
    more="A key at distance 5 scores -12.5 with bandwidth 1, and -0.5 with bandwidth 5. Look for the argument in the "
    "lines of your function: it should be in the denominator.",
    section=SIMILARITIES,
)
def bandwidth_ignored(query, key, bandwidth=1.0):
    """The scores are always those for bandwidth 1."""
    return attnlib.gaussian(query, key)


@MISTAKES.add(
    "the bandwidth multiplies instead of dividing",
    hint="With a larger bandwidth, should far keys count more or less?",
    more="A key at distance 5, with bandwidth 5, scores -1/2, and you have a number in the hundreds. Without brackets, "
    "a factor after a division multiplies: which part of your line belongs in the denominator as a whole?",
    section=SIMILARITIES,
)
def bandwidth_multiplies(query, key, bandwidth=1.0):
    """The scores grow with the squared bandwidth, where they should shrink. It belongs in the denominator."""
    return -_squares(query, key) / 2 * bandwidth**2


@MISTAKES.add(
    "the bandwidth multiplies, and is not squared",
    hint="With a larger bandwidth, should far keys count more or less?",
    more="The task has the squared bandwidth in the denominator, together with the 2. Try a key at distance 5 with "
    "bandwidth 5 by hand: the score is -1/2.",
    section=SIMILARITIES,
)
def bandwidth_multiplies_once(query, key, bandwidth=1.0):
    """The scores are multiplied by the bandwidth. They should be divided by its square."""
    return -_squares(query, key) / 2 * bandwidth


@MISTAKES.add(
    "the root of the bandwidth",
    hint="With twice the bandwidth, by what factor does a score shrink?",
    more="A key at distance 5, with bandwidth 5, scores -1/2. Look at what you do to the bandwidth before it divides: "
    "it should be squared.",
    section=SIMILARITIES,
)
def root_of_bandwidth(query, key, bandwidth=1.0):
    """The scores are divided by the root of the bandwidth. Its square belongs there."""
    return -_squares(query, key) / (2 * bandwidth**0.5)


@MISTAKES.add(
    "no 2, and the bandwidth is not squared",
    hint="Two numbers are in the denominator. Which are they, and which of them is squared?",
    more="Two vectors at distance 1, with bandwidth 1, score -1/2. A key at distance 5, with bandwidth 5, scores -1/2 "
    "as well. Try both by hand.",
    section=SIMILARITIES,
)
def no_half_not_squared(query, key, bandwidth=1.0):
    """The squared distances are divided by the bandwidth itself. Twice its square belongs there."""
    return -_squares(query, key) / bandwidth


@MISTAKES.add(
    "the negative squared distance, without a denominator",
    hint="What is in the denominator in the formula of the task?",
    more="In the first case the second key is at distance 1, so its score is -1/2. You have -1. Then take bandwidth "
    "5: your scores stay as they are.",
    section=SIMILARITIES,
)
def negative_squares(query, key, bandwidth=1.0):
    """These are negative squared distances. They still have to be divided by twice the squared bandwidth."""
    return -_squares(query, key)


@MISTAKES.add(
    "the differences are not squared",
    hint="Two differences of 3 and -3: what do they come to in your sum, and in that of the formula?",
    more="The query (2, 1) and the key (5, 5) differ by 3 and 4, so the squared distance is 25. Which number do you "
    "have in its place?",
    section=SIMILARITIES,
)
def differences_added(query, key, bandwidth=1.0):
    """The differences of the components were added up as they are, so they can cancel. Each has to be squared first."""
    return -(query.sum(-1)[..., :, None] - key.sum(-1)[..., None, :]) / (2 * bandwidth**2)


@MISTAKES.add(
    "no minus, and no 2",
    hint="Which of two keys should get the larger score, the nearer or the farther?",
    more="These are the squared distances. In the first case they are 0, 1 and 25, and the scores are 0, -0.5 and "
    "-12.5. Which two things turn the one into the other?",
    section=SIMILARITIES,
)
def plain_squares(query, key, bandwidth=1.0):
    """These are squared distances. A score is the negative half of them, in units of the squared bandwidth."""
    return _squares(query, key) / bandwidth**2


@MISTAKES.add(
    "no minus, and no square",
    hint="Which of two keys should get the larger score, the nearer or the farther?",
    more="These are the distances. In the first case they are 0, 1 and 5, and the scores are 0, -0.5 and -12.5. Which "
    "steps turn the one into the other?",
    section=SIMILARITIES,
)
def plain_distances(query, key, bandwidth=1.0):
    """These are distances. A score is the negative half of their squares, in units of the squared bandwidth."""
    return np.sqrt(_squares(query, key)) / bandwidth


@MISTAKES.add(
    "negative distances, not squared, not halved",
    hint="A key at distance 5, with bandwidth 1: is its score -5 or -12.5?",
    more="In the first case the distances are 0, 1 and 5. The scores are 0, -0.5 and -12.5: two steps are missing "
    "between the one and the other.",
    section=SIMILARITIES,
)
def negative_distances(query, key, bandwidth=1.0):
    """The score is the negative distance in units of the bandwidth. It should be half of the square of that."""
    return -np.sqrt(_squares(query, key)) / bandwidth


@MISTAKES.add(
    "the cross term has the wrong sign",
    hint="Multiply out the square of a difference. Which sign does the cross term have?",
    more="The squared distance of a vector from itself is 0. In your function it is four times its squared length: try "
    "the first key of the first case. Then look at the law of cosines in the chapter.",
    section=DOT,
)
def plus_in_the_middle(query, key, bandwidth=1.0):
    """You multiplied out the square, but added the dot product. That gives the distance to the negative of the key."""
    return attnlib.gaussian(query, -key, bandwidth=bandwidth)


@MISTAKES.add(
    "the cross term is not doubled",
    hint="Multiply out the square of a difference. How often does the cross term occur?",
    more="The squared distance of a vector from itself is 0: its squared length, plus the same again, minus what? Try "
    "the first key of the first case, and look at the law of cosines in the chapter.",
    section=DOT,
)
def single_mixed_term(query, key, bandwidth=1.0):
    """You multiplied out the square, but the dot product is subtracted once. It should occur twice."""
    return attnlib.gaussian(query, key, bandwidth=bandwidth) - attnlib.dot(query, key) / (2 * bandwidth**2)


@MISTAKES.add(
    "the squared length of the key is missing",
    hint="Multiply out the square of a difference: how many terms are there?",
    more="Set the query to zeros. The squared distance to a key is then the squared length of the key. What is it in "
    "yours?",
    section=SIMILARITIES,
)
def no_length_of_key(query, key, bandwidth=1.0):
    """You multiplied out the square and left out the squared length of the key. As a result, long keys seem near."""
    return -(_squared_norm(query)[..., :, None] - 2 * attnlib.dot(query, key)) / (2 * bandwidth**2)


@MISTAKES.add(
    "the squared length of the query is missing",
    hint="Multiply out the square of a difference: how many terms are there?",
    more="A softmax would not notice what is missing, since it is the same for all keys of a query. The scores are "
    "asked for: what is the score of a query with itself?",
    section=SIMILARITIES,
)
def no_length_of_query(query, key, bandwidth=1.0):
    """You multiplied out the square and left out the squared length of the query.

    As a result, scores can be above 0.
    """
    return -(_squared_norm(key)[..., None, :] - 2 * attnlib.dot(query, key)) / (2 * bandwidth**2)


@MISTAKES.add(
    "the cross term is missing",
    hint="Multiply out the square of a difference. There are three terms: which of them do you have?",
    more="The squared distance of a vector from itself is 0. In your function it is twice its squared length. Look at "
    "the law of cosines in the chapter.",
    section=DOT,
)
def no_mixed_term(query, key, bandwidth=1.0):
    """The squared lengths were added up, and the dot product is missing. So the direction does not count at all."""
    return attnlib.gaussian(query, key, bandwidth=bandwidth) - attnlib.dot(query, key) / bandwidth**2


@MISTAKES.add(
    "the lengths are subtracted, not the vectors",
    hint="Two vectors of the same length can be far apart. What is the distance between [3, 4] and [4, 3] in your "
    "function?",
    more="First take the difference of the two vectors, component by component, then its length. You took the two "
    "lengths first and subtracted these.",
    section=SIMILARITIES,
)
def difference_of_lengths(query, key, bandwidth=1.0):
    """The lengths of the vectors were compared. The vectors should be subtracted first, and then the length taken."""
    q, k = np.sqrt(_squared_norm(query)), np.sqrt(_squared_norm(key))
    return -((q[..., :, None] - k[..., None, :]) ** 2) / (2 * bandwidth**2)


@MISTAKES.add(
    "a dot product",
    hint="What is the score of a vector with itself: 0, or its squared length?",
    more="In the first case the scores are 0, -0.5 and -12.5. You have 5, 6 and 15, the dot products. Where does the "
    "formula subtract one vector from the other?",
    section=SIMILARITIES,
)
def dot_product(query, key, bandwidth=1.0):
    """These are dot products. The formula starts from the difference of the two vectors."""
    return attnlib.dot(query, key)


@MISTAKES.add(
    "rows and columns are swapped",
    hint="Row i of the scores belongs to query i.",
    more="In the first case there is one query and there are three keys, so the table has one row and three columns. "
    "Distances are the same both ways, but the table has a shape: where did each of the two arrays get its new axis?",
    section=SCORES,
)
def transposed(query, key, bandwidth=1.0):
    """Row i should hold what query i finds in every key. Yours holds what key i finds in every query."""
    return attnlib.gaussian(key, query, bandwidth=bandwidth)


@MISTAKES.add(
    "the squares are not added up",
    hint="One number per pair of vectors: which axis has to be summed away?",
    more="Print the shape of your result: it has one dimension too many, and that one runs over the components.",
    section=SIMILARITIES,
)
def no_sum(query, key, bandwidth=1.0):
    """The differences are squared, but never added up: there is one dimension too many."""
    return -((query[..., :, None, :] - key[..., None, :, :]) ** 2) / (2 * bandwidth**2)


@MISTAKES.add(
    "the wrong axis is added up",
    hint="Your differences have the axes query, key, component. Which of them should be gone?",
    more="Print the shape before and after the sum. For 3 queries and 5 keys of width 4 it should be (3, 5, 4) and "
    "then (3, 5).",
    section=SIMILARITIES,
)
def summed_over_keys(query, key, bandwidth=1.0):
    """The squares were added up over the keys, so one number per component is left. The components should be added."""
    return -((query[..., :, None, :] - key[..., None, :, :]) ** 2).sum(-2) / (2 * bandwidth**2)


@MISTAKES.add(
    "the squares are added up over the queries",
    hint="Which of the three axes T, S and D has to go?",
    more="For 3 queries and 5 keys of width 4, print the shape of your result: it is (5, 4), and it should be (3, "
    "5). Which axis holds the components?",
    section=SCORES,
)
def summed_over_queries(query, key, bandwidth=1.0):
    """The squares were added up over the queries. The components should be added up, for each pair by itself."""
    return -((query[..., :, None, :] - key[..., None, :, :]) ** 2).sum(-3) / (2 * bandwidth**2)


@MISTAKES.add(
    "everything is added up",
    hint="How many scores are there for 3 queries and 5 keys?",
    more="A sum without an axis adds up all pairs. Print the shape of your differences, and decide which one of the "
    "axes has to go.",
    section=SCORES,
)
def summed_over_all(query, key, bandwidth=1.0):
    """The squares of all pairs were added up to one number. Each pair of a query and a key has a sum of its own."""
    return -np.sum((query[..., :, None, :] - key[..., None, :, :]) ** 2) / (2 * bandwidth**2)


@MISTAKES.add(
    "the axis of the sum is counted from the front",
    hint="Which axis number means the last one, however many there are?",
    more="For matrices the differences have the shape (T, S, D), and axis 2 is the last. With a batch in front it is "
    "not. Which number fits both?",
    section=SCORES,
)
def sum_from_front(query, key, bandwidth=1.0):
    """For matrices axis 2 holds the components. With a batch in front it is the axis of the keys."""
    return -((query[..., :, None, :] - key[..., None, :, :]) ** 2).sum(2) / (2 * bandwidth**2)


@MISTAKES.add(
    "only row i with row i",
    hint="How many scores should 3 queries and 5 keys have?",
    more="Subtracting the arrays directly pairs row i with row i, and works only where the shapes happen to fit. "
    "Every query meets every key: which two axes does that need side by side?",
    section=SCORES,
)
def row_by_row(query, key, bandwidth=1.0):
    """The arrays were subtracted as they are. Every query meets every key, so the differences need one more axis."""
    return -((query - key) ** 2).sum(-1) / (2 * bandwidth**2)


@MISTAKES.add(
    "queries against queries",
    hint="Which of your two arguments does the formula not use?",
    more="Change a key and call your function again: nothing changes. Your table has a diagonal of zeros, since every "
    "query is at distance 0 from itself.",
    section=SCORES,
)
def query_with_query(query, key, bandwidth=1.0):
    """Each query is compared with the other queries. The keys are never looked at."""
    return attnlib.gaussian(query, query, bandwidth=bandwidth)


@MISTAKES.add(
    "keys against keys",
    hint="Which of your two arguments does the formula not use?",
    more="Change a query and call your function again: nothing changes. Your table has a diagonal of zeros, since "
    "every key is at distance 0 from itself.",
    section=SCORES,
)
def key_with_key(query, key, bandwidth=1.0):
    """Each key is compared with the other keys. The queries are never looked at."""
    return attnlib.gaussian(key, key, bandwidth=bandwidth)


@MISTAKES.add(
    "right for matrices, wrong for a batch",
    hint="Follow an array of three dimensions through every line. Which of its axes lands in the wrong place?",
    more="Print the shapes for a query of shape (2, 3, 4) and a key of shape (2, 5, 4). The batch of 2 has to "
    "stay in front in every array that you make. Count the places of axes from the end, not from the front.",
    section=SCORES,
)
def axes_from_front(query, key, bandwidth=1.0):
    """Your axes are in the right places for two matrices. With a batch in front they land elsewhere."""
    return -((query[:, None] - key[None]) ** 2).sum(-1) / (2 * bandwidth**2)


@MISTAKES.add(
    "a dimension of size 1 was lost",
    hint="One query is still a table of one row. What is the shape of your result in the first case?",
    more="The shape is (1, 3) for one query and three keys, not (3,). Look for a step that removes dimensions of size "
    "1.",
    section=SCORES,
)
def squeezed(query, key, bandwidth=1.0):
    """The numbers are right, but a table with one row or one column has lost a dimension."""
    return attnlib.gaussian(query, key, bandwidth=bandwidth).squeeze()


@MISTAKES.add(
    "changes the arrays it was given",
    hint="Some operators make a new array; others write into the one they are given. Which of yours write?",
    more="Print the query before and after a call with bandwidth 2. Then look for an operator that ends in an equals "
    "sign, such as the one for dividing.",
    section=SIMILARITIES,
)
def in_place(query, key, bandwidth=1.0):
    """The scores are right, but the caller's vectors have changed: your function wrote into them."""
    query /= bandwidth
    key /= bandwidth
    return attnlib.gaussian(query, key)


@MISTAKES.add(
    "the scores are rounded down",
    hint="What is 25 divided by 2, and what does your operator return?",
    more="Python has two operators for division. Which one rounds down to a whole number?",
    section=SIMILARITIES,
)
def floor_division(query, key, bandwidth=1.0):
    """The division rounds down to a whole number: -0.5 becomes -1."""
    return -_squares(query, key) // (2 * bandwidth**2)


@MISTAKES.add(
    "the sum of the absolute differences is squared",
    hint="The differences are 3 and 4. Is the squared distance 25 or 49?",
    more="Square each difference, then add. In which order does your function do these two?",
    section=SIMILARITIES,
)
def squared_sum(query, key, bandwidth=1.0):
    """The differences are added first and squared afterwards. Each has to be squared by itself."""
    apart = np.abs(query[..., :, None, :] - key[..., None, :, :]).sum(-1)
    return -(apart**2) / (2 * bandwidth**2)


@MISTAKES.add(
    "the dot product is not halved",
    hint="Multiply out the square: which of its terms does the 2 in the denominator divide?",
    more="Take a query that equals its key: all terms should cancel. Do they?",
    section=SIMILARITIES,
)
def dot_not_halved(query, key, bandwidth=1.0):
    """The squared lengths are divided by 2, but twice the dot product is not."""
    lengths = _squared_norm(query)[..., :, None] + _squared_norm(key)[..., None, :]
    return -(lengths / 2 - 2 * attnlib.dot(query, key)) / bandwidth**2


@MISTAKES.add(
    "the bandwidth does not divide the dot product",
    hint="Multiplied out, the square has three terms. How many of them does your bandwidth divide?",
    more="With bandwidth 1 your scores are right. Try bandwidth 5 and a query that equals its key.",
    section=SIMILARITIES,
)
def bandwidth_beside_dot(query, key, bandwidth=1.0):
    """The squared lengths are divided by the square of the bandwidth, but the dot product is not."""
    lengths = _squared_norm(query)[..., :, None] + _squared_norm(key)[..., None, :]
    return attnlib.dot(query, key) - lengths / (2 * bandwidth**2)


@MISTAKES.add(
    "the bandwidth divides twice",
    hint="With bandwidth 5, what do you divide the squared distance by in all?",
    more="A key at distance 5, with bandwidth 5, scores -1/2. If you have divided the vectors or the differences by "
    "the bandwidth already, what is left to divide by?",
    section=SIMILARITIES,
)
def bandwidth_twice(query, key, bandwidth=1.0):
    """The squared distances are divided by the fourth power of the bandwidth, not by its square."""
    return -_squares(query, key) / (2 * bandwidth**4)


@MISTAKES.add(
    "the bandwidth divides the dot product alone",
    hint="Multiplied out, the square has three terms. How many of them does your bandwidth divide?",
    more="With bandwidth 1 your scores are right. Try bandwidth 5 and a query that equals its key. If you scale the "
    "vectors, are the lengths computed before that line or after it?",
    section=SIMILARITIES,
)
def bandwidth_in_dot(query, key, bandwidth=1.0):
    """The dot product is divided by the square of the bandwidth, but the squared lengths are not."""
    lengths = _squared_norm(query)[..., :, None] + _squared_norm(key)[..., None, :]
    return attnlib.dot(query, key) / bandwidth**2 - lengths / 2


@MISTAKES.add(
    "queries and keys are moved by different vectors",
    hint="Move a query and a key by the same vector: does their distance change? And by two different vectors?",
    more="In the first case the query equals the first key, so their score is 0. What are the two after your first "
    "lines?",
    section=SIMILARITIES,
)
def centred_apart(query, key, bandwidth=1.0):
    """The mean of the queries was subtracted from the queries and that of the keys from the keys. Distances change."""
    query, key = query - query.mean(-2, keepdims=True), key - key.mean(-2, keepdims=True)
    return attnlib.gaussian(query, key, bandwidth=bandwidth)


@MISTAKES.add(
    "the lengths in the expanded square are not squared",
    hint="Multiply out the square of a difference. Does it contain the two lengths, or their squares?",
    more="The query (2, 1) equals the first key, so the three terms have to cancel: 5, 5 and twice 5. Which do you "
    "have in place of the first two?",
    section=SIMILARITIES,
)
def lengths_not_squared(query, key, bandwidth=1.0):
    """You multiplied out the square, but added the lengths of the vectors where their squares belong."""
    query, key = query / bandwidth, key / bandwidth
    lengths = np.sqrt(_squared_norm(query))[..., :, None] + np.sqrt(_squared_norm(key))[..., None, :]
    return -(lengths - 2 * attnlib.dot(query, key)) / 2


@MISTAKES.add(
    "the squared lengths of queries and keys are exchanged",
    hint="Row i of the table belongs to query i. Which squared length has to be added to the whole row?",
    more="Print the shapes of both arrays of squared lengths for 3 queries and 5 keys. Those of the queries have to be "
    "a column, (3, 1), and those of the keys a row, (1, 5).",
    section=SIMILARITIES,
)
def lengths_exchanged(query, key, bandwidth=1.0):
    """The squared lengths of the queries lie along the columns, those of the keys along the rows. Swap them."""
    lengths = _squared_norm(query)[..., None, :] + _squared_norm(key)[..., :, None]
    return -(lengths - 2 * attnlib.dot(query, key)) / (2 * bandwidth**2)


@MISTAKES.add(
    "both arrays of squared lengths are in a column",
    hint="There are T squared lengths of queries and S of keys. What shape does a table with all their sums have?",
    more="The T lengths of the queries have to be in a column, the S lengths of the keys in a row. Print the shapes "
    "of both: which of them has to be turned?",
    section=SIMILARITIES,
)
def lengths_in_two_columns(query, key, bandwidth=1.0):
    """The squared lengths of the keys are added to the rows of the queries. Each belongs above its own column."""
    lengths = _squared_norm(query)[..., :, None] + _squared_norm(key)[..., :, None]
    return -(lengths - 2 * attnlib.dot(query, key)) / (2 * bandwidth**2)


@MISTAKES.add(
    "the squared lengths are not halved",
    hint="Write the squared distance with its three terms, and divide each of them by 2. Which one loses its factor?",
    more="In the first case the second key is at distance 1, so its score is -1/2. Your product of the "
    "vectors is right. What do you still have to divide their squared lengths by?",
    section=SIMILARITIES,
)
def lengths_not_halved(query, key, bandwidth=1.0):
    """Dividing by 2 cancels the 2 before the product and halves both squared lengths. You have not halved them."""
    query, key = query / bandwidth, key / bandwidth
    return attnlib.dot(query, key) - _squared_norm(query)[..., :, None] - _squared_norm(key)[..., None, :]


EXERCISE = Exercise(
    name="gaussian",
    reference=attnlib.gaussian,
    outputs={"scores": ("T", "S")},
    rubric={NUMBERS: 3, BANDWIDTH: 2, BATCHES: 2, UNCHANGED: 1},
    section=SIMILARITIES,
    advice="Take the query [2, 1] and the key [5, 5], and write on paper: the two differences, their squares, the sum, "
    "the score. Then print the same four things in your function, with their shapes.",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    solved_by=(
        "torch.cdist",
        "torch.pdist",
        "scipy.spatial.distance_matrix",
        "scipy.spatial.distance.cdist",
        "scipy.spatial.distance.pdist",
        "sklearn.metrics.pairwise.euclidean_distances",
        "sklearn.metrics.pairwise.pairwise_distances",
        "sklearn.metrics.pairwise.pairwise_kernels",
        "sklearn.metrics.pairwise.rbf_kernel",
    ),
)
