"""A Sphinx extension: fix what the themes and docutils leave undone in the HTML of every page.

What a template or a style sheet can say is in ``_templates`` and ``_static``. This is the rest: descriptions and social
tags, scripts that wait for the page, and markup that screen readers stumble over.
"""

import re
from html import escape, unescape
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from _tools.svg_minify import minify_pictures
from _tools.theme_subset import STYLE_SHEET, is_shared, trim
from markupsafe import Markup
from sphinx.application import Sphinx
from sphinx.config import Config

from _ext.number_columns import align_numbers

SHORTEST_PARAGRAPH, LONGEST_DESCRIPTION = 40, 180  # characters; search engines show about as many as the longest has
# This is how Sphinx writes a description that the page itself gives.
DESCRIPTION_TAG = re.compile(r'<meta content="([^"]*)"(?: lang="\w+")? name="description"')
PARAGRAPH = re.compile(r"<p>((?:(?!</p>).)*)</p>", re.DOTALL)
SOCIAL_CARD = {"image": "_static/social.png", "image:width": "1200", "image:height": "630"}
SOCIAL_CARD_ALT = (
    "The title of the course beside a table of attention weights: each word of a sentence looks at every other."
)
GENERATED_DESCRIPTIONS = {  # descriptions of pages that have no source
    "404": "This page of the course on attention is not there; the search and the contents are.",
    "genindex": "Every function, class and term of the course on attention, in alphabetical order.",
    "py-modindex": "The Python modules of attnlib, the library of the course on attention.",
    "search": "Search the chapters, the exercises and the library of the course on attention.",
}
# The box of book/_ext/in_browser.py is the same on many pages.
IN_BROWSER_BOX = re.compile(r'<div class="in-browser.*?</div>', re.DOTALL)
# Inline scripts read what this script sets, so it cannot wait for the page.
NOT_DEFERRED = "documentation_options.js"

# Scripts that Sphinx's extensions add to each page, and what a page has to contain to need them.
NEEDED_BY = {"design-tabs.js": "sd-tab-set", "copybutton.js": "<pre", "clipboard.min.js": "<pre"}

PLAIN_PYGMENTS_CLASSES = ("n", "nn", "nx", "p", "pm", "w")  # classes of Pygments that have the colour of text

MARKUP_FIXES = (
    # A header cell without text heads no column.
    (re.compile(r'<th class="head([^"]*)">\s*(?:<p>\s*</p>)?\s*</th>'), r'<td class="head\1"></td>'),
    # Without an element for each name and bracket in code, a page has a quarter fewer elements.
    (re.compile(rf'<span class="(?:{"|".join(PLAIN_PYGMENTS_CLASSES)})">([^<]*)</span>'), r"\1"),
    # Without this label, screen readers announce the text of the bar of hidden code, "Show code cell source".
    (re.compile(r'<summary aria-label="Toggle hidden content">'), "<summary>"),
    # Docutils' role for a source is deprecated, and a list needs items.
    (re.compile(r'role="doc-biblioentry"'), 'role="listitem"'),
)
# Code that is hidden until the reader asks for it. For a browser that runs scripts, it is only text in a
# <noscript> element until _static/course.js shows it.
HIDDEN_CODE = re.compile(
    r'(<details class="[^"]*\babove-input\b[^"]*">\s*<summary.*?</summary>)(.*?)(?=</details>)', re.DOTALL
)
# Sphinx writes a long signature as a definition list without terms, inside a term.
SIGNATURE = re.compile(r'<dt class="sig [^>]*>.*?</dt>', re.DOTALL)
SIGNATURE_TAGS = (
    ("<dl>", '<span class="sig-lines">'),
    ("</dl>", "</span>"),
    ("<dd>", '<span class="sig-line">'),
    ("</dd>", "</span>"),
)
# The arrow that opens the sections of a chapter in the contents has no label for a screen reader.
CONTENTS_ARROW = re.compile(
    r'(<a class="[^"]*\binternal\b[^"]*"[^>]*>((?:(?!</a>).)*)</a><details[^>]*><summary)>', re.DOTALL
)


def plain_text(html: str) -> str:
    """Return the text of HTML, on one line."""
    return " ".join(unescape(re.sub(r"<[^>]+>", "", html)).split())


