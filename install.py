"""Install a dependency group of pyproject.toml, and the course itself, into the environment whose Python runs this.

Every version is the one in requirements.txt. On Linux, PyTorch from PyPI brings several GB of CUDA along. Where no GPU
is found it is taken from PyTorch's own index of CPU builds instead, if that can be reached and has the version;
``make TORCH=cpu`` and ``make TORCH=cuda`` choose.
"""

import compileall
import csv
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from threading import Event, Thread
from urllib.request import urlopen

ROOT = Path(__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
SECONDS = 5  # that the index may take to answer
MOST = 10_000_000  # bytes of its answer
LOCKED = ("--constraint", "requirements.txt")
CHOICES = ("", "cpu", "cuda")
CUDA = "4 GB more for PyTorch's build for NVIDIA GPUs (make TORCH=cpu installs the CPU build instead)"
# Python runs this line whenever it starts: nbformat, and with it all of Jupyter, would otherwise spend two seconds on a
# grammar of addresses that no notebook needs.
LEFT_OUT = "import sys; sys.modules.setdefault('rfc3987_syntax', None)\n"
# Hardly any program imports the tests of a package, or more than a few of the models of transformers. They are a
# quarter of all code, and Python compiles whichever it imports.
RARELY_IMPORTED = ("/tests/", "/transformers/models/")
# Each package's list of files. Pip writes this list after the files themselves, and while it removes an old version of
# a package, the name of that version's folder begins with ~.
RECORDS = "[!~]*.dist-info/RECORD"
compile_one = partial(compileall.compile_file, quiet=2)
# Compiling files that are meant for another version of Python can cause warnings.
ignoring_warnings = partial(warnings.catch_warnings, action="ignore")
SIZE = {  # of the environment, with PyTorch's CPU build
    "student": "0.4 GB",
    "torch": "1.4 GB",
    "grading": "1.6 GB",
    "book": "2.1 GB",
    "test": "3.4 GB",
    "bench": "3.4 GB",
}


def main(group: str, build: str) -> None:
    """Install a group; ``build`` is the build of PyTorch to take, or "" to find out which one fits."""
    if build not in CHOICES:
        sys.exit(f"TORCH={build} is not a choice: set TORCH=cpu or TORCH=cuda, or leave it unset")
    wanted = requirements(group)
    torch = next((requirement for requirement in wanted if requirement.startswith("torch==")), None)
    cpu = torch is not None and wants_cpu(build, torch)
    python = f"Python {platform.python_version()}, {sys._base_executable}"  # type: ignore[attr-defined]
    where = f"{sys.prefix} ({python})"
    print(f"Installing the group {group} of pyproject.toml into {where}: {size(group, cpu)}", flush=True)
    # Python may come with an old pip, which takes a minute longer and twice as much processor time.
    install(*LOCKED, "pip")
    if torch and cpu and not pip("--no-deps", "--index-url", CPU_INDEX, torch):
        if build == "cpu":
            sys.exit(f"pip could not install {torch} from {CPU_INDEX}: its messages above say why")
        print(
            f"Installing from {CPU_INDEX} did not work, so pip's default index is used: {size(group, False)}",
            flush=True,
        )
    # What only a package's own code asks for is left out where pyproject.toml says so.
    alone = [requirement for requirement in wanted if requirement in stand_alone()]
    others = [requirement for requirement in wanted if requirement not in alone]
    packages = Path(sysconfig.get_path("purelib"))
    with compiling(packages):
        install(*LOCKED, *others)
    # The language model is copied into the environment, because a sandbox may give access to nothing else.
    ours = ("--editable", ".", "./model") if torch else ("--editable", ".")
    install(*LOCKED, "--no-deps", "--no-build-isolation", *alone, *ours)
    (packages / "without_rfc3987_syntax.pth").write_text(LEFT_OUT, encoding="utf-8")
    compile_modules(packages)


def requirements(group: str) -> list[str]:
    """Return what a dependency group asks for, with what the groups ask for that it includes."""
    groups = PROJECT["dependency-groups"]
    if group not in groups:
        sys.exit(f"there is no dependency group {group!r} in pyproject.toml; there are: {', '.join(groups)}")
    nested = [requirements(entry["include-group"]) if isinstance(entry, dict) else [entry] for entry in groups[group]]
    return [requirement for entry in nested for requirement in entry]


def stand_alone() -> set[str]:
    """Return the packages that are installed without what they ask for."""
    return {about["name"] for about in PROJECT["tool"]["uv"]["dependency-metadata"] if not about["requires-dist"]}


def wants_cpu(build: str, torch: str) -> bool:
    """Tell whether PyTorch is to come from the index of CPU builds. Elsewhere than on Linux, PyPI has these alone."""
    if build or not sys.platform.startswith("linux"):
        return build == "cpu"
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


@contextmanager
def compiling(packages: Path) -> Iterator[None]:
    """Compile the modules of each package as soon as pip has installed it. Pip itself keeps only one processor busy."""
    over = Event()
    compiler = Thread(target=compile_new_packages, args=(packages, set(packages.glob(RECORDS)), over))
    compiler.start()
    try:
        with ignoring_warnings():
            yield
    finally:
        over.set()
        compiler.join()


def compile_new_packages(packages: Path, seen: set[Path], over: Event) -> None:
    """Compile each package that appears and has not been seen, until ``over`` is set."""
    while not over.wait(0.5):
        for record in set(packages.glob(RECORDS)) - seen:
            seen.add(record)
            with record.open(encoding="utf-8", newline="") as rows:
                modules = [packages / name for name, *_ in csv.reader(rows) if name.endswith(".py")]
            for file in likely_imported(modules, packages):
                if over.is_set():
                    return
                compile_one(file)


def compile_modules(packages: Path) -> None:
    """Compile all modules that programs are likely to import and that are not compiled yet, on all processors."""
    with ignoring_warnings(), Pool() as pool:
        for _ in pool.imap_unordered(compile_one, likely_imported(packages.rglob("*.py"), packages), chunksize=50):
            pass


def likely_imported(modules: Iterable[Path], packages: Path) -> list[str]:
    """Return the modules that programs are likely to import."""

    def is_rare(file: Path) -> bool:
        folder = f"/{file.relative_to(packages).parent.as_posix()}/"
        return any(rare in folder for rare in RARELY_IMPORTED)

    return [str(file) for file in modules if not is_rare(file)]


def size(group: str, cpu: bool) -> str:
    """Return how much disk space the group takes when all of it is installed."""
    cuda = group != "student" and not cpu and sys.platform.startswith("linux")
    return f"{SIZE[group]} on the disk{f', and up to {CUDA}' if cuda else ''}"


def install(*arguments: str) -> None:
    """Let pip install something, or stop."""
    if not pip(*arguments):
        sys.exit(f"pip install {' '.join(arguments)} failed: its messages above say why. Run the same command again")


def pip(*arguments: str) -> bool:
    """Let pip install something, and say whether it did. It speaks of what went wrong only."""
    options = ["--quiet", "--disable-pip-version-check", "--no-compile"]
    command = [sys.executable, "-m", "pip", "install", *options, *arguments]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


if __name__ == "__main__":
    main(" ".join(sys.argv[1:]), os.environ.get("TORCH", ""))
