"""KVCache: append(key, value) -> (keys, values) of everything so far, and length."""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from attnlib.cache import KVCache
from attnlib.checks.calling.case import Case, Implementation
from attnlib.checks.calling.kv_cache import call_kv_cache
from attnlib.checks.catalogue.masking.sections import ALIGN, CACHE
from attnlib.checks.exercise import Exercise, Mistakes

NUMBERS, RANKS, TWO, UNCHANGED = "the numbers", "fewer dimensions", "a second cache", "inputs unchanged"


def _class_of(append: Implementation) -> Implementation:
    """Make a class of a function (cache, key, value): a cache that keeps what the function says."""

    class Cache:
        shared: ClassVar[list[Any]] = []

        def __init__(self) -> None:
            self.length = 0
            self.keys = None
            self.values = None
            self.chunks: list[Any] = []

        def append(self, key: Any, value: Any) -> Any:
            return append(self, key, value)

    return Cache


MISTAKES = Mistakes(wrap=_class_of)


def inputs(rng: np.random.Generator) -> Iterator[Case]:
    """Yield the cases: numbers to be read, a prompt and single tokens, then fewer dimensions, and a second cache."""
    first = {"key": np.array([[[[1.0, 2.0], [3.0, 4.0]]]]), "value": np.array([[[[10.0], [20.0]]]])}
    second = {"key": np.array([[[[5.0, 6.0]]]]), "value": np.array([[[[30.0]]]])}
    yield Case("two tokens, then one, with batch and heads of size 1", NUMBERS, {"prompt": first, "token": second})
    yield Case("a prompt of 4 tokens, then three times one token", NUMBERS, _chunks(rng, (2, 3), (4, 1, 1, 1), 5, 6))
    yield Case("single tokens from the start", NUMBERS, _chunks(rng, (2, 3), (1, 1, 1, 1, 1), 6, 7))
    yield Case("a token first, then chunks of 4 and of 2", NUMBERS, _chunks(rng, (3, 2), (1, 4, 2), 6, 5))
    yield Case("72 tokens in all", NUMBERS, _chunks(rng, (1, 2), (30, 1, 1, 40), 3, 4))
    yield Case("repeated keys and values", NUMBERS, _repeated(_chunks(rng, (2, 3), (4, 1, 1, 2), 5, 6)))
    yield Case("the prompt alone", NUMBERS, _chunks(rng, (2, 3), (5,), 4, 6))
    yield Case("tokens in float32", NUMBERS, _chunks(rng, (3, 2), (4, 1, 1), 5, 7, np.float32))
    yield Case("no heads, (B, T, D)", RANKS, _chunks(rng, (2,), (4, 1, 3), 5, 6))
    yield Case("a single sequence, (T, D)", RANKS, _chunks(rng, (), (3, 1, 1, 2), 4, 5))
    yield Case("another cache that is filled in between", TWO, _chunks(rng, (2, 3), (4, 1, 1), 5, 6, other=2))
    kept = _chunks(rng, (3, 2), (4, 1, 2), 6, 5)
    turned = {name: {part: x.swapaxes(1, 2).copy().swapaxes(1, 2) for part, x in c.items()} for name, c in kept.items()}
    yield Case("keys and values that must stay as they are", UNCHANGED, turned, unchanged=True)


def _chunks(rng, leading, lengths, d, d_v, dtype=np.float64, other=0) -> dict[str, Any]:
    """Return keys (..., T, D) and values (..., T, D_v) for chunks of lengths T; ``other`` is for another cache."""
    names = {f"chunk {n}": t for n, t in enumerate(lengths, start=1)} | ({"other": other} if other else {})
    return {
        name: {part: rng.normal(size=(*leading, t, w)).astype(dtype) for part, w in (("key", d), ("value", d_v))}
        for name, t in names.items()
    }


def _repeated(chunks: dict[str, Any]) -> dict[str, Any]:
    """Return the chunks, each beginning with the key and the value with which the first one begins."""
    first = next(iter(chunks.values()))
    for chunk in chunks.values():
        for part, x in chunk.items():
            x[..., 0, :] = first[part][..., 0, :]
    return chunks


def _joined(old, new, axis=-2):
    return new if old is None else np.concatenate([old, new], axis=axis)


