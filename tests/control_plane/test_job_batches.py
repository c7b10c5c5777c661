"""Many jobs at once: all of them or none, each once, in the order they were asked for."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from grpc import StatusCode

from control_plane.policy import admission
from control_plane.store import jobs
from mediaplane.protocol.values import JobKind
from mediaplane.v1 import job_service_pb2 as pb
from tests.support.control import HASH, PROBE, SCAN, ControlPlane, refusal, state
from tests.support.steps import history_of
from tests.support.waiting import PATIENCE_SECONDS


def batch(*jobs: pb.Job, request_ids: tuple[str, ...] = ()) -> pb.BatchCreateJobsRequest:
    ids = request_ids or ("",) * len(jobs)
    return pb.BatchCreateJobsRequest(
        requests=[
            pb.CreateJobRequest(job=job, request_id=request_id)
            for job, request_id in zip(jobs, ids, strict=True)
        ]
    )


def probes(number: int) -> list[pb.Job]:
    return [pb.Job(kind=PROBE, priority=priority) for priority in range(number)]


def names(control: ControlPlane, request: pb.BatchCreateJobsRequest) -> list[str]:
    return [job.name for job in control.jobs.BatchCreateJobs(request).jobs]


def test_a_batch_has_its_jobs_in_the_order_of_the_requests(control: ControlPlane) -> None:
    created = control.jobs.BatchCreateJobs(batch(*probes(admission.MAX_BATCH))).jobs
    assert [job.priority for job in created] == list(range(admission.MAX_BATCH))
    assert {state(job) for job in created} == {"pending"}
    assert len({job.name for job in created}) == admission.MAX_BATCH
    for job in (created[0], created[-1]):
        assert control.client.job(job.name) == job
        assert control.events(job.name) == ["JOB_ADDED"]


def test_jobs_of_different_kinds_each_begin_their_own_history(control: ControlPlane) -> None:
    kinds = [JobKind.PROBE, JobKind.DELETE, JobKind.PROBE]
    with control.database.control.write() as conn:
        added = jobs.add_many(conn, [{"kind": kind, "payload": {"x": 1}} for kind in kinds])
    assert added is not None
    with control.database.control.read() as conn:
        told = [history_of(conn, row["id"]) for row in added]
    assert told == [[("job_added", {"kind": kind, "library": None, "x": 1})] for kind in kinds]


@pytest.mark.parametrize("number", [0, admission.MAX_BATCH + 1])
def test_a_batch_of_none_or_of_too_many_is_refused(control: ControlPlane, number: int) -> None:
    error = refusal(control.jobs.BatchCreateJobs, batch(*probes(number)))
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert f"not {number}" in error.text
    assert list(control.client.jobs()) == []


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        (pb.Job(kind=SCAN, library="libraries/photos"), "neither scans and hashes"),
        (pb.Job(kind=HASH), "neither scans and hashes"),
        (pb.Job(kind=PROBE, probe=pb.Probe(items=1)), "cut into items"),
        (pb.Job(kind=PROBE, probe=pb.Probe(scratch_bytes=-1)), "scratch_bytes is -1"),
        (pb.Job(kind=PROBE, max_attempts=-1), "max_attempts is -1"),
        (pb.Job(kind=pb.JOB_KIND_DELETE), "cannot run jobs of kind delete"),
        (pb.Job(), "job.kind is missing"),
    ],
)
def test_one_job_that_cannot_be_admitted_refuses_the_whole_batch(
    control: ControlPlane, odd: pb.Job, told: str
) -> None:
    control.library("photos")
    error = refusal(control.jobs.BatchCreateJobs, batch(*probes(2), odd))
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert told in error.text
    assert list(control.client.jobs()) == []


def test_a_request_id_twice_in_a_batch_is_refused(control: ControlPlane) -> None:
    request = batch(*probes(3), request_ids=("a", "b", "a"))
    error = refusal(control.jobs.BatchCreateJobs, request)
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert "same request id" in error.text
    assert list(control.client.jobs()) == []


def test_known_request_ids_return_their_first_jobs_among_the_new_ones(
    control: ControlPlane,
) -> None:
    first = names(control, batch(*probes(2), request_ids=("a", "b")))
    again = names(control, batch(*probes(4), request_ids=("c", "b", "", "a")))
    assert (again[1], again[3]) == (first[1], first[0])
    assert len(set(again)) == 4
    assert len(list(control.client.jobs())) == 4


def test_a_request_id_of_another_kind_of_job_refuses_the_batch(control: ControlPlane) -> None:
    control.create(HASH, request_id="a")
    request = batch(*probes(2), request_ids=("b", "a"))
    error = refusal(control.jobs.BatchCreateJobs, request)
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert len(list(control.client.jobs())) == 1


def test_a_batch_that_comes_in_twice_at_once_is_admitted_once(control: ControlPlane) -> None:
    request = batch(*probes(3), request_ids=("a", "b", "c"))
    wanted = [admission.Wanted(JobKind.PROBE, request_id=one) for one in ("a", "b", "c")]
    asked = threading.Event()

    def ask() -> list[str]:
        asked.set()
        return names(control, request)

    with ThreadPoolExecutor(1) as pool:
        with control.database.control.write() as conn:
            first = [f"jobs/{row['id']}" for row in admission.create_many(conn, wanted)]
            second = pool.submit(ask)
            assert asked.wait(PATIENCE_SECONDS)
            # Let it come as far as it can, if the database lets it come here at all.
            with pytest.raises(TimeoutError):
                second.result(timeout=0.5)
        assert second.result(timeout=PATIENCE_SECONDS) == first
    assert len(list(control.client.jobs())) == 3
