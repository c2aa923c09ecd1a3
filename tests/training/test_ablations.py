"""The variants of the block that are compared, the runs that compare them, and their table."""

import csv
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from tqdm import tqdm

from attnlib.torch import CausalLM, CausalLMConfig
from training import ablations, corpus, loop
from training.ablations import SETTINGS, Ablations, Row, Text, read_table
from training.frequencies import TokenFrequencies
from training.post_norm import PostNormLayer, PostNormLM
from training.variants import MODERN, variants

V = 29
SMALL = CausalLMConfig(vocab_size=V, embed_dim=12, num_layers=2, num_heads=3, num_kv_heads=1, ff_dim=20)
QUICK = replace(SETTINGS, steps=3, batch_size=2, context=7, warmup=2, log_every=2, held_out_windows=3)


def best_rate(rows: list[Row], variant: str) -> float:
    """The learning rate that a table calls best: one below it and one above it must be worse."""
    tried = {row.learning_rate: row.nats_per_token for row in rows if row.run[:2] == ("tuning", variant)}
    return min(tried, key=tried.__getitem__)


def matrices(model: CausalLM) -> int:
    """The parameters of the layers' matrices."""
    return sum(x.numel() for x in model.layers.parameters() if x.ndim == 2)


@pytest.fixture
def small(tmp_path) -> Ablations:
    tokens = np.random.default_rng(0).integers(0, V, 90)
    text = Text(tokens, tokens[:40], bytes_per_token=2.0)
    return Ablations(text, QUICK, SMALL, tmp_path / "table.csv", tmp_path / "runs", seeds=2)


def test_the_published_variants_have_equally_many_parameters_in_the_matrices_of_their_layers():
    every = variants(MODERN, SETTINGS.context)
    models = {name: variant.new_model(variant.config) for name, variant in every.items()}
    # by hand: q and out 96·96, k and v 96·24, and three of 96·256, in each of three layers
    assert {matrices(model) for model in models.values()} == {3 * (2 * 96 * 96 + 2 * 96 * 24 + 3 * 96 * 256)}
    total = {name: sum(x.numel() for x in model.parameters()) for name, model in models.items()}
    base = total["modern"]
    assert total["learned positions"] - base == 128 * 96
    assert total["LayerNorm"] - base == 7 * 96  # the shifts of seven norms
    assert total["post-norm"] - base == -96  # no norm at the end
    assert total["all five"] - base == 128 * 96 + 6 * 96 - 96


def test_each_variant_changes_one_thing_and_the_last_all_five():
    every = variants(MODERN, SETTINGS.context)
    every.pop("modern, redrawn")
    widths = {name: variant.config.ff_dim for name, variant in every.items()}
    assert widths == {
        **dict.fromkeys(("modern", "post-norm", "LayerNorm", "learned positions"), 256),
        "GELU": 384,
        "full heads": 208,
        "all five": 312,
    }
    parts = {
        name: (v.new_model is PostNormLM, v.config.norm, v.config.gated, v.config.rope_base, v.config.num_kv_heads)
        for name, v in every.items()
    }
    modern, old = parts.pop("modern"), parts.pop("all five")
    assert all(one != other for one, other in zip(modern, old, strict=True))
    for name, part in parts.items():
        (changed,) = [n for n, (one, other) in enumerate(zip(modern, part, strict=True)) if one != other]
        assert part[changed] == old[changed], name


def test_a_post_norm_layer_computes_the_same_as_torch_s():
    config = replace(SMALL, norm="layer_norm", activation="relu", gated=False, num_kv_heads=None, rope_base=None)
    config = replace(config, qkv_bias=True, out_bias=True, ff_bias=True)
    torch.manual_seed(0)
    ours = PostNormLayer(config, 0).double()
    theirs = nn.TransformerEncoderLayer(12, 3, 20, dropout=0.0, batch_first=True, dtype=torch.float64)
    state = {name: torch.randn_like(x) for name, x in ours.state_dict().items()}
    ours.load_state_dict(state)
    joined = {
        f"self_attn.in_proj_{kind}": torch.cat([state[f"self_attn.{n}_proj.{kind}"] for n in "qkv"])
        for kind in ("weight", "bias")
    }
    renamed = {
        name.replace("ff.up_proj", "linear1").replace("ff.down_proj", "linear2"): x
        for name, x in state.items()
        if "_proj" not in name or "out_proj" in name or "ff" in name
    }
    theirs.load_state_dict(joined | renamed)
    x = torch.randn(2, 7, 12, dtype=torch.float64)
    future = torch.ones(7, 7, dtype=torch.bool).triu(1)
    torch.testing.assert_close(ours(x), theirs(x, src_mask=future), rtol=0, atol=1e-12)


def test_a_post_norm_model_is_causal_and_ends_with_the_norm_of_its_last_layer():
    torch.manual_seed(0)
    model = PostNormLM(replace(SMALL, tied=False))
    model.lm_head = nn.Identity()
    tokens = torch.tensor([[3, 1, 4, 1, 5, 9, 2]])
    x = model(tokens)
    torch.testing.assert_close(x.square().mean(-1), torch.ones(1, 7), rtol=0, atol=1e-3)
    torch.testing.assert_close(model(tokens[:, :4]), x[:, :4], rtol=0, atol=1e-6)


def test_redrawn_weights_differ_and_nothing_else_does():
    every = variants(SMALL, 7)
    assert every["modern, redrawn"].config == every["modern"].config
    models = []
    for name in ("modern", "modern, redrawn"):
        torch.manual_seed(1)
        models.append(every[name].new_model(SMALL).embed_tokens.weight)
    assert not torch.equal(*models)


