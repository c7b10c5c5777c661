"""Whatever runs is cancelled within two seconds, a decode in half a one, and leaves nothing."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from control_plane.policy import libraries, trash
from data_plane import media
from data_plane.executor import Cancelled
from data_plane.scratch import Scratch
from mediaplane.protocol.values import JobKind
from tests.support.databases import Databases
from tests.support.planes import LIBRARY, Desk, Worker
from tests.support.studio import Studio, film, hold_decoder
from tests.support.waiting import eventually, promptly

LONG_SECONDS = 3600
SCRATCH_BYTES = 5000
PROMISED_SECONDS = 2.0
DECODE_PROMISED_SECONDS = 0.5


@contextmanager
def working(
    database: Databases, directory: Path, name: str, progress_seconds: float = 0.5
) -> Iterator[Worker]:
    scratch = Scratch(directory, name)
    with Worker(
        database.data, name, scratch, poll_seconds=0.5, progress_seconds=progress_seconds
    ) as worker:
        yield worker
    scratch.close()


def scratch_files(directory: Path) -> list[int]:
    """Sizes of the files that work under way has written."""
    return [file.stat().st_size for file in directory.glob("*/*")]


@pytest.mark.parametrize("is_rung", [True, False])
def test_a_running_probe_is_cancelled_soon_and_its_scratch_file_is_gone(
    desk: Desk, database: Databases, tmp_path: Path, is_rung: bool
) -> None:
    # Either the bell alone would be in time, or the look at every half second.
    with working(database, tmp_path, "one", LONG_SECONDS if is_rung else 0.5) as worker:
        database.control.bell = worker.bell if is_rung else None

        def seconds_to_the_end() -> float:
            job_id = desk.probe(LONG_SECONDS, SCRATCH_BYTES)
            eventually(lambda: scratch_files(tmp_path) == [SCRATCH_BYTES])
            asked_at = time.monotonic()
            desk.cancel(job_id)
            desk.wait_for(job_id, "cancelled")
            seconds = time.monotonic() - asked_at
            eventually(lambda: not worker.leases.all())
            assert scratch_files(tmp_path) == []
            told = [event for event in desk.history(job_id) if event != "job_progress"]
            assert told == ["job_added", "job_started", "log", "job_cancelled", "job_done"]
            return seconds

        promptly(seconds_to_the_end, PROMISED_SECONDS)


def test_a_cancelled_job_stops_its_items_at_every_worker(
    desk: Desk, database: Databases, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        workers = [
            stack.enter_context(working(database, tmp_path, name)) for name in ("one", "two")
        ]

        def seconds_to_the_end() -> float:
            job_id = desk.probe(LONG_SECONDS, SCRATCH_BYTES, probe_items=3)
            eventually(lambda: scratch_files(tmp_path) == [SCRATCH_BYTES] * 2)
            asked_at = time.monotonic()
            desk.cancel(job_id)
            desk.wait_for(job_id, "cancelled")
            eventually(lambda: scratch_files(tmp_path) == [])
            seconds = time.monotonic() - asked_at
            eventually(lambda: not any(worker.leases.all() for worker in workers))
            assert [item["status"] for item in desk.items(job_id)] == ["cancelled"] * 3
            job = desk.job(job_id)
            assert (job["cancelled_items"], job["completed_items"]) == (3, 0)
            return seconds

        promptly(seconds_to_the_end, PROMISED_SECONDS)


def test_a_job_that_waits_is_cancelled_at_once_with_its_items(desk: Desk) -> None:
    job_id = desk.probe(probe_items=2)
    desk.cancel(job_id)
    assert desk.job(job_id)["status"] == "cancelled"
    assert [item["status"] for item in desk.items(job_id)] == ["cancelled"] * 2


@pytest.fixture
def studio(desk: Desk, database: Databases, tmp_path: Path, loops: None) -> Studio:
    """A studio with a video that nobody has read yet."""
    root = tmp_path / "library"
    root.mkdir()
    film(root / "a.mp4", frames=500)
    desk.add_library(root)
    studio = Studio(desk, database.data, tmp_path / "state")
    with studio.worker(image_slots=0, video_slots=0):
        assert desk.run(JobKind.SCAN)["status"] == "completed"
    return studio


def pause(desk: Desk) -> None:
    with desk.database.write() as conn:
        libraries.change(conn, None, LIBRARY, {"is_active": False})


def remove(desk: Desk) -> None:
    with desk.database.write() as conn:
        trash.delete(conn, None, LIBRARY)


@pytest.mark.parametrize("stop", [pause, remove])
def test_a_decode_ends_soon_after_its_library_is_paused_or_removed_and_leaves_nothing(
    studio: Studio, database: Databases, stop: Callable[[Desk], None]
) -> None:
    # So seldom that only the bell can be in time.
    rarely = {"progress_seconds": LONG_SECONDS, "lease_seconds": LONG_SECONDS}
    with studio.worker(decoder_memory_bytes=1 << 30, **rarely) as worker:
        database.control.bell = worker._bell

        def seconds_to_the_end() -> float:
            studio.desk.change("UPDATE libraries SET is_active = true, deleted_at = NULL")
            hold_decoder()
            assert studio.asset(b"a.mp4")["status"] == "extracting"
            asked_at = time.monotonic()
            stop(studio.desk)
            assert studio.wait_for(b"a.mp4", "pending", "proxied")["status"] == "pending"
            eventually(lambda: studio.scratch() == [])
            return time.monotonic() - asked_at

        seconds_to_the_end()  # a worker that has just started looks by itself
        promptly(seconds_to_the_end, DECODE_PROMISED_SECONDS)
    assert studio.cached() == set()


def test_what_was_claimed_before_its_library_was_paused_is_not_begun(studio: Studio) -> None:
    asset = dict(studio.asset(b"a.mp4"))
    thumbnail = studio.thumbnail(studio.add_thumbnail(b"a.mp4"))
    assert thumbnail is not None
    pause(studio.desk)
    with pytest.raises(Cancelled):
        media.extract_task(studio.data, asset)
    with pytest.raises(Cancelled):
        media.thumbnail_task(studio.data, dict(thumbnail))
