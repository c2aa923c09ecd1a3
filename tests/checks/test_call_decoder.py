"""How a loop that writes, and a decoder with a cache, are called."""

import numpy as np
import pytest

import attnlib.numpy
from attnlib.checks.calling.decoder import call_decoder
from attnlib.checks.calling.generation import MAX_READS, Step, call_generate
from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.catalogue.decoder.decoder_logits import decoder_logits
from attnlib.checks.catalogue.decoder.generate_tokens import generate_tokens
from attnlib.checks.evaluation import Evaluation

TABLE = np.array([10, 11, 12, 13, 14, 15, 16])
TEXT = {"prompt": [2, 4], "max_new_tokens": 3}


def written(loop, *, reads=False, **options):
    return call_generate(loop, TEXT, options, {"table": TABLE, "reads": reads})[0]


def test_the_next_token_depends_on_all_tokens_so_far_and_on_their_order():
    whole = Step(TABLE)([2, 4])  # (0 · 3 + 2 + 1) = 3, and (3 · 3 + 4 + 1) = 14, which is 0 modulo 7
    parts = Step(TABLE)
    assert (parts([2]), parts([4])) == (13, whole)
    assert whole == 10
    assert Step(TABLE)([4, 2]) != whole


def test_what_the_model_read_comes_back_where_it_is_asked_for():
    reads, tokens = written(generate_tokens, reads=True)
    assert reads.tolist() == [2, 1, 1]
    assert tokens.tolist() == written(generate_tokens).tolist()


def test_no_tokens_are_an_array_of_whole_numbers():
    tokens = written(lambda step, prompt, count: [])
    assert (tokens.shape, tokens.dtype.kind) == ((0,), "i")


@pytest.mark.parametrize(
    ("loop", "says"),
    [
        (lambda step, prompt, count: None, "NoneType was returned, but a list of tokens is needed"),
        (lambda step, prompt, count: [step(prompt[0])], "step was called with 2, but it needs a list of tokens"),
        (lambda step, prompt, count: [step([1]) for _ in range(MAX_READS + 1)], "the loop does not end"),
    ],
)
def test_what_cannot_be_right_says_why(loop, says):
    with pytest.raises((TypeError, RuntimeError), match=says):
        written(loop)


def test_no_case_comes_near_the_limit_of_calls():
    evaluation = Evaluation(CATALOGUE["generate_tokens"], "numpy", 0)
    assert max(case.inputs["max_new_tokens"] for case in evaluation.cases) < MAX_READS / 3


# The decoder ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_decoder_agrees_with_the_library_s_model_in_one_call_and_in_several(seed):
    evaluation = Evaluation(CATALOGUE["decoder_logits"], "numpy", seed)
    for case, expected in zip(evaluation.cases, evaluation.expected, strict=True):
        params, config = case.inputs["params"], case.setup["config"]
        (vocabulary, width), hidden = params["embed_tokens.weight"].shape, len(params["layers.0.ff.up_proj.weight"])
        sizes = {name: config[name] for name in ("num_layers", "num_heads", "num_kv_heads", "head_dim", "rope_base")}
        model = attnlib.numpy.CausalLM(
            attnlib.numpy.CausalLMConfig(
                vocab_size=vocabulary, embed_dim=width, ff_dim=hidden, norm_eps=config["eps"], **sizes
            )
        ).double()
        model.load_state_dict({name: x.astype(np.float64) for name, x in params.items()})
        tokens = np.concatenate([np.array(chunk) for chunk in case.inputs["chunks"].values()])
        np.testing.assert_allclose(expected.arrays["logits"], model(tokens[None])[0], rtol=1e-6, atol=1e-6)


def test_each_call_gets_the_cache_that_the_call_before_returned():
    config = {"num_layers": 2, "num_heads": 2, "num_kv_heads": 1, "head_dim": 4}
    seen = []

    def decoder(params, config, tokens, cache):
        seen.append(cache)
        return np.zeros((len(tokens), 3)), f"after {len(seen)}"

    given = {"params": {"norm.weight": np.ones(5)}, "chunks": {"chunk 1": [1, 2], "chunk 2": [3]}}
    logits, _ = call_decoder(decoder, given, {}, {"config": config})
    assert logits.shape == (3, 3)
    assert seen[1] == "after 1"
    assert [(keys.shape, values.shape) for keys, values in seen[0]] == [((1, 0, 4), (1, 0, 4))] * 2


def test_logits_without_a_cache_are_refused():
    case = Evaluation(CATALOGUE["decoder_logits"], "numpy", 0).cases[0]
    with pytest.raises(TypeError, match="ndarray was returned, but two results are needed: logits and cache"):
        call_decoder(lambda *inputs: decoder_logits(*inputs)[0], case.inputs, {}, case.setup)
