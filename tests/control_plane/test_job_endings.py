"""Cancelling and retrying: what ends stays ended, and what is done again is another job."""

import pytest
from grpc import StatusCode

from mediaplane.v1 import job_service_pb2 as pb
from tests.support import worker
from tests.support.control import HASH, SCAN, ControlPlane, job_id, refusal, state
from tests.support.rows import FAR_AHEAD, Rows


def test_a_waiting_job_is_cancelled_at_once(control: ControlPlane) -> None:
    library = control.library("photos")
    job = control.client.cancel_job(control.create(SCAN, library).name)
    assert (state(job), job.cancel_requested) == ("cancelled", True)
    assert job.HasField("end_time")
    assert control.events(job.name) == ["JOB_ADDED", "JOB_CANCELLED", "JOB_DONE"]
    assert state(control.create(SCAN, library)) == "pending"


def test_a_running_job_is_asked_to_stop_and_ends_when_its_worker_has(
    control: ControlPlane,
) -> None:
    data = control.database.data
    name = control.create(HASH).name
    held = worker.claim(data)
    asked = control.client.cancel_job(name)
    assert (state(asked), asked.cancel_requested) == ("running", True)
    assert not asked.HasField("end_time")
    assert worker.finish(data, held, "cancel")
    assert state(control.client.job(name)) == "cancelled"
    told = ["JOB_ADDED", "JOB_STARTED", "LOG", "JOB_CANCELLED", "JOB_DONE"]
    assert control.events(name) == told


def test_cancelling_twice_changes_nothing(control: ControlPlane) -> None:
    running = control.create(HASH)
    held = worker.claim(control.database.data)
    asked = control.client.cancel_job(running.name)
    with control.database.control.write() as conn:
        before = Rows(conn).get("jobs", job_id(running))
    assert control.client.cancel_job(running.name) == asked
    with control.database.control.read() as conn:
        assert Rows(conn).get("jobs", job_id(running)) == before
    worker.finish(control.database.data, held, "cancel")
    ended = control.client.cancel_job(running.name)
    assert ended == control.client.cancel_job(running.name)
    assert control.events(running.name)[-1] == "JOB_DONE"


def test_a_cancel_after_the_end_does_not_change_how_the_job_ended(control: ControlPlane) -> None:
    with control.database.control.write() as conn:
        ids = {
            status: Rows(conn).add("jobs", kind="scan", status=status)
            for status in ("completed", "failed", "skipped")
        }
    for status, number in ids.items():
        before = control.client.job(str(number))
        error = refusal(control.jobs.CancelJob, pb.CancelJobRequest(name=f"jobs/{number}"))
        assert error.code is StatusCode.FAILED_PRECONDITION
        assert status in error.text
        assert control.client.job(str(number)) == before


@pytest.mark.parametrize("step", ["complete", "fail", "cancel", "retry"])
def test_a_worker_cannot_move_a_job_that_has_ended(control: ControlPlane, step: str) -> None:
    data = control.database.data
    name = control.create(HASH).name
    held = worker.claim(data)
    worker.finish(data, held, "fail", error_code="broken", error_message="It broke.")
    ended = control.client.job(name)
    assert not worker.finish(data, held, step)
    assert control.client.job(name) == ended
    assert (state(ended), ended.error_code) == ("failed", "broken")
    assert control.events(name) == ["JOB_ADDED", "JOB_STARTED", "JOB_ERROR", "JOB_DONE"]


@pytest.mark.parametrize("status", ["failed", "cancelled", "skipped"])
def test_a_retry_is_a_new_job_and_the_old_one_stays_as_it_is(
    control: ControlPlane, status: str
) -> None:
    library = control.library("photos")
    with control.database.control.write() as conn:
        given = {"payload": {"library": "photos", "accept_new_root": True}, "max_attempts": 9}
        old = Rows(conn).add(
            "jobs", kind="scan", library_id="photos", status=status, priority=4, **given
        )
    before = control.client.job(str(old))
    new = control.client.retry_job(str(old))
    assert (new.retry_of, state(new), new.library) == (f"jobs/{old}", "pending", library)
    assert (new.priority, new.max_attempts, new.attempts) == (4, 9, 0)
    assert control.client.job(str(old)) == before
    assert worker.claim(control.database.data)["payload"] == given["payload"]
    assert control.events(new.name)[0] == "JOB_ADDED"


def test_a_retried_hash_is_planned_anew(control: ControlPlane) -> None:
    first = control.create(HASH)
    worker.finish(control.database.data, worker.claim(control.database.data), "fail")
    with control.database.control.write() as conn:
        for name in ("a", "b"):
            Rows(conn).add("library_files", size_bytes=5, device=1, inode=ord(name))
    again = control.client.retry_job(first.name)
    assert (again.total_items, again.total_bytes) == (2, 10)
    assert len(list(control.client.job_items(again.name))) == 1


@pytest.mark.parametrize("status", ["pending", "running", "completed"])
def test_a_job_that_is_not_over_or_went_well_cannot_be_retried(
    control: ControlPlane, status: str
) -> None:
    with control.database.control.write() as conn:
        job = Rows(conn).add("jobs", kind="hash", status=status)
    error = refusal(control.jobs.RetryJob, pb.RetryJobRequest(name=f"jobs/{job}"))
    assert error.code is StatusCode.FAILED_PRECONDITION
    assert status in error.text
    assert len(list(control.client.jobs())) == 1


def test_a_job_of_a_kind_that_cannot_run_is_not_retried(control: ControlPlane) -> None:
    with control.database.control.write() as conn:
        job = Rows(conn).add("jobs", kind="delete", status="failed")
    error = refusal(control.jobs.RetryJob, pb.RetryJobRequest(name=f"jobs/{job}"))
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert len(list(control.client.jobs())) == 1


def test_a_job_that_waits_for_another_try_returns_at_once(control: ControlPlane) -> None:
    with control.database.control.write() as conn:
        job = Rows(conn).add("jobs", kind="hash", status="retryable", retry_after=FAR_AHEAD)
    again = control.client.retry_job(str(job))
    assert (again.name, state(again), again.attempts) == (f"jobs/{job}", "pending", 1)
    assert not again.HasField("retry_time")


@pytest.mark.parametrize("status", ["retryable", "failed"])
def test_nothing_is_retried_while_another_scan_or_hash_is_active(
    control: ControlPlane, status: str
) -> None:
    with control.database.control.write() as conn:
        job = Rows(conn).add("jobs", kind="hash", status=status)
    active = control.create(HASH)
    error = refusal(control.jobs.RetryJob, pb.RetryJobRequest(name=f"jobs/{job}"))
    assert (error.code, error.reason) == (StatusCode.ALREADY_EXISTS, "ACTIVE_JOB_EXISTS")
    assert error.metadata == {"job": active.name}
    assert state(control.client.job(str(job))) == status


def test_a_job_outside_the_mutex_is_put_back_beside_an_active_scan(control: ControlPlane) -> None:
    with control.database.control.write() as conn:
        job = Rows(conn).add("jobs", kind="delete", status="retryable")
    control.create(HASH)
    assert state(control.client.retry_job(str(job))) == "pending"


def test_the_scan_status_of_a_library_follows_its_job(control: ControlPlane) -> None:
    library = control.library("photos")
    assert control.scan_status(library) == "idle"
    job = control.create(SCAN, library)
    assert control.scan_status(library) == "scan_req"
    control.client.cancel_job(job.name)
    assert control.scan_status(library) == "idle"
    control.client.retry_job(job.name)
    assert control.scan_status(library) == "scan_req"
