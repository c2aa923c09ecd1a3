"""Measure the built book with Lighthouse, on an emulated phone: `python benchmarks/lighthouse.py`.

The pages of `_build/html` are served compressed on this machine. Lighthouse comes from npm, into a folder that is
removed afterwards; without Node.js there is nothing to measure with. `--write` puts the rows into the table of the
README here, which keeps its rows for all other pages.
"""

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "book"), str(ROOT / "book")]  # the server and the browser of the book's tests

from _tools.chromium import CHROMIUM_COMMANDS, FLAGS  # noqa: E402
from pages import moved, pages  # noqa: E402
from served import served  # noqa: E402

LIGHTHOUSE = "lighthouse@12.8.2"
# All pages but redirects and those that ask search engines not to index them.
PAGES = sorted({*pages()} - {"index.html", "404.html", *moved()})
CATEGORIES = ("performance", "accessibility", "best-practices", "seo")
METRICS = {  # heading: audit, and what its number is divided by
    "first paint, s": ("first-contentful-paint", 1000),
    "largest paint, s": ("largest-contentful-paint", 1000),
    "blocked, ms": ("total-blocking-time", 1),
    "shift": ("cumulative-layout-shift", 1),
    "kB": ("total-byte-weight", 1000),
}
README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- begin of lighthouse -->\n", "<!-- end of lighthouse -->\n"


def installed(folder: Path) -> Path:
    """Put Lighthouse into a folder, and return the program."""
    if not shutil.which("npm"):
        sys.exit("Lighthouse needs Node.js with npm, and npm was not found: install Node.js")
    environment = os.environ | {"PUPPETEER_SKIP_DOWNLOAD": "1"}  # the browser is the system's
    command = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), LIGHTHOUSE]
    subprocess.run(command, env=environment, check=True)
    return folder / "node_modules" / ".bin" / "lighthouse"


def browser() -> str:
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM_COMMANDS)), None)
    return path or sys.exit("Chromium was not found: install it, or set CHROMIUM=/path/to/it")


def measured(program: Path, address: str, chromium: str) -> dict[str, float]:
    """Return the scores, from 0 to 100, and the metrics of one run."""
    command = [str(program), address, "--quiet", "--output=json", f"--only-categories={','.join(CATEGORIES)}"]
    command.append(f"--chrome-flags=--headless {' '.join(FLAGS)}")
    environment = os.environ | {"CHROME_PATH": chromium}
    run = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(run.stdout)
    if "runtimeError" in found:
        raise RuntimeError(f"{address}: {found['runtimeError']['message']}")
    scores = {name: 100 * found["categories"][name]["score"] for name in CATEGORIES}
    return scores | {head: found["audits"][audit]["numericValue"] / by for head, (audit, by) in METRICS.items()}


def row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def table(rows: dict[str, str]) -> str:
    """Return the table: its headings, then the rows of the pages."""
    heads = ["page", *CATEGORIES, *METRICS]
    return "\n".join([row(heads), row(["---", *["---:"] * (len(heads) - 1)]), *(rows[page] for page in sorted(rows))])


def write(rows: dict[str, str]) -> None:
    """Put the rows into the table of the README, and drop those of pages that the book no longer has."""
    before, found, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    old, closed, after = rest.partition(END)
    if not (found and closed):
        raise RuntimeError(f"{README} has no pair of lines {BEGIN.strip()} and {END.strip()}")
    measured_before = {line.split("`")[1]: line for line in old.splitlines() if line.startswith("| `")}
    text = table({page: line for page, line in (measured_before | rows).items() if page in PAGES})
    where = (
        f"{os.cpu_count()} cores, {platform.system()} on {platform.machine()}, {date.today():%-d %B %Y}, {LIGHTHOUSE}"
    )
    README.write_text(f"{before}{BEGIN}\n{text}\n\n({where})\n\n{END}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", default=PAGES, help="addresses below _build/html (default: all)")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each page (default: %(default)s)")
    parser.add_argument("--write", action="store_true", help="put the rows into the table of benchmarks/README.md")
    given = parser.parse_args()
    chromium = browser()
    with tempfile.TemporaryDirectory() as folder, served(ROOT / "_build" / "html") as site:
        program = installed(Path(folder))
        rows = {}
        for page in given.pages:
            runs = [measured(program, site + page, chromium) for _ in range(given.repeats)]
            numbers = {name: median(run[name] for run in runs) for name in runs[0]}
            rows[page] = row([f"`{page}`", *(f"{value:.{0 if value >= 10 else 2}f}" for value in numbers.values())])
            print(page, *(f"{name} {value:.4g}" for name, value in numbers.items()), sep="  ", flush=True)
    print(f"\n{table(rows)}")
    if given.write:
        write(rows)


if __name__ == "__main__":
    main()
