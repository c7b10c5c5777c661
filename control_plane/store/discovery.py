"""Takes over what a scan reported: scan entries become files and assets."""

from typing import Any, NamedTuple

from sqlalchemy import Connection

from control_plane.store import batches, moves
from control_plane.store.batches import Chunk
from control_plane.store.hashing import drop_hashes
from control_plane.store.sql import prepared
from mediaplane.protocol import gate, kinds
from mediaplane.protocol.clock import database_time
from mediaplane.protocol.database import lock
from mediaplane.protocol.driver import Row
from mediaplane.protocol.duplicates import DUPLICATES, summarise
from mediaplane.protocol.machines import ASSETS
from mediaplane.protocol.tables import jobs
from mediaplane.protocol.values import ScanChange, ScanSessionStatus


class _Source(NamedTuple):
    """Where the files of a chunk are."""

    table: str
    these: str


_ENTRIES = _Source(
    "scan_entries e", "e.session_id = :session AND e.id <= :upto AND e.change = :change"
)
_UNPACKED = _Source(f"{batches.TABLE} e", "true")

# Other present names of a file on a disk that have its hash.
_HASHED_NAMES = (
    "SELECT 1 FROM library_files o WHERE NOT o.is_missing"
    " AND o.size_bytes = {file}.size_bytes AND o.device = {file}.device"
    " AND o.inode = {file}.inode AND o.content_hash IS NOT NULL AND {other}"
    " AND o.library_id NOT IN (SELECT slug FROM libraries WHERE tenant_id <> :tenant)"
)
# The device is left out: its number may change with every mount, and the rest identifies a file.
# A hard link that comes back leaves the hash with the name that has it by now.
_SAME = (
    "library_files.size_bytes = excluded.size_bytes"
    " AND library_files.mtime_ns = excluded.mtime_ns"
    " AND library_files.inode = excluded.inode AND NOT EXISTS"
    f" ({_HASHED_NAMES.format(file='excluded', other='o.id <> library_files.id')})"
)

# New files of which most have their size in common with another: to mark them now costs next to
# nothing, and later as much as to enter them. The next hash job takes the mark off the others. Not
# pictures and videos, which a worker that reads them anyway would hash at once if they are marked,
# be it by two names.
_IS_LIKELY_WANTED = (
    f"e.media_type IS NULL AND e.size_bytes BETWEEN 1 AND {kinds.SMALL_BYTES}"
    " AND e.inode IS NOT NULL"
)


def oldest_running(conn: Connection) -> Row | None:
    """Return the session to take over from, with the state of its job and library."""
    query = prepared(
        conn,
        "SELECT s.*, j.status AS job_status, j.lease_epoch AS job_epoch, j.payload AS job_payload,"
        " l.tenant_id, l.regroup_from, l.root_device AS known_device, l.root_inode AS known_inode"
        " FROM scan_sessions s JOIN jobs j ON j.id = s.job_id"
        " JOIN libraries l ON l.slug = s.library_id"
        " WHERE s.status = 'running' ORDER BY s.id LIMIT 1",
    ).columns(job_payload=jobs.c.payload.type)
    return conn.execute(query).mappings().first()


def next_chunk(conn: Connection, session_id: int, change: ScanChange, limit: int) -> int | None:
    """Return the last id of the next entries of one sort, None when there are none."""
    query = prepared(
        conn,
        "SELECT max(id) FROM (SELECT e.id FROM scan_entries e WHERE e.session_id = :session"
        " AND e.change = :change ORDER BY e.id LIMIT :limit) AS chunk",
    )
    bound = {"session": session_id, "change": change, "limit": limit}
    upto: int | None = conn.execute(query, bound).scalar()
    return upto


def absorb_seen(conn: Connection, session: Row, upto: int) -> None:
    """Turn a chunk of entries into files, and pictures and videos among them into assets."""
    lock(conn, DUPLICATES)
    moves.follow_replaced(conn, session, upto)
    bound = _bound(conn, session, upto, ScanChange.SEEN)
    touched = _hashes(conn, _ENTRIES, bound)
    _enter(conn, _ENTRIES, bound)
    if touched:
        _drop_second_hashes(conn, _ENTRIES, bound)
    _add_assets(conn, _ENTRIES, bound)
    _renew_assets(conn, _ENTRIES, bound)
    summarise(conn, touched)
    _forget(conn, bound)


