"""Thumbnails are claimed by id, which is the order in which they were asked for."""

import sqlalchemy as sa
from alembic import op

revision = "0026_thumbnail_claims"
down_revision = "0025_active_verify"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _order_by("media_type", "id")


def downgrade() -> None:
    _order_by("media_type", "created_at", "id")


def _order_by(*columns: str) -> None:
    where = sa.text("status = 'pending'")
    op.drop_index("ix_thumbnails_claim", "thumbnails")
    op.create_index(
        "ix_thumbnails_claim",
        "thumbnails",
        columns,
        sqlite_where=where,
        postgresql_where=where,
    )
