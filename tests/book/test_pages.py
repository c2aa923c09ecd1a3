"""What is true of every built page."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pages import HTML, ROOT, chapters, pages, text


def test_every_file_of_the_contents_became_a_page():
    assert {f"{name}.html" for name in chapters()} <= set(pages())


def test_nothing_else_was_published():
    extra = {"genindex.html", "index.html", "search.html"}
    assert set(pages()) == {f"{name}.html" for name in chapters()} | extra


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


def test_every_figure_of_a_chapter_has_a_caption_and_a_number():
    html = text("book/self-attention.html")
    assert html.count('<div class="picture"') == html.count('<span class="caption-number">Fig.')


def test_no_number_of_the_prose_is_missing():
    html = text("book/self-attention.html")
    quoted = re.findall(r"\{glue:text\}`(\w+)", (ROOT / "book" / "self-attention.md").read_text())
    assert html.count('class="pasted-text"') == len(quoted)
    assert "nan" not in re.findall(r'class="pasted-text">([^<]*)<', html)


@pytest.mark.parametrize("solution", sorted((ROOT / "solutions").glob("*/*.ipynb")), ids=lambda path: path.stem)
def test_no_solution_is_published(solution):
    cells = json.loads(solution.read_text())["cells"]
    secret = set()
    for cell in cells:
        for block in re.findall(r"BEGIN SOLUTION\n(.*?)### END SOLUTION", "".join(cell["source"]), re.DOTALL):
            secret |= {line.strip() for line in block.splitlines() if len(line.strip()) > 25}
    assert len(secret) > 5
    published = "".join(
        path.read_text(errors="ignore") for path in HTML.rglob("*") if path.suffix in {".html", ".ipynb"}
    )
    # The chapter itself derives softmax and attention: those lines are taught, not leaked.
    taught = (ROOT / "book" / "self-attention.md").read_text()
    assert not {line for line in secret if line in published and line not in taught}


def test_a_broken_reference_stops_the_build(tmp_path):
    for name in ("_config.yml", "book/_static", "book/references.bib"):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(ROOT / name, target) if (ROOT / name).is_dir() else shutil.copy(ROOT / name, target)
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: book/index\n")
    (tmp_path / "book" / "index.md").write_text("# A page\n\nIt points to [](nowhere.md).\n")
    command = re.search(r"jupyter-book (build .*)", (ROOT / "Makefile").read_text()).group(1).split()
    result = subprocess.run(
        [Path(sys.executable).with_name("jupyter-book"), *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode != 0
    assert "nowhere.md" in result.stdout + result.stderr
