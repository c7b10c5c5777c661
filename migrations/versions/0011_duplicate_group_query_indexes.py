"""Hashes of the library files, the index that groups them, and the groups of equal files.

A database of an older origin may have any of the four columns already: those are kept and brought
into form. A hash that cannot be one, or whose algorithm is not known, is taken away.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from migrations.rebuild import altered, check_references

revision = "0011_duplicate_group_query_indexes"
down_revision = "0010_protocol_values"
branch_labels = None
depends_on = None

COLUMNS: dict[str, dict[str, Any]] = {
    "is_missing": {"type_": sa.Boolean(), "nullable": False, "server_default": sa.false()},
    "needs_hash": {"type_": sa.Boolean(), "nullable": False, "server_default": sa.false()},
    "hash_algorithm": {"type_": sa.String(32), "nullable": True, "server_default": None},
    "content_hash": {"type_": sa.LargeBinary(), "nullable": True, "server_default": None},
}
CHECKS = {
    "ck_library_files_hash_algorithm": "hash_algorithm IN ('blake3', 'sha256')",
    "ck_library_files_hash_is_whole": "(content_hash IS NULL) = (hash_algorithm IS NULL)",
    "ck_library_files_content_hash": "length(content_hash) = 32",
}
INDEXES = {
    "ix_library_files_dedup_group": (
        ["hash_algorithm", "content_hash", "id"],
        "NOT is_missing AND NOT needs_hash AND content_hash IS NOT NULL",
    ),
    "ix_library_files_size": (["size_bytes", "device", "inode", "id"], "NOT is_missing"),
    "ix_library_files_needs_hash": (["id"], "needs_hash"),
}
NOW = {
    "sqlite": "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
    "postgresql": "CAST(extract(epoch FROM now()) * 1000 AS BIGINT)",
}


def upgrade() -> None:
    present = _add_missing_columns()
    _repair_values()
    with altered("library_files") as batch:
        for name in present:
            batch.alter_column(name, **COLUMNS[name])
        for check, condition in CHECKS.items():
            batch.create_check_constraint(check, condition)
    check_references()
    for index, (columns, where) in INDEXES.items():
        op.drop_index(index, "library_files", if_exists=True)
        op.create_index(
            index,
            "library_files",
            columns,
            sqlite_where=sa.text(where),
            postgresql_where=sa.text(where),
        )
    _create_duplicate_groups()
    _fill_duplicate_groups()


def _add_missing_columns() -> list[str]:
    existing = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("library_files")}
    for name, form in COLUMNS.items():
        if name not in existing:
            op.add_column(
                "library_files",
                sa.Column(
                    name,
                    form["type_"],
                    nullable=form["nullable"],
                    server_default=form["server_default"],
                ),
            )
    return [name for name in COLUMNS if name in existing]


def _repair_values() -> None:
    for flag in ("is_missing", "needs_hash"):
        op.execute(f"UPDATE library_files SET {flag} = false WHERE {flag} IS NULL")
    op.execute(
        "UPDATE library_files SET hash_algorithm = lower(hash_algorithm)"
        " WHERE hash_algorithm <> lower(hash_algorithm)"
    )
    op.execute(
        "UPDATE library_files SET hash_algorithm = NULL, content_hash = NULL"
        " WHERE (hash_algorithm IS NOT NULL OR content_hash IS NOT NULL)"
        " AND (hash_algorithm IS NULL OR content_hash IS NULL OR length(content_hash) <> 32"
        " OR hash_algorithm NOT IN ('blake3', 'sha256'))"
    )


def _create_duplicate_groups() -> None:
    op.create_table(
        "duplicate_groups",
        sa.Column("hash_algorithm", sa.String(32), nullable=False),
        sa.Column("content_hash", sa.LargeBinary, nullable=False),
        sa.Column("file_count", sa.BigInteger, nullable=False),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("total_size_bytes", sa.BigInteger, nullable=False),
        sa.Column("reclaimable_bytes", sa.BigInteger, nullable=False),
        sa.Column("rank_by_count", sa.BigInteger, sa.Computed("-file_count", persisted=True)),
        sa.Column("rank_by_size", sa.BigInteger, sa.Computed("-total_size_bytes", persisted=True)),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("hash_algorithm", "content_hash", name="pk_duplicate_groups"),
    )
    op.create_index(
        "ix_duplicate_groups_page",
        "duplicate_groups",
        ["rank_by_count", "rank_by_size", "hash_algorithm", "content_hash"],
    )


def _fill_duplicate_groups() -> None:
    op.execute(
        "INSERT INTO duplicate_groups (hash_algorithm, content_hash, file_count, size_bytes,"
        " total_size_bytes, reclaimable_bytes, updated_at)"
        " SELECT hash_algorithm, content_hash, count(*), min(size_bytes), sum(size_bytes),"
        f" sum(size_bytes) - min(size_bytes), {NOW[op.get_bind().dialect.name]}"
        " FROM library_files"
        " WHERE NOT is_missing AND NOT needs_hash AND content_hash IS NOT NULL"
        " GROUP BY hash_algorithm, content_hash HAVING count(*) > 1"
    )


def downgrade() -> None:
    op.drop_table("duplicate_groups")
    for index in INDEXES:
        op.drop_index(index, "library_files")
    with altered("library_files") as batch:
        for check in CHECKS:
            batch.drop_constraint(check, type_="check")
        for name in COLUMNS:
            batch.drop_column(name)
    check_references()
