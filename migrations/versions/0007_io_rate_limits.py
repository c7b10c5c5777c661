"""The I/O budget that all workers share."""

import sqlalchemy as sa
from alembic import op

revision = "0007_io_rate_limits"
down_revision = "0006_thumbnails"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "io_rate_limits",
        sa.Column("bucket_key", sa.String(64), nullable=False),
        sa.Column("next_available_at_ms", sa.BigInteger, nullable=False, server_default="0"),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("bucket_key", name="pk_io_rate_limits"),
    )


def downgrade() -> None:
    op.drop_table("io_rate_limits")
