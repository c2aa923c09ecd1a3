"""A Sphinx extension: what the search looks through, section by section, in place of Sphinx's index of pages.

Each section is an entry, and so is each term of the glossary, function of the library and source. An entry contains
prose and captions: neither code, what code printed, formulas nor the labels of boxes. ``_static/search.js`` searches
them.

A script sets the entries, because a page that is opened as a file may load scripts but may not read other files. As in
Sphinx, what a page contributes is kept between builds, so that only pages that changed are read again.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _tools.reading_time import parse
from bs4.element import NavigableString, Tag
from sphinx import __display_version__
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder

from _ext.html_fixes import description

ENTRIES_SCRIPT = "search-entries.js"
INDEX_OF_PAGES = ("load_indexer", "index_page", "dump_search_index")  # these build Sphinx's own index, which is unused
NOT_SEARCHED = (
    "pre, .picture, .math, .cell_output > :not(figure), figure > :not(figcaption), .headerlink, .in-browser, button, "
    ".toctree-wrapper, .admonition-title, details.answer > summary, .reading-time"
)
HEADINGS = ["h1", "h2", "h3", "h4"]
DEFINED = "dl.glossary > dt[id], dl.py > dt[id]"
CITATION = "div.citation[id]"
# Words in formulas that somebody may type: names of functions, and what is written upright.
FORMULA_WORD = re.compile(r"\\(sqrt|exp|log|tanh|sin|cos|max)\b|\\(?:text|mathrm|operatorname)\{([A-Za-z]{3,})\}")
# Pages to look things up in. Their entries are short, which a search takes for relevance.
REFERENCE = (
    *("book/glossary", "book/bibliography", "book/changelog"),
    *("book/api", "book/api-layers", "book/api-models", "book/api-checks"),
)
REFERENCE_WEIGHT = 0.15
TEACHING, TEACHING_WEIGHT = "book/teaching/", 0.4
EXERCISES_WEIGHT = 0.5
TASK_WEIGHT = 0.2  # for a section of an exercise: its title names what it tests, but a chapter explains it
RECURRING_WEIGHT = (
    0.5  # for sections that many pages have, such as "Summary": they repeat what another section explains
)
RECURRING = 4  # pages

Entry = dict[str, Any]


def entries_of(body: str, page: str, about: str) -> list[Entry]:
    """Return the entries of a page, given its HTML, its name and its description."""
    article = parse(body)
    entries = [_defined(term) for term in article.select(DEFINED)]
    entries += [_reference(reference) for reference in article.select(CITATION)]
    for definition in article.select(f"dl.glossary, dl.py, {CITATION}"):
        definition.extract()
    sections = list(article.find_all("section", id=True))
    found = [_section(section, top=position == 0) for position, section in enumerate(sections)]
    if not found:
        return []
    found[0]["about"] = about
    return [entry | {"page": found[0]["title"], "url": f"{page}.html{entry['url']}"} for entry in [*found, *entries]]


def _section(section: Tag, *, top: bool) -> Entry:
    formulas = " ".join(str(one["alttext"]) for one in _own(section, "math"))
    heading = section.find(HEADINGS, recursive=False)
    own = [child for child in section.children if child is not heading and getattr(child, "name", "") != "section"]
    return {
        "url": "" if top else f"#{section['id']}",
        "title": _text(heading) if isinstance(heading, Tag) else "",
        "text": " ".join(filter(None, map(_text, own))),
        "bold": " ".join(_text(one) for one in _own(section, "strong")),
        "formulas": " ".join(sorted({word for pair in FORMULA_WORD.findall(formulas) for word in pair if word})),
    }


def _own(section: Tag, kind: str) -> Iterator[Tag]:
    """Yield the elements of a kind that are in this section and in none below it."""
    return (one for one in section.select(kind) if one.find_parent("section") is section)


def _defined(term: Tag) -> Entry:
    """Return the entry of a term of the glossary, or of a function or class, whose title is its name alone."""
    name = term.select_one(".descname")
    explanation = term.find_next_sibling("dd")
    text = _text(explanation) if isinstance(explanation, Tag) else ""
    return {"url": f"#{term['id']}", "title": _text(name or term), "text": text, "bold": "", "formulas": ""}


def _reference(reference: Tag) -> Entry:
    """Return the entry of a source, whose title is the names of its authors."""
    authors, _, text = " ".join(map(_text, reference.find_all("p"))).partition(". ")
    return {"url": f"#{reference['id']}", "title": authors, "text": text, "bold": "", "formulas": ""}


def _text(node: Any) -> str:
    """Return the prose in a node, on one line."""
    return " ".join("".join(_pieces(node)).split())


def _pieces(node: Any) -> Iterator[str]:
    if isinstance(node, NavigableString):
        yield str(node)
    elif isinstance(node, Tag) and node.name == "math":
        yield "…"
    elif isinstance(node, Tag) and not node.css.match(NOT_SEARCHED):
        for child in node.children:
            yield from _pieces(child)
        if node.name in ("p", "li", "td", "th", "dt", "dd", "summary", "figcaption"):
            yield " "


def with_weights(entries: list[Entry]) -> list[Entry]:
    """Return the entries with how much a hit in each counts, and whether it is on a page to look things up in."""
    recurring = Counter(entry["title"] for entry in entries)
    places = (entry["url"].partition(".html") for entry in entries)
    return [
        entry | {"weight": _weight(page, bool(part), recurring[entry["title"]]), "reference": page in REFERENCE}
        for entry, (page, _, part) in zip(entries, places, strict=True)
    ]


def _weight(page: str, is_part: bool, same_title: int) -> float:
    """Return the weight of an entry, a page or a part of one, given how many entries have its title."""
    if page in REFERENCE:
        return REFERENCE_WEIGHT
    weights = {"exercises/": TASK_WEIGHT if is_part else EXERCISES_WEIGHT, TEACHING: TEACHING_WEIGHT}
    weight = next((weight for folder, weight in weights.items() if page.startswith(folder)), 1)
    return weight * (RECURRING_WEIGHT if same_title >= RECURRING else 1)


def _kept(app: Sphinx, page: str) -> Path:
    return Path(app.doctreedir, "search", f"{page}.json")


def keep_entries(app: Sphinx, page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Keep the entries of a page that is being written."""
    if app.builder.name == "html" and page in app.env.found_docs:
        file = _kept(app, page)
        file.parent.mkdir(parents=True, exist_ok=True)
        entries = entries_of(context.get("body", ""), page, description(page, context))
        file.write_text(json.dumps(entries, ensure_ascii=False), encoding="utf-8")


def write_entries(app: Sphinx, error: Exception | None) -> None:
    """Write the script with the entries of all pages."""
    if error is None and app.builder.name == "html":
        files = (_kept(app, page) for page in sorted(app.env.found_docs))
        entries = [entry for file in files if file.is_file() for entry in json.loads(file.read_text(encoding="utf-8"))]
        data = json.dumps(with_weights(entries), ensure_ascii=False, separators=(",", ":"))
        Path(app.outdir, "_static", ENTRIES_SCRIPT).write_text(f"window.SEARCH_ENTRIES = {data};\n", encoding="utf-8")


def without_index_of_pages(app: Sphinx) -> None:
    """Keep Sphinx from making an index of its own."""
    if isinstance(app.builder, StandaloneHTMLBuilder):
        for step in INDEX_OF_PAGES:
            if not hasattr(app.builder, step):
                raise RuntimeError(f"Sphinx {__display_version__} has no {step}: what makes its index of pages now?")
            setattr(app.builder, step, lambda *_: None)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("builder-inited", without_index_of_pages)
    app.connect("html-page-context", keep_entries, priority=950)  # after html_fixes, before it is written
    app.connect("build-finished", write_entries)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
