"""A database that cannot be upgraded is left alone, with a message that says what to do."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text

from mediaplane.errors import InvalidArgument, UnusableDatabase
from mediaplane.protocol import migration
from mediaplane.protocol.engines import sqlite_url
from tests.migrations.databases import NewDatabases, add, connected, contents
from tests.migrations.schema import schema_of
from tests.migrations.whole import add_one_row_everywhere


def test_tables_without_a_revision_are_not_touched(databases: NewDatabases) -> None:
    url = databases.at("head")
    with connected(url) as conn:
        conn.execute(text("DROP TABLE alembic_version"))
        before = schema_of(conn)
    with pytest.raises(UnusableDatabase, match=r"tables ai_models, .* no record .* restore"):
        migration.upgrade(url)
    with connected(url) as conn:
        assert schema_of(conn) == before
    assert migration.current(url) is None
    assert not migration.is_current(url)


def test_tables_with_an_empty_record_are_not_touched(databases: NewDatabases) -> None:
    url = databases.at("0004_events")
    with connected(url) as conn:
        conn.execute(text("DELETE FROM alembic_version"))
    with pytest.raises(UnusableDatabase, match="no record"):
        migration.upgrade(url)


def test_tables_of_others_do_not_matter(databases: NewDatabases) -> None:
    url = databases.empty()
    with connected(url) as conn:
        conn.execute(text("CREATE TABLE somebody_elses (id INTEGER)"))
    migration.upgrade(url)
    assert migration.is_current(url)


@pytest.mark.parametrize("move", [migration.upgrade, migration.downgrade])
def test_a_newer_database_needs_the_newer_version(
    databases: NewDatabases, move: Callable[[str, str], None]
) -> None:
    url = databases.at("head")
    with connected(url) as conn:
        conn.execute(text("UPDATE alembic_version SET version_num = '0099_next_year'"))
    with pytest.raises(UnusableDatabase, match=r"'0099_next_year'.*run the version"):
        move(url, "0001_libraries")
    assert migration.current(url) == "0099_next_year"
    assert not migration.is_current(url)


def test_a_revision_that_does_not_exist_is_named(databases: NewDatabases) -> None:
    with pytest.raises(InvalidArgument, match=r"'0099_next_year'; the newest is '0028_"):
        migration.upgrade(databases.empty(), "0099_next_year")


def test_an_unknown_value_stops_the_upgrade_and_is_named(databases: NewDatabases) -> None:
    url = databases.at("0009_assets")
    with connected(url) as conn:
        add_one_row_everywhere(conn, is_upper_case=True)
        conn.execute(text("UPDATE assets SET status = 'Misplaced'"))
        before = contents(conn)
    with pytest.raises(UnusableDatabase, match=r"assets\.status is 'misplaced' in 1 rows"):
        migration.upgrade(url)
    with connected(url) as conn:
        assert contents(conn) == before
    assert migration.current(url) == "0009_assets"


def test_a_reference_to_nothing_stops_the_upgrade_and_is_named(tmp_path: Path) -> None:
    """On SQLite alone: PostgreSQL never lets such a row in."""
    url = sqlite_url(tmp_path / "broken.db")
    migration.upgrade(url, "0009_assets")
    with connected(url) as conn:
        add(conn, "events", {"job_id": 77, "type": "log", "created_at": 1})
    with pytest.raises(UnusableDatabase, match=r"row 1 of events, which refers to jobs"):
        migration.upgrade(url)
    assert migration.current(url) == "0009_assets"
