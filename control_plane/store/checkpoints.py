"""Checkpoints of SQLite's write-ahead log."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, insert, select

from control_plane.store.sql import prepared
from mediaplane.protocol.driver import Row
from mediaplane.protocol.tables import wal_maintenance_jobs as checkpoints

_OPEN = "status IN ('pending', 'running', 'retryable')"


def add(conn: Connection, **columns: Any) -> Row:
    """Add a checkpoint."""
    statement = insert(checkpoints).values(**columns).returning(checkpoints)
    return conn.execute(statement).mappings().one()


def get(conn: Connection, checkpoint_id: int) -> Row | None:
    """Return a checkpoint."""
    query = select(checkpoints).where(checkpoints.c.id == checkpoint_id)
    return conn.execute(query).mappings().first()


def by_request(conn: Connection, request_id: str) -> Row | None:
    """Return the checkpoint that a request id created."""
    query = select(checkpoints).where(checkpoints.c.request_id == request_id)
    return conn.execute(query).mappings().first()


def unfinished(conn: Connection) -> Row | None:
    """Return the checkpoint that has not ended; there is at most one."""
    query = prepared(conn, f"SELECT * FROM wal_maintenance_jobs WHERE {_OPEN}")
    return conn.execute(query).mappings().first()


def last_ended_at(conn: Connection) -> int:
    """Return when the newest checkpoint ended; 0 when there was none."""
    query = prepared(
        conn,
        "SELECT coalesce(finished_at, 0) FROM wal_maintenance_jobs ORDER BY id DESC LIMIT 1",
    )
    return int(conn.execute(query).scalar() or 0)


def page(conn: Connection, *, limit: int, before_id: int) -> list[Row]:
    """Return checkpoints, newest first, from behind one; 0: from the newest."""
    query = select(checkpoints).order_by(checkpoints.c.id.desc()).limit(limit)
    if before_id:
        query = query.where(checkpoints.c.id < before_id)
    return list(conn.execute(query).mappings())


def is_work_running(conn: Connection) -> bool:
    """Tell whether a worker is busy with a job."""
    query = prepared(conn, "SELECT 1 FROM jobs WHERE status = 'running' LIMIT 1")
    return conn.execute(query).first() is not None


def ended(conn: Connection, age_ms: int, limit: int) -> list[int]:
    """Return the oldest checkpoints that ended longer ago than this.

    There is one at a time, so they end in the order of their ids: behind the oldest few there is
    none that ended before them.
    """
    query = prepared(
        conn,
        "SELECT id FROM (SELECT * FROM wal_maintenance_jobs ORDER BY id LIMIT :limit) AS oldest"
        " WHERE status IN ('completed', 'failed') AND finished_at < {now} - :age ORDER BY id",
    )
    return list(conn.scalars(query, {"age": age_ms, "limit": limit}))


def delete(conn: Connection, ids: Sequence[int]) -> None:
    """Delete checkpoints."""
    conn.execute(checkpoints.delete().where(checkpoints.c.id.in_(ids)))
