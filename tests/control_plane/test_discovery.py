"""What a scan's report does to the files that are known."""

import pytest
from sqlalchemy import Connection, insert, select, update

from control_plane.policy import discovery, recovery
from control_plane.policy.backoff import Backoff
from mediaplane.protocol.tables import jobs, scan_errors, scan_sessions
from tests.support import worker
from tests.support.databases import Databases
from tests.support.files import add_files, add_library, content, digest
from tests.support.reports import (
    LIBRARY,
    PAIR,
    files_of,
    groups_of,
    known_library,
    known_pair,
    library_of,
    seen,
    start_scan,
)
from tests.support.rows import LONG_AGO, Rows


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
    scan.walked()
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
    scan = start_scan(database, accept_new_root=True)
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


def test_the_scan_status_follows_a_scan_through_its_life(database: Databases) -> None:
    known_library(database)
    seen_statuses = []

    def settled(delay_seconds: float = 0) -> None:
        recovery.recover(database.control, Backoff(delay_seconds, delay_seconds))
        seen_statuses.append(library_of(database)["scan_status"])

    with database.control.write() as conn:
        Rows(conn).add("jobs", kind="scan", library_id=LIBRARY, payload={"library": LIBRARY})
    settled()
    job = worker.claim(database.data)
    settled()
    assert worker.finish(database.data, job, "retry")
    settled(3600)  # it waits
    with database.control.write() as conn:
        conn.execute(update(jobs).values(retry_after=LONG_AGO))
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
        for library, code in ((add_library(conn, "films"), "films"), (LIBRARY, "old")):
            job = Rows(conn).add("jobs", status="completed")
            row = {"library_id": library, "job_id": job, "lease_epoch": 1, "status": "succeeded"}
            session = conn.scalars(insert(scan_sessions).returning(scan_sessions.c.id), row).one()
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


def add_error(conn: Connection, session: int, code: str) -> None:
    row = {"session_id": session, "rel_path": b"x", "error_code": code, "error_message": code}
    conn.execute(insert(scan_errors), row)


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
