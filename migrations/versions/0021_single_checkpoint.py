"""One checkpoint at a time, and each request for one answered once."""

import sqlalchemy as sa
from alembic import op

revision = "0021_single_checkpoint"
down_revision = "0020_tenants"
branch_labels = None
depends_on = None

OPEN = "status IN ('pending', 'running', 'retryable')"
INDEXES = (
    ("ix_wal_maintenance_jobs_single_open", [sa.text("(1)")], OPEN),
    ("uq_wal_maintenance_jobs_request", ["request_id"], "request_id IS NOT NULL"),
)


def upgrade() -> None:
    op.add_column("wal_maintenance_jobs", sa.Column("request_id", sa.String(128)))
    # The newest is as good as all of them: each would checkpoint the whole log.
    op.execute(
        "UPDATE wal_maintenance_jobs SET status = 'failed', error_code = 'superseded',"
        " error_message = 'A later checkpoint takes its place.', worker_id = NULL,"
        " worker_heartbeat_at = NULL, lease_expires_at = NULL, finished_at = updated_at"
        f" WHERE {OPEN} AND id < (SELECT max(id) FROM wal_maintenance_jobs WHERE {OPEN})"
    )
    for name, columns, condition in INDEXES:
        where = sa.text(condition)
        op.create_index(
            name,
            "wal_maintenance_jobs",
            columns,
            unique=True,
            sqlite_where=where,
            postgresql_where=where,
        )


def downgrade() -> None:
    for name, _columns, _condition in INDEXES:
        op.drop_index(name, "wal_maintenance_jobs")
    op.drop_column("wal_maintenance_jobs", "request_id")
