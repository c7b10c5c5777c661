"""What a scan's report does to the files that are known, and when it does nothing at all."""

from typing import Any

import pytest
from sqlalchemy import select, update

from control_plane.policy import discovery, recovery
from control_plane.policy.backoff import Backoff
from control_plane.store import jobs
from mediaplane.protocol.tables import libraries, scan_errors
from tests.support import worker
from tests.support.databases import Databases
from tests.support.files import Group, add_files, add_library, content, digest, summarise_all
from tests.support.reports import (
    ROOT_INODE,
    files_of,
    groups_of,
    known_library,
    library_of,
    start_scan,
)
from tests.support.rows import Rows

PAIR = [Group(2, 20, "blake3", digest(1).hex())]


def known_pair(database: Databases, **columns: Any) -> None:
    """A library with two copies of one content, `a` and `b`."""
    hashed = content(1) | {"size_bytes": 10, "mtime_ns": 5, "device": 1}
    known_library(
        database,
        hashed | {"rel_path": b"a", "inode": 11} | columns,
        hashed | {"rel_path": b"b", "inode": 12},
    )
    with database.control.write() as conn:
        summarise_all(conn)


def seen(path: bytes, inode: int, **columns: Any) -> dict[str, Any]:
    return {"rel_path": path, "size_bytes": 10, "mtime_ns": 5, "inode": inode} | columns


def hash_of(database: Databases, path: bytes) -> tuple[str | None, bytes | None]:
    row = files_of(database)[path]
    return row["hash_algorithm"], row["content_hash"] and bytes(row["content_hash"])


def test_a_file_that_was_not_known_becomes_known(database: Databases) -> None:
    known_library(database)
    scan = start_scan(database)
    scan.stage("seen", seen(b"caf\xe9.jpg", 7, media_type="image", size_bytes=3, device=-9))
    scan.walked()
    scan.absorbed()
    row = files_of(database)[b"caf\xe9.jpg"]
    assert (row["size_bytes"], row["mtime_ns"], row["device"], row["inode"]) == (3, 5, -9, 7)
    assert (row["media_type"], row["content_hash"]) == ("image", None)
    assert not row["is_missing"]
    assert not row["needs_hash"]
    assert scan.verdict == ("succeeded", None)
    assert scan.session["finished_at"] is not None
    assert scan.entries_left == 0


@pytest.mark.parametrize("change", [{"size_bytes": 11}, {"mtime_ns": 6}, {"inode": 13}])
def test_a_changed_file_loses_its_hash_and_its_group(
    database: Databases, change: dict[str, int]
) -> None:
    known_pair(database, error_code="unreadable")
    assert groups_of(database) == PAIR
    scan = start_scan(database)
    scan.stage("seen", seen(b"a", 11) | change)
    scan.walked(root_inode=ROOT_INODE)
    scan.absorbed()
    assert hash_of(database, b"a") == (None, None)
    assert hash_of(database, b"b") == ("blake3", digest(1))
    assert groups_of(database) == []
    row = files_of(database)[b"a"]
    assert {column: row[column] for column in change} == change
    assert row["error_code"] is None


def test_a_file_on_a_disk_with_another_number_keeps_its_hash(database: Databases) -> None:
    known_pair(database)
    scan = start_scan(database)
    scan.stage("seen", seen(b"a", 11, device=99), seen(b"b", 12, device=99))
    scan.walked(root_device=99)
    scan.absorbed()
    assert [row["device"] for row in files_of(database).values()] == [99, 99]
    assert hash_of(database, b"a") == ("blake3", digest(1))
    assert groups_of(database) == PAIR
    assert scan.verdict == ("succeeded", None)
    assert library_of(database)["root_device"] == 99


def test_a_file_that_comes_back_as_it_was_rejoins_its_group(database: Databases) -> None:
    known_pair(database, is_missing=True)
    assert groups_of(database) == []
    scan = start_scan(database)
    scan.stage("seen", seen(b"a", 11))
    scan.walked()
    scan.absorbed()
    assert not files_of(database)[b"a"]["is_missing"]
    assert hash_of(database, b"a") == ("blake3", digest(1))
    assert groups_of(database) == PAIR


