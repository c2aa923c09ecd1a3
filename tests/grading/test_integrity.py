"""The page on academic integrity shows what students share with known texts, and who was fast, and claims no more."""

from datetime import datetime, timedelta

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from tiny import REPOSITORY, TinyCourse, nbgrader_cell

from grading.class_report.integrity.fast import _fast
from grading.class_report.integrity.known_texts import known_texts
from grading.class_report.integrity.page import SHORTCUT, evidence, integrity_page, matches
from grading.class_report.similarity import Pair, Passage, SimilarityReport
from grading.exam.window import Exam
from grading.lateness import TIME_UNKNOWN
from grading.outcome import Outcome
from grading.report import Row
from grading.static_checks.flags import find_flags

BOOK = (
    "A query asks every key how well the two fit, and the softmax turns the fits into weights that sum to one, so each "
    "word takes a little of every value, and most of those that answer its question."
)
MODEL_ANSWER = (
    "Self-attention treats its words as a set, so a permutation of the rows of the input permutes the rows of the "
    "output in the same way and changes nothing else at all in them."
)
TASK = (
    "Say in two sentences what happens to the rows of the result if somebody shuffles the words of the sentence and "
    "why the computation behaves in this way and not in another one."
)
TUTORIAL = """
def attend(query, key, value, mask=None):
    width = query.shape[-1]
    logits = np.einsum("btd,bsd->bts", query, key) / np.sqrt(width)
    if mask is not None:
        logits = np.where(mask, logits, -1e9)
    logits = logits - logits.max(axis=-1, keepdims=True)
    table = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    return np.einsum("bts,bsd->btd", table, value), table
"""
RENAMED = TUTORIAL.replace("width", "d").replace("logits", "s").replace("table", "w").replace("attend", "mine")
OWN_CODE = "def mine(x):\n    return [sum(a * b for a, b in zip(row, x)) for row in x]"


def answer(text, code=OWN_CODE, own=""):
    essay = new_markdown_cell(text, id="essay", metadata=nbgrader_cell("essay", "", grade=True, solution=True).metadata)
    cells = [new_markdown_cell(TASK, id="task"), essay, nbgrader_cell("code", code, solution=True)]
    return new_notebook(cells=[*cells, *([new_code_cell(own, id="own")] if own else [])])


def hidden(text):
    """Return a text as a student may disguise it: in capitals, with marks of emphasis and invisible characters."""
    return text.upper().replace(",", "").replace("SOFTMAX", "_soft\u00admax_").replace("QUERY", "**QU\u200bERY**")


@pytest.fixture
def course(tmp_path):
    """A class in which two students pasted and three did not."""
    for place, text in (("solutions/tiny", MODEL_ANSWER), ("class/release/tiny", "")):
        (tmp_path / place).mkdir(parents=True)
        nbformat.write(answer(text), tmp_path / place / "tiny.ipynb")
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "masks.md").write_text(f"# Masks\n\n{BOOK}\n\n{TUTORIAL}")
    (tmp_path / "nbgrader_config.py").write_text((REPOSITORY / "nbgrader_config.py").read_text())
    course = TinyCourse.at(tmp_path, tmp_path / "class")
    written = {
        "ada": answer(f"I think: {hidden(BOOK)}"),
        "bela": answer(f"{MODEL_ANSWER}\n\n{TASK}", RENAMED),
        "cleo": answer(TASK),
        "dora": answer("Rows follow the words, since a sum over a set has no order, and that is all there is to it."),
        "emil": answer(" ".join(BOOK.split()[:20]), own=TUTORIAL[:90]),
    }
    for student, notebook in written.items():
        text = nbformat.writes(notebook).encode()
        course.files.write(course.autograded(student, "tiny") / "tiny.ipynb", text)
    return course


def found(course):
    students = ["ada", "bela", "cleo", "dora", "emil"]
    shared = matches(course, "tiny", students, known_texts(course, "tiny"))
    return {(one.student, one.source, one.kind): one for one in shared}


def test_what_is_pasted_from_the_book_or_the_solution_is_found_word_by_word_and_what_was_given_is_not(course):
    shared = found(course)
    assert shared.keys() == {("ada", "the book, masks.md", "text"), ("bela", "the solution, tiny.ipynb", "text")}
    adas = shared["ada", "the book, masks.md", "text"]
    assert adas.words == len(BOOK.split())
    (passage,) = adas.passages
    assert passage.first.startswith("A **QUERY** ASKS EVERY KEY")
    assert " ".join(passage.second.split()) == BOOK.rstrip(".")
    assert shared["bela", "the solution, tiny.ipynb", "text"].words == len(MODEL_ANSWER.split()) + 1  # Self, attention


