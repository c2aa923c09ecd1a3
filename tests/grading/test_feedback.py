from html import escape

import pytest
from bs4 import BeautifulSoup
from jinja2 import Environment
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from tiny import REPOSITORY
from traitlets.config.loader import PyFileConfigLoader

from grading import page_exporter, rendering
from grading._untyped import NotebookNode
from grading.feedback import FeedbackExporter, markdown
from grading.page_settings import FEEDBACK_TEMPLATE
from grading.sanitize import safe_html

# Letters and boxes that would lie over what stands before them. The sanitizer lets each of these properties through.
COVERS = "margin:-900px 0 0 -50px;padding:300px;background-color:white;font-size:400px;"
# At which element of the page the middle of each score is found.
SEEN = """[...document.querySelectorAll('.scores td, .marks span')].map(score => {
    const { x, y, width, height } = score.getBoundingClientRect()
    return score.contains(document.elementFromPoint(x + width / 2, y + height / 2))
})"""


@pytest.mark.parametrize(
    "html",
    [
        "<script>alert(1)</script>",
        "<img src='https://example.org/x.png'>",
        "<img src=x onerror=alert(1)>",
        "<iframe src='https://example.org'></iframe>",
        "<meta http-equiv='refresh' content='0;url=https://example.org'>",
        "<link rel=stylesheet href='https://example.org/x.css'>",
        "<p style='background: url(https://example.org/x.png)'>",
        "<a href='javascript:alert(1)'>here</a>",
        "<form action='https://example.org'><input></form>",
        "<svg onload=alert(1)>",
    ],
)
def test_nothing_runs_and_nothing_is_fetched(html):
    kept = safe_html(html).replace("&lt;", "\0")  # what is escaped is text
    tags = [part.split(">")[0] for part in kept.split("<")[1:]]
    assert not any(word in tag for tag in tags for word in ("script", "http", "onerror", "onload", "src=", "meta"))


def test_what_is_too_much_to_clean_is_shown_as_text():
    shown = safe_html("<b>" * 100_000)
    assert shown.startswith("<pre>&lt;b&gt;")
    assert len(shown) < 500_000


def test_a_report_keeps_its_looks():
    report = '<div style="border-left:4px solid #2e8540;max-width:60em;"><strong>✓ right</strong></div>'
    assert safe_html(report) == report


def test_a_table_keeps_its_structure():
    table = '<table><caption>weights</caption><tbody><tr><th scope="row">a</th><td>0.5</td></tr></tbody></table>'
    assert safe_html(table) == table


@pytest.mark.parametrize("words", ["<pad>", "</pad>", "a <eos> b", "<script>alert(1)</script>"])
def test_what_is_no_tag_that_is_kept_is_text_in_a_comment(words):
    assert escape(words, quote=False) in markdown({}, words)


def test_a_comment_keeps_the_tags_that_are():
    html = '<p>a <b>b</b> <del>c</del> <span style="color:red;">d</span></p>'
    assert markdown({}, html).strip() == markdown({}, "a **b** ~~c~~").strip().replace("strong", "b").replace(
        "</p>", ' <span style="color:red;">d</span></p>'
    )


# The page ------------------------------------------------------------------------------------------------------------


def shows(html: str) -> NotebookNode:
    """A cell that displays this."""
    return new_code_cell("1", id="shows", outputs=[new_output("display_data", data={"text/html": safe_html(html)})])


def graded(cell: NotebookNode) -> NotebookNode:
    about = {"grade": True, "solution": True, "locked": False, "grade_id": cell.id, "points": 2, "score": 0}
    cell.metadata["nbgrader"] = about
    return cell


def page_of(
    *cells: NotebookNode, tmp_path, monkeypatch, student: str = "mallory", template: str = FEEDBACK_TEMPLATE
) -> str:
    monkeypatch.setenv("ATTENTION_CLASS", str(tmp_path))
    config = PyFileConfigLoader("nbgrader_config.py", path=str(REPOSITORY)).load_config()
    about = {"notebook": "tiny", "student": student, "score": 0, "max_score": 2, "late_penalty": 0}
    config.HTMLExporter.preprocessors = []
    config.FeedbackExporter.template_name = template
    exporter = FeedbackExporter(config=config)
    return exporter.from_notebook_node(new_notebook(cells=[*cells]), {"nbgrader": about})[0]