def _kept(cache, key, value, axis=-2):
    """Do what is right."""
    cache.keys, cache.values = _joined(cache.keys, key, axis), _joined(cache.values, value, axis)
    cache.length += key.shape[-2]
    return cache.keys, cache.values


@MISTAKES.add(
    "only the new keys and values are returned",
    hint="The newest query attends to all words so far. Where do the keys of the earlier ones come from?",
    more="Append two chunks and print the shapes of what comes back. The second time there should be more than you "
    "put in.",
    section=CACHE,
)
def only_new(cache, key, value):
    """Only what was just put in comes back. All keys and values so far are needed, the new ones at the end."""
    cache.length += key.shape[-2]
    return key, value


@MISTAKES.add(
    "the new chunk replaces what was kept",
    hint="After two chunks, how many positions does your cache hold? And how many should it hold?",
    more="Print what is kept before and after the second call. Something is lost there.",
    section=CACHE,
)
def overwritten(cache, key, value):
    """Each call forgets what the calls before it kept, and the length starts again."""
    cache.length = key.shape[-2]
    return key, value


@MISTAKES.add(
    "what comes back lacks the new chunk",
    hint="A word attends to itself as well. Are its own key and value among those that you return?",
    more="Look at the order of your lines: which comes first, adding the new chunk or taking what you return?",
    section=CACHE,
)
def returns_past(cache, key, value):
    """You return what was kept before this call. The new keys and values belong to it: every word sees itself."""
    keys = key[..., :0, :] if cache.keys is None else cache.keys
    values = value[..., :0, :] if cache.values is None else cache.values
    _kept(cache, key, value)
    return keys, values


@MISTAKES.add(
    "nothing comes back",
    hint="What does the method return to its caller? Look for the word return on every path through it.",
    more="There may be two paths: one for the first chunk, one for the others. Both have to give back keys and values.",
    section=CACHE,
)
def returns_nothing(cache, key, value):
    """The new chunk is kept, but nothing is given back. The task asks for all keys and all values so far."""
    _kept(cache, key, value)


@MISTAKES.add(
    "nothing comes back the first time",
    hint="What does the method return when it is called for the first time? Is there a return on that path?",
    more="There seem to be two paths through your method. Follow the one for an empty cache to its end.",
    section=CACHE,
)
def returns_nothing_at_first(cache, key, value):
    """The first chunk is kept, but that call gives nothing back. The prompt's queries need its keys and values, too."""
    first = cache.keys is None
    result = _kept(cache, key, value)
    return None if first else result


@MISTAKES.add(
    "the new chunk is put in front",
    hint="In which order are the words in the text, and in which order in your cache?",
    more="Append the keys of two words one by one, and print them. The earlier word should come first.",
    section=CACHE,
)
def prepended(cache, key, value):
    """The newest keys come first. They belong at the end: position j of the cache is word j of the text."""
    new = key.shape[-2]
    cache.keys = key if cache.keys is None else np.concatenate([key, cache.keys], axis=-2)
    cache.values = value if cache.values is None else np.concatenate([value, cache.values], axis=-2)
    cache.length += new
    return cache.keys, cache.values


@MISTAKES.add(
    "joined along the width",
    hint="Which dimension grows when a word is added: positions, or the numbers of one key?",
    more="Print the shapes before and after the second chunk. For (B, H, T, D) it is T that grows.",
    section=CACHE,
)
def along_width(cache, key, value):
    """The new keys are put beside the old ones, along the width. A new word adds a position, not width."""
    return _kept(cache, key, value, axis=-1)


@MISTAKES.add(
    "joined along the width, so that the length does not change",
    hint="Which dimension grows when a word is added: positions, or the numbers of one key?",
    more="Print the shapes before and after the second chunk. For (B, H, T, D) it is T that grows.",
    section=CACHE,
)
def along_width_as_read(cache, key, value):
    """The new keys are put beside the old ones, along the width, so the number of positions stays the same."""
    result = _kept(cache, key, value, axis=-1)
    cache.length = cache.keys.shape[-2]
    return result


