"""Figures about the whole installation, or about one tenant."""

from typing import Any

from sqlalchemy import Connection

from control_plane.store.sql import owned, prepared
from mediaplane.protocol.driver import Row
from mediaplane.protocol.duplicates import COUNTED, IS_BEHIND


def groups(conn: Connection, tenant_id: str | None) -> Row:
    """Return the totals of the duplicate groups of a tenant, or of all."""
    # While groups are counted anew, by the files themselves.
    behind = conn.execute(prepared(conn, f"SELECT {IS_BEHIND}")).scalar()
    source = f"({COUNTED.format(these='true')})" if behind else "duplicate_groups"
    query = prepared(
        conn,
        "SELECT count(*) AS groups, coalesce(sum(file_count), 0) AS grouped_files,"
        " coalesce(sum(file_count - 1), 0) AS duplicate_files,"
        " coalesce(sum(reclaimable_bytes), 0) AS reclaimable_bytes"
        f" FROM {source} g"
        f" WHERE true{owned('g', tenant_id)}",
    )
    return conn.execute(query, {"tenant": tenant_id}).mappings().one()


def libraries(conn: Connection, tenant_id: str | None) -> list[Row]:
    """Return per library what its last good scan saw, and how many names have an error now."""
    query = prepared(
        conn,
        "SELECT l.slug, coalesce(s.seen_files, 0) AS files, coalesce(s.seen_bytes, 0) AS bytes,"
        " (SELECT count(*) FROM library_files f WHERE f.library_id = l.slug"
        "  AND f.error_code IS NOT NULL)"
        " + (SELECT count(*) FROM scan_errors e WHERE e.session_id = s.id) AS errors"
        " FROM libraries l LEFT JOIN scan_sessions s ON s.id ="
        " (SELECT id FROM scan_sessions WHERE library_id = l.slug AND status = 'succeeded'"
        "  ORDER BY id DESC LIMIT 1)"
        f" WHERE l.deleted_at IS NULL{owned('l', tenant_id)} ORDER BY l.slug",
    )
    return list(conn.execute(query, {"tenant": tenant_id}).mappings())


def database(conn: Connection) -> dict[str, Any]:
    """Return the server's version, the schema's revision and the size in bytes."""
    if conn.dialect.name == "postgresql":
        version = "SHOW server_version"
        size = "SELECT pg_database_size(current_database())"
    else:
        version = "SELECT sqlite_version()"
        size = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    revision = conn.execute(prepared(conn, "SELECT version_num FROM alembic_version")).scalar()
    return {
        "server_version": str(conn.execute(prepared(conn, version)).scalar()),
        "schema_revision": str(revision),
        "size_bytes": int(conn.execute(prepared(conn, size)).scalar() or 0),
    }
