"""A backend of matplotlib for pages: words are SVG text, in the page's own font, and formulas are outlines.

A word has its size, weight, slant, colour and place, but a font only if the figure asks for another than the usual one,
such as ``monospace``. Words are placed by their middle or their end where matplotlib aligns them so, because the page's
font may be narrower than the one that matplotlib measures with. ``plotting.Picture`` asks for this backend.
"""

import codecs
import math
import re
from typing import BinaryIO

import matplotlib as mpl
from matplotlib.backend_bases import GraphicsContextBase
from matplotlib.backends.backend_mixed import MixedModeRenderer
from matplotlib.backends.backend_svg import FigureCanvasSVG, RendererSVG
from matplotlib.font_manager import FontProperties, weight_dict
from matplotlib.text import Text

POINTS_PER_INCH = 72
ONLY_FORMULAS = re.compile(r"(?:\s*\$[^$]+\$\s*)+")
FORMULA_SIZE = 1.15  # of the size of words, so that small letters are as high as theirs, as in the book
OUTER_OR_REPEATED_SPACE = re.compile(r"^ | $|(?<= ) ")  # which SVG would leave out
ANCHORS = {0.0: "start", 0.5: "middle", 1.0: "end"}
START, MIDDLE, END = ANCHORS
HORIZONTAL = {"left": START, "center": MIDDLE, "right": END}
# Of text that reads upwards, the end is at the top.
VERTICAL = {"bottom": START, "baseline": START, "center": MIDDLE, "center_baseline": MIDDLE, "top": END}


class PageRenderer(RendererSVG):
    """Draws all but words as matplotlib does."""

    def draw_text(
        self,
        gc: GraphicsContextBase,
        x: float,
        y: float,
        s: str,
        prop: FontProperties,
        angle: float,
        ismath: bool | str = False,
        mtext: Text | None = None,
    ) -> None:
        """Write a line of words as an element ``<text>``; a formula, and what has to be cut off, stays an outline."""
        if ismath or gc.get_clip_rectangle() is not None:
            super().draw_text(gc, x, y, s, sized(prop, s, ismath), angle, ismath, mtext)
            return
        anchor = anchor_of(mtext, angle) if mtext else START
        along = anchor * self.get_text_width_height_descent(s, prop, ismath)[0]
        x += along * math.cos(math.radians(angle))
        y -= along * math.sin(math.radians(angle))
        look = {"x": f"{x:.2f}", "y": f"{y:.2f}", "font-size": f"{prop.get_size_in_points():g}"}
        if angle:
            look["transform"] = f"rotate({-angle:g} {x:.2f} {y:.2f})"
        if anchor:
            look["text-anchor"] = ANCHORS[anchor]
        self.writer.element("text", OUTER_OR_REPEATED_SPACE.sub("\xa0", s), attrib=look | colour(gc) | font(prop))

    def get_text_width_height_descent(
        self, s: str, prop: FontProperties, ismath: bool | str
    ) -> tuple[float, float, float]:
        """Return how large a line is."""
        return super().get_text_width_height_descent(s, sized(prop, s, ismath), ismath)


def sized(prop: FontProperties, line: str, ismath: bool | str) -> FontProperties:
    """Return the font of a line, which is larger for a line of formulas alone."""
    if not (ismath and ONLY_FORMULAS.fullmatch(line)):
        return prop
    larger = prop.copy()
    larger.set_size(FORMULA_SIZE * prop.get_size_in_points())
    return larger


def anchor_of(text: Text, angle: float) -> float:
    """Return the part of a line that lies before the point that keeps its place: 0 at the start, 1 at the end."""
    if text.get_rotation_mode() == "anchor" or abs(math.cos(math.radians(angle))) > math.sqrt(0.5):
        return HORIZONTAL[text.get_horizontalalignment()]
    reads_upwards = math.sin(math.radians(angle)) > 0
    anchor = VERTICAL[text.get_verticalalignment()]
    return anchor if reads_upwards else END - anchor


def colour(gc: GraphicsContextBase) -> dict[str, str]:
    """Return the colour and, if words are transparent, the opacity."""
    rgb = gc.get_rgb()
    alpha = gc.get_alpha() if gc.get_forced_alpha() else rgb[3]
    return {"fill": mpl.colors.to_hex(rgb)} | ({} if alpha == 1 else {"fill-opacity": f"{alpha:g}"})


def font(prop: FontProperties) -> dict[str, str]:
    """Return what differs from the usual font: the family, the weight and the slant."""
    found = {}
    if prop.get_family() != mpl.rcParams["font.family"]:
        found["font-family"] = ", ".join(prop.get_family())
    weight = prop.get_weight()
    if (number := weight_dict[weight] if isinstance(weight, str) else weight) != weight_dict["normal"]:
        found["font-weight"] = str(number)
    if prop.get_style() != "normal":
        found["font-style"] = prop.get_style()
    return found


class FigureCanvas(FigureCanvasSVG):
    """What ``savefig(..., backend="module://attnlib._page_svg")`` draws on."""

    def print_svg(
        self,
        filename: BinaryIO,
        *,
        metadata: dict[str, None] | None = None,
        bbox_inches_restore: object = None,
        **_unused: object,
    ) -> None:
        """Write the figure to an open file."""
        resolution, self.figure.dpi = self.figure.dpi, POINTS_PER_INCH
        width, height = self.figure.get_size_inches()
        file = codecs.getwriter("utf-8")(filename)
        size = POINTS_PER_INCH * width, POINTS_PER_INCH * height
        vectors = PageRenderer(*size, file, image_dpi=resolution, metadata=metadata)
        renderer = MixedModeRenderer(
            *(self.figure, width, height, resolution, vectors), bbox_inches_restore=bbox_inches_restore
        )
        self.figure.draw(renderer)  # type: ignore[arg-type]
        renderer.finalize()
