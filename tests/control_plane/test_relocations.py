"""A file that went to another disk, or into a copy, is known by its content and keeps its row."""

from typing import Any

import pytest
from sqlalchemy import delete, insert, select, text, update

from control_plane.store import relocations
from mediaplane.protocol.tables import assets, library_files, thumbnails, video_frames
from mediaplane.protocol.values import DEFAULT_TENANT
from tests.control_plane.test_moved_files import absorbed, ids, known
from tests.support.databases import Databases
from tests.support.files import add_library, content, expected_groups, summarise_all
from tests.support.hashing import plan_hash
from tests.support.reports import LIBRARY, assets_of, files_of, groups_of, known_library, seen
from tests.support.rows import Rows


def copy_of(path: bytes, inode: int, **columns: Any) -> dict[str, Any]:
    """What a scan sees of a copy: nothing but the size is that of the original."""
    return seen(path, inode, device=2, mtime_ns=77, **columns)


def hash_new(database: Databases, **contents: int) -> None:
    """Record hashes, as a hash job would, by the names of the files."""
    with database.control.write() as conn:
        for name, number in contents.items():
            conn.execute(
                update(library_files)
                .where(library_files.c.rel_path == name.encode())
                .values(needs_hash=False, **content(number))
            )
        summarise_all(conn)


def follow(database: Databases) -> int:
    with database.control.write() as conn:
        found = relocations.found(conn, DEFAULT_TENANT)
        followed = relocations.follow(conn, DEFAULT_TENANT, found)
        assert groups_of(database) == expected_groups(conn)
        return followed


def test_a_file_that_was_copied_and_deleted_keeps_its_row(database: Databases) -> None:
    known_library(database, known(b"a", 11, **content(1)))
    before = ids(database)[b"a"]
    absorbed(database, [copy_of(b"z", 12)], b"a")
    hash_new(database, z=1)
    assert follow(database) == 1
    rows = files_of(database)
    assert rows.keys() == {b"z"}
    found = rows[b"z"]
    assert (found["id"], found["is_missing"]) == (before, False)
    assert (found["device"], found["inode"], found["mtime_ns"]) == (2, 12, 77)
    assert follow(database) == 0


def test_the_next_hash_job_follows_what_the_last_one_found(database: Databases) -> None:
    known_library(database, known(b"a", 11, **content(1)))
    before = ids(database)[b"a"]
    absorbed(database, [copy_of(b"z", 12)], b"a")
    hash_new(database, z=1)
    plan_hash(database.control, LIBRARY)
    assert ids(database) == {b"z": before}


def test_what_was_made_of_it_goes_with_it(database: Databases) -> None:
    known_library(database, known(b"a", 11, media_type="video", **content(1)))
    with database.control.write() as conn:
        rows = Rows(conn)
        path = {"library_id": LIBRARY, "rel_path": b"a", "type": "video"}
        state = {"status": "completed", "version": "old", "size": 10, "mtime": 5 / 1e9}
        asset = rows.add("assets", **path, **state)
        frame = {"asset_id": asset, "timestamp_ms": 0, "is_keyframe": True}
        conn.execute(insert(video_frames), frame)
        file_id = conn.scalars(select(library_files.c.id)).one()
        rows.add("thumbnails", file_id=file_id)
    absorbed(database, [copy_of(b"z", 12, media_type="video")], b"a")
    assert assets_of(database).keys() == {b"a", b"z"}
    hash_new(database, z=1)
    assert follow(database) == 1
    (found,) = assets_of(database).values()
    assert (found["id"], found["rel_path"], found["status"]) == (asset, b"z", "completed")
    assert found["mtime"] == 77 / 1e9
    with database.control.read() as conn:
        assert conn.scalars(select(thumbnails.c.file_id)).all() == [ids(database)[b"z"]]


@pytest.mark.parametrize(
    ("gone", "copies"),
    [((b"a",), (b"y", b"z")), ((b"a", b"b"), (b"z",))],
    ids=["two new files", "two missing files"],
)
def test_where_two_could_be_meant_nothing_moves(
    database: Databases, gone: tuple[bytes, ...], copies: tuple[bytes, ...]
) -> None:
    known_library(
        database, *(known(path, 11 + place, **content(1)) for place, path in enumerate(gone))
    )
    absorbed(database, [copy_of(path, 20 + place) for place, path in enumerate(copies)], *gone)
    hash_new(database, **{path.decode(): 1 for path in copies})
    assert follow(database) == 0
    assert files_of(database).keys() == {*gone, *copies}


def test_a_duplicate_that_was_there_before_stays_itself(database: Databases) -> None:
    known_library(database, known(b"a", 11, **content(1)), known(b"b", 12, **content(1)))
    before = ids(database)
    absorbed(database, [], b"a")
    assert follow(database) == 0
    assert ids(database) == {b"b": before[b"b"]}


@pytest.mark.parametrize("difference", [{"size_bytes": 11}, {"media_type": "image"}])
def test_a_file_of_another_sort_is_another_file(
    database: Databases, difference: dict[str, Any]
) -> None:
    known_library(database, known(b"a", 11, **content(1)))
    absorbed(database, [copy_of(b"z", 12, **difference)], b"a")
    hash_new(database, z=1)
    assert follow(database) == 0


