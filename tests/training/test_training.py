"""The training of the course's language model: its text, its tokenizer, the loop and how it resumes, and its export."""

import dataclasses

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

import attnlib.hf
from attnlib import RopeScaling
from attnlib.torch import CausalLM, CausalLMConfig
from training import corpus, loop
from training.export import export
from training.vocabulary import END, encode_modules, train_tokenizer

TEXTS = ["def double(x):\n    return 2 * x\n", "class Äpfel:\n\tpass  # größer\n", "x = 3\n" * 5]
V = 280
CONFIG = CausalLMConfig(vocab_size=V, embed_dim=12, num_layers=2, num_heads=3, num_kv_heads=1, ff_dim=20)
SETTINGS = loop.Settings(
    steps=6, batch_size=2, context=7, warmup=2, threads=1, log_every=2, held_out_windows=3, bfloat16=False
)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TEXTS, V)


@pytest.fixture
def tokens() -> np.ndarray:
    return np.random.default_rng(0).integers(0, V, 90)


@pytest.fixture
def library(tmp_path):
    """A small standard library, with a module of each kind that is left out."""
    for name in (
        *(f"m{n}.py" for n in range(40)),
        "test/a.py",
        "json/tests/b.py",
        "_sysconfigdata_x.py",
        "config-3/c.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"name = {name!r}\n")
    (tmp_path / "empty.py").write_text("\n")
    return tmp_path


def test_the_text_is_divided_and_leaves_out_tests_and_what_differs_between_machines(library):
    found = corpus.read_corpus(library)
    assert found.learned.keys() | found.held_out.keys() == {f"m{n}.py" for n in range(40)}
    assert not found.learned.keys() & found.held_out.keys()
    assert 0 < len(found.held_out) < 12
    assert corpus.read_corpus(library) == found


def test_another_text_than_that_of_the_published_weights_is_refused(library):
    with pytest.raises(ValueError, match=f"{corpus.PYTHON}.*--any-version"):
        corpus.require_version(corpus.read_corpus(library))


def test_a_folder_without_modules_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="--stdlib"):
        corpus.read_corpus(tmp_path)


def test_the_tokenizer_loses_nothing(tokenizer):
    for text in (*TEXTS, "κόσμε \U0001f600\r\n\0"):
        assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text
    assert tokenizer.get_vocab_size() <= V


def test_each_module_stands_between_two_end_tokens(tokenizer):
    tokens, end = encode_modules(tokenizer, TEXTS), tokenizer.token_to_id(END)
    assert (tokens == end).sum() == len(TEXTS) + 1
    assert tokens[0] == tokens[-1] == end


def test_the_learning_rate_rises_stays_and_falls():
    rates = [loop.Settings(steps=20, warmup=4, peak=8.0).learning_rate(step) for step in (0, 1, 3, 4, 15, 17, 19)]
    assert rates == [2.0, 4.0, 8.0, 8.0, 8.0, 6.0, 2.0]


def test_a_batch_has_windows_of_the_text_and_depends_on_the_step_alone(tokens):
    windows = loop.batch(tokens, SETTINGS, 3)
    assert windows.shape == (2, 8)
    text = " ".join(map(str, tokens))
    assert all(" ".join(map(str, row.tolist())) in text for row in windows)
    assert torch.equal(windows, loop.batch(tokens, SETTINGS, 3))
    assert not torch.equal(windows, loop.batch(tokens, SETTINGS, 4))


def test_only_matrices_decay_and_the_embeddings_do_not():
    model = CausalLM(CONFIG)
    decaying, others = (group["params"] for group in loop.parameter_groups(model, 0.1))
    assert sum(x.numel() for x in (*decaying, *others)) == sum(x.numel() for x in model.parameters())
    assert all(x.ndim == 2 for x in decaying)
    assert any(x is model.embed_tokens.weight for x in others)


