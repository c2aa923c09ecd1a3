"""The judgement of the language model: what is compared, how it is written down, and that the model's card agrees."""

from collections import Counter

import numpy as np
import pytest
import torch

from attnlib.torch import CausalLM, CausalLMConfig
from training import judge, judgement
from training.card import fill_card
from training.copying import Prompt
from training.corpus import Corpus
from training.judgement import BITS, BYTES, Figure
from training.loop import initialized
from training.vocabulary import encode_modules, train_tokenizer

MODULES = {f"m{n}.py": f"def double{n}(x):\n    return {n} * x\n" for n in range(5)}
CORPUS = Corpus(MODULES, {"held.py": "def triple(x):\n    return 3 * x\n"}, "")
FIGURES = [
    Figure("a", "", BYTES, 12345),
    Figure("a", "one", BITS, 2.5),
    Figure("b", "", BYTES, 7),
    Figure("b", "one", BITS, 1.23456),
    Figure("a", "two", BITS, 3),
    Figure("c", "", "copied windows of 16 tokens", 0.4321),
]


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(MODULES.values(), 280)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    config = CausalLMConfig(vocab_size=280, embed_dim=12, num_layers=1, num_heads=3, ff_dim=20)
    return initialized(CausalLM(config)).requires_grad_(False)


def test_figures_are_read_as_they_were_written(tmp_path):
    judgement.write_figures(FIGURES, tmp_path / "f.csv")
    assert judgement.read_figures(tmp_path / "f.csv") == FIGURES


def test_tables_have_a_row_for_each_method_and_a_column_for_each_text():
    assert judgement.bits_table(FIGURES).splitlines() == [
        "| bits per byte | a | b |",
        "| --- | ---: | ---: |",
        "| one | 2.500 | 1.235 |",
        "| two | 3.000 |  |",
    ]
    assert judgement.sizes_table(FIGURES).splitlines()[2:] == ["| a | 12,345 |", "| b | 7 |"]
    assert judgement.copying_table(FIGURES).splitlines()[2:] == ["| c | 43.2% |"]


def test_a_card_is_filled_between_its_comments(tmp_path):
    path = tmp_path / "card.md"
    path.write_text("# Card\n\n<!-- one -->\nold\n<!-- end of one -->\nend\n")
    for text in ("new", r"newer \1"):
        fill_card({"one": text}, path)
        assert path.read_text() == f"# Card\n\n<!-- one -->\n\n{text}\n\n<!-- end of one -->\nend\n"
    with pytest.raises(ValueError, match="no part between <!-- two --> and <!-- end of two -->"):
        fill_card({"two": "text"}, path)


def test_shuffling_keeps_the_tokens_of_a_module_and_where_it_begins_and_ends(tokenizer):
    tokens = [encode_modules(tokenizer, [text]) for text in MODULES.values()]
    found = judge.shuffled(tokenizer, judge.Text("some", list(MODULES.values()), tokens))
    for before, after in zip(tokens, found.tokens, strict=True):
        assert Counter(before.tolist()) == Counter(after.tolist())
        assert (before[0], before[-1]) == (after[0], after[-1])
    assert not all(np.array_equal(*pair) for pair in zip(tokens, found.tokens, strict=True))


def test_each_text_is_judged_by_each_method(tokenizer, model):
    sources = {"held out": list(CORPUS.held_out.values()), "learned": list(MODULES.values())}
    texts = [judge.Text(name, some, [encode_modules(tokenizer, [x]) for x in some]) for name, some in sources.items()]
    figures = [*judge.baselines(CORPUS, texts), *judge.model_figures(model, texts)]
    bits = {(one.text, one.method): one.value for one in figures if one.quantity == BITS}
    assert {text for text, _ in bits} == sources.keys()
    assert len(bits) == 2 * 11
    size = len(sources["held out"][0])
    assert bits["held out", "all bytes equally probable"] == pytest.approx(8 * (size + 1) / size)  # a 0 ends the module
    assert bits["learned", "12-gram"] < bits["held out", "12-gram"] < 8
    predicted = sum(len(tokens) - 1 for tokens in texts[0].tokens)
    untrained = np.log2(280) * predicted / size  # all tokens are about equally probable
    assert bits["held out", judge.MODEL] == pytest.approx(untrained, rel=0.01)


def test_continuations_are_as_long_as_asked_and_repeatable(tokenizer, model, monkeypatch):
    monkeypatch.setattr(judge, "LENGTH", 3)
    prompts = [Prompt("m.py", text, [5, 6, 7]) for text in CORPUS.held_out.values() for _ in range(2)]
    found = judge.all_continuations(model, tokenizer, prompts)
    assert found == judge.all_continuations(model, tokenizer, prompts)
    assert [len(one) for kind in found.values() for one in kind] == [3] * 4 * 2
    assert found["the module's own"] == [prompt.rest for prompt in prompts]
    assert [sorted(one) for one in found["the same, shuffled"]] == found["the module's own"]
    assert found["temperature 0.8"][0] != found["temperature 0.8"][1]  # of other seeds


def test_what_is_copied_is_looked_up_in_the_learned_modules(tokenizer):
    rest = tokenizer.encode("\n    return 0 * x\n").ids
    wrong = tokenizer.encode("\n    return )\n" * 9).ids
    prompts = [Prompt("m0.py", "def double0(x):", rest)] * 2
    found = judge.copying_figures(tokenizer, CORPUS, prompts, {"copied": [rest * 4, wrong]})
    values = {one.quantity: one.value for one in found}
    assert values["longest copied run, largest"] == len(rest)
    assert values["longest copied run, median"] < len(rest)
    assert values["texts that begin a program"] == 0.5
