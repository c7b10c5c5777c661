"""What the lease engine counts, how it finds due work, and when a worker was last commanded."""

import sqlalchemy as sa
from alembic import op

from migrations.rebuild import altered, check_references

revision = "0012_lease_engine"
down_revision = "0011_duplicate_group_query_indexes"
branch_labels = None
depends_on = None

COUNTERS = ("completed_items", "failed_items", "skipped_items", "cancelled_items")
KINDS = "'scan', 'hash', 'delete', 'thumbnail'"
# Rows of these tables change status many times a second: without frequent vacuuming the claim
# reads ever more dead rows.
BUSY = ("jobs", "job_items", "thumbnails", "assets")
VACUUM = ("autovacuum_vacuum_scale_factor", "autovacuum_vacuum_threshold")


def upgrade() -> None:
    op.drop_index("ix_jobs_claim", "jobs")
    op.drop_index("ix_jobs_retryable", "jobs")
    op.drop_index("ix_jobs_page", "jobs")
    with altered("jobs") as batch:
        for counter in COUNTERS:
            batch.add_column(
                sa.Column(counter, sa.BigInteger(), nullable=False, server_default="0")
            )
        batch.add_column(sa.Column("progress_at", sa.BigInteger()))
        batch.drop_constraint("ck_jobs_kind", type_="check")
        batch.create_check_constraint("ck_jobs_kind", f"kind IN ({KINDS}, 'probe')")
    check_references()
    op.create_index("ix_jobs_page", "jobs", ["created_at", "id"])
    _index("ix_jobs_claim", "pending", sa.text("priority DESC"), "created_at", "id")
    _index("ix_jobs_retryable", "retryable", "retry_after", "id")
    cut = sa.text("status = 'running' AND total_items IS NOT NULL")
    op.create_index(
        "ix_jobs_cut",
        "jobs",
        [sa.text("priority DESC"), "created_at", "id"],
        sqlite_where=cut,
        postgresql_where=cut,
    )
    with_retry = sa.text("retry_of IS NOT NULL")
    op.create_index(
        "ix_jobs_retry_of",
        "jobs",
        ["retry_of"],
        sqlite_where=with_retry,
        postgresql_where=with_retry,
    )
    op.add_column("worker_status", sa.Column("commanded_at", sa.BigInteger()))
    _count_finished_items()
    if op.get_bind().dialect.name == "postgresql":
        op.drop_constraint("fk_events_job_id", "events", type_="foreignkey")
        for table in BUSY:
            op.execute(f"ALTER TABLE {table} SET ({VACUUM[0]} = 0.01, {VACUUM[1]} = 1000)")


def _index(name: str, status: str, *columns: str | sa.TextClause) -> None:
    condition = sa.text(f"status = '{status}'")
    op.create_index(name, "jobs", [*columns], sqlite_where=condition, postgresql_where=condition)


def _count_finished_items() -> None:
    for counter, statuses in (
        ("completed_items", "'completed', 'skipped'"),
        ("failed_items", "'failed'"),
        ("skipped_items", "'skipped'"),
        ("cancelled_items", "'cancelled'"),
    ):
        op.execute(
            f"UPDATE jobs SET {counter} = (SELECT sum(i.total_items) FROM job_items i"
            f" WHERE i.job_id = jobs.id AND i.status IN ({statuses}))"
            " WHERE EXISTS (SELECT 1 FROM job_items i WHERE i.job_id = jobs.id"
            f" AND i.status IN ({statuses}))"
        )


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for table in BUSY:
            op.execute(f"ALTER TABLE {table} RESET ({', '.join(VACUUM)})")
    # An older version can neither run nor name them.
    probes = "(SELECT id FROM jobs WHERE kind = 'probe')"
    for table in ("events", "job_items"):
        op.execute(f"DELETE FROM {table} WHERE job_id IN {probes}")
    op.execute(f"UPDATE jobs SET retry_of = NULL WHERE retry_of IN {probes}")
    op.execute("DELETE FROM jobs WHERE kind = 'probe'")
    if op.get_bind().dialect.name == "postgresql":
        op.create_foreign_key("fk_events_job_id", "events", "jobs", ["job_id"], ["id"])
    op.drop_column("worker_status", "commanded_at")
    for name in ("page", "claim", "cut", "retryable", "retry_of"):
        op.drop_index(f"ix_jobs_{name}", "jobs")
    with altered("jobs") as batch:
        batch.drop_constraint("ck_jobs_kind", type_="check")
        batch.create_check_constraint("ck_jobs_kind", f"kind IN ({KINDS})")
        for counter in COUNTERS:
            batch.drop_column(counter)
        batch.drop_column("progress_at")
    check_references()
    op.create_index("ix_jobs_page", "jobs", [sa.text("created_at DESC"), sa.text("id DESC")])
    _index("ix_jobs_claim", "pending", "kind", sa.text("priority DESC"), "created_at", "id")
    _index("ix_jobs_retryable", "retryable", "id")
