"""Values in lower case, guarded by CHECKs, and at most one active scan or hash job.

Of several running scan and hash jobs one wins: the one with the latest `worker_heartbeat_at`,
among equals the one with the highest `lease_expires_at`, then the one with the lowest id; a time
that is NULL is earlier than any other. The other running jobs become `retryable`. Pending ones
become `retryable` as well, all of them beside a running job, otherwise all but the oldest (by
`created_at`, then id).
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

from mediaplane.errors import UnusableDatabase
from migrations.rebuild import altered, check_references

revision = "0010_protocol_values"
down_revision = "0009_assets"
branch_labels = None
depends_on = None

MEDIA_TYPES = "'image', 'video'"
LEGAL = {
    "libraries": {
        "scan_status": "'idle', 'scan_req', 'scanning'",
        "hash_policy": "'candidates', 'all'",
        "hash_algorithm": "'blake3', 'sha256'",
    },
    "library_files": {"media_type": MEDIA_TYPES},
    "jobs": {
        "kind": "'scan', 'hash', 'delete', 'thumbnail'",
        "status": "'pending', 'running', 'completed', 'failed', 'cancelled', 'retryable',"
        " 'skipped'",
    },
    "job_items": {"status": "'pending', 'running', 'completed', 'failed', 'skipped', 'cancelled'"},
    "events": {
        "type": "'job_added', 'job_started', 'item_progress', 'item_done', 'job_progress',"
        " 'job_done', 'job_error', 'job_cancelled', 'log'"
    },
    "scan_sessions": {"status": "'running', 'succeeded', 'failed'"},
    "scan_entries": {"change": "'seen', 'missing'"},
    "thumbnails": {
        "media_type": MEDIA_TYPES,
        "format": "'jpeg', 'webp'",
        "status": "'pending', 'running', 'ready', 'failed'",
    },
    "thumbnail_cleanup_jobs": {"status": "'pending', 'running', 'completed', 'failed'"},
    "wal_maintenance_jobs": {
        "requested_mode": "'passive', 'restart', 'truncate'",
        "status": "'pending', 'running', 'retryable', 'completed', 'failed'",
    },
    "assets": {
        "type": MEDIA_TYPES,
        "status": "'pending', 'proxied', 'extracting', 'analyzing', 'completed', 'failed',"
        " 'poisoned'",
    },
    "worker_status": {
        "state": "'idle', 'processing', 'paused', 'offline'",
        "command": "'none', 'pause', 'resume', 'shutdown', 'forensic_dump'",
    },
}

SINGLE_ACTIVE = sa.text(
    "lower(status) IN ('pending', 'running') AND lower(kind) IN ('scan', 'hash')"
)
WINNER = (
    "SELECT id FROM jobs WHERE status = 'running' AND kind IN ('scan', 'hash')"
    " ORDER BY worker_heartbeat_at DESC NULLS LAST, lease_expires_at DESC NULLS LAST, id LIMIT 1"
)
OLDEST_PENDING = (
    "SELECT id FROM jobs WHERE status = 'pending' AND kind IN ('scan', 'hash')"
    " ORDER BY created_at, id LIMIT 1"
)
NOW = {
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
    "postgresql": "CAST(extract(epoch FROM now()) * 1000 AS BIGINT)",
}
EVENTS = sa.table(
    "events",
    sa.column("job_id", sa.BigInteger),
    sa.column("type", sa.String),
    sa.column("payload", sa.JSON().with_variant(JSONB(), "postgresql")),
    sa.column("created_at", sa.BigInteger),
)


def upgrade() -> None:
    # Both would have the same key once their formats are written alike; either can be made again.
    op.execute(
        "DELETE FROM thumbnails WHERE id NOT IN (SELECT min(id) FROM thumbnails"
        " GROUP BY file_id, file_version, size_px, lower(format))"
    )
    for table, columns in LEGAL.items():
        for column, values in columns.items():
            op.execute(
                f"UPDATE {table} SET {column} = lower({column}) WHERE {column} <> lower({column})"
            )
            _refuse_unknown(table, column, values)
    _keep_one_active()
    for table, columns in LEGAL.items():
        with altered(table) as batch:
            for column, values in columns.items():
                batch.create_check_constraint(f"ck_{table}_{column}", f"{column} IN ({values})")
    check_references()
    op.create_index(
        "ix_jobs_single_active_scan_hash",
        "jobs",
        [sa.text("(1)")],
        unique=True,
        sqlite_where=SINGLE_ACTIVE,
        postgresql_where=SINGLE_ACTIVE,
    )


def _refuse_unknown(table: str, column: str, values: str) -> None:
    query = (
        f"SELECT {column}, count(*) FROM {table} WHERE {column} NOT IN ({values})"
        f" GROUP BY {column} ORDER BY {column}"
    )
    for value, count in op.get_bind().execute(sa.text(query)):
        raise UnusableDatabase(
            f"{table}.{column} is {value!r} in {count} rows, but can only be one of {values};"
            " correct these rows, then upgrade again."
        )


def _keep_one_active() -> None:
    winner = op.get_bind().execute(sa.text(WINNER)).scalar()
    _put_back(
        "running",
        winner,
        "recovered_duplicate_running",
        "Another scan or hash job was running as well; the upgrade kept only that one.",
    )
    if winner is None:
        winner = op.get_bind().execute(sa.text(OLDEST_PENDING)).scalar()
    _put_back(
        "pending",
        winner,
        "recovered_extra_pending",
        "Another scan or hash job was active already; the upgrade kept only that one.",
    )


def _put_back(status: str, winner: int | None, code: str, message: str) -> None:
    bind = op.get_bind()
    put_back = sa.text(
        "UPDATE jobs SET status = 'retryable', error_code = :code, error_message = :message,"
        " worker_id = NULL, worker_heartbeat_at = NULL, lease_expires_at = NULL,"
        f" updated_at = {NOW[bind.dialect.name]}"
        " WHERE status = :status AND kind IN ('scan', 'hash') AND id <> :winner"
        " RETURNING id, updated_at"
    )
    bound = {"status": status, "winner": winner, "code": code, "message": message}
    payload = {"error_code": code, "error_message": message}
    for job_id, now in sorted(map(tuple, bind.execute(put_back, bound))):
        bind.execute(
            sa.insert(EVENTS),
            {"job_id": job_id, "type": "job_error", "payload": payload, "created_at": now},
        )


def downgrade() -> None:
    op.drop_index("ix_jobs_single_active_scan_hash", "jobs")
    for table, columns in LEGAL.items():
        with altered(table) as batch:
            for column in columns:
                batch.drop_constraint(f"ck_{table}_{column}", type_="check")
    check_references()
