"""Checkpoints in the layout of Hugging Face's transformers: read from disk and run by attnlib.

It needs the packages that ``pip install 'attnlib[hf]'`` installs, but not transformers, and never uses the network.
``python -m attnlib.hf FOLDER "a prompt"`` shows a model writing.
"""

from collections.abc import Collection, Iterator
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, TypedDict, Unpack, overload

from attnlib._arrays import check_int
from attnlib._causal_lm import CausalLM
from attnlib._extras import require
from attnlib._types import A
from attnlib.generation import GeneratedToken, Stop, check_stop, generate
from attnlib.hf._build import build_model, check_device, checked_dtype
from attnlib.hf._config import read_config
from attnlib.hf._files import read_json
from attnlib.hf._weights import read_weights

if TYPE_CHECKING:
    import torch
    from numpy.typing import DTypeLike, NDArray
    from tokenizers import Tokenizer

    from attnlib._types import Device

__all__ = ["LoadedModel", "load"]


class SamplingOptions(TypedDict, total=False):
    """How tokens are chosen: arguments of :func:`attnlib.generate`."""

    temperature: float
    top_k: int | None
    top_p: float | None
    min_p: float | None
    seed: int | None


class LoadedModel(NamedTuple, Generic[A]):
    """A language model, its tokenizer, and where its texts end.

    Attributes:
        model: a ``CausalLM`` of attnlib.numpy or attnlib.torch.
        tokenizer: a ``tokenizers.Tokenizer``, or None if the folder has no ``tokenizer.json``.
        eos_tokens: the tokens after which a text ends.
    """

    model: CausalLM[A]
    tokenizer: "Tokenizer | None"
    eos_tokens: tuple[int, ...]

    def generate(
        self, prompt: str, *, max_new_tokens: int, stop: Stop = (), **sampling: Unpack[SamplingOptions]
    ) -> Iterator[str]:
        """Continue a text, piece by piece.

        Args:
            prompt: the beginning of the text.
            max_new_tokens: the largest number of tokens to generate.
            stop: where the text ends besides the model's own ``eos_tokens``, as for :func:`attnlib.generate`.
            sampling: ``temperature``, ``top_k``, ``top_p``, ``min_p`` and ``seed`` of :func:`attnlib.generate`.

        Returns:
            An iterator of strings: what each token adds to the text. If a token ends within a character, its piece
            comes with a later token; if the text ends there, the last piece is U+FFFD, the replacement character.

        Raises:
            TypeError: as for :func:`attnlib.generate`.
            ValueError: there is no tokenizer, the prompt has no tokens, or as for :func:`attnlib.generate`.
        """
        if self.tokenizer is None:
            raise ValueError("the folder has no tokenizer.json: pass token numbers to attnlib.generate")
        end, tokens = check_stop(stop), self.tokenizer.encode(prompt).ids

        def ends(written: list[int]) -> bool:
            return written[-1] in self.eos_tokens or end(written)

        generated = generate(self.model, tokens, max_new_tokens=max_new_tokens, stop=ends, **sampling)
        return _pieces(self.tokenizer, tokens, generated)


def _pieces(tokenizer: "Tokenizer", prompt: list[int], generated: Iterator[GeneratedToken]) -> Iterator[str]:
    """Yield what each token adds to a text; at the end, U+FFFD if the text ends within a character."""
    stream = import_module("tokenizers.decoders").DecodeStream(skip_special_tokens=True)
    for token in prompt:  # a first token may lose its space, so the stream begins with the prompt
        stream.step(tokenizer, token)
    tokens, complete = list(prompt), len(prompt)
    for one in generated:
        tokens.append(one.token)
        if piece := stream.step(tokenizer, one.token):
            complete = len(tokens)
            yield piece
    before, whole = (tokenizer.decode(some) for some in (tokens[:complete], tokens))
    if whole.startswith(before) and whole != before:
        yield whole[len(before) :]


