"""Decides who may hand out which token, and when its use is written down."""

from dataclasses import dataclass

from sqlalchemy import Connection

from control_plane.store import tokens
from mediaplane.errors import InvalidArgument, NotFound, PermissionDenied
from mediaplane.identity import caller
from mediaplane.protocol.clock import database_time
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Row
from mediaplane.protocol.values import Role
from mediaplane.tokens import Tokens, digest, generate

_MAX_NAME = 100
_MAX_SECONDS = 100 * 366 * 24 * 3600


@dataclass(frozen=True)
class Wanted:
    """A token to be made."""

    name: str
    role: Role
    # None for every tenant.
    tenant_id: str | None
    # None for as long as the maker may.
    lifetime_seconds: float | None


def create(conn: Connection, wanted: Wanted) -> tuple[Row, str]:
    """Make a token that reaches no further than its maker; return its row and the token."""
    name = wanted.name.strip()
    if not 1 <= len(name) <= _MAX_NAME or not name.isprintable():
        raise InvalidArgument(
            f"The name of a token has 1 to {_MAX_NAME} printable characters and says who uses it."
        )
    token = generate()
    row = tokens.add(
        conn,
        name=name,
        token_hash=digest(token),
        role=wanted.role,
        tenant_id=wanted.tenant_id,
        created_by=caller().name,
        expires_at=_end(conn, wanted.lifetime_seconds),
    )
    return row, token


def revoke(conn: Connection, token_id: int) -> Row:
    """Take a token out of use."""
    row = tokens.revoke(conn, token_id, caller().tenant_id)
    if row is None:
        raise NotFound(f"There is no token {token_id}; `mediaplane token list` shows them.")
    return row


def note_use(database: Database, known: Tokens) -> None:
    """Write down which tokens were used since the last time."""
    used = known.take_used()
    if used:
        with database.write() as conn:
            tokens.note_use(conn, used)


def _end(conn: Connection, lifetime_seconds: float | None) -> int | None:
    latest = caller().expires_at
    if lifetime_seconds is None:
        return latest
    if not 0 < lifetime_seconds <= _MAX_SECONDS:
        raise InvalidArgument("lifetime must be more than nothing and at most a hundred years.")
    end = database_time(conn) + int(lifetime_seconds * 1000)
    if latest is not None and end > latest:
        raise PermissionDenied("The token would outlive your own; choose a shorter lifetime.")
    return end