def absorb_batches(conn: Connection, session: Row, chunk: Chunk) -> None:
    """Do the same with batches of new files; no name among them was another file's."""
    lock(conn, DUPLICATES)
    batches.lay_out(conn, chunk)
    library = session["library_id"]
    bound = _bound(conn, session, 0, ScanChange.SEEN)
    # Those that were missing are known. Where none is, as in a first scan, this is all.
    is_known = batches.is_known(conn, library, chunk, "library_files")
    touched = _hashes(conn, _UNPACKED, bound) if is_known else []
    _enter(conn, _UNPACKED, bound)
    if touched:
        _drop_second_hashes(conn, _UNPACKED, bound)
    if any(file[1] is not None for file in chunk.files):
        has_assets = batches.is_known(conn, library, chunk, "assets")
        _add_assets(conn, _UNPACKED, bound)
        if has_assets:
            _renew_assets(conn, _UNPACKED, bound)
    summarise(conn, touched)
    batches.forget(conn, chunk)


def _enter(conn: Connection, source: _Source, bound: dict[str, Any]) -> None:
    conn.execute(
        prepared(
            conn,
            "INSERT INTO library_files (library_id, rel_path, media_type, size_bytes, mtime_ns,"
            " device, inode, needs_hash, created_at, updated_at) "
            "SELECT :library, e.rel_path, e.media_type, e.size_bytes, e.mtime_ns, e.device,"
            # The time is bound, because SQLite would look at its clock for every row.
            f" e.inode, {_IS_LIKELY_WANTED}, :now, :now "
            f"FROM {source.table} WHERE {source.these} "
            "ON CONFLICT (library_id, rel_path) DO UPDATE SET"
            f" content_hash = CASE WHEN {_SAME} THEN library_files.content_hash END,"
            f" hash_algorithm = CASE WHEN {_SAME} THEN library_files.hash_algorithm END,"
            f" prefix_hash = CASE WHEN {_SAME} THEN library_files.prefix_hash END,"
            " media_type = excluded.media_type, size_bytes = excluded.size_bytes,"
            " mtime_ns = excluded.mtime_ns, device = excluded.device, inode = excluded.inode,"
            " is_missing = false, needs_hash = false,"
            # What a verify job said of the content is as true as its hash.
            f" error_code = CASE WHEN {_SAME} AND library_files.content_hash IS NOT NULL"
            " THEN library_files.error_code END,"
            f" error_message = CASE WHEN {_SAME} AND library_files.content_hash IS NOT NULL"
            " THEN library_files.error_message END,"
            " updated_at = excluded.updated_at",
        ),
        bound,
    )


def _drop_second_hashes(conn: Connection, source: _Source, bound: dict[str, Any]) -> None:
    """Leave the hash to the first of the names of a file that came back together.

    PostgreSQL enters each as if the others were still away.
    """
    # Not EXISTS: PostgreSQL might read all files to answer it.
    names = _HASHED_NAMES.format(file="f", other="o.id < f.id")
    query = prepared(
        conn,
        f"SELECT f.id FROM {source.table}"
        " JOIN library_files f ON f.library_id = :library AND f.rel_path = e.rel_path"
        f" WHERE {source.these} AND f.content_hash IS NOT NULL"
        f" AND ({names} LIMIT 1) IS NOT NULL",
    )
    second = list(conn.scalars(query, bound))
    if second:
        drop_hashes(conn, second)


def absorb_missing(conn: Connection, session: Row, upto: int) -> None:
    """Mark the files of a chunk as missing; they keep their hash in case they come back."""
    lock(conn, DUPLICATES)
    moves.follow_missing(conn, session, upto)
    bound = _bound(conn, session, upto, ScanChange.MISSING)
    touched = _hashes(conn, _ENTRIES, bound)
    conn.execute(
        prepared(
            conn,
            "UPDATE library_files SET is_missing = true, needs_hash = false, error_code = NULL,"
            " error_message = NULL, updated_at = {now} "
            "WHERE library_id = :library AND rel_path IN"
            f" (SELECT e.rel_path FROM {_ENTRIES.table} WHERE {_ENTRIES.these})",
        ),
        bound,
    )
    summarise(conn, touched)
    _forget(conn, bound)


def has_present_files(conn: Connection, library_id: str) -> bool:
    """Tell whether the library is known to hold any file."""
    query = prepared(
        conn,
        "SELECT 1 FROM library_files WHERE library_id = :library AND NOT is_missing LIMIT 1",
    )
    return conn.execute(query, {"library": library_id}).first() is not None


def count_present(conn: Connection, library_id: str) -> int:
    """Count the files that the library is known to hold."""
    query = "SELECT count(*) FROM library_files WHERE library_id = :library AND NOT is_missing"
    return int(conn.execute(prepared(conn, query), {"library": library_id}).scalar_one())


