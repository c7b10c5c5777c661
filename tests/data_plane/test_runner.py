"""Workers share the work of a job; none is lost, done twice or written by the wrong one."""

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from blake3 import blake3
from sqlalchemy import text

from control_plane.policy import shards
from control_plane.store import hashing
from data_plane.executor import Context, Executor, HashResult, HashTask
from data_plane.executors.hash import hash_shard
from data_plane.registry import EXECUTORS
from mediaplane.protocol.values import JobKind
from tests.support.databases import Databases
from tests.support.planes import Desk, Worker
from tests.support.postgres import memory_directory
from tests.support.scanning import put
from tests.support.waiting import eventually, promptly

HUGE = 1 << 40
IDLE = {"worker_id": None, "worker_heartbeat_at": None, "lease_expires_at": None}

pytestmark = pytest.mark.usefixtures("loops")


@pytest.fixture
def root() -> Iterator[Path]:
    # In memory, where reading the holes of huge files costs the disk nothing.
    with tempfile.TemporaryDirectory(dir=memory_directory()) as folder:
        yield Path(folder)


@pytest.fixture
def tiny_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SHARD_FILES", 1)
    monkeypatch.setattr(hashing, "RUN_FILES", 1)


def sparse(root: Path, name: str, size_bytes: int) -> None:
    with (root / name).open("wb") as file:
        file.truncate(size_bytes)


def scanned(desk: Desk, database: Databases, root: Path) -> None:
    """Bring a library to the point where its files can be hashed."""
    desk.add_library(root, hash_policy="all")
    with Worker(database.data, "scanner"):
        assert desk.run(JobKind.SCAN)["status"] == "completed"


@pytest.fixture
def hashing_huge_file(desk: Desk, database: Databases, root: Path) -> Iterator[tuple[Worker, int]]:
    """A worker in the middle of a file that it could read for minutes, and the job.

    The job has two shards: the huge file, and a small one.
    """
    sparse(root, "huge", HUGE)
    put(root, b"zebra", b"1")
    scanned(desk, database, root)
    job_id = desk.create(JobKind.HASH)
    with Worker(database.data, "busy") as worker:
        eventually(lambda: any(item["processed_bytes"] for item in desk.items(job_id)))
        yield worker, job_id


def test_a_scan_and_a_hash_find_the_duplicates(desk: Desk, database: Databases, root: Path) -> None:
    contents = {b"a": b"same", b"d/\xff": b"same", b"d/b\n": b"same", b"c": b"else", b"e": b""}
    for name, content in contents.items():
        put(root, name, content)
    desk.add_library(root)
    with Worker(database.data):
        scan = desk.run(JobKind.SCAN)
        hashed = desk.run(JobKind.HASH)
    assert (scan["status"], scan["processed_items"], scan["progress"]) == ("completed", 5, 1.0)
    assert (hashed["status"], hashed["error_code"]) == ("completed", None)
    files = desk.files()
    digests = {name: blake3(content).digest() for name, content in contents.items() if content}
    assert {name: files[name]["content_hash"] for name in digests} == digests
    assert files[b"e"]["content_hash"] is None  # an empty file is nobody's duplicate
    with database.control.read() as conn:
        groups = conn.execute(text("SELECT content_hash, file_count FROM duplicate_groups")).all()
    assert [(bytes(digest), count) for digest, count in groups] == [(digests[b"a"], 3)]


@pytest.mark.usefixtures("tiny_shards")
def test_the_figures_of_a_finished_job_are_those_of_its_files(
    desk: Desk, database: Databases, root: Path
) -> None:
    for number in range(5):
        put(root, b"%d" % number, b"x" * (number + 1))
    scanned(desk, database, root)
    with Worker(database.data):
        job = desk.run(JobKind.HASH)
    assert (job["total_items"], job["total_bytes"]) == (5, 15)
    assert (job["processed_items"], job["progress"]) == (5, 1.0)
    figures = [(item["processed_items"], item["processed_bytes"]) for item in desk.items(job["id"])]
    assert sorted(figures) == [(1, 1), (1, 2), (1, 3), (1, 4), (1, 5)]


@pytest.mark.usefixtures("tiny_shards")
def test_two_workers_share_the_shards_of_a_job(desk: Desk, database: Databases, root: Path) -> None:
    for number in range(40):
        sparse(root, str(number), 8 << 20)
    scanned(desk, database, root)
    with Worker(database.data, "one"), Worker(database.data, "two"):
        job = desk.run(JobKind.HASH)
    items = desk.items(job["id"])
    assert [(item["status"], item["lease_epoch"]) for item in items] == [("completed", 1)] * 40
    assert {item["worker_id"] for item in items} == {"one", "two"}
    expected = blake3(bytes(8 << 20)).digest()
    assert {file["content_hash"] for file in desk.files().values()} == {expected}


def test_a_stopped_worker_gives_its_work_back_and_another_finishes_it(
    desk: Desk, database: Databases, root: Path, hashing_huge_file: tuple[Worker, int]
) -> None:
    worker, job_id = hashing_huge_file
    worker.stop()
    for row in (desk.job(job_id), *desk.items(job_id)):
        assert row["status"] == "pending"
        assert {column: row[column] for column in IDLE} == IDLE
    os.truncate(root / "huge", 1)  # nobody has the time
    with Worker(database.data, "second"):
        job = desk.wait_for(job_id, "completed")
    assert (job["attempts"], job["worker_id"], job["lease_epoch"]) == (0, "second", 2)
    assert {(item["status"], item["worker_id"]) for item in desk.items(job_id)} == {
        ("completed", "second")
    }
    files = desk.files()
    assert files[b"zebra"]["content_hash"] == blake3(b"1").digest()
    assert (files[b"huge"]["content_hash"], files[b"huge"]["error_code"]) == (None, "changed")


