"""Thumbnails that were asked for, and the clean-ups of their groups."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import Connection

from control_plane.store.sql import owned, prepared
from mediaplane.protocol import gate
from mediaplane.protocol.clock import NOW_SQL
from mediaplane.protocol.database import Topic, changed, lock
from mediaplane.protocol.driver import Row, query_directly
from mediaplane.protocol.machines import THUMBNAILS
from mediaplane.protocol.statements import among, id_list, records, sql_type
from mediaplane.protocol.tables import thumbnail_cleanup_jobs, thumbnails
from mediaplane.protocol.values import ThumbnailStatus
from mediaplane.protocol.versions import version_of

_QUEUE = "thumbnails"
_CLEANUPS = "thumbnail_cleanups"
# Thumbnails per transaction of a search for outdated ones: others get their turn in between.
_LOOKED_AT = 1000
_COLUMNS = ("file_id", "file_version", "size_px", "format", "group_key", "media_type")
# What waits fits with so many more: counted no further than it matters, and by the index alone.
_FITS = (
    "(SELECT count(*) FROM (SELECT 1 FROM thumbnails WHERE status = 'pending' LIMIT :capacity)"
    " AS waiting) + {more} <= :capacity"
)
_SHOWN = (
    "SELECT t.*, f.library_id FROM thumbnails t JOIN library_files f ON f.id = t.file_id"
    " JOIN libraries l ON l.slug = f.library_id AND l.deleted_at IS NULL"
)


class Picture(NamedTuple):
    """What there is one thumbnail of."""

    file_id: int
    file_version: str
    size_px: int
    format: str


_NEW: dict[str, Any] = dict.fromkeys(thumbnails.columns.keys()) | {
    "status": ThumbnailStatus.PENDING.value,
    "error_count": 0,
    "is_due": False,
}
_SAME = " AND ".join(f"t.{name} = wanted.{name}" for name in Picture._fields)


def picture_of(row: Row) -> Picture:
    """Return which picture a thumbnail is of."""
    return Picture(row["file_id"], row["file_version"], row["size_px"], row["format"])


def files(conn: Connection, tenant_id: str | None, file_ids: Iterable[int]) -> dict[int, Row]:
    """Return those of these files that are there, in libraries that are not in the trash."""
    dialect = conn.dialect.name
    query = (
        "SELECT f.id, f.library_id, f.media_type, f.size_bytes, f.mtime_ns FROM library_files f"
        " JOIN libraries l ON l.slug = f.library_id AND l.deleted_at IS NULL"
        f" WHERE {among('f.id', 'ids', dialect)} AND NOT f.is_missing{owned('l', tenant_id)}"
    )
    bound = {"ids": id_list(file_ids, dialect), "tenant": tenant_id}
    rows = query_directly(conn, query, bound)
    return {row["id"]: row for row in rows}


def find(conn: Connection, pictures: Iterable[Picture]) -> dict[Picture, Row]:
    """Return the thumbnails that exist of these pictures, each with whether it may be requeued."""
    wanted = json.dumps([one._asdict() for one in pictures])
    rows = query_directly(conn, _find(conn.dialect.name), {"wanted": wanted})
    return {picture_of(row): row for row in rows}


def add(
    conn: Connection, wanted: Mapping[Picture, Mapping[str, Any]], capacity: int
) -> dict[Picture, Row]:
    """Add thumbnails of those pictures that have none, if all of them fit, and return them.

    One statement decides: what was added by others in the meantime takes no place.
    """
    if not wanted:
        return {}
    stored = {picture: picture._asdict() | dict(row) for picture, row in wanted.items()}
    bound = {"wanted": json.dumps([*stored.values()]), "capacity": capacity}
    added = query_directly(conn, _add(conn.dialect.name), bound)
    # The rest of a new row is known: to read it back took as long as to write it.
    return {(picture := picture_of(row)): _NEW | stored[picture] | dict(row) for row in added}


def requeue(conn: Connection, ids: Sequence[int], capacity: int) -> dict[Picture, Row]:
    """Have failed thumbnails made again whose time has come, if all of them fit."""
    if not ids:
        return {}
    dialect = conn.dialect.name
    these = among("id", "ids", dialect)
    due = f"{these} AND status = 'failed' AND retry_after <= {NOW_SQL[dialect]}"
    fits = _FITS.format(more=f"(SELECT count(*) FROM thumbnails WHERE {due})")
    bound = {"ids": id_list(ids, dialect), "capacity": capacity}
    rows = gate.take_all(conn, THUMBNAILS, "requeue", f"{these} AND {fits}", bound)
    return {picture_of(row): {**row, "is_due": False} for row in rows}


def lock_queue(conn: Connection) -> None:
    """Keep others from adding to what waits: two that fit one by one may not fit together."""
    lock(conn, _QUEUE)
    changed(conn, Topic.WORK)


def get(conn: Connection, tenant_id: str | None, thumbnail_id: int) -> Row | None:
    """Return a thumbnail of a file in a library that is not in the trash."""
    query = f"{_SHOWN} WHERE t.id = :id{owned('l', tenant_id)}"
    found = query_directly(conn, query, {"id": thumbnail_id, "tenant": tenant_id})
    return found[0] if found else None


def page(
    conn: Connection,
    tenant_id: str | None,
    *,
    file_id: int | None,
    group_key: str | None,
    limit: int,
    after_id: int,
) -> list[Row]:
    """Return the thumbnails of a file or of a group, oldest first."""
    chosen = "t.file_id = :file" if file_id is not None else "t.group_key = :group"
    bound = {"file": file_id, "group": group_key, "after": after_id, "limit": limit}
    bound["tenant"] = tenant_id
    query = (
        f"{_SHOWN} WHERE {chosen} AND t.id > :after{owned('l', tenant_id)}"
        " ORDER BY t.id LIMIT :limit"
    )
    return query_directly(conn, query, bound)


def schedule_cleanup(conn: Connection, tenant_id: str | None, group_key: str, delay_ms: int) -> Row:
    """Have a tenant's thumbnails of a group removed; one clean-up of these waits at a time."""
    lock(conn, _CLEANUPS)
    bound = {"tenant": tenant_id, "group": group_key, "delay": delay_ms}
    same_tenant = "tenant_id IS NULL" if tenant_id is None else "tenant_id = :tenant"
    returned = ", ".join(thumbnail_cleanup_jobs.columns.keys())
    update = prepared(
        conn,
        "UPDATE thumbnail_cleanup_jobs SET execute_after = {now} + :delay, updated_at = {now}"
        f" WHERE group_key = :group AND {same_tenant} AND status = 'pending' RETURNING {returned}",
    )
    insert = prepared(
        conn,
        "INSERT INTO thumbnail_cleanup_jobs"
        " (tenant_id, group_key, execute_after, created_at, updated_at)"
        f" VALUES (:tenant, :group, {{now}} + :delay, {{now}}, {{now}}) RETURNING {returned}",
    )
    # Two of a group can wait: one that was taken from a lost worker, and one scheduled since.
    waiting = conn.execute(update, bound).mappings().all()
    changed(conn, Topic.WORK)
    return waiting[0] if waiting else conn.execute(insert, bound).mappings().one()


