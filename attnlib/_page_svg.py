"""A matplotlib backend for pages, which draws words as SVG text in the page's own font, and formulas as outlines.

Text keeps its size, weight, slant, colour and place, but gets a font family only if the figure asks for one other than
the default, such as ``monospace``. Text that matplotlib aligns at its middle or its end is anchored at that point in
SVG, too, because the page's font may be narrower than the one that matplotlib measures with. ``plotting.Picture`` uses
this backend.
"""

import codecs
import math
import re
from typing import BinaryIO, NamedTuple

import matplotlib as mpl
from matplotlib.backend_bases import GraphicsContextBase
from matplotlib.backends.backend_mixed import MixedModeRenderer
from matplotlib.backends.backend_svg import FigureCanvasSVG, RendererSVG
from matplotlib.font_manager import FontProperties, weight_dict
from matplotlib.text import Text

POINTS_PER_INCH = 72
ONLY_FORMULAS = re.compile(r"(?:\s*\$[^$]+\$\s*)+")
FORMULA_SIZE = 1.15  # relative to words, so that lower-case letters have the same height in both, as in the book
POWER_OF_TEN = re.compile(r"\$\\mathdefault\{10\^\{([-−\d]+)\}\}\$")  # on a logarithmic axis
SUPERSCRIPTS = str.maketrans("-−0123456789", "⁻⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
OUTER_OR_REPEATED_SPACE = re.compile(r"^ | $|(?<= ) ")  # SVG would drop these
ANCHORS = {0.0: "start", 0.5: "middle", 1.0: "end"}
START, MIDDLE, END = ANCHORS
HORIZONTAL = {"left": START, "center": MIDDLE, "right": END}
# Text that reads upwards ends at the top.
VERTICAL = {"bottom": START, "baseline": START, "center": MIDDLE, "center_baseline": MIDDLE, "top": END}


class Line(NamedTuple):
    """A line of words, its place, and its width in the font that matplotlib measures with."""

    words: str
    x: float
    y: float
    angle: float  # degrees
    width: float
    look: dict[str, str]

    @property
    def start(self) -> float:
        """The position of its start along the direction in which it reads."""
        return self.x * math.cos(math.radians(self.angle)) - self.y * math.sin(math.radians(self.angle))


class PageRenderer(RendererSVG):
    """Draws everything except words as matplotlib does."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)
        # If the text being drawn has several lines: all of them, and those that consist of words.
        self.lines: list[Line] = []
        self.words: list[Line] = []

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
        """Write a line of words as a ``<text>`` element; formulas, clipped text and links stay outlines."""
        width = self.get_text_width_height_descent(s, prop, ismath)[0]
        s, ismath = simplified(s, ismath)
        line = Line(OUTER_OR_REPEATED_SPACE.sub("\xa0", s), x, y, angle, width, font(prop) | colour(gc))
        if mtext is None:  # matplotlib passes it only if the text has a single line
            self.lines.append(line)
        if ismath or is_clipped(gc) or gc.get_url() is not None:
            super().draw_text(gc, x, y, s, sized(prop, s, ismath), angle, ismath, mtext)
        elif mtext:
            self.write(line, anchor_of(mtext, angle))
        else:
            self.words.append(line)

    def close_group(self, s: str) -> None:
        """Write the words of a text with several lines once all its lines are known."""
        if s == "text":
            anchor = common_anchor(self.lines)
            for line in self.words:
                self.write(line, anchor)
            self.lines.clear()
            self.words.clear()
        super().close_group(s)

    def write(self, line: Line, anchor: float) -> None:
        """Write a line as a ``<text>`` element whose anchor is where matplotlib places that point of the line."""
        x = line.x + anchor * line.width * math.cos(math.radians(line.angle))
        y = line.y - anchor * line.width * math.sin(math.radians(line.angle))
        place = {"x": f"{x:.2f}", "y": f"{y:.2f}"}
        if line.angle:
            place["transform"] = f"rotate({-line.angle:g} {x:.2f} {y:.2f})"
        if anchor:
            place["text-anchor"] = ANCHORS[anchor]
        self.writer.element("text", line.words, attrib=place | line.look)

    def get_text_width_height_descent(
        self, s: str, prop: FontProperties, ismath: bool | str
    ) -> tuple[float, float, float]:
        """Return the width, the height and the descent of a line."""
        s, ismath = simplified(s, ismath)
        return super().get_text_width_height_descent(s, sized(prop, s, ismath), ismath)


def is_clipped(gc: GraphicsContextBase) -> bool:
    """Tell whether clipping may hide a part of what is drawn."""
    return gc.get_clip_rectangle() is not None or gc.get_clip_path()[0] is not None


def simplified(line: str, ismath: bool | str) -> tuple[str, bool | str]:
    """Return a line and whether it is a formula. A power of ten becomes plain text."""
    power = POWER_OF_TEN.fullmatch(line)
    return (f"10{power[1].translate(SUPERSCRIPTS)}", False) if power else (line, ismath)


def sized(prop: FontProperties, line: str, ismath: bool | str) -> FontProperties:
    """Return the font of a line, enlarged if the line consists only of formulas."""
    if not (ismath and ONLY_FORMULAS.fullmatch(line)):
        return prop
    larger = prop.copy()
    larger.set_size(FORMULA_SIZE * prop.get_size_in_points())
    return larger


def anchor_of(text: Text, angle: float) -> float:
    """Return the fraction of a line that precedes its point of alignment: 0 for its start, 1 for its end."""
    if text.get_rotation_mode() == "anchor" or abs(math.cos(math.radians(angle))) > math.sqrt(0.5):
        return HORIZONTAL[text.get_horizontalalignment()]
    reads_upwards = math.sin(math.radians(angle)) > 0
    anchor = VERTICAL[text.get_verticalalignment()]
    return anchor if reads_upwards else END - anchor


def common_anchor(lines: list[Line]) -> float:
    """Return the point at which the lines are aligned: their start, their middle or their end."""

    def spread(anchor: float) -> float:
        places = [line.start + anchor * line.width for line in lines]
        return round(max(places) - min(places), 3)

    return min((MIDDLE, START, END), key=spread) if lines else START


def colour(gc: GraphicsContextBase) -> dict[str, str]:
    """Return the colour and, if words are transparent, the opacity."""
    rgb = gc.get_rgb()
    alpha = gc.get_alpha() if gc.get_forced_alpha() else rgb[3]
    return {"fill": mpl.colors.to_hex(rgb)} | ({} if alpha == 1 else {"fill-opacity": f"{alpha:g}"})


def font(prop: FontProperties) -> dict[str, str]:
    """Return the size, and the family, the weight and the slant where they differ from the default."""
    found = {"font-size": f"{prop.get_size_in_points():g}"}
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
        if vectors.words:
            raise RuntimeError(
                f"matplotlib {mpl.__version__} did not close the group of a text, "
                f"so this line of it was not drawn: {vectors.words[0].words!r}"
            )
        renderer.finalize()
