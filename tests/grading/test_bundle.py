"""What students get holds no answers: no solution, no marking scheme, no right letter, and no history."""

import io
import json
import re
import subprocess
import sys
import zipfile

import pytest
from tiny import REPOSITORY

from grading.answer_keys import answer_keys
from grading.bundle import bundle
from grading.class_settings import ClassSettings, write_class
from grading.course import Course, GradingError

pytestmark = pytest.mark.slow

USE = """
import numpy as np
import attnlib
from attnlib.checks import check, check_choice
from attnlib.checks.catalogue import QUESTIONS

assert attnlib.__file__.startswith({place!r})
assert check("dot", lambda query, key: query @ np.swapaxes(key, -1, -2), points=2) == 2
for name, question in QUESTIONS.items():
    for letter in question.options:
        assert check_choice(name, letter) is None
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("class")


@pytest.fixture(scope="module")
def archive(folder):
    said = bundle(Course(REPOSITORY, folder))
    assert said.startswith("9 notebooks and attnlib-")
    with zipfile.ZipFile(folder / "attention-students.zip") as archive:
        yield archive


@pytest.fixture(scope="module")
def files(archive) -> dict[str, bytes]:
    """Everything in the bundle, and everything in its wheel."""
    files = {name: archive.read(name) for name in archive.namelist()}
    (wheel,) = (content for name, content in files.items() if name.endswith(".whl"))
    with zipfile.ZipFile(io.BytesIO(wheel)) as inner:
        return files | {f"wheel/{name}": inner.read(name) for name in inner.namelist()}


def words(text: str) -> str:
    """Return a text without white space, and without the quotation marks and line breaks of JSON."""
    return re.sub(r"\\n|[\s\",\\]", "", text)


def solutions() -> dict[str, str]:
    """Return what a student is to write, by cell: the code between the marks, and each written answer."""
    found = {}
    for notebook in sorted((REPOSITORY / "solutions").glob("*/*.ipynb")):
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
            text, about = "".join(cell["source"]), cell["metadata"].get("nbgrader", {})
            if about.get("solution"):
                parts = re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", text, re.S) or [text]
                found |= {f"{notebook.stem}: {cell['id']} {i}": part for i, part in enumerate(parts)}
    return found


def test_no_solution_is_in_any_file(files):
    everything = {name: words(content.decode("utf-8", "replace")) for name, content in files.items()}
    answers = solutions()
    assert len(answers) > 90
    for cell, text in answers.items():
        assert [name for name, content in everything.items() if words(text) in content] == [], cell


def test_no_marking_scheme_and_no_mark_of_a_solution_is_in_a_notebook(files):
    notebooks = [content.decode() for name, content in files.items() if name.endswith(".ipynb")]
    assert len(notebooks) == 9
    for text in notebooks:
        assert not re.search(r"BEGIN SOLUTION|BEGIN HIDDEN|\*\*Marking", text)


def test_no_right_letter_and_no_explanation_is_in_any_file(files):
    everything = [words(content.decode("utf-8", "replace")) for content in files.values()]
    for name, key in answer_keys().items():
        for explanation in key.why.values():
            assert not any(words(explanation)[:50] in text for text in everything), name
    sources = "\n".join(content.decode() for name, content in files.items() if name.endswith("/questions.py"))
    assert "right=" not in sources
    assert not any(name.endswith("answers.toml") for name in files)


def test_there_is_nothing_else_in_it(archive):
    names = {re.sub(r"work/.*", "work", name.removeprefix("attention/")) for name in archive.namelist()}
    assert {re.sub(r"attnlib-.*", "attnlib", name) for name in names} == {
        "README.md",
        "attnlib",
        "constraints.txt",
        "requirements.txt",
        "work",
    }


def test_the_same_tree_gives_the_same_bytes(folder, tmp_path):
    bundle(Course(REPOSITORY, tmp_path / "class"), tmp_path / "again.zip")
    assert (tmp_path / "again.zip").read_bytes() == (folder / "attention-students.zip").read_bytes()


def test_the_wheel_checks_functions_and_takes_every_option_of_a_question(archive, tmp_path):
    archive.extractall(tmp_path)
    (wheel,) = (tmp_path / "attention").glob("*.whl")
    with zipfile.ZipFile(wheel) as inner:
        inner.extractall(tmp_path / "installed")
    place = str(tmp_path / "installed")
    code = USE.format(place=place)
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {place!r})\n{code}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]


def test_every_version_is_that_of_the_lock(files):
    lock = (REPOSITORY / "requirements.txt").read_text(encoding="utf-8").splitlines()
    constraint, wheel, *pinned = files["attention/requirements.txt"].decode().splitlines()
    assert constraint == "--constraint constraints.txt"
    assert f"attention/{wheel.removeprefix('./')}" in files
    assert {line.partition("==")[0] for line in pinned} >= {"numpy", "jupyterlab", "matplotlib", "tqdm"}
    assert set(pinned) <= set(lock)
    assert not {"torch", "nbgrader", "flit-core", "pip"} & {line.partition("==")[0] for line in pinned}


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(GradingError, match=r"cannot write .*none.*Pass --out"):
        bundle(Course(REPOSITORY, tmp_path / "class"), tmp_path / "none" / "b.zip")


@pytest.mark.parametrize("book", ["", "https://example.org/b"])
def test_the_notebooks_lead_to_the_book_of_the_class_or_only_name_its_sections(tmp_path, book):
    course = Course(REPOSITORY, tmp_path / "class")
    write_class(course, ClassSettings(book=book))
    bundle(course, tmp_path / "b.zip")
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        texts = [archive.read(name).decode() for name in archive.namelist() if name.endswith(".ipynb")]
    for text in texts:
        assert "_build" not in text
        assert bool(re.search(r"Reread “", text)) != bool(book)
        assert (f"”]: {book}/book/" in text) == bool(book)