def test_no_file_is_missing_before_the_whole_library_was_walked(database: Databases) -> None:
    known_pair(database)
    scan = start_scan(database)
    scan.stage("missing", {"rel_path": b"a"})
    assert scan.absorbed() == 0
    assert not files_of(database)[b"a"]["is_missing"]
    assert groups_of(database) == PAIR
    scan.walked()
    scan.absorbed()
    assert files_of(database)[b"a"]["is_missing"]
    assert hash_of(database, b"a") == ("blake3", digest(1))
    assert not files_of(database)[b"b"]["is_missing"]
    assert groups_of(database) == []


def test_a_scan_leaves_the_same_names_of_other_libraries_alone(database: Databases) -> None:
    known_pair(database)
    with database.control.write() as conn:
        rows = [{"rel_path": b"a"} | content(2), {"rel_path": b"b"} | content(2)]
        add_files(conn, add_library(conn, "films"), rows)
    before = files_of(database, "films")
    scan = start_scan(database)
    scan.stage("seen", seen(b"a", 77))
    scan.stage("missing", {"rel_path": b"b"})
    scan.walked()
    scan.absorbed()
    assert files_of(database, "films") == before


def test_the_report_of_a_worker_that_lost_its_lease_is_thrown_away(database: Databases) -> None:
    known_pair(database)
    lost = start_scan(database)
    lost.stage("seen", seen(b"new", 13))
    lost.stage("missing", {"rel_path": b"a"})
    lost.walked()
    assert worker.finish(database.data, lost.job, "retry")
    with database.control.write() as conn:
        assert jobs.requeue(conn, "requeue_now", lost.job["id"])
    job = worker.claim(database.data)
    assert (job["id"], job["lease_epoch"]) == (lost.job["id"], lost.job["lease_epoch"] + 1)
    session = worker.open_scan(database.data, job)
    worker.stage(database.data, session, "seen", [seen(b"second", 14)])
    worker.walked(database.data, session)
    lost.absorbed()
    assert lost.verdict == ("failed", "scan_ended")
    assert lost.entries_left == 0
    assert files_of(database).keys() == {b"a", b"b", b"second"}
    assert not files_of(database)[b"a"]["is_missing"]


@pytest.mark.parametrize("step", ["complete", "fail", "cancel", "retry", "release"])
def test_a_report_is_refused_once_its_job_runs_no_more(database: Databases, step: str) -> None:
    known_pair(database)
    scan = start_scan(database)
    scan.stage("seen", seen(b"new", 13))
    scan.walked()
    assert worker.finish(database.data, scan.job, step)
    assert scan.absorbed() == 1
    assert scan.verdict == ("failed", "scan_ended")
    assert scan.entries_left == 0
    assert files_of(database).keys() == {b"a", b"b"}


def test_another_folder_in_the_place_of_the_library_changes_nothing(database: Databases) -> None:
    known_pair(database)
    before = files_of(database)
    scan = start_scan(database)
    scan.stage("seen", seen(b"new", 13), seen(b"b", 99, size_bytes=1))
    scan.stage("missing", {"rel_path": b"a"})
    scan.absorbed()  # while it is still being walked
    scan.walked(root_inode=ROOT_INODE + 1)
    scan.absorbed()
    assert scan.verdict == ("failed", "root_changed")
    assert "--accept-new-root" in scan.session["error_message"]
    assert files_of(database) == before
    assert groups_of(database) == PAIR
    assert library_of(database)["root_inode"] == ROOT_INODE


def test_a_new_root_is_taken_when_the_operator_says_so(database: Databases) -> None:
    known_pair(database)
    scan = start_scan(database, accept_new_root=True)
    scan.stage("seen", seen(b"new", 13))
    scan.stage("missing", {"rel_path": b"a"}, {"rel_path": b"b"})
    scan.walked(root_device=8, root_inode=ROOT_INODE + 1)
    scan.absorbed()
    assert scan.verdict == ("succeeded", None)
    library = library_of(database)
    assert (library["root_device"], library["root_inode"]) == (8, ROOT_INODE + 1)
    missing = {path: row["is_missing"] for path, row in files_of(database).items()}
    assert missing == {b"a": True, b"b": True, b"new": False}


def test_a_library_that_is_suddenly_empty_loses_no_file(database: Databases) -> None:
    known_pair(database)
    scan = start_scan(database)
    scan.stage("missing", {"rel_path": b"a"}, {"rel_path": b"b"})
    scan.walked(seen_files=0)
    scan.absorbed()
    assert scan.verdict == ("failed", "root_empty")
    assert not any(row["is_missing"] for row in files_of(database).values())
    assert groups_of(database) == PAIR
    again = start_again(database, scan.job["id"])
    again.stage("missing", {"rel_path": b"a"}, {"rel_path": b"b"})
    again.walked(seen_files=0)
    again.absorbed()
    assert again.verdict == ("succeeded", None)
    assert all(row["is_missing"] for row in files_of(database).values())


