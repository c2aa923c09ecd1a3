"""The judgement of the language model: what is compared, how it is written down, and that the model's card agrees."""

import csv
import hashlib
import json
import re
from collections import Counter

import numpy as np
import pytest
import stdlib_lm
import torch

from attnlib.torch import CausalLM, CausalLMConfig
from training import judge, judgement
from training.__main__ import CONFIG
from training.card import CARD, fill_card
from training.copying import Prompt
from training.corpus import LEFT_OUT, PYTHON, SHA256, Corpus, read_corpus
from training.export import export
from training.judgement import BITS, BYTES, TOKENS, Figure
from training.loop import LOG, initialized
from training.record import RECORD
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


@pytest.fixture(scope="module")
def figures():
    return judgement.read_figures()


@pytest.fixture(scope="module")
def card():
    return CARD.read_text("utf-8")


@pytest.mark.parametrize("table", [judgement.sizes_table, judgement.bits_table, judgement.copying_table])
def test_the_tables_of_the_card_are_those_of_the_judgement(table, card, figures):
    assert table(figures) in card


def test_the_card_shows_the_log(card):
    assert judgement.loss_table(CARD.with_name(LOG)) in card


def test_the_weights_are_those_that_were_judged(card):
    digest = hashlib.sha256((stdlib_lm.FOLDER / "model.safetensors").read_bytes()).hexdigest()
    assert f"`{digest}`" in card


def test_the_example_of_the_card_runs(card, capsys):
    (example,) = re.findall(r"^```python\n(.*?)^```$", card, re.MULTILINE | re.DOTALL)
    exec(example, {})
    assert len(capsys.readouterr().out) > 60


def test_the_card_describes_the_model(card):
    with torch.device("meta"):
        count = sum(x.numel() for x in CausalLM(CONFIG).parameters())
    assert card.count(f"{count:,}") == 2
    rows = dict(re.findall(r"^\| ([^|]+?) \| ([\d,.]+).* \|$", card, re.MULTILINE))
    expected = {
        "width": CONFIG.embed_dim,
        "layers": CONFIG.num_layers,
        f"query heads, of width {CONFIG.embed_dim // CONFIG.num_heads}": CONFIG.num_heads,
        "key and value heads": CONFIG.num_kv_heads,
        "hidden width of SwiGLU": CONFIG.ff_dim,
        "vocabulary: byte-level BPE, so that any text can be encoded": CONFIG.vocab_size,
        "base of the rotary positions": CONFIG.rope_base,
    }
    assert {name: rows[name] for name in expected} == {name: f"{value:,.0f}" for name, value in expected.items()}


def test_the_card_describes_the_training(card):
    run = json.loads(CARD.with_name(RECORD).read_text("utf-8"))
    settings, text = run["settings"], " ".join(card.split())
    assert run["corpus_sha256"] == SHA256
    assert run["python"] == PYTHON
    assert f"Python {PYTHON}" in text
    assert all(f"`{name}`" in text for name in LEFT_OUT - {"site-packages", "__pycache__"})
    tokens = settings["steps"] * settings["batch_size"] * settings["context"]
    (learned,) = (one.value for one in judgement.read_figures() if one[:3] == ("all that was learned", "", TOKENS))
    with CARD.with_name(LOG).open(encoding="utf-8", newline="") as file:
        last = list(csv.DictReader(file))[-1]
    assert int(last["step"]) == settings["steps"]
    for part in (
        f"{settings['steps']:,} steps, each of {settings['batch_size']} windows of {settings['context']} tokens",
        f"{tokens / 1e6:.1f} million tokens, or each token {tokens / learned:.1f} times",
        f"to {settings['peak']} in {settings['warmup']} steps and falls to 0 in the last {settings['steps'] // 5}",
        f"a weight decay of {settings['weight_decay']}",
        f"the seed is {settings['seed']}",
        f"{float(last['seconds']) / 60:.0f} minutes",
    ):
        assert part in text


