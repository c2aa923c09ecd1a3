"""A Sphinx extension: the first use of a term on a page links to the glossary, and shows what the term means.

The definition is in the link's attribute ``data-definition``, which ``_static/course.css`` shows while the pointer or
the focus is on the link. In return, the glossary names the first pages that use a term.

A term that is also an ordinary word is linked only where it is in bold or italics.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.nodes import make_refnode

GLOSSARY = "book/glossary"
SOURCE = Path(__file__).parents[1] / "glossary.md"
ENTRY = re.compile(r"^(\S.*)\n((?:  .*\n)+)", re.MULTILINE)
# Pages that list what others explain, or that speak of the course instead of attention.
NOT_LINKED = re.compile(
    r"(?!book/)|book/(glossary|api.*|bibliography|changelog|from-torch|index|install|instructors|notation|start|teach.*)$"
)
ORDINARY_WORDS = {
    *("alignment", "attention", "decode", "fixture", "gate", "head", "key", "margin", "mask", "memory", "patch"),
    *("projection", "query", "saturated", "score", "similarity", "state", "tile", "token", "value", "weight"),
}
# What is neither a sentence of the page nor free of other meanings: links, code, headings, tables, captions, results.
SKIPPED = (
    nodes.reference, nodes.literal, nodes.literal_block, nodes.title, nodes.table, nodes.figure, nodes.footnote,
    nodes.math, nodes.raw, nodes.container, nodes.topic, pending_xref,
)  # fmt: skip
MOST_PAGES = 3  # that the glossary names for a term
LONGEST_DEFINITION = 300  # characters
TERM_LINK = re.compile(r'(<a class="glossary-term [^>]*) title="')


class Term(NamedTuple):
    """A term of the glossary, with its definition as plain text."""

    name: str
    definition: str

    def forms(self) -> list[str]:
        """Return how a page may write the term: "byte pair encoding (BPE)" has two forms."""
        main, _, other = self.name.partition(" (")
        short = other.removesuffix(")")
        return [main, short] if short.isalnum() else [main]

    def pattern(self) -> str:
        """Return a regular expression for all forms, in the singular and the plural; capitals within it matter."""
        return "|".join(
            rf"{re.escape(form)}(?:s|es)?" if form != form.lower() else rf"(?i:{re.escape(form)}(?:s|es)?)"
            for form in self.forms()
        )

    def needs_emphasis(self) -> bool:
        """Tell whether the term also is an ordinary word."""
        return self.name in ORDINARY_WORDS


@cache
def glossary() -> dict[str, Term]:
    """Return all terms of the glossary by name, the longest first, so that "causal mask" comes before "mask"."""
    if not SOURCE.exists():  # a part of the book is built by itself
        return {}
    entries = ENTRY.findall(SOURCE.read_text().split(":::{glossary}\n")[1].split("\n:::")[0] + "\n")
    found = [Term(name, plain(text)) for name, text in entries]
    return {term.name: term for term in sorted(found, key=lambda term: -len(term.name))}


@cache
def terms() -> dict[str, Term]:
    """Return the terms that are linked wherever a page first uses them.

    A term such as "kernel (of a processor)" has another meaning elsewhere, so a page has to ask for the link.
    """
    return {name: term for name, term in glossary().items() if not re.search(r" \((?!\w+\))", name)}


def plain(text: str) -> str:
    """Return as many whole sentences of a definition as fit, without emphasis, and none that contains a formula."""
    text = " ".join(re.sub(r"[*`]", "", text).split())
    sentences = list(takewhile(lambda one: "$" not in one, re.split(r"(?<=[.!?]) (?=[A-Z`])", text)))
    while len(" ".join(sentences)) > LONGEST_DEFINITION:
        sentences.pop()
    return " ".join(sentences)


def link_first_uses(app: Sphinx, doctree: nodes.document) -> None:
    """Replace the first use of each term by a reference to the glossary, and remember the terms of the page."""
    env = app.env
    if NOT_LINKED.match(env.docname) or not terms():
        return
    env.note_dependency(str(SOURCE))
    linked = {str(one["reftarget"]) for one in doctree.findall(pending_xref) if one["reftype"] == "term"}
    for text in [*doctree.findall(nodes.Text)]:
        if is_prose(text):
            replaced = [*parts(text, linked, is_emphasised(text))]
            text.parent.replace(text, replaced)
    uses(env)[env.docname] = linked


def is_prose(text: nodes.Text) -> bool:
    """Tell whether a text is part of a paragraph or a list of the page, and not of something that is skipped."""
    parent, in_paragraph = text.parent, False
    while parent is not None:
        if isinstance(parent, SKIPPED):
            return False
        in_paragraph = in_paragraph or isinstance(parent, nodes.paragraph)
        parent = parent.parent
    return in_paragraph


def is_emphasised(text: nodes.Text) -> bool:
    """Tell whether a text is in bold or italics."""
    return isinstance(text.parent, nodes.emphasis | nodes.strong)


def parts(text: nodes.Text, linked: set[str], emphasised: bool) -> Iterator[nodes.Node]:
    """Yield a text in parts, with a reference for each term that is not linked yet, and add these terms."""
    said, rest, known = str(text), 0, [*terms().values()]
    for found in expression().finditer(said):
        term = known[int(str(found.lastgroup)[1:])]
        if term.name in linked or (term.needs_emphasis() and not emphasised):
            continue
        linked.add(term.name)
        yield nodes.Text(said[rest : found.start()])
        yield reference(term, found[0])
        rest = found.end()
    yield nodes.Text(said[rest:])


@cache
def expression() -> re.Pattern[str]:
    """Return a regular expression that finds every term, in a group named after its number."""
    groups = (f"(?P<t{n}>{term.pattern()})" for n, term in enumerate(terms().values()))
    return re.compile(rf"(?<![\w-])(?:{'|'.join(groups)})(?![\w-])")


def reference(term: Term, said: str) -> pending_xref:
    """Return a reference to a term, which Sphinx resolves as it does the role ``term``."""
    own = {"refdomain": "std", "reftype": "term", "reftarget": term.name, "refexplicit": True, "refwarn": True}
    return pending_xref("", nodes.inline(said, said), **own)


def uses(env: BuildEnvironment) -> dict[str, set[str]]:
    """Return the terms that are linked, by page."""
    if not hasattr(env, "glossary_uses"):
        env.glossary_uses = {}  # type: ignore[attr-defined]
    return env.glossary_uses  # type: ignore[attr-defined, no-any-return]


def forget(_app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """Forget the terms of a page that is read again."""
    uses(env).pop(docname, None)


def merge(_app: Sphinx, env: BuildEnvironment, docnames: set[str], other: BuildEnvironment) -> None:
    """Take over the terms of the pages that another process has read."""
    uses(env).update({name: uses(other)[name] for name in docnames if name in uses(other)})


def finish_page(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Add the definitions to the links of a page, or to the glossary the pages that use its terms."""
    if docname == GLOSSARY:
        in_order = [*app.env.collect_relations()]
        for item in doctree.findall(nodes.definition_list_item):
            name_pages(app, item, in_order)
        return
    by_id = {anchor: glossary()[name] for name, anchor in anchors(app.env).items() if name in glossary()}
    for link in doctree.findall(nodes.reference):
        term = by_id.get(link.get("refuri", "").partition("#")[2])
        if term and link.get("internal"):
            link["classes"] = ["glossary-term"]
            if term.definition:
                link["reftitle"] = term.definition


