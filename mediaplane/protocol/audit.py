"""Who called what: an entry for every call that changes something.

The entry of a call that changes something is written in the transaction of the change itself, so
that there is neither without the other, whatever dies at whatever moment.
"""

import re
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, update

from mediaplane.protocol.clock import NOW_SQL
from mediaplane.protocol.driver import Row, query_after, query_directly
from mediaplane.protocol.tables import audit_log
from mediaplane.protocol.values import Peer, Role

# Only what can be a resource name is kept: a request may hold anything in its place.
_RESOURCE = re.compile(r"[A-Za-z]{1,32}(?:/[A-Za-z0-9._:@-]{1,80}){1,3}")
_DONE = "OK"
_COLUMNS = ("caller", "role", "tenant_id", "peer", "method", "resource", "code")
_INSERT = (
    f"INSERT INTO audit_log (called_at, {', '.join(_COLUMNS)})"
    f" SELECT {{now}}, {', '.join(f'CAST(:entry_{column} AS TEXT)' for column in _COLUMNS)}"
)
# Where a connection keeps the lock under which the one change of its transaction is to be made.
LOCK = "mediaplane_lock"
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(:lock, 0))"


@dataclass
class Entry:
    """A call that may change something."""

    caller: str
    role: Role
    tenant_id: str | None
    peer: Peer
    method: str
    resource: str = ""
    code: str = _DONE
    # Its row, once one is committed.
    row_id: int | None = None

    def concerns(self, resource: str) -> None:
        """Say what the call is about, unless that is no name of anything."""
        self.resource = resource if _RESOURCE.fullmatch(resource) else ""


_entry: ContextVar[Entry | None] = ContextVar("audit_entry", default=None)


def begin(entry: Entry) -> None:
    """Have the next write transaction of this call write its entry."""
    _entry.set(entry)


def pending() -> Entry | None:
    """Return the entry of the call that is being answered, as long as it has no row."""
    entry = _entry.get()
    return entry if entry is not None and entry.row_id is None else None


def concerns(resource: str) -> None:
    """Say what the call that is being answered is about, when the request could not name it."""
    entry = _entry.get()
    if entry is not None:
        entry.concerns(resource)


def append(conn: Connection, entry: Entry) -> int:
    """Write an entry; it has its row when the transaction has committed."""
    # Straight to the driver: every change of every caller comes through here.
    sql = _INSERT.format(now=NOW_SQL[conn.dialect.name]) + " RETURNING id"
    (added,) = query_directly(conn, sql, _values(entry))
    return int(added["id"])


def change(conn: Connection, sql: str, bound: Mapping[str, Any]) -> list[Row]:
    """Make the one change of a write transaction and return its rows.

    On PostgreSQL its lock and its entry go with it, all in one round trip; where nothing changes,
    there is no entry.
    """
    lock = conn.info.pop(LOCK, None)
    if lock is None:
        return query_directly(conn, sql, bound)
    entry = pending()
    bound = {**bound, "lock": lock}
    if entry is None:
        return query_after(conn, _LOCK, sql, bound)
    insert = _INSERT.format(now=NOW_SQL[conn.dialect.name])
    with_entry = (
        f"WITH changed AS ({sql}), entry AS ({insert}"
        " WHERE EXISTS (SELECT FROM changed) RETURNING id AS entry_id)"
        " SELECT changed.*, (SELECT entry_id FROM entry) AS entry_id FROM changed"
    )
    rows = query_after(conn, _LOCK, with_entry, {**bound, **_values(entry)})
    if rows:
        entry.row_id = rows[0]["entry_id"]
    return rows


def correct(conn: Connection, entry: Entry) -> None:
    """Say how a call really ended that failed after its change."""
    conn.execute(update(audit_log).where(audit_log.c.id == entry.row_id).values(code=entry.code))


def _values(entry: Entry) -> dict[str, str | None]:
    return {
        "entry_caller": entry.caller[:100],
        "entry_role": entry.role,
        "entry_tenant_id": entry.tenant_id,
        "entry_peer": entry.peer,
        "entry_method": entry.method[:100],
        "entry_resource": entry.resource[:200],
        "entry_code": entry.code,
    }
