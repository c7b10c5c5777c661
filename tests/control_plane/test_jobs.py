"""Jobs over the wire: which come into being, which are refused, and how they are found."""

from collections.abc import Sequence
from typing import Any

import pytest
from grpc import StatusCode

from mediaplane.v1 import job_service_pb2 as pb
from mediaplane.v1 import library_service_pb2 as libraries_pb
from tests.support import worker
from tests.support.control import HASH, SCAN, ControlPlane, job_id, refusal, state
from tests.support.rows import LONG_AGO, Rows


def request_for(kind: Any, library: str = "", request_id: str = "") -> pb.CreateJobRequest:
    return pb.CreateJobRequest(job=pb.Job(kind=kind, library=library), request_id=request_id)


def test_a_created_job_waits_and_is_found_under_its_name(control: ControlPlane) -> None:
    library = control.library("photos")
    job = control.create(SCAN, library, "request 1", priority=7, max_attempts=2)
    assert (job.kind, job.library, state(job)) == (SCAN, library, "pending")
    assert (job.priority, job.max_attempts, job.request_id) == (7, 2, "request 1")
    assert job.create_time.seconds > 1_700_000_000
    assert not job.HasField("end_time")
    assert control.client.job(job.name) == job


def test_a_job_without_max_attempts_gets_the_default(control: ControlPlane) -> None:
    assert control.create(HASH).max_attempts == 5


def test_negative_max_attempts_are_refused(control: ControlPlane) -> None:
    asked = pb.Job(kind=HASH, max_attempts=-1)
    error = refusal(control.jobs.CreateJob, pb.CreateJobRequest(job=asked))
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert "max_attempts" in error.text


@pytest.mark.parametrize("name", ["jobs/1", "jobs/999999999999999999"])
def test_a_job_that_does_not_exist_is_not_found(control: ControlPlane, name: str) -> None:
    for call, request in (
        (control.jobs.GetJob, pb.GetJobRequest(name=name)),
        (control.jobs.CancelJob, pb.CancelJobRequest(name=name)),
        (control.jobs.RetryJob, pb.RetryJobRequest(name=name)),
        (control.jobs.ListJobItems, pb.ListJobItemsRequest(parent=name)),
        (control.jobs.ListEvents, pb.ListEventsRequest(parent=name)),
        (control.jobs.WatchJobs, pb.WatchJobsRequest(names=[name])),
    ):
        assert refusal(call, request).code is StatusCode.NOT_FOUND


@pytest.mark.parametrize(
    "name", ["", "jobs/", "jobs/0", "jobs/-1", "jobs/1 ", "jobs/٣", "1", "jobs/" + "9" * 19]
)
def test_what_is_no_name_of_a_job_is_refused(control: ControlPlane, name: str) -> None:
    error = refusal(control.jobs.GetJob, pb.GetJobRequest(name=name))
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert "jobs/123" in error.text


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (pb.JOB_KIND_DELETE, "delete"),
        (pb.JOB_KIND_THUMBNAIL, "thumbnail"),
        (pb.JOB_KIND_UNSPECIFIED, "kind"),
        (99, "99"),
    ],
)
def test_a_kind_that_cannot_run_is_refused_and_leaves_no_job(
    control: ControlPlane, kind: int, word: str
) -> None:
    error = refusal(control.jobs.CreateJob, request_for(kind))
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert word in error.text
    assert list(control.client.jobs()) == []


def test_a_scan_needs_a_library_that_exists_and_is_active(control: ControlPlane) -> None:
    paused = control.library("paused")
    control.libraries.UpdateLibrary(
        libraries_pb.UpdateLibraryRequest(
            library=libraries_pb.Library(name=paused, is_active=False),
            update_mask={"paths": ["is_active"]},
        )
    )
    codes = [
        refusal(control.jobs.CreateJob, request_for(kind, library)).code
        for kind in (SCAN, HASH)
        for library in ("libraries/none", paused, "none")
    ]
    expected = [StatusCode.NOT_FOUND, StatusCode.FAILED_PRECONDITION, StatusCode.INVALID_ARGUMENT]
    assert codes == expected * 2
    assert refusal(control.jobs.CreateJob, request_for(SCAN)).code is StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("first", [SCAN, HASH])
