"""Reports that are not believed, what becomes of assets, and what a library says of its scan."""

from typing import Any

import pytest
from sqlalchemy import select, text

from control_plane.policy import discovery, recovery
from control_plane.policy.backoff import Backoff
from mediaplane.protocol.tables import assets, libraries, scan_entries, scan_errors
from tests.support.databases import Databases
from tests.support.files import add_library
from tests.support.rows import LONG_AGO, Rows
from tests.support.scans import absorb_all, begin, files, scan, session_row
from tests.support.worker import claim, finish, open_scan, stage, walked


@pytest.fixture
def photos(database: Databases) -> Databases:
    """A library that was scanned once: its root has the inode 1, and one file is in it."""
    with database.control.write() as conn:
        add_library(conn, "photos")
    assert scan(database, seen=[{"rel_path": b"a", "inode": 5}])["status"] == "succeeded"
    return database


def library(database: Databases) -> dict[str, Any]:
    with database.control.read() as conn:
        return dict(conn.execute(select(libraries)).mappings().one())


def recover(database: Databases) -> None:
    recovery.recover(database.control, Backoff())


def test_a_good_scan_remembers_which_root_it_saw(photos: Databases) -> None:
    scan(photos, root_device=77, root_inode=1)
    assert (library(photos)["root_device"], library(photos)["root_inode"]) == (77, 1)


def test_another_folder_in_the_place_of_the_root_fails_and_changes_nothing(
    photos: Databases,
) -> None:
    before = files(photos)
    session = scan(
        photos,
        seen=[{"rel_path": b"a", "size_bytes": 99}, {"rel_path": b"stranger"}],
        missing=[{"rel_path": b"a"}],
        root_inode=2,
    )
    assert (session["status"], session["error_code"]) == ("failed", "root_changed")
    assert "mediaplane scan photos --accept-new-root" in session["error_message"]
    assert files(photos) == before
    assert library(photos)["root_inode"] == 1


def test_what_was_seen_before_the_root_is_known_is_not_believed_yet(photos: Databases) -> None:
    before = files(photos)
    _, session = begin(photos)
    stage(photos.data, session, "seen", [{"rel_path": b"a", "size_bytes": 99}])
    absorb_all(photos)
    assert files(photos) == before
    walked(photos.data, session, root_inode=2)
    absorb_all(photos)
    assert session_row(photos, session)["error_code"] == "root_changed"
    assert files(photos) == before


def test_another_device_number_of_the_root_is_no_other_root(photos: Databases) -> None:
    assert scan(photos, root_device=5)["status"] == "succeeded"


def test_a_root_that_is_empty_now_fails_and_nothing_is_missing(photos: Databases) -> None:
    session = scan(photos, missing=[{"rel_path": b"a"}], seen_files=0)
    assert (session["status"], session["error_code"]) == ("failed", "root_empty")
    assert "mediaplane scan photos --accept-new-root" in session["error_message"]
    assert not files(photos)[b"a"]["is_missing"]


def test_a_new_or_emptied_root_is_taken_over_when_the_operator_says_so(
    photos: Databases,
) -> None:
    session = scan(
        photos, missing=[{"rel_path": b"a"}], seen_files=0, root_inode=2, accept_new_root=True
    )
    assert session["status"] == "succeeded"
    assert files(photos)[b"a"]["is_missing"]
    assert library(photos)["root_inode"] == 2


def test_a_library_that_was_always_empty_may_be_empty(database: Databases) -> None:
    with database.control.write() as conn:
        add_library(conn, "photos")
    assert scan(database, seen_files=0)["status"] == "succeeded"
    assert scan(database, seen_files=0)["status"] == "succeeded"


def test_the_entries_of_a_lost_lease_are_thrown_away(photos: Databases) -> None:
    job, lost = begin(photos)
    stage(photos.data, lost, "seen", [{"rel_path": b"from the lost"}])
    stage(photos.data, lost, "missing", [{"rel_path": b"a"}])
    walked(photos.data, lost)
    with photos.control.write() as conn:
        conn.execute(text("UPDATE jobs SET lease_expires_at = 1 WHERE status = 'running'"))
    recover(photos)
    with photos.control.write() as conn:
        conn.execute(text("UPDATE jobs SET retry_after = 1 WHERE status = 'retryable'"))
    recover(photos)
    again = claim(photos.data)
    assert (again["id"], again["lease_epoch"]) == (job["id"], job["lease_epoch"] + 1)
    held = open_scan(photos.data, again)
    stage(photos.data, held, "seen", [{"rel_path": b"from the new"}])
    walked(photos.data, held)
    absorb_all(photos)
    assert (session_row(photos, lost)["status"], session_row(photos, held)["status"]) == (
        "failed",
        "succeeded",
    )
    assert {path: row["is_missing"] for path, row in files(photos).items()} == {
        b"a": False,
        b"from the new": False,
    }
    with photos.control.read() as conn:
        assert conn.execute(select(scan_entries)).all() == []


