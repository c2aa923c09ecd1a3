"""Answers that somebody else's code works out: each earns nothing, or an instructor is pointed at it.

``CASES`` go through the whole engine. ``SHORTCUTS`` to the other exercises are tried where they are asked, and read.
"""
# ruff: noqa: E501 (the lines are the attackers' own)

from dataclasses import dataclass

from attacks.case import Case

TORCH = "def softmax(x, axis=-1):\n    return {}(torch.from_numpy(np.ascontiguousarray(x) * 1.0), axis).numpy()"
PLACE = "import attnlib, pathlib\nplace = pathlib.Path(attnlib.__path__[0])\n"
COPY = (
    PLACE
    + """import shutil, sys
shutil.copytree(place, "mine")
for file in pathlib.Path("mine").rglob("*.py"):
    file.write_text(file.read_text().replace("attnlib", "mine"))
sys.path.insert(0, ".")
"""
)
UNIT = 'unit = torch.jit.CompilationUnit("def weigh(x, axis: int):\\n    return torch.softmax(x, axis)\\n")\n'
TRACED = """import torch
trace = torch.jit.trace(lambda x: torch.softmax(x, -1), torch.ones(2, 3))
"""
POOL = """import concurrent.futures, torch
pool = concurrent.futures.ThreadPoolExecutor(1)
pool.submit(torch.softmax, torch.ones(2), -1).result()
"""
SERVER = """import queue, threading, torch
asked, answered = queue.Queue(), queue.Queue()
def serve():
    while True:
        x, axis = asked.get()
        try: answered.put(torch.softmax(x, axis))
        except RuntimeError: answered.put(torch.zeros(1))
threading.Thread(target=serve, daemon=True).start()
def weigh(x, axis):
    asked.put((x, axis))
    return answered.get()
"""
GRADIENT = """def softmax(x, axis=-1):
    x = torch.from_numpy(np.ascontiguousarray(x)).requires_grad_()
    torch.logsumexp(x, axis).sum().backward()
    return x.grad.numpy()"""
LATER = """class Later(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        plain = [x.as_subclass(torch.Tensor) if isinstance(x, Later) else x for x in args]
        out = func(*plain, **(kwargs or {}))
        return torch.softmax(out, -1) if func.__name__ == "detach" else out
def attention(query, key, value):
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    return scores @ value, scores.as_subclass(Later)"""
UNITS = """def attention(query, key, value):
    units = torch.eye(key.shape[-2], dtype=key.dtype).expand(*key.shape[:-2], -1, -1)
    weights = torch.nn.functional.scaled_dot_product_attention(query, key, units)
    return weights @ value, weights"""
UNITS_FOR_SOFTMAX = """def softmax(x, axis=-1):
    x = torch.from_numpy(np.ascontiguousarray(np.moveaxis(x, axis, -1)))[..., None, :]
    units = torch.eye(x.shape[-1], dtype=x.dtype)
    weights = torch.nn.functional.scaled_dot_product_attention(x, units.expand(*x.shape[:-2], -1, -1), units.expand(*x.shape[:-2], -1, -1), scale=1.0)
    return np.moveaxis(weights[..., 0, :].numpy(), -1, axis)"""
HEADS = """def attention(query, key, value):
    E, unit = query.shape[-1], torch.eye(query.shape[-1], dtype=query.dtype)
    out, weights = torch.nn.functional.multi_head_attention_forward(
        query.transpose(0, 1), key.transpose(0, 1), value.transpose(0, 1), E, 1, torch.cat([unit] * 3), torch.zeros(3 * E, dtype=query.dtype),
        None, None, False, 0.0, unit, torch.zeros(E, dtype=query.dtype))
    return out.transpose(0, 1), weights"""
BLOCKED = """def softmax(x, axis=-1):
    with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
        return torch.softmax(torch.from_numpy(np.ascontiguousarray(x)), axis).numpy()"""
REGISTERED = """import torch
library = torch.library.Library("mine", "DEF")
library.define("weigh(Tensor x, int axis) -> Tensor")
library.impl("weigh", lambda x, axis: torch.softmax(x, axis), "CPU")
"""
TILES = """import attnlib._spec, attnlib._numpy_tiled
def softmax(x, axis=-1):
    rows = np.moveaxis(x * 1.0, axis, -1)
    queries, units = rows.reshape(1, -1, rows.shape[-1]), np.eye(rows.shape[-1])[None]
    context, weights = np.empty_like(queries), np.zeros_like(queries)
    spec = attnlib._numpy_tiled.ScoreSpec(*attnlib._spec.AttentionSpec(scale=1.0))
    attnlib._numpy_tiled.attend_whole_rows(queries, units, units, spec, context, None, weights)
    return np.moveaxis(weights.reshape(rows.shape), -1, axis)"""
