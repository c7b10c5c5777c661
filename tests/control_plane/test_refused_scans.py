"""When a scan's report is refused as a whole, and what makes it acceptable."""

import pytest
from sqlalchemy import update

from control_plane.store import jobs
from mediaplane.protocol.tables import libraries
from tests.support import worker
from tests.support.databases import Databases
from tests.support.reports import (
    PAIR,
    ROOT_INODE,
    files_of,
    groups_of,
    known_library,
    known_pair,
    library_of,
    seen,
    start_scan,
)


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
    worker.finish(database.data, scan.job, "fail")
    again = start_scan(database, accept_new_root=True)
    again.stage("missing", {"rel_path": b"a"}, {"rel_path": b"b"})
    again.walked(seen_files=0)
    again.absorbed()
    assert again.verdict == ("succeeded", None)
    assert all(row["is_missing"] for row in files_of(database).values())


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