def description(pagename: str, context: dict[str, Any]) -> str:
    """Return the description that a page gives, or else its first paragraph, up to the last word that fits."""
    said = DESCRIPTION_TAG.search(context.get("metatags", ""))
    if said:
        return unescape(said[1])
    paragraphs = map(plain_text, PARAGRAPH.findall(IN_BROWSER_BOX.sub("", context.get("body", ""))))
    text = GENERATED_DESCRIPTIONS.get(pagename) or next(
        (one for one in paragraphs if len(one) >= SHORTEST_PARAGRAPH), ""
    )
    return (
        text
        if len(text) <= LONGEST_DESCRIPTION
        else text[: LONGEST_DESCRIPTION - 1].rpartition(" ")[0].rstrip(".,;:") + "…"
    )


def head_tags(app: Sphinx, pagename: str, context: dict[str, Any]) -> str:
    """Return the page's description, and the tags that other sites read to show a link to it."""
    about, base = description(pagename, context), app.config.html_baseurl
    card = SOCIAL_CARD | {
        "image": urljoin(base, SOCIAL_CARD["image"]) if base else context["pathto"](SOCIAL_CARD["image"], 1)
    }
    address = (
        {"url": urljoin(base, app.builder.get_target_uri(pagename))}
        if base and pagename not in GENERATED_DESCRIPTIONS
        else {}
    )
    title = plain_text(context.get("title") or app.config.html_title)
    graph = {"title": title, "description": about, "type": "article", "site_name": app.config.html_title}
    graph |= address | card | {"image:alt": SOCIAL_CARD_ALT}
    lines = (
        []
        if DESCRIPTION_TAG.search(context.get("metatags", ""))
        else [f'<meta name="description" content="{escape(about)}" />']
    )
    lines += [f'<meta property="og:{name}" content="{escape(value)}" />' for name, value in graph.items()]
    return "\n".join([*lines, '<meta name="twitter:card" content="summary_large_image" />'])


def fix_markup(body: str) -> str:
    """Return the body of a page with markup fixed for screen readers, numbers aligned and small pictures."""
    for wrong, right in MARKUP_FIXES:
        body = wrong.sub(right, body)
    body = HIDDEN_CODE.sub(r"\1<noscript>\2</noscript>", body)
    return minify_pictures(align_numbers(SIGNATURE.sub(lambda found: _lines(found[0]), body)))


def _lines(signature: str) -> str:
    for old, new in SIGNATURE_TAGS:
        signature = signature.replace(old, new)
    return signature


def with_labelled_arrows(toctree: Any) -> Any:
    """Wrap the theme's function that writes the contents, so that each arrow has a label."""

    def write(*args: Any, **options: Any) -> Markup:
        return Markup(CONTENTS_ARROW.sub(_labelled, str(toctree(*args, **options))))

    return write


def _labelled(arrow: re.Match[str]) -> str:
    return f'{arrow[1]} aria-label="{escape("Below: " + plain_text(arrow[2]))}">'


def complete_page(app: Sphinx, pagename: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Complete the context of a page's template."""
    context["metatags"] = context.get("metatags", "") + head_tags(app, pagename, context)
    context["site_path"] = urlsplit(app.config.html_baseurl).path or "/"
    if "body" in context:
        context["body"] = fix_markup(context["body"])
    if "generate_toctree_html" in context:
        context["generate_toctree_html"] = with_labelled_arrows(context["generate_toctree_html"])
    context["css_files"] = [sheet for sheet in context["css_files"] if not is_shared(Path(sheet.filename))]
    context["style_sheet"] = context["pathto"](f"_static/{STYLE_SHEET}", 1)
    context["script_files"] = [one for one in context["script_files"] if is_needed(one, context.get("body", ""))]
    for script in context["script_files"]:
        if getattr(script, "filename", "") and not str(script.filename).endswith(NOT_DEFERRED):
            script.attributes["defer"] = "defer"


def is_needed(script: Any, body: str) -> bool:
    """Tell whether there is something on a page for a script to work on."""
    name = str(getattr(script, "filename", "")).rpartition("/")[2]
    return NEEDED_BY.get(name, "") in body


def end_with_slash(_app: Sphinx, config: Config) -> None:
    """Let the address of the site end in a slash: without one, joined addresses would lose its last folder."""
    if config.html_baseurl:
        config.html_baseurl = config.html_baseurl.rstrip("/") + "/"


def write_sitemap(app: Sphinx) -> None:
    """List the pages for search engines, if the address of the site is known."""
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


def complete_site(app: Sphinx, error: Exception | None) -> None:
    """Complete the site once all its pages are written."""
    if error is None and app.builder.format == "html":
        trim(Path(app.outdir), Path(app.doctreedir, "style-sheets"))
        write_sitemap(app)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("config-inited", end_with_slash)
    app.connect("html-page-context", complete_page, priority=900)  # after the themes
    app.connect("build-finished", complete_site, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
