"""A worker carries out checkpoints, and the row of each says what came of it."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert, select, text

from data_plane.checkpoints import Checkpoints
from data_plane.leases import Leases
from data_plane.settings import DataSettings
from mediaplane.protocol import gate, wal
from mediaplane.protocol.authorizer import checkpoint_authorizer
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Row
from mediaplane.protocol.engines import sqlite_url
from mediaplane.protocol.machines import WAL_MAINTENANCE_JOBS
from mediaplane.protocol.tables import wal_maintenance_jobs
from mediaplane.protocol.values import CheckpointMode, Plane
from mediaplane.protocol.write_paths import paths_of
from tests.support.databases import Databases
from tests.support.planes import Worker
from tests.support.rows import FAR_AHEAD, LONG_AGO, Rows
from tests.support.waiting import PATIENCE_SECONDS, eventually
from tests.support.wal import reader

pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
modes = pytest.mark.parametrize("mode", list(CheckpointMode))
FIGURES = ("checkpoint_busy", "checkpoint_log_frames", "checkpointed_frames")


def worker(database: Databases, name: str = "worker-1") -> Checkpoints:
    return Checkpoints(database.data, Leases(name), DataSettings())


def add(database: Databases, mode: str = "passive", **columns: Any) -> int:
    row: dict[str, Any] = {"requested_mode": mode, "execute_after": LONG_AGO} | columns
    with database.control.write() as conn:
        found = conn.execute(insert(wal_maintenance_jobs).values(**row))
        assert found.inserted_primary_key
        return int(found.inserted_primary_key[0])


def get(database: Databases, checkpoint_id: int) -> Row:
    with database.control.read() as conn:
        query = select(wal_maintenance_jobs).where(wal_maintenance_jobs.c.id == checkpoint_id)
        return conn.execute(query).mappings().one()


def write_something(database: Databases) -> None:
    with database.control.write() as conn:
        Rows(conn).add("libraries", name="x" * 100_000)


def frames(database: Databases) -> tuple[int, int]:
    """The frames in the log and those of them in the database, as SQLite itself counts them."""
    with closing(sqlite3.connect(str(database.control.url.database))) as raw:
        _busy, in_log, carried = raw.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return int(in_log), int(carried)


@modes
def test_a_checkpoint_that_nothing_hinders_is_completed_with_its_figures(
    database: Databases, mode: str
) -> None:
    checkpoint_id = add(database, mode, error_code="old", error_message="old")
    write_something(database)
    assert worker(database).work_once()
    row = get(database, checkpoint_id)
    assert (row["status"], row["checkpoint_busy"], row["worker_id"]) == ("completed", 0, "worker-1")
    assert (row["error_code"], row["error_message"]) == (None, None)
    assert (row["lease_expires_at"], row["lease_epoch"]) == (None, 1)
    assert row["started_at"] <= row["finished_at"] <= row["updated_at"]
    assert row["checkpointed_frames"] == row["checkpoint_log_frames"]
    # SQLite counts what is left in the log: after a truncate there is none.
    assert (row["checkpoint_log_frames"] > 25) is (mode != "truncate")


def test_a_truncated_log_has_no_bytes_until_the_row_of_its_checkpoint_is_written(
    database: Databases,
) -> None:
    write_something(database)
    before = wal.size_bytes(database.control)
    assert wal.checkpoint(database.data, CheckpointMode.TRUNCATE) == (0, 0, 0)
    assert wal.size_bytes(database.control) == 0
    assert before > 100_000


@modes
def test_a_reader_has_a_checkpoint_tried_again_with_what_sqlite_said(
    database: Databases, mode: str
) -> None:
    checkpoint_id = add(database, mode)
    write_something(database)
    with reader(database):
        write_something(database)
        before = clock(database)
        assert worker(database).work_once()
        row, now = get(database, checkpoint_id), clock(database)
        in_log, carried = frames(database)
    assert (row["status"], row["retry_count"]) == ("retryable", 1)
    # Passive ones are never busy: that they carried over less than there is tells it.
    assert row["checkpoint_busy"] == (0 if mode == "passive" else 1)
    code = "checkpoint_incomplete" if mode == "passive" else "checkpoint_busy"
    assert (row["error_code"], row["lease_expires_at"]) == (code, None)
    assert row["checkpointed_frames"] == carried > 25
    # Nothing but its outcome was written since, which is a few pages.
    assert in_log - 10 < row["checkpoint_log_frames"] < in_log
    share = f"{row['checkpointed_frames']} of {row['checkpoint_log_frames']} frames"
    assert share in row["error_message"]
    assert before + 1_000 <= row["retry_after"] <= now + 1_000


def clock(database: Databases) -> int:
    with database.control.read() as conn:
        return Rows(conn).now()


def make_due(database: Databases) -> None:
    with database.control.write() as conn:
        conn.execute(text("UPDATE wal_maintenance_jobs SET retry_after = 1"))


def test_it_waits_longer_after_each_try_and_completes_when_the_reader_is_gone(
    database: Databases,
) -> None:
    checkpoint_id, one = add(database, "restart"), worker(database)
    delays = []
    with reader(database):
        write_something(database)
        for _ in range(5):
            assert one.work_once()
            row = get(database, checkpoint_id)
            delays.append(round((row["retry_after"] - row["finished_at"]) / 1000))
            assert not one.work_once()  # not before its time
            make_due(database)
    assert delays == [1, 2, 4, 5, 5]
    assert one.work_once()
    row = get(database, checkpoint_id)
    assert (row["status"], row["retry_count"], row["lease_epoch"]) == ("completed", 5, 6)
    assert row["error_code"] is None


def test_a_checkpoint_that_is_not_due_is_left_alone(database: Databases) -> None:
    checkpoint_id = add(database, execute_after=FAR_AHEAD)
    assert not worker(database).work_once()
    assert get(database, checkpoint_id)["status"] == "pending"


def test_a_checkpoint_that_meets_an_error_has_failed_and_is_not_tried_again(
    database: Databases,
) -> None:
    path, one = Path(str(database.data.url.database)), worker(database)
    with database.data.read(), database.data.write():
        pass  # its connections are open by now
    checkpoint_id = add(database)
    away = path.rename(path.with_suffix(".away"))
    try:
        assert one.work_once()
    finally:
        away.rename(path)
    row = get(database, checkpoint_id)
    assert (row["status"], row["error_code"]) == ("failed", "checkpoint_failed")
    assert "unable to open database file" in row["error_message"]
    assert [row[name] for name in FIGURES] == [None, None, None]
    assert (row["retry_count"], row["retry_after"]) == (0, None)
    assert row["finished_at"] is not None
    assert not one.work_once()


def test_a_database_without_a_log_is_an_error(database: Databases, tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "plain.db")
    plain = Databases(url, database.control, Database(url, Plane.CONTROL))
    with closing(sqlite3.connect(tmp_path / "plain.db")) as raw:
        raw.execute("CREATE TABLE t (a)")
    with pytest.raises(sqlite3.OperationalError, match="keeps no write-ahead log"):
        wal.checkpoint(plain.data, CheckpointMode.PASSIVE)


def test_a_checkpoint_of_a_worker_that_went_silent_is_tried_again(database: Databases) -> None:
    checkpoint_id = add(
        database, status="running", worker_id="lost", lease_epoch=3, lease_expires_at=LONG_AGO,
        worker_heartbeat_at=LONG_AGO,
    )  # fmt: skip
    one, before = worker(database), clock(database)
    assert not one.work_once()
    row = get(database, checkpoint_id)
    assert (row["status"], row["retry_count"], row["error_code"]) == (
        "retryable",
        1,
        "lease_expired",
    )
    assert row["error_message"] == "The worker stopped renewing its lease; the work is put back."
    assert (row["worker_id"], row["worker_heartbeat_at"], row["lease_expires_at"]) == (
        None,
        None,
        None,
    )
    assert before + 1_000 <= row["retry_after"] <= clock(database) + 1_000
    assert row["finished_at"] >= before
    make_due(database)
    assert one.work_once()
    row = get(database, checkpoint_id)
    assert (row["status"], row["lease_epoch"], row["retry_count"]) == ("completed", 4, 1)


def test_a_lease_that_holds_is_not_taken_away(database: Databases) -> None:
    held: dict[str, Any] = {"worker_id": "alive", "lease_epoch": 1, "lease_expires_at": FAR_AHEAD}
    checkpoint_id = add(database, status="running", **held)
    assert not worker(database).work_once()
    assert get(database, checkpoint_id)["worker_id"] == "alive"


def test_a_worker_that_lost_its_lease_cannot_finish_the_checkpoint(
    database: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint_id = add(database)
    carry_out = wal.checkpoint

    def too_late(data: Database, mode: CheckpointMode) -> wal.Checkpointed:
        with database.control.write() as conn:
            conn.execute(text("UPDATE wal_maintenance_jobs SET lease_expires_at = 1"))
        assert not worker(database, "other").work_once()
        return carry_out(data, mode)

    monkeypatch.setattr(wal, "checkpoint", too_late)
    assert worker(database).work_once()
    row = get(database, checkpoint_id)
    assert (row["status"], row["error_code"]) == ("retryable", "lease_expired")
    assert row["checkpoint_busy"] is None


def test_a_checkpoint_that_takes_long_keeps_its_lease(database: Databases) -> None:
    with Worker(database.data, lease_seconds=1.0) as slow:
        checkpoint_id = add(database)
        with database.data.write(*paths_of(WAL_MAINTENANCE_JOBS, "claim")) as conn:
            (row,) = gate.claim(conn, WAL_MAINTENANCE_JOBS, "claim", "worker-1", 1.0, 1)
        with slow.leases.hold_one(WAL_MAINTENANCE_JOBS, row):
            first = get(database, checkpoint_id)["lease_expires_at"]
            eventually(lambda: get(database, checkpoint_id)["lease_expires_at"] > first + 1_000)
            assert not worker(database, "other").work_once()
    assert get(database, checkpoint_id)["status"] == "running"


def test_a_worker_looks_for_checkpoints_until_it_stops(database: Databases) -> None:
    leases = Leases("worker-1")
    thread = Checkpoints(database.data, leases, DataSettings())
    thread.start()
    checkpoint_id = add(database)
    eventually(lambda: get(database, checkpoint_id)["status"] == "completed")
    leases.stopping.set()
    assert thread.join(PATIENCE_SECONDS)


def test_a_paused_worker_still_carries_out_checkpoints(database: Databases) -> None:
    leases = Leases("worker-1")
    leases.paused.set()
    thread = Checkpoints(database.data, leases, DataSettings())
    thread.start()
    checkpoint_id = add(database)
    eventually(lambda: get(database, checkpoint_id)["status"] == "completed")
    leases.stopping.set()
    assert thread.join(PATIENCE_SECONDS)


def test_a_worker_that_is_stopping_takes_no_checkpoint(database: Databases) -> None:
    leases = Leases("worker-1")
    leases.stopping.set()
    thread = Checkpoints(database.data, leases, DataSettings())
    checkpoint_id = add(database)
    thread.start()
    assert thread.join(PATIENCE_SECONDS)
    assert get(database, checkpoint_id)["status"] == "pending"


@modes
def test_the_connection_of_a_checkpoint_can_do_nothing_else(
    database: Databases, mode: CheckpointMode
) -> None:
    with closing(sqlite3.connect(str(database.data.url.database), isolation_level=None)) as raw:
        raw.set_authorizer(checkpoint_authorizer(mode))
        for sql in (
            "SELECT 1",
            "SELECT * FROM jobs",
            "UPDATE jobs SET priority = 1",
            "DELETE FROM jobs",
            "PRAGMA journal_mode = DELETE",
            "PRAGMA wal_checkpoint",
            "ATTACH ':memory:' AS other",
            "BEGIN",
            *(f"PRAGMA wal_checkpoint({other})" for other in CheckpointMode if other != mode),
        ):
            with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
                raw.execute(sql)
        assert raw.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()[0] == 0
