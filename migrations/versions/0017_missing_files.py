"""An index of the files that are missing and whose content is known."""

import sqlalchemy as sa
from alembic import op

revision = "0017_missing_files"
down_revision = "0016_media"
branch_labels = None
depends_on = None

MISSING = sa.text("is_missing AND content_hash IS NOT NULL")


def upgrade() -> None:
    op.create_index(
        "ix_library_files_missing",
        "library_files",
        ["id"],
        sqlite_where=MISSING,
        postgresql_where=MISSING,
    )


def downgrade() -> None:
    op.drop_index("ix_library_files_missing", "library_files")
