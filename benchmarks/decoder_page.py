"""How fast the language model writes in the built page, in Chromium: `python benchmarks/decoder_page.py`.

It loads the model, lets it write 40 tokens at its usual pace and 100 as fast as it can. Other programs slow down what
is seen, so the processor time of each thread is measured as well, from Chromium's own trace.
"""

import re
import time
from collections import Counter
from typing import Any

import timing
from page_trace import HTML, chromium, served, tasks, trace_of

PAGE = "book/a-model-that-writes.html"
TOKENS = 100


def written(decoder: Any, count: int) -> str:
    """Wait until the model has written that many tokens, and return what the page says about it."""
    said = decoder.locator(".attn-summary", has_text=f"The model has written {count} tokens")
    said.wait_for()
    return str(said.inner_text())


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
