"""Faults to plant in the library, one at a time: each a plausible slip, and each must be noticed.

The old text stands exactly once in its file; where it does not any longer, the fault has to be written anew.
"""

from typing import NamedTuple


class Mutant(NamedTuple):
    """One slip: in this file, this text instead of that one."""

    what: str
    file: str
    old: str
    new: str
    library: str = (
        "numpy"  # whose kernels the slip is in, or, for code that both share, the one that is faster to start
    )


def fused(what, old, new):
    """A slip in the calls of torch's fused kernel."""
    return Mutant(what, "_torch_fused.py", old, new, "torch")


def unfused(what, old, new):
    """A slip in torch's attention from all scores."""
    return Mutant(what, "_torch_unfused.py", old, new, "torch")


def backward(what, old, new):
    """A slip in the backward pass, which all libraries share."""
    return Mutant(f"backward {what}", "_backward.py", old, new)


def array_api(what, old, new):
    """A slip in the kernels for libraries other than NumPy and torch."""
    return Mutant(what, "_array_api_kernels.py", old, new, "array_api_strict")


SDPA = [
    Mutant(
        "no scale unless one is given",
        "_attention_arguments.py",
        "float(max(width, 1) ** -0.5)",
        "1.0",
    ),
    Mutant(
        "divided by D, not by its root",
        "_attention_arguments.py",
        "float(max(width, 1) ** -0.5)",
        "1 / max(width, 1)",
    ),
    Mutant(
        "causal with a window open to the right",
        "_attention_arguments.py",
        "0 if is_causal else right",
        "right",
    ),
    Mutant(
        "causal off by one",
        "_attention_arguments.py",
        "0 if is_causal else right",
        "1 if is_causal else right",
    ),
    Mutant(
        "offset with the wrong sign",
        "_attention_arguments.py",
        'right, check_int("q_offset", q_offset)',
        'right, -check_int("q_offset", q_offset)',
    ),
    backward("without the sum over the row", "d_weights = d_weights - (row_sum if", "(row_sum if"),
    backward("sums over the queries", "d_weights, axis=-1, keepdims", "d_weights, axis=-2, keepdims"),
    backward("without the scale for the query", "d_query = scale * (d_scores @ k)", "d_query = d_scores @ k"),
    backward(
        "without the scale for the key",
        "d_key = swapaxes(d_scores, -1, -2) @ q",
        "d_key = swapaxes(d_scores, -1, -2) @ q / scale",
    ),
    backward("without the slope of the softcap", "d_scores = d_scores * slope", "pass"),
    backward("with half the slope of the softcap", "1 - capped * capped", "1 - capped"),
    backward("with the gradients of shared keys averaged", "xp.reshape(xp.sum(grad,", "xp.reshape(xp.mean(grad,"),
    backward("with the last block alone", "total += _sum_to(part", "total[...] = _sum_to(part"),
    Mutant("a block without its mask", "_score_blocks.py", "return combine_masks(self", "return self.reached; (self"),
]
NUMPY = [
    Mutant("lse without the maximum", "_numpy_tiled.py", "else lse + row_max[..., 0] * log(2)", "else lse"),
    Mutant("lse to base 2", "_numpy_tiled.py", "np.log(row_sum[..., 0])", "np.log2(row_sum[..., 0])"),
    Mutant(
        "bool mask upside down in a tile",
        "_numpy_tiled.py",
        "fill_masked(tile, mask, fill)",
        "fill_masked(tile, ~mask, fill)",
    ),
    Mutant("bool mask multiplied upside down", "_numpy_tiled.py", "x *= mask", "x *= ~mask"),
    Mutant("bool mask upside down in the bits", "_numpy_tiled.py", "np.negative(kept, out=kept)", "kept -= 1"),
    Mutant(
        "few scores without their scale",
        "_numpy_fast_path.py",
        "np.matmul(query * scale, key.mT)",
        "np.matmul(query, key.mT)",
    ),
    Mutant(
        "few scores that see one more key",
        "_numpy_fast_path.py",
        "np.tri(MAX_CAUSAL_LENGTH, k=-1, dtype",
        "np.tri(MAX_CAUSAL_LENGTH, k=-2, dtype",
    ),
    Mutant(
        "few scores without their mask",
        "_numpy_fast_path.py",
        "    if mask is not None:\n        _apply(",
        "    if False:\n        _apply(",
    ),
    Mutant("few scores, mask upside down", "_numpy_fast_path.py", "limit -= 0.5", "limit = 0.5 - limit"),
    Mutant("few scores, nothing to subtract", "_numpy_fast_path.py", ", initial=LOWEST_FLOAT[weights.dtype]", ""),
    Mutant("few scores, nothing to divide by", "_numpy_fast_path.py", ", initial=TINY", ""),
    Mutant(
        "few scores of a group in another's rows",
        "_numpy_fast_path.py",
        "query.reshape(*key.shape[:-2], -1, query.shape[-1])",
        "query.swapaxes(-2, -3).reshape(*key.shape[:-2], -1, query.shape[-1])",
    ),
    Mutant(
        "a window that forbids nothing, one early", "_lengths.py", "offset + right >= S - 1", "offset + right >= S - 2"
    ),
    Mutant(
        "a window that forbids nothing, one late",
        "_lengths.py",
        "T - 1 + offset - left <= 0",
        "T - 2 + offset - left <= 0",
    ),
    Mutant(
        "float mask to base e among scores to base 2",
        "_numpy_tiled.py",
        "added, least = mask * tile.dtype.type(log2(e))",
        "added, least = mask * tile.dtype.type(1)",
    ),
    Mutant(
        "window one too long to the left, in tiles",
        "_numpy_tiled.py",
        "n = first - (begin + offset - left)",
        "n = first - (begin + offset - left - 1)",
    ),
    Mutant(
        "window one short to the right",
        "_numpy_tiled.py",
        "n = begin + offset + right + 1 - first",
        "n = begin + offset + right - first",
    ),
    Mutant(
        "keys in reach one short",
        "_lengths.py",
        "max(min(end + offset + right, last), a)",
        "max(min(end + offset + right - 1, last), a)",
    ),
    Mutant(
        "queries in reach begin too late",
        "_numpy_tiled.py",
        "max(first - offset - right, 0)",
        "max(first - offset - right + 1, 0)",
    ),
    Mutant(
        "queries in reach end too early",
        "_numpy_tiled.py",
        "min(last - offset + left, T)",
        "min(last - offset + left - 1, T)",
    ),
    Mutant(
        "softcap without its factor after tanh", "_numpy_tiled.py", "out *= self.softcap * log2(e)", "out *= log2(e)"
    ),
    Mutant("softcap without its divisor before tanh", "_numpy_tiled.py", "self.scale / self.softcap", "self.scale"),
    Mutant("scores not to base 2", "_numpy_tiled.py", "return self.scale * log2(e) if", "return self.scale if"),
    Mutant("every score taken for small", "_numpy_tiled.py", "* log2(e) <= EXP_SAFE", "* log2(e) <= EXP_SAFE**9"),
    Mutant(
        "no maximum taken out",
        "_numpy_tiled.py",
        "x -= np.where(np.isneginf(row_max), 0, row_max)",
        "x -= 0 * np.where(np.isneginf(row_max), 0, row_max)",
    ),
    Mutant("running sum not scaled down", "_numpy_tiled.py", "self.row_sum[rows] *= rescale[:, 0]", "pass"),
    Mutant("context so far not scaled down", "_numpy_tiled.py", "self.context[rows] *= rescale", "pass"),
    Mutant(
        "running maximum forgotten",
        "_numpy_tiled.py",
        "row_max = np.maximum(self.row_max[rows], tile.max(axis=-1, keepdims=True))",
        "row_max = tile.max(axis=-1, keepdims=True)",
    ),
    Mutant(
        "last tile of keys dropped",
        "_numpy_tiled.py",
        "for first in range(0, len(self.key), BLOCK_K):",
        "for first in range(0, len(self.key) - BLOCK_K + 1, BLOCK_K):",
    ),
    Mutant(
        "last tile of queries dropped",
        "_numpy_tiled.py",
        "for begin in range(start, stop, BLOCK_Q):",
        "for begin in range(start, max(stop - 1, 1), BLOCK_Q):",
    ),
    Mutant(
        "never divided by the sum in tiles",
        "_numpy_tiled.py",
        "divide(self.context, self.row_sum[:, None] * self.spec.keep_prob)",
        "pass",
    ),
    Mutant(
        "a query with nothing gets nan",
        "_numpy_tiled.py",
        "x -= np.where(np.isneginf(row_max), 0, row_max)",
        "x -= row_max",
    ),
    Mutant(
        "the sum runs over the queries too",
        "_numpy_tiled.py",
        "row_sum = (tile @ np.ones(b - a, tile.dtype))[..., None]",
        "row_sum = tile.sum(axis=(-2, -1), keepdims=True)",
    ),
    Mutant("weights without their sum", "_numpy_tiled.py", "divide(tile, row_sum * spec.keep_prob)", "pass"),
    Mutant(
        "groups of heads interleaved",
        "_head_groups.py",
        "return reshape(x, (*x.shape[:-3], H_key, x.shape[-3] // H_key, *x.shape[-2:]))",
        "return reshape(x, (*x.shape[:-3], x.shape[-3] // H_key, H_key, *x.shape[-2:])).swapaxes(-4, -3)",
    ),
    Mutant("dropout that does not scale up", "_numpy_tiled.py", "return 1 - self.dropout_p or 1.0", "return 1.0"),
    Mutant(
        "dropout that keeps what it should drop",
        "_numpy_tiled.py",
        ".random_sample(weights.shape) >= self.dropout_p",
        ".random_sample(weights.shape) < self.dropout_p",
    ),
    Mutant("dropout after the context is made", "_numpy_tiled.py", "            spec.dropout(tile)\n", ""),
    Mutant("no dropout in tiles", "_numpy_tiled.py", "            self.spec.dropout(tile)\n", ""),
    Mutant("softmax without its sum", "_numpy_kernels.py", "work /= np.where(total == 0, 1, total)", "pass"),
    Mutant(
        "mask upside down in the scores of attention",
        "_numpy_kernels.py",
        "return np.where(mask, scores, np.asarray(-np.inf, scores.dtype))",
        "return np.where(mask, np.asarray(-np.inf, scores.dtype), scores)",
    ),
]
TORCH = [
    Mutant(
        "a plain call forgets causality",
        "_torch_fast_path.py",
        "is_causal=is_causal, enable_gqa=grouped",
        "is_causal=False, enable_gqa=grouped",
        "torch",
    ),
    fused(
        "few keys forget causality",
        "    if not causal:\n        return query",
        "    if True:\n        return query",
    ),
    fused("few keys see one more", "-torch.inf).triu(1)", "-torch.inf).triu(2)"),
    Mutant("a plain call forgets the window", "sdpa.py", "and window is None\n", "\n", "torch"),
    fused(
        "causal dropped beside a mask",
        "    if not causal and not spec.window.is_unlimited():",
        "    if not causal and mask is None and not spec.window.is_unlimited():",
    ),
    Mutant(
        "causal although there is an offset",
        "_spec.py",
        "return self.left is None and self.right == 0 and self.offset == 0",
        "return self.left is None and self.right == 0",
        "torch",
    ),
    fused("causal although the scale is negative", "True if spec.scale > 0 else False", "True"),
    Mutant(
        "causal although there is a window",
        "_spec.py",
        "return self.left is None and self.right == 0 and self.offset == 0",
        "return self.right == 0 and self.offset == 0",
        "torch",
    ),
    fused(
        "a mask of all queries beside some of them",
        "torch.split(spec.mask, rows, -2)",
        "torch.split(spec.mask.flip(-2), rows, -2)",
    ),
    fused("a block past all keys sees the first one", "key.new_zeros(1, 1", "key.new_ones(1, 1"),
    Mutant(
        "a block of queries loses its place in the window",
        "_score_blocks.py",
        "WindowSpec(left, right, begin + offset - a)",
        "WindowSpec(left, right, offset - a)",
        "torch",
    ),
    unfused("no scale", "scores = _scaled(query, spec.scale) @", "scores = query @"),
    fused(
        "the scale forgotten by the fused operation",
        "spec.dropout_p, causal, scale=spec.scale, enable_gqa=",
        "spec.dropout_p, causal, enable_gqa=",
    ),
    unfused("softcap without its factor", "spec.softcap * torch.tanh(", "torch.tanh("),
    unfused(
        "lse of the scores before the mask",
        "_log_sums(scores, empty) if",
        "_log_sums(_scores(q, k, spec), empty) if",
    ),
    fused(
        "a mask of five dimensions seen with batches swapped",
        "mask = flatten_batch(mask.expand(*batch, H, *mask.shape[-2:]), batch, H)",
        "mask = flatten_batch(mask.expand(*batch, H, *mask.shape[-2:]), batch, H).flip(0)",
    ),
    Mutant(
        "groups of heads interleaved",
        "_head_groups.py",
        "return reshape(x, (*x.shape[:-3], H_key, x.shape[-3] // H_key, *x.shape[-2:]))",
        "return reshape(x, (*x.shape[:-3], x.shape[-3] // H_key, H_key, *x.shape[-2:])).swapaxes(-4, -3)",
        "torch",
    ),
    Mutant(
        "a window that never forbids",
        "_spec.py",
        "return self.left is None and self.right is None",
        "return self.left is None or self.right is None",
        "torch",
    ),
    Mutant(
        "blocks without the gradient of the log-sums",
        "_torch_score_blocks.py",
        "_torch_steps, d_lse)",
        "_torch_steps)",
        "torch",
    ),
    Mutant(
        "blocks without dropout",
        "_torch_score_blocks.py",
        "block.mask(mask), spec)",
        "block.mask(mask), spec._replace(dropout_p=0.0))",
        "torch",
    ),
    unfused("weights of an empty row not 0", "weights.masked_fill(empty, 0.0)", "weights"),
]
OTHERS = [
    Mutant("attention averages by scores", "attention.py", "weights @ value, weights", "scores @ value, weights"),
    Mutant("many heads forget causality", "heads.py", "attn_mask, is_causal=is_causal))", "attn_mask))"),
    Mutant("causal without the own position", "masks.py", "return j <= i", "return j < i"),
    Mutant(
        "window one too long to the left",
        "masks.py",
        "near = i - left <= j",
        "near = i - left <= j + 1",
    ),
    Mutant("one attention sink too many", "masks.py", "(j < sinks)", "(j <= sinks)"),
    Mutant(
        "padding one too long",
        "masks.py",
        "device=device) < checked[:,",
        "device=device) <= checked[:,",
    ),
    Mutant("masks joined by or", "masks.py", "return one & other", "return one | other"),
    Mutant(
        "sine and cosine swapped in the table",
        "positions.py",
        "sin, cos = xp.sin(angles), xp.cos(angles)",
        "cos, sin = xp.sin(angles), xp.cos(angles)",
    ),
    Mutant(
        "frequencies of k/D instead of 2k/D",
        "positions.py",
        "frequencies = base**-exponents",
        "frequencies = base ** -(exponents / 2)",
    ),
    Mutant(
        "RoPE turns the other way",
        "positions.py",
        "(a * cos - b * sin, b * cos + a * sin)",
        "(a * cos + b * sin, b * cos - a * sin)",
    ),
    Mutant(
        "RoPE's layouts swapped",
        "positions.py",
        "(x[..., 0::2], x[..., 1::2]) if interleaved else",
        "(x[..., 0::2], x[..., 1::2]) if not interleaved else",
    ),
    Mutant(
        "ALiBi's slopes begin with 1",
        "positions.py",
        "first = xp.arange(1, n + 1, dtype",
        "first = xp.arange(0, n, dtype",
    ),
    Mutant("ALiBi's further slopes of whole numbers", "positions.py", "+ 0.5\n", "+ 1.0\n"),
    Mutant(
        "ALiBi favours what is far", "positions.py", "xp.astype(-xp.abs(i - j), work)", "xp.astype(xp.abs(i - j), work)"
    ),
    Mutant(
        "T5's buckets by i - j",
        "positions.py",
        "bucket = half * xp.astype(distance > 0, distance.dtype)",
        "bucket = half * xp.astype(distance < 0, distance.dtype)",
    ),
    Mutant(
        "T5's buckets begin one later",
        "positions.py",
        "bucket + xp.astype(size >= limit, distance.dtype)",
        "bucket + xp.astype(size > limit, distance.dtype)",
    ),
    Mutant(
        "heads and positions not swapped",
        "heads.py",
        "return swapaxes(reshape(x, (*leading, length, num_heads, width // num_heads)), -3, -2)",
        "return reshape(x, (*leading, num_heads, length, width // num_heads))",
    ),
    Mutant(
        "heads side by side in each number",
        "heads.py",
        "return reshape(swapaxes(x, -3, -2), (*leading, length, heads * width))",
        "return reshape(swapaxes(swapaxes(x, -3, -2), -2, -1), (*leading, length, heads * width))",
    ),
    Mutant(
        "an Elman cell without tanh",
        "cells.py",
        "return xp.tanh(from_x + from_h)",
        "return from_x + from_h",
    ),
    Mutant("gates z, r, n", "cells.py", "r, z = gates", "z, r = gates"),
    Mutant("z and 1 - z swapped", "cells.py", "return (1 - z) * n + z * h", "return z * n + (1 - z) * h"),
    Mutant(
        "reset gate on the whole sum",
        "cells.py",
        "n = xp.tanh(from_x[..., 2 * D_h :] + r * from_h",
        "n = xp.tanh(r * from_x[..., 2 * D_h :] + r * from_h",
    ),
    Mutant("sigmoid of twice the number", "cells.py", "return (1 + xp.tanh(x / 2)) / 2", "return (1 + xp.tanh(x)) / 2"),
    Mutant(
        "a step too few is real",
        "recurrent.py",
        "device=device_of(x)) < lengths[..., None])[..., None]",
        "device=device_of(x)) < lengths[..., None] - 1)[..., None]",
    ),
    Mutant("additive without tanh", "similarity.py", "return xp.tanh(q + k) @ v", "return (q + k) @ v"),
    Mutant(
        "cosine of the query's length",
        "similarity.py",
        "return _dot(_unit(query, xp), _unit(key, xp))",
        "return _dot(query, _unit(key, xp))",
    ),
    Mutant("gaussian with the wrong sign", "similarity.py", "return -0.5 * xp.sum(", "return 0.5 * xp.sum("),
    Mutant(
        "Luong reads the context behind the state",
        "seq2seq.py",
        "xp.concat([context, state], axis=-1)",
        "xp.concat([state, context], axis=-1)",
    ),
    Mutant("attention forgets its mask", "attention.py", "scores = kernels_for(scores).masked(scores, mask)", "pass"),
    Mutant("many heads without the last matrix", "heads.py", "is_causal=is_causal)) @ w_o", "is_causal=is_causal))"),
]
ARRAY_API = [
    array_api("a query of nothing divides by 0", "total = xp.where(nothing, 1.0, ", "total = xp.where(nothing, 0.0, "),
    array_api("log-sums without the maximum", "xp.log(total) + top)", "xp.log(total))"),
    array_api("no softcap", "spec.softcap * xp.tanh(scores / spec.softcap)", "scores"),
    array_api("a window ignored", "mask = mask_within_window(spec.mask, ", "mask, _ = spec.mask, ("),
]
MUTANTS = SDPA + NUMPY + TORCH + ARRAY_API + OTHERS


