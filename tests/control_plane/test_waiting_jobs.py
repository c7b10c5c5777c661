"""Jobs that wait for another try: however many, they get on, in transactions of bounded size."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, event, insert, select, text, update

from control_plane.policy import recovery
from control_plane.policy.backoff import Backoff
from mediaplane.protocol.tables import events, jobs
from tests.support.databases import Databases
from tests.support.rows import FAR_AHEAD, LONG_AGO, Rows

MANY = 2_000
CHUNK = 500
PATIENT = Backoff(base_seconds=3600, max_seconds=3600)
DUE = {"kind": "probe", "status": "retryable", "retry_after": LONG_AGO}


def recover(database: Databases) -> None:
    recovery.recover(database.control, PATIENT)


def add_many(database: Databases, number: int, **columns: Any) -> None:
    with database.control.write() as conn:
        conn.execute(insert(jobs), [columns] * number)


def counted(database: Databases) -> dict[str, int]:
    with database.control.read() as conn:
        found = conn.execute(text("SELECT status, count(*) AS number FROM jobs GROUP BY status"))
        return {row.status: row.number for row in found}


@contextmanager
def moves_of_transactions(database: Databases) -> Iterator[list[int]]:
    """How many jobs each transaction has put back, those with none left out."""
    moved: list[int] = []

    def note(conn: Connection) -> None:
        logs = select(events.c.id).where(events.c.type == "log")
        so_far = len(conn.execute(logs).all())
        if so_far > sum(moved):
            moved.append(so_far - sum(moved))

    event.listen(database.control.engine, "commit", note)
    yield moved
    event.remove(database.control.engine, "commit", note)


def test_thousands_of_due_jobs_return_in_chunks_in_one_go(database: Databases) -> None:
    add_many(database, MANY, **DUE)
    with moves_of_transactions(database) as moved:
        recover(database)
    assert counted(database) == {"pending": MANY}
    assert moved == [CHUNK] * (MANY // CHUNK)


def test_a_due_scan_waits_for_the_active_one_and_then_goes_on(database: Databases) -> None:
    with database.control.write() as conn:
        active = Rows(conn).add("jobs", kind="hash", status="running", lease_expires_at=FAR_AHEAD)
        waiting = Rows(conn).add("jobs", **(DUE | {"kind": "scan"}))
    add_many(database, 3, **DUE)
    recover(database)
    assert counted(database) == {"running": 1, "retryable": 1, "pending": 3}
    with database.control.write() as conn:
        conn.execute(update(jobs).where(jobs.c.id == active).values(status="completed"))
    recover(database)
    with database.control.read() as conn:
        job = Rows(conn).get("jobs", waiting)
    assert (job["status"], job["attempts"], job["retry_after"]) == ("pending", 1, None)


@pytest.mark.parametrize("retry_after", [None, LONG_AGO])
def test_a_job_tried_often_enough_has_failed_whether_it_has_a_time_or_not(
    database: Databases, retry_after: int | None
) -> None:
    add_many(database, 3, **(DUE | {"retry_after": retry_after}), attempts=4, max_attempts=5)
    recover(database)
    assert counted(database) == {"failed": 3}


@pytest.mark.parametrize("attempts", [0, 3, 4])
def test_a_request_to_cancel_goes_before_another_try_and_before_failure(
    database: Databases, attempts: int
) -> None:
    add_many(database, 2, **DUE, attempts=attempts, cancel_requested_at=LONG_AGO)
    recover(database)
    assert counted(database) == {"cancelled": 2}


def test_jobs_that_are_not_due_stay_as_they_are(database: Databases) -> None:
    add_many(database, 5, **(DUE | {"retry_after": FAR_AHEAD}))
    recover(database)
    assert counted(database) == {"retryable": 5}
