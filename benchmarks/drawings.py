"""How long the page takes for a frame of each moving drawing, in Chromium: `python benchmarks/drawings.py`.

The time of a frame is what the page computes until the next one, in milliseconds of processor time: 60 frames a second
leave 16.7 ms for each. Meanwhile, each drawing is used as a reader uses it: played, dragged and typed into.
"""

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import timing
from page_trace import HTML, Event, chromium, frames, served, tasks, trace_of

SECONDS = 6  # of playing
MOVES = 80  # of the pointer

Act = Callable[[Any, Any], None]


@dataclass
class Drawing:
    """An element of a page: where it is, what loads it, and what a reader does with it."""

    tag: str
    page: str
    acts: dict[str, Act]
    prepare: Act = lambda tab, element: None


def play(tab: Any, element: Any) -> None:
    element.get_by_role("button", name="Play").click()
    tab.wait_for_timeout(1000 * SECONDS)
    if element.get_by_role("button", name="Pause").count():
        element.get_by_role("button", name="Pause").click()


def sweep(tab: Any, box: dict[str, float]) -> None:
    """Move the pointer through a box, from its middle to each side, a step for each frame."""
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    for n in range(MOVES):
        tab.mouse.move(x + 0.9 * box["width"] / 2 * (1 - abs(n % 40 - 20) / 10), y)
        tab.wait_for_timeout(16)


def drag_slider(tab: Any, element: Any) -> None:
    box = element.locator(".attn-player input").bounding_box()
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tab.mouse.down()
    sweep(tab, box)
    tab.mouse.up()


def drag_arrow(tab: Any, element: Any) -> None:
    grip = element.locator("svg [aria-label^='Query of'][aria-label*=' at ']").first
    grip.scroll_into_view_if_needed()
    box = grip.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    tab.mouse.move(x, y)
    tab.mouse.down()
    sweep(tab, {"x": x - 40, "y": y - 1, "width": 80, "height": 2})
    tab.mouse.up()


def point(tab: Any, element: Any) -> None:
    sweep(tab, element.locator(".attn-canvas svg").bounding_box())


def type_into(selector: str, text: str) -> Act:
    def act(tab: Any, element: Any) -> None:
        field = element.locator(selector).first
        field.fill("")
        field.press_sequentially(text, delay=80)

    return act


def load(tab: Any, element: Any) -> None:
    """Load a model that runs in the page, and wait until it has shown something."""
    element.get_by_role("button").click()
    element.locator(".attn-canvas svg rect").first.wait_for()
    tab.wait_for_timeout(8000)


def load_heads(tab: Any, element: Any) -> None:
    element.get_by_role("button").click()
    element.locator(".attn-work", has_text="With random parameters, this head gives").wait_for()


def choose_heads(tab: Any, element: Any) -> None:
    for head in element.locator(".attn-overview button").all():
        head.focus()
        tab.wait_for_timeout(50)


def small_tiles(tab: Any, element: Any) -> None:
    for label in ("Queries per tile", "Keys per tile"):
        element.get_by_label(label).select_option("64")


SENTENCE = type_into(".attn-sentence input", "the old dog saw the young man near the river bank")
DATE = type_into(".attn-sentence input", "thursday the 27th of april 2031")
PROMPT = type_into("textarea", "def mean(numbers):\n    return ")
QUESTION = type_into("textarea", "which head links it to the animal?")
DRAWINGS = {
    "explorer": Drawing(
        "attention-explorer",
        "book/queries-keys-values.html",
        {"play": play, "drag an arrow": drag_arrow, "type a sentence": SENTENCE},
    ),
    "date translator": Drawing(
        "attention-dates",
        "book/context-vectors.html",
        {"load": load, "play": play, "drag the slider": drag_slider, "type a date": DATE},
    ),
    "language model": Drawing(
        "attention-decoder",
        "book/a-model-that-writes.html",
        {"load": load, "play": play, "drag the slider": drag_slider, "point at tokens": point, "type a prompt": PROMPT},
    ),
    "heads of MiniLM": Drawing(
        "attention-minilm",
        "book/looking-into-a-real-model.html",
        {"load": load_heads, "choose heads": choose_heads, "type a sentence": QUESTION},
    ),
    "tiles of 64 by 64": Drawing(
        "attention-tiles", "book/tiles-and-the-gpu.html", {"play": play, "drag the slider": drag_slider}, small_tiles
    ),
    "residual stream": Drawing(
        "attention-residual", "book/transformer.html", {"play": play, "drag the slider": drag_slider}
    ),
}  # fmt: skip


def figures(events: list[Event]) -> tuple[str, ...]:
    """Return how many frames there were, their median and 95th percentile, and the longest task of the page."""
    spent = sorted(frames(events))
    processor, clock = (max(times) for times in zip(*tasks(events)["page"], strict=True))
    most = spent[int(0.95 * len(spent))]
    return f"{len(spent)}", f"{statistics.median(spent):.1f}", f"{most:.1f}", f"{processor:.0f}", f"{clock:.0f}"


def rows(browser: Any, site: str) -> Iterator[tuple[str, ...]]:
    """Measure each drawing, and return a row for each thing that is done with it."""
    for name, drawing in DRAWINGS.items():
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.goto(site + drawing.page, wait_until="networkidle")
        element = tab.locator(drawing.tag).first
        element.scroll_into_view_if_needed()
        element.locator(".attn, .attn-offer").first.wait_for()
        drawing.prepare(tab, element)
        for what, act in drawing.acts.items():
            yield name, what, *figures(trace_of(browser, tab, partial(act, tab, element)))
        tab.close()


def main() -> None:
    """Print a table in Markdown."""
    with served(HTML) as site, chromium() as browser:
        print(f"{datetime.now(UTC):%d %B %Y}, {timing.machine()}, Chromium {browser.version}\n")
        print("| drawing | what is done | frames | median, ms | 95 %, ms | longest task, ms | by the clock, ms |")
        print("|---|---|---:|---:|---:|---:|---:|")
        for row in rows(browser, site):
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
