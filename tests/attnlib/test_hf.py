"""Checkpoints in the layout of transformers: small random models, saved by transformers and compared with it."""

import copy
import json
import os
import re
import subprocess
import sys
from functools import cache
from itertools import pairwise
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import safetensors
import torch
import transformers
from backends import BACKENDS
from numpy.testing import assert_allclose
from peak_memory import numpy_peak, torch_peak
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from tokenizers.processors import TemplateProcessing

import attnlib.hf.__main__
from attnlib import RopeScaling, generate
from attnlib.hf import LoadedModel, load
from attnlib.hf._config import DEFAULTS, FAMILIES, read_config

V, T = 97, 40
SIZES = {
    "vocab_size": V, "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 6, "num_key_value_heads": 2,
    "intermediate_size": 56, "eos_token_id": None, "bos_token_id": None, "pad_token_id": None,
}  # fmt: skip
LLAMA3 = {
    "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64, "rope_theta": 10000.0,
}  # fmt: skip
GPT2 = {"vocab_size": V, "n_embd": 48, "n_layer": 3, "n_head": 6, "n_positions": 128}
MODELS = {
    "llama with scaled rope": ("Llama", SIZES | {"rope_parameters": LLAMA3, "max_position_embeddings": 512}),
    "llama with biases, tied": (
        "Llama", SIZES | {"attention_bias": True, "mlp_bias": True, "head_dim": 10, "tie_word_embeddings": True},
    ),
    "mistral with a window": ("Mistral", SIZES | {"sliding_window": 9}),
    "qwen 2 with windows in some layers": (
        "Qwen2", SIZES | {"use_sliding_window": True, "sliding_window": 7, "max_window_layers": 1},
    ),
    "qwen 3": ("Qwen3", SIZES | {"head_dim": 14}),
    "gemma 2": ("Gemma2", SIZES | {"head_dim": 10, "query_pre_attn_scalar": 13, "sliding_window": 9}),
    "gpt-2": ("GPT2", GPT2 | {"eos_token_id": None, "bos_token_id": None}),
}  # fmt: skip
every_model = pytest.mark.parametrize("name", MODELS)
# Largest differences between logits of about 1.5. In bfloat16, the two programs round in different places.
BFLOAT16 = 0.06


@cache
def theirs_of(name):
    """The model of transformers, with parameters that make every part of it count."""
    family, settings = MODELS[name]
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**settings, attn_implementation="eager")
    model = getattr(transformers, "GPT2LMHeadModel" if family == "GPT2" else f"{family}ForCausalLM")(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * (0.3 if parameter.ndim == 1 else 0.05))
    return model.requires_grad_(False)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """The folder of each checkpoint."""
    transformers.utils.logging.disable_progress_bar()

    @cache
    def folder(name, **options):
        path = tmp_path_factory.mktemp("checkpoint")
        theirs_of(name).save_pretrained(path, **options)
        return path

    return folder


@pytest.fixture
def folder(tmp_path, folders):
    """A copy of a checkpoint, to spoil."""
    for file in folders("qwen 3").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def loaded(folder, backend, **options):
    """Ours, in the backend's library and on its device."""
    return load(folder, backend=str(backend).partition("-")[0], device=getattr(backend, "device", None), **options)


def tokens_of(*shape):
    return np.random.default_rng(7).integers(0, V, shape)


def ours_of(backend, model, tokens, mask=None, positions=None):
    """Our logits."""
    options = {} if positions is None else {"positions": backend.array(positions, "int64")}
    mask = None if mask is None else backend.array(mask[:, None, None], "bool")
    return backend.numpy(model(backend.array(tokens, "int64"), mask, **options))


# What the model says


@every_model
def test_logits_are_those_of_transformers(backend, folders, name):
    tokens = tokens_of(2, T)
    ours = ours_of(backend, loaded(folders(name), backend).model, tokens)
    assert_allclose(ours, theirs_of(name)(torch.tensor(tokens)).logits, rtol=0, atol=1e-5)


@every_model
def test_a_prompt_that_begins_with_padding_gives_the_logits_of_transformers(backend, folders, name):
    tokens, real = tokens_of(2, T), np.ones((2, T), bool)
    real[1, :11] = False
    positions = np.clip(real.cumsum(-1) - 1, 0, None)
    options = {"attention_mask": torch.tensor(real).long(), "position_ids": torch.tensor(positions)}
    theirs = theirs_of(name)(torch.tensor(tokens), **options).logits.numpy()
    ours = ours_of(backend, loaded(folders(name), backend).model, tokens, real, positions)
    assert_allclose(ours[real], theirs[real], rtol=0, atol=1e-5)


