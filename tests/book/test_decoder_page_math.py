"""The decoder of the page, run in Node, against attnlib: its logits, weights, tokens and probabilities."""

import base64
import json
import subprocess
from functools import cache

import numpy as np
import pytest
import stdlib_lm
from _tools.decoder import GROUP, merges, packed
from test_explorer_math import MODULE, NODE

from attnlib import hf, sampling_probabilities

FOLDER = MODULE.parent
RUN = """
import { CausalLM } from "./causal_lm.js";
import { unpacked } from "./decoder_file.js";
import { byProbability, draw, randomAt, samplingProbabilities } from "./sampling.js";
import { pieces, Tokenizer } from "./tokenizer.js";
const base64 = ({ buffer }) => Buffer.from(buffer).toString("base64");
// In passes of this many tokens, or else all at once.
const read = (model, tokens, equal, pass = tokens.length) =>
  tokens.flatMap((_, n) => n % pass ? [] : model.read(tokens.slice(n, n + pass), equal));
const asked = {
  texts: ({ merges }, texts) => {
    const tokenizer = new Tokenizer(merges);
    return texts.map((text) => tokenizer.encode(text)).map((tokens) =>
      [tokens, pieces(tokens.map((token) => tokenizer.bytes[token]))]);
  },
  reads: ({ config, weights }, all) => all.map(([tokens, equal, pass]) => {
    const steps = read(new CausalLM(config, weights), tokens, equal, pass);
    return steps.map((one) => ({ ...one, logits: base64(one.logits), weights: base64(one.weights) }));
  }),
  again: ({ config, weights }, [tokens, kept]) => {
    const model = new CausalLM(config, weights);
    read(model, tokens, true);
    model.truncate(kept);
    model.truncate(tokens.length);
    return read(model, tokens.slice(kept)).map(({ logits }) => base64(logits));
  },
  samples: (_, all) => all.map(([logits, temperature, topP]) =>
    {
    const z = Float32Array.from(logits);
    return [...samplingProbabilities(z, temperature, topP, byProbability(z))];
  }),
  draws: (_, [p, seeds, places]) => Array.from({ length: seeds }, (_, seed) =>
    Array.from({ length: places }, (_, place) => draw(Float64Array.from(p), randomAt(seed, place)))),
};
let text = "";
for await (const part of process.stdin) text += part;
const { file, what, given } = JSON.parse(text);
console.log(JSON.stringify(asked[what](unpacked(file), given)));
"""


def in_node(file, what, given, folder=FOLDER):
    done = subprocess.run(
        [NODE, "--input-type=module", "-e", RUN], input=json.dumps({"file": file, "what": what, "given": given}),
        cwd=folder, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def floats(text):
    return np.frombuffer(base64.b64decode(text), "<f4")


@cache
def ours():
    """The file of the course's model, and the model itself."""
    return packed(stdlib_lm.FOLDER), hf.load(stdlib_lm.FOLDER)


def with_packed_numbers(file, model):
    """Give a model the numbers that the file holds."""
    halves = np.frombuffer(base64.b64decode(file["scales"]), "<u2").astype(np.uint32)
    scales = (halves << 16).view(np.float32)
    numbers = np.frombuffer(base64.b64decode(file["numbers"]), np.int8).reshape(-1, GROUP) * scales[:, None]
    numbers, at = numbers.ravel(), 0
    for parameter in model.state_dict().values():
        if parameter.ndim == 2:
            parameter[...] = numbers[at : at + parameter.size].reshape(parameter.shape)
            at += parameter.size
    assert at == numbers.size
    return model


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A model whose sizes all differ, with random numbers, as a checkpoint with the course's tokenizer."""
    from safetensors.numpy import load_file, save_file

    folder, rng = tmp_path_factory.mktemp("small"), np.random.default_rng(0)
    config = json.loads((stdlib_lm.FOLDER / "config.json").read_text())
    sizes = {"vocab_size": 100, "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 8,
             "num_key_value_heads": 4, "head_dim": 24, "intermediate_size": 64, "rope_theta": 30.0, "rms_norm_eps": 0.1,
             "max_position_embeddings": 40}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config | sizes))
    (folder / "tokenizer.json").write_bytes((stdlib_lm.FOLDER / "tokenizer.json").read_bytes())
    shapes_of = {"q_proj": (192, 128), "k_proj": (96, 128), "v_proj": (96, 128), "o_proj": (128, 192)}
    shapes_of |= {"gate_proj": (64, 128), "up_proj": (64, 128), "down_proj": (128, 64), "embed_tokens": (100, 128)}
    found = load_file(stdlib_lm.FOLDER / "model.safetensors")
    kept = [name for name in found if ".layers." not in name or ".layers.0." in name or ".layers.1." in name]
    shapes = {name: shapes_of.get(name.split(".")[-2], (128,)) for name in kept}
    random = {name: rng.normal(scale=0.15 if len(shape) > 1 else 1, size=shape) for name, shape in shapes.items()}
    save_file({name: array.astype(np.float16) for name, array in random.items()}, folder / "model.safetensors")
    file = packed(folder)
    return file, with_packed_numbers(file, hf.load(folder).model)


