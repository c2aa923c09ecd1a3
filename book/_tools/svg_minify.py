"""Make matplotlib's pictures on a page half as large, and let them wait; they are the larger half of a chapter.

Words are text (attnlib/_page_svg.py). For formulas, matplotlib writes the outlines of the letters into each picture. It
also writes groups and names for everything, numbers with six decimals, and a style that applies to the whole page.
Here, a page gets each letter's outline once, and the rest is left out.

Each picture is in an element <noscript>, where it is only text for a browser that runs scripts. ``_static/figures.js``
draws a picture when the reader comes near it. A browser without scripts shows all of them at once.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from xml.etree import ElementTree as Tree

SVG_NAMESPACE, XLINK_NAMESPACE = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
PICTURE_SVG = re.compile(r'(?<=<div class="picture")([^>]*>)\s*(<svg\b.*?</svg>)', re.DOTALL)
VIEW_BOX = re.compile(r'\bviewBox="0 0 ([\d.]+) ([\d.]+)"')
OUTLINE_TRANSFORM = "scale(0.015625)"  # how matplotlib transforms a letter's outline, and nothing else
LINE_STYLE = "*{stroke-linejoin: round; stroke-linecap: butt}"  # _static/course.css says this for all pictures
OUTLINE_SCALE = re.compile(r"scale\((0\.\d+) -0\.\d+\)")  # matplotlib draws outlines at 100 points, and scales them
FONT_SIZE = re.compile(r'\bfont-size="([\d.]+)"')
PHONE_PICTURE_WIDTH = 382  # pixels, the width of a picture on a phone of 390
MIN_LETTER_SIZE = 8  # pixels, the size of letters
MIN_TURNED_RATIO = 1.15  # the least ratio of width to height at which letters grow when a phone turns a picture
LONG_DECIMAL = re.compile(r"-?\d+\.\d{3,}")
TRANSLATION = re.compile(r"translate\([^)]*\)")
REFERENCED_ID = re.compile(r'(?:href="|url\()#([^")]+)')
SPACES = re.compile(r"\s+")
SPACE_IN_STYLE = re.compile(r"([:;]) ")
POLYLINE = re.compile(r"M [-\d.]+ [-\d.]+(?: L [-\d.]+ [-\d.]+)+")
POINT = re.compile(r"[ML] (\S+) (\S+)")
Point = tuple[float, float]

Tree.register_namespace("", SVG_NAMESPACE[1:-1])


def minify_pictures(body: str) -> str:
    """Return the body of a page with smaller pictures, each in a box that says how large it is."""
    letters: dict[str, str] = {}  # outline: name on this page
    body = PICTURE_SVG.sub(lambda found: _waiting(found[1], found[2], letters), body)
    outlines = "".join(f'<path id="{name}" d="{d}" transform="{OUTLINE_TRANSFORM}"/>' for d, name in letters.items())
    return f'<svg style="display: none" aria-hidden="true"><defs>{outlines}</defs></svg>{body}' if letters else body


def _waiting(attributes: str, picture: str, letters: dict[str, str]) -> str:
    return f"{_reserve_space(picture)}{attributes}<noscript>{_minify(picture, letters)}</noscript>"


def _reserve_space(picture: str) -> str:
    """Return a picture's size, which the style sheet reserves, and whether a phone turns it; nothing if it has none."""
    size = VIEW_BOX.search(picture)
    if not size:
        return ""
    turns = " data-turns" if _is_turned(float(size[1]), float(size[2]), picture) else ""
    return f' style="--wide: {size[1]}; --high: {size[2]}"{turns}'


def _is_turned(wide: float, high: float, picture: str) -> bool:
    """Tell whether an upright phone shows this picture turned, because upright its letters would be too small."""
    outlines = [100 * float(scale) for scale in OUTLINE_SCALE.findall(picture)]
    smallest = min([*outlines, *map(float, FONT_SIZE.findall(picture))], default=0)
    return wide >= MIN_TURNED_RATIO * high and smallest * PHONE_PICTURE_WIDTH / wide < MIN_LETTER_SIZE


