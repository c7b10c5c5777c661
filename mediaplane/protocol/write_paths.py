"""Every way in which the data plane may write: the steps of the machines and these few more."""

from functools import lru_cache

from mediaplane.protocol import tables
from mediaplane.protocol.lifecycle import Lease, Machine, WritePath
from mediaplane.protocol.machines import JOB_ITEMS, JOBS, MACHINES
from mediaplane.protocol.values import Plane


def _all_but_id(table: str) -> frozenset[str]:
    return frozenset(tables.metadata.tables[table].columns.keys()) - {"id"}


_SUMMARY = frozenset(
    {"file_count", "size_bytes", "total_size_bytes", "reclaimable_bytes", "updated_at"}
)
_WORKER = frozenset({"state", "stats", "last_seen_at"})

APPEND_EVENT = WritePath("events", "append", inserts=_all_but_id("events"))
# What became of a job's items, written together with the item.
COUNT_ITEMS = WritePath(
    "jobs",
    "count_items",
    updates=frozenset(
        {
            "completed_items",
            "failed_items",
            "skipped_items",
            "cancelled_items",
            "progress_at",
            "updated_at",
        }
    ),
)

OPEN_SCAN = WritePath(
    "scan_sessions",
    "open",
    inserts=frozenset({"library_id", "job_id", "lease_epoch", "started_at"}),
)
REPORT_SCAN = WritePath(
    "scan_sessions",
    "report",
    updates=frozenset(
        {
            "root_device",
            "root_inode",
            "walked_at",
            "seen_files",
            "seen_bytes",
            "new_files",
            "changed_files",
            "missing_files",
            "errored_files",
        }
    ),
)
STAGE_ENTRIES = WritePath("scan_entries", "stage", inserts=_all_but_id("scan_entries"))
STAGE_BATCH = WritePath("scan_batches", "stage", inserts=_all_but_id("scan_batches"))
REPORT_SCAN_ERRORS = WritePath("scan_errors", "report", inserts=_all_but_id("scan_errors"))

RECORD_HASH = WritePath(
    "library_files",
    "record_hash",
    updates=frozenset(
        {
            "needs_hash",
            "hash_algorithm",
            "content_hash",
            "prefix_hash",
            "error_code",
            "error_message",
            "updated_at",
        }
    ),
)
# Whether the content still is what the hash says; the hash itself stays as evidence.
RECORD_VERDICT = WritePath(
    "library_files",
    "record_verdict",
    updates=frozenset({"error_code", "error_message", "updated_at"}),
)
SUMMARISE = WritePath(
    "duplicate_groups",
    "summarise",
    updates=_SUMMARY,
    inserts=_SUMMARY | {"hash_algorithm", "content_hash", "tenant_id"},
    deletes=True,
)

# `command` is the operator's: the worker only reads it.
REGISTER_WORKER = WritePath(
    "worker_status",
    "register",
    updates=_WORKER,
    inserts=_WORKER | {"started_at", "worker_id"},
)

RESERVE_IO = WritePath(
    "io_rate_limits", "reserve", updates=frozenset({"next_available_at_ms", "updated_at"})
)
BOOTSTRAP_IO = WritePath(
    "io_rate_limits",
    "bootstrap",
    inserts=frozenset({"bucket_key", "next_available_at_ms", "updated_at"}),
)

# Clean-up deletes index rows of pictures that are finished with; the executor chooses only those.
DELETE_THUMBNAILS = WritePath("thumbnails", "cleanup", deletes=True)

# A video that is extracted anew gets its frames anew. What is said of a frame comes later.
RECORD_FRAMES = WritePath(
    "video_frames",
    "record",
    inserts=frozenset({"asset_id", "timestamp_ms", "is_keyframe"}),
    deletes=True,
)


@lru_cache(maxsize=256)
def paths_of(machine: Machine, *step_names: str) -> tuple[WritePath, ...]:
    """Return every path that taking these steps of the data plane can touch."""
    paths: list[WritePath] = []
    for step in map(machine.step, step_names):
        paths.append(step.path)
        if step.events:
            paths.append(APPEND_EVENT)
        if machine is JOBS and step.target in machine.final:
            paths += [JOB_ITEMS.step("revoke").path, COUNT_ITEMS]
        if step.counts:
            paths.append(COUNT_ITEMS)
        if step.lease is Lease.KEEP and machine in (JOBS, JOB_ITEMS):
            paths += [COUNT_ITEMS, APPEND_EVENT]  # it speaks of progress
    return tuple(dict.fromkeys(paths))


def _step_paths() -> tuple[WritePath, ...]:
    steps = (step for machine in MACHINES for step in machine.steps if step.plane is Plane.DATA)
    return tuple(dict.fromkeys(step.path for step in steps))


WRITE_PATHS: tuple[WritePath, ...] = (
    *_step_paths(),
    APPEND_EVENT,
    COUNT_ITEMS,
    OPEN_SCAN,
    REPORT_SCAN,
    STAGE_ENTRIES,
    STAGE_BATCH,
    REPORT_SCAN_ERRORS,
    RECORD_HASH,
    RECORD_VERDICT,
    SUMMARISE,
    REGISTER_WORKER,
    RESERVE_IO,
    BOOTSTRAP_IO,
    DELETE_THUMBNAILS,
    RECORD_FRAMES,
)
