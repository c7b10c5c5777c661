"""AI models and the libraries that name one as their goal."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001_libraries"
down_revision = None
branch_labels = None
depends_on = None

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
Json = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "ai_models",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("version", sa.String(100), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_ai_models"),
        sa.UniqueConstraint("name", "version", name="uq_ai_models_name_version"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "libraries",
        sa.Column("slug", sa.String(63), nullable=False),
        sa.Column("tenant_id", sa.String(63), nullable=False, server_default="default"),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("absolute_path", sa.LargeBinary, nullable=False),
        sa.Column("root_device", sa.BigInteger),
        sa.Column("root_inode", sa.BigInteger),
        sa.Column("is_active", sa.Boolean, nullable=False, server_default=sa.true()),
        sa.Column("scan_status", sa.String(32), nullable=False, server_default="idle"),
        sa.Column("hash_policy", sa.String(32), nullable=False, server_default="candidates"),
        sa.Column("hash_algorithm", sa.String(32), nullable=False, server_default="blake3"),
        sa.Column("target_tagger_id", Id),
        sa.Column("sampling_limit", sa.Integer, nullable=False, server_default="100"),
        sa.Column("sampling_policy", Json, nullable=False, server_default=sa.text("'{}'")),
        sa.Column("deleted_at", sa.BigInteger),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("slug", name="pk_libraries"),
        sa.ForeignKeyConstraint(
            ["target_tagger_id"], ["ai_models.id"], name="fk_libraries_target_tagger_id"
        ),
    )


def downgrade() -> None:
    op.drop_table("libraries")
    op.drop_table("ai_models")
