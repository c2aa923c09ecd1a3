"""How fast the models of the built pages are in Chromium: `python benchmarks/models_in_pages.py [decoder] [minilm]`.

The language model writes 40 tokens at its usual pace and 100 as fast as possible. All-MiniLM-L6-v2 reads sentences of
23 tokens. Other programs add to the time by the clock, so the processor time of each thread is measured as well, from
Chromium's own trace.
"""

import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import timing
from page_trace import HTML, chromium, served, tasks, trace_of

TOKENS = 100
SENTENCES = 5
SENTENCE = "men and two women waited at the old station because the last train to the city was late again ."


def written(decoder: Any, count: int) -> str:
    """Wait until the model has written that many tokens, and return what the page says about it."""
    said = decoder.locator(".attn-summary", has_text=f"The model has written {count} tokens")
    said.wait_for()
    return str(said.inner_text())


def report(what: str, events: list[dict[str, Any]]) -> None:
    """Print the longest task of the page."""
    processor, clock = (max(times) for times in zip(*tasks(events)["page"], strict=True))
    print(f"{what}: longest task {processor:.0f} ms of processor time, {clock:.0f} ms by the clock")


def decoder(browser: Any, site: str) -> None:
    """Load the language model, and let it write."""
    tab, model, before = opened(browser, site + "book/a-model-that-writes.html", "attention-decoder")

    def load() -> None:
        model.get_by_role("button").click()
        tab.wait_for_function("document.querySelectorAll('attention-decoder image').length > 11")
        before("from the click to the first written token")
        written(model, 40)

    def write() -> None:
        model.get_by_label("Speed").select_option(label="as fast as possible")
        model.get_by_role("button", name="Play").click()
        rate = re.search(r"\d+ a second", written(model, 40 + TOKENS))
        print(f"as fast as possible: {rate[0] if rate else 'unknown'}")

    report("loading, and 40 tokens", trace_of(browser, tab, load))
    events = trace_of(browser, tab, write)
    report(f"{TOKENS} tokens", events)
    for thread, times in tasks(events).items():
        print(f"{thread}: {sum(processor for processor, _ in times) / TOKENS:.1f} ms of processor time per token")


def minilm(browser: Any, site: str) -> None:
    """Load all-MiniLM-L6-v2, and have it read sentences."""
    tab, model, before = opened(browser, site + "book/looking-into-a-real-model.html", "attention-minilm")
    shown = "text => document.querySelector('attention-minilm').shown?.text === text"
    control = model.locator(".attn-work", has_text="With random parameters, this head gives")

    def load() -> None:
        model.get_by_role("button").click()
        control.wait_for()
        before("from the click to all heads and their control")

    def read() -> None:
        for n in range(SENTENCES):
            start = time.perf_counter()
            text = f"{n} {SENTENCE}"
            model.get_by_label("A sentence").fill(text)
            tab.wait_for_function(shown, arg=text)
            elapsed.append(time.perf_counter() - start)
            control.wait_for()

    elapsed: list[float] = []
    report("loading, and a sentence", trace_of(browser, tab, load))
    events = trace_of(browser, tab, read)
    count = tab.evaluate("document.querySelector('attention-minilm').results.words.length")
    report(f"{SENTENCES} sentences", events)
    print(f"a sentence of {count} tokens, all heads: {min(elapsed):.2f} to {max(elapsed):.2f} s by the clock")
    for thread, times in tasks(events).items():
        each = sum(processor for processor, _ in times) / SENTENCES
        print(f"{thread}: {each:.0f} ms of processor time per sentence and its control")


def opened(browser: Any, address: str, element: str) -> tuple[Any, Any, Callable[[str], None]]:
    """Open a page; return it, its element, and a function that prints the time and the bytes since then."""
    tab, sizes = browser.new_page(viewport={"width": 1280, "height": 900}), Counter[str]()
    tab.on("requestfinished", lambda one: sizes.update({one.url: one.sizes()["responseBodySize"]}))
    tab.goto(address, wait_until="networkidle")
    model = tab.locator(element)
    model.scroll_into_view_if_needed()
    before, start = sizes.total(), time.perf_counter()

    def since(what: str) -> None:
        print(f"{what}: {time.perf_counter() - start:.1f} s, {(sizes.total() - before) / 1000:,.0f} kB")

    return tab, model, since


def main() -> None:
    """Print the figures of the models that are named, or of both."""
    with served(HTML) as site, chromium() as browser:
        print(f"{timing.machine()}, Chromium {browser.version}")
        for model in (decoder, minilm):
            if model.__name__ in (sys.argv[1:] or ["decoder", "minilm"]):
                print(f"\n{model.__name__}")
                model(browser, site)


if __name__ == "__main__":
    main()
