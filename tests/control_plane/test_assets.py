"""Pictures and videos: what is known of each, what is retried, and how much is left to do."""

from typing import Any

import pytest
from grpc import StatusCode
from sqlalchemy import insert, select, text, update

from control_plane.policy import assets as rules
from mediaplane.protocol.database import Topic
from mediaplane.protocol.tables import assets, libraries, library_files, video_frames
from mediaplane.v1 import asset_service_pb2 as pb
from tests.control_plane.test_page_plans import assert_begins_in, plan
from tests.support.control import ControlPlane, refusal
from tests.support.files import add_files, add_library
from tests.support.media import add_row, number, set_columns
from tests.support.waiting import PATIENCE_SECONDS

ASSET = pb.Asset


@pytest.fixture
def photos(control: ControlPlane) -> ControlPlane:
    """A control plane with one library."""
    with control.database.control.write() as conn:
        add_library(conn, "photos")
    return control


def add_asset(
    control: ControlPlane, path: bytes = b"a", *, is_missing: bool = False, **columns: Any
) -> str:
    usual: dict[str, Any] = {
        "library_id": "photos",
        "rel_path": path,
        "type": "video",
        "mtime": 1.5,
        "size": 7,
    }
    row = usual | columns
    asset_id = add_row(control, "assets", **row)
    with control.database.control.write() as conn:
        add_files(conn, row["library_id"], [{"rel_path": path, "is_missing": is_missing}])
    return f"libraries/{row['library_id']}/assets/{asset_id}"


def pipeline(control: ControlPlane, parent: str = "", **fields: Any) -> dict[str, int]:
    request = pb.GetPipelineStatusRequest(parent=parent, **fields)
    found = control.client.asset_service.GetPipelineStatus(request)
    return {field.name: getattr(found, field.name) for field in found.DESCRIPTOR.fields}


def statuses(control: ControlPlane) -> list[str]:
    with control.database.control.read() as conn:
        return list(conn.scalars(select(assets.c.status).order_by(assets.c.id)))


def test_an_asset_tells_all_that_is_known_of_it(photos: ControlPlane) -> None:
    name = add_asset(photos, b"tr\xffip.mp4", status="proxied", version="7-1", width=640,
                     height=360, duration_ms=9000, poster_ms=1200, is_degraded=True)  # fmt: skip
    found = photos.client.asset_service.GetAsset(pb.GetAssetRequest(name=name))
    assert (found.name, found.rel_path) == (name, b"tr\xffip.mp4")
    assert (found.type, found.state) == (ASSET.TYPE_VIDEO, ASSET.STATE_PROXIED)
    assert (found.version_id, found.width, found.height) == ("7-1", 640, 360)
    assert (found.duration_ms, found.poster_timestamp_ms, found.degraded) == (9000, 1200, True)


@pytest.mark.parametrize("status", ["pending", "extracting", "failed", "poisoned"])
def test_what_was_made_of_an_earlier_state_of_a_file_is_not_told_of_the_present_one(
    photos: ControlPlane, status: str
) -> None:
    name = add_asset(photos, status=status, version="7-1", width=640, height=360,
                     duration_ms=9000, poster_ms=1200, is_degraded=True)  # fmt: skip
    add_row(photos, "video_frames", asset_id=number(name), timestamp_ms=1, is_keyframe=True)
    service = photos.client.asset_service
    found = service.GetAsset(pb.GetAssetRequest(name=name))
    (listed,) = service.ListAssets(pb.ListAssetsRequest(parent="libraries/photos")).assets
    assert listed == found
    assert (found.version_id, found.width, found.height) == ("", 0, 0)
    assert (found.duration_ms, found.poster_timestamp_ms, found.degraded) == (0, 0, False)
    assert not service.ListFrames(pb.ListFramesRequest(parent=name)).frames


