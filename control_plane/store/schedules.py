"""Schedules: what is to be done when, and how far each run is."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from control_plane.store.sql import of_tenant, prepared
from mediaplane.protocol.clock import now_ms
from mediaplane.protocol.driver import Row
from mediaplane.protocol.machines import JOBS
from mediaplane.protocol.tables import libraries, schedules

_OPEN = ", ".join(f"'{status}'" for status in JOBS.statuses if status not in JOBS.final)


def add(conn: Connection, **columns: Any) -> Row | None:
    """Add a schedule; None when its name is taken."""
    try:
        with conn.begin_nested():
            statement = insert(schedules).values(**columns).returning(schedules)
            return conn.execute(statement).mappings().one()
    except IntegrityError:
        return None


def get(conn: Connection, tenant_id: str | None, name: str) -> Row | None:
    """Return a schedule."""
    query = select(schedules).where(schedules.c.name == name, *of_tenant(schedules, tenant_id))
    return conn.execute(query).mappings().first()


def take(conn: Connection, name: str) -> Row | None:
    """Return a schedule that nobody else touches until the transaction ends; None if one does."""
    # A write transaction of SQLite is alone already.
    query = select(schedules).where(schedules.c.name == name).with_for_update(skip_locked=True)
    return conn.execute(query).mappings().first()


def page(conn: Connection, tenant_id: str | None, *, limit: int, after_name: str) -> list[Row]:
    """Return schedules by name."""
    query = (
        select(schedules)
        .where(schedules.c.name > after_name, *of_tenant(schedules, tenant_id))
        .order_by(schedules.c.name)
        .limit(limit)
    )
    return list(conn.execute(query).mappings())


def change(conn: Connection, name: str, columns: Mapping[str, Any]) -> Row | None:
    """Write columns of a schedule and return it; None when it does not exist."""
    statement = (
        update(schedules)
        .where(schedules.c.name == name)
        .values(**columns, updated_at=now_ms())
        .returning(schedules)
    )
    return conn.execute(statement).mappings().first()


def remove(conn: Connection, name: str) -> None:
    """Remove a schedule."""
    conn.execute(delete(schedules).where(schedules.c.name == name))


def waiting(conn: Connection) -> list[str]:
    """Return the schedules that are due, and those whose run can go on: their job has ended."""
    query = prepared(
        conn,
        "SELECT name FROM schedules WHERE next_run_at <= {now}"
        " UNION SELECT name FROM schedules WHERE last_outcome = 'running' AND NOT EXISTS"
        " (SELECT 1 FROM jobs WHERE jobs.id = schedules.last_job_id"
        f" AND jobs.status IN ({_OPEN}))",
    )
    return list(conn.scalars(query))


def figures(conn: Connection) -> list[Row]:
    """Return, by action, the earliest time that is due, the latest run, and how many failed."""
    query = prepared(
        conn,
        "SELECT action, min(next_run_at) AS next_run_at, max(last_run_at) AS last_run_at,"
        " count(CASE WHEN last_outcome = 'failed' THEN 1 END) AS failed"
        " FROM schedules WHERE is_enabled GROUP BY action",
    )
    return list(conn.execute(query).mappings())


def next_library(conn: Connection, tenant_id: str, after_slug: str) -> str | None:
    """Return the next library of a tenant by slug that takes part in work."""
    query = (
        select(libraries.c.slug)
        .where(libraries.c.slug > after_slug, libraries.c.tenant_id == tenant_id)
        .where(libraries.c.is_active, libraries.c.deleted_at.is_(None))
        .order_by(libraries.c.slug)
        .limit(1)
    )
    return conn.execute(query).scalar()