@pytest.mark.parametrize("student", ["{{ 7 * 7 }}{% raw %}", "</title><script>alert(1)</script>", "{# x #}<!--"])
def test_the_name_of_a_student_is_text(student, tmp_path, monkeypatch):
    page = BeautifulSoup(page_of(tmp_path=tmp_path, monkeypatch=monkeypatch, student=student), "html.parser")
    assert page.title.text == f"tiny: feedback for {student}"
    assert page.select_one("main strong").text == student
    assert not page.find_all("script")


def test_an_answer_that_nobody_has_marked_has_no_score_yet(tmp_path, monkeypatch):
    cell = graded(new_code_cell("", id="essay"))
    cell.metadata.nbgrader["unread"] = True
    page = BeautifulSoup(page_of(cell, tmp_path=tmp_path, monkeypatch=monkeypatch), "html.parser")
    assert page.select_one(".scores td").text == "not marked yet, of 2"
    assert page.select_one("#essay span").text == "not marked yet, of 2 points"


@pytest.mark.parametrize("display", ["block", "inline-block"])
@pytest.mark.parametrize("kind", ["output", "markdown"])
def test_nothing_that_a_student_wrote_covers_a_score(kind, display, new_context, tmp_path, monkeypatch):
    html = f'<div style="{COVERS}display:{display};">MMMM MMMM</div>'
    assert safe_html(html) == html
    cell = shows(html) if kind == "output" else new_markdown_cell(html, id="shows")
    page = page_of(graded(cell), tmp_path=tmp_path, monkeypatch=monkeypatch)
    with new_context(viewport={"width": 1000, "height": 1500}) as context:
        tab = context.new_page()
        tab.set_content(page)
        assert tab.evaluate(SEEN) == [True, True]


def test_what_is_wider_than_the_page_can_be_scrolled_to(new_context, tmp_path, monkeypatch):
    row = "".join(f"<td>column {n}</td>" for n in range(100))
    page = page_of(shows(f"<table><tr>{row}</tr></table>"), tmp_path=tmp_path, monkeypatch=monkeypatch)
    with new_context(viewport={"width": 1000, "height": 1500}) as context:
        tab = context.new_page()
        tab.set_content(page)
        tab.locator("td", has_text="column 99").scroll_into_view_if_needed()
        box = tab.locator("td", has_text="column 99").bounding_box()
        assert 0 <= box["x"] <= 1001 - box["width"]  # a fraction of a pixel is cut


@pytest.mark.parametrize(
    ("html", "described"), [('<img src="data:,x">', "No description"), ('<img alt="x > y">', "x > y")]
)
def test_every_image_has_a_description(html, described, tmp_path, monkeypatch):
    page = BeautifulSoup(page_of(shows(html), tmp_path=tmp_path, monkeypatch=monkeypatch), "html.parser")
    assert page.find("img")["alt"].startswith(described)


@pytest.mark.slow
def test_with_the_lab_template_outputs_can_be_reached_by_keyboard(tmp_path, monkeypatch):
    html = page_of(shows("5"), tmp_path=tmp_path, monkeypatch=monkeypatch, template="lab")
    page = BeautifulSoup(html, "html.parser")
    assert page.select_one(".jp-OutputArea-output")["tabindex"] == "0"


@pytest.mark.slow
def test_no_page_waits_until_a_template_is_compiled(tmp_path, monkeypatch):
    monkeypatch.setattr(page_exporter, "_templates", page_exporter.CompiledTemplates())
    rendering.warm_up()  # as the server does before its first page

    def compiled(*given, **options):
        raise AssertionError("a template is compiled for this page alone")

    monkeypatch.setattr(Environment, "compile", compiled)
    page = page_of(graded(new_code_cell("", id="essay")), tmp_path=tmp_path, monkeypatch=monkeypatch)
    assert "essay" in page


def test_a_template_that_has_changed_is_compiled_again(tmp_path):
    file = tmp_path / "course" / "index.html.j2"
    file.parent.mkdir()
    (file.parent / "conf.json").write_text('{"base_template": "base", "mimetypes": {"text/html": true}}')
    pages = []
    for text in ("before", "after"):
        file.write_text(text)
        exporter = FeedbackExporter(template_name="course", extra_template_basedirs=[str(tmp_path)])
        pages.append(exporter.from_notebook_node(new_notebook())[0])
    assert pages == ["before", "after"]
