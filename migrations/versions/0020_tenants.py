"""Duplicate groups, pages of jobs and clean-ups of thumbnails, each of a tenant."""

import sqlalchemy as sa
from alembic import op

revision = "0020_tenants"
down_revision = "0019_schedules"
branch_labels = None
depends_on = None

GROUP_INDEXES = {
    "ix_duplicate_groups_page": ["rank_by_count", "rank_by_size", "hash_algorithm", "content_hash"],
    "ix_duplicate_groups_reclaimable": ["reclaimable_bytes", "hash_algorithm", "content_hash"],
}
NOW = {
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
    "postgresql": "CAST(extract(epoch FROM now()) * 1000 AS BIGINT)",
}


def upgrade() -> None:
    _make_groups("tenant_id")
    _index_jobs("tenant_id")
    op.add_column("thumbnail_cleanup_jobs", sa.Column("tenant_id", sa.String(63)))


def downgrade() -> None:
    op.drop_column("thumbnail_cleanup_jobs", "tenant_id")
    _index_jobs()
    _make_groups()


def _index_jobs(*tenant: str) -> None:
    op.drop_index("ix_jobs_page", "jobs")
    op.create_index("ix_jobs_page", "jobs", [*tenant, "created_at", "id"])


def _make_groups(*tenant: str) -> None:
    """Count the groups anew: one of several tenants falls apart, or comes together again."""
    op.drop_table("duplicate_groups")
    key = ["hash_algorithm", "content_hash", *tenant]
    _create_groups(key)
    _fill_groups(", ".join(key))
    for name, columns in GROUP_INDEXES.items():
        op.create_index(name, "duplicate_groups", [*tenant, *columns])


def _create_groups(key: list[str]) -> None:
    op.create_table(
        "duplicate_groups",
        sa.Column("hash_algorithm", sa.String(32), nullable=False),
        sa.Column("content_hash", sa.LargeBinary, nullable=False),
        *(
            sa.Column(name, sa.String(63), nullable=False, server_default="default")
            for name in key
            if name == "tenant_id"
        ),
        sa.Column("file_count", sa.BigInteger, nullable=False),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("total_size_bytes", sa.BigInteger, nullable=False),
        sa.Column("reclaimable_bytes", sa.BigInteger, nullable=False),
        sa.Column("rank_by_count", sa.BigInteger, sa.Computed("-file_count", persisted=True)),
        sa.Column("rank_by_size", sa.BigInteger, sa.Computed("-total_size_bytes", persisted=True)),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint(*key, name="pk_duplicate_groups"),
    )


def _fill_groups(key: str) -> None:
    op.execute(
        f"INSERT INTO duplicate_groups ({key}, file_count, size_bytes, total_size_bytes,"
        f" reclaimable_bytes, updated_at) SELECT {key}, count(*), min(size_bytes),"
        f" sum(size_bytes), sum(size_bytes) - min(size_bytes), {NOW[op.get_bind().dialect.name]}"
        " FROM library_files CROSS JOIN"
        " (SELECT slug, tenant_id FROM libraries WHERE deleted_at IS NULL) AS owner"
        " WHERE slug = library_id AND NOT is_missing AND NOT needs_hash"
        f" AND content_hash IS NOT NULL GROUP BY {key} HAVING count(*) > 1"
    )