def anchors(env: BuildEnvironment) -> dict[str, str]:
    """Return the anchor of each term in the glossary."""
    objects = env.get_domain("std").get_objects()
    return {name: anchor for name, _, kind, _, anchor, _ in objects if kind == "term"}


def name_pages(app: Sphinx, item: nodes.definition_list_item, in_order: list[str]) -> None:
    """Add to an entry of the glossary the first pages that use its term, given all pages in the order of the book."""
    name = next(item.findall(nodes.term)).astext()
    using = [page for page in in_order if name in uses(app.env).get(page, ())]
    links: list[nodes.Node] = []
    for page in using[:MOST_PAGES]:
        title = nodes.inline("", app.env.titles[page].astext())
        links += [nodes.Text(", " if links else "Used in: "), make_refnode(app.builder, GLOSSARY, page, "", title)]
    if links:
        next(item.findall(nodes.definition)).append(nodes.paragraph("", "", *links, classes=["used-in"]))


def keep_definitions_apart(
    _app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: nodes.document | None
) -> None:
    """Move the definitions from the links' titles, which only a pointer can show, to an attribute of their own."""
    if "body" in context:
        context["body"] = TERM_LINK.sub(r'\1 data-definition="', context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("doctree-read", link_first_uses)
    app.connect("env-purge-doc", forget)
    app.connect("env-merge-info", merge)
    app.connect("doctree-resolved", finish_page)
    app.connect("html-page-context", keep_definitions_apart)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
