"""Finds the sweep of the cache that is under way."""

from sqlalchemy import Connection

from control_plane.store.sql import prepared
from mediaplane.protocol.database import lock
from mediaplane.protocol.driver import Row

# One that waits for another try would be pending again beside any that was added meanwhile.
# Status by status, so that each look is at one partial index and never at the whole history.
_ACTIVE = " UNION ALL ".join(
    f"SELECT id, tenant_id, kind, status FROM jobs WHERE status = '{status}' AND kind = 'sweep'"
    for status in ("pending", "running", "retryable")
)


def active(conn: Connection) -> Row | None:
    """Return the sweep that has not ended; until the transaction ends nobody else adds one."""
    lock(conn, "sweep")
    return conn.execute(prepared(conn, _ACTIVE)).mappings().first()