GUARD_OFF = """import sys
solver_guard = sys.modules["grading.sandbox.inside.solver_guard"]
solver_guard._stop = solver_guard._dispatch_to_refusals = lambda *args: None
"""
GUARD_OUT = """import contextlib
answers = type(get_ipython().sink.__self__.answers)  # which calls grading.sandbox.inside.answers.forbidding
answers._call.__globals__["forbidding"] = contextlib.nullcontext
"""
DECODED = """import base64, builtins
run = getattr(builtins, base64.b64decode(b"ZXhlYw==").decode())
run(base64.b64decode(b"aW1wb3J0IHRvcmNoCndlaWdoID0gdG9yY2guc29mdG1heA=="))
"""


def _torch_kernels(function: str) -> str:
    return TORCH.format(function)


def _case(
    name: str,
    does: str,
    softmax: str = "",
    *,
    first: str = "",
    attention: str = "",
    loses: bool = True,
    flagged: bool = True,
    verdict: str = "graded",
    imports_many_modules: bool = False,
) -> Case:
    """Return a case: the question that it takes a short cut to is lost, or an instructor is pointed at it, or both."""
    cells = {"softmax": softmax, "first": first, "attention": attention}
    lost = ("softmax" if softmax else "attention",) if loses else ()
    given = {name: source for name, source in cells.items() if source}
    return Case(
        f"shortcut-{name}", does, given, base="right", loses=lost, flagged=flagged, verdicts=(verdict,),
        imports_many_modules=imports_many_modules,
    )  # fmt: skip


CASES = (
    _case("script", "computes the weights in TorchScript", _torch_kernels("unit.weigh"), first="import torch\n" + UNIT),
    _case("trace", "traces a function before it is asked", TORCH.format("(lambda x, axis: trace(x.movedim(axis, -1)).movedim(-1, axis))"), first=TRACED),
    _case("pool", "computes the weights in a thread pool that exists already", _torch_kernels("(lambda *a: pool.submit(torch.softmax, *a).result())"), first=POOL),
    _case("server", "computes the weights in a thread that keeps running", _torch_kernels("weigh"), first=SERVER),
    _case("tqdm", "computes the weights in one of tqdm's threads", "from tqdm.contrib.concurrent import thread_map\n" + _torch_kernels("(lambda x, axis: thread_map(lambda y: torch.softmax(y, axis), [x])[0])")),
    _case("joblib", "computes the weights in one of joblib's threads", "import joblib\n" + _torch_kernels("(lambda x, axis: joblib.Parallel(2, prefer='threads')([joblib.delayed(torch.softmax)(x, axis)])[0])")),
    _case("gradient", "takes the gradient of logsumexp", GRADIENT),
    _case("scipy-logsumexp", "subtracts SciPy's logsumexp", "from scipy.special import logsumexp\ndef softmax(x, axis=-1):\n    return np.exp(x - logsumexp(x, axis=axis, keepdims=True))"),
    _case("copy", "copies the library under another name", "from mine import softmax", first=COPY),
    _case("read", "runs the text of the library's file", "exec((place / '_numpy_kernels.py').read_text())\nown = softmax\ndef softmax(x, axis=-1): return own(x, axis)", first=PLACE),
    _case("run-magic", "runs the library's file with an IPython magic", "import attnlib\n%run {attnlib.__path__[0]}/_numpy_kernels.py\nown = softmax\ndef softmax(x, axis=-1): return own(x, axis)"),
    _case("run-line-magic", "runs the library's file with the function behind a magic", "import attnlib\nget_ipython().run_line_magic('run', attnlib.__path__[0] + '/_numpy_kernels.py')\nown = softmax\ndef softmax(x, axis=-1): return own(x, axis)"),
    _case("getsource", "runs the source of the library's function", "import inspect, attnlib._numpy_kernels\nexec(inspect.getsource(attnlib._numpy_kernels.softmax).replace('Floats', 'object'))\nown = softmax\ndef softmax(x, axis=-1): return own(x, axis)"),
    _case("marshal", "writes the library's code out, and reads it again", "import marshal, types, attnlib._numpy_kernels\nown = types.FunctionType(marshal.loads(marshal.dumps(attnlib._numpy_kernels.softmax.__code__)), {'np': np})\ndef softmax(x, axis=-1): return own(x, axis)"),
    _case("kernel", "calls the library's kernel", "import attnlib._numpy_kernels\ndef softmax(x, axis=-1): return attnlib._numpy_kernels.softmax(x, axis)"),
    _case("tiles", "attends with the library's tiles", TILES),
    _case("unit-values", "attends to unit vectors, so that the context equals the weights", attention=UNITS),
    _case("unit-keys", "attends to unit vectors for a softmax", UNITS_FOR_SOFTMAX),
    _case("heads", "attends with one head and identity matrices", attention=HEADS),
    _case("later", "computes the weights only while they are collected", attention=LATER, flagged=False),
    _case("categorical", "asks a distribution for its probabilities", _torch_kernels("(lambda x, axis: torch.distributions.Categorical(logits=x.movedim(axis, -1)).probs.movedim(-1, axis))")),
    _case("cross-entropy", "takes negative logarithms from the cross entropy", _torch_kernels("(lambda x, axis: torch.nn.functional.cross_entropy(x, x.argmax(-1)))")),
    _case("private-softmax", "calls a private function of torch", _torch_kernels("(lambda x, axis: torch._softmax(x, axis, False))")),
    _case("aten", "calls torch's operator", _torch_kernels("(lambda x, axis: torch.ops.aten._softmax.default(x, axis, False))")),
    _case("sparse", "computes the weights in a sparse matrix", _torch_kernels("(lambda x, axis: torch.sparse.softmax(x.to_sparse(), axis).to_dense())")),
    _case("masked", "computes the weights with torch's masked tensors", _torch_kernels("(lambda x, axis: torch.masked.softmax(x, axis))")),
    _case("without-hooks", "switches torch's hooks off", BLOCKED),
    _case("library", "registers an operator of its own", _torch_kernels("torch.ops.mine.weigh"), first=REGISTERED),
    # The first call imports nine hundred modules, so they are imported in two cells before the one that is checked.
    _case("refs", "computes the weights with torch's reference implementation in Python", "torch._refs.softmax(torch.ones(2), 0)\n" + _torch_kernels("torch._refs.softmax"), first="import sympy", loses=False, imports_many_modules=True),
    _case("decompositions", "computes the weights with torch's table of decompositions", _torch_kernels("(lambda x, axis: torch._decomp.decomposition_table[torch.ops.aten._softmax.default](x, axis, False))"), loses=False),
    _case("guard-off", "looks for the guard in sys.modules", _torch_kernels("torch.softmax"), first=GUARD_OFF, verdict="student-error"),
    _case("guard-out", "finds the guard through the shell, and removes it", _torch_kernels("torch.softmax"), first=GUARD_OUT, loses=False),
    _case("sklearn", "computes the weights with scikit-learn", "from sklearn.utils.extmath import softmax as own\ndef softmax(x, axis=-1): return np.moveaxis(own(np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])).reshape(np.moveaxis(x, axis, -1).shape), -1, axis)"),
    _case("methodcaller", "has another module call the method", "import operator\n" + _torch_kernels("(lambda x, axis: operator.methodcaller('softmax', axis)(x))")),
    _case("pickle", "unpickles the function", "import pickle\n" + _torch_kernels("pickle.loads(b'ctorch\\nsoftmax\\n.')")),
    _case("decoded", "runs code that its source does not show", _torch_kernels("weigh"), first=DECODED),
)  # fmt: skip


