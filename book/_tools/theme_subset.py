"""What the theme brings and no page uses, or needs, is left out: of 700 kB, compressed, some 20 remain."""

import logging
import re
from pathlib import Path

import pydata_sphinx_theme
from fontTools import subset

THEME = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"
STYLE = Path("styles", "pydata-sphinx-theme.css")
SCRIPT = Path("scripts", "pydata-sphinx-theme.js")
# Its function that looks, whenever anything on a page changes, at every box of code and output: for that the whole page
# has to be laid out. _static/course.js does the same for the boxes that change.
STOPS = re.compile(r'(function \w+\(\)\{)const e=\(\)=>\{document\.querySelectorAll\(\["pre",.*?,e\(\)\}')
FONTS = Path("vendor", "fontawesome", "webfonts")
FONT = "icons.woff"
FACE = re.compile(r"@font-face\{[^}]*Font ?Awesome[^}]*\}")
OURS = (
    "@font-face{font-family:Font Awesome\\ 6 Free;font-style:normal;font-weight:900;font-display:block;"
    f"src:url(../{FONTS.as_posix()}/{FONT}) format('woff')}}"
)
RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
COMMA = re.compile(r",(?![^()]*\))")  # between two selectors
# A list with brackets within its brackets: such a rule stays as it is.
DEEP = re.compile(r"\([^()]*\([^()]*,|,[^()]*\([^()]*\)[^()]*\)")
ATTRIBUTE = re.compile(r"\[[^]]*\]")
CONDITION = re.compile(r":(?:not|is|where|has)\([^()]*(?:\([^()]*\)[^()]*)*\)")
CLASS = re.compile(r"\.(-?[A-Za-z_][\w-]*)")
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
EMPTY = re.compile(r"@(?:media|supports)[^{}]*\{\}")
WORD = re.compile(r"[A-Za-z_][\w-]*")
SIGN = re.compile(r"\\([ef][0-9a-f]{3})\b|([\ue000-\uf8ff])")  # of the font, escaped or not


def trim(site: Path) -> None:
    """Write the theme's style sheet anew, with the rules that some page may need, and its icons, with those that occur.

    Its script loses what slows a page down. All are read where the theme is installed, so that it does not matter what
    an earlier build has left here.
    """
    static = site / "_static"
    pages = [path for path in site.rglob("*.html") if not {"_static", "lite"} & set(path.relative_to(site).parts)]
    scripts = [path for path in static.rglob("*.js") if "mathjax" not in path.parts and path.name != "fontawesome.js"]
    words = {word for path in (*pages, *scripts) for word in WORD.findall(path.read_text(encoding="utf-8"))}
    style = used_rules(FACE.sub("", (THEME / STYLE).read_text(encoding="utf-8")), words) + OURS
    (static / STYLE).write_text(style, encoding="utf-8")
    (static / SCRIPT).write_text(without_stops((THEME / SCRIPT).read_text(encoding="utf-8")), encoding="utf-8")
    style += (static / "styles" / "sphinx-book-theme.css").read_text(encoding="utf-8")
    signs = {int(escaped, 16) if escaped else ord(plain) for escaped, plain in SIGN.findall(style)}
    for unused in [*(static / FONTS).glob("fa-*"), *(static / "scripts").glob("fontawesome.js*")]:
        unused.unlink()
    write_font(THEME / FONTS / "fa-solid-900.ttf", static / FONTS / FONT, signs)


def without_stops(script: str) -> str:
    """Return the theme's script without the function that makes stops of the tab key."""
    script, found = STOPS.subn(r"\1}", script)
    if found != 1:
        raise ValueError(f"{THEME / SCRIPT} has {found} functions that make stops of the tab key, not the one expected")
    return script


def used_rules(style: str, words: set[str]) -> str:
    """Return the rules whose classes occur among the words of the site: in its pages or its scripts."""

    def occurs(name: str) -> bool:  # a script may put a name together: bs-tooltip and -auto
        parts = name.split("-")
        return name in words or any("-".join(parts[:count]) in words for count in range(2, len(parts)))

    def kept(rule: re.Match[str]) -> str:
        if rule[1].lstrip().startswith("@") or DEEP.search(rule[1]):
            return rule[0]
        plain = [(one, ATTRIBUTE.sub("", CONDITION.sub("", one))) for one in COMMA.split(rule[1])]
        selectors = [one for one, simple in plain if all(map(occurs, CLASS.findall(simple)))]
        return f"{','.join(selectors)}{{{rule[2]}}}" if selectors else ""

    licences = "".join(COMMENT.findall(style))
    style, more = RULE.sub(kept, COMMENT.sub("", style)), 1
    while more:
        style, more = EMPTY.subn("", style)
    return licences + style


def write_font(source: Path, target: Path, signs: set[int]) -> None:
    """Write the part of a font that draws these signs."""
    logging.getLogger("fontTools").setLevel(logging.WARNING)  # it tells of every table that it cuts
    options = subset.Options(flavor="woff", layout_features=[], glyph_names=False, notdef_outline=True)
    font = subset.load_font(str(source), options)
    cut = subset.Subsetter(options)
    cut.populate(unicodes=signs)
    cut.subset(font)
    subset.save_font(font, str(target), options)
