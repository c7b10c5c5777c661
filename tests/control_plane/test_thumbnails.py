"""Thumbnails are admitted once for each picture, and never more than may wait."""

from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode
from sqlalchemy import event, update

from control_plane.store.thumbnails import QUEUE
from mediaplane.protocol.database import Database, Topic
from mediaplane.protocol.tables import libraries, thumbnails
from mediaplane.protocol.values import Plane
from mediaplane.v1 import thumbnail_service_pb2 as pb
from tests.support.control import ControlPlane, refusal, serving_control
from tests.support.databases import Databases
from tests.support.media import add_pictures, number, requested, requested_all, set_columns
from tests.support.rows import FAR_AHEAD, LONG_AGO
from tests.support.waiting import PATIENCE_SECONDS

THUMBNAIL = pb.Thumbnail


def refused(control: ControlPlane, **wanted: Any) -> Any:
    service = control.client.thumbnail_service
    return refusal(service.RequestThumbnail, pb.RequestThumbnailRequest(**wanted))


def test_a_request_says_what_will_be_made(control: ControlPlane) -> None:
    (file,) = add_pictures(control, "photos", 1, size_bytes=255, mtime_ns=-16)
    found = requested(control, file)
    assert found.name.startswith("thumbnails/")
    assert (found.file, found.group_key) == (file, file)
    assert found.file_version == "ff--10"
    assert (found.size_px, found.format) == (320, THUMBNAIL.FORMAT_JPEG)
    assert (found.state, found.media_type) == (THUMBNAIL.STATE_PENDING, 1)
    assert found.HasField("create_time")
    assert not found.HasField("end_time")
    assert not found.HasField("retry_time")


def test_a_repeated_request_returns_the_first_thumbnail(control: ControlPlane) -> None:
    (file,) = add_pictures(control, "photos", 1)
    first = requested(control, file, group_key="wall")
    assert requested(control, file, size_px=320, group_key="other") == first


def test_another_size_or_format_is_another_thumbnail(control: ControlPlane) -> None:
    (file,) = add_pictures(control, "photos", 1)
    wanted: list[dict[str, Any]] = [{}, {"size_px": 16}, {"format": "FORMAT_WEBP"}]
    assert len({requested(control, file, **one).name for one in wanted}) == 3


def test_a_changed_file_gets_a_new_thumbnail(control: ControlPlane) -> None:
    (file,) = add_pictures(control, "photos", 1)
    before = requested(control, file)
    set_columns(control, "library_files", number(file), mtime_ns=2)
    after = requested(control, file)
    assert after.name != before.name
    assert after.file_version != before.file_version


def test_a_known_thumbnail_is_returned_while_somebody_else_writes(control: ControlPlane) -> None:
    (file,) = add_pictures(control, "photos", 1)
    first = requested(control, file)
    another = Database(control.database.url, Plane.CONTROL)
    with another.write(held=QUEUE):
        assert requested(control, file) == first
    another.close()


def test_a_request_wakes_the_workers(control: ControlPlane) -> None:
    (file,) = add_pictures(control, "photos", 1)
    bell = control.database.control.bell
    assert bell
    ear = bell.listen(Topic.WORK)
    requested(control, file)
    assert ear.wait(PATIENCE_SECONDS)


@pytest.mark.parametrize(
    ("columns", "code"),
    [
        ({"is_missing": True}, StatusCode.NOT_FOUND),
        ({"media_type": None}, StatusCode.FAILED_PRECONDITION),
    ],
    ids=["missing", "neither picture nor video"],
)
def test_a_file_that_cannot_be_shown_is_refused(
    control: ControlPlane, columns: dict[str, Any], code: StatusCode
) -> None:
    (file,) = add_pictures(control, "photos", 1, **columns)
    found = refused(control, file=file)
    assert found.code is code
    assert file in found.text


def test_a_file_of_another_library_is_not_known(control: ControlPlane) -> None:
    (file,) = add_pictures(control, "photos", 1)
    name = file.replace("photos", "films")
    assert refused(control, file=name).code is StatusCode.NOT_FOUND


def test_nothing_of_a_library_in_the_trash_is_shown(control: ControlPlane) -> None:
    (file,) = add_pictures(control, "photos", 1)
    name = requested(control, file, group_key="wall").name
    with control.database.control.write() as conn:
        conn.execute(update(libraries).values(deleted_at=1))
    service = control.client.thumbnail_service
    for call, request in (
        (service.RequestThumbnail, pb.RequestThumbnailRequest(file=file)),
        (service.GetThumbnail, pb.GetThumbnailRequest(name=name)),
        (service.ListThumbnails, pb.ListThumbnailsRequest(file=file)),
    ):
        assert refusal(call, request).code is StatusCode.NOT_FOUND
    listed = service.ListThumbnails(pb.ListThumbnailsRequest(group_key="wall"))
    assert not listed.thumbnails


