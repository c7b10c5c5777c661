"""Claims: who gets which rows, never too many, never one row twice."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Connection, select, text
from sqlalchemy.exc import IntegrityError

from mediaplane.protocol import gate, tables
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Row
from mediaplane.protocol.machines import JOBS, MACHINES
from mediaplane.protocol.values import Plane
from mediaplane.protocol.write_paths import APPEND_EVENT
from tests.support.databases import Databases
from tests.support.rows import FAR_AHEAD, LONG_AGO, Rows
from tests.support.waiting import PATIENCE_SECONDS

CLAIM = JOBS.step("claim").path


def claim(database: Database, limit: int, where: str = "true") -> list[Row]:
    with database.write(CLAIM, APPEND_EVENT) as conn:
        return gate.claim(conn, JOBS, "claim", "worker", 60, limit, where)


def test_a_higher_priority_goes_first_and_among_equals_the_oldest(database: Databases) -> None:
    with database.control.write() as conn:
        add = Rows(conn).add
        young = add("jobs", priority=5, created_at=2_000)
        old = add("jobs", priority=5, created_at=1_000)
        second_of_its_time = add("jobs", priority=5, created_at=1_000)
        urgent = add("jobs", priority=9, created_at=3_000)
        unimportant = add("jobs", priority=-1, created_at=500)
    order = [urgent, old, second_of_its_time, young, unimportant]
    assert [claim(database.data, 1)[0]["id"] for _ in order] == order
    assert claim(database.data, 1) == []


def test_a_claim_of_several_takes_the_best_of_them(database: Databases) -> None:
    with database.control.write() as conn:
        ids = [Rows(conn).add("jobs", priority=priority) for priority in (1, 7, 3, 9, 5)]
    claimed = {row["id"] for row in claim(database.data, 3)}
    assert claimed == {ids[1], ids[3], ids[4]}


@pytest.mark.parametrize("limit", [-1, 0, 1, 2, 10, 11, 1_000])
def test_a_claim_never_takes_more_than_its_limit(database: Databases, limit: int) -> None:
    with database.control.write() as conn:
        for _ in range(10):
            Rows(conn).add("jobs")
    assert len(claim(database.data, limit)) == max(0, min(limit, 10))


def test_the_callers_condition_narrows_a_claim_and_cannot_widen_it(database: Databases) -> None:
    with database.control.write() as conn:
        rows = Rows(conn)
        wanted = rows.add("jobs", kind="thumbnail")
        rows.add("jobs", kind="delete")
        rows.add("jobs", kind="thumbnail", status="completed")
    condition = "kind = 'thumbnail' OR kind = 'scan'"
    assert [row["id"] for row in claim(database.data, 10, condition)] == [wanted]


def test_the_callers_condition_narrows_a_step_of_many_rows(database: Databases) -> None:
    with database.control.write() as conn:
        rows = Rows(conn)
        wanted = rows.add("jobs", status="retryable", attempts=5, priority=1)
        rows.add("jobs", status="retryable", attempts=1, priority=1)
        rows.add("jobs", status="retryable", attempts=5, priority=2)
        rows.add("jobs", status="running", attempts=5, priority=3)
        moved = gate.take_all(conn, JOBS, "exhaust", "priority = :one OR priority = 3", {"one": 1})
    assert [row["id"] for row in moved] == [wanted]
    assert moved[0]["status"] == "failed"


def test_a_claimed_row_carries_typed_values(database: Databases) -> None:
    with database.control.write() as conn:
        Rows(conn).add("jobs", payload={"library": "photos"})
    assert claim(database.data, 1)[0]["payload"] == {"library": "photos"}


def test_a_claim_of_any_machine_reads_back_the_row_it_took(database: Databases) -> None:
    for machine in MACHINES:
        step = next(step for step in machine.steps if step.name.startswith("claim"))
        with database.control.write() as conn:
            row_id = Rows(conn).add(machine.name)
        with database.data.write(step.path, APPEND_EVENT) as conn:
            (row,) = gate.claim(conn, machine, step.name, "worker", 60, 5, "id = :id",
                                {"id": row_id})  # fmt: skip
        with database.control.read() as conn:
            stored = Rows(conn).get(machine.name, row_id)
        handed_out = machine.handed_out or tuple(stored)
        assert dict(row) == {column: stored[column] for column in handed_out}


def test_concurrent_claimers_never_get_the_same_row_nor_more_than_they_asked_for(
    database: Databases,
) -> None:
    total, limit = 300, 7
    with database.control.write() as conn:
        row = {"kind": "delete"}
        conn.execute(tables.jobs.insert(), [row] * total)
    together = threading.Barrier(2)

    def drain(_worker: int) -> list[list[int]]:
        own = Database(database.url, Plane.DATA)
        batches = []
        try:
            together.wait(timeout=PATIENCE_SECONDS)
            while rows := claim(own, limit):
                batches.append([row["id"] for row in rows])
        finally:
            own.close()
        return batches

    with ThreadPoolExecutor(2) as pool:
        batches = [batch for worker in pool.map(drain, range(2)) for batch in worker]
    claimed = [row_id for batch in batches for row_id in batch]
    assert len(claimed) == len(set(claimed)) == total
    assert max(len(batch) for batch in batches) <= limit
    with database.control.read() as conn:
        assert set(conn.scalars(select(tables.jobs.c.lease_epoch))) == {1}


def test_a_locked_row_is_passed_over_instead_of_waited_for(database: Databases) -> None:
    if database.data.dialect == "sqlite":
        return  # one writer at a time: there is nothing to pass over
    with database.control.write() as conn:
        first, second = Rows(conn).add("jobs", priority=2), Rows(conn).add("jobs", priority=1)
    other = Database(database.url, Plane.DATA)
    with other.write(CLAIM, APPEND_EVENT) as conn:
        assert [row["id"] for row in claim_with(conn)] == [first]
        with database.data.write(CLAIM, APPEND_EVENT) as beside:
            beside.execute(text("SET LOCAL lock_timeout = '2s'"))
            assert [row["id"] for row in claim_with(beside)] == [second]
            assert claim_with(beside) == []
    other.close()


def claim_with(conn: Connection) -> list[Row]:
    return gate.claim(conn, JOBS, "claim", "other", 60, 1)


@pytest.mark.parametrize("second", ["scan", "hash"])
@pytest.mark.parametrize("status", ["pending", "running"])
def test_there_is_never_a_second_active_scan_or_hash(
    database: Databases, second: str, status: str
) -> None:
    with database.control.write() as conn:
        Rows(conn).add("jobs", kind="scan", status=status)
    with pytest.raises(IntegrityError), database.control.write() as conn:
        Rows(conn).add("jobs", kind=second)
    with database.control.write() as conn:
        waiting = Rows(conn).add("jobs", kind=second, status="retryable", retry_after=LONG_AGO)
    with pytest.raises(IntegrityError), database.control.write() as conn:
        gate.take(conn, JOBS, "requeue", waiting)


def test_work_that_is_not_due_is_left_alone(database: Databases) -> None:
    with database.control.write() as conn:
        Rows(conn).add("wal_maintenance_jobs", execute_after=FAR_AHEAD)
        due = Rows(conn).add("wal_maintenance_jobs", execute_after=Rows(conn).now())
    machine = next(machine for machine in MACHINES if machine.name == "wal_maintenance_jobs")
    with database.data.write(machine.step("claim").path) as conn:
        rows = gate.claim(conn, machine, "claim", "worker", 60, 10)
    assert [row["id"] for row in rows] == [due]