@every_model
def test_the_most_probable_text_is_that_of_transformers(backend, folders, name):
    prompt, count = torch.tensor(tokens_of(1, 5)), 64
    options = {"max_new_tokens": count, "min_new_tokens": count, "do_sample": False}
    theirs = theirs_of(name).generate(prompt, attention_mask=torch.ones_like(prompt), **options)[0, 5:].tolist()
    model = loaded(folders(name), backend).model
    assert [one.token for one in generate(model, prompt[0], max_new_tokens=count, temperature=0)] == theirs


@pytest.mark.slow
@every_model
def test_bfloat16_is_as_close_as_its_rounding_allows(folders, name, tmp_path):
    def model_of_theirs(folder, dtype):
        return type(theirs_of(name)).from_pretrained(folder, dtype=dtype, attn_implementation="eager").eval()

    model = model_of_theirs(folders(name), torch.bfloat16)
    model.save_pretrained(tmp_path)
    tokens = tokens_of(2, T)
    ours = load(tmp_path, backend="torch", dtype="bfloat16").model
    theirs = model(torch.tensor(tokens)).logits.detach().float()
    assert {p.dtype for p in ours.parameters()} == {torch.bfloat16}
    assert_allclose(ours(torch.tensor(tokens)).float(), theirs, rtol=0, atol=BFLOAT16)
    # From the same file, float32 is exact: nothing is rounded on the way.
    exact = model_of_theirs(tmp_path, torch.float32)(torch.tensor(tokens)).logits.detach()
    for backend in BACKENDS:
        assert_allclose(ours_of(backend, loaded(tmp_path, backend).model, tokens), exact, rtol=0, atol=1e-5)


def test_gemma_s_norms_are_exact_in_half_precision(folders):
    theirs, ours = theirs_of("gemma 2"), load(folders("gemma 2"), backend="torch", dtype="bfloat16").model
    x = torch.randn(7, 48, generator=torch.Generator().manual_seed(3)).bfloat16()
    for mine, its in ((ours.norm, theirs.model.norm), (ours.layers[2].norm1, theirs.model.layers[2].input_layernorm)):
        assert torch.equal(mine(x), copy.deepcopy(its).bfloat16()(x))
    in_numpy = load(folders("gemma 2"), dtype="float16").model.norm.weight
    assert (in_numpy == theirs.model.norm.weight.half().numpy()).all()


def test_other_dtypes(backend, folders):
    tokens, name = tokens_of(1, 9), "llama with biases, tied"
    theirs = theirs_of(name)(torch.tensor(tokens)).logits
    for dtype, tolerance in (("float64", 1e-5), (np.float16, 0.02), (torch.float16, 0.02)):
        model = loaded(folders(name), backend, dtype=dtype).model
        assert_allclose(ours_of(backend, model, tokens), theirs, rtol=0, atol=tolerance)


# What is read


@every_model
def test_a_checkpoint_may_be_split_into_many_files(backend, folders, name):
    shards = folders(name, max_shard_size="40KB")
    assert len(list(shards.glob("*.safetensors"))) > 2
    tokens = tokens_of(1, 9)
    ours = (ours_of(backend, loaded(f, backend).model, tokens) for f in (shards, folders(name)))
    assert_allclose(next(ours), next(ours), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["gemma 2", "gpt-2"])
def test_every_tensor_is_read_once_and_held_once(monkeypatch, backend, folders, name):
    folder, reads = folders(name, max_shard_size="40KB"), []
    original = safetensors.safe_open

    class Recorded:
        def __init__(self, *arguments):
            self.file = original(*arguments)

        def __enter__(self):
            self.opened = self.file.__enter__()
            return self

        def __exit__(self, *error):
            return self.file.__exit__(*error)

        def keys(self):
            return self.opened.keys()

        def get_tensor(self, name):
            reads.append(name)
            return self.opened.get_tensor(name)

    monkeypatch.setattr(safetensors, "safe_open", Recorded)
    size = sum(p.nbytes for p in loaded(folder, backend).model.parameters())
    assert len(reads) == len(set(reads)) > 20
    peak = (numpy_peak if str(backend) == "numpy" else torch_peak)(lambda: loaded(folder, backend))
    assert peak < 1.4 * size + 100_000