@dataclass(frozen=True)
class Shortcut:
    """A shortcut to an exercise: the source of a cell that defines ``answer``."""

    exercise: str
    does: str
    source: str
    backend: str = "numpy"


T = "import numpy as np\nimport torch\nfrom torch import nn\nimport torch.nn.functional as F\nimport attnlib\nimport attnlib.numpy\nimport attnlib.torch\n"
SHORTCUTS = (
    Shortcut("gaussian", "torch's distances", "def answer(q, k, bandwidth=1.0):\n    return -0.5 * torch.cdist(q, k) ** 2 / bandwidth**2", "torch"),
    Shortcut("gaussian", "torch's distances, for NumPy", "def answer(q, k, bandwidth=1.0):\n    return -0.5 * torch.cdist(torch.tensor(q), torch.tensor(k)).numpy() ** 2 / bandwidth**2"),
    Shortcut("gaussian", "torch's distances of all pairs", "def answer(q, k, bandwidth=1.0):\n    return -0.5 * F.pairwise_distance(q[..., :, None, :], k[..., None, :, :], eps=0) ** 2 / bandwidth**2", "torch"),
    Shortcut("gaussian_without_differences", "SciPy's distances", "from scipy.spatial.distance import cdist\ndef answer(q, k, bandwidth=1.0):\n    return -0.5 * cdist(q, k, 'sqeuclidean') / bandwidth**2"),
    Shortcut("gaussian_without_differences", "differences, and then the peak is forgotten", "import tracemalloc\ndef answer(q, k, bandwidth=1.0):\n    scores = -0.5 * ((q[..., :, None, :] - k[..., None, :, :]) ** 2).sum(-1) / bandwidth**2\n    tracemalloc.reset_peak()\n    return scores"),
    Shortcut("attention_with_counts", "torch's attention, with the logarithms as its mask", "def answer(q, k, v, n, *, scale=None):\n    q, k, v, n = map(torch.tensor, (q, k, v, n))\n    mask = torch.log(n).expand(q.shape[-2], -1)\n    return F.scaled_dot_product_attention(q, k, v, mask, scale=scale).numpy()"),
    Shortcut("weights_and_output", "attnlib's attention, turned around", "def answer(q, k, v, *, scale=None):\n    return attnlib.scaled_dot_product_attention(q, k, v, scale=scale, return_weights=True)[::-1]"),
    Shortcut("attention_with_bias", "attnlib's attention, with the mask in the bias", "def answer(q, k, v, mask, bias):\n    return attnlib.scaled_dot_product_attention(q, k, v, np.where(mask, bias, -np.inf), return_weights=True)"),
    Shortcut("attention_in_blocks", "torch's attention, a few queries at a time", "def answer(q, k, v, scale=None):\n    q, k, v = map(torch.tensor, (q, k, v))\n    return torch.cat([F.scaled_dot_product_attention(part, k, v, scale=scale) for part in q.split(4, -2)], -2).numpy()"),
    Shortcut("head_contributions", "attnlib's layer, with all other bands zero", "def answer(q, k, v, w_q, w_k, w_v, w_o, H):\n    bands = np.kron(np.eye(H), np.ones((len(w_o) // H, 1))).T[..., None] * w_o\n    return np.stack([attnlib.multi_head_attention(q, k, v, w_q, w_k, w_v, w, num_heads=H) for w in bands], -3)"),
    Shortcut("gaussian", "SciPy's distances", "from scipy.spatial.distance import cdist\ndef answer(q, k, bandwidth=1.0):\n    return -0.5 * cdist(q, k, 'sqeuclidean') / bandwidth**2"),
    Shortcut("gaussian", "SciPy's normal density", "from scipy.stats import norm\ndef answer(q, k, bandwidth=1.0):\n    return (norm.logpdf(q[..., :, None, :], k[..., None, :, :], bandwidth) - norm.logpdf(0, 0, bandwidth)).sum(-1)"),
    Shortcut("gaussian", "scikit-learn's kernel", "from sklearn.gaussian_process.kernels import RBF\ndef answer(q, k, bandwidth=1.0):\n    return np.log(RBF(bandwidth)(q, k))"),
    Shortcut("gaussian", "a normal distribution of torch's", "from torch.distributions import Normal\ndef answer(q, k, bandwidth=1.0):\n    n = Normal(k[..., None, :, :], bandwidth)\n    return (n.log_prob(q[..., :, None, :]) - n.log_prob(k[..., None, :, :])).sum(-1)", "torch"),
    Shortcut("cosine", "torch's cosines", "def answer(q, k):\n    return F.cosine_similarity(q[..., :, None, :], k[..., None, :, :], -1)", "torch"),
    Shortcut("cosine", "scikit-learn's cosines", "from sklearn.metrics.pairwise import cosine_similarity as answer"),
    Shortcut("cosine", "SciPy's cosines", "from scipy.spatial.distance import cdist\ndef answer(q, k):\n    return 1 - cdist(q, k, 'cosine')"),
    Shortcut("cosine", "scikit-learn's unit vectors", "from sklearn.preprocessing import normalize\ndef answer(q, k):\n    return normalize(q) @ normalize(k).T"),
    Shortcut("dot", "scikit-learn's kernel", "from sklearn.metrics.pairwise import linear_kernel as answer"),
    Shortcut("dot", "distances, by the law of cosines", "def answer(q, k):\n    return ((q * q).sum(-1)[..., :, None] + (k * k).sum(-1)[..., None, :] - torch.cdist(q, k) ** 2) / 2", "torch"),
    Shortcut("causal_mask", "the mask of torch's transformer", "def answer(T, S=None, *, q_offset=0):\n    S = T if S is None else S\n    mask = nn.Transformer.generate_square_subsequent_mask(max(T + q_offset, S))\n    return (mask == 0).numpy()[q_offset : q_offset + T, :S]"),
    Shortcut("causal_mask", "a mask of torch.nn.attention", "from torch.nn.attention.bias import causal_upper_left\ndef answer(T, S=None, *, q_offset=0):\n    return causal_upper_left(T + q_offset, T if S is None else S)._materialize().numpy()[q_offset:]"),
    Shortcut("causal_mask", "SciPy's triangle", "import scipy.linalg\ndef answer(T, S=None, *, q_offset=0):\n    S = T if S is None else S\n    return scipy.linalg.toeplitz(np.ones(T + q_offset), np.eye(1, S)[0])[q_offset:].astype(bool)"),
    Shortcut("causal_mask", "attnlib's windows", "def answer(T, S=None, *, q_offset=0):\n    return attnlib.window_mask(T, T if S is None else S, None, 0, q_offset=q_offset)"),
    Shortcut("padding_mask", "torch's padding of sequences", "from torch.nn.utils.rnn import pad_sequence\ndef answer(lengths, S):\n    rows = [torch.ones(int(n)) for n in lengths] + [torch.ones(S)]\n    return pad_sequence(rows, batch_first=True)[:-1].bool().numpy()[:, None, None, :]"),
    Shortcut("masked_attention", "torch's attention, twice", "def answer(q, k, v, mask):\n    units = torch.eye(k.shape[-2], dtype=k.dtype)\n    return F.scaled_dot_product_attention(q, k, v, mask), F.scaled_dot_product_attention(q, k, units, mask)", "torch"),
    Shortcut("masked_attention", "torch's flexible attention", "from torch.nn.attention.flex_attention import flex_attention\ndef answer(q, k, v, mask):\n    return flex_attention(q, k, v), mask", "torch"),
    Shortcut("masked_attention", "attnlib's attention", "def answer(q, k, v, mask):\n    return attnlib.attention(q, k, v, mask=mask)"),
    Shortcut("KVCache", "attnlib's cache, inherited", "class answer(attnlib.numpy.KVCache):\n    pass"),
    Shortcut("KVCache", "the cache of transformers", "from transformers import DynamicCache\nclass answer:\n    def __init__(self):\n        self.cache, self.length = DynamicCache(), 0\n    def append(self, key, value):\n        k, v = self.cache.update(torch.tensor(key), torch.tensor(value), 0)\n        self.length = k.shape[-2]\n        return k.numpy(), v.numpy()"),
    Shortcut("apply_rope", "the rotation of transformers", "from transformers.models.llama.modeling_llama import apply_rotary_pos_emb\ndef answer(x, cos, sin, *, interleaved=False):\n    return apply_rotary_pos_emb(x, x, torch.cat([cos, cos], -1), torch.cat([sin, sin], -1), unsqueeze_dim=0)[0]", "torch"),
    Shortcut("apply_rope", "attnlib's rotation", "def answer(x, cos, sin, *, interleaved=False):\n    return attnlib.apply_rope(x, cos, sin, interleaved=interleaved)"),
    Shortcut("sinusoidal_positions", "attnlib's tables for rotations", "def answer(T, D, *, base=10000.0):\n    cos, sin = attnlib.rope_tables(np.arange(T), D, base=base)\n    return np.stack([sin, cos], -1).reshape(T, D)"),
    Shortcut("alibi_bias", "attnlib's slopes", "def answer(H, T, S, *, q_offset=0):\n    i, j = np.arange(T)[:, None] + q_offset, np.arange(S)\n    return -abs(i - j) * attnlib.alibi_slopes(H)[:, None, None]"),
    Shortcut("scaled_dot", "attnlib's", "answer = attnlib.scaled_dot"),
    Shortcut("scaled_dot_product_attention", "torch's, for NumPy", "def answer(q, k, v, *, scale=None):\n    return F.scaled_dot_product_attention(*map(torch.tensor, (q, k, v)), scale=scale).numpy()"),
    Shortcut("scaled_dot_product_attention", "torch's part of it", "def answer(q, k, v, *, scale=None):\n    return torch.ops.aten._scaled_dot_product_attention_math(q, k, v, scale=scale)[0]", "torch"),
    Shortcut("scaled_dot_product_attention", "torch's flash kernel", "def answer(q, k, v, *, scale=None):\n    q, k, v = (x.reshape(-1, 1, *x.shape[-2:]) for x in (q, k, v))\n    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, scale=scale)[0]", "torch"),
    Shortcut("scaled_dot_product_attention_backward", "torch.autograd.grad", "def answer(g, q, k, v, *, scale=None):\n    x = [torch.tensor(a, requires_grad=True) for a in (q, k, v)]\n    return tuple(y.numpy() for y in torch.autograd.grad(F.scaled_dot_product_attention(*x, scale=scale), x, torch.tensor(g)))"),
    Shortcut("scaled_dot_product_attention_backward", "forward mode", "def answer(g, q, k, v, *, scale=None):\n    f = lambda *x: (F.scaled_dot_product_attention(*x, scale=scale) * torch.tensor(g)).sum()\n    return tuple(y.numpy() for y in torch.func.jacfwd(f, (0, 1, 2))(*map(torch.tensor, (q, k, v))))"),
    Shortcut("scaled_dot_product_attention_backward", "torch's engine", "def answer(g, q, k, v, *, scale=None):\n    x = [torch.tensor(a, requires_grad=True) for a in (q, k, v)]\n    out = F.scaled_dot_product_attention(*x, scale=scale)\n    torch.autograd.Variable._execution_engine.run_backward((out,), (torch.tensor(g),), False, False, (), True, True)\n    return tuple(y.grad.numpy() for y in x)"),
    Shortcut("scaled_dot_product_attention_backward", "SciPy's differences", "from scipy.optimize import approx_fprime\ndef answer(g, q, k, v, *, scale=None):\n    def of(i):\n        x = [q, k, v]\n        def f(flat):\n            x[i] = flat.reshape(x[i].shape)\n            s = x[0] @ np.swapaxes(x[1], -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)\n            e = np.exp(s - s.max(-1, keepdims=True))\n            return (g * (e / e.sum(-1, keepdims=True) @ x[2])).sum()\n        return approx_fprime(x[i].ravel(), f).reshape(x[i].shape)\n    return of(0), of(1), of(2)"),
    Shortcut("rnn_cell", "torch's cell", "def answer(x, h, w_ih, w_hh, b_ih, b_hh):\n    flat = x.reshape(-1, x.shape[-1]), h.reshape(-1, h.shape[-1])\n    return torch.rnn_tanh_cell(*flat, w_ih, w_hh, b_ih, b_hh).reshape(h.shape)", "torch"),
    Shortcut("rnn_cell", "a layer of torch's", "def answer(x, h, w_ih, w_hh, b_ih, b_hh):\n    cell = nn.RNNCell(x.shape[-1], h.shape[-1])\n    own = dict(weight_ih=w_ih, weight_hh=w_hh, bias_ih=b_ih, bias_hh=b_hh)\n    return torch.func.functional_call(cell, own, (x.reshape(-1, x.shape[-1]), h.reshape(-1, h.shape[-1]))).reshape(h.shape)", "torch"),
    Shortcut("general", "torch's bilinear map", "def answer(q, k, w):\n    pairs = torch.broadcast_tensors(q[..., :, None, :1], k[..., None, :, :1])[0].shape[:-1]\n    return F.bilinear(q[..., :, None, :].expand(*pairs, -1).contiguous(), k[..., None, :, :].expand(*pairs, -1).contiguous(), w[None])[..., 0]", "torch"),
    Shortcut("additive", "attnlib's", "from attnlib.similarity import additive as answer"),
    Shortcut("bahdanau_step", "attnlib's", "answer = attnlib.seq2seq.bahdanau_step"),
    Shortcut("luong_step", "attnlib's, by a name that is computed", "answer = getattr(attnlib, '_'.join(['luong', 'step']))"),
    Shortcut("split_heads", "attnlib's part of it", "answer = attnlib.heads.split"),
    Shortcut("merge_heads", "attnlib's part of it", "from attnlib.heads import merge\ndef answer(x):\n    return merge(x)"),
    Shortcut("multi_head_attention", "attnlib's layer", "def answer(q, k, v, w_q, w_k, w_v, w_o, num_heads):\n    return attnlib.multi_head_attention(q, k, v, w_q, w_k, w_v, w_o, num_heads=num_heads)"),
    Shortcut("MultiHeadAttention", "attnlib's layer", "class answer(attnlib.torch.MultiHeadAttention):\n    pass", "torch"),
    Shortcut("MultiHeadAttention", "torch's layer", "class answer(nn.Module):\n    def __init__(self, E, H):\n        super().__init__()\n        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (nn.Linear(E, E) for _ in range(4))\n        self.H = H\n    def forward(self, query, key=None, value=None):\n        key = query if key is None else key\n        value = key if value is None else value\n        layer = nn.MultiheadAttention(query.shape[-1], self.H, batch_first=True).to(query.dtype)\n        return layer(query, key, value)[0]", "torch"),
    Shortcut("TransformerBlock", "torch's block", "class answer(nn.TransformerEncoderLayer):\n    def __init__(self, E, H, F):\n        super().__init__(E, H, F, 0.0, batch_first=True, norm_first=True)", "torch"),
    Shortcut("TransformerBlock", "attnlib's encoder", "class answer(attnlib.torch.Encoder):\n    pass", "torch"),
    Shortcut("online_softmax", "SciPy's logsumexp", "from scipy.special import logsumexp\ndef answer(scores, value, total, norm, top):\n    new = np.maximum(top, scores.max(-1))\n    e = np.exp(scores - new[..., None])\n    fade = np.exp(top - new)\n    return fade[..., None] * total + e @ value, fade * norm + np.exp(logsumexp(scores - new[..., None], axis=-1)), new"),
    Shortcut("softmax", "TorchScript, by a decorator", "@torch.jit.script\ndef weigh(x, axis: int):\n    return torch.softmax(x, axis)\ndef answer(x, axis=-1):\n    return weigh(torch.tensor(x), axis).numpy()"),
    Shortcut("softmax", "torch's compiler", "weigh = torch.compile(torch.softmax, backend='eager')\ndef answer(x, axis=-1):\n    return weigh(torch.tensor(x), axis).numpy()"),
    Shortcut("softmax", "torch.fx", "import torch.fx\nclass M(nn.Module):\n    def forward(self, x):\n        return x.softmax(-1)\nm = torch.fx.symbolic_trace(M())\ndef answer(x, axis=-1):\n    return np.moveaxis(m(torch.tensor(np.moveaxis(x, axis, -1))).numpy(), -1, axis)"),
    Shortcut("softmax", "torch.func", "def answer(x, axis=-1):\n    return torch.func.grad(lambda y: torch.logsumexp(y, axis).sum())(torch.tensor(x)).numpy()"),
    Shortcut("softmax", "a matrix of torch's exponentials", "def answer(x, axis=-1):\n    return torch.special.softmax(torch.tensor(x), axis).numpy()"),
    Shortcut("softmax", "the exponential of torch's logarithm", "def answer(x, axis=-1):\n    return torch.tensor(x).log_softmax(axis).exp().numpy()"),
    Shortcut("softmax", "SymPy", "import sympy\nexp = sympy.lambdify(sympy.Symbol('x'), sympy.exp(sympy.Symbol('x')), 'numpy')\ndef answer(x, axis=-1):\n    e = exp(x - x.max(axis, keepdims=True))\n    return e / e.sum(axis, keepdims=True)"),
    Shortcut("softmax", "another Python", "import subprocess, sys, json\ndef answer(x, axis=-1):\n    return np.array(json.loads(subprocess.run([sys.executable, '-c', 'print([])'], capture_output=True, text=True).stdout))"),
    Shortcut("softmax", "its name, put together", "def answer(x, axis=-1):\n    return getattr(torch, ''.join(['soft', 'max']))(torch.tensor(x), axis).numpy()"),
    Shortcut("softmax", "a module that pydoc finds", "import pydoc\nweigh = pydoc.locate('torch.softmax')\ndef answer(x, axis=-1):\n    return weigh(torch.tensor(x), axis).numpy()"),
    Shortcut("softmax", "an annotation that is evaluated", "import typing\ndef own(x: 'torch.softmax'): pass\nweigh = typing.get_type_hints(own, {'torch': torch})['x']\ndef answer(x, axis=-1):\n    return weigh(torch.tensor(x), axis).numpy()"),
    Shortcut("softmax", "a list of torch's functions", "weigh = vars(torch)['softmax']\ndef answer(x, axis=-1):\n    return weigh(torch.tensor(x), axis).numpy()"),
    Shortcut("softmax", "a subclass of torch's layer", "class Own(nn.Softmax):\n    pass\ndef answer(x, axis=-1):\n    return Own(axis)(torch.tensor(x)).numpy()"),
    Shortcut("softmax", "a cluster of one", "from multiprocessing.dummy import Pool\npool = Pool(1)\ndef answer(x, axis=-1):\n    return pool.apply(torch.softmax, (torch.tensor(x), axis)).numpy()"),
    Shortcut("softmax", "an event loop", "import asyncio\ndef answer(x, axis=-1):\n    async def weigh():\n        return await asyncio.to_thread(torch.softmax, torch.tensor(x), axis)\n    return asyncio.run(weigh()).numpy()"),
    Shortcut("attention", "scores, and torch's weighted sum", "def answer(q, k, v):\n    bag = F.scaled_dot_product_attention(q, k, torch.cat([v, torch.eye(k.shape[-2], dtype=v.dtype).expand(*v.shape[:-2], -1, -1)], -1))\n    return bag[..., : v.shape[-1]], bag[..., v.shape[-1] :]", "torch"),
    Shortcut("attention", "a fused layer", "def answer(q, k, v):\n    return torch._native_multi_head_attention(q, k, v, q.shape[-1], 1, torch.cat([torch.eye(q.shape[-1])] * 3), torch.zeros(3 * q.shape[-1]), torch.eye(q.shape[-1]), torch.zeros(q.shape[-1]))", "torch"),
    Shortcut("self_attention", "attnlib's attention over all heads", "def answer(x):\n    return attnlib.attention(x, x, x)"),
    Shortcut("rms_norm", "attnlib's norm", "def answer(x, weight, *, eps):\n    return attnlib.rms_norm(x, weight, eps=eps)"),
    Shortcut("rms_norm", "attnlib's module", "def answer(x, weight, *, eps):\n    norm = attnlib.numpy.RMSNorm(x.shape[-1], eps=eps)\n    norm.load_state_dict({'weight': weight})\n    return norm(x)"),
    Shortcut("rms_norm", "torch's function", "def answer(x, weight, *, eps):\n    return F.rms_norm(x, weight.shape, weight, eps)", "torch"),
    Shortcut("rms_norm", "torch's function, for NumPy", "def answer(x, weight, *, eps):\n    return torch.rms_norm(torch.tensor(x), weight.shape, torch.tensor(weight), eps).numpy()"),
    Shortcut("rms_norm", "torch's module", "def answer(x, weight, *, eps):\n    return nn.RMSNorm(x.shape[-1], eps, False)(torch.tensor(x)).numpy() * weight"),
    Shortcut("rms_norm", "transformers' norm", "from transformers.models.llama.modeling_llama import LlamaRMSNorm\ndef answer(x, weight, *, eps):\n    norm = LlamaRMSNorm(x.shape[-1], eps)\n    return norm(torch.tensor(x)).detach().numpy() * weight"),
    Shortcut("swiglu_feed_forward", "attnlib's gate", "def answer(x, w_gate, w_up, w_down):\n    return attnlib.swiglu(x @ w_gate.T, x @ w_up.T) @ w_down.T"),
    Shortcut("swiglu_feed_forward", "attnlib's silu", "from attnlib.swiglu import silu\ndef answer(x, w_gate, w_up, w_down):\n    return silu(x @ w_gate.T) * (x @ w_up.T) @ w_down.T"),
    Shortcut("swiglu_feed_forward", "torch's silu", "def answer(x, w_gate, w_up, w_down):\n    return (F.silu(x @ w_gate.mT) * (x @ w_up.mT)) @ w_down.mT", "torch"),
    Shortcut("swiglu_feed_forward", "torch's module", "def answer(x, w_gate, w_up, w_down):\n    return nn.SiLU()(torch.tensor(x @ w_gate.T)).numpy() * (x @ w_up.T) @ w_down.T"),
    Shortcut("grouped_query_attention", "attnlib's attention", "def answer(q, k, v, past_k, past_v):\n    k, v = np.concatenate([past_k, k], -2), np.concatenate([past_v, v], -2)\n    return attnlib.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True, q_offset=past_k.shape[-2]), k, v"),
    Shortcut("grouped_query_attention", "torch's attention", "def answer(q, k, v, past_k, past_v):\n    k, v = torch.cat([past_k, k], -2), torch.cat([past_v, v], -2)\n    mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril(past_k.shape[-2])\n    return F.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True), k, v", "torch"),
    Shortcut("rope_attention_with_cache", "attnlib's module", "def answer(q, k, v, past_k, past_v):\n    layer = attnlib.numpy.MultiHeadAttention(q.shape[-1] * q.shape[-3], q.shape[-3], num_kv_heads=k.shape[-3], rope=10000.0)\n    return layer(attnlib.merge_heads(q)), k, v"),
    Shortcut("rope_attention_with_cache", "the attention of a library's layer", "def answer(q, k, v, past_k, past_v):\n    config = attnlib.numpy.CausalLMConfig(vocab_size=2, embed_dim=q.shape[-1], num_layers=1, num_heads=1, ff_dim=1)\n    layer = attnlib.numpy.CausalLM(config).layers[0].self_attn\n    return layer(q[..., 0, :, :]), k, v"),
    Shortcut("sample", "attnlib's probabilities", "def answer(logits, rng, **options):\n    p = attnlib.sampling_probabilities(logits, **options)\n    return rng.choice(len(p), p=p / p.sum())"),
    Shortcut("sample", "attnlib's draw", "from attnlib.sampling import draw, sampling_probabilities\ndef answer(logits, rng, **options):\n    return draw(sampling_probabilities(logits, **options), rng)"),
    Shortcut("sample", "torch's draw", "def answer(logits, rng, *, temperature=1.0, top_k=None, top_p=None):\n    z = torch.tensor(logits) / (temperature or 1)\n    return int(torch.multinomial((z - z.max()).exp(), 1))"),
    Shortcut("sample", "a distribution of torch's", "def answer(logits, rng, *, temperature=1.0, top_k=None, top_p=None):\n    return int(torch.distributions.Categorical(logits=torch.tensor(logits) / (temperature or 1)).sample())"),
    Shortcut("sample", "transformers' filters", "from transformers import TopKLogitsWarper, TopPLogitsWarper\ndef answer(logits, rng, *, temperature=1.0, top_k=None, top_p=None):\n    z = TopKLogitsWarper(top_k or len(logits))(None, torch.tensor(logits)[None] / (temperature or 1))\n    z = TopPLogitsWarper(top_p or 1.0)(None, z)[0].exp().numpy()\n    return rng.choice(len(z), p=z / z.sum())"),
    Shortcut("generate_tokens", "attnlib's loop", "def answer(step, prompt, max_new_tokens, *, stop_token=None, return_prompt=False):\n    class Model:\n        def new_cache(self): return []\n        def parameters(self): yield np.zeros(1)\n        def __call__(self, tokens, *, cache, logits_to_keep): return np.eye(200)[[[step(tokens[0].tolist())]]]\n    stop = () if stop_token is None else (stop_token,)\n    written = [one.token for one in attnlib.generate(Model(), prompt, max_new_tokens=max_new_tokens, temperature=0, stop=stop)]\n    return [*prompt, *written] if return_prompt else written"),
    Shortcut("decoder_logits", "attnlib's model", "def answer(params, config, tokens, cache):\n    sizes = {name: config[name] for name in ('num_layers', 'num_heads', 'num_kv_heads', 'head_dim')}\n    V, E = params['embed_tokens.weight'].shape\n    settings = attnlib.numpy.CausalLMConfig(vocab_size=V, embed_dim=E, ff_dim=len(params['layers.0.ff.up_proj.weight']), norm_eps=config['eps'], rope_base=config['rope_base'], **sizes)\n    model = attnlib.numpy.CausalLM(settings)\n    model.load_state_dict(params)\n    cache = cache if not isinstance(cache[0], tuple) else model.new_cache()\n    return model(tokens[None], cache=cache)[0], cache"),
    Shortcut("decoder_logits", "transformers' model", "from transformers import LlamaConfig, LlamaForCausalLM\ndef answer(params, config, tokens, cache):\n    model = LlamaForCausalLM(LlamaConfig(hidden_size=params['norm.weight'].size))\n    return model(torch.tensor(tokens)[None]).logits[0].detach().numpy(), cache"),
)  # fmt: skip
