"""Scans of libraries: what each of them saw, and what it could not look at."""

import sqlalchemy as sa
from alembic import op

revision = "0005_scan_sessions"
down_revision = "0004_events"
branch_labels = None
depends_on = None

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    _create_sessions()
    _create_entries()
    _create_errors()


def _create_sessions() -> None:
    op.create_table(
        "scan_sessions",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("library_id", sa.String(63), nullable=False),
        sa.Column("job_id", Id, nullable=False),
        sa.Column("lease_epoch", sa.BigInteger, nullable=False),
        sa.Column("status", sa.String(32), nullable=False, server_default="running"),
        sa.Column("root_device", sa.BigInteger),
        sa.Column("root_inode", sa.BigInteger),
        sa.Column("walked_at", sa.BigInteger),
        sa.Column("seen_files", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("seen_bytes", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("new_files", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("changed_files", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("missing_files", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("errored_files", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("error_code", sa.String(64)),
        sa.Column("error_message", sa.Text),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("finished_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_scan_sessions"),
        sa.ForeignKeyConstraint(
            ["library_id"], ["libraries.slug"], name="fk_scan_sessions_library_id"
        ),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name="fk_scan_sessions_job_id"),
        sa.UniqueConstraint("job_id", "lease_epoch", name="uq_scan_sessions_job_id_lease_epoch"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_scan_sessions_library", "scan_sessions", ["library_id", sa.text("id DESC")])
    running = sa.text("status = 'running'")
    op.create_index(
        "ix_scan_sessions_running",
        "scan_sessions",
        ["id"],
        sqlite_where=running,
        postgresql_where=running,
    )


def _create_entries() -> None:
    op.create_table(
        "scan_entries",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("session_id", Id, nullable=False),
        sa.Column("change", sa.String(32), nullable=False),
        sa.Column("rel_path", sa.LargeBinary, nullable=False),
        sa.Column("media_type", sa.String(32)),
        sa.Column("size_bytes", sa.BigInteger),
        sa.Column("mtime_ns", sa.BigInteger),
        sa.Column("device", sa.BigInteger),
        sa.Column("inode", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_scan_entries"),
        sa.ForeignKeyConstraint(
            ["session_id"], ["scan_sessions.id"], name="fk_scan_entries_session_id"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_scan_entries_chunk", "scan_entries", ["session_id", "change", "id"])


def _create_errors() -> None:
    op.create_table(
        "scan_errors",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("session_id", Id, nullable=False),
        sa.Column("rel_path", sa.LargeBinary, nullable=False),
        sa.Column("error_code", sa.String(64)),
        sa.Column("error_message", sa.Text),
        sa.PrimaryKeyConstraint("id", name="pk_scan_errors"),
        sa.ForeignKeyConstraint(
            ["session_id"], ["scan_sessions.id"], name="fk_scan_errors_session_id"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_scan_errors_session", "scan_errors", ["session_id", "id"])


def downgrade() -> None:
    op.drop_table("scan_errors")
    op.drop_table("scan_entries")
    op.drop_table("scan_sessions")
