"""The files of a checkpoint: which ones there are, and what the JSON files say."""

import json
from pathlib import Path
from typing import Any

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


def read_json(path: Path) -> dict[str, Any]:
    """Return what a JSON file contains: names and their values.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it contains something else.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path.parent} has no file {path.name}: is it the folder of a checkpoint?")
    try:
        found = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not valid JSON, perhaps because a download broke off: {error}") from None
    if not isinstance(found, dict):
        raise ValueError(f"{path} contains a {type(found).__name__}, but names and values, {{...}}, are needed")
    return found


def weight_files(folder: Path) -> list[Path]:
    """Return the files that together contain all parameters: one, or those that the index names.

    Raises:
        FileNotFoundError: a file is missing.
        ValueError: the index is invalid, or names a file outside the folder.
    """
    names = _indexed(folder / INDEX) if (folder / INDEX).is_file() else {WEIGHTS}
    for name in names:
        if not (folder / name).is_file():
            raise FileNotFoundError(f"{folder} has no file {name}: weights are read only from .safetensors files")
    return [folder / name for name in sorted(names)]


def _indexed(index: Path) -> set[str]:
    """Return the names of the files that an index lists, after checking that they stay in its folder."""
    found = read_json(index).get("weight_map")
    if not isinstance(found, dict) or not found:
        raise ValueError(f"{index} has no entry 'weight_map', which says where each parameter is: download it again")
    for name in found.values():
        if not isinstance(name, str) or Path(name).name != name or not name.endswith(".safetensors"):
            raise ValueError(f"{index} names {name!r}, but only .safetensors files in the same folder are read")
    return set(found.values())
