"""Checkpoints of SQLite's log: who may ask for which, and when mediaplane asks by itself."""

from itertools import product
from typing import Any

import pytest
from grpc import StatusCode
from sqlalchemy import insert, select, text
from sqlalchemy.exc import IntegrityError

from control_plane.policy import checkpoints, retention
from control_plane.store import checkpoints as store
from mediaplane import operation
from mediaplane.protocol.driver import Row
from mediaplane.protocol.tables import wal_maintenance_jobs
from mediaplane.v1 import maintenance_service_pb2 as pb
from tests.support.control import ControlPlane, Refusal, refusal
from tests.support.databases import Databases
from tests.support.rows import LONG_AGO, Rows
from tests.support.wal import grown_log

LIMIT_BYTES = 64 << 20
INTERVAL_SECONDS = 5
DAY_MS = 24 * 3600 * 1000
PASSIVE, RESTART, TRUNCATE = (
    pb.Checkpoint.MODE_PASSIVE,
    pb.Checkpoint.MODE_RESTART,
    pb.Checkpoint.MODE_TRUNCATE,
)
OPEN = ["pending", "running", "retryable"]
on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)
on_postgres = pytest.mark.parametrize("database", ["postgres"], indirect=True)


def ask(control: ControlPlane, mode: pb.Checkpoint.Mode, **fields: Any) -> pb.Checkpoint:
    request = pb.RequestCheckpointRequest(mode=mode, **fields)
    return control.client.maintenance_service.RequestCheckpoint(request)


def refused(control: ControlPlane, mode: pb.Checkpoint.Mode, **fields: Any) -> Refusal:
    request = pb.RequestCheckpointRequest(mode=mode, **fields)
    return refusal(control.client.maintenance_service.RequestCheckpoint, request)


def rows_of(database: Databases) -> list[Row]:
    with database.control.read() as conn:
        query = select(wal_maintenance_jobs).order_by(wal_maintenance_jobs.c.id)
        return list(conn.execute(query).mappings())


def end(database: Databases, status: str = "completed") -> None:
    with database.control.write() as conn:
        now = Rows(conn).now()
        conn.execute(
            text("UPDATE wal_maintenance_jobs SET status = :status, finished_at = :now"),
            {"status": status, "now": now},
        )


@on_sqlite
@pytest.mark.parametrize(
    ("asked", "stored"),
    [(0, "passive"), (PASSIVE, "passive"), (RESTART, "restart")],
)
def test_a_checkpoint_waits_for_a_worker_in_the_mode_that_was_asked_for(
    control: ControlPlane, asked: Any, stored: str
) -> None:
    found = ask(control, asked, request_id="one")
    (row,) = rows_of(control.database)
    assert (row["requested_mode"], row["status"], row["request_id"]) == (stored, "pending", "one")
    assert (row["retry_count"], row["retry_after"], row["checkpoint_busy"]) == (0, None, None)
    assert found.name == f"checkpoints/{row['id']}"
    assert found.state == pb.Checkpoint.STATE_PENDING
    assert not found.HasField("log_frames")
    assert operation.checkpoint(control.client, found.name) == found


@on_sqlite
def test_an_unknown_mode_is_refused(control: ControlPlane) -> None:
    assert refused(control, 9).code is StatusCode.INVALID_ARGUMENT  # type: ignore[arg-type]


@on_sqlite
def test_a_request_that_is_repeated_is_answered_by_the_first_checkpoint(
    control: ControlPlane,
) -> None:
    first = ask(control, RESTART, request_id="same")
    assert ask(control, RESTART, request_id="same") == first
    end(control.database)
    assert ask(control, RESTART, request_id="same").name == first.name
    assert len(rows_of(control.database)) == 1


@on_sqlite
def test_a_request_id_of_another_mode_and_one_too_long_are_refused(control: ControlPlane) -> None:
    ask(control, RESTART, request_id="same")
    error = refused(control, PASSIVE, request_id="same")
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert "in mode restart" in error.text
    assert refused(control, PASSIVE, request_id="x" * 129).code is StatusCode.INVALID_ARGUMENT


@on_sqlite
@pytest.mark.parametrize("status", OPEN)
def test_while_a_checkpoint_has_not_ended_another_is_refused_by_its_name(
    control: ControlPlane, status: str
) -> None:
    first = ask(control, PASSIVE)
    end(control.database, status)
    error = refused(control, PASSIVE, force=True)
    assert error.code is StatusCode.ALREADY_EXISTS
    assert error.metadata == {"checkpoint": first.name}
    assert status in error.text


def test_the_database_itself_admits_one_open_checkpoint(database: Databases) -> None:
    row = {"requested_mode": "passive", "execute_after": LONG_AGO}
    with database.control.write() as conn:
        for ended in ("completed", "failed", "completed"):
            conn.execute(insert(wal_maintenance_jobs).values(status=ended, **row))
    for first, second in product(OPEN, OPEN):
        with database.control.write() as conn:
            conn.execute(insert(wal_maintenance_jobs).values(status=first, **row))
        with pytest.raises(IntegrityError), database.control.write() as conn:
            conn.execute(insert(wal_maintenance_jobs).values(status=second, **row))
        end(database)


@on_sqlite
def test_a_checkpoint_keeps_its_distance_from_the_one_before_unless_it_is_forced(
    control: ControlPlane,
) -> None:
    for is_forced in (False, True):
        ask(control, PASSIVE, force=True)
        end(control.database)
        ended_at = rows_of(control.database)[-1]["finished_at"]
        ask(control, PASSIVE, force=is_forced)
        row = rows_of(control.database)[-1]
        if is_forced:
            assert row["execute_after"] <= row["created_at"]
        else:
            assert row["execute_after"] == ended_at + 5_000
        end(control.database)


