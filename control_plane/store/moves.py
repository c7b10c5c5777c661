"""Follows files that were renamed: their rows take the new names, with all that is known of them.

A file is the same under another name of its library when size, time of change, device and inode
are, and when it has that one new name and no other: hard links tell nothing of a move.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection

from control_plane.store import assets, files
from control_plane.store.sql import prepared
from mediaplane.protocol import gate
from mediaplane.protocol.bulk import update_many
from mediaplane.protocol.driver import Row
from mediaplane.protocol.machines import ASSETS
from mediaplane.protocol.values import ScanChange

# Known files `f` whose names the entries `e` of a chunk give to other files, or to none.
_VACATED = (
    " FROM scan_entries e JOIN library_files f ON f.library_id = :library"
    " AND f.rel_path = e.rel_path AND NOT f.is_missing"
    # One that this scan has entered already has the place it should have.
    " AND f.updated_at < :began"
    " WHERE e.session_id = :session AND e.id <= :upto AND e.change = :change"
)
_REPLACED = f"{_VACATED} AND f.inode <> e.inode"
_KEY = ("size_bytes", "mtime_ns", "device", "inode", "media_type")
_TABLES = ("library_files", "assets")


def before_replaced(conn: Connection, session: Row, upto: int) -> int | None:
    """Return the last seen entry before the first that names another file than it did.

    Whether that one was moved or is gone shows when the walk has ended.
    """
    bound = _bound(session, upto, ScanChange.SEEN)
    query = prepared(conn, f"SELECT e.id{_REPLACED} ORDER BY e.id LIMIT 1")
    first = conn.execute(query, bound).scalar()
    if first is None:
        return upto
    query = prepared(
        conn,
        "SELECT max(id) FROM scan_entries WHERE session_id = :session AND change = :change"
        " AND id < :first",
    )
    last: int | None = conn.execute(query, bound | {"first": first}).scalar()
    return last


def follow_replaced(conn: Connection, session: Row, upto: int) -> None:
    """Move the files of a chunk whose names belong to other files now, before those are entered."""
    bound = _bound(session, upto, ScanChange.SEEN)
    # Again, because a file that gives way to another one may have a new name itself.
    while moves := _sole(_names_of_replaced(conn, bound)):
        # Not stamped: those that gave way are still to be entered, or to be moved on.
        _rename(conn, session["library_id"], _places(moves), is_stamped=False)


def follow_missing(conn: Connection, session: Row, upto: int) -> None:
    """Move the files of a chunk that are missing under their names and were seen under others."""
    bound = _bound(session, upto, ScanChange.MISSING)
    moves = _sole(_names_in_library(conn, _VACATED, bound))
    if moves:
        _rename(conn, session["library_id"], _places(moves), is_stamped=True)
        born = _forget_born(conn, bound)
        conn.execute(
            prepared(
                conn,
                "UPDATE scan_sessions SET missing_files = missing_files - :moved,"
                " new_files = new_files - :born WHERE id = :session",
            ),
            bound | {"moved": len(moves), "born": born},
        )


def _bound(session: Row, upto: int, change: ScanChange) -> dict[str, Any]:
    return {
        "session": session["id"],
        "library": session["library_id"],
        "began": session["started_at"],
        "upto": upto,
        "change": change,
    }


# What a file was called, another name of it, and whether this scan saw that name first.
_Name = tuple[bytes, bytes, bool]


def _names_of_replaced(conn: Connection, bound: dict[str, Any]) -> list[_Name]:
    columns = ", ".join(f"f.{column}" for column in _KEY)
    found = conn.execute(prepared(conn, f"SELECT f.rel_path, {columns}{_REPLACED}"), bound).all()
    if not found:
        return []
    # Matched here: entries have no index of inodes, and a database may choose to join them badly.
    old_names: dict[tuple[Any, ...], list[bytes]] = {}
    for old, *key in found:
        old_names.setdefault(tuple(key), []).append(bytes(old))
    query = prepared(
        conn,
        f"SELECT rel_path, {', '.join(_KEY)} FROM scan_entries"
        " WHERE session_id = :session AND change = :change",
    )
    names = [
        (old, bytes(new), True)
        for new, *key in conn.execute(query, bound)
        for old in old_names.get(tuple(key), ())
    ]
    return names + _names_in_library(conn, _REPLACED, bound)


def _names_in_library(conn: Connection, vacated: str, bound: dict[str, Any]) -> list[_Name]:
    query = prepared(
        conn,
        "SELECT v.rel_path, n.rel_path, n.updated_at >= :began"
        f" FROM (SELECT f.*{vacated}) AS v JOIN library_files n ON NOT n.is_missing"
        " AND n.size_bytes = v.size_bytes AND n.device = v.device AND n.inode = v.inode"
        " AND n.mtime_ns = v.mtime_ns AND n.library_id = v.library_id AND n.id <> v.id"
        " AND coalesce(n.media_type, '') = coalesce(v.media_type, '')",
    )
    found = conn.execute(query, bound)
    return [(bytes(old), bytes(new), bool(is_new)) for old, new, is_new in found]


def _sole(names: Iterable[_Name]) -> list[tuple[bytes, bytes]]:
    """Return the moves: of every file that has one other name, and has it only now."""
    names_of: dict[bytes, list[tuple[bytes, bool]]] = {}
    for old, new, is_new in names:
        names_of.setdefault(old, []).append((new, is_new))
    return [
        (old, found[0][0]) for old, found in names_of.items() if len(found) == 1 and found[0][1]
    ]


def _places(moves: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return for every name the one its row gets: a row that gives way takes the free name."""
    place: dict[bytes, bytes] = {}
    row_at: dict[bytes, bytes] = {}
    for old, new in moves:
        free = place.get(old, old)
        other = row_at.get(new, new)
        place[old], row_at[new] = new, old
        if other != old:
            place[other], row_at[free] = free, other
    return place


