"""A person marks in Formgrader, in a real browser; and what a student wrote runs nothing there."""

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell
from tiny import REPOSITORY, TinyCourse, tiny_notebook

from grading.__main__ import main
from grading._nbgrader import Gradebook
from grading._untyped import read_notebook
from grading.report import rows
from grading.run import run

pytestmark = pytest.mark.slow

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/q842iQAAAABJRU5ErkJggg=="
# Run in the page of the marker, this gives full marks and more, and says that it ran.
RAISE = (
    "window.canary=1;fetch('/formgrader/api/grades?submission_id='+submission_id).then(r=>r.json()).then(g=>g.forEach("
    "x=>fetch('/formgrader/api/grade/'+x.id,{method:'PUT',headers:{'X-CSRFToken':getCookie('_xsrf')},"
    "body:JSON.stringify({manual_score:29,extra_credit:29})})))"
)
HOSTILE_HTML = [
    f"<script>{RAISE}</script>",
    f'<img src="x" onerror="{RAISE}">',
    f'<svg onload="{RAISE}"><script>{RAISE}</script></svg>',
    f'<iframe srcdoc="<script>parent.eval(&quot;{RAISE}&quot;)</script>"></iframe>',
    f'<a href="javascript:{RAISE}" id="link">here</a>',
    f'<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror={RAISE}&gt;">',
    f'<details open ontoggle="{RAISE}">x</details>',
    '<div class="full-credit modal fade in" id="submission_id">click me</div>',
]
HOSTILE_MARKDOWN = [
    *HOSTILE_HTML,
    f"[here](javascript:{RAISE})",
    f"[here](&#106;avascript:{RAISE})",
    f"[here][there]\n\n[there]: javascript:{RAISE}",
    f"<javascript:{RAISE}>",
    f"$\\href{{javascript:{RAISE}}}{{x}}$",
    f'$x$"<img src=x onerror="{RAISE}">"$y$',
    f'```mermaid\n<img src=x onerror="{RAISE}">\n```',
    f'![x" onerror="{RAISE}](x.png)',
    f'![x](attachment:p.png "a" onerror="{RAISE}")',
]


def essay(text: str) -> nbformat.NotebookNode:
    meta = {"grade": True, "locked": False, "solution": True, "task": False, "schema_version": 3, "points": 3}
    return new_markdown_cell(text, id="essay", metadata={"nbgrader": meta | {"grade_id": "essay"}})


def submit(course: TinyCourse, student: str, text: str, code: str = "") -> None:
    notebook = tiny_notebook()
    notebook.cells += [essay(text), new_code_cell(code, id="own")]
    course.submit_notebook(student, notebook)


@pytest.fixture(scope="module")
def course(tmp_path_factory, boxes):
    root = tmp_path_factory.mktemp("repository")
    shutil.copy(REPOSITORY / "nbgrader_config.py", root)
    (root / "solutions" / "tiny").mkdir(parents=True)
    notebook = tiny_notebook()
    notebook.cells.append(essay("Why?"))
    nbformat.write(notebook, root / "solutions" / "tiny" / "tiny.ipynb")
    course = TinyCourse.at(root, tmp_path_factory.mktemp("class"))
    table = 'from IPython.display import HTML, display\ndisplay(HTML("<table><tr><td>a cell</td></tr></table>"))'
    submit(course, "ada", "Because $a<b$, **surely**.", table)
    shows = "\n".join(f"display(HTML({html!r}))" for html in HOSTILE_HTML)
    bundles = [{"image/png": f'{PNG}"><script>{RAISE}</script>'}, {"image/svg+xml": HOSTILE_HTML[2]}]
    bundles += [{"text/markdown": text, "text/latex": text} for text in HOSTILE_MARKDOWN]
    shows += f"\nfor bundle in {bundles!r}:\n    display(bundle, raw=True)"
    submit(course, "mallory", "\n\n".join(HOSTILE_MARKDOWN), f"from IPython.display import HTML, display\n{shows}")
    run(course, "tiny", pool=boxes)
    return course


@pytest.fixture(scope="module")
def server(course, tmp_path_factory):
    """Yield the address of a Jupyter server in the folder of the course, with Formgrader."""
    home = tmp_path_factory.mktemp("home")
    place = os.environ | {"ATTENTION_CLASS": str(course.folder), "HOME": str(home), "JUPYTER_RUNTIME_DIR": str(home)}
    options = ["--port=0", "--allow-root", "--no-browser", "--IdentityProvider.token=", "--ServerApp.log_level=ERROR"]
    extensions = "--ServerApp.jpserver_extensions={'nbgrader.server_extensions.formgrader': True}"
    command = [sys.executable, "-m", "jupyter_server", *options, extensions]
    with (
        (home / "log").open("w") as log,
        subprocess.Popen(command, cwd=course.root, env=place, stdout=log, stderr=log) as process,
    ):
        try:
            until = time.monotonic() + 600
            while not (url := address(home)) and process.poll() is None and time.monotonic() < until:
                time.sleep(0.1)
            assert url, (home / "log").read_text()
            yield url.rstrip("/")
        finally:
            process.terminate()


