"""The digests of engine and exercises change with what can change a score, and with nothing else."""

import shutil

import pytest
from tiny import REPOSITORY

from grading import version

CHANGES = {
    "attnlib/checks/evaluation.py": {"engine"},
    "attnlib/softmax.py": {"engine"},
    "grading/judge.py": {"engine"},
    "grading/sandbox/inside/cell_runner.py": {"engine"},
    "attnlib/checks/catalogue/self_attention/softmax.py": {"catalogue"},
    "attnlib/checks/catalogue/self_attention/new.py": {"catalogue"},
    "grading/sandbox/host.py": {"engine"},
    "grading/sandbox/inside/__main__.py": {"engine"},
    "grading/sanitize.py": {"engine"},
    "grading/report_of_another_kind.py": {"engine"},
    "grading/class_report/style.py": set(),
    "grading/__main__.py": set(),
    "grading/report.py": set(),
    "grading/verify.py": set(),
    "grading/pages.py": set(),
    "attnlib/plotting.py": set(),
    "grading/sample/__init__.py": set(),
}


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    place = tmp_path_factory.mktemp("packages")
    for name in ("attnlib", "grading"):
        shutil.copytree(REPOSITORY / name, place / name, ignore=shutil.ignore_patterns("__pycache__", "data"))
    return place


def digests(packages, monkeypatch):
    monkeypatch.setattr(version, "ROOT", packages)
    return {"engine": version.engine.__wrapped__(), "catalogue": version.catalogue.__wrapped__()}


@pytest.mark.parametrize("file", CHANGES)
def test_a_change_is_noticed_where_it_can_change_a_score(packages, monkeypatch, file):
    before = digests(packages, monkeypatch)
    with (packages / file).open("a") as stream:
        stream.write("\n")
    after = digests(packages, monkeypatch)
    assert {name for name in before if before[name] != after[name]} == CHANGES[file]


def test_what_is_left_out_is_there():
    assert [path for path in version.NOT_COUNTED if not (REPOSITORY / path).exists()] == []
