"""A page in a tab of its own, and what went wrong on it."""

import contextlib

# A page lays out what is far below the screen part by part (test_layout_in_parts.py).
LAID_OUT = "!document.documentElement.classList.contains('from-top')"


@contextlib.contextmanager
def tab(browser, site, address, *, width=1280, scheme="light", before=""):
    """A page in a tab that knows nothing of any other, what goes wrong on it while it is open, and what it loaded."""
    with browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme) as context:
        context.set_default_timeout(300_000)  # a busy machine takes its time
        page, wrong, loads = context.new_page(), [], []

        def report(message):
            return f"console: {message.text} ({message.location['url']})"

        def foreign(url):
            return not url.startswith((site, "data:", "blob:"))

        def lost(request):  # and not given up by a page that leads to the next
            return request.failure != "net::ERR_ABORTED"

        page.on("pageerror", lambda error: wrong.append(f"page error: {error}"))
        page.on("console", lambda message: wrong.append(report(message)) if message.type == "error" else None)
        page.on("requestfailed", lambda request: wrong.append(f"failed: {request.url}") if lost(request) else None)
        page.on(
            "response", lambda answer: wrong.append(f"{answer.status}: {answer.url}") if answer.status > 399 else None
        )
        page.on("request", lambda request: wrong.append(f"foreign: {request.url}") if foreign(request.url) else None)
        page.on("requestfinished", lambda request: loads.append(request))
        page.add_init_script(before)
        page.goto(site + address)
        page.wait_for_load_state("networkidle")
        page.wait_for_function(LAID_OUT)
        yield page, wrong, loads
