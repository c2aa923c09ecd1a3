"""The parts of attnlib that answer an exercise, which enter the box only after the student's answer is collected.

In the box, these definitions have stand-ins with the same names, arguments and documentation, whose code raises an
exception. Once the last question about an exercise has been asked, the definitions that answer no later question are
sent.
"""

import ast
import marshal
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock

Part = dict[str, object]  # what is sent for a definition: its module, name and code, and a class's methods

# Weighted sums of values, in NumPy and in torch. A function that only calls torch's own kernel is not an answer.
_ATTENTION = (
    *("attention.attention", "attention.self_attention", "sdpa.scaled_dot_product_attention_backward"),
    *("_backward.gradients", "_numpy_fast_path.attend"),
    *("_numpy_kernels.sdpa", "_torch_unfused.attend", "_torch_unfused.attend_head_by_head"),
    *(
        "_numpy_tiled.ScoreSpec",
        "_numpy_tiled._Head",
        "_numpy_tiled.attend",
        "_numpy_tiled.attend_whole_rows",
        "_numpy_tiled._exponentiate",
        "_numpy_tiled.exp2",
    ),
)
_STEPS = ("seq2seq.bahdanau_step", "seq2seq.luong_step", "seq2seq._attend", "seq2seq._next_state")
_HEADS = ("heads.multi_head_attention", "_multi_head_attention.MultiHeadAttention")
_MASKED = (
    "_numpy_kernels.masked",
    "_numpy_fast_path._apply",
    "_numpy_tiled.fill_masked",
    "_torch_steps.masked",
    "_torch_steps.masked_scores",
)

# The functions and classes of attnlib that contain the answer, or most of it, by the exercise's name. A function that
# only calls one of them is not listed, because it will raise an exception anyway.
ANSWERS: Mapping[str, tuple[str, ...]] = {
    "rnn_cell": ("cells.rnn_cell", "cells._affine"),
    "additive": ("similarity.additive",),
    "general": ("similarity.general",),
    "bahdanau_step": _STEPS,
    "luong_step": _STEPS,
    "softmax": (
        "softmax.softmax",
        "_numpy_kernels.softmax",
        "_torch_steps.softmax",
        "_torch_steps.softmax_inplace",
        *_ATTENTION,
    ),
    "dot": ("similarity.dot", "similarity._dot"),
    "cosine": ("similarity.cosine", "similarity._unit"),
    "gaussian": ("similarity.gaussian",),
    "gaussian_without_differences": ("similarity.gaussian",),
    "attention": _ATTENTION,
    "self_attention": _ATTENTION,
    "scaled_dot": ("similarity.scaled_dot", "_attention_arguments.check_scale"),
    "scaled_dot_product_attention": _ATTENTION,
    "attention_with_counts": _ATTENTION,
    "attention_shapes": ("_attention_arguments.check_inputs",),
    "attention_cost": (),
    "split_heads": ("heads.split_heads", "heads.split"),
    "merge_heads": ("heads.merge_heads", "heads.merge"),
    "multi_head_attention": _HEADS,
    "head_contributions": _HEADS,
    "MultiHeadAttention": _HEADS,
    "causal_mask": (
        *("masks.causal_mask", "masks.window_mask", "masks.within_window", "masks._positions"),
        "_torch_fused.zero_mask",
    ),
    "padding_mask": ("masks.padding_mask", "recurrent._real_steps"),
    "masked_attention": (*_ATTENTION, *_MASKED),
    "attention_with_bias": (*_ATTENTION, *_MASKED),
    "KVCache": ("cache.KVCache", "sliding_window_cache.SlidingWindowCache", "static_cache.StaticCache"),
    "sinusoidal_positions": ("positions.sinusoidal_positions", "positions.rope_tables", "positions._angles"),
    "apply_rope": ("positions.apply_rope", "positions.rotate_pairs"),
    "alibi_bias": ("positions.alibi_bias", "positions.alibi_slopes", "positions._slopes"),
    "equivariance_gap": (),
    "TransformerBlock": ("_transformer_block.TransformerBlock", "_transformer_block.DecoderBlock"),
    "scaled_dot_product_attention_backward": (
        *("sdpa.scaled_dot_product_attention_backward", "_backward.gradients", "_backward._through_softmax"),
    ),
    "online_softmax": (
        "_numpy_tiled._Head",
        "_numpy_tiled.attend",
        "_numpy_tiled.attend_whole_rows",
        "_numpy_tiled._exponentiate",
        "_numpy_tiled.exp2",
    ),
    "attention_in_blocks": _ATTENTION,
    "rms_norm": ("rms_norm.rms_norm",),
    "swiglu_feed_forward": ("swiglu.swiglu", "swiglu.silu", "_causal_lm.FeedForward"),
    "grouped_query_attention": _ATTENTION,
    "rope_attention_with_cache": ("_multi_head_attention.MultiHeadAttention",),
    "sample": (
        *("sampling.sampling_probabilities", "sampling.distribution", "sampling.draw", "sampling._scaled"),
        *("sampling._first_maximum", "sampling._nucleus", "sampling._keep"),
    ),
    "generate_tokens": ("generation.generate", "generation._generate", "speculative.generate_speculatively"),
    "weights_and_output": _ATTENTION,
    "decoder_logits": ("_causal_lm.CausalLM", "_causal_lm.CausalLMLayer", "_causal_lm.FeedForward"),
}
ALL_WITHHELD = frozenset(name for names in ANSWERS.values() for name in names)
_PARSING = Lock()
RAISE_WITHHELD = "from grading.sandbox.inside.refusals import Withheld; raise Withheld({name!r})"


