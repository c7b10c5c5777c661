"""Forgets the hashes of beginnings: from now on they cover the ends of the files as well."""

from alembic import op

revision = "0015_prefix_and_end"
down_revision = "0014_verify_and_sweep"
branch_labels = None
depends_on = None

# Two files of which one was hashed the old way and one the new would look different. What is not
# known counts as alike, and the next hash job reads it.
FORGET = "UPDATE library_files SET prefix_hash = NULL WHERE prefix_hash IS NOT NULL"


def upgrade() -> None:
    op.execute(FORGET)


def downgrade() -> None:
    op.execute(FORGET)
