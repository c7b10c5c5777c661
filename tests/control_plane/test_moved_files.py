"""What is known of a moved file goes with it, however its scan's report is cut into chunks."""

from typing import Any

import pytest
from sqlalchemy import insert, select, update

from control_plane.policy import discovery
from mediaplane.protocol.tables import assets, library_files, video_frames
from tests.support import worker
from tests.support.databases import Databases
from tests.support.files import content, digest, summarise_all
from tests.support.reports import (
    LIBRARY,
    PAIR,
    Scan,
    assets_of,
    files_of,
    groups_of,
    known_library,
    seen,
    start_scan,
)
from tests.support.rows import LONG_AGO, Rows

EARLIER = {"created_at": LONG_AGO, "updated_at": LONG_AGO}


@pytest.fixture(params=[1, 2, discovery.CHUNK])
def chunk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many entries are taken over at once."""
    monkeypatch.setattr(discovery, "CHUNK", request.param)
    return int(request.param)


def known(path: bytes, inode: int, **columns: Any) -> dict[str, Any]:
    return seen(path, inode, device=1) | EARLIER | columns


def absorbed(database: Databases, new: list[dict[str, Any]], *missing: bytes) -> Scan:
    """Take over a scan that saw these files and missed those."""
    before = files_of(database)
    scan = start_scan(database)
    scan.stage("seen", *new)
    scan.stage("missing", *({"rel_path": path} for path in missing))
    born = sum(entry["rel_path"] not in before for entry in new)
    scan.walked(
        new_files=born, changed_files=len(new) - born, missing_files=len(missing), seen_files=9
    )
    scan.absorbed()
    worker.finish(database.data, scan.job, "complete")
    assert scan.verdict == ("succeeded", None)
    return scan


def ids(database: Databases) -> dict[bytes, int]:
    return {path: row["id"] for path, row in files_of(database).items() if not row["is_missing"]}


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize("was_hashed", [True, False])
def test_a_moved_file_keeps_its_hash_and_its_group(database: Databases, was_hashed: bool) -> None:
    hashed = content(1) if was_hashed else {}
    known_library(database, known(b"a", 11, **hashed), known(b"b", 12, **hashed))
    with database.control.write() as conn:
        summarise_all(conn)
    before = files_of(database)[b"a"]
    absorbed(database, [seen(b"z", 11)], b"a")
    after = files_of(database)[b"z"]
    same = before.keys() - {"rel_path", "updated_at"}
    assert {column: after[column] for column in same} == {column: before[column] for column in same}
    assert after["updated_at"] > before["updated_at"]
    assert groups_of(database) == (PAIR if was_hashed else [])


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize(("old", "new"), [(b"a.mp4", b"z.mp4"), (b"z.mp4", b"a.mp4")])
def test_what_was_made_of_a_moved_file_goes_with_it(
    database: Databases, old: bytes, new: bytes
) -> None:
    known_library(database, known(old, 11, media_type="video"))
    with database.control.write() as conn:
        rows = Rows(conn)
        path = {"library_id": LIBRARY, "rel_path": old, "type": "video"}
        state = {"status": "completed", "size": 10, "mtime": 5 / 1e9}
        asset = rows.add("assets", **path, **state, **EARLIER)
        frame = {"asset_id": asset, "timestamp_ms": 0, "is_keyframe": True}
        conn.execute(insert(video_frames), frame)
        file_id = conn.scalars(select(library_files.c.id)).one()
        thumbnail = rows.add("thumbnails", file_id=file_id)
    absorbed(database, [seen(new, 11, media_type="video")], old)
    found = assets_of(database)
    assert found.keys() == {new}
    assert (found[new]["id"], found[new]["status"]) == (asset, "completed")
    assert ids(database) == {new: file_id}
    with database.control.write() as conn:
        assert conn.scalars(select(video_frames.c.asset_id)).all() == [asset]
        assert Rows(conn).get("thumbnails", thumbnail)["file_id"] == file_id


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize(
    ("new", "missing", "moved"),
    [
        ({b"c": 1}, [b"a"], {b"c": b"a", b"b": b"b"}),
        ({b"a": 2, b"b": 1}, [], {b"a": b"b", b"b": b"a"}),
        ({b"b": 1, b"c": 2}, [b"a"], {b"b": b"a", b"c": b"b"}),
        ({b"0": 1, b"a": 2}, [b"b"], {b"0": b"a", b"a": b"b"}),
        ({b"b": 1}, [b"a"], {b"b": b"a"}),
        ({b"a": 2}, [b"b"], {b"a": b"b"}),
        ({b"a": 9, b"b": 1, b"c": 2}, [], {b"b": b"a", b"c": b"b"}),
        ({b"0": 2, b"a": 9, b"c": 1}, [b"b"], {b"0": b"b", b"c": b"a"}),
    ],
    ids=["rename", "swap", "chain up", "chain down", "over next", "over first", "rotate", "cross"],
)
def test_rows_go_where_their_files_went(
    database: Databases, new: dict[bytes, int], missing: list[bytes], moved: dict[bytes, bytes]
) -> None:
    known_library(database, known(b"a", 1, **content(1)), known(b"b", 2, **content(2)))
    before = ids(database)
    absorbed(database, [seen(path, inode) for path, inode in new.items()], *missing)
    after = files_of(database)
    assert {path: after[path]["id"] for path in moved} == {
        path: before[was] for path, was in moved.items()
    }
    hashes = {b"a": digest(1), b"b": digest(2)}
    assert {path: bytes(after[path]["content_hash"]) for path in moved} == {
        path: hashes[was] for path, was in moved.items()
    }


@pytest.mark.parametrize(
    "changed", [{"size_bytes": 11}, {"mtime_ns": 6}, {"device": 2}, {"media_type": "image"}]
)
def test_a_file_that_differs_in_more_than_its_name_is_another(
    database: Databases, changed: dict[str, Any]
) -> None:
    known_library(database, known(b"a", 11))
    before = ids(database)
    absorbed(database, [seen(b"z", 11, **changed)], b"a")
    assert ids(database).keys() == {b"z"}
    assert files_of(database)[b"a"]["id"] == before[b"a"]
    assert files_of(database)[b"a"]["is_missing"]


def test_a_name_that_was_known_before_is_no_move(database: Databases) -> None:
    known_library(database, known(b"a", 11), known(b"b", 11))
    before = ids(database)
    absorbed(database, [], b"a")
    assert ids(database) == {b"b": before[b"b"]}


@pytest.mark.usefixtures("chunk")
def test_a_move_counts_neither_as_new_nor_as_missing(database: Databases) -> None:
    known_library(database, *(known(b"old %d" % number, 10 + number) for number in range(3)))
    new = [seen(b"new %d" % number, 10 + number) for number in range(2)] + [seen(b"other", 99)]
    session = absorbed(database, new, b"old 0", b"old 1", b"old 2").session
    assert (session["new_files"], session["changed_files"], session["missing_files"]) == (1, 0, 1)


def add_assets(database: Databases, *paths: bytes, **columns: Any) -> None:
    """Add pictures in the state of the files that `known` describes."""
    with database.control.write() as conn:
        for path in paths:
            row = {"library_id": LIBRARY, "rel_path": path, "mtime": 5 / 1e9, "size": 10}
            Rows(conn).add("assets", **row, **EARLIER, **columns)


def states_of(database: Databases) -> dict[bytes, tuple[str, str | None]]:
    return {path: (row["status"], row["error_code"]) for path, row in assets_of(database).items()}


@pytest.mark.usefixtures("chunk")
@pytest.mark.parametrize("code", ["not_found", "changed"])
def test_a_picture_that_was_looked_for_under_its_old_name_is_processed_under_its_new_one(
    database: Databases, code: str
) -> None:
    known_library(
        database, *(known(path, n, media_type="image") for n, path in enumerate([b"a", b"b", b"c"]))
    )
    add_assets(database, b"a", b"b", b"c", status="failed", error_code=code)
    absorbed(database, [seen(b"b", 0, media_type="image"), seen(b"z", 1, media_type="image")], b"a")
    states = states_of(database)
    assert states == {b"b": ("pending", None), b"z": ("pending", None), b"c": ("failed", code)}


@pytest.mark.parametrize("is_batch", [False, True])
def test_a_picture_that_cannot_be_decoded_is_not_tried_again_under_its_new_name(
    database: Databases, is_batch: bool
) -> None:
    known_library(database, known(b"a", 1, media_type="image"), known(b"b", 2, media_type="image"))
    add_assets(database, b"a", status="failed", error_code="unsupported")
    add_assets(database, b"b", status="failed", error_code="not_found")
    scan = start_scan(database)
    new = [seen(b"y", 1, media_type="image"), seen(b"z", 2, media_type="image")]
    if is_batch:
        scan.stage_new(*new)
    else:
        scan.stage("seen", *new)
    scan.stage("missing", {"rel_path": b"a"}, {"rel_path": b"b"})
    scan.walked(new_files=2, missing_files=2, seen_files=3)
    scan.absorbed()
    states = states_of(database)
    assert states == {b"y": ("failed", "unsupported"), b"z": ("pending", None)}


@pytest.mark.parametrize("is_asked_for", [True, False])
@pytest.mark.parametrize("status", ["pending", "extracting", "proxied", "failed"])
def test_no_asset_is_left_without_a_file_when_a_new_name_turns_out_to_be_a_move(
    database: Databases, status: str, is_asked_for: bool
) -> None:
    known_library(database, known(b"a", 1, media_type="video"), known(b"k", 9, media_type=None))
    add_assets(database, b"a", type="video", status="proxied", version="old")
    before = assets_of(database)[b"a"]["id"]
    scan = start_scan(database)
    scan.stage_new(seen(b"z", 1, media_type="video"))
    worker.began(database.data, scan.session_id)
    assert scan.absorbed() == 1
    born = assets_of(database)[b"z"]["id"]
    with database.control.write() as conn:
        conn.execute(update(assets).where(assets.c.id == born).values(status=status))
        conn.execute(
            insert(video_frames), {"asset_id": born, "timestamp_ms": 0, "is_keyframe": True}
        )
        if is_asked_for:
            Rows(conn).add("thumbnails", file_id=ids(database)[b"z"])
    scan.stage("missing", {"rel_path": b"a"})
    scan.walked(new_files=1, missing_files=1, seen_files=2)
    scan.absorbed()
    found = assets_of(database)
    assert (found[b"z"]["id"], found[b"z"]["status"]) == (before, "proxied")
    kept = {b"a", b"z"} if is_asked_for else {b"z"}
    assert set(found) == kept
    assert set(files_of(database)) == kept | {b"k"}


def test_a_replaced_file_waits_for_the_end_of_the_walk(database: Databases) -> None:
    known_library(database, known(b"a", 11, **content(1)), known(b"b", 12))
    scan = start_scan(database)
    worker.began(database.data, scan.session_id)
    scan.stage("seen", seen(b"0", 99), seen(b"a", 98), seen(b"c", 97))
    assert scan.absorbed() == 1
    assert files_of(database).keys() == {b"0", b"a", b"b"}
    assert files_of(database)[b"a"]["inode"] == 11
    scan.stage("seen", seen(b"z", 11))
    before = ids(database)
    scan.walked(seen_files=5)
    scan.absorbed()
    assert ids(database)[b"z"] == before[b"a"]
