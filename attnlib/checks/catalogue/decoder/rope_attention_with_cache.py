"""rope_attention_with_cache(query, key, value, past_key, past_value): rotary positions that go on where the cache ends.

The notebook asks for it as the mended version of one that begins at position 0 in every call.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

import attnlib
from attnlib.checks.calling.case import Case
from attnlib.checks.catalogue.decoder.cached_heads import grown, random_heads
from attnlib.checks.catalogue.decoder.sections import ALIGN, CACHE, GROUPS, LAYOUTS, ROPE
from attnlib.checks.exercise import Exercise, Mistakes

NUMBERS, PROMPT, BATCHES, UNCHANGED = "tokens after a cache", "a prompt alone", "batches", "inputs unchanged"
MISTAKES = Mistakes()


def rope_attention_with_cache(query: Any, key: Any, value: Any, past_key: Any, past_value: Any) -> Any:
    """Rotate the new queries and keys by their positions in the text, and attend to all keys so far."""
    return _attend(query, key, value, past_key, past_value)


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: single tokens and chunks after a cache, prompts, batches."""
    twice = {
        "query": np.array([[[1.0, 0.0]]]),
        "key": np.array([[[1.0, 0.0]]]),
        "value": np.array([[[5.0]]]),
        "past_key": np.array([[[1.0, 0.0]]]),
        "past_value": np.array([[[2.0]]]),
    }
    yield Case("two equal tokens (1, 0), the first of them in the cache", NUMBERS, twice)
    yield Case(
        "one new token after 4, two query heads for a key head", NUMBERS, random_heads(rng, (), 4, 2, 1, 4, 6, 3)
    )
    yield Case("3 new tokens after 5", NUMBERS, random_heads(rng, (), 6, 2, 3, 5, 4, 2))
    yield Case("2 new tokens after 1", NUMBERS, random_heads(rng, (), 3, 3, 2, 1, 8, 5))
    yield Case("one new token after 40", NUMBERS, random_heads(rng, (), 2, 1, 1, 40, 4, 3))
    yield Case("numbers in float32", NUMBERS, random_heads(rng, (), 4, 2, 2, 3, 6, 5, np.float32))
    yield Case("a prompt of 5 tokens and an empty cache", PROMPT, random_heads(rng, (), 4, 2, 5, 0, 6, 3))
    yield Case("a single token and an empty cache", PROMPT, random_heads(rng, (), 4, 2, 1, 0, 8, 3))
    yield Case("a batch of 3", BATCHES, random_heads(rng, (3,), 4, 2, 2, 5, 6, 7))
    kept = random_heads(rng, (2,), 4, 2, 2, 3, 4, 5)
    kept["query"] = np.ascontiguousarray(kept["query"].swapaxes(-1, -2)).swapaxes(-1, -2)
    yield Case("inputs that must stay as they are", UNCHANGED, kept, unchanged=True)


def _turned(x, positions, base=10000.0, interleaved=False):
    """Return vectors rotated by the angles of their positions, (T,), given as numbers that need not be whole."""
    cos, sin = attnlib.rope_tables(np.asarray(positions, np.float64), x.shape[-1], base=base)
    return attnlib.apply_rope(x, cos.astype(x.dtype), sin.astype(x.dtype), interleaved=interleaved)


def _attend(query, key, value, past_key, past_value, of_query=None, of_key=None, **layout):
    """What is right, but for the positions (T,) of the new queries and keys, or the kind of rotation."""
    past, T = past_key.shape[-2], query.shape[-2]
    positions = np.arange(past, past + T)
    query = _turned(query, positions if of_query is None else of_query, **layout)
    key = _turned(key, positions if of_key is None else of_key, **layout)
    return _over_all(query, key, value, past_key, past_value)


def _over_all(query, key, value, past_key, past_value, q_offset=None):
    """Attend to all keys so far with queries and keys that are rotated already."""
    keys, values = grown(key, value, past_key, past_value)
    q_offset = past_key.shape[-2] if q_offset is None else q_offset
    context = attnlib.scaled_dot_product_attention(
        query, keys, values, is_causal=True, enable_gqa=True, q_offset=q_offset
    )
    return context, keys, values


@MISTAKES.add(
    "every call begins at position 0",
    hint="At which position of the text is the first token of a call, if 5 tokens are in the cache?",
    more="Print the positions by which you rotate in the second call. Which numbers should they be?",
    section=ROPE,
)
def from_zero(query, key, value, past_key, past_value):
    """The new queries and keys are rotated as if the text began with them. Their positions follow the cache."""
    new = np.arange(query.shape[-2])
    return _attend(query, key, value, past_key, past_value, new, new)