def address(home):
    """The address that a Jupyter server has written into its folder; None while the file is not there, or not whole."""
    for file in home.glob("jpserver-*.json"):
        with suppress(json.JSONDecodeError):
            return json.loads(file.read_text())["url"]
    return None


@pytest.fixture
def page(new_context):
    """A tab that notes what goes wrong in it, and what it asks of other hosts."""
    with new_context() as context:
        page = context.new_page()
        page.wrong = []
        page.on("pageerror", lambda error: page.wrong.append(f"page error: {error}"))
        page.on("console", lambda told: page.wrong.append(told.text) if told.type == "error" else None)
        page.on("response", lambda answer: page.wrong.append(answer.url) if answer.status > 399 else None)
        page.on("request", lambda asked: page.wrong.append(asked.url) if "//127.0.0.1" not in host(asked.url) else None)
        yield page


def host(url: str) -> str:
    return url.replace("localhost", "127.0.0.1") if url.startswith("http") else "//127.0.0.1"


def submission(course: TinyCourse, student: str) -> str:
    with Gradebook(course.config().CourseDirectory.db_url) as gradebook:
        return str(gradebook.find_submission_notebook("tiny", "tiny", student).id)


def open_submission(page, server, course, student):
    page.goto(f"{server}/formgrader/submissions/{submission(course, student)}/")
    # Not wait_for_function: it evaluates a string in the page, which the page's Content Security Policy forbids unless
    # the condition holds at the first look. What the debugger evaluates is exempt.
    for _ in range(3000):
        if page.evaluate("formgrader.loaded && formgrader.grades.loaded && formgrader.comments.loaded"):
            return
        page.wait_for_timeout(100)
    raise AssertionError("the form grader has not loaded the submission within five minutes")


def test_a_person_finds_a_submission_marks_it_and_sees_the_mark_in_the_report(course, server, page, capsys):
    page.goto(f"{server}/formgrader/gradebook")
    page.click("text=tiny")
    page.click("td >> text=tiny")
    page.wait_for_selector("text=Submission #1")
    assert page.locator("td >> text=/^Submission #/").count() == 2
    open_submission(page, server, course, "ada")
    page.fill("#essay", "2.5")
    page.fill("#essay-comment", "Well argued & short.")
    with page.expect_response(lambda answer: "/api/comment/" in answer.url and answer.request.method == "PUT"):
        page.locator("#essay-comment").blur()
    page.wait_for_load_state("networkidle")
    assert page.wrong == []
    assert main_report(course) == 0
    assert "8.5 / 9" in capsys.readouterr().out
    (feedback,) = [path for row in rows(course, "tiny") if row.outcome.student == "ada" for path in row.feedback]
    assert "Well argued &amp; short." in feedback.read_text()


def main_report(course: TinyCourse) -> int:
    from grading import __main__ as command

    before, command.ROOT = command.ROOT, course.root
    try:
        return main(["report", "tiny", "--course", str(course.folder)])
    finally:
        command.ROOT = before


def test_the_marker_sees_formulas_tables_and_the_names_on_demand(course, server, page):
    open_submission(page, server, course, "ada")
    assert page.locator(".text_cell_render math").count() == 1
    assert page.locator("td >> text=a cell").is_visible()
    page.click("span.glyphicon-eye-open")
    assert page.locator("a.name-shown").inner_text() == "ada"
    assert page.wrong == []


def test_nothing_that_a_student_wrote_runs_in_formgrader(course, server, page):
    before = {row.outcome.student: row.score for row in rows(course, "tiny")}
    open_submission(page, server, course, "mallory")
    for link in page.locator("#notebook-container a").all():
        assert (link.get_attribute("href") or "#").startswith(("http", "#"))
    for text in page.locator("#notebook-container >> text=/^(here|click me)$/").all():
        text.click()
    page.wait_for_load_state("networkidle")
    assert page.evaluate("window.canary") is None
    assert not [wrong for wrong in page.wrong if "canary" not in wrong]
    assert {row.outcome.student: row.score for row in rows(course, "tiny")} == before


def test_the_policy_of_the_page_alone_lets_no_handler_or_script_run(course, server, page):
    open_submission(page, server, course, "ada")
    ran = page.evaluate(
        """html => new Promise(end => {
            let blocked = 0, script = document.createElement('script')
            addEventListener('securitypolicyviolation', () => { if (++blocked === 2) end(null) })
            Object.defineProperty(window, 'canary', { set: end })
            document.body.insertAdjacentHTML('beforeend', html)
            script.text = 'canary = 2'
            document.body.append(script)
        })""",
        f'<img src=x onerror="{RAISE}">',
    )
    assert ran is None
    assert any("Content Security Policy" in wrong for wrong in page.wrong)


def test_what_is_stored_shows_a_hostile_answer_as_text(course):
    stored = read_notebook(course.autograded("mallory", "tiny") / "tiny.ipynb")
    (answer,) = [cell for cell in stored.cells if cell.id == "essay"]
    assert "< script>" in answer.source
    assert "<script" not in answer.source
    (outputs,) = [cell.outputs for cell in stored.cells if cell.id == "own-1"]
    assert len(outputs) > 20
    for output in (output for output in outputs if output.output_type == "display_data"):
        assert not {"image/svg+xml", "text/latex"} & output.data.keys()
        assert "<script" not in str(output.data)
