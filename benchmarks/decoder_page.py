"""How fast the language model writes in the built page, in Chromium: `python benchmarks/decoder_page.py`.

It loads the model, lets it write 40 tokens at its usual pace and 100 as fast as it can. Other programs slow down what
is seen, so the processor time of each thread is measured as well, from Chromium's own trace.
"""

import json
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import timing

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "tests" / "book"), str(ROOT / "book")]  # the server and the browser of the book's tests

from _tools.chromium import chromium  # noqa: E402
from pages import HTML  # noqa: E402
from served import served  # noqa: E402

PAGE = "book/a-model-that-writes.html"
THREADS = {"CrRendererMain": "page", "DedicatedWorker thread": "worker"}
TOKENS = 100
CATEGORIES = ["toplevel", "devtools.timeline", "__metadata"]


def written(decoder: Any, count: int) -> str:
    """Wait until the model has written that many tokens, and return what the page says about it."""
    said = decoder.locator(".attn-summary", has_text=f"The model has written {count} tokens")
    said.wait_for()
    return str(said.inner_text())


def trace_of(browser: Any, tab: Any, act: Any) -> list[dict[str, Any]]:
    """Return the events of Chromium's trace while something happens."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "trace.json")
        browser.start_tracing(page=tab, path=file, categories=CATEGORIES)
        act()
        browser.stop_tracing()
        return list(json.loads(file.read_text(encoding="utf-8"))["traceEvents"])


def tasks(events: list[dict[str, Any]]) -> dict[str, list[tuple[float, float]]]:
    """Return the milliseconds of each task of the two threads, by the processor and by the clock."""
    names = {(one["pid"], one["tid"]): one["args"]["name"] for one in events if one["name"] == "thread_name"}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in THREADS.values()}
    for one in events:
        thread = THREADS.get(names.get((one["pid"], one["tid"]), ""))
        if thread and one["name"] == "ThreadControllerImpl::RunTask" and one["ph"] == "X":
            found[thread].append((one.get("tdur", 0) / 1000, one["dur"] / 1000))
    return found


def report(what: str, events: list[dict[str, Any]]) -> None:
    """Print the longest task of the page."""
    processor, clock = (max(times) for times in zip(*tasks(events)["page"], strict=True))
    print(f"{what:28} longest task {processor:5.0f} ms of processor time, {clock:5.0f} ms by the clock")


def main() -> None:
    """Print the figures."""
    with served(HTML) as site, chromium() as browser:
        tab, sizes = browser.new_page(viewport={"width": 1280, "height": 900}), Counter[str]()
        tab.on("requestfinished", lambda one: sizes.update({one.url: one.sizes()["responseBodySize"]}))
        tab.goto(site + PAGE, wait_until="networkidle")
        decoder = tab.locator("attention-decoder")
        decoder.scroll_into_view_if_needed()
        before, start = sizes.total(), time.perf_counter()

        def load() -> None:
            decoder.get_by_role("button").click()
            tab.wait_for_function("document.querySelectorAll('attention-decoder image').length > 11")
            print(f"{timing.machine()}, Chromium {browser.version}")
            print(f"from the click to the first written token: {time.perf_counter() - start:.1f} s")
            written(decoder, 40)

        def write() -> None:
            decoder.get_by_label("Speed").select_option(label="as fast as it can")
            decoder.get_by_role("button", name="Play").click()
            rate = re.search(r"\d+ a second", written(decoder, 40 + TOKENS))
            print(f"as fast as it can: {rate[0] if rate else 'unknown'}")

        report("loading, and 40 tokens:", trace_of(browser, tab, load))
        print(f"fetched: {(sizes.total() - before) / 1000:,.0f} kB")
        events = trace_of(browser, tab, write)
        report(f"{TOKENS} tokens:", events)
        for thread, times in tasks(events).items():
            print(f"{thread}: {sum(processor for processor, _ in times) / TOKENS:.1f} ms of processor time per token")


if __name__ == "__main__":
    main()
