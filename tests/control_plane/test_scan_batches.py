"""New files that a scan staged by the batch become what entries of them would become."""

from typing import Any

import pytest
from sqlalchemy import event, insert

from control_plane.policy import discovery
from control_plane.store import batches
from mediaplane.protocol import kinds, packs
from mediaplane.protocol.tables import assets
from tests.support import worker
from tests.support.databases import Databases
from tests.support.files import content
from tests.support.reports import (
    LIBRARY,
    PAIR,
    Scan,
    assets_of,
    files_of,
    groups_of,
    known_library,
    known_pair,
    seen,
    start_scan,
)


def begun(database: Databases) -> Scan:
    scan = start_scan(database)
    worker.began(database.data, scan.session_id)
    return scan


def test_new_files_are_entered_while_the_walk_goes_on(database: Databases) -> None:
    known_library(database)
    scan = begun(database)
    scan.stage_new(seen(b"a.txt", 1), seen(b"b.jpg", 2, media_type="image", mtime_ns=3 * 10**9))
    scan.stage_new(seen(b"c.mp4", -3, media_type="video", size_bytes=2**62, device=-1))
    assert (scan.absorbed(), scan.batches_left) == (1, 0)
    files = files_of(database)
    assert files.keys() == {b"a.txt", b"b.jpg", b"c.mp4"}
    last = files[b"c.mp4"]
    assert (last["size_bytes"], last["mtime_ns"], last["device"], last["inode"]) == (
        2**62, 5, -1, -3,
    )  # fmt: skip
    assert last["created_at"] == last["updated_at"] >= scan.session["started_at"]
    media = {path: (row["type"], row["mtime"]) for path, row in assets_of(database).items()}
    assert media == {b"b.jpg": ("image", 3.0), b"c.mp4": ("video", 5e-9)}
    scan.walked(new_files=3)
    scan.absorbed()
    assert scan.verdict == ("succeeded", None)


def test_new_small_files_are_marked_to_be_hashed_at_once(database: Databases) -> None:
    """All that the next hash job is likely to want; it takes back the marks it does not want."""
    most = kinds.SMALL_BYTES
    known_library(database, {"rel_path": b"changed"}, {"rel_path": b"back", "is_missing": True})
    scan = begun(database)
    scan.stage_new(
        seen(b"small", 1),
        seen(b"smallest", 2, size_bytes=1),
        seen(b"largest", 3, size_bytes=most),
        seen(b"empty", 4, size_bytes=0),
        seen(b"too large", 5, size_bytes=most + 1),
        seen(b"picture", 6, media_type="image"),
        seen(b"video", 7, media_type="video"),
        seen(b"back", 8, size_bytes=3),
    )
    scan.stage("seen", seen(b"changed", 9, size_bytes=3))
    scan.walked(new_files=8, changed_files=1)
    scan.absorbed()
    marked = {path for path, row in files_of(database).items() if row["needs_hash"]}
    assert marked == {b"small", b"smallest", b"largest"}


def test_a_file_that_comes_back_as_it_was_keeps_its_hash(database: Databases) -> None:
    known_pair(database, is_missing=True)
    assert groups_of(database) == []
    scan = begun(database)
    scan.stage_new(seen(b"a", 11))
    scan.absorbed()
    assert groups_of(database) == PAIR


def test_a_file_that_comes_back_with_other_content_loses_its_hash(database: Databases) -> None:
    known_pair(database, is_missing=True)
    scan = begun(database)
    scan.stage_new(seen(b"a", 11, size_bytes=9))
    scan.absorbed()
    assert (files_of(database)[b"a"]["content_hash"], groups_of(database)) == (None, [])


def test_a_hard_link_that_comes_back_leaves_the_hash_to_the_other_name(
    database: Databases,
) -> None:
    known_pair(database, is_missing=True)
    scan = begun(database)
    scan.stage_new(seen(b"a", 12))
    scan.absorbed()
    assert files_of(database)[b"a"]["content_hash"] is None


