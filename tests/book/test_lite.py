"""The exercises in a browser: what the site carries, and that a notebook opens there, runs, and is kept."""

import email
import json
import os
import re
import subprocess
import tarfile
import zipfile
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
from _tools.chromium import launch, new_context
from jupyterlite_pyodide_kernel.constants import PYODIDE_CDN_URL
from packaging.requirements import Requirement
from pages import HTML, ROOT, lessons, run_tool, source, text
from playwright.sync_api import expect
from pyodide_core import distribution

import attnlib
from attnlib.checks import examine

pytestmark = pytest.mark.slow

LITE = HTML / "lite"
EXERCISES = sorted(path.relative_to(ROOT / "exercises") for path in (ROOT / "exercises").glob("*/*.ipynb"))
KINDS = {".mjs": "text/javascript", ".wasm": "application/wasm", ".json": "application/json"}
OUTPUT = ".jp-OutputArea-output"
KERNEL = "@jupyterlite/pyodide-kernel-extension"


def settings() -> dict:
    return json.loads((LITE / "jupyter-lite.json").read_text(encoding="utf-8"))["jupyter-config-data"]


def test_the_site_carries_the_exercises_and_no_other_notebook():
    files = LITE / "files"
    assert sorted(path.relative_to(files) for path in files.rglob("*.ipynb")) == EXERCISES
    assert len(EXERCISES) == 9
    for notebook in EXERCISES:
        assert (files / notebook).read_bytes() == (ROOT / "exercises" / notebook).read_bytes()