@MISTAKES.add(
    "joined along the first dimension, so that the length does not change",
    hint="Which dimension grows when a word is added: positions, or sequences of the batch?",
    more="Print the shapes before and after the second chunk. For (B, H, T, D) it is T that grows.",
    section=CACHE,
)
def along_batch_as_read(cache, key, value):
    """The new keys became further sequences of the batch, so the number of positions stays the same."""
    result = _kept(cache, key, value, axis=0)
    cache.length = cache.keys.shape[-2]
    return result


@MISTAKES.add(
    "joined along axis 1, so that the length does not change",
    hint="Which axis number means the positions, whether or not there are heads?",
    more="For (B, H, T, D) axis 1 is the heads. Count from the end instead: where are the positions then?",
    section=CACHE,
)
def along_axis_one_as_read(cache, key, value):
    """With batch and heads, axis 1 is the heads: they grow, and the number of positions stays the same."""
    result = _kept(cache, key, value, axis=1)
    cache.length = cache.keys.shape[-2]
    return result


@MISTAKES.add(
    "joined along the heads, so that the length does not change",
    hint="Which dimension grows when a word is added: positions, or heads?",
    more="Print the shapes before and after the second chunk. For (B, H, T, D) it is T that grows.",
    section=CACHE,
)
def along_heads_as_read(cache, key, value):
    """The new keys became further heads, so the number of positions stays the same."""
    result = _kept(cache, key, value, axis=-3)
    cache.length = cache.keys.shape[-2]
    return result


@MISTAKES.add(
    "joined along the heads",
    hint="Which dimension grows when a word is added: positions, or heads?",
    more="Print the shapes before and after the second chunk. For (B, H, T, D) it is T that grows.",
    section=CACHE,
)
def along_heads(cache, key, value):
    """The new keys became further heads. A new word adds a position in every head."""
    return _kept(cache, key, value, axis=-3)


@MISTAKES.add(
    "joined along axis 1",
    hint="Which axis number means the positions, whether or not there are heads?",
    more="For (B, H, T, D) axis 1 is the heads, and for (B, T, D) the positions. Count from the end instead: where are "
    "the positions then?",
    section=CACHE,
)
def along_axis_one(cache, key, value):
    """Axis 1 is the position only where there are no heads. Positions are always the dimension before the last."""
    return _kept(cache, key, value, axis=1)


@MISTAKES.add(
    "joined along the first dimension",
    hint="Which dimension grows when a word is added: positions, or sequences of the batch?",
    more="Print the shapes before and after the second chunk. For (B, H, T, D) it is T that grows.",
    section=CACHE,
)
def along_batch(cache, key, value):
    """The new keys became further sequences of the batch. A new word adds a position in every sequence."""
    return _kept(cache, key, value, axis=0)


@MISTAKES.add(
    "the position is counted from the front",
    hint="Which axis number means the positions, however many dimensions are in front?",
    more="For (B, H, T, D) axis 2 is the positions. What is axis 2 for (B, T, D)? Count from the end instead.",
    section=CACHE,
)
def along_axis_two(cache, key, value):
    """With batch and heads axis 2 is the position. With fewer dimensions it is a different one, or does not exist."""
    return _kept(cache, key, value, axis=2)


@MISTAKES.add(
    "chunks are stacked, not joined",
    hint="Should the result have one dimension more than a chunk?",
    more="Print the number of dimensions of what comes back. Attention wants keys of shape (..., S, D), where S is the "
    "length of the text.",
    section=CACHE,
)
def stacked(cache, key, value):
    """The chunks are laid on top of each other, in a new dimension. They should follow each other in the old one."""
    cache.chunks.append((key, value))
    cache.length += key.shape[-2]
    return np.stack([k for k, _ in cache.chunks], axis=-2), np.stack([v for _, v in cache.chunks], axis=-2)


@MISTAKES.add(
    "the length counts calls",
    hint="After a prompt of 4 tokens, how many positions does the cache hold?",
    more="The next query is at position `length`. After a prompt of 4 tokens that is position 4.",
    section=ALIGN,
)
def counts_calls(cache, key, value):
    """The length grows by 1 with every call. A chunk may hold many positions, and each of them counts."""
    result = _kept(cache, key, value)
    cache.length += 1 - key.shape[-2]
    return result


