"""Requested thumbnails are made one by one, served when ready, and cleaned up by group."""

import io
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from PIL import Image
from sqlalchemy import insert, select

from data_plane.cache import thumbnail_path
from data_plane.media import cleanup_task
from mediaplane.protocol import gate
from mediaplane.protocol.clock import database_time
from mediaplane.protocol.machines import THUMBNAILS
from mediaplane.protocol.tables import thumbnail_cleanup_jobs
from mediaplane.protocol.values import JobKind, ThumbnailFormat
from mediaplane.v1 import content_service_pb2 as content_v1
from tests.support.data import DataPlane, serving_data
from tests.support.databases import Databases
from tests.support.planes import LIBRARY, Desk
from tests.support.scanning import put
from tests.support.studio import Studio, film, photo
from tests.support.tree import snapshot
from tests.support.waiting import eventually

DAY_MS = 24 * 3600 * 1000
Rendition = content_v1.ReadRenditionRequest.Rendition


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "library"
    root.mkdir()
    return root


@pytest.fixture
def studio(desk: Desk, database: Databases, tmp_path: Path, root: Path, loops: None) -> Studio:
    """A studio whose library was scanned, and of whose assets nothing is made."""
    put(root, b"a.jpg", photo(1000, 500))
    put(root, b"bad.jpg", b"not a picture")
    film(root / "v.mp4", frames=100)
    studio = Studio(desk, database.data, tmp_path / "state")
    desk.add_library(root)
    with studio.worker(image_slots=0, video_slots=0):
        assert desk.run(JobKind.SCAN)["status"] == "completed"
    desk.change("UPDATE assets SET status = 'completed'")
    return studio


@pytest.fixture
def plane(studio: Studio, database: Databases) -> Iterator[DataPlane]:
    with serving_data(database, studio.state) as plane:
        yield plane


def add_cleanup(studio: Studio, group: str, execute_after: int = 0) -> int:
    values = {"group_key": group, "execute_after": execute_after}
    with studio.desk.database.write() as conn:
        added = conn.execute(insert(thumbnail_cleanup_jobs), values)
        assert added.inserted_primary_key
        return int(added.inserted_primary_key[0])


def cleanup_status(studio: Studio, row_id: int) -> str:
    query = select(thumbnail_cleanup_jobs.c.status).where(thumbnail_cleanup_jobs.c.id == row_id)
    with studio.desk.database.read() as conn:
        return str(conn.execute(query).scalar_one())


@pytest.mark.parametrize("file_format", ["jpeg", "webp"])
def test_a_thumbnail_is_made_in_its_size_and_format(studio: Studio, file_format: str) -> None:
    row_id = studio.add_thumbnail(b"a.jpg", size_px=200, format=file_format)
    with studio.worker():
        row = studio.wait_for_thumbnail(row_id, "ready", "failed")
    assert (row["status"], row["width"], row["height"]) == ("ready", 200, 100)
    assert (row["error_code"], row["retry_after"], row["lease_expires_at"]) == (None, None, None)
    file = studio.state / thumbnail_path(row_id, row["format"])
    picture = Image.open(io.BytesIO(file.read_bytes()))
    assert (picture.format, picture.size) == (file_format.upper(), (200, 100))
    assert file.stat().st_size == row["bytes_size"]


