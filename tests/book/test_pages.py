"""What is true of every built page."""

import functools
import json
import re
from html import unescape as html_unescape
from pathlib import Path
from urllib.parse import unquote

import pytest
from bs4 import BeautifulSoup
from pages import HTML, ROOT, build_small, chapters, lessons, moved, pages, part, source, text

from attnlib.checks.catalogue import ASSIGNMENTS, CATALOGUE, QUESTIONS

pytestmark = pytest.mark.slow


def test_every_file_of_the_contents_became_a_page():
    assert {f"{name}.html" for name in chapters()} <= set(pages())


def test_nothing_else_was_published():
    extra = {"404.html", "genindex.html", "index.html", "py-modindex.html", "search.html"}
    assert set(pages()) == {f"{name}.html" for name in chapters()} | extra | set(moved())


@pytest.mark.parametrize("page", moved())
def test_an_address_that_was_given_up_leads_to_pages_that_are_there(page):
    assert page.removesuffix(".html") not in chapters()
    links = re.findall(r'<a href="([^"]+)\.html"', text(page))
    assert links
    assert {f"book/{name}" for name in links} <= set(chapters())


@pytest.mark.parametrize("page", pages())
def test_nothing_is_loaded_from_another_host(page):
    loaded = re.findall(r'<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)="(https?:)?//[^"]*"', text(page))
    assert not loaded
    assert "unpkg.com" not in text(page)


@pytest.mark.parametrize("page", pages())
def test_every_picture_is_described(page):
    pictures = re.findall(r'<div class="picture"[^>]*>', text(page))
    assert all(re.search(r'role="img" aria-label="[^"]{20,}"', picture) for picture in pictures)
    images = re.findall(r"<img\b[^>]*>", text(page))
    assert all(re.search(r'alt="[^"]+"', image) for image in images)


@pytest.mark.parametrize("page", pages())
def test_ids_are_unique(page):
    ids = re.findall(r'<[^>]+\sid="([^"]+)"', text(page))
    assert sorted(set(ids)) == sorted(ids)


@pytest.mark.parametrize("lesson", lessons())
def test_every_figure_of_a_chapter_has_a_caption_and_a_number(lesson):
    html = text(f"{lesson}.html")
    assert html.count('<div class="picture"') == html.count('<span class="caption-number">Fig.') > 0


@pytest.mark.parametrize("lesson", [*lessons(), *part("Teaching")])
def test_no_number_of_the_prose_is_missing(lesson):
    html = text(f"{lesson}.html")
    quoted = re.findall(r"\{glue:text\}`([^`]+)`", source(lesson))
    assert html.count('class="pasted-text"') == len(quoted)
    assert not {"nan", "inf", "-inf"} & set(re.findall(r'class="pasted-text">([^<]*)<', html))


def links(page):
    """The links of a page within the book: (page, id), the id empty where there is none."""
    for address in re.findall(r'<a\b[^>]*?href="([^"]+)"', text(page)):
        if not re.match(r"[a-z]+:", address):
            address, _, fragment = address.partition("#")
            path = address.partition("?")[0]
            target = Path(HTML / page).parent / path if path else HTML / page
            yield target.resolve(), unquote(fragment)


@pytest.mark.parametrize("page", pages())
def test_every_link_within_the_book_leads_somewhere(page):
    for target, fragment in set(links(page)):
        assert target.is_file(), f"{target} is not there"
        assert not fragment or html_unescape(fragment) in ids(target), f"{target.name} has no #{fragment}"


@functools.cache
def ids(file):
    """All ids on a page, cached because hundreds of links lead to some pages."""
    return {html_unescape(one) for one in re.findall(r'\sid="([^"]+)"', file.read_text(encoding="utf-8"))}


SECTIONS = {e.section for e in CATALOGUE.values()}
SECTIONS |= {mistake.section for exercise in CATALOGUE.values() for mistake in exercise.mistakes}
SECTIONS |= {question.section for question in QUESTIONS.values()}


@pytest.mark.parametrize("section", sorted(SECTIONS), ids=lambda section: section.link)
def test_what_a_report_says_to_reread_is_there(section):
    page, _, anchor = section.link.partition("#")
    html = text(page)
    assert len(re.findall(rf'\sid="{re.escape(anchor)}"', html)) == 1
    title = re.search(rf'\sid="{re.escape(anchor)}"[^>]*>.*?<h\d>(.*?)<a class="headerlink"', html, re.DOTALL)
    assert title, f"#{anchor} is no heading of {page}"


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_what_an_assignment_says_to_reread_is_a_link_within_the_book(assignment):
    (notebook,) = (ROOT / "exercises" / assignment).glob("*.ipynb")
    article = BeautifulSoup(text(f"exercises/{assignment}/{notebook.stem}.html"), "html.parser").article
    hints = [paragraph for paragraph in article("p") if "Reread" in paragraph.get_text()]
    assert len(hints) == notebook.read_text(encoding="utf-8").count("Reread")
    for hint in hints:
        links = [link for link in hint("a") if link["href"].startswith("../../book/") and "#" in link["href"]]
        named = re.findall("“[^”]+”", hint.get_text().partition("Reread")[2])
        assert [link.get_text() for link in links] == named != []
    assert "_build" not in article.get_text()


@pytest.mark.parametrize("assignment", ASSIGNMENTS)
def test_the_chapter_of_an_assignment_links_to_it(assignment):
    (notebook,) = (ROOT / "exercises" / assignment).glob("*.ipynb")
    asked = ASSIGNMENTS[assignment]
    chapters = {one.section.link.partition("#")[0] for one in asked.EXERCISES[:1] or asked.QUESTIONS}
    linked = {link for chapter in chapters for link in links(chapter)}
    assert (HTML / "exercises" / assignment / f"{notebook.stem}.html", "") in linked


def test_a_link_that_leads_nowhere_would_be_found(monkeypatch, tmp_path):
    (tmp_path / "a.html").write_text('<a href="#there">a</a> <a class="x" href="b.html#gone">b</a> <p id="there">')
    (tmp_path / "b.html").write_text('<p id="here">')
    monkeypatch.setattr("pages.HTML", tmp_path)
    monkeypatch.setattr("test_pages.HTML", tmp_path)
    with pytest.raises(AssertionError, match=r"b\.html has no #gone"):
        test_every_link_within_the_book_leads_somewhere("a.html")


@pytest.fixture(scope="module")
def published():
    """The bytes of all pages and notebooks on the site, joined. Decoding them would take longer than searching them."""
    return b"".join(path.read_bytes() for path in HTML.rglob("*") if path.suffix in {".html", ".ipynb"})


@pytest.mark.parametrize("solution", sorted((ROOT / "solutions").glob("*/*.ipynb")), ids=lambda path: path.stem)
def test_no_solution_is_published(solution, published):
    cells = json.loads(solution.read_text())["cells"]
    secret = set()
    for cell in cells:
        for block in re.findall(r"BEGIN SOLUTION\n(.*?)### END SOLUTION", "".join(cell["source"]), re.DOTALL):
            secret |= {line.strip() for line in block.splitlines() if len(line.strip()) > 25}
    assert len(secret) > 5
    # The chapters themselves derive softmax and attention: those lines are taught, not leaked.
    taught = "".join(map(source, lessons()))
    assert not {line for line in secret if line not in taught and line.encode() in published}


def test_a_broken_reference_stops_the_build(tmp_path):
    result = build_small(tmp_path, "# A page\n\nIt points to [](nowhere.md).\n")
    assert result.returncode != 0
    assert "nowhere.md" in result.stdout + result.stderr
