"""Callers that ask at the same moment: the database decides, and everybody learns who won."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

from sqlalchemy import Connection, text

from control_plane.policy import recovery
from control_plane.policy.backoff import Backoff
from mediaplane.protocol.database import Database
from mediaplane.protocol.values import Plane
from mediaplane.v1 import job_service_pb2 as pb
from mediaplane.v1 import library_service_pb2 as libraries_pb
from tests.support.control import HASH, SCAN, ControlPlane, at_once, refusal, state
from tests.support.databases import Databases
from tests.support.rows import LONG_AGO, Rows
from tests.support.waiting import PATIENCE_SECONDS, eventually

CALLERS = 8


def test_of_many_creators_exactly_one_wins_and_the_others_learn_its_job(
    control: ControlPlane,
) -> None:
    library = control.library("photos")
    kinds = [SCAN, HASH] * (CALLERS // 2)
    for _ in range(5):
        jobs, refusals = at_once(*(partial(control.create, kind, library) for kind in kinds))
        (job,) = jobs
        assert len(refusals) == CALLERS - 1
        assert {(error.reason, error.metadata["job"]) for error in refusals} == {
            ("ACTIVE_JOB_EXISTS", job.name)
        }
        control.client.cancel_job(job.name)


def test_one_request_made_many_times_at_once_is_one_job(control: ControlPlane) -> None:
    library = control.library("photos")
    for number in range(5):
        call = partial(control.create, SCAN, library, f"request {number}")
        jobs, refusals = at_once(*[call] * CALLERS)
        assert refusals == []
        assert len({job.name for job in jobs}) == 1
        control.client.cancel_job(jobs[0].name)
    assert len(list(control.client.jobs())) == 5


def test_one_root_offered_many_times_at_once_becomes_one_library(control: ControlPlane) -> None:
    for number in range(5):
        root = f"/media/{number}".encode()
        calls = [
            partial(control.client.add_library, f"Disk {number} {caller}", root)
            for caller in range(CALLERS)
        ]
        libraries, refusals = at_once(*calls)
        (library,) = libraries
        assert {error.metadata["library"] for error in refusals} == {library.name}
    listed = control.libraries.ListLibraries(libraries_pb.ListLibrariesRequest())
    assert len(listed.libraries) == 5


@contextmanager
def meeting(database: Databases, work: Callable[[], Any]) -> Iterator[tuple[Connection, Any]]:
    """Start `work` in the middle of another control plane's transaction, which it must meet."""
    other = Database(database.url, Plane.CONTROL)
    with ThreadPoolExecutor(1) as pool:
        with other.write() as conn:
            result: list[Future[Any]] = []
            yield conn, result
            result.append(pool.submit(work))
            if other.dialect == "postgresql":
                eventually(partial(somebody_waits, database.control))
        result[0].result(timeout=PATIENCE_SECONDS)
    other.close()


def somebody_waits(database: Database) -> bool:
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    with database.read() as conn:
        return bool(conn.execute(text(f"{query} AND wait_event_type = 'Lock'")).scalar())


def test_a_retry_that_meets_a_new_scan_learns_of_it(control: ControlPlane) -> None:
    with control.database.control.write() as conn:
        waiting = Rows(conn).add("jobs", kind="hash", status="retryable")
    request = pb.RetryJobRequest(name=f"jobs/{waiting}")
    with meeting(control.database, partial(refusal, control.jobs.RetryJob, request)) as (
        conn,
        result,
    ):
        winner = Rows(conn).add("jobs", kind="scan")
    error = result[0].result()
    assert (error.reason, error.metadata) == ("ACTIVE_JOB_EXISTS", {"job": f"jobs/{winner}"})
    assert state(control.client.job(str(waiting))) == "retryable"


def test_a_recovery_that_meets_a_new_scan_does_the_rest_of_its_work(database: Databases) -> None:
    with database.control.write() as conn:
        rows = Rows(conn)
        waiting = rows.add("jobs", kind="hash", status="retryable", retry_after=LONG_AGO)
        stale = rows.add("jobs", status="running", lease_expires_at=LONG_AGO)
    recover = partial(recovery.recover, database.control, Backoff())
    with meeting(database, recover) as (conn, _result):
        Rows(conn).add("jobs", kind="scan")
    with database.control.read() as conn:
        assert Rows(conn).get("jobs", waiting)["status"] == "retryable"
        assert Rows(conn).get("jobs", stale)["status"] == "retryable"