@pytest.mark.parametrize("name", ["libraries/photos/assets/99", "libraries/films/assets/1"])
def test_an_asset_that_is_not_there_is_not_found(photos: ControlPlane, name: str) -> None:
    add_asset(photos)
    service = photos.client.asset_service
    for call, request in (
        (service.GetAsset, pb.GetAssetRequest(name=name)),
        (service.ListFrames, pb.ListFramesRequest(parent=name)),
        (service.RetryAsset, pb.RetryAssetRequest(name=name)),
    ):
        assert refusal(call, request).code is StatusCode.NOT_FOUND


def test_the_assets_of_a_library_in_the_trash_are_hidden(photos: ControlPlane) -> None:
    name = add_asset(photos)
    with photos.database.control.write() as conn:
        conn.execute(update(libraries).values(deleted_at=1))
    request = pb.GetAssetRequest(name=name)
    assert refusal(photos.client.asset_service.GetAsset, request).code is StatusCode.NOT_FOUND


@pytest.mark.parametrize("page_size", [1, 2, 3, 10])
def test_frames_come_by_time_and_the_first_may_be_at_the_very_start(
    photos: ControlPlane, page_size: int
) -> None:
    name, moments = add_asset(photos, status="proxied"), [0, 40, 1000]
    other = add_asset(photos, b"b", status="proxied")
    with photos.database.control.write() as conn:
        for video, times in ((name, reversed(moments)), (other, [5])):
            frames = [
                {"asset_id": number(video), "timestamp_ms": one,
                 "is_keyframe": one == 40}
                for one in times
            ]  # fmt: skip
            conn.execute(insert(video_frames), frames)
    found: list[pb.Frame] = []
    request = pb.ListFramesRequest(parent=name, page_size=page_size)
    while True:
        page = photos.client.asset_service.ListFrames(request)
        found += page.frames
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert [one.timestamp_ms for one in found] == moments
    assert [one.keyframe for one in found] == [False, True, False]
    assert found[0].name == f"{name}/frames/0"


def test_a_token_of_frames_belongs_to_its_video(photos: ControlPlane) -> None:
    name, other = (add_asset(photos, path, status="proxied") for path in (b"a", b"b"))
    for moment in (1, 2):
        add_row(photos, "video_frames", asset_id=number(name),
                timestamp_ms=moment, is_keyframe=True)  # fmt: skip
    call = photos.client.asset_service.ListFrames
    token = call(pb.ListFramesRequest(parent=name, page_size=1)).next_page_token
    request = pb.ListFramesRequest(parent=other, page_token=token)
    assert refusal(call, request).reason == "INVALID_PAGE_TOKEN"


@pytest.mark.parametrize("status", ["failed", "poisoned", "proxied", "completed"])
def test_an_asset_at_rest_is_processed_again_from_the_start(
    photos: ControlPlane, status: str
) -> None:
    name = add_asset(photos, status=status, retry_count=6, error_code="x", error_message="y")
    bell = photos.database.control.bell
    assert bell
    ear = bell.listen(Topic.WORK)
    found = photos.client.asset_service.RetryAsset(pb.RetryAssetRequest(name=name))
    assert (found.state, found.retry_count) == (ASSET.STATE_PENDING, 0)
    assert (found.error_code, found.error_message) == ("", "")
    assert (found.size_bytes, found.modify_time_seconds) == (7, 1.5)
    assert ear.wait(PATIENCE_SECONDS)


@pytest.mark.parametrize("status", ["pending", "extracting", "analyzing"])
def test_an_asset_that_is_processed_anyway_is_not_retried(
    photos: ControlPlane, status: str
) -> None:
    name = add_asset(photos, status=status)
    found = refusal(photos.client.asset_service.RetryAsset, pb.RetryAssetRequest(name=name))
    assert found.code is StatusCode.FAILED_PRECONDITION
    assert status in found.text


