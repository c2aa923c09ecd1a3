"""Build the book: ``python -m _tools.build`` makes the site, ``--builder singlehtml`` a single page for printing.

The pages come from ``book/``, and the exercises from ``_build/released/``, so that nothing a student wrote in
``exercises/`` gets in. The site takes its place in ``_build/html`` only when all of it was built without a warning.
"""

import argparse
import os
import shutil
import sys
from pathlib import Path

from jupyter_book.sphinx import build_sphinx

from _tools.replace_folder import put_back, put_in_place

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "_build" / "source"  # the folder that Sphinx reads: links to what the book is made from
BUILT = ROOT / "_build" / "book"  # where Sphinx writes, and keeps what it has read and executed
SITE = ROOT / "_build" / "html"
KEEP = ["lite"]  # of the site: JupyterLite, which is built apart
PARTS = {
    "book": ROOT / "book",
    "exercises": ROOT / "_build" / "released",
    "_config.yml": ROOT / "_config.yml",
    "_toc.yml": ROOT / "_toc.yml",
}


def build(builder: str) -> bool:
    """Build the book with one of Sphinx's builders, warnings as errors, and say whether it worked."""
    lay_out()
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
        # An unchanged page with a broken reference would be passed over: the next build reads everything.
        shutil.rmtree(BUILT / ".doctrees", ignore_errors=True)
    return not failed


def lay_out() -> None:
    """Put links to the parts of the book into one folder."""
    SOURCE.mkdir(parents=True, exist_ok=True)
    for name, target in PARTS.items():
        link, to = SOURCE / name, os.path.relpath(target, SOURCE)
        if not link.is_symlink() or str(link.readlink()) != to:
            link.unlink(missing_ok=True)
            link.symlink_to(to)


def publish() -> None:
    """Put a copy of what was built in the site's place, and leave JupyterLite there."""
    new = SITE.with_name("html.new")
    shutil.rmtree(new, ignore_errors=True)
    shutil.copytree(BUILT / "html", new)
    put_in_place(new, SITE, keep=KEEP)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--builder", choices=["html", "singlehtml"], default="html", help="default: %(default)s")
    chosen = parser.parse_args().builder
    put_back(SITE, keep=KEEP)  # an earlier build may have been killed while it replaced the site
    if not build(chosen):
        sys.exit(
            "The book could not be built; the messages above say why. "
            "If the site had been built before, that version is still there"
        )
    if chosen == "html":
        publish()
        print(f"The book: {SITE / 'index.html'}")