def test_the_parameters_are_the_model_s_own(folders):
    """They are writable copies, which do not depend on the file."""
    model = load(folders("gpt-2")).model
    for p in model.parameters():
        p[...] = 0
    frozen = load(folders("gpt-2"), backend="torch").model
    assert not any(p.requires_grad or p.is_meta for p in frozen.parameters())
    assert not frozen.training


# config.json


def minimal(family):
    """The entries that every family needs."""
    if family == "gpt2":
        return {"model_type": family, "vocab_size": 7, "n_embd": 96, "n_layer": 2, "n_head": 32}
    sizes = {"vocab_size": 7, "hidden_size": 96, "num_hidden_layers": 2, "num_attention_heads": 32}
    return {"model_type": family, "intermediate_size": 5} | sizes


@pytest.mark.parametrize("family", FAMILIES)
def test_a_missing_entry_means_what_it_means_to_transformers(family):
    """Their class fills in missing entries, and those that it adds must change nothing."""
    config = transformers.CONFIG_MAPPING[family](**minimal(family))
    assert {name: getattr(config, name) for name in DEFAULTS.get(family, {})} == DEFAULTS.get(family, {})
    assert read_config(minimal(family)) == read_config(config.to_dict(), ignore=["is_encoder_decoder"])


def test_the_entries_of_a_real_file_are_known():
    """The config.json of Llama 3.2 1B, as its authors published it."""
    config = read_config(json.loads((Path(__file__).parent / "data" / "llama_3_2_1b_config.json").read_text()))
    assert (config.vocab_size, config.embed_dim, config.num_layers, config.ff_dim) == (128256, 2048, 16, 8192)
    assert (config.num_heads, config.num_kv_heads, config.head_dim, config.tied) == (32, 8, 64, True)
    assert config.rope_scaling == RopeScaling(32.0, 1.0, 4.0, 8192)
    assert config.rope_base == 500000.0


LINEAR = {"rope_type": "linear", "factor": 2.0}
CONFIGS = {
    "another family": ({"model_type": "bert"}, ValueError, "model_type is 'bert', but attnlib loads only llama"),
    "no family": ({"model_type": None}, ValueError, "model_type is None"),
    "an unknown entry": (
        {"scale_q": 3}, ValueError, r"scale_q = 3, which attnlib does not know for qwen3.*ignore=\['scale_q'\]",
    ),
    "quantized": ({"quantization_config": {"bits": 4}}, ValueError, "quantization_config"),
    "an activation": ({"hidden_act": "mish"}, ValueError, "activation is 'mish', but attnlib has silu"),
    "linear scaling": ({"rope_parameters": LINEAR}, ValueError, "rope_type is 'linear' with {'factor': 2.0}.*'llama3'"),
    "scaling by its old name": (
        {"rope_parameters": ..., "rope_scaling": {"type": "yarn", "factor": 2.0}}, ValueError, "rope_type is 'yarn'",
    ),
    "half of the scaling": (
        {"rope_parameters": {"rope_type": "llama3", "factor": 8.0}}, ValueError, "'llama3' with {'factor': 8.0}",
    ),
    "impossible scaling": ({"rope_parameters": LLAMA3 | {"factor": 0}}, ValueError, "factor is 0"),
    "scaling that is a word": ({"rope_scaling": "yarn"}, TypeError, "rope_scaling in config.json is 'yarn'"),
    "a base that is a word": ({"rope_theta": "big", "rope_parameters": ...}, TypeError, "rope_theta in config.json"),
    "a missing size": ({"hidden_size": ...}, ValueError, "config.json has no entry 'hidden_size'.*type qwen3"),
    "a size that is a word": ({"hidden_size": "48"}, TypeError, "hidden_size in config.json is '48'"),
    "no heads": ({"num_attention_heads": 0}, ValueError, "num_attention_heads in config.json is 0"),
    "negative layers": ({"num_hidden_layers": -1}, ValueError, "num_hidden_layers in config.json is -1"),
    "a kind of layer": (
        {"layer_types": ["chunked_attention"] * 3}, ValueError, "layers of type chunked_attention, which attnlib",
    ),
    "windows of no size": (
        {"layer_types": ["sliding_attention"] * 3}, TypeError, "sliding_window in config.json is None",
    ),
    "too few kinds": (
        {"layer_types": ["sliding_attention"], "sliding_window": 4}, ValueError, "windows has 1 entries.*3 layers",
    ),
    "a flag that is a word": ({"tie_word_embeddings": "false"}, TypeError, "tied is 'false'"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "exception", "words"), CONFIGS.values(), ids=CONFIGS)
