"""What a page transfers before the reader does anything: at most 250 kB, compressed, and no unused scripts."""

import gzip
import re
from functools import cache
from pathlib import Path

import pytest
from pages import HTML, ROOT, pages, text

pytestmark = pytest.mark.slow

HEAVIEST = 250_000  # bytes
TAG = re.compile(r"<(?:script|link|img)\b[^>]*>")
ADDRESS = re.compile(r'\b(?:src|href)="([^"?#]+)')
LOADED_LINK = re.compile(r'\brel="(?:stylesheet|icon)"')  # no other kind of link is fetched
FONT = re.compile(r"""url\(['\"]?([^)'\"]+\.woff)""")


def parts(page: Path) -> dict[str, int]:
    """What a page loads at once, with the bytes of each: the page itself, what its tags name, and its fonts."""
    tags = [tag for tag in TAG.findall(page.read_text(encoding="utf-8")) if _is_loaded(tag)]
    named = [page.parent / found[1] for found in map(ADDRESS.search, tags) if found]
    sheets = [path for path in named if path.suffix == ".css"]
    fonts = [sheet.parent / font for sheet in sheets for font in FONT.findall(sheet.read_text())]
    return {path.name: packed(path.resolve()) for path in [page, *named, *fonts]}


def _is_loaded(tag: str) -> bool:
    return not tag.startswith("<link") or bool(LOADED_LINK.search(tag))


@cache
def packed(path: Path) -> int:
    """The bytes of a file as a server sends it: text is compressed, and a font is compressed already."""
    content = path.read_bytes()
    return len(content) if path.suffix == ".woff" else len(gzip.compress(content, 9))


@pytest.mark.parametrize("page", [page for page in pages() if not (ROOT / "book" / "_extra" / page).exists()])
def test_a_page_transfers_little(page):
    found = parts(HTML / page)
    total = sum(found.values())
    heaviest = sorted(found.items(), key=lambda part: -part[1])[:6]
    assert 50_000 < total < HEAVIEST, f"{total / 1000:.0f} kB; the heaviest parts: {heaviest}"


def test_what_a_page_loads_is_counted_whatever_names_it(tmp_path):
    (tmp_path / "book").mkdir()
    for name in ("a.css", "b.js", "c.svg", "d.js", "e.html"):
        (tmp_path / name).write_text("x")
    (tmp_path / "f.woff").write_bytes(b"1234567")
    (tmp_path / "a.css").write_text("@font-face { src: url('f.woff') format('woff') }")
    page = tmp_path / "book" / "page.html"
    page.write_text(
        '<link href="../a.css?v=1" rel="stylesheet"><script defer src="../b.js"></script><img src="../c.svg" alt="">'
        '<link rel="next" href="../e.html"><a href="../e.html">e</a><p data-scripts="../d.js"><script>inline</script>'
    )
    found = parts(page)
    assert set(found) == {"page.html", "a.css", "b.js", "c.svg", "f.woff"}
    assert found["f.woff"] == 7
    assert found["page.html"] < len(page.read_text())


@pytest.mark.parametrize(
    ("script", "works_on"),
    [
        ("copybutton.js", '<div class="highlight">'),
        ("design-tabs.js", "sd-tab-set"),
        ("togglebutton.js", 'class="toggle'),
        ("tiles.js", "attention-tiles"),
        ("search.js", 'id="search-results"'),
    ],
)
def test_a_script_is_on_the_pages_that_have_something_for_it(script, works_on):
    loading = {page for page in pages() if re.search(rf'<script[^>]*src="[^"]*/{script}', text(page))}
    assert loading <= {page for page in pages() if works_on in text(page)}
