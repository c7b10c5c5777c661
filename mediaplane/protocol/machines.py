"""Every lifecycle of the protocol: who may move a row, from where to where, writing what."""

from collections.abc import Callable
from functools import partial
from typing import Any

from mediaplane.protocol import tables
from mediaplane.protocol.kinds import IS_PLANNED
from mediaplane.protocol.lifecycle import (
    LEASE_EXPIRED,
    LEASE_EXPIRED_MESSAGE,
    OWNER,
    Lease,
    Machine,
    Step,
    WritePath,
)
from mediaplane.protocol.values import (
    AssetStatus,
    CheckpointStatus,
    CleanupStatus,
    EventType,
    JobItemStatus,
    JobStatus,
    Plane,
    ThumbnailStatus,
)

MAX_ASSET_CLAIMS = 5
MAX_ITEM_CLAIMS = 5

_BEAT = frozenset({"worker_heartbeat_at", "lease_expires_at", "updated_at"})
_CLAIM = OWNER | {"status", "lease_epoch", "updated_at"}
_RELEASE = OWNER | {"status", "updated_at"}
_END = _BEAT | {"status", "error_code", "error_message", "finished_at"}
_RECOVERED = {"error_code": LEASE_EXPIRED, "error_message": LEASE_EXPIRED_MESSAGE}
_NO_ERROR = {"error_code": None, "error_message": None}


def _paths(table: str) -> Callable[..., WritePath]:
    def path(name: str, *columns: str, base: frozenset[str] = frozenset()) -> WritePath:
        return WritePath(table, name, base | frozenset(columns))

    return path


_data: Any = partial(Step, plane=Plane.DATA)
_control: Any = partial(Step, plane=Plane.CONTROL)


