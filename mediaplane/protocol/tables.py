"""Every table of the database, with the CHECKs and indexes that hold the protocol."""

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Computed,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    String,
    Text,
    UniqueConstraint,
    event,
    false,
    text,
    true,
)

from mediaplane.protocol import values as v
from mediaplane.protocol.frame_search import FRAME_SEARCH
from mediaplane.protocol.schema import (
    Id,
    Json,
    SearchVector,
    count_column,
    error_columns,
    lease_columns,
    new_table,
    partial_index,
    row_id,
    time_column,
    value_column,
)
from mediaplane.protocol.schema import (
    metadata as metadata,
)

# Runs of a job, the first included, before it has failed for good.
DEFAULT_ATTEMPTS = 5

ai_models = new_table(
    "ai_models",
    row_id(),
    Column("name", String(200), nullable=False),
    Column("version", String(100), nullable=False),
    time_column("created_at"),
    UniqueConstraint("name", "version"),
)

libraries = new_table(
    "libraries",
    Column("slug", String(63), primary_key=True),
    Column("tenant_id", String(63), nullable=False, server_default=v.DEFAULT_TENANT),
    Column("name", String(200), nullable=False),
    # Bytes, because a mount point need not be UTF-8.
    Column("absolute_path", LargeBinary, nullable=False),
    # What the root was when last scanned; another root in its place is not this library.
    Column("root_device", BigInteger),  # the id of its file system
    Column("root_inode", BigInteger),
    Column("is_active", Boolean, nullable=False, server_default=true()),
    value_column("scan_status", v.ScanStatus, v.ScanStatus.IDLE),
    value_column("hash_policy", v.HashPolicy, v.HashPolicy.CANDIDATES),
    value_column("hash_algorithm", v.HashAlgorithm, v.HashAlgorithm.BLAKE3),
    Column("target_tagger_id", ForeignKey("ai_models.id")),
    Column("sampling_limit", Integer, nullable=False, server_default="100"),
    Column("sampling_policy", Json, nullable=False, server_default=text("'{}'")),
    # What a scan looks at. No pattern to include means all; what is excluded stays out.
    Column("include_globs", Json, nullable=False, server_default=text("'[]'")),
    Column("exclude_globs", Json, nullable=False, server_default=text("'[]'")),
    Column("skips_hidden", Boolean, nullable=False, server_default=false()),
    Column("crosses_filesystems", Boolean, nullable=False, server_default=false()),
    count_column("min_size_bytes"),
    time_column("deleted_at"),
    # Since it was hidden or shown: the path from which on the groups of its files are still to be
    # counted anew. NULL when they are right.
    Column("regroup_from", LargeBinary),
    time_column("created_at"),
    time_column("updated_at"),
)

# As it is in the index, so that it is found through the index.
IS_ACTIVE_VERIFY = "kind = 'verify' AND status IN ('pending', 'running', 'retryable')"

