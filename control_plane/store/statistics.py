"""Figures about the whole installation."""

from sqlalchemy import Connection

from control_plane.store.sql import prepared
from mediaplane.protocol.driver import Row


def groups(conn: Connection) -> Row:
    """Return the totals of all duplicate groups."""
    query = prepared(
        conn,
        "SELECT count(*) AS groups, coalesce(sum(file_count), 0) AS grouped_files,"
        " coalesce(sum(file_count - 1), 0) AS duplicate_files,"
        " coalesce(sum(reclaimable_bytes), 0) AS reclaimable_bytes FROM duplicate_groups",
    )
    return conn.execute(query).mappings().one()


def libraries(conn: Connection) -> list[Row]:
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
        " WHERE l.deleted_at IS NULL ORDER BY l.slug",
    )
    return list(conn.execute(query).mappings())


def database(conn: Connection) -> tuple[str, str, int]:
    """Return the server's version, the schema's revision and the size in bytes."""
    if conn.dialect.name == "postgresql":
        version = "SHOW server_version"
        size = "SELECT pg_database_size(current_database())"
    else:
        version = "SELECT sqlite_version()"
        size = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    revision = conn.execute(prepared(conn, "SELECT version_num FROM alembic_version")).scalar()
    return (
        str(conn.execute(prepared(conn, version)).scalar()),
        str(revision),
        int(conn.execute(prepared(conn, size)).scalar() or 0),
    )