def largest_difference(file, model, texts, equal=False, folder=FOLDER, at_once=99):
    """By how much the page's logits and weights differ from those of attnlib, for texts of random tokens."""
    most = 0.0
    given = [[one, equal, at_once] for one in texts]
    for tokens, steps in zip(texts, in_node(file, "reads", given, folder), strict=True):
        logits, weights = model(np.array([tokens]), need_weights=True)
        weights = np.stack([one[0] for one in weights])  # (L, H, T, S)
        L, H = weights.shape[:2]
        for t, step in enumerate(steps):
            row = floats(step["weights"]).reshape(L, H, t + 1)
            differences = floats(step["logits"]) - logits[0, t], row - weights[:, :, t, : t + 1]
            most = max(most, *(abs(one).max() for one in differences))
    return most


def random_texts(count, vocabulary, longest):
    rng = np.random.default_rng(0)
    return [rng.integers(0, vocabulary, 1 + n % longest).tolist() for n in range(count)]


@pytest.mark.parametrize("at_once", [1, 3, 6, 99])
def test_it_computes_what_attnlib_computes_however_many_tokens_it_reads_in_a_pass(small, at_once):
    assert largest_difference(*small, random_texts(200, 100, 13), at_once=at_once) < 1e-4


def test_so_does_the_models_own_file():
    file, loaded = ours()
    model = with_packed_numbers(file, hf.load(stdlib_lm.FOLDER).model)
    tokens = loaded.tokenizer.encode("def read_lines(path):\n    with open(path) as file:\n").ids
    assert largest_difference(file, model, [tokens]) < 1e-4