@pytest.mark.slow
def test_all_runs_are_in_the_table_and_read_the_same_batches(small, monkeypatch):
    batches = {}
    draw = loop.batch

    def recorded(tokens, settings, step):
        windows = draw(tokens, settings, step)
        batches.setdefault((settings.seed, step), []).append(windows)
        return windows

    monkeypatch.setattr(loop, "batch", recorded)
    rows = small.complete()
    comparison = [row for row in rows if row.stage == "comparison"]
    assert {row.seed for row in rows if row.stage == "tuning"} == {0}
    assert sorted({(row.variant, row.seed) for row in comparison}) == sorted(
        (name, seed) for name in variants(SMALL, 7) for seed in (1, 2)
    )
    narrow = [row for row in rows if row.stage == "small weights"]
    assert [(row.variant, row.seed) for row in narrow] == [("modern", 1), ("GELU", 1), ("modern", 2), ("GELU", 2)]
    assert {row.initial_std for row in narrow} == {0.02}
    for row in comparison + narrow:
        assert row.learning_rate == best_rate(rows, row.variant.partition(",")[0])
    for windows in batches.values():
        assert all(torch.equal(windows[0], other) for other in windows)
    assert not list(small.folder.iterdir())


def test_a_row_holds_what_the_model_was_measured_to_have(small):
    row = small._train(ablations.Run("comparison", "GELU", 2, 4e-3, 0.3))
    settings = replace(QUICK, seed=2, peak=4e-3)
    config = variants(SMALL, 7)["GELU"].config
    spreads = []

    def new_model(config):
        model = loop.initialized(CausalLM(config), 0.3)
        spreads.extend(
            float(x.detach().std()) for name, x in model.named_parameters() if "embed" in name or "up_proj" in name
        )
        return model

    model = loop.train(config, small.text.learned, small.text.held_out, settings, small.folder / "again", new_model)
    assert spreads == pytest.approx([0.3] * 3, rel=0.15)
    nats = loop.held_out_loss(model, small.text.held_out, settings)
    assert row.nats_per_token == nats
    assert row.bits_per_byte == pytest.approx(nats / math.log(2) / 2)
    assert row.parameters == sum(x.numel() for x in model.parameters())
    assert torch.__version__ in row.versions


@pytest.mark.slow
def test_a_stopped_comparison_goes_on_where_it_was(small, monkeypatch):
    small, step, calls = replace(small, seeds=1), loop._step, []

    def dies(*arguments):
        calls.append(1)
        if len(calls) == 11:  # in the fourth run, whose checkpoint has no step yet
            raise KeyboardInterrupt
        return step(*arguments)

    monkeypatch.setattr(loop, "_step", dies)
    with pytest.raises(KeyboardInterrupt):
        small.complete()
    before = small.table.read_text()
    assert len(read_table(small.table)) == 4  # three runs, and the control
    calls.clear()
    monkeypatch.setattr(loop, "_step", lambda *arguments: calls.append(1) or step(*arguments))
    rows = small.complete()
    assert small.table.read_text().startswith(before)
    assert len(calls) == sum(row.steps for row in rows) - 3 * 3
    calls.clear()
    assert small.complete() == rows
    assert not calls


def test_frequencies_are_counted_and_predict_the_same_everywhere():
    model = TokenFrequencies(np.array([2, 0, 2]), 3)
    probabilities = model(torch.tensor([[0, 1], [2, 1]])).softmax(-1)
    by_hand = torch.tensor([2 / 6, 1 / 6, 3 / 6], dtype=torch.float64)
    torch.testing.assert_close(probabilities, by_hand.expand(2, 2, 3), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("lowest", "tried"), [(4e-3, 3), (1.6e-3, 4), (1e-3, 5), (2e-2, 5), (9.0, 6)])
def test_a_rate_at_the_edge_of_those_tried_is_not_yet_the_best(small, monkeypatch, lowest, tried):
    runs = []

    def loss(_, run):
        runs.append(run.learning_rate)
        return Row(*run, 3, 5, abs(math.log(run.learning_rate / lowest)), 1.0, 0.0, "")

    monkeypatch.setattr(Ablations, "_train", loss)
    best = small._best_rate("GELU", tqdm(total=0, disable=True))
    assert len(runs) == tried
    assert best == min(runs, key=lambda rate: abs(math.log(rate / lowest)))


def test_the_mean_number_of_bytes_is_that_of_the_held_out_text():
    text = ablations.tokens_of(corpus.Corpus({"a": "aaaa bbbb"}, {"b": "ä", "c": "xyz"}, ""), 257)
    # no merges fit into 257: two bytes and three, and END before, between and after
    assert len(text.held_out) == 8
    assert text.bytes_per_token == 5 / 8


def test_the_published_table_is_complete_and_was_made_with_these_settings():
    rows = read_table(ablations.TABLE)
    with ablations.TABLE.open(encoding="utf-8", newline="") as file:
        assert next(csv.reader(file)) == list(Row._fields)
    names = set(variants(MODERN, SETTINGS.context))
    seeds = {row.seed for row in rows if row.stage == "comparison"}
    assert len(seeds) >= 4
    assert ablations.TUNING_SEED not in seeds
    assert len(rows) == len({row.run for row in rows})
    assert {(row.variant, row.seed) for row in rows if row.stage == "comparison"} == {
        (name, seed) for name in names for seed in seeds
    }
    assert {(row.variant, row.seed) for row in rows if row.stage == "small weights"} == {
        (name, seed) for name in ablations.SMALL for seed in seeds
    }
    for row in rows:
        assert row.steps == (0 if row.stage == "control" else SETTINGS.steps)
        if row.stage in ("comparison", "small weights"):
            assert row.learning_rate == best_rate(rows, ablations.RATE_OF.get(row.variant, row.variant))
