"""The tiny course as a fixture. It stands in a module of its own, since processes that grade have to import it."""

import contextlib
import functools
import shutil
from collections.abc import Iterator

import nbformat
import pytest
from tiny import REPOSITORY, TinyCourse, tiny_notebook

from grading.pool import Boxes
from grading.sandbox.host import Host
from grading.sandbox.limits import Limits


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyCourse:
    root = tmp_path_factory.mktemp("repository")
    shutil.copy(REPOSITORY / "nbgrader_config.py", root)
    (root / "solutions" / "tiny").mkdir(parents=True)
    nbformat.write(tiny_notebook(), root / "solutions" / "tiny" / "tiny.ipynb")
    return TinyCourse.at(root, tmp_path_factory.mktemp("class"))


@pytest.fixture(scope="session")
def host() -> Iterator[Host]:
    """A box for all tests that need none of their own, whatever their limits, since starting one takes seconds."""
    with Host(Limits()) as box:
        yield box


@pytest.fixture(scope="session")
def boxes(host) -> Iterator[Boxes]:
    """Room for two submissions at a time in that box."""
    boxes = Boxes(2, host)
    yield boxes
    boxes.close()


@pytest.fixture(scope="module")
def commands_share_a_box(host) -> Iterator[None]:
    """Let commands use and test the existing box, instead of starting and testing their own."""

    def existing(limits: Limits, *, sandboxed: bool = True) -> Host:
        assert sandboxed
        return host

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host, "close", lambda: None)
        for module in ("grading.__main__", "grading.run"):
            patch.setattr(f"{module}.Host", existing)
        yield


@pytest.fixture(scope="module")
def browser():
    """A browser for the tests of one module: while it is open, no test can run an event loop of its own."""
    from _tools.chromium import chromium  # which takes a while to import, for the few modules that open pages

    with contextlib.ExitStack() as stack:
        try:
            browser = stack.enter_context(chromium())
        except FileNotFoundError as none:
            pytest.skip(str(none))
        yield browser


@pytest.fixture(scope="module")
def new_context(browser):
    """A function that opens a context in the browser, with Playwright's options and a longer timeout."""
    from _tools.chromium import new_context

    return functools.partial(new_context, browser)