def _jobs() -> Machine:
    s, e, path = JobStatus, EventType, _paths("jobs")
    claim = path("claim", "started_at", base=_CLAIM)
    heartbeat = path("heartbeat", "processed_items", "progress", base=_BEAT)
    finish = path("finish", "progress", base=_END)
    recover = path("recover", "error_code", "error_message", base=_RELEASE)
    release = path("release", "started_at", base=_RELEASE)
    cancel = path("cancel", "status", "cancel_requested_at", "finished_at", "updated_at")
    requeue = path(
        "requeue", "status", "attempts", "retry_after", "cancel_requested_at", "finished_at",
        "updated_at",
    )  # fmt: skip
    exhaust = path("exhaust", "status", "finished_at", "updated_at")
    run, from_pending = (s.RUNNING,), (s.PENDING,)
    return Machine(
        tables.jobs,
        s,
        claim_order="priority DESC, created_at, id",
        handed_out=("id", "kind", "library_id", "payload", "priority", "total_items",
                    "total_bytes", "worker_id", "worker_heartbeat_at", "lease_epoch",
                    "created_at", "trace_parent"),
        kind_column="kind",
        steps=(
            _data("claim", sources=from_pending, target=s.RUNNING, lease=Lease.TAKE, path=claim,
                  when=f"cancel_requested_at IS NULL AND {IS_PLANNED}", events=(e.JOB_STARTED,)),
            _data("heartbeat", sources=run, target=None, lease=Lease.KEEP, path=heartbeat),
            _data("complete", sources=run, target=s.COMPLETED, lease=Lease.DROP, path=finish,
                  when="total_items IS NULL OR"
                       " NOT EXISTS (SELECT 1 FROM job_items i WHERE i.job_id = jobs.id"
                       " AND i.status = 'pending') AND NOT EXISTS (SELECT 1 FROM job_items i"
                       " WHERE i.job_id = jobs.id AND i.status = 'running')",
                  sets=_NO_ERROR | {"progress": 1.0}, events=(e.JOB_DONE,)),
            _data("fail", sources=run, target=s.FAILED, lease=Lease.DROP, path=finish,
                  events=(e.JOB_ERROR, e.JOB_DONE)),
            _data("retry", sources=run, target=s.RETRYABLE, lease=Lease.DROP, path=finish,
                  events=(e.JOB_ERROR,)),
            _data("cancel", sources=run, target=s.CANCELLED, lease=Lease.DROP, path=finish,
                  events=(e.JOB_CANCELLED, e.JOB_DONE)),
            _data("release", sources=run, target=s.PENDING, lease=Lease.DROP, path=release,
                  events=(e.LOG,), says="Put back by its worker."),
            _data("recover", sources=run, target=s.RETRYABLE, lease=Lease.REAP, path=recover,
                  sets=_RECOVERED, events=(e.JOB_ERROR,)),
            _control("reap", sources=run, target=s.RETRYABLE, lease=Lease.REAP, path=recover,
                     sets=_RECOVERED, events=(e.JOB_ERROR,)),
            _control("request_cancel", sources=run, target=None, lease=Lease.ABSENT, path=cancel,
                     events=(e.LOG,), says="Asked to stop."),
            _control("cancel_waiting", sources=(s.PENDING, s.RETRYABLE), target=s.CANCELLED,
                     lease=Lease.ABSENT, path=cancel, events=(e.JOB_CANCELLED, e.JOB_DONE)),
            _control("delay", sources=(s.RETRYABLE,), target=None, lease=Lease.ABSENT,
                     path=path("delay", "retry_after", "updated_at"),
                     when="retry_after IS NULL AND attempts + 1 < max_attempts",
                     events=(e.LOG,), says="Tried again after a while."),
            _control("requeue", sources=(s.RETRYABLE,), target=s.PENDING, lease=Lease.ABSENT,
                     path=requeue, due="retry_after", increments=("attempts",),
                     sets={"retry_after": None, "finished_at": None},
                     when="attempts + 1 < max_attempts AND cancel_requested_at IS NULL",
                     events=(e.LOG,), says="Waits for a worker again."),
            _control("requeue_now", sources=(s.RETRYABLE,), target=s.PENDING, lease=Lease.ABSENT,
                     path=requeue, increments=("attempts",),
                     sets={"retry_after": None, "finished_at": None,
                           "cancel_requested_at": None},
                     events=(e.LOG,), says="Waits for a worker again, on request."),
            _control("exhaust", sources=(s.RETRYABLE,), target=s.FAILED, lease=Lease.ABSENT,
                     path=exhaust, when="attempts + 1 >= max_attempts", events=(e.JOB_DONE,)),
            _control("drop_cancelled", sources=(s.PENDING, s.RETRYABLE), target=s.CANCELLED,
                     lease=Lease.ABSENT, path=cancel, when="cancel_requested_at IS NOT NULL",
                     events=(e.JOB_CANCELLED, e.JOB_DONE)),
            _control("skip", sources=from_pending, target=s.SKIPPED, lease=Lease.ABSENT,
                     path=path("skip", "status", "skip_reason", "finished_at", "updated_at"),
                     events=(e.JOB_DONE,)),
        ),
    )  # fmt: skip