def test_a_run_that_was_killed_ends_with_the_same_bits_and_the_same_log(tokens, tmp_path, monkeypatch):
    whole = loop.train(CONFIG, tokens, tokens[:40], SETTINGS, tmp_path / "whole")
    step, calls = loop._step, []

    def dies(*arguments):
        calls.append(1)
        if len(calls) == 6:  # after the checkpoint of step 4, and one step more
            raise KeyboardInterrupt
        return step(*arguments)

    monkeypatch.setattr(loop, "_step", dies)
    with pytest.raises(KeyboardInterrupt):
        loop.train(CONFIG, tokens, tokens[:40], SETTINGS, tmp_path / "killed")
    monkeypatch.setattr(loop, "_step", step)
    resumed = loop.train(CONFIG, tokens, tokens[:40], SETTINGS, tmp_path / "killed")
    for (name, one), other in zip(whole.state_dict().items(), resumed.state_dict().values(), strict=True):
        assert torch.equal(one, other), name
    logs = [(tmp_path / run / loop.LOG).read_text().splitlines() for run in ("whole", "killed")]
    assert [row.rpartition(",")[0] for row in logs[0]] == [row.rpartition(",")[0] for row in logs[1]]  # but for seconds
    assert [row.partition(",")[0] for row in logs[0]] == ["step", "2", "4", "6"]


def test_a_checkpoint_of_other_settings_is_refused(tokens, tmp_path):
    loop.train(CONFIG, tokens, tokens[:40], SETTINGS, tmp_path)
    other = loop.Settings(steps=8, batch_size=2, context=7, threads=1)
    with pytest.raises(ValueError, match="was made with"):
        loop.train(CONFIG, tokens, tokens[:40], other, tmp_path)


@pytest.mark.parametrize("short", ["learned", "held_out"])
def test_a_text_shorter_than_a_window_is_refused(tokens, tmp_path, short):
    texts = {"learned": tokens, "held_out": tokens} | {short: tokens[:7]}
    with pytest.raises(ValueError, match=f"{short} has 7 tokens, but a window needs 8"):
        loop.train(CONFIG, texts["learned"], texts["held_out"], SETTINGS, tmp_path)
    loop.train(CONFIG, tokens[:8], tokens[:8], SETTINGS, tmp_path)


def test_the_log_of_a_long_run_can_be_read_again(tmp_path):
    loop._log(tmp_path, (1_234_567, 5_056_786_432, 0.002, 3.25, 3.5, 61.0))
    loop._log(tmp_path, (1_234_568, 5_056_790_528, 0.002, 3.25, 3.5, 62.0))
    rows = loop._rows(tmp_path / loop.LOG)
    assert [(int(row["step"]), int(row["tokens"])) for row in rows] == [
        (1_234_567, 5_056_786_432),
        (1_234_568, 5_056_790_528),
    ]


@pytest.mark.slow
def test_training_lowers_the_loss(tmp_path):
    tokens = np.tile(np.arange(11), 30)  # each token decides the next one
    settings = loop.Settings(
        steps=80,
        batch_size=4,
        context=9,
        warmup=5,
        peak=2e-2,
        threads=1,
        log_every=80,
        held_out_windows=3,
        bfloat16=False,
    )
    model = loop.train(CONFIG, tokens, tokens, settings, tmp_path)
    assert loop.held_out_loss(model, tokens, settings) < 0.5 < np.log(11)


def test_the_exported_folder_is_a_checkpoint_that_predicts_the_same(tokenizer, tmp_path):
    torch.manual_seed(0)
    model = loop.initialized(CausalLM(CONFIG)).half().float()  # the weights are stored in half precision
    export(model, tokenizer, tmp_path)
    loaded = attnlib.hf.load(tmp_path, backend="torch")
    tokens = torch.tensor([tokenizer.encode(TEXTS[0]).ids])
    torch.testing.assert_close(loaded.model(tokens), model(tokens), rtol=0, atol=1e-6)
    assert loaded.eos_tokens == (tokenizer.token_to_id(END),)
    assert loaded.tokenizer is not None
    assert loaded.tokenizer.encode(TEXTS[1]).ids == tokenizer.encode(TEXTS[1]).ids


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tied", False),
        ("rope_scaling", RopeScaling(8.0)),
        ("rope_base", None),
        ("norm", "layer_norm"),
        ("qk_norm", True),
        ("windows", (3, None)),
        ("attn_softcap", 5.0),
        ("activation", "gelu"),
        ("qkv_bias", True),
    ],
)
def test_a_model_that_is_not_a_plain_llama_is_not_exported(tokenizer, tmp_path, name, value):
    model = CausalLM(dataclasses.replace(CONFIG, **{name: value}))
    with pytest.raises(ValueError, match=f"the model has {name}="):
        export(model, tokenizer, tmp_path / "model")
    assert not (tmp_path / "model").exists()
