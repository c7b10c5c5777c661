"""Decides which jobs come into being: at most one scan or hash at a time, each asked for once."""

from typing import Any

from sqlalchemy import Connection
from sqlalchemy.engine import RowMapping

from control_plane.policy import hashing
from control_plane.store import jobs, libraries
from mediaplane.errors import ActiveJobExists, FailedPrecondition, InvalidArgument, NotFound
from mediaplane.protocol import gate, kinds
from mediaplane.protocol.clock import database_time
from mediaplane.protocol.machines import JOBS
from mediaplane.protocol.values import DEFAULT_TENANT, JobKind, JobStatus

_MAX_REQUEST_ID = 128


def create(
    conn: Connection,
    kind: JobKind,
    library: str | None,
    *,
    priority: int = 0,
    max_attempts: int = 0,
    request_id: str | None = None,
    accept_new_root: bool = False,
) -> RowMapping:
    """Add a job of a kind; the same request id again returns the first job."""
    if request_id:
        _check_request_id(request_id)
        first = jobs.by_request(conn, DEFAULT_TENANT, request_id)
        if first is not None:
            return _same_request(first, kind, library)
    payload = _payload(conn, kind, library, accept_new_root=accept_new_root)
    columns: dict[str, Any] = {"priority": priority, "request_id": request_id or None}
    if max_attempts < 0:
        raise InvalidArgument(f"max_attempts is {max_attempts}; it must not be negative.")
    if max_attempts:
        columns["max_attempts"] = max_attempts
    return _add(conn, kind, library, payload, **columns)


def retry(conn: Connection, job_id: int) -> RowMapping:
    """Put a waiting job back at once, or run a job that has ended anew as another job."""
    job = jobs.get(conn, job_id)
    if job is None:
        raise NotFound(f"There is no job {job_id}.")
    match job["status"]:
        case JobStatus.RETRYABLE:
            _requeue(conn, job)
            return _known(conn, job_id)
        case JobStatus.FAILED | JobStatus.CANCELLED | JobStatus.SKIPPED:
            kind = JobKind(job["kind"])
            _check_kind(kind)
            _usable_library(conn, job["library_id"])
            return _add(conn, kind, job["library_id"], job["payload"],
                        priority=job["priority"], max_attempts=job["max_attempts"],
                        retry_of=job_id)  # fmt: skip
        case status:
            raise FailedPrecondition(
                f"Job {job_id} is {status}; only a job that failed, was cancelled or waits for"
                " another try can be retried."
            )


def cancel(conn: Connection, job_id: int) -> RowMapping:
    """End a waiting job at once, or ask the worker of a running one to stop."""
    job = jobs.get(conn, job_id)
    if job is None:
        raise NotFound(f"There is no job {job_id}.")
    asked = job["status"] == JobStatus.RUNNING and job["cancel_requested_at"] is not None
    if asked or job["status"] == JobStatus.CANCELLED:
        return job
    now = database_time(conn)
    if not (
        gate.take(conn, JOBS, "cancel_waiting", job_id, cancel_requested_at=now)
        or gate.take(conn, JOBS, "request_cancel", job_id, cancel_requested_at=now)
        # Once more: its worker may have put it back between the two.
        or gate.take(conn, JOBS, "cancel_waiting", job_id, cancel_requested_at=now)
    ):
        raise FailedPrecondition(f"Job {job_id} is {job['status']} and cannot be cancelled.")
    libraries.settle_scan_status(conn)
    return _known(conn, job_id)


def _add(
    conn: Connection, kind: JobKind, library: str | None, payload: Any, **columns: Any
) -> RowMapping:
    job = jobs.add(conn, kind=kind, library_id=library, payload=payload, **columns)
    if job is None:
        request_id = columns.get("request_id")
        first = jobs.by_request(conn, DEFAULT_TENANT, request_id) if request_id else None
        if first is None:
            raise _occupied(conn)
        return _same_request(first, kind, library)  # the same request came in twice at once
    libraries.settle_scan_status(conn)
    return hashing.plan(conn, job) if kind is JobKind.HASH else job


def _occupied(conn: Connection) -> Exception:
    active = jobs.active_campaign(conn)
    if active is None:
        return ActiveJobExists("Another scan or hash has ended just now; ask again.")
    return ActiveJobExists(
        f"Job {active['id']} ({active['kind']}) is {active['status']}, and only one scan or hash"
        f" runs at a time; wait for it (mediaplane job watch {active['id']}) or cancel it.",
        job=f"jobs/{active['id']}",
    )


def _requeue(conn: Connection, job: RowMapping) -> None:
    moved = jobs.requeue(conn, "requeue_now", job["id"])
    if moved is None:
        raise _occupied(conn)
    if not moved:
        raise FailedPrecondition(f"Job {job['id']} has just moved on; look at it again.")
    libraries.settle_scan_status(conn)


def _payload(
    conn: Connection, kind: JobKind, library: str | None, *, accept_new_root: bool
) -> dict[str, Any]:
    _check_kind(kind)
    if library is not None:
        _usable_library(conn, library)
    if kind is JobKind.HASH:
        return kinds.encode(kinds.HashPayload())
    if library is None:
        raise InvalidArgument("A scan needs a library, as libraries/SLUG.")
    return kinds.encode(kinds.ScanPayload(library, accept_new_root))


def _check_kind(kind: JobKind) -> None:
    if kind not in kinds.KINDS:
        raise InvalidArgument(
            f"This version cannot run jobs of kind {kind}; it runs {', '.join(kinds.KINDS)}."
        )


def _usable_library(conn: Connection, slug: str | None) -> None:
    if slug is None:
        return
    library = libraries.get(conn, slug)
    if library is None or library["deleted_at"] is not None:
        raise NotFound(f"There is no library {slug!r}; `mediaplane library list` shows them.")
    if not library["is_active"]:
        raise FailedPrecondition(f"Library {slug!r} is paused; make it active first.")


def _same_request(first: RowMapping, kind: JobKind, library: str | None) -> RowMapping:
    if (first["kind"], first["library_id"]) != (kind, library):
        raise InvalidArgument("This request id was used for another job; choose a new one.")
    return first


def _check_request_id(request_id: str) -> None:
    if len(request_id) > _MAX_REQUEST_ID or not request_id.isprintable():
        raise InvalidArgument(f"A request id has up to {_MAX_REQUEST_ID} printable characters.")


def _known(conn: Connection, job_id: int) -> RowMapping:
    job = jobs.get(conn, job_id)
    if job is None:
        raise NotFound(f"There is no job {job_id}.")
    return job
