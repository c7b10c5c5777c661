"""What a move leaves behind: events of the job, its counters, and the end of its items."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.sql.elements import TextClause

from mediaplane.protocol.clock import NOW_SQL
from mediaplane.protocol.database import Topic, changed
from mediaplane.protocol.driver import Row
from mediaplane.protocol.lifecycle import Machine, Step
from mediaplane.protocol.statements import Told, among, id_list
from mediaplane.protocol.values import EventType

PROGRESS_MS = 500

_FIGURES = ("total_items", "completed_items", "failed_items", "skipped_items", "cancelled_items")
# Of each event about a job: the columns its payload shows, and whether it shows the job's own
# payload too (what is done to what).
_OF_JOB: dict[EventType, tuple[tuple[str, ...], bool]] = {
    EventType.JOB_ADDED: (("kind", "library_id"), True),
    EventType.JOB_STARTED: (("worker_id",), True),
    EventType.JOB_PROGRESS: (("processed_items", "progress", *_FIGURES), False),
    EventType.JOB_ERROR: (("error_code", "error_message"), False),
    EventType.JOB_CANCELLED: ((), False),
    EventType.JOB_DONE: (("status", "processed_items", *_FIGURES), False),
}
_KEYS = {"library_id": "library", "worker_id": "worker"}


def record(conn: Connection, machine: Machine, step: Step, rows: Sequence[Row]) -> None:
    """Append the events of a step that these rows have taken."""
    if not rows:
        return
    ids = [row["id"] for row in rows]
    for event in step.events:
        append(conn, event, ids, step.says)
    if machine.name == "jobs" and step.target == "pending":
        changed(conn, Topic.WORK)
    if step.name == "request_cancel":
        changed(conn, Topic.ORDERS)


def append(conn: Connection, event: EventType, ids: Sequence[int], says: str = "") -> None:
    """Append an event to the history of jobs, or of the jobs of these items."""
    dialect = conn.dialect.name
    bound = {"ids": id_list(ids, dialect)} | ({"says": says} if event is EventType.LOG else {})
    conn.execute(_insert(event, dialect), bound)
    changed(conn, Topic.NEWS)


def count(conn: Connection, step: Step, items: Sequence[Row]) -> None:
    """Add items that have ended to the counters of their jobs, and speak of the progress."""
    weights: dict[int, int] = {}
    for item in items:
        weights[item["job_id"]] = weights.get(item["job_id"], 0) + item["total_items"]
    statement = _count(step.counts, conn.dialect.name)
    for job_id, weight in sorted(weights.items()):
        conn.execute(statement, {"job": job_id, "weight": weight})
    spoken = speak_of_progress(conn, weights)
    if spoken:
        append(conn, EventType.JOB_PROGRESS, spoken)


def speak_of_progress(conn: Connection, job_ids: Iterable[int]) -> list[int]:
    """Return those of these jobs whose history may speak of progress now: twice a second."""
    dialect = conn.dialect.name
    rows = conn.execute(_speak(dialect), {"ids": id_list(job_ids, dialect)})
    return [row.id for row in rows]


def lock_jobs(conn: Connection, items: str, parameters: Mapping[str, Any]) -> list[int]:
    """Lock the jobs of items before the items: who ends a job locks in this order too."""
    return list(conn.scalars(_lock(items), parameters))


@lru_cache(maxsize=32)
def _insert(event: EventType, dialect: str) -> TextClause:
    of_items = event in (EventType.ITEM_DONE, EventType.ITEM_PROGRESS)
    source = f"{'job_items' if of_items else 'jobs'} WHERE {among('id', 'ids', dialect)}"
    return text(f"{_insert_from(event, dialect, source)} ORDER BY id")


# To build JSON costs PostgreSQL more than all the rest of an event. So the events of tiny jobs are
# made of parts that are the same for all rows of a statement.


def of_added_jobs(*, are_alike: bool) -> Told:
    """Return what tells of the jobs that a statement adds (PostgreSQL).

    When all are alike in kind and library, `:alike` is `alike()` of them.
    """
    columns, _has_task = _OF_JOB[EventType.JOB_ADDED]
    payload = "payload || CAST(:alike AS JSONB)" if are_alike else ""
    insert = _insert_from(EventType.JOB_ADDED, "postgresql", "moved", payload)
    return Told(insert, ("id", "payload", *columns))


def alike(kind: str, library_id: str | None) -> str:
    """Return what the addition of a job says beside what is to be done."""
    return json.dumps({"kind": kind, "library": library_id})


@lru_cache(maxsize=1)
def of_claimed_jobs() -> Told:
    """Return what tells of the jobs that a worker claims; `:claimant` is `claimant()` of it."""
    payload = "payload || CAST(:claimant AS JSONB)"
    insert = _insert_from(EventType.JOB_STARTED, "postgresql", "moved", payload)
    return Told(insert, ("id", "payload"))


def claimant(worker_id: str) -> str:
    """Return what the start of a job says beside what is to be done."""
    return json.dumps({"worker": worker_id})


@lru_cache(maxsize=8)
def of_ended_jobs(status: str) -> Told:
    """Return what tells of the jobs without items that a worker ends."""
    columns, _has_task = _OF_JOB[EventType.JOB_DONE]
    nothing_counted = json.dumps(
        dict.fromkeys(columns, 0) | {"status": status, "total_items": None}
    )
    built = _object({column: column for column in columns}, "postgresql")
    payload = (
        f"CASE WHEN processed_items = 0 THEN CAST('{nothing_counted}' AS JSONB) ELSE {built} END"
    )
    source = "moved WHERE total_items IS NULL"
    insert = _insert_from(EventType.JOB_DONE, "postgresql", source, payload)
    return Told(insert, ("id", *columns))


def _insert_from(event: EventType, dialect: str, source: str, payload: str = "") -> str:
    """Return the insert of an event for every row of a source: of jobs, or of items."""
    of_items = event in (EventType.ITEM_DONE, EventType.ITEM_PROGRESS)
    return (
        "INSERT INTO events (job_id, type, payload, created_at)"
        f" SELECT {'job_id' if of_items else 'id'}, '{event}',"
        f" {payload or _payload(event, dialect)}, {NOW_SQL[dialect]} FROM {source}"
    )


def _payload(event: EventType, dialect: str) -> str:
    if event in (EventType.ITEM_DONE, EventType.ITEM_PROGRESS):
        return _item_payload(event, dialect)
    if event is EventType.LOG:
        return _object({"level": "'info'", "message": "CAST(:says AS TEXT)"}, dialect)
    columns, has_task = _OF_JOB[event]
    fields = {_KEYS.get(column, column): column for column in columns}
    return _with_task(fields, dialect) if has_task else _object(fields, dialect)


def _item_payload(event: EventType, dialect: str) -> str:
    if event is EventType.ITEM_PROGRESS:
        fields = {"downloaded_bytes": "processed_bytes", "total_bytes": "total_bytes"}
        return _object({"item": "id", **fields}, dialect)
    has_worked = "status IN ('completed', 'skipped')"
    if dialect == "postgresql":
        path = "payload ->> 'file_path'"
    else:
        path = "json_extract(payload, '$.file_path')"
        has_worked = f"json(CASE WHEN {has_worked} THEN 'true' ELSE 'false' END)"
    return _object(
        {
            "item": "id",
            "file_id": "item_key",
            "file_path": f"coalesce({path}, '')",
            "success": has_worked,
            "status": "status",
            "message": "message",
        },
        dialect,
    )


def _with_task(fields: Mapping[str, str], dialect: str) -> str:
    if dialect == "postgresql":
        return f"payload || {_object(fields, dialect)}"
    # Not json_patch(), which drops every key whose value is null.
    pairs = ", ".join(f"'$.{key}', {expression}" for key, expression in fields.items())
    return f"json_set(payload, {pairs})"


def _object(fields: Mapping[str, str], dialect: str) -> str:
    function = "jsonb_build_object" if dialect == "postgresql" else "json_object"
    pairs = ", ".join(f"'{key}', {expression}" for key, expression in fields.items())
    return f"{function}({pairs})"


@lru_cache(maxsize=32)
def _count(counters: tuple[str, ...], dialect: str) -> TextClause:
    risen = ", ".join(f"{counter} = {counter} + :weight" for counter in counters)
    return text(f"UPDATE jobs SET {risen}, updated_at = {NOW_SQL[dialect]} WHERE id = :job")


@lru_cache(maxsize=2)
def _speak(dialect: str) -> TextClause:
    now = NOW_SQL[dialect]
    silent = (
        f"{among('id', 'ids', dialect)}"
        f" AND (progress_at IS NULL OR progress_at <= {now} - {PROGRESS_MS})"
    )
    if dialect == "postgresql":
        # Who beats holds the items already: to wait for a job that ends would be a deadlock.
        silent = (
            f"id = ANY(ARRAY(SELECT id FROM jobs WHERE {silent} FOR NO KEY UPDATE SKIP LOCKED))"
        )
    return text(f"UPDATE jobs SET progress_at = {now} WHERE {silent} RETURNING id")


@lru_cache(maxsize=32)
def _lock(items: str) -> TextClause:
    return text(
        f"SELECT id FROM jobs WHERE id IN (SELECT job_id FROM job_items WHERE {items})"
        " ORDER BY id FOR NO KEY UPDATE"
    )
