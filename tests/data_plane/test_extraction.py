"""Assets of a library become thumbnails, proxies and frames, and the library stays as it is."""

import io
import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3
from PIL import Image
from sqlalchemy import text

from data_plane import pipeline
from data_plane.cache import AssetFile, asset_path
from data_plane.decoders.decoder import Kill
from data_plane.decoders.messages import Done, Failed, FrameMeasure, Order
from data_plane.worker import Worker
from mediaplane.protocol.database import lock
from mediaplane.protocol.duplicates import DUPLICATES
from mediaplane.protocol.values import JobKind
from mediaplane.protocol.versions import version_of
from tests.support.databases import Databases
from tests.support.planes import Desk
from tests.support.rows import Rows
from tests.support.scanning import put
from tests.support.studio import Studio, film, hold_decoder, photo
from tests.support.tree import snapshot
from tests.support.waiting import PATIENCE_SECONDS, eventually


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "library"
    root.mkdir()
    return root


@pytest.fixture
def studio(desk: Desk, database: Databases, tmp_path: Path, loops: None) -> Studio:
    return Studio(desk, database.data, tmp_path / "state")


def scan(studio: Studio) -> None:
    """Scan the library with a worker that decodes nothing."""
    with studio.worker(image_slots=0, video_slots=0):
        assert studio.desk.run(JobKind.SCAN)["status"] == "completed"


def open_cached(studio: Studio, asset_id: int, file: AssetFile, version: str) -> Image.Image:
    return Image.open(io.BytesIO((studio.state / asset_path(asset_id, file, version)).read_bytes()))


def test_a_picture_gets_a_thumbnail_and_a_proxy_and_its_library_is_not_touched(
    studio: Studio, root: Path
) -> None:
    put(root, b"trip/a.jpg", photo(2000, 1500))
    studio.desk.add_library(root)
    before = snapshot(root)
    scan(studio)
    with studio.worker():
        asset = studio.wait_for(b"trip/a.jpg", "proxied", "failed")
    assert (asset["status"], asset["error_code"]) == ("proxied", None)
    assert (asset["width"], asset["height"]) == (2000, 1500)
    assert (asset["duration_ms"], asset["is_degraded"]) == (None, False)
    thumbnail = open_cached(studio, asset["id"], AssetFile.THUMBNAIL, asset["version"])
    proxy = open_cached(studio, asset["id"], AssetFile.PROXY, asset["version"])
    assert (thumbnail.format, thumbnail.size) == ("WEBP", (320, 240))
    assert (proxy.format, proxy.size) == ("JPEG", (1024, 768))
    assert snapshot(root) == before
    assert studio.scratch() == []


def test_a_small_picture_is_not_enlarged(studio: Studio, root: Path) -> None:
    put(root, b"a.jpg", photo(200, 100))
    studio.desk.add_library(root)
    scan(studio)
    with studio.worker():
        asset = studio.wait_for(b"a.jpg", "proxied", "failed")
    for file in (AssetFile.THUMBNAIL, AssetFile.PROXY):
        assert open_cached(studio, asset["id"], file, asset["version"]).size == (200, 100)


def test_a_video_gets_frames_a_sprite_and_a_poster(studio: Studio, root: Path) -> None:
    film(root / "a.mp4", frames=100, gop=25)
    studio.desk.add_library(root, sampling_limit=4)
    scan(studio)
    with studio.worker():
        asset = studio.wait_for(b"a.mp4", "proxied", "failed")
    assert (asset["status"], asset["duration_ms"]) == ("proxied", 4000)
    assert studio.frames(asset["id"]) == [(0, True), (1000, True), (2000, True), (3000, True)]
    assert asset["poster_ms"] in (0, 1000, 2000, 3000)
    names = {Path(name).name.partition(".")[0] for name in studio.cached()}
    assert names == set(AssetFile)


