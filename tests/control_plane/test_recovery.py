"""What becomes of work whose worker is gone, and when it is tried again."""

import re
from typing import Any

import pytest
from sqlalchemy import Connection, event, insert, select, text, update

from control_plane.policy import recovery
from control_plane.policy.backoff import Backoff
from mediaplane.protocol.tables import events, job_items, jobs, worker_status
from tests.support.databases import Databases
from tests.support.rows import FAR_AHEAD, LONG_AGO, Rows

EXPIRED = {"status": "running", "worker_id": "lost", "lease_epoch": 3, "lease_expires_at": LONG_AGO}
HELD = EXPIRED | {"worker_id": "busy", "lease_expires_at": FAR_AHEAD}
STEADY = Backoff(jitter=0)


def recover(database: Databases, backoff: Backoff = STEADY) -> None:
    recovery.recover(database.control, backoff)


def add(database: Databases, table: str, **columns: Any) -> int:
    with database.control.write() as conn:
        return int(Rows(conn).add(table, **columns))


def get(database: Databases, table: str, row_id: int) -> dict[str, Any]:
    with database.control.read() as conn:
        return Rows(conn).get(table, row_id)


def clock(database: Databases) -> int:
    with database.control.read() as conn:
        return Rows(conn).now()


def history(conn: Connection, job: int) -> list[str]:
    return list(conn.scalars(select(events.c.type).where(events.c.job_id == job)))


def test_an_expired_lease_is_taken_away_and_the_job_waits_for_its_delay(
    database: Databases,
) -> None:
    job = add(database, "jobs", **EXPIRED, attempts=2)
    before = clock(database)
    recover(database)
    assert before + 4_000 <= get(database, "jobs", job)["retry_after"] <= clock(database) + 4_000
    row = get(database, "jobs", job)
    assert (row["status"], row["error_code"]) == ("retryable", "lease_expired")
    assert (row["worker_id"], row["worker_heartbeat_at"], row["lease_expires_at"]) == (
        None,
        None,
        None,
    )
    with database.control.read() as conn:
        assert history(conn, job) == ["job_error", "log"]


def test_a_lease_without_an_end_is_an_expired_one(database: Databases) -> None:
    job = add(database, "jobs", **(EXPIRED | {"lease_expires_at": None}))
    recover(database)
    assert get(database, "jobs", job)["status"] == "retryable"


def test_a_lease_that_holds_is_left_alone(database: Databases) -> None:
    job = add(database, "jobs", **HELD)
    before = get(database, "jobs", job)
    recover(database)
    assert get(database, "jobs", job) == before


def test_the_delay_is_kept_and_then_the_job_returns(database: Databases) -> None:
    job = add(database, "jobs", **EXPIRED)
    recover(database, Backoff(base_seconds=3600, max_seconds=3600))
    delayed = get(database, "jobs", job)
    recover(database)
    assert get(database, "jobs", job) == delayed
    with database.control.write() as conn:
        conn.execute(update(jobs).values(retry_after=LONG_AGO))
    recover(database)
    row = get(database, "jobs", job)
    assert (row["status"], row["attempts"], row["retry_after"]) == ("pending", 1, None)
    assert row["finished_at"] is None


def test_a_job_that_a_worker_put_back_waits_for_a_delay_too(database: Databases) -> None:
    job = add(database, "jobs", status="retryable", attempts=1, error_code="disk")
    recover(database)
    row = get(database, "jobs", job)
    assert (row["status"], row["error_code"]) == ("retryable", "disk")
    assert row["retry_after"] > row["created_at"]


@pytest.mark.parametrize("active", ["pending", "running"])
def test_a_scan_or_hash_returns_only_when_no_other_is_active(
    database: Databases, active: str
) -> None:
    due = {"status": "retryable", "retry_after": LONG_AGO}
    waiting = add(database, "jobs", kind="scan", **due)
    other_kind = add(database, "jobs", kind="delete", **due)
    busy = add(database, "jobs", kind="hash", **(HELD | {"status": active}))
    recover(database)
    assert get(database, "jobs", waiting)["status"] == "retryable"
    assert get(database, "jobs", waiting)["attempts"] == 0
    assert get(database, "jobs", other_kind)["status"] == "pending"
    with database.control.write() as conn:
        conn.execute(update(jobs).where(jobs.c.id == busy).values(status="completed"))
    recover(database)
    assert get(database, "jobs", waiting)["status"] == "pending"