@MISTAKES.add(
    "the length counts sequences",
    hint="Which size of a chunk says how many positions it has?",
    more="For (B, H, T, D) the length grows by T. Print the shape and the length after the first chunk.",
    section=ALIGN,
)
def counts_batch(cache, key, value):
    """The length grows by the first size of the chunk, the batch. It should grow by the number of positions."""
    result = _kept(cache, key, value)
    cache.length += key.shape[0] - key.shape[-2]
    return result


@MISTAKES.add(
    "the length is the number of sequences",
    hint="What does the len of an array of four dimensions count?",
    more="For (B, H, T, D) the length is T. Print the shape of the kept keys beside the length.",
    section=ALIGN,
)
def batch_as_length(cache, key, value):
    """The length is the first size of what is kept, the batch. It should be the number of positions."""
    result = _kept(cache, key, value)
    cache.length = len(cache.keys)
    return result


@MISTAKES.add(
    "the length counts heads",
    hint="Which size of a chunk says how many positions it has?",
    more="For (B, H, T, D) the length grows by T, the third size, or counted from the end the one before the last.",
    section=ALIGN,
)
def counts_heads(cache, key, value):
    """The length grows by the second size of the chunk, the heads. It should grow by the number of positions."""
    result = _kept(cache, key, value)
    cache.length += key.shape[1] - key.shape[-2]
    return result


@MISTAKES.add(
    "the length is the number of heads",
    hint="Which size of the kept keys says how many positions there are?",
    more="Print the shape of the kept keys beside the length, for (B, H, T, D). Counted from the end, T is the second.",
    section=ALIGN,
)
def heads_as_length(cache, key, value):
    """The length is the second size of what is kept: with batch and heads, the heads. It should count positions."""
    result = _kept(cache, key, value)
    cache.length = cache.keys.shape[1]
    return result


@MISTAKES.add(
    "the length is the width",
    hint="Which size of a chunk says how many positions it has?",
    more="For (B, H, T, D) the length grows by T. Print the shape and the length after the first chunk.",
    section=ALIGN,
)
def counts_width(cache, key, value):
    """The length grows by the width of a key. It should grow by the number of positions."""
    result = _kept(cache, key, value)
    cache.length += key.shape[-1] - key.shape[-2]
    return result


@MISTAKES.add(
    "the length is the width of a key",
    hint="Which size of the kept keys says how many positions there are?",
    more="Print the shape of the kept keys beside the length. Counted from the end, the positions are the second size.",
    section=ALIGN,
)
def width_as_length(cache, key, value):
    """The length is the last size of what is kept, the width, and never changes. It should count positions."""
    result = _kept(cache, key, value)
    cache.length = cache.keys.shape[-1]
    return result


@MISTAKES.add(
    "the length is that of the last chunk",
    hint="The length is how many positions are kept. Does yours ever get smaller?",
    more="Print the length after a prompt of 4 tokens and after one more. It should be 4, then 5.",
    section=ALIGN,
)
def length_of_chunk(cache, key, value):
    """The length says how long the newest chunk is. It should say how many positions are kept in all."""
    result = _kept(cache, key, value)
    cache.length = key.shape[-2]
    return result


@MISTAKES.add(
    "the length lags behind",
    hint="When is the length brought up to date, before or after the new chunk is added?",
    more="Print the length after a prompt of 4 tokens. The chunk is in the cache by then.",
    section=ALIGN,
)
def length_before(cache, key, value):
    """The length is the one from before the call: the new chunk is kept, but not counted yet."""
    before = 0 if cache.keys is None else cache.keys.shape[-2]
    result = _kept(cache, key, value)
    cache.length = before
    return result


@MISTAKES.add(
    "the length never changes",
    hint="What is the length after the first chunk? Which of your lines should change it?",
    more="Print the length before and after a call. The next query is at position `length` of the keys.",
    section=ALIGN,
)
def length_fixed(cache, key, value):
    """The length stays at 0, whatever is appended."""
    result = _kept(cache, key, value)
    cache.length = 0
    return result


@MISTAKES.add(
    "the first chunk is not counted",
    hint="What is the length after the prompt alone? Which line should have changed it?",
    more="There seem to be two paths through your method: one for an empty cache and one for any other. Which of them "
    "updates the length?",
    section=ALIGN,
)
def first_not_counted(cache, key, value):
    """The length leaves out the first chunk. The prompt's positions are kept, and have to be counted, too."""
    first = cache.keys is None
    result = _kept(cache, key, value)
    cache.length -= key.shape[-2] if first else 0
    return result


