"""What the sanitizer lets through is harmless in a browser, even on a page without a content security policy."""

import pytest
from hostile_html import GROUPS, HOST

from grading.feedback import markdown
from grading.sanitize import ALLOWED_TAGS, safe_html, safe_markdown

PAGE = "https://page.example/"
# Each page is in a frame. It is parsed, serialised and parsed again, and every element is clicked except links to the
# web, which are allowed.
PROVOKE = """async ({ pages, tags }) => {
    const harm = window.harm = pages.map(() => new Set())
    const wrong = element => {
        const { localName, namespaceURI, attributes, style, ownerDocument } = element
        const { position } = ownerDocument.defaultView.getComputedStyle(element)
        if (!tags.includes(localName) || !namespaceURI.endsWith("xhtml")) return `<${localName}>`
        if (position !== "static" || style.cssText.includes("url(")) return style.cssText
        return [...attributes].find(({ name, value }) =>
            /^(on.*|id|name|ping|srcset|background)$/.test(name) ||
            name === "href" && !/^(https?:|mailto:|#)/.test(value) ||
            name === "src" && !/^data:image/.test(value))?.name
    }
    const settled = () => new Promise(done => setTimeout(done, 300))
    const frames = pages.map((page, i) => {
        const frame = document.body.appendChild(document.createElement("iframe"))
        const script = `ran = () => parent.harm[${i}].add("ran")`
        frame.srcdoc = `<!DOCTYPE html><script>${script}</script><main>${page}</main><b title='after'>after</b>`
        return frame
    })
    await Promise.all(frames.map(frame => new Promise(done => frame.onload = done)))
    await settled()
    const mains = frames.map(frame => frame.contentDocument?.querySelector("main"))
    const elements = () => mains.flatMap((main, i) => [...main?.querySelectorAll("*") ?? []].map(one => [one, i]))
    mains.forEach((main, i) => main ?? harm[i].add("another page"))
    elements().forEach(([one, i]) => wrong(one) && harm[i].add(wrong(one)))
    for (const main of [...mains, ...mains]) if (main) main.innerHTML = main.innerHTML
    await settled()
    const clicked = elements().filter(([one]) => !one.closest("a[href^=http]"))
    clicked.forEach(([one]) => one.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true })))
    await settled()
    return harm.map(found => [...found].sort())
}"""


@pytest.fixture
def provoked(new_context):
    """Return the harm that each of these pages does, and the addresses that they request."""

    def provoke(pages):
        asked = []

        def answer(route):
            if route.request.url == PAGE:
                return route.fulfill(body="<!DOCTYPE html><body>", content_type="text/html")
            asked.append(route.request.url)
            return route.abort()

        with new_context() as context:
            tab = context.new_page()
            tab.route("**/*", answer)
            tab.goto(PAGE)
            found = tab.evaluate(PROVOKE, {"pages": [*pages.values()], "tags": sorted(ALLOWED_TAGS)})
        return dict(zip(pages, found, strict=True)), asked

    return provoke


def shown(html: str) -> str:
    """Return a text in each form in which a page shows it: as an output, an answer, and a comment on an answer."""
    return "".join((safe_html(html), markdown({}, safe_markdown(html)), markdown({}, html)))


def test_whatever_is_shown_does_nothing(provoked):
    harm, asked = provoked({group: "".join(map(shown, texts.values())) for group, texts in GROUPS.items()})
    assert {group: found for group, found in harm.items() if found} == {}
    assert asked == []


def test_each_text_does_harm_as_it_came(provoked):
    every = {(group, name): text for group, texts in GROUPS.items() for name, text in texts.items()}
    harm, asked = provoked({name: text.encode(errors="replace").decode() for name, text in every.items()})
    assert [name for name, found in harm.items() if not found] == []
    assert sum("ran" in found for found in harm.values()) > 20
    assert any(address.startswith(HOST) for address in asked)
