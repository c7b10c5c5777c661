"""What happened to jobs, in the order of ids, and how far that order is final."""

from collections.abc import Collection

from sqlalchemy import Connection, func, select

from control_plane.store.sql import prepared
from mediaplane.protocol.driver import Row
from mediaplane.protocol.tables import events, jobs

# Most events that one page of a tenant's looks at.
LOOK_EVENTS = 10_000


def page(
    conn: Connection,
    *,
    limit: int,
    after_id: int,
    until_id: int | None = None,
    job_ids: Collection[int] | None = None,
) -> list[Row]:
    """Return events of these jobs, or of all, oldest first."""
    query = select(events).where(events.c.id > after_id).order_by(events.c.id).limit(limit)
    if until_id is not None:
        query = query.where(events.c.id <= until_id)
    if job_ids is not None:
        query = query.where(events.c.job_id.in_(job_ids))
    return list(conn.execute(query).mappings())


def tenant_page(
    conn: Connection, tenant_id: str, *, limit: int, after_id: int, until_id: int
) -> tuple[list[Row], int]:
    """Return events of a tenant's jobs, oldest first, and the event up to which was looked.

    Events know their job alone: to look through those of others has an end after a while.
    """
    span = events.c.id > after_id, events.c.id <= until_id
    first_id = conn.execute(select(func.min(events.c.id)).where(*span)).scalar()
    looked_id = min(until_id, (first_id or until_id) + LOOK_EVENTS - 1)
    query = (
        select(events)
        .join(jobs, jobs.c.id == events.c.job_id)
        .where(events.c.id > after_id, events.c.id <= looked_id, jobs.c.tenant_id == tenant_id)
        .order_by(events.c.id)
        .limit(limit)
    )
    found: list[Row] = list(conn.execute(query).mappings())
    return found, found[-1]["id"] if len(found) == limit else looked_id


def last_id(conn: Connection, job_ids: Collection[int]) -> int:
    """Return the id of the last event of these jobs; 0 without any."""
    query = select(func.max(events.c.id)).where(events.c.job_id.in_(job_ids))
    return int(conn.execute(query).scalar() or 0)


def last_id_before_gap(conn: Connection, window: int) -> int:
    """Return the last id before the first one that is missing among the newest `window`."""
    newest = int(conn.execute(select(func.max(events.c.id))).scalar() or 0)
    if conn.dialect.name == "sqlite":
        return newest  # one writer at a time: what is missing stays missing
    query = prepared(
        conn,
        "SELECT min(id) FROM (SELECT id, lead(id) OVER (ORDER BY id) AS next_id FROM events"
        " WHERE id > :floor AND id <= :newest) AS pairs WHERE next_id > id + 1",
    )
    found = conn.execute(query, {"floor": newest - window, "newest": newest}).scalar()
    return newest if found is None else int(found)


def oldest_writer(conn: Connection) -> int:
    """Return the transaction id below which every transaction has ended (PostgreSQL)."""
    query = prepared(conn, "SELECT CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS text)"
                           " AS bigint)")  # fmt: skip
    return int(conn.execute(query).scalar_one())


def newest_writer(conn: Connection) -> int:
    """Return a transaction id above those of all who have written anything yet (PostgreSQL)."""
    # Its own id, just drawn: the xmax of a snapshot is only the first that has not ended yet.
    query = prepared(conn, "SELECT CAST(CAST(pg_current_xact_id() AS text) AS bigint)")
    return int(conn.execute(query).scalar_one())
