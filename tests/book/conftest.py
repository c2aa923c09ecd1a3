"""The built book in a real browser."""

import contextlib

import pytest
from _tools.chromium import chromium
from browser_tab import tab
from pages import HTML
from playwright.sync_api import expect
from served import served

expect.set_options(timeout=300_000)  # on a busy machine, the default of five seconds is too short


@pytest.fixture(scope="session")
def site():
    with served(HTML) as address:
        yield address


@pytest.fixture(scope="session")
def browser():
    with contextlib.ExitStack() as stack:
        try:
            browser = stack.enter_context(chromium())
        except FileNotFoundError as none:
            pytest.skip(str(none))
        yield browser


@pytest.fixture
def opened(browser, site):
    """Open a page, and hand back the page and everything that went wrong on it."""
    with contextlib.ExitStack() as tabs:
        yield lambda address, **look: tabs.enter_context(tab(browser, site, address, **look))[:2]
