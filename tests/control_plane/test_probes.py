"""Probes over the wire: what may be asked for, and what is shown of it."""

import pytest
from google.protobuf.duration_pb2 import Duration
from grpc import StatusCode

from mediaplane.v1 import job_service_pb2 as pb
from tests.support.control import HASH, PROBE, ControlPlane, refusal, state
from tests.support.planes import Worker


def probe(items: int = 0, scratch_bytes: int = 0, milliseconds: int = 0) -> pb.Probe:
    duration = Duration()
    duration.FromMilliseconds(milliseconds)
    return pb.Probe(duration=duration, items=items, scratch_bytes=scratch_bytes)


def figures(job: pb.Job) -> tuple[int, int, int, int]:
    return (job.completed_items, job.failed_items, job.skipped_items, job.cancelled_items)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (probe(milliseconds=-1), "probe.duration is -0.001; it must be 0 to 3600"),
        (probe(milliseconds=3_600_001), "probe.duration is 3600"),
        (probe(items=-1), "probe.items is -1; it must be 0 to 10000"),
        (probe(items=10_001), "probe.items is 10001"),
        (probe(scratch_bytes=-1), "probe.scratch_bytes is -1"),
        (probe(scratch_bytes=(1 << 30) + 1), "probe.scratch_bytes is"),
    ],
)
def test_a_probe_beyond_its_limits_is_refused(
    control: ControlPlane, asked: pb.Probe, told: str
) -> None:
    request = pb.CreateJobRequest(job=pb.Job(kind=PROBE, probe=asked))
    error = refusal(control.jobs.CreateJob, request)
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert told in error.text
    assert list(control.client.jobs()) == []


def test_a_probe_at_its_limits_is_admitted_as_asked(control: ControlPlane) -> None:
    asked = probe(10_000, 1 << 30, 3_600_000)
    job = control.create(PROBE, probe=asked)
    assert job.probe == asked
    assert (job.total_items, job.total_bytes) == (10_000, 10_000 << 30)
    assert control.client.job(job.name) == job


def test_what_a_probe_is_to_do_is_shown_to_the_millisecond(control: ControlPlane) -> None:
    for milliseconds in (0, 1, 50, 1_001, 3_599_999):
        asked = probe(milliseconds=milliseconds)
        assert control.create(PROBE, probe=asked).probe == asked


def test_what_a_probe_is_to_do_is_refused_for_other_kinds(control: ControlPlane) -> None:
    request = pb.CreateJobRequest(job=pb.Job(kind=HASH, probe=probe()))
    error = refusal(control.jobs.CreateJob, request)
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert "job.probe" in error.text
    assert not control.create(HASH).HasField("probe")


def test_a_probe_has_no_library(control: ControlPlane) -> None:
    job = pb.Job(kind=PROBE, library=control.library("photos"))
    error = refusal(control.jobs.CreateJob, pb.CreateJobRequest(job=job))
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert "no library" in error.text


def test_the_counters_of_a_job_are_shown(control: ControlPlane) -> None:
    job = control.create(PROBE, probe=probe(items=3))
    assert figures(job) == (0, 0, 0, 0)
    Worker(control.database.data).runner.work_once()
    done = control.client.job(job.name)
    assert (state(done), figures(done)) == ("completed", (3, 0, 0, 0))
    assert done.processed_items == 3


def test_a_retried_probe_has_items_of_its_own(control: ControlPlane) -> None:
    first = control.create(PROBE, probe=probe(items=3, scratch_bytes=5), priority=7)
    cancelled = control.client.cancel_job(first.name)
    assert (state(cancelled), figures(cancelled)) == ("cancelled", (0, 0, 0, 3))
    again = control.client.retry_job(first.name)
    assert (again.retry_of, again.priority, again.probe) == (first.name, 7, first.probe)
    assert (figures(again), again.total_bytes) == ((0, 0, 0, 0), 15)
    items = list(control.client.job_items(again.name))
    assert [item.state for item in items] == [pb.JobItem.STATE_PENDING] * 3
    Worker(control.database.data).runner.work_once()
    assert state(control.client.job(again.name)) == "completed"
    assert figures(control.client.job(first.name)) == (0, 0, 0, 3)
