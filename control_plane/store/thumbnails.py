"""Thumbnails that were asked for, and the clean-ups of their groups."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import TypeAlias

from sqlalchemy import Connection

from control_plane.store.sql import owned, prepared
from mediaplane.protocol import audit, gate
from mediaplane.protocol.clock import NOW_SQL
from mediaplane.protocol.database import Topic, changed, lock
from mediaplane.protocol.driver import Row, query_directly, query_values
from mediaplane.protocol.machines import THUMBNAILS
from mediaplane.protocol.statements import among, id_list
from mediaplane.protocol.tables import thumbnail_cleanup_jobs
from mediaplane.protocol.values import ThumbnailStatus
from mediaplane.protocol.versions import VERSION_SQL, version_of

# Held by who adds to what waits: two that fit one by one may not fit together.
QUEUE = "thumbnails"
_CLEANUPS = "thumbnail_cleanups"
# Thumbnails per transaction of a search for outdated ones: others get their turn in between.
_LOOKED_AT = 250
# The lowest id that waits: of those behind each media type the first, which only the index of
# claims has at hand. Asked for one type alone, PostgreSQL may look through all ids from the first.
_LOWEST = (
    "(SELECT min((SELECT t.id FROM thumbnails t WHERE t.status = 'pending'"
    " AND t.media_type >= line.type ORDER BY t.media_type, t.id LIMIT 1))"
    " FROM (SELECT 'image' AS type UNION ALL SELECT 'video') AS line)"
)
# What waits fits with so many more. Where even all ids from the lowest that waits would fit,
# nothing is counted, which took as long for 1,600 as all else. If not, they are, no further
# than it matters and by the index, whose order is asked for because PostgreSQL would rather read
# the whole table.
FITS = (
    f"((SELECT max(id) FROM thumbnails) - {_LOWEST} + 1 + {{more}} <= :capacity"
    " OR (SELECT count(*) FROM (SELECT 1 FROM thumbnails WHERE status = 'pending'"
    " ORDER BY media_type, id LIMIT :capacity) AS waiting) + {more} <= :capacity)"
)
_SHOWN = (
    "SELECT t.*, f.library_id FROM thumbnails t JOIN library_files f ON f.id = t.file_id"
    " JOIN libraries l ON l.slug = f.library_id AND l.deleted_at IS NULL"
)


# What there is one thumbnail of, as long as the file is the same: its id, the size in pixels and
# the format. A plain tuple, because to name the three took six times as long.
Picture: TypeAlias = tuple[int, int, str]

# What is known of a new row without reading it back, which took as long as to write it.
NEW: Row = {"status": ThumbnailStatus.PENDING.value, "error_count": 0, "is_due": False}
_UNKNOWN = {"id": None, "is_due": False}
# What a new row has of its file, in the order in which `_add` reads it.
_handed_on = itemgetter("file_id", "group_key", "media_type", "file_version")
_OF_KNOWN = (
    "id", "is_due", "group_key", "status", "error_count", "created_at", "finished_at", "width",
    "height", "bytes_size", "retry_after", "error_code", "error_message",
)  # fmt: skip


def picture_of(row: Row) -> Picture:
    """Return which picture a thumbnail is of."""
    return row["file_id"], row["size_px"], row["format"]


def look(
    conn: Connection, tenant_id: str | None, pictures: Iterable[Picture]
) -> dict[Picture, Row]:
    """Return the file of each picture, with its thumbnail and whether that may be requeued.

    Left out are files that are missing or in a library of others or in the trash.
    """
    query = _look(conn.dialect.name, owned("l", tenant_id))
    found: dict[Picture, Row] = {}
    for (size_px, picture_format), of_files in _by_shape(pictures).items():
        shape = {"size_px": size_px, "format": picture_format}
        bound = {**shape, "wanted": json.dumps(list(of_files)), "tenant": tenant_id}
        for values in query_values(conn, query, bound):
            file_id, library_id, media_type, file_version, *known = values
            # By hand: to name the columns of what is not there took longer than to look for it.
            row = {
                "file_id": file_id,
                "library_id": library_id,
                "media_type": media_type,
                "file_version": file_version,
                **shape,
            }
            row |= _UNKNOWN if known[0] is None else zip(_OF_KNOWN, known, strict=True)
            found[of_files[file_id]] = row
    return found


def is_one_change(pictures: Mapping[Picture, Row]) -> bool:
    """Tell whether these thumbnails can be had by one statement that adds them."""
    return len({picture[1:] for picture in pictures}) == 1 and not any(
        row["id"] for row in pictures.values()
    )


def add(conn: Connection, found: Mapping[Picture, Row], capacity: int) -> dict[Picture, Row]:
    """Add thumbnails of pictures that were found to have none, each to its group, if all fit.

    The statement that adds decides: what others have added in the meantime takes no place. What
    was found of the files stands for them: to look each up again took a tenth of the time.
    """
    added: dict[Picture, Row] = {}
    for (size_px, picture_format), of_files in _by_shape(found).items():
        wanted = [_handed_on(found[picture]) for picture in of_files.values()]
        bound = {"size_px": size_px, "format": picture_format, "wanted": json.dumps(wanted)}
        rows = audit.change(conn, _add(conn.dialect.name), bound | {"capacity": capacity})
        for row_id, file_id, created_at in rows:
            picture = of_files[file_id]
            added[picture] = {**found[picture], **NEW, "id": row_id, "created_at": created_at}
    return added


def requeue(conn: Connection, ids: Sequence[int], capacity: int) -> dict[Picture, Row]:
    """Have failed thumbnails made again whose time has come, if all of them fit."""
    if not ids:
        return {}
    dialect = conn.dialect.name
    these = among("id", "ids", dialect)
    due = f"{these} AND status = 'failed' AND retry_after <= {NOW_SQL[dialect]}"
    fits = FITS.format(more=f"(SELECT count(*) FROM thumbnails WHERE {due})")
    bound = {"ids": id_list(ids, dialect), "capacity": capacity}
    rows = gate.take_all(conn, THUMBNAILS, "requeue", f"{these} AND {fits}", bound)
    return {picture_of(row): {**row, "is_due": False} for row in rows}


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


def _by_shape(pictures: Iterable[Picture]) -> dict[tuple[int, str], dict[int, Picture]]:
    """Return pictures by size and format, and by file: many are asked for in few of these."""
    shapes: dict[tuple[int, str], dict[int, Picture]] = {}
    for picture in pictures:
        file_id, size_px, picture_format = picture
        shapes.setdefault((size_px, picture_format), {})[file_id] = picture
    return shapes


# Each is looked up by itself: to compare with a list, either database would read whole tables.
# SQLite is kept to it by the order of the joins, PostgreSQL by offsets that it cannot look behind.
_WANTED = {
    "sqlite": (
        "(SELECT value AS file_id FROM json_each(:wanted)) AS wanted"
        " CROSS JOIN library_files f ON {file} CROSS JOIN libraries l ON {library}"
        " LEFT JOIN thumbnails t ON {thumbnail}"
    ),
    # Not of an array, whose length has PostgreSQL seek another plan for each execution.
    "postgresql": (
        "(SELECT CAST(value AS BIGINT) AS file_id"
        " FROM json_array_elements_text(CAST(:wanted AS JSON))) AS wanted"
        " CROSS JOIN LATERAL (SELECT f.library_id, f.media_type,"
        f" {VERSION_SQL['postgresql']} AS version"
        "  FROM library_files f JOIN libraries l ON {library} WHERE {file} OFFSET 0) AS f"
        " LEFT JOIN LATERAL (SELECT t.* FROM thumbnails t WHERE {thumbnail} OFFSET 0) AS t ON true"
    ),
}
_VERSION = {"sqlite": VERSION_SQL["sqlite"], "postgresql": "f.version"}
_FOUND = {
    "sqlite": "json_each(:wanted)",
    "postgresql": "jsonb_array_elements(CAST(:wanted AS JSONB)) AS found (value)",
}
_ALONE = {"sqlite": "", "postgresql": " OFFSET 0"}
_THUMBNAIL = (
    "t.file_id = wanted.file_id AND t.size_px = :size_px AND t.format = :format"
    " AND t.file_version = "
)


@lru_cache(maxsize=4)
def _look(dialect: str, is_owned: str) -> str:
    """Return the query for the files of the parameter `wanted`, each with its thumbnail if any."""
    is_due = f"t.status = 'failed' AND t.retry_after <= {NOW_SQL[dialect]}"
    known = (is_due if name == "is_due" else f"t.{name}" for name in _OF_KNOWN)
    wanted = _WANTED[dialect].format(
        file="f.id = wanted.file_id AND NOT f.is_missing",
        library=f"l.slug = f.library_id AND l.deleted_at IS NULL{is_owned}",
        thumbnail=_THUMBNAIL + _VERSION[dialect],
    )
    return (
        f"SELECT wanted.file_id, f.library_id, f.media_type, {_VERSION[dialect]},"
        f" {', '.join(known)} FROM {wanted}"
    )


@lru_cache(maxsize=2)
def _add(dialect: str) -> str:
    now = NOW_SQL[dialect]
    names = "file_id, group_key, media_type, file_version"
    return (
        f"WITH fresh AS (SELECT {names} FROM (SELECT CAST(value ->> 0 AS BIGINT) AS file_id,"
        "   value ->> 1 AS group_key, value ->> 2 AS media_type, value ->> 3 AS file_version"
        f"   FROM {_FOUND[dialect]}) AS wanted"
        "  WHERE NOT EXISTS (SELECT 1 FROM thumbnails t"
        f"  WHERE {_THUMBNAIL} wanted.file_version{_ALONE[dialect]}))"
        f" INSERT INTO thumbnails ({names}, size_px, format, created_at, updated_at)"
        f" SELECT {names}, :size_px, :format, {now}, {now} FROM fresh"
        f" WHERE {FITS.format(more='(SELECT count(*) FROM fresh)')}"
        " RETURNING id, file_id, created_at"
    )
