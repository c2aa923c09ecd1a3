"""Deno checks the JavaScript of the book: its types, with TypeScript's compiler, what is unused, and its format."""

import shutil
import subprocess

import pytest
from pages import ROOT

pytestmark = pytest.mark.slow

CHECKS = {
    "types": ["deno", "check", "--quiet"],
    "lint": ["deno", "lint", "--quiet"],
    "format": ["deno", "fmt", "--check"],
}
FAULTS = {  # what finds it, where, what is replaced, and the planted fault
    "a property that does not exist": (
        "types",
        "_explorer/guess.js",
        "this.legend.textContent",
        "this.legned.textContent",
    ),
    "a number where a text is needed": (
        "types",
        "_explorer/table.js",
        "textOf(button).data = rows[i]",
        "textOf(button).data = i",
    ),
    "an element that may be missing": (
        "types",
        "_static/course.js",
        "target?.scrollIntoView()",
        "target.scrollIntoView()",
    ),
    "an option without a label": ("types", "_explorer/options.json", '"label": "Mask",', ""),
    "a name that nothing uses": (
        "lint",
        "_explorer/attention.js",
        "const BASE = 10000;",
        "const BASE = 10000, SPARE = 1;",
    ),
    "a comparison that is always true": (
        "lint",
        "_explorer/inputs.js",
        "value >= low",
        "value >= -0 || value === value",
    ),
    "a wrong indent": ("format", "_explorer/heads.js", "  connectedCallback() {", "connectedCallback() {"),
}


def checked(book, check):
    scripts = sorted(f"_static/{path.name}" for path in (book / "_static").glob("*.js"))
    files = ["_explorer", *scripts] if check == "types" else []
    return subprocess.run([*CHECKS[check], *files], cwd=book, capture_output=True, text=True, check=False, timeout=250)


@pytest.fixture
def book(tmp_path):
    """A copy of the book's JavaScript."""
    shutil.copy(ROOT / "book" / "deno.json", tmp_path)
    for folder in ("_explorer", "_static"):
        shutil.copytree(ROOT / "book" / folder, tmp_path / folder)
    return tmp_path


@pytest.mark.parametrize("check", CHECKS)
def test_the_javascript_of_the_book_passes(check):
    done = checked(ROOT / "book", check)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault, book):
    check, name, right, wrong = FAULTS[fault]
    text = (book / name).read_text(encoding="utf-8")
    assert text.count(right) == 1
    (book / name).write_text(text.replace(right, wrong), encoding="utf-8")
    done = checked(book, check)
    assert done.returncode != 0
    assert name.rpartition("/")[2].removesuffix(".json") in done.stdout + done.stderr
