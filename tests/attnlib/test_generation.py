"""Writing with a model: what is read and when, which tokens come out, and what is left as it was."""

import math

import numpy as np
import pytest
import torch
from backends import BACKENDS, Numpy, Torch
from language_models import VARIANTS, P, V, build, config, tokens_of
from numpy.testing import assert_allclose, assert_array_equal
from peak_memory import peak_of

from attnlib import generate, sampling_probabilities
from attnlib.cache import KVCache
from attnlib.generation import GeneratedToken

PROMPT = [3, 1, 4, 1, 5]


def text(model, prompt=PROMPT, count=12, **settings):
    return [one.token for one in generate(model, prompt, max_new_tokens=count, **settings)]


@pytest.fixture(scope="module")
def models():
    """One model in every library."""
    return {str(backend): build(backend, config(windows=(4, None, 2), logit_softcap=3.0)) for backend in BACKENDS}


@pytest.fixture
def model(models, backend):
    return models[str(backend)]


class Chain:
    """A model whose logits depend on the last token only, and which keeps a record of what it reads."""

    def __init__(self, logits, backend):
        self.logits, self.reads = backend.array(logits), []

    def __call__(self, tokens, *, cache, logits_to_keep):
        self.reads.append((tokens.tolist(), logits_to_keep))
        return self.logits[tokens][:, -logits_to_keep:]

    def new_cache(self):
        return [KVCache()]

    def parameters(self):
        return iter([self.logits])


# Which tokens come out


def test_the_most_probable_tokens_are_those_of_the_model_without_a_cache(backend, model):
    written = list(PROMPT)
    for _ in range(12):
        logits = backend.numpy(model(backend.array([written], "int64")))[0, -1]
        written.append(int(logits.argmax()))
    assert text(model, temperature=0) == written[len(PROMPT) :]


def test_each_token_comes_with_the_distribution_that_it_was_drawn_from(backend, model):
    settings = {"temperature": 0.7, "top_k": 9, "top_p": 0.9, "min_p": 0.01}
    written = list(PROMPT)
    for one in generate(model, PROMPT, max_new_tokens=7, seed=1, **settings):
        logits = backend.numpy(model(backend.array([written], "int64")))[0, -1]
        assert isinstance(one, GeneratedToken)
        assert (type(one.token), one.probabilities.dtype) == (int, np.float64)
        assert_allclose(one.probabilities, sampling_probabilities(logits, **settings), atol=1e-10)
        assert one.probabilities[one.token] > 0
        written.append(one.token)


@pytest.mark.parametrize("variant", ["llama", "gemma 2", "gpt-2"])
def test_the_same_seed_gives_the_same_text_in_every_library_and_dtype(variant):
    settings = config(**VARIANTS[variant])
    texts = [text(build(b, settings, d), seed=5) for b in BACKENDS for d in ("float32", "float64")]
    assert all(one == texts[0] for one in texts)


def test_another_seed_gives_another_text_and_no_seed_a_new_one_each_time(model):
    assert text(model, seed=5) == text(model, seed=5) != text(model, seed=6)
    assert text(model, count=25) != text(model, count=25)


def test_texts_have_the_distribution_of_the_model(backend):
    """Pairs of tokens after token 0, by a chi-square test with fixed seeds."""
    p = np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])
    chain, count = Chain(np.log(p), backend), 1000
    counts = np.zeros((3, 3))
    for seed in range(count):
        counts[tuple(text(chain, [0], 2, seed=seed))] += 1
    expected = count * p[0][:, None] * p
    assert ((counts - expected) ** 2 / expected).sum() < 26.12  # exceeded with probability 0.001: 8 degrees of freedom


# What the model reads


def test_the_prompt_is_read_once_and_then_each_token(backend):
    successor = np.eye(6)[[2, 0, 5, 1, 0, 3]] * 9.0  # 0 -> 2 -> 5 -> 3 -> 1 -> 0
    chain = Chain(successor, backend)
    assert text(chain, [4, 1, 0], 4, temperature=0) == [2, 5, 3, 1]
    assert chain.reads == [([[4, 1, 0]], 1), ([[2]], 1), ([[5]], 1), ([[3]], 1)]