FAULTS = {
    "the pairs are neighbours": ("causal_lm.js", "at + D / 2", "at + 1"),
    "the key heads are dealt out": ("causal_lm.js", "Math.floor(h * kvHeads / heads)", "(h % kvHeads)"),
    "scores are not scaled": ("causal_lm.js", "dot / Math.sqrt(D)", "dot"),
    "the norm adds nothing": ("causal_lm.js", "mean + this.config.eps", "mean"),
    "tokens of a pass have one position": ("causal_lm.js", "(this.length + t) * base", "this.length * base"),
    "one of four vectors is lost": ("causal_lm.js", "y2[r] = c", "y2[r] = b"),
    "one scale is used for all groups": ("packed_weights.js", "*= scales[g]", "*= scales[0]"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_noticed(fault, small, tmp_path):
    name, right, wrong = FAULTS[fault]
    for module in (
        "causal_lm.js",
        "decoder_file.js",
        "packed_weights.js",
        "sampling.js",
        "softmax_inplace.js",
        "tokenizer.js",
    ):
        text = (FOLDER / module).read_text(encoding="utf-8")
        assert module != name or text.count(right) == 1
        (tmp_path / module).write_text(text.replace(right, wrong) if module == name else text, encoding="utf-8")
    assert largest_difference(*small, random_texts(6, 100, 6), folder=tmp_path) > 1e-3


def test_8_bits_change_little():
    """What the chapter says: a head's row keeps its largest weight in more than 99%, and logits move little."""
    file, loaded = ours()
    rounded = with_packed_numbers(file, hf.load(stdlib_lm.FOLDER).model)
    tokens = loaded.tokenizer.encode((FOLDER.parents[1] / "attnlib" / "sampling.py").read_text()).ids
    texts = np.array(tokens[: 12 * 64]).reshape(12, 64)
    (logits, weights), (close, near) = (model(texts, need_weights=True) for model in (loaded.model, rounded))
    rows = [(a.argmax(-1) == b.argmax(-1))[..., 1:] for a, b in zip(weights, near, strict=True)]
    assert np.mean(rows) > 0.99
    assert abs(logits - close).mean() < 0.03
    assert (logits.argmax(-1) == close.argmax(-1)).mean() > 0.98


def test_equal_weights_average(small):
    """The control: with queries that are 0, all scores are equal in attnlib, too."""
    file, model = small
    kept = {name: array.copy() for name, array in model.state_dict().items() if "q_proj" in name}
    for name, array in model.state_dict().items():
        array[...] = 0 if "q_proj" in name else array
    assert largest_difference(file, model, random_texts(6, 100, 9), equal=True) < 1e-4
    for name, array in kept.items():
        model.state_dict()[name][...] = array


def test_what_was_cut_off_is_forgotten_and_the_work_is_counted(small):
    file, model = small
    tokens = random_texts(12, 100, 13)[-1]
    found = [floats(one) for one in in_node(file, "again", [tokens, 0])]
    assert abs(np.array(found) - model(np.array([tokens]))[0]).max() < 1e-4
    steps = in_node(file, "reads", [[tokens, False, 5]])[0]
    layer = 2 * 128 * 192 + 2 * 128 * 96 + 3 * 128 * 64
    right = [2 * (layer + 2 * 8 * 24 * (t + 1)) + 128 * 100 for t in range(len(tokens))]
    assert [one["work"] for one in steps] == right


ODD = [
    "", " ", "\t\tx\t", "a  b   c    ", "\n\n  \n", "don't I'll we've 'S", "🙂👩\u200d👩\u200d👧 é e\u0301",
    "שלום עולם مرحبا", "١٢٣ ½ x²", "日本語です", "\u0085\u00a0\u2028\u3000\ufeffx\u200b", "<|endoftext|>a<|endoftext|>",
    "\x00\x7f\u00ad", "def f(x):\r\n\treturn x**2  # ok", "\U0001f1e9\U0001f1ea\ufe0f", "_" * 70, "a" * 300,
]  # fmt: skip


def test_the_tokenizer_cuts_odd_texts_as_pythons_does():
    file, loaded = ours()
    rng = np.random.default_rng(0)
    letters = [*"".join(ODD), *"etaoin \n\t():._'", *map(chr, rng.integers(0x20, 0x3000, 80))]
    texts = [*ODD, *("".join(rng.choice(letters, rng.integers(1, 40))) for _ in range(200))]
    for text, (tokens, parts) in zip(texts, in_node(file, "texts", texts), strict=True):
        assert tokens == loaded.tokenizer.encode(text).ids, repr(text)
        assert "".join(parts) == text


def test_probabilities_are_those_of_attnlib():
    rng = np.random.default_rng(0)
    cases = [(rng.normal(size=n).round(1).tolist(), temperature, top_p)
             for n in (1, 7, 50) for temperature in (0, 0.3, 1, 2) for top_p in (0, 0.05, 0.5, 0.9, 1)]  # fmt: skip
    for (logits, temperature, top_p), found in zip(cases, in_node(ours()[0], "samples", cases), strict=True):
        right = sampling_probabilities(np.array(logits), temperature=float(temperature), top_p=float(top_p))
        assert np.allclose(found, right, atol=1e-6), (temperature, top_p)


def test_tokens_are_drawn_as_often_as_they_are_probable():
    p = np.array([0.1, 0, 0.6, 0.3])
    drawn = np.array(in_node(ours()[0], "draws", [p.tolist(), 50, 200]))
    assert abs(np.bincount(drawn.ravel(), minlength=4) / drawn.size - p).max() < 0.02
    both = (drawn[:, :-1] == 2) & (drawn[:, 1:] == 2)  # neighbours are independent
    assert abs(both.mean() - 0.36) < 0.02


def test_a_vocabulary_in_another_order_is_refused(tmp_path):
    text = (stdlib_lm.FOLDER / "tokenizer.json").read_text()
    data = json.loads(text)
    data["model"]["merges"][0], data["model"]["merges"][1] = data["model"]["merges"][1], data["model"]["merges"][0]
    (tmp_path / "tokenizer.json").write_text(json.dumps(data))
    with pytest.raises(ValueError, match="does not number its tokens in the order of its merges"):
        merges(tmp_path)