jobs = new_table(
    "jobs",
    row_id(),
    Column("tenant_id", String(63), nullable=False, server_default=v.DEFAULT_TENANT),
    value_column("kind", v.JobKind),
    value_column("status", v.JobStatus, v.JobStatus.PENDING),
    Column("library_id", ForeignKey("libraries.slug")),
    Column("payload", Json, nullable=False, server_default=text("'{}'")),
    Column("priority", Integer, nullable=False, server_default="0"),
    # Chosen by the client: a repeated request returns the first job.
    Column("request_id", String(128)),
    Column("retry_of", ForeignKey("jobs.id")),
    # The span of OpenTelemetry in which the job was asked for, as W3C writes it.
    Column("trace_parent", String(55)),
    Column("progress", Float, nullable=False, server_default="0"),
    count_column("processed_items"),
    # Set when the job is cut into items: from its first moment, or later, by its plan.
    Column("total_items", BigInteger),
    Column("total_bytes", BigInteger),
    # What became of the items, in the unit of total_items: written with the item itself. Those
    # skipped count as completed too, so completed + failed + cancelled = total at the end.
    count_column("completed_items"),
    count_column("failed_items"),
    count_column("skipped_items"),
    count_column("cancelled_items"),
    # When the history last spoke of progress.
    time_column("progress_at"),
    # How often the job was put back after a failed or lost run.
    Column("attempts", Integer, nullable=False, server_default="0"),
    Column("max_attempts", Integer, nullable=False, server_default=str(DEFAULT_ATTEMPTS)),
    time_column("retry_after"),
    time_column("cancel_requested_at"),
    Column("skip_reason", Text),
    *error_columns(),
    *lease_columns(),
    time_column("created_at"),
    time_column("started_at"),
    time_column("finished_at"),
    time_column("updated_at"),
    # Read from its end for the newest first: what is appended there is appended fastest.
    Index("ix_jobs_page", "tenant_id", "created_at", "id"),
    partial_index(
        "ix_jobs_claim",
        text("priority DESC"),
        "created_at",
        "id",
        where="status = 'pending'",
    ),
    partial_index("ix_jobs_running", "id", where="status = 'running'"),
    partial_index(
        "ix_jobs_cut",
        text("priority DESC"),
        "created_at",
        "id",
        where="status = 'running' AND total_items IS NOT NULL",
    ),
    partial_index("ix_jobs_retryable", "retry_after", "id", where="status = 'retryable'"),
    partial_index("ix_jobs_library", "library_id", "id", where="library_id IS NOT NULL"),
    partial_index("ix_jobs_retry_of", "retry_of", where="retry_of IS NOT NULL"),
    partial_index("ix_jobs_active_verify", "library_id", where=IS_ACTIVE_VERIFY),
    partial_index(
        "uq_jobs_request", "tenant_id", "request_id", where="request_id IS NOT NULL", unique=True
    ),
    partial_index(
        "ix_jobs_single_active_scan_hash",
        text("(1)"),
        where="lower(status) IN ('pending', 'running') AND lower(kind) IN ('scan', 'hash')",
        unique=True,
    ),
)

job_items = new_table(
    "job_items",
    row_id(),
    Column("job_id", ForeignKey("jobs.id"), nullable=False),
    Column("item_key", String(200), nullable=False),
    value_column("status", v.JobItemStatus, v.JobItemStatus.PENDING),
    Column("payload", Json, nullable=False, server_default=text("'{}'")),
    Column("message", Text),
    count_column("processed_items"),
    count_column("processed_bytes"),
    count_column("total_items"),
    count_column("total_bytes"),
    *lease_columns(),
    time_column("created_at"),
    time_column("started_at"),
    time_column("finished_at"),
    time_column("updated_at"),
    UniqueConstraint("job_id", "item_key"),
    Index("ix_job_items_page", "job_id", "id"),
    partial_index("ix_job_items_claim", "job_id", "id", where="status = 'pending'"),
    partial_index("ix_job_items_running", "job_id", "id", where="status = 'running'"),
)

events = new_table(
    "events",
    row_id(),
    Column("job_id", Id, nullable=False),
    # PostgreSQL checks a foreign key by a lock on the job for every event, which took half the
    # time of a tiny job. An event is only ever inserted from the row of its job.
    ForeignKeyConstraint(["job_id"], ["jobs.id"]).ddl_if(dialect="sqlite"),
    value_column("type", v.EventType),
    Column("payload", Json, nullable=False, server_default=text("'{}'")),
    time_column("created_at"),
    Index("ix_events_job", "job_id", "id"),
)

