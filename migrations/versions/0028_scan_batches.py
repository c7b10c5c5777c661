"""New files of a scan are staged by the thousands, in one row."""

import sqlalchemy as sa
from alembic import op

revision = "0028_scan_batches"
down_revision = "0027_large_files"
branch_labels = None
depends_on = None

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "scan_batches",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("session_id", Id, nullable=False),
        sa.Column("files", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_scan_batches"),
        sa.ForeignKeyConstraint(
            ["session_id"], ["scan_sessions.id"], name="fk_scan_batches_session_id"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_scan_batches_session", "scan_batches", ["session_id", "id"])


def downgrade() -> None:
    # Without its batches a scan would succeed and have missed files: it has to be done again.
    op.execute(
        "UPDATE scan_sessions SET status = 'failed', finished_at = started_at,"
        " error_code = 'scan_ended',"
        " error_message = 'The scan ended before its report was complete.'"
        " WHERE status = 'running' AND id IN (SELECT session_id FROM scan_batches)"
    )
    op.drop_table("scan_batches")
