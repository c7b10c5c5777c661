"""Leases over time: kept together, and lost for good."""

import pytest

from mediaplane.protocol import gate
from mediaplane.protocol.gate import Lessee
from mediaplane.protocol.lifecycle import LEASE_EXPIRED
from mediaplane.protocol.machines import JOBS
from mediaplane.protocol.write_paths import WRITE_PATHS
from tests.support.databases import Databases
from tests.support.rows import LONG_AGO, Rows
from tests.support.steps import EPOCH, HELD, WORKER


def test_progress_is_written_under_the_lease_and_extends_it(database: Databases) -> None:
    with database.control.write() as conn:
        job = Rows(conn).add("jobs", **HELD, status="running")
    with database.data.write(JOBS.step("heartbeat").path) as conn:
        mine = Lessee(job, WORKER, EPOCH)
        assert gate.take(conn, JOBS, "heartbeat", job, mine, 60, progress=0.5, processed_items=12)
        stale = Lessee(job, WORKER, EPOCH - 1)
        assert not gate.take(conn, JOBS, "heartbeat", job, stale, 60, progress=0.1)
    with database.control.read() as conn:
        row = Rows(conn).get("jobs", job)
    assert (row["progress"], row["processed_items"]) == (0.5, 12)


def test_a_worker_that_claims_again_cannot_finish_with_the_claim_it_lost(
    database: Databases,
) -> None:
    with database.control.write() as conn:
        job = Rows(conn).add("jobs")
    with database.data.write(*WRITE_PATHS) as conn:
        (first,) = gate.claim(conn, JOBS, "claim", WORKER, 0, 1)
    with database.control.write() as conn:
        assert gate.take(conn, JOBS, "reap", job)
        assert gate.take(conn, JOBS, "requeue_now", job)
    with database.data.write(*WRITE_PATHS) as conn:
        (second,) = gate.claim(conn, JOBS, "claim", WORKER, 60, 1)
        old, new = (Lessee(job, WORKER, claim["lease_epoch"]) for claim in (first, second))
        assert gate.heartbeat(conn, JOBS, WORKER, {job: old.epoch}, 60) == {}
        assert not gate.take(conn, JOBS, "complete", job, old)
        assert not gate.take(conn, JOBS, "release", job, old)
        assert gate.take(conn, JOBS, "complete", job, new)
        assert not gate.take(conn, JOBS, "complete", job, new)


def test_a_recovered_job_says_why_and_has_no_owner(database: Databases) -> None:
    for step in ("recover", "reap"):
        with database.control.write() as conn:
            job = Rows(conn).add("jobs", **HELD | {"lease_expires_at": LONG_AGO}, status="running")
        plane = database.data.write(*WRITE_PATHS) if step == "recover" else database.control.write()
        with plane as conn:
            assert gate.take(conn, JOBS, step, job)
            assert not gate.take(conn, JOBS, step, job)
            row = Rows(conn).get("jobs", job)
        assert (row["status"], row["error_code"]) == ("retryable", LEASE_EXPIRED)
        assert "lease" in row["error_message"]
        assert (row["worker_id"], row["worker_heartbeat_at"]) == (None, None)


def test_one_sweep_takes_back_every_expired_lease_and_no_other(database: Databases) -> None:
    with database.control.write() as conn:
        rows = Rows(conn)
        expired = [
            rows.add("jobs", **HELD | {"lease_expires_at": LONG_AGO}, status="running")
            for _ in range(3)
        ]
        rows.add("jobs", **HELD, status="running")
        rows.add("jobs")
        swept = gate.take_all(conn, JOBS, "reap", "true")
    assert sorted(row["id"] for row in swept) == expired


@pytest.mark.parametrize("is_cancelled", [False, True])
@pytest.mark.parametrize("is_delayed", [False, True])
@pytest.mark.parametrize("attempts", [0, 3, 4, 5])
def test_a_job_that_waits_for_another_try_always_gets_on(
    database: Databases, attempts: int, is_delayed: bool, is_cancelled: bool
) -> None:
    with database.control.write() as conn:
        job = Rows(conn).add(
            "jobs",
            status="retryable",
            attempts=attempts,
            retry_after=LONG_AGO if is_delayed else None,
            cancel_requested_at=LONG_AGO if is_cancelled else None,
        )
        gate.take(conn, JOBS, "delay", job, retry_after=LONG_AGO)
        moved = [
            step
            for step in ("drop_cancelled", "exhaust", "requeue")
            if gate.take(conn, JOBS, step, job)
        ]
    assert len(moved) == 1
