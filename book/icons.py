"""The icons of the theme: of the 700 kB that it brings, those few that the book shows."""

import logging
import re
from pathlib import Path

import pydata_sphinx_theme
from fontTools import subset

THEME = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"
STYLE = Path("styles", "pydata-sphinx-theme.css")
FONTS = Path("vendor", "fontawesome", "webfonts")
FONT = "icons.woff"
NAME = re.compile(r"\bfa-[a-z0-9-]+")
RULE = re.compile(r'((?:\.fa-[\w-]+:before,?)+)\{content:"[^"]*"\}')
FACE = re.compile(r"@font-face\{[^}]*Font ?Awesome[^}]*\}")
OURS = (
    "@font-face{font-family:Font Awesome\\ 6 Free;font-style:normal;font-weight:900;font-display:block;"
    f"src:url(../{FONTS.as_posix()}/{FONT}) format('woff')}}"
)
ESCAPED = re.compile(r"\\([ef][0-9a-f]{3})\b")
PLAIN = re.compile("[\ue000-\uf8ff]")


def keep_used_icons(site: Path) -> None:
    """Write the theme's style sheet and its font of icons anew, with the icons that occur on a page.

    Both are read where the theme is installed, so that it does not matter what an earlier build has left here.
    """
    static = site / "_static"
    pages = [path for path in site.rglob("*.html") if not {"_static", "lite"} & set(path.relative_to(site).parts)]
    scripts = [path for path in (static / "scripts").glob("*.js") if path.name != "fontawesome.js"]
    used = {name for path in (*pages, *scripts) for name in NAME.findall(path.read_text(encoding="utf-8"))}
    style = (THEME / STYLE).read_text(encoding="utf-8")
    style = RULE.sub(lambda rule: rule[0] if used & set(NAME.findall(rule[1])) else "", FACE.sub("", style)) + OURS
    (static / STYLE).write_text(style, encoding="utf-8")
    signs = {int(code, 16) for code in ESCAPED.findall(style)} | set(map(ord, PLAIN.findall(style)))
    for sheet in (static / "styles").glob("sphinx-book-theme.css"):
        signs |= {int(code, 16) for code in ESCAPED.findall(sheet.read_text(encoding="utf-8"))}
    for unused in [*(static / FONTS).glob("fa-*"), *(static / "scripts").glob("fontawesome.js*")]:
        unused.unlink()
    write_font(THEME / FONTS / "fa-solid-900.ttf", static / FONTS / FONT, signs)


def write_font(source: Path, target: Path, signs: set[int]) -> None:
    """Write the part of a font that draws these signs."""
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # it tells of every table that it cuts
    options = subset.Options(flavor="woff", layout_features=[], glyph_names=False, notdef_outline=True)
    font = subset.load_font(str(source), options)
    cut = subset.Subsetter(options)
    cut.populate(unicodes=signs)
    cut.subset(font)
    subset.save_font(font, str(target), options)
