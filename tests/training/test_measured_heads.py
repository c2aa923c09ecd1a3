"""How heads of a language model are scored, taken out and compared."""

import numpy as np
import pytest
import stdlib_lm
import torch
from torch.nn import functional as F

from attnlib.torch import CausalLM, CausalLMConfig
from training import heads
from training.code_patterns import KINDS, Places, Windows, cut, held_out_halves
from training.vocabulary import train_tokenizer

V, L, H, D = 700, 2, 3, 4
CONFIG = CausalLMConfig(vocab_size=V, embed_dim=12, num_layers=L, num_heads=H, num_kv_heads=1, ff_dim=20)


@pytest.fixture(scope="module")
def model() -> CausalLM:
    torch.manual_seed(3)
    return CausalLM(CONFIG)


@pytest.fixture(scope="module")
def halves() -> tuple[Windows, Windows]:
    texts = [half[0] for half in held_out_halves()]
    tokenizer = train_tokenizer(texts, V)
    search, test = (cut([text[:6000]], tokenizer, 128) for text in texts)
    return search, test


def attended(model, windows):
    with torch.inference_mode():
        weights = model(torch.from_numpy(windows.tokens), need_weights=True)[1]
    return torch.stack(weights, 1).numpy()  # (W, L, H, T, T)


def test_weights_are_read_at_the_targets_and_elsewhere(model, halves):
    windows, _ = halves
    weights, T = attended(model, windows), windows.tokens.shape[1]
    places = windows.places["name"]
    target, control = heads.weights_at(model, windows, seed=5)["name"]
    keys = heads.elsewhere(places, T, seed=5)
    for n, (query, key, other) in enumerate(zip(*places, keys, strict=True)):
        where = query // T
        np.testing.assert_allclose(target[n], weights[where, :, :, query % T, key % T], atol=1e-6)
        np.testing.assert_allclose(control[n], weights[where, :, :, query % T, other % T], atol=1e-6)


def test_the_control_is_as_far_back_as_the_target_of_another_place():
    query = np.array([5, 9, 19, 27, 39])
    places = Places(query, query - [2, 7, 1, 4, 7])
    drawn = np.array([query - heads.elsewhere(places, 10, seed) for seed in range(60)])
    assert [set(column.tolist()) for column in drawn.T] == [{1, 4}, {1, 2, 4}, {2, 4, 7}, {1, 2, 7}, {1, 2, 4}]


def test_losses_are_those_of_the_next_tokens(model, halves):
    tokens = torch.from_numpy(halves[0].tokens)
    with torch.inference_mode():
        p = F.softmax(model(tokens).double(), -1)
    expected = -np.log(np.take_along_axis(p[:, :-1].numpy(), tokens[:, 1:, None].numpy(), -1)[..., 0])
    np.testing.assert_allclose(heads.token_losses(model, halves[0].tokens), expected, atol=1e-5)


def test_zeros_do_what_ablate_and_zeroed_columns_do(model, halves):
    tokens, intact = halves[0].tokens, heads.token_losses(model, halves[0].tokens)
    with heads.replaced(model, [(1, 2), (0, 0)]):
        replaced = heads.token_losses(model, tokens)
    model.layers[1].self_attn.ablate(2)
    model.layers[0].self_attn.ablate(0)
    ablated = heads.token_losses(model, tokens)
    model.layers[1].self_attn.ablate()
    model.layers[0].self_attn.ablate()
    other = CausalLM(CONFIG)
    other.load_state_dict(model.state_dict())
    with torch.no_grad():
        other.layers[1].self_attn.out_proj.weight[:, 2 * D :] = 0
        other.layers[0].self_attn.out_proj.weight[:, :D] = 0
    # In float32, neighbouring numbers near 14 are 1e-6 apart.
    np.testing.assert_allclose(replaced, ablated, atol=1e-5)
    np.testing.assert_allclose(replaced, heads.token_losses(other, tokens), atol=1e-5)
    assert np.abs(replaced - intact).max() > 1e-3
    np.testing.assert_array_equal(heads.token_losses(model, tokens), intact)  # nothing remains afterwards


