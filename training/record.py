"""What a run was made with, so that somebody else can repeat it: ``run.json``, next to its log."""

import dataclasses
import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from training.loop import Settings
from training.replacement import replacement

RECORD = "run.json"
PACKAGES = ("torch", "numpy", "tokenizers")


def run_record(settings: Settings, sha256: str) -> dict[str, Any]:
    """Return the settings, the hash of the text, the versions, and what the processor computes with."""
    return {
        "settings": dataclasses.asdict(settings),
        "corpus_sha256": sha256,
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
        "processor": platform.machine(),
        "instruction_sets": sorted(name for name, value in torch.cpu.get_capabilities().items() if value is True),
    }


def write_record(folder: Path, record: dict[str, Any]) -> None:
    """Write the record of a run that begins, or compare it with that of the run that is resumed.

    Raises:
        ValueError: the run began with something else, so it would not end with the same bits.
    """
    path = folder / RECORD
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        with replacement(path) as new:
            new.write_text(json.dumps(record, indent=2) + "\n", "utf-8")
        return
    found = json.loads(path.read_text("utf-8"))
    if changed := [name for name in record if found.get(name) != record[name]]:
        pairs = "; ".join(f"{name} was {found.get(name)}, and is {record[name]}" for name in changed)
        raise ValueError(
            f"this run would not end with the same bits as the one that it resumes, according to {path}: {pairs}. Use "
            f"another --folder, or remove {path.name} to resume all the same"
        )