def _job_items() -> Machine:
    s, path = JobItemStatus, _paths("job_items")
    claim = path("claim", "started_at", base=_CLAIM)
    heartbeat = path("heartbeat", "processed_items", "processed_bytes", base=_BEAT)
    finish = path("finish", "processed_items", "processed_bytes", "message", "status",
                  "finished_at", base=_BEAT)  # fmt: skip
    release = path("release", "started_at", base=_RELEASE)
    close = path("close", "finished_at", base=_RELEASE)
    run, unfinished, done = (s.RUNNING,), (s.PENDING, s.RUNNING), (EventType.ITEM_DONE,)
    completed, failed, cancelled = ("completed_items",), ("failed_items",), ("cancelled_items",)
    skipped = ("skipped_items", "completed_items")
    again, for_good = f"lease_epoch < {MAX_ITEM_CLAIMS}", f"lease_epoch >= {MAX_ITEM_CLAIMS}"
    return Machine(
        tables.job_items,
        s,
        claim_order="job_id, id",
        handed_out=("id", "job_id", "item_key", "payload", "total_items", "total_bytes",
                    "worker_id", "lease_epoch"),
        steps=(
            _data("claim", sources=(s.PENDING,), target=s.RUNNING, lease=Lease.TAKE, path=claim,
                  when="EXISTS (SELECT 1 FROM jobs j WHERE j.id = job_items.job_id"
                       " AND j.status = 'running' AND j.cancel_requested_at IS NULL)"),
            _data("heartbeat", sources=run, target=None, lease=Lease.KEEP, path=heartbeat),
            _data("complete", sources=run, target=s.COMPLETED, lease=Lease.DROP, path=finish,
                  events=done, counts=completed),
            _data("fail", sources=run, target=s.FAILED, lease=Lease.DROP, path=finish,
                  events=done, counts=failed),
            _data("skip", sources=run, target=s.SKIPPED, lease=Lease.DROP, path=finish,
                  events=done, counts=skipped),
            _data("cancel", sources=run, target=s.CANCELLED, lease=Lease.DROP, path=finish,
                  events=done, counts=cancelled),
            _data("release", sources=run, target=s.PENDING, lease=Lease.DROP, path=release),
            _data("recover", sources=run, target=s.PENDING, lease=Lease.REAP, path=release,
                  when=again),
            _control("reap", sources=run, target=s.PENDING, lease=Lease.REAP, path=release,
                     when=again),
            # A shard that takes every worker down with it must end.
            _control("poison", sources=run, target=s.FAILED, lease=Lease.REAP,
                     path=path("poison", "message", "finished_at", base=_RELEASE),
                     when=for_good, sets={"message": LEASE_EXPIRED_MESSAGE},
                     events=done, counts=failed),
            _control("skip_waiting", sources=(s.PENDING,), target=s.SKIPPED, lease=Lease.ABSENT,
                     path=path("skip", "status", "message", "finished_at", "updated_at"),
                     events=done, counts=skipped),
            # The gate takes these by itself when a job ends: no item outlives its job.
            _data("revoke", sources=unfinished, target=s.CANCELLED, lease=Lease.REVOKE,
                  path=close, events=done, counts=cancelled),
            _control("withdraw", sources=unfinished, target=s.CANCELLED, lease=Lease.REVOKE,
                     path=close, events=done, counts=cancelled),
        ),
    )  # fmt: skip


def _thumbnails() -> Machine:
    s, path = ThumbnailStatus, _paths("thumbnails")
    claim = path("claim", "started_at", base=_CLAIM)
    retried = ("error_count", "retry_after")
    success = path("finish_success", *retried, "width", "height", "bytes_size", base=_END)
    failure = path("finish_failure", *retried, base=_END)
    run = (s.RUNNING,)
    return Machine(
        tables.thumbnails,
        s,
        claim_order="media_type, id",
        kind_column="media_type",
        steps=(
            _data("claim", sources=(s.PENDING,), target=s.RUNNING, lease=Lease.TAKE, path=claim),
            _data("heartbeat", sources=run, target=None, lease=Lease.KEEP,
                  path=path("heartbeat", base=_BEAT)),
            # Of a picture that shows only part of its file, the error says so.
            _data("complete", sources=run, target=s.READY, lease=Lease.DROP, path=success,
                  sets={"retry_after": None}),
            _data("fail", sources=run, target=s.FAILED, lease=Lease.DROP, path=failure,
                  increments=("error_count",)),
            _data("release", sources=run, target=s.PENDING, lease=Lease.DROP, path=claim),
            _data("recover", sources=run, target=s.PENDING, lease=Lease.REAP, path=claim),
            _control("reap", sources=run, target=s.PENDING, lease=Lease.REAP, path=claim),
            _control("requeue", sources=(s.FAILED,), target=s.PENDING, lease=Lease.ABSENT,
                     path=path("requeue", "status", "retry_after", "finished_at", "updated_at"),
                     due="retry_after", sets={"retry_after": None, "finished_at": None}),
        ),
    )  # fmt: skip