def triton(what, old, new):
    """A slip in the kernel for GPUs, which triton_cases.py checks separately."""
    return Mutant(what, "_triton.py", old, new, "triton")


TRITON = [
    triton("the context keeps its old scale", "context * rescale[:, None] +", "context +"),
    triton("the sum keeps its old scale", "row_sum * rescale +", "row_sum +"),
    triton("heads dealt out in turn", "b * key_b + h // group * key_h", "b * key_b + h % (H // group) * key_h"),
    triton("causal off by one", "(j <= position + right)", "(j < position + right)"),
    triton("window off by one to the left", "(j >= position - left)", "(j > position - left)"),
    triton("the first key of a window skipped", "begin + offset - left, 0)", "begin + offset - left + 1, 0)"),
    triton("the last key of a window skipped", "end + offset + right, S)", "end + offset + right - 1, S)"),
    triton("offset with the wrong sign", "position = begin + offset", "position = begin - offset"),
    triton("keys that do not exist", "kept = j < last\n", "kept = j <= last\n"),
    triton("the cap keeps scores below 1", "scores = softcap * _tanh", "scores = _tanh"),
    triton("small scores lose digits under a cap", "tl.abs(x) < 0.2, near", "tl.abs(x) < 0.0, near"),
    triton("powers of 2 of natural scores", "return scores * LOG2_E", "return scores"),
    triton("log-sum to base 2", "+ row_max) * LN_2", "+ row_max)"),
    triton("rows of nothing are 0 / 0", "x / tl.where(row_sum == 0.0, 1.0, row_sum)", "x / row_sum"),
    triton("-inf minus -inf", 'x - tl.where(row_max == float("-inf"), 0.0, row_max)', "x - row_max"),
    triton("strides of the keys' components ignored", "D, key_s, key_d, BLOCK_K", "D, key_s, key_s, BLOCK_K"),
]