def test_the_measure_and_the_limit_of_the_library_are_used(
    studio: Studio, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    film(root / "a.mp4", frames=50, gop=10)
    studio.desk.add_library(root, sampling_limit=1, sampling_policy={"measure": "ssim"})
    scan(studio)
    studio.desk.change("UPDATE assets SET status = 'completed'")  # not yet
    orders: list[Order] = []
    with studio.worker() as worker:
        decode = worker._decoders.decode

        def note(order: Order, *rest: Any) -> Done | Failed:
            orders.append(order)
            return decode(order, *rest)

        monkeypatch.setattr(worker._decoders, "decode", note)
        studio.desk.change("UPDATE assets SET status = 'pending'")
        asset = studio.wait_for(b"a.mp4", "proxied", "failed")
    assert [(order.sampling_limit, order.measure) for order in orders] == [(1, FrameMeasure.SSIM)]
    assert len(studio.frames(asset["id"])) == 1


def test_a_file_that_is_no_picture_fails_alone_and_says_why(studio: Studio, root: Path) -> None:
    put(root, b"a.jpg", b"not a picture")
    put(root, b"b.jpg", photo())
    studio.desk.add_library(root)
    scan(studio)
    with studio.worker():
        bad = studio.wait_for(b"a.jpg", "failed", "proxied")
        assert studio.wait_for(b"b.jpg", "failed", "proxied")["status"] == "proxied"
    assert (bad["status"], bad["error_code"]) == ("failed", "unsupported")
    assert bad["error_message"]
    assert bad["retry_count"] == 1


def test_a_hash_that_is_wanted_comes_from_the_same_read(studio: Studio, root: Path) -> None:
    put(root, b"a.jpg", photo())
    studio.desk.add_library(root, hash_policy="all")
    scan(studio)
    studio.desk.change("UPDATE library_files SET needs_hash = true")
    with studio.worker():
        studio.wait_for(b"a.jpg", "proxied", "failed")
    file = studio.desk.files()[b"a.jpg"]
    assert (file["needs_hash"], file["hash_algorithm"]) == (False, "blake3")
    assert bytes(file["content_hash"]) == blake3((root / "a.jpg").read_bytes()).digest()


def test_a_file_that_changed_since_the_scan_is_not_decoded(studio: Studio, root: Path) -> None:
    put(root, b"a.jpg", photo())
    studio.desk.add_library(root)
    scan(studio)
    put(root, b"a.jpg", photo(300, 300))
    with studio.worker():
        assert studio.wait_for(b"a.jpg", "failed", "proxied")["error_code"] == "changed"
        # The next scan sees it, and it is decoded anew.
        assert studio.desk.run(JobKind.SCAN)["status"] == "completed"
        assert studio.wait_for(b"a.jpg", "proxied")["width"] == 300


def test_what_was_made_of_an_earlier_state_is_replaced(studio: Studio, root: Path) -> None:
    film(root / "a.mp4", frames=100)
    studio.desk.add_library(root, sampling_limit=4)
    scan(studio)
    with studio.worker():
        first = studio.wait_for(b"a.mp4", "proxied", "failed")
        film(root / "a.mp4", frames=50)
        assert studio.desk.run(JobKind.SCAN)["status"] == "completed"
        eventually(lambda: studio.asset(b"a.mp4")["version"] != first["version"])
        second = studio.wait_for(b"a.mp4", "proxied", "failed")
        assert second["duration_ms"] == 2000
        eventually(lambda: all(second["version"] in name for name in studio.cached()))
    assert len(studio.frames(first["id"])) == 4
    assert max(studio.frames(first["id"]))[0] < 2000


def test_assets_wait_for_a_root_that_is_away(studio: Studio, root: Path) -> None:
    put(root, b"a.jpg", photo())
    studio.desk.add_library(root)
    scan(studio)
    away = root.with_name("away")
    root.rename(away)
    with studio.worker() as worker:
        eventually(lambda: bytes(root) in worker._pipeline._absent)
    asset = studio.asset(b"a.jpg")
    assert (asset["status"], asset["retry_count"]) == ("pending", 0)
    away.rename(root)
    with studio.worker():
        studio.wait_for(b"a.jpg", "proxied")


def test_assets_wait_while_an_empty_folder_stands_in_for_their_disk(
    studio: Studio, root: Path
) -> None:
    put(root, b"a.jpg", photo())
    studio.desk.add_library(root)
    scan(studio)
    root.rename(root.with_name("away"))
    root.mkdir()
    row_id = studio.add_thumbnail(b"a.jpg")
    with studio.worker() as worker:
        eventually(lambda: bytes(root) in worker._pipeline._absent)
        row = studio.wait_for_thumbnail(row_id, "ready", "failed")
    assert row["error_code"] == "root_changed"
    asset = studio.asset(b"a.jpg")
    assert (asset["status"], asset["retry_count"]) == ("pending", 0)


def test_an_asset_that_cannot_be_kept_is_given_up_after_five_tries(
    studio: Studio, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root, b"a.jpg", photo())
    put(root, b"b.jpg", photo())
    studio.desk.add_library(root)
    scan(studio)
    monkeypatch.setattr(pipeline, "_REST_SECONDS", 0.01)
    # A file where the folder of the first asset would be.
    first = studio.asset(b"a.jpg")["id"]
    put(studio.state, f"cache/assets/{first:03d}".encode(), b"in the way")
    with studio.worker():
        asset = studio.wait_for(b"a.jpg", "poisoned", "failed", "proxied")
        assert studio.wait_for(b"b.jpg", "proxied", "failed")["status"] == "proxied"
    assert (asset["status"], asset["retry_count"]) == ("poisoned", 6)
    assert asset["error_code"]


def test_a_paused_library_stops_a_decode_and_leaves_nothing(studio: Studio, root: Path) -> None:
    film(root / "a.mp4", frames=500)
    studio.desk.add_library(root)
    scan(studio)
    with studio.worker(decoder_memory_bytes=1 << 30) as worker:
        hold_decoder()
        studio.desk.change("UPDATE libraries SET is_active = false")
        assert studio.wait_for(b"a.mp4", "pending", "proxied")["status"] == "pending"
        eventually(lambda: worker._decoders.tally().kills[Kill.ENDED_EARLY] == 1)
        eventually(lambda: studio.scratch() == [])
    assert studio.cached() == set()


def test_a_worker_that_stops_puts_its_decode_back(studio: Studio, root: Path) -> None:
    film(root / "a.mp4", frames=500)
    studio.desk.add_library(root)
    scan(studio)
    with studio.worker(stop_grace_seconds=2 * PATIENCE_SECONDS) as worker:
        hold_decoder()
        assert studio.asset(b"a.mp4")["status"] == "extracting"
        worker.leases.interrupted.set()  # as if half of the grace were over
    assert studio.asset(b"a.mp4")["status"] == "pending"
    assert studio.asset(b"a.mp4")["lease_expires_at"] is None


def test_assets_of_a_silent_worker_are_taken_over(studio: Studio, root: Path) -> None:
    put(root, b"a.jpg", photo())
    studio.desk.add_library(root)
    scan(studio)
    studio.desk.change(
        "UPDATE assets SET status = 'extracting', worker_id = 'gone', lease_epoch = 1,"
        " lease_expires_at = 1000"
    )
    with studio.worker():
        assert studio.wait_for(b"a.jpg", "proxied", "failed")["status"] == "proxied"


def test_a_file_that_is_gone_fails_and_comes_back_with_the_next_scan(
    studio: Studio, root: Path
) -> None:
    put(root, b"a.jpg", photo())
    put(root, b"b.jpg", photo())
    studio.desk.add_library(root)
    scan(studio)
    info = (root / "a.jpg").stat()
    (root / "a.jpg").rename(root.with_name("kept.jpg"))
    with studio.worker():
        assert studio.wait_for(b"a.jpg", "failed", "proxied")["error_code"] == "not_found"
        assert studio.desk.run(JobKind.SCAN)["status"] == "completed"
        shutil.copyfile(root.with_name("kept.jpg"), root / "a.jpg")
        os.utime(root / "a.jpg", ns=(info.st_atime_ns, info.st_mtime_ns))
        assert studio.desk.run(JobKind.SCAN)["status"] == "completed"
        assert studio.wait_for(b"a.jpg", "proxied")["retry_count"] == 1


@pytest.mark.parametrize(
    ("part", "hook"),
    [("_pipeline", "_context"), ("roots", "open_jail")],
    ids=["before its name is read", "before it is opened"],
)
def test_a_picture_that_is_moved_once_it_is_claimed_is_processed_under_its_new_name(
    studio: Studio, root: Path, monkeypatch: pytest.MonkeyPatch, part: str, hook: str
) -> None:
    put(root, b"a.jpg", photo())
    studio.desk.add_library(root)
    scan(studio)
    (root / "a.jpg").rename(root / "b.jpg")
    studio.desk.change("UPDATE assets SET status = 'completed'")  # not yet
    moves: list[bytes] = []

    def follow() -> None:
        """Give file and asset the new name, as a scan does."""
        with studio.desk.database.write() as conn:
            for table in ("library_files", "assets"):
                conn.execute(text(f"UPDATE {table} SET rel_path = :new"), {"new": b"b.jpg"})
        moves.append(b"b.jpg")

    with studio.worker() as worker:
        work = getattr(getattr(worker, part), hook)

        def move_first(*arguments: Any) -> Any:
            if not moves and studio.asset(b"a.jpg")["status"] == "extracting":
                follow()
            return work(*arguments)

        monkeypatch.setattr(getattr(worker, part), hook, move_first)
        studio.desk.change("UPDATE assets SET status = 'pending'")
        eventually(lambda: moves)
        asset = studio.wait_for(b"b.jpg", "proxied", "failed")
    assert len(moves) == 1
    assert (asset["status"], asset["error_code"]) == ("proxied", None)


def test_an_asset_of_which_no_file_is_known_fails_and_is_made_once_a_scan_finds_it(
    studio: Studio, root: Path
) -> None:
    put(root, b"a.jpg", photo())
    studio.desk.add_library(root)
    scan(studio)
    studio.desk.change("DELETE FROM library_files")
    with studio.worker():
        assert studio.wait_for(b"a.jpg", "failed", "proxied")["error_code"] == "not_found"
        assert studio.desk.run(JobKind.SCAN)["status"] == "completed"
        assert studio.wait_for(b"a.jpg", "proxied")["retry_count"] == 1


@pytest.mark.parametrize("change", ["deleted_at = 1", "is_active = false"])
def test_libraries_in_the_trash_or_paused_are_left_alone(
    studio: Studio, root: Path, change: str
) -> None:
    put(root, b"a.jpg", photo())
    studio.desk.add_library(root)
    scan(studio)
    asked = studio.add_thumbnail(b"a.jpg")
    studio.desk.change(f"UPDATE libraries SET {change}")
    with studio.worker() as worker:
        # It has looked for all there is to do once it does what comes last.
        other = root.with_name("other")
        put(other, b"b.jpg", photo())
        with studio.desk.database.write() as conn:
            rows = Rows(conn)
            library = rows.add("libraries", absolute_path=bytes(other))
            info = (other / "b.jpg").stat()
            rows.add("library_files", library_id=library, rel_path=b"b.jpg", media_type="image",
                     size_bytes=info.st_size, mtime_ns=info.st_mtime_ns)  # fmt: skip
            last = rows.add("assets", library_id=library, rel_path=b"b.jpg")
        eventually(lambda: worker._pipeline.ended == {"assets.complete_extract": 1})
        with studio.desk.database.read() as conn:
            assert Rows(conn).get("assets", last)["status"] == "proxied"
    assert studio.asset(b"a.jpg")["status"] == "pending"
    row = studio.thumbnail(asked)
    assert row is not None
    assert (row["status"], row["lease_epoch"]) == ("pending", 0)


def test_a_scan_during_the_decode_has_the_new_state_decoded_next(
    studio: Studio, root: Path, database: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root, b"a.jpg", photo(640, 480))
    studio.desk.add_library(root)
    scan(studio)
    studio.desk.change("UPDATE assets SET status = 'completed'")  # not yet

    def change_meanwhile() -> None:
        put(root, b"a.jpg", photo(500, 400))
        info = (root / "a.jpg").stat()
        with database.control.write() as conn:
            bound = {"size": info.st_size, "mtime": info.st_mtime_ns}
            conn.execute(text("UPDATE library_files SET size_bytes = :size, mtime_ns = :mtime"),
                         bound)  # fmt: skip

    with studio.worker() as worker:
        decode = worker._decoders.decode
        changes = [change_meanwhile]

        def meddle(*order: object) -> object:
            reply = decode(*order)  # type: ignore[arg-type]
            if changes:
                changes.pop()()
            return reply

        monkeypatch.setattr(worker._decoders, "decode", meddle)
        studio.desk.change("UPDATE assets SET status = 'pending'")
        asset = studio.wait_for(b"a.jpg", "proxied", "failed")
    assert changes == [], "nothing happened in between"
    assert (asset["status"], asset["width"], asset["retry_count"]) == ("proxied", 500, 2)


def meddled_once(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, meddle: Callable[[], None]
) -> list[Callable[[], None]]:
    """Have something happen once what was made of an asset is in the cache; empty when it has."""
    write, meddling = worker._pipeline._write, [meddle]

    def note(*ending: Any) -> str:
        if meddling:
            meddling.pop()()
        return write(*ending)

    monkeypatch.setattr(worker._pipeline, "_write", note)
    return meddling


def test_what_was_made_of_a_state_that_a_scan_has_replaced_leaves_the_cache(
    studio: Studio, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root, b"a.jpg", photo(640, 480))
    studio.desk.add_library(root)
    scan(studio)
    first = studio.desk.files()[b"a.jpg"]
    made: set[str] = set()

    def change() -> None:
        made.update(studio.cached())
        put(root, b"a.jpg", photo(500, 400))
        info = (root / "a.jpg").stat()
        studio.desk.change("UPDATE library_files SET size_bytes = :size, mtime_ns = :mtime",
                           size=info.st_size, mtime=info.st_mtime_ns)  # fmt: skip

    studio.desk.change("UPDATE assets SET status = 'completed'")  # not yet
    with studio.worker() as worker:
        left = meddled_once(worker, monkeypatch, change)
        studio.desk.change("UPDATE assets SET status = 'pending'")
        asset = studio.wait_for(b"a.jpg", "proxied", "failed")
    assert (asset["width"], left) == (500, [])
    assert len(made) == 2
    assert all(version_of(first["size_bytes"], first["mtime_ns"]) in name for name in made)
    assert len(studio.cached()) == 2
    assert all(asset["version"] in name for name in studio.cached())


def test_what_somebody_else_makes_as_well_is_left_to_them(
    studio: Studio, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root, b"a.jpg", photo())
    studio.desk.add_library(root)
    scan(studio)

    def take_over() -> None:
        studio.desk.change("UPDATE assets SET lease_epoch = 7, worker_id = 'another'")

    studio.desk.change("UPDATE assets SET status = 'completed'")  # not yet
    with studio.worker() as worker:
        left = meddled_once(worker, monkeypatch, take_over)
        studio.desk.change("UPDATE assets SET status = 'pending'")
        eventually(lambda: worker._pipeline.ended == {"assets.lost": 1})
    assert left == []
    assert len(studio.cached()) == 2


def test_a_scan_that_is_being_taken_over_is_waited_for(
    studio: Studio, root: Path, database: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root, b"a.jpg", photo(640, 480))
    studio.desk.add_library(root)
    scan(studio)
    studio.desk.change("UPDATE assets SET status = 'completed'")  # not yet
    with studio.worker() as worker:
        decode = worker._decoders.decode
        is_decoded, is_committed = threading.Event(), threading.Event()

        def absorb() -> None:
            """Take over a new state of the file, slowly."""
            with database.control.write() as conn:
                lock(conn, DUPLICATES)
                info = (root / "a.jpg").stat()
                bound = {"size": info.st_size, "mtime": info.st_mtime_ns}
                conn.execute(
                    text("UPDATE library_files SET size_bytes = :size, mtime_ns = :mtime"), bound
                )
                is_decoded.set()
                time.sleep(0.3)  # longer than the worker takes to its end, if it does not wait
            is_committed.set()

        absorber = threading.Thread(target=absorb)

        def meddle(*order: Any) -> Done | Failed:
            reply = decode(*order)
            if not is_decoded.is_set():
                # The file as it was, for the worker that looks at it afterwards.
                (root / "a.jpg").rename(root.with_name("old.jpg"))
                put(root, b"a.jpg", photo(500, 400))
                absorber.start()
                assert is_decoded.wait(PATIENCE_SECONDS)
            return reply

        monkeypatch.setattr(worker._decoders, "decode", meddle)
        studio.desk.change("UPDATE assets SET status = 'pending'")
        asset = studio.wait_for(b"a.jpg", "proxied", "failed")
        absorber.join()
    assert is_committed.is_set()
    assert (asset["status"], asset["width"]) == ("proxied", 500)
