"""The SQL of every step, built once from the machines and only bound afterwards."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection, Table, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.sql.elements import TextClause

from mediaplane.protocol.clock import NOW_SQL
from mediaplane.protocol.driver import Row, execute_directly
from mediaplane.protocol.lifecycle import OWNER, Lease, Machine, Step

# What makes a write of the owner safe: the epoch is that of its own claim. The worker's id alone
# would let an earlier attempt of the same worker finish what it has lost.
FENCE = "lease_epoch = {epoch}"

# What follows from the end of a lease needs no more of the row than this.
_END = ("id", "job_id", "total_items")

_POSTGRESQL = postgresql.dialect()  # type: ignore[no-untyped-call]
_PSYCOPG = psycopg.dialect()  # type: ignore[no-untyped-call]


class Told(NamedTuple):
    """An insert that belongs to a move, from the moved rows in `moved` (PostgreSQL)."""

    insert: str
    reads: tuple[str, ...]  # the columns that it needs of them


def managed(step: Step) -> frozenset[str]:
    """Return the columns whose value the gate alone decides."""
    return frozenset({"status", "lease_epoch", "worker_id", "worker_heartbeat_at",
                      "lease_expires_at", "updated_at", "started_at", "finished_at",
                      *step.increments, *step.sets})  # fmt: skip


def among(column: str, parameter: str, dialect: str) -> str:
    """Return the condition that a column is one of the ids which `id_list` encodes."""
    if dialect == "postgresql":
        return f"{column} = ANY(CAST(:{parameter} AS BIGINT[]))"
    return f"{column} IN (SELECT value FROM json_each(:{parameter}))"


def id_list(ids: Iterable[int], dialect: str) -> str:
    """Return ids as one parameter, so that the statement is the same for any number of them."""
    left, right = "{}" if dialect == "postgresql" else "[]"
    return f"{left}{','.join(map(str, ids))}{right}"


def held_rows(rows: Iterable[tuple[int, int, Mapping[str, Any]]], dialect: str) -> str:
    """Return row ids, epochs and new values of columns as one parameter, for `owners_update`."""
    held = {
        row_id: {"epoch": epoch, **{f"new_{name}": new for name, new in values.items()}}
        # Of two claims of one row the later one counts.
        for row_id, epoch, values in sorted(rows, key=itemgetter(1))
    }
    if dialect == "postgresql":
        return json.dumps(held)
    return json.dumps([{"id": row_id} | values for row_id, values in held.items()])


def records(name: str, fields: Mapping[str, str], dialect: str) -> str:
    """Return one JSON parameter as a table of the same name, with fields of these types."""
    if dialect == "postgresql":
        typed = ", ".join(f"{field} {field_type}" for field, field_type in fields.items())
        return f"jsonb_to_recordset(CAST(:{name} AS JSONB)) AS {name} ({typed})"
    read = ", ".join(f"json_extract(value, '$.{field}') AS {field}" for field in fields)
    return f"(SELECT {read} FROM json_each(:{name})) AS {name}"


def sql_type(table: Table, column: str) -> str:
    """Return the type of a column as PostgreSQL calls it."""
    return str(table.columns[column].type.compile(_POSTGRESQL))


@lru_cache(maxsize=256)
def owners_update(
    machine: Machine, step: Step, columns: tuple[str, ...], dialect: str, told: Told | None = None
) -> TextClause:
    """Return the update of many rows by the worker that holds them, each with its own values.

    A value that is absent or NULL leaves its column as it is where the lease goes on.
    """
    now = NOW_SQL[dialect]
    source, held = _held(machine, columns, dialect)
    written = _assignments(machine, step, now)
    for column in columns:
        new = held[f"new_{column}"]
        written[column] = f"coalesce({new}, {column})" if step.lease is Lease.KEEP else new
    conditions = [
        FENCE.format(epoch=held["epoch"]),
        *_conditions(step, now),
    ]
    sql = f"UPDATE {machine.name} SET {_set_clause(written)}{source} {' AND '.join(conditions)}"
    shown = [name for name in (*_END, machine.kind_column or "") if name in machine.table.columns]
    columns_shown = None if step.lease is Lease.KEEP else shown
    return _returning(machine, step, dialect, sql, columns_shown, told)


@lru_cache(maxsize=512)
def update(
    machine: Machine, step: Step, columns: tuple[str, ...], dialect: str, where: str
) -> TextClause:
    """Return the update of every row that a step is legal for and a condition admits."""
    now = NOW_SQL[dialect]
    written = _assignments(machine, step, now) | {column: f":new_{column}" for column in columns}
    chosen = legal(step, where, dialect)
    if dialect == "postgresql":
        # Who holds the lock of an expired lease is alive, or takes it away just now: waiting
        # gains nothing.
        chosen = _in_order(machine, chosen, "SKIP LOCKED" if step.lease is Lease.REAP else "")
    sql = f"UPDATE {machine.name} SET {_set_clause(written)} WHERE {chosen}"
    return _returning(machine, step, dialect, sql)


def legal(step: Step, where: str, dialect: str) -> str:
    """Return the condition that a step is legal for a row which another condition admits."""
    return " AND ".join([f"({where})", *_conditions(step, NOW_SQL[dialect])])


@lru_cache(maxsize=256)
def claim(
    machine: Machine, step: Step, dialect: str, where: str, told: Told | None = None
) -> TextClause:
    """Return the update by which a worker becomes the owner of the best rows."""
    now = NOW_SQL[dialect]
    chosen = (
        f"SELECT id FROM {machine.name} WHERE {' AND '.join(_conditions(step, now))} AND ({where})"
        f" ORDER BY {machine.claim_order} LIMIT :limit"
    )
    if dialect == "postgresql":
        # As an array: PostgreSQL may run IN (SELECT … LIMIT) as a loop that takes too many.
        chosen = f"id = ANY(ARRAY({chosen} FOR UPDATE SKIP LOCKED))"
    else:
        chosen = f"id IN ({chosen})"
    written = _assignments(machine, step, now)
    sql = f"UPDATE {machine.name} SET {_set_clause(written)} WHERE {chosen}"
    return _returning(machine, step, dialect, sql, machine.handed_out, told)


@lru_cache(maxsize=16)
def lock(machine: Machine) -> TextClause:
    """Return the query that locks rows by id."""
    chosen = among("id", "ids", "postgresql")
    return text(f"SELECT id FROM {machine.name} WHERE {chosen} ORDER BY id FOR NO KEY UPDATE")


def _in_order(machine: Machine, chosen: str, waiting: str = "") -> str:
    """Return the condition that locks the chosen rows by id: two in any order could deadlock."""
    rows = f"SELECT id FROM {machine.name} WHERE {chosen} ORDER BY id FOR NO KEY UPDATE {waiting}"
    return f"id = ANY(ARRAY({rows}))"


def _held(machine: Machine, columns: Sequence[str], dialect: str) -> tuple[str, dict[str, str]]:
    """Return where `held_rows` is read, up to the conditions, and the SQL of each of its fields."""
    fields = {"epoch": "BIGINT"}
    fields |= {f"new_{column}": sql_type(machine.table, column) for column in columns}
    if dialect == "postgresql":
        # By a look into the parameter for each row: a join of lists took the square of the time.
        row = f"CAST(:held AS JSONB) -> CAST({machine.name}.id AS TEXT)"
        chosen = among(f"{machine.name}.id", "ids", dialect)
        return f" WHERE {chosen} AND", {
            name: f"CAST({row} ->> '{name}' AS {fields[name]})" for name in fields
        }
    source = records("held", {"id": "BIGINT"} | fields, dialect)
    return f" FROM {source} WHERE {machine.name}.id = held.id AND", {n: f"held.{n}" for n in fields}


def _assignments(machine: Machine, step: Step, now: str) -> dict[str, str]:
    """Return what the step itself writes: column → SQL expression."""
    ends = step.target in machine.final or step.target in ("failed", "retryable")
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
        Lease.REVOKE: dict.fromkeys(sorted(OWNER), "NULL"),
    }
    written = dict(lease[step.lease])
    if step.name.startswith("release"):
        written |= {"worker_id": "NULL", "worker_heartbeat_at": "NULL", "started_at": "NULL"}
    if ends and step.lease is not Lease.TAKE:
        written["finished_at"] = now
    written |= {column: f"{column} + 1" for column in step.increments}
    written |= {column: f":set_{column}" for column in step.sets}
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


def _set_clause(written: Mapping[str, str]) -> str:
    return ", ".join(f"{column} = {sql}" for column, sql in written.items())


def _returning(
    machine: Machine,
    step: Step,
    dialect: str,
    sql: str,
    columns: Sequence[str] | None = None,
    told: Told | None = None,
) -> TextClause:
    """Have a statement return the changed rows too, with values of the columns' types."""
    # By name: migrations append columns, so the order here need not be that of the database.
    names = columns or machine.table.columns.keys()
    returned = dict.fromkeys([*names, *(told.reads if told else ())])
    sql = f"{sql} RETURNING {', '.join(f'{machine.name}.{name}' for name in returned)}"
    if told:
        sql = f"WITH moved AS ({sql}), told AS ({told.insert}) SELECT {', '.join(names)} FROM moved"
    fixed = {f"set_{column}": value for column, value in step.sets.items() if column in step.writes}
    return shaped(text(sql).bindparams(**fixed), machine.table, names, dialect)


def shaped(statement: TextClause, table: Table, columns: Iterable[str], dialect: str) -> TextClause:
    """Return a statement whose result has values of the types of these columns of a table."""
    if dialect == "postgresql":
        return statement  # its driver knows the types; to have SQLAlchemy know them costs time
    return statement.columns(*(table.columns[name] for name in columns))  # type: ignore[return-value]


def run(conn: Connection, statement: TextClause, bound: Mapping[str, Any]) -> list[Row]:
    """Execute a statement that is executed again and again; return its rows."""
    if conn.dialect.name == "sqlite":
        return list(conn.execute(statement, bound).mappings())
    sql, fixed = _for_psycopg(statement)
    return execute_directly(conn, sql, {**fixed, **bound})


@lru_cache(maxsize=512)
def _for_psycopg(statement: TextClause) -> tuple[str, dict[str, Any]]:
    compiled = statement.compile(dialect=_PSYCOPG)
    fixed = {name: bind.value for name, bind in compiled.binds.items() if not bind.required}
    return str(compiled), fixed