@pytest.mark.parametrize("is_batch", [True, False])
def test_of_hard_links_that_come_back_together_one_keeps_the_hash(
    database: Databases, is_batch: bool
) -> None:
    hashed = content(1) | {"size_bytes": 10, "mtime_ns": 5, "device": 1, "is_missing": True}
    away = ({"rel_path": path, "inode": 11} for path in (b"a", b"b", b"c"))
    known_library(database, *(hashed | name for name in away), hashed | {"rel_path": b"copy"})
    scan = begun(database)
    back = [seen(path, 11, device=1) for path in (b"c", b"a", b"b")]
    if is_batch:
        scan.stage_new(*back)
    else:
        scan.stage("seen", *back)
    scan.absorbed()
    assert groups_of(database) == []
    files = files_of(database)
    assert sum(files[path]["content_hash"] is not None for path in (b"a", b"b", b"c")) == 1


def test_copies_that_come_back_together_keep_their_hashes(database: Databases) -> None:
    hashed = content(1) | {"size_bytes": 10, "mtime_ns": 5, "device": 1, "is_missing": True}
    away = ({"rel_path": path, "inode": inode} for inode, path in enumerate([b"a", b"b"]))
    known_library(database, *(hashed | name for name in away))
    scan = begun(database)
    scan.stage_new(seen(b"a", 0, device=1), seen(b"b", 1, device=1))
    scan.absorbed()
    assert groups_of(database) == PAIR


def test_an_asset_that_was_looked_for_while_its_file_was_away_is_made_anew(
    database: Databases,
) -> None:
    known_library(database, {"rel_path": b"a.jpg", "media_type": "image", "is_missing": True})
    with database.control.write() as conn:
        row = {"library_id": LIBRARY, "rel_path": b"a.jpg", "type": "image", "mtime": 5e-9,
               "size": 10, "status": "failed", "error_code": "not_found"}  # fmt: skip
        conn.execute(insert(assets).values(row))
    scan = begun(database)
    scan.stage_new(seen(b"a.jpg", 1, media_type="image"))
    scan.absorbed()
    assert assets_of(database)[b"a.jpg"]["status"] == "pending"


@pytest.mark.parametrize("new_name", [b"0", b"z"])
@pytest.mark.parametrize("is_walked", [False, True])
def test_a_file_that_gave_its_name_to_another_is_found_in_a_batch(
    database: Databases, new_name: bytes, is_walked: bool
) -> None:
    known_pair(database)
    before = files_of(database)[b"a"]
    scan = begun(database)
    scan.stage("seen", seen(b"a", 13, device=1))
    scan.stage_new(seen(new_name, 11))
    if not is_walked:
        scan.absorbed()
        assert files_of(database)[b"a"]["inode"] == 11, "whether it was moved shows at the end"
    scan.walked(seen_files=3, new_files=1, changed_files=1)
    scan.absorbed()
    files = files_of(database)
    assert (files[new_name]["id"], files[b"a"]["inode"]) == (before["id"], 13)
    assert files[new_name]["content_hash"] == before["content_hash"]
    assert (files[b"a"]["content_hash"], groups_of(database)) == (None, PAIR)


def test_a_file_that_is_missing_is_found_under_its_new_name_in_a_batch(
    database: Databases,
) -> None:
    known_pair(database)
    before = files_of(database)[b"a"]
    scan = begun(database)
    scan.stage("missing", seen(b"a", 11, device=1))
    scan.stage_new(seen(b"z", 11))
    scan.walked(seen_files=2, new_files=1, missing_files=1)
    scan.absorbed()
    files = files_of(database)
    assert (set(files), files[b"z"]["id"]) == ({b"b", b"z"}, before["id"])
    assert (scan.session["new_files"], scan.session["missing_files"]) == (0, 0)
    assert groups_of(database) == PAIR