def start_again(database: Databases, job_id: int) -> Any:
    """Scan the library once more, and mean it."""
    with database.control.write() as conn:
        conn.execute(update(jobs.jobs).where(jobs.jobs.c.id == job_id).values(status="failed"))
    return start_scan(database, accept_new_root=True)


def test_a_library_that_was_always_empty_is_scanned_well(database: Databases) -> None:
    known_library(database, {"rel_path": b"gone", "is_missing": True}, root_inode=None)
    scan = start_scan(database)
    scan.walked(seen_files=0, root_inode=5)
    scan.absorbed()
    assert scan.verdict == ("succeeded", None)
    assert library_of(database)["root_inode"] == 5


def test_a_library_is_idle_once_the_report_of_its_ended_scan_is_refused(
    database: Databases,
) -> None:
    known_library(database)
    scan = start_scan(database)
    with database.control.write() as conn:
        conn.execute(update(libraries).values(scan_status="scanning"))
    worker.finish(database.data, scan.job, "fail")
    scan.absorbed()
    assert library_of(database)["scan_status"] == "idle"


def test_the_scan_status_follows_a_scan_through_its_life(database: Databases) -> None:
    known_library(database)
    seen_statuses = []

    def settled() -> None:
        recovery.recover(database.control, Backoff(base_seconds=0))
        seen_statuses.append(library_of(database)["scan_status"])

    with database.control.write() as conn:
        Rows(conn).add("jobs", kind="scan", library_id="photos", payload={"library": "photos"})
    settled()
    job = worker.claim(database.data)
    settled()
    assert worker.finish(database.data, job, "retry")
    settled()  # it waits, and nobody knows for how long
    settled()  # its time has come
    worker.finish(database.data, worker.claim(database.data), "complete")
    settled()
    assert seen_statuses == ["scan_req", "scanning", "idle", "scan_req", "idle"]


@pytest.mark.parametrize(
    ("seen_files", "left"), [(1, ["films", "new"]), (0, ["films", "old", "new"])]
)
def test_only_a_good_scan_replaces_what_earlier_ones_could_not_look_at(
    database: Databases, seen_files: int, left: list[str]
) -> None:
    known_pair(database)
    with database.control.write() as conn:
        rows, other = Rows(conn), add_library(conn, "films")
        for library, code in ((other, "films"), ("photos", "old")):
            session = rows.add("scan_sessions", library_id=library, status="succeeded")
            add_error(conn, session, code)
    scan = start_scan(database)
    with database.control.write() as conn:
        add_error(conn, scan.session_id, "new")
    scan.walked(seen_files=seen_files)
    scan.absorbed()
    with database.control.read() as conn:
        assert (
            list(conn.scalars(select(scan_errors.c.error_code).order_by(scan_errors.c.id))) == left
        )


def add_error(conn: Any, session: int, code: str) -> None:
    row = {"session_id": session, "rel_path": b"x", "error_code": code, "error_message": code}
    conn.execute(scan_errors.insert(), row)


def test_a_long_report_is_taken_over_in_chunks_and_the_missing_come_last(
    database: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discovery, "CHUNK", 2)
    old = [{"rel_path": b"old %d" % number} for number in range(3)]
    known_library(database, *old)
    scan = start_scan(database)
    for number in range(5):  # the two sorts come mixed, as a walk finds them
        scan.stage("seen", seen(b"new %d" % number, 100 + number))
        scan.stage("missing", *old[number : number + 1])
    scan.walked()
    history = []
    while discovery.absorb(database.control):
        files = files_of(database)
        history.append((len(files) - 3, sum(row["is_missing"] for row in files.values())))
    assert history == [(2, 0), (4, 0), (5, 0), (5, 2), (5, 3), (5, 3)]
    assert scan.verdict == ("succeeded", None)
    assert scan.entries_left == 0


def test_sessions_are_taken_over_oldest_first(database: Databases) -> None:
    known_library(database)
    first = start_scan(database)
    worker.finish(database.data, first.job, "fail")
    second = start_scan(database)
    assert discovery.absorb(database.control)
    assert (first.verdict[0], second.verdict[0]) == ("failed", "running")
    assert not discovery.absorb(database.control)
