"""Copy a gradebook into another database, as a whole or not at all: from SQLite to PostgreSQL, for instance."""

from collections.abc import Mapping
from contextlib import closing

from sqlalchemy import Connection, func, select

from grading._nbgrader import Base, Comment, Grade
from grading.course import Course, GradingError
from grading.gradebook.create import open_gradebook
from grading.gradebook.lookup import connect, shown
from grading.run_state import lock
from grading.text import counted

ROWS_PER_BATCH = 1_000  # how many rows are read and written at a time
COUNTED = {
    "marks": select(func.count(Grade.id)),
    "marks given by hand": select(func.count(Grade.manual_score)),
    "comments": select(func.count(Comment.manual_comment)),
}


def migrate(course: Course, source: str) -> Mapping[str, int]:
    """Copy everything from the gradebook ``source`` into that of the class, and return the counts.

    Args:
        course: the class; its gradebook is the one that nbgrader_config.py names, by ATTENTION_DB for instance.
        source: the SQLAlchemy URL of the gradebook to copy. It is only read.

    Raises:
        GradingError: there is no such gradebook, it is the class's own, or the class's own is not empty.
    """
    target = course.config().CourseDirectory.db_url
    if source == target:
        raise GradingError(f"{shown(source)} is the class's gradebook already: set ATTENTION_DB to the new address")
    if (read := connect(source)) is None:
        raise GradingError(f"there is no gradebook at {shown(source)}: --from takes the address of the one to copy")
    new = open_gradebook(course)
    with lock(course), closing(read), new, new.engine.begin() as written:
        _require_empty(written, target)
        _take_snapshot(read)
        _copy(read, written)
        before, after = _counted(read), _counted(written)
        if before != after:  # leaving the block by an exception undoes everything
            raise GradingError(f"{shown(source)} holds {before}, but {after} arrived: nothing was copied")
    return after


def _require_empty(target: Connection, url: str) -> None:
    for table in Base.metadata.sorted_tables:
        if table.name != "course" and (rows := target.scalar(select(func.count()).select_from(table))):
            raise GradingError(
                f"the gradebook {shown(url)} is not empty: it has {counted(rows, 'row')} in {table.name!r}. Nothing "
                f"was copied; name an empty database in ATTENTION_DB"
            )


def _take_snapshot(source: Connection) -> None:
    """Make all later reads show the current state, even if somebody enters marks meanwhile."""
    source.rollback()  # ends the transaction that looking for the tables began
    if source.dialect.name == "sqlite":
        source.exec_driver_sql("BEGIN")  # Python would begin none until something is written
    else:
        source.execution_options(isolation_level="REPEATABLE READ")


def _copy(source: Connection, target: Connection) -> None:
    for table in Base.metadata.sorted_tables:  # a row comes after those that it refers to
        there = set(target.scalars(select(table.c.id))) if table.name == "course" else set()
        for rows in source.execute(select(table)).mappings().partitions(ROWS_PER_BATCH):
            if new := [dict(row) for row in rows if row["id"] not in there]:
                target.execute(table.insert(), new)


def _counted(connection: Connection) -> dict[str, int]:
    rows = {table.name: select(func.count()).select_from(table) for table in Base.metadata.sorted_tables}
    del rows["course"]  # nbgrader makes this row together with the tables
    return {name: connection.scalar(query) or 0 for name, query in (rows | COUNTED).items()}
