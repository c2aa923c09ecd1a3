"""A Sphinx extension: what the themes leave undone on every page, as the tests of the built book demand it.

What a template or a style sheet can say stands in ``_templates`` and ``_static``. This is the rest: descriptions and
social tags, scripts that wait for the page, and markup of docutils and of the themes that screen readers stumble over.
"""

import re
from html import escape, unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from _tools.svg_minify import slimmed
from _tools.theme_subset import trim
from markupsafe import Markup
from sphinx.application import Sphinx
from sphinx.config import Config

SHORTEST, LONGEST = 40, 180  # characters of a description: what search engines show
SAID = re.compile(r'<meta content="([^"]*)"(?: lang="\w+")? name="description"')  # as Sphinx writes what a page says
PARAGRAPH = re.compile(r"<p>((?:(?!</p>).)*)</p>", re.DOTALL)
CARD = {"image": "_static/social.png", "image:width": "1200", "image:height": "630"}
CARD_ALT = "The title of the course beside a table of attention weights: each word of a sentence looks at every other."
OUR_OWN = {  # pages that nobody wrote
    "404": "This page of the course on attention is not there; the search and the contents are.",
    "genindex": "Every function, class and term of the course on attention, in alphabetical order.",
    "py-modindex": "The Python modules of attnlib, the library of the course on attention.",
    "search": "Search the chapters, the exercises and the library of the course on attention.",
}
BOX = re.compile(r'<div class="in-browser.*?</div>', re.DOTALL)  # the same on many pages: book/_ext/in_browser.py
# Inline scripts read what this one says, so it cannot wait for the page.
AT_ONCE = "documentation_options.js"

PLAIN = ("n", "nn", "nx", "p", "pm", "w")  # classes of Pygments

MENDED = (
    # A head cell without text heads nothing.
    (re.compile(r'<th class="head([^"]*)">\s*(?:<p>\s*</p>)?\s*</th>'), r'<td class="head\1"></td>'),
    # Names and brackets in code have the colour of text. A page without an element for each has a quarter fewer.
    (re.compile(rf'<span class="(?:{"|".join(PLAIN)})">([^<]*)</span>'), r"\1"),
    # Docutils' role for a source is deprecated, and a list needs items.
    (re.compile(r'role="doc-biblioentry"'), 'role="listitem"'),
)
# TeX is longer than what it says: the style sheet gives a formula in a line the room for so many letters at first.
FORMULA = re.compile(r'<span class="math notranslate nohighlight">(\\\(.*?\\\))</span>', re.DOTALL)
UNSEEN = re.compile(r"\\(?:math|text|operatorname|left|right|big)\w*|\\[(),;:! ]|[{}\s^_&]")
# Sphinx writes a long signature as a list of definitions without terms, within the term that it belongs to.
SIGNATURE = re.compile(r'<dt class="sig [^>]*>.*?</dt>', re.DOTALL)
LINES = (
    ("<dl>", '<span class="sig-lines">'),
    ("</dl>", "</span>"),
    ("<dd>", '<span class="sig-line">'),
    ("</dd>", "</span>"),
)
# The arrow that opens the sections of a chapter in the contents says nothing to who cannot see it.
ARROW = re.compile(r'(<a class="[^"]*\binternal\b[^"]*"[^>]*>((?:(?!</a>).)*)</a><details[^>]*><summary)>', re.DOTALL)


def plain(html: str) -> str:
    """Return the text of HTML, on one line."""
    return " ".join(unescape(re.sub(r"<[^>]+>", "", html)).split())


def description(pagename: str, context: dict[str, Any]) -> str:
    """Return what a page is about: as it says itself, or its first paragraph, up to the last word that fits."""
    said = SAID.search(context.get("metatags", ""))
    if said:
        return unescape(said[1])
    paragraphs = map(plain, PARAGRAPH.findall(BOX.sub("", context.get("body", ""))))
    text = OUR_OWN.get(pagename) or next((one for one in paragraphs if len(one) >= SHORTEST), "")
    return text if len(text) <= LONGEST else text[: LONGEST - 1].rpartition(" ")[0].rstrip(".,;:") + "…"


