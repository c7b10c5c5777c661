"""Tokens in a database, and calls that carry them."""

from typing import Any

from sqlalchemy import insert

from mediaplane import tokens
from mediaplane.protocol import tables
from mediaplane.protocol.values import Role
from tests.support.databases import Databases


def add_token(
    database: Databases, role: Role = Role.ADMIN, tenant_id: str | None = None, **columns: Any
) -> str:
    """Add a token and return it; it is named after its role unless told otherwise."""
    token = tokens.generate()
    row = {"name": role, "created_by": "test", "role": role, "tenant_id": tenant_id} | columns
    with database.control.write() as conn:
        conn.execute(insert(tables.tokens).values(token_hash=tokens.digest(token), **row))
    return token


def bearing(token: str) -> tuple[tuple[str, str | bytes], ...]:
    """The metadata of a call that carries a token."""
    return (("authorization", f"Bearer {token}"),)
