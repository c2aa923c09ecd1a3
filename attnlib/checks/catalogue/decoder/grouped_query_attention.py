"""grouped_query_attention(query, key, value, past_key, past_value): the newest tokens attend to all tokens so far."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.decoder.cached_heads import grown, random_heads
from attnlib.checks.catalogue.decoder.sections import ALIGN, CACHE, GROUPS
from attnlib.checks.exercise import ATTENTION_FUNCTIONS, Exercise, Mistakes

NUMBERS, CHUNKS, BATCHES = "the numbers", "several new tokens", "batches"
LARGE, UNCHANGED = "large scores", "inputs unchanged"
MISTAKES = Mistakes()


def grouped_query_attention(query: Any, key: Any, value: Any, past_key: Any, past_value: Any) -> Any:
    """Attend to the keys and values so far, with several query heads for each key head; return those, too."""
    keys, values = _joined(past_key, key), _joined(past_value, value)
    context = attnlib.scaled_dot_product_attention(
        query, keys, values, is_causal=True, enable_gqa=True, q_offset=past_key.shape[-2]
    )
    return context, keys, values


def _joined(past: Any, new: Any) -> Any:
    if isinstance(past, np.ndarray):
        return np.concatenate([past, new], axis=-2)
    import torch

    return torch.cat([past, new], dim=-2)


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: one new token by hand, other sizes, several new tokens, batches, large scores.

    The number of query heads is never the square of the number of key heads, so that groups and rounds differ.
    """
    hand = {
        "query": np.array([[[1.0]], [[-1.0]]]),
        "key": np.log([[[4.0]]]),
        "value": np.array([[[8.0]]]),
        "past_key": np.log([[[1.0], [2.0]]]),
        "past_value": np.array([[[1.0], [15.0]]]),
    }
    yield Case("two query heads, 1 and -1, with one key head: log 1, log 2 and the new log 4", NUMBERS, hand)
    yield Case("6 query heads, 2 key heads, one new token after 4", NUMBERS, random_heads(rng, (), 6, 2, 1, 4, 5, 3))
    yield Case("6 query heads, 3 key heads, one new token after 2", NUMBERS, random_heads(rng, (), 6, 3, 1, 2, 4, 4))
    yield Case("as many key heads as query heads, 3", NUMBERS, random_heads(rng, (), 3, 3, 1, 5, 4, 2))
    yield Case("a single key head for 5 query heads", NUMBERS, random_heads(rng, (), 5, 1, 1, 3, 2, 6))
    yield Case("numbers in float32", NUMBERS, random_heads(rng, (), 8, 2, 1, 5, 3, 4, np.float32))
    yield Case("a prompt of 5 tokens and an empty cache", CHUNKS, random_heads(rng, (), 4, 2, 5, 0, 3, 6))
    yield Case("3 new tokens after 4", CHUNKS, random_heads(rng, (), 6, 2, 3, 4, 5, 2), gradients=True)
    yield Case("5 new tokens after 2", CHUNKS, random_heads(rng, (), 6, 3, 5, 2, 4, 7))
    yield Case("as many new tokens as old ones, 3", CHUNKS, random_heads(rng, (), 4, 2, 3, 3, 4, 4))
    yield Case("a single token and an empty cache", CHUNKS, random_heads(rng, (), 4, 2, 1, 0, 5, 3))
    yield Case("a batch of 3", BATCHES, random_heads(rng, (3,), 4, 2, 2, 5, 6, 7))
    yield Case("a batch of 2, in which no sizes are equal", BATCHES, random_heads(rng, (2,), 6, 3, 4, 1, 5, 8))
    large = random_heads(rng, (), 4, 2, 1, 5, 2, 3)
    large["query"] *= 3000.0
    yield Case("scores of several thousands", LARGE, large)
    kept = random_heads(rng, (2,), 4, 2, 2, 3, 4, 5)
    kept["past_key"] = np.ascontiguousarray(kept["past_key"].swapaxes(-1, -2)).swapaxes(-1, -2)
    yield Case("inputs that must stay as they are", UNCHANGED, kept, unchanged=True)


