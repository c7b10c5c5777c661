"""Scans as the control plane meets them: a job, a session, and entries that a worker staged."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import select
from sqlalchemy.engine import RowMapping

from control_plane.policy import admission, discovery
from mediaplane.protocol.tables import library_files, scan_sessions
from mediaplane.protocol.values import JobKind
from tests.support.databases import Databases
from tests.support.worker import claim, finish, open_scan, stage, walked

Entries = Sequence[dict[str, Any]]


def begin(
    database: Databases, library: str = "photos", *, accept_new_root: bool = False
) -> tuple[RowMapping, int]:
    """Admit a scan, claim it and open its session."""
    with database.control.write() as conn:
        admission.create(conn, JobKind.SCAN, library, accept_new_root=accept_new_root)
    job = claim(database.data)
    return job, open_scan(database.data, job)


def absorb_all(database: Databases) -> None:
    while discovery.absorb(database.control):
        pass


def scan(
    database: Databases,
    *,
    library: str = "photos",
    seen: Entries = (),
    missing: Entries = (),
    accept_new_root: bool = False,
    **root: Any,
) -> RowMapping:
    """Let a whole scan happen, and return its session."""
    job, session = begin(database, library, accept_new_root=accept_new_root)
    if seen:
        stage(database.data, session, "seen", seen)
    if missing:
        stage(database.data, session, "missing", missing)
    walked(database.data, session, **root)
    absorb_all(database)
    row = session_row(database, session)
    if row["status"] == "succeeded":
        finish(database.data, job)
    else:
        reason = {"error_code": row["error_code"], "error_message": row["error_message"]}
        finish(database.data, job, "fail", **reason)
    return row


def session_row(database: Databases, session_id: int) -> RowMapping:
    with database.control.read() as conn:
        query = select(scan_sessions).where(scan_sessions.c.id == session_id)
        return conn.execute(query).mappings().one()


def files(database: Databases) -> dict[bytes, RowMapping]:
    """All files by path; of no use where two libraries have the same paths."""
    with database.control.read() as conn:
        return {row["rel_path"]: row for row in conn.execute(select(library_files)).mappings()}
