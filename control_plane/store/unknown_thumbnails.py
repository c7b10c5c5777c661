"""Thumbnails of pictures that nobody has asked for before: looked up and added in one trip."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from sqlalchemy import Connection

from control_plane.store.sql import owned
from control_plane.store.thumbnails import FITS, NEW, Picture
from mediaplane.protocol import audit
from mediaplane.protocol.clock import NOW_SQL
from mediaplane.protocol.driver import Row
from mediaplane.protocol.versions import VERSION_SQL

# On SQLite there are no trips to save, and who writes keeps others from it.
DIALECT = "postgresql"
_FIRST_IS_KNOWN = (
    "EXISTS (SELECT FROM thumbnails"
    " WHERE file_id = :first AND size_px = :size_px AND format = :format)"
)
# An array whose length PostgreSQL cannot see: it would seek another plan for each. Without the
# outer cast it would be a query to compare with.
_WANTED = "ANY (CAST((SELECT CAST(:wanted AS BIGINT[])) AS BIGINT[]))"


class Kind(NamedTuple):
    """What thumbnails of one request have in common."""

    library: str
    size_px: int
    format: str
    group_key: str  # empty: of each the name of the file


def add_unknown(
    conn: Connection, tenant_id: str | None, file_ids: Sequence[int], kind: Kind, capacity: int
) -> dict[Picture, Row]:
    """Add thumbnails of some files if none of these has one; return them, all or none.

    None as well when one of the files cannot be found or is no picture, and when not all fit: to
    find out which it is, is left to who looks. If the first has one, nobody waits for the lock.
    """
    bound = {
        **kind._asdict(),
        "wanted": f"{{{','.join(map(str, file_ids))}}}",
        "first": file_ids[0],
        "number": len(file_ids),
        "capacity": capacity,
        "tenant": tenant_id,
    }
    rows = audit.change(conn, _add(owned("l", tenant_id)), bound, unless=_FIRST_IS_KNOWN)
    alike = {**NEW, "library_id": kind.library, "size_px": kind.size_px, "format": kind.format}
    return {
        (file_id, kind.size_px, kind.format): {
            **alike,
            "id": row_id,
            "file_id": file_id,
            "group_key": group_key,
            "media_type": media_type,
            "file_version": file_version,
            "created_at": created_at,
        }
        for row_id, file_id, group_key, media_type, file_version, created_at in rows
    }


@lru_cache(maxsize=2)
def _add(is_owned: str) -> str:
    now, names = NOW_SQL[DIALECT], "file_id, group_key, media_type, file_version"
    return (
        "WITH fresh AS (SELECT f.id AS file_id, f.media_type,"
        f"  {VERSION_SQL[DIALECT]} AS file_version, COALESCE("
        "   NULLIF(:group_key, ''), 'libraries/' || f.library_id || '/files/' || f.id"
        "  ) AS group_key FROM library_files f"
        f" WHERE f.id = {_WANTED} AND f.library_id = :library AND NOT f.is_missing"
        "  AND f.media_type IS NOT NULL AND EXISTS (SELECT FROM libraries l"
        f"  WHERE l.slug = :library AND l.deleted_at IS NULL{is_owned})"
        f" AND NOT EXISTS (SELECT FROM thumbnails t WHERE t.file_id = {_WANTED}"
        "   AND t.size_px = :size_px AND t.format = :format))"
        f" INSERT INTO thumbnails ({names}, size_px, format, created_at, updated_at)"
        f" SELECT {names}, :size_px, :format, {now}, {now} FROM fresh"
        f" WHERE {audit.IS_HELD} AND (SELECT count(*) FROM fresh) = :number"
        f" AND {FITS.format(more=':number')}"
        f" RETURNING id, {names}, created_at"
    )