def test_a_new_file_of_which_something_was_made_stays_itself(database: Databases) -> None:
    known_library(database, known(b"a", 11, **content(1)))
    absorbed(database, [copy_of(b"z", 12)], b"a")
    hash_new(database, z=1)
    with database.control.write() as conn:
        Rows(conn).add("thumbnails", file_id=ids(database)[b"z"])
    assert follow(database) == 0
    assert files_of(database).keys() == {b"a", b"z"}


def test_proxies_of_the_new_file_give_way_to_those_of_the_old_row(database: Databases) -> None:
    known_library(database, known(b"a.jpg", 11, media_type="image", **content(1)))
    before = ids(database)[b"a.jpg"]
    with database.control.write() as conn:
        Rows(conn).add("assets", library_id=LIBRARY, rel_path=b"a.jpg", version="old")
    absorbed(database, [copy_of(b"z.jpg", 12, media_type="image")], b"a.jpg")
    hash_new(database, **{"z.jpg": 1})
    with database.control.write() as conn:
        conn.execute(update(assets).values(status="proxied"))
        new = conn.execute(select(assets.c.id).where(assets.c.rel_path == b"z.jpg")).scalar_one()
        conn.execute(
            insert(video_frames), {"asset_id": new, "timestamp_ms": 1, "is_keyframe": True}
        )
    assert follow(database) == 1
    assert ids(database) == {b"z.jpg": before}
    with database.control.read() as conn:
        assert conn.execute(select(video_frames)).all() == []
        assert conn.execute(select(assets.c.rel_path)).scalars().all() == [b"z.jpg"]


def copied_picture(database: Databases, old: dict[str, Any]) -> int:
    """A picture whose asset is like this, and that went into a copy of another disk."""
    known_library(database, known(b"a.jpg", 11, media_type="image", **content(1)))
    with database.control.write() as conn:
        asset: int = Rows(conn).add("assets", library_id=LIBRARY, rel_path=b"a.jpg", **old)
    absorbed(database, [copy_of(b"z.jpg", 12, media_type="image")], b"a.jpg")
    hash_new(database, **{"z.jpg": 1})
    return asset


@pytest.mark.parametrize(
    "old", [{"status": "pending"}, {"status": "failed", "error_code": "not_found"}]
)
def test_proxies_of_the_new_file_stay_where_there_are_none_of_the_old_one(
    database: Databases, old: dict[str, Any]
) -> None:
    copied_picture(database, old)
    made = {"status": "proxied", "version": "new"}
    with database.control.write() as conn:
        conn.execute(update(assets).where(assets.c.rel_path == b"z.jpg").values(made))
    before = assets_of(database)[b"z.jpg"]
    assert follow(database) == 1
    assert assets_of(database) == {b"z.jpg": before}


@pytest.mark.parametrize("has_new_asset", [True, False])
def test_a_picture_that_was_not_found_where_it_was_is_processed_where_it_is(
    database: Databases, has_new_asset: bool
) -> None:
    failed = {"status": "failed", "error_code": "not_found"}
    old = copied_picture(database, failed | ({"version": "old"} if has_new_asset else {}))
    with database.control.write() as conn:
        if not has_new_asset:
            conn.execute(delete(assets).where(assets.c.rel_path == b"z.jpg"))
    assert follow(database) == 1
    (found,) = assets_of(database).values()
    assert (found["id"], found["rel_path"]) == (old, b"z.jpg")
    assert (found["status"], found["error_code"]) == ("pending", None)


def test_the_asset_of_a_new_file_stays_where_the_old_one_has_none(database: Databases) -> None:
    old = copied_picture(database, {})
    with database.control.write() as conn:
        conn.execute(delete(assets).where(assets.c.id == old))
    before = assets_of(database)
    assert follow(database) == 1
    assert assets_of(database) == before


def test_a_new_file_that_is_being_decoded_stays_itself_for_now(database: Databases) -> None:
    known_library(database, known(b"a.jpg", 11, media_type="image", **content(1)))
    absorbed(database, [copy_of(b"z.jpg", 12, media_type="image")], b"a.jpg")
    hash_new(database, **{"z.jpg": 1})
    with database.control.write() as conn:
        conn.execute(update(assets).values(status="extracting"))
    assert follow(database) == 0


def test_missing_files_are_looked_for_by_their_hashes_and_nothing_else_is_read(
    database: Databases,
) -> None:
    with database.control.write() as conn:
        if conn.dialect.name == "postgresql":
            conn.execute(text("SET LOCAL enable_seqscan = off"))
        explain = "EXPLAIN QUERY PLAN " if conn.dialect.name == "sqlite" else "EXPLAIN "
        query = explain + relocations._FOUND.format(these="")
        lines = conn.execute(text(query), {"tenant": DEFAULT_TENANT}).all()
        found = "\n".join(str(line[-1]) for line in lines)
    assert "ix_library_files_missing" in found
    assert "ix_library_files_dedup_group" in found
    if database.control.dialect == "sqlite":
        assert "(hash_algorithm=? AND content_hash=?)" in found


def test_a_file_of_another_library_is_another_file(database: Databases) -> None:
    known_library(database, known(b"a", 11, **content(1)))
    absorbed(database, [], b"a")
    with database.control.write() as conn:
        add_library(conn, "others")
        Rows(conn).add("library_files", library_id="others", rel_path=b"z", size_bytes=10,
                       **content(1))  # fmt: skip
    assert follow(database) == 0
