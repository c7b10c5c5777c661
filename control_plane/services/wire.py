"""Rows to messages, and values to enums, by name."""

import json
from functools import cache
from operator import itemgetter
from typing import Any

from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from control_plane.services.names import group_key
from control_plane.store.job_pages import SAME_NAMED, SHOWN
from mediaplane.errors import InvalidArgument
from mediaplane.paths import display
from mediaplane.protocol import kinds
from mediaplane.protocol.driver import Row, Values
from mediaplane.protocol.machines import JOBS
from mediaplane.protocol.values import JobKind, JobStatus
from mediaplane.v1 import duplicate_service_pb2 as duplicate_pb
from mediaplane.v1 import job_service_pb2 as job_pb
from mediaplane.v1 import library_service_pb2 as library_pb
from mediaplane.v1 import worker_service_pb2 as worker_pb


# Remembered, because asking protobuf for an enum's names took half the time of a page of groups.
@cache
def to_enum(enum: Any, value: str | None) -> Any:
    """Return the enum number whose name ends in the stored value; 0 for none."""
    if value is None:
        return 0
    prefix = enum.keys()[0].removesuffix("UNSPECIFIED")
    return enum.Value(prefix + value.upper())


def from_enum(enum: Any, number: int) -> str | None:
    """Return the value to store for an enum number; None for unspecified."""
    if number == 0:
        return None
    if number not in enum.values():
        raise InvalidArgument(f"This server knows no {enum.DESCRIPTOR.name} with number {number}.")
    prefix: str = enum.keys()[0].removesuffix("UNSPECIFIED")
    name: str = enum.Name(number)
    return name.removeprefix(prefix).lower()


