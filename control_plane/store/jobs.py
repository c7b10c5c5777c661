"""Jobs, their items and their events."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, insert, select, tuple_, update
from sqlalchemy.engine import RowMapping
from sqlalchemy.exc import IntegrityError

from control_plane.store.sql import prepared
from mediaplane.protocol import gate
from mediaplane.protocol.machines import JOBS
from mediaplane.protocol.tables import events, job_items, jobs
from mediaplane.protocol.values import EventType


def add(conn: Connection, **columns: Any) -> RowMapping | None:
    """Add a job with its first event; None when a unique index refuses it."""
    try:
        with conn.begin_nested():
            row = conn.execute(insert(jobs).values(**columns).returning(jobs)).mappings().one()
    except IntegrityError:
        return None
    payload = {"kind": row["kind"], "library": row["library_id"]}
    gate.append_event(conn, row["id"], EventType.JOB_ADDED, payload)
    return row


def get(conn: Connection, job_id: int) -> RowMapping | None:
    """Return a job."""
    return conn.execute(select(jobs).where(jobs.c.id == job_id)).mappings().first()


def get_many(conn: Connection, job_ids: Sequence[int]) -> list[RowMapping]:
    """Return those of these jobs that exist."""
    query = select(jobs).where(jobs.c.id.in_(job_ids)).order_by(jobs.c.id)
    return list(conn.execute(query).mappings())


def by_request(conn: Connection, tenant_id: str, request_id: str) -> RowMapping | None:
    """Return the job that a request id created."""
    query = select(jobs).where(jobs.c.tenant_id == tenant_id, jobs.c.request_id == request_id)
    return conn.execute(query).mappings().first()


def active_campaign(conn: Connection) -> RowMapping | None:
    """Return the scan or hash job that is pending or running; there is at most one."""
    # Written as the index is, so that it is found through the index.
    query = prepared(
        conn,
        "SELECT * FROM jobs WHERE lower(status) IN ('pending', 'running')"
        " AND lower(kind) IN ('scan', 'hash')",
    )
    return conn.execute(query).mappings().first()


def page(
    conn: Connection,
    *,
    limit: int,
    before: RowMapping | None,
    statuses: Sequence[str],
    kinds: Sequence[str],
) -> list[RowMapping]:
    """Return jobs, newest first, from behind an anchor row."""
    query = select(jobs).order_by(jobs.c.created_at.desc(), jobs.c.id.desc()).limit(limit)
    if before is not None:
        # One comparison of both: with an OR, all pages before this one would be read again.
        behind = tuple_(jobs.c.created_at, jobs.c.id) < (before["created_at"], before["id"])
        query = query.where(behind)
    if statuses:
        query = query.where(jobs.c.status.in_(statuses))
    if kinds:
        query = query.where(jobs.c.kind.in_(kinds))
    return list(conn.execute(query).mappings())


def requeue(conn: Connection, step: str, job_id: int) -> bool | None:
    """Take a step back to pending; None when another scan or hash is active."""
    try:
        with conn.begin_nested():
            return gate.take(conn, JOBS, step, job_id)
    except IntegrityError:
        return None


def add_items(conn: Connection, items: Sequence[Mapping[str, Any]]) -> None:
    """Add the shards of a job."""
    if items:
        conn.execute(insert(job_items), list(items))


def set_totals(conn: Connection, job_id: int, *, total_items: int, total_bytes: int) -> RowMapping:
    """Write how much there is to do."""
    statement = (
        update(jobs)
        .where(jobs.c.id == job_id)
        .values(total_items=total_items, total_bytes=total_bytes)
        .returning(jobs)
    )
    return conn.execute(statement).mappings().one()


def items_page(conn: Connection, job_id: int, *, limit: int, after_id: int) -> list[RowMapping]:
    """Return the items of a job in the order they were made."""
    query = (
        select(job_items)
        .where(job_items.c.job_id == job_id, job_items.c.id > after_id)
        .order_by(job_items.c.id)
        .limit(limit)
    )
    return list(conn.execute(query).mappings())


def events_page(conn: Connection, job_id: int, *, limit: int, after_id: int) -> list[RowMapping]:
    """Return the history of a job, oldest first."""
    query = (
        select(events)
        .where(events.c.job_id == job_id, events.c.id > after_id)
        .order_by(events.c.id)
        .limit(limit)
    )
    return list(conn.execute(query).mappings())


def count_by_status(conn: Connection) -> dict[str, int]:
    """Return how many jobs stand in each status."""
    rows = conn.execute(prepared(conn, "SELECT status, count(*) AS jobs FROM jobs GROUP BY status"))
    return {row.status: row.jobs for row in rows}


def waiting_for_retry(conn: Connection) -> list[RowMapping]:
    """Return the jobs to be tried again."""
    # With the status written out: a partial index does not match a parameter.
    query = prepared(conn, "SELECT * FROM jobs WHERE status = 'retryable' ORDER BY id")
    return list(conn.execute(query.columns(*jobs.columns)).mappings())
