"""The one door through which the status of a row changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, bindparam, insert, text
from sqlalchemy.engine import RowMapping
from sqlalchemy.sql.elements import TextClause

from mediaplane.protocol import tables
from mediaplane.protocol.clock import NOW_SQL
from mediaplane.protocol.database import execute_many, plane_of
from mediaplane.protocol.lifecycle import OWNER, Lease, Machine, Step, WritePath
from mediaplane.protocol.values import EventType, WorkerState


class GateRefused(Exception):
    """A step was taken by the wrong plane or with a column that it may not write."""


@dataclass(frozen=True)
class Lessee:
    """Who holds a row: the worker and the epoch that its claim was given."""

    row_id: int
    worker_id: str
    epoch: int


def take(
    conn: Connection,
    machine: Machine,
    step_name: str,
    row_id: int,
    lessee: Lessee | None = None,
    lease_seconds: float | None = None,
    **values: Any,
) -> bool:
    """Take a step of one row; False when the row has moved on or the lease is lost.

    A step of the owner needs its lease, and one that keeps the lease says for how long.
    """
    step = _admit(conn, machine, step_name, values)
    if step.lease is Lease.TAKE:
        raise GateRefused(f"{machine.name}.{step_name} is a claim; rows are claimed with claim()")
    held_row = lessee.row_id if lessee else None
    if held_row != (row_id if step.lease in (Lease.KEEP, Lease.DROP) else None):
        raise GateRefused(f"{machine.name}.{step_name}: a lease is needed exactly for its own row")
    if (lease_seconds is None) == (step.lease is Lease.KEEP):
        raise GateRefused(f"{machine.name}.{step_name}: lease_seconds is for steps that keep it")
    statement = _update(machine, step, tuple(sorted(values)), conn.dialect.name, "id = :row_id")
    bound = _bind(values) | _held(lessee) | {"row_id": row_id}
    if lease_seconds is not None:
        bound["lease_ms"] = int(lease_seconds * 1000)
    row = conn.execute(statement, bound).first()
    if row is not None:
        _record(conn, step, [row._mapping])
    return row is not None


def take_all(
    conn: Connection,
    machine: Machine,
    step_name: str,
    where: str,
    parameters: Mapping[str, Any] | None = None,
    **values: Any,
) -> list[RowMapping]:
    """Take a step of every row it is legal for and `where` admits; return those rows."""
    step = _admit(conn, machine, step_name, values)
    if step.lease not in (Lease.ABSENT, Lease.REAP):
        raise GateRefused(f"{machine.name}.{step_name}: not a step for a whole set")
    statement = _update(machine, step, tuple(sorted(values)), conn.dialect.name, where)
    result = conn.execute(statement, _bind(values) | dict(parameters or {}))
    rows = [row._mapping for row in result]
    _record(conn, step, rows)
    return rows


def claim(
    conn: Connection,
    machine: Machine,
    step_name: str,
    worker_id: str,
    lease_seconds: float,
    limit: int,
    where: str = "true",
    parameters: Mapping[str, Any] | None = None,
) -> list[RowMapping]:
    """Make a worker the owner of up to `limit` rows, best first, and return them."""
    step = _admit(conn, machine, step_name, {})
    if step.lease is not Lease.TAKE:
        raise GateRefused(f"{machine.name}.{step_name} is not a claim")
    if limit < 1:
        return []  # to SQLite a negative limit is no limit
    statement = _claim(machine, step, conn.dialect.name, where)
    bound = {"worker": worker_id, "lease_ms": int(lease_seconds * 1000), "limit": limit}
    rows = [row._mapping for row in conn.execute(statement, bound | dict(parameters or {}))]
    _record(conn, step, rows)
    return rows


def heartbeat(
    conn: Connection, machine: Machine, worker_id: str, leases: Mapping[int, int], seconds: float
) -> dict[int, RowMapping]:
    """Extend all leases of a worker (row id → epoch) in one statement; return those it holds."""
    if not leases:
        return {}
    step = _admit(conn, machine, "heartbeat", {})
    bound = {"worker": worker_id, "lease_ms": int(seconds * 1000), "leases": [*leases.items()]}
    rows = conn.execute(_beat(machine, step, conn.dialect.name), bound)
    return {row.id: row._mapping for row in rows}


def add(conn: Connection, path: WritePath, rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows through a write path of the data plane."""
    if rows and not rows[0].keys() <= path.inserts:
        raise GateRefused(f"{path} may not insert {sorted(rows[0].keys() - path.inserts)}")
    if rows:
        conn.execute(insert(tables.metadata.tables[path.table]), list(rows))