def withheld(exercises: Iterable[str]) -> frozenset[str]:
    """Return the definitions that answer any of these exercises."""
    return frozenset(name for exercise in exercises for name in ANSWERS.get(exercise, ()))


def parts(names: Iterable[str]) -> list[Part]:
    """Return these definitions as they are sent into the box."""
    return [_definitions(name.partition(".")[0])[name] for name in sorted(names)]


def stand_ins(module: str, source: str) -> str:
    """Return the source of a module of attnlib, with stand-ins in place of the definitions that answer an exercise."""
    lines = source.split("\n")
    for node in reversed(list(_answering(module, _parsed(source)))):
        functions = [node] if isinstance(node, ast.FunctionDef) else _methods(node)
        for function in reversed(functions):
            begin = function.body[0]
            documented = ast.get_docstring(function, clean=False) is not None
            first = begin.end_lineno if documented else begin.lineno - 1
            lines[first : function.end_lineno] = [
                " " * begin.col_offset + RAISE_WITHHELD.format(name=node.name.strip("_"))
            ]
    return "\n".join(lines)


def library() -> Path:
    """Return where attnlib is, without importing it, which would take time in which the box could start."""
    spec = find_spec("attnlib")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


@cache
def _definitions(module: str) -> Mapping[str, Part]:
    """Return the definitions of a module that answer an exercise, by their names."""
    source = (library() / f"{module}.py").read_text(encoding="utf-8")
    found: dict[str, Part] = {}
    for node in _answering(module, _parsed(source)):
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]) - 1
        text = "\n".join(source.split("\n")[first : node.end_lineno])
        methods = [] if isinstance(node, ast.FunctionDef) else [function.name for function in _methods(node)]
        # The text is compiled once, here, because compiling it again in each submission's process would take too long.
        code = b64encode(marshal.dumps(compile(text, f"<attnlib.{module}>", "exec", dont_inherit=True))).decode()
        found[f"{module}.{node.name}"] = {
            "module": f"attnlib.{module}", "name": node.name, "code": code, "methods": methods
        }  # fmt: skip
    return found


def _answering(module: str, tree: ast.Module) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    for node in tree.body:
        if (
            isinstance(node, ast.FunctionDef | ast.ClassDef)
            and f"{module}.{node.name}" in ALL_WITHHELD
            and not _is_stub(node)
        ):
            yield node


def _parsed(source: str) -> ast.Module:
    """Parse one source at a time: Python 3.11 raises a SystemError if two threads make syntax trees at once."""
    with _PARSING:
        return ast.parse(source)


def _methods(node: ast.ClassDef) -> list[ast.FunctionDef]:
    return [function for function in node.body if isinstance(function, ast.FunctionDef) and not _is_stub(function)]


def _is_stub(node: ast.FunctionDef | ast.ClassDef) -> bool:
    """Tell whether a definition is only a signature, like an ``@overload``, so that there is nothing to withhold."""
    return [ast.unparse(statement) for statement in node.body] == ["..."]
