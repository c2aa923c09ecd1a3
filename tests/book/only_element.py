"""A page whose article has been emptied of everything but one element.

A browser takes longer to load, lay out and draw a whole chapter than one of its drawings. So tests of a drawing alone
open the address that ``address_of`` returns; other tests open each drawing in its chapter.
"""

import re

TAG = re.compile(r"<(/?)([a-z][\w-]*)[^>]*>")
# The page's table of contents is removed too, because the theme looks for the sections that it links to.
CONTENTS = re.compile('<nav id="pst-page-toc-nav".*?</nav>', re.DOTALL)


def address_of(page: str, name: str) -> str:
    """Return the address at which the tests' server serves a page with only the element of this name."""
    return f"{page}?only={name}"


def only_element(html: str, name: str) -> str:
    """Return a page whose article contains only the first element of this name and that element's ancestors."""
    begin, end = html.index("<article"), html.index("</article>")
    first, last = html.index(f"<{name}", begin), html.index(f"</{name}>", begin)
    around: list[re.Match[str]] = []
    for tag in TAG.finditer(html, begin, first):
        if not tag[1]:
            around.append(tag)
            continue
        while around.pop()[2] != tag[2]:
            pass  # a void element, such as <img>
    inside = "".join(tag[0] for tag in around) + html[first:last]
    ends = f"</{name}>" + "".join(f"</{tag[2]}>" for tag in reversed(around[1:]))
    return html[:begin] + inside + ends + CONTENTS.sub("", html[end:])