@pytest.mark.parametrize("chunk", [1, 2, 5000])
def test_all_failed_assets_of_a_library_are_retried_in_bites(
    photos: ControlPlane, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(rules, "_CHUNK", chunk)
    with photos.database.control.write() as conn:
        add_library(conn, "films")
    for place, status in enumerate(["failed", "completed", "poisoned", "failed", "extracting"]):
        add_asset(photos, b"%d" % place, status=status)
    add_asset(photos, status="failed", library_id="films")
    request = pb.RetryAssetsRequest(parent="libraries/photos")
    found = photos.client.asset_service.RetryAssets(request)
    assert found.retried_assets == 3
    assert statuses(photos) == [
        "pending", "completed", "pending", "pending", "extracting", "failed",
    ]  # fmt: skip


@pytest.mark.parametrize("status", ["failed", "poisoned"])
def test_what_became_of_a_file_that_is_gone_is_neither_told_nor_retried(
    photos: ControlPlane, status: str
) -> None:
    for path in (b"gone first", b"gone later"):
        add_asset(photos, path, is_missing=True, status=status)
    here = add_asset(photos, b"here", status=status)
    call = photos.client.asset_service.ListAssets
    request = pb.ListAssetsRequest(
        parent="libraries/photos", state=f"STATE_{status.upper()}", page_size=1
    )
    page = call(request)
    assert [one.name for one in page.assets] == [here]
    assert not page.next_page_token
    assert pipeline(photos)["failed_assets"] == 1
    everything = pb.RetryAssetsRequest(parent="libraries/photos")
    assert photos.client.asset_service.RetryAssets(everything).retried_assets == 1
    assert statuses(photos) == [status, status, "pending"]


def test_the_failed_are_listed_by_id_and_the_poisoned_by_themselves(photos: ControlPlane) -> None:
    names = [add_asset(photos, path, status="failed") for path in (b"c", b"b", b"a")]
    poisoned = add_asset(photos, b"d", status="poisoned")
    call = photos.client.asset_service.ListAssets
    request = pb.ListAssetsRequest(parent="libraries/photos", state=ASSET.STATE_FAILED, page_size=2)
    first = call(request)
    request.page_token = first.next_page_token
    second = call(request)
    assert [one.name for one in [*first.assets, *second.assets]] == names
    assert not second.next_page_token
    request.state = ASSET.STATE_POISONED
    assert refusal(call, request).reason == "INVALID_PAGE_TOKEN"
    request.page_token = ""
    assert [one.name for one in call(request).assets] == [poisoned]


def test_other_states_cannot_be_listed(photos: ControlPlane) -> None:
    request = pb.ListAssetsRequest(parent="libraries/photos", state=ASSET.STATE_COMPLETED)
    found = refusal(photos.client.asset_service.ListAssets, request)
    assert found.code is StatusCode.INVALID_ARGUMENT
    assert "failed or poisoned" in found.text


def test_the_pipeline_counts_what_waits_runs_and_failed_in_active_libraries(
    photos: ControlPlane,
) -> None:
    with photos.database.control.write() as conn:
        add_library(conn, "films")
        add_library(conn, "paused", is_active=False)
        add_library(conn, "gone", deleted_at=1)
    for library in ("photos", "paused", "gone"):
        for place, status in enumerate(
            ["pending", "extracting", "analyzing", "proxied", "completed", "failed", "poisoned"]
        ):
            add_asset(photos, b"%d" % place, status=status, library_id=library)
    add_asset(photos, b"i", type="image")
    add_asset(photos, b"j", type="image", library_id="films")
    counted = {"waiting_videos": 1, "running_assets": 2, "failed_assets": 2}
    assert pipeline(photos) == counted | {"waiting_images": 2}
    assert pipeline(photos, "libraries/-") == pipeline(photos)
    assert pipeline(photos, "libraries/photos") == counted | {"waiting_images": 1}
    assert set(pipeline(photos, "libraries/paused").values()) == {0}
    both = ["libraries/photos", "libraries/films"]
    assert pipeline(photos, libraries=both) == pipeline(photos)
    assert pipeline(photos, libraries=both[:1]) == pipeline(photos, both[0])
    assert pipeline(photos, libraries=both, omit_failed=True) == (
        pipeline(photos) | {"failed_assets": 0}
    )


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"libraries": ["libraries/photos", "libraries/unheard-of"]}, StatusCode.NOT_FOUND),
        ({"libraries": ["photos"]}, StatusCode.INVALID_ARGUMENT),
        ({"libraries": ["libraries/photos"] * 501}, StatusCode.INVALID_ARGUMENT),
        (
            {"libraries": ["libraries/photos"], "parent": "libraries/photos"},
            StatusCode.INVALID_ARGUMENT,
        ),
    ],
)
def test_a_pipeline_of_libraries_that_cannot_be_meant_is_refused(
    photos: ControlPlane, fields: dict[str, Any], code: StatusCode
) -> None:
    call = photos.client.asset_service.GetPipelineStatus
    assert refusal(call, pb.GetPipelineStatusRequest(**fields)).code is code


