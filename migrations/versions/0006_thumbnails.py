"""Thumbnails, and the clean-up of those of a group."""

import sqlalchemy as sa
from alembic import op

revision = "0006_thumbnails"
down_revision = "0005_scan_sessions"
branch_labels = None
depends_on = None

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _create_thumbnails()
    _create_cleanup_jobs()


def _create_thumbnails() -> None:
    op.create_table(
        "thumbnails",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("file_id", Id, nullable=False),
        sa.Column("file_version", sa.String(100), nullable=False),
        sa.Column("group_key", sa.String(100), nullable=False),
        sa.Column("media_type", sa.String(32), nullable=False),
        sa.Column("format", sa.String(32), nullable=False),
        sa.Column("size_px", sa.Integer, nullable=False),
        sa.Column("status", sa.String(32), nullable=False, server_default="pending"),
        sa.Column("width", sa.Integer),
        sa.Column("height", sa.Integer),
        sa.Column("bytes_size", sa.BigInteger),
        sa.Column("error_count", sa.Integer, nullable=False, server_default="0"),
        sa.Column("retry_after", sa.BigInteger),
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
        sa.PrimaryKeyConstraint("id", name="pk_thumbnails"),
        sa.ForeignKeyConstraint(["file_id"], ["library_files.id"], name="fk_thumbnails_file_id"),
        sa.UniqueConstraint(
            "file_id",
            "file_version",
            "size_px",
            "format",
            name="uq_thumbnails_file_id_file_version_size_px_format",
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_thumbnails_group", "thumbnails", ["group_key", "status"])
    for name, status, columns in (
        ("claim", "pending", ["created_at", "id"]),
        ("running", "running", ["id"]),
    ):
        condition = sa.text(f"status = '{status}'")
        op.create_index(
            f"ix_thumbnails_{name}",
            "thumbnails",
            columns,
            sqlite_where=condition,
            postgresql_where=condition,
        )


def _create_cleanup_jobs() -> None:
    op.create_table(
        "thumbnail_cleanup_jobs",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("group_key", sa.String(100), nullable=False),
        sa.Column("status", sa.String(32), nullable=False, server_default="pending"),
        sa.Column("execute_after", sa.BigInteger, nullable=False),
        sa.Column("error_code", sa.String(64)),
        sa.Column("error_message", sa.Text),
        sa.Column("worker_id", sa.String(128)),
        sa.Column("worker_heartbeat_at", sa.BigInteger),
        sa.Column("lease_expires_at", sa.BigInteger),
        sa.Column("lease_epoch", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("finished_at", sa.BigInteger),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_thumbnail_cleanup_jobs"),
        sqlite_autoincrement=True,
    )
    for name, status, columns in (
        ("claim", "pending", ["execute_after", "id"]),
        ("running", "running", ["id"]),
    ):
        condition = sa.text(f"status = '{status}'")
        op.create_index(
            f"ix_thumbnail_cleanup_jobs_{name}",
            "thumbnail_cleanup_jobs",
            columns,
            sqlite_where=condition,
            postgresql_where=condition,
        )


def downgrade() -> None:
    op.drop_table("thumbnail_cleanup_jobs")
    op.drop_table("thumbnails")
