"""How long a page takes to read: ``python -m _tools.reading_time _build/html/book/*.html`` measures built pages.

What is timed is the core path: what a reader sees who opens the answer to every prediction, and nothing else.

- Folds, dropdowns and toggles are closed, so only their titles count. Neither hidden cells count nor their bars.
- The options of a question count, and the explanations below them do not.
- Captions, tables, code and printed results count like text: whatever stands between spaces is a word.
- A formula on a line of its own counts as five words, and one inside a sentence as one.
- Pictures and explorers do not count, although their captions do.
- The sections named in ``TASKS``, the list of sources, and links to exercises are not part of the core path.

At 150 words a minute, which leaves time to think about formulas and code, minutes are rounded up.
"""

import copy
import math
import re
import sys
from pathlib import Path
from typing import NamedTuple

from bs4 import BeautifulSoup
from bs4.element import Tag

WORDS_PER_MINUTE = 150
WORDS_PER_FORMULA = {"div.math": 5, "math": 1}  # words
TASK_TITLES = {"Check yourself", "Try it yourself", "Exercises"}
SOURCE_TITLES = {"Go deeper"}
# These make up most of a page, so they are removed before it is parsed. Of a formula, its tag remains.
INLINE_DRAWING = re.compile(r"<(svg|script|style|attention-\w+)\b.*?</\1>", re.DOTALL)
CODE_LISTING = re.compile(r"(?<=<pre>).*?(?=</pre>)", re.DOTALL)  # most tags on a page only colour its code
TAG = re.compile(r"<[^>]*>")
FORMULA_CONTENT = re.compile(r"(?<=<math\b)([^>]*>).*?(?=</math>)", re.DOTALL)
# Besides links and buttons, the bars of hidden cells, and the pages below this one, which singlehtml writes into it.
IGNORED = "a.headerlink, button, .in-browser, details.hide > summary, .toctree-wrapper"
HEADING_TAG = re.compile(r"^h\d$")
BLOCK_TAG = re.compile(r"^(h\d|p|div|summary|li|dt|dd|td|th|caption|figcaption|pre|br)$")  # where one ends, a word ends
CLOSED_FOLDS = "details:not(.answer), .admonition.dropdown, .toggle"
FOLD_TITLE = "summary, .admonition-title"


class Reading(NamedTuple):
    """The words of a page: those of its core path, and those that are folded away from it."""

    words: int
    folded: int

    @property
    def minutes(self) -> int:
        """How long the core path takes."""
        return max(1, math.ceil(self.words / WORDS_PER_MINUTE))

    def __str__(self) -> str:
        """Return all three numbers."""
        return f"{self.words} words, {self.minutes} min; {self.folded} words are folded away"


def parse(html: str) -> Tag:
    """Return the text of a page, given the page or only its body, without what is drawn and what is in formulas."""
    html = CODE_LISTING.sub(lambda code: TAG.sub("", code[0]), INLINE_DRAWING.sub("", html))
    soup = BeautifulSoup(FORMULA_CONTENT.sub(r"\1", html), "html.parser")
    return soup.select_one("article.bd-article") or soup


def measure(page: Tag) -> Reading:
    """Count the words of a page."""
    page = copy.copy(page)
    for ignored in [*page.select(IGNORED), *filter(is_apart, page.find_all("section"))]:
        ignored.extract()
    for kind, words in WORDS_PER_FORMULA.items():
        for formula in page.select(kind):
            formula.string = " ".join(["formula"] * words)
    for block in page.find_all(BLOCK_TAG):
        block.append(" ")
    everything = count(page)
    for closed in page.select(CLOSED_FOLDS):
        for part in [part for part in closed.contents if not is_title(part)]:
            part.extract()
    return Reading(count(page), everything - count(page))


def count(page: Tag) -> int:
    """Count what stands between spaces."""
    return len(page.get_text().split())


def is_apart(section: Tag) -> bool:
    """Tell whether a section is not part of the core path."""
    heading = section.find(HEADING_TAG)
    title = "".join(heading.find_all(string=True, recursive=False)) if heading else ""
    return title.strip() in TASK_TITLES | SOURCE_TITLES


def is_title(part: object) -> bool:
    """Tell whether this is in view while the element that contains it is closed."""
    return isinstance(part, Tag) and part.css.match(FOLD_TITLE)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(f"{name}: {measure(parse(Path(name).read_text(encoding='utf-8')))}")
