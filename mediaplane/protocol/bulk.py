"""Writes many rows at once, as fast as each database can."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from sqlalchemy import Connection

# With each statement: as many statements as rows would take twice the time.
_ROWS_AT_ONCE = 500


def insert_many(
    conn: Connection, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert rows, each with the values of these columns."""
    if not rows:
        return
    names = ", ".join(columns)
    if conn.dialect.name == "postgresql":
        cursor = conn.connection.cursor()
        with cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        return
    insert = f"INSERT INTO {table} ({names}) VALUES "
    marks = f"({', '.join('?' * len(columns))})"
    whole = len(rows) - len(rows) % _ROWS_AT_ONCE
    for at in range(0, whole, _ROWS_AT_ONCE):
        values = tuple(chain.from_iterable(rows[at : at + _ROWS_AT_ONCE]))
        conn.exec_driver_sql(insert + ", ".join([marks] * _ROWS_AT_ONCE), values)
    # The rest one by one: the driver keeps every statement, and these would be of all lengths.
    if whole < len(rows):
        conn.exec_driver_sql(insert + marks, list(rows[whole:]))


def update_many(
    conn: Connection, sql: str, types: Mapping[str, str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Run an update for many rows: `{name}` in it stands for a value of each row.

    `types` are the values' names, in the order of a row, with their types on PostgreSQL.
    """
    if not rows:
        return
    if conn.dialect.name == "sqlite":
        marks = {name: f"?{place}" for place, name in enumerate(types, start=1)}
        conn.exec_driver_sql(sql.format(**marks, source=""), list(rows))
        return
    # One statement for all: row by row it took PostgreSQL three times as long.
    columns = ", ".join(f"%s::{kind}[]" for kind in types.values())
    source = f" FROM unnest({columns}) AS new ({', '.join(types)})"
    marked = sql.format(**{name: f"new.{name}" for name in types}, source=source)
    conn.exec_driver_sql(marked, tuple(list(column) for column in zip(*rows, strict=True)))
