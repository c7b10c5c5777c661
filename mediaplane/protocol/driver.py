"""The shortest way to the database, for the few statements that are worth it."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from mediaplane.protocol.engines import LINE

# As a driver or SQLAlchemy reads it: the value of each column by its name.
Row = Mapping[Any, Any]
# The same without the names: the values alone, in the order in which the query names them.
Values = tuple[Any, ...]
# A row of a page: its values, or all of them in one text.
Listed = Values | bytes

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


def query_after(conn: Connection, first: str, sql: str, bound: Mapping[str, Any]) -> list[Values]:
    """Execute a query likewise on PostgreSQL, after another statement and in one transaction.

    It is begun and ended by the server, and both go there and back together, past the driver.
    """
    worded = _worded(sql, "postgresql")
    line = conn.info[LINE]
    return _guarded(conn, worded, bound, None, lambda: line.together((first, sql), bound))


def query_values(conn: Connection, sql: str, bound: Mapping[str, Any]) -> list[Values]:
    """Execute a query likewise, for pages: to name their columns took a fifth of the time.

    On PostgreSQL past the driver too.
    """
    line = conn.info.get(LINE)
    worded = _worded(sql, conn.dialect.name)
    if line is None:
        return _execute(conn, worded, bound, _unnamed)
    return _guarded(conn, worded, bound, None, lambda: line.values(sql, bound))


def query_rows(conn: Connection, sql: str, bound: Mapping[str, Any]) -> list[Listed]:
    """Execute a query likewise, and have PostgreSQL write each row as one text (see texts.py).

    To know a row again that is enough, and to read fifty jobs as values takes a fifth longer.
    """
    line = conn.info.get(LINE)
    if line is None:
        return [*query_values(conn, sql, bound)]
    worded = _worded(sql, "postgresql")
    return _guarded(conn, worded, bound, None, lambda: line.texts(sql, bound))


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

    def run() -> _Read:
        cursor.execute(sql, bound)
        return read(cursor)

    found = _guarded(conn, sql, bound, cursor, run)
    cursor.close()
    return found


def _guarded(
    conn: Connection, sql: str, bound: Mapping[str, Any], cursor: Any, run: Callable[[], _Read]
) -> _Read:
    """Run a statement as SQLAlchemy would: with the events of its engine, and its errors."""
    pooled, driver_error = conn.connection, conn.dialect.loaded_dbapi.Error
    for listener in conn.dispatch.before_cursor_execute:
        listener(conn, cursor or pooled.cursor(), sql, bound, None, False)
    try:
        return run()
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


@lru_cache(maxsize=256)
def _worded(sql: str, dialect: str) -> str:
    return re.sub(r":(\w+)", r"%(\1)s", sql) if dialect == "postgresql" else sql
