"""How far the duplicate groups of a library that was hidden or shown are counted anew."""

import sqlalchemy as sa
from alembic import op

revision = "0024_regrouping"
down_revision = "0023_thumbnail_groups"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("libraries", sa.Column("regroup_from", sa.LargeBinary))


def downgrade() -> None:
    op.drop_column("libraries", "regroup_from")
