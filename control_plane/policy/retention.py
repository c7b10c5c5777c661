"""Decides how long the history is kept, and forgets the rest in small bites."""

from sqlalchemy import Connection

from control_plane.store import audit, checkpoints, retention
from mediaplane.protocol.database import Database

_DAY_MS = 24 * 3600 * 1000
# Rows per transaction: others get their turn in between.
_CHUNK = 200


def forget(conn: Connection, days: float) -> bool:
    """Forget a bite of what ended longer ago than this; tell whether there may be more."""
    if days <= 0:
        return False
    age_ms = int(days * _DAY_MS)
    ids = retention.ended_jobs(conn, age_ms, _CHUNK)
    if ids:
        retention.delete_jobs(conn, ids)
    old = checkpoints.ended(conn, age_ms, _CHUNK)
    checkpoints.delete(conn, old)
    cleanups = retention.delete_cleanups(conn, age_ms, _CHUNK)
    return _CHUNK in (len(ids), len(old), cleanups)


def forget_calls(database: Database, days: float) -> bool:
    """Forget a bite of the audit log that is older than this; tell whether there may be more."""
    if days <= 0:
        return False
    with database.write() as conn:
        return audit.delete_old(conn, int(days * _DAY_MS), _CHUNK) == _CHUNK
