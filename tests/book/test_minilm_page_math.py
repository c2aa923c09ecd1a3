"""all-MiniLM-L6-v2 as the page computes it, run in Node, against attnlib: its weights, tokens and control."""

import base64
import gzip
import json
import subprocess

import numpy as np
import pytest
from _tools.minilm import GROUP, MOST_TOKENS, WORDS, _short, packed
from test_explorer_math import MODULE, NODE

from attnlib.embeddings import small_town
from attnlib.minilm import SentenceEncoder, load_minilm
from attnlib.numpy import BertEncoder

FOLDER = MODULE.parent
MODULES = ("bert.js", "minilm_file.js", "packed_weights.js", "softmax_inplace.js", "untrained.js", "word_piece.js")
RUN = """
import { readFileSync } from "node:fs";
import { Bert } from "./bert.js";
import { decompressed, unpackedMinilm } from "./minilm_file.js";
import { untrained } from "./untrained.js";
import { WordPiece } from "./word_piece.js";
const base64 = ({ buffer }) => Buffer.from(buffer).toString("base64");
const weightsOf = (model, tokens) => [...model.read(tokens)].map(base64);
const asked = {
  texts: ({ vocabulary }, texts) => {
    const tokenizer = new WordPiece(vocabulary);
    return texts.map((text) => tokenizer.encode(text));
  },
  reads: ({ config, weights, wordOf }, all) => all.map((one) => weightsOf(new Bert(config, weights, wordOf), one)),
  untrained: ({ config, weights }, tokens) => {
    const drawn = untrained(weights, 1);
    const numbers = Object.entries(drawn.weights).map(([name, one]) => [name, base64(one.numbers)]);
    return {
      numbers: Object.fromEntries(numbers),
      words: tokens.map((token) => base64(drawn.wordOf(token))),
      read: weightsOf(new Bert(config, drawn.weights, drawn.wordOf), tokens),
    };
  },
};
let text = "";
for await (const part of process.stdin) text += part;
const { path, what, given } = JSON.parse(text);
console.log(JSON.stringify(asked[what](unpackedMinilm(await decompressed(readFileSync(path))), given)));
"""


