"""Tells whether the folders of libraries were there, from the scans that looked for them."""

from sqlalchemy import Connection

from control_plane.store.sql import prepared

# A session can end before its job says why, and a job before its session is closed.
_IS_LOST = (
    "s.error_code IN ('root_changed', 'root_empty')"
    " OR j.error_code IN ('root_changed', 'root_empty', 'root_unavailable')"
)


def seen(conn: Connection, limit: int) -> dict[str, bool]:
    """Return of libraries, by slug, whether the last scan that can tell has seen the root.

    A scan that runs, was cancelled or failed for another reason tells nothing.
    """
    # BETWEEN for =, so that only the index by library has the order that is asked for: by id alone,
    # PostgreSQL may read the scans of all libraries to find that this one has none.
    query = prepared(
        conn,
        "SELECT l.slug, (SELECT s.status FROM scan_sessions s JOIN jobs j ON j.id = s.job_id"
        f"  WHERE s.library_id BETWEEN l.slug AND l.slug AND (s.status = 'succeeded' OR {_IS_LOST})"
        "  ORDER BY s.library_id, s.id DESC LIMIT 1) AS status"
        " FROM libraries l WHERE l.deleted_at IS NULL ORDER BY l.slug LIMIT :limit",
    )
    rows = conn.execute(query, {"limit": limit}).all()
    return {row.slug: row.status == "succeeded" for row in rows if row.status is not None}
