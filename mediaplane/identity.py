"""Who makes the call that is being answered.

gRPC runs every call, streams included, in a context of its own, so what is set for one call is
seen by no other, whichever thread answers it.
"""

from contextvars import ContextVar
from dataclasses import dataclass

from mediaplane.protocol.values import Peer, Role


@dataclass(frozen=True)
class Caller:
    """Whose call it is, what they may do, and whose things they see."""

    # For people and the audit log: never a secret, never a path.
    name: str
    role: Role
    # None sees every tenant.
    tenant_id: str | None
    peer: Peer = Peer.LOCAL
    # UTC milliseconds; None for ever. Nothing that this caller makes lasts longer as a way in.
    expires_at: int | None = None


# Whoever reaches an open socket, and the planes themselves: the file system decided already.
LOCAL = Caller("local", Role.ADMIN, None)

_caller: ContextVar[Caller] = ContextVar("caller", default=LOCAL)


def caller() -> Caller:
    """Return who makes the call that is being answered; outside a call, the plane itself."""
    return _caller.get()


def identify(known: Caller) -> None:
    """Say whose call this is, for the rest of it."""
    _caller.set(known)