def tags(app: Sphinx, pagename: str, context: dict[str, Any]) -> str:
    """Return the page's description, and what other sites show of it where somebody links to it."""
    about, base = description(pagename, context), app.config.html_baseurl
    card = CARD | {"image": urljoin(base, CARD["image"]) if base else context["pathto"](CARD["image"], 1)}
    address = {"url": urljoin(base, app.builder.get_target_uri(pagename))} if base and pagename not in OUR_OWN else {}
    title = plain(context.get("title") or app.config.html_title)
    graph = {"title": title, "description": about, "type": "article", "site_name": app.config.html_title}
    graph |= address | card | {"image:alt": CARD_ALT}
    lines = (
        [] if SAID.search(context.get("metatags", "")) else [f'<meta name="description" content="{escape(about)}" />']
    )
    lines += [f'<meta property="og:{name}" content="{escape(value)}" />' for name, value in graph.items()]
    return "\n".join([*lines, '<meta name="twitter:card" content="summary_large_image" />'])


def mended(body: str) -> str:
    """Return the body of a page with the markup that screen readers stumble over put right, and small pictures."""
    for wrong, right in MENDED:
        body = wrong.sub(right, body)
    body = FORMULA.sub(_with_room, body)
    return slimmed(SIGNATURE.sub(lambda found: _lines(found[0]), body))


def _with_room(formula: re.Match[str]) -> str:
    letters = len(re.sub(r"\\[A-Za-z]+", "x", UNSEEN.sub("", unescape(formula[1]))))
    return f'<span class="math notranslate nohighlight" style="--letters: {letters}">{formula[1]}</span>'


def _lines(signature: str) -> str:
    for old, new in LINES:
        signature = signature.replace(old, new)
    return signature


def with_named_arrows(toctree: Any) -> Any:
    """Return the theme's function that writes the contents, so that each arrow says what it opens."""

    def write(*args: Any, **options: Any) -> Markup:
        return Markup(ARROW.sub(_named, str(toctree(*args, **options))))

    return write


def _named(arrow: re.Match[str]) -> str:
    return f'{arrow[1]} aria-label="{escape("Below: " + plain(arrow[2]))}">'


def finish(app: Sphinx, pagename: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Complete what the templates get for a page."""
    context["metatags"] = context.get("metatags", "") + tags(app, pagename, context)
    context["site_path"] = urlsplit(app.config.html_baseurl).path or "/"
    if "body" in context:
        context["body"] = mended(context["body"])
    if "generate_toctree_html" in context:
        context["generate_toctree_html"] = with_named_arrows(context["generate_toctree_html"])
    scripts = context["script_files"]
    scripts[:] = [script for script in scripts if "mathjax/" not in str(getattr(script, "filename", ""))]
    for script in scripts:
        if getattr(script, "filename", "") and not str(script.filename).endswith(AT_ONCE):
            script.attributes["defer"] = "defer"


def with_slash(_app: Sphinx, config: Config) -> None:
    """Have the address of the site end in a slash: without one, addresses within it would miss its last folder."""
    if config.html_baseurl:
        config.html_baseurl = config.html_baseurl.rstrip("/") + "/"


def write_map(app: Sphinx) -> None:
    """Tell search engines which pages there are, if it is known where the book will stand."""
    base = app.config.html_baseurl
    if not base:
        return
    pages = sorted(urljoin(base, app.builder.get_target_uri(name)) for name in app.env.found_docs)
    entries = "".join(f"<url><loc>{escape(page)}</loc></url>" for page in pages)
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    sitemap = f'<?xml version="1.0" encoding="utf-8"?>\n<urlset xmlns="{space}">{entries}</urlset>\n'
    Path(app.outdir, "sitemap.xml").write_text(sitemap, encoding="utf-8")
    Path(app.outdir, "robots.txt").write_text(
        f"User-agent: *\nSitemap: {urljoin(base, 'sitemap.xml')}\n", encoding="utf-8"
    )


def complete(app: Sphinx, error: Exception | None) -> None:
    """Complete the site once all its pages are written."""
    if error is None and app.builder.format == "html":
        trim(Path(app.outdir))
        write_map(app)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect all this."""
    app.connect("config-inited", with_slash)
    app.connect("html-page-context", finish, priority=900)  # after the themes
    app.connect("build-finished", complete, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
