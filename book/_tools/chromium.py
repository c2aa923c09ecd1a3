"""Start Chromium: for printing the book, and for the tests and benchmarks that open its pages."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, BrowserType, sync_playwright

# The headless shell comes first: it draws pages as Chromium does, but opens no window, which takes longer than drawing
# most pages.
CHROMIUM_COMMANDS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--site-per-process",  # Chromium's default, but not the shell's: a frame without scripts has its own process
]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the Chromium that CHROMIUM names, the system's, or Playwright's own.

    Raises:
        FileNotFoundError: none of these exists.
    """
    with sync_playwright() as playwright, launch(playwright.chromium) as browser:
        yield browser


def launch(kind: BrowserType) -> Browser:
    """Start a Chromium as :func:`chromium` does; ``browser.browser_type`` of a running one starts one more.

    Raises:
        FileNotFoundError: there is none.
    """
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM_COMMANDS)), None)
    if path is None and not Path(kind.executable_path).exists():
        raise FileNotFoundError("no Chromium here: install it, or set CHROMIUM=/path/to/it")
    return kind.launch(executable_path=path, args=FLAGS)


def new_context(browser: Browser, **options: Any) -> BrowserContext:
    """Open a context with these options of Playwright's ``new_context``, and a longer timeout.

    On a busy machine, Playwright's default of 30 seconds is too short, so it is raised to five minutes.
    """
    context = browser.new_context(**options)
    context.set_default_timeout(300_000)
    return context