def test_the_mean_of_a_head_is_that_of_its_weighted_values(model, halves):
    tokens = halves[0].tokens
    read = torch.from_numpy(tokens[:, :-1])  # what is read when losses are computed
    layer = model.layers[0]
    with torch.inference_mode():
        values = layer.self_attn.v_proj(layer.norm1(model.embed_tokens(read)))  # (W, T, D): one head of values
        weights = model(read, need_weights=True)[1][0]  # (W, H, T, T)
    expected = torch.einsum("whts,wsd->hd", weights, values) / read.numel()
    means = heads.mean_outputs(model, tokens)
    assert means.shape == (L, H, D)
    np.testing.assert_allclose(means[0], expected.numpy(), atol=1e-6)


def test_the_mean_is_handed_over_at_each_position(model, halves):
    tokens = halves[0].tokens
    constant = np.arange(L * H * D, dtype=np.float32).reshape(L, H, D)
    seen = []
    with heads.replaced(model, [(1, 0), (1, 2)], constant):
        hook = model.layers[1].self_attn.out_proj.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        heads.token_losses(model, tokens[:1])
        hook.remove()
    context = seen[0].reshape(-1, H, D).numpy()
    assert (context[:, [0, 2]] == constant[1, [0, 2]]).all()
    assert (context[:, 1] != constant[1, 1]).any()


def test_each_loss_belongs_to_its_kinds_or_to_the_others(halves):
    windows, groups = halves[0], heads.masks(halves[0])
    T = windows.tokens.shape[1]
    assert [*groups] == [*KINDS, "other"]
    for kind in KINDS:
        assert groups[kind].sum() == len(set(windows.places[kind].query))
    query = int(windows.places["quote"].query[0])
    assert groups["quote"][query // T, query % T]
    assert (groups["other"] == ~np.any([groups[kind] for kind in KINDS], axis=0)).all()


def test_intervals_resample_lines_and_not_tokens():
    values = np.array([0.0, 0, 0, 4])
    assert heads.mean_and_interval(values, np.array([7, 7, 7, 7])) == (1, 1, 1)  # one line: nothing else can be drawn
    assert heads.mean_and_interval(values, np.array([7, 7, 7, 9])) == (1, 0, 4)
    rng = np.random.default_rng(2)
    of_lines = rng.normal(0.5, 2, 900)
    mean, low, high = heads.mean_and_interval(np.repeat(of_lines, 3), np.repeat(np.arange(900), 3))
    assert mean == pytest.approx(of_lines.mean())
    assert high - low == pytest.approx(2 * 1.96 * of_lines.std() / 30, rel=0.1)


def test_the_best_heads_come_first_and_are_named_in_order():
    margin = np.array([[0.1, 0.9, 0.2], [0.8, 0.0, 0.3]])
    assert heads.best(margin, 3) == [(0, 1), (1, 0), (1, 2)]
    assert heads.name([(1, 2), (0, 1), (1, 0)]) == "0.1 1.0 1.2"


@pytest.mark.slow
def test_each_head_and_each_set_is_measured(model, halves):
    search, test = halves
    rows = list(heads.measure(model, search, test))
    intact, groups = heads.token_losses(model, test.tokens), heads.masks(test)
    singles = {row["heads"] for row in rows if row["method"] == "zero" and " " not in row["heads"]}
    assert singles == {f"{layer}.{head}" for layer in range(L) for head in range(H)}
    sets = [row for row in rows if row["heads"].count(" ") == 2 and row["tokens"] == "other"]
    assert len(sets) == len(KINDS) + heads.RANDOM_SETS
    with heads.replaced(model, [(1, 1)]):
        rise = heads.token_losses(model, test.tokens) - intact
    (row,) = [row for row in rows if (row["method"], row["heads"], row["tokens"]) == ("zero", "1.1", "name")]
    assert float(row["rise"]) == pytest.approx(rise[groups["name"]].mean(), abs=2e-5)
    assert float(row["low"]) <= float(row["rise"]) <= float(row["high"])
    assert float(row["loss"]) == pytest.approx((intact + rise)[groups["name"]].mean(), abs=2e-5)


@pytest.mark.slow
def test_the_published_table_is_that_of_the_published_model():
    rows = heads.read_table()
    model, tokenizer = heads.load(stdlib_lm.FOLDER)
    _, test = (cut(texts, tokenizer) for texts in held_out_halves())
    losses = heads.token_losses(model, test.tokens)
    measured = {tokens: row["loss"] for (method, _, tokens), row in rows.items() if method == "none"}
    assert measured == pytest.approx({kind: losses[mask].mean() for kind, mask in heads.masks(test).items()}, abs=1e-3)
    singles = {taken for method, taken, _ in rows if method == "zero" and " " not in taken}
    assert len(singles) == model.config.num_layers * model.config.num_heads
