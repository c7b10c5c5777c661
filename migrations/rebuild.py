"""Alters tables also where SQLite cannot: by a copy that keeps all that belongs to the table."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from alembic import op
from alembic.operations import BatchOperations

from mediaplane.errors import UnusableDatabase


@contextmanager
def altered(table: str) -> Iterator[BatchOperations]:
    """Yield the operations that alter a table, and keep its indexes, triggers and next id."""
    if op.get_bind().dialect.name != "sqlite":
        with op.batch_alter_table(table) as batch:
            yield batch
        return
    # Alembic copies indexes by reflection, which loses DESC and knows no expressions.
    belongings = _read(
        "SELECT type, name, sql FROM sqlite_master"
        " WHERE tbl_name = ? AND type IN ('index', 'trigger') AND sql IS NOT NULL",
        table,
    )
    last_ids = _read("SELECT seq FROM sqlite_sequence WHERE name = ?", table)
    for kind, name, _sql in belongings:
        op.execute(f"DROP {kind.upper()} {name}")
    with op.batch_alter_table(
        table,
        recreate="always",
        table_kwargs={"sqlite_autoincrement": True},
        reflect_kwargs={"resolve_fks": False},
    ) as batch:
        yield batch
    for _kind, _name, sql in belongings:
        op.get_bind().exec_driver_sql(sql)
    # Without this the ids of the last rows, if deleted, would be given to new ones.
    for (last_id,) in last_ids:
        _write("DELETE FROM sqlite_sequence WHERE name = ?", table)
        _write("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", table, last_id)


def check_references() -> None:
    """Refuse to go on when a row refers to one that is not there; ends every rebuild."""
    if op.get_bind().dialect.name != "sqlite":
        return
    broken = _read("PRAGMA foreign_key_check")
    if broken:
        table, row_id, parent, _key = broken[0]
        raise UnusableDatabase(
            f"{len(broken)} rows refer to rows that do not exist, the first is row {row_id} of"
            f" {table}, which refers to {parent}; correct or delete them, then upgrade again."
        )


def _read(sql: str, *values: Any) -> list[Any]:
    return list(op.get_bind().exec_driver_sql(sql, values).all())


def _write(sql: str, *values: Any) -> None:
    op.get_bind().exec_driver_sql(sql, values)
