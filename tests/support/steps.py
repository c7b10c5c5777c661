"""Rows in every circumstance a step can meet, and one way to take any step."""

from contextlib import AbstractContextManager
from typing import Any

from sqlalchemy import Connection, select

from mediaplane.protocol import gate
from mediaplane.protocol.lifecycle import Lease, Machine, Step
from mediaplane.protocol.machines import JOBS
from mediaplane.protocol.tables import events
from mediaplane.protocol.values import JobStatus, Plane
from mediaplane.protocol.write_paths import WRITE_PATHS
from tests.support.databases import Databases
from tests.support.rows import FAR_AHEAD, LONG_AGO, Rows

WORKER = "worker-1"
OTHER_WORKER = "worker-2"
EPOCH = 3
LEASE_SECONDS = 60

HELD = {"worker_id": WORKER, "lease_epoch": EPOCH, "lease_expires_at": FAR_AHEAD}
EXPIRED = {"worker_id": OTHER_WORKER, "lease_epoch": EPOCH, "lease_expires_at": LONG_AGO}

Circumstances = list[dict[str, Any]]

# For each step with a due time or a condition: when it is legal, and when it is not.
CONDITIONS: dict[str, tuple[Circumstances, Circumstances]] = {
    "jobs.claim": ([{"cancel_requested_at": None}], [{"cancel_requested_at": LONG_AGO}]),
    "jobs.complete": (
        [{}, *({"item_status": s} for s in ("completed", "failed", "skipped", "cancelled"))],
        [{"item_status": "pending"}, {"item_status": "running"}],
    ),
    "jobs.delay": (
        [{"attempts": 3}],
        [{"retry_after": LONG_AGO}, {"attempts": 4}],
    ),
    "jobs.requeue": (
        [{"retry_after": LONG_AGO, "attempts": 3}],
        [
            {"retry_after": FAR_AHEAD},
            {"retry_after": None},
            {"retry_after": LONG_AGO, "attempts": 4},
            {"retry_after": LONG_AGO, "cancel_requested_at": LONG_AGO},
        ],
    ),
    "jobs.exhaust": ([{"attempts": 4}, {"attempts": 5}], [{"attempts": 3}]),
    "jobs.drop_cancelled": ([{"cancel_requested_at": LONG_AGO}], [{"cancel_requested_at": None}]),
    "job_items.claim": (
        [{"job_status": "running"}],
        [
            {"job_status": "running", "job_cancel_requested_at": LONG_AGO},
            *({"job_status": status} for status in JobStatus if status != "running"),
        ],
    ),
    "job_items.recover": ([{"lease_epoch": 4}], [{"lease_epoch": 5}]),
    "job_items.reap": ([{"lease_epoch": 4}], [{"lease_epoch": 5}]),
    "job_items.poison": ([{"lease_epoch": 5}], [{"lease_epoch": 4}]),
    "thumbnails.requeue": (
        [{"retry_after": LONG_AGO}],
        [{"retry_after": FAR_AHEAD}, {"retry_after": None}],
    ),
    "thumbnail_cleanup_jobs.claim": (
        [
            {"execute_after": LONG_AGO},
            {"thumbnail_status": "ready"},
            {"thumbnail_status": "failed"},
        ],
        [
            {"execute_after": FAR_AHEAD},
            {"thumbnail_status": "pending"},
            {"thumbnail_status": "running"},
        ],
    ),
    "wal_maintenance_jobs.claim": (
        [{"execute_after": LONG_AGO}, {"retry_after": LONG_AGO}],
        [{"execute_after": FAR_AHEAD}, {"retry_after": FAR_AHEAD}],
    ),
    **{
        f"assets.claim_{stage}": (
            [{"library": {}}],
            [{"library": {"is_active": False}}, {"library": {"deleted_at": LONG_AGO}}],
        )
        for stage in ("extract", "analyze")
    },
    **{
        f"assets.{step}_{stage}": ([{"retry_count": 5}], [{"retry_count": 6}])
        for step in ("recover", "reap")
        for stage in ("extract", "analyze")
    },
    **{
        f"assets.{step}_{stage}": ([{"retry_count": 6}], [{"retry_count": 5}])
        for step in ("poison", "give_up")
        for stage in ("extract", "analyze")
    },
}


