"""Checkpoints in the layout of Hugging Face's transformers: read from disk and run by attnlib.

It needs the packages that ``pip install 'attnlib[hf]'`` installs, not transformers, and never uses the network.
``python -m attnlib.hf FOLDER "a prompt"`` shows a model writing.
"""

import json
from collections.abc import Collection, Iterator
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple

import numpy as np

from attnlib._causal_lm import CausalLM
from attnlib._extras import require
from attnlib._types import A
from attnlib.generation import GeneratedToken, generate
from attnlib.hf._config import read_config
from attnlib.hf._weights import read_weights

if TYPE_CHECKING:
    import torch
    from numpy.typing import DTypeLike
    from tokenizers import Tokenizer

    from attnlib._types import Device

__all__ = ["LoadedModel", "load"]


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

    def generate(self, prompt: str, *, max_new_tokens: int, **sampling: Any) -> Iterator[str]:
        """Continue a text, piece by piece.

        Args:
            prompt: the beginning of the text.
            max_new_tokens: how many tokens are generated at most.
            sampling: ``temperature``, ``top_k``, ``top_p``, ``min_p``, ``seed`` and ``stop`` of
                :func:`attnlib.generation.generate`. The text also ends where the model ends it.

        Returns:
            An iterator of strings: what each token adds. Where a token ends within a character, its piece comes with a
            later token.

        Raises:
            ValueError: there is no tokenizer, or the prompt has no tokens.
        """
        if self.tokenizer is None:
            raise ValueError("the folder has no tokenizer.json: pass token numbers to attnlib.generation.generate")
        tokens = self.tokenizer.encode(prompt).ids
        generated = generate(self.model, tokens, max_new_tokens=max_new_tokens, **{"stop": self.eos_tokens, **sampling})
        return self._pieces(generated)

    def _pieces(self, generated: Iterator[GeneratedToken]) -> Iterator[str]:
        stream = import_module("tokenizers.decoders").DecodeStream(skip_special_tokens=True)
        for one in generated:
            piece = stream.step(self.tokenizer, one.token)
            if piece:
                yield piece


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
        dtype: in which the parameters are kept; NumPy has no bfloat16.
        device: where torch computes; None means the CPU.
        ignore: entries of ``config.json`` to leave out of account, although attnlib does not know them.

    Returns:
        The model, its tokenizer and the tokens that end a text.

    Raises:
        FileNotFoundError: a file is missing.
        KeyError: a parameter is missing, or unknown.
        ModuleNotFoundError: a library is not installed; the message says what installs it.
        ValueError: the family is not supported, or ``config.json`` asks for something that attnlib does not have.

    Source:
        ``transformers.AutoModelForCausalLM.from_pretrained``.
    """
    if backend not in ("numpy", "torch"):
        raise ValueError(f"backend is {backend!r}, but 'numpy' or 'torch' is needed")
    if backend == "numpy" and device is not None:
        raise ValueError(f"device is {device!r}, but NumPy has none: leave it None, or use backend='torch'")
    require("attnlib.hf", "safetensors", "tokenizers", "ml_dtypes")
    folder = Path(folder)
    settings = _read_json(folder / "config.json")
    config = read_config(settings, ignore)
    build = _numpy_model if backend == "numpy" else _torch_model
    framework = "numpy" if backend == "numpy" else "pt"
    model = build(config, read_weights(folder, settings["model_type"], config, framework), dtype, device)
    return LoadedModel(model, _tokenizer(folder / "tokenizer.json"), _eos_tokens(folder, settings))


def _numpy_model(config: Any, weights: Iterator[tuple[str, Any]], dtype: Any, device: None) -> Any:
    layers = import_module("attnlib.numpy")
    with import_module("attnlib._module").skip_init():
        model = layers.CausalLM(config)
    owners = {name: (owner, attribute) for name, owner, attribute in model._parameters()}
    missing = dict(owners)
    for name, x in weights:
        owner, attribute = _require_known(owners, name)
        _require_shape(name, x, getattr(owner, attribute))
        setattr(owner, attribute, np.array(x, np.dtype(dtype)))
        missing.pop(name, None)
    _require_complete(missing)
    return model


def _torch_model(config: Any, weights: Iterator[tuple[str, Any]], dtype: Any, device: "Device | None") -> Any:
    torch, layers = import_module("torch"), import_module("attnlib.torch")
    dtype = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    with torch.device("meta"):
        model = layers.CausalLM(config)
    wanted, state = model.state_dict(), {}
    for name, x in weights:
        _require_shape(name, x, _require_known(wanted, name))
        state[name] = x.to(device or "cpu", dtype).clone()
    _require_complete(wanted.keys() - state.keys())
    model.load_state_dict(state, assign=True)
    return model.eval().requires_grad_(False)


def _require_known(wanted: Any, name: str) -> Any:
    if name not in wanted:
        raise KeyError(f"the checkpoint has a parameter {name}, which a model with this config.json does not have")
    return wanted[name]


def _require_shape(name: str, x: Any, wanted: Any) -> None:
    if tuple(x.shape) != tuple(wanted.shape):
        raise ValueError(f"{name} has shape {tuple(x.shape)} in the checkpoint, but {tuple(wanted.shape)} is needed")


def _require_complete(missing: Collection[str]) -> None:
    if missing:
        raise KeyError(f"the checkpoint lacks {', '.join(sorted(missing))}")


def _tokenizer(path: Path) -> "Tokenizer | None":
    return import_module("tokenizers").Tokenizer.from_file(str(path)) if path.is_file() else None


def _eos_tokens(folder: Path, settings: dict[str, Any]) -> tuple[int, ...]:
    """Return the tokens that end a text; ``generation_config.json`` may say more than ``config.json``."""
    path = folder / "generation_config.json"
    found = {**settings, **(_read_json(path) if path.is_file() else {})}.get("eos_token_id")
    return () if found is None else tuple(found) if isinstance(found, list) else (found,)


def _read_json(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(f"{path.parent} has no file {path.name}: is it a folder of a transformers checkpoint?")
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found