def test_a_good_scan_forgets_the_errors_of_earlier_ones_and_a_failed_one_does_not(
    photos: Databases,
) -> None:
    def errors() -> list[str]:
        with photos.control.read() as conn:
            return list(conn.scalars(select(scan_errors.c.error_code)))

    with photos.control.write() as conn:
        earlier = conn.execute(text("SELECT id FROM scan_sessions")).scalar_one()
        conn.execute(
            scan_errors.insert(), {"session_id": earlier, "rel_path": b"x", "error_code": "denied"}
        )
    assert scan(photos, root_inode=2)["status"] == "failed"
    assert errors() == ["denied"]
    assert scan(photos)["status"] == "succeeded"
    assert errors() == []


def test_pictures_and_videos_become_assets_and_other_files_do_not(photos: Databases) -> None:
    scan(
        photos,
        seen=[
            {"rel_path": b"p.jpg", "media_type": "image", "mtime_ns": 1_500_000_000},
            {"rel_path": b"v.mp4", "media_type": "video", "size_bytes": 2**40},
            {"rel_path": b"notes.txt"},
        ],
    )
    with photos.control.read() as conn:
        rows = {row["rel_path"]: row for row in conn.execute(select(assets)).mappings()}
    assert {path: (row["type"], row["status"]) for path, row in rows.items()} == {
        b"p.jpg": ("image", "pending"),
        b"v.mp4": ("video", "pending"),
    }
    assert (rows[b"p.jpg"]["mtime"], rows[b"v.mp4"]["size"]) == (1.5, 2**40)


@pytest.mark.parametrize("status", ["proxied", "completed", "failed", "poisoned"])
@pytest.mark.parametrize("change", [{}, {"size_bytes": 11}, {"mtime_ns": 2_000_000_001}])
def test_an_asset_begins_anew_exactly_when_its_file_has_changed(
    photos: Databases, status: str, change: dict[str, int]
) -> None:
    seen: dict[str, Any] = {"rel_path": b"p", "media_type": "image", "mtime_ns": 2_000_000_000}
    scan(photos, seen=[seen])
    with photos.control.write() as conn:
        conn.execute(assets.update().values(status=status, retry_count=3, error_code="broken"))
    scan(photos, seen=[seen | {"device": 9} | change])
    with photos.control.read() as conn:
        row = conn.execute(select(assets)).mappings().one()
    fresh, kept = ("pending", 0, None), (status, 3, "broken")
    assert (row["status"], row["retry_count"], row["error_code"]) == (fresh if change else kept)
    assert row["size"] == change.get("size_bytes", 10)
    assert row["mtime"] == change.get("mtime_ns", 2_000_000_000) / 1e9


def test_the_scan_status_follows_the_job_from_request_to_end(database: Databases) -> None:
    with database.control.write() as conn:
        add_library(conn, "photos")
    job, session = begin(database)
    assert library(database)["scan_status"] == "scan_req"  # the worker may not write it
    recover(database)
    assert library(database)["scan_status"] == "scanning"
    walked(database.data, session, seen_files=0)
    absorb_all(database)
    finish(database.data, job)
    recover(database)
    assert library(database)["scan_status"] == "idle"


def test_a_session_whose_job_has_failed_leaves_its_library_idle(database: Databases) -> None:
    with database.control.write() as conn:
        add_library(conn, "photos")
    job, session = begin(database)
    recover(database)
    finish(database.data, job, "fail", error_code="gone", error_message="It is gone.")
    assert discovery.absorb(database.control)
    assert session_row(database, session)["status"] == "failed"
    assert library(database)["scan_status"] == "idle"


def test_a_scan_that_waits_for_another_try_leaves_its_library_idle(database: Databases) -> None:
    with database.control.write() as conn:
        add_library(conn, "photos", scan_status="scanning")
        lost = {"lease_expires_at": LONG_AGO, "status": "running"}
        Rows(conn).add("jobs", kind="scan", library_id="photos", **lost)
    recover(database)
    assert library(database)["scan_status"] == "idle"
