"""The database itself refuses a value that is not one of a column's closed set."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from tests.migrations.databases import NewDatabases, connected
from tests.migrations.schema import schema_of
from tests.migrations.whole import add_one_row_everywhere, value_columns

# These may be empty, so tables.py spells their CHECKs out.
NULLABLE = [("library_files", "media_type"), ("library_files", "hash_algorithm")]
COLUMNS = [*((column.table.name, column.name) for column in value_columns()), *NULLABLE]


def test_every_column_of_values_has_its_check(databases: NewDatabases) -> None:
    with connected(databases.at("head")) as conn:
        schema = str(schema_of(conn))
    assert len(COLUMNS) > 20
    for table, column in COLUMNS:
        assert f"ck_{table}_{column}" in schema


def test_no_column_of_values_takes_upper_case_or_an_unknown_value(databases: NewDatabases) -> None:
    url = databases.at("head")
    with connected(url) as conn:
        add_one_row_everywhere(conn)
        # A whole hash, so that only the value can be wrong with it.
        conn.execute(
            text("UPDATE library_files SET hash_algorithm = 'blake3', content_hash = :hash"),
            {"hash": bytes(32)},
        )
        conn.execute(text("UPDATE library_files SET media_type = 'image'"))
    for table, column in COLUMNS:
        for new in (f"upper({column})", "'unheard_of'", "''"):
            with (
                pytest.raises(IntegrityError, match=f"ck_{table}_{column}"),
                connected(url) as conn,
            ):
                conn.execute(text(f"UPDATE {table} SET {column} = {new}"))
