"""Whatever runs is cancelled within two seconds and leaves nothing behind."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from data_plane.scratch import Scratch
from tests.support.databases import Databases
from tests.support.planes import Desk, Worker
from tests.support.waiting import eventually, promptly

LONG_SECONDS = 3600
SCRATCH_BYTES = 5000
PROMISED_SECONDS = 2.0


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
