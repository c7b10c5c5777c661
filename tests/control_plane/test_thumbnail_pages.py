"""Thumbnails of a file or of a group come page by page, and groups are cleaned up once."""

from datetime import timedelta
from functools import partial

import pytest
from google.protobuf.duration_pb2 import Duration
from grpc import StatusCode
from sqlalchemy import func, select

from mediaplane.client import pages
from mediaplane.protocol.database import Topic
from mediaplane.protocol.tables import thumbnail_cleanup_jobs
from mediaplane.v1 import thumbnail_service_pb2 as pb
from tests.support.control import ControlPlane, at_once, refusal
from tests.support.media import add_pictures, number, requested, set_columns
from tests.support.waiting import PATIENCE_SECONDS

CLEANUP = pb.ThumbnailCleanup


def scheduled(control: ControlPlane, group_key: str, seconds: float = 0) -> pb.ThumbnailCleanup:
    delay = Duration()
    delay.FromTimedelta(timedelta(seconds=seconds))
    request = pb.ScheduleCleanupRequest(group_key=group_key, delay=delay)
    return control.client.thumbnail_service.ScheduleCleanup(request)


@pytest.mark.parametrize("page_size", [1, 2, 3, 100])
def test_pages_of_a_group_hold_each_thumbnail_once_in_the_order_of_requests(
    control: ControlPlane, page_size: int
) -> None:
    files = add_pictures(control, "photos", 3)
    names = [requested(control, file, group_key="wall").name for file in files]
    requested(control, files[0], group_key="other", size_px=64)
    found, token = [], ""
    while True:
        request = pb.ListThumbnailsRequest(group_key="wall", page_size=page_size, page_token=token)
        page = control.client.thumbnail_service.ListThumbnails(request)
        found += [one.name for one in page.thumbnails]
        if not (token := page.next_page_token):
            break
    assert found == names


def test_the_thumbnails_of_a_file_are_those_of_all_its_states_and_groups(
    control: ControlPlane,
) -> None:
    file, other = add_pictures(control, "photos", 2)
    names = [requested(control, file, **one).name for one in ({}, {"size_px": 64})]
    requested(control, other)
    set_columns(control, "library_files", number(file), mtime_ns=2)
    names.append(requested(control, file, group_key="wall").name)
    call = control.client.thumbnail_service.ListThumbnails
    listed = pages(call, pb.ListThumbnailsRequest(file=file), "thumbnails")
    assert [one.name for one in listed] == names


def test_a_page_token_belongs_to_its_listing(control: ControlPlane) -> None:
    files = add_pictures(control, "photos", 2)
    for file in files:
        requested(control, file, group_key="wall")
    call = control.client.thumbnail_service.ListThumbnails
    token = call(pb.ListThumbnailsRequest(group_key="wall", page_size=1)).next_page_token
    assert token
    for request in (
        pb.ListThumbnailsRequest(group_key="other", page_token=token),
        pb.ListThumbnailsRequest(file=files[0], page_token=token),
        pb.ListThumbnailsRequest(group_key="wall", page_token="1"),
    ):
        assert refusal(call, request).reason == "INVALID_PAGE_TOKEN"


@pytest.mark.parametrize(
    "asked",
    [
        pb.ListThumbnailsRequest(),
        pb.ListThumbnailsRequest(file="libraries/photos/files/1", group_key="wall"),
        pb.ListThumbnailsRequest(group_key="a\0b"),
        pb.ListThumbnailsRequest(group_key="wall", page_size=-1),
    ],
    ids=["neither", "both", "nul", "negative"],
)
def test_a_listing_that_makes_no_sense_is_refused(
    control: ControlPlane, asked: pb.ListThumbnailsRequest
) -> None:
    found = refusal(control.client.thumbnail_service.ListThumbnails, asked)
    assert found.code is StatusCode.INVALID_ARGUMENT


def test_a_thumbnail_or_clean_up_that_does_not_exist_is_not_found(control: ControlPlane) -> None:
    service = control.client.thumbnail_service
    unknown = pb.GetThumbnailRequest(name="thumbnails/9")
    assert refusal(service.GetThumbnail, unknown).code is StatusCode.NOT_FOUND
    gone = pb.GetCleanupRequest(name="thumbnailCleanups/9")
    assert refusal(service.GetCleanup, gone).code is StatusCode.NOT_FOUND


def test_a_clean_up_is_scheduled_for_its_time_and_can_be_looked_at(control: ControlPlane) -> None:
    found = scheduled(control, "wall", 90.5)
    waits_ms = found.execute_time.ToMilliseconds() - found.create_time.ToMilliseconds()
    assert waits_ms == pytest.approx(90_500, abs=2)
    assert (found.group_key, found.state) == ("wall", CLEANUP.STATE_PENDING)
    request = pb.GetCleanupRequest(name=found.name)
    assert control.client.thumbnail_service.GetCleanup(request) == found


def test_a_clean_up_that_waits_gets_the_new_time(control: ControlPlane) -> None:
    late = scheduled(control, "wall", 3600)
    soon = scheduled(control, "wall")
    assert soon.name == late.name
    assert soon.execute_time.ToMilliseconds() < late.execute_time.ToMilliseconds()
    assert scheduled(control, "other").name != late.name


def test_a_clean_up_under_way_is_followed_by_another(control: ControlPlane) -> None:
    first = scheduled(control, "wall")
    set_columns(control, "thumbnail_cleanup_jobs", number(first.name), status="running")
    assert scheduled(control, "wall").name != first.name


def test_clean_ups_of_one_group_that_are_scheduled_at_once_are_one(control: ControlPlane) -> None:
    answers, refusals = at_once(*[partial(scheduled, control, "wall")] * 8)
    assert not refusals
    assert len({answer.name for answer in answers}) == 1
    with control.database.control.read() as conn:
        query = select(func.count()).select_from(thumbnail_cleanup_jobs)
        assert conn.execute(query).scalar_one() == 1


def test_a_clean_up_wakes_the_workers(control: ControlPlane) -> None:
    bell = control.database.control.bell
    assert bell
    ear = bell.listen(Topic.WORK)
    scheduled(control, "wall")
    assert ear.wait(PATIENCE_SECONDS)


@pytest.mark.parametrize(
    ("group_key", "seconds"), [("", 0), ("x" * 101, 0), ("wall", -1), ("wall", 1e10)], ids=str
)
def test_a_clean_up_that_can_never_be_done_is_refused(
    control: ControlPlane, group_key: str, seconds: float
) -> None:
    request = pb.ScheduleCleanupRequest(group_key=group_key)
    request.delay.seconds = int(seconds)
    found = refusal(control.client.thumbnail_service.ScheduleCleanup, request)
    assert found.code is StatusCode.INVALID_ARGUMENT
