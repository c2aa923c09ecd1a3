"""How long the explorer takes from a changed number to new tables, in Chromium: `python benchmarks/explorer.py`.

Twelve words of eight numbers, in two heads, with ALiBi and a mask. The first column is the work of one event: the
mathematics, and writing what has changed into the page. The second also has the browser lay it out, at once.
"""

import statistics
import sys
from pathlib import Path

import numpy as np
import timing

BOOK = Path(__file__).parents[1] / "book"
sys.path.insert(0, str(BOOK))

from _ext.explorer_assets import EXPLORER_SOURCES, bundle  # noqa: E402
from _tools.chromium import chromium  # noqa: E402
from _tools.explorer import CONTROLS, explorer  # noqa: E402

WORDS, WIDTH, UPDATES = 12, 8, 200
MEASURE = """
async ({ updates, layout, sentence }) => {
  const element = document.querySelector("attention-explorer");
  const change = sentence
    ? (field, n) => (field.value = Array.from({ length: 12 }, (_, i) => "word" + ((i * n) % 97)).join(" "))
    : (field, n) => (field.value = String(Math.sin(n).toFixed(3)));
  const fields = element.querySelectorAll(sentence ? ".attn-sentence input" : ".attn-numbers input");
  const times = [];
  for (let n = 0; n < updates + 20; n++) {
    const field = fields[n % fields.length];
    change(field, n + 1);
    const start = performance.now();
    field.dispatchEvent(new Event("input", { bubbles: true }));
    if (layout) element.getBoundingClientRect();
    times.push(performance.now() - start);
    await new Promise(requestAnimationFrame); // the browser paints, as it does between two keys
  }
  return times.slice(20); // the first ones are compiled
}
"""


def page() -> str:
    """Return a page with an explorer of that size, complete in itself."""
    vectors = {"x": np.random.default_rng(0).normal(size=(WORDS, WIDTH))}
    words = " ".join(f"word{n}" for n in range(WORDS))
    settings = {"heads": 2, "mask": "both", "positions": "alibi"}
    markup = explorer(words, vectors, caption="A measurement", controls=CONTROLS, query="word0", **settings)
    style = (BOOK / "_static" / "explorer.css").read_text(encoding="utf-8")
    script = f"<script>{bundle([EXPLORER_SOURCES / 'explorer.js'])}</script>"
    return f"<!doctype html><style>{style}</style><body>{markup._repr_mimebundle_()['text/html']}{script}"


def main() -> None:
    """Print the median and the 95th percentile of each."""
    with chromium() as browser:
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.set_content(page())
        tab.locator(".attn").wait_for()
        print(f"{WORDS} words x {WIDTH} numbers, 2 heads, {UPDATES} updates of each kind")
        print(f"Chromium {browser.version}, {timing.machine()}")
        print(f"{'milliseconds':34} {'update':>16} {'with layout':>16}")
        for what, sentence in (("a number of a vector changes", False), ("all words change", True)):
            cells = []
            for layout in (False, True):
                times = sorted(tab.evaluate(MEASURE, {"updates": UPDATES, "layout": layout, "sentence": sentence}))
                cells.append(f"{statistics.median(times):.1f}, 95 %: {times[int(0.95 * len(times))]:.1f}")
            print(f"{what:34} {cells[0]:>16} {cells[1]:>16}")


if __name__ == "__main__":
    main()
