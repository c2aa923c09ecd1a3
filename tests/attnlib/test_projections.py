"""The linear layers of an attention layer or a block may be replaced: only their outputs matter."""

import copy
from functools import partial

import numpy as np
import pytest
import torch
from backends import B, S, T
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


class Int8(torch.Tensor):
    """A weight that only a linear layer understands, like a sharded or quantized tensor."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        """Multiply by the weight times 1/64; its other attributes are those of the integers."""
        if function is nn.functional.linear:
            x, weight, bias = args
            return function(x, weight.as_subclass(torch.Tensor).to(x.dtype) / 64, bias)
        return super().__torch_function__(function, types, args, kwargs or {})


def rounded(linear):
    """Round a layer's weights to multiples of 1/64, and return them as int8."""
    linear.weight.data = (linear.weight.data * 64).round() / 64
    return (linear.weight.data * 64).to(torch.int8)


def patch(linear):
    """Replace the forward of a linear layer, whose weight is a placeholder from now on."""
    weight, bias = linear.weight.data, linear.bias
    linear.forward = lambda x: x @ weight.T + bias
    linear.weight = nn.Parameter(torch.empty(0, dtype=torch.bfloat16))


def quantize(linear):
    """Replace the weight by integers, and the forward by one that multiplies them by their scale."""
    linear.weight = nn.Parameter(rounded(linear), requires_grad=False)
    linear.forward = lambda x: x @ (linear.weight.to(x.dtype) / 64).T + linear.bias


def subclass(linear):
    """Replace the weight by a tensor that has a linear product of its own."""
    linear.weight = nn.Parameter(rounded(linear).as_subclass(Int8), requires_grad=False)


def offload(linear):
    """Keep the parameters elsewhere: they are on meta, except during a call."""
    kept = dict(linear.named_parameters())
    away = {name: nn.Parameter(torch.empty_like(p, device="meta")) for name, p in kept.items()}

    def use(parameters, *_):
        for name, parameter in parameters.items():
            setattr(linear, name, parameter)

    use(away)
    linear.register_forward_pre_hook(partial(use, kept))
    linear.register_forward_hook(partial(use, away))


CHANGES = {"forward": patch, "int8": quantize, "subclass": subclass, "offloaded": offload}
MODULES = {
    "MultiHeadAttention": (E, HEADS),
    "TransformerBlock": (E, HEADS, FF),
    "DecoderBlock": (E, HEADS, FF),
    "Encoder": (E, HEADS, FF, 2),
    "Decoder": (E, HEADS, FF, 2),
}


def changed(name, change):
    """A module in which all linear layers have been changed, and one that computes the same."""
    torch.manual_seed(3)
    module = getattr(attnlib.torch, name)(*MODULES[name])
    if change in (quantize, subclass):
        for linear in linears(module):
            rounded(linear)
    plain = copy.deepcopy(module)
    for linear in linears(module):
        change(linear)
    return module, plain


def linears(module):
    return [part for part in module.modules() if isinstance(part, nn.Linear)]


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


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("name", MODULES)
def test_weights_may_be_anywhere_and_anything_until_the_call(x, name, change):
    module, plain = changed(name, change)
    memory = torch.randn(B, S, E, generator=torch.Generator().manual_seed(4))
    for inputs in ((x, memory),) if "Decoder" in name else ((x,), (x, memory)):
        torch.testing.assert_close(module(*inputs), plain(*inputs))


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("change", [subclass, offload])
def test_an_input_of_another_dtype_or_library_is_still_refused_by_name(x, name, change):
    module, _ = changed(name, change)
    for other, wanted in (
        (x.double(), "float64.* has torch.float32"),
        (x.numpy(), "numpy.ndarray but .* torch.Tensor"),
    ):
        with pytest.raises(TypeError, match=f"query .*{wanted}") as caught:
            module(other, other)
        assert caught.value.__cause__ is not None  # what torch said


@pytest.mark.parametrize("name", PROJECTIONS)
def test_a_projection_that_fails_by_itself_is_heard(attend, x, name):
    error = RuntimeError("the file with the weights is gone")

    def fail(*_):
        raise error

    for part in (getattr(attend, name), nn.Identity()):  # with parameters, and without
        setattr(attend, name, part)
        part.register_forward_pre_hook(fail)
        with pytest.raises(RuntimeError) as caught:
            attend(x)
        assert caught.value is error


def test_parameters_of_which_one_fits_are_not_blamed(attend, x):
    attend.k_proj = LowRank(attend.k_proj.double())
    with pytest.raises(RuntimeError, match="dtype"):
        attend(x)


@pytest.mark.parametrize("name", PROJECTIONS)
def test_the_projection_whose_parameters_differ_is_named(attend, x, name):
    getattr(attend, name).double()
    argument = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "context"}[name]
    with pytest.raises(TypeError, match=rf"{argument} has dtype torch.float32 but {name}.weight has torch.float64"):
        attend(x)


@pytest.mark.parametrize("name", ["norm1", "norm2", "linear1", "linear2"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_part_of_a_block_whose_parameters_differ_is_named(x, name, norm):
    block = attnlib.torch.TransformerBlock(E, HEADS, FF, norm=norm)
    getattr(block, name).double()
    with pytest.raises(TypeError, match=rf"has dtype torch.float32 but {name}.weight has torch.float64"):
        block(x)


def test_a_tensor_on_meta_needs_weights_on_meta(x):
    attend = attnlib.torch.MultiHeadAttention(E, HEADS, bias=False)  # torch itself would multiply
    with pytest.raises(ValueError, match=r"query is on meta but q_proj.weight is on cpu: use layer.to"):
        attend(x.to("meta"))
    assert attend.to("meta")(x.to("meta")).is_meta


class Widening(attnlib.numpy.Module):
    """A norm that computes in float32 and does not cast back."""

    def forward(self, x):
        """Cast the vectors."""
        return x.astype(np.float32)


def test_a_norm_that_widens_does_not_upcast_a_block(x):
    block = attnlib.numpy.TransformerBlock(E, HEADS, FF)
    block.norm1 = block.norm2 = Widening()
    half = x.numpy().astype(np.float16)
    with pytest.raises(TypeError, match=r"query has dtype float16 but q_proj.weight has float32"):
        block(half)
    block = attnlib.torch.TransformerBlock(E, HEADS, FF)
    block.norm1.register_forward_pre_hook(lambda _, inputs: inputs[0].float())
    with pytest.raises(TypeError, match=r"query has dtype torch.float16 but q_proj.weight has torch.float32"):
        block(x.half())


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
