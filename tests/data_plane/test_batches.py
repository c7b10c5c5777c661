"""Tiny jobs are claimed and finished in batches, and no batch holds others up or fails them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Connection, event, text

from mediaplane.protocol.database import Database
from tests.support.databases import Databases
from tests.support.planes import Desk, Worker
from tests.support.waiting import eventually

MANY = 300


@contextmanager
def counted_commits(database: Database) -> Iterator[list[Connection]]:
    seen: list[Connection] = []

    def note(conn: Connection) -> None:
        seen.append(conn)

    event.listen(database.engine, "commit", note)
    yield seen
    event.remove(database.engine, "commit", note)


def work_off(worker: Worker) -> None:
    while worker.runner.work_once():
        pass


def statuses(desk: Desk, job_ids: list[int]) -> list[str]:
    return [desk.job(job_id)["status"] for job_id in job_ids]


def test_many_tiny_jobs_take_few_transactions(desk: Desk, database: Databases) -> None:
    job_ids = desk.probes(MANY)
    with counted_commits(database.data) as commits:
        work_off(Worker(database.data))
    assert statuses(desk, job_ids) == ["completed"] * MANY
    assert 0 < len(commits) < MANY / 4


def test_the_first_job_of_a_kind_is_taken_alone_and_then_several_at_once(
    desk: Desk, database: Databases, probe_by: Callable[..., None]
) -> None:
    worker, held = Worker(database.data), []
    probe_by(lambda *_: held.append(len(worker.leases.all())))
    desk.probes(50)
    work_off(worker)
    assert (held[0], len(held)) == (1, 50)
    assert max(held) > 1


def test_a_long_job_hands_back_what_waits_behind_it_and_another_worker_does_it(
    desk: Desk, database: Databases
) -> None:
    first = Worker(database.data, "first")
    desk.probes(20)
    work_off(first)  # by now it takes probes for tiny
    before = desk.probe()
    long = desk.probe(seconds=60)
    behind = desk.probes(20)
    with first:
        eventually(lambda: len(first.leases.all()) >= 21)
        with Worker(database.data, "second"):
            eventually(lambda: statuses(desk, behind) == ["completed"] * 20)
        assert {desk.job(job_id)["worker_id"] for job_id in behind} == {"second"}
        assert {desk.job(job_id)["attempts"] for job_id in behind} == {0}
        held = desk.job(long)
        assert (held["status"], held["worker_id"]) == ("running", "first")
        # What was done before it does not wait for its end either.
        eventually(lambda: desk.job(before)["status"] == "completed")
        assert [one.lessee.row_id for one in first.leases.all()] == [long]


def test_a_result_that_cannot_be_recorded_puts_back_its_own_job_alone(
    desk: Desk, database: Databases, probe_by: Callable[..., None]
) -> None:
    job_ids = desk.probes(20)
    refused: list[int] = []

    def record(_conn: Connection, job_id: int) -> None:
        if job_id == job_ids[10]:
            refused.append(job_id)
            raise ValueError("this one cannot be recorded")

    probe_by(lambda row, _ctx: row["id"], record)
    worker = Worker(database.data)
    work_off(worker)
    assert len(refused) >= 2  # with the others, and by itself
    assert statuses(desk, job_ids) == ["completed"] * 10 + ["retryable"] + ["completed"] * 9
    assert desk.job(job_ids[10])["error_code"] == "internal"
    assert worker.leases.all() == []


@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_a_finish_whose_connection_is_terminated_is_written_exactly_once(
    desk: Desk, database: Databases
) -> None:
    job_ids = desk.probes(10)
    terminated: list[bool] = []

    def terminate(conn: Connection, _cursor: Any, sql: str, *_rest: Any) -> None:
        if terminated or "UPDATE jobs" not in sql or "'completed'" not in sql:
            return
        bound = {"pid": conn.connection.driver_connection.info.backend_pid}  # type: ignore[union-attr]
        with database.control.read() as other:
            told = other.execute(text("SELECT pg_terminate_backend(:pid, 5000)"), bound)
            terminated.append(bool(told.scalar()))

    event.listen(database.data.engine, "before_cursor_execute", terminate)
    work_off(Worker(database.data))
    event.remove(database.data.engine, "before_cursor_execute", terminate)
    assert terminated == [True]
    assert statuses(desk, job_ids) == ["completed"] * 10
    for job_id in job_ids:
        assert desk.history(job_id) == ["job_added", "job_started", "job_done"]
        assert desk.job(job_id)["lease_epoch"] == 1


def test_the_highest_priority_comes_first_and_the_oldest_among_equals(
    desk: Desk, database: Databases, probe_by: Callable[..., None]
) -> None:
    priorities = [0, 7, -3, 7, 90, 0, 100, -3]
    created = [(desk.probe(priority=priority), priority) for priority in priorities]
    order: list[int] = []
    probe_by(lambda row, _ctx: order.append(row["id"]))
    work_off(Worker(database.data))
    assert order == [job_id for job_id, _ in sorted(created, key=lambda one: (-one[1], one[0]))]
