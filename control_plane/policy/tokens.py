"""Decides who may hand out which token, and when its use is written down."""

from dataclasses import dataclass

from sqlalchemy import Connection

from control_plane.store import tokens
from mediaplane.errors import InvalidArgument, NotFound, PermissionDenied
from mediaplane.identity import caller
from mediaplane.protocol.clock import database_time
from mediaplane.protocol.database import Database
from mediaplane.protocol.driver import Row
from mediaplane.protocol.values import Peer, Role
from mediaplane.tokens import Tokens, digest, generate

_MAX_NAME = 100
_DAY_SECONDS = 24 * 3600
_USUAL_DAYS = 90
_MAX_DAYS = 100 * 366


@dataclass(frozen=True)
class Wanted:
    """A token to be made."""

    name: str
    role: Role
    # None for every tenant.
    tenant_id: str | None
    # None for the usual time.
    lifetime_seconds: float | None
    never_expires: bool = False


def create(conn: Connection, wanted: Wanted, remote_max_days: float) -> tuple[Row, str]:
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
        expires_at=_end(conn, wanted, remote_max_days),
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


def _end(conn: Connection, wanted: Wanted, remote_max_days: float) -> int | None:
    maker = caller()
    if wanted.never_expires:
        if wanted.lifetime_seconds is not None:
            raise InvalidArgument("A token either has a lifetime or never expires; choose one.")
        if maker.peer is not Peer.LOCAL:
            raise PermissionDenied(
                "Only on the machine of the control plane, through its socket, can a token be made"
                " that never expires; give a lifetime."
            )
        return None
    max_days = _MAX_DAYS if maker.peer is Peer.LOCAL else remote_max_days
    now = database_time(conn)
    if wanted.lifetime_seconds is None:
        usual = now + int(min(_USUAL_DAYS, max_days) * _DAY_SECONDS * 1000)
        return usual if maker.expires_at is None else min(usual, maker.expires_at)
    if not 0 < wanted.lifetime_seconds <= _MAX_DAYS * _DAY_SECONDS:
        raise InvalidArgument("lifetime must be more than nothing and at most a hundred years.")
    if wanted.lifetime_seconds > max_days * _DAY_SECONDS:
        raise PermissionDenied(
            f"A token made from another machine works for at most {max_days:g} days"
            " (MEDIAPLANE_REMOTE_TOKEN_DAYS); choose a shorter lifetime."
        )
    end = now + int(wanted.lifetime_seconds * 1000)
    if maker.expires_at is not None and end > maker.expires_at:
        raise PermissionDenied("The token would outlive your own; choose a shorter lifetime.")
    return end
