"""Start Chromium: for printing the book, and for the tests and benchmarks that open its pages."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

CHROMIUM_COMMANDS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the Chromium that CHROMIUM names, the system's, or Playwright's own.

    Raises:
        FileNotFoundError: none of these exists.
    """
    path = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM_COMMANDS)), None)
    with sync_playwright() as playwright:
        if path is None and not Path(playwright.chromium.executable_path).exists():
            raise FileNotFoundError("no Chromium here: install it, or set CHROMIUM=/path/to/it")
        with playwright.chromium.launch(executable_path=path, args=FLAGS) as browser:
            yield browser