# fmt: off
@overload
def load(
    folder: str | PathLike[str], *, backend: Literal["numpy"] = ..., dtype: "DTypeLike" = ..., device: None = ...,
    ignore: Collection[str] = ...,
) -> "LoadedModel[NDArray[Any]]": ...
@overload
def load(
    folder: str | PathLike[str], *, backend: Literal["torch"], dtype: "str | torch.dtype" = ...,
    device: "Device | None" = ..., ignore: Collection[str] = ...,
) -> "LoadedModel[torch.Tensor]": ...
@overload
def load(
    folder: str | PathLike[str], *, backend: str, dtype: "str | torch.dtype" = ..., device: "Device | None" = ...,
    ignore: Collection[str] = ...,
) -> "LoadedModel[Any]": ...
# fmt: on
def load(
    folder: str | PathLike[str],
    *,
    backend: str = "numpy",
    dtype: "DTypeLike | torch.dtype" = "float32",
    device: "Device | None" = None,
    ignore: Collection[str] = (),
) -> "LoadedModel[Any]":
    """Load a checkpoint of a Llama, Mistral, Qwen 2, Qwen 3, Gemma 2 or GPT-2 model.

    Args:
        folder: the folder with ``config.json``, ``.safetensors`` files and, for texts, ``tokenizer.json``.
        backend: "numpy" or "torch", the library that computes.
        dtype: that of the parameters and of the computation, by name or as a dtype of the library: "float16",
            "float32" or "float64", or, with torch, "bfloat16".
        device: where torch computes, as in ``torch.device(device)``; None means the CPU.
        ignore: entries of ``config.json`` that attnlib does not know, but that do not change what the model computes.

    Returns:
        The model, its tokenizer and the tokens that end a text. With torch, the parameters are frozen
            (``requires_grad`` is off).

    Raises:
        FileNotFoundError: a file is missing.
        KeyError: a parameter is missing, or unknown.
        ModuleNotFoundError: a library is not installed; the message says what installs it.
        TypeError: an entry of ``config.json`` is not a number, or a parameter is not floating point.
        ValueError: the family is not supported, ``config.json`` asks for something that attnlib does not have, a
            parameter has the wrong shape or occurs twice, a file is damaged, or the backend, dtype or device is
            unknown.

    Source:
        ``transformers.AutoModelForCausalLM.from_pretrained``.

    Example:
        >>> loaded = load("Qwen2.5-0.5B")  # doctest: +SKIP
        >>> print(*loaded.generate("The capital of France is", max_new_tokens=9), sep="")  # doctest: +SKIP
    """
    if backend not in ("numpy", "torch"):
        raise ValueError(f"backend is {backend!r}, but 'numpy' or 'torch' is needed")
    if isinstance(ignore, str):
        raise TypeError(f"ignore is the string {ignore!r}, but a list of strings is needed: [{ignore!r}]")
    require("attnlib.hf", "safetensors", "tokenizers", "ml_dtypes", extra="hf")
    import_module(f"attnlib.{backend}")  # before torch itself, because it says what installs torch
    name = checked_dtype(dtype, backend)
    check_device(device, backend)
    folder = Path(folder)
    settings = read_json(folder / "config.json")
    config = read_config(settings, ignore)
    weights = read_weights(folder, settings["model_type"], config, "numpy" if backend == "numpy" else "pt")
    tokenizer, eos_tokens = _tokenizer(folder / "tokenizer.json"), _eos_tokens(folder, settings)
    return LoadedModel(build_model(config, weights, backend, name, device), tokenizer, eos_tokens)


def _tokenizer(path: Path) -> "Tokenizer | None":
    if not path.is_file():
        return None
    try:
        tokenizer: Tokenizer = import_module("tokenizers").Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises no other class
        raise ValueError(f"{path} is not a tokenizer that the package tokenizers can read: {error}") from None
    tokenizer.no_padding()  # the file may ask for both, which are meant for batches in training
    tokenizer.no_truncation()
    return tokenizer


def _eos_tokens(folder: Path, settings: dict[str, Any]) -> tuple[int, ...]:
    """Return the tokens that end a text; ``generation_config.json`` takes precedence over ``config.json``."""
    path = folder / "generation_config.json"
    found = (settings | (read_json(path) if path.is_file() else {})).get("eos_token_id")
    found = [] if found is None else found if isinstance(found, list) else [found]
    return tuple(check_int("eos_token_id", token, 0) for token in found)