@MISTAKES.add(
    "the offset is used only for the queries",
    hint="By which angles are a query and a key at the same position rotated?",
    more="Print the positions of the new queries, and those of the new keys. They are the same tokens.",
    section=ROPE,
)
def keys_from_zero(query, key, value, past_key, past_value):
    """The new queries are rotated by their positions in the text, but the new keys by positions from 0 on."""
    return _attend(query, key, value, past_key, past_value, None, np.arange(query.shape[-2]))


@MISTAKES.add(
    "the offset is used only for the keys",
    hint="By which angles are a query and a key at the same position rotated?",
    more="Print the positions of the new queries, and those of the new keys. They are the same tokens.",
    section=ROPE,
)
def queries_from_zero(query, key, value, past_key, past_value):
    """The new keys are rotated by their positions in the text, but the new queries by positions from 0 on."""
    return _attend(query, key, value, past_key, past_value, np.arange(query.shape[-2]), None)


@MISTAKES.add(
    "the positions are one too large",
    hint="At which position is the first token after a cache of 5, if the first token of all is at position 0?",
    more="Print the positions of the first call. Is the first of them 0?",
    section=ROPE,
)
def one_too_large(query, key, value, past_key, past_value):
    """The new tokens are rotated by one position too many: the first one gets the position of the second."""
    new = np.arange(query.shape[-2]) + past_key.shape[-2] + 1
    return _attend(query, key, value, past_key, past_value, new, new)


@MISTAKES.add(
    "the positions are one too small",
    hint="At which position is the first token after a cache of 5, if the first token of all is at position 0?",
    more="Print the positions of the second call, and compare them with the number of keys in the cache.",
    section=ROPE,
)
def one_too_small(query, key, value, past_key, past_value):
    """The new tokens are rotated by one position too few: the first has the position of the last one in the cache."""
    past = past_key.shape[-2]
    new = np.arange(query.shape[-2]) + max(past - 1, 0)
    return _attend(query, key, value, past_key, past_value, new, new)


@MISTAKES.add(
    "all new tokens share one position",
    hint="How many different positions do 3 new tokens have?",
    more="A single new token hides the mistake. Print the positions for a prompt of 5.",
    section=ROPE,
)
def one_position_for_all(query, key, value, past_key, past_value):
    """All new tokens are rotated by the length of the cache. Each should have a position of its own."""
    new = np.full(query.shape[-2], past_key.shape[-2])
    return _attend(query, key, value, past_key, past_value, new, new)


@MISTAKES.add(
    "the positions are those of the end of the text",
    hint="Does the first of 3 new tokens have the position of the first or of the last of them?",
    more="Print the positions for 3 new tokens after 5. They should be 5, 6 and 7.",
    section=ROPE,
)
def positions_of_the_end(query, key, value, past_key, past_value):
    """The positions begin at the number of all tokens so far, including the new ones. Begin after the cache."""
    T = query.shape[-2]
    new = np.arange(T) + past_key.shape[-2] + T
    return _attend(query, key, value, past_key, past_value, new, new)


@MISTAKES.add(
    "the cache is rotated once more",
    hint="How many times in all should a key be rotated?",
    more="The keys in the cache were rotated when they were new. Print one of them after two calls.",
    section=ROPE,
)
def cache_rotated_again(query, key, value, past_key, past_value):
    """The keys in the cache are rotated again, and kept like that. They were rotated when they were new."""
    past = past_key.shape[-2]
    return _attend(query, key, value, _turned(past_key, np.arange(past)), past_value)


@MISTAKES.add(
    "nothing is rotated",
    hint="Which line of yours depends on where a token is in the text?",
    more="Exchange two tokens of the cache, keys with their values. Does your context change?",
    section=ROPE,
)
def not_rotated(query, key, value, past_key, past_value):
    """Queries and keys are used as they are. Both have to be rotated by the angles of their positions."""
    return _over_all(query, key, value, past_key, past_value)


@MISTAKES.add(
    "only the keys are rotated",
    hint="A dot product depends on the distance alone if both vectors are rotated. Are they?",
    more="With a single token the score should be the same as without any rotation. Is it?",
    section=ROPE,
)
def queries_not_rotated(query, key, value, past_key, past_value):
    """The queries are not rotated. A score depends on the distance alone only if query and key are both rotated."""
    past, T = past_key.shape[-2], query.shape[-2]
    return _over_all(query, _turned(key, np.arange(past, past + T)), value, past_key, past_value)


@MISTAKES.add(
    "only the queries are rotated",
    hint="A dot product depends on the distance alone if both vectors are rotated. Are they?",
    more="With a single token the score should be the same as without any rotation. Is it?",
    section=ROPE,
)
def keys_not_rotated(query, key, value, past_key, past_value):
    """The new keys go into the cache as they are. They have to be rotated first, like the queries."""
    past, T = past_key.shape[-2], query.shape[-2]
    return _over_all(_turned(query, np.arange(past, past + T)), key, value, past_key, past_value)


