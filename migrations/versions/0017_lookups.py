"""Indexes to look up missing files, and thumbnails and clean-ups by their group."""

import sqlalchemy as sa
from alembic import op

revision = "0017_lookups"
down_revision = "0016_media"
branch_labels = None
depends_on = None

INDEXES = (
    ("ix_library_files_missing", "library_files", ["id"],
     "is_missing AND content_hash IS NOT NULL"),
    ("ix_thumbnails_group_page", "thumbnails", ["group_key", "id"], None),
    ("ix_thumbnail_cleanup_jobs_group", "thumbnail_cleanup_jobs", ["group_key"],
     "status = 'pending'"),
)  # fmt: skip


def upgrade() -> None:
    for name, table, columns, condition in INDEXES:
        where = sa.text(condition) if condition else None
        op.create_index(name, table, columns, sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    for name, table, _columns, _condition in INDEXES:
        op.drop_index(name, table)
