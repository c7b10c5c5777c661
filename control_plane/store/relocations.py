"""Follows files whose contents show where they went: to another disk, or into a copy.

A missing file lives on in the one new file of its library with its size and hash, if no other
missing file and no other new one could be meant. Its row takes the new name, with all that is
known of it; the row of the new file goes.
"""

from collections import Counter
from collections.abc import Sequence

from sqlalchemy import Connection

from control_plane.store import assets, files
from control_plane.store.sql import prepared
from mediaplane.protocol.bulk import update_many
from mediaplane.protocol.clock import database_time
from mediaplane.protocol.database import lock
from mediaplane.protocol.driver import Row
from mediaplane.protocol.duplicates import DUPLICATES
from mediaplane.protocol.statements import among, id_list

# Most files that are followed at once; the others are next time.
LIMIT = 5000

_FOUND = (
    # Apart, because SQLite would conclude that the hash of the new file is not NULL, and look for
    # all of those in place of the one that is equal.
    "WITH missing AS MATERIALIZED (SELECT * FROM library_files"
    "  WHERE is_missing AND content_hash IS NOT NULL{these}"
    "  AND library_id NOT IN (SELECT slug FROM libraries WHERE tenant_id <> :tenant)) "
    "SELECT m.id AS old_id, n.id AS new_id, m.library_id, m.rel_path AS old_name, n.rel_path,"
    " n.mtime_ns, n.device, n.inode,"
    # Thumbnails that somebody asked for stay with their file, and work under way is not disturbed.
    # Whatever else was made of the new file was made of the old one, or can be.
    " EXISTS (SELECT 1 FROM thumbnails t WHERE t.file_id = n.id) OR EXISTS (SELECT 1 FROM assets a"
    "  WHERE a.library_id = n.library_id AND a.rel_path = n.rel_path"
    "  AND a.status IN ('extracting', 'analyzing')) AS has_own"
    # In this order: few files are missing, and their hashes find the others.
    " FROM missing m CROSS JOIN library_files n"
    " WHERE n.hash_algorithm = m.hash_algorithm AND n.content_hash = m.content_hash"
    " AND NOT n.is_missing AND NOT n.needs_hash AND n.library_id = m.library_id"
    # The sum keeps the index of sizes out of it.
    " AND n.size_bytes + 0 = m.size_bytes"
    " AND coalesce(n.media_type, '') = coalesce(m.media_type, '')"
    # New is what no scan had seen before the one that missed the other file.
    " AND n.created_at >= coalesce((SELECT max(s.started_at) FROM scan_sessions s"
    "  WHERE s.library_id = m.library_id AND s.started_at <= m.updated_at), m.updated_at)"
)


def found(conn: Connection, tenant_id: str) -> list[int]:
    """Return a tenant's missing files that are elsewhere by now, by id."""
    return sorted(row["old_id"] for row in _find(conn, tenant_id, "", {})[:LIMIT])


def follow(conn: Connection, tenant_id: str, ids: Sequence[int]) -> int:
    """Give the rows of these missing files the names they have by now; return how many."""
    lock(conn, DUPLICATES)
    dialect = conn.dialect.name
    these = f" AND {among('id', 'ids', dialect)}"
    # Once more: a thumbnail may have been asked for meanwhile.
    moves = _find(conn, tenant_id, these, {"ids": id_list(ids, dialect)})
    if moves:
        _forget_second_assets(conn, moves)
        files.forget(conn, [row["new_id"] for row in moves])
        _rename(conn, moves)
        moved = assets.of_files(conn, [row["old_id"] for row in moves])
        assets.look_again(conn, [asset.id for asset in moved.values()])
    return len(moves)


def _find(conn: Connection, tenant_id: str, these: str, bound: dict[str, str]) -> list[Row]:
    query = prepared(conn, _FOUND.format(these=these))
    rows = conn.execute(query, {"tenant": tenant_id, **bound}).mappings().all()
    old_ids = Counter(row["old_id"] for row in rows)
    new_ids = Counter(row["new_id"] for row in rows)
    return [
        row
        for row in rows
        if old_ids[row["old_id"]] == new_ids[row["new_id"]] == 1 and not row["has_own"]
    ]


def _forget_second_assets(conn: Connection, moves: Sequence[Row]) -> None:
    """Of two assets keep that of the old file, unless nothing was ever made of it."""
    second = []
    known = assets.of_files(conn, [row[key] for row in moves for key in ("old_id", "new_id")])
    for row in moves:
        old, new = known.get(row["old_id"]), known.get(row["new_id"])
        if old and new:
            second.append(old.id if old.version is None else new.id)
    assets.forget(conn, second)


def _rename(conn: Connection, moves: Sequence[Row]) -> None:
    now = database_time(conn)
    # The groups stay as they are: a row with a hash has gone, and one with the same is back.
    update_many(
        conn,
        "UPDATE library_files SET rel_path = {name}, mtime_ns = {mtime_ns}, device = {device},"
        " inode = {inode}, is_missing = false, updated_at = {now}{source}"
        " WHERE library_files.id = {old_id}",
        {
            "name": "BYTEA", "mtime_ns": "BIGINT", "device": "BIGINT", "inode": "BIGINT",
            "now": "BIGINT", "old_id": "BIGINT",
        },
        [
            (row["rel_path"], row["mtime_ns"], row["device"], row["inode"], now, row["old_id"])
            for row in moves
        ],
    )  # fmt: skip
    update_many(
        conn,
        "UPDATE assets SET rel_path = {name}, mtime = {mtime}{source}"
        " WHERE assets.library_id = {library} AND assets.rel_path = {old_name}",
        {"name": "BYTEA", "mtime": "DOUBLE PRECISION", "library": "TEXT", "old_name": "BYTEA"},
        [
            (row["rel_path"], row["mtime_ns"] / 1e9, row["library_id"], row["old_name"])
            for row in moves
        ],
    )