@on_sqlite
def test_a_small_log_is_truncated_by_force_only(control: ControlPlane) -> None:
    error = refused(control, TRUNCATE)
    assert error.code is StatusCode.FAILED_PRECONDITION
    assert "nothing to gain" in error.text
    assert rows_of(control.database) == []
    ask(control, TRUNCATE, force=True)
    assert rows_of(control.database)[0]["requested_mode"] == "truncate"


@on_sqlite
def test_a_large_log_is_truncated_while_no_job_is_running(control: ControlPlane) -> None:
    with grown_log(control.database, LIMIT_BYTES // 4):
        with control.database.control.write() as conn:
            running = Rows(conn).add("jobs", status="running")
        error = refused(control, TRUNCATE)
        with control.database.control.write() as conn:
            conn.execute(text("UPDATE jobs SET status = 'failed' WHERE id = :id"), {"id": running})
        assert ask(control, TRUNCATE).mode == TRUNCATE
    assert error.code is StatusCode.FAILED_PRECONDITION
    assert "Jobs are running" in error.text


@on_postgres
def test_postgresql_says_why_it_has_no_checkpoints(control: ControlPlane) -> None:
    service = control.client.maintenance_service
    for error in (
        refused(control, PASSIVE),
        refusal(service.ListCheckpoints, pb.ListCheckpointsRequest()),
        refusal(service.GetCheckpoint, pb.GetCheckpointRequest(name="checkpoints/1")),
    ):
        assert error.code is StatusCode.FAILED_PRECONDITION
        assert "PostgreSQL" in error.text
        assert "max_wal_size" in error.text


@on_sqlite
def test_checkpoints_are_listed_newest_first_page_by_page(control: ControlPlane) -> None:
    names = []
    for _ in range(5):
        names.append(ask(control, PASSIVE).name)
        end(control.database)
    service, found, token = control.client.maintenance_service, [], ""
    while True:
        request = pb.ListCheckpointsRequest(page_size=2, page_token=token)
        page = service.ListCheckpoints(request)
        assert len(page.checkpoints) <= 2
        found += [one.name for one in page.checkpoints]
        token = page.next_page_token
        if not token:
            break
    assert found == names[::-1]
    assert [one.name for one in operation.checkpoints(control.client, limit=3)] == names[:1:-1]
    strange = refusal(service.ListCheckpoints, pb.ListCheckpointsRequest(page_token="x"))
    assert strange.code is StatusCode.INVALID_ARGUMENT


@on_sqlite
def test_a_checkpoint_that_does_not_exist_is_not_found(control: ControlPlane) -> None:
    service = control.client.maintenance_service
    missing = refusal(service.GetCheckpoint, pb.GetCheckpointRequest(name="checkpoints/7"))
    assert missing.code is StatusCode.NOT_FOUND
    misnamed = refusal(service.GetCheckpoint, pb.GetCheckpointRequest(name="jobs/7"))
    assert misnamed.code is StatusCode.INVALID_ARGUMENT


@on_sqlite
def test_the_larger_the_log_the_more_a_checkpoint_insists(database: Databases) -> None:
    checkpoints.keep_small(database.control, INTERVAL_SECONDS)
    assert rows_of(database) == []
    with grown_log(database, LIMIT_BYTES // 4):
        checkpoints.keep_small(database.control, INTERVAL_SECONDS)
        checkpoints.keep_small(database.control, INTERVAL_SECONDS)
    assert [row["requested_mode"] for row in rows_of(database)] == ["restart"]
    end(database)
    with grown_log(database, LIMIT_BYTES // 2):
        checkpoints.keep_small(database.control, INTERVAL_SECONDS)
    first, second = rows_of(database)
    assert second["requested_mode"] == "truncate"
    assert second["execute_after"] == first["finished_at"] + 5_000


@on_sqlite
def test_a_scheduled_checkpoint_has_the_log_begin_anew_unless_one_is_under_way(
    database: Databases,
) -> None:
    for _ in range(2):
        with database.control.write() as conn:
            checkpoints.schedule(conn)
    (row,) = rows_of(database)
    assert (row["requested_mode"], row["status"]) == ("restart", "pending")


@on_sqlite
def test_a_look_for_old_checkpoints_reads_no_more_of_a_longer_history(database: Databases) -> None:
    def steps() -> int:
        """Instructions of SQLite's machine, by the hundred."""
        taken = [0]

        def count() -> int:
            taken[0] += 1
            return 0

        with database.control.read() as conn:
            raw: Any = conn.connection.driver_connection
            raw.set_progress_handler(count, 100)
            try:
                assert store.ended(conn, 30 * DAY_MS, 10) == []
            finally:
                raw.set_progress_handler(None, 0)
        return taken[0]

    add_ended(database, 100)
    few = steps()
    add_ended(database, 5_000)
    assert steps() <= few + 1


def add_ended(database: Databases, number: int) -> None:
    with database.control.write() as conn:
        now = Rows(conn).now()
        done = {"requested_mode": "passive", "status": "completed"}
        row = done | {"execute_after": now, "finished_at": now}
        conn.execute(insert(wal_maintenance_jobs), [row] * number)


def test_old_checkpoints_are_forgotten_with_the_jobs(database: Databases) -> None:
    with database.control.write() as conn:
        rows = Rows(conn)
        now = rows.now()
        kept = [
            rows.add("wal_maintenance_jobs", status="completed", finished_at=now),
            rows.add("wal_maintenance_jobs", status="retryable", finished_at=LONG_AGO),
        ]
        for status in ("completed", "failed"):
            rows.add("wal_maintenance_jobs", status=status, finished_at=LONG_AGO)
    with database.control.write() as conn:
        retention.forget(conn, 30)
    assert [row["id"] for row in rows_of(database)] == kept
