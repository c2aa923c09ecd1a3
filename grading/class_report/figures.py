"""The two plots, as self-contained SVG: how the scores are distributed, and how the questions fared.

A plot is a list of shapes, which a template turns into SVG.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import cos, pi, sin

from markupsafe import Markup

from grading.class_report.item_analysis import EASY, HARD, WEAK, Item
from grading.class_report.render import render

WIDTH, HEIGHT = 360, 280  # units of a drawing; at full width, one unit is one pixel
LEFT, RIGHT, TOP, BOTTOM = 44, 348, 26, 228  # where the axes are
BINS = 10  # bars of the histogram, each a tenth of the points wide
RADIUS = 10  # the radius of a question's circle, which must have room for its number
FLOOR = BOTTOM - RADIUS - 2  # the lowest place of a circle
LOWEST_CORRELATION = -0.2  # the bottom of the plot; a question further below is drawn there
# how a circle without room is moved: rings this far apart are tried, with so many places in each
STEP, DIRECTIONS = 3, 16


@dataclass(frozen=True)
class Shape:
    """An SVG element, which may contain text or other elements."""

    tag: str
    attributes: Mapping[str, str | float | None]
    words: str = ""
    parts: tuple["Shape", ...] = ()


def bins(shares: Sequence[float]) -> list[int]:
    """Return how many shares of the points fall into each tenth; full marks belong to the last one."""
    counts = [0] * BINS
    for share in shares:
        counts[min(BINS - 1, max(0, int(share * BINS + 1e-9)))] += 1
    return counts


def histogram(shares: Sequence[float], mean: float) -> Markup:
    """Return how many students earned which share of the points, with the mean marked."""
    counts = bins(shares)
    most = max(counts) or 1
    heights = [(BOTTOM - TOP - 26) * count / most for count in counts]
    bars = [_bar(i, height) for i, height in enumerate(heights) if height]
    labels = zip(heights, counts, strict=True)
    said = [
        _text(_x((i + 0.5) / BINS), BOTTOM - h - 5, str(n), "middle", "count") for i, (h, n) in enumerate(labels) if n
    ]
    axis = [_line(LEFT, BOTTOM, RIGHT, BOTTOM)]
    axis += [_text(_x(i / 10), BOTTOM + 18, f"{i * 10}", "middle", "quiet") for i in range(0, 11, 2)]
    axis += [_text((LEFT + RIGHT) / 2, BOTTOM + 40, "per cent of the points", "middle")]
    words = f"Students by score. {spread(counts)} The mean is {mean:.0%}."
    return _svg("Score distribution", words, [*bars, *axis, *_mean(mean), *said])


def _mean(mean: float) -> list[Shape]:
    at, step, side = _x(min(1.0, max(0.0, mean))), *((6, "start") if mean < 0.75 else (-6, "end"))
    return [_line(at, TOP - 8, at, BOTTOM, "mark"), _text(at + step, TOP - 8, f"mean {mean:.0%}", side)]


def spread(counts: Sequence[int]) -> str:
    """Return a histogram in words."""
    parts = [f"{i * 10} to {i * 10 + 10} per cent: {count}" for i, count in enumerate(counts) if count]
    return "; ".join(parts) + "."


def _bar(i: int, height: float) -> Shape:
    return _rect("bar", _x(i / BINS) + 2, BOTTOM - height, (RIGHT - LEFT) / BINS - 4, height)


def scatter(numbered: Sequence[tuple[int, Item]]) -> Markup:
    """Return a plot of difficulty against discrimination: each question by its number, in a square if it is flagged.

    Questions without one of the two are left out.
    """
    drawn = [
        (number, item) for number, item in numbered if item.difficulty is not None and item.discrimination is not None
    ]
    true = [(_x(min(1.0, item.difficulty or 0.0)), min(FLOOR, _y(item.discrimination or 0.0))) for _, item in drawn]
    placed = apart(true)
    marks = [shape for pair in zip(true, placed, strict=True) for shape in _leader(*pair)]
    marks += [_question(number, item, at) for (number, item), at in zip(drawn, placed, strict=True)]
    said = "; ".join(f"{number}, {item.question}: {_both(item)}" for number, item in drawn) + "."
    return _svg("Difficulty and discrimination", f"Each question by its number. {said}", [*_frame(), *marks])


def _both(item: Item) -> str:
    return f"difficulty {item.difficulty or 0:.2f}, discrimination {item.discrimination or 0:.2f}"


def _frame() -> list[Shape]:
    """Return the band of good difficulty, the line of weak discrimination, and the axes."""
    heights = [LOWEST_CORRELATION, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    middle = {"transform": f"translate(11 {(TOP + BOTTOM) / 2}) rotate(-90)", "text-anchor": "middle"}
    return [
        _rect("band", _x(HARD), TOP, _x(EASY) - _x(HARD), BOTTOM - TOP),
        _text(_x((HARD + EASY) / 2), TOP - 8, f"{HARD:.2f} to {EASY:.2f}", "middle", "quiet"),
        _text(_x(HARD) - 6, TOP - 8, "hard", "end", "quiet"),
        _text(_x(EASY) + 6, TOP - 8, "easy", "start", "quiet"),
        _line(LEFT, BOTTOM, RIGHT, BOTTOM),
        _line(LEFT, TOP, LEFT, BOTTOM),
        _line(LEFT, _y(WEAK), RIGHT, _y(WEAK), "mark"),
        *(_text(_x(i / 5), BOTTOM + 18, f"{i / 5:.1f}", "middle", "quiet") for i in range(6)),
        *(_text(LEFT - 7, _y(h) + 4, f"{h:.1f}".replace("-", "−"), "end", "quiet") for h in heights),
        _text((LEFT + RIGHT) / 2, BOTTOM + 40, "difficulty: mean share of the points", "middle"),
        Shape("text", middle, "discrimination"),
    ]


def _question(number: int, item: Item, at: tuple[float, float]) -> Shape:
    x, y = at
    circle = Shape("circle", {"class": "question", "cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": RADIUS})
    square = _rect("question look", x - RADIUS, y - RADIUS, 2 * RADIUS, 2 * RADIUS)
    title = Shape("title", {}, f"{number}, {item.question}: {_both(item)}")
    return Shape("g", {}, "", (title, square if item.flags else circle, _text(x, y + 4, str(number), "middle", "key")))


def _leader(true: tuple[float, float], at: tuple[float, float]) -> list[Shape]:
    """Return a line to a question's true place, if it had to be moved because of another one."""
    end = Shape("circle", {"cx": f"{true[0]:.1f}", "cy": f"{true[1]:.1f}", "r": 2})
    return [] if true == at else [_line(*true, *at, "leader"), end]


