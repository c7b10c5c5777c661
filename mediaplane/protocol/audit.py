"""Who called what: an entry for every call that changes something.

The entry of a call that changes something is written in the transaction of the change itself, so
that there is neither without the other, whatever dies at whatever moment.
"""

import re
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, update

from mediaplane.protocol.clock import NOW_SQL
from mediaplane.protocol.driver import Values, query_after, query_directly, query_values
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
# Where the lock may have been left alone, tells a change whether it is held; until the commit.
_HOLD = "set_config('mediaplane.lock', 'held', true)"
IS_HELD = "current_setting('mediaplane.lock', true) = 'held'"


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


def change(
    conn: Connection, sql: str, bound: Mapping[str, Any], unless: str = ""
) -> Sequence[Values]:
    """Make the one change of a write transaction; return the values of its rows.

    On PostgreSQL its lock and its entry go with it, all in one round trip; where nothing changes,
    there is no entry. The lock is not waited for if `unless` is true there: a change that may come
    to nothing so has the condition `IS_HELD`.
    """
    lock = conn.info.pop(LOCK, None)
    if lock is None:
        return query_values(conn, sql, bound)
    first = f"{_LOCK}, {_HOLD} WHERE NOT {unless}" if unless else _LOCK
    bound = {**bound, "lock": lock}
    entry = pending()
    if entry is None:
        return query_after(conn, first, sql, bound)
    rows = query_after(conn, first, _with_entry(sql, conn.dialect.name), bound | _values(entry))
    if rows:
        entry.row_id = rows[0][0]
    return [values[1:] for values in rows]


@lru_cache(maxsize=64)
def _with_entry(sql: str, dialect: str) -> str:
    insert = _INSERT.format(now=NOW_SQL[dialect])
    return (
        f"WITH changed AS ({sql}), entry AS ({insert}"
        " WHERE EXISTS (SELECT FROM changed) RETURNING id AS entry_id)"
        " SELECT (SELECT entry_id FROM entry), changed.* FROM changed"
    )


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