def _scores(query, keys):
    return query @ keys.swapaxes(-1, -2) / np.sqrt(query.shape[-1])


def _softmax(scores, axis=-1):
    e = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _causal(T, S, offset):
    return np.arange(S) <= np.arange(T)[:, None] + offset


def _repeated(x, H):
    return np.repeat(x, H // x.shape[-3], axis=-3)


def _attend(query, keys, values, mask=None, spread=_repeated, weigh=_softmax):
    """What is right, but for the arguments: the context of queries whose keys and values come with fewer heads."""
    (H, T), S = query.shape[-3:-1], keys.shape[-2]
    mask = _causal(T, S, S - T) if mask is None else mask
    scores = np.where(mask, _scores(query, spread(keys, H)), -np.inf)
    return weigh(scores) @ spread(values, H)


@MISTAKES.add(
    "neighbouring query heads get different key heads",
    hint="Which query heads share a key head: neighbours, or every second one?",
    more="With 6 query heads and 2 key heads, write down the key head of each query head: 0, 0, 0, 1, 1, 1. What is "
    "yours?",
    section=GROUPS,
)
def in_turn(query, key, value, past_key, past_value):
    """Query heads take the key heads in turn: 0, 1, 0, 1. Each group of neighbours should share one."""
    keys, values = grown(key, value, past_key, past_value)

    def spread(x, H):
        return np.concatenate([x] * (H // x.shape[-3]), axis=-3)

    return _attend(query, keys, values, spread=spread), keys, values


@MISTAKES.add(
    "every query head uses the first key head",
    hint="Which key heads can be changed without changing your context?",
    more="With 6 query heads and 2 key heads, three query heads read key head 1. Do any of yours?",
    section=GROUPS,
)
def first_head_for_all(query, key, value, past_key, past_value):
    """All query heads read key head 0 and value head 0. Each group has a key head and a value head of its own."""
    keys, values = grown(key, value, past_key, past_value)
    return _attend(query, keys, values, spread=lambda x, H: x[..., :1, :, :]), keys, values


@MISTAKES.add(
    "the key heads are averaged",
    hint="Is there a mean over heads in the formula?",
    more="Change one key head. Only the contexts of its group should change.",
    section=GROUPS,
)
def heads_averaged(query, key, value, past_key, past_value):
    """Every query head reads the mean of all key heads and of all value heads. Each group should read its own."""
    keys, values = grown(key, value, past_key, past_value)
    return _attend(query, keys, values, spread=lambda x, H: x.mean(axis=-3, keepdims=True)), keys, values


@MISTAKES.add(
    "the groups are assigned in reverse",
    hint="Which key head does query head 0 read?",
    more="With 6 query heads and 2 key heads, write down the key head of each query head: 0, 0, 0, 1, 1, 1. What is "
    "yours?",
    section=GROUPS,
)
def groups_reversed(query, key, value, past_key, past_value):
    """The first query heads read the last key head. Query head 0 should read key head 0."""
    keys, values = grown(key, value, past_key, past_value)
    return _attend(query, keys, values, spread=lambda x, H: _repeated(x[..., ::-1, :, :], H)), keys, values


@MISTAKES.add(
    "the cache holds a copy for every query head",
    hint="How many heads should the keys that you return have?",
    more="Fewer key heads were meant to save memory. Where in your code do they become as many as the query heads?",
    section=GROUPS,
)
def repeated_in_the_cache(query, key, value, past_key, past_value):
    """The context is right, but the keys and values that come back have been repeated for every query head.

    The cache should keep each of them once.
    """
    keys, values = grown(key, value, past_key, past_value)
    H = query.shape[-3]
    return _attend(query, keys, values), _repeated(keys, H), _repeated(values, H)


@MISTAKES.add(
    "the cache is returned, but not read",
    hint="May a new token look at the tokens that are in the cache?",
    more="Change a number in the past keys. Your context should change. Does it?",
    section=CACHE,
)
def past_not_read(query, key, value, past_key, past_value):
    """The new tokens attend to themselves only. They should look at all tokens so far, including those in the cache."""
    keys, values = grown(key, value, past_key, past_value)
    return _attend(query, key, value), keys, values


@MISTAKES.add(
    "only the new keys and values come back",
    hint="The next token attends to all tokens before it. Where will their keys come from?",
    more="After 4 tokens and one more, how many keys should come back?",
    section=CACHE,
)
def only_new(query, key, value, past_key, past_value):
    """The context is right, but only the new keys and values come back. All of them are needed for the next call."""
    keys, values = grown(key, value, past_key, past_value)
    return _attend(query, keys, values), key, value


@MISTAKES.add(
    "the cache does not grow",
    hint="After 4 tokens and one more, how many keys should come back?",
    more="Print the shapes of your arguments and of your results.",
    section=CACHE,
)
def past_returned(query, key, value, past_key, past_value):
    """The context is right, but the old cache comes back as it was. The new keys and values belong at its end."""
    keys, values = grown(key, value, past_key, past_value)
    return _attend(query, keys, values), past_key, past_value


@MISTAKES.add(
    "new tokens do not see themselves",
    hint="Does a token attend to itself?",
    more="In the example by hand, the newest key is log 4. Does its value take part in your average?",
    section=CACHE,
)
def past_alone(query, key, value, past_key, past_value):
    """The new tokens look only at the cache, and neither at themselves nor at each other."""
    keys, values = grown(key, value, past_key, past_value)
    return _attend(query, past_key, past_value, mask=True), keys, values


@MISTAKES.add(
    "the new keys are put in front",
    hint="In which order are the tokens in the text, and in which order in what you return?",
    more="In the example by hand, the returned keys are log 1, log 2 and log 4. In which order are yours?",
    section=CACHE,
)
def prepended(query, key, value, past_key, past_value):
    """The new keys and values come before the old ones. They belong at the end: the order is that of the text."""
    keys, values = grown(past_key, past_value, key, value)
    return _attend(query, keys, values, mask=_in_front(query, past_key)), keys, values


def _in_front(query, past_key):
    """Return the mask with which the numbers are right though the new keys are in front."""
    T, past = query.shape[-2], past_key.shape[-2]
    return np.concatenate([_causal(T, T, 0), np.ones((T, past), bool)], axis=-1)


@MISTAKES.add(
    "new tokens see later ones",
    hint="May the first of 3 new tokens look at the last of them?",
    more="One new token needs no mask. A prompt of 5 tokens does: change its last token, and look at the first row of "
    "the context.",
    section=ALIGN,
)
def no_mask(query, key, value, past_key, past_value):
    """All new tokens look at each other. A token may look only at itself and at the tokens before it."""
    keys, values = grown(key, value, past_key, past_value)
    return _attend(query, keys, values, mask=True), keys, values


@MISTAKES.add(
    "the mask begins at the first key",
    hint="At which position among the keys is the first new token, if 4 are in the cache?",
    more="Draw the mask for 3 new tokens after 4: the first row allows 5 keys, the last 7. How many does yours allow?",
    section=ALIGN,
)
def top_left(query, key, value, past_key, past_value):
    """The first new token sees only the first key of the cache, as if it were at the beginning of the text.

    Its position is the length of the cache.
    """
    keys, values = grown(key, value, past_key, past_value)
    mask = _causal(query.shape[-2], keys.shape[-2], 0)
    return _attend(query, keys, values, mask=mask), keys, values


@MISTAKES.add(
    "each token also sees the next one",
    hint="How many keys may the first new token see after 4 old ones?",
    more="Draw the mask for 3 new tokens after 4: the first row allows 5 keys. How many does yours allow?",
    section=ALIGN,
)
def one_too_far(query, key, value, past_key, past_value):
    """Your mask lets every token see one token too many: the one that comes after it."""
    keys, values = grown(key, value, past_key, past_value)
    mask = _causal(query.shape[-2], keys.shape[-2], past_key.shape[-2] + 1)
    return _attend(query, keys, values, mask=mask), keys, values


@MISTAKES.add(
    "the scores are not scaled",
    hint="What is a dot product divided by before the softmax?",
    more="In the example by hand, the width is 1, which hides the mistake. With width 5, are your weights too sharp?",
    section=GROUPS,
)
def no_scale(query, key, value, past_key, past_value):
    """The dot products go into the softmax as they are. They should be divided by the root of the width D."""
    keys, values = grown(key, value, past_key, past_value)
    return _attend(query * np.sqrt(query.shape[-1]), keys, values), keys, values


@MISTAKES.add(
    "scaled by the width of all heads",
    hint="How many products does one score sum up?",
    more="With 6 heads of width 5, a score sums up 5 products. What do you divide by?",
    section=GROUPS,
)
def scaled_by_all_heads(query, key, value, past_key, past_value):
    """The scores are divided by the root of the width of all heads together. Divide by that of a single head.

    Otherwise the weights are too flat.
    """
    keys, values = grown(key, value, past_key, past_value)
    return _attend(query / np.sqrt(query.shape[-3]), keys, values), keys, values


@MISTAKES.add(
    "the weights sum to 1 over the queries",
    hint="Whose weights should sum to 1: those of a query, or those of a key?",
    more="With a single new token, what are your weights?",
    section=GROUPS,
)
def over_queries(query, key, value, past_key, past_value):
    """The softmax runs along the new tokens. The weights of each query over all keys should sum to 1."""
    keys, values = grown(key, value, past_key, past_value)
    return _attend(query, keys, values, weigh=lambda s: _softmax(s, axis=-2)), keys, values


@MISTAKES.add(
    "the keys are averaged, not the values",
    hint="What is averaged with the weights?",
    more="In the example by hand, the values are 1, 15 and 8. Is your context between the smallest and the largest?",
    section=CACHE,
)
def averages_keys(query, key, value, past_key, past_value):
    """The weights are right, but they average the keys. The values are what the query receives."""
    keys, values = grown(key, value, past_key, past_value)
    return _attend(query, keys, keys), keys, values


@MISTAKES.add(
    "the softmax overflows",
    hint="What is the exponential of 1000 in floating point, and what is subtracted to avoid it?",
    more="Look at the largest score of a row. Subtract it from all scores of the row, by hand: do the weights change?",
    section=CACHE,
)
def overflow(query, key, value, past_key, past_value):
    """For scores of usual size your context is right. For large ones the exponential overflows, and it becomes nan."""
    keys, values = grown(key, value, past_key, past_value)

    def weigh(scores):
        e = np.exp(scores)
        return e / e.sum(axis=-1, keepdims=True)

    return _attend(query, keys, values, weigh=weigh), keys, values


@MISTAKES.add(
    "0 after the softmax",
    hint="What should the weights of a row sum to?",
    more="The forbidden scores are in the denominator of your softmax. Where does the mask belong?",
    section=ALIGN,
)
def zeroed_after(query, key, value, past_key, past_value):
    """The forbidden weights are set to 0 after the softmax, so the others no longer sum to 1. Mask the scores."""
    keys, values = grown(key, value, past_key, past_value)
    T, S = query.shape[-2], keys.shape[-2]
    mask = _causal(T, S, S - T)
    return _attend(query, keys, values, mask=True, weigh=lambda s: _softmax(s) * mask), keys, values


@MISTAKES.add(
    "the context alone comes back",
    hint="How many results does the task ask for?",
    more="The caller needs the grown keys and values for the next token. Compare your return with the docstring.",
    section=CACHE,
)
def context_alone(query, key, value, past_key, past_value):
    """Only the context comes back. Return all keys and all values so far as well."""
    return _attend(query, *grown(key, value, past_key, past_value))


EXERCISE = Exercise(
    name="grouped_query_attention",
    reference=grouped_query_attention,
    outputs={"context": ("H", "T", "D_v"), "keys": ("H_kv", "S", "D"), "values": ("H_kv", "S", "D_v")},
    rubric={NUMBERS: 5, CHUNKS: 3, BATCHES: 1, LARGE: 1, UNCHANGED: 1},
    section=GROUPS,
    advice="Take the numbers of the task: the keys log 1, log 2 and log 4, the queries 1 and -1. On paper, write down "
    "which keys each query may see, the exponentials of its scores, and its average. Print the same in your code.",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    solved_by=(*ATTENTION_FUNCTIONS, "attnlib.numpy.CausalLM", "attnlib.torch.CausalLM"),
)