@pytest.mark.parametrize(
    "wanted",
    [
        {"size_px": 15},
        {"size_px": 4097},
        {"size_px": -1},
        {"group_key": "x" * 101},
        {"group_key": "a\0b"},
        {"format": 7},
        {"file": "libraries/photos/files/0"},
        {"file": "photos/1"},
        {"file": ""},
    ],
    ids=str,
)
def test_a_request_that_can_never_be_met_is_refused(
    control: ControlPlane, wanted: dict[str, Any]
) -> None:
    (file,) = add_pictures(control, "photos", 1)
    assert refused(control, **({"file": file} | wanted)).code is StatusCode.INVALID_ARGUMENT


def test_a_failed_thumbnail_waits_for_its_time(control: ControlPlane) -> None:
    (file,) = add_pictures(control, "photos", 1)
    name = requested(control, file).name
    failed = {"status": "failed", "error_code": "corrupt", "error_count": 1, "finished_at": 5}
    set_columns(control, "thumbnails", number(name), **failed, retry_after=FAR_AHEAD)
    found = requested(control, file)
    assert (found.name, found.state) == (name, THUMBNAIL.STATE_FAILED)
    assert found.retry_time.ToMilliseconds() == FAR_AHEAD
    assert (found.error_code, found.error_count) == ("corrupt", 1)


def test_a_failed_thumbnail_is_made_again_once_its_time_has_come(control: ControlPlane) -> None:
    (file,) = add_pictures(control, "photos", 1)
    name = requested(control, file).name
    set_columns(control, "thumbnails", number(name), status="failed", retry_after=LONG_AGO)
    found = requested(control, file)
    assert (found.name, found.state) == (name, THUMBNAIL.STATE_PENDING)
    assert not found.HasField("retry_time")


def test_a_batch_answers_in_its_order_and_may_name_a_picture_twice(control: ControlPlane) -> None:
    first, second = add_pictures(control, "photos", 2)
    known = requested(control, second)
    asked = [{"file": one} for one in (first, second, first)]
    found = requested_all(control, *asked)
    assert [one.file for one in found] == [first, second, first]
    assert found[1] == known
    assert found[0] == found[2]


def test_a_batch_with_one_request_that_cannot_be_met_admits_none(control: ControlPlane) -> None:
    (file,) = add_pictures(control, "photos", 1)
    service = control.client.thumbnail_service
    requests = [{"file": file}, {"file": "libraries/photos/files/999"}]
    found = refusal(
        service.BatchRequestThumbnails, pb.BatchRequestThumbnailsRequest(requests=requests)
    )
    assert found.code is StatusCode.NOT_FOUND
    assert not service.ListThumbnails(pb.ListThumbnailsRequest(file=file)).thumbnails


@pytest.mark.parametrize("is_wrong_first", [True, False])
@pytest.mark.parametrize("library", ["unheard-of", "films"])
def test_a_batch_that_names_a_file_in_a_wrong_library_too_admits_none(
    control: ControlPlane, library: str, *, is_wrong_first: bool
) -> None:
    (file,) = add_pictures(control, "photos", 1)
    add_pictures(control, "films", 1)
    wrong = f"libraries/{library}/files/{number(file)}"
    named = [wrong, file] if is_wrong_first else [file, wrong]
    service = control.client.thumbnail_service
    request = pb.BatchRequestThumbnailsRequest(requests=[{"file": one} for one in named])
    found = refusal(service.BatchRequestThumbnails, request)
    assert found.code is StatusCode.NOT_FOUND
    assert wrong in found.text
    assert not service.ListThumbnails(pb.ListThumbnailsRequest(file=file)).thumbnails


@pytest.mark.parametrize("count", [0, 501])
def test_a_batch_has_a_size(control: ControlPlane, count: int) -> None:
    (file,) = add_pictures(control, "photos", 1)
    request = pb.BatchRequestThumbnailsRequest(requests=[{"file": file}] * count)
    found = refusal(control.client.thumbnail_service.BatchRequestThumbnails, request)
    assert found.code is StatusCode.INVALID_ARGUMENT


def test_a_full_queue_refuses_what_is_new_and_returns_what_is_known(
    database: Databases, tmp_path: Path
) -> None:
    with serving_control(database, tmp_path, thumbnail_capacity=2) as control:
        files = add_pictures(control, "photos", 3)
        known = [requested(control, file) for file in files[:2]]
        found = refused(control, file=files[2])
        assert found.code is StatusCode.RESOURCE_EXHAUSTED
        assert "MEDIAPLANE_THUMBNAIL_CAPACITY" in found.text
        assert [requested(control, file) for file in files[:2]] == known
        set_columns(control, "thumbnails", number(known[0].name), status="ready")
        assert requested(control, files[2]).state == THUMBNAIL.STATE_PENDING


