"""Metrics of a worker: what it has done, made and holds."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from data_plane.metrics import collector
from data_plane.output import WAITS
from data_plane.worker import Worker
from mediaplane.calls import CallMeter
from mediaplane.metrics import distributed
from mediaplane.protocol.values import JobKind
from tests.support.databases import Databases
from tests.support.planes import LIBRARY, Desk
from tests.support.scanning import put
from tests.support.scraping import Samples, grown, told
from tests.support.studio import Studio, film, photo
from tests.support.waiting import eventually


@pytest.fixture
def studio(desk: Desk, database: Databases, tmp_path: Path, loops: None) -> Studio:
    return Studio(desk, database.data, tmp_path / "state")


def teller(studio: Studio, worker: Worker) -> Callable[[], Samples]:
    return partial(told, collector(studio.data, worker, studio.state, CallMeter()))


def test_what_a_worker_does_shows_in_its_metrics(studio: Studio, tmp_path: Path) -> None:
    root = tmp_path / "library"
    pictures = {b"a.jpg": photo(200, 150), b"b.jpg": photo(200, 150)}
    for name, content in pictures.items():
        put(root, name, content)
    film(root / "c.mp4")
    studio.desk.add_library(root, hash_policy="all")
    with studio.worker() as worker:
        tell = teller(studio, worker)
        before = tell()
        assert studio.desk.run(JobKind.SCAN)["status"] == "completed"
        for name in (*pictures, b"c.mp4"):
            studio.wait_for(name, "proxied")
        assert studio.desk.run(JobKind.HASH)["status"] == "completed"
        wanted = studio.add_thumbnail(b"a.jpg")
        eventually(lambda: is_ready(studio, wanted))
        after = settled(tell)
    grew = partial(grown, before, after)
    steps = grew("mediaplane_steps_total")
    assert steps["scan", "jobs", "complete"] == 1
    assert steps["image", "assets", "complete_extract"] == 2
    assert steps["video", "assets", "complete_extract"] == 1
    assert steps["image", "thumbnails", "complete"] == 1
    assert grew("mediaplane_thumbnails_made_total") == {(): 4}
    assert grew("mediaplane_frames_made_total")[()] >= 1
    assert grew("mediaplane_hashed_files_total")[()] == 3
    assert grew("mediaplane_hashed_bytes_total")[()] == sum(
        path.stat().st_size for path in root.iterdir()
    )
    assert grew("mediaplane_work_wait_seconds_count")["scan", "jobs"] == 1
    assert grew("mediaplane_work_run_seconds_count")["video", "assets"] == 1
    assert grew("mediaplane_decoder_orders_total")[()] == 4
    assert grew("mediaplane_decoder_starts_total")[()] >= 1
    assert after["mediaplane_library_disk_free_bytes"][LIBRARY,] > 0
    assert after["mediaplane_state_disk_size_bytes"][()] > 0


def is_ready(studio: Studio, thumbnail: int) -> bool:
    row = studio.thumbnail(thumbnail)
    return row is not None and row["status"] == "ready"


def settled(tell: Callable[[], Samples]) -> Samples:
    """The metrics of a worker, once it holds nothing any more."""
    eventually(lambda: not any(tell()["mediaplane_leases_held"].values()))
    return tell()


def test_what_is_held_is_shown_while_it_is_held(studio: Studio) -> None:
    with studio.worker() as worker:
        tell = teller(studio, worker)
        job = studio.desk.probe(seconds=60)
        eventually(lambda: tell()["mediaplane_leases_held"]["jobs",] == 1)
        studio.desk.cancel(job)
        eventually(lambda: tell()["mediaplane_leases_held"]["jobs",] == 0)


def test_a_wait_is_measured_from_when_the_job_was_added(desk: Desk, studio: Studio) -> None:
    job = desk.probe()
    desk.change("UPDATE jobs SET created_at = created_at - 100000 WHERE id = :job", job=job)
    before = told(lambda: distributed(WAITS))
    with studio.worker():
        desk.wait_for(job, "completed")
    waited = grown(before, told(lambda: distributed(WAITS)), "mediaplane_work_wait_seconds_sum")
    assert 100 <= waited["probe", "jobs"] < 200


def test_while_the_database_is_away_the_worker_tells_what_it_knows_by_itself(
    studio: Studio, database: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    with studio.worker(slots=1) as worker:
        tell = teller(studio, worker)

        def fail(*_: object) -> None:
            raise OSError(5, "The database is away")

        monkeypatch.setattr("data_plane.media.library_roots", fail)
        found = tell()
    assert found["mediaplane_database_up"] == {(): 0}
    assert "mediaplane_state_disk_free_bytes" in found