def _cleanups() -> Machine:
    s, path = CleanupStatus, _paths("thumbnail_cleanup_jobs")
    claim = path("claim", "finished_at", base=_CLAIM)
    finish = path("finish", base=_END)
    run = (s.RUNNING,)
    return Machine(
        tables.thumbnail_cleanup_jobs,
        s,
        claim_order="execute_after, id",
        steps=(
            _data("claim", sources=(s.PENDING,), target=s.RUNNING, lease=Lease.TAKE, path=claim,
                  due="execute_after",
                  when="NOT EXISTS (SELECT 1 FROM thumbnails t"
                       " WHERE t.group_key = thumbnail_cleanup_jobs.group_key"
                       " AND t.status IN ('pending', 'running')"
                       " AND (thumbnail_cleanup_jobs.tenant_id IS NULL"
                       " OR thumbnail_cleanup_jobs.tenant_id = (SELECT l.tenant_id"
                       " FROM library_files f JOIN libraries l ON l.slug = f.library_id"
                       " WHERE f.id = t.file_id)))"),
            # The contract gives clean-ups no heartbeat; without one, long work would be reaped.
            _data("heartbeat", sources=run, target=None, lease=Lease.KEEP,
                  path=path("heartbeat", base=_BEAT)),
            _data("complete", sources=run, target=s.COMPLETED, lease=Lease.DROP, path=finish,
                  sets=_NO_ERROR),
            _data("fail", sources=run, target=s.FAILED, lease=Lease.DROP, path=finish),
            _data("release", sources=run, target=s.PENDING, lease=Lease.DROP, path=claim),
            _data("recover", sources=run, target=s.PENDING, lease=Lease.REAP, path=claim),
            _control("reap", sources=run, target=s.PENDING, lease=Lease.REAP, path=claim),
        ),
    )  # fmt: skip


def _checkpoints() -> Machine:
    s, path = CheckpointStatus, _paths("wal_maintenance_jobs")
    retried = ("retry_count", "retry_after")
    stats = ("checkpoint_busy", "checkpoint_log_frames", "checkpointed_frames")
    claim = path("claim", "started_at", "finished_at", base=_CLAIM)
    recover = path("retryable_recovery", *retried, "worker_id", base=_END)
    run = (s.RUNNING,)
    return Machine(
        tables.wal_maintenance_jobs,
        s,
        claim_order="execute_after, id",
        steps=(
            _data("claim", sources=(s.PENDING, s.RETRYABLE), target=s.RUNNING, lease=Lease.TAKE,
                  path=claim, due="execute_after",
                  when="(retry_after IS NULL OR retry_after <= {now})"),
            # As for clean-ups: not in the contract, and without it long work would be reaped.
            _data("heartbeat", sources=run, target=None, lease=Lease.KEEP,
                  path=path("heartbeat", base=_BEAT)),
            _data("complete", sources=run, target=s.COMPLETED, lease=Lease.DROP,
                  path=path("success", *stats, base=_END), sets=_NO_ERROR),
            _data("retry", sources=run, target=s.RETRYABLE, lease=Lease.DROP,
                  path=path("retry", *stats, *retried, base=_END), increments=("retry_count",)),
            _data("fail", sources=run, target=s.FAILED, lease=Lease.DROP,
                  path=path("failure", base=_END)),
            _data("recover", sources=run, target=s.RETRYABLE, lease=Lease.REAP, path=recover,
                  increments=("retry_count",), sets=_RECOVERED),
            _control("reap", sources=run, target=s.RETRYABLE, lease=Lease.REAP, path=recover,
                     increments=("retry_count",), sets=_RECOVERED),
        ),
    )  # fmt: skip


