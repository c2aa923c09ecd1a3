"""Cut the theme down to what the pages use: of its 700 kB, compressed, about 20 remain.

A style sheet keeps the rules that some page may need, and the font of icons keeps the icons that these rules show. The
style sheets of Sphinx and its extensions are cut down in the same way. All of them become one, with ours, because a
browser on a phone shows nothing until it has the last one.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import pydata_sphinx_theme
import tinycss2  # type: ignore[import-untyped]

from _tools.font_subset import write_font

THEME = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"
THEME_JS = Path("scripts", "pydata-sphinx-theme.js")
# The style sheets of every page, below ``_static``, in the order in which a page would load them.
CSS = (
    "basic.css",
    "styles/pydata-sphinx-theme.css",
    "pygments.css",
    "styles/sphinx-book-theme.css",
    "copybutton.css",
    "mystnb.*.css",
    "sphinx-design.min.css",
    "course.css",
    "formulas.css",
    "explorer.css",
)
CUT = {*CSS} - {"pygments.css", "copybutton.css", "course.css", "formulas.css", "explorer.css"}
STYLE_SHEET = "styles.css"  # which has all of them
STYLE_ADDRESS = re.compile(rf'(?<=_static/)({re.escape(STYLE_SHEET)})(?:\?v=\w*)?(?=")')
PARENT_ADDRESS = re.compile(r"""url\(\s*["']?\.\./""")
# The theme's script looks at every box of code and output whenever anything on a page changes, which lays out the whole
# page. This function of it goes; _static/course.js does the same for the boxes that change.
SCROLL_TABSTOPS = re.compile(r'(function \w+\(\)\{)const e=\(\)=>\{document\.querySelectorAll\(\["pre",.*?,e\(\)\}')
FONTS = Path("vendor", "fontawesome", "webfonts")
FONT_FILE = "icons.woff"
FONT_FACE = (
    "@font-face{font-family:Font Awesome\\ 6 Free;font-style:normal;font-weight:900;font-display:block;"
    f"src:url({FONTS.as_posix()}/{FONT_FILE}) format('woff')}}"
)
CSS_WORD = re.compile(r"[A-Za-z_][\w-]*")
PRIVATE_USE = range(0xE000, 0xF900)  # where the font has its icons

Nodes = list[Any]  # of tinycss2, which has no types


def trim(site: Path, cache: Path) -> None:
    """Write the style sheet of all pages, the theme's script and its icons anew, with what some page may need.

    The files that this is made of stay as they are, so that a build that writes no page finds them, too.

    Args:
        site: the folder of the pages.
        cache: the folder for what was cut, so that the next build cuts only what has changed.

    Raises:
        ValueError: a style sheet names a file by an address that would lead nowhere from where all of them are.
    """
    static = site / "_static"
    style = all_styles(static, words_of(site), cache) + FONT_FACE
    if PARENT_ADDRESS.search(style):
        raise ValueError("a style sheet names a file by an address that begins with ../: write it from _static")
    (static / STYLE_SHEET).write_text(style, encoding="utf-8")
    set_version(site, sha256(style.encode()).hexdigest()[:8])
    (static / THEME_JS).write_text(without_stops((THEME / THEME_JS).read_text(encoding="utf-8")), encoding="utf-8")
    for unused in [*(static / FONTS).glob("fa-*"), *(static / "scripts").glob("fontawesome.js*")]:
        unused.unlink()
    write_font(THEME / FONTS / "fa-solid-900.ttf", static / FONTS / FONT_FILE, icons(style))


def all_styles(static: Path, words: set[str], cache: Path) -> str:
    """Return the style sheets of every page as one."""
    styles = ['@charset "UTF-8";']
    for name in CSS:
        for sheet in sorted(static.glob(name)):
            styles.append(cut(sheet, words, cache) if name in CUT else sheet.read_text(encoding="utf-8"))
    return "\n".join(styles)


def set_version(site: Path, version: str) -> None:
    """Let each page ask for this version of the style sheet, so that no browser uses an older one that it has kept."""
    for page in pages_of(site):
        before = page.read_text(encoding="utf-8")
        after = STYLE_ADDRESS.sub(rf"\1?v={version}", before)
        if after != before:
            page.write_text(after, encoding="utf-8")


def is_shared(sheet: Path) -> bool:
    """Tell whether a style sheet, named from the top of the site, becomes part of the one that all pages share."""
    return any(sheet.match(f"_static/{name}") for name in CSS)


def pages_of(site: Path) -> list[Path]:
    """Return the pages of a site, without those of JupyterLite."""
    return [path for path in site.rglob("*.html") if not {"_static", "lite"} & set(path.relative_to(site).parts)]


def words_of(site: Path) -> set[str]:
    """Return the words of all pages and scripts: a class that is not among them is on no page."""
    scripts = [path for path in (site / "_static").rglob("*.js") if path.name != "fontawesome.js"]
    return {word for path in [*pages_of(site), *scripts] for word in CSS_WORD.findall(path.read_text(encoding="utf-8"))}


def without_stops(script: str) -> str:
    """Return the theme's script without the function that makes boxes stops of the Tab key.

    Raises:
        ValueError: the script does not have exactly one such function.
    """
    script, found = SCROLL_TABSTOPS.subn(r"\1}", script)
    if found != 1:
        raise ValueError(
            f"{THEME / THEME_JS} has {found} functions that make stops of the tab key, not the one expected"
        )
    return script


def cut(sheet: Path, words: set[str], cache: Path) -> str:
    """Return what some page needs of a style sheet, from the cache if only other words have changed since."""
    style = sheet.read_text(encoding="utf-8")
    matter = words.intersection(form for name in CSS_WORD.findall(style) for form in forms(name))
    kept = cache / f"{sha256(' '.join([style, *sorted(matter)]).encode()).hexdigest()}.css"
    if not kept.exists():
        cache.mkdir(parents=True, exist_ok=True)
        begun = kept.with_suffix(".begun")  # a build may be killed while it writes
        begun.write_text(used_rules(style, matter), encoding="utf-8")
        begun.replace(kept)
    return kept.read_text(encoding="utf-8")


def forms(name: str) -> list[str]:
    """Return how a class may be written on a page, or in a script that composes it: bs-tooltip and -auto."""
    name = name.lstrip("-")  # -Color-Red, which colours what a cell printed
    parts = name.split("-")
    return [name, *("-".join(parts[:count]) for count in range(2, len(parts)))]


def used_rules(style: str, words: set[str]) -> str:
    """Return a style sheet without its icon fonts and the rules whose classes do not occur among these words."""

    def occurs(name: str) -> bool:
        return not words.isdisjoint(forms(name))

    rules = tinycss2.parse_stylesheet(style, skip_whitespace=True)
    return "".join(_kept(rule, occurs) for rule in rules)


def _kept(rule: Any, occurs: Callable[[str], bool]) -> str:
    """Return the part of a rule that some page may need, as CSS."""
    if rule.type == "qualified-rule":
        selectors = [one for one in _split(rule.prelude) if all(map(occurs, _classes(one)))]
        head = ",".join(tinycss2.serialize(one) for one in selectors)
        return f"{head}{{{tinycss2.serialize(rule.content)}}}" if selectors else ""
    if rule.type == "at-rule" and rule.lower_at_keyword in ("media", "supports"):
        inner = "".join(_kept(one, occurs) for one in tinycss2.parse_rule_list(rule.content, skip_whitespace=True))
        return f"@{rule.at_keyword}{tinycss2.serialize(rule.prelude)}{{{inner}}}" if inner else ""
    if rule.type == "at-rule" and rule.lower_at_keyword == "font-face" and "Awesome" in rule.serialize():
        return ""
    return str(rule.serialize())


def _split(prelude: Nodes) -> Iterator[Nodes]:
    """Yield the selectors of a list: a comma within brackets is part of one."""
    selector: Nodes = []
    for node in prelude:
        if node == ",":
            yield selector
            selector = []
        else:
            selector.append(node)
    yield selector


def _classes(selector: Nodes) -> list[str]:
    """Return the classes that an element needs, without those in conditions such as :not(...), and in attributes."""
    return [name.value for dot, name in pairwise(selector) if dot == "." and name.type == "ident"]


def icons(style: str) -> set[int]:
    """Return the code points of the icons that the strings of a style sheet show."""
    return {ord(sign) for text in _strings(tinycss2.parse_component_value_list(style)) for sign in text} & {
        *PRIVATE_USE
    }


def _strings(nodes: Iterable[Any]) -> Iterator[str]:
    for node in nodes:
        if node.type == "string":
            yield node.value
        yield from _strings(getattr(node, "content", None) or getattr(node, "arguments", None) or [])
