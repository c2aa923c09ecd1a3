"""Speculative decoding: the same distribution as the large model alone, and the same tokens at temperature 0."""

import numpy as np
import pytest
from backends import Numpy
from language_models import VARIANTS, P, V, build, config, tokens_of
from numpy.testing import assert_allclose
from test_generation import PROMPT, Chain, text

from attnlib import generate_speculatively, sampling_probabilities
from attnlib.speculative import _round

SMALL = {"num_layers": 1, "num_heads": 2, "embed_dim": 8, "ff_dim": 11}
every_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)


def drafted(model, draft_model, prompt=PROMPT, count=17, **settings):
    return list(generate_speculatively(model, draft_model, prompt, max_new_tokens=count, **settings))


def tokens(found):
    return [one.token for one in found]


class Recorded:
    """A model that keeps a record of how many tokens it reads, and of the lengths of its caches."""

    def __init__(self, model):
        self.model, self.config, self.reads, self.caches = model, model.config, [], []

    def __call__(self, tokens, *, cache, logits_to_keep):
        self.reads.append((cache[0].length, tokens.shape[1], logits_to_keep))
        return self.model(tokens, cache=cache, logits_to_keep=logits_to_keep)

    def new_cache(self):
        self.caches = self.model.new_cache()
        return self.caches

    def parameters(self):
        return self.model.parameters()


@pytest.mark.parametrize(
    ("num_draft_tokens", "variant"),
    [*((3, variant) for variant in VARIANTS.values()), (1, {}), (8, {})],
    ids=[*(f"3-{what}" for what in VARIANTS), "1-plain", "8-plain"],
)
def test_at_temperature_0_the_text_is_that_of_the_large_model(num_draft_tokens, variant):
    backend = Numpy()
    model = build(backend, config(**variant))
    for draft_model in (build(backend, config(**SMALL)), build(backend, config(**variant), seed=5), model):
        found = drafted(model, draft_model, temperature=0, num_draft_tokens=num_draft_tokens)
        assert tokens(found) == text(model, count=17, temperature=0)


def test_both_libraries_write_the_same(backend):
    models = [[build(b, config(**s)) for s in ({}, SMALL)] for b in (backend, Numpy())]
    ours, numpy_s = (drafted(*pair, seed=4) for pair in models)
    assert tokens(ours) == tokens(numpy_s)
    assert [one.drafted for one in ours] == [one.drafted for one in numpy_s]


def test_each_token_comes_with_the_large_model_s_distribution(backend):
    model, draft_model = build(backend, config(windows=(4, None, 2))), build(backend, config(**SMALL))
    settings, written = {"temperature": 0.8, "top_k": 11, "top_p": 0.95}, list(PROMPT)
    found = drafted(model, draft_model, seed=3, **settings)
    for one in found:
        logits = backend.numpy(model(backend.array([written], "int64")))[0, -1]
        assert_allclose(one.probabilities, sampling_probabilities(logits, **settings), atol=1e-10)
        written.append(one.token)
    assert {one.drafted for one in found} == {True, False}  # both kinds occur


PAIRS = {
    "alike": [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1]],
    "different": [[0.1, 0.2, 0.7], [0.7, 0.2, 0.1], [0.2, 0.5, 0.3]],
    "certain": [[0.98, 0.01, 0.01]] * 3,
}


@pytest.mark.slow
@pytest.mark.parametrize("q", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("num_draft_tokens", [1, 2])
def test_texts_have_the_distribution_of_the_large_model(q, num_draft_tokens):
    """Three tokens after token 0, by a chi-square test with fixed seeds."""
    p, count = np.array(PAIRS["alike"]), 1500
    model, draft_model = Chain(np.log(p), Numpy()), Chain(np.log(q), Numpy())
    counts = np.zeros((3, 3, 3))
    for seed in range(count):
        options = {"seed": seed, "num_draft_tokens": num_draft_tokens}
        counts[tuple(tokens(drafted(model, draft_model, [0], 3, **options)))] += 1
    expected = count * p[0][:, None, None] * p[:, :, None] * p
    assert ((counts - expected) ** 2 / expected).sum() < 54.05  # exceeded with probability 0.001: 26 degrees of freedom


def test_tokens_are_accepted_as_often_as_the_distributions_overlap():
    """The first draft is accepted with probability sum_y min(p_y, q_y)."""
    p, q, count = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6]), 2000  # they share 0.2 + 0.2 + 0.2
    model, draft_model = (Chain(np.log([x] * 3), Numpy()) for x in (p, q))
    options = {"max_new_tokens": 2, "num_draft_tokens": 1}
    accepted = sum(
        next(generate_speculatively(model, draft_model, [0], seed=seed, **options)).drafted for seed in range(count)
    )
    assert abs(accepted / count - 0.6) < 3.3 * (0.6 * 0.4 / count) ** 0.5


def test_what_settings_exclude_is_never_written():
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.1, 0.2, 0.7])
    model, draft_model = (Chain(np.log([x] * 3), Numpy()) for x in (p, q))
    assert set(tokens(drafted(model, draft_model, [0], 200, top_k=2, seed=0))) == {0, 1}


def test_a_draft_model_that_is_the_model_is_always_accepted(backend):
    model = build(backend, config())
    found = drafted(model, model, num_draft_tokens=3, seed=2, count=10)
    assert [one.drafted for one in found] == [True, True, True, False] * 2 + [True, False]


# What the models read


