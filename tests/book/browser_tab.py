"""A page in a tab of its own, and what went wrong on it."""

import collections
import contextlib
import time

from _tools.chromium import new_context

# A page lays out what is far below the screen part by part (test_layout_in_parts.py).
LAID_OUT = "!document.documentElement.classList.contains('from-top')"

# Settings that can change on an open page. All other options of new_context are fixed for as long as the page exists.
USUAL_MEDIA = {"media": "null", "color_scheme": "light", "reduced_motion": "null", "forced_colors": "null"}
USUAL_SIZE = {"width": 1280, "height": 900}
QUIET = 0.5  # a page counts as loaded after this many seconds without a request
# Delete what a page of the book has stored in the browser, and stop it from storing more while it is being left.
FORGET = """async () => {
    for (const one of [localStorage, sessionStorage]) one.clear();
    Storage.prototype.setItem = () => {};
    for (const name of await caches.keys()) await caches.delete(name);
}"""
waiting: dict[tuple, list] = collections.defaultdict(list)


@contextlib.contextmanager
def clean_page(browser, *, before="", cached=True, **options):
    """A page isolated from all others, with these options of Playwright's new_context.

    A browser takes longer to open a new page than to load one of ours in it. So when a test is done with a page, the
    page is reset and given to the next test that needs the same initial script and the same fixed options.
    """
    options = {"viewport": USUAL_SIZE} | USUAL_MEDIA | options
    size, media = options.pop("viewport"), {name: options.pop(name) for name in USUAL_MEDIA}
    free = waiting[browser, before, cached, *sorted(options.items())]
    page = free.pop() if free else new_page(browser, before, cached, options)
    page.set_viewport_size(size)
    page.emulate_media(**media)
    try:
        yield page
    except BaseException:
        page.context.close()
        raise
    if emptied(page, scripts=options.get("java_script_enabled", True)):
        free.append(page)
    else:
        page.context.close()


def new_page(browser, before, cached, options):
    context = new_context(browser, **options)
    page = context.new_page()
    if before:
        page.add_init_script(before)
    if not cached:
        session = context.new_cdp_session(page)
        session.send("Network.enable")
        session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    return page


def emptied(page, scripts):
    """Reset a page to its initial state, and return whether that was possible."""
    if page.is_closed() or not page.url.startswith("http"):
        return False
    for other in page.context.pages:
        if other is not page:
            other.close()
    page.unroute_all()
    page.context.unroute_all()
    page.context.clear_permissions()
    if scripts:
        page.evaluate(FORGET)
    page.goto("about:blank")
    page.mouse.move(0, 0)
    return True


class Traffic:
    """The requests of a page that have not ended, and when the last one began or ended."""

    def __init__(self):
        self._running, self._changed = set(), time.monotonic()

    def began(self, request):
        """Note that a request began."""
        self._running.add(request)
        self._changed = time.monotonic()

    def ended(self, request):
        """Note that a request was answered or failed."""
        self._running.discard(request)
        self._changed = time.monotonic()

    def wait_until_idle(self, page):
        """Wait until there has been no request for half a second.

        Playwright's "networkidle" should do the same, but on a busy machine it may never be reached, and Playwright
        does not say which request it waits for.

        Raises:
            TimeoutError: some requests have not ended after five minutes.
        """
        give_up = time.monotonic() + 300
        while (rest := 0.05 if self._running else self._changed + QUIET - time.monotonic()) > 0:
            if time.monotonic() > give_up:
                raise TimeoutError(f"not answered after five minutes: {sorted(one.url for one in self._running)}")
            page.wait_for_timeout(1000 * rest)


@contextlib.contextmanager
def tab(browser, site, address, *, width=1280, scheme="light", before="", cached=True):
    """A page in a tab that knows nothing of any other, what goes wrong on it while it is open, and what it loaded."""
    look = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    with clean_page(browser, before=before, cached=cached, **look) as page:
        wrong, loads, traffic = [], [], Traffic()

        def report(message):
            return f"console: {message.text} ({message.location['url']})"

        def foreign(url):
            return not url.startswith((site, "data:", "blob:"))

        def lost(request):  # and not given up by a page that leads to the next
            return request.failure != "net::ERR_ABORTED"

        with (
            listening(
                page,
                pageerror=lambda error: wrong.append(f"page error: {error}"),
                console=lambda message: wrong.append(report(message)) if message.type == "error" else None,
                requestfailed=lambda request: wrong.append(f"failed: {request.url}") if lost(request) else None,
                response=lambda answer: wrong.append(f"{answer.status}: {answer.url}") if answer.status > 399 else None,
                request=lambda request: wrong.append(f"foreign: {request.url}") if foreign(request.url) else None,
                requestfinished=lambda request: loads.append(request),
            ),
            listening(page, request=traffic.began, requestfinished=traffic.ended, requestfailed=traffic.ended),
        ):
            page.goto(site + address)
            traffic.wait_until_idle(page)
            wait_until(page, LAID_OUT)
            yield page, wrong, loads


def wait_until(page, expression, arg=None):
    """Wait until an expression is true. By default, Playwright checks in every frame, which forces a redraw."""
    page.wait_for_function(expression, arg=arg, polling=50)


@contextlib.contextmanager
def listening(page, **listeners):
    """Call each function on the event that it is named after, until the block ends."""
    for name, listener in listeners.items():
        page.on(name, listener)
    try:
        yield
    finally:
        for name, listener in listeners.items():
            page.remove_listener(name, listener)