def test_a_configuration_that_cannot_be_loaded_is_explained(folder, changes, exception, words):
    change_config(folder, **changes)
    for backend in ("numpy", "torch"):
        with pytest.raises(exception, match=words):
            load(folder, backend=backend)


def change_config(folder, **changes):
    """Change entries of config.json; ... removes one."""
    path = folder / "config.json"
    settings = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({name: value for name, value in settings.items() if value is not ...}))


@pytest.mark.parametrize(
    ("family", "entry"),
    [
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}),
        ("gpt2", {"scale_attn_weights": False}),
        ("mistral", {"attention_bias": True}),
        ("gemma2", {"use_bidirectional_attention": True}),
        ("llama", {"rope_interleaved": True}),
    ],
    ids=str,
)
def test_a_variant_that_is_known_and_not_supported_is_named(family, entry):
    (name,) = entry
    with pytest.raises(ValueError, match=f"config.json says {name} = {entry[name]}, but attnlib supports only"):
        read_config(minimal(family) | entry)


def test_an_unknown_entry_may_be_ignored(folder, backend):
    change_config(folder, name_of_my_dog="Bark", name_of_my_cat=None)
    assert loaded(folder, backend, ignore=["name_of_my_dog", "name_of_my_cat"]).model.config.vocab_size == V
    with pytest.raises(TypeError, match=r"ignore is the string 'name_of_my_dog', but a list .*\['name_of_my_dog'\]"):
        loaded(folder, backend, ignore="name_of_my_dog")


# Damaged and hostile folders


def change_weights(folder, **changes):
    """Change tensors; None removes one."""
    path = folder / "model.safetensors"
    state = load_file(path) | {name.replace("__", "."): x for name, x in changes.items()}
    save_file({name: x for name, x in state.items() if x is not None}, path)


NORM = "model__layers__1__input_layernorm__weight"
OURS = "layers.1.norm1.weight"
WEIGHTS = {
    "a missing parameter": ({NORM: None}, KeyError, f"the checkpoint lacks {OURS}"),
    "an unknown parameter": (
        {"model__extra__weight": np.ones(3, np.float32)}, KeyError, "has a parameter extra.weight, but a model",
    ),
    "another shape": (
        {NORM: np.ones(47, np.float32)}, ValueError, rf"{OURS} has shape \(47,\) in the checkpoint, but \(48,\)",
    ),
    "another rank": ({NORM: np.ones((1, 48), np.float32)}, ValueError, rf"{OURS} has shape \(1, 48\)"),
    "integers": ({NORM: np.ones(48, np.int8)}, TypeError, f"{OURS} has dtype .*int8.*quantized"),
}  # fmt: skip


@pytest.mark.parametrize("prefix", ["model.", ""])
def test_a_parameter_in_two_files_is_refused(folder, backend, prefix):
    state = load_file(folder / "model.safetensors")
    again = {f"{prefix}layers.1.input_layernorm.weight": 2 * state["model.layers.1.input_layernorm.weight"]}
    parts = {"model-1-of-2.safetensors": state, "model-2-of-2.safetensors": again}
    for name, tensors in parts.items():
        save_file(tensors, folder / name)
    index = {tensor: name for name, tensors in parts.items() for tensor in tensors}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    with pytest.raises(ValueError, match=f"{OURS} is in model-1-of-2.safetensors and again in model-2-of-2.safetens"):
        loaded(folder, backend)


@pytest.mark.parametrize(("changes", "exception", "words"), WEIGHTS.values(), ids=WEIGHTS)
def test_weights_that_do_not_fit_are_named(folder, backend, changes, exception, words):
    change_weights(folder, **changes)
    with pytest.raises(exception, match=words):
        loaded(folder, backend)


def test_gpt_2_s_packed_projection_has_to_divide_into_three(tmp_path, folders, backend):
    for file in folders("gpt-2").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    change_weights(tmp_path, transformer__h__0__attn__c_attn__bias=np.ones(3 * 48 + 1, np.float32))
    with pytest.raises(ValueError, match=r"layers.0.self_attn.v_proj.bias has shape \(49,\)"):
        loaded(tmp_path, backend)


def write(name, text):
    return lambda folder: (folder / name).write_text(text)


def index(**files):
    return write("model.safetensors.index.json", json.dumps({"weight_map": files}))