@pytest.mark.parametrize("second", [SCAN, HASH])
@pytest.mark.parametrize("is_running", [False, True])
def test_a_second_scan_or_hash_is_refused_with_the_name_of_the_active_one(
    control: ControlPlane,
    first: pb.JobKind,
    second: pb.JobKind,
    is_running: bool,
) -> None:
    library = control.library("photos")
    active = control.create(first, library)
    if is_running:
        worker.claim(control.database.data)
    error = refusal(control.jobs.CreateJob, request_for(second, library))
    assert (error.code, error.reason) == (StatusCode.ALREADY_EXISTS, "ACTIVE_JOB_EXISTS")
    assert error.metadata == {"job": active.name}
    assert str(job_id(active)) in error.text
    assert [job.name for job in control.client.jobs()] == [active.name]


def test_the_calls_of_a_library_keep_to_the_same_mutex(control: ControlPlane) -> None:
    library = control.library("photos")
    active = control.libraries.ScanLibrary(libraries_pb.ScanLibraryRequest(name=library))
    for call, request in (
        (control.libraries.ScanLibrary, libraries_pb.ScanLibraryRequest(name=library)),
        (control.libraries.HashLibrary, libraries_pb.HashLibraryRequest(name="libraries/-")),
    ):
        error = refusal(call, request)
        assert (error.reason, error.metadata) == ("ACTIVE_JOB_EXISTS", {"job": active.name})


def test_an_ended_job_makes_room_for_the_next(control: ControlPlane) -> None:
    library = control.library("photos")
    control.create(SCAN, library)
    worker.finish(control.database.data, worker.claim(control.database.data))
    assert state(control.create(HASH)) == "pending"


def test_a_repeated_request_returns_the_first_job_in_whatever_state_it_is(
    control: ControlPlane,
) -> None:
    library = control.library("photos")
    first = control.create(SCAN, library, "once")
    assert control.create(SCAN, library, "once") == first
    worker.finish(control.database.data, worker.claim(control.database.data))
    again = control.create(SCAN, library, "once")
    assert (again.name, state(again)) == (first.name, "completed")
    assert len(list(control.client.jobs())) == 1
    assert control.events(first.name).count("JOB_ADDED") == 1


def test_a_request_id_that_was_used_for_another_job_is_refused(control: ControlPlane) -> None:
    library, other = control.library("photos"), control.library("films")
    control.create(SCAN, library, "once")
    for kind, named in ((HASH, library), (SCAN, other)):
        error = refusal(control.jobs.CreateJob, request_for(kind, named, "once"))
        assert error.code is StatusCode.INVALID_ARGUMENT
        assert "another job" in error.text


@pytest.mark.parametrize("request_id", ["x" * 129, "a\0b", "a\nb"])
def test_a_request_id_that_cannot_be_stored_is_refused(
    control: ControlPlane, request_id: str
) -> None:
    error = refusal(control.jobs.CreateJob, request_for(HASH, "", request_id))
    assert error.code is StatusCode.INVALID_ARGUMENT


def test_a_list_is_narrowed_by_states_and_kinds(control: ControlPlane) -> None:
    with control.database.control.write() as conn:
        ids = {
            (kind, status): Rows(conn).add("jobs", kind=kind, status=status)
            for kind in ("scan", "delete")
            for status in ("completed", "failed", "retryable")
        }

    def found(states: Sequence[str] = (), kinds: Sequence[str] = ()) -> set[int]:
        return {job_id(job) for job in control.client.jobs(states, kinds)}

    assert found() == set(ids.values())
    assert found(states=["failed", "retryable"], kinds=["scan"]) == {
        ids["scan", "failed"],
        ids["scan", "retryable"],
    }
    assert found(states=["running"]) == set()


def test_a_filter_for_nothing_in_particular_is_refused(control: ControlPlane) -> None:
    for request in (
        pb.ListJobsRequest(states=[pb.Job.STATE_UNSPECIFIED]),
        pb.ListJobsRequest(kinds=[pb.JOB_KIND_UNSPECIFIED]),
    ):
        assert refusal(control.jobs.ListJobs, request).code is StatusCode.INVALID_ARGUMENT


def test_only_a_retryable_job_has_a_retry_time_and_only_an_ended_one_an_end_time(
    control: ControlPlane,
) -> None:
    with control.database.control.write() as conn:
        times = {"retry_after": LONG_AGO, "finished_at": LONG_AGO}
        for status in ("cancelled", "retryable"):
            Rows(conn).add("jobs", status=status, **times)
    shown = {
        state(job): (job.HasField("retry_time"), job.HasField("end_time"))
        for job in control.client.jobs()
    }
    assert shown == {"cancelled": (False, True), "retryable": (True, False)}