def _minify(picture: str, letters: dict[str, str]) -> str:
    root = Tree.fromstring(picture)
    outlines = {}  # name in the picture: name on the page, or None for a space
    for path in root.iter(f"{SVG_NAMESPACE}path"):
        if path.get("transform") == OUTLINE_TRANSFORM:
            d = SPACES.sub(" ", path.get("d", "")).strip()
            outlines[path.attrib["id"]] = letters.setdefault(d, f"letter-{len(letters)}") if d else None
    for element in root.iter():
        if element.tag == f"{SVG_NAMESPACE}style" and element.text != LINE_STYLE:
            raise ValueError(f"a picture has the style {element.text!r}, which would hold for the whole page")
        element.tail = None
        if element.tag != f"{SVG_NAMESPACE}text":
            element.text = None
        _shorten(element, outlines)
    needed = set(REFERENCED_ID.findall(Tree.tostring(root, encoding="unicode")))
    for element in root.iter():
        if element.get("id") not in needed:
            element.attrib.pop("id", None)
    _drop_invisible(root)
    return Tree.tostring(root, encoding="unicode")


def _shorten(element: Tree.Element, outlines: dict[str, str | None]) -> None:
    """Round coordinates to hundredths of a point, leave out spaces in styles, and refer to the page's outlines."""
    of = element.attrib
    for name in ("x", "y", "width", "height", "d"):
        if name in of:
            of[name] = POLYLINE.sub(_short_line, SPACES.sub(" ", _rounded(of[name])).strip())
    if "style" in of:
        of["style"] = SPACE_IN_STYLE.sub(r"\1", of["style"])
    if "transform" in of:
        of["transform"] = TRANSLATION.sub(lambda found: _rounded(found[0]), of["transform"])
    if to := of.pop(f"{XLINK_NAMESPACE}href", None):
        of["href"] = SPACES.sub("", to)
    name = of.get("href", "").removeprefix("#")
    if name in outlines:
        of["href"] = f"#{outlines[name]}" if outlines[name] else ""


def _rounded(text: str) -> str:
    return LONG_DECIMAL.sub(lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), text)


def _short_line(line: re.Match[str]) -> str:
    """Return a line as its first point and the steps between points, which repeat more often than places do."""
    points = list(_needed((float(x), float(y)) for x, y in POINT.findall(line[0])))
    steps = (_rounded(f"{x - x0:.9f} {y - y0:.9f}") for (x0, y0), (x, y) in pairwise(points))
    start = " ".join(line[0].split(" ", 3)[:3])
    return f"{start} l {' '.join(steps)}"


def _needed(points: Iterable[Point]) -> Iterator[Point]:
    """Yield the points of a line that matter: none that is repeated, or inside a horizontal or vertical part."""
    points = iter(points)
    before, point = next(points), next(points)
    yield before
    for after in points:
        if not _is_between(before, point, after):
            yield point
            before = point
        point = after
    yield point


def _is_between(before: Point, point: Point, after: Point) -> bool:
    """Tell whether a point is on the way from one to another, of the same x or the same y."""
    (x0, y0), (x, y), (x1, y1) = before, point, after
    return (x0 == x == x1 and min(y0, y1) <= y <= max(y0, y1)) or (y0 == y == y1 and min(x0, x1) <= x <= max(x0, x1))


def _drop_invisible(parent: Tree.Element) -> None:
    """Remove what shows nothing: outlines that the page has already, spaces, and groups without attributes."""
    kept: list[Tree.Element] = []
    for child in parent:
        _drop_invisible(child)
        kind = child.tag.removeprefix(SVG_NAMESPACE)
        if kind == "g" and not child.attrib:
            kept += child
        elif not (
            child.get("transform") == OUTLINE_TRANSFORM
            or (kind == "use" and not child.get("href"))
            or (kind == "defs" and not len(child))
            or kind == "style"
        ):
            kept.append(child)
    parent[:] = kept
