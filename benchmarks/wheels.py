"""Try the wheel of attnlib in fresh environments: with the oldest NumPy, the newest, and the extras checks and torch.

``python benchmarks/wheels.py 3.11 3.12`` builds the wheel, makes an environment of each kind for each of these Pythons,
and prints what is in it and whether it works. It needs ``uv``, on PATH or in the environment, and a package index.
By default, uv installs PyTorch's build with CUDA on Linux; set UV_TORCH_BACKEND=cpu for the build without it.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "solutions" / "02-self-attention" / "self-attention.ipynb"
NUMPY = """
import numpy as np
import attnlib, attnlib.numpy, attnlib.checks, attnlib.embeddings

rng = np.random.default_rng(0)
x = rng.standard_normal((2, 7, 3))
assert np.allclose(attnlib.scaled_dot_product_attention(x, x, x), attnlib.softmax(x @ x.mT / 3**0.5) @ x)
assert attnlib.padding_mask(np.array([2, 3]), 4).reshape(2, 4).tolist() == [[1, 1, 0, 0], [1, 1, 1, 0]]
assert np.allclose(attnlib.rope_tables(np.arange(3), 4, base=100.0)[1], np.sin(np.outer(range(3), [1.0, 0.1])))
assert attnlib.numpy.MultiHeadAttention(6, 2)(rng.standard_normal((2, 5, 6), np.float32)).shape == (2, 5, 6)
assert attnlib.embeddings.ppmi_vectors(attnlib.embeddings.small_town()).most_similar("station")
assert attnlib.checks.examine("dot", lambda q, k: q @ np.swapaxes(k, -1, -2)).passed
"""
MISSING = """
for part in ("torch", "plotting"):
    try:
        getattr(attnlib, part)
    except ModuleNotFoundError as error:
        assert "pip install 'attnlib[" in str(error), error
    else:
        raise SystemExit(f"attnlib.{part} works, although what it needs is not installed")
"""
TORCH = """
import torch, attnlib.torch

y = torch.randn(2, 7, 6)
theirs = torch.nn.functional.scaled_dot_product_attention(y, y, y)
assert torch.allclose(attnlib.scaled_dot_product_attention(y, y, y), theirs, atol=1e-5)
assert attnlib.torch.MultiHeadAttention(6, 2)(y).shape == (2, 7, 6)
assert attnlib.checks.examine("dot", lambda q, k: q @ k.mT, backend="torch").passed
"""


@dataclass(frozen=True)
class Kind:
    """An environment: the extra that is installed, the versions that are chosen, the program that has to work."""

    extra: str = ""
    resolution: str = "highest"
    program: str = NUMPY
    checks_notebook: bool = False


KINDS = {
    "oldest": Kind(resolution="lowest", program=NUMPY + MISSING),
    "newest": Kind(program=NUMPY + MISSING),
    "checks": Kind("[checks]", checks_notebook=True),
    "torch": Kind("[torch]", program=NUMPY + TORCH),
}


def main() -> int:
    """Try each kind of environment on each Python, and return the number of those that fail."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", nargs="+", help="a version or the path of an interpreter")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND", help=", ".join(KINDS))
    asked = parser.parse_args()
    with TemporaryDirectory(prefix="wheels-") as folder:
        run("uv", "build", "--quiet", "--wheel", "--out-dir", folder, str(ROOT))
        (wheel,) = Path(folder).glob("*.whl")
        failed = [(python, kind) for python in asked.python for kind in asked.kinds if not works(wheel, python, kind)]
    tried = len(asked.python) * len(asked.kinds)
    print(f"attnlib works in {tried - len(failed)} of {tried} environments")
    return len(failed)


def works(wheel: Path, python: str, name: str) -> bool:
    """Make an environment of a kind next to the wheel, and tell whether attnlib works in it."""
    kind = KINDS[name]
    environment = wheel.parent / f"{name}-{Path(python).name}"
    inside = environment / ("Scripts" if os.name == "nt" else "bin")
    try:
        run("uv", "venv", "--quiet", "--python", python, str(environment))
        install = ["uv", "pip", "install", "--quiet", "--python", str(inside / "python"), "--only-binary", ":all:"]
        run(*install, "--resolution", kind.resolution, f"{wheel}{kind.extra}")
        run(str(inside / "python"), "-W", "error", "-c", kind.program)
        said = checked(inside / "attnlib-check") if kind.checks_notebook else ""
        versions = run("uv", "pip", "freeze", "--quiet", "--python", str(inside / "python"))
        interpreter = run(str(inside / "python"), "--version").strip()
    except subprocess.CalledProcessError as error:
        print(f"{python:5} {name:7} failed: {' '.join(error.cmd[:4])}…\n{error.output}", flush=True)
        return False
    finally:
        shutil.rmtree(environment, ignore_errors=True)
    shown = [line for line in versions.splitlines() if line.split("=")[0] in ("numpy", "torch", "matplotlib")]
    print(
        f"{interpreter} {name:7} works with {', '.join(shown)} {said.strip().rpartition(chr(10))[2]}".rstrip(),
        flush=True,
    )
    return not said or "0 of" not in said.rpartition("\n")[2]


def checked(command: Path) -> str:
    """Check solutions with the console script, which has to find all right but what needs torch."""
    said = run(str(command), str(NOTEBOOK), check=False)
    right = re.search(r"(\d+) of (\d+) checks passed, .*; (\d+) of the checks could not be run$", said.strip())
    if not right or int(right[1]) + int(right[3]) != int(right[2]):
        raise subprocess.CalledProcessError(1, [str(command)], said)
    return said


def run(*command: str, check: bool = True) -> str:
    """Run a program outside of the repository, whose attnlib would be found first, and return what it prints."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    pipe, same = subprocess.PIPE, subprocess.STDOUT
    done = subprocess.run(command, cwd="/", env=clean, stdout=pipe, stderr=same, text=True, check=check, timeout=3600)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
