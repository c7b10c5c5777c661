"""Decides what becomes of work whose worker is gone, and when it is tried again."""

from sqlalchemy import Connection

from control_plane.policy.backoff import Backoff
from control_plane.store import jobs, libraries, workers
from mediaplane.protocol import gate
from mediaplane.protocol.clock import NOW_SQL, database_time
from mediaplane.protocol.database import Database, try_lock
from mediaplane.protocol.lifecycle import Lease, Machine
from mediaplane.protocol.machines import JOBS, MACHINES
from mediaplane.protocol.values import Plane

_SILENT_MS = 60_000
_FORGOTTEN_MS = 24 * 3600 * 1000
# Most jobs moved in one transaction, so that others get their turn.
_CHUNK = 500


def recover(database: Database, backoff: Backoff) -> None:
    """Take expired leases away, and move every waiting job that is due."""
    for machine in MACHINES:
        with database.write() as conn:
            if try_lock(conn, "recovery"):
                reap(conn, machine, backoff)
    with database.write() as conn:
        if try_lock(conn, "recovery"):
            _end_waiting(conn)
    while _move_waiting(database, backoff) == _CHUNK:
        pass
    with database.write() as conn:
        if try_lock(conn, "recovery"):
            libraries.settle_scan_status(conn)
            workers.declare_offline(conn, _SILENT_MS)
            workers.forget_offline(conn, _FORGOTTEN_MS)


def reap(conn: Connection, machine: Machine, backoff: Backoff) -> None:
    """Take every expired lease of a machine away from its worker."""
    due = database_time(conn) + int(backoff.delay(0) * 1000)
    for step in machine.steps:
        if step.plane is Plane.CONTROL and step.lease is Lease.REAP:
            delayed = {"retry_after": due} if "retry_after" in step.writes else {}
            gate.take_all(conn, machine, step.name, "true", None, **delayed)


def _end_waiting(conn: Connection) -> None:
    """End waiting jobs that nobody wants any more, and those tried often enough."""
    # One by one, so that each look is one partial index and never the whole history.
    for status in JOBS.step("drop_cancelled").sources:
        gate.take_all(conn, JOBS, "drop_cancelled", f"status = '{status}'")
    # Of those with a time too: who has set it may have allowed for more attempts.
    for waiting in ("retry_after IS NULL", f"retry_after <= {NOW_SQL[conn.dialect.name]}"):
        gate.take_all(conn, JOBS, "exhaust", waiting)


def _move_waiting(database: Database, backoff: Backoff) -> int:
    """Move up to a chunk of waiting jobs; return how many were due."""
    with database.write() as conn:
        if not try_lock(conn, "recovery"):
            return 0
        _delay(conn, backoff)
        campaign = jobs.due_campaign(conn)
        if campaign is not None and jobs.active_campaign(conn) is None:
            jobs.requeue(conn, "requeue", campaign)
        return jobs.requeue_due(conn, _CHUNK)


def _delay(conn: Connection, backoff: Backoff) -> None:
    """Say when each job that has just failed is tried again."""
    now = database_time(conn)
    for job in jobs.without_retry_time(conn, _CHUNK):
        due = now + int(backoff.delay(job["attempts"]) * 1000)
        gate.take(conn, JOBS, "delay", job["id"], retry_after=due)
