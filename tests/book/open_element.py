"""An interactive element on a page that is isolated from all others."""

import contextlib
import re
import urllib.parse

from browser_tab import clean_page, listening, wait_until

# What is read aloud: each text that the line below a drawing had while it was live.
HEAR = """
    window.heard = [];
    const line = document.querySelector(".attn-summary");
    new MutationObserver(() => line.ariaLive === "polite" && window.heard.push(line.textContent))
        .observe(line, { childList: true });
"""


LOAD = re.compile(r"Load the model \(([\d.]+) MB\)")  # the name of the button

# The elements whose scripts a page loads when the reader comes near.
LOADED_NEAR = ("attention-explorer", "attention-heads", "attention-tiles", "attention-residual")


def come_near(page, *tags):
    """Scroll to elements with these tags, wait until they have started, and scroll back."""
    for one in page.locator(", ".join(tags)).all():
        one.scroll_into_view_if_needed()
        one.locator(".attn").wait_for()
    page.evaluate("scrollTo(0, 0)")


class OpenElement:
    """An element, by its tag, what went wrong on its page, and what the page loaded."""

    TAG = ""

    def __init__(self, page, wrong=(), loads=()):
        self.page, self.wrong, self.loads = page, wrong, loads
        self.element = page.locator(self.TAG)

    def said(self, text):
        self.element.locator(".attn-summary", has_text=text).wait_for()

    def complained(self, text):
        self.element.locator(".attn-message", has_text=text).wait_for()

    def follow(self, fragment):
        """Change the fragment in the very moment in which the drawing writes its own state into the address."""
        self.page.evaluate(
            """fragment => {
                const before = location.href;
                location.hash = fragment;
                history.replaceState(history.state, "", before);
            }""",
            fragment,
        )


class OpenModel(OpenElement):
    """An element that loads a model when it is asked to, and has a field in which the reader writes."""

    def load(self):
        self.element.get_by_role("button", name=LOAD).click()
        return self

    def button(self, name):
        return self.element.get_by_role("button", name=name, exact=True)

    def fetched(self):
        """A list that gets the name of each file that the page requests from now on."""
        names = []

        def note(request):
            name = request.url.rpartition("/")[2].partition("?")[0]
            if name != "favicon.svg":  # the browser asks for it by itself, at any time
                names.append(name)

        self.page.on("request", note)
        return names

    def type(self, text):
        self.field.fill(text)
        self.field.press("Tab")

    def parts(self, *names):
        """The settings in the address, once it contains all of these."""
        wait_until(self.page, "names => names.every(one => RegExp(one).test(location.hash))", [*names])
        found = urllib.parse.parse_qs(self.page.evaluate("location.hash").partition("?")[2])
        return {name: values[0] for name, values in found.items()}


@contextlib.contextmanager
def opener(browser, chapter, kind):
    """Give a function that opens a chapter, or another address, with these options of Playwright."""
    with contextlib.ExitStack() as stack:

        def open_element(address=chapter, **options):
            page, wrong = stack.enter_context(clean_page(browser, **{"reduced_motion": "reduce"} | options)), []
            stack.enter_context(listening(page, pageerror=lambda error: wrong.append(str(error))))
            page.goto(address)
            return kind(page, wrong)

        yield open_element
