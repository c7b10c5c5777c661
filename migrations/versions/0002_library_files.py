"""The files of the libraries, not yet with their hashes."""

import sqlalchemy as sa
from alembic import op

revision = "0002_library_files"
down_revision = "0001_libraries"
branch_labels = None
depends_on = None

Id = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "library_files",
        sa.Column("id", Id, autoincrement=True, nullable=False),
        sa.Column("library_id", sa.String(63), nullable=False),
        sa.Column("rel_path", sa.LargeBinary, nullable=False),
        sa.Column("media_type", sa.String(32)),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("mtime_ns", sa.BigInteger, nullable=False),
        sa.Column("device", sa.BigInteger),
        sa.Column("inode", sa.BigInteger),
        sa.Column("error_code", sa.String(64)),
        sa.Column("error_message", sa.Text),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_library_files"),
        sa.ForeignKeyConstraint(
            ["library_id"], ["libraries.slug"], name="fk_library_files_library_id"
        ),
        sa.UniqueConstraint("library_id", "rel_path", name="uq_library_files_library_id_rel_path"),
        sqlite_autoincrement=True,
    )
    failed = sa.text("error_code IS NOT NULL")
    op.create_index(
        "ix_library_files_error",
        "library_files",
        ["library_id", "rel_path"],
        sqlite_where=failed,
        postgresql_where=failed,
    )


def downgrade() -> None:
    op.drop_table("library_files")
