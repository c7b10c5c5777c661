"""Tokens: rows that hold a hash, never the token."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, func, insert, select, update

from mediaplane.protocol.clock import now_ms
from mediaplane.protocol.driver import Row
from mediaplane.protocol.tables import tokens


def add(conn: Connection, **columns: Any) -> Row:
    """Add a token and return its row."""
    return conn.execute(insert(tokens).values(**columns).returning(tokens)).mappings().one()


def page(conn: Connection, *, limit: int, after_id: int, tenant_id: str | None) -> list[Row]:
    """Return tokens by number; those of one tenant, or all."""
    query = select(tokens).where(tokens.c.id > after_id).order_by(tokens.c.id).limit(limit)
    if tenant_id is not None:
        query = query.where(tokens.c.tenant_id == tenant_id)
    return list(conn.execute(query).mappings())


def revoke(conn: Connection, token_id: int, tenant_id: str | None) -> Row | None:
    """Revoke a token, for the first time or again, and return it; None when there is none."""
    statement = (
        update(tokens)
        .where(tokens.c.id == token_id)
        .values(revoked_at=func.coalesce(tokens.c.revoked_at, now_ms()))
        .returning(tokens)
    )
    if tenant_id is not None:
        statement = statement.where(tokens.c.tenant_id == tenant_id)
    return conn.execute(statement).mappings().first()


def note_use(conn: Connection, token_ids: Sequence[int]) -> None:
    """Say of tokens that they are in use."""
    statement = update(tokens).where(tokens.c.id.in_(token_ids)).values(last_used_at=now_ms())
    conn.execute(statement)
