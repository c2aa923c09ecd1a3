"""A page whose article has been emptied of everything but one element.

A browser takes longer to load, lay out and draw a whole chapter than a drawing in it. So tests that are about a drawing
alone open the address that ``address_of`` returns; other tests open each drawing in its chapter.
"""

import re

TAG = re.compile(r"<(/?)([a-z][\w-]*)[^>]*>")
CONTENTS = re.compile('<nav id="pst-page-toc-nav".*?</nav>', re.DOTALL)  # links to sections, which the theme looks for


def address_of(page: str, name: str) -> str:
    """Return the address at which the tests' server gives out a page with nothing but the element of this name."""
    return f"{page}?only={name}"


def only_element(html: str, name: str) -> str:
    """Return a page without what is in its article, apart from the first element of this name and what is around it."""
    begin, end = html.index("<article"), html.index("</article>")
    first, last = html.index(f"<{name}", begin), html.index(f"</{name}>", begin)
    around: list[re.Match[str]] = []
    for tag in TAG.finditer(html, begin, first):
        if not tag[1]:
            around.append(tag)
            continue
        while around.pop()[2] != tag[2]:
            pass  # an element without an end, such as <img>
    inside = "".join(tag[0] for tag in around) + html[first:last]
    ends = f"</{name}>" + "".join(f"</{tag[2]}>" for tag in reversed(around[1:]))
    return html[:begin] + inside + ends + CONTENTS.sub("", html[end:])