def count_as_known(conn: Connection, session: Row) -> int:
    """Count the files of a report, none of it taken over yet, that have a known size and time.

    Device and inode are left out: on some file systems both change with every mount.
    """
    query = prepared(
        conn,
        f"SELECT count(*) FROM {_ENTRIES.table} JOIN library_files f"
        " ON f.library_id = :library AND f.rel_path = e.rel_path"
        " WHERE e.session_id = :session AND e.change = :change AND NOT f.is_missing"
        " AND f.size_bytes = e.size_bytes AND f.mtime_ns = e.mtime_ns",
    )
    bound = {
        "library": session["library_id"],
        "session": session["id"],
        "change": ScanChange.SEEN,
    }
    unchanged = session["seen_files"] - session["new_files"] - session["changed_files"]
    return int(unchanged + conn.execute(query, bound).scalar_one())


def close(
    conn: Connection, session: Row, status: ScanSessionStatus, error: tuple[str, str] | None
) -> None:
    """End a session, and throw away whatever of its report was not taken over."""
    code, message = error or (None, None)
    bound = {"session": session["id"], "library": session["library_id"]}
    # Older ones too: whatever a worker staged after it had lost its scan is nobody's.
    for table in ("scan_entries", "scan_batches"):
        conn.execute(prepared(conn, f"DELETE FROM {table} WHERE session_id <= :session"), bound)
    conn.execute(
        prepared(
            conn,
            "UPDATE scan_sessions SET status = :status, finished_at = {now}, error_code = :code,"
            " error_message = :message WHERE id = :session",
        ),
        bound | {"status": status, "code": code, "message": message},
    )
    if status is ScanSessionStatus.SUCCEEDED:
        conn.execute(
            prepared(
                conn,
                "DELETE FROM scan_errors WHERE session_id IN"
                " (SELECT id FROM scan_sessions WHERE library_id = :library AND id < :session)",
            ),
            bound,
        )


def _add_assets(conn: Connection, source: _Source, bound: dict[str, Any]) -> None:
    conn.execute(
        prepared(
            conn,
            "INSERT INTO assets (library_id, rel_path, type, mtime, size, created_at, updated_at) "
            "SELECT :library, e.rel_path, e.media_type, e.mtime_ns / 1e9, e.size_bytes,"
            " :now, :now"
            f" FROM {source.table} WHERE {source.these}"
            " AND e.media_type IS NOT NULL "
            "ON CONFLICT (library_id, rel_path) DO NOTHING",
        ),
        bound,
    )


def _renew_assets(conn: Connection, source: _Source, bound: dict[str, Any]) -> None:
    """Have the assets of files that changed made anew."""
    # By the files of the chunk, whose order SQLite keeps: by the assets of the library it would
    # look through the chunk for each of them.
    changed = (
        f"id IN (SELECT a.id FROM {source.table} CROSS JOIN assets a WHERE {source.these}"
        " AND a.library_id = :library AND a.rel_path = e.rel_path"
        " AND (e.size_bytes <> a.size OR e.mtime_ns / 1e9 <> a.mtime"
        # It was looked for while it was away.
        " OR a.error_code = 'not_found'))"
    )
    gate.take_all(conn, ASSETS, "rediscover", changed, bound)
    conn.execute(
        prepared(
            conn,
            "UPDATE assets SET mtime = e.mtime_ns / 1e9, size = e.size_bytes"
            f" FROM {source.table} WHERE {source.these} AND assets.library_id = :library"
            # One that is worked on too: its worker finds out at the end, and puts it back.
            " AND assets.rel_path = e.rel_path",
        ),
        bound,
    )


def _bound(conn: Connection, session: Row, upto: int, change: ScanChange) -> dict[str, Any]:
    return {
        "now": database_time(conn),
        "session": session["id"],
        "library": session["library_id"],
        "tenant": session["tenant_id"],
        "upto": upto,
        "change": change,
    }


def _hashes(conn: Connection, source: _Source, bound: dict[str, Any]) -> list[tuple[str, bytes]]:
    """Return the hashes whose groups the chunk may change."""
    query = prepared(
        conn,
        f"SELECT DISTINCT f.hash_algorithm, f.content_hash FROM {source.table}"
        " JOIN library_files f ON f.library_id = :library AND f.rel_path = e.rel_path"
        f" WHERE {source.these} AND f.content_hash IS NOT NULL",
    )
    return [(algorithm, bytes(found)) for algorithm, found in conn.execute(query, bound)]


def _forget(conn: Connection, bound: dict[str, Any]) -> None:
    conn.execute(
        prepared(
            conn,
            "DELETE FROM scan_entries WHERE session_id = :session AND id <= :upto"
            " AND change = :change",
        ),
        bound,
    )
