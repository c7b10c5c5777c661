"""Which files a verify job is given, and when there may be one."""

from typing import Any

import pytest
from grpc import StatusCode
from sqlalchemy import select

from control_plane.policy import shards as cutting
from mediaplane.protocol import kinds
from mediaplane.protocol.tables import job_items
from mediaplane.protocol.values import JobKind
from mediaplane.v1 import job_service_pb2 as pb
from tests.support import worker
from tests.support.control import HASH, ControlPlane, Refusal, at_once, job_id, refusal, state
from tests.support.files import add_files, content

VERIFY = pb.JOB_KIND_VERIFY
PHOTOS = "libraries/photos"


@pytest.fixture
def photos(control: ControlPlane) -> ControlPlane:
    """A control plane with a library of four hashed files, and others that cannot be verified."""
    control.library("photos")
    control.library("films")
    with control.database.control.write() as conn:
        add_files(conn, "photos", [content(number) for number in range(4)])
        add_files(conn, "photos", [{}, content(4) | {"is_missing": True}, {"needs_hash": True}])
        add_files(conn, "films", [content(1)])
    return control


def shards(control: ControlPlane, job: pb.Job) -> list[dict[str, Any]]:
    query = select(job_items.c.payload).where(job_items.c.job_id == job_id(job))
    with control.database.control.read() as conn:
        return list(conn.scalars(query.order_by(job_items.c.id)))


def payload(first: int, last: int) -> dict[str, Any]:
    return kinds.encode(kinds.HashItemPayload(first, last))


def refused(control: ControlPlane, library: str = PHOTOS) -> Refusal:
    request = pb.CreateJobRequest(job=pb.Job(kind=VERIFY, library=library))
    return refusal(control.jobs.CreateJob, request)


def retry(control: ControlPlane, job: pb.Job) -> pb.Job:
    return control.jobs.RetryJob(pb.RetryJobRequest(name=job.name))


def purge(control: ControlPlane, slug: str) -> None:
    control.client.remove_library(slug)
    for _rows in control.client.purge_library(slug):
        pass


def test_a_verify_job_is_given_the_present_hashed_files_of_its_library(
    photos: ControlPlane,
) -> None:
    job = photos.create(VERIFY, PHOTOS)
    assert (job.total_items, job.total_bytes) == (4, 40)
    assert shards(photos, job) == [payload(1, 4)]


def test_a_verify_job_is_cut_into_shards(
    photos: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cutting, "SHARD_FILES", 3)
    assert shards(photos, photos.create(VERIFY, PHOTOS)) == [
        payload(1, 3),
        payload(4, 4),
    ]


def test_a_library_without_hashes_is_verified_with_nothing_to_do(control: ControlPlane) -> None:
    control.library("photos")
    job = control.create(VERIFY, PHOTOS)
    assert job.total_items == 0
    assert worker.finish(control.database.data, worker.claim(control.database.data))
    assert state(control.client.job(job.name)) == "completed"


def test_a_library_is_verified_once_at_a_time(photos: ControlPlane) -> None:
    first = photos.create(VERIFY, PHOTOS)
    error = refused(photos)
    assert (error.code, error.reason) == (StatusCode.ALREADY_EXISTS, "ACTIVE_JOB_EXISTS")
    assert error.metadata == {"job": first.name}
    assert f"mediaplane job watch {job_id(first)}" in error.text
    assert photos.create(VERIFY, "libraries/films").total_items == 1
    photos.client.cancel_job(first.name)
    assert photos.create(VERIFY, PHOTOS).total_items == 4


def test_of_two_that_verify_a_library_at_once_one_is_refused(photos: ControlPlane) -> None:
    answers, refusals = at_once(*[lambda: photos.create(VERIFY, PHOTOS)] * 2)
    assert [job.total_items for job in answers] == [4]
    assert [error.reason for error in refusals] == ["ACTIVE_JOB_EXISTS"]


def test_the_same_request_twice_at_once_is_one_verify_job(photos: ControlPlane) -> None:
    answers, refusals = at_once(*[lambda: photos.create(VERIFY, PHOTOS, "once")] * 2)
    assert refusals == []
    assert len({job.name for job in answers}) == 1


def test_a_library_is_verified_while_others_are_hashed(photos: ControlPlane) -> None:
    photos.create(HASH, "libraries/films")
    assert state(photos.create(VERIFY, PHOTOS)) == "pending"


def test_a_verify_job_needs_a_library(control: ControlPlane) -> None:
    error = refused(control, "")
    assert error.code is StatusCode.INVALID_ARGUMENT
    assert error.text == "A verify needs a library, as libraries/SLUG."


def test_a_verify_job_is_not_part_of_a_batch(photos: ControlPlane) -> None:
    one = pb.CreateJobRequest(job=pb.Job(kind=VERIFY, library=PHOTOS))
    error = refusal(photos.jobs.BatchCreateJobs, pb.BatchCreateJobsRequest(requests=[one]))
    assert (error.code, "by itself" in error.text) == (StatusCode.INVALID_ARGUMENT, True)


def test_a_retried_verify_job_is_given_the_files_of_now(photos: ControlPlane) -> None:
    first = photos.create(VERIFY, PHOTOS)
    photos.client.cancel_job(first.name)
    with photos.database.control.write() as conn:
        add_files(conn, "photos", [content(9)])
    again = retry(photos, first)
    assert (again.total_items, again.total_bytes, again.library) == (5, 50, PHOTOS)
    assert [shard["last_file_id"] for shard in shards(photos, again)] == [9]


def test_a_verify_job_is_not_retried_beside_another_of_its_library(photos: ControlPlane) -> None:
    first = photos.create(VERIFY, PHOTOS)
    photos.client.cancel_job(first.name)
    second = photos.create(VERIFY, PHOTOS)
    error = refusal(photos.jobs.RetryJob, pb.RetryJobRequest(name=first.name))
    assert error.metadata == {"job": second.name}


@pytest.mark.parametrize("kind", [HASH, VERIFY])
def test_a_job_of_a_purged_library_is_not_retried_for_all_libraries(
    photos: ControlPlane, kind: pb.JobKind
) -> None:
    job = photos.create(kind, PHOTOS)
    photos.client.cancel_job(job.name)
    purge(photos, "photos")
    error = refusal(photos.jobs.RetryJob, pb.RetryJobRequest(name=job.name))
    assert (error.code, "no library 'photos'" in error.text) == (StatusCode.NOT_FOUND, True)


def test_a_retried_hash_belongs_to_the_new_library_of_the_purged_ones_name(
    photos: ControlPlane,
) -> None:
    job = photos.create(HASH, PHOTOS)
    photos.client.cancel_job(job.name)
    purge(photos, "photos")
    photos.library("photos")
    assert retry(photos, job).library == PHOTOS


def test_a_hash_of_all_libraries_is_retried_for_all(photos: ControlPlane) -> None:
    job = photos.create(HASH)
    photos.client.cancel_job(job.name)
    assert retry(photos, job).library == ""


def test_the_task_of_a_hash_that_names_no_library_can_still_be_read() -> None:
    assert kinds.decode(JobKind.HASH, {}) == kinds.HashPayload(None)
