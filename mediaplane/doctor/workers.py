"""The workers as the database knows them: who has fallen silent, and whom nothing confines."""

from collections.abc import Iterator

from sqlalchemy import Connection, func, select

from mediaplane.doctor.finding import Finding, ok, warning
from mediaplane.protocol.clock import database_time
from mediaplane.protocol.tables import jobs, worker_status
from mediaplane.protocol.values import JobStatus, WorkerState

# A worker says every 15 seconds that it is there.
_SILENT_MS = 45_000
_CONFINEMENTS = ("landlock", "seccomp")


def look(conn: Connection) -> Iterator[Finding]:
    """Look at the workers that have not said goodbye."""
    check = "workers"
    columns = worker_status.c
    query = select(columns.worker_id, columns.last_seen_at, columns.stats)
    query = query.where(columns.state != WorkerState.OFFLINE).order_by(columns.worker_id)
    now = database_time(conn)
    silent = present = 0
    for row in conn.execute(query):
        silent_ms = now - row.last_seen_at
        if silent_ms > _SILENT_MS:
            silent += 1
            yield warning(
                check,
                f"{row.worker_id} has not been heard of for {silent_ms // 1000} s.",
                "Look whether its process lives and reaches the database; if it is gone for good,"
                " its work goes to others when its leases lapse.",
            )
            continue
        present += 1
        yield from _look_at_confinement(row.worker_id, row.stats.get("sandboxes", ()))
    is_pending = jobs.c.status == JobStatus.PENDING
    waiting = conn.scalar(select(func.count()).select_from(jobs).where(is_pending)) or 0
    if waiting and not present:
        advice = "Start one: mediaplane data-plane"
        yield warning(check, f"{waiting} jobs wait, and no worker is there.", advice)
    elif not silent:
        yield ok(check, f"{present} workers are there, and none has fallen silent.")


def _look_at_confinement(worker_id: str, levels: list[str]) -> Iterator[Finding]:
    for level in levels:
        missing = [name for name in _CONFINEMENTS if name not in level.split("+")]
        if missing:
            yield warning(
                "sandbox",
                f"Decoders of {worker_id} run without {' and '.join(missing)}.",
                "Use a kernel that has it, and a container that allows it.",
            )
