"""Jobs, their items and their events."""

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import lru_cache
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, insert, select, text, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.sql.elements import TextClause

from control_plane.store.sql import of_tenant, owned, prepared
from mediaplane import traces
from mediaplane.protocol import gate, history
from mediaplane.protocol.clock import NOW_SQL
from mediaplane.protocol.database import Topic, changed, channel
from mediaplane.protocol.driver import Row
from mediaplane.protocol.machines import JOBS
from mediaplane.protocol.statements import records, run, shaped, sql_type
from mediaplane.protocol.tables import IS_ACTIVE_VERIFY, job_items, jobs
from mediaplane.protocol.values import EventType

COLUMNS = tuple(jobs.columns.keys())

# Written as the index is, so that it is found through the index.
_IS_CAMPAIGN = "lower(status) IN ('pending', 'running') AND lower(kind) IN ('scan', 'hash')"


def add(conn: Connection, **columns: Any) -> Row | None:
    """Add a job that is not announced yet; None when a unique index refuses it."""
    try:
        with conn.begin_nested():
            statement = insert(jobs).values(trace_parent=traces.current(), **columns)
            return conn.execute(statement.returning(jobs)).mappings().one()
    except IntegrityError:
        return None


def add_many(
    conn: Connection, rows: Sequence[Mapping[str, Any]], *, shown: Sequence[str] = ("id",)
) -> list[Row] | None:
    """Add and announce jobs with the same columns; return them as asked, in their order.

    None when a unique index refuses one of them.
    """
    if not rows:
        return []
    trace_parent = traces.current()
    if trace_parent:
        rows = [{**row, "trace_parent": trace_parent} for row in rows]
    dialect = conn.dialect.name
    sorts = {(row["kind"], row.get("library_id")) for row in rows}
    statement = _add_many(tuple(rows[0]), tuple(shown), dialect, are_alike=len(sorts) == 1)
    bound = {"added": json.dumps(list(map(dict, rows)))}
    if dialect == "postgresql" and len(sorts) == 1:
        bound["alike"] = history.alike(*sorts.pop())
    # Only what has a request id can be refused.
    is_safe = not any(row.get("request_id") for row in rows)
    try:
        with nullcontext() if is_safe else conn.begin_nested():
            added = sorted(run(conn, statement, bound), key=itemgetter("id"))
    except IntegrityError:
        return None
    if dialect == "postgresql":
        changed(conn, Topic.NEWS)  # and the statement itself wakes the workers
    else:
        announce(conn, [row["id"] for row in added])
    return added


def announce(conn: Connection, job_ids: Sequence[int]) -> None:
    """Begin the history of new jobs and wake the workers."""
    history.append(conn, EventType.JOB_ADDED, job_ids)
    changed(conn, Topic.WORK)


@lru_cache(maxsize=16)
def _add_many(
    columns: tuple[str, ...], shown: tuple[str, ...], dialect: str, *, are_alike: bool
) -> TextClause:
    names, now = ", ".join(columns), NOW_SQL[dialect]
    told = history.of_added_jobs(are_alike=are_alike)
    returned = dict.fromkeys([*shown, *told.reads]) if dialect == "postgresql" else COLUMNS
    sql = (
        f"INSERT INTO jobs ({names}, created_at, updated_at) SELECT {names}, {now}, {now}"
        f" FROM {records('added', {name: sql_type(jobs, name) for name in columns}, dialect)}"
        f" RETURNING {', '.join(returned)}"
    )
    if dialect == "postgresql":
        # With the events in one statement, nothing is looked up twice; with the wake-up, a worker
        # hears of the job when its commit does.
        sql = (
            f"WITH moved AS ({sql}), told AS ({told.insert}) SELECT {', '.join(shown)}"
            f" FROM moved, (SELECT pg_notify('{channel(Topic.WORK)}', '')) AS rung"
        )
    return shaped(text(sql), jobs, COLUMNS, dialect)


def get(conn: Connection, tenant_id: str | None, job_id: int) -> Row | None:
    """Return a job."""
    found = get_many(conn, tenant_id, [job_id])
    return found[0] if found else None


def get_many(conn: Connection, tenant_id: str | None, job_ids: Sequence[int]) -> list[Row]:
    """Return those of these jobs that exist, by id."""
    query = select(jobs).where(jobs.c.id.in_(job_ids), *of_tenant(jobs, tenant_id))
    return list(conn.execute(query.order_by(jobs.c.id)).mappings())


def by_request(conn: Connection, tenant_id: str, request_id: str) -> Row | None:
    """Return the job that a request id created."""
    query = select(jobs).where(jobs.c.tenant_id == tenant_id, jobs.c.request_id == request_id)
    return conn.execute(query).mappings().first()


def by_requests(conn: Connection, tenant_id: str, request_ids: Sequence[str]) -> dict[str, Row]:
    """Return the jobs that these request ids created, each by its request id."""
    if not request_ids:
        return {}
    query = select(jobs).where(jobs.c.tenant_id == tenant_id, jobs.c.request_id.in_(request_ids))
    return {row["request_id"]: row for row in conn.execute(query).mappings()}


