"""Decides what becomes of work whose worker is gone, and when it is tried again."""

from sqlalchemy import Connection
from sqlalchemy.engine import RowMapping

from control_plane.policy.backoff import Backoff
from control_plane.store import jobs, libraries, workers
from mediaplane.protocol import gate
from mediaplane.protocol.clock import database_time
from mediaplane.protocol.database import Database, try_lock
from mediaplane.protocol.lifecycle import Lease
from mediaplane.protocol.machines import JOB_ITEMS, JOBS, MACHINES
from mediaplane.protocol.values import Plane

_SILENT_MS = 60_000
_FORGOTTEN_MS = 24 * 3600 * 1000


def recover(database: Database, backoff: Backoff) -> None:
    """Take expired leases away, and move every waiting job that is due."""
    with database.write() as conn:
        if not try_lock(conn, "recovery"):
            return
        reap(conn, backoff)
        # One by one, so that each look is one partial index and never the whole history.
        for waiting in JOBS.step("drop_cancelled").sources:
            gate.take_all(conn, JOBS, "drop_cancelled", f"status = '{waiting}'")
        for job in jobs.waiting_for_retry(conn):
            _advance(conn, job, backoff)
        gate.take_all(
            conn,
            JOB_ITEMS,
            "cancel_waiting",
            "(SELECT j.status FROM jobs j WHERE j.id = job_items.job_id)"
            " IN ('cancelled', 'failed')",
        )
        libraries.settle_scan_status(conn)
        workers.declare_offline(conn, _SILENT_MS)
        workers.forget_offline(conn, _FORGOTTEN_MS)


def reap(conn: Connection, backoff: Backoff) -> None:
    """Take every expired lease away from its worker, on all machines."""
    due = database_time(conn) + int(backoff.delay(0) * 1000)
    for machine in MACHINES:
        for step in machine.steps:
            if step.plane is Plane.CONTROL and step.lease is Lease.REAP:
                delayed = {"retry_after": due} if "retry_after" in step.writes else {}
                gate.take_all(conn, machine, step.name, "true", None, **delayed)


def _advance(conn: Connection, job: RowMapping, backoff: Backoff) -> None:
    if gate.take(conn, JOBS, "exhaust", job["id"]):
        return
    due = database_time(conn) + int(backoff.delay(job["attempts"]) * 1000)
    if gate.take(conn, JOBS, "delay", job["id"], retry_after=due):
        return
    # While another scan or hash is active nothing happens: its turn comes after that one.
    jobs.requeue(conn, "requeue", job["id"])