def test_a_batch_is_taken_over_whole_or_not_at_all(
    database: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    known_library(database)
    scan = begun(database)
    scan.stage_new(seen(b"a", 1), seen(b"b", 2))

    def die(*_arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(batches, "forget", die)
        with pytest.raises(KeyboardInterrupt):
            discovery.absorb(database.control)
    assert (files_of(database), scan.batches_left) == ({}, 1)
    scan.absorbed()
    assert (set(files_of(database)), scan.batches_left) == ({b"a", b"b"}, 0)


def test_one_batch_leaves_nothing_behind_for_the_next(database: Databases) -> None:
    known_library(database)
    scan = begun(database)
    scan.stage_new(seen(b"a", 1))
    scan.absorbed()
    with database.control.write() as conn:
        conn.exec_driver_sql("DELETE FROM library_files")
    scan.stage_new(seen(b"b", 2))
    scan.absorbed()
    assert files_of(database).keys() == {b"b"}


def test_batches_of_a_lost_claim_are_thrown_away(database: Databases) -> None:
    known_library(database)
    scan = begun(database)
    scan.stage_new(seen(b"a", 1))
    with database.control.write() as conn:
        conn.exec_driver_sql("UPDATE jobs SET lease_epoch = lease_epoch + 1")
    scan.absorbed()
    assert scan.verdict == ("failed", "scan_ended")
    assert (files_of(database), scan.batches_left) == ({}, 0)


def test_batches_wait_until_the_root_is_known_to_be_the_librarys(database: Databases) -> None:
    known_library(database)
    scan = start_scan(database)
    scan.stage_new(seen(b"a", 1))
    assert (scan.absorbed(), scan.batches_left) == (0, 1)
    worker.began(database.data, scan.session_id, root_inode=9)
    scan.absorbed()
    assert (*scan.verdict, scan.batches_left) == ("failed", "root_changed", 0)
    assert files_of(database) == {}


def test_a_batch_that_cannot_be_read_fails_the_scan(database: Databases) -> None:
    known_library(database)
    scan = begun(database)
    worker.stage_packed(database.data, scan.session_id, b"nonsense")
    scan.absorbed()
    assert (*scan.verdict, scan.batches_left) == ("failed", "report_unreadable", 0)


def test_a_batch_without_files_fails_the_scan(database: Databases) -> None:
    known_library(database)
    scan = begun(database)
    worker.stage_packed(database.data, scan.session_id, packs.pack([], [], [], [], [], []))
    scan.absorbed()
    assert (*scan.verdict, scan.batches_left) == ("failed", "report_unreadable", 0)


def test_a_file_that_a_folder_names_twice_is_entered_once(database: Databases) -> None:
    known_library(database)
    scan = begun(database)
    scan.stage_new(seen(b"a", 1), seen(b"a", 1))
    scan.stage_new(seen(b"a", 1), seen(b"b", 2))
    scan.absorbed()
    assert (set(files_of(database)), scan.batches_left) == ({b"a", b"b"}, 0)


def test_nothing_that_postgresql_cannot_vacuum_stays(database: Databases) -> None:
    known_library(database)
    scan = begun(database)
    scan.stage_new(seen(b"a", 1))
    scan.absorbed()
    tables = {
        "sqlite": f"SELECT count(*) FROM {batches.TABLE}",
        "postgresql": f"SELECT count(*) FROM pg_class WHERE relname = '{batches.TABLE}'",
    }
    with database.control.write() as conn:  # by the connection that has written
        assert conn.exec_driver_sql(tables[database.control.dialect]).scalar() == 0


def test_the_assets_of_a_chunk_are_not_looked_for_one_by_one(database: Databases) -> None:
    known_library(database, {"rel_path": b"b.jpg", "media_type": "image"})
    plans: list[str] = []

    def explain(conn: Any, _cursor: Any, sql: str, bound: Any, *_rest: Any) -> None:
        if sql.lstrip().startswith("UPDATE assets") and not isinstance(bound, list):
            words = {"sqlite": "EXPLAIN QUERY PLAN ", "postgresql": "EXPLAIN "}
            cursor = conn.connection.cursor()
            cursor.execute(words[database.control.dialect] + sql, bound)
            plans.extend(str(line[-1]) for line in cursor.fetchall())

    with database.control.write() as conn:
        row = {"library_id": LIBRARY, "rel_path": b"b.jpg", "type": "image", "mtime": 5e-9,
               "size": 10, "status": "proxied"}  # fmt: skip
        conn.execute(insert(assets).values(row))
    scan = begun(database)
    scan.stage_new(seen(b"a.jpg", 1, media_type="image"), seen(b"c.jpg", 2, media_type="image"))
    event.listen(database.control.engine, "before_cursor_execute", explain)
    scan.absorbed()
    event.remove(database.control.engine, "before_cursor_execute", explain)
    assert plans
    assert not [line for line in plans if "CORRELATED" in line or "SCAN assets" in line]