def active_campaign(conn: Connection) -> Row | None:
    """Return the scan or hash job that is pending or running; there is at most one."""
    query = prepared(conn, f"SELECT * FROM jobs WHERE {_IS_CAMPAIGN}")
    return conn.execute(query).mappings().first()


def requeue(conn: Connection, step: str, job_id: int) -> bool | None:
    """Take a step back to pending; None when another scan or hash is active."""
    try:
        with conn.begin_nested():
            return gate.take(conn, JOBS, step, job_id)
    except IntegrityError:
        return None


def unplanned(conn: Connection) -> list[Row]:
    """Return the jobs that wait for their plan."""
    # Each kind by its own index: of other jobs very many may wait.
    found: list[Row] = []
    for is_active in (f"{_IS_CAMPAIGN} AND kind = 'hash'", IS_ACTIVE_VERIFY):
        sql = f"SELECT * FROM jobs WHERE {is_active} AND status = 'pending' AND total_items IS NULL"
        found += conn.execute(prepared(conn, sql)).mappings()
    return found


def is_unplanned(conn: Connection, job_id: int) -> bool:
    """Tell whether a job still waits for its plan; until the transaction ends it does."""
    sql = "SELECT 1 FROM jobs WHERE id = :job AND status = 'pending' AND total_items IS NULL"
    if conn.dialect.name == "postgresql":
        sql += " FOR SHARE"
    return conn.execute(prepared(conn, sql), {"job": job_id}).first() is not None


def is_hash_planned(conn: Connection) -> bool:
    """Tell whether files that are marked will be hashed without another plan."""
    is_planned = "kind = 'hash' AND total_items IS NOT NULL"
    # Each by its own index: of other jobs very many may wait.
    query = prepared(
        conn,
        f"SELECT EXISTS (SELECT 1 FROM jobs WHERE {_IS_CAMPAIGN} AND {is_planned})"
        f" OR EXISTS (SELECT 1 FROM jobs WHERE status = 'retryable' AND {is_planned})",
    )
    return bool(conn.execute(query).scalar())


def last_id(conn: Connection) -> int:
    """Return the id of the newest job."""
    return int(conn.execute(prepared(conn, "SELECT coalesce(max(id), 0) FROM jobs")).scalar_one())


def has_hash_behind(conn: Connection, job_id: int) -> bool:
    """Tell whether a hash was admitted after a job."""
    query = prepared(conn, "SELECT 1 FROM jobs WHERE id > :job AND kind = 'hash' LIMIT 1")
    return conn.execute(query, {"job": job_id}).first() is not None


def add_items(conn: Connection, items: Sequence[Mapping[str, Any]]) -> None:
    """Add the shards of a job."""
    if items:
        conn.execute(insert(job_items), list(items))


def set_totals(conn: Connection, job_id: int, *, total_items: int, total_bytes: int) -> Row:
    """Write how much there is to do."""
    statement = (
        update(jobs)
        .where(jobs.c.id == job_id)
        .values(total_items=total_items, total_bytes=total_bytes)
        .returning(jobs)
    )
    return conn.execute(statement).mappings().one()


def items_page(conn: Connection, job_id: int, *, limit: int, after_id: int) -> list[Row]:
    """Return the items of a job in the order they were made."""
    query = (
        select(job_items)
        .where(job_items.c.job_id == job_id, job_items.c.id > after_id)
        .order_by(job_items.c.id)
        .limit(limit)
    )
    return list(conn.execute(query).mappings())


def count_by_status(conn: Connection, tenant_id: str | None) -> dict[str, int]:
    """Return how many jobs of a tenant, or of all, stand in each status."""
    query = prepared(
        conn,
        "SELECT status, count(*) AS jobs FROM jobs"
        f" WHERE true{owned('jobs', tenant_id)} GROUP BY status",
    )
    return {row.status: row.jobs for row in conn.execute(query, {"tenant": tenant_id})}


def without_retry_time(conn: Connection, limit: int) -> list[Row]:
    """Return jobs to be tried again of which nobody has said when."""
    # With the status written out: a partial index does not match a parameter.
    query = prepared(
        conn,
        "SELECT id, attempts FROM jobs WHERE status = 'retryable' AND retry_after IS NULL"
        " ORDER BY retry_after, id LIMIT :limit",
    )
    return list(conn.execute(query, {"limit": limit}).mappings())


def due_campaign(conn: Connection) -> int | None:
    """Return the scan or hash that is next to be tried again."""
    query = prepared(
        conn,
        "SELECT id FROM jobs WHERE status = 'retryable' AND retry_after <= {now}"
        " AND kind IN ('scan', 'hash') ORDER BY retry_after, id LIMIT 1",
    )
    found: int | None = conn.execute(query).scalar()
    return found


def requeue_due(conn: Connection, limit: int) -> int:
    """Put back jobs that are due, except scans and hashes; return how many."""
    due = (
        "id IN (SELECT d.id FROM jobs d WHERE d.status = 'retryable' AND d.retry_after <= {now}"
        " AND d.kind NOT IN ('scan', 'hash') ORDER BY d.retry_after, d.id LIMIT :limit)"
    )
    where = due.replace("{now}", NOW_SQL[conn.dialect.name])
    return len(gate.take_all(conn, JOBS, "requeue", where, {"limit": limit}))
