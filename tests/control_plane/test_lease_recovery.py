"""Recovery on every machine alike, and by several control planes at once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import select

from control_plane.policy import recovery
from control_plane.policy.backoff import Backoff
from mediaplane.protocol import gate, write_paths
from mediaplane.protocol.database import Database
from mediaplane.protocol.lifecycle import (
    LEASE_EXPIRED,
    LEASE_EXPIRED_MESSAGE,
    Lease,
    Machine,
    Step,
)
from mediaplane.protocol.machines import MACHINES
from mediaplane.protocol.tables import events, worker_status
from mediaplane.protocol.values import Plane, WorkerState
from tests.support.databases import Databases
from tests.support.rows import FAR_AHEAD, LONG_AGO, Rows
from tests.support.steps import EXPIRED, favourable, history_of
from tests.support.waiting import PATIENCE_SECONDS

STEADY = Backoff(jitter=0)
PATIENT = Backoff(base_seconds=3600, max_seconds=3600)
REAPS = [
    (machine, step)
    for machine in MACHINES
    for step in machine.steps
    if step.plane is Plane.CONTROL and step.lease is Lease.REAP
]


@pytest.mark.parametrize(
    ("machine", "step"), REAPS, ids=[f"{machine.name}.{step.name}" for machine, step in REAPS]
)
def test_an_expired_lease_is_taken_away_and_one_that_holds_is_not(
    database: Databases, machine: Machine, step: Step
) -> None:
    columns = favourable(machine, step) | {"status": step.sources[0]}
    with database.control.write() as conn:
        rows = Rows(conn)
        lost = rows.add(machine.name, **columns)
        held = rows.add(machine.name, **(columns | {"lease_expires_at": FAR_AHEAD}))
        before = rows.get(machine.name, held)
    recovery.recover(database.control, STEADY)
    with database.control.read() as conn:
        row = Rows(conn).get(machine.name, lost)
        assert Rows(conn).get(machine.name, held) == before
    assert row["status"] == step.target
    assert [row["worker_id"], row["worker_heartbeat_at"], row["lease_expires_at"]] == [None] * 3
    assert row["lease_epoch"] == columns["lease_epoch"]
    if "error_code" in step.sets:
        assert (row["error_code"], row["error_message"]) == (LEASE_EXPIRED, LEASE_EXPIRED_MESSAGE)


def test_the_history_says_why_the_job_was_taken_away(database: Databases) -> None:
    with database.control.write() as conn:
        job = Rows(conn).add("jobs", status="running", **EXPIRED)
    for _ in range(2):
        recovery.recover(database.control, PATIENT)
    with database.control.read() as conn:
        told = history_of(conn, job)
    assert told == [
        ("job_error", {"error_code": LEASE_EXPIRED, "error_message": LEASE_EXPIRED_MESSAGE}),
        ("log", {"level": "info", "message": "Tried again after a while."}),
    ]


def test_control_planes_that_recover_at_once_do_nothing_twice(database: Databases) -> None:
    due: dict[str, Any] = {"status": "retryable", "retry_after": LONG_AGO}
    with database.control.write() as conn:
        rows = Rows(conn)
        lost = [rows.add("jobs", status="running", **EXPIRED) for _ in range(10)]
        spent = [rows.add("jobs", **due, attempts=5) for _ in range(10)]
        waiting = [rows.add("jobs", **due) for _ in range(10)]
        checkpoint = rows.add("wal_maintenance_jobs", status="running", **EXPIRED)
    planes = [Database(database.url, Plane.CONTROL) for _ in range(4)]
    start = threading.Barrier(len(planes))

    def recover(plane: Database) -> None:
        start.wait(timeout=PATIENCE_SECONDS)
        recovery.recover(plane, PATIENT)

    with ThreadPoolExecutor(len(planes)) as pool:
        list(pool.map(recover, planes))
    for plane in planes:
        plane.close()
    recovery.recover(database.control, PATIENT)  # what each left to another that was just there
    with database.control.read() as conn:
        rows = Rows(conn)
        told = select(events.c.job_id, events.c.type).order_by(events.c.job_id, events.c.id)
        assert [tuple(row) for row in conn.execute(told)] == [
            *((job, event) for job in lost for event in ("job_error", "log")),
            *((job, "job_done") for job in spent),
            *((job, "log") for job in waiting),
        ]
        returned = [rows.get("jobs", job) for job in waiting]
        assert [(row["status"], row["attempts"]) for row in returned] == [("pending", 1)] * 10
        assert rows.get("wal_maintenance_jobs", checkpoint)["retry_count"] == 1


def test_a_silent_worker_that_is_heard_of_again_is_not_offline_any_more(
    database: Databases,
) -> None:
    with database.control.write() as conn:
        Rows(conn).add("worker_status", worker_id="w", last_seen_at=Rows(conn).now() - 70_000)
    states: list[str] = []
    for _ in range(2):
        recovery.recover(database.control, STEADY)
        with database.control.read() as conn:
            states += conn.scalars(select(worker_status.c.state))
        with database.data.write(write_paths.REGISTER_WORKER) as conn:
            gate.announce_worker(conn, "w", WorkerState.PROCESSING, {})
    assert states == ["offline", "processing"]
