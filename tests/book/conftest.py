"""The built book in a real browser."""

import contextlib

import pytest
from pages import HTML
from print import chromium
from served import served


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
    contexts = []

    def open_page(address, *, width=1280, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page, wrong = context.new_page(), []
        page.on("pageerror", lambda error: wrong.append(f"page error: {error}"))
        page.on("console", lambda message: wrong.append(report(message)) if message.type == "error" else None)
        page.on("requestfailed", lambda request: wrong.append(f"failed: {request.url}"))
        page.on(
            "response", lambda answer: wrong.append(f"{answer.status}: {answer.url}") if answer.status > 399 else None
        )
        page.on("request", lambda request: wrong.append(f"foreign: {request.url}") if foreign(request.url) else None)
        page.goto(site + address)
        page.wait_for_load_state("networkidle")
        return page, wrong

    def report(message):
        return f"console: {message.text} ({message.location['url']})"

    def foreign(url):
        return not url.startswith((site, "data:", "blob:"))

    yield open_page
    for context in contexts:
        context.close()