def test_the_large_model_reads_each_draft_in_one_call(backend):
    model, same = (Recorded(build(backend, config())) for _ in range(2))
    drafted(model, same, num_draft_tokens=3, count=9, seed=0)
    assert model.reads == [(0, len(PROMPT) + 3, 4), (8, 4, 4), (12, 1, 1)]
    # The last token of a draft, which was accepted unread, is read together with the one after it.
    assert same.reads == [(0, 5, 1), (5, 1, 1), (6, 1, 1), (7, 2, 1), (9, 1, 1), (10, 1, 1)]


def test_after_a_rejection_the_caches_hold_the_text_alone(backend):
    model, other = (Recorded(build(backend, config(), seed=seed)) for seed in (1706, 9))
    written, length = list(PROMPT), 20
    for one in generate_speculatively(model, other, PROMPT, max_new_tokens=length, num_draft_tokens=4, seed=1):
        written.append(one.token)
    starts = [start for start, _, _ in model.reads]
    reach = [start + count for start, count, _ in model.reads]
    assert any(start < end for start, end in zip(starts[1:], reach[:-1], strict=True))  # some drafts were taken back
    alone = model.model.new_cache()
    model.model(backend.array([written[:-1]], "int64"), cache=alone)
    for layer, kept in zip(alone, model.caches, strict=True):
        S = min(layer.length, kept.length)
        assert len(written) - 1 - 4 <= S
        assert_allclose(backend.numpy(kept._keys[..., :S, :]), backend.numpy(layer._keys[..., :S, :]), atol=1e-10)


def test_a_rejected_draft_costs_no_room_beyond_the_learned_positions(backend):
    model = build(backend, config(**VARIANTS["gpt-2"]))
    prompt = tokens_of(backend, P - 3)
    assert len(drafted(model, model, prompt, count=4, num_draft_tokens=9, seed=0)) == 4


def test_windows_are_kept_although_all_keys_are(backend):
    settings = config(windows=(2, 3, 2), rope_base=50.0)
    model, draft_model = build(backend, settings), build(backend, settings, seed=5)
    assert tokens(drafted(model, draft_model, temperature=0)) == text(model, count=17, temperature=0)


# Where it ends, and errors


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_no_more_tokens_are_written_than_asked_for(backend, count):
    model, draft_model = build(backend, config()), build(backend, config(**SMALL))
    assert len(drafted(model, draft_model, count=count, num_draft_tokens=3, seed=0)) == count


def test_a_single_token_needs_no_draft(backend):
    model, draft_model = Recorded(build(backend, config())), Recorded(build(backend, config(**SMALL)))
    assert not drafted(model, draft_model, count=1, seed=0)[0].drafted
    assert draft_model.reads == []


def test_it_ends_within_a_draft(backend):
    chain = Chain(np.eye(6)[[1, 2, 3, 4, 5, 0]] * 99.0, backend)
    assert tokens(drafted(chain, chain, [0], 20, stop=[3], temperature=0)) == [1, 2, 3]
    found = drafted(chain, chain, [0], 20, stop=lambda written: written[-2:] == [5, 0], temperature=0)
    assert tokens(found) == [1, 2, 3, 4, 5, 0]


CALLS = [
    ({"num_draft_tokens": 0}, ValueError, "num_draft_tokens is 0, but at least 1"),
    ({"num_draft_tokens": 1.5}, TypeError, "num_draft_tokens is 1.5"),
    ({"tokens": []}, ValueError, "tokens is empty"),
    ({"tokens": [V]}, ValueError, f"token {V} is not in the vocabulary"),
    ({"temperature": -1.0}, ValueError, "temperature is -1.0"),
    ({"stop": 2}, TypeError, "stop is 2"),
    ({"seed": "one"}, TypeError, "seed is 'one'"),
]


@pytest.mark.parametrize(("changes", "exception", "words"), CALLS, ids=[str(one[0]) for one in CALLS])
def test_a_wrong_argument_is_refused_at_once(backend, changes, exception, words):
    model = build(backend, config())
    with pytest.raises(exception, match=words):
        generate_speculatively(model, model, **{"tokens": PROMPT, "max_new_tokens": 3} | changes)


def test_models_of_two_vocabularies_are_refused(backend):
    model, other = build(backend, config()), build(backend, config(vocab_size=V + 2))
    with pytest.raises(ValueError, match=f"vocabulary of {V} tokens, but draft_model one of {V + 2}.*same tokenizer"):
        generate_speculatively(model, other, PROMPT, max_new_tokens=3)


def test_a_draft_model_needs_no_configuration(backend):
    model = build(backend, config())
    assert tokens(drafted(model, Chain(np.eye(V), backend), temperature=0)) == text(model, count=17, temperature=0)


@pytest.mark.parametrize("size", [V - 4, V + 2])
def test_another_vocabulary_is_found_without_a_configuration(backend, size):
    model, chain = build(backend, config()), Chain(np.eye(size), backend)
    message = f"one model has a vocabulary of {size} tokens, but the other one of {V}.*same tokenizer"
    for seed in range(5):
        with pytest.raises(ValueError, match=message):
            drafted(model, chain, prompt=[3, 1], seed=seed)


def test_where_rounding_leaves_nothing_beyond_the_draft_s_distribution_the_model_s_own_serves():
    """Probabilities that differ by rounding alone may reject a token, and then exceed the draft's nowhere."""

    class Largest:
        def random(self):
            return 1 - 2**-53

    class Reader:
        def __init__(self, p):
            self.p = p

        def distributions(self, text, last):
            return [self.p] * last

    p = np.array([0.25, 0.75])
    (one,) = _round(Reader(p * (1 - 2**-50)), Reader(p), [0], 1, Largest())
    assert (one.token, one.drafted) == (1, False)
