"""Schedules, and those that every installation begins with."""

import sqlalchemy as sa
from alembic import op

from mediaplane.protocol.clock import NOW_SQL

revision = "0019_schedules"
down_revision = "0018_access"
branch_labels = None
depends_on = None

VALUES = {
    "action": ("rescan", "verify", "sweep", "cleanup", "retention", "checkpoint"),
    "missed_runs": ("skip", "run_once"),
    "last_outcome": ("none", "running", "completed", "failed"),
}
# Only what the control plane has always done by itself is on from the start: nothing reads a
# library or removes a file before somebody has asked for it.
DEFAULTS = (
    ("rescan", "rescan", "0 3 * * *", "skip"),
    ("verify", "verify", "0 4 1 * *", "run_once"),
    ("sweep", "sweep", "0 5 * * 0", "run_once"),
    ("cleanup", "cleanup", "30 5 * * 0", "run_once"),
    ("checkpoint", "checkpoint", "15 * * * *", "skip"),
)


def upgrade() -> None:
    op.create_table(
        "schedules",
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("tenant_id", sa.String(63), nullable=False, server_default="default"),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("library_id", sa.String(63)),
        sa.Column("cron", sa.String(100), nullable=False),
        sa.Column("time_zone", sa.String(64), nullable=False, server_default="UTC"),
        sa.Column("missed_runs", sa.String(32), nullable=False, server_default="run_once"),
        sa.Column("is_enabled", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("next_run_at", sa.BigInteger),
        sa.Column("last_run_at", sa.BigInteger),
        sa.Column("last_outcome", sa.String(32), nullable=False, server_default="none"),
        sa.Column("last_error", sa.Text),
        sa.Column("last_job_id", sa.BigInteger),
        sa.Column("run_position", sa.String(63)),
        sa.Column("last_skip_at", sa.BigInteger),
        sa.Column("last_skip_reason", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_schedules"),
        sa.ForeignKeyConstraint(["library_id"], ["libraries.slug"], name="fk_schedules_library_id"),
        *(
            sa.CheckConstraint(f"{column} IN {values}", name=f"ck_schedules_{column}")
            for column, values in VALUES.items()
        ),
        sa.CheckConstraint(
            "is_enabled = (next_run_at IS NOT NULL)", name="ck_schedules_next_run_at"
        ),
    )
    op.create_index("ix_schedules_due", "schedules", ["next_run_at"])
    op.create_index("ix_schedules_library", "schedules", ["library_id"])
    running = sa.text("last_outcome = 'running'")
    op.create_index(
        "ix_schedules_running",
        "schedules",
        ["name"],
        sqlite_where=running,
        postgresql_where=running,
    )
    now = NOW_SQL[op.get_bind().dialect.name]
    insert = "INSERT INTO schedules (created_at, updated_at, name, action, cron, missed_runs"
    for name, action, cron, missed_runs in DEFAULTS:
        row = f"'{name}', '{action}', '{cron}', '{missed_runs}'"
        op.execute(f"{insert}) VALUES ({now}, {now}, {row})")
    row = "'retention', 'retention', '@hourly', 'run_once'"
    # Due at once: it first runs when the first control plane starts.
    op.execute(f"{insert}, is_enabled, next_run_at) VALUES ({now}, {now}, {row}, true, {now})")


def downgrade() -> None:
    op.drop_table("schedules")