@MISTAKES.add(
    "keys and values have changed places",
    hint="Which comes first in the task, keys or values? Follow both through the method.",
    more="Compare the widths of what comes back with those of what went in. The keys should be returned first.",
    section=CACHE,
)
def swapped(cache, key, value):
    """The values come back first. The task asks for the keys first, then the values."""
    return _kept(cache, key, value)[::-1]


@MISTAKES.add(
    "the keys come back twice",
    hint="Where are the values kept?",
    more="Compare the widths of the two arrays that come back. The second should be as wide as a value.",
    section=CACHE,
)
def keys_twice(cache, key, value):
    """Both arrays that come back hold the keys. The second one should hold the values."""
    keys, _ = _kept(cache, key, value)
    return keys, keys


@MISTAKES.add(
    "the values come back twice",
    hint="Where are the keys kept?",
    more="Compare the widths of the two arrays that come back. The first should be as wide as a key.",
    section=CACHE,
)
def values_twice(cache, key, value):
    """Both arrays that come back hold the values. The first one should hold the keys."""
    _, values = _kept(cache, key, value)
    return values, values


@MISTAKES.add(
    "only the keys are kept",
    hint="The weights of the newest query belong to all words so far. What are they multiplied by?",
    more="Print the shapes of both arrays after the second chunk. They should be equally long.",
    section=CACHE,
)
def values_forgotten(cache, key, value):
    """The keys grow with the text, but the values are those of the newest chunk alone. Each key needs its value."""
    keys, _ = _kept(cache, key, value)
    return keys, value


@MISTAKES.add(
    "only the values are kept",
    hint="The newest query has a score with every word so far. What does it compute that score with?",
    more="Print the shapes of both arrays after the second chunk. They should be equally long.",
    section=CACHE,
)
def keys_forgotten(cache, key, value):
    """The values grow with the text, but the keys are those of the newest chunk alone. Each value needs its key."""
    _, values = _kept(cache, key, value)
    return key, values


@MISTAKES.add(
    "the newest chunk comes twice",
    hint="Count the positions that come back after two chunks. How many were put in?",
    more="Look for two lines that both add the new chunk: one to what is kept, one to what is returned.",
    section=CACHE,
)
def newest_twice(cache, key, value):
    """The new chunk is kept, and then added once more to what is returned."""
    keys, values = _kept(cache, key, value)
    return np.concatenate([keys, key], axis=-2), np.concatenate([values, value], axis=-2)


@MISTAKES.add(
    "the first chunk is kept twice",
    hint="Count the positions that come back after the very first chunk. How many were put in?",
    more="There seem to be two paths through your method: one for an empty cache and one for any other. Does the first "
    "of them run into the second?",
    section=CACHE,
)
def first_twice(cache, key, value):
    """The first chunk starts the cache, and is then added to it once more."""
    if cache.keys is None:
        cache.keys, cache.values = key, value
    cache.keys, cache.values = _joined(cache.keys, key), _joined(cache.values, value)
    cache.length = cache.keys.shape[-2]
    return cache.keys, cache.values


@MISTAKES.add(
    "every chunk is kept twice",
    hint="Count the positions that come back after one chunk. How many were put in?",
    more="Look for two lines that both add the new chunk.",
    section=CACHE,
)
def all_twice(cache, key, value):
    """Each chunk is added twice, so each word counts twice."""
    cache.keys, cache.values = _joined(_joined(cache.keys, key), key), _joined(_joined(cache.values, value), value)
    cache.length = cache.keys.shape[-2]
    return cache.keys, cache.values


@MISTAKES.add(
    "only the last token of a chunk is kept",
    hint="How many positions does a prompt of 4 tokens add?",
    more="Append a prompt of 4 tokens and print the shapes. Then look for an index that takes one position out.",
    section=CACHE,
)
def last_token(cache, key, value):
    """Only the last token of a chunk is kept. A prompt comes as one chunk, and all of it counts."""
    return _kept(cache, key[..., -1:, :], value[..., -1:, :])


