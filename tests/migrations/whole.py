"""One row in every table, made from what the tables require."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    Integer,
    LargeBinary,
    Table,
    inspect,
)

from mediaplane.protocol import tables
from tests.migrations.databases import Row, add


def value_columns() -> list[Column[Any]]:
    """Every column that holds one of a closed set of values."""
    return [
        column
        for table in tables.metadata.sorted_tables
        for column in table.columns
        if "legal" in column.info
    ]


def required_row(table: Table) -> Row:
    """Return the least that a row needs: keys are 1 or 'one', values the first legal ones."""
    return {
        column.name: required_value(column)
        for column in table.columns
        if column.primary_key or "legal" in column.info or is_required(column)
    }


def is_required(column: Column[Any]) -> bool:
    return not column.nullable and column.server_default is None


def required_value(column: Column[Any]) -> Any:
    if "legal" in column.info:
        return str(next(iter(column.info["legal"])))
    if isinstance(column.type, Boolean):
        return True
    if isinstance(column.type, LargeBinary):
        return b"1" * 32
    if isinstance(column.type, BigInteger | Integer | Float):
        return 1
    return "one"


def add_one_row_everywhere(conn: Connection, *, is_upper_case: bool = False) -> None:
    """Fill all tables that exist; `is_upper_case` writes the values the way older versions did."""
    existing = inspect(conn).get_table_names()
    for table in tables.metadata.sorted_tables:
        if table.name in existing:
            row = required_row(table)
            for column in table.columns:
                if is_upper_case and "legal" in column.info:
                    row[column.name] = row[column.name].upper()
            # By default numbered: PostgreSQL's sequences do not notice an explicit id.
            if isinstance(row.get("id"), int):
                del row["id"]
            add(conn, table.name, row)
