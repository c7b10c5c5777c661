"""Leases over time: kept together, lost for good, and a job's history told in order."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event, select

from mediaplane.protocol import gate, tables
from mediaplane.protocol.database import Database
from mediaplane.protocol.gate import Lessee
from mediaplane.protocol.lifecycle import LEASE_EXPIRED, Machine
from mediaplane.protocol.machines import JOBS, MACHINES
from mediaplane.protocol.write_paths import WRITE_PATHS
from tests.support.databases import Databases
from tests.support.rows import LONG_AGO, Rows
from tests.support.steps import EPOCH, HELD, OTHER_WORKER, WORKER

machines = pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)


@contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    """Collects what is sent to the database."""
    sent: list[str] = []

    def note(_conn: Any, _cursor: Any, sql: str, *_rest: Any) -> None:
        sent.append(sql)

    event.listen(database.engine, "before_cursor_execute", note)
    yield sent
    event.remove(database.engine, "before_cursor_execute", note)


@machines
def test_all_leases_of_a_worker_are_extended_in_one_statement(
    database: Databases, machine: Machine
) -> None:
    at_work = machine.step("heartbeat").sources[0]
    with database.control.write() as conn:
        rows = Rows(conn)
        mine = [rows.add(machine.name, **HELD, status=at_work) for _ in range(50)]
        lost = rows.add(machine.name, **HELD | {"worker_id": OTHER_WORKER}, status=at_work)
        superseded = rows.add(machine.name, **HELD | {"lease_epoch": EPOCH + 1}, status=at_work)
        ended = rows.add(machine.name, **HELD, status="failed")
    leases = dict.fromkeys([*mine, lost, superseded, ended, 999_999], EPOCH)
    with statements(database.data) as sent, database.data.write(*WRITE_PATHS) as conn:
        kept = gate.heartbeat(conn, machine, WORKER, leases, 60)
    assert len([sql for sql in sent if sql.startswith("UPDATE")]) == 1
    assert [sql for sql in sent if not sql.startswith(("UPDATE", "BEGIN"))] == []
    assert sorted(kept) == mine
    for row in kept.values():
        assert row["lease_expires_at"] == row["worker_heartbeat_at"] + 60_000


def test_a_heartbeat_without_leases_sends_nothing(database: Databases) -> None:
    with statements(database.data) as sent, database.data.write(*WRITE_PATHS) as conn:
        assert gate.heartbeat(conn, JOBS, WORKER, {}, 60) == {}
    assert [sql for sql in sent if not sql.startswith("BEGIN")] == []


def test_a_heartbeat_brings_back_a_request_to_cancel(database: Databases) -> None:
    with database.control.write() as conn:
        job = Rows(conn).add("jobs", **HELD, status="running")
        assert gate.take(conn, JOBS, "request_cancel", job, cancel_requested_at=LONG_AGO)
    with database.data.write(*WRITE_PATHS) as conn:
        kept = gate.heartbeat(conn, JOBS, WORKER, {job: EPOCH}, 60)
    assert kept[job]["cancel_requested_at"] == LONG_AGO


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
        assert not gate.take(conn, JOBS, "complete", job, old, progress=1.0)
        assert not gate.take(conn, JOBS, "release", job, old)
        assert gate.take(conn, JOBS, "complete", job, new, progress=1.0)
        assert not gate.take(conn, JOBS, "complete", job, new, progress=1.0)


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


def test_the_history_of_a_job_tells_its_life_in_order(database: Databases) -> None:
    with database.control.write() as conn:
        job = Rows(conn).add("jobs", library_id=Rows(conn).add("libraries", slug="photos"))
    with database.data.write(*WRITE_PATHS) as conn:
        (row,) = gate.claim(conn, JOBS, "claim", WORKER, 60, 1)
        mine = Lessee(job, WORKER, row["lease_epoch"])
        assert gate.take(
            conn, JOBS, "retry", job, mine, error_code="io", error_message="The disk is away."
        )
    with database.control.write() as conn:
        assert gate.take(conn, JOBS, "requeue_now", job)
    with database.data.write(*WRITE_PATHS) as conn:
        (row,) = gate.claim(conn, JOBS, "claim", WORKER, 60, 1)
        mine = Lessee(job, WORKER, row["lease_epoch"])
        assert gate.take(conn, JOBS, "complete", job, mine, progress=1.0)
    with database.control.read() as conn:
        found = conn.execute(select(tables.events).order_by(tables.events.c.id)).mappings().all()
    started = {"kind": "delete", "library": "photos", "worker": WORKER}
    assert [(row["type"], row["payload"]) for row in found] == [
        ("job_started", started),
        ("job_error", {"error_code": "io", "error_message": "The disk is away."}),
        ("job_started", started),
        ("job_done", {"status": "completed", "processed_items": 0, "total_items": None}),
    ]
