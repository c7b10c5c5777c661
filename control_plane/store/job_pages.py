"""Jobs as they are shown, one by its id and pages of them: by the shortest way there is."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection

from control_plane.store import tenants
from control_plane.store.sql import owned
from mediaplane.protocol import texts
from mediaplane.protocol.driver import Listed, Values, query_values
from mediaplane.protocol.tables import jobs

# What is shown of a job, in this order: where it stands in the page, what its message has by
# another name or not at all, and what it has by the same name.
SAME_NAMED = (
    "priority", "progress", "processed_items", "total_items", "total_bytes", "attempts",
    "max_attempts", "error_code", "error_message", "skip_reason", "request_id", "completed_items",
    "failed_items", "skipped_items", "cancelled_items",
)  # fmt: skip
SHOWN = (
    "created_at", "id", "tenant_id", "kind", "status", "library_id", "worker_id", "retry_of",
    "started_at", "updated_at", "finished_at", "retry_after", "cancel_requested_at", "payload",
    *SAME_NAMED,
)  # fmt: skip
# The payload as text and of few, because no other is looked into.
_SHOWN = ", ".join(SHOWN).replace(
    "payload", "CASE kind WHEN 'probe' THEN CAST(payload AS TEXT) END AS payload"
)

# The places behind a job in the order of a page, each by one search in the index. With an OR, all
# pages before would be read again.
_BEFORE = {
    # In a comparison of both SQLite takes no heed that the index has the id too: it would step over
    # all jobs of that moment. Two searches it merges.
    "sqlite": ["created_at = :created_at AND id < :id", "created_at < :created_at"],
    "postgresql": ["(created_at, id) < (:created_at, :id)"],
}

# Gives what a page has of a job, the values of `SHOWN`.
values = texts.reader(
    [str if name == "payload" else jobs.columns[name].type.python_type for name in SHOWN]
)


def one(conn: Connection, tenant_id: str | None, job_id: int) -> Values | None:
    """Return a job of a tenant, or of any, as the values of `SHOWN`."""
    query = f"SELECT {_SHOWN} FROM jobs WHERE id = :id{owned('jobs', tenant_id)}"
    found = query_values(conn, query, {"id": job_id, "tenant": tenant_id})
    return found[0] if found else None


def page(
    conn: Connection,
    tenant_id: str | None,
    *,
    limit: int,
    before: tuple[int, int] | None,
    statuses: Sequence[str],
    kinds: Sequence[str],
) -> list[Listed]:
    """Return jobs of a tenant, or of all, newest first from behind a creation time and an id.

    `values` has those of each.
    """
    query = _query(conn.dialect.name, limit, before is not None, len(statuses), len(kinds))
    bound: dict[str, Any] = {f"status_{place}": status for place, status in enumerate(statuses)}
    bound |= {f"kind_{place}": kind for place, kind in enumerate(kinds)}
    if before:
        bound["created_at"], bound["id"] = before
    found = tenants.query_each_whole(conn, tenant_id, "jobs", query, bound)
    if tenant_id is None and found and values(found[0])[2] != values(found[-1])[2]:
        found.sort(key=lambda row: values(row)[:2], reverse=True)
    return found[:limit]


# Remembered, because to write it out took a tenth of the time of a page.
@lru_cache(maxsize=64)
def _query(dialect: str, limit: int, is_later: bool, statuses: int, kinds: int) -> str:
    """Return the query of a page of a tenant's jobs with one of so many statuses and kinds."""
    conditions = ["tenant_id = :tenant"]
    for column, number in (("status", statuses), ("kind", kinds)):
        if number:
            chosen = ", ".join(f":{column}_{place}" for place in range(number))
            conditions.append(f"{column} IN ({chosen})")
    chosen_jobs = f"SELECT {_SHOWN} FROM jobs WHERE {' AND '.join(conditions)} AND "
    # The limit is written out: as a parameter, PostgreSQL would plan the query anew each time.
    places = _BEFORE[dialect] if is_later else ["true"]
    found = " UNION ALL ".join(chosen_jobs + place for place in places)
    return f"{found} ORDER BY created_at DESC, id DESC LIMIT {limit}"