def _assets() -> Machine:
    s, path = AssetStatus, _paths("assets")
    claim = path("claim", "retry_count", base=_CLAIM)
    finish = path("finish", "status", "error_code", "error_message", base=_BEAT)
    extracted = path(
        "finish_extract", "status", "error_code", "error_message", "version", "width", "height",
        "duration_ms", "poster_ms", "is_degraded", base=_BEAT,
    )  # fmt: skip
    release = path("release", base=_RELEASE)
    at_work = (s.EXTRACTING, s.ANALYZING)
    steps: list[Step] = []
    for stage, source, running, target, finished in (
        ("extract", s.PENDING, s.EXTRACTING, s.PROXIED, extracted),
        ("analyze", s.PROXIED, s.ANALYZING, s.COMPLETED, finish),
    ):
        again = f"retry_count <= {MAX_ASSET_CLAIMS}"
        for_good = f"retry_count > {MAX_ASSET_CLAIMS}"
        steps += [
            _data(f"claim_{stage}", sources=(source,), target=running, lease=Lease.TAKE,
                  path=claim, increments=("retry_count",),
                  when="EXISTS (SELECT 1 FROM libraries l WHERE l.slug = assets.library_id"
                       " AND l.is_active AND l.deleted_at IS NULL)"),
            _data(f"complete_{stage}", sources=(running,), target=target, lease=Lease.DROP,
                  path=finished, sets=_NO_ERROR),
            _data(f"release_{stage}", sources=(running,), target=source, lease=Lease.DROP,
                  path=release),
            # Tried often enough, although its file is not to blame.
            _data(f"give_up_{stage}", sources=(running,), target=s.POISONED, lease=Lease.DROP,
                  path=finish, when=for_good),
            _data(f"recover_{stage}", sources=(running,), target=source, lease=Lease.REAP,
                  path=release, when=again),
            _control(f"reap_{stage}", sources=(running,), target=source, lease=Lease.REAP,
                     path=release, when=again),
            _control(f"poison_{stage}", sources=(running,), target=s.POISONED, lease=Lease.REAP,
                     path=path("poison", "error_code", "error_message", base=_RELEASE),
                     when=for_good, sets=_RECOVERED),
        ]  # fmt: skip
    return Machine(
        tables.assets,
        s,
        claim_order="id",
        kind_column="type",
        steps=(
            *steps,
            _data("heartbeat", sources=at_work, target=None, lease=Lease.KEEP,
                  path=path("heartbeat", base=_BEAT)),
            _data("fail", sources=at_work, target=s.FAILED, lease=Lease.DROP, path=finish),
            # The file changed, or somebody asks: whatever was made from it is made anew.
            _control("rediscover",
                     sources=(s.PROXIED, s.COMPLETED, s.FAILED, s.POISONED), target=s.PENDING,
                     lease=Lease.ABSENT,
                     path=path("rediscover", "status", "retry_count", "error_code",
                               "error_message", "mtime", "size", "updated_at"),
                     sets=_NO_ERROR | {"retry_count": 0}),
            _control("retry", sources=(s.FAILED, s.POISONED), target=s.PENDING,
                     lease=Lease.ABSENT,
                     path=path("retry", "status", "retry_count", "error_code", "error_message",
                               "updated_at"),
                     sets=_NO_ERROR | {"retry_count": 0}),
        ),
    )  # fmt: skip


JOBS = _jobs()
JOB_ITEMS = _job_items()
THUMBNAILS = _thumbnails()
THUMBNAIL_CLEANUP_JOBS = _cleanups()
WAL_MAINTENANCE_JOBS = _checkpoints()
ASSETS = _assets()

MACHINES = (JOBS, JOB_ITEMS, THUMBNAILS, THUMBNAIL_CLEANUP_JOBS, WAL_MAINTENANCE_JOBS, ASSETS)
