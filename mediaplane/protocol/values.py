"""Every closed set of values the database stores, always in lower case."""

from enum import StrEnum


class Plane(StrEnum):
    """Who takes a step: the plane that decides or the plane that does."""

    CONTROL = "control"
    DATA = "data"


class JobKind(StrEnum):
    """What a job does; `kinds.py` has the payload of each kind that can run."""

    SCAN = "scan"
    HASH = "hash"
    DELETE = "delete"
    THUMBNAIL = "thumbnail"
    PROBE = "probe"
    VERIFY = "verify"
    SWEEP = "sweep"


class JobStatus(StrEnum):
    """Where a job stands. `skipped` carries a `skip_reason`."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    RETRYABLE = "retryable"
    SKIPPED = "skipped"


class JobItemStatus(StrEnum):
    """Where one shard of a job stands."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"
    CANCELLED = "cancelled"


class EventType(StrEnum):
    """What happened to a job; shown in upper case on the wire."""

    JOB_ADDED = "job_added"
    JOB_STARTED = "job_started"
    ITEM_PROGRESS = "item_progress"
    ITEM_DONE = "item_done"
    JOB_PROGRESS = "job_progress"
    JOB_DONE = "job_done"
    JOB_ERROR = "job_error"
    JOB_CANCELLED = "job_cancelled"
    LOG = "log"


class ScanStatus(StrEnum):
    """How far a library is with its scan (`libraries.scan_status`)."""

    IDLE = "idle"
    SCAN_REQ = "scan_req"
    SCANNING = "scanning"


class ScanSessionStatus(StrEnum):
    """How one scan went."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class ScanChange(StrEnum):
    """What a scan saw that differs from what the database knew."""

    SEEN = "seen"
    MISSING = "missing"


class HashAlgorithm(StrEnum):
    """Content hash functions; both have digests of 32 bytes."""

    BLAKE3 = "blake3"
    SHA256 = "sha256"


class HashPolicy(StrEnum):
    """Which files of a library are hashed: possible duplicates, or all."""

    CANDIDATES = "candidates"
    ALL = "all"


class MediaType(StrEnum):
    """What mediaplane can make pictures of."""

    IMAGE = "image"
    VIDEO = "video"


class ThumbnailStatus(StrEnum):
    """Where one thumbnail stands."""

    PENDING = "pending"
    RUNNING = "running"
    READY = "ready"
    FAILED = "failed"


# The error code of a thumbnail that is ready and shows only part of its file.
DEGRADED = "degraded"


class ThumbnailFormat(StrEnum):
    """File formats of thumbnails."""

    JPEG = "jpeg"
    WEBP = "webp"


class CleanupStatus(StrEnum):
    """Where the clean-up of one group's thumbnails stands."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


class CheckpointMode(StrEnum):
    """Modes of `PRAGMA wal_checkpoint` that may be requested."""

    PASSIVE = "passive"
    RESTART = "restart"
    TRUNCATE = "truncate"


class CheckpointStatus(StrEnum):
    """Where one WAL checkpoint stands."""

    PENDING = "pending"
    RUNNING = "running"
    RETRYABLE = "retryable"
    COMPLETED = "completed"
    FAILED = "failed"


class AssetStatus(StrEnum):
    """How far a picture or video is in the pipeline."""

    PENDING = "pending"
    PROXIED = "proxied"
    EXTRACTING = "extracting"
    ANALYZING = "analyzing"
    COMPLETED = "completed"
    FAILED = "failed"
    POISONED = "poisoned"


# In any other state, what was made of an asset may show its file as it was before.
PROCESSED = frozenset({AssetStatus.PROXIED, AssetStatus.ANALYZING, AssetStatus.COMPLETED})


class ScheduleAction(StrEnum):
    """What a schedule asks for: `rescan` scans and then hashes, `sweep` collects garbage."""

    RESCAN = "rescan"
    VERIFY = "verify"
    SWEEP = "sweep"
    CLEANUP = "cleanup"
    RETENTION = "retention"
    CHECKPOINT = "checkpoint"


class MissedRuns(StrEnum):
    """What becomes of runs whose time passed while no control plane was there."""

    SKIP = "skip"
    RUN_ONCE = "run_once"


class RunOutcome(StrEnum):
    """What became of the last run of a schedule; `none` before the first."""

    NONE = "none"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"


class WorkerState(StrEnum):
    """What a worker says it is doing."""

    IDLE = "idle"
    PROCESSING = "processing"
    PAUSED = "paused"
    OFFLINE = "offline"


class WorkerCommand(StrEnum):
    """What an operator wants a worker to do."""

    NONE = "none"
    PAUSE = "pause"
    RESUME = "resume"
    SHUTDOWN = "shutdown"
    FORENSIC_DUMP = "forensic_dump"


class Role(StrEnum):
    """What a caller may do: see, run work, or decide; a worker sees the workers and no more."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"
    WORKER = "worker"


class Peer(StrEnum):
    """How a caller reached a plane, and so how it is known who it is."""

    LOCAL = "local"
    TOKEN = "token"  # noqa: S105 - a word, not a secret
    CERTIFICATE = "certificate"


# The one I/O budget that every worker shares.
THUMBNAIL_IO_BUCKET = "thumbnail_io_global"

# The tenant of installations that have only one.
DEFAULT_TENANT = "default"
