"""Tells how much work waits and since when, by looks whose cost no history makes larger."""

from sqlalchemy import Connection

from control_plane.store.sql import prepared

# Where more rows stand than this, they are not counted to the end.
MAX_DEPTH = 100_000
# Priorities that are looked at, the most urgent first.
_MAX_LEVELS = 100

# The statuses in which a row waits or is worked on; each has a partial index of its own, which is
# used only where its condition stands in the query word for word.
_STATUSES = {
    "jobs": ("pending", "running", "retryable"),
    "job_items": ("pending", "running"),
    "thumbnails": ("pending", "running"),
    "thumbnail_cleanup_jobs": ("pending", "running"),
    "wal_maintenance_jobs": ("pending", "retryable", "running"),
    "assets": ("pending", "extracting"),
}
_SHARED_INDEX = {
    ("wal_maintenance_jobs", "pending"): "status IN ('pending', 'retryable') AND ",
    ("wal_maintenance_jobs", "retryable"): "status IN ('pending', 'retryable') AND ",
}

# Whoever is next in line speaks for those behind, so one row is read for each line. What waits
# does so since its row was last changed: that made it ready.
_READY_SINCE = {
    "jobs": (
        "WITH RECURSIVE levels (priority) AS ("
        "  SELECT (SELECT j.priority FROM jobs j WHERE j.status = 'pending'"
        "   ORDER BY j.priority DESC LIMIT 1)"
        "  UNION ALL SELECT (SELECT j.priority FROM jobs j WHERE j.status = 'pending'"
        "   AND j.priority < levels.priority ORDER BY j.priority DESC LIMIT 1)"
        "  FROM levels WHERE levels.priority IS NOT NULL)"
        " SELECT min((SELECT j.updated_at FROM jobs j WHERE j.status = 'pending'"
        "  AND j.priority = found.priority ORDER BY j.priority DESC, j.created_at, j.id LIMIT 1))"
        f" FROM (SELECT priority FROM levels LIMIT {_MAX_LEVELS}) AS found"
    ),
    "thumbnails": (
        "SELECT min((SELECT t.updated_at FROM thumbnails t WHERE t.status = 'pending'"
        # A range, so that only the index of claims has this order.
        "  AND t.media_type BETWEEN line.type AND line.type AND EXISTS"
        "   (SELECT 1 FROM library_files f"
        "   JOIN libraries l ON l.slug = f.library_id WHERE f.id = t.file_id"
        "   AND l.is_active AND l.deleted_at IS NULL)"
        "  ORDER BY t.media_type, t.id LIMIT 1))"
        " FROM (SELECT 'image' AS type UNION ALL SELECT 'video') AS line"
    ),
    "thumbnail_cleanup_jobs": (
        "SELECT min(execute_after) FROM thumbnail_cleanup_jobs WHERE status = 'pending'"
    ),
    "wal_maintenance_jobs": (
        "SELECT min(execute_after) FROM wal_maintenance_jobs"
        " WHERE status IN ('pending', 'retryable')"
    ),
    "assets": (
        "SELECT min((SELECT a.updated_at FROM assets a WHERE a.status = 'pending'"
        "  AND a.type = line.type AND a.library_id = l.slug"
        "  ORDER BY a.type, a.library_id, a.id LIMIT 1))"
        " FROM libraries l, (SELECT 'image' AS type UNION ALL SELECT 'video') AS line"
        " WHERE l.is_active AND l.deleted_at IS NULL"
    ),
}


def depths(conn: Connection) -> dict[tuple[str, ...], float]:
    """Return how many rows stand in each status of work, by machine and status."""
    return {
        (machine, status): _depth(conn, machine, status)
        for machine, statuses in _STATUSES.items()
        for status in statuses
    }


def ready_since(conn: Connection) -> dict[str, int | None]:
    """Return since when the longest waiting row of each machine could be claimed, if any waits."""
    return {
        machine: conn.execute(prepared(conn, query)).scalar()
        for machine, query in _READY_SINCE.items()
    }


def is_checkpoint_busy(conn: Connection) -> bool | None:
    """Tell whether the last checkpoint left something in the log; None when there was none."""
    query = prepared(
        conn,
        "SELECT checkpoint_busy, checkpoint_log_frames, checkpointed_frames"
        " FROM wal_maintenance_jobs WHERE checkpoint_busy IS NOT NULL ORDER BY id DESC LIMIT 1",
    )
    last = conn.execute(query).first()
    if last is None:
        return None
    # A reader may hold up a checkpoint that does not call itself busy.
    return bool(last.checkpoint_busy) or last.checkpointed_frames != last.checkpoint_log_frames


def _depth(conn: Connection, machine: str, status: str) -> int:
    condition = f"{_SHARED_INDEX.get((machine, status), '')}status = '{status}'"
    query = prepared(
        conn,
        f"SELECT count(*) FROM (SELECT 1 FROM {machine} WHERE {condition} LIMIT :most) AS found",
    )
    found: int = conn.execute(query, {"most": MAX_DEPTH}).scalar_one()
    return found
