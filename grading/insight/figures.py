"""The two plots, as SVG that needs nothing else: how the scores are spread, and how the questions fared."""

from collections.abc import Iterator, Sequence
from html import escape
from math import cos, pi, sin

from grading.insight.items import EASY, HARD, WEAK, Item

WIDTH, HEIGHT = 360, 280  # units of a drawing; on a page as wide as it, one is a pixel
LEFT, RIGHT, TOP, BOTTOM = 44, 348, 26, 228  # where the axes are
BINS = 10  # bars of the histogram, each a tenth of the points wide
RADIUS = 10  # of a question's circle, which has room for its number
FLOOR = BOTTOM - RADIUS - 2  # the lowest place of a circle
LOWEST = -0.2  # the plot reaches so far down; a question further below stands on the floor
STEP, DIRECTIONS = 3, 16  # how a circle that has no room is moved: in rings so far apart, so many places in each


def bins(shares: Sequence[float]) -> list[int]:
    """Return how many shares of the points fall into each tenth; full marks belong to the last one."""
    counts = [0] * BINS
    for share in shares:
        counts[min(BINS - 1, max(0, int(share * BINS + 1e-9)))] += 1
    return counts


def histogram(shares: Sequence[float], mean: float) -> str:
    """Return how many students earned which share of the points, with the mean marked."""
    counts = bins(shares)
    most = max(counts) or 1
    width = (RIGHT - LEFT) / BINS
    heights = [(BOTTOM - TOP - 26) * count / most for count in counts]
    bars = "".join(_bar(_x(i / BINS), width, height) for i, height in enumerate(heights) if height)
    labels = zip(heights, counts, strict=True)
    said = [
        _text(_x((i + 0.5) / BINS), BOTTOM - h - 5, str(n), "middle", "count") for i, (h, n) in enumerate(labels) if n
    ]
    ticks = "".join(_text(_x(i / 10), BOTTOM + 18, f"{i * 10}", "middle", "quiet") for i in range(0, 11, 2))
    label = _text((LEFT + RIGHT) / 2, BOTTOM + 40, "per cent of the points", "middle")
    side = "start" if mean < 0.75 else "end"
    at = _x(min(1.0, max(0.0, mean)))
    mark = _line(at, TOP - 8, at, BOTTOM, "mark")
    mark += _text(at + (6 if side == "start" else -6), TOP - 8, f"mean {mean:.0%}", side)
    words = f"Students by score. {spread(counts)} The mean is {mean:.0%}."
    axis = f"{_line(LEFT, BOTTOM, RIGHT, BOTTOM)}{ticks}{label}"
    return _svg("Score distribution", words, f"{bars}{axis}{mark}{''.join(said)}")


def spread(counts: Sequence[int]) -> str:
    """Return a histogram in words."""
    parts = [f"{i * 10} to {i * 10 + 10} per cent: {count}" for i, count in enumerate(counts) if count]
    return "; ".join(parts) + "."


def _bar(x: float, width: float, height: float) -> str:
    place = f'x="{x + 2:.1f}" y="{BOTTOM - height:.1f}" width="{width - 4:.1f}" height="{height:.1f}"'
    return f'<rect class="bar" {place}/>'


def scatter(numbered: Sequence[tuple[int, Item]]) -> str:
    """Return difficulty against discrimination: each question by its number, in a square where it is flagged.

    Questions without one of the two are left out.
    """
    drawn = [
        (number, item) for number, item in numbered if item.difficulty is not None and item.discrimination is not None
    ]
    true = [(_x(min(1.0, item.difficulty or 0.0)), min(FLOOR, _y(item.discrimination or 0.0))) for _, item in drawn]
    placed = apart(true)
    marks = [_leader(*pair) for pair in zip(true, placed, strict=True)]
    marks += [_question(number, item, at) for (number, item), at in zip(drawn, placed, strict=True)]
    said = "; ".join(f"{number}, {item.question}: {_both(item)}" for number, item in drawn) + "."
    return _svg("Difficulty and discrimination", f"Each question by its number. {said}", f"{_frame()}{''.join(marks)}")


def _both(item: Item) -> str:
    return f"difficulty {item.difficulty or 0:.2f}, discrimination {item.discrimination or 0:.2f}"


def _frame() -> str:
    """Return the band of good difficulty, the line of weak discrimination, and the axes."""
    band = (
        f'<rect class="band" x="{_x(HARD):.1f}" y="{TOP}" width="{_x(EASY) - _x(HARD):.1f}" height="{BOTTOM - TOP}"/>'
    )
    said = _text(_x((HARD + EASY) / 2), TOP - 8, f"{HARD:.2f} to {EASY:.2f}", "middle", "quiet")
    said += _text(_x(HARD) - 6, TOP - 8, "hard", "end", "quiet") + _text(
        _x(EASY) + 6, TOP - 8, "easy", "start", "quiet"
    )
    weak = _line(LEFT, _y(WEAK), RIGHT, _y(WEAK), "mark")
    x = "".join(_text(_x(i / 5), BOTTOM + 18, f"{i / 5:.1f}", "middle", "quiet") for i in range(6))
    heights = [LOWEST, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    y = "".join(_text(LEFT - 7, _y(h) + 4, f"{h:.1f}".replace("-", "−"), "end", "quiet") for h in heights)
    axes = _line(LEFT, BOTTOM, RIGHT, BOTTOM) + _line(LEFT, TOP, LEFT, BOTTOM)
    names = _text((LEFT + RIGHT) / 2, BOTTOM + 40, "difficulty: mean share of the points", "middle")
    turned = (
        f'<text transform="translate(11 {(TOP + BOTTOM) / 2}) rotate(-90)" text-anchor="middle">discrimination</text>'
    )
    return f"{band}{said}{axes}{weak}{x}{y}{names}{turned}"


def _question(number: int, item: Item, at: tuple[float, float]) -> str:
    x, y = at
    corner = f'x="{x - RADIUS:.1f}" y="{y - RADIUS:.1f}" width="{2 * RADIUS}" height="{2 * RADIUS}"'
    circle = f'<circle class="question" cx="{x:.1f}" cy="{y:.1f}" r="{RADIUS}"/>'
    shape = f'<rect class="question look" {corner}/>' if item.flags else circle
    title = f"<title>{escape(f'{number}, {item.question}: {_both(item)}')}</title>"
    return f"<g>{title}{shape}{_text(x, y + 4, str(number), 'middle', 'key')}</g>"


def _leader(true: tuple[float, float], at: tuple[float, float]) -> str:
    """Return a line to a question's true place, where it had to give way to another one."""
    return "" if true == at else f'{_line(*true, *at, "leader")}<circle cx="{true[0]:.1f}" cy="{true[1]:.1f}" r="2"/>'


def apart(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return places of which no two are nearer than two radii, each as near to its own as there is room."""
    taken: list[tuple[float, float]] = []
    for place in places:
        free = (near for near in _around(*place) if all(_far(near, other) for other in taken))
        taken.append(next(free, place))
    return taken


def _around(x: float, y: float) -> Iterator[tuple[float, float]]:
    """Yield a place, and then those around it, further and further off, as far as they are on the drawing."""
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
    return BOTTOM - (correlation - LOWEST) / (1 - LOWEST) * (BOTTOM - TOP)


def _line(x1: float, y1: float, x2: float, y2: float, kind: str = "axis") -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, words: str, anchor: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _svg(title: str, description: str, body: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img"><title>{escape(title)}</title>'
        f"<desc>{escape(description)}</desc>{body}</svg>"
    )