@pytest.mark.slow
def test_code_is_compared_with_files_of_the_instructor_alone_whatever_its_names_are(course):
    folder = course.folder / "known-texts"
    folder.mkdir()
    (folder / "blog.html").write_text(f"<p>Read <b>on</b>:</p><pre>{TUTORIAL.replace('>', '&gt;')}</pre>")
    (folder / "broken.ipynb").write_text("{")
    (folder / "deep.ipynb").write_text("[" * 100_000)
    (folder / "book.pdf").write_bytes(b"%PDF")
    (folder / "link.txt").symlink_to(course.root / "nbgrader_config.py")
    unread = [name for name, _ in known_texts(course, "tiny").unread]
    assert unread == ["book.pdf", "broken.ipynb", "deep.ipynb", "link.txt"]
    (match,) = (match for match in found(course).values() if match.kind == "code")
    assert (match.student, match.source) == ("bela", "blog.html")
    assert "np.exp(s).sum" in match.passages[0].first
    for student in ("ada", "cleo"):  # now three of five have it: it is what one writes
        text = nbformat.writes(answer("Nothing.", RENAMED)).encode()
        course.files.write(course.autograded(student, "tiny") / "tiny.ipynb", text)
    assert not [match for match in found(course).values() if match.kind == "code"]


BEGIN = datetime(2030, 1, 31, 9)
EXAM = Exam("tiny", BEGIN, BEGIN + timedelta(hours=2), {})


def row(student, points, flags=()):
    return Row(Outcome(student, "graded", "", (), "", flags), {"a": (points, 4.0)}, 0, ())


def test_who_is_fast_and_good_is_named_and_who_is_fast_and_empty_or_late_is_not():
    usual = {f"s{n}": (60 + n, 2) for n in range(10)}
    minutes = usual | {"quick": (20, 4), "brisk": (22, 4), "empty": (3, 0), "late": (121, 4), "early": (-5, 4)}
    came = {student: BEGIN + timedelta(minutes=time) for student, (time, _) in minutes.items()}
    rows = [row(student, points) for student, (_, points) in minutes.items()]
    listed, said = _fast(EXAM, came, rows)
    assert [(fast.student, fast.minutes, fast.median) for fast in listed] == [("quick", 20, 63)]
    assert "within the window: 13. The median of their times is 63 minutes" in said
    assert _fast(EXAM, dict(list(came.items())[:9]), rows)[0] == []


def test_a_shortcut_is_a_flag_about_code_or_options_and_no_other_flag():
    (flag, *_) = find_flags([("one", "import attnlib\none = attnlib.softmax")], {"one": ("attnlib.softmax",)})
    text = f"{flag.why}: cell {flag.cell}, line {flag.line}: {flag.text}"
    flags = (text, "its options were shown in the order of another student: 'ada'", f"{TIME_UNKNOWN}no file")
    assert [bool(SHORTCUT.search(flag)) for flag in flags] == [True, True, False]
    (one,) = evidence([row("bela", 1, flags), row("cleo", 1, flags[2:])], SimilarityReport(2, (), ()), [], [])
    assert (one.student, one.shortcuts, one.kinds) == ("bela", list(flags[:2]), 1)


def test_the_page_puts_evidence_side_by_side_escaped_and_says_what_it_does_not_prove(course):
    evil = "<script>alert(1)</script>"
    pair = Pair("ada", "bela", 0.9, 120, 100, (Passage(30, "code", evil, "code", "y = 2"),))
    rows = [
        row(student, 2, (f"{evil}: cell code, line 1: x",) if student == "ada" else ()) for student in ("ada", "bela")
    ]
    (course.folder / "course.toml").write_text('name = "Attention"\nterm = "Autumn <2030>"\n')
    html = integrity_page(
        course, "tiny", rows, SimilarityReport(2, (), (pair,)), course.reports("tiny"), "https://b.org/"
    )
    page = BeautifulSoup(html, "html.parser")
    assert not page.select("script")
    assert evil in page.get_text()
    assert page.select_one("header p").text == "Attention, Autumn <2030>"
    lines = [[cell.get_text(" ").strip() for cell in line.select("th, td")] for line in page.select("tbody tr")]
    assert lines == [
        ["ada", "bela", f"the book, masks.md ({len(BOOK.split())} words)", "1", ""],
        ["bela", "ada", f"the solution, tiny.ipynb ({len(MODEL_ANSWER.split()) + 1} words)", "", ""],
    ]
    sections = {one.h2.text: one.get_text(" ") for one in page.select("section")}
    assert len(sections) == 5
    for title, text in sections.items():
        assert title == "At a glance" or "not prove" in text
    assert page.select_one("main a")["href"] == "https://b.org/book/teaching/academic-integrity.html"
    assert "This is not an exam" in sections["Far faster than the class"]