scan_sessions = new_table(
    "scan_sessions",
    row_id(),
    Column("library_id", ForeignKey("libraries.slug"), nullable=False),
    Column("job_id", ForeignKey("jobs.id"), nullable=False),
    # The claim that opened the session: what an older claim reports is thrown away.
    Column("lease_epoch", BigInteger, nullable=False),
    value_column("status", v.ScanSessionStatus, v.ScanSessionStatus.RUNNING),
    Column("root_device", BigInteger),
    Column("root_inode", BigInteger),
    # Set once the walk has ended well; only then may anything be taken for missing.
    time_column("walked_at"),
    count_column("seen_files"),
    count_column("seen_bytes"),
    count_column("new_files"),
    count_column("changed_files"),
    count_column("missing_files"),
    count_column("errored_files"),
    *error_columns(),
    time_column("started_at", stamped=True),
    time_column("finished_at"),
    UniqueConstraint("job_id", "lease_epoch"),
    Index("ix_scan_sessions_library", "library_id", text("id DESC")),
    partial_index("ix_scan_sessions_running", "id", where="status = 'running'"),
)

# What a scan saw and the database did not know: written by the data plane, taken over and
# emptied by the control plane, which decides what it means.
scan_entries = new_table(
    "scan_entries",
    row_id(),
    Column("session_id", ForeignKey("scan_sessions.id"), nullable=False),
    value_column("change", v.ScanChange),
    Column("rel_path", LargeBinary, nullable=False),
    Column("media_type", String(32)),
    Column("size_bytes", BigInteger),
    Column("mtime_ns", BigInteger),
    Column("device", BigInteger),
    Column("inode", BigInteger),
    Index("ix_scan_entries_chunk", "session_id", "change", "id"),
)

# Files that a scan saw where none was known, by the thousands (see packs.py). Otherwise like
# entries; in the first scan of a library every file is such a one.
scan_batches = new_table(
    "scan_batches",
    row_id(),
    Column("session_id", ForeignKey("scan_sessions.id"), nullable=False),
    Column("files", LargeBinary, nullable=False),
    Index("ix_scan_batches_session", "session_id", "id"),
)

# Names the latest scan of a library could not look at, each with the reason.
scan_errors = new_table(
    "scan_errors",
    row_id(),
    Column("session_id", ForeignKey("scan_sessions.id"), nullable=False),
    Column("rel_path", LargeBinary, nullable=False),
    *error_columns(),
    Index("ix_scan_errors_session", "session_id", "id"),
)

library_files = new_table(
    "library_files",
    row_id(),
    Column("library_id", ForeignKey("libraries.slug"), nullable=False),
    Column("rel_path", LargeBinary, nullable=False),
    Column("media_type", String(32)),
    Column("size_bytes", BigInteger, nullable=False),
    Column("mtime_ns", BigInteger, nullable=False),
    Column("device", BigInteger),
    Column("inode", BigInteger),
    Column("is_missing", Boolean, nullable=False, server_default=false()),
    # Decided by the control plane; cleared by the hash that answers it. Of the names of one
    # inode at most one is marked when it is hashed, so hard links carry no hash and are no
    # duplicates.
    Column("needs_hash", Boolean, nullable=False, server_default=false()),
    Column("hash_algorithm", String(32)),
    Column("content_hash", LargeBinary),
    # Of the beginning alone: files of one size that differ here need not be read to their end.
    Column("prefix_hash", LargeBinary),
    *error_columns(),
    time_column("created_at"),
    time_column("updated_at"),
    UniqueConstraint("library_id", "rel_path"),
    CheckConstraint("media_type IN ('image', 'video')", name="media_type"),
    CheckConstraint("hash_algorithm IN ('blake3', 'sha256')", name="hash_algorithm"),
    CheckConstraint("(content_hash IS NULL) = (hash_algorithm IS NULL)", name="hash_is_whole"),
    CheckConstraint("length(content_hash) = 32", name="content_hash"),
    partial_index(
        "ix_library_files_dedup_group",
        "hash_algorithm",
        "content_hash",
        "id",
        where="NOT is_missing AND NOT needs_hash AND content_hash IS NOT NULL",
    ),
    partial_index(
        "ix_library_files_size",
        "size_bytes",
        "device",
        "inode",
        "id",
        where="NOT is_missing",
    ),
    partial_index(
        "ix_library_files_prefix",
        "size_bytes",
        "prefix_hash",
        where="prefix_hash IS NOT NULL AND NOT is_missing",
    ),
    partial_index("ix_library_files_needs_hash", "id", where="needs_hash"),
    # Large files of one size are read together.
    partial_index(
        "ix_library_files_large_needs_hash",
        "size_bytes",
        "id",
        where="needs_hash AND size_bytes > 262144",
    ),
    # Few, and looked at by every hash job: they may have turned up elsewhere.
    partial_index(
        "ix_library_files_missing", "id", where="is_missing AND content_hash IS NOT NULL"
    ),
    partial_index(
        "ix_library_files_error", "library_id", "rel_path", where="error_code IS NOT NULL"
    ),
)

