"""Workers: who is there, what each is asked to do, and who has gone."""

from sqlalchemy import Connection, case, select, update

from control_plane.store.sql import prepared
from mediaplane.protocol.clock import now_ms
from mediaplane.protocol.database import Topic, changed
from mediaplane.protocol.driver import Row
from mediaplane.protocol.tables import worker_status
from mediaplane.protocol.values import WorkerCommand, WorkerState


def page(conn: Connection, *, limit: int, after_id: str) -> list[Row]:
    """Return the workers by id."""
    query = (
        select(worker_status)
        .where(worker_status.c.worker_id > after_id)
        .order_by(worker_status.c.worker_id)
        .limit(limit)
    )
    return list(conn.execute(query).mappings())


def exists(conn: Connection, worker_id: str) -> bool:
    """Tell whether a worker has ever reported and is not forgotten."""
    query = select(worker_status.c.worker_id).where(worker_status.c.worker_id == worker_id)
    return conn.execute(query).first() is not None


def command(conn: Connection, worker_id: str, wanted: WorkerCommand) -> Row | None:
    """Tell a worker what to do and return it; None when there is none that could hear it."""
    told_at = worker_status.c.commanded_at
    # Later than the last in any case: the worker knows a new command by its time alone.
    later = case((told_at >= now_ms(), told_at + 1), else_=now_ms())
    statement = (
        update(worker_status)
        .where(worker_status.c.worker_id == worker_id, worker_status.c.state != WorkerState.OFFLINE)
        .values(command=wanted, commanded_at=later)
        .returning(worker_status)
    )
    changed(conn, Topic.ORDERS)
    return conn.execute(statement).mappings().first()


def declare_offline(conn: Connection, silent_ms: int) -> None:
    """Say `offline` of the workers that have not been heard of for a while."""
    conn.execute(
        prepared(
            conn,
            "UPDATE worker_status SET state = 'offline'"
            " WHERE state <> 'offline' AND last_seen_at < {now} - :silent",
        ),
        {"silent": silent_ms},
    )


def forget_offline(conn: Connection, silent_ms: int) -> None:
    """Forget the workers that have been away for long; every start makes a new one."""
    conn.execute(
        prepared(
            conn,
            "DELETE FROM worker_status WHERE state = 'offline' AND last_seen_at < {now} - :silent",
        ),
        {"silent": silent_ms},
    )


def count_by_state(conn: Connection) -> dict[str, int]:
    """Return how many workers are in each state."""
    query = prepared(conn, "SELECT state, count(*) AS workers FROM worker_status GROUP BY state")
    return {row.state: row.workers for row in conn.execute(query)}
