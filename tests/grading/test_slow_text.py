"""Text that keeps a parser or a tokenizer busy for minutes costs its author a look, and nobody else notices.

Each text would take many times as long as the bounds that the tests set, so that they need not wait for the real ones.
"""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from tiny import TinyCourse

from grading import bounded_worker, read_submission, rendering
from grading._nbconvert import HTMLExporter
from grading.class_report import similarity
from grading.release import notebook_templates
from grading.run import How, run

pytestmark = pytest.mark.slow

SLOW_TO_COMPARE = "x='" + "\\'" * 8_000  # a string without an end


@pytest.fixture(scope="module")
def course(tiny, boxes) -> TinyCourse:
    for student in ("honest", "slow-words"):
        tiny.submit(student)
    tiny.submit_edited("slow-words", lambda notebook: notebook.cells.append(new_code_cell(SLOW_TO_COMPARE)))
    run(tiny, "tiny", None, How(pages=False), pool=boxes)
    return tiny


def test_code_that_cannot_be_looked_through_in_time_is_graded_and_flagged(course, monkeypatch):
    real = bounded_worker.values

    def too_slow(*given, **options):
        raise bounded_worker.ExceededError("took more than 10 seconds of processor time", real(*given, **options)[:1])

    monkeypatch.setattr(bounded_worker, "values", too_slow)
    (template,) = notebook_templates(course, "tiny")
    read = read_submission.read_submission(course.submitted("honest", "tiny"), template)
    assert [cell.id for cell in read.repaired.notebook.cells] == [cell.id for cell in template.released.cells]
    assert read.flags == ("its code could not be searched: searching it took more than 10 seconds of processor time",)


def test_code_that_cannot_be_compared_in_time_is_left_out_and_the_others_are_compared(course, monkeypatch):
    monkeypatch.setattr(similarity, "TOKENIZING_SECONDS", 1)
    found = similarity.compare_submissions(course, "tiny", ["honest", "slow-words"])
    assert found.compared == 1
    assert found.left_out == (("slow-words", "comparing it took more than 1 seconds of processor time"),)


SLOW_TO_SHOW = {
    "blanks": new_markdown_cell("a" + " " * 450_000 + "b"),
    "formulas": new_markdown_cell("\\begin{a}" * 8000),
    "another language": new_code_cell("%%perl\n" + "<<a" * 30_000),
}


@pytest.mark.parametrize("cell", SLOW_TO_SHOW.values(), ids=SLOW_TO_SHOW)
def test_what_cannot_be_shown_in_time_is_plain_text_with_a_word_about_it(cell, monkeypatch):
    monkeypatch.setattr(rendering, "RENDERING_SECONDS", 1)
    cells = [new_markdown_cell("**Before**"), cell, new_markdown_cell("After")]
    shown, _ = rendering.Sanitize().preprocess(new_notebook(cells=cells), {})
    assert "Shown as plain text, because showing it took more than 1 seconds" in shown.cells[1].source
    assert cell.source.split()[0][:8] in shown.cells[1].source
    page, _ = HTMLExporter().from_notebook_node(shown)  # in time, or this test would not end
    assert "Before" in page
    assert "After" in page


def test_a_page_that_cannot_be_made_in_time_is_made_of_plain_text(course, boxes, monkeypatch):
    for student in ("honest", "slow-page"):
        course.submit(student)
    course.submit_edited("slow-page", lambda notebook: notebook.cells.append(SLOW_TO_SHOW["blanks"]))
    monkeypatch.setattr(rendering, "RENDERING_SECONDS", 1)
    run(course, "tiny", ["honest", "slow-page"], How(), pool=boxes)
    honest, slow = (course.feedback(student, "tiny") / "tiny.html" for student in ("honest", "slow-page"))
    assert "Shown as plain text" not in honest.read_text()
    assert "Shown as plain text, because its page took more than 1 seconds of processor time." in slow.read_text()
    assert "6 / 6 points" in slow.read_text()


def test_a_submission_that_something_else_kept_from_being_read_is_read_by_the_next_run(course, boxes, monkeypatch):
    def lost(*given, **options):
        raise bounded_worker.LostError("its process was ended by something else (exit code -9)")

    course.submit("unlucky")
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(bounded_worker, "_values", lost)
        (outcome,) = run(course, "tiny", ["unlucky"], How(pages=False), pool=boxes)
    assert outcome.verdict == "infrastructure"
    assert "ended by something else" in outcome.reason
    (outcome,) = run(course, "tiny", ["unlucky"], How(pages=False), pool=boxes)
    assert outcome.verdict == "graded"


def test_what_no_converter_can_cope_with_is_shown_plainly(monkeypatch):
    real = bounded_worker.value

    def fails_on_html(work, notebook, *more, **options):
        if "Shown as plain text" not in notebook.cells[0].source:
            raise bounded_worker.WorkFailedError("failed (ValueError: odd)")
        return real(work, notebook, *more, **options)

    monkeypatch.setattr(bounded_worker, "value", fails_on_html)
    shown = rendering.harmless(new_notebook(cells=[new_markdown_cell("text")]))
    assert "Shown as plain text, because showing it failed (ValueError: odd)." in shown.cells[0].source