def test_nothing_is_computed_before_it_is_asked_for(backend):
    chain = Chain(np.zeros((6, 6)), backend)
    tokens = generate(chain, [1], max_new_tokens=5)
    assert chain.reads == []
    next(tokens)
    assert len(chain.reads) == 1


def test_no_tokens_are_generated_if_none_are_asked_for(backend):
    chain = Chain(np.zeros((6, 6)), backend)
    assert text(chain, [1], 0) == []
    assert chain.reads == []


PROMPTS = {
    "a tuple": tuple,
    "an array": np.array,
    "an array of int32": lambda x: np.array(x, np.int32),
    "numbers of NumPy": lambda x: list(np.array(x)),
    "a tensor": torch.tensor,
    "a range": lambda x: range(2, 7),
}


@pytest.mark.parametrize("form", PROMPTS.values(), ids=PROMPTS)
def test_the_prompt_may_come_in_any_form(model, form):
    prompt = form(PROMPT)
    assert text(model, prompt, seed=2) == text(model, [int(token) for token in prompt], seed=2)


# Where it ends


def test_it_ends_after_a_token_of_stop(backend):
    chain = Chain(np.eye(6)[[1, 2, 3, 4, 5, 0]] * 99.0, backend)
    for stop in ([4], (9, 4), {4}, frozenset({4, 5}), np.array([4]), torch.tensor([4]), iter([4])):
        assert text(chain, [0], 20, stop=stop, temperature=0) == [1, 2, 3, 4]


def test_it_ends_where_a_function_of_the_text_says_so(backend):
    chain, seen = Chain(np.eye(6)[[1, 2, 3, 4, 5, 0]] * 99.0, backend), []

    def stop(written):
        seen.append(list(written))
        return written[-2:] == [0, 1]

    assert text(chain, [0], 20, stop=stop, temperature=0) == [1, 2, 3, 4, 5, 0, 1]
    assert seen[:3] == [[1], [1, 2], [1, 2, 3]]


def test_it_goes_on_to_the_last_learned_position_and_then_says_what_to_do(backend):
    model = build(backend, config(**VARIANTS["gpt-2"]))
    tokens, written = generate(model, tokens_of(backend, P - 3), max_new_tokens=9, seed=0), []
    with pytest.raises(ValueError, match=f"{P + 1} tokens, but the model has only {P} learned positions.*fewer tokens"):
        written.extend(one.token for one in tokens)
    assert len(text(model, tokens_of(backend, P - 3), 4)) == 4


# What is left as it was


def test_torch_s_random_numbers_and_modes_are_left_alone():
    model = build(Torch("cpu"), config())
    torch.manual_seed(3)
    np.random.seed(3)
    before, legacy = torch.get_rng_state(), np.random.get_state()[1]
    for _ in generate(model, PROMPT, max_new_tokens=3, seed=0):
        assert not torch.is_inference_mode_enabled()
        assert torch.is_grad_enabled()
    assert_array_equal(torch.get_rng_state(), before)
    assert_array_equal(np.random.get_state()[1], legacy)
    assert all(p.grad is None and p.requires_grad for p in model.parameters())


def test_a_text_that_is_not_read_to_its_end_leaves_no_mode_behind():
    tokens = generate(build(Torch("cpu"), config()), PROMPT, max_new_tokens=9, seed=0)
    next(tokens)
    tokens.close()
    assert not torch.is_inference_mode_enabled()
    (torch.ones(2, requires_grad=True) * 2).sum().backward()


def test_two_texts_may_be_written_in_turns(model):
    one, other = (generate(model, prompt, max_new_tokens=5, seed=1) for prompt in (PROMPT, PROMPT[::-1]))
    mixed = [(a.token, b.token) for a, b in zip(one, other, strict=True)]
    assert mixed == list(zip(text(model, PROMPT, 5, seed=1), text(model, PROMPT[::-1], 5, seed=1), strict=True))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_model_may_have_any_dtype(backend, dtype):
    if dtype in backend.dtypes:
        for one in generate(build(backend, config(), dtype), PROMPT, max_new_tokens=3, seed=0):
            assert one.probabilities.sum() == pytest.approx(1, abs=1e-12)


# Errors

