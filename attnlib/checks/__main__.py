"""From the shell: run a student's notebook and print its reports, or report how well the checks name the mistakes."""

import argparse
import os
import sys
from pathlib import Path

from attnlib._extras import require
from attnlib.checks.array_text import counted
from attnlib.checks.catalogue import CATALOGUE
from attnlib.checks.confusion_matrix import confusion_matrix
from attnlib.checks.notebook import CELL_TIMEOUT, run

EPILOG = """Reports link to the book at $ATTENTION_BOOK (an address or a folder).
Exit code: 0 if everything is correct, 1 if something is wrong, 2 if the command could not be carried out."""


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for, and return the exit code."""
    started = Path(sys.argv[0]).name
    called = "python -m attnlib.checks" if started == "__main__.py" else started
    parser = argparse.ArgumentParser(called, description=__doc__, epilog=EPILOG)
    parser.add_argument(
        "what", nargs="+", metavar="NOTEBOOK", help='notebooks to run, or "report" and the names of exercises (or none)'
    )
    parser.add_argument("--seeds", type=int, default=10, metavar="N", help="number of sets of inputs for a report (10)")
    limit = f"time limit for each cell of a notebook, in seconds ({CELL_TIMEOUT})"
    parser.add_argument("--timeout", type=int, default=CELL_TIMEOUT, metavar="S", help=limit)
    options = parser.parse_args(arguments)
    for name in ("seeds", "timeout"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} is {getattr(options, name)}, but it must be at least 1")
    if options.what[0] == "report":
        return _report(options.what[1:], options.seeds, parser)
    return max(_notebook(Path(name), options.timeout, parser) for name in options.what)


def _notebook(path: Path, seconds: int, parser: argparse.ArgumentParser) -> int:
    os.environ.setdefault("MPLBACKEND", "Agg")  # figures are drawn, and no window opens
    try:
        outcome = run(path, seconds)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    print(f"\n{path.name}: {outcome.summary}")
    return 0 if outcome.passed else 1


def _report(names: list[str], seeds: int, parser: argparse.ArgumentParser) -> int:
    unknown = [name for name in names if name not in CATALOGUE]
    if unknown:
        parser.error(f"no exercise {', '.join(unknown)}; the exercises are: {', '.join(CATALOGUE)}")
    try:
        require("python -m attnlib.checks report", "tqdm", "torch", "array_api_compat")
    except ModuleNotFoundError as error:
        parser.error(str(error))
    from tqdm import tqdm

    names = names or list(CATALOGUE)
    total = sum(len(CATALOGUE[name].mistakes) for name in names)
    with tqdm(total=total * seeds, unit="answer", dynamic_ncols=True, disable=None) as bar:
        results = []
        for name in names:
            results.append(confusion_matrix(name, range(seeds), bar.update))
            bar.write(f"{results[-1]}\n")
    named, tried = sum(r.named for r in results), sum(r.tried for r in results)
    size = f"{counted(len(results), 'exercise')}, {counted(total, 'mistake')}"
    print(f"{size}: {named} of {tried} wrong answers named correctly")
    return 0 if all(r.perfect for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