# One row per content that a tenant has more than once: a summary of `library_files`, rewritten for
# the hashes it touches by every transaction that changes them (duplicates.py).
duplicate_groups = new_table(
    "duplicate_groups",
    Column("hash_algorithm", String(32), primary_key=True),
    Column("content_hash", LargeBinary, primary_key=True),
    Column("tenant_id", String(63), primary_key=True, server_default=v.DEFAULT_TENANT),
    Column("file_count", BigInteger, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("total_size_bytes", BigInteger, nullable=False),
    Column("reclaimable_bytes", BigInteger, nullable=False),
    # Negated, so that the listing's mixed order is one ascending index and one comparison.
    Column("rank_by_count", BigInteger, Computed("-file_count", persisted=True)),
    Column("rank_by_size", BigInteger, Computed("-total_size_bytes", persisted=True)),
    time_column("updated_at"),
    Index(
        "ix_duplicate_groups_page",
        "tenant_id",
        "rank_by_count",
        "rank_by_size",
        "hash_algorithm",
        "content_hash",
    ),
    # Read from its end: what frees most comes first.
    Index(
        "ix_duplicate_groups_reclaimable",
        "tenant_id",
        "reclaimable_bytes",
        "hash_algorithm",
        "content_hash",
    ),
)

thumbnails = new_table(
    "thumbnails",
    row_id(),
    Column("file_id", ForeignKey("library_files.id"), nullable=False),
    # Which state of the file the picture shows; a changed file gets a new row.
    Column("file_version", String(100), nullable=False),
    Column("group_key", String(100), nullable=False),
    value_column("media_type", v.MediaType),
    value_column("format", v.ThumbnailFormat),
    Column("size_px", Integer, nullable=False),
    value_column("status", v.ThumbnailStatus, v.ThumbnailStatus.PENDING),
    Column("width", Integer),
    Column("height", Integer),
    Column("bytes_size", BigInteger),
    Column("error_count", Integer, nullable=False, server_default="0"),
    time_column("retry_after"),
    *error_columns(),
    *lease_columns(),
    time_column("created_at"),
    time_column("started_at"),
    time_column("finished_at"),
    time_column("updated_at"),
    UniqueConstraint("file_id", "file_version", "size_px", "format"),
    Index("ix_thumbnails_group_page", "group_key", "id"),
    partial_index("ix_thumbnails_claim", "media_type", "id", where="status = 'pending'"),
    partial_index("ix_thumbnails_running", "id", where="status = 'running'"),
)

thumbnail_cleanup_jobs = new_table(
    "thumbnail_cleanup_jobs",
    row_id(),
    # Whose thumbnails of the group: without one, those of every tenant.
    Column("tenant_id", String(63)),
    Column("group_key", String(100), nullable=False),
    value_column("status", v.CleanupStatus, v.CleanupStatus.PENDING),
    time_column("execute_after", nullable=False),
    *error_columns(),
    *lease_columns(),
    time_column("created_at"),
    time_column("finished_at"),
    time_column("updated_at"),
    partial_index(
        "ix_thumbnail_cleanup_jobs_claim", "execute_after", "id", where="status = 'pending'"
    ),
    partial_index("ix_thumbnail_cleanup_jobs_running", "id", where="status = 'running'"),
    partial_index("ix_thumbnail_cleanup_jobs_group", "group_key", where="status = 'pending'"),
)

wal_maintenance_jobs = new_table(
    "wal_maintenance_jobs",
    row_id(),
    value_column("requested_mode", v.CheckpointMode),
    value_column("status", v.CheckpointStatus, v.CheckpointStatus.PENDING),
    time_column("execute_after", nullable=False),
    Column("retry_count", Integer, nullable=False, server_default="0"),
    time_column("retry_after"),
    Column("checkpoint_busy", Integer),
    Column("checkpoint_log_frames", BigInteger),
    Column("checkpointed_frames", BigInteger),
    # Of the request that asked for it; asked again, the same row answers.
    Column("request_id", String(128)),
    *error_columns(),
    *lease_columns(),
    time_column("created_at"),
    time_column("started_at"),
    time_column("finished_at"),
    time_column("updated_at"),
    partial_index(
        "ix_wal_maintenance_jobs_claim",
        "execute_after",
        "id",
        where="status IN ('pending', 'retryable')",
    ),
    partial_index("ix_wal_maintenance_jobs_running", "id", where="status = 'running'"),
    partial_index(
        "ix_wal_maintenance_jobs_single_open",
        text("(1)"),
        where="status IN ('pending', 'running', 'retryable')",
        unique=True,
    ),
    partial_index(
        "uq_wal_maintenance_jobs_request",
        "request_id",
        where="request_id IS NOT NULL",
        unique=True,
    ),
)

io_rate_limits = new_table(
    "io_rate_limits",
    Column("bucket_key", String(64), primary_key=True),
    Column("next_available_at_ms", BigInteger, nullable=False, server_default="0"),
    time_column("updated_at"),
)

assets = new_table(
    "assets",
    row_id(),
    Column("library_id", ForeignKey("libraries.slug"), nullable=False),
    Column("rel_path", LargeBinary, nullable=False),
    value_column("type", v.MediaType),
    Column("mtime", Float, nullable=False),
    Column("size", BigInteger, nullable=False),
    value_column("status", v.AssetStatus, v.AssetStatus.PENDING),
    Column("tags_model_id", ForeignKey("ai_models.id")),
    Column("retry_count", Integer, nullable=False, server_default="0"),
    # What was made of it shows this state of the file; no other may be served for it.
    Column("version", String(100)),
    # Of the picture as it is shown, turned upright.
    Column("width", Integer),
    Column("height", Integer),
    Column("duration_ms", BigInteger),
    Column("poster_ms", BigInteger),
    # Part of the source could not be decoded.
    Column("is_degraded", Boolean, nullable=False, server_default=false()),
    *error_columns(),
    *lease_columns(),
    time_column("created_at"),
    time_column("updated_at"),
    UniqueConstraint("library_id", "rel_path"),
    # One per status: SQLite uses a partial index only for exactly its own condition.
    partial_index(
        "ix_assets_claim_extract", "type", "library_id", "id", where="status = 'pending'"
    ),
    partial_index("ix_assets_claim_analyze", "id", where="status = 'proxied'"),
    partial_index("ix_assets_extracting", "id", where="status = 'extracting'"),
    partial_index("ix_assets_analyzing", "id", where="status = 'analyzing'"),
    partial_index("ix_assets_failed", "library_id", "id", where="status = 'failed'"),
    partial_index("ix_assets_poisoned", "library_id", "id", where="status = 'poisoned'"),
)

video_frames = new_table(
    "video_frames",
    row_id(),
    Column("asset_id", ForeignKey("assets.id"), nullable=False),
    Column("timestamp_ms", BigInteger, nullable=False),
    Column("is_keyframe", Boolean, nullable=False),
    Column("search_vector", SearchVector),
    Column("tags_model_id", ForeignKey("ai_models.id")),
    UniqueConstraint("asset_id", "timestamp_ms"),
    Index("ix_video_frames_search", "search_vector", postgresql_using="gin").ddl_if(
        dialect="postgresql"
    ),
)

schedules = new_table(
    "schedules",
    Column("name", String(63), primary_key=True),
    Column("tenant_id", String(63), nullable=False, server_default=v.DEFAULT_TENANT),
    value_column("action", v.ScheduleAction),
    # Of all active libraries, where the action has libraries, when it is of none.
    Column("library_id", ForeignKey("libraries.slug")),
    Column("cron", String(100), nullable=False),
    Column("time_zone", String(64), nullable=False, server_default="UTC"),
    value_column("missed_runs", v.MissedRuns, v.MissedRuns.RUN_ONCE),
    Column("is_enabled", Boolean, nullable=False, server_default=false()),
    time_column("next_run_at"),
    time_column("last_run_at"),
    value_column("last_outcome", v.RunOutcome, v.RunOutcome.NONE),
    Column("last_error", Text),
    # The latest job of the last run. It may be forgotten, as all history; its id is not reused.
    Column("last_job_id", BigInteger),
    # How far the last run is: the library, or whatever the action goes through, that was last.
    Column("run_position", String(63)),
    time_column("last_skip_at"),
    Column("last_skip_reason", Text),
    time_column("created_at"),
    time_column("updated_at"),
    CheckConstraint("is_enabled = (next_run_at IS NOT NULL)", name="next_run_at"),
    Index("ix_schedules_due", "next_run_at"),
    Index("ix_schedules_library", "library_id"),
    partial_index("ix_schedules_running", "name", where="last_outcome = 'running'"),
)

worker_status = new_table(
    "worker_status",
    Column("worker_id", String(128), primary_key=True),
    value_column("state", v.WorkerState, v.WorkerState.IDLE),
    value_column("command", v.WorkerCommand, v.WorkerCommand.NONE),
    # Tells a repeated command from one that was obeyed already.
    time_column("commanded_at"),
    Column("stats", Json, nullable=False, server_default=text("'{}'")),
    time_column("started_at"),
    time_column("last_seen_at"),
)

tokens = new_table(
    "tokens",
    row_id(),
    Column("name", String(100), nullable=False),
    # SHA-256 suffices: of 256 random bits there is nothing to guess that salt would slow down.
    Column("token_hash", LargeBinary, nullable=False),
    value_column("role", v.Role),
    # NULL is every tenant.
    Column("tenant_id", String(63)),
    Column("created_by", String(100), nullable=False),
    time_column("created_at"),
    time_column("expires_at"),
    time_column("revoked_at"),
    # To about a minute: it is not worth a write per call.
    time_column("last_used_at"),
    UniqueConstraint("token_hash"),
)

audit_log = new_table(
    "audit_log",
    row_id(),
    time_column("called_at", stamped=True),
    Column("caller", String(100), nullable=False),
    value_column("role", v.Role),
    Column("tenant_id", String(63)),
    value_column("peer", v.Peer),
    # Without the package: 'JobService/CancelJob'.
    Column("method", String(100), nullable=False),
    # What the request named: a resource name, never a path.
    Column("resource", String(200), nullable=False),
    Column("code", String(32), nullable=False),
    partial_index("ix_audit_log_tenant", "tenant_id", "id", where="tenant_id IS NOT NULL"),
)


for _statement in FRAME_SEARCH:
    _ddl = DDL(_statement)  # type: ignore[no-untyped-call]
    event.listen(video_frames, "after_create", _ddl.execute_if(dialect="sqlite"))
