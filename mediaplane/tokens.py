"""Bearer tokens: what they look like, and whose call one makes."""

import hashlib
import secrets
import threading
import time
from dataclasses import dataclass

from sqlalchemy import or_, select

from mediaplane.errors import Unauthenticated
from mediaplane.identity import Caller
from mediaplane.protocol.clock import now_ms
from mediaplane.protocol.database import Database
from mediaplane.protocol.tables import tokens
from mediaplane.protocol.values import Peer, Role

PREFIX = "mp_"
# How long a token that was revoked, or has expired, may still be taken for good.
REMEMBERED_SECONDS = 2.0
_LENGTH = len(PREFIX) + 43  # 256 bits in base64url
_MAX_REMEMBERED = 10_000


@dataclass(frozen=True)
class _Remembered:
    token_id: int
    caller: Caller
    until: float


class Tokens:
    """The tokens in the database, each remembered for a moment."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._remembered: dict[bytes, _Remembered] = {}
        self._used: set[int] = set()

    def caller(self, token: str) -> Caller:
        """Return whose call a token makes."""
        if not (token.startswith(PREFIX) and len(token) == _LENGTH):
            raise _refused()
        key = digest(token)
        known = self._remembered.get(key)
        if known is None or known.until <= time.monotonic():
            known = self._look_up(key)
        with self._lock:
            self._used.add(known.token_id)
        return known.caller

    def take_used(self) -> list[int]:
        """Return the tokens that were used since the last time this was asked."""
        with self._lock:
            used, self._used = sorted(self._used), set()
        return used

    def _look_up(self, key: bytes) -> _Remembered:
        query = select(tokens).where(
            tokens.c.token_hash == key,
            tokens.c.revoked_at.is_(None),
            or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > now_ms()),
        )
        with self._database.read() as conn:
            row = conn.execute(query).mappings().first()
        with self._lock:
            if row is None:
                self._remembered.pop(key, None)
                raise _refused()
            if len(self._remembered) >= _MAX_REMEMBERED:
                self._remembered.clear()
            caller = Caller(
                row["name"], Role(row["role"]), row["tenant_id"], Peer.TOKEN, row["expires_at"]
            )
            found = _Remembered(row["id"], caller, time.monotonic() + REMEMBERED_SECONDS)
            self._remembered[key] = found
        return found


def generate() -> str:
    """Return a new token."""
    return PREFIX + secrets.token_urlsafe(32)


def digest(token: str) -> bytes:
    """Return what is stored of a token."""
    return hashlib.sha256(token.encode()).digest()


def _refused() -> Unauthenticated:
    # Alike for unknown, expired and revoked: who holds no token learns nothing about them.
    return Unauthenticated(
        "The token is not valid: it is unknown, expired or revoked. Ask an administrator for a new"
        " one; they make it with `mediaplane token create`."
    )
