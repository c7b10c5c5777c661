"""The building blocks of tables.py: metadata, column builders and partial indexes."""

from enum import StrEnum

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, TSVECTOR
from sqlalchemy.sql.elements import TextClause
from sqlalchemy.sql.schema import SchemaItem

from mediaplane.protocol.clock import now_ms

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

# SQLite numbers rows by itself only where the type is exactly INTEGER.
Id = BigInteger().with_variant(Integer(), "sqlite")
Json = JSON().with_variant(JSONB(), "postgresql")
# A tsvector on PostgreSQL; on SQLite the plain text that an FTS5 index covers.
SearchVector = TSVECTOR().with_variant(Text(), "sqlite")


def row_id() -> Column[int]:
    """Return the key of a table whose rows number themselves."""
    return Column("id", Id, primary_key=True, autoincrement=True)


def time_column(name: str, *, nullable: bool = True, stamped: bool = False) -> Column[int]:
    """Return a column of UTC milliseconds (see clock.py); a stamped one is set on insert."""
    is_stamped = stamped or name in ("created_at", "updated_at")
    default = now_ms() if is_stamped else None
    return Column(name, BigInteger, nullable=nullable and not is_stamped, default=default)


def value_column(name: str, legal: type[StrEnum], default: StrEnum | None = None) -> Column[str]:
    """Return a column of a closed value set; `new_table` adds its CHECK."""
    return Column(name, String(32), nullable=False, server_default=default, info={"legal": legal})


def count_column(name: str) -> Column[int]:
    """Return a column that counts from 0."""
    return Column(name, BigInteger, nullable=False, server_default="0")


def error_columns() -> list[SchemaItem]:
    """Return why a row failed: a stable code and a sentence for people."""
    return [Column("error_code", String(64)), Column("error_message", Text)]


def lease_columns() -> list[SchemaItem]:
    """Return the lease: who works on the row, until when, and which claim this is."""
    return [
        Column("worker_id", String(128)),
        time_column("worker_heartbeat_at"),
        time_column("lease_expires_at"),
        count_column("lease_epoch"),
    ]


def legal_values(column: Column[str]) -> str:
    """Return the SQL condition that a column holds one of its legal values."""
    listed = ", ".join(f"'{value}'" for value in column.info["legal"])
    return f"{column.name} IN ({listed})"


def partial_index(name: str, *columns: str | TextClause, where: str, unique: bool = False) -> Index:
    """Return a partial index that both databases build the same way."""
    condition = text(where)
    return Index(name, *columns, unique=unique, sqlite_where=condition, postgresql_where=condition)


def new_table(name: str, *items: SchemaItem) -> Table:
    """Return a table of this schema, with a CHECK for every column of values."""
    # AUTOINCREMENT: the id of a deleted row is never given to another.
    table = Table(name, metadata, *items, sqlite_autoincrement=True)
    for column in table.columns:
        if "legal" in column.info:
            table.append_constraint(CheckConstraint(legal_values(column), name=column.name))
    return table