def in_node(path, what, given, folder=FOLDER):
    done = subprocess.run(
        [NODE, "--input-type=module", "-e", RUN],
        input=json.dumps({"path": str(path), "what": what, "given": given}),
        cwd=folder, capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def floats(text):
    return np.frombuffer(base64.b64decode(text), "<f4")


def with_packed_numbers(file, encoder):
    """Give a model the numbers in the file; the positions that the file does not contain stay as they are."""
    raw = gzip.decompress(file)
    at = 4 + int.from_bytes(raw[:4], "little")
    shapes = json.loads(raw[4:at])["shapes"]
    state = encoder.model.state_dict()
    names = [name for name, array in state.items() if array.ndim == 2 and "type" not in name]
    names.sort(key=lambda name: "word_" not in name)  # words come first
    matrices = [state[name][: MOST_TOKENS if "position" in name else None] for name in names]
    at += 4 * sum(width for rows, width in shapes.values() if rows == 1)
    count = sum(array.size for array in matrices)
    halves = np.frombuffer(raw, "<u2", count // GROUP, at).astype(np.uint32)
    numbers = np.frombuffer(raw, np.int8, count, at + 2 * len(halves)).reshape(-1, GROUP)
    rows = numbers * (halves << 16).view(np.float32)[:, None]
    assert at + 2 * len(halves) + count == len(raw)
    for array in matrices:
        array[...] = rows[: array.size // GROUP].reshape(array.shape)
        rows = rows[array.size // GROUP :]
    return encoder


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A model whose sizes all differ, with random numbers: where its file is, and the model with the file's numbers."""
    from tokenizers import Tokenizer, models

    rng = np.random.default_rng(0)
    model = BertEncoder(50, 128, 4, 256, 2, max_length=70, layer_norm_eps=0.1)
    for array in model.state_dict().values():
        array[...] = rng.normal(scale=0.15 if array.ndim > 1 else 1, size=array.shape)
    encoder = SentenceEncoder(model, Tokenizer(models.WordLevel({f"word {n}": n for n in range(50)}, "word 0")))
    return saved(tmp_path_factory, encoder)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The real all-MiniLM-L6-v2."""
    return saved(tmp_path_factory, load_minilm())


def saved(tmp_path_factory, encoder):
    file, path = packed(encoder), tmp_path_factory.mktemp("model") / "file"
    path.write_bytes(file)
    return path, with_packed_numbers(file, encoder)


def largest_difference(path, encoder, texts, folder=FOLDER):
    """By how much the page's weights differ from those of attnlib, for texts of random tokens."""
    most = 0.0
    for tokens, layers in zip(texts, in_node(path, "reads", texts, folder), strict=True):
        right = np.concat(encoder.model(np.array([tokens]), need_weights=True)[1])  # (L, H, T, T)
        found = np.array([floats(one) for one in layers]).reshape(right.shape)
        most = max(most, abs(found - right).max())
    return most


def random_texts(count, vocabulary, longest):
    rng = np.random.default_rng(0)
    return [rng.integers(0, vocabulary, 1 + n % longest).tolist() for n in range(count)]


@pytest.mark.slow
def test_it_computes_what_attnlib_computes(small):
    assert largest_difference(*small, random_texts(200, 50, 13)) < 1e-4


@pytest.mark.slow
def test_so_does_the_models_own_file(whole):
    texts = random_texts(8, 30522, 8)
    assert largest_difference(*whole, texts) < 1e-4


FAULTS = {
    "the norm adds nothing": ("bert.js", "variance + this.config.eps", "variance"),
    "scores are not scaled": ("bert.js", " / Math.sqrt(D);", ";"),
    "the types are left out": ("bert.js", "word[e] + type[e] +", "word[e] +"),
    "GELU is ReLU": ("bert.js", "Math.max(x, 0) - a * p / 2 * Math.exp(-a * a / 2)", "Math.max(x, 0)"),
    "one scale is used for all groups": ("packed_weights.js", "*= scales[g]", "*= scales[0]"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_noticed(fault, small, tmp_path):
    name, right, wrong = FAULTS[fault]
    for module in MODULES:
        text = (FOLDER / module).read_text(encoding="utf-8")
        assert module != name or text.count(right) == 1
        (tmp_path / module).write_text(text.replace(right, wrong) if module == name else text, encoding="utf-8")
    assert largest_difference(*small, random_texts(4, 50, 4), folder=tmp_path) > 1e-3


SENTENCES = [
    "The animal did not cross the street because it was too tired.", "I cashed the check at the bank",
    "The bank is steep, so it's dangerous to stand near it.", "Bark is very cute and he is a dog.",
    "Attention is all you need, but a table of weights does not explain what a model computes.",
    "Naïve cafés serve 3 kinds of tea!", "🙂 שלום עולם", "We filled the tank at the gas station.",
]  # fmt: skip


@pytest.mark.slow
def test_8_bits_change_little(whole):
    """As the chapter says, the largest weight stays on the same token in more than 99% of the rows."""
    _, rounded = whole
    texts = [*SENTENCES, *(" ".join(sentence) for sentence in small_town()[:40])]
    rows = [
        encoder.attention_weights(text)[1].argmax(-1).ravel() for encoder in (load_minilm(), rounded) for text in texts
    ]
    same = np.concat(rows[: len(texts)]) == np.concat(rows[len(texts) :])
    assert same.mean() > 0.99


ODD = [
    "", " ", "\t\tx\r\ny\n", "don't I'll we've", "İSTANBUL ΣΊΣΥΦΟΣ Straße ﬁne", "🙂👩\u200d👩\u200d👧 é e\u0301 ÅÄÖ",
    "שָׁלוֹם עולם مرحبا", "١٢٣ ½ x² m²", "日本語です 漢字と仮名", "\u0085\u00a0\u2028\u3000\ufeffx\u200b",
    "[CLS]a[SEP] [sep] [MASK][x]",
    "\x00\x7f\u00ad\ufffd", "<b>bold</b> &amp; a_b-c/d", "\U0001f1e9\U0001f1ea\ufe0f",
    "a" * 100, "a" * 101, "한국어 हिन्दी ไทย",
    "$5+€3=~£7^2|`´", "unaffable embeddings ##ing", "\ud7ff\ue000\uf8ff", "“quoted” — ‘so’… «là»",
    "a\u0300\u0316b\u20dd",
]  # fmt: skip


@pytest.mark.slow
def test_the_tokenizer_cuts_odd_texts_as_pythons_does(whole):
    rng = np.random.default_rng(0)
    letters = [*"".join(ODD), *"etaoin shrdlu ETAOIN ..,'", *map(chr, rng.integers(0x20, 0x370, 80))]
    texts = [*ODD, *SENTENCES, *("".join(rng.choice(letters, rng.integers(1, 60))) for _ in range(200))]
    tokenizer = whole[1].tokenizer
    for text, tokens in zip(texts, in_node(whole[0], "texts", texts), strict=True):
        assert tokens == tokenizer.encode(text).ids, repr(text)


@pytest.mark.slow
def test_every_letter_is_cut_as_pythons_tokenizer_does(whole):
    """The two know different versions of Unicode, so they may differ in a few of its newer letters."""
    texts = [f"a{chr(code)}b" for code in range(0x10000) if not 0xD800 <= code < 0xE000]
    found = in_node(whole[0], "texts", texts)
    right = [one.ids for one in whole[1].tokenizer.encode_batch(texts)]
    assert sum(a != b for a, b in zip(found, right, strict=True)) < 150


def test_the_control_is_drawn_as_attnlib_draws_a_model(small):
    """Random parameters: each kind is spread as in a new BertEncoder, and gives the weights that attnlib computes."""
    path, _ = small
    tokens = list(range(12))
    drawn = in_node(path, "untrained", tokens)
    np.random.seed(0)
    model = BertEncoder(50, 128, 4, 256, 2, max_length=70, layer_norm_eps=0.1)
    state = model.state_dict()
    for name, array in state.items():
        if name == WORDS:
            fresh = np.array([floats(one) for one in drawn["words"]])
            given = array[: len(tokens)]
        else:
            fresh = floats(drawn["numbers"][_short(name)]).reshape(-1, array.shape[-1])
            given = np.atleast_2d(array)[: len(fresh)]
        error = 5 * array.std() * np.sqrt(1 / fresh.size + 1 / array.size) + 1e-6  # of a difference of two means
        assert abs(fresh.mean() - array.mean()) < error
        assert abs(fresh.std() - array.std()) < error  # which varies less than a mean
        given[...] = fresh
    right = np.concat(model(np.array([tokens]), need_weights=True)[1])
    found = np.array([floats(one) for one in drawn["read"]]).reshape(right.shape)
    assert abs(found - right).max() < 1e-4