def test_of_several_that_are_due_the_oldest_returns_first(database: Databases) -> None:
    due = {"kind": "hash", "status": "retryable", "retry_after": LONG_AGO}
    first, second = add(database, "jobs", **due), add(database, "jobs", **due)
    recover(database)
    assert get(database, "jobs", first)["status"] == "pending"
    assert get(database, "jobs", second)["status"] == "retryable"


def test_a_job_out_of_attempts_has_failed_with_the_reason_of_its_last(database: Databases) -> None:
    job = add(database, "jobs", **EXPIRED, attempts=5)
    recover(database)
    row = get(database, "jobs", job)
    assert (row["status"], row["error_code"]) == ("failed", "lease_expired")
    assert row["finished_at"] is not None
    with database.control.read() as conn:
        assert history(conn, job) == ["job_error", "job_done"]


def test_a_job_that_keeps_losing_its_worker_is_tried_as_often_as_allowed(
    database: Databases,
) -> None:
    job = add(database, "jobs", max_attempts=2)
    runs = 0
    while get(database, "jobs", job)["status"] != "failed":
        if get(database, "jobs", job)["status"] == "pending":
            runs += 1
            with database.control.write() as conn:
                conn.execute(update(jobs).values(**EXPIRED))
        recover(database, Backoff(base_seconds=0))
    assert runs == 2


def test_a_cancelled_job_whose_worker_is_lost_is_cancelled_and_not_tried_again(
    database: Databases,
) -> None:
    job = add(database, "jobs", **EXPIRED, cancel_requested_at=LONG_AGO, attempts=5)
    recover(database)
    row = get(database, "jobs", job)
    assert (row["status"], row["finished_at"] is None) == ("cancelled", False)
    with database.control.read() as conn:
        assert history(conn, job) == ["job_error", "job_cancelled", "job_done"]


def test_items_of_a_lost_worker_return_and_those_of_a_cancelled_job_end(
    database: Databases,
) -> None:
    running = add(database, "jobs", **HELD)
    cancelled = add(database, "jobs", cancel_requested_at=LONG_AGO, total_items=3)
    lost = add(database, "job_items", job_id=running, **EXPIRED)
    held = add(database, "job_items", job_id=running, **HELD)
    done = add(database, "job_items", job_id=cancelled, status="completed")
    waiting = add(database, "job_items", job_id=cancelled)
    orphaned = add(database, "job_items", job_id=cancelled, **EXPIRED)
    recover(database)
    statuses = [get(database, "job_items", item)["status"] for item in
                (lost, held, done, waiting, orphaned)]  # fmt: skip
    assert statuses == ["pending", "running", "completed", "cancelled", "cancelled"]


def test_every_machine_gets_its_expired_leases_back(database: Databases) -> None:
    thumbnail = add(database, "thumbnails", **EXPIRED)
    cleanup = add(database, "thumbnail_cleanup_jobs", **EXPIRED)
    checkpoint = add(database, "wal_maintenance_jobs", **EXPIRED)
    asset = add(database, "assets", **(EXPIRED | {"status": "extracting"}))
    poisoned = add(database, "assets", **(EXPIRED | {"status": "analyzing"}), retry_count=6)
    before = clock(database)
    recover(database)
    assert get(database, "thumbnails", thumbnail)["status"] == "pending"
    assert get(database, "thumbnail_cleanup_jobs", cleanup)["status"] == "pending"
    assert get(database, "assets", asset)["status"] == "pending"
    assert get(database, "assets", poisoned)["status"] == "poisoned"
    row = get(database, "wal_maintenance_jobs", checkpoint)
    assert (row["status"], row["retry_count"], row["error_code"]) == (
        "retryable",
        1,
        "lease_expired",
    )
    assert before + 1_000 <= row["retry_after"] <= clock(database) + 1_000


