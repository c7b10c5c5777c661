"""What a scan looks at, duplicate groups by what they free, and the jobs of a library."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0013_library_settings"
down_revision = "0012_lease_engine"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(JSONB(), "postgresql")
COLUMNS = (
    ("include_globs", JSON, sa.text("'[]'")),
    ("exclude_globs", JSON, sa.text("'[]'")),
    ("skips_hidden", sa.Boolean(), sa.false()),
    ("crosses_filesystems", sa.Boolean(), sa.false()),
    ("min_size_bytes", sa.BigInteger(), "0"),
)


def upgrade() -> None:
    for name, kind, default in COLUMNS:
        column = sa.Column(name, kind, nullable=False, server_default=default)
        op.add_column("libraries", column)
    op.create_index(
        "ix_duplicate_groups_reclaimable",
        "duplicate_groups",
        ["reclaimable_bytes", "hash_algorithm", "content_hash"],
    )
    of_library = sa.text("library_id IS NOT NULL")
    op.create_index(
        "ix_jobs_library",
        "jobs",
        ["library_id", "id"],
        sqlite_where=of_library,
        postgresql_where=of_library,
    )


def downgrade() -> None:
    op.drop_index("ix_jobs_library", "jobs")
    op.drop_index("ix_duplicate_groups_reclaimable", "duplicate_groups")
    for name, _kind, _default in reversed(COLUMNS):
        op.drop_column("libraries", name)
