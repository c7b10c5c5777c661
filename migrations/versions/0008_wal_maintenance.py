"""Requested checkpoints of SQLite's write-ahead log."""

import sqlalchemy as sa
from alembic import op

revision = "0008_wal_maintenance"
down_revision = "0007_io_rate_limits"
branch_labels = None
depends_on = None

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "wal_maintenance_jobs",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("requested_mode", sa.String(32), nullable=False),
        sa.Column("status", sa.String(32), nullable=False, server_default="pending"),
        sa.Column("execute_after", sa.BigInteger, nullable=False),
        sa.Column("retry_count", sa.Integer, nullable=False, server_default="0"),
        sa.Column("retry_after", sa.BigInteger),
        sa.Column("checkpoint_busy", sa.Integer),
        sa.Column("checkpoint_log_frames", sa.BigInteger),
        sa.Column("checkpointed_frames", sa.BigInteger),
        sa.Column("error_code", sa.String(64)),
        sa.Column("error_message", sa.Text),
        sa.Column("worker_id", sa.String(128)),
        sa.Column("worker_heartbeat_at", sa.BigInteger),
        sa.Column("lease_expires_at", sa.BigInteger),
        sa.Column("lease_epoch", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("started_at", sa.BigInteger),
        sa.Column("finished_at", sa.BigInteger),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_wal_maintenance_jobs"),
        sqlite_autoincrement=True,
    )
    due = sa.text("status IN ('pending', 'retryable')")
    op.create_index(
        "ix_wal_maintenance_jobs_claim",
        "wal_maintenance_jobs",
        ["execute_after", "id"],
        sqlite_where=due,
        postgresql_where=due,
    )
    running = sa.text("status = 'running'")
    op.create_index(
        "ix_wal_maintenance_jobs_running",
        "wal_maintenance_jobs",
        ["id"],
        sqlite_where=running,
        postgresql_where=running,
    )


def downgrade() -> None:
    op.drop_table("wal_maintenance_jobs")
