"""Tokens, and who changed what."""

import sqlalchemy as sa
from alembic import op

revision = "0018_access"
down_revision = "0017_lookups"
branch_labels = None
depends_on = None

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
ROLES = "role IN ('viewer', 'operator', 'admin', 'worker')"
PEERS = "peer IN ('local', 'token', 'certificate')"


def upgrade() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("token_hash", sa.LargeBinary, nullable=False),
        sa.Column("role", sa.String(32), nullable=False),
        sa.Column("tenant_id", sa.String(63)),
        sa.Column("created_by", sa.String(100), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("expires_at", sa.BigInteger),
        sa.Column("revoked_at", sa.BigInteger),
        sa.Column("last_used_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("token_hash", name="uq_tokens_token_hash"),
        sa.CheckConstraint(ROLES, name="ck_tokens_role"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "audit_log",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("called_at", sa.BigInteger, nullable=False),
        sa.Column("caller", sa.String(100), nullable=False),
        sa.Column("role", sa.String(32), nullable=False),
        sa.Column("tenant_id", sa.String(63)),
        sa.Column("peer", sa.String(32), nullable=False),
        sa.Column("method", sa.String(100), nullable=False),
        sa.Column("resource", sa.String(200), nullable=False),
        sa.Column("code", sa.String(32), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit_log"),
        sa.CheckConstraint(ROLES, name="ck_audit_log_role"),
        sa.CheckConstraint(PEERS, name="ck_audit_log_peer"),
        sqlite_autoincrement=True,
    )
    of_tenants = sa.text("tenant_id IS NOT NULL")
    op.create_index(
        "ix_audit_log_tenant",
        "audit_log",
        ["tenant_id", "id"],
        sqlite_where=of_tenants,
        postgresql_where=of_tenants,
    )


def downgrade() -> None:
    op.drop_table("audit_log")
    op.drop_table("tokens")
