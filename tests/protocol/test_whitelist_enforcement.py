"""The databases themselves refuse what no whitelist names: every path, table and column tried."""

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

import pytest
from sqlalchemy import Connection, select, text
from sqlalchemy.exc import DBAPIError

from mediaplane.protocol import gate
from mediaplane.protocol.lifecycle import WritePath
from mediaplane.protocol.machines import JOBS
from mediaplane.protocol.tables import metadata, worker_status
from mediaplane.protocol.values import WorkerState
from mediaplane.protocol.write_paths import REGISTER_WORKER, WRITE_PATHS
from tests.support.databases import Databases

on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
on_postgres = pytest.mark.parametrize("database", ["postgres"], indirect=True)

INSUFFICIENT_PRIVILEGE = "42501"
CLAIM_JOB = JOBS.step("claim").path
BEAT_JOB = JOBS.step("heartbeat").path


class Attempt(NamedTuple):
    """One statement that changes no row, for the rights to it are asked for all the same."""

    action: str
    table: str
    column: str
    sql: str


def attempts() -> Iterator[Attempt]:
    for table in metadata.tables.values():
        t = table.name
        keys = table.primary_key.columns.keys()
        yield Attempt("delete", t, "", f"DELETE FROM {t} WHERE false")
        for c in (column.name for column in table.columns if not column.computed):
            insert = f"INTO {t} ({c}) SELECT {c} FROM {t} WHERE false"
            # With the key, or else SQLite sees no possible conflict and asks for no right to it.
            keyed = ", ".join(dict.fromkeys([*keys, c]))
            upsert = (
                f"INTO {t} ({keyed}) SELECT {keyed} FROM {t} WHERE false"
                f" ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {c} = excluded.{c}"
            )
            yield Attempt("update", t, c, f"UPDATE {t} SET {c} = {c} WHERE false")
            yield Attempt("insert", t, c, f"INSERT {insert}")
            yield Attempt("replace", t, c, f"INSERT OR REPLACE {insert}")
            yield Attempt("upsert", t, c, f"INSERT {upsert}")


ATTEMPTS = tuple(attempts())


def driver(conn: Connection) -> sqlite3.Connection:
    raw = conn.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    return raw


def sqlite_refuses(raw: sqlite3.Connection, sql: str) -> bool:
    try:
        raw.execute(sql)
    except sqlite3.DatabaseError as error:
        if "not authorized" not in str(error) and "authorization" not in str(error):
            raise
        return True
    return False


def postgres_refuses(conn: Connection, sql: str) -> bool:
    try:
        with conn.begin_nested():
            conn.execute(text(sql))
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != INSUFFICIENT_PRIVILEGE:
            raise
        return True
    return False


def is_legal_on_sqlite(attempt: Attempt, path: WritePath) -> bool:
    if attempt.table != path.table:
        return False
    # SQLite asks about INSERT by table: the gate looks at its columns.
    may_insert = bool(path.inserts)
    may_update = attempt.column in path.updates
    return {
        "update": may_update,
        "insert": may_insert,
        "replace": may_insert,
        "upsert": may_insert and may_update,
        "delete": path.deletes,
    }[attempt.action]


def is_legal_on_postgres(attempt: Attempt) -> bool:
    paths = [path for path in WRITE_PATHS if path.table == attempt.table]
    may_update = any(attempt.column in path.updates for path in paths)
    may_insert = any(attempt.column in path.inserts for path in paths)
    keys = set(metadata.tables[attempt.table].primary_key.columns.keys())
    may_insert_key = any(keys <= path.inserts for path in paths)
    return {
        "update": may_update,
        "insert": may_insert,
        "upsert": may_insert and may_insert_key and may_update,
        "delete": any(path.deletes for path in paths),
    }[attempt.action]


@on_sqlite
@pytest.mark.parametrize("path", WRITE_PATHS, ids=str)
def test_an_armed_path_admits_its_own_columns_and_no_other(
    database: Databases, path: WritePath
) -> None:
    with database.data.write(path) as conn:
        raw = driver(conn)
        wrong = [
            attempt
            for attempt in ATTEMPTS
            if sqlite_refuses(raw, attempt.sql) == is_legal_on_sqlite(attempt, path)
        ]
    assert wrong == []


