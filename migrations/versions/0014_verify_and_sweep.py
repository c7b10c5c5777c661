"""Jobs that verify and sweep, and the hash of a file's beginning."""

import sqlalchemy as sa
from alembic import op

from migrations.rebuild import altered, check_references

revision = "0014_verify_and_sweep"
down_revision = "0013_library_settings"
branch_labels = None
depends_on = None

KINDS = "'scan', 'hash', 'delete', 'thumbnail', 'probe'"
WITH_PREFIX = sa.text("prefix_hash IS NOT NULL AND NOT is_missing")


def upgrade() -> None:
    with altered("jobs") as batch:
        batch.drop_constraint("ck_jobs_kind", type_="check")
        batch.create_check_constraint("ck_jobs_kind", f"kind IN ({KINDS}, 'verify', 'sweep')")
    check_references()
    op.add_column("library_files", sa.Column("prefix_hash", sa.LargeBinary()))
    op.create_index(
        "ix_library_files_prefix",
        "library_files",
        ["size_bytes", "prefix_hash"],
        sqlite_where=WITH_PREFIX,
        postgresql_where=WITH_PREFIX,
    )


def downgrade() -> None:
    op.drop_index("ix_library_files_prefix", "library_files")
    op.drop_column("library_files", "prefix_hash")
    # An older version can neither run nor name them.
    unknown = "(SELECT id FROM jobs WHERE kind IN ('verify', 'sweep'))"
    for table in ("events", "job_items"):
        op.execute(f"DELETE FROM {table} WHERE job_id IN {unknown}")
    op.execute(f"UPDATE jobs SET retry_of = NULL WHERE retry_of IN {unknown}")
    op.execute("DELETE FROM jobs WHERE kind IN ('verify', 'sweep')")
    with altered("jobs") as batch:
        batch.drop_constraint("ck_jobs_kind", type_="check")
        batch.create_check_constraint("ck_jobs_kind", f"kind IN ({KINDS})")
    check_references()
