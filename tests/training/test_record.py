"""The record of a run: what it was made with, and a run that would not end with the same bits."""

import json
import platform

import numpy as np
import pytest
import tokenizers
import torch

from training import __main__ as command
from training.loop import Settings
from training.record import RECORD, run_record, write_record

RECORDED = run_record(Settings(steps=7, seed=3), "abc")


def test_a_record_has_seeds_settings_versions_and_instruction_sets():
    assert RECORDED["settings"]["seed"] == 3
    assert RECORDED["settings"]["steps"] == 7
    assert RECORDED["corpus_sha256"] == "abc"
    versions = (RECORDED[name] for name in ("python", "torch", "numpy", "tokenizers"))
    expected = (platform.python_version(), torch.__version__, np.__version__, tokenizers.__version__)
    assert all(there.startswith(one.partition("+")[0]) for one, there in zip(versions, expected, strict=True))
    assert RECORDED["processor"] == platform.machine()
    assert all(isinstance(name, str) for name in RECORDED["instruction_sets"])


def test_a_run_that_is_resumed_keeps_its_record(tmp_path):
    folder = tmp_path / "new"
    write_record(folder, RECORDED)
    text = (folder / RECORD).read_text()
    assert json.loads(text) == RECORDED
    write_record(folder, RECORDED)
    assert (folder / RECORD).read_text() == text
    assert [path.name for path in folder.iterdir()] == [RECORD]


def test_a_run_that_goes_on_with_another_version_is_refused(tmp_path):
    write_record(tmp_path, RECORDED)
    with pytest.raises(ValueError, match=r"torch was .*, and is 9\.9\. Use another --folder"):
        write_record(tmp_path, RECORDED | {"torch": "9.9"})


def test_the_command_writes_the_record_before_it_trains(tmp_path, monkeypatch):
    library = tmp_path / "lib"
    library.mkdir()
    for n in range(20):
        (library / f"m{n}.py").write_text(f"name = {n}\n")
    monkeypatch.setattr(command, "train", stops)
    arguments = ["--stdlib", str(library), "--any-version", "--folder", str(tmp_path)]
    with pytest.raises(InterruptedError):
        command.main(arguments)
    assert json.loads((tmp_path / RECORD).read_text())["settings"]["threads"] == 1
    with pytest.raises(SystemExit, match=r"settings was .*'threads': 2"):
        command.main([*arguments, "--threads", "2"])


def stops(*_):
    raise InterruptedError
