"""Large files that want a hash are found in the order of their sizes."""

import sqlalchemy as sa
from alembic import op

revision = "0027_large_files"
down_revision = "0026_thumbnail_claims"
branch_labels = None
depends_on = None

INDEX = "ix_library_files_large_needs_hash"


def upgrade() -> None:
    where = sa.text("needs_hash AND size_bytes > 262144")
    op.create_index(
        INDEX,
        "library_files",
        ["size_bytes", "id"],
        sqlite_where=where,
        postgresql_where=where,
    )


def downgrade() -> None:
    op.drop_index(INDEX, "library_files")
