"""Metrics of queues: how much waits and since when, without a look at what has ended."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, event, text

from control_plane import metrics
from control_plane.store import queues
from mediaplane.protocol.database import Database
from mediaplane.protocol.machines import MACHINES
from mediaplane.protocol.tables import metadata
from tests.support.databases import Databases
from tests.support.rows import FAR_AHEAD, Rows

HISTORY = 10_000
NUMBERS = {
    "sqlite": "WITH RECURSIVE numbers(n) AS"
    f" (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {HISTORY})",
    "postgresql": f"WITH numbers(n) AS (SELECT generate_series(1, {HISTORY}))",
}
# What has ended, of every machine.
ENDED = {
    "jobs": "(kind, status, created_at, updated_at) {numbers}"
    " SELECT 'probe', 'completed', n, n FROM numbers",
    "job_items": "(job_id, item_key, status, created_at, updated_at) {numbers}"
    " SELECT (SELECT min(id) FROM jobs), 'ended ' || n, 'completed', n, n FROM numbers",
    "thumbnails": "(file_id, file_version, group_key, media_type, format, size_px, status,"
    " created_at, updated_at) {numbers} SELECT (SELECT min(id) FROM library_files),"
    " 'v' || n, 'group', 'image', 'webp', 100, 'ready', n, n FROM numbers",
    "thumbnail_cleanup_jobs": "(group_key, status, execute_after, created_at, updated_at) {numbers}"
    " SELECT 'group', 'completed', n, n, n FROM numbers",
    "wal_maintenance_jobs": "(requested_mode, status, execute_after, checkpoint_busy,"
    " checkpoint_log_frames, checkpointed_frames, created_at, updated_at) {numbers}"
    " SELECT 'passive', 'completed', n, 0, 1, 1, n, n FROM numbers",
    "assets": "(library_id, rel_path, type, mtime, size, status, created_at, updated_at) {numbers}"
    " SELECT (SELECT min(slug) FROM libraries), CAST('ended ' || n AS {bytes}), 'image', 1, 1,"
    " 'proxied', n, n FROM numbers",
}
# The indexes that hold only what has not ended.
PARTIAL = {
    index.name
    for table in ENDED
    for index in metadata.tables[table].indexes
    if index.dialect_options["postgresql"]["where"] is not None
}


def ages(database: Databases) -> dict[str, float]:
    return metrics.look(database.control).ages_seconds


def add(database: Databases, table: str, **columns: Any) -> int:
    with database.control.write() as conn:
        return int(Rows(conn).add(table, **columns))


def long_ago(database: Databases, seconds: int) -> int:
    """A time by the database's clock."""
    with database.control.read() as conn:
        return Rows(conn).now() - seconds * 1000


def test_the_depth_counts_what_waits_and_what_is_worked_on(database: Databases) -> None:
    for status in ("pending", "pending", "running", "retryable", "completed", "failed"):
        add(database, "jobs", status=status)
    found = metrics.look(database.control).depths
    assert {status: found["jobs", status] for status in ("pending", "running", "retryable")} == {
        "pending": 2,
        "running": 1,
        "retryable": 1,
    }
    assert ("jobs", "completed") not in found


def test_every_machine_has_a_depth(database: Databases) -> None:
    found = metrics.look(database.control).depths
    assert {machine for machine, _status in found} == {machine.name for machine in MACHINES}
    assert set(found.values()) == {0}


def test_very_many_rows_are_not_counted_to_the_end(
    database: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queues, "MAX_DEPTH", 2)
    for _ in range(3):
        add(database, "jobs")
    assert metrics.look(database.control).depths["jobs", "pending"] == 2


def test_nothing_that_waits_has_no_age(database: Databases) -> None:
    add(database, "jobs", status="completed", updated_at=1)
    assert set(ages(database).values()) == {0.0}


@pytest.mark.parametrize(
    "table", ["jobs", "thumbnails", "thumbnail_cleanup_jobs", "wal_maintenance_jobs", "assets"]
)
def test_the_age_is_that_of_what_has_waited_longest(database: Databases, table: str) -> None:
    column = "execute_after" if table.endswith("_jobs") else "updated_at"
    since = long_ago(database, 1000)
    for place, seconds in enumerate((0, 400, 900)):
        add(database, table, **{column: since + seconds * 1000, "created_at": place + 1})
    assert 1000 <= ages(database)[table] < 1100


def test_a_job_that_nobody_gets_round_to_is_seen_behind_urgent_ones(database: Databases) -> None:
    since = long_ago(database, 1000)
    add(database, "jobs", priority=-5, updated_at=since, created_at=since)
    for priority in (0, 50, 100):
        now = long_ago(database, 0)
        add(database, "jobs", priority=priority, updated_at=now, created_at=now)
    assert ages(database)["jobs"] >= 1000


