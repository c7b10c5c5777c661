"""What a worker writes, through the gate and with the rights of the data plane."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import select, update

from mediaplane.protocol import gate, packs, write_paths
from mediaplane.protocol.clock import now_ms
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Row
from mediaplane.protocol.gate import Lessee
from mediaplane.protocol.machines import JOBS
from mediaplane.protocol.tables import scan_sessions

WORKER = "worker-1"


def claim(data: Database, lease_seconds: float = 60) -> Row:
    """Become the owner of the best job."""
    with data.write(*write_paths.paths_of(JOBS, "claim")) as conn:
        (row,) = gate.claim(conn, JOBS, "claim", WORKER, lease_seconds, 1)
    return row


def finish(data: Database, job: Row, step: str = "complete", **values: Any) -> bool:
    """End a claimed job with a step of its owner."""
    lessee = Lessee(job["id"], WORKER, job["lease_epoch"])
    with data.write(*write_paths.paths_of(JOBS, step)) as conn:
        return gate.take(conn, JOBS, step, job["id"], lessee, **values)


def open_scan(data: Database, job: Row) -> int:
    """Open the scan session of a claimed job."""
    session = {
        "library_id": job["library_id"],
        "job_id": job["id"],
        "lease_epoch": job["lease_epoch"],
    }
    with data.write(write_paths.OPEN_SCAN) as conn:
        gate.add(conn, write_paths.OPEN_SCAN, [session])
        found = conn.execute(
            select(scan_sessions.c.id).where(
                scan_sessions.c.job_id == job["id"],
                scan_sessions.c.lease_epoch == job["lease_epoch"],
            )
        )
        return int(found.scalar_one())


def stage(data: Database, session_id: int, change: str, entries: Iterable[dict[str, Any]]) -> None:
    """Report files; what an entry leaves out is that of an ordinary file."""
    usual = {"media_type": None, "size_bytes": 10, "mtime_ns": 1, "device": 1, "inode": None}
    with data.write(write_paths.STAGE_ENTRIES) as conn:
        rows = [usual | {"session_id": session_id, "change": change} | entry for entry in entries]
        gate.add(conn, write_paths.STAGE_ENTRIES, rows)


def stage_new(data: Database, session_id: int, entries: Iterable[dict[str, Any]]) -> None:
    """Report new files, in one batch."""
    usual = {"media_type": None, "device": 1}
    files = [usual | entry for entry in entries]
    columns = ([file[name] for file in files] for name in packs.FIELDS)
    stage_packed(data, session_id, packs.pack(*columns))


def stage_packed(data: Database, session_id: int, packed: bytes) -> None:
    """Report a batch of new files as it is."""
    with data.write(write_paths.STAGE_BATCH) as conn:
        gate.add(conn, write_paths.STAGE_BATCH, [{"session_id": session_id, "files": packed}])


def began(data: Database, session_id: int, **columns: Any) -> None:
    """Report which root is being walked."""
    with data.write(write_paths.REPORT_SCAN) as conn:
        statement = update(scan_sessions).where(scan_sessions.c.id == session_id)
        conn.execute(statement.values(**({"root_device": 1, "root_inode": 1} | columns)))


def walked(data: Database, session_id: int, **columns: Any) -> None:
    """Report that the whole library was seen."""
    root = {"root_device": 1, "root_inode": 1, "seen_files": 1}
    with data.write(write_paths.REPORT_SCAN) as conn:
        statement = update(scan_sessions).where(scan_sessions.c.id == session_id)
        conn.execute(statement.values(**(root | columns), walked_at=now_ms()))