@on_postgres
def test_the_role_may_write_what_some_path_may_write_and_nothing_else(database: Databases) -> None:
    with database.data.write() as conn:
        wrong = [
            attempt
            for attempt in ATTEMPTS
            if attempt.action != "replace"  # SQLite's own
            and postgres_refuses(conn, attempt.sql) == is_legal_on_postgres(attempt)
        ]
    assert wrong == []


@on_sqlite
def test_computed_columns_and_row_numbers_can_never_be_written(database: Databases) -> None:
    with database.data.write(*WRITE_PATHS) as conn:
        for sql in (
            "UPDATE duplicate_groups SET rank_by_count = 1 WHERE false",
            "UPDATE worker_status SET rowid = 1 WHERE false",
            "UPDATE sqlite_sequence SET seq = 1 WHERE false",
            "DELETE FROM sqlite_sequence",
            "UPDATE sqlite_master SET sql = '' WHERE false",
        ):
            with pytest.raises(sqlite3.DatabaseError):
                driver(conn).execute(sql)


SQLITE_FORBIDDEN = [
    "CREATE TABLE t (a)",
    "CREATE TEMP TABLE t (a)",
    "CREATE INDEX i ON jobs (kind)",
    "CREATE VIEW v AS SELECT 1",
    "CREATE TEMP TRIGGER t AFTER UPDATE ON jobs BEGIN DELETE FROM jobs; END",
    "CREATE VIRTUAL TABLE t USING fts5(a)",
    "DROP TABLE events",
    "DROP INDEX ix_jobs_single_active_scan_hash",
    "ALTER TABLE jobs RENAME TO work",
    "ALTER TABLE jobs ADD COLUMN a",
    "ALTER TABLE jobs DROP COLUMN priority",
    "ATTACH ':memory:' AS other",
    "DETACH main",
    "ANALYZE",
    "REINDEX",
    "PRAGMA foreign_keys = OFF",
    "PRAGMA writable_schema = ON",
    "PRAGMA synchronous = OFF",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "PRAGMA ignore_check_constraints = ON",
    "PRAGMA table_info(jobs)",
    "PRAGMA data_version = 1",
]


@on_sqlite
def test_no_path_opens_the_schema_other_files_or_the_settings_of_sqlite(
    database: Databases,
) -> None:
    with database.data.write(*WRITE_PATHS) as conn:
        admitted = [sql for sql in SQLITE_FORBIDDEN if not sqlite_refuses(driver(conn), sql)]
    assert admitted == []


@on_sqlite
def test_a_connection_outside_any_block_only_reads(database: Databases) -> None:
    raw = database.data.engine.raw_connection()
    sqlite = raw.driver_connection
    assert isinstance(sqlite, sqlite3.Connection)
    # VACUUM is tried here because within a transaction it fails for another reason.
    vacuum = ["VACUUM", "VACUUM INTO '/nowhere/copy.db'"]
    tried = [*SQLITE_FORBIDDEN, *vacuum, *(attempt.sql for attempt in ATTEMPTS)]
    admitted = [sql for sql in tried if not sqlite_refuses(sqlite, sql)]
    assert admitted == []
    assert sqlite.execute("PRAGMA data_version").fetchone()[0] > 0
    raw.close()