CALLS = {
    "an empty prompt": ({"tokens": []}, ValueError, "tokens is empty.*begin with its start token"),
    "a batch": ({"tokens": np.array([[1, 2], [3, 4]])}, ValueError, r"tokens has shape \(2, 2\), but \(T,\)"),
    "a number": ({"tokens": 5}, TypeError, "tokens is 5, but whole numbers"),
    "a text": ({"tokens": "The dog"}, TypeError, "tokens is 'The dog'.*tokenizer.encode"),
    "a token too large": ({"tokens": [1, V]}, ValueError, f"token {V} is not in the vocabulary.*0 to {V - 1}"),
    "a negative token": ({"tokens": [1, -1]}, ValueError, "token is -1, but at least 0"),
    "a token that is no number": ({"tokens": [1, None]}, TypeError, "token is None"),
    "floats": ({"tokens": np.array([1.0, 2.0])}, TypeError, "token is 1.0, but a whole number"),
    "a negative number of tokens": ({"max_new_tokens": -1}, ValueError, "max_new_tokens is -1"),
    "no number of tokens": ({"max_new_tokens": None}, TypeError, "max_new_tokens is None"),
    "an impossible temperature": ({"temperature": -1}, ValueError, "temperature is -1"),
    "an impossible top_k": ({"top_k": 0}, ValueError, "top_k is 0"),
    "an impossible top_p": ({"top_p": 1.5}, ValueError, "top_p is 1.5"),
    "an impossible min_p": ({"min_p": "x"}, TypeError, "min_p is 'x'"),
    "a negative seed": ({"seed": -1}, ValueError, "seed is -1"),
    "a seed that is a fraction": ({"seed": 0.5}, TypeError, "seed is 0.5"),
    "a single token as stop": ({"stop": 2}, TypeError, r"stop is 2, but tokens such as \[2\]"),
    "a text as stop": ({"stop": "\n"}, TypeError, r"stop is '\\n'.*pass a function"),
    "texts as stop": ({"stop": ["\n"]}, TypeError, r"a token of stop is '\\n'"),
}


@pytest.mark.parametrize(("changes", "exception", "words"), CALLS.values(), ids=CALLS)
def test_a_wrong_argument_is_refused_at_once(model, changes, exception, words):
    with pytest.raises(exception, match=words):
        generate(model, **{"tokens": PROMPT, "max_new_tokens": 3} | changes)


@pytest.mark.parametrize("temperature", [0, 1.0])
@pytest.mark.parametrize("logit", [math.nan, math.inf])
def test_logits_that_are_not_finite_are_an_error_and_no_token(backend, logit, temperature):
    chain = Chain(np.array([[0.0, 1.0], [logit, 0.0]]), backend)
    tokens = generate(chain, [0], max_new_tokens=9, temperature=temperature, stop=lambda written: False, seed=0)
    with pytest.raises(ValueError, match=f"the largest logit is {logit}.*check the model's parameters"):
        list(tokens)


def test_tokens_that_a_model_excludes_are_never_written(backend):
    chain = Chain(np.array([[0.0, -math.inf, 0.0]] * 3), backend)
    assert set(text(chain, [0], 200, seed=0)) == {0, 2}
    with pytest.raises(ValueError, match="the largest logit is -inf"):
        text(Chain(np.full((2, 2), -math.inf), backend), [0])


def test_a_model_without_a_config_is_taken_as_it_is():
    assert text(Chain(np.eye(3) * 9.0, Numpy()), [2], 2, temperature=0) == [2, 2]


# Memory

LONG = [n % V for n in range(1500)]
ONE_LAYER = {"num_layers": 1, "rope_base": 1e4}


@pytest.mark.slow
def test_a_long_prompt_is_read_without_holding_the_scores_of_all_pairs(backend):
    model = build(backend, config(**ONE_LAYER), "float32")
    text(model, count=1)  # the first call imports modules
    assert peak_of(backend, lambda: text(model, LONG, 1)) < len(LONG) ** 2 * 4  # bytes of the scores of a single head


@pytest.mark.slow
def test_a_token_is_added_to_a_long_text_without_a_copy_of_its_keys(backend):
    model = build(backend, config(**ONE_LAYER, num_heads=2, head_dim=64), "float32")
    tokens = generate(model, LONG, max_new_tokens=5)
    next(tokens), next(tokens)  # a first single token also computes rotary tables for its neighbours
    assert peak_of(backend, lambda: next(tokens)) < len(LONG) * 2 * 64 * 4 / 4  # a quarter of the bytes of the keys