def test_a_thumbnail_that_shows_part_of_its_file_says_so(studio: Studio, root: Path) -> None:
    put(root, b"cut.jpg", photo()[:-5000])
    film(root / "cut.mkv")
    os.truncate(root / "cut.mkv", (root / "cut.mkv").stat().st_size * 2 // 3)
    with studio.worker():
        assert studio.desk.run(JobKind.SCAN)["status"] == "completed"
        assert studio.wait_for(b"cut.mkv", "proxied", "failed")["status"] == "proxied"
        # Of the proxy, of the video itself, of a picture; and one that is whole.
        wanted = ((b"cut.mkv", 100), (b"cut.mkv", 2000), (b"cut.jpg", 100), (b"a.jpg", 100))
        ids = [studio.add_thumbnail(path, size_px=size_px) for path, size_px in wanted]
        rows = [studio.wait_for_thumbnail(row_id, "ready", "failed") for row_id in ids]
    assert [row["status"] for row in rows] == ["ready"] * 4
    assert [row["error_code"] for row in rows] == [*["degraded"] * 3, None]
    assert all(row["error_message"] for row in rows[:3])


def test_what_cannot_be_decoded_fails_for_a_day(studio: Studio) -> None:
    row_id = studio.add_thumbnail(b"bad.jpg")
    with studio.worker():
        row = studio.wait_for_thumbnail(row_id, "ready", "failed")
    assert (row["status"], row["error_code"], row["error_count"]) == ("failed", "unsupported", 1)
    with studio.desk.database.read() as conn:
        left = row["retry_after"] - database_time(conn)
    assert 0.9 * DAY_MS < left <= DAY_MS


def test_a_missing_root_is_tried_again_soon_and_later_each_time(studio: Studio, root: Path) -> None:
    root.rename(root.with_name("away"))
    row_id = studio.add_thumbnail(b"a.jpg", error_count=2)
    with studio.worker():
        row = studio.wait_for_thumbnail(row_id, "ready", "failed")
    assert (row["error_code"], row["error_count"]) == ("root_unavailable", 3)
    with studio.desk.database.read() as conn:
        seconds = (row["retry_after"] - database_time(conn)) / 1000
    assert 120 < seconds <= 240


def test_a_thumbnail_shows_the_state_that_was_asked_for_or_none(studio: Studio) -> None:
    row_id = studio.add_thumbnail(b"a.jpg", file_version="1-2")
    with studio.worker():
        assert studio.wait_for_thumbnail(row_id, "ready", "failed")["error_code"] == "changed"


def test_a_video_that_is_processed_is_not_read_again(studio: Studio, root: Path) -> None:
    studio.desk.change("UPDATE assets SET status = 'pending' WHERE type = 'video'")
    with studio.worker():
        studio.wait_for(b"v.mp4", "proxied")
        (root / "v.mp4").unlink()
        small = studio.add_thumbnail(b"v.mp4", size_px=100)
        assert studio.wait_for_thumbnail(small, "ready", "failed")["status"] == "ready"
        # Larger than the proxy: that takes the video itself.
        large = studio.add_thumbnail(b"v.mp4", size_px=2000)
        assert studio.wait_for_thumbnail(large, "ready", "failed")["error_code"] == "not_found"


def test_thumbnails_of_a_silent_worker_are_taken_over(studio: Studio) -> None:
    row_id = studio.add_thumbnail(
        b"a.jpg", status="running", worker_id="gone", lease_epoch=1, lease_expires_at=1000
    )
    with studio.worker():
        assert studio.wait_for_thumbnail(row_id, "ready", "failed")["status"] == "ready"


def test_a_slow_video_does_not_hold_up_the_pictures(studio: Studio, root: Path) -> None:
    video = studio.add_thumbnail(b"v.mp4", size_px=100)
    with studio.worker(image_slots=1, video_slots=0):
        picture = studio.add_thumbnail(b"a.jpg")
        assert studio.wait_for_thumbnail(picture, "ready", "failed")["status"] == "ready"
        row = studio.thumbnail(video)
        assert row is not None
        assert row["status"] == "pending"
    with studio.worker(image_slots=0, video_slots=1):
        assert studio.wait_for_thumbnail(video, "ready", "failed")["status"] == "ready"


def test_a_cleanup_removes_rows_and_files_of_its_group_and_nothing_else(
    studio: Studio, root: Path
) -> None:
    before = snapshot(root)
    with studio.worker():
        mine = [studio.add_thumbnail(b"a.jpg", size_px=size) for size in (50, 60)]
        mine.append(studio.add_thumbnail(b"bad.jpg"))
        other = studio.add_thumbnail(b"a.jpg", size_px=70, group_key="other")
        for row_id in (*mine, other):
            studio.wait_for_thumbnail(row_id, "ready", "failed")
        cleanup = add_cleanup(studio, "shown")
        eventually(lambda: cleanup_status(studio, cleanup) == "completed")
    assert [studio.thumbnail(row_id) for row_id in mine] == [None] * 3
    assert studio.cached() == {thumbnail_path(other, ThumbnailFormat.JPEG).removeprefix("cache/")}
    assert studio.thumbnail(other) is not None
    assert snapshot(root) == before


def test_a_cleanup_waits_for_its_time_and_for_the_thumbnails_of_its_group(studio: Studio) -> None:
    waiting = studio.add_thumbnail(b"v.mp4")
    with studio.desk.database.read() as conn:
        later = database_time(conn) + DAY_MS
    held_up, not_due = add_cleanup(studio, "shown"), add_cleanup(studio, "other", later)
    with studio.worker(video_slots=0):
        # Done after both were looked at: the image lane takes clean-ups as well.
        done = add_cleanup(studio, "nothing there")
        eventually(lambda: cleanup_status(studio, done) == "completed")
        assert [cleanup_status(studio, one) for one in (held_up, not_due)] == ["pending"] * 2
    with studio.worker():
        eventually(lambda: cleanup_status(studio, held_up) == "completed")
    assert studio.thumbnail(waiting) is None
    assert cleanup_status(studio, not_due) == "pending"


def test_a_thumbnail_that_is_asked_for_again_meanwhile_survives_the_cleanup(
    studio: Studio, database: Databases
) -> None:
    row_id = studio.add_thumbnail(b"a.jpg", status="failed", retry_after=1000)
    removed: list[object] = []
    task = cleanup_task(database.data, {"tenant_id": None, "group_key": "shown"})
    cleaner = threading.Thread(target=lambda: removed.extend(task.forget()))
    with database.control.write() as conn:
        assert gate.take(conn, THUMBNAILS, "requeue", row_id)
        cleaner.start()
        # Until it waits for the row, or for its turn to write.
        cleaner.join(0.5)
        assert cleaner.is_alive()
    cleaner.join()
    row = studio.thumbnail(row_id)
    assert row is not None
    assert (row["status"], removed) == ("pending", [])


def joined(stream: Iterator[content_v1.ContentChunk]) -> tuple[bytes, content_v1.ContentChunk]:
    chunks = list(stream)
    return b"".join(chunk.data for chunk in chunks), chunks[0]


def refused(stream: Iterator[content_v1.ContentChunk]) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as caught:
        list(stream)
    code: grpc.StatusCode = caught.value.code()
    return code


def test_thumbnails_renditions_and_frames_are_streamed_with_their_version(
    studio: Studio, plane: DataPlane
) -> None:
    studio.desk.change("UPDATE assets SET status = 'pending' WHERE type = 'video'")
    row_id = studio.add_thumbnail(b"a.jpg", size_px=200, format="webp")
    with studio.worker():
        asset = studio.wait_for(b"v.mp4", "proxied")
        thumbnail = studio.wait_for_thumbnail(row_id, "ready")
    request = content_v1.ReadThumbnailRequest(name=f"thumbnails/{row_id}")
    data, first = joined(plane.content.ReadThumbnail(request))
    assert (first.content_type, first.version_id) == ("image/webp", thumbnail["file_version"])
    assert (first.size_bytes, len(data)) == (thumbnail["bytes_size"],) * 2
    name = f"libraries/{LIBRARY}/assets/{asset['id']}"
    for rendition, content_type in (
        (Rendition.RENDITION_THUMBNAIL, "image/webp"),
        (Rendition.RENDITION_PROXY, "image/jpeg"),
        (Rendition.RENDITION_SPRITE, "image/jpeg"),
        (Rendition.RENDITION_SPRITE_INDEX, "text/vtt"),
    ):
        asked = content_v1.ReadRenditionRequest(name=name, rendition=rendition)
        data, first = joined(plane.content.ReadRendition(asked))
        assert (first.content_type, first.version_id) == (content_type, asset["version"])
        assert len(data) == first.size_bytes
    assert data.startswith(b"WEBVTT")
    time_ms = studio.frames(asset["id"])[1][0]
    frame = content_v1.ReadFrameRequest(name=f"{name}/frames/{time_ms}")
    data, first = joined(plane.content.ReadFrame(frame))
    assert Image.open(io.BytesIO(data)).size == (320, 240)
    assert first.size_bytes == len(data)


def test_what_is_unknown_or_not_ready_is_refused(studio: Studio, plane: DataPlane) -> None:
    codes = grpc.StatusCode
    waiting = studio.add_thumbnail(b"a.jpg")
    image, video = studio.asset(b"a.jpg"), studio.asset(b"v.mp4")
    content, name = plane.content, f"libraries/{LIBRARY}/assets/"

    def thumbnail(name: str) -> grpc.StatusCode:
        return refused(content.ReadThumbnail(content_v1.ReadThumbnailRequest(name=name)))

    def rendition(name: str, which: content_v1.ReadRenditionRequest.Rendition) -> grpc.StatusCode:
        request = content_v1.ReadRenditionRequest(name=name, rendition=which)
        return refused(content.ReadRendition(request))

    def frame(name: str) -> grpc.StatusCode:
        return refused(content.ReadFrame(content_v1.ReadFrameRequest(name=name)))

    proxy = Rendition.RENDITION_PROXY
    assert thumbnail(f"thumbnails/{waiting}") == codes.FAILED_PRECONDITION
    assert thumbnail("thumbnails/999999") == codes.NOT_FOUND
    assert thumbnail("../thumbnails/1") == codes.INVALID_ARGUMENT
    assert rendition(f"{name}{image['id']}", proxy) == codes.FAILED_PRECONDITION
    assert rendition(f"{name}999999", proxy) == codes.NOT_FOUND
    unspecified = Rendition.RENDITION_UNSPECIFIED
    assert rendition(f"{name}{image['id']}", unspecified) == codes.INVALID_ARGUMENT
    assert frame(f"{name}{video['id']}/frames/0") == codes.FAILED_PRECONDITION
    assert frame(f"{name}{video['id']}/frames/-1") == codes.INVALID_ARGUMENT
    studio.desk.change("UPDATE assets SET version = '1-2'")
    # Processed by another worker, whose cache is elsewhere.
    assert rendition(f"{name}{image['id']}", proxy) == codes.FAILED_PRECONDITION
    sprite = Rendition.RENDITION_SPRITE
    assert rendition(f"{name}{image['id']}", sprite) == codes.FAILED_PRECONDITION
    assert frame(f"{name}{video['id']}/frames/7") == codes.NOT_FOUND
    studio.desk.change("UPDATE libraries SET deleted_at = 1")
    assert thumbnail(f"thumbnails/{waiting}") == codes.NOT_FOUND
    assert rendition(f"{name}{image['id']}", proxy) == codes.NOT_FOUND


def test_workers_read_no_faster_than_the_budget_of_all(studio: Studio, root: Path) -> None:
    size = (root / "a.jpg").stat().st_size
    row_ids = [studio.add_thumbnail(b"a.jpg", size_px=100 + number) for number in range(16)]
    # Sixteen reads at eight a second, of which the first few come free.
    with studio.worker(thumbnail_bytes_per_second=max(8 * size, 1 << 16)):
        rows = [studio.wait_for_thumbnail(row_id, "ready", "failed") for row_id in row_ids]
    took_ms = max(row["finished_at"] for row in rows) - min(row["started_at"] for row in rows)
    unpaid = max(64 << 10, 2 * size)  # what is read before the first payment, and after the last
    assert took_ms >= 1000 * (16 * size - 2 * unpaid) / max(8 * size, 1 << 16)
