"""An index of the verify jobs that have not ended: of other jobs there may be very many."""

import sqlalchemy as sa
from alembic import op

revision = "0025_active_verify"
down_revision = "0024_regrouping"
branch_labels = None
depends_on = None

_IS_ACTIVE = "kind = 'verify' AND status IN ('pending', 'running', 'retryable')"


def upgrade() -> None:
    where = sa.text(_IS_ACTIVE)
    op.create_index(
        "ix_jobs_active_verify",
        "jobs",
        ["library_id"],
        sqlite_where=where,
        postgresql_where=where,
    )


def downgrade() -> None:
    op.drop_index("ix_jobs_active_verify", "jobs")
