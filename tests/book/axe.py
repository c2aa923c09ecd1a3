"""What bars somebody from a page, as axe-core finds it, in light and in dark."""

from pathlib import Path

import axe_playwright_python

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")
RUN = "where => axe.run(where ?? document, {resultTypes: ['violations']}).then(found => found.violations)"
SETTLED = "new Promise(next => setTimeout(next, 400))"  # the theme looks anew at what scrolls a while after a resize


def violations(page, where: str | None = None) -> list[str]:
    """What axe finds, of any impact, with the first places of each."""
    return [
        f"{one['id']} ({one['impact']}), {len(one['nodes'])} times: {[node['target'] for node in one['nodes'][:3]]}"
        for one in page.evaluate(RUN, where)
    ]


def go_dark(page) -> None:
    """Have the night fall, as a system reports it, and wait until the page shows it."""
    page.emulate_media(color_scheme="dark")
    page.locator("html[data-theme=dark]").wait_for()
    page.evaluate(SETTLED)