def time(milliseconds: int | None) -> dict[str, int] | None:
    """Return a stored time as the fields of a Timestamp."""
    if milliseconds is None:
        return None
    # Not as a message, which would only be copied into the one that is made of it.
    return {"seconds": milliseconds // 1000, "nanos": milliseconds % 1000 * 1_000_000}


def struct(document: Any) -> Struct:
    """Return a stored JSON object as a message."""
    message = Struct()
    message.update(_document(document))
    return message


def _document(stored: Any) -> Any:
    """Return a stored JSON object, which the driver of SQLite leaves as text."""
    return json.loads(stored) if isinstance(stored, str) else stored


# Plain texts, as they are stored: to compare with a member of an enum takes ten times as long.
_KINDS = {kind.value: to_enum(job_pb.JobKind, kind) for kind in JobKind}
_STATES = {status.value: to_enum(job_pb.Job.State, status) for status in JobStatus}
_FINAL = frozenset(str(status) for status in JOBS.final)
_RETRYABLE, _PROBE = JobStatus.RETRYABLE.value, JobKind.PROBE.value
_job_values = itemgetter(*SHOWN)
_OTHERWISE_NAMED = len(SHOWN) - len(SAME_NAMED)


def job(row: Row) -> job_pb.Job:
    """Return a job."""
    message = job_pb.Job()
    fill_job(message, _job_values(row))
    return message


def fill_job(message: job_pb.Job, values: Values) -> None:
    """Write a job, the values of `SHOWN`, into an empty message.

    To make a message of arguments takes longer, and so does reading values by name.
    """
    (
        created_at, job_id, tenant, kind, status, library, worker, retry_of, started_at,
        updated_at, finished_at, retry_after, cancel_requested_at, payload,
    ) = values[:_OTHERWISE_NAMED]  # fmt: skip
    message.name = f"jobs/{job_id}"
    message.kind = _KINDS[kind]
    message.state = _STATES[status]
    message.tenant = tenant
    _fill_same_named(message, values[_OTHERWISE_NAMED:])
    set_time(message.create_time, created_at)
    set_time(message.update_time, updated_at)
    set_time(message.start_time, started_at)
    if library:
        message.library = f"libraries/{library}"
    if worker:
        message.worker = worker
    if cancel_requested_at is not None:
        message.cancel_requested = True
    if retry_of:
        message.retry_of = f"jobs/{retry_of}"
    if status in _FINAL:
        set_time(message.end_time, finished_at)
    elif status == _RETRYABLE:
        set_time(message.retry_time, retry_after)
    if kind == _PROBE:
        _fill_probe(message.probe, message.total_items, payload)


# One by one: a loop over the names took a fifth of the time of the messages of a page.
def _fill_same_named(message: job_pb.Job, values: Values) -> None:  # noqa: C901, PLR0912
    """Write what a job has by the name of its column, the values of `SAME_NAMED`."""
    (
        priority, progress, processed_items, total_items, total_bytes, attempts, max_attempts,
        error_code, error_message, skip_reason, request_id, completed_items, failed_items,
        skipped_items, cancelled_items,
    ) = values  # fmt: skip
    if priority:
        message.priority = priority
    if progress:
        message.progress = progress
    if processed_items:
        message.processed_items = processed_items
    if total_items:
        message.total_items = total_items
    if total_bytes:
        message.total_bytes = total_bytes
    if attempts:
        message.attempts = attempts
    if max_attempts:
        message.max_attempts = max_attempts
    if error_code:
        message.error_code = error_code
    if error_message:
        message.error_message = error_message
    if skip_reason:
        message.skip_reason = skip_reason
    if request_id:
        message.request_id = request_id
    if completed_items:
        message.completed_items = completed_items
    if failed_items:
        message.failed_items = failed_items
    if skipped_items:
        message.skipped_items = skipped_items
    if cancelled_items:
        message.cancelled_items = cancelled_items


def _fill_probe(message: job_pb.Probe, items: int, payload: Any) -> None:
    task = kinds.decode(JobKind.PROBE, _document(payload))
    duration = message.duration
    duration.seconds, duration.nanos = divmod(round(task.seconds * 1e9), 1_000_000_000)
    message.items = items
    message.scratch_bytes = task.scratch_bytes


def set_time(field: Timestamp, milliseconds: int | None) -> None:
    if milliseconds is not None:
        field.seconds = milliseconds // 1000
        field.nanos = milliseconds % 1000 * 1_000_000


def job_item(row: Row) -> job_pb.JobItem:
    """Return an item of a job."""
    return job_pb.JobItem(
        name=f"jobs/{row['job_id']}/items/{row['id']}",
        state=to_enum(job_pb.JobItem.State, row["status"]),
        message=row["message"] or "",
        processed_items=row["processed_items"],
        total_items=row["total_items"],
        worker=row["worker_id"] or "",
        create_time=time(row["created_at"]),
        update_time=time(row["updated_at"]),
    )


def event(row: Row) -> job_pb.Event:
    """Return an event of a job's history."""
    return job_pb.Event(
        name=f"jobs/{row['job_id']}/events/{row['id']}",
        id=row["id"],
        type=row["type"].upper(),
        payload=struct(row["payload"]),
        create_time=time(row["created_at"]),
    )


def library(row: Row, last_scan: Row | None) -> library_pb.Library:
    """Return a library."""
    return library_pb.Library(
        name=f"libraries/{row['slug']}",
        display_name=row["name"],
        root_path=row["absolute_path"],
        root_path_display=display(row["absolute_path"]),
        is_active=row["is_active"],
        scan_status=to_enum(library_pb.Library.ScanStatus, row["scan_status"]),
        hash_policy=to_enum(library_pb.Library.HashPolicy, row["hash_policy"]),
        hash_algorithm=to_enum(library_pb.HashAlgorithm, row["hash_algorithm"]),
        sampling_limit=row["sampling_limit"],
        sampling_policy=_sampling_policy(row["sampling_policy"]),
        create_time=time(row["created_at"]),
        update_time=time(row["updated_at"]),
        last_scan=scan_session(last_scan) if last_scan is not None else None,
        include_globs=row["include_globs"],
        exclude_globs=row["exclude_globs"],
        skips_hidden=row["skips_hidden"],
        crosses_filesystems=row["crosses_filesystems"],
        min_size_bytes=row["min_size_bytes"],
        delete_time=time(row["deleted_at"]),
        tenant=row["tenant_id"],
    )


def _sampling_policy(document: dict[str, str]) -> library_pb.SamplingPolicy:
    measure = document.get("measure", "mse")
    return library_pb.SamplingPolicy(measure=to_enum(library_pb.SamplingPolicy.Measure, measure))


def scan_session(row: Row) -> library_pb.ScanSession:
    """Return a scan."""
    return library_pb.ScanSession(
        id=row["id"],
        state=to_enum(library_pb.ScanSession.State, row["status"]),
        start_time=time(row["started_at"]),
        end_time=time(row["finished_at"]),
        seen_files=row["seen_files"],
        seen_bytes=row["seen_bytes"],
        new_files=row["new_files"],
        changed_files=row["changed_files"],
        missing_files=row["missing_files"],
        errored_files=row["errored_files"],
        error_code=row["error_code"] or "",
        error_message=row["error_message"] or "",
    )


def scan_error(row: Row) -> library_pb.ScanError:
    """Return a name that a scan could not look at."""
    return library_pb.ScanError(
        rel_path=row["rel_path"],
        rel_path_display=display(row["rel_path"]),
        error_code=row["error_code"],
        error_message=row["error_message"],
    )


def file(row: Row) -> library_pb.File:
    """Return a file."""
    hashed = row["content_hash"] is not None
    return library_pb.File(
        name=f"libraries/{row['library_id']}/files/{row['id']}",
        rel_path=row["rel_path"],
        rel_path_display=display(row["rel_path"]),
        size_bytes=row["size_bytes"],
        modify_time_ns=row["mtime_ns"],
        device=row["device"] or 0,
        inode=row["inode"] or 0,
        is_missing=row["is_missing"],
        needs_hash=row["needs_hash"],
        hash_algorithm=to_enum(library_pb.HashAlgorithm, row["hash_algorithm"]),
        content_hash=row["content_hash"] or b"",
        group_key=group_key(row["hash_algorithm"], row["content_hash"]) if hashed else "",
        error_code=row["error_code"] or "",
        error_message=row["error_message"] or "",
        create_time=time(row["created_at"]),
        update_time=time(row["updated_at"]),
    )


def fill_group(message: duplicate_pb.DuplicateGroup, values: Values) -> None:
    """Write a duplicate group, values that begin with `groups.SHOWN`, into an empty message."""
    tenant, algorithm, content_hash, file_count, size, total_size, reclaimable = values[:7]
    key = group_key(algorithm, content_hash)
    message.name = f"duplicateGroups/{key}"
    message.group_key = key
    message.hash_algorithm = to_enum(library_pb.HashAlgorithm, algorithm)
    message.content_hash = content_hash
    message.file_count = file_count
    message.total_size_bytes = total_size
    message.size_bytes = size
    message.reclaimable_bytes = reclaimable
    message.tenant = tenant


def worker(row: Row) -> worker_pb.Worker:
    """Return a worker."""
    return worker_pb.Worker(
        name=f"workers/{row['worker_id']}",
        state=to_enum(worker_pb.Worker.State, row["state"]),
        command=to_enum(worker_pb.Worker.Command, row["command"]),
        stats=struct(row["stats"]),
        last_seen_time=time(row["last_seen_at"]),
        start_time=time(row["started_at"]),
        command_time=time(row["commanded_at"]),
    )
