"""Decides how long the history is kept, and forgets the rest in small bites."""

from control_plane.store import retention
from mediaplane.protocol.database import Database, try_lock

_DAY_MS = 24 * 3600 * 1000
# Jobs per transaction: others get their turn in between.
_CHUNK = 200


def forget(database: Database, days: float) -> bool:
    """Forget a bite of the jobs that ended longer ago than this; tell whether there may be more."""
    if days <= 0:
        return False
    with database.read() as conn:
        ids = retention.ended_jobs(conn, int(days * _DAY_MS), _CHUNK)
    if not ids:
        return False
    with database.write() as conn:
        if try_lock(conn, "retention"):
            retention.delete_jobs(conn, ids)
    return len(ids) == _CHUNK