def write(database: Databases, plane: Plane) -> AbstractContextManager[Connection]:
    """A write transaction of a plane, for whatever it may write at all."""
    return database.data.write(*WRITE_PATHS) if plane is Plane.DATA else database.control.write()


def history_of(conn: Connection, job_id: int) -> list[tuple[str, dict[str, Any]]]:
    """The events of a job in their order: type and payload."""
    query = select(events.c.type, events.c.payload).where(events.c.job_id == job_id)
    return [(row.type, row.payload) for row in conn.execute(query.order_by(events.c.id))]


def favourable(machine: Machine, step: Step) -> dict[str, Any]:
    """The columns with which a step is legal, as far as it does not depend on the status."""
    lease: dict[str, Any] = {"lease_epoch": EPOCH}
    if step.lease in (Lease.KEEP, Lease.DROP):
        lease = HELD
    elif step.lease is Lease.REAP:
        lease = EXPIRED
    elif step.lease is Lease.REVOKE:
        # What either plane can end: the job that it works on, the job that waits.
        lease = {"job_status": "running" if step.plane is Plane.DATA else "retryable"}
    legal, _illegal = CONDITIONS.get(f"{machine.name}.{step.name}", ([{}], []))
    return lease | legal[0]


def add_row(rows: Rows, machine: Machine, **columns: Any) -> int:
    """Insert a row of a machine, in surroundings that a few words beside the columns describe."""
    job_status = columns.pop("job_status", None)
    if job_status:
        job = HELD if job_status == "running" else {}
        job = job | {"cancel_requested_at": columns.pop("job_cancel_requested_at", None)}
        columns["job_id"] = rows.add("jobs", status=job_status, total_items=1, **job)
    library = columns.pop("library", None)
    if library:
        columns["library_id"] = rows.add("libraries", **library)
    thumbnail_status = columns.pop("thumbnail_status", None)
    item_status = columns.pop("item_status", None)
    if item_status:
        columns["total_items"] = 1
    row_id: int = rows.add(machine.name, **columns)
    if item_status:
        rows.add("job_items", job_id=row_id, status=item_status)
    if thumbnail_status:
        group = rows.get(machine.name, row_id)["group_key"]
        rows.add("thumbnails", group_key=group, status=thumbnail_status)
    return row_id


def attempt(
    conn: Connection,
    machine: Machine,
    step: Step,
    row_id: int,
    lessee: gate.Lessee | None = None,
    values: dict[str, Any] | None = None,
) -> bool:
    """Take a step of one row in the way its lease asks for; tell whether it was taken."""
    given = values or {}
    match step.lease:
        case Lease.TAKE:
            claimed = gate.claim(
                conn, machine, step.name, WORKER, LEASE_SECONDS, 1, "id = :id", {"id": row_id}
            )
            return [row["id"] for row in claimed] == [row_id]
        case Lease.KEEP:
            lessee = lessee or gate.Lessee(row_id, WORKER, EPOCH)
            return gate.take(conn, machine, step.name, row_id, lessee, LEASE_SECONDS, **given)
        case Lease.DROP:
            lessee = lessee or gate.Lessee(row_id, WORKER, EPOCH)
            return gate.take(conn, machine, step.name, row_id, lessee, **given)
        case Lease.ABSENT | Lease.REAP:
            return gate.take(conn, machine, step.name, row_id, **given)
        case Lease.REVOKE:
            return _end_job_of(conn, machine, step, row_id)


def _end_job_of(conn: Connection, machine: Machine, step: Step, row_id: int) -> bool:
    """End the job of an item, which is how the gate comes to take this step of the item."""
    before = Rows(conn).get(machine.name, row_id)
    job_id = before["job_id"]
    if step.plane is Plane.DATA:
        assert gate.take(conn, JOBS, "cancel", job_id, gate.Lessee(job_id, WORKER, EPOCH))
    else:
        assert gate.take(conn, JOBS, "cancel_waiting", job_id)
    return bool(before["status"] != Rows(conn).get(machine.name, row_id)["status"])
