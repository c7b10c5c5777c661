"""What is written in bulk: how it leaves SQLite's log without keeping others waiting."""

import sqlite3
from contextlib import closing

import pytest
from sqlalchemy import Connection, text

from mediaplane.protocol.database import Database
from tests.support.databases import Databases
from tests.support.rows import Rows

on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
# In pages; SQLite by itself carries its log over from 1,000 on.
LOG_PAGES = 1000
PAYLOAD = "x" * 4096


def fill(conn: Connection) -> None:
    for _ in range(LOG_PAGES + 1):
        Rows(conn).add("jobs", payload=f'"{PAYLOAD}"')


def jobs_in_file(database: Database, copy: str) -> int:
    """Count the jobs in the database's file alone, without its log."""
    with open(str(database.url.database), "rb") as file, open(copy, "wb") as copied:
        copied.write(file.read())
    with closing(sqlite3.connect(f"file:{copy}?immutable=1", uri=True)) as raw:
        (count,) = raw.execute("SELECT count(*) FROM jobs").fetchone()
    return int(count)


@on_sqlite
def test_the_log_is_carried_over_when_others_may_write_again(
    database: Databases, tmp_path_factory: pytest.TempPathFactory
) -> None:
    control, copy = database.control, str(tmp_path_factory.mktemp("copies") / "alone.db")
    traced: list[tuple[str, bool]] = []
    turn = control._turn
    assert hasattr(turn, "locked")

    def trace(conn: Connection) -> None:
        raw = conn.connection.driver_connection
        assert isinstance(raw, sqlite3.Connection)
        raw.set_trace_callback(lambda sql: traced.append((sql, turn.locked())))

    with control.read() as conn:
        trace(conn)
    with control.write(is_bulk=True) as conn:
        fill(conn)
        trace(conn)
    assert ("PRAGMA wal_checkpoint(PASSIVE)", False) in traced
    assert ("COMMIT", True) in traced
    assert jobs_in_file(control, copy) == LOG_PAGES + 1


@on_sqlite
def test_the_next_write_leaves_the_log_to_sqlite(database: Databases) -> None:
    pragma = text("PRAGMA wal_autocheckpoint")
    with database.control.write(is_bulk=True) as conn:
        assert conn.execute(pragma).scalar() == 0
    with database.control.write() as conn:
        assert conn.execute(pragma).scalar() == LOG_PAGES


def test_what_is_written_in_bulk_is_there(database: Databases) -> None:
    with database.control.write(is_bulk=True) as conn:
        Rows(conn).add("jobs")
    with database.control.read() as conn:
        assert conn.execute(text("SELECT count(*) FROM jobs")).scalar() == 1
