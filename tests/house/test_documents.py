"""What the documents for contributors name exists: files, headings, targets of make, programs and their options."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from _tools.build import SOURCES
from wrong_names import wrong_names

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")),
    *PAGES,
    *sorted((ROOT / ".github").rglob("*.md")),
]
SCREEN = 60  # lines
CODE = re.compile(r"^```\w*\n(.*?)^```$|`([^`\n]+)`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)")


def slugs(text: str) -> set[str]:
    """Return the anchors of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def wrong_links(folder: Path, text: str) -> Iterator[str]:
    for path, anchor in LINK.findall(text):
        target = folder / path
        if path and not target.exists():
            yield path
        elif path and anchor and anchor not in slugs(target.read_text(encoding="utf-8")):
            yield f"{path}#{anchor}"


def faults(document: Path, text: str) -> list[str]:
    """Return everything that a document names and that is not there."""
    wrong = [name for block, span in CODE.findall(text) for name in wrong_names(block or span)]
    return [*wrong_links(document.parent, text), *wrong]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_what_a_document_names_is_there(document):
    assert faults(document, document.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "wrong",
    [
        "[a page](no-page.md)",
        "[a heading](change-attnlib.md#no-heading)",
        "`pytest tests/attnlib/test_nothing.py`",
        "`attnlib/nothing/`",
        "`nothing.py`",
        "`tests/attnlib/test_{masks,nothing}.py`",
        "`make nothing`",
        "`make lite NOTHING=1`",
        "`python -m grading nothing`",
        "`python -m grading run --nothing`",
        "`python benchmarks/wheels.py --nothing`",
        "`python -m _tools.nothing`",
        "`.venv/bin/nothing`",
        "```bash\nmake book\nmake nothing\n```",
    ],
)
def test_a_name_of_something_that_is_not_there_is_found(wrong):
    right = "`make book`, [a page](release.md), `attnlib/masks.py`, `python -m grading run --jobs 2`"
    assert faults(ROOT / "docs" / "some.md", right) == []
    (found,) = faults(ROOT / "docs" / "some.md", f"{right}\n\n{wrong}\n")
    assert re.search("no-|nothing|NOTHING", found)


def test_contributing_is_one_screen_that_leads_to_every_page():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= SCREEN
    assert {path for path, _ in LINK.findall(text)} >= {f"docs/{page.name}" for page in PAGES}


def test_the_pages_for_contributors_are_not_part_of_the_book():
    assert not [page for page in PAGES for source in SOURCES.values() if page.is_relative_to(source)]
    assert "docs/" not in yaml.safe_dump(yaml.safe_load((ROOT / "_toc.yml").read_text()))