@MISTAKES.add(
    "only the first token of a chunk is kept",
    hint="How many positions does a prompt of 4 tokens add?",
    more="Append a prompt of 4 tokens and print the shapes. Then look for an index that takes one position out.",
    section=CACHE,
)
def first_token(cache, key, value):
    """Only the first token of a chunk is kept. A prompt comes as one chunk, and all of it counts."""
    return _kept(cache, key[..., :1, :], value[..., :1, :])


@MISTAKES.add(
    "a longer chunk starts the cache again",
    hint="What happens in your method if a chunk of several tokens comes after a single one?",
    more="Append one token, then four. There should be five positions.",
    section=CACHE,
)
def long_chunk_resets(cache, key, value):
    """A chunk of more than one token replaces what was kept. A chunk of any length should be added at the end."""
    if key.shape[-2] > 1:
        cache.keys = cache.values = None
        cache.length = 0
    return _kept(cache, key, value)


@MISTAKES.add(
    "the prompt is forgotten",
    hint="After a prompt of 4 tokens and two more, how many positions are there?",
    more="Print the shape that comes back after each call, beginning with the first. Where do the first positions go?",
    section=CACHE,
)
def prompt_forgotten(cache, key, value):
    """What was appended first is not kept: from the second call on it is gone."""
    if cache.length == 0:
        cache.length += key.shape[-2]
        return key, value
    return _kept(cache, key, value)


@MISTAKES.add(
    "only the first chunk is kept",
    hint="After two chunks, how many positions does your cache hold? And how many should it hold?",
    more="Print the shape of what comes back after each call. Which line of yours adds a later chunk?",
    section=CACHE,
)
def first_alone(cache, key, value):
    """The first chunk is kept and comes back each time. The later ones are lost: they belong at its end."""
    if cache.keys is None:
        _kept(cache, key, value)
    return cache.keys, cache.values


@MISTAKES.add(
    "later chunks are not kept",
    hint="After three chunks, how many positions does your cache hold? And how many should it hold?",
    more="Append three chunks. The second comes back, but is it still there with the third?",
    section=CACHE,
)
def later_not_kept(cache, key, value):
    """Each later chunk is joined to the first for that one call, and then forgotten: it is joined, but not kept."""
    if cache.keys is None:
        return _kept(cache, key, value)
    keys, values = _joined(cache.keys, key), _joined(cache.values, value)
    cache.length = keys.shape[-2]
    return keys, values


@MISTAKES.add(
    "two caches share their memory",
    hint="A model has one cache for each layer. Is there anything that belongs to the class and not to one cache?",
    more="Make two caches, append to one, and look at what the other holds. What is made once, for all caches, and "
    "what is made anew for each?",
    section=CACHE,
)
def shared(cache, key, value):
    """What one cache keeps turns up in the other. Each cache needs its own memory, made when the cache is made."""
    cache.shared.append((key, value))
    cache.length += key.shape[-2]
    return tuple(np.concatenate([pair[n] for pair in cache.shared], axis=-2) for n in (0, 1))


@MISTAKES.add(
    "two caches share their memory and their length",
    hint="A model has one cache for each layer. Is there anything that belongs to the class and not to one cache?",
    more="Make two caches, append to one, and print the length of the other. What is made once, for all caches, and "
    "what is made anew for each?",
    section=CACHE,
)
def shared_and_counted(cache, key, value):
    """What one cache keeps turns up in the other, and is counted there. Each cache needs its own memory."""
    cache.shared.append((key, value))
    cache.length = sum(k.shape[-2] for k, _ in cache.shared)
    return tuple(np.concatenate([pair[n] for pair in cache.shared], axis=-2) for n in (0, 1))


@MISTAKES.add(
    "nothing is kept at all",
    hint="Which lines of the method change what the cache holds?",
    more="Print what the cache holds before and after a call. After it, the new chunk should be there.",
    section=CACHE,
)
def nothing_kept(cache, key, value):
    """The new chunk comes back, but the cache is as empty as before, and its length is still 0."""
    return key, value