FOLDERS = {
    "no config": (lambda f: (f / "config.json").unlink(), FileNotFoundError, "has no file config.json"),
    "no weights": (
        lambda f: (f / "model.safetensors").unlink(), FileNotFoundError, "no file model.safetensors: weights are read",
    ),
    "broken JSON": (write("config.json", '{"model_type":'), ValueError, "config.json is not valid JSON.*broke off"),
    "JSON that is a list": (write("config.json", "[1]"), ValueError, "config.json contains a list, but names"),
    "a config that is no text": (
        lambda f: (f / "config.json").write_bytes(b"\xff\xfe\x00"), ValueError, "config.json is not valid JSON",
    ),
    "a shard that is missing": (index(x="model-00001-of-00002.safetensors"), FileNotFoundError, "no file model-00001"),
    "a shard elsewhere": (index(x="../model.safetensors"), ValueError, "names '../model.safetensors', but only"),
    "a shard by its full path": (index(x="/etc/passwd"), ValueError, "names '/etc/passwd', but only"),
    "a pickle": (index(x="pytorch_model.bin"), ValueError, "names 'pytorch_model.bin', but only .safetensors"),
    "the folder itself": (index(x=".."), ValueError, "names '..', but only"),
    "a shard that is a number": (index(x=5), ValueError, "names 5, but only"),
    "an index of nothing": (index(), ValueError, "has no entry 'weight_map'"),
    "an index without a map": (write("model.safetensors.index.json", "{}"), ValueError, "has no entry 'weight_map'"),
    "half of a file": (
        lambda f: os.truncate(f / "model.safetensors", 5000), ValueError, "model.safetensors cannot be read.*broke off",
    ),
    "an empty file": (write("model.safetensors", ""), ValueError, "model.safetensors cannot be read"),
    "a broken tokenizer": (write("tokenizer.json", "{}"), ValueError, "tokenizer.json is not a tokenizer"),
    "an end that is a word": (
        write("generation_config.json", '{"eos_token_id": "</s>"}'), TypeError, "eos_token_id is '</s>'",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "exception", "words"), FOLDERS.values(), ids=FOLDERS)
def test_a_damaged_folder_is_explained(folder, backend, spoil, exception, words):
    spoil(folder)
    with pytest.raises(exception, match=words):
        loaded(folder, backend)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"backend": "jax"}, "backend is 'jax', but 'numpy' or 'torch'"),
        ({"device": "cuda"}, "device is 'cuda', but NumPy has none"),
        ({"dtype": "bfloat16"}, "dtype is 'bfloat16', but with backend='numpy' float16 or float32 or float64"),
        ({"dtype": ml_dtypes.bfloat16}, "dtype is 'bfloat16'"),
        ({"dtype": "int8"}, "dtype is 'int8'"),
        ({"backend": "torch", "dtype": torch.int64}, "dtype is 'int64', but with backend='torch'"),
        ({"backend": "torch", "dtype": "float8"}, "dtype is 'float8'"),
        ({"backend": "torch", "device": "nowhere"}, "device is 'nowhere', but torch cannot use it"),
    ],
    ids=str,
)
def test_an_impossible_option_is_refused_before_anything_is_read(tmp_path, options, words):
    with pytest.raises(ValueError, match=words):
        load(tmp_path, **options)


# Texts

WORDS = ["<s>", "</s>", "The", "▁dog", "▁cat", "▁barks", "▁and", "▁sleeps", "."]


def tokenizer():
    """A tokenizer like Llama's: words carry the space before them, and a text's first space is stripped."""
    made = Tokenizer(models.WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="."))
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never", split=True)
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(content=" ", left=1, right=0)]
    )
    made.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    made.add_special_tokens(["<s>", "</s>"])
    made.enable_truncation(2)
    made.enable_padding(length=9)
    return made


@pytest.fixture
def writer(folder):
    """The folder of a model that always continues: The dog barks and sleeps, the end, and a full stop."""
    change_config(folder, num_hidden_layers=1, layer_types=["full_attention"], eos_token_id=4)
    (folder / "generation_config.json").write_text('{"eos_token_id": [1, 4]}')
    tokenizer().save(str(folder / "tokenizer.json"))
    state = load_file(folder / "model.safetensors")
    state = {name: 0 * x for name, x in state.items() if not re.search(r"layers\.[12]\.", name)}
    for n, (token, following) in enumerate(pairwise([2, 3, 5, 6, 7, 1, 8])):
        state["model.embed_tokens.weight"][token, n] = state["lm_head.weight"][following, n] = 1
    state["model.norm.weight"] += 1
    save_file(state, folder / "model.safetensors")
    return folder


