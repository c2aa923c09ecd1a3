"""How a gradebook in an SQLite file is shared with other programs, such as Formgrader."""

from typing import Any

from sqlalchemy import Connection, Engine, event

BUSY_TIMEOUT = 30  # seconds to wait for another program that is using the same file


def wait_and_lock(engine: Engine) -> None:
    """Have SQLite wait for other programs, and take its lock for writing when a transaction begins.

    Python would only take it when the first row is written, and so overlook anything written after this transaction's
    first read.
    """
    if engine.dialect.name != "sqlite":
        return

    @event.listens_for(engine, "connect")
    def connected(connection: Any, _: object) -> None:
        connection.isolation_level = None  # Python begins no transaction by itself
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT * 1000}")

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    engine.dispose()  # discards the connection that opening the gradebook left in the pool
