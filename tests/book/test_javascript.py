"""Deno checks the JavaScript of the book: its types, with TypeScript's compiler, what is unused, and its format."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from _ext.explorer_assets import SCRIPTS, bundle
from pages import ROOT
from test_explorer_math import NODE

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
    for settings in ("book/deno.json", ".editorconfig"):
        shutil.copy(ROOT / settings, tmp_path)
    for folder in ("_explorer", "_static"):
        shutil.copytree(ROOT / "book" / folder, tmp_path / folder)
    return tmp_path


@pytest.mark.parametrize("check", CHECKS)
def test_planted_faults_are_found_and_nothing_else(check, book):
    """One run finds all faults of a kind, each in its own file. `make lint` checks that the book itself has none."""
    faults = [fault for kind, *fault in FAULTS.values() if kind == check]
    assert len({name for name, *_ in faults}) == len(faults), "two faults in one file would be taken for one"
    for name, right, wrong in faults:
        text = (book / name).read_text(encoding="utf-8")
        assert text.count(right) == 1
        (book / name).write_text(text.replace(right, wrong), encoding="utf-8")
    done = checked(book, check)
    assert done.returncode != 0
    said = re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr)
    named = {Path(name) for name in re.findall(rf"{re.escape(str(book))}/([\w./]+)", said)}
    assert named == {Path(name).with_suffix(".js") for name, *_ in faults}


def parses(folder, modules):
    """Whether modules still parse when they are joined into one script."""
    joined = bundle(folder / name for name in modules)
    return (
        subprocess.run([NODE, "--check", "-"], input=joined, capture_output=True, text=True, check=False).stderr == ""
    )


def test_the_modules_of_a_script_have_no_name_in_common(book):
    models = ("translation_worker.js", "dates.js", "decoder_worker.js", "decoder.js", "minilm_worker.js", "minilm.js")
    scripts = [
        *(elements.values() for elements in SCRIPTS.values()),
        *([name] for name in (*models, "near.js", "loader.js")),
    ]
    assert all(parses(book / "_explorer", modules) for modules in scripts)
    with (book / "_explorer" / "colours.js").open("a", encoding="utf-8") as file:
        file.write("const THICKEST = 1;\n")  # which shapes.js has, too
    assert not parses(book / "_explorer", ["residual.js"])
