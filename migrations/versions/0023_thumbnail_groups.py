"""One index of the thumbnails of a group in place of two: each new thumbnail pays for every one."""

from alembic import op

revision = "0023_thumbnail_groups"
down_revision = "0022_traces"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_index("ix_thumbnails_group", "thumbnails")


def downgrade() -> None:
    op.create_index("ix_thumbnails_group", "thumbnails", ["group_key", "status"])
