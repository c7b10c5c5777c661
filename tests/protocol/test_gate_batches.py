"""Many rows in one step of their owner: each its own values, the lost ones left out."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event, select

from mediaplane.protocol import gate
from mediaplane.protocol.database import Database
from mediaplane.protocol.gate import Lessee
from mediaplane.protocol.lifecycle import Lease, Machine
from mediaplane.protocol.machines import JOB_ITEMS, JOBS, MACHINES
from mediaplane.protocol.tables import jobs
from mediaplane.protocol.write_paths import WRITE_PATHS
from tests.support.databases import Databases
from tests.support.rows import LONG_AGO, Rows
from tests.support.steps import EPOCH, HELD, OTHER_WORKER, WORKER, favourable

machines = pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)

LOST: dict[str, dict[str, Any]] = {
    "of another worker": {"worker_id": OTHER_WORKER},
    "claimed again by the same worker": {"lease_epoch": EPOCH + 1},
    "of an earlier claim": {"lease_epoch": EPOCH - 1},
    "put back": {"status": "pending", "worker_id": None, "lease_expires_at": None},
    "ended": {"status": "failed"},
}


@contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    """Collects what is sent to the database, but for the begin of transactions."""
    sent: list[str] = []

    def note(_conn: Any, _cursor: Any, sql: str, *_rest: Any) -> None:
        if not sql.startswith("BEGIN"):
            sent.append(sql)

    event.listen(database.engine, "before_cursor_execute", note)
    yield sent
    event.remove(database.engine, "before_cursor_execute", note)


def add_lost(rows: Rows, table: str, at_work: str, **columns: Any) -> list[int]:
    """Rows that the worker believes to hold, each lost in another way; and one that never was."""
    lost = [
        rows.add(table, **{**HELD, "status": at_work, **columns, **changes})
        for changes in LOST.values()
    ]
    return [*lost, 999_999]


def test_every_row_of_a_batch_ends_with_its_own_values(database: Databases) -> None:
    with database.control.write() as conn:
        job = Rows(conn).add("jobs", status="running")
        held = dict(HELD, status="running", job_id=job)
        items = [Rows(conn).add("job_items", **held) for _ in range(20)]
    values = {
        item: {"message": f"about {item}: “ü”, 'x' \\", "processed_bytes": 2**40 + item,
               "processed_items": item % 3}
        for item in items
    }  # fmt: skip
    ended = [(Lessee(item, WORKER, EPOCH), values[item]) for item in items]
    with database.data.write(*WRITE_PATHS) as conn:
        assert gate.finish(conn, JOB_ITEMS, "fail", ended) == set(items)
    with database.control.read() as conn:
        for item in items:
            row = Rows(conn).get("job_items", item)
            assert row["status"] == "failed"
            assert {column: row[column] for column in values[item]} == values[item]


def test_a_value_that_is_none_clears_its_column_where_the_lease_ends(database: Databases) -> None:
    with database.control.write() as conn:
        job = Rows(conn).add("jobs", **HELD, status="running", error_message="Of the last try.")
    ended = [(Lessee(job, WORKER, EPOCH), {"error_message": None, "error_code": "io"})]
    with database.data.write(*WRITE_PATHS) as conn:
        assert gate.finish(conn, JOBS, "fail", ended) == {job}
        row = Rows(conn).get("jobs", job)
    assert (row["error_code"], row["error_message"]) == ("io", None)


@machines
def test_lost_rows_are_left_out_of_a_batch_and_the_rest_is_taken(
    database: Databases, machine: Machine
) -> None:
    for step in (step for step in machine.steps if step.lease is Lease.DROP):
        at_work = step.sources[0]
        with database.control.write() as conn:
            rows = Rows(conn)
            held = favourable(machine, step) | {"status": at_work}
            mine = [rows.add(machine.name, **held) for _ in range(3)]
            lost = add_lost(rows, machine.name, at_work)
            untouched = [rows.get(machine.name, row_id) for row_id in lost[:-1]]
        ended: list[tuple[Lessee, dict[str, Any]]] = [
            (Lessee(row_id, WORKER, EPOCH), {})
            for row_id in (lost[0], mine[0], *lost[1:3], *mine[1:], *lost[3:])
        ]
        with database.data.write(*WRITE_PATHS) as conn:
            assert gate.finish(conn, machine, step.name, ended) == set(mine)
        with database.control.read() as conn:
            assert {Rows(conn).get(machine.name, row_id)["status"] for row_id in mine} == {
                step.target
            }
            assert [Rows(conn).get(machine.name, row_id) for row_id in lost[:-1]] == untouched


def test_a_row_that_stands_twice_in_a_batch_ends_once(database: Databases) -> None:
    with database.control.write() as conn:
        job = Rows(conn).add("jobs", status="running", total_items=4)
        item = Rows(conn).add("job_items", **HELD, status="running", job_id=job, total_items=4)
    mine = Lessee(item, WORKER, EPOCH)
    with database.data.write(*WRITE_PATHS) as conn:
        assert gate.finish(conn, JOB_ITEMS, "complete", [(mine, {}), (mine, {})]) == {item}
        assert Rows(conn).get("jobs", job)["completed_items"] == 4


def test_a_batch_of_nothing_sends_nothing(database: Databases) -> None:
    with statements(database.data) as sent, database.data.write(*WRITE_PATHS) as conn:
        assert gate.finish(conn, JOB_ITEMS, "complete", []) == set()
        assert gate.heartbeat(conn, JOB_ITEMS, WORKER, {}, 60) == {}
    assert sent == []


@machines
def test_a_hundred_leases_are_extended_in_one_statement(
    database: Databases, machine: Machine
) -> None:
    at_work = machine.step("heartbeat").sources[0]
    with database.control.write() as conn:
        mine = [Rows(conn).add(machine.name, **HELD, status=at_work) for _ in range(100)]
        lost = add_lost(Rows(conn), machine.name, at_work)
    with statements(database.data) as sent, database.data.write(*WRITE_PATHS) as conn:
        kept = gate.heartbeat(conn, machine, WORKER, dict.fromkeys([*mine, *lost], EPOCH), 60)
    assert [sql.split()[:2] for sql in sent] == [["UPDATE", machine.name]]
    assert sorted(kept) == mine
    for row in kept.values():
        assert row["lease_expires_at"] == row["worker_heartbeat_at"] + 60_000


def test_the_figures_of_a_heartbeat_need_no_further_update_of_the_rows(
    database: Databases,
) -> None:
    with database.control.write() as conn:
        job = Rows(conn).add("jobs", status="running")
        held = dict(HELD, status="running", job_id=job)
        items = [Rows(conn).add("job_items", **held) for _ in range(100)]
    figures = {item: {"processed_bytes": item} for item in items[::2]}
    with statements(database.data) as sent, database.data.write(*WRITE_PATHS) as conn:
        gate.heartbeat(conn, JOB_ITEMS, WORKER, dict.fromkeys(items, EPOCH), 60, figures)
    assert len([sql for sql in sent if sql.startswith("UPDATE job_items")]) == 1
    # And of the history: whether it may speak, the items, and their job.
    assert sorted(sql.split()[0] for sql in sent) == ["INSERT", "INSERT", "UPDATE", "UPDATE"]


def test_a_figure_that_is_absent_leaves_its_column(database: Databases) -> None:
    before = {"processed_items": 3, "processed_bytes": 30}
    with database.control.write() as conn:
        job = Rows(conn).add("jobs", status="running")
        held = dict(HELD, status="running", job_id=job, **before)
        both, one, none = (Rows(conn).add("job_items", **held) for _ in range(3))
    figures = {both: {"processed_items": 4, "processed_bytes": 40}, one: {"processed_bytes": 50}}
    with database.data.write(*WRITE_PATHS) as conn:
        kept = gate.heartbeat(
            conn, JOB_ITEMS, WORKER, dict.fromkeys([both, one, none], EPOCH), 60, figures
        )
    assert {
        row_id: (row["processed_items"], row["processed_bytes"]) for row_id, row in kept.items()
    } == {both: (4, 40), one: (3, 50), none: (3, 30)}


def test_a_figure_of_a_lost_row_is_not_written(database: Databases) -> None:
    with database.control.write() as conn:
        lost = add_lost(Rows(conn), "jobs", "running")
    with database.data.write(*WRITE_PATHS) as conn:
        leases = dict.fromkeys(lost, EPOCH)
        figures = {row_id: {"progress": 0.5} for row_id in lost}
        assert gate.heartbeat(conn, JOBS, WORKER, leases, 60, figures) == {}
        assert set(conn.scalars(select(jobs.c.progress))) == {0}


def test_a_heartbeat_brings_back_a_request_to_cancel(database: Databases) -> None:
    with database.control.write() as conn:
        job = Rows(conn).add("jobs", **HELD, status="running")
        assert gate.take(conn, JOBS, "request_cancel", job, cancel_requested_at=LONG_AGO)
    with database.data.write(*WRITE_PATHS) as conn:
        kept = gate.heartbeat(conn, JOBS, WORKER, {job: EPOCH}, 60)
    assert kept[job]["cancel_requested_at"] == LONG_AGO
