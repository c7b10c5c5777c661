"""Decides which jobs come into being: one scan or hash at a time, one sweep, each asked once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from control_plane.policy import libraries as rules
from control_plane.policy import verification
from control_plane.store import jobs, libraries, sweeps
from mediaplane.errors import (
    ActiveJobExists,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    PermissionDenied,
)
from mediaplane.protocol import gate, kinds
from mediaplane.protocol.clock import database_time
from mediaplane.protocol.database import lock
from mediaplane.protocol.driver import Row
from mediaplane.protocol.duplicates import DUPLICATES
from mediaplane.protocol.machines import JOBS
from mediaplane.protocol.tables import DEFAULT_ATTEMPTS
from mediaplane.protocol.values import DEFAULT_TENANT, JobKind, JobStatus

MAX_BATCH = 1000
_ONE_AT_A_TIME = (JobKind.SCAN, JobKind.HASH, JobKind.SWEEP)
_CUT = (JobKind.HASH, JobKind.VERIFY)
_MAX_REQUEST_ID = 128
_MAX_PROBE_SECONDS = 3600
_MAX_PROBE_ITEMS = 10_000
_MAX_SCRATCH_BYTES = 1 << 30


@dataclass(frozen=True)
class Wanted:
    """A job that somebody asks for."""

    kind: JobKind
    library: str | None = None
    # Who asks for it; None may mean a library of any tenant.
    tenant_id: str | None = None
    priority: int = 0
    max_attempts: int = 0  # 0: as many as usual
    request_id: str = ""
    accept_new_root: bool = False
    probe: kinds.ProbePayload = field(default_factory=kinds.ProbePayload)
    probe_items: int = 0

    @property
    def is_plain(self) -> bool:
        """Whether admitting the job is a single statement, with nothing to look up or to refuse."""
        return self.kind is JobKind.PROBE and not (self.request_id or self.probe_items)


def create(conn: Connection, wanted: Wanted) -> Row:
    """Add a job; the same request id again returns the first job."""
    _check_request_id(wanted.request_id)
    if wanted.request_id:
        first = jobs.by_request(conn, _owner(conn, wanted), wanted.request_id)
        if first is not None:
            return _same_request(first, wanted.kind, wanted.library)
    if wanted.is_plain:
        (job,) = create_many(conn, [wanted])
        return job
    return _add(conn, wanted.tenant_id, **_columns(conn, wanted))


def create_many(conn: Connection, wanted: Sequence[Wanted]) -> list[Row]:
    """Add jobs of which many may wait at the same time, all of them or none."""
    if not 1 <= len(wanted) <= MAX_BATCH:
        raise InvalidArgument(f"A batch has 1 to {MAX_BATCH} jobs, not {len(wanted)}.")
    if any(one.kind in (*_ONE_AT_A_TIME, *_CUT) or one.probe_items for one in wanted):
        raise InvalidArgument(
            "A batch can have neither scans and hashes nor sweeps, of which only one runs at a"
            " time, nor jobs that are cut into items; create such a job by itself."
        )
    for one in wanted:
        _check_request_id(one.request_id)
    request_ids = [one.request_id for one in wanted if one.request_id]
    if len(set(request_ids)) < len(request_ids):
        raise InvalidArgument("Two jobs of the batch have the same request id.")
    owner, *others = {_owner(conn, one) for one in wanted}
    if others:
        raise InvalidArgument("The jobs of a batch belong to one tenant; make a batch of each.")
    added, known = None, {}
    while added is None:  # again, when the same request came in twice at once: now it is known
        known = jobs.by_requests(conn, owner, request_ids)
        new = [_columns(conn, one) for one in wanted if one.request_id not in known]
        added = jobs.add_many(conn, new, shown=jobs.COLUMNS)
    fresh = iter(added)
    return [
        _same_request(known[one.request_id], one.kind, one.library)
        if one.request_id in known
        else next(fresh)
        for one in wanted
    ]


def retry(conn: Connection, tenant_id: str | None, job_id: int) -> Row:
    """Put a waiting job back at once, or run a job that has ended anew as another job."""
    job = _known(conn, tenant_id, job_id)
    match job["status"]:
        case JobStatus.RETRYABLE:
            _requeue(conn, tenant_id, job)
            return _known(conn, tenant_id, job_id)
        case JobStatus.FAILED | JobStatus.CANCELLED | JobStatus.SKIPPED:
            kind = JobKind(job["kind"])
            _check_kind(kind)
            # Of a job whose library has been purged only the task remembers it.
            slug = job["library_id"] or job["payload"].get("library")
            _usable_library(conn, job["tenant_id"], slug)
            return _add(conn, tenant_id, kind=kind, tenant_id=job["tenant_id"],
                        library_id=slug, payload=job["payload"],
                        priority=job["priority"], max_attempts=job["max_attempts"],
                        total_items=None if kind in _CUT else job["total_items"],
                        total_bytes=None if kind in _CUT else job["total_bytes"],
                        retry_of=job_id)  # fmt: skip
        case status:
            raise FailedPrecondition(
                f"Job {job_id} is {status}; only a job that failed, was cancelled or waits for"
                " another try can be retried."
            )


def cancel(conn: Connection, tenant_id: str | None, job_id: int) -> Row:
    """End a waiting job at once, or ask the worker of a running one to stop."""
    job = _known(conn, tenant_id, job_id)
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
    return _known(conn, tenant_id, job_id)


def _add(conn: Connection, asker: str | None, *, kind: JobKind, **columns: Any) -> Row:
    if kind is JobKind.SWEEP and (active := sweeps.active(conn)) is not None:
        raise _exists(asker, active, "sweep")
    if kind is JobKind.HASH:
        lock(conn, DUPLICATES)  # who moves a library to the trash looks for it under the same
    job = jobs.add(conn, kind=kind, **columns)
    if job is None:
        request_id = columns.get("request_id")
        first = jobs.by_request(conn, columns["tenant_id"], request_id) if request_id else None
        if first is None:
            raise occupied(conn, asker)
        # The same request came in twice at once.
        return _same_request(first, kind, columns["library_id"])
    if kind in _ONE_AT_A_TIME:
        libraries.settle_scan_status(conn)
    if kind is JobKind.VERIFY:
        verification.check_is_only(conn, job)
    elif job["total_items"]:
        jobs.add_items(conn, [_probe_item(job, number) for number in range(job["total_items"])])
    # Last, so that the history waits for nothing that takes long.
    jobs.announce(conn, [job["id"]])
    return job


def _probe_item(job: Row, number: int) -> dict[str, Any]:
    return {
        "job_id": job["id"],
        "item_key": f"probe-{number}",
        "payload": job["payload"],
        "total_items": 1,
        "total_bytes": job["payload"]["scratch_bytes"],
    }


def _columns(conn: Connection, wanted: Wanted) -> dict[str, Any]:
    """Return the row of a job that may be admitted."""
    if wanted.max_attempts < 0:
        raise InvalidArgument(f"max_attempts is {wanted.max_attempts}; it must not be negative.")
    columns = {
        "kind": wanted.kind,
        "tenant_id": _owner(conn, wanted),
        "library_id": wanted.library,
        "payload": _payload(conn, wanted),
        "priority": wanted.priority,
        "request_id": wanted.request_id or None,
        "max_attempts": wanted.max_attempts or DEFAULT_ATTEMPTS,
    }
    if wanted.probe_items:
        columns |= {
            "total_items": wanted.probe_items,
            "total_bytes": wanted.probe_items * wanted.probe.scratch_bytes,
        }
    return columns


def _owner(conn: Connection, wanted: Wanted) -> str:
    """Return the tenant of a job: who asks for it, or that of the library for who sees all."""
    if wanted.tenant_id is not None:
        return wanted.tenant_id
    library = libraries.get(conn, None, wanted.library) if wanted.library else None
    return library["tenant_id"] if library else DEFAULT_TENANT


def occupied(conn: Connection, asker: str | None) -> Exception:
    """Return what to say to who wants a scan or hash beside another."""
    active = jobs.active_campaign(conn)
    if active is None:
        return ActiveJobExists("Another scan or hash has ended just now; ask again.")
    return _exists(asker, active, "scan or hash")


def _exists(asker: str | None, active: Row, kinds_of_one: str) -> ActiveJobExists:
    if asker not in (None, active["tenant_id"]):
        return ActiveJobExists(
            f"Only one {kinds_of_one} runs at a time, and somebody else's is under way; ask again"
            " in a while."
        )
    return ActiveJobExists(
        f"Job {active['id']} ({active['kind']}) is {active['status']}, and only one {kinds_of_one}"
        f" runs at a time; wait for it (mediaplane job watch {active['id']}) or cancel it.",
        job=f"jobs/{active['id']}",
    )


def _requeue(conn: Connection, asker: str | None, job: Row) -> None:
    moved = jobs.requeue(conn, "requeue_now", job["id"])
    if moved is None:
        raise occupied(conn, asker)
    if not moved:
        raise FailedPrecondition(f"Job {job['id']} has just moved on; look at it again.")
    libraries.settle_scan_status(conn)


def _payload(conn: Connection, wanted: Wanted) -> dict[str, Any]:
    _check_kind(wanted.kind)
    if wanted.kind is JobKind.PROBE:
        return _probe_payload(wanted)
    if wanted.kind is JobKind.SWEEP:
        if wanted.library is not None:
            raise InvalidArgument("A sweep has no library.")
        if wanted.tenant_id is not None:
            raise PermissionDenied(
                "A sweep is of all tenants' cache; ask who runs the installation."
            )
        return kinds.encode(kinds.SweepPayload())
    if wanted.library is not None:
        _usable_library(conn, wanted.tenant_id, wanted.library)
    if wanted.kind is JobKind.HASH:
        return kinds.encode(kinds.HashPayload(wanted.library))
    if wanted.library is None:
        raise InvalidArgument(f"A {wanted.kind} needs a library, as libraries/SLUG.")
    if wanted.kind is JobKind.VERIFY:
        return kinds.encode(kinds.VerifyPayload(wanted.library))
    return kinds.encode(kinds.ScanPayload(wanted.library, wanted.accept_new_root))


def _probe_payload(wanted: Wanted) -> dict[str, Any]:
    if wanted.library is not None:
        raise InvalidArgument("A probe has no library.")
    for name, value, most in (
        ("duration", wanted.probe.seconds, _MAX_PROBE_SECONDS),
        ("items", wanted.probe_items, _MAX_PROBE_ITEMS),
        ("scratch_bytes", wanted.probe.scratch_bytes, _MAX_SCRATCH_BYTES),
    ):
        if not 0 <= value <= most:
            raise InvalidArgument(f"probe.{name} is {value:g}; it must be 0 to {most}.")
    return kinds.encode(wanted.probe)


def _check_kind(kind: JobKind) -> None:
    if kind not in kinds.KINDS:
        raise InvalidArgument(
            f"This version cannot run jobs of kind {kind}; it runs {', '.join(kinds.KINDS)}."
        )


def _usable_library(conn: Connection, tenant_id: str | None, slug: str | None) -> None:
    if slug is None:
        return
    if not rules.get(conn, tenant_id, slug)["is_active"]:
        raise FailedPrecondition(f"Library {slug!r} is paused; make it active first.")


def _same_request(first: Row, kind: JobKind, library: str | None) -> Row:
    if (first["kind"], first["library_id"]) != (kind, library):
        raise InvalidArgument("This request id was used for another job; choose a new one.")
    return first


def _check_request_id(request_id: str) -> None:
    if len(request_id) > _MAX_REQUEST_ID or not request_id.isprintable():
        raise InvalidArgument(f"A request id has up to {_MAX_REQUEST_ID} printable characters.")


def _known(conn: Connection, tenant_id: str | None, job_id: int) -> Row:
    job = jobs.get(conn, tenant_id, job_id)
    if job is None:
        raise NotFound(f"There is no job {job_id}.")
    return job
