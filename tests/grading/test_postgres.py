"""The gradebook on a real PostgreSQL server: the rows that nbgrader writes there, in one transaction."""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from gradebooks import (
    ASSIGNMENT,
    DUE,
    LATE,
    STORIES,
    Fault,
    Gradebooks,
    Graded,
    Nbgraders,
    contents,
    handed_in,
    mark_everything,
    marked,
    marked_meanwhile,
    raise_fault,
    released,
    rich_course,
    tell,
)
from nbgrader.api import InvalidEntry
from sqlalchemy import create_engine
from sqlalchemy.exc import OperationalError

from grading.course import GradingError, environment, quiet
from grading.gradebook.migrate import migrate

pytestmark = pytest.mark.slow

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'psycopg[binary]'")

PAGE = Path(__file__).parents[2] / "book" / "teaching" / "run-it-on-a-server.md"
TOLD = ["half-right", "unanswered", "late", "marked-then-better", "without-a-notebook"]


def binaries() -> Path | None:
    """Return the folder of the newest PostgreSQL here that can make and start a server."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name), reverse=True)
    named = shutil.which("postgres")
    folders += [Path(named).resolve().parent] if named else []
    return next((folder for folder in folders if (folder / "initdb").exists()), None)


@pytest.fixture(scope="module")
def server():
    """Yield the address of a server of our own, on a socket in a folder of its own, up to the name of a database."""
    if not (programs := binaries()):
        pytest.skip("there is no PostgreSQL server: neither `postgres` nor /usr/lib/postgresql/*/bin/initdb")
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    user = "nobody" if os.getuid() == 0 else None  # it refuses to run as root
    if user:
        shutil.chown(folder, user)

    def call(program, *options):
        command = [programs / program, "-D", folder / "data", *options]
        with (folder / "log").open("a") as log:  # not a pipe: the server would hold it open
            subprocess.run(command, user=user, cwd=folder, stdout=log, stderr=log, check=True, timeout=600)

    try:
        call("initdb", "--username=grader", "--auth=trust", "--encoding=UTF8", "--no-sync")
        call("pg_ctl", "-w", "start", "-o", f"-k {folder} -c listen_addresses='' -c fsync=off")
        yield f"host={folder}&user=grader"
        call("pg_ctl", "-w", "stop", "-m", "immediate")
    finally:
        shutil.rmtree(folder)


def url(server: str, database: str) -> str:
    return f"postgresql+psycopg:///{database}?{server}"


def execute(server: str, statement: str) -> None:
    engine = create_engine(url(server, "postgres"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()


@pytest.fixture(scope="module")
def ways(server, tmp_path_factory):
    course = rich_course(tmp_path_factory.mktemp("repository"), tmp_path_factory.mktemp("class"))
    nbgraders, ours = (kind(course, ASSIGNMENT, url(server, kind.__name__.lower())) for kind in (Nbgraders, Gradebooks))
    execute(server, "CREATE DATABASE nbgraders")
    nbgraders.register()
    execute(server, "CREATE DATABASE gradebooks TEMPLATE nbgraders")
    return nbgraders, ours


@pytest.fixture(scope="module")
def ours(ways):
    return ways[1]


@pytest.mark.parametrize("student", TOLD)
def test_every_row_is_nbgraders(ways, student):
    for way in ways:
        with quiet():
            tell(student, STORIES[student], way)
    nbgraders, ours = (contents(way.url) for way in ways)
    assert ours == nbgraders
    assert student in str(ours["grade"])


def test_a_fault_at_any_statement_leaves_everything_as_it_was(ours):
    notebooks = handed_in(released(ours.course, ASSIGNMENT), 0.5)
    tell("faulty", [Graded(1, DUE), marked], ours)
    before = contents(ours.url)
    with ours.open() as gradebook:
        fault = Fault(gradebook, raise_fault)
        while not fault.committing:
            fault.next()
            with pytest.raises(RuntimeError, match="a fault"):
                gradebook.record("faulty", notebooks, LATE)
            assert contents(ours.url) == before, fault.statements
        assert len(fault.statements) > 5
        fault.stop()
        gradebook.record("faulty", notebooks, LATE)
    assert contents(ours.url) != before


def test_a_connection_that_is_lost_leaves_everything_as_it_was_and_the_next_submission_gets_a_new_one(ours, server):
    notebooks = handed_in(released(ours.course, ASSIGNMENT), 0.5)
    before = contents(ours.url)
    lost = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'gradebooks'"
    with ours.open() as gradebook:
        fault = Fault(gradebook, lambda: execute(server, lost))
        fault.at = 6
        with pytest.raises(InvalidEntry, match="terminating connection"):
            gradebook.record("cut-off", notebooks, LATE)
        assert contents(ours.url) == before
        fault.stop()
        gradebook.record("cut-off", notebooks, LATE)
    assert "cut-off" in str(contents(ours.url)["grade"])


def test_a_person_marks_before_a_submission_is_written_or_after_and_not_meanwhile(ours):
    tell("marked-meanwhile", [Graded(1)], ours)
    person = create_engine(ours.url)

    def mark():
        with person.connect() as connection:
            connection.exec_driver_sql("SET lock_timeout = '50ms'")
            with pytest.raises(OperationalError, match="lock timeout"):
                connection.exec_driver_sql("UPDATE grade SET manual_score = 1, needs_manual_grade = false")

    with ours.open() as gradebook:
        fault = Fault(gradebook, mark)
        fault.at = 4  # the grades have been read, and nothing is written yet
        gradebook.record("marked-meanwhile", handed_in(released(ours.course, ASSIGNMENT), 0.5), None)
        assert fault.happened
        assert "FROM comment" in fault.statements[3]
    person.dispose()


def test_a_class_moves_from_sqlite_with_all_its_marks_and_comments(server, tmp_path_factory):
    course = rich_course(tmp_path_factory.mktemp("repository"), folder := tmp_path_factory.mktemp("class"))
    before = Gradebooks(course, ASSIGNMENT, f"sqlite:///{folder}/gradebook.db")
    before.register()
    for student in TOLD:
        tell(student, STORIES[student], before)
    execute(server, "CREATE DATABASE moved")
    with environment("ATTENTION_DB", url(server, "moved")):
        counts = migrate(course, before.url)
        with pytest.raises(GradingError, match="is not empty"):
            migrate(course, before.url)
    assert contents(url(server, "moved")) == contents(before.url)
    assert counts["marks given by hand"] == 2
    assert counts["comments"] == 1


def test_the_backup_that_the_page_describes_restores_every_row(ours, server):
    tell("backed-up", [Graded(1, DUE), marked], ours)
    folder, user = (part.partition("=")[2] for part in server.split("&"))
    settings = os.environ | {"PATH": f"{binaries()}:{os.environ['PATH']}", "PGHOST": folder, "PGUSER": user}
    shown = r"^(?:sudo --user postgres )?((?:createdb|pg_restore) .*restored.*|pg_dump .*)$"
    commands = [match[1] for match in re.finditer(shown, PAGE.read_text(encoding="utf-8"), re.MULTILINE)]
    assert [command.split()[0] for command in commands] == ["pg_dump", "createdb", "pg_restore"]
    place = ours.course.folder
    for command in commands:
        words = [word.replace("=attention", "=gradebooks") for word in command.split()]
        subprocess.run(words, cwd=place, env=settings, check=True, timeout=600)
    assert contents(url(server, "restored")) == contents(ours.url)
    assert "backed-up" in str(contents(url(server, "restored"))["grade"])


def test_what_is_marked_while_a_gradebook_is_copied_is_not_copied_by_halves(ours, server, monkeypatch):
    tell("marked-later", [Graded(1)], ours)
    before = contents(ours.url)
    copied = marked_meanwhile(monkeypatch, lambda: mark_everything(ours.url))
    execute(server, "CREATE DATABASE consistent")
    with environment("ATTENTION_DB", url(server, "consistent")):
        migrate(ours.course, ours.url)
    assert copied == [True]
    assert contents(url(server, "consistent")) == before != contents(ours.url)
