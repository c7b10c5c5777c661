"""The shortest way to the database, for the few statements that are worth it."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

# As a driver or SQLAlchemy reads it: the value of each column by its name.
Row = Mapping[Any, Any]
# The same without the names: the values alone, in the order in which the query names them.
Values = tuple[Any, ...]

_Read = TypeVar("_Read")


def execute_directly(conn: Connection, sql: str, bound: Mapping[str, Any]) -> list[Row]:
    """Execute a statement in the driver's own words; return its rows as the driver reads them.

    For every execution SQLAlchemy describes the columns of the result anew, which took longer than
    the statement itself. Errors are SQLAlchemy's all the same, and so are the events of its engine.
    """
    return _execute(conn, sql, bound, _named)


def query_directly(conn: Connection, sql: str, bound: Mapping[str, Any]) -> list[Row]:
    """Execute a query with its parameters written as `:name`, whatever the driver's own words."""
    return execute_directly(conn, _worded(sql, conn.dialect.name), bound)


def query_values(conn: Connection, sql: str, bound: Mapping[str, Any]) -> list[Values]:
    """Execute a query likewise, for pages: to name their columns took a fifth of the time."""
    return _execute(conn, _worded(sql, conn.dialect.name), bound, _unnamed)


def query_after(conn: Connection, first: str, sql: str, bound: Mapping[str, Any]) -> list[Values]:
    """Execute a query likewise on PostgreSQL, after another statement and in one transaction.

    It is begun and ended by the server, and both go there and back together.
    """
    # Its driver takes long to import, and SQLite does without.
    from mediaplane.protocol.trips import trip  # noqa: PLC0415

    pooled = conn.connection
    line: Any = pooled.driver_connection
    for listener in conn.dispatch.before_cursor_execute:
        worded = _worded(sql, conn.dialect.name)
        listener(conn, pooled.cursor(), worded, bound, None, False)
    try:
        return trip(line, conn.info, (first, sql), bound)
    except conn.dialect.loaded_dbapi.Error as error:
        raise _translated(conn, sql, bound, error) from error


def _named(cursor: Any) -> list[Row]:
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, values, strict=True)) for values in cursor.fetchall()]


def _unnamed(cursor: Any) -> list[Values]:
    rows: list[Values] = cursor.fetchall()
    return rows


def _execute(
    conn: Connection, sql: str, bound: Mapping[str, Any], read: Callable[[Any], _Read]
) -> _Read:
    cursor: Any = conn.connection.cursor()
    for listener in conn.dispatch.before_cursor_execute:
        listener(conn, cursor, sql, bound, None, False)
    try:
        cursor.execute(sql, bound)
        found = read(cursor)
    except conn.dialect.loaded_dbapi.Error as error:
        raise _translated(conn, sql, bound, error) from error
    cursor.close()
    return found


def _translated(conn: Connection, sql: str, bound: Mapping[str, Any], error: Any) -> BaseException:
    """Return SQLAlchemy's error for one of the driver, and let go of a connection that is lost."""
    driver_error = conn.dialect.loaded_dbapi.Error
    is_lost = conn.dialect.is_disconnect(error, conn.connection.driver_connection, None)
    if is_lost:
        conn.invalidate(error)
    translated: BaseException = DBAPIError.instance(
        sql,
        bound,
        error,
        driver_error,
        hide_parameters=True,
        connection_invalidated=is_lost,
        dialect=conn.dialect,
    )
    return translated


@lru_cache(maxsize=256)
def _worded(sql: str, dialect: str) -> str:
    return re.sub(r":(\w+)", r"%(\1)s", sql) if dialect == "postgresql" else sql