@on_postgres
def test_the_role_may_not_truncate_or_change_the_schema(database: Databases) -> None:
    forbidden = [
        *(f"TRUNCATE {table}" for table in metadata.tables),
        *(f"DROP TABLE {table}" for table in metadata.tables),
        *(f"ALTER TABLE {table} ADD COLUMN a integer" for table in metadata.tables),
        *(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE" for table in ("jobs", "libraries")),
        "CREATE TABLE t (a integer)",
        "CREATE INDEX i ON jobs (kind)",
        "CREATE VIEW v AS SELECT 1",
        "CREATE FUNCTION f() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
        "DROP INDEX ix_jobs_single_active_scan_hash",
        "CREATE ROLE somebody",
        "SELECT setval('jobs_id_seq', 1)",
        "SELECT setval('events_id_seq', 1)",
        "COPY jobs TO PROGRAM 'true'",
    ]
    with database.data.write() as conn:
        admitted = [sql for sql in forbidden if not postgres_refuses(conn, sql)]
    assert admitted == []


@on_sqlite
def test_a_cached_statement_does_not_outlive_the_path_that_admitted_it(
    database: Databases,
) -> None:
    sql = "UPDATE jobs SET started_at = started_at"
    seen = []
    for path, is_legal in [(CLAIM_JOB, True), (BEAT_JOB, False), (CLAIM_JOB, True)]:
        with database.data.write(path) as conn:
            seen.append(driver(conn))
            assert sqlite_refuses(driver(conn), sql) is not is_legal
    with database.data.read() as conn:
        assert sqlite_refuses(driver(conn), sql)
    # One and the same connection, whose cache held the statement all along.
    assert all(raw is seen[0] for raw in seen)


@on_sqlite
def test_the_connection_only_reads_again_after_a_block_that_failed(database: Databases) -> None:
    used = None
    with suppress(LookupError), database.data.write(*WRITE_PATHS) as conn:
        used = driver(conn)
        raise LookupError
    assert used
    with database.data.read() as conn:
        assert driver(conn) is used
        assert [attempt for attempt in ATTEMPTS if not sqlite_refuses(used, attempt.sql)] == []


def test_the_data_plane_may_read_every_table(database: Databases) -> None:
    with database.data.read() as conn:
        for table in metadata.tables:
            conn.execute(text(f"SELECT * FROM {table}")).all()


# SQLite's right to insert is for a whole table, so there the gate alone guards these columns.
INSERTABLE_ON_SQLITE = [
    (path, column.name)
    for path in WRITE_PATHS
    if path.inserts
    for column in metadata.tables[path.table].columns
    if column.name not in path.inserts and not column.computed
]


def test_the_columns_that_sqlite_alone_would_let_in_are_known() -> None:
    named = {f"{path.table}.{column}" for path, column in INSERTABLE_ON_SQLITE if column != "id"}
    assert {name for name in named if not name.startswith("scan_sessions.")} == {
        "worker_status.command",
        "worker_status.commanded_at",
        # Not decisions, but what is said of a frame later.
        "video_frames.search_vector",
        "video_frames.tags_model_id",
    }
    assert "scan_sessions.status" in named


def test_the_gate_refuses_the_columns_that_sqlite_would_let_in(database: Databases) -> None:
    with database.data.write(*WRITE_PATHS) as conn:
        for path, column in INSERTABLE_ON_SQLITE:
            with pytest.raises(gate.GateRefused, match=column):
                gate.add(conn, path, [{column: 1}])
            with pytest.raises(gate.GateRefused, match=column):
                gate.add_many(conn, path, [*path.inserts, column], [])


def test_a_column_that_only_a_later_row_names_is_not_written(database: Databases) -> None:
    rows: list[dict[str, str]] = [{"worker_id": "a"}, {"worker_id": "b", "command": "shutdown"}]
    with database.data.write(REGISTER_WORKER) as conn:
        gate.add(conn, REGISTER_WORKER, rows)
        commands = conn.execute(text("SELECT command FROM worker_status")).scalars().all()
    assert commands == ["none", "none"]


def test_a_worker_that_announces_itself_again_keeps_its_command(database: Databases) -> None:
    for state in (WorkerState.IDLE, WorkerState.PROCESSING):
        with database.data.write(REGISTER_WORKER) as conn:
            gate.announce_worker(conn, "worker", state, {"slots": 2})
        with database.control.write() as conn:
            conn.execute(text("UPDATE worker_status SET command = 'pause'"))
    with database.control.read() as conn:
        row = conn.execute(select(worker_status)).mappings().one()
    assert (row["state"], row["command"], row["stats"]) == ("processing", "pause", {"slots": 2})