def outdated_groups(conn: Connection, after_id: int) -> tuple[set[tuple[str, str]], int | None]:
    """Look at the next thumbnails by id; return the groups of those whose file is no longer so.

    Each with its tenant; and the last id that was looked at, None when there was none left.
    """
    query = (
        "SELECT t.id, t.group_key, t.file_version, f.is_missing, f.size_bytes, f.mtime_ns,"
        " l.tenant_id FROM thumbnails t JOIN library_files f ON f.id = t.file_id"
        " JOIN libraries l ON l.slug = f.library_id"
        " WHERE t.id > :after ORDER BY t.id LIMIT :limit"
    )
    rows = query_directly(conn, query, {"after": after_id, "limit": _LOOKED_AT})
    outdated = {
        (row["tenant_id"], row["group_key"])
        for row in rows
        if row["is_missing"]
        or row["file_version"] != version_of(row["size_bytes"], row["mtime_ns"])
    }
    return outdated, rows[-1]["id"] if rows else None


def cleanup(conn: Connection, tenant_id: str | None, cleanup_id: int) -> Row | None:
    """Return a clean-up."""
    query = prepared(
        conn,
        f"SELECT * FROM thumbnail_cleanup_jobs c WHERE id = :id{owned('c', tenant_id)}",
    )
    return conn.execute(query, {"id": cleanup_id, "tenant": tenant_id}).mappings().first()


# Each is looked up by itself: to compare with a list, either database would read all thumbnails.
# SQLite is kept to it by the order of the join, PostgreSQL by an offset that it cannot look behind.
_ONE_BY_ONE = " OFFSET 0"


@lru_cache(maxsize=2)
def _find(dialect: str) -> str:
    wanted = _wanted(Picture._fields, dialect)
    known = f"thumbnails t WHERE {_SAME}"
    if dialect == "postgresql":
        known = f"LATERAL (SELECT t.* FROM {known}{_ONE_BY_ONE}) AS t"
    return (
        f"SELECT t.*, t.status = 'failed' AND t.retry_after <= {NOW_SQL[dialect]} AS is_due"
        f" FROM {wanted} CROSS JOIN {known}"
    )


@lru_cache(maxsize=2)
def _add(dialect: str) -> str:
    now, names = NOW_SQL[dialect], ", ".join(_COLUMNS)
    one_by_one = _ONE_BY_ONE if dialect == "postgresql" else ""
    return (
        f"WITH fresh AS (SELECT {names} FROM {_wanted(_COLUMNS, dialect)} WHERE NOT EXISTS"
        f" (SELECT 1 FROM thumbnails t WHERE {_SAME}{one_by_one}))"
        f" INSERT INTO thumbnails ({names}, created_at, updated_at)"
        f" SELECT {names}, {now}, {now} FROM fresh"
        f" WHERE {_FITS.format(more='(SELECT count(*) FROM fresh)')}"
        " ON CONFLICT (file_id, file_version, size_px, format) DO NOTHING"
        f" RETURNING id, created_at, {', '.join(Picture._fields)}"
    )


def _wanted(columns: Sequence[str], dialect: str) -> str:
    return records("wanted", {name: sql_type(thumbnails, name) for name in columns}, dialect)
