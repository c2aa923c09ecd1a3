"""scaled_dot_product_attention of torch: gradients, transforms, compilers, one fused operation, no other device."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from backends import D_V, B, D, H, OnMeta, S, T, Torch
from fake_cuda import waits_are_errors
from oracle import attend
from sdpa_cases import ALL, INF, NOTHING, QKV, WAYS, empty_rows, forbidden_rows, heads, on, random_mask
from torch.autograd import forward_ad
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from attnlib import scaled_dot_product_attention as sdpa
from attnlib import scaled_dot_product_attention_backward as sdpa_backward

MANY = 19  # keys: with fewer than 16, torch's kernel for the CPU needs a mask to notice a nan

# Long heads, some rows of one at a time


@pytest.fixture
def one_core():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.parametrize("lead", [(), (H,), (B, H), (2, B, H)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.usefixtures("one_core")
def test_long_heads_one_by_one_are_the_oracle(rng, monkeypatch, lead, dtype):
    monkeypatch.setattr("attnlib._torch_unfused.MIN_SCORES_FOR_LOOP", T * S)
    monkeypatch.setattr("attnlib._torch_unfused.ROWS_PER_BLOCK", 2)
    q, k, v = (rng.standard_normal((*lead, n, width)) for n, width in ((T, D), (S, D), (S, D_V)))
    as_cut = [torch.tensor(x, dtype=dtype) for x in (q, k, v)]
    if lead:  # heads cut from wide vectors do not lie together
        as_cut = [x.transpose(-3, -2).contiguous().transpose(-3, -2) for x in as_cut]
    kept = [x.clone() for x in as_cut]
    with torch.no_grad():
        seen = operations(sdpa, *as_cut, return_weights=True, scale=0.3)
        context, weights = sdpa(*as_cut, return_weights=True, scale=0.3)
    wanted = attend(q, k, v, scale=0.3)
    close = {"rtol": 0, "atol": 1e-5 if dtype == torch.float32 else 1e-12}
    np.testing.assert_allclose(context, wanted.context, **close)
    np.testing.assert_allclose(weights, wanted.weights, **close)
    parts = int(np.prod(lead)) * -(-T // 2)
    assert seen.names.count("addmm") == seen.names.count("mm") == parts, "no product of all heads at once"
    assert all(torch.equal(x, y) for x, y in zip(as_cut, kept, strict=True))


@pytest.mark.parametrize("followed", ["autograd", "autocast", "half", "grouped"])
@pytest.mark.usefixtures("one_core")
def test_heads_are_not_taken_one_by_one_where_somebody_would_notice(rng, monkeypatch, followed):
    monkeypatch.setattr("attnlib._torch_unfused.MIN_SCORES_FOR_LOOP", 1)
    dtype = torch.bfloat16 if followed == "half" else torch.float32
    q, k, v = (torch.tensor(rng.standard_normal((6, n, D)), dtype=dtype) for n in (T, S, S))
    if followed == "grouped":
        k, v = k[:2], v[:2]
    with torch.set_grad_enabled(followed == "autograd"), torch.autocast("cpu", enabled=followed == "autocast"):
        seen = operations(sdpa, q, k, v, return_weights=True, enable_gqa=followed == "grouped")
    assert not {"mm", "addmm"} & set(seen.names)


# Few scores, with their weights


@pytest.mark.parametrize("causal", [False, True])
def test_weights_of_few_scores_take_few_operations(rng, causal):
    q, k, v = (torch.tensor(rng.standard_normal((B, H, n, D))) for n in (T, S, S))
    sdpa(q, k, v)  # the first call of all imports the kernels, and checks its arguments
    names = operations(sdpa, q, k, v, is_causal=causal, return_weights=True).names
    views = {"expand", "view", "transpose", "_unsafe_view"}
    mask = ["new_ones", "triu_", "masked_fill"] if causal else []
    assert [name for name in names if name not in views] == ["mul", "bmm", *mask, "_softmax", "bmm"]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("length", [1, S])
def test_weights_of_few_scores_are_those_of_many(rng, monkeypatch, causal, dtype, length):
    arrays = [torch.tensor(rng.standard_normal((B, H, n, D)), dtype=dtype) for n in (T, length, length)]

    def results():
        inputs = [x.clone().requires_grad_() for x in arrays]
        out, weights = sdpa(*inputs, is_causal=causal, return_weights=True)
        return out, weights, *torch.autograd.grad((out * arrays[0]).sum() + weights.square().sum(), inputs)

    few = results()
    monkeypatch.setattr("attnlib._torch_unfused.MIN_SCORES_FOR_LOOP", 0)
    torch.testing.assert_close(few, results())


@pytest.mark.parametrize("shape", [(0, H, T, D), (B, H, 0, D), (B, H, T, 0)], ids=str)
@pytest.mark.parametrize("causal", [False, True])
def test_weights_of_no_scores_have_their_shape(shape, causal):
    x = torch.ones(shape)
    out, weights = sdpa(x, x, x, is_causal=causal, return_weights=True)
    assert (tuple(out.shape), tuple(weights.shape)) == (shape, (*shape[:3], shape[2]))


def test_weights_across_devices_are_refused_with_the_line_that_works():
    x = torch.ones(B, H, T, D)
    with pytest.raises(ValueError, match=r"key\.to\(query\.device\)"):
        sdpa(x, x.to("meta"), x.to("meta"), return_weights=True)


# Gradients


FORWARD = {
    "fused": (QKV, {}),
    "causal": (QKV, {"is_causal": True}),
    "causal with an empty row": (QKV, {"is_causal": True, "q_offset": -1}),
    "bool mask": (QKV, {"attn_mask": empty_rows("bool")}),
    "float mask": (QKV, {"attn_mask": empty_rows("float")}),
    "window": (QKV, {"window": (1, 0), "q_offset": 3}),
    "weights": (QKV, {"attn_mask": empty_rows("bool"), "return_weights": True}),
    "weights, causal": (QKV, {"is_causal": True, "q_offset": -1, "return_weights": True}),
    "softcap": (QKV, {"attn_mask": empty_rows("float"), "softcap": 2.0}),
    "grouped": (heads(6, 2, 2), {"attn_mask": empty_rows("bool"), "enable_gqa": True}),
    "grouped weights": (heads(6, 2, 2), {"attn_mask": empty_rows("bool"), "enable_gqa": True, "return_weights": True}),
    "lse": (QKV, {"attn_mask": np.tri(T, S, 0, dtype=bool), "return_lse": True}),
    "all": (QKV, {"attn_mask": np.tri(T, S, 0, dtype=bool), "is_causal": True, "softcap": 2.0, **ALL}),
    "values of another batch": (((H, T, D), (H, S, D), (B, H, S, D_V)), {"is_causal": True}),
    "two dimensions": (((T, D), (S, D), (S, D_V)), {"attn_mask": empty_rows("bool")}),
}
every_forward = pytest.mark.parametrize("what", FORWARD)


def as_torch(options):
    return {name: torch.tensor(x) if isinstance(x, np.ndarray) else x for name, x in options.items()}


def small(what, rng, dtype=torch.float64):
    """Queries, keys and values of narrow widths, on the CPU, and the options."""
    shapes, options = FORWARD[what]
    narrow = [(*shape[:-1], 2 + (shape[-1] == D_V)) for shape in shapes]
    return [torch.tensor(rng.standard_normal(shape), dtype=dtype) for shape in narrow], as_torch(options)


@pytest.mark.slow
@every_forward
def test_the_gradient_is_the_numerical_one(rng, what):
    inputs, options = small(what, rng)
    inputs = [x[:1] if x.ndim == 4 else x for x in inputs]
    for x in inputs:
        x.requires_grad_()
    assert torch.autograd.gradcheck(lambda *x: sdpa(*x, **options), inputs)


@pytest.mark.parametrize("what", NOTHING)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64"])
def test_a_query_that_may_attend_to_nothing_has_gradient_0_and_spoils_no_other(rng, what, way, dtype):
    options = NOTHING[what] | WAYS[way]
    backend = Torch("cpu")
    inputs = [backend.array(rng.standard_normal(shape), dtype).requires_grad_() for shape in QKV]
    results = sdpa(*inputs, **{name: on(backend, x, dtype) for name, x in options.items()})
    results = results if isinstance(results, tuple) else (results,)
    sum((x.float().masked_fill(x == -INF, 0.0) ** 2).sum() for x in results).backward()
    for x in inputs:
        assert x.grad.isfinite().all()
    nothing = torch.tensor(forbidden_rows(options))
    assert (inputs[0].grad[:, :, nothing] == 0).all()


@pytest.mark.parametrize("way", WAYS)
def test_a_float_mask_has_a_gradient_too(rng, way):
    q, k, v = (torch.tensor(rng.standard_normal(shape)) for shape in ((T, 2), (S, 2), (S, 3)))
    mask = torch.tensor(rng.standard_normal((T, S)), requires_grad=True)
    assert torch.autograd.gradcheck(lambda mask: sdpa(q, k, v, mask, **WAYS[way]), mask)


def test_keys_for_an_empty_batch_have_gradient_0_where_autograd_follows():
    q, k, v = (torch.ones(shape, requires_grad=True) for shape in ((0, T, D), (1, S, D), (S, D_V)))
    gradients = sdpa_backward(torch.ones(0, T, D_V), q, k, v)
    for x, grad in zip((q, k, v), gradients, strict=True):
        torch.testing.assert_close(grad, torch.zeros_like(x))


# Transforms


@every_forward
def test_vmap_is_a_loop(rng, what):
    (q, k, v), options = small(what, rng)
    batches = [torch.stack([x, 2 * x, -x]) for x in (q, k)]
    ours = torch.func.vmap(lambda q, k: sdpa(q, k, v, **options))(*batches)
    loop = [sdpa(q, k, v, **options) for q, k in zip(*batches, strict=True)]
    if not isinstance(ours, tuple):
        ours, loop = (ours,), [(x,) for x in loop]
    for mine, theirs in zip(ours, zip(*loop, strict=True), strict=True):
        torch.testing.assert_close(mine, torch.stack(theirs))


def test_vmap_over_masks_is_a_loop(rng):
    q, k, v = (torch.tensor(rng.standard_normal(shape)) for shape in ((H, T, D), (H, S, D), (H, S, D_V)))
    masks = torch.tensor(rng.random((B, T, S)) < 0.5)
    masks[0, 1] = False
    for wanted in ({}, {"return_weights": True}, {"softcap": 2.0}):
        ours = torch.func.vmap(lambda mask, wanted=wanted: sdpa(q, k, v, mask, **wanted))(masks)
        loop = [sdpa(q, k, v, mask, **wanted) for mask in masks]
        ours, loop = (ours, loop) if isinstance(ours, tuple) else ((ours,), [(x,) for x in loop])
        for mine, theirs in zip(ours, zip(*loop, strict=True), strict=True):
            torch.testing.assert_close(mine, torch.stack(theirs))


@pytest.mark.parametrize("argument", range(3))
@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")  # which torch's own rules use
@pytest.mark.usefixtures("one_core")
def test_long_heads_may_be_followed_through_any_argument_while_autograd_is_off(rng, monkeypatch, argument):
    monkeypatch.setattr(
        "attnlib._torch_unfused.MIN_SCORES_FOR_LOOP", 1
    )  # from which on a loop over the heads writes into arrays
    inputs = [torch.tensor(rng.standard_normal(shape)) for shape in ((H, T, D), (H, S, D), (H, S, D_V))]
    x = inputs[argument]

    def weigh(x):
        return sdpa(*inputs[:argument], x, *inputs[argument + 1 :], return_weights=True)

    with torch.no_grad(), forward_ad.dual_level():
        for mine, *theirs in zip(torch.func.vmap(weigh)(torch.stack([x, -x])), weigh(x), weigh(-x), strict=True):
            torch.testing.assert_close(mine, torch.stack(theirs))
        context, weights = (forward_ad.unpack_dual(y).tangent for y in weigh(forward_ad.make_dual(x, x)))
    _, (expected, of_weights) = torch.func.jvp(weigh, (x,), (x,))
    torch.testing.assert_close(context, expected)
    assert weights is None if argument == 2 else torch.equal(weights, of_weights)


FORWARD_MODE = {
    "plain": {}, "causal": {"is_causal": True}, "a mask": {"attn_mask": torch.ones(T, MANY, dtype=torch.bool).tril(3)},
    "a window": {"window": (2, 1)}, "a scale": {"scale": 0.4},
}  # fmt: skip


@pytest.mark.parametrize("options", FORWARD_MODE.values(), ids=FORWARD_MODE)
@pytest.mark.parametrize("keys", [S, MANY])
@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")  # which torch's own rules use
def test_forward_mode_gives_the_derivative_along_a_line(rng, options, keys):
    shapes, step = ((B, H, T, D), *[(B, H, keys, D)] * 2), 1e-5  # of equal widths, for which torch has a fused kernel
    inputs, ways = ([torch.tensor(rng.standard_normal(shape)) for shape in shapes] for _ in range(2))
    options = {name: x[:, :keys] if name == "attn_mask" else x for name, x in options.items()}

    def at(t):
        return sdpa(*(x + t * way for x, way in zip(inputs, ways, strict=True)), **options)

    here, slope = torch.func.jvp(at, (torch.tensor(0.0),), (torch.tensor(1.0),))
    torch.testing.assert_close(here, at(0.0), rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(slope, (at(step) - at(-step)) / (2 * step), rtol=0, atol=1e-8)
    with forward_ad.dual_level():
        again = forward_ad.unpack_dual(at(forward_ad.make_dual(torch.tensor(0.0), torch.tensor(1.0)))).tangent
    torch.testing.assert_close(again, slope)


@pytest.mark.filterwarnings("ignore:`torch.jit.script:DeprecationWarning")  # which torch's own rules use
def test_the_hessian_is_that_of_torch_s_unfused_kernel(rng):
    q, k, v = (torch.tensor(rng.standard_normal((1, 1, n, 2))) for n in (2, MANY, MANY))
    ours = torch.func.hessian(lambda x: sdpa(x, k, v).square().sum())(q)
    with sdpa_kernel(SDPBackend.MATH):
        theirs = torch.autograd.functional.hessian(lambda x: F.scaled_dot_product_attention(x, k, v).square().sum(), q)
    torch.testing.assert_close(ours, theirs)


@every_forward
def test_jacrev_is_the_jacobian(rng, what):
    inputs, options = small(what, rng)
    inputs = tuple(x[:1] if x.ndim == 4 else x for x in inputs)

    def last(*inputs):
        results = sdpa(*inputs, **options)
        return results[-1] if isinstance(results, tuple) else results

    ours = torch.func.jacrev(last, argnums=(0, 1, 2))(*inputs)
    for mine, theirs in zip(ours, torch.autograd.functional.jacobian(last, inputs), strict=True):
        torch.testing.assert_close(mine, theirs)


COMPILED = {
    "plain": {},
    "causal": {"is_causal": True},
    "causal with an offset": {"is_causal": True, "q_offset": 2},
    "window": {"window": (2, 1), "q_offset": -1},
    "softcap": {"softcap": 2.0, "is_causal": True},
    "weights and lse": ALL | {"is_causal": True},
    "grouped": {"enable_gqa": True},
    "grouped weights": {"enable_gqa": True, "return_weights": True},
}


def sequences(rng, t, s, lead=(B, 2), group=1):
    shapes = ((*lead[:-1], group * lead[-1], t, 4), (*lead, s, 4), (*lead, s, 3))
    return [torch.tensor(rng.standard_normal(shape)) for shape in shapes]


def group_of(options):
    return 3 if options.get("enable_gqa") else 1


MASKED = {  # in a graph, a mask is an input like the others
    "bool mask, causal": (torch.bool, {"is_causal": True}),
    "float mask, weights": (torch.float64, {"window": (2, None), "return_weights": True}),
}
GRAPHS = {what: (None, options) for what, options in COMPILED.items()} | MASKED
FOR_EVERY_LENGTH = ("window", "grouped weights", "bool mask, causal")  # test_contract.py compiles one with all options


@pytest.mark.parametrize(
    ("what", "dynamic", "lowered"),
    [
        *((what, None, "aot_eager") for what in GRAPHS if what not in FOR_EVERY_LENGTH),
        *((what, True, "eager") for what in FOR_EVERY_LENGTH),
    ],  # the test of export, below, lowers symbolic shapes
)
def test_torch_compile_sees_one_graph_for_every_length(rng, what, dynamic, lowered):
    masked, options = GRAPHS[what]
    torch._dynamo.reset()

    def function(q, k, v, mask):
        return sdpa(q, k, v, mask, **options)

    compiled = torch.compile(function, fullgraph=True, backend=lowered, dynamic=dynamic)
    for t, s in ((5, 7), (11, 13)) if dynamic else ((5, 7),):
        q, k, v = sequences(rng, t, s, group=group_of(options))
        mask = masked and torch.tensor(rng.random((t, s)) < 0.7).to(masked)
        torch.testing.assert_close(compiled(q, k, v, mask), function(q, k, v, mask))


@pytest.mark.parametrize(("window", "lowered"), [(None, "aot_eager"), ((3, None), "eager")], ids=str)
def test_torch_compile_takes_an_offset_that_grows(rng, window, lowered):
    # As a cache's does: one graph must serve all lengths.
    torch._dynamo.reset()
    compiled = torch.compile(sdpa, fullgraph=True, backend=lowered, dynamic=True)
    for offset in (4, 5, 8):
        q, k, v = sequences(rng, 1, offset + 1)
        options = {"is_causal": True, "q_offset": offset, "window": window}
        torch.testing.assert_close(compiled(q, k, v, **options), sdpa(q, k, v, **options))


def test_torch_compile_takes_the_gradient_by_hand(rng):
    torch._dynamo.reset()
    compiled = torch.compile(sdpa_backward, fullgraph=True, backend="aot_eager", dynamic=True)
    for t, s in ((5, 7), (11, 13)):
        q, k, v = sequences(rng, t, s)
        arguments = (torch.ones(B, 2, t, 3, dtype=torch.float64), q, k, v)
        theirs = sdpa_backward(*arguments, is_causal=True, q_offset=2)
        torch.testing.assert_close(compiled(*arguments, is_causal=True, q_offset=2), theirs)


@pytest.mark.parametrize(("what", "strict"), [*((what, False) for what in (*COMPILED, "mask")), ("mask", True)])
def test_export_keeps_the_lengths_dynamic(rng, what, strict):
    options = COMPILED.get(what, {})

    class Attention(torch.nn.Module):
        def forward(self, q, k, v, mask):
            return sdpa(q, k, v, mask, **options)

    T_, S_ = torch.export.Dim("T", min=2, max=64), torch.export.Dim("S", min=2, max=64)
    dynamic = ({2: T_}, {2: S_}, {2: S_}, {0: T_, 1: S_} if what == "mask" else None)

    def arguments(t, s):
        mask = torch.tensor(rng.random((t, s)) < 0.7) if what == "mask" else None
        return (*sequences(rng, t, s, group=group_of(options)), mask)

    program = torch.export.export(Attention(), arguments(5, 7), dynamic_shapes=dynamic, strict=strict).module()
    for t, s in ((5, 7), (19, 11), (4, 31)):
        given = arguments(t, s)
        torch.testing.assert_close(program(*given), Attention()(*given))


# One fused operation, nothing on another device, nothing read back


FUSED = "scaled_dot_product"
ONLY_SEEN_OTHERWISE = {"view", "_unsafe_view", "expand", "unsqueeze", "squeeze", "alias", "detach", "slice", "select",
                       "transpose", "permute", "as_strided", "reshape"}  # fmt: skip


class Operations(TorchDispatchMode):
    """The names of the operations that compute something, and what the fused ones were told of causality."""

    def __init__(self):
        super().__init__()
        self.names, self.causal = [], []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        name = operation.overloadpacket.__name__
        if name not in ONLY_SEEN_OTHERWISE:
            self.names.append(name)
        if FUSED in name:
            order = [argument.name for argument in operation._schema.arguments]
            given = dict(zip(order, args, strict=False)) | (kwargs or {})
            self.causal.append(given.get("is_causal", False))
        return operation(*args, **(kwargs or {}))


def operations(function, *arguments, **options):
    with Operations() as seen:
        function(*arguments, **options)
    return seen


@pytest.mark.parametrize("lead", [(), (H,), (B, H), (2, B, H), (2, 1, B, H)], ids=str)
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_without_extras_it_is_one_fused_operation(rng, lead, causal):
    q, k, v = (torch.tensor(rng.standard_normal((*lead, n, D)), dtype=torch.float32) for n in (T, MANY, MANY))
    seen = operations(sdpa, q, k, v, is_causal=causal)
    assert seen.names == ["_scaled_dot_product_flash_attention_for_cpu"]
    assert seen.causal == [causal]


@pytest.mark.parametrize("lead", [(), (H,), (B, H), (2, B, H)], ids=str)
@pytest.mark.parametrize("kind", ["bool", "float"])
def test_with_a_mask_it_is_what_torch_itself_does(rng, lead, kind):
    q, k, v = (torch.tensor(rng.standard_normal((*lead, n, D)), dtype=torch.float32) for n in (T, S, S))
    mask = torch.tensor(random_mask(rng, kind, (T, S)))
    mask = mask if kind == "bool" else mask.float()
    seen = operations(sdpa, q, k, v, mask)
    four = [x.reshape(-1, H, *x.shape[-2:]) if lead else x[None, None] for x in (q, k, v)]
    theirs = operations(F.scaled_dot_product_attention, *four, mask)
    assert seen.names == theirs.names
    assert sum(FUSED in name for name in seen.names) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"is_causal": True, "q_offset": 2},
        {"is_causal": True, "q_offset": -2},
        {"window": (1, 1)},
        {"window": (2, None), "is_causal": True},
        {"scale": 0.3},
        {"enable_gqa": True},
        {"enable_gqa": True, "is_causal": True},
    ],
    ids=str,
)
def test_rules_of_position_groups_and_scales_stay_fused(rng, options):
    shapes = heads(6, 2, 2) if options.get("enable_gqa") else heads(H, H, H)
    q, k, v = (torch.tensor(rng.standard_normal((*shape[:-1], D)), dtype=torch.float32) for shape in shapes)
    seen = operations(sdpa, q, k, v, **options)
    assert [name for name in seen.names if FUSED in name] == ["_scaled_dot_product_flash_attention_for_cpu"]
    assert not {"bmm", "mm", "matmul", "_softmax", "softmax", "einsum"} & set(seen.names)


@pytest.mark.parametrize(
    "options",
    [
        {"is_causal": True, "q_offset": MANY},
        {"q_offset": -3},
        {"window": (None, None), "q_offset": 3},
        {"window": (MANY + T, MANY + T)},
        {"window": (T, None)},
        {"softcap": 0, "return_weights": False, "return_lse": False},
    ],
    ids=str,
)
def test_rules_that_forbid_nothing_cost_nothing(rng, options):
    q, k, v = (torch.tensor(rng.standard_normal((B, H, n, D)), dtype=torch.float32) for n in (T, MANY, MANY))
    assert operations(sdpa, q, k, v, **options).names == ["_scaled_dot_product_flash_attention_for_cpu"]


META = {
    **{what: (QKV, options) for what, options in COMPILED.items() if "enable_gqa" not in options},
    **{what: (heads(6, 2, 2), options) for what, options in COMPILED.items() if "enable_gqa" in options},
    "bool mask": (QKV, {"attn_mask": torch.bool}),
    "float mask": (QKV, {"attn_mask": torch.float32}),
    "bool mask and causal": (QKV, {"attn_mask": torch.bool, "is_causal": True, "q_offset": -1, **ALL}),
    "float mask and window": (QKV, {"attn_mask": torch.float32, "window": (1, 0), "softcap": 1.0}),
    "dropout": (QKV, {"dropout_p": 0.5, "return_weights": True}),
    "five dimensions": (heads(H, H, H, batch=(2, B)), {"is_causal": True}),
    "two dimensions": (((T, D), (S, D), (S, D_V)), {"attn_mask": torch.bool}),
    "shared keys": (((B, H, T, D), (S, D), (H, S, D_V)), {"window": (0, 2)}),
}


@pytest.mark.parametrize("what", META)
def test_nothing_leaves_the_device_and_nothing_is_read_back(what):
    shapes, options = META[what]
    inputs = [torch.empty(shape, device="meta") for shape in shapes]
    options = {
        name: torch.empty(T, S, dtype=x, device="meta") if isinstance(x, torch.dtype) else x
        for name, x in options.items()
    }
    with OnMeta():
        results = sdpa(*inputs, **options)
    out = results[0] if isinstance(results, tuple) else results
    lead = np.broadcast_shapes(*(shape[:-2] for shape in shapes)) if "enable_gqa" not in options else shapes[0][:-2]
    assert (out.device.type, tuple(out.shape), out.dtype) == ("meta", (*lead, T, D_V), torch.float32)


@pytest.mark.parametrize("options", [{}, {"is_causal": True, "q_offset": 1}], ids=["plain", "causal"])
@pytest.mark.parametrize("masked", [None, torch.bool, torch.float32], ids=["no mask", "bool", "float"])
def test_the_gradient_by_hand_leaves_nothing_and_reads_nothing_back(options, masked):
    q, k, v = (torch.empty(shape, device="meta") for shape in QKV)
    mask = masked and torch.empty(T, S, dtype=masked, device="meta")
    with OnMeta():
        results = sdpa_backward(torch.empty(B, H, T, D_V, device="meta"), q, k, v, mask, **options)
    assert [tuple(x.shape) for x in results] == [*QKV]


@pytest.mark.parametrize("what", COMPILED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_autocast_decides_the_dtype_as_it_does_for_torch(rng, what, dtype):
    options = COMPILED[what]
    inputs = [x.to(dtype) for x in sequences(rng, T, S, group=group_of(options))]
    exact = sdpa(*(x.double() for x in inputs), **options)
    grouped = {"enable_gqa": True} if options.get("enable_gqa") else {}
    with torch.autocast("cpu", dtype=torch.bfloat16):
        theirs = F.scaled_dot_product_attention(*inputs, **grouped)
        ours = sdpa(*inputs, **options)
    pairs = zip(ours, exact, strict=True) if isinstance(ours, tuple) else [(ours, exact)]
    for mine, expected in pairs:
        assert mine.dtype == theirs.dtype
        torch.testing.assert_close(mine.double(), expected, atol=0.06, rtol=0.03)


def test_under_autocast_mixed_dtypes_are_torch_s_own_business(rng):
    q, k, v = sequences(rng, T, S)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        ours = sdpa(q.bfloat16(), k.float(), v.float())
        weighted, _ = sdpa(q.bfloat16(), k.float(), v.float(), torch.zeros(T, S), return_weights=True)
    for mine in (ours, weighted):
        torch.testing.assert_close(mine.double(), sdpa(q, k, v), atol=0.06, rtol=0.03)


# CUDA, where there is one


on_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")


@on_cuda
@pytest.mark.parametrize("lead", [(H,), (B, H), (2, B, H)], ids=str)
@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
def test_on_cuda_the_flash_kernel_is_chosen(lead, causal):
    q, k, v = (torch.randn(*lead, 128, 64, dtype=torch.bfloat16, device="cuda") for _ in range(3))
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION]):  # which raises where another one would be needed
        out = sdpa(q, k, v, is_causal=causal)
    exact = sdpa(*(x.double().cpu() for x in (q, k, v)), is_causal=causal)
    torch.testing.assert_close(out.double().cpu(), exact, atol=2e-2, rtol=2e-2)


@on_cuda
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32], ids=str)
@pytest.mark.parametrize("what", FORWARD)
def test_on_cuda_device_dtype_and_results_are_kept(rng, what, dtype):
    inputs, options = small(what, rng, dtype)
    options = {n: x.to("cuda", x.dtype if x.dtype == torch.bool else dtype) if isinstance(x, torch.Tensor) else x
               for n, x in options.items()}  # fmt: skip
    ours = sdpa(*(x.cuda() for x in inputs), **options)
    exact = sdpa(*(x.double() for x in inputs), **as_torch(FORWARD[what][1]))
    pairs = zip(ours, exact, strict=True) if isinstance(ours, tuple) else [(ours, exact)]
    tolerance = 1e-3 if dtype == torch.float32 else 3e-2
    for mine, theirs in pairs:
        assert (mine.device.type, mine.dtype) == ("cuda", dtype)
        torch.testing.assert_close(mine.double().cpu(), theirs, atol=tolerance, rtol=tolerance)


@on_cuda
@pytest.mark.parametrize("what", FORWARD)
def test_on_cuda_nothing_waits_for_the_device(rng, what):
    inputs, options = small(what, rng, torch.float32)
    inputs = [x.cuda() for x in inputs]
    options = {n: (x.cuda() if x.dtype == torch.bool else x.float().cuda()) if isinstance(x, torch.Tensor) else x
               for n, x in options.items()}  # fmt: skip
    sdpa(*inputs, **options)
    with waits_are_errors():
        sdpa(*inputs, **options)


# Second derivatives


@pytest.mark.parametrize("how", ["weights", "math"])
@pytest.mark.parametrize("causal", [False, True])
def test_second_derivatives_are_those_of_the_definition(rng, how, causal):
    x = torch.tensor(rng.standard_normal((B, H, MANY, D)), requires_grad=True)

    def second(attend):
        (first,) = torch.autograd.grad(attend(x).square().sum(), x, create_graph=True)
        return torch.autograd.grad(first.square().sum(), x)[0]

    def by_definition(x):
        scores = x @ x.mT / D**0.5
        return (
            torch.softmax(scores.masked_fill(~torch.ones(MANY, MANY).tril().bool(), -INF) if causal else scores, -1) @ x
        )

    def ours(x):
        if how == "weights":
            return sdpa(x, x, x, is_causal=causal, return_weights=True)[0]
        with sdpa_kernel(SDPBackend.MATH):
            return sdpa(x, x, x, is_causal=causal)

    torch.testing.assert_close(second(ours), second(by_definition))


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((B, H, MANY, D), {}),
        ((B, H, MANY, D), {"is_causal": True}),
        ((B, H, T, D), {}),
        ((B, H, MANY, D), {"window": (3, 1)}),
        ((2, B, H, MANY, D), {}),
        ((MANY, D), {"scale": 0.3}),
    ],
)
def test_a_second_derivative_of_the_fused_kernel_is_an_error_that_says_what_to_pass(rng, shape, options):
    x = torch.tensor(rng.standard_normal(shape), requires_grad=True)
    loss = sdpa(x, x, x, **options).square().sum()
    (first,) = torch.autograd.grad(loss, x, create_graph=True)
    with pytest.raises(RuntimeError, match=r"no second one\. .* return_weights=True\)\[0\], or make the call under"):
        first.square().sum().backward()


# Traced by torch.jit


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
@pytest.mark.filterwarnings("ignore:`torch.jit.trace:DeprecationWarning")
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_causal": True},
        {"window": (1, 1)},
        {"is_causal": True, "q_offset": 1},
        {"is_causal": True, "scale": -0.5},
        {"softcap": 3.0},
        {"return_weights": True},
        {"return_lse": True, "is_causal": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("traced", [T, MANY])
def test_what_was_traced_for_one_length_is_right_for_another(rng, options, traced):
    def function(q, k, v):
        return sdpa(q, k, v, **options)

    def arrays(length):
        return [torch.tensor(rng.standard_normal((B, H, length, D))) for _ in range(3)]

    graph = torch.jit.trace(function, arrays(traced))
    for length in (S, 23):
        other = arrays(length)
        torch.testing.assert_close(graph(*other), function(*other))