def test_progress_is_told_while_the_work_goes_on(
    desk: Desk, hashing_huge_file: tuple[Worker, int]
) -> None:
    _, job_id = hashing_huge_file
    first = desk.items(job_id)[0]["processed_bytes"]
    eventually(lambda: desk.items(job_id)[0]["processed_bytes"] > first)
    eventually(lambda: 0 < desk.job(job_id)["progress"] < 1)


@pytest.mark.usefixtures("tiny_shards")
def test_finished_shards_are_not_done_again(
    desk: Desk, database: Databases, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        put(root, b"%d" % number, b"x")
    scanned(desk, database, root)
    job_id = desk.create(JobKind.HASH)
    first = Worker(database.data, "first")
    done: list[HashResult] = []

    def hash_two(task: HashTask, ctx: Context) -> HashResult:
        if len(done) == 2:
            first.leases.interrupted.set()
        result = hash_shard(task, ctx)
        done.append(result)
        return result

    real = EXECUTORS[JobKind.HASH]
    with monkeypatch.context() as patch:
        patch.setitem(
            EXECUTORS, JobKind.HASH, Executor(real.prepare, hash_two, real.record, real.paths)
        )
        first.runner.work_once()
    assert [item["status"] for item in desk.items(job_id)] == ["completed"] * 2 + ["pending"] * 3
    with Worker(database.data, "second"):
        desk.wait_for(job_id, "completed")
    assert [(item["worker_id"], item["lease_epoch"]) for item in desk.items(job_id)] == [
        ("first", 1), ("first", 1), ("second", 2), ("second", 1), ("second", 1),
    ]  # fmt: skip


def test_a_running_hash_is_cancelled_within_two_seconds(
    desk: Desk, hashing_huge_file: tuple[Worker, int]
) -> None:
    worker, job_id = hashing_huge_file

    def seconds_to_the_end() -> float:
        nonlocal job_id
        if desk.job(job_id)["status"] == "cancelled":
            job_id = desk.create(JobKind.HASH)
            eventually(lambda: any(item["processed_bytes"] for item in desk.items(job_id)))
        asked_at = time.monotonic()
        desk.cancel(job_id)
        desk.wait_for(job_id, "cancelled")
        eventually(lambda: {item["status"] for item in desk.items(job_id)} == {"cancelled"})
        return time.monotonic() - asked_at

    promptly(seconds_to_the_end, 2)
    eventually(lambda: worker.leases.all() == [])
    assert len(desk.items(job_id)) == 2
    told = [event for event in desk.history(job_id) if not event.endswith("_progress")]
    assert told[:3] == ["job_added", "job_started", "log"]
    # Items say that they have ended before the job does.
    assert told[-2:] == ["job_cancelled", "job_done"]
    assert sorted(told[3:-2]) == ["item_done"] * 2
    assert not any(file["content_hash"] for file in desk.files().values())


def test_a_worker_that_lost_its_lease_writes_nothing(
    desk: Desk, hashing_huge_file: tuple[Worker, int]
) -> None:
    worker, job_id = hashing_huge_file
    (lost,) = [one for one in worker.leases.all() if "job_id" in one.row]
    desk.change(
        "UPDATE job_items SET lease_epoch = lease_epoch + 1, worker_id = 'thief' WHERE id = :id",
        id=lost.lessee.row_id,
    )
    before = desk.items(job_id)[0]
    eventually(lambda: lost not in worker.leases.all())
    assert lost.control.lost.is_set()
    assert desk.items(job_id)[0] == before
    assert (before["status"], before["worker_id"]) == ("running", "thief")
    huge = desk.files()[b"huge"]
    assert (huge["needs_hash"], huge["content_hash"], huge["error_code"]) == (True, None, None)


def test_a_finish_that_comes_after_the_lease_is_lost_is_refused_with_its_hashes(
    desk: Desk, database: Databases, root: Path, monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    put(root, b"a", b"x")
    scanned(desk, database, root)
    job_id = desk.create(JobKind.HASH)
    worker = Worker(database.data, "slow")
    real, taken = EXECUTORS[JobKind.HASH], []

    def hash_too_slowly(task: HashTask, ctx: Context) -> HashResult:
        result = hash_shard(task, ctx)
        assert len(result.hashed) == 1
        desk.change("UPDATE job_items SET lease_epoch = lease_epoch + 1, worker_id = 'other'")
        taken.extend(desk.items(job_id))
        worker.leases.stopping.set()  # or it would wait for the other one
        return result

    patched = Executor(real.prepare, hash_too_slowly, real.record, real.paths)
    monkeypatch.setitem(EXECUTORS, JobKind.HASH, patched)
    worker.runner.work_once()
    assert desk.items(job_id) == taken
    assert desk.files()[b"a"]["content_hash"] is None
    assert "Lost the lease on job_items" in caplog.text
