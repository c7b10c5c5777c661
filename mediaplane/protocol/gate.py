"""The one door through which the status of a row changes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, insert, text

from mediaplane.protocol import bulk, history, statements, tables, tally
from mediaplane.protocol.clock import NOW_SQL
from mediaplane.protocol.database import Topic, changed, plane_of
from mediaplane.protocol.driver import Row
from mediaplane.protocol.lifecycle import Lease, Machine, Step, WritePath
from mediaplane.protocol.machines import JOB_ITEMS, JOBS
from mediaplane.protocol.values import EventType, Plane, WorkerState

# The step by which each plane ends the items of a job that it has ended.
_CLOSING = {Plane.DATA: JOB_ITEMS.step("revoke"), Plane.CONTROL: JOB_ITEMS.step("withdraw")}


class GateRefused(Exception):
    """A step was taken by the wrong plane or with a column that it may not write."""


class Lessee(NamedTuple):
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
    step = machine.step(step_name)
    held_row = lessee.row_id if lessee else None
    if held_row != (row_id if step.lease in (Lease.KEEP, Lease.DROP) else None):
        raise GateRefused(f"{machine.name}.{step_name}: a lease is needed exactly for its own row")
    if (lease_seconds is None) == (step.lease is Lease.KEEP):
        raise GateRefused(f"{machine.name}.{step_name}: lease_seconds is for steps that keep it")
    if lessee is None:
        return bool(
            take_all(conn, machine, step_name, "id = :row_id", {"row_id": row_id}, **values)
        )
    return bool(_take_held(conn, machine, step_name, [(lessee, values)], lease_seconds or 0))


def take_all(
    conn: Connection,
    machine: Machine,
    step_name: str,
    where: str,
    parameters: Mapping[str, Any] | None = None,
    **values: Any,
) -> list[Row]:
    """Take a step of every row it is legal for and `where` admits; return those rows."""
    step = _admit(conn, machine, step_name, values)
    if step.lease not in (Lease.ABSENT, Lease.REAP):
        raise GateRefused(f"{machine.name}.{step_name}: not a step for a whole set")
    dialect, bound = conn.dialect.name, dict(parameters or {})
    if step.counts and dialect == "postgresql":
        jobs = history.lock_jobs(conn, statements.legal(step, where, dialect), bound)
        where = f"({where}) AND {statements.among('job_id', 'locked_jobs', dialect)}"
        bound["locked_jobs"] = statements.id_list(jobs, dialect)
    statement = statements.update(machine, step, tuple(sorted(values)), dialect, where)
    bound |= {f"new_{column}": value for column, value in values.items()}
    rows: list[Row] = list(conn.execute(statement, bound).mappings())
    tally.note(conn, machine, step, rows)
    _follow_up(conn, machine, step, rows)
    return rows


def finish(
    conn: Connection,
    machine: Machine,
    step_name: str,
    ended: Sequence[tuple[Lessee, Mapping[str, Any]]],
) -> set[int]:
    """End many leases of one worker by one step, each row with its own values.

    Return the ids of the rows that took it: the others have been lost to somebody else.
    """
    if machine.step(step_name).lease is not Lease.DROP:
        raise GateRefused(f"{machine.name}.{step_name} does not end a lease")
    return {row["id"] for row in _take_held(conn, machine, step_name, ended, 0)}


def lock_rows(conn: Connection, machine: Machine, row_ids: Iterable[int]) -> None:
    """Lock rows by id, before several statements of a transaction touch them in another order."""
    if conn.dialect.name == "postgresql":
        statement = statements.lock(machine)
        conn.execute(statement, {"ids": statements.id_list(row_ids, "postgresql")})


def heartbeat(
    conn: Connection,
    machine: Machine,
    worker_id: str,
    leases: Mapping[int, int],
    seconds: float,
    figures: Mapping[int, Mapping[str, Any]] | None = None,
) -> dict[int, Row]:
    """Extend all leases of a worker (row id → epoch) in one statement; return those it holds.

    `figures` are new values of columns that tell how far a row is.
    """
    known = figures or {}
    beats = [
        (Lessee(row_id, worker_id, epoch), known.get(row_id, {}))
        for row_id, epoch in leases.items()
    ]
    rows = {row["id"]: row for row in _take_held(conn, machine, "heartbeat", beats, seconds)}
    if machine is JOBS:
        spoken = history.speak_of_progress(conn, rows.keys() & known.keys()) if known else []
    elif machine is JOB_ITEMS and known:
        spoken = history.speak_of_progress(
            conn, {row["job_id"] for row_id, row in rows.items() if row_id in known}
        )
        told = [row_id for row_id in rows.keys() & known.keys() if rows[row_id]["job_id"] in spoken]
        if told:
            history.append(conn, EventType.ITEM_PROGRESS, told)
    else:
        spoken = []
    if spoken:
        history.append(conn, EventType.JOB_PROGRESS, spoken)
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
) -> list[Row]:
    """Make a worker the owner of up to `limit` rows, and return them, best first."""
    step = _admit(conn, machine, step_name, {})
    if step.lease is not Lease.TAKE:
        raise GateRefused(f"{machine.name}.{step_name} is not a claim")
    if limit < 1:
        return []  # to SQLite a negative limit is no limit
    dialect = conn.dialect.name
    is_told_at_once = dialect == "postgresql" and machine is JOBS
    told = history.of_claimed_jobs() if is_told_at_once else None
    statement = statements.claim(machine, step, dialect, where, told)
    bound = {"worker": worker_id, "lease_ms": int(lease_seconds * 1000), "limit": limit}
    if told:
        bound["claimant"] = history.claimant(worker_id)
    rows = statements.run(conn, statement, bound | dict(parameters or {}))
    tally.note(conn, machine, step, rows)
    for column, is_descending in reversed(machine.ranking):
        rows.sort(key=lambda row: row[column], reverse=is_descending)
    if is_told_at_once and rows:
        changed(conn, Topic.NEWS)
    else:
        history.record(conn, machine, step, rows)
    return rows


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
    bulk.insert_many(conn, path.table, columns, rows)


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
    changed(conn, Topic.NEWS)


def _take_held(
    conn: Connection,
    machine: Machine,
    step_name: str,
    held: Sequence[tuple[Lessee, Mapping[str, Any]]],
    lease_seconds: float,
) -> list[Row]:
    """Take a step of the owner on many rows, in one statement."""
    columns = frozenset().union(*(values.keys() for _lessee, values in held))
    step = _admit(conn, machine, step_name, columns)
    workers = {lessee.worker_id for lessee, _values in held}
    if not workers:
        return []
    if len(workers) > 1:
        raise GateRefused(f"{machine.name}.{step_name}: the rows of one worker at a time")
    dialect = conn.dialect.name
    ids = statements.id_list((lessee.row_id for lessee, _values in held), dialect)
    if step.counts and dialect == "postgresql":
        history.lock_jobs(conn, statements.among("id", "ids", dialect), {"ids": ids})
    bound: dict[str, Any] = {
        "worker": workers.pop(),
        "held": statements.held_rows(
            ((lessee.row_id, lessee.epoch, values) for lessee, values in held), dialect
        ),
    }
    if dialect == "postgresql":
        bound["ids"] = ids
    if step.lease is Lease.KEEP:
        bound["lease_ms"] = int(lease_seconds * 1000)
    # On PostgreSQL the end of jobs without items is told by the statement that ends them.
    is_told = dialect == "postgresql" and step.events == (EventType.JOB_DONE,)
    told = history.of_ended_jobs(str(step.target)) if is_told else None
    statement = statements.owners_update(machine, step, tuple(sorted(columns)), dialect, told)
    rows = statements.run(conn, statement, bound)
    tally.note(conn, machine, step, rows)
    if step.lease is Lease.DROP:
        tally.note_stale(conn, machine, len(held) - len(rows))
    if is_told and rows:
        changed(conn, Topic.NEWS)
    untold = [row for row in rows if not (is_told and row["total_items"] is None)]
    _follow_up(conn, machine, step, untold)
    return rows


def _follow_up(conn: Connection, machine: Machine, step: Step, rows: Sequence[Row]) -> None:
    """Do what belongs to a move, in the same transaction."""
    if not rows:
        return
    if machine is JOBS and step.target in machine.final:
        _close_items(conn, [row["id"] for row in rows if row["total_items"] is not None])
    history.record(conn, machine, step, rows)
    if step.counts:
        history.count(conn, step, rows)


def _close_items(conn: Connection, job_ids: Sequence[int]) -> None:
    """End what is left of the items of jobs that have ended."""
    if not job_ids:
        return
    step, dialect = _CLOSING[plane_of(conn)], conn.dialect.name
    of_jobs = statements.among("job_id", "jobs", dialect)
    statement = statements.update(JOB_ITEMS, step, (), dialect, of_jobs)
    bound = {"jobs": statements.id_list(job_ids, dialect)}
    rows: list[Row] = list(conn.execute(statement, bound).mappings())
    tally.note(conn, JOB_ITEMS, step, rows)
    _follow_up(conn, JOB_ITEMS, step, rows)


def _admit(conn: Connection, machine: Machine, step_name: str, columns: Iterable[str]) -> Step:
    step = machine.step(step_name)
    if plane_of(conn) is not step.plane:
        raise GateRefused(f"{machine.name}.{step_name} is a step of the {step.plane} plane")
    foreign = frozenset(columns) - (step.writes - statements.managed(step))
    if foreign:
        raise GateRefused(f"{machine.name}.{step_name} may not write {sorted(foreign)}")
    return step
