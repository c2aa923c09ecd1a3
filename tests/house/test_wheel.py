"""The wheel holds attnlib alone, says what it needs, and works where only NumPy is installed beside it."""

import email
import json
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest
from flit_core.buildapi import build_wheel

import attnlib

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ABOUT = f"attnlib-{attnlib.__version__}.dist-info"
USE = """
import sys
import numpy as np
import attnlib, attnlib.numpy, attnlib.checks, attnlib.checks.__main__

x = np.random.default_rng(0).standard_normal((2, 7, 3))
assert np.allclose(attnlib.scaled_dot_product_attention(x, x, x), attnlib.softmax(x @ x.mT / 3**0.5) @ x)
assert attnlib.embeddings.small_town()
assert attnlib.checks.__main__.main([sys.argv[1]]) == 0
for part in ("torch", "plotting", "minilm"):
    try:
        getattr(attnlib, part).load_minilm()
    except ModuleNotFoundError as error:
        print(error)
"""
CELL = """
import numpy as np
from attnlib.checks import check

def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)

check("softmax", softmax, points=2)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    before = sorted(path.name for path in ROOT.iterdir())
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        name = build_wheel(str(folder))
    assert sorted(path.name for path in ROOT.iterdir()) == before
    with zipfile.ZipFile(folder / name) as archive:
        yield archive


def test_it_holds_the_library_and_nothing_else(wheel):
    command = ["git", "ls-files", "-z", "attnlib"]
    tracked = (
        subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip("\0").split("\0")
    )
    assert sorted(name for name in wheel.namelist() if not name.startswith(f"{ABOUT}/")) == sorted(tracked)
    assert "attnlib/py.typed" in tracked
    assert not [name for name in tracked if name.startswith("attnlib/data/")]


def test_its_metadata_says_what_it_is_and_what_it_needs(wheel):
    about = email.message_from_bytes(wheel.read(f"{ABOUT}/METADATA"))
    assert about["Version"] == attnlib.__version__
    assert about.get_payload(decode=True).decode().strip() == (ROOT / "README.md").read_text(encoding="utf-8").strip()
    assert set(about.get_all("Provides-Extra")) == {"torch", "plot", "checks", "minilm", "hf"}
    needed = [asked for asked in about.get_all("Requires-Dist") if "extra ==" not in asked]
    assert sorted(needed) == sorted(PROJECT["dependencies"])
    assert about.get_all("Classifier") == PROJECT["classifiers"]
    assert wheel.read(f"{ABOUT}/entry_points.txt").decode().split("\n")[:2] == [
        "[console_scripts]",
        "attnlib-check=attnlib.checks.__main__:main",
    ]


def test_it_works_with_numpy_alone_and_an_error_names_the_extra_that_is_missing(wheel, tmp_path):
    """The only folder that is searched for packages holds the wheel and links to NumPy's files."""
    wheel.extractall(tmp_path / "packages")
    for package in ("numpy", "threadpoolctl"):
        for name in {file.parts[0] for file in distribution(package).files} - {"..", "__pycache__"}:
            (tmp_path / "packages" / name).symlink_to(distribution(package).locate_file(name))
    (tmp_path / "some.ipynb").write_text(json.dumps({"cells": [{"cell_type": "code", "source": CELL}]}))
    start = f"import sys; sys.path.insert(0, {str(tmp_path / 'packages')!r})"
    command = [sys.executable, "-I", "-S", "-W", "error", "-c", f"{start}\n{USE}", tmp_path / "some.ipynb"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=250)
    assert done.returncode == 0, done.stderr
    assert [line.rpartition("run ")[2] for line in done.stdout.splitlines()[-3:]] == [
        "pip install 'attnlib[torch]'",
        "pip install 'attnlib[plot]'",
        "pip install 'attnlib[minilm]'",
    ]
