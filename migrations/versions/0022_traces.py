"""The span in which a job was asked for."""

import sqlalchemy as sa
from alembic import op

revision = "0022_traces"
down_revision = "0021_single_checkpoint"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("trace_parent", sa.String(55)))


def downgrade() -> None:
    op.drop_column("jobs", "trace_parent")
