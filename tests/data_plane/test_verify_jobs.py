"""A verify job tells which files of a library are damaged, and touches nothing else."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from control_plane.policy import shards, trash
from data_plane import verification
from data_plane.executor import Fail
from data_plane.executors.verify import Verdict
from mediaplane.protocol.values import JobKind
from mediaplane.protocol.write_paths import RECORD_VERDICT
from tests.support.damage import flip
from tests.support.databases import Copies, Databases, opened
from tests.support.files import add_files, content
from tests.support.planes import LIBRARY, Desk, Worker, control_loops
from tests.support.scanning import put
from tests.support.waiting import eventually

CONTENT = b"what the camera wrote"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "library"
    root.mkdir()
    return root


@pytest.fixture
def worker(database: Databases, loops: None) -> Iterator[Worker]:
    with Worker(database.data) as worker:
        yield worker


def codes(desk: Desk) -> dict[bytes, str | None]:
    return {path: row["error_code"] for path, row in desk.files().items()}


def hashed_library(desk: Desk, root: Path, *names: bytes) -> None:
    """Scan and hash a library of such files."""
    for name in names:
        put(root, name, CONTENT + name)
    desk.add_library(root, hash_policy="all")
    for kind in (JobKind.SCAN, JobKind.HASH):
        assert desk.run(kind)["status"] == "completed"
    assert all(row["content_hash"] for row in desk.files().values())


def test_only_the_damaged_file_of_a_library_gets_an_error_and_keeps_its_hash(
    desk: Desk, root: Path, worker: Worker
) -> None:
    hashed_library(desk, root, b"a", b"b", b"c")
    before = desk.files()
    flip(root / "b")
    job = desk.run(JobKind.VERIFY)
    assert (job["status"], job["processed_items"], job["total_items"]) == ("completed", 3, 3)
    assert job["total_bytes"] == 3 * len(CONTENT + b"a")
    after = desk.files()
    assert codes(desk) == {b"a": None, b"b": "bit_rot", b"c": None}
    assert after[b"b"]["content_hash"] == before[b"b"]["content_hash"]
    assert (after[b"a"], after[b"c"]) == (before[b"a"], before[b"c"])


def test_neither_a_scan_nor_a_hash_hides_damage_and_a_repaired_file_is_sound_again(
    desk: Desk, root: Path, worker: Worker
) -> None:
    hashed_library(desk, root, b"a", b"b")
    flip(root / "b")
    for kind in (JobKind.VERIFY, JobKind.SCAN, JobKind.HASH):
        assert desk.run(kind)["status"] == "completed"
        assert codes(desk)[b"b"] == "bit_rot"
    flip(root / "b")
    desk.run(JobKind.VERIFY)
    assert codes(desk) == {b"a": None, b"b": None}


def test_a_file_that_was_renamed_stays_damaged(desk: Desk, root: Path, worker: Worker) -> None:
    hashed_library(desk, root, b"a")
    flip(root / "a")
    desk.run(JobKind.VERIFY)
    (root / "a").rename(root / "renamed")
    desk.run(JobKind.SCAN)
    present = {path: row for path, row in desk.files().items() if not row["is_missing"]}
    assert {path: row["error_code"] for path, row in present.items()} == {b"renamed": "bit_rot"}


def test_a_scan_forgets_the_damage_of_a_file_that_was_replaced(
    desk: Desk, root: Path, worker: Worker
) -> None:
    hashed_library(desk, root, b"a")
    flip(root / "a")
    desk.run(JobKind.VERIFY)
    assert codes(desk) == {b"a": "bit_rot"}
    (root / "a").write_bytes(b"another picture")
    desk.run(JobKind.SCAN)
    assert codes(desk) == {b"a": None}
    assert desk.files()[b"a"]["content_hash"] is None


def test_a_file_of_which_only_the_time_changed_is_not_called_damaged(
    desk: Desk, root: Path, worker: Worker
) -> None:
    hashed_library(desk, root, b"a", b"b")
    os.utime(root / "a", ns=(1, 1))
    job = desk.run(JobKind.VERIFY)
    assert (job["status"], job["processed_items"]) == ("completed", 1)
    assert codes(desk) == {b"a": None, b"b": None}


def test_a_file_is_verified_by_the_algorithm_of_its_hash_whatever_the_library_uses_now(
    desk: Desk, root: Path, worker: Worker
) -> None:
    hashed_library(desk, root, b"a")
    desk.change("UPDATE libraries SET hash_algorithm = 'sha256'")
    desk.run(JobKind.VERIFY)
    assert codes(desk) == {b"a": None}
    assert desk.files()[b"a"]["hash_algorithm"] == "blake3"


def test_a_missing_root_fails_the_job_and_marks_no_file(
    desk: Desk, root: Path, worker: Worker
) -> None:
    hashed_library(desk, root, b"a")
    root.rename(root.with_name("away"))
    job = desk.run(JobKind.VERIFY)
    assert (job["status"], job["error_code"]) == ("failed", "items_failed")
    assert "Is its disk mounted?" in desk.items(job["id"])[0]["message"]
    assert codes(desk) == {b"a": None}


@pytest.mark.parametrize(
    "newer",
    [
        {"mtime_ns": 7},
        {"size_bytes": 7},
        {"content_hash": bytes(32)},
        {"is_missing": True},
        {"needs_hash": True},
    ],
    ids=lambda newer: next(iter(newer)),
)
def test_a_verdict_on_a_state_that_is_over_is_not_written(
    desk: Desk, database: Databases, root: Path, worker: Worker, newer: dict[str, Any]
) -> None:
    hashed_library(desk, root, b"a")
    (item,) = desk.items(desk.run(JobKind.VERIFY)["id"])
    task = verification.verify_task(database.data, item)
    verdicts = [Verdict(known, "bit_rot", "Damaged.") for known in task.files]
    before = desk.files()[b"a"]
    ((column, value),) = newer.items()
    desk.change(f"UPDATE library_files SET {column} = :value", value=value)
    _record(database, verdicts)
    assert codes(desk) == {b"a": None}
    desk.change(f"UPDATE library_files SET {column} = :value", value=before[column])
    _record(database, verdicts)
    assert codes(desk) == {b"a": "bit_rot"}


def _record(database: Databases, verdicts: list[Verdict]) -> None:
    with database.data.write(RECORD_VERDICT) as conn:
        verification.record_verdicts(conn, verdicts)


def test_a_shard_of_a_library_in_the_trash_is_not_read(
    desk: Desk, database: Databases, root: Path
) -> None:
    with Worker(database.data), control_loops(database):
        hashed_library(desk, root, b"a")
    job_id = desk.create(JobKind.VERIFY)
    with database.control.write() as conn:
        trash.delete(conn, None, LIBRARY)
    with pytest.raises(Fail, match="in the trash") as caught:
        verification.verify_task(database.data, desk.items(job_id)[0])
    assert caught.value.code == "library_gone"


def test_a_worker_that_takes_over_does_not_read_finished_shards_again(
    desk: Desk, root: Path, database: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Worker(database.data), control_loops(database):
        hashed_library(desk, root, b"a", b"b", b"c")
    monkeypatch.setattr(shards, "SHARD_FILES", 1)
    job_id = desk.create(JobKind.VERIFY)
    first, *_ = desk.items(job_id)
    desk.change(
        "UPDATE job_items SET status = 'completed', processed_items = 1 WHERE id = :id",
        id=first["id"],
    )
    for name in ("a", "b", "c"):
        flip(root / name)
    with Worker(database.data):
        desk.wait_for(job_id, "completed")
    assert codes(desk) == {b"a": None, b"b": "bit_rot", b"c": "bit_rot"}


@pytest.mark.parametrize("names", [["huge"], ["huge", "huge as well"]], ids=len)
def test_a_verify_job_is_cancelled_in_the_middle_of_a_file(
    desk: Desk, root: Path, worker: Worker, names: list[str]
) -> None:
    for name in names:
        with (root / name).open("wb") as file:
            file.truncate(1 << 40)
    desk.add_library(root)
    desk.run(JobKind.SCAN)
    desk.change(
        "UPDATE library_files SET hash_algorithm = 'blake3', content_hash = :digest",
        digest=bytes(32),
    )
    job_id = desk.create(JobKind.VERIFY)
    eventually(lambda: desk.items(job_id)[0]["processed_bytes"] > 0)
    desk.cancel(job_id)
    desk.wait_for(job_id, "cancelled")
    assert [item["status"] for item in desk.items(job_id)] == ["cancelled"] * len(names)
    assert set(codes(desk).values()) == {None}


def test_the_files_of_a_shard_are_found_by_their_ids(sqlite_template: Copies) -> None:
    sent: list[Any] = []
    with sqlite_template() as url, opened(url) as database:
        desk = Desk(database.control)
        desk.add_library(Path("/media"))
        with database.control.write() as conn:
            add_files(conn, LIBRARY, [content(1)])
        (item,) = desk.items(desk.create(JobKind.VERIFY))
        event.listen(
            database.data.engine, "before_cursor_execute", lambda *args: sent.append(args[2:4])
        )
        assert len(verification.verify_task(database.data, item).files) == 1
        sql, bound = next(one for one in sent if "rel_path" in one[0])
        with database.data.read() as conn:
            plan = conn.exec_driver_sql(f"EXPLAIN QUERY PLAN {sql}", bound).all()
    assert ["INTEGER PRIMARY KEY" in line[-1] for line in plan] == [True], plan