def test_a_library_in_the_trash_has_no_pipeline(photos: ControlPlane) -> None:
    with photos.database.control.write() as conn:
        add_library(conn, "gone", deleted_at=1)
    call = photos.client.asset_service.GetPipelineStatus
    request = pb.GetPipelineStatusRequest(parent="libraries/gone")
    assert refusal(call, request).code is StatusCode.NOT_FOUND


def add_many(control: ControlPlane, **columns: Any) -> int:
    """Add 16,384 assets that are alike, each with its file, and return the id of the first."""
    name = add_asset(control, **columns)
    with control.database.control.write() as conn:
        for _ in range(14):
            for table in (assets, library_files):
                copied = ", ".join(
                    column.name for column in table.columns if column.name not in ("id", "rel_path")
                )
                next_path = f"(SELECT max(id) FROM {table.name}) + id"
                path = (
                    f"CAST(CAST({next_path} AS TEXT) AS BLOB)"
                    if conn.dialect.name == "sqlite"
                    else f"convert_to(({next_path})::text, 'UTF8')"
                )
                conn.execute(
                    text(
                        f"INSERT INTO {table.name} (rel_path, {copied})"
                        f" SELECT {path}, {copied} FROM {table.name}"
                    )
                )
    return number(name)


def analyse(control: ControlPlane) -> None:
    with control.database.control.write() as conn:
        conn.execute(text("ANALYZE"))


def test_the_pipeline_is_counted_by_indexes_of_what_is_counted(photos: ControlPlane) -> None:
    first = add_many(photos, status="completed")
    set_columns(photos, "assets", first, status="pending")
    analyse(photos)
    database = photos.database.control
    chosen = ["libraries/photos"]
    found = plan(database, "libraries l", lambda: pipeline(photos, libraries=chosen) and None)
    whole = plan(database, "assets WHERE", lambda: pipeline(photos) and None)
    assert "Seq Scan on assets" not in found + whole
    assert "SCAN a\n" not in found + whole + "\n"
    assert "sqlite_autoindex_assets" not in found + whole
    assert "ix_assets_analyzing" in whole


def test_a_page_of_what_failed_and_a_bite_to_retry_seek_each_file_by_index(
    photos: ControlPlane,
) -> None:
    first = add_many(photos, status="completed")
    with photos.database.control.write() as conn:
        few = update(assets).where(assets.c.id < first + 500)
        conn.execute(few.values(status="failed"))
    analyse(photos)
    database, service = photos.database.control, photos.client.asset_service
    request = pb.ListAssetsRequest(parent="libraries/photos", state=ASSET.STATE_FAILED)
    request.page_token = service.ListAssets(request).next_page_token
    page = plan(database, "assets a", lambda: service.ListAssets(request))
    count = plan(database, "assets a", lambda: pipeline(photos))
    # The last of its queries looks for what is poisoned.
    bite = plan(database, "assets a", lambda: rules.retry_all(database, "photos"))
    assert_begins_in(page, "ix_assets_failed")
    assert "ix_assets_failed" in count
    assert "ix_assets_poisoned" in bite
    for found in (page, count, bite):
        assert "Seq Scan on assets" not in found
        assert "Seq Scan on library_files" not in found
        assert "SCAN a" not in found
        assert "SCAN f" not in found
