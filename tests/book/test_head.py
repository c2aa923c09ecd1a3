"""What a page says of itself: to search engines, to who is sent a link to it, and in a browser's tab."""

import io
import re
from html import unescape
from types import SimpleNamespace
from urllib.parse import urljoin

import matplotlib.pyplot as plt
import numpy as np
import pytest
from _ext import html_fixes
from _tools import social_cards
from pages import HTML, ROOT, build_small, pages, text

pytestmark = pytest.mark.slow

ADDRESS = "https://course.example/attention/"
PAGE = "# A page\n\nIt explains how a query finds its key, and it does so in one paragraph, which stands here.\n"


def meta(html: str) -> dict[str, str]:
    """The values of all meta tags that have a name."""
    tags = (dict(re.findall(r'([\w:-]+)="([^"]*)"', tag)) for tag in re.findall(r"<meta [^>]*>", html))
    return {
        tag.get("name") or tag["property"]: unescape(tag["content"]) for tag in tags if {"name", "property"} & set(tag)
    }


@pytest.mark.parametrize("page", pages())
def test_a_page_describes_itself(page):
    said = meta(text(page))
    assert 35 < len(said["description"]) <= 200
    assert said["description"][0].isupper()
    assert said["description"][-1] in ".…"
    assert said["og:description"] == said["description"]
    title = unescape(re.search(r"<title>(.*?)</title>", text(page), re.DOTALL)[1])
    assert said["og:title"] in title
    assert said["twitter:card"] == "summary_large_image"


def test_no_two_pages_describe_themselves_alike():
    doors = {"index.html"}  # leads to the first page, and says so
    written = [page for page in pages() if page not in doors]
    for what in (lambda html: meta(html)["description"], lambda html: re.search(r"<title>(.*?)</title>", html)[1]):
        said = [what(text(page)) for page in written]
        assert len(set(said)) == len(said)


@pytest.mark.parametrize("page", pages())
def test_the_icons_and_the_card_of_a_page_are_there(page):
    html = text(page)
    icons = re.findall(r'<link rel="(icon|apple-touch-icon)"[^>]* href="([^"]+)"', html)
    assert {kind for kind, _ in icons} == {"icon", "apple-touch-icon"}
    for address in [*(address for _, address in icons), meta(html)["og:image"]]:
        assert (HTML / page).parent.joinpath(address).is_file()


@pytest.mark.parametrize("name", social_cards.pictures())
def test_the_pictures_are_what_the_code_draws(name):
    drawn = plt.imread(io.BytesIO(social_cards.png(social_cards.pictures()[name])))
    stored = plt.imread(ROOT / "book" / "_static" / name)
    assert drawn.shape[:2] == stored.shape[:2]
    assert np.abs(drawn[..., :3] - stored[..., :3]).mean() < 0.01


def test_the_card_is_as_large_as_others_want_it_and_small_to_load():
    card = ROOT / "book" / "_static" / "social.png"
    assert plt.imread(card).shape[:2] == (630, 1200)
    assert card.stat().st_size < 100_000


@pytest.mark.parametrize("given", [ADDRESS, ADDRESS.removesuffix("/")])
def test_the_address_of_the_book_ends_in_a_slash(given):
    config = SimpleNamespace(html_baseurl=given)
    html_fixes.end_with_slash(None, config)
    assert config.html_baseurl == ADDRESS


def test_where_the_address_of_the_book_is_known_pages_name_their_own(tmp_path):
    built = build_small(tmp_path, PAGE, baseurl=ADDRESS.removesuffix("/"))
    assert built.returncode == 0, built.stderr
    html = (tmp_path / "_build" / "html" / "book" / "index.html").read_text()
    own = urljoin(ADDRESS, "book/index.html")
    assert f'<link rel="canonical" href="{own}" />' in html
    assert meta(html)["og:url"] == own
    assert meta(html)["og:image"] == urljoin(ADDRESS, "_static/social.png")
    assert meta(html)["description"].startswith("It explains how a query finds its key")
    site = tmp_path / "_build" / "html"
    assert re.findall("<loc>(.*?)</loc>", (site / "sitemap.xml").read_text()) == [own]
    assert urljoin(ADDRESS, "sitemap.xml") in (site / "robots.txt").read_text()
    assert '<base href="/attention/" />' in (site / "404.html").read_text()


def test_where_it_is_not_known_nothing_pretends_to_be():
    assert 'rel="canonical"' not in text("book/index.html")
    assert "og:url" not in text("book/index.html")
    assert '<base href="/" />' in text("404.html")
    assert not [name for name in ("sitemap.xml", "robots.txt") if (HTML / name).exists()]
