"""What is known of pictures and videos, and indexes to claim them by."""

import sqlalchemy as sa
from alembic import op

revision = "0016_media"
down_revision = "0015_prefix_and_end"
branch_labels = None
depends_on = None

CLAIMS = (
    ("ix_assets_claim_extract", "assets", ["id"], ["type", "library_id", "id"]),
    ("ix_thumbnails_claim", "thumbnails", ["created_at", "id"], ["media_type", "created_at", "id"]),
)
AT_REST = ("failed", "poisoned")
COLUMNS = ("version", "width", "height", "duration_ms", "poster_ms", "is_degraded")


def upgrade() -> None:
    for column in (
        sa.Column("version", sa.String(100)),
        sa.Column("width", sa.Integer),
        sa.Column("height", sa.Integer),
        sa.Column("duration_ms", sa.BigInteger),
        sa.Column("poster_ms", sa.BigInteger),
        sa.Column("is_degraded", sa.Boolean, nullable=False, server_default=sa.false()),
    ):
        op.add_column("assets", column)
    for name, table, _before, columns in CLAIMS:
        op.drop_index(name, table)
        _index(name, table, columns, "pending")
    for status in AT_REST:
        _index(f"ix_assets_{status}", "assets", ["library_id", "id"], status)


def downgrade() -> None:
    for status in AT_REST:
        op.drop_index(f"ix_assets_{status}", "assets")
    for name, table, columns, _after in CLAIMS:
        op.drop_index(name, table)
        _index(name, table, columns, "pending")
    for column in COLUMNS:
        op.drop_column("assets", column)


def _index(name: str, table: str, columns: list[str], status: str) -> None:
    where = sa.text(f"status = '{status}'")
    op.create_index(name, table, columns, sqlite_where=where, postgresql_where=where)
