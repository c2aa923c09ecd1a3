"""Build the book: ``python -m _tools.build`` makes the site, ``--builder singlehtml`` a single page for printing.

The pages come from ``book/``, and the exercises from ``_build/released/``, so that the book contains nothing that a
student wrote in ``exercises/``. The site in ``_build/html`` is replaced only when all was built without a warning.
"""

import argparse
import gc
import os
import shutil
import sys
from functools import cache
from pathlib import Path

import pybtex.plugin  # type: ignore[import-untyped]
from jupyter_book.sphinx import build_sphinx

from _tools.replace_folder import recover_folder, replace_folder
from _tools.theme_subset import CSS

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "_build" / "source"  # the folder that Sphinx reads: links to what the book is made from
BUILT = ROOT / "_build" / "book"  # where Sphinx writes, and caches what it has read and executed
SITE = ROOT / "_build" / "html"
# These give way to _static/search.js and to the style sheet of all pages.
NOT_PUBLISHED = ("searchindex.js", "searchtools.js", "styles", *(Path(name).name for name in CSS))
KEEP = ["lite"]  # the part of the site that is built separately: JupyterLite
SOURCES = {
    "book": ROOT / "book",
    "deploy": ROOT / "deploy",  # recipes that a page shows
    "exercises": ROOT / "_build" / "released",
    "_config.yml": ROOT / "_config.yml",
    "_toc.yml": ROOT / "_toc.yml",
}


def build(builder: str) -> bool:
    """Build the book with one of Sphinx's builders, warnings as errors, and say whether it worked."""
    link_sources()
    failed = build_sphinx(
        str(SOURCE),
        str(BUILT / builder),
        path_config=str(SOURCE / "_config.yml"),
        noconfig=True,
        confoverrides={
            "external_toc_path": str(SOURCE / "_toc.yml"),
            "latex_individualpages": False,
            "nitpicky": True,
        },
        builder=builder,
        warningiserror=True,
        keep_going=True,
    )
    if failed:
        # Sphinx would pass over an unchanged page with a broken reference, so the next build reads all pages.
        shutil.rmtree(BUILT / ".doctrees", ignore_errors=True)
    return not failed


def link_sources() -> None:
    """Put links to the sources of the book into one folder."""
    SOURCE.mkdir(parents=True, exist_ok=True)
    for name, target in SOURCES.items():
        link, to = SOURCE / name, os.path.relpath(target, SOURCE)
        if not link.is_symlink() or str(link.readlink()) != to:
            link.unlink(missing_ok=True)
            link.symlink_to(to)


def publish() -> None:
    """Replace the site by a copy of what was built, and keep JupyterLite."""
    new = SITE.with_name("html.new")
    shutil.rmtree(new, ignore_errors=True)
    shutil.copytree(BUILT / "html", new, ignore=shutil.ignore_patterns(*NOT_PUBLISHED))
    replace_folder(new, SITE, keep=KEEP)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--builder", choices=["html", "singlehtml"], default="html", help="default: %(default)s")
    chosen = parser.parse_args().builder
    gc.disable()  # Sphinx keeps almost all objects that it makes; looking for unused ones takes a quarter of the time
    # For each citation, pybtex would look for its plug-ins among the entry points of all packages.
    pybtex.plugin._load_entry_point = cache(pybtex.plugin._load_entry_point)
    recover_folder(SITE, keep=KEEP)  # an earlier build may have been killed while it replaced the site
    if not build(chosen):
        sys.exit(
            "The book could not be built; the messages above say why. "
            "If the site had been built before, that version is still there"
        )
    if chosen == "html":
        publish()
        print(f"The book: {SITE / 'index.html'}")
    gc.freeze()  # Python looks for unused objects once more before it ends, and that takes a second