def test_a_text_is_continued_piece_by_piece_with_its_spaces_up_to_its_end(writer, backend):
    found = loaded(writer, backend)
    assert isinstance(found, LoadedModel)
    assert found.eos_tokens == (1, 4)
    pieces = list(found.generate("The dog", max_new_tokens=20, temperature=0))
    assert pieces == [" barks", " and", " sleeps"]
    assert list(found.generate("The dog", max_new_tokens=2, temperature=0)) == pieces[:2]


def test_a_text_that_ends_within_a_character_ends_with_a_replacement_character(writer, backend):
    """The model continues d with h, the two bytes of é, the first of three of a dash, and its end."""
    vocabulary = ["<s>", "</s>", "d", "h", "x", "Ã", "©", "â"]  # the bytes C3, A9 and E2, as GPT-2 writes them
    made = Tokenizer(models.BPE({token: n for n, token in enumerate(vocabulary)}, []))
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    made.add_special_tokens(["<s>", "</s>"])
    made.save(str(writer / "tokenizer.json"))
    found = loaded(writer, backend)
    for count, pieces in ((1, ["h"]), (2, ["h", "\ufffd"]), (3, ["h", "é"]), (20, ["h", "é", "\ufffd"])):
        assert list(found.generate("d", max_new_tokens=count, temperature=0)) == pieces
        tokens = [one.token for one in generate(found.model, [2], max_new_tokens=count, temperature=0)]
        assert "".join(pieces) == found.tokenizer.decode(tokens)


def test_a_stop_of_one_s_own_does_not_replace_the_model_s(writer):
    found = load(writer)
    assert list(found.generate("The", max_new_tokens=20, temperature=0, stop=[6])) == [" dog", " barks", " and"]
    pieces = list(found.generate("The", max_new_tokens=20, temperature=0, stop=lambda written: False))
    assert pieces == [" dog", " barks", " and", " sleeps"]


def test_a_prompt_is_neither_cut_nor_padded_whatever_the_file_says(writer):
    assert load(writer).tokenizer.encode("The dog barks and sleeps").ids == [0, 2, 3, 5, 6, 7]


def test_without_a_tokenizer_only_numbers_can_be_continued(folder, backend):
    found = loaded(folder, backend)
    assert found.tokenizer is None
    assert found.eos_tokens == ()
    with pytest.raises(ValueError, match=r"no tokenizer.json: pass token numbers to attnlib.generate"):
        found.generate("The dog", max_new_tokens=3)


def test_an_empty_prompt_and_a_wrong_setting_are_refused_at_once(writer):
    found = load(writer)
    with pytest.raises(ValueError, match="top_p is 2"):
        found.generate("The dog", max_new_tokens=3, top_p=2)
    found.tokenizer.post_processor = None
    with pytest.raises(ValueError, match=r"tokens is empty.*begin with its start token"):
        found.generate("", max_new_tokens=3)


# The command line


def test_the_command_writes_and_says_how_fast(writer):
    command = [sys.executable, "-W", "error", "-m", "attnlib.hf", str(writer), "The dog", "--temperature", "0"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    assert done.stdout == "The dog barks and sleeps\n"
    assert "pieces per second" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--dtype", "float8"], "dtype is 'float8'"),
        (["--device", "cuda"], "device is 'cuda', but NumPy has none"),
        (["--temperature", "-1"], "temperature is -1.0"),
        (["--max-new-tokens", "-1"], "max_new_tokens is -1"),
    ],
    ids=str,
)
def test_the_command_ends_with_one_sentence_about_what_is_wrong(writer, arguments, words):
    with pytest.raises(SystemExit, match=f"^error: .*{words}"):
        attnlib.hf.__main__.main([str(writer), "The dog", *arguments])


def test_the_command_explains_a_damaged_folder(folder):
    change_weights(folder, **{NORM: None})
    with pytest.raises(SystemExit, match=r"^error: the checkpoint lacks"):
        attnlib.hf.__main__.main([str(folder), "The dog"])


@pytest.mark.slow
def test_numpy_s_models_need_neither_torch_nor_transformers(writer):
    program = (
        "import sys; from attnlib.hf import load; print(*load(sys.argv[1]).generate('The', max_new_tokens=2, seed=0));"
        "print(sorted({'torch', 'transformers', 'jax'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", program, str(writer)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[2])
    assert done.stdout.splitlines()[-1] == "[]"
