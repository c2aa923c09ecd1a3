"""What holds for all tests: marks, the order of files, how many cases and seeds run, and when memory is collected."""

import gc
import random
import sys
from collections import defaultdict

import hypothesis
import pytest

# On a busy machine any example may take long, so that time never makes a test fail.
hypothesis.settings.register_profile("course", deadline=None)
hypothesis.settings.load_profile("course")

# Twenty thousand tests and what they import stay until the end: looking for unused objects among them takes long.
gc.disable()


def pytest_addoption(parser):
    help = "run at most this many cases of each test, always the same ones, which `make check` does"
    parser.addoption("--cases", type=int, metavar="MOST", help=help)
    help = (
        "begin with the tests of this file; more than one file can be named"  # pytest forgets files of a named folder
    )
    parser.addoption("--first", action="append", default=[], metavar="FILE", help=help)
    help = "try each check with this many seeds; the weekly workflow tries 50"
    parser.addoption("--seeds", type=int, default=3, metavar="NUMBER", help=help)
    help = "grade this many submissions on a cluster that fails"
    parser.addoption("--submissions", type=int, default=24, metavar="NUMBER", help=help)


def pytest_collection_finish():
    """Look for unused objects again, but only among those that the tests make."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def seeds(pytestconfig):
    """Return the seeds with which a check is tried on answers whose outcome is known."""
    return range(pytestconfig.getoption("seeds"))


def pytest_collection_modifyitems(config, items):
    for item in items:
        if "browser" in item.fixturenames:
            item.add_marker(pytest.mark.browser)
    first = [config.rootpath / name for name in config.getoption("first")]
    items.sort(key=lambda item: first.index(item.path) if item.path in first else len(first))
    if most := config.getoption("cases"):
        chosen = some_cases([item.nodeid for item in items], most)
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in chosen])
        items[:] = [item for item in items if item.nodeid in chosen]


def some_cases(names, most):
    """Choose at most this many cases of each test, at random, so that they cover all of its parameters."""
    cases = defaultdict(list)
    for name in names:
        cases[name.partition("[")[0]].append(name)
    return {name for test, found in cases.items() for name in random.Random(test).sample(found, min(most, len(found)))}


def pytest_runtest_setup():
    """Forget which cases failed in an earlier test of this process: a check would try them first."""
    if session := sys.modules.get("attnlib.checks.session"):
        session._outcomes.clear()