def apart(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return places at least two radii apart, each as near as possible to its true place."""
    taken: list[tuple[float, float]] = []
    for place in places:
        free = (near for near in _around(*place) if all(_far(near, other) for other in taken))
        taken.append(next(free, place))
    return taken


def _around(x: float, y: float) -> Iterator[tuple[float, float]]:
    """Yield a place, and then those around it at growing distances, as long as they are on the drawing."""
    yield x, y
    for distance in range(STEP, WIDTH, STEP):
        for direction in range(DIRECTIONS):
            angle = 2 * pi * direction / DIRECTIONS
            place = x + distance * cos(angle), y + distance * sin(angle)
            if LEFT <= place[0] <= RIGHT and TOP <= place[1] <= FLOOR:
                yield place


def _far(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return (one[0] - other[0]) ** 2 + (one[1] - other[1]) ** 2 >= (2 * RADIUS) ** 2


def _x(share: float) -> float:
    return LEFT + share * (RIGHT - LEFT)


def _y(correlation: float) -> float:
    return BOTTOM - (correlation - LOWEST_CORRELATION) / (1 - LOWEST_CORRELATION) * (BOTTOM - TOP)


def _line(x1: float, y1: float, x2: float, y2: float, kind: str = "axis") -> Shape:
    return Shape("line", {"class": kind, "x1": f"{x1:.1f}", "y1": f"{y1:.1f}", "x2": f"{x2:.1f}", "y2": f"{y2:.1f}"})


def _rect(kind: str, x: float, y: float, width: float, height: float) -> Shape:
    size = {"width": f"{width:.1f}", "height": f"{height:.1f}"}
    return Shape("rect", {"class": kind, "x": f"{x:.1f}", "y": f"{y:.1f}"} | size)


def _text(x: float, y: float, words: str, anchor: str, kind: str = "") -> Shape:
    return Shape("text", {"class": kind or None, "x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": anchor}, words)


def _svg(title: str, description: str, shapes: Sequence[Shape]) -> Markup:
    shown = {"title": title, "description": description, "shapes": shapes}
    return render("drawing.svg.j2", width=WIDTH, height=HEIGHT, **shown)
