"""Make the tables of a new gradebook, as nbgrader does, and open gradebooks.

To learn the version of its tables, nbgrader starts the program ``alembic``, which has to be on the path and takes three
seconds. Here Alembic's Python interface is asked for the same version.
"""

from sqlalchemy import Connection, create_engine, inspect
from sqlalchemy.pool import NullPool

from grading._nbgrader import ALEMBIC_DIR, Base, Gradebook
from grading.course import Course
from grading.gradebook.sqlite import wait_and_lock


def create_tables(url: str) -> None:
    """If the database has no tables, make those of a gradebook in one transaction, and record their version."""
    engine = create_engine(url, poolclass=NullPool)
    if inspect(engine).get_table_names():
        return
    wait_and_lock(engine)
    with engine.begin() as connection:
        if not inspect(connection).get_table_names():  # nobody else has made them meanwhile
            Base.metadata.create_all(connection)
            _record_version(connection)


def _record_version(connection: Connection) -> None:
    from alembic.migration import MigrationContext  # slow to import, and only a new gradebook needs it
    from alembic.script import ScriptDirectory

    MigrationContext.configure(connection).stamp(ScriptDirectory(ALEMBIC_DIR), "head")


def open_gradebook(course: Course) -> Gradebook:
    """Open a class's gradebook, and make it if it does not exist."""
    directory = course.config().CourseDirectory
    create_tables(directory.db_url)
    return Gradebook(directory.db_url, directory.course_id)
