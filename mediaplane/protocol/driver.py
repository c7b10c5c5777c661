"""The shortest way to the database, for the few statements that are worth it."""

import re
from collections.abc import Mapping
from functools import lru_cache
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
    pooled, driver_error = conn.connection, conn.dialect.loaded_dbapi.Error
    cursor = _new_cursor(conn)
    for listener in conn.dispatch.before_cursor_execute:
        listener(conn, cursor, sql, bound, None, False)
    try:
        rows: list[Any] = cursor.execute(sql, bound).fetchall()
    except driver_error as error:
        is_lost = conn.dialect.is_disconnect(error, pooled.driver_connection, cursor)
        if is_lost:
            conn.invalidate(error)
        raise DBAPIError.instance(
            sql,
            bound,
            error,
            driver_error,
            hide_parameters=True,
            connection_invalidated=is_lost,
            dialect=conn.dialect,
        ) from error
    if conn.dialect.name == "sqlite":
        names = [column[0] for column in cursor.description]
        rows = [dict(zip(names, values, strict=True)) for values in rows]
    cursor.close()
    return rows


def query_directly(conn: Connection, sql: str, bound: Mapping[str, Any]) -> list[Row]:
    """Execute a query with its parameters written as `:name`, whatever the driver's own words."""
    return execute_directly(conn, _worded(sql, conn.dialect.name), bound)


@lru_cache(maxsize=256)
def _worded(sql: str, dialect: str) -> str:
    return re.sub(r":(\w+)", r"%(\1)s", sql) if dialect == "postgresql" else sql


def _new_cursor(conn: Connection) -> Any:
    if conn.dialect.name == "sqlite":
        return conn.connection.cursor()
    # SQLite does without the driver of PostgreSQL, which takes long to import.
    from psycopg.rows import dict_row  # noqa: PLC0415

    return conn.connection.cursor(row_factory=dict_row)
