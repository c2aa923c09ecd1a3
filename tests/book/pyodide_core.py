"""Python for a browser without its usual host: Pyodide's core from npm, and what its kernel needs from PyPI.

That is all pure Python, in the versions that Pyodide lists; NumPy, which is compiled for it, is on neither. A folder
that ``PYODIDE`` names, a release of Pyodide unpacked, is taken as it is: it has everything.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from jupyterlite_pyodide_kernel.constants import PYODIDE_VERSION
from pages import ROOT

CORE = ROOT / "_build" / "pyodide" / PYODIDE_VERSION
LISTED = "pyodide-lock.json"
KERNEL = ["ipython", "jedi", "micropip"]  # what the kernel asks for; with them comes all that they depend on


def distribution() -> Path:
    """Return a folder with what Pyodide's address has; FileNotFoundError says why there is none."""
    given = os.environ.get("PYODIDE")
    if given and not (Path(given) / LISTED).is_file():
        raise FileNotFoundError(f"PYODIDE is {given}, but for the tests it has to be a folder with {LISTED} in it")
    if given:
        return Path(given)
    if not CORE.is_dir():
        made = CORE.with_suffix(".made")
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        fetch_core(made)
        fetch_packages(made)
        made.rename(CORE)
    return CORE


def fetch_core(folder: Path) -> None:
    """Fetch the core by npm."""
    if shutil.which("npm") is None:
        raise FileNotFoundError("no npm here, which has Pyodide's core: install it, or set PYODIDE=/path/to/pyodide")
    fetch(["npm", "pack", f"pyodide@{PYODIDE_VERSION}", "--silent"], folder)
    (archive,) = folder.glob("*.tgz")
    with tarfile.open(archive) as packed:  # its filters for hostile archives came with Python 3.11.4
        for member in packed.getmembers():
            if member.isfile() and Path(member.name).parent == Path("package"):
                (folder / Path(member.name).name).write_bytes(packed.extractfile(member).read())
    archive.unlink()


def fetch_packages(folder: Path) -> None:
    """Fetch what the kernel needs by pip, and note the digests of what came: Pyodide has built some of it anew."""
    lock = json.loads((folder / LISTED).read_text(encoding="utf-8"))
    wanted = list(KERNEL)
    for name in wanted:
        depends = [one.lower().replace("_", "-") for one in lock["packages"][name]["depends"]]
        wanted += [one for one in depends if one not in wanted]
    pip = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--platform",
        "any",
    ]
    pins = [f"{name}=={lock['packages'][name]['version']}" for name in wanted]
    fetch([*pip, "--python-version", "3.14", "--implementation", "py", "--abi", "none", *pins], folder)
    for name in wanted:
        (wheel,) = folder.glob(f"{name.replace('-', '_')}-*.whl")
        lock["packages"][name] |= {"file_name": wheel.name, "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest()}
    (folder / LISTED).write_text(json.dumps(lock), encoding="utf-8")


def fetch(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise FileNotFoundError(f"{command[0]} could not fetch Python for a browser: {done.stderr.strip()[-300:]}")
