"""Print the book, built as one page, with Chromium: ``python book/print.py _build/book/singlehtml BOOK.pdf``.

How it looks on paper is said where it is said for each page: in ``_static/print.css`` and ``_static/course.js``.
"""

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
TYPESET = "window.typesetAll()"
PAGE_NUMBER = '<div style="width: 100%; font-size: 8px; text-align: center"><span class="pageNumber"></span></div>'


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the Chromium that CHROMIUM names, the system's, or Playwright's own; FileNotFoundError if there is none."""
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    with sync_playwright() as playwright:
        if path is None and not Path(playwright.chromium.executable_path).exists():
            raise FileNotFoundError("no Chromium here: install it, or set CHROMIUM=/path/to/it")
        with playwright.chromium.launch(executable_path=path, args=FLAGS) as browser:
            yield browser


def main(site: Path, pdf: Path) -> None:
    """Write the PDF, with bookmarks, and with page numbers at the foot."""
    page = site / "book.html"  # Sphinx writes the root page into its folder, with addresses as if it stood here
    shutil.copy(site / "book" / "index.html", page)
    with chromium() as browser:
        tab = browser.new_page(color_scheme="light")
        tab.set_default_timeout(300_000)
        tab.goto(page.resolve().as_uri())
        tab.evaluate(TYPESET)
        tab.pdf(
            path=pdf,
            format="A4",
            margin={"top": "18mm", "bottom": "18mm", "left": "18mm", "right": "18mm"},
            display_header_footer=True,
            header_template="<span></span>",
            footer_template=PAGE_NUMBER,
            outline=True,
            tagged=True,
        )
    print(f"{pdf}: {pdf.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), Path(sys.argv[2]))
    except FileNotFoundError as error:
        sys.exit(str(error))