def test_no_line_of_a_solution_is_in_the_site():
    taught = "".join(map(source, lessons())) + "".join(
        path.read_text() for path in (ROOT / "attnlib").rglob("*.py")
    )  # which is installed wherever the exercises are done
    secret = set()
    for path in (ROOT / "solutions").glob("*/*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:
            for block in re.findall(r"BEGIN SOLUTION\n(.*?)### END SOLUTION", cell.source, re.DOTALL):
                secret |= {line.strip() for line in block.splitlines() if len(line.strip()) > 25}
    secret = {line for line in secret if line not in taught}
    assert len(secret) > 50
    added = [path for path in LITE.rglob("*") if path.is_file() and path.relative_to(LITE).parts[0] != "build"]
    plain = [path.read_bytes() for path in added if path.suffix != ".whl"]  # in build/ lies JupyterLite itself
    packed = [archive.read(name) for archive in wheels() for name in archive.namelist()]
    published = b"\n".join([*plain, *packed]).replace(b'\\"', b'"').decode(errors="ignore")
    assert not {line for line in secret if line in published}
    assert "BEGIN SOLUTION\\n" not in published


def wheels() -> list[zipfile.ZipFile]:
    return [zipfile.ZipFile(path) for path in sorted((LITE / "pypi").glob("*.whl"))]


def test_attnlib_is_there_as_it_is_here_and_alone():
    wheel = zipfile.ZipFile(LITE / "pypi" / f"attnlib-{attnlib.__version__}-py3-none-any.whl")
    about = f"attnlib-{attnlib.__version__}.dist-info/"
    carried = {name: wheel.read(name) for name in wheel.namelist() if not name.startswith(about)}
    library = [path for path in (ROOT / "attnlib").rglob("*") if path.suffix in {".py", ".toml", ".txt", ".typed"}]
    assert carried == {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in library}
    asked = map(Requirement, email.message_from_bytes(wheel.read(f"{about}METADATA")).get_all("Requires-Dist"))
    there = {"sys_platform": "emscripten", "extra": ""}
    assert [one.name for one in asked if not one.marker or one.marker.evaluate(there)] == ["numpy"]


def test_attnlib_is_loaded_before_the_first_cell():
    *of_pyodide, ours = settings()["litePluginSettings"][f"{KERNEL}:kernel"]["loadPyodideOptions"]["packages"]
    assert of_pyodide == ["numpy", "matplotlib"]
    (program,) = (LITE / "extensions" / KERNEL / "static").glob("comlink.worker.*.js")
    assert (program.parent / ours).resolve().is_file()


def test_what_needs_a_server_is_not_there():
    assert [one["name"] for one in settings()["federated_extensions"]] == [KERNEL]
    assert "@jupyter/nbgrader" in settings()["disabledExtensions"]
    assert not [path for path in LITE.rglob("*") if "nbgrader" in path.name or path.suffix == ".map"]


@pytest.mark.parametrize("notebook", EXERCISES, ids=lambda path: path.stem)
def test_the_chapter_and_the_page_of_an_assignment_lead_to_its_notebook(notebook):
    page = f"exercises/{notebook.with_suffix('.html')}"
    chapters = [f"{one}.html" for one in lessons() if f'href="../{page}"' in re.sub(r"<nav.*?</nav>", "", article(one))]
    assert chapters
    leading = [one for one in [page, *chapters] if addresses(one)]
    assert leading[0] == page
    assert len(leading) > 1
    for one in leading:
        (address,) = addresses(one)
        path, _, asked = address.partition("?path=")
        assert ((HTML / one).parent / path).resolve() == LITE / "notebooks" / "index.html"
        assert one != page or asked == str(notebook)
        assert (LITE / "files" / asked).is_file()


def article(lesson: str) -> str:
    return text(f"{lesson}.html").partition('<article class="bd-article"')[2]


def addresses(page: str) -> list[str]:
    return re.findall(r'href="([^"]+)">Do this exercise in your browser<', text(page))


def test_each_exercise_has_one_chapter_that_leads_to_it():
    asked = sorted(a.partition("?path=")[2] for one in lessons() for a in addresses(f"{one}.html"))
    assert asked == [str(notebook) for notebook in EXERCISES]


def test_a_site_that_carries_its_own_python_names_no_other_host(tmp_path):
    made = tmp_path / "pyodide"
    made.mkdir()
    for name in ("pyodide.mjs", "pyodide-lock.json"):
        (made / name).write_text("{}")
    with tarfile.open(tmp_path / "release.tar.bz2", "w:bz2") as archive:
        archive.add(made, "pyodide")
    done = run_tool("lite", tmp_path / "lite", "--pyodide", "release.tar.bz2", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    config = json.loads((tmp_path / "lite" / "jupyter-lite.json").read_text())["jupyter-config-data"]
    kernel = config["litePluginSettings"][f"{KERNEL}:kernel"]
    assert kernel["pyodideUrl"] == "./static/pyodide/pyodide.mjs"
    assert (tmp_path / "lite" / kernel["pyodideUrl"]).read_text() == "{}"
    assert kernel["disablePyPIFallback"] is True


def test_an_archive_that_is_not_there_is_named_and_the_site_stays(tmp_path):
    (tmp_path / "lite").mkdir()
    done = run_tool("lite", tmp_path / "lite", "--pyodide", "no-such.tar.bz2")
    assert done.returncode == 1
    assert done.stderr.startswith("no-such.tar.bz2 came, but a release of Pyodide")
    assert (tmp_path / "lite").is_dir()


def test_the_documented_command_carries_it():
    (command,) = re.findall(r"^make lite PYODIDE=\S+$", source("book/install"), re.MULTILINE)
    would = subprocess.run([*command.split(), "-n"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert f'_tools.lite _build/html/lite/ --pyodide "{command.partition("=")[2]}"' in would


@pytest.fixture(scope="module")
def python():
    try:
        return distribution()
    except FileNotFoundError as none:
        pytest.skip(str(none))


@pytest.fixture(scope="module")
def visitor(browser, site, python):
    with visiting(browser, site, python) as both:
        yield both


@contextmanager
def visiting(browser, site, python):
    """A reader's browser, in which Pyodide's address is answered from a folder; and what went wrong in it."""
    wrong = []

    def answer(route):
        file = python / route.request.url.rpartition("/")[2]
        head = {"Access-Control-Allow-Origin": "*"}
        if file.is_file():
            route.fulfill(path=file, headers=head, content_type=KINDS.get(file.suffix, "application/octet-stream"))
        else:
            route.fulfill(status=404, headers=head)  # what is compiled: NumPy, and what stands on it

    def asked(request):
        if not request.url.startswith((site, "data:", "blob:", PYODIDE_CDN_URL)):
            wrong.append(f"foreign: {request.url}")

    def answered(response):
        if response.status > 399 and response.url.startswith(site):
            wrong.append(f"{response.status}: {response.url}")

    # In a browser that has opened hundreds of pages, JupyterLab's may stop before they show anything.
    with launch(browser.browser_type) as new, new_context(new, viewport={"width": 1280, "height": 900}) as context:
        context.route(f"{PYODIDE_CDN_URL}/**", answer)
        context.on("request", asked)
        context.on("response", answered)
        context.on("weberror", lambda error: wrong.append(f"page error: {error.error}"))
        yield context, wrong


@contextmanager
def python_withheld(context):
    """Leave all requests for Python unanswered, even those of a page's workers, which ``page.route`` would miss."""

    def never_answer(_route):
        pass

    context.route(f"{PYODIDE_CDN_URL}/**", never_answer)
    try:
        yield
    finally:
        context.unroute(f"{PYODIDE_CDN_URL}/**", never_answer)


@contextmanager
def visit(visitor, site, notebook=EXERCISES[1]):
    """Open an exercise from its page of the book, as a reader does, and close it again."""
    context, wrong = visitor
    page = context.new_page()
    page.goto(f"{site}exercises/{notebook.with_suffix('.html')}")
    page.get_by_role("link", name="Do this exercise in your browser").click()
    page.get_by_role("heading", name="Exercises: self-attention").wait_for()
    page.get_by_text("Python (Pyodide)").wait_for()
    yield page
    assert not wrong
    page.close()


def run(page, code):
    """Run code in a new cell above all others, and return what comes out below it."""
    page.get_by_role("heading", name="Exercises: self-attention").click()
    page.keyboard.press("Escape")
    for key in ("Control+Home", "a", "Enter"):
        page.keyboard.press(key)
    page.keyboard.insert_text(f"{code}\nprint('done', {len(code)})")
    page.keyboard.press("Shift+Enter")
    output = page.locator(OUTPUT, has_text=re.compile(rf"\bdone {len(code)}\b"))
    output.wait_for()
    return output.inner_text()


# Records what the page says about Python from now on.
STATES = """() => {
    const said = [], state = document.querySelector("#course span");
    new MutationObserver(() => said.push(state.textContent)).observe(state, { childList: true });
    return said;
}"""

# The part of attnlib that leaves torch out, without the rest, which wants NumPy.
ALONE = """\
import importlib.util, sys, types
sys.modules["attnlib.checks.book_links"] = types.SimpleNamespace(BOOK_VARIABLE="ATTENTION_BOOK")
sys.modules["attnlib._extras"] = types.SimpleNamespace(install_command="pip install {}".format)
spec = importlib.util.spec_from_file_location("alone", next(
    f"{place}/attnlib/checks/browser.py" for place in sys.path if place.endswith("site-packages")
))
alone = importlib.util.module_from_spec(spec)
spec.loader.exec_module(alone)
alone.begin()
import os
print(sys.platform, os.environ["ATTENTION_BOOK"])"""


@pytest.fixture(scope="module")
def exercise(visitor, site):
    """An exercise, opened once for two tests that run code, since a browser takes half a minute to start Python."""
    with visit(visitor, site) as page:
        page.locator("#course", has_text="Python is ready.").wait_for()
        yield page


DISPLAY = "from IPython.display import HTML, display\ndisplay(HTML({!r}))"


def html_of(name, answer):
    """The HTML of a report. No check can run in the browser of the tests, because it has no NumPy."""
    return examine(name, answer, seed=0)._repr_mimebundle_()["text/html"]


def test_hints_lead_to_the_book_around_the_notebook_and_checks_that_pass_are_kept(exercise, visitor, site):
    page = exercise
    run(page, DISPLAY.format(html_of("cosine", lambda query, key: query)))
    run(page, DISPLAY.format(html_of("dot", attnlib.dot)))
    kept = page.evaluate("window.courseProgress.load()")
    assert kept == {"read": {}, "answers": {}, "checks": {str(EXERCISES[1].with_suffix("")): {"dot": True}}}
    link = page.get_by_role("link", name="“What the cosine changes”", exact=True)
    link.scroll_into_view_if_needed()
    expect(link).to_have_attribute("href", f"{site}book/self-attention.html#what-the-cosine-changes")
    with page.context.expect_page() as opened:
        link.click()
    opened.value.get_by_role("heading", name="What the cosine changes").wait_for()
    assert opened.value.url == link.get_attribute("href")
    opened.value.goto(f"{site}book/index.html")
    opened.value.get_by_text("you have passed 1 of ").wait_for()
    opened.value.close()
    page.evaluate("window.courseProgress.erase()")
    assert not visitor[1]


def test_an_exercise_opens_runs_leaves_torch_out_is_kept_and_can_be_downloaded(exercise, visitor, site, tmp_path):
    page = exercise
    assert page.get_by_role("button", name="Validate").count() == 0
    assert page.get_by_text("Formgrader").count() == 0
    assert "42" in run(page, "print(6 * 7)")
    page.locator("#course", has_text="Python is ready.").wait_for()
    states = page.evaluate_handle(STATES)
    run(page, "import time; time.sleep(1)")
    page.locator("#course", has_text="Python is ready.").wait_for()
    seen = states.json_value()
    assert "Python is busy." in seen
    assert seen[-1] == "Python is ready."
    assert f"emscripten {site.rstrip('/')}\n" in run(page, ALONE)
    assert "This cell is left out" not in run(page, "x = 1")
    said = run(page, "import torch\n\ndef twice(y):\n    return torch.add(y, y)\n\n")
    assert said.startswith("There is no PyTorch in a browser. A part of this cell is left out")
    page.keyboard.press("Control+s")
    page.get_by_text(re.compile("Last Checkpoint: (now|.* seconds? ago)")).wait_for()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="File").click()
        page.get_by_role("menuitem", name="Download", exact=True).click()
    download.value.save_as(tmp_path / "mine.ipynb")
    page.close()
    mine, given = (nbformat.read(path, as_version=4).cells for path in (tmp_path / "mine.ipynb", released()))
    assert [cell.source for cell in mine if "torch.add" in cell.source or "6 * 7" in cell.source]
    marked = [
        {cell.id: cell.metadata.nbgrader for cell in cells if "nbgrader" in cell.metadata} for cells in (mine, given)
    ]
    assert marked[0] == marked[1]
    # Starting Python takes longer than everything that follows, none of which needs it.
    with python_withheld(visitor[0]), visit(visitor, site) as page:
        page.get_by_text("print(6 * 7)").wait_for()
        page.locator(OUTPUT, has_text=re.compile(r"\b42\s+done")).wait_for()  # the site's port may contain 42 too
        page.set_viewport_size({"width": 360, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
    with python_withheld(visitor[0]), fresh_copy(visitor, site) as page:
        assert page.get_by_text("print(6 * 7)").count() == 0


@contextmanager
def fresh_copy(visitor, site):
    """Check that the list of files has all exercises, then delete one there and open it again."""
    context, wrong = visitor
    page = context.new_page()
    page.goto(f"{site}lite/tree/index.html")
    for notebook in EXERCISES:
        page.get_by_text(notebook.parts[0], exact=True).wait_for()
    page.get_by_text(EXERCISES[1].parts[0], exact=True).dblclick()
    page.get_by_text(EXERCISES[1].name, exact=True).click()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").wait_for(state="detached")
    page.goto(f"{site}lite/notebooks/index.html?path={EXERCISES[1]}")
    page.get_by_role("heading", name="Exercises: self-attention").wait_for()
    page.get_by_text("attnlib.checks import check").wait_for()
    yield page
    assert not wrong
    page.close()


def released() -> Path:
    return ROOT / "exercises" / EXERCISES[1]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_address_of_the_site_lists_the_exercises_and_says_what_is_loaded(opened, scheme):
    page, wrong = opened("lite/", scheme=scheme, width=360)
    listed = page.locator("ol a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert listed == [f"notebooks/index.html?path={notebook}" for notebook in EXERCISES]
    assert "cdn.jsdelivr.net" in page.inner_text("main")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert not wrong


def test_without_its_python_a_notebook_says_so_and_leads_back(browser, site):
    with launch(browser.browser_type) as new, new_context(new, viewport={"width": 360, "height": 740}) as context:
        context.route(f"{PYODIDE_CDN_URL}/**", lambda route: route.abort())
        page = context.new_page()
        page.goto(f"{site}lite/notebooks/index.html?path={EXERCISES[1]}", wait_until="commit")
        said = page.locator("#course [role=status]")
        expect(said).to_contain_text("Python could not be loaded from cdn.jsdelivr.net")
        assert page.locator("#course", has_text="Python is").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        links = page.locator("#course a").evaluate_all("links => links.map(link => link.href)")
        assert [one.removeprefix(site) for one in links] == ["book/index.html", "lite/index.html", "book/install.html"]
        assert all((HTML / one.removeprefix(site)).is_file() for one in links)


@pytest.mark.skipif("PYODIDE" not in os.environ, reason="NumPy for browsers is on no registry: set PYODIDE=/a/release")
def test_a_check_speaks_in_the_browser(visitor, site):
    answer = "def softmax(x, axis=-1):\n    e = np.exp(x - x.max(axis, keepdims=True))\n"
    answer += "    return e / e.sum(axis, keepdims=True)"
    with visit(visitor, site) as page:
        imports = "import numpy as np\nfrom attnlib.checks import check"
        run(page, f"{imports}\n\n{answer}\n\nprint(check('softmax', softmax, points=4))")
        page.locator(OUTPUT, has_text="softmax: right").wait_for()
        assert "There is no PyTorch" in run(page, "check('attention', softmax, backend='torch')")
