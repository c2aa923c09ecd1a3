"""The built book, as files: which pages there are, and what they contain."""

import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from _tools.reading_time import parse
from bs4.element import Tag

ROOT = Path(__file__).parents[2]
HTML = ROOT / "_build" / "html"
COMPILED = shutil.ignore_patterns("__pycache__")


def pages() -> list[str]:
    """Every page, as its address below the root of the site; those of JupyterLite belong to ``test_lite.py``.

    Where nothing is built, there is one page that cannot be read, and whose name says why. (`make check` collects these
    tests as well.)
    """
    written = (path.relative_to(HTML) for path in HTML.rglob("*.html"))
    found = sorted(str(path) for path in written if path.parts[0] not in ("_static", "lite"))
    return found or ["there is no built book: run `make book` first"]


def moved() -> list[str]:
    """The addresses of former pages, which lead to those that took their place; they have nothing of the theme."""
    extra = ROOT / "book" / "_extra"
    return sorted(str(path.relative_to(extra)) for path in extra.glob("book/*.html"))


def text(page: str) -> str:
    return (HTML / page).read_text(encoding="utf-8")


@functools.cache
def parsed(page: str) -> Tag:
    """The parsed text of a page, cached for the many tests that only read it."""
    return parse(text(page))


def chapters() -> list[str]:
    """The files of the table of contents, without ending."""
    return re.findall(r"(?:root|file): (\S+)", (ROOT / "_toc.yml").read_text())


def lessons() -> list[str]:
    """The pages that teach: the chapters of the course, and those that follow it."""
    return [*part("The course"), *part("A modern decoder"), *part("Going further")]


def part(caption: str) -> list[str]:
    """The pages of the part of the book with this caption, without those of the exercises."""
    contents = (ROOT / "_toc.yml").read_text().split(f"caption: {caption}\n")[1].split("caption:")[0]
    return [name for name in re.findall(r"file: (\S+)", contents) if name.startswith("book/")]


def source(name: str) -> str:
    return (ROOT / f"{name}.md").read_text(encoding="utf-8")


def build_small(
    folder: Path, page: str, toc: str = "format: jb-book\nroot: book/index\n", **html: str
) -> subprocess.CompletedProcess[str]:
    """Build a book of one page in this folder, as make builds the real one; ``html`` changes settings of that name."""
    for path in (path for path in ROOT.glob("book/_*") if path.is_dir()):
        shutil.copytree(path, folder / path.relative_to(ROOT), dirs_exist_ok=True, ignore=COMPILED)
    for path in (ROOT / "_config.yml", *ROOT.glob("book/*.bib")):
        shutil.copy(path, folder / path.relative_to(ROOT))
    config = (folder / "_config.yml").read_text()
    for name, value in html.items():
        config, changed = re.subn(rf"^  {name}: .*$", f"  {name}: {value}", config, flags=re.MULTILINE)
        assert changed == 1, f"_config.yml has no line for {name}"
    (folder / "_config.yml").write_text(config)
    preload_only_ipykernel(folder / "book" / "_tools" / "kernel_modules.py")
    (folder / "_toc.yml").write_text(toc)
    (folder / "book" / "index.md").write_text(page)
    return run_tool("build", book=folder / "book", cwd=folder)


def preload_only_ipykernel(program: Path) -> None:
    """Preload only the modules that small pages import: importing the others would take three seconds."""
    text, removed = re.subn(r'^    "(?!ipykernel\.).*\n', "", program.read_text(), flags=re.MULTILINE)
    assert removed, f"{program} lists nothing but ipykernel"
    program.write_text(text)


def run_tool(
    name: str, *arguments: str | Path, book: Path = ROOT / "book", cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run one of the programs in ``book/_tools``, as make does."""
    command = [sys.executable, "-m", f"_tools.{name}", *arguments]
    path = os.pathsep.join([str(book), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = os.environ | {"PYTHONPATH": path}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=600)
