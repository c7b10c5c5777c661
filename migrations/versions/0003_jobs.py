"""Jobs and the items that a job is split into."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0003_jobs"
down_revision = "0002_library_files"
branch_labels = None
depends_on = None

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Json = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    _create_jobs()
    _index_jobs()
    _create_job_items()


def _create_jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("tenant_id", sa.String(63), nullable=False, server_default="default"),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("status", sa.String(32), nullable=False, server_default="pending"),
        sa.Column("library_id", sa.String(63)),
        sa.Column("payload", Json, nullable=False, server_default=sa.text("'{}'")),
        sa.Column("priority", sa.Integer, nullable=False, server_default="0"),
        sa.Column("request_id", sa.String(128)),
        sa.Column("retry_of", Id),
        sa.Column("progress", sa.Float, nullable=False, server_default="0"),
        sa.Column("processed_items", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("total_items", sa.BigInteger),
        sa.Column("total_bytes", sa.BigInteger),
        sa.Column("attempts", sa.Integer, nullable=False, server_default="0"),
        sa.Column("max_attempts", sa.Integer, nullable=False, server_default="5"),
        sa.Column("retry_after", sa.BigInteger),
        sa.Column("cancel_requested_at", sa.BigInteger),
        sa.Column("skip_reason", sa.Text),
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
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
        sa.ForeignKeyConstraint(["library_id"], ["libraries.slug"], name="fk_jobs_library_id"),
        sa.ForeignKeyConstraint(["retry_of"], ["jobs.id"], name="fk_jobs_retry_of"),
        sqlite_autoincrement=True,
    )


def _index_jobs() -> None:
    op.create_index("ix_jobs_page", "jobs", [sa.text("created_at DESC"), sa.text("id DESC")])
    pending = sa.text("status = 'pending'")
    op.create_index(
        "ix_jobs_claim",
        "jobs",
        ["kind", sa.text("priority DESC"), "created_at", "id"],
        sqlite_where=pending,
        postgresql_where=pending,
    )
    for status in ("running", "retryable"):
        condition = sa.text(f"status = '{status}'")
        op.create_index(
            f"ix_jobs_{status}", "jobs", ["id"], sqlite_where=condition, postgresql_where=condition
        )
    requested = sa.text("request_id IS NOT NULL")
    op.create_index(
        "uq_jobs_request",
        "jobs",
        ["tenant_id", "request_id"],
        unique=True,
        sqlite_where=requested,
        postgresql_where=requested,
    )


def _create_job_items() -> None:
    op.create_table(
        "job_items",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("job_id", Id, nullable=False),
        sa.Column("item_key", sa.String(200), nullable=False),
        sa.Column("status", sa.String(32), nullable=False, server_default="pending"),
        sa.Column("payload", Json, nullable=False, server_default=sa.text("'{}'")),
        sa.Column("message", sa.Text),
        sa.Column("processed_items", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("processed_bytes", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("total_items", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("total_bytes", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("worker_id", sa.String(128)),
        sa.Column("worker_heartbeat_at", sa.BigInteger),
        sa.Column("lease_expires_at", sa.BigInteger),
        sa.Column("lease_epoch", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("started_at", sa.BigInteger),
        sa.Column("finished_at", sa.BigInteger),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_job_items"),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_job_items_job_id"),
        sa.UniqueConstraint("job_id", "item_key", name="uq_job_items_job_id_item_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_job_items_page", "job_items", ["job_id", "id"])
    for name, status in (("claim", "pending"), ("running", "running")):
        condition = sa.text(f"status = '{status}'")
        op.create_index(
            f"ix_job_items_{name}",
            "job_items",
            ["job_id", "id"],
            sqlite_where=condition,
            postgresql_where=condition,
        )


def downgrade() -> None:
    op.drop_table("job_items")
    op.drop_table("jobs")
