"""Pages of jobs: newest first, each exactly once, however many arrive meanwhile."""

import base64
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from mediaplane.protocol.machines import JOBS
from mediaplane.protocol.values import JobStatus
from mediaplane.v1 import job_service_pb2 as pb
from tests.support.control import ControlPlane, job_id
from tests.support.rows import Rows

# Few different times, so that most jobs share theirs with others.
times = st.integers(min_value=1_000, max_value=1_003)


def add_jobs(control: ControlPlane, created_at: list[int], **columns: Any) -> dict[int, int]:
    """Add jobs; return their creation times by id."""
    with control.database.control.write() as conn:
        return {Rows(conn).add("jobs", created_at=at, **columns): at for at in created_at}


def page(control: ControlPlane, size: int, token: str, **filters: Any) -> tuple[list[int], str]:
    answer = control.jobs.ListJobs(pb.ListJobsRequest(page_size=size, page_token=token, **filters))
    return [job_id(job) for job in answer.jobs], answer.next_page_token


def newest_first(jobs: dict[int, int]) -> list[int]:
    return sorted(jobs, key=lambda number: (jobs[number], number), reverse=True)


def test_jobs_come_by_creation_and_those_of_one_moment_by_id(control: ControlPlane) -> None:
    jobs = add_jobs(control, [5_000, 9_000, 5_000, 7_000, 9_000])
    assert page(control, 100, "") == (newest_first(jobs), "")


def test_many_jobs_of_one_moment_are_neither_repeated_nor_left_out(control: ControlPlane) -> None:
    jobs = add_jobs(control, [5_000] * 120 + [5_001] * 3)
    found, token = page(control, 7, "")
    while token:
        more, token = page(control, 7, token)
        assert 1 <= len(more) <= 7
        found += more
    assert found == newest_first(jobs)


def test_a_last_page_that_is_full_has_no_token(control: ControlPlane) -> None:
    jobs = add_jobs(control, [1_000] * 6)
    first, token = page(control, 3, "")
    second, end = page(control, 3, token)
    assert (first + second, end) == (newest_first(jobs), "")


def test_jobs_are_shown_as_they_are_however_often_their_page_was_asked_for(
    control: ControlPlane,
) -> None:
    add_jobs(control, [1_000, 2_000, 3_000])
    before = control.jobs.ListJobs(pb.ListJobsRequest())
    assert control.jobs.ListJobs(pb.ListJobsRequest()) == before
    control.jobs.CancelJob(pb.CancelJobRequest(name=before.jobs[1].name))
    after = control.jobs.ListJobs(pb.ListJobsRequest())
    assert [job.state == pb.Job.STATE_CANCELLED for job in after.jobs] == [False, True, False]
    for job in after.jobs:
        assert job == control.jobs.GetJob(pb.GetJobRequest(name=job.name))


def test_the_token_names_the_last_job_of_the_page(control: ControlPlane) -> None:
    add_jobs(control, [1_000, 2_000, 3_000])
    found, token = page(control, 2, "")
    cursor = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    assert cursor["id"] == found[-1]


def test_a_page_goes_on_behind_a_job_that_is_gone_by_then(control: ControlPlane) -> None:
    jobs = add_jobs(control, [1_000, 2_000, 2_000, 2_000, 3_000])
    first, token = page(control, 3, "")
    with control.database.control.write() as conn:
        gone = conn.execute(text("DELETE FROM jobs WHERE id = :id"), {"id": first[-1]})
        assert gone.rowcount == 1
    second, _ = page(control, 3, token)
    assert first + second == newest_first(jobs)


def test_filters_hold_on_every_page(control: ControlPlane) -> None:
    failed = add_jobs(control, [1_000, 1_000, 2_000, 3_000], status="failed")
    add_jobs(control, [1_000, 1_500, 2_000, 9_000], status="completed")
    filters = {"states": [pb.Job.STATE_FAILED]}
    found, token = page(control, 1, "", **filters)
    while token:
        more, token = page(control, 1, token, **filters)
        found += more
    assert found == newest_first(failed)


# What a job has by the name of its column, each with a value that no other has.
FIGURES = {
    "priority": 2, "progress": 0.75, "processed_items": 3, "total_items": 4, "total_bytes": 5,
    "attempts": 6, "max_attempts": 7, "error_code": "lost", "error_message": "It is gone.",
    "skip_reason": "nothing to do", "request_id": "once", "completed_items": 8, "failed_items": 9,
    "skipped_items": 10, "cancelled_items": 11,
}  # fmt: skip


@pytest.mark.parametrize("status", [JobStatus.RUNNING, JobStatus.FAILED, JobStatus.RETRYABLE])
def test_a_listed_job_is_the_job_by_its_name_with_each_column_in_its_field(
    control: ControlPlane, status: JobStatus
) -> None:
    with control.database.control.write() as conn:
        library = Rows(conn).add("libraries")
        origin = Rows(conn).add("jobs", created_at=1_000)
        added = Rows(conn).add(
            "jobs", kind="probe", status=status, created_at=12_345, started_at=23_456,
            updated_at=34_567, finished_at=45_678, retry_after=56_789, cancel_requested_at=1,
            library_id=library, worker_id="worker-1", retry_of=origin,
            payload={"seconds": 1.5, "scratch_bytes": 12}, **FIGURES,
        )  # fmt: skip
    listed = control.jobs.ListJobs(pb.ListJobsRequest()).jobs
    one, other = (control.jobs.GetJob(pb.GetJobRequest(name=job.name)) for job in listed)
    assert list(listed) == [one, other]
    assert (other.name, other.worker, other.retry_of) == (f"jobs/{origin}", "", "")
    assert {name: getattr(one, name) for name in FIGURES} == FIGURES
    assert (one.name, one.library) == (f"jobs/{added}", f"libraries/{library}")
    assert (one.worker, one.retry_of, one.cancel_requested) == ("worker-1", other.name, True)
    assert pb.Job.State.Name(one.state) == f"STATE_{status.upper()}"
    times = {
        field.name: value.ToMilliseconds()
        for field, value in one.ListFields()
        if field.name.endswith("_time")
    }
    ends = {"end_time": 45_678} if status in JOBS.final else {}
    tries = {"retry_time": 56_789} if status == JobStatus.RETRYABLE else {}
    begins = {"create_time": 12_345, "start_time": 23_456, "update_time": 34_567}
    assert times == begins | ends | tries
    assert one.probe == pb.Probe(duration={"nanos": 500_000_000, "seconds": 1}, items=4,
                                 scratch_bytes=12)  # fmt: skip


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    first=st.lists(times, min_size=1, max_size=15),
    later=st.lists(st.lists(times, max_size=3), max_size=8),
    size=st.integers(min_value=1, max_value=6),
)
def test_jobs_added_while_paging_cause_no_repeats_and_no_gaps(
    control: ControlPlane, first: list[int], later: list[list[int]], size: int
) -> None:
    with control.database.control.write() as conn:
        conn.execute(text("DELETE FROM jobs"))
    there_at_the_start = add_jobs(control, first)
    arrivals = iter(later)
    found, token = page(control, size, "")
    while token:
        add_jobs(control, next(arrivals, []))
        more, token = page(control, size, token)
        found += more
    assert len(found) == len(set(found))
    assert [number for number in found if number in there_at_the_start] == newest_first(
        there_at_the_start
    )
