"""At most one sweep of the cache is under way, and a purge asks for one."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from grpc import StatusCode
from sqlalchemy import event, text

from control_plane.store.sweeps import active
from mediaplane.v1 import job_service_pb2 as pb
from mediaplane.v1 import library_service_pb2 as libraries_pb
from tests.support import worker
from tests.support.control import ControlPlane, at_once, job_id, refusal, state
from tests.support.rows import FAR_AHEAD, Rows

SWEEP = pb.JOB_KIND_SWEEP
ASKED = pb.CreateJobRequest(job=pb.Job(kind=SWEEP))


def sweeps(control: ControlPlane) -> list[pb.Job]:
    return list(control.client.jobs(kinds=["sweep"]))


def purge(control: ControlPlane, slug: str) -> None:
    control.library(slug)
    control.client.remove_library(slug)
    list(control.client.purge_library(slug))


def test_a_sweep_waits_for_a_worker_and_has_no_library(control: ControlPlane) -> None:
    job = control.create(SWEEP)
    assert (state(job), job.library) == ("pending", "")
    assert control.events(job.name) == ["JOB_ADDED"]


def test_a_sweep_of_a_library_is_refused(control: ControlPlane) -> None:
    request = pb.CreateJobRequest(job=pb.Job(kind=SWEEP, library=control.library("photos")))
    error = refusal(control.jobs.CreateJob, request)
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert "A sweep has no library" in error.text


def wait(control: ControlPlane, job: pb.Job) -> None:
    with control.database.control.write() as conn:
        conn.exec_driver_sql(
            f"UPDATE jobs SET status = 'retryable', retry_after = {FAR_AHEAD}"
            f" WHERE id = {job_id(job)}"
        )


@pytest.mark.parametrize(
    ("status", "move"),
    [
        ("pending", lambda _control, _job: None),
        ("running", lambda control, _job: worker.claim(control.database.data)),
        ("retryable", wait),
    ],
)
def test_a_second_sweep_is_refused_and_the_first_named(
    control: ControlPlane, status: str, move: Callable[[ControlPlane, pb.Job], Any]
) -> None:
    first = control.create(SWEEP)
    move(control, first)
    error = refusal(control.jobs.CreateJob, ASKED)
    assert error.reason == "ACTIVE_JOB_EXISTS"
    assert error.metadata == {"job": first.name}
    assert f"(sweep) is {status}" in error.text
    assert [job.name for job in sweeps(control)] == [first.name]


def test_a_sweep_that_has_ended_makes_way_for_the_next(control: ControlPlane) -> None:
    first = control.create(SWEEP)
    worker.finish(control.database.data, worker.claim(control.database.data))
    assert control.create(SWEEP).name != first.name


def test_of_sweeps_asked_for_at_once_one_comes_into_being(control: ControlPlane) -> None:
    answers, refusals = at_once(*[lambda: control.jobs.CreateJob(ASKED)] * 4)
    assert len(answers) == 1
    assert {error.reason for error in refusals} == {"ACTIVE_JOB_EXISTS"}
    assert len(sweeps(control)) == 1


def test_a_failed_sweep_is_not_retried_beside_another(control: ControlPlane) -> None:
    failed = control.create(SWEEP)
    worker.finish(control.database.data, worker.claim(control.database.data), "fail")
    control.create(SWEEP)
    error = refusal(control.jobs.RetryJob, pb.RetryJobRequest(name=failed.name))
    assert error.reason == "ACTIVE_JOB_EXISTS"


def test_a_batch_has_no_sweeps(control: ControlPlane) -> None:
    error = refusal(control.jobs.BatchCreateJobs, pb.BatchCreateJobsRequest(requests=[ASKED]))
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert "sweeps" in error.text


def test_a_sweep_and_a_scan_wait_side_by_side(control: ControlPlane) -> None:
    control.create(SWEEP)
    assert state(control.create(pb.JOB_KIND_SCAN, control.library("photos"))) == "pending"


def test_a_look_for_a_sweep_reads_no_history(control: ControlPlane) -> None:
    with control.database.control.write() as conn:
        rows = Rows(conn)
        for _ in range(500):
            rows.add("jobs", kind="sweep", status="completed")
        conn.execute(text("ANALYZE"))
        explain = "EXPLAIN QUERY PLAN" if conn.dialect.name == "sqlite" else "EXPLAIN"
        asked: list[str] = []
        event.listen(conn, "before_cursor_execute", lambda *given: asked.append(given[2]))
        assert active(conn) is None
        lines = conn.exec_driver_sql(f"{explain} {asked[-1]}").all()
    plan = "\n".join(str(line[-1]) for line in lines)
    assert set(re.findall(r"ix_jobs_\w+", plan)) == {
        "ix_jobs_claim", "ix_jobs_running", "ix_jobs_retryable",
    }  # fmt: skip
    assert "Seq Scan" not in plan
    assert not re.search(r"SCAN jobs(?! USING)", plan)


def test_a_purge_asks_for_a_sweep_once_the_library_is_gone(control: ControlPlane) -> None:
    control.library("photos")
    with control.database.control.write() as conn:
        Rows(conn).add("assets", library_id="photos")
    control.client.remove_library("photos")
    request = libraries_pb.PurgeLibraryRequest(name="libraries/photos")
    assert not control.libraries.PurgeLibrary(request).is_gone
    assert sweeps(control) == []
    assert control.libraries.PurgeLibrary(request).is_gone
    (sweep,) = sweeps(control)
    assert state(sweep) == "pending"


def test_a_purge_adds_no_sweep_to_one_that_is_under_way(control: ControlPlane) -> None:
    purge(control, "photos")
    purge(control, "films")
    assert len(sweeps(control)) == 1
