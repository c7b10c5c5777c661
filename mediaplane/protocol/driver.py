"""The shortest way to PostgreSQL, for the few statements between a new job and its start."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

# As a driver or SQLAlchemy reads it: the value of each column by its name.
Row = Mapping[Any, Any]


def execute_directly(conn: Connection, sql: str, bound: Mapping[str, Any]) -> list[Row]:
    """Execute a statement in the driver's own words; return its rows as the driver reads them.

    For every execution SQLAlchemy describes the columns of the result anew, which took longer than
    the statement itself. Errors are SQLAlchemy's all the same, and so are the events of its engine.
    """
    # SQLite does without the driver, which takes long to import.
    from psycopg import Error  # noqa: PLC0415
    from psycopg.rows import dict_row  # noqa: PLC0415

    pooled = conn.connection
    cursor = pooled.cursor(row_factory=dict_row)
    for listener in conn.dispatch.before_cursor_execute:
        listener(conn, cursor, sql, bound, None, False)
    try:
        rows: list[Row] = cursor.execute(sql, bound).fetchall()
    except Error as error:
        is_lost = conn.dialect.is_disconnect(error, pooled.driver_connection, cursor)  # type: ignore[arg-type]
        if is_lost:
            conn.invalidate(error)
        raise DBAPIError.instance(
            sql, bound, error, Error, connection_invalidated=is_lost, dialect=conn.dialect
        ) from error
    cursor.close()
    return rows
