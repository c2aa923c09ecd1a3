"""A small book, built as the real one: whose notebooks get in, which pages are executed, and what a failure leaves."""

import os
import re
import shutil

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from pages import build_small

pytestmark = pytest.mark.slow

HEAD = """\
---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---
"""
# A cell that waits until another page is being executed as well.
WAITING_CELL = """
```{code-cell} ipython3
import os
from pathlib import Path
from time import monotonic, sleep

Path(f"{os.getpid()}.began").touch()
until = monotonic() + 600
while len(list(Path().glob("*.began"))) < 2 and monotonic() < until:
    sleep(0.05)
print("another page has begun:", len(list(Path().glob("*.began"))) > 1)
```
"""
ONE_AT_A_TIME = os.cpu_count() == 1  # then no page can wait for another
PAGE = f"""{HEAD}
# A page

[The exercise](../exercises/tiny/tiny.ipynb) and [](other.md).

```{{code-cell}} ipython3
import explorer_of_this_test

print("the result is", explorer_of_this_test.RESULT)
```
{"" if ONE_AT_A_TIME else WAITING_CELL}"""
OTHER = PAGE.replace("# A page", "# Another page").replace("[](other.md)", "no more").replace("explorer_of", "other_of")
FAILING = """
```{code-cell} ipython3
def half(x):
    return x / 0


half(3)
```
"""
TOC = """\
format: jb-book
root: book/index
chapters:
- file: book/other
- file: exercises/tiny/tiny
- file: book/teaching/start
"""
TEACHING = "# Start in an hour\n\nIt says how to grade.\n"


def notebook(answer: str, output: str = "") -> str:
    outputs = [new_output("stream", name="stdout", text=output)] if output else []
    cell = new_code_cell(answer, id="answer", outputs=outputs)
    about = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    options = new_code_cell('show_options("a-key-twice")', id="options")
    cells = [new_markdown_cell("# The exercise", id="title"), options, cell]
    return nbformat.writes(new_notebook(metadata=about, cells=cells))


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """A book of two pages and an exercise that a student has done, built once."""
    folder = tmp_path_factory.mktemp("book")
    for name, answer in (("_build/released", "raise NotImplementedError()"), ("exercises", "x = 'MINE'")):
        (folder / name / "tiny").mkdir(parents=True)
        (folder / name / "tiny" / "tiny.ipynb").write_text(
            notebook(answer, "NotWritten: \x1b[0m?" * (name == "exercises"))
        )
    (folder / "_build" / "released" / "tiny" / "tiny.ipynb").chmod(0o444)
    (folder / "solutions").mkdir()
    (folder / "requirements.txt").write_text("numpy==1\n")
    done = build(folder, {"other": OTHER, "teaching/start": TEACHING}, "1")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, done


def build(folder, pages, result):
    (folder / "book" / "teaching").mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        (folder / "book" / f"{name}.md").write_text(text)
    (folder / "book" / "explorer_of_this_test.py").write_text(f"RESULT = {result}\n")
    if not (folder / "book" / "other_of_this_test.py").exists():
        (folder / "book" / "other_of_this_test.py").write_text("RESULT = 5\n")
    return build_small(folder, PAGE, toc=TOC)


def site(folder, page):
    return (folder / "_build" / "html" / page).read_text()


def test_what_a_student_wrote_in_exercises_neither_gets_in_nor_breaks_it(book):
    folder, _ = book
    assert "NotImplementedError" in site(folder, "exercises/tiny/tiny.html")
    everything = [path for path in (folder / "_build").rglob("*") if path.is_file()]
    assert not [path for path in everything if b"MINE" in path.read_bytes()]


def test_the_page_of_an_exercise_shows_the_options_that_its_notebook_shows_when_it_is_run(book):
    page = site(book[0], "exercises/tiny/tiny.html")
    assert re.findall(r"<li><p><strong>([A-Z])\.</strong>", page) == list("ABCD")
    assert "a key that is already there is found only once." in page
    assert "show_options" not in page


def test_servers_that_know_jekyll_are_told_to_serve_all_of_it(book):
    assert (book[0] / "_build" / "html" / ".nojekyll").is_file()


def test_kernels_do_not_complain_of_a_connection_that_is_not_encrypted(book):
    said = book[1].stdout + book[1].stderr
    assert said.count("Executed notebook") == 2
    assert "IPKernelApp" not in said


@pytest.mark.skipif(ONE_AT_A_TIME, reason="with one processor, one page is executed at a time")
def test_pages_are_executed_at_the_same_time(book):
    folder, done = book
    assert "2/2" in done.stderr
    for name in ("index", "other"):
        assert "another page has begun: True" in site(folder, f"book/{name}.html")


def test_only_the_pages_that_import_what_changed_are_executed_again_and_an_error_is_shown_and_the_site_kept(book):
    folder, _ = book
    lite = folder / "_build" / "html" / "lite" / "jupyter-lite.json"
    lite.parent.mkdir()
    lite.write_text("{}")

    done = build(folder, {}, "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("Executed notebook") == 1
    assert "the result is 2" in site(folder, "book/index.html")
    assert "the result is 5" in site(folder, "book/other.html")
    assert lite.read_text() == "{}"

    (folder / "_build" / "html").rename(folder / "_build" / "html.old")  # as where a build is killed at that moment
    done = build(folder, {"other": OTHER + FAILING}, "3")
    assert done.returncode != 0
    assert_the_error_is_shown(done.stderr, OTHER + FAILING)
    assert "If the site had been built before, that version is still there" in done.stderr
    assert "the result is 2" in site(folder, "book/index.html")
    assert lite.read_text() == "{}"

    shutil.rmtree(folder / "solutions")
    done = build(folder, {"other": OTHER}, "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Executed notebook" not in done.stdout  # the results of both pages are known from before
    assert "the result is 1" in site(folder, "book/index.html")
    page = site(folder, "book/teaching/start.html")
    assert "This copy of the course has no" in page
    assert "<h1>Start in an hour" in page
    assert "how to grade" not in page


def assert_the_error_is_shown(said, page):
    """Check that the terminal shows which cell failed, its line and its error, and nothing from cells that worked."""
    assert "book/other.md: WARNING: Executing notebook failed" in said
    cell = page.count("{code-cell}")
    line = page.splitlines().index("def half(x):") + 1
    assert f"The error is in code cell {cell}, which begins on line {line}:\n" in said
    assert "----> 5 half(3)" in said
    assert "ZeroDivisionError: division by zero" in said
    assert "nbclient" not in said
    assert "the result is" not in said
