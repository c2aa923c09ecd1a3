"""alibi_bias(H, T, S): what ALiBi adds to the scores, less and less with distance."""

from collections.abc import Iterator

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.positions.sections import ALIBI
from attnlib.checks.exercise import Exercise, Mistakes

NUMBERS, OFFSET, HEADS = "the numbers", "queries after a cache", "any number of heads"
MISTAKES = Mistakes()


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: powers of two, with more keys than queries and fewer; offsets; other numbers of heads.

    A bias follows from its sizes alone, so all but the first are drawn from a wide range.
    """
    yield Case("2 heads, 3 queries and 5 keys", NUMBERS, {"H": 2, "T": 3, "S": 5})
    few, some, many = (int(n) for n in np.sort(rng.permutation(np.arange(6, 50))[:3]))
    yield Case(f"4 heads, {some} queries and {few} keys", NUMBERS, {"H": 4, "T": some, "S": few})
    yield Case(f"16 heads, {few} queries and {many} keys", NUMBERS, {"H": 16, "T": few, "S": many})
    yield Case(f"1 head, {some} queries and {many} keys", NUMBERS, {"H": 1, "T": some, "S": many})
    last = {"H": 4, "T": 1, "S": many + 1}
    yield Case(f"one query at position {many} of {many + 1}", OFFSET, last, {"q_offset": many})
    behind = int(rng.integers(3, 6))
    given = {"H": 2, "T": 3, "S": many + 5}
    yield Case(f"3 queries from position {behind} on, and {many + 5} keys", OFFSET, given, {"q_offset": behind})
    yield Case(f"3 heads, 4 queries and {few} keys", HEADS, {"H": 3, "T": 4, "S": few})
    yield Case(f"6 heads, 3 queries and {some} keys", HEADS, {"H": 6, "T": 3, "S": some})
    yield Case(f"12 heads, 2 queries and {many} keys", HEADS, {"H": 12, "T": 2, "S": many})


def _apart(T, S, q_offset):
    """Return position of the query minus position of the key, (T, S)."""
    return np.arange(T)[:, None] + q_offset - np.arange(S)


def _by(slopes, apart):
    return slopes[:, None, None] * apart


def _bias(slopes, T, S, q_offset):
    return _by(slopes, -np.abs(_apart(T, S, q_offset)).astype(float))


def _geometric(first, ratio, H):
    return first * ratio ** np.arange(H)


def _for_two(H):
    """Return the slopes by the formula for a power of two, whatever H is."""
    return 2.0 ** (-8 * np.arange(1, H + 1) / H)


def _below(H):
    return 2 ** (H.bit_length() - 1)


@MISTAKES.add(
    "far keys get more, not less",
    hint="Should a key far away get a higher score than a near one?",
    more="All numbers of the table are 0 or negative. Where does the minus sign belong?",
    section=ALIBI,
)
def positive(H, T, S, *, q_offset=0):
    """Your bias grows with distance. It is added to the scores, so it has to fall: the sign is missing."""
    return -_bias(attnlib.alibi_slopes(H), T, S, q_offset)


@MISTAKES.add(
    "keys after the query are favoured",
    hint="What is the distance from position 1 to position 4? And from position 4 to position 1?",
    more="In the first row of the first case, which key has the largest number? It should be key 0, with a 0.",
    section=ALIBI,
)
def signed(H, T, S, *, q_offset=0):
    """Keys after the query get a positive number. Here the distance counts equally on both sides, without a sign."""
    return _by(-attnlib.alibi_slopes(H), _apart(T, S, q_offset))


@MISTAKES.add(
    "keys before the query are favoured",
    hint="What is the distance from position 1 to position 4? And from position 4 to position 1?",
    more="In the last row of the first case, which key has the largest number? It should be key 2, with a 0.",
    section=ALIBI,
)
def signed_reversed(H, T, S, *, q_offset=0):
    """Keys before the query get a positive number, which grows with distance.

    The distance should have no sign, and the bias should have a minus.
    """
    return _by(attnlib.alibi_slopes(H), _apart(T, S, q_offset))


@MISTAKES.add(
    "keys after the query cost nothing",
    hint="In the first row, query 0 looks at key 4. How far apart are they?",
    more="A causal mask would hide the keys after the query, but there is none here: they count as well.",
    section=ALIBI,
)
def one_side(H, T, S, *, q_offset=0):
    """The bias is 0 for all keys after the query. Distance counts equally on both sides."""
    return _by(-attnlib.alibi_slopes(H), np.maximum(_apart(T, S, q_offset), 0))


@MISTAKES.add(
    "keys before the query cost nothing",
    hint="In the last row, query 2 looks at key 0. How far apart are they?",
    more="A key two places before the query costs as much as one two places after it. Which of the two sides is 0 "
    "in your table?",
    section=ALIBI,
)
def other_side(H, T, S, *, q_offset=0):
    """The bias is 0 for all keys before the query. Distance counts equally on both sides."""
    return _by(-attnlib.alibi_slopes(H), np.maximum(-_apart(T, S, q_offset), 0))


@MISTAKES.add(
    "a causal mask is mixed in",
    hint="Does the formula of the task forbid any key?",
    more="A bias of minus infinity is a mask. Masks are added separately, where they are wanted.",
    section=ALIBI,
)
def causal(H, T, S, *, q_offset=0):
    """Keys after the query get minus infinity. That is the causal mask; the task asks only for the bias."""
    return np.where(_apart(T, S, q_offset) < 0, -np.inf, _bias(attnlib.alibi_slopes(H), T, S, q_offset))


@MISTAKES.add(
    "the distance is squared",
    hint="How much more does distance 4 cost than distance 2?",
    more="Read one row of your table. From key to key it should change by the same amount each time.",
    section=ALIBI,
)
def squared(H, T, S, *, q_offset=0):
    """The bias falls with the square of the distance. It should be a straight line on either side."""
    return _by(-attnlib.alibi_slopes(H), _apart(T, S, q_offset).astype(float) ** 2)


@MISTAKES.add(
    "the position of the query is left out",
    hint="Are any two rows of your table the same? Should they be?",
    more="A query has bias 0 for the key at its own position. Where is the 0 in row 1?",
    section=ALIBI,
)
def key_alone(H, T, S, *, q_offset=0):
    """Each key is lowered by its own position, for all queries alike. It should be the distance from the query."""
    return _by(-attnlib.alibi_slopes(H), np.broadcast_to(np.arange(S), (T, S)))


@MISTAKES.add(
    "a number for each key, without the query",
    hint="Are any two rows of your table the same? Should they be?",
    more="With a causal mask the softmax would not notice, because each row is only shifted. Without one, keys after "
    "the query would be favoured. A query has bias 0 for the key at its own position.",
    section=ALIBI,
)
def key_alone_rising(H, T, S, *, q_offset=0):
    """Each key is raised by its own position, for all queries alike. It should be lowered by its distance."""
    return _by(attnlib.alibi_slopes(H), np.broadcast_to(np.arange(S), (T, S)))


@MISTAKES.add(
    "the slopes halve, whatever the number of heads",
    hint="With 2 heads the formula has the exponent -8h/2. What is it for the first head?",
    more="With 8 heads the slopes are 1/2, 1/4 and so on, but with 2 they are 1/16 and 1/256. Where does the number "
    "of heads enter yours?",
    section=ALIBI,
)
def halving(H, T, S, *, q_offset=0):
    """Your slopes are 1/2, 1/4, 1/8 and so on. That is right for 8 heads only: the exponent is -8h/H."""
    return _bias(2.0 ** -np.arange(1.0, H + 1), T, S, q_offset)


@MISTAKES.add(
    "heads are counted from 0",
    hint="Which h does the first head have, and what is 2 to the power of 0?",
    more="With 2 heads the slopes are 1/16 and 1/256. Is your first slope 1?",
    section=ALIBI,
)
def heads_from_zero(H, T, S, *, q_offset=0):
    """The first head has slope 1 in your table. In the formula h begins with 1, not with 0."""
    return _bias(2.0 ** (-8 * np.arange(H) / H), T, S, q_offset)


@MISTAKES.add(
    "the 8 of the exponent is missing",
    hint="With 2 heads, what is the exponent of the last head?",
    more="For any power of two, the last slope is 2 to the power of -8. What is yours?",
    section=ALIBI,
)
def eight_missing(H, T, S, *, q_offset=0):
    """Your exponent is -h/H, so that all heads are steep. It should be -8h/H."""
    return _bias(2.0 ** (-np.arange(1, H + 1) / H), T, S, q_offset)


@MISTAKES.add(
    "the exponent is multiplied by H",
    hint="With more heads, do the slopes lie closer together or farther apart?",
    more="With 2 heads the slopes are 1/16 and 1/256. Where does H appear in your exponent, and where in the formula?",
    section=ALIBI,
)
def exponent_times_heads(H, T, S, *, q_offset=0):
    """Your exponent contains -8h without the division by H. The 8 should be shared among the heads."""
    return _bias(2.0 ** (-8.0 * np.arange(1, H + 1)), T, S, q_offset)


@MISTAKES.add(
    "the exponent itself is the slope",
    hint="What is 2 to the power of -4, and what is -4?",
    more="With 2 heads the slopes are 1/16 and 1/256. Are yours 4 and 8?",
    section=ALIBI,
)
def exponent_as_slope(H, T, S, *, q_offset=0):
    """Your slopes are 8h/H. The slope is 2 to the power of minus that."""
    return _bias(8 * np.arange(1, H + 1) / H, T, S, q_offset)


@MISTAKES.add(
    "powers of e, not of 2",
    hint="Which number is raised to a power in the formula for the slope?",
    more="With 2 heads the slopes are 1/16 and 1/256. Is your first one 0.018?",
    section=ALIBI,
)
def powers_of_e(H, T, S, *, q_offset=0):
    """Your slopes are powers of e. They should be powers of 2."""
    return _bias(attnlib.alibi_slopes(H) ** (1 / np.log(2)), T, S, q_offset)


@MISTAKES.add(
    "the slopes are in reverse order",
    hint="Which head is the steepest: the first, or the last?",
    more="With 2 heads the slopes are 1/16, then 1/256. Read them off your table: they are the steps in a row.",
    section=ALIBI,
)
def slopes_reversed(H, T, S, *, q_offset=0):
    """Your flattest head comes first. In the formula the first one is the steepest."""
    return _bias(attnlib.alibi_slopes(H)[::-1], T, S, q_offset)


@MISTAKES.add(
    "the slopes are evenly spaced",
    hint="From one head to the next, is the slope divided by a fixed number, or is a fixed number subtracted?",
    more="With 4 heads the slopes are 1/4, 1/16, 1/64 and 1/256.",
    section=ALIBI,
)
def even_slopes(H, T, S, *, q_offset=0):
    """Your slopes are 1/H, 2/H and so on. They should be a geometric sequence, powers of 2."""
    return _bias(np.arange(1, H + 1) / H, T, S, q_offset)


@MISTAKES.add(
    "one over the number of the head",
    hint="With 4 heads, is the slope of the second one half that of the first, or a quarter of it?",
    more="With 4 heads the slopes are 1/4, 1/16, 1/64 and 1/256.",
    section=ALIBI,
)
def reciprocal_slopes(H, T, S, *, q_offset=0):
    """Your slopes are 1, 1/2, 1/3 and so on. They should be powers of 2, with the exponent -8h/H."""
    return _bias(1 / np.arange(1, H + 1), T, S, q_offset)


@MISTAKES.add(
    "all heads have the same slope",
    hint="What does a flat head see that a steep one does not?",
    more="Compare the first two tables, those of head 1 and head 2. They should differ by a factor.",
    section=ALIBI,
)
def one_slope(H, T, S, *, q_offset=0):
    """Every head has the slope of the first. Each should have its own, so that some look far."""
    return _bias(np.full(H, attnlib.alibi_slopes(H)[0]), T, S, q_offset)


@MISTAKES.add(
    "the slopes are missing",
    hint="What is the distance multiplied by, and does that depend on the head?",
    more="With 2 heads one step costs 1/16 in the first and 1/256 in the second. What does it cost in yours?",
    section=ALIBI,
)
def no_slope(H, T, S, *, q_offset=0):
    """Every step costs 1, in every head. It should cost the slope of the head."""
    return _bias(np.ones(H), T, S, q_offset)


@MISTAKES.add(
    "queries and keys are exchanged",
    hint="Which of T and S counts the rows?",
    more="A row belongs to a query. How many rows does one head in the first case have, with 3 queries and 5 keys?",
    section=ALIBI,
)
def transposed(H, T, S, *, q_offset=0):
    """Each column of your table belongs to a query. It should be a row: the shape is (H, T, S)."""
    return _bias(attnlib.alibi_slopes(H), T, S, q_offset).swapaxes(-1, -2)


@MISTAKES.add(
    "the heads come last",
    hint="Which axis of the scores (heads, queries, keys) comes first?",
    more="Print the shapes of slopes and distances as you multiply them. Where should the axis of the heads be?",
    section=ALIBI,
)
def heads_last(H, T, S, *, q_offset=0):
    """The shape of your table is (T, S, H). It is added to scores (H, T, S), so heads come first."""
    return np.moveaxis(_bias(attnlib.alibi_slopes(H), T, S, q_offset), 0, -1)


@MISTAKES.add(
    "a dimension of 1 in front",
    hint="How many dimensions does the task ask for?",
    more="Print the shape. It should be (H, T, S), three numbers.",
    section=ALIBI,
)
def batch_in_front(H, T, S, *, q_offset=0):
    """The shape is (1, H, T, S). It should be (H, T, S), which fits any batch as it is."""
    return _bias(attnlib.alibi_slopes(H), T, S, q_offset)[None]


@MISTAKES.add(
    "a query's own position costs something",
    hint="How far is a position from itself?",
    more="Look for the 0 in row 1: it should be at key 1. What is there in yours?",
    section=ALIBI,
)
def one_step_more(H, T, S, *, q_offset=0):
    """Your distances are one too large. A key at the position of the query has distance 0."""
    return _by(-attnlib.alibi_slopes(H), np.abs(_apart(T, S, q_offset)) + 1.0)


@MISTAKES.add(
    "the last query is aligned with the last key",
    hint="At which position is query 0 when no offset is given?",
    more="Query i is at position i plus the offset, and key j at j. Which key has bias 0 in the first row?",
    section=ALIBI,
)
def aligned_at_the_end(H, T, S, *, q_offset=0):
    """You count the queries from the end of the keys. Unless an offset is given, query 0 is next to key 0."""
    return _bias(attnlib.alibi_slopes(H), T, S, q_offset + S - T)


@MISTAKES.add(
    "distance as a share of the length",
    hint="Does the bias for distance 1 depend on how many keys there are? Should it?",
    more="With 2 heads one step costs 1/16 in the first, whatever the length. What does it cost in yours?",
    section=ALIBI,
)
def share_of_length(H, T, S, *, q_offset=0):
    """The distances are divided by the number of keys. A step should cost the same in every sentence."""
    return _bias(attnlib.alibi_slopes(H), T, S, q_offset) / S


@MISTAKES.add(
    "the bias is turned into a factor",
    hint="Are the numbers of the table added to the scores, or multiplied by the weights?",
    more="At distance 0 the bias is 0. Is it 1 in your table?",
    section=ALIBI,
)
def exponentials(H, T, S, *, q_offset=0):
    """You took the exponential of the bias.

    It is added to the scores before the softmax, which takes exponentials itself.
    """
    return np.exp(_bias(attnlib.alibi_slopes(H), T, S, q_offset))


@MISTAKES.add(
    "the first slope is right, and then each is halved",
    hint="From one head to the next, by what factor does the slope fall?",
    more="With 4 heads the slopes are 1/4, 1/16, 1/64 and 1/256. Divide each of yours by the one before.",
    section=ALIBI,
)
def halved_from_first(H, T, S, *, q_offset=0):
    """After the first head, every slope is half the one before. The factor should be the first slope itself."""
    return _bias(_geometric(attnlib.alibi_slopes(H)[0], 0.5, H), T, S, q_offset)


@MISTAKES.add(
    "H + 1 where H is meant",
    hint="What is the slope of the last head, for any power of two?",
    more="With 2 heads the slopes are 1/16 and 1/256. What number is your exponent divided by?",
    section=ALIBI,
)
def heads_plus_one(H, T, S, *, q_offset=0):
    """The exponent is -8h/(H+1) in your table. It should be -8h/H."""
    return _bias(2.0 ** (-8 * np.arange(1, H + 1) / (H + 1)), T, S, q_offset)


@MISTAKES.add(
    "the axis of the heads is missing",
    hint="How many tables does the task ask for?",
    more="Print the shape. It should be (H, T, S): a table for each head, with a slope of its own.",
    section=ALIBI,
)
def no_heads(H, T, S, *, q_offset=0):
    """You return one table of distances. There should be one for each head, times its slope."""
    return -np.abs(_apart(T, S, q_offset)).astype(float)


@MISTAKES.add(
    "q_offset is not used",
    hint="With one query at position 5, which key has bias 0: key 0, or key 5?",
    more="The offset says how many words came before the first query. To which positions should you add it? If you add "
    "it to both, it cancels out.",
    section=ALIBI,
)
def offset_ignored(H, T, S, *, q_offset=0):
    """The first query is at position 0 in your table, whatever the offset. Words in a cache come before it."""
    return _bias(attnlib.alibi_slopes(H), T, S, 0)


@MISTAKES.add(
    "q_offset is added to the keys",
    hint="Which of the two is further on after a cache: the new query, or the first key of the cache?",
    more="With one query at position 5, key 5 should have bias 0. Which distance does your table have there?",
    section=ALIBI,
)
def offset_on_keys(H, T, S, *, q_offset=0):
    """The offset moves the keys, or is subtracted from the queries. It is the queries that are further on."""
    return _bias(attnlib.alibi_slopes(H), T, S, -q_offset)


@MISTAKES.add(
    "q_offset is added to the distance",
    hint="The query is further on. Does it get nearer to some keys?",
    more="With one query at position 5, key 5 should have bias 0. Add the offset before you take the size of the "
    "difference, not after.",
    section=ALIBI,
)
def offset_on_distance(H, T, S, *, q_offset=0):
    """The offset is added after the sign was dropped. First move the query, then take the distance."""
    return _by(-attnlib.alibi_slopes(H), np.abs(_apart(T, S, 0)) + float(q_offset))


@MISTAKES.add(
    "the first query is one too far",
    hint="With q_offset=5, is the first query at position 5 or 6?",
    more="With one query at position 5, key 5 should have bias 0. Which key has it in your table?",
    section=ALIBI,
)
def offset_plus_one(H, T, S, *, q_offset=0):
    """With an offset your queries are one position too far. The first one is exactly at the offset."""
    return _bias(attnlib.alibi_slopes(H), T, S, q_offset + (q_offset > 0))


@MISTAKES.add(
    "one formula for any number of heads",
    hint="Is 6 a power of two? What does the task say about such numbers of heads?",
    more="For 3 heads the slopes are 1/16, 1/256 and 1/4: those of 2 heads, then the first of those for 4.",
    section=ALIBI,
)
def formula_for_all(H, T, S, *, q_offset=0):
    """You use -8h/H for any H. If H is not a power of two, slopes are taken from the powers below and above it."""
    return _bias(_for_two(H), T, S, q_offset)


@MISTAKES.add(
    "the first slopes of the next power of two",
    hint="For 6 heads, where do the first four slopes come from?",
    more="For 3 heads the slopes are 1/16, 1/256 and 1/4: those of 2 heads, then the first of those for 4.",
    section=ALIBI,
)
def cut_from_above(H, T, S, *, q_offset=0):
    """You take the slopes of the next higher power of two, and cut them off. Begin with those of the next lower one."""
    power = _below(H)
    return _bias(_for_two(power if power == H else 2 * power)[:H], T, S, q_offset)


@MISTAKES.add(
    "the further heads take neighbouring slopes",
    hint="From the slopes for twice as many heads, do you take each one, or every other one?",
    more="For 6 heads, the last two slopes are numbers 1 and 3 of those for 8 heads. Which numbers are yours?",
    section=ALIBI,
)
def further_each(H, T, S, *, q_offset=0):
    """The further slopes are the first ones for twice as many heads. It should be every other one of them."""
    power = _below(H)
    return _bias(np.concatenate([_for_two(power), _for_two(2 * power)[: H - power]]), T, S, q_offset)


@MISTAKES.add(
    "the further heads repeat slopes",
    hint="The further heads take every other slope from those for twice as many heads. Which of them do you begin "
    "with, and is it new?",
    more="For 3 heads the slopes are 1/16, 1/256 and 1/4. Is your last one a slope that you had before?",
    section=ALIBI,
)
def further_from_second(H, T, S, *, q_offset=0):
    """The further slopes repeat ones that you already have.

    Of those for twice as many heads, take the 1st, the 3rd and so on.
    """
    power = _below(H)
    return _bias(np.concatenate([_for_two(power), _for_two(2 * power)[1::2][: H - power]]), T, S, q_offset)


@MISTAKES.add(
    "the slopes are sorted",
    hint="Which slopes come first for 3 heads: those of 2 heads, or the largest?",
    more="For 3 heads the slopes are 1/16, 1/256 and 1/4, in this order.",
    section=ALIBI,
)
def sorted_slopes(H, T, S, *, q_offset=0):
    """The slopes are right, but sorted. The further ones come after those of the lower power of two."""
    return _bias(np.sort(attnlib.alibi_slopes(H))[::-1], T, S, q_offset)


@MISTAKES.add(
    "the further heads come first",
    hint="For 3 heads, which slope comes first?",
    more="For 3 heads the slopes are 1/16, 1/256 and 1/4, in this order.",
    section=ALIBI,
)
def further_first(H, T, S, *, q_offset=0):
    """The slopes are right, but the further ones come first. Those of the lower power of two should."""
    return _bias(np.roll(attnlib.alibi_slopes(H), H - _below(H)), T, S, q_offset)


@MISTAKES.add(
    "powers of two are treated like other numbers",
    hint="Is 4 a power of two? Which power of two does your code take for 4 heads: 2, or 4?",
    more="With 2 heads the slopes are 1/16 and 1/256. For which numbers of heads do you need extra slopes, and for "
    "which do you not? Look at < and <=.",
    section=ALIBI,
)
def power_below(H, T, S, *, q_offset=0):
    """For powers of two, you begin with H/2 slopes and add extra ones. The formula gives all H of them."""
    power = 2 ** max((H - 1).bit_length() - 1, 0)
    return _bias(np.concatenate([_for_two(power), _for_two(2 * power)[::2]])[:H], T, S, q_offset)


@MISTAKES.add(
    "the exponent is rounded to a whole number",
    hint="For 16 heads, what is 8 divided by 16? What is it in your code?",
    more="// rounds down, so 8 // 16 is 0, and any number to the power 0 is 1. Print your slopes for 16 heads: the "
    "first should be about 0.71.",
    section=ALIBI,
)
def whole_exponent(H, T, S, *, q_offset=0):
    """With 16 heads, all your slopes are 1. The exponent -8/H is a fraction there, and you round it."""
    slopes, n = attnlib.alibi_slopes(H), _below(H)
    return _bias(np.concatenate([2.0 ** (-(8 // n) * np.arange(1, n + 1)), slopes[n:]]), T, S, q_offset)


@MISTAKES.add(
    "the distance is measured from the last query",
    hint="Are any two rows of your table the same? Should they be?",
    more="With a causal mask, the softmax would hide this, because each row is only shifted. Without the mask, every "
    "query favours the keys near the last query. A query has bias 0 for the key at its own position.",
    section=ALIBI,
)
def from_the_last_query(H, T, S, *, q_offset=0):
    """You lower each key by its distance from the last query, in every row. Each query has its own distances."""
    apart = _apart(T, S, q_offset)[-1:]
    return _by(-attnlib.alibi_slopes(H), np.broadcast_to(np.abs(apart), (T, S)))


EXERCISE = Exercise(
    name="alibi_bias",
    reference=attnlib.alibi_bias,
    outputs={"bias": ("H", "T", "S")},
    rubric={NUMBERS: 2, OFFSET: 1, HEADS: 1},
    section=ALIBI,
    advice="Take the first case. Write the two slopes on paper (1/16 and 1/256), and the distances from query 1 to the "
    "five keys: 1, 0, 1, 2, 3. Print your slopes and your distances, with their shapes. Which is the first to differ?",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    backends=("numpy",),
    solved_by=("attnlib.alibi_slopes",),
)
