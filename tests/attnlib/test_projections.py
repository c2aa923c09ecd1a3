"""The four projections of an attention layer may be replaced: only what comes out of them is looked at."""

import copy

import numpy as np
import pytest
import torch
from backends import B, T
from modules import FF, HEADS, E, W
from numpy.testing import assert_allclose
from torch import nn

import attnlib.numpy
import attnlib.torch

PROJECTIONS = ("q_proj", "k_proj", "v_proj", "out_proj")


class LowRank(nn.Module):
    """A frozen linear layer and what is trained beside it, as adapters wrap them."""

    def __init__(self, base):
        super().__init__()
        self.base = base
        self.down, self.up = nn.Linear(E, 2, bias=False), nn.Linear(2, E, bias=False)

    def forward(self, x):
        """Add the two."""
        return self.base(x) + self.up(self.down(x))


class Doubled(attnlib.numpy.Module):
    """Twice a layer, without a weight of its own name."""

    def __init__(self, base):
        self.base = base

    def forward(self, x):
        """Double it."""
        return 2 * self.base(x)


@pytest.fixture
def attend():
    torch.manual_seed(0)
    return attnlib.torch.MultiHeadAttention(E, HEADS)


@pytest.fixture
def x():
    return torch.randn(B, T, E, generator=torch.Generator().manual_seed(1))


def test_an_adapter_is_its_sum_of_two_matrices(attend, x):
    merged = copy.deepcopy(attend)
    for name in PROJECTIONS:
        wrapper = LowRank(getattr(attend, name))
        setattr(attend, name, wrapper)
        getattr(merged, name).weight.data += wrapper.up.weight @ wrapper.down.weight
    torch.testing.assert_close(attend(x, is_causal=True), merged(x, is_causal=True))
    block = attnlib.torch.TransformerBlock(E, HEADS, FF)
    block.self_attn = attend
    assert block(x).shape == x.shape


def test_layers_in_a_row_and_no_layer_at_all_are_projections(attend, x):
    wanted = attend(x)
    attend.q_proj = nn.Sequential(attend.q_proj, nn.Identity())
    torch.testing.assert_close(attend(x), wanted)
    attend.v_proj = attend.out_proj = nn.Identity()
    context, weights = attend(x, need_weights=True)
    by_hand = [weights[:, h] @ x[..., h * W : (h + 1) * W] for h in range(HEADS)]
    torch.testing.assert_close(context, torch.cat(by_hand, -1))


@pytest.mark.filterwarnings("ignore:torch.ao.quantization is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor:UserWarning")
@pytest.mark.parametrize("name", ["MultiHeadAttention", "Encoder"])
def test_quantized_projections_come_close(x, name):
    torch.manual_seed(2)
    module = getattr(attnlib.torch, name)(E, HEADS, *((FF, 2) if name == "Encoder" else ()))
    quantized = torch.ao.quantization.quantize_dynamic(module.eval(), {nn.Linear})
    assert not isinstance(next(m for n, m in quantized.named_modules() if n.endswith("q_proj")), nn.Linear)
    assert 0 < (quantized(x) - module(x)).abs().max() < 0.1


def test_a_parametrized_weight_is_used(attend, x):
    wanted = attend(x)
    nn.utils.parametrizations.weight_norm(attend.q_proj)
    torch.testing.assert_close(attend(x), wanted)


def test_a_projection_of_numpy_may_be_replaced_too(x):
    attend, x = attnlib.numpy.MultiHeadAttention(E, HEADS), x.numpy()
    wanted = attend(x)
    attend.out_proj = Doubled(attend.out_proj)
    assert_allclose(attend(x), 2 * wanted, rtol=1e-6)


@pytest.mark.parametrize("name", ["q_proj", "k_proj", "v_proj"])
@pytest.mark.parametrize("width", [E - 1, E + W])
def test_an_output_of_another_width_is_refused_by_name(attend, x, name, width):
    setattr(attend, name, nn.Linear(E, width))
    with pytest.raises(ValueError, match=rf"{name} turned .* into \({B}, {T}, {width}\).*\({B}, {T}, {E}\) is needed"):
        attend(x)


def test_numpys_layers_refuse_it_too(x):
    attend = attnlib.numpy.MultiHeadAttention(E, HEADS)
    attend.k_proj = attnlib.numpy.Linear(E, E - W)
    with pytest.raises(ValueError, match=rf"k_proj turned .* into .*{E - W}\).* is needed: {HEADS} heads of D={W}"):
        attend(np.asarray(x))


@pytest.mark.parametrize("width", [1, W])
def test_an_output_of_another_width_is_not_broadcast(attend, x, width):
    attend.out_proj = nn.Linear(E, width)
    with pytest.raises(ValueError, match=rf"out_proj turned .* into \({B}, {T}, {width}\).* is needed: embed_dim"):
        attend(x)


def test_a_projection_that_returns_no_array_is_named(attend, x):
    attend.v_proj = nn.LSTM(E, E, batch_first=True)
    with pytest.raises(ValueError, match=r"v_proj turned .* into a tuple"):
        attend(x)