@MISTAKES.add(
    "lists of chunks come back",
    hint="What does attention need: a list of chunks, or one array with all positions?",
    more="Keeping the chunks in a list is fine. They have to be joined into one array, along the positions, before you "
    "return them.",
    section=CACHE,
)
def lists(cache, key, value):
    """The chunks come back one by one, in a list. They have to be joined: one array of keys and one of values."""
    cache.chunks.append((key, value))
    cache.length += key.shape[-2]
    return [k for k, _ in cache.chunks], [v for _, v in cache.chunks]


@MISTAKES.add(
    "later chunks count as one",
    hint="By how much does the length grow if a chunk of 4 tokens comes after the first?",
    more="Append one token, then four, and print the length after each call.",
    section=ALIGN,
)
def later_counted_once(cache, key, value):
    """The first chunk is counted in full, every later one as a single position. A later chunk may be longer, too."""
    first = cache.keys is None
    result = _kept(cache, key, value)
    cache.length += 0 if first else 1 - key.shape[-2]
    return result


@MISTAKES.add(
    "the first chunk is not counted, later ones count as one",
    hint="What is the length after a prompt of 4 tokens?",
    more="Append a prompt of 4 tokens, then one more, and print the length after each call.",
    section=ALIGN,
)
def calls_after_first(cache, key, value):
    """The length counts the calls after the first. It should count all positions, those of the prompt included."""
    first = cache.keys is None
    result = _kept(cache, key, value)
    cache.length += -key.shape[-2] if first else 1 - key.shape[-2]
    return result


@MISTAKES.add(
    "zeros are at the beginning",
    hint="Count the positions that come back after the very first chunk. What is the first of them?",
    more="Print the keys after the first chunk of the smallest case. A key of zeros has a score of 0, which still gets "
    "a weight.",
    section=CACHE,
)
def starts_with_zeros(cache, key, value):
    """The cache starts with as many positions of zeros as the first chunk has, and they stay.

    An empty cache holds nothing at all.
    """
    cache.keys = np.zeros_like(key) if cache.keys is None else cache.keys
    cache.values = np.zeros_like(value) if cache.values is None else cache.values
    return _kept(cache, key, value)


@MISTAKES.add(
    "the length grows by the number of all keys each time",
    hint="By how much does the length grow when one token comes?",
    more="After a prompt of 4 tokens and one more token, the length should be 5. Which array do you measure?",
    section=CACHE,
)
def length_of_joined(cache, key, value):
    """Each call adds the number of all keys so far to the length. It should add only the number of new ones."""
    keys, values = _kept(cache, key, value)
    cache.length += keys.shape[-2] - key.shape[-2]
    return keys, values


@MISTAKES.add(
    "later chunks are counted, but not kept",
    hint="After three chunks, how many positions come back, and what is the length?",
    more="Append three chunks. The second comes back, but is it still there with the third?",
    section=CACHE,
)
def later_counted_not_kept(cache, key, value):
    """Each later chunk is joined to the first for that one call, and then forgotten. The length still counts it."""
    cache.length += key.shape[-2]
    if cache.keys is None:
        cache.keys, cache.values = key, value
        return key, value
    return _joined(cache.keys, key), _joined(cache.values, value)


@MISTAKES.add(
    "a token that comes twice in a row is kept once",
    hint="In “very very good”, how many words does the next word attend to?",
    more="Append the same token twice, and print the length. Which condition decides whether a chunk is kept?",
    section=CACHE,
)
def repeats_skipped(cache, key, value):
    """A chunk equal to the last one is not kept. Every token counts, even one equal to the token before it."""
    last = cache.keys is not None and cache.keys[..., -key.shape[-2] :, :]
    return (cache.keys, cache.values) if np.array_equal(last, key) else _kept(cache, key, value)


EXERCISE = Exercise(
    name="KVCache",
    reference=KVCache,
    outputs={"lengths": (), "keys": ("S", "D"), "values": ("S", "D_v")},
    rubric={NUMBERS: 4, RANKS: 1, TWO: 1, UNCHANGED: 1},
    section=CACHE,
    advice="Append the keys of two words to an empty cache, then those of one word, and print keys, values and length "
    "after each call. On paper there are two positions at first, and three in the end, in the order of the text.",
    inputs=inputs,
    call=call_kv_cache,
    mistakes=tuple(MISTAKES),
    gradients=False,  # a cache is for writing, where none are recorded
)