@MISTAKES.add(
    "the values are rotated as well",
    hint="Which of the three are rotated: queries, keys, values?",
    more="Print the values that come back. They should be those that went in.",
    section=ROPE,
)
def values_rotated(query, key, value, past_key, past_value):
    """The values are rotated like the keys. They should come back, and go into the average, as they are."""
    past, T, even = past_key.shape[-2], query.shape[-2], value.shape[-1] // 2 * 2
    turned = _turned(value[..., :even], np.arange(past, past + T)) if even else value
    return _attend(query, key, np.concatenate([turned, value[..., even:]], -1) if even else value, past_key, past_value)


@MISTAKES.add(
    "neighbouring components make a pair",
    hint="Which components make a pair here: 0 and 1, or 0 and D/2?",
    more="Both layouts are in use. The keys in the cache have been rotated in one of them, so yours has to agree.",
    section=LAYOUTS,
)
def interleaved(query, key, value, past_key, past_value):
    """Your pairs are neighbouring components. Here components k and k + D/2 make a pair, as in the given code."""
    return _attend(query, key, value, past_key, past_value, interleaved=True)


@MISTAKES.add(
    "rotated in the other direction",
    hint="Which sign does the angle of a position have?",
    more="The keys in the cache are rotated forwards. Rotate (1, 0) by position 1: is the second number positive?",
    section=ROPE,
)
def backwards(query, key, value, past_key, past_value):
    """The new queries and keys are rotated backwards, but the keys in the cache forwards."""
    past, T = past_key.shape[-2], query.shape[-2]
    new = -np.arange(past, past + T)
    return _attend(query, key, value, past_key, past_value, new, new)


@MISTAKES.add(
    "another base for the angles",
    hint="From which base do your angles come?",
    more="The given code leaves the base at 10000, and the keys in the cache have been rotated like that.",
    section=ROPE,
)
def base_of_500000(query, key, value, past_key, past_value):
    """Your angles come from the base 500000, as in Llama 3. The keys in the cache have been rotated with 10000."""
    return _attend(query, key, value, past_key, past_value, base=500000.0)


@MISTAKES.add(
    "the mask ignores the offset",
    hint="Which keys may the first new token see, if 5 tokens are in the cache?",
    more="Draw the mask for 3 new tokens after 5: the first row allows 6 keys. How many does yours allow?",
    section=ALIGN,
)
def mask_from_zero(query, key, value, past_key, past_value):
    """The rotation is right, but the causal mask begins at the first key in the cache. It needs the offset, too."""
    past, T = past_key.shape[-2], query.shape[-2]
    new = np.arange(past, past + T)
    return _over_all(_turned(query, new), _turned(key, new), value, past_key, past_value, q_offset=0)


@MISTAKES.add(
    "the keys come back unrotated",
    hint="Which keys does the next call find in its cache: rotated ones, or those of the projection?",
    more="The context is right. Print the new part of the keys that you return beside the keys that you used.",
    section=CACHE,
)
def unrotated_keys_returned(query, key, value, past_key, past_value):
    """The context is right, but the keys go into the cache before their rotation."""
    context, _, values = _attend(query, key, value, past_key, past_value)
    return context, np.concatenate([past_key, key], axis=-2), values


@MISTAKES.add(
    "neighbouring query heads get different key heads",
    hint="Which query heads share a key head: neighbours, or every second one?",
    more="With 4 query heads and 2 key heads, write down the key head of each query head: 0, 0, 1, 1. What is yours?",
    section=GROUPS,
)
def in_turn(query, key, value, past_key, past_value):
    """Query heads take the key heads in turn: 0, 1, 0, 1. Each group of neighbours should share one."""
    groups, H = key.shape[-3], query.shape[-3]
    order = np.arange(H).reshape(-1, groups).T.ravel()  # the query heads, those of key head 0 first
    context, keys, values = _attend(query[..., order, :, :], key, value, past_key, past_value)
    return context[..., np.argsort(order), :, :], keys, values


EXERCISE = Exercise(
    name="rope_attention_with_cache",
    reference=rope_attention_with_cache,
    outputs={"context": ("H", "T", "D_v"), "keys": ("H_kv", "S", "D"), "values": ("H_kv", "S", "D_v")},
    rubric={NUMBERS: 5, PROMPT: 1, BATCHES: 1, UNCHANGED: 1},
    section=ROPE,
    advice="Let three tokens attend in one call, and then the same three one by one. Print the rotated keys of both: "
    "where do they begin to differ?",
    inputs=inputs,
    mistakes=tuple(MISTAKES),
    backends=("numpy",),
    solved_by=("attnlib.numpy.MultiHeadAttention", "attnlib.numpy.CausalLM", "attnlib.torch.CausalLM"),
)
