"""Libraries and what is known of their scans."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, insert, literal_column, select, update
from sqlalchemy.exc import IntegrityError

from control_plane.store.sql import of_tenant, prepared
from mediaplane.protocol.clock import now_ms
from mediaplane.protocol.database import Topic, changed
from mediaplane.protocol.driver import Row
from mediaplane.protocol.tables import libraries

_SCAN_STATUS = (
    "coalesce((SELECT CASE WHEN j.status = 'running' THEN 'scanning' ELSE 'scan_req' END"
    " FROM jobs j WHERE j.library_id = libraries.slug AND lower(j.kind) IN ('scan', 'hash')"
    " AND lower(j.status) IN ('pending', 'running') AND j.kind = 'scan'), 'idle')"
)

# What workers read of a library is given up when one of these says so.
_STOPPING = ("is_active", "deleted_at")

# The status as it is now; the stored one follows with the next look of the recovery loop.
_COLUMNS = [
    *(column for column in libraries.columns if column.name != "scan_status"),
    literal_column(_SCAN_STATUS).label("scan_status"),
]


def add(conn: Connection, **columns: Any) -> Row | None:
    """Add a library; None when its slug is taken."""
    try:
        with conn.begin_nested():
            statement = insert(libraries).values(**columns).returning(libraries)
            return conn.execute(statement).mappings().one()
    except IntegrityError:
        return None


def get(conn: Connection, tenant_id: str | None, slug: str) -> Row | None:
    """Return a library, whether in the trash or not."""
    query = select(*_COLUMNS).where(libraries.c.slug == slug, *of_tenant(libraries, tenant_id))
    return conn.execute(query).mappings().first()


def page(
    conn: Connection, tenant_id: str | None, *, limit: int, after_slug: str, in_trash: bool
) -> list[Row]:
    """Return the libraries in the trash, or the others, by slug."""
    deleted_at = libraries.c.deleted_at
    query = (
        select(*_COLUMNS)
        .where(*of_tenant(libraries, tenant_id))
        .where(deleted_at.is_not(None) if in_trash else deleted_at.is_(None))
        .where(libraries.c.slug > after_slug)
        .order_by(libraries.c.slug)
        .limit(limit)
    )
    return list(conn.execute(query).mappings())


def roots(conn: Connection) -> list[Row]:
    """Return the root of every library that is not in the trash, whosever it is."""
    library = libraries.c
    query = select(library.slug, library.tenant_id, library.absolute_path)
    return list(conn.execute(query.where(library.deleted_at.is_(None))).mappings())


def change(conn: Connection, slug: str, columns: Mapping[str, Any]) -> Row:
    """Write columns of a library and return it."""
    if not columns.keys().isdisjoint(_STOPPING):
        changed(conn, Topic.ORDERS)
    statement = (
        update(libraries)
        .where(libraries.c.slug == slug)
        .values(**columns, updated_at=now_ms())
        .returning(libraries)
    )
    return conn.execute(statement).mappings().one()


def regroup_from(conn: Connection, slug: str, path: bytes | None) -> None:
    """Say from which path on the groups of a library's files are to be counted; None for none."""
    statement = update(libraries).where(libraries.c.slug == slug).values(regroup_from=path)
    conn.execute(statement)


def unsettled(conn: Connection) -> list[str]:
    """Return the libraries that have files whose groups are still to be counted anew."""
    query = select(libraries.c.slug).where(libraries.c.regroup_from.is_not(None))
    return list(conn.scalars(query.order_by(libraries.c.slug)))


def last_scans(conn: Connection, slugs: Sequence[str]) -> dict[str, Row]:
    """Return the latest scan of each of these libraries."""
    if not slugs:
        return {}
    query = prepared(
        conn,
        "SELECT s.* FROM libraries l JOIN scan_sessions s ON s.id ="
        " (SELECT id FROM scan_sessions WHERE library_id = l.slug ORDER BY id DESC LIMIT 1)"
        " WHERE l.slug IN :slugs",
        "slugs",
    )
    rows = conn.execute(query, {"slugs": list(slugs)}).mappings()
    return {row["library_id"]: row for row in rows}


def scan_errors_page(conn: Connection, slug: str, *, limit: int, after_id: int) -> list[Row]:
    """Return what the last good scan of a library could not look at."""
    query = prepared(
        conn,
        "SELECT * FROM scan_errors WHERE id > :after AND session_id ="
        " (SELECT id FROM scan_sessions WHERE library_id = :slug AND status = 'succeeded'"
        " ORDER BY id DESC LIMIT 1) ORDER BY id LIMIT :limit",
    )
    return list(conn.execute(query, {"slug": slug, "after": after_id, "limit": limit}).mappings())


def settle_scan_status(conn: Connection) -> None:
    """Let `scan_status` say what the active scan job does, and `idle` where there is none."""
    conn.execute(
        prepared(
            conn,
            f"UPDATE libraries SET scan_status = {_SCAN_STATUS}, updated_at = {{now}}"
            f" WHERE scan_status <> {_SCAN_STATUS}",
        )
    )