def test_a_batch_that_does_not_fit_as_a_whole_admits_none(
    database: Databases, tmp_path: Path
) -> None:
    with serving_control(database, tmp_path, thumbnail_capacity=2) as control:
        files = add_pictures(control, "photos", 3)
        service = control.client.thumbnail_service
        requests = pb.BatchRequestThumbnailsRequest(requests=[{"file": one} for one in files])
        found = refusal(service.BatchRequestThumbnails, requests)
        assert found.code is StatusCode.RESOURCE_EXHAUSTED
        # A picture that is named twice takes one place.
        assert len(requested_all(control, *({"file": one} for one in [*files[:2], files[0]]))) == 3


def test_a_batch_of_several_sizes_that_does_not_fit_as_a_whole_admits_none(
    database: Databases, tmp_path: Path
) -> None:
    with serving_control(database, tmp_path, thumbnail_capacity=2) as control:
        (file,) = add_pictures(control, "photos", 1)
        service = control.client.thumbnail_service
        sizes = [{"file": file, "size_px": size_px} for size_px in (160, 320, 640)]
        found = refusal(
            service.BatchRequestThumbnails, pb.BatchRequestThumbnailsRequest(requests=sizes)
        )
        assert found.code is StatusCode.RESOURCE_EXHAUSTED
        assert not service.ListThumbnails(pb.ListThumbnailsRequest(file=file)).thumbnails
        assert [one.size_px for one in requested_all(control, *sizes[:2])] == [160, 320]


def test_what_is_made_again_takes_a_place_too(database: Databases, tmp_path: Path) -> None:
    with serving_control(database, tmp_path, thumbnail_capacity=1) as control:
        first, second = add_pictures(control, "photos", 2)
        again = number(requested(control, first).name)
        set_columns(control, "thumbnails", again, status="failed", retry_after=LONG_AGO)
        waiting = number(requested(control, second).name)
        assert refused(control, file=first).code is StatusCode.RESOURCE_EXHAUSTED
        set_columns(control, "thumbnails", waiting, status="ready")
        assert requested(control, first).state == THUMBNAIL.STATE_PENDING


def test_nothing_is_requeued_for_a_batch_whose_new_ones_do_not_fit(
    database: Databases, tmp_path: Path
) -> None:
    with serving_control(database, tmp_path, thumbnail_capacity=1) as control:
        first, second = add_pictures(control, "photos", 2)
        again = requested(control, first).name
        set_columns(control, "thumbnails", number(again), status="failed", retry_after=LONG_AGO)
        service = control.client.thumbnail_service
        both = pb.BatchRequestThumbnailsRequest(requests=[{"file": first}, {"file": second}])
        found = refusal(service.BatchRequestThumbnails, both)
        assert found.code is StatusCode.RESOURCE_EXHAUSTED
        state = service.GetThumbnail(pb.GetThumbnailRequest(name=again)).state
        assert state == THUMBNAIL.STATE_FAILED


def test_a_ready_thumbnail_tells_its_measures(control: ControlPlane) -> None:
    (file,) = add_pictures(control, "photos", 1)
    name = requested(control, file).name
    made = {"status": "ready", "width": 320, "height": 200, "bytes_size": 4711, "finished_at": 9}
    set_columns(control, "thumbnails", number(name), **made)
    found = control.client.thumbnail_service.GetThumbnail(pb.GetThumbnailRequest(name=name))
    assert (found.state, found.width, found.height) == (THUMBNAIL.STATE_READY, 320, 200)
    assert (found.size_bytes, found.end_time.ToMilliseconds()) == (4711, 9)


def test_a_thumbnail_of_part_of_a_file_is_degraded_and_without_failure(
    control: ControlPlane,
) -> None:
    (file,) = add_pictures(control, "photos", 1)
    name = requested(control, file).name
    made = {"status": "ready", "error_code": "degraded", "error_message": "Part of it."}
    set_columns(control, "thumbnails", number(name), **made)
    found = control.client.thumbnail_service.GetThumbnail(pb.GetThumbnailRequest(name=name))
    assert (found.degraded, found.error_code, found.error_message) == (True, "", "")
    set_columns(control, "thumbnails", number(name), error_code=None, error_message=None)
    found = control.client.thumbnail_service.GetThumbnail(pb.GetThumbnailRequest(name=name))
    assert not found.degraded


def test_a_file_that_is_purged_in_the_moment_of_its_request_is_not_found(
    control: ControlPlane,
) -> None:
    (file,) = add_pictures(control, "photos", 1)
    engine = control.database.control.engine
    removed = []

    def remove(_conn: Any, cursor: Any, sql: str, *_rest: Any) -> None:
        if "INSERT INTO thumbnails" in sql:
            cursor.connection.cursor().execute("DELETE FROM library_files")
            removed.append(sql)

    event.listen(engine, "before_cursor_execute", remove)
    found = refused(control, file=file)
    event.remove(engine, "before_cursor_execute", remove)
    assert removed
    assert found.code is StatusCode.NOT_FOUND
    with control.database.control.read() as conn:
        assert not conn.execute(thumbnails.select()).all()