def test_a_worker_not_heard_of_for_a_minute_is_offline_and_after_a_day_forgotten(
    database: Databases,
) -> None:
    with database.control.write() as conn:
        rows = Rows(conn)
        now = rows.now()
        for name, seconds in (("here", 50), ("silent", 70), ("gone", 25 * 3600)):
            rows.add("worker_status", worker_id=name, last_seen_at=now - seconds * 1000)
    recover(database)
    with database.control.read() as conn:
        found = conn.execute(select(worker_status.c.worker_id, worker_status.c.state))
        states = {row.worker_id: row.state for row in found}
    assert states == {"here": "idle", "silent": "offline"}


def test_while_another_control_plane_recovers_this_one_leaves_it_to_it(
    database: Databases,
) -> None:
    job = add(database, "jobs", **EXPIRED)
    with database.control.engine.connect() as other:
        if database.control.dialect == "postgresql":
            lock = "SELECT pg_advisory_xact_lock(hashtextextended('mediaplane:recovery', 0))"
            other.execute(text(lock))
            recover(database)
            assert get(database, "jobs", job)["status"] == "running"
    recover(database)
    assert get(database, "jobs", job)["status"] == "retryable"


def test_a_worker_that_comes_back_is_not_offline_any_more(database: Databases) -> None:
    with database.control.write() as conn:
        now = Rows(conn).now()
        Rows(conn).add("worker_status", worker_id="w", state="processing", last_seen_at=now)
    recover(database)
    with database.control.read() as conn:
        assert conn.scalars(select(worker_status.c.state)).all() == ["processing"]


def test_items_of_a_failed_job_do_not_wait_for_ever(database: Databases) -> None:
    failed = add(database, "jobs", status="retryable", attempts=5, total_items=1)
    waiting = add(database, "job_items", job_id=failed)
    recover(database)
    assert get(database, "jobs", failed)["status"] == "failed"
    assert get(database, "job_items", waiting)["status"] == "cancelled"


def test_a_request_to_cancel_survives_the_worker_that_put_the_job_back(
    database: Databases,
) -> None:
    job = add(database, "jobs", cancel_requested_at=LONG_AGO)
    recover(database)
    assert get(database, "jobs", job)["status"] == "cancelled"
    with database.control.read() as conn:
        assert history(conn, job) == ["job_cancelled", "job_done"]


def test_recovery_reads_no_history_however_long_it_is(database: Databases) -> None:
    with database.control.write() as conn:
        conn.execute(
            insert(jobs),
            [{"kind": "delete", "status": "completed"} for _ in range(5000)],
        )
        job_id = conn.execute(select(jobs.c.id).limit(1)).scalar_one()
        done = {"job_id": job_id, "status": "completed"}
        conn.execute(insert(job_items), [done | {"item_key": str(n)} for n in range(5000)])
        if database.control.dialect == "postgresql":
            conn.execute(text("ANALYZE"))
    sent: list[tuple[str, Any]] = []

    def note(_conn: Any, _cursor: Any, sql: str, parameters: Any, *_rest: Any) -> None:
        if sql.startswith(("UPDATE jobs", "UPDATE job_items", "SELECT * FROM jobs")):
            sent.append((sql, parameters))

    event.listen(database.control.engine, "before_cursor_execute", note)
    recover(database)
    event.remove(database.control.engine, "before_cursor_execute", note)
    assert len(sent) >= 5
    explain = "EXPLAIN QUERY PLAN" if database.control.dialect == "sqlite" else "EXPLAIN"
    with database.control.write() as conn:
        for sql, parameters in sent:
            plan = [str(row[-1]) for row in conn.exec_driver_sql(f"{explain} {sql}", parameters)]
            whole = [line for line in plan if re.search(r"Seq Scan|SCAN (?!.*INDEX)", line)]
            assert whole == [], sql
