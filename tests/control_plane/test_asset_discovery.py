"""Which pictures and videos a scan's report makes work for."""

from typing import Any

import pytest

from tests.support.databases import Databases
from tests.support.reports import LIBRARY, assets_of, known_library, start_scan
from tests.support.rows import FAR_AHEAD, Rows

SECOND_NS = 1_000_000_000
MTIME_NS = 1_700_000_000 * SECOND_NS + 123_456_789


def picture(path: bytes, **columns: Any) -> dict[str, Any]:
    usual = {"media_type": "image", "size_bytes": 10, "mtime_ns": MTIME_NS, "inode": 1}
    return {"rel_path": path} | usual | columns


def absorb(database: Databases, *entries: dict[str, Any]) -> None:
    scan = start_scan(database)
    scan.stage("seen", *entries)
    scan.walked()
    scan.absorbed()
    assert scan.verdict == ("succeeded", None)


def known_asset(database: Databases, **columns: Any) -> dict[str, Any]:
    known_library(database)
    with database.control.write() as conn:
        usual = {"rel_path": b"a", "size": 10, "mtime": MTIME_NS / 1e9}
        row = usual | columns
        return Rows(conn).get("assets", Rows(conn).add("assets", library_id=LIBRARY, **row))


def test_pictures_and_videos_become_assets_and_other_files_do_not(database: Databases) -> None:
    known_library(database)
    absorb(
        database,
        picture(b"a.jpg"),
        picture(b"b.mp4", media_type="video", size_bytes=4_000_000_000),
        picture(b"c.txt", media_type=None),
    )
    found = assets_of(database)
    assert {path: row["type"] for path, row in found.items()} == {
        b"a.jpg": "image",
        b"b.mp4": "video",
    }
    video = found[b"b.mp4"]
    assert (video["size"], video["mtime"]) == (4_000_000_000, MTIME_NS / 1e9)
    assert (video["status"], video["retry_count"]) == ("pending", 0)


@pytest.mark.parametrize("status", ["pending", "proxied", "completed", "failed", "poisoned"])
@pytest.mark.parametrize("change", [{"size_bytes": 11}, {"mtime_ns": MTIME_NS + SECOND_NS}])
def test_what_was_made_of_a_changed_file_is_made_anew(
    database: Databases, status: str, change: dict[str, int]
) -> None:
    failed = {"retry_count": 0 if status == "pending" else 3, "error_code": None}
    known_asset(database, status=status, **failed)
    absorb(database, picture(b"a", **change))
    row = assets_of(database)[b"a"]
    assert (row["status"], row["retry_count"], row["error_code"]) == ("pending", 0, None)
    entry = picture(b"a", **change)
    assert (row["size"], row["mtime"]) == (entry["size_bytes"], entry["mtime_ns"] / 1e9)


def test_an_asset_that_failed_starts_over_without_its_error(database: Databases) -> None:
    known_asset(database, status="poisoned", retry_count=6, error_code="broken")
    absorb(database, picture(b"a", size_bytes=11))
    row = assets_of(database)[b"a"]
    assert (row["status"], row["retry_count"], row["error_code"]) == ("pending", 0, None)


@pytest.mark.parametrize("status", ["extracting", "analyzing"])
def test_an_asset_at_work_stays_with_its_worker(database: Databases, status: str) -> None:
    lease = {"worker_id": "w", "lease_epoch": 2, "lease_expires_at": FAR_AHEAD, "retry_count": 1}
    known_asset(database, status=status, **lease)
    absorb(database, picture(b"a", size_bytes=11))
    row = assets_of(database)[b"a"]
    assert row["status"] == status
    assert {column: row[column] for column in lease} == lease


def test_an_asset_whose_file_only_moved_to_another_disk_number_is_left_alone(
    database: Databases,
) -> None:
    before = known_asset(database, status="completed", retry_count=2)
    absorb(database, picture(b"a", device=99))
    assert dict(assets_of(database)[b"a"]) == before


def test_the_assets_of_other_libraries_are_left_alone(database: Databases) -> None:
    known_library(database)
    with database.control.write() as conn:
        rows = Rows(conn)
        other = rows.add("assets", rel_path=b"a", status="completed", size=1)
        before = rows.get("assets", other)
    absorb(database, picture(b"a"))
    with database.control.read() as conn:
        assert Rows(conn).get("assets", other) == before