def add_many(
    conn: Connection, path: WritePath, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Insert many plain rows through a write path, as fast as the driver can."""
    if not set(columns) <= path.inserts:
        raise GateRefused(f"{path} may not insert {sorted(set(columns) - path.inserts)}")
    if not rows:
        return
    names = ", ".join(columns)
    if conn.dialect.name == "sqlite":
        marks = ", ".join("?" * len(columns))
        execute_many(conn, f"INSERT INTO {path.table} ({names}) VALUES ({marks})", rows)
        return
    cursor = conn.connection.cursor()
    with cursor.copy(f"COPY {path.table} ({names}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)


def announce_worker(
    conn: Connection, worker_id: str, state: WorkerState, stats: Mapping[str, Any]
) -> None:
    """Say that a worker is there and what it does; its command is not its own to write."""
    now = NOW_SQL[conn.dialect.name]
    statement = text(
        "INSERT INTO worker_status (worker_id, state, stats, started_at, last_seen_at)"
        f" VALUES (:worker, :state, :stats, {now}, {now}) ON CONFLICT (worker_id) DO UPDATE SET"
        " state = excluded.state, stats = excluded.stats, last_seen_at = excluded.last_seen_at"
    ).bindparams(bindparam("stats", type_=tables.worker_status.c.stats.type))
    conn.execute(statement, {"worker": worker_id, "state": state, "stats": dict(stats)})


def append_event(
    conn: Connection, job_id: int, event: EventType, payload: Mapping[str, Any]
) -> None:
    """Append to a job's history."""
    conn.execute(insert(tables.events), {"job_id": job_id, "type": event, "payload": dict(payload)})


def _admit(conn: Connection, machine: Machine, step_name: str, values: Mapping[str, Any]) -> Step:
    step = machine.step(step_name)
    plane = plane_of(conn)
    if plane is not step.plane:
        raise GateRefused(f"{machine.name}.{step_name} is a step of the {step.plane} plane")
    foreign = values.keys() - (step.writes - _managed(step))
    if foreign:
        raise GateRefused(f"{machine.name}.{step_name} may not write {sorted(foreign)}")
    return step


def _managed(step: Step) -> frozenset[str]:
    """Return the columns whose value the gate alone decides."""
    return frozenset({"status", "lease_epoch", "worker_id", "worker_heartbeat_at",
                      "lease_expires_at", "updated_at", "started_at", "finished_at",
                      *step.increments, *step.sets})  # fmt: skip


def _assignments(machine: Machine, step: Step, values: tuple[str, ...], now: str) -> dict[str, str]:
    """Return what the step writes: column → SQL expression."""
    final = step.target in machine.final or step.target in ("failed", "retryable")
    lease: dict[Lease, dict[str, str]] = {
        Lease.ABSENT: {},
        Lease.TAKE: {
            "worker_id": ":worker",
            "worker_heartbeat_at": now,
            "lease_expires_at": f"{now} + :lease_ms",
            "lease_epoch": "lease_epoch + 1",
            "started_at": now,
            "finished_at": "NULL",
        },
        Lease.KEEP: {"worker_heartbeat_at": now, "lease_expires_at": f"{now} + :lease_ms"},
        Lease.DROP: {"worker_heartbeat_at": now, "lease_expires_at": "NULL"},
        Lease.REAP: dict.fromkeys(sorted(OWNER), "NULL"),
    }  # fmt: skip
    written = dict(lease[step.lease])
    if step.name.startswith("release"):
        written |= {"worker_id": "NULL", "worker_heartbeat_at": "NULL", "started_at": "NULL"}
    if final and step.lease is not Lease.TAKE:
        written["finished_at"] = now
    written |= {column: f"{column} + 1" for column in step.increments}
    written |= {column: f":set_{column}" for column in step.sets}
    written |= {column: f":value_{column}" for column in values}
    written["updated_at"] = now
    if step.target is not None:
        written["status"] = f"'{step.target}'"
    return {column: sql for column, sql in written.items() if column in step.writes}


def _conditions(step: Step, now: str) -> list[str]:
    sources = ", ".join(f"'{source}'" for source in step.sources)
    conditions = [f"status IN ({sources})" if len(step.sources) > 1 else f"status = {sources}"]
    if step.due:
        conditions.append(f"{step.due} <= {now}")
    if step.when:
        conditions.append(f"({step.when.format(now=now)})")
    if step.lease is Lease.REAP:
        conditions.append(f"(lease_expires_at IS NULL OR lease_expires_at <= {now})")
    if step.lease in (Lease.KEEP, Lease.DROP):
        conditions.append("worker_id = :worker")
    return conditions


def _set_clause(machine: Machine, step: Step, values: tuple[str, ...], now: str) -> str:
    written = _assignments(machine, step, values, now)
    return ", ".join(f"{column} = {sql}" for column, sql in written.items())


@lru_cache(maxsize=1024)
def _update(
    machine: Machine, step: Step, values: tuple[str, ...], dialect: str, where: str
) -> TextClause:
    now = NOW_SQL[dialect]
    conditions = [f"({where})", *_conditions(step, now)]
    if step.lease in (Lease.KEEP, Lease.DROP):
        conditions.append("lease_epoch = :epoch")
    sql = (
        f"UPDATE {machine.name} SET {_set_clause(machine, step, values, now)} "
        f"WHERE {' AND '.join(conditions)}"
    )
    return _typed(machine, sql).bindparams(**{f"set_{k}": v for k, v in step.sets.items()})


@lru_cache(maxsize=256)
def _claim(machine: Machine, step: Step, dialect: str, where: str) -> TextClause:
    now = NOW_SQL[dialect]
    conditions = [*_conditions(step, now), f"({where})"]
    chosen = (
        f"SELECT id FROM {machine.name} WHERE {' AND '.join(conditions)} "
        f"ORDER BY {machine.claim_order} LIMIT :limit"
    )
    if dialect == "postgresql":
        # As an array: PostgreSQL may run IN (SELECT … LIMIT) as a loop that takes too many.
        chosen = f"id = ANY(ARRAY({chosen} FOR UPDATE SKIP LOCKED))"
    else:
        chosen = f"id IN ({chosen})"
    sql = f"UPDATE {machine.name} SET {_set_clause(machine, step, (), now)} WHERE {chosen}"
    return _typed(machine, sql)


@lru_cache(maxsize=64)
def _beat(machine: Machine, step: Step, dialect: str) -> TextClause:
    now = NOW_SQL[dialect]
    sql = (
        f"UPDATE {machine.name} SET {_set_clause(machine, step, (), now)} "
        f"WHERE (id, lease_epoch) IN :leases AND {' AND '.join(_conditions(step, now))}"
    )
    return _typed(machine, sql, bindparam("leases", expanding=True))


def _typed(machine: Machine, sql: str, *parameters: Any) -> TextClause:
    """Return the changed rows too, with the values that the table's columns have (JSON)."""
    # By name: migrations append columns, so the order here need not be that of the database.
    columns = ", ".join(machine.table.columns.keys())
    statement = text(f"{sql} RETURNING {columns}").bindparams(*parameters)
    return statement.columns(*machine.table.columns)  # type: ignore[return-value]


def _bind(values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"value_{column}": value for column, value in values.items()}


def _held(lessee: Lessee | None) -> dict[str, Any]:
    return {} if lessee is None else {"worker": lessee.worker_id, "epoch": lessee.epoch}


def _record(conn: Connection, step: Step, rows: Sequence[RowMapping]) -> None:
    if not step.events or not rows:
        return
    conn.execute(
        insert(tables.events),
        [
            {"job_id": row["id"], "type": event, "payload": _payload(event, row)}
            for row in rows
            for event in step.events
        ],
    )


def _payload(event: EventType, row: RowMapping) -> dict[str, Any]:
    match event:
        case EventType.JOB_STARTED:
            return {"kind": row["kind"], "library": row["library_id"], "worker": row["worker_id"]}
        case EventType.JOB_ERROR:
            return {"error_code": row["error_code"], "error_message": row["error_message"]}
        case EventType.JOB_DONE:
            return {
                "status": row["status"],
                "processed_items": row["processed_items"],
                "total_items": row["total_items"],
            }
        case _:
            return {}
