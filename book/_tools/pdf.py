"""Print the book, built as one page, to a PDF: ``python -m _tools.pdf _build/book/singlehtml BOOK.pdf``.

``_static/print.css`` and ``_static/course.js`` say how a page looks on paper, here as for a reader who prints it.
"""

import shutil
import sys
from pathlib import Path

from _tools.chromium import chromium, new_context

PAGE_NUMBER = '<div style="width: 100%; font-size: 8px; text-align: center"><span class="pageNumber"></span></div>'


def main(site: Path, pdf: Path) -> None:
    """Write the PDF, with bookmarks, and with page numbers at the foot."""
    page = site / "book.html"  # Sphinx writes the root page into its folder, with links that are right only here
    shutil.copy(site / "book" / "index.html", page)
    with chromium() as browser, new_context(browser, color_scheme="light") as context:
        tab = context.new_page()
        tab.goto(page.resolve().as_uri())
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