def test_what_the_card_says_of_the_figures_is_what_was_measured(card, figures):
    bits = {(one.text, one.method): one.value for one in figures if one.quantity == BITS}
    sizes = {(one.text, one.quantity): one.value for one in figures}
    held, learned, jinja, prose, shuffled = dict.fromkeys(text for text, _ in bits)
    model, ngram = judge.MODEL, "adaptive 12-gram"
    weights = 8 * (stdlib_lm.FOLDER / "model.safetensors").stat().st_size
    nats = np.log(2) * bits[held, model] * sizes[held, BYTES] / (sizes[held, TOKENS] - 50)
    parts = (
        f"needs {bits[held, model]:.3f} bits for a byte. The next best, the adaptive 12-gram, needs "
        f"{bits[held, ngram]:.3f}, and `xz` after the learned text {bits[held, 'xz -9e, after the learned text']:.3f}",
        f"{weights / 8e6:.1f} MB are {weights / sizes[held, BYTES]:.0f} bits",
        f"{bits[learned, model]:.3f} bits for modules that it learned from. The 12-gram, with "
        f"{bits[learned, '12-gram']:.3f} instead of {bits[held, '12-gram']:.3f}",
        f"slightly better, with {bits[jinja, ngram]:.3f} bits against {bits[jinja, model]:.3f}",
        f"needs {bits[prose, model]:.3f} bits, and `bzip2`, which knows nothing beforehand, "
        f"{bits[prose, 'bzip2 -9']:.3f}",
        f"needs {bits[shuffled, model]:.3f} bits, more than if it took all tokens to be equally probable "
        f"({bits[shuffled, 'all tokens equally probable']:.3f})",
        f"that of all held-out modules is {nats:.3f}",
    )
    assert [part for part in parts if part not in " ".join(card.split())] == []


def test_what_the_card_says_of_copying_is_what_was_measured(card, figures):
    measured = {(one.text, one.quantity): one.value for one in figures}
    cool, warm, own, shuffled = dict.fromkeys(one.text for one in figures if one.quantity in judgement.COPYING)
    longest, program = "longest copied run, largest", "texts that begin a program"
    parts = (
        f"longest copied run has {max(measured[text, longest] for text in (cool, warm)):.0f} tokens, while the longest "
        f"in the modules themselves has {measured[own, longest]:.0f}",
        f"{measured[cool, program]:.0%} of the texts begin a program, and {measured[warm, program]:.0%} at temperature "
        f"{judge.TEMPERATURES[1]}",
        f"and {measured[shuffled, program]:.0%} of the shuffled ones",
    )
    assert [part for part in parts if part not in " ".join(card.split())] == []
    assert measured[own, program] == 1


@pytest.mark.slow
def test_the_samples_of_the_card_continue_the_prompts_chosen_by_seed(card):
    found = re.findall(
        r"^Seed (\d): the first (\d+) lines, from `([^`]+)`, [^\n]*:\n\n~~~~text\n(.*?)\n~~~~$", card, re.M | re.S
    )
    assert [int(seed) for seed, *_ in found] == list(range(judge.SHOWN))
    corpus = read_corpus()
    for _, lines, module, text in found:
        prompt = "\n".join(text.split("\n")[: int(lines)])
        assert corpus.sha256 != SHA256 or prompt in corpus.held_out[module]


def test_the_command_measures_writes_and_fills_the_card(tokenizer, model, tmp_path, monkeypatch, capsys):
    held_out = {"m.py": "def f(x):\n    return 1\n\n\n" * 9}
    export(model, tokenizer, tmp_path / "model")
    card = tmp_path / "README.md"
    names = ("training", "weights", "sizes", "bits", "copying", "samples")
    card.write_text("".join(f"<!-- {name} -->\n<!-- end of {name} -->\n" for name in names))
    (tmp_path / LOG).write_text("step,tokens,learning_rate,train_loss,held_out_loss,seconds\n50,7,1,2,3,4\n")
    for name, value in {"LENGTH": 20, "CONTINUATIONS": 2, "CARD": card}.items():
        monkeypatch.setattr(judge, name, value)
    monkeypatch.setattr(judgement, "PATH", tmp_path / "judgement.csv")
    monkeypatch.setattr(judge, "required_corpus", lambda _: Corpus(MODULES, held_out, ""))
    text = judge.Text("held out", list(held_out.values()), [encode_modules(tokenizer, held_out.values())])
    monkeypatch.setattr(judge, "texts", lambda *_: [text])
    judge.main(["--folder", str(tmp_path / "model")])
    first = (tmp_path / "judgement.csv").read_text(), card.read_text()
    judge.main(["--folder", str(tmp_path / "model"), "--only-model"])
    assert ((tmp_path / "judgement.csv").read_text(), card.read_text()) == first
    assert judgement.bits_table(judgement.read_figures(tmp_path / "judgement.csv")) in card.read_text()
    assert "| all that was learned |" in capsys.readouterr().out