def _rename(
    conn: Connection, library_id: str, places: Mapping[bytes, bytes], *, is_stamped: bool
) -> None:
    # By way of names that no file has: each may be taken by a row that is still to move.
    for table in _TABLES:
        update_many(
            conn,
            f"UPDATE {table} SET rel_path = {{name}}{{source}}"
            f" WHERE {table}.library_id = {{library}} AND {table}.rel_path = {{old_name}}",
            {"name": "BYTEA", "library": "TEXT", "old_name": "BYTEA"},
            [(b"\0" + new, library_id, old) for old, new in places.items()],
        )
    bound = {"library": library_id, "names": b"\1"}
    on_their_way = "library_id = :library AND rel_path < :names"
    gate.take_all(conn, ASSETS, "rediscover", f"{on_their_way} AND {assets.IS_OF_OLD_NAME}", bound)
    stamp = ", updated_at = {now}" if is_stamped else ""
    for table in _TABLES:
        arrive = f"UPDATE {table} SET rel_path = substr(rel_path, 2){stamp} WHERE {on_their_way}"
        conn.execute(prepared(conn, arrive), bound)


def _forget_born(conn: Connection, bound: dict[str, Any]) -> int:
    """Delete the rows that this scan made for the new names, now at the old ones; count them."""
    query = prepared(
        conn,
        "SELECT f.id FROM library_files f WHERE f.library_id = :library AND f.created_at >= :began"
        " AND f.rel_path IN (SELECT e.rel_path FROM scan_entries e WHERE e.session_id = :session"
        " AND e.id <= :upto AND e.change = :change)"
        # Thumbnails that somebody asked for stay with their file.
        " AND NOT EXISTS (SELECT 1 FROM thumbnails t WHERE t.file_id = f.id)",
    )
    born = list(conn.scalars(query, bound))
    assets.forget(conn, [asset.id for asset in assets.of_files(conn, born).values()])
    files.forget(conn, born)
    return len(born)