def test_what_was_put_back_waits_since_then_and_not_since_it_was_made(database: Databases) -> None:
    now = long_ago(database, 0)
    add(database, "assets", created_at=1, updated_at=now)
    add(database, "jobs", created_at=1, updated_at=now)
    found = ages(database)
    assert max(found["assets"], found["jobs"]) < 500


def test_what_is_not_due_yet_has_no_age(database: Databases) -> None:
    add(database, "thumbnail_cleanup_jobs", execute_after=FAR_AHEAD)
    assert ages(database)["thumbnail_cleanup_jobs"] == 0


def test_what_waits_in_a_paused_library_is_not_late(database: Databases) -> None:
    add(database, "assets", updated_at=1)
    add(database, "thumbnails", updated_at=1)
    with database.control.write() as conn:
        conn.execute(text("UPDATE libraries SET is_active = false"))
    found = ages(database)
    assert (found["assets"], found["thumbnails"]) == (0, 0)


def test_workers_are_counted_by_state(database: Databases) -> None:
    for state in ("idle", "idle", "offline"):
        add_worker(database, state)
    assert metrics.look(database.control).workers == {"idle": 2, "offline": 1}


def add_worker(database: Databases, state: str) -> None:
    with database.control.write() as conn:
        Rows(conn).add("worker_status", state=state)


@pytest.mark.parametrize(
    ("figures", "is_busy"),
    [
        ([(0, 10, 10)], False),
        ([(1, 10, 0)], True),
        ([(0, 10, 4)], True),  # held up by a reader, without saying so
        ([(1, 10, 0), (0, 10, 10)], False),
        ([(0, 10, 10), (None, None, None)], False),  # the last one has not run yet
        ([], None),
    ],
)
def test_a_checkpoint_is_busy_when_the_last_left_something(
    database: Databases, figures: list[tuple[int | None, ...]], is_busy: bool | None
) -> None:
    columns = ("checkpoint_busy", "checkpoint_log_frames", "checkpointed_frames")
    for one in figures:
        add(database, "wal_maintenance_jobs", status="completed",
            **dict(zip(columns, one, strict=True)))  # fmt: skip
    assert metrics.look(database.control).is_checkpoint_busy is is_busy


def test_a_scrape_reads_nothing_that_has_ended(database: Databases) -> None:
    with database.control.write() as conn:
        fill(conn)
    with database.control.write() as conn:
        conn.execute(text("ANALYZE"))
    with noted(database.control) as sent, database.control.read() as conn:
        queues.depths(conn)
        queues.ready_since(conn)
    assert len(sent) > len(MACHINES)
    for sql, parameters in sent:
        assert_seeks(plan(database.control, sql, parameters), sql)


def fill(conn: Connection) -> None:
    rows = Rows(conn)
    rows.add("thumbnails")
    rows.add("job_items")
    dialect = conn.dialect.name
    kind = "BLOB" if dialect == "sqlite" else "BYTEA"
    for table, insert in ENDED.items():
        sql = insert.format(numbers=NUMBERS[dialect], bytes=kind)
        conn.execute(text(f"INSERT INTO {table} {sql}"))


@contextmanager
def noted(database: Database) -> Iterator[list[tuple[str, Any]]]:
    """The statements that are sent meanwhile."""
    sent: list[tuple[str, Any]] = []

    def note(_conn: Any, _cursor: Any, sql: str, parameters: Any, *_rest: Any) -> None:
        if sql != "BEGIN":
            sent.append((sql, parameters))

    event.listen(database.engine, "before_cursor_execute", note)
    yield sent
    event.remove(database.engine, "before_cursor_execute", note)


def plan(database: Database, sql: str, parameters: Any) -> str:
    explain = "EXPLAIN QUERY PLAN" if database.dialect == "sqlite" else "EXPLAIN"
    with database.read() as conn:
        lines = conn.exec_driver_sql(f"{explain} {sql}", parameters).all()
    return "\n".join(str(line[-1]) for line in lines)


def assert_seeks(found: str, sql: str) -> None:
    """Tables with a history are read by an index without it, and nothing is sorted."""
    tables = "|".join([*ENDED, "j", "t", "a"])
    read = re.findall(rf"(?:SCAN|SEARCH|Scan(?: using \w+)? on) (?:{tables})\b", found)
    used = re.findall(r"(?:USING INDEX|USING COVERING INDEX|Scan using) (\w+)", found)
    assert read, (sql, found)
    assert len([name for name in used if name in PARTIAL]) == len(read), (sql, found)
    assert "Sort" not in found, (sql, found)
    assert "TEMP B-TREE" not in found, (sql, found)
