"""A new gradebook is as nbgrader would make it; no program is started for it, and a fault leaves nothing behind."""

import subprocess
import sys
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from sqlalchemy import create_engine, inspect, text

from grading.gradebook import create

pytestmark = pytest.mark.slow


def tables(url: str) -> dict[str, list[tuple[str, str, bool]]]:
    """Return the columns of every table, and the version that is noted."""
    engine = create_engine(url)
    found = inspect(engine)
    columns = {
        name: [(c["name"], str(c["type"]), c["nullable"]) for c in found.get_columns(name)]
        for name in sorted(found.get_table_names())
    }
    with engine.connect() as connection:
        (version,) = connection.scalars(text("SELECT version_num FROM alembic_version"))
    engine.dispose()
    return columns | {"version": version}


def no_program(*arguments, **_):
    raise AssertionError(f"a program was started: {arguments}")


def test_its_tables_and_their_version_are_those_that_nbgrader_makes(tmp_path, monkeypatch):
    nbgraders, ours = (f"sqlite:///{tmp_path}/{name}.db" for name in ("nbgraders", "ours"))
    with monkeypatch.context() as patch:
        patch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
        Gradebook(nbgraders).close()
    monkeypatch.setattr(subprocess, "Popen", no_program)
    create.create_tables(ours)
    assert tables(ours) == tables(nbgraders)


def test_one_that_is_there_stays_as_it_is(tmp_path):
    url = f"sqlite:///{tmp_path}/gradebook.db"
    create.create_tables(url)
    with Gradebook(url) as gradebook:
        gradebook.add_student("ada")
    before = (tmp_path / "gradebook.db").read_bytes()
    create.create_tables(url)
    assert (tmp_path / "gradebook.db").read_bytes() == before


def test_a_fault_on_the_way_leaves_no_tables(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path}/gradebook.db"
    with monkeypatch.context() as patch:
        patch.setattr(create, "_record_version", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            create.create_tables(url)
    assert inspect(create_engine(url)).get_table_names() == []
    create.create_tables(url)
    assert "alembic_version" in tables(url)
